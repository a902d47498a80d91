/*
 * Drawing the next token from a row of logits: what a step asks of a device
 * (batch.draws of kernels.h), and what it gives (drawn() of ops.def).
 */

#ifndef LLM_KERNELS_DRAW_H
#define LLM_KERNELS_DRAW_H

#include <stdint.h>

/* the limits of a device's draw; beyond them the host draws */
#define LLM_DRAW_EDITS   4096           /* edits and bans of a row */
#define LLM_DRAW_TOP     20             /* likely tokens beside the one
                                           drawn */

#define LLM_NO_DRAW      UINT32_MAX

/* a change of a logit: the bias is added; then, if the token was seen, the
   penalties */
typedef struct {
    int32_t      id;
    float        bias;
    uint32_t     seen;                  /* how often it was generated, and
                                           ... */
} llm_edit_t;

#define LLM_EDIT_SEEN    0x80000000u    /* ... this flag if it was, or is in
                                           the prompt */

typedef struct {
    int32_t      id;
    float        logprob;
} llm_candidate_t;

typedef enum {
    LLM_DRAW_HOST = 0,                  /* map() will read the row */
    LLM_DRAW_TOKEN,                     /* drawn() will get a token */
    LLM_DRAW_NONE                       /* nobody wants the row's logits, only
                                           its state */
} llm_draw_kind_t;

/*
 * A draw, in the order of its steps, which engine/sample/sampler.h describes:
 * edits, mask and bans, min-p, top-k, top-p, and the token at the share u of
 * the remaining mass, tokens in the order of their ids.  It does what the
 * host's sampler does: weights have the same bits, their sums differ by
 * rounding.  Arrays are the caller's and must stay until begin() returns.
 */
typedef struct {
    llm_draw_kind_t    kind;
    float              scale;           /* 1 / temperature; 0: the largest */
    float              min_gap;         /* min-p keeps logits of at least the
                                           largest + this; -INFINITY: all */
    uint32_t           top_k;           /* 0: all */
    float              top_p;           /* 1: all */
    double             u;               /* 0 <= u < 1 */
    float              repetition;      /* penalties of tokens that were
                                           seen */
    float              frequency;
    float              presence;
    int32_t            n_top;           /* probabilities: -1: none; 0: the
                                           token's; more: also those of the
                                           most likely */
    uint32_t           n_edits;
    uint32_t           n_banned;
    const llm_edit_t  *edits;           /* each id once */
    const int32_t     *banned;          /* ids; those beyond the vocabulary are
                                           ignored */
    const uint32_t    *mask;            /* a bit for each id that is allowed;
                                           or NULL */
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
    float                   logprob;    /* in the row before edits; 0 if n_top
                                           is -1 */
    uint32_t                n_top;
    const llm_candidate_t  *top;        /* [n_top] best first, in the row
                                           before edits; valid until begin() or
                                           end() */
} llm_drawn_t;

#endif /* LLM_KERNELS_DRAW_H */
