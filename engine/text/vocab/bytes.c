/*
 * Decodes what each token stands for, once when a vocabulary is loaded, so
 * that detokenising is a look-up.
 */

#include "engine/base/alphabet.h"
#include "engine/base/utf8.h"
#include "engine/text/vocab/internal.h"


static int
llm_vocab_hex(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }

    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}


/* the byte of a token "<0x0A>", or -1 */

static int
llm_vocab_byte(llm_str_t s)
{
    int  high, low;

    if (s.len != 6 || memcmp(s.data, "<0x", 3) != 0 || s.data[5] != '>') {
        return -1;
    }

    high = llm_vocab_hex(s.data[3]);
    low = llm_vocab_hex(s.data[4]);

    return high < 0 || low < 0 ? -1 : high << 4 | low;
}


/*
 * Writes what a text in GPT-2's alphabet stands for to out; returns its
 * length, or -1 if the text is not in that alphabet.
 */

static int64_t
llm_vocab_unalphabet(llm_str_t s, char *out)
{
    int       byte;
    size_t    i, len;
    int64_t   n;
    uint32_t  cp;

    for (i = 0, n = 0; i < s.len; i += len, n++) {

        len = llm_utf8_decode(s.data + i, s.len - i, &cp);
        if (len == 0) {
            return -1;
        }

        byte = llm_char_byte(cp);
        if (byte == -1) {
            return -1;
        }

        out[n] = (char) byte;
    }

    return n;
}


/* writes the text to out, with spaces for U+2581; returns its length */

static size_t
llm_vocab_unescape(llm_str_t s, char *out)
{
    size_t  i, n;

    for (i = 0, n = 0; i < s.len; n++) {

        if (s.len - i >= LLM_SPACE_MARK_LEN
            && memcmp(s.data + i, LLM_SPACE_MARK, LLM_SPACE_MARK_LEN) == 0)
        {
            out[n] = ' ';
            i += LLM_SPACE_MARK_LEN;

        } else {
            out[n] = s.data[i++];
        }
    }

    return n;
}


/* decodes one token's text to out, which has room for it; returns the length */

static size_t
llm_vocab_decode(llm_vocab_t *v, uint32_t id, char *out)
{
    int        byte;
    int64_t    n;
    llm_str_t  s;

    s = v->map.str[id];

    if (v->type[id] != LLM_TOKEN_CONTROL && v->type[id] != LLM_TOKEN_UNKNOWN)
    {
        byte = v->byte_level || v->type[id] != LLM_TOKEN_BYTE
               ? -1 : llm_vocab_byte(s);

        if (byte != -1) {
            v->byte_id[byte] = (int32_t) id;
            out[0] = (char) byte;
            return 1;
        }

        if (!v->byte_level) {
            return llm_vocab_unescape(s, out);
        }

        if (v->type[id] != LLM_TOKEN_USER_DEFINED) {
            n = llm_vocab_unalphabet(s, out);
            if (n != -1) {
                return (size_t) n;
            }
        }
    }

    memcpy(out, s.data, s.len);

    return s.len;
}


int
llm_vocab_bytes_load(llm_vocab_t *v, const llm_gguf_t *g, llm_err_t *err)
{
    char      *out;
    size_t     size;
    uint32_t   i;

    for (i = 0, size = 0; i < v->n; i++) {
        size += v->map.str[i].len;
        v->max_len = llm_max(v->max_len, v->map.str[i].len);
    }

    v->bytes = malloc(v->n * sizeof(llm_str_t));
    out = llm_arena_alloc(&v->arena, size);

    if (v->bytes == NULL || out == NULL) {
        return llm_vocab_no_memory(g, err);
    }

    for (i = 0; i < v->n; i++) {
        v->bytes[i].data = out;
        v->bytes[i].len = llm_vocab_decode(v, i, out);
        out += v->bytes[i].len;
    }

    return LLM_OK;
}
