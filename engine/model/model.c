/*
 * A model: what its sizes are, its devices, and its end; see model.h.  load.c
 * has the load.
 */

#include "engine/model/backend.h"
#include "engine/model/ear.h"
#include "engine/base/products.h"

#define LLM_MODEL_BATCH     512
#define LLM_MODEL_MAX_SEQS  16

/* default ctx of encoders that were trained for longer sequences */
#define LLM_ENCODER_CTX     8192


int
llm_model_check(const llm_gguf_t *g, llm_hparams_t *hp, llm_err_t *err)
{
    llm_desc_t  d;

    if (llm_desc_read(g, &d, err) != LLM_OK) {
        return LLM_ERROR;
    }

    *hp = d.hp;
    llm_desc_free(&d);

    return LLM_OK;
}


/* sets the longest sequence: as configured, or as trained */

int
llm_load_ctx(llm_load_t *l)
{
    llm_model_t          *m;
    const llm_hparams_t  *hp;

    m = l->m;
    hp = &m->desc.hp;
    m->ctx = l->opts->ctx ? l->opts->ctx : hp->n_ctx_train;

    if (hp->encoder && l->opts->ctx == 0 && m->ctx > LLM_ENCODER_CTX) {
        m->ctx = LLM_ENCODER_CTX;
        llm_load_log(l, LLM_LOG_NOTICE, "%s: ctx is %u of %u: an encoder "
                     "computes a sequence in one step, which needs memory "
                     "for all of it; set ctx=%u for longer sequences",
                     llm_gguf_name(m->gguf), m->ctx, hp->n_ctx_train,
                     hp->n_ctx_train);
    }

    if (m->desc.global[LLM_GT_POS_EMBD] && m->ctx > hp->n_ctx_train) {
        return llm_fail(l->err, "%s: ctx: the model has embeddings for %u "
                        "positions, not %u", llm_gguf_name(m->gguf),
                        hp->n_ctx_train, m->ctx);
    }

    if (m->ctx > hp->n_ctx_orig) {
        llm_load_log(l, LLM_LOG_WARN, "%s: ctx is %u, and the model was "
                     "trained for %u", llm_gguf_name(m->gguf), m->ctx,
                     hp->n_ctx_orig);
    }

    if (m->ctx > LLM_MAX_CTX) {
        return llm_fail(l->err, "%s: ctx: %u is too large",
                        llm_gguf_name(m->gguf), m->ctx);
    }

    m->max_pages = (m->ctx + LLM_KV_PAGE - 1) / LLM_KV_PAGE;

    return LLM_OK;
}


/* the type of most matrices: that of the first layer's FFN down projection */

static uint32_t
llm_load_weight_type(const llm_gguf_t *g)
{
    const llm_gguf_tensor_t  *t;

    t = llm_gguf_find_tensor(g, "blk.0.ffn_down.weight");
    t = t ? t : llm_gguf_find_tensor(g, "blk.0.ffn_down_exps.weight");

    return t ? t->type : LLM_TYPE_F32;
}


/* opens the devices that the name stands for: a part of the model for each */

static int
llm_load_open(llm_load_t *l, const char *device, const llm_exec_opts_t *o)
{
    int                  rows;
    uint32_t             i;
    llm_model_t         *m = l->m;
    llm_model_part_t    *p;
    llm_backend_list_t   list;

    rows = l->opts->split_rows;

    if (llm_backend_list(device, &list, l->err) != LLM_OK
        || (m->parts == NULL
            && llm_parts_create(l, rows ? 1 : list.n) != LLM_OK)
        || (rows && llm_split_open(l, &list, o) != LLM_OK))
    {
        return LLM_ERROR;
    }

    for (i = 0; !rows && i < list.n; i++) {
        p = &m->parts[i];
        strcpy(p->name, list.name[i]);

        if (llm_backend_open(p->name, l->opts->backend_dir, m->devices, o,
                             &p->exec, l->err) != LLM_OK)
        {
            return LLM_ERROR;
        }

        m->ops = p->exec->ops;
    }

    llm_part_enter(m, 0);

    return LLM_OK;
}


/*
 * Checks that the device can do all that the model needs.  If it cannot,
 * device=auto takes the CPU; with other devices this is an error.
 */

