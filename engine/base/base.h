/*
 * What every file of the engine uses: return codes, errors with a message for
 * people, strings with a length, an arena and a growing byte buffer, both
 * with a bound.
 *
 * Nothing here knows nginx, JSON, tensors or threads.  An arena owns all
 * that was allocated from it; a buffer owns its bytes.
 */

#ifndef LLM_BASE_H
#define LLM_BASE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LLM_OK           0
#define LLM_ERROR       -1              /* and an llm_err_t says why */

/* other results of some functions, as their headers say */
#define LLM_END         -2              /* there are no more items */
#define LLM_ABSENT      -3              /* what was looked for is not there */
#define LLM_FULL        -4              /* there is no room now */
#define LLM_STALE       -5              /* what the caller saw has changed
                                           since */
#define LLM_STOPPED     -6              /* it is complete: nothing is to
                                           follow */
#define LLM_MORE        -7              /* there is more to write */
#define LLM_SHORT       -8              /* more bytes of the file are needed */
#define LLM_LATER       -9              /* another thread has it now */

/* a folder's own results count down from here, in its header */
#define LLM_OTHER      -20

#define llm_align(n, a)  (((n) + ((a) - 1)) & ~((size_t) (a) - 1))
#define llm_min(a, b)    ((a) < (b) ? (a) : (b))
#define llm_max(a, b)    ((a) > (b) ? (a) : (b))
#define llm_nelems(x)    (sizeof(x) / sizeof((x)[0]))
#define llm_printf_like(f, a)  __attribute__((format(printf, f, a)))

/* marks what the module exports to nginx, and backends to dlopen() */
#define LLM_EXPORT       __attribute__((visibility("default")))


typedef struct {
    size_t       len;
    const char  *data;                  /* not NUL-terminated, not owned */
} llm_str_t;

#define llm_str(lit)     ((llm_str_t) { sizeof(lit) - 1, (lit) })

/* the same bytes; s is this text */
static inline int
llm_str_eq(llm_str_t a, llm_str_t b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}


static inline int
llm_str_is(llm_str_t s, const char *text)
{
    return s.len == strlen(text)
           && (s.len == 0 || memcmp(s.data, text, s.len) == 0);
}


/* the value of a hexadecimal digit, or -1 */
static inline int
llm_hex_digit(int c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }

    c |= 0x20;

    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}


/*
 * An error.  status is the HTTP status for the client (400 its fault, 500
 * ours, 503 not now); param and code are OpenAI's, empty strings if there is
 * none.
 */

typedef struct {
    int          status;
    char         param[192];
    char         code[48];
    char         msg[512];
} llm_err_t;

/* sets msg and status 500; err may be NULL; always returns LLM_ERROR */
int llm_fail(llm_err_t *err, const char *fmt, ...) llm_printf_like(2, 3);

/* the same with status, code and param (both may be NULL) */
int llm_fail_with(llm_err_t *err, int status, const char *code,
    const char *param, const char *fmt, ...) llm_printf_like(5, 6);


/*
 * Copies text from outside so that it is safe in a message or a log: bytes
 * that are not UTF-8, control characters and those that break lines or change
 * their direction become \xHH.  Writes less than size bytes, whole
 * characters, and a NUL; returns their number.  All error messages go through
 * it.
 */
size_t llm_clean(char *out, size_t size, const char *s, size_t len);

/* removes the folders of path wherever they are in msg */
void llm_hide_folder(char *msg, const char *path);


/* log levels are nginx's: smaller is more severe */
#define LLM_LOG_ERR      4
#define LLM_LOG_WARN     5
#define LLM_LOG_NOTICE   6
#define LLM_LOG_INFO     7

/* called from any thread; the callee must not keep msg */
typedef void (*llm_log_pt)(void *data, int level, const char *msg);


/* a bump allocator; not thread-safe; all memory is freed with it */

typedef struct llm_arena_block_s  llm_arena_block_t;

typedef struct {
    llm_arena_block_t  *last;
    size_t              used;           /* bytes asked of malloc so far */
    size_t              limit;          /* never more than this */
} llm_arena_t;

void llm_arena_init(llm_arena_t *a, size_t limit);
/* 16-byte aligned; NULL beyond the limit or if malloc fails */
void *llm_arena_alloc(llm_arena_t *a, size_t size);
void *llm_arena_calloc(llm_arena_t *a, size_t size);
/* a NUL-terminated copy */
char *llm_arena_dup(llm_arena_t *a, const void *data, size_t len);
void llm_arena_free(llm_arena_t *a);


/* a growing byte buffer; data is NUL-terminated whenever len > 0 */

typedef struct {
    char        *data;
    size_t       len;
    size_t       cap;
    size_t       limit;                 /* most bytes; 0 = 1 GiB */
    int          failed;                /* beyond the limit, or malloc failed;
                                           it stays set */
} llm_buf_t;

void llm_buf_init(llm_buf_t *b, size_t limit);
/* all return LLM_OK or LLM_ERROR, and do nothing once failed */
int llm_buf_add(llm_buf_t *b, const void *data, size_t len);
int llm_buf_addc(llm_buf_t *b, char c);
int llm_buf_adds(llm_buf_t *b, const char *s);
int llm_buf_addf(llm_buf_t *b, const char *fmt, ...) llm_printf_like(2, 3);
/* adds zeros until the length is a multiple of 8, as flat values need it */
int llm_buf_pad(llm_buf_t *b);
/* room for len more bytes at b->data + b->len, or NULL */
char *llm_buf_reserve(llm_buf_t *b, size_t len);
void llm_buf_free(llm_buf_t *b);


/* checked arithmetic on sizes: nonzero when the result does not fit */
static inline int
llm_mul_overflow(size_t a, size_t b, size_t *res)
{
    return __builtin_mul_overflow(a, b, res);
}


static inline int
llm_add_overflow(size_t a, size_t b, size_t *res)
{
    return __builtin_add_overflow(a, b, res);
}


/* monotonic time in microseconds */
uint64_t llm_now_us(void);

#endif /* LLM_BASE_H */
