/*
 * The list of a step's attention items, which the host makes: how the rows of
 * each sequence, and what they see, are shared out among blocks.
 *
 * A sequence with few rows after many positions is split: each of its splits is
 * an item for each tile of its rows, with partial results, which
 * llm_k_attention_merge() merges row by row.  Other items go through all splits
 * of their rows and merge as they go.
 *
 * Invariant: splits are at fixed positions and merged in their order either
 * way, so a row's result does not depend on the list.
 *
 * Long items come first, so that no SM is left with one at the end.
 */

#include "kernels/cuda/internal.h"

#include <stdlib.h>
#include <string.h>


/* each tile of a sequence's rows is an item, or several if it is split */

size_t
llm_cuda_max_items(const llm_cuda_t *d)
{
    return (size_t) d->opts.max_seqs
           + d->opts.max_tokens / LLM_CUDA_ITEM_LEAST + LLM_CUDA_SPLITS;
}


static uint32_t
llm_cuda_n_splits(uint32_t positions)
{
    return (positions + LLM_CUDA_KV_SPLIT - 1) / LLM_CUDA_KV_SPLIT;
}


static uint32_t
llm_cuda_n_tiles(const llm_cuda_t *d, uint32_t rows)
{
    return (rows + d->item_tokens - 1) / d->item_tokens;
}


/*
 * Splits a sequence while there is room for partial results, of each row and
 * split.  Writing and reading these takes as long as reading the keys and
 * values of a split if there are about 32 rows, so more rows are split only
 * after more positions.
 */

static int
llm_cuda_split(const llm_cuda_t *d, uint32_t kv_len, uint32_t rows,
    uint32_t results, uint32_t items)
{
    uint32_t  n;

    n = llm_cuda_n_splits(kv_len);

    return n > 1 && rows <= LLM_CUDA_SPLIT_ROWS && n * 4 >= rows
           && n * rows <= d->partial_cap - results
           && items + n * llm_cuda_n_tiles(d, rows) <= LLM_CUDA_SPLITS;
}


/* chooses the sequences that are split, those of a single row first, and lists
   their rows */

static void
llm_cuda_items_split(llm_cuda_t *d, const llm_batch_t *b,
    const llm_cuda_step_t *h)
{
    int        single;
    uint32_t   i, s, n, rows, results, items, *base, *merges;

    base = (uint32_t *) h->split_base;
    merges = (uint32_t *) h->merges;
    results = 0;
    items = 0;
    d->merges = 0;

    for (single = 1; single >= 0; single--) {
        for (s = 0; s < b->n_seqs; s++) {
            rows = b->seq_rows[s + 1] - b->seq_rows[s];

            if ((rows == 1) != single) {
                continue;
            }

            base[s] = LLM_CUDA_NO_SPLIT;

            if (!llm_cuda_split(d, b->kv_len[s], rows, results, items)) {
                continue;
            }

            n = llm_cuda_n_splits(b->kv_len[s]);
            base[s] = results;
            results += n * rows;
            items += n * llm_cuda_n_tiles(d, rows);

            for (i = 0; i < rows; i++) {
                merges[d->merges++] = b->seq_rows[s] + i;
            }
        }
    }
}


static int
llm_cuda_items_order(const void *a, const void *b)
{
    const llm_cuda_item_t  *x = (const llm_cuda_item_t *) a;
    const llm_cuda_item_t  *y = (const llm_cuda_item_t *) b;

    if (x->length != y->length) {
        return x->length < y->length ? 1 : -1;
    }

    if (x->seq != y->seq) {
        return x->seq > y->seq ? 1 : -1;
    }

    return x->tile < y->tile ? 1 : x->tile > y->tile ? -1 : 0;
}


/*
 * Are a sequence's items for a launch of their own, that of attention_wgmma.cu
 * or one of latent attention?  Not for the former if they would have less than
 * half of the rows of its blocks, or are split; nor in a captured step, whose
 * number of such items would have to be a bucket.
 */

static int
llm_cuda_is_wide(const llm_cuda_t *d, const llm_batch_t *b,
    const llm_cuda_step_t *h, uint32_t seq)
{
    uint32_t  rows;

    rows = b->seq_rows[seq + 1] - b->seq_rows[seq];

    if (rows <= LLM_CUDA_GRAPH_SEQ_ROWS) {
        return 0;
    }

    return d->latent
           || (d->gpu->wgmma && h->split_base[seq] == LLM_CUDA_NO_SPLIT
               && rows * d->group > LLM_CUDA_ITEM_WIDE / 2);
}


/* appends a sequence's items: those that go through several splits if `longer`,
   the others if not; returns the number of items */

