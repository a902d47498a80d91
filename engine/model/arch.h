/*
 * What a file says of its model, read and checked: the sizes, the RoPE, for
 * each layer its chain of blocks and their parameters, and where each tensor
 * lies.
 *
 * An architecture is an llm_arch_t, in a file engine/model/arch_NAME.c (or
 * with its relatives in one), and a row of archs.def.  What all have in
 * common is read by sizes.c; the architecture's reader adds or changes what
 * it has of its own.
 *
 * Invariant: after llm_desc_read() every tensor that the forward pass uses is
 * there with the right shape, and the file has no tensor and no field that
 * changes the result but is not used.
 *
 * A description owns its layers; the tensors are the GGUF's, which must
 * outlive it.
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

/* tensors of the whole model, likewise */
typedef enum {
#define LLM_GLOBAL(ID, name, in, out)  LLM_GT_##ID,
#include "engine/model/tensors.def"
    LLM_GT_N
} llm_global_tensor_t;

/* dimensions of tensors and buffers, likewise */
typedef enum {
#define LLM_DIM(ID, value)  LLM_DIM_##ID,
#include "engine/model/tensors.def"
    LLM_DIM_N
} llm_dim_t;

typedef struct {
    const char  *name;                  /* behind "blk.N.", if of a layer */
    llm_dim_t    in;
    llm_dim_t    out;
    llm_dim_t    stack;                 /* N_EXPERTS, N_HEADS: a matrix for
                                           each; NONE: one */
} llm_tensor_fact_t;

/* does a layer, or a model, have a tensor? */
typedef enum {
    LLM_WANT_NONE = 0,                  /* no: a file that has it is refused */
    LLM_WANT_OPTIONAL,
    LLM_WANT_REQUIRED
} llm_want_t;

/* lists end with an id of LLM_LT_N, or LLM_GT_N */
typedef struct {
    uint32_t     id;
    llm_want_t   want;
} llm_tensor_want_t;

/* `n` rows of a file's tensor, or elements of a vector, from `first` */
typedef struct {
    const llm_gguf_tensor_t  *t;        /* NULL: the file does not have it */
    uint32_t                  first;
    uint32_t                  n;
    const llm_gguf_tensor_t  *scale;    /* of products, one for each of its
                                           matrices; or NULL */
} llm_tensor_part_t;

typedef struct llm_block_s   llm_block_t;   /* blocks.h */
typedef struct llm_reader_s  llm_reader_t;  /* reader.h */

/* one layer */
typedef struct {
    const llm_block_t  *blocks[LLM_MAX_BLOCKS + 1];     /* NULL ends them */
    uint8_t             want[LLM_LT_N]; /* llm_want_t */
    llm_tensor_part_t   tensors[LLM_LT_N];

    /* attention */
    uint32_t            n_heads;
    uint32_t            n_kv_heads;     /* 0: the layer has no attention */
    uint32_t            head_dim_k;
    uint32_t            head_dim_v;
    uint32_t            kv_layer;       /* whose keys and values it reads: its
                                           own, or an earlier layer's */
    uint32_t            rope;           /* of the model's ropes, or
                                           LLM_NO_ROPE */
    uint32_t            window;         /* as in llm_heads_t */
    int                 chunks;
    int                 leaves;         /* what it keeps is not read once it
                                           has left a window: see
                                           llm_desc_window() */
    uint32_t            kind;           /* llm_kv_kind_t: of the cache that it
                                           keeps it in */
    float               scale;          /* of the scores */
    float               softcap;
    float               bound;          /* of the products that are Q, K and
                                           V; 0: none */
    float               temp_scale;
    uint32_t            temp_floor;
    uint32_t            temp_offset;
    int                 norm_last;      /* Q and K: after RoPE */
    int                 norm_v;         /* of each head, without weights */
    int                 norm_qk;        /* likewise; before RoPE, which does
                                           not change it */
    int                 gated;          /* each head of Q has a gate of its
                                           size behind it: the head's result
                                           is times its sigmoid; as with gates
                                           of a matrix of their own,
                                           ATTN_GATE */

    /* recurrent; a width of 0: the layer is not */
    llm_state_layer_t   state;
    uint32_t            n_ssm_groups;   /* heads of K, or groups of B and C */
    int                 tiled;          /* as in llm_delta_t */
    float               dt_min;         /* as in llm_scan_t */

    /*
     * Latent attention, block_latent.c: head_dim_v is the width of the
     * latent, and head_dim_k adds the rotated elements
     */
    int                 latent;
    uint32_t            q_rank;         /* width of Q's factors; 0: Q is one
                                           matrix */
    uint32_t            head_plain;     /* elements of Q's heads that are not
                                           rotated */
    uint32_t            head_out;       /* of a head of the result */

    /* feed-forward */
    uint32_t            n_ff;
    llm_act_fn_t        act;

    /* mixture of experts; 0 experts: the layer has none.  The file's vectors
       are not in it */
    llm_route_t         route;
    uint32_t            n_ff_expert;
    uint32_t            n_ff_shared;    /* 0: no shared experts */

    /* how results are added to the residual stream */
    int                 parallel;       /* the feed-forward network reads what
                                           attention reads */
    float               residual_scale;
} llm_layer_desc_t;

