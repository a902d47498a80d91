/*
 * Reads parameters between marks, some of which are missing; see loose.h.
 */

#include "engine/emit/loose_internal.h"
#include "engine/emit/types.h"


/* reads the mark between a key and its value, which may lack its first or its
   last tag, or have something between its tags */

static int
llm_loose_key_end(llm_loose_list_t *l, llm_cut_t *key, int *is_text)
{
    size_t       len, n;
    llm_str_t    first, end, rest;
    const char  *p, *start, *last;

    end = l->c->form->key_end;
    first = llm_mark_tag(end);
    last = first.len ? memrchr(end.data, '<', end.len) : NULL;
    rest = (llm_str_t) { 0, "" };

    if (last && last > end.data) {
        rest = (llm_str_t) { (size_t) (end.data + end.len - last), last };
    }

    len = 0;
    start = l->r.p;
    key->off = (size_t) (start - l->text.data);

    for (p = start; p < l->r.end && p - start <= LLM_LOOSE_KEY; p++) {

        *is_text = llm_loose_mark(l, l->c->form->key_end_text, p, &len)
                   == LLM_MARK_WHOLE;

        if (*is_text || llm_loose_mark(l, end, p, &len) == LLM_MARK_WHOLE) {
            break;
        }

        if (llm_loose_mark(l, rest, p, &len) == LLM_MARK_WHOLE) {
            break;
        }

        if (rest.len
            && llm_loose_mark(l, first, p, &len) == LLM_MARK_WHOLE)
        {
            for (n = len; p + n < l->r.end && n < len + 8
                 && (llm_mark_is_space(p[n]) || p[n] == ':' || p[n] == '=');
                 n++)
            {
                /* void */
            }

            if (llm_loose_mark(l, rest, p + n, &len) == LLM_MARK_WHOLE) {
                n += len;
            }

            len = n;
            break;
        }
    }

    if (p == l->r.end) {
        return l->r.closes ? LLM_ERROR : LLM_MORE;
    }

    key->len = (size_t) (p - start);
    l->r.p = p + len;

    return key->len && p - start <= LLM_LOOSE_KEY ? LLM_OK : LLM_ERROR;
}


/* does another of the tool's parameters begin at p? */

static int
llm_loose_at_key(const llm_loose_list_t *l, const char *p)
{
    size_t  len;

    return llm_loose_mark(l, l->c->form->key, p, &len) == LLM_MARK_WHOLE
           && llm_type_schema(l->tool->schema, l->tool->schema,
                              llm_loose_word_at(p + len, l->r.end));
}


static int
llm_loose_param(llm_loose_list_t *l)
{
    int           rc, is_text;
    size_t        len;
    llm_param_t   param;
    const char   *p;

    memset(&param, 0, sizeof(param));
    rc = llm_loose_key_end(l, &param.key, &is_text);

    if (rc != LLM_OK) {
        return rc;
    }

    param.is_text = is_text;
    param.is_data = l->c->form->key_end_text.len && !is_text;
    param.value.off = (size_t) (l->r.p - l->text.data);
    len = 0;

    for (p = l->r.p; p < l->r.end; p++, len = 0) {
        if (llm_loose_mark(l, l->c->form->value_end, p, &len)
            == LLM_MARK_WHOLE)
        {
            break;
        }

        if (llm_loose_at_key(l, p)) {
            len = 0;
            break;
        }
    }

    if (p == l->r.end && l->r.closes != LLM_LOOSE_MARK) {
        return LLM_MORE;
    }

    param.value.len = (size_t) (p - l->text.data) - param.value.off;
    l->r.p = p + len;

    return llm_buf_add(&l->c->params, &param, sizeof(param));
}


/* writes the complete parameters as an object without its last brace */

static int
llm_loose_add_params(llm_loose_list_t *l)
{
    size_t  i, n;

    n = l->c->params.len / sizeof(llm_param_t);

    for (i = 0; i < n; i++) {
        (void) llm_buf_adds(&l->json, i ? ", " : "{");

        if (llm_call_param(l->c, l->text, i, l->tool->schema, &l->json)
            != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    l->has_args = 1;

    return LLM_OK;
}


int
llm_loose_params(llm_loose_list_t *l)
{
    int     rc;
    size_t  len;

    l->c->params.len = 0;
    rc = LLM_OK;

    while (rc == LLM_OK) {
        llm_loose_space(&l->r);

        if (l->r.p == l->r.end) {
            break;
        }

        rc = llm_loose_mark(l, l->c->form->key, l->r.p, &len);

        if (rc == LLM_MARK_WHOLE) {
            l->r.p += len;
            rc = llm_loose_param(l);

        } else {
            rc = rc == LLM_MARK_PART && !l->r.closes ? LLM_MORE : LLM_ERROR;

            /* without an end mark the call ends with a value's */

            if (rc == LLM_ERROR && l->c->params.len
                && l->r.closes == LLM_LOOSE_TURN)
            {
                l->stopped = 1;
                rc = LLM_OK;
                break;
            }
        }
    }

    if (rc == LLM_ERROR || llm_loose_add_params(l) != LLM_OK) {
        return LLM_ERROR;
    }

    if (rc == LLM_MORE || !l->r.closes) {
        return LLM_MORE;
    }

    return llm_buf_adds(&l->json, l->c->params.len ? "}" : "{}");
}
