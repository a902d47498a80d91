/*
 * What the scheduler's files share, in the order in which they build on each
 * other: gauges.c (gauges), estimate.c (measured times), seq_pages.c (pages of
 * a sequence), state.c (its recurrent state), rows.c (arrays of a step),
 * constraint.c (masks), trigger.c (calls that are constrained once they
 * begin), sampler_pool.c (samplers), running.c (lists), outbox.c (requests
 * with events), media.c, encoded.c (rows of media), prefix.c (prefix cache),
 * echo.c (echoed prompts), finish.c, pooling.c (prompts that become vectors),
 * preempt.c (preemption), admit.c (admission), forecast.c (time to the first
 * token), speculate.c (drafts), step.c (composing a step), encode.c (the
 * encoder of media), results.c (results of a step), run.c (its launch),
 * events.c, sched.c.
 */

#ifndef LLM_SCHED_INTERNAL_H
#define LLM_SCHED_INTERNAL_H

#include "engine/sched/draft_head.h"
#include "engine/sched/draft_model.h"
#include "engine/sched/state_slots.h"

/* result of functions of the scheduler: the sequence is in the queue again */
#define LLM_PREEMPTED       LLM_OTHER

/* while streams run, a step computes at most 1/SHARE of a prompt, or two
   pages */
#define LLM_STEP_SHARE      24

/*
 * How long a step with prompt rows may take.  A chunk of a prompt must not make
 * running streams wait.  If there are none, the step still has to end soon,
 * because cancels and new requests take effect between steps.
 */
#define LLM_STEP_ALONE_US   120000
#define LLM_STEP_SHARED_US  70000

/* the part of that time for which rows are chosen */
#define LLM_STEP_AIM        0.85

/* a step that takes too long still has so many prompt rows: fewer take nearly as
   long, as all weights are read */
#define LLM_STEP_LEAST      8

/* how long a step may wait for the masks of drafted rows, all together */
#define LLM_DRAFT_WAIT_US   2000

/* prompt rows of a step that are needed to estimate the time of a row */
#define LLM_STEP_ROWS       64

/* a step; it owns these arrays, to which the batch points */
typedef struct {
    llm_batch_t          batch;
    int32_t             *tokens;
    uint32_t            *follows;
    uint32_t            *pos;
    uint32_t            *seq_rows;
    uint32_t            *kv_len;
    uint32_t            *tables[LLM_KV_KINDS];      /* pages of the step's
                                                       sequences */
    uint32_t            *out_rows;
    llm_draw_t          *draws;         /* for each row in out_rows */
    llm_seq_t          **out_seqs;      /* sequence of each row in out_rows;
                                           NULL: the result is dropped */
    llm_seq_t          **seqs;          /* [n_seqs]; NULL: results are
                                           dropped */
    uint32_t            *drafted;       /* [n_seqs] how many of the sequence's
                                           rows, the last ones, are drafted */
    uint32_t            *slots;         /* [n_seqs] state slots */
    /* only for a model that takes rows of media: */
    uint32_t            *given;         /* [batch] number in rows */
    uint32_t            *turns;         /* [batch][LLM_TURNS] */
    uint32_t            *sees;          /* [batch][2] */
    float               *rows;          /* [batch][n_given] */
    int                  turned;        /* some turns are not pos */
    uint32_t            *snapshots;     /* [n_seqs] after the launch: state
                                           slots held for copies of the states
                                           that the rows end with, or
                                           LLM_SLOT_NONE */
    uint32_t             n_prefill;     /* rows of prompts */
    uint32_t             n_scores;      /* rows of prompts of which more than
                                           the last row gives a result */
    uint32_t             n_hidden;      /* results that are states */
    uint64_t             start_us;      /* time of the launch */
} llm_step_t;

#define LLM_SCHED_GAUGES  11            /* set by llm_sched_gauges() */

/* rows of media that are kept, see encoded.c */
#define LLM_ENCODED         64

