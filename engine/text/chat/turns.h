/*
 * Turns with calls, and the results that follow them: what the files that
 * write them anew share; see turns.c.  Internal to engine/text/chat/.
 */

#ifndef LLM_CHAT_TURNS_H
#define LLM_CHAT_TURNS_H

#include "engine/llm.h"
#include "engine/text/chat/norm.h"

#define LLM_TURNS_NOBODY  UINT32_MAX

typedef enum {
    LLM_TURN_NONE,
    LLM_TURN_SYSTEM,
    LLM_TURN_USER,
    LLM_TURN_ASSISTANT,
    LLM_TURN_CALLS,
    LLM_TURN_RESULT
} llm_turn_t;

typedef struct {
    const llm_flat_t  *call;
    llm_str_t          id;              /* the request's */
    size_t             at;              /* the new one, in llm_turns_t.ids */
    size_t             len;
    int                answered;
} llm_turn_call_t;

typedef struct {
    const llm_flat_t  *msg;
    uint32_t           call;            /* whose: its place in the exchange */
} llm_turn_result_t;

typedef struct {
    uint64_t            what;           /* LLM_CN_... */
    llm_buf_t          *out;
    uint32_t            count;          /* messages written */
    llm_turn_t          last;           /* the last of them */
    llm_turn_t          side;           /* the last of user and assistant
                                           without calls */
    llm_buf_t           ids;
    llm_buf_t           calls;          /* llm_turn_call_t of all */
    llm_buf_t           results;        /* llm_turn_result_t of an exchange */
    uint32_t            first;          /* of calls: the exchange's first */
    uint32_t            number;         /* of the next call's id */
} llm_turns_t;

/* which parts of a turn a message has */
typedef enum {
    LLM_TURNS_ALL,
    LLM_TURNS_TEXT,
    LLM_TURNS_CALLS
} llm_turns_part_t;


static inline llm_turn_call_t *
llm_turns_call_at(const llm_turns_t *t, uint32_t i)
{
    return (llm_turn_call_t *) t->calls.data + i;
}


static inline uint32_t
llm_turns_n_calls(const llm_turns_t *t)
{
    return (uint32_t) (t->calls.len / sizeof(llm_turn_call_t));
}


static inline llm_turn_result_t *
llm_turns_result_at(const llm_turns_t *t, uint32_t i)
{
    return (llm_turn_result_t *) t->results.data + i;
}


static inline uint32_t
llm_turns_n_results(const llm_turns_t *t)
{
    return (uint32_t) (t->results.len / sizeof(llm_turn_result_t));
}


static inline void
llm_turns_str(llm_buf_t *out, const char *s)
{
    llm_flat_add_str(out, s, strlen(s));
}


/* text, or NULL with a length of 0 */

static inline llm_str_t
llm_turns_text(const llm_flat_t *v)
{
    return v && v->type == LLM_FLAT_STRING ? llm_flat_str(v)
                                           : (llm_str_t) { 0, "" };
}


/* exchange.c */

llm_turn_t llm_turns_kind(const llm_flat_t *msg);
/* the function of a call, which may be the call itself; NULL: it is none */
const llm_flat_t *llm_turns_function(const llm_flat_t *call);
llm_str_t llm_turns_name(const llm_flat_t *call);

/* the exchange that begins with msg: its calls, their new ids, its results and
   whose they are; returns the message behind it */
const llm_flat_t *llm_turns_collect(llm_turns_t *t,
    const llm_flat_t *messages, const llm_flat_t *msg);
/* may calls and results be gone through one by one? */
int llm_turns_small(const llm_turns_t *t);
/* the last call with this id; NULL: there is none */
llm_turn_call_t *llm_turns_find(const llm_turns_t *t, llm_str_t id);

/* turn.c: messages that are written */

/* is it text, or parts? */
int llm_turns_says(const llm_flat_t *content);
/* a part of the turn, with the calls [from, from + n) of the exchange */
void llm_turns_add_turn(llm_turns_t *t, const llm_flat_t *msg,
    llm_turns_part_t part, uint32_t from, uint32_t n);
/* the turn with its results in it, and the answer, or NULL */
void llm_turns_add_whole(llm_turns_t *t, const llm_flat_t *msg,
    const llm_flat_t *answer);
/* call: whose result it is; NULL: nobody's */
void llm_turns_add_result(llm_turns_t *t, const llm_flat_t *msg,
    const llm_turn_call_t *call);

#endif /* LLM_CHAT_TURNS_H */
