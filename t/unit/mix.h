/*
 * Random mixtures of experts and rows that go through them, for the tests of
 * the CPU's (experts.c) and of the CUDA backend's (emu_experts.c).
 */

#ifndef LLM_TEST_MIX_H
#define LLM_TEST_MIX_H

#include "t/unit/ops.h"
#include "t/unit/route_naive.h"

#include <string.h>

/* a random matrix of GGUF rows: offsets of binary16 scales in a block */
typedef struct {
    uint32_t      type;
    uint32_t      n_scales;
    uint32_t      scales[2];
} mix_type_t;

static const mix_type_t  types[] = {
    { LLM_TYPE_F32,  0, { 0, 0 } },
    { LLM_TYPE_F16,  0, { 0, 0 } },
    { LLM_TYPE_BF16, 0, { 0, 0 } },
    { LLM_TYPE_Q8_0, 1, { 0, 0 } },
    { LLM_TYPE_Q4_0, 1, { 0, 0 } },
    { LLM_TYPE_Q4_K, 2, { 0, 2 } },
    { LLM_TYPE_Q6_K, 1, { 208, 0 } },
};

enum { F32, F16, BF16, Q8_0, Q4_0, Q4_K, Q6_K };

/* a mixture, and how its rows choose */
typedef struct {
    const char   *name;
    uint32_t      n_experts;
    uint32_t      n_used;
    uint32_t      n_in;
    uint32_t      n_ff;
    uint32_t      gate;                 /* of types[] */
    uint32_t      up;
    uint32_t      down;
    llm_glu_t     act;
    int           ungated;
    int           biases;
    int           fused;                /* gate and up in one tensor */
    int           weigh_input;
    int           same;                 /* all rows choose the same */
    int           fresh;                /* y = instead of y += */
} mix_case_t;

static const mix_case_t  cases[] __attribute__((unused)) = {
    { "float32", 8, 2, 40, 24, F32, F32, F32,
      LLM_GLU_SILU, 0, 0, 0, 0, 0, 0 },
    { "float16 and bfloat16", 5, 3, 64, 50, F16, BF16, F16,
      LLM_GLU_GELU, 0, 1, 0, 0, 0, 0 },
    { "bfloat16", 16, 4, 96, 64, BF16, BF16, BF16,
      LLM_GLU_SILU, 0, 0, 1, 0, 0, 0 },
    { "like gpt-oss", 12, 4, 96, 160, Q4_0, Q4_0, Q4_0,
      LLM_GLU_CLAMPED, 0, 1, 0, 0, 0, 0 },
    { "like qwen3moe", 32, 8, 256, 256, Q4_K, Q4_K, Q6_K,
      LLM_GLU_SILU, 0, 0, 0, 0, 0, 0 },
    { "three types", 6, 2, 256, 512, Q6_K, Q8_0, Q4_K,
      LLM_GLU_SILU, 0, 0, 0, 0, 0, 0 },
    { "integers and floats", 6, 2, 64, 96, Q8_0, F16, Q4_0,
      LLM_GLU_SILU, 0, 1, 0, 0, 0, 0 },
    { "fused", 10, 3, 64, 72, Q8_0, Q8_0, F16,
      LLM_GLU_SILU, 0, 1, 1, 0, 0, 0 },
    { "ungated", 9, 3, 64, 96, Q8_0, Q8_0, Q8_0,
      LLM_GLU_RELU2, 1, 1, 0, 0, 0, 0 },
    { "weighs its input", 7, 1, 64, 96, Q8_0, Q8_0, Q8_0,
      LLM_GLU_SILU, 0, 0, 0, 1, 0, 0 },
    { "one for all rows", 40, 2, 64, 64, Q4_0, Q4_0, Q8_0,
      LLM_GLU_SILU, 0, 0, 0, 0, 1, 0 },
    { "all experts", 4, 4, 64, 64, Q8_0, Q8_0, Q8_0,
      LLM_GLU_SILU, 0, 0, 0, 0, 0, 1 },
    { "one expert", 1, 1, 32, 32, Q8_0, Q8_0, Q8_0,
      LLM_GLU_SILU, 0, 0, 0, 0, 0, 0 },
    { "one expert in bfloat16", 1, 1, 480, 96, BF16, BF16, BF16,
      LLM_GLU_SILU, 0, 0, 0, 0, 0, 0 },
};

