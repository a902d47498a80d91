/*
 * Runs the chain; see chain.h.  Stages are known here only by their rows in
 * sampling.def, except for the two that can make sampling take the most likely
 * token, and the two that depend on the order of the tokens so far.
 */

#include "engine/sample/chain.h"


typedef enum {
    LLM_IS_EDIT = 0,
    LLM_IS_PENALTY,
    LLM_IS_CUT
} llm_stage_kind_t;

typedef enum {
    LLM_ON_HOST = 0,
    LLM_ON_DEVICE
} llm_stage_where_t;

typedef struct {
    llm_stage_kind_t    kind;
    llm_stage_where_t   where;
    void              (*apply)(llm_chain_t *c);
} llm_stage_row_t;


static const llm_stage_row_t  llm_stages[LLM_STAGE_N] = {
#define LLM_STAGE(name, kind, when, where, parameters)                       \
    { LLM_IS_##kind, LLM_ON_##where, llm_stage_##name },
#include "engine/base/sampling.def"
};


uint32_t
llm_chain_on(const llm_sampling_t *p)
{
    uint32_t  on;

    on = 0;

#define LLM_STAGE(name, kind, when, where, parameters)                       \
    on |= (when) ? 1u << LLM_STAGE_##name : 0;
#include "engine/base/sampling.def"

    return on;
}


int
llm_chain_penalises(uint32_t on)
{
    uint32_t  i;

    for (i = 0; i < LLM_STAGE_N; i++) {
        if ((on >> i & 1) && llm_stages[i].kind == LLM_IS_PENALTY) {
            return 1;
        }
    }

    return 0;
}


int
llm_chain_remembers(uint32_t on)
{
    return on >> LLM_STAGE_window & 1 || on >> LLM_STAGE_dry & 1;
}


int
llm_chain_takes_best(const llm_sampling_t *p)
{
    return p->temperature < LLM_GREEDY_BELOW || p->top_k == 1;
}


int
llm_chain_on_device(uint32_t on, int best)
{
    uint32_t  i;

    for (i = 0; i < LLM_STAGE_N; i++) {
        if ((on >> i & 1) && llm_stages[i].where == LLM_ON_HOST
            && !(best && llm_stages[i].kind == LLM_IS_CUT))
        {
            return 0;
        }
    }

    return 1;
}


static void
llm_chain_run(llm_chain_t *c, int cuts)
{
    uint32_t  i;

    for (i = 0; i < LLM_STAGE_N; i++) {
        if ((c->on >> i & 1) && (llm_stages[i].kind == LLM_IS_CUT) == cuts)
        {
            llm_stages[i].apply(c);
        }
    }
}


void
llm_chain_edit(llm_chain_t *c)
{
    llm_chain_run(c, 0);
}


/* draws from the whole vocabulary, block by block; -1: not finite */

static int32_t
llm_chain_draw_all(llm_chain_t *c, double u)
{
    float     w;
    double    at, sum, *block_sum;
    int32_t   last;
    uint32_t  b, last_block, i, end;

    block_sum = c->scratch->block_sum;
    at = u * c->scratch->pass->sum_exp(c->row, c->n, c->max, c->scale,
                                       block_sum);
    sum = 0;
    last_block = 0;

    for (b = 0; b < llm_row_blocks(c->n); b++) {
        if (block_sum[b] > 0) {
            last_block = b;

            if (sum + block_sum[b] > at) {
                break;
            }

            sum += block_sum[b];
        }
    }

    i = last_block * LLM_ROW_BLOCK;
    end = llm_min(i + LLM_ROW_BLOCK, c->n);
    last = -1;

    for ( /* void */ ; i < end; i++) {
        w = llm_row_exp((c->row[i] - c->max) * c->scale);

        if (w > 0) {
            last = (int32_t) i;
            sum += w;

            if (sum > at) {
                break;
            }
        }
    }

    return last;
}


int32_t
llm_chain_draw(llm_chain_t *c, double u)
{
    llm_chain_run(c, 1);

    if (c->left == LLM_LEFT_ALL) {
        return llm_chain_draw_all(c, u);
    }

    if (!c->weighed) {
        (void) llm_chain_weigh(c);
    }

    return llm_pick_draw(c->scratch, c->count, c->row, c->max, c->scale, u);
}
