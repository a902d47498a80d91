/*
 * POST /completion, llama-server's own, and /completions if the body has a
 * member that only llama-server's has: prompts in (texts, token ids, both
 * mixed, or a list of these), for each a text with figures out.
 *
 * Of several prompts or choices the answer is an array; a stream's pieces have
 * the index of their choice, and each choice ends with a piece of its own when
 * all have ended.
 */

#include "engine/api/llama.h"

#define AT(f)  offsetof(llm_api_native_t, f)

/* most names in response_fields: a choice has fewer fields */
#define LLM_API_LL_MAX_FIELDS  128

/* options of an answer */
#define LLM_API_LL_TOKENS    1          /* return_tokens */
#define LLM_API_LL_TIMINGS   2          /* timings_per_token */
#define LLM_API_LL_ONE       8          /* one prompt, one choice: no array */
#define LLM_API_LL_IDS      16          /* each prompt's tokens are counted by
                                           its ids */
#define LLM_API_LL_DRAWN    32          /* post_sampling_probs */

typedef struct {
    llm_api_body_t     body;

    const llm_flat_t  *prompt;
    const llm_flat_t  *response_fields;
    int64_t            n_probs;
    int64_t            n_indent;
    int64_t            t_max_predict_ms;
    int                post_sampling_probs;
    int                return_progress;
    int                return_tokens;
    int                timings_per_token;
} llm_api_native_t;

/* what the writers need of a choice */
typedef struct {
    llm_str_t          word;            /* stop string that ended it, in the
                                           answer's arena */
    int                newline;         /* its text has a newline */
} llm_api_ll_choice_t;

/* and of the request; the texts of the settings and of the fields' names follow
   the choices */
typedef struct {
    uint32_t             settings;      /* bytes of generation_settings */
    uint32_t             fields;        /* bytes of the response_fields' names,
                                           each with a NUL; 0: all */
    llm_api_ll_choice_t  choices[];
} llm_api_ll_own_t;


static const llm_api_field_t  llm_api_native_rows[] = {
    { "adaptive_target", LLM_FIELD_PARAM_NUMBER, LLM_FIELD_NOWHERE, -1, -1 },
    { "id_slot", LLM_FIELD_INT, LLM_FIELD_NOWHERE, -1, INT32_MAX },
    { "n_cmpl", LLM_FIELD_INT, AT(body.n), 1, 128 },
    { "n_discard", LLM_FIELD_INT, LLM_FIELD_NOWHERE, 0, INT32_MAX },
    { "n_indent", LLM_FIELD_INT, AT(n_indent), 0, INT32_MAX },
    { "n_keep", LLM_FIELD_INT, LLM_FIELD_NOWHERE, -1, INT32_MAX },
    { "n_probs", LLM_FIELD_INT, AT(n_probs), 0, 20 },
    { "post_sampling_probs", LLM_FIELD_BOOL, AT(post_sampling_probs), 0, 0 },
    { "prompt", LLM_FIELD_REQUIRED, AT(prompt), 0, 0 },
    { "response_fields", LLM_FIELD_ARRAY, AT(response_fields), 0, 0 },
    { "return_progress", LLM_FIELD_BOOL, AT(return_progress), 0, 0 },
    { "return_tokens", LLM_FIELD_BOOL, AT(return_tokens), 0, 0 },
    { "t_max_predict_ms", LLM_FIELD_INT, AT(t_max_predict_ms), -1, INT32_MAX },
    { "timings_per_token", LLM_FIELD_BOOL, AT(timings_per_token), 0, 0 },
};

static const llm_api_fields_t  llm_api_native_fields = {
    llm_api_native_rows, llm_nelems(llm_api_native_rows)
};


/* ---- the reader ---- */

/* is the name among those that out has from `start` on? */

static int
llm_api_ll_is_named(const llm_buf_t *out, size_t start, llm_str_t name)
{
    size_t  len;

    for ( /* void */ ; start < out->len; start += len + 1) {
        len = strlen(out->data + start);

        if (len == name.len && memcmp(out->data + start, name.data, len) == 0)
        {
            return 1;
        }
    }

    return 0;
}


/* the fields that an answer shall have, each once, with a NUL after it.  No
   field has a NUL in its name */