static int
llm_load_device_can(llm_load_t *l, const llm_exec_opts_t *o)
{
    uint32_t      i, lacks;
    const char   *name;
    llm_model_t  *m;

    static const char  *const what[] = {
#define LLM_CAN(ID, words)  words,
#include "kernels/ops.def"
    };

    m = l->m;
    lacks = llm_desc_needs(&m->desc, m->ctx) & ~m->ops->can;

    if (lacks == 0) {
        return LLM_OK;
    }

    for (i = 0; !(lacks & 1u << i); i++) { /* void */ }

    if (m->n_members) {
        return llm_fail(l->err, "%s: split=rows: %s: %s cannot be divided by "
                        "rows; split=layers can divide its layers",
                        llm_gguf_name(m->gguf), m->desc.hp.arch, what[i]);
    }

    name = l->opts->device ? l->opts->device : "auto";

    if (strcmp(name, "auto") != 0) {
        return llm_fail(l->err, "%s: the device %s cannot run it: %s: %s",
                        llm_gguf_name(m->gguf), m->ops->name,
                        m->desc.hp.arch, what[i]);
    }

    llm_load_log(l, LLM_LOG_NOTICE, "%s: on the CPU: the device %s cannot "
                 "run it: %s: %s", llm_gguf_name(m->gguf), m->ops->name,
                 m->desc.hp.arch, what[i]);

    llm_devices_close(m->devices, m->parts[0].exec);
    m->parts[0].exec = NULL;

    return llm_load_open(l, "cpu", o);
}


/* sizes of an encoder's step: rows of a sequence see each other's keys, so all
   are in one step */

static void
llm_load_whole(llm_load_t *l)
{
    uint32_t      rows;
    llm_model_t  *m;

    m = l->m;
    rows = m->ctx + m->max_seqs;

    if (m->batch < rows) {
        if (l->opts->batch) {
            llm_load_log(l, LLM_LOG_NOTICE, "%s: batch is %u, not %u: an "
                         "encoder computes a sequence of ctx=%u in one step",
                         llm_gguf_name(m->gguf), rows, m->batch, m->ctx);
        }

        m->batch = rows;
    }

    m->max_out = m->batch;
}


/* sizes of a step, kinds of caches */

int
llm_load_sizes(llm_load_t *l)
{
    llm_model_t             *m;
    const llm_model_opts_t  *opts;

    m = l->m;
    opts = l->opts;

    m->batch = opts->batch ? opts->batch : LLM_MODEL_BATCH;
    m->max_seqs = opts->max_seqs ? opts->max_seqs : LLM_MODEL_MAX_SEQS;
    m->max_out = opts->max_out ? llm_min(opts->max_out, m->batch) : m->batch;

    if (m->desc.hp.encoder) {
        llm_load_whole(l);
    }

    return llm_load_kinds(l);
}


int
llm_load_device(llm_load_t *l)
{
    int                      products;
    llm_model_t             *m;
    llm_exec_opts_t          o;
    const llm_model_opts_t  *opts;

    m = l->m;
    opts = l->opts;

    memset(&o, 0, sizeof(o));
    o.threads = opts->threads;
    o.isa = opts->isa;
    o.log = opts->log;
    o.log_data = opts->log_data;
    o.max_tokens = m->batch;
    o.max_seqs = m->max_seqs;
    o.max_pages = llm_max(m->max_pages, llm_ear_n_pages(&m->desc));
    o.max_out = m->max_out;
    o.weight_type = llm_load_weight_type(m->of ? m->of->gguf : m->gguf);
    o.weights_fp8 = opts->weights_fp8;
    o.kv_fp8 = opts->kv_fp8;
    o.kv_q8 = opts->kv_q8;
    o.kv_f32 = m->desc.ear.n_layers != 0;
    o.products = opts->products;
    o.n_kinds = m->n_kinds;

    if (llm_load_open(l, opts->device, &o) != LLM_OK
        || llm_load_device_can(l, &o) != LLM_OK
        || llm_parts_divide(l) != LLM_OK)
    {
        return LLM_ERROR;
    }

    l->memory = 1;

    products = llm_products_is(o.products, LLM_PRODUCTS_FP8);

    if ((o.weights_fp8 || products) && llm_type_block(o.weight_type) > 1) {
        llm_load_log(l, LLM_LOG_WARN, "%s: %s=fp8: matrices of %s stay as they "
                     "are, only wider ones become fp8",
                     llm_gguf_name(m->gguf), products ? "products" : "weights",
                     llm_type_name(o.weight_type));
    }

    return LLM_OK;
}


