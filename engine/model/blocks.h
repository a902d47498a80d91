/*
 * Blocks: a layer is a chain of them.  A block changes the residual stream,
 * with tensors of the layer.  It reads the layer's description and never the
 * architecture's name.  Nothing is owned here.
 *
 * To add a block: a section of tensors.def with the dimensions, tensors and
 * buffers that no other block has; a file block_NAME.c with its forward(), its
 * lists of tensors and buffers and its llm_block_t; its name below.  A setting
 * that differs between layers is a field of llm_layer_desc_t.  An architecture
 * puts the block into the chains of its layers (.blocks of llm_arch_t, or
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
    llm_act_t                *h;        /* in parallel layers: what the next
                                           block reads, of these rows */
    int                       ends;     /* the step needs no row after this
                                           block, only the keys and values or
                                           the state that it keeps */
} llm_pass_t;

struct llm_block_s {
    void                    (*forward)(const llm_pass_t *p);
    int                       mixes;    /* rows depend on each other, or leave
                                           keys and values for later rows */
    uint32_t                  needs;    /* what the block needs of a device in
                                           any layer, llm_can_t (or-ed) */
    const llm_tensor_want_t  *tensors;  /* NULL: none */
    const llm_buffer_want_t  *buffers;  /* have the layer's width when forward()
                                           runs; NULL: none */
};

extern const llm_block_t  llm_block_attention;
extern const llm_block_t  llm_block_latent;
extern const llm_block_t  llm_block_cross;
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

/* sets the widths of the buffers in the list to those of the layer */
void llm_pass_buffers(const llm_pass_t *p, const llm_buffer_want_t *b);
/* y = norm(x), of the model's kind; y = x if the file lacks the tensor w,
   unless the model's norms have no weights */
void llm_pass_norm(const llm_pass_t *p, const llm_act_t *x,
    llm_layer_tensor_t w, llm_layer_tensor_t bias, llm_act_t *y);
/* the cache with the keys and values that the layer reads */
llm_kv_t *llm_pass_kv(const llm_pass_t *p);
/* the layer's RoPE, for rope_kv() */
llm_rope_t llm_pass_rope(const llm_pass_t *p);
/* the layer's window, for attention(); 0: none, or as long as any sequence */
uint32_t llm_pass_window(const llm_pass_t *p);
/* x += residual_scale * norm(W h + bias); no norm if the layer lacks that
   tensor; bias and norm may be LLM_LT_N: none */
void llm_pass_add(const llm_pass_t *p, const llm_act_t *h,
    llm_layer_tensor_t w, llm_layer_tensor_t bias, llm_layer_tensor_t norm);

/* x += residual_scale * norm(y); no norm if the layer lacks that tensor; y is
   a buffer as wide as x, and changes */
void llm_pass_join(const llm_pass_t *p, llm_act_t *y,
    llm_layer_tensor_t norm);

/* block_ffn.c: the feed-forward network of h without its last matrix; returns
   what that matrix reads, rows of n_ff */
llm_act_t *llm_pass_feed(const llm_pass_t *p, const llm_act_t *h);

/* block_input.c: computes the layers' own inputs, before the first layer */
void llm_forward_inputs(llm_model_t *m);

#endif /* LLM_MODEL_BLOCKS_H */
