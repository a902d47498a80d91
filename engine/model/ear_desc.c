/*
 * The description of an encoder of sound: sizes from ARCH.audio.*, tensors
 * "a.", as in mmproj files; see arch.h.
 */

#include "engine/model/arch.h"
#include "engine/model/reader.h"

#include <stdio.h>

#define LLM_EAR_MELS     1024
#define LLM_EAR_CTX      65536
#define LLM_EAR_ALIGN    4096         /* alignment heads, at most */

/* how a tensor's dimensions are called */
typedef enum {
    LLM_EAR_EMBD = 0,
    LLM_EAR_FF,
    LLM_EAR_POSITIONS,
    LLM_EAR_KERNEL_1,
    LLM_EAR_KERNEL_2,
    LLM_EAR_NONE
} llm_ear_dim_t;

typedef struct {
    const char       *name;
    llm_ear_dim_t   in;
    llm_ear_dim_t   out;              /* NONE: a vector */
    int               optional;
} llm_ear_fact_t;

static const llm_ear_fact_t  llm_ear_layer[LLM_ST_N] = {
    [LLM_ST_NORM] = { "ln1.weight", LLM_EAR_EMBD, LLM_EAR_NONE, 0 },
    [LLM_ST_NORM_BIAS] = { "ln1.bias", LLM_EAR_EMBD, LLM_EAR_NONE, 0 },
    [LLM_ST_Q] = { "attn_q.weight", LLM_EAR_EMBD, LLM_EAR_EMBD, 0 },
    [LLM_ST_Q_BIAS] = { "attn_q.bias", LLM_EAR_EMBD, LLM_EAR_NONE, 0 },
    [LLM_ST_K] = { "attn_k.weight", LLM_EAR_EMBD, LLM_EAR_EMBD, 0 },
    [LLM_ST_K_BIAS] = { "attn_k.bias", LLM_EAR_EMBD, LLM_EAR_NONE, 1 },
    [LLM_ST_V] = { "attn_v.weight", LLM_EAR_EMBD, LLM_EAR_EMBD, 0 },
    [LLM_ST_V_BIAS] = { "attn_v.bias", LLM_EAR_EMBD, LLM_EAR_NONE, 0 },
    [LLM_ST_OUT] = { "attn_out.weight", LLM_EAR_EMBD, LLM_EAR_EMBD, 0 },
    [LLM_ST_OUT_BIAS] = { "attn_out.bias", LLM_EAR_EMBD, LLM_EAR_NONE,
                          0 },
    [LLM_ST_FF_NORM] = { "ln2.weight", LLM_EAR_EMBD, LLM_EAR_NONE, 0 },
    [LLM_ST_FF_NORM_BIAS] = { "ln2.bias", LLM_EAR_EMBD, LLM_EAR_NONE,
                              0 },
    [LLM_ST_UP] = { "ffn_up.weight", LLM_EAR_EMBD, LLM_EAR_FF, 0 },
    [LLM_ST_UP_BIAS] = { "ffn_up.bias", LLM_EAR_FF, LLM_EAR_NONE, 0 },
    [LLM_ST_DOWN] = { "ffn_down.weight", LLM_EAR_FF, LLM_EAR_EMBD, 0 },
    [LLM_ST_DOWN_BIAS] = { "ffn_down.bias", LLM_EAR_EMBD, LLM_EAR_NONE,
                           0 }
};

static const llm_ear_fact_t  llm_ear_globals[LLM_SG_N] = {
    [LLM_SG_CONV_1] = { "a.conv1d.1.weight", LLM_EAR_KERNEL_1,
                        LLM_EAR_EMBD, 0 },
    [LLM_SG_CONV_1_BIAS] = { "a.conv1d.1.bias", LLM_EAR_EMBD,
                             LLM_EAR_NONE, 0 },
    [LLM_SG_CONV_2] = { "a.conv1d.2.weight", LLM_EAR_KERNEL_2,
                        LLM_EAR_EMBD, 0 },
    [LLM_SG_CONV_2_BIAS] = { "a.conv1d.2.bias", LLM_EAR_EMBD,
                             LLM_EAR_NONE, 0 },
    [LLM_SG_POS] = { "a.position_embd.weight", LLM_EAR_EMBD,
                     LLM_EAR_POSITIONS, 0 },
    [LLM_SG_POST_NORM] = { "a.post_ln.weight", LLM_EAR_EMBD,
                           LLM_EAR_NONE, 0 },
    [LLM_SG_POST_NORM_BIAS] = { "a.post_ln.bias", LLM_EAR_EMBD,
                                LLM_EAR_NONE, 0 }
};