typedef struct {
    llm_salt_t           salt;
    uint64_t             digest;
    float               *rows;
    size_t               bytes;
    uint64_t             used;          /* time of use, by encoded_clock */
} llm_encoded_t;

/* media that the encoder works on, see encode.c and encoded.c */
typedef struct {
    uint32_t             n;             /* 0: none */
    llm_req_t           *of[LLM_MEDIA_TOGETHER];    /* request of each; NULL: it
                                                       has left */
    llm_media_t         *media[LLM_MEDIA_TOGETHER]; /* its own, or in `left` */
    llm_media_t          left[LLM_MEDIA_TOGETHER];  /* owned */
    llm_salt_t           salt[LLM_MEDIA_TOGETHER];
    uint64_t             pixels;        /* of all */
    uint64_t             us;            /* time of the pieces so far */
    uint32_t             alone;         /* media that could not be encoded
                                           together: so many of the next are
                                           encoded one by one */
} llm_encodes_t;

/* sums over the last steps without prompts: their number, rows, microseconds,
   squares and products */
typedef struct {
    double               n;
    double               rows;
    double               us;
    double               rows_rows;
    double               rows_us;
} llm_line_t;

/* what forecasts are made from: averages; 0: not known */
typedef struct {
    double               row_us[2];     /* microseconds of a prompt row: [0] in
                                           steps without, [1] with sequences
                                           that generate, beyond step_us */
    double               step_us;       /* of a step without prompts */
    double               beside_us;     /* of a step with sequences that
                                           generate, with or without prompts */
    llm_line_t           line;          /* of times by rows */
    double               pixel_us;      /* of a pixel in the encoder */
    uint64_t             encoder_us;    /* that it has worked since the last
                                           step, which is no time of a step */
    double               answer;        /* tokens of an answer */
    double               answers;       /* answers averaged, and
                                           LLM_SPEED_WEIGHT */
    double               slip;          /* factor that corrects forecasts */
    uint64_t             slipped_us;    /* time when the factor last grew */
    int                  busy;          /* 1: there was more to do after the
                                           last step */
} llm_speed_t;

/* the expected end of a running sequence */
typedef struct {
    double               us;            /* from now */
    uint32_t             pages;         /* pages that it has now */
} llm_release_t;

struct llm_sched_s {
    llm_sched_conf_t     conf;
    llm_zone_figures_t  *figures;       /* the model's gauges in the zone */
    uint32_t             told[LLM_SCHED_GAUGES];    /* this scheduler's part of
                                                       the gauges */
    llm_zone_counters_t  *counters;
    uint64_t             n_evicted;     /* evicted pages counted so far */

    llm_queue_t          queue;
    llm_pages_t         *pages;
    uint32_t             n_kinds;       /* kinds of pages; if layers have a
                                           window, pages of the last kind leave
                                           it */
    uint32_t             max_pages;     /* of one sequence */
    llm_state_slots_t   *slots;         /* NULL: no recurrent layers */

    llm_seq_t          **running;       /* [max_seqs] */
    uint32_t             n_running;
    llm_seq_t          **victims;       /* [max_seqs] for
                                           llm_preempt_choose() */
    llm_seq_t          **parked;        /* grows as needed */
    uint32_t             n_parked;
    uint32_t             cap_parked;

    llm_req_t           *out;           /* requests with events to send */
    int                  starts;        /* 1: some of them may want to say that
                                           they begin, see
                                           llm_sched_send_starts() */

    llm_sampler_t      **samplers;      /* [max_seqs] free ones */
    uint32_t             n_samplers;
    llm_sampler_scratch_t  *scratch;
    llm_draft_model_t   *draft_model;   /* NULL: there is none, as the next */
    llm_draft_head_t    *draft_head;
    uint32_t            *head_pages[LLM_KV_KINDS];  /* [max_pages] the tables of
                                           a sequence, for the head */
    llm_masker_t        *masker;        /* NULL: not needed yet */
    uint32_t             n_held;        /* sequences that wait for their
                                           mask */
    int32_t             *eog;           /* [n_eog] tokens that end an answer */
    uint32_t             n_eog;

