/*
 * Tokenizers on three tiny vocabularies: ids that follow from the rules by
 * hand, added tokens and trust, what a file may have wrong.
 */

#include "engine/text/vocab/bpe_merge.h"
#include "engine/text/vocab/pretok.h"
#include "t/unit/tap.h"
#include "t/unit/vocab_build.h"

#define LONG  500000


/* the ids as text, in a buffer of its own */

static const char *
ids_text(const llm_ids_t *ids)
{
    size_t        i, len;
    static char   text[4096];

    text[0] = '\0';

    for (i = 0, len = 0; i < ids->len && len < sizeof(text) - 16; i++) {
        len += (size_t) sprintf(text + len, "%s%d", i ? " " : "",
                                (int) ids->data[i]);
    }

    return text;
}


static void
gives_flags(const llm_vocab_t *v, const char *text, const llm_span_t *spans,
    size_t n, int flags, const char *want, const char *what)
{
    llm_err_t  err;
    llm_ids_t  ids = { 0 };

    if (llm_vocab_tokenize(v, text, strlen(text), spans, n, flags, 0, &ids,
                           &err)
        != LLM_OK)
    {
        ok(0, "%s: %s", what, err.msg);

    } else {
        is_str(ids_text(&ids), want, "%s", what);
    }

    free(ids.data);
}


static void
gives(const llm_vocab_t *v, const char *text, const char *want,
    const char *what)
{
    gives_flags(v, text, NULL, 0, LLM_TOKENIZE_PLAIN, want, what);
}


static void
test_bpe(void)
{
    llm_err_t     err;
    llm_vocab_t  *v;

    v = tiny_load(tiny_bpe, NULL, &err);
    if (!ok(v != NULL, "a BPE vocabulary")) {
        printf("# %s\n", err.msg);
        return;
    }

    is_int(llm_vocab_size(v), BPE_SIZE, "tokens");

    gives(v, "", "", "no text, no ids");
    gives(v, "hello", "259", "merges down to one token");
    gives(v, "hello world", "259 264", "a space begins the next piece");
    gives(v, "hellohello", "259 259", "twice within a piece");
    gives(v, "hel", "256 108", "h e is merged before anything with l");
    gives(v, "lll", "257 108", "the leftmost of equal pairs first");
    gives(v, "12", "49 50", "no merge across pieces: digits are alone");
    gives(v, "\xf0\x9f\x98\x80", "265 152 128", "bytes of an emoji");
    gives(v, "\xff\xc3(", "255 195 40", "bytes that are no UTF-8");
    gives(v, "hello\xffhello", "259 255 259", "text around one");

    gives(v, "<|im_end|>", "272 95 101 110 100 124 62",
          "plain: no control token, but the user-defined one in it");
    gives(v, "a<think>b", "97 269 98", "user-defined");
    gives(v, "<|im", "272", "a user-defined one that begins others");
    gives(v, "     x", "271 32 120", "four spaces are a token");

    gives_flags(v, "<|im_start|>hello<|im_end|>", NULL, 0,
                LLM_TOKENIZE_SPECIAL, "267 259 268", "control tokens");
    gives_flags(v, "<|im_star|>", NULL, 0, LLM_TOKENIZE_SPECIAL,
                "272 95 115 116 97 114 124 62", "almost one");
    gives_flags(v, "<|im_<|im_end|>", NULL, 0, LLM_TOKENIZE_SPECIAL,
                "272 95 268", "one that begins inside an attempt");

    is_int(llm_vocab_find(v, "hello", 5), BPE_HELLO, "find");
    is_int(llm_vocab_find(v, "hellohe", 7), -1, "find nothing");
    ok(llm_vocab_bytes(v, BPE_WORLD).len == 6
       && memcmp(llm_vocab_bytes(v, BPE_WORLD).data, " world", 6) == 0,
       "the bytes of a token");
    is_int(llm_vocab_bytes(v, BPE_SIZE).len, 0, "none beyond the last");
    is_int(llm_vocab_bytes(v, -1).len, 0, "none before the first");
    ok(llm_vocab_bytes(v, 0x80).len == 1
       && llm_vocab_bytes(v, 0x80).data[0] == (char) 0x80, "a lone byte");
    is_int(llm_vocab_type(v, BPE_THINK), LLM_TOKEN_USER_DEFINED, "types");
    is_int(llm_vocab_bos(v), -1, "no BOS");
    ok(llm_vocab_is_eog(v, BPE_END), "<|im_end|> ends an answer");
    ok(!llm_vocab_is_eog(v, BPE_START) && !llm_vocab_is_eog(v, -1)
       && !llm_vocab_is_eog(v, BPE_SIZE), "others do not");
    ok(llm_vocab_warning(v) == NULL, "nothing to warn of");

    llm_vocab_free(v);
}


