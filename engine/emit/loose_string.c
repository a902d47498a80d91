/*
 * Reads keys and strings that are almost JSON; see loose.h.
 *
 * A quote in a string may be unescaped.  So a string ends only at a quote
 * after which there is something that can follow a string.
 */

#include "engine/emit/loose_internal.h"


/* ---- keys ---- */

/* reads the key at *p, without its quotes, and moves *p past it */

static int
llm_loose_name(const llm_loose_t *r, const char **p, llm_str_t *key)
{
    size_t       n;
    llm_str_t    q;
    const char  *s;

    q = llm_loose_is_quote(r, *p) ? r->quote
        : **p == '"' || **p == '\'' ? (llm_str_t) { 1, *p }
        : (llm_str_t) { 0, NULL };
    s = *p + q.len;

    for (n = 0; s + n < r->end && n <= LLM_LOOSE_NAME; n++) {
        if (q.len == 0 ? !llm_loose_is_name(s[n])
            : s[n] == q.data[0] || s[n] == '\n' || s[n] == '\\')
        {
            break;
        }
    }

    if (n == 0 || n > LLM_LOOSE_NAME || (size_t) (r->end - s) < n + q.len
        || (q.len && memcmp(s + n, q.data, q.len) != 0))
    {
        return 0;
    }

    *key = (llm_str_t) { n, s };
    *p = s + n + q.len;

    return 1;
}


/* moves *p past a colon, or what stands for one */

static int
llm_loose_colon(const llm_loose_t *r, const char **p)
{
    *p = llm_loose_skip(r, *p);

    if (*p == r->end || (**p != ':' && **p != '=')) {
        return 0;
    }

    (*p)++;

    return 1;
}


int
llm_loose_is_key(const llm_loose_t *r, const char *p)
{
    llm_str_t  key;

    return p < r->end && (r->bare || *p == '"' || *p == '\''
                          || llm_loose_is_quote(r, p))
           && llm_loose_name(r, &p, &key) && llm_loose_colon(r, &p);
}


/* is there the beginning of a key, up to the end of the text? */

static int
llm_loose_may_key(const llm_loose_t *r, const char *p)
{
    llm_str_t    key;
    const char  *s;

    if (r->closes == LLM_LOOSE_MARK || p == r->end) {
        return p == r->end;
    }

    if (llm_loose_is_quote(r, p) || *p == '"' || *p == '\'') {
        s = p;

        if (llm_loose_name(r, &s, &key)) {
            return llm_loose_skip(r, s) == r->end;
        }

        p += *p == '"' || *p == '\'' ? 1 : r->quote.len;
    }

    while (p < r->end && llm_loose_is_name(*p)) {
        p++;
    }

    return p == r->end;
}


int
llm_loose_key_cut(const llm_loose_t *r)
{
    return r->closes != LLM_LOOSE_MARK && llm_loose_may_key(r, r->p);
}


int
llm_loose_key(llm_loose_t *r, llm_str_t *key)
{
    const char  *p;

    p = r->p;

    if (!llm_loose_name(r, &p, key) || !llm_loose_colon(r, &p)) {
        return LLM_ERROR;
    }

    r->p = p;

    return LLM_OK;
}


/* ---- strings ---- */

/* may a string end before p?  Something that can follow a value must follow */

static int
llm_loose_ends(const llm_loose_t *r, const char *p)
{
    int  closed;

    p = llm_loose_skip(r, p);

    for (closed = 0; p < r->end && llm_loose_is_closer(*p); closed = 1) {
        p = llm_loose_skip(r, p + 1);
    }

    if (p == r->end) {
        return 1;
    }

    if (*p != ',' && *p != ';') {
        return (r->within != ']' || closed)
               && (llm_loose_is_key(r, p)
                   || (*p == '"' && llm_loose_may_key(r, p)));
    }

    p = llm_loose_skip(r, p + 1);

    return llm_loose_may_key(r, p) || llm_loose_is_closer(*p)
           || llm_loose_is_key(r, p)
           || ((r->within == ']' || closed) && llm_loose_begins_value(*p));
}


