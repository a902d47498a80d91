/*
 * Runs a head: makes what its rows are given, and its steps; see head.h.
 */

#include "engine/model/head.h"
#include "engine/model/model_internal.h"

#include <math.h>

/* rows of a step, unless there is more to be computed at once */
#define LLM_HEAD_BATCH  64


struct llm_head_s {
    llm_model_t              *m;
    llm_model_t              *of;
    llm_head_kind_t           kind;

    /* on the host */
    const llm_gguf_tensor_t  *embd;     /* embeddings, of a file that is open */
    uint32_t                  n_embd;   /* their width */
    float                     scale;    /* factor on them */
    float                    *norm[2];  /* weights of the norms of an embedding
                                           and of a state; NULL: none */
    float                    *norm_taps;    /* of EAGLE3's three states as one
                                           vector, or NULL */

    uint32_t                  width;    /* of a row's states */
    uint32_t                  ctx;      /* of a seat */
    uint32_t                  n_pages;  /* of a seat */
    uint32_t                  last;     /* result of the last step that the next
                                           row is made from */

    /* arrays of a step */
    float                    *given;    /* [batch][widest row] */
    float                    *made;     /* [batch][n_embd of m] EAGLE3's rows */
    int32_t                  *tokens;   /* [batch] zeros */
    uint32_t                 *numbers;  /* [batch] 0, 1, 2 ... */
    uint32_t                 *pos;      /* [batch] */
    uint32_t                 *turns;    /* [batch][LLM_TURNS] */
    uint32_t                 *table;    /* [pages of a sequence] */
};


/* ---- loading ---- */

/* a tensor as floats on the host; NULL: there is none, or no memory */

static float *
llm_head_floats(const llm_gguf_tensor_t *t)
{
    float  *f;

    f = t ? malloc(t->ne[0] * t->ne[1] * sizeof(float)) : NULL;

    if (f) {
        llm_dequantize(t->type, t->data, f, t->ne[0] * t->ne[1]);
    }

    return f;
}


/* embeddings and norms on the host */

static int
llm_head_host(llm_head_t *h, llm_err_t *err)
{
    uint32_t                  i;
    const llm_desc_t         *d = &h->m->desc;
    const llm_gguf_tensor_t  *own, *norms[3];
    const llm_tensor_part_t  *l = d->layers[0].tensors;

    own = NULL;
    memset(norms, 0, sizeof(norms));
    h->scale = h->of->desc.embd_scale;

    switch (h->kind) {

    case LLM_HEAD_MTP:
        own = l[LLM_LT_NEXTN_EMBD].t;
        norms[0] = l[LLM_LT_NEXTN_EMBD_NORM].t;
        norms[1] = l[LLM_LT_NEXTN_STATE_NORM].t;
        break;

    case LLM_HEAD_EAGLE3:
        own = d->global[LLM_GT_TOKEN_EMBD];
        norms[0] = l[LLM_LT_ATTN_NORM].t;
        norms[1] = l[LLM_LT_ATTN_AGAIN].t;
        norms[2] = d->global[LLM_GT_TAPS_NORM];
        h->scale = 1;
        break;

    case LLM_HEAD_ASSISTANT:
    case LLM_HEAD_NONE:
        break;
    }

    h->embd = own ? own : h->of->desc.global[LLM_GT_TOKEN_EMBD];
    h->n_embd = (uint32_t) h->embd->ne[0];
    h->norm[0] = llm_head_floats(norms[0]);
    h->norm[1] = llm_head_floats(norms[1]);
    h->norm_taps = llm_head_floats(norms[2]);

    for (i = 0; i < llm_nelems(norms); i++) {
        if (norms[i] && (i < 2 ? h->norm[i] : h->norm_taps) == NULL) {
            return llm_fail(err, "no memory for the head that drafts");
        }
    }

    return LLM_OK;
}


/* are all of EAGLE3's tokens those of the model? */

