/*
 * Preparation: from a request's message to tokens and stop strings, in
 * threads of their own, so that neither a long prompt nor a slow template
 * holds a step up.
 *
 * The message came through shared memory: every reference in it is checked
 * before it is followed.
 */

#include "engine/serve/engine.h"

#include <math.h>
#include <sys/random.h>


/* does the message hold what the reference says? */

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


static int
llm_prep_check(const llm_request_t *msg, llm_err_t *err)
{
    int                      rc;
    uint32_t                 i;
    const llm_ref_t         *stops;
    const llm_prompt_ref_t  *prompts;

    rc = LLM_OK;

    rc |= llm_prep_ref(msg, &msg->chat, 1, 8);
    rc |= llm_prep_ref(msg, &msg->prompts, sizeof(llm_prompt_ref_t), 4);
    rc |= llm_prep_ref(msg, &msg->stops, sizeof(llm_ref_t), 4);
    rc |= llm_prep_ref(msg, &msg->stop_ids, sizeof(int32_t), 4);
    rc |= llm_prep_ref(msg, &msg->logit_bias, sizeof(llm_logit_bias_t), 4);

    if (rc == LLM_OK) {
        stops = llm_ref_data(msg, msg->stops);

        for (i = 0; i < msg->stops.len; i++) {
            rc |= llm_prep_ref(msg, &stops[i], 1, 1);
        }

        prompts = llm_ref_data(msg, msg->prompts);

        for (i = 0; i < msg->prompts.len; i++) {
            rc |= prompts[i].is_ids
                  ? llm_prep_ref(msg, &prompts[i].ref, sizeof(int32_t), 4)
                  : llm_prep_ref(msg, &prompts[i].ref, 1, 1);
        }
    }

    if (rc != LLM_OK || msg->stops.len > LLM_MAX_STOPS
        || (msg->kind == LLM_KIND_CHAT && msg->chat.len == 0)
        || (msg->kind == LLM_KIND_COMPLETION && msg->prompts.len == 0)
        || (msg->kind != LLM_KIND_CHAT && msg->kind != LLM_KIND_COMPLETION))
    {
        return llm_fail(err, "malformed request to the engine");
    }

    return LLM_OK;
}


/* LLM_PREP_MORE: there are even more tokens than n */

#define LLM_PREP_MORE  1

static int
llm_prep_too_long(const llm_served_t *m, const llm_req_t *r, uint32_t n,
    int flags, llm_err_t *err)
{
    const char  *param;

    param = r->msg->kind == LLM_KIND_CHAT ? "messages" : "prompt";

    return llm_fail_with(err, 400, "context_length_exceeded", param,
                         "This model's maximum context length is %u tokens. "
                         "However, your %s resulted in %s%u tokens. Please "
                         "reduce the length of the %s.", m->runner.ctx, param,
                         flags & LLM_PREP_MORE ? "more than " : "", n, param);
}


/* one that leaves no room for a token, where any is wanted */

static int
llm_prep_fits(const llm_served_t *m, const llm_req_t *r,
    const llm_prompt_ids_t *p, llm_err_t *err)
{
    uint32_t  ctx;

    ctx = m->runner.ctx;

    return p->n >= ctx && !(p->n == ctx && r->msg->max_tokens == 0)
           ? llm_prep_too_long(m, r, p->n, 0, err) : LLM_OK;
}


/*
 * Whole, so that out->ids is what the vocabulary made of the text; but what
 * has twice as many tokens as the context is not looked at further.
 */

static int
llm_prep_tokenize(const llm_served_t *m, const llm_req_t *r, llm_str_t text,
    const llm_span_t *trusted, size_t n_trusted, int flags,
    llm_prompt_ids_t *out, llm_err_t *err)
{
    int32_t    *ids;
    uint32_t    most;
    llm_ids_t   all;

    memset(&all, 0, sizeof(all));
    most = llm_min(m->runner.ctx, (uint32_t) INT32_MAX / 2) * 2;

    if (llm_vocab_tokenize(m->vocab, text.data, text.len, trusted, n_trusted,
                           flags, most, &all, err)
        != LLM_OK)
    {
        free(all.data);

        return strcmp(err->code, "context_length_exceeded") == 0
               ? llm_prep_too_long(m, r, most, LLM_PREP_MORE, err)
               : LLM_ERROR;
    }

    ids = all.len ? realloc(all.data, all.len * sizeof(*ids)) : NULL;

    out->ids = ids ? ids : all.data;
    out->n = (uint32_t) all.len;

    return llm_prep_fits(m, r, out, err);
}


