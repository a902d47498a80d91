/*
 * A model's parts: on each of its devices some adjacent layers, in the order of
 * the devices.  Most models have one device, and one part.
 *
 * Layers are divided so that the devices' free memory is used evenly: each
 * device is given about the same share of what it has.  A layer that reads the
 * keys and values of an earlier one is on the same device as that.  The result
 * of a step does not depend on the division: only where a row is computed does.
 *
 * The model owns its parts, and these what is on their devices.
 */

#include "engine/model/model_internal.h"

#include <stdio.h>


int
llm_parts_create(llm_load_t *l, uint32_t n)
{
    llm_model_t  *m = l->m;

    m->parts = calloc(n, sizeof(llm_model_part_t));

    if (m->parts == NULL) {
        return llm_fail(l->err, "%s: no memory for the model",
                        llm_gguf_name(m->gguf));
    }

    m->n_parts = n;
    m->parts[n - 1].end = m->desc.hp.n_layers;

    return LLM_OK;
}


llm_model_part_t *
llm_part_last(const llm_model_t *m)
{
    return &m->parts[m->n_parts - 1];
}


uint32_t
llm_part_of(const llm_model_t *m, uint32_t layer)
{
    uint32_t  i;

    for (i = 0; layer >= m->parts[i].end; i++) { /* void */ }

    return i;
}


void
llm_part_enter(llm_model_t *m, uint32_t i)
{
    llm_model_part_t  *p = &m->parts[i];

    m->at = p;
    m->exec = p->exec;
    m->act = p->act;

    if (m->ops->enter) {
        m->ops->enter(m->exec);
    }
}


/* ---- the division of layers ---- */

typedef struct {
    double      *bytes;                 /* [n_layers + 1] of the layers before
                                           each layer */
    double       first;                 /* more bytes of the first part */
    double       last;
    double      *free;                  /* [n_parts] bytes of the devices */
} llm_divide_t;


static double
llm_divide_tensor(const llm_gguf_tensor_t *t)
{
    return t ? (double) t->size : 0;
}


/* bytes of a layer's tensors in the file */

static double
llm_divide_weights(const llm_layer_desc_t *d)
{
    double                    n;
    uint32_t                  i;
    const llm_tensor_part_t  *p;

    for (n = 0, i = 0; i < LLM_LT_N; i++) {
        p = &d->tensors[i];

        if (p->t) {
            n += (double) p->t->size * p->n
                 / (double) (p->t->n_dims > 1 ? p->t->ne[1] : p->t->ne[0]);
        }
    }

    return n;
}


/* bytes of a layer's pages and states, for as many sequences of ctx as there
   may be */

static double
llm_divide_kv(llm_load_t *l, uint32_t layer)
{
    double              n;
    llm_model_t        *m = l->m;
    llm_kv_opts_t       kv;
    const llm_desc_t   *d = &m->desc;

    llm_state_opts_t  state = {
        .n_layers = 1,
        .n_slots = 1,
        .layers = &d->states[layer]
    };

    llm_load_kv_opts(l, d->layers[layer].kind, &kv);
    kv.n_layers = 1;
    kv.layers = &d->kv[layer];

    n = (double) m->ops->kv_page_size(m->exec, &kv) * m->max_seqs
        * llm_load_seq_pages(m, d->layers[layer].kind);

    if (d->hp.n_recurrent) {
        n += (double) m->ops->state_size(m->exec, &state)
             * (m->max_seqs + 1);
    }

    return n;
}


/* caches take the size that was configured, else at most what weights leave */

static void
llm_divide_bytes(llm_load_t *l, llm_divide_t *v)
{
    double              weights, kv, all;
    uint32_t            i, n;
    llm_model_t        *m = l->m;
    const llm_desc_t   *d = &m->desc;

    n = d->hp.n_layers;

    v->first = llm_divide_tensor(d->global[LLM_GT_TOKEN_EMBD])
               + llm_divide_tensor(d->global[LLM_GT_POS_EMBD])
               + llm_divide_tensor(d->global[LLM_GT_INPUT_EMBD])
               + llm_divide_tensor(d->global[LLM_GT_INPUT_MODEL_PROJ]);
    v->last = d->hp.encoder ? 0
              : llm_divide_tensor(d->global[d->global[LLM_GT_OUTPUT]
                                            ? LLM_GT_OUTPUT
                                            : LLM_GT_TOKEN_EMBD])
                + (double) m->max_out * d->hp.n_vocab * sizeof(float);

    weights = v->first + v->last;
    kv = 0;

    for (i = 0; i < n; i++) {
        weights += llm_divide_weights(&d->layers[i]);
        kv += llm_divide_kv(l, i);
    }

    for (i = 0, all = 0; i < m->n_parts; i++) {
        llm_part_enter(m, i);
        v->free[i] = (double) llm_max(m->ops->memory_free(m->exec), 1u);
        all += v->free[i];
    }

    all = l->opts->kv_bytes ? (double) l->opts->kv_bytes
                            : llm_min(kv, llm_max(all - weights, 0));

    for (i = 0, v->bytes[0] = 0; i < n; i++) {
        v->bytes[i + 1] = v->bytes[i] + llm_divide_weights(&d->layers[i])
                          + (kv > 0 ? all / kv * llm_divide_kv(l, i) : 0);
    }
}


