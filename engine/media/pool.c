/*
 * The pool: at most max_jobs at a time, and llm-media or llm-media-ffmpeg
 * started when it is needed and not there; see media.h.
 *
 * `lock` guards all fields.  A job holds it only to ask for its process.
 */

#include "engine/media/job.h"
#include "engine/media/program.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define LLM_MEDIA_JOBS     4            /* by default */
#define LLM_MEDIA_STEADY   ((uint64_t) 64 << 20)    /* bytes for any job */
#define LLM_MEDIA_A_PIXEL  12           /* bytes: the largest is a progressive
                                           JPEG's, with its coefficients */

/* the programs; all kinds but recordings are the first one's */
enum {
    LLM_MEDIA_PLAIN = 0,
    LLM_MEDIA_FFMPEG,
    LLM_MEDIA_PROGRAMS
};

static const char *const  llm_media_names[LLM_MEDIA_PROGRAMS] = {
    "llm-media", "llm-media-ffmpeg"
};

/* microseconds for which a program that could not be started is left alone */
#define LLM_MEDIA_REST     (10 * 1000000)

/* A program may take seconds to start.  Only its own jobs wait for that, with
   its own lock. */
typedef struct {
    pthread_mutex_t       lock;         /* of all fields */
    uint64_t              starts;
    uint64_t              rest_us;      /* not to be started before */
    llm_media_program_t   program;
} llm_media_house_t;

struct llm_media_pool_s {
    pthread_mutex_t       lock;         /* of running */
    pthread_cond_t        free;         /* running has become less */
    uint32_t              running;
    uint32_t              max_jobs;
    llm_media_house_t     houses[LLM_MEDIA_PROGRAMS];
    char                 *dir;          /* or NULL */
};


void
llm_media_limits_default(llm_media_limits_t *l)
{
    memset(l, 0, sizeof(*l));

    l->bytes = 20 << 20;
    l->pixels = 50000000;
    l->side = 65535;
    l->seconds = 3600;
    l->samples = (uint64_t) 3600 * 192000;
    l->timeout = 10000;
}


llm_media_pool_t *
llm_media_pool_create(const char *dir, uint32_t max_jobs)
{
    size_t             i;
    llm_media_pool_t  *pool;

    pool = calloc(1, sizeof(*pool));

    if (pool == NULL) {
        return NULL;
    }

    if (dir) {
        pool->dir = strdup(dir);

        if (pool->dir == NULL) {
            free(pool);
            return NULL;
        }
    }

    for (i = 0; i < LLM_MEDIA_PROGRAMS; i++) {
        pthread_mutex_init(&pool->houses[i].lock, NULL);
    }

    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->free, NULL);
    pool->max_jobs = max_jobs ? max_jobs : LLM_MEDIA_JOBS;

    return pool;
}


void
llm_media_pool_free(llm_media_pool_t *pool)
{
    size_t  i;

    if (pool == NULL) {
        return;
    }

    for (i = 0; i < LLM_MEDIA_PROGRAMS; i++) {
        llm_media_program_stop(&pool->houses[i].program);
        pthread_mutex_destroy(&pool->houses[i].lock);
    }

    pthread_cond_destroy(&pool->free);
    pthread_mutex_destroy(&pool->lock);
    free(pool->dir);
    free(pool);
}


/* Asks for a process with these descriptors, with the program's lock held.  A
   program that has died since the last job is started again. */

static int
llm_media_ask(llm_media_pool_t *pool, size_t which,
    const llm_media_start_t *start, int socket, int status, llm_err_t *err)
{
    int                   rc, tries;
    llm_media_house_t    *house;
    llm_media_program_t  *p;

    house = &pool->houses[which];
    p = &house->program;

    for (tries = 0; tries < 2; tries++) {
        if (p->pid == 0) {
            if (llm_now_us() < house->rest_us) {
                return llm_fail_with(err, 503, NULL, NULL, "%s, which decodes "
                                     "images and sound, could not be started "
                                     "a moment ago", llm_media_names[which]);
            }

            rc = llm_media_program_start(p, llm_media_names[which], pool->dir,
                                         err);
            if (rc == LLM_ERROR) {
                house->rest_us = llm_now_us() + LLM_MEDIA_REST;
            }

            /* it is there: a request was unlucky, or memory is short */
            if (rc == LLM_ABSENT && (p->killed || house->starts)) {
                return LLM_ERROR;
            }

            if (rc != LLM_OK) {
                return rc;
            }

            house->starts++;
        }

        if (llm_media_program_ask(p, start, socket, status) == LLM_OK) {
            return LLM_OK;
        }

        llm_media_program_stop(p);
    }

    return llm_fail_with(err, 503, NULL, NULL, "%s, which decodes images and "
                         "sound, ends as soon as it is started",
                         llm_media_names[which]);
}


