/*
 * The KV cache of the CPU backend; cpu.h describes the layout of pages.
 *
 * Invariant: the heads of a layer follow those of the previous layer, and their
 * pages have the size that the layer needs.  All are one allocation, which
 * llm_kv_t owns.
 *
 * A step behind many tokens reads megabytes of each head one after another, and
 * should not wait for the page table; but a step writes a little of each head,
 * and with huge pages the first one would clear 2 MB for each of hundreds of
 * heads.  So huge pages are those that are whole in a head's memory, and heads
 * begin at different places in one: the first tokens are in small pages, and
 * each step begins huge pages of some heads.  On average few tokens take twice
 * the memory that they need, and many 1 MB more for each head.  Each head is two
 * mappings, of which a process has 65,530.
 */

#include "kernels/cpu/cpu.h"
#include "engine/base/machine.h"

/* where a large head begins in a huge page, relative to the one before: an odd
   number of small pages, near the golden ratio of the 512 */
#define LLM_KV_SKEW      ((size_t) 317 * 4096)

/* heads of all layers, at most, that are apart */
#define LLM_KV_APART     4096


static llm_kv_layer_t
llm_cpu_kv_shape(const llm_kv_opts_t *o, uint32_t layer)
{
    llm_kv_layer_t  all = { o->n_kv_heads, o->head_dim_k, o->head_dim_v, 0 };

    return o->layers ? o->layers[layer] : all;
}


/* the keys and values of cross-attention are all read for each token, as the
   weights are, so they have no more bits than these */

static llm_cpu_kv_format_t
llm_cpu_kv_format_of(const llm_cpu_t *cpu, const llm_kv_opts_t *o)
{
    return cpu->kv_format == LLM_CPU_KV_F32 && o->kind == LLM_KV_CROSS
           && cpu->opts.weight_type == LLM_TYPE_F16
           ? LLM_CPU_KV_F16 : cpu->kv_format;
}


/* sizes of a page of one head; without a device those of binary16 */

static void
llm_cpu_kv_sizes(const llm_cpu_t *cpu, const llm_kv_opts_t *o,
    const llm_kv_layer_t *l, llm_cpu_kv_layer_t *k)
{
    memset(k, 0, sizeof(llm_cpu_kv_layer_t));

    k->n_heads = l->n_kv_heads;
    k->head_dim_k = l->head_dim_k;
    k->head_dim_v = l->head_dim_v;
    k->latent = l->latent;
    k->dk_pad = l->head_dim_k;
    k->dv_pad = llm_pad16(l->head_dim_v);

    if (l->latent) {
        k->v_row = llm_pad16(l->head_dim_k);
        k->page = k->v_row * LLM_KV_PAGE;
        return;
    }

    k->format = cpu ? llm_cpu_kv_format_of(cpu, o) : LLM_CPU_KV_F16;
    k->v_row = k->dv_pad;

    if (k->format == LLM_CPU_KV_Q8) {
        k->dk_pad = llm_align(l->head_dim_k, 32);
        k->k_size = (k->dk_pad / 2 + k->dk_pad / 32) * LLM_KV_PAGE;
        k->page = llm_align(k->k_size + (k->dv_pad / 2 + 1) * LLM_KV_PAGE, 32);
        return;
    }

    if (k->format == LLM_CPU_KV_F32) {
        k->k_size = 2 * k->dk_pad * LLM_KV_PAGE;
        k->page = k->k_size + 2 * k->dv_pad * LLM_KV_PAGE;
        return;
    }

    if (k->format == LLM_CPU_KV_BF16) {
        k->dk_pad = llm_align(l->head_dim_k, cpu->kernels.bf16_dims);
    }

    k->k_size = k->dk_pad * LLM_KV_PAGE;
    k->page = k->k_size + k->dv_pad * LLM_KV_PAGE;
}


size_t
llm_cpu_kv_page_size(llm_exec_t *exec, const llm_kv_opts_t *o)
{
    size_t              n;
    uint32_t            i;
    llm_kv_layer_t      l;
    llm_cpu_kv_layer_t  k;

    n = 0;

    for (i = 0; i < o->n_layers; i++) {
        l = llm_cpu_kv_shape(o, i);
        llm_cpu_kv_sizes((llm_cpu_t *) exec, o, &l, &k);
        n += k.page * l.n_kv_heads;
    }

    return n * sizeof(uint16_t);
}


void
llm_cpu_kv_free(llm_exec_t *exec, llm_kv_t *kv)
{
    (void) exec;

    if (kv) {
        llm_cpu_free(kv->data, kv->mapped);
        free(kv->layers);
        free(kv);
    }
}


/* bytes from a head to the next one, whose pages have `size` bytes; small heads
   are always adjacent */

