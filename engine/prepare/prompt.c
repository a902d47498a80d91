/*
 * A request's prompts: their tokens, the room that they leave in the model's
 * context, and the text of prompts that are echoed.
 *
 * What an llm_prompt_ids_t holds is freed with its request, whether the
 * functions here fail or not.
 */

#include "engine/prepare/prepare.h"

#include <math.h>
#include <stdio.h>


/* the client's field that has the prompts, for errors */

static const char *
llm_prep_param(const llm_request_t *msg)
{
    switch (msg->task) {

    case LLM_TASK_EMBED:
        return "input";

    case LLM_TASK_SCORE:
        return "documents";

    case LLM_TASK_DETOKENIZE:
        return "tokens";

    default:
        return msg->kind == LLM_KIND_CHAT ? "messages" : "prompt";
    }
}


uint32_t
llm_prep_most(const llm_prep_env_t *env, const llm_req_t *r)
{
    return r->msg->most_prompt ? llm_min(env->runner->ctx, r->msg->most_prompt)
                               : env->runner->ctx;
}


/* LLM_PREP_MORE: the prompt has more than n tokens */

#define LLM_PREP_MORE  1

static int
llm_prep_too_long(const llm_prep_env_t *env, const llm_req_t *r, uint32_t n,
    int flags, llm_err_t *err)
{
    uint32_t     most;
    const char  *param;

    param = llm_prep_param(r->msg);
    most = llm_prep_most(env, r);

    (void) llm_fail_with(err, 400, "context_length_exceeded", param,
                         "%s %u tokens%s. However, your %s resulted in %s%u "
                         "tokens. Please reduce the length of the %s.",
                         most < env->runner->ctx
                         ? "Prompts of up to"
                         : "This model's maximum context length is", most,
                         most < env->runner->ctx ? " are allowed here" : "",
                         param, flags & LLM_PREP_MORE ? "more than " : "", n,
                         param);
    err->n_prompt = n;
    err->n_ctx = most;

    return LLM_ERROR;
}


int
llm_prep_fits(const llm_prep_env_t *env, const llm_req_t *r,
    const llm_prompt_ids_t *p, llm_err_t *err)
{
    int       wants;
    uint32_t  ctx;

    ctx = env->runner->ctx;
    wants = r->msg->task == LLM_TASK_GENERATE && r->msg->max_tokens != 0;

    if (!llm_prep_needs_model(r->msg)) {
        return LLM_OK;
    }

    return p->n > llm_prep_most(env, r) || (p->n == ctx && wants)
           ? llm_prep_too_long(env, r, p->n, 0, err) : LLM_OK;
}


/* truncates an input, if the request wants that rather than an error: keeps its
   end; for an encoder, which was trained that way, its beginning and the EOS
   token after it.  Special tokens count like others */

static void
llm_prep_truncate(const llm_prep_env_t *env, const llm_req_t *r,
    llm_prompt_ids_t *p)
{
    int32_t   last;
    uint32_t  most;

    if (r->msg->truncate == 0) {
        return;
    }

    most = r->msg->truncate < 0 ? llm_prep_most(env, r)
                                : (uint32_t) r->msg->truncate;

    if (p->n <= most) {
        return;
    }

    last = p->ids[p->n - 1];

    if (!llm_prep_whole(env)) {
        memmove(p->ids, p->ids + p->n - most, most * sizeof(*p->ids));

    } else if (llm_vocab_add_eos(env->vocab)
               && last == llm_vocab_eos(env->vocab))
    {
        p->ids[most - 1] = last;
    }

    p->n = most;
}


/* most tokens for which a text is tokenized; 0: no bound */

static uint32_t
llm_prep_bound(const llm_prep_env_t *env, const llm_req_t *r)
{
    return r->msg->truncate == 0 && llm_prep_needs_model(r->msg)
           ? llm_min(llm_prep_most(env, r), (uint32_t) INT32_MAX / 2) * 2 : 0;
}


/*
 * Tokenizes a whole text, never a part of it.  For tasks that need the model it
 * gives up at twice as many tokens as a prompt may have, unless the prompt will
 * be truncated: then its last tokens are wanted, and the text's bytes bound
 * their number.
 */

