/*
 * Grammars and matchers as the rest of the engine sees them; see grammar.h.
 * States computed for one text are kept for other texts of the grammar.  When
 * they take too much memory they are dropped, and each matcher walks its text
 * again.
 */

#include "engine/grammar/finish.h"
#include "engine/grammar/gram.h"
#include "engine/grammar/mask.h"

/* has no lock: a matcher is used by one thread at a time */
struct llm_matcher_s {
    llm_gram_t           *g;
    uint32_t              generation;   /* generation of the grammar that `set`
                                           belongs to */
    uint32_t              set;
    llm_buf_t             text;         /* the text so far */
};

#define LLM_MATCHER_MAX_TEXT  ((size_t) 256 << 20)

/* bounds of one mask, because masks of other texts wait meanwhile: CPU time
   for the lexer's rows, and the machine's steps, about ten per microsecond */
#define LLM_MATCHER_MAX_US    200000
#define LLM_MATCHER_MAX_STEPS 2000000

/* time and steps that a mask has taken so far */
typedef struct {
    uint64_t              until_us;     /* 0: no row yet */
    uint64_t              steps;
} llm_matcher_spent_t;

/* most bytes that are looked at to find the text that must follow */
#define LLM_MATCHER_FORCED    128

/* most bytes of computed states of one grammar */
#define LLM_MATCHER_MAX_RUN   ((size_t) 64 << 20)


static void
llm_gram_enter(llm_gram_t *g)
{
    pthread_mutex_lock(&g->lock);
}


static void
llm_gram_leave(llm_gram_t *g)
{
    size_t  bytes;

    bytes = llm_build_memory(g->build) + llm_run_memory(&g->run);

    atomic_store_explicit(&g->bytes, bytes, memory_order_relaxed);
    pthread_mutex_unlock(&g->lock);
}


size_t
llm_gram_bytes(const llm_gram_t *g)
{
    return atomic_load_explicit(&g->bytes, memory_order_relaxed);
}


void
llm_gram_limit(llm_gram_t *g, size_t bytes)
{
    atomic_store_explicit(&g->max_run, llm_min(bytes, LLM_MATCHER_MAX_RUN),
                          memory_order_relaxed);
}


uint32_t
llm_gram_mask_us(const llm_gram_t *g)
{
    return atomic_load_explicit(&g->mask_us, memory_order_relaxed);
}


llm_gram_t *
llm_gram_finish(llm_gram_build_t *b, llm_gn_t root,
    const llm_toktree_t *tree, llm_err_t *err)
{
    llm_gram_t  *g;

    if (b == NULL) {
        (void) llm_fail(err, "no memory for a grammar");
        return NULL;
    }

    if (llm_finish(b, root, err) != LLM_OK) {
        llm_gram_build_free(b);
        return NULL;
    }

    g = calloc(1, sizeof(llm_gram_t));
    if (g == NULL) {
        llm_gram_build_free(b);
        (void) llm_fail(err, "no memory for a grammar");
        return NULL;
    }

    g->build = b;
    g->root = root;
    g->tree = tree;
    pthread_mutex_init(&g->lock, NULL);
    atomic_init(&g->max_run, LLM_MATCHER_MAX_RUN);

    if (llm_run_init(&g->run, b) == LLM_OK) {
        g->start = llm_run_start(&g->run, root);
    }

    llm_gram_pause(b, NULL, NULL);

    if (g->start == LLM_SET_NONE) {
        llm_gram_free(g);
        (void) llm_fail_with(err, 400, NULL, NULL, "the grammar is too "
                             "ambiguous or too large");
        return NULL;
    }

    llm_gram_enter(g);
    llm_gram_leave(g);

    return g;
}


void
llm_gram_free(llm_gram_t *g)
{
    if (g == NULL) {
        return;
    }

    llm_run_free(&g->run);
    llm_gram_build_free(g->build);
    pthread_mutex_destroy(&g->lock);
    free(g);
}


/* ---- matchers ---- */

llm_matcher_t *
llm_matcher_create(llm_gram_t *g, llm_err_t *err)
{
    llm_matcher_t  *m;

    m = calloc(1, sizeof(llm_matcher_t));
    if (m == NULL) {
        (void) llm_fail(err, "no memory for a matcher");
        return NULL;
    }

    m->g = g;
    llm_buf_init(&m->text, LLM_MATCHER_MAX_TEXT);
    llm_matcher_restart(m);

    return m;
}


void
llm_matcher_free(llm_matcher_t *m)
{
    if (m) {
        llm_buf_free(&m->text);
        free(m);
    }
}


/* takes no lock, which could take long: the next use walks */

void
llm_matcher_restart(llm_matcher_t *m)
{
    m->generation = UINT32_MAX;
    m->text.len = 0;
}


/* the set after these bytes; LLM_SET_NONE if they are not allowed */

