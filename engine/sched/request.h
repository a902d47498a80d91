/*
 * A request inside the engine, and its sequences, one for each choice.
 *
 * Ownership: a request owns its message, prompts, sequences and all that
 * hangs on them.  It is touched by one thread at a time: the scheduler's,
 * the preparation thread it was given to, the scheduler's again.  `cancelled`
 * alone is shared.
 */

#ifndef LLM_REQUEST_H
#define LLM_REQUEST_H

#include "engine/emit/emit.h"
#include "engine/grammar/masker.h"
#include "engine/sched/pages.h"

typedef struct llm_req_s     llm_req_t;
typedef struct llm_seq_s     llm_seq_t;
typedef struct llm_tenant_s  llm_tenant_t;
typedef struct llm_instance_s  llm_instance_t;
typedef struct llm_payer_s   llm_payer_t;

typedef enum {
    LLM_SEQ_NEW = 0,
    LLM_SEQ_WAITING,                    /* in the queue */
    LLM_SEQ_RUNNING,                    /* takes part in steps */
    LLM_SEQ_PARKED,                     /* its client reads slowly */
    LLM_SEQ_ENDED
} llm_seq_state_t;

/* tokens of one prompt, shared by its choices */
typedef struct {
    int32_t             *ids;           /* owned */
    uint32_t             n;
    uint32_t             is_text;
    llm_ref_t            text;          /* in the message, if it came as
                                           text */
    llm_buf_t            echo;          /* the text, if it came as ids and is
                                           to be echoed */

    /* only for an echo with the probabilities of its tokens */
    uint32_t            *ends;          /* [n] owned; where each token's text
                                           ends in the echo */
    uint32_t             n_scored;      /* tokens whose probability is known;
                                           the first one has none */
    llm_buf_t            probs;         /* of these tokens, as in llm_emit_t */
} llm_prompt_ids_t;

/* of a sequence that is embedded or scored: the final states of its prompt on
   their way to a vector; see pooling.c */
typedef struct {
    uint32_t             next;          /* the position whose state is pooled
                                           next, ... */
    uint32_t             end;           /* ... and the one behind the last; 0:
                                           the sequence generates text */
    uint32_t             count;         /* of positions that are pooled */
    double              *sum;           /* [n_embd] owned; of the states so
                                           far */
    size_t               sum_bytes;
    float               *vector;        /* [n] owned; the result */
    uint32_t             n;
    uint32_t             sent;          /* values of it */
} llm_pooled_t;

struct llm_seq_s {
    llm_req_t           *req;
    uint32_t             index;         /* prompt * n + choice */
    llm_seq_state_t      state;
    const llm_prompt_ids_t  *prompt;

    int32_t             *gen;           /* tokens generated so far */
    uint32_t             n_gen;
    uint32_t             cap_gen;
    uint32_t             max_gen;

    /* positions [0, n_kv) are in the cache, or will be after the steps in
       flight */
    uint32_t             n_kv;
    uint32_t             pending;       /* tokens that the steps in flight draw
                                           for it, not yet known */
    uint32_t             draw;          /* number of the draw in the last of
                                           these steps */
    uint32_t            *pages;         /* nodes of pages.h; LLM_PAGE_NONE: it
                                           holds no page of it any more */
    uint32_t             n_pages[LLM_KV_KINDS];     /* of these, which have a
                                                       page of this kind, ... */
    uint32_t             n_gone[LLM_KV_KINDS];      /* ... but the first ones,
                                                       whose pages have left
                                                       the window */
    uint32_t             cap_pages;
    uint32_t             n_tree;        /* nodes that are in the prefix tree */
    uint32_t             entry;         /* where it went on from the tree */
    uint32_t             branch;        /* where another sequence goes another
                                           way, or 0 */

    /* of a model with recurrent layers: see state.c */
    uint32_t             has_slot;      /* while it has pages */
    uint32_t             slot;
    uint32_t             rolling;       /* where its last snapshot in the text
                                           that it generates is, or 0 */

