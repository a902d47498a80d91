/*
 * A head that drafts tokens from the model's states; see draft_head.h.
 */

#include "engine/sched/draft_head.h"

#include "engine/sample/rows.h"

#include <math.h>

/* states of a seat that may wait: of a step with drafts, and the one before */
#define LLM_HEAD_WAIT   (LLM_DRAFT_MOST + 2)

/* weight of the last step in the average of their times */
#define LLM_HEAD_SHARE  0.1


typedef struct {
    const llm_seq_t     *seq;           /* NULL: the seat is free */
    int32_t             *ids;           /* [ctx + 1] owned; tokens of the positions
                                           below at + n_wait, and the one that
                                           the last row was made of */
    float               *states;        /* [LLM_HEAD_WAIT][width] owned */
    uint32_t             base;          /* position of the first row's state */
    uint32_t             n;             /* rows */
    uint32_t             at;            /* position of the first state that
                                           waits: base + n, unless the head
                                           keeps no rows */
    uint32_t             n_wait;
    uint64_t             used;          /* number of its last use */
} llm_head_seat_t;

struct llm_draft_head_s {
    llm_head_runner_t    run;
    const llm_row_passes_t  *pass;
    float               *block_max;     /* scratch of pass->scan() */
    float               *states;        /* [run.batch][run.width] of a prompt's
                                           rows */
    llm_head_seat_t     *seats;         /* [run.seats] */
    uint32_t             ctx;
    uint64_t             n_uses;
    double               us;            /* average time of a step of one row */
    int                  failed;        /* the device failed: nothing is drafted
                                           any more */
};


void
llm_draft_head_free(llm_draft_head_t *h)
{
    uint32_t  i;

    if (h == NULL) {
        return;
    }

    for (i = 0; h->seats && i < h->run.seats; i++) {
        free(h->seats[i].ids);
        free(h->seats[i].states);
    }

    free(h->seats);
    free(h->block_max);
    free(h->states);
    free(h);
}


llm_draft_head_t *
llm_draft_head_create(const llm_head_runner_t *run, uint32_t ctx,
    llm_err_t *err)
{
    llm_draft_head_t  *h;

    h = calloc(1, sizeof(*h));

    if (h) {
        h->run = *run;
        h->run.batch = llm_min(run->batch, (uint32_t) LLM_HEAD_ROWS);
        h->ctx = ctx;
        h->failed = run->ctx < h->run.batch + LLM_DRAFT_MOST;
        h->pass = llm_row_passes(0);
        h->block_max = malloc(llm_row_blocks(run->n_vocab) * sizeof(float));
        h->states = malloc((size_t) run->batch * run->width * sizeof(float));
        h->seats = calloc(run->seats, sizeof(*h->seats));
    }

    if (h == NULL || h->block_max == NULL || h->states == NULL
        || h->seats == NULL)
    {
        (void) llm_fail(err, "no memory for drafts");
        llm_draft_head_free(h);
        return NULL;
    }

    return h;
}


void
llm_draft_head_leave(llm_draft_head_t *h, const llm_seq_t *q)
{
    uint32_t  i;

    for (i = 0; h && i < h->run.seats; i++) {
        if (h->seats[i].seq == q) {
            h->seats[i].seq = NULL;
        }
    }
}


/* ---- seats ---- */

/* rows of a free seat that are right for the sequence: all tokens up to the one
   that each was made of must be its own */

static uint32_t
llm_head_right(const llm_head_seat_t *seat, const llm_seq_t *q)
{
    uint32_t  i, end;

    end = llm_min(seat->base + seat->n + 1, llm_seq_known(q));

    for (i = 0; i < end && seat->ids[i] == llm_seq_token(q, i); i++)
    { /* void */ }

    return i > seat->base + 1 ? llm_min(i - seat->base - 1, seat->n) : 0;
}


/* the seat begins with the state at `pos` */

static void
llm_head_restart(llm_head_seat_t *seat, const llm_seq_t *q, uint32_t pos)
{
    uint32_t  i;

    seat->base = pos;
    seat->n = 0;
    seat->at = pos;
    seat->n_wait = 0;

    for (i = 0; i < pos; i++) {
        seat->ids[i] = llm_seq_token(q, i);
    }
}


/* a free seat that can go on at position `pos`, or the one that was used least
   recently; NULL: none, or no memory */

static llm_head_seat_t *
llm_head_seat_take(llm_draft_head_t *h, const llm_seq_t *q, uint32_t pos)
{
    uint32_t          i, n, best;
    llm_head_seat_t  *seat, *found;

    found = NULL;
    best = 0;

    for (i = 0; i < h->run.seats; i++) {
        seat = &h->seats[i];

        if (seat->seq) {
            continue;
        }

        n = seat->n ? llm_head_right(seat, q) : 0;
        n = seat->base + n >= pos ? n : 0;

        if (found == NULL || n > best
            || (n == best && seat->used < found->used))
        {
            best = n;
            found = seat;
        }
    }

    if (found == NULL) {
        return NULL;
    }

    if (found->ids == NULL) {
        found->ids = malloc(((size_t) h->ctx + 1) * sizeof(*found->ids));
        found->states = malloc((size_t) LLM_HEAD_WAIT * h->run.width
                               * sizeof(float));
    }

    if (found->ids == NULL || found->states == NULL) {
        return NULL;
    }

    found->seq = q;

    if (best == 0) {
        llm_head_restart(found, q, pos);

    } else {
        found->n = best;
        found->at = found->base + best;
        found->n_wait = 0;
    }

    return found;
}


