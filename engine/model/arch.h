/*
 * The description of a file's model, read and checked: the sizes, the RoPE,
 * each layer's chain of blocks with their parameters, and where each tensor
 * lies.
 *
 * An architecture is an llm_arch_t in a file engine/model/arch_NAME.c, which
 * similar architectures share, and a row of archs.def.  sizes.c reads what all
 * have in common; the architecture's reader adds or changes the rest.
 *
 * Invariant: after llm_desc_read() every tensor that the forward pass uses is
 * there with the right shape, and the file has no tensor and no field that
 * changes the result but is not used.
 *
 * A description owns its layers; the tensors belong to the llm_gguf_t, which
 * must outlive the description.
 */

#ifndef LLM_MODEL_ARCH_H
#define LLM_MODEL_ARCH_H

#include "engine/model/model.h"
#include "engine/model/rope.h"

#define LLM_MAX_WIDTH     (1u << 24)    /* of any row, and of n_vocab */
#define LLM_MAX_LAYERS    4096
#define LLM_MAX_HEAD_DIM  1024
#define LLM_MAX_CTX       (1u << 28)
#define LLM_MAX_BLOCKS    8             /* of a layer */
#define LLM_MAX_ROPES     2             /* of a model */

#define LLM_NO_ROPE       LLM_MAX_ROPES

/* tensors of one layer, the rows of tensors.def */
typedef enum {
#define LLM_TENSOR(ID, name, in, out)  LLM_LT_##ID,
#include "engine/model/tensors.def"
    LLM_LT_N
} llm_layer_tensor_t;

/* tensors of the whole model, rows of tensors.def, too */
typedef enum {
#define LLM_GLOBAL(ID, name, in, out)  LLM_GT_##ID,
#include "engine/model/tensors.def"
    LLM_GT_N
} llm_global_tensor_t;

/* dimensions of tensors and buffers, rows of tensors.def, too */
typedef enum {
#define LLM_DIM(ID, value)  LLM_DIM_##ID,
#include "engine/model/tensors.def"
    LLM_DIM_N
} llm_dim_t;

typedef struct {
    const char  *name;                  /* of a layer: what follows "blk.N." */
    llm_dim_t    in;
    llm_dim_t    out;
    llm_dim_t    stack;                 /* N_EXPERTS, N_HEADS: a matrix for
                                           each; NONE: a single one */
} llm_tensor_fact_t;

/* whether a layer, or a model, has a tensor */
typedef enum {
    LLM_WANT_NONE = 0,                  /* no: a file that has it is refused */
    LLM_WANT_OPTIONAL,
    LLM_WANT_REQUIRED
} llm_want_t;

/* a list ends with the id LLM_LT_N or LLM_GT_N */
typedef struct {
    uint32_t     id;
    llm_want_t   want;
} llm_tensor_want_t;

/* `n` rows of a file's tensor, or elements of a vector, from `first` */
typedef struct {
    const llm_gguf_tensor_t  *t;        /* NULL: the file does not have it */
    uint32_t                  first;
    uint32_t                  n;
    const llm_gguf_tensor_t  *scale;    /* factor on products, one number for
                                           each matrix of t; or NULL */
} llm_tensor_part_t;

typedef struct llm_block_s   llm_block_t;   /* blocks.h */
typedef struct llm_reader_s  llm_reader_t;  /* reader.h */

