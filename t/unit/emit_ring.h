/*
 * A ring that text is emitted to, and its reader's end.
 */

#ifndef LLM_T_EMIT_RING_H
#define LLM_T_EMIT_RING_H

#include "engine/emit/emit_internal.h"
#include "engine/llm.h"

#include <sys/mman.h>

#include "t/unit/tap.h"
#include "t/unit/tiny_vocab.h"

static tiny_vocab_t  tiny;
static llm_vocab_t  *vocab;             /* of the text that is split */

static void         *mem;
static llm_zone_t   *zone;
static llm_port_t    port;
static llm_ring_t    up;                /* the reader's end of it */
static llm_to_t      to;


static inline void
zone_open(size_t ring)
{
    size_t            size;
    llm_zone_model_t  m = { .parallel = 1 };

    size = llm_zone_size(1, 1, ring);
    mem = mmap(NULL, size, PROT_READ|PROT_WRITE, MAP_SHARED|MAP_ANONYMOUS,
               -1, 0);
    zone = llm_zone_init(mem, 1, &m, 1, ring, 1);
    llm_port_open(&port, zone, NULL, 0, -1);
    llm_ring_consumer(&up, llm_zone_at(zone, port.worker->up));
    to.port = &port;
    to.slot = 3;
    to.ticket = 77;
}

#endif /* LLM_T_EMIT_RING_H */
