/*
 * Progress of a load: a line in the log every ten seconds, the caller's
 * progress(), and whether the caller has cancelled the load.
 */

#include "engine/model/model_internal.h"

#include <stdio.h>

#define LLM_PROGRESS_US  10000000


void
llm_load_log(llm_load_t *l, int level, const char *fmt, ...)
{
    char     msg[1024];
    va_list  args;

    if (l->opts->log == NULL) {
        return;
    }

    va_start(args, fmt);
    vsnprintf(msg, sizeof(msg), fmt, args);
    va_end(args);

    l->opts->log(l->opts->log_data, level, msg);
}


double
llm_progress_speed(const llm_progress_t *p, uint64_t now_us, uint64_t bytes)
{
    return (double) bytes / (1 << 20) * 1e6
           / (double) llm_max(now_us - p->began_us, 1u);
}


int
llm_progress_line(llm_progress_t *p, uint64_t now_us, uint64_t done,
    uint64_t total, char *buf, size_t size)
{
    if (now_us - p->said_us < LLM_PROGRESS_US) {
        return LLM_ABSENT;
    }

    p->said_us = now_us;
    snprintf(buf, size, "%.2f of %.2f GiB loaded, %.0f MiB/s",
             (double) done / (1 << 30), (double) total / (1 << 30),
             llm_progress_speed(p, now_us, done));

    return LLM_OK;
}


int
llm_load_progress(llm_load_t *l, uint64_t bytes)
{
    char      line[128];
    uint64_t  total;

    l->done += bytes;
    (void) atomic_fetch_add_explicit(&l->m->promise.taken, bytes,
                                     memory_order_relaxed);
    total = l->m->desc.hp.n_bytes;

    if (l->opts->progress) {
        l->opts->progress(l->opts->progress_data,
                          (int) (l->done * 1000.0 / (double) total));
    }

    if (llm_progress_line(&l->progress, llm_now_us(), l->done, total, line,
                          sizeof(line)) == LLM_OK)
    {
        llm_load_log(l, LLM_LOG_NOTICE, "%s: %s",
                     llm_gguf_name(l->m->gguf), line);
    }

    if (l->opts->cancel && __atomic_load_n(l->opts->cancel, __ATOMIC_RELAXED))
    {
        return llm_fail_with(l->err, 503, NULL, NULL,
                             "%s: the load was cancelled",
                             llm_gguf_name(l->m->gguf));
    }

    return LLM_OK;
}
