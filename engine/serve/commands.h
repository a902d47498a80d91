/*
 * Commands that workers send for llm_admin: load, unload, remove, drain,
 * resume.  At most one runs for each model of the configuration.  Only the
 * scheduler's thread calls these functions.
 */

#ifndef LLM_COMMANDS_H
#define LLM_COMMANDS_H

#include "engine/ipc/command.h"
#include "engine/ipc/engines.h"

/* the command that runs for a model of the configuration */
typedef struct {
    uint64_t             number;        /* 0: no command runs */
    llm_command_kind_t   kind;
    int                  begun;         /* LOAD: the loader was started */
    int                  over;          /* LOAD of another file: has ended with
                                           result */
    llm_err_t            result;
    uint64_t             end_us;        /* UNLOAD, REMOVE: when requests still
                                           running get an error, llm_now_us();
                                           0: they have got it */
} llm_running_t;


/* commands.c */
/* begins a command.  rec: the message in its ring; msg: a copy of the fixed
   part, whose size was checked. */
void llm_engine_command(llm_engine_t *e, const llm_command_msg_t *msg,
    const void *rec);
/* takes running commands further */
void llm_engine_commands(llm_engine_t *e);
/* does a command run?  Some end at a time, without a wake-up */
int llm_engine_commands_wait(const llm_engine_t *e);
/* the engine stops: running commands end with err */
void llm_engine_drop_commands(llm_engine_t *e, const llm_err_t *err);

#endif /* LLM_COMMANDS_H */
