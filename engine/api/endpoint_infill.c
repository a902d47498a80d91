/*
 * POST /infill, llama.cpp's: the texts before and after a gap in, the text
 * that fills the gap out, streamed or not.
 */

#include "engine/api/llama.h"

#define AT(f)  offsetof(llm_api_infill_t, f)

/* most other texts in "input_extra" */
#define LLM_API_MAX_EXTRA  256

typedef struct {
    llm_api_body_t     body;

    const llm_flat_t  *input_prefix;
    const llm_flat_t  *input_suffix;
    const llm_flat_t  *input_extra;
    llm_str_t          prompt;          /* text after the prefix: what was
                                           typed last */
} llm_api_infill_t;


static const llm_api_field_t  llm_api_infill_rows[] = {
    { "input_extra", LLM_FIELD_ARRAY, AT(input_extra), 0, 0 },
    { "input_prefix", LLM_FIELD_REQUIRED, AT(input_prefix), 0, 0 },
    { "input_suffix", LLM_FIELD_REQUIRED, AT(input_suffix), 0, 0 },
    { "n", LLM_FIELD_INT, AT(body.n), 1, 1 },
    { "prompt", LLM_FIELD_STRING, AT(prompt), 0, 0 },
    { "return_token_ids", LLM_FIELD_REFUSED, LLM_FIELD_NOWHERE, 0, 0 },
};

static const llm_api_fields_t  llm_api_infill_fields = {
    llm_api_infill_rows, llm_nelems(llm_api_infill_rows)
};


/* ---- the reader ---- */

/* {"filename": ..., "text": ...}; the text is required */

static int
llm_api_infill_extra(const llm_flat_t *list, llm_buf_t *msg, llm_ref_t *ref,
    llm_err_t *err)
{
    uint32_t             i;
    llm_extra_t          extra[LLM_API_MAX_EXTRA];
    const llm_flat_t    *v, *name, *text;
    const llm_api_at_t  *at, *here;

    at = llm_api_top("input_extra");

    if (list->count > LLM_API_MAX_EXTRA) {
        return llm_api_too_long(err, at, LLM_API_MAX_EXTRA, list);
    }

    memset(extra, 0, sizeof(extra));

    for (i = 0, v = llm_flat_first(list); v; i++, v = llm_flat_next(list, v))
    {
        here = llm_api_idx(at, i);

        if (llm_api_check_type(err, here, v, LLM_FLAT_OBJECT) != LLM_OK) {
            return LLM_ERROR;
        }

        name = llm_api_member(v, "filename");
        text = llm_api_need(err, here, v, "text", LLM_FLAT_STRING);

        if (text == NULL
            || (name && llm_api_check_type(err, llm_api_key(here, "filename"),
                                           name, LLM_FLAT_STRING) != LLM_OK))
        {
            return LLM_ERROR;
        }

        extra[i].name = llm_api_write_string(msg, name ? llm_flat_str(name)
                                                       : llm_str("tmp"));
        extra[i].text = llm_api_write_string(msg, llm_flat_str(text));
    }

    ref->off = (uint32_t) msg->len;
    ref->len = i;

    (void) llm_buf_add(msg, extra, i * sizeof(llm_extra_t));
    (void) llm_buf_pad(msg);

    return LLM_OK;
}


static void
llm_api_infill_prompt(const llm_api_infill_t *b, llm_buf_t *msg,
    llm_ref_t *ref)
{
    llm_str_t         s;
    llm_prompt_ref_t  p;

    s = llm_flat_str(b->input_prefix);

    memset(&p, 0, sizeof(p));
    p.ref.off = (uint32_t) msg->len;
    p.ref.len = (uint32_t) (s.len + b->prompt.len);

    (void) llm_buf_add(msg, s.data, s.len);
    (void) llm_buf_add(msg, b->prompt.data, b->prompt.len);
    (void) llm_buf_pad(msg);

    ref->off = (uint32_t) msg->len;
    ref->len = 1;

    (void) llm_buf_add(msg, &p, sizeof(p));
    (void) llm_buf_pad(msg);
}


