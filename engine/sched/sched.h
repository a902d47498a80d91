/*
 * The scheduler of one model: which sequences run, which rows a step has,
 * and which sequences hold which KV pages.
 *
 * A step (Yu et al., Orca, 2022; Agrawal et al., Sarathi-Serve, 2024) has one
 * row for each running sequence of which only the last token is not computed
 * yet, or more with drafts, then chunks of prompts, as many as the time of a
 * step allows.  A sequence's tokens do not depend on this mix: the kernels
 * guarantee it.
 *
 * Invariants
 *   - running[] is in the order of llm_seq_before().  When pages run out, its
 *     last sequence frees its pages and returns to the queue.  For a waiting
 *     sequence of a higher priority that lacks a place or pages, the last
 *     sequences of lower priorities give up theirs, too (preempt.c).  For lack
 *     of pages the first sequence is preempted only if it runs alone; alone it
 *     fits, so every sequence comes to its end.
 *   - A sequence in running[] has pages for all its tokens, unless it waits
 *     for a leader that computes the same prompt; and it has a sampler of its
 *     own if it generates text.
 *   - If all layers have a window, a sequence has pages for its window only: it
 *     gives back pages that the window has left, and gets pages for the rows
 *     of a prompt when the rows are composed.  If only some layers have a
 *     window, the same holds for the pages of these layers (pages.h).
 *   - All events of a request are written by llm_sched_send_events(); a
 *     sequence whose text finds no room there gets no further rows (a token
 *     that a step in flight draws is still added).
 *   - A constrained sequence whose mask is not ready when its logits come
 *     keeps the logits, and has no rows until it has drawn; it leads no others.
 *   - With a device that draws, the next step is composed and launched while
 *     one is in flight: rows in flight count as computed (n_kv), and tokens
 *     that are being drawn as present but unknown (pending).  When a sequence
 *     frees its pages, its results in the steps in flight are dropped; the
 *     device runs steps in order, so the pages are used again only after those
 *     steps.
 *   - For a model with recurrent layers, a sequence has a state slot while it
 *     has pages; each of its rows is computed once, in order, from a state of
 *     the rows before.
 *   - Rows of media are computed once their media is encoded, which is done
 *     piece by piece, one between two steps (encode.c); those that see each
 *     other are in one step (media.c).
 *   - A sequence that decodes may have rows of drafted tokens, too, which give
 *     it several tokens in a step (speculate.c).  It is then in no step that is
 *     launched before the results are known.
 *
 * One thread uses a scheduler.  The scheduler owns the requests that were added
 * to it until ended() is called for them.
 */

#ifndef LLM_SCHED_H
#define LLM_SCHED_H

#include "engine/model/head.h"
#include "engine/sched/queue.h"

/* the model as the scheduler sees it */
typedef struct {
    void                *data;
    uint32_t             n_vocab;
    uint32_t             n_embd;        /* numbers of a state */
    uint32_t             ctx;           /* tokens of a sequence, at most
                                           LLM_KV_FULL's pages * LLM_KV_PAGE
                                           unless all layers have a window */
    uint32_t             window;        /* positions that a row sees, its own
                                           included, in all layers or in those
                                           with pages of their own kind; 0: no
                                           window */
    uint32_t             batch;         /* most rows of a step; > max_seqs */
    uint32_t             chunk;         /* most prompt rows of a step */
    uint32_t             max_seqs;      /* most running sequences */
    uint32_t             max_out;       /* most rows of a step that give
                                           results; > max_seqs: the surplus is
                                           for prompts of which more than the
                                           last row is wanted */
    uint32_t             n_pages[LLM_KV_KINDS]; /* of each kind of cache */
    int                (*submit)(void *data, const llm_batch_t *b,
                            llm_err_t *err);
    int                (*wait)(void *data, llm_err_t *err);
    int                  overlaps;      /* llm_model_overlaps() */
    const float       *(*logits)(void *data, uint32_t i);
    /* instead of logits(), for a row that the device drew from (kernels.h);
       NULL: the device does not draw */
    void               (*drawn)(void *data, uint32_t i, llm_drawn_t *out);
    /* the final state of a result; NULL: the model neither embeds nor scores */
    const float       *(*hidden)(void *data, uint32_t i);
    /* turns a pooled state into the embedding, in place; nonzero: it has
       changed.  NULL: the pooled state is the embedding */
    int                (*project)(void *data, float *v);
    /* the score of a pair, from its pooled state */
    double             (*rank)(void *data, const float *state,
                                int raw);
    void               (*copy_page)(void *data, uint32_t kind, uint32_t src,
                            uint32_t dst);
    /* state slots, > max_seqs: the surplus is for snapshots; 0: the model has
       no recurrent state */
    uint32_t             n_slots;
    /*
     * Rows of media, numbers of each; 0: the model takes none.  turns, spans:
     * as in llm_hparams_t.  encode() runs a piece of the encoder, of the same n
     * media, at most LLM_MEDIA_TOGETHER, until they are complete: LLM_MORE:
     * there are more; LLM_OK: the rows of each are set, and row_bytes;
     * LLM_ABSENT: one of them cannot be encoded, or there is no memory;
     * LLM_ERROR: the device, or the encoder's file, has failed.
     * encode_stop(): they are given up.
     */
    uint32_t             n_given;
    int                  turns;
    int                  spans;
    int                (*encode)(void *encoder, llm_media_t *const *m,
                            uint32_t n, llm_err_t *err);
    void               (*encode_stop)(void *encoder);
    void                *encoder;
    uint64_t             encode_pixels; /* of media that are encoded together:
                                           more take no less time */
    size_t               encoded_bytes; /* of rows that are kept for prompts
                                           with the same media */
    void               (*copy_slot)(void *data, uint32_t src, uint32_t dst);
} llm_runner_t;

