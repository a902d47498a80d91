/*
 * Is there memory for a model?  A load is asked with made-up figures of free
 * memory; what it takes is counted here from the file's shapes.  What others
 * were promised is not free, whatever the machine says.  And what the log
 * says while it loads, with made-up times.
 */

#include "engine/file/source.h"
#include "engine/model/model_internal.h"
#include "engine/base/machine.h"
#include "engine/model/tower.h"
#include "t/unit/tap.h"
#include "t/unit/tiny_expected.h"
#include "t/unit/tower_build.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static char  path[] = "/tmp/llm-memory-XXXXXX";


static llm_model_t *
load(const char *name, const llm_model_opts_t *o)
{
    int           fd;
    llm_buf_t     b;
    llm_err_t     err;
    llm_model_t  *m;

    llm_buf_init(&b, 0);
    fd = open(path, O_WRONLY|O_TRUNC);

    if (tiny_gguf(tiny_named(name), NULL, &b) != LLM_OK || fd == -1
        || write(fd, b.data, b.len) != (ssize_t) b.len)
    {
        printf("Bail out! %s\n", path);
        exit(1);
    }

    close(fd);
    llm_buf_free(&b);
    m = llm_model_load(path, o, &err);

    if (m == NULL) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }

    return m;
}


/* of float32 matrices in panels of 16 rows; the embedding is the head, too,
   where there is no other */

static size_t
packed(const llm_gguf_t *g)
{
    size_t                    i, n;
    const llm_gguf_tensor_t  *t;

    for (i = 0, n = 0; i < llm_gguf_n_tensors(g); i++) {
        t = llm_gguf_tensor(g, i);

        if (t->n_dims < 2
            || (memcmp(t->name.data, "token_embd", 10) == 0
                && llm_gguf_find_tensor(g, "output.weight")))
        {
            continue;
        }

        n += llm_align(t->ne[1], 16) * t->ne[0] * t->ne[2] * sizeof(float);
    }

    return n;
}


/* bytes of the pages of ctx=64, for a load of the model with these options */

static size_t
begin(llm_load_t *l, const char *name, llm_model_opts_t *o, llm_err_t *err)
{
    llm_kv_opts_t  kv;

    memset(o, 0, sizeof(*o));
    o->device = "cpu";
    o->threads = 1;
    o->batch = 8;
    o->max_seqs = 1;
    o->ctx = 64;

    memset(l, 0, sizeof(*l));
    l->m = load(name, o);
    l->opts = o;
    l->err = err;
    llm_load_kv_opts(l, 0, &kv);

    return l->m->ops->kv_page_size(l->m->exec, &kv) * (64 / LLM_KV_PAGE);
}


static void
test_fits(const char *name)
{
    size_t            weights, page, pages;
    llm_err_t         err;
    llm_load_t        l;
    llm_model_opts_t  o;

    pages = begin(&l, name, &o, &err);
    page = pages / (64 / LLM_KV_PAGE);
    weights = packed(llm_model_gguf(l.m));

    is_int(llm_load_fits(&l, weights + 2 * pages, SIZE_MAX), LLM_OK,
           "%s: weights and a cache of half the rest", name);
    is_int(llm_load_fits(&l, weights + 2 * pages - 1, SIZE_MAX), LLM_ERROR,
           "%s: a byte less", name);
    ok(strstr(err.msg, path) && strstr(err.msg, "for one sequence of ctx=64"),
       "with a message: %s", err.msg);
    ok(l.memory, "it would fit if all were free");

    is_int(llm_load_fits(&l, 0, weights), LLM_ERROR, "%s: no memory", name);
    ok(!l.memory, "it would never fit");

    o.ctx = 0;
    is_int(llm_load_fits(&l, weights + 2 * page, SIZE_MAX), LLM_OK,
           "%s: ctx may be reduced to a page", name);
    is_int(llm_load_fits(&l, weights + 2 * page - 1, SIZE_MAX), LLM_ERROR,
           "%s: not below", name);
    ok(strstr(err.msg, "the KV cache for a page of each kind takes"),
       "the message says a page: %s", err.msg);

    o.whole = 1;
    is_int(llm_load_fits(&l, weights + 2 * page, SIZE_MAX), LLM_ERROR,
           "%s: beside an older engine it is not", name);
    o.whole = 0;

    o.kv_bytes = (size_t) 5 << 30;
    is_int(llm_load_fits(&l, weights + o.kv_bytes, SIZE_MAX), LLM_OK,
           "%s: kv_cache= takes all of the rest", name);
    is_int(llm_load_fits(&l, weights + o.kv_bytes - 1, (size_t) 6 << 30),
           LLM_ERROR, "%s: a byte less", name);
    ok(strstr(err.msg, "of memory, kv_cache is 5120 MiB, and 5")
       && strstr(err.msg, " MiB of 6144 MiB are free"), "%s", err.msg);

    o.kv_bytes = SIZE_MAX;
    is_int(llm_load_fits(&l, SIZE_MAX - 1, SIZE_MAX - 1), LLM_ERROR,
           "%s: sums do not overflow", name);

    llm_model_free(l.m);
}


