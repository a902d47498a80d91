/*
 * A worker's end of the connection to the engine; see llm.h.  Requests and
 * events are in client.c, commands in client_command.c.
 *
 * The client owns its tables; one thread uses it.
 */

#ifndef LLM_CLIENT_H
#define LLM_CLIENT_H

#include "engine/ipc/zone.h"

typedef struct {
    uint64_t             ticket;        /* 0: the slot is free */
    uint32_t             epoch;         /* the zone's when it was sent */
    uint32_t             model;
} llm_live_t;

struct llm_client_s {
    llm_zone_t          *zone;
    llm_zone_worker_t   *worker;
    int                  engine_fd;

    llm_ring_t           down;          /* producer */
    llm_ring_t           up;            /* consumer */

    uint32_t             holder;        /* its generation, the owner of its
                                           media */
    uint64_t             next_ticket;
    uint32_t             epoch;         /* of the last sweep */

    llm_ahead_pt         ahead;         /* NULL: none */

    llm_live_t          *live;          /* [n_slots] live tickets, by slot */
    uint32_t             n_slots;
    uint32_t             n_live;

    llm_msg_t           *pending;       /* messages that wait for room in the
                                           ring, in order */
    uint32_t             n_pending;
    uint32_t             cap_pending;

    uint64_t             checked_us;    /* when the engine's pid was checked */
    uint32_t             sweep;         /* slots below it have been swept */
    int                  sweeping;      /* tickets of an older engine are being
                                           failed */
};

/* makes the error of a request that finds no engine; returns LLM_ERROR */
int llm_client_no_engine(llm_err_t *err);

#endif /* LLM_CLIENT_H */