    llm_step_t           steps[2];
    llm_step_t          *next;          /* step to be composed */
    llm_step_t          *in_flight;     /* step that was launched and whose
                                           results are not taken yet, the older
                                           one of two; NULL: none */
    uint64_t             n_steps;       /* composed so far */
    uint64_t             taken_us;      /* time when the last step's results
                                           came */
    int                  failed;        /* 1: a request was marked as failed */

    llm_encodes_t        encodes;
    llm_encoded_t        encoded[LLM_ENCODED];
    uint32_t             n_encoded;
    size_t               encoded_bytes; /* of all their rows */
    uint64_t             encoded_clock;

    /* drafts of the step that is composed: rows that are left for them, the
       least probability of a drafted token; time that is left to wait for
       masks of drafted rows */
    struct {
        uint32_t         rows;
        double           least;
        uint32_t         wait_us;
    } drafts;

    double               row_us;        /* time of one prompt row */

    llm_speed_t          speed;
    llm_release_t       *releases;      /* [max_seqs] of a forecast */
    uint32_t             n_releases;
    uint64_t             todo;          /* prompt tokens to be computed */

    /* prompt rows that fit the time of a step, found by trying: [0] without,
       [1] with sequences that generate */
    uint32_t             rows[2];
    int                  shared;        /* rows[1] has been tried */
};

/* gauges.c */
void llm_sched_gauges(llm_sched_t *s);
/* sets this scheduler's part of the gauges; values NULL: 0 each */
void llm_sched_tell(llm_sched_t *s, const uint32_t *values);

/* running.c: add a sequence to running[], which is in the queue's order, and
   remove it; a sequence that is removed gives its sampler back */
void llm_sched_set_running(llm_sched_t *s, llm_seq_t *q);
void llm_sched_clear_running(llm_sched_t *s, llm_seq_t *q);
/* parks a sequence whose client reads slowly: it leaves running[] and keeps its
   pages until another one needs them; LLM_ERROR: no memory, it still runs */
int llm_sched_park(llm_sched_t *s, llm_seq_t *q);
void llm_sched_unpark(llm_sched_t *s, llm_seq_t *q);

/* the kind of pages that leave a window and that nodes of a path in the tree
   may lack, if the model has a window: the last kind */

static inline uint32_t
llm_sched_leaving(const llm_sched_t *s)
{
    return s->n_kinds - 1;
}


/* seq_pages.c */
int llm_sched_reserve(llm_sched_t *s, llm_seq_t *q, uint32_t n);
int llm_sched_add_page(llm_sched_t *s, llm_seq_t *q, uint32_t node);
uint32_t llm_sched_window(const llm_sched_t *s, uint32_t kind);
void llm_sched_table(const llm_sched_t *s, const llm_seq_t *q, uint32_t kind,
    uint32_t *table, uint32_t width);
uint32_t llm_sched_first_page(const llm_sched_t *s, uint32_t kind,
    uint32_t n_kv);
void llm_sched_leave(llm_sched_t *s, llm_seq_t *q, uint32_t n_kv);
void llm_sched_drop(llm_sched_t *s, llm_seq_t *q);

/* state.c; without recurrent layers these do nothing */
int llm_state_take(llm_sched_t *s, llm_seq_t *q);
void llm_state_load(llm_sched_t *s, llm_seq_t *q);
int llm_state_fork(llm_sched_t *s, const llm_seq_t *leader, llm_seq_t *q);
void llm_state_drop(llm_sched_t *s, llm_seq_t *q);
int llm_state_is_shared(const llm_step_t *st, const llm_seq_t *q);
uint32_t llm_state_rows(const llm_sched_t *s, llm_seq_t *q, uint32_t n);
void llm_state_launched(llm_sched_t *s, llm_step_t *st);
void llm_state_taken(llm_sched_t *s, llm_step_t *st, uint32_t i);
void llm_state_release(llm_sched_t *s, llm_step_t *st);
int llm_state_is_unsure(const llm_sched_t *s, const llm_seq_t *q);
/* for drafted rows, see speculate.c */
uint32_t llm_state_room(const llm_sched_t *s, const llm_seq_t *q,
    uint32_t known, uint32_t n);
