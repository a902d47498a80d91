/*
 * A vocabulary's tokens as a tree of their bytes, and what can be known of
 * them without a grammar: how many characters each adds inside a string of
 * JSON, and with which bytes it goes on behind the closing quote.
 *
 * A control token has no text of its own, for nobody may write it letter by
 * letter: it is LLM_TOKTREE_CONTROL and its number, bytes that are in no text
 * and in no other token of the tree.
 *
 * Read-only once it is made; owns everything in it but the vocabulary.
 * Tokens without bytes, and those that end an answer, are in no tree.
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

/* what the tokens do in a string of JSON whose text may be any */
typedef struct {
    uint32_t           *stays;          /* tokens that stay in it */
    uint32_t           *leaves;         /* tokens that end it */
    llm_tree_t          exits;          /* the latter by the bytes behind the
                                           closing quote; chars are those
                                           before it */
} llm_tree_view_t;

#define LLM_TOKTREE_CONTROL  0xff

typedef struct {
    uint32_t            id;
    uint8_t             code[4];
} llm_tree_control_t;

struct llm_toktree_s {
    const llm_vocab_t  *vocab;
    llm_tree_control_t *control;        /* by id */
    uint32_t            n_control;
    uint32_t            n_tokens;
    uint32_t            words;          /* 32 bits each, of a set */
    llm_tree_t          all;

    uint32_t           *eog;            /* tokens that end an answer */
    uint32_t            n_eog;

    llm_tree_view_t     inside;         /* between two characters of a
                                           string */
    llm_tree_view_t     quoted;         /* before its opening quote */

    /* of the tokens in inside.stays and inside.leaves: those with at most so
       many characters */
    uint32_t           *sets;           /* the memory of all sets */
    uint32_t           *stays[LLM_TREE_LENGTHS + 1];
    uint32_t           *leaves[LLM_TREE_LENGTHS + 1];
    uint32_t           *longer;         /* the others in stays, by length */
    uint16_t           *longer_chars;
    uint32_t            n_longer;
    uint32_t            longest;        /* characters of any, in a string */
    uint32_t            quoted_longest; /* in quoted, or more */

    llm_tree_t          paths;          /* the nodes of all that lie on the
                                           way to a closing quote, from
                                           inside; ids are those nodes */
};

/* the bytes of a token in the tree; empty: it is not there */
llm_str_t llm_toktree_text(const llm_toktree_t *t, uint32_t id);

static inline uint32_t
llm_tree_end(const llm_tree_t *t, uint32_t i)
{
    return t->nodes[i].end;
}

#endif /* LLM_TOKTREE_H */
