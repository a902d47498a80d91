/*
 * The encoder of media, which runs a piece between two steps, so that no stream
 * waits longer than for a step of a prompt; see sched.h.
 *
 * Media is encoded when the pages before it are computed, so that a sequence
 * finds it in the prefix tree if another one had it.  Rows that are known are
 * not encoded again: those that are kept (encoded.c), or that another running
 * sequence has.  Of two that need the same media the first one has it encoded,
 * while the second one waits.
 */

#include "engine/sched/sched_internal.h"


/* rows of the same media, which another running sequence has; NULL: none.
   *soon: one before number `before` waits for them, too */

static const float *
llm_media_beside(const llm_sched_t *s, uint32_t before, const llm_media_t *m,
    int *soon)
{
    uint32_t            i, k;
    const llm_seq_t    *q;
    const llm_media_t  *other;

    *soon = 0;

    for (i = 0; i < s->n_running; i++) {
        q = s->running[i];

        for (k = 0; k < q->prompt->n_media; k++) {
            other = &q->prompt->media[k];

            if (other == m || other->digest != m->digest || other->n != m->n
                || !llm_salt_same(&q->req->prep.salt,
                                  &s->running[before]->req->prep.salt))
            {
                continue;
            }

            if (other->rows) {
                return other->rows;
            }

            *soon |= i < before && llm_media_due(q) == other;
        }
    }

    return NULL;
}


static void
llm_media_count(llm_sched_t *s, int known)
{
    llm_zone_add(s->counters->media_queries, 1);
    llm_zone_add(s->counters->media_hits, known != 0);
}


/* is the media of sequence number i to be encoded now? */

static int
llm_media_wants(llm_sched_t *s, uint32_t i)
{
    int           soon;
    llm_seq_t    *q = s->running[i];
    const float  *rows;
    llm_media_t  *m;

    m = llm_media_due(q);

    if (m == NULL || q->req->err.status) {
        return 0;
    }

    /* it may be in the tree by now */

    llm_sched_extend(s, q);

    if (llm_media_due(q) != m) {
        return 0;
    }

    if (llm_encoded_get(s, &q->req->prep.salt, m) == LLM_OK) {
        llm_media_count(s, 1);
        return 0;
    }

    rows = llm_media_beside(s, i, m, &soon);

    if (rows && llm_encoded_copy(s, rows, m) == LLM_OK) {
        llm_media_count(s, 1);
        return 0;
    }

    return rows || !soon;
}


/* chooses the media that is encoded next */

static void
llm_media_choose(llm_sched_t *s)
{
    uint32_t  i;

    for (i = 0; i < s->n_running; i++) {
        if (llm_media_wants(s, i)) {
            s->encodes = s->running[i]->req;
            s->media = llm_media_due(s->running[i]);
            llm_media_count(s, 0);
            return;
        }
    }
}


/* runs a piece of the encoder, if there is media to encode; 1: it did */

int
llm_media_encode(llm_sched_t *s)
{
    int         rc;
    llm_err_t   err;
    llm_req_t  *r;

    if (s->conf.runner.n_given == 0) {
        return 0;
    }

    if (s->encodes == NULL) {
        llm_media_choose(s);
    }

    if (s->encodes == NULL) {
        return 0;
    }

    rc = s->conf.runner.encode(s->conf.runner.encoder, s->media, &err);

    if (rc == LLM_MORE) {
        return 1;
    }

    r = s->encodes;
    s->encodes = NULL;
    s->media = NULL;

    if (rc == LLM_OK) {
        llm_zone_add(s->counters->encodes, 1);

    } else {
        llm_step_fail(s, r, &err);
    }

    return 1;
}