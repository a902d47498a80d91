/*
 * A request inside the engine, and its sequences, one for each choice.
 *
 * Ownership: a request owns its message, prompts, sequences and all that they
 * point to.  One thread at a time uses a request: the scheduler's thread, then
 * a preparation thread, then the scheduler's thread again.  Only `cancelled` is
 * shared.
 */

#ifndef LLM_REQUEST_H
#define LLM_REQUEST_H

#include "engine/emit/emit.h"
#include "engine/grammar/masker.h"
#include "engine/ipc/media.h"
#include "engine/sched/lookup.h"
#include "engine/sched/pages.h"
#include "engine/speech/crew.h"

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

/*
 * Rows of a prompt that are not tokens: one entry of an image, or a sound
 * (engine/model/tower.h), which is encoded when the rows before it are
 * computed.  Owned by its prompt, as is what it points to.
 */
typedef struct {
    uint32_t             first;         /* position of its first row */
    uint32_t             n;             /* rows */
    uint32_t             cols;          /* cells of a row of cells, and rows of
                                           cells */
    uint32_t             lines;
    uint32_t             turn;          /* position of its first row in rotary
                                           embeddings, and of what follows;
                                           llm_prompt_place() sets both */
    uint32_t             after;
    uint64_t             digest;        /* of its pixels or samples: equal ones
                                           have equal keys and values */
    uint32_t             w;             /* pixels, or samples of a frame, or
                                           bands of a spectrogram */
    uint32_t             h;             /* pixels, or frames */
    uint32_t             own;           /* frames of a spectrogram that have
                                           rows; see llm_tower_entry_t */
    int                  heard;         /* a sound, whose rows do not see those
                                           after them in any model */
    uint8_t             *rgb;           /* [h][w][3] of an image */
    float               *samples;       /* [h][w] of a sound; its spectrogram
                                           is [w][h] */
    float               *rows;          /* [n][n_given] what the encoder gave;
                                           NULL: it is not encoded, or its keys
                                           and values are computed */
    size_t               row_bytes;     /* of rows */
} llm_media_t;

/* tokens of one prompt, shared by its choices */
typedef struct {
    int32_t             *ids;           /* owned; 0 at rows of media */
    uint32_t             n;
    llm_media_t         *media;         /* [n_media] owned; in order */
    uint32_t             n_media;
    size_t               media_bytes;   /* most bytes of their rows that are
                                           there at once; llm_media_most() */
    uint32_t             is_text;
    llm_ref_t            text;          /* the text in the message, if
                                           is_text */
    llm_buf_t            echo;          /* the text, if the prompt is shown, or
                                           came as ids and is echoed */

    /* only for an echo with the probabilities of its tokens */
    uint32_t            *ends;          /* [n] owned; offset in the echo at
                                           which each token's text ends */
    uint32_t             n_scored;      /* tokens whose probability is known,
                                           with the first one, which has none */
    llm_buf_t            probs;         /* of these tokens, as in llm_emit_t */
} llm_prompt_ids_t;

/* for a sequence that is embedded or scored: how the final states of its prompt
   are pooled to a vector; see pooling.c */
typedef struct {
    uint32_t             next;          /* position whose state is pooled
                                           next */
    uint32_t             end;           /* position after the last one that is
                                           pooled; 0: the sequence generates
                                           text */
    uint32_t             count;         /* positions that are pooled; 0: each
                                           of them is a vector of its own */
    double              *sum;           /* [n_embd] owned; sum of the states so
                                           far */
    size_t               sum_bytes;
    float               *vector;        /* [n] owned; the result */
    uint32_t             n;
    uint32_t             sent;          /* values of the vector sent so far */
} llm_pooled_t;

/* most tokens that are drafted for a sequence in a step */
#define LLM_DRAFT_MOST  16

