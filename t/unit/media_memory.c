/*
 * The memory for media of requests: blocks do not overlap and are freed once,
 * whatever workers and engines do and wherever they are killed; an engine that
 * cannot use a request's media gives them back.
 *
 * LLM_MEDIA_SEED in the environment: the number of the storm.
 */

#include "engine/ipc/client.h"
#include "engine/ipc/media.h"
#include "t/unit/rig.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#define CHUNK    LLM_MEDIA_CHUNK
#define CHUNKS   64
#define THREADS  4
#define ROUNDS   3000
#define WORKERS  3
#define DEATHS   60

/* a message with room for its media */
typedef struct {
    llm_request_t  r;
    llm_media_ref_t    media[4];
} message_t;

static llm_zone_t  *zone;
static void        *memory;
static uint64_t     dice = 1;


static uint32_t
rnd_of(uint64_t *d, uint32_t n)
{
    *d = *d * 6364136223846793005ull + 1442695040888963407ull;

    return (uint32_t) (*d >> 33) % n;
}


static void *
map(size_t size)
{
    return mmap(NULL, size, PROT_READ|PROT_WRITE, MAP_SHARED|MAP_ANONYMOUS,
                -1, 0);
}


static void
give_media(llm_zone_t *z, uint32_t chunks)
{
    zone = z;
    memory = map(llm_media_size((size_t) chunks * CHUNK));
    llm_zone_set_media(z, memory, (size_t) chunks * CHUNK);
}


static void
take_media(void)
{
    munmap(memory, llm_media_size((size_t) CHUNKS * CHUNK));
}


static uint64_t
used(void)
{
    llm_media_stats_t  st;

    llm_zone_media_stats(zone, &st);

    return st.used / CHUNK;
}


/* ---- blocks ---- */

static void
fill(const llm_block_t *b, uint64_t seed)
{
    size_t     i;
    uint64_t  *p;

    p = llm_media_data(zone, b);

    for (i = 0; i < b->len / 8; i++) {
        p[i] = seed + i;
    }
}


static int
is_whole(const void *data, size_t len)
{
    size_t           i;
    const uint64_t  *p;

    p = data;

    for (i = 0; i < len / 8 && p[i] == p[0] + i; i++) { /* void */ }

    return i == len / 8;
}


static void
test_blocks(void)
{
    uint32_t           i;
    llm_block_t        a, b, c, wrong;
    llm_zone_model_t   m = { .parallel = 1 };
    llm_media_stats_t  st;

    zone = llm_zone_init(map(llm_zone_size(1, 1, 1 << 17)), 1, &m, 1, 1 << 17,
                         8);

    is_int(llm_media_alloc(zone, 1, 10, &a), LLM_ERROR,
           "a zone without memory for media has no block");
    llm_zone_media_stats(zone, &st);
    is_int(st.bytes, 0, "and no figures");

    give_media(zone, 8);

    is_int(llm_media_alloc(zone, 1, CHUNK + 1, &a), LLM_OK, "a block");
    ok(a.n == 2 && a.len == CHUNK + 1 && used() == 2, "has whole chunks");
    is_int(llm_media_alloc(zone, 2, 6 * CHUNK, &b), LLM_OK, "all the rest");
    is_int(llm_media_alloc(zone, 1, 1, &c), LLM_FULL, "it is full now");
    is_int(c.n, 0, "then there is no block");
    is_int(llm_media_alloc(zone, 1, 8 * CHUNK + 1, &c), LLM_ERROR,
           "more than all there never is");
    ok(((uintptr_t) llm_media_data(zone, &a) & 4095) == 0,
       "blocks begin with a page");

    c = b;
    llm_media_free(zone, 1, &c);
    is_int(used(), 8, "another one's block is not freed");

    llm_media_shrink(zone, 2, &b, CHUNK);
    ok(used() == 3 && b.n == 1 && b.len == CHUNK, "a block shrinks");
    llm_media_shrink(zone, 2, &b, 10 * CHUNK);
    ok(b.n == 1 && b.len == CHUNK, "it does not grow");

    c = a;
    llm_media_free(zone, 1, &a);
    is_int(llm_media_alloc(zone, 3, CHUNK, &a), LLM_OK, "its place is used");
    llm_media_free(zone, 1, &c);
    is_int(used(), 2, "a block that was freed is not freed again");

    wrong = b;
    wrong.first = 7;
    wrong.n = 2;
    ok(llm_media_data(zone, &wrong) == NULL, "beyond the end is no data");
    wrong.first = UINT32_MAX;
    ok(llm_media_data(zone, &wrong) == NULL, "nor far beyond");
    wrong = b;
    wrong.len = CHUNK + 1;
    ok(llm_media_data(zone, &wrong) == NULL, "nor longer than its chunks");

    llm_media_free(zone, 2, &b);
    llm_media_free(zone, 3, &a);
    is_int(used(), 0, "all is free");

    for (i = 0; i < 3; i++) {
        llm_media_refused(zone);
    }

    llm_zone_media_stats(zone, &st);
    ok(st.full == 3 && st.bytes == 8 * CHUNK, "refusals are counted");
}


