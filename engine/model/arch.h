/*
 * What a file says of its model, read and checked: the architecture's row
 * of facts, the sizes, the RoPE, and where each tensor lies.
 *
 * Invariant: after llm_desc_read() every tensor that the forward pass uses is
 * there with the right shape, and the file has no tensor and no known field
 * that changes the result but is not used.
 *
 * A description owns its table; the tensors are the GGUF's, which must
 * outlive it.
 */

#ifndef LLM_MODEL_ARCH_H
#define LLM_MODEL_ARCH_H

#include "engine/model/model.h"
#include "engine/model/rope.h"

#define LLM_MAX_WIDTH     (1u << 24)    /* of any row, and of n_vocab */

#define llm_arch_bit(t)   (1u << (t))

/* tensors of one layer, the rows of tensors.def */
typedef enum {
#define LLM_TENSOR(ID, name, in, out)  LLM_LT_##ID,
#include "engine/model/tensors.def"
    LLM_LT_N
} llm_layer_tensor_t;

_Static_assert(LLM_LT_N <= 32, "a layer's tensors are bits of 32");

/* tensors of the whole model */
typedef enum {
    LLM_GT_TOKEN_EMBD = 0,
    LLM_GT_OUTPUT_NORM,
    LLM_GT_OUTPUT,                      /* NULL: the head is TOKEN_EMBD */
    LLM_GT_ROPE_FREQS,                  /* NULL: no factors */
    LLM_GT_RANK,                        /* NULL: it does not rank */
    LLM_GT_N
} llm_global_tensor_t;

#define LLM_MAX_BLOCKS    8             /* of a layer */

typedef struct llm_block_s  llm_block_t;    /* blocks.h */

/* an architecture, a row of archs.def */
typedef struct {
    const char         *name;           /* general.architecture */
    llm_rope_kind_t     rope;
    llm_glu_t           glu;
    uint32_t            tensors;        /* llm_arch_bit()s of tensors that a
                                           layer needs beside those of its
                                           blocks */
    const llm_block_t  *blocks[LLM_MAX_BLOCKS + 1];     /* NULL ends them */
} llm_arch_t;

typedef struct {
    const llm_arch_t          *arch;
    llm_hparams_t              hp;
    llm_rope_conf_t            rope;
    float                      attn_scale;
    const llm_gguf_tensor_t   *global[LLM_GT_N];
    const llm_gguf_tensor_t  **layers;  /* [n_layers][LLM_LT_N] */
    const llm_gguf_tensor_t   *unused;  /* the first unknown tensor outside the
                                           layers, or NULL */
} llm_desc_t;

/* on LLM_ERROR there is nothing to free */
int llm_desc_read(const llm_gguf_t *g, llm_desc_t *d, llm_err_t *err);
void llm_desc_free(llm_desc_t *d);

static inline const llm_gguf_tensor_t *
llm_desc_tensor(const llm_desc_t *d, uint32_t layer, llm_layer_tensor_t t)
{
    return d->layers[(size_t) layer * LLM_LT_N + t];
}

/* the part of llm_desc_read() that arch_tensors.c does */
int llm_desc_tensors(const llm_gguf_t *g, llm_desc_t *d, llm_err_t *err);

/* is the tensor a matrix for linear(), and not a vector? */
int llm_layer_tensor_is_matrix(llm_layer_tensor_t t);

static inline int
llm_arch_is(llm_str_t s, const char *text)
{
    return s.len == strlen(text) && memcmp(s.data, text, s.len) == 0;
}

#endif /* LLM_MODEL_ARCH_H */