/* the drafted tokens of a sequence; see speculate.c */
typedef struct {
    int32_t              ids[LLM_DRAFT_MOST];
    uint32_t             n;             /* tokens whose rows are in a step, or
                                           whose logits are held */
    uint32_t             used;          /* the first of these, which the model
                                           has drawn */
    llm_draft_kind_t     kind;
    uint32_t             n_drafts[LLM_DRAFT_N];     /* by kind, and the average
                                                       share of their tokens
                                                       that were drawn */
    float                came[LLM_DRAFT_N];

    /* for a model with recurrent layers: */
    uint32_t             base;          /* positions computed before the step */
    uint32_t             redo;          /* positions that are computed again,
                                           as tokens after them were not
                                           drawn */
    uint32_t             has_spare;     /* 1: `spare` is held */
    uint32_t             spare;         /* slot with the state before the
                                           step */
} llm_draft_t;

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
                                           for the sequence, not known yet */
    uint32_t             draw;          /* number of its draw in the last of
                                           these steps */
    llm_draft_t          draft;
    llm_lookup_t         lookup;
    uint32_t            *pages;         /* owned; nodes of pages.h, as a table;
                                           LLM_PAGE_NONE: the sequence holds no
                                           page of the node any more */
    uint32_t             n_pages[LLM_KV_KINDS];     /* nodes in the table that
                                                       have got a page of this
                                                       kind */
    uint32_t             n_gone[LLM_KV_KINDS];      /* the first of these, whose
                                                       pages have left the
                                                       window */
    uint32_t             cap_pages;
    uint32_t             n_tree;        /* nodes that are in the prefix tree */
    uint32_t             entry;         /* position from which it continued
                                           after pages of the tree */
    uint32_t             branch;        /* position where another sequence
                                           leaves this one's path; 0: none
                                           known */

    /* for a model with recurrent layers: see state.c */
    uint32_t             has_slot;      /* 1 while it has pages */
    uint32_t             slot;          /* state slot */
    uint32_t             rolling;       /* position of its last snapshot in
                                           generated text; 0: none */

    llm_seq_t           *leader;        /* choice that also computes the prompt
                                           for this one; NULL: none */
    uint32_t             in_batch;      /* its rows in the step that is being
                                           composed */
    uint64_t             waits;         /* number of the step in which it gets
                                           no rows, because others compute what
                                           it needs, or there is no room */
    uint32_t             admitted;      /* has run before */
    uint32_t             advance;       /* prompt tokens that its tenant was
                                           charged for and that are not
                                           computed yet */
    uint32_t             todo;          /* its part of the scheduler's todo, in
                                           tokens */

    llm_sampler_t       *sampler;       /* while RUNNING, if it generates */
    llm_masked_t        *masked;        /* masks, while RUNNING; NULL: not
                                           constrained, or not yet */
    float               *held;          /* owned; logits of its next token and
                                           of the drafted ones after it, while
                                           it waits for its mask; NULL: it does
                                           not wait */
    uint32_t             n_held;        /* rows of held */
    uint32_t             held_at;       /* row of the next token */
    llm_buf_t            begun;         /* bytes with which the grammar of a
                                           call that has begun begins; empty:
                                           none has; see trigger.c */
    uint32_t             begun_at;      /* tokens generated until then */
    llm_emit_t           emit;
    llm_pooled_t         pool;

    uint32_t             n_ended;       /* tokens of the end of reasoning that
                                           were forced */
    llm_candidate_t      ended;         /* the last of these tokens */
    uint64_t             last_us;       /* time of the last token */
    llm_finish_t         reason;
    int32_t              stop_id;       /* stop token that ended it; -1: none */
    uint32_t             finish_sent;
    uint32_t             echo_due;      /* 1: the prompt has still to be
                                           echoed */

    llm_seq_t           *prev;          /* in its tenant's queue */
    llm_seq_t           *next;
};

