/*
 * Standard input and output of the commands; see cli.h.
 */

#include "engine/cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#define LLM_CLI_READ  65536


int
llm_cli_read(llm_buf_t *b, llm_err_t *err)
{
    char   *p;
    size_t  n;

    do {
        p = llm_buf_reserve(b, LLM_CLI_READ);
        if (p == NULL) {
            return llm_fail(err, "standard input: more than %zu MiB",
                            b->limit >> 20);
        }

        n = fread(p, 1, LLM_CLI_READ, stdin);
        b->len += n;
        b->data[b->len] = '\0';

    } while (n);

    if (ferror(stdin)) {
        return llm_fail(err, "standard input: %s", strerror(errno));
    }

    return LLM_OK;
}


static int
llm_cli_add_id(llm_ids_t *ids, int32_t id, llm_err_t *err)
{
    size_t    cap;
    int32_t  *data;

    if (ids->len == ids->cap) {
        cap = ids->cap ? ids->cap * 2 : 256;

        data = realloc(ids->data, cap * sizeof(int32_t));
        if (data == NULL) {
            return llm_fail(err, "no memory for the ids");
        }

        ids->data = data;
        ids->cap = cap;
    }

    ids->data[ids->len++] = id;

    return LLM_OK;
}


static int
llm_cli_is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}


/* is the word at b->data[start] up to `end` the one that an image stands for? */

static int
llm_cli_is_here(const llm_buf_t *b, size_t start, size_t end)
{
    static const char  word[] = "image";

    return end - start == sizeof(word) - 1
           && memcmp(b->data + start, word, end - start) == 0;
}


static int
llm_cli_parse_ids(const llm_buf_t *b, uint32_t n_vocab, int images,
    llm_ids_t *ids, llm_err_t *err)
{
    int       digits;
    size_t    i, start;
    uint64_t  v;

    for (i = 0; i < b->len; i++) {
        if (llm_cli_is_space(b->data[i])) {
            continue;
        }

        start = i;
        digits = 1;
        v = 0;

        for ( /* void */ ; i < b->len && !llm_cli_is_space(b->data[i]); i++) {
            if (b->data[i] < '0' || b->data[i] > '9') {
                digits = 0;
            }

            v = llm_min(v * 10 + (uint64_t) (b->data[i] - '0'),
                        (uint64_t) INT_MAX + 1);
        }

        if (images && llm_cli_is_here(b, start, i)) {
            if (llm_cli_add_id(ids, LLM_CLI_HERE, err) != LLM_OK) {
                return LLM_ERROR;
            }

            continue;
        }

        if (!digits) {
            return llm_fail(err, "standard input: id %zu, \"%.*s\", is not "
                            "a number", ids->len + 1,
                            (int) llm_min(i - start, 32), b->data + start);
        }

        if (v >= n_vocab) {
            return llm_fail(err, "standard input: id %zu, %.*s, is not a "
                            "token of this model, which has %u",
                            ids->len + 1, (int) llm_min(i - start, 32),
                            b->data + start, n_vocab);
        }

        if (llm_cli_add_id(ids, (int32_t) v, err) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


int
llm_cli_read_ids(uint32_t n_vocab, int images, llm_ids_t *ids,
    llm_err_t *err)
{
    int        rc;
    llm_buf_t  b;

    llm_buf_init(&b, 0);

    rc = llm_cli_read(&b, err);

    if (rc == LLM_OK) {
        rc = llm_cli_parse_ids(&b, n_vocab, images, ids, err);
    }

    llm_buf_free(&b);

    return rc;
}


int
llm_cli_write(const void *data, size_t len, llm_err_t *err)
{
    if (len && fwrite(data, 1, len, stdout) != len) {
        return llm_fail(err, "standard output: %s", strerror(errno));
    }

    return LLM_OK;
}


int
llm_cli_flush(llm_err_t *err)
{
    if (fflush(stdout) != 0) {
        return llm_fail(err, "standard output: %s", strerror(errno));
    }

    return LLM_OK;
}
