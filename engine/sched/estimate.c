/*
 * What forecasts are made from: the times of steps and rows, the length of
 * answers, the prompt tokens to be computed, and how good the last forecasts
 * were.
 */

#include "engine/sched/sched_internal.h"

/* weight of a new measurement in an average */
#define LLM_SPEED_STEP     0.2
#define LLM_SPEED_ANSWER   0.05

/* the line of times by rows: how much of earlier steps is kept with each step,
   the least spread of their rows, the share of a row of a step of one row that
   is assumed at first, its least share, and how much longer than others a step
   may count */
#define LLM_SPEED_KEPT     0.98
#define LLM_SPEED_SPREAD   0.5
#define LLM_SPEED_ROW      0.15
#define LLM_SPEED_LEAST    0.01
#define LLM_SPEED_MOST     3.0

/* length of an answer, in tokens, that is assumed at first, and how many
   answers this counts as: the first answers that end are the shortest */
#define LLM_SPEED_TOKENS   256
#define LLM_SPEED_WEIGHT   2

/* the factor: its growth and decay, its initial value, its bounds */
#define LLM_SLIP_UP        1.25
#define LLM_SLIP_DOWN      0.9992
#define LLM_SLIP_BEGIN     1.5
#define LLM_SLIP_LEAST     1.0
#define LLM_SLIP_MOST      8.0


static void
llm_speed_learn(double *mean, double value, double share)
{
    *mean = *mean > 0 ? *mean + share * (value - *mean) : value;
}


/* adds a step without prompts to the sums; a step that took very long, because
   the machine did something else, counts less */

static void
llm_speed_line(llm_line_t *l, double rows, double us)
{
    us = l->n > 1 ? llm_min(us, LLM_SPEED_MOST * l->us / l->n) : us;

    l->n = l->n * LLM_SPEED_KEPT + 1;
    l->rows = l->rows * LLM_SPEED_KEPT + rows;
    l->us = l->us * LLM_SPEED_KEPT + us;
    l->rows_rows = l->rows_rows * LLM_SPEED_KEPT + rows * rows;
    l->rows_us = l->rows_us * LLM_SPEED_KEPT + rows * us;
}


/*
 * Learns from a step whose results came at time `now`.  While there is work,
 * the time of a step counts from the step before, so it includes all that the
 * engine does in between, steps of other models, too, but not the encoder's
 * pieces, whose time is known.
 */

void
llm_speed_step(llm_sched_t *s, const llm_step_t *st, uint64_t now)
{
    double        us;
    uint32_t      n, rows;
    llm_speed_t  *v;

    v = &s->speed;
    us = (double) (now - (v->busy ? s->taken_us + v->encoder_us
                                  : llm_max(st->start_us, s->taken_us)));
    v->encoder_us = 0;
    n = st->n_prefill;
    rows = llm_max(n, (uint32_t) LLM_STEP_ROWS);

    if (n == st->batch.n_tokens) {
        llm_speed_learn(&v->row_us[0], us / rows, LLM_SPEED_STEP);
        return;
    }

    llm_speed_learn(&v->beside_us, us, LLM_SPEED_STEP);

    if (n == 0) {
        llm_speed_learn(&v->step_us, us, LLM_SPEED_STEP);
        llm_speed_line(&v->line, st->batch.n_tokens, us);

    } else {
        llm_speed_learn(&v->row_us[1], llm_max(us - v->step_us, 1.0) / rows,
                        LLM_SPEED_STEP);
    }
}


/*
 * The time of a step with so many rows, and of one row more: the line through
 * the last steps without prompts.  While all had the same number of rows, the
 * share of a row is assumed.
 */

void
llm_speed_rows(const llm_sched_t *s, uint32_t rows, double *step_us,
    double *row_us)
{
    double             mean_rows, mean_us, spread;
    const llm_line_t  *l;

    l = &s->speed.line;

    if (l->n == 0) {
        *step_us = 1;
        *row_us = LLM_SPEED_ROW;
        return;
    }

    mean_rows = l->rows / l->n;
    mean_us = l->us / l->n;
    spread = l->rows_rows / l->n - mean_rows * mean_rows;

    *row_us = spread > LLM_SPEED_SPREAD
              ? (l->rows_us / l->n - mean_rows * mean_us) / spread
              : mean_us * LLM_SPEED_ROW
                / (1 + LLM_SPEED_ROW * (mean_rows - 1));

    *row_us = llm_max(*row_us, mean_us * LLM_SPEED_LEAST / mean_rows);
    *row_us = llm_min(*row_us, mean_us / mean_rows);
    *step_us = mean_us + *row_us * (rows - mean_rows);
    *step_us = llm_max(*step_us, *row_us * rows);
}


void
llm_speed_init(llm_speed_t *v)
{
    v->answer = LLM_SPEED_TOKENS;
    v->answers = LLM_SPEED_WEIGHT;
    v->slip = LLM_SLIP_BEGIN;
}


/* a sound, which is encoded alone, takes little time and has no pixels */

void
llm_speed_encoded(llm_sched_t *s, uint64_t pixels, uint64_t us)
{
    if (s->encodes.media[0]->heard) {
        return;
    }

    llm_speed_learn(&s->speed.pixel_us, (double) us / (double) pixels,
                    LLM_SPEED_STEP);
}


/* warm-ups and probes do not count: they are short, whatever clients ask for */

void
llm_speed_answer(llm_sched_t *s, const llm_seq_t *q)
{
    llm_speed_t      *v;
    const llm_req_t  *r;

    v = &s->speed;
    r = q->req;

    if (q->n_gen && !r->own && !(r->msg->flags & LLM_REQ_PROBE)) {
        v->answers++;
        llm_speed_learn(&v->answer, q->n_gen,
                        llm_max(LLM_SPEED_ANSWER, 1.0 / v->answers));
    }
}


/*
 * Compares the forecast of a request with what came.  If it took longer, the
 * factor grows; nearly 300 requests that are in time take that back, so fewer
 * than one in a hundred is late.  Requests far below the limit of llm_queue
 * ttft= do not count, because they say little about times near it; nor do late
 * requests whose forecast was made before the factor last grew.
 */

void
llm_speed_first(llm_sched_t *s, const llm_req_t *r, uint64_t now)
{
    double        took, thought, least;
    llm_speed_t  *v;

    if (r->run.judged_us == 0) {
        return;
    }

    v = &s->speed;
    took = (double) (now - llm_min(now, r->run.judged_us));
    thought = r->run.wait_us * v->slip;
    least = s->conf.zone->bounds.ttft_us * 0.25;

    if (took < least && thought < least) {
        return;
    }

    if (took <= thought) {
        v->slip = llm_max(v->slip * LLM_SLIP_DOWN, LLM_SLIP_LEAST);

    } else if (r->run.judged_us >= v->slipped_us) {
        v->slip = llm_min(v->slip * LLM_SLIP_UP, LLM_SLIP_MOST);
        v->slipped_us = now;
    }
}


void
llm_sched_age(llm_sched_t *s)
{
    uint64_t  half;

    half = s->conf.zone->bounds.ttft_us / 2;

    if (half) {
        s->queue.aged_us = llm_now_us() - half;
    }
}


void
llm_sched_set_todo(llm_sched_t *s, llm_seq_t *q, uint32_t n)
{
    s->todo += n;
    s->todo -= q->todo;
    q->todo = n;
}