/* makes the socket and the pipe of a job and its process, of the program
   `which`; *nth: the start of the program that has it */

static int
llm_media_begin(llm_media_pool_t *pool, size_t which,
    const llm_media_start_t *start, llm_media_talk_t *talk, uint64_t *nth,
    llm_err_t *err)
{
    int  rc, pair[2], status[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        return llm_fail_with(err, 503, NULL, NULL, "no socket for a decoder: "
                             "%s", strerror(errno));
    }

    if (pipe2(status, O_CLOEXEC) != 0) {
        close(pair[0]);
        close(pair[1]);
        return llm_fail_with(err, 503, NULL, NULL, "no pipe for a decoder: %s",
                             strerror(errno));
    }

    pthread_mutex_lock(&pool->houses[which].lock);
    rc = llm_media_ask(pool, which, start, pair[1], status[1], err);
    *nth = pool->houses[which].starts;
    pthread_mutex_unlock(&pool->houses[which].lock);

    close(pair[1]);
    close(status[1]);

    if (rc != LLM_OK) {
        close(pair[0]);
        close(status[0]);

        /* a server without it may be meant so: the file is refused */
        return rc == LLM_ABSENT && which == LLM_MEDIA_FFMPEG
               ? llm_media_no_ffmpeg(err) : LLM_ERROR;
    }

    talk->socket = pair[0];
    talk->status = status[0];

    return LLM_OK;
}


static void
llm_media_enter(llm_media_pool_t *pool)
{
    pthread_mutex_lock(&pool->lock);

    while (pool->running == pool->max_jobs) {
        pthread_cond_wait(&pool->free, &pool->lock);
    }

    pool->running++;
    pthread_mutex_unlock(&pool->lock);
}


/* stuck: the program `which`, in its nth start, does not do what it should */

static void
llm_media_leave(llm_media_pool_t *pool, int stuck, size_t which, uint64_t nth)
{
    llm_media_house_t  *house = &pool->houses[which];

    if (stuck) {
        pthread_mutex_lock(&house->lock);

        if (nth == house->starts) {
            llm_media_program_stop(&house->program);
        }

        pthread_mutex_unlock(&house->lock);
    }

    pthread_mutex_lock(&pool->lock);
    pool->running--;
    pthread_cond_signal(&pool->free);
    pthread_mutex_unlock(&pool->lock);
}


int
llm_media_decode(llm_media_pool_t *pool, llm_media_kind_t kind,
    const llm_media_source_t *source, const llm_media_limits_t *limits,
    const llm_media_sink_t *sink, llm_err_t *err)
{
    int                 rc, stuck;
    size_t              which;
    uint64_t            nth;
    llm_media_talk_t    talk;
    llm_media_start_t   start;

    if (source->data && source->len > limits->bytes) {
        return llm_media_too_large(kind, limits, err);
    }

    memset(&start, 0, sizeof(start));
    start.magic = LLM_MEDIA_MAGIC;
    start.timeout = limits->timeout;
    start.memory = limits->memory;

    if (start.memory == 0) {
        start.memory = LLM_MEDIA_STEADY + 2 * limits->bytes;

        if (kind == LLM_MEDIA_IMAGE) {
            start.memory += LLM_MEDIA_A_PIXEL * limits->pixels;
        }
    }

    memset(&talk, 0, sizeof(talk));
    talk.kind = kind;
    talk.source = source;
    talk.limits = limits;
    talk.sink = sink;

    stuck = 0;
    nth = 0;
    which = kind == LLM_MEDIA_RECORDING ? LLM_MEDIA_FFMPEG : LLM_MEDIA_PLAIN;
    llm_media_enter(pool);

    rc = llm_media_begin(pool, which, &start, &talk, &nth, err);

    if (rc == LLM_OK) {
        rc = llm_media_talk(&talk, &stuck, err);
        close(talk.socket);
        close(talk.status);
    }

    llm_media_leave(pool, stuck, which, nth);

    return rc;
}