static uint32_t
llm_matcher_walk(llm_run_t *r, uint32_t set, const char *p, size_t len)
{
    size_t  i;

    for (i = 0; i < len && set != LLM_SET_NONE; i++) {
        set = llm_run_move(r, set, (uint8_t) p[i]);
    }

    return set;
}


/* have the computed states become too large, or has a step failed? */

static int
llm_matcher_full(const llm_gram_t *g)
{
    return g->run.full || g->run.failed || g->run.lexer.failed
           || llm_rx_failed(g->build->pool)
           || llm_run_memory(&g->run)
              > atomic_load_explicit(&g->max_run, memory_order_relaxed);
}


/* only the grammar's own author can reach these bounds, so the error is the
   client's */

static int
llm_matcher_lost(llm_err_t *err)
{
    return llm_fail_with(err, 400, NULL, NULL, "the grammar, or a pattern in "
                         "it, is too ambiguous: what may follow takes more "
                         "memory or time than it may");
}


/*
 * Drops the computed states if necessary, and walks the text again if they
 * have been dropped.  LLM_ERROR: they are too large for this text alone.
 */

static int
llm_matcher_ready(llm_matcher_t *m, llm_err_t *err)
{
    llm_gram_t  *g;

    g = m->g;

    if (llm_matcher_full(g)) {
        g->generation++;
        g->start = llm_run_clear(&g->run) == LLM_OK
                   ? llm_run_start(&g->run, g->root) : LLM_SET_NONE;
    }

    if (m->generation != g->generation) {
        m->generation = g->generation;
        m->set = llm_matcher_walk(&g->run, g->start, m->text.data,
                                  m->text.len);
    }

    if (m->set == LLM_SET_NONE) {
        m->generation = g->generation - 1;

        return llm_matcher_lost(err);
    }

    return LLM_OK;
}


static int
llm_matcher_try_mask(llm_matcher_t *m, llm_matcher_spent_t *spent,
    uint32_t *mask, llm_err_t *err)
{
    uint32_t              i, id;
    llm_run_t            *r;
    const llm_toktree_t  *t;

    if (llm_matcher_ready(m, err) != LLM_OK) {
        return LLM_ERROR;
    }

    r = &m->g->run;
    t = m->g->tree;
    r->lexer.limit_us = LLM_MATCHER_MAX_US;
    r->lexer.until_us = spent->until_us;
    r->steps = spent->steps;
    r->max_steps = LLM_MATCHER_MAX_STEPS;

    llm_mask_fill(r, t, m->set, mask);

    r->lexer.limit_us = 0;
    r->max_steps = 0;
    spent->until_us = r->lexer.until_us;
    spent->steps = r->steps;

    if (r->failed) {
        return llm_matcher_lost(err);
    }

    for (i = 0; i < t->n_eog && llm_run_may_end(r, m->set); i++) {
        id = t->eog[i];
        mask[id / 32] |= (uint32_t) 1 << id % 32;
    }

    return LLM_OK;
}


int
llm_matcher_mask(llm_matcher_t *m, uint32_t *mask, llm_err_t *err)
{
    int                  rc;
    uint64_t             begin;
    llm_matcher_spent_t  spent = { 0, 0 };

    llm_gram_enter(m->g);

    begin = llm_now_us();
    rc = llm_matcher_try_mask(m, &spent, mask, err);

    if (rc != LLM_OK) {
        /* states computed for other texts may be the reason */
        rc = llm_matcher_try_mask(m, &spent, mask, err);
    }

    atomic_store_explicit(&m->g->mask_us,
                          (uint32_t) (llm_now_us() - begin),
                          memory_order_relaxed);
    llm_gram_leave(m->g);

    return rc;
}


/* may the text end here, or, with must, may only the end follow?  The caller
   has the lock */

static int
llm_matcher_ends(llm_matcher_t *m, int must)
{
    const uint64_t  *bytes;

    if (llm_matcher_ready(m, NULL) != LLM_OK
        || !llm_run_may_end(&m->g->run, m->set))
    {
        return 0;
    }

    if (!must) {
        return 1;
    }

    bytes = llm_run_bytes(&m->g->run, m->set);

    return (bytes[0] | bytes[1] | bytes[2] | bytes[3]) == 0;
}


/* LLM_OK; LLM_ABSENT: not allowed; LLM_ERROR; the caller has the lock */

static int
llm_matcher_try_accept(llm_matcher_t *m, llm_str_t s, llm_err_t *err)
{
    uint32_t  set;

    if (llm_matcher_ready(m, err) != LLM_OK) {
        return LLM_ERROR;
    }

    set = llm_matcher_walk(&m->g->run, m->set, s.data, s.len);

    if (m->g->run.failed) {
        return llm_matcher_lost(err);
    }

    if (set == LLM_SET_NONE) {
        return LLM_ABSENT;
    }

    if (llm_buf_add(&m->text, s.data, s.len) != LLM_OK) {
        return llm_fail(err, "the text is too long");
    }

    m->set = set;

    return LLM_OK;
}


