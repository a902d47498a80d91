/*
 * Admission: requests are counted before they are sent, and when they end; see
 * zone.h.
 */

#include "engine/ipc/zone.h"

/* a bit of `inflight` (zone.h), 0 in other counters */
#define LLM_COUNT_OTHER  0x80000000u

#define llm_count(v)     ((uint32_t) (v) & ~LLM_COUNT_OTHER)
#define llm_tag(v)       ((uint32_t) ((v) >> 32))
#define llm_tagged(e, n) ((uint64_t) (e) << 32 | (n))


/* how many of the model's requests run at once, by the bit of n */

static uint32_t
llm_zone_runs(const llm_zone_model_state_t *m, uint32_t n)
{
    return n & LLM_COUNT_OTHER ? m->other : m->parallel;
}


/* how many may be in flight */

static uint32_t
llm_zone_most(const llm_zone_model_state_t *m, uint32_t n)
{
    return m->places == UINT32_MAX
           ? UINT32_MAX : m->places - m->parallel + llm_zone_runs(m, n);
}


/*
 * Adds one to a counter with an epoch; *old is the count before, and the bit.
 * limits: without and with the bit.  LLM_ERROR: the count has reached the
 * limit; LLM_STALE: its epoch is newer than the caller's.
 */

static int
llm_count_in(_Atomic uint64_t *c, uint32_t epoch, const uint32_t limits[2],
    uint32_t *old)
{
    uint32_t  n;
    uint64_t  v;

    v = atomic_load(c);

    do {
        if ((int32_t) (llm_tag(v) - epoch) > 0) {
            return LLM_STALE;
        }

        n = llm_tag(v) == epoch ? (uint32_t) v : 0;

        if (llm_count(n) >= limits[(n & LLM_COUNT_OTHER) != 0]) {
            return LLM_ERROR;
        }

    } while (!atomic_compare_exchange_weak(c, &v, llm_tagged(epoch, n + 1)));

    *old = n;

    return LLM_OK;
}


/* the same for a counter without the bit */

static int
llm_count_in_all(_Atomic uint64_t *c, uint32_t epoch, uint32_t limit)
{
    uint32_t  old;

    return llm_count_in(c, epoch, (uint32_t[]) { limit, limit }, &old);
}


/* subtracts one; LLM_ERROR: it is 0, or of another epoch; *old as above */

static int
llm_count_out(_Atomic uint64_t *c, uint32_t epoch, uint32_t *old)
{
    uint64_t  v;

    v = atomic_load(c);

    do {
        if (llm_tag(v) != epoch || llm_count(v) == 0) {
            return LLM_ERROR;
        }

    } while (!atomic_compare_exchange_weak(c, &v, v - 1));

    *old = (uint32_t) v;

    return LLM_OK;
}


/* the level of a priority, which a broken worker may have sent out of range */

static uint32_t
llm_zone_level(int32_t priority)
{
    priority = llm_max(llm_min(priority, LLM_MAX_PRIORITY), -LLM_MAX_PRIORITY);

    return (uint32_t) (priority + LLM_MAX_PRIORITY);
}


/* requests in flight of the levels from `level` to the one before `end` */

static uint64_t
llm_zone_between(const llm_zone_model_state_t *m, uint32_t epoch,
    uint32_t level, uint32_t end)
{
    uint64_t  n, v;

    for (n = 0; level < end; level++) {
        v = atomic_load(&m->levels[level]);
        n += llm_tag(v) == epoch ? llm_count(v) : 0;
    }

    return n;
}


/* the same for all levels from `level` on */

static uint64_t
llm_zone_from(const llm_zone_model_state_t *m, uint32_t epoch, uint32_t level)
{
    return llm_zone_between(m, epoch, level, LLM_ZONE_LEVELS);
}


uint32_t
llm_zone_queue(const llm_zone_t *z, int32_t priority)
{
    return priority < 0 ? z->queue_low : z->queue;
}