    llm_seq_t           *leader;        /* computes the prompt for this one,
                                           too */
    uint32_t             in_batch;      /* its rows in this step */
    uint64_t             waits;         /* number of the step in which another
                                           sequence computes the page that it
                                           needs next */
    uint32_t             admitted;      /* has run before */
    uint32_t             advance;       /* prompt tokens that its tenant was
                                           charged for and that are not
                                           computed yet */
    uint32_t             todo;          /* those that count in the scheduler's
                                           todo */

    llm_sampler_t       *sampler;       /* while RUNNING, if it generates */
    llm_masked_t        *masked;        /* likewise; NULL: not constrained, or
                                           not yet */
    float               *held;          /* owned; the logits of its next
                                           token, while it waits for its
                                           mask */
    llm_buf_t            begun;         /* a call has begun: what its grammar
                                           begins with; see trigger.c */
    uint32_t             begun_at;      /* behind so many tokens */
    llm_emit_t           emit;
    llm_pooled_t         pool;

    uint32_t             n_ended;       /* tokens of the ending of reasoning
                                           that were forced */
    llm_candidate_t      ended;         /* the last of them */
    uint64_t             last_us;       /* when the last token came */
    llm_finish_t         reason;
    int32_t              stop_id;
    uint32_t             finish_sent;
    uint32_t             echo_due;      /* the prompt is still to be echoed */

    llm_seq_t           *prev;          /* in its tenant's queue */
    llm_seq_t           *next;
};

typedef enum {
    LLM_REQ_NEW = 0,                    /* waits for its model */
    LLM_REQ_PREPARING,                  /* a preparation thread has it */
    LLM_REQ_ASKING,                     /* its worker is to say whether it may
                                           run */
    LLM_REQ_SCHEDULED,                  /* its model's scheduler has it */
    LLM_REQ_ANSWERED,                   /* its answer was prepared, and waits
                                           for room in the ring */
    LLM_REQ_DOOMED                      /* its error waits for room in the
                                           ring */
} llm_req_state_t;

/* what a preparation thread made of the message; afterwards only the prompts'
   probabilities change, which the scheduler adds */
typedef struct {
    llm_prompt_ids_t    *prompts;
    uint32_t             n_prompts;
    uint32_t             prompt_tokens;
    llm_stops_t          stops;
    int32_t             *banned;        /* ids not to be drawn before
                                           min_tokens */
    uint32_t             n_banned;
    llm_gram_ref_t      *gram;          /* what choices must look like, or
                                           NULL */
    llm_gram_ref_t      *call_gram;     /* or else what a call must from where
                                           it has begun, or NULL */
    llm_filter_t         filter;        /* its lists are owned */
    size_t               filter_bytes;  /* memory of these */
    llm_salt_t           salt;
    int                  whole;         /* a prompt is computed in one step,
                                           none of it is ever shared */
    llm_tools_t          tools;         /* that may be called */
    int                  staged;        /* all is prepared but the grammar */
    int                  open;          /* reasoning in the prompt, as
                                           llm_answer_open() says */
    llm_ids_t            endings[LLM_FORMAT_PAIRS];  /* what ends reasoning, if
                                                        it has a bound */

    /* the answer, where no model is needed for it: text, or the tokens of the
       first prompt; and how much of it was sent */
    llm_buf_t            answer;
    size_t               sent;
} llm_prepared_t;

/* what the scheduler does with it */
typedef struct {
    llm_seq_t           *seqs;
    uint32_t             n_seqs;
    uint32_t             n_ended;
    llm_tenant_t        *tenant;
    uint64_t             start_us;      /* when the first sequence began to
                                           run */

    /* what was predicted for its first token */
    uint64_t             judged_us;     /* when; 0: it was not */
    double               wait_us;       /* from then on, as a sum of what is
                                           known */
    uint64_t             predicted_us;  /* from its arrival, corrected; 0: not
                                           known */
} llm_course_t;

/* what goes out */
typedef struct {
    llm_to_t             to;
    uint32_t             paused;        /* its client reads slowly */
    uint32_t             cached_tokens;
    uint32_t             completion_tokens;
    uint32_t             reasoning_tokens;  /* of choices that have ended */
    uint64_t             first_us;      /* when the first token came */
    uint32_t             start_sent;
    uint32_t             in_list;       /* it is in the scheduler's list of
                                           requests with events */
    llm_req_t           *next;          /* in it */
} llm_outgoing_t;

