/*
 * Any bytes as text, any spans as trusted: BPE and SentencePiece give the
 * text back byte for byte, its unigram model what is UTF-8 if it keeps spaces
 * and has no map of characters; nothing becomes a control token that is not
 * wholly trusted, and what a client would be sent is UTF-8 at every step.
 *
 * The first byte chooses the vocabulary, the second how text is tokenised,
 * the next four are two spans; the rest is text.
 */

#ifndef _GNU_SOURCE
#define _GNU_SOURCE                     /* memmem() */
#endif

#include "engine/base/utf8.h"
#include "t/unit/vocab_build.h"

#define FUZZ_HEAD   6


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


static const char  *fuzz_pres[] = {
    "qwen2", "llama-bpe", "gpt-2", "deepseek-llm", "deepseek-v3", "tekken",
    "gpt-4o", "falcon", "tiny_aya", "superbpe", "kimi-k2", "exaone-moe",
    "jais-2", "chameleon"
};

typedef enum { FUZZ_BPE, FUZZ_SPM, FUZZ_WORDPIECE, FUZZ_KEEPS, FUZZ_UNIGRAM }
    fuzz_kind_t;

/* those that are not BPE, in the order of their kinds */
static const struct {
    tiny_pt       build;
    tiny_vocab_t  change;
} fuzz_others[] = {
    { tiny_spm, { 0 } },
    { tiny_wordpiece, { 0 } },
    { tiny_unigram,
      { .no_map = 1,
        .bool_key = "tokenizer.ggml.remove_extra_whitespaces" } },
    { tiny_unigram, { 0 } }
};

#define FUZZ_VOCABS  (llm_nelems(fuzz_pres) + llm_nelems(fuzz_others))


/* made once each; kept to the end */

static const llm_vocab_t *
fuzz_vocab(size_t i)
{
    size_t         other;
    llm_err_t      err;
    tiny_vocab_t   c = { 0 };

    static llm_vocab_t  *vocabs[FUZZ_VOCABS];

    if (vocabs[i] == NULL) {

        if (i < llm_nelems(fuzz_pres)) {
            c.pre = fuzz_pres[i];
            vocabs[i] = tiny_load(tiny_bpe, &c, &err);

        } else {
            other = i - llm_nelems(fuzz_pres);
            vocabs[i] = tiny_load(fuzz_others[other].build,
                                  &fuzz_others[other].change, &err);
        }

        if (vocabs[i] == NULL) {
            abort();
        }
    }

    return vocabs[i];
}


/* the text of the ids, raw, or as a client would get it */

static void
fuzz_detok(const llm_vocab_t *v, const llm_ids_t *ids, int raw, llm_buf_t *b)
{
    size_t        i;
    llm_str_t     s;
    llm_detok_t   d;

    llm_detok_init(&d, v, 1, 1);
    d.raw = raw;

    for (i = 0; i <= ids->len; i++) {
        s = i < ids->len ? llm_detok_push(&d, ids->data[i])
                         : llm_detok_flush(&d, !raw);

        if (!raw && llm_utf8_valid(s.data, s.len) != s.len) {
            abort();
        }

        (void) llm_buf_add(b, s.data, s.len);
    }

    llm_detok_free(&d);
}


/* the bytes before each control token say where it stands in the text */

static void
fuzz_trust(const llm_vocab_t *v, const llm_ids_t *ids,
    const llm_span_t *spans, size_t n)
{
    size_t  i, k, pos, len;

    for (i = 0, pos = 0; i < ids->len; i++, pos += len) {
        len = llm_vocab_bytes(v, ids->data[i]).len;

        if (llm_vocab_type(v, ids->data[i]) != LLM_TOKEN_CONTROL) {
            continue;
        }

        for (k = 0; k < n; k++) {
            if (spans[k].start <= pos && pos + len <= spans[k].end) {
                break;
            }
        }

        if (k == n) {
            abort();
        }
    }
}


static void
fuzz_text(const llm_vocab_t *v, fuzz_kind_t kind, int flags,
    const llm_span_t *spans, const char *text, size_t n)
{
    int         exact;
    llm_buf_t   b;
    llm_err_t   err;
    llm_ids_t   ids = { 0 };

    if (llm_vocab_tokenize(v, text, n, spans, 2, flags, 0, &ids, &err)
        != LLM_OK)
    {
        abort();
    }

    if (kind == FUZZ_BPE && flags == LLM_TOKENIZE_TRUSTED) {
        fuzz_trust(v, &ids, spans, 2);
    }

    llm_buf_init(&b, 0);
    fuzz_detok(v, &ids, 0, &b);
    b.len = 0;
    fuzz_detok(v, &ids, 1, &b);

    /*
     * SentencePiece puts a space behind each added token as well, and reads
     * U+2581 as a space; without either, the text is as it was
     */

    exact = kind == FUZZ_SPM
            || (kind == FUZZ_KEEPS && llm_utf8_valid(text, n) == n);
    exact &= flags == LLM_TOKENIZE_TRUSTED && spans[1].end == 0
             && memmem(text, n, "\xe2\x96\x81", 3) == NULL;

    if ((kind == FUZZ_BPE || exact)
        && (b.len != n || (n && memcmp(b.data, text, n) != 0)))
    {
        abort();
    }

    llm_buf_free(&b);
    free(ids.data);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t        i, which, n;
    llm_span_t    spans[2];
    fuzz_kind_t   kind;

    static const int  flags[] = {
        LLM_TOKENIZE_PLAIN, LLM_TOKENIZE_SPECIAL, LLM_TOKENIZE_TRUSTED
    };

    if (size < FUZZ_HEAD) {
        return 0;
    }

    n = size - FUZZ_HEAD;
    which = data[0] % FUZZ_VOCABS;
    kind = which < llm_nelems(fuzz_pres)
           ? FUZZ_BPE
           : (fuzz_kind_t) (FUZZ_SPM + which - llm_nelems(fuzz_pres));

    /* in order, apart */

    for (i = 0; i < 2; i++) {
        spans[i].start = (i ? spans[0].end : 0) + data[2 + 2 * i];
        spans[i].end = spans[i].start + data[3 + 2 * i];
        spans[i].start = llm_min(spans[i].start, n);
        spans[i].end = llm_min(spans[i].end, n);
    }

    if (data[1] & 0x80) {
        memset(spans, 0, sizeof(spans));
    }

    fuzz_text(fuzz_vocab(which), kind, flags[data[1] % 3], spans,
              (const char *) data + FUZZ_HEAD, n);

    return 0;
}
