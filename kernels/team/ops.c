/*
 * A team's operations: each device's on its part, or on the whole.
 *
 * Products and attention make parts, the former from whole rows.  What works on
 * single values takes its buffers as they are, if they are alike.  A norm of
 * rows works on the whole, on each device: that is cheaper than to wait for the
 * others once more.  The first device alone computes embeddings.
 */

#include "kernels/team/team_internal.h"

/* most products of a call */
#define LLM_TEAM_PRODUCTS  8

/* ---- single values ---- */

/* the form in which y is made of x alone */

static int
llm_team_made(llm_team_t *t, llm_rows_t rows, llm_team_act_t *x,
    const llm_team_act_t *y)
{
    if (y->kind == LLM_ACT_HIDDEN) {
        llm_team_need(t, rows, x, LLM_TEAM_FIRST);
        return LLM_TEAM_FIRST;
    }

    return llm_team_alike(t, rows, x, x);
}


void
llm_team_glu(llm_exec_t *exec, llm_rows_t rows, llm_glu_t act,
    const llm_act_t *gate, const llm_act_t *up, llm_act_t *out)
{
    int              form;
    llm_team_t      *t = (llm_team_t *) exec;
    llm_team_act_t  *g = (llm_team_act_t *) gate;
    llm_team_act_t  *u = (llm_team_act_t *) up;
    llm_team_act_t  *y = (llm_team_act_t *) out;

    form = llm_team_alike(t, rows, g, u);
    llm_team_writes(t, y, form);
    llm_team_run(t, form, glu(e, rows, act, llm_team_at(g, form, i),
                              llm_team_at(u, form, i),
                              llm_team_at(y, form, i)));
}


void
llm_team_act(llm_exec_t *exec, llm_rows_t rows, const llm_act_fn_t *fn,
    const llm_act_t *in, llm_act_t *out)
{
    int              form;
    llm_team_t      *t = (llm_team_t *) exec;
    llm_team_act_t  *x = (llm_team_act_t *) in;
    llm_team_act_t  *y = (llm_team_act_t *) out;

    form = llm_team_made(t, rows, x, y);
    llm_team_writes(t, y, form);
    llm_team_run(t, form, act(e, rows, fn, llm_team_at(x, form, i),
                              llm_team_at(y, form, i)));
}


void
llm_team_scale(llm_exec_t *exec, llm_rows_t rows, float f,
    const llm_act_t *in, int add, llm_act_t *out)
{
    int              form;
    llm_team_t      *t = (llm_team_t *) exec;
    llm_team_act_t  *x = (llm_team_act_t *) in;
    llm_team_act_t  *y = (llm_team_act_t *) out;

    form = add ? llm_team_alike(t, rows, x, y) : llm_team_made(t, rows, x, y);
    llm_team_writes(t, y, form);
    llm_team_run(t, form, scale(e, rows, f, llm_team_at(x, form, i), add,
                                llm_team_at(y, form, i)));
}


void
llm_team_softcap(llm_exec_t *exec, llm_rows_t rows, float cap,
    llm_act_t *act)
{
    int              form;
    llm_team_t      *t = (llm_team_t *) exec;
    llm_team_act_t  *x = (llm_team_act_t *) act;

    form = llm_team_alike(t, rows, x, x);
    llm_team_writes(t, x, form);
    llm_team_run(t, form, softcap(e, rows, cap, llm_team_at(x, form, i)));
}


void
llm_team_add_vec(llm_exec_t *exec, llm_rows_t rows, const llm_vec_t *vec,
    llm_act_t *act)
{
    int                    form;
    llm_team_t            *t = (llm_team_t *) exec;
    llm_team_act_t        *x = (llm_team_act_t *) act;
    const llm_team_vec_t  *v = (const llm_team_vec_t *) vec;

    form = llm_team_alike(t, rows, x, x);
    llm_team_writes(t, x, form);
    llm_team_run(t, form, add_vec(e, rows, llm_team_at(v, form, i),
                                  llm_team_at(x, form, i)));
}


void
llm_team_gather(llm_exec_t *exec, const llm_act_t *in, llm_act_t *out)
{
    int              form;
    llm_team_t      *t = (llm_team_t *) exec;
    llm_team_act_t  *x = (llm_team_act_t *) in;
    llm_team_act_t  *y = (llm_team_act_t *) out;

    form = llm_team_made(t, LLM_ROWS_ALL, x, y);
    llm_team_writes(t, y, form);
    llm_team_run(t, form, gather(e, llm_team_at(x, form, i),
                                 llm_team_at(y, form, i)));
}