static int
llm_ear_size(llm_reader_t *r, const char *name, uint32_t max, uint32_t *v)
{
    *v = 0;

    return llm_read_size(r, name, max, v);
}


/*
 * The heads that the file names, "alignment_heads"; else all of the second half
 * of the decoder's layers, as OpenAI has it for models without a list.
 */

static int
llm_ear_align(llm_reader_t *r)
{
    uint64_t              i, n;
    int64_t               layer, head;
    llm_desc_t           *d = r->d;
    llm_gguf_key_t        key;
    llm_ear_desc_t     *s = &d->ear;
    const llm_gguf_kv_t  *kv;

    kv = llm_read_key(r, llm_gguf_key(&key, d->hp.arch, "alignment_heads"));

    if (kv && (kv->type != LLM_GGUF_ARRAY || kv->item == LLM_GGUF_STR
               || kv->count % 2 || kv->count / 2 > LLM_EAR_ALIGN))
    {
        return llm_fail(r->err, "%s: %s: not an array of pairs",
                        llm_gguf_name(r->g), key.text);
    }

    n = (uint64_t) (d->hp.n_layers - d->hp.n_layers / 2)
        * d->layers[0].n_heads;
    n = kv ? kv->count / 2 : n;

    if (n == 0 || n > LLM_EAR_ALIGN) {
        return llm_fail(r->err, "%s: %s: %llu heads, and 1 to %d are "
                        "supported", llm_gguf_name(r->g), key.text,
                        (unsigned long long) n, LLM_EAR_ALIGN);
    }

    s->align = calloc((size_t) n, sizeof(*s->align));
    if (s->align == NULL) {
        return llm_fail(r->err, "%s: no memory", llm_gguf_name(r->g));
    }

    s->n_align = (uint32_t) n;

    for (i = 0; i < n; i++) {
        layer = kv ? llm_gguf_item_int(kv, 2 * i)
                   : (int64_t) (d->hp.n_layers / 2
                                + i / d->layers[0].n_heads);
        head = kv ? llm_gguf_item_int(kv, 2 * i + 1)
                  : (int64_t) (i % d->layers[0].n_heads);

        if (layer < 0 || layer >= d->hp.n_layers || head < 0
            || head >= d->layers[layer].n_heads)
        {
            return llm_fail(r->err, "%s: %s: the model has no head %lld in "
                            "layer %lld", llm_gguf_name(r->g), key.text,
                            (long long) head, (long long) layer);
        }

        s->align[i][0] = (uint32_t) layer;
        s->align[i][1] = (uint32_t) head;
    }

    return LLM_OK;
}


