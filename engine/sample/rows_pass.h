/*
 * The passes of rows.c for vectors of one width: rows.c includes this file for
 * each width, with W lanes, P(name) and TARGET set.  N vectors are the sixteen
 * lanes of a sum, so all widths give the same sums.
 */

#define N  (LLM_ROW_LANES / W)

typedef float    P(llm_f) __attribute__((vector_size(W * 4)));
typedef int32_t  P(llm_i) __attribute__((vector_size(W * 4)));


static inline TARGET void
P(llm_max)(P(llm_f) *max, const P(llm_f) *v)
{
    P(llm_i)  gt;

    gt = *v > *max;
    *max = (P(llm_f)) (((P(llm_i)) *v & gt) | ((P(llm_i)) *max & ~gt));
}


static inline TARGET void
P(llm_exp)(const P(llm_f) *px, P(llm_f) *out)
{
    P(llm_f)  x, n, r, p;
    P(llm_i)  keep;

    /* numbers below the limit are computed at the limit, and then set to 0 */

    keep = *px >= LOWEST;
    x = (P(llm_f)) { 0 } + LOWEST;
    x = (P(llm_f)) (((P(llm_i)) *px & keep) | ((P(llm_i)) x & ~keep));

    llm_exp_body(x, n, r, p);

    p = (P(llm_f)) ((P(llm_i)) p
                    + __builtin_convertvector(n, P(llm_i)) * (1 << 23));

    *out = (P(llm_f)) ((P(llm_i)) p & keep);
}


static TARGET int
P(llm_scan)(const float *row, uint32_t n, float *block_max)
{
    int       bad;
    float     m;
    uint32_t  b, i, end, j;
    P(llm_f)  v[2], max[2];
    P(llm_i)  good;

    good = (P(llm_i)) { 0 } == 0;
    bad = 0;

    for (b = 0, i = 0; i < n; b++) {
        end = (n - i < LLM_ROW_BLOCK) ? n : i + LLM_ROW_BLOCK;
        max[0] = (P(llm_f)) { 0 } - INFINITY;
        max[1] = max[0];

        for ( /* void */ ; i + 2 * W <= end; i += 2 * W) {
            memcpy(v, row + i, sizeof(v));
            P(llm_max)(&max[0], &v[0]);
            P(llm_max)(&max[1], &v[1]);
            good &= (v[0] < INFINITY) & (v[1] < INFINITY);
        }

        P(llm_max)(&max[0], &max[1]);
        m = -INFINITY;

        for (j = 0; j < W; j++) {
            m = (max[0][j] > m) ? max[0][j] : m;
        }

        for ( /* void */ ; i < end; i++) {
            m = (row[i] > m) ? row[i] : m;
            bad |= !(row[i] < INFINITY);
        }

        block_max[b] = m;
    }

    for (j = 0; j < W; j++) {
        bad |= good[j] == 0;
    }

    return bad;
}


static TARGET double
P(llm_sum)(const float *row, uint32_t n, float max, float scale,
    double *block_sum)
{
    double    sum, part;
    uint32_t  b, i, end, j;
    P(llm_f)  v, e, acc[N];
    llm_f4_t  four[LLM_ROW_LANES / 4];

    sum = 0;

    for (b = 0, i = 0; i < n; b++) {
        end = (n - i < LLM_ROW_BLOCK) ? n : i + LLM_ROW_BLOCK;

        for (j = 0; j < N; j++) {
            acc[j] = (P(llm_f)) { 0 };
        }

        for ( /* void */ ; i + LLM_ROW_LANES <= end; i += LLM_ROW_LANES) {
            for (j = 0; j < N; j++) {
                memcpy(&v, row + i + j * W, sizeof(v));
                v = (v - max) * scale;
                P(llm_exp)(&v, &e);
                acc[j] += e;
            }
        }

        /* adds the lanes by halves, the last four one by one */

        memcpy(four, acc, sizeof(four));
        four[0] = (four[0] + four[2]) + (four[1] + four[3]);
        part = 0;

        for (j = 0; j < 4; j++) {
            part += four[0][j];
        }

        for ( /* void */ ; i < end; i++) {
            part += llm_row_exp((row[i] - max) * scale);
        }

        if (block_sum) {
            block_sum[b] = part;
        }

        sum += part;
    }

    return sum;
}

#undef N
#undef W
#undef P
#undef TARGET
