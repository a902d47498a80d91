/*
 * POST /completions: prompts in (a string, strings, token ids, or lists of
 * token ids), for each the text that continues it out.
 */

#include "engine/api/endpoint.h"
#include "engine/base/utf8.h"

#include <math.h>

#define AT(f)  offsetof(llm_api_completion_t, f)

/* max_tokens of a request that names none, as OpenAI's */
#define LLM_API_COMPLETION_TOKENS  16

typedef struct {
    llm_api_body_t     body;

    llm_str_t          suffix;
    const llm_flat_t  *prompt;
    int64_t            best_of;         /* 0: not given */
    int                echo;
    int                return_progress;
    int                timings_per_token;
} llm_api_completion_t;


static const llm_api_field_t  llm_api_completion_rows[] = {
    { "best_of", LLM_FIELD_INT, AT(best_of), 1, 128 },
    { "echo", LLM_FIELD_BOOL, AT(echo), 0, 0 },
    { "prompt", LLM_FIELD_REQUIRED, AT(prompt), 0, 0 },
    { "return_progress", LLM_FIELD_BOOL, AT(return_progress), 0, 0 },
    { "suffix", LLM_FIELD_STRING, AT(suffix), 0, 0 },
    { "timings_per_token", LLM_FIELD_BOOL, AT(timings_per_token), 0, 0 },
};

static const llm_api_fields_t  llm_api_completion_fields = {
    llm_api_completion_rows, llm_nelems(llm_api_completion_rows)
};


/* ---- the reader ---- */

/* a suffix: the answer fills the gap between prompt and suffix */

static int
llm_api_completion_suffix(llm_api_reader_t *rd, const llm_api_completion_t *b,
    llm_err_t *err)
{
    llm_infill_t  in;

    if (b->suffix.len == 0) {
        return LLM_OK;
    }

    if (b->echo) {
        return llm_api_unsupported(err, llm_api_top("echo"),
                                   "not together with 'suffix'");
    }

    memset(&in, 0, sizeof(in));
    in.suffix = llm_api_write_string(rd->msg, b->suffix);

    rd->r.infill.off = (uint32_t) rd->msg->len;
    rd->r.infill.len = 1;

    (void) llm_buf_add(rd->msg, &in, sizeof(in));
    (void) llm_buf_pad(rd->msg);

    return LLM_OK;
}


/* generates more choices than are returned: see best_of.c */

static int
llm_api_completion_best_of(llm_api_reader_t *rd,
    const llm_api_completion_t *b, llm_err_t *err)
{
    if (b->best_of == 0 || b->best_of == b->body.n) {
        return LLM_OK;
    }

    if (b->best_of < b->body.n) {
        return llm_api_bad_value(err, llm_api_top("best_of"),
                                 "Invalid 'best_of': %lld is less than 'n', "
                                 "which is %lld.", (long long) b->best_of,
                                 (long long) b->body.n);
    }

    if (b->body.stream) {
        return llm_api_bad_value(err, llm_api_top("best_of"),
                                 "Invalid 'best_of': a stream has no place "
                                 "for more choices than 'n', which is %lld.",
                                 (long long) b->body.n);
    }

    rd->n_best = rd->r.n;
    rd->r.n = (uint32_t) b->best_of;
    rd->hide_logprobs = rd->r.sampling.n_logprobs < 0;
    rd->r.sampling.n_logprobs = llm_max(rd->r.sampling.n_logprobs, 0);

    return LLM_OK;
}


static int
llm_api_completion_n_logprobs(const llm_api_completion_t *b, int32_t *n,
    llm_err_t *err)
{
    const llm_flat_t  *v;

    v = b->body.logprobs;
    *n = -1;

    if (v == NULL) {
        return LLM_OK;
    }

    if (llm_api_check_int(err, llm_api_top("logprobs"), v, 0, 5) != LLM_OK) {
        return LLM_ERROR;
    }

    *n = (int32_t) llm_flat_int(v);

    return LLM_OK;
}


