/*
 * Rows of media in prompts: what they are rotated by and see, and when they may
 * be computed; see sched.h.  encode.c has them encoded.
 */

#include "engine/sched/sched_internal.h"


/* ---- requests ---- */

/* sets the positions of the prompt's media in rotary embeddings */

static void
llm_media_place(llm_prompt_ids_t *p, int turns)
{
    uint32_t      i, at, turn;
    llm_media_t  *m;

    for (i = 0, at = 0, turn = 0; i < p->n_media; i++) {
        m = &p->media[i];
        m->turn = turn + m->first - at;
        m->after = m->turn + (turns ? llm_max(m->lines, m->cols) : m->n);
        at = m->first + m->n;
        turn = m->after;
    }
}


size_t
llm_media_most(const llm_prompt_ids_t *p, uint32_t n, const llm_runner_t *run,
    size_t ahead)
{
    size_t              row, most, beside, all;
    uint32_t            i, k;
    const llm_media_t  *m, *before;

    row = run->n_given * sizeof(float);

    for (i = 0, all = 0, most = 0; i < p->n_media; i++) {
        m = &p->media[i];
        all += m->n;

        /* rows of those before it are there as long as they share a page with
           its beginning: it is encoded when whole pages before it are
           computed */

        for (k = i, beside = 0; k < p->n_media; k--) {
            before = &p->media[k];

            if (before->first + before->n
                <= m->first / LLM_KV_PAGE * LLM_KV_PAGE)
            {
                break;
            }

            beside += before->n;
        }

        most = llm_max(most, beside);
    }

    return n > 1 ? all * row : llm_max(most * row, llm_min(all * row, ahead));
}


size_t
llm_media_held(const llm_sched_t *s, const llm_prompt_ids_t *p)
{
    size_t    n;
    uint32_t  i;

    for (i = 0, n = 0; i < p->n_media; i++) {
        n += llm_media_encodes(s, &p->media[i])
             ? llm_media_row_size(s, &p->media[i]) : p->media[i].row_bytes;
    }

    return n;
}


uint64_t
llm_media_pixels(const llm_prompt_ids_t *p, uint32_t n)
{
    uint32_t            i;
    uint64_t            pixels;
    const llm_media_t  *m;

    for (i = 0, pixels = 0; i < p->n_media; i++) {
        m = &p->media[i];

        if (m->rows == NULL && !m->heard && m->first + m->n + n > p->n) {
            pixels += (uint64_t) m->w * m->h;
        }
    }

    return pixels;
}


/* checks that the model can take the request's media */

int
llm_media_add(llm_sched_t *s, llm_req_t *r, llm_err_t *err)
{
    uint32_t             i, k;
    llm_prompt_ids_t    *p;
    const llm_media_t   *m;
    const llm_runner_t  *run = &s->conf.runner;

    for (i = 0; i < r->prep.n_prompts; i++) {
        p = &r->prep.prompts[i];
        llm_media_place(p, run->turns);

        for (k = 0; k < p->n_media; k++) {
            m = &p->media[k];

            if (run->n_given == 0) {
                return llm_fail(err, "the model takes no images");
            }

            if (run->spans && !m->heard && m->n > run->batch - run->max_seqs) {
                return llm_fail(err, "an image of %u tokens must be computed "
                                "in one step, which has at most %u", m->n,
                                run->batch - run->max_seqs);
            }

            if (m->first + m->n >= p->n) {
                return llm_fail(err, "a prompt must not end with an image");
            }
        }
    }

    return LLM_OK;
}


/* the request is about to leave */

void
llm_media_drop(llm_sched_t *s, llm_req_t *r)
{
    uint32_t           i, k;
    llm_prompt_ids_t  *p;

    for (i = 0; i < r->prep.n_prompts; i++) {
        p = &r->prep.prompts[i];

        for (k = 0; k < p->n_media; k++) {
            if (p->media[k].rows) {
                llm_encoded_put(s, &r->prep.salt, &p->media[k]);
            }
        }
    }

    llm_media_leave(s, r);
}


/* gives up the rows of media that are computed, unless another choice may need
   them */

void
llm_media_done(llm_sched_t *s, llm_seq_t *q)
{
    uint32_t      i;
    llm_media_t  *m;

    for (i = 0; q->req->run.n_seqs == 1 && i < q->prompt->n_media; i++) {
        m = &q->prompt->media[i];

        if (m->rows && m->first + m->n <= q->n_kv) {
            llm_encoded_put(s, &q->req->prep.salt, m);
        }
    }
}


/* ---- rows of a step ---- */

/* the first media of the sequence that is not encoded and has rows to be
   computed; NULL: none */