/* one layer */
typedef struct {
    const llm_block_t  *blocks[LLM_MAX_BLOCKS + 1];     /* ends with NULL */
    uint8_t             want[LLM_LT_N]; /* llm_want_t */
    llm_tensor_part_t   tensors[LLM_LT_N];

    /* attention */
    uint32_t            n_heads;
    uint32_t            n_kv_heads;     /* 0: the layer has no attention */
    uint32_t            head_dim_k;
    uint32_t            head_dim_v;
    uint32_t            kv_layer;       /* layer whose keys and values it
                                           reads: itself or an earlier one */
    uint32_t            rope;           /* index in the model's ropes, or
                                           LLM_NO_ROPE */
    uint32_t            window;         /* as in llm_heads_t, like chunks,
                                           softcap and temp_* */
    int                 chunks;
    int                 spans;          /* rows see what batch.sees says */
    int                 leaves;         /* its keys and values are not read any
                                           more once they have left a window:
                                           see llm_desc_window() */
    uint32_t            kind;           /* cache of its keys and values,
                                           llm_kv_kind_t */
    float               scale;          /* of the scores */
    float               softcap;
    float               bound;          /* elements of Q, K and V are clamped
                                           to -bound ... bound; 0: not */
    float               temp_scale;
    uint32_t            temp_floor;
    uint32_t            temp_offset;
    int                 pair;           /* Q, K and V are products of PAIR,
                                           not of the norm of the residual
                                           stream: EAGLE3 */
    int                 outside;        /* it has no keys and values, and reads
                                           those of layer kv_layer of the model
                                           that it drafts for */
    int                 norm_last;      /* norms of Q and K come after RoPE */
    int                 norm_v;         /* each head of V is normalised,
                                           without weights */
    int                 norm_qk;        /* so is each head of Q and K, before
                                           RoPE, which does not change that */
    int                 gated;          /* the product Q has, after each head,
                                           a gate of the head's size: sigmoid
                                           (gate) multiplies the head's result.
                                           The matrix ATTN_GATE makes such
                                           gates, too */

    /* recurrent layers; state.conv_width is 0 in others */
    llm_state_layer_t   state;
    uint32_t            n_ssm_groups;   /* delta net: heads of K; Mamba-2:
                                           groups of B and C */
    int                 tiled;          /* as in llm_delta_t */
    float               dt_min;         /* as in llm_scan_t */

    /*
     * Latent attention, block_latent.c: head_dim_v is the width of the
     * latent, and head_dim_k is that and the rotated elements
     */
    int                 latent;
    uint32_t            q_rank;         /* width between Q's two matrices; 0: Q
                                           has one */
    uint32_t            head_plain;     /* elements of a head of Q that are not
                                           rotated */
    uint32_t            head_out;       /* width of a head of the result */

    /* feed-forward */
    uint32_t            n_ff;
    llm_act_fn_t        act;

    /* mixture of experts; route.n_experts is 0 without one.  The block sets
       route.bias and route.factor, the file's vectors */
    llm_route_t         route;
    uint32_t            n_ff_expert;
    uint32_t            n_ff_shared;    /* 0: no shared experts */

    /* residual stream */
    int                 parallel;       /* the feed-forward network reads the
                                           input that attention reads */
    float               residual_scale;
} llm_layer_desc_t;

/* tensors of a layer of an encoder of sound */
typedef enum {
    LLM_ST_NORM = 0,
    LLM_ST_NORM_BIAS,
    LLM_ST_Q,
    LLM_ST_Q_BIAS,
    LLM_ST_K,
    LLM_ST_K_BIAS,
    LLM_ST_V,
    LLM_ST_V_BIAS,
    LLM_ST_OUT,
    LLM_ST_OUT_BIAS,
    LLM_ST_FF_NORM,
    LLM_ST_FF_NORM_BIAS,
    LLM_ST_UP,
    LLM_ST_UP_BIAS,
    LLM_ST_DOWN,
    LLM_ST_DOWN_BIAS,
    LLM_ST_N
} llm_ear_tensor_t;

/* its other tensors */
typedef enum {
    LLM_SG_CONV_1 = 0,                  /* [n_embd][n_mels][3], as a matrix */
    LLM_SG_CONV_1_BIAS,
    LLM_SG_CONV_2,                      /* [n_embd][n_embd][3], as a matrix */
    LLM_SG_CONV_2_BIAS,
    LLM_SG_POS,                         /* [n_ctx][n_embd] */
    LLM_SG_POST_NORM,
    LLM_SG_POST_NORM_BIAS,
    LLM_SG_N
} llm_ear_global_t;

/*
 * An encoder of sound, "a." (ear_desc.c): Whisper's.  Its states are as wide
 * as the rows of the decoder that reads them.
 */
typedef struct {
    uint32_t                   n_layers;    /* 0: the model has none */
    uint32_t                   n_embd;
    uint32_t                   n_ff;
    uint32_t                   n_heads;
    uint32_t                   n_ctx;       /* states of a window, of two
                                               frames each */
    uint32_t                   n_mels;
    const llm_gguf_tensor_t   *global[LLM_SG_N];
    const llm_gguf_tensor_t  *(*layers)[LLM_ST_N];  /* [n_layers] owned; NULL
                                                       in it: no such tensor */
    /* heads of the decoder that look at the sound of a word: layer, head */
    uint32_t                 (*align)[2];   /* [n_align] owned */
    uint32_t                   n_align;
} llm_ear_desc_t;

/*
 * What a description is of: a model, or a head that drafts tokens for another
 * model from that one's states (head.h).  The rows of a head are given.
 */
typedef enum {
    LLM_HEAD_NONE = 0,
    LLM_HEAD_MTP,                       /* the first layer for multi-token
                                           prediction of the model's file */
    LLM_HEAD_EAGLE3,                    /* a file of its own, as the next */
    LLM_HEAD_ASSISTANT                  /* Gemma 4's: it reads the keys and
                                           values of the model */
} llm_head_kind_t;

