/*
 * A byte-level BPE vocabulary made in memory: the 256 bytes and whatever
 * strings a test wants to be tokens, without merges.
 */

#ifndef LLM_TINY_VOCAB_H
#define LLM_TINY_VOCAB_H

#include "engine/text/vocab/vocab.h"

typedef struct {
    llm_buf_t      file;
    llm_gguf_t    *gguf;
    llm_vocab_t   *vocab;
} tiny_vocab_t;


static inline void
tv_u32(llm_buf_t *b, uint32_t v)
{
    llm_buf_add(b, &v, 4);
}


static inline void
tv_u64(llm_buf_t *b, uint64_t v)
{
    llm_buf_add(b, &v, 8);
}


static inline void
tv_str(llm_buf_t *b, const char *s, size_t len)
{
    tv_u64(b, len);
    llm_buf_add(b, s, len);
}


static inline void
tv_key(llm_buf_t *b, const char *key, uint32_t type)
{
    tv_str(b, key, strlen(key));
    tv_u32(b, type);
}


/* GPT-2's printable stand-ins for bytes, as UTF-8 */

static inline size_t
tv_byte(unsigned char c, char *out)
{
    unsigned  cp, i, n;

    n = 0;
    cp = c;

    if (!((c >= 33 && c <= 126) || (c >= 161 && c <= 172) || c >= 174)) {
        for (i = 0; i < c; i++) {
            n += !((i >= 33 && i <= 126) || (i >= 161 && i <= 172)
                   || i >= 174);
        }

        cp = 256 + n;
    }

    if (cp < 0x80) {
        out[0] = (char) cp;
        return 1;
    }

    out[0] = (char) (0xc0 | cp >> 6);
    out[1] = (char) (0x80 | (cp & 0x3f));

    return 2;
}


static inline void
tv_token(llm_buf_t *b, const char *s, size_t len)
{
    char    text[512];
    size_t  i, n;

    for (i = 0, n = 0; i < len && n < sizeof(text) - 2; i++) {
        n += tv_byte((unsigned char) s[i], text + n);
    }

    tv_str(b, text, n);
}


/*
 * Ids 0 to 255 are the bytes, 256 is <|end|>, an end-of-answer token, the
 * strings follow; those that begin with <| are control tokens.
 */

static inline int
tv_open(tiny_vocab_t *t, const char *const *strings, const size_t *lens,
    uint32_t n, llm_err_t *err)
{
    char       c;
    uint32_t   i;
    llm_buf_t  *b = &t->file;

    llm_buf_init(b, 0);
    llm_buf_adds(b, "GGUF");
    tv_u32(b, 3);
    tv_u64(b, 0);
    tv_u64(b, 6);

    tv_key(b, "tokenizer.ggml.model", 8);
    tv_str(b, "gpt2", 4);
    tv_key(b, "tokenizer.ggml.pre", 8);
    tv_str(b, "gpt-2", 5);

    tv_key(b, "tokenizer.ggml.tokens", 9);
    tv_u32(b, 8);
    tv_u64(b, 257 + n);

    for (i = 0; i < 256; i++) {
        c = (char) i;
        tv_token(b, &c, 1);
    }

    tv_str(b, "<|end|>", 7);

    for (i = 0; i < n; i++) {
        tv_token(b, strings[i], lens[i]);
    }

    tv_key(b, "tokenizer.ggml.token_type", 9);
    tv_u32(b, 5);
    tv_u64(b, 257 + n);

    for (i = 0; i < 257 + n; i++) {
        tv_u32(b, i == 256 || (i > 256 && lens[i - 257] > 2
                               && memcmp(strings[i - 257], "<|", 2) == 0)
                  ? LLM_TOKEN_CONTROL : LLM_TOKEN_NORMAL);
    }

    tv_key(b, "tokenizer.ggml.merges", 9);
    tv_u32(b, 8);
    tv_u64(b, 0);

    tv_key(b, "tokenizer.ggml.eos_token_id", 4);
    tv_u32(b, 256);

    t->gguf = llm_gguf_open_memory(b->data, b->len, "tiny", err);
    t->vocab = t->gguf ? llm_vocab_load(t->gguf, err) : NULL;

    return t->vocab ? LLM_OK : LLM_ERROR;
}


static inline void
tv_close(tiny_vocab_t *t)
{
    if (t->vocab) {
        llm_vocab_free(t->vocab);
    }

    if (t->gguf) {
        llm_gguf_close(t->gguf);
    }

    llm_buf_free(&t->file);
}

#endif /* LLM_TINY_VOCAB_H */