/* ---- threads of one worker ---- */

static void *
hammer(void *data)
{
    uint32_t     i, k, holder;
    uint64_t     d;
    uintptr_t    bad;
    llm_block_t  b[3];

    holder = (uint32_t) (uintptr_t) data;
    d = holder * 7919u;
    bad = 0;
    memset(b, 0, sizeof(b));

    for (i = 0; i < ROUNDS; i++) {
        k = rnd_of(&d, 3);

        if (b[k].n) {
            bad += !is_whole(llm_media_data(zone, &b[k]), b[k].len);
            llm_media_free(zone, holder, &b[k]);

        } else if (llm_media_alloc(zone, holder,
                                   8 * (1 + rnd_of(&d, 3 * CHUNK / 8)), &b[k])
                   == LLM_OK)
        {
            fill(&b[k], (uint64_t) holder << 40 | i);
        }
    }

    for (k = 0; k < 3; k++) {
        llm_media_free(zone, holder, &b[k]);
    }

    return (void *) bad;
}


static void
test_threads(void)
{
    void       *bad;
    uint32_t    i;
    uintptr_t   sum;
    pthread_t   threads[THREADS];

    for (i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, hammer,
                       (void *) (uintptr_t) (100 + i));
    }

    for (i = 0, sum = 0; i < THREADS; i++) {
        pthread_join(threads[i], &bad);
        sum += (uintptr_t) bad;
    }

    is_int(sum, 0, "%d threads: no two blocks overlap", THREADS);
    is_int(used(), 0, "and nothing is left of them");
}


/* ---- messages ---- */

static void
make(message_t *m, uint32_t slot, uint32_t n)
{
    memset(m, 0, sizeof(*m));
    m->r.head.size = sizeof(*m);
    m->r.head.type = LLM_MSG_REQUEST;
    m->r.head.slot = slot;
    m->r.n = 1;
    m->r.media.off = offsetof(message_t, media);
    m->r.media.len = n;
}


/* a worker: asks as fast as it can until it is killed */

static void
work(uint32_t w, int fd)
{
    uint32_t           i, k, retry;
    uint64_t           d;
    message_t          m;
    llm_err_t          err;
    llm_client_t      *c;
    llm_client_conf_t  conf = { .zone = zone, .worker = w, .engine_fd = fd };

    c = llm_client_attach(&conf);
    d = llm_client_holder(c);

    for (i = 0; /* void */ ; i++) {
        make(&m, i % 64, 1 + rnd_of(&d, 4));
        m.r.media.len = llm_min(m.r.media.len, 4u);

        for (retry = 0; retry < m.r.media.len; retry++) {
            if (llm_media_alloc(zone, llm_client_holder(c),
                                8 * (1 + rnd_of(&d, CHUNK / 4)),
                                &m.media[retry].block)
                != LLM_OK)
            {
                break;
            }

            fill(&m.media[retry].block, d);
        }

        if (retry < m.r.media.len || rnd_of(&d, 4) == 0
            || llm_client_submit(c, &m.r, &retry, &err) != LLM_OK)
        {
            llm_media_release(zone, llm_client_holder(c), &m.r);
        }

        /* all slots are free: nobody answers */

        for (k = 0; k < c->n_slots; k++) {
            c->live[k].ticket = 0;
        }

        c->n_live = 0;
    }
}