/* layers whose inputs an EAGLE3 head reads */
#define LLM_HEAD_TAPS  3

typedef struct {
    llm_head_kind_t     kind;
    uint32_t            block;          /* number of the first layer in the
                                           file */
    uint32_t            n_target;       /* width of the model's states */
    uint32_t            n_in;           /* of what the matrix reads that makes
                                           a row, or in EAGLE3 attention */
    uint32_t            taps[LLM_HEAD_TAPS];
    const llm_gguf_tensor_t  *words;    /* EAGLE3: the model's token for each of
                                           the head's; NULL: they are the
                                           same */
    int                 norm_taps;      /* EAGLE3: what is read of the model is
                                           normalised; so is what is added to
                                           attention's result */
    int                 norm_residual;
} llm_head_desc_t;

/* one of the model's ropes */
typedef struct {
    llm_rope_conf_t     conf;
    uint32_t            n_rot;
    int                 plain;          /* without the factors in the file's
                                           tensors */
    uint32_t            sections[LLM_TURNS];    /* as in llm_rope_t, like
                                           `mixed` */
    uint32_t            mixed;
} llm_rope_desc_t;

/* an architecture's mixtures of experts: defaults for what a file can say */
typedef struct {
    llm_route_score_t         score;
    int                       normalize;
    llm_want_t                shared;   /* shared experts, a network that all
                                           rows go through */
    int                       weigh_input;  /* as in llm_experts_t */
    int                       biased_sigmoid;   /* in layers with PROBS_BIAS
                                                   the score is SIGMOID */
} llm_arch_experts_t;

/* whether an architecture has RoPE */
typedef enum {
    LLM_ROPE_USED = 0,
    LLM_ROPE_UNUSED,                    /* a file's rope.* are ignored */
    LLM_ROPE_FINETUNED                  /* used unless rope.scaling.finetuned
                                           is false */
} llm_rope_use_t;

/* an architecture */
typedef struct {
    const char               *name;     /* general.architecture */
    llm_rope_kind_t           rope;
    llm_rope_use_t            rope_use;
    llm_norm_kind_t           norm;
    llm_glu_t                 act;
    int                       encoder;  /* attention is not causal */
    uint32_t                  window;   /* default for files without
                                           attention.sliding_window; 0: none */
    int                       yarn_scores;  /* with yarn_log_multiplier, YaRN's
                                           factor is not on cos and sin: read()
                                           puts one on the scores instead */
    int                       bare;     /* norms have no weights */
    int                       predicts; /* its layers for multi-token
                                           prediction can draft: they read the
                                           state after the last norm */
    llm_head_kind_t           head;     /* a head, and no model */
    /* a layer's chain; empty: attention, then a feed-forward network */
    const llm_block_t        *blocks[LLM_MAX_BLOCKS + 1];
    /* replaces llm_block_attention; or NULL */
    const llm_block_t        *attention;
    /* replaces attention in layers without it; NULL: all layers have it.  With
       this, a layer may lack a feed-forward network, too */
    const llm_block_t        *recurrent;
    /* mixtures, which replace the feed-forward network in layers with experts;
       NULL: the architecture has no experts */
    const llm_arch_experts_t *experts;
    /* changes to the lists of tensors: what blocks want in layers with
       attention; what every model wants.  NULL: no change */
    const llm_tensor_want_t  *tensors;
    const llm_tensor_want_t  *globals;
    /* reads the architecture's own fields, changes the description; or NULL */
    int                     (*read)(llm_reader_t *r);
} llm_arch_t;

