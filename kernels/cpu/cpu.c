/*
 * The CPU backend: the table llm_ops_cpu, a model on the CPUs and its objects.
 * Products are in linear.c, attention in attention.c (on the pages of kv.c),
 * operations on single rows in rows.c, the kernels of each instruction set in
 * avx2.c, avx512.c, avx512_bf16.c and amx.c.
 *
 * On a CPU without AVX2, open() returns a model on the reference backend, so
 * callers use the table in exec->ops.
 *
 * Threads and scratch memory belong to a device, which models share
 * (device.c).  The create calls enlarge the scratch memory; a step allocates
 * nothing.
 */

#define _GNU_SOURCE

#include "kernels/cpu/cpu.h"
#include "engine/base/machine.h"
#include "engine/base/products.h"
#include "kernels/cpu/states.h"

#include <stdio.h>


int
llm_cpu_device_open(llm_device_t **device, const llm_exec_opts_t *opts,
    llm_err_t *err)
{
    llm_cpu_device_t   *d;
    llm_cpu_kernels_t   kernels;

    if (opts->isa && strcmp(opts->isa, "reference") == 0) {
        return llm_ops_reference.device_open(device, opts, err);
    }

    if (llm_cpu_select(opts->isa, &kernels, err) != LLM_OK) {

        if (opts->isa) {
            return LLM_ERROR;
        }

        return llm_ops_reference.device_open(device, opts, err);
    }

    d = calloc(1, sizeof(llm_cpu_device_t));
    if (d == NULL) {
        return llm_fail(err, "cpu: no memory for a device");
    }

    d->pool = llm_pool_create(opts->threads, err);

    if (d->pool == NULL) {
        free(d);
        return LLM_ERROR;
    }

    d->device.ops = &llm_ops_cpu;
    d->kernels = kernels;
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->passed, NULL);

    *device = &d->device;

    return LLM_OK;
}


void
llm_cpu_device_close(llm_device_t *device)
{
    llm_cpu_device_t  *d = (llm_cpu_device_t *) device;

    llm_cpu_free(d->scratch, d->n_scratch * d->scratch_size);
    llm_cpu_free(d->stage.data, d->stage.size);
    llm_cpu_free(d->rot.data, d->rot.size);
    llm_cpu_free(d->parts.data, d->parts.size);
    llm_pool_free(d->pool);

    pthread_mutex_destroy(&d->lock);
    pthread_cond_destroy(&d->passed);
    free(d);
}


/* the precision of attention follows that of products: it is in bfloat16 where
   these round activations to 8 or 16 bits anyway */

static llm_cpu_kv_format_t
llm_cpu_kv_format(const llm_cpu_t *cpu)
{
    uint32_t  type;

    type = cpu->opts.weight_type;

    if (cpu->opts.kv_q8) {
        return LLM_CPU_KV_Q8;
    }

    if (cpu->opts.kv_f32 && !cpu->bf16
        && (type == LLM_TYPE_F32 || type == LLM_TYPE_F16))
    {
        return LLM_CPU_KV_F32;
    }

    if (cpu->kernels.attn[LLM_CPU_KV_BF16] == NULL
        || (!cpu->bf16 && (type == LLM_TYPE_F32 || type == LLM_TYPE_F16)))
    {
        return LLM_CPU_KV_F16;
    }

    return LLM_CPU_KV_BF16;
}


/* what a CPU can do of the words of products= */

