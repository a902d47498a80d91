/*
 * Reads values that are almost JSON; see loose.h.
 *
 * The output is JSON, or the beginning of JSON if the text ends too early.
 */

#include "engine/emit/loose_internal.h"
#include "engine/emit/types.h"


void
llm_loose_space(llm_loose_t *r)
{
    r->p = llm_loose_skip(r, r->p);
}


/* the end of the line, or the closing bracket, or the beginning of the next
   value */

static const char *
llm_loose_word_end(const llm_loose_t *r)
{
    const char  *p, *next;

    next = r->p;

    for (p = r->p; p < r->end; p++) {
        if ((llm_loose_is_closer(*p) && *p == r->within) || *p == '\n'
            || (*p == ',' && (r->within == ']'
                              || llm_loose_is_key(r, llm_loose_skip(r,
                                                                    p + 1)))))
        {
            break;
        }

        /* what follows white space is looked at only once */

        if (p >= next && llm_mark_is_space(*p)) {
            next = llm_loose_skip(r, p);

            if (r->within != ']' && llm_loose_is_key(r, next)) {
                break;
            }
        }
    }

    return p;
}


/* reads a number, true, false, null, or text without quotes where the schema
   wants a string */

static int
llm_loose_word(llm_loose_t *r, const llm_flat_t *schema)
{
    size_t       n;
    unsigned     types;
    llm_lit_t    lit;
    llm_str_t    s;
    const char  *p;

    p = llm_loose_word_end(r);

    for (n = (size_t) (p - r->p); n && (llm_mark_is_space(r->p[n - 1])
                                        || r->p[n - 1] == ','); n--)
    {
        /* void */
    }

    s = (llm_str_t) { n, r->p };

    /* a word at the end of the text may continue */

    r->more = p == r->end && r->closes != LLM_LOOSE_MARK;

    if (n == 0) {
        return r->more ? LLM_MORE : LLM_ERROR;
    }

    /* a literal's end is found by reading it */

    llm_lit_init(&lit, s, llm_str(""), NULL);

    if (llm_loose_begins_value(*s.data) && llm_lit_value(&lit) == LLM_OK
        && (lit.p == lit.end || llm_loose_is_closer(*lit.p)
            || *lit.p == ',' || llm_loose_is_key(r, lit.p)))
    {
        s.len = (size_t) (lit.p - s.data);

        while (llm_mark_is_space(s.data[s.len - 1])) {
            s.len--;
        }

        llm_lit_init(&lit, s, llm_str(""), r->out);
        r->p += s.len;
        r->more &= r->p == r->end;

        return llm_lit_value(&lit) != LLM_OK ? LLM_ERROR
               : r->more ? LLM_MORE : LLM_OK;
    }

    types = schema ? llm_types_of(r->root, schema) : 0;

    if (r->more) {
        return LLM_MORE;
    }

    if (types != LLM_TYPE_STRING || (r->within && memchr(s.data, '"', s.len))) {
        return LLM_ERROR;
    }

    r->p += n;

    return r->out ? llm_lit_quote(s, r->out) : LLM_OK;
}


/* handles the end of the text within brackets */

static int
llm_loose_short(llm_loose_t *r, const char *close)
{
    if (!r->closes) {
        return LLM_MORE;
    }

    llm_loose_put(r, close, 1);

    return LLM_OK;
}


/* reads what is between two values: 1 if there is another value */

int
llm_loose_next(llm_loose_t *r, char close, uint32_t n)
{
    const char  *start;

    start = r->p;
    llm_loose_space(r);

    if (r->p < r->end && n && (*r->p == ',' || *r->p == ';')) {
        r->p++;
        start = r->p;
        llm_loose_space(r);

        if (r->p == r->end || (close && *r->p == close)) {
            return 0;
        }

        llm_loose_put(r, ",", 1);

    } else if (r->p == r->end || (close && *r->p == close)) {
        return 0;

    } else if (n) {
        llm_loose_put(r, ", ", 2);
        return 1;
    }

    llm_loose_put(r, start, (size_t) (r->p - start));

    return 1;
}


int
llm_loose_members(llm_loose_t *r, const llm_flat_t *schema, char close)
{
    int         rc, bare, within;
    size_t      start;
    uint32_t    n;
    llm_str_t   key;

    bare = r->bare;
    within = r->within;
    llm_loose_put(r, "{", 1);

    for (n = 0; /* void */ ; n++) {
        r->within = close;
        start = r->out ? r->out->len : 0;

        if (!llm_loose_next(r, close, n)) {
            break;
        }

        if (n == 0) {
            r->bare = llm_loose_is_name(*r->p);
        }

        if (llm_loose_key(r, &key) != LLM_OK) {

            /* an incomplete key is not written */

            if (r->out) {
                r->out->len = start;
            }

            r->more = llm_loose_key_cut(r);

            return r->more ? LLM_MORE : LLM_ERROR;
        }

        if (r->out) {
            (void) llm_lit_quote(key, r->out);
        }

        llm_loose_put(r, ":", 1);

        if (r->p < r->end && *r->p == ' ') {
            llm_loose_put(r, " ", 1);
        }

        llm_loose_space(r);
        rc = llm_loose_value(r, llm_type_schema(r->root, schema, key));

        if (rc != LLM_OK) {
            return rc;
        }
    }

    r->bare = bare;
    r->within = (char) within;

    if (r->p == r->end && close) {
        return llm_loose_short(r, "}");
    }

    r->p += close != 0;

    if (close == 0 && !r->closes) {
        return LLM_MORE;
    }

    llm_loose_put(r, "}", 1);

    return LLM_OK;
}


static int
llm_loose_items(llm_loose_t *r, const llm_flat_t *schema)
{
    int                rc;
    char               within;
    uint32_t           n;
    const llm_flat_t  *items;

    within = r->within;
    llm_loose_put(r, "[", 1);
    items = schema && schema->type == LLM_FLAT_OBJECT
            ? llm_flat_get(schema, "items") : NULL;

    for (n = 0; /* void */ ; n++) {
        r->within = ']';

        if (!llm_loose_next(r, ']', n)) {
            break;
        }

        rc = llm_loose_value(r, items);

        if (rc != LLM_OK) {
            return rc;
        }
    }

    r->within = within;

    if (r->p == r->end) {
        return llm_loose_short(r, "]");
    }

    r->p++;
    llm_loose_put(r, "]", 1);

    return LLM_OK;
}


int
llm_loose_value(llm_loose_t *r, const llm_flat_t *schema)
{
    int  rc;

    llm_loose_space(r);

    if (r->p == r->end) {
        r->more = 1;
        return LLM_MORE;
    }

    if (llm_loose_is_quote(r, r->p)) {
        return llm_loose_quoted(r);
    }

    if (*r->p == '"' || *r->p == '\'') {
        return llm_loose_string(r);
    }

    if (*r->p != '{' && *r->p != '[') {
        return llm_loose_word(r, schema);
    }

    if (r->depth == LLM_LIT_DEPTH) {
        return LLM_ERROR;
    }

    r->depth++;
    rc = *r->p++ == '{' ? llm_loose_members(r, schema, '}')
                        : llm_loose_items(r, schema);
    r->depth--;

    return rc;
}
