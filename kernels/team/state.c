/*
 * Recurrent layers: each device has some heads with their matrices, and all of
 * a convolution, which costs little: its channels are q and k as well as v, and
 * a head's v is seldom where its q and k are.
 *
 * A team's states own those of the devices.  A slot's copy on a device is
 * ordered among that device's steps, so that no device waits for another.
 */

#include "kernels/team/team_internal.h"

typedef struct {
    llm_state_t        *part[LLM_MAX_DEVICES];
    llm_state_layer_t  *layers;         /* a device's */
} llm_team_state_t;


static llm_state_layer_t
llm_team_state_layer(const llm_team_t *t, const llm_state_layer_t *all)
{
    llm_state_layer_t  l = *all;

    assert(l.n_heads % t->n == 0);
    l.n_heads /= t->n;

    return l;
}


/* bytes of a slot on all devices together */

size_t
llm_team_state_size(llm_exec_t *exec, const llm_state_opts_t *opts)
{
    size_t             size, sum;
    uint32_t           i;
    llm_team_t        *t = (llm_team_t *) exec;
    llm_state_opts_t   o = *opts;
    llm_state_layer_t  l;

    o.n_layers = 1;
    o.layers = &l;

    for (i = 0, sum = 0; i < opts->n_layers; i++) {
        l = llm_team_state_layer(t, &opts->layers[i]);
        size = t->ops->state_size(t->of[0], &o);

        if (llm_mul_overflow(size, (size_t) t->n, &size)
            || llm_add_overflow(sum, size, &sum))
        {
            return SIZE_MAX;
        }
    }

    return sum;
}


llm_state_t *
llm_team_state_create(llm_exec_t *exec, const llm_state_opts_t *opts,
    llm_err_t *err)
{
    uint32_t           i;
    llm_team_t        *t = (llm_team_t *) exec;
    llm_state_opts_t   o = *opts;
    llm_team_state_t  *st;

    st = calloc(1, sizeof(llm_team_state_t));

    if (st) {
        st->layers = calloc(llm_max(o.n_layers, 1u),
                            sizeof(llm_state_layer_t));
    }

    if (st == NULL || st->layers == NULL) {
        free(st);
        (void) llm_fail(err, "no memory for recurrent states");
        return NULL;
    }

    for (i = 0; i < o.n_layers; i++) {
        st->layers[i] = llm_team_state_layer(t, &opts->layers[i]);
    }

    o.layers = st->layers;

    for (i = 0; i < t->n; i++) {
        st->part[i] = t->ops->state_create(llm_team_device(t, i), &o, err);

        if (st->part[i] == NULL) {
            llm_team_state_free(exec, (llm_state_t *) st);
            return NULL;
        }
    }

    return (llm_state_t *) st;
}


void
llm_team_state_free(llm_exec_t *exec, llm_state_t *state)
{
    llm_team_t        *t = (llm_team_t *) exec;
    llm_team_state_t  *st = (llm_team_state_t *) state;

    if (st) {
        llm_team_drop(t, state_free, st->part);
        free(st->layers);
        free(st);
    }
}


void
llm_team_state_copy(llm_exec_t *exec, llm_state_t *state, uint32_t src,
    uint32_t dst)
{
    uint32_t           i;
    llm_team_t        *t = (llm_team_t *) exec;
    llm_team_state_t  *st = (llm_team_state_t *) state;

    for (i = 0; i < t->n; i++) {
        t->ops->state_copy(llm_team_device(t, i), st->part[i], src, dst);
    }
}


