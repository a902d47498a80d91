/*
 * Reads into the description (arch.h) which layers have windows, and the RoPE
 * of these layers.
 */

#include "engine/model/reader.h"


/* of every `period` layers, one has no window: the first if `first`, else the
   last */

static int
llm_read_layer_windows(llm_reader_t *r, uint32_t period, int first,
    uint32_t rope)
{
    int                   rc;
    uint32_t              i, v, window;
    llm_gguf_key_t        key;
    llm_layer_desc_t     *l;
    const llm_gguf_kv_t  *kv;

    window = r->d->arch->window;

    if (llm_read_u32(r, "attention.sliding_window", &window) == LLM_ERROR) {
        return LLM_ERROR;
    }

    llm_gguf_key(&key, r->d->hp.arch, "attention.sliding_window_pattern");
    kv = llm_read_key(r, key.text);

    if (kv && kv->type != LLM_GGUF_ARRAY
        && llm_gguf_get_u32(r->g, key.text, &period, r->err) == LLM_ERROR)
    {
        return LLM_ERROR;
    }

    for (i = 0; i < r->d->hp.n_layers; i++) {
        l = &r->d->layers[i];
        v = period == 0 || i % period != (first ? 0 : period - 1);

        if (kv && kv->type == LLM_GGUF_ARRAY) {
            rc = llm_read_layer(r, "attention.sliding_window_pattern", i,
                                &v);
            if (rc == LLM_ERROR) {
                return LLM_ERROR;
            }
        }

        l->window = v ? window : 0;

        if (v && window) {
            l->rope = rope;
        }
    }

    return window ? LLM_OK : LLM_ABSENT;
}


int
llm_read_windows(llm_reader_t *r, uint32_t period, uint32_t rope)
{
    return llm_read_layer_windows(r, period, 0, rope);
}


int
llm_read_windows_behind(llm_reader_t *r, uint32_t period, uint32_t rope)
{
    return llm_read_layer_windows(r, period, 1, rope);
}


int
llm_read_window_rope(llm_reader_t *r, float base, uint32_t *rope)
{
    llm_rope_desc_t  *c;

    *rope = r->d->n_ropes++;
    c = &r->d->ropes[*rope];
    *c = r->d->ropes[0];
    c->plain = 1;
    c->conf.scale = LLM_ROPE_SCALE_NONE;
    c->conf.factor = 1;
    c->conf.mscale = 1;
    c->conf.base = base;

    return llm_read_rope_base(r, "rope.freq_base_swa", &c->conf.base);
}


int
llm_read_unscaled_windows(llm_reader_t *r, uint32_t period)
{
    int       rc;
    uint32_t  rope;

    rc = llm_read_windows(r, period, r->d->n_ropes);

    if (rc != LLM_OK) {
        return rc == LLM_ABSENT ? LLM_OK : LLM_ERROR;
    }

    return llm_read_window_rope(r, r->d->ropes[0].conf.base, &rope);
}


void
llm_desc_rope_in_windows(llm_desc_t *d)
{
    uint32_t  i;

    for (i = 0; i < d->hp.n_layers; i++) {
        if (d->layers[i].window == 0) {
            d->layers[i].rope = LLM_NO_ROPE;
        }
    }
}