static int
llm_cpu_products(llm_cpu_t *cpu, llm_err_t *err)
{
    const char  *word = cpu->opts.products;

    if (word == NULL) {
        return LLM_OK;
    }

    if (!llm_products_is(word, LLM_PRODUCTS_BF16)
        && !llm_products_is(word, LLM_PRODUCTS_BF16_ALL))
    {
        return llm_fail(err, "products=%s: a CPU has only products=bf16 and "
                        "bf16-all", word);
    }

    if (!cpu->kernels.bf16) {
        return llm_fail(err, "products=%s: %s has no products in bfloat16, "
                        "AVX512_BF16 or AMX is needed", word,
                        cpu->kernels.name);
    }

    if (cpu->bf16_all && !cpu->kernels.tiles) {
        return llm_fail(err, "products=bf16-all: %s multiplies quantised weights "
                        "faster in int8, so it takes products=bf16 alone; "
                        "bf16-all is for AMX", cpu->kernels.name);
    }

    return LLM_OK;
}


int
llm_cpu_open(llm_exec_t **exec, const llm_exec_opts_t *opts, llm_err_t *err)
{
    llm_cpu_t     *cpu;
    llm_device_t  *device;

    device = opts->device;

    if (device == NULL && llm_cpu_device_open(&device, opts, err) != LLM_OK) {
        return LLM_ERROR;
    }

    if (device->ops != &llm_ops_cpu) {
        if (opts->device == NULL) {
            device->ops->device_close(device);
        }

        return llm_ops_reference.open(exec, opts, err);
    }

    cpu = calloc(1, sizeof(llm_cpu_t));
    if (cpu == NULL) {
        if (opts->device == NULL) {
            llm_cpu_device_close(device);
        }

        return llm_fail(err, "cpu: no memory for a device");
    }

    cpu->exec.ops = &llm_ops_cpu;
    cpu->opts = *opts;
    cpu->device = (llm_cpu_device_t *) device;
    cpu->owns_device = opts->device == NULL;
    cpu->kernels = cpu->device->kernels;
    cpu->bf16 = opts->products != NULL;
    cpu->bf16_all = llm_products_is(opts->products, LLM_PRODUCTS_BF16_ALL);
    cpu->threads = llm_pool_wanted(opts->threads);
    cpu->kv_format = llm_cpu_kv_format(cpu);

    cpu->first_item = calloc((size_t) opts->max_seqs + 1, sizeof(uint32_t));

    if (cpu->first_item == NULL) {
        llm_cpu_close(&cpu->exec);
        return llm_fail(err, "cpu: no memory for %u sequences",
                        opts->max_seqs);
    }

    if (llm_cpu_threads_reserve(cpu, err) != LLM_OK
        || llm_cpu_products(cpu, err) != LLM_OK)
    {
        llm_cpu_close(&cpu->exec);
        return LLM_ERROR;
    }

    *exec = &cpu->exec;

    return LLM_OK;
}


void
llm_cpu_close(llm_exec_t *exec)
{
    llm_cpu_t  *cpu = (llm_cpu_t *) exec;

    if (cpu->owns_device) {
        llm_cpu_device_close(&cpu->device->device);
    }

    free(cpu->first_item);
    free(cpu);
}


void
llm_cpu_describe(llm_exec_t *exec, char *buf, size_t size)
{
    llm_cpu_t  *cpu = (llm_cpu_t *) exec;

    snprintf(buf, size, "%s, %u thread%s%s", cpu->kernels.name, cpu->threads,
             cpu->threads == 1 ? "" : "s",
             cpu->kv_format == LLM_CPU_KV_Q8 ? ", q8_0 KV" : "");
}


/* half of the free memory; the other half is for the page cache of the model
   file and for other programs */

size_t
llm_cpu_memory_free(llm_exec_t *exec)
{
    (void) exec;

    return llm_machine_memory_free("") / 2;
}


void
llm_cpu_weight_free(llm_exec_t *exec, llm_weight_t *w)
{
    llm_cpu_t     *cpu = (llm_cpu_t *) exec;
    llm_weight_t  *prev;

    if (w == NULL) {
        return;
    }

    if (cpu->weights == w) {
        prev = NULL;
        cpu->weights = w->next;

    } else {
        for (prev = cpu->weights; prev->next != w; prev = prev->next) {
            /* void */
        }

        prev->next = w->next;
    }

    if (cpu->last == w) {
        cpu->last = prev;
    }

    llm_cpu_slab_free(cpu, w->slab);
    free(w->scales);
    free(w);
}