/* are there several strings, as in an array of "a" "b"?  Their quotes are next
   to words, not within a text */

static int
llm_loose_parts(const llm_loose_t *r, const char *quote)
{
    const char  *p;

    p = llm_loose_skip(r, quote + 1);

    return p > quote + 1 && p + 1 < r->end && *p == *quote
           && !llm_mark_is_space(p[1]) && !llm_mark_is_space(quote[-1]);
}


/* reads a backslash and what belongs to it, as strict reading does */

static int
llm_loose_escape(llm_loose_t *r)
{
    size_t     n;
    llm_lit_t  lit;
    llm_buf_t  b;
    char       s[8];

    n = r->end - r->p > 1 && r->p[1] == 'u' ? 6 : 2;

    if ((size_t) (r->end - r->p) < n) {
        r->more = 1;
        return LLM_MORE;
    }

    /* reads the escape as a string of its own */

    s[0] = '"';
    memcpy(s + 1, r->p, n);
    s[n + 1] = '"';

    llm_buf_init(&b, 0);
    llm_lit_init(&lit, (llm_str_t) { n + 2, s }, llm_str(""), &b);

    if (llm_lit_value(&lit) == LLM_OK && lit.p == lit.end) {
        llm_loose_put(r, b.data + 1, b.len - 2);
        r->p += n;

    } else {
        llm_loose_put(r, "\\\\", 2);
        r->p++;
    }

    llm_buf_free(&b);

    return LLM_OK;
}


static void
llm_loose_char(llm_loose_t *r, char c)
{
    if (r->out) {
        llm_lit_char(r->out, c);
    }
}


int
llm_loose_string(llm_loose_t *r)
{
    int   rc;
    char  q;

    q = *r->p++;
    llm_loose_put(r, "\"", 1);

    for ( /* void */ ; r->p < r->end; r->p++) {

        if (*r->p == q && (llm_loose_ends(r, r->p + 1)
                           || (r->within == ']' && llm_loose_parts(r, r->p))))
        {
            r->p++;
            llm_loose_put(r, "\"", 1);
            return LLM_OK;
        }

        if (*r->p == '\\') {
            rc = llm_loose_escape(r);

            if (rc != LLM_OK) {
                return rc;
            }

            r->p--;
            continue;
        }

        llm_loose_char(r, *r->p);
    }

    r->more = 1;

    return LLM_MORE;
}


int
llm_loose_quoted(llm_loose_t *r)
{
    const char  *end;

    r->p += r->quote.len;
    end = memmem(r->p, (size_t) (r->end - r->p), r->quote.data, r->quote.len);
    llm_loose_put(r, "\"", 1);

    for ( /* void */ ; r->p < (end ? end : r->end); r->p++) {

        /* the quote may be incomplete */

        if (end == NULL && (size_t) (r->end - r->p) < r->quote.len
            && memcmp(r->p, r->quote.data, (size_t) (r->end - r->p)) == 0)
        {
            break;
        }

        llm_loose_char(r, *r->p);
    }

    if (end == NULL) {
        r->more = 1;
        return LLM_MORE;
    }

    r->p += r->quote.len;
    llm_loose_put(r, "\"", 1);

    return LLM_OK;
}


/* ---- names ---- */

static int
llm_loose_in_names(char c)
{
    return llm_loose_is_name(c) || c == ':' || c == '/';
}


llm_str_t
llm_loose_word_at(const char *p, const char *end)
{
    size_t  n;

    for (n = 0; p + n < end && llm_loose_in_names(p[n]); n++) {
        /* void */
    }

    while (n && p[n - 1] == ':') {
        n--;
    }

    return (llm_str_t) { n, p };
}
