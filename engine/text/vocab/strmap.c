/*
 * The map of strings; see strmap.h.
 */

#include "engine/text/vocab/strmap.h"

#define LLM_HASH_A  0x9e3779b97f4a7c15u
#define LLM_HASH_B  0xe7037ed1a0b428dbu


uint32_t
llm_strmap_hash(const llm_strmap_t *m, const char *p, size_t n)
{
    uint64_t  h, w;

    h = m->seed ^ n;

    while (n > 8) {
        memcpy(&w, p, 8);
        h = llm_hash_mix(h ^ w, LLM_HASH_A);
        p += 8;
        n -= 8;
    }

    w = 0;
    memcpy(&w, p, n);

    return (uint32_t) llm_hash_mix(h ^ w, LLM_HASH_B);
}


static int
llm_strmap_rehash(llm_strmap_t *m, uint32_t size)
{
    uint32_t            i, k;
    llm_strmap_slot_t  *slots;

    slots = malloc((size_t) size * sizeof(*slots));
    if (slots == NULL) {
        return LLM_ERROR;
    }

    memset(slots, 0xff, (size_t) size * sizeof(*slots));

    for (i = 0; m->slots && i <= m->mask; i++) {

        if (m->slots[i].id == LLM_STRMAP_NONE) {
            continue;
        }

        k = m->slots[i].hash & (size - 1);

        while (slots[k].id != LLM_STRMAP_NONE) {
            k = (k + 1) & (size - 1);
        }

        slots[k] = m->slots[i];
    }

    free(m->slots);
    m->slots = slots;
    m->mask = size - 1;

    return LLM_OK;
}


int
llm_strmap_init(llm_strmap_t *m, uint32_t n, uint64_t seed)
{
    uint32_t  size;

    memset(m, 0, sizeof(*m));

    if (n > UINT32_MAX / 4) {
        return LLM_ERROR;
    }

    m->seed = seed;
    m->cap = llm_max(n, 16);

    for (size = 32; size < n + n / 2; size *= 2) { /* void */ }

    m->str = malloc((size_t) m->cap * sizeof(llm_str_t));
    if (m->str == NULL) {
        return LLM_ERROR;
    }

    return llm_strmap_rehash(m, size);
}


/* the slot where a string is, or where it would be put */

static llm_strmap_slot_t *
llm_strmap_slot(const llm_strmap_t *m, const char *p, size_t n, uint32_t hash)
{
    uint32_t            k;
    llm_strmap_slot_t  *slot;

    for (k = hash & m->mask; /* void */; k = (k + 1) & m->mask) {
        slot = &m->slots[k];

        if (slot->id == LLM_STRMAP_NONE) {
            return slot;
        }

        if (slot->hash == hash && m->str[slot->id].len == n
            && memcmp(m->str[slot->id].data, p, n) == 0)
        {
            return slot;
        }
    }
}


uint32_t
llm_strmap_add(llm_strmap_t *m, llm_str_t s)
{
    uint32_t            hash;
    llm_str_t          *str;
    llm_strmap_slot_t  *slot;

    if (m->n == m->cap) {

        if (m->cap > UINT32_MAX / 4) {
            return LLM_STRMAP_NONE;
        }

        str = realloc(m->str, (size_t) m->cap * 2 * sizeof(*str));
        if (str == NULL) {
            return LLM_STRMAP_NONE;
        }

        m->str = str;
        m->cap *= 2;
    }

    if (m->n > m->mask / 4 * 3
        && llm_strmap_rehash(m, (m->mask + 1) * 2) != LLM_OK)
    {
        return LLM_STRMAP_NONE;
    }

    hash = llm_strmap_hash(m, s.data, s.len);
    slot = llm_strmap_slot(m, s.data, s.len, hash);
    m->str[m->n] = s;

    if (slot->id == LLM_STRMAP_NONE) {
        slot->hash = hash;
        slot->id = m->n;
    }

    return m->n++;
}


uint32_t
llm_strmap_find_hash(const llm_strmap_t *m, const char *data, size_t len,
    uint32_t hash)
{
    return llm_strmap_slot(m, data, len, hash)->id;
}


uint32_t
llm_strmap_find(const llm_strmap_t *m, const char *data, size_t len)
{
    return llm_strmap_slot(m, data, len, llm_strmap_hash(m, data, len))->id;
}


/* prefetches the slot, then the string that it names, then that string's
   bytes */

void
llm_strmap_prefetch(const llm_strmap_t *m, uint32_t hash, int step)
{
    const llm_strmap_slot_t  *slot;

    slot = &m->slots[hash & m->mask];

    if (step == 0) {
        __builtin_prefetch(slot);
        return;
    }

    if (slot->id == LLM_STRMAP_NONE) {
        return;
    }

    if (step == 1) {
        __builtin_prefetch(&m->str[slot->id]);

    } else {
        __builtin_prefetch(m->str[slot->id].data);
    }
}


void
llm_strmap_free(llm_strmap_t *m)
{
    free(m->str);
    free(m->slots);
    memset(m, 0, sizeof(*m));
}
