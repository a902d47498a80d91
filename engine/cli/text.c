/*
 * Commands on text: tokenize, detokenize, render.  They need a vocabulary or a
 * chat template, but no weights.
 */

#include "engine/file/source.h"
#include "engine/cli/cli.h"
#include "engine/api/arguments.h"
#include "engine/base/file.h"
#include "engine/base/kind.h"
#include "engine/text/chat/chat.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define LLM_CLI_MAX_TEMPLATE  ((size_t) 16 << 20)


llm_vocab_t *
llm_cli_vocab(const char *file, llm_err_t *err)
{
    llm_gguf_t   *g;
    llm_vocab_t  *v;

    g = llm_source_open(file, err);
    if (g == NULL) {
        return NULL;
    }

    v = llm_vocab_load(g, err);
    llm_gguf_close(g);

    if (v && llm_vocab_warning(v)) {
        fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, file,
                llm_vocab_warning(v));
    }

    return v;
}


static int
llm_cli_print_ids(const llm_ids_t *ids, llm_err_t *err)
{
    int        rc;
    size_t     i;
    llm_buf_t  b;

    llm_buf_init(&b, 0);

    for (i = 0; i < ids->len; i++) {
        (void) llm_buf_addf(&b, "%s%d", i ? " " : "", ids->data[i]);
    }

    if (llm_buf_addc(&b, '\n') != LLM_OK) {
        rc = llm_fail(err, "no memory for the output");

    } else {
        rc = llm_cli_write(b.data, b.len, err);
    }

    llm_buf_free(&b);

    return rc;
}


int
llm_cli_tokenize(const llm_cli_t *c, llm_err_t *err)
{
    int           rc;
    llm_buf_t     b;
    llm_ids_t     ids = { NULL, 0, 0 };
    llm_vocab_t  *v;

    v = llm_cli_vocab(c->file, err);
    if (v == NULL) {
        return LLM_ERROR;
    }

    llm_buf_init(&b, 0);

    rc = llm_cli_read(&b, err);

    if (rc == LLM_OK) {
        rc = llm_vocab_tokenize(v, b.data, b.len, NULL, 0,
                                c->special ? LLM_TOKENIZE_SPECIAL
                                           : LLM_TOKENIZE_PLAIN,
                                0, &ids, err);
    }

    if (rc == LLM_OK) {
        rc = llm_cli_print_ids(&ids, err);
    }

    free(ids.data);
    llm_buf_free(&b);
    llm_vocab_free(v);

    return rc;
}


/* special tokens are written as their text, so that the output is exactly the
   text that was tokenized */

int
llm_cli_detokenize(const llm_cli_t *c, llm_err_t *err)
{
    int           rc;
    size_t        i;
    llm_ids_t     ids = { NULL, 0, 0 };
    llm_str_t     s;
    llm_vocab_t  *v;
    llm_detok_t   d;

    v = llm_cli_vocab(c->file, err);
    if (v == NULL) {
        return LLM_ERROR;
    }

    llm_detok_init(&d, v, 1, 1);
    d.raw = 1;

    rc = llm_cli_read_ids(llm_vocab_size(v), 0, &ids, err);

    for (i = 0; rc == LLM_OK && i < ids.len; i++) {
        s = llm_detok_push(&d, ids.data[i]);
        rc = llm_cli_write(s.data, s.len, err);
    }

    if (rc == LLM_OK) {
        s = llm_detok_flush(&d, 0);
        rc = llm_cli_write(s.data, s.len, err);
    }

    if (rc == LLM_OK && d.failed) {
        rc = llm_fail(err, "no memory for the text");
    }

    llm_detok_free(&d);
    free(ids.data);
    llm_vocab_free(v);

    return rc;
}


/* *yes: may the file be a template?  Text and unknown bytes may, and an empty
   file is one */

static int
llm_cli_is_template(const char *file, int *yes, llm_err_t *err)
{
    int               fd;
    char              head[4096];
    ssize_t           n;
    llm_file_kind_t   kind;

    fd = llm_file_open(file, err);
    if (fd == -1) {
        return LLM_ERROR;
    }

    n = read(fd, head, sizeof(head));
    (void) close(fd);

    if (n == -1) {
        return llm_fail(err, "%s: %s", file, strerror(errno));
    }

    llm_file_kind(head, (size_t) n, (uint64_t) n, &kind);
    *yes = n == 0 || kind.text;

    return LLM_OK;
}


