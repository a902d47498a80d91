/*
 * Checks a file's tensors against the row of its architecture: all that are
 * needed are there with the right shapes, and there is none that the forward
 * pass would not use.
 *
 * Names of the tensors: github.com/ggml-org/ggml, docs/gguf.md.
 */

#include "engine/model/blocks.h"

#include <stdio.h>


/* the dimensions of shapes */
typedef enum {
    LLM_DIM_NONE = 0,                   /* a vector has no second dimension */
    LLM_DIM_EMBD,
    LLM_DIM_FF,
    LLM_DIM_Q,                          /* all heads of Q */
    LLM_DIM_K,
    LLM_DIM_V,
    LLM_DIM_HEADS,                      /* all heads of attention's result */
    LLM_DIM_HEAD_K                      /* one head */
} llm_dim_t;

static const struct {
    const char  *name;                  /* behind "blk.N." */
    llm_dim_t    in;
    llm_dim_t    out;
} llm_layer_facts[LLM_LT_N] = {
#define LLM_TENSOR(ID, name, in, out)  { name, LLM_DIM_##in, LLM_DIM_##out },
#include "engine/model/tensors.def"
};


static const char  *const llm_global_names[LLM_GT_N] = {
    [LLM_GT_TOKEN_EMBD]  = "token_embd.weight",
    [LLM_GT_OUTPUT_NORM] = "output_norm.weight",
    [LLM_GT_OUTPUT]      = "output.weight",
    [LLM_GT_ROPE_FREQS]  = "rope_freqs.weight",
    [LLM_GT_RANK]        = "cls.output.weight"
};


int
llm_layer_tensor_is_matrix(llm_layer_tensor_t t)
{
    return llm_layer_facts[t].out != LLM_DIM_NONE;
}


static uint32_t
llm_desc_dim(const llm_hparams_t *hp, llm_dim_t dim)
{
    switch (dim) {

    case LLM_DIM_EMBD:
        return hp->n_embd;

    case LLM_DIM_FF:
        return hp->n_ff;

    case LLM_DIM_Q:
        return hp->n_heads * hp->head_dim_k;

    case LLM_DIM_K:
        return hp->n_kv_heads * hp->head_dim_k;

    case LLM_DIM_V:
        return hp->n_kv_heads * hp->head_dim_v;

    case LLM_DIM_HEADS:
        return hp->n_heads * hp->head_dim_v;

    case LLM_DIM_HEAD_K:
        return hp->head_dim_k;

    case LLM_DIM_NONE:
        break;
    }

    return 1;
}


/* checks a shape; rows is 1 for a vector, 0 for any number */

