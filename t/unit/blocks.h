/*
 * Blocks of quantised types for tests: random bytes, with scales of modest
 * size wherever the format has them.
 */

#ifndef LLM_TEST_BLOCKS_H
#define LLM_TEST_BLOCKS_H

#include "kernels/types.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


/* IQ1_M: the nibbles of its binary16 are the high ones of every other byte */

static inline void
blocks_iq1_m(uint8_t *b, float d)
{
    int       k;
    uint16_t  h;

    h = llm_f32_to_f16(d);

    for (k = 0; k < 4; k++) {
        b[49 + 2 * k] = (uint8_t) ((b[49 + 2 * k] & 15)
                                   | (h >> 4 * k & 15) << 4);
    }
}


/*
 * Gives the block of random bytes at b the scale d, and the minimum m if its
 * format has one; formats without a binary16 get something of d's size.
 */

static inline void
blocks_scale(uint32_t type, uint8_t *b, float d, float m)
{
    size_t    i;
    uint16_t  h;

    static const struct {
        uint32_t  type;
        uint32_t  d;                    /* where they lie */
        uint32_t  m;
    } at[] = {
        { LLM_TYPE_Q4_0, 0, 0 }, { LLM_TYPE_Q4_1, 0, 2 },
        { LLM_TYPE_Q5_0, 0, 0 }, { LLM_TYPE_Q5_1, 0, 2 },
        { LLM_TYPE_Q8_0, 0, 0 }, { LLM_TYPE_Q2_K, 80, 82 },
        { LLM_TYPE_Q3_K, 108, 108 }, { LLM_TYPE_Q4_K, 0, 2 },
        { LLM_TYPE_Q5_K, 0, 2 }, { LLM_TYPE_Q6_K, 208, 208 },
        { LLM_TYPE_IQ2_XXS, 0, 0 }, { LLM_TYPE_IQ2_XS, 0, 0 },
        { LLM_TYPE_IQ3_XXS, 0, 0 }, { LLM_TYPE_IQ1_S, 0, 0 },
        { LLM_TYPE_IQ4_NL, 0, 0 }, { LLM_TYPE_IQ3_S, 0, 0 },
        { LLM_TYPE_IQ2_S, 0, 0 }, { LLM_TYPE_IQ4_XS, 0, 0 },
        { LLM_TYPE_TQ1_0, 52, 52 }, { LLM_TYPE_TQ2_0, 64, 64 }
    };

    switch (type) {

    case LLM_TYPE_IQ1_M:
        blocks_iq1_m(b, d);
        return;

    case LLM_TYPE_MXFP4:
        b[0] = (uint8_t) (118 + b[0] % 8);
        return;

    case LLM_TYPE_NVFP4:
        for (i = 0; i < 4; i++) {
            b[i] &= 0x1f;
        }

        return;
    }

    for (i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
        if (at[i].type == type) {
            h = llm_f32_to_f16(m);
            memcpy(b + at[i].m, &h, 2);
            h = llm_f32_to_f16(d);
            memcpy(b + at[i].d, &h, 2);
            return;
        }
    }

    printf("Bail out! nobody knows where %s has its scales\n",
           llm_type_name(type));
    exit(1);
}

#endif /* LLM_TEST_BLOCKS_H */
