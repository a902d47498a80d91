/*
 * The operations of kernels.h in plain C: float32 values, sums in double,
 * one thread, weights de-quantised a row at a time, the KV cache in float32.
 *
 * Every other backend is checked against this one, and a port has to replace
 * only this code.  It is written to be simple and correct, not fast; a server
 * uses it by default only on CPUs for which llm_ops_cpu has no kernels.
 *
 * Invariant: a result row is computed from its own row, its own sequence and
 * the weights, in an order that depends neither on the batch nor on the pages.
 *
 * llm_ref_exec_t owns its scratch memory; weights point into the caller's file.
 */

#include "engine/base/machine.h"
#include "kernels/cpu/reference.h"
#include "kernels/cpu/states.h"

#include <stdio.h>


static int
llm_ref_no_memory(llm_err_t *err, const char *what)
{
    return llm_fail(err, "reference device: no memory for %s", what);
}


/* models on the reference backend share nothing */

int
llm_ref_device_open(llm_device_t **device, const llm_exec_opts_t *opts,
    llm_err_t *err)
{
    llm_device_t  *d;

    (void) opts;

    d = calloc(1, sizeof(llm_device_t));
    if (d == NULL) {
        return llm_ref_no_memory(err, "the device");
    }

    d->ops = &llm_ops_reference;
    *device = d;

    return LLM_OK;
}


void
llm_ref_device_close(llm_device_t *device)
{
    free(device);
}


int
llm_ref_open(llm_exec_t **exec, const llm_exec_opts_t *opts, llm_err_t *err)
{
    size_t           n;
    llm_ref_exec_t  *d;

    if (opts->products) {
        return llm_fail(err, "products=%s: this device multiplies in float64 "
                        "alone", opts->products);
    }

    if (opts->kv_q8) {
        return llm_fail(err, "kv=q8_0: this device keeps keys and values in "
                        "float32 alone");
    }

    d = calloc(1, sizeof(llm_ref_exec_t));
    if (d == NULL) {
        return llm_ref_no_memory(err, "the device");
    }

    d->exec.ops = &llm_ops_reference;
    d->opts = *opts;

    if (llm_mul_overflow(opts->max_pages, LLM_KV_PAGE * sizeof(double), &n)
        || (d->scores = malloc(n ? n : 1)) == NULL)
    {
        llm_ref_close(&d->exec);
        return llm_ref_no_memory(err, "the scores");
    }

    *exec = &d->exec;

    return LLM_OK;
}


void
llm_ref_close(llm_exec_t *exec)
{
    llm_ref_exec_t  *d = (llm_ref_exec_t *) exec;

    free(d->row);
    free(d->scores);
    free(d->sum);
    free(d);
}


void
llm_ref_describe(llm_exec_t *exec, char *buf, size_t size)
{
    (void) exec;
    snprintf(buf, size, "reference, plain C, 1 thread");
}


size_t
llm_ref_memory_free(llm_exec_t *exec)
{
    (void) exec;

    return llm_machine_memory_free("") / 2;
}


llm_weight_t *
llm_ref_weight_create(llm_exec_t *exec, uint32_t type, uint32_t n_out,
    uint32_t n_in, const void *src, int usage, llm_err_t *err)
{
    float           *row;
    llm_ref_exec_t  *d = (llm_ref_exec_t *) exec;
    llm_weight_t    *w;

    (void) usage;

    if (n_in > d->row_cap) {
        row = realloc(d->row, (size_t) n_in * sizeof(float));
        if (row == NULL) {
            (void) llm_ref_no_memory(err, "a row of a weight");
            return NULL;
        }

        d->row = row;
        d->row_cap = n_in;
    }

    w = malloc(sizeof(llm_weight_t));
    if (w == NULL) {
        (void) llm_ref_no_memory(err, "a weight");
        return NULL;
    }

    w->type = type;
    w->n_out = n_out;
    w->n_in = n_in;
    w->row_size = llm_type_row_size(type, n_in);
    w->stride = 0;
    w->n_matrices = 1;
    w->scales = NULL;
    w->data = src;

    return w;
}


llm_weight_t *
llm_ref_experts_create(llm_exec_t *exec, uint32_t type, uint32_t n_experts,
    uint32_t n_out, uint32_t n_in, const void *src, size_t stride,
    llm_err_t *err)
{
    llm_weight_t  *w;

    w = llm_ref_weight_create(exec, type, n_out, n_in, src,
                              LLM_WEIGHT_LINEAR, err);

    if (w) {
        w->stride = stride;
        w->n_matrices = n_experts;
    }

    return w;
}


