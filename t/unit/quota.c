/*
 * Rates, and buckets that empty at them: what is read, what is never rounded,
 * what the largest numbers do.
 */

#include "engine/api/quota.h"

#include "t/unit/tap.h"


static void
test_numbers(void)
{
    size_t      i;
    llm_rate_t  r;

    static const struct {
        const char  *text;
        uint64_t     n;
        uint64_t     step;
    } good[] = {
        { "0", 0, 0 },
        { "1/d", 1, 1 },
        { "1/h", 1, 24 },
        { "60", 60, 86400 },
        { "60/m", 60, 86400 },
        { "1/s", 1, 86400 },
        { "1000000000/s", 1000000000, UINT64_C(86400000000000) },
        { "007/m", 7, 10080 }
    };

    static const char  *bad[] = {
        "", "/m", "m", "-1", "1 /m", "1/", "1/w", "1/mm", "1.5/m", "1e3",
        "1000000001", "99999999999999999999999999", "1k", "0x10", " 1", "1 "
    };

    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        is_int(llm_quota_rate(good[i].text, strlen(good[i].text), &r), LLM_OK,
               "\"%s\" is a rate", good[i].text);
        is_int(r.n, good[i].n, "of so many");
        is_int(r.step, good[i].step, "and so many units in a tick");
    }

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        is_int(llm_quota_rate(bad[i], strlen(bad[i]), &r), LLM_ERROR,
               "\"%s\" is none", bad[i]);
    }
}


/* whatever the rate and the steps in which time passes: what leaves is the
   rate times the time, to the unit */

static void
test_exact(void)
{
    uint32_t      i, k, wrong;
    uint64_t      now, seed, each;
    llm_rate_t    r;
    llm_bucket_t  b;

    static const char  *rates[] = {
        "1/h", "7/m", "59/m", "999983/h", "13/s", "5/d", "48/d", "999983/d"
    };

    seed = 1;

    for (i = 0; i < sizeof(rates) / sizeof(rates[0]); i++) {
        memset(&b, 0, sizeof(b));
        (void) llm_quota_rate(rates[i], strlen(rates[i]), &r);

        /* of most rates by the day what leaves is whole in each tick alone */

        each = r.step % LLM_QUOTA_TICK ? LLM_QUOTA_TICK : 1;
        now = 1000000;
        llm_bucket_run(&b, r.step, now);
        llm_bucket_add(&b, 1000000 * LLM_QUOTA_UNIT);
        wrong = 0;

        for (k = 0; k < 1000; k++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
            now += seed >> 50;
            llm_bucket_run(&b, r.step, now);
            wrong += b.excess != 1000000 * LLM_QUOTA_UNIT
                                 - (int64_t) ((now - 1000000) / each * each
                                              * r.step / LLM_QUOTA_TICK);
        }

        is_int(wrong, 0, "%s: after 1000 steps of time nothing is lost",
               rates[i]);
    }
}