/* columns of the whole, which are not where a device's part is */

void
llm_team_columns(llm_exec_t *exec, llm_rows_t rows, const llm_act_t *in,
    uint32_t first, llm_act_t *out)
{
    int              form;
    llm_team_t      *t = (llm_team_t *) exec;
    llm_team_act_t  *x = (llm_team_act_t *) in;
    llm_team_act_t  *y = (llm_team_act_t *) out;

    form = x->forms == LLM_TEAM_FIRST ? LLM_TEAM_FIRST : LLM_TEAM_WHOLE;
    llm_team_need(t, rows, x, form);
    llm_team_writes(t, y, form);
    llm_team_run(t, form, columns(e, rows, llm_team_at(x, form, i), first,
                                  llm_team_at(y, form, i)));
}


/* are the pieces of x that y's part consists of in x's part, on each device? */

static int
llm_team_pieces_fit(const llm_team_t *t, const llm_team_act_t *x,
    uint32_t width, uint32_t stride, const llm_team_act_t *y)
{
    uint32_t  i, n;

    if (x->forms != LLM_TEAM_PART || x->cols % stride || y->cols % width
        || x->cols / stride != y->cols / width)
    {
        return 0;
    }

    n = x->cols / stride;

    for (i = 1; i < t->n; i++) {
        if (llm_team_first(t, x->cols, i) != llm_team_first(t, n, i) * stride
            || llm_team_first(t, y->cols, i) != llm_team_first(t, n, i) * width)
        {
            return 0;
        }
    }

    return 1;
}


void
llm_team_pieces(llm_exec_t *exec, llm_rows_t rows, const llm_act_t *in,
    uint32_t first, uint32_t width, uint32_t stride, llm_act_t *out)
{
    int              form;
    llm_team_t      *t = (llm_team_t *) exec;
    llm_team_act_t  *x = (llm_team_act_t *) in;
    llm_team_act_t  *y = (llm_team_act_t *) out;

    form = llm_team_pieces_fit(t, x, width, stride, y) ? LLM_TEAM_PART
                                                       : LLM_TEAM_WHOLE;
    llm_team_need(t, rows, x, form);
    llm_team_writes(t, y, form);
    llm_team_run(t, form, pieces(e, rows, llm_team_at(x, form, i), first,
                                 width, stride, llm_team_at(y, form, i)));
}


/* ---- rows ---- */

void
llm_team_embed(llm_exec_t *exec, const llm_weight_t *weight, llm_act_t *act)
{
    llm_team_t               *t = (llm_team_t *) exec;
    llm_team_act_t           *x = (llm_team_act_t *) act;
    const llm_team_weight_t  *w = (const llm_team_weight_t *) weight;

    llm_team_writes(t, x, LLM_TEAM_FIRST);
    t->ops->embed(llm_team_device(t, 0), w->whole, x->whole[0]);
}


void
llm_team_input(llm_exec_t *exec, llm_rows_t rows, uint32_t first, int add,
    llm_act_t *act)
{
    llm_team_t      *t = (llm_team_t *) exec;
    llm_team_act_t  *y = (llm_team_act_t *) act;

    llm_team_need(t, rows, y, LLM_TEAM_FIRST);
    llm_team_writes(t, y, LLM_TEAM_FIRST);
    t->ops->input(llm_team_device(t, 0), rows, first, add, y->whole[0]);
}


void
llm_team_embed_pos(llm_exec_t *exec, const llm_weight_t *weight,
    llm_act_t *act)
{
    llm_team_t               *t = (llm_team_t *) exec;
    llm_team_act_t           *x = (llm_team_act_t *) act;
    const llm_team_weight_t  *w = (const llm_team_weight_t *) weight;

    llm_team_need(t, LLM_ROWS_ALL, x, LLM_TEAM_FIRST);
    llm_team_writes(t, x, LLM_TEAM_FIRST);
    t->ops->embed_pos(llm_team_device(t, 0), w->whole, x->whole[0]);
}


/* does each part have whole groups of columns, so that norms of groups can work
   on parts? */

static int
llm_team_groups(const llm_team_t *t, const llm_norm_t *n,
    const llm_team_act_t *x)
{
    return n->group && x->cols / n->group % t->n == 0;
}


/* the form in which a norm works */

static int
llm_team_normed(llm_team_t *t, llm_rows_t rows, const llm_norm_t *n,
    llm_team_act_t *x, llm_team_act_t *y)
{
    int  form;

    form = y->kind == LLM_ACT_HIDDEN || (x == y && x->forms == LLM_TEAM_FIRST)
           ? LLM_TEAM_FIRST
           : x->forms == LLM_TEAM_PART && llm_team_groups(t, n, x)
           ? LLM_TEAM_PART : LLM_TEAM_WHOLE;

    llm_team_need(t, rows, x, form);

    if (n->add) {
        llm_team_need(t, rows, y, form);
    }

    return form;
}


