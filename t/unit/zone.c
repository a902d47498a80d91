/*
 * The zone: admission is exact whoever comes at the same time, a new epoch
 * starts from nothing, texts are read whole, figures add up; and the
 * client's side of a zone that has no engine, or a dead one.
 */

#include "engine/ipc/zone.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "t/unit/tap.h"

#define THREADS  20

static llm_zone_t         *zone;
static void               *mem;
static size_t              mem_size;
static pthread_barrier_t   barrier;
static int                 engine_fd;


static void
zone_open(uint32_t workers, const uint32_t *parallel, uint32_t n,
    uint32_t queue)
{
    uint32_t          i;
    llm_zone_model_t  m[4];

    for (i = 0; i < n; i++) {
        m[i] = (llm_zone_model_t) { .parallel = parallel[i], .other = 1 };
    }

    mem_size = llm_zone_size(workers, n, 1 << 17);
    mem = mmap(NULL, mem_size, PROT_READ|PROT_WRITE,
               MAP_SHARED|MAP_ANONYMOUS, -1, 0);
    zone = llm_zone_init(mem, workers, m, n, 1 << 17, queue);
}


static void
zone_close(void)
{
    munmap(mem, mem_size);
}


static llm_client_t *
attach(uint32_t worker)
{
    llm_client_conf_t  conf = { zone, worker, engine_fd };

    return llm_client_attach(&conf);
}


static void
make_request(llm_request_t *q, uint32_t slot, uint32_t model)
{
    memset(q, 0, sizeof(*q));
    q->head.size = sizeof(*q);
    q->head.type = LLM_MSG_REQUEST;
    q->head.slot = slot;
    q->model = model;
    q->n = 1;
}


/* twenty arrive in the same instant, each through its own worker */

static _Atomic uint32_t  accepted, refused, other;

static void *
arrive(void *data)
{
    uint32_t        retry;
    llm_err_t       err;
    llm_client_t   *c = data;
    llm_request_t   q;

    make_request(&q, 0, 0);
    pthread_barrier_wait(&barrier);

    if (llm_client_submit(c, &q, &retry, &err) == LLM_OK) {
        atomic_fetch_add(&accepted, 1);

    } else if (err.status == 503 || err.status == 429) {
        atomic_fetch_add(retry ? &refused : &other, 1);

    } else {
        atomic_fetch_add(&other, 1);
    }

    return NULL;
}


static void
test_instant(void)
{
    int           exact;
    uint32_t      round, i, parallel = 3;
    pthread_t     t[THREADS];
    llm_client_t *c[THREADS];

    exact = 1;
    pthread_barrier_init(&barrier, NULL, THREADS);

    for (round = 0; round < 100; round++) {
        zone_open(THREADS, &parallel, 1, 4);
        atomic_store(&accepted, 0);
        atomic_store(&refused, 0);
        atomic_store(&other, 0);

        for (i = 0; i < THREADS; i++) {
            c[i] = attach(i);
            pthread_create(&t[i], NULL, arrive, c[i]);
        }

        for (i = 0; i < THREADS; i++) {
            pthread_join(t[i], NULL);
        }

        exact &= atomic_load(&accepted) == 7 && atomic_load(&refused) == 13
                 && atomic_load(&other) == 0;

        for (i = 0; i < THREADS; i++) {
            llm_client_detach(c[i]);
        }

        zone_close();
    }

    pthread_barrier_destroy(&barrier);

    ok(exact, "of 20 at once exactly 3 + 4 are accepted, 100 times");
}


static int
counts_are_clear(void)
{
    uint32_t                  i, k, n;
    static llm_zone_counts_t  c;

    llm_zone_counts(zone, &c);
    n = (uint32_t) c.waiting;

    for (i = 0; i < zone->n_models; i++) {
        n += llm_zone_inflight(zone, i, (uint32_t) (c.inflight[i] >> 32));

        for (k = 0; k < LLM_ZONE_LEVELS; k++) {
            n += (uint32_t) c.levels[i][k];
        }
    }

    return n == 0;
}


/* coming and going at random; waiting never exceeds the queue */

static _Atomic uint32_t  too_many;