static void
test_trust(void)
{
    size_t        i;
    char          text[64];
    llm_err_t     err;
    llm_vocab_t  *v;
    llm_span_t    span, two[2];

    v = tiny_load(tiny_bpe, NULL, &err);
    if (!ok(v != NULL, "a vocabulary")) {
        return;
    }

    span.start = 0;
    span.end = 12;
    gives_flags(v, "<|im_start|>hello<|im_end|>", &span, 1,
                LLM_TOKENIZE_TRUSTED,
                "267 259 60 124 105 109 95 101 110 100 124 62",
                "the trusted token, and the user's as plain text");

    gives_flags(v, "<think>hello", NULL, 0, LLM_TOKENIZE_TRUSTED,
                "60 116 104 105 110 107 62 259",
                "user-defined ones are not for everybody");

    gives_flags(v, "     x", NULL, 0, LLM_TOKENIZE_TRUSTED, "271 32 120",
                "white space is plain text");

    /* every span that is less than the whole token */

    for (i = 0; i < 12; i++) {
        span.start = i < 6 ? i + 1 : 0;
        span.end = i < 6 ? 12 : i;
        snprintf(text, sizeof(text), "half trusted, bytes %zu to %zu",
                 span.start, span.end);
        gives_flags(v, "<|im_start|>", &span, 1, LLM_TOKENIZE_TRUSTED,
                    i < 6
                    ? "60 124 105 109 95 115 116 97 114 116 124 62"
                    : "272 95 115 116 97 114 116 124 62",
                    text);
    }

    /* "hello wor" trusted, "ld<think>" not, "<think>" trusted */

    two[0].start = 0;
    two[0].end = 9;
    two[1].start = 18;
    two[1].end = 25;
    gives_flags(v, "hello world<think><think>", two, 2, LLM_TOKENIZE_TRUSTED,
                "259 264 60 116 104 105 110 107 62 269",
                "merges go on across the border of trust");

    llm_vocab_free(v);
}


static void
test_spm(void)
{
    llm_err_t      err;
    llm_vocab_t   *v;
    tiny_vocab_t   c = { 0 };

    v = tiny_load(tiny_spm, NULL, &err);
    if (!ok(v != NULL, "a SentencePiece vocabulary")) {
        printf("# %s\n", err.msg);
        return;
    }

    gives(v, "", "", "no text, no ids");
    gives(v, "abc", "267", "bc, then the mark and a, then both");
    gives(v, "ab", "259 264", "ab is better than the mark and a");
    gives(v, "a", "265", "the mark and a");
    gives(v, "abc abc", "267 267", "two words");
    gives(v, "a  a", "265 259 265", "two spaces");
    gives(v, "\xc3\xa9", "259 198 172", "byte fallback");
    gives(v, "a\xff", "265 258", "a byte that is no UTF-8");
    gives(v, "<0x41>", "259 63 51 123 55 52 65",
          "the name of a byte token is text");
    gives(v, "</s>", "259 63 50 118 65", "nor is </s> a token");
    gives(v, "a[INST]a", "265 268 265", "user-defined, and again a mark");
    gives_flags(v, "</s>", NULL, 0, LLM_TOKENIZE_SPECIAL, "2", "control");
    gives_flags(v, "a", NULL, 0, LLM_TOKENIZE_ADD, "1 265", "BOS");

    is_int(llm_vocab_bos(v), SPM_BOS, "BOS without metadata");
    is_int(llm_vocab_eos(v), SPM_EOS, "EOS");
    ok(llm_vocab_is_eog(v, SPM_EOS), "it ends an answer");
    ok(llm_vocab_bytes(v, SPM_BYTE(0x0a)).len == 1
       && llm_vocab_bytes(v, SPM_BYTE(0x0a)).data[0] == '\n', "<0x0A>");
    ok(llm_vocab_bytes(v, SPM_MARK_A).len == 2
       && memcmp(llm_vocab_bytes(v, SPM_MARK_A).data, " a", 2) == 0,
       "the mark is a space");
    llm_vocab_free(v);

    c.bool_key = "tokenizer.ggml.add_space_prefix";
    v = tiny_load(tiny_spm, &c, &err);
    ok(v != NULL, "without the first space");
    gives(v, "ab abc", "264 267", "the text begins as it is");
    llm_vocab_free(v);

    /* a token that has the mark inside: words can't be merged one by one */

    memset(&c, 0, sizeof(c));
    c.token = "a\xe2\x96\x81" "b";
    v = tiny_load(tiny_spm, &c, &err);
    ok(v != NULL, "with a token across words");
    gives(v, "ca b", "259 262 260 259 261",
          "no pair leads to it: a and the mark are no token");
    llm_vocab_free(v);

    memset(&c, 0, sizeof(c));
    c.token = "a\xe2\x96\x81";
    v = tiny_load(tiny_spm, &c, &err);
    gives(v, "ca b", "259 262 269 261", "a token that ends in a space");
    llm_vocab_free(v);

    memset(&c, 0, sizeof(c));
    c.name = "Phi-3 mini";
    v = tiny_load(tiny_spm, &c, &err);
    gives_flags(v, "[INST] \n a</s> a", NULL, 0, LLM_TOKENIZE_SPECIAL,
                "268 265 2 265", "Phi-3's tokens eat white space");
    llm_vocab_free(v);
}


