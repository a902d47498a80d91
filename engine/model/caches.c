/*
 * Creates the caches of a model, pages of keys and values and recurrent states,
 * and divides the available memory between them.
 *
 * If some layers have windows and others see everything there are two caches
 * of pages, LLM_KV_FULL and LLM_KV_WINDOW.  A sequence of ctx needs pages for
 * all its tokens in the first and for a window in the second.
 */

#include "engine/model/model_internal.h"

/* pages of LLM_KV_FULL for each page of LLM_KV_WINDOW that the prefix cache may
   keep: it keeps a window only at positions where sequences continue */
#define LLM_CACHES_SPARSE   8


/* sets which layer keeps what in which cache */

static int
llm_load_split_layers(llm_load_t *l)
{
    uint32_t      i, k, n;
    llm_desc_t   *d;
    llm_model_t  *m;

    m = l->m;
    d = &m->desc;
    n = d->hp.n_layers;

    for (k = 0; k < m->n_kinds; k++) {
        m->kv_layers[k] = calloc(n, sizeof(llm_kv_layer_t));

        if (m->kv_layers[k] == NULL) {
            return llm_fail(l->err, "%s: no memory for the model",
                            llm_gguf_name(m->gguf));
        }
    }

    for (i = 0; i < n; i++) {
        d->layers[i].kind = d->layers[i].leaves ? LLM_KV_WINDOW : LLM_KV_FULL;
        m->kv_layers[d->layers[i].kind][i] = d->kv[i];
    }

    return LLM_OK;
}


/* two caches only if the second one would be smaller */

int
llm_load_kinds(llm_load_t *l)
{
    int           mixed;
    llm_model_t  *m;

    m = l->m;
    m->n_kinds = LLM_KV_FULL + 1;

    if (m->desc.head.kind == LLM_HEAD_ASSISTANT) {
        m->n_kinds = m->of->n_kinds;
        return LLM_OK;
    }

    m->window = llm_desc_window(&m->desc, m->ctx, &mixed);

    if (!mixed) {
        return LLM_OK;
    }

    if (llm_load_seq_pages(m, LLM_KV_WINDOW) >= m->max_pages) {
        m->window = 0;
        return LLM_OK;
    }

    m->n_kinds = LLM_KV_WINDOW + 1;

    return llm_load_split_layers(l);
}


/* division of the memory between pages and states: pages of one kind */

typedef struct {
    size_t           page;              /* bytes of a page */
    uint32_t         need;              /* pages for a sequence of ctx */
    uint64_t         want;              /* pages for max_seqs of these; also
                                           the number of pages if they take no
                                           memory */
    uint64_t         most;              /* pages that can be of use: want and
                                           those for the prefix cache; no limit
                                           if memory was configured */
    uint64_t         pages;             /* pages that the kind gets */
} llm_load_kind_t;

typedef struct {
    llm_load_kind_t  kind[LLM_KV_KINDS];
    size_t           slot;              /* bytes of a slot; 0: there are no
                                           states */
    size_t           bytes;             /* bytes for pages and slots */
    uint64_t         slots;
    const char      *tight;             /* the device that leaves no room for
                                           more; NULL: there is one device */
} llm_load_share_t;


/* the end of a message about memory that is short: two arguments */
#define LLM_TIGHT(s)                                                         \
    (s)->tight ? ": no more fits beside the layers on " : "",                \
    (s)->tight ? (s)->tight : ""


/*
 * Divides the memory between two kinds of pages.  One sequence of ctx comes
 * first.  Then windows for the other sequences that may run, from half of the
 * rest, or from the share of windows in a sequence of ctx if that is larger.
 * Then eight full pages for each page of windows.
 */

static void
llm_load_split(const llm_load_t *l, llm_load_share_t *s, size_t bytes)
{
    size_t            rest;
    double            share;
    uint64_t          n;
    llm_load_kind_t  *full = &s->kind[LLM_KV_FULL];
    llm_load_kind_t  *win = &s->kind[LLM_KV_WINDOW];

    win->pages = llm_min(win->need, bytes / (full->page + win->page));
    rest = bytes - win->pages * win->page;

    if (win->pages < win->need || rest / full->page <= full->need) {
        full->pages = win->pages < win->need ? win->pages : rest / full->page;
        return;
    }

    rest -= full->need * full->page;
    share = (double) win->need * (double) win->page;
    share /= share + (double) full->need * (double) full->page;
    share = llm_max(share, 0.5);

    n = (uint64_t) (share * (double) rest / (double) win->page);
    n = llm_min(n, (uint64_t) win->need * (l->m->max_seqs - 1));
    win->pages += n;
    rest -= n * win->page;
    win->pages += rest / (LLM_CACHES_SPARSE * full->page + win->page);

    /* pages that one kind has no use for go to the other */

    n = (bytes - win->pages * win->page) / full->page;

    if (n > full->most) {
        n = full->most;
        win->pages = (bytes - n * full->page) / win->page;
    }

    win->pages = llm_min(llm_min(win->pages, win->most), n);
    n = (bytes - win->pages * win->page) / full->page;
    full->pages = llm_min(n, full->most);
}


