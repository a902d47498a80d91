/*
 * Carries out the workers' commands for models; swap.c loads other files.  One
 * command runs at a time for each model, the one in the zone.  A command that
 * may follow replaces it, and the result of the replaced one is not reported.
 */

#include "engine/serve/engine.h"

#include <stdlib.h>
#include <string.h>


static void
llm_order_end(llm_engine_t *e, uint32_t model, const llm_err_t *err)
{
    llm_running_t  *o;

    o = &e->running[model];

    llm_command_end(&e->zone->models[model].command, o->number, err);
    memset(o, 0, sizeof(*o));
}


static void
llm_order_done(llm_engine_t *e, uint32_t model)
{
    llm_err_t  err;

    memset(&err, 0, sizeof(err));
    llm_order_end(e, model, &err);
}


/* ---- load ---- */

/* loads the present file */

static void
llm_order_load(llm_instance_t *m, llm_running_t *o)
{
    if (m->state == LLM_MODEL_FAILED) {

        /* some of the requests that failed with it have not got their error */

        if (m->n_reqs || m->lost) {
            return;
        }

        llm_instance_close(m);
        m->n_failed_steps = 0;
        m->retry_s = 0;
        m->vain_us = 0;
    }

    o->begun = 1;
    atomic_store(&m->engine->zone->models[m->index].command.stopped, 0);
    (void) llm_instance_load(m);
}


static void
llm_order_load_step(llm_engine_t *e, uint32_t model)
{
    llm_err_t        err;
    llm_running_t   *o;
    llm_instance_t  *m;

    o = &e->running[model];
    m = e->models[model];

    if (o->over) {
        err = o->result;
        llm_order_end(e, model, &err);
        return;
    }

    if (m->beside) {
        return;
    }

    if (m->state == LLM_MODEL_READY) {
        llm_order_done(e, model);
        return;
    }

    if (m->state != LLM_MODEL_LOADING && !o->begun) {
        llm_order_load(m, o);
    }

    if (m->state == LLM_MODEL_FAILED && (o->begun || m->lost)) {
        (void) llm_fail_with(&err, 503, "model_failed", NULL, "%s",
                             m->load_err.msg);
        llm_order_end(e, model, &err);
    }
}


static void
llm_order_begin_load(llm_instance_t *m, const char *file)
{
    llm_err_t      err;
    llm_engine_t  *e;

    e = m->engine;

    if (file[0] == '\0') {
        return;
    }

    /* a retry of a failed model, which the zone shows as FAILED, may go on
       meanwhile */

    if (m->beside || llm_zone_get(e->zone->models[m->index].state)
                     == LLM_MODEL_LOADING)
    {
        (void) llm_fail_with(&err, 409, "model_loading", NULL,
                             "the model is being loaded");
        llm_order_end(e, m->index, &err);
        return;
    }

    if (llm_swap_load(m, file, &err) != LLM_OK) {
        llm_order_end(e, m->index, &err);
    }
}


/* ---- unload ---- */

/* new requests are refused from now on; requests that wait for a load, or for
   another file, never run */

static void
llm_order_begin_unload(llm_instance_t *m, uint32_t timeout_ms)
{
    llm_err_t            err;
    llm_engine_t        *e;
    llm_instance_t      *b;
    llm_zone_command_t  *z;

    e = m->engine;
    z = &e->zone->models[m->index].command;
    b = m->beside;

    llm_instance_stay(m);
    m->ends = 1;
    m->rebuild = 0;
    m->waits = LLM_WAITS_NOT;
    m->lacks_us = 0;
    llm_warm_stop(m);
    atomic_store(&z->stopped, 1);
    llm_zone_set(e->zone->models[m->index].wanted, 0);

    (void) llm_command_stopped(&err);

    if (b) {
        llm_swap_fail(b, &err);
    }

    e->running[m->index].over = 0;
    e->running[m->index].end_us = llm_now_us();

    if (m->state == LLM_MODEL_READY) {
        e->running[m->index].end_us += (uint64_t) timeout_ms * 1000;
    }

    __atomic_store_n(&m->cancel, 1, __ATOMIC_RELAXED);
    llm_zone_set_state(e->zone, m->index, LLM_MODEL_STOPPED);

    llm_engine_log(e, LLM_LOG_NOTICE, "model \"%s\" is being unloaded by a "
                   "command; %u requests are live", m->conf.name, m->n_reqs);
}