static int
llm_prep_put_first(llm_prompt_ids_t *p, int32_t id, llm_err_t *err)
{
    int32_t  *ids;

    ids = realloc(p->ids, (p->n + 1) * sizeof(*ids));
    if (ids == NULL) {
        return llm_fail(err, "no memory for a prompt of %u tokens", p->n);
    }

    memmove(ids + 1, ids, p->n * sizeof(*ids));
    ids[0] = id;
    p->ids = ids;
    p->n++;

    return LLM_OK;
}


static int
llm_prep_chat(const llm_served_t *m, llm_req_t *r, llm_err_t *err)
{
    int                rc;
    int32_t            bos;
    llm_prompt_t       prompt;
    llm_jinja_opts_t   opts;
    llm_prompt_ids_t  *p;
    const llm_flat_t  *flat;

    flat = llm_ref_data(r->msg, r->msg->chat);

    if (llm_flat_check(flat, r->msg->chat.len) != LLM_OK) {
        return llm_fail(err, "malformed request to the engine");
    }

    if (m->chat == NULL) {
        *err = m->chat_err;
        return LLM_ERROR;
    }

    memset(&opts, 0, sizeof(opts));
    memset(&prompt, 0, sizeof(prompt));

    if (llm_chat_render(m->chat, flat, &opts, &prompt, err) != LLM_OK) {
        return LLM_ERROR;
    }

    p = &r->prep.prompts[0];

    rc = llm_prep_tokenize(m, r, (llm_str_t) { prompt.len, prompt.text },
                           prompt.trusted, prompt.n_trusted,
                           LLM_TOKENIZE_TRUSTED, p, err);

    llm_prompt_free(&prompt);

    if (rc != LLM_OK) {
        return LLM_ERROR;
    }

    /* most templates write it, some leave it to the tokenizer */

    bos = llm_vocab_bos(m->vocab);

    if (bos >= 0 && llm_vocab_add_bos(m->vocab)
        && (p->n == 0 || p->ids[0] != bos))
    {
        return llm_prep_put_first(p, bos, err);
    }

    return LLM_OK;
}


static int
llm_prep_ids(const llm_served_t *m, const int32_t *ids, uint32_t n,
    llm_prompt_ids_t *out, llm_err_t *err)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        if (ids[i] < 0 || (uint32_t) ids[i] >= m->runner.n_vocab) {
            return llm_fail_with(err, 400, NULL, "prompt", "token id %d is "
                                 "not in the model's vocabulary of %u",
                                 ids[i], m->runner.n_vocab);
        }
    }

    out->ids = malloc(llm_max(n, 1u) * sizeof(*ids));
    if (out->ids == NULL) {
        return llm_fail(err, "no memory for a prompt of %u tokens", n);
    }

    memcpy(out->ids, ids, n * sizeof(*ids));
    out->n = n;

    return LLM_OK;
}