/* most rows of a step of a head that drafts */
#define LLM_HEAD_ROWS  128

/* a head that drafts, as the scheduler sees it (engine/model/head.h) */
typedef struct {
    void                *data;
    llm_draft_kind_t     kind;          /* what its drafts count as */
    uint32_t             n_vocab;       /* numbers of a row of logits */
    uint32_t             n_tokens;      /* tokens that it may be given */
    uint32_t             width;         /* floats of a row's states */
    uint32_t             ctx;           /* rows of a seat */
    uint32_t             batch;         /* rows of a step */
    uint32_t             seats;
    int                  last;          /* llm_head_is_last() */
    void               (*states)(void *data, uint32_t row, uint32_t n,
                            float *to);
    int                (*rows)(void *data, const llm_head_at_t *at,
                            const int32_t *ids, const float *states,
                            uint32_t n, llm_err_t *err);
    int                (*next)(void *data, const llm_head_at_t *at,
                            int32_t id, llm_err_t *err);
    const float       *(*logits)(void *data);
    int32_t            (*token)(void *data, uint32_t i);
} llm_head_runner_t;

typedef struct {
    llm_runner_t         runner;
    const llm_vocab_t   *vocab;
    const llm_kept_t    *kept;          /* counters that outlive the zone, or
                                           NULL */
    llm_zone_t          *zone;          /* has the model's gauges and bounds */
    uint32_t             model;         /* index of the model in the zone */
    uint32_t             speculate[LLM_DRAFT_N];    /* llm_draft_kind_t in
                                                       order of preference, then
                                                       0 */
    const llm_runner_t  *draft;         /* the model of LLM_DRAFT_MODEL, or
                                           NULL */
    const llm_head_runner_t  *head;     /* a head, instead; or NULL */
    /* called when a request has ended; it belongs to the caller again */
    void               (*ended)(void *data, llm_req_t *r);
    /* called, from another thread, when a sequence that waited for its mask may
       continue */
    void               (*masked)(void *data);
    void                *data;
} llm_sched_conf_t;

typedef struct llm_sched_s  llm_sched_t;

/* media that are encoded together, at most */
#define LLM_MEDIA_TOGETHER  16

/*
 * The most bytes of a prompt's rows of media that are there at once, of a
 * request with n choices.  ahead: bytes up to which images are encoded before
 * their turn.  A preparation keeps it in p->media_bytes.
 */
size_t llm_media_most(const llm_prompt_ids_t *p, uint32_t n,
    const llm_runner_t *run, size_t ahead);

llm_sched_t *llm_sched_create(const llm_sched_conf_t *conf, llm_err_t *err);
/* moves the scheduler's gauges to zone z; from now on events are counted there,
   or in kept */
void llm_sched_count_in(llm_sched_t *s, llm_zone_t *z,
    const llm_kept_t *kept);
/* all requests must have ended */
void llm_sched_free(llm_sched_t *s);

/* adds a prepared request, whose prompts are not empty; a request that cannot
   be added is marked as failed */
void llm_sched_add(llm_sched_t *s, llm_req_t *r);
/* ends a request without any event; ended() is not called */
void llm_sched_remove(llm_sched_t *s, llm_req_t *r);
/* ends a request with an ERROR event */
void llm_sched_fail(llm_sched_t *s, llm_req_t *r, const llm_err_t *err,
    uint32_t retry_after);

/* forecast.c */

/* forecast of a request's first token, or of an embedding's end */
typedef struct {
    int          known;                 /* 1: a step was measured, so the speed
                                           is known */
    int          waits;                 /* 1: others are before the request */
    uint32_t     tokens;                /* of its prompts, to be computed */
    double       wait_us;               /* time from now, not corrected */
    double       us;                    /* the same, corrected by the outcome of
                                           earlier forecasts */
} llm_forecast_t;

/* forecast for a prepared request that is not added yet; r NULL: for a short
   request of priority 0, of a tenant that comes last */
void llm_sched_forecast(llm_sched_t *s, const llm_req_t *r,
    llm_forecast_t *f);
/* prompt tokens that are still to be computed, of all requests */
uint64_t llm_sched_todo(const llm_sched_t *s);
/* microseconds to compute so many prompt tokens; 0: not known */
uint64_t llm_sched_compute_us(const llm_sched_t *s, uint64_t tokens);

/*
 * Takes the results of one step, after launching the next one if the device
 * overlaps.  Returns 1; 0: there was nothing to compute; LLM_ERROR and err: the
 * device failed, and the requests of the steps in flight have failed.
 */
int llm_sched_step(llm_sched_t *s, llm_err_t *err);
/* has a sequence got the mask that it waited for?  Then there is something to
   do, even if the last step had nothing to compute */
int llm_sched_can_draw(const llm_sched_t *s);
/* sends the events of requests as far as there is room; nonzero if some are
   left */
int llm_sched_send_events(llm_sched_t *s);

/* tokens that end an answer, for llm_prep_env_t.eog */
const int32_t *llm_sched_eog(const llm_sched_t *s, uint32_t *n);
/* check.c: asserts what is always true between two calls; for tests */
void llm_sched_assert(const llm_sched_t *s);

#endif /* LLM_SCHED_H */