/* one of the model's ropes */
typedef struct {
    llm_rope_conf_t     conf;
    uint32_t            n_rot;
    int                 plain;          /* the factors of the file's tensors
                                           are not for it */
} llm_rope_desc_t;

/* an architecture's mixtures of experts; what a file says goes before it */
typedef struct {
    llm_route_score_t         score;
    int                       normalize;
    llm_want_t                shared;   /* shared experts, a network that all
                                           rows go through */
    int                       weigh_input;  /* as in llm_experts_t */
    int                       biased_sigmoid;   /* with a bias of the choice
                                                   the score is SIGMOID */
} llm_arch_experts_t;

/* has an architecture RoPE? */
typedef enum {
    LLM_ROPE_USED = 0,
    LLM_ROPE_UNUSED,                    /* whatever a file says of it */
    LLM_ROPE_FINETUNED                  /* unless rope.scaling.finetuned is
                                           false */
} llm_rope_use_t;

/* an architecture */
typedef struct {
    const char               *name;     /* general.architecture */
    llm_rope_kind_t           rope;
    llm_rope_use_t            rope_use;
    llm_norm_kind_t           norm;
    llm_glu_t                 act;
    int                       encoder;  /* attention is not causal */
    uint32_t                  window;   /* of files that do not say one; 0:
                                           there is none */
    int                       yarn_scores;  /* what files take from YaRN's
                                           factor on cos and sin is all of it:
                                           the scores have one instead, which
                                           read() gives them */
    int                       bare;     /* norms have no weights */
    /* a layer's chain; none: attention, then a feed-forward network */
    const llm_block_t        *blocks[LLM_MAX_BLOCKS + 1];
    /* instead of llm_block_attention, or NULL */
    const llm_block_t        *attention;
    /* instead of attention, in layers that have none; NULL: all have it.  A
       layer of such an architecture may have no network either */
    const llm_block_t        *recurrent;
    /* instead of such a network, in files that have experts; NULL: never */
    const llm_arch_experts_t *experts;
    /* what a layer with attention, or the model, has other than its blocks
       say; NULL: no more */
    const llm_tensor_want_t  *tensors;
    const llm_tensor_want_t  *globals;
    /* reads fields of its own, changes the description; NULL: has none */
    int                     (*read)(llm_reader_t *r);
} llm_arch_t;