static llm_weight_t *
llm_cpu_weights(llm_cpu_t *cpu, uint32_t type, uint32_t n_experts,
    uint32_t n_out, uint32_t n_in, const void *src, size_t stride, int usage,
    llm_err_t *err)
{
    llm_weight_t  *w;

    if (llm_type_name(type) == NULL || n_in % llm_type_block(type)) {
        llm_fail(err, "cpu: no support for rows of %u elements of type %u",
                 n_in, type);
        return NULL;
    }

    w = calloc(1, sizeof(llm_weight_t));
    if (w == NULL) {
        llm_fail(err, "cpu: no memory for a weight");
        return NULL;
    }

    w->type = type;
    w->n_out = n_out;
    w->n_in = n_in;
    w->usage = usage;
    w->panels = type;
    w->n_experts = n_experts;
    w->src = src;
    w->row_size = llm_type_row_size(type, n_in);
    w->stride = stride;

    if (cpu->last) {
        cpu->last->next = w;

    } else {
        cpu->weights = w;
    }

    cpu->last = w;

    /* room for one row in float32, which embed_pos() uses */
    if ((usage & LLM_WEIGHT_EMBED)
        && llm_cpu_scratch_reserve(cpu, (size_t) n_in * sizeof(float), err)
           != LLM_OK)
    {
        llm_cpu_weight_free(&cpu->exec, w);
        return NULL;
    }

    if (!(usage & LLM_WEIGHT_LINEAR)) {
        return w;
    }

    /* the head and routers stay as they are: few rows, and much depends on
       them */

    if (cpu->bf16 && !(usage & LLM_WEIGHT_HEAD)
        && (llm_type_block(type) == 1 || cpu->bf16_all))
    {
        w->panels = LLM_TYPE_BF16;
    }

    if (llm_cpu_pack(cpu, w, err) != LLM_OK
        || llm_cpu_stage_reserve(cpu, n_in, err) != LLM_OK
        || llm_cpu_scratch_reserve(cpu, llm_cpu_pack_scratch(cpu, w), err)
           != LLM_OK)
    {
        llm_cpu_weight_free(&cpu->exec, w);
        return NULL;
    }

    return w;
}


llm_weight_t *
llm_cpu_weight_create(llm_exec_t *exec, uint32_t type, uint32_t n_out,
    uint32_t n_in, const void *src, int usage, llm_err_t *err)
{
    return llm_cpu_weights((llm_cpu_t *) exec, type, 1, n_out, n_in, src, 0,
                           usage, err);
}


llm_weight_t *
llm_cpu_experts_create(llm_exec_t *exec, uint32_t type, uint32_t n_experts,
    uint32_t n_out, uint32_t n_in, const void *src, size_t stride,
    llm_err_t *err)
{
    return llm_cpu_weights((llm_cpu_t *) exec, type, n_experts, n_out, n_in,
                           src, stride, LLM_WEIGHT_LINEAR, err);
}


int
llm_cpu_weight_scale(llm_exec_t *exec, llm_weight_t *w, const float *scales,
    llm_err_t *err)
{
    (void) exec;

    w->scales = malloc(w->n_experts * sizeof(float));

    if (w->scales == NULL) {
        return llm_fail(err, "cpu: no memory for %u scales", w->n_experts);
    }

    memcpy(w->scales, scales, w->n_experts * sizeof(float));

    return LLM_OK;
}


void
llm_cpu_vec_free(llm_exec_t *exec, llm_vec_t *v)
{
    (void) exec;

    if (v) {
        free(v->data);
        free(v);
    }
}


