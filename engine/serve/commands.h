/*
 * Commands of the workers (llm_admin): load, unload, replace.  One runs at a
 * time for each model of the configuration.  Only the scheduler's thread calls
 * these functions.
 */

#ifndef LLM_COMMANDS_H
#define LLM_COMMANDS_H

#include "engine/ipc/command.h"
#include "engine/ipc/engines.h"

/* the command that runs for a model of the configuration */
typedef struct {
    uint64_t             number;        /* 0: none does */
    llm_command_kind_t   kind;
    int                  begun;         /* LOAD: it is in the loader's hands */
    int                  over;          /* LOAD of another file: it has ended,
                                           with result */
    llm_err_t            result;
    uint64_t             end_us;        /* UNLOAD: when running requests get an
                                           error; 0: they have got it */
} llm_running_t;


/* commands.c: what the workers' commands do */
/* msg is a copy of what rec, in a ring, begins with; its size was checked */
void llm_engine_command(llm_engine_t *e, const llm_command_msg_t *msg,
    const void *rec);
/* goes on with those that run */
void llm_engine_commands(llm_engine_t *e);
/* is one waiting for a time, and for nothing else? */
int llm_engine_commands_wait(const llm_engine_t *e);
/* the engine stops: they end with err */
void llm_engine_drop_commands(llm_engine_t *e, const llm_err_t *err);

#endif /* LLM_COMMANDS_H */
