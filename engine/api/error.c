/*
 * Error bodies and frames: {"error": {message, type, param, code}}, all four
 * always there, the type follows from the status; with a type of its own where
 * the path is llama-server's; or in the endpoint's own form.
 */

#include "engine/api/endpoint.h"

#include <stdio.h>


/* is p at the whole name, not only at something that begins with it? */

static int
llm_api_is_name(const char *p, const llm_api_name_t *name)
{
    size_t  len;

    len = strlen(name->theirs);

    return strncmp(p, name->theirs, len) == 0
           && (p[len] == '\0' || strchr(".['", p[len]));
}


/* replaces the name at p by the endpoint's own; cuts what does not fit */

static void
llm_api_rename(char *buf, size_t size, char *p, const llm_api_name_t *name)
{
    char  rest[sizeof(((llm_err_t *) 0)->msg)];

    snprintf(rest, sizeof(rest), "%s", p + strlen(name->theirs));
    snprintf(p, size - (size_t) (p - buf), "%s%s", name->own, rest);
}


/* LLM_ABSENT: the error is not about this parameter */

static int
llm_api_own_name(const llm_api_name_t *name, llm_err_t *err)
{
    char  *p;

    if (!llm_api_is_name(err->param, name)) {
        return LLM_ABSENT;
    }

    llm_api_rename(err->param, sizeof(err->param), err->param, name);

    p = strchr(err->msg, '\'');

    if (p && llm_api_is_name(p + 1, name)) {
        llm_api_rename(err->msg, sizeof(err->msg), p + 1, name);
    }

    return LLM_OK;
}


void
llm_api_own_names(const llm_api_endpoint_t *ep, llm_err_t *err)
{
    const llm_api_name_t  *name;

    for (name = ep->names; name && name->theirs; name++) {
        if (llm_api_own_name(name, err) == LLM_OK) {
            return;
        }
    }
}


void
llm_api_own_schema(llm_str_t schemas, llm_err_t *err)
{
    char             theirs[64];
    uint32_t         i;
    const char      *p;
    llm_api_name_t   name;

    p = schemas.data;

    for (i = 0; p && p < schemas.data + schemas.len; i++) {
        snprintf(theirs, sizeof(theirs), "tools[%u].function.parameters", i);
        name.theirs = theirs;
        name.own = p;

        if (llm_api_own_name(&name, err) == LLM_OK) {
            return;
        }

        p += strlen(p) + 1;
    }
}


static const char *
llm_api_error_type(int status)
{
    switch (status) {

    case 401:
        return "authentication_error";

    case 403:
        return "permission_error";

    case 429:
        return "rate_limit_error";

    default:
        return status < 500 ? "invalid_request_error" : "server_error";
    }
}


static void
llm_api_add_member(llm_buf_t *out, const char *key, const char *value)
{
    (void) llm_buf_addf(out, ",\"%s\":", key);

    if (*value) {
        (void) llm_json_add_string(out, value, strlen(value));

    } else {
        (void) llm_buf_adds(out, "null");
    }
}


static const char *
llm_api_error_code(const llm_err_t *err)
{
    return *err->code == '\0' && err->status == 429 ? "rate_limit_exceeded"
                                                    : err->code;
}


const char *
llm_api_error_word(const llm_err_t *err)
{
    const char  *code;

    code = llm_api_error_code(err);

    return *code ? code : llm_api_error_type(err->status);
}


void
llm_api_error_text(const llm_err_t *err, llm_buf_t *out)
{
    if ((strpbrk(err->param, "[.") || strcmp(err->code, "invalid_value") == 0)
        && strstr(err->msg, err->param) == NULL)
    {
        (void) llm_json_add_text(out, err->param, strlen(err->param));
        (void) llm_buf_adds(out, ": ");
    }

    (void) llm_json_add_text(out, err->msg, strlen(err->msg));
}


/* with the members of llama-server's error of a prompt that is too long */

static void
llm_api_error_object(const llm_err_t *err, const char *type, const char *msg,
    llm_buf_t *out)
{
    (void) llm_buf_adds(out, "{\"error\":{\"message\":");
    (void) llm_json_add_string(out, msg, strlen(msg));
    llm_api_add_member(out, "type", type);
    llm_api_add_member(out, "param", err->param);
    llm_api_add_member(out, "code", llm_api_error_code(err));

    if (err->n_ctx) {
        (void) llm_buf_addf(out, ",\"n_prompt_tokens\":%u,\"n_ctx\":%u",
                            err->n_prompt, err->n_ctx);
    }

    (void) llm_buf_adds(out, "}}");
}


void
llm_api_llama_error(const llm_err_t *err, llm_str_t id, llm_buf_t *out)
{
    char  msg[128];

    (void) id;

    if (err->n_ctx == 0) {
        llm_api_error_object(err, llm_api_error_type(err->status), err->msg,
                             out);
        return;
    }

    /* in llama-server's words, which its clients look for */

    snprintf(msg, sizeof(msg), "The prompt has at least %u tokens, which "
             "exceeds the available context size (%u tokens).", err->n_prompt,
             err->n_ctx);

    llm_api_error_object(err, "exceed_context_size_error", msg, out);
}


int
llm_api_error_body(const llm_api_endpoint_t *ep, llm_str_t id,
    const llm_err_t *err, llm_buf_t *out)
{
    if (ep && ep->error) {
        ep->error(err, id, out);

    } else {
        llm_api_error_object(err, llm_api_error_type(err->status), err->msg,
                             out);
    }

    return out->failed ? LLM_ERROR : LLM_OK;
}


int
llm_api_error_frame(llm_api_t *a, const llm_err_t *err, llm_buf_t *out)
{
    if (a->endpoint->fail) {
        a->endpoint->fail(a, err, out);
        return out->failed ? LLM_ERROR : LLM_OK;
    }

    (void) llm_buf_adds(out, "data: ");
    (void) llm_api_error_body(a->endpoint, a->id, err, out);

    return llm_buf_adds(out, "\n\n");
}