int llm_state_spare(llm_sched_t *s, llm_seq_t *q);
void llm_state_give_spare(llm_sched_t *s, llm_seq_t *q);
void llm_state_return(llm_sched_t *s, llm_seq_t *q);

/* most rows of a prompt of n tokens in a step while streams run */

static inline uint32_t
llm_step_share(uint32_t n)
{
    return llm_max(n / LLM_STEP_SHARE, 2u * LLM_KV_PAGE);
}


/* estimate.c: initial values of forecasts, and what they learn from */
void llm_speed_init(llm_speed_t *v);
void llm_speed_step(llm_sched_t *s, const llm_step_t *st, uint64_t now);
/* to be called when a sequence has ended */
void llm_speed_answer(llm_sched_t *s, const llm_seq_t *q);
/* media of so many pixels was encoded */
void llm_speed_encoded(llm_sched_t *s, uint64_t pixels, uint64_t us);
/* to be called when a request has its first token, or its vectors */
void llm_speed_first(llm_sched_t *s, const llm_req_t *r, uint64_t now);
/* times of a step of so many rows without prompts, and of one row more, in the
   same unit */
void llm_speed_rows(const llm_sched_t *s, uint32_t rows, double *step_us,
    double *row_us);
/* updates queue.aged_us */
void llm_sched_age(llm_sched_t *s);
/* sets the tokens of a sequence's prompt that are still to be computed */
void llm_sched_set_todo(llm_sched_t *s, llm_seq_t *q, uint32_t n);

/* forecast.c: prompt tokens to be computed for a sequence that is not added
   yet */
uint32_t llm_sched_fresh(const llm_sched_t *s, const llm_seq_t *q);

/* preempt.c */
/* the sequence frees its pages and returns to the queue */
void llm_sched_preempt(llm_sched_t *s, llm_seq_t *q);
/* frees the pages of a sequence that does not run, other than `but`; LLM_FULL:
   none has any */
int llm_sched_reclaim(llm_sched_t *s, const llm_seq_t *but);
llm_seq_t *llm_sched_last(const llm_sched_t *s);
/* take places and pages from sequences of a lower priority for q, the next one
   in the queue */
int llm_preempt_yields(const llm_sched_t *s, const llm_seq_t *q,
    int32_t priority);
int llm_preempt_has_place(const llm_sched_t *s, const llm_seq_t *q);
void llm_preempt_for_place(llm_sched_t *s, const llm_seq_t *q);
int llm_preempt_for_pages(llm_sched_t *s, const llm_seq_t *q, uint32_t kind,
    uint32_t missing);

/* admit.c */
void llm_sched_admit(llm_sched_t *s);
/* pages of a kind that a sequence needs before it runs */
uint32_t llm_sched_first_pages(const llm_sched_t *s, const llm_seq_t *q,
    uint32_t kind);
int llm_sched_next_page(llm_sched_t *s, llm_seq_t *q);
int llm_sched_room(llm_sched_t *s, llm_seq_t *q, uint32_t *n);
uint32_t llm_sched_spare_room(llm_sched_t *s, llm_seq_t *q, uint32_t known,
    uint32_t n);
int llm_sched_fork(llm_sched_t *s, llm_seq_t *leader, llm_seq_t *q);

/* finish.c */
void llm_sched_end_seq(llm_sched_t *s, llm_seq_t *q, llm_finish_t reason);
void llm_sched_clear(llm_sched_t *s, llm_req_t *r);

/* sampler_pool.c */
int llm_seat_take(llm_sched_t *s, llm_seq_t *q, llm_err_t *err);
void llm_seat_give(llm_sched_t *s, llm_seq_t *q);
void llm_seat_free(llm_sched_t *s);

