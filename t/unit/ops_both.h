/*
 * Attention without a causal mask, or with spans whose rows see each other,
 * whole sequences at once: the same cases for the CPU (ops_encode.c) and for
 * the CUDA backend (emu_encode.c), their steps, and their results from the
 * definition.
 */

#ifndef LLM_TEST_OPS_BOTH_H
#define LLM_TEST_OPS_BOTH_H

#include "t/unit/ops.h"

#define BOTH_BESIDE     45              /* rows of a sequence beside it */
#define BOTH_LATER      9               /* positions before the rows of
                                           cross-attention */
#define BOTH_MAX_HEADS  12
#define BOTH_MAX_DIM    512

typedef struct {
    const char   *name;
    uint32_t      n;
    uint32_t      heads;
    uint32_t      kv_heads;
    uint32_t      dk;
    uint32_t      dv;
    uint32_t      window;
    int           slopes;
    int           sinks;
    float         softcap;
    uint32_t      span;                 /* every second so many rows are a span,
                                           the others see what is before
                                           them */
    uint32_t      own;                  /* rows see those of their own so
                                           many */
    int           cross;                /* K and V were written before, in a
                                           cache of LLM_KV_CROSS, and rows have
                                           positions of their own */
} both_case_t;

/* of Q, of K, and their elements */
#define BOTH_HEADS(q, kv, k, v)                                              \
    .heads = q, .kv_heads = kv, .dk = k, .dv = v

static const both_case_t  both_cases[] = {
    { .name = "one row", .n = 1, BOTH_HEADS(6, 2, 24, 24) },
    { .name = "a few rows", .n = 17, BOTH_HEADS(6, 2, 24, 24) },
    { .name = "many rows", .n = 300, BOTH_HEADS(6, 2, 24, 24) },
    { .name = "a window", .n = 150, BOTH_HEADS(6, 2, 24, 24), .window = 24 },
    { .name = "an odd window", .n = 150, BOTH_HEADS(6, 2, 24, 24),
      .window = 33 },
    { .name = "a window of one position", .n = 40, BOTH_HEADS(6, 2, 24, 24),
      .window = 1 },
    { .name = "a window as long as the sequence", .n = 64,
      BOTH_HEADS(6, 2, 24, 24), .window = 128 },
    { .name = "slopes", .n = 200, BOTH_HEADS(6, 2, 24, 24), .slopes = 1 },
    { .name = "slopes, a window and capped scores", .n = 170,
      BOTH_HEADS(6, 2, 24, 24), .window = 90, .slopes = 1, .softcap = 2 },

    /* other heads, and more than one split of the CUDA backend's */
    { .name = "one head of K for twelve", .n = 130,
      BOTH_HEADS(12, 1, 64, 64) },
    { .name = "heads of 80 and 48", .n = 290, BOTH_HEADS(4, 4, 80, 48),
      .window = 64, .slopes = 1 },
    { .name = "a long window", .n = 540, BOTH_HEADS(3, 3, 64, 64),
      .window = 300 },
    { .name = "cross-attention", .n = 270, BOTH_HEADS(6, 6, 64, 64),
      .cross = 1 },
    { .name = "cross-attention of one row", .n = 1, BOTH_HEADS(2, 2, 8, 8),
      .cross = 1 },
    { .name = "sinks", .n = 270, BOTH_HEADS(4, 2, 128, 128), .window = 9,
      .sinks = 1 },
    { .name = "heads of 192", .n = 90, BOTH_HEADS(2, 1, 192, 160),
      .slopes = 1 },
    { .name = "spans", .n = 300, BOTH_HEADS(6, 2, 24, 24), .span = 37 },
    { .name = "spans in windows", .n = 290, BOTH_HEADS(4, 4, 80, 48),
      .span = 70, .window = 24 },
    { .name = "long spans, sinks and capped scores", .n = 540,
      BOTH_HEADS(4, 2, 128, 128), .span = 260, .sinks = 1, .softcap = 3 },
    { .name = "rows that see their own", .n = 330, BOTH_HEADS(4, 4, 72, 72),
      .own = 64 },
    { .name = "wide heads", .n = 80, BOTH_HEADS(2, 1, 320, 300),
      .window = 70, .slopes = 1 }
};