/* sizes in messages */

static void
test_sizes(void)
{
    size_t  i;
    char    text[LLM_LOAD_SIZE];

    static const struct {
        size_t       bytes;
        int          up;
        const char  *text;
    } sizes[] = {
        { 0, 0, "0 bytes" },
        { 1023, 1, "1023 bytes" },
        { 1024, 0, "1 KiB" },
        { 2047, 0, "1 KiB" },
        { 1025, 1, "2 KiB" },
        { (1 << 20) - 1, 0, "1023 KiB" },
        { (1 << 20) - 1, 1, "1024 KiB" },
        { (1 << 20) + 1, 0, "1 MiB" },
        { (1 << 20) + 1, 1, "2 MiB" },
        { SIZE_MAX, 0, "17592186044415 MiB" },
        { SIZE_MAX, 1, "17592186044415 MiB" }
    };

    for (i = 0; i < llm_nelems(sizes); i++) {
        is_str(llm_load_size(text, sizes[i].bytes, sizes[i].up),
               sizes[i].text, "a size");
    }
}


/* an encoder has no head: the embedding is not packed */

/* what recurrent states of many sequences take is said with them */

static void
test_states(void)
{
    llm_err_t         err;
    llm_load_t        l;
    llm_model_opts_t  o;

    (void) begin(&l, "qwen35", &o, &err);

    is_int(llm_load_fits(&l, 0, SIZE_MAX), LLM_ERROR, "recurrent: no memory");
    ok(strstr(err.msg, "for one sequence of ctx=64 with recurrent states (1)")
       != NULL, "%s", err.msg);

    llm_model_free(l.m);
}


static void
test_encoder(void)
{
    size_t                    weights, pages;
    llm_err_t                 err;
    llm_load_t                l;
    llm_model_opts_t          o;
    const llm_gguf_tensor_t  *t;

    pages = begin(&l, "qwen3", &o, &err);
    l.m->desc.hp.encoder = 1;

    t = llm_gguf_find_tensor(llm_model_gguf(l.m), "output.weight");
    weights = packed(llm_model_gguf(l.m))
              - llm_align(t->ne[1], 16) * t->ne[0] * sizeof(float);

    is_int(llm_load_fits(&l, weights + 2 * pages, SIZE_MAX), LLM_OK,
           "an encoder takes no memory for a head");
    is_int(llm_load_fits(&l, weights + 2 * pages - 1, SIZE_MAX), LLM_ERROR,
           "and no less than for its layers");

    llm_model_free(l.m);
}


/* ---- several models: what one of them was promised is not another's ---- */

typedef struct {
    llm_model_opts_t   opts;
    llm_model_t       *m;               /* NULL: err says why */
    llm_err_t          err;
} loaded_t;


static void *
load_one(void *data)
{
    loaded_t  *l = data;

    memset(&l->err, 0, sizeof(llm_err_t));
    l->m = llm_model_load(path, &l->opts, &l->err);

    return NULL;
}


static void
spill(const char *file, const llm_buf_t *b)
{
    int  fd;

    fd = open(file, O_WRONLY|O_TRUNC);

    if (fd == -1 || write(fd, b->data, b->len) != (ssize_t) b->len) {
        printf("Bail out! %s\n", file);
        exit(1);
    }

    close(fd);
}


/* an encoder is loaded after its model, for which memory is left */