static int
llm_head_words(const llm_head_t *h, llm_err_t *err)
{
    int64_t                   id;
    uint32_t                  i;
    const char               *p;
    const llm_gguf_tensor_t  *t = h->m->desc.head.words;

    for (i = 0; t && i < t->ne[0]; i++) {
        p = t->data;
        memcpy(&id, p + i * sizeof(id), sizeof(id));

        if (id < 0 || id >= h->of->desc.hp.n_vocab) {
            return llm_fail(err, "%s: " LLM_GGUF_WORDS ": %lld is no token of "
                            "%s", llm_gguf_name(h->m->gguf), (long long) id,
                            llm_gguf_name(h->of->gguf));
        }
    }

    return LLM_OK;
}


static int
llm_head_arrays(llm_head_t *h, llm_err_t *err)
{
    size_t              n, cols;
    uint32_t            i;
    const llm_model_t  *m = h->m;

    n = m->batch;
    cols = llm_max(h->width, 3 * m->desc.hp.n_embd);
    cols = llm_max(cols, m->desc.head.n_in);

    h->given = malloc(n * cols * sizeof(float));
    h->made = malloc(n * m->desc.hp.n_embd * sizeof(float));
    h->tokens = calloc(n, sizeof(*h->tokens));
    h->numbers = malloc(n * sizeof(*h->numbers));
    h->pos = malloc(n * sizeof(*h->pos));
    h->turns = malloc(n * LLM_TURNS * sizeof(*h->turns));
    h->table = malloc((m->max_pages + 1) * sizeof(*h->table));

    if (h->given == NULL || h->made == NULL
        || h->tokens == NULL || h->numbers == NULL || h->pos == NULL
        || h->turns == NULL || h->table == NULL)
    {
        return llm_fail(err, "no memory for the head that drafts");
    }

    for (i = 0; i < n; i++) {
        h->numbers[i] = i;
    }

    return LLM_OK;
}


/* divides the pages among the seats */

static int
llm_head_pages(llm_head_t *h, llm_err_t *err)
{
    const llm_model_t  *m = h->m;

    h->ctx = m->ctx;

    if (h->kind == LLM_HEAD_ASSISTANT) {
        return LLM_OK;
    }

    h->n_pages = llm_min(m->n_pages[LLM_KV_FULL] / m->max_seqs, m->max_pages);
    h->ctx = llm_min(h->ctx, h->n_pages * LLM_KV_PAGE);

    return h->ctx ? LLM_OK : llm_fail(err, "no pages for the head that "
                                      "drafts");
}


llm_head_t *
llm_head_load(llm_model_t *of, const char *path, const llm_model_opts_t *opts,
    llm_err_t *err)
{
    llm_head_t        *h;
    llm_model_opts_t   o;

    h = calloc(1, sizeof(*h));
    if (h == NULL) {
        (void) llm_fail(err, "no memory for the head that drafts");
        return NULL;
    }

    o = *opts;
    o.device = llm_part_last(of)->name;
    o.split_rows = 0;
    o.packed = NULL;
    o.tower = NULL;
    o.draft = NULL;
    o.drafts = 0;
    o.progress = NULL;
    o.batch = opts->batch ? opts->batch : LLM_HEAD_BATCH;
    o.max_out = o.batch;
    memset(&o.keep, 0, sizeof(o.keep));

    h->of = of;
    h->m = llm_model_load_head(of, path, &o, err);

    if (h->m) {
        h->kind = h->m->desc.head.kind;
        h->width = h->m->desc.head.n_target
                   * (h->kind == LLM_HEAD_EAGLE3 ? LLM_HEAD_TAPS : 1);
    }

    if (h->m == NULL || llm_head_host(h, err) != LLM_OK
        || llm_head_words(h, err) != LLM_OK
        || llm_head_arrays(h, err) != LLM_OK
        || llm_head_pages(h, err) != LLM_OK)
    {
        llm_head_free(h);
        return NULL;
    }

    return h;
}


void
llm_head_free(llm_head_t *h)
{
    if (h == NULL) {
        return;
    }

    llm_model_free(h->m);
    free(h->norm[0]);
    free(h->norm[1]);
    free(h->norm_taps);
    free(h->given);
    free(h->made);
    free(h->tokens);
    free(h->numbers);
    free(h->pos);
    free(h->turns);
    free(h->table);
    free(h);
}