typedef enum {
    LLM_REQ_NEW = 0,                    /* waits for its model */
    LLM_REQ_PREPARING,                  /* a preparation thread has it */
    LLM_REQ_ASKING,                     /* waits for its worker's GRANT */
    LLM_REQ_SCHEDULED,                  /* its model's scheduler has it */
    LLM_REQ_HEARD,                      /* its sound is decoded, its model's
                                           crew has it or will */
    LLM_REQ_ANSWERED,                   /* its answer was prepared, and waits
                                           for room in the ring */
    LLM_REQ_DOOMED                      /* its error waits for room in the
                                           ring */
} llm_req_state_t;

/* what a preparation that is not over goes on with */
typedef enum {
    LLM_NEXT_GRAMMAR = 0,               /* its grammar is to be compiled */
    LLM_NEXT_MEDIUM,                    /* its next image or sound */
    LLM_NEXT_LARGE                      /* the same, which is known to be
                                           large */
} llm_prep_next_t;

/* what a preparation thread has made from the message.  Afterwards only the
   probabilities of prompts change, which the scheduler adds */
typedef struct {
    llm_prompt_ids_t    *prompts;
    uint32_t             n_prompts;
    uint32_t             prompt_tokens;
    uint32_t             audio_tokens;  /* of these, rows of sounds */
    uint32_t             audio_s;       /* seconds of a chat's sounds, each
                                           rounded up */
    llm_stops_t          stops;
    int32_t             *banned;        /* ids not to be drawn before
                                           min_tokens */
    uint32_t             n_banned;
    llm_gram_ref_t      *gram;          /* grammar of the choices, or NULL */
    llm_gram_ref_t      *call_gram;     /* grammar of calls from where they have
                                           begun, if gram is NULL; or NULL */
    llm_filter_t         filter;        /* its lists are owned */
    size_t               filter_bytes;  /* memory of these lists */
    llm_salt_t           salt;
    int                  whole;         /* 1: each prompt is computed in a
                                           single step and never shared */
    llm_tools_t          tools;         /* tools that may be called */
    int                  checked;       /* 1: the message has been checked, and
                                           its lists are there */
    llm_prep_next_t      next;          /* after LLM_LATER */
    void                *begun;         /* a prompt with media that is not laid
                                           out to its end, or NULL; owned */
    void               (*begun_free)(void *begun);
    size_t               begun_bytes;   /* of its pixels and samples */
    int                  staged;        /* 1: the first stage of preparation is
                                           done, only the grammar and what
                                           follows it are missing */
    int                  open;          /* reasoning that the prompt opens, see
                                           llm_answer_open() */
    llm_ids_t            predicted;     /* tokens of the client's prediction */
    llm_ids_t            endings[LLM_FORMAT_PAIRS];  /* tokens that end
                                                        reasoning, if it has a
                                                        limit */

    /* answer of a task that needs no model, unless that is the tokens of the
       first prompt; and how many bytes, or tokens, of it were sent */
    llm_buf_t            answer;
    size_t               sent;
} llm_prepared_t;

/* the request in the scheduler */
typedef struct {
    llm_seq_t           *seqs;
    uint32_t             n_seqs;
    uint32_t             n_ended;
    llm_tenant_t        *tenant;
    uint64_t             start_us;      /* time when the first sequence began to
                                           run; 0: none has */

    /* the forecast of its first token */
    uint64_t             judged_us;     /* time of the forecast; 0: none was
                                           made */
    double               wait_us;       /* forecast from judged_us on, not
                                           corrected */
    uint64_t             predicted_us;  /* forecast from its arrival on,
                                           corrected; 0: not known */
} llm_course_t;

