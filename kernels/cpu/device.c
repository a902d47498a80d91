/*
 * The CPUs as a device that models share: it owns the threads and the scratch
 * memory of the current step, and gives turns to the models.
 *
 * A step takes a turn from begin() to end().  Loading a model packs weights on
 * the pool while no other thread wants the turn: a turn for each
 * LLM_CPU_LOAD_BYTES, which are read from the file before the turn.  While
 * steps run, the loading thread packs alone.  So packing never waits for steps,
 * and a step waits at most a few milliseconds for a load, but never for a disk.
 *
 * Scratch memory is enlarged when a model is loaded and freed with the device.
 * Only the thread that has the turn uses or enlarges it; nothing in it is
 * needed after a step.
 */

#include "kernels/cpu/cpu.h"

/* bytes of a file that are packed in one turn; the loading thread alone packs
   as many, divided by the model's threads, before it tries to get a turn */
#define LLM_CPU_LOAD_BYTES  ((size_t) 4 << 20)


/* some items of a load's loop, run as a loop of its own */
typedef struct {
    llm_pool_pt   fn;
    void         *arg;
    uint32_t      first;                /* first item */
} llm_cpu_part_t;


void
llm_cpu_take(llm_cpu_device_t *d)
{
    uint64_t  ticket;

    pthread_mutex_lock(&d->lock);

    ticket = d->n_asked++;

    while (ticket != d->n_given) {
        pthread_cond_wait(&d->passed, &d->lock);
    }

    pthread_mutex_unlock(&d->lock);
}


/* takes the turn if no thread has it; returns 1 if it did */

static int
llm_cpu_try(llm_cpu_device_t *d)
{
    int  is_free;

    pthread_mutex_lock(&d->lock);

    is_free = d->n_asked == d->n_given;
    d->n_asked += (unsigned) is_free;

    pthread_mutex_unlock(&d->lock);

    return is_free;
}


void
llm_cpu_give(llm_cpu_device_t *d)
{
    pthread_mutex_lock(&d->lock);

    d->n_given++;

    if (d->n_asked != d->n_given) {
        pthread_cond_broadcast(&d->passed);
    }

    pthread_mutex_unlock(&d->lock);
}


int
llm_cpu_reserve(llm_cpu_room_t *room, size_t size)
{
    void  *p;

    if (size <= room->size) {
        return LLM_OK;
    }

    p = llm_cpu_alloc(size, 1);
    if (p == NULL) {
        return LLM_ERROR;
    }

    llm_cpu_free(room->data, room->size);
    room->data = p;
    room->size = size;

    return LLM_OK;
}


/* enlarges the scratch to n threads with `size` bytes each, by the thread that
   has the turn */

static int
llm_cpu_scratch_grow(llm_cpu_device_t *d, uint32_t n, size_t size,
    llm_err_t *err)
{
    size_t   total;
    uint8_t  *p;

    n = llm_max(n, d->n_scratch);
    size = llm_max(size, d->scratch_size);

    if (n == d->n_scratch && size == d->scratch_size) {
        return LLM_OK;
    }

    p = NULL;

    if (llm_mul_overflow(n, size, &total)
        || (p = llm_cpu_alloc(total, 1)) == NULL)
    {
        return llm_fail(err, "cpu: no memory for scratch of %u threads", n);
    }

    llm_cpu_free(d->scratch, d->n_scratch * d->scratch_size);
    d->scratch = p;
    d->n_scratch = n;
    d->scratch_size = size;

    return LLM_OK;
}


int
llm_cpu_scratch_reserve(llm_cpu_t *cpu, size_t size, llm_err_t *err)
{
    int                rc;
    llm_cpu_device_t  *d;

    d = cpu->device;

    if (size <= cpu->scratch_size) {
        return LLM_OK;
    }

    llm_cpu_take(d);

    /* an odd number of cache lines per thread, so that the same offset in the
       scratch of two threads falls into different cache sets */
    rc = llm_cpu_scratch_grow(d, llm_pool_threads(d->pool),
                              llm_align(size, 128) + 64, err);

    llm_cpu_give(d);

    cpu->scratch_size = rc == LLM_OK ? size : cpu->scratch_size;

    return rc;
}


int
llm_cpu_threads_reserve(llm_cpu_t *cpu, llm_err_t *err)
{
    int                rc;
    llm_cpu_device_t  *d;

    d = cpu->device;

    llm_cpu_take(d);

    rc = llm_pool_grow(d->pool, cpu->threads, err);

    if (rc == LLM_OK) {
        rc = llm_cpu_scratch_grow(d, llm_pool_threads(d->pool), 0, err);
    }

    llm_cpu_give(d);

    return rc;
}


static void
llm_cpu_part_item(void *arg, uint32_t item, uint32_t thread)
{
    const llm_cpu_part_t  *part = arg;

    part->fn(part->arg, part->first + item, thread);
}


void
llm_cpu_load(llm_cpu_t *cpu, const llm_cpu_load_t *load)
{
    uint32_t           i, n, most;
    llm_cpu_part_t     part;
    llm_cpu_device_t  *d;

    d = cpu->device;
    part.fn = load->pack;
    part.arg = load->arg;

    most = (uint32_t) llm_min(LLM_CPU_LOAD_BYTES / llm_max(load->bytes, 1u),
                              load->n);
    most = llm_max(most, cpu->threads);

    for (part.first = 0; part.first < load->n; part.first += n) {
        n = llm_min(most, load->n - part.first);

        load->read(load->arg, part.first, n);

        if (llm_cpu_try(d)) {
            llm_pool_enter(d->pool, cpu->threads);
            llm_pool_run(d->pool, llm_cpu_part_item, &part, n);
            llm_pool_leave(d->pool);
            llm_cpu_give(d);
            continue;
        }

        n = llm_min(n, llm_max(most / cpu->threads, 1u));

        for (i = 0; i < n; i++) {
            llm_cpu_part_item(&part, i, 0);
        }
    }
}