/* as BERT's own files have it */

static void
tiny_hashes(llm_buf_t *b, const tiny_vocab_t *c)
{
    size_t  i;

    static const char  *const tokens[] = {
        "[PAD]", "[UNK]", "[CLS]", "[SEP]", "hello", "##llo", "wor", ","
    };

    (void) c;

    gguf_begin(b, 3, 0, 2);
    gguf_kv_str(b, "tokenizer.ggml.model", "bert");
    gguf_kv_array(b, "tokenizer.ggml.tokens", LLM_GGUF_STR,
                  llm_nelems(tokens));

    for (i = 0; i < llm_nelems(tokens); i++) {
        gguf_str(b, tokens[i], strlen(tokens[i]));
    }
}


static void
test_wordpiece(void)
{
    char           text[128];
    size_t         i;
    llm_err_t      err;
    llm_vocab_t   *v;
    tiny_vocab_t   c = { 0 };

    v = tiny_load(tiny_wordpiece, NULL, &err);
    if (!ok(v != NULL, "a WordPiece vocabulary")) {
        printf("# %s\n", err.msg);
        return;
    }

    gives(v, "", "", "no text, no ids");
    gives(v, "hello", "4", "a word");
    gives(v, "Hello,w\xc3\xb6rld", "4 7 8 9",
          "case and accents are dropped, a comma is a word");
    gives(v, "hellollo", "4 6", "the longest token first");
    gives(v, "hellox hello", "1 4", "a word is unknown as a whole");

    for (i = 0; i < 33; i++) {
        memcpy(text + 2 + i * 3, "llo", 4);
    }

    memcpy(text, "he", 2);
    gives(v, text, "1", "a word of 101 characters is unknown");
    text[98] = '\0';
    gives(v, text, "4 6 6 6 6 6 6 6 6 6 6 6 6 6 6 6 6 6 6 6 6 6 6 6 6 6 6 6 "
          "6 6 6 6", "one of 98 is not");
    gives(v, "\xe6\x97\xa5\xe6\x97\xa5", "10 10", "ideographs are words");
    gives(v, "\xd0\x96", "11", "lower case of other scripts");
    gives(v, "e\xcc\x81 \xc3\x89", "12 12", "marks by themselves");
    gives(v, "he\xe2\x80\x8bllo\x01 \xff", "4",
          "controls and bytes that are no UTF-8 are left out");
    gives_flags(v, "hello", NULL, 0, LLM_TOKENIZE_ADD, "2 4 3",
                "[CLS] and [SEP]");
    gives_flags(v, "[SEP]", NULL, 0, LLM_TOKENIZE_SPECIAL, "3", "control");
    llm_vocab_free(v);

    c.bool_key = "tokenizer.ggml.normalizer.lowercase";
    v = tiny_load(tiny_wordpiece, &c, &err);
    gives(v, "hello Hello w\xc3\xb6rld", "4 1 1",
          "a vocabulary that has case keeps it, and accents");
    llm_vocab_free(v);

    v = tiny_load(tiny_hashes, NULL, &err);
    gives(v, "Hellollo,wor ld", "4 5 7 6 1", "tokens that go on with ##");
    gives_flags(v, "hello", NULL, 0, LLM_TOKENIZE_ADD, "2 4 3",
                "[CLS] and [SEP] of such a vocabulary");
    is_int((int) llm_vocab_bytes(v, 5).len, 3, "without the ##");
    is_int(llm_vocab_find(v, "llo", 3), 5, "that is its text");
    llm_vocab_free(v);
}