/* an engine by hand: takes what there is of a worker's messages */

static uint32_t
take(llm_ring_t *down, uint32_t generation, uint32_t epoch, uint32_t *broken)
{
    size_t                len;
    uint32_t              i, n;
    message_t             m;
    llm_claim_t           c;
    const void           *p;
    const llm_record_t   *rec;

    for (n = 0; n < 20; n++) {
        rec = llm_ring_next(down);
        if (rec == NULL) {
            break;
        }

        memcpy(&m, rec, sizeof(m));
        m.r.head.size = down->taken;

        if (m.r.head.epoch != epoch
            || llm_generation(m.r.head.ticket) != generation)
        {
            llm_media_abandon(zone, &m.r, rec, down->taken);
            continue;
        }

        llm_zone_release(zone, 0, epoch, 0);

        if (llm_media_claim(zone, &m.r, &c) != LLM_OK) {
            continue;
        }

        *broken += c.n != m.r.media.len;

        for (i = 0; i < c.n; i++) {
            p = llm_claim_data(&c, i, &len);
            *broken += p == NULL || !is_whole(p, len);
        }

        /* an engine that dies leaves what it has taken */

        if (rnd_of(&dice, 10)) {
            llm_claim_free(&c);

        } else {
            free(c.blocks);
        }
    }

    llm_ring_release(down);

    return n;
}


static void
test_deaths(void)
{
    int                fd;
    char              *seed;
    pid_t              pids[WORKERS];
    uint32_t           i, w, taken, broken, generation;
    uint64_t           until;
    llm_ring_t         down[WORKERS];
    llm_client_t      *c;
    llm_client_conf_t  conf;
    llm_zone_model_t   m = { .parallel = 1000 };

    seed = getenv("LLM_MEDIA_SEED");
    dice = seed ? strtoull(seed, NULL, 10) : llm_now_us();
    printf("# LLM_MEDIA_SEED=%llu\n", (unsigned long long) dice);

    fd = eventfd(0, EFD_NONBLOCK);
    zone = llm_zone_init(map(llm_zone_size(WORKERS, 1, 1 << 18)), WORKERS, &m,
                         1, 1 << 18, 1 << 20);
    give_media(zone, CHUNKS);

    for (w = 0; w < WORKERS; w++) {
        llm_ring_consumer(&down[w],
                          llm_zone_at(zone, llm_zone_worker(zone, w)->down));
        pids[w] = fork();

        if (pids[w] == 0) {
            work(w, fd);
        }
    }

    taken = 0;
    broken = 0;

    for (i = 0; i < DEATHS; i++) {
        until = llm_now_us() + 1000 + rnd_of(&dice, 20000);

        while (llm_now_us() < until) {
            for (w = 0; w < WORKERS; w++) {
                generation = atomic_load(&llm_zone_worker(zone, w)
                                          ->generation);
                taken += take(&down[w], generation, atomic_load(&zone->epoch),
                              &broken);
            }
        }

        /* the engine is killed, or a worker */

        if (i % 4 == 0) {
            llm_media_sweep(zone, 1);
            atomic_fetch_add(&zone->epoch, 1);
            continue;
        }

        w = rnd_of(&dice, WORKERS);
        kill(pids[w], SIGKILL);
        waitpid(pids[w], NULL, 0);
        pids[w] = fork();

        if (pids[w] == 0) {
            work(w, fd);
        }

        while (atomic_load(&llm_zone_worker(zone, w)->pid)
               != (uint32_t) pids[w])
        {
            usleep(100);
        }

        llm_media_sweep(zone, 0);
    }

    for (w = 0; w < WORKERS; w++) {
        kill(pids[w], SIGKILL);
        waitpid(pids[w], NULL, 0);

        conf.zone = zone;
        conf.worker = w;
        conf.engine_fd = fd;
        c = llm_client_attach(&conf);
        generation = atomic_load(&llm_zone_worker(zone, w)->generation);

        while (take(&down[w], generation, atomic_load(&zone->epoch),
                    &broken))
        {
            /* void */
        }

        llm_client_detach(c);
    }

    llm_media_sweep(zone, 1);

    ok(taken > DEATHS, "%u messages came through %d deaths", taken, DEATHS);
    is_int(broken, 0, "with the bytes that were sent");
    is_int(used(), 0, "and nothing is left when all have been replaced");
    take_media();
}


