/*
 * SentencePiece's unigram model: random texts over a few letters against all
 * ways to cut them, normalisation by a map that is built here, spaces, unknown
 * characters, bytes; maps and scores that are damaged.  Trained vocabularies
 * are compared with the package sentencepiece by t/unit/unigram_expected.py,
 * by hand.
 */

#include "t/unit/tap.h"
#include "t/unit/charsmap_build.h"
#include "t/unit/vocab_build.h"

#include <math.h>

#define MARK  "\xe2\x96\x81"

enum { UG_UNK, UG_BOS, UG_EOS, UG_MARK };

static const tiny_token_t  pieces[] = {
    { "<unk>", LLM_TOKEN_UNKNOWN, 0 },
    { "<s>", LLM_TOKEN_CONTROL, 0 },
    { "</s>", LLM_TOKEN_CONTROL, 0 },
    { MARK, LLM_TOKEN_NORMAL, -3.517f },
    { "a", LLM_TOKEN_NORMAL, -2.2531f },
    { "b", LLM_TOKEN_NORMAL, -3.0711f },
    { MARK "a", LLM_TOKEN_NORMAL, -4.5193f },
    { "ab", LLM_TOKEN_NORMAL, -4.7617f },
    { "aba", LLM_TOKEN_NORMAL, -5.5371f },
    { "bb", LLM_TOKEN_NORMAL, -5.9413f },
    { MARK "ab", LLM_TOKEN_NORMAL, -7.8129f },
    { "\xc3\xa9", LLM_TOKEN_NORMAL, -7 },
    { "bab", LLM_TOKEN_UNUSED, 0 },
    { "<pad>", LLM_TOKEN_CONTROL, 0 }
};

typedef struct {
    const uint8_t  *map;
    size_t          n_map;
    int             bytes;              /* there are tokens of bytes */
    int             cross;              /* and one beyond a word */
    int             keep;               /* spaces */
    float           score;              /* of the second piece, if not 0 */
} conf_t;


static void
build(llm_buf_t *b, const conf_t *c)
{
    char      text[16];
    float     score;
    size_t    i, n;
    uint8_t   types[320];

    memset(types, LLM_TOKEN_BYTE, sizeof(types));
    n = llm_nelems(pieces) + (c->bytes ? 256 : 0) + (c->cross != 0);
    gguf_begin(b, 3, 0, 5 + (c->map != NULL));
    gguf_kv_str(b, "tokenizer.ggml.model", "t5");
    gguf_kv_bool(b, "tokenizer.ggml.remove_extra_whitespaces", !c->keep);
    gguf_kv_array(b, "tokenizer.ggml.tokens", LLM_GGUF_STR, n);

    for (i = 0; i < llm_nelems(pieces); i++) {
        gguf_str(b, pieces[i].text, strlen(pieces[i].text));
        types[i] = (uint8_t) pieces[i].type;
    }

    for (i = 0; c->bytes && i < 256; i++) {
        snprintf(text, sizeof(text), "<0x%02X>", (unsigned) i);
        gguf_str(b, text, strlen(text));
    }

    if (c->cross) {
        gguf_str(b, "a" MARK "b", 5);
        types[n - 1] = LLM_TOKEN_NORMAL;
    }

    gguf_kv_array(b, "tokenizer.ggml.token_type", LLM_GGUF_U8, n);
    (void) llm_buf_add(b, types, n);
    gguf_kv_array(b, "tokenizer.ggml.scores", LLM_GGUF_F32, n);

    for (i = 0; i < n; i++) {
        score = i < llm_nelems(pieces) ? pieces[i].score : -1.5131f;
        score = i == 1 && c->score != 0 ? c->score : score;
        (void) llm_buf_add(b, &score, sizeof(score));
    }

    if (c->map) {
        gguf_kv_array(b, "tokenizer.ggml.precompiled_charsmap", LLM_GGUF_U8,
                      c->n_map);
        (void) llm_buf_add(b, c->map, c->n_map);
    }
}


static llm_vocab_t *
load(const conf_t *c, llm_err_t *err)
{
    llm_buf_t     b;
    llm_gguf_t   *g;
    llm_vocab_t  *v;

    build(&b, c);
    g = llm_gguf_open_memory(b.data, b.len, "v", err);
    v = g ? llm_vocab_load(g, err) : NULL;
    llm_gguf_close(g);
    llm_buf_free(&b);

    return v;
}