int
llm_prep_tokenize(const llm_prep_env_t *env, const llm_req_t *r, llm_str_t text,
    const llm_span_t *trusted, size_t n_trusted, int flags,
    llm_prompt_ids_t *out, llm_err_t *err)
{
    int32_t    *ids;
    uint32_t    most;
    llm_ids_t   all;

    memset(&all, 0, sizeof(all));
    most = llm_prep_bound(env, r);

    if (llm_vocab_tokenize(env->vocab, text.data, text.len, trusted, n_trusted,
                           flags, most, &all, err)
        != LLM_OK)
    {
        free(all.data);

        return strcmp(err->code, "context_length_exceeded") == 0
               ? llm_prep_too_long(env, r, most, LLM_PREP_MORE, err)
               : LLM_ERROR;
    }

    ids = all.len ? realloc(all.data, all.len * sizeof(*ids)) : NULL;

    out->ids = ids ? ids : all.data;
    out->n = (uint32_t) all.len;
    llm_prep_truncate(env, r, out);

    return llm_prep_fits(env, r, out, err);
}


static int
llm_prep_put_first(llm_prompt_ids_t *p, int32_t id, llm_err_t *err)
{
    int32_t   *ids;
    uint32_t   i;

    ids = realloc(p->ids, (p->n + 1) * sizeof(*ids));
    if (ids == NULL) {
        return llm_fail(err, "no memory for a prompt of %u tokens", p->n);
    }

    memmove(ids + 1, ids, p->n * sizeof(*ids));
    ids[0] = id;
    p->ids = ids;
    p->n++;

    for (i = 0; i < p->n_media; i++) {
        p->media[i].first++;
    }

    return LLM_OK;
}


/* reads the list of tools and keeps those that may be called */

static int
llm_prep_tools(llm_req_t *r, const llm_flat_t *list, llm_err_t *err)
{
    uint32_t              i, k, n;
    llm_tools_t          *tools;
    const llm_ref_t      *names;
    const llm_request_t  *msg;

    msg = r->msg;
    tools = &r->prep.tools;

    if (llm_tools_init(tools, list) != LLM_OK) {
        return llm_fail(err, "no memory for the tools");
    }

    if (msg->tool_names.len == 0) {
        return LLM_OK;
    }

    names = llm_ref_data(msg, msg->tool_names);

    for (i = 0, n = 0; i < tools->n; i++) {
        for (k = 0; k < msg->tool_names.len; k++) {
            if (names[k].len == tools->tool[i].name.len
                && memcmp(llm_ref_data(msg, names[k]),
                          tools->tool[i].name.data, names[k].len)
                   == 0)
            {
                tools->tool[n++] = tools->tool[i];
                break;
            }
        }
    }

    tools->n = n;

    return LLM_OK;
}


/* tokenizes the ends of reasoning, if its length is limited */

