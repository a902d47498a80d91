/*
 * Guesses from tokens that stood in a text before; see lookup.h.
 */

#include "engine/sched/lookup.h"

/* smallest table, in entries */
#define LLM_LOOKUP_LEAST  1024

/* tokens that are hashed */
#define LLM_LOOKUP_GRAM   3

/* weight of the last guess in the share of those that came true */
#define LLM_LOOKUP_WEIGHT 0.125f


static int32_t
llm_lookup_token(const llm_lookup_texts_t *t, uint32_t i)
{
    uint32_t  k;

    for (k = 0; k < LLM_LOOKUP_ANSWER && i >= t->n[k]; k++) {
        i -= t->n[k];
    }

    return t->ids[k][i];
}


/* the class of a guess after so many tokens that were the same */

static uint32_t
llm_lookup_class(uint32_t sure)
{
    return sure < 4 ? 0 : sure < 8 ? 1 : sure < 16 ? 2 : 3;
}


static uint32_t
llm_lookup_slot(const llm_lookup_t *l, const llm_lookup_texts_t *t, uint32_t i)
{
    uint64_t  h;

    h = (uint64_t) (uint32_t) llm_lookup_token(t, i) * 0x9e3779b97f4a7c15ull;
    h = (h ^ h >> 29 ^ (uint32_t) llm_lookup_token(t, i - 1))
        * 0xbf58476d1ce4e5b9ull;
    h = (h ^ h >> 32 ^ (uint32_t) llm_lookup_token(t, i - 2))
        * 0x94d049bb133111ebull;

    return (uint32_t) (h >> 32) & (l->size - 1);
}


/* makes token i and the two before it known; returns the index after their last
   place before; 0: there was none */

static uint32_t
llm_lookup_enter(llm_lookup_t *l, const llm_lookup_texts_t *t, uint32_t i)
{
    uint32_t  k, *place, found;

    if (i + 1 < LLM_LOOKUP_GRAM) {
        return 0;
    }

    place = &l->after[llm_lookup_slot(l, t, i)];
    found = *place;
    *place = i + 1;

    for (k = 0; found && k < LLM_LOOKUP_GRAM; k++) {
        if (llm_lookup_token(t, found - 1 - k) != llm_lookup_token(t, i - k)) {
            return 0;
        }
    }

    return found;
}


/* makes room for n tokens; the tokens read so far are entered again */

static int
llm_lookup_grow(llm_lookup_t *l, const llm_lookup_texts_t *t, uint32_t n)
{
    uint32_t  i, size, *after;

    if (n <= l->size) {
        return LLM_OK;
    }

    for (size = LLM_LOOKUP_LEAST; size / 2 < n; size *= 2) { /* void */ }

    after = calloc(size, sizeof(*after));
    if (after == NULL) {
        return LLM_ERROR;
    }

    free(l->after);
    l->after = after;
    l->size = size;

    for (i = 0; i < l->n; i++) {
        (void) llm_lookup_enter(l, t, i);
    }

    return LLM_OK;
}


/* nothing is known of guesses yet; a prediction is expected from its first
   token on */

static void
llm_lookup_begin(llm_lookup_t *l, const llm_lookup_texts_t *t)
{
    static const float  hits[LLM_LOOKUP_CLASSES] = { 0.4f, 0.6f, 0.75f, 0.9f };

    memcpy(l->hits, hits, sizeof(hits));
    l->at = 0;
    l->sure = t->n[LLM_LOOKUP_PREDICTION] ? LLM_LOOKUP_GRAM : 0;
}


/* compares a token of the answer with the one that was expected.  One that
   differs may stand in the place of another one, so the token after that is
   looked at next */

static void
llm_lookup_compare(llm_lookup_t *l, const llm_lookup_texts_t *t, int32_t id)
{
    int     came;
    float  *hits;

    came = llm_lookup_token(t, l->at) == id;

    if (l->sure) {
        hits = &l->hits[llm_lookup_class(l->sure)];
        *hits += LLM_LOOKUP_WEIGHT * ((float) came - *hits);
    }

    l->at++;
    l->sure = came ? l->sure + 1 : 0;
}


int
llm_lookup_follow(llm_lookup_t *l, const llm_lookup_texts_t *t)
{
    uint32_t  n, answer, found;

    answer = t->n[LLM_LOOKUP_PREDICTION] + t->n[LLM_LOOKUP_PROMPT];
    n = answer + t->n[LLM_LOOKUP_ANSWER];

    if (l->size == 0) {
        llm_lookup_begin(l, t);
    }

    if (llm_lookup_grow(l, t, n) != LLM_OK) {
        return LLM_ERROR;
    }

    for ( /* void */ ; l->n < n; l->n++) {
        if (l->n >= answer) {
            llm_lookup_compare(l, t, llm_lookup_token(t, l->n));
        }

        found = llm_lookup_enter(l, t, l->n);

        if (found && l->n >= answer && l->sure < LLM_LOOKUP_GRAM) {
            l->at = found;
            l->sure = LLM_LOOKUP_GRAM;
        }
    }

    return LLM_OK;
}


uint32_t
llm_lookup_guess(const llm_lookup_t *l, const llm_lookup_texts_t *t,
    int32_t *ids, uint32_t n, double least, double *expected)
{
    double    p;
    uint32_t  i, at;

    p = 1;
    *expected = 0;

    for (i = 0; l->sure && i < n; i++) {
        p *= l->hits[llm_lookup_class(l->sure + i)];

        if (p < least) {
            break;
        }

        /* from the next token on, a text that repeats itself */

        at = l->at + i;
        ids[i] = at < l->n ? llm_lookup_token(t, at) : ids[at - l->n];
        *expected += p;
    }

    return i;
}


int
llm_lookup_is_predicted(const llm_lookup_t *l, const llm_lookup_texts_t *t)
{
    return l->at < t->n[LLM_LOOKUP_PREDICTION];
}


void
llm_lookup_free(llm_lookup_t *l)
{
    free(l->after);
    memset(l, 0, sizeof(*l));
}