llm_model_t *
llm_model_create(const llm_model_opts_t *opts)
{
    llm_model_t  *m;

    m = calloc(1, sizeof(llm_model_t));
    if (m == NULL) {
        return NULL;
    }

    m->alone = opts->devices == NULL;
    m->devices = m->alone ? llm_devices_create() : opts->devices;

    if (m->devices == NULL) {
        free(m);
        return NULL;
    }

    return m;
}


static void
llm_model_free_layer(llm_model_t *m, llm_model_layer_t *l)
{
    uint32_t  k;

    for (k = 0; k < LLM_LT_N; k++) {
        if (l->w[k]) {
            m->ops->weight_free(m->exec, l->w[k]);
        }

        if (l->v[k]) {
            m->ops->vec_free(m->exec, l->v[k]);
        }
    }

    free(l->k_b);
    free(l->mixed);
}


/* tensors of the whole model: those of the first device, then of the last */

static void
llm_model_free_globals(llm_model_t *m)
{
    uint32_t  i, k;

    llm_vec_t  *vecs[2][4] = {
        { m->input_norm, m->token_type, m->embd_norm, m->embd_norm_bias },
        { m->output_norm, m->output_norm_bias, m->output_bias, NULL }
    };

    llm_weight_t  *weights[2][4] = {
        { m->token_embd, m->pos_embd, m->input_embd, m->input_proj },
        { m->output != m->token_embd && !m->borrows ? m->output : NULL,
          m->makes, m->after, NULL }
    };

    for (k = 0; k < 2; k++) {
        llm_part_enter(m, k ? m->n_parts - 1 : 0);

        for (i = 0; i < llm_nelems(vecs[k]); i++) {
            if (vecs[k][i]) {
                m->ops->vec_free(m->exec, vecs[k][i]);
            }

            if (weights[k][i]) {
                m->ops->weight_free(m->exec, weights[k][i]);
            }
        }
    }
}


void
llm_model_free(llm_model_t *m)
{
    uint32_t  i;

    if (m == NULL) {
        return;
    }

    llm_promise_end(m);
    llm_packed_stop(m);

    for (i = 0; m->layers && i < m->desc.hp.n_layers; i++) {
        llm_part_enter(m, llm_part_of(m, i));
        llm_model_free_layer(m, &m->layers[i]);
    }

    if (m->layers) {
        llm_model_free_globals(m);
    }

    llm_ear_free(m);
    free(m->layers);
    llm_parts_free(m);

    for (i = 0; i < LLM_KV_KINDS; i++) {
        free(m->kv_layers[i]);
    }

    if (m->alone) {
        llm_devices_free(m->devices);
    }

    llm_packed_close(m);
    llm_rank_unload(&m->rank);
    free(m->dense[0]);
    free(m->dense[1]);
    free(m->dense_row);
    llm_desc_free(&m->desc);

    if (m->gguf && (m->of == NULL || m->gguf != m->of->gguf)) {
        llm_gguf_close(m->gguf);
    }

    free(m);
}


const llm_hparams_t *
llm_model_hparams(const llm_model_t *m)
{
    return &m->desc.hp;
}


const llm_gguf_t *
llm_model_gguf(const llm_model_t *m)
{
    return m->gguf;
}


uint32_t
llm_model_ctx(const llm_model_t *m)
{
    return m->ctx;
}


uint32_t
llm_model_batch(const llm_model_t *m)
{
    return m->batch;
}


uint32_t
llm_model_max_seqs(const llm_model_t *m)
{
    return m->max_seqs;
}


uint32_t
llm_model_max_out(const llm_model_t *m)
{
    return m->max_out;
}


uint32_t
llm_model_window(const llm_model_t *m)
{
    return m->window;
}


uint32_t
llm_model_n_pages(const llm_model_t *m, uint32_t kind)
{
    return m->n_pages[kind];
}


uint64_t
llm_model_kv_bytes(const llm_model_t *m)
{
    return m->kv_bytes;
}


uint32_t
llm_model_n_slots(const llm_model_t *m)
{
    return m->n_slots;
}


int
llm_model_short_kv(const llm_model_t *m)
{
    return m->short_kv;
}


int
llm_model_on_gpu(const llm_model_t *m)
{
    return m->ops != &llm_ops_cpu && m->ops != &llm_ops_reference;
}
