/*
 * The best tokens of a row; see picks.h.
 */

#include "engine/sample/picks.h"

#include <float.h>
#include <math.h>


llm_sampler_scratch_t *
llm_sampler_scratch_create(uint32_t n_vocab)
{
    size_t                  n, blocks;
    llm_sampler_scratch_t  *s;

    s = calloc(1, sizeof(llm_sampler_scratch_t));
    if (s == NULL) {
        return NULL;
    }

    n = llm_max(n_vocab, 1u);
    blocks = llm_row_blocks(n);

    s->n_vocab = n_vocab;
    s->pass = llm_row_passes(0);
    s->row = malloc(n * sizeof(float));
    s->block_max = malloc(blocks * sizeof(float));
    s->block_sum = malloc(blocks * sizeof(double));
    s->picks = malloc(n * sizeof(llm_pick_t));
    s->blocks = malloc(blocks * sizeof(llm_pick_t));
    s->chosen = calloc((n + 63) / 64, sizeof(uint64_t));
    s->repeats = calloc(n, sizeof(uint32_t));

    if (s->row == NULL || s->block_max == NULL || s->block_sum == NULL
        || s->picks == NULL || s->blocks == NULL || s->chosen == NULL
        || s->repeats == NULL)
    {
        llm_sampler_scratch_free(s);
        return NULL;
    }

    return s;
}


void
llm_sampler_scratch_free(llm_sampler_scratch_t *s)
{
    if (s == NULL) {
        return;
    }

    free(s->row);
    free(s->block_max);
    free(s->block_sum);
    free(s->picks);
    free(s->blocks);
    free(s->chosen);
    free(s->repeats);
    free(s);
}


/* no two picks are equal: of equal keys, the lower id is better */

static inline int
llm_pick_better(const llm_pick_t *a, const llm_pick_t *b)
{
    return a->key > b->key || (a->key == b->key && a->id < b->id);
}


static inline void
llm_pick_swap(llm_pick_t *a, llm_pick_t *b)
{
    llm_pick_t  t;

    t = *a;
    *a = *b;
    *b = t;
}


/* moves the picks of [lo, hi) that are better than a pivot before it; returns
   the pivot's index */

static uint32_t
llm_pick_partition(llm_pick_t *p, uint32_t lo, uint32_t hi)
{
    uint32_t    i, m, mid;
    llm_pick_t  pivot;

    /* the pivot is the median of three, and is moved to the end */

    mid = lo + (hi - lo) / 2;

    if (llm_pick_better(&p[mid], &p[lo])) {
        llm_pick_swap(&p[mid], &p[lo]);
    }

    if (llm_pick_better(&p[hi - 1], &p[lo])) {
        llm_pick_swap(&p[hi - 1], &p[lo]);
    }

    if (llm_pick_better(&p[mid], &p[hi - 1])) {
        llm_pick_swap(&p[mid], &p[hi - 1]);
    }

    pivot = p[hi - 1];
    m = lo;

    for (i = lo; i < hi - 1; i++) {
        if (llm_pick_better(&p[i], &pivot)) {
            llm_pick_swap(&p[i], &p[m++]);
        }
    }

    llm_pick_swap(&p[hi - 1], &p[m]);

    return m;
}


uint32_t
llm_pick_cut(llm_pick_t *p, uint32_t n, double need, int by_count)
{
    double    sum, own;
    uint32_t  lo, hi, m, i;

    lo = 0;
    hi = n;

    while (lo < hi) {
        m = llm_pick_partition(p, lo, hi);

        if (by_count) {
            sum = m - lo;
            own = 1;

        } else {
            for (sum = 0, i = lo; i < m; i++) {
                sum += p[i].weight;
            }

            own = p[m].weight;
        }

        if (sum >= need) {
            hi = m;

        } else if (sum + own >= need) {
            return m + 1;

        } else {
            need -= sum + own;
            lo = m + 1;
        }
    }

    return llm_max(lo, 1u);
}


float
llm_pick_bound(llm_sampler_scratch_t *s, uint32_t n, uint32_t k)
{
    float     bound;
    uint32_t  i, blocks;

    blocks = llm_row_blocks(n);

    if (k >= blocks) {
        return -FLT_MAX;
    }

    for (i = 0; i < blocks; i++) {
        s->blocks[i].key = s->block_max[i];
        s->blocks[i].id = (int32_t) i;
    }

    k = llm_pick_cut(s->blocks, blocks, k, 1);
    bound = s->blocks[0].key;

    for (i = 1; i < k; i++) {
        bound = llm_min(bound, s->blocks[i].key);
    }

    return llm_max(bound, -FLT_MAX);
}


uint32_t
llm_pick_gather(llm_sampler_scratch_t *s, const float *row, uint32_t n,
    float bound)
{
    uint32_t  b, i, end, count;

    count = 0;

    for (b = 0; b < llm_row_blocks(n); b++) {
        if (s->block_max[b] < bound) {
            continue;
        }

        i = b * LLM_ROW_BLOCK;
        end = llm_min(i + LLM_ROW_BLOCK, n);

        for ( /* void */ ; i < end; i++) {
            if (row[i] >= bound) {
                s->picks[count].key = row[i];
                s->picks[count++].id = (int32_t) i;
            }
        }
    }

    return count;
}


double
llm_pick_weigh(llm_pick_t *p, uint32_t n, float max, float scale)
{
    double    sum;
    uint32_t  i;

    sum = 0;

    for (i = 0; i < n; i++) {
        p[i].weight = llm_row_exp((p[i].key - max) * scale);
        sum += p[i].weight;
    }

    return sum;
}


int32_t
llm_pick_draw(llm_sampler_scratch_t *s, uint32_t n, const float *row,
    float max, float scale, double u)
{
    float     w;
    double    total, sum;
    int32_t   id, last;
    uint32_t  i, words;
    uint64_t  bits;

    total = 0;

    for (i = 0; i < n; i++) {
        total += s->picks[i].weight;
        id = s->picks[i].id;
        s->chosen[id / 64] |= (uint64_t) 1 << id % 64;
    }

    sum = 0;
    last = s->picks[0].id;
    words = (s->n_vocab + 63) / 64;

    for (i = 0; i < words && sum <= u * total; i++) {
        for (bits = s->chosen[i]; bits && sum <= u * total; bits &= bits - 1)
        {
            id = (int32_t) (i * 64) + __builtin_ctzll(bits);
            w = llm_row_exp((row[id] - max) * scale);
            sum += w;
            last = w > 0 ? id : last;
        }
    }

    memset(s->chosen, 0, words * sizeof(uint64_t));

    return last;
}


void
llm_pick_sort(llm_pick_t *p, uint32_t n)
{
    uint32_t  i, j;

    for (i = 1; i < n; i++) {
        for (j = i; j && llm_pick_better(&p[j], &p[j - 1]); j--) {
            llm_pick_swap(&p[j], &p[j - 1]);
        }
    }
}