static void
llm_order_unload_step(llm_engine_t *e, uint32_t model)
{
    int              remove;
    llm_err_t        err;
    llm_running_t   *o;
    llm_instance_t  *m, *other;

    o = &e->running[model];
    m = e->models[model];

    if (o->end_us && llm_now_us() >= o->end_us) {
        o->end_us = 0;
        (void) llm_command_stopped(&err);

        for (other = e->instances; other; other = other->next) {
            if (other->index == model) {
                llm_instance_fail_live(other, &err, 0);
            }
        }
    }

    if (m->n_reqs || m->loading || llm_engine_show_replaced(e, model)) {
        return;
    }

    if (m->lost) {
        if (e->live == NULL) {
            llm_engine_lose(e);
        }

        return;
    }

    remove = o->kind == LLM_COMMAND_REMOVE;

    m->ends = 0;
    llm_instance_unload(m, LLM_MODEL_STOPPED);
    llm_order_done(e, model);

    /* the command has ended before the name is taken back, so a new name begins
       without one */

    if (remove) {
        llm_engine_log(e, LLM_LOG_NOTICE, "model \"%s\" is removed by a "
                       "command", m->conf.name);
        llm_zone_take_name(e->zone, model);
    }
}


/* ---- drain ---- */

static void
llm_order_begin_drain(llm_instance_t *m, uint32_t timeout_ms)
{
    uint64_t             us, old;
    llm_zone_command_t  *z;

    z = &m->engine->zone->models[m->index].command;
    us = llm_now_us() + (uint64_t) timeout_ms * 1000;
    old = atomic_load(&z->refuse_us);

    /* a model that drains already does not get more time */

    atomic_store(&z->refuse_us, old ? llm_min(old, us) : us);
}


static void
llm_order_drain_step(llm_engine_t *e, uint32_t model)
{
    if (llm_zone_drains(e->zone, model)
        && !llm_zone_in_use(e->zone, model, e->epoch))
    {
        llm_order_done(e, model);
    }
}


static void
llm_order_resume(llm_instance_t *m)
{
    atomic_store(&m->engine->zone->models[m->index].command.refuse_us, 0);
    llm_order_done(m->engine, m->index);
}


/* ---- all commands ---- */

/* if the model was given another name, takes over the name and the file, and
   forgets what was known of the model before; LLM_ERROR: no memory */

static int
llm_order_adopt(llm_instance_t *m)
{
    char            *name, *file;
    llm_zone_t      *z;
    llm_naming_t     given;
    llm_override_t   left;

    z = m->engine->zone;

    llm_zone_name(z, m->index, &given);

    if (given.naming == m->naming) {
        return LLM_OK;
    }

    llm_zone_override(z, m->index, &left);

    name = strdup(given.name);
    file = strdup(left.file);

    if (name == NULL || file == NULL) {
        free(name);
        free(file);
        return LLM_ERROR;
    }

    free((char *) m->conf.name);
    free((char *) m->file);

    m->conf.name = name;
    m->file = file;
    m->naming = given.naming;
    m->on_gpu = 0;
    m->retry_s = 0;
    m->vain_us = 0;
    m->logged[0] = '\0';

    llm_zone_set(z->models[m->index].losses, 0);
    llm_zone_set_text(z, m->index, "", "");

    return LLM_OK;
}


/* is the command for the model that has this index now, and can it be carried
   out?  LLM_ERROR and err: no */