static llm_head_seat_t *
llm_head_seat(llm_draft_head_t *h, const llm_seq_t *q)
{
    uint32_t  i;

    for (i = 0; i < h->run.seats; i++) {
        if (h->seats[i].seq == q) {
            return &h->seats[i];
        }
    }

    return NULL;
}


/* ---- rows ---- */

/* drops waiting states whose tokens are not those of the sequence */

static void
llm_head_check_wait(llm_head_seat_t *seat, const llm_seq_t *q)
{
    uint32_t  i, pos;

    for (i = 0; i < seat->n_wait; i++) {
        pos = seat->at + i;

        if (pos >= llm_seq_known(q)
            || seat->ids[pos] != llm_seq_token(q, pos))
        {
            seat->n_wait = i;
        }
    }
}


/* computes n rows, of these states at seat->at and of the tokens after them,
   which are known; the last one gives logits */

static int
llm_head_compute(llm_draft_head_t *h, llm_head_seat_t *seat,
    const llm_seq_t *q, const float *states, uint32_t n)
{
    int32_t         ids[LLM_HEAD_ROWS];
    uint32_t        i;
    llm_err_t       err;
    llm_head_at_t   at;

    if (seat->n + n + LLM_DRAFT_MOST > h->run.ctx) {
        seat->base = seat->at;
        seat->n = 0;
    }

    for (i = 0; i < n; i++) {
        ids[i] = llm_seq_token(q, seat->at + i + 1);

        if ((uint32_t) ids[i] >= h->run.n_tokens) {
            return LLM_ERROR;
        }

        seat->ids[seat->at + i + 1] = ids[i];
    }

    memset(&at, 0, sizeof(at));
    at.seat = (uint32_t) (seat - h->seats);
    at.pos = seat->n;

    if (h->run.rows(h->run.data, &at, ids, states, n, &err) != LLM_OK) {
        h->failed = 1;
        return LLM_ERROR;
    }

    seat->n += n;
    seat->at += n;

    return LLM_OK;
}


/* computes the rows of all states that wait */

static int
llm_head_flush(llm_draft_head_t *h, llm_head_seat_t *seat,
    const llm_seq_t *q)
{
    uint32_t  n;

    n = seat->n_wait;
    seat->n_wait = 0;

    return n ? llm_head_compute(h, seat, q, seat->states, n) : LLM_OK;
}


/* keeps the states of rows until their next tokens are known */

static void
llm_head_wait(llm_draft_head_t *h, llm_head_seat_t *seat,
    const llm_draft_rows_t *rows)
{
    h->run.states(h->run.data, rows->row, rows->n,
                  seat->states + (size_t) seat->n_wait * h->run.width);
    seat->n_wait += rows->n;
}


/* the rows of a prompt, as far as tokens after them are known: all but the last
   one, which is computed when tokens are drafted */

static int
llm_head_prompt(llm_draft_head_t *h, llm_head_seat_t *seat,
    const llm_seq_t *q, llm_draft_rows_t *rows)
{
    uint32_t  n, known;

    known = llm_seq_known(q);

    while (rows->n && rows->pos + 2 < known) {
        n = llm_min(rows->n, known - 2 - rows->pos);
        n = llm_min(n, h->run.batch);

        h->run.states(h->run.data, rows->row, n, h->states);

        if (llm_head_compute(h, seat, q, h->states, n) != LLM_OK) {
            return LLM_ERROR;
        }

        rows->row += n;
        rows->pos += n;
        rows->n -= n;
    }

    return LLM_OK;
}


/* leaves out rows whose states the seat has, and drops states that wait for
   positions from there on */

static void
llm_head_skip(llm_head_seat_t *seat, llm_draft_rows_t *rows)
{
    uint32_t  skip;

    skip = rows->pos < seat->at ? llm_min(seat->at - rows->pos, rows->n) : 0;
    rows->pos += skip;
    rows->row += skip;
    rows->tokens += skip;
    rows->n -= skip;

    if (rows->n) {
        seat->n_wait = rows->pos - seat->at;
    }
}