static int
llm_matcher_text(llm_matcher_t *m, llm_str_t s, llm_err_t *err)
{
    int  rc;

    rc = llm_matcher_try_accept(m, s, err);

    if (rc == LLM_ERROR) {
        /* states computed for other texts may be the reason */
        rc = llm_matcher_try_accept(m, s, err);
    }

    return rc;
}


int
llm_matcher_push(llm_matcher_t *m, llm_str_t text, llm_err_t *err)
{
    int  rc;

    llm_gram_enter(m->g);
    rc = llm_matcher_text(m, text, err);
    llm_gram_leave(m->g);

    return rc;
}


static int
llm_matcher_step(llm_matcher_t *m, int32_t token, llm_err_t *err)
{
    int                 rc;
    llm_str_t           s;
    const llm_vocab_t  *v;

    v = m->g->tree->vocab;

    if (llm_vocab_is_eog(v, token)) {
        return llm_matcher_ends(m, 0)
               ? LLM_OK : llm_fail(err, "the text must not end here");
    }

    s = llm_toktree_text(m->g->tree, (uint32_t) token);

    if (s.len == 0) {
        return llm_fail(err, "token %d is no text", token);
    }

    rc = llm_matcher_text(m, s, err);

    if (rc == LLM_ABSENT) {
        s = llm_vocab_bytes(v, token);
        return llm_fail(err, "the grammar does not allow token %d, \"%.*s\"",
                        token, (int) llm_min(s.len, 100), s.data);
    }

    return rc;
}


int
llm_matcher_accept(llm_matcher_t *m, int32_t token, llm_err_t *err)
{
    int  rc;

    llm_gram_enter(m->g);
    rc = llm_matcher_step(m, token, err);
    llm_gram_leave(m->g);

    return rc;
}


int
llm_matcher_accept_now(llm_matcher_t *m, int32_t token, int *ends,
    llm_err_t *err)
{
    int  rc;

    if (pthread_mutex_trylock(&m->g->lock) != 0) {
        return LLM_LATER;
    }

    /* walking the text again could take long, and this caller must not wait */

    if (llm_matcher_full(m->g) || m->generation != m->g->generation) {
        llm_gram_leave(m->g);
        return LLM_LATER;
    }

    rc = llm_matcher_step(m, token, err);
    *ends = rc == LLM_OK && llm_matcher_ends(m, 1);

    llm_gram_leave(m->g);

    return rc;
}


/* the bytes that must follow, at most max; the caller has the lock */

static size_t
llm_matcher_forced(llm_matcher_t *m, char *buf, size_t max)
{
    size_t           n;
    uint32_t         i, set, byte, count;
    llm_run_t       *r;
    const uint64_t  *bytes;

    r = &m->g->run;
    set = m->set;

    for (n = 0; n < max && !llm_run_may_end(r, set); n++) {
        bytes = llm_run_bytes(r, set);

        for (i = 0, count = 0, byte = 0; i < 4; i++) {
            count += (uint32_t) __builtin_popcountll(bytes[i]);
            byte = bytes[i] ? i * 64 + (uint32_t) __builtin_ctzll(bytes[i])
                            : byte;
        }

        if (count != 1) {
            break;
        }

        set = llm_run_move(r, set, (uint8_t) byte);

        if (set == LLM_SET_NONE) {
            break;
        }

        buf[n] = (char) byte;
    }

    return r->failed ? 0 : n;
}


uint32_t
llm_matcher_forced_now(llm_matcher_t *m, int32_t *ids, uint32_t n)
{
    char       buf[LLM_MATCHER_FORCED];
    size_t     len;
    uint32_t   i, id;
    llm_str_t  text;

    if (pthread_mutex_trylock(&m->g->lock) != 0) {
        return 0;
    }

    text.data = buf;
    text.len = !llm_matcher_full(m->g) && m->generation == m->g->generation
               && m->set != LLM_SET_NONE
               ? llm_matcher_forced(m, buf, sizeof(buf)) : 0;

    llm_gram_leave(m->g);

    for (i = 0; i < n && text.len; i++) {
        id = llm_toktree_longest(m->g->tree, text, &len);

        if (id == LLM_TOKTREE_NONE) {
            break;
        }

        ids[i] = (int32_t) id;
        text.data += len;
        text.len -= len;
    }

    return i;
}


int
llm_matcher_may_end(llm_matcher_t *m)
{
    int  may;

    llm_gram_enter(m->g);
    may = llm_matcher_ends(m, 0);
    llm_gram_leave(m->g);

    return may;
}


int
llm_matcher_must_end(llm_matcher_t *m)
{
    int  must;

    llm_gram_enter(m->g);
    must = llm_matcher_ends(m, 1);
    llm_gram_leave(m->g);

    return must;
}
