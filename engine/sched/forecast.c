/*
 * Forecasts how long a request would wait for its first token: for a place
 * among the running sequences, for pages, and for the prompts that are computed
 * before its own.
 *
 * Known are the rows to be computed, without those in the prefix cache, the
 * pixels to be encoded, the order of the sequences, and the progress of the
 * running ones.  Measured are the times of a step, of a prompt row and of a
 * pixel, and the length of answers.  What
 * cannot be known (the length of these answers, later requests that go first)
 * is in one factor, which follows the outcome of earlier forecasts; see
 * estimate.c.
 */

#include "engine/sched/sched_internal.h"

/* queue entries examined; later ones wait too long anyway */
#define LLM_FORECAST_MOST  4096

/* waiting sequences that go before a request */
typedef struct {
    uint32_t     seqs;
    uint64_t     rows;                  /* of their prompts, to be computed */
    uint64_t     pixels;                /* of their media, to be encoded */
    uint64_t     pages;                 /* that they need */
} llm_ahead_t;


/* tokens of a prompt that are not in the prefix cache */

uint32_t
llm_sched_fresh(const llm_sched_t *s, const llm_seq_t *q)
{
    return llm_seq_caches(q)
           ? q->prompt->n - llm_sched_ahead(s, q) * LLM_KV_PAGE
           : q->prompt->n;
}


/* rows of its prompt that a sequence still has to compute; 0 for a choice whose
   leader computes them */

static uint32_t
llm_forecast_rows(const llm_seq_t *q)
{
    uint32_t  n;

    if (!q->admitted) {
        return q->todo;
    }

    n = llm_seq_due(q) - q->n_kv;

    return q->leader || n < 2 ? 0 : n - 1;
}


static double
llm_forecast_row_us(const llm_sched_t *s, int beside)
{
    double              us;
    const llm_speed_t  *v;

    v = &s->speed;
    us = v->row_us[beside] > 0 ? v->row_us[beside] : v->row_us[!beside];

    /* a prompt of one token counts as a step in these averages */

    return us > 0 ? us : v->beside_us / LLM_STEP_ROWS;
}


/* the time of a token of an answer */

static double
llm_forecast_token_us(const llm_sched_t *s)
{
    return s->speed.beside_us > 0 ? s->speed.beside_us
                                  : llm_forecast_row_us(s, 0) * LLM_STEP_ROWS;
}


static uint32_t
llm_forecast_pages(const llm_sched_t *s, const llm_seq_t *q, uint32_t rows)
{
    uint32_t  need, has;

    if (q->n_pages[0] || (q->index % q->req->msg->n && q->n_gen == 0)) {
        return 0;
    }

    need = llm_sched_first_pages(s, q, LLM_KV_FULL);
    has = (llm_seq_known(q) - llm_min(rows, llm_seq_known(q))) / LLM_KV_PAGE;

    return need - llm_min(need, has);
}


/* adds the expected end of a sequence that runs or will take a free place.  An
   answer is expected to go on for at least an eighth of the average length */

static void
llm_forecast_release(llm_sched_t *s, const llm_seq_t *q)
{
    double          left, most;
    llm_release_t  *e;

    if (s->n_releases == s->conf.runner.max_seqs) {
        return;
    }

    most = s->speed.answer;
    left = llm_max(most - q->n_gen, most / 8);
    left = llm_min(left, (double) (q->max_gen - q->n_gen));

    e = &s->releases[s->n_releases++];
    e->us = llm_forecast_rows(q) * llm_forecast_row_us(s, 1)
            + left * llm_forecast_token_us(s);
    e->pages = q->n_pages[LLM_KV_FULL];
}


/* adds a tenant's waiting sequences that go before a request of this priority
   and virtual time.  Their admission advances the tenant's virtual time, which
   is returned */