static void
test_limits(void)
{
    char          *text;
    llm_err_t      err;
    llm_ids_t      ids = { 0 };
    llm_vocab_t   *v;

    v = tiny_load(tiny_bpe, NULL, &err);
    if (!ok(v != NULL, "a vocabulary")) {
        return;
    }

    is_int(llm_vocab_tokenize(v, "hello world", 11, NULL, 0, 0, 2, &ids,
                              &err), LLM_OK, "as many as allowed");
    is_int(llm_vocab_tokenize(v, "hello world!", 12, NULL, 0, 0, 2, &ids,
                              &err), LLM_ERROR, "one more");
    is_str(err.code, "context_length_exceeded", "the code");
    is_int(err.status, 400, "the status");
    is_int(ids.len, 2, "what was there is as it was");
    is_int(llm_vocab_tokenize(v, "hello", 5, NULL, 0, 0, 1, &ids, &err),
           LLM_OK, "the limit counts what comes");
    is_int(ids.len, 3, "appended");

    text = malloc(1);
    is_int(llm_vocab_tokenize(v, text, (size_t) 2 << 30, NULL, 0, 0, 0, &ids,
                              &err), LLM_ERROR, "two GiB are refused unread");
    is_int(err.status, 400, "the status");

    free(text);
    free(ids.data);
    llm_vocab_free(v);
}


/* half a megabyte where there is room for 100 tokens: how much is looked at? */

static void
test_stops(void)
{
    char          *text;
    size_t         n;
    llm_err_t      err;
    llm_ids_t      ids = { 0 };
    llm_tok_t      t;
    llm_vocab_t   *v;
    tiny_vocab_t   c = { 0 };

    text = malloc(LONG + 16);

    for (n = 0; n < LONG; n += 6) {
        memcpy(text + n, "hello ", 6);
    }

    c.pre = "deepseek-v3";
    v = tiny_load(tiny_bpe, &c, &err);

    if (!ok(v != NULL, "a vocabulary")) {
        return;
    }

    memset(&t, 0, sizeof(t));
    t.vocab = v;
    t.out = &ids;
    t.max_ids = 100;
    t.err = &err;
    llm_buf_init(&t.text, 0);
    llm_buf_init(&t.nodes, 0);
    llm_buf_init(&t.heap, 0);

    v->leaves_out = 1;                  /* bytes say nothing then */
    is_int(llm_bpe_tokenize(&t, text, n), LLM_ERROR, "too many tokens");
    is_str(err.code, "context_length_exceeded", "says so");
    ok(t.n_matches > 10 && t.n_matches < 1000,
       "the pre-tokenizer looked for %zu pieces", t.n_matches);

    t.n_matches = 0;
    ids.len = 0;
    v->leaves_out = 0;
    is_int(llm_bpe_tokenize(&t, text, n), LLM_ERROR, "so many bytes");
    is_int(t.n_matches, 0, "are too many at a glance");
    llm_pretok_done(&t);
    llm_vocab_free(v);

    c.pre = NULL;
    v = tiny_load(tiny_spm, &c, &err);
    t.vocab = v;
    ids.len = 0;
    llm_buf_free(&t.nodes);
    llm_buf_init(&t.nodes, 0);
    memset(text, 'l', n);

    is_int(llm_spm_tokenize(&t, text, n), LLM_ERROR, "SentencePiece, too");
    is_int(t.nodes.cap, 0, "merges nothing");

    llm_buf_free(&t.text);
    llm_buf_free(&t.nodes);
    llm_buf_free(&t.heap);
    llm_vocab_free(v);
    free(ids.data);
    free(text);
}


/* a vocabulary of which the file says something that is not so */

static void
wrong(tiny_pt build, tiny_vocab_t c, const char *msg)
{
    llm_err_t     err;
    llm_vocab_t  *v;

    strcpy(err.msg, "no error");
    v = tiny_load(build, &c, &err);
    is_str(err.msg, msg, "%s", msg);
    ok(v == NULL, "refused");
    llm_vocab_free(v);
}