static void
test_tower(llm_devices_t *devices, const llm_model_opts_t *opts)
{
    char               file[] = "/tmp/llm-memory-tower-XXXXXX";
    size_t             with, without;
    llm_buf_t          b;
    llm_err_t          err;
    llm_gguf_t        *g;
    llm_tower_t       *t;
    llm_model_t       *m;
    llm_model_opts_t   o = *opts;
    llm_tower_opts_t   to = { .model = &o };

    close(mkstemp(file));
    llm_buf_init(&b, 0);
    tower_make(&tower_tiny[0], NULL, &b);
    spill(file, &b);
    llm_buf_free(&b);

    o.kv_bytes = 1 << 20;
    m = llm_model_load(path, &o, &err);
    without = llm_promised(devices, NULL);
    llm_model_free(m);

    o.tower = file;
    m = llm_model_load(path, &o, &err);
    with = llm_promised(devices, NULL);
    g = llm_gguf_open_header(file, &err);
    ok(m && g && with - without == llm_tower_memory(g, 0),
       "%zu bytes are promised to its encoder", with - without);
    t = llm_tower_load(file, NULL, &to, &err);
    ok(t && with - without > llm_tower_info(t)->n_bytes,
       "more than the tensors have");

    if (m) {
        llm_model_towers_loaded(m);
        is_int((int64_t) llm_promised(devices, NULL), (int64_t) without,
               "and no more once it is there");
    }

    llm_tower_free(t);
    llm_gguf_close(g);
    llm_model_free(m);

    o.kv_bytes = llm_machine_memory("");
    m = llm_model_load(path, &o, &err);
    ok(m == NULL && strstr(err.msg, "its weights and its encoder take"), "%s",
       err.msg);
    llm_model_free(m);

    o.tower = "/no/such/file";
    m = llm_model_load(path, &o, &err);
    ok(m == NULL && strstr(err.msg, "/no/such/file"), "%s", err.msg);
    (void) unlink(file);
}


/* encoders of sound have more than their tensors, too */

static void
test_ears(void)
{
    char          file[] = "/tmp/llm-memory-ear-XXXXXX";
    size_t        i, n;
    llm_buf_t     b;
    llm_err_t     err;
    llm_gguf_t   *g;
    llm_tower_t  *t;

    llm_tower_opts_t  to = { .sound = 1 };

    close(mkstemp(file));

    for (i = 0; i < llm_nelems(tower_ears); i++) {
        llm_buf_init(&b, 0);
        tower_make(&tower_ears[i], NULL, &b);
        spill(file, &b);
        llm_buf_free(&b);
        g = llm_gguf_open_header(file, &err);
        t = llm_tower_load(file, NULL, &to, &err);
        n = g ? llm_tower_memory(g, 0) : 0;

        /* keys and values of all rows are not the half of it */

        ok(t && n > llm_tower_info(t)->n_bytes
                    + 2 * (size_t) llm_tower_info(t)->max_patches
                      * 4 * 16 * sizeof(uint16_t), "%s: %zu bytes",
           tower_ears[i].name, n);
        llm_tower_free(t);
        llm_gguf_close(g);
    }

    (void) unlink(file);
}


/* what drafts is loaded after its model, too; here with the model's own file.
   nginx -t counts both */

