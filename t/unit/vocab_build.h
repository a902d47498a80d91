/*
 * Tiny vocabularies, one of each kind, as GGUF files in memory.
 */

#ifndef LLM_T_VOCAB_BUILD_H
#define LLM_T_VOCAB_BUILD_H

#include "engine/text/vocab/vocab.h"
#include "t/unit/charsmap_build.h"
#include "t/unit/gguf_build.h"

typedef struct {
    const char  *text;
    int32_t      type;
    float        score;
} tiny_token_t;

/* what a test changes; what is 0 or NULL is as usual */
typedef struct {
    const char  *model;
    const char  *pre;                   /* "": the key is absent */
    const char  *name;
    const char  *u32_key;
    uint32_t     u32;
    const char  *bool_key;
    int          boolean;
    const char  *merge;                 /* one more */
    const char  *token;                 /* one more */
    int32_t      token_type;
    int          few_types;             /* the array lacks one */
    int          no_scores;
    int          nan_score;
    int          no_map;                /* of characters: unigram's */
} tiny_vocab_t;

/* BPE: ids 0 to 255 are the bytes, 256 and on these */

#define BPE_HELLO   259
#define BPE_WORLD   264
#define BPE_START   267
#define BPE_END     268
#define BPE_THINK   269
#define BPE_UNTHINK 270
#define BPE_SPACES  271
#define BPE_IM      272
#define BPE_SIZE    273

static const char  *bpe_merges[] = {
    "h e", "l l", "he ll", "hell o", "\xc4\xa0 w", "o r", "\xc4\xa0w or",
    "l d", "\xc4\xa0wor ld", "\xc3\xb0 \xc5\x81", "1 2"
};

static const tiny_token_t  bpe_added[] = {
    { "<|im_start|>", LLM_TOKEN_CONTROL, 0 },
    { "<|im_end|>", LLM_TOKEN_CONTROL, 0 },
    { "<think>", LLM_TOKEN_USER_DEFINED, 0 },
    { "</think>", LLM_TOKEN_USER_DEFINED, 0 },
    { "    ", LLM_TOKEN_USER_DEFINED, 0 },
    { "<|im", LLM_TOKEN_USER_DEFINED, 0 }
};

/* SentencePiece: 3 to 258 are the bytes */

#define SPM_UNK     0
#define SPM_BOS     1
#define SPM_EOS     2
#define SPM_BYTE(b) (3 + (b))
#define SPM_MARK    259
#define SPM_A       260
#define SPM_AB      264
#define SPM_MARK_A  265
#define SPM_MARK_ABC  267
#define SPM_INST    268

static const tiny_token_t  spm_pieces[] = {
    { "\xe2\x96\x81", LLM_TOKEN_NORMAL, -10 },
    { "a", LLM_TOKEN_NORMAL, -11 },
    { "b", LLM_TOKEN_NORMAL, -12 },
    { "c", LLM_TOKEN_NORMAL, -13 },
    { "bc", LLM_TOKEN_NORMAL, -1 },
    { "ab", LLM_TOKEN_NORMAL, -2 },
    { "\xe2\x96\x81" "a", LLM_TOKEN_NORMAL, -3 },
    { "abc", LLM_TOKEN_NORMAL, -4 },
    { "\xe2\x96\x81" "abc", LLM_TOKEN_NORMAL, -5 },
    { "[INST]", LLM_TOKEN_USER_DEFINED, 0 }
};

/* unigram: 3 to 258 are the bytes; the last piece goes on beyond a word */

static const tiny_token_t  ug_pieces[] = {
    { "\xe2\x96\x81", LLM_TOKEN_NORMAL, -3.5f },
    { "a", LLM_TOKEN_NORMAL, -2.25f },
    { "b", LLM_TOKEN_NORMAL, -3.07f },
    { "\xe2\x96\x81" "a", LLM_TOKEN_NORMAL, -4.5f },
    { "ab", LLM_TOKEN_NORMAL, -4.75f },
    { "aba", LLM_TOKEN_NORMAL, -5.5f },
    { "\xc3\xa9", LLM_TOKEN_NORMAL, -7 },
    { "bab", LLM_TOKEN_UNUSED, 0 },
    { "[MASK]", LLM_TOKEN_USER_DEFINED, 0 },
    { "hello", LLM_TOKEN_NORMAL, -6.5f },
    { "a\xe2\x96\x81" "b", LLM_TOKEN_NORMAL, -5 }
};

/* WordPiece */

enum {
    WP_PAD, WP_UNK, WP_CLS, WP_SEP, WP_HELLO, WP_HE, WP_LLO, WP_COMMA,
    WP_WOR, WP_LD, WP_SUN, WP_ZHE, WP_E, WP_SIZE
};

