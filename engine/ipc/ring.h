/*
 * A ring of variable-length records between one producer and one consumer,
 * which may be threads of one process or processes that share the memory.
 * The same type serves both directions between a worker and the engine.
 *
 * A record begins with its size and type (llm_msg_t and llm_event_t do), is
 * a multiple of 8 bytes long and never wraps: a record that does not fit
 * before the end of the data is preceded by a marker that says "skip".
 *
 * Invariant: positions only grow; bytes between head and tail are whole
 * records.  The producer writes a record and moves the tail afterwards, so a
 * producer that is killed in the middle of a record leaves no part of it, and
 * a new producer continues from the tail.  The same holds for consumers and
 * the head.
 *
 * The memory is the caller's.  A handle (llm_ring_t) is private to one side.
 */

#ifndef LLM_RING_H
#define LLM_RING_H

#include <stdatomic.h>

#include "engine/base/base.h"

#define LLM_RING_SKIP    0              /* type of the marker */

/* how every record begins */
typedef struct {
    uint32_t                   size;    /* of the record, 8-aligned */
    uint32_t                   type;    /* not LLM_RING_SKIP */
} llm_record_t;

/* the ring in shared memory; the data follows */
typedef struct {
    /* first byte not yet consumed: the consumer stores, the producer loads */
    _Alignas(64) _Atomic uint64_t  head;
    /* end of the last whole record: the producer stores, the consumer loads */
    _Alignas(64) _Atomic uint64_t  tail;
    /* bytes of data, a multiple of 8; written once by format() */
    _Alignas(64) uint64_t          size;
} llm_ring_mem_t;

/* one side's handle */
typedef struct {
    llm_ring_mem_t            *mem;
    char                      *data;
    uint64_t                   size;
    uint64_t                   pos;     /* this side's position, published or
                                           not */
    uint64_t                   limit;   /* the other side's position, as last
                                           seen */
    uint32_t                   taken;   /* checked size of the record that
                                           next() gave */
} llm_ring_t;

/* formats 64-byte aligned memory, header included, as an empty ring */
void llm_ring_format(void *mem, size_t bytes);

/* fills a handle that continues where the side's predecessor stopped */
void llm_ring_producer(llm_ring_t *r, llm_ring_mem_t *mem);
void llm_ring_consumer(llm_ring_t *r, llm_ring_mem_t *mem);

/* the largest record that fits whatever the position: half of the data */
uint32_t llm_ring_max(const llm_ring_t *r);

/* producer: room for a record of size bytes (8-aligned), NULL when full */
void *llm_ring_reserve(llm_ring_t *r, size_t size);
/* the reserved record is complete; the consumer does not see it yet */
void llm_ring_push(llm_ring_t *r, const llm_record_t *rec);
/* makes all pushed records visible (sequentially consistent); nonzero if there
   were any */
int llm_ring_publish(llm_ring_t *r);

/*
 * Consumer: the next record, or NULL.  It stays valid until release().  Sizes
 * are checked; if one is invalid, all records in the ring are dropped.  The
 * other side can change the bytes while they are read: a consumer that does not
 * trust it copies `taken` bytes first, and overwrites the size in the copy.
 */
const llm_record_t *llm_ring_next(llm_ring_t *r);
/* gives the room of all records taken so far back to the producer */
void llm_ring_release(llm_ring_t *r);
/* is nothing left to take?  Reads the tail sequentially consistently */
int llm_ring_empty(llm_ring_t *r);

#endif /* LLM_RING_H */
