/*
 * nginx's workers, as the engine sees them: each has a ring for messages to the
 * engine, a port for events to the worker, and live requests.  Only the
 * scheduler's thread uses this.
 */

#ifndef LLM_WORKERS_H
#define LLM_WORKERS_H

#include "engine/ipc/engines.h"
#include "engine/sched/request.h"

/* a request that was refused before it was in e->live */
typedef struct {
    int                  pending;       /* its ERROR waits for room in the
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
    llm_ring_t           down;          /* messages from the worker */
    llm_refusal_t        refusal;       /* while pending, nothing is read from
                                           `down` */
    llm_req_t          **slots;         /* [n_slots] owned; live requests by
                                           slot, or NULL */
    uint32_t             n_slots;
    uint32_t             n_live;
} llm_peer_t;

/* the engine as its own client: a pseudo-worker, in a zone of its own, that
   owns warm-up requests; its events are dropped */
typedef struct {
    void                *mem;           /* owned; the zone's memory; NULL: no
                                           model warms up */
    llm_zone_t          *zone;
    llm_ring_t           up;
    llm_peer_t           peer;
} llm_internal_client_t;


/* workers.c */
/* reads and handles the workers' messages */
void llm_engine_messages(llm_engine_t *e);
/* cancels the requests of workers that died or were replaced */
void llm_engine_check_peers(llm_engine_t *e);
/* clears admission counts that dead workers left */
void llm_engine_audit(llm_engine_t *e);

/* warm.c */
/* makes the pseudo-worker of warm-up requests; LLM_ERROR: no memory */
int llm_internal_open(llm_internal_client_t *n, uint32_t n_models);
void llm_internal_close(llm_internal_client_t *n);
/* drops the events that were sent to it */
void llm_internal_drain(llm_internal_client_t *n);

#endif /* LLM_WORKERS_H */