static const float  both_slopes[BOTH_MAX_HEADS] = {
    0.5f, 0.25f, 0.125f, 0.0625f, 0.7f, 0.35f,
    0.9f, 0.03f, 0.01f, 0.6f, 0.2f, 0.1f
};

static const float  both_sinks[BOTH_MAX_HEADS] = {
    0.5f, -1, 2, 0.1f, 1, 0, 3, -2, 0.7f, 1.5f, -0.5f, 0.2f
};


/* the positions that row i sees: `first` to `end` - 1 */

static inline void
both_sees(const both_case_t *c, uint32_t i, uint32_t *first, uint32_t *end)
{
    uint32_t  size;

    size = c->own ? c->own : c->span;
    *first = c->own ? i / size * size : 0;
    *end = c->own || i / size % 2 ? llm_min((i / size + 1) * size, c->n)
                                  : i + 1;

    if (c->window && i >= c->window) {
        *first = llm_max(*first, i - c->window + 1);
    }
}


/* numbers of `rows` rows of q, k and v */

static inline size_t
both_numbers(const both_case_t *c, uint32_t rows)
{
    return (size_t) rows * (c->heads * c->dk + c->kv_heads * (c->dk + c->dv));
}


/*
 * The rows of a case, q, k and v behind each other in data, as a sequence of
 * their own; beside: behind one of BOTH_BESIDE rows, with the same numbers.
 */

static inline void
both_attend(llm_exec_t *exec, const both_case_t *c, const float *data,
    int beside, float *out)
{
    uint32_t          i, first, rows, ends[3], len[2], later[2];
    uint32_t          pos[OPS_MAX_ROWS], pages[2 * OPS_MAX_PAGES];
    uint32_t          sees[2 * OPS_MAX_ROWS];
    llm_kv_t         *kv;
    llm_act_t        *q, *k, *v, *y;
    llm_vec_t        *slopes, *sinks;
    llm_rope_t        rope;
    llm_heads_t       h;
    llm_batch_t       b;
    const float      *key, *value;
    const llm_ops_t  *o = exec->ops;

    llm_kv_opts_t  opts = { .n_layers = 1, .n_pages = OPS_MAX_PAGES,
                            .n_kv_heads = c->kv_heads, .head_dim_k = c->dk,
                            .head_dim_v = c->dv, .n_heads = c->heads,
                            .kind = c->cross ? LLM_KV_CROSS : LLM_KV_FULL };

    first = beside ? BOTH_BESIDE : 0;
    rows = first + c->n;
    key = data + (size_t) c->n * c->heads * c->dk;
    value = key + (size_t) c->n * c->kv_heads * c->dk;

    kv = o->kv_create(exec, &opts, NULL);
    q = ops_act(exec, NULL, OPS_MAX_ROWS, c->heads * c->dk);
    k = ops_act(exec, NULL, OPS_MAX_ROWS, c->kv_heads * c->dk);
    v = ops_act(exec, NULL, OPS_MAX_ROWS, c->kv_heads * c->dv);
    y = ops_act(exec, NULL, OPS_MAX_ROWS, c->heads * c->dv);
    slopes = o->vec_create(exec, both_slopes, c->heads, NULL);
    sinks = o->vec_create(exec, both_sinks, c->heads, NULL);

    if (beside) {
        o->write(exec, q, 0, first, data + 7);
        o->write(exec, k, 0, first, data + 5);
        o->write(exec, v, 0, first, data + 3);
    }

    o->write(exec, q, first, c->n, data);
    o->write(exec, k, first, c->n, key);
    o->write(exec, v, first, c->n, value);

    for (i = 0; i < rows; i++) {
        pos[i] = i < first ? i : i - first;
        sees[2 * i] = 0;
        sees[2 * i + 1] = pos[i] + 1;

        if (i >= first && (c->span || c->own)) {
            both_sees(c, pos[i], &sees[2 * i], &sees[2 * i + 1]);
            sees[2 * i] = c->own ? sees[2 * i] : 0;
        }
    }

    for (i = 0; i < 2 * OPS_MAX_PAGES; i++) {
        pages[i] = (i * 7 + (i >= OPS_MAX_PAGES) * 100) % OPS_MAX_PAGES;
    }

    memset(&b, 0, sizeof(b));
    memset(&rope, 0, sizeof(rope));
    memset(&h, 0, sizeof(h));

    ends[0] = 0;
    ends[1] = beside ? first : rows;
    ends[2] = rows;
    len[0] = ends[1];
    len[1] = c->n;
    b.n_tokens = rows;
    b.n_seqs = beside ? 2 : 1;
    b.max_pages = OPS_MAX_PAGES;
    b.tokens = (const int32_t *) pos;
    b.pos = pos;
    b.seq_rows = ends;
    b.kv_len = len;
    b.pages[LLM_KV_FULL] = pages;
    b.pages[LLM_KV_WINDOW] = pages;     /* of devices for both kinds */
    b.cross = pages;
    b.cross_len = len;

    rope.mscale = 1;
    h.n_heads = c->heads;
    h.n_kv_heads = c->kv_heads;
    h.head_dim_k = c->dk;
    h.head_dim_v = c->dv;
    h.scale = 1.0f / sqrtf((float) c->dk);
    h.both = c->span == 0 && c->own == 0;
    h.spans = !h.both;
    b.sees = h.spans ? sees : NULL;
    h.window = c->window;
    h.softcap = c->softcap;
    h.slopes = c->slopes ? slopes : NULL;
    h.sinks = c->sinks ? sinks : NULL;

    if (c->cross) {
        ok(o->begin(exec, &b, NULL) == LLM_OK, "%s: a step before",
           c->name);
        o->rope_kv(exec, &h, &rope, NULL, k, v, kv);
        ok(o->end(exec, NULL) == LLM_OK, "%s: and its end", c->name);

        for (i = 0; i < rows; i++) {
            pos[i] += BOTH_LATER;
        }

        for (i = 0; i < b.n_seqs; i++) {
            later[i] = len[i] + BOTH_LATER;
        }

        b.kv_len = later;
    }

    ok(o->begin(exec, &b, NULL) == LLM_OK, "%s: a step begins", c->name);

    if (!c->cross) {
        o->rope_kv(exec, &h, &rope, q, k, v, kv);
    }

    o->attention(exec, &h, q, kv, y);
    ok(o->end(exec, NULL) == LLM_OK, "%s: and ends", c->name);
    memcpy(out, o->map(exec, y, first, c->n),
           (size_t) c->n * c->heads * c->dv * sizeof(float));

    o->vec_free(exec, slopes);
    o->vec_free(exec, sinks);
    o->act_free(exec, q);
    o->act_free(exec, k);
    o->act_free(exec, v);
    o->act_free(exec, y);
    o->kv_free(exec, kv);
}