static int
llm_api_completion_prompts(llm_api_reader_t *rd,
    const llm_api_completion_t *b, llm_err_t *err)
{
    uint32_t     n, choices;
    const char  *param;

    if (llm_api_write_prompts(b->prompt, llm_api_top("prompt"),
                              LLM_MAX_CHOICES, rd->msg, &rd->r.prompts, err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    n = rd->r.prompts.len;
    choices = rd->r.n;

    if (n * choices > LLM_MAX_CHOICES) {
        param = choices > b->body.n ? "best_of" : "n";

        return llm_api_bad_value(err, llm_api_top(param),
                                 "Invalid '%s': %u prompts times %s = %u "
                                 "are more than %d choices.", param, n,
                                 param, choices, LLM_MAX_CHOICES);
    }

    return LLM_OK;
}


static int
llm_api_completion_read(llm_api_reader_t *rd, llm_err_t *err)
{
    llm_api_completion_t  b;

    memset(&b, 0, sizeof(llm_api_completion_t));
    llm_api_defaults(&b.body);

    rd->r.kind = LLM_KIND_COMPLETION;

    if (llm_api_read_body(rd, &b.body, err) != LLM_OK
        || llm_api_read_sampling(rd, &b.body, err) != LLM_OK
        || llm_api_completion_n_logprobs(&b, &rd->r.sampling.n_logprobs, err)
           != LLM_OK
        || llm_api_completion_best_of(rd, &b, err) != LLM_OK
        || llm_api_read_limits(rd, &b.body, "max_tokens", b.body.max_tokens,
                               LLM_API_COMPLETION_TOKENS, err)
           != LLM_OK
        || llm_api_read_priority(rd, &b.body, err) != LLM_OK
        || llm_api_completion_prompts(rd, &b, err) != LLM_OK
        || llm_api_completion_suffix(rd, &b, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    rd->r.flags |= b.echo ? LLM_REQ_ECHO : 0;
    rd->r.flags |= b.return_progress && b.body.stream ? LLM_REQ_PROGRESS : 0;
    rd->options |= b.timings_per_token ? LLM_API_TIMINGS : 0;
    rd->n_choices = rd->r.n * rd->r.prompts.len;

    llm_api_write_head(rd, "cmpl-", "text_completion", "text_completion");

    return llm_api_write_lists(rd, &b.body, err) == LLM_OK
           ? llm_api_write_rule(rd, &b.body, err) : LLM_ERROR;
}


/*
 * ---- logprobs: the arrays tokens, token_logprobs, top_logprobs (an object
 * for each token) and text_offset, in characters ----
 */

enum {
    TOKENS = 0,
    TOKEN_LOGPROBS,
    TOP_LOGPROBS,
    TEXT_OFFSET
};


/* a token that is not valid UTF-8 is shown by its bytes, as OpenAI does:
   "bytes:\xe2\x80" */

static void
llm_api_add_text_token(llm_buf_t *out, const llm_api_t *a, int32_t id,
    const llm_event_t *ev, llm_ref_t bytes)
{
    size_t       i, len;
    const char  *s;

    if (a->as_ids) {
        llm_api_add_token_id(out, id);
        return;
    }

    s = llm_ref_data(ev, bytes);
    len = bytes.len;

    if (llm_utf8_valid(s, len) == len) {
        (void) llm_json_add_string(out, s, len);
        return;
    }

    (void) llm_buf_adds(out, "\"bytes:");

    for (i = 0; i < len; i++) {
        (void) llm_buf_addf(out, "\\\\x%02x", (unsigned char) s[i]);
    }

    (void) llm_buf_addc(out, '"');
}


/* "token": logprob */

static void
llm_api_add_pair(llm_buf_t *out, const llm_api_t *a, const llm_event_t *ev,
    int32_t id, llm_ref_t bytes, float logprob)
{
    llm_api_add_text_token(out, a, id, ev, bytes);
    (void) llm_buf_addc(out, ':');
    llm_api_add_logprob(out, logprob);
}


/* the sampled token comes first, then the most likely ones: some clients ask
   for one and read the first */

static void
llm_api_add_top(llm_buf_t *out, const llm_api_t *a, const llm_event_t *ev,
    const llm_token_logprob_t *t)
{
    uint32_t                   i;
    const llm_top_logprob_t   *top;

    /* the first token of an echoed prompt has no probability */

    if (isnan(t->logprob)) {
        (void) llm_buf_adds(out, "null");
        return;
    }

    top = llm_ref_data(ev, t->top);

    (void) llm_buf_addc(out, '{');
    llm_api_add_pair(out, a, ev, t->id, t->bytes, t->logprob);

    for (i = 0; i < t->top.len; i++) {
        if (top[i].id != t->id) {
            (void) llm_buf_addc(out, ',');
            llm_api_add_pair(out, a, ev, top[i].id, top[i].bytes,
                             top[i].logprob);
        }
    }

    (void) llm_buf_addc(out, '}');
}


/* turns an offset in bytes into one in characters; the event's text begins at
   place */

static uint64_t
llm_api_char_offset(const llm_api_place_t *place, const llm_event_t *ev,
    uint32_t offset)
{
    size_t  in;

    if (offset < place->bytes) {
        return place->chars;
    }

    in = llm_min(offset - place->bytes, (size_t) ev->u.text.text.len);

    return place->chars
           + llm_api_count_chars(llm_ref_data(ev, ev->u.text.text), in);
}


static void
llm_api_completion_item(llm_buf_t *out, const llm_api_t *a,
    const llm_api_place_t *place, const llm_event_t *ev, uint32_t array,
    const llm_token_logprob_t *t)
{
    switch (array) {

    case TOKENS:
        llm_api_add_text_token(out, a, t->id, ev, t->bytes);
        break;

    case TOKEN_LOGPROBS:
        llm_api_add_logprob(out, t->logprob);
        break;

    case TOP_LOGPROBS:
        llm_api_add_top(out, a, ev, t);
        break;

    case TEXT_OFFSET:
        llm_api_add_uint(out, llm_api_char_offset(place, ev,
                                                  t->text_offset));
        break;
    }
}


static const char *const  llm_api_completion_arrays[] = {
    "{\"tokens\":[", "],\"token_logprobs\":[", "],\"top_logprobs\":[",
    "],\"text_offset\":["
};

static const llm_api_logprobs_t  llm_api_completion_logprobs = {
    llm_nelems(llm_api_completion_arrays), TEXT_OFFSET,
    llm_api_completion_arrays, "]}", llm_api_completion_item
};


/* ---- the event writer ---- */

static const char  llm_api_completion_empty[] =
    "{\"tokens\":[],\"token_logprobs\":[],\"top_logprobs\":[],"
    "\"text_offset\":[]}";


/* adds the ids of a choice's prompt to its first frame */

static void
llm_api_completion_prompt(llm_api_t *a, uint32_t choice, llm_buf_t *out)
{
    if (a->token_ids && !a->choices[choice].told) {
        a->choices[choice].told = 1;
        (void) llm_buf_addc(out, ',');
        llm_api_add_prompt_ids(out, a, choice);
    }
}


static void
llm_api_completion_event(llm_api_t *a, const llm_event_t *ev, llm_buf_t *out)
{
    switch (ev->type) {

    case LLM_EV_PROGRESS:
        llm_api_progress_frame(a, ev, "\"text\":\"\"", out);
        break;

    case LLM_EV_TEXT:
        if (!llm_api_is_prompt(ev) && llm_api_has_frame(a, ev)) {
            llm_api_open_frame(a, ev->index, out);
            (void) llm_buf_adds(out, ",\"text\":\"");
            llm_api_add_event_text(out, ev);
            (void) llm_buf_addc(out, '"');
            llm_api_completion_prompt(a, ev->index, out);
            llm_api_close_text(a, ev, &llm_api_completion_logprobs, out);
        }

        break;

    case LLM_EV_FINISH:
        llm_api_open_frame(a, ev->index, out);
        (void) llm_buf_adds(out, ",\"text\":\"\"");
        llm_api_completion_prompt(a, ev->index, out);
        llm_api_finish_frame(a, ev, a->n_logprobs >= 0
                                    ? llm_api_completion_empty : "null", out);
        break;

    case LLM_EV_DONE:
        llm_api_last_frames(a, out);
        break;
    }
}


/* ---- the body ---- */

static int
llm_api_completion_open_text(const llm_api_t *a, llm_api_cursor_t *cur,
    llm_buf_t *out)
{
    (void) a;
    (void) cur;
    (void) llm_buf_adds(out, ",\"text\":\"");

    return LLM_MORE;
}


static int
llm_api_completion_text(const llm_api_t *a, llm_api_cursor_t *cur,
    llm_buf_t *out)
{
    return llm_api_write_text(a, cur, LLM_PART_CONTENT, out);
}


static int
llm_api_completion_open_logprobs(const llm_api_t *a, llm_api_cursor_t *cur,
    llm_buf_t *out)
{
    (void) cur;
    (void) llm_buf_adds(out, ",\"logprobs\":");

    return llm_api_open_logprobs(a, &llm_api_completion_logprobs, out);
}


static int
llm_api_completion_logprob(const llm_api_t *a, llm_api_cursor_t *cur,
    llm_buf_t *out)
{
    return llm_api_write_logprob(a, &llm_api_completion_logprobs, cur, out);
}


static const llm_api_member_t  llm_api_completion_members[] = {
    { llm_api_completion_open_text,     llm_api_completion_text,    "\"" },
    { llm_api_completion_open_logprobs, llm_api_completion_logprob, "" },
    { llm_api_open_finish,              NULL,                       NULL },
    { llm_api_open_prompt_ids,          llm_api_write_prompt_id,    "]" },
    { llm_api_open_ids,                 llm_api_write_id,           "]" }
};


static int
llm_api_completion_body(llm_api_t *a, size_t max, llm_buf_t *out)
{
    return llm_api_write_choices(a, llm_api_completion_members,
                                 llm_nelems(llm_api_completion_members), NULL,
                                 max, out);
}


const llm_api_endpoint_t  llm_api_completions = {
    .task = LLM_TASK_GENERATE,
    .fields = &llm_api_completion_fields,
    .shared = &llm_api_shared_fields,
    .read = llm_api_completion_read,
    .event = llm_api_completion_event,
    .body = llm_api_completion_body
};

/* without "v1/" the path is llama-server's, too */

static const llm_api_other_t  llm_api_completion_others[] = {
    { "n_predict", &llm_api_completion },
    { "n_probs", &llm_api_completion },
    { NULL, NULL }
};

const llm_api_endpoint_t  llm_api_completions_any = {
    .task = LLM_TASK_GENERATE,
    .fields = &llm_api_completion_fields,
    .shared = &llm_api_shared_fields,
    .read = llm_api_completion_read,
    .event = llm_api_completion_event,
    .body = llm_api_completion_body,
    .error = llm_api_llama_error,
    .others = llm_api_completion_others,
    .v1 = &llm_api_completions
};
