/*
 * A grammar inside: its nodes, which the builder makes and finish.c checks
 * and prunes; afterwards they are read-only.  What a text does to them is in
 * run.h.
 *
 * Everything belongs to the builder, then to the grammar.
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
    LLM_NODE_SEQ,                       /* a: first of kids, b: how many */
    LLM_NODE_ALT,                       /* as SEQ */
    LLM_NODE_REPEAT,                    /* a: node, b: min, c: max */
    LLM_NODE_OBJECT,                    /* a: of objects */
    LLM_NODE_ARRAY,                     /* a: of arrays */
    LLM_NODE_REF                        /* a: node */
} llm_node_kind_t;

typedef struct {
    uint8_t      kind;
    uint8_t      live;                  /* there is a way to its end */
    uint8_t      nullable;
    uint8_t      mark;                  /* finish.c */
    uint32_t     a;
    uint32_t     b;
    uint32_t     c;
} llm_node_t;

typedef struct {
    uint32_t     text;                  /* offset of the key as JSON writes
                                           it, with quotes and colon */
    uint32_t     len;
    llm_gn_t     value;
    uint8_t      required;
    uint8_t      live;
} llm_named_t;

typedef struct {
    uint32_t     named;                 /* first */
    uint32_t     n_named;
    uint32_t     others;                /* first */
    uint32_t     n_others;
    uint32_t     min;
    uint32_t     max;

    /* finish.c */
    uint32_t     order;                 /* first in by_key */
    uint32_t     n_order;
    uint32_t     n_keys;                /* keys of others, at most min */
    uint32_t     counts;                /* first in counts */
} llm_object_t;

/* of the named properties from one on, up to the last */
typedef struct {
    uint32_t     required;              /* how many */
    uint32_t     live;
    uint32_t     next;                  /* the first required one, or the
                                           number of all */
} llm_counts_t;

typedef struct {
    uint32_t     prefix;                /* first of kids */
    uint32_t     n_prefix;
    llm_gn_t     items;
    llm_gn_t     contains;
    uint32_t     min;
    uint32_t     max;                   /* finish.c: that can come */
    uint32_t     min_contains;
    int          unique;
    int          counted;               /* unique: they can be compared */
    uint32_t     scalars;               /* unique: first of kids, the items'
                                           texts, strings and expressions */
    uint32_t     n_scalars;
    uint32_t     n_values;              /* different ones, at most min; of two
                                           and more that must come */
    int          hopeful;               /* it is not decided whether there are
                                           more */
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
    uint32_t                   n_looked;    /* the first of all, whose `live`
                                               is right */
    uint32_t                   n_counted;   /* arrays, if they are unique */
    int                        hopeful; /* what is not decided counts as
                                           live */
    int                        failed;  /* memory ended, or too large */
};

#define LLM_GRAM_MAX_NODES     (1u << 20)
#define LLM_GRAM_MAX_TEXT      ((size_t) 16 << 20)
/* expressions of a grammar as it was read, and while it runs */
#define LLM_GRAM_MAX_RX        (1u << 21)

/* more repetitions of what may be empty are refused */
#define LLM_GRAM_MAX_EMPTY     256

#endif /* LLM_GRAMMAR_INTERNAL_H */