/* a worker's own, while there is no engine */

static void
test_leaving(void)
{
    llm_block_t        b;
    llm_client_t      *dead, *c;
    llm_client_conf_t  conf;
    llm_zone_model_t   m = { .parallel = 1 };

    conf.worker = 1;
    conf.engine_fd = eventfd(0, EFD_NONBLOCK);
    conf.zone = llm_zone_init(map(llm_zone_size(2, 1, 1 << 17)), 2, &m, 1,
                              1 << 17, 8);
    give_media(conf.zone, CHUNKS);

    dead = llm_client_attach(&conf);
    (void) llm_media_alloc(zone, llm_client_holder(dead), 5 * CHUNK, &b);
    is_int(used(), 5, "a worker has a block, and dies");

    c = llm_client_attach(&conf);
    is_int(used(), 0, "the next one in its place frees it");

    (void) llm_media_alloc(zone, llm_client_holder(c), 5 * CHUNK, &b);
    llm_client_detach(c);
    is_int(used(), 0, "one that leaves frees its own");

    free(dead->live);
    free(dead->pending);
    free(dead);
    take_media();
}


/* messages that no worker writes */

static void
test_wrong(void)
{
    size_t       i;
    message_t    m;
    llm_block_t  b;
    llm_claim_t  c;

    static const struct {
        const char  *what;
        uint32_t     off, len;
    } cases[] = {
        { "before the message's own", 8, 1 },
        { "beyond the end", sizeof(message_t) + 8, 1 },
        { "beyond the end in part", offsetof(message_t, media), 5 },
        { "not aligned", offsetof(message_t, media) + 4, 1 },
        { "too many", offsetof(message_t, media), UINT32_MAX }
    };

    for (i = 0; i < llm_nelems(cases); i++) {
        make(&m, 0, 1);
        m.r.media.off = cases[i].off;
        m.r.media.len = cases[i].len;
        ok(llm_media_claim(zone, &m.r, &c) == LLM_OK && c.n == 0
           && c.blocks == NULL, "media %s are not taken", cases[i].what);
        llm_media_abandon(zone, &m.r, &m, sizeof(m));
    }

    /* a block of somebody else, or the same block twice */

    make(&m, 0, 2);
    m.r.head.ticket = (uint64_t) 5 << LLM_TICKET_SEQ_BITS | 1;
    (void) llm_media_alloc(zone, 5, 100, &m.media[0].block);
    (void) llm_media_alloc(zone, 6, 100, &b);
    m.media[1].block = b;
    llm_media_post(zone, 5, 0, &m.r);

    ok(llm_media_claim(zone, &m.r, &c) == LLM_OK && c.n == 1,
       "another one's block is not taken");
    llm_claim_free(&c);
    is_int(used(), 1, "nor freed");
    llm_media_free(zone, 6, &b);

    (void) llm_media_alloc(zone, 5, 100, &m.media[0].block);
    m.media[1].block = m.media[0].block;
    llm_media_post(zone, 5, 0, &m.r);
    ok(llm_media_claim(zone, &m.r, &c) == LLM_OK && c.n == 1,
       "a block is not taken twice");
    llm_claim_free(&c);
    is_int(used(), 0, "and freed once");
}


/* ---- an engine ---- */

static rig_t  rig;


/* sends a chat with n blocks; the engine knows of no projector */