static void
test_draft(llm_devices_t *devices, const llm_model_opts_t *opts)
{
    char               file[] = "/tmp/llm-memory-tower-XXXXXX";
    size_t             with, without, weights, pages;
    llm_buf_t          b;
    llm_err_t          err;
    llm_gguf_t        *g;
    llm_model_t       *m, *d;
    llm_kv_opts_t      kv;
    llm_model_opts_t   o = *opts;
    llm_load_t         l = { .opts = &o };

    o.kv_bytes = 1 << 20;
    m = llm_model_load(path, &o, &err);
    without = llm_promised(devices, NULL);
    l.m = m;
    llm_load_kv_opts(&l, 0, &kv);
    pages = m->ops->kv_page_size(m->exec, &kv) * (64 / LLM_KV_PAGE);
    weights = packed(llm_model_gguf(m));
    llm_model_free(m);

    o.drafts = 1;
    o.draft = path;
    m = llm_model_load(path, &o, &err);
    with = llm_promised(devices, NULL);
    ok(m && with - without >= weights + 2 * pages
       && with - without < weights + 2 * pages + (16 << 20),
       "%zu bytes are promised to what drafts, %zu of weights", with - without,
       weights);

    if (m) {
        llm_model_draft_begins(m);
        is_int((int64_t) llm_promised(devices, NULL), (int64_t) without,
               "and no more when its load begins");
        o.drafts = 0;
        o.kv_bytes = 0;
        d = llm_model_load(path, &o, &err);
        ok(d != NULL, "which finds them");
        llm_model_free(d);
        o.drafts = 1;
    }

    llm_model_free(m);

    o.kv_bytes = llm_machine_memory("");
    m = llm_model_load(path, &o, &err);
    ok(m == NULL && strstr(err.msg, "its weights and what drafts for it take"),
       "%s", err.msg);
    llm_model_free(m);

    close(mkstemp(file));
    llm_buf_init(&b, 0);
    tower_make(&tower_tiny[0], NULL, &b);
    spill(file, &b);
    llm_buf_free(&b);

    o.tower = file;
    g = llm_source_open_header(path, &err);
    is_int(llm_model_fits(g, &o, &err), LLM_ERROR, "nginx -t counts all");
    ok(strstr(err.msg, "its weights, its encoder and what drafts for it take "),
       "%s", err.msg);
    o.kv_bytes -= (size_t) 256 << 20;
    is_int(llm_model_fits(g, &o, &err), LLM_OK, "and they fit with less");
    o.draft = "/no/such/file";
    is_int(llm_model_fits(g, &o, &err), LLM_ERROR, "a file that is none");
    ok(strstr(err.msg, "/no/such/file") != NULL, "is named: %s", err.msg);
    llm_gguf_close(g);

    o.tower = NULL;
    o.kv_bytes = 1 << 20;
    m = llm_model_load(path, &o, &err);
    ok(m == NULL && strcmp(err.code, LLM_MEMORY_ERROR) != 0,
       "which no memory would mend");
    llm_model_free(m);
    (void) unlink(file);
}


/* without ctx= the model is loaded with what fits, and what drafts is, too: a
   page each has to fit, not all that the files say */

static void
test_draft_long(const llm_model_opts_t *opts)
{
    char               file[] = "/tmp/llm-memory-long-XXXXXX";
    char              *at;
    uint32_t           len = 1 << 27;
    llm_buf_t          b;
    llm_err_t          err;
    llm_gguf_t        *g;
    llm_model_opts_t   o = *opts;

    static const char  key[] = ".context_length";

    close(mkstemp(file));
    llm_buf_init(&b, 0);
    (void) tiny_gguf(tiny_named("qwen3"), NULL, &b);
    at = memmem(b.data, b.len, key, sizeof(key) - 1);

    /* behind the key its type */

    memcpy(at + sizeof(key) - 1 + 4, &len, sizeof(len));
    spill(file, &b);
    llm_buf_free(&b);

    o.ctx = 0;
    o.kv_bytes = 0;
    g = llm_source_open_header(file, &err);
    ok(g && llm_model_fits(g, &o, &err) == LLM_OK,
       "a context of %u tokens: is made shorter", len);

    o.drafts = 1;
    o.draft = file;
    ok(g && llm_model_fits(g, &o, &err) == LLM_OK, "also with what drafts");
    llm_gguf_close(g);
    (void) unlink(file);
}


