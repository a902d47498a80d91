/*
 * Errors, arenas, buffers and the clock; see base.h.
 */

#include "engine/base/base.h"

#include <stdio.h>
#include <time.h>


struct llm_arena_block_s {
    llm_arena_block_t  *prev;
    size_t              pos;
    size_t              cap;
    size_t              pad;            /* keeps the data 16-byte aligned */
};


static void
llm_vfail(llm_err_t *err, int status, const char *code, const char *param,
    const char *fmt, va_list args)
{
    int   n;
    char  msg[2 * sizeof(err->msg)];

    if (err == NULL) {
        return;
    }

    n = vsnprintf(msg, sizeof(msg), fmt, args);
    n = llm_max(n, 0);

    err->status = status;
    err->n_prompt = 0;
    err->n_ctx = 0;
    snprintf(err->code, sizeof(err->code), "%s", code ? code : "");
    snprintf(err->param, sizeof(err->param), "%s", param ? param : "");

    /* the message may quote text of a client or of a file */

    (void) llm_clean(err->msg, sizeof(err->msg), msg,
                     llm_min((size_t) n, sizeof(msg) - 1));
}


int
llm_fail(llm_err_t *err, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    llm_vfail(err, 500, NULL, NULL, fmt, args);
    va_end(args);

    return LLM_ERROR;
}


int
llm_fail_with(llm_err_t *err, int status, const char *code,
    const char *param, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    llm_vfail(err, status, code, param, fmt, args);
    va_end(args);

    return LLM_ERROR;
}


void
llm_arena_init(llm_arena_t *a, size_t limit)
{
    a->last = NULL;
    a->used = 0;
    a->limit = limit;
}


void *
llm_arena_alloc(llm_arena_t *a, size_t size)
{
    void               *p;
    size_t              cap;
    llm_arena_block_t  *b;

    if (size > a->limit) {
        return NULL;
    }

    size = llm_align(size ? size : 1, 16);
    b = a->last;

    if (b == NULL || b->cap - b->pos < size) {
        cap = b ? llm_min(b->cap * 2, (size_t) 1 << 20) : 4096;
        cap = llm_max(cap, size);

        if (cap + sizeof(*b) > a->limit - a->used) {
            cap = size;
        }

        if (cap + sizeof(*b) > a->limit - a->used) {
            return NULL;
        }

        b = malloc(sizeof(*b) + cap);
        if (b == NULL) {
            return NULL;
        }

        b->prev = a->last;
        b->pos = 0;
        b->cap = cap;
        a->last = b;
        a->used += sizeof(*b) + cap;
    }

    p = (char *) (b + 1) + b->pos;
    b->pos += size;

    return p;
}


void *
llm_arena_calloc(llm_arena_t *a, size_t size)
{
    void  *p;

    p = llm_arena_alloc(a, size);
    if (p) {
        memset(p, 0, size);
    }

    return p;
}


char *
llm_arena_dup(llm_arena_t *a, const void *data, size_t len)
{
    char  *p;

    p = llm_arena_alloc(a, len + 1);
    if (p) {
        if (len) {
            memcpy(p, data, len);
        }

        p[len] = '\0';
    }

    return p;
}


void
llm_arena_free(llm_arena_t *a)
{
    llm_arena_block_t  *b, *prev;

    for (b = a->last; b; b = prev) {
        prev = b->prev;
        free(b);
    }

    a->last = NULL;
    a->used = 0;
}


void
llm_buf_init(llm_buf_t *b, size_t limit)
{
    memset(b, 0, sizeof(*b));
    b->limit = limit ? limit : (size_t) 1 << 30;
}


char *
llm_buf_reserve(llm_buf_t *b, size_t len)
{
    char    *p;
    size_t   cap;

    if (b->failed) {
        return NULL;
    }

    if (len > b->limit - b->len) {
        b->failed = 1;
        return NULL;
    }

    /* one byte more than asked for, for the NUL */

    if (b->cap - b->len <= len) {
        cap = llm_max(b->cap * 2, b->len + len + 1);
        cap = llm_max(cap, (size_t) 64);

        p = realloc(b->data, cap);
        if (p == NULL) {
            b->failed = 1;
            return NULL;
        }

        b->data = p;
        b->cap = cap;
    }

    return b->data + b->len;
}


int
llm_buf_add(llm_buf_t *b, const void *data, size_t len)
{
    char  *p;

    p = llm_buf_reserve(b, len);
    if (p == NULL) {
        return LLM_ERROR;
    }

    if (len) {
        memcpy(p, data, len);
    }

    b->len += len;
    b->data[b->len] = '\0';

    return LLM_OK;
}


int
llm_buf_pad(llm_buf_t *b)
{
    static const char  zeros[8];

    return llm_buf_add(b, zeros, llm_align(b->len, 8) - b->len);
}


int
llm_buf_addc(llm_buf_t *b, char c)
{
    return llm_buf_add(b, &c, 1);
}


int
llm_buf_adds(llm_buf_t *b, const char *s)
{
    return llm_buf_add(b, s, strlen(s));
}


int
llm_buf_addf(llm_buf_t *b, const char *fmt, ...)
{
    int      n;
    char    *p;
    va_list  args;

    va_start(args, fmt);
    n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);

    if (n < 0) {
        b->failed = 1;
        return LLM_ERROR;
    }

    p = llm_buf_reserve(b, (size_t) n);
    if (p == NULL) {
        return LLM_ERROR;
    }

    va_start(args, fmt);
    vsnprintf(p, (size_t) n + 1, fmt, args);
    va_end(args);

    b->len += (size_t) n;

    return LLM_OK;
}


void
llm_buf_free(llm_buf_t *b)
{
    free(b->data);
    b->data = NULL;
    b->len = 0;
    b->cap = 0;
}


uint64_t
llm_now_us(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000 + (uint64_t) ts.tv_nsec / 1000;
}
