/*
 * SentencePiece's unigram model (Kudo 2018): of all ways to cut the text into
 * tokens, the one with the greatest sum of scores, found by Viterbi's
 * algorithm; the first among equals.  A character that no token covers by
 * itself may become the unknown token, at a price; adjacent unknown tokens
 * become one.
 *
 * The text is normalised first (charsmap.c).  A space is U+2581; if the file
 * says so, one is put before the text, and several adjacent spaces become one.
 * If no token has that mark after other text, no token can cross into the next
 * word, and words are cut one by one.
 */

#include "engine/base/utf8.h"
#include "engine/text/vocab/internal.h"

#include <float.h>
#include <math.h>

/* the unknown token's score is that of the worst token less this */
#define LLM_UNIGRAM_PRICE  10.0

/* the best way to a position in the text */
typedef struct {
    double       score;
    uint32_t     start;                 /* offset where its last token begins */
    int32_t      id;                    /* id of that token; -1: unknown */
} llm_unigram_way_t;


static int
llm_unigram_is_piece(const llm_vocab_t *v, uint32_t id)
{
    return llm_vocab_is_plain(v, id) && v->type[id] != LLM_TOKEN_UNUSED;
}


int
llm_unigram_load(llm_vocab_t *v, const llm_gguf_t *g, llm_err_t *err)
{
    int               rc;
    double            worst;
    uint32_t          i, n;
    llm_trie_text_t  *texts;

    if (llm_charsmap_load(&v->charsmap, &v->arena, g, err) != LLM_OK) {
        return LLM_ERROR;
    }

    texts = malloc(v->n * sizeof(*texts));

    if (texts == NULL) {
        return llm_vocab_no_memory(g, err);
    }

    worst = 0;

    for (i = 0, n = 0; i < v->n; i++) {
        if (!isfinite(v->score[i])) {
            free(texts);
            return llm_fail(err, "%s: tokenizer.ggml.scores: the score of "
                            "token %u is not finite", llm_gguf_name(g), i);
        }

        if (!llm_unigram_is_piece(v, i)) {
            continue;
        }

        worst = n ? llm_min(worst, (double) v->score[i]) : v->score[i];
        texts[n].text = v->map.str[i];
        texts[n++].id = (int32_t) i;
    }

    v->unk_score = worst - LLM_UNIGRAM_PRICE;
    rc = llm_trie_build(&v->trie, texts, n);
    free(texts);

    return rc == LLM_OK ? LLM_OK : llm_vocab_no_memory(g, err);
}


static int
llm_unigram_add(llm_tok_t *t, const char *p, size_t n)
{
    return llm_buf_add(&t->text, p, n) == LLM_OK ? LLM_OK
                                                 : llm_tok_no_memory(t);
}


/* adds characters; if several spaces become one, a space is held back until
   something follows it */

