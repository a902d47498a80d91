/*
 * The last command for a model, and what commands have changed of it, in the
 * zone.
 *
 * Invariant: one word has the command's number, sender, kind and state.  A
 * worker replaces it by that of its own command, if that may follow; the engine
 * alone moves a command to its next states, and only while the word is still
 * that command's.  Only the engine writes the texts.
 */

#ifndef LLM_COMMAND_H
#define LLM_COMMAND_H

#include "engine/ipc/words.h"
#include "engine/llm.h"

typedef struct {
    char                         code[48];
    char                         reason[512];
    char                         file[LLM_MAX_FILE];
    char                         name[LLM_NAME_TEXT];
} llm_command_text_t;

typedef struct {
    /* number << 32 | pid of the worker << 8 | kind << 4 | state: workers and
       the engine exchange it, sequentially consistent */
    _Alignas(64) _Atomic uint64_t  word;
    /* start time of that process << 24 | low bits of number; the worker writes
       it after the word, so bits of another number mean that it is not known */
    _Atomic uint64_t             born;

    /* engine writes, relaxed: progress of LOAD with a file */
    _Atomic uint32_t             permille;
    _Atomic uint32_t             warming;
    /* engine writes, before the word says FAILED */
    _Atomic uint32_t             status;
    llm_words(sizeof(llm_command_text_t))  text;

    /* the next four: written by the process that makes the zone, then by the
       engine; of a model without a name, by the process that gives it one */
    _Atomic uint32_t             stopped;
    /* when requests begin to be refused, llm_now_us(); 0: the model does not
       drain.  Sequentially consistent with inflight */
    _Atomic uint64_t             refuse_us;
    _Atomic uint32_t             replaced;  /* requests that use a replaced
                                               file */
    llm_words(LLM_MAX_FILE)      file;
} llm_zone_command_t;

/* the message; the file's name follows, with its zero */
typedef struct {
    llm_msg_t            head;
    uint64_t             number;
    uint32_t             model;
    uint32_t             kind;          /* llm_command_kind_t */
    uint32_t             timeout_ms;
    uint32_t             naming;
    llm_ref_t            file;          /* empty: none */
} llm_command_msg_t;

/* called by a worker: replaces the last command by a new one, SENT.  LLM_ERROR
   and err: the last one must end first */
int llm_command_claim(llm_zone_command_t *c, llm_command_kind_t kind,
    uint64_t *number, llm_err_t *err);

/* called by the engine: a command is RUNNING.  name: the model's, if it was
   given to it, else empty.  LLM_STALE: another command has replaced it */
int llm_command_take(llm_zone_command_t *c, uint64_t number,
    const char *file, const char *name);
/* FAILED, or DONE if err's status is 0; err's message is kept in both cases */
void llm_command_end(llm_zone_command_t *c, uint64_t number,
    const llm_err_t *err);
/* fails a command that an engine before this one has not ended */
void llm_command_sweep(llm_zone_command_t *c);
/* fails a command that was sent to another engine, if it is still SENT */
void llm_command_missed(llm_zone_command_t *c, uint64_t number);

/* makes the error of a request for a model that a command has unloaded; returns
   LLM_ERROR */
int llm_command_stopped(llm_err_t *err);

/* the same if the model was removed after the request had named it */
int llm_command_removed(llm_err_t *err);

void llm_command_set_file(llm_zone_command_t *c, const char *file);

#endif /* LLM_COMMAND_H */