static llm_media_t *
llm_media_missing(const llm_seq_t *q)
{
    uint32_t      i;
    llm_media_t  *m;

    for (i = 0; i < q->prompt->n_media; i++) {
        m = &q->prompt->media[i];

        if (m->rows == NULL && m->first + m->n > q->n_kv) {
            return m;
        }
    }

    return NULL;
}


/* up to where the sequence may be computed while m is not encoded: the end of
   the last whole page before it */

static uint32_t
llm_media_before(const llm_seq_t *q, const llm_media_t *m)
{
    return llm_max(m->first / LLM_KV_PAGE * LLM_KV_PAGE, q->n_kv);
}


/* is the position inside a span whose rows see each other? */

int
llm_media_splits(const llm_sched_t *s, const llm_seq_t *q, uint32_t pos)
{
    const llm_media_t  *m;

    m = s->conf.runner.spans ? llm_prompt_media(q->prompt, pos) : NULL;

    return m != NULL && !m->heard && pos > m->first;
}


/* how many of the next n rows may be in a step: none whose media is not
   encoded, and no part of a span.  A span that does not fit gets up to `most`
   rows */

uint32_t
llm_media_fit(const llm_sched_t *s, const llm_seq_t *q, uint32_t n,
    uint32_t most)
{
    const llm_media_t  *m;

    m = llm_media_missing(q);

    if (m) {
        n = llm_min(n, llm_media_before(q, m) - q->n_kv);
    }

    if (n == 0 || !llm_media_splits(s, q, q->n_kv + n)) {
        return n;
    }

    m = llm_prompt_media(q->prompt, q->n_kv + n);

    if (m->first > q->n_kv) {
        return m->first - q->n_kv;
    }

    n = m->first + m->n - q->n_kv;

    return n <= most ? n : 0;
}


/* sets the row's positions in rotary embeddings; returns whether they differ
   from pos */

static int
llm_media_turns(const llm_seq_t *q, uint32_t pos, int turns, uint32_t *to)
{
    uint32_t            i, at;
    const llm_media_t  *m, *last;

    m = llm_prompt_media(q->prompt, pos);

    if (m && turns && m->heard) {
        to[0] = to[1] = to[2] = m->turn + pos - m->first;
        return 1;
    }

    if (m && turns) {
        at = pos - m->first;
        to[0] = m->turn;
        to[1] = m->turn + at / m->cols;
        to[2] = m->turn + at % m->cols;
        return 1;
    }

    for (i = 0, last = NULL; i < q->prompt->n_media; i++) {
        last = q->prompt->media[i].first + q->prompt->media[i].n <= pos
               ? &q->prompt->media[i] : last;
    }

    at = last ? last->after + pos - last->first - last->n : pos;
    to[0] = to[1] = to[2] = at;

    return at != pos;
}


/* the step's row is this position of q */

void
llm_media_row(const llm_sched_t *s, llm_step_t *st, const llm_seq_t *q,
    uint32_t pos, uint32_t row)
{
    uint32_t             n;
    const llm_media_t   *m;
    const llm_runner_t  *run = &s->conf.runner;

    if (run->n_given == 0) {
        return;
    }

    m = llm_prompt_media(q->prompt, pos);
    st->given[row] = LLM_NOT_GIVEN;
    st->sees[2 * row] = 0;
    st->sees[2 * row + 1] = m && run->spans && !m->heard
                            ? m->first + m->n : pos + 1;
    st->turned |= llm_media_turns(q, pos, run->turns,
                                  st->turns + LLM_TURNS * row);

    if (m) {
        n = st->batch.n_given++;
        st->given[row] = n;
        memcpy(st->rows + (size_t) n * run->n_given,
               m->rows + (size_t) (pos - m->first) * run->n_given,
               run->n_given * sizeof(float));
    }
}


/* what of this the composed step has */

void
llm_media_batch(const llm_sched_t *s, llm_step_t *st)
{
    int  some;

    some = st->batch.n_given != 0;
    st->batch.given = some ? st->given : NULL;
    st->batch.rows = st->rows;
    st->batch.given_cols = s->conf.runner.n_given;
    st->batch.turns = st->turned ? st->turns : NULL;
    st->batch.sees = some && s->conf.runner.spans ? st->sees : NULL;
}


/* ---- the encoder ---- */

/* is media to be encoded before this sequence can go on? */

llm_media_t *
llm_media_due(const llm_seq_t *q)
{
    llm_media_t  *m;

    m = q->leader ? NULL : llm_media_missing(q);

    return m && q->n_kv >= llm_media_before(q, m) ? m : NULL;
}


/* is there work for the encoder? */

int
llm_media_waits(const llm_sched_t *s)
{
    uint32_t  i;

    for (i = 0; s->encodes.n == 0 && i < s->n_running; i++) {
        if (llm_media_due(s->running[i])) {
            return 1;
        }
    }

    return s->encodes.n != 0;
}
