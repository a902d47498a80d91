/*
 * What the scheduler's files share: sched.c (who runs), prefix.c (what
 * they share), step.c (rows and tokens), echo.c (prompts in answers), tell.c
 * (events).
 */

#ifndef LLM_SCHED_INTERNAL_H
#define LLM_SCHED_INTERNAL_H

#include "engine/sched/sched.h"

struct llm_sched_s {
    llm_sched_conf_t     conf;
    llm_zone_figures_t  *figures;

    llm_queue_t          queue;
    llm_pages_t         *pages;
    uint32_t             max_pages;     /* of one sequence */

    llm_seq_t          **running;       /* [max_seqs] */
    uint32_t             n_running;
    llm_seq_t          **parked;        /* grown as needed */
    uint32_t             n_parked;
    uint32_t             cap_parked;

    llm_req_t           *out;           /* has something to say */

    llm_sampler_scratch_t  *scratch;
    int32_t             *eog;
    uint32_t             n_eog;

    /* the step */
    llm_batch_t          batch;
    int32_t             *tokens;
    uint32_t            *pos;
    uint32_t            *seq_rows;
    uint32_t            *kv_len;
    uint32_t            *table;         /* pages of the step's sequences */
    uint32_t            *out_rows;
    llm_draw_t          *draws;         /* of each of these */
    llm_seq_t          **out_seqs;      /* and whose it is */
    llm_seq_t          **seqs;          /* of the step */
    uint64_t             n_steps;       /* its number */
    uint32_t             n_prefill;     /* rows of prompts in it */
    uint32_t             n_scores;      /* of these, for probabilities */
    int                  failed;        /* a request was marked in it */

    /* prompt rows that fit the time of a step: [0] alone, [1] beside
       sequences that generate; found by trying */
    uint32_t             rows[2];
};

/* sched.c */
void llm_sched_unseat(llm_sched_t *s, llm_seq_t *q);
int llm_sched_add_page(llm_sched_t *s, llm_seq_t *q, uint32_t page);
int llm_sched_park(llm_sched_t *s, llm_seq_t *q);
void llm_sched_requeue(llm_sched_t *s, llm_seq_t *q);
int llm_sched_next_page(llm_sched_t *s, llm_seq_t *q);
void llm_sched_seat(llm_sched_t *s);
int llm_sched_fork(llm_sched_t *s, llm_seq_t *leader, llm_seq_t *q);
void llm_sched_end_seq(llm_sched_t *s, llm_seq_t *q, llm_finish_t reason);
void llm_sched_clear(llm_sched_t *s, llm_req_t *r);
void llm_sched_gauges(llm_sched_t *s);

/* prefix.c */
int llm_sched_lookup(llm_sched_t *s, llm_seq_t *q);
void llm_sched_extend(llm_sched_t *s, llm_seq_t *q);
void llm_sched_commit(llm_sched_t *s, llm_seq_t *q);

/* echo.c */
int llm_sched_wants(const llm_seq_t *q, uint32_t pos);
int llm_sched_score(llm_sched_t *s, llm_seq_t *q, uint32_t pos,
    const float *logits, llm_err_t *err);
int llm_sched_echo(llm_seq_t *q);

/* tell.c */
void llm_sched_say(llm_sched_t *s, llm_req_t *r);
void llm_sched_unsay(llm_sched_t *s, llm_req_t *r);

#endif /* LLM_SCHED_INTERNAL_H */