static void
llm_load_pages(const llm_load_t *l, llm_load_share_t *s, size_t bytes)
{
    llm_load_kind_t  *full = &s->kind[LLM_KV_FULL];

    if (l->m->n_kinds > 1) {
        llm_load_split(l, s, bytes);
        return;
    }

    full->pages = full->page ? bytes / full->page : full->want;
}


/*
 * Divides the memory between slots and pages.  A slot for each running sequence
 * comes first, then slots for snapshots, at most a third of the memory, then
 * pages.
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
                        "and a copy take %s each, but only %s are available "
                        "for them and the KV cache%s%s",
                        llm_gguf_name(l->m->gguf),
                        l->m->max_seqs, llm_load_size(size[0], s->slot, 1),
                        llm_load_size(size[1], bytes, 0), LLM_TIGHT(s));
    }

    kept = llm_max(bytes / 3 / s->slot, 1u);
    kept = llm_min(kept, (bytes - run) / s->slot + 1);
    bytes -= run - s->slot + kept * s->slot;
    llm_load_pages(l, s, bytes);
    kept = llm_min(kept, llm_max(s->kind[LLM_KV_FULL].pages, 1u));
    s->slots = l->m->max_seqs + kept;

    return LLM_OK;
}


/* bytes, and n pages of a kind; SIZE_MAX: the sum overflows */

static size_t
llm_load_add_pages(size_t bytes, const llm_load_kind_t *k, uint64_t n)
{
    size_t  size;

    if (llm_mul_overflow(k->page, n, &size)
        || llm_add_overflow(bytes, size, &bytes))
    {
        return SIZE_MAX;
    }

    return bytes;
}


/* whether a kind has fewer pages than this many sequences of ctx need */

static int
llm_load_is_short(const llm_load_share_t *s, uint64_t seqs)
{
    uint32_t  i;

    for (i = 0; i < LLM_KV_KINDS; i++) {
        if (s->kind[i].pages < s->kind[i].need * seqs) {
            return 1;
        }
    }

    return 0;
}


/* bytes that can be of use; with recurrent states, for one sequence more than
   max_seqs, and half as much again for snapshots.  SIZE_MAX: it overflows */

static size_t
llm_load_most(const llm_load_t *l, llm_load_share_t *s)
{
    size_t              want;
    uint32_t            i;
    const llm_model_t  *m = l->m;

    for (i = 0, want = 0; i < LLM_KV_KINDS; i++) {
        s->kind[i].most = s->kind[i].want;

        if (i == LLM_KV_WINDOW) {
            s->kind[i].most += s->kind[LLM_KV_FULL].want / LLM_CACHES_SPARSE;
        }

        want = llm_load_add_pages(want, &s->kind[i], s->kind[i].most);
    }

    if (want != SIZE_MAX && s->slot
        && (want / m->max_seqs > SIZE_MAX - s->slot
            || llm_mul_overflow(want / m->max_seqs + s->slot,
                                m->max_seqs + 1, &want)
            || llm_add_overflow(want, want / 2, &want)))
    {
        want = SIZE_MAX;
    }

    return want;
}


/* memory of part i's device that the caches may have; of a team each device has
   the share of the one with the least */

static size_t
llm_load_room(llm_load_t *l, uint32_t i)
{
    size_t         room, beside;
    llm_model_t   *m = l->m;
    llm_kv_opts_t  o;

    llm_part_enter(m, i);
    room = m->ops->memory_free(m->exec);
    llm_load_kv_opts(l, LLM_KV_FULL, &o);
    beside = llm_beside_part(&l->beside, m, i, room,
                             m->ops->kv_page_size(m->exec, &o));

    /* of the machine's memory, memory_free() is half of what is free */

    beside = m->promise.listed
             ? (beside + llm_promised(m->devices, m)) / 2 : beside;

    return room - llm_min(room, beside);
}


