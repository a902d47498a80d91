/*
 * A map of strings to consecutive numbers and back: open addressing with a
 * keyed hash, so that no file can make strings collide.  The map owns its
 * arrays, but not the bytes of the strings.
 */

#ifndef LLM_STRMAP_H
#define LLM_STRMAP_H

#include "engine/base/base.h"

#define LLM_STRMAP_NONE  UINT32_MAX

typedef struct {
    uint32_t            hash;
    uint32_t            id;             /* NONE: the slot is free */
} llm_strmap_slot_t;

typedef struct {
    llm_str_t          *str;            /* strings by number */
    uint32_t            n;
    uint32_t            cap;
    llm_strmap_slot_t  *slots;
    uint32_t            mask;
    uint64_t            seed;
} llm_strmap_t;

/* room for n strings at first */
int llm_strmap_init(llm_strmap_t *m, uint32_t n, uint64_t seed);
/*
 * Gives s the next number and returns it, or NONE if memory runs out.  Of
 * equal strings only the first one is found.
 */
uint32_t llm_strmap_add(llm_strmap_t *m, llm_str_t s);
uint32_t llm_strmap_find(const llm_strmap_t *m, const char *data, size_t len);

/*
 * Look-ups of many strings spend their time waiting for memory.  A caller that
 * knows the strings in advance computes their hashes, does the prefetch steps
 * 0, 1 and 2 for all of them, and then finds them.
 */
uint32_t llm_strmap_hash(const llm_strmap_t *m, const char *data, size_t len);
void llm_strmap_prefetch(const llm_strmap_t *m, uint32_t hash, int step);
uint32_t llm_strmap_find_hash(const llm_strmap_t *m, const char *data,
    size_t len, uint32_t hash);
void llm_strmap_free(llm_strmap_t *m);


static inline uint64_t
llm_hash_mix(uint64_t a, uint64_t b)
{
    __uint128_t  r;

    r = (__uint128_t) a * b;

    return (uint64_t) r ^ (uint64_t) (r >> 64);
}

#endif /* LLM_STRMAP_H */
