/*
 * Commands for models, in the zone; see command.h.
 */

#include "engine/ipc/command.h"
#include "engine/ipc/zone.h"

#include <stdio.h>
#include <unistd.h>

#define LLM_COMMAND_READS  1000

#define LLM_COMMAND_TAG    0xffffffu    /* the bits of a number in `born` */

#define llm_word_number(w)  ((w) >> 32)
#define llm_word_pid(w)     ((pid_t) ((w) >> 8 & 0xffffff))
#define llm_word_kind(w)    ((llm_command_kind_t) ((w) >> 4 & 15))
#define llm_word_state(w)   ((llm_command_state_t) ((w) & 15))

#define llm_word(number, pid, kind, state)                                   \
    ((uint64_t) (number) << 32 | (uint64_t) (pid) << 8                       \
     | (uint64_t) (kind) << 4 | (uint64_t) (state))


/* is the command on its way?  If its worker has died it may never arrive */

static int
llm_command_in_flight(llm_zone_command_t *c, uint64_t w)
{
    uint64_t  born;

    if (llm_word_state(w) != LLM_COMMAND_SENT) {
        return 0;
    }

    born = atomic_load(&c->born);

    if (((born ^ llm_word_number(w)) & LLM_COMMAND_TAG) != 0) {
        born = 0;
    }

    return llm_process_lives(llm_word_pid(w), born >> 24);
}


/* may a command of this kind follow the one in w?  LLM_ERROR and err: no */

static int
llm_command_follows(llm_zone_command_t *c, uint64_t w,
    llm_command_kind_t kind, llm_err_t *err)
{
    if (llm_command_in_flight(c, w)) {
        return llm_fail_with(err, 409, "command_pending", NULL,
                             "another command for the model is on its way to "
                             "the engine");
    }

    if (llm_word_state(w) != LLM_COMMAND_RUNNING
        || kind == LLM_COMMAND_REMOVE
        || (kind == LLM_COMMAND_UNLOAD
            && llm_word_kind(w) != LLM_COMMAND_REMOVE))
    {
        return LLM_OK;
    }

    if (llm_word_kind(w) == LLM_COMMAND_LOAD) {
        return llm_fail_with(err, 409, "model_loading", NULL,
                             "the model is being loaded");
    }

    if (llm_word_kind(w) == LLM_COMMAND_UNLOAD) {
        return llm_fail_with(err, 409, "model_unloading", NULL,
                             "the model is being unloaded");
    }

    if (llm_word_kind(w) == LLM_COMMAND_REMOVE) {
        return llm_fail_with(err, 409, "model_unloading", NULL,
                             "the model is being removed");
    }

    return LLM_OK;
}


int
llm_command_claim(llm_zone_command_t *c, llm_command_kind_t kind,
    uint64_t *number, llm_err_t *err)
{
    uint64_t  w;

    w = atomic_load(&c->word);

    do {
        if (llm_command_follows(c, w, kind, err) != LLM_OK) {
            return LLM_ERROR;
        }

        *number = (llm_word_number(w) + 1) & UINT32_MAX;
        *number += *number == 0;

    } while (!atomic_compare_exchange_weak(&c->word, &w,
                                           llm_word(*number, getpid(), kind,
                                                    LLM_COMMAND_SENT)));

    atomic_store(&c->born, llm_process_born(getpid()) << 24
                           | (*number & LLM_COMMAND_TAG));

    return LLM_OK;
}


/* writes the texts and the status; with a file the command begins, otherwise
   its file and name stay.  A command that the engine has not taken has no
   texts. */

static void
llm_command_say(llm_zone_command_t *c, const llm_err_t *err, const char *file,
    const char *name)
{
    llm_command_text_t  t;

    if (file) {
        memset(&t, 0, sizeof(t));
        snprintf(t.file, sizeof(t.file), "%s", file);
        snprintf(t.name, sizeof(t.name), "%s", name);

    } else {
        llm_words_get(&c->text, (char *) &t);
    }

    snprintf(t.code, sizeof(t.code), "%s", err ? err->code : "");
    snprintf(t.reason, sizeof(t.reason), "%s", err ? err->msg : "");
    llm_words_set(&c->text, (char *) &t);

    llm_zone_set(c->status, err ? (uint32_t) err->status : 0);
}


/* moves a command to its next state; LLM_STALE: another command has come */

static int
llm_command_step(llm_zone_command_t *c, uint64_t number,
    llm_command_state_t from, llm_command_state_t to)
{
    uint64_t  w;

    w = atomic_load(&c->word);

    if (llm_word_number(w) != number || llm_word_state(w) != from) {
        return LLM_STALE;
    }

    return atomic_compare_exchange_strong(&c->word, &w,
                                          (w & ~(uint64_t) 15) | to)
           ? LLM_OK : LLM_STALE;
}


int
llm_command_take(llm_zone_command_t *c, uint64_t number, const char *file,
    const char *name)
{
    llm_command_say(c, NULL, file, name);
    llm_zone_set(c->permille, 0);
    llm_zone_set(c->warming, 0);

    return llm_command_step(c, number, LLM_COMMAND_SENT, LLM_COMMAND_RUNNING);
}


