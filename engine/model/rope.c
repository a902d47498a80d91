/*
 * RoPE's metadata and frequencies; see rope.h.
 */

#include "engine/model/reader.h"

#include <math.h>

/* factors in files are below 2; with much larger ones, scores are not finite */
#define LLM_ROPE_MAX_MSCALE  1000


static int
llm_rope_scale_type(llm_reader_t *r, llm_rope_conf_t *c)
{
    int        rc;
    llm_str_t  s;

    /* a factor without a type is linear scaling */
    c->scale = LLM_ROPE_SCALE_LINEAR;

    rc = llm_read_str(r, "rope.scaling.type", &s);
    if (rc != LLM_OK) {
        return rc == LLM_ABSENT ? LLM_OK : rc;
    }

    if (llm_str_is(s, "none")) {
        c->scale = LLM_ROPE_SCALE_NONE;
        return LLM_OK;
    }

    if (llm_str_is(s, "linear")) {
        return LLM_OK;
    }

    if (llm_str_is(s, "yarn")) {
        c->scale = LLM_ROPE_SCALE_YARN;
        return LLM_OK;
    }

    /* the file has the factors as tensors */
    if (llm_str_is(s, "longrope")
        && r->d->global_want[LLM_GT_ROPE_LONG] != LLM_WANT_NONE)
    {
        c->scale = LLM_ROPE_SCALE_NONE;
        return LLM_OK;
    }

    return llm_fail(r->err, "%s: %s.rope.scaling.type: the scaling \"%.*s\" "
                    "is not supported (none, linear and yarn are)",
                    llm_gguf_name(r->g), r->d->hp.arch,
                    (int) llm_min(s.len, 32), s.data);
}


float
llm_rope_mscale(float factor, float weight)
{
    return factor <= 1 ? 1 : 0.1f * weight * logf(factor) + 1;
}


/*
 * Keys as llama.cpp's converter writes them: attn_factor multiplies the
 * paper's factor, yarn_attn_factor is transformers' attention_factor and
 * replaces the paper's, yarn_log_multiplier is transformers' mscale_all_dim
 * (a tenth of it in DeepSeek's files, see arch_deepseek.c).
 */

static int
llm_rope_read_yarn(llm_reader_t *r, uint32_t n_ctx_train,
    llm_rope_conf_t *c)
{
    int          rc;
    float        v;
    const char  *orig = "rope.scaling.original_context_length";

    c->n_ctx_orig = n_ctx_train;
    c->ext_factor = 1;
    c->beta_fast = 32;
    c->beta_slow = 1;

    if (llm_read_u32(r, orig, &c->n_ctx_orig) == LLM_ERROR) {
        return LLM_ERROR;
    }

    if (c->n_ctx_orig == 0) {
        return llm_fail(r->err, "%s: %s.%s: 0 is no length",
                        llm_gguf_name(r->g), r->d->hp.arch, orig);
    }

    if (llm_read_f32(r, "rope.scaling.yarn_ext_factor", &c->ext_factor)
        == LLM_ERROR
        || llm_read_f32(r, "rope.scaling.yarn_beta_fast", &c->beta_fast)
           == LLM_ERROR
        || llm_read_f32(r, "rope.scaling.yarn_beta_slow", &c->beta_slow)
           == LLM_ERROR)
    {
        return LLM_ERROR;
    }

    if (c->beta_fast <= 0 || c->beta_slow <= 0) {
        return llm_fail(r->err, "%s: %s.rope.scaling.yarn_beta: not above 0",
                        llm_gguf_name(r->g), r->d->hp.arch);
    }

    /* llama.cpp's -1 means the default */
    if (c->ext_factor < 0) {
        c->ext_factor = 1;
    }

    c->mscale = c->ext_factor > 0 ? llm_rope_mscale(c->factor, 1) : 1;

    if (llm_read_f32(r, "rope.scaling.yarn_log_multiplier", &c->weight)
        == LLM_ERROR)
    {
        return LLM_ERROR;
    }

    if (c->weight > 0) {
        c->mscale = r->d->arch->yarn_scores
                    ? 1 : c->mscale / llm_rope_mscale(c->factor, c->weight);
    }

    rc = llm_read_f32(r, "rope.scaling.yarn_attn_factor", &v);
    if (rc == LLM_ERROR) {
        return LLM_ERROR;
    }

    if (rc == LLM_OK && v > 0) {
        c->mscale = v;
    }

    return LLM_OK;
}


int
llm_read_rope_base(llm_reader_t *r, const char *name, float *base)
{
    if (llm_read_f32(r, name, base) == LLM_ERROR) {
        return LLM_ERROR;
    }

    if (*base <= 1) {
        return llm_fail(r->err, "%s: %s.%s: %g is not above 1",
                        llm_gguf_name(r->g), r->d->hp.arch, name, *base);
    }

    return LLM_OK;
}


int
llm_read_rot(llm_reader_t *r, const char *name, uint32_t max,
    uint32_t *n_rot)
{
    if (llm_read_size(r, name, max, n_rot) != LLM_OK) {
        return LLM_ERROR;
    }

    if (*n_rot % 2) {
        return llm_fail(r->err, "%s: %s.%s: %u is odd", llm_gguf_name(r->g),
                        r->d->hp.arch, name, *n_rot);
    }

    return LLM_OK;
}


