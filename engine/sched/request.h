/*
 * A request inside the engine and its sequences, one for each choice.
 *
 * Ownership: a request owns its message, prompts, sequences and all that
 * hangs on them.  It is touched by one thread at a time: the scheduler's,
 * the preparation thread it was given to, the scheduler's again.  `cancelled`
 * alone is shared.
 */

#ifndef LLM_REQUEST_H
#define LLM_REQUEST_H

#include "engine/emit/emit.h"
#include "engine/sched/pages.h"

typedef struct llm_req_s     llm_req_t;
typedef struct llm_seq_s     llm_seq_t;
typedef struct llm_tenant_s  llm_tenant_t;

typedef enum {
    LLM_SEQ_NEW = 0,
    LLM_SEQ_WAITING,                    /* in the queue */
    LLM_SEQ_RUNNING,                    /* takes part in steps */
    LLM_SEQ_PARKED,                     /* its reader is slow */
    LLM_SEQ_ENDED
} llm_seq_state_t;

/* tokens of one prompt, shared by its choices */
typedef struct {
    int32_t             *ids;           /* owned */
    uint32_t             n;
    uint32_t             is_text;
    llm_ref_t            text;          /* in the message, where it is text */
    llm_buf_t            echo;          /* the same where it was ids, if it
                                           is wanted */

    /* only where the echo comes with the probabilities of its tokens */
    uint32_t            *ends;          /* [n] owned; of each token's text in
                                           the echo */
    uint32_t             n_scored;      /* tokens whose probability is known;
                                           the first one has none */
    llm_buf_t            probs;         /* of these, as in llm_emit_t */
} llm_prompt_ids_t;

struct llm_seq_s {
    llm_req_t           *req;
    uint32_t             index;         /* prompt * n + choice */
    llm_seq_state_t      state;
    const llm_prompt_ids_t  *prompt;

    int32_t             *gen;           /* tokens generated so far */
    uint32_t             n_gen;
    uint32_t             cap_gen;
    uint32_t             max_gen;

    /* positions [0, n_kv) are in the cache, or will be after the steps that
       are under way */
    uint32_t             n_kv;
    uint32_t             pending;       /* tokens that these draw for it, not
                                           yet known */
    uint32_t             draw;          /* which draw, of the last of them */
    uint32_t            *pages;
    uint32_t             n_pages;
    uint32_t             cap_pages;
    uint32_t             n_tree;        /* of these in the prefix tree */

    llm_seq_t           *leader;        /* prefills the prompt for this one */
    uint32_t             in_batch;      /* rows of this step */
    uint64_t             waits;         /* number of the step in which another
                                           one computes what it wants next */
    uint32_t             seated;        /* has run before */
    uint32_t             advance;       /* tokens of the prompt that its tenant
                                           was charged for already */

    llm_sampler_t       *sampler;       /* the seat's, while RUNNING */
    llm_emit_t           emit;

    uint64_t             last_us;       /* when the last token came */
    llm_finish_t         reason;
    int32_t              stop_id;
    uint32_t             finish_sent;
    uint32_t             echo_due;      /* its prompt, before its tokens */

    llm_seq_t           *prev;          /* in its tenant's queue */
    llm_seq_t           *next;
};

typedef enum {
    LLM_REQ_NEW = 0,                    /* waits for its model */
    LLM_REQ_PREPARING,                  /* a preparation thread has it */
    LLM_REQ_SCHEDULED,                  /* its model's scheduler has it */
    LLM_REQ_DOOMED                      /* waits to tell its error */
} llm_req_state_t;

/* what a preparation thread made of the message; it stays as it is, but for
   what the scheduler has scored of the prompts */
typedef struct {
    llm_prompt_ids_t    *prompts;
    uint32_t             n_prompts;
    uint32_t             prompt_tokens;
    llm_stops_t          stops;
    int32_t             *banned;        /* never drawn before min_tokens */
    uint32_t             n_banned;
    llm_salt_t           salt;
} llm_prepared_t;

/* what the scheduler does with it */
typedef struct {
    llm_seq_t           *seqs;
    uint32_t             n_seqs;
    uint32_t             n_ended;
    llm_tenant_t        *tenant;
    uint64_t             start_us;      /* first sequence began to run */
} llm_course_t;

/* what goes out */
typedef struct {
    llm_to_t             to;
    uint32_t             paused;        /* its reader is slow */
    uint32_t             cached_tokens;
    uint32_t             completion_tokens;
    uint64_t             first_us;      /* first token */
    uint32_t             start_sent;
    uint32_t             in_list;       /* of those that have events */
    llm_req_t           *next;          /* in it */
} llm_outgoing_t;

struct llm_req_s {
    llm_request_t       *msg;           /* owned */
    uint32_t             model;
    uint64_t             serial;        /* order of arrival in the engine */
    llm_req_state_t      state;

    /* set by the scheduler's thread, read by a preparation thread that may
       save itself the work; relaxed */
    _Atomic uint32_t     cancelled;

    /* status != 0: it has failed; of whoever has the request */
    llm_err_t            err;
    uint32_t             retry_after;

    /* the same, the scheduler's verdict while a preparation thread has the
       request: the scheduler alone writes and reads it */
    llm_err_t            late;
    uint32_t             late_retry;

    size_t               bytes;         /* counted for it by the scheduler */

    llm_prepared_t       prep;
    llm_course_t         run;
    llm_outgoing_t       out;

    llm_req_t           *prev;          /* among all of the engine */
    llm_req_t           *next;
    llm_req_t           *job_next;      /* in a queue between threads */
};

/* takes msg over; NULL: no memory (msg is then freed) */
llm_req_t *llm_req_create(llm_request_t *msg);
void llm_req_free(llm_req_t *r);

/*
 * The memory it takes now, the tables of its sequences' seats excepted.  Of
 * one that is not prepared, what its message alone says.
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


/* and those that are being drawn */
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


/* are there tokens of its prompt whose probability is still to come? */
static inline int
llm_seq_unscored(const llm_seq_t *s)
{
    return s->prompt->ends && s->prompt->n_scored < s->prompt->n;
}


/* the prompt's text, as an answer with echo begins */
llm_str_t llm_req_echo(const llm_req_t *r, const llm_prompt_ids_t *p);

/* does a go before b: priority, arrival, choice */
int llm_seq_before(const llm_seq_t *a, const llm_seq_t *b);

/* appends a token; LLM_ERROR: no memory */
int llm_seq_append(llm_seq_t *s, int32_t id);

#endif /* LLM_REQUEST_H */
