/*
 * The scheduler of one model: which sequences run, which rows a step has,
 * who holds which KV pages.
 *
 * A step (Yu et al., Orca, 2022; Agrawal et al., Sarathi-Serve, 2024): one
 * row for each running sequence of which only the last token is not computed
 * yet, then chunks of prompts, as many as the time of a step allows.  A
 * sequence's tokens do not depend on this mix: the kernels guarantee it.
 *
 * Invariants
 *   - running[] is in the order of llm_seq_before().  When pages run out, the
 *     last sequence in it frees its pages and returns to the queue.  So does
 *     the last one, whose place is lost, too, when a sequence that waits has a
 *     higher priority and lacks a place, or pages (preempt.c).  The
 *     first one is preempted only if it runs alone; alone it fits, so every
 *     sequence comes to its end.
 *   - A sequence in running[] has pages for all its tokens, unless it waits
 *     for a leader that computes the same prompt; and it has a sampler of its
 *     own if it generates text.
 *   - If no layer sees further back than a window, a sequence has pages for
 *     that only: it gives back those that the window has left, and gets pages
 *     for the rows of a prompt when these are composed.  If only some layers
 *     see further back, this is so of the pages of the others (pages.h).
 *   - All events of a request are written by llm_sched_send_events(); a
 *     sequence whose text finds no room there gets no further rows (a token
 *     that a step in flight draws still comes).
 *   - A constrained sequence whose mask has not been made when its logits
 *     come keeps them and has no rows until it has drawn; it leads no others.
 *
 *   - With a device that draws, the next step is composed and launched while
 *     one is in flight: rows in flight count as computed (n_kv), and tokens
 *     that are being drawn as present but unknown (pending).  When a sequence
 *     frees its pages, the results of the steps in flight for it are dropped;
 *     the device runs steps in order, so the pages are used again only after
 *     those steps.
 *   - Of a model with recurrent layers a sequence has a slot for its state
 *     while it has pages; each of its rows is computed once, in order.
 *
 * One thread uses a scheduler.  It owns the requests added to it until
 * ended() is called for them.
 */

#ifndef LLM_SCHED_H
#define LLM_SCHED_H

#include "engine/sched/queue.h"

/* the model as the scheduler sees it */
typedef struct {
    void                *data;
    uint32_t             n_vocab;
    uint32_t             n_embd;        /* numbers of a state */
    uint32_t             ctx;           /* <= LLM_KV_FULL's pages * LLM_KV_PAGE,
                                           if not all layers have a window */
    uint32_t             window;        /* positions that a row sees, in every
                                           layer or in those with pages of
                                           their own: its own and those before
                                           it; 0: all */
    uint32_t             batch;         /* rows; > max_seqs */
    uint32_t             chunk;         /* most prompt rows of a step */
    uint32_t             max_seqs;
    uint32_t             max_out;       /* rows that give results; > max_seqs:
                                           the others are for prompts of which
                                           more than the last row is wanted */
    uint32_t             n_pages[LLM_KV_KINDS]; /* of each kind of caches */
    int                (*submit)(void *data, const llm_batch_t *b,
                            llm_err_t *err);
    int                (*wait)(void *data, llm_err_t *err);
    int                  overlaps;      /* llm_model_overlaps() */
    const float       *(*logits)(void *data, uint32_t i);
    /* instead of logits(), for a row that the device drew from (kernels.h);
       NULL: it does not draw */
    void               (*drawn)(void *data, uint32_t i, llm_drawn_t *out);
    /* the final state of a result; NULL: it neither embeds nor scores */
    const float       *(*state)(void *data, uint32_t i);
    /* a pooled state becomes the embedding, in place; nonzero: it has
       changed.  NULL: it is the embedding */
    int                (*project)(void *data, float *v);
    /* the score of a pair, from its pooled state */
    double             (*rank)(void *data, const float *state);
    void               (*copy_page)(void *data, uint32_t kind, uint32_t src,
                            uint32_t dst);
    /* slots of recurrent state, > max_seqs: the others are for snapshots; 0:
       the model has none */
    uint32_t             n_slots;
    void               (*copy_slot)(void *data, uint32_t src, uint32_t dst);
} llm_runner_t;

typedef struct {
    llm_runner_t         runner;
    const llm_vocab_t   *vocab;
    const llm_kept_t    *kept;          /* where counters are, or NULL */
    llm_zone_t          *zone;          /* for the figures of ... */
    uint32_t             model;         /* ... this one */
    /* the request has ended and is the caller's again */
    void               (*ended)(void *data, llm_req_t *r);
    /* a sequence that waited for its mask may go on; from another thread */
    void               (*masked)(void *data);
    void                *data;
} llm_sched_conf_t;

typedef struct llm_sched_s  llm_sched_t;

llm_sched_t *llm_sched_create(const llm_sched_conf_t *conf, llm_err_t *err);
/* from now on figures are this zone's, and counters there */
void llm_sched_count_in(llm_sched_t *s, llm_zone_t *z,
    const llm_kept_t *kept);
/* no request may be left */
void llm_sched_free(llm_sched_t *s);

/* a prepared request, no prompt of it empty; one that cannot be taken is
   marked as failed */
void llm_sched_add(llm_sched_t *s, llm_req_t *r);
/* ends it without any event; ended() is not called */
void llm_sched_remove(llm_sched_t *s, llm_req_t *r);
/* ends it with an ERROR event */
void llm_sched_fail(llm_sched_t *s, llm_req_t *r, const llm_err_t *err,
    uint32_t retry_after);

/* forecast.c */

/* what is known of a request's first token, or of an embedding's end */
typedef struct {
    int          known;                 /* a prompt was computed before, so
                                           there is a speed */
    int          waits;                 /* it is not the next */
    uint32_t     tokens;                /* of its prompts, to be computed */
    double       wait_us;               /* until then, by what is known */
    double       us;                    /* the same, corrected by what came of
                                           former predictions */
} llm_forecast_t;

/* of a prepared request that is not added yet; NULL: of a short one of priority
   0, of a tenant that comes last */
void llm_sched_forecast(llm_sched_t *s, const llm_req_t *r,
    llm_forecast_t *f);
/* tokens of prompts that are to be computed, of all that were added */
uint64_t llm_sched_todo(const llm_sched_t *s);
/* the time of so many of them; 0: not known */
uint64_t llm_sched_compute_us(const llm_sched_t *s, uint64_t tokens);

/*
 * Takes the results of one step, after launching the next one if the device
 * overlaps; 0 when there was nothing to compute.  LLM_ERROR and err when the
 * device failed: then the requests of the steps in flight have failed.
 */
int llm_sched_step(llm_sched_t *s, llm_err_t *err);
/* has a sequence that waited for its mask got it? then there is something to
   do, even if the last step found nothing */
int llm_sched_can_draw(const llm_sched_t *s);
/* sends the events of requests as far as there is room; nonzero if some are
   left */
int llm_sched_send_events(llm_sched_t *s);

/* tokens that end an answer, for llm_req_t.banned */
const int32_t *llm_sched_eog(const llm_sched_t *s, uint32_t *n);
/* check.c: asserts what is always true between two calls; for tests */
void llm_sched_assert(const llm_sched_t *s);

#endif /* LLM_SCHED_H */
