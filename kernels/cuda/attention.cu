/*
 * Attention over the paged cache: chooses a call's kernel, sets its arguments,
 * and merges the splits of split sequences.  The kernels: attention_kernel.h
 * and attention_latent.cu.
 */

#include "kernels/cuda/attention.h"


/* block (head, row of a split sequence): merges the row's splits */

__global__ void
llm_k_attention_merge(llm_cuda_step_t cs, llm_att_args_t a)
{
    float         max, sum, acc, m, w0, w1;
    uint32_t      seq, head, dim, s, first, end, row, rows, at;
    const float  *p;

    llm_early_begin();

    head = blockIdx.x;

    if (blockIdx.y >= cs.counts[LLM_N_MERGES]) {
        return;
    }

    row = cs.merges[blockIdx.y];
    seq = cs.row_seq[row];
    rows = cs.seq_rows[seq + 1] - cs.seq_rows[seq];
    at = cs.split_base[seq] + row - cs.seq_rows[seq];
    first = llm_att_row_first(cs, a, row) / LLM_CUDA_KV_SPLIT;
    end = (llm_att_row_end(cs, a, row, cs.kv_len[seq]) - 1)
          / LLM_CUDA_KV_SPLIT;

    for (dim = threadIdx.x; dim < a.dv; dim += blockDim.x) {
        max = -INFINITY;
        sum = 0;
        acc = 0;

        for (s = first; s <= end; s++) {
            p = a.partial + ((size_t) (at + s * rows) * a.n_heads + head)
                            * (a.dv + 2);

            llm_att_weights(max, p[0], &m, &w0, &w1);
            max = m;
            sum = llm_att_join(sum, w0, p[1], w1);
            acc = llm_att_join(acc, w0, p[2 + dim], w1);
        }

        llm_store(a.out, ((size_t) row * a.n_heads + head) * a.dv + dim,
                  acc * llm_att_factor(a, head, max, sum), a.out16, a.bf16);
    }
}


/* the positions that a row sees before and after its own */

static void
llm_att_sight(llm_att_args_t *a, const llm_heads_t *h)
{
    uint32_t  all = UINT32_MAX;

    a->before = h->window == 0 ? all : h->both ? h->window / 2
                                               : h->window - 1;
    a->behind = !h->both ? 0 : h->window ? h->window / 2 : all;
    a->chunk = h->chunks ? h->window : 0;
    a->spans = h->spans;
}


/* can attention_wgmma.cu compute this layer's wide items?  Not those of a model
   with latent layers, which may be split.  Heads of 64 would waste half of its
   work. */

static int
llm_att_by_wgmma(const llm_cuda_t *d, const llm_att_args_t &a)
{
    return !d->latent && !d->opts.kv_fp8 && a.slopes == NULL && a.cap == 0
           && a.dk % 8 == 0 && a.dv % 8 == 0 && llm_max(a.dk, a.dv) > 64
           && llm_max(a.dk, a.dv) <= LLM_ATT_WGMMA;
}


void
llm_cuda_attention(llm_exec_t *exec, const llm_heads_t *h, const llm_act_t *q,
    const llm_kv_t *kv, llm_act_t *out)
{
    int              cross;
    uint32_t         dim;
    llm_cuda_t      *d = (llm_cuda_t *) exec;
    llm_att_args_t   a;

    a.q = (const float *) q->data;
    a.kc = kv->data + kv->rooms[h->layer].k;
    a.vc = kv->data + kv->rooms[h->layer].v;
    a.out = out->data;
    a.out16 = out->is16;
    a.partial = d->partial;
    a.sinks = h->sinks ? h->sinks->data : NULL;
    a.scale = h->softcap > 0 ? h->scale / h->softcap : h->scale * LLM_LOG2E;
    a.cap = h->softcap > 0 ? h->softcap * LLM_LOG2E : 0;
    a.slopes = h->slopes ? h->slopes->data : NULL;
    llm_att_sight(&a, h);
    a.n_heads = h->n_heads;
    a.n_kv_heads = h->n_kv_heads;
    a.group = h->n_heads / h->n_kv_heads;
    a.dk = h->head_dim_k;
    a.dv = h->head_dim_v;
    a.bf16 = d->bf16;

    a.slices = 1;
    a.first_item = 0;
    a.max_rows = d->max_seq_rows;

    cross = kv->opts.kind == LLM_KV_CROSS;
    a.n_items = cross ? d->cross_items : d->items;
    dim = llm_max(a.dk, a.dv);

    if (!cross && d->wide_items && llm_att_by_wgmma(d, a)) {
        llm_cuda_attention_wgmma(d, kv, a);
        a.first_item = d->wide_items;
        a.max_rows = d->narrow_rows;
    }

    if (h->latent) {
        llm_cuda_latent(d, kv, a);

    } else if (a.first_item == a.n_items) {
        return;

    } else if (dim <= 64) {
        llm_att_launch<64, 64>(d, kv, a);

    } else if (dim <= 128) {
        llm_att_launch<128, 128>(d, kv, a);

    } else if (dim <= 256 && (a.slopes == NULL || LLM_ATT_SLOPES(256))) {
        llm_att_launch<256, 256>(d, kv, a);

    } else {
        /* each slice computes the scores once more */
        a.slices = (a.dv + LLM_ATT_SLICE - 1) / LLM_ATT_SLICE;
        llm_att_launch<LLM_CUDA_MAX_HEAD, LLM_ATT_SLICE>(d, kv, a);
    }

    if (d->merges && !cross) {
        llm_launch_early(llm_cuda_early(d), llm_k_attention_merge,
                         dim3(h->n_heads, d->merges), 128, 0, d->stream,
                         d->step, a);
    }
}