/* constraint.c; LLM_ERROR: no memory, or the grammar has become too large */
int llm_rule_take(llm_sched_t *s, llm_seq_t *q, llm_err_t *err);
void llm_rule_give(llm_sched_t *s, llm_seq_t *q);
/* constrains a sequence by a grammar: its text is `begin`, then the sequence's
   generated tokens from number `from` on */
int llm_rule_open(llm_sched_t *s, llm_seq_t *q, llm_gram_ref_t *gram,
    llm_str_t begin, uint32_t from, llm_err_t *err);
/* *mask NULL: any token is allowed; LLM_LATER, LLM_STOPPED, LLM_ABSENT: as
   llm_masked_get() */
int llm_rule_mask(llm_seq_t *q, const uint32_t **mask, llm_err_t *err);
/* LLM_STOPPED: the text is complete, so that nothing can follow */
int llm_rule_add(llm_seq_t *q, int32_t id, llm_err_t *err);
/* keeps a copy of the logits until the mask is ready, and of those of drafted
   rows after them */
int llm_rule_hold(llm_sched_t *s, llm_seq_t *q, const float *logits,
    llm_err_t *err);
void llm_rule_hold_more(const llm_sched_t *s, llm_seq_t *q,
    const float *logits);
/* the kept logits of the next token */
const float *llm_rule_held(const llm_sched_t *s, const llm_seq_t *q);
void llm_rule_drop_held(llm_sched_t *s, llm_seq_t *q);
/* waits shortly for the mask of a drafted row */
void llm_rule_wait(llm_sched_t *s, llm_seq_t *q);
/* a sequence that has kept its logits and got its mask, or NULL */
llm_seq_t *llm_rule_ready(const llm_sched_t *s);

/* trigger.c; LLM_ERROR as above */
int llm_trigger_take(llm_sched_t *s, llm_seq_t *q, llm_err_t *err);
/* llm_rule_mask() where a call may have begun; never LLM_ABSENT */
int llm_trigger_mask(llm_seq_t *q, const uint32_t **mask, llm_err_t *err);
/* to be called after each token: constrains a call that has begun */
int llm_trigger_token(llm_sched_t *s, llm_seq_t *q, llm_err_t *err);

/* prefix.c */
int llm_sched_lookup(llm_sched_t *s, llm_seq_t *q);
/* how many pages of the tree the sequence could take after those that it has */
uint32_t llm_sched_ahead(const llm_sched_t *s, const llm_seq_t *q);
void llm_sched_extend(llm_sched_t *s, llm_seq_t *q);
void llm_sched_commit(llm_sched_t *s, llm_seq_t *q, uint32_t n_kv);

/* encoded.c */
void llm_encoded_put(llm_sched_t *s, const llm_salt_t *salt, llm_media_t *m);
int llm_encoded_get(llm_sched_t *s, const llm_salt_t *salt, llm_media_t *m);
int llm_encoded_has(const llm_sched_t *s, const llm_salt_t *salt,
    const llm_media_t *m);
int llm_encoded_copy(const llm_sched_t *s, const float *rows, llm_media_t *m);
void llm_encoded_free(llm_sched_t *s);
size_t llm_media_row_size(const llm_sched_t *s, const llm_media_t *m);
/* is it among the media that the encoder works on? */
int llm_media_encodes(const llm_sched_t *s, const llm_media_t *m);
/* the request is about to leave */
void llm_media_leave(llm_sched_t *s, llm_req_t *r);
/* the encoder works on none any more */
void llm_media_encodes_free(llm_sched_t *s);

/* media.c; without media these do nothing */
int llm_media_add(llm_sched_t *s, llm_req_t *r, llm_err_t *err);
void llm_media_drop(llm_sched_t *s, llm_req_t *r);
llm_media_t *llm_media_due(const llm_seq_t *q);
int llm_media_waits(const llm_sched_t *s);
/* bytes of the rows of a prompt's media that are there or in the encoder */
size_t llm_media_held(const llm_sched_t *s, const llm_prompt_ids_t *p);
/* pixels that the encoder has still to work on before the prompt's last n rows
   are computed */
