/*
 * The nodes of a grammar.  The builder makes them, finish.c checks and prunes
 * them; afterwards they are read-only.  run.h has what a text does to them.
 *
 * Everything belongs to the builder, later to the grammar.
 */

#ifndef LLM_GRAMMAR_INTERNAL_H
#define LLM_GRAMMAR_INTERNAL_H

#include "engine/grammar/grammar.h"
#include "engine/grammar/regex/internal.h"

typedef enum {
    LLM_NODE_NONE = 0,
    LLM_NODE_EMPTY,
    LLM_NODE_TEXT,                      /* a: offset in text, b: bytes */
    LLM_NODE_REGEX,                     /* a: expression */
    LLM_NODE_STRING,                    /* a: expression */
    LLM_NODE_SEQ,                       /* a: first of kids, b: number of
                                           kids */
    LLM_NODE_ALT,                       /* as SEQ */
    LLM_NODE_REPEAT,                    /* a: node, b: min, c: max */
    LLM_NODE_OBJECT,                    /* a: index in objects */
    LLM_NODE_ARRAY,                     /* a: index in arrays */
    LLM_NODE_REF                        /* a: node */
} llm_node_kind_t;

typedef struct {
    uint8_t      kind;
    uint8_t      live;                  /* 1: the node has a way to its end */
    uint8_t      nullable;
    uint8_t      mark;                  /* used by finish.c */
    uint32_t     a;
    uint32_t     b;
    uint32_t     c;
} llm_node_t;

typedef struct {
    uint32_t     text;                  /* offset of the key as JSON writes it,
                                           with quotes and colon */
    uint32_t     len;
    llm_gn_t     value;
    uint8_t      required;
    uint8_t      live;
} llm_named_t;

typedef struct {
    uint32_t     named;                 /* index of the first named property */
    uint32_t     n_named;
    uint32_t     others;                /* index of the first of others */
    uint32_t     n_others;
    uint32_t     min;
    uint32_t     max;

    /* finish.c */
    uint32_t     order;                 /* index of the first in by_key */
    uint32_t     n_order;
    uint32_t     n_keys;                /* keys that others can have, at most
                                           min */
    uint32_t     counts;                /* index of the first in counts */
} llm_object_t;

/* counts of the named properties from one on, to the last */
typedef struct {
    uint32_t     required;              /* number of required ones */
    uint32_t     live;
    uint32_t     next;                  /* index of the first required one, or
                                           the number of all */
} llm_counts_t;

typedef struct {
    uint32_t     prefix;                /* index of the first of kids */
    uint32_t     n_prefix;
    llm_gn_t     items;
    llm_gn_t     contains;
    uint32_t     min;
    uint32_t     max;                   /* finish.c: most items that can come */
    uint32_t     min_contains;
    int          unique;
    int          counted;               /* unique: 1: items can be compared */
    uint32_t     scalars;               /* unique: first of kids: texts,
                                           strings and expressions of the
                                           items */
    uint32_t     n_scalars;
    uint32_t     n_values;              /* different values of the items, at
                                           most min; only if at least two must
                                           come */
} llm_array_t;

struct llm_gram_build_s {
    llm_rx_pool_t             *pool;
    llm_vec(llm_node_t)        nodes;
    llm_vec(llm_gn_t)          kids;
    llm_vec(llm_named_t)       named;
    llm_vec(llm_gn_others_t)   others;
    llm_vec(llm_object_t)      objects;
    llm_vec(llm_array_t)       arrays;
    llm_vec(uint32_t)          by_key;
    llm_vec(llm_counts_t)      counts;
    llm_buf_t                  text;
    uint64_t                   spent_us;

    /* finish.c */
    uint32_t                   n_looked;    /* number of first nodes whose
                                               `live` is right */
    uint32_t                   n_counted;   /* arrays whose uniqueness has been
                                               looked at */
    int                        failed;  /* 1: out of memory, or too large */
};

#define LLM_GRAM_MAX_NODES     (1u << 20)
#define LLM_GRAM_MAX_TEXT      ((size_t) 16 << 20)
/* most expressions of a grammar, as read and while it runs */
#define LLM_GRAM_MAX_RX        (1u << 21)

/* most repetitions of a node that may be empty */
#define LLM_GRAM_MAX_EMPTY     256

#endif /* LLM_GRAMMAR_INTERNAL_H */
