/*
 * Letters: classes and case; see case.h.
 */

#include "engine/text/jinja/case.h"

typedef struct {
    uint32_t     first;
    uint32_t     last;
    uint32_t     step;                  /* every one or every second */
} llm_jc_range_t;

typedef struct {
    uint32_t     first;
    uint32_t     last;
    uint32_t     step;
    int32_t      delta;
} llm_jc_run_t;

typedef struct {
    uint32_t     from;
    uint32_t     to[3];                 /* 0 behind the last */
} llm_jc_special_t;

#include "engine/text/jinja/case_tables.h"

#define llm_jc_table(t)  { t, llm_nelems(t) }

static const struct {
    const llm_jc_range_t  *v;
    size_t                 n;
} llm_jc_classes[] = {
    [LLM_JC_ALPHA] = llm_jc_table(llm_jc_alpha),
    [LLM_JC_DECIMAL] = llm_jc_table(llm_jc_decimal),
    [LLM_JC_DIGIT] = llm_jc_table(llm_jc_digit),
    [LLM_JC_NUMERIC] = llm_jc_table(llm_jc_numeric),
    [LLM_JC_UPPER] = llm_jc_table(llm_jc_upper_case),
    [LLM_JC_LOWER] = llm_jc_table(llm_jc_lower_case),
    [LLM_JC_TITLE] = llm_jc_table(llm_jc_title_case),
    [LLM_JC_HIDDEN] = llm_jc_table(llm_jc_hidden)
};


int
llm_jc_is(uint32_t c, llm_jc_class_t class)
{
    size_t                 lo, hi, mid;
    const llm_jc_range_t  *v;

    if (class == LLM_JC_CASED) {
        return llm_jc_is(c, LLM_JC_UPPER) || llm_jc_is(c, LLM_JC_LOWER)
               || llm_jc_is(c, LLM_JC_TITLE);
    }

    v = llm_jc_classes[class].v;
    lo = 0;
    hi = llm_jc_classes[class].n;

    while (lo < hi) {
        mid = (lo + hi) / 2;

        if (c < v[mid].first) {
            hi = mid;

        } else if (c > v[mid].last) {
            lo = mid + 1;

        } else {
            return (c - v[mid].first) % v[mid].step == 0;
        }
    }

    return 0;
}


static size_t
llm_jc_map_special(uint32_t c, const llm_jc_special_t *v, size_t n,
    uint32_t *out)
{
    size_t  i, k;

    for (i = 0; i < n && v[i].from <= c; i++) {
        if (v[i].from == c) {
            for (k = 0; k < 3 && v[i].to[k]; k++) {
                out[k] = v[i].to[k];
            }

            return k;
        }
    }

    return 0;
}


/* 1 and *out if a run covers c (maybe with itself), else 0 */

static size_t
llm_jc_map_run(uint32_t c, const llm_jc_run_t *v, size_t n, uint32_t *out)
{
    size_t  lo, hi, mid;

    lo = 0;
    hi = n;

    while (lo < hi) {
        mid = (lo + hi) / 2;

        if (c < v[mid].first) {
            hi = mid;

        } else if (c > v[mid].last) {
            lo = mid + 1;

        } else {
            if ((c - v[mid].first) % v[mid].step) {
                return 0;
            }

            *out = (uint32_t) ((int32_t) c + v[mid].delta);

            return 1;
        }
    }

    return 0;
}


#define llm_jc_map(c, name, out)                                             \
    (llm_jc_map_special(c, llm_jc_to_ ## name ## _special,                   \
                        llm_nelems(llm_jc_to_ ## name ## _special), out)     \
     ?: llm_jc_map_run(c, llm_jc_to_ ## name,                                \
                       llm_nelems(llm_jc_to_ ## name), out))


size_t
llm_jc_upper(uint32_t c, uint32_t *out)
{
    size_t  n;

    out[0] = c;

    if (c < 0x80) {
        out[0] = (c >= 'a' && c <= 'z') ? c - 32 : c;
        return 1;
    }

    n = llm_jc_map(c, upper, out);

    return n ? n : 1;
}


/* the tables of titles hold only what differs from upper case */

size_t
llm_jc_title(uint32_t c, uint32_t *out)
{
    size_t  n;

    n = c < 0x80 ? 0 : llm_jc_map(c, title, out);

    return n ? n : llm_jc_upper(c, out);
}


size_t
llm_jc_lower(uint32_t c, uint32_t *out)
{
    size_t  n;

    out[0] = c;

    if (c < 0x80) {
        out[0] = (c >= 'A' && c <= 'Z') ? c + 32 : c;
        return 1;
    }

    n = llm_jc_map(c, lower, out);

    return n ? n : 1;
}


/*
 * Is the capital sigma at p the last letter of a word?  Python looks past
 * what case ignores; here that is what has no case and is no letter, in one
 * step.
 */

static int
llm_jc_final_sigma(const char *start, const char *p, const char *end)
{
    size_t       len;
    const char  *q;

    if (p == start) {
        return 0;
    }

    q = llm_jc_prev(start, p);

    if (!llm_jc_is(llm_jc_decode(q, p, &len), LLM_JC_CASED)) {
        return 0;
    }

    q = p + 2;

    return q >= end || !llm_jc_is(llm_jc_decode(q, end, &len), LLM_JC_CASED);
}


int
llm_jb_add_mapped(llm_jb_t *b, const llm_js_t *s, size_t start, size_t end,
    llm_jc_mapping_t mapping)
{
    int          first;
    char         buf[16];
    size_t       len, size, n, i;
    uint32_t     c, to[3];
    const char  *base, *p, *stop;

    base = llm_js_data(s);
    stop = base + end;
    first = 1;

    if (llm_jrt_charge(b->rt, (end - start) * LLM_J_CLASSIFIED) != LLM_OK) {
        return LLM_ERROR;
    }

    for (p = base + start; p < stop; p += len) {
        c = llm_jc_decode(p, stop, &len);

        if (len == 1 && (unsigned char) *p >= 0x80) {
            n = 0;

        } else if (mapping == LLM_JC_TO_UPPER
                   || (mapping == LLM_JC_TO_SWAPPED
                       && llm_jc_is(c, LLM_JC_LOWER)))
        {
            n = llm_jc_upper(c, to);

        } else if (first && (mapping == LLM_JC_TO_CAPITAL
                             || mapping == LLM_JC_TO_TITLE))
        {
            n = llm_jc_title(c, to);

        } else if (mapping == LLM_JC_TO_SWAPPED
                   && !llm_jc_is(c, LLM_JC_UPPER))
        {
            n = 0;

        } else {
            n = llm_jc_lower(c, to);

            if (c == 0x3a3 && llm_jc_final_sigma(base, p, stop)) {
                to[0] = 0x3c2;
            }
        }

        first = mapping == LLM_JC_TO_TITLE && !llm_jc_is(c, LLM_JC_CASED);

        if (n == 0) {
            if (llm_jb_add_range(b, s, (size_t) (p - base),
                                 (size_t) (p - base) + len) != LLM_OK)
            {
                return LLM_ERROR;
            }

            continue;
        }

        for (i = 0, size = 0; i < n; i++) {
            size += llm_jc_encode(to[i], buf + size);
        }

        if (llm_jb_add(b, buf, size, llm_js_trusted_at(s, (size_t) (p - base)))
            != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}