typedef struct {
    const llm_arch_t          *arch;
    llm_hparams_t              hp;
    llm_head_desc_t            head;
    uint32_t                   n_skipped;   /* blocks after these layers that
                                               are not run: multi-token
                                               prediction */
    llm_rope_desc_t            ropes[LLM_MAX_ROPES];
    uint32_t                   n_ropes;     /* 0: the model has no RoPE */
    llm_rope_kind_t            rope_kind;   /* the architecture's, unless its
                                               reader changes it */
    uint32_t                   long_ctx;    /* RoPE takes the long factors if
                                               ctx is larger */
    uint32_t                   n_input;     /* width of a layer's own input,
                                               block_input.c; 0: none */
    float                      embd_scale;
    float                      logit_scale;
    float                      logit_cap;   /* 0: none */
    float                      max_slope;   /* ALiBi's max_alibi_bias; 0: no
                                               ALiBi */

    llm_layer_desc_t          *layers;      /* [hp.n_layers] */
    llm_kv_layer_t            *kv;          /* [hp.n_layers] what each keeps
                                               of a token */
    int                        kv_differs;  /* kv differs between layers, or is
                                               latent */
    llm_state_layer_t         *states;      /* [hp.n_layers] what each keeps
                                               of a sequence */

    llm_ear_desc_t             ear;

    int                        up_first;    /* in a tensor that holds both, up
                                               comes before its gate */
    llm_tensor_fact_t          facts[LLM_LT_N];     /* of tensors.def, with the
                                                       architecture's changes */
    uint8_t                    global_want[LLM_GT_N];   /* llm_want_t */
    const llm_gguf_tensor_t   *global[LLM_GT_N];
    const llm_gguf_tensor_t   *output_scale;    /* as in llm_tensor_part_t */
    const llm_gguf_tensor_t   *unused;  /* the first unknown tensor outside the
                                           layers, or NULL */
} llm_desc_t;

/* name of architecture i; NULL after the last */
const char *llm_desc_arch_name(size_t i);
/* other.c: an error if the file is known not to be a language model */
int llm_other_check(const llm_gguf_t *g, llm_err_t *err);

/* on LLM_ERROR there is nothing to free */
int llm_desc_read(const llm_gguf_t *g, llm_desc_t *d, llm_err_t *err);
/* the same of a head: MTP, of a model's file, or NONE: the file is that of a
   head */
int llm_desc_read_head(const llm_gguf_t *g, llm_head_kind_t kind,
    llm_desc_t *d, llm_err_t *err);
/* the kind of a head's file by its architecture; NONE: it is another file */
llm_head_kind_t llm_desc_head_kind(const llm_gguf_t *g);
void llm_desc_free(llm_desc_t *d);

/* what a device must be able to do to run sequences of ctx, llm_can_t
   (or-ed) */
uint32_t llm_desc_needs(const llm_desc_t *d, uint32_t ctx);
/*
 * Sets `leaves` of each layer whose keys and values are read in windows alone,
 * by itself and by other layers.  Returns the most positions that a row sees
 * in these layers, its own included; 0: with sequences of ctx there are no
 * such layers.  *mixed: there are layers of both sorts.
 */
uint32_t llm_desc_window(llm_desc_t *d, uint32_t ctx, int *mixed);

/* dims.c: whether the tensor is a matrix for linear(), not a vector */
int llm_layer_tensor_is_matrix(const llm_desc_t *d, llm_layer_tensor_t t);
/* a dimension's value in a layer; 0 if the layer has none */
uint32_t llm_desc_dim(const llm_desc_t *d, const llm_layer_desc_t *l,
    llm_dim_t dim);

/* experts.c: the layer's mixture, if the architecture has mixtures */
int llm_read_experts(llm_reader_t *r, uint32_t layer);

/* ssm.c: the states of recurrent blocks, from ARCH.ssm.* or ARCH.shortconv.*;
   whether the layer has a recurrent block instead of attention */
int llm_read_ssm(llm_reader_t *r);
int llm_read_shortconv(llm_reader_t *r);
int llm_read_recurrent(llm_reader_t *r, uint32_t layer, int *recurrent);

/* tensors.c: checks a tensor's dimensions, of which 0 stands for any, and that
   it is no quantised vector; the error for a tensor that is missing */
int llm_desc_shape(const llm_gguf_t *g, const llm_gguf_tensor_t *t,
    uint32_t row, uint32_t rows, uint32_t stack, int matrix, llm_err_t *err);
int llm_desc_no_tensor(const llm_gguf_t *g, const char *name,
    llm_err_t *err);

/* ear_desc.c: the sizes of an encoder of sound, ARCH.audio.*; its tensors,
   "a.", none of which may be left */
int llm_read_ear(llm_reader_t *r);
int llm_desc_ear(const llm_gguf_t *g, llm_desc_t *d, llm_err_t *err);

/* sizes.c: the fields that all architectures have in common */
int llm_desc_sizes(llm_reader_t *r);

/* tensors.c: finds and checks all tensors */
int llm_desc_tensors(const llm_gguf_t *g, llm_desc_t *d, llm_err_t *err);

/* rank.c, dense.c: an error if the tensors of a head that runs on the host do
   not fit each other */
int llm_desc_rank(const llm_gguf_t *g, llm_desc_t *d, llm_err_t *err);
int llm_desc_dense(const llm_gguf_t *g, const llm_desc_t *d, llm_err_t *err);

#endif /* LLM_MODEL_ARCH_H */
