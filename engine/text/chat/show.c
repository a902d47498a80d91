/*
 * Renders answers with a template; see show.h.
 */

#include "engine/llm.h"
#include "engine/text/chat/show.h"

#define LLM_SHOW_STEPS   2000000
#define LLM_SHOW_MEMORY  ((size_t) 16 << 20)
#define LLM_SHOW_NOW     1700000000

/* a template that writes more than this for an answer teaches nothing */
#define LLM_SHOW_MOST    (16 << 10)

const llm_show_call_t  llm_show_calls[2] = {
    { "zqxida001", "zqxfuna", "zqxkeya", "zqxvala", "zqxkeyb", "70317" },
    { "zqxidb002", "zqxfunb", "zqxkeyc", "zqxvalc", "zqxkeyd", "70318" }
};


void
llm_show_str(llm_buf_t *b, const char *s)
{
    llm_flat_add_str(b, s, strlen(s));
}


void
llm_show_pair(llm_buf_t *b, const char *key, const char *value)
{
    llm_show_str(b, key);
    llm_show_str(b, value);
}


static void
llm_show_property(llm_buf_t *b, const char *key, const char *type)
{
    size_t  handle;

    llm_show_str(b, key);
    handle = llm_flat_open(b, LLM_FLAT_OBJECT);
    llm_show_pair(b, "type", type);
    llm_show_pair(b, "description", "x");
    llm_flat_close(b, handle, 2);
}


static void
llm_show_tool(llm_buf_t *b, const llm_show_call_t *call)
{
    size_t  tool, function, schema, inner;

    tool = llm_flat_open(b, LLM_FLAT_OBJECT);
    llm_show_pair(b, "type", "function");
    llm_show_str(b, "function");

    function = llm_flat_open(b, LLM_FLAT_OBJECT);
    llm_show_pair(b, "name", call->name);
    llm_show_pair(b, "description", "x");
    llm_show_str(b, "parameters");

    schema = llm_flat_open(b, LLM_FLAT_OBJECT);
    llm_show_pair(b, "type", "object");
    llm_show_str(b, "properties");

    inner = llm_flat_open(b, LLM_FLAT_OBJECT);
    llm_show_property(b, call->key, "string");
    llm_show_property(b, call->number_key, "integer");
    llm_flat_close(b, inner, 2);

    llm_show_str(b, "required");
    inner = llm_flat_open(b, LLM_FLAT_ARRAY);
    llm_show_str(b, call->key);
    llm_flat_close(b, inner, 1);

    llm_flat_close(b, schema, 3);
    llm_flat_close(b, function, 3);
    llm_flat_close(b, tool, 2);
}


void
llm_show_tools(llm_buf_t *b)
{
    size_t  i, handle;

    handle = llm_flat_open(b, LLM_FLAT_ARRAY);

    for (i = 0; i < llm_nelems(llm_show_calls); i++) {
        llm_show_tool(b, &llm_show_calls[i]);
    }

    llm_flat_close(b, handle, llm_nelems(llm_show_calls));
}


void
llm_show_add_call(llm_buf_t *b, const llm_show_call_t *call)
{
    size_t     handle, function, args;
    llm_buf_t  text;

    llm_buf_init(&text, 0);
    (void) llm_buf_addf(&text, "{\"%s\": \"%s\", \"%s\": %s}", call->key,
                        call->value, call->number_key, call->number);

    handle = llm_flat_open(b, LLM_FLAT_OBJECT);
    llm_show_pair(b, "id", call->id);
    llm_show_pair(b, "type", "function");
    llm_show_str(b, "function");

    function = llm_flat_open(b, LLM_FLAT_OBJECT);
    llm_show_pair(b, "name", call->name);
    llm_show_pair(b, "arguments", text.failed ? "" : text.data);
    llm_show_str(b, LLM_CHAT_ARGS);

    args = llm_flat_open(b, LLM_FLAT_OBJECT);
    llm_show_pair(b, call->key, call->value);
    llm_show_str(b, call->number_key);
    llm_flat_add_int(b, strtol(call->number, NULL, 10));
    llm_flat_close(b, args, 2);

    llm_flat_close(b, function, 3);
    llm_flat_close(b, handle, 3);

    b->failed |= text.failed;
    llm_buf_free(&text);
}


