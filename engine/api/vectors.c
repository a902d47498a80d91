/*
 * What the endpoints that embed share, in all dialects: the reader of their
 * inputs, and the writer of a vector's values, a few at a time.
 */

#include "engine/api/endpoint.h"

/* most values that are written at once */
#define LLM_API_VALUES  96


/* an empty input has no vector */

static int
llm_api_no_input(const llm_flat_t *v, const llm_api_at_t *at,
    const char *param, llm_err_t *err)
{
    return v->type == LLM_FLAT_STRING && v->count == 0
           ? llm_api_bad_value(err, at, "Invalid '%s': it cannot be an "
                               "empty string.", param)
           : LLM_OK;
}


static int
llm_api_check_inputs(const llm_flat_t *v, const char *param, llm_err_t *err)
{
    uint32_t             i;
    const llm_flat_t    *item;
    const llm_api_at_t  *at;

    at = llm_api_top(param);

    if (v->type != LLM_FLAT_ARRAY) {
        return llm_api_no_input(v, at, param, err);
    }

    item = llm_flat_first(v);

    for (i = 0; item; i++, item = llm_flat_next(v, item)) {
        if (llm_api_no_input(item, llm_api_idx(at, i), param, err) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


int
llm_api_read_inputs(llm_api_reader_t *rd, const llm_api_body_t *b,
    const llm_flat_t *input, const char *param, unsigned forms,
    llm_err_t *err)
{
    int             rc;
    llm_request_t  *r;

    r = &rd->r;
    r->kind = LLM_KIND_COMPLETION;

    if (llm_api_read_priority(rd, b, err) != LLM_OK
        || llm_api_check_inputs(input, param, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    rc = llm_api_write_forms(input, forms, llm_api_top(param), LLM_MAX_INPUTS,
                             rd->msg, &r->prompts, err);

    if (rc != LLM_OK) {
        return LLM_ERROR;
    }

    r->sampling = b->sampling;
    r->normalize = LLM_NORMALIZE_L2;
    rd->n_choices = r->prompts.len;

    return LLM_OK;
}


void
llm_api_first_value(const llm_api_t *a, llm_api_cursor_t *cur)
{
    cur->piece = a->choices[cur->choice].own.first;
    cur->some = 0;
    cur->at = 0;
}


int
llm_api_write_values(llm_api_cursor_t *cur, llm_base64_t *base64,
    llm_buf_t *out)
{
    uint32_t            i, n, at;
    const float        *v;
    const llm_event_t  *ev;

    if (cur->piece == NULL) {
        return LLM_OK;
    }

    ev = cur->piece->ev;
    v = (const float *) llm_ref_data(ev, ev->u.vector.values) + cur->at;
    n = llm_min(ev->u.vector.values.len - cur->at, LLM_API_VALUES);
    cur->at += n;

    if (base64) {
        llm_base64_add(base64, out, v, n * sizeof(*v));

    } else {
        at = ev->u.vector.first + cur->at - n;

        for (i = 0; i < n; i++) {
            if (cur->some) {
                (void) llm_buf_adds(out, ev->u.vector.width
                                         && (at + i) % ev->u.vector.width == 0
                                         ? "],[" : ",");
            }

            llm_api_add_float(out, v[i]);
            cur->some = 1;
        }
    }

    if (cur->at == ev->u.vector.values.len) {
        cur->piece = cur->piece->next;
        cur->at = 0;
    }

    return LLM_MORE;
}


int
llm_api_write_vector(llm_api_t *a, llm_api_cursor_t *cur, llm_buf_t *out)
{
    if (!cur->opened) {
        (void) llm_buf_adds(out, cur->choice ? ",[" : "[");
        llm_api_first_value(a, cur);
        cur->opened = 1;
    }

    if (llm_api_write_values(cur, NULL, out) == LLM_MORE) {
        return LLM_MORE;
    }

    (void) llm_buf_addc(out, ']');
    cur->opened = 0;

    return LLM_OK;
}
