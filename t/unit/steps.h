/*
 * Steps of a model of which nothing is known but that it has loaded: a first
 * one of some tokens, and others of one, whose numbers may be anything.
 */

#ifndef LLM_T_STEPS_H
#define LLM_T_STEPS_H

#include "engine/model/model.h"

#include <stddef.h>

#define STEPS_MAX  8


/* an encoder has the first step alone; results are asked for and not read */

static inline int
steps_run(llm_model_t *m, uint32_t first, uint32_t others)
{
    int32_t      ids[STEPS_MAX];
    uint32_t     i, n, from, end, pos[STEPS_MAX], out[STEPS_MAX];
    uint32_t     rows[2], kv_len, page = 0, slot = 0;
    llm_err_t    err;
    llm_batch_t  b;
    const int    encoder = llm_model_hparams(m)->encoder;

    end = encoder ? first : first + others;

    for (from = 0; from < end; from += n) {
        n = from ? 1 : first;
        kv_len = from + n;
        rows[0] = 0;
        rows[1] = n;

        for (i = 0; i < n; i++) {
            pos[i] = from + i;
            out[i] = i;
            ids[i] = (int32_t) ((from + i) % llm_model_hparams(m)->n_vocab);
        }

        memset(&b, 0, sizeof(b));
        b.n_tokens = n;
        b.n_seqs = 1;
        b.n_out = n;
        b.max_pages = 1;
        b.tokens = ids;
        b.pos = pos;
        b.seq_rows = rows;
        b.kv_len = &kv_len;
        b.pages[LLM_KV_FULL] = &page;
        b.out_rows = out;
        b.slots = &slot;
        b.gives = encoder ? LLM_GIVES_HIDDEN : LLM_GIVES_LOGITS;

        if (llm_model_forward(m, &b, &err) != LLM_OK
            || (encoder ? llm_model_hidden(m, n - 1)
                        : llm_model_logits(m, n - 1)) == NULL)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}

#endif /* LLM_T_STEPS_H */