static void *
come_and_go(void *data)
{
    uint32_t  i, n[2], m;
    uint64_t  x;

    x = (uint64_t) (uintptr_t) data * 0x9e3779b97f4a7c15ull + 1;
    n[0] = n[1] = 0;

    for (i = 0; i < 20000; i++) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        m = x >> 20 & 1;

        if (x >> 30 & 1) {
            n[m] += llm_zone_admit(zone, m, 1, 0) == LLM_OK;

        } else if (n[m]) {
            llm_zone_release(zone, m, 1, 0);
            n[m]--;
        }

        if ((uint32_t) atomic_load(&zone->waiting) > 5) {
            atomic_fetch_add(&too_many, 1);
        }
    }

    while (n[0] + n[1]) {
        m = n[0] ? 0 : 1;
        llm_zone_release(zone, m, 1, 0);
        n[m]--;
    }

    return NULL;
}


static void
test_coming(void)
{
    uint32_t   i, parallel[2] = { 4, 2 };
    pthread_t  t[8];

    zone_open(1, parallel, 2, 5);

    for (i = 0; i < 8; i++) {
        pthread_create(&t[i], NULL, come_and_go, (void *) (uintptr_t) (i + 1));
    }

    for (i = 0; i < 8; i++) {
        pthread_join(t[i], NULL);
    }

    is_int(atomic_load(&too_many), 0, "never more than 5 wait");
    ok(counts_are_clear(), "all counts come back to nothing");

    for (i = 0; llm_zone_admit(zone, 0, 1, 0) == LLM_OK; i++) { /* void */ }

    is_int(i, 9, "4 run and 5 wait");
    is_int(llm_zone_admit(zone, 1, 1, 0), LLM_OK, "another model still runs 2");
    is_int(llm_zone_admit(zone, 1, 1, 0), LLM_OK, "two of them");
    is_int(llm_zone_admit(zone, 1, 1, 0), LLM_ERROR, "and has no queue left");
    ok(llm_zone_has_room(zone, 0, 0) == 0, "has_room() says the same");

    llm_zone_release(zone, 0, 1, 0);
    is_int(llm_zone_admit(zone, 1, 1, 0), LLM_OK, "the queue is shared");

    atomic_store(&zone->epoch, 2);
    ok(llm_zone_has_room(zone, 0, 0), "a new epoch begins with room");
    is_int(llm_zone_admit(zone, 0, 2, 0), LLM_OK, "and counts from nothing");
    is_int(llm_zone_admit(zone, 0, 1, 0), LLM_STALE, "the old one is refused");
    llm_zone_release(zone, 1, 1, 0);
    is_int(atomic_load(&zone->models[0].inflight), (uint64_t) 2 << 32 | 1,
           "what ends late changes nothing");

    zone_close();
}


/* a file of speech serves in a text model's place, of which fewer requests run
   at once: those in flight are counted as it would have counted them */

static void *
come_and_change(void *data)
{
    uint32_t  i;

    (void) data;

    for (i = 1; i <= 20001; i++) {
        llm_zone_set_speech(zone, 0, 1, i & 1);
        llm_zone_set_speech(zone, 1, 1, i & 2);
    }

    return NULL;
}


