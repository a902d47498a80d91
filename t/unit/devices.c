/*
 * Models that share a device: they have one pool, with as many threads as the
 * model that wants most; each gives the bits that it gives alone, after steps
 * of others, during loads, and after others were freed; a step runs in the
 * middle of a load; and the device is closed with its last model.
 */

#define _GNU_SOURCE

#include "engine/base/thread.h"
#include "t/unit/model_run.h"
#include "t/unit/tap.h"

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define MODEL  "models/demo.gguf"
#define N_IDS  40

static int32_t   ids[N_IDS];
static uint32_t  n_vocab;

typedef struct {
    llm_model_t   *other;               /* runs in the middle of the load */
    const float   *want;
    uint32_t       n_steps;
    uint32_t       n_wrong;
} middle_t;

typedef struct {
    llm_devices_t  *devices;
    pthread_t       thread;
    _Atomic int     over;               /* the loader sets it */
} loader_t;


/* threads of this process that are called llm-compute */

static uint32_t
helpers(void)
{
    DIR            *dir;
    FILE           *f;
    char            path[300], name[32];
    uint32_t        n;
    struct dirent  *e;

    dir = opendir("/proc/self/task");
    n = 0;

    while (dir && (e = readdir(dir)) != NULL) {
        snprintf(path, sizeof(path), "/proc/self/task/%s/comm", e->d_name);
        f = fopen(path, "r");

        if (f && fgets(name, sizeof(name), f)) {
            n += strcmp(name, "llm-compute\n") == 0;
        }

        if (f) {
            fclose(f);
        }
    }

    if (dir) {
        closedir(dir);
    }

    return n;
}


/* a thread names itself when it begins */

static void
has_helpers(uint32_t n, const char *what)
{
    uint32_t  i;

    for (i = 0; i < 5000 && helpers() != n; i++) {
        usleep(1000);
    }

    is_int(helpers(), n, "%s", what);
}


static llm_model_t *
load(llm_devices_t *devices, uint32_t threads, uint32_t batch,
    middle_t *middle, void (*progress)(void *data, int permille))
{
    llm_err_t         err;
    llm_model_t      *m;
    llm_model_opts_t  o;

    memset(&o, 0, sizeof(o));
    o.device = "cpu";
    o.devices = devices;
    o.threads = threads;
    o.ctx = 64;
    o.batch = batch;
    o.max_seqs = 1;
    o.progress = progress;
    o.progress_data = middle;

    m = llm_model_load(MODEL, &o, &err);

    if (m == NULL) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }

    return m;
}


/* the logits of the whole sequence, in steps of at most so many rows */

static float *
computed(llm_model_t *m, uint32_t rows)
{
    llm_err_t  err;
    run_seq_t  s;

    memset(&s, 0, sizeof(s));
    s.ids = ids;
    s.n = N_IDS;
    s.logits = calloc((size_t) N_IDS * n_vocab, sizeof(float));

    if (s.logits == NULL || run_chunks(m, &s, rows, 1, &err) != LLM_OK) {
        printf("Bail out! %s\n", s.logits ? err.msg : "no memory");
        exit(1);
    }

    return s.logits;
}


static int
is_same(llm_model_t *m, uint32_t rows, const float *want)
{
    int     same;
    float  *got;

    got = computed(m, rows);
    same = memcmp(got, want, (size_t) N_IDS * n_vocab * sizeof(float)) == 0;
    free(got);

    return same;
}


static void
run_in_the_middle(void *data, int permille)
{
    middle_t  *middle = data;

    (void) permille;

    middle->n_steps++;
    middle->n_wrong += !is_same(middle->other, 16, middle->want);
}


static void *
load_often(void *data)
{
    uint32_t   i;
    loader_t  *l = data;

    for (i = 0; i < 3; i++) {
        llm_model_free(load(l->devices, 1 + i, 8 << i, NULL, NULL));
    }

    atomic_store(&l->over, 1);

    return NULL;
}


int
main(void)
{
    float          *want;
    uint32_t        i, n, wrong;
    loader_t        l;
    middle_t        middle;
    llm_model_t    *a, *b, *c;
    llm_devices_t  *devices;

    for (i = 0; i < N_IDS; i++) {
        ids[i] = (int32_t) (5 + i * 7 % 200);
    }

    a = load(NULL, 1, 64, NULL, NULL);
    n_vocab = llm_model_hparams(a)->n_vocab;
    want = computed(a, N_IDS);
    llm_model_free(a);
    has_helpers(0, "one thread, alone");

    a = load(NULL, 2, 64, NULL, NULL);
    b = load(NULL, 2, 64, NULL, NULL);
    has_helpers(2, "two models that share nothing have two pools");
    llm_model_free(a);
    llm_model_free(b);

    devices = llm_devices_create();
    a = load(devices, 2, 64, NULL, NULL);
    b = load(devices, 2, 16, NULL, NULL);
    has_helpers(1, "two that share a device have one");
    ok(is_same(a, 64, want) && is_same(b, 16, want) && is_same(a, 7, want),
       "their bits are those of one alone");

    c = load(devices, 3, 32, NULL, NULL);
    has_helpers(2, "a third that wants more threads gets them");
    ok(is_same(c, 32, want) && is_same(a, 64, want) && is_same(b, 1, want)
       && is_same(c, 5, want), "which changes no bits");

    memset(&middle, 0, sizeof(middle));
    middle.other = b;
    middle.want = want;
    llm_model_free(a);
    a = load(devices, 1, 512, &middle, run_in_the_middle);
    ok(middle.n_steps > 10, "%u times others run in the middle of a load",
       (unsigned) middle.n_steps);
    is_int(middle.n_wrong, 0, "and give their bits");
    ok(is_same(a, 512, want), "so does what was loaded");

    memset(&l, 0, sizeof(l));
    l.devices = devices;

    if (llm_thread_start(&l.thread, load_often, &l) != 0) {
        printf("Bail out! no thread\n");
        return 1;
    }

    for (n = 0, wrong = 0; n == 0 || !atomic_load(&l.over); n++) {
        wrong += !is_same(c, 8, want) + !is_same(a, 64, want);
    }

    pthread_join(l.thread, NULL);
    is_int(wrong, 0, "while a thread loads and frees others, too");

    llm_model_free(a);
    llm_model_free(b);
    ok(is_same(c, 32, want), "the last one still runs");
    has_helpers(2, "on its device");
    llm_model_free(c);
    has_helpers(0, "which is closed with it");

    a = load(devices, 2, 64, NULL, NULL);
    ok(is_same(a, 64, want), "and opened again");
    llm_model_free(a);
    llm_devices_free(devices);
    free(want);

    return done_testing();
}
