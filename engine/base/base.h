/*
 * What every file of the engine uses: return codes, errors with a message for
 * people, strings with a length, a memory arena and a growing byte buffer,
 * both with a size limit.
 *
 * Nothing here depends on nginx, JSON, tensors or threads.  An arena owns all
 * memory that was allocated from it; a buffer owns its bytes.
 */

#ifndef LLM_BASE_H
#define LLM_BASE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define LLM_OK           0
#define LLM_ERROR       -1              /* failed; llm_err_t says why */

/* other results, of functions whose headers list them */
#define LLM_END         -2              /* no more items */
#define LLM_ABSENT      -3              /* not found */
#define LLM_FULL        -4              /* no room at the moment */
#define LLM_STALE       -5              /* changed since the caller read it */
#define LLM_STOPPED     -6              /* complete: nothing may follow */
#define LLM_MORE        -7              /* there is more to write */
#define LLM_SHORT       -8              /* more bytes of the file are needed */
#define LLM_LATER       -9              /* another thread works on it now */

/* results of one folder only, defined in its header, count down from here */
#define LLM_OTHER      -20

#define llm_align(n, a)  (((n) + ((a) - 1)) & ~((size_t) (a) - 1))
#define llm_min(a, b)    ((a) < (b) ? (a) : (b))
#define llm_max(a, b)    ((a) > (b) ? (a) : (b))
#define llm_nelems(x)    (sizeof(x) / sizeof((x)[0]))
#define llm_printf_like(f, a)  __attribute__((format(printf, f, a)))

/* symbols that the module exports to nginx, and backends to dlsym() */
#define LLM_EXPORT       __attribute__((visibility("default")))


typedef struct {
    size_t       len;
    const char  *data;                  /* not NUL-terminated, not owned */
} llm_str_t;

#define llm_str(lit)     ((llm_str_t) { sizeof(lit) - 1, (lit) })

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


/* the value of a hexadecimal digit; -1: not a hexadecimal digit */
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
 * An error.  status is the HTTP status for the client (400: a bad request,
 * 500: a failure of the server, 503: temporarily unavailable); param and code
 * are those of OpenAI's errors, empty strings if there are none.  n_prompt and
 * n_ctx are set by "context_length_exceeded" alone: tokens of the prompt, as
 * far as they were counted, and those that it may have; else 0.
 */

typedef struct {
    int          status;
    char         param[192];
    char         code[48];
    char         msg[504];
    uint32_t     n_prompt;
    uint32_t     n_ctx;
} llm_err_t;

/* sets msg and status 500; err may be NULL; always returns LLM_ERROR */
int llm_fail(llm_err_t *err, const char *fmt, ...) llm_printf_like(2, 3);

/* as llm_fail(), with status, code and param; code and param may be NULL */
int llm_fail_with(llm_err_t *err, int status, const char *code,
    const char *param, const char *fmt, ...) llm_printf_like(5, 6);


/*
 * Copies text from outside so that it is safe in a message or a log: bytes
 * that are not UTF-8, control characters, and characters that break lines or
 * change their direction are written as \xHH.  Writes whole characters, fewer
 * than size bytes, and a NUL; returns the number of bytes without the NUL.
 * All error messages are cleaned by this function.
 */
size_t llm_clean(char *out, size_t size, const char *s, size_t len);

/* removes the folder part of path wherever it occurs in msg: "/srv/a.gguf"
   becomes "a.gguf" */
void llm_hide_folder(char *msg, const char *path);


/* log levels are nginx's: smaller is more severe */
#define LLM_LOG_ERR      4
#define LLM_LOG_WARN     5
#define LLM_LOG_NOTICE   6
#define LLM_LOG_INFO     7

/* called from any thread; the callee must not keep msg */
typedef void (*llm_log_pt)(void *data, int level, const char *msg);


/* a bump allocator; not thread-safe; llm_arena_free() frees all its memory */

typedef struct llm_arena_block_s  llm_arena_block_t;

typedef struct {
    llm_arena_block_t  *last;
    size_t              used;           /* bytes taken from malloc so far */
    size_t              limit;          /* upper bound of used */
} llm_arena_t;

void llm_arena_init(llm_arena_t *a, size_t limit);
/* 16-byte aligned; NULL if the limit is exceeded or malloc fails */
void *llm_arena_alloc(llm_arena_t *a, size_t size);
void *llm_arena_calloc(llm_arena_t *a, size_t size);
/* a NUL-terminated copy of len bytes; NULL as above */
char *llm_arena_dup(llm_arena_t *a, const void *data, size_t len);
void llm_arena_free(llm_arena_t *a);


/* a growing byte buffer; data is NUL-terminated whenever len > 0 */

typedef struct {
    char        *data;
    size_t       len;
    size_t       cap;
    size_t       limit;                 /* most bytes of len */
    int          failed;                /* the limit was exceeded, or malloc
                                           failed; never cleared */
} llm_buf_t;

/* limit: most bytes; 0: 1 GiB */
void llm_buf_init(llm_buf_t *b, size_t limit);
/* these return LLM_OK or LLM_ERROR, and do nothing after b->failed was set */
int llm_buf_add(llm_buf_t *b, const void *data, size_t len);
int llm_buf_addc(llm_buf_t *b, char c);
int llm_buf_adds(llm_buf_t *b, const char *s);
int llm_buf_addf(llm_buf_t *b, const char *fmt, ...) llm_printf_like(2, 3);
/* adds zero bytes up to a multiple of 8, the alignment of flat values */
int llm_buf_pad(llm_buf_t *b);
/* makes room for len more bytes and a NUL; returns b->data + b->len; NULL:
   failed */
char *llm_buf_reserve(llm_buf_t *b, size_t len);
void llm_buf_free(llm_buf_t *b);


/* checked arithmetic: nonzero if the result does not fit into size_t */
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
