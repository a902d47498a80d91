/*
 * Rates, and buckets that are charged at a rate; see quota.h.
 */

#include "engine/api/quota.h"
#include "engine/base/count.h"

#include <stdio.h>

/* largest excess that is stored, more than two full buckets */
#define LLM_QUOTA_FULL  (2 * LLM_QUOTA_MOST * LLM_QUOTA_UNIT)

/* a stored time further in the future is wrong, in microseconds */
#define LLM_QUOTA_AHEAD  1000000


int
llm_quota_amount(const char *s, size_t len, uint64_t *n)
{
    return llm_count(s, len, LLM_QUOTA_MOST, n);
}


int
llm_quota_rate(const char *s, size_t len, llm_rate_t *rate)
{
    uint64_t  seconds;

    seconds = 60;

    if (len > 2 && s[len - 2] == '/') {
        switch (s[len - 1]) {

        case 's':
            seconds = 1;
            break;

        case 'm':
            break;

        case 'h':
            seconds = 3600;
            break;

        case 'd':
            seconds = 86400;
            break;

        default:
            return LLM_ERROR;
        }

        len -= 2;
    }

    /* "100m" is refused: it could mean a hundred per minute */

    if (len == 0 || s[len - 1] < '0' || s[len - 1] > '9'
        || llm_quota_amount(s, len, &rate->n) != LLM_OK)
    {
        return LLM_ERROR;
    }

    rate->step = rate->n * (3600 * LLM_QUOTA_TICK / seconds);

    return LLM_OK;
}


/* the shortest time in which whole units leave the bucket; returns the units,
   *us: the microseconds */

static uint64_t
llm_bucket_pace(const llm_bucket_t *b, uint64_t *us)
{
    *us = b->step % LLM_QUOTA_TICK ? LLM_QUOTA_TICK : 1;

    return b->step / (LLM_QUOTA_TICK / *us);
}


void
llm_bucket_run(llm_bucket_t *b, uint64_t step, uint64_t now)
{
    uint64_t  us, each, units;

    /* clocks of two processes may differ slightly, but not by more than this */

    if (b->us > now && b->us - now > LLM_QUOTA_AHEAD) {
        b->us = now;
    }

    us = now > b->us ? now - b->us : 0;

    if (b->step == 0 || us >= llm_bucket_wait(b, 0)) {
        b->excess = b->step ? 0 : b->excess;
        b->us = llm_max(now, b->us);

    } else {
        units = llm_bucket_pace(b, &each);
        b->excess -= (int64_t) (us / each * units);
        b->us += us / each * each;
    }

    b->step = step;
}


void
llm_bucket_add(llm_bucket_t *b, int64_t units)
{
    if (units > LLM_QUOTA_FULL - b->excess) {
        b->excess = LLM_QUOTA_FULL;

    } else {
        b->excess = llm_max(b->excess + units, INT64_C(0));
    }
}


uint64_t
llm_bucket_wait(const llm_bucket_t *b, int64_t most)
{
    uint64_t  each, units;

    if (b->excess <= most) {
        return 0;
    }

    if (b->step == 0 || most < 0) {
        return UINT64_MAX;
    }

    units = llm_bucket_pace(b, &each);

    return ((uint64_t) (b->excess - most) + units - 1) / units * each;
}


void
llm_quota_time(char *to, uint64_t us)
{
    int       n;
    uint64_t  ms, s;

    ms = us / 1000 + (us % 1000 != 0);
    s = ms / 1000;
    ms %= 1000;

    if (s == 0) {
        (void) snprintf(to, LLM_QUOTA_TIME, "%llums", (unsigned long long) ms);
        return;
    }

    n = 0;

    if (s >= 3600) {
        n = snprintf(to, LLM_QUOTA_TIME, "%lluh",
                     (unsigned long long) (s / 3600));
    }

    if (s >= 60) {
        n += snprintf(to + n, LLM_QUOTA_TIME - (size_t) n, "%llum",
                      (unsigned long long) (s / 60 % 60));
    }

    n += snprintf(to + n, LLM_QUOTA_TIME - (size_t) n, "%llu",
                  (unsigned long long) (s % 60));

    if (ms) {
        n += snprintf(to + n, LLM_QUOTA_TIME - (size_t) n, ".%03llu",
                      (unsigned long long) ms);
    }

    (void) snprintf(to + n, LLM_QUOTA_TIME - (size_t) n, "s");
}
