/*
 * A team's weights, vectors, buffers and caches: one on each device, with the
 * device's rows, columns or heads.  A latent cache, which has one head, is
 * whole on each.
 *
 * A team's object owns those of the devices.  What could not be created in part
 * is freed again.
 */

#include "kernels/team/team_internal.h"


size_t
llm_team_memory_free(llm_exec_t *exec)
{
    size_t       n, least;
    uint32_t     i;
    llm_team_t  *t = (llm_team_t *) exec;

    /* all devices have the same share of a page, so the fullest one counts */

    for (i = 0, least = SIZE_MAX; i < t->n; i++) {
        n = t->ops->memory_free(llm_team_device(t, i));
        least = llm_min(least, n);
    }

    return least * t->n;
}


/* ---- weights and vectors ---- */

/* a device's rows of a matrix, for linear(); one with fewer rows than there are
   devices is on each */

static llm_weight_t *
llm_team_rows(llm_team_t *t, uint32_t i, uint32_t type, uint32_t n_out,
    uint32_t n_in, const void *src, int usage, llm_err_t *err)
{
    uint32_t  first, n;

    first = n_out < t->n ? 0 : llm_team_first(t, n_out, i);
    n = n_out < t->n ? n_out : llm_team_width(t, n_out, i);

    return t->ops->weight_create(llm_team_device(t, i), type, n, n_in,
                                 (const char *) src
                                 + first * llm_type_row_size(type, n_in),
                                 usage & ~LLM_WEIGHT_EMBED, err);
}


llm_weight_t *
llm_team_weight_create(llm_exec_t *exec, uint32_t type, uint32_t n_out,
    uint32_t n_in, const void *src, int usage, llm_err_t *err)
{
    uint32_t            i, n;
    llm_team_t         *t = (llm_team_t *) exec;
    llm_team_weight_t  *w;

    w = calloc(1, sizeof(llm_team_weight_t));

    if (w == NULL) {
        (void) llm_fail(err, "no memory for a weight");
        return NULL;
    }

    w->n_out = n_out;
    n = usage & LLM_WEIGHT_LINEAR ? t->n : 0;

    for (i = 0; i < n; i++) {
        w->part[i] = llm_team_rows(t, i, type, n_out, n_in, src, usage, err);

        if (w->part[i] == NULL) {
            break;
        }
    }

    if (i == n && usage & LLM_WEIGHT_EMBED) {
        w->whole = t->ops->weight_create(llm_team_device(t, 0), type, n_out,
                                         n_in, src, LLM_WEIGHT_EMBED, err);
    }

    if (i < n || (usage & LLM_WEIGHT_EMBED && w->whole == NULL)) {
        llm_team_weight_free(exec, (llm_weight_t *) w);
        return NULL;
    }

    return (llm_weight_t *) w;
}


void
llm_team_weight_free(llm_exec_t *exec, llm_weight_t *weight)
{
    llm_team_t         *t = (llm_team_t *) exec;
    llm_team_weight_t  *w = (llm_team_weight_t *) weight;

    llm_team_drop(t, weight_free, w->part);

    if (w->whole) {
        t->ops->weight_free(llm_team_device(t, 0), w->whole);
    }

    free(w);
}


