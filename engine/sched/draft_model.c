/*
 * A small model that drafts tokens; see draft_model.h.
 */

#include "engine/sched/draft_model.h"

#include "engine/sample/rows.h"

#include <math.h>

/* most rows that are computed before a step for seats that lack more than the
   last step's tokens, for all of them together */
#define LLM_DRAFT_CATCH  64

/* where a seat's pages are used again, how far it may go back: tokens that were
   drafted, and no more */
#define LLM_DRAFT_BACK   LLM_KV_PAGE

/* weight of the last step in the average of their times */
#define LLM_DRAFT_SHARE  0.1


typedef struct {
    const llm_seq_t     *seq;           /* NULL: the seat is free, and keeps its
                                           tokens */
    int32_t             *ids;           /* [ctx] owned; tokens computed */
    uint32_t             n;
    uint32_t             sure;
    uint32_t             most;          /* most of n since the seat was empty */
    uint64_t             used;          /* number of its last use */
} llm_draft_seat_t;

struct llm_draft_model_s {
    llm_runner_t         run;
    const llm_row_passes_t  *pass;
    float               *block_max;     /* scratch of pass->scan() */
    llm_draft_seat_t    *seats;         /* [run.max_seqs] */
    uint32_t             n_pages[LLM_KV_KINDS];     /* of a seat */
    uint32_t             turns;         /* 1: a window lets a seat use its pages
                                           again */
    uint32_t             ctx;           /* tokens of a seat */
    uint64_t             n_uses;
    uint32_t             catch;         /* rows that are left of LLM_DRAFT_CATCH
                                           in this step */
    double               us;            /* average time of a step of one row */
    int                  failed;        /* the device failed: nothing is drafted
                                           any more */

    /* arrays of a step */
    int32_t             *tokens;
    uint32_t            *pos;
    uint32_t            *tables[LLM_KV_KINDS];
};


void
llm_draft_model_free(llm_draft_model_t *m)
{
    uint32_t  i;

    if (m == NULL) {
        return;
    }

    for (i = 0; m->seats && i < m->run.max_seqs; i++) {
        free(m->seats[i].ids);
    }

    for (i = 0; i < LLM_KV_KINDS; i++) {
        free(m->tables[i]);
    }

    free(m->seats);
    free(m->block_max);
    free(m->tokens);
    free(m->pos);
    free(m);
}


/* divides the pages among the seats */

static int
llm_draft_model_pages(llm_draft_model_t *m, llm_err_t *err)
{
    uint32_t             k, all, least;
    const llm_runner_t  *run;

    run = &m->run;
    all = (run->ctx + LLM_KV_PAGE - 1) / LLM_KV_PAGE;
    least = (run->window + run->batch + LLM_DRAFT_BACK) / LLM_KV_PAGE + 2;
    m->ctx = run->ctx;

    for (k = 0; k < LLM_KV_KINDS; k++) {
        m->n_pages[k] = llm_min(run->n_pages[k] / run->max_seqs, all);

        if (run->n_pages[k] == 0 || m->n_pages[k] == all) {
            continue;
        }

        if (run->window
            && (k == LLM_KV_WINDOW || run->n_pages[LLM_KV_WINDOW] == 0))
        {
            m->turns = 1;

            if (m->n_pages[k] < least) {
                return llm_fail(err, "too few pages for the windows of the "
                                "draft model");
            }

            continue;
        }

        m->ctx = llm_min(m->ctx, m->n_pages[k] * LLM_KV_PAGE);
    }

    return m->ctx ? LLM_OK : llm_fail(err, "no pages for the draft model");
}


