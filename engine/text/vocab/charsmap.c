/*
 * SentencePiece's normalisation, as tokenizer.ggml.precompiled_charsmap has
 * it: a map of strings to replacements.  At each position the longest string
 * that the map has is replaced; where it has none, a character stays.
 *
 * The map consists of a length, a trie as a double array of that many bytes,
 * and zero-terminated texts, to whose offsets the trie leads.  A unit of the
 * array has the byte that leads to it (bits 0 to 7, bit 31 is zero), whether
 * an offset follows (bit 8), and the distance to its children (bits 10 to 30,
 * times 256 with bit 9).  An offset is a unit with bit 31 set.
 *
 * A map may be malicious: every step checks its position.
 */

#include "engine/base/utf8.h"
#include "engine/text/vocab/internal.h"

#define LLM_CHARSMAP_KEY   "tokenizer.ggml.precompiled_charsmap"
#define LLM_CHARSMAP_MAX   (64u << 20)


int
llm_charsmap_load(llm_charsmap_t *m, llm_arena_t *arena, const llm_gguf_t *g,
    llm_err_t *err)
{
    char                 *copy;
    size_t                len;
    uint32_t              size;
    const llm_gguf_kv_t  *kv;

    kv = llm_gguf_find(g, LLM_CHARSMAP_KEY);

    if (kv == NULL || (kv->type == LLM_GGUF_ARRAY && kv->count == 0)) {
        return LLM_OK;
    }

    if (kv->type != LLM_GGUF_ARRAY
        || (kv->item != LLM_GGUF_U8 && kv->item != LLM_GGUF_I8)
        || kv->count > LLM_CHARSMAP_MAX)
    {
        return llm_fail(err, "%s: " LLM_CHARSMAP_KEY ": not an array of at "
                        "most %u bytes", llm_gguf_name(g), LLM_CHARSMAP_MAX);
    }

    len = kv->count;
    size = 0;

    if (len > sizeof(size)) {
        memcpy(&size, kv->data, sizeof(size));
        len -= sizeof(size);
    }

    if (size == 0 || size % sizeof(uint32_t) || size >= len
        || ((const char *) kv->data)[kv->count - 1] != '\0')
    {
        return llm_fail(err, "%s: " LLM_CHARSMAP_KEY ": it is damaged",
                        llm_gguf_name(g));
    }

    copy = llm_arena_alloc(arena, len);
    if (copy == NULL) {
        return llm_fail(err, "%s: no memory for " LLM_CHARSMAP_KEY,
                        llm_gguf_name(g));
    }

    memcpy(copy, (const char *) kv->data + sizeof(size), len);
    m->units = (const uint32_t *) (void *) copy;
    m->n_units = size / sizeof(uint32_t);
    m->texts = copy + size;
    m->n_texts = len - size;

    return LLM_OK;
}


/* the distance of a unit to its children */

static uint32_t
llm_charsmap_base(uint32_t unit)
{
    return unit >> 10 << ((unit & 1u << 9) >> 6);
}


/* finds the longest beginning that the map has: returns its length, *place:
   offset of its replacement; 0: it has none */

static size_t
llm_charsmap_match(const llm_charsmap_t *m, const char *p, size_t n,
    uint32_t *place)
{
    size_t         i, best;
    uint32_t       at, to, unit;
    unsigned char  c;

    best = 0;

    if (m->n_units == 0) {
        return 0;
    }

    at = llm_charsmap_base(m->units[0]);

    for (i = 0; i < n && p[i]; i++) {
        c = (unsigned char) p[i];
        at ^= c;

        if (at >= m->n_units) {
            break;
        }

        unit = m->units[at];

        if ((unit & (1u << 31 | 0xff)) != c) {
            break;
        }

        at ^= llm_charsmap_base(unit);

        if ((unit & 1u << 8) && at < m->n_units) {
            to = m->units[at] & ~(1u << 31);

            if (to < m->n_texts) {
                *place = to;
                best = i + 1;
            }
        }
    }

    return best;
}


size_t
llm_charsmap_next(const llm_charsmap_t *m, const char *p, size_t n,
    llm_str_t *out)
{
    size_t    len;
    uint32_t  place;

    len = llm_charsmap_match(m, p, n, &place);

    if (len) {
        out->data = m->texts + place;
        out->len = strlen(out->data);
        return len;
    }

    len = llm_utf8_decode(p, n, NULL);

    if (len == 0) {
        *out = llm_str(LLM_UTF8_REPLACEMENT);
        return 1;
    }

    out->data = p;
    out->len = len;

    return len;
}
