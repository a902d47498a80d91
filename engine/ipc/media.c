/*
 * The memory for media of requests; see media.h.
 */

#include "engine/ipc/media.h"

/* the owner of a chunk; 0: it is free */
#define LLM_MARK_HELD   1
#define LLM_MARK_SENT   2
#define LLM_MARK_TAKEN  3

/* the epoch's low bits do: chunks of the engine before are freed when one
   attaches */
#define LLM_MARK_EPOCH  0x3fffffffu

typedef struct {
    uint64_t                     n;          /* chunks; set once by set_media */
    uint64_t                     data;       /* offset of the first one, from
                                                here */
    _Atomic uint64_t             full;       /* workers add, relaxed */
    _Alignas(64) _Atomic uint64_t  marks[];  /* [n] see media.h */
} llm_media_mem_t;


static uint64_t
llm_mark(uint64_t kind, uint32_t epoch, uint32_t generation)
{
    return kind << 62 | (uint64_t) (epoch & LLM_MARK_EPOCH) << 32 | generation;
}


static uint32_t
llm_media_chunks(size_t bytes)
{
    return (uint32_t) llm_min(bytes / LLM_MEDIA_CHUNK
                              + (bytes % LLM_MEDIA_CHUNK != 0),
                              (size_t) INT32_MAX);
}


/* bytes before the first chunk, which begins a page */

static size_t
llm_media_head(size_t bytes)
{
    return sizeof(llm_media_mem_t)
           + llm_media_chunks(bytes) * sizeof(_Atomic uint64_t) + 4096;
}


size_t
llm_media_size(size_t bytes)
{
    return llm_media_head(bytes)
           + (size_t) llm_media_chunks(bytes) * LLM_MEDIA_CHUNK;
}


void
llm_zone_set_media(llm_zone_t *z, void *mem, size_t bytes)
{
    uint64_t          i;
    uintptr_t         data;
    llm_media_mem_t  *m = mem;

    m->n = llm_media_chunks(bytes);
    atomic_init(&m->full, 0);

    for (i = 0; i < m->n; i++) {
        atomic_init(&m->marks[i], 0);
    }

    data = llm_align((uintptr_t) &m->marks[m->n], 4096);
    m->data = (uint64_t) (data - (uintptr_t) m);
    z->media = (uint64_t) ((uintptr_t) m - (uintptr_t) z);
}


static llm_media_mem_t *
llm_media_mem(llm_zone_t *z)
{
    return z->media ? (llm_media_mem_t *) ((uintptr_t) z + z->media) : NULL;
}


/* frees or hands on a run of chunks: those that have the mark; returns how many
   had it */

static uint32_t
llm_media_turn(llm_media_mem_t *m, uint32_t first, uint32_t n, uint64_t from,
    uint64_t to)
{
    uint32_t  i, done;
    uint64_t  is;

    if (m == NULL || first >= m->n || n > m->n - first) {
        return 0;
    }

    for (i = 0, done = 0; i < n; i++) {
        is = from;
        done += atomic_compare_exchange_strong(&m->marks[first + i], &is, to);
    }

    return done;
}


/* ---- a worker's side ---- */

/* marks a run of chunks, which were free a moment ago; 0: another one was
   faster, and nothing is marked */

static int
llm_media_mark_all(llm_media_mem_t *m, uint32_t first, uint32_t n,
    uint64_t mark)
{
    uint32_t  i;
    uint64_t  is;

    for (i = first; i < first + n; i++) {
        is = 0;

        if (!atomic_compare_exchange_strong(&m->marks[i], &is, mark)) {
            for ( /* void */ ; i > first; i--) {
                atomic_store(&m->marks[i - 1], 0);
            }

            return 0;
        }
    }

    return 1;
}


int
llm_media_alloc(llm_zone_t *z, uint32_t holder, size_t len, llm_chunk_t *b)
{
    uint32_t          i, first, n;
    uint64_t          mark;
    llm_media_mem_t  *m;

    m = llm_media_mem(z);
    memset(b, 0, sizeof(llm_chunk_t));

    n = llm_media_chunks(llm_max(len, (size_t) 1));

    if (m == NULL || len > m->n * LLM_MEDIA_CHUNK || n > m->n) {
        return LLM_ERROR;
    }

    mark = llm_mark(LLM_MARK_HELD, 0, holder);

    for (i = 0, first = 0; i < m->n; i++) {
        if (llm_zone_get(m->marks[i])) {
            first = i + 1;
            continue;
        }

        if (i + 1 - first < n) {
            continue;
        }

        if (llm_media_mark_all(m, first, n, mark)) {
            b->first = first;
            b->n = n;
            b->len = len;
            return LLM_OK;
        }

        first = i + 1;
    }

    return LLM_FULL;
}


