/*
 * Text of tokens on tiny vocabularies: detokenising, texts by chance there and
 * back, in linear time, in several threads.
 */

#include "t/unit/cpu.h"
#include "t/unit/tap.h"
#include "t/unit/vocab_build.h"

#include <pthread.h>

#define LINEAR  500000


/* all that comes out for these ids, and the tail */

static void
says(const llm_vocab_t *v, const int32_t *ids, size_t n, int special,
    int strip, int raw, const char *want, const char *what)
{
    size_t        i;
    char          got[256];
    llm_str_t     s;
    llm_detok_t   d;

    llm_detok_init(&d, v, special, strip);
    d.raw = raw;
    got[0] = '\0';

    for (i = 0; i <= n; i++) {
        s = i < n ? llm_detok_push(&d, ids[i]) : llm_detok_flush(&d, !raw);
        strncat(got, s.data, s.len);
        strcat(got, i < n ? "|" : "");
    }

    is_str(got, want, "%s", what);
    llm_detok_free(&d);
}


#define SAYS(v, special, strip, raw, want, what, ...)                        \
    says(v, (int32_t[]) { __VA_ARGS__ },                                     \
         sizeof((int32_t[]) { __VA_ARGS__ }) / sizeof(int32_t), special,     \
         strip, raw, want, what)


static void
test_detok(void)
{
    llm_err_t     err;
    llm_vocab_t  *v;

    v = tiny_load(tiny_bpe, NULL, &err);

    SAYS(v, 0, 0, 0, "hello| world|", "words", BPE_HELLO, BPE_WORLD);
    SAYS(v, 0, 1, 0, " world|", "BPE keeps its first space", BPE_WORLD);
    SAYS(v, 0, 0, 0, "|||\xf0\x9f\x98\x80|", "an emoji in four tokens",
         0xf0, 0x9f, 0x98, 0x80);
    SAYS(v, 0, 0, 0, "||\xf0\x9f\x98\x80|hello|", "in three",
         265, 0x98, 0x80, BPE_HELLO);
    SAYS(v, 0, 0, 0, "||\xef\xbf\xbd" "hello|", "an emoji that breaks off",
         265, 0x98, BPE_HELLO);
    SAYS(v, 0, 0, 0, "||\xef\xbf\xbd", "one at the end", 0xf0, 0x9f);
    SAYS(v, 0, 0, 1, "||\xf0\x9f", "the bytes as they are", 0xf0, 0x9f);
    SAYS(v, 0, 0, 1, "||\xf0\x9fhello|", "also in the middle", 0xf0, 0x9f,
         BPE_HELLO);
    SAYS(v, 0, 0, 0, "\xef\xbf\xbd|\xef\xbf\xbd|a|", "bytes of no character",
         0xff, 0x80, 'a');
    SAYS(v, 0, 0, 0, "|\xef\xbf\xbd|\xc3\xa9|", "one, then another begins",
         0xf0, 0xc3, 0xa9);
    SAYS(v, 0, 0, 0, "hello||<think>|", "control tokens say nothing",
         BPE_HELLO, BPE_END, BPE_THINK);
    SAYS(v, 1, 0, 0, "hello|<|im_end|>|", "unless they are asked",
         BPE_HELLO, BPE_END);
    SAYS(v, 0, 0, 0, "||\xc3\xa9|", "a control token within a character",
         0xc3, BPE_END, 0xa9);
    SAYS(v, 0, 0, 0, "||a|", "ids that are none", -5, 100000, 'a');
    llm_vocab_free(v);

    v = tiny_load(tiny_spm, NULL, &err);
    SAYS(v, 0, 1, 0, "|abc| abc|", "the first space is dropped", SPM_BOS,
         SPM_MARK_ABC, SPM_MARK_ABC);
    SAYS(v, 0, 0, 0, " abc|", "or kept", SPM_MARK_ABC);
    SAYS(v, 0, 1, 0, "|a|", "it may be a token of its own", SPM_MARK, SPM_A);
    SAYS(v, 0, 1, 0, "|\xc3\xa9| a|", "byte tokens", SPM_BYTE(0xc3),
         SPM_BYTE(0xa9), SPM_MARK_A);
    SAYS(v, 1, 1, 0, "<s>|a|", "shown control tokens are not the text",
         SPM_BOS, SPM_MARK_A);
    llm_vocab_free(v);

    v = tiny_load(tiny_wordpiece, NULL, &err);
    SAYS(v, 0, 1, 0, "|he|llo| wor|ld|", "WordPiece", WP_CLS, WP_HE, WP_LLO,
         WP_WOR, WP_LD);
    llm_vocab_free(v);
}


/* random bytes, with words and pieces of special tokens among them */

static size_t
random_text(uint32_t *state, char *out, size_t max)
{
    size_t       n, len;
    const char  *p;

    static const char  *words[] = {
        "hello", " world", "12", "    ", "<|im_end|>", "<think>", "\xc3\xa9",
        "\xf0\x9f\x98\x80", "\r\n", "\xe3\x80\x80"
    };

    for (n = 0; n + 16 < max; n += len) {
        *state = *state * 1664525 + 1013904223;

        if (*state >> 31) {
            out[n] = (char) (*state >> 16);
            len = 1;

        } else {
            p = words[(*state >> 16) % llm_nelems(words)];
            len = strlen(p);
            memcpy(out + n, p, len);
        }
    }

    return n;
}


/* 1 when the ids give the text again, byte for byte */