/* ---- sizes ---- */

uint32_t
llm_head_width(const llm_head_t *h)
{
    return h->width;
}


uint32_t
llm_head_ctx(const llm_head_t *h)
{
    return h->ctx;
}


uint32_t
llm_head_batch(const llm_head_t *h)
{
    return h->m->batch;
}


uint32_t
llm_head_seats(const llm_head_t *h)
{
    return h->m->max_seqs;
}


int
llm_head_is_last(const llm_head_t *h)
{
    return h->kind == LLM_HEAD_ASSISTANT;
}


uint32_t
llm_head_n_tokens(const llm_head_t *h)
{
    return (uint32_t) h->embd->ne[1];
}


uint32_t
llm_head_n_vocab(const llm_head_t *h)
{
    return h->m->desc.hp.n_vocab;
}


int32_t
llm_head_token(const llm_head_t *h, uint32_t i)
{
    int64_t                   id;
    const char               *p;
    const llm_gguf_tensor_t  *t = h->m->desc.head.words;

    if (t == NULL) {
        return (int32_t) i;
    }

    p = t->data;
    memcpy(&id, p + i * sizeof(id), sizeof(id));

    return (int32_t) id;
}


/* ---- what rows are made of ---- */

void
llm_head_read(const llm_head_t *h, uint32_t row, uint32_t n, float *to)
{
    uint32_t      i, k, w;
    const float  *from;

    w = h->m->desc.head.n_target;

    for (k = 0; k < h->width / w; k++) {
        from = llm_model_kept(h->of, k, row, n);

        for (i = 0; i < n; i++) {
            memcpy(to + (size_t) i * h->width + (size_t) k * w,
                   from + (size_t) i * w, w * sizeof(float));
        }
    }
}


/* y = RMS norm of x, with weights */

static void
llm_head_norm(const llm_head_t *h, const float *x, const float *w, uint32_t n,
    float *y)
{
    double    sum;
    float     f;
    uint32_t  i;

    for (sum = 0, i = 0; i < n; i++) {
        sum += (double) x[i] * x[i];
    }

    f = (float) (1 / sqrt(sum / n + h->m->desc.hp.norm_eps));

    for (i = 0; i < n; i++) {
        y[i] = x[i] * f * w[i];
    }
}


/* the embedding of a token */

static void
llm_head_embed(const llm_head_t *h, int32_t id, float *y)
{
    uint32_t     i;
    const char  *rows = h->embd->data;

    /* a head may have fewer embeddings than the model has tokens */

    if ((uint32_t) id >= llm_head_n_tokens(h)) {
        memset(y, 0, h->n_embd * sizeof(float));
        return;
    }

    llm_dequantize(h->embd->type,
                   rows + (size_t) id * llm_type_row_size(h->embd->type,
                                                          h->n_embd),
                   y, h->n_embd);

    for (i = 0; h->scale != 1 && i < h->n_embd; i++) {
        y[i] *= h->scale;
    }

    if (h->norm[0]) {
        llm_head_norm(h, y, h->norm[0], h->n_embd, y);
    }
}


/* what a row is given: its token's embedding, a state, and in EAGLE3 what
   attention's result is added to; returns the number of columns */

static uint32_t
llm_head_give(const llm_head_t *h, int32_t id, const float *state, float *y)
{
    uint32_t  n;
    float    *second;

    n = h->m->desc.head.n_in / 2;
    second = y + n;
    llm_head_embed(h, id, y);

    if (h->norm[1]) {
        llm_head_norm(h, state, h->norm[1], n, second);

    } else {
        memcpy(second, state, n * sizeof(float));
    }

    if (h->kind != LLM_HEAD_EAGLE3) {
        return 2 * n;
    }

    memcpy(second + n, h->m->desc.head.norm_residual ? second : state,
           n * sizeof(float));

    return 3 * n;
}


/* ---- steps ---- */

/* a step of n given rows; the last row gives results, or each */