static uint32_t
llm_cuda_items_of(const llm_cuda_t *d, const llm_batch_t *b,
    const llm_cuda_step_t *h, uint32_t seq, int longer, uint32_t n)
{
    uint32_t          t, s, end, rows, first, splits;
    llm_cuda_item_t   i, *items;

    items = (llm_cuda_item_t *) h->items;
    first = b->seq_rows[seq];
    rows = b->seq_rows[seq + 1] - first;
    i.seq = seq;

    for (t = 0; t < llm_cuda_n_tiles(d, rows); t++) {
        i.tile = t;

        if (h->split_base[seq] != LLM_CUDA_NO_SPLIT) {
            i.length = 1;
            splits = longer ? 0 : llm_cuda_n_splits(b->kv_len[seq]);

            for (s = 0; s < splits; s++) {
                i.split = s;
                items[n++] = i;
            }

            continue;
        }

        end = llm_min(rows, (t + 1) * d->item_tokens);
        i.split = LLM_CUDA_NO_SPLIT;
        i.length = llm_cuda_n_splits(b->pos[first + end - 1] + 1);

        if ((i.length > 1) == longer) {
            items[n++] = i;
        }
    }

    return n;
}


/* appends the items of the wide sequences, or of the others, long items first;
   returns the number of items */

static uint32_t
llm_cuda_items_list(const llm_cuda_t *d, const llm_batch_t *b,
    const llm_cuda_step_t *h, int wide, uint32_t n)
{
    int        longer;
    uint32_t   s, first;

    first = n;

    for (longer = 1; longer >= 0; longer--) {
        for (s = 0; s < b->n_seqs; s++) {
            if (llm_cuda_is_wide(d, b, h, s) == wide) {
                n = llm_cuda_items_of(d, b, h, s, longer, n);
            }
        }

        if (longer) {
            qsort((llm_cuda_item_t *) h->items + first, n - first,
                  sizeof(llm_cuda_item_t), llm_cuda_items_order);
        }
    }

    return n;
}


/*
 * The list for caches of LLM_KV_CROSS: tiles of all sequences, none of which is
 * split.  Counts: as of the other list, but for the items.
 */

static void
llm_cuda_items_cross(llm_cuda_t *d, const llm_batch_t *b,
    const llm_cuda_step_t *h)
{
    uint32_t          s, n, *counts;
    llm_cuda_item_t   i, *items;

    counts = (uint32_t *) h->counts;
    items = (llm_cuda_item_t *) h->cross_items;
    n = 0;

    for (s = 0; b->cross && s < b->n_seqs; s++) {
        i.seq = s;
        i.split = LLM_CUDA_NO_SPLIT;
        i.length = llm_cuda_n_splits(b->cross_len[s]);

        for (i.tile = 0;
             i.tile < llm_cuda_n_tiles(d, b->seq_rows[s + 1]
                                          - b->seq_rows[s]);
             i.tile++)
        {
            items[n++] = i;
        }
    }

    d->cross_items = n;
    memcpy(counts + LLM_N_COUNTS, counts, LLM_N_COUNTS * sizeof(*counts));
    counts[LLM_N_COUNTS + LLM_N_ITEMS] = n;
    counts[LLM_N_COUNTS + LLM_N_MERGES] = 0;
}


/* fills the host's list, once the sequences of the step are known */

void
llm_cuda_items_fill(llm_cuda_t *d, const llm_batch_t *b,
    const llm_cuda_step_t *h)
{
    uint32_t   s, most, *counts;

    counts = (uint32_t *) h->counts;
    most = d->gpu->wgmma && !d->latent ? LLM_CUDA_ITEM_WIDE
                                       : LLM_CUDA_ITEM_MOST;
    d->item_tokens = llm_max(most / llm_max(d->group, 1u),
                             (uint32_t) LLM_CUDA_ITEM_LEAST);

    llm_cuda_items_split(d, b, h);
    d->wide_items = llm_cuda_items_list(d, b, h, 1, 0);
    d->items = llm_cuda_items_list(d, b, h, 0, d->wide_items);
    d->narrow_rows = 0;

    for (s = 0; s < b->n_seqs; s++) {
        if (!llm_cuda_is_wide(d, b, h, s)) {
            d->narrow_rows = llm_max(d->narrow_rows,
                                     b->seq_rows[s + 1] - b->seq_rows[s]);
        }
    }

    counts[LLM_N_ITEMS] = d->items;
    counts[LLM_N_TOKENS_ITEM] = d->item_tokens;
    counts[LLM_N_MERGES] = d->merges;

    llm_cuda_items_cross(d, b, h);
}
