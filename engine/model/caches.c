/*
 * The caches of a model: pages of keys and values, recurrent states, and how
 * they share the memory that there is.
 *
 * Where some layers have windows and others see everything there are two
 * caches of pages, each of the layers of one kind.  A sequence of ctx needs
 * pages for all its tokens in the first and for a window in the second.
 */

#include "engine/model/model_internal.h"

/* pages of windows that the prefix cache may keep: one for so many others.  A
   window is kept for each place where sequences go on */
#define LLM_CACHES_SPARSE   8


/* what each layer keeps in the first cache, and in that of windows */

static int
llm_load_split_layers(llm_load_t *l)
{
    uint32_t           i, n;
    llm_model_t       *m;
    const llm_desc_t  *d;

    m = l->m;
    d = &m->desc;
    n = d->hp.n_layers;

    m->kv_layers[0] = calloc(n, sizeof(llm_kv_layer_t));
    m->kv_layers[1] = calloc(n, sizeof(llm_kv_layer_t));

    if (m->kv_layers[0] == NULL || m->kv_layers[1] == NULL) {
        return llm_fail(l->err, "%s: no memory for the model",
                        llm_gguf_name(m->gguf));
    }

    for (i = 0; i < n; i++) {
        m->kv_layers[d->layers[i].leaves != 0][i] = d->kv[i];
    }

    return LLM_OK;
}


/* two caches only where the second one would be smaller */

int
llm_load_windows(llm_load_t *l)
{
    llm_model_t  *m;

    m = l->m;
    m->window = llm_desc_window(&m->desc, m->ctx, &m->mixed);

    if (!m->mixed) {
        return LLM_OK;
    }

    if (llm_load_seq_pages(m, 1) >= m->max_pages) {
        m->mixed = 0;
        m->window = 0;
        return LLM_OK;
    }

    return llm_load_split_layers(l);
}


/* how the memory for pages and states is shared out; [1]: of windows */
typedef struct {
    size_t    page[2];                  /* bytes of one */
    size_t    slot;                     /* likewise, 0: there are no states */
    size_t    bytes;                    /* of all */
    uint32_t  need[2];                  /* pages for a sequence of ctx, ... */
    uint64_t  want[2];                  /* ... and for max_seqs; there are no
                                           more if a page takes no memory */
    uint64_t  most[2];                  /* with what the prefix cache may have,
                                           unless memory was configured */
    uint64_t  pages[2];
    uint64_t  slots;
} llm_load_share_t;


/*
 * Pages of both kinds.  One sequence of ctx comes first; then windows for the
 * other sequences that may run, from half of the rest, or as much as they
 * take of sequences of ctx; then eight pages for each one of windows.
 */

static void
llm_load_split(const llm_load_t *l, llm_load_share_t *s, size_t bytes)
{
    size_t    rest;
    double    share;
    uint64_t  both, n;

    both = s->page[0] + s->page[1];
    s->pages[1] = llm_min(s->need[1], bytes / both);
    rest = bytes - s->pages[1] * s->page[1];

    if (s->pages[1] < s->need[1] || rest / s->page[0] <= s->need[0]) {
        s->pages[0] = rest / s->page[0];
        s->pages[0] = s->pages[1] < s->need[1] ? s->pages[1] : s->pages[0];
        return;
    }

    rest -= s->need[0] * s->page[0];
    share = (double) s->need[1] * (double) s->page[1];
    share /= share + (double) s->need[0] * (double) s->page[0];
    share = llm_max(share, 0.5);

    n = (uint64_t) (share * (double) rest / (double) s->page[1]);
    n = llm_min(n, (uint64_t) s->need[1] * (l->m->max_seqs - 1));
    s->pages[1] += n;
    rest -= n * s->page[1];
    s->pages[1] += rest / (LLM_CACHES_SPARSE * s->page[0] + s->page[1]);

    /* what one of them has no use for is the other's */

    n = (bytes - s->pages[1] * s->page[1]) / s->page[0];

    if (n > s->most[0]) {
        n = s->most[0];
        s->pages[1] = (bytes - n * s->page[0]) / s->page[1];
    }

    s->pages[1] = llm_min(llm_min(s->pages[1], s->most[1]), n);
    n = (bytes - s->pages[1] * s->page[1]) / s->page[0];
    s->pages[0] = llm_min(n, s->most[0]);
}