void *
llm_media_data(llm_zone_t *z, const llm_chunk_t *b)
{
    llm_media_mem_t  *m;

    m = llm_media_mem(z);

    if (m == NULL || b->n == 0 || b->first >= m->n || b->n > m->n - b->first
        || b->len > (uint64_t) b->n * LLM_MEDIA_CHUNK)
    {
        return NULL;
    }

    return (char *) m + m->data + (size_t) b->first * LLM_MEDIA_CHUNK;
}


void
llm_media_shrink(llm_zone_t *z, uint32_t holder, llm_chunk_t *b, size_t len)
{
    uint32_t  n;

    n = llm_media_chunks(llm_max(len, (size_t) 1));

    if (n < b->n) {
        (void) llm_media_turn(llm_media_mem(z), b->first + n, b->n - n,
                              llm_mark(LLM_MARK_HELD, 0, holder), 0);
        b->n = n;
    }

    b->len = llm_min(b->len, (uint64_t) len);
}


void
llm_media_free(llm_zone_t *z, uint32_t holder, llm_chunk_t *b)
{
    (void) llm_media_turn(llm_media_mem(z), b->first, b->n,
                          llm_mark(LLM_MARK_HELD, 0, holder), 0);
    memset(b, 0, sizeof(llm_chunk_t));
}


size_t
llm_media_left(llm_zone_t *z, const llm_media_ref_t *media, size_t n)
{
    size_t            i;
    uint64_t          left;
    llm_media_mem_t  *m;

    m = llm_media_mem(z);
    left = m ? m->n : 0;

    for (i = 0; i < n; i++) {
        left -= llm_min(left, (uint64_t) media[i].block.n);
    }

    return left * LLM_MEDIA_CHUNK;
}


void
llm_media_refused(llm_zone_t *z)
{
    llm_media_mem_t  *m;

    m = llm_media_mem(z);

    if (m) {
        llm_zone_add(m->full, 1);
    }
}


void
llm_zone_media_stats(llm_zone_t *z, llm_media_stats_t *st)
{
    uint64_t          i;
    llm_media_mem_t  *m;

    m = llm_media_mem(z);
    memset(st, 0, sizeof(llm_media_stats_t));

    if (m == NULL) {
        return;
    }

    st->bytes = m->n * LLM_MEDIA_CHUNK;
    st->full = llm_zone_get(m->full);

    for (i = 0; i < m->n; i++) {
        st->used += llm_zone_get(m->marks[i]) ? LLM_MEDIA_CHUNK : 0;
    }
}


/* ---- messages ---- */

/* a worker's own message, whose references are right */
#define llm_media_of(msg)                                                    \
    ((llm_media_ref_t *) ((char *) (msg) + (msg)->media.off))


void
llm_media_release(llm_zone_t *z, uint32_t holder, llm_request_t *msg)
{
    uint32_t  i;

    for (i = 0; i < msg->media.len; i++) {
        llm_media_free(z, holder, &llm_media_of(msg)[i].block);
    }
}


void
llm_media_post(llm_zone_t *z, uint32_t holder, uint32_t epoch,
    const llm_request_t *msg)
{
    uint32_t            i;
    const llm_chunk_t  *b;

    for (i = 0; i < msg->media.len; i++) {
        b = &llm_media_of(msg)[i].block;
        (void) llm_media_turn(llm_media_mem(z), b->first, b->n,
                              llm_mark(LLM_MARK_HELD, 0, holder),
                              llm_mark(LLM_MARK_SENT, epoch, holder));
    }
}


void
llm_media_forget(llm_request_t *msg)
{
    uint32_t  i;

    for (i = 0; i < msg->media.len; i++) {
        memset(&llm_media_of(msg)[i].block, 0, sizeof(llm_chunk_t));
    }
}


void
llm_media_vacate(llm_zone_t *z, uint32_t generation)
{
    llm_media_mem_t  *m;

    m = llm_media_mem(z);

    if (m && generation) {
        (void) llm_media_turn(m, 0, (uint32_t) m->n,
                              llm_mark(LLM_MARK_HELD, 0, generation), 0);
    }
}


/* ---- the engine's side ---- */

/* have all chunks of a block this mark?  0, too, if it is not in the memory */