struct llm_req_s {
    llm_request_t       *msg;           /* owned */
    uint32_t             model;
    llm_instance_t      *instance;      /* engine/serve's: the model's file that
                                           it is for, from end to end */
    uint64_t             serial;        /* order of arrival in the engine */
    llm_req_state_t      state;
    int                  own;           /* the engine's: no worker has counted
                                           it */

    /* set by the scheduler's thread; a preparation thread reads it to skip
       work that nobody needs; relaxed */
    _Atomic uint32_t     cancelled;

    /* status != 0: it has failed; the thread that has the request uses it */
    llm_err_t            err;
    uint32_t             retry_after;

    /* the same, for the scheduler while a preparation thread has the request:
       only the scheduler writes and reads it */
    llm_err_t            late;
    uint32_t             late_retry;

    uint64_t             entered_us;    /* when it came to the engine */
    llm_period_t           prepared;      /* when a thread did it, which writes
                                           this before it hands it on */

    size_t               bytes;         /* as last counted by the scheduler */

    llm_prepared_t       prep;
    llm_course_t         run;
    llm_outgoing_t       out;

    llm_req_t           *prev;          /* among all of the engine */
    llm_req_t           *next;
    llm_req_t           *job_next;      /* in a queue between threads */

    /* engine/serve/turns.h's, under the engine's lock */
    llm_payer_t         *payer;         /* NULL: it is not being prepared */
    uint32_t             turn;          /* llm_turn_t: the list that it is in;
                                           LLM_TURN_N: in none */
};

/* takes msg over; NULL: no memory (msg is then freed) */
llm_req_t *llm_req_create(llm_request_t *msg);
void llm_req_free(llm_req_t *r);

/*
 * The memory that a request takes now, without the samplers of its
 * sequences.  For one that is not prepared yet: an estimate from its message.
 */
size_t llm_req_bytes(const llm_req_t *r);

/* marks it failed, the first reason stays */
void llm_req_fail(llm_req_t *r, const llm_err_t *err, uint32_t retry_after);

/* tokens known so far: the prompt's and the generated ones */
static inline uint32_t
llm_seq_known(const llm_seq_t *s)
{
    return s->prompt->n + s->n_gen;
}


/* and those that steps in flight draw */
static inline uint32_t
llm_seq_due(const llm_seq_t *s)
{
    return llm_seq_known(s) + s->pending;
}


static inline int32_t
llm_seq_token(const llm_seq_t *s, uint32_t i)
{
    return i < s->prompt->n ? s->prompt->ids[i] : s->gen[i - s->prompt->n];
}


/* are there tokens of its prompt whose probability is wanted and unknown? */
static inline int
llm_seq_unscored(const llm_seq_t *s)
{
    return s->prompt->ends && s->prompt->n_scored < s->prompt->n;
}


/* does it share pages with others?  Those of a prompt that must be whole are
   of no use to any other */
static inline int
llm_seq_caches(const llm_seq_t *s)
{
    return !(s->req->msg->flags & LLM_REQ_NO_CACHE) && !s->req->prep.whole;
}


/* is it embedded or scored, and generates nothing? */
static inline int
llm_seq_pools(const llm_seq_t *s)
{
    return s->pool.end != 0;
}


/*
 * How many of its first positions need not be computed if their keys and
 * values are in the prefix cache: not those that give the next token, or the
 * probability of a prompt token, or a state that is pooled.
 */
static inline uint32_t
llm_seq_sharable(const llm_seq_t *s)
{
    if (llm_seq_pools(s)) {
        return s->pool.next;
    }

    return llm_seq_unscored(s) ? s->prompt->n_scored - 1
                               : llm_seq_known(s) - 1;
}


/* the prompt's text, as an answer with echo begins */
llm_str_t llm_req_echo(const llm_req_t *r, const llm_prompt_ids_t *p);

/* does a go before b: priority, arrival, choice */
int llm_seq_before(const llm_seq_t *a, const llm_seq_t *b);

/* appends a token; LLM_ERROR: no memory */
int llm_seq_append(llm_seq_t *s, int32_t id);

#endif /* LLM_REQUEST_H */
