/*
 * A vocabulary's tokens as a tree of their bytes, and what can be known of
 * them without a grammar: how many characters each adds inside a string of
 * JSON, and with which bytes it goes on behind the closing quote.
 *
 * Read-only once it is made; owns everything in it but the vocabulary.
 * Control tokens and those without bytes are in no tree.
 */

#ifndef LLM_TOKTREE_H
#define LLM_TOKTREE_H

#include "engine/grammar/grammar.h"

/* nodes in preorder: the first child of i is i + 1, its next sibling end;
   the tokens of i are those from ids[first] to the first of the next node */
typedef struct {
    uint32_t     end:24;
    uint32_t     byte:8;
    uint32_t     first;
} llm_tree_node_t;

typedef struct {
    llm_tree_node_t  *nodes;            /* n + 1 */
    uint32_t          n;
    uint32_t         *ids;
    uint16_t         *chars;            /* of each id; or NULL */
    uint32_t          root[256];        /* a first byte's node + 1; 0: none */
} llm_tree_t;

/* tokens of at most so many characters have sets of their own */
#define LLM_TREE_LENGTHS  24

struct llm_toktree_s {
    const llm_vocab_t  *vocab;
    uint32_t            n_tokens;
    uint32_t            words;          /* 32 bits each, of a set */
    llm_tree_t          all;

    uint32_t           *eog;            /* tokens that end an answer */
    uint32_t            n_eog;

    /* inside a string of JSON, between two characters: */
    uint32_t           *inside;         /* tokens that stay in it */
    uint32_t           *within[LLM_TREE_LENGTHS + 1];  /* with at most so
                                           many characters */
    uint32_t           *longer;         /* the others, by length */
    uint16_t           *longer_chars;
    uint32_t            n_longer;
    llm_tree_t          exits;          /* those that end it, by the bytes
                                           behind the quote; chars are those
                                           before it */
};

static inline uint32_t
llm_tree_end(const llm_tree_t *t, uint32_t i)
{
    return t->nodes[i].end;
}

#endif /* LLM_TOKTREE_H */