static void
llm_show_answer(llm_buf_t *b, const llm_show_t *show)
{
    size_t    handle, calls;
    uint32_t  i, count;

    handle = llm_flat_open(b, LLM_FLAT_OBJECT);
    llm_show_pair(b, "role", "assistant");
    llm_show_pair(b, "content", show->text ? LLM_SHOW_TEXT : "");
    count = 2;

    if (show->thought) {
        llm_show_pair(b, "reasoning_content", LLM_SHOW_THOUGHT);
        llm_show_pair(b, "reasoning", LLM_SHOW_THOUGHT);
        llm_show_pair(b, "thinking", LLM_SHOW_THOUGHT);
        count += 3;
    }

    if (show->calls) {
        llm_show_str(b, "tool_calls");
        calls = llm_flat_open(b, LLM_FLAT_ARRAY);

        for (i = 0; i < show->calls; i++) {
            llm_show_add_call(b, &llm_show_calls[i]);
        }

        llm_flat_close(b, calls, show->calls);
        count++;
    }

    llm_flat_close(b, handle, count);
}


/* show NULL: renders the prompt before the answer */

static int
llm_show_render(const llm_chat_t *c, const llm_show_t *show,
    llm_prompt_t *out)
{
    int               rc;
    size_t            request, handle, user;
    llm_buf_t         b;
    llm_err_t         err;
    llm_jinja_opts_t  opts;

    memset(&opts, 0, sizeof(opts));
    opts.max_steps = LLM_SHOW_STEPS;
    opts.max_memory = LLM_SHOW_MEMORY;
    opts.now = LLM_SHOW_NOW;

    llm_buf_init(&b, 0);

    request = llm_flat_open(&b, LLM_FLAT_OBJECT);
    llm_show_str(&b, "messages");

    handle = llm_flat_open(&b, LLM_FLAT_ARRAY);
    user = llm_flat_open(&b, LLM_FLAT_OBJECT);
    llm_show_pair(&b, "role", "user");
    llm_show_pair(&b, "content", "Hi");
    llm_flat_close(&b, user, 2);

    if (show) {
        llm_show_answer(&b, show);
    }

    llm_flat_close(&b, handle, show ? 2 : 1);

    llm_show_str(&b, "tools");
    llm_show_tools(&b);
    llm_show_str(&b, "add_generation_prompt");
    llm_flat_add_bool(&b, show == NULL);

    llm_show_str(&b, "chat_template_kwargs");
    handle = llm_flat_open(&b, LLM_FLAT_OBJECT);
    llm_show_str(&b, "enable_thinking");
    llm_flat_add_bool(&b, 1);
    llm_flat_close(&b, handle, 1);

    llm_flat_close(&b, request, 4);

    rc = b.failed ? LLM_ERROR
         : llm_chat_render_as(c, (const llm_flat_t *) b.data,
                              c->norms | LLM_CN_NULL, &opts, out, &err);

    llm_buf_free(&b);

    return rc;
}


/* length of the common beginning, without a tag that is only partly common */

static size_t
llm_show_common(const llm_prompt_t *prompt, const llm_prompt_t *whole)
{
    size_t       n, i;
    const char  *tag;

    n = 0;

    while (n < prompt->len && n < whole->len
           && prompt->text[n] == whole->text[n])
    {
        n++;
    }

    if (n == prompt->len) {
        return n;
    }

    /* the prompt's last tag, which may be a little later in the answer */

    for (i = prompt->len; i > n && prompt->text[i - 1] != '<'; i--) {
        /* void */
    }

    if (i > n && prompt->text[prompt->len - 1] == '>') {
        i--;
        tag = memmem(whole->text + n, whole->len - n, prompt->text + i,
                     prompt->len - i);

        if (tag) {
            return (size_t) (tag - whole->text) + prompt->len - i;
        }
    }

    for (i = n; i > 0 && n - i < 64 && whole->text[i - 1] != '>'; i--) {
        if (whole->text[i - 1] == '<') {
            return i - 1;
        }
    }

    return n;
}


int
llm_show(const llm_chat_t *c, const llm_show_t *show, llm_shown_t *out)
{
    size_t        n;
    llm_prompt_t  prompt, whole;

    memset(out, 0, sizeof(*out));

    if (llm_show_render(c, NULL, &prompt) != LLM_OK) {
        return LLM_ERROR;
    }

    if (llm_show_render(c, show, &whole) != LLM_OK) {
        llm_prompt_free(&prompt);
        return LLM_ERROR;
    }

    n = llm_show_common(&prompt, &whole);

    if (whole.len - n > LLM_SHOW_MOST) {
        llm_prompt_free(&whole);
        llm_prompt_free(&prompt);
        return LLM_ERROR;
    }

    out->mem = whole.text;
    out->prompt.data = whole.text;
    out->prompt.len = n;
    out->text.data = whole.text + n;
    out->text.len = whole.len - n;

    whole.text = NULL;
    llm_prompt_free(&whole);
    llm_prompt_free(&prompt);

    return LLM_OK;
}


void
llm_shown_free(llm_shown_t *s)
{
    free(s->mem);
    s->mem = NULL;
}
