/*
 * Drawing (sampling) the next token from a row of logits on the device: the
 * draws of a step (batch.draws of kernels.h) and their results (drawn() of
 * ops.def).
 */

#ifndef LLM_KERNELS_DRAW_H
#define LLM_KERNELS_DRAW_H

#include <stdint.h>

/* limits of a draw on the device; beyond them the host draws */
#define LLM_DRAW_EDITS   4096           /* edits and bans of a row */
#define LLM_DRAW_TOP     20             /* most likely tokens, in addition to
                                           the drawn one */

#define LLM_NO_DRAW      UINT32_MAX

/* a change of one token's logit: the bias is added; then the penalties are
   applied, if the token was seen */
typedef struct {
    int32_t      id;
    float        bias;
    uint32_t     seen;                  /* number of times that the token was
                                           generated, or-ed with ... */
} llm_edit_t;

#define LLM_EDIT_SEEN    0x80000000u    /* ... this flag if it was generated or
                                           is in the prompt */

typedef struct {
    int32_t      id;
    float        logprob;
} llm_candidate_t;

typedef enum {
    LLM_DRAW_HOST = 0,                  /* the host draws: map() reads the
                                           row */
    LLM_DRAW_TOKEN,                     /* the device draws: drawn() reads the
                                           token */
    LLM_DRAW_NONE                       /* only the row's state is read, not
                                           its logits */
} llm_draw_kind_t;

/*
 * A draw.  Its steps, in this order, which engine/sample/sampler.h describes:
 * edits, mask and bans, min-p, top-k, top-p; then, with tokens in the order of
 * their ids, the token at the fraction u of the remaining probability mass.
 * The host's sampler does the same: weights have the same bits, their sums
 * differ by rounding.  The caller owns the arrays; they must stay until begin()
 * returns.
 */
typedef struct {
    llm_draw_kind_t    kind;
    float              scale;           /* 1 / temperature; 0: the token with
                                           the largest logit is taken */
    float              min_gap;         /* min-p: logits below the largest +
                                           min_gap are dropped; -INFINITY:
                                           none */
    uint32_t           top_k;           /* 0: no limit */
    float              top_p;           /* 1: no limit */
    double             u;               /* 0 <= u < 1 */
    float              repetition;      /* penalties of tokens that were
                                           seen */
    float              frequency;
    float              presence;
    int32_t            n_top;           /* log probabilities in the result: -1:
                                           none; 0: the drawn token's; n: also
                                           those of the n most likely */
    uint32_t           n_edits;
    uint32_t           n_banned;
    const llm_edit_t  *edits;           /* each id at most once */
    const int32_t     *banned;          /* ids; those beyond the vocabulary are
                                           ignored */
    const uint32_t    *mask;            /* a bit for each id, 1: allowed; NULL:
                                           all are */
} llm_draw_t;

typedef enum {
    LLM_DRAWN_TOKEN = 0,
    LLM_DRAWN_NOT_FINITE,               /* a logit is NaN or plus infinity,
                                           before or after the edits */
    LLM_DRAWN_NOTHING                   /* no token is allowed */
} llm_drawn_status_t;

typedef struct {
    uint32_t                status;     /* llm_drawn_status_t */
    int32_t                 id;
    float                   logprob;    /* from the logits before edits; 0 if
                                           the draw's n_top is -1 */
    uint32_t                n_top;
    const llm_candidate_t  *top;        /* [n_top] most likely first, from the
                                           logits before edits; valid until the
                                           next begin() or end() */
} llm_drawn_t;

#endif /* LLM_KERNELS_DRAW_H */
