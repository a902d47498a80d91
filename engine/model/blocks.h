/*
 * The blocks that layers are chains of: what a block does to the residual
 * stream, and which of the layer's tensors it uses.  A block reads the
 * layer's description and never the architecture's name.
 *
 * To add a block: a section of tensors.def with the dimensions, tensors and
 * buffers that no other has; a file block_NAME.c with its forward(), its lists
 * of tensors and buffers and its llm_block_t; its name below.  What of it
 * differs from layer to layer is a field of llm_layer_desc_t.  An architecture
 * puts it into its layers' chains (.blocks of llm_arch_t, or
 * llm_desc_chain()).  t/unit/rows.c adds one.
 */

#ifndef LLM_MODEL_BLOCKS_H
#define LLM_MODEL_BLOCKS_H

#include "engine/model/model_internal.h"

/* the state of the forward pass */
typedef struct {
    llm_model_t              *m;
    uint32_t                  layer;
    const llm_layer_desc_t   *d;        /* of the layer */
    const llm_model_layer_t  *l;
    llm_rows_t                rows;     /* the rows that are still computed */
    llm_act_t                *x;        /* residual stream of these rows */
    llm_act_t                *h;        /* what the next block reads of them,
                                           in parallel layers */
    int                       ends;     /* no row is needed after this block:
                                           only its keys and values are */
} llm_pass_t;

struct llm_block_s {
    void                    (*forward)(const llm_pass_t *p);
    int                       mixes;    /* rows depend on each other, or leave
                                           keys and values for later ones */
    uint32_t                  needs;    /* what the device must be able to do
                                           for it, whatever the layer says:
                                           llm_can_t (or-ed) */
    const llm_tensor_want_t  *tensors;  /* NULL: none, as the next */
    const llm_buffer_want_t  *buffers;  /* which have their width when
                                           forward() runs */
};

extern const llm_block_t  llm_block_attention;
extern const llm_block_t  llm_block_latent;
extern const llm_block_t  llm_block_ffn;
extern const llm_block_t  llm_block_attn_after;
extern const llm_block_t  llm_block_keep;
extern const llm_block_t  llm_block_attn_again;
extern const llm_block_t  llm_block_layer_after;
extern const llm_block_t  llm_block_mixture;
extern const llm_block_t  llm_block_mixture_beside;
extern const llm_block_t  llm_block_delta;
extern const llm_block_t  llm_block_mamba2;
extern const llm_block_t  llm_block_mamba2_beside;
extern const llm_block_t  llm_block_shortconv;
extern const llm_block_t  llm_block_input;
extern const llm_block_t  llm_block_out_scale;

/* pass.c: what blocks have in common */

/* the buffers are as wide from now on as the list says of the layer */
void llm_pass_buffers(const llm_pass_t *p, const llm_buffer_want_t *b);
/* y = the model's kind of norm of x; without the tensor y = x, unless its
   norms have no weights */
void llm_pass_norm(const llm_pass_t *p, const llm_act_t *x,
    llm_layer_tensor_t w, llm_layer_tensor_t bias, llm_act_t *y);
/* the cache that its keys and values lie in */
llm_kv_t *llm_pass_kv(const llm_pass_t *p);
/* the layer's RoPE, as rope_kv() wants it */
llm_rope_t llm_pass_rope(const llm_pass_t *p);
/* the layer's window, as attention() wants it; 0: the rows of every sequence
   see all */
uint32_t llm_pass_window(const llm_pass_t *p);
/* x += the layer's scale * norm(W h + bias), the norm if it has that tensor;
   bias and norm may be LLM_LT_N */
void llm_pass_add(const llm_pass_t *p, const llm_act_t *h,
    llm_layer_tensor_t w, llm_layer_tensor_t bias, llm_layer_tensor_t norm);

/* x += the layer's scale * norm(y), the norm if it has that tensor; y, which
   changes, is a buffer as wide as x */
void llm_pass_join(const llm_pass_t *p, llm_act_t *y,
    llm_layer_tensor_t norm);

/* block_ffn.c: the inner rows of the feed-forward network that reads h, which
   its last matrix reads */
llm_act_t *llm_pass_feed(const llm_pass_t *p, const llm_act_t *h);

/* block_input.c: before the layers, if they have inputs of their own */
void llm_forward_inputs(llm_model_t *m);

#endif /* LLM_MODEL_BLOCKS_H */