void
llm_team_norm(llm_exec_t *exec, llm_rows_t rows, const llm_act_t *in,
    const llm_norm_t *n, llm_act_t *out)
{
    int                    form, wide;
    uint32_t               k;
    llm_norm_t             of[LLM_MAX_DEVICES];
    llm_team_t            *t = (llm_team_t *) exec;
    llm_team_act_t        *x = (llm_team_act_t *) in;
    llm_team_act_t        *y = (llm_team_act_t *) out;
    const llm_team_vec_t  *w = (const llm_team_vec_t *) n->w;
    const llm_team_vec_t  *bias = (const llm_team_vec_t *) n->bias;

    form = llm_team_normed(t, rows, n, x, y);
    llm_team_writes(t, y, form);

    /* a vector for one group is needed whole */

    wide = w && w->n == x->cols ? form : LLM_TEAM_WHOLE;

    for (k = 0; k < t->n; k++) {
        of[k] = *n;
        of[k].w = llm_team_at(w, wide, k);
        of[k].bias = llm_team_at(bias, form, k);
    }

    llm_team_run(t, form, norm(e, rows, llm_team_at(x, form, i), &of[i],
                               llm_team_at(y, form, i)));
}


/* the form of a product; a matrix with fewer rows than there are devices is on
   each, and so is its product */

static int
llm_team_product(const llm_team_t *t, const llm_linear_t *out)
{
    const llm_team_weight_t  *w = (const llm_team_weight_t *) out->w;

    return w->n_out < t->n ? LLM_TEAM_WHOLE : LLM_TEAM_PART;
}


/* a device's rows of each matrix, of all rows of x */

void
llm_team_linear(llm_exec_t *exec, llm_rows_t rows, const llm_act_t *in,
    const llm_linear_t *out, uint32_t n)
{
    int                       form;
    uint32_t                  i, k;
    llm_team_t               *t = (llm_team_t *) exec;
    llm_linear_t              of[LLM_TEAM_PRODUCTS];
    llm_team_act_t           *x = (llm_team_act_t *) in;
    llm_team_act_t           *y;
    const llm_team_vec_t     *bias;
    const llm_team_weight_t  *w;

    assert(n <= LLM_TEAM_PRODUCTS);

    llm_team_need(t, rows, x, LLM_TEAM_WHOLE);

    for (k = 0; k < n; k++) {
        y = (llm_team_act_t *) out[k].y;

        if (out[k].add) {
            llm_team_need(t, rows, y, llm_team_product(t, &out[k]));
        }

        llm_team_writes(t, y, llm_team_product(t, &out[k]));
    }

    for (i = 0; i < t->n; i++) {
        for (k = 0; k < n; k++) {
            y = (llm_team_act_t *) out[k].y;
            w = (const llm_team_weight_t *) out[k].w;
            bias = (const llm_team_vec_t *) out[k].bias;
            form = llm_team_product(t, &out[k]);

            of[k].w = w->part[i];
            of[k].bias = llm_team_at(bias, form, i);
            of[k].y = llm_team_at(y, form, i);
            of[k].add = out[k].add;
        }

        t->ops->linear(llm_team_device(t, i), rows, x->whole[i], of, n);
    }
}


/* ---- attention ---- */

/* a device's heads; of a latent layer the head of K is that of all */

static llm_heads_t
llm_team_heads(const llm_team_t *t, uint32_t i, const llm_heads_t *all)
{
    llm_heads_t            h = *all;
    const llm_team_vec_t  *q_norm = (const llm_team_vec_t *) all->q_norm;
    const llm_team_vec_t  *k_norm = (const llm_team_vec_t *) all->k_norm;
    const llm_team_vec_t  *sinks = (const llm_team_vec_t *) all->sinks;
    const llm_team_vec_t  *slopes = (const llm_team_vec_t *) all->slopes;

    h.n_heads /= t->n;
    h.n_kv_heads /= h.latent ? 1 : t->n;
    h.q_norm = llm_team_at(q_norm, LLM_TEAM_WHOLE, i);
    h.k_norm = llm_team_at(k_norm, LLM_TEAM_WHOLE, i);
    h.sinks = llm_team_at(sinks, LLM_TEAM_PART, i);
    h.slopes = llm_team_at(slopes, LLM_TEAM_PART, i);

    return h;
}


