/*
 * Speculation without loss: tokens are drafted, that is guessed, and their rows
 * computed in the step that computes the last known token.  Each of these rows
 * gives logits, and the tokens are drawn from them one after another as always.
 * While the token that was drawn is the drafted one, the next row is right,
 * too, so the step has given the sequence one more token.
 *
 * Invariants
 *   - A token depends on its row's logits, the request, the tokens before it,
 *     the seed, the choice and its position (sampler.h), and a row's logits do
 *     not depend on the step's other rows.  So a text, its probabilities and
 *     its end are the same to the byte, whatever is drafted.
 *   - A drafted row counts as computed (n_kv), and its page may be put into the
 *     prefix tree, only once its token was drawn.  Later rows write the keys
 *     and values of rows that were not.
 *   - Recurrent layers have all rows of the step in their state.  The step
 *     begins with a copy of the state (`spare`); if a drafted token is not
 *     drawn, the sequence takes the copy for its slot, and its known tokens
 *     after that are computed again (`redo`), in the next step, which has no
 *     drafts for it.
 *   - Drafts take nothing from others: they get pages and state slots that are
 *     free or cached, and places in the step that remain.
 *
 * How many: a drafted row pays while its probability is larger than the share
 * of a step's time that a row costs, times the rows that get a token anyway.
 * So a full step has no drafts, by itself.  None are made while a prompt is to
 * be computed, and they make a step no longer than a prompt's chunk may, so no
 * first token comes later because of them.
 */

#include "engine/sched/sched_internal.h"

/* a guess must be so much better than it costs, as costs are estimates */
#define LLM_DRAFT_MARGIN    1.15
#define LLM_DRAFT_LEAST     0.05

/* the same if rows are computed again after a guess that was wrong */
#define LLM_DRAFT_AGAIN     2.0

/* a sequence waits for its last token, where steps are launched ahead, if so
   many drafted tokens are expected to be drawn */
#define LLM_DRAFT_PAYS      1.0

/* share of a draft's tokens that is assumed to be drawn at first, and the
   weight of the last draft in the share */
#define LLM_DRAFT_TRUST     0.8f
#define LLM_DRAFT_WEIGHT    0.25f

/* how much longer drafts make a step that takes long without them */
#define LLM_DRAFT_LONGER    1.5


/* rows of a step that are left when all running sequences have got theirs; 0 if
   one of them has a prompt to be computed */

static uint32_t
llm_draft_rows(const llm_sched_t *s)
{
    uint32_t          i, n;
    const llm_seq_t  *q;

    for (i = 0, n = 0; i < s->n_running; i++) {
        q = s->running[i];
        n += 1 + q->draft.redo;

        if (q->leader == NULL
            && llm_seq_due(q) - q->n_kv > 1 + q->draft.redo)
        {
            return 0;
        }
    }

    n = s->conf.runner.batch - llm_min(n, s->conf.runner.batch);

    return llm_min(n, s->conf.runner.max_out - s->conf.runner.max_seqs);
}


/* before a step is composed: how many rows of it may be drafted, and how
   probable a drafted token must be */

void
llm_draft_begin(llm_sched_t *s)
{
    double  step_us, row_us, most_us;

    s->drafts.rows = s->conf.speculate[0] == LLM_DRAFT_NONE ? 0
                     : llm_draft_rows(s);

    if (s->drafts.rows == 0 || s->n_running == 0) {
        return;
    }

    llm_draft_model_begin(s->draft_model);
    llm_speed_rows(s, s->n_running, &step_us, &row_us);
    most_us = llm_max((double) LLM_STEP_SHARED_US, step_us * LLM_DRAFT_LONGER);

    s->drafts.least = llm_max(row_us * s->n_running / step_us
                              * (s->slots ? LLM_DRAFT_AGAIN
                                          : LLM_DRAFT_MARGIN),
                              LLM_DRAFT_LEAST);

    if (row_us * s->drafts.rows > most_us - step_us) {
        s->drafts.rows = (uint32_t) ((most_us - step_us) / row_us);
    }
}


/* may tokens be drafted for a sequence now?  Its first token is not, nor a
   token after one that is not known yet.  A device that draws is not told of
   tokens that drafted rows would add to penalties */

static int
llm_draft_may(const llm_sched_t *s, const llm_seq_t *q)
{
    return s->conf.speculate[0] != LLM_DRAFT_NONE && q->n_gen
           && q->max_gen - q->n_gen > 1 && !llm_seq_pools(q)
           && (s->conf.runner.drawn == NULL
               || !llm_sampler_penalises(q->sampler));
}


/* is this kind configured?  A client's prediction is a draft whatever kinds
   there are */

static int
llm_draft_has_kind(const llm_sched_t *s, llm_draft_kind_t kind)
{
    uint32_t  i;

    for (i = 0; i < LLM_DRAFT_N && s->conf.speculate[i] != LLM_DRAFT_NONE;
         i++)
    {
        if (s->conf.speculate[i] == kind || kind == LLM_DRAFT_PREDICTION) {
            return 1;
        }
    }

    return 0;
}


/* the share of a draft's tokens that is expected to be drawn */