static const tiny_token_t  wp_tokens[] = {
    { "[PAD]", LLM_TOKEN_CONTROL, 0 },
    { "[UNK]", LLM_TOKEN_UNKNOWN, 0 },
    { "[CLS]", LLM_TOKEN_CONTROL, 0 },
    { "[SEP]", LLM_TOKEN_CONTROL, 0 },
    { "\xe2\x96\x81hello", LLM_TOKEN_NORMAL, 0 },
    { "\xe2\x96\x81he", LLM_TOKEN_NORMAL, 0 },
    { "llo", LLM_TOKEN_NORMAL, 0 },
    { "\xe2\x96\x81,", LLM_TOKEN_NORMAL, 0 },
    { "\xe2\x96\x81wor", LLM_TOKEN_NORMAL, 0 },
    { "ld", LLM_TOKEN_NORMAL, 0 },
    { "\xe2\x96\x81\xe6\x97\xa5", LLM_TOKEN_NORMAL, 0 },
    { "\xe2\x96\x81\xd0\xb6", LLM_TOKEN_NORMAL, 0 },
    { "\xe2\x96\x81" "e", LLM_TOKEN_NORMAL, 0 }
};


/* a byte as GPT-2 spells it, by the rule in its paper's code */

static inline size_t
tiny_byte(char *out, int byte)
{
    int  cp, b;

    cp = byte;

    if (byte < 33 || (byte > 126 && byte < 161) || byte == 173) {

        for (b = 0, cp = 256; b < byte; b++) {
            cp += b < 33 || (b > 126 && b < 161) || b == 173;
        }
    }

    if (cp < 0x80) {
        out[0] = (char) cp;
        return 1;
    }

    out[0] = (char) (0xc0 | cp >> 6);
    out[1] = (char) (0x80 | (cp & 63));

    return 2;
}


static inline void
tiny_begin(llm_buf_t *b, const tiny_vocab_t *c, uint64_t n_kv)
{
    gguf_begin(b, 3, 0, n_kv + (c->name != NULL) + (c->u32_key != NULL)
                        + (c->bool_key != NULL));

    if (c->name) {
        gguf_kv_str(b, "general.name", c->name);
    }

    if (c->u32_key) {
        gguf_kv_u32(b, c->u32_key, c->u32);
    }

    if (c->bool_key) {
        gguf_kv_bool(b, c->bool_key, c->boolean);
    }
}


static inline void
tiny_types(llm_buf_t *b, const tiny_vocab_t *c, const uint8_t *types,
    size_t n)
{
    size_t  i;

    n -= c->few_types != 0;
    gguf_kv_array(b, "tokenizer.ggml.token_type", LLM_GGUF_I32, n);

    for (i = 0; i < n; i++) {
        gguf_u32(b, types[i]);
    }
}


/* one more token; the number of tokens */

static inline size_t
tiny_extra(llm_buf_t *b, const tiny_vocab_t *c, uint8_t *types, size_t n)
{
    if (c->token == NULL) {
        return n;
    }

    gguf_str(b, c->token, strlen(c->token));
    types[n] = (uint8_t) (c->token_type ? c->token_type : LLM_TOKEN_NORMAL);

    return n + 1;
}


static inline void
tiny_bpe(llm_buf_t *b, const tiny_vocab_t *c)
{
    int      pre;
    char     text[64];
    size_t   i, n, len;
    uint8_t  types[300];

    memset(types, LLM_TOKEN_NORMAL, sizeof(types));
    pre = c->pre == NULL || c->pre[0];

    tiny_begin(b, c, 4 + (pre != 0));
    gguf_kv_str(b, "tokenizer.ggml.model", c->model ? c->model : "gpt2");

    if (pre) {
        gguf_kv_str(b, "tokenizer.ggml.pre", c->pre ? c->pre : "qwen2");
    }

    gguf_kv_array(b, "tokenizer.ggml.tokens", LLM_GGUF_STR,
                  BPE_SIZE + (c->token != NULL));

    for (n = 0; n < 256; n++) {
        gguf_str(b, text, tiny_byte(text, (int) n));
    }

    for (i = 0; i < llm_nelems(bpe_merges); i++, n++) {
        len = strcspn(bpe_merges[i], " ");
        snprintf(text, sizeof(text), "%.*s%s", (int) len, bpe_merges[i],
                 bpe_merges[i] + len + 1);
        gguf_str(b, text, strlen(text));
    }

    for (i = 0; i < llm_nelems(bpe_added); i++, n++) {
        gguf_str(b, bpe_added[i].text, strlen(bpe_added[i].text));
        types[n] = (uint8_t) bpe_added[i].type;
    }

    n = tiny_extra(b, c, types, n);
    tiny_types(b, c, types, n);

    gguf_kv_array(b, "tokenizer.ggml.merges", LLM_GGUF_STR,
                  llm_nelems(bpe_merges) + (c->merge != NULL));

    for (i = 0; i < llm_nelems(bpe_merges); i++) {
        gguf_str(b, bpe_merges[i], strlen(bpe_merges[i]));
    }

    if (c->merge) {
        gguf_str(b, c->merge, strlen(c->merge));
    }
}


