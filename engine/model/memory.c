/*
 * Checks, before anything is allocated, that a model fits into the machine's
 * memory: the kernel grants more memory than there is, and later kills the
 * process that uses it.  A GPU's memory is checked by the device.
 *
 * What counts are the device's own copies of weights, what is loaded beside
 * them, and the KV cache.
 * Weights that are read from the mapped file do not count: the kernel can drop
 * their pages and read them again.  Activations are small in comparison.
 */

#include "engine/model/ear.h"
#include "engine/base/machine.h"

#include <stdio.h>


/* a + b; SIZE_MAX: it overflows */

static size_t
llm_load_add(size_t a, size_t b)
{
    return a > SIZE_MAX - b ? SIZE_MAX : a + b;
}


const char *
llm_load_size(char *text, size_t bytes, int up)
{
    int                 shift;
    static const char  *const units[] = { "bytes", "KiB", "MiB" };

    for (shift = 20; shift && bytes >> shift == 0; shift -= 10) { /* void */ }

    if (up) {
        bytes = llm_load_add(bytes, ((size_t) 1 << shift) - 1);
    }

    snprintf(text, LLM_LOAD_SIZE, "%zu %s", bytes >> shift,
             units[shift / 10]);

    return text;
}


void
llm_load_kv_opts(const llm_load_t *l, uint32_t kind, llm_kv_opts_t *o)
{
    const llm_model_t       *m = l->m;
    const llm_desc_t        *d = &m->desc;
    const llm_model_part_t  *p = m->at;

    memset(o, 0, sizeof(*o));
    o->n_layers = d->hp.n_layers;
    o->n_kv_heads = d->hp.n_kv_heads;
    o->head_dim_k = d->hp.head_dim_k;
    o->head_dim_v = d->hp.head_dim_v;
    o->n_heads = d->hp.n_heads;
    o->kind = kind;
    o->layers = m->kv_layers[kind] ? m->kv_layers[kind]
                                   : d->kv_differs ? d->kv : NULL;

    if (p && p->kv_layers[kind]) {
        o->layers = p->kv_layers[kind];
    }
}


void
llm_load_state_opts(const llm_load_t *l, llm_state_opts_t *o)
{
    const llm_model_t  *m = l->m;

    memset(o, 0, sizeof(*o));
    o->n_layers = m->desc.hp.n_layers;
    o->layers = m->at && m->at->states ? m->at->states : m->desc.states;
}


/* pages that a sequence of ctx holds at once: all; or, in a cache that is read
   in windows alone, those of a window and of the rows of two steps, and the
   partial ones at both ends.  m->window is 0 if the only cache is not read in
   windows */

uint32_t
llm_load_seq_pages(const llm_model_t *m, uint32_t kind)
{
    uint64_t  n;

    if (m->window == 0 || (kind == LLM_KV_FULL && m->n_kinds > 1)) {
        return m->max_pages;
    }

    n = ((uint64_t) m->window + 2 * (uint64_t) m->batch) / LLM_KV_PAGE + 4;

    return (uint32_t) llm_min(n, m->max_pages);
}


size_t
llm_load_slot_size(const llm_load_t *l)
{
    llm_model_t       *m = l->m;
    llm_state_opts_t   o;

    llm_load_state_opts(l, &o);
    o.n_slots = 1;

    return m->desc.hp.n_recurrent ? m->ops->state_size(m->exec, &o) : 0;
}


/* a * b; SIZE_MAX: it overflows */

static size_t
llm_load_times(size_t a, size_t b)
{
    size_t  n;

    return llm_mul_overflow(a, b, &n) ? SIZE_MAX : n;
}


/* bytes of a matrix; NULL: 0 */

static size_t
llm_load_matrix_bytes(const llm_model_t *m, const llm_gguf_tensor_t *t)
{
    return t ? m->ops->weight_size(t->type, (uint32_t) t->ne[1],
                                   (uint32_t) t->ne[0]) : 0;
}


/* matrices of an encoder of sound */