/*
 * A call that raises inflight from n to n + 1 with n >= parallel takes a place
 * in the queue; a call that lowers it again returns the place.  The place is
 * taken first, so `waiting` is never too small.
 *
 * The request is counted in its level already, after `same` others: if several
 * come at the same time and one less urgent request can give way, only one of
 * them counts on that.  Without a less urgent request none gives way: a request
 * that is late finds the places taken by equals that came after it, and waits.
 */

static int
llm_zone_admit_to(llm_zone_t *z, uint32_t model, uint32_t epoch,
    int32_t priority, uint32_t same)
{
    int                      rc, preempts;
    uint32_t                 old, level, runs;
    llm_zone_model_state_t  *m;

    m = &z->models[model];

    rc = llm_count_in(&m->inflight, epoch,
                      (uint32_t[]) { m->parallel, m->other }, &old);
    if (rc != LLM_ERROR) {
        return rc;
    }

    level = llm_zone_level(priority);
    runs = llm_zone_parallel(z, model);

    preempts = same < runs
               && llm_zone_between(m, epoch, 0, level)
               && same + llm_zone_from(m, epoch, level + 1) < runs;

    rc = llm_count_in_all(&z->waiting, epoch,
                          preempts ? UINT32_MAX : llm_zone_queue(z, priority));
    if (rc != LLM_OK) {
        return rc;
    }

    rc = preempts
         ? llm_count_in(&m->inflight, epoch,
                        (uint32_t[]) { UINT32_MAX, UINT32_MAX }, &old)
         : llm_count_in(&m->inflight, epoch,
                        (uint32_t[]) { llm_zone_most(m, 0),
                                       llm_zone_most(m, LLM_COUNT_OTHER) },
                        &old);

    if (rc != LLM_OK || llm_count(old) < llm_zone_runs(m, old)) {
        (void) llm_count_out(&z->waiting, epoch, &old);
    }

    return rc;
}


int
llm_zone_admit(llm_zone_t *z, uint32_t model, uint32_t epoch, int32_t priority)
{
    int                rc;
    uint32_t           same;
    _Atomic uint64_t  *level;

    level = &z->models[model].levels[llm_zone_level(priority)];

    rc = llm_count_in(level, epoch, (uint32_t[]) { UINT32_MAX, UINT32_MAX },
                      &same);
    if (rc != LLM_OK) {
        return rc;
    }

    rc = llm_zone_admit_to(z, model, epoch, priority, same);

    if (rc != LLM_OK) {
        (void) llm_count_out(level, epoch, &same);
    }

    return rc;
}


void
llm_zone_release(llm_zone_t *z, uint32_t model, uint32_t epoch,
    int32_t priority)
{
    uint32_t                 old;
    llm_zone_model_state_t  *m;

    m = &z->models[model];

    if (llm_count_out(&m->inflight, epoch, &old) == LLM_OK
        && llm_count(old) > llm_zone_runs(m, old))
    {
        (void) llm_count_out(&z->waiting, epoch, &old);
    }

    (void) llm_count_out(&m->levels[llm_zone_level(priority)], epoch, &old);
}


int
llm_zone_in_use(llm_zone_t *z, uint32_t model, uint32_t epoch)
{
    uint64_t  n;

    n = atomic_load(&z->models[model].inflight);

    return llm_tag(n) == epoch && llm_count(n) != 0;
}


int
llm_zone_has_room(llm_zone_t *z, uint32_t model, int32_t priority)
{
    uint32_t                       epoch, runs;
    uint64_t                       n, w;
    const llm_zone_model_state_t  *m;

    m = &z->models[model];

    epoch = atomic_load(&z->epoch);
    n = atomic_load(&m->inflight);
    w = atomic_load(&z->waiting);
    runs = llm_zone_runs(m, (uint32_t) n);

    if (llm_tag(n) != epoch || llm_count(n) < runs
        || llm_zone_from(m, epoch, llm_zone_level(priority)) < runs)
    {
        return 1;
    }

    return llm_count(n) < llm_zone_most(m, (uint32_t) n)
           && (llm_tag(w) != epoch
               || llm_count(w) < llm_zone_queue(z, priority));
}


