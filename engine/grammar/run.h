/*
 * What texts do to a grammar.  A position in a text is a set of cells.  A cell
 * is the top of a stack: what is being read now, and below it (parent) the
 * cells that wait for its end.  Below the last cell is the end of the text.
 *
 * Invariant: equal cells and equal sets have the same number, so what a byte
 * does to a set is computed once.  From every cell of a set there is a way to
 * the end.
 *
 * A run owns its cells, sets and lexer.  It grows with the texts that it sees;
 * when it is full all of it is dropped (llm_run_clear()) and the matchers walk
 * their texts again.
 */

#ifndef LLM_RUN_H
#define LLM_RUN_H

#include "engine/grammar/internal.h"
#include "engine/grammar/lexer.h"

typedef enum {
    LLM_CELL_END = 0,                   /* nothing is below this cell */
    LLM_CELL_UNSURE,                    /* see LLM_TEXT_ANY */
    LLM_CELL_ENTER,                     /* marks that a node has been seen */

    /* waits for the end of the cell above it; x, y, z:
       SEQ     number of the next kid
       REPEAT  repetitions so far
       OBJECT  index of the next named property, properties so far (at most
               min if there is no max), set of keys that must not be repeated
       ARRAY   items so far, of these the ones that contains requires (both
               limited as above), set of values that must not be repeated */
    LLM_CELL_FRAME,

    /* read bytes; x, y, z: */
    LLM_CELL_TEXT,                      /* x: offset */
    LLM_CELL_LEX,                       /* x: lexer's state */
    LLM_CELL_OPEN,                      /* reads { or [ */

    /* parent is the object's or the array's frame: */
    LLM_CELL_SPACE,                     /* white space before a key, an item or
                                           the end; x: llm_space_next()'s
                                           state; y: is it after { or [? */
    LLM_CELL_NAMED,                     /* x, y: range in by_key; z: bytes
                                           read */
    LLM_CELL_KEY,                       /* lexer's state, text, index of
                                           others */
    LLM_CELL_COLON,                     /* node of the value */
    LLM_CELL_VALUE,                     /* the same; a space may come */
    LLM_CELL_AFTER,                     /* white space before } or ] */
    LLM_CELL_SCALAR                     /* a unique item: lexer's state or
                                           offset, text, node */
} llm_cell_kind_t;

typedef struct {
    uint32_t     kind;
    uint32_t     node;
    uint32_t     parent;
    uint32_t     x;
    uint32_t     y;
    uint32_t     z;
} llm_cell_t;

#define LLM_ID_END     0                /* number of the END cell */
#define LLM_ID_UNSURE  1

#define LLM_SET_NONE   0                /* the set without cells: the text is
                                           not allowed */

typedef struct {
    uint32_t     first;                 /* index of its first member */
    uint32_t     n;
    uint64_t     bytes[4];              /* bytes that may come, possibly with
                                           some that may not */
    uint8_t      has_bytes;
    uint8_t      unsure;
} llm_set_t;

/*
 * The texts of keys and items so far, each as the text before it and a byte;
 * and sets of texts that must not be repeated, each as the set before it and
 * one more text.  LLM_TEXT_ANY is a text of which only the end is known; masks
 * use it to walk many tokens at once.  Where it would matter which text it is,
 * the set becomes unsure.
 */
typedef struct {
    uint32_t     before;
    uint32_t     byte;
} llm_text_t;

#define LLM_TEXT_EMPTY  0
#define LLM_TEXT_ANY    1

typedef struct {
    uint32_t     before;                /* set without its last text;
                                           LLM_TAKEN_NONE: there is none */
    llm_rx_t     one;
    uint32_t     raw;                   /* 1: the text is not a string */
    llm_rx_t     strings;               /* expression of all strings in the
                                           set */
    llm_rx_t     raws;
    uint32_t     any;                   /* 1: LLM_TEXT_ANY is one of the
                                           texts */
    uint32_t     n;
} llm_taken_t;

#define LLM_TAKEN_NONE  0

/* work left before a set is complete */
typedef struct {
    uint32_t     cell;
    uint32_t     node;                  /* node to begin above cell;
                                           UINT32_MAX: what is above cell has
                                           ended */
} llm_work_t;

/* what a lexer's state does to all tokens, as far as that state decides; see
   mask_lex.c */
typedef struct {
    uint32_t    *stays;                 /* tokens that stay in the text */
    uint32_t    *leaves;                /* strings: tokens that end it, if what
                                           follows the quote may come */
    uint32_t    *ends;                  /* expressions: nodes of the tree at
                                           which the text may end */
    uint32_t     n_ends;
    uint32_t    *own;                   /* owned memory of stays and leaves;
                                           NULL: they are the vocabulary's */
} llm_lex_mask_t;

