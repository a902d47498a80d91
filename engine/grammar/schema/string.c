/*
 * Strings: each atom allows a regular language, and a branch allows the
 * intersection of its atoms' languages.
 */

#include "engine/grammar/schema/internal.h"


/* v: the keyword, or the key if the key is the pattern */

int
llm_schema_pattern(llm_schema_t *s, const llm_flat_t *v, llm_str_t text,
    llm_rx_t *rx)
{
    char       msg[256];
    uint64_t   key;
    llm_err_t  err;

    key = (uint64_t) llm_schema_item(s, v, 0) + 1;

    if (llm_schema_map_get(&s->regexes, key, rx) == LLM_OK) {
        return LLM_OK;
    }

    if (llm_rx_parse(s->pool, text.data, text.len, LLM_RX_SEARCH, rx, &err)
        != LLM_OK)
    {
        llm_clean(msg, sizeof(msg), err.msg, strlen(err.msg));
        return llm_schema_refuse(s, v, "%s", msg);
    }

    return llm_schema_map_put(s, &s->regexes, key, *rx);
}


/* is text one of the enumeration's strings? */

static int
llm_schema_string_among(const llm_schema_atom_t *a, llm_str_t text)
{
    const llm_flat_t  *c;

    if (a->kw == LLM_KW_CONST) {
        return a->value->type == LLM_FLAT_STRING
               && llm_str_eq(llm_flat_str(a->value), text);
    }

    for (c = llm_flat_first(a->value); c; c = llm_flat_next(a->value, c)) {
        if (c->type == LLM_FLAT_STRING
            && llm_str_eq(llm_flat_str(c), text))
        {
            return 1;
        }
    }

    return 0;
}


/* the strings that one atom allows; LLM_ABSENT: it does not constrain
   strings */

static int
llm_schema_string_atom(llm_schema_t *s, const llm_schema_atom_t *a,
    llm_rx_t *rx)
{
    switch (a->kw) {

    case LLM_KW_PATTERN:
        if (llm_schema_is(s, a->value, LLM_FLAT_STRING) != LLM_OK) {
            return LLM_ERROR;
        }

        return llm_schema_pattern(s, a->value, llm_flat_str(a->value), rx);

    case LLM_KW_FORMAT:
        return llm_schema_format(s, a->value, rx);

    default:
        return LLM_ABSENT;
    }
}


/* the range of lengths; excluded lengths are a range, too */

static int
llm_schema_lengths(llm_schema_t *s, const llm_schema_branch_t *b,
    uint64_t *min, uint64_t *max)
{
    uint32_t                  n;
    const llm_schema_atom_t  *a;

    *min = 0;
    *max = LLM_RX_NO_MAX;

    for (a = b->atoms; a; a = a->prev) {
        if (a->kw != LLM_KW_MIN_LENGTH && a->kw != LLM_KW_MAX_LENGTH) {
            continue;
        }

        if (llm_schema_count(s, a->value, &n) != LLM_OK) {
            return LLM_ERROR;
        }

        if ((a->kw == LLM_KW_MIN_LENGTH) == !a->neg) {
            *min = llm_max(*min, (uint64_t) n + (a->neg != 0));

        } else if (a->neg && n == 0) {
            *min = UINT64_MAX;

        } else {
            *max = llm_min(*max, (uint64_t) n - (a->neg != 0));
        }
    }

    return LLM_OK;
}


static uint64_t
llm_schema_length(llm_str_t text)
{
    size_t    i;
    uint64_t  n;

    for (i = 0, n = 0; i < text.len; i++) {
        n += ((uint8_t) text.data[i] & 0xc0) != 0x80;
    }

    return n;
}


/* does text, which is one of own's strings, satisfy the branch? */

