/*
 * What every file of the engine stands on: return codes, errors that carry
 * a message for a person, strings with a length, an arena with a bound, and
 * a growing byte buffer with a bound.
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

/* neither: what else a function may say, as its header has it */
#define LLM_AGAIN       -2              /* not yet: call again */
#define LLM_ABSENT      -3              /* what was asked for is not there */
#define LLM_FULL        -4              /* there is no room now */
#define LLM_STALE       -5              /* what the caller saw has changed */
#define LLM_STOPPED     -6              /* a stop string has matched */
#define LLM_PREEMPTED   -7              /* the sequence is in the queue again */
#define LLM_REPLAYED    -8              /* the device knows the step already */
#define LLM_REDO        -9              /* the step has to be written again */
#define LLM_END         -10             /* there are no more items */

#define llm_align(n, a)  (((n) + ((a) - 1)) & ~((size_t) (a) - 1))
#define llm_min(a, b)    ((a) < (b) ? (a) : (b))
#define llm_max(a, b)    ((a) > (b) ? (a) : (b))
#define llm_nelems(x)    (sizeof(x) / sizeof((x)[0]))
#define llm_printf_like(f, a)  __attribute__((format(printf, f, a)))

/* what the module exports to nginx and the backends to dlopen is marked */
#define LLM_EXPORT       __attribute__((visibility("default")))


typedef struct {
    size_t       len;
    const char  *data;                  /* not NUL-terminated, not owned */
} llm_str_t;

#define llm_str(lit)     ((llm_str_t) { sizeof(lit) - 1, (lit) })


/*
 * An error on its way up.  status is the HTTP status that the API would
 * answer (400 the client's fault, 500 ours, 503 not now); param and code
 * are OpenAI's, empty strings where there is none.
 */

typedef struct {
    int          status;
    char         param[64];
    char         code[48];
    char         msg[512];
} llm_err_t;

/* sets msg and status 500; err may be NULL; always returns LLM_ERROR */
int llm_fail(llm_err_t *err, const char *fmt, ...) llm_printf_like(2, 3);

/* the same with status, code and param (both may be NULL) */
int llm_fail_with(llm_err_t *err, int status, const char *code,
    const char *param, const char *fmt, ...) llm_printf_like(5, 6);


/*
 * Copies text that somebody else wrote so that it can stand in a message or
 * a log: what is no UTF-8, control characters and those that turn or break
 * lines become \xHH.  Writes less than size bytes and a NUL, whole
 * characters; returns their number.  Messages of errors went through it.
 */
size_t llm_clean(char *out, size_t size, const char *s, size_t len);

/* takes the folders of path away from wherever they stand in msg */
void llm_hide_folder(char *msg, const char *path);


/* log levels are nginx's: the smaller, the graver */
#define LLM_LOG_ERR      4
#define LLM_LOG_WARN     5
#define LLM_LOG_NOTICE   6
#define LLM_LOG_INFO     7

/* called from any thread; the callee must not keep msg */
typedef void (*llm_log_pt)(void *data, int level, const char *msg);


/* a bump allocator; not thread-safe; everything dies with it */

typedef struct llm_arena_block_s  llm_arena_block_t;

typedef struct {
    llm_arena_block_t  *last;
    size_t              used;           /* bytes asked of malloc so far */
    size_t              limit;          /* never more than this */
} llm_arena_t;

void llm_arena_init(llm_arena_t *a, size_t limit);
/* 16-byte aligned; NULL when the limit or malloc says no */
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
    int          failed;                /* sticky: limit or malloc said no */
} llm_buf_t;

void llm_buf_init(llm_buf_t *b, size_t limit);
/* all return LLM_OK or LLM_ERROR, and do nothing once failed */
int llm_buf_add(llm_buf_t *b, const void *data, size_t len);
int llm_buf_addc(llm_buf_t *b, char c);
int llm_buf_adds(llm_buf_t *b, const char *s);
int llm_buf_addf(llm_buf_t *b, const char *fmt, ...) llm_printf_like(2, 3);
/* zeros until the length is a multiple of 8, as flat values want it */
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