static int
llm_api_ll_fields(const llm_flat_t *fields, llm_buf_t *out, llm_err_t *err)
{
    size_t               start;
    uint32_t             i;
    llm_str_t            s;
    const llm_flat_t    *v;
    const llm_api_at_t  *at;

    at = llm_api_top("response_fields");
    start = out->len;

    if (fields && fields->count > LLM_API_LL_MAX_FIELDS) {
        return llm_api_too_long(err, at, LLM_API_LL_MAX_FIELDS, fields);
    }

    v = fields ? llm_flat_first(fields) : NULL;

    for (i = 0; v; i++, v = llm_flat_next(fields, v)) {
        if (llm_api_check_type(err, llm_api_idx(at, i), v, LLM_FLAT_STRING)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        s = llm_flat_str(v);

        if (memchr(s.data, '\0', s.len) || out->failed
            || llm_api_ll_is_named(out, start, s))
        {
            continue;
        }

        (void) llm_buf_add(out, s.data, s.len);
        (void) llm_buf_addc(out, '\0');
    }

    return LLM_OK;
}


static int
llm_api_ll_keep_own(llm_api_reader_t *rd, const llm_api_native_t *b,
    llm_err_t *err)
{
    int                  rc;
    size_t               start;
    uint32_t             i;
    llm_buf_t           *out;
    llm_api_ll_own_t     own;
    llm_api_ll_choice_t  c;

    out = &rd->own;
    memset(&own, 0, sizeof(own));
    memset(&c, 0, sizeof(c));
    (void) llm_buf_add(out, &own, sizeof(own));

    for (i = 0; i < rd->n_choices; i++) {
        (void) llm_buf_add(out, &c, sizeof(c));
    }

    start = out->len;
    llm_api_llama_settings(out, rd);
    own.settings = (uint32_t) (out->len - start);

    start = out->len;
    rc = llm_api_ll_fields(b->response_fields, out, err);
    own.fields = (uint32_t) (out->len - start);

    if (!out->failed) {
        memcpy(out->data, &own, sizeof(own));
    }

    return rc;
}


static int
llm_api_native_check(const llm_api_native_t *b, llm_err_t *err)
{
    if (b->n_indent) {
        return llm_api_unsupported(err, llm_api_top("n_indent"),
                                   "0 turns it off");
    }

    if (b->t_max_predict_ms > 0) {
        return llm_api_unsupported(err, llm_api_top("t_max_predict_ms"),
                                   "-1 turns it off");
    }

    return LLM_OK;
}


static int
llm_api_native_read(llm_api_reader_t *rd, llm_err_t *err)
{
    llm_str_t          name;
    llm_request_t     *r;
    llm_api_native_t   b;

    memset(&b, 0, sizeof(llm_api_native_t));
    llm_api_defaults(&b.body);

    r = &rd->r;
    r->kind = LLM_KIND_COMPLETION;

    if (llm_api_read_body(rd, &b.body, err) != LLM_OK
        || llm_api_native_check(&b, err) != LLM_OK
        || llm_api_read_sampling(rd, &b.body, err) != LLM_OK
        || llm_api_read_limits(rd, &b.body, "n_predict", b.body.max_tokens,
                               -1, err)
           != LLM_OK
        || llm_api_read_priority(rd, &b.body, err) != LLM_OK
        || llm_api_write_forms(b.prompt, LLM_API_MIXED, llm_api_top("prompt"),
                               LLM_MAX_CHOICES, rd->msg, &r->prompts, err)
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (r->prompts.len * r->n > LLM_MAX_CHOICES) {
        return llm_api_bad_value(err, llm_api_top("n"), "Invalid 'n': %u "
                                 "prompts times n = %u are more than %d "
                                 "choices.", r->prompts.len, r->n,
                                 LLM_MAX_CHOICES);
    }

    r->sampling.n_logprobs = b.n_probs ? (int32_t) b.n_probs : -1;
    r->sampling.of_draw = (uint32_t) b.post_sampling_probs;
    rd->n_choices = r->prompts.len * r->n;
    rd->options = (b.return_tokens || b.body.stream ? LLM_API_LL_TOKENS : 0)
                  | (b.timings_per_token ? LLM_API_LL_TIMINGS : 0)
                  | (b.post_sampling_probs ? LLM_API_LL_DRAWN : 0)
                  | (rd->n_choices == 1 ? LLM_API_LL_ONE : 0)
                  | (r->prompts.len > 1 ? LLM_API_LL_IDS : 0);

    r->flags |= LLM_REQ_SHOW;

    if (b.return_progress && b.body.stream) {
        r->flags |= LLM_REQ_PROGRESS;
    }

    if (rd->options & (LLM_API_LL_TOKENS|LLM_API_LL_IDS)) {
        r->flags |= LLM_REQ_TOKEN_IDS;
    }

    name = rd->conf->models[r->model].name;
    (void) llm_buf_adds(&rd->head, "\"model\":");
    (void) llm_json_add_string(&rd->head, name.data, name.len);

    b.body.texts_biased = 1;

    return llm_api_write_lists(rd, &b.body, err) == LLM_OK
           && llm_api_ll_keep_own(rd, &b, err) == LLM_OK
           ? llm_api_write_rule(rd, &b.body, err) : LLM_ERROR;
}


/* ---- keeping ---- */

static int
llm_api_ll_word(llm_api_t *a, const llm_event_t *ev, llm_str_t *word,
    llm_err_t *err)
{
    char  *p;

    if (ev->u.finish.stop.len == 0) {
        return LLM_OK;
    }

    p = llm_api_keep(a, ev->u.finish.stop.len, err);
    if (p == NULL) {
        return LLM_ERROR;
    }

    memcpy(p, llm_ref_data(ev, ev->u.finish.stop), ev->u.finish.stop.len);
    word->data = p;
    word->len = ev->u.finish.stop.len;

    return LLM_OK;
}


static int
llm_api_native_keep(llm_api_t *a, const llm_event_t *ev, llm_err_t *err)
{
    llm_api_ll_own_t  *own = a->own;

    switch (ev->type) {

    case LLM_EV_TEXT:
        if (llm_api_is_prompt(ev)) {
            return llm_api_gather(a, ev, err);
        }

        if (ev->u.text.text.len
            && memchr(llm_ref_data(ev, ev->u.text.text), '\n',
                      ev->u.text.text.len))
        {
            own->choices[ev->index].newline = 1;
        }

        return a->stream ? LLM_OK : llm_api_gather(a, ev, err);

    case LLM_EV_FINISH:
        return llm_api_ll_word(a, ev, &own->choices[ev->index].word, err);
    }

    return LLM_OK;
}


/* ---- pieces ---- */

/* tokens of the prompt of a choice */

static uint32_t
llm_api_ll_evaluated(const llm_api_t *a, uint32_t choice)
{
    uint32_t                n;
    const llm_api_piece_t  *p;

    if (!(a->options & LLM_API_LL_IDS)) {
        return a->usage.prompt_tokens;
    }

    n = 0;

    for (p = a->choices[choice / a->n * a->n].echo.first; p; p = p->next) {
        n += p->ev->u.text.ids.len;
    }

    return n;
}


/* what follows the text and the tokens of a choice that has ended */

static void
llm_api_ll_end(const llm_api_t *a, uint32_t index, llm_buf_t *out)
{
    uint32_t                 n;
    const llm_api_choice_t  *c;
    const llm_api_ll_own_t  *own = a->own;

    c = &a->choices[index];
    n = llm_api_ll_evaluated(a, index);

    (void) llm_buf_adds(out, ",\"id_slot\":-1,\"stop\":true,");
    (void) llm_buf_add(out, a->head.data, a->head.len);
    (void) llm_buf_addf(out, ",\"tokens_predicted\":%u,"
                        "\"tokens_evaluated\":%u,\"generation_settings\":",
                        c->n_tokens, n);
    (void) llm_buf_add(out, (const char *) (own->choices + a->n_choices),
                       own->settings);
    (void) llm_buf_adds(out, ",\"prompt\":\"");
    llm_api_llama_prompt(out, a, index);
    (void) llm_buf_addf(out, "\",\"has_new_line\":%s,\"truncated\":%s,"
                        "\"stop_type\":\"%s\",\"stopping_word\":",
                        own->choices[index].newline ? "true" : "false",
                        llm_api_llama_truncated(a, c, n) ? "true" : "false",
                        llm_api_llama_stop(c));
    (void) llm_json_add_string(out, own->choices[index].word.data,
                               own->choices[index].word.len);
    (void) llm_buf_addf(out, ",\"tokens_cached\":%u,",
                        a->usage.cached_tokens);
    llm_api_llama_timed(out, a);
}


/* leaves of a choice, written from `start` on, what was asked for */

static void
llm_api_ll_filter(const llm_api_t *a, size_t start, llm_buf_t *out)
{
    const llm_api_ll_own_t  *own = a->own;

    if (own->fields) {
        llm_api_llama_filter(out, start,
                             (const char *) (own->choices + a->n_choices)
                             + own->settings, own->fields);
    }
}


/* the form of probabilities that was asked for */

static const llm_api_logprobs_t *
llm_api_ll_probs(const llm_api_t *a)
{
    return a->options & LLM_API_LL_DRAWN ? &llm_api_llama_probs
                                         : &llm_api_llama_logprobs;
}


/* ---- a stream ---- */

static void
llm_api_ll_text(llm_api_t *a, const llm_event_t *ev, llm_buf_t *out)
{
    (void) llm_buf_adds(out, "data: {\"index\":");
    llm_api_add_uint(out, ev->index);
    (void) llm_buf_adds(out, ",\"content\":\"");
    llm_api_add_event_text(out, ev);
    (void) llm_buf_adds(out, "\",\"tokens\":[");

    if (a->options & LLM_API_LL_TOKENS) {
        llm_api_add_ids(out, ev);
    }

    (void) llm_buf_addf(out, "],\"stop\":false,\"id_slot\":-1,"
                        "\"tokens_predicted\":%u,\"tokens_evaluated\":%u",
                        a->choices[ev->index].n_tokens,
                        llm_api_ll_evaluated(a, ev->index));

    if (a->n_logprobs >= 0 && ev->u.text.logprobs.len) {
        (void) llm_buf_adds(out, ",\"completion_probabilities\":");
        llm_api_add_logprobs(out, a, llm_api_ll_probs(a), NULL, ev);
    }

    if (a->options & LLM_API_LL_TIMINGS) {
        (void) llm_buf_addc(out, ',');
        llm_api_llama_now(out, a);
    }

    (void) llm_buf_adds(out, "}\n\n");
}


static void
llm_api_native_event(llm_api_t *a, const llm_event_t *ev, llm_buf_t *out)
{
    size_t    start;
    uint32_t  i;

    switch (ev->type) {

    case LLM_EV_PROGRESS:
        (void) llm_buf_addf(out, "data: {\"index\":0,\"content\":\"\","
                            "\"tokens\":[],\"stop\":false,\"id_slot\":-1,"
                            "\"tokens_predicted\":0,\"tokens_evaluated\":%u,",
                            a->usage.prompt_tokens);
        llm_api_llama_progress(out, a, ev, a->options & LLM_API_LL_TIMINGS);
        (void) llm_buf_adds(out, "}\n\n");
        break;

    case LLM_EV_TEXT:
        if (!llm_api_is_prompt(ev) && llm_api_has_frame(a, ev)) {
            llm_api_ll_text(a, ev, out);
        }

        break;

    case LLM_EV_DONE:
        for (i = 0; i < a->n_choices; i++) {
            (void) llm_buf_adds(out, "data: ");
            start = out->len;
            (void) llm_buf_addf(out, "{\"index\":%u,\"content\":\"\","
                                "\"tokens\":[]", i);
            llm_api_ll_end(a, i, out);
            (void) llm_buf_addc(out, '}');
            llm_api_ll_filter(a, start, out);
            (void) llm_buf_adds(out, "\n\n");
        }

        break;
    }
}


/* ---- a body ---- */

/* writes a little of a list: of the tokens, or of their probabilities */

static int
llm_api_ll_list(llm_api_t *a, int probs, llm_buf_t *out)
{
    llm_api_cursor_t           *cur;
    const llm_event_t          *ev;
    const llm_token_logprob_t  *t;

    cur = &a->cursor;

    if (cur->piece == NULL) {
        return LLM_OK;
    }

    ev = cur->piece->ev;

    if (probs && cur->at < ev->u.text.logprobs.len) {
        t = llm_ref_data(ev, ev->u.text.logprobs);
        (void) llm_buf_adds(out, cur->some ? "," : "");
        llm_api_ll_probs(a)->item(out, a, NULL, ev, 0, &t[cur->at++]);
        cur->some = 1;
        return LLM_MORE;
    }

    if (!probs && ev->u.text.ids.len) {
        (void) llm_buf_adds(out, cur->some ? "," : "");
        llm_api_add_ids(out, ev);
        cur->some = 1;
    }

    cur->piece = cur->piece->next;
    cur->at = 0;

    return LLM_MORE;
}


/* the members of a choice: cursor.member */
enum {
    LLM_API_LL_CONTENT = 0,
    LLM_API_LL_IDS_OF,
    LLM_API_LL_PROBS,
    LLM_API_LL_LAST
};


/* one small step through a choice; LLM_OK at the end of a member */

static int
llm_api_ll_step(llm_api_t *a, llm_api_cursor_t *cur, llm_buf_t *out)
{
    switch (cur->member) {

    case LLM_API_LL_CONTENT:
        return llm_api_write_text(a, cur, LLM_PART_CONTENT, out);

    case LLM_API_LL_IDS_OF:
        return a->options & LLM_API_LL_TOKENS ? llm_api_ll_list(a, 0, out)
                                              : LLM_OK;

    case LLM_API_LL_PROBS:
        return llm_api_ll_list(a, 1, out);
    }

    return LLM_OK;
}


/* writes what stands before a member */

static void
llm_api_ll_open(llm_api_t *a, llm_api_cursor_t *cur, llm_buf_t *out)
{
    cur->piece = a->choices[cur->choice].own.first;
    cur->in_echo = 0;
    cur->some = 0;
    cur->at = 0;

    switch (cur->member) {

    case LLM_API_LL_CONTENT:
        (void) llm_buf_addf(out, "{\"index\":%u,\"content\":\"", cur->choice);
        break;

    case LLM_API_LL_IDS_OF:
        (void) llm_buf_adds(out, "\",\"tokens\":[");
        break;

    case LLM_API_LL_PROBS:
        (void) llm_buf_addc(out, ']');

        if (a->n_logprobs >= 0) {
            (void) llm_buf_adds(out, ",\"completion_probabilities\":[");

        } else {
            cur->piece = NULL;
        }

        break;

    case LLM_API_LL_LAST:
        (void) llm_buf_adds(out, a->n_logprobs >= 0 ? "]" : "");
        llm_api_ll_end(a, cur->choice, out);
        (void) llm_buf_addc(out, '}');
    }
}


/* a choice of which fields are left out is written at once */

static int
llm_api_native_body(llm_api_t *a, size_t max, llm_buf_t *out)
{
    size_t                   start;
    llm_api_cursor_t        *cur;
    const llm_api_ll_own_t  *own = a->own;

    cur = &a->cursor;
    start = out->len;

    while (cur->choice < a->n_choices) {
        if (out->failed) {
            return LLM_ERROR;
        }

        if (out->len >= max && (own->fields == 0
                                || (cur->member == 0 && !cur->opened))) {
            return LLM_MORE;
        }

        if (!cur->opened) {
            if (cur->member == LLM_API_LL_CONTENT) {
                (void) llm_buf_adds(out, cur->choice ? ","
                                         : a->options & LLM_API_LL_ONE ? ""
                                         : "[");
                start = out->len;
            }

            llm_api_ll_open(a, cur, out);
            cur->opened = 1;
        }

        if (llm_api_ll_step(a, cur, out) == LLM_MORE) {
            continue;
        }

        cur->opened = 0;

        if (cur->member++ == LLM_API_LL_LAST) {
            llm_api_ll_filter(a, start, out);
            cur->member = 0;
            cur->choice++;
        }
    }

    if (!(a->options & LLM_API_LL_ONE)) {
        (void) llm_buf_addc(out, ']');
    }

    return out->failed ? LLM_ERROR : LLM_OK;
}


const llm_api_endpoint_t  llm_api_completion = {
    .task = LLM_TASK_GENERATE,
    .fields = &llm_api_native_fields,
    .shared = &llm_api_shared_fields,
    .read = llm_api_native_read,
    .event = llm_api_native_event,
    .body = llm_api_native_body,
    .keep = llm_api_native_keep,
    .error = llm_api_llama_error
};