static void
test_promised(void)
{
    size_t          unused;
    uint32_t        i, n;
    loaded_t        l[2];
    pthread_t       t[2];
    llm_kv_t       *kv;
    llm_devices_t  *devices;

    llm_model_free(load("qwen3", &(llm_model_opts_t) { .device = "cpu",
                        .threads = 1, .batch = 8, .max_seqs = 1, .ctx = 64 }));

    devices = llm_devices_create();
    memset(l, 0, sizeof(l));
    l[0].opts.device = "cpu";
    l[0].opts.threads = 1;
    l[0].opts.batch = 8;
    l[0].opts.max_seqs = 1;
    l[0].opts.ctx = 64;
    l[0].opts.kv_bytes = llm_machine_memory_free("") / 10 * 6;
    l[0].opts.devices = devices;
    l[1].opts = l[0].opts;

    (void) load_one(&l[0]);
    (void) load_one(&l[1]);
    ok(l[0].m && l[1].m == NULL, "two caches of 60 %% of the memory: one");
    is_str(l[1].err.code, LLM_MEMORY_ERROR, "there may be memory later");
    ok(strstr(l[1].err.msg, "are free, but other models will take "), "%s",
       l[1].err.msg);

    /* pages that are used are none that will be */

    kv = l[0].m->at->kv[0];
    unused = l[0].m->ops->kv_unused(l[0].m->exec, kv);
    ok(unused > l[0].opts.kv_bytes / 100 * 99, "no page is in use");
    is_int((int64_t) llm_promised(devices, NULL), (int64_t) unused,
           "all of them are promised");
    is_int((int64_t) llm_promised(devices, l[0].m), 0, "to nobody else");
    l[0].m->ops->kv_copy(l[0].m->exec, kv, 0, 1);
    ok(llm_promised(devices, NULL) < unused, "what is used is promised no more");

    llm_model_free(l[0].m);
    is_int((int64_t) llm_promised(devices, NULL), 0, "without it nothing is");
    (void) load_one(&l[1]);
    ok(l[1].m != NULL, "and there is memory for the other one");
    llm_model_free(l[1].m);
    test_tower(devices, &l[0].opts);
    test_ears();
    test_draft(devices, &l[0].opts);
    test_draft_long(&l[0].opts);

    /* at once */

    for (i = 0; i < 2; i++) {
        if (pthread_create(&t[i], NULL, load_one, &l[i]) != 0) {
            printf("Bail out! no thread\n");
            exit(1);
        }
    }

    for (i = 0, n = 0; i < 2; i++) {
        (void) pthread_join(t[i], NULL);
        n += l[i].m != NULL;
    }

    is_int(n, 1, "two loads at once: one");
    llm_model_free(l[0].m);
    llm_model_free(l[1].m);
    llm_devices_free(devices);
}


static void
test_progress(void)
{
    char            line[128];
    llm_progress_t  p = { 5000000, 5000000 };

    is_int(llm_progress_line(&p, 14999999, 1 << 30, 4ull << 30, line,
                             sizeof(line)), LLM_ABSENT,
           "nothing is said for ten seconds");
    is_int(llm_progress_line(&p, 15000000, 1 << 30, 4ull << 30, line,
                             sizeof(line)), LLM_OK, "then a line");
    is_str(line, "1.00 of 4.00 GiB loaded, 102 MiB/s", "with the speed");
    is_int(llm_progress_line(&p, 24999999, 2ull << 30, 4ull << 30, line,
                             sizeof(line)), LLM_ABSENT,
           "nothing for another ten");
    is_int(llm_progress_line(&p, 45000000, 4ull << 30, 4ull << 30, line,
                             sizeof(line)), LLM_OK, "the next");
    is_str(line, "4.00 of 4.00 GiB loaded, 102 MiB/s", "of the whole time");
    ok(llm_progress_speed(&p, 5000000, 0) == 0.0, "no time has passed");
}


/*
 * With less memory than a slab of weights wants, but enough for the weights:
 * the limit is of addresses, so that it holds where groups cannot be made.
 */

static void
test_narrow(void)
{
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
    skip("a sanitizer takes addresses of its own");
#else
    int            status;
    long           pages;
    FILE          *f;
    pid_t          pid;
    struct rlimit  limit;

    pid = fork();

    if (pid == 0) {
        f = fopen("/proc/self/statm", "r");

        if (f == NULL || fscanf(f, "%ld", &pages) != 1) {
            _exit(1);
        }

        limit.rlim_cur = (rlim_t) pages * (rlim_t) sysconf(_SC_PAGESIZE)
                         + (48 << 20);
        limit.rlim_max = limit.rlim_cur;

        if (setrlimit(RLIMIT_AS, &limit) == -1) {
            _exit(1);
        }

        llm_model_free(load("qwen3", &(llm_model_opts_t) { .device = "cpu",
                            .threads = 1, .batch = 8, .max_seqs = 1,
                            .ctx = 64 }));
        _exit(0);
    }

    ok(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0,
       "48 MB are enough for a small model");
#endif
}


int
main(void)
{
    int  fd;

    fd = mkstemp(path);
    close(fd);

    test_fits("qwen3");
    test_fits("qwen3moe");
    test_states();
    test_encoder();
    test_promised();
    test_narrow();
    test_progress();
    test_sizes();
    unlink(path);

    return done_testing();
}
