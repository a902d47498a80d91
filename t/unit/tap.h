/*
 * TAP for the unit tests in C: one program per file, one `ok` per fact.
 */

#ifndef LLM_TAP_H
#define LLM_TAP_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int  tap_count;
static int  tap_failed;


static inline int
tap_vok(int good, const char *file, int line, const char *fmt, va_list args)
{
    tap_count++;
    printf("%sok %d - ", good ? "" : "not ", tap_count);
    vprintf(fmt, args);
    putchar('\n');

    if (!good) {
        tap_failed++;
        printf("# failed at %s:%d\n", file, line);
    }

    fflush(stdout);

    return good;
}


static inline int __attribute__((format(printf, 4, 5)))
tap_ok(int good, const char *file, int line, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    good = tap_vok(good, file, line, fmt, args);
    va_end(args);

    return good;
}


static inline int __attribute__((format(printf, 5, 6)))
tap_is_str(const char *got, const char *want, const char *file, int line,
    const char *fmt, ...)
{
    int      good;
    va_list  args;

    va_start(args, fmt);
    good = tap_vok(got && strcmp(got, want) == 0, file, line, fmt, args);
    va_end(args);

    if (!good) {
        printf("# got  '%s'\n# want '%s'\n", got ? got : "(null)", want);
    }

    return good;
}


#define ok(cond, ...)  tap_ok((cond) != 0, __FILE__, __LINE__, __VA_ARGS__)

#define is_int(got, want, ...)                                               \
    do {                                                                     \
        long long  tap_g = (long long) (got), tap_w = (long long) (want);    \
                                                                             \
        if (!ok(tap_g == tap_w, __VA_ARGS__)) {                              \
            printf("# got %lld, want %lld\n", tap_g, tap_w);                 \
        }                                                                    \
    } while (0)

/* a call, whose arguments may be of structs that functions return */

#define is_str(got, want, ...)                                               \
    (void) tap_is_str((got), (want), __FILE__, __LINE__, __VA_ARGS__)

#define skip(why)                                                            \
    do {                                                                     \
        tap_count++;                                                         \
        printf("ok %d # skip %s\n", tap_count, why);                         \
    } while (0)


static inline int
done_testing(void)
{
    printf("1..%d\n", tap_count);

    return tap_failed ? 1 : 0;
}


/* the folder of the shared fixtures, or NULL where there is none */

static inline const char *
tap_fixtures(void)
{
    FILE         *f;
    const char   *dir;
    static char   path[1024];

    dir = getenv("LLM_FIXTURES");
    snprintf(path, sizeof(path), "%s/README.md",
             dir ? dir : "../shared/fixtures");

    f = fopen(path, "r");
    if (f == NULL) {
        return NULL;
    }

    fclose(f);

    return dir ? dir : "../shared/fixtures";
}

#endif /* LLM_TAP_H */
