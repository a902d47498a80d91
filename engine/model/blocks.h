/*
 * The blocks that layers are chains of (archs.def): what a block does to the
 * residual stream, and which of the layer's tensors it uses.
 */

#ifndef LLM_MODEL_BLOCKS_H
#define LLM_MODEL_BLOCKS_H

#include "engine/model/model_internal.h"

/* the state of the forward pass */
typedef struct {
    llm_model_t   *m;
    uint32_t       layer;
    llm_rows_t     rows;                /* the rows that are still computed */
    llm_act_t     *x;                   /* residual stream of these rows */
    int            ends;                /* no row is needed after this block:
                                           only its keys and values are */
} llm_pass_t;

struct llm_block_s {
    void         (*forward)(const llm_pass_t *p);
    int            mixes;               /* rows depend on each other, or leave
                                           keys and values for later ones */
    uint32_t       required;            /* llm_arch_bit()s */
    uint32_t       optional;
};

#define LLM_BLOCK(NAME)  extern const llm_block_t  llm_block_##NAME;
#define LLM_ARCH(name, rope, glu, tensors, blocks)  blocks
#include "engine/model/archs.def"
#undef LLM_BLOCK

#endif /* LLM_MODEL_BLOCKS_H */
