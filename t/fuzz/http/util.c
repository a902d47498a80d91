/*
 * Buffers, numbers by chance, and what a person can read.
 */

#include "t/fuzz/http/http.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


void
fz_die(const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    fprintf(stderr, "fuzz-http: ");
    vfprintf(stderr, fmt, args);
    fprintf(stderr, "\n");
    va_end(args);

    exit(2);
}


static void
fz_grow(fz_buf_t *b, size_t len)
{
    if (b->len + len + 1 <= b->cap) {
        return;
    }

    b->cap = (b->len + len + 1) * 2;
    b->data = realloc(b->data, b->cap);

    if (b->data == NULL) {
        fz_die("no memory");
    }
}


void
fz_add(fz_buf_t *b, const void *data, size_t len)
{
    fz_grow(b, len);

    if (len) {
        memcpy(b->data + b->len, data, len);
    }

    b->len += len;
    b->data[b->len] = '\0';
}


void
fz_adds(fz_buf_t *b, const char *s)
{
    fz_add(b, s, strlen(s));
}


void
fz_addf(fz_buf_t *b, const char *fmt, ...)
{
    int      n;
    va_list  args;

    fz_grow(b, 512);

    va_start(args, fmt);
    n = vsnprintf(b->data + b->len, 512, fmt, args);
    va_end(args);

    if (n < 0 || n >= 512) {
        fz_die("a text longer than expected");
    }

    b->len += (size_t) n;
}


void
fz_repeat(fz_buf_t *b, const char *s, size_t n)
{
    while (n--) {
        fz_adds(b, s);
    }
}


/* splitmix64 */

uint64_t
fz_rand(fz_rand_t *r)
{
    uint64_t  z;

    r->state += 0x9e3779b97f4a7c15ull;

    z = r->state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;

    return z ^ (z >> 31);
}


void
fz_seed(fz_rand_t *r, uint64_t seed, uint64_t number)
{
    r->state = seed;
    r->state = fz_rand(r) ^ number;
    r->state = fz_rand(r);
}


unsigned
fz_below(fz_rand_t *r, unsigned n)
{
    return (unsigned) ((fz_rand(r) >> 32) * n >> 32);
}


int
fz_chance(fz_rand_t *r, unsigned permille)
{
    return fz_below(r, 1000) < permille;
}


/* as printf '%b' of a shell takes it */

void
fz_print(const char *data, size_t len, size_t max)
{
    size_t         i;
    unsigned char  c;

    for (i = 0; i < len && i < max; i++) {
        c = (unsigned char) data[i];

        if (c == '\n') {
            printf("\\n");

        } else if (c == '\r') {
            printf("\\r");

        } else if (c == '\\') {
            printf("\\\\");

        } else if (c < 0x20 || c >= 0x7f) {
            printf("\\x%02x", c);

        } else {
            putchar(c);
        }
    }

    if (len > max) {
        printf("... (%zu bytes)", len);
    }

    printf("\n");
}