static int
ask(uint32_t slot, uint32_t n, llm_err_t *err)
{
    int          rc;
    uint32_t     i, holder, retry;
    llm_buf_t    b, chat;
    llm_ref_t    ref;
    llm_media_ref_t  media[4];

    rig_req(&b, slot);
    rig_msg(&b)->kind = LLM_KIND_CHAT;

    llm_buf_init(&chat, 0);
    llm_flat_close(&chat, llm_flat_open(&chat, LLM_FLAT_OBJECT), 0);
    ref = rig_put(&b, chat.data, chat.len, (uint32_t) chat.len);
    rig_msg(&b)->chat = ref;
    llm_buf_free(&chat);

    memset(media, 0, sizeof(media));
    holder = llm_client_holder(rig.clients[0]);

    for (i = 0; i < n; i++) {
        media[i].kind = LLM_MEDIUM_IMAGE;
        media[i].place = rig_put(&b, "path [0]", 8, 8);
        (void) llm_media_alloc(zone, holder, 3 * CHUNK - 5, &media[i].block);
    }

    ref = rig_put(&b, media, n * sizeof(llm_media_ref_t), n);
    rig_msg(&b)->media = ref;
    (void) llm_buf_pad(&b);
    rig_msg(&b)->head.size = (uint32_t) b.len;

    rig_reset(&rig.answers[0][slot]);
    rc = llm_client_submit(rig.clients[0], rig_msg(&b), &retry, err);

    if (rc == LLM_OK) {
        rig.answers[0][slot].ticket = rig_msg(&b)->head.ticket;
    }

    llm_media_release(zone, holder, rig_msg(&b));
    llm_buf_free(&b);

    return rc;
}


/* until no chunk is used */

static int
is_free(void)
{
    uint64_t  end;

    for (end = llm_now_us() + 30000000; used() && llm_now_us() < end; ) {
        rig_poll(&rig, 0, 5);
    }

    return used() == 0;
}


static void
test_engine(void)
{
    llm_err_t  err;

    rig_model(&rig, "models/demo.gguf", 256, 2);
    rig_open(&rig, 1, 1 << 17, 64);
    give_media(rig.zone, CHUNKS);

    /* an engine that is not there yet, or dies before it reads */

    is_int(ask(0, 2, &err), LLM_OK, "a request before there is an engine");
    is_int(used(), 6, "its media are in the ring");
    llm_client_signal(rig.clients[0], LLM_MSG_CANCEL, 0,
                      rig.answers[0][0].ticket);
    ok(rig_engine(&rig), "an engine starts");
    ok(is_free(), "the request was cancelled: nothing is left");

    is_int(ask(1, 3, &err), LLM_OK, "a request");
    is_int(rig_wait(&rig, 0, 1, 30000), LLM_OK, "is answered");
    ok(rig.answers[0][1].status == 400
       && strstr(rig.answers[0][1].msg, "no projector for images"),
       "the model takes no images: %s", rig.answers[0][1].msg);
    ok(is_free(), "its media are free");

    /* a client that is refused keeps its own, to give them back */

    llm_zone_set_state(rig.zone, 0, LLM_MODEL_STOPPED);
    is_int(ask(2, 1, &err), LLM_ERROR, "a stopped model");
    is_int(used(), 0, "leaves nothing");
    llm_zone_set_state(rig.zone, 0, LLM_MODEL_READY);

    /* an engine that ends with requests in the ring */

    llm_engine_stop(rig.engine);
    rig.engine = NULL;
    atomic_store(&rig.zone->attached, 0);
    is_int(ask(3, 2, &err), LLM_OK, "a request to an engine that is gone");
    atomic_store(&rig.zone->attached, 1);
    is_int(used(), 6, "waits");
    ok(rig_engine(&rig), "another engine starts");
    ok(is_free(), "it throws the message away, with its media");

    rig_close(&rig);
    take_media();
}


int
main(void)
{
    test_blocks();
    test_threads();
    test_wrong();
    test_leaving();
    test_deaths();
    test_engine();

    return done_testing();
}