uint64_t llm_media_pixels(const llm_prompt_ids_t *p, uint32_t n);
uint32_t llm_media_fit(const llm_sched_t *s, const llm_seq_t *q, uint32_t n,
    uint32_t most);
int llm_media_splits(const llm_sched_t *s, const llm_seq_t *q, uint32_t pos);
void llm_media_row(const llm_sched_t *s, llm_step_t *st, const llm_seq_t *q,
    uint32_t pos, uint32_t row);
void llm_media_batch(const llm_sched_t *s, llm_step_t *st);
void llm_media_done(llm_sched_t *s, llm_seq_t *q);

/* echo.c */
int llm_sched_wants_score(const llm_seq_t *q, uint32_t pos);
int llm_sched_score(llm_sched_t *s, llm_seq_t *q, uint32_t pos,
    const float *logits, llm_err_t *err);
void llm_sched_echo(llm_seq_t *q);

/* pooling.c */
int llm_pooled_wants(const llm_seq_t *q, uint32_t pos);
int llm_pooled_take(llm_sched_t *s, llm_seq_t *q, const float *state,
    llm_err_t *err);
int llm_pooled_write(llm_seq_t *q, llm_to_t *to);

/* speculate.c */
/* gives the states of a step's rows to the head that drafts, if there is one */
void llm_draft_states(llm_sched_t *s, const llm_step_t *st);
void llm_draft_begin(llm_sched_t *s);
int llm_draft_waits(const llm_sched_t *s, llm_seq_t *q);
uint32_t llm_draft_make(llm_sched_t *s, llm_seq_t *q);
/* counts the drafts of a sequence whose rows were launched */
void llm_draft_count(llm_sched_t *s, llm_seq_t *q);
int llm_draft_accept(llm_sched_t *s, llm_seq_t *q);
void llm_draft_settle(llm_sched_t *s, llm_seq_t *q);

/* rows.c */
int llm_step_create(const llm_sched_t *s, llm_step_t *st);
void llm_step_free(llm_step_t *st);
void llm_step_forget(llm_sched_t *s, llm_seq_t *q);

/* step.c */
int llm_step_compose(llm_sched_t *s);
/* describes the draw of a sequence's token after `ahead` tokens that are not
   known yet */
void llm_step_plan(const llm_sched_t *s, const llm_seq_t *q, uint32_t ahead,
    llm_draw_t *draw);
uint32_t llm_step_n_banned(const llm_seq_t *q, uint32_t ahead);
void llm_step_fail(llm_sched_t *s, llm_req_t *r, const llm_err_t *err);
void llm_step_no_memory(llm_sched_t *s, llm_req_t *r);

/* encode.c */
int llm_media_encode(llm_sched_t *s, llm_err_t *err);

/* results.c */
void llm_step_take(llm_sched_t *s, llm_step_t *st, uint64_t now);
/* adds the next token of a sequence: as the device drew it or, if drawn is
   NULL, drawn from the logits here; or ends the sequence */
void llm_step_next(llm_sched_t *s, llm_seq_t *q, const float *logits,
    const llm_drawn_t *drawn, uint64_t now);

/* think.c */
int llm_think_is_over(const llm_seq_t *q);
void llm_think_end(llm_seq_t *q, llm_sampled_t *token);

/* outbox.c */
void llm_sched_queue_events(llm_sched_t *s, llm_req_t *r);
/* before a step is launched: requests that begin with it, and whose clients
   want to know how far prompts are, say that they begin.  What finds no room is
   sent later, with the rest */
void llm_sched_send_starts(llm_sched_t *s);
/* does the request want to say so, and has not? */
int llm_req_wants_start(const llm_req_t *r);
void llm_sched_unqueue_events(llm_sched_t *s, llm_req_t *r);

#endif /* LLM_SCHED_INTERNAL_H */