void
llm_team_rope_kv(llm_exec_t *exec, const llm_heads_t *h,
    const llm_rope_t *rope, llm_act_t *queries, llm_act_t *keys,
    const llm_act_t *values, llm_kv_t *cache)
{
    int                    form = h->latent ? LLM_TEAM_WHOLE : LLM_TEAM_PART;
    uint32_t               i;
    llm_rope_t             r = *rope;
    llm_team_t            *t = (llm_team_t *) exec;
    llm_heads_t            heads;
    llm_team_kv_t         *kv = (llm_team_kv_t *) cache;
    llm_team_act_t        *q = (llm_team_act_t *) queries;
    llm_team_act_t        *k = (llm_team_act_t *) keys;
    llm_team_act_t        *v = (llm_team_act_t *) values;
    const llm_team_vec_t  *inv_freq = (const llm_team_vec_t *) rope->inv_freq;

    llm_team_need(t, LLM_ROWS_ALL, q, LLM_TEAM_PART);
    llm_team_writes(t, q, LLM_TEAM_PART);

    if (k) {
        llm_team_need(t, LLM_ROWS_ALL, v, form);
        llm_team_need(t, LLM_ROWS_ALL, k, form);
        llm_team_writes(t, k, form);
    }

    for (i = 0; i < t->n; i++) {
        heads = llm_team_heads(t, i, h);
        r.inv_freq = llm_team_at(inv_freq, LLM_TEAM_WHOLE, i);
        t->ops->rope_kv(llm_team_device(t, i), &heads, &r, q->part[i],
                        llm_team_at(k, form, i), llm_team_at(v, form, i),
                        kv->part[i]);
    }
}


void
llm_team_attention(llm_exec_t *exec, const llm_heads_t *h,
    const llm_act_t *queries, const llm_kv_t *cache, llm_act_t *result)
{
    uint32_t              i;
    llm_team_t           *t = (llm_team_t *) exec;
    llm_heads_t           heads;
    llm_team_act_t       *q = (llm_team_act_t *) queries;
    llm_team_act_t       *out = (llm_team_act_t *) result;
    const llm_team_kv_t  *kv = (const llm_team_kv_t *) cache;

    llm_team_need(t, LLM_ROWS_ALL, q, LLM_TEAM_PART);
    llm_team_writes(t, out, LLM_TEAM_PART);

    for (i = 0; i < t->n; i++) {
        heads = llm_team_heads(t, i, h);
        t->ops->attention(llm_team_device(t, i), &heads, q->part[i],
                          kv->part[i], out->part[i]);
    }
}


/* a device's heads have their matrices there */

llm_weight_t *
llm_team_heads_create(llm_exec_t *exec, uint32_t type, uint32_t n_heads,
    uint32_t n_out, uint32_t n_in, const void *src, size_t stride,
    llm_err_t *err)
{
    uint32_t            i;
    llm_team_t         *t = (llm_team_t *) exec;
    const char         *from;
    llm_team_weight_t  *w;

    assert(n_heads % t->n == 0);

    w = calloc(1, sizeof(llm_team_weight_t));

    if (w == NULL) {
        (void) llm_fail(err, "no memory for the weights of heads");
        return NULL;
    }

    w->n_out = n_out;
    w->n_heads = n_heads;

    for (i = 0; i < t->n; i++) {
        from = (const char *) src + llm_team_first(t, n_heads, i) * stride;
        w->part[i] = t->ops->heads_create(llm_team_device(t, i), type,
                                          n_heads / t->n, n_out, n_in, from,
                                          stride, err);
        if (w->part[i] == NULL) {
            llm_team_weight_free(exec, (llm_weight_t *) w);
            return NULL;
        }
    }

    return (llm_weight_t *) w;
}


void
llm_team_linear_heads(llm_exec_t *exec, llm_rows_t rows,
    const llm_weight_t *weight, const llm_act_t *in, llm_act_t *out)
{
    uint32_t                  i;
    llm_team_t               *t = (llm_team_t *) exec;
    llm_team_act_t           *x = (llm_team_act_t *) in;
    llm_team_act_t           *y = (llm_team_act_t *) out;
    const llm_team_weight_t  *w = (const llm_team_weight_t *) weight;

    llm_team_need(t, rows, x, LLM_TEAM_PART);
    llm_team_writes(t, y, LLM_TEAM_PART);

    for (i = 0; i < t->n; i++) {
        t->ops->linear_heads(llm_team_device(t, i), rows, w->part[i],
                             x->part[i], y->part[i]);
    }
}
