/*
 * What a core dump leaves out: mapped files, and the CPU backend's weights,
 * KV pages and activations, which the kernel marks "dd" in /proc/self/smaps.
 */

#define _GNU_SOURCE

#include "engine/gguf/map.h"
#include "kernels/cpu/cpu.h"
#include "t/unit/tap.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>


/* whether each mapping in a range has the flag; -1: a part is not mapped */

static int
left_out(const void *data, size_t len)
{
    int            inside, all;
    char           line[512];
    FILE          *f;
    size_t         found;
    unsigned long  from, to, start, end;

    f = fopen("/proc/self/smaps", "r");
    if (f == NULL) {
        perror("/proc/self/smaps");
        exit(1);
    }

    start = (unsigned long) data;
    end = start + len;
    inside = 0;
    all = 1;
    found = 0;

    while (fgets(line, sizeof(line), f)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2) {
            inside = from < end && to > start;

            if (inside) {
                found += llm_min(to, end) - llm_max(from, start);
            }

        } else if (inside && strncmp(line, "VmFlags:", 8) == 0) {
            all = all && strstr(line, " dd") != NULL;
        }
    }

    fclose(f);

    return found == len ? all : -1;
}


static void
test_file(const char *name)
{
    int           fd;
    llm_err_t     err;
    llm_map_t    *m;
    struct stat   st;

    fd = open(name, O_RDONLY);

    if (fd == -1 || fstat(fd, &st) == -1) {
        perror(name);
        exit(1);
    }

    m = llm_map_open(fd, (size_t) st.st_size, name, &err);

    ok(m && left_out(llm_map_data(m), (size_t) st.st_size) == 1,
       "a mapped model");

    if (m) {
        llm_map_close(m);
    }

    close(fd);
}


static void
test_kv(void)
{
    llm_kv_t        *kv;
    llm_exec_t      *exec;
    llm_err_t        err;
    llm_kv_opts_t    o;
    llm_exec_opts_t  opts;

    memset(&opts, 0, sizeof(opts));
    opts.threads = 1;
    opts.index = -1;
    opts.max_tokens = 16;
    opts.max_seqs = 1;
    opts.max_pages = 64;

    if (llm_ops_cpu.open(&exec, &opts, &err) != LLM_OK) {
        ok(0, "the CPU backend: %s", err.msg);
        return;
    }

    memset(&o, 0, sizeof(o));
    o.n_layers = 4;
    o.n_pages = 64;
    o.n_kv_heads = 4;
    o.head_dim_k = 64;
    o.head_dim_v = 64;
    o.n_heads = 4;

    kv = exec->ops->kv_create(exec, &o, &err);

    ok(kv && left_out(kv->data, kv->size) == 1, "a KV cache");

    exec->ops->kv_free(exec, kv);
    exec->ops->close(exec);
}


int
main(void)
{
    void    *p;
    size_t   size;

    size = (size_t) 8 << 20;
    p = mmap(NULL, size, PROT_READ, MAP_PRIVATE|MAP_ANONYMOUS, -1, 0);

    ok(p != MAP_FAILED && left_out(p, size) == 0,
       "other memory is in a core dump");

    (void) munmap(p, size);

    p = llm_cpu_alloc(size, 1);
    ok(p && left_out(p, size) == 1, "weights, in huge pages");
    llm_cpu_free(p, size);

    test_file("models/demo.gguf");
    test_kv();

    return done_testing();
}
