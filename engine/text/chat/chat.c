/*
 * Renders a request to a prompt; see chat.h.
 *
 * A template gets what transformers would give it, adapted to what probe.c has
 * found out about it.  If it still fails, mend.c adapts more: null contents
 * become "", tool calls become text, and so on.  If nothing helps, the first
 * error is reported.
 */

#include "engine/text/chat/format.h"

#include <stdio.h>

/* most bytes of what is known about answers */
#define LLM_CHAT_FORMAT_MEMORY  (64 << 10)


/* cuts the prompt of a message that is left open */

static void
llm_chat_cut(llm_prompt_t *p, size_t len)
{
    size_t  i;

    p->len = len;
    p->text[len] = '\0';

    for (i = 0; i < p->n_trusted && p->trusted[i].start < len; i++) {
        p->trusted[i].end = llm_min(p->trusted[i].end, len);
    }

    p->n_trusted = i;
}


/*
 * Cuts after the content of the last message, at the tag.  As in transformers:
 * if the template has trimmed the tag's own space, it would have trimmed the
 * content's, so that space is removed, too.
 */

static int
llm_chat_continue(llm_prompt_t *p, llm_err_t *err)
{
    size_t      i, tag, stripped;

    tag = sizeof(LLM_CHAT_TAG) - 1;
    stripped = tag - 1;

    for (i = p->len + 1; i-- > 0; /* void */ ) {
        if (p->len - i >= stripped
            && memcmp(p->text + i, LLM_CHAT_TAG, stripped) == 0)
        {
            break;
        }
    }

    if (i == SIZE_MAX) {
        llm_prompt_free(p);

        return llm_fail_with(err, 400, NULL, "continue_final_message",
                             "the chat template does not show the final "
                             "message, which is to be continued");
    }

    if (p->len - i < tag || memcmp(p->text + i, LLM_CHAT_TAG, tag) != 0) {
        while (i && p->text[i - 1] && strchr(" \t\n\r\f\v", p->text[i - 1])) {
            i--;
        }
    }

    llm_chat_cut(p, i);

    return LLM_OK;
}


static int
llm_chat_check(const llm_flat_t *request, int *continues, llm_err_t *err)
{
    const llm_flat_t  *messages, *msg, *last, *v;

    *continues = 0;
    messages = llm_flat_get(request, "messages");

    if (messages == NULL || messages->type != LLM_FLAT_ARRAY) {
        return llm_fail_with(err, 400, NULL, "messages", "'messages' must be "
                             "an array");
    }

    *continues = llm_chat_flag(request, "continue_final_message");

    if (!*continues) {
        return LLM_OK;
    }

    if (llm_chat_flag(request, "add_generation_prompt")) {
        return llm_fail_with(err, 400, NULL, "continue_final_message",
                             "'continue_final_message' and "
                             "'add_generation_prompt' cannot both be true");
    }

    last = NULL;

    for (msg = llm_flat_first(messages); msg;
         msg = llm_flat_next(messages, msg))
    {
        last = msg;
    }

    v = last ? llm_flat_get(last, "content") : NULL;

    if (last == NULL || !llm_chat_is(llm_flat_get(last, "role"), "assistant")
        || v == NULL
        || (v->type != LLM_FLAT_STRING && v->type != LLM_FLAT_ARRAY))
    {
        return llm_fail_with(err, 400, NULL, "continue_final_message",
                             "'continue_final_message' needs a final "
                             "assistant message with content");
    }

    return LLM_OK;
}


/*
 * Reports why a request cannot be rendered.  The template works for other
 * requests and fails on something in this one, such as results of tools, so it
 * is the request that has to change.
 */

static void
llm_chat_refuse(const llm_chat_t *c, const llm_err_t *why, llm_err_t *err)
{
    if (c->works && strcmp(why->code, LLM_JINJA_FAILED) == 0) {
        (void) llm_fail_with(err, 400, why->code, "messages",
                             "The chat template of this model fails on these "
                             "messages: %s", why->msg);
        return;
    }

    *err = *why;

    if (err->status == 400 && err->param[0] == '\0') {
        snprintf(err->param, sizeof(err->param), "messages");
    }
}


int
llm_chat_render(const llm_chat_t *c, const llm_flat_t *request,
    const llm_jinja_opts_t *opts, llm_prompt_t *out, uint64_t *mended,
    llm_err_t *err)
{
    int        rc, continues;
    uint64_t   what, n;
    llm_buf_t  clean;
    llm_err_t  why;

    memset(out, 0, sizeof(*out));
    memset(&why, 0, sizeof(why));

    if (llm_chat_check(request, &continues, err) != LLM_OK) {
        return LLM_ERROR;
    }

    llm_buf_init(&clean, 0);
    request = c->no_marks ? llm_chat_unmark(request, &clean) : request;

    if (request == NULL) {
        llm_buf_free(&clean);
        return llm_fail(err, "the request is too large for a chat template");
    }

    what = c->norms | (continues ? LLM_CN_TAG : 0);
    what |= llm_chat_flag(request, "lenient") ? c->lenient : 0;

    rc = llm_chat_mend(c, request, what, opts, out, mended ? mended : &n,
                       &why);

    if (rc != LLM_OK && err) {
        llm_chat_refuse(c, &why, err);
    }

    if (rc == LLM_OK && continues) {
        rc = llm_chat_continue(out, err);
    }

    llm_buf_free(&clean);

    return rc;
}


llm_chat_t *
llm_chat_create(llm_str_t src, llm_str_t bos, llm_str_t eos, llm_err_t *err)
{
    llm_chat_t  *c;

    c = calloc(1, sizeof(llm_chat_t));
    if (c == NULL) {
        (void) llm_fail(err, "chat template: out of memory");
        return NULL;
    }

    llm_arena_init(&c->format.arena, LLM_CHAT_FORMAT_MEMORY);

    c->template = llm_jinja_compile(src.data, src.len, err);

    if (c->template == NULL) {
        llm_chat_free(c);
        return NULL;
    }

    c->bos = calloc(1, bos.len + 1);
    c->eos = calloc(1, eos.len + 1);

    if (c->bos == NULL || c->eos == NULL) {
        (void) llm_fail(err, "chat template: out of memory");
        llm_chat_free(c);
        return NULL;
    }

    if (bos.len) {
        memcpy(c->bos, bos.data, bos.len);
    }

    if (eos.len) {
        memcpy(c->eos, eos.data, eos.len);
    }

    llm_chat_probe(c);

    if (!llm_chat_family(&c->format, src)) {
        llm_chat_learn(c, src);
        llm_chat_family_calls(&c->format, src);
    }

    if (c->lenient & (LLM_CN_TELL_TOOLS|LLM_CN_TOOL_TEXT|LLM_CN_CALL_TEXT)) {
        llm_chat_family_told(&c->format);
    }

    return c;
}


void
llm_chat_free(llm_chat_t *c)
{
    if (c) {
        llm_jinja_free(c->template);
        free(c->bos);
        free(c->eos);
        llm_arena_free(&c->format.arena);
        free(c);
    }
}


const llm_format_t *
llm_chat_format(const llm_chat_t *c)
{
    return &c->format;
}


llm_str_t
llm_chat_tail(const llm_prompt_t *p)
{
    size_t  from;

    from = p->n_trusted ? p->trusted[p->n_trusted - 1].start : 0;

    return (llm_str_t) { p->len - from, p->text + from };
}
