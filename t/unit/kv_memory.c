/*
 * The memory of a large KV cache on the CPU: huge pages where a head's tokens
 * fill them, small ones where heads begin, whatever the system prefers; few
 * tokens begin huge pages of few heads, and no head's memory is another's.
 */

#include "kernels/cpu/cpu.h"
#include "t/unit/ops.h"
#include "t/unit/tap.h"

#include <unistd.h>

#define SYSTEM   "/sys/kernel/mm/transparent_hugepage/enabled"
#define LAYERS   4
#define HEADS    8
#define DIM      128
#define PAGES    4096
#define BEGUN    24                     /* pages of a head that are written */
#define LINE     512


static llm_kv_t *
cache(llm_exec_t *exec, uint32_t n_pages)
{
    llm_kv_opts_t  o = { .n_layers = LAYERS, .n_pages = n_pages,
                         .n_kv_heads = HEADS, .n_heads = HEADS,
                         .head_dim_k = DIM, .head_dim_v = DIM };

    return exec->ops->kv_create(exec, &o, NULL);
}


/* is the word among the kernel's flags of the mapping at p?  -1: it does not
   say */

static int
mapping_has(const void *p, const char *word)
{
    int            here, has;
    char           line[LINE];
    FILE          *f;
    unsigned long  start, end;

    f = fopen("/proc/self/smaps", "r");
    if (f == NULL) {
        return -1;
    }

    here = 0;
    has = -1;

    while (fgets(line, sizeof(line), f)) {
        if (sscanf(line, "%lx-%lx ", &start, &end) == 2) {
            here = (unsigned long) p >= start && (unsigned long) p < end;

        } else if (here && strncmp(line, "VmFlags:", 8) == 0) {
            has = strstr(line, word) != NULL;
        }
    }

    fclose(f);

    return has;
}


static void
test_pages(const llm_kv_t *kv)
{
    int                        huge, small;
    size_t                     page;
    uint32_t                   i, h;
    const uint16_t            *from;
    const llm_cpu_kv_layer_t  *l;

    if (access(SYSTEM, R_OK) != 0) {
        skip("no " SYSTEM ": the kernel has no huge pages");
        return;
    }

    huge = small = 0;

    for (i = 0; i < LAYERS; i++) {
        l = &kv->layers[i];
        page = l->page;

        for (h = 0; h < HEADS; h++) {
            from = l->data + h * l->head;

            if (mapping_has(from, " hg") == -1) {
                skip("the kernel does not say which pages a mapping has");
                return;
            }

            huge += mapping_has(from + PAGES / 2 * page, " hg");
            small += mapping_has(from, " nh");
        }
    }

    ok(huge == LAYERS * HEADS, "%d of %d heads have huge pages", huge,
       LAYERS * HEADS);
    ok(small >= LAYERS * HEADS - 1, "%d of them begin in small ones", small);
}


/* the head's first pages, which no other one may change */

static int
marked(const llm_kv_t *kv, int write)
{
    int                        same;
    size_t                     n;
    uint32_t                   i, h, mark;
    uint16_t                  *at[2];
    const llm_cpu_kv_layer_t  *l;

    same = 1;

    for (i = 0; i < LAYERS; i++) {
        l = &kv->layers[i];

        for (h = 0; h < HEADS; h++) {
            mark = 1 + i * HEADS + h;
            n = BEGUN * l->page;
            at[0] = l->data + h * l->head;
            at[1] = at[0] + (PAGES - 1) * l->page;

            if (write) {
                memset(at[0], (int) mark, n * sizeof(uint16_t));
                memset(at[1], (int) mark, l->page * sizeof(uint16_t));
            }

            same &= at[0][0] == mark * 0x101 && at[0][n - 1] == mark * 0x101
                    && at[1][0] == mark * 0x101
                    && at[1][l->page - 1] == mark * 0x101;
        }
    }

    return same && (uint8_t *) at[1] + l->page * sizeof(uint16_t)
                   <= (uint8_t *) kv->data + kv->mapped;
}


static void
test_large(llm_exec_t *exec)
{
    size_t     used, size;
    llm_kv_t  *kv;

    kv = cache(exec, PAGES);

    if (kv == NULL) {
        skip("no memory for a large cache");
        return;
    }

    size = exec->ops->kv_page_size(exec, &kv->opts);

    ok(kv->size == size * PAGES, "a cache has the size of its pages");
    ok(exec->ops->kv_unused(exec, kv) == kv->size, "none of it is in use");
    test_pages(kv);

    ok(marked(kv, 1) && marked(kv, 0), "heads are apart");
    used = kv->size - exec->ops->kv_unused(exec, kv);
    size *= BEGUN + 1;
    ok(used >= size && used <= size + LAYERS * HEADS / 4 * LLM_HUGE_PAGE,
       "%zu kB of pages take %zu kB", size >> 10, used >> 10);

    exec->ops->kv_free(exec, kv);
}


static void
test_small(llm_exec_t *exec)
{
    llm_kv_t  *kv;

    kv = cache(exec, 64);
    ok(kv && kv->mapped == kv->size, "nothing is left out of a small cache");
    ok(kv && kv->layers[1].data == kv->layers[0].data
                                   + HEADS * 64 * kv->layers[0].page,
       "its heads are adjacent");
    exec->ops->kv_free(exec, kv);
}


static void
test_too_large(llm_exec_t *exec)
{
    llm_err_t      err;
    llm_kv_opts_t  o = { .n_layers = UINT32_MAX >> 8, .n_pages = UINT32_MAX,
                         .n_kv_heads = 1 << 20, .n_heads = 1 << 20,
                         .head_dim_k = 1 << 16, .head_dim_v = DIM };

    ok(exec->ops->kv_create(exec, &o, &err) == NULL
       && strstr(err.msg, "no memory for 4294967295 KV pages"),
       "a cache beyond all memory is refused");
}


int
main(void)
{
    llm_exec_t  *exec;

    exec = ops_open_for(&llm_ops_cpu, NULL, 1, LLM_TYPE_Q8_0, 0);

    if (exec == NULL) {
        skip("no instruction set for the CPU backend");
        return done_testing();
    }

    test_large(exec);
    test_small(exec);
    test_too_large(exec);
    exec->ops->close(exec);

    return done_testing();
}