int
llm_rope_read(llm_reader_t *r, uint32_t n_ctx_train, llm_rope_conf_t *c)
{
    int    rc;
    float  v;

    memset(c, 0, sizeof(llm_rope_conf_t));
    c->base = 10000;
    c->factor = 1;
    c->mscale = 1;

    if (llm_read_rope_base(r, "rope.freq_base", &c->base) != LLM_OK
        || llm_rope_scale_type(r, c) != LLM_OK)
    {
        return LLM_ERROR;
    }

    rc = llm_read_f32(r, "rope.scaling.factor", &c->factor);

    if (rc == LLM_ABSENT) {
        /* name of the key in files before 2024 */
        rc = llm_read_f32(r, "rope.scale_linear", &c->factor);
    }

    if (rc == LLM_ERROR) {
        return LLM_ERROR;
    }

    /* 0 in files means none */
    if (c->factor == 0) {
        c->factor = 1;
    }

    if (c->factor < 0) {
        return llm_fail(r->err, "%s: %s.rope.scaling.factor: %g is below 0",
                        llm_gguf_name(r->g), r->d->hp.arch, c->factor);
    }

    if (c->scale == LLM_ROPE_SCALE_NONE) {
        c->factor = 1;
    }

    if (c->scale == LLM_ROPE_SCALE_YARN
        && llm_rope_read_yarn(r, n_ctx_train, c) != LLM_OK)
    {
        return LLM_ERROR;
    }

    v = 0;
    rc = llm_read_f32(r, "rope.scaling.attn_factor", &v);

    if (rc == LLM_ERROR) {
        return LLM_ERROR;
    }

    if (rc == LLM_OK && v > 0) {
        c->mscale *= v;
    }

    if (c->mscale > LLM_ROPE_MAX_MSCALE) {
        return llm_fail(r->err, "%s: %s.rope.scaling: the factor on queries "
                        "and keys is %g, more than %d", llm_gguf_name(r->g),
                        r->d->hp.arch, c->mscale, LLM_ROPE_MAX_MSCALE);
    }

    return LLM_OK;
}


/* index, with a fraction, of the pair that rotates n times within the original
   context */

static double
llm_rope_yarn_pair(const llm_rope_conf_t *c, uint32_t n_dims, double n)
{
    return n_dims * log(c->n_ctx_orig / (n * 2 * M_PI))
           / (2 * log(c->base));
}


int
llm_rope_inv_freq(const llm_rope_conf_t *c, uint32_t n_dims,
    const float *factors, float *inv_freq)
{
    double    low, high, ramp, freq;
    uint32_t  i;

    low = 0;
    high = 0;

    if (c->scale == LLM_ROPE_SCALE_YARN) {
        low = llm_rope_yarn_pair(c, n_dims, c->beta_fast);
        high = llm_rope_yarn_pair(c, n_dims, c->beta_slow);

        if (!c->unrounded) {
            low = floor(low);
            high = ceil(high);
        }

        low = llm_max(low, 0);
        high = llm_min(high, (double) n_dims - 1);
    }

    for (i = 0; i < n_dims / 2; i++) {
        freq = pow(c->base, -2.0 * i / n_dims);

        if (factors) {
            freq /= factors[i];
        }

        if (c->scale == LLM_ROPE_SCALE_YARN) {
            /* 1: the frequency as trained; 0: divided by the factor */
            ramp = (i - low) / llm_max(high - low, 0.001);
            ramp = 1 - llm_min(llm_max(ramp, 0), 1);
            ramp *= c->ext_factor;
            freq = freq / c->factor * (1 - ramp) + freq * ramp;

        } else {
            freq /= c->factor;
        }

        inv_freq[i] = (float) freq;

        if (!isfinite(inv_freq[i])) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


const llm_tensor_want_t  llm_long_rope[] = {
    { LLM_GT_ROPE_LONG, LLM_WANT_OPTIONAL },
    { LLM_GT_ROPE_SHORT, LLM_WANT_OPTIONAL },
    { LLM_GT_N, LLM_WANT_NONE }
};


/* a file with one kind of factors must have both */

int
llm_read_long_rope(llm_reader_t *r)
{
    llm_desc_t  *d;

    d = r->d;
    d->long_ctx = d->hp.n_ctx_train;

    if (llm_read_u32(r, "rope.scaling.original_context_length", &d->long_ctx)
        == LLM_ERROR)
    {
        return LLM_ERROR;
    }

    if (llm_gguf_find_tensor(r->g, "rope_factors_long.weight")
        || llm_gguf_find_tensor(r->g, "rope_factors_short.weight"))
    {
        d->global_want[LLM_GT_ROPE_LONG] = LLM_WANT_REQUIRED;
        d->global_want[LLM_GT_ROPE_SHORT] = LLM_WANT_REQUIRED;
    }

    return LLM_OK;
}


int
llm_read_sections(llm_reader_t *r, uint32_t mixed, int *has)
{
    int               rc;
    uint32_t          i, sum;
    llm_rope_desc_t  *rope = &r->d->ropes[0];

    static const char  name[] = "rope.dimension_sections";

    for (i = 0, sum = 0; i < LLM_TURNS; i++) {
        rc = llm_read_layer(r, name, i, &rope->sections[i]);

        if (rc == LLM_ERROR) {
            return LLM_ERROR;
        }

        *has = (rc == LLM_OK);
        sum += *has ? llm_min(rope->sections[i], LLM_MAX_HEAD_DIM) : 0;
    }

    *has = *has && rope->sections[1];

    if (!*has) {
        memset(rope->sections, 0, sizeof(rope->sections));
        return LLM_OK;
    }

    if (sum != rope->n_rot / 2) {
        return llm_fail(r->err, "%s: %s.%s: %u pairs, where a head has %u",
                        llm_gguf_name(r->g), r->d->hp.arch, name, sum,
                        rope->n_rot / 2);
    }

    rope->mixed = mixed;
    r->d->hp.turns = 1;

    return LLM_OK;
}
