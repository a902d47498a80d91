/*
 * Matches marks in a text; see format.h.
 */

#include "engine/emit/format.h"

/* longer white space belongs to no mark, so that it need not be looked at
   again with every byte that comes */
#define LLM_MARK_SPACE  64


/* matches white space of the mark at *m with that of the text at *t */

static llm_mark_t
llm_mark_space(llm_str_t mark, size_t *m, const char *p, size_t n, size_t *t)
{
    int     needed;
    size_t  start;

    needed = *m && llm_mark_is_word(mark.data[*m - 1]);

    while (*m < mark.len && llm_mark_is_space(mark.data[*m])) {
        (*m)++;
    }

    if (*m == mark.len) {
        if (*t == n && needed) {
            return LLM_MARK_PART;
        }

        if (*t < n && llm_mark_is_space(p[*t])) {
            (*t)++;
            return LLM_MARK_WHOLE;
        }

        return needed ? LLM_MARK_NO : LLM_MARK_WHOLE;
    }

    for (start = *t; *t < n && llm_mark_is_space(p[*t]); (*t)++) {
        if (*t - start == LLM_MARK_SPACE) {
            return LLM_MARK_NO;
        }
    }

    if (*t == n) {
        return LLM_MARK_PART;
    }

    return needed && *t == start ? LLM_MARK_NO : LLM_MARK_WHOLE;
}


llm_mark_t
llm_mark_match(llm_str_t mark, const char *p, size_t n, size_t *len)
{
    size_t      m, t, skipped;
    llm_str_t   rest;
    llm_mark_t  rc;

    m = 0;
    t = 0;

    while (m < mark.len) {

        if (mark.data[m] == LLM_MARK_ANY) {
            rest.data = mark.data + m + 1;
            rest.len = mark.len - m - 1;

            for (skipped = 0; skipped <= LLM_MARK_MOST; skipped++, t++) {
                rc = llm_mark_match(rest, p + t, n - t, len);

                if (rc != LLM_MARK_NO) {
                    *len += t;
                    return rc;
                }

                if (t == n || p[t] == '\n') {
                    return t == n ? LLM_MARK_PART : LLM_MARK_NO;
                }
            }

            return LLM_MARK_NO;
        }

        if (llm_mark_is_space(mark.data[m])) {
            rc = llm_mark_space(mark, &m, p, n, &t);

            if (rc != LLM_MARK_WHOLE) {
                *len = t;
                return rc;
            }

            continue;
        }

        if (t == n) {
            *len = t;
            return LLM_MARK_PART;
        }

        if (p[t] != mark.data[m]) {
            return LLM_MARK_NO;
        }

        t++;
        m++;
    }

    *len = t;

    return LLM_MARK_WHOLE;
}


llm_str_t
llm_mark_tag(llm_str_t mark)
{
    char         end;
    const char  *p;

    if (mark.len == 0 || (mark.data[0] != '<' && mark.data[0] != '[')) {
        return (llm_str_t) { 0, "" };
    }

    end = mark.data[0] == '<' ? '>' : ']';
    p = memchr(mark.data, end, mark.len);

    return p ? (llm_str_t) { (size_t) (p - mark.data) + 1, mark.data }
             : (llm_str_t) { 0, "" };
}


llm_str_t
llm_mark_last_tag(llm_str_t mark)
{
    size_t  n;

    for (n = mark.len; n; n--) {
        if (mark.data[n - 1] == '<' || mark.data[n - 1] == '[') {
            return (llm_str_t) { mark.len - n + 1, mark.data + n - 1 };
        }
    }

    return (llm_str_t) { 0, "" };
}


llm_str_t
llm_form_inner(const llm_form_t *form)
{
    size_t     n;
    llm_str_t  begin;

    begin = form->begin;

    if (form->kind != LLM_FORM_PARAMS || llm_mark_tag(begin).len == 0) {
        return (llm_str_t) { 0, "" };
    }

    for (n = begin.len; n && begin.data[n - 1] != '<'; n--) {
        if (begin.data[n - 1] == '>') {
            return (llm_str_t) { 0, "" };
        }
    }

    return n > 1 ? (llm_str_t) { begin.len - n + 1, begin.data + n - 1 }
                 : (llm_str_t) { 0, "" };
}