void
llm_draft_head_take(llm_draft_head_t *h, const llm_seq_t *q,
    const llm_draft_rows_t *taken)
{
    llm_draft_rows_t   rows = *taken;
    llm_head_seat_t   *seat;

    seat = llm_head_seat(h, q);

    if (h->failed || rows.pos + rows.n > h->ctx) {
        return;
    }

    seat = seat ? seat : llm_head_seat_take(h, q, rows.pos);

    if (seat == NULL) {
        return;
    }

    seat->used = ++h->n_uses;
    llm_head_check_wait(seat, q);

    if (h->run.last && rows.n > LLM_HEAD_WAIT) {
        rows.pos += rows.n - LLM_HEAD_WAIT;
        rows.row += rows.n - LLM_HEAD_WAIT;
        rows.tokens += rows.n - LLM_HEAD_WAIT;
        rows.n = LLM_HEAD_WAIT;
    }

    if (h->run.last) {
        seat->at = rows.pos;            /* nothing before it counts */

    } else if (rows.pos > seat->at + seat->n_wait) {
        llm_head_restart(seat, q, rows.pos);
    }

    llm_head_skip(seat, &rows);
    memcpy(seat->ids + rows.pos, rows.tokens, rows.n * sizeof(*seat->ids));

    if (seat->n_wait + rows.n > LLM_HEAD_WAIT
        && (llm_head_flush(h, seat, q) != LLM_OK
            || llm_head_prompt(h, seat, q, &rows) != LLM_OK))
    {
        llm_head_restart(seat, q, 0);
        return;
    }

    if (seat->n_wait + rows.n <= LLM_HEAD_WAIT) {
        llm_head_wait(h, seat, &rows);
    }
}


/* ---- drafts ---- */

/* the most likely token of the last step's row, and its probability; -1: there
   is none */

static int32_t
llm_head_best(llm_draft_head_t *h, double *p)
{
    uint32_t      best;
    const float  *row;

    row = h->run.logits(h->run.data);

    if (h->pass->scan(row, h->run.n_vocab, h->block_max)) {
        return -1;
    }

    best = llm_row_argmax(row, h->run.n_vocab, h->block_max);

    if (row[best] == -INFINITY) {
        return -1;
    }

    *p = 1 / h->pass->sum_exp(row, h->run.n_vocab, row[best], 1, NULL);

    return h->run.token(h->run.data, best);
}


/* computes what the head needs to draft after the known tokens: it must have
   the states of all of them but the last */

static int
llm_head_begin_draft(llm_draft_head_t *h, llm_head_seat_t *seat,
    const llm_seq_t *q, llm_head_at_t *at)
{
    int32_t    id;
    uint32_t   known;
    llm_err_t  err;

    known = llm_seq_known(q);
    llm_head_check_wait(seat, q);

    if (seat->n_wait == 0 || seat->at + seat->n_wait + 1 < known
        || seat->at + 1 >= known)
    {
        return LLM_ABSENT;
    }

    seat->n_wait = known - 1 - seat->at;
    at->seat = (uint32_t) (seat - h->seats);

    if (!h->run.last) {
        if (llm_head_flush(h, seat, q) != LLM_OK) {
            llm_head_restart(seat, q, 0);
            return LLM_ERROR;
        }

        at->pos = seat->n;
        return LLM_OK;
    }

    id = llm_seq_token(q, known - 1);
    at->pos = known - 1;

    if ((uint32_t) id >= h->run.n_tokens) {
        return LLM_ERROR;
    }

    if (h->run.rows(h->run.data, at, &id,
                    seat->states + (size_t) (seat->n_wait - 1) * h->run.width,
                    1, &err)
        != LLM_OK)
    {
        h->failed = 1;
        return LLM_ERROR;
    }

    return LLM_OK;
}


uint32_t
llm_draft_head_guess(llm_draft_head_t *h, const llm_seq_t *q,
    const uint32_t *const *pages, uint32_t n_pages, int32_t *ids, uint32_t n,
    double least, double trust, double step_us, double *expected)
{
    double            p, chain;
    uint32_t          i, k;
    uint64_t          begin;
    llm_err_t         err;
    llm_head_at_t     at;
    llm_head_seat_t  *seat;

    *expected = 0;
    seat = h->failed ? NULL : llm_head_seat(h, q);
    memset(&at, 0, sizeof(at));
    at.n_pages = n_pages;

    for (k = 0; k < LLM_KV_KINDS; k++) {
        at.pages[k] = pages[k];
    }

    if (seat == NULL || llm_head_begin_draft(h, seat, q, &at) != LLM_OK) {
        return 0;
    }

    least += step_us > 0 ? h->us / step_us : 0;
    chain = 1;

    for (i = 0; i < n; i++) {
        ids[i] = llm_head_best(h, &p);
        chain *= ids[i] < 0 ? 0 : p * trust;

        if (ids[i] < 0 || chain < least) {
            break;
        }

        *expected += chain;

        if (i + 1 == n || (uint32_t) ids[i] >= h->run.n_tokens) {
            return i + 1;
        }

        begin = llm_now_us();

        if (h->run.next(h->run.data, &at, ids[i], &err) != LLM_OK) {
            h->failed = 1;
            return i + 1;
        }

        at.pos += !h->run.last;
        p = (double) (llm_now_us() - begin);
        h->us += LLM_HEAD_SHARE * (p - h->us);
    }

    return i;
}