static void
llm_load_pages(const llm_load_t *l, llm_load_share_t *s, size_t bytes)
{
    if (l->m->mixed) {
        llm_load_split(l, s, bytes);
        return;
    }

    s->pages[0] = s->page[0] ? bytes / s->page[0] : s->want[0];
    s->pages[1] = 0;
}


/*
 * A slot for each running sequence; then slots for snapshots, of at most a
 * third of the memory; then pages.
 */

static int
llm_load_slots(llm_load_t *l, llm_load_share_t *s, size_t bytes)
{
    char      size[2][LLM_LOAD_SIZE];
    size_t    run;
    uint64_t  kept;

    s->slots = 0;

    if (s->slot == 0) {
        llm_load_pages(l, s, bytes);
        return LLM_OK;
    }

    if (llm_mul_overflow(s->slot, (size_t) l->m->max_seqs + 1, &run)
        || run > bytes)
    {
        l->memory = l->opts->kv_bytes == 0;

        return llm_fail(l->err, "%s: the recurrent states of %u sequences "
                        "and a copy take %s each, and %s are there for them "
                        "and the KV cache", llm_gguf_name(l->m->gguf),
                        l->m->max_seqs, llm_load_size(size[0], s->slot, 1),
                        llm_load_size(size[1], bytes, 0));
    }

    kept = llm_max(bytes / 3 / s->slot, 1u);
    kept = llm_min(kept, (bytes - run) / s->slot + 1);
    bytes -= run - s->slot + kept * s->slot;
    llm_load_pages(l, s, bytes);
    kept = llm_min(kept, llm_max(s->pages[0], 1u));
    s->slots = l->m->max_seqs + kept;

    return LLM_OK;
}


/* bytes of so many pages of both kinds; SIZE_MAX: more than can be counted */

static size_t
llm_load_bytes_of(const llm_load_share_t *s, const uint64_t *n)
{
    size_t  a, b;

    if (llm_mul_overflow(s->page[0], n[0], &a)
        || llm_mul_overflow(s->page[1], n[1], &b)
        || llm_add_overflow(a, b, &a))
    {
        return SIZE_MAX;
    }

    return a;
}


/* max_seqs sequences of ctx, and half as much again for snapshots; or as much
   as there is memory for */

static int
llm_load_share(llm_load_t *l, llm_load_share_t *s)
{
    size_t        want;
    llm_model_t  *m;

    m = l->m;
    s->bytes = l->opts->kv_bytes;

    if (s->bytes) {
        s->most[0] = UINT32_MAX / 2;
        s->most[1] = UINT32_MAX / 2;
        return llm_load_slots(l, s, s->bytes);
    }

    s->bytes = m->ops->memory_free(m->dev);

    /* of the machine's it is half */

    if (m->promise.listed) {
        s->bytes -= llm_min(s->bytes, llm_promised(m) / 2);
    }

    s->most[0] = s->want[0];
    s->most[1] = s->want[1] + s->want[0] / LLM_CACHES_SPARSE;
    want = llm_load_bytes_of(s, s->most);

    if (want != SIZE_MAX && s->slot
        && (want / m->max_seqs > SIZE_MAX - s->slot
            || llm_mul_overflow(want / m->max_seqs + s->slot,
                                m->max_seqs + 1, &want)
            || llm_add_overflow(want, want / 2, &want)))
    {
        want = SIZE_MAX;
    }

    if (llm_load_slots(l, s, llm_min(s->bytes, want)) != LLM_OK) {
        return LLM_ERROR;
    }

    m->short_kv = s->pages[0] < s->want[0] || s->pages[1] < s->want[1];
    s->pages[0] = llm_min(s->pages[0], s->want[0]);

    return LLM_OK;
}