/* the events of a request */
typedef struct {
    llm_to_t             to;
    uint32_t             paused;        /* 1: its client reads slowly */
    uint32_t             cached_tokens;
    uint32_t             completion_tokens;
    uint32_t             reasoning_tokens;  /* of choices that have ended */
    uint32_t             drafted_tokens;
    uint32_t             accepted_tokens;   /* of these, those that were
                                               drawn */
    uint64_t             first_us;      /* time of the first token; 0: none */
    uint32_t             start_sent;
    uint32_t             progress_sent;     /* the first PROGRESS was sent */
    uint32_t             processed;     /* prompt tokens in the last one */
    uint32_t             computed;      /* prompt tokens that its steps have
                                           computed, if it has PROGRESS */
    uint32_t             in_list;       /* 1: it is in the scheduler's list of
                                           requests with events */
    llm_req_t           *next;          /* in that list */
} llm_outgoing_t;

/*
 * A transcription: the preparation makes the sound and the state machine, then
 * the scheduler's thread alone has it (engine/serve/hearing.c).
 */
typedef struct {
    llm_speech_sound_t   sound;
    size_t               sound_bytes;   /* of its spectrogram */
    llm_speech_t        *speech;        /* owned */
    double               seconds;       /* of the sound */
    uint64_t             most;          /* tokens that it is expected to have
                                           at most, 224 for each 30 seconds */
    uint32_t             due;           /* tokens of records that no event has
                                           counted */
    int                  pieces;        /* segments go with their tokens'
                                           bytes */
    int                  runs;          /* 1: it has a place in the crew */
    uint32_t             place;
    size_t               frame;         /* of its last window; SIZE_MAX: it has
                                           none so far */
    uint32_t             heard_s;       /* seconds up to the end of it, rounded
                                           up */
    uint32_t             n_packed;      /* segments that are in `out`, or were
                                           sent */
    int                  ended;         /* all are */
    llm_buf_t            out;           /* records of segments */
    size_t               sent;          /* bytes of these */
    size_t               record;        /* where the present one ends */
    llm_req_t           *next;          /* in its model's list */
} llm_heard_t;

/* whole seconds, of which the last one may not be full */
static inline uint32_t
llm_seconds_up(double seconds)
{
    uint32_t  n;

    n = (uint32_t) llm_min(seconds, (double) UINT32_MAX - 1);

    return seconds > n ? n + 1 : n;
}


/* apart from the request, as few have one, and 50,000 may be open */

typedef struct {
    llm_err_t            err;
    uint32_t             retry_after;   /* seconds; 0: none */
} llm_failure_t;

/* a copy, or if there is no memory a failure that says so: never NULL */
const llm_failure_t *llm_failure_create(const llm_err_t *err,
    uint32_t retry_after);
void llm_failure_free(const llm_failure_t *f);


struct llm_req_s {
    llm_request_t       *msg;           /* owned */
    llm_claim_t          media;         /* bytes of the message's media; n is 0
                                           if they could not be taken */
    uint32_t             model;
    llm_instance_t      *instance;      /* engine/serve's: the instance of the
                                           model, with one file, that serves all
                                           of the request */
    uint64_t             serial;        /* order of arrival in the engine */
    llm_req_state_t      state;
    int                  own;           /* 1: the engine's own request, for a
                                           warm-up; no worker has counted it */

    /* set by the scheduler's thread; a preparation thread reads it to skip
       work that nobody needs; relaxed */
    _Atomic uint32_t     cancelled;

    /* why the request has failed, or NULL; used by the thread that has the
       request */
    const llm_failure_t *failure;       /* owned, see llm_failure_create() */

    /* the same, set while a preparation thread has the request: only the
       scheduler's thread writes and reads it */
    const llm_failure_t *late;

    uint64_t             entered_us;    /* time when it came to the engine */
    llm_period_t           prepared;      /* time of its preparation; the
                                           preparation thread writes it before
                                           it hands the request on */

    size_t               bytes;         /* memory, as last counted by the
                                           scheduler */

    llm_prepared_t       prep;
    llm_heard_t         *heard;         /* owned; NULL: not a transcription */
    llm_course_t         run;
    llm_outgoing_t       out;

