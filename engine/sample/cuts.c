/*
 * The stages that reduce the tokens of a row; see stages.h.
 */

#include "engine/sample/stages.h"

#include <float.h>
#include <math.h>

/* the best tokens among which top-p first looks for its share */
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


/* comes before all stages that gather, so it only raises the bound */

void
llm_stage_min_p(llm_chain_t *c)
{
    float  bound;

    bound = c->max + llm_stage_min_gap(c->params, c->scale);

    c->bound = llm_max(llm_min(bound, c->max), -FLT_MAX);
    c->left = LLM_LEFT_BOUND;
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
 * the tokens whose surprise is nearest to the entropy, up to a share of the
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

    /* the key becomes the logarithm of the probability */

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


/* top-p of the whole vocabulary, looked for among the best tokens first */

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