void
llm_team_conv(llm_exec_t *exec, const llm_conv_t *c, const llm_act_t *in,
    llm_state_t *state, llm_act_t *out)
{
    uint32_t               i;
    llm_conv_t             of = *c;
    llm_team_t            *t = (llm_team_t *) exec;
    llm_team_act_t        *x = (llm_team_act_t *) in;
    llm_team_act_t        *y = (llm_team_act_t *) out;
    llm_team_state_t      *st = (llm_team_state_t *) state;
    const llm_team_vec_t  *w = (const llm_team_vec_t *) c->w;
    const llm_team_vec_t  *bias = (const llm_team_vec_t *) c->bias;

    llm_team_need(t, LLM_ROWS_ALL, x, LLM_TEAM_WHOLE);
    llm_team_writes(t, y, LLM_TEAM_WHOLE);

    for (i = 0; i < t->n; i++) {
        of.w = llm_team_at(w, LLM_TEAM_WHOLE, i);
        of.bias = llm_team_at(bias, LLM_TEAM_WHOLE, i);
        t->ops->conv(llm_team_device(t, i), &of, x->whole[i], st->part[i],
                     y->whole[i]);
    }
}


void
llm_team_delta(llm_exec_t *exec, const llm_delta_t *d, const llm_act_t *in,
    const llm_act_t *alphas, const llm_act_t *betas, llm_state_t *state,
    llm_act_t *out)
{
    uint32_t               i;
    llm_team_t            *t = (llm_team_t *) exec;
    llm_delta_t            of = *d;
    llm_team_act_t        *x = (llm_team_act_t *) in;
    llm_team_act_t        *y = (llm_team_act_t *) out;
    llm_team_act_t        *alpha = (llm_team_act_t *) alphas;
    llm_team_act_t        *beta = (llm_team_act_t *) betas;
    llm_team_state_t      *st = (llm_team_state_t *) state;
    const llm_team_vec_t  *a = (const llm_team_vec_t *) d->a;
    const llm_team_vec_t  *dt = (const llm_team_vec_t *) d->dt;

    llm_team_need(t, LLM_ROWS_ALL, x, LLM_TEAM_WHOLE);
    llm_team_need(t, LLM_ROWS_ALL, alpha, LLM_TEAM_PART);
    llm_team_need(t, LLM_ROWS_ALL, beta, LLM_TEAM_PART);
    llm_team_writes(t, y, LLM_TEAM_PART);

    for (i = 0; i < t->n; i++) {
        of.a = llm_team_at(a, LLM_TEAM_PART, i);
        of.dt = llm_team_at(dt, LLM_TEAM_PART, i);
        t->ops->delta_part(llm_team_device(t, i), &of, i, t->n, x->whole[i],
                           alpha->part[i], beta->part[i], st->part[i],
                           y->part[i]);
    }
}


void
llm_team_scan(llm_exec_t *exec, const llm_scan_t *s, const llm_act_t *in,
    const llm_act_t *steps, llm_state_t *state, llm_act_t *out)
{
    uint32_t               i;
    llm_scan_t             of = *s;
    llm_team_t            *t = (llm_team_t *) exec;
    llm_team_act_t        *x = (llm_team_act_t *) in;
    llm_team_act_t        *y = (llm_team_act_t *) out;
    llm_team_act_t        *dt = (llm_team_act_t *) steps;
    llm_team_state_t      *st = (llm_team_state_t *) state;
    const llm_team_vec_t  *a = (const llm_team_vec_t *) s->a;
    const llm_team_vec_t  *d = (const llm_team_vec_t *) s->d;
    const llm_team_vec_t  *bias = (const llm_team_vec_t *) s->dt_bias;

    llm_team_need(t, LLM_ROWS_ALL, x, LLM_TEAM_WHOLE);
    llm_team_need(t, LLM_ROWS_ALL, dt, LLM_TEAM_PART);
    llm_team_writes(t, y, LLM_TEAM_PART);

    for (i = 0; i < t->n; i++) {
        of.a = llm_team_at(a, LLM_TEAM_PART, i);
        of.d = llm_team_at(d, LLM_TEAM_PART, i);
        of.dt_bias = llm_team_at(bias, LLM_TEAM_PART, i);
        t->ops->scan_part(llm_team_device(t, i), &of, i, t->n, x->whole[i],
                          dt->part[i], st->part[i], y->part[i]);
    }
}