typedef struct {
    const llm_arch_t          *arch;
    llm_hparams_t              hp;
    uint32_t                   n_skipped;   /* layers behind the last that are
                                               not run: those that predict
                                               more tokens */
    llm_rope_desc_t            ropes[LLM_MAX_ROPES];
    uint32_t                   n_ropes;     /* 0: the model has no RoPE */
    llm_rope_kind_t            rope_kind;   /* the architecture's, unless the
                                               file's is another */
    uint32_t                   long_ctx;    /* beyond this ctx the long factors
                                               of RoPE are taken */
    uint32_t                   n_input;     /* width of a layer's own input,
                                               0: there is none */
    float                      embd_scale;
    float                      logit_scale;
    float                      logit_cap;   /* 0: none */
    float                      max_slope;   /* of ALiBi; 0: there is none */

    llm_layer_desc_t          *layers;      /* [hp.n_layers] */
    llm_kv_layer_t            *kv;          /* [hp.n_layers] what each keeps */
    int                        kv_differs;  /* they are not all the same */
    llm_state_layer_t         *states;      /* [hp.n_layers] likewise, of a
                                               sequence */

    int                        up_first;    /* in a tensor that holds both, up
                                               comes before its gate */
    llm_tensor_fact_t          facts[LLM_LT_N];     /* of tensors.def, as the
                                                       architecture has them */
    uint8_t                    global_want[LLM_GT_N];
    const llm_gguf_tensor_t   *global[LLM_GT_N];
    const llm_gguf_tensor_t   *output_scale;    /* as llm_tensor_part_t's */
    const llm_gguf_tensor_t   *unused;  /* the first unknown tensor outside the
                                           layers, or NULL */
} llm_desc_t;

/* the names of all architectures, one after another; NULL behind the last */
const char *llm_desc_arch_name(size_t i);
/* other.c: an error if the file is known to be no language model */
int llm_other_check(const llm_gguf_t *g, llm_err_t *err);

/* on LLM_ERROR there is nothing to free */
int llm_desc_read(const llm_gguf_t *g, llm_desc_t *d, llm_err_t *err);
void llm_desc_free(llm_desc_t *d);

/* what a device must be able to do for it (llm_can_t), for sequences of
   ctx */
uint32_t llm_desc_needs(const llm_desc_t *d, uint32_t ctx);
/*
 * Finds the layers whose keys and values are read in windows alone, by
 * themselves or by other layers (`leaves`).  The most positions that a row
 * sees there, its own included; 0: no layer is such, for sequences of ctx.
 * *mixed: others are not.
 */
uint32_t llm_desc_window(llm_desc_t *d, uint32_t ctx, int *mixed);

/* dims.c: is the tensor a matrix for linear(), and not a vector? */
int llm_layer_tensor_is_matrix(const llm_desc_t *d, llm_layer_tensor_t t);
/* a dimension of a layer */
uint32_t llm_desc_dim(const llm_desc_t *d, const llm_layer_desc_t *l,
    llm_dim_t dim);

/* experts.c: the layer's mixture, if the architecture has some */
int llm_read_experts(llm_reader_t *r, uint32_t layer);

/* ssm.c: what layers keep that have a recurrent block: ARCH.ssm.*, or
   ARCH.shortconv.*; and is the layer without attention? */
int llm_read_ssm(llm_reader_t *r);
int llm_read_shortconv(llm_reader_t *r);
int llm_read_recurrent(llm_reader_t *r, uint32_t layer, int *recurrent);

/* sizes.c: what all architectures have in common */
int llm_desc_sizes(llm_reader_t *r);

/* tensors.c: finds and checks all tensors */
int llm_desc_tensors(const llm_gguf_t *g, llm_desc_t *d, llm_err_t *err);

/* rank.c and dense.c: do the tensors of a head on the host fit each other? */
int llm_desc_rank(const llm_gguf_t *g, llm_desc_t *d, llm_err_t *err);
int llm_desc_dense(const llm_gguf_t *g, const llm_desc_t *d, llm_err_t *err);

#endif /* LLM_MODEL_ARCH_H */
