/*
 * What the files share that rewrite turns with calls and the results after
 * them; see turns.c.  Internal to engine/text/chat/.
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
    llm_str_t          id;              /* id in the request */
    size_t             at;              /* offset of the new id in
                                           llm_turns_t.ids */
    size_t             len;
    int                answered;
} llm_turn_call_t;

typedef struct {
    const llm_flat_t  *msg;
    uint32_t           call;            /* index in the exchange of the call
                                           that it belongs to */
} llm_turn_result_t;

typedef struct {
    uint64_t            what;           /* LLM_CN_... */
    llm_buf_t          *out;
    uint32_t            count;          /* messages written */
    llm_turn_t          last;           /* kind of the last message written */
    llm_turn_t          side;           /* the last side, user or assistant,
                                           that spoke without calls */
    llm_buf_t           ids;
    llm_buf_t           calls;          /* llm_turn_call_t of all exchanges */
    llm_buf_t           results;        /* llm_turn_result_t of one exchange */
    uint32_t            first;          /* index in calls of the exchange's
                                           first call */
    uint32_t            number;         /* number in the next call's id */
} llm_turns_t;

/* parts of a turn that a message has */
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


/* the text of v; length 0 and NULL if it is none */

static inline llm_str_t
llm_turns_text(const llm_flat_t *v)
{
    return v && v->type == LLM_FLAT_STRING ? llm_flat_str(v)
                                           : (llm_str_t) { 0, "" };
}


/* exchange.c */

llm_turn_t llm_turns_kind(const llm_flat_t *msg);
/* the function of a call, or the call itself if it has the function's members;
   NULL: it is no call */
const llm_flat_t *llm_turns_function(const llm_flat_t *call);
llm_str_t llm_turns_name(const llm_flat_t *call);

/* collects the exchange that begins with msg: its calls, their new ids, its
   results and their calls; returns the message after it */
const llm_flat_t *llm_turns_collect(llm_turns_t *t,
    const llm_flat_t *messages, const llm_flat_t *msg);
/* is the exchange small enough to compare each result with each call? */
int llm_turns_small(const llm_turns_t *t);
/* the last call with this id; NULL: none */
llm_turn_call_t *llm_turns_find(const llm_turns_t *t, llm_str_t id);

/* turn.c: messages that are written */

/* is the content a text, or parts? */
int llm_turns_says(const llm_flat_t *content);
/* adds a part of the turn, with the calls [from, from + n) of the exchange */
void llm_turns_add_turn(llm_turns_t *t, const llm_flat_t *msg,
    llm_turns_part_t part, uint32_t from, uint32_t n);
/* adds the turn with its results in it, and the answer, or NULL */
void llm_turns_add_whole(llm_turns_t *t, const llm_flat_t *msg,
    const llm_flat_t *answer);
/* call: the call that the result belongs to; NULL: none */
void llm_turns_add_result(llm_turns_t *t, const llm_flat_t *msg,
    const llm_turn_call_t *call);

#endif /* LLM_CHAT_TURNS_H */