static size_t
llm_load_sound_bytes(const llm_model_t *m)
{
    size_t                    n;
    uint32_t                  i, k;
    const llm_gguf_tensor_t  *t;
    const llm_ear_desc_t   *s = &m->desc.ear;

    n = llm_load_add(llm_load_matrix_bytes(m, s->global[LLM_SG_CONV_1]),
                     llm_load_matrix_bytes(m, s->global[LLM_SG_CONV_2]));

    for (i = 0; i < s->n_layers; i++) {
        for (k = 0; k < LLM_ST_N; k++) {
            t = s->layers[i][k];

            if (t && t->n_dims > 1) {
                n = llm_load_add(n, llm_load_matrix_bytes(m, t));
            }
        }
    }

    return n;
}


size_t
llm_load_weight_bytes(const llm_model_t *m)
{
    size_t                    n, size;
    uint32_t                  i, k;
    const llm_tensor_part_t  *p;

    if (m->ops->weight_size == NULL || m->packed.map) {
        return 0;
    }

    n = llm_load_matrix_bytes(m,
                              m->desc.global[LLM_GT_INPUT_MODEL_PROJ]);

    /* a head has the model's output, or its own among those of its layer */

    if (!m->desc.hp.encoder
        && (m->desc.head.kind == LLM_HEAD_NONE
            || m->desc.head.kind == LLM_HEAD_ASSISTANT
            || m->desc.global[LLM_GT_OUTPUT]))
    {
        n = llm_load_add(n, llm_load_matrix_bytes(m, m->desc.global[
                                m->desc.global[LLM_GT_OUTPUT]
                                ? LLM_GT_OUTPUT : LLM_GT_TOKEN_EMBD]));
    }

    n = llm_load_add(n, llm_load_sound_bytes(m));

    for (i = 0; i < m->desc.hp.n_layers; i++) {

        for (k = 0; k < LLM_LT_N; k++) {
            p = &m->desc.layers[i].tensors[k];

            if (p->t == NULL || !llm_layer_tensor_is_matrix(&m->desc, k)
                || k == LLM_LT_NEXTN_EMBD)
            {
                continue;
            }

            size = m->ops->weight_size(p->t->type, p->n,
                                       (uint32_t) p->t->ne[0]);
            n = llm_load_add(n, llm_load_times(size, p->t->ne[2]));

            /* a copy of the rows of DELTA_MIXED is kept */
            n = llm_load_add(n, k == LLM_LT_DELTA_MIXED ? p->t->size : 0);
        }
    }

    return n;
}


/* bytes of the pages for one sequence: of ctx if `whole`, else one page of each
   cache */

static size_t
llm_load_kv_bytes(const llm_load_t *l, int whole)
{
    size_t          n, page;
    uint32_t        i;
    llm_kv_opts_t   o;
    llm_model_t    *m = l->m;

    for (n = 0, i = 0; i < m->n_kinds; i++) {
        llm_load_kv_opts(l, i, &o);
        page = m->ops->kv_page_size(m->exec, &o);
        n = llm_load_add(n, llm_load_times(page, whole
                                                 ? llm_load_seq_pages(m, i)
                                                 : 1));
    }

    return n;
}


/* snapshots of recurrent states may have a third of the memory (caches.c) */

size_t
llm_load_seqs_bytes(const llm_load_t *l, uint32_t n)
{
    size_t  states;

    states = llm_load_times(llm_load_slot_size(l), n);

    return llm_load_add(llm_load_times(llm_load_kv_bytes(l, 1), n),
                        llm_load_add(states, states / 2));
}


size_t
llm_load_cross_bytes(const llm_load_t *l)
{
    uint32_t        n;
    llm_model_t    *m = l->m;
    llm_kv_opts_t   o;

    if (llm_ear_n_pages(&m->desc) == 0) {
        return 0;
    }

    llm_load_kv_opts(l, LLM_KV_FULL, &o);
    n = l->opts->n_windows ? l->opts->n_windows : 1;

    return llm_load_times(llm_load_times(m->ops->kv_page_size(m->exec, &o),
                                         llm_ear_n_pages(&m->desc)), n);
}


/* the least that the cache of such a context takes, with the recurrent states of
   all sequences and one copy */

static size_t
llm_load_least_kv(llm_load_t *l, int whole)
{
    return llm_load_add(llm_load_kv_bytes(l, whole),
                        llm_load_times(llm_load_slot_size(l),
                                       (size_t) l->m->max_seqs + 1));
}


/* what that is, in words */

