/*
 * Preparation of a request: from its message to prompts, stop strings and
 * sequences, in threads of its own (engine/serve/preparers.c), so that neither
 * a long prompt nor a slow template delays a step.  prompt.c makes the prompts.
 *
 * The message comes through shared memory, so every reference in it is checked
 * before it is followed.
 */

#include "engine/prepare/prepare.h"

#include <sys/random.h>


/* are the bytes of the reference inside the message? */

static int
llm_prep_ref(const llm_request_t *msg, const llm_ref_t *ref, size_t item,
    size_t align)
{
    if (ref->len == 0) {
        return LLM_OK;
    }

    return ref->off >= sizeof(*msg) && ref->off % align == 0
           && ref->off <= msg->head.size
           && ref->len <= (msg->head.size - ref->off) / item
           ? LLM_OK : LLM_ERROR;
}


/* are a list of strings and the strings themselves inside the message? */

static int
llm_prep_strings(const llm_request_t *msg, const llm_ref_t *list,
    uint32_t most)
{
    int               rc;
    uint32_t          i;
    const llm_ref_t  *s;

    rc = llm_prep_ref(msg, list, sizeof(llm_ref_t), 4);

    if (rc != LLM_OK || list->len > most) {
        return LLM_ERROR;
    }

    s = llm_ref_data(msg, *list);

    for (i = 0; i < list->len; i++) {
        rc |= llm_prep_ref(msg, &s[i], 1, 1);
    }

    return rc;
}


static int
llm_prep_check_text_bias(const llm_request_t *msg)
{
    int                     rc;
    uint32_t                i;
    const llm_text_bias_t  *b;

    rc = llm_prep_ref(msg, &msg->text_bias, sizeof(llm_text_bias_t), 4);
    b = llm_ref_data(msg, msg->text_bias);

    for (i = 0; rc == LLM_OK && i < msg->text_bias.len; i++) {
        rc = llm_prep_ref(msg, &b[i].text, 1, 1);
    }

    return rc;
}


static int
llm_prep_check_infill(const llm_request_t *msg)
{
    int                  rc;
    uint32_t             i;
    const llm_extra_t   *extra;
    const llm_infill_t  *in;

    rc = llm_prep_ref(msg, &msg->infill, sizeof(llm_infill_t), 4);

    if (rc != LLM_OK || msg->infill.len == 0) {
        return rc;
    }

    in = llm_ref_data(msg, msg->infill);

    rc |= llm_prep_ref(msg, &in->suffix, 1, 1);
    rc |= llm_prep_ref(msg, &in->extra, sizeof(llm_extra_t), 4);

    if (rc != LLM_OK) {
        return LLM_ERROR;
    }

    extra = llm_ref_data(msg, in->extra);

    for (i = 0; i < in->extra.len; i++) {
        rc |= llm_prep_ref(msg, &extra[i].name, 1, 1);
        rc |= llm_prep_ref(msg, &extra[i].text, 1, 1);
    }

    return rc;
}


static int
llm_prep_check_prompt(const llm_request_t *msg, const llm_prompt_ref_t *p)
{
    int                      rc;
    uint32_t                 i;
    const llm_prompt_ref_t  *part;

    if (p->is_ids == LLM_PROMPT_IDS) {
        return llm_prep_ref(msg, &p->ref, sizeof(int32_t), 4);
    }

    if (p->is_ids != LLM_PROMPT_PARTS) {
        return llm_prep_ref(msg, &p->ref, 1, 1);
    }

    rc = llm_prep_ref(msg, &p->ref, sizeof(llm_prompt_ref_t), 4);
    part = llm_ref_data(msg, p->ref);

    for (i = 0; rc == LLM_OK && i < p->ref.len; i++) {
        rc = part[i].is_ids == LLM_PROMPT_PARTS
             ? LLM_ERROR : llm_prep_check_prompt(msg, &part[i]);
    }

    return rc;
}