static int
llm_prep_completion(const llm_served_t *m, llm_req_t *r, llm_err_t *err)
{
    int                      rc;
    uint32_t                 i;
    llm_str_t                text;
    llm_prompt_ids_t        *p;
    const llm_prompt_ref_t  *ref;

    ref = llm_ref_data(r->msg, r->msg->prompts);

    for (i = 0; i < r->prep.n_prompts; i++, ref++) {
        p = &r->prep.prompts[i];
        text.data = llm_ref_data(r->msg, ref->ref);
        text.len = ref->ref.len;

        if (ref->is_ids) {
            rc = llm_prep_ids(m, (const int32_t *) text.data, ref->ref.len, p,
                              err);

        } else {
            p->is_text = 1;
            p->text = ref->ref;
            rc = llm_prep_tokenize(m, r, text, NULL, 0,
                                   LLM_TOKENIZE_SPECIAL|LLM_TOKENIZE_ADD, p,
                                   err);
        }

        if (rc != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


/*
 * What is computed has a token to begin with.  A completion from nothing
 * begins as a document does; a chat of which the template made nothing is
 * refused.
 */

static int
llm_prep_empty(const llm_served_t *m, const llm_req_t *r, llm_prompt_ids_t *p,
    llm_err_t *err)
{
    int      chat;
    int32_t  id;

    if (p->n) {
        return LLM_OK;
    }

    chat = r->msg->kind == LLM_KIND_CHAT;
    id = -1;

    if (!chat) {
        id = llm_vocab_bos(m->vocab);
        id = id >= 0 ? id : llm_vocab_eos(m->vocab);
    }

    if (id < 0) {
        return llm_fail_with(err, 400, NULL, chat ? "messages" : "prompt",
                             "the prompt is empty");
    }

    return llm_prep_put_first(p, id, err);
}


/*
 * A prompt that leaves no room for a token is refused, and so is a limit
 * that the client named and that does not fit behind the prompt; a limit
 * that nobody named is cut to the room there is.
 */

static int
llm_prep_room(const llm_served_t *m, const llm_req_t *r,
    const llm_prompt_ids_t *p, uint32_t *max_gen, llm_err_t *err)
{
    int          chat;
    uint32_t     ctx;
    const char  *param;

    ctx = m->runner.ctx;
    chat = r->msg->kind == LLM_KIND_CHAT;
    param = chat ? "messages" : "prompt";

    if (llm_prep_fits(m, r, p, err) != LLM_OK) {
        return LLM_ERROR;
    }

    if (r->msg->max_tokens < 0) {
        *max_gen = ctx - p->n;
        return LLM_OK;
    }

    *max_gen = (uint32_t) r->msg->max_tokens;

    if (*max_gen <= ctx - p->n) {
        return LLM_OK;
    }

    if (r->msg->flags & LLM_REQ_MAX_SOFT) {
        *max_gen = ctx - p->n;
        return LLM_OK;
    }

    return llm_fail_with(err, 400, "context_length_exceeded", param,
                         "This model's maximum context length is %u tokens. "
                         "However, you requested %llu tokens (%u in the %s, "
                         "%u in the completion). Please reduce the length of "
                         "the %s or completion.", ctx,
                         (unsigned long long) p->n + *max_gen, p->n, param,
                         *max_gen, param);
}


/*
 * Where the text of each token ends in the prompt's own text.  BOS, which
 * nobody wrote, has none, nor has what a tokenizer changed on its way.
 */

static int
llm_prep_ends(const llm_served_t *m, const llm_req_t *r, llm_prompt_ids_t *p)
{
    size_t         at;
    uint32_t       i;
    llm_str_t      s, text;
    llm_detok_t    d;
    llm_sampled_t  first;

    p->ends = malloc(p->n * sizeof(*p->ends));
    if (p->ends == NULL) {
        return LLM_ERROR;
    }

    text = llm_req_echo(r, p);
    at = 0;

    llm_detok_init(&d, m->vocab, 1, 1);

    for (i = 0; i < p->n; i++) {
        s = llm_detok_push(&d, p->ids[i]);

        if (s.len <= text.len - at
            && memcmp(text.data + at, s.data, s.len) == 0)
        {
            at += s.len;

        } else if (i == 0) {
            d.started = 0;
        }

        p->ends[i] = (uint32_t) at;
    }

    llm_detok_free(&d);

    if (d.failed) {
        return LLM_ERROR;
    }

    memset(&first, 0, sizeof(first));
    first.id = p->ids[0];
    first.logprob = NAN;
    p->n_scored = 1;

    return llm_emit_add_prob(&p->probs, &first, 0, p->ends[0]);
}


/* a prompt that is to be echoed: its text, and where tokens lie in it */

static int
llm_prep_echo(const llm_served_t *m, const llm_req_t *r, llm_prompt_ids_t *p)
{
    uint32_t     i;
    llm_str_t    s;
    llm_detok_t  d;

    if (!p->is_text) {
        llm_detok_init(&d, m->vocab, 1, 1);

        for (i = 0; i < p->n; i++) {
            s = llm_detok_push(&d, p->ids[i]);
            (void) llm_buf_add(&p->echo, s.data, s.len);
        }

        s = llm_detok_flush(&d, 1);
        (void) llm_buf_add(&p->echo, s.data, s.len);

        llm_detok_free(&d);

        if (p->echo.failed || d.failed) {
            return LLM_ERROR;
        }
    }

    return r->msg->sampling.n_logprobs >= 0 ? llm_prep_ends(m, r, p) : LLM_OK;
}


/* the last message is to be continued, not answered */

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


static int
llm_prep_seqs(const llm_served_t *m, llm_req_t *r, llm_err_t *err)
{
    int                strip;
    uint32_t           i, flags, max_gen;
    llm_seq_t         *q;
    llm_request_t     *msg;
    llm_prompt_ids_t  *p;

    msg = r->msg;
    strip = !llm_prep_continues(msg);
    max_gen = 0;

    flags = (msg->flags & LLM_REQ_STREAM ? LLM_EMIT_STREAM : 0)
            | (msg->flags & LLM_REQ_TOKEN_IDS ? LLM_EMIT_IDS : 0)
            | (msg->sampling.n_logprobs >= 0 ? LLM_EMIT_PROBS : 0);

    for (i = 0; i < r->prep.n_prompts * msg->n; i++) {
        q = &r->run.seqs[i];

        if (i % msg->n == 0
            && llm_prep_room(m, r, &r->prep.prompts[i / msg->n], &max_gen, err)
               != LLM_OK)
        {
            return LLM_ERROR;
        }

        p = &r->prep.prompts[i / msg->n];

        if (i % msg->n == 0 && (msg->flags & LLM_REQ_ECHO)
            && llm_prep_echo(m, r, p) != LLM_OK)
        {
            return llm_fail(err, "no memory for the request");
        }

        q->req = r;
        q->index = i;
        q->prompt = p;
        q->echo_due = (msg->flags & LLM_REQ_ECHO) != 0;
        q->max_gen = max_gen;
        q->stop_id = -1;

        llm_emit_init(&q->emit, m->vocab, &r->prep.stops, flags,
                      (msg->flags & LLM_REQ_SPECIAL) != 0, strip);
        r->run.n_seqs++;
    }

    return LLM_OK;
}


static int
llm_prep_stops(const llm_served_t *m, llm_req_t *r, llm_err_t *err)
{
    uint32_t              i, n_eog;
    llm_str_t             strings[LLM_MAX_STOPS];
    const int32_t        *eog;
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

    eog = llm_sched_eog(m->sched, &n_eog);
    r->prep.n_banned = n_eog + msg->stop_ids.len;

    r->prep.banned = malloc(llm_max(r->prep.n_banned, 1u)
                            * sizeof(*r->prep.banned));
    if (r->prep.banned == NULL) {
        return llm_fail(err, "no memory for the stop tokens");
    }

    memcpy(r->prep.banned, eog, n_eog * sizeof(*eog));
    memcpy(r->prep.banned + n_eog, llm_ref_data(msg, msg->stop_ids),
           msg->stop_ids.len * sizeof(*eog));

    return LLM_OK;
}


static int
llm_prep_bias(const llm_served_t *m, const llm_request_t *msg,
    llm_err_t *err)
{
    uint32_t                 i;
    const llm_logit_bias_t  *bias;

    bias = llm_ref_data(msg, msg->logit_bias);

    for (i = 0; i < msg->logit_bias.len; i++) {
        if (bias[i].id < 0 || (uint32_t) bias[i].id >= m->runner.n_vocab) {
            return llm_fail_with(err, 400, NULL, "logit_bias", "token id %d "
                                 "is not in the model's vocabulary of %u",
                                 bias[i].id, m->runner.n_vocab);
        }
    }

    return LLM_OK;
}


/* what no model here can do is the request's fault: clients do not retry it */

static int
llm_prep_task(const llm_request_t *msg, llm_err_t *err)
{
    if (msg->task == LLM_TASK_GENERATE) {
        return LLM_OK;
    }

    if (msg->task > LLM_TASK_SCORE) {
        return llm_fail(err, "malformed request to the engine");
    }

    return llm_fail_with(err, 400, "unsupported_model", "model",
                         "This model does not %s.",
                         msg->task == LLM_TASK_EMBED ? "embed" : "score");
}


static int
llm_prep_request(const llm_served_t *m, llm_req_t *r, llm_err_t *err)
{
    uint32_t        i;
    llm_request_t  *msg;

    msg = r->msg;

    if (llm_prep_task(msg, err) != LLM_OK
        || llm_prep_check(msg, err) != LLM_OK
        || llm_prep_bias(m, msg, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    r->prep.n_prompts = msg->kind == LLM_KIND_CHAT ? 1 : msg->prompts.len;

    if (msg->n == 0 || msg->n > LLM_MAX_CHOICES
        || r->prep.n_prompts > LLM_MAX_CHOICES / msg->n)
    {
        r->prep.n_prompts = 0;
        return llm_fail_with(err, 400, NULL, "n", "n times the number of "
                             "prompts must be from 1 to %d",
                             LLM_MAX_CHOICES);
    }

    r->prep.prompts = calloc(r->prep.n_prompts, sizeof(*r->prep.prompts));
    r->run.seqs = calloc((size_t) r->prep.n_prompts * msg->n,
                         sizeof(*r->run.seqs));

    if (r->prep.prompts == NULL || r->run.seqs == NULL) {
        r->prep.n_prompts = 0;
        return llm_fail(err, "no memory for the request");
    }

    for (i = 0; i < r->prep.n_prompts; i++) {
        llm_buf_init(&r->prep.prompts[i].echo, 0);
        llm_buf_init(&r->prep.prompts[i].probs, 0);
    }

    if (!msg->sampling.has_seed
        && getrandom(&msg->sampling.seed, sizeof(msg->sampling.seed), 0)
           != sizeof(msg->sampling.seed))
    {
        return llm_fail(err, "no random numbers");
    }

    if (llm_prep_stops(m, r, err) != LLM_OK
        || (msg->kind == LLM_KIND_CHAT
            ? llm_prep_chat(m, r, err)
            : llm_prep_completion(m, r, err)) != LLM_OK)
    {
        return LLM_ERROR;
    }

    for (i = 0; i < r->prep.n_prompts; i++) {
        if (llm_prep_empty(m, r, &r->prep.prompts[i], err) != LLM_OK) {
            return LLM_ERROR;
        }

        r->prep.prompt_tokens += r->prep.prompts[i].n;
    }

    return llm_prep_seqs(m, r, err);
}


llm_req_t *
llm_prep_next(llm_engine_t *e, int small)
{
    llm_req_t  *r;

    r = e->to_prepare.first;

    while (r && small && r->msg->head.size > LLM_ENGINE_SMALL) {
        r = r->job_next;
    }

    if (r) {
        llm_jobs_remove(&e->to_prepare, r);
    }

    return r;
}


void *
llm_engine_prepare_main(void *data)
{
    llm_err_t        err;
    llm_req_t       *r;
    llm_engine_t    *e;
    llm_preparer_t  *p = data;

    e = p->engine;

    (void) pthread_setname_np(pthread_self(), "llm-prepare");

    pthread_mutex_lock(&e->lock);

    while (!e->quit) {
        r = llm_prep_next(e, p->small);

        if (r == NULL) {
            pthread_cond_wait(&e->work, &e->lock);
            continue;
        }

        pthread_mutex_unlock(&e->lock);

        memset(&err, 0, sizeof(err));

        if (!atomic_load_explicit(&r->cancelled, memory_order_relaxed)
            && llm_prep_request(&e->models[r->model], r, &err) != LLM_OK)
        {
            llm_req_fail(r, &err, 0);
        }

        pthread_mutex_lock(&e->lock);
        llm_jobs_add(&e->prepared, r);
        pthread_mutex_unlock(&e->lock);

        llm_engine_wake(e);

        pthread_mutex_lock(&e->lock);
    }

    pthread_mutex_unlock(&e->lock);

    return NULL;
}


void
llm_engine_quit(llm_engine_t *e)
{
    uint32_t  i;

    pthread_mutex_lock(&e->lock);
    e->quit = 1;
    pthread_cond_broadcast(&e->work);
    pthread_mutex_unlock(&e->lock);

    for (i = 0; i < e->n_preparers; i++) {
        (void) pthread_join(e->preparers[i].thread, NULL);
    }
}
