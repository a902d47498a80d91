/*
 * The merging that BPE and SentencePiece have in common: of all pairs of
 * neighbours the one with the lowest rank becomes one symbol, the leftmost
 * first among equal ranks, until no pair has a rank.
 *
 * Short lists are searched, long ones use a heap, so the time is at most n log
 * n.
 */

#ifndef LLM_BPE_MERGE_H
#define LLM_BPE_MERGE_H

#include "engine/text/vocab/internal.h"

#define LLM_MERGE_END  UINT32_MAX

typedef struct {
    uint32_t            prev;
    uint32_t            next;           /* LLM_MERGE_END after the last */
    uint32_t            start;          /* offset in the text */
    uint32_t            end;
    uint32_t            sym;            /* LLM_NO_SYM: is never merged */
    uint32_t            rank;           /* rank of this node with the next, or
                                           NO_RANK */
    uint32_t            result;         /* symbol that the two become */
} llm_merge_node_t;

/* rank of two neighbours (LLM_NO_RANK: none) and the symbol that they become */
typedef uint32_t (*llm_merge_rank_pt)(const llm_vocab_t *v, const char *text,
    const llm_merge_node_t *left, const llm_merge_node_t *right,
    uint32_t *result);

/*
 * Makes room for n nodes in t->nodes; NULL on failure.  The caller fills in
 * start, end and sym of each.
 */
llm_merge_node_t *llm_merge_nodes(llm_tok_t *t, size_t n);

/* merges n > 0 nodes; the remaining ones are linked from node 0 on */
int llm_merge(llm_tok_t *t, const char *text, size_t n,
    llm_merge_rank_pt rank);

#endif /* LLM_BPE_MERGE_H */
