/*
 * The mixture as a whole (engine/model/block_experts.c): router, experts and
 * the shared network, against sums in float64, on the reference and on every
 * instruction set.
 */

#include "t/unit/ops.h"
#include "engine/model/block_experts.h"

#include <string.h>

enum { ROWS = 9, EMBD = 24, FF = 16, SHARED = 20, EXPERTS = 6, USED = 2 };

/* what there is beside the router and the experts */
typedef struct {
    const char  *name;
    int          shared;
    int          gated;                 /* the shared network has a switch */
    int          bias;                  /* of the router */
    int          apart;                 /* the router reads rows of its own */
} block_case_t;

static const block_case_t  cases[] = {
    { "experts alone", 0, 0, 0, 0 },
    { "a biased router", 0, 0, 1, 0 },
    { "shared experts", 1, 0, 0, 0 },
    { "shared experts with a switch", 1, 1, 0, 0 },
    { "a router of other rows", 1, 0, 1, 1 },
};

static float  router[EXPERTS * EMBD], router_bias[EXPERTS];
static float  gate[EXPERTS * FF * EMBD], up[EXPERTS * FF * EMBD];
static float  down[EXPERTS * EMBD * FF];
static float  shared_gate[SHARED * EMBD], shared_up[SHARED * EMBD];
static float  shared_down[EMBD * SHARED], shared_switch[EMBD];
static float  rows_x[ROWS * EMBD], rows_r[ROWS * EMBD];


static double
dot(const float *w, const double *x, uint32_t n)
{
    double    sum;
    uint32_t  i;

    for (i = 0, sum = 0; i < n; i++) {
        sum += w[i] * x[i];
    }

    return sum;
}


/* y += f * the network's result */

static void
naive_network(const float *g, const float *u, const float *d, uint32_t n_ff,
    const double *x, double f, double *y)
{
    double    h[SHARED], v;
    uint32_t  i;

    for (i = 0; i < n_ff; i++) {
        v = dot(g + i * EMBD, x, EMBD);
        h[i] = v / (1 + exp(-v)) * dot(u + i * EMBD, x, EMBD);
    }

    for (i = 0; i < EMBD; i++) {
        y[i] += f * dot(d + i * n_ff, h, n_ff);
    }
}


static void
naive_row(const block_case_t *c, const float *x, const float *r, double *y)
{
    double    in[EMBD], rin[EMBD], p[EXPERTS], weight[EXPERTS], sum, f;
    uint32_t  i, k, rank;

    for (i = 0; i < EMBD; i++) {
        in[i] = x[i];
        rin[i] = c->apart ? r[i] : x[i];
        y[i] = 0;
    }

    for (i = 0; i < EXPERTS; i++) {
        p[i] = exp(dot(router + i * EMBD, rin, EMBD)
                   + (c->bias ? router_bias[i] : 0));
    }

    /* the two largest of them */

    for (i = 0, sum = 0; i < EXPERTS; i++) {
        for (k = 0, rank = 0; k < EXPERTS; k++) {
            rank += p[k] > p[i];
        }

        weight[i] = rank < USED ? p[i] : 0;
        sum += weight[i];
    }

    for (i = 0; i < EXPERTS; i++) {
        if (weight[i] > 0) {
            naive_network(gate + i * FF * EMBD, up + i * FF * EMBD,
                          down + i * EMBD * FF, FF, in, weight[i] / sum, y);
        }
    }

    if (c->shared) {
        f = c->gated ? 1 / (1 + exp(-dot(shared_switch, in, EMBD))) : 1;
        naive_network(shared_gate, shared_up, shared_down, SHARED, in, f, y);
    }
}


static llm_weight_t *
matrix(llm_exec_t *exec, const float *w, uint32_t n_out, uint32_t n_in)
{
    return exec->ops->weight_create(exec, LLM_TYPE_F32, n_out, n_in, w,
                                    LLM_WEIGHT_LINEAR | LLM_WEIGHT_HEAD,
                                    NULL);
}


static llm_weight_t *
experts(llm_exec_t *exec, const float *w, uint32_t n_out, uint32_t n_in)
{
    return exec->ops->experts_create(exec, LLM_TYPE_F32, EXPERTS, n_out, n_in,
                                     w, sizeof(float) * n_out * n_in, NULL);
}


