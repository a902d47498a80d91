/*
 * A vocabulary's tokens as a tree of their bytes, and what is known of them
 * without a grammar: how many characters each adds inside a string of JSON,
 * and which bytes follow after the closing quote.
 *
 * A control token has no text of its own, because it must not be written
 * letter by letter.  Its code is LLM_TOKTREE_CONTROL and its number: bytes
 * that are in no text and in no other token of the tree.
 *
 * The tree is read-only once it is made, and owns everything in it but the
 * vocabulary.  Tokens without bytes, and those that end an answer, are not in
 * it.
 */

#ifndef LLM_TOKTREE_H
#define LLM_TOKTREE_H

#include "engine/grammar/grammar.h"

/* nodes in preorder: the first child of i is i + 1, its next sibling is
   nodes[i].end; the tokens of i are from ids[first] to the first of the next
   node */
typedef struct {
    uint32_t     end:24;
    uint32_t     byte:8;
    uint32_t     first;
} llm_tree_node_t;

typedef struct {
    llm_tree_node_t  *nodes;            /* [n + 1] */
    uint32_t          n;
    uint32_t         *ids;
    uint16_t         *chars;            /* characters of each id, or NULL */
    uint32_t          root[256];        /* first byte's node + 1; 0: none */
} llm_tree_t;

/* sets by length are kept for tokens of at most this many characters */
#define LLM_TREE_LENGTHS  24

/* what tokens do in a string of JSON with any text */
typedef struct {
    uint32_t           *stays;          /* tokens that stay in the string */
    uint32_t           *leaves;         /* tokens that end the string */
    llm_tree_t          exits;          /* tokens of leaves, by the bytes after
                                           the closing quote; chars: characters
                                           before the quote */
} llm_tree_view_t;

#define LLM_TOKTREE_CONTROL  0xff
#define LLM_TOKTREE_NONE     UINT32_MAX

typedef struct {
    uint32_t            id;
    uint8_t             code[4];
} llm_tree_control_t;

struct llm_toktree_s {
    const llm_vocab_t  *vocab;
    llm_tree_control_t *control;        /* by id */
    uint32_t            n_control;
    uint32_t            n_tokens;
    uint32_t            words;          /* 32-bit words of a set */
    llm_tree_t          all;

    uint32_t           *eog;            /* tokens that end an answer */
    uint32_t            n_eog;

    llm_tree_view_t     inside;         /* position between two characters of a
                                           string */
    llm_tree_view_t     quoted;         /* position before the opening quote */

    /* tokens of inside.stays and inside.leaves with at most [i] characters */
    uint32_t           *sets;           /* memory of all sets */
    uint32_t           *stays[LLM_TREE_LENGTHS + 1];
    uint32_t           *leaves[LLM_TREE_LENGTHS + 1];
    uint32_t           *longer;         /* longer tokens of stays, sorted by
                                           length */
    uint16_t           *longer_chars;
    uint32_t            n_longer;
    uint32_t            longest;        /* most characters of a token, inside a
                                           string */
    uint32_t            quoted_longest; /* upper bound of the same in quoted */

    llm_tree_t          paths;          /* the nodes on a way to a closing
                                           quote, from inside; ids are indexes
                                           of these nodes in the tree */
};

/* the token with the most bytes that the text begins with; LLM_TOKTREE_NONE:
   none.  *len: its bytes */
uint32_t llm_toktree_longest(const llm_toktree_t *t, llm_str_t text,
    size_t *len);
/* the bytes of a token in the tree; empty: the token is not in it */
llm_str_t llm_toktree_text(const llm_toktree_t *t, uint32_t id);

static inline uint32_t
llm_tree_end(const llm_tree_t *t, uint32_t i)
{
    return t->nodes[i].end;
}

#endif /* LLM_TOKTREE_H */