static void
test_wrong(void)
{
    char           text[1026];
    llm_buf_t      b;
    llm_err_t      err;
    llm_gguf_t    *g;
    llm_vocab_t   *v;
    tiny_vocab_t   c = { 0 };

    gguf_begin(&b, 3, 0, 0);
    g = llm_gguf_open_memory(b.data, b.len, "v", &err);
    ok(g && llm_vocab_load(g, &err) == NULL, "a file without a vocabulary");
    is_str(err.msg, "v: tokenizer.ggml.model: the file has no vocabulary",
           "and why");
    llm_gguf_close(g);
    llm_buf_free(&b);

    gguf_begin(&b, 3, 0, 1);
    gguf_kv_str(&b, "tokenizer.ggml.model", "gpt2");
    g = llm_gguf_open_memory(b.data, b.len, "v", &err);
    ok(g && llm_vocab_load(g, &err) == NULL, "a file without tokens");
    is_str(err.msg, "v: tokenizer.ggml.tokens: the file has none", "and why");
    llm_gguf_close(g);
    llm_buf_free(&b);

    wrong(tiny_bpe, (tiny_vocab_t) { .model = "rwkv" },
          "v: tokenizer.ggml.model: \"rwkv\" is not supported, gpt2, llama, t5 "
          "and bert are");
    wrong(tiny_wordpiece, (tiny_vocab_t) { .model = "gpt2" },
          "v: tokenizer.ggml.merges: the file has none");
    wrong(tiny_wordpiece, (tiny_vocab_t) { .model = "llama" },
          "v: tokenizer.ggml.scores: the file has none");

    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    wrong(tiny_wordpiece, (tiny_vocab_t) { .token = text },
          "v: tokenizer.ggml.tokens: token 13 has 1025 bytes, more than "
          "1024");

    wrong(tiny_bpe, (tiny_vocab_t) { .merge = "xy" },
          "v: tokenizer.ggml.merges: merge 11 is no pair");
    wrong(tiny_bpe, (tiny_vocab_t) { .merge = "x " },
          "v: tokenizer.ggml.merges: merge 11 is no pair");
    wrong(tiny_bpe, (tiny_vocab_t) { .few_types = 1 },
          "v: tokenizer.ggml.token_type: 272 items for 273 tokens");
    wrong(tiny_spm, (tiny_vocab_t) { .no_scores = 1 },
          "v: tokenizer.ggml.scores: the file has none");
    wrong(tiny_spm, (tiny_vocab_t) { .nan_score = 1 },
          "v: tokenizer.ggml.scores: the score of token 7 is no number");
    wrong(tiny_bpe, (tiny_vocab_t) {
              .u32_key = "tokenizer.ggml.eos_token_id", .u32 = 273 },
          "v: tokenizer.ggml.eos_token_id: 273 is no token, the vocabulary "
          "has 273");
    wrong(tiny_bpe, (tiny_vocab_t) {
              .u32_key = "tokenizer.ggml.bos_token_id", .u32 = 273 },
          "v: tokenizer.ggml.bos_token_id: 273 is no token, the vocabulary "
          "has 273");
    wrong(tiny_bpe, (tiny_vocab_t) {
              .u32_key = "tokenizer.ggml.pre", .u32 = 1 },
          "v: tokenizer.ggml.pre: the key is there twice");
    wrong(tiny_bpe, (tiny_vocab_t) {
              .pre = "", .u32_key = "tokenizer.ggml.pre", .u32 = 1 },
          "v: tokenizer.ggml.pre: its type is u32, not string");

    c.pre = "tomorrow's";
    v = tiny_load(tiny_bpe, &c, &err);
    ok(v != NULL, "an unknown pre-tokenizer is no error");
    is_str(llm_vocab_warning(v), "tokenizer.ggml.pre: \"tomorrow's\" is not "
           "known, \"default\" is used", "but a warning");
    llm_vocab_free(v);

    c.pre = "";
    v = tiny_load(tiny_bpe, &c, &err);
    is_str(llm_vocab_warning(v), "tokenizer.ggml.pre: the file names no "
           "pre-tokenizer, \"default\" is used", "so is none");
    llm_vocab_free(v);

    c.u32_key = "tokenizer.ggml.padding_token_id";
    c.u32 = 273;
    v = tiny_load(tiny_bpe, &c, &err);
    ok(v && llm_vocab_pad(v) == -1, "a padding behind the vocabulary is none");
    is_str(llm_vocab_warning(v), "tokenizer.ggml.pre: the file names no "
           "pre-tokenizer, \"default\" is used; "
           "tokenizer.ggml.padding_token_id: 273 is no token, the vocabulary "
           "has 273", "which is said, too");
    llm_vocab_free(v);
}


