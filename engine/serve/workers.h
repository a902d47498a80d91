/*
 * nginx's workers, as the engine sees them: a ring from each, a port to each, and
 * the requests that each has here.  Only the scheduler's thread uses this.
 */

#ifndef LLM_WORKERS_H
#define LLM_WORKERS_H

#include "engine/ipc/engines.h"
#include "engine/sched/request.h"

/* a request that was refused before it was in e->live */
typedef struct {
    int                  pending;       /* its error waits for room in the
                                           ring */
    llm_to_t             to;
    uint32_t             model;
    int32_t              priority;
    uint32_t             retry_after;
    llm_err_t            err;
} llm_refusal_t;

/* one worker */
typedef struct {
    llm_port_t           port;          /* events to the worker */
    llm_ring_t           down;
    llm_refusal_t        refusal;       /* while it is pending nothing is read
                                           from `down` */
    llm_req_t          **slots;         /* live requests */
    uint32_t             n_slots;
    uint32_t             n_live;
} llm_peer_t;

/* the engine as its own client: a pseudo-worker, in a zone of its own, that owns
   warm-up requests; its events are dropped */
typedef struct {
    void                *mem;           /* of the zone; NULL: no model warms
                                           up */
    llm_zone_t          *zone;
    llm_ring_t           up;
    llm_peer_t           peer;
} llm_internal_client_t;


/* workers.c */
/* takes what the workers sent */
void llm_engine_messages(llm_engine_t *e);
/* cancels the requests of workers that are gone */
void llm_engine_check_peers(llm_engine_t *e);
/* clears counts of admission that nobody will take back */
void llm_engine_audit(llm_engine_t *e);

/* warm.c */
/* where the engine's own requests send their events; LLM_ERROR: no memory */
int llm_internal_open(llm_internal_client_t *n, uint32_t n_models);
void llm_internal_close(llm_internal_client_t *n);
/* drops what was sent */
void llm_internal_drain(llm_internal_client_t *n);

#endif /* LLM_WORKERS_H */