int
llm_read_ear(llm_reader_t *r)
{
    llm_gguf_key_t     key;
    llm_ear_desc_t  *s = &r->d->ear;

    if (llm_gguf_find(r->g, llm_gguf_key(&key, r->d->hp.arch,
                                         "audio.block_count")) == NULL)
    {
        return llm_fail(r->err, "%s: %s: it is missing: GGUF files of this "
                        "model have no common layout; name whisper.cpp's .bin "
                        "file, or the model's folder with config.json",
                        llm_gguf_name(r->g), key.text);
    }

    if (llm_ear_size(r, "audio.block_count", LLM_MAX_LAYERS, &s->n_layers)
           != LLM_OK
        || llm_ear_size(r, "audio.context_length", LLM_EAR_CTX,
                          &s->n_ctx) != LLM_OK
        || llm_ear_size(r, "audio.embedding_length", LLM_MAX_WIDTH,
                          &s->n_embd) != LLM_OK
        || llm_ear_size(r, "audio.feed_forward_length", LLM_MAX_WIDTH,
                          &s->n_ff) != LLM_OK
        || llm_ear_size(r, "audio.attention.head_count", s->n_embd,
                          &s->n_heads) != LLM_OK
        || llm_ear_size(r, "audio.num_mel_bins", LLM_EAR_MELS,
                          &s->n_mels) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (s->n_embd % s->n_heads || s->n_embd / s->n_heads > LLM_MAX_HEAD_DIM
        || s->n_embd != r->d->hp.n_embd || s->n_embd > LLM_MAX_WIDTH / 3)
    {
        return llm_fail(r->err, "%s: %s.audio.embedding_length: %u for %u "
                        "heads, and a decoder of width %u",
                        llm_gguf_name(r->g), r->d->hp.arch, s->n_embd,
                        s->n_heads, r->d->hp.n_embd);
    }

    return llm_ear_align(r);
}


static uint32_t
llm_ear_dim(const llm_ear_desc_t *s, llm_ear_dim_t dim)
{
    switch (dim) {

    case LLM_EAR_EMBD:
        return s->n_embd;

    case LLM_EAR_FF:
        return s->n_ff;

    case LLM_EAR_POSITIONS:
        return s->n_ctx;

    case LLM_EAR_KERNEL_1:
        return 3 * s->n_mels;

    case LLM_EAR_KERNEL_2:
        return 3 * s->n_embd;

    default:
        return 1;
    }
}


static int
llm_ear_tensor(const llm_gguf_t *g, const llm_ear_desc_t *s,
    const char *name, const llm_ear_fact_t *f,
    const llm_gguf_tensor_t **t, llm_err_t *err)
{
    *t = llm_gguf_find_tensor(g, name);

    if (*t == NULL) {
        return f->optional ? LLM_OK : llm_desc_no_tensor(g, name, err);
    }

    return llm_desc_shape(g, *t, llm_ear_dim(s, f->in),
                          llm_ear_dim(s, f->out), 1,
                          f->out != LLM_EAR_NONE, err);
}


/* an error if the file has more tensors "a." than were found */

static int
llm_ear_rest(const llm_gguf_t *g, const llm_ear_desc_t *s,
    llm_err_t *err)
{
    size_t                    i, k, found, all;
    const llm_gguf_tensor_t  *t;

    for (i = 0, found = LLM_SG_N; i < s->n_layers; i++) {
        for (k = 0; k < LLM_ST_N; k++) {
            found += s->layers[i][k] != NULL;
        }
    }

    for (i = 0, all = 0; i < llm_gguf_n_tensors(g); i++) {
        t = llm_gguf_tensor(g, i);
        all += t->name.len > 2 && memcmp(t->name.data, "a.", 2) == 0;
    }

    return all == found ? LLM_OK
           : llm_fail(err, "%s: %zu tensors of an encoder of sound, and the "
                      "model has %zu", llm_gguf_name(g), all, found);
}


int
llm_desc_ear(const llm_gguf_t *g, llm_desc_t *d, llm_err_t *err)
{
    char               name[64];
    uint32_t           i, k;
    llm_ear_desc_t  *s = &d->ear;

    if (s->n_layers == 0) {
        return LLM_OK;
    }

    s->layers = calloc(s->n_layers, sizeof(*s->layers));
    if (s->layers == NULL) {
        return llm_fail(err, "%s: no memory", llm_gguf_name(g));
    }

    for (i = 0; i < LLM_SG_N; i++) {
        if (llm_ear_tensor(g, s, llm_ear_globals[i].name,
                             &llm_ear_globals[i], &s->global[i], err)
            != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    for (i = 0; i < s->n_layers; i++) {
        for (k = 0; k < LLM_ST_N; k++) {
            snprintf(name, sizeof(name), "a.blk.%u.%s", i,
                     llm_ear_layer[k].name);

            if (llm_ear_tensor(g, s, name, &llm_ear_layer[k],
                                 &s->layers[i][k], err) != LLM_OK)
            {
                return LLM_ERROR;
            }
        }
    }

    return llm_ear_rest(g, s, err);
}