static void
test_edges(void)
{
    uint64_t      wait;
    llm_rate_t    r;
    llm_bucket_t  b;

    memset(&b, 0, sizeof(b));
    (void) llm_quota_rate("1/s", 3, &r);

    llm_bucket_run(&b, r.step, 5);
    llm_bucket_add(&b, 10 * LLM_QUOTA_UNIT);
    is_int(llm_bucket_wait(&b, 0), 10000000, "ten seconds to empty it");
    is_int(llm_bucket_wait(&b, 9 * LLM_QUOTA_UNIT + 1), 1000000,
           "a time is rounded up");
    is_int(llm_bucket_wait(&b, 10 * LLM_QUOTA_UNIT), 0, "none if it fits");
    ok(llm_bucket_wait(&b, -1) == UINT64_MAX, "for ever, if it never fits");

    wait = llm_bucket_wait(&b, 3 * LLM_QUOTA_UNIT);
    llm_bucket_run(&b, r.step, 5 + wait - 1);
    ok(b.excess > 3 * LLM_QUOTA_UNIT, "a microsecond before it does not fit");
    llm_bucket_run(&b, r.step, 5 + wait);
    ok(b.excess <= 3 * LLM_QUOTA_UNIT, "and then it does");

    llm_bucket_run(&b, r.step, 0);
    ok(b.excess == 3 * LLM_QUOTA_UNIT, "time does not go back");

    llm_bucket_run(&b, r.step, 1000000);
    ok(b.excess == 2 * LLM_QUOTA_UNIT, "a clock that was set back goes on");

    llm_bucket_add(&b, -4 * LLM_QUOTA_UNIT);
    is_int(b.excess, 0, "it is never less than empty");

    llm_bucket_run(&b, 0, 5 + wait);
    llm_bucket_add(&b, LLM_QUOTA_UNIT);
    llm_bucket_run(&b, r.step, UINT64_MAX / 2);
    ok(b.excess == LLM_QUOTA_UNIT, "a rate of 0 gives nothing back");
    llm_bucket_run(&b, r.step, UINT64_MAX);
    is_int(b.excess, 0, "any other gives all of it back in time");

    memset(&b, 0, sizeof(b));
    llm_bucket_add(&b, INT64_MAX);
    llm_bucket_add(&b, INT64_MAX);
    ok(b.excess > LLM_QUOTA_MOST * LLM_QUOTA_UNIT && b.excess < INT64_MAX,
       "a debt has a bound");

    (void) llm_quota_rate("1000000000/s", 12, &r);
    b.step = r.step;
    llm_bucket_run(&b, r.step, 1999999);
    ok(b.excess > 0, "the largest rate takes its time");
    llm_bucket_run(&b, r.step, 2000000);
    is_int(b.excess, 0, "and no more");
}


/* five in a day: what was taken is back when the day is over */

static void
test_day(void)
{
    uint64_t      wait;
    llm_rate_t    r;
    llm_bucket_t  b;

    memset(&b, 0, sizeof(b));
    (void) llm_quota_rate("5/d", 3, &r);

    llm_bucket_run(&b, r.step, 7);
    llm_bucket_add(&b, 5 * LLM_QUOTA_UNIT);
    is_int(llm_bucket_wait(&b, 0), INT64_C(86400000000), "a day to empty it");
    wait = llm_bucket_wait(&b, 4 * LLM_QUOTA_UNIT);
    is_int(wait, INT64_C(86400000000) / 5, "a fifth of it for one");
    llm_bucket_run(&b, r.step, 7 + wait - 1);
    ok(b.excess > 4 * LLM_QUOTA_UNIT, "before that it does not fit");
    llm_bucket_run(&b, r.step, 7 + wait);
    is_int(b.excess, 4 * LLM_QUOTA_UNIT, "then it does");
    llm_bucket_run(&b, r.step, 7 + INT64_C(86400000000));
    is_int(b.excess, 0, "and all after a day");
}


static void
test_times(void)
{
    size_t  i;
    char    text[LLM_QUOTA_TIME];

    static const struct {
        uint64_t     us;
        const char  *text;
    } times[] = {
        { 0, "0ms" },
        { 1, "1ms" },
        { 17000, "17ms" },
        { 999000, "999ms" },
        { 999001, "1s" },
        { 1000000, "1s" },
        { 12500000, "12.500s" },
        { 60000000, "1m0s" },
        { 360000000, "6m0s" },
        { UINT64_C(3723000000), "1h2m3s" },
        { UINT64_C(86400000000), "24h0m0s" },
        { UINT64_MAX - 1, "5124095576h1m49.552s" }
    };

    for (i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        llm_quota_time(text, times[i].us);
        is_str(text, times[i].text, "%llu us",
               (unsigned long long) times[i].us);
    }
}


int
main(void)
{
    test_numbers();
    test_exact();
    test_edges();
    test_day();
    test_times();

    return done_testing();
}