int
llm_ref_weight_scale(llm_exec_t *exec, llm_weight_t *w, const float *scales,
    llm_err_t *err)
{
    (void) exec;

    w->scales = malloc(w->n_matrices * sizeof(float));
    if (w->scales == NULL) {
        return llm_ref_no_memory(err, "scales");
    }

    memcpy(w->scales, scales, w->n_matrices * sizeof(float));

    return LLM_OK;
}


void
llm_ref_weight_free(llm_exec_t *exec, llm_weight_t *w)
{
    (void) exec;

    if (w) {
        free(w->scales);
        free(w);
    }
}


llm_vec_t *
llm_ref_vec_create(llm_exec_t *exec, const float *src, uint32_t n,
    llm_err_t *err)
{
    llm_vec_t  *v;

    (void) exec;

    v = malloc(sizeof(llm_vec_t) + (size_t) n * sizeof(float));
    if (v == NULL) {
        (void) llm_ref_no_memory(err, "a vector");
        return NULL;
    }

    v->n = n;
    memcpy(v->data, src, (size_t) n * sizeof(float));

    return v;
}


void
llm_ref_vec_free(llm_exec_t *exec, llm_vec_t *v)
{
    (void) exec;
    free(v);
}


llm_act_t *
llm_ref_act_create(llm_exec_t *exec, uint32_t max_rows, uint32_t cols,
    llm_act_kind_t kind, llm_err_t *err)
{
    llm_act_t  *a;

    (void) exec;
    (void) kind;

    a = malloc(sizeof(llm_act_t));
    if (a == NULL) {
        (void) llm_ref_no_memory(err, "activations");
        return NULL;
    }

    a->cols = cols;
    a->data = calloc((size_t) max_rows * cols, sizeof(float));

    if (a->data == NULL) {
        free(a);
        (void) llm_ref_no_memory(err, "activations");
        return NULL;
    }

    return a;
}


void
llm_ref_act_free(llm_exec_t *exec, llm_act_t *a)
{
    (void) exec;

    if (a) {
        free(a->data);
        free(a);
    }
}


void
llm_ref_act_cols(llm_act_t *a, uint32_t cols)
{
    a->cols = cols;
}


/* the head_dim_v of pages of V; 0 if all layers are latent, so that V is part
   of K */

static uint32_t
llm_ref_dim_v(const llm_kv_opts_t *opts)
{
    uint32_t  i;

    for (i = 0; opts->layers && i < opts->n_layers; i++) {
        if (!opts->layers[i].latent) {
            return opts->head_dim_v;
        }
    }

    return opts->layers ? 0 : opts->head_dim_v;
}


/* the number of layers below n that store keys */

static uint32_t
llm_ref_kv_layers(const llm_kv_opts_t *opts, uint32_t n)
{
    uint32_t  i, kept;

    for (i = 0, kept = 0; i < n; i++) {
        kept += opts->layers == NULL || opts->layers[i].n_kv_heads != 0;
    }

    return kept;
}


size_t
llm_ref_kv_page_size(llm_exec_t *exec, const llm_kv_opts_t *opts)
{
    (void) exec;

    return sizeof(float) * LLM_KV_PAGE
           * llm_ref_kv_layers(opts, opts->n_layers) * opts->n_kv_heads
           * ((size_t) opts->head_dim_k + llm_ref_dim_v(opts));
}


void
llm_ref_kv_free(llm_exec_t *exec, llm_kv_t *kv)
{
    (void) exec;

    if (kv) {
        free(kv->at);
        free(kv->k);
        free(kv->v);
        free(kv);
    }
}


llm_kv_t *
llm_ref_kv_create(llm_exec_t *exec, const llm_kv_opts_t *opts, llm_err_t *err)
{
    double          *sum;
    size_t           pages;
    uint32_t         i;
    llm_kv_t        *kv;
    llm_ref_exec_t  *d = (llm_ref_exec_t *) exec;

    if (opts->head_dim_v > d->sum_cap) {
        sum = realloc(d->sum, opts->head_dim_v * sizeof(double));
        if (sum == NULL) {
            (void) llm_ref_no_memory(err, "the result of a head");
            return NULL;
        }

        d->sum = sum;
        d->sum_cap = opts->head_dim_v;
    }

    kv = calloc(1, sizeof(llm_kv_t));
    if (kv == NULL) {
        (void) llm_ref_no_memory(err, "the KV cache");
        return NULL;
    }

    kv->opts = *opts;
    kv->k_page = (size_t) LLM_KV_PAGE * opts->n_kv_heads * opts->head_dim_k;
    kv->v_page = (size_t) LLM_KV_PAGE * opts->n_kv_heads
                 * llm_ref_dim_v(opts);

    pages = (size_t) llm_ref_kv_layers(opts, opts->n_layers) * opts->n_pages;
    kv->at = calloc(opts->n_layers, sizeof(*kv->at));
    kv->k = calloc(llm_max(pages, 1u), llm_max(kv->k_page, 1u)
                                       * sizeof(float));
    kv->v = calloc(llm_max(pages, 1u), llm_max(kv->v_page, 1u)
                                       * sizeof(float));

    if (kv->at == NULL || kv->k == NULL || kv->v == NULL) {
        llm_ref_kv_free(exec, kv);
        (void) llm_ref_no_memory(err, "the KV cache");
        return NULL;
    }

    for (i = 0; i < opts->n_layers; i++) {
        kv->at[i] = llm_ref_kv_layers(opts, i);
    }

    return kv;
}


