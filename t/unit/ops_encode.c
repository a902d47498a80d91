/*
 * Attention without a causal mask, on every instruction set, against the
 * reference: whole sequences, windows on either side, slopes; the same bits
 * on other numbers of threads and beside another sequence.  The reference
 * itself is compared with plain sums here, and with transformers by
 * t/unit/encoders.c.
 */

#include "t/unit/ops.h"

#define HEADS     6
#define KV_HEADS  2
#define DIM       24
#define OTHER     45                    /* rows of a sequence beside it */

enum { Q_COLS = HEADS * DIM, K_COLS = KV_HEADS * DIM };

typedef struct {
    const char   *name;
    uint32_t      n;
    uint32_t      window;
    int           slopes;
    float         softcap;
} case_t;

static const case_t  cases[] = {
    { .name = "one row", .n = 1 },
    { .name = "a few rows", .n = 17 },
    { .name = "many rows", .n = 300 },
    { .name = "a window", .n = 150, .window = 24 },
    { .name = "an odd window", .n = 150, .window = 33 },
    { .name = "a window of one position", .n = 40, .window = 1 },
    { .name = "a window as long as the sequence", .n = 64, .window = 128 },
    { .name = "slopes", .n = 200, .slopes = 1 },
    { .name = "slopes, a window and capped scores", .n = 170, .window = 90,
      .slopes = 1, .softcap = 2 }
};

static const float  slopes[HEADS] = { 0.5f, 0.25f, 0.125f, 0.0625f, 0.7f,
                                      0.35f };


/* rows of q, k and v behind each other; beside: a sequence of OTHER rows comes
   first */

