/*
 * A bound of what may be taken in a time: a bucket that is filled by what is
 * taken and empties at a rate (ITU-T I.371's leaky bucket).  If nothing is
 * taken that does not fit, then in any time t at most the bucket's size plus
 * rate times t is taken.
 *
 * Amounts are counted in units.  Any rate per second, minute or hour is a
 * whole number of units per microsecond; a rate per day is a whole number per
 * LLM_QUOTA_TICK microseconds.  So nothing is ever rounded.
 */

#ifndef LLM_QUOTA_H
#define LLM_QUOTA_H

#include "engine/base/base.h"

/* units of one token, or of one request: the microseconds of an hour */
#define LLM_QUOTA_UNIT  INT64_C(3600000000)

/* microseconds of a tick: hours of a day */
#define LLM_QUOTA_TICK  24

/* the most that a rate or an amount may be */
#define LLM_QUOTA_MOST  1000000000

typedef struct {
    uint64_t     n;                     /* amount per period */
    uint64_t     step;                  /* units per tick */
} llm_rate_t;

typedef struct {
    int64_t      excess;                /* units in the bucket, not below 0 */
    uint64_t     step;                  /* units that leave it per tick */
    uint64_t     us;                    /* time of excess, in microseconds;
                                           with a rate per day at most a tick
                                           ago */
} llm_bucket_t;

/* reads an amount, up to LLM_QUOTA_MOST; LLM_ERROR: it is not one */
int llm_quota_amount(const char *s, size_t len, uint64_t *n);
/* reads a number followed by "/s", "/m", "/h" or "/d"; without these it is per
   minute */
int llm_quota_rate(const char *s, size_t len, llm_rate_t *rate);

/* empties the bucket until now at its old rate; from now on it empties at
   `step` */
void llm_bucket_run(llm_bucket_t *b, uint64_t step, uint64_t now);
/* adds units; negative ones take out as many as there are */
void llm_bucket_add(llm_bucket_t *b, int64_t units);
/* microseconds until the bucket holds at most `most` units; UINT64_MAX:
   never */
uint64_t llm_bucket_wait(const llm_bucket_t *b, int64_t most);

/* writes a time in the form that clients of OpenAI's API read: 1h2m3s, 12.5s,
   250ms; `to` has at least LLM_QUOTA_TIME bytes */
#define LLM_QUOTA_TIME  48
void llm_quota_time(char *to, uint64_t us);

#endif /* LLM_QUOTA_H */
