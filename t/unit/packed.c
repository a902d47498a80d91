/*
 * Packed weights in a file: a load writes them, later loads map them and give
 * the same bits; a file of another model, time, version or layout, or that is
 * damaged, is replaced and never trusted; and the mapped model file takes no
 * memory once its weights were packed.
 */

#define _GNU_SOURCE

#include "engine/model/model_internal.h"
#include "engine/base/machine.h"
#include "t/unit/model_run.h"
#include "t/unit/tap.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define DEMO   "models/demo.gguf"
#define N_IDS  24

static char      dir[] = "/tmp/llm-panels-XXXXXX";
static char      model[64];             /* a copy of DEMO */
static char      kept[300];             /* its file of packed weights */
static char      said[2048];            /* the log of the last load, which its
                                           writer adds to: read when that has
                                           ended */
static pthread_mutex_t  saying = PTHREAD_MUTEX_INITIALIZER;
static int32_t   ids[N_IDS];
static float    *want;                  /* logits without such a file */
static uint32_t  n_vocab;
static int       overtakes;             /* 1: another writer is done just before
                                           the next lock */


/* the engine's lock */

int
flock(int fd, int how)
{
    char  temp[310];

    if (overtakes) {
        overtakes = 0;
        snprintf(temp, sizeof(temp), "%s.new", kept);
        (void) rename(temp, kept);
    }

    return (int) syscall(SYS_flock, fd, how);
}


static void
log_line(void *data, int level, const char *msg)
{
    size_t  n;

    (void) data;

    pthread_mutex_lock(&saying);
    n = strlen(said);
    snprintf(said + n, sizeof(said) - n, "%s%d %s", n ? "; " : "", level, msg);
    pthread_mutex_unlock(&saying);
}


static void __attribute__((noreturn))
bail(const char *what)
{
    printf("Bail out! %s\n", what);
    exit(1);
}


static llm_model_t *
load(const char *packed, const char *device)
{
    llm_err_t         err;
    llm_model_t      *m;
    llm_model_opts_t  o;

    memset(&o, 0, sizeof(o));
    o.device = device;
    o.threads = 2;
    o.ctx = 64;
    o.batch = 32;
    o.max_seqs = 1;
    o.packed = packed;
    o.log = log_line;
    said[0] = '\0';

    m = llm_model_load(model, &o, &err);

    if (m == NULL) {
        bail(err.msg);
    }

    return m;
}


static float *
computed(llm_model_t *m, llm_err_t *err)
{
    run_seq_t  s;

    memset(&s, 0, sizeof(s));
    memset(err, 0, sizeof(*err));
    s.ids = ids;
    s.n = N_IDS;
    s.logits = calloc((size_t) N_IDS * n_vocab, sizeof(float));

    if (s.logits == NULL) {
        bail("no memory");
    }

    if (run_chunks(m, &s, 7, 1, err) != LLM_OK) {
        free(s.logits);
        return NULL;
    }

    return s.logits;
}


static void
right(llm_model_t *m, const char *what)
{
    float      *got;
    llm_err_t   err;

    got = computed(m, &err);
    ok(got && memcmp(got, want, (size_t) N_IDS * n_vocab * sizeof(float)) == 0,
       "%s: the same bits", what);
    free(got);
}


/* the only file of the folder that ends in .packed; files of other names are
   counted */

static int
others(void)
{
    DIR            *d;
    int             n;
    size_t          len;
    struct dirent  *e;

    d = opendir(dir);
    n = 0;

    while (d && (e = readdir(d)) != NULL) {
        len = strlen(e->d_name);

        if (len > 7 && strcmp(e->d_name + len - 7, ".packed") == 0) {
            snprintf(kept, sizeof(kept), "%s/%s", dir, e->d_name);

        } else if (e->d_name[0] != '.' && strcmp(e->d_name, "m.gguf") != 0) {
            n++;
        }
    }

    if (d) {
        closedir(d);
    }

    return n;
}


/* loads with the folder: is the file mapped, or written? */

