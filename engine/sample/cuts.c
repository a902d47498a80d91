/*
 * The stages that reduce the tokens of a row to those that may be drawn; see
 * stages.h.
 */

#include "engine/sample/stages.h"

#include <float.h>
#include <math.h>

/* number of best tokens among which top-p first looks for its share */
#define LLM_FIRST_LOOK    64


void
llm_chain_gather(llm_chain_t *c)
{
    if (c->left == LLM_LEFT_PICKS) {
        return;
    }

    c->count = llm_pick_gather(c->scratch, c->row, c->n,
                               c->left == LLM_LEFT_BOUND ? c->bound
                                                         : -FLT_MAX);
    c->left = LLM_LEFT_PICKS;
    c->weighed = 0;
}


double
llm_chain_weigh(llm_chain_t *c)
{
    llm_chain_gather(c);
    c->weighed = 1;

    return llm_pick_weigh(c->scratch->picks, c->count, c->max, c->scale);
}


/* keeps only tokens whose logits reach the bound; called before any stage that
   gathers */

static void
llm_chain_raise(llm_chain_t *c, float bound)
{
    bound = llm_max(llm_min(bound, c->max), -FLT_MAX);

    c->bound = (c->left == LLM_LEFT_BOUND) ? llm_max(c->bound, bound) : bound;
    c->left = LLM_LEFT_BOUND;
}


void
llm_stage_temperature(llm_chain_t *c)
{
    c->scale = 1 / c->params->temperature;
}


float
llm_stage_min_gap(const llm_sampling_t *p, float scale)
{
    return p->min_p > 0 && scale > 0 ? (float) (log(p->min_p) / scale)
                                     : -INFINITY;
}


/*
 * Top-n-sigma (Tang et al., 2024).  Tokens that may not be drawn do not count
 * in mean and deviation.
 */

void
llm_stage_top_n_sigma(llm_chain_t *c)
{
    double    sum, mean, d;
    uint32_t  i, n;

    sum = 0;
    n = 0;

    for (i = 0; i < c->n; i++) {
        if (c->row[i] > -INFINITY) {
            sum += c->row[i];
            n++;
        }
    }

    mean = sum / n;
    sum = 0;

    for (i = 0; i < c->n; i++) {
        if (c->row[i] > -INFINITY) {
            d = c->row[i] - mean;
            sum += d * d;
        }
    }

    llm_chain_raise(c, (float) (c->max - c->params->top_n_sigma
                                         * sqrt(sum / n)));
}


void
llm_stage_min_p(llm_chain_t *c)
{
    llm_chain_raise(c, c->max + llm_stage_min_gap(c->params, c->scale));
}


void
llm_stage_top_k(llm_chain_t *c)
{
    float     bound;
    uint32_t  k;

    k = llm_min((uint32_t) c->params->top_k, c->n);
    bound = llm_pick_bound(c->scratch, c->n, k);

    c->bound = (c->left == LLM_LEFT_BOUND) ? llm_max(c->bound, bound) : bound;
    c->left = LLM_LEFT_BOUND;

    llm_chain_gather(c);

    if (c->count > k) {
        c->count = llm_pick_cut(c->scratch->picks, c->count, k, 1);
    }
}


/*
 * Locally typical sampling (Meister, Pimentel, Wiher, Cotterell, 2022): keeps
 * the tokens whose surprisal is nearest to the entropy, up to a share of the
 * mass.
 */

void
llm_stage_typical_p(llm_chain_t *c)
{
    double       total, entropy, log_total;
    uint32_t     i;
    llm_pick_t  *p;

    total = llm_chain_weigh(c);
    log_total = log(total);
    entropy = 0;
    p = c->scratch->picks;

    /* keys become logarithms of probabilities */

    for (i = 0; i < c->count; i++) {
        p[i].key = (float) ((p[i].key - c->max) * c->scale - log_total);

        if (p[i].weight > 0) {
            entropy -= p[i].weight / total * p[i].key;
        }
    }

    for (i = 0; i < c->count; i++) {
        p[i].key = (p[i].weight > 0) ? (float) -fabs(p[i].key + entropy)
                                     : -INFINITY;
    }

    c->count = llm_pick_cut(p, c->count, c->params->typical_p * total, 0);

    for (i = 0; i < c->count; i++) {
        p[i].key = c->row[p[i].id];
    }
}


