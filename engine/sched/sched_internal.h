/*
 * What the scheduler's files share, from the ground up: gauges.c (what is
 * shown), estimate.c (what things take), seq_pages.c (the pages of a
 * sequence), state.c (its recurrent state), rows.c (arrays of a step),
 * constraint.c (masks), trigger.c (calls that are constrained once they
 * begin), sampler_pool.c (samplers), running.c (lists), outbox.c (requests
 * with events), prefix.c (prefix cache), echo.c (echoed prompts), finish.c,
 * pooling.c (prompts that become vectors), preempt.c (who gives way), admit.c
 * (who runs), forecast.c (and when), step.c (composing a step), results.c (its
 * results), run.c (its launch), events.c, sched.c.
 */

#ifndef LLM_SCHED_INTERNAL_H
#define LLM_SCHED_INTERNAL_H

#include "engine/sched/sched.h"
#include "engine/sched/slots.h"

/* a result of the scheduler's own: the sequence is in the queue again */
#define LLM_PREEMPTED       LLM_OTHER

/* while streams run, a step computes at most this share of a prompt, or two
   pages */
#define LLM_STEP_SHARE      24

/* from fewer prompt rows the time of a row cannot be estimated */
#define LLM_STEP_ROWS       64

/* the rows of a step; the batch's arrays are these */
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
    llm_draw_t          *draws;         /* of each row in out_rows */
    llm_seq_t          **out_seqs;      /* its sequence; NULL: results are
                                           dropped */
    llm_seq_t          **seqs;          /* of the step; NULL: likewise */
    uint32_t            *slots;         /* of these */
    uint32_t            *snapshots;     /* [n_seqs] slots that are held for
                                           what their rows leave, or
                                           LLM_SLOT_NONE; once launched */
    uint32_t             n_prefill;     /* rows of prompts */
    uint32_t             n_scores;      /* of these, rows that give results
                                           beside the last of each prompt */
    uint32_t             n_states;      /* results that are states */
    uint64_t             start_us;
} llm_step_t;

#define LLM_SCHED_GAUGES  11            /* what llm_sched_gauges() tells */

/* what forecasts are made of; averages, 0: not known */
typedef struct {
    double               row_us[2];     /* of a prompt's row: [0] in steps
                                           without, [1] with sequences that
                                           generate, beyond step_us */
    double               step_us;       /* of a step without prompts */
    double               beside_us;     /* of one with or without */
    double               answer;        /* tokens of an answer */
    double               answers;       /* of so many, at least */
    double               slip;          /* what predictions are to be
                                           multiplied by */
    uint64_t             slipped_us;    /* when that grew */
    int                  busy;          /* there was more to do when the last
                                           step had ended */
} llm_speed_t;

/* a running sequence's end, as it is expected */
typedef struct {
    double               us;            /* from now */
    uint32_t             pages;         /* that it has */
} llm_release_t;

struct llm_sched_s {
    llm_sched_conf_t     conf;
    llm_zone_figures_t  *figures;
    uint32_t             told[LLM_SCHED_GAUGES];    /* its part of the gauges
                                                       there */
    llm_zone_counters_t  *counters;
    uint64_t             n_evicted;     /* pages of that count, so far */

    llm_queue_t          queue;
    llm_pages_t         *pages;
    uint32_t             n_kinds;       /* of pages; those of the last leave a
                                           window, if there is one */
    uint32_t             max_pages;     /* of one sequence */
    llm_slots_t         *slots;         /* NULL: no recurrent layers */

    llm_seq_t          **running;       /* [max_seqs] */
    uint32_t             n_running;
    llm_seq_t          **victims;       /* [max_seqs] while some are chosen */
    llm_seq_t          **parked;        /* grows as needed */
    uint32_t             n_parked;
    uint32_t             cap_parked;

    llm_req_t           *out;           /* requests with events to send */

    llm_sampler_t      **samplers;      /* [max_seqs] not in use */
    uint32_t             n_samplers;
    llm_sampler_scratch_t  *scratch;
    llm_masker_t        *masker;        /* NULL: not needed yet */
    uint32_t             n_held;        /* sequences that wait for their
                                           mask */
    int32_t             *eog;
    uint32_t             n_eog;

    llm_step_t           steps[2];
    llm_step_t          *next;          /* to be composed */
    llm_step_t          *in_flight;     /* launched, its results not taken, or
                                           NULL; once the next step is
                                           launched, too, that one */
    uint64_t             n_steps;       /* composed so far */
    uint64_t             taken_us;      /* when the last step's results came */
    int                  failed;        /* a request was marked as failed */

    double               row_us;        /* time of one prompt row */

    llm_speed_t          speed;
    llm_release_t       *releases;      /* [max_seqs] of a forecast */
    uint32_t             n_releases;
    uint64_t             todo;          /* prompt tokens to be computed */

    /* prompt rows that fit the time of a step, found by trying: [0] without,
       [1] with sequences that generate */
    uint32_t             rows[2];
};

/* gauges.c */
void llm_sched_gauges(llm_sched_t *s);
/* its part of the gauges; NULL: none */
void llm_sched_tell(llm_sched_t *s, const uint32_t *values);

/* running.c: into and out of running[], which is in the queue's order; a
   sequence that leaves it gives its sampler back */
void llm_sched_set_running(llm_sched_t *s, llm_seq_t *q);
void llm_sched_clear_running(llm_sched_t *s, llm_seq_t *q);
/* a sequence whose client reads slowly leaves running[] and keeps its pages
   until another one needs them; LLM_ERROR: no memory, it goes on running */
int llm_sched_park(llm_sched_t *s, llm_seq_t *q);
void llm_sched_unpark(llm_sched_t *s, llm_seq_t *q);