typedef struct {
    llm_gram_build_t       *g;
    llm_lexer_t             lexer;
    llm_vec(llm_lex_mask_t *)  lex_masks;   /* masks by state, or NULL */
    uint32_t                n_lex_masks;
    size_t                  lex_mask_bytes;  /* bytes of masks that have own
                                                memory */
    llm_vec(uint8_t)        slack;      /* slack by expression, see
                                           mask_length.c */
    llm_rx_mark_t           mark;

    llm_vec(llm_cell_t)     cells;
    llm_vec(uint32_t)       begun;      /* marks by cell: the number of the */
    llm_vec(uint32_t)       ended;      /* closure in which it was seen */
    llm_table_t             cell_table;

    llm_vec(llm_set_t)      sets;
    llm_vec(uint32_t)       members;
    llm_table_t             set_table;

    llm_vec(uint64_t)       moves;      /* set << 8 | byte, for each move */
    llm_vec(uint32_t)       moved;      /* set after the move */
    llm_table_t             move_table;

    llm_vec(llm_text_t)     texts;
    llm_table_t             text_table;
    llm_vec(llm_taken_t)    taken;
    llm_table_t             taken_table;

    /* the closure that is being computed */
    llm_vec(llm_work_t)     work;
    llm_vec(uint32_t)       out;
    uint32_t                closure;
    int                     unsure;

    uint64_t                steps;      /* cells read and work done */
    uint64_t                max_steps;  /* bound of steps; 0: none */

    int                     failed;     /* 1: out of memory, or too ambiguous */
    int                     full;       /* 1: to be cleared soon */
} llm_run_t;

/* most spaces and tabs after a line feed */
#define LLM_RUN_MAX_INDENT  32
/* most cells of a set */
#define LLM_RUN_MAX_CELLS   20000
/* most steps of one closure */
#define LLM_RUN_MAX_WORK    (1u << 20)
/* most masks of lexer's states that are kept */
#define LLM_RUN_MAX_MASKS   512
/* a run is full if it has more of anything */
#define LLM_RUN_MAX         (1u << 18)

/* ---- cells.c ---- */

int llm_run_init(llm_run_t *r, llm_gram_build_t *g);
void llm_run_free(llm_run_t *r);
/* drops all but the grammar; LLM_ERROR: out of memory */
int llm_run_clear(llm_run_t *r);

void llm_run_drop_masks(llm_run_t *r);
uint32_t llm_run_cell(llm_run_t *r, llm_cell_kind_t kind, uint32_t node,
    uint32_t parent, uint32_t x, uint32_t y, uint32_t z);
uint32_t llm_run_text(llm_run_t *r, uint32_t before, uint8_t byte);
/* appends the text's bytes */
void llm_run_spell(llm_run_t *r, uint32_t text, llm_buf_t *out);

/* computes a closure, from open to close: */
void llm_run_open(llm_run_t *r);
/* adds a cell that reads the next byte */
void llm_run_add(llm_run_t *r, uint32_t cell);
void llm_run_begin(llm_run_t *r, uint32_t parent, uint32_t node);
void llm_run_end(llm_run_t *r, uint32_t cell);
/* a value has ended in the frame of an object or array */
void llm_run_value_end(llm_run_t *r, uint32_t frame);
/* the set of the closure */
uint32_t llm_run_close(llm_run_t *r);

/* white space before a key, an item or the end: the next state, or 0 if byte
   is not allowed; 1 is the first state */
uint32_t llm_space_next(uint32_t space, uint8_t byte);
/* adds characters to a set of bytes */
void llm_run_add_bytes(uint64_t *bytes, const char *chars);

/* ---- taken.c ---- */

/* the set with one more text; text is inside quotes unless raw */
uint32_t llm_taken_add(llm_run_t *r, uint32_t taken, uint32_t text, int raw);
/* the part of an expression that the set leaves, LLM_RX_NONE if nothing; its
   texts are inside quotes unless raw */
llm_rx_t llm_taken_rest(llm_run_t *r, uint32_t taken, llm_rx_t rx, int raw);
/* not LLM_RX_NONE if the set leaves anything of an expression for strings */
llm_rx_t llm_taken_some(llm_run_t *r, uint32_t taken, llm_rx_t rx);
/* may this text of JSON come? */
int llm_taken_allows(llm_run_t *r, uint32_t taken, const char *text,
    size_t len);

/* ---- objects.c, arrays.c: cells above their frames ---- */

void llm_object_byte(llm_run_t *r, const llm_cell_t *c, uint8_t byte);
void llm_object_bytes(llm_run_t *r, const llm_cell_t *c, uint64_t *bytes);
/* a key ends after this state, with this text */
void llm_object_key(llm_run_t *r, const llm_cell_t *c, uint32_t text);

void llm_array_byte(llm_run_t *r, const llm_cell_t *c, uint8_t byte);
void llm_array_bytes(llm_run_t *r, const llm_cell_t *c, uint64_t *bytes);
void llm_array_scalar(llm_run_t *r, const llm_cell_t *c, uint32_t text);


/* ---- machine.c ---- */

/* the set at the beginning of a text */
uint32_t llm_run_start(llm_run_t *r, llm_gn_t root);
/* the set after the byte; LLM_SET_NONE: the byte is not allowed, or
   r->failed */
uint32_t llm_run_move(llm_run_t *r, uint32_t set, uint8_t byte);
/* the set after a cell that the lexer reads has ended with this text */
uint32_t llm_run_after(llm_run_t *r, uint32_t cell, uint32_t text);
/* the set that consists of these cells */
uint32_t llm_run_subset(llm_run_t *r, const uint32_t *cells, uint32_t n);
const uint64_t *llm_run_bytes(llm_run_t *r, uint32_t set);
int llm_run_may_end(const llm_run_t *r, uint32_t set);

#endif /* LLM_RUN_H */