static void
run(llm_exec_t *exec, const block_case_t *c, float *y)
{
    size_t              i;
    llm_act_t          *x, *r, *out;
    llm_vec_t          *bias;
    llm_batch_t         b;
    llm_mixture_t       m;
    llm_mixture_acts_t  a;
    const llm_ops_t    *o = exec->ops;
    llm_choice_opts_t   opts = { ROWS, EXPERTS, USED, EMBD, FF };

    llm_weight_t  *w[] = {
        matrix(exec, router, EXPERTS, EMBD), experts(exec, gate, FF, EMBD),
        experts(exec, up, FF, EMBD), experts(exec, down, EMBD, FF),
        matrix(exec, shared_gate, SHARED, EMBD),
        matrix(exec, shared_up, SHARED, EMBD),
        matrix(exec, shared_down, EMBD, SHARED),
        matrix(exec, shared_switch, 1, EMBD)
    };

    bias = o->vec_create(exec, router_bias, EXPERTS, NULL);
    x = ops_act(exec, rows_x, ROWS, EMBD);
    r = ops_act(exec, rows_r, ROWS, EMBD);
    out = ops_act(exec, rows_r, ROWS, EMBD);

    a.choice = o->choice_create(exec, &opts, NULL);
    a.logits = ops_act(exec, NULL, ROWS, EXPERTS);
    a.gate = ops_act(exec, NULL, ROWS, SHARED);
    a.up = ops_act(exec, NULL, ROWS, SHARED);
    a.glu = ops_act(exec, NULL, ROWS, SHARED);
    a.open = ops_act(exec, NULL, ROWS, 1);

    memset(&m, 0, sizeof(m));
    m.router = w[0];
    m.router_bias = c->bias ? bias : NULL;
    m.route = (llm_route_t) { .score = LLM_ROUTE_SOFTMAX,
                              .n_experts = EXPERTS, .n_used = USED,
                              .normalize = 1, .scale = 1 };
    m.experts = (llm_experts_t) { .gate = w[1], .up = w[2], .down = w[3],
                                  .act = LLM_GLU_SILU };

    if (c->shared) {
        m.shared_gate = w[4];
        m.shared_up = w[5];
        m.shared_down = w[6];
        m.shared_switch = c->gated ? w[7] : NULL;
    }

    ops_begin_rows(exec, &b, ROWS);
    llm_mixture_forward(o, exec, LLM_ROWS_ALL, &m, &a, c->apart ? r : x, x,
                        out);
    o->end(exec, NULL);
    ops_read(exec, out, y, ROWS, EMBD);

    for (i = 0; i < llm_nelems(w); i++) {
        o->weight_free(exec, w[i]);
    }

    o->vec_free(exec, bias);
    o->choice_free(exec, a.choice);
    o->act_free(exec, x);
    o->act_free(exec, r);
    o->act_free(exec, out);
    o->act_free(exec, a.logits);
    o->act_free(exec, a.gate);
    o->act_free(exec, a.up);
    o->act_free(exec, a.glu);
    o->act_free(exec, a.open);
}


static void
test_device(const llm_ops_t *ops, const char *isa)
{
    float        y[ROWS * EMBD], want[ROWS * EMBD];
    double       row[EMBD], d;
    size_t       i;
    uint32_t     r, k;
    llm_exec_t  *exec;

    exec = ops_open(ops, isa, 1);

    if (exec == NULL) {
        skip(isa);
        return;
    }

    for (i = 0; i < llm_nelems(cases); i++) {
        run(exec, &cases[i], y);

        for (r = 0; r < ROWS; r++) {
            naive_row(&cases[i], rows_x + r * EMBD, rows_r + r * EMBD, row);

            for (k = 0; k < EMBD; k++) {
                want[r * EMBD + k] = (float) row[k];
            }
        }

        d = ops_distance(y, want, ROWS * EMBD);
        ok(d < 1e-6, "%s: %s: %.2g", isa ? isa : ops->name, cases[i].name,
           d);
    }

    exec->ops->close(exec);
}


int
main(void)
{
    size_t    i;
    uint64_t  seed;

    struct {
        float   *p;
        size_t   n;
    } all[] = {
        { router, llm_nelems(router) },
        { router_bias, llm_nelems(router_bias) },
        { gate, llm_nelems(gate) },
        { up, llm_nelems(up) },
        { down, llm_nelems(down) },
        { shared_gate, llm_nelems(shared_gate) },
        { shared_up, llm_nelems(shared_up) },
        { shared_down, llm_nelems(shared_down) },
        { shared_switch, llm_nelems(shared_switch) },
        { rows_x, llm_nelems(rows_x) },
        { rows_r, llm_nelems(rows_r) },
    };

    for (i = 0, seed = 1; i < llm_nelems(all); i++, seed += 1000) {
        ops_fill(all[i].p, all[i].n, seed);
    }

    test_device(&llm_ops_reference, NULL);

    for (i = 0; i < llm_nelems(ops_isas); i++) {
        test_device(&llm_ops_cpu, ops_isas[i]);
    }

    return done_testing();
}
