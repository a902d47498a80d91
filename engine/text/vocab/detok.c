/*
 * Incremental detokenising; see vocab.h.
 *
 * Bytes come in token by token, whole characters go out.  The tail holds the
 * beginning of an incomplete character, at most 3 bytes.
 */

#include "engine/base/utf8.h"
#include "engine/text/vocab/internal.h"


void
llm_detok_init(llm_detok_t *d, const llm_vocab_t *v, int special, int strip)
{
    memset(d, 0, sizeof(*d));
    d->vocab = v;
    d->special = special;

    /* only a text that got a space put before it loses one */

    d->started = !strip || !(v->space_prefix
                             || v->kind == LLM_VOCAB_WORDPIECE);
}


/* makes room for n bytes of input, each of which may become U+FFFD */

static int
llm_detok_reserve(llm_detok_t *d, size_t n)
{
    char    *out;
    size_t   cap;

    cap = n * 3;

    if (cap <= d->cap) {
        return LLM_OK;
    }

    cap = llm_max(cap, (size_t) 256);

    out = realloc(d->out, cap);
    if (out == NULL) {
        return LLM_ERROR;
    }

    d->out = out;
    d->cap = cap;

    return LLM_OK;
}


/* writes bytes that are no character, unchanged or as U+FFFD; returns the
   number of bytes written */

static size_t
llm_detok_bad(char *out, const char *p, size_t n, int replace)
{
    if (replace) {
        memcpy(out, LLM_UTF8_REPLACEMENT, 3);
        return 3;
    }

    memcpy(out, p, n);

    return n;
}


/*
 * Appends the characters of the tail and p to d->out from *len on.  The tail
 * is less than a character, so the next byte of p decides whether it
 * continues; it is fed one byte at a time.
 */

static void
llm_detok_feed(llm_detok_t *d, const char *p, size_t n, size_t *len)
{
    int      partial;
    size_t   bad, whole;

    while (n) {

        if (d->len == 0) {
            whole = llm_utf8_valid(p, n);
            memcpy(d->out + *len, p, whole);
            *len += whole;
            p += whole;
            n -= whole;

            if (n == 0) {
                return;
            }
        }

        d->tail[d->len++] = *p++;
        n--;

        while (d->len) {

            if (llm_utf8_decode(d->tail, d->len, NULL) == d->len) {
                memcpy(d->out + *len, d->tail, d->len);
                *len += d->len;
                d->len = 0;
                break;
            }

            bad = llm_utf8_bad(d->tail, d->len, &partial);
            if (partial) {
                break;
            }

            *len += llm_detok_bad(d->out + *len, d->tail, bad, !d->raw);
            d->len -= bad;
            memmove(d->tail, d->tail + bad, d->len);
        }
    }
}


llm_str_t
llm_detok_push(llm_detok_t *d, int32_t id)
{
    size_t             len;
    llm_str_t          s;
    llm_token_type_t   type;

    type = llm_vocab_type(d->vocab, id);
    s = llm_vocab_bytes(d->vocab, id);

    if (type == LLM_TOKEN_CONTROL || type == LLM_TOKEN_UNKNOWN) {

        if (!d->special) {
            return llm_str("");
        }

    } else if (!d->started && s.len) {
        d->started = 1;

        if (s.data[0] == ' ') {
            s.data++;
            s.len--;
        }
    }

    if (llm_detok_reserve(d, d->len + s.len) != LLM_OK) {
        d->failed = 1;
        return llm_str("");
    }

    len = 0;
    llm_detok_feed(d, s.data, s.len, &len);

    s.data = len ? d->out : "";
    s.len = len;

    return s;
}


llm_str_t
llm_detok_flush(llm_detok_t *d, int replace)
{
    llm_str_t  s;

    if (d->len == 0 || llm_detok_reserve(d, d->len) != LLM_OK) {
        return llm_str("");
    }

    s.data = d->out;
    s.len = llm_detok_bad(d->out, d->tail, d->len, replace);
    d->len = 0;

    return s;
}


void
llm_detok_free(llm_detok_t *d)
{
    free(d->out);
    d->out = NULL;
    d->cap = 0;
}
