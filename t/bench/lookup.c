/*
 * Measures the time of a look-up in a table of API keys, for t/bench/keys.pl:
 *
 *   lookup FILE COUNT
 *
 * FILE has the keys of secret-1 to secret-COUNT.  These are looked up, and as
 * many unknown secrets, in an order that makes CPU caches useless.  Prints the
 * median, the least and the largest time of several runs.
 */

#include "engine/api/keys.h"

#include <stdio.h>
#include <stdlib.h>

#define RUNS     5
#define SECRET  24
#define STRIDE  7919                    /* a prime */


static char *
secrets(const char *prefix, uint32_t n)
{
    char      *p;
    uint32_t   i;

    p = calloc(n, SECRET);

    for (i = 0; p && i < n; i++) {
        (void) snprintf(p + (size_t) i * SECRET, SECRET, "%s-%u", prefix,
                        i + 1);
    }

    return p;
}


/* returns microseconds per look-up; adds the number of keys found to *found */

static double
run(const llm_keys_t *keys, const char *p, uint32_t n, uint32_t *found)
{
    uint32_t     i;
    uint64_t     from;
    const char  *s;

    from = llm_now_us();

    for (i = 0; i < n; i++) {
        s = p + (uint64_t) i * STRIDE % n * SECRET;
        *found += llm_keys_find(keys, s, strlen(s)) != NULL;
    }

    return (double) (llm_now_us() - from) / n;
}


static int
compare(const void *a, const void *b)
{
    const double  *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}


static int
report(const llm_keys_t *keys, const char *prefix, uint32_t n, uint32_t want)
{
    int        i;
    char      *p;
    double     us[RUNS];
    uint32_t   found;

    p = secrets(prefix, n);
    if (p == NULL) {
        fprintf(stderr, "no memory\n");
        return LLM_ERROR;
    }

    found = 0;

    for (i = 0; i < RUNS; i++) {
        us[i] = run(keys, p, n, &found);
    }

    free(p);

    if (found != want * RUNS) {
        fprintf(stderr, "%u of %u keys of \"%s-...\" were found\n",
                found / RUNS, n, prefix);
        return LLM_ERROR;
    }

    qsort(us, RUNS, sizeof(us[0]), compare);
    printf("a look-up of \"%s-...\": %.3f us, %.3f to %.3f\n", prefix,
           us[RUNS / 2], us[0], us[RUNS - 1]);

    return LLM_OK;
}


int
main(int argc, char **argv)
{
    int          rc;
    uint32_t     n;
    llm_err_t    err;
    llm_keys_t  *keys;

    n = argc == 3 ? (uint32_t) strtoul(argv[2], NULL, 10) : 0;

    if (n == 0 || n > LLM_KEYS_MAX) {
        fprintf(stderr, "usage: lookup FILE COUNT\n");
        return 1;
    }

    keys = llm_keys_read(argv[1], NULL, &err);
    if (keys == NULL) {
        fprintf(stderr, "%s\n", err.msg);
        return 1;
    }

    rc = report(keys, "secret", n, n) == LLM_OK
         && report(keys, "nobody", n, 0) == LLM_OK;

    llm_keys_free(keys);

    return rc ? 0 : 1;
}
