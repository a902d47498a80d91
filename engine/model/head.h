/*
 * Heads: small networks that draft tokens for a model from that model's own
 * states, after the rows that it computes (keep of llm_model_opts_t).
 *
 *   mtp        the layer for multi-token prediction of the model's file
 *   eagle3     EAGLE3, a file of its own (arXiv:2503.01840)
 *   assistant  Gemma 4's, a file of its own
 *
 * A head is a model (model.h) of one or a few layers, whose rows are given.
 * Row i is made of token i + 1 and of the model's states at position i, and its
 * logits are those of token i + 2.  Further tokens are drafted from the head's
 * own states.  What a row is made of is put together on the host: embeddings
 * are looked up and normalised there.
 *
 * A head has seats, each with pages for a sequence.  A seat may begin at any
 * position of the sequence: its rows are counted from 0, and rotary embeddings
 * depend on differences of positions alone.  An assistant keeps nothing, and
 * reads the pages of the model.
 *
 * One thread uses a head, between two steps of the model.  The head owns its
 * model and its arrays; the model that it drafts for outlives it.
 */

#ifndef LLM_HEAD_H
#define LLM_HEAD_H

#include "engine/model/model.h"

typedef struct llm_head_s  llm_head_t;

/* where rows are computed */
typedef struct {
    uint32_t         seat;
    uint32_t         pos;               /* rows that the seat has; an assistant:
                                           positions that the model has */
    const uint32_t  *pages[LLM_KV_KINDS];   /* an assistant's: the model's
                                           pages of the sequence */
    uint32_t         n_pages;
} llm_head_at_t;

/* what the model must keep for the head of a file, path; NULL: for the layer
   for multi-token prediction of the model's own file.  Reads and checks
   headers */
int llm_head_keeps(const char *path, llm_keep_t *keep, llm_err_t *err);
/* is the file at path a head's?  LLM_ABSENT: it is another one; LLM_ERROR: it
   cannot be read */
int llm_head_is(const char *path, llm_err_t *err);
/* an error if the file at `path` is no head that can draft for a model of the
   width of that at `model`, or, with NULL, if the model's own is none; reads
   headers alone */
int llm_head_check(const char *model, const char *path, llm_err_t *err);

/* opts: ctx of a seat, max_seqs seats, batch rows of a step, and what the
   model was loaded with; the device is the model's last one */
llm_head_t *llm_head_load(llm_model_t *of, const char *path,
    const llm_model_opts_t *opts, llm_err_t *err);
void llm_head_free(llm_head_t *h);

/* floats of a row's states: as many of the model's rows as it keeps, one after
   the other */
uint32_t llm_head_width(const llm_head_t *h);
uint32_t llm_head_ctx(const llm_head_t *h);     /* rows of a seat */
uint32_t llm_head_batch(const llm_head_t *h);
uint32_t llm_head_seats(const llm_head_t *h);
/* whether it keeps nothing of earlier rows, so that only the last one of the
   model counts */
int llm_head_is_last(const llm_head_t *h);
/* tokens that may be given to it; numbers in a row of logits */
uint32_t llm_head_n_tokens(const llm_head_t *h);
uint32_t llm_head_n_vocab(const llm_head_t *h);
/* the model's token of number i in the logits */
int32_t llm_head_token(const llm_head_t *h, uint32_t i);

/* copies what the model has kept of row `row` of its last step, n rows of
   llm_head_width() floats */
void llm_head_read(const llm_head_t *h, uint32_t row, uint32_t n, float *to);

/*
 * Computes n rows, at most a batch: of the tokens and of the states before
 * them; of the last of them there are logits, or with `all` of each.
 */
int llm_head_rows(llm_head_t *h, const llm_head_at_t *at, const int32_t *ids,
    const float *states, uint32_t n, int all, llm_err_t *err);
/* one row more, from the head's own state: of the last row with logits */
int llm_head_next(llm_head_t *h, const llm_head_at_t *at, int32_t id,
    llm_err_t *err);
/* logits of the last step, [llm_head_n_vocab()], i: 0 unless `all` */
const float *llm_head_logits(llm_head_t *h, uint32_t i);

#endif /* LLM_HEAD_H */
