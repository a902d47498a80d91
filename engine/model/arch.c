/*
 * The architectures, which are the rows of archs.def, and the sizes that a
 * file's metadata names; see arch.h.
 *
 * Names of the fields: github.com/ggml-org/ggml, docs/gguf.md.
 */

#include "engine/model/blocks.h"

#include <math.h>
#include <stdio.h>


#define LLM_MAX_LAYERS    4096
#define LLM_MAX_HEAD_DIM  1024
#define LLM_MAX_CTX       (1u << 28)


static const llm_arch_t  llm_archs[] = {
#define LLM_BLOCK(NAME)  &llm_block_##NAME,
#define LLM_ARCH(name, rope, glu, tensors, blocks)                           \
    { #name, LLM_ROPE_##rope, LLM_GLU_##glu, tensors, { blocks NULL } },
#include "engine/model/archs.def"
#undef LLM_BLOCK
};


/*
 * Fields that would change the result and that no architecture here applies:
 * a file may have them only with a value that changes nothing.
 */
static const struct {
    const char  *name;                  /* behind "ARCH." */
    float        neutral;               /* 0 is neutral, too */
    const char  *what;
} llm_refused[] = {
    { "expert_count", 0, "mixtures of experts are not supported" },
    { "logit_scale", 1, "scaled logits are not supported" },
    { "residual_scale", 1, "scaled residuals are not supported" },
    { "embedding_scale", 1, "scaled embeddings are not supported" },
    { "attn_logit_softcapping", 0, "soft-capping is not supported" },
    { "final_logit_softcapping", 0, "soft-capping is not supported" },
    { "attention.max_alibi_bias", 0, "ALiBi is not supported" },
    { "attention.clamp_kqv", 0, "clamped K, Q and V are not supported" },
    { "nextn_predict_layers", 0, "prediction layers are not supported" }
};


/* refuses a model that is split into several files */

static int
llm_desc_whole(const llm_gguf_t *g, llm_err_t *err)
{
    uint32_t  parts;

    parts = 1;

    if (llm_gguf_get_u32(g, "split.count", &parts, err) == LLM_ERROR) {
        return LLM_ERROR;
    }

    if (parts > 1) {
        return llm_fail(err, "%s: split.count: one of %u parts of a model; "
                        "merge them into one file", llm_gguf_name(g), parts);
    }

    return LLM_OK;
}


/* "llama, qwen2 and qwen3" */

static void
llm_arch_names(char *buf, size_t size)
{
    int     n;
    size_t  i, len;

    len = 0;

    for (i = 0; i < llm_nelems(llm_archs) && len < size; i++) {
        n = snprintf(buf + len, size - len, "%s%s",
                     i == 0 ? "" : i + 1 < llm_nelems(llm_archs) ? ", "
                                                                 : " and ",
                     llm_archs[i].name);
        len += (size_t) llm_max(n, 0);
    }
}


static int
llm_desc_arch(const llm_gguf_t *g, llm_desc_t *d, llm_err_t *err)
{
    int        rc;
    char       names[256];
    size_t     i;
    llm_str_t  s;

    rc = llm_gguf_get_str(g, "general.architecture", &s, err);

    if (rc != LLM_OK) {
        return rc == LLM_ERROR ? rc
               : llm_fail(err, "%s: general.architecture: it is missing",
                          llm_gguf_name(g));
    }

    for (i = 0; i < llm_nelems(llm_archs); i++) {
        if (llm_arch_is(s, llm_archs[i].name)) {
            d->arch = &llm_archs[i];
            break;
        }
    }

    if (d->arch == NULL) {
        llm_arch_names(names, sizeof(names));

        return llm_fail(err, "%s: general.architecture: \"%.*s\" is not "
                        "supported (%s are)", llm_gguf_name(g),
                        (int) llm_min(s.len, 40), s.data, names);
    }

    snprintf(d->hp.arch, sizeof(d->hp.arch), "%s", d->arch->name);

    return LLM_OK;
}


/* the model's name: general.name, or else the name of the file */

static void
llm_desc_name(const llm_gguf_t *g, llm_hparams_t *hp)
{
    llm_str_t    s;
    const char  *p;

    if (llm_gguf_get_str(g, "general.name", &s, NULL) == LLM_OK && s.len) {
        snprintf(hp->name, sizeof(hp->name), "%.*s",
                 (int) llm_min(s.len, sizeof(hp->name) - 1), s.data);
        return;
    }

    p = strrchr(llm_gguf_name(g), '/');
    snprintf(hp->name, sizeof(hp->name), "%s", p ? p + 1 : llm_gguf_name(g));
}


static int
llm_desc_no_field(const llm_gguf_t *g, const char *key, llm_err_t *err)
{
    return llm_fail(err, "%s: %s: it is missing", llm_gguf_name(g), key);
}


/* if the key is absent *v keeps its default; a default of 0: the key is
   required */

static int
llm_desc_size(const llm_gguf_t *g, const llm_desc_t *d, const char *name,
    uint32_t max, uint32_t *v, llm_err_t *err)
{
    int             rc;
    llm_gguf_key_t  key;

    llm_gguf_key(&key, d->arch->name, name);

    rc = llm_gguf_get_u32(g, key.text, v, err);

    if (rc == LLM_ERROR) {
        return LLM_ERROR;
    }

    if (rc == LLM_ABSENT && *v == 0) {
        return llm_desc_no_field(g, key.text, err);
    }

    if (*v == 0 || *v > max) {
        return llm_fail(err, "%s: %s: %u is not within 1 and %u",
                        llm_gguf_name(g), key.text, *v, max);
    }

    return LLM_OK;
}


static int
llm_desc_heads(const llm_gguf_t *g, llm_desc_t *d, llm_err_t *err)
{
    llm_hparams_t  *hp;

    hp = &d->hp;

    if (llm_desc_size(g, d, "attention.head_count", LLM_MAX_WIDTH,
                      &hp->n_heads, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    hp->n_kv_heads = hp->n_heads;
    hp->head_dim_k = hp->n_embd / hp->n_heads;
    hp->head_dim_v = hp->n_embd / hp->n_heads;

    if (llm_desc_size(g, d, "attention.head_count_kv", hp->n_heads,
                      &hp->n_kv_heads, err) != LLM_OK
        || llm_desc_size(g, d, "attention.key_length", LLM_MAX_HEAD_DIM,
                         &hp->head_dim_k, err) != LLM_OK
        || llm_desc_size(g, d, "attention.value_length", LLM_MAX_HEAD_DIM,
                         &hp->head_dim_v, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (hp->n_heads % hp->n_kv_heads) {
        return llm_fail(err, "%s: %s.attention.head_count_kv: %u does not "
                        "divide the %u heads", llm_gguf_name(g), hp->arch,
                        hp->n_kv_heads, hp->n_heads);
    }

    if (hp->n_heads > LLM_MAX_WIDTH / hp->head_dim_k
        || hp->n_heads > LLM_MAX_WIDTH / hp->head_dim_v)
    {
        return llm_fail(err, "%s: %s.attention.head_count: %u heads are too "
                        "many", llm_gguf_name(g), hp->arch, hp->n_heads);
    }

    hp->n_rot = hp->head_dim_k;

    if (llm_desc_size(g, d, "rope.dimension_count", hp->head_dim_k,
                      &hp->n_rot, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (hp->n_rot % 2) {
        return llm_fail(err, "%s: %s.rope.dimension_count: %u is odd",
                        llm_gguf_name(g), hp->arch, hp->n_rot);
    }

    return LLM_OK;
}


static int
llm_desc_floats(const llm_gguf_t *g, llm_desc_t *d, llm_err_t *err)
{
    int             rc;
    llm_gguf_key_t  key;

    llm_gguf_key(&key, d->hp.arch, "attention.layer_norm_rms_epsilon");
    rc = llm_gguf_get_f32(g, key.text, &d->hp.norm_eps, err);

    if (rc != LLM_OK) {
        return rc == LLM_ERROR ? rc : llm_desc_no_field(g, key.text, err);
    }

    if (!(d->hp.norm_eps >= 0 && d->hp.norm_eps < 1)) {
        return llm_fail(err, "%s: %s: %g is not within 0 and 1",
                        llm_gguf_name(g), key.text, d->hp.norm_eps);
    }

    llm_gguf_key(&key, d->hp.arch, "attention.scale");
    rc = llm_gguf_get_f32(g, key.text, &d->attn_scale, err);

    if (rc == LLM_ERROR) {
        return LLM_ERROR;
    }

    if (!isfinite(d->attn_scale)) {
        return llm_fail(err, "%s: %s: not a finite number", llm_gguf_name(g),
                        key.text);
    }

    if (d->attn_scale == 0) {
        d->attn_scale = (float) (1 / sqrt(d->hp.head_dim_k));
    }

    return LLM_OK;
}


static int
llm_desc_refuse(const llm_gguf_t *g, const llm_desc_t *d, llm_err_t *err)
{
    int             causal;
    size_t          i;
    float           v;
    llm_gguf_key_t  key;

    for (i = 0; i < llm_nelems(llm_refused); i++) {
        llm_gguf_key(&key, d->hp.arch, llm_refused[i].name);
        v = 0;

        if (llm_gguf_get_f32(g, key.text, &v, err) == LLM_ERROR) {
            return LLM_ERROR;
        }

        if (v != 0 && v != llm_refused[i].neutral) {
            return llm_fail(err, "%s: %s: %g: %s", llm_gguf_name(g),
                            key.text, v, llm_refused[i].what);
        }
    }

    causal = 1;
    llm_gguf_key(&key, d->hp.arch, "attention.causal");

    if (llm_gguf_get_bool(g, key.text, &causal, err) == LLM_ERROR) {
        return LLM_ERROR;
    }

    if (!causal) {
        return llm_fail(err, "%s: %s: false: only causal attention is "
                        "supported", llm_gguf_name(g), key.text);
    }

    return LLM_OK;
}


static int
llm_desc_pooling(const llm_gguf_t *g, llm_desc_t *d, llm_err_t *err)
{
    uint32_t        v;
    llm_gguf_key_t  key;

    v = LLM_POOLING_UNSAID;
    llm_gguf_key(&key, d->hp.arch, "pooling_type");

    switch (llm_gguf_get_u32(g, key.text, &v, err)) {

    case LLM_ABSENT:
        break;

    case LLM_OK:
        if (v <= LLM_POOLING_RANK) {
            break;
        }

        return llm_fail(err, "%s: %s: %u is not supported (0 to %u are)",
                        llm_gguf_name(g), key.text, v, LLM_POOLING_RANK);

    default:
        return LLM_ERROR;
    }

    d->hp.pooling = v;

    return LLM_OK;
}


static int
llm_desc_sizes(const llm_gguf_t *g, llm_desc_t *d, llm_err_t *err)
{
    llm_hparams_t  *hp;
    llm_gguf_key_t  key;

    hp = &d->hp;

    if (llm_desc_size(g, d, "block_count", LLM_MAX_LAYERS, &hp->n_layers,
                      err) != LLM_OK
        || llm_desc_size(g, d, "context_length", LLM_MAX_CTX,
                         &hp->n_ctx_train, err) != LLM_OK
        || llm_desc_size(g, d, "embedding_length", LLM_MAX_WIDTH,
                         &hp->n_embd, err) != LLM_OK
        || llm_desc_size(g, d, "feed_forward_length", LLM_MAX_WIDTH,
                         &hp->n_ff, err) != LLM_OK
        || llm_desc_heads(g, d, err) != LLM_OK
        || llm_desc_floats(g, d, err) != LLM_OK
        || llm_desc_refuse(g, d, err) != LLM_OK
        || llm_desc_pooling(g, d, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    llm_gguf_key(&key, hp->arch, "attention.sliding_window");

    if (llm_gguf_get_u32(g, key.text, &hp->n_window, err) == LLM_ERROR) {
        return LLM_ERROR;
    }

    return llm_rope_read(g, hp->arch, hp->n_ctx_train, &d->rope, err);
}


int
llm_desc_read(const llm_gguf_t *g, llm_desc_t *d, llm_err_t *err)
{
    memset(d, 0, sizeof(llm_desc_t));

    if (llm_desc_whole(g, err) != LLM_OK
        || llm_desc_arch(g, d, err) != LLM_OK
        || llm_desc_sizes(g, d, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    llm_desc_name(g, &d->hp);

    if (llm_desc_tensors(g, d, err) != LLM_OK) {
        llm_desc_free(d);
        return LLM_ERROR;
    }

    return LLM_OK;
}


void
llm_desc_free(llm_desc_t *d)
{
    free(d->layers);
    d->layers = NULL;
}
