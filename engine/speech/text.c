/*
 * Tokens as text; see text.h.
 */

#include "engine/speech/text.h"

#include "engine/base/unicode.h"
#include "engine/base/utf8.h"

#include <zlib.h>


int
llm_speech_utf8(llm_buf_t *out, const char *p, size_t n)
{
    size_t  good;

    while (n) {
        good = llm_utf8_valid(p, n);
        (void) llm_buf_add(out, p, good);
        p += good;
        n -= good;

        if (n) {
            good = llm_utf8_bad(p, n, NULL);
            (void) llm_buf_adds(out, LLM_UTF8_REPLACEMENT);
            p += good;
            n -= good;
        }
    }

    return out->failed ? LLM_ERROR : LLM_OK;
}


int
llm_speech_text(llm_buf_t *out, const llm_vocab_t *v, int32_t eot,
    const int32_t *tokens, size_t n)
{
    size_t     i;
    llm_buf_t  raw;
    llm_str_t  bytes;

    llm_buf_init(&raw, 0);

    for (i = 0; i < n; i++) {
        if (tokens[i] < eot) {
            bytes = llm_vocab_bytes(v, tokens[i]);
            (void) llm_buf_add(&raw, bytes.data, bytes.len);
        }
    }

    if (raw.failed) {
        out->failed = 1;
    }

    (void) llm_speech_utf8(out, raw.data, raw.len);
    llm_buf_free(&raw);

    return out->failed ? LLM_ERROR : LLM_OK;
}


llm_str_t
llm_speech_strip(llm_str_t text)
{
    size_t    n;
    uint32_t  cp;

    while (text.len) {
        n = llm_utf8_decode(text.data, text.len, &cp);

        if (n == 0 || !llm_unicode_is_space(cp)) {
            break;
        }

        text.data += n;
        text.len -= n;
    }

    while (text.len) {
        n = 1;

        while (n < text.len && (text.data[text.len - n] & 0xc0) == 0x80) {
            n++;
        }

        if (llm_utf8_decode(text.data + text.len - n, n, &cp) != n
            || !llm_unicode_is_space(cp))
        {
            break;
        }

        text.len -= n;
    }

    return text;
}


float
llm_speech_ratio(llm_str_t text)
{
    float   ratio;
    uLongf  len;
    Bytef  *out;

    len = compressBound(text.len);
    out = malloc(len);
    ratio = 0;

    if (out && text.len
        && compress2(out, &len, (const Bytef *) text.data, text.len, 6) == Z_OK)
    {
        ratio = (float) text.len / (float) len;
    }

    free(out);

    return ratio;
}
