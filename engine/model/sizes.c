/*
 * Reads the fields that all architectures have in common: the sizes of the
 * model and of each layer, norms, RoPE, windows, pooling; see arch.h.
 *
 * A layer's size may be an array in the file, with an item for each layer.
 */

#include "engine/model/blocks.h"
#include "engine/model/reader.h"

#include <math.h>


/* layers for multi-token prediction come after the others and are not run; the
   description of such a head has all layers until they are read */

static int
llm_sizes_layers(llm_reader_t *r)
{
    llm_desc_t  *d;

    d = r->d;

    if (llm_read_size(r, "block_count", LLM_MAX_LAYERS, &d->hp.n_layers)
        != LLM_OK
        || llm_read_u32(r, "nextn_predict_layers", &d->n_skipped)
           == LLM_ERROR)
    {
        return LLM_ERROR;
    }

    d->n_skipped = d->arch->head ? 0 : d->n_skipped;

    if (d->n_skipped >= d->hp.n_layers) {
        return llm_fail(r->err, "%s: %s.nextn_predict_layers: %u of %u "
                        "layers: none is left to run", llm_gguf_name(r->g),
                        d->hp.arch, d->n_skipped, d->hp.n_layers);
    }

    if (d->head.kind == LLM_HEAD_MTP && d->n_skipped == 0) {
        return llm_fail(r->err, "%s: it has no layers for multi-token "
                        "prediction (%s.nextn_predict_layers)",
                        llm_gguf_name(r->g), d->hp.arch);
    }

    if (d->head.kind == LLM_HEAD_MTP) {
        d->head.block = d->hp.n_layers - d->n_skipped;

    } else {
        d->hp.n_layers -= d->n_skipped;
    }

    d->layers = calloc(d->hp.n_layers, sizeof(llm_layer_desc_t));
    d->kv = calloc(d->hp.n_layers, sizeof(llm_kv_layer_t));
    d->states = calloc(d->hp.n_layers, sizeof(llm_state_layer_t));

    if (d->layers == NULL || d->kv == NULL || d->states == NULL) {
        return llm_fail(r->err, "%s: no memory for %u layers",
                        llm_gguf_name(r->g), d->hp.n_layers);
    }

    return LLM_OK;
}


/* a layer's size, which may be an item of an array; if the default in *v is 0
   the field must exist, unless it is `optional` */

static int
llm_sizes_layer(llm_reader_t *r, const char *name, uint32_t layer,
    uint32_t max, int optional, uint32_t *v)
{
    int  rc;

    rc = llm_read_layer(r, name, layer, v);

    if (rc == LLM_ERROR) {
        return LLM_ERROR;
    }

    if (*v == 0 && optional) {
        return LLM_OK;
    }

    if (rc == LLM_ABSENT && *v == 0) {
        return llm_read_missing(r, name);
    }

    return llm_read_within(r, name, *v, 1, max);
}


/* sizes of attention; all are 0 in a layer without it */