void
llm_zone_counts(llm_zone_t *z, llm_zone_counts_t *seen)
{
    uint32_t                       i, k;
    const llm_zone_model_state_t  *m;

    for (i = 0; i < z->n_models; i++) {
        m = &z->models[i];
        seen->inflight[i] = atomic_load(&m->inflight);

        for (k = 0; k < LLM_ZONE_LEVELS; k++) {
            seen->levels[i][k] = atomic_load(&m->levels[k]);
        }
    }

    seen->waiting = atomic_load(&z->waiting);
}


static int
llm_count_clear(_Atomic uint64_t *c, uint64_t seen)
{
    return atomic_compare_exchange_strong(c, &seen, seen - llm_count(seen))
           ? LLM_OK : LLM_STALE;
}


int
llm_zone_clear_counts(llm_zone_t *z, const llm_zone_counts_t *seen)
{
    int                      rc;
    uint32_t                 i, k;
    llm_zone_model_state_t  *m;

    for (i = 0, rc = LLM_OK; i < z->n_models && rc == LLM_OK; i++) {
        m = &z->models[i];
        rc = llm_count_clear(&m->inflight, seen->inflight[i]);

        for (k = 0; k < LLM_ZONE_LEVELS && rc == LLM_OK; k++) {
            rc = llm_count_clear(&m->levels[k], seen->levels[i][k]);
        }
    }

    return rc == LLM_OK ? llm_count_clear(&z->waiting, seen->waiting) : rc;
}


uint32_t
llm_zone_inflight(llm_zone_t *z, uint32_t model, uint32_t epoch)
{
    uint64_t  n;

    n = atomic_load(&z->models[model].inflight);

    return llm_tag(n) == epoch ? llm_count(n) : 0;
}


/* the lower half of `inflight` */

static uint32_t
llm_zone_now(llm_zone_t *z, uint32_t model)
{
    uint64_t  n;

    n = atomic_load(&z->models[model].inflight);

    return llm_tag(n) == atomic_load(&z->epoch) ? (uint32_t) n : 0;
}


uint32_t
llm_zone_parallel(llm_zone_t *z, uint32_t model)
{
    return llm_zone_runs(&z->models[model], llm_zone_now(z, model));
}


uint32_t
llm_zone_places(llm_zone_t *z, uint32_t model)
{
    return llm_zone_most(&z->models[model], llm_zone_now(z, model));
}


/* adds `up` to the requests that wait, or subtracts `down` */

static void
llm_zone_wait(llm_zone_t *z, uint32_t epoch, uint32_t up, uint32_t down)
{
    uint32_t  old;

    while (up-- && llm_count_in_all(&z->waiting, epoch, UINT32_MAX) == LLM_OK) {
        /* void */
    }

    while (down-- && llm_count_out(&z->waiting, epoch, &old) == LLM_OK) {
        /* void */
    }
}


/*
 * As when requests are counted, places in the queue are taken before `inflight`
 * says that more requests wait, and are given back after it says that fewer do.
 */

void
llm_zone_set_speech(llm_zone_t *z, uint32_t model, uint32_t epoch, int speech)
{
    uint32_t                 n, bit, more, fewer;
    uint64_t                 v, to;
    llm_zone_model_state_t  *m;

    m = &z->models[model];
    bit = (speech != 0) != (m->speech != 0) ? LLM_COUNT_OTHER : 0;
    v = atomic_load(&m->inflight);

    while ((int32_t) (llm_tag(v) - epoch) <= 0) {
        n = llm_tag(v) == epoch ? (uint32_t) v : 0;
        to = llm_tagged(epoch, llm_count(n) | bit);
        fewer = llm_count(n) - llm_min(llm_count(n), llm_zone_runs(m, n));
        more = llm_count(n) - llm_min(llm_count(n), llm_zone_runs(m, bit));

        llm_zone_wait(z, epoch, more - llm_min(more, fewer), 0);

        if (atomic_compare_exchange_strong(&m->inflight, &v, to)) {
            llm_zone_wait(z, epoch, 0, fewer - llm_min(more, fewer));
            return;
        }

        llm_zone_wait(z, epoch, 0, more - llm_min(more, fewer));
    }
}