static void
test_sorts(void)
{
    uint32_t           i, parallel[2] = { 3, 4 };
    pthread_t          t[8];
    llm_zone_counts_t  *seen;

    zone_open(1, parallel, 2, 10);

    for (i = 0; i < 4; i++) {
        (void) llm_zone_admit(zone, 0, 1, 0);
    }

    is_int((uint32_t) atomic_load(&zone->waiting), 1, "three of four run");
    llm_zone_set_speech(zone, 0, 1, 1);
    is_int(llm_zone_parallel(zone, 0), 1, "of speech one runs");
    is_int((uint32_t) atomic_load(&zone->waiting), 3, "and three wait");
    llm_zone_release(zone, 0, 1, 0);
    is_int((uint32_t) atomic_load(&zone->waiting), 2, "of three two");
    is_int(llm_zone_inflight(zone, 0, 1), 3, "which are counted");
    llm_zone_set_speech(zone, 0, 1, 1);
    is_int((uint32_t) atomic_load(&zone->waiting), 2, "the same sort again");
    llm_zone_set_speech(zone, 0, 1, 0);
    is_int((uint32_t) atomic_load(&zone->waiting), 0, "of text all three run");

    zone->models[0].places = 3;
    llm_zone_set_speech(zone, 0, 1, 1);
    is_int(llm_zone_places(zone, 0), 1, "a model's own bound is of what waits");
    is_int(llm_zone_admit(zone, 0, 1, 0), LLM_ERROR, "so there is no room");
    ok(!llm_zone_has_room(zone, 0, 0), "has_room() says the same");

    seen = calloc(1, sizeof(*seen));
    llm_zone_counts(zone, seen);
    is_int(llm_zone_clear_counts(zone, seen), LLM_OK, "counts are cleared");
    ok(counts_are_clear() && llm_zone_parallel(zone, 0) == 1,
       "and the file is still one of speech");
    free(seen);

    atomic_store(&zone->epoch, 2);
    is_int(llm_zone_parallel(zone, 0), 3, "a new engine has not loaded it yet");
    llm_zone_set_speech(zone, 0, 2, 1);
    llm_zone_set_speech(zone, 0, 1, 0);
    is_int(llm_zone_parallel(zone, 0), 1, "only the present engine says it");
    zone_close();

    zone_open(1, parallel, 2, 5);

    for (i = 0; i < 8; i++) {
        pthread_create(&t[i], NULL, i ? come_and_go : come_and_change,
                       (void *) (uintptr_t) (i + 1));
    }

    for (i = 0; i < 8; i++) {
        pthread_join(t[i], NULL);
    }

    ok(counts_are_clear(), "while files change no count is lost");
    is_int(llm_zone_parallel(zone, 0), 1, "and the last one is known");
    zone_close();
}


/* who is more urgent than one that runs waits for nobody, so it needs no place
   in the queue; the other one does not lose its own */

static void
test_urgent(void)
{
    uint32_t           i, parallel[2] = { 2, 1 };
    llm_zone_counts_t  *seen;

    zone_open(1, parallel, 2, 0);
    zone->models[0].places = 2;

    is_int(llm_zone_admit(zone, 0, 1, 0), LLM_OK, "one runs");
    is_int(llm_zone_admit(zone, 0, 1, -5), LLM_OK, "and a low one");
    is_int(llm_zone_admit(zone, 0, 1, 0), LLM_OK, "which gives way");
    is_int((uint32_t) atomic_load(&zone->waiting), 1, "and waits");
    ok(!llm_zone_has_room(zone, 0, 0), "then there is room for no equal");
    is_int(llm_zone_admit(zone, 0, 1, 0), LLM_ERROR, "who is refused");
    is_int(llm_zone_admit(zone, 0, 1, -5), LLM_ERROR, "as is a low one");

    ok(llm_zone_has_room(zone, 0, 1), "but for a more urgent one");
    is_int(llm_zone_admit(zone, 0, 1, LLM_MAX_PRIORITY), LLM_OK, "a first");
    is_int(llm_zone_admit(zone, 0, 1, INT32_MAX), LLM_OK,
           "a second, whatever its number");
    is_int(llm_zone_admit(zone, 0, 1, 99), LLM_ERROR,
           "the next would wait for these");
    is_int(llm_zone_admit(zone, 1, 1, -100), LLM_OK, "others' places are free");
    is_int(llm_zone_admit(zone, 1, 1, -100), LLM_ERROR, "as many as they are");
    is_int((uint32_t) atomic_load(&zone->waiting), 3, "three wait");

    llm_zone_release(zone, 0, 1, LLM_MAX_PRIORITY);
    is_int(llm_zone_admit(zone, 0, 1, 0), LLM_ERROR,
           "who waits for the place goes before who comes");
    llm_zone_release(zone, 0, 1, INT32_MAX);
    llm_zone_release(zone, 0, 1, 0);
    is_int((uint32_t) atomic_load(&zone->waiting), 0, "all have places");
    is_int(llm_zone_admit(zone, 0, 1, 0), LLM_OK, "a low one gives way again");

    /* what a dead worker leaves behind is cleared */

    seen = calloc(1, sizeof(*seen));
    llm_zone_counts(zone, seen);
    llm_zone_release(zone, 0, 1, 0);
    is_int(llm_zone_clear_counts(zone, seen), LLM_STALE, "counts have changed");
    llm_zone_counts(zone, seen);
    is_int(llm_zone_clear_counts(zone, seen), LLM_OK, "they have not");
    ok(counts_are_clear(), "and are cleared");
    free(seen);

    for (i = 0; llm_zone_admit(zone, 0, 1, 0) == LLM_OK; i++) { /* void */ }

    is_int(i, 2, "as many as at the beginning");
    zone_close();
}