static void
gives(const llm_vocab_t *v, const char *text, int flags, const char *want,
    const char *what)
{
    char        got[512];
    size_t      i, len;
    llm_err_t   err;
    llm_ids_t   ids = { NULL, 0, 0 };

    got[0] = '\0';
    len = 0;

    if (llm_vocab_tokenize(v, text, strlen(text), NULL, 0, flags, 0, &ids,
                           &err) != LLM_OK)
    {
        snprintf(got, sizeof(got), "%s", err.msg);
    }

    for (i = 0; i < ids.len && len < sizeof(got) - 16; i++) {
        len += (size_t) snprintf(got + len, sizeof(got) - len, "%s%d",
                                 i ? " " : "", ids.data[i]);
    }

    is_str(got, want, "%s", what);
    free(ids.data);
}


/* ---- all ways to cut a text ---- */

typedef struct {
    double       score;
    int32_t      ids[64];
    size_t       n;
} way_t;


static void
cut(const char *text, size_t at, const way_t *so_far, way_t *best, int cross)
{
    way_t   w;
    size_t  i, len, n;

    n = strlen(text);

    if (at == n) {
        if (so_far->score > best->score) {
            *best = *so_far;
        }

        return;
    }

    for (i = UG_MARK; i < llm_nelems(pieces) + (cross != 0); i++) {
        const char  *piece = i < llm_nelems(pieces) ? pieces[i].text
                                                    : "a" MARK "b";

        len = strlen(piece);

        if ((i < llm_nelems(pieces) && pieces[i].type != LLM_TOKEN_NORMAL)
            || at + len > n || memcmp(text + at, piece, len) != 0)
        {
            continue;
        }

        w = *so_far;
        w.ids[w.n++] = (int32_t) i;
        w.score += (double) (i < llm_nelems(pieces) ? pieces[i].score
                                                    : -1.5131f);
        cut(text, at + len, &w, best, cross);
    }

    /* unknown: a price, and one token for neighbours */

    if (text[at] == 'x') {
        w = *so_far;
        w.score += (double) -7.8129f - 10;

        if (w.n == 0 || w.ids[w.n - 1] != UG_UNK) {
            w.ids[w.n++] = UG_UNK;
        }

        cut(text, at + 1, &w, best, cross);
    }
}


/* are they the text, an unknown one for all neighbours? and their score */

static int
covers(const llm_ids_t *ids, const char *text, double *score)
{
    size_t       i, id;
    const char  *piece;

    *score = 0;

    for (i = 0; i < ids->len; i++) {
        id = (size_t) ids->data[i];

        if (id == UG_UNK) {
            for ( /* void */ ; *text == 'x'; text++) {
                *score += (double) -7.8129f - 10;
            }

            continue;
        }

        piece = id < llm_nelems(pieces) ? pieces[id].text : "a" MARK "b";
        *score += id < llm_nelems(pieces) ? (double) pieces[id].score
                                          : (double) -1.5131f;

        if (strncmp(text, piece, strlen(piece)) != 0) {
            return 0;
        }

        text += strlen(piece);
    }

    return *text == '\0';
}


static void
test_random(const llm_vocab_t *v, int cross)
{
    int        good;
    double     score;
    char       text[64], marked[128];
    size_t     i, k, n, len;
    way_t      none, best;
    uint32_t   state = 7;
    llm_err_t  err;
    llm_ids_t  ids = { NULL, 0, 0 };

    for (i = 0, good = 1; good && i < 2000; i++) {
        strcpy(marked, MARK);
        len = strlen(marked);

        for (k = 0, n = 1 + i % 9; k < n; k++) {
            state = state * 1664525 + 1013904223;
            text[k] = "aaabbbax "[(state >> 16) % 9];
            text[k] = (k == 0 || k == n - 1 || text[k - 1] == ' ')
                      && text[k] == ' ' ? 'b' : text[k];

            if (text[k] == ' ') {
                memcpy(marked + len, MARK, 4);
                len += 3;

            } else {
                marked[len++] = text[k];
            }
        }

        marked[len] = '\0';
        memset(&none, 0, sizeof(none));
        best.score = -1e30;
        cut(marked, 0, &none, &best, cross);

        ids.len = 0;
        good = llm_vocab_tokenize(v, text, n, NULL, 0, 0, 0, &ids, &err)
               == LLM_OK
               && covers(&ids, marked, &score)
               && fabs(score - best.score) < 1e-9;

        if (!good) {
            printf("# \"%.*s\"\n", (int) n, text);
        }
    }

    ok(good, "2000 texts are cut as the best of all ways%s",
       cross ? ", with a token across words" : "");
    free(ids.data);
}


/* ---- a map of characters ---- */

