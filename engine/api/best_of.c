/*
 * best_of: of the choices that were generated for a prompt, those with the
 * highest mean log probability of their tokens remain, the best first.  Usage
 * counts all that were generated.
 */

#include "engine/api/endpoint.h"

#include <math.h>

typedef struct {
    double             mean;
    llm_api_choice_t   choice;
} llm_api_ranked_t;


/* a choice without tokens comes last */

static double
llm_api_mean(const llm_api_choice_t *c)
{
    double                      sum;
    uint32_t                    i, n;
    const llm_event_t          *ev;
    const llm_api_piece_t      *piece;
    const llm_token_logprob_t  *t;

    sum = 0;
    n = 0;

    for (piece = c->own.first; piece; piece = piece->next) {
        ev = piece->ev;
        t = llm_ref_data(ev, ev->u.text.logprobs);

        for (i = 0; i < ev->u.text.logprobs.len; i++) {
            sum += t[i].logprob;
            n++;
        }
    }

    return n ? sum / n : -INFINITY;
}


/* the best first; of equal ones the one generated first */

static void
llm_api_rank(const llm_api_choice_t *c, uint32_t n, llm_api_ranked_t *ranked)
{
    double    mean;
    uint32_t  i, k;

    for (i = 0; i < n; i++) {
        mean = llm_api_mean(&c[i]);

        for (k = i; k > 0 && ranked[k - 1].mean < mean; k--) {
            ranked[k] = ranked[k - 1];
        }

        ranked[k].mean = mean;
        ranked[k].choice = c[i];
    }
}


void
llm_api_keep_best(llm_api_t *a)
{
    uint32_t           i, k, prompts;
    llm_api_list_t     echo;
    llm_api_choice_t  *to;
    llm_api_ranked_t   ranked[LLM_MAX_CHOICES];

    prompts = a->n_choices / a->n;

    for (i = 0; i < prompts; i++) {
        echo = a->choices[i * a->n].echo;
        llm_api_rank(&a->choices[i * a->n], a->n, ranked);
        to = &a->choices[i * a->n_best];

        for (k = 0; k < a->n_best; k++) {
            to[k] = ranked[k].choice;
        }

        to->echo = echo;
    }

    a->n = a->n_best;
    a->n_choices = prompts * a->n_best;
    a->n_best = 0;
    a->usage.finish_reason = llm_api_finish_name(a->choices[0].finish);
}
