/*
 * Requests to prompts: a template, a request as JSON, and the prompt that
 * must come of it.
 */

#ifndef LLM_CHAT_CASE_H
#define LLM_CHAT_CASE_H

#include "engine/api/arguments.h"
#include "engine/llm.h"
#include "engine/text/chat/chat.h"
#include "t/unit/tap.h"

#define USER  "{\"role\":\"user\",\"content\":\"Hi\"}"
#define CALL(args)                                                           \
    "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":"      \
    "\"call_1\",\"type\":\"function\",\"function\":{\"name\":\"f\","         \
    "\"arguments\":" args "}}]}"
#define RESULT                                                               \
    "{\"role\":\"tool\",\"tool_call_id\":\"call_1\",\"content\":\"20\"}"

#define CHATML                                                               \
    "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content "  \
    "+ '<|im_end|>\n' }}{% endfor %}{% if add_generation_prompt %}"          \
    "{{ '<|im_start|>assistant\n' }}{% endif %}"

#define ALTERNATING                                                          \
    "{% for m in messages %}{% if (m.role == 'user') != "                    \
    "(loop.index0 % 2 == 0) %}{{ raise_exception('Must alternate') }}"       \
    "{% endif %}[{{ m.role }}|{{ m.content }}]{% endfor %}"


/* what was mended for the last prompt */
static uint64_t  case_mended;


static inline llm_chat_t *
chat(const char *src, size_t len)
{
    llm_err_t    err;
    llm_chat_t  *c;

    c = llm_chat_create((llm_str_t) { len, src }, llm_str("<bos>"),
                        llm_str("<eos>"), &err);

    if (c == NULL) {
        printf("# %s\n", err.msg);
    }

    return c;
}


/* as engine/api leaves a request: the arguments of calls are read */

static inline int
render_flat(const llm_chat_t *c, const llm_flat_t *request,
    const llm_jinja_opts_t *opts, llm_prompt_t *p, llm_err_t *err)
{
    int                rc;
    llm_buf_t          b;
    llm_json_limits_t  limits = { LLM_FLAT_MAX_DEPTH, LLM_JSON_MAX_VALUES,
                                  0 };

    llm_buf_init(&b, 0);

    rc = llm_args_add_request(request, &limits, &b, err);

    if (rc == LLM_OK && llm_flat_check(b.data, b.len) != LLM_OK) {
        rc = llm_fail(err, "the test's request is no flat value");
    }

    if (rc == LLM_OK) {
        rc = llm_chat_render(c, (llm_flat_t *) b.data, opts, p, &case_mended,
                             err);
    }

    llm_buf_free(&b);

    return rc;
}


static inline int
render(const char *src, const char *request, llm_prompt_t *p, llm_err_t *err)
{
    int          rc;
    llm_buf_t    b;
    llm_chat_t  *c;

    memset(p, 0, sizeof(*p));
    memset(err, 0, sizeof(*err));

    c = chat(src, strlen(src));
    if (c == NULL) {
        return LLM_ERROR;
    }

    llm_buf_init(&b, 0);

    rc = llm_json_to_flat(request, strlen(request), NULL, &b, err);

    if (rc == LLM_OK) {
        rc = render_flat(c, (llm_flat_t *) b.data, NULL, p, err);
    }

    llm_buf_free(&b);
    llm_chat_free(c);

    return rc;
}


static inline void
gives(const char *name, const char *src, const char *request,
    const char *want)
{
    llm_err_t     err;
    llm_prompt_t  p;

    if (render(src, request, &p, &err) != LLM_OK) {
        ok(0, "%s", name);
        printf("# %s\n", err.msg);
        return;
    }

    is_str(p.text, want, "%s", name);
    is_int(p.len, strlen(want), "its length");
    llm_prompt_free(&p);
}

#endif /* LLM_CHAT_CASE_H */
