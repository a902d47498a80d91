/*
 * Running token ids through a model from a unit test: in steps of any size,
 * on scattered KV pages, alone or beside other sequences.
 */

#ifndef LLM_T_MODEL_RUN_H
#define LLM_T_MODEL_RUN_H

#include "engine/model/model.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* a sequence as a test keeps it */
typedef struct {
    const int32_t  *ids;
    uint32_t        n;
    uint32_t        done;               /* positions in the cache */
    uint32_t        page;               /* its first page, and its slot;
                                           pages follow in strides of
                                           RUN_STRIDE */
    float          *logits;             /* [n][n_vocab] */
} run_seq_t;

#ifndef RUN_MAX_SEQS
#define RUN_MAX_SEQS  8
#define RUN_STRIDE    3
#endif


static inline void
run_pages(const llm_model_t *m, const run_seq_t *s, uint32_t *pages,
    uint32_t max)
{
    uint32_t  i;

    for (i = 0; i < max; i++) {
        pages[i] = (s->page + i * RUN_STRIDE)
                   % llm_model_n_pages(m, LLM_KV_FULL);
    }
}


/* pages of windows: a ring for each sequence, so what a window has left is
   another place's */

static inline void
run_windows(const llm_model_t *m, uint32_t seq, uint32_t *pages, uint32_t max)
{
    uint32_t  i, ring;

    ring = llm_model_n_pages(m, LLM_KV_WINDOW) / llm_model_max_seqs(m);

    for (i = 0; i < max; i++) {
        pages[i] = ring ? seq * ring + i % ring : UINT32_MAX;
    }
}


/*
 * One step: take[i] more tokens of sequence i (0: it sits the step out);
 * all_out: every row gives logits, else the last row of each sequence.
 */

static inline int
run_step(llm_model_t *m, run_seq_t *s, const uint32_t *take, uint32_t n_seqs,
    int all_out, llm_err_t *err)
{
    int           rc;
    uint32_t      i, k, rows, max_pages, n_vocab;
    uint32_t     *pos, *out, *pages, *windows, seq_rows[RUN_MAX_SEQS + 1];
    uint32_t      kv_len[RUN_MAX_SEQS], slots[RUN_MAX_SEQS];
    int32_t      *tokens;
    run_seq_t    *of[RUN_MAX_SEQS];
    llm_batch_t   b;

    memset(&b, 0, sizeof(b));
    n_vocab = llm_model_hparams(m)->n_vocab;
    max_pages = (llm_model_ctx(m) + LLM_KV_PAGE - 1) / LLM_KV_PAGE;

    tokens = malloc(llm_model_batch(m) * sizeof(int32_t));
    pos = malloc(llm_model_batch(m) * sizeof(uint32_t));
    out = malloc(llm_model_batch(m) * sizeof(uint32_t));
    pages = malloc((size_t) RUN_MAX_SEQS * max_pages * sizeof(uint32_t));
    windows = malloc((size_t) RUN_MAX_SEQS * max_pages * sizeof(uint32_t));

    rows = 0;

    for (i = 0; i < n_seqs; i++) {
        if (take[i] == 0) {
            continue;
        }

        seq_rows[b.n_seqs] = rows;
        run_pages(m, &s[i], pages + (size_t) b.n_seqs * max_pages,
                  max_pages);
        run_windows(m, i, windows + (size_t) b.n_seqs * max_pages, max_pages);
        of[b.n_seqs] = &s[i];
        slots[b.n_seqs] = llm_model_n_slots(m)
                          ? s[i].page % llm_model_n_slots(m) : 0;

        for (k = 0; k < take[i]; k++, rows++) {
            tokens[rows] = s[i].ids[s[i].done + k];
            pos[rows] = s[i].done + k;

            if (all_out || k + 1 == take[i]) {
                out[b.n_out++] = rows;
            }
        }

        kv_len[b.n_seqs++] = s[i].done + take[i];
    }

    seq_rows[b.n_seqs] = rows;

    b.n_tokens = rows;
    b.max_pages = max_pages;
    b.tokens = tokens;
    b.pos = pos;
    b.seq_rows = seq_rows;
    b.kv_len = kv_len;
    b.pages[LLM_KV_FULL] = pages;
    b.pages[LLM_KV_WINDOW] = windows;
    b.out_rows = out;
    b.slots = slots;

    rc = llm_model_forward(m, &b, err);

    for (i = 0, k = 0; rc == LLM_OK && i < b.n_seqs; i++) {
        for ( /* void */ ; k < b.n_out && out[k] < seq_rows[i + 1]; k++) {
            memcpy(of[i]->logits + (size_t) pos[out[k]] * n_vocab,
                   llm_model_logits(m, k), n_vocab * sizeof(float));
        }

        of[i]->done = kv_len[i];
    }

    free(tokens);
    free(pos);
    free(out);
    free(pages);
    free(windows);

    return rc;
}


/* a whole sequence in steps of at most `chunk` tokens */

static inline int
run_chunks(llm_model_t *m, run_seq_t *s, uint32_t chunk, int all_out,
    llm_err_t *err)
{
    uint32_t  take;

    s->done = 0;

    while (s->done < s->n) {
        take = llm_min(chunk, s->n - s->done);

        if (run_step(m, s, &take, 1, all_out, err) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


/* root mean square of a - b, as a share of b's standard deviation */

static inline double
run_distance(const float *a, const float *b, size_t n)
{
    size_t  i;
    double  mean, var, diff;

    mean = 0;

    for (i = 0; i < n; i++) {
        mean += b[i];
    }

    mean /= (double) n;
    var = 0;
    diff = 0;

    for (i = 0; i < n; i++) {
        var += (b[i] - mean) * (b[i] - mean);
        diff += ((double) a[i] - b[i]) * ((double) a[i] - b[i]);
    }

    return sqrt(diff / var);
}


static inline int
run_order(const void *a, const void *b)
{
    double  x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}


/* distances, the least first */

static inline void
run_sort(double *d, size_t n)
{
    qsort(d, n, sizeof(double), run_order);
}


/* why no model was loaded: this machine has no such instructions, there is no
   such backend or device, or the GPU is too old for fp8.  Nothing else is a
   reason to skip a test */

static inline int
run_lacks(const llm_err_t *err)
{
    return strstr(err->msg, " on this machine")
           || strncmp(err->msg, "there is no ", 12) == 0
           || strstr(err->msg, "there is no device ")
           || strstr(err->msg, " or later is needed");
}

#endif /* LLM_T_MODEL_RUN_H */