static void
test_map(void)
{
    size_t        i, n;
    map_t        *m;
    conf_t        c;
    uint32_t      state = 3;
    llm_err_t     err;
    llm_ids_t     ids = { NULL, 0, 0 };
    llm_vocab_t  *v;

    m = malloc(sizeof(*m));
    n = map_build(m);
    memset(&c, 0, sizeof(c));
    c.map = m->blob;
    c.n_map = n;
    v = load(&c, &err);

    if (!ok(v != NULL, "a vocabulary with a map")) {
        printf("# %s\n", err.msg);
        free(m);
        return;
    }

    gives(v, "A", 0, "6", "a letter is replaced");
    gives(v, "AB", 0, "3 9", "the longest beginning is");
    gives(v, "a\tb", 0, "6 3 5", "a tab is a space");
    gives(v, "e\xcc\x81", 0, "3 11", "two characters become one");
    gives(v, "\xef\xac\x81", 0, "6 5", "one becomes two");
    gives(v, "a\xef\xbb\xbf" "b", 0, "6 5", "one becomes none");
    gives(v, "\xef\xbb\xbf", 0, "", "nothing is left");
    gives(v, "a\xef", 0, "6 0", "half a character is unknown");
    llm_vocab_free(v);

    /* whatever a damaged map says, no place outside of it is read */

    for (i = 0; i < 300; i++) {
        state = state * 1664525 + 1013904223;
        (void) map_build(m);
        m->blob[4 + state % (MAP_UNITS * 4)] ^= (uint8_t) (1 + (state >> 24));
        m->blob[4 + (state >> 8) % 400] ^= (uint8_t) (1 + (state >> 20));
        m->blob[4 + i % 4] ^= (uint8_t) (state >> 16);
        v = load(&c, &err);

        if (v) {
            (void) llm_vocab_tokenize(v, "ABe\xcc\x81\t\xef\xac\x81", 9, NULL,
                                      0, 0, 0, &ids, &err);
            llm_vocab_free(v);
        }
    }

    ok(1, "300 damaged maps");
    free(ids.data);

    (void) map_build(m);
    c.n_map = 4 + MAP_UNITS * 4;
    ok(load(&c, &err) == NULL && strstr(err.msg, "precompiled_charsmap"),
       "a map without texts is refused");
    c.n_map = n - 2;
    ok(load(&c, &err) == NULL && strstr(err.msg, "precompiled_charsmap"),
       "one whose last text has no end");
    c.n_map = 3;
    ok(load(&c, &err) == NULL && strstr(err.msg, "precompiled_charsmap"),
       "one of three bytes");
    free(m);
}


int
main(void)
{
    conf_t        c;
    llm_err_t     err;
    llm_vocab_t  *v;

    memset(&c, 0, sizeof(c));
    v = load(&c, &err);

    if (!ok(v != NULL, "a unigram vocabulary")) {
        printf("# %s\n", err.msg);
        return done_testing();
    }

    is_str(llm_vocab_kind(v), "unigram", "its kind");
    gives(v, "", 0, "", "no text, no ids");
    gives(v, "a", 0, "6", "a mark before the text");
    gives(v, "  a   b ", 0, "6 3 5", "of spaces one is left, none at the ends");
    gives(v, "   ", 0, "", "spaces alone are nothing");
    gives(v, "axxa", 0, "6 0 4", "unknown characters are one token");
    gives(v, "\xe6\x97\xa5\xf0\x9f\x99\x82", 0, "3 0", "of any length");
    gives(v, "bab", 0, "3 5 7", "an unused token is not used");
    gives(v, "</s>a", LLM_TOKENIZE_SPECIAL, "2 6", "a control token");
    gives(v, "a", LLM_TOKENIZE_ADD, "1 6 2", "BOS and EOS");
    test_random(v, 0);
    llm_vocab_free(v);

    c.cross = 1;
    v = load(&c, &err);
    test_random(v, 1);
    llm_vocab_free(v);

    c.cross = 0;
    c.keep = 1;
    v = load(&c, &err);
    gives(v, " a  b", 0, "3 6 3 3 5", "all spaces are kept");
    llm_vocab_free(v);

    c.keep = 0;
    c.bytes = 1;
    v = load(&c, &err);
    gives(v, "ax\xc3\xa4", 0, "6 134 209 178", "bytes of unknown characters");
    llm_vocab_free(v);

    c.bytes = 0;
    c.score = __builtin_inff();
    ok(load(&c, &err) == NULL && strstr(err.msg, "not finite"),
       "a score that is not finite is refused");

    test_map();

    return done_testing();
}