/* the same from the definition: one head of one row, dv numbers */

static inline void
both_plain(const both_case_t *c, const float *data, uint32_t row,
    uint32_t head, double *out)
{
    double        score, sum, p;
    uint32_t      i, k, kv_head, first, end;
    const float  *q, *key, *value;

    memset(out, 0, c->dv * sizeof(double));
    kv_head = head / (c->heads / c->kv_heads);
    q = data + ((size_t) row * c->heads + head) * c->dk;
    key = data + (size_t) c->n * c->heads * c->dk;
    value = key + (size_t) c->n * c->kv_heads * c->dk + kv_head * c->dv;
    key += kv_head * c->dk;
    sum = c->sinks ? exp(both_sinks[head]) : 0;

    for (i = 0; i < c->n; i++, key += c->kv_heads * c->dk,
                                value += c->kv_heads * c->dv)
    {
        first = 0;
        end = c->n;

        if (c->span || c->own) {
            both_sees(c, row, &first, &end);

        } else if (c->window) {
            first = row > c->window / 2 ? row - c->window / 2 : 0;
            end = row + c->window / 2 + 1;
        }

        if (i < first || i >= end) {
            continue;
        }

        for (k = 0, score = 0; k < c->dk; k++) {
            score += (double) q[k] * key[k];
        }

        score *= 1.0f / sqrtf((float) c->dk);
        score = c->softcap > 0 ? c->softcap * tanh(score / c->softcap)
                               : score;
        score -= c->slopes ? both_slopes[head] * fabs((double) i - row) : 0;
        p = exp(score);
        sum += p;

        for (k = 0; k < c->dv; k++) {
            out[k] += p * value[k];
        }
    }

    for (k = 0; k < c->dv; k++) {
        out[k] /= sum;
    }
}

#endif /* LLM_TEST_OPS_BOTH_H */