/* a case with its numbers; up is behind gate if they are fused */
typedef struct {
    const mix_case_t  *c;
    uint32_t           type[3];         /* of gate, up and down */
    uint8_t           *gate;
    uint8_t           *up;
    uint8_t           *down;
    size_t             stride[3];       /* of gate, up and down */
    float             *gate_bias;
    float             *up_bias;
    float             *down_bias;
    const float       *scales[3];       /* factors of gate, up and down, or
                                           NULL; the caller's */
    llm_route_t        route;
} mix_t;


static inline uint8_t *
make_matrix(const mix_type_t *t, uint32_t n_out, uint32_t n_in,
    uint64_t seed)
{
    float      f, scale;
    size_t     i, size;
    uint8_t   *m;
    uint16_t   h;
    uint32_t   k;

    size = llm_type_row_size(t->type, n_in) * n_out;
    m = ops_alloc(size);
    scale = 1 / sqrtf((float) n_in);

    if (t->n_scales == 0) {
        for (i = 0; i < (size_t) n_out * n_in; i++) {
            f = scale * ops_normal(&seed);
            h = t->type == LLM_TYPE_F16 ? llm_f32_to_f16(f)
                                        : llm_f32_to_bf16(f);

            if (t->type == LLM_TYPE_F32) {
                memcpy(m + i * 4, &f, 4);

            } else {
                memcpy(m + i * 2, &h, 2);
            }
        }

        return m;
    }

    for (i = 0; i < size; i++) {
        m[i] = (uint8_t) ops_random(&seed);
    }

    for (i = 0; i < size; i += llm_type_block_size(t->type)) {
        for (k = 0; k < t->n_scales; k++) {
            h = llm_f32_to_f16(0.02f * scale * ops_normal(&seed));
            memcpy(m + i + t->scales[k], &h, 2);
        }
    }

    return m;
}


static inline void
make_mix(mix_t *m, const mix_case_t *c)
{
    size_t  i, n, gate, up, down;

    memset(m, 0, sizeof(mix_t));
    m->c = c;
    m->type[0] = types[c->gate].type;
    m->type[1] = types[c->up].type;
    m->type[2] = types[c->down].type;

    gate = llm_type_row_size(types[c->gate].type, c->n_in) * c->n_ff;
    up = llm_type_row_size(types[c->up].type, c->n_in) * c->n_ff;
    down = llm_type_row_size(types[c->down].type, c->n_ff) * c->n_in;
    n = c->n_experts;

    if (c->fused) {
        m->gate = make_matrix(&types[c->gate], 2 * c->n_ff * c->n_experts,
                              c->n_in, 1);
        m->up = m->gate + gate;
        m->stride[0] = m->stride[1] = 2 * gate;

    } else {
        m->gate = make_matrix(&types[c->gate], c->n_ff * c->n_experts,
                              c->n_in, 1);
        m->up = make_matrix(&types[c->up], c->n_ff * c->n_experts, c->n_in,
                            2);
        m->stride[0] = gate;
        m->stride[1] = up;
    }

    m->down = make_matrix(&types[c->down], c->n_in * c->n_experts, c->n_ff,
                          3);
    m->stride[2] = down;

    if (c->biases) {
        m->gate_bias = ops_alloc(n * c->n_ff * sizeof(float));
        m->up_bias = ops_alloc(n * c->n_ff * sizeof(float));
        m->down_bias = ops_alloc(n * c->n_in * sizeof(float));
        ops_fill(m->gate_bias, n * c->n_ff, 4);
        ops_fill(m->up_bias, n * c->n_ff, 5);
        ops_fill(m->down_bias, n * c->n_in, 6);

        /* beyond where gpt-oss cuts them off */
        for (i = 0; i < n * c->n_ff; i++) {
            m->gate_bias[i] *= 5;
            m->up_bias[i] *= 5;
        }
    }

    m->route = (llm_route_t) { .score = LLM_ROUTE_SIGMOID,
                               .n_experts = c->n_experts,
                               .n_used = c->n_used,
                               .normalize = c->n_used > 1, .scale = 1.5f };
}


static inline void
free_mix(mix_t *m)
{
    free(m->gate);
    free(m->c->fused ? NULL : m->up);
    free(m->down);
    free(m->gate_bias);
    free(m->up_bias);
    free(m->down_bias);
}


/*
 * Rows of x, order[i] the i-th if given, `step` at a time; y [rows] is in the
 * order of x again and starts as 0.5, which is added to.  A device that
 * captures steps must be a new one.
 */