static size_t
llm_cpu_kv_head(size_t size, int apart)
{
    if (!apart || size < 2 * LLM_HUGE_PAGE) {
        return size;
    }

    return size + (LLM_KV_SKEW + LLM_HUGE_PAGE - size % LLM_HUGE_PAGE)
                  % LLM_HUGE_PAGE;
}


/* the sizes of the layers' heads, which are apart if `apart`, and of all; fails
   if that exceeds a size_t */

static int
llm_cpu_kv_place(const llm_cpu_t *cpu, llm_kv_t *kv, int apart)
{
    size_t               size, n, heads;
    uint32_t             i;
    llm_kv_layer_t       l;
    llm_cpu_kv_layer_t  *k;

    kv->size = kv->mapped = heads = 0;

    for (i = 0; i < kv->opts.n_layers; i++) {
        l = llm_cpu_kv_shape(&kv->opts, i);
        k = &kv->layers[i];

        llm_cpu_kv_sizes(cpu, &kv->opts, &l, k);
        n = k->page * sizeof(uint16_t);

        if (llm_mul_overflow(n, kv->opts.n_pages, &size)
            || size > SIZE_MAX / 4
            || llm_mul_overflow(llm_cpu_kv_head(size, apart), k->n_heads,
                                &n)
            || n > SIZE_MAX / 2 - kv->mapped)
        {
            return LLM_ERROR;
        }

        k->head = llm_cpu_kv_head(size, apart) / sizeof(uint16_t);
        heads += k->n_heads;
        kv->size += size * k->n_heads;
        kv->mapped += n;
    }

    kv->mapped = llm_max(kv->mapped, 1u);

    /* what is left out must not make a cache too large */

    if (apart && kv->mapped > kv->size
        && (heads > LLM_KV_APART || kv->mapped > llm_machine_memory("")))
    {
        return llm_cpu_kv_place(cpu, kv, 0);
    }

    return LLM_OK;
}


static void
llm_cpu_kv_map(llm_kv_t *kv)
{
    size_t               size;
    uint32_t             i, h;
    uint16_t            *data;
    llm_cpu_kv_layer_t  *k;

    data = kv->data;

    for (i = 0; i < kv->opts.n_layers; i++) {
        k = &kv->layers[i];
        k->data = data;
        data += k->head * k->n_heads;
        size = k->page * sizeof(uint16_t) * kv->opts.n_pages;

        if (k->head * sizeof(uint16_t) == size) {
            continue;
        }

        llm_cpu_huge(k->data, k->head * sizeof(uint16_t) * k->n_heads, 0);

        for (h = 0; h < k->n_heads; h++) {
            llm_cpu_huge(k->data + h * k->head, size, 1);
        }
    }
}


llm_kv_t *
llm_cpu_kv_create(llm_exec_t *exec, const llm_kv_opts_t *o, llm_err_t *err)
{
    llm_kv_t   *kv;
    llm_cpu_t  *cpu = (llm_cpu_t *) exec;

    if (llm_cpu_attn_reserve(cpu, o, err) != LLM_OK) {
        return NULL;
    }

    kv = calloc(1, sizeof(llm_kv_t));

    if (kv) {
        kv->opts = *o;
        kv->layers = calloc(llm_max(o->n_layers, 1u),
                            sizeof(llm_cpu_kv_layer_t));

        if (kv->layers && llm_cpu_kv_place(cpu, kv, 1) == LLM_OK) {
            kv->data = llm_cpu_alloc(kv->mapped, 0);
        }

        if (kv->data) {
            llm_cpu_kv_map(kv);
            return kv;
        }
    }

    llm_cpu_kv_free(exec, kv);
    llm_fail(err, "cpu: no memory for %u KV pages", o->n_pages);

    return NULL;
}


size_t
llm_cpu_kv_unused(llm_exec_t *exec, const llm_kv_t *kv)
{
    size_t  n, none;

    (void) exec;

    n = llm_cpu_unused(kv->data, kv->mapped);
    none = kv->mapped - kv->size;

    return n > none ? n - none : 0;
}


void
llm_cpu_kv_copy(llm_exec_t *exec, llm_kv_t *kv, uint32_t src, uint32_t dst)
{
    uint16_t                  *base;
    uint32_t                   i, h;
    const llm_cpu_kv_layer_t  *k;

    (void) exec;

    for (i = 0; i < kv->opts.n_layers; i++) {
        k = &kv->layers[i];

        for (h = 0; h < k->n_heads; h++) {
            base = k->data + h * k->head;
            memcpy(base + dst * k->page, base + src * k->page,
                   k->page * sizeof(uint16_t));
        }
    }
}
