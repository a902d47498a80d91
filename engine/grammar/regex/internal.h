/*
 * What the files of this folder share: pool.c owns them, nodes.c numbers
 * nodes, regex.c makes them in their simplest form, chars.c those for
 * characters, walk.c takes derivatives, parse.c reads patterns.
 *
 * Everything belongs to the pool.
 */

#ifndef LLM_REGEX_INTERNAL_H
#define LLM_REGEX_INTERNAL_H

#include "engine/base/table.h"
#include "engine/grammar/regex/regex.h"

typedef enum {
    LLM_RXK_NONE = 0,
    LLM_RXK_EMPTY,
    LLM_RXK_SWITCH,                     /* arcs: what follows, by the first
                                           byte */
    LLM_RXK_CAT,
    LLM_RXK_OR,
    LLM_RXK_AND,
    LLM_RXK_COMPL,                      /* all byte strings that a does not
                                           match */
    LLM_RXK_REPEAT,
    LLM_RXK_RESIDUE                     /* further digits of a number, after
                                           digits of known residue */
} llm_rx_kind_t;

#define LLM_RXF_NULLABLE  1             /* matches the empty text */
#define LLM_RXF_PLAIN     2             /* neither AND nor COMPL inside, so it
                                           matches something */
#define LLM_RXF_FINITE    4             /* matches a finite number of texts */

typedef struct {
    uint8_t      kind;
    uint8_t      flags;
    int8_t       level;                 /* 0: whole characters; k > 0: first
                                           the last k bytes of a character; -1:
                                           not known to be UTF-8 */
    uint8_t      alive;                 /* llm_rx_alive_t */
    uint32_t     a;                     /* SWITCH: first arc; OR, AND: first
                                           kid; CAT, COMPL, REPEAT: a node;
                                           RESIDUE: residue so far, or the
                                           modulus if there are no digits yet */
    uint32_t     b;                     /* SWITCH, OR, AND: number of arcs or
                                           kids; CAT: a node; REPEAT: min;
                                           RESIDUE: modulus */
    uint32_t     c;                     /* REPEAT: max; RESIDUE: residue
                                           wanted */
} llm_rx_node_t;

/* does a node match anything? */
typedef enum {
    LLM_RX_UNKNOWN = 0,
    LLM_RX_ALIVE,
    LLM_RX_DEAD,
    LLM_RX_HARD,                        /* not decided within the first, small
                                           budget */
    LLM_RX_UNDECIDED                    /* not decided within the full budget
                                           either: counts as dead */
} llm_rx_alive_t;

/* bytes from .. to; a node's arcs are in order and do not overlap */
typedef struct {
    uint8_t      from;
    uint8_t      to;
    llm_rx_t     next;
} llm_rx_arc_t;

struct llm_rx_pool_s {
    llm_vec(llm_rx_node_t)  nodes;
    llm_vec(llm_rx_arc_t)   arcs;
    llm_vec(llm_rx_t)       kids;
    llm_table_t             table;

    /* stack of lists that are being made */
    llm_vec(llm_rx_t)       tmp;
    llm_vec(llm_rx_arc_t)   tmp_arcs;

    uint32_t                max_nodes;
    uint32_t                depth;      /* depth of nested merges of switches */
    int                     failed;
    int                     undecided;  /* 1: it was not decided of some node
                                           whether it matches anything */
    llm_rx_t                universe;   /* all byte strings */

    /* called from time to time while expressions are made; nonzero: work
       stops, and the pool has failed.  NULL: not called */
    int                   (*pause)(void *data);
    void                   *pause_data;
    uint32_t                n_since;    /* work since the last call of pause */

    /* walk.c: a node's derivatives by byte; NULL: not computed yet */
    llm_vec(llm_rx_t *)     rows;
    uint32_t                n_rows;     /* rows that have been computed */
    llm_vec(uint32_t)       seen;       /* number of the last search that saw
                                           the node */
    uint32_t                search;
};

static inline const llm_rx_node_t *
llm_rx_node(const llm_rx_pool_t *p, llm_rx_t a)
{
    return &p->nodes.data[a];
}


static inline int
llm_rx_nullable(const llm_rx_pool_t *p, llm_rx_t a)
{
    return (p->nodes.data[a].flags & LLM_RXF_NULLABLE) != 0;
}

/* ---- regex/nodes.c ---- */

/* counts a unit of work, about as much as making a node */
void llm_rx_worked(llm_rx_pool_t *p);

/* returns the number of a node.  The arcs or kids of a new node are the last
   of their array; they are removed if there is an equal node already */
llm_rx_t llm_rx_intern(llm_rx_pool_t *p, llm_rx_node_t *x);
/* puts a node into the table: LLM_OK, LLM_ERROR */
int llm_rx_number(llm_rx_pool_t *p, llm_rx_t a);
/* lists that are being made, from index base on */
void llm_rx_push(llm_rx_pool_t *p, llm_rx_t a);
void llm_rx_push_arc(llm_rx_pool_t *p, uint32_t base, uint32_t from,
    uint32_t to, llm_rx_t next);
void llm_rx_sort(llm_rx_pool_t *p, uint32_t base);
void llm_rx_flatten(llm_rx_pool_t *p, uint32_t base, llm_rx_kind_t kind);
llm_rx_t llm_rx_make_list(llm_rx_pool_t *p, uint32_t base,
    llm_rx_kind_t kind);
/* a node with these arcs, which are in order and do not overlap; they are
   copied */
llm_rx_t llm_rx_switch(llm_rx_pool_t *p, const llm_rx_arc_t *arcs,
    uint32_t n, int nullable);
llm_rx_t llm_rx_switch_tmp(llm_rx_pool_t *p, uint32_t base, int nullable);

/* ---- regex.c ---- */

/* a node of what was pushed since base, which is popped */
llm_rx_t llm_rx_or_list(llm_rx_pool_t *p, uint32_t base);
llm_rx_t llm_rx_and_list(llm_rx_pool_t *p, uint32_t base);
llm_rx_t llm_rx_compl(llm_rx_pool_t *p, llm_rx_t a);
/* digits such that the number is r modulo m, if those so far are `now`; now ==
   m: there are none yet */
llm_rx_t llm_rx_residue_at(llm_rx_pool_t *p, uint32_t m, uint32_t r,
    uint32_t now);
/* ---- regex/chars.c ---- */

/* ranges of a character's bytes, first to last */
typedef struct {
    uint8_t      from[4];
    uint8_t      to[4];
    uint32_t     n;
} llm_rx_bytes_t;

#define LLM_RX_MAX_BYTES  24

/* the characters from .. to as at most LLM_RX_MAX_BYTES sequences */
uint32_t llm_rx_utf8(uint32_t from, uint32_t to, llm_rx_bytes_t *out);

/* ---- regex/walk.c ---- */

/*
 * A node's derivatives by byte; LLM_RX_NONE where nothing matches.  The row is
 * valid as long as the pool.  NULL: the pool has failed.
 */
const llm_rx_t *llm_rx_row(llm_rx_pool_t *p, llm_rx_t a);
/* does a match anything?  Undecided counts as no */
int llm_rx_alive(llm_rx_pool_t *p, llm_rx_t a);
/* appends a shortest text that matches; LLM_ERROR: none was found */
int llm_rx_example(llm_rx_pool_t *p, llm_rx_t a, llm_buf_t *out);

/* can every beginning be continued to a match, as long as characters are
   whole? */
int llm_rx_is_open(const llm_rx_pool_t *p, llm_rx_t a);

#endif /* LLM_REGEX_INTERNAL_H */