llm_draft_model_t *
llm_draft_model_create(const llm_runner_t *run, llm_err_t *err)
{
    int                 rc;
    uint32_t            i, pages;
    llm_draft_model_t  *m;

    if (run->n_slots) {
        (void) llm_fail(err, "a model with recurrent layers cannot draft");
        return NULL;
    }

    m = calloc(1, sizeof(*m));

    if (m == NULL) {
        (void) llm_fail(err, "no memory for drafts");
        return NULL;
    }

    m->run = *run;
    m->pass = llm_row_passes(0);
    rc = llm_draft_model_pages(m, err);

    if (rc != LLM_OK) {
        llm_draft_model_free(m);
        return NULL;
    }

    pages = (run->ctx + LLM_KV_PAGE - 1) / LLM_KV_PAGE;
    m->block_max = malloc(llm_row_blocks(run->n_vocab) * sizeof(float));
    m->seats = calloc(run->max_seqs, sizeof(*m->seats));
    m->tokens = malloc(run->batch * sizeof(*m->tokens));
    m->pos = malloc(run->batch * sizeof(*m->pos));

    for (i = 0; i < LLM_KV_KINDS; i++) {
        m->tables[i] = malloc(pages * sizeof(uint32_t));
        rc |= m->tables[i] ? LLM_OK : LLM_ERROR;
    }

    if (rc != LLM_OK || m->block_max == NULL || m->seats == NULL
        || m->tokens == NULL || m->pos == NULL)
    {
        (void) llm_fail(err, "no memory for drafts");
        llm_draft_model_free(m);
        return NULL;
    }

    return m;
}


/* how many tokens of the seat, from `from` on, are those of the sequence; the
   last token is always computed again, as its row is wanted */

static uint32_t
llm_draft_same(const llm_draft_seat_t *seat, const llm_seq_t *q,
    uint32_t from)
{
    uint32_t  i, end;

    end = llm_min(seat->n, llm_seq_known(q) - 1);

    for (i = from; i < end && seat->ids[i] == llm_seq_token(q, i); i++)
    { /* void */ }

    return llm_min(i, end);
}


/* a free seat whose tokens begin like the sequence's, or the one that was used
   least recently; NULL: none, or no memory */

static llm_draft_seat_t *
llm_draft_take(llm_draft_model_t *m, const llm_seq_t *q)
{
    uint32_t           i, n, best;
    llm_draft_seat_t  *seat, *found;

    found = NULL;
    best = 0;

    for (i = 0; i < m->run.max_seqs; i++) {
        seat = &m->seats[i];

        if (seat->seq) {
            continue;
        }

        n = llm_draft_same(seat, q, 0) / LLM_KV_PAGE;

        if (found == NULL || n > best
            || (n == best && seat->used < found->used))
        {
            best = n;
            found = seat;
        }
    }

    if (found && found->ids == NULL) {
        found->ids = malloc(m->ctx * sizeof(*found->ids));
        found = found->ids ? found : NULL;
    }

    if (found) {
        found->seq = q;
        found->sure = 0;
    }

    return found;
}


static llm_draft_seat_t *
llm_draft_seat(llm_draft_model_t *m, const llm_seq_t *q)
{
    uint32_t           i;
    llm_draft_seat_t  *seat;

    for (i = 0; i < m->run.max_seqs; i++) {
        seat = &m->seats[i];

        if (seat->seq == q) {
            return seat;
        }
    }

    return llm_draft_take(m, q);
}


void
llm_draft_model_leave(llm_draft_model_t *m, const llm_seq_t *q)
{
    uint32_t  i;

    for (i = 0; m && i < m->run.max_seqs; i++) {
        if (m->seats[i].seq == q) {
            m->seats[i].seq = NULL;
        }
    }
}


/* forgets the seat's tokens from the first one on that is not the sequence's */

static void
llm_draft_back(const llm_draft_model_t *m, llm_draft_seat_t *seat,
    const llm_seq_t *q)
{
    seat->n = llm_draft_same(seat, q, llm_min(seat->sure, seat->n));

    if (m->turns && seat->n + LLM_DRAFT_BACK < seat->most) {
        seat->n = 0;
    }

    seat->most = seat->n ? seat->most : 0;
    seat->sure = seat->n;
}


/* computes n tokens after those of the seat; out: the last row gives logits */

