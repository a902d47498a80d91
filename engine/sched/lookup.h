/*
 * Drafts without a model: the next tokens are guessed to be those that followed
 * the same three tokens before, in a prediction, in the prompt or in the
 * answer.
 *
 * A table has, by the hash of three tokens, where they stood last; it costs a
 * few nanoseconds a token.  Once a place is found, each token of the answer is
 * compared with the one that stands there, whether it was drafted or not: a
 * guess is worth as much as earlier guesses of its class were, and text that
 * does not repeat is soon not drafted any more, at no cost.
 *
 * Indexes count the tokens of the prediction, the prompt and the answer, in
 * this order.  Invariant: `at` is below the index of the next token.
 *
 * The caller owns the texts and frees the table, which grows with them.
 */

#ifndef LLM_LOOKUP_H
#define LLM_LOOKUP_H

#include "engine/base/base.h"

typedef enum {
    LLM_LOOKUP_PREDICTION = 0,
    LLM_LOOKUP_PROMPT,
    LLM_LOOKUP_ANSWER,
    LLM_LOOKUP_TEXTS
} llm_lookup_text_t;

/* the tokens of each text; only the answer grows */
typedef struct {
    const int32_t       *ids[LLM_LOOKUP_TEXTS];
    uint32_t             n[LLM_LOOKUP_TEXTS];
} llm_lookup_texts_t;

/* classes of guesses, by how many tokens before them are the same */
#define LLM_LOOKUP_CLASSES  4

/* zeros at first */
typedef struct {
    uint32_t            *after;         /* [size] by the hash of three tokens:
                                           the index after their last place; 0:
                                           none */
    uint32_t             size;          /* a power of two; 0: nothing yet */
    uint32_t             n;             /* tokens that were read */
    uint32_t             at;            /* index of the token that is expected
                                           next */
    uint32_t             sure;          /* tokens before `at` that are known to
                                           be those before the next token; 0:
                                           nothing is expected */
    float                hits[LLM_LOOKUP_CLASSES];  /* share of guesses that
                                                       came true, by class of
                                                       `sure` */
} llm_lookup_t;

void llm_lookup_free(llm_lookup_t *l);
/* reads the tokens that were added; LLM_ERROR: no memory */
int llm_lookup_follow(llm_lookup_t *l, const llm_lookup_texts_t *t);
/* guesses the next tokens, at most n, while each comes true with a probability
   of at least `least`; returns their number.  *expected: how many of them come
   true on average */
uint32_t llm_lookup_guess(const llm_lookup_t *l, const llm_lookup_texts_t *t,
    int32_t *ids, uint32_t n, double least, double *expected);
/* is the next token expected to be that of the prediction? */
int llm_lookup_is_predicted(const llm_lookup_t *l,
    const llm_lookup_texts_t *t);

#endif /* LLM_LOOKUP_H */