/* may a part begin with this layer? */

static int
llm_divide_may(const llm_model_t *m, uint32_t layer)
{
    uint32_t  i;

    for (i = layer; !m->desc.hp.encoder && i < m->desc.hp.n_layers; i++) {
        if (m->desc.layers[i].kv_layer < layer) {
            return 0;
        }
    }

    return 1;
}


/*
 * Of all divisions the one whose fullest device is the least full.  best[c]:
 * the share of that device if the layers before c are on the parts so far;
 * from[c]: where the last of these parts begins.
 */

static int
llm_divide_layers(llm_load_t *l, const llm_divide_t *v, double *best,
    uint32_t *from)
{
    double        share;
    uint32_t      a, c, i, n;
    llm_model_t  *m = l->m;

    n = m->desc.hp.n_layers;

    for (c = 0; c <= n; c++) {
        best[c] = c ? -1 : 0;           /* -1: there is no division */
    }

    for (i = 0; i < m->n_parts; i++) {
        for (c = n; c != UINT32_MAX; c--) {
            best[c] = i == 0 && c == 0 ? best[c] : -1;

            for (a = i ? 1 : 0; a < c && (i || a == 0); a++) {
                if (best[a] < 0 || (c < n && !llm_divide_may(m, c))) {
                    continue;
                }

                share = v->bytes[c] - v->bytes[a] + (i ? 0 : v->first)
                        + (i == m->n_parts - 1 ? v->last : 0);
                share = llm_max(best[a], share / v->free[i]);

                if (best[c] < 0 || share < best[c]) {
                    best[c] = share;
                    from[(size_t) i * (n + 1) + c] = a;
                }
            }
        }

        best[0] = -1;
    }

    if (best[n] < 0) {
        return LLM_ERROR;
    }

    for (i = m->n_parts, c = n; i > 0; i--) {
        m->parts[i - 1].end = c;
        c = from[(size_t) (i - 1) * (n + 1) + c];
        m->parts[i - 1].first = c;
    }

    return LLM_OK;
}


/* what each layer keeps in the caches of its part */

static int
llm_divide_caches(llm_load_t *l, llm_model_part_t *p)
{
    uint32_t               k, n;
    llm_model_t           *m = l->m;
    const llm_kv_layer_t  *from;

    n = m->desc.hp.n_layers;
    p->states = calloc(n, sizeof(llm_state_layer_t));

    if (p->states == NULL) {
        return LLM_ERROR;
    }

    memcpy(p->states + p->first, m->desc.states + p->first,
           (p->end - p->first) * sizeof(llm_state_layer_t));

    for (k = 0; k < m->n_kinds; k++) {
        p->kv_layers[k] = calloc(n, sizeof(llm_kv_layer_t));
        from = m->kv_layers[k] ? m->kv_layers[k] : m->desc.kv;

        if (p->kv_layers[k] == NULL) {
            return LLM_ERROR;
        }

        memcpy(p->kv_layers[k] + p->first, from + p->first,
               (p->end - p->first) * sizeof(llm_kv_layer_t));

        /* all layers of an encoder use the pages of the first one */

        if (m->desc.hp.encoder) {
            p->kv_layers[k][0] = from[0];
        }
    }

    return LLM_OK;
}