llm_vec_t *
llm_cpu_vec_create(llm_exec_t *exec, const float *src, uint32_t n,
    llm_err_t *err)
{
    llm_vec_t  *v;

    v = calloc(1, sizeof(llm_vec_t));

    if (v) {
        v->n = n;
        v->data = calloc(llm_pad16(n) + 16, sizeof(float));

        if (v->data) {
            memcpy(v->data, src, n * sizeof(float));
            return v;
        }
    }

    llm_cpu_vec_free(exec, v);
    llm_fail(err, "cpu: no memory for a vector of %u elements", n);

    return NULL;
}


void
llm_cpu_act_free(llm_exec_t *exec, llm_act_t *a)
{
    (void) exec;

    if (a) {
        llm_cpu_free(a->data, a->size);
        free(a);
    }
}


void
llm_cpu_act_cols(llm_act_t *a, uint32_t cols)
{
    a->cols = cols;
}


llm_act_t *
llm_cpu_act_create(llm_exec_t *exec, uint32_t max_rows, uint32_t cols,
    llm_act_kind_t kind, llm_err_t *err)
{
    size_t      n;
    llm_act_t  *a;

    (void) kind;

    a = calloc(1, sizeof(llm_act_t));

    if (a && !llm_mul_overflow(max_rows, cols, &n)
        && !llm_mul_overflow(n, sizeof(float), &a->size))
    {
        a->cols = cols;
        a->data = llm_cpu_alloc(a->size, 0);

        if (a->data) {
            return a;
        }
    }

    llm_cpu_act_free(exec, a);
    llm_fail(err, "cpu: no memory for %u rows of %u elements", max_rows, cols);

    return NULL;
}


int
llm_cpu_begin(llm_exec_t *exec, const llm_batch_t *batch, llm_err_t *err)
{
    llm_cpu_t  *cpu = (llm_cpu_t *) exec;

    (void) err;

    llm_cpu_take(cpu->device);
    llm_pool_enter(cpu->device->pool, cpu->threads);

    cpu->batch = batch;
    llm_cpu_stage_begin(cpu);
    llm_cpu_attn_begin(cpu);

    return LLM_OK;
}


int
llm_cpu_end(llm_exec_t *exec, llm_err_t *err)
{
    llm_cpu_t  *cpu = (llm_cpu_t *) exec;

    (void) err;

    cpu->batch = NULL;

    llm_pool_leave(cpu->device->pool);
    llm_cpu_give(cpu->device);

    return LLM_OK;
}


const float *
llm_cpu_map(llm_exec_t *exec, const llm_act_t *a, uint32_t row, uint32_t n)
{
    (void) exec;
    (void) n;

    return a->data + (size_t) row * a->cols;
}


void
llm_cpu_write(llm_exec_t *exec, llm_act_t *a, uint32_t row, uint32_t n,
    const float *src)
{
    (void) exec;

    memcpy(a->data + (size_t) row * a->cols, src,
           (size_t) n * a->cols * sizeof(float));
}


/* operations that are shared with the reference, and those that are missing */
#define llm_cpu_state_create  llm_states_create
#define llm_cpu_state_free    llm_states_free
#define llm_cpu_state_size    llm_states_size
#define llm_cpu_state_copy    llm_states_copy
#define llm_cpu_enter         NULL
#define llm_cpu_linear_glu    NULL
#define llm_cpu_link          NULL
#define llm_cpu_receive       NULL
#define llm_cpu_receive_drawn NULL
#define llm_cpu_join          NULL
#define llm_cpu_collect       NULL
#define llm_cpu_experts_up    NULL
#define llm_cpu_experts_down  NULL
#define llm_cpu_delta_part    NULL
#define llm_cpu_scan_part     NULL
#define llm_cpu_submit        NULL
#define llm_cpu_drawn         NULL

const llm_ops_t  llm_ops_cpu = {
    .name = "cpu",
    .can = LLM_CAN_ALL,
#define LLM_OP(group, needs, result, name, parameters)  .name = llm_cpu_##name,
#include "kernels/ops.def"
};
