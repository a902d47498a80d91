/*
 * Events on their way to a worker: a port is the engine's end of one worker's
 * event ring.  An event is written into the ring in place; llm_port_show(),
 * once in a round of the engine, makes events visible and wakes the worker.
 *
 * Only the scheduler's thread uses a port.
 */

#ifndef LLM_EVENT_H
#define LLM_EVENT_H

#include "engine/ipc/zone.h"

/* most bytes of an event; text and logprobs are split over several */
#define LLM_EVENT_MAX    24576

typedef struct {
    llm_ring_t           ring;
    llm_zone_worker_t   *worker;
    llm_zone_sent_t     *sent;          /* the worker's counters */
    int                  fd;            /* eventfd of the worker */
    uint32_t             generation;    /* of the client that has the worker's
                                           rings */
} llm_port_t;

void llm_port_open(llm_port_t *p, llm_zone_t *z, const llm_kept_t *kept,
    uint32_t worker, int fd);
/* makes what was written visible and wakes the worker if it sleeps */
void llm_port_show(llm_port_t *p);

/*
 * Where the events of a request go.  At most `window` bytes of its TEXT events
 * wait unread in the ring, so what still arrives after a PAUSE does not depend
 * on the ring's size.
 */
typedef struct {
    llm_port_t          *port;
    uint32_t             slot;
    uint64_t             ticket;
    uint32_t             max_unread;    /* 0: no bound */
    size_t               unread;        /* bytes of TEXT events written since
                                           the worker had read all of them */
    uint64_t             mark;          /* the ring's position after these */
} llm_to_t;

/*
 * A new event with room for `extra` bytes after it, zeroed except for its head;
 * NULL when the ring is full.  close() completes it; after that it must not be
 * changed.
 */
llm_event_t *llm_event_open(const llm_to_t *to, llm_event_type_t type,
    uint32_t index, size_t extra);
void llm_event_close(const llm_to_t *to, llm_event_t *ev);

/* must a TEXT event of this size wait, because of the window?  One event always
   fits.  If it must wait, the worker wakes the engine when it has read. */
int llm_event_waits(llm_to_t *to, size_t size);

/* sends an ERROR event; n_tokens were generated before; LLM_FULL when the ring
   is full */
int llm_event_failure(const llm_to_t *to, const llm_err_t *err,
    uint32_t retry_after, uint32_t n_tokens, const llm_period_t *prepared);
/* the same for a request without generated tokens that was not prepared */
int llm_event_error(const llm_to_t *to, const llm_err_t *err,
    uint32_t retry_after);

#endif /* LLM_EVENT_H */