static int
llm_head_step(llm_head_t *h, const llm_head_at_t *at, uint32_t n,
    uint32_t cols, llm_gives_t gives, int all, llm_err_t *err)
{
    uint32_t     i, k, rows[2], kv_len;
    llm_batch_t  b;

    rows[0] = 0;
    rows[1] = n;

    memset(&b, 0, sizeof(b));
    b.n_tokens = n;
    b.n_seqs = 1;
    b.n_out = all ? n : 1;
    b.gives = gives;
    b.tokens = h->tokens;
    b.pos = h->pos;
    b.seq_rows = rows;
    b.kv_len = &kv_len;
    b.out_rows = h->numbers + (all ? 0 : n - 1);
    b.given = h->numbers;
    b.rows = h->given;
    b.n_given = n;
    b.given_cols = cols;

    if (h->kind == LLM_HEAD_ASSISTANT) {
        kv_len = at->pos;
        b.max_pages = at->n_pages;
        b.turns = h->turns;

        for (k = 0; k < LLM_KV_KINDS; k++) {
            b.pages[k] = at->pages[k];
        }

        /* the row sees what the model has, and is after that */

        h->pos[0] = at->pos - 1;
        h->turns[0] = h->turns[1] = h->turns[2] = at->pos;

        return llm_model_forward(h->m, &b, err);
    }

    kv_len = at->pos + n;
    b.max_pages = (kv_len + LLM_KV_PAGE - 1) / LLM_KV_PAGE;

    for (i = 0; i < b.max_pages; i++) {
        h->table[i] = at->seat * h->n_pages + i;
    }

    for (i = 0; i < n; i++) {
        h->pos[i] = at->pos + i;
    }

    for (k = 0; k < LLM_KV_KINDS; k++) {
        b.pages[k] = h->table;
    }

    return llm_model_forward(h->m, &b, err);
}


/* EAGLE3's rows of what three layers have read; NULL: the device failed */

static const float *
llm_head_make(llm_head_t *h, const llm_head_at_t *at, const float *states,
    uint32_t n, llm_err_t *err)
{
    size_t    width;
    uint32_t  i;

    width = h->width;

    for (i = 0; i < n; i++) {
        if (h->norm_taps) {
            llm_head_norm(h, states + i * width, h->norm_taps, h->width,
                          h->given + i * width);

        } else {
            memcpy(h->given + i * width, states + i * width,
                   width * sizeof(float));
        }
    }

    if (llm_head_step(h, at, n, h->width, LLM_GIVES_HIDDEN, 1, err)
        != LLM_OK)
    {
        return NULL;
    }

    memcpy(h->made, llm_model_hidden(h->m, 0),
           (size_t) n * h->m->desc.hp.n_embd * sizeof(float));

    return h->made;
}


int
llm_head_rows(llm_head_t *h, const llm_head_at_t *at, const int32_t *ids,
    const float *states, uint32_t n, int all, llm_err_t *err)
{
    size_t    width;
    uint32_t  i, cols;

    width = h->width;

    if (h->kind == LLM_HEAD_EAGLE3) {
        width = h->m->desc.hp.n_embd;
        states = llm_head_make(h, at, states, n, err);

        if (states == NULL) {
            return LLM_ERROR;
        }
    }

    cols = h->m->desc.head.n_in / 2 * (h->kind == LLM_HEAD_EAGLE3 ? 3 : 2);

    for (i = 0; i < n; i++) {
        (void) llm_head_give(h, ids[i], states + i * width,
                             h->given + (size_t) i * cols);
    }

    h->last = all ? n - 1 : 0;

    return llm_head_step(h, at, n, cols, LLM_GIVES_BOTH, all, err);
}


int
llm_head_next(llm_head_t *h, const llm_head_at_t *at, int32_t id,
    llm_err_t *err)
{
    uint32_t  cols;

    cols = llm_head_give(h, id, llm_model_hidden(h->m, h->last), h->given);
    h->last = 0;

    return llm_head_step(h, at, 1, cols, LLM_GIVES_BOTH, 0, err);
}


const float *
llm_head_logits(llm_head_t *h, uint32_t i)
{
    return llm_model_logits(h->m, i);
}