static int
llm_prep_check(const llm_request_t *msg, llm_err_t *err)
{
    int                      rc;
    uint32_t                 i;
    const llm_prompt_ref_t  *prompts;

    rc = LLM_OK;

    rc |= llm_prep_ref(msg, &msg->chat, 1, 8);
    rc |= llm_prep_ref(msg, &msg->prompts, sizeof(llm_prompt_ref_t), 4);
    rc |= llm_prep_strings(msg, &msg->stops, LLM_MAX_STOPS);
    rc |= llm_prep_strings(msg, &msg->bad_words, LLM_MAX_BAD_WORDS);
    rc |= llm_prep_strings(msg, &msg->breakers, LLM_MAX_BREAKERS);
    rc |= llm_prep_ref(msg, &msg->allowed_ids, sizeof(int32_t), 4);
    rc |= llm_prep_ref(msg, &msg->stop_ids, sizeof(int32_t), 4);
    rc |= llm_prep_ref(msg, &msg->logit_bias, sizeof(llm_logit_bias_t), 4);
    rc |= llm_prep_check_text_bias(msg);
    rc |= llm_prep_ref(msg, &msg->rule, 1, 8);
    rc |= llm_prep_ref(msg, &msg->rule_name, 1, 1);
    rc |= llm_prep_ref(msg, &msg->prediction, 1, 1);
    rc |= llm_prep_strings(msg, &msg->tool_names, UINT32_MAX);

    if (rc == LLM_OK) {
        prompts = llm_ref_data(msg, msg->prompts);

        for (i = 0; i < msg->prompts.len; i++) {
            rc |= llm_prep_check_prompt(msg, &prompts[i]);
        }
    }

    if (rc != LLM_OK || llm_prep_check_infill(msg) != LLM_OK
        || (msg->kind == LLM_KIND_CHAT && msg->chat.len == 0)
        || (msg->kind == LLM_KIND_COMPLETION && msg->prompts.len == 0)
        || msg->kind > LLM_KIND_COMPLETION
        || (msg->kind == LLM_KIND_NONE && msg->task < LLM_TASK_DESCRIBE
            && msg->task != LLM_TASK_LISTEN)
        || (msg->task == LLM_TASK_LISTEN
            && (msg->kind != LLM_KIND_NONE || msg->media.len != 1
                || llm_prep_ref(msg, &msg->spoken, 1, 1) != LLM_OK)))
    {
        return llm_fail(err, "malformed request to the engine");
    }

    return LLM_OK;
}


/* is the prompt's text to be continued, rather than a message answered? */

static int
llm_prep_continues(const llm_request_t *msg)
{
    const llm_flat_t  *v;

    if (msg->kind != LLM_KIND_CHAT) {
        return 1;
    }

    v = llm_flat_get(llm_ref_data(msg, msg->chat), "continue_final_message");

    return v && v->type == LLM_FLAT_BOOL && llm_flat_int(v);
}


/* sets *reads: how the answer of a chat is read; returns 0 if all of it is
   content */

static int
llm_prep_reads(const llm_prep_env_t *env, const llm_req_t *r,
    llm_answer_opts_t *reads)
{
    const llm_format_t  *f;

    if (r->msg->kind != LLM_KIND_CHAT) {
        return 0;
    }

    f = llm_chat_format(env->chat);

    reads->format = f;
    reads->tools = &r->prep.tools;
    reads->open = r->prep.open;
    reads->flags = r->prep.tools.n && f->n_forms ? LLM_ANSWER_TOOLS : 0;
    reads->flags |= r->msg->tool_single ? LLM_ANSWER_SINGLE : 0;
    reads->form = r->prep.gram || r->prep.call_gram ? llm_calls_form(f) : NULL;

    if (r->prep.gram && r->msg->tool_choice == LLM_TOOLS_REQUIRED) {
        reads->flags |= LLM_ANSWER_SURE;
    }

    if (f->n_reasoning) {
        reads->flags |= r->msg->flags & LLM_REQ_THINK_TEXT
                        ? LLM_ANSWER_MARKED
                        : r->msg->flags & LLM_REQ_THINK_HIDE
                        ? LLM_ANSWER_REASONING|LLM_ANSWER_HIDE
                        : LLM_ANSWER_REASONING;
    }

    return (reads->flags & ~(unsigned) (LLM_ANSWER_SINGLE|LLM_ANSWER_SURE))
           || f->n_content
           || f->n_skipped;
}