static void
loads(const char *what, int mapped)
{
    llm_model_t  *m;
    struct stat   before, after;

    memset(&before, 0, sizeof(before));
    (void) stat(kept, &before);

    m = load(dir, "cpu");
    llm_model_wait_packed(m);

    is_int(m->packed.map != NULL, mapped, "%s: %s", what,
           mapped ? "mapped" : "packed anew");
    is_int(others(), 0, "no file but that");
    ok(stat(kept, &after) == 0
       && (before.st_ino == after.st_ino) == mapped,
       "and the file is %s", mapped ? "the same" : "a new one");
    ok(mapped || strstr(said, "packed weights are kept in"), "%s", said);
    right(m, what);

    llm_model_free(m);
}


static void
copy_model(void)
{
    int     from, to;
    ssize_t n;
    char    buf[65536];

    from = open(DEMO, O_RDONLY);
    to = open(model, O_WRONLY|O_CREAT|O_TRUNC, 0600);

    if (from == -1 || to == -1) {
        bail(model);
    }

    while ((n = read(from, buf, sizeof(buf))) > 0) {
        if (write(to, buf, (size_t) n) != n) {
            bail(model);
        }
    }

    close(from);
    close(to);
}


/* changes a byte of the kept file */

static void
spoil(off_t at)
{
    int   fd;
    char  c;

    fd = open(kept, O_RDWR);

    if (fd == -1 || pread(fd, &c, 1, at) != 1) {
        bail(kept);
    }

    c = (char) (c + 1);

    if (pwrite(fd, &c, 1, at) != 1) {
        bail(kept);
    }

    close(fd);
}


/* of these many bytes of the mapped model file, the ones in memory of this
   process */

static size_t
resident(const llm_model_t *m)
{
    char      line[512];
    FILE     *f;
    size_t    kb, sum;
    int       here;
    uint64_t  start, end, at;

    at = (uint64_t) (uintptr_t) m->desc.layers[0].tensors[LLM_LT_DOWN]
             .t->data;
    f = fopen("/proc/self/smaps", "r");
    here = 0;
    sum = 0;

    while (f && fgets(line, sizeof(line), f)) {

        if (sscanf(line, "%lx-%lx ", &start, &end) == 2) {
            here = at >= start && at < end;
        }

        if (here && sscanf(line, "Rss: %zu kB", &kb) == 1) {
            sum += kb << 10;
        }
    }

    if (f) {
        fclose(f);
    }

    return sum;
}


/* what stays is the vocabulary and pages at the ends of tensors */

static void
test_memory(void)
{
    size_t        n, embd;
    llm_model_t  *m;

    m = load(NULL, "cpu");
    n = resident(m);
    embd = m->desc.global[LLM_GT_TOKEN_EMBD]->size;

    ok(n < (llm_gguf_size(m->gguf) - embd) / 2,
       "of the file's %zu KiB, %zu are in memory", llm_gguf_size(m->gguf) >> 10,
       n >> 10);
    is_str(strstr(said, "packed") ? said : "", "", "no word of packed weights");

    want = computed(m, &(llm_err_t) { 0 });
    llm_model_free(m);
}


static void
test_damage(void)
{
    off_t         at;
    struct stat   st;

    static const char  *const what[] = { "another key", "another head",
                                         "a row out of the file" };

    for (at = 0; at < 3; at++) {
        spoil(at == 0 ? 200 : at == 1 ? 4096 + 8 : 4096 + 64 + 16 + 7);
        loads(what[at], 0);
    }

    if (stat(kept, &st) == -1 || truncate(kept, st.st_size - 1) == -1) {
        bail(kept);
    }

    loads("a byte less", 0);

    if (truncate(kept, 100) == -1) {
        bail(kept);
    }

    loads("100 bytes", 0);
    loads("once more", 1);

    /* a row of another weight: that weight is packed */

    spoil(4096 + 64 + 4);
    loads("a row of another shape", 1);
    (void) unlink(kept);
    loads("no file", 0);
}


static void
test_model_changed(void)
{
    struct timespec  times[2] = { { 1000, 0 }, { 1000, 7 } };

    if (utimensat(AT_FDCWD, model, times, 0) == -1) {
        bail(model);
    }

    loads("a model file of another time", 0);
    loads("of that time", 1);
}