int
llm_parts_divide(llm_load_t *l)
{
    int            rc;
    double        *room;
    uint32_t       i, n, cuts, *from;
    llm_model_t   *m = l->m;
    llm_divide_t   v;

    if (m->n_parts == 1) {
        return LLM_OK;
    }

    n = m->desc.hp.n_layers;

    for (i = 1, cuts = 0; i < n; i++) {
        cuts += (uint32_t) llm_divide_may(m, i);
    }

    if (m->n_parts > cuts + 1) {
        return llm_fail(l->err, "%s: device=%s: its %u layers can be divided "
                        "among at most %u devices", llm_gguf_name(m->gguf),
                        l->opts->device, n, cuts + 1);
    }

    room = calloc(2 * ((size_t) n + 1) + m->n_parts, sizeof(double));
    from = calloc(((size_t) n + 1) * m->n_parts, sizeof(uint32_t));
    rc = LLM_ERROR;

    if (room && from) {
        v.bytes = room;
        v.free = room + 2 * ((size_t) n + 1);
        llm_divide_bytes(l, &v);
        rc = llm_divide_layers(l, &v, room + n + 1, from);
    }

    for (i = 0; i < m->n_parts && rc == LLM_OK; i++) {
        rc = llm_divide_caches(l, &m->parts[i]);
    }

    free(room);
    free(from);

    return rc == LLM_OK ? LLM_OK
           : llm_fail(l->err, "%s: no memory for the model",
                      llm_gguf_name(m->gguf));
}


/* ---- the devices ---- */

/* each device gets rows from the one before it, the first one drawn tokens from
   the last */

int
llm_parts_link(llm_load_t *l)
{
    uint32_t      i, from;
    llm_model_t  *m = l->m;

    for (i = 0; m->n_parts > 1 && i < m->n_parts; i++) {
        from = (i ? i : m->n_parts) - 1;
        llm_part_enter(m, i);

        if (m->ops->link(m->exec, m->parts[from].exec, l->err) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


/* of several devices, those that are alike together: "NVIDIA H200, bf16
   (cuda:0, cuda:1)" */

void
llm_model_device(const llm_model_t *m, char *buf, size_t size)
{
    char          what[256], last[256];
    size_t        len;
    uint32_t      i, n;
    llm_exec_t   *exec;
    const char   *name;

    m->ops->describe(m->parts[0].exec, buf, size);
    n = llm_max(m->n_members, m->n_parts);

    if (n == 1) {
        return;
    }

    last[0] = '\0';

    for (i = 0, len = 0; i < n && len < size; i++) {
        exec = m->n_members ? m->members[i].exec : m->parts[i].exec;
        name = m->n_members ? m->members[i].name : m->parts[i].name;
        exec->ops->describe(exec, what, sizeof(what));

        if (strcmp(what, last) == 0) {
            len += (size_t) snprintf(buf + len, size - len, ", %s", name);
            continue;
        }

        len += (size_t) snprintf(buf + len, size - len, "%s%s (%s",
                                 i ? "); " : "", what, name);
        strcpy(last, what);
    }

    if (len < size) {
        snprintf(buf + len, size - len, ")");
    }
}


static void
llm_part_free_device(llm_model_t *m)
{
    uint32_t           i;
    llm_model_part_t  *p = m->at;

    for (i = 0; i < LLM_MAX_ROPES; i++) {
        if (p->inv_freq[i]) {
            m->ops->vec_free(m->exec, p->inv_freq[i]);
        }
    }

    if (p->slopes) {
        m->ops->vec_free(m->exec, p->slopes);
    }

    for (i = 0; i < LLM_MA_N; i++) {
        if (p->act[i]) {
            m->ops->act_free(m->exec, p->act[i]);
        }
    }

    if (p->choice) {
        m->ops->choice_free(m->exec, p->choice);
    }

    for (i = 0; i < m->n_kinds; i++) {
        if (p->kv[i]) {
            m->ops->kv_free(m->exec, p->kv[i]);
        }
    }

    if (p->cross) {
        m->ops->kv_free(m->exec, p->cross);
    }

    if (p->state) {
        m->ops->state_free(m->exec, p->state);
    }

    if (m->n_members == 0) {
        llm_devices_close(m->devices, m->exec);
    }
}


void
llm_parts_free(llm_model_t *m)
{
    uint32_t           i, k;
    llm_model_part_t  *p;

    for (i = 0; i < m->n_parts; i++) {
        p = &m->parts[i];

        if (p->exec) {
            llm_part_enter(m, i);
            llm_part_free_device(m);
        }

        for (k = 0; k < LLM_KV_KINDS; k++) {
            free(p->kv_layers[k]);
        }

        free(p->states);
    }

    if (m->n_members) {
        llm_split_close(m);
    }

    free(m->parts);
}