static int
llm_prep_seqs(const llm_prep_env_t *env, llm_req_t *r, llm_err_t *err)
{
    int                 strip, is_read;
    uint32_t            i, flags, max_gen;
    llm_seq_t          *q;
    llm_request_t      *msg;
    llm_prompt_ids_t   *p;
    llm_answer_opts_t   reads;

    msg = r->msg;
    is_read = llm_prep_reads(env, r, &reads);
    strip = !llm_prep_continues(msg);
    max_gen = 0;

    flags = (msg->flags & LLM_REQ_STREAM ? LLM_EMIT_STREAM : 0)
            | (msg->flags & LLM_REQ_METERED ? LLM_EMIT_COUNT : 0)
            | (msg->flags & LLM_REQ_TOKEN_IDS ? LLM_EMIT_IDS : 0)
            | (msg->sampling.n_logprobs >= 0 ? LLM_EMIT_PROBS : 0);

    for (i = 0; i < r->prep.n_prompts * msg->n; i++) {
        q = &r->run.seqs[i];

        if (i % msg->n == 0
            && llm_prep_room(env, r, &r->prep.prompts[i / msg->n], &max_gen,
                             err)
               != LLM_OK)
        {
            return LLM_ERROR;
        }

        p = &r->prep.prompts[i / msg->n];

        if (i % msg->n == 0 && (msg->flags & (LLM_REQ_ECHO|LLM_REQ_SHOW))
            && llm_prep_echo(env, r, p) != LLM_OK)
        {
            return llm_fail(err, "no memory for the request");
        }

        q->req = r;
        q->index = i;
        q->prompt = p;
        q->echo_due = (msg->flags & (LLM_REQ_ECHO|LLM_REQ_SHOW)) != 0;
        q->max_gen = max_gen;
        q->stop_id = -1;

        if (msg->task != LLM_TASK_GENERATE) {
            r->prep.whole = llm_prep_whole(env);
            q->max_gen = 0;
            llm_prep_pool(env, &q->pool, p->n);
        }

        llm_emit_init(&q->emit, env->vocab, &r->prep.stops, flags,
                      (msg->flags & LLM_REQ_SPECIAL) != 0, strip);
        r->run.n_seqs++;

        if (i % msg->n == 0 && (msg->flags & LLM_REQ_TOKEN_IDS)
            && msg->task == LLM_TASK_GENERATE)
        {
            llm_emit_prompt(&q->emit, p->ids, p->n);
        }

        if (is_read) {
            llm_emit_read(&q->emit, &reads);
        }
    }

    return LLM_OK;
}


static int
llm_prep_stops(const llm_prep_env_t *env, llm_req_t *r, llm_err_t *err)
{
    uint32_t              i;
    llm_str_t             strings[LLM_MAX_STOPS];
    const llm_ref_t      *stops;
    const llm_request_t  *msg;

    msg = r->msg;
    stops = llm_ref_data(msg, msg->stops);

    for (i = 0; i < msg->stops.len; i++) {
        strings[i].data = llm_ref_data(msg, stops[i]);
        strings[i].len = stops[i].len;
    }

    if (llm_stops_init(&r->prep.stops, strings, msg->stops.len) != LLM_OK) {
        return llm_fail(err, "no memory for the stop strings");
    }

    if (msg->min_tokens <= 0) {
        return LLM_OK;
    }

    r->prep.n_banned = env->n_eog + msg->stop_ids.len;

    r->prep.banned = malloc(llm_max(r->prep.n_banned, 1u)
                            * sizeof(*r->prep.banned));
    if (r->prep.banned == NULL) {
        return llm_fail(err, "no memory for the stop tokens");
    }

    memcpy(r->prep.banned, env->eog, env->n_eog * sizeof(*env->eog));
    memcpy(r->prep.banned + env->n_eog, llm_ref_data(msg, msg->stop_ids),
           msg->stop_ids.len * sizeof(*env->eog));

    return LLM_OK;
}


static int
llm_prep_bias(const llm_prep_env_t *env, const llm_request_t *msg,
    llm_err_t *err)
{
    uint32_t                 i;
    const llm_logit_bias_t  *bias;

    bias = llm_ref_data(msg, msg->logit_bias);

    for (i = 0; i < msg->logit_bias.len; i++) {
        if (bias[i].id < 0 || (uint32_t) bias[i].id >= env->runner->n_vocab) {
            return llm_fail_with(err, 400, NULL, "logit_bias", "token id %d "
                                 "is not in the model's vocabulary of %u",
                                 bias[i].id, env->runner->n_vocab);
        }
    }

    return LLM_OK;
}


/* returns the number of prompts, each with n choices; 0 and *err: none, or too
   many.  The engine's own requests may be as wide as its steps. */

static uint32_t
llm_prep_count(const llm_req_t *r, llm_err_t *err)
{
    uint32_t              n, most;
    const llm_request_t  *msg = r->msg;

    if (msg->task == LLM_TASK_GENERATE || !llm_prep_needs_model(msg)) {
        n = msg->kind == LLM_KIND_COMPLETION ? msg->prompts.len : 1;
        most = r->own ? UINT32_MAX : LLM_MAX_CHOICES;

        if (msg->n == 0 || msg->n > most || n > most / msg->n) {
            (void) llm_fail_with(err, 400, NULL, "n", "n times the number of "
                                 "prompts must be from 1 to %d",
                                 LLM_MAX_CHOICES);
            return 0;
        }

        return n;
    }

    n = msg->prompts.len;

    if (msg->task == LLM_TASK_SCORE) {
        n = n % 2 ? 0 : n / 2;
    }

    if (n == 0 || n > LLM_MAX_INPUTS || msg->n != 1
        || msg->kind != LLM_KIND_COMPLETION)
    {
        (void) llm_fail(err, "malformed request to the engine");
        return 0;
    }

    return n;
}


