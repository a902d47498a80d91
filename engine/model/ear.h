/*
 * The encoder of sound of a model, on the device of its decoder: two
 * convolutions, layers whose rows see all of the window, and the keys and
 * values of its states for the decoder's cross-attention.
 *
 * A window is encoded in pieces, each a step of the device: some rows of one
 * convolution, or of one layer's keys and values, or of the rest of a layer.
 * So no piece is longer than a step of prompt, and steps of the decoder may
 * come between.  A row's arithmetic does not depend on the pieces.
 *
 * ear_load.c makes and frees it, ear.c runs it, ear_align.c has what the
 * decoder's heads look at.  The model owns it.
 */

#ifndef LLM_MODEL_EAR_H
#define LLM_MODEL_EAR_H

#include "engine/model/blocks.h"

typedef enum {
    LLM_EAR_CONV_1 = 0,
    LLM_EAR_CONV_2,
    LLM_EAR_KEYS,                     /* keys and values of a layer */
    LLM_EAR_LAYER,                    /* the rest of it */
    LLM_EAR_LAST,                     /* the norm after the layers */
    LLM_EAR_CROSS,                    /* keys and values of a layer of the
                                           decoder */
    LLM_EAR_DONE
} llm_ear_stage_t;

typedef struct {
    llm_weight_t       *w[LLM_ST_N];
    llm_vec_t          *v[LLM_ST_N];
} llm_ear_layer_t;

struct llm_ear_s {
    uint32_t            rows;           /* of a piece, at most */
    uint32_t            n_chunks;       /* pieces that n_ctx rows are */
    uint32_t            n_pages;        /* of a window */
    uint32_t            n_states;

    llm_weight_t       *gw[LLM_SG_N];
    llm_vec_t          *gv[LLM_SG_N];
    llm_ear_layer_t  *layers;         /* [n_layers] */

    /* buffers of `rows` rows */
    llm_act_t          *in;             /* a convolution's inputs */
    llm_act_t          *conv;           /* its results */
    llm_act_t         **x;              /* [n_chunks] the residual stream */
    llm_act_t          *h;
    llm_act_t          *q;
    llm_act_t          *k;
    llm_act_t          *v;
    llm_act_t          *attn;
    llm_act_t          *up;
    llm_act_t          *act;
    llm_act_t          *out;            /* final states */
    llm_kv_t           *kv;             /* of the layer that is computed */
    llm_act_t         **queries;        /* [layers of the decoder] queries of
                                           cross-attention that are kept; NULL:
                                           no alignment head is there */

    /* on the host */
    float              *input;          /* [rows][columns of in] */
    float              *frames;         /* [2 n_ctx][n_embd] of CONV_1 */
    float              *states;         /* [n_ctx][n_embd] */
    float             **keys;           /* [n_states] keys of the alignment
                                           heads, [n_align][n_ctx][head]; NULL:
                                           not wanted so far */

    /* the step of a piece */
    int32_t            *tokens;         /* [rows] zeros */
    uint32_t           *pos;            /* [rows] */
    uint32_t           *pages;          /* [n_pages] of kv */
    uint32_t           *cross;          /* [n_pages] of the state */

    /* the window that is encoded */
    llm_ear_stage_t   stage;
    uint32_t            state;
    uint32_t            layer;
    uint32_t            chunk;
    const float        *mel;            /* [n_mels][2 n_ctx] the caller's */
    int                 words;          /* keys are kept */
    int                 keeps;          /* the decoder's step keeps queries */
};

/* ear_load.c: does nothing for a model without such an encoder */
int llm_load_ear(llm_load_t *l);
void llm_ear_free(llm_model_t *m);

/* ear.c: as llm_whisper_begin() and llm_whisper_encode() */
void llm_ear_begin(llm_model_t *m, uint32_t state, const float *mel,
    int words);
int llm_ear_next(llm_model_t *m, llm_err_t *err);

/* ear_align.c: keeps the queries of a layer, if the step is for that; copies
   the keys of alignment heads in a layer from n rows of K, of the window's
   rows from `first` on; copies the queries of alignment heads of n rows that
   were kept to `to`, of head i to row `at` of [n_align][of][head_dim]; the
   weights of n queries of head i, [n][n_ctx] */
void llm_ear_keep_queries(const llm_pass_t *p);
void llm_ear_keep_keys(llm_model_t *m, uint32_t layer, uint32_t first,
    uint32_t n);
void llm_ear_take_queries(llm_model_t *m, uint32_t n, uint32_t at,
    uint32_t of, float *to);
void llm_ear_weigh(const llm_model_t *m, uint32_t state, uint32_t i,
    uint32_t n, const float *queries, float *weights);

/* pages of a window; 0: the model has no such encoder */
static inline uint32_t
llm_ear_n_pages(const llm_desc_t *d)
{
    return (d->ear.n_ctx + LLM_KV_PAGE - 1) / LLM_KV_PAGE;
}

#endif /* LLM_MODEL_EAR_H */