static int
llm_draft_step(llm_draft_model_t *m, llm_draft_seat_t *seat,
    const int32_t *ids, uint32_t n, int out)
{
    uint32_t     i, k, rows[2], kv_len, row, seat_at;
    llm_err_t    err;
    llm_batch_t  b;

    seat_at = (uint32_t) (seat - m->seats);
    rows[0] = 0;
    rows[1] = n;
    kv_len = seat->n + n;
    row = n - 1;

    memset(&b, 0, sizeof(b));
    b.n_tokens = n;
    b.n_seqs = 1;
    b.n_out = out != 0;
    b.gives = LLM_GIVES_LOGITS;
    b.max_pages = (kv_len + LLM_KV_PAGE - 1) / LLM_KV_PAGE;
    b.tokens = ids;
    b.pos = m->pos;
    b.seq_rows = rows;
    b.kv_len = &kv_len;
    b.out_rows = &row;

    for (i = 0; i < n; i++) {
        m->pos[i] = seat->n + i;
    }

    for (k = 0; k < LLM_KV_KINDS; k++) {
        b.pages[k] = m->tables[k];

        for (i = 0; m->n_pages[k] && i < b.max_pages; i++) {
            m->tables[k][i] = seat_at * m->n_pages[k] + i % m->n_pages[k];
        }
    }

    if (m->run.submit(m->run.data, &b, &err) != LLM_OK
        || m->run.wait(m->run.data, &err) != LLM_OK)
    {
        m->failed = 1;
        return LLM_ERROR;
    }

    memcpy(seat->ids + seat->n, ids, n * sizeof(*ids));
    seat->n += n;
    seat->most = llm_max(seat->most, seat->n);

    return LLM_OK;
}


/* the most likely token of the last step's row, and its probability; -1: there
   is none */

static int32_t
llm_draft_best(llm_draft_model_t *m, double *p)
{
    uint32_t      best;
    const float  *row;

    row = m->run.logits(m->run.data, 0);

    if (m->pass->scan(row, m->run.n_vocab, m->block_max)) {
        return -1;
    }

    best = llm_row_argmax(row, m->run.n_vocab, m->block_max);

    if (row[best] == -INFINITY) {
        return -1;
    }

    *p = 1 / m->pass->sum_exp(row, m->run.n_vocab, row[best], 1, NULL);

    return (int32_t) best;
}


void
llm_draft_model_begin(llm_draft_model_t *m)
{
    if (m) {
        m->catch = LLM_DRAFT_CATCH;
    }
}


/* computes what the seat lacks of the known tokens; LLM_LATER: not all of it
   yet; LLM_ERROR: nothing can be drafted */

static int
llm_draft_follow(llm_draft_model_t *m, llm_draft_seat_t *seat,
    const llm_seq_t *q)
{
    int32_t   id;
    uint32_t  i, n, left;

    left = llm_seq_known(q) - seat->n;
    n = llm_min(left, m->run.batch);

    if (left > LLM_DRAFT_MOST + 1) {
        n = llm_min(n, m->catch);
        m->catch -= n;
    }

    if (n == 0) {
        return LLM_LATER;
    }

    for (i = 0; i < n; i++) {
        id = llm_seq_token(q, seat->n + i);

        if ((uint32_t) id >= m->run.n_vocab) {
            return LLM_ERROR;
        }

        m->tokens[i] = id;
    }

    if (llm_draft_step(m, seat, m->tokens, n, n == left) != LLM_OK) {
        return LLM_ERROR;
    }

    seat->sure = seat->n;

    return n == left ? LLM_OK : LLM_LATER;
}


uint32_t
llm_draft_model_guess(llm_draft_model_t *m, const llm_seq_t *q, int32_t *ids,
    uint32_t n, double least, double trust, double step_us, double *expected)
{
    double             p, chain;
    uint32_t           i;
    uint64_t           begin;
    llm_draft_seat_t  *seat;

    *expected = 0;
    seat = m->failed || llm_seq_known(q) + n > m->ctx
           ? NULL : llm_draft_seat(m, q);

    if (seat == NULL) {
        return 0;
    }

    seat->used = ++m->n_uses;
    llm_draft_back(m, seat, q);

    if (llm_draft_follow(m, seat, q) != LLM_OK) {
        return 0;
    }

    least += step_us > 0 ? m->us / step_us : 0;
    chain = 1;

    for (i = 0; i < n; i++) {
        ids[i] = llm_draft_best(m, &p);
        chain *= p * trust;

        if (ids[i] < 0 || chain < least) {
            break;
        }

        *expected += chain;

        if (i + 1 == n) {
            return n;
        }

        begin = llm_now_us();

        if (llm_draft_step(m, seat, &ids[i], 1, 1) != LLM_OK) {
            return i + 1;
        }

        p = (double) (llm_now_us() - begin);
        m->us += LLM_DRAFT_SHARE * (p - m->us);
    }

    return i;
}