/* many at once, of which some are more urgent than what runs: each place that
   can be taken is, once */

static _Atomic uint32_t  urgent_in;

static void *
arrive_urgent(void *data)
{
    uint32_t  i;

    (void) data;
    pthread_barrier_wait(&barrier);

    for (i = 0; i < 10; i++) {
        if (llm_zone_admit(zone, 0, 1, 7) == LLM_OK) {
            atomic_fetch_add(&urgent_in, 1);
        }
    }

    return NULL;
}


static void
test_urgent_instant(void)
{
    int        exact;
    uint32_t   i, round, parallel = 3;
    pthread_t  t[8];

    exact = 1;
    pthread_barrier_init(&barrier, NULL, 8);

    for (round = 0; round < 100; round++) {
        zone_open(1, &parallel, 1, 0);
        atomic_store(&urgent_in, 0);

        for (i = 0; i < 3; i++) {
            (void) llm_zone_admit(zone, 0, 1, (int32_t) i - 1);
        }

        for (i = 0; i < 8; i++) {
            pthread_create(&t[i], NULL, arrive_urgent, NULL);
        }

        for (i = 0; i < 8; i++) {
            pthread_join(t[i], NULL);
        }

        exact &= atomic_load(&urgent_in) == 3
                 && (uint32_t) atomic_load(&zone->waiting) == 3;
        zone_close();
    }

    pthread_barrier_destroy(&barrier);
    ok(exact, "of 8 times 10 at once exactly 3 take a place, 100 times");
}


/* bounds beside the number, and what is shown of the load */

static void
test_bounds(void)
{
    uint32_t           i, k, parallel[2] = { 4, 2 };
    llm_zone_busy_t    l;
    llm_zone_bounds_t  b[3] = {
        { 0, 0, 0 }, { 1000, 0, 0 }, { 0, 2000000, 0 }
    };

    for (k = 0; k < 3; k++) {
        zone_open(1, parallel, 2, 5);
        llm_zone_set_bounds(zone, &b[k]);

        llm_zone_busy(zone, 0, &l);
        ok(l.load == 0 && l.waiting == 0 && l.ttft_us == 0, "nothing to do");

        for (i = 0;
             llm_zone_admit(zone, 0, 1, -1) == LLM_OK;
             i++)
        { /* void */ }

        is_int(i, k ? 6 : 9, "of a low priority 4 run and %s wait",
               k ? "2, half of 5," : "5");
        is_int(llm_zone_forecasts(zone), k != 0, "predictions or none");

        llm_zone_busy(zone, 0, &l);
        is_int(l.load, i * 100 / 4, "load in per cent");
        is_int(l.waiting, i - 4, "those that wait");

        while (i--) {
            llm_zone_release(zone, 0, 1, -1);
        }

        for (i = 0; llm_zone_admit(zone, 0, 1, 0) == LLM_OK; i++) {
            /* void */
        }

        is_int(i, 9, "others: 5 wait");

        llm_zone_set(zone->models[0].figures.kv_pages, 10);
        llm_zone_set(zone->models[0].figures.kv_used, 9);
        llm_zone_set(zone->models[0].ttft_us, 123);
        llm_zone_busy(zone, 0, &l);
        is_int(l.load, 225, "more than of the pages");
        is_int(l.ttft_us, 123, "what is predicted");

        while (i--) {
            llm_zone_release(zone, 0, 1, 0);
        }

        llm_zone_busy(zone, 0, &l);
        is_int(l.load, 90, "of the pages");
        zone_close();
    }
}


