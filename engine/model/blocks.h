/*
 * The blocks that layers are chains of (archs.def): what a block does to the
 * residual stream, and which of the layer's tensors it uses.
 */

#ifndef LLM_MODEL_BLOCKS_H
#define LLM_MODEL_BLOCKS_H

#include "engine/model/model_internal.h"

/* where the forward pass stands */
typedef struct {
    llm_model_t   *m;
    uint32_t       layer;
    llm_rows_t     rows;                /* of the step that go on */
    llm_act_t     *x;                   /* their residual stream */
    int            ends;                /* no row goes on behind this block:
                                           what it keeps is all it is for */
} llm_pass_t;

struct llm_block_s {
    void         (*forward)(const llm_pass_t *p);
    int            mixes;               /* a row looks at others, or leaves
                                           something for those to come */
    uint32_t       required;            /* llm_arch_bit()s */
    uint32_t       optional;
};

#define LLM_BLOCK(NAME)  extern const llm_block_t  llm_block_##NAME;
#define LLM_ARCH(name, rope, glu, tensors, blocks)  blocks
#include "engine/model/archs.def"
#undef LLM_BLOCK

#endif /* LLM_MODEL_BLOCKS_H */