    llm_req_t           *prev;          /* among all requests of the engine */
    llm_req_t           *next;
    llm_req_t           *job_next;      /* in a queue between threads */

    /* used by engine/serve/turns.h, under the engine's lock */
    llm_payer_t         *payer;         /* NULL: it is not being prepared */
    uint32_t             turn;          /* llm_turn_t: the list that it is in;
                                           LLM_TURN_N: in none */
    uint64_t             line;          /* its place in its tenant's line */
};

/* takes msg over; NULL: no memory (msg is then freed) */
llm_req_t *llm_req_create(llm_request_t *msg);
void llm_req_free(llm_req_t *r);

/*
 * Bytes of memory that a request takes now, without the samplers of its
 * sequences; an estimate from its message if it is not prepared yet.
 */
size_t llm_req_bytes(const llm_req_t *r);

/* start_done.c: LLM_FULL: the ring has no room.  START is sent once */
int llm_req_send_start(llm_req_t *r, uint32_t ctx);
/* seconds of its sounds, each rounded up; 0: it has none */
uint32_t llm_req_seconds(const llm_req_t *r);
int llm_req_send_done(llm_req_t *r, uint64_t now);

/* marks a request as failed; the first reason stays */
void llm_req_fail(llm_req_t *r, const llm_err_t *err, uint32_t retry_after);

/* tokens known so far: the prompt's and the generated ones */
static inline uint32_t
llm_seq_known(const llm_seq_t *s)
{
    return s->prompt->n + s->n_gen;
}


/* the same with the tokens that steps in flight draw */
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


/* the media that position i of the prompt is a row of; NULL: none */
static inline llm_media_t *
llm_prompt_media(const llm_prompt_ids_t *p, uint32_t i)
{
    uint32_t  k;

    for (k = 0; k < p->n_media; k++) {
        if (i < p->media[k].first + p->media[k].n) {
            return i < p->media[k].first ? NULL : &p->media[k];
        }
    }

    return NULL;
}


/* what is at a position, for the prefix tree: a token, or a row of media; keys
   of rows are above all tokens */
static inline uint64_t
llm_seq_key(const llm_seq_t *s, uint32_t i)
{
    uint64_t            key;
    const llm_media_t  *m;

    m = llm_prompt_media(s->prompt, i);

    if (m == NULL) {
        return (uint32_t) llm_seq_token(s, i);
    }

    key = (m->digest ^ (i - m->first + 1)) * 0x9fb21c651e98df25ull;

    return (key ^ key >> 32) | (uint64_t) 1 << 63;
}


/* are there tokens of its prompt whose probability is wanted and unknown? */
static inline int
llm_seq_unscored(const llm_seq_t *s)
{
    return s->prompt->ends && s->prompt->n_scored < s->prompt->n;
}


/* does it share pages with other sequences?  The pages of a prompt that is
   computed in a single step are of no use to others */
static inline int
llm_seq_caches(const llm_seq_t *s)
{
    return !(s->req->msg->flags & LLM_REQ_NO_CACHE) && !s->req->prep.whole;
}


/* is it embedded or scored, so that it generates nothing? */
static inline int
llm_seq_pools(const llm_seq_t *s)
{
    return s->pool.end != 0;
}


/*
 * How many of its first positions need not be computed if their keys and
 * values are in the prefix cache: those before the first one whose result is
 * wanted, which is the next token, the probability of a prompt token, or a
 * state that is pooled.
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


/* the prompt's text, with which an answer with echo begins */
llm_str_t llm_req_echo(const llm_req_t *r, const llm_prompt_ids_t *p);

/* does a go before b, by priority, arrival, choice? */
int llm_seq_before(const llm_seq_t *a, const llm_seq_t *b);

/* appends a token; LLM_ERROR: no memory */
int llm_seq_append(llm_seq_t *s, int32_t id);

#endif /* LLM_REQUEST_H */