/* top-p of the whole vocabulary; looks among the best tokens first */

static void
llm_stage_nucleus(llm_chain_t *c)
{
    double                  need;
    uint32_t                k;
    llm_sampler_scratch_t  *s;

    s = c->scratch;
    need = c->params->top_p
           * s->pass->sum_exp(c->row, c->n, c->max, c->scale, NULL);

    for (k = LLM_FIRST_LOOK; /* void */ ; k *= 8) {
        c->bound = llm_pick_bound(s, c->n, k);
        c->left = LLM_LEFT_BOUND;

        if (llm_chain_weigh(c) >= need || c->bound == -FLT_MAX) {
            c->count = llm_pick_cut(s->picks, c->count, need, 0);
            return;
        }
    }
}


void
llm_stage_top_p(llm_chain_t *c)
{
    double  need;

    if (c->left == LLM_LEFT_ALL) {
        llm_stage_nucleus(c);
        return;
    }

    need = c->params->top_p * llm_chain_weigh(c);
    c->count = llm_pick_cut(c->scratch->picks, c->count, need, 0);
}


/* whether p is less likely than the other; of equal ones, the lower id counts
   as more likely */

static int
llm_pick_is_behind(const llm_pick_t *p, const llm_pick_t *than)
{
    return p->key < than->key || (p->key == than->key && p->id > than->id);
}


/*
 * XTC (p-e-w, 2024): of the tokens that reach the threshold, keeps only the
 * least likely.  Its logit is then the largest, and weights are relative to it:
 * relative to a token that was removed, they could be too small.
 */

void
llm_stage_xtc(llm_chain_t *c)
{
    float        need;
    uint32_t     i, n, kept;
    llm_pick_t  *p, least = { 0 };

    if (c->chance >= c->params->xtc_probability) {
        return;
    }

    need = (float) (c->params->xtc_threshold * llm_chain_weigh(c));
    p = c->scratch->picks;
    n = 0;

    for (i = 0; i < c->count; i++) {
        if (p[i].weight >= need
            && (n++ == 0 || llm_pick_is_behind(&p[i], &least)))
        {
            least = p[i];
        }
    }

    if (n < 2) {
        return;
    }

    for (i = 0, kept = 0; i < c->count; i++) {
        if (p[i].weight < need || p[i].id == least.id) {
            p[kept++] = p[i];
        }
    }

    c->count = kept;
    c->max = least.key;
    c->weighed = 0;
}


/*
 * Dynamic temperature (kalomaze, 2023; as in llama.cpp): the entropy of the
 * remaining tokens, divided by the largest possible for this number of tokens,
 * sets the temperature between its two bounds.
 */

void
llm_stage_dynatemp(llm_chain_t *c)
{
    double                 total, entropy, low, high, t;
    uint32_t               i;
    llm_pick_t            *p;
    const llm_sampling_t  *s;

    s = c->params;
    c->scale = 1;
    total = llm_chain_weigh(c);
    p = c->scratch->picks;
    entropy = 0;

    for (i = 0; i < c->count; i++) {
        entropy += p[i].weight / total * (log(total) - (p[i].key - c->max));
    }

    entropy = (c->count > 1) ? llm_max(entropy, 0.0) / log(c->count) : 0;
    low = llm_max((double) s->temperature - s->dynatemp_range, 0.0);
    high = (double) s->temperature + s->dynatemp_range;
    t = low + (high - low) * pow(entropy, s->dynatemp_exponent);

    if (t < LLM_GREEDY_BELOW) {
        c->count = llm_pick_cut(p, c->count, 1, 1);
        return;
    }

    c->scale = (float) (1 / t);
    c->weighed = 0;
}
