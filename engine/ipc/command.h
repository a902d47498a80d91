/*
 * The last command for a model, and what commands have left behind, in the
 * zone.
 *
 * Invariant: one word says which command it is, who sent it and how far it
 * is.  A worker makes it that of its own command, if that may follow the one
 * that is there; the engine alone takes a command further, and only while the
 * word is still that command's.  Texts are the engine's.
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
    /* when that process was born << 24 | number, its low bits; the worker
       writes it behind the word: of another number it says nothing */
    _Atomic uint64_t             born;

    /* engine writes, relaxed: of LOAD with a file */
    _Atomic uint32_t             permille;
    _Atomic uint32_t             warming;
    /* engine writes, before the word says FAILED */
    _Atomic uint32_t             status;
    llm_words(sizeof(llm_command_text_t))  text;

    /* the next four: whoever made the zone writes them, then the engine; of a
       model without a name, who gives it one */
    _Atomic uint32_t             stopped;
    /* when requests are refused, llm_now_us(); 0: it does not drain.  Against
       inflight, sequentially consistent */
    _Atomic uint64_t             refuse_us;
    _Atomic uint32_t             replaced;  /* requests with a file that has
                                               lost its place */
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

/* for a worker: its command takes the place of the last one.  LLM_ERROR and
   err: that one must end first */
int llm_command_claim(llm_zone_command_t *c, llm_command_kind_t kind,
    uint64_t *number, llm_err_t *err);

/* for the engine; name: the model's, if it was given to it, else empty;
   LLM_STALE: another command has taken its place */
int llm_command_take(llm_zone_command_t *c, uint64_t number,
    const char *file, const char *name);
/* err's status is 0: DONE; its text may say something all the same */
void llm_command_end(llm_zone_command_t *c, uint64_t number,
    const llm_err_t *err);
/* what an engine before this one has left undone */
void llm_command_sweep(llm_zone_command_t *c);
/* a command of another engine's time, if it is still waited for */
void llm_command_missed(llm_zone_command_t *c, uint64_t number);

/* the error of a request for a model that a command has unloaded;
   LLM_ERROR */
int llm_command_stopped(llm_err_t *err);

/* likewise if it was removed, after it was named */
int llm_command_removed(llm_err_t *err);

void llm_command_set_file(llm_zone_command_t *c, const char *file);

#endif /* LLM_COMMAND_H */