static void
test_special(void)
{
    llm_err_t      err;
    llm_vocab_t   *v;
    tiny_vocab_t   c = { 0 };

    c.u32_key = "tokenizer.ggml.eos_token_id";
    c.u32 = BPE_HELLO;
    v = tiny_load(tiny_bpe, &c, &err);
    ok(llm_vocab_eos(v) == BPE_HELLO && llm_vocab_is_eog(v, BPE_HELLO)
       && llm_vocab_is_eog(v, BPE_END), "EOS by metadata, EOT by name");
    ok(!llm_vocab_add_eos(v), "EOS is not added");
    llm_vocab_free(v);

    c.u32_key = "tokenizer.ggml.eot_token_id";
    v = tiny_load(tiny_bpe, &c, &err);
    ok(llm_vocab_eos(v) == -1 && llm_vocab_is_eog(v, BPE_HELLO), "EOT");
    llm_vocab_free(v);

    c.u32_key = "tokenizer.ggml.bos_token_id";
    c.u32 = BPE_START;
    c.bool_key = "tokenizer.ggml.add_bos_token";
    c.boolean = 1;
    v = tiny_load(tiny_bpe, &c, &err);
    ok(llm_vocab_add_bos(v), "BOS is added");
    gives_flags(v, "hello", NULL, 0, LLM_TOKENIZE_ADD, "267 259", "it is");
    gives(v, "hello", "259", "where it is asked for");
    llm_vocab_free(v);

    c.bool_key = NULL;
    c.pre = "llama-bpe";
    v = tiny_load(tiny_bpe, &c, &err);
    ok(llm_vocab_add_bos(v), "Llama 3 adds BOS by itself");
    llm_vocab_free(v);

    c.u32 = UINT32_MAX;
    v = tiny_load(tiny_bpe, &c, &err);
    ok(v && llm_vocab_bos(v) == -1 && !llm_vocab_add_bos(v),
       "2^32 - 1 is no token");
    llm_vocab_free(v);

    /* "</s>" ends an answer as a control token, not as a word */

    memset(&c, 0, sizeof(c));
    c.token = "</s>";
    c.token_type = LLM_TOKEN_NORMAL;
    v = tiny_load(tiny_bpe, &c, &err);
    ok(!llm_vocab_is_eog(v, BPE_SIZE), "</s> as a word");
    llm_vocab_free(v);

    c.token_type = LLM_TOKEN_CONTROL;
    v = tiny_load(tiny_bpe, &c, &err);
    ok(llm_vocab_is_eog(v, BPE_SIZE), "</s> as a control token");
    llm_vocab_free(v);

    c.token_type = LLM_TOKEN_USER_DEFINED;
    v = tiny_load(tiny_bpe, &c, &err);
    ok(llm_vocab_is_eog(v, BPE_SIZE), "</s> as a user-defined token");
    gives(v, "</s>", "60 47 115 62", "which plain text does not become");
    llm_vocab_free(v);

    c.token = "<|eot_id|>";
    c.token_type = LLM_TOKEN_NORMAL;
    v = tiny_load(tiny_bpe, &c, &err);
    ok(llm_vocab_is_eog(v, BPE_SIZE)
       && llm_vocab_type(v, BPE_SIZE) == LLM_TOKEN_CONTROL,
       "<|eot_id|> is a control token whatever the file says");
    llm_vocab_free(v);

    /* a whole pre-token that is a token needs no merges, in Llama 3 */

    c.token = "xyz";
    v = tiny_load(tiny_bpe, &c, &err);
    gives(v, "xyz", "120 121 122", "no merge leads to it");
    llm_vocab_free(v);

    c.pre = "llama-bpe";
    v = tiny_load(tiny_bpe, &c, &err);
    gives(v, "xyz", "273", "but Llama 3 looks it up");
    llm_vocab_free(v);

    c.token = "<<<";
    c.token_type = LLM_TOKEN_CONTROL;
    v = tiny_load(tiny_bpe, &c, &err);
    gives(v, "<<<", "60 60 60", "unless it is a control token");
    llm_vocab_free(v);

    /* what only merges produce comes out as its bytes */

    memset(&c, 0, sizeof(c));
    c.merge = "x y";
    v = tiny_load(tiny_bpe, &c, &err);
    gives(v, "xyz", "120 121 122", "a merge to no token");
    llm_vocab_free(v);
}


int
main(void)
{
    test_bpe();
    test_trust();
    test_spm();
    test_wordpiece();
    test_limits();
    test_stops();
    test_wrong();
    test_special();

    return done_testing();
}