/* the device that has less than its part of the pages and slots; NULL: all have
   enough */

static const char *
llm_load_lacking(llm_load_t *l, const llm_load_share_t *s)
{
    size_t          n, room;
    uint32_t        i, k;
    llm_model_t    *m = l->m;
    llm_kv_opts_t   o;

    for (i = 0; i < m->n_parts; i++) {
        room = llm_load_room(l, i);

        if (llm_mul_overflow(llm_load_slot_size(l), s->slots, &n)) {
            return m->at->name;
        }

        for (k = 0; k < m->n_kinds; k++) {
            llm_load_kind_t  part = s->kind[k];

            llm_load_kv_opts(l, k, &o);
            part.page = m->ops->kv_page_size(m->exec, &o);
            n = llm_load_add_pages(n, &part, part.pages);
        }

        if (n > room) {
            return m->at->name;
        }
    }

    return NULL;
}


/*
 * The memory of several devices that is free, as if they were one: the most,
 * up to `want`, for which each device has room for its layers' share.
 */

static size_t
llm_load_free_of_all(llm_load_t *l, llm_load_share_t *s, size_t want)
{
    size_t             low, high, mid;
    const char        *lacks;
    llm_load_share_t   t;

    low = 0;
    high = want;

    while (low < high) {
        mid = high - (high - low) / 2;
        t = *s;

        /* too little for the least that is needed is an error later */

        lacks = llm_load_slots(l, &t, mid) == LLM_OK ? llm_load_lacking(l, &t)
                                                     : NULL;

        if (lacks) {
            s->tight = lacks;
            high = mid - 1;

        } else {
            low = mid;
        }
    }

    return low;
}


/* bytes of the devices that are free for pages and slots; of several devices no
   more than `want` */

static size_t
llm_load_free(llm_load_t *l, llm_load_share_t *s, size_t want)
{
    size_t        n, room, least;
    uint32_t      i;
    llm_model_t  *m = l->m;

    least = SIZE_MAX;

    for (i = 0, n = 0; i < m->n_parts; i++) {
        room = llm_load_room(l, i);
        s->tight = m->n_parts > 1 && room < least ? m->at->name : s->tight;
        least = llm_min(least, room);
        n += room;
    }

    return m->n_parts > 1 ? llm_load_free_of_all(l, s, llm_min(n, want)) : n;
}


/* takes the memory that was configured; or enough for max_seqs sequences of ctx
   and the prefix cache, or as much as is free */

static int
llm_load_share(llm_load_t *l, llm_load_share_t *s)
{
    size_t            want;
    uint32_t          i;
    llm_model_t      *m;
    llm_load_kind_t  *full = &s->kind[LLM_KV_FULL];

    m = l->m;
    s->bytes = l->opts->kv_bytes;

    if (s->bytes) {
        for (i = 0; i < LLM_KV_KINDS; i++) {
            s->kind[i].most = UINT32_MAX / 2;
        }

        return llm_load_slots(l, s, s->bytes);
    }

    want = llm_load_most(l, s);
    s->bytes = llm_load_free(l, s, want);

    if (llm_load_slots(l, s, llm_min(s->bytes, want)) != LLM_OK) {
        return LLM_ERROR;
    }

    m->short_kv = llm_load_is_short(s, m->max_seqs);
    full->pages = llm_min(full->pages, full->want);

    return LLM_OK;
}


/* the states and pages of the part that the load is at */

static int
llm_load_states(llm_load_t *l)
{
    llm_model_t       *m = l->m;
    llm_state_opts_t   o;

    if (m->n_slots == 0) {
        return LLM_OK;
    }

    llm_load_state_opts(l, &o);
    o.n_slots = m->n_slots;
    m->at->state = m->ops->state_create(m->exec, &o, l->err);

    return m->at->state ? LLM_OK : LLM_ERROR;
}


static int
llm_load_part_caches(llm_load_t *l)
{
    int             rc;
    uint32_t        i;
    llm_model_t    *m = l->m;
    llm_kv_opts_t   o;

    rc = llm_load_states(l);

    for (i = 0; i < m->n_kinds && rc == LLM_OK; i++) {
        llm_load_kv_opts(l, i, &o);
        o.n_pages = m->n_pages[i];
        m->at->kv[i] = m->ops->kv_create(m->exec, &o, l->err);
        rc = m->at->kv[i] ? LLM_OK : LLM_ERROR;
    }

    return rc;
}


/* reduces ctx to the pages that there are; an error if ctx was configured, or
   may not be reduced */