static int
round_trip(const llm_vocab_t *v, const char *text, size_t n, int flags)
{
    int          same;
    size_t       i;
    llm_buf_t    b;
    llm_err_t    err;
    llm_ids_t    ids = { 0 };
    llm_str_t    s;
    llm_detok_t  d;

    if (llm_vocab_tokenize(v, text, n, NULL, 0, flags, 0, &ids, &err)
        != LLM_OK)
    {
        return 0;
    }

    llm_buf_init(&b, 0);
    llm_detok_init(&d, v, 1, 1);
    d.raw = 1;

    for (i = 0; i < ids.len; i++) {
        s = llm_detok_push(&d, ids.data[i]);
        (void) llm_buf_add(&b, s.data, s.len);
    }

    s = llm_detok_flush(&d, 0);
    (void) llm_buf_add(&b, s.data, s.len);

    same = b.len == n && memcmp(b.data, text, n) == 0;

    llm_detok_free(&d);
    llm_buf_free(&b);
    free(ids.data);

    return same;
}


static void
test_round_trip(void)
{
    int            i, bad;
    char           text[400];
    size_t         n;
    uint32_t       state = 7;
    llm_err_t      err;
    llm_gguf_t    *g;
    llm_vocab_t   *bpe, *spm, *demo;

    bpe = tiny_load(tiny_bpe, NULL, &err);
    spm = tiny_load(tiny_spm, NULL, &err);

    for (i = 0, bad = 0; i < 2000; i++) {
        n = random_text(&state, text, sizeof(text));
        bad += !round_trip(bpe, text, n, LLM_TOKENIZE_PLAIN);
        bad += !round_trip(bpe, text, n, LLM_TOKENIZE_SPECIAL);
        bad += !round_trip(bpe, text, n, LLM_TOKENIZE_TRUSTED);
        bad += !round_trip(spm, text, n, LLM_TOKENIZE_TRUSTED);
    }

    is_int(bad, 0, "2000 random texts come back from BPE and SentencePiece");

    llm_vocab_free(bpe);
    llm_vocab_free(spm);

    g = llm_gguf_open("models/demo.gguf", &err);
    demo = g ? llm_vocab_load(g, &err) : NULL;
    llm_gguf_close(g);

    if (!ok(demo != NULL, "the demo model's vocabulary")) {
        printf("# %s\n", err.msg);
        return;
    }

    for (i = 0, bad = 0; i < 2000; i++) {
        n = random_text(&state, text, sizeof(text));
        bad += !round_trip(demo, text, n, LLM_TOKENIZE_SPECIAL);
    }

    is_int(bad, 0, "2000 random texts come back from the demo model's");
    llm_vocab_free(demo);
}


/* texts of half a megabyte: were the time quadratic, it would be minutes */

static void
test_linear(void)
{
    int            i;
    char          *text;
    size_t         n, k;
    uint64_t       begin;
    llm_err_t      err;
    llm_ids_t      ids = { 0 };
    llm_vocab_t   *v;
    tiny_vocab_t   c = { 0 };

    static const char  *units[] = {
        " ", "a", "l", "<|im_", "1", "\n", " \n", "hello", "\xff", ".",
        "\xe6\x97\xa5", " a", "A", "hello world "
    };
    static const char  *pres[] = {
        "qwen2", "deepseek-llm", "gpt-4o", "tiny_aya", "superbpe", "falcon",
        "deepseek-v3", "exaone-moe", "kimi-k2"
    };

    text = malloc(LINEAR + 16);

    for (i = 0; i <= (int) llm_nelems(pres); i++) {
        c.pre = i < (int) llm_nelems(pres) ? pres[i] : NULL;
        v = tiny_load(c.pre ? tiny_bpe : tiny_spm, &c, &err);
        begin = cpu_us();

        for (k = 0; v && k < llm_nelems(units); k++) {

            for (n = 0; n < LINEAR; n += strlen(units[k])) {
                memcpy(text + n, units[k], strlen(units[k]));
            }

            text[n++] = 'x';
            ids.len = 0;

            if (llm_vocab_tokenize(v, text, n, NULL, 0, 0, 0, &ids, &err)
                != LLM_OK)
            {
                printf("# %s\n", err.msg);
                break;
            }
        }

        begin = cpu_us() - begin;
        ok(k == llm_nelems(units) && begin < 60000000,
           "%s: %zu texts in linear time", c.pre ? c.pre : "SentencePiece", k);
        printf("# %llu ms\n", (unsigned long long) begin / 1000);

        llm_vocab_free(v);
    }

    free(ids.data);
    free(text);
}


static void *
thread(void *data)
{
    int        i;
    char       text[300];
    size_t     n, bad;
    uint32_t   state = 99;

    for (i = 0, bad = 0; i < 300; i++) {
        n = random_text(&state, text, sizeof(text));
        bad += !round_trip(data, text, n, LLM_TOKENIZE_SPECIAL);
    }

    return (void *) bad;
}


static void
test_threads(void)
{
    int           i;
    void         *bad;
    size_t        all;
    pthread_t     threads[4];
    llm_err_t     err;
    llm_vocab_t  *v;

    v = tiny_load(tiny_bpe, NULL, &err);

    for (i = 0; i < 4; i++) {
        if (pthread_create(&threads[i], NULL, thread, v) != 0) {
            abort();
        }
    }

    for (i = 0, all = 0; i < 4; i++) {
        pthread_join(threads[i], &bad);
        all += (size_t) bad;
    }

    is_int(all, 0, "four threads share a vocabulary");
    llm_vocab_free(v);
}


int
main(void)
{
    test_detok();
    test_round_trip();
    test_linear();
    test_threads();

    return done_testing();
}
