/*
 * The command parse: parses a model's answers by the formats of its template,
 * as the server does.  A line of the input is an object with "request", in the
 * form that `llm render` takes, and "raw", the answer's text; a line of the
 * output has "content", "reasoning_content" and "tool_calls".
 */

#include "engine/api/arguments.h"
#include "engine/cli/cli.h"
#include "engine/emit/answer.h"

/* the parts of an answer so far */
typedef struct {
    llm_buf_t    content;
    llm_buf_t    reasoning;
    llm_buf_t    calls;                 /* items of a JSON array; the last call
                                           is not closed while open is 1 */
    llm_buf_t    args;                  /* arguments of the last call */
    int          open;                  /* 1: the last call lacks its
                                           arguments in calls */
} llm_cli_parsed_t;


static void
llm_cli_close_call(llm_cli_parsed_t *p)
{
    if (p->open) {
        (void) llm_buf_adds(&p->calls, "\", \"arguments\": ");
        (void) llm_json_add_string(&p->calls, p->args.len ? p->args.data : "",
                                   p->args.len);
        (void) llm_buf_addc(&p->calls, '}');
    }

    p->open = 0;
    p->args.len = 0;
}


static int
llm_cli_part(void *data, llm_part_t part, uint32_t call, llm_str_t text)
{
    llm_cli_parsed_t  *p;

    p = data;

    switch (part) {

    case LLM_PART_CONTENT:
        return llm_buf_add(&p->content, text.data, text.len);

    case LLM_PART_REASONING:
        return llm_buf_add(&p->reasoning, text.data, text.len);

    case LLM_PART_TOOL_NAME:
        llm_cli_close_call(p);
        p->open = 1;
        (void) llm_buf_adds(&p->calls, call ? ", {\"name\": \""
                                            : "{\"name\": \"");
        return llm_json_add_text(&p->calls, text.data, text.len);

    default:
        return llm_buf_add(&p->args, text.data, text.len);
    }
}


static int
llm_cli_push(llm_answer_t *a, llm_str_t raw, int stream)
{
    int     rc;
    size_t  i;

    if (!stream) {
        rc = llm_answer_push(a, raw);

    } else {
        for (i = 0, rc = LLM_OK; i < raw.len && rc == LLM_OK; i++) {
            rc = llm_answer_push(a, (llm_str_t) { 1, raw.data + i });
        }
    }

    return rc == LLM_OK ? llm_answer_end(a, LLM_TEXT_DONE) : rc;
}


static int
llm_cli_answer(const llm_answer_opts_t *o, llm_str_t raw, int stream,
    llm_buf_t *out, llm_err_t *err)
{
    int                rc;
    llm_answer_t      *a;
    llm_cli_parsed_t   p;

    p.open = 0;
    llm_buf_init(&p.content, 0);
    llm_buf_init(&p.reasoning, 0);
    llm_buf_init(&p.calls, 0);
    llm_buf_init(&p.args, 0);

    a = llm_answer_create(o, llm_cli_part, &p);
    rc = a ? llm_cli_push(a, raw, stream) : LLM_ERROR;
    llm_answer_free(a);

    if (rc == LLM_OK) {
        llm_cli_close_call(&p);
        (void) llm_buf_adds(out, "{\"content\": ");
        (void) llm_json_add_string(out, p.content.len ? p.content.data : "",
                                   p.content.len);
        (void) llm_buf_adds(out, ", \"reasoning_content\": ");
        (void) llm_json_add_string(out,
                                   p.reasoning.len ? p.reasoning.data : "",
                                   p.reasoning.len);
        (void) llm_buf_adds(out, ", \"tool_calls\": [");
        (void) llm_buf_add(out, p.calls.data, p.calls.len);
        (void) llm_buf_adds(out, "]}\n");
    }

    if (rc != LLM_OK || out->failed || p.content.failed || p.reasoning.failed
        || p.calls.failed || p.args.failed)
    {
        rc = llm_fail(err, "no memory for the answer");
    }

    llm_buf_free(&p.content);
    llm_buf_free(&p.reasoning);
    llm_buf_free(&p.calls);
    llm_buf_free(&p.args);

    return rc;
}


/* see llm_answer_open(); -1, none, if the template cannot render the request */

static int
llm_cli_open(const llm_chat_t *chat, const llm_flat_t *request)
{
    int               open;
    llm_err_t         err;
    llm_prompt_t      prompt;
    llm_jinja_opts_t  opts;

    memset(&opts, 0, sizeof(opts));
    memset(&prompt, 0, sizeof(prompt));

    if (llm_chat_render(chat, request, &opts, &prompt, NULL, &err) != LLM_OK) {
        return -1;
    }

    open = llm_answer_open(llm_chat_format(chat), llm_chat_tail(&prompt));
    llm_prompt_free(&prompt);

    return open;
}