/* a text is the old one or the new one, never a mixture */

static _Atomic int  stop;

static void *
write_texts(void *data)
{
    int   i;
    char  text[512];

    (void) data;

    for (i = 0; !atomic_load(&stop); i++) {
        memset(text, 'a' + i % 26, sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        llm_zone_set_text(zone, 0, text, NULL);
        sched_yield();
    }

    return NULL;
}


static void
test_texts(void)
{
    int                 whole, k;
    uint32_t            i, parallel = 1;
    pthread_t           t;
    llm_model_status_t  st;

    zone_open(1, &parallel, 1, 5);
    llm_zone_set_text(zone, 0, "", "a device");
    pthread_create(&t, NULL, write_texts, NULL);

    for (i = 0, whole = 1; i < 20000; i++) {
        llm_zone_status(zone, 0, &st);

        for (k = 1; st.error[0] && k < 511; k++) {
            whole &= st.error[k] == st.error[0];
        }
    }

    atomic_store(&stop, 1);
    pthread_join(t, NULL);
    llm_zone_status(zone, 0, &st);

    ok(whole, "texts are read whole");
    is_str(st.device, "a device", "the other text stays");

    /* an engine that died while it wrote */

    atomic_fetch_add(&zone->models[0].text.seq, 1);
    llm_zone_status(zone, 0, &st);
    is_str(st.error, "", "a half-written text is not shown");

    zone_close();
}


static void
test_figures(void)
{
    uint32_t            parallel = 1;
    llm_model_stats_t   st;

    zone_open(1, &parallel, 1, 5);

    llm_zone_observe(&zone->models[0].own, LLM_HIST_TTFT, 500);
    llm_zone_observe(&zone->models[0].own, LLM_HIST_TTFT, 1000);
    llm_zone_observe(&zone->models[0].own, LLM_HIST_TTFT, 30000);
    llm_zone_observe(&zone->models[0].own, LLM_HIST_TTFT, 4000000000ull);
    llm_zone_add(zone->models[0].own.generation_tokens, 7);
    llm_zone_model_stats(zone, NULL, 0, &st);

    is_int(st.ttft.buckets[0], 2, "a bound belongs to its bucket");
    is_int(st.ttft.buckets[3], 2, "20 ms: no more");
    is_int(st.ttft.buckets[4], 3, "40 ms: one more");
    is_int(st.ttft.buckets[st.ttft.n - 1], 3, "the last bound");
    is_int(st.ttft.count, 4, "all of them");
    ok(st.ttft.sum > 4000.03 && st.ttft.sum < 4000.04, "their sum");
    is_int(st.generation_tokens, 7, "a counter");
    is_int(st.itl.count, 0, "another histogram is empty");

    zone_close();
}


static void *
zeros(size_t size)
{
    void  *p;

    p = aligned_alloc(64, size);
    memset(p, 0, size);

    return p;
}


/* counters that outlive a zone: two of them count in the same memory */

static void
test_kept(void)
{
    size_t              size;
    uint32_t            parallel[2] = { 1, 1 };
    llm_hist_t          ttft, itl;
    llm_kept_t          kept;
    llm_worker_stats_t  sent;
    llm_model_stats_t   st;

    memset(&kept, 0, sizeof(kept));

    size = llm_counters_size();
    kept.models[0] = zeros(2 * size);
    kept.models[1] = (char *) kept.models[0] + size;
    kept.workers = zeros(llm_sent_size());
    kept.times = zeros(2 * llm_times_size());
    kept.n_times = 2;

    is_int(size % 64 + llm_sent_size() % 64 + llm_times_size() % 64, 0,
           "sizes are aligned");

    zone_open(1, parallel, 2, 5);
    llm_zone_add(llm_zone_counters(zone, &kept, 1)->steps, 3);
    llm_zone_observe(llm_zone_counters(zone, &kept, 1), LLM_HIST_ITL, 5000);
    llm_zone_observe_for(&kept, 0, LLM_HIST_TTFT, 5000);
    llm_zone_observe_for(&kept, 2, LLM_HIST_TTFT, 5000);
    llm_zone_observe_for(&kept, 3, LLM_HIST_TTFT, 5000);
    llm_zone_add(llm_zone_sent(zone, &kept, 0)->events, 2);
    llm_zone_set(zone->models[1].figures.running, 1);
    llm_zone_add(zone->models[1].figures.answered, 9);
    zone_close();

    zone_open(1, parallel, 2, 5);
    llm_zone_add(llm_zone_counters(zone, &kept, 1)->steps, 4);
    llm_zone_observe_for(&kept, 2, LLM_HIST_ITL, 5000);

    llm_zone_model_stats(zone, &kept, 1, &st);
    is_int(st.steps, 7, "a counter goes on in the next zone");
    is_int(st.itl.count, 1, "so does a histogram");
    is_int(st.running, 0, "a gauge does not");
    is_int(st.answered, 0, "nor does what another zone's engine has answered");

    llm_zone_model_stats(zone, &kept, 0, &st);
    is_int(st.steps, 0, "another model has its own");

    llm_zone_worker_stats(zone, &kept, 0, &sent);
    is_int(sent.events, 2, "and a worker");

    llm_times_stats(kept.times, 1, &ttft, &itl);
    is_int(ttft.count, 1, "an account's time to the first token");
    is_int(itl.count, 1, "and between tokens");

    llm_times_stats(kept.times, 0, &ttft, &itl);
    is_int(ttft.count, 0, "nobody's time, and that of no account, is nowhere");

    zone_close();

    zone_open(1, parallel, 2, 5);
    llm_zone_observe_for(NULL, 1, LLM_HIST_TTFT, 5000);
    llm_zone_model_stats(zone, NULL, 1, &st);
    is_int(st.steps, 0, "a zone of its own counts from nothing");
    zone_close();

    free(kept.models[0]);
    free(kept.workers);
    free(kept.times);
}


/* the events that a client hands out */

static uint32_t     n_events;
static llm_event_t  last;

static void
on_event(void *data, const llm_event_t *ev)
{
    (void) data;

    n_events++;
    last = *ev;
}


/* an engine of another process that goes away */

static void
test_dead_engine(void)
{
    int             status;
    pid_t           pid;
    uint32_t        parallel = 2, retry;
    uint64_t        count;
    llm_err_t       err;
    llm_client_t   *c;
    llm_request_t   q;

    zone_open(1, &parallel, 1, 5);
    ok(!llm_zone_alive(zone), "nobody is there");
    is_int(llm_zone_epoch(zone), 0, "no epoch before the first engine");

    c = attach(0);
    make_request(&q, 4, 0);
    is_int(llm_client_submit(c, &q, &retry, &err), LLM_OK,
           "a request waits for the first engine");

    pid = fork();

    if (pid == 0) {
        pause();
        _exit(0);
    }

    atomic_store(&zone->engine_pid, pid);
    atomic_store(&zone->attached, 1);
    ok(llm_zone_alive(zone), "an engine is there");

    atomic_store(&zone->engine_born, llm_process_born(pid) + 1);
    ok(!llm_zone_alive(zone), "but not a process that has got its pid");
    atomic_store(&zone->engine_born, llm_process_born(pid));
    ok(llm_zone_alive(zone), "it is the one that was born then");

    llm_zone_set(zone->busy_since_us, llm_now_us() - 60000000);
    ok(!llm_zone_alive(zone), "one that hangs in a step is not alive");
    llm_zone_set(zone->busy_since_us, 0);

    atomic_store(&zone->engine_armed, 1);
    llm_zone_wake(zone, engine_fd);
    ok(llm_zone_alive(zone), "one that was woken just now is alive");
    atomic_store(&zone->woken_us, llm_now_us() - 60000000);
    llm_zone_wake(zone, engine_fd);
    ok(!llm_zone_alive(zone), "one that did not come awake is not");
    llm_zone_set(zone->busy_since_us, llm_now_us());
    ok(llm_zone_alive(zone), "one that is awake is alive");
    llm_zone_set(zone->busy_since_us, 0);
    atomic_store(&zone->woken_us, 0);

    /* woken, then stopped before it has said that it is awake */

    atomic_store(&zone->engine_armed, 0);
    llm_zone_wake(zone, engine_fd);
    ok(atomic_load(&zone->woken_us) != 0,
       "a message to one that seems to be awake is remembered, too");
    atomic_store(&zone->woken_us, 0);

    /* a worker that died between taking engine_armed and writing */

    (void) !read(engine_fd, &count, sizeof(count));
    llm_client_detach(c);
    (void) !read(engine_fd, &count, sizeof(count));
    atomic_store(&zone->engine_armed, 0);
    c = attach(0);
    is_int(read(engine_fd, &count, sizeof(count)), sizeof(count),
           "the worker after it wakes the engine in any case");
    is_int(llm_client_submit(c, &q, &retry, &err), LLM_OK, "and asks again");

    is_int(llm_client_drain(c, on_event, NULL, 0), 0, "no event");

    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    usleep(260000);

    ok(!llm_zone_alive(zone), "it has died");
    is_int(llm_client_drain(c, on_event, NULL, 0), 1, "the request fails");
    ok(last.type == LLM_EV_ERROR && last.u.error.status == 503
       && last.slot == 4, "with a 503");

    make_request(&q, 4, 0);
    is_int(llm_client_submit(c, &q, &retry, &err), LLM_ERROR,
           "new ones are refused");
    ok(err.status == 503 && retry > 0, "with 503 and Retry-After");

    llm_client_detach(c);
    zone_close();
}


static void
test_client(void)
{
    int             good;
    uint32_t        i, parallel = 100, retry, n, n_requests, words[5000];
    llm_err_t       err;
    llm_ring_t      down;
    llm_client_t   *c;
    llm_request_t  *big, q;
    const llm_msg_t  *msg;

    zone_open(1, &parallel, 1, 5000);
    c = attach(0);

    big = calloc(1, 1 << 16);
    make_request(big, 1, 0);
    big->head.size = 1 << 16;
    is_int(llm_client_submit(c, big, &retry, &err), LLM_ERROR, "too large");
    is_int(err.status, 413, "413");

    /* fill the ring; then CANCEL and PAUSE still get through */

    for (i = 0; i < 5000; i++) {
        make_request(&q, i, 0);

        if (llm_client_submit(c, &q, &retry, &err) != LLM_OK) {
            break;
        }
    }

    ok(i > 100 && err.status == 503, "%u requests fill the ring: 503", i);
    n = i;

    for (i = 0; i < n; i++) {
        llm_client_signal(c, LLM_MSG_PAUSE, i, q.head.ticket - n + i);
        llm_client_signal(c, LLM_MSG_RESUME, i, q.head.ticket - n + i);

        if (i % 2) {
            llm_client_signal(c, LLM_MSG_CANCEL, i, q.head.ticket - n + i);
        }
    }

    llm_ring_consumer(&down, llm_zone_at(zone, llm_zone_worker(zone, 0)->down));
    memset(words, 0, sizeof(words));
    n_requests = 0;

    for ( ;; ) {
        msg = (const llm_msg_t *) llm_ring_next(&down);

        if (msg == NULL) {
            llm_ring_release(&down);
            llm_client_drain(c, on_event, NULL, 0);

            msg = (const llm_msg_t *) llm_ring_next(&down);
            if (msg == NULL) {
                break;
            }
        }

        n_requests += msg->type == LLM_MSG_REQUEST;
        words[msg->slot] = msg->type;
    }

    for (i = 0, good = 1; i < n; i++) {
        good &= words[i] == (i % 2 ? LLM_MSG_CANCEL : LLM_MSG_RESUME);
    }

    is_int(n_requests, n, "all requests come");
    ok(good, "and of each the last word");

    make_request(&q, 2, 0);
    is_int(llm_client_submit(c, &q, &retry, &err), LLM_ERROR,
           "a slot that is in use");
    is_int(err.status, 500, "is the caller's mistake");

    free(big);
    llm_client_detach(c);
    zone_close();
}


int
main(void)
{
    engine_fd = eventfd(0, EFD_NONBLOCK);

    test_instant();
    test_coming();
    test_sorts();
    test_urgent();
    test_urgent_instant();
    test_bounds();
    test_texts();
    test_figures();
    test_kept();
    test_client();
    test_dead_engine();

    return done_testing();
}
