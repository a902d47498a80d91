/*
 * Classes and mappings of characters; see unicode.h.
 */

#include "engine/text/vocab/unicode.h"


typedef struct {
    uint32_t  from;
    uint32_t  to;
} llm_unicode_range_t;

typedef struct {
    uint32_t  cp;
    uint32_t  base;
} llm_unicode_base_t;

typedef struct {
    uint32_t  from;
    uint32_t  to;
    uint32_t  step;
    int32_t   distance;
} llm_unicode_lower_t;

#include "engine/text/vocab/unicode_tables.h"

#define HANGUL_FIRST   0xac00u
#define HANGUL_LAST    0xd7a3u
#define HANGUL_BLOCK   (21u * 28u)      /* syllables of one consonant */


static int
llm_unicode_in(const llm_unicode_range_t *r, size_t n, uint32_t cp)
{
    size_t  low, mid, high;

    low = 0;
    high = n;

    while (low < high) {
        mid = low + (high - low) / 2;

        if (cp > r[mid].to) {
            low = mid + 1;

        } else if (cp < r[mid].from) {
            high = mid;

        } else {
            return 1;
        }
    }

    return 0;
}


int
llm_unicode_is_mark(uint32_t cp)
{
    return llm_unicode_in(llm_unicode_marks, llm_nelems(llm_unicode_marks),
                          cp);
}


int
llm_unicode_is_punct(uint32_t cp)
{
    return llm_unicode_in(llm_unicode_puncts, llm_nelems(llm_unicode_puncts),
                          cp);
}


int
llm_unicode_is_word(uint32_t cp)
{
    return llm_unicode_in(llm_unicode_words, llm_nelems(llm_unicode_words),
                          cp);
}


int
llm_unicode_is_control(uint32_t cp)
{
    return llm_unicode_in(llm_unicode_controls,
                          llm_nelems(llm_unicode_controls), cp);
}


int
llm_unicode_is_space(uint32_t cp)
{
    return llm_unicode_in(llm_unicode_spaces, llm_nelems(llm_unicode_spaces),
                          cp);
}


int
llm_unicode_is_han(uint32_t cp)
{
    return (cp >= 0x4e00 && cp <= 0x9fff) || (cp >= 0x3400 && cp <= 0x4dbf)
           || (cp >= 0xf900 && cp <= 0xfaff)
           || (cp >= 0x20000 && cp <= 0x2a6df)
           || (cp >= 0x2a700 && cp <= 0x2ceaf)
           || (cp >= 0x2f800 && cp <= 0x2fa1f);
}


uint32_t
llm_unicode_base(uint32_t cp)
{
    size_t                     low, mid, high;
    const llm_unicode_base_t  *b;

    /* a Hangul syllable begins with one of 19 consonants */

    if (cp >= HANGUL_FIRST && cp <= HANGUL_LAST) {
        return 0x1100 + (cp - HANGUL_FIRST) / HANGUL_BLOCK;
    }

    low = 0;
    high = llm_nelems(llm_unicode_bases);

    while (low < high) {
        mid = low + (high - low) / 2;
        b = &llm_unicode_bases[mid];

        if (cp > b->cp) {
            low = mid + 1;

        } else if (cp < b->cp) {
            high = mid;

        } else {
            return b->base;
        }
    }

    return cp;
}


uint32_t
llm_unicode_lower(uint32_t cp)
{
    size_t                      low, mid, high;
    const llm_unicode_lower_t  *r;

    low = 0;
    high = llm_nelems(llm_unicode_lowers);

    while (low < high) {
        mid = low + (high - low) / 2;
        r = &llm_unicode_lowers[mid];

        if (cp > r->to) {
            low = mid + 1;

        } else if (cp < r->from) {
            high = mid;

        } else {
            return (cp - r->from) % r->step
                   ? cp : (uint32_t) ((int32_t) cp + r->distance);
        }
    }

    return cp;
}
