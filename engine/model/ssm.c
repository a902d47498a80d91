/*
 * Reads a file's recurrent layers into the description (arch.h): which layers
 * are recurrent, and what they keep of a sequence.
 *
 * Invariant: after this, what kernels.h requires of a state, of llm_delta_t
 * and of llm_scan_t holds for each recurrent layer, whatever is in the file.
 */

#include "engine/model/blocks.h"
#include "engine/model/reader.h"


int
llm_read_recurrent(llm_reader_t *r, uint32_t layer, int *recurrent)
{
    int                      rc;
    uint32_t                 v, period;
    const llm_layer_desc_t  *l;

    l = &r->d->layers[layer];
    *recurrent = 0;

    if (r->d->arch->recurrent == NULL) {
        return LLM_OK;
    }

    /* layers for multi-token prediction have attention, whatever would be
       their turn */

    if (r->d->head.kind == LLM_HEAD_MTP && layer >= r->d->head.block) {
        *recurrent = l->n_heads == 0 || l->n_kv_heads == 0;
        return LLM_OK;
    }

    period = 0;
    v = 0;
    rc = llm_read_u32(r, "full_attention_interval", &period);

    if (rc != LLM_ERROR) {
        v = period && (layer + 1) % period != 0;
        rc = llm_read_layer(r, "attention.recurrent_layers", layer, &v);
    }

    *recurrent = v || l->n_heads == 0 || l->n_kv_heads == 0;

    return rc == LLM_ERROR ? rc : LLM_OK;
}


static int
llm_ssm_width(llm_reader_t *r, const char *name, uint32_t *width)
{
    *width = 0;

    return llm_read_size(r, name, LLM_MAX_CONV, width);
}


static int
llm_ssm_divides(llm_reader_t *r, const char *name, uint32_t a, uint32_t b)
{
    if (b % a) {
        return llm_fail(r->err, "%s: %s.%s: %u does not divide %u",
                        llm_gguf_name(r->g), r->d->hp.arch, name, a, b);
    }

    return LLM_OK;
}


int
llm_read_ssm(llm_reader_t *r)
{
    uint32_t           i, inner, groups;
    llm_layer_desc_t  *l;
    llm_state_layer_t  s;

    memset(&s, 0, sizeof(s));
    inner = 0;
    groups = 0;

    if (llm_ssm_width(r, "ssm.conv_kernel", &s.conv_width) != LLM_OK
        || llm_read_size(r, "ssm.inner_size", LLM_MAX_WIDTH / 4, &inner)
           != LLM_OK
        || llm_read_size(r, "ssm.state_size", LLM_MAX_HEAD_DIM, &s.n_rows)
           != LLM_OK
        || llm_read_size(r, "ssm.time_step_rank", inner, &s.n_heads)
           != LLM_OK
        || llm_read_size(r, "ssm.group_count", s.n_heads, &groups) != LLM_OK
        || llm_ssm_divides(r, "ssm.time_step_rank", s.n_heads, inner)
           != LLM_OK
        || llm_ssm_divides(r, "ssm.group_count", groups, s.n_heads)
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (groups > LLM_MAX_WIDTH / 4 / s.n_rows) {
        return llm_fail(r->err, "%s: %s.ssm.group_count: %u groups of %u are "
                        "too wide", llm_gguf_name(r->g), r->d->hp.arch,
                        groups, s.n_rows);
    }

    s.n_cols = inner / s.n_heads;
    s.conv_channels = inner + 2 * groups * s.n_rows;

    for (i = 0; i < r->d->hp.n_layers; i++) {
        l = &r->d->layers[i];

        if (l->want[LLM_LT_SSM_CONV]) {
            l->state = s;
            l->n_ssm_groups = groups;
        }
    }

    return LLM_OK;
}


int
llm_read_shortconv(llm_reader_t *r)
{
    uint32_t           i, width;
    llm_layer_desc_t  *l;

    if (llm_ssm_width(r, "shortconv.l_cache", &width) != LLM_OK) {
        return LLM_ERROR;
    }

    for (i = 0; i < r->d->hp.n_layers; i++) {
        l = &r->d->layers[i];

        if (l->want[LLM_LT_SHORTCONV]) {
            l->state.conv_channels = r->d->hp.n_embd;
            l->state.conv_width = width;
        }
    }

    return LLM_OK;
}