/* the kind of pages that leave a window and that a path of the tree may lack,
   if there are such: the last */

static inline uint32_t
llm_sched_leaving(const llm_sched_t *s)
{
    return s->n_kinds - 1;
}


/* seq_pages.c */
int llm_sched_reserve(llm_sched_t *s, llm_seq_t *q, uint32_t n);
int llm_sched_add_page(llm_sched_t *s, llm_seq_t *q, uint32_t node);
uint32_t llm_sched_window(const llm_sched_t *s, uint32_t kind);
uint32_t llm_sched_first_page(const llm_sched_t *s, uint32_t kind,
    uint32_t n_kv);
void llm_sched_leave(llm_sched_t *s, llm_seq_t *q, uint32_t n_kv);
void llm_sched_drop(llm_sched_t *s, llm_seq_t *q);

/* state.c; for a model without recurrent layers they do nothing */
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

/* how many rows of a prompt of n tokens a step takes while streams run */

static inline uint32_t
llm_step_share(uint32_t n)
{
    return llm_max(n / LLM_STEP_SHARE, 2u * LLM_KV_PAGE);
}


/* estimate.c: what forecasts begin with, and learn from */
void llm_speed_init(llm_speed_t *v);
void llm_speed_step(llm_sched_t *s, const llm_step_t *st, uint64_t now);
/* a sequence has ended that generated text */
void llm_speed_answer(llm_sched_t *s, const llm_seq_t *q);
/* the request has its first token, or its vectors */
void llm_speed_first(llm_sched_t *s, const llm_req_t *r, uint64_t now);
/* who has waited so long that nobody is to overtake it */
void llm_sched_age(llm_sched_t *s);
/* so many tokens of its prompt are still to be computed */
void llm_sched_set_todo(llm_sched_t *s, llm_seq_t *q, uint32_t n);

/* forecast.c: how many tokens of the prompt of one that is not added yet are
   to be computed */
uint32_t llm_sched_fresh(const llm_sched_t *s, const llm_seq_t *q);

/* preempt.c */
/* the sequence frees its pages and returns to the queue */
void llm_sched_preempt(llm_sched_t *s, llm_seq_t *q);
/* frees the pages of one that does not run, but not of this one; LLM_FULL: none
   has any */
int llm_sched_reclaim(llm_sched_t *s, const llm_seq_t *but);
llm_seq_t *llm_sched_last(const llm_sched_t *s);
/* for q, the next in the queue: places and pages of a lower priority */
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
/* masks by this grammar, of a text that begins with these bytes and then the
   sequence's tokens from this one on */
int llm_rule_open(llm_sched_t *s, llm_seq_t *q, llm_gram_ref_t *gram,
    llm_str_t begin, uint32_t from, llm_err_t *err);
/* NULL in *mask: any token; LLM_LATER, LLM_STOPPED, LLM_ABSENT: as
   llm_masked_get() */
int llm_rule_mask(llm_seq_t *q, const uint32_t **mask, llm_err_t *err);
/* LLM_STOPPED: the text is complete, so that nothing can follow */
int llm_rule_add(llm_seq_t *q, int32_t id, llm_err_t *err);
/* keeps the logits until the mask is there */
int llm_rule_hold(llm_sched_t *s, llm_seq_t *q, const float *logits,
    llm_err_t *err);
void llm_rule_drop_held(llm_sched_t *s, llm_seq_t *q);
/* a sequence that has kept its logits and got its mask, or NULL */
llm_seq_t *llm_rule_ready(const llm_sched_t *s);

/* trigger.c; LLM_ERROR as above */
int llm_trigger_take(llm_sched_t *s, llm_seq_t *q, llm_err_t *err);
/* llm_rule_mask() where a call may have begun; never LLM_ABSENT */
int llm_trigger_mask(llm_seq_t *q, const uint32_t **mask, llm_err_t *err);
/* after each token: if a call has begun it is constrained from now on */
int llm_trigger_token(llm_sched_t *s, llm_seq_t *q, llm_err_t *err);

/* prefix.c */
int llm_sched_lookup(llm_sched_t *s, llm_seq_t *q);
/* how many pages of the tree it could take behind its own */
uint32_t llm_sched_ahead(const llm_sched_t *s, const llm_seq_t *q);
void llm_sched_extend(llm_sched_t *s, llm_seq_t *q);
void llm_sched_commit(llm_sched_t *s, llm_seq_t *q, uint32_t n_kv);

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

/* rows.c */
int llm_step_create(const llm_sched_t *s, llm_step_t *st);
void llm_step_free(llm_step_t *st);
void llm_step_forget(llm_sched_t *s, llm_seq_t *q);

/* step.c */
int llm_step_compose(llm_sched_t *s);
uint32_t llm_step_n_banned(const llm_seq_t *q);
void llm_step_fail(llm_sched_t *s, llm_req_t *r, const llm_err_t *err);
void llm_step_no_memory(llm_sched_t *s, llm_req_t *r);

/* results.c */
void llm_step_take(llm_sched_t *s, llm_step_t *st, uint64_t now);
/* the next token of a sequence: as the device drew it, or, if drawn is NULL,
   drawn from these logits; or its end */
void llm_step_next(llm_sched_t *s, llm_seq_t *q, const float *logits,
    const llm_drawn_t *drawn, uint64_t now);

/* think.c */
int llm_think_is_over(const llm_seq_t *q);
void llm_think_end(llm_seq_t *q, llm_sampled_t *token);

/* outbox.c */
void llm_sched_queue_events(llm_sched_t *s, llm_req_t *r);
void llm_sched_unqueue_events(llm_sched_t *s, llm_req_t *r);

#endif /* LLM_SCHED_INTERNAL_H */
