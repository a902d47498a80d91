/*
 * A trie of the tokens that ordinary text may become: finds all tokens that a
 * text begins with, byte by byte.
 *
 * Invariant: the children of a node are adjacent, in the order of their bytes,
 * at a higher index than the node.  llm_trie_build() writes the trie;
 * afterwards it is read-only.  It owns its arrays.
 */

#ifndef LLM_VOCAB_TRIE_H
#define LLM_VOCAB_TRIE_H

#include "engine/base/base.h"

typedef struct {
    uint32_t     first;                 /* index of the first child */
    int32_t      id;                    /* token that ends here, or -1 */
    uint16_t     n;                     /* number of children */
    uint8_t      byte;                  /* byte that leads here */
} llm_trie_node_t;

typedef struct {
    llm_trie_node_t  *nodes;            /* [n], the root first */
    uint32_t          n;
} llm_trie_t;

/* a text and its id; among equal texts the lowest id counts */
typedef struct {
    llm_str_t    text;
    int32_t      id;
} llm_trie_text_t;

#define LLM_TRIE_NONE  0                /* the root, which is no node's child */

/* sorts the texts, which may be freed afterwards; LLM_ERROR: no memory */
int llm_trie_build(llm_trie_t *t, llm_trie_text_t *texts, uint32_t n);
void llm_trie_free(llm_trie_t *t);


/* the node's child, or LLM_TRIE_NONE */

static inline uint32_t
llm_trie_child(const llm_trie_t *t, uint32_t node, unsigned char byte)
{
    uint32_t  low, high, mid;

    low = t->nodes[node].first;
    high = low + t->nodes[node].n;

    while (low < high) {
        mid = (low + high) / 2;

        if (t->nodes[mid].byte < byte) {
            low = mid + 1;

        } else {
            high = mid;
        }
    }

    return low < t->nodes[node].first + t->nodes[node].n
           && t->nodes[low].byte == byte ? low : LLM_TRIE_NONE;
}

#endif /* LLM_VOCAB_TRIE_H */