static const char *
llm_load_least_what(llm_load_t *l, int whole, char *of, size_t len)
{
    size_t        n;
    llm_model_t  *m = l->m;

    if (whole) {
        snprintf(of, len, "one sequence of ctx=%u", m->ctx);

    } else {
        snprintf(of, len, "a page of each kind");
    }

    if (llm_load_slot_size(l)) {
        n = strlen(of);
        snprintf(of + n, len - n, " with recurrent states (%u)", m->max_seqs);
    }

    return of;
}


/*
 * Bytes of memory that the model needs, with what is loaded after it, or the
 * states of an encoder of its own.  With kv_cache= the caches take that
 * size.  Else they take half of what the weights leave, in which must fit one
 * sequence of ctx (one page if ctx may be reduced) and the recurrent states of
 * all sequences and one copy.  Writes the explanation into `what`.
 */

static size_t
llm_load_need(llm_load_t *l, char *what, size_t len)
{
    int           whole;
    char          size[2][LLM_LOAD_SIZE], of[96];
    size_t        kv, weights, encoder, draft;
    const char   *take;
    llm_model_t  *m;

    m = l->m;
    whole = l->opts->ctx || l->opts->whole;
    encoder = llm_load_add(l->beside.tower, llm_load_cross_bytes(l));
    draft = llm_beside_draft_bytes(&l->beside);
    weights = llm_load_add(llm_load_weight_bytes(m), encoder);
    weights = llm_load_add(weights, draft);
    take = draft ? (encoder ? ", its encoder and what drafts for it take"
                            : " and what drafts for it take")
                 : (encoder ? " and its encoder take" : " take");
    (void) llm_load_size(size[0], weights, 1);

    if (l->opts->kv_bytes) {
        kv = l->opts->kv_bytes;
        snprintf(what, len, "its weights%s %s of memory, kv_cache is %s",
                 take, size[0], llm_load_size(size[1], kv, 0));

        return llm_load_add(weights, kv);
    }

    kv = llm_load_least_kv(l, whole);

    snprintf(what, len, "its weights%s %s of memory, the KV cache for %s "
             "takes %s and may have half of the rest",
             take, size[0], llm_load_least_what(l, whole, of, sizeof(of)),
             llm_load_size(size[1], kv, 1));

    return llm_load_add(weights, llm_load_times(kv, 2));
}


int
llm_load_fits(llm_load_t *l, size_t free_bytes, size_t all_bytes)
{
    char    what[384], others[96], size[3][LLM_LOAD_SIZE];
    size_t  need;

    need = llm_load_need(l, what, sizeof(what));

    if (need <= free_bytes && l->promised <= free_bytes - need) {
        return LLM_OK;
    }

    l->memory = need <= all_bytes;
    others[0] = '\0';

    if (l->promised) {
        snprintf(others, sizeof(others), ", but other models will take %s of "
                 "these", llm_load_size(size[2], l->promised, 1));
    }

    return llm_fail(l->err, "%s: %s, and %s of %s are free%s",
                    llm_gguf_name(l->m->gguf), what,
                    llm_load_size(size[0], free_bytes, 0),
                    llm_load_size(size[1], all_bytes, 0), others);
}


int
llm_load_kv_fits(llm_load_t *l)
{
    char    of[96], size[2][LLM_LOAD_SIZE];
    size_t  need;

    if (l->opts->kv_bytes == 0 || l->opts->ctx == 0) {
        return LLM_OK;
    }

    need = llm_load_least_kv(l, 1);

    if (need <= l->opts->kv_bytes) {
        return LLM_OK;
    }

    return llm_fail(l->err, "%s: the KV cache for %s takes %s, but kv_cache is "
                    "%s", llm_gguf_name(l->m->gguf),
                    llm_load_least_what(l, 1, of, sizeof(of)),
                    llm_load_size(size[0], need, 1),
                    llm_load_size(size[1], l->opts->kv_bytes, 0));
}


int
llm_load_fits_at_all(llm_load_t *l, size_t all_bytes)
{
    char  what[384], size[LLM_LOAD_SIZE];

    if (llm_load_need(l, what, sizeof(what)) <= all_bytes) {
        return LLM_OK;
    }

    return llm_fail(l->err, "%s: %s, and this machine has %s",
                    llm_gguf_name(l->m->gguf), what,
                    llm_load_size(size, all_bytes, 0));
}