static int
llm_unigram_chars(llm_tok_t *t, llm_str_t s, int *space)
{
    size_t  i, from;

    for (i = 0; i < s.len; i = from) {

        if (s.data[i] == ' ') {
            from = i + 1;

            if (t->vocab->merge_spaces) {
                *space = t->text.len != 0;
                continue;
            }

            if (llm_unigram_add(t, LLM_SPACE_MARK, LLM_SPACE_MARK_LEN)
                != LLM_OK)
            {
                return LLM_ERROR;
            }

            continue;
        }

        for (from = i; from < s.len && s.data[from] != ' '; from++) {
            /* void */
        }

        if ((*space || (t->text.len == 0 && t->vocab->space_prefix))
            && llm_unigram_add(t, LLM_SPACE_MARK, LLM_SPACE_MARK_LEN)
               != LLM_OK)
        {
            return LLM_ERROR;
        }

        *space = 0;

        if (llm_unigram_add(t, s.data + i, from - i) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


/* the text in the form that is cut, in t->text */

static int
llm_unigram_normalize(llm_tok_t *t, const char *p, size_t n)
{
    int        space;
    size_t     i;
    llm_str_t  s;

    t->text.len = 0;
    space = 0;

    if (!t->vocab->merge_spaces && t->vocab->space_prefix
        && llm_unigram_add(t, LLM_SPACE_MARK, LLM_SPACE_MARK_LEN) != LLM_OK)
    {
        return LLM_ERROR;
    }

    for (i = 0; i < n; /* void */ ) {
        i += llm_charsmap_next(&t->vocab->charsmap, p + i, n - i, &s);

        if (llm_unigram_chars(t, s, &space) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


/* adds the ways on from position `at`, whose character has `len` bytes */

static void
llm_unigram_step(const llm_vocab_t *v, const char *p, size_t n, size_t at,
    size_t len, llm_unigram_way_t *ways)
{
    int       whole;
    double    score;
    size_t    end;
    uint32_t  node;
    int32_t   id;

    whole = 0;
    node = 0;

    for (end = at; end < n; /* void */ ) {
        node = llm_trie_child(&v->trie, node, (unsigned char) p[end++]);

        if (node == LLM_TRIE_NONE) {
            break;
        }

        id = v->trie.nodes[node].id;

        if (id == -1) {
            continue;
        }

        whole |= end == at + len;
        score = ways[at].score
                + (v->type[id] == LLM_TOKEN_USER_DEFINED ? 0 : v->score[id]);

        if (score > ways[end].score) {
            ways[end] = (llm_unigram_way_t) { score, (uint32_t) at, id };
        }
    }

    score = ways[at].score + v->unk_score;

    if (!whole && score > ways[at + len].score) {
        ways[at + len] = (llm_unigram_way_t) { score, (uint32_t) at, -1 };
    }
}


/* adds the tokens of the best way to the end; its positions are chained
   backwards, so they are reversed first */

static int
llm_unigram_take(llm_tok_t *t, const char *p, size_t n,
    llm_unigram_way_t *ways, int *unknown)
{
    int       rc;
    size_t    at;
    uint32_t  next, before;
    int32_t   id;

    next = (uint32_t) n;

    for (at = n; at; at = before) {
        before = ways[at].start;
        ways[at].start = next;
        next = (uint32_t) at;
    }

    at = 0;

    while (at < n) {
        id = ways[next].id;
        rc = LLM_OK;

        if (id != -1) {
            rc = llm_tok_push(t, id);

        } else if (t->vocab->byte_id[(unsigned char) p[at]] != -1
                   || !*unknown)
        {
            rc = llm_tok_push_bytes(t, p + at, next - at);
        }

        if (rc != LLM_OK) {
            return LLM_ERROR;
        }

        *unknown = id == -1;
        at = next;
        next = ways[at].start;
    }

    return LLM_OK;
}


static int
llm_unigram_cut(llm_tok_t *t, const char *p, size_t n, int *unknown)
{
    size_t              i, len;
    llm_unigram_way_t  *ways;

    t->nodes.len = 0;
    ways = (llm_unigram_way_t *) (void *)
           llm_buf_reserve(&t->nodes, (n + 1) * sizeof(*ways));

    if (ways == NULL) {
        return llm_tok_no_memory(t);
    }

    for (i = 0; i <= n; i++) {
        ways[i] = (llm_unigram_way_t) { i ? -DBL_MAX : 0, 0, -1 };
    }

    for (i = 0; i < n; i += len) {
        len = llm_utf8_decode(p + i, n - i, NULL);
        len = len ? len : 1;
        llm_unigram_step(t->vocab, p, n, i, len, ways);
    }

    return llm_unigram_take(t, p, n, ways, unknown);
}


int
llm_unigram_tokenize(llm_tok_t *t, const char *p, size_t n)
{
    int     unknown;
    size_t  len;

    if (llm_unigram_normalize(t, p, n) != LLM_OK) {
        return LLM_ERROR;
    }

    p = t->text.data;
    n = t->text.len;
    unknown = 0;

    if (n > UINT32_MAX - 1) {
        return llm_tok_no_memory(t);
    }

    for ( /* void */ ; n; p += len, n -= len) {
        len = llm_spm_word(t->vocab, p, n);

        if (llm_unigram_cut(t, p, len, &unknown) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}
