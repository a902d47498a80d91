/*
 * A map of characters as SentencePiece's models have it: a double array and
 * texts, built from a few rules.
 */

#ifndef LLM_T_CHARSMAP_BUILD_H
#define LLM_T_CHARSMAP_BUILD_H

#include "engine/base/base.h"

#define MAP_UNITS  4096

typedef struct {
    uint32_t    units[MAP_UNITS];
    uint8_t     used[MAP_UNITS];
    char        texts[256];
    size_t      n_texts;
    uint8_t     blob[4 + MAP_UNITS * 4 + 256];
} map_t;

typedef struct {
    const char  *from;
    const char  *to;
} rule_t;

/* in the order of their bytes */
static const rule_t  map_rules[] = {
    { "\t", " " }, { "A", "a" }, { "AB", "bb" }, { "e\xcc\x81", "\xc3\xa9" },
    { "\xef\xac\x81", "ab" }, { "\xef\xbb\xbf", "" }
};


static inline uint8_t
rule_byte(size_t i, size_t depth)
{
    return (uint8_t) map_rules[i].from[depth];
}


/* the children of the unit at `at`, which rules [low, high) begin like */

static inline void
map_place(map_t *m, uint32_t at, size_t low, size_t high, size_t depth,
    uint32_t label)
{
    int       fits, leaf;
    size_t    i, k, first;
    uint32_t  base, unit;

    leaf = strlen(map_rules[low].from) == depth;
    first = low + (size_t) leaf;

    /* a distance that lands all of them on free units */

    for (base = 1, fits = 0; !fits; base += !fits) {
        fits = !leaf || !m->used[at ^ base];

        for (i = first; i < high; i++) {
            fits &= !m->used[at ^ base ^ rule_byte(i, depth)];
        }
    }

    unit = label | base << 10 | (leaf ? 1u << 8 : 0);
    m->units[at] = unit;

    if (leaf) {
        m->units[at ^ base] = 1u << 31 | (uint32_t) m->n_texts;
        m->used[at ^ base] = 1;
        memcpy(m->texts + m->n_texts, map_rules[low].to,
               strlen(map_rules[low].to) + 1);
        m->n_texts += strlen(map_rules[low].to) + 1;
    }

    for (i = first; i < high; i++) {
        m->used[at ^ base ^ rule_byte(i, depth)] = 1;
    }

    for (i = first; i < high; i = k) {
        for (k = i; k < high && rule_byte(k, depth) == rule_byte(i, depth);
             k++)
        { /* void */ }

        map_place(m, at ^ base ^ rule_byte(i, depth), i, k, depth + 1,
                  rule_byte(i, depth));
    }
}


static inline size_t
map_build(map_t *m)
{
    uint32_t  size;

    memset(m, 0, sizeof(*m));
    m->used[0] = 1;
    map_place(m, 0, 0, llm_nelems(map_rules), 0, 0);

    size = sizeof(m->units);
    memcpy(m->blob, &size, sizeof(size));
    memcpy(m->blob + sizeof(size), m->units, size);
    memcpy(m->blob + sizeof(size) + size, m->texts, m->n_texts);

    return sizeof(size) + size + m->n_texts;
}

#endif /* LLM_T_CHARSMAP_BUILD_H */
