/*
 * The operations on rows that dense decoders have beside the plain ones, each
 * with a name: the same cases for the CPU (ops_dense.c) and for the CUDA
 * backend (emu_dense.c).
 */

#ifndef LLM_TEST_OPS_ROWS_H
#define LLM_TEST_OPS_ROWS_H

#include "t/unit/ops.h"

#define ROWS   37
#define COLS   90                       /* no multiple of a vector */
#define GROUP  30

/* what one operation does to the buffers; y begins as the second of them */
typedef struct {
    const char        *name;
    llm_norm_t         norm;            /* eps 0: none */
    int                weights;         /* [GROUP] or [COLS] */
    int                bias;
    llm_act_fn_t       fn;
    int                acts;
    float              scale;
    int                add;
    float              cap;
    int                pos;
    int                vec;
    int                given;           /* 1: input(), 2: added */
    uint32_t           first;           /* column */
    uint32_t           width;           /* of a piece, 0: columns() */
} row_case_t;

static const row_case_t  row_cases[] = {
    { .name = "RMS norm", .norm = { .eps = 1e-6f }, .weights = COLS },
    { .name = "RMS norm without weights", .norm = { .eps = 1e-6f } },
    { .name = "RMS norm of groups",
      .norm = { .eps = 1e-6f, .group = GROUP }, .weights = GROUP },
    { .name = "RMS norm of groups with weights of the row",
      .norm = { .eps = 1e-6f, .group = GROUP }, .weights = COLS },
    { .name = "RMS norm, added", .norm = { .eps = 1e-6f, .add = 1 },
      .weights = COLS },
    { .name = "LayerNorm", .norm = { .kind = LLM_NORM_LAYER, .eps = 1e-5f },
      .weights = COLS },
    { .name = "LayerNorm with a bias",
      .norm = { .kind = LLM_NORM_LAYER, .eps = 1e-5f }, .weights = COLS,
      .bias = 1 },
    { .name = "LayerNorm of groups, added",
      .norm = { .kind = LLM_NORM_LAYER, .eps = 1e-5f, .group = GROUP,
                .add = 1 }, .bias = 1 },
    { .name = "silu", .acts = 1, .fn = { .kind = LLM_GLU_SILU } },
    { .name = "gelu", .acts = 1, .fn = { .kind = LLM_GLU_GELU } },
    { .name = "gelu by erf", .acts = 1, .fn = { .kind = LLM_GLU_GELU_ERF } },
    { .name = "relu squared", .acts = 1, .fn = { .kind = LLM_GLU_RELU2 } },
    { .name = "xIELU", .acts = 1,
      .fn = { .kind = LLM_GLU_XIELU, .xielu = { 0.8f, 1.3f, 0.5f,
                                                -1e-6f } } },
    { .name = "sigmoid", .acts = 1, .fn = { .kind = LLM_GLU_SIGMOID } },
    { .name = "linear", .acts = 1, .fn = { .kind = LLM_GLU_LINEAR } },
    { .name = "bounds", .acts = 1,
      .fn = { .kind = LLM_GLU_BOUND, .bound = 0.8f, .least = -0.6f } },
    { .name = "quick", .acts = 1, .fn = { .kind = LLM_GLU_QUICK } },
    { .name = "scale", .scale = 0.3f },
    { .name = "scale, added", .scale = -1.7f, .add = 1 },
    { .name = "soft cap", .cap = 2.5f },
    { .name = "embedding of positions", .pos = 1 },
    { .name = "a vector, added", .vec = 1 },
    { .name = "given rows", .given = 1 },
    { .name = "given rows, added", .given = 2 },
    { .name = "columns of given rows, added", .given = 2, .first = 17 },
    { .name = "columns", .first = 17 },
    { .name = "pieces", .first = 3, .width = GROUP / 5 }
};


