/*
 * Events on their way up: a port is the engine's end of one worker's event
 * ring.  An event is written into the ring in place; it becomes visible, and
 * the worker is woken, once a step by llm_port_show().
 *
 * The scheduler's thread alone uses a port.
 */

#ifndef LLM_EVENT_H
#define LLM_EVENT_H

#include "engine/zone.h"

/* no event is larger; text and logprobs are split over several */
#define LLM_EVENT_MAX    24576

typedef struct {
    llm_ring_t           ring;
    llm_zone_worker_t   *worker;
    int                  fd;            /* eventfd of the worker */
    uint32_t             generation;    /* of the client that is served */
    int                  full;          /* an event found no room */
} llm_port_t;

void llm_port_open(llm_port_t *p, llm_zone_t *z, uint32_t worker, int fd);
/* shows what was written and wakes the worker if it sleeps */
void llm_port_show(llm_port_t *p);

/* an address of the reader's */
typedef struct {
    llm_port_t          *port;
    uint32_t             slot;
    uint64_t             ticket;
} llm_to_t;

/*
 * An event with room for extra bytes behind it, zeroed but for its head;
 * NULL when the ring is full.  close() ends it; then it is not touched.
 */
llm_event_t *llm_event_open(const llm_to_t *to, llm_event_type_t type,
    uint32_t index, size_t extra);
void llm_event_close(const llm_to_t *to, llm_event_t *ev);

/* LLM_AGAIN when the ring is full */
int llm_event_error(const llm_to_t *to, const llm_err_t *err,
    uint32_t retry_after);

#endif /* LLM_EVENT_H */