void
llm_command_end(llm_zone_command_t *c, uint64_t number, const llm_err_t *err)
{
    uint64_t  w;

    w = atomic_load(&c->word);

    if (llm_word_number(w) != number
        || llm_word_state(w) != LLM_COMMAND_RUNNING)
    {
        return;
    }

    llm_command_say(c, err, NULL, NULL);

    (void) llm_command_step(c, number, LLM_COMMAND_RUNNING,
                            err->status ? LLM_COMMAND_FAILED
                                        : LLM_COMMAND_DONE);
}


/* fails a command that is SENT or RUNNING */

static void
llm_command_lose(llm_zone_command_t *c, uint64_t w)
{
    llm_err_t  err;

    (void) llm_fail_with(&err, 503, "engine_restarting", NULL,
                         "the engine has restarted meanwhile");

    llm_command_say(c, &err, llm_word_state(w) == LLM_COMMAND_SENT ? ""
                                                                   : NULL, "");
    (void) llm_command_step(c, llm_word_number(w), llm_word_state(w),
                            LLM_COMMAND_FAILED);
}


void
llm_command_sweep(llm_zone_command_t *c)
{
    uint64_t  w;

    w = atomic_load(&c->word);

    if (llm_word_state(w) == LLM_COMMAND_SENT
        || llm_word_state(w) == LLM_COMMAND_RUNNING)
    {
        llm_command_lose(c, w);
    }
}


void
llm_command_missed(llm_zone_command_t *c, uint64_t number)
{
    uint64_t  w;

    w = atomic_load(&c->word);

    if (llm_word_number(w) == number && llm_word_state(w) == LLM_COMMAND_SENT) {
        llm_command_lose(c, w);
    }
}


/*
 * Reads until the word is the same before and after: then the texts belong to
 * its state, or, if the engine is about to change the state, to the next one.
 */

void
llm_zone_command(llm_zone_t *z, uint32_t model, llm_command_status_t *st)
{
    int                      i;
    uint64_t                 w;
    llm_command_text_t       t;
    llm_zone_command_t      *c;
    llm_zone_model_state_t  *m;

    m = &z->models[model];
    c = &m->command;
    w = atomic_load(&c->word);

    for (i = 0; i < LLM_COMMAND_READS; i++) {
        memset(st, 0, sizeof(*st));
        st->number = llm_word_number(w);
        st->kind = llm_word_kind(w);
        st->state = llm_word_state(w);

        llm_words_get(&c->text, (char *) &t);

        if (st->state >= LLM_COMMAND_RUNNING) {
            memcpy(st->file, t.file, sizeof(st->file));
            memcpy(st->name, t.name, sizeof(st->name));
        }

        if (st->state >= LLM_COMMAND_DONE) {
            memcpy(st->code, t.code, sizeof(st->code));
            memcpy(st->reason, t.reason, sizeof(st->reason));
            st->status = llm_zone_get(c->status);
        }

        if (w == atomic_load(&c->word)) {
            break;
        }

        w = atomic_load(&c->word);
    }

    if (st->kind == LLM_COMMAND_LOAD && st->state == LLM_COMMAND_RUNNING) {
        st->permille = st->file[0] ? llm_zone_get(c->permille)
                                   : llm_zone_get(m->permille);
        st->warming = st->file[0] ? llm_zone_get(c->warming)
                                  : llm_zone_get(m->warming);
    }
}


int
llm_command_stopped(llm_err_t *err)
{
    return llm_fail_with(err, 503, "model_stopped", NULL,
                         "the model has been unloaded");
}


int
llm_command_removed(llm_err_t *err)
{
    return llm_fail_with(err, 404, "model_not_found", "model",
                         "the model has been removed");
}


void
llm_command_set_file(llm_zone_command_t *c, const char *file)
{
    char  text[LLM_MAX_FILE];

    memset(text, 0, sizeof(text));
    snprintf(text, sizeof(text), "%s", file);
    llm_words_set(&c->file, text);
}


void
llm_zone_set_override(llm_zone_t *z, uint32_t model, const llm_override_t *o)
{
    llm_zone_command_t  *c;

    c = &z->models[model].command;

    llm_command_set_file(c, o->file);
    atomic_store(&c->stopped, o->stopped != 0);
    atomic_store(&c->refuse_us, o->draining != 0);
    atomic_store(&c->word, llm_word(o->number, 0, LLM_COMMAND_NONE, 0));

    llm_zone_set_state(z, model, o->stopped ? LLM_MODEL_STOPPED
                                            : LLM_MODEL_IDLE);
}


void
llm_zone_override(llm_zone_t *z, uint32_t model, llm_override_t *o)
{
    llm_zone_command_t  *c;

    c = &z->models[model].command;

    memset(o, 0, sizeof(*o));
    o->added = atomic_load(&z->models[model].naming) != 0;
    llm_words_get(&c->file, o->file);
    o->stopped = atomic_load(&c->stopped);
    o->draining = atomic_load(&c->refuse_us) != 0;
    o->number = llm_word_number(atomic_load(&c->word));
}