static int
llm_sizes_heads(llm_reader_t *r, uint32_t layer)
{
    int                some, recurrent;
    llm_desc_t        *d;
    llm_layer_desc_t  *l;

    d = r->d;
    l = &d->layers[layer];
    some = d->arch->recurrent != NULL;

    if (llm_sizes_layer(r, "attention.head_count", layer, d->hp.n_embd, some,
                        &l->n_heads) != LLM_OK)
    {
        return LLM_ERROR;
    }

    l->n_kv_heads = l->n_heads;

    if (llm_sizes_layer(r, "attention.head_count_kv", layer, l->n_heads, some,
                        &l->n_kv_heads) != LLM_OK
        || llm_read_recurrent(r, layer, &recurrent) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (recurrent) {
        l->n_heads = 0;
        l->n_kv_heads = 0;
        llm_read_ignore(r, "attention.key_length");
        llm_read_ignore(r, "attention.value_length");

        return LLM_OK;
    }

    l->head_dim_k = d->hp.n_embd / l->n_heads;
    l->head_dim_v = l->head_dim_k;

    if (llm_read_size(r, "attention.key_length", LLM_MAX_HEAD_DIM,
                      &l->head_dim_k) != LLM_OK
        || llm_read_size(r, "attention.value_length", LLM_MAX_HEAD_DIM,
                         &l->head_dim_v) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (l->n_heads % l->n_kv_heads) {
        return llm_fail(r->err, "%s: %s.attention.head_count_kv: %u does not "
                        "divide the %u heads", llm_gguf_name(r->g),
                        d->hp.arch, l->n_kv_heads, l->n_heads);
    }

    if (l->n_heads > LLM_MAX_WIDTH / l->head_dim_k
        || l->n_heads > LLM_MAX_WIDTH / l->head_dim_v)
    {
        return llm_fail(r->err, "%s: %s.attention.head_count: %u heads are "
                        "too many", llm_gguf_name(r->g), d->hp.arch,
                        l->n_heads);
    }

    return LLM_OK;
}


/* the chain of a layer, if the architecture has no list of blocks */

static void
llm_sizes_chain(const llm_arch_t *arch, llm_layer_desc_t *l)
{
    uint32_t            n;
    const llm_block_t  *blocks[2];

    n = 0;
    blocks[n] = arch->attention ? arch->attention : &llm_block_attention;
    blocks[n] = l->n_kv_heads ? blocks[n] : arch->recurrent;
    n++;

    if (l->route.n_experts) {
        blocks[n++] = &llm_block_mixture;
        l->n_ff = 0;

    } else if (l->n_ff) {
        blocks[n++] = &llm_block_ffn;
    }

    llm_desc_chain(l, blocks, n);
}


/* sizes of the feed-forward network, or of the mixture that replaces it; a file
   whose layers all have mixtures may lack the network's width */

static int
llm_sizes_feed(llm_reader_t *r, uint32_t layer)
{
    static const char  name[] = "feed_forward_length";

    llm_layer_desc_t  *l;

    l = &r->d->layers[layer];

    if (llm_sizes_layer(r, name, layer, LLM_MAX_WIDTH,
                        r->d->arch->recurrent || r->d->arch->experts,
                        &l->n_ff) != LLM_OK
        || llm_read_experts(r, layer) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (l->n_ff == 0 && r->d->arch->recurrent == NULL
        && (l->route.n_experts == 0 || r->d->arch->blocks[0]))
    {
        return llm_sizes_layer(r, name, layer, LLM_MAX_WIDTH, 0, &l->n_ff);
    }

    return LLM_OK;
}


static int
llm_sizes_layer_all(llm_reader_t *r, uint32_t layer)
{
    llm_layer_desc_t  *l;
    const llm_arch_t  *arch;

    arch = r->d->arch;
    l = &r->d->layers[layer];

    if (llm_sizes_heads(r, layer) != LLM_OK
        || llm_sizes_feed(r, layer) != LLM_OK)
    {
        return LLM_ERROR;
    }

    l->kv_layer = layer;
    l->act.kind = arch->act;
    l->residual_scale = 1;

    if (llm_read_f32(r, "attention.scale", &l->scale) == LLM_ERROR) {
        return LLM_ERROR;
    }

    if (l->scale == 0 && l->head_dim_k) {
        l->scale = (float) (1 / sqrt(l->head_dim_k));
    }

    if (arch->blocks[0]) {
        llm_desc_chain(l, arch->blocks, LLM_MAX_BLOCKS);

    } else {
        llm_sizes_chain(arch, l);
    }

    if (l->n_kv_heads) {
        llm_layer_want(l, arch->tensors);
    }

    if (l->n_ff_shared) {
        l->want[LLM_LT_GATE_SHARED] = LLM_WANT_REQUIRED;
        l->want[LLM_LT_UP_SHARED] = LLM_WANT_REQUIRED;
        l->want[LLM_LT_DOWN_SHARED] = LLM_WANT_REQUIRED;

    } else {
        l->want[LLM_LT_SWITCH] = LLM_WANT_NONE;
    }

    return LLM_OK;
}


/*
 * A model has one epsilon, which converters write under the key of its kind of
 * norm, of the other kind, or of both.
 */

static int
llm_sizes_norm(llm_reader_t *r)
{
    int          i, rc;
    float       *eps;
    const char  *names[2];

    i = r->d->arch->norm != LLM_NORM_RMS;
    names[i] = "attention.layer_norm_rms_epsilon";
    names[!i] = "attention.layer_norm_epsilon";

    eps = &r->d->hp.norm_eps;
    *eps = -1;
    rc = LLM_ABSENT;

    for (i = 0; i < 2 && rc == LLM_ABSENT; i++) {
        rc = llm_read_f32(r, names[i], eps);
    }

    if (rc != LLM_OK) {
        return rc == LLM_ERROR ? rc : llm_read_missing(r, names[0]);
    }

    llm_read_ignore(r, names[1]);

    if (!(*eps >= 0 && *eps < 1)) {
        return llm_fail(r->err, "%s: %s.%s: %g is not within 0 and 1",
                        llm_gguf_name(r->g), r->d->hp.arch, names[i - 1],
                        *eps);
    }

    return LLM_OK;
}


/* one rope for all layers, for the heads of the first layer that has attention.
   If the model has no attention or no RoPE, n_ropes stays 0 and the file's
   rope.* are ignored */

static int
llm_sizes_rope(llm_reader_t *r)
{
    int               used;
    uint32_t          i, dim;
    llm_desc_t       *d;
    llm_rope_desc_t  *rope;

    d = r->d;
    dim = 0;
    used = d->arch->rope_use != LLM_ROPE_UNUSED;

    if (d->arch->rope_use == LLM_ROPE_FINETUNED
        && llm_read_bool(r, "rope.scaling.finetuned", &used) == LLM_ERROR)
    {
        return LLM_ERROR;
    }

    for (i = 0; i < d->hp.n_layers && dim == 0; i++) {
        dim = d->layers[i].head_dim_k;
    }

    if (dim == 0 || !used) {
        llm_read_ignore_all(r, "rope.");
        return LLM_OK;
    }

    rope = &d->ropes[0];
    rope->n_rot = dim;
    d->n_ropes = 1;

    if (llm_read_rot(r, "rope.dimension_count", dim, &rope->n_rot) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_rope_read(r, d->hp.n_ctx_train, &rope->conf);
}


/* which pooled state a ranking head reads */

static int
llm_sizes_rank_from(llm_reader_t *r)
{
    uint32_t  v;

    v = r->d->hp.encoder ? LLM_POOLING_CLS : LLM_POOLING_LAST;

    if (llm_read_u32(r, "classifier.pooling_type", &v) == LLM_ERROR) {
        return LLM_ERROR;
    }

    if (v != LLM_POOLING_MEAN && v != LLM_POOLING_CLS
        && v != LLM_POOLING_LAST)
    {
        return llm_fail(r->err, "%s: %s.classifier.pooling_type: %u is not "
                        "supported (%u to %u are)", llm_gguf_name(r->g),
                        r->d->hp.arch, v, LLM_POOLING_MEAN,
                        LLM_POOLING_LAST);
    }

    r->d->hp.rank_from = v;

    return LLM_OK;
}


static int
llm_sizes_pooling(llm_reader_t *r)
{
    int       rc, causal;
    uint32_t  v;

    v = LLM_POOLING_UNSAID;
    causal = !r->d->arch->encoder;
    rc = llm_read_u32(r, "pooling_type", &v);

    if (rc == LLM_ERROR
        || llm_read_bool(r, "attention.causal", &causal) == LLM_ERROR)
    {
        return LLM_ERROR;
    }

    if (rc == LLM_OK && v > LLM_POOLING_RANK) {
        return llm_fail(r->err, "%s: %s.pooling_type: %u is not supported "
                        "(0 to %u are)", llm_gguf_name(r->g), r->d->hp.arch,
                        v, LLM_POOLING_RANK);
    }

    if (causal && r->d->arch->encoder) {
        return llm_fail(r->err, "%s: %s.attention.causal: true: the "
                        "architecture is an encoder", llm_gguf_name(r->g),
                        r->d->hp.arch);
    }

    r->d->hp.encoder = !causal;
    r->d->hp.pooling = rc == LLM_ABSENT && !causal ? LLM_POOLING_MEAN : v;

    return llm_sizes_rank_from(r);
}


static void
llm_sizes_globals(llm_desc_t *d)
{
    const llm_tensor_want_t  *w;

    d->global_want[LLM_GT_TOKEN_EMBD] = LLM_WANT_REQUIRED;
    d->global_want[LLM_GT_OUTPUT_NORM] = LLM_WANT_REQUIRED;
    d->global_want[LLM_GT_OUTPUT] = LLM_WANT_OPTIONAL;
    d->global_want[LLM_GT_ROPE_FREQS] = LLM_WANT_OPTIONAL;
    d->global_want[LLM_GT_RANK] = LLM_WANT_OPTIONAL;

    for (w = d->arch->globals; w && w->id != LLM_GT_N; w++) {
        d->global_want[w->id] = w->want;
    }
}


int
llm_desc_sizes(llm_reader_t *r)
{
    uint32_t     i;
    llm_desc_t  *d;

    d = r->d;
    d->embd_scale = 1;
    d->logit_scale = 1;
    d->long_ctx = UINT32_MAX;
    d->rope_kind = d->arch->rope;
    llm_sizes_globals(d);

    if (llm_sizes_layers(r) != LLM_OK
        || llm_read_size(r, "context_length", LLM_MAX_CTX,
                         &d->hp.n_ctx_train) != LLM_OK
        || llm_read_u32(r, "rope.scaling.original_context_length",
                        &d->hp.n_ctx_orig) == LLM_ERROR
        || llm_read_size(r, "embedding_length", LLM_MAX_WIDTH,
                         &d->hp.n_embd) != LLM_OK)
    {
        return LLM_ERROR;
    }

    d->hp.n_ctx_orig = llm_max(d->hp.n_ctx_orig, d->hp.n_ctx_train);

    for (i = 0; i < d->hp.n_layers; i++) {
        if (llm_sizes_layer_all(r, i) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    if (llm_sizes_norm(r) != LLM_OK
        || llm_sizes_pooling(r) != LLM_OK
        || llm_sizes_rope(r) != LLM_OK
        || llm_read_windows(r, 0, 0) == LLM_ERROR)
    {
        return LLM_ERROR;
    }

    return LLM_OK;
}