void
llm_ref_kv_copy(llm_exec_t *exec, llm_kv_t *kv, uint32_t src, uint32_t dst)
{
    size_t    base;
    uint32_t  i;

    (void) exec;

    for (i = 0; i < llm_ref_kv_layers(&kv->opts, kv->opts.n_layers); i++) {
        base = (size_t) i * kv->opts.n_pages;

        memcpy(kv->k + (base + dst) * kv->k_page,
               kv->k + (base + src) * kv->k_page,
               kv->k_page * sizeof(float));
        memcpy(kv->v + (base + dst) * kv->v_page,
               kv->v + (base + src) * kv->v_page,
               kv->v_page * sizeof(float));
    }
}


int
llm_ref_begin(llm_exec_t *exec, const llm_batch_t *batch, llm_err_t *err)
{
    (void) err;
    ((llm_ref_exec_t *) exec)->batch = batch;

    return LLM_OK;
}


int
llm_ref_end(llm_exec_t *exec, llm_err_t *err)
{
    (void) err;
    ((llm_ref_exec_t *) exec)->batch = NULL;

    return LLM_OK;
}


void
llm_ref_linear(llm_exec_t *exec, llm_rows_t rows, const llm_act_t *x,
    const llm_linear_t *out, uint32_t n)
{
    float               *y;
    double               v;
    uint32_t             i, o, r, n_rows;
    llm_ref_exec_t      *d = (llm_ref_exec_t *) exec;
    const llm_weight_t  *w;

    n_rows = llm_ref_rows(d, rows);

    for (i = 0; i < n; i++) {
        w = out[i].w;

        for (o = 0; o < w->n_out; o++) {
            llm_dequantize(w->type, w->data + (size_t) o * w->row_size,
                           d->row, w->n_in);

            for (r = 0; r < n_rows; r++) {
                y = out[i].y->data + (size_t) r * out[i].y->cols + o;
                v = llm_ref_product(w, 0, x->data + (size_t) r * x->cols,
                                    d->row);

                if (out[i].bias) {
                    v += out[i].bias->data[o];
                }

                *y = (float) (out[i].add ? *y + v : v);
            }
        }
    }
}


const float *
llm_ref_map(llm_exec_t *exec, const llm_act_t *a, uint32_t row, uint32_t n)
{
    (void) exec;
    (void) n;

    return a->data + (size_t) row * a->cols;
}


void
llm_ref_write(llm_exec_t *exec, llm_act_t *a, uint32_t row, uint32_t n,
    const float *src)
{
    (void) exec;
    memcpy(a->data + (size_t) row * a->cols, src,
           (size_t) n * a->cols * sizeof(float));
}


/* heads_create(): matrices of heads have the layout of experts; state_...():
   shared with the CPU backend; NULL: operations that are missing */
#define llm_ref_heads_create  llm_ref_experts_create
#define llm_ref_state_free    llm_states_free
#define llm_ref_state_size    llm_states_size
#define llm_ref_state_copy    llm_states_copy
#define llm_ref_kv_unused     NULL
#define llm_ref_weight_size   NULL
#define llm_ref_packed_key    NULL
#define llm_ref_packed_use    NULL
#define llm_ref_packed_write  NULL
#define llm_ref_enter         NULL
#define llm_ref_linear_glu    NULL
#define llm_ref_link          NULL
#define llm_ref_receive       NULL
#define llm_ref_receive_drawn NULL
#define llm_ref_join          NULL
#define llm_ref_collect       NULL
#define llm_ref_experts_up    NULL
#define llm_ref_experts_down  NULL
#define llm_ref_delta_part    NULL
#define llm_ref_scan_part     NULL
#define llm_ref_submit        NULL
#define llm_ref_drawn         NULL

const llm_ops_t  llm_ops_reference = {
    .name = "reference",
    .can = LLM_CAN_ALL,
#define LLM_OP(group, needs, result, name, parameters)  .name = llm_ref_##name,
#include "kernels/ops.def"
};