/* allocates the prompts and the sequences */

static int
llm_prep_lists(llm_req_t *r, llm_err_t *err)
{
    uint32_t        i, n;
    llm_request_t  *msg;

    msg = r->msg;

    n = llm_prep_count(r, err);
    if (n == 0) {
        return LLM_ERROR;
    }

    r->prep.prompts = calloc(n, sizeof(*r->prep.prompts));
    r->run.seqs = calloc((size_t) n * msg->n, sizeof(*r->run.seqs));

    if (r->prep.prompts == NULL || r->run.seqs == NULL) {
        return llm_fail(err, "no memory for the request");
    }

    r->prep.n_prompts = n;

    for (i = 0; i < r->prep.n_prompts; i++) {
        llm_buf_init(&r->prep.prompts[i].echo, 0);
        llm_buf_init(&r->prep.prompts[i].probs, 0);
    }

    return LLM_OK;
}


/* checks the message, and makes all that is made before its prompts */

static int
llm_prep_begin(const llm_prep_env_t *env, llm_req_t *r, llm_err_t *err)
{
    llm_request_t  *msg;

    msg = r->msg;

    if (llm_prep_task(env, msg, err) != LLM_OK
        || llm_prep_check(msg, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (msg->task == LLM_TASK_LISTEN) {
        return LLM_OK;
    }

    if (llm_prep_media(env, r, err) != LLM_OK
        || llm_prep_bias(env, msg, err) != LLM_OK
        || llm_prep_lists(r, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (!llm_prep_needs_model(msg)) {
        return LLM_OK;
    }

    llm_sampling_adopt(&msg->sampling, &env->advised);

    if (!msg->sampling.has_seed
        && getrandom(&msg->sampling.seed, sizeof(msg->sampling.seed), 0)
           != sizeof(msg->sampling.seed))
    {
        return llm_fail(err, "no random numbers for the seed");
    }

    return llm_prep_stops(env, r, err) == LLM_OK
           ? llm_prep_filter(env, r, err) : LLM_ERROR;
}


/* the first stage: all that is done before the grammar, and once only */

static int
llm_prep_stage(const llm_prep_env_t *env, llm_req_t *r,
    const llm_prep_how_t *how, llm_err_t *err)
{
    int             rc;
    llm_request_t  *msg;

    msg = r->msg;

    if (!r->prep.checked && llm_prep_begin(env, r, err) != LLM_OK) {
        return LLM_ERROR;
    }

    r->prep.checked = 1;

    if (msg->task == LLM_TASK_LISTEN) {
        return llm_prep_sound(env, r, how, err);
    }

    if (!llm_prep_needs_model(msg)) {
        return llm_prep_answer(env, r, how, err);
    }

    rc = msg->task == LLM_TASK_SCORE ? llm_prep_pairs(env, r, how, err)
         : msg->kind == LLM_KIND_CHAT ? llm_prep_chat(env, r, how, err)
         : llm_prep_completion(env, r, err);

    if (rc == LLM_OK) {
        llm_prep_predicted(env, r);
    }

    return rc;
}


/* rows of sounds in a prompt */

static uint32_t
llm_prep_audio(const llm_prompt_ids_t *p)
{
    uint32_t  i, n;

    for (i = 0, n = 0; i < p->n_media; i++) {
        n += p->media[i].heard ? p->media[i].n : 0;
    }

    return n;
}


int
llm_prep_request(const llm_prep_env_t *env, llm_req_t *r,
    const llm_prep_how_t *how, llm_err_t *err)
{
    int       rc;
    uint32_t  i;

    rc = r->prep.staged ? LLM_OK : llm_prep_stage(env, r, how, err);

    if (rc != LLM_OK) {
        return rc;
    }

    if (!llm_prep_needs_model(r->msg)) {
        return LLM_OK;
    }

    r->prep.staged = 1;

    if (r->msg->task == LLM_TASK_LISTEN) {
        return LLM_OK;
    }

    rc = llm_prep_grammar(env, r, how, err);

    if (rc != LLM_OK) {
        r->prep.next = LLM_NEXT_GRAMMAR;
        return rc;
    }

    for (i = 0; i < r->prep.n_prompts; i++) {
        if (llm_prep_empty(env, r, &r->prep.prompts[i], err) != LLM_OK) {
            return LLM_ERROR;
        }

        r->prep.prompt_tokens += r->prep.prompts[i].n;
        r->prep.audio_tokens += llm_prep_audio(&r->prep.prompts[i]);
    }

    return llm_prep_seqs(env, r, err);
}
