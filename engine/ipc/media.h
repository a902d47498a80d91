/*
 * The memory for media of requests: bytes that do not fit into a message of a
 * ring (images, sound).  See llm.h for a worker's side; this is the engine's,
 * and what the two have in common.
 *
 * The memory has room in chunks of one size, and for each chunk a mark, which
 * says who owns it.  A block is a run of chunks with the same mark.  A mark
 * changes by compare-and-swap only, from exactly what its owner has put there,
 * so a chunk is freed once, whatever processes do and wherever they are killed:
 *
 *   HELD, generation           a worker's, from the parse of a body until its
 *                              request is sent
 *   SENT, generation, epoch    a message's in a worker's ring, for the engine
 *                              with this epoch
 *   TAKEN, generation, epoch   a request's in that engine
 *
 * Generations are those of clients (zone.h), never used twice.  Whoever dies is
 * replaced: the next client in a worker's place frees what its predecessor
 * HELD, an engine that attaches frees all that is TAKEN, and an engine that
 * sees a new client, or has attached, frees what is HELD or SENT with a
 * generation that no client has.  A message that an engine does not take is
 * SENT until the engine has read it, and is freed then.
 *
 * There is no lock, so nobody waits for a process that was stopped or killed.
 */

#ifndef LLM_IPC_MEDIA_H
#define LLM_IPC_MEDIA_H

#include "engine/ipc/zone.h"

/* what an engine has taken of a message */
typedef struct {
    llm_zone_t          *zone;
    uint64_t             mark;          /* of its chunks */
    llm_chunk_t         *blocks;        /* [n] owned; those of the message's
                                           media, in order; n of a block is 0
                                           when it is freed */
    uint32_t             n;
} llm_claim_t;


/* client.c: a message's chunks from HELD to SENT, right before it is
   published */
void llm_media_post(llm_zone_t *z, uint32_t holder, uint32_t epoch,
    const llm_request_t *msg);
/* the message is sent: it owns no blocks for its worker any more */
void llm_media_forget(llm_request_t *msg);
/* a client takes the place of another one with this generation, or leaves */
void llm_media_vacate(llm_zone_t *z, uint32_t generation);

/*
 * The engine's scheduler.  msg: a message that is no longer in the ring, with
 * head.size bytes; all else in it may be wrong.  claim() takes the media up to
 * the first that is malformed, so that c->n is less than msg->media.len then;
 * LLM_ERROR: no memory, and nothing is taken.
 */
int llm_media_claim(llm_zone_t *z, const llm_request_t *msg,
    llm_claim_t *c);
/* frees the blocks of a message that is not taken; rec: the message, in the
   ring or not; size: its checked size */
void llm_media_abandon(llm_zone_t *z, const llm_request_t *head,
    const void *rec, uint32_t size);
/* frees what no client and no engine owns; taken: all that is TAKEN, too, for
   an engine that attaches */
void llm_media_sweep(llm_zone_t *z, int taken);

/* the bytes of media i; NULL: they are freed.  They are in shared memory, where
   a broken worker can change them while they are read */
const void *llm_claim_data(const llm_claim_t *c, uint32_t i, size_t *len);
/* frees the bytes of media i when they are not needed any more; for the thread
   that has the request */
void llm_claim_drop(llm_claim_t *c, uint32_t i);
/* frees all; c may be zeros */
void llm_claim_free(llm_claim_t *c);

#endif /* LLM_IPC_MEDIA_H */
