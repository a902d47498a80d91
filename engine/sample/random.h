/*
 * Counter-based random numbers, which have no state: a hash of a key and a
 * counter, Philox 4x32 with ten rounds (Salmon, Moraes, Dror, Shaw: "Parallel
 * Random Numbers: As Easy as 1, 2, 3", 2011).
 */

#ifndef LLM_SAMPLE_RANDOM_H
#define LLM_SAMPLE_RANDOM_H

#include <stdint.h>

/* replaces the counter's four words by four random ones */
static inline void
llm_philox(const uint32_t key[2], uint32_t c[4])
{
    int       round;
    uint32_t  k0, k1;
    uint64_t  a, b;

    k0 = key[0];
    k1 = key[1];

    for (round = 0; round < 10; round++) {
        a = (uint64_t) 0xd2511f53 * c[0];
        b = (uint64_t) 0xcd9e8d57 * c[2];

        c[0] = (uint32_t) (b >> 32) ^ c[1] ^ k0;
        c[2] = (uint32_t) (a >> 32) ^ c[3] ^ k1;
        c[1] = (uint32_t) b;
        c[3] = (uint32_t) a;

        k0 += 0x9e3779b9;
        k1 += 0xbb67ae85;
    }
}


/* a random number u of 53 bits, 0 <= u < 1, for a seed, a choice and a position
   n in the choice's text; which: 0 or 1, two different numbers */
static inline double
llm_random(uint64_t seed, uint32_t choice, uint64_t n, int which)
{
    uint32_t  key[2] = { (uint32_t) seed, (uint32_t) (seed >> 32) };
    uint32_t  c[4] = { (uint32_t) n, (uint32_t) (n >> 32), choice, 0 };

    llm_philox(key, c);

    c[0] = c[2 * which];
    c[1] = c[2 * which + 1];

    return (double) ((((uint64_t) c[1] << 32) | c[0]) >> 11) * 0x1p-53;
}

#endif /* LLM_SAMPLE_RANDOM_H */