static int
llm_desc_shape(const llm_gguf_t *g, const llm_gguf_tensor_t *t, uint32_t row,
    uint32_t rows, int matrix, llm_err_t *err)
{
    char  want[32];

    if (t->ne[0] != row || (rows && t->ne[1] != rows) || t->ne[2] != 1
        || t->ne[3] != 1)
    {
        if (rows) {
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


static int
llm_desc_no_tensor(const llm_gguf_t *g, const char *name, llm_err_t *err)
{
    return llm_fail(err, "%s: %s: the tensor is missing", llm_gguf_name(g),
                    name);
}


/* the tensors that a layer must have, and those that it may have */

static uint32_t
llm_arch_required(const llm_arch_t *a)
{
    uint32_t  i, bits;

    bits = a->tensors;

    for (i = 0; a->blocks[i]; i++) {
        bits |= a->blocks[i]->required;
    }

    return bits;
}


static uint32_t
llm_arch_optional(const llm_arch_t *a)
{
    uint32_t  i, bits;

    bits = 0;

    for (i = 0; a->blocks[i]; i++) {
        bits |= a->blocks[i]->optional;
    }

    return bits;
}


static int
llm_desc_layer(const llm_gguf_t *g, llm_desc_t *d, uint32_t layer,
    llm_err_t *err)
{
    char                      name[64];
    uint32_t                  i, required, optional;
    const llm_gguf_tensor_t  *t;

    required = llm_arch_required(d->arch);
    optional = llm_arch_optional(d->arch);

    for (i = 0; i < LLM_LT_N; i++) {
        if (!((required | optional) & llm_arch_bit(i))) {
            continue;
        }

        snprintf(name, sizeof(name), "blk.%u.%s", layer,
                 llm_layer_facts[i].name);
        t = llm_gguf_find_tensor(g, name);

        if (t == NULL) {
            if (required & llm_arch_bit(i)) {
                return llm_desc_no_tensor(g, name, err);
            }

            continue;
        }

        if (llm_desc_shape(g, t, llm_desc_dim(&d->hp, llm_layer_facts[i].in),
                           llm_desc_dim(&d->hp, llm_layer_facts[i].out),
                           llm_layer_tensor_is_matrix(i), err)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        d->layers[(size_t) layer * LLM_LT_N + i] = t;
    }

    return LLM_OK;
}


static int
llm_desc_globals(const llm_gguf_t *g, llm_desc_t *d, llm_err_t *err)
{
    uint32_t                   i;
    const llm_gguf_kv_t       *tokens;
    const llm_gguf_tensor_t  **t;

    t = d->global;

    for (i = 0; i < LLM_GT_N; i++) {
        t[i] = llm_gguf_find_tensor(g, llm_global_names[i]);
    }

    for (i = LLM_GT_TOKEN_EMBD; i <= LLM_GT_OUTPUT_NORM; i++) {
        if (t[i] == NULL) {
            return llm_desc_no_tensor(g, llm_global_names[i], err);
        }
    }

    if (llm_desc_shape(g, t[LLM_GT_TOKEN_EMBD], d->hp.n_embd, 0, 1, err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (t[LLM_GT_TOKEN_EMBD]->ne[1] > LLM_MAX_WIDTH) {
        return llm_fail(err, "%s: token_embd.weight: %llu tokens are too "
                        "many", llm_gguf_name(g),
                        (unsigned long long) t[LLM_GT_TOKEN_EMBD]->ne[1]);
    }

    d->hp.n_vocab = (uint32_t) t[LLM_GT_TOKEN_EMBD]->ne[1];

    if (llm_desc_shape(g, t[LLM_GT_OUTPUT_NORM], d->hp.n_embd, 1, 0, err)
        != LLM_OK
        || (t[LLM_GT_OUTPUT]
            && llm_desc_shape(g, t[LLM_GT_OUTPUT], d->hp.n_embd,
                              d->hp.n_vocab, 1, err) != LLM_OK)
        || (t[LLM_GT_ROPE_FREQS]
            && llm_desc_shape(g, t[LLM_GT_ROPE_FREQS], d->hp.n_rot / 2, 1, 0,
                              err) != LLM_OK)
        || (t[LLM_GT_RANK]
            && llm_desc_shape(g, t[LLM_GT_RANK], d->hp.n_embd, 2, 1, err)
               != LLM_OK))
    {
        return LLM_ERROR;
    }

    tokens = llm_gguf_find(g, "tokenizer.ggml.tokens");

    if (tokens && tokens->count > d->hp.n_vocab) {
        return llm_fail(err, "%s: tokenizer.ggml.tokens: %llu tokens, and "
                        "token_embd.weight has %u rows", llm_gguf_name(g),
                        (unsigned long long) tokens->count, d->hp.n_vocab);
    }

    return LLM_OK;
}


static int
llm_desc_uses(const llm_desc_t *d, const llm_gguf_tensor_t *t)
{
    char           name[64];
    size_t         i;
    uint32_t       layer;
    unsigned long  n;
    char          *end;

    for (i = 0; i < LLM_GT_N; i++) {
        if (d->global[i] == t) {
            return 1;
        }
    }

    if (t->name.len >= sizeof(name) || t->name.len < 5
        || memcmp(t->name.data, "blk.", 4) != 0)
    {
        return 0;
    }

    memcpy(name, t->name.data, t->name.len);
    name[t->name.len] = '\0';

    n = strtoul(name + 4, &end, 10);

    if (n >= d->hp.n_layers) {
        return 0;
    }

    layer = (uint32_t) n;

    for (i = 0; i < LLM_LT_N; i++) {
        if (llm_desc_tensor(d, layer, i) == t) {
            return 1;
        }
    }

    return 0;
}


/*
 * An unknown tensor whose name is like that of a weight is refused: answers
 * without it would be wrong.  Other unknown tensors are only logged.
 */

static int
llm_desc_extras(const llm_gguf_t *g, llm_desc_t *d, llm_err_t *err)
{
    size_t                    i, k;
    const llm_gguf_tensor_t  *t;

    static const char  *const prefixes[] = {
        "blk.", "output", "token_", "position_", "rope_", "cls"
    };

    for (i = 0; i < llm_gguf_n_tensors(g); i++) {
        t = llm_gguf_tensor(g, i);
        d->hp.n_bytes += t->size;
        d->hp.n_params += t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3];

        if (llm_desc_uses(d, t)) {
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

    if (llm_desc_globals(g, d, err) != LLM_OK) {
        return LLM_ERROR;
    }

    d->layers = calloc((size_t) d->hp.n_layers * LLM_LT_N,
                       sizeof(llm_gguf_tensor_t *));
    if (d->layers == NULL) {
        return llm_fail(err, "%s: no memory for %u layers", llm_gguf_name(g),
                        d->hp.n_layers);
    }

    for (i = 0; i < d->hp.n_layers; i++) {
        if (llm_desc_layer(g, d, i, err) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return llm_desc_extras(g, d, err);
}