static uint64_t
llm_forecast_tenant(llm_sched_t *s, const llm_tenant_t *t,
    int32_t priority, uint64_t time, llm_ahead_t *a)
{
    uint32_t          rows;
    uint64_t          own;
    const llm_seq_t  *q;

    own = t->share.time;

    for (q = t->first; q && a->seqs < LLM_FORECAST_MOST; q = q->next) {

        if (q->req->msg->priority < priority
            || (q->req->msg->priority == priority && own > time
                && !llm_queue_is_aged(&s->queue, q->req)))
        {
            break;
        }

        rows = llm_forecast_rows(q);
        a->seqs++;
        a->rows += rows;
        a->pixels += llm_media_pixels(q->prompt, rows);
        a->pages += llm_forecast_pages(s, q, rows);
        llm_forecast_release(s, q);

        if (!q->admitted) {
            own += (uint64_t) rows * 1000000 / t->share.weight;
        }
    }

    return own;
}


/* adds up the waiting sequences that go before r; r NULL: all of priority 0 or
   more */

static void
llm_forecast_queue(llm_sched_t *s, const llm_req_t *r, llm_ahead_t *a)
{
    int32_t              priority;
    uint64_t             time;
    const llm_share_t   *share;
    const llm_tenant_t  *t, *own;

    memset(a, 0, sizeof(*a));
    priority = r ? r->msg->priority : 0;
    time = UINT64_MAX;
    own = NULL;

    if (r) {
        share = llm_shares_find(&s->queue.shares, r->msg->tenant);
        time = llm_shares_begin(&s->queue.shares, share);
        own = (const llm_tenant_t *) share;

        if (own && own->first) {
            time = llm_forecast_tenant(s, own, priority, UINT64_MAX, a);
        }
    }

    for (t = s->queue.waiting; t; t = t->next) {
        if (t != own) {
            (void) llm_forecast_tenant(s, t, priority, time, a);
        }
    }
}


/* running sequences that a request of some priority waits for; the others give
   way to it */

typedef struct {
    uint32_t     seqs;
    uint64_t     rows;                  /* of their prompts, to be computed
                                           before the request's */
    uint64_t     pixels;                /* of their media, as well */
    uint64_t     pages;                 /* of the sequences that give way */
} llm_swap_t;


static void
llm_forecast_running(llm_sched_t *s, int32_t priority, llm_swap_t *b)
{
    uint32_t          i, rows;
    const llm_seq_t  *q;

    memset(b, 0, sizeof(*b));
    s->n_releases = 0;

    for (i = 0; i < s->n_running; i++) {
        q = s->running[i];

        if (llm_preempt_yields(s, q, priority)) {
            b->pages += q->n_pages[LLM_KV_FULL];
            continue;
        }

        llm_forecast_release(s, q);
        b->seqs++;

        if (q->req->msg->priority >= priority) {
            rows = llm_forecast_rows(q);
            b->rows += rows;
            b->pixels += llm_media_pixels(q->prompt, rows);
        }
    }
}


/* microseconds to compute `rows` prompt rows, of which the last `own` are of a
   prompt of n tokens; beside: 1 if sequences generate meanwhile */

static double
llm_forecast_compute(const llm_sched_t *s, uint64_t rows, uint32_t own,
    uint32_t n, int beside)
{
    double    us;
    uint64_t  steps, most;

    us = llm_forecast_row_us(s, beside);

    if (!beside) {
        return us * (double) llm_max(rows, (uint64_t) LLM_STEP_ROWS);
    }

    most = llm_max(s->rows[1], 1u);
    steps = (rows + most - 1) / most;
    most = llm_step_share(n);
    steps = llm_max(steps, (own + most - 1) / most);

    return us * (double) rows + (double) steps * s->speed.step_us;
}


static int
llm_forecast_sooner(const void *a, const void *b)
{
    const llm_release_t  *x = a, *y = b;

    return (x->us > y->us) - (x->us < y->us);
}


/* microseconds until `seqs` sequences have ended, running ones or those that
   take their places, and `pages` pages are free */

