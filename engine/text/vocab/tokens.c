/*
 * Adds ids that the tokenizers produce, within the bound on their number, and
 * prepares their text.
 */

#include "engine/text/vocab/internal.h"
#include "engine/base/utf8.h"


int
llm_tok_no_memory(llm_tok_t *t)
{
    return llm_fail(t->err, "no memory to tokenize a text");
}


static int
llm_tok_too_many(llm_tok_t *t)
{
    return llm_fail_with(t->err, 400, "context_length_exceeded", NULL,
                         "the text has more tokens than fit");
}


/* a token stands for at most max_len bytes, an unknown one for a character */

int
llm_tok_fits(llm_tok_t *t, size_t n)
{
    size_t  longest;

    longest = llm_max(t->vocab->max_len, (size_t) LLM_UTF8_MAX);

    return t->vocab->leaves_out || n / longest <= t->max_ids - t->out->len
           ? LLM_OK : llm_tok_too_many(t);
}


int
llm_tok_push(llm_tok_t *t, int32_t id)
{
    size_t      cap;
    int32_t    *data;
    llm_ids_t  *out;

    out = t->out;

    if (out->len >= t->max_ids) {
        return llm_tok_too_many(t);
    }

    if (out->len == out->cap) {
        cap = llm_max(out->cap * 2, (size_t) 64);

        data = realloc(out->data, cap * sizeof(int32_t));
        if (data == NULL) {
            return llm_tok_no_memory(t);
        }

        out->data = data;
        out->cap = cap;
    }

    out->data[out->len++] = id;

    return LLM_OK;
}


int
llm_tok_push_bytes(llm_tok_t *t, const char *p, size_t n)
{
    size_t   i;
    int32_t  id;

    for (i = 0; i < n; i++) {
        id = t->vocab->byte_id[(unsigned char) p[i]];

        if (id != -1) {
            if (llm_tok_push(t, id) != LLM_OK) {
                return LLM_ERROR;
            }

            continue;
        }

        if (t->vocab->kind == LLM_VOCAB_BPE) {
            continue;
        }

        /* without byte tokens the whole character becomes the unknown token */

        if (t->vocab->unk == -1) {
            return llm_fail_with(t->err, 400, NULL, NULL,
                                 "the model has no token for the byte 0x%02x",
                                 (unsigned char) p[i]);
        }

        return llm_tok_push(t, t->vocab->unk);
    }

    return LLM_OK;
}


int
llm_tok_escape(llm_tok_t *t, const char **p, size_t *n)
{
    char    *out;
    size_t   i, len, spaces;

    spaces = t->vocab->space_prefix != 0;

    for (i = 0; i < *n; i++) {
        spaces += (*p)[i] == ' ';
    }

    t->text.len = 0;
    len = 0;

    out = llm_buf_reserve(&t->text, *n + spaces * LLM_SPACE_MARK_LEN);
    if (out == NULL) {
        return llm_tok_no_memory(t);
    }

    if (t->vocab->space_prefix) {
        memcpy(out, LLM_SPACE_MARK, LLM_SPACE_MARK_LEN);
        len = LLM_SPACE_MARK_LEN;
    }

    for (i = 0; i < *n; i++) {

        if ((*p)[i] == ' ') {
            memcpy(out + len, LLM_SPACE_MARK, LLM_SPACE_MARK_LEN);
            len += LLM_SPACE_MARK_LEN;

        } else {
            out[len++] = (*p)[i];
        }
    }

    *p = out;
    *n = len;

    return LLM_OK;
}
