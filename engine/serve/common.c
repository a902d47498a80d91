/*
 * What all files of this folder call: the log, wake-ups, the default of
 * parallel=, kinds of speculate=, and the notice that the process must exit.
 */

#include "engine/serve/check.h"
#include "engine/serve/engine.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

_Static_assert(LLM_PAGE_TOKENS == LLM_KV_PAGE, "the page that metrics show");


uint32_t
llm_parallel(const llm_engine_model_t *conf, int speech)
{
    return conf->parallel ? conf->parallel
           : speech ? LLM_PARALLEL_SPEECH : LLM_PARALLEL;
}


int
llm_conf_drafts(const llm_engine_model_t *conf, llm_draft_kind_t kind)
{
    uint32_t  i;

    for (i = 0; i < LLM_DRAFT_N && conf->speculate[i] != kind; i++) {
        /* void */
    }

    return i < LLM_DRAFT_N;
}


int
llm_speech_conf_check(const llm_engine_model_t *conf, const char *path,
    llm_err_t *err)
{
    const char  *what;

    what = conf->mmproj ? "mmproj="
           : conf->template_path ? "template="
           : conf->speculate[0] ? "speculate=" : NULL;

    return what ? llm_fail(err, "%s: a model of speech takes no %s", path, what)
                : LLM_OK;
}


void
llm_engine_log(llm_engine_t *e, int level, const char *fmt, ...)
{
    char     msg[1024];
    va_list  args;

    if (e->log == NULL) {
        return;
    }

    va_start(args, fmt);
    vsnprintf(msg, sizeof(msg), fmt, args);
    va_end(args);

    e->log(e->log_data, level, msg);
}


void
llm_engine_wake(llm_engine_t *e)
{
    llm_zone_wake(e->zone, e->fd);
}


void
llm_engine_masked(void *data)
{
    llm_engine_wake(data);
}


uint32_t
llm_engine_show_replaced(llm_engine_t *e, uint32_t model)
{
    uint32_t               n, n_reqs;
    const llm_instance_t  *m;

    n = 0;
    n_reqs = 0;

    for (m = e->instances; m; m = m->next) {
        if (m->role == LLM_INSTANCE_REPLACED && m->index == model) {
            n++;
            n_reqs += m->n_reqs;
        }
    }

    llm_zone_set(e->zone->models[model].command.replaced, n_reqs);

    return n;
}


int
llm_engine_lost(llm_engine_t *e)
{
    return atomic_load(&e->lost);
}


void
llm_engine_lose(llm_engine_t *e)
{
    ssize_t   n;
    uint64_t  one = 1;

    if (atomic_exchange(&e->lost, 1)) {
        return;
    }

    do {
        n = write(e->peers[0].port.fd, &one, sizeof(one));
    } while (n == -1 && errno == EINTR);
}
