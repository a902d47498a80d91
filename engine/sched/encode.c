/*
 * The encoder of media, which runs a piece between two steps, so that no stream
 * waits longer than for a step of a prompt; see sched.h.
 *
 * Media is encoded when the pages before it are computed, so that a sequence
 * finds it in the prefix tree if another one had it.  Rows that are known are
 * not encoded again: those that are kept (encoded.c), or that another running
 * sequence has.  Of two that need the same media the first one has it encoded,
 * while the second one waits.
 *
 * Small media share the encoder's steps, as many as fit into one: those that
 * are due of several sequences, and the next ones of their prompts, as far as
 * their rows were counted (media_bytes of a prompt).  A request that leaves
 * meanwhile leaves its pixels here, so that the others lose no time.
 */

#include "engine/sched/sched_internal.h"


static int
llm_media_same(const llm_media_t *a, const llm_media_t *b)
{
    return a->digest == b->digest && a->n == b->n;
}


/* rows of the same media, which another running sequence has; NULL: none.
   *soon: they are to be encoded, or one before number `before` waits for them,
   too */

static const float *
llm_media_beside(const llm_sched_t *s, uint32_t before, const llm_media_t *m,
    int *soon)
{
    uint32_t            i, k;
    const llm_seq_t    *q;
    const llm_salt_t   *salt;
    const llm_media_t  *other;

    *soon = 0;
    salt = &s->running[before]->req->prep.salt;

    for (i = 0; i < s->encodes.n; i++) {
        *soon |= llm_media_same(s->encodes.media[i], m)
                 && llm_salt_same(&s->encodes.salt[i], salt);
    }

    for (i = 0; i < s->n_running; i++) {
        q = s->running[i];

        for (k = 0; k < q->prompt->n_media; k++) {
            other = &q->prompt->media[k];

            if (other == m || !llm_media_same(other, m)
                || !llm_salt_same(&q->req->prep.salt, salt))
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


/* gives up rows of later media of the prompt, which a sequence that lost its
   pages may have, until those of m are no more than what was counted */

static void
llm_media_room(llm_sched_t *s, const llm_seq_t *q, const llm_media_t *m)
{
    uint32_t                 k;
    const llm_prompt_ids_t  *p = q->prompt;

    for (k = p->n_media - 1; &p->media[k] > m; k--) {
        if (llm_media_held(s, p) + llm_media_row_size(s, m) <= p->media_bytes) {
            return;
        }

        if (p->media[k].rows) {
            llm_encoded_put(s, &q->req->prep.salt, &p->media[k]);
        }
    }
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

    if (m == NULL || q->req->failure) {
        return 0;
    }

    /* it may be in the tree by now */

    llm_sched_extend(s, q);

    if (llm_media_due(q) != m) {
        return 0;
    }

    llm_media_room(s, q, m);

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


/* adds media to those that are encoded; 0: there is no room for it; a sound has
   a job of its own */

static int
llm_media_join(llm_sched_t *s, llm_req_t *r, llm_media_t *m)
{
    uint64_t        pixels;
    llm_encodes_t  *e = &s->encodes;

    pixels = (uint64_t) m->w * m->h;

    if (e->n && (e->alone || e->n == LLM_MEDIA_TOGETHER
                 || m->heard || e->media[0]->heard
                 || e->pixels + pixels > s->conf.runner.encode_pixels))
    {
        return 0;
    }

    e->of[e->n] = r;
    e->media[e->n] = m;
    e->salt[e->n++] = r->prep.salt;
    e->pixels += pixels;

    if (e->alone == 0) {                /* else it was counted before */
        llm_media_count(s, 0);
    }

    return 1;
}


/* adds the media of sequence number i that come after the one that is due */

static void
llm_media_ahead(llm_sched_t *s, uint32_t i)
{
    int                      soon;
    uint32_t                 k;
    llm_media_t             *m;
    const llm_seq_t         *q = s->running[i];
    const llm_prompt_ids_t  *p = q->prompt;

    for (k = (uint32_t) (llm_media_due(q) - p->media) + 1; k < p->n_media; k++)
    {
        m = &p->media[k];

        if (m->rows || llm_encoded_has(s, &q->req->prep.salt, m)
            || llm_media_beside(s, i, m, &soon) || soon
            || llm_media_held(s, p) + llm_media_row_size(s, m) > p->media_bytes
            || !llm_media_join(s, q->req, m))
        {
            return;
        }
    }
}


/* chooses the media that are encoded next */

static void
llm_media_choose(llm_sched_t *s)
{
    uint32_t  i;

    for (i = 0; i < s->n_running; i++) {
        if (!llm_media_wants(s, i)) {
            continue;
        }

        if (!llm_media_join(s, s->running[i]->req,
                            llm_media_due(s->running[i])))
        {
            return;
        }

        llm_media_ahead(s, i);
    }
}


/* the requests whose media the encoder has failed on fail; of several that it
   could not encode together, each is tried alone */

static void
llm_media_failed(llm_sched_t *s, int rc, const llm_err_t *err)
{
    uint32_t        i;
    llm_encodes_t  *e = &s->encodes;

    if (rc == LLM_ABSENT && e->n > 1) {
        e->alone = e->n;
        return;
    }

    for (i = 0; i < e->n; i++) {
        if (e->of[i]) {
            llm_step_fail(s, e->of[i], err);
        }
    }
}


/* runs a piece of the encoder, if there is media to encode; 1: it did;
   LLM_ERROR: the device has failed */

int
llm_media_encode(llm_sched_t *s, llm_err_t *err)
{
    int             rc;
    uint64_t        us;
    llm_encodes_t  *e = &s->encodes;

    if (s->conf.runner.n_given == 0) {
        return 0;
    }

    if (e->n == 0) {
        llm_media_choose(s);
    }

    if (e->n == 0) {
        return 0;
    }

    us = llm_now_us();
    rc = s->conf.runner.encode(s->conf.runner.encoder, e->media, e->n, err);
    us = llm_now_us() - us;
    e->us += us;
    s->speed.encoder_us += us;

    if (rc == LLM_MORE) {
        return 1;
    }

    if (e->alone && e->n == 1) {
        e->alone--;
    }

    if (rc == LLM_OK) {
        llm_speed_encoded(s, e->pixels, e->us);
        llm_zone_add(s->counters->encodes, e->n);

    } else {
        llm_media_failed(s, rc, err);
    }

    llm_media_encodes_free(s);

    return rc == LLM_ERROR ? LLM_ERROR : 1;
}