int
llm_team_weight_scale(llm_exec_t *exec, llm_weight_t *weight,
    const float *scales, llm_err_t *err)
{
    uint32_t            i;
    llm_team_t         *t = (llm_team_t *) exec;
    llm_team_weight_t  *w = (llm_team_weight_t *) weight;

    for (i = 0; i < t->n; i++) {
        if (t->ops->weight_scale(llm_team_device(t, i), w->part[i],
                                 scales + llm_team_first(t, w->n_heads, i), err)
            != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


/* all of it on each device, and the device's part: who uses it knows which */

llm_vec_t *
llm_team_vec_create(llm_exec_t *exec, const float *src, uint32_t n,
    llm_err_t *err)
{
    uint32_t         i;
    llm_team_t      *t = (llm_team_t *) exec;
    llm_exec_t      *one;
    llm_team_vec_t  *v;

    v = calloc(1, sizeof(llm_team_vec_t));

    if (v == NULL) {
        (void) llm_fail(err, "no memory for a vector");
        return NULL;
    }

    v->n = n;

    for (i = 0; i < t->n; i++) {
        one = llm_team_device(t, i);
        v->whole[i] = t->ops->vec_create(one, src, n, err);

        if (v->whole[i] && n >= t->n) {
            v->part[i] = t->ops->vec_create(one,
                                            src + llm_team_first(t, n, i),
                                            llm_team_width(t, n, i), err);
        }

        if (v->whole[i] == NULL || (n >= t->n && v->part[i] == NULL)) {
            llm_team_vec_free(exec, (llm_vec_t *) v);
            return NULL;
        }
    }

    return (llm_vec_t *) v;
}


void
llm_team_vec_free(llm_exec_t *exec, llm_vec_t *vec)
{
    llm_team_t      *t = (llm_team_t *) exec;
    llm_team_vec_t  *v = (llm_team_vec_t *) vec;

    llm_team_drop(t, vec_free, v->whole);
    llm_team_drop(t, vec_free, v->part);
    free(v);
}


/* ---- activations ---- */

/* a device's buffers: the model's logits and states are those of the first,
   where all of their columns are */

static int
llm_team_act_of(llm_team_act_t *a, uint32_t i, uint32_t max_rows,
    llm_err_t *err)
{
    int              result;
    llm_exec_t      *one;
    llm_team_t      *t = a->team;
    llm_act_kind_t   kind;

    one = llm_team_device(t, i);
    result = a->kind == LLM_ACT_LOGITS || a->kind == LLM_ACT_HIDDEN;
    kind = a->kind == LLM_ACT_LOGITS ? LLM_ACT_RESIDUAL : a->kind;

    if (a->kind != LLM_ACT_HIDDEN) {
        a->part[i] = t->ops->act_create(one, max_rows,
                                        llm_team_width(t, a->cols, i), kind,
                                        err);
        if (a->part[i] == NULL) {
            return LLM_ERROR;
        }
    }

    if (i == 0 || !result) {
        a->whole[i] = t->ops->act_create(one, max_rows, a->cols, a->kind,
                                         err);
        if (a->whole[i] == NULL) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


llm_act_t *
llm_team_act_create(llm_exec_t *exec, uint32_t max_rows, uint32_t cols,
    llm_act_kind_t kind, llm_err_t *err)
{
    uint32_t         i;
    llm_team_t      *t = (llm_team_t *) exec;
    llm_team_act_t  *a;

    a = calloc(1, sizeof(llm_team_act_t));

    if (a == NULL) {
        (void) llm_fail(err, "no memory for activations");
        return NULL;
    }

    a->team = t;
    a->kind = kind;
    a->cols = cols;

    for (i = 0; i < t->n; i++) {
        if (llm_team_act_of(a, i, max_rows, err) != LLM_OK) {
            llm_team_act_free(exec, (llm_act_t *) a);
            return NULL;
        }
    }

    if (kind == LLM_ACT_LOGITS) {
        t->logits = a;
    }

    return (llm_act_t *) a;
}


void
llm_team_act_free(llm_exec_t *exec, llm_act_t *act)
{
    llm_team_t      *t = (llm_team_t *) exec;
    llm_team_act_t  *a = (llm_team_act_t *) act;

    llm_team_drop(t, act_free, a->part);
    llm_team_drop(t, act_free, a->whole);

    t->logits = t->logits == a ? NULL : t->logits;
    free(a);
}


void
llm_team_act_cols(llm_act_t *act, uint32_t cols)
{
    uint32_t         i;
    llm_team_act_t  *a = (llm_team_act_t *) act;
    llm_team_t      *t = a->team;

    if (a->cols == cols) {
        return;
    }

    a->cols = cols;
    a->forms = 0;

    for (i = 0; i < t->n; i++) {
        if (a->part[i]) {
            t->ops->act_cols(a->part[i], llm_team_width(t, cols, i));
        }

        if (a->whole[i]) {
            t->ops->act_cols(a->whole[i], cols);
        }
    }
}


/* ---- keys and values ---- */

/* bytes of a page on all devices together: what it has on one, but latent
   layers have all of theirs on each */

size_t
llm_team_kv_page_size(llm_exec_t *exec, const llm_kv_opts_t *opts)
{
    size_t          size;
    uint32_t        i;
    llm_team_t     *t = (llm_team_t *) exec;
    llm_kv_opts_t   o = *opts;

    size = t->ops->kv_page_size(t->of[0], opts);
    o.n_layers = 1;

    for (i = 0; opts->layers && i < opts->n_layers; i++) {
        if (opts->layers[i].latent) {
            o.layers = &opts->layers[i];
            size += (t->n - 1) * t->ops->kv_page_size(t->of[0], &o);
        }
    }

    return size;
}


/* a device's heads of each layer; the head of latent layers is that of all */

static int
llm_team_kv_layers(const llm_team_t *t, llm_team_kv_t *kv, llm_kv_opts_t *o)
{
    uint32_t  i;

    o->n_heads /= t->n;
    o->n_kv_heads /= t->n;

    if (o->layers == NULL) {
        return LLM_OK;
    }

    kv->layers = malloc(o->n_layers * sizeof(llm_kv_layer_t));

    if (kv->layers == NULL) {
        return LLM_ERROR;
    }

    for (i = 0; i < o->n_layers; i++) {
        kv->layers[i] = o->layers[i];

        if (!kv->layers[i].latent) {
            assert(kv->layers[i].n_kv_heads % t->n == 0);
            kv->layers[i].n_kv_heads /= t->n;
        }

        o->n_kv_heads = llm_max(o->n_kv_heads, kv->layers[i].n_kv_heads);
    }

    o->layers = kv->layers;

    return LLM_OK;
}


llm_kv_t *
llm_team_kv_create(llm_exec_t *exec, const llm_kv_opts_t *opts,
    llm_err_t *err)
{
    uint32_t        i;
    llm_team_t     *t = (llm_team_t *) exec;
    llm_kv_opts_t   o = *opts;
    llm_team_kv_t  *kv;

    kv = calloc(1, sizeof(llm_team_kv_t));

    if (kv == NULL || llm_team_kv_layers(t, kv, &o) != LLM_OK) {
        free(kv);
        (void) llm_fail(err, "no memory for the KV cache");
        return NULL;
    }

    for (i = 0; i < t->n; i++) {
        kv->part[i] = t->ops->kv_create(llm_team_device(t, i), &o, err);

        if (kv->part[i] == NULL) {
            llm_team_kv_free(exec, (llm_kv_t *) kv);
            return NULL;
        }
    }

    return (llm_kv_t *) kv;
}


void
llm_team_kv_free(llm_exec_t *exec, llm_kv_t *cache)
{
    llm_team_t     *t = (llm_team_t *) exec;
    llm_team_kv_t  *kv = (llm_team_kv_t *) cache;

    llm_team_drop(t, kv_free, kv->part);
    free(kv->layers);
    free(kv);
}


void
llm_team_kv_copy(llm_exec_t *exec, llm_kv_t *cache, uint32_t src,
    uint32_t dst)
{
    uint32_t        i;
    llm_team_t     *t = (llm_team_t *) exec;
    llm_team_kv_t  *kv = (llm_team_kv_t *) cache;

    for (i = 0; i < t->n; i++) {
        t->ops->kv_copy(llm_team_device(t, i), kv->part[i], src, dst);
    }
}