static inline void
run_mix(llm_exec_t *exec, const mix_t *m, llm_rows_t kind, const float *x,
    const float *logits, const uint32_t *order, uint32_t rows, uint32_t step,
    float *y)
{
    float              half[512];
    uint32_t           i, n, row, r;
    llm_act_t         *ax, *al, *ay;
    llm_err_t          err;
    llm_vec_t         *v[3];
    llm_batch_t        b;
    llm_choice_t      *choice;
    llm_weight_t      *w[3];
    llm_experts_t      e;
    const mix_case_t  *c = m->c;
    const llm_ops_t   *o = exec->ops;
    llm_choice_opts_t  opts = { OPS_MAX_ROWS, c->n_experts, c->n_used,
                                c->n_in, c->n_ff };

    w[0] = c->ungated ? NULL
           : o->experts_create(exec, m->type[0], c->n_experts,
                               c->n_ff, c->n_in, m->gate, m->stride[0],
                               &err);
    w[1] = o->experts_create(exec, m->type[1], c->n_experts, c->n_ff,
                             c->n_in, m->up, m->stride[1], &err);
    w[2] = o->experts_create(exec, m->type[2], c->n_experts,
                             c->n_in, c->n_ff, m->down, m->stride[2], &err);

    for (i = 0; i < 3; i++) {
        if (m->scales[i] && w[i]) {
            (void) o->weight_scale(exec, w[i], m->scales[i], &err);
        }
    }

    v[0] = v[1] = v[2] = NULL;

    if (c->biases) {
        n = c->n_experts;
        v[0] = o->vec_create(exec, m->gate_bias, n * c->n_ff, &err);
        v[1] = o->vec_create(exec, m->up_bias, n * c->n_ff, &err);
        v[2] = o->vec_create(exec, m->down_bias, n * c->n_in, &err);
    }

    choice = o->choice_create(exec, &opts, &err);
    ax = ops_act(exec, NULL, OPS_MAX_ROWS, c->n_in);
    al = ops_act(exec, NULL, OPS_MAX_ROWS, c->n_experts);
    ay = ops_act(exec, NULL, OPS_MAX_ROWS, c->n_in);

    e = (llm_experts_t) { w[0], w[1], w[2], v[0], v[1], v[2], c->act,
                          c->weigh_input, !c->fresh };

    for (i = 0; i < c->n_in; i++) {
        half[i] = 0.5f;
    }

    for (row = 0; row < rows; row += n) {
        n = llm_min(step, rows - row);

        for (i = 0; i < n; i++) {
            r = order ? order[row + i] : row + i;
            o->write(exec, ax, i, 1, x + (size_t) r * c->n_in);
            o->write(exec, al, i, 1, logits + (size_t) r * c->n_experts);
            o->write(exec, ay, i, 1, half);
        }

        ops_rows_batch(&b, n);

        if (o->begin(exec, &b, NULL) != LLM_REPLAYED) {
            o->route(exec, kind, &m->route, al, choice);
            o->experts(exec, kind, &e, ax, choice, ay);
        }

        o->end(exec, NULL);

        for (i = 0; i < n; i++) {
            r = order ? order[row + i] : row + i;
            memcpy(y + (size_t) r * c->n_in, o->map(exec, ay, i, 1),
                   c->n_in * sizeof(float));
        }
    }

    o->act_free(exec, ax);
    o->act_free(exec, al);
    o->act_free(exec, ay);
    o->choice_free(exec, choice);

    for (i = 0; i < 3; i++) {
        o->vec_free(exec, v[i]);
        o->weight_free(exec, w[i]);
    }
}


/* rows and logits of a case; 0.5 is what y starts as */

static inline void
make_rows(const mix_case_t *c, uint32_t rows, float *x, float *logits)
{
    uint32_t  i;

    ops_fill(x, (size_t) rows * c->n_in, 11);
    ops_fill(logits, (size_t) rows * c->n_experts, 12);

    for (i = 1; c->same && i < rows; i++) {
        memcpy(logits + (size_t) i * c->n_experts, logits,
               c->n_experts * sizeof(float));
    }
}


/* how far y is from what it should be, what it started as taken off */

static inline double
distance(const mix_case_t *c, float *y, float *want, size_t n)
{
    float   start;
    size_t  i;

    start = c->fresh ? 0 : 0.5f;

    for (i = 0; i < n; i++) {
        y[i] -= start;
        want[i] -= start;
    }

    return ops_distance(y, want, n);
}

#endif /* LLM_TEST_MIX_H */