static int
llm_schema_string_fits(llm_schema_t *s, const llm_schema_branch_t *b,
    const llm_schema_atom_t *own, llm_str_t text)
{
    int                       rc;
    llm_rx_t                  rx;
    const llm_schema_atom_t  *a;

    for (a = b->atoms; a; a = a->prev) {
        if (a == own) {
            continue;
        }

        if (a->kw == LLM_KW_ENUM || a->kw == LLM_KW_CONST) {
            rc = llm_schema_string_among(a, text);

        } else {
            rc = llm_schema_string_atom(s, a, &rx);

            if (rc == LLM_ERROR) {
                return LLM_ERROR;
            }

            if (rc == LLM_ABSENT) {
                continue;
            }

            rc = llm_rx_matches(s->pool, rx, text.data, text.len);
        }

        if (rc == a->neg) {
            return 0;
        }
    }

    return 1;
}


/* those strings of a's enumeration that satisfy the branch */

static int
llm_schema_string_enum(llm_schema_t *s, const llm_schema_branch_t *b,
    const llm_schema_atom_t *a, llm_rx_t *rx)
{
    int                one, rc;
    uint32_t           n;
    uint64_t           min, max, len;
    llm_str_t         *texts;
    const llm_flat_t  *c;

    one = a->kw == LLM_KW_CONST;
    texts = llm_schema_alloc(s, ((size_t) a->value->count + 1)
                                * sizeof(llm_str_t));

    if (texts == NULL || llm_schema_lengths(s, b, &min, &max) != LLM_OK) {
        return LLM_ERROR;
    }

    n = 0;
    c = one ? a->value : llm_flat_first(a->value);

    for (; c; c = one ? NULL : llm_flat_next(a->value, c)) {
        if (c->type != LLM_FLAT_STRING) {
            continue;
        }

        if (llm_lex_now_us() > s->until_us) {
            return llm_schema_too_large(s);
        }

        texts[n] = llm_flat_str(c);
        len = llm_schema_length(texts[n]);
        rc = llm_schema_string_fits(s, b, a, texts[n]);

        if (rc == LLM_ERROR) {
            return LLM_ERROR;
        }

        n += rc && len >= min && len <= max;
    }

    *rx = llm_rx_literals(s->pool, texts, n);

    return LLM_OK;
}


/* all strings but this text.  Negations of "enum" are those of its values */

static llm_rx_t
llm_schema_string_excluded(llm_schema_t *s, const llm_schema_atom_t *a)
{
    llm_str_t  one;

    if (a->value->type != LLM_FLAT_STRING) {
        return LLM_RX_TEXT;
    }

    one = llm_flat_str(a->value);

    return llm_rx_not(s->pool, llm_rx_literal(s->pool, one.data, one.len));
}


int
llm_schema_string(llm_schema_t *s, const llm_schema_branch_t *b,
    llm_rx_t *rx)
{
    int                       rc;
    uint64_t                  min, max;
    llm_rx_t                  one;
    const llm_schema_atom_t  *a;

    for (a = b->atoms; a; a = a->prev) {
        if ((a->kw == LLM_KW_ENUM || a->kw == LLM_KW_CONST) && !a->neg) {
            return llm_schema_string_enum(s, b, a, rx);
        }
    }

    if (llm_schema_lengths(s, b, &min, &max) != LLM_OK) {
        return LLM_ERROR;
    }

    if (min > max) {
        *rx = LLM_RX_NONE;
        return LLM_OK;
    }

    *rx = LLM_RX_TEXT;

    if (min || max != LLM_RX_NO_MAX) {
        *rx = llm_rx_repeat(s->pool, LLM_RX_CHAR, (uint32_t) min,
                            (uint32_t) max);
    }

    for (a = b->atoms; a; a = a->prev) {
        if (a->kw == LLM_KW_ENUM || a->kw == LLM_KW_CONST) {
            one = llm_schema_string_excluded(s, a);
            *rx = llm_rx_and(s->pool, *rx, one);
            continue;
        }

        rc = llm_schema_string_atom(s, a, &one);
        if (rc == LLM_ERROR) {
            return LLM_ERROR;
        }

        if (rc == LLM_OK) {
            *rx = llm_rx_and(s->pool, *rx,
                             a->neg ? llm_rx_not(s->pool, one) : one);
        }
    }

    return LLM_OK;
}