static int
llm_media_has(llm_zone_t *z, const llm_chunk_t *b, uint64_t mark)
{
    uint32_t          i;
    llm_media_mem_t  *m;

    m = llm_media_mem(z);

    for (i = 0; llm_media_data(z, b) && i < b->n; i++) {
        if (atomic_load(&m->marks[b->first + i]) != mark) {
            return 0;
        }
    }

    return i != 0;
}


/* copies block i of a message that may be wrong; 0: it has none */

static int
llm_media_block(const llm_ref_t *media, const void *rec, uint32_t size,
    uint32_t i, llm_chunk_t *b)
{
    if (media->len > LLM_MAX_MEDIA || i >= media->len
        || media->off < sizeof(llm_request_t) || media->off % 8
        || media->off > size
        || media->len > (size - media->off) / sizeof(llm_media_ref_t))
    {
        return 0;
    }

    memcpy(b, (const char *) rec + media->off + i * sizeof(llm_media_ref_t)
              + offsetof(llm_media_ref_t, block), sizeof(llm_chunk_t));

    return 1;
}


static uint64_t
llm_media_sent(const llm_request_t *head)
{
    return llm_mark(LLM_MARK_SENT, head->head.epoch,
                    llm_generation(head->head.ticket));
}


void
llm_media_abandon(llm_zone_t *z, const llm_request_t *head, const void *rec,
    uint32_t size)
{
    uint32_t     i;
    llm_chunk_t  b;

    for (i = 0; llm_media_block(&head->media, rec, size, i, &b); i++) {
        (void) llm_media_turn(llm_media_mem(z), b.first, b.n,
                              llm_media_sent(head), 0);
    }
}


int
llm_media_claim(llm_zone_t *z, const llm_request_t *msg, llm_claim_t *c)
{
    uint32_t     n;
    uint64_t     sent;
    llm_chunk_t  b;

    memset(c, 0, sizeof(llm_claim_t));

    if (!llm_media_block(&msg->media, msg, msg->head.size, 0, &b)) {
        return LLM_OK;
    }

    c->blocks = calloc(msg->media.len, sizeof(llm_chunk_t));
    if (c->blocks == NULL) {
        return LLM_ERROR;
    }

    sent = llm_media_sent(msg);
    c->zone = z;
    c->mark = llm_mark(LLM_MARK_TAKEN, msg->head.epoch,
                       llm_generation(msg->head.ticket));

    for (n = 0; llm_media_block(&msg->media, msg, msg->head.size, n, &b); n++)
    {
        if (!llm_media_has(z, &b, sent)) {
            llm_media_abandon(z, msg, msg, msg->head.size);
            break;
        }

        (void) llm_media_turn(llm_media_mem(z), b.first, b.n, sent, c->mark);
        c->blocks[n] = b;
    }

    c->n = n;

    return LLM_OK;
}


const void *
llm_claim_data(const llm_claim_t *c, uint32_t i, size_t *len)
{
    const void  *p;

    p = i < c->n ? llm_media_data(c->zone, &c->blocks[i]) : NULL;
    *len = p ? c->blocks[i].len : 0;

    return p;
}


void
llm_claim_drop(llm_claim_t *c, uint32_t i)
{
    llm_chunk_t  *b;

    b = &c->blocks[i];
    (void) llm_media_turn(llm_media_mem(c->zone), b->first, b->n, c->mark, 0);
    memset(b, 0, sizeof(llm_chunk_t));
}


void
llm_claim_free(llm_claim_t *c)
{
    uint32_t  i;

    for (i = 0; i < c->n; i++) {
        llm_claim_drop(c, i);
    }

    free(c->blocks);
    memset(c, 0, sizeof(llm_claim_t));
}


static int
llm_media_is_client(llm_zone_t *z, uint32_t generation)
{
    uint32_t  i;

    for (i = 0; i < z->n_workers; i++) {
        if (atomic_load(&llm_zone_worker(z, i)->generation) == generation) {
            return 1;
        }
    }

    return 0;
}


void
llm_media_sweep(llm_zone_t *z, int taken)
{
    uint64_t          i, mark;
    llm_media_mem_t  *m;

    m = llm_media_mem(z);

    for (i = 0; m && i < m->n; i++) {
        mark = atomic_load(&m->marks[i]);

        if (mark == 0) {
            continue;
        }

        if (mark >> 62 == LLM_MARK_TAKEN
            ? taken : !llm_media_is_client(z, (uint32_t) mark))
        {
            (void) atomic_compare_exchange_strong(&m->marks[i], &mark, 0);
        }
    }
}
