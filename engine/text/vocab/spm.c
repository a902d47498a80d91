/*
 * SentencePiece's BPE (Kudo and Richardson 2018): of all neighbours whose
 * joined text is a token, those with the best score become one, the leftmost
 * first among equal scores; a character that is no token becomes byte tokens.
 *
 * A space is U+2581, and most models put one before the text.  If no token has
 * that mark after other text, merging cannot cross into the next word, and
 * words are merged one by one.
 */

#include "engine/text/vocab/bpe_merge.h"
#include "engine/base/utf8.h"


/* a smaller number for a better score */

static uint32_t
llm_spm_order(float score)
{
    uint32_t  u;

    score += 0.0f;                      /* -0 is 0 */
    memcpy(&u, &score, sizeof(u));

    return u & 0x80000000 ? u : ~(u | 0x80000000);
}


static uint32_t
llm_spm_find(const llm_vocab_t *v, const char *p, size_t n)
{
    uint32_t  id;

    if (n > v->max_len) {
        return LLM_NO_SYM;
    }

    id = llm_strmap_find(&v->map, p, n);

    return id != LLM_STRMAP_NONE && llm_vocab_is_plain(v, id)
           ? id : LLM_NO_SYM;
}


static uint32_t
llm_spm_rank(const llm_vocab_t *v, const char *text,
    const llm_merge_node_t *left, const llm_merge_node_t *right,
    uint32_t *result)
{
    *result = llm_spm_find(v, text + left->start, right->end - left->start);

    return *result == LLM_NO_SYM ? LLM_NO_RANK
                                 : llm_spm_order(v->score[*result]);
}


static int
llm_spm_is_mark(const char *p, size_t n)
{
    return n >= LLM_SPACE_MARK_LEN
           && memcmp(p, LLM_SPACE_MARK, LLM_SPACE_MARK_LEN) == 0;
}


size_t
llm_spm_word(const llm_vocab_t *v, const char *p, size_t n)
{
    int     in_word;
    size_t  i, len;

    if (!v->mark_begins) {
        return n;
    }

    in_word = 0;

    for (i = 0; i < n; i += len) {

        if (llm_spm_is_mark(p + i, n - i)) {

            if (in_word) {
                break;
            }

            len = LLM_SPACE_MARK_LEN;

        } else {
            in_word = 1;
            len = 1;
        }
    }

    return i;
}


static int
llm_spm_merge(llm_tok_t *t, const char *p, size_t n)
{
    int                  rc;
    size_t               i, k, len;
    uint32_t             at;
    llm_merge_node_t    *nodes;

    nodes = llm_merge_nodes(t, n);
    if (nodes == NULL) {
        return llm_tok_no_memory(t);
    }

    for (i = 0, k = 0; i < n; i += len, k++) {
        len = llm_utf8_decode(p + i, n - i, NULL);
        len = len ? len : 1;

        nodes[k].start = (uint32_t) i;
        nodes[k].end = (uint32_t) (i + len);
        nodes[k].sym = llm_spm_find(t->vocab, p + i, len);
    }

    if (llm_merge(t, p, k, llm_spm_rank) != LLM_OK) {
        return LLM_ERROR;
    }

    for (at = 0; at != LLM_MERGE_END; at = nodes[at].next) {

        rc = nodes[at].sym != LLM_NO_SYM
             ? llm_tok_push(t, (int32_t) nodes[at].sym)
             : llm_tok_push_bytes(t, p + nodes[at].start,
                                  nodes[at].end - nodes[at].start);

        if (rc != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


int
llm_spm_tokenize(llm_tok_t *t, const char *p, size_t n)
{
    size_t  len;

    if (llm_tok_escape(t, &p, &n) != LLM_OK) {
        return LLM_ERROR;
    }

    if (llm_tok_fits(t, n) != LLM_OK) {
        return LLM_ERROR;
    }

    for ( /* void */ ; n; p += len, n -= len) {
        len = llm_spm_word(t->vocab, p, n);

        if (llm_spm_merge(t, p, len) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}
