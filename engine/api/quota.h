/*
 * What may be taken in a time: a bucket that fills while something is taken
 * and empties at a rate (ITU-T I.371's leaky bucket).  If nothing is taken
 * that does not fit, then in any time t no more is taken than the bucket holds
 * plus rate times t.
 *
 * Amounts are counted in units, of which any rate by the second, minute or
 * hour gives a whole number in each microsecond, and one by the day in each
 * LLM_QUOTA_TICK of them: nothing is ever rounded.
 */

#ifndef LLM_QUOTA_H
#define LLM_QUOTA_H

#include "engine/base/base.h"

/* units of one token, or of one request: the microseconds of an hour */
#define LLM_QUOTA_UNIT  INT64_C(3600000000)

/* microseconds: those of a day by those of an hour */
#define LLM_QUOTA_TICK  24

/* the most that a rate or an amount may be */
#define LLM_QUOTA_MOST  1000000000

typedef struct {
    uint64_t     n;                     /* in its period */
    uint64_t     step;                  /* units in a tick */
} llm_rate_t;

typedef struct {
    int64_t      excess;                /* units in it, not below 0 */
    uint64_t     step;                  /* that leave it in a tick */
    uint64_t     us;                    /* when excess was right: of a rate by
                                           the day a tick ago at most */
} llm_bucket_t;

/* a count, up to LLM_QUOTA_MOST; LLM_ERROR: it is not one */
int llm_quota_amount(const char *s, size_t len, uint64_t *n);
/* a number with "/s", "/m", "/h" or "/d" behind it; without, it is a
   minute's */
int llm_quota_rate(const char *s, size_t len, llm_rate_t *rate);

/* what has left until now; from now on it empties at this rate */
void llm_bucket_run(llm_bucket_t *b, uint64_t step, uint64_t now);
/* puts units in; what is below 0 comes out, as far as there is anything */
void llm_bucket_add(llm_bucket_t *b, int64_t units);
/* microseconds until it holds no more than most units; UINT64_MAX: never */
uint64_t llm_bucket_wait(const llm_bucket_t *b, int64_t most);

/* a time as clients of OpenAI's API read it: 1h2m3s, 12.5s, 250ms; at least
   LLM_QUOTA_TIME bytes */
#define LLM_QUOTA_TIME  48
void llm_quota_time(char *to, uint64_t us);

#endif /* LLM_QUOTA_H */
