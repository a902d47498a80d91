/*
 * Data for the tests of the sampler: rows of logits from a generator that is
 * nothing of the sampler's, and tokens in the order that it has to find.
 */

#ifndef LLM_SAMPLER_DATA_H
#define LLM_SAMPLER_DATA_H

#include "t/unit/random.h"
#include "t/unit/tap.h"

#include <math.h>


static inline double
uniform(void)
{
    return (double) (rnd_bits() >> 11) * 0x1p-53;
}


/* about normal */

static inline float
noise(float sigma)
{
    int     i;
    double  sum;

    for (sum = 0, i = 0; i < 12; i++) {
        sum += uniform();
    }

    return (float) ((sum - 6) * sigma);
}


typedef struct {
    double   logit;
    double   p;
    double   rank;                      /* what typical sorts by */
    int32_t  id;
    int      kept;
} token_t;


static inline int
by_logit(const void *one, const void *two)
{
    const token_t  *a = one, *b = two;

    if (a->logit != b->logit) {
        return a->logit < b->logit ? 1 : -1;
    }

    return a->id - b->id;
}


#endif /* LLM_SAMPLER_DATA_H */
