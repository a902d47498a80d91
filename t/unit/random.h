/*
 * Random numbers that are the same in each run and on each machine: xorshift
 * of 64 bits.  A test that wants others sets rnd_state.
 */

#ifndef LLM_T_RANDOM_H
#define LLM_T_RANDOM_H

#include <stdint.h>


static uint64_t  rnd_state = 88172645463325252ull;


static inline uint64_t
rnd_bits(void)
{
    rnd_state ^= rnd_state << 13;
    rnd_state ^= rnd_state >> 7;
    rnd_state ^= rnd_state << 17;

    return rnd_state;
}


/* below n */

static inline uint32_t
rnd(uint32_t n)
{
    return (uint32_t) ((rnd_bits() >> 20) % n);
}

#endif /* LLM_T_RANDOM_H */