static int
llm_prep_endings(const llm_prep_env_t *env, llm_req_t *r, llm_err_t *err)
{
    uint32_t             i;
    llm_str_t            s;
    const llm_format_t  *f;

    f = llm_chat_format(env->chat);

    if (!(r->msg->flags & LLM_REQ_THINK_MOST)) {
        return LLM_OK;
    }

    for (i = 0; i < f->n_reasoning; i++) {
        s = f->reasoning[i].ending;

        if (llm_vocab_tokenize(env->vocab, s.data, s.len, NULL, 0,
                               LLM_TOKENIZE_SPECIAL, 0,
                               &r->prep.endings[i], err)
            != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


/*
 * Logs what was changed so that the template accepts a conversation, once for
 * each model and remedy.  Neither the request's text is logged nor the
 * template's own error message, which may quote that text.
 */

static void
llm_prep_tell_mended(const llm_prep_env_t *env, uint64_t mended)
{
    char         msg[512];
    const char  *text;

    mended &= ~atomic_fetch_or_explicit(env->mended, mended,
                                        memory_order_relaxed);

    while ((text = llm_chat_mended(&mended)) != NULL) {
        snprintf(msg, sizeof(msg), "model \"%s\": its chat template refuses a "
                 "conversation: %s (logged once)", env->name, text);

        if (env->log) {
            env->log(env->log_data, LLM_LOG_WARN, msg);
        }
    }
}


int
llm_prep_render(const llm_prep_env_t *env, const llm_req_t *r,
    const llm_prep_how_t *how, llm_prompt_t *prompt, llm_err_t *err)
{
    int                rc;
    uint64_t           mended;
    llm_jinja_opts_t   opts;
    const llm_flat_t  *flat;

    flat = llm_ref_data(r->msg, r->msg->chat);

    if (llm_flat_check(flat, r->msg->chat.len) != LLM_OK) {
        return llm_fail(err, "malformed request to the engine");
    }

    if (env->chat == NULL) {
        *err = env->chat_err;
        return LLM_ERROR;
    }

    memset(&opts, 0, sizeof(opts));
    opts.pause = how ? how->pause : NULL;
    opts.data = how ? how->data : NULL;
    memset(prompt, 0, sizeof(llm_prompt_t));

    mended = 0;
    rc = llm_chat_render(env->chat, flat, &opts, prompt, &mended, err);

    if (rc == LLM_OK && mended) {
        llm_prep_tell_mended(env, mended);
    }

    return rc;
}


/* from the text of a chat to its rows */

static int
llm_prep_chat_rows(const llm_prep_env_t *env, llm_req_t *r,
    const llm_prep_how_t *how, llm_prompt_t *prompt, llm_prompt_ids_t *p,
    llm_err_t *err)
{
    int       rc;
    uint32_t  most;

    if (prompt->n_media == 0 && r->prep.begun == NULL) {
        return llm_prep_tokenize(env, r,
                                 (llm_str_t) { prompt->len, prompt->text },
                                 prompt->trusted, prompt->n_trusted,
                                 LLM_TOKENIZE_TRUSTED, p, err);
    }

    if (r->msg->truncate) {
        return llm_fail_with(err, 400, "invalid_value", "messages", "A prompt "
                             "with images cannot be truncated.");
    }

    most = llm_prep_bound(env, r);
    rc = llm_prep_images(env, r, how, prompt, most, p, err);

    if (rc == LLM_ERROR && strcmp(err->code, "context_length_exceeded") == 0) {
        return llm_prep_too_long(env, r, most, LLM_PREP_MORE, err);
    }

    return rc == LLM_OK ? llm_prep_fits(env, r, p, err) : rc;
}


/* the text of a chat, and what is read from it and from its tools; the caller
   frees the prompt */

static int
llm_prep_chat_text(const llm_prep_env_t *env, llm_req_t *r,
    const llm_prep_how_t *how, llm_prompt_t *prompt, llm_err_t *err)
{
    const llm_flat_t  *flat;

    if (llm_prep_render(env, r, how, prompt, err) != LLM_OK) {
        memset(prompt, 0, sizeof(*prompt));
        return LLM_ERROR;
    }

    flat = llm_ref_data(r->msg, r->msg->chat);

    if (llm_prep_media_order(r, prompt, err) != LLM_OK
        || llm_prep_tools(r, llm_flat_get(flat, "tools"), err) != LLM_OK
        || llm_prep_endings(env, r, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    r->prep.open = llm_answer_open(llm_chat_format(env->chat),
                                   llm_chat_tail(prompt));

    return LLM_OK;
}


int
llm_prep_chat(const llm_prep_env_t *env, llm_req_t *r,
    const llm_prep_how_t *how, llm_err_t *err)
{
    int                rc;
    int32_t            bos;
    llm_prompt_t       prompt;
    llm_prompt_ids_t  *p;

    p = &r->prep.prompts[0];
    memset(&prompt, 0, sizeof(prompt));

    rc = r->prep.begun ? LLM_OK : llm_prep_chat_text(env, r, how, &prompt, err);

    if (rc == LLM_OK) {
        rc = llm_prep_chat_rows(env, r, how, &prompt, p, err);
    }

    llm_prompt_free(&prompt);

    if (rc != LLM_OK) {
        return rc;
    }

    /* most templates write BOS, some leave it to the tokenizer */

    bos = llm_vocab_bos(env->vocab);

    if (bos >= 0 && llm_vocab_add_bos(env->vocab)
        && (p->n == 0 || p->ids[0] != bos))
    {
        return llm_prep_put_first(p, bos, err);
    }

    return LLM_OK;
}


static int
llm_prep_ids(const llm_prep_env_t *env, const llm_req_t *r, const int32_t *ids,
    uint32_t n, llm_prompt_ids_t *out, llm_err_t *err)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        if (ids[i] < 0 || (uint32_t) ids[i] >= env->runner->n_vocab) {
            return llm_fail_with(err, 400, NULL, llm_prep_param(r->msg),
                                 "token id %d is not in the model's "
                                 "vocabulary of %u", ids[i],
                                 env->runner->n_vocab);
        }
    }

    out->ids = malloc(llm_max(n, 1u) * sizeof(*ids));
    if (out->ids == NULL) {
        return llm_fail(err, "no memory for a prompt of %u tokens", n);
    }

    memcpy(out->ids, ids, n * sizeof(*ids));
    out->n = n;
    llm_prep_truncate(env, r, out);

    return LLM_OK;
}


static int
llm_prep_append(llm_prompt_ids_t *out, const llm_prompt_ids_t *part,
    llm_err_t *err)
{
    int32_t  *ids;
    size_t    n;

    n = (size_t) out->n + part->n;

    ids = n <= INT32_MAX ? realloc(out->ids, llm_max(n, 1u) * sizeof(*ids))
                         : NULL;
    if (ids == NULL) {
        return llm_fail(err, "no memory for a prompt of %zu tokens", n);
    }

    memcpy(ids + out->n, part->ids, part->n * sizeof(*ids));
    out->ids = ids;
    out->n = (uint32_t) n;

    return LLM_OK;
}


/* a prompt of texts and ids; only the first text gets what begins a document,
   and none gets what ends one */

static int
llm_prep_mixed(const llm_prep_env_t *env, const llm_req_t *r,
    const llm_prompt_ref_t *ref, int flags, llm_prompt_ids_t *out,
    llm_err_t *err)
{
    int                      rc;
    uint32_t                 i;
    llm_str_t                text;
    llm_prompt_ids_t         part;
    const llm_prompt_ref_t  *p;

    p = llm_ref_data(r->msg, ref->ref);
    rc = LLM_OK;

    for (i = 0; i < ref->ref.len && rc == LLM_OK; i++, p++) {
        memset(&part, 0, sizeof(part));
        text.data = llm_ref_data(r->msg, p->ref);
        text.len = p->ref.len;

        rc = p->is_ids
             ? llm_prep_ids(env, r, (const int32_t *) text.data, p->ref.len,
                            &part, err)
             : llm_prep_tokenize(env, r, text, NULL, 0,
                                 i ? flags & ~LLM_TOKENIZE_ADD : flags, &part,
                                 err);

        if (rc == LLM_OK && i == 0 && ref->ref.len > 1 && part.n
            && !p->is_ids && llm_vocab_add_eos(env->vocab)
            && part.ids[part.n - 1] == llm_vocab_eos(env->vocab))
        {
            part.n--;
        }

        if (rc == LLM_OK && part.n) {
            rc = llm_prep_append(out, &part, err);
        }

        free(part.ids);
    }

    return rc == LLM_OK ? llm_prep_fits(env, r, out, err) : LLM_ERROR;
}


int
llm_prep_completion(const llm_prep_env_t *env, llm_req_t *r, llm_err_t *err)
{
    int                      rc, flags;
    uint32_t                 i;
    llm_str_t                text;
    llm_prompt_ids_t        *p;
    const llm_prompt_ref_t  *ref;

    /* the texts around a gap get no BOS or EOS, and names of control tokens in
       them are text */

    flags = r->msg->infill.len ? LLM_TOKENIZE_PLAIN
                               : LLM_TOKENIZE_SPECIAL|LLM_TOKENIZE_ADD;

    if (!llm_prep_needs_model(r->msg)) {
        flags = (r->msg->flags & LLM_REQ_PLAIN ? LLM_TOKENIZE_PLAIN
                                               : LLM_TOKENIZE_SPECIAL)
                | (r->msg->flags & LLM_REQ_ADD ? LLM_TOKENIZE_ADD : 0);
    }

    ref = llm_ref_data(r->msg, r->msg->prompts);

    for (i = 0; i < r->prep.n_prompts; i++, ref++) {
        p = &r->prep.prompts[i];
        text.data = llm_ref_data(r->msg, ref->ref);
        text.len = ref->ref.len;

        if (ref->is_ids == LLM_PROMPT_PARTS) {
            rc = llm_prep_mixed(env, r, ref, flags, p, err);

        } else if (ref->is_ids) {
            rc = llm_prep_ids(env, r, (const int32_t *) text.data, ref->ref.len,
                              p, err);

        } else {
            p->is_text = 1;
            p->text = ref->ref;
            rc = llm_prep_tokenize(env, r, text, NULL, 0, flags, p, err);
        }

        if (rc != LLM_OK) {
            return LLM_ERROR;
        }

        if (r->msg->infill.len && llm_prep_infill(env, r, p, err) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


/* a prediction that is longer than the context is not used, like one for which
   there is no memory: it changes the speed only */

void
llm_prep_predicted(const llm_prep_env_t *env, llm_req_t *r)
{
    llm_err_t  err;
    llm_ids_t  ids;

    if (!env->speculates || r->msg->prediction.len == 0) {
        return;
    }

    memset(&ids, 0, sizeof(ids));

    if (llm_vocab_tokenize(env->vocab,
                           llm_ref_data(r->msg, r->msg->prediction),
                           r->msg->prediction.len, NULL, 0,
                           LLM_TOKENIZE_PLAIN, env->runner->ctx, &ids, &err)
        != LLM_OK)
    {
        free(ids.data);
        return;
    }

    r->prep.predicted = ids;
}


/*
 * At least one token has to be computed.  A completion of an empty prompt
 * begins like a document, with BOS, or with EOS if the model has no BOS; a chat
 * whose template wrote nothing is refused.
 */

int
llm_prep_empty(const llm_prep_env_t *env, const llm_req_t *r,
    llm_prompt_ids_t *p, llm_err_t *err)
{
    int32_t  id;

    if (p->n) {
        return LLM_OK;
    }

    id = -1;

    if (r->msg->kind != LLM_KIND_CHAT) {
        id = llm_vocab_bos(env->vocab);
        id = id >= 0 ? id : llm_vocab_eos(env->vocab);
    }

    if (id < 0) {
        return llm_fail_with(err, 400, NULL, llm_prep_param(r->msg),
                             "the prompt is empty");
    }

    return llm_prep_put_first(p, id, err);
}


/*
 * A prompt that leaves no room for a token is refused.  max_tokens beyond the
 * room is reduced to it, because agents ask for as much as the largest models
 * can write.
 */

int
llm_prep_room(const llm_prep_env_t *env, const llm_req_t *r,
    const llm_prompt_ids_t *p, uint32_t *max_gen, llm_err_t *err)
{
    if (llm_prep_fits(env, r, p, err) != LLM_OK) {
        return LLM_ERROR;
    }

    *max_gen = env->runner->ctx - p->n;

    if (r->msg->max_tokens >= 0) {
        *max_gen = llm_min(*max_gen, (uint32_t) r->msg->max_tokens);
    }

    return LLM_OK;
}


/*
 * Finds where each token ends in the prompt's own text.  A token that is not in
 * this text counts as empty: BOS, and tokens whose text the tokenizer changed.
 */

static int
llm_prep_ends(const llm_prep_env_t *env, const llm_req_t *r,
    llm_prompt_ids_t *p)
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

    llm_detok_init(&d, env->vocab, 1, 1);

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


int
llm_prep_echo(const llm_prep_env_t *env, const llm_req_t *r,
    llm_prompt_ids_t *p)
{
    uint32_t     i;
    llm_str_t    s;
    llm_detok_t  d;

    if (!p->is_text || (r->msg->flags & LLM_REQ_SHOW)) {
        llm_detok_init(&d, env->vocab, 1,
                       p->n == 0 || p->ids[0] != llm_vocab_bos(env->vocab));

        for (i = 0; i < p->n; i++) {
            if (llm_prompt_media(p, i) == NULL) {
                s = llm_detok_push(&d, p->ids[i]);
                (void) llm_buf_add(&p->echo, s.data, s.len);
            }
        }

        s = llm_detok_flush(&d, 1);
        (void) llm_buf_add(&p->echo, s.data, s.len);

        llm_detok_free(&d);

        if (p->echo.failed || d.failed) {
            return LLM_ERROR;
        }
    }

    return (r->msg->flags & LLM_REQ_ECHO) && r->msg->sampling.n_logprobs >= 0
           ? llm_prep_ends(env, r, p) : LLM_OK;
}
