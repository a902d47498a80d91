/*
 * Strings: all that is said about them is a regular language, and all of a
 * branch together the intersection.
 */

#include "engine/grammar/schema_internal.h"


/* v: the keyword, or the key if the pattern is one */

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


/* the strings of an enumeration */

static int
llm_schema_string_enum(llm_schema_t *s, const llm_schema_atom_t *a,
    llm_rx_t *rx)
{
    uint32_t           n;
    llm_str_t         *texts, one;
    const llm_flat_t  *c;

    if (a->kw == LLM_KW_CONST) {
        *rx = LLM_RX_NONE;

        if (a->value->type == LLM_FLAT_STRING) {
            one = llm_flat_str(a->value);
            *rx = llm_rx_literal(s->pool, one.data, one.len);
        }

        return LLM_OK;
    }

    texts = llm_schema_alloc(s, (a->value->count + 1) * sizeof(llm_str_t));
    if (texts == NULL) {
        return LLM_ERROR;
    }

    n = 0;

    for (c = llm_flat_first(a->value); c; c = llm_flat_next(a->value, c)) {
        if (c->type == LLM_FLAT_STRING) {
            texts[n++] = llm_flat_str(c);
        }
    }

    *rx = llm_rx_literals(s->pool, texts, n);

    return LLM_OK;
}


/* what one atom allows; LLM_ABSENT: it says nothing about strings */

static int
llm_schema_string_atom(llm_schema_t *s, const llm_schema_atom_t *a,
    llm_rx_t *rx)
{
    switch (a->kw) {

    case LLM_KW_ENUM:
    case LLM_KW_CONST:
        return llm_schema_string_enum(s, a, rx);

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


int
llm_schema_string(llm_schema_t *s, const llm_schema_branch_t *b,
    llm_rx_t *rx)
{
    int                       rc;
    uint32_t                  n, min, max;
    llm_rx_t                  one;
    const llm_schema_atom_t  *a;

    *rx = LLM_RX_TEXT;
    min = 0;
    max = LLM_RX_NO_MAX;

    for (a = b->atoms; a; a = a->prev) {

        /* lengths are one range, which is cheaper than their intersection */

        if (a->kw == LLM_KW_MIN_LENGTH || a->kw == LLM_KW_MAX_LENGTH) {
            if (llm_schema_count(s, a->value, &n) != LLM_OK) {
                return LLM_ERROR;
            }

            if ((a->kw == LLM_KW_MIN_LENGTH) == !a->neg) {
                min = llm_max(min, a->neg ? n + 1 : n);

            } else if (a->neg && n == 0) {
                *rx = LLM_RX_NONE;
                return LLM_OK;

            } else {
                max = llm_min(max, a->neg ? n - 1 : n);
            }

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

    if (min > max) {
        *rx = LLM_RX_NONE;

    } else if (min || max != LLM_RX_NO_MAX) {
        *rx = llm_rx_and(s->pool, *rx,
                         llm_rx_repeat(s->pool, LLM_RX_CHAR, min, max));
    }

    return LLM_OK;
}