static int
llm_load_states(llm_load_t *l, uint64_t slots)
{
    llm_model_t       *m = l->m;
    llm_state_opts_t   o = {
        .n_layers = m->desc.hp.n_layers,
        .n_slots = (uint32_t) llm_min(slots, UINT32_MAX / 2),
        .layers = m->desc.states
    };

    if (slots == 0) {
        return LLM_OK;
    }

    m->n_slots = o.n_slots;
    m->state = m->ops->state_create(m->dev, &o, l->err);

    return m->state ? LLM_OK : LLM_ERROR;
}


/* less than a sequence of ctx needs: then ctx is less, unless it was
   configured */

static int
llm_load_less(llm_load_t *l, const llm_load_share_t *s)
{
    char          size[2][LLM_LOAD_SIZE];
    uint64_t      need[2] = { s->need[0], s->need[1] };
    llm_model_t  *m;

    m = l->m;
    l->memory = l->opts->kv_bytes == 0;

    if (l->opts->ctx || s->pages[0] == 0 || (l->opts->whole && l->memory)) {
        return llm_fail(l->err, "%s: the KV cache for one sequence of "
                        "ctx=%u takes %s, and %s are there for it",
                        llm_gguf_name(m->gguf), m->ctx,
                        llm_load_size(size[0], llm_load_bytes_of(s, need), 1),
                        llm_load_size(size[1], s->bytes, 0));
    }

    m->max_pages = (uint32_t) s->pages[0];
    m->ctx = llm_min(m->ctx, m->max_pages * LLM_KV_PAGE);

    llm_load_log(l, LLM_LOG_WARN, "%s: ctx is %u of %u: more does not "
                 "fit in the %s for the KV cache",
                 llm_gguf_name(m->gguf), m->ctx, m->desc.hp.n_ctx_train,
                 llm_load_size(size[0], s->bytes, 0));

    return LLM_OK;
}


/* what is asked for when memory is shared out */

static void
llm_load_wants(llm_load_t *l, llm_load_share_t *s)
{
    int             i;
    llm_model_t    *m;
    llm_kv_opts_t   o;

    m = l->m;
    memset(s, 0, sizeof(llm_load_share_t));
    s->slot = llm_load_slot_size(l);

    for (i = 0; i <= m->mixed; i++) {
        llm_load_kv_opts(l, i, &o);
        s->page[i] = m->ops->kv_page_size(m->dev, &o);
        s->need[i] = llm_load_seq_pages(m, i);
        s->want[i] = (uint64_t) s->need[i] * m->max_seqs;
    }
}


/*
 * Pages and states for max_seqs sequences of ctx, or as many as there is
 * memory for; at least one such sequence must fit.  If ctx was not configured
 * it is reduced.
 */

int
llm_load_caches(llm_load_t *l)
{
    int                i, rc;
    char               size[2][LLM_LOAD_SIZE];
    llm_err_t          why;
    llm_model_t       *m;
    llm_kv_opts_t      o;
    llm_load_share_t   s;

    m = l->m;
    llm_load_wants(l, &s);

    if (llm_load_share(l, &s) != LLM_OK) {
        return LLM_ERROR;
    }

    if ((s.pages[0] < s.need[0] || s.pages[1] < s.need[1])
        && llm_load_less(l, &s) != LLM_OK)
    {
        return LLM_ERROR;
    }

    l->memory = 1;
    rc = llm_load_states(l, s.slots);
    m->kv_bytes = (uint64_t) m->n_slots * s.slot;

    for (i = 0; i <= m->mixed && rc == LLM_OK; i++) {
        llm_load_kv_opts(l, i, &o);
        m->n_pages[i] = (uint32_t) llm_min(s.pages[i], UINT32_MAX / 2);
        o.n_pages = m->n_pages[i];
        m->kv_bytes += (uint64_t) m->n_pages[i] * s.page[i];
        m->kv[i] = m->ops->kv_create(m->dev, &o, l->err);
        rc = m->kv[i] ? LLM_OK : LLM_ERROR;
    }

    if (rc != LLM_OK && l->opts->kv_bytes) {
        why = *l->err;
        return llm_fail(l->err, "%s: kv_cache is %s, and %s are free: %.300s",
                        llm_gguf_name(m->gguf),
                        llm_load_size(size[0], s.bytes, 0),
                        llm_load_size(size[1], m->ops->memory_free(m->dev), 0),
                        why.msg);
    }

    return rc;
}
