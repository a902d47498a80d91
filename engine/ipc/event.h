/*
 * Events on their way to a worker: a port is the engine's end of one worker's
 * event ring.  An event is written into the ring in place; llm_port_show(),
 * once a step, makes events visible and wakes the worker.
 *
 * Only the scheduler's thread uses a port.
 */

#ifndef LLM_EVENT_H
#define LLM_EVENT_H

#include "engine/ipc/zone.h"

/* no event is larger; text and logprobs are split over several */
#define LLM_EVENT_MAX    24576

typedef struct {
    llm_ring_t           ring;
    llm_zone_worker_t   *worker;
    llm_zone_sent_t     *sent;          /* what is counted of it */
    int                  fd;            /* eventfd of the worker */
    uint32_t             generation;    /* of the client that has the worker's
                                           rings */
} llm_port_t;

void llm_port_open(llm_port_t *p, llm_zone_t *z, const llm_kept_t *kept,
    uint32_t worker, int fd);
/* makes what was written visible and wakes the worker if it sleeps */
void llm_port_show(llm_port_t *p);

/*
 * Where the events of a request go.  With a window, at most so many bytes of
 * its TEXT events wait unread in the ring, so that what still arrives after a
 * PAUSE does not depend on the ring's size.
 */
typedef struct {
    llm_port_t          *port;
    uint32_t             slot;
    uint64_t             ticket;
    uint32_t             window;        /* 0: no bound */
    size_t               unread;        /* bytes written since all was read */
    uint64_t             mark;          /* the ring's position behind these */
} llm_to_t;

/*
 * A new event with room for extra bytes behind it, zeroed except for its
 * head; NULL when the ring is full.  close() completes it; after that it must
 * not be changed.
 */
llm_event_t *llm_event_open(const llm_to_t *to, llm_event_type_t type,
    uint32_t index, size_t extra);
void llm_event_close(const llm_to_t *to, llm_event_t *ev);

/* must a TEXT event of this size wait for the window?  One event always fits;
   if it must wait, the reader wakes the engine when it has read */
int llm_event_waits(llm_to_t *to, size_t size);

/* an ERROR event; n_tokens were generated before; LLM_FULL when the ring is
   full */
int llm_event_failure(const llm_to_t *to, const llm_err_t *err,
    uint32_t retry_after, uint32_t n_tokens, const llm_period_t *prepared);
/* the same for a request that has not generated any, nor was prepared */
int llm_event_error(const llm_to_t *to, const llm_err_t *err,
    uint32_t retry_after);

#endif /* LLM_EVENT_H */
