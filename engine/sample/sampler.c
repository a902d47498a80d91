/*
 * A sampler: its state for one sequence, and sampling a token and its
 * probability from a row of logits; see sampler.h.  chain.c runs the stages,
 * picks.c finds the best tokens, rows.c passes over whole rows.
 *
 * A sampler owns its lists; sampling allocates nothing.
 */

#include "engine/sample/sampler.h"
#include "engine/sample/chain.h"
#include "engine/sample/random.h"
#include "engine/sample/filter.h"

#include <float.h>
#include <math.h>

/* smaller shares of the mass are raised to this: both leave only the best
   token, but smaller numbers could need denormals */
#define LLM_LEAST_SHARE   1e-6f


struct llm_sampler_s {
    llm_sampling_t     params;
    uint32_t           on;              /* llm_chain_on() */
    uint32_t           choice;          /* index of the choice */
    uint32_t           n_vocab;
    uint64_t           n_generated;     /* tokens */

    /* the logits that change: those with a bias and, with penalties, those of
       tokens seen so far */
    llm_edit_t        *edits;           /* [n_vocab] or NULL */
    uint32_t           n_edits;
    uint32_t          *place;           /* [n_vocab] index of an id's edit + 1,
                                           0: it has none; or NULL */
    int                penalises;       /* tokens are counted for penalties */

    const llm_filter_t *filter;         /* or NULL */
    int                words;           /* a bad word has several tokens */
    int                remembers;       /* the history is kept */
    llm_history_t      history;

    llm_candidate_t   *top;             /* [cap_top] */
    uint32_t           cap_top;         /* at least n_logprobs + 1 */
};


/* replaces parameters that are too close to 0 */

static void
llm_sampler_bound(llm_sampling_t *p)
{
    p->top_p = llm_max(p->top_p, LLM_LEAST_SHARE);
    p->typical_p = llm_max(p->typical_p, LLM_LEAST_SHARE);
    p->min_p = p->min_p < FLT_MIN ? 0 : p->min_p;
}


/* the edit of a token's logit, added if there is none yet; NULL: there is no
   such token */

static llm_edit_t *
llm_sampler_edit(llm_sampler_t *s, int32_t id)
{
    llm_edit_t  *e;

    if (id < 0 || (uint32_t) id >= s->n_vocab) {
        return NULL;
    }

    if (s->place[id] == 0) {
        e = &s->edits[s->n_edits++];
        e->id = id;
        e->bias = 0;
        e->seen = 0;
        s->place[id] = s->n_edits;
    }

    return &s->edits[s->place[id] - 1];
}


/* allocates what the parameters need; memory of earlier sequences is kept */

static int
llm_sampler_room(llm_sampler_t *s, int edits, uint32_t n_top)
{
    llm_candidate_t  *top;

    if (n_top > s->cap_top) {
        top = realloc(s->top, n_top * sizeof(llm_candidate_t));
        if (top == NULL) {
            return LLM_ERROR;
        }

        s->top = top;
        s->cap_top = n_top;
    }

    if (!edits || s->place) {
        return LLM_OK;
    }

    /* all of n_vocab: pages that are never touched take no memory */

    free(s->edits);
    s->edits = malloc(llm_max(s->n_vocab, 1u) * sizeof(llm_edit_t));
    if (s->edits == NULL) {
        return LLM_ERROR;
    }

    s->place = calloc(llm_max(s->n_vocab, 1u), sizeof(uint32_t));

    return s->place ? LLM_OK : LLM_ERROR;
}


