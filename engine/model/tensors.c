/*
 * Checks a file's tensors against the description: all needed tensors exist,
 * with the right shapes, and there is none that the forward pass would not
 * use.  A fused tensor of a file is split into several of the description.
 *
 * Names of the tensors: github.com/ggml-org/ggml, docs/gguf.md.
 */

#include "engine/model/arch.h"

#include <stdio.h>

#define LLM_MAX_TENSOR_NAME  128


static const llm_tensor_fact_t  llm_globals[LLM_GT_N] = {
#define LLM_GLOBAL(ID, name, in, out)                                        \
    { name, LLM_DIM_##in, LLM_DIM_##out, LLM_DIM_NONE },
#include "engine/model/tensors.def"
};


/* fused tensors: the rows of the parts follow each other, in a tensor of
   experts within each expert.  Parts that files never have separately are
   called like the fused tensor */
static const struct {
    const char  *name;
    int          own;                   /* a tensor of this name is always the
                                           fused one; else its shape decides */
    uint32_t     n;
    uint32_t     parts[3];
} llm_fused[] = {
    { "attn_qkv.weight", 1, 3, { LLM_LT_Q, LLM_LT_K, LLM_LT_V } },
    { "attn_qkv.bias", 1, 3,
      { LLM_LT_Q_BIAS, LLM_LT_K_BIAS, LLM_LT_V_BIAS } },
    { "ffn_up.weight", 0, 2, { LLM_LT_GATE, LLM_LT_UP, 0 } },
    { "ffn_gate_up_exps.weight", 1, 2,
      { LLM_LT_GATE_EXPS, LLM_LT_UP_EXPS, 0 } },
    { "attn_kv_a_mqa.weight", 1, 2,
      { LLM_LT_LATENT, LLM_LT_LATENT_ROPE, 0 } },
    { "ssm_in.weight", 1, 3,
      { LLM_LT_SSM_IN_GATE, LLM_LT_SSM_IN_CONV, LLM_LT_SSM_IN_DT } },
    { "shortconv.in_proj.weight", 1, 3,
      { LLM_LT_SHORTCONV_B, LLM_LT_SHORTCONV_C, LLM_LT_SHORTCONV_X } }
};


/* checks a shape; row, rows: 0 for any number; rows: 1 for a vector; stack: 1
   for a single matrix */

int
llm_desc_shape(const llm_gguf_t *g, const llm_gguf_tensor_t *t, uint32_t row,
    uint32_t rows, uint32_t stack, int matrix, llm_err_t *err)
{
    char  want[48];

    if (t->ne[0] > LLM_MAX_WIDTH || t->ne[1] > LLM_MAX_WIDTH) {
        return llm_fail(err, "%s: %.*s: its shape is [%llu, %llu], and "
                        "dimensions above %u are not supported",
                        llm_gguf_name(g), (int) t->name.len, t->name.data,
                        (unsigned long long) t->ne[0],
                        (unsigned long long) t->ne[1], LLM_MAX_WIDTH);
    }

    if ((row && t->ne[0] != row) || (rows && t->ne[1] != rows)
        || t->ne[2] != stack || t->ne[3] != 1)
    {
        if (row == 0) {
            snprintf(want, sizeof(want), "[any, %u]", rows);

        } else if (stack > 1) {
            snprintf(want, sizeof(want), "[%u, %u, %u]", row, rows, stack);

        } else if (rows) {
            snprintf(want, sizeof(want), "[%u, %u]", row, rows);

        } else {
            snprintf(want, sizeof(want), "[%u, any]", row);
        }

        return llm_fail(err, "%s: %.*s: its shape is [%llu, %llu, %llu, "
                        "%llu], not %s", llm_gguf_name(g),
                        (int) t->name.len, t->name.data,
                        (unsigned long long) t->ne[0],
                        (unsigned long long) t->ne[1],
                        (unsigned long long) t->ne[2],
                        (unsigned long long) t->ne[3], want);
    }

    if (!matrix && llm_type_block(t->type) != 1) {
        return llm_fail(err, "%s: %.*s: a vector of type %s is not "
                        "supported (F32, F16 and BF16 are)",
                        llm_gguf_name(g), (int) t->name.len, t->name.data,
                        llm_type_name(t->type));
    }

    return LLM_OK;
}


/* number of matrices in a tensor */

static uint32_t
llm_desc_stack(const llm_desc_t *d, const llm_layer_desc_t *l, uint32_t id)
{
    return llm_desc_dim(d, l, d->facts[id].stack);
}


int
llm_desc_no_tensor(const llm_gguf_t *g, const char *name, llm_err_t *err)
{
    return llm_fail(err, "%s: %s: the tensor is missing", llm_gguf_name(g),
                    name);
}


/* part i of a fused tensor, in the file's order */

static uint32_t
llm_desc_part(const llm_desc_t *d, uint32_t fused, uint32_t i)
{
    const uint32_t  *parts = llm_fused[fused].parts;

    return parts[d->up_first && parts[0] == LLM_LT_GATE ? 1 - i : i];
}


/*
 * Splits a fused tensor into its parts, if the layer wants them and the file
 * does not have the first part separately.
 */

static int
llm_desc_split(const llm_gguf_t *g, const llm_desc_t *d, llm_layer_desc_t *l,
    uint32_t layer, uint32_t fused, llm_err_t *err)
{
    int                       matrix;
    char                      name[64];
    uint32_t                  i, id, first, in, n[3];
    const llm_gguf_tensor_t  *t;

    snprintf(name, sizeof(name), "blk.%u.%s", d->head.block + layer,
             llm_fused[fused].name);
    t = llm_gguf_find_tensor(g, name);

    if (t == NULL || l->want[llm_fused[fused].parts[0]] == LLM_WANT_NONE) {
        return LLM_OK;
    }

    id = llm_fused[fused].parts[0];
    snprintf(name, sizeof(name), "blk.%u.%s", d->head.block + layer,
             d->facts[id].name);

    if (strcmp(d->facts[id].name, llm_fused[fused].name) != 0
        && llm_gguf_find_tensor(g, name))
    {
        return LLM_OK;
    }

    matrix = llm_layer_tensor_is_matrix(d, id);
    in = llm_desc_dim(d, l, d->facts[id].in);
    first = 0;

    for (i = 0; i < llm_fused[fused].n; i++) {
        id = llm_fused[fused].parts[i];
        n[i] = llm_desc_dim(d, l, matrix ? d->facts[id].out
                                         : d->facts[id].in);
        first += n[i];
    }

    if (!llm_fused[fused].own && t->ne[1] != first) {
        return LLM_OK;
    }

    if (llm_desc_shape(g, t, matrix ? in : first, matrix ? first : 1,
                       llm_desc_stack(d, l, id), matrix, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    for (i = 0, first = 0; i < llm_fused[fused].n; i++) {
        id = llm_desc_part(d, fused, i);
        l->tensors[id] = (llm_tensor_part_t) { t, first, n[i], NULL };
        first += n[i];
    }

    return LLM_OK;
}


/* finds "NAME.scale", n numbers, for the tensor "NAME.weight"; or NULL */

static int
llm_desc_scale(const llm_gguf_t *g, const llm_gguf_tensor_t *t, uint32_t n,
    const llm_gguf_tensor_t **scale, llm_err_t *err)
{
    char    name[LLM_MAX_TENSOR_NAME];
    size_t  len;

    len = t->name.len - llm_min(t->name.len, strlen(".weight"));
    snprintf(name, sizeof(name), "%.*s.scale", (int) len, t->name.data);
    *scale = llm_gguf_find_tensor(g, name);

    return *scale ? llm_desc_shape(g, *scale, n, 1, 1, 0, err) : LLM_OK;
}


/* scales of a layer's matrices, in NVFP4 files; ROUTER_SCALE is not one of
   them */

static int
llm_desc_scales(const llm_gguf_t *g, const llm_desc_t *d,
    llm_layer_desc_t *l, llm_err_t *err)
{
    uint32_t            i;
    llm_tensor_part_t  *p;

    for (i = 0; i < LLM_LT_N; i++) {
        p = &l->tensors[i];

        if (p->t && llm_layer_tensor_is_matrix(d, i) && i != LLM_LT_ROUTER
            && llm_desc_scale(g, p->t, llm_desc_stack(d, l, i), &p->scale,
                              err) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    /* weights.c makes two matrices of KV_B, and does not scale them */
    if (l->tensors[LLM_LT_KV_B].scale) {
        return llm_fail(err, "%s: %.*s: this scale is not supported",
                        llm_gguf_name(g),
                        (int) l->tensors[LLM_LT_KV_B].scale->name.len,
                        l->tensors[LLM_LT_KV_B].scale->name.data);
    }

    /* if the layer wants this tensor, it is a factor on the experts' weights
       instead (llm_route_t) */
    if (l->tensors[LLM_LT_DOWN_EXPS_SCALE].t) {
        l->tensors[LLM_LT_DOWN_EXPS].scale = NULL;
    }

    return LLM_OK;
}


static int
llm_desc_layer(const llm_gguf_t *g, llm_desc_t *d, uint32_t layer,
    llm_err_t *err)
{
    char                      name[64];
    uint32_t                  i, in, out;
    llm_layer_desc_t         *l;
    const llm_gguf_tensor_t  *t;

    l = &d->layers[layer];

    for (i = 0; i < llm_nelems(llm_fused); i++) {
        if (llm_desc_split(g, d, l, layer, i, err) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    for (i = 0; i < LLM_LT_N; i++) {
        if (l->want[i] == LLM_WANT_NONE || l->tensors[i].t) {
            continue;
        }

        snprintf(name, sizeof(name), "blk.%u.%s", d->head.block + layer,
                 d->facts[i].name);
        t = llm_gguf_find_tensor(g, name);

        if (t == NULL) {
            if (l->want[i] == LLM_WANT_REQUIRED) {
                return llm_desc_no_tensor(g, name, err);
            }

            continue;
        }

        in = llm_desc_dim(d, l, d->facts[i].in);
        out = llm_desc_dim(d, l, d->facts[i].out);

        if (llm_desc_shape(g, t, in, out, llm_desc_stack(d, l, i),
                           llm_layer_tensor_is_matrix(d, i), err) != LLM_OK)
        {
            return LLM_ERROR;
        }

        l->tensors[i] = (llm_tensor_part_t) {
            t, 0, llm_layer_tensor_is_matrix(d, i) ? out : in * out, NULL
        };
    }

    return llm_desc_scales(g, d, l, err);
}


/* an EAGLE3 head may have fewer tokens than the model, and may lack the
   embeddings, or these and its own output, which are the model's then */

static int
llm_desc_head_vocab(const llm_gguf_t *g, llm_desc_t *d, llm_err_t *err)
{
    const llm_gguf_tensor_t  *embd, *t;

    embd = llm_gguf_find_tensor(g, llm_globals[LLM_GT_TOKEN_EMBD].name);
    t = llm_gguf_find_tensor(g, llm_globals[LLM_GT_OUTPUT].name);
    d->global[LLM_GT_TOKEN_EMBD] = embd;
    d->head.words = llm_gguf_find_tensor(g, LLM_GGUF_WORDS);

    if ((embd && llm_desc_shape(g, embd, d->hp.n_embd, 0, 1, 1, err)
                 != LLM_OK)
        || (t && llm_desc_shape(g, t, d->hp.n_embd, 0, 1, 1, err) != LLM_OK))
    {
        return LLM_ERROR;
    }

    /* 0: as many as the model has */

    d->hp.n_vocab = t ? (uint32_t) t->ne[1] : 0;
    t = d->head.words;

    if (t && (t->ne[0] != d->hp.n_vocab || t->n_dims != 1
              || t->size != t->ne[0] * sizeof(int64_t)))
    {
        return llm_fail(err, "%s: " LLM_GGUF_WORDS ": it must be %u integers "
                        "of 64 bits", llm_gguf_name(g), d->hp.n_vocab);
    }

    return LLM_OK;
}


/* n_vocab is the number of the embedding's rows */

static int
llm_desc_vocab(const llm_gguf_t *g, llm_desc_t *d, llm_err_t *err)
{
    const llm_gguf_kv_t      *tokens;
    const llm_gguf_tensor_t  *t;

    if (d->head.kind == LLM_HEAD_EAGLE3) {
        return llm_desc_head_vocab(g, d, err);
    }

    t = llm_gguf_find_tensor(g, llm_globals[LLM_GT_TOKEN_EMBD].name);

    if (t == NULL) {
        return llm_desc_no_tensor(g, llm_globals[LLM_GT_TOKEN_EMBD].name,
                                  err);
    }

    if (llm_desc_shape(g, t, d->hp.n_embd, 0, 1, 1, err) != LLM_OK) {
        return LLM_ERROR;
    }

    d->hp.n_vocab = (uint32_t) t->ne[1];
    tokens = llm_gguf_find(g, "tokenizer.ggml.tokens");

    if (tokens && tokens->count > d->hp.n_vocab) {
        return llm_fail(err, "%s: tokenizer.ggml.tokens: %llu tokens, and "
                        "token_embd.weight has %u rows", llm_gguf_name(g),
                        (unsigned long long) tokens->count, d->hp.n_vocab);
    }

    return LLM_OK;
}


static int
llm_desc_globals(const llm_gguf_t *g, llm_desc_t *d, llm_err_t *err)
{
    uint32_t                   i;
    const llm_gguf_tensor_t   *t;
    const llm_tensor_fact_t   *f;

    if (llm_desc_vocab(g, d, err) != LLM_OK) {
        return LLM_ERROR;
    }

    for (i = 0; i < LLM_GT_N; i++) {
        f = &llm_globals[i];
        t = d->global_want[i] ? llm_gguf_find_tensor(g, f->name) : NULL;

        if (t == NULL) {
            if (d->global_want[i] == LLM_WANT_REQUIRED) {
                return llm_desc_no_tensor(g, f->name, err);
            }

            continue;
        }

        if (llm_desc_shape(g, t, llm_desc_dim(d, &d->layers[0], f->in),
                           llm_desc_dim(d, &d->layers[0], f->out),
                           1, f->out != LLM_DIM_NONE, err) != LLM_OK)
        {
            return LLM_ERROR;
        }

        d->global[i] = t;
    }

    t = d->global[LLM_GT_OUTPUT];

    return t ? llm_desc_scale(g, t, 1, &d->output_scale, err) : LLM_OK;
}


/* the layer's number in the tensor's name; UINT32_MAX: there is none */

static uint32_t
llm_desc_layer_of(const llm_gguf_tensor_t *t)
{
    char           name[64], *end;
    unsigned long  n;

    if (t->name.len >= sizeof(name) || t->name.len < 5
        || memcmp(t->name.data, "blk.", 4) != 0)
    {
        return UINT32_MAX;
    }

    memcpy(name, t->name.data, t->name.len);
    name[t->name.len] = '\0';
    n = strtoul(name + 4, &end, 10);

    return n < LLM_MAX_LAYERS ? (uint32_t) n : UINT32_MAX;
}


/* whether the tensor has only the range of activations, for programs that round
   these to NVFP4 */

static int
llm_desc_is_hint(const llm_gguf_tensor_t *t)
{
    static const char  suffix[] = ".input_scale";

    return t->name.len > sizeof(suffix) - 1
           && memcmp(t->name.data + t->name.len - (sizeof(suffix) - 1),
                     suffix, sizeof(suffix) - 1) == 0;
}


/* ear_desc.c makes sure that all of these are used */

static int
llm_desc_is_sound(const llm_desc_t *d, const llm_gguf_tensor_t *t)
{
    return d->ear.n_layers && t->name.len > 2
           && memcmp(t->name.data, "a.", 2) == 0;
}


static int
llm_desc_uses(const llm_desc_t *d, const llm_gguf_tensor_t *t)
{
    uint32_t  i, layer;

    for (i = 0; i < LLM_GT_N; i++) {
        if (d->global[i] == t) {
            return 1;
        }
    }

    if (d->output_scale == t || llm_desc_is_hint(t)
        || llm_desc_is_sound(d, t) || d->head.words == t)
    {
        return 1;
    }

    layer = llm_desc_layer_of(t) - d->head.block;

    for (i = 0; layer < d->hp.n_layers && i < LLM_LT_N; i++) {
        if (d->layers[layer].tensors[i].t == t
            || d->layers[layer].tensors[i].scale == t)
        {
            return 1;
        }
    }

    return 0;
}


/* bytes that a step of one token reads of the tensor: one row of an embedding
   table counts as 0, and only the chosen experts are read */

static uint64_t
llm_desc_step_bytes(const llm_desc_t *d, const llm_gguf_tensor_t *t)
{
    uint32_t                 i, layer;
    const llm_layer_desc_t  *l;

    if (t == d->global[LLM_GT_INPUT_EMBD] || t == d->global[LLM_GT_POS_EMBD]
        || (t == d->global[LLM_GT_TOKEN_EMBD] && d->global[LLM_GT_OUTPUT])
        || llm_desc_is_sound(d, t))
    {
        return 0;
    }

    layer = llm_desc_layer_of(t) - d->head.block;

    for (i = 0; layer < d->hp.n_layers && i < LLM_LT_N; i++) {
        l = &d->layers[layer];

        /* read once for a window, not for a token */

        if ((i == LLM_LT_CROSS_K || i == LLM_LT_CROSS_V)
            && l->tensors[i].t == t)
        {
            return 0;
        }

        if (l->tensors[i].t == t
            && d->facts[i].stack == LLM_DIM_N_EXPERTS)
        {
            return t->size / l->route.n_experts * l->route.n_used;
        }
    }

    return t->size;
}


/*
 * Refuses an unknown tensor whose name is like that of a weight: results
 * without it would be wrong.  Of other unknown tensors the first is kept for
 * the log.
 */

static int
llm_desc_extras(const llm_gguf_t *g, llm_desc_t *d, llm_err_t *err)
{
    size_t                    i, k;
    uint32_t                  layer;
    const llm_gguf_tensor_t  *t;

    static const char  *const prefixes[] = {
        "blk.", "output", "token_", "position_", "rope_", "cls",
        "per_layer_"
    };

    for (i = 0; i < llm_gguf_n_tensors(g); i++) {
        t = llm_gguf_tensor(g, i);
        layer = llm_desc_layer_of(t);

        if (layer >= d->hp.n_layers
            && layer - d->hp.n_layers < d->n_skipped)
        {
            continue;
        }

        /* the rest of the file is the model */

        if (d->head.kind == LLM_HEAD_MTP && !llm_desc_uses(d, t)) {
            continue;
        }

        d->hp.n_bytes += t->size;
        d->hp.n_params += t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];

        if (llm_desc_uses(d, t)) {
            d->hp.n_bytes_step += llm_desc_step_bytes(d, t);
            continue;
        }

        for (k = 0; k < llm_nelems(prefixes); k++) {
            if (t->name.len >= strlen(prefixes[k])
                && memcmp(t->name.data, prefixes[k], strlen(prefixes[k]))
                   == 0)
            {
                return llm_fail(err, "%s: %.*s: the architecture %s has no "
                                "such tensor", llm_gguf_name(g),
                                (int) llm_min(t->name.len, 80),
                                t->name.data, d->hp.arch);
            }
        }

        if (d->unused == NULL) {
            d->unused = t;
        }
    }

    return LLM_OK;
}


int
llm_desc_tensors(const llm_gguf_t *g, llm_desc_t *d, llm_err_t *err)
{
    uint32_t  i;

    if (llm_desc_globals(g, d, err) != LLM_OK
        || llm_desc_rank(g, d, err) != LLM_OK
        || llm_desc_dense(g, d, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    for (i = 0; i < d->hp.n_layers; i++) {
        if (llm_desc_layer(g, d, i, err) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return llm_desc_extras(g, d, err);
}