static llm_str_t
llm_cli_token_text(const llm_vocab_t *v, int32_t id)
{
    return id < 0 ? llm_str("") : llm_vocab_bytes(v, id);
}


static llm_chat_t *
llm_cli_chat_gguf(const char *file, llm_err_t *err)
{
    llm_str_t     src;
    llm_chat_t   *chat;
    llm_gguf_t   *g;
    llm_vocab_t  *v;

    g = llm_source_open(file, err);
    if (g == NULL) {
        return NULL;
    }

    v = NULL;
    chat = NULL;

    switch (llm_gguf_get_str(g, "tokenizer.chat_template", &src, err)) {

    case LLM_OK:
        v = llm_vocab_load(g, err);
        break;

    case LLM_ABSENT:
        (void) llm_fail(err, "%s: tokenizer.chat_template: it is missing",
                        file);
        break;

    default:
        break;
    }

    if (v) {
        chat = llm_chat_create(src, llm_cli_token_text(v, llm_vocab_bos(v)),
                               llm_cli_token_text(v, llm_vocab_eos(v)), err);
        llm_vocab_free(v);
    }

    llm_gguf_close(g);

    return chat;
}


/* prefixes the message of *err with where */

static int
llm_cli_fail_in(llm_err_t *err, const char *where)
{
    llm_err_t  what;

    what = *err;

    return llm_fail(err, "%s: %s", where, what.msg);
}


llm_chat_t *
llm_cli_chat(const char *file, llm_err_t *err)
{
    int          template;
    llm_buf_t    b;
    llm_str_t    src;
    llm_chat_t  *chat;

    if (llm_cli_is_template(file, &template, err) != LLM_OK) {
        return NULL;
    }

    if (!template) {
        return llm_cli_chat_gguf(file, err);
    }

    llm_buf_init(&b, LLM_CLI_MAX_TEMPLATE);
    chat = NULL;

    if (llm_file_read(file, &b, err) == LLM_OK) {
        src.data = b.data;
        src.len = b.len;
        chat = llm_chat_create(src, llm_str(""), llm_str(""), err);

        if (chat == NULL) {
            (void) llm_cli_fail_in(err, file);
        }
    }

    llm_buf_free(&b);

    return chat;
}


/* converts a JSON request to the flat form that llm_chat_render() takes */

static int
llm_cli_request(const llm_buf_t *text, llm_buf_t *out, llm_err_t *err)
{
    int                 rc;
    llm_buf_t           flat;
    const llm_flat_t   *request;
    llm_json_limits_t   limits = { LLM_FLAT_MAX_DEPTH, LLM_JSON_MAX_VALUES,
                                   1 };

    llm_buf_init(&flat, 0);

    rc = llm_json_to_flat(text->data, text->len, &limits, &flat, err);
    request = (const llm_flat_t *) flat.data;

    if (rc == LLM_OK && request->type != LLM_FLAT_OBJECT) {
        rc = llm_fail(err, "the request is not an object");
    }

    if (rc == LLM_OK) {
        rc = llm_args_add_request(request, &limits, out, err);
    }

    llm_buf_free(&flat);

    return rc == LLM_OK ? LLM_OK : llm_cli_fail_in(err, "standard input");
}


static int
llm_cli_render_request(const llm_chat_t *chat, llm_err_t *err)
{
    int               rc;
    llm_buf_t         text, flat;
    llm_prompt_t      prompt;
    llm_jinja_opts_t  o;

    llm_buf_init(&text, 0);
    llm_buf_init(&flat, 0);
    memset(&o, 0, sizeof(o));
    memset(&prompt, 0, sizeof(prompt));

    rc = llm_cli_read(&text, err);

    if (rc == LLM_OK) {
        rc = llm_cli_request(&text, &flat, err);
    }

    if (rc == LLM_OK) {
        rc = llm_chat_render(chat, (const llm_flat_t *) flat.data, &o,
                             &prompt, NULL, err);
    }

    if (rc == LLM_OK) {
        rc = llm_cli_write(prompt.text, prompt.len, err);
        llm_prompt_free(&prompt);
    }

    llm_buf_free(&flat);
    llm_buf_free(&text);

    return rc;
}


int
llm_cli_render(const llm_cli_t *c, llm_err_t *err)
{
    int          rc;
    llm_chat_t  *chat;

    chat = llm_cli_chat(c->file, err);
    if (chat == NULL) {
        return LLM_ERROR;
    }

    rc = llm_cli_render_request(chat, err);
    llm_chat_free(chat);

    return rc;
}
