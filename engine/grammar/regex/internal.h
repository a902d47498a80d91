/*
 * What the files of the expressions share: regex/pool.c owns them,
 * regex/nodes.c numbers nodes, regex.c makes them in their simplest form,
 * regex/chars.c those for characters, regex/walk.c takes
 * derivatives, regex/parse.c reads patterns.
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
    LLM_RXK_SWITCH,                     /* what follows by the first byte */
    LLM_RXK_CAT,
    LLM_RXK_OR,
    LLM_RXK_AND,
    LLM_RXK_COMPL,                      /* all byte strings but these */
    LLM_RXK_REPEAT,
    LLM_RXK_RESIDUE                     /* digits behind a number of which
                                           the residue is known */
} llm_rx_kind_t;

#define LLM_RXF_NULLABLE  1             /* matches the empty text */
#define LLM_RXF_PLAIN     2             /* neither AND nor COMPL inside:
                                           matches something */
#define LLM_RXF_FINITE    4             /* a finite number of texts */

typedef struct {
    uint8_t      kind;
    uint8_t      flags;
    int8_t       level;                 /* 0: whole characters; k > 0: the
                                           last k bytes of one first; -1: not
                                           known to be UTF-8 */
    uint8_t      alive;                 /* llm_rx_alive_t */
    uint32_t     a;                     /* SWITCH: first arc; OR, AND: first
                                           kid; CAT, COMPL, REPEAT: a node;
                                           RESIDUE: that so far, or the
                                           modulus if there are no digits */
    uint32_t     b;                     /* SWITCH, OR, AND: how many; CAT: a
                                           node; REPEAT: min; RESIDUE: the
                                           modulus */
    uint32_t     c;                     /* REPEAT: max; RESIDUE: which */
} llm_rx_node_t;

/* does a node match anything? */
typedef enum {
    LLM_RX_UNKNOWN = 0,
    LLM_RX_ALIVE,
    LLM_RX_DEAD,
    LLM_RX_HARD,                        /* not decided within a small budget */
    LLM_RX_UNDECIDED                    /* nor within the whole: counts as
                                           dead */
} llm_rx_alive_t;

/* bytes from .. to; the arcs of a node are in order and apart */
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

    /* stacks for lists that are being made */
    llm_vec(llm_rx_t)       tmp;
    llm_vec(llm_rx_arc_t)   tmp_arcs;

    uint32_t                max_nodes;
    uint32_t                depth;      /* of merging switches */
    int                     failed;
    llm_rx_t                universe;   /* all byte strings */

    /* called from time to time while expressions are made; nonzero: it is
       stopped, and the pool has failed.  NULL: never */
    int                   (*pause)(void *data);
    void                   *pause_data;
    uint32_t                n_since;    /* what was done since */

    /* regex/walk.c: the derivatives by each byte, by node; NULL: not yet */
    llm_vec(llm_rx_t *)     rows;
    uint32_t                n_rows;     /* that are there */
    llm_vec(uint32_t)       seen;       /* a search's number, by node */
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

/* a bit of work is done, about as much as making a node */
void llm_rx_worked(llm_rx_pool_t *p);

/* the number of a node; the arcs or kids of a new one are the last of their
   array and are taken off if it is there already */
llm_rx_t llm_rx_intern(llm_rx_pool_t *p, llm_rx_node_t *x);
/* puts a node into the table of numbers: LLM_OK, LLM_ERROR */
int llm_rx_number(llm_rx_pool_t *p, llm_rx_t a);
/* lists that are being made, from base on */
void llm_rx_push(llm_rx_pool_t *p, llm_rx_t a);
void llm_rx_push_arc(llm_rx_pool_t *p, uint32_t base, uint32_t from,
    uint32_t to, llm_rx_t next);
void llm_rx_sort(llm_rx_pool_t *p, uint32_t base);
void llm_rx_flatten(llm_rx_pool_t *p, uint32_t base, llm_rx_kind_t kind);
llm_rx_t llm_rx_make_list(llm_rx_pool_t *p, uint32_t base,
    llm_rx_kind_t kind);
/* a node of arcs, in order and apart; the arcs are copied */
llm_rx_t llm_rx_switch(llm_rx_pool_t *p, const llm_rx_arc_t *arcs,
    uint32_t n, int nullable);
llm_rx_t llm_rx_switch_tmp(llm_rx_pool_t *p, uint32_t base, int nullable);

/* ---- regex.c ---- */

/* of what was pushed since base, which is taken off */
llm_rx_t llm_rx_or_list(llm_rx_pool_t *p, uint32_t base);
llm_rx_t llm_rx_and_list(llm_rx_pool_t *p, uint32_t base);
llm_rx_t llm_rx_compl(llm_rx_pool_t *p, llm_rx_t a);
/* the residue so far is now, or there are no digits (now == m) */
llm_rx_t llm_rx_residue_at(llm_rx_pool_t *p, uint32_t m, uint32_t r,
    uint32_t now);
/* ---- regex/chars.c ---- */

/* bytes of a character, first to last */
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
 * The derivatives by each byte, LLM_RX_NONE where they match nothing; the
 * row is valid as long as the pool.  NULL: the pool has failed.
 */
const llm_rx_t *llm_rx_row(llm_rx_pool_t *p, llm_rx_t a);
/* does a match anything, as far as that is decided? */
int llm_rx_alive(llm_rx_pool_t *p, llm_rx_t a);
/* was that asked, and not decided? */
static inline int
llm_rx_undecided(const llm_rx_pool_t *p, llm_rx_t a)
{
    return p->nodes.data[a].alive == LLM_RX_UNDECIDED;
}


/* appends a shortest text that matches; LLM_ERROR: none was found */
int llm_rx_example(llm_rx_pool_t *p, llm_rx_t a, llm_buf_t *out);

/* is there a text with any beginning, as long as characters are whole? */
int llm_rx_is_open(const llm_rx_pool_t *p, llm_rx_t a);

#endif /* LLM_REGEX_INTERNAL_H */