static inline void
row_case(llm_exec_t *exec, const row_case_t *c, llm_act_t *x, llm_act_t *y,
    const llm_vec_t *w, const llm_vec_t *bias, const llm_weight_t *e)
{
    llm_norm_t        norm;
    const llm_ops_t  *o = exec->ops;

    if (c->norm.eps > 0) {
        norm = c->norm;
        norm.w = c->weights ? w : NULL;
        norm.bias = c->bias ? bias : NULL;
        o->norm(exec, LLM_ROWS_ALL, x, &norm, y);

    } else if (c->acts) {
        o->act(exec, LLM_ROWS_ALL, &c->fn, x, y);

    } else if (c->scale != 0) {
        o->scale(exec, LLM_ROWS_ALL, c->scale, x, c->add, y);

    } else if (c->cap > 0) {
        o->softcap(exec, LLM_ROWS_ALL, c->cap, y);

    } else if (c->pos) {
        o->embed_pos(exec, e, y);

    } else if (c->given) {
        o->input(exec, LLM_ROWS_ALL, c->first, c->given == 2, y);

    } else if (c->vec) {
        o->add_vec(exec, LLM_ROWS_ALL, w, y);

    } else {
        o->act_cols(y, GROUP);

        if (c->width) {
            o->pieces(exec, LLM_ROWS_ALL, x, c->first, c->width, c->width + 1,
                      y);

        } else {
            o->columns(exec, LLM_ROWS_ALL, x, c->first, y);
        }
    }
}


/* `step` rows at a time; a device that captures steps must be a new one */

static inline void
run_rows(llm_exec_t *exec, const row_case_t *c, const float *x, const float *y,
    const float *w, uint32_t step, float *out)
{
    uint32_t          i, k, n, cols, pos[ROWS], given[ROWS];
    llm_act_t        *ax, *ay;
    llm_vec_t        *v, *bias;
    llm_batch_t       b;
    llm_weight_t     *e;
    const llm_ops_t  *o = exec->ops;

    v = o->vec_create(exec, w, c->weights ? (uint32_t) c->weights : COLS,
                      NULL);
    bias = o->vec_create(exec, w + COLS, COLS, NULL);
    e = o->weight_create(exec, LLM_TYPE_F32, ROWS, COLS, w, LLM_WEIGHT_EMBED,
                         NULL);
    ax = ops_act(exec, NULL, ROWS, COLS);
    ay = ops_act(exec, NULL, ROWS, COLS);
    cols = c->first ? GROUP : COLS;

    for (i = 0; i < ROWS; i += n) {
        n = llm_min(step, ROWS - i);
        o->act_cols(ay, c->given ? cols : COLS);
        o->write(exec, ax, 0, n, x + i * COLS);
        o->write(exec, ay, 0, n, y + i * (c->given ? cols : COLS));

        /* every third row is not given, the others in falling order */

        for (k = 0; k < n; k++) {
            pos[k] = i + k;
            given[k] = (i + k) % 3 == 1 ? LLM_NOT_GIVEN : ROWS - 1 - i - k;
        }

        ops_rows_batch(&b, n);
        b.pos = pos;

        if (c->given) {
            b.given = given;
            b.rows = w;
            b.n_given = ROWS;
            b.given_cols = COLS;
        }

        if (o->begin(exec, &b, NULL) != LLM_REPLAYED) {
            row_case(exec, c, ax, ay, v, bias, e);
        }

        ok(o->end(exec, NULL) == LLM_OK, "a step of %u rows", n);
        ops_read(exec, ay, out + i * cols, n, cols);
    }

    o->act_free(exec, ax);
    o->act_free(exec, ay);
    o->vec_free(exec, v);
    o->vec_free(exec, bias);
    o->weight_free(exec, e);
}


/* x, y and w of [ROWS][COLS] */

static inline void
rows_fill(float *x, float *y, float *w)
{
    ops_fill(x, ROWS * COLS, 1);
    ops_fill(y, ROWS * COLS, 2);
    ops_fill(w, ROWS * COLS, 3);
    x[0] = 100;
    x[ROWS * COLS - 1] = -100;
    x[7] = 0;
}

#endif /* LLM_TEST_OPS_ROWS_H */