static double
llm_draft_trust(const llm_draft_t *d, llm_draft_kind_t kind)
{
    return d->n_drafts[kind] ? d->came[kind] : LLM_DRAFT_TRUST;
}


/* learns how much of a draft was drawn */

static void
llm_draft_learn(llm_draft_t *d)
{
    float  share, *came;

    came = &d->came[d->kind];
    share = (float) d->used / (float) d->n;

    if (d->n_drafts[d->kind]++) {
        *came += LLM_DRAFT_WEIGHT * (share - *came);

    } else {
        *came = (share + LLM_DRAFT_TRUST) / 2;
    }
}


/* the tokens of the text that the grammar forces; the model may take other
   tokens for this text */

static uint32_t
llm_draft_forced(const llm_sched_t *s, llm_seq_t *q, int32_t *ids,
    uint32_t most, double *expected)
{
    double    p;
    uint32_t  n;

    p = llm_draft_trust(&q->draft, LLM_DRAFT_GRAMMAR);
    n = q->masked && p >= s->drafts.least
        ? llm_masked_forced(q->masked, ids, most) : 0;

    *expected = n * p;

    return n;
}


/* tokens that stood in the sequence's texts before */

static uint32_t
llm_draft_looked_up(const llm_sched_t *s, llm_seq_t *q, int32_t *ids,
    uint32_t most, llm_draft_kind_t *kind, double *expected)
{
    llm_lookup_texts_t  t;

    t = (llm_lookup_texts_t) {
        { q->req->prep.predicted.data, q->prompt->ids, q->gen },
        { (uint32_t) q->req->prep.predicted.len, q->prompt->n, q->n_gen }
    };

    *expected = 0;

    if (llm_lookup_follow(&q->lookup, &t) != LLM_OK) {
        return 0;
    }

    *kind = llm_lookup_is_predicted(&q->lookup, &t) ? LLM_DRAFT_PREDICTION
                                                    : LLM_DRAFT_NGRAM;

    return llm_draft_has_kind(s, *kind)
           ? llm_lookup_guess(&q->lookup, &t, ids, most, s->drafts.least,
                              expected)
           : 0;
}


/* what the drafts of the head or of the small model count as; NONE: there is
   neither */

static llm_draft_kind_t
llm_draft_network(const llm_sched_t *s)
{
    return s->draft_head ? s->conf.head->kind
           : s->draft_model ? LLM_DRAFT_MODEL : LLM_DRAFT_NONE;
}


/* tokens of the head; one that reads the model's pages gets their tables */

static uint32_t
llm_draft_of_head(const llm_sched_t *s, llm_seq_t *q, int32_t *ids,
    uint32_t most, double trust, double step_us, double *expected)
{
    uint32_t         k, n;
    const uint32_t  *pages[LLM_KV_KINDS] = { NULL };

    n = q->n_pages[LLM_KV_FULL];

    for (k = 0; s->conf.head->last && k < s->n_kinds; k++) {
        llm_sched_table(s, q, k, s->head_pages[k], n);
        pages[k] = s->head_pages[k];
    }

    return llm_draft_head_guess(s->draft_head, q, pages, n, ids, most,
                                s->drafts.least, trust, step_us, expected);
}


/* tokens of the head, or of the small model, which sees no images */

static uint32_t
llm_draft_modelled(const llm_sched_t *s, llm_seq_t *q, int32_t *ids,
    uint32_t most, double *expected)
{
    double  trust, step_us, row_us;

    *expected = 0;

    if (llm_draft_network(s) == LLM_DRAFT_NONE
        || (s->draft_model && q->prompt->n_media))
    {
        return 0;
    }

    llm_speed_rows(s, s->n_running, &step_us, &row_us);
    step_us = s->speed.line.n > 0 ? step_us : 0;
    trust = llm_draft_trust(&q->draft, llm_draft_network(s));

    return s->draft_head
           ? llm_draft_of_head(s, q, ids, most, trust, step_us, expected)
           : llm_draft_model_guess(s->draft_model, q, ids, most,
                                   s->drafts.least, trust, step_us, expected);
}


/* states of prompts go to the head, too, although nothing is drafted before the
   first token */

void
llm_draft_states(llm_sched_t *s, const llm_step_t *st)
{
    uint32_t           i;
    llm_seq_t         *q;
    llm_draft_rows_t   rows;

    for (i = 0; s->draft_head && i < st->batch.n_seqs; i++) {
        q = st->seqs[i];

        if (q == NULL || q->req->failure || llm_seq_pools(q)
            || q->max_gen < 2 || q->state == LLM_SEQ_ENDED
            || (s->conf.runner.drawn && llm_sampler_penalises(q->sampler)))
        {
            continue;
        }

        rows.row = st->seq_rows[i];
        rows.n = st->seq_rows[i + 1] - rows.row;
        rows.pos = st->pos[rows.row];
        rows.tokens = st->tokens + rows.row;
        llm_draft_head_take(s->draft_head, q, &rows);
    }
}


/*
 * Drafts at most `most` tokens; returns their number.  What promises most of
 * what costs nothing is taken; the small model is asked if that promises less
 * than a token, or first of all if it is preferred.
 */