static double
llm_forecast_place(llm_sched_t *s, int64_t seqs, int64_t pages)
{
    double    life;
    int64_t   freed;
    uint32_t  n;

    if (s->n_releases == 0 || (seqs <= 0 && pages <= 0)) {
        return 0;
    }

    qsort(s->releases, s->n_releases, sizeof(*s->releases),
          llm_forecast_sooner);

    for (n = 0, freed = 0; n < s->n_releases && freed < pages; n++) {
        freed += s->releases[n].pages;
    }

    if (freed < pages) {
        n = (uint32_t) llm_min((int64_t) s->n_releases * pages
                               / llm_max(freed, (int64_t) 1),
                               (int64_t) LLM_FORECAST_MOST);
    }

    seqs = llm_max(seqs, (int64_t) n);
    life = s->speed.answer * llm_forecast_token_us(s);
    n = (uint32_t) (seqs - 1);

    return s->releases[n % s->n_releases].us
           + (double) (n / s->n_releases) * life;
}


/* sets f->tokens: tokens to be computed for all prompts of a request; *rows,
   *pixels: for the prompts that its first result needs, whose length is
   returned.  An embedding needs all its prompts */

static uint32_t
llm_forecast_own(const llm_sched_t *s, const llm_req_t *r, llm_forecast_t *f,
    uint32_t *rows, uint64_t *pixels)
{
    uint32_t          i, n, fresh;
    const llm_seq_t  *q;

    *rows = 0;
    f->tokens = 0;

    for (i = 0, n = 0; i < r->run.n_seqs; i += r->msg->n) {
        q = &r->run.seqs[i];
        fresh = llm_sched_fresh(s, q);
        f->tokens += fresh;

        if (i == 0 || llm_seq_pools(q)) {
            *rows += fresh;
            *pixels += llm_media_pixels(q->prompt, fresh);
            n += q->prompt->n;
        }
    }

    return n;
}


void
llm_sched_forecast(llm_sched_t *s, const llm_req_t *r, llm_forecast_t *f)
{
    int           beside;
    double        wait, encode_us, encode_all_us;
    int64_t       seqs, pages;
    uint32_t      n, rows;
    uint64_t      others, pixels;
    llm_ahead_t   ahead;
    llm_swap_t  running;

    n = 1;
    rows = 1;
    pixels = 0;
    f->tokens = 1;

    if (r) {
        n = llm_forecast_own(s, r, f, &rows, &pixels);
    }

    llm_forecast_running(s, r ? r->msg->priority : 0, &running);
    llm_forecast_queue(s, r, &ahead);
    others = running.rows + ahead.rows;

    seqs = (int64_t) ahead.seqs + 1 + running.seqs
           - s->conf.runner.max_seqs;
    pages = (int64_t) ahead.pages + 1
            + (r ? llm_forecast_pages(s, &r->run.seqs[0], rows) : 0)
            - llm_pages_available(s->pages, LLM_KV_FULL)
            - (int64_t) running.pages;

    wait = llm_forecast_place(s, seqs, pages);
    beside = s->n_running + ahead.seqs != 0;
    encode_us = s->speed.pixel_us * (double) pixels;
    encode_all_us = encode_us + s->speed.pixel_us
                                * (double) (running.pixels + ahead.pixels);

    f->known = llm_forecast_row_us(s, 0) > 0;
    f->waits = others || seqs > 0 || (pages > 0 && s->n_running);
    f->wait_us = llm_max(wait + encode_us
                         + llm_forecast_compute(s, rows, rows, n, beside),
                         encode_all_us
                         + llm_forecast_compute(s, others + rows, rows, n,
                                                beside));
    f->us = f->wait_us * s->speed.slip;
}


uint64_t
llm_sched_todo(const llm_sched_t *s)
{
    return s->todo;
}


uint64_t
llm_sched_compute_us(const llm_sched_t *s, uint64_t tokens)
{
    return (uint64_t) llm_forecast_compute(s, tokens, 0, 0, s->n_running != 0);
}