static int
llm_api_infill_texts(llm_api_reader_t *rd, const llm_api_infill_t *b,
    llm_err_t *err)
{
    llm_infill_t  in;

    if (llm_api_check_type(err, llm_api_top("input_prefix"), b->input_prefix,
                           LLM_FLAT_STRING)
        != LLM_OK
        || llm_api_check_type(err, llm_api_top("input_suffix"),
                              b->input_suffix, LLM_FLAT_STRING)
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    memset(&in, 0, sizeof(in));

    if (b->input_extra
        && llm_api_infill_extra(b->input_extra, rd->msg, &in.extra, err)
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    in.suffix = llm_api_write_string(rd->msg, llm_flat_str(b->input_suffix));
    llm_api_infill_prompt(b, rd->msg, &rd->r.prompts);

    rd->r.infill.off = (uint32_t) rd->msg->len;
    rd->r.infill.len = 1;

    (void) llm_buf_add(rd->msg, &in, sizeof(in));
    (void) llm_buf_pad(rd->msg);

    return LLM_OK;
}


static int
llm_api_infill_read(llm_api_reader_t *rd, llm_err_t *err)
{
    llm_api_infill_t        b;
    const llm_api_model_t  *m;

    memset(&b, 0, sizeof(llm_api_infill_t));
    llm_api_defaults(&b.body);

    rd->r.kind = LLM_KIND_COMPLETION;

    if (llm_api_read_body(rd, &b.body, err) != LLM_OK
        || llm_api_read_sampling(rd, &b.body, err) != LLM_OK
        || llm_api_read_limits(rd, &b.body, "max_tokens", b.body.max_tokens,
                               -1, err)
           != LLM_OK
        || llm_api_read_priority(rd, &b.body, err) != LLM_OK
        || llm_api_infill_texts(rd, &b, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    rd->r.sampling.n_logprobs = -1;
    rd->n_choices = 1;
    m = &rd->conf->models[rd->r.model];

    (void) llm_buf_adds(&rd->head, "{\"index\":0,\"model\":");
    (void) llm_json_add_string(&rd->head, m->name.data, m->name.len);

    return llm_api_write_lists(rd, &b.body, err) == LLM_OK
           ? llm_api_write_rule(rd, &b.body, err) : LLM_ERROR;
}


/* ---- the writers ---- */

/* ends the JSON after the text of the last frame, or of a body */

static void
llm_api_infill_end(const llm_api_t *a, llm_buf_t *out)
{
    (void) llm_buf_addf(out, "\",\"stop\":true,\"stop_type\":\"%s\","
                        "\"truncated\":%s,\"tokens_predicted\":%u,"
                        "\"tokens_evaluated\":%u,\"tokens_cached\":%u,",
                        llm_api_llama_stop(&a->choices[0]),
                        llm_api_llama_truncated(a, &a->choices[0],
                                                a->usage.prompt_tokens)
                        ? "true" : "false",
                        a->usage.completion_tokens, a->usage.prompt_tokens,
                        a->usage.cached_tokens);
    llm_api_llama_timed(out, a);
    (void) llm_buf_addc(out, '}');
}


static void
llm_api_infill_open(const llm_api_t *a, llm_buf_t *out)
{
    (void) llm_buf_add(out, a->head.data, a->head.len);
    (void) llm_buf_adds(out, ",\"content\":\"");
}


static void
llm_api_infill_event(llm_api_t *a, const llm_event_t *ev, llm_buf_t *out)
{
    switch (ev->type) {

    case LLM_EV_TEXT:
        if (ev->u.text.text.len) {
            (void) llm_buf_adds(out, "data: ");
            llm_api_infill_open(a, out);
            llm_api_add_event_text(out, ev);
            (void) llm_buf_adds(out, "\",\"stop\":false}\n\n");
        }

        break;

    case LLM_EV_DONE:
        (void) llm_buf_adds(out, "data: ");
        llm_api_infill_open(a, out);
        llm_api_infill_end(a, out);
        (void) llm_buf_adds(out, "\n\n");
        break;
    }
}


static int
llm_api_infill_body(llm_api_t *a, size_t max, llm_buf_t *out)
{
    int                rc;
    llm_api_cursor_t  *cur;

    cur = &a->cursor;

    if (!cur->opened) {
        llm_api_infill_open(a, out);
        cur->opened = 1;
        cur->piece = a->choices[0].own.first;
    }

    rc = llm_api_write_kept(a, max, out);

    if (rc == LLM_OK) {
        llm_api_infill_end(a, out);
        rc = out->failed ? LLM_ERROR : LLM_OK;
    }

    return rc;
}


const llm_api_endpoint_t  llm_api_infill = {
    .task = LLM_TASK_GENERATE,
    .fields = &llm_api_infill_fields,
    .shared = &llm_api_shared_fields,
    .read = llm_api_infill_read,
    .event = llm_api_infill_event,
    .body = llm_api_infill_body
};