int
llm_sampler_restart(llm_sampler_t *s, const llm_sampling_t *params,
    uint32_t choice, const llm_logit_bias_t *bias, uint32_t n_bias)
{
    int          penalises;
    uint32_t     i;
    llm_edit_t  *e;

    penalises = llm_chain_penalises(llm_chain_on(params));

    if (llm_sampler_room(s, n_bias || penalises,
                         (uint32_t) llm_max(params->n_logprobs + 1, 1))
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    for (i = 0; i < s->n_edits; i++) {
        s->place[s->edits[i].id] = 0;
    }

    s->n_edits = 0;
    s->n_generated = 0;
    s->choice = choice;
    s->params = *params;
    llm_sampler_bound(&s->params);
    s->on = llm_chain_on(&s->params);
    s->penalises = penalises;
    s->filter = NULL;
    s->words = 0;
    s->remembers = llm_chain_remembers(s->on);
    llm_history_clear(&s->history);

    for (i = 0; i < n_bias; i++) {
        e = llm_sampler_edit(s, bias[i].id);

        if (e) {
            e->bias += bias[i].bias;
        }
    }

    return LLM_OK;
}


llm_sampler_t *
llm_sampler_create(const llm_sampling_t *params, uint32_t choice,
    const llm_logit_bias_t *bias, uint32_t n_bias, uint32_t n_vocab)
{
    llm_sampler_t  *s;

    s = calloc(1, sizeof(llm_sampler_t));
    if (s == NULL) {
        return NULL;
    }

    s->n_vocab = n_vocab;

    if (llm_sampler_restart(s, params, choice, bias, n_bias) != LLM_OK) {
        llm_sampler_free(s);
        return NULL;
    }

    return s;
}


/* biases of texts are added; a bad word of one token becomes a bias of minus
   infinity */

int
llm_sampler_set_filter(llm_sampler_t *s, const llm_filter_t *filter)
{
    uint32_t     i;
    llm_edit_t  *e;

    if ((filter->n_bad || filter->n_bias)
        && llm_sampler_room(s, 1, 1) != LLM_OK)
    {
        return LLM_ERROR;
    }

    s->filter = filter;

    for (i = 0; i < filter->n_bias; i++) {
        e = llm_sampler_edit(s, filter->bias[i].id);

        if (e) {
            e->bias += filter->bias[i].bias;
        }
    }

    for (i = 0; i < filter->n_bad; i++) {

        e = filter->bad[i].n == 1
            ? llm_sampler_edit(s, filter->bad[i].ids[0]) : NULL;

        if (e) {
            e->bias = -INFINITY;
        }
    }

    s->words = llm_filter_has_words(filter);
    s->remembers |= s->words;

    return LLM_OK;
}


void
llm_sampler_free(llm_sampler_t *s)
{
    if (s == NULL) {
        return;
    }

    llm_history_free(&s->history);
    free(s->top);
    free(s->edits);
    free(s->place);
    free(s);
}


int
llm_sampler_wants_prompt(const llm_sampler_t *s)
{
    return s->params.repetition_penalty != 1 || llm_chain_remembers(s->on);
}


int
llm_sampler_penalises(const llm_sampler_t *s)
{
    return s->penalises;
}


void
llm_sampler_see_prompt(llm_sampler_t *s, int32_t id)
{
    llm_edit_t  *e;

    e = s->penalises ? llm_sampler_edit(s, id) : NULL;

    if (e) {
        e->seen |= LLM_EDIT_SEEN;
    }

    if (s->remembers) {
        llm_history_add(&s->history, s->filter, id);
        s->history.n_prompt = s->history.n;
    }
}


void
llm_sampler_accept(llm_sampler_t *s, int32_t id)
{
    llm_edit_t  *e;

    s->n_generated++;
    e = s->penalises ? llm_sampler_edit(s, id) : NULL;

    if (e) {
        e->seen = (e->seen + 1) | LLM_EDIT_SEEN;
    }

    if (s->remembers) {
        llm_history_add(&s->history, s->filter, id);
    }
}


static int
llm_sampler_changes(const llm_sampler_t *s, uint32_t n_banned,
    const uint32_t *mask)
{
    return s->n_edits || n_banned || mask || s->words
           || (s->filter && s->filter->allowed);
}


/* initialises the chain for a row, whose block maxima are in the scratch */

static void
llm_sampler_chain(const llm_sampler_t *s, llm_sampler_scratch_t *scratch,
    const float *row, llm_chain_t *c)
{
    memset(c, 0, sizeof(llm_chain_t));

    c->params = &s->params;
    c->on = s->on;
    c->edits = s->edits;
    c->n_edits = s->n_edits;
    c->place = s->place;
    c->filter = s->filter;
    c->history = &s->history;
    c->scratch = scratch;
    c->row = row;
    c->n = s->n_vocab;
}


/* copies the row to the scratch and applies bias, penalties, filter, bans and
   mask */

static void
llm_sampler_change(const llm_sampler_t *s, llm_sampler_scratch_t *scratch,
    const float *logits, const int32_t *banned, uint32_t n_banned,
    const uint32_t *mask)
{
    float        *row;
    uint32_t      i;
    llm_chain_t   c;

    row = scratch->row;
    memcpy(row, logits, s->n_vocab * sizeof(float));

    llm_sampler_chain(s, scratch, row, &c);
    llm_chain_edit(&c);

    llm_filter_apply(s->filter, &s->history, row, s->n_vocab);

    if (mask) {
        llm_filter_mask(mask, s->n_vocab, row);
    }

    for (i = 0; i < n_banned; i++) {
        if (banned[i] >= 0 && (uint32_t) banned[i] < s->n_vocab) {
            row[banned[i]] = -INFINITY;
        }
    }
}


/* the chain c goes from the row, whose largest logit is `best`, to the draw */

static int32_t
llm_sampler_choose(const llm_sampler_t *s, llm_sampler_scratch_t *scratch,
    const float *row, uint32_t best, llm_chain_t *c)
{
    llm_sampler_chain(s, scratch, row, c);

    if (llm_chain_takes_best(&s->params)) {
        return (int32_t) best;
    }

    c->max = row[best];
    c->scale = 1;
    c->chance = llm_random(s->params.seed, s->choice, s->n_generated, 1);

    return llm_chain_draw(c, llm_random(s->params.seed, s->choice,
                                        s->n_generated, 0));
}


static float
llm_sampler_logprob(float logit, float max, double log_sum)
{
    double  v;

    v = (double) logit - max - log_sum;

    return (float) llm_min(v, 0.0);
}


/* the most likely tokens of the unchanged row, best first; returns their
   number */

static uint32_t
llm_sampler_top(llm_sampler_t *s, llm_sampler_scratch_t *scratch,
    const float *logits, float max, double log_sum)
{
    uint32_t     i, k, count;
    llm_pick_t  *p;

    k = llm_min((uint32_t) s->params.n_logprobs, s->n_vocab);

    if (k == 0) {
        return 0;
    }

    count = llm_pick_gather(scratch, logits, s->n_vocab,
                               llm_pick_bound(scratch, s->n_vocab, k));
    p = scratch->picks;

    if (count > k) {
        count = llm_pick_cut(p, count, k, 1);
    }

    llm_pick_sort(p, count);

    for (i = 0; i < count; i++) {
        s->top[i].id = p[i].id;
        s->top[i].logprob = llm_sampler_logprob(p[i].key, max, log_sum);
    }

    return count;
}


static int
llm_sampler_not_finite(llm_err_t *err)
{
    return llm_fail(err, "the model's logits are not finite, or bias and "
                    "penalties make them so");
}


/* bans, filter and mask leave no token */

static int
llm_sampler_nothing(llm_err_t *err)
{
    return llm_fail_with(err, 400, NULL, NULL, "no token is allowed next");
}


/* checks that the row is finite; if probabilities are wanted, finds the largest
   logit, the logarithm of the sum of exponentials relative to it, and the most
   likely tokens */

static int
llm_sampler_scan(llm_sampler_t *s, llm_sampler_scratch_t *scratch,
    const float *logits, llm_sampled_t *out, float *max, double *log_sum,
    llm_err_t *err)
{
    memset(out, 0, sizeof(llm_sampled_t));
    out->top = s->top;
    *max = 0;
    *log_sum = 0;

    if (scratch->pass->scan(logits, s->n_vocab, scratch->block_max)) {
        return llm_sampler_not_finite(err);
    }

    if (s->params.n_logprobs < 0) {
        return LLM_OK;
    }

    *max = logits[llm_row_argmax(logits, s->n_vocab, scratch->block_max)];

    if (*max > -INFINITY) {
        *log_sum = log(scratch->pass->sum_exp(logits, s->n_vocab, *max, 1,
                                              NULL));
        out->n_top = llm_sampler_top(s, scratch, logits, *max, *log_sum);
    }

    return LLM_OK;
}


/* adds the sampled token to the most likely ones if it is not among them */

static void
llm_sampler_list(llm_sampler_t *s, llm_sampled_t *out)
{
    uint32_t  i;

    for (i = 0; i < out->n_top; i++) {
        if (s->top[i].id == out->id) {
            return;
        }
    }

    s->top[out->n_top].id = out->id;
    s->top[out->n_top++].logprob = out->logprob;
}


static void
llm_sampler_add_logprob(llm_sampler_t *s, const float *logits, float max,
    double log_sum, llm_sampled_t *out)
{
    out->logprob = (uint32_t) out->id < s->n_vocab
                   ? llm_sampler_logprob(logits[out->id], max, log_sum)
                   : -INFINITY;

    if (s->params.n_logprobs > 0) {
        llm_sampler_list(s, out);
    }
}


/* the probabilities of the draw at the end of the chain: of the tokens that
   could be drawn */

static void
llm_sampler_add_drawn(llm_sampler_t *s, llm_chain_t *c, llm_sampled_t *out)
{
    double       log_sum;
    uint32_t     i, n;
    llm_pick_t  *p;

    out->n_top = 0;

    if (llm_chain_takes_best(&s->params)) {
        out->logprob = 0;

    } else {
        log_sum = log(llm_chain_weigh(c));
        out->logprob = llm_sampler_logprob((c->row[out->id] - c->max)
                                           * c->scale, 0, log_sum);
        n = (uint32_t) s->params.n_logprobs;
        p = c->scratch->picks;
        n = n && c->count > n ? llm_pick_cut(p, c->count, n, 1)
                              : llm_min(n, c->count);
        llm_pick_sort(p, n);

        for (i = 0; i < n && p[i].weight > 0; i++) {
            s->top[i].id = p[i].id;
            s->top[i].logprob = llm_sampler_logprob((p[i].key - c->max)
                                                    * c->scale, 0, log_sum);
        }

        out->n_top = n ? i : 0;
    }

    if (s->params.n_logprobs > 0) {
        llm_sampler_list(s, out);
    }
}


int
llm_sampler_sample(llm_sampler_t *s, llm_sampler_scratch_t *scratch,
    const float *logits, const int32_t *banned, uint32_t n_banned,
    const uint32_t *mask, llm_sampled_t *out, llm_err_t *err)
{
    float         max;
    double        log_sum;
    uint32_t      best;
    llm_chain_t   c;
    const float  *row;

    row = logits;

    if (s->history.failed) {
        return llm_fail(err, "no memory");
    }

    if (llm_sampler_scan(s, scratch, logits, out, &max, &log_sum, err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (llm_sampler_changes(s, n_banned, mask)) {
        llm_sampler_change(s, scratch, logits, banned, n_banned, mask);
        row = scratch->row;

        if (scratch->pass->scan(row, s->n_vocab, scratch->block_max)) {
            return llm_sampler_not_finite(err);
        }
    }

    best = llm_row_argmax(row, s->n_vocab, scratch->block_max);

    if (row[best] == -INFINITY) {
        return llm_sampler_nothing(err);
    }

    out->id = llm_sampler_choose(s, scratch, row, best, &c);

    if (out->id < 0) {
        return llm_sampler_not_finite(err);
    }

    if (s->params.n_logprobs >= 0 && s->params.of_draw) {
        llm_sampler_add_drawn(s, &c, out);

    } else if (s->params.n_logprobs >= 0) {
        llm_sampler_add_logprob(s, logits, max, log_sum, out);
    }

    return LLM_OK;
}


int
llm_sampler_plan(const llm_sampler_t *s, uint32_t ahead,
    const int32_t *banned, uint32_t n_banned, const uint32_t *mask,
    llm_draw_t *draw)
{
    int                    best;
    const llm_sampling_t  *p;

    p = &s->params;
    best = llm_chain_takes_best(p);
    memset(draw, 0, sizeof(llm_draw_t));

    if (p->n_logprobs > LLM_DRAW_TOP || (p->of_draw && p->n_logprobs >= 0)
        || (uint64_t) s->n_edits + n_banned > LLM_DRAW_EDITS
        || !llm_chain_on_device(s->on, best) || s->words
        || (mask && s->filter && s->filter->allowed))
    {
        return 0;
    }

    if (!best) {
        draw->scale = 1 / p->temperature;
        draw->u = llm_random(p->seed, s->choice, s->n_generated + ahead, 0);
    }

    draw->kind = LLM_DRAW_TOKEN;
    draw->min_gap = llm_stage_min_gap(p, draw->scale);
    draw->top_k = (uint32_t) llm_max(p->top_k, 0);
    draw->top_p = p->top_p;
    draw->repetition = p->repetition_penalty;
    draw->frequency = p->frequency_penalty;
    draw->presence = p->presence_penalty;
    draw->n_top = llm_max(p->n_logprobs, -1);
    draw->n_edits = s->n_edits;
    draw->edits = s->edits;
    draw->n_banned = n_banned;
    draw->banned = banned;
    draw->mask = (s->filter && s->filter->allowed) ? s->filter->allowed : mask;

    return 1;
}


int
llm_sampler_drawn(llm_sampler_t *s, const llm_drawn_t *drawn,
    llm_sampled_t *out, llm_err_t *err)
{
    memset(out, 0, sizeof(llm_sampled_t));

    if (drawn->status == LLM_DRAWN_NOTHING) {
        return llm_sampler_nothing(err);
    }

    if (drawn->status != LLM_DRAWN_TOKEN || drawn->id < 0
        || (uint32_t) drawn->id >= s->n_vocab)
    {
        return llm_sampler_not_finite(err);
    }

    out->id = drawn->id;
    out->logprob = drawn->logprob;
    out->top = s->top;
    out->n_top = drawn->n_top;

    if (s->params.n_logprobs > 0) {
        memcpy(s->top, drawn->top, drawn->n_top * sizeof(llm_candidate_t));
        llm_sampler_list(s, out);
    }

    return LLM_OK;
}


int
llm_sampler_score(llm_sampler_t *s, llm_sampler_scratch_t *scratch,
    const float *logits, int32_t id, llm_sampled_t *out, llm_err_t *err)
{
    float   max;
    double  log_sum;

    if (llm_sampler_scan(s, scratch, logits, out, &max, &log_sum, err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    out->id = id;
    llm_sampler_add_logprob(s, logits, max, log_sum, out);

    return LLM_OK;
}
