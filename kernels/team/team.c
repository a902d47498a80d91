/*
 * Teams: opening and closing one, its steps, the table of its operations; see
 * team.h.
 */

#include "kernels/team/team_internal.h"

static const llm_ops_t  llm_ops_team;


int
llm_team_create(llm_exec_t *const *execs, uint32_t n, llm_exec_t **team,
    llm_err_t *err)
{
    llm_team_t       *t;
    const llm_ops_t  *ops = execs[0]->ops;

    assert(n > 1 && n <= LLM_MAX_DEVICES);

    if (ops->join == NULL || (ops->can & llm_ops_team.can) != llm_ops_team.can)
    {
        return llm_fail(err, "split=rows: the device %s cannot share a layer "
                        "with others", ops->name);
    }

    t = calloc(1, sizeof(llm_team_t));

    if (t == NULL) {
        return llm_fail(err, "no memory for several devices");
    }

    t->exec.ops = &llm_ops_team;
    t->ops = ops;
    t->n = n;
    memcpy(t->of, execs, n * sizeof(llm_exec_t *));

    if (ops->join(t->of, n, err) != LLM_OK) {
        free(t);
        return LLM_ERROR;
    }

    *team = &t->exec;

    return LLM_OK;
}


/* the devices are the caller's */

void
llm_team_close(llm_exec_t *exec)
{
    free(exec);
}


void
llm_team_describe(llm_exec_t *exec, char *buf, size_t size)
{
    llm_team_t  *t = (llm_team_t *) exec;

    t->ops->describe(t->of[0], buf, size);
}


/* ---- steps: those of the first device are the team's ---- */

int
llm_team_begin(llm_exec_t *exec, const llm_batch_t *b, llm_err_t *err)
{
    uint32_t     i;
    llm_team_t  *t = (llm_team_t *) exec;

    for (i = 1; b->follows && i < t->n; i++) {
        t->ops->receive_drawn(llm_team_device(t, i), t->of[0]);
    }

    t->n_collected++;                   /* all devices wait for all steps before
                                           this one */

    return t->ops->begin(t->of[0], b, err);
}


int
llm_team_submit(llm_exec_t *exec)
{
    llm_team_t  *t = (llm_team_t *) exec;

    if (t->logits && t->logits->forms == LLM_TEAM_PART) {
        llm_team_need(t, LLM_ROWS_OUT, t->logits, LLM_TEAM_FIRST);
    }

    return t->ops->submit(t->of[0]);
}


int
llm_team_end(llm_exec_t *exec, llm_err_t *err)
{
    llm_team_t  *t = (llm_team_t *) exec;

    return t->ops->end(t->of[0], err);
}


const float *
llm_team_map(llm_exec_t *exec, const llm_act_t *act, uint32_t row, uint32_t n)
{
    llm_team_t            *t = (llm_team_t *) exec;
    const llm_team_act_t  *a = (const llm_team_act_t *) act;

    return t->ops->map(llm_team_device(t, 0), a->whole[0], row, n);
}


void
llm_team_write(llm_exec_t *exec, llm_act_t *act, uint32_t row, uint32_t n,
    const float *src)
{
    llm_team_t      *t = (llm_team_t *) exec;
    llm_team_act_t  *a = (llm_team_act_t *) act;

    a->forms = LLM_TEAM_FIRST;
    t->ops->write(llm_team_device(t, 0), a->whole[0], row, n, src);
}


void
llm_team_drawn(llm_exec_t *exec, uint32_t i, llm_drawn_t *out)
{
    llm_team_t  *t = (llm_team_t *) exec;

    t->ops->drawn(t->of[0], i, out);
}


/* the devices are opened one by one, so there is no open() */

static const llm_ops_t  llm_ops_team = {
    .name = "team",
    .can = LLM_CAN_NORMS | LLM_CAN_ACTS | LLM_CAN_WINDOWS | LLM_CAN_SCORES
           | LLM_CAN_ROPE | LLM_CAN_KV | LLM_CAN_SCALE | LLM_CAN_EMBED
           | LLM_CAN_EXPERTS | LLM_CAN_STATE | LLM_CAN_LATENT | LLM_CAN_FACTORS
           | LLM_CAN_ENCODE | LLM_CAN_MEDIA,

    .close = llm_team_close,
    .describe = llm_team_describe,

    .memory_free = llm_team_memory_free,
    .weight_create = llm_team_weight_create,
    .weight_free = llm_team_weight_free,
    .weight_scale = llm_team_weight_scale,
    .vec_create = llm_team_vec_create,
    .vec_free = llm_team_vec_free,
    .act_create = llm_team_act_create,
    .act_free = llm_team_act_free,
    .act_cols = llm_team_act_cols,
    .kv_create = llm_team_kv_create,
    .kv_free = llm_team_kv_free,
    .kv_page_size = llm_team_kv_page_size,
    .kv_copy = llm_team_kv_copy,

    .begin = llm_team_begin,
    .submit = llm_team_submit,
    .end = llm_team_end,
    .map = llm_team_map,
    .write = llm_team_write,
    .drawn = llm_team_drawn,

    .embed = llm_team_embed,
    .input = llm_team_input,
    .embed_pos = llm_team_embed_pos,
    .linear = llm_team_linear,
    .norm = llm_team_norm,
    .glu = llm_team_glu,
    .act = llm_team_act,
    .scale = llm_team_scale,
    .softcap = llm_team_softcap,
    .add_vec = llm_team_add_vec,
    .gather = llm_team_gather,
    .columns = llm_team_columns,
    .pieces = llm_team_pieces,

    .rope_kv = llm_team_rope_kv,
    .attention = llm_team_attention,
    .heads_create = llm_team_heads_create,
    .linear_heads = llm_team_linear_heads,

    .experts_create = llm_team_experts_create,
    .choice_create = llm_team_choice_create,
    .choice_free = llm_team_choice_free,
    .route = llm_team_route,
    .experts = llm_team_experts,
    .gate_rows = llm_team_gate_rows,

    .state_create = llm_team_state_create,
    .state_free = llm_team_state_free,
    .state_size = llm_team_state_size,
    .state_copy = llm_team_state_copy,
    .conv = llm_team_conv,
    .delta = llm_team_delta,
    .scan = llm_team_scan
};