static void
attend(llm_dev_t *dev, const case_t *c, const float *data, int beside,
    float *out)
{
    uint32_t          i, first, rows, ends[3], len[2];
    uint32_t          pos[OPS_MAX_ROWS], pages[2 * OPS_MAX_PAGES];
    llm_kv_t         *kv;
    llm_act_t        *q, *k, *v, *y;
    llm_vec_t        *s;
    llm_rope_t        rope;
    llm_heads_t       h;
    llm_batch_t       b;
    const llm_ops_t  *o = dev->ops;

    llm_kv_opts_t  opts = { .n_layers = 1, .n_pages = OPS_MAX_PAGES,
                            .n_kv_heads = KV_HEADS, .head_dim_k = DIM,
                            .head_dim_v = DIM, .n_heads = HEADS };

    first = beside ? OTHER : 0;
    rows = first + c->n;

    kv = o->kv_create(dev, &opts, NULL);
    q = ops_act(dev, NULL, OPS_MAX_ROWS, Q_COLS);
    k = ops_act(dev, NULL, OPS_MAX_ROWS, K_COLS);
    v = ops_act(dev, NULL, OPS_MAX_ROWS, K_COLS);
    y = ops_act(dev, NULL, OPS_MAX_ROWS, Q_COLS);
    s = o->vec_create(dev, slopes, HEADS, NULL);

    if (beside) {
        o->write(dev, q, 0, first, data + 7);
        o->write(dev, k, 0, first, data + 5);
        o->write(dev, v, 0, first, data + 3);
    }

    o->write(dev, q, first, c->n, data);
    o->write(dev, k, first, c->n, data + (size_t) c->n * Q_COLS);
    o->write(dev, v, first, c->n, data + (size_t) c->n * (Q_COLS + K_COLS));

    for (i = 0; i < rows; i++) {
        pos[i] = i < first ? i : i - first;
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
    b.pos = pos;
    b.seq_rows = ends;
    b.kv_len = len;
    b.pages = pages;

    rope.mscale = 1;
    h.n_heads = HEADS;
    h.n_kv_heads = KV_HEADS;
    h.head_dim_k = DIM;
    h.head_dim_v = DIM;
    h.scale = 0.2f;
    h.both = 1;
    h.window = c->window;
    h.softcap = c->softcap;
    h.slopes = c->slopes ? s : NULL;

    o->begin(dev, &b, NULL);
    o->rope_kv(dev, &h, &rope, q, k, v, kv);
    o->attention(dev, &h, q, kv, y);
    o->end(dev, NULL);
    memcpy(out, o->map(dev, y, first, c->n),
           (size_t) c->n * Q_COLS * sizeof(float));

    o->vec_free(dev, s);
    o->act_free(dev, q);
    o->act_free(dev, k);
    o->act_free(dev, v);
    o->act_free(dev, y);
    o->kv_free(dev, kv);
}


/* the same from the definition: one head of one row */

static void
plain(const case_t *c, const float *data, uint32_t row, uint32_t head,
    double *out)
{
    double        score, sum, p;
    uint32_t      i, k;
    const float  *q, *key, *value;

    memset(out, 0, DIM * sizeof(double));
    q = data + (size_t) row * Q_COLS + head * DIM;
    sum = 0;

    for (i = 0; i < c->n; i++) {
        if (c->window && (uint32_t) abs((int) i - (int) row) > c->window / 2)
        {
            continue;
        }

        key = data + (size_t) c->n * Q_COLS + (size_t) i * K_COLS
              + head / (HEADS / KV_HEADS) * DIM;
        value = key + (size_t) c->n * K_COLS;

        for (k = 0, score = 0; k < DIM; k++) {
            score += (double) q[k] * key[k];
        }

        score *= 0.2f;
        score = c->softcap > 0 ? c->softcap * tanh(score / c->softcap)
                               : score;
        score -= c->slopes ? slopes[head] * fabs((double) i - row) : 0;
        p = exp(score);
        sum += p;

        for (k = 0; k < DIM; k++) {
            out[k] += p * value[k];
        }
    }

    for (k = 0; k < DIM; k++) {
        out[k] /= sum;
    }
}


static void
test_reference(const case_t *c, const float *data, const float *got)
{
    double    want[DIM], far;
    uint32_t  row, head, k;

    far = 0;

    for (row = 0; row < c->n; row++) {
        for (head = 0; head < HEADS; head++) {
            plain(c, data, row, head, want);

            for (k = 0; k < DIM; k++) {
                far = llm_max(far, fabs(want[k] - got[(size_t) row * Q_COLS
                                                      + head * DIM + k]));
            }
        }
    }

    ok(far < 1e-5, "the reference, %s: %.2g from plain sums", c->name, far);
}


static void
test(const case_t *c)
{
    int         same;
    float      *data, *want, *got, *again;
    size_t      i, n;
    double      far;
    uint32_t    threads;
    llm_dev_t  *dev;

    n = (size_t) c->n * Q_COLS;
    data = ops_alloc((n + 2 * (size_t) (c->n + OTHER) * K_COLS
                      + OTHER * Q_COLS) * sizeof(float));
    want = ops_alloc(n * sizeof(float));
    got = ops_alloc(n * sizeof(float));
    again = ops_alloc(n * sizeof(float));
    ops_fill(data, n + 2 * (size_t) (c->n + OTHER) * K_COLS + OTHER * Q_COLS,
             c->n);

    dev = ops_open(&llm_ops_reference, NULL, 1);
    attend(dev, c, data, 0, want);
    dev->ops->close(dev);
    test_reference(c, data, want);

    for (i = 0; i < llm_nelems(ops_isas); i++) {
        for (threads = 1, same = 1; threads <= 3; threads++) {
            dev = ops_open(&llm_ops_cpu, ops_isas[i], threads);

            if (dev == NULL) {
                break;
            }

            attend(dev, c, data, 0, threads == 1 ? got : again);
            same &= threads == 1 || memcmp(got, again, n * sizeof(float)) == 0;
            attend(dev, c, data, 1, again);
            same &= memcmp(got, again, n * sizeof(float)) == 0;
            dev->ops->close(dev);
        }

        if (threads == 1) {
            skip(ops_isas[i]);
            continue;
        }

        far = ops_distance(got, want, n);

        /* keys and values are rounded to 11 bits */
        ok(far < 1e-3, "%s: %s: %.2g", ops_isas[i], c->name, far);
        ok(same, "%s: %s: the same bits on 1 to 3 threads, alone and beside "
           "another sequence", ops_isas[i], c->name);
    }

    free(data);
    free(want);
    free(got);
    free(again);
}


/* which positions a row sees */

static void
test_bounds(void)
{
    llm_heads_t  h;

    memset(&h, 0, sizeof(h));
    h.both = 1;
    ok(llm_heads_first(&h, 9) == 0 && llm_heads_end(&h, 9, 20) == 20,
       "without a window a row sees all");

    h.window = 6;
    ok(llm_heads_first(&h, 9) == 6 && llm_heads_end(&h, 9, 20) == 13,
       "a window of 6: three on either side");
    ok(llm_heads_first(&h, 3) == 0 && llm_heads_first(&h, 2) == 0,
       "at the beginning");
    ok(llm_heads_end(&h, 16, 20) == 20 && llm_heads_end(&h, 17, 20) == 20
       && llm_heads_end(&h, 19, 20) == 20, "at the end");

    h.both = 0;
    ok(llm_heads_first(&h, 9) == 4 && llm_heads_end(&h, 9, 20) == 10,
       "with a causal mask nothing behind it");
}


int
main(void)
{
    size_t  i;

    test_bounds();

    for (i = 0; i < llm_nelems(cases); i++) {
        test(&cases[i]);
    }

    return done_testing();
}