static uint32_t
llm_draft_tokens(const llm_sched_t *s, llm_seq_t *q, uint32_t most,
    double *expected)
{
    double            other;
    int32_t           ids[LLM_DRAFT_MOST];
    uint32_t          n, forced, modelled;
    llm_draft_t      *d;
    llm_draft_kind_t  kind, network;

    d = &q->draft;
    n = llm_draft_looked_up(s, q, d->ids, most, &kind, expected);
    forced = llm_draft_forced(s, q, ids, most, &other);

    if (other > *expected) {
        memcpy(d->ids, ids, forced * sizeof(*ids));
        *expected = other;
        kind = LLM_DRAFT_GRAMMAR;
        n = forced;
    }

    network = llm_draft_network(s);

    if (*expected < LLM_DRAFT_PAYS || s->conf.speculate[0] == network) {
        modelled = llm_draft_modelled(s, q, ids, most, &other);

        if (other > *expected) {
            memcpy(d->ids, ids, modelled * sizeof(*ids));
            *expected = other;
            kind = network;
            n = modelled;
        }
    }

    d->kind = n ? kind : d->kind;

    return n;
}


/*
 * Whether a sequence whose last token is in flight gets no row in the step that
 * is composed, so that its next tokens can be drafted once the token is known.
 */

int
llm_draft_waits(const llm_sched_t *s, llm_seq_t *q)
{
    double            expected;
    int32_t           ids[LLM_DRAFT_MOST];
    llm_draft_kind_t  kind, network;

    if (q->pending == 0 || s->drafts.rows == 0 || !llm_draft_may(s, q)) {
        return 0;
    }

    /* what the head or the small model promises is known only when it has
       drafted */

    network = llm_draft_network(s);

    if (network != LLM_DRAFT_NONE
        && llm_draft_trust(&q->draft, network) > LLM_DRAFT_LEAST)
    {
        return 1;
    }

    (void) llm_draft_looked_up(s, q, ids, LLM_DRAFT_MOST, &kind, &expected);

    return expected >= LLM_DRAFT_PAYS;
}


/* how many of n drafted rows of a sequence the scheduler has room for; gets
   pages for them, and a copy of the state */

static uint32_t
llm_draft_room(llm_sched_t *s, llm_seq_t *q, uint32_t n)
{
    uint32_t  known;

    known = q->n_kv + 1;
    n = llm_min(n, s->conf.runner.ctx - known);
    n = llm_min(n, llm_state_room(s, q, known, n));
    n = llm_sched_spare_room(s, q, known, n);

    return n && llm_state_spare(s, q) == LLM_OK ? n : 0;
}


/* drafts tokens for a sequence that gets the row of its last token; returns
   their number */

uint32_t
llm_draft_make(llm_sched_t *s, llm_seq_t *q)
{
    double        expected;
    uint32_t      n;
    llm_draft_t  *d;

    d = &q->draft;

    if (s->drafts.rows == 0 || q->pending || d->redo
        || !llm_draft_may(s, q))
    {
        return 0;
    }

    n = llm_min(s->drafts.rows, q->max_gen - q->n_gen - 1);
    n = llm_min(n, (uint32_t) LLM_DRAFT_MOST);
    n = llm_draft_tokens(s, q, n, &expected);
    d->n = n ? llm_draft_room(s, q, n) : 0;
    d->base = q->n_kv;
    s->drafts.rows -= d->n;

    return d->n;
}


void
llm_draft_count(llm_sched_t *s, llm_seq_t *q)
{
    llm_draft_t  *d;

    d = &q->draft;

    if (d->n) {
        q->req->out.drafted_tokens += d->n;
        llm_zone_add(s->counters->drafts[d->kind], 1);
        llm_zone_add(s->counters->drafted[d->kind], d->n);
    }
}


/* was the token that was drawn last the next drafted one?  Then its row is
   computed */

int
llm_draft_accept(llm_sched_t *s, llm_seq_t *q)
{
    llm_draft_t  *d;

    d = &q->draft;

    if (d->used == d->n || q->gen[q->n_gen - 1] != d->ids[d->used]) {
        return 0;
    }

    d->used++;
    q->n_kv++;
    q->req->out.accepted_tokens++;
    llm_zone_add(s->counters->accepted[d->kind], 1);

    if (s->slots == NULL) {
        llm_sched_commit(s, q, q->n_kv);
    }

    return 1;
}


/* after the results of a sequence's drafted rows: what was not drawn is taken
   back */

void
llm_draft_settle(llm_sched_t *s, llm_seq_t *q)
{
    int           all;
    llm_draft_t  *d;

    d = &q->draft;
    all = d->used == d->n;
    llm_draft_learn(d);
    d->n = 0;
    d->used = 0;

    if (s->slots && all) {
        llm_state_give_spare(s, q);
        llm_sched_commit(s, q, q->n_kv);

    } else if (s->slots) {
        llm_state_return(s, q);
        q->n_kv = d->base;
        d->redo = llm_seq_known(q) - 1 - q->n_kv;
    }

    llm_sched_leave(s, q, q->n_kv);
}