static int
llm_order_check(llm_instance_t *m, const llm_command_msg_t *msg, llm_err_t *err)
{
    if (msg->naming != llm_zone_naming(m->engine->zone, m->index)
        || (msg->naming == 0 && m->conf.added))
    {
        return llm_command_removed(err);
    }

    if (llm_order_adopt(m) != LLM_OK) {
        return llm_fail_with(err, 503, NULL, NULL, "no memory");
    }

    if (msg->kind == LLM_COMMAND_REMOVE && !m->conf.added) {
        return llm_fail_with(err, 409, "model_is_configured", NULL,
                             "the model is in the configuration, so it cannot "
                             "be removed");
    }

    return LLM_OK;
}


/* copies the file's name with its final zero; LLM_ERROR: malformed message */

static int
llm_order_file(const llm_command_msg_t *msg, const void *rec,
    char file[LLM_MAX_FILE])
{
    if (msg->file.off < sizeof(*msg) || msg->file.off >= msg->head.size
        || msg->file.len >= msg->head.size - msg->file.off
        || msg->file.len >= LLM_MAX_FILE)
    {
        return LLM_ERROR;
    }

    memcpy(file, (const char *) rec + msg->file.off, msg->file.len + 1u);

    return strnlen(file, msg->file.len + 1u) == msg->file.len ? LLM_OK
                                                              : LLM_ERROR;
}


void
llm_engine_command(llm_engine_t *e, const llm_command_msg_t *msg,
    const void *rec)
{
    char                 file[LLM_MAX_FILE];
    llm_err_t            err;
    llm_running_t       *o;
    llm_naming_t         given;
    llm_instance_t      *m;
    llm_zone_command_t  *z;

    if (msg->model >= e->n_models) {
        return;
    }

    m = e->models[msg->model];
    o = &e->running[msg->model];
    z = &e->zone->models[msg->model].command;

    if (msg->head.epoch != e->epoch
        || llm_order_file(msg, rec, file) != LLM_OK)
    {
        llm_command_missed(z, msg->number);
        return;
    }

    llm_zone_name(e->zone, msg->model, &given);

    if (llm_command_take(z, msg->number, file, given.name) != LLM_OK) {
        return;
    }

    memset(o, 0, sizeof(*o));
    o->number = msg->number;
    o->kind = msg->kind;

    if (llm_order_check(m, msg, &err) != LLM_OK) {
        llm_order_end(e, msg->model, &err);
        return;
    }

    switch (o->kind) {

    case LLM_COMMAND_LOAD:
        llm_order_begin_load(m, file);
        break;

    case LLM_COMMAND_UNLOAD:
    case LLM_COMMAND_REMOVE:
        llm_order_begin_unload(m, msg->timeout_ms);
        break;

    case LLM_COMMAND_DRAIN:
        llm_order_begin_drain(m, msg->timeout_ms);
        break;

    default:
        llm_order_resume(m);
        break;
    }
}


void
llm_engine_commands(llm_engine_t *e)
{
    uint32_t  i;

    for (i = 0; i < e->n_models; i++) {

        if (e->running[i].number == 0) {
            continue;
        }

        switch (e->running[i].kind) {

        case LLM_COMMAND_LOAD:
            llm_order_load_step(e, i);
            break;

        case LLM_COMMAND_UNLOAD:
        case LLM_COMMAND_REMOVE:
            llm_order_unload_step(e, i);
            break;

        default:
            llm_order_drain_step(e, i);
            break;
        }
    }
}


int
llm_engine_commands_wait(const llm_engine_t *e)
{
    uint32_t  i;

    for (i = 0; i < e->n_models; i++) {
        if (e->running[i].number) {
            return 1;
        }
    }

    return 0;
}


void
llm_engine_drop_commands(llm_engine_t *e, const llm_err_t *err)
{
    uint32_t  i;

    for (i = 0; i < e->n_models; i++) {
        if (e->running[i].number) {
            llm_order_end(e, i, err);
        }
    }
}