static int
llm_load_less(llm_load_t *l, const llm_load_share_t *s)
{
    char          size[2][LLM_LOAD_SIZE];
    size_t        need;
    uint32_t      i;
    llm_model_t  *m;

    m = l->m;
    l->memory = l->opts->kv_bytes == 0;

    for (i = 0, need = 0; i < LLM_KV_KINDS; i++) {
        need = llm_load_add_pages(need, &s->kind[i], s->kind[i].need);
    }

    if (l->opts->ctx || s->kind[LLM_KV_FULL].pages == 0
        || (l->opts->whole && l->memory))
    {
        return llm_fail(l->err, "%s: the KV cache for one sequence of "
                        "ctx=%u takes %s, but only %s are available%s%s",
                        llm_gguf_name(m->gguf), m->ctx,
                        llm_load_size(size[0], need, 1),
                        llm_load_size(size[1], s->bytes, 0), LLM_TIGHT(s));
    }

    m->max_pages = (uint32_t) s->kind[LLM_KV_FULL].pages;
    m->ctx = llm_min(m->ctx, m->max_pages * LLM_KV_PAGE);

    llm_load_log(l, LLM_LOG_WARN, "%s: ctx is %u of %u: more does not "
                 "fit in the %s for the KV cache%s%s",
                 llm_gguf_name(m->gguf), m->ctx, m->desc.hp.n_ctx_train,
                 llm_load_size(size[0], s->bytes, 0), LLM_TIGHT(s));

    return LLM_OK;
}


/* sizes of pages and slots, on all devices together, and how many pages are
   needed */

static void
llm_load_wants(llm_load_t *l, llm_load_share_t *s)
{
    size_t            slot;
    uint32_t          i, part;
    llm_model_t      *m;
    llm_kv_opts_t     o;
    llm_load_kind_t  *k;

    m = l->m;
    memset(s, 0, sizeof(llm_load_share_t));

    for (part = 0; part < m->n_parts; part++) {
        llm_part_enter(m, part);
        slot = llm_load_slot_size(l);
        s->slot = slot > SIZE_MAX - s->slot ? SIZE_MAX : s->slot + slot;

        for (i = 0; i < m->n_kinds; i++) {
            llm_load_kv_opts(l, i, &o);
            s->kind[i].page += m->ops->kv_page_size(m->exec, &o);
        }
    }

    for (i = 0; i < m->n_kinds; i++) {
        k = &s->kind[i];
        k->need = llm_load_seq_pages(m, i);
        k->want = (uint64_t) k->need * m->max_seqs;
    }
}


/*
 * Pages and states for max_seqs sequences of ctx, or as many as there is
 * memory for.  At least one sequence of ctx must fit; if ctx was not
 * configured it is reduced until one does.
 */

int
llm_load_caches(llm_load_t *l)
{
    int                rc;
    char               size[2][LLM_LOAD_SIZE];
    uint32_t           i;
    llm_err_t          why;
    llm_model_t       *m;
    llm_load_share_t   s;

    m = l->m;
    llm_load_wants(l, &s);

    if (llm_load_share(l, &s) != LLM_OK) {
        return LLM_ERROR;
    }

    if (llm_load_is_short(&s, 1) && llm_load_less(l, &s) != LLM_OK) {
        return LLM_ERROR;
    }

    l->memory = 1;
    m->n_slots = (uint32_t) llm_min(s.slots, UINT32_MAX / 2);
    m->slot_bytes = s.slot;
    m->kv_bytes = (uint64_t) m->n_slots * s.slot;

    for (i = 0; i < m->n_kinds; i++) {
        m->n_pages[i] = (uint32_t) llm_min(s.kind[i].pages, UINT32_MAX / 2);
        m->kv_bytes += (uint64_t) m->n_pages[i] * s.kind[i].page;
    }

    for (i = 0, rc = LLM_OK; i < m->n_parts && rc == LLM_OK; i++) {
        llm_part_enter(m, i);
        rc = llm_load_part_caches(l);
    }

    if (rc != LLM_OK && l->opts->kv_bytes) {
        why = *l->err;
        return llm_fail(l->err, "%s: kv_cache is %s, and %s are free%s%s: "
                        "%.300s", llm_gguf_name(m->gguf),
                        llm_load_size(size[0], s.bytes, 0),
                        llm_load_size(size[1], m->ops->memory_free(m->exec), 0),
                        m->n_parts > 1 ? " on " : "",
                        m->n_parts > 1 ? m->at->name : "", why.msg);
    }

    return rc;
}
