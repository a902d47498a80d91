/*
 * The ring of records; see ring.h.
 */

#include "engine/ipc/ring.h"


void
llm_ring_format(void *p, size_t bytes)
{
    llm_ring_mem_t  *mem = p;

    atomic_init(&mem->head, 0);
    atomic_init(&mem->tail, 0);
    mem->size = (bytes - sizeof(*mem)) & ~(uint64_t) 7;
}


static void
llm_ring_view(llm_ring_t *r, llm_ring_mem_t *mem)
{
    r->mem = mem;
    r->data = (char *) (mem + 1);
    r->size = mem->size;
}


void
llm_ring_producer(llm_ring_t *r, llm_ring_mem_t *mem)
{
    llm_ring_view(r, mem);

    r->pos = atomic_load_explicit(&mem->tail, memory_order_acquire);
    r->limit = atomic_load_explicit(&mem->head, memory_order_acquire);
}


void
llm_ring_consumer(llm_ring_t *r, llm_ring_mem_t *mem)
{
    llm_ring_view(r, mem);

    r->pos = atomic_load_explicit(&mem->head, memory_order_acquire);
    r->limit = r->pos;
}


uint32_t
llm_ring_max(const llm_ring_t *r)
{
    return (uint32_t) llm_min(r->size / 2 & ~(uint64_t) 7,
                              (uint64_t) UINT32_MAX & ~(uint64_t) 7);
}


void *
llm_ring_reserve(llm_ring_t *r, size_t size)
{
    uint64_t       off, skip;
    llm_record_t  *marker;

    off = r->pos % r->size;
    skip = size > r->size - off ? r->size - off : 0;

    if (r->pos + skip + size - r->limit > r->size) {
        r->limit = atomic_load_explicit(&r->mem->head, memory_order_acquire);

        if (r->pos + skip + size - r->limit > r->size) {
            return NULL;
        }
    }

    if (skip) {
        marker = (llm_record_t *) (r->data + off);
        marker->size = 0;               /* reaches to the end of the data */
        marker->type = LLM_RING_SKIP;
        r->pos += skip;
        off = 0;
    }

    return r->data + off;
}


void
llm_ring_push(llm_ring_t *r, const llm_record_t *rec)
{
    r->pos += rec->size;
}


int
llm_ring_publish(llm_ring_t *r)
{
    /* only this side writes the tail */

    if (r->pos == atomic_load_explicit(&r->mem->tail, memory_order_relaxed)) {
        return 0;
    }

    atomic_store(&r->mem->tail, r->pos);

    return 1;
}


const llm_record_t *
llm_ring_next(llm_ring_t *r)
{
    uint32_t       size, type;
    uint64_t       off, rest;
    llm_record_t  *rec;

    for ( ;; ) {
        if (r->pos == r->limit) {
            r->limit = atomic_load_explicit(&r->mem->tail,
                                            memory_order_acquire);
            if (r->pos == r->limit) {
                return NULL;
            }
        }

        off = r->pos % r->size;
        rest = llm_min(r->size - off, r->limit - r->pos);
        rec = (llm_record_t *) (r->data + off);

        if (r->limit - r->pos > r->size) {
            break;
        }

        /* each is read once, so the values that are checked are used */

        type = *(volatile uint32_t *) &rec->type;
        size = *(volatile uint32_t *) &rec->size;

        if (type == LLM_RING_SKIP) {
            if (r->size - off > rest) {
                break;
            }

            r->pos += r->size - off;
            continue;
        }

        if (size < sizeof(*rec) || size % 8 || size > rest) {
            break;
        }

        r->pos += size;
        r->taken = size;

        return rec;
    }

    /* our producers do not write such a record */

    r->pos = r->limit;

    return NULL;
}


void
llm_ring_release(llm_ring_t *r)
{
    if (r->pos != atomic_load_explicit(&r->mem->head, memory_order_relaxed)) {
        atomic_store(&r->mem->head, r->pos);
    }
}


int
llm_ring_empty(llm_ring_t *r)
{
    return atomic_load(&r->mem->tail) == r->pos;
}