/* tokens of SentencePiece's kinds of vocabularies: three of its own, the bytes,
   then these pieces and what the change adds; returns their number */

static inline size_t
tiny_sp_tokens(llm_buf_t *b, const tiny_vocab_t *c, const tiny_token_t *pieces,
    size_t n_pieces, float scores[300])
{
    char     text[16];
    size_t   i, n;
    uint8_t  types[300];

    static const char  *first[] = { "<unk>", "<s>", "</s>" };

    memset(types, LLM_TOKEN_BYTE, sizeof(types));
    memset(scores, 0, 300 * sizeof(float));
    types[0] = LLM_TOKEN_UNKNOWN;
    types[1] = LLM_TOKEN_CONTROL;
    types[2] = LLM_TOKEN_CONTROL;

    gguf_kv_array(b, "tokenizer.ggml.tokens", LLM_GGUF_STR,
                  3 + 256 + n_pieces + (c->token != NULL));

    for (n = 0; n < 3; n++) {
        gguf_str(b, first[n], strlen(first[n]));
    }

    for (i = 0; i < 256; i++, n++) {
        snprintf(text, sizeof(text), "<0x%02X>", (unsigned) i);
        gguf_str(b, text, strlen(text));
    }

    for (i = 0; i < n_pieces; i++, n++) {
        gguf_str(b, pieces[i].text, strlen(pieces[i].text));
        types[n] = (uint8_t) pieces[i].type;
        scores[n] = pieces[i].score;
    }

    n = tiny_extra(b, c, types, n);
    tiny_types(b, c, types, n);

    return n;
}


static inline void
tiny_spm(llm_buf_t *b, const tiny_vocab_t *c)
{
    float   scores[300];
    size_t  n;

    tiny_begin(b, c, 3 + !c->no_scores);
    gguf_kv_str(b, "tokenizer.ggml.model", c->model ? c->model : "llama");
    n = tiny_sp_tokens(b, c, spm_pieces, llm_nelems(spm_pieces), scores);

    if (c->nan_score) {
        scores[7] = __builtin_nanf("");
    }

    if (!c->no_scores) {
        gguf_kv_array(b, "tokenizer.ggml.scores", LLM_GGUF_F32, n);
        (void) llm_buf_add(b, scores, n * sizeof(float));
    }
}


/* with a map of characters, unless it is to have none */

static inline void
tiny_unigram(llm_buf_t *b, const tiny_vocab_t *c)
{
    float   scores[300];
    size_t  n;
    map_t  *m;

    tiny_begin(b, c, 4 + !c->no_map);
    gguf_kv_str(b, "tokenizer.ggml.model", c->model ? c->model : "t5");
    n = tiny_sp_tokens(b, c, ug_pieces, llm_nelems(ug_pieces), scores);
    gguf_kv_array(b, "tokenizer.ggml.scores", LLM_GGUF_F32, n);
    (void) llm_buf_add(b, scores, n * sizeof(float));

    m = c->no_map ? NULL : malloc(sizeof(*m));

    if (m) {
        n = map_build(m);
        gguf_kv_array(b, "tokenizer.ggml.precompiled_charsmap", LLM_GGUF_U8,
                      n);
        (void) llm_buf_add(b, m->blob, n);
        free(m);
    }
}


static inline void
tiny_wordpiece(llm_buf_t *b, const tiny_vocab_t *c)
{
    size_t    n;
    uint8_t   types[32];

    tiny_begin(b, c, 3);
    gguf_kv_str(b, "tokenizer.ggml.model", c->model ? c->model : "bert");
    gguf_kv_array(b, "tokenizer.ggml.tokens", LLM_GGUF_STR,
                  WP_SIZE + (c->token != NULL));

    for (n = 0; n < WP_SIZE; n++) {
        gguf_str(b, wp_tokens[n].text, strlen(wp_tokens[n].text));
        types[n] = (uint8_t) wp_tokens[n].type;
    }

    n = tiny_extra(b, c, types, n);
    tiny_types(b, c, types, n);
}


typedef void (*tiny_pt)(llm_buf_t *b, const tiny_vocab_t *c);


/* builds and loads one; the file's bytes are gone when this returns */

static inline llm_vocab_t *
tiny_load(tiny_pt build, const tiny_vocab_t *change, llm_err_t *err)
{
    llm_buf_t      b;
    llm_gguf_t    *g;
    llm_vocab_t   *v;
    tiny_vocab_t   none = { 0 };

    build(&b, change ? change : &none);

    g = llm_gguf_open_memory(b.data, b.len, "v", err);
    v = g ? llm_vocab_load(g, err) : NULL;

    llm_gguf_close(g);

    if (b.data) {
        memset(b.data, 0xa5, b.len);
    }

    llm_buf_free(&b);

    return v;
}

#endif /* LLM_T_VOCAB_BUILD_H */
