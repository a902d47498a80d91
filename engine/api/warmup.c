/*
 * Requests of a warm-up, from a file; see llm_api_warmup().
 */

#include "engine/api/api.h"
#include "engine/base/file.h"


/* reads a line's tenant, and whether the line is a chat; the text stays in
   flat */

static int
llm_warmup_look(const char *line, size_t len, llm_buf_t *flat,
    llm_str_t *tenant, int *chat, llm_err_t *err)
{
    const llm_flat_t  *root, *v;

    flat->len = 0;

    if (llm_json_to_flat(line, len, NULL, flat, err) != LLM_OK) {
        return llm_json_refuse(err);
    }

    root = (const llm_flat_t *) flat->data;

    if (root->type != LLM_FLAT_OBJECT) {
        return llm_fail(err, "it is not an object");
    }

    v = llm_flat_get(root, "tenant");

    if (v == NULL || v->type != LLM_FLAT_STRING || llm_flat_str(v).len == 0) {
        return llm_fail(err, "it names no \"tenant\": only requests of the "
                        "same tenant share a prompt");
    }

    *tenant = llm_flat_str(v);
    *chat = llm_flat_get(root, "messages") != NULL;

    return LLM_OK;
}


static int
llm_warmup_line(const char *line, size_t len, const llm_api_conf_t *conf,
    llm_buf_t *flat, llm_warmup_pt take, void *data, llm_err_t *err)
{
    int               rc, chat = 0;
    llm_api_t        *a;
    llm_buf_t         msg;
    llm_str_t         tenant;
    llm_request_t    *r;
    llm_api_route_t   to;

    if (llm_warmup_look(line, len, flat, &tenant, &chat, err) != LLM_OK
        || llm_api_route(chat ? llm_str("chat/completions")
                              : llm_str("completions"), llm_str("POST"), &to)
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    llm_buf_init(&msg, 0);

    a = llm_api_parse(to.endpoint, conf, line, len, &msg, err);

    if (a == NULL) {
        llm_buf_free(&msg);
        return LLM_ERROR;
    }

    r = (llm_request_t *) msg.data;
    r->n = 1;
    r->max_tokens = 1;
    r->min_tokens = 0;
    r->flags &= ~(uint32_t) (LLM_REQ_STREAM|LLM_REQ_ECHO|LLM_REQ_TOKEN_IDS
                             |LLM_REQ_PROGRESS);
    r->sampling.n_logprobs = -1;

    rc = take(data, r, tenant, err);

    llm_api_free(a);
    llm_buf_free(&msg);

    return rc;
}


static int
llm_warmup_lines(const llm_buf_t *text, const llm_api_conf_t *conf,
    llm_warmup_pt take, void *data, llm_err_t *err)
{
    int          rc;
    size_t       pos, len;
    uint32_t     n;
    llm_err_t    why;
    llm_buf_t    flat;
    const char  *line, *end;

    rc = LLM_OK;
    llm_buf_init(&flat, 0);

    for (pos = 0, n = 1; rc == LLM_OK && pos < text->len; pos += len + 1, n++)
    {
        line = text->data + pos;
        end = memchr(line, '\n', text->len - pos);
        len = end ? (size_t) (end - line) : text->len - pos;

        if (len == 0 || *line == '#') {
            continue;
        }

        rc = llm_warmup_line(line, len, conf, &flat, take, data, &why);

        if (rc != LLM_OK) {
            (void) llm_fail(err, "line %u: %.400s", n, why.msg);
        }
    }

    llm_buf_free(&flat);

    return rc;
}


int
llm_api_warmup(const char *path, const llm_api_conf_t *conf,
    llm_warmup_pt take, void *data, llm_err_t *err)
{
    int        rc;
    llm_buf_t  text;

    llm_buf_init(&text, LLM_WARMUP_BYTES);

    rc = llm_file_read(path, &text, err);

    if (rc == LLM_OK) {
        rc = llm_warmup_lines(&text, conf, take, data, err);
    }

    llm_buf_free(&text);

    return rc;
}
