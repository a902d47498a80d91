/*
 * A small vocabulary for grammars: all bytes, and tokens that cross what
 * grammars tell apart: quotes, escapes, parts of characters, several keys.
 */

#ifndef LLM_T_GRAMMAR_VOCAB_H
#define LLM_T_GRAMMAR_VOCAB_H

#include "t/unit/vocab_build.h"

static const char  *gv_texts[] = {
    "ab", "{\"", "{\"a\":", "\":", "\": \"", "\":\"", "\",\"", "\", \"",
    "\"}", "\"},", "\":\"\",\"", "\"a\":1,\"", "\",", "],", "]}", "}}", "[[",
    "[1,", "1,", ", ", ",\"", "12", "345", "0.5", "e1", "-1", "true", "false",
    "null", ":\"", "abc", "aaaa", "a\"", "ab\"]", "\"a\"", "\"a\",\"b\"",
    "\\\"", "\\u", "\\u00", "\\u0061", "\\ud83d", "\\ude00", "\\n", "\\\\\"",
    "\n  ", "\n\t", "  ", "    ", " \"", " {", "\xc3", "\xc3\xa9", "\xa9",
    "\xf0\x9f", "\x98\x80", "\xa9\"", "\xe6\x97\xa5\"", "abcdefghijklmnop",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "root", "((", ")*", "b\"c", "xyz"
};

#define GV_EOS   (256 + llm_nelems(gv_texts))
#define GV_SIZE  (GV_EOS + 1)


static inline llm_vocab_t *
gv_load(void)
{
    char          text[256];
    size_t        i, k, n;
    llm_buf_t     b;
    llm_err_t     err;
    llm_gguf_t   *g;
    llm_vocab_t  *v;

    gguf_begin(&b, 3, 0, 5);
    gguf_kv_str(&b, "tokenizer.ggml.model", "gpt2");
    gguf_kv_u32(&b, "tokenizer.ggml.eos_token_id", GV_EOS);
    gguf_kv_array(&b, "tokenizer.ggml.tokens", LLM_GGUF_STR, GV_SIZE);

    for (i = 0; i < 256; i++) {
        gguf_str(&b, text, tiny_byte(text, (int) i));
    }

    for (i = 0; i < llm_nelems(gv_texts); i++) {
        for (k = 0, n = 0; gv_texts[i][k]; k++) {
            n += tiny_byte(text + n, (uint8_t) gv_texts[i][k]);
        }

        gguf_str(&b, text, n);
    }

    gguf_str(&b, "<|im_end|>", 10);
    gguf_kv_array(&b, "tokenizer.ggml.token_type", LLM_GGUF_I32, GV_SIZE);

    for (i = 0; i < GV_SIZE; i++) {
        gguf_u32(&b, i == GV_EOS ? LLM_TOKEN_CONTROL : LLM_TOKEN_NORMAL);
    }

    gguf_kv_array(&b, "tokenizer.ggml.merges", LLM_GGUF_STR, 1);
    gguf_str(&b, "a b", 3);

    memset(&err, 0, sizeof(err));
    g = llm_gguf_open_memory(b.data, b.len, "v", &err);
    v = g ? llm_vocab_load(g, &err) : NULL;

    if (v == NULL) {
        printf("# %s\n", err.msg);
        abort();
    }

    llm_gguf_close(g);
    llm_buf_free(&b);

    return v;
}


/* xorshift: the same numbers everywhere */

static uint32_t  gv_state = 2463534242u;

static inline uint32_t
gv_random(uint32_t n)
{
    gv_state ^= gv_state << 13;
    gv_state ^= gv_state >> 17;
    gv_state ^= gv_state << 5;

    return gv_state % n;
}

#endif /* LLM_T_GRAMMAR_VOCAB_H */