/* truncated while it is mapped: an error of the step */

static void
test_truncated(void)
{
    float        *got;
    llm_err_t     err;
    llm_model_t  *m;

#ifdef __SANITIZE_THREAD__
    skip("TSan takes the mmap() of the fault's handler for a write");
    return;
#endif

    m = load(dir, "cpu");
    ok(m->packed.map != NULL, "mapped");

    if (truncate(kept, 8192) == -1) {
        bail(kept);
    }

    got = computed(m, &err);
    ok(got == NULL && strcmp(err.code, LLM_FILE_ERROR) == 0
       && strstr(err.msg, ".packed: a page could not be read"),
       "truncated in use: %s", err.msg);
    free(got);
    llm_model_free(m);

    loads("after that", 0);
}


static void
test_writing(void)
{
    int           fd, mode;
    char          temp[310];
    struct stat   st;
    llm_model_t  *m;

    (void) unlink(kept);
    m = load(dir, "cpu");
    llm_model_free(m);
    is_int(others(), 0, "given up or complete: nothing half");
    (void) unlink(kept);

    /* another process writes it */

    snprintf(temp, sizeof(temp), "%s.new", kept);
    fd = open(temp, O_RDWR|O_CREAT, 0600);
    (void) flock(fd, LOCK_EX);
    m = load(dir, "cpu");
    llm_model_wait_packed(m);
    ok(access(kept, F_OK) == -1 && access(temp, F_OK) == 0,
       "a file that another one writes is left alone");
    is_int(strstr(said, "packed weights") == NULL, 1, "without a word");
    right(m, "beside another writer");
    llm_model_free(m);
    close(fd);

    /* it has been faster: the file that was opened has its own name now */

    fd = open(temp, O_RDWR|O_CREAT, 0600);
    is_int(write(fd, "whole", 5), 5, "another writer's file");
    close(fd);
    overtakes = 1;
    m = load(dir, "cpu");
    llm_model_wait_packed(m);
    ok(stat(kept, &st) == 0 && st.st_size == 5,
       "a file that another one has completed is left alone");
    is_int(others(), 0, "and no other one is made");
    llm_model_free(m);
    (void) unlink(kept);
    close(open(temp, O_RDWR|O_CREAT, 0600));

    /* what a killed process left */

    loads("after a writer that was killed", 0);

    m = load("/nonexistent/folder", "cpu");
    llm_model_wait_packed(m);
    ok(strstr(said, "packed weights are not kept: /nonexistent/folder/"),
       "a folder that is missing: %s", said);
    right(m, "without a folder");
    llm_model_free(m);

    if (geteuid() != 0) {
        mode = chmod(kept, 0);
        m = load(dir, "cpu");
        ok(mode == 0 && strstr(said, "packed weights are not used"),
           "a file that may not be read: %s", said);
        llm_model_free(m);
        (void) chmod(kept, 0600);
    }

    m = load(dir, "reference");
    ok(strstr(said, "is not used: the device reference packs no weights"),
       "another device: %s", said);
    llm_model_free(m);
}


int
main(void)
{
    uint32_t          i;
    llm_gguf_t       *g;
    llm_err_t         err;
    llm_hparams_t     hp;

    if (mkdtemp(dir) == NULL) {
        bail(dir);
    }

    snprintf(model, sizeof(model), "%s/m.gguf", dir);
    copy_model();

    g = llm_gguf_open_header(model, &err);

    if (g == NULL || llm_model_check(g, &hp, &err) != LLM_OK) {
        bail(err.msg);
    }

    n_vocab = hp.n_vocab;
    llm_gguf_close(g);

    for (i = 0; i < N_IDS; i++) {
        ids[i] = (int32_t) (i * 37 % n_vocab);
    }

    test_memory();
    loads("the first load", 0);
    loads("the second", 1);
    test_damage();
    test_model_changed();
    test_truncated();
    test_writing();

    free(want);
    (void) unlink(kept);
    (void) unlink(model);
    (void) rmdir(dir);

    return done_testing();
}