static int
llm_cli_is(const llm_flat_t *v, const char *s)
{
    return v && v->type == LLM_FLAT_STRING && v->count == strlen(s)
           && memcmp(llm_flat_str(v).data, s, v->count) == 0;
}


static int
llm_cli_case(const llm_chat_t *chat, const llm_flat_t *line, int stream,
    llm_buf_t *out, llm_err_t *err)
{
    int                 rc;
    llm_buf_t           b;
    llm_tools_t         tools;
    llm_answer_opts_t   o;
    const llm_flat_t   *request, *raw, *choice;
    llm_json_limits_t   limits = { LLM_FLAT_MAX_DEPTH, LLM_JSON_MAX_VALUES,
                                   1 };

    request = line->type == LLM_FLAT_OBJECT ? llm_flat_get(line, "request")
                                            : NULL;
    raw = line->type == LLM_FLAT_OBJECT ? llm_flat_get(line, "raw") : NULL;

    if (request == NULL || request->type != LLM_FLAT_OBJECT || raw == NULL
        || raw->type != LLM_FLAT_STRING)
    {
        return llm_fail(err, "a line needs an object \"request\" and a string "
                        "\"raw\"");
    }

    llm_buf_init(&b, 0);

    if (llm_args_add_request(request, &limits, &b, err) != LLM_OK) {
        llm_buf_free(&b);
        return LLM_ERROR;
    }

    request = (const llm_flat_t *) b.data;

    if (llm_tools_init(&tools, llm_flat_get(request, "tools")) != LLM_OK) {
        rc = llm_fail(err, "no memory for the tools");

    } else {
        choice = llm_flat_get(request, "tool_choice");

        o.format = llm_chat_format(chat);
        o.tools = &tools;
        o.flags = LLM_ANSWER_REASONING;
        o.open = llm_cli_open(chat, request);
        o.form = NULL;

        if (tools.n && !llm_cli_is(choice, "none")) {
            o.flags |= LLM_ANSWER_TOOLS;
        }

        rc = llm_cli_answer(&o, llm_flat_str(raw), stream, out, err);
        llm_tools_free(&tools);
    }

    llm_buf_free(&b);

    return rc;
}


static int
llm_cli_lines(const llm_chat_t *chat, llm_str_t text, int stream,
    llm_err_t *err)
{
    int                 rc;
    size_t              number;
    llm_buf_t           flat, out;
    llm_err_t           why;
    const char         *end;
    llm_json_limits_t   limits;

    rc = LLM_OK;
    llm_buf_init(&flat, 0);
    llm_buf_init(&out, 0);

    for (number = 1; text.len && rc == LLM_OK; number++) {
        end = memchr(text.data, '\n', text.len);
        end = end ? end : text.data + text.len;

        if (end > text.data) {
            flat.len = 0;
            out.len = 0;
            limits.depth = LLM_FLAT_MAX_DEPTH;
            limits.values = LLM_JSON_MAX_VALUES;
            limits.lenient = 1;

            rc = llm_json_to_flat(text.data, (size_t) (end - text.data),
                                  &limits, &flat, &why);

            if (rc == LLM_OK) {
                rc = llm_cli_case(chat, (const llm_flat_t *) flat.data,
                                  stream, &out, &why);
            }

            rc = rc == LLM_OK
                 ? llm_cli_write(out.data, out.len, err)
                 : llm_fail(err, "standard input, line %zu: %s", number,
                            why.msg);
        }

        end += end < text.data + text.len;
        text.len -= (size_t) (end - text.data);
        text.data = end;
    }

    llm_buf_free(&flat);
    llm_buf_free(&out);

    return rc;
}


int
llm_cli_parse(const llm_cli_t *c, llm_err_t *err)
{
    int          rc;
    llm_buf_t    text;
    llm_chat_t  *chat;

    chat = llm_cli_chat(c->file, err);
    if (chat == NULL) {
        return LLM_ERROR;
    }

    llm_buf_init(&text, 0);
    rc = llm_cli_read(&text, err);

    if (rc == LLM_OK) {
        rc = llm_cli_lines(chat, (llm_str_t) { text.len, text.data },
                           c->stream, err);
    }

    llm_buf_free(&text);
    llm_chat_free(chat);

    return rc;
}
