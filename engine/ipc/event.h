/*
 * Events on their way up: a port is the engine's end of one worker's event
 * ring.  An event is written into the ring in place; it becomes visible, and
 * the worker is woken, once a step by llm_port_show().
 *
 * The scheduler's thread alone uses a port.
 */

#ifndef LLM_EVENT_H
#define LLM_EVENT_H

#include "engine/ipc/zone.h"

/* no event is larger; text and logprobs are split over several */
#define LLM_EVENT_MAX    24576

typedef struct {
    llm_ring_t           ring;
    llm_zone_worker_t   *worker;
    int                  fd;            /* eventfd of the worker */
    uint32_t             generation;    /* of the client that is served */
} llm_port_t;

void llm_port_open(llm_port_t *p, llm_zone_t *z, uint32_t worker, int fd);
/* shows what was written and wakes the worker if it sleeps */
void llm_port_show(llm_port_t *p);

/*
 * An address of the reader's.  With a window no more than so many bytes of
 * TEXT events wait in the ring to be read, so that what a slow reader gets
 * before its PAUSE is heard does not depend on the ring's size.
 */
typedef struct {
    llm_port_t          *port;
    uint32_t             slot;
    uint64_t             ticket;
    uint32_t             window;        /* 0: no bound */
    size_t               unread;        /* written since all was read */
    uint64_t             mark;          /* the ring's position behind it */
} llm_to_t;

/*
 * An event with room for extra bytes behind it, zeroed but for its head;
 * NULL when the ring is full.  close() ends it; then it is not touched.
 */
llm_event_t *llm_event_open(const llm_to_t *to, llm_event_type_t type,
    uint32_t index, size_t extra);
void llm_event_close(const llm_to_t *to, llm_event_t *ev);

/* would a TEXT event of so many bytes go past the window?  One always fits;
   otherwise the reader wakes the engine when it has read */
int llm_event_waits(llm_to_t *to, size_t size);

/* LLM_FULL when the ring is full; n_tokens were generated until then */
int llm_event_failure(const llm_to_t *to, const llm_err_t *err,
    uint32_t retry_after, uint32_t n_tokens);
/* of a request that has not generated any */
int llm_event_error(const llm_to_t *to, const llm_err_t *err,
    uint32_t retry_after);

#endif /* LLM_EVENT_H */
