/*
 * The operations of a model's forward pass: one table per backend.  This file
 * has the parameters of the operations, in the order of their groups; ops.def
 * has the operations themselves, and says how to add one.
 *
 * The forward pass (engine/model/forward.c) is written once against the table.
 * kernels/cpu/reference*.c implement the table in plain float32 C; every other
 * implementation is checked against them.
 *
 * Invariants
 *   - A result row depends only on its own row, its own sequence and the
 *     weights, never on how many rows or sequences share the step: reductions
 *     run in an order fixed by the weight's shape and the position in the
 *     sequence.  Hence the same request gives the same bits in any batch.
 *   - Between begin() and end() an operation only enqueues or computes; it
 *     cannot fail.  A device error is reported by end().
 *   - No operation allocates memory: open() and the *_create() calls allocate
 *     all that a step needs.
 *
 * Ownership: a device (llm_device_t) owns what models share, on CPUs the
 * threads and the scratch memory of steps, and outlives the models (llm_exec_t)
 * that are opened on it.  The caller frees what a *_create() returned, before
 * close().  Weights keep a pointer into the mapped file if the device uses the
 * file's layout, so the file must stay mapped longer than they live.
 *
 * Threads: one thread at a time calls the operations of a model.  Different
 * threads may use different models on one device, for instance to load one
 * while another computes: the device gives them turns.  On CPUs, a thread has
 * the turn from begin() to end(), and must not begin a step of another model
 * meanwhile.
 */

#ifndef LLM_KERNELS_H
#define LLM_KERNELS_H

#include "engine/base/base.h"
#include "kernels/draw.h"
#include "kernels/types.h"

/* tokens of one KV page; a page has the same number in all layers of a cache */
#define LLM_KV_PAGE      16

/* results that only begin() and submit() have */
#define LLM_REPLAYED     (LLM_OTHER - 1)    /* begin(): the device has replayed
                                               a captured step */
#define LLM_REDO         (LLM_OTHER - 2)    /* submit(): the operations of the
                                               step must be repeated */

/*
 * err.code of begin() and end().  After the first two, because of an error or
 * because the device had no memory left, the device and all objects on it must
 * be closed and opened again.  After the third, only another process can use
 * the GPU again.
 */
#define LLM_DEVICE_ERROR   "device_error"
#define LLM_DEVICE_MEMORY  "device_out_of_memory"
#define LLM_DEVICE_LOST    "device_lost"

/* upper limit of the devices of a model */
#define LLM_MAX_DEVICES  16

/* parts of a row's position in rotary embeddings: time, height, width */
#define LLM_TURNS        3

/* in batch.given: the row is made from its token */
#define LLM_NOT_GIVEN    UINT32_MAX

/* upper limit of a layer's experts */
#define LLM_MAX_EXPERTS  1024

/* upper limit of the width of a short convolution's kernel */
#define LLM_MAX_CONV     32

typedef struct llm_ops_s     llm_ops_t;
typedef struct llm_device_s  llm_device_t;  /* the CPUs or a GPU, shared by
                                               models */
typedef struct llm_act_s     llm_act_t;     /* rows of activations */
typedef struct llm_weight_s  llm_weight_t;  /* a matrix in the device's
                                               layout */
typedef struct llm_vec_s     llm_vec_t;     /* a float32 vector: norm, bias */
typedef struct llm_kv_s      llm_kv_t;      /* pages of keys and values */
typedef struct llm_choice_s  llm_choice_t;  /* the experts chosen for rows */
typedef struct llm_state_s   llm_state_t;   /* recurrent states, all layers */

/*
 * The kinds of KV caches, each with pages of its own.  Arrays of LLM_KV_KINDS
 * hold one element per kind: page tables in a step, caches in a model, pages in
 * the scheduler.  A model with n_kinds caches has the kinds below n_kinds.
 *
 * LLM_KV_CROSS is not one of these: its keys and values are not those of a
 * sequence's own tokens but of what an encoder made, several sequences may read
 * the same, and none of their steps adds to them.
 *
 * To add a kind: add its number here, and say which layers use it
 * (llm_load_kinds() of engine/model/caches.c), how many pages a sequence needs
 * (llm_load_seq_pages()), which share of the memory it gets
 * (llm_load_split()), and how the scheduler fills its pages
 * (engine/sched/pages.h).  Backends and the forward pass need no change.
 */
typedef enum {
    LLM_KV_FULL = 0,                    /* layers with full attention; all
                                           layers, if the model has only one
                                           cache */
    LLM_KV_WINDOW,                      /* layers with a window, in a model that
                                           also has layers without: pages that
                                           left the window are not needed */
    LLM_KV_KINDS,
    LLM_KV_CROSS = LLM_KV_KINDS         /* cross-attention: all positions are
                                           seen; see batch.cross */
} llm_kv_kind_t;

/* first member of every backend's device */
struct llm_device_s {
    const llm_ops_t  *ops;
};

/* execution context: what a model has on a device, the first parameter of the
   operations; first member of every backend's own struct */
typedef struct {
    const llm_ops_t  *ops;
    llm_device_t     *device;           /* the shared device, set by
                                           engine/model/devices.c; NULL: a
                                           device that only this model uses */
} llm_exec_t;

typedef struct {
    llm_device_t  *device;              /* open(): device for the model; NULL:
                                           one that only this model uses */
    uint32_t     threads;               /* CPU threads; 0: all CPUs that the
                                           process may use, see
                                           base/machine.h */
    int          index;                 /* number of the GPU; -1: any */
    const char  *isa;                   /* CPU: "avx2", "avx512", "amx",
                                           "reference"; NULL: the best */
    llm_log_pt   log;                   /* may be NULL */
    void        *log_data;
    /* upper limits of a step; scratch memory is sized by these */
    uint32_t     max_tokens;            /* rows of a step */
    uint32_t     max_seqs;              /* sequences of a step */
    uint32_t     max_pages;             /* pages of one sequence */
    uint32_t     max_out;               /* rows that need results */
    uint32_t     weight_type;           /* llm_type_t of most matrices; a GPU
                                           chooses its 16-bit type by this */
    int          weights_fp8;           /* 1: matrices of F32, F16 and BF16,
                                           except the head, are converted to
                                           e4m3 with a scale for each row;
                                           open() fails if the device has no
                                           fp8 */
    int          kv_fp8;                /* 1: K and V are stored as e4m3, with
                                           a scale for each token and head */
    int          kv_q8;                 /* 1: K and V are stored as int8, with
                                           scales; CPUs alone have it */
    int          kv_f32;                /* 1: CPUs store K and V as float32 if
                                           the weights are F32 or F16, those of
                                           LLM_KV_CROSS if they are F32 */
    const char  *products;              /* a word of products.h: open() fails if
                                           the device cannot do that; NULL: the
                                           device's own.  "fp8": weights_fp8,
                                           and linear() rounds x to e4m3 with a
                                           scale for each row where the weight
                                           is fp8.  "bf16": weights of F32 and
                                           F16, except the head and routers,
                                           are rounded to bfloat16, as x is */
    uint32_t     n_kinds;               /* kinds of KV caches of the model; 0:
                                           one */
} llm_exec_opts_t;

/* result of a row in out_rows: logits, the final hidden state that the logits
   are computed from, or both */
typedef enum {
    LLM_GIVES_LOGITS = 0,
    LLM_GIVES_HIDDEN,
    LLM_GIVES_BOTH
} llm_gives_t;

/*
 * One step: rows of several sequences.  The rows of a sequence are adjacent, in
 * the order of their positions.  The caller owns the arrays; they must stay
 * until end().
 */
typedef struct {
    uint32_t         n_tokens;          /* rows */
    uint32_t         n_seqs;
    uint32_t         n_out;             /* rows that need results */
    llm_gives_t      gives;             /* results of these rows */
    uint32_t         max_pages;         /* stride of pages */
    const int32_t   *tokens;            /* [n_tokens] token ids */
    const uint32_t  *pos;               /* [n_tokens] position in sequence */
    const uint32_t  *seq_rows;          /* [n_seqs + 1] first row of each
                                           sequence */
    const uint32_t  *kv_len;            /* [n_seqs] positions in the cache
                                           after this step: pos of the last row
                                           + 1 */
    const uint32_t  *pages[LLM_KV_KINDS];   /* [n_seqs][max_pages] page numbers
                                           in the cache of each kind that the
                                           model has; position p is in page
                                           pages[kind][p / LLM_KV_PAGE], row
                                           p % LLM_KV_PAGE */
    const uint32_t  *cross;             /* [n_seqs][max_pages] pages in a cache
                                           of LLM_KV_CROSS; NULL: the step
                                           reads none */
    const uint32_t  *cross_len;         /* [n_seqs] positions there */
    const uint32_t  *out_rows;          /* [n_out] row numbers, ascending; a
                                           row may occur several times */
    const llm_draw_t  *draws;           /* [n_out] at most max_seqs of them are
                                           for drawn(); NULL: map() reads the
                                           logits of all rows */
    const uint32_t  *follows;           /* [n_tokens] draw of the previous step
                                           whose token replaces tokens[row];
                                           the row's own draw counts this token
                                           as generated, in addition to its
                                           edits; LLM_NO_DRAW: tokens[row] is
                                           used; NULL: LLM_NO_DRAW for all
                                           rows */
    const uint32_t  *slots;             /* [n_seqs] state slot of each sequence;
                                           NULL: the model has no recurrent
                                           state */
    /* for these, a device needs LLM_CAN_MEDIA */
    const uint32_t  *given;             /* [n_tokens] the row of `rows` that
                                           input() takes for this one, or
                                           LLM_NOT_GIVEN; NULL: no row is
                                           given.  A given row has a token, too,
                                           for what is made of tokens alone */
    const float     *rows;              /* [n_given][given_cols] */
    uint32_t         n_given;
    uint32_t         given_cols;
    const uint32_t  *turns;             /* [n_tokens][LLM_TURNS] positions by
                                           which rope_kv() rotates; NULL: all
                                           parts are pos, which always says
                                           where the row is in the cache */
    const uint32_t  *sees;              /* [n_tokens][2] first position that the
                                           row sees, and the one after the last;
                                           for heads with `spans`; NULL: rows
                                           see what is before them.  Positions
                                           that a row sees are in the cache, or
                                           in this step */
} llm_batch_t;

/* the rows of the step that an operation works on */
typedef enum {
    LLM_ROWS_ALL = 0,                   /* n_tokens */
    LLM_ROWS_OUT                        /* n_out, after gather() */
} llm_rows_t;

/* use of an activation buffer, from which a backend chooses the element
   type */
typedef enum {
    LLM_ACT_RESIDUAL = 0,               /* summed over layers: float32 */
    LLM_ACT_VALUE,                      /* input of linear() */
    LLM_ACT_PRODUCT,                    /* output of linear() */
    LLM_ACT_LOGITS,                     /* float32 */
    LLM_ACT_HIDDEN                       /* output of norm() for map():
                                           float32 */
} llm_act_kind_t;

/* uses of a weight (or-ed) */
#define LLM_WEIGHT_LINEAR  1
#define LLM_WEIGHT_EMBED   2
#define LLM_WEIGHT_HEAD    4            /* LINEAR that gives logits: it is not
                                           converted to fp8 */
#define LLM_WEIGHT_FINE    8            /* LINEAR whose products are exact to
                                           16 bits of x where a device would
                                           round x to 8 */

typedef enum {
    LLM_GLU_SILU = 0,
    LLM_GLU_GELU,                       /* tanh approximation */
    LLM_GLU_GELU_ERF,                   /* x / 2 (1 + erf(x / sqrt(2))) */
    LLM_GLU_RELU2,                      /* max(x, 0)^2 */
    LLM_GLU_XIELU,                      /* arXiv:2411.13010; only in act() */
    LLM_GLU_CLAMPED,                    /* gpt-oss, only with a gate: with
                                           g = min(gate, 7) and
                                           u = max(-7, min(up, 7)),
                                           g sigmoid(1.702 g) (u + 1) */
    LLM_GLU_SIGMOID,                    /* 1 / (1 + e^-x); needs
                                           LLM_CAN_STATE */
    LLM_GLU_LINEAR,                     /* x, so that glu() is gate * up; needs
                                           LLM_CAN_STATE */
    LLM_GLU_BOUND,                      /* max(least, min(x, bound)); only in
                                           act() */
    LLM_GLU_QUICK                       /* x / (1 + e^-1.702x); only in act();
                                           needs LLM_CAN_MEDIA */
} llm_glu_t;

/* an activation without a gate */
typedef struct {
    llm_glu_t         kind;
    /*
     * p, n, b and eps of XIELU, which is p x^2 + b x for x > 0, else
     * n (expm1(min(x, eps)) - x) + b x
     */
    float             xielu[4];
    float             bound;            /* of BOUND, as the next */
    float             least;
} llm_act_fn_t;

typedef enum {
    LLM_NORM_RMS = 0,                   /* x / sqrt(mean(x^2) + eps) */
    LLM_NORM_LAYER                      /* (x - mean(x))
                                           / sqrt(var(x) + eps) */
} llm_norm_kind_t;

/* y = norm(x) * w + bias (+ y) */
typedef struct {
    llm_norm_kind_t   kind;
    float             eps;
    const llm_vec_t  *w;                /* [columns] or [group]; NULL: 1 */
    const llm_vec_t  *bias;             /* [columns]; NULL: none */
    uint32_t          group;            /* columns that are normalised
                                           together; 0: the whole row */
    int               add;              /* 1: y += instead of y = */
} llm_norm_t;

typedef enum {
    LLM_ROPE_NORM = 0,                  /* pairs (2i, 2i + 1): llama */
    LLM_ROPE_NEOX                       /* pairs (i, i + n / 2): qwen */
} llm_rope_kind_t;

/* rotary embedding of some layers, arXiv:2104.09864 */
typedef struct {
    llm_rope_kind_t   kind;
    uint32_t          n_dims;           /* rotated dimensions of a head; 0: no
                                           rotation */
    const llm_vec_t  *inv_freq;         /* [n_dims / 2], scaling included */
    float             mscale;           /* YaRN's factor on cos and sin */
    uint32_t          sections[LLM_TURNS];  /* pairs that each part of
                                           batch.turns rotates, see
                                           llm_rope_part(); all 0: the first
                                           part rotates all */
    uint32_t          mixed;            /* the first so many parts take turns,
                                           pair by pair; 0: a part's pairs are
                                           adjacent */
} llm_rope_t;

/* what one layer stores in the cache per token */
typedef struct {
    uint32_t     n_kv_heads;            /* 0: nothing is stored */
    uint32_t     head_dim_k;
    uint32_t     head_dim_v;
    int          latent;                /* 1: V is the first head_dim_v elements
                                           of K, stored once */
} llm_kv_layer_t;

/* one cache: of all layers, or of the layers of one kind */
typedef struct {
    uint32_t     n_layers;
    uint32_t     n_pages;
    uint32_t     kind;                  /* llm_kv_kind_t; batch.pages[kind] has
                                           this cache's page numbers */
    uint32_t     n_kv_heads;            /* maximum over layers, as the next */
    uint32_t     head_dim_k;            /* two */
    uint32_t     head_dim_v;
    uint32_t     n_heads;               /* query heads, for the size of scratch
                                           memory */
    const llm_kv_layer_t  *layers;      /* [n_layers] owned by the caller, used
                                           until kv_free(); NULL: all have the
                                           maximum size, none is latent */
} llm_kv_opts_t;

/* y = x W^T (+ bias) (+ y) */
typedef struct {
    const llm_weight_t  *w;             /* [n_out, n_in] */
    const llm_vec_t     *bias;          /* [n_out]; NULL: none */
    llm_act_t           *y;             /* rows of n_out */
    int                  add;           /* 1: y += instead of y = */
} llm_linear_t;

/* the heads of one attention layer */
typedef struct {
    uint32_t          layer;
    uint32_t          n_heads;
    uint32_t          n_kv_heads;
    uint32_t          head_dim_k;
    uint32_t          head_dim_v;
    float             scale;            /* factor on scores */
    const llm_vec_t  *q_norm;           /* [head_dim_k] RMS norm; NULL: none */
    const llm_vec_t  *k_norm;
    float             norm_eps;
    int               norm_last;        /* 1: norms after the rotation, not
                                           before it */
    /*
     * 1: latent K and V.  A head of K consists of a head of V, then of a head
     * of rope_kv()'s k, of head_dim_k - head_dim_v elements.  Only the latter,
     * and as many last elements of each head of Q, are rotated.  No norms.
     */
    int               latent;

    int               both;             /* 1: no causal mask: rows see earlier
                                           and later positions, all that are in
                                           the cache with this step */
    uint32_t          spans;            /* 1: rows see what batch.sees says, and
                                           no position before the window; not
                                           with `both` */
    uint32_t          window;           /* positions that a row sees, its own
                                           included; with `both`, window / 2 on
                                           each side of its own; 0: all */
    int               chunks;           /* 1: windows do not slide: position p
                                           sees p / window * window to p */
    float             softcap;          /* cap in score = cap tanh(score / cap);
                                           0: none */
    const llm_vec_t  *sinks;            /* [n_heads] scores of a key without
                                           a value; NULL: none */
    const llm_vec_t  *slopes;           /* [n_heads] ALiBi, arXiv:2108.12409:
                                           score -= slope * distance of the
                                           positions; NULL: none */
    /*
     * The queries of position p are multiplied by
     * 1 + temp_scale log(1 + floor((p + temp_offset) / temp_floor))
     */
    float             temp_scale;       /* 0: no such factor */
    uint32_t          temp_floor;
    uint32_t          temp_offset;
} llm_heads_t;

/* ---- mixtures of experts ---- */

/* function from the router's logits to scores */
typedef enum {
    LLM_ROUTE_SOFTMAX = 0,              /* softmax over all experts */
    LLM_ROUTE_CHOSEN,                   /* experts are chosen by their logits;
                                           then softmax over the chosen ones */
    LLM_ROUTE_SIGMOID
} llm_route_score_t;

/*
 * How n_used of n_experts are chosen for a row, and their weights.
 *
 *   s_e = score(logit_e), p_e = s_e + bias_e
 *
 * With groups, the groups are ranked by their largest p, or by the sum of their
 * two largest p if group_pairs; only experts of the first n_groups_used groups
 * can be chosen.  The experts with the n_used largest p are chosen, in falling
 * order of p; in a tie, of groups or of experts, the lower number wins.
 * Without a bias and without group_pairs, p_e is the logit: logits have the
 * same order as s_e, and different logits are never rounded to equal values.
 *
 *   w_e = s_e, or s_e / (max(floor, sum of the chosen s) + eps) if normalize
 *   weight_e = w_e * scale * factor_e
 *
 * The caller makes sure that n_groups divides n_experts, and that n_groups_used
 * groups have at least n_used experts.
 */
typedef struct {
    llm_route_score_t  score;
    uint32_t           n_experts;
    uint32_t           n_used;          /* 1 ... n_experts */
    uint32_t           n_groups;        /* groups of adjacent experts; 0: no
                                           groups */
    uint32_t           n_groups_used;
    int                group_pairs;     /* 1: groups are ranked by the sum of
                                           their two largest p */
    int                normalize;
    float              floor;
    float              eps;
    float              scale;
    const llm_vec_t   *bias;            /* [n_experts]; NULL: no bias */
    const llm_vec_t   *factor;          /* [n_experts]; NULL: 1 */
} llm_route_t;

/* maxima over all layers; scratch memory is sized by these */
typedef struct {
    uint32_t           max_rows;        /* rows of a step, or with results */
    uint32_t           n_experts;       /* at most LLM_MAX_EXPERTS */
    uint32_t           n_used;
    uint32_t           n_in;            /* width of x and of y */
    uint32_t           n_ff;            /* width of an expert's hidden layer */
} llm_choice_opts_t;

/*
 * The experts of a layer.  For a row x with the chosen experts e_1, e_2 ... and
 * their weights w_1, w_2 ...:
 *
 *   f_e(x) = down_e (act(gate_e x + gate_bias_e, up_e x + up_bias_e))
 *            + down_bias_e
 *   y = (y +) w_1 f_e1(x) + w_2 f_e2(x) + ...     in this order
 *   y = (y +) f_e1(w_1 x) + f_e2(w_2 x) + ...     if weigh_input
 *
 * act(g, u) is the activation of g, times u, see llm_glu_t; without a gate it
 * is the activation of u.
 */
typedef struct {
    const llm_weight_t  *gate;          /* [n_experts][n_ff, n_in]; NULL: no
                                           gate */
    const llm_weight_t  *up;            /* [n_experts][n_ff, n_in] */
    const llm_weight_t  *down;          /* [n_experts][n_in, n_ff] */
    const llm_vec_t     *gate_bias;     /* [n_experts * n_ff]; NULL: none */
    const llm_vec_t     *up_bias;
    const llm_vec_t     *down_bias;     /* [n_experts * n_in]; NULL: none */
    llm_glu_t            act;
    int                  weigh_input;   /* 1: x is multiplied by the weights,
                                           not the experts' results */
    int                  add;           /* 1: y += instead of y = */
} llm_experts_t;

/* ---- recurrent layers ---- */

/*
 * The state of one layer for one sequence, in float32: the last inputs of a
 * short convolution, [conv_width - 1][conv_channels], the oldest first, and a
 * matrix [n_rows][n_cols] for each head, in a layout that the device chooses.
 * Sizes are 0 for a layer without convolution or without heads.
 */
typedef struct {
    uint32_t     conv_channels;
    uint32_t     conv_width;            /* width of the kernel, at most
                                           LLM_MAX_CONV */
    uint32_t     n_heads;
    uint32_t     n_rows;
    uint32_t     n_cols;
} llm_state_layer_t;

/*
 * A state slot is the state of one sequence in all layers.  Before a step, a
 * sequence's slot (batch.slots) holds the state after the position before its
 * first row; after the step, the state after its last row.  A sequence whose
 * first row is at position 0 begins with zeros, whatever the slot holds, so a
 * slot needs no clearing.
 *
 * The operations process the rows of a sequence one by one, in order, and keep
 * the state between rows in float32.  So the bits are the same however rows are
 * divided into steps.
 */
typedef struct {
    uint32_t     n_layers;
    uint32_t     n_slots;
    const llm_state_layer_t  *layers;   /* [n_layers] owned by the caller, used
                                           until state_free() */
} llm_state_opts_t;

/*
 * A causal depthwise convolution; width is conv_width of the layer's state:
 *
 *   y[t][c] = act(bias[c] + w[0][c] x[t - width + 1][c] + ...
 *                 + w[width - 1][c] x[t][c])
 */
typedef struct {
    uint32_t          layer;
    const llm_vec_t  *w;                /* [width * channels] */
    const llm_vec_t  *bias;             /* [channels]; NULL: none */
    int               silu;             /* 1: act is SiLU; 0: no activation */
} llm_conv_t;

/*
 * The gated delta rule, arXiv:2412.06464.  A row of x is q [n_k_heads, dim_k],
 * k [n_k_heads, dim_k] and v [n_v_heads, dim_v], in this order; alpha and beta
 * are [rows, n_v_heads].  Head h of v uses q and k of head
 * h / (n_v_heads / n_k_heads), or of head h % n_k_heads if tiled, and its state
 * S [dim_k, dim_v]:
 *
 *   q' = q / sqrt(|q|^2 + 1e-6) / sqrt(dim_k),  k' = k / sqrt(|k|^2 + 1e-6)
 *   g = exp(a[h] softplus(alpha + dt[h])),  b = sigmoid(beta)
 *   d = b (v - g S^T k'),  S = g S + k' d^T,  y = S^T q'
 */
typedef struct {
    uint32_t          layer;
    uint32_t          n_k_heads;        /* divides n_v_heads */
    uint32_t          n_v_heads;
    uint32_t          dim_k;
    uint32_t          dim_v;
    int               tiled;            /* 1: head h % n_k_heads of q and k */
    const llm_vec_t  *a;                /* [n_v_heads], mostly below 0 */
    const llm_vec_t  *dt;               /* [n_v_heads] */
} llm_delta_t;

/*
 * The selective scan of Mamba-2, arXiv:2405.21060.  A row of the operation's x
 * is x [n_heads, dim], B [n_groups, n_state] and C [n_groups, n_state], in this
 * order; dt is [rows, n_heads].  Head h uses B and C of group
 * h / (n_heads / n_groups), and its state S [n_state, dim]:
 *
 *   s = max(dt_min, softplus(dt + dt_bias[h])),  g = exp(a[h] s)
 *   S = g S + B (s x)^T,  y = S^T C + d[h] x
 */
typedef struct {
    uint32_t          layer;
    uint32_t          n_heads;
    uint32_t          dim;
    uint32_t          n_groups;         /* divides n_heads */
    uint32_t          n_state;
    float             dt_min;
    const llm_vec_t  *a;                /* [n_heads], mostly below 0 */
    const llm_vec_t  *dt_bias;          /* [n_heads] */
    const llm_vec_t  *d;                /* [n_heads] */
} llm_scan_t;


/* the page numbers of a sequence in this cache */
static inline const uint32_t *
llm_batch_table(const llm_batch_t *b, const llm_kv_opts_t *kv, uint32_t seq)
{
    return (kv->kind == LLM_KV_CROSS ? b->cross : b->pages[kv->kind])
           + (size_t) seq * b->max_pages;
}


/* the positions of a sequence in this cache, after the step */
static inline uint32_t
llm_batch_len(const llm_batch_t *b, const llm_kv_opts_t *kv, uint32_t seq)
{
    return kv->kind == LLM_KV_CROSS ? b->cross_len[seq] : b->kv_len[seq];
}


/* the first position that the row at pos sees */
static inline uint32_t
llm_heads_first(const llm_heads_t *h, uint32_t pos)
{
    uint32_t  before;

    before = h->both ? h->window / 2 : h->window - 1;

    if (h->window == 0 || pos <= before) {
        return 0;
    }

    return h->chunks ? pos / h->window * h->window : pos - before;
}


/* the position after the last one that the row at pos sees, in a sequence of
   len positions */
static inline uint32_t
llm_heads_end(const llm_heads_t *h, uint32_t pos, uint32_t len)
{
    if (!h->both) {
        return pos + 1;
    }

    return h->window && len - pos > h->window / 2 ? pos + h->window / 2 + 1
                                                  : len;
}


/* the first position that a row of the step sees, and the one after the last,
   in a sequence of len positions */
static inline uint32_t
llm_batch_first(const llm_batch_t *b, const llm_heads_t *h, uint32_t row)
{
    uint32_t  first;

    first = llm_heads_first(h, b->pos[row]);

    return h->spans && b->sees ? llm_max(first, b->sees[2 * row]) : first;
}


static inline uint32_t
llm_batch_end(const llm_batch_t *b, const llm_heads_t *h, uint32_t row,
    uint32_t len)
{
    return h->spans && b->sees ? b->sees[2 * row + 1]
                               : llm_heads_end(h, b->pos[row], len);
}


/* the part of batch.turns that rotates pair i */
static inline uint32_t
llm_rope_part(const llm_rope_t *r, uint32_t i)
{
    uint32_t  part;

    if (r->mixed) {
        part = i % r->mixed;

        return i < r->mixed * r->sections[part] ? part : 0;
    }

    for (part = 0; part < LLM_TURNS; part++) {
        if (i < r->sections[part]) {
            return part;
        }

        i -= r->sections[part];
    }

    return 0;
}


/* the position by which pair i of a row is rotated */
static inline uint32_t
llm_batch_turn(const llm_batch_t *b, const llm_rope_t *r, uint32_t row,
    uint32_t i)
{
    return b->turns ? b->turns[LLM_TURNS * row + llm_rope_part(r, i)]
                    : b->pos[row];
}

/* capabilities of a backend (or-ed), see ops.def */

enum {
#define LLM_CAN(ID, words)  LLM_CAN_BIT_##ID,
#include "kernels/ops.def"
    LLM_CAN_N
};

typedef enum {
    LLM_CAN_ALWAYS = 0,
#define LLM_CAN(ID, words)  LLM_CAN_##ID = 1 << LLM_CAN_BIT_##ID,
#include "kernels/ops.def"
    LLM_CAN_ALL = (1 << LLM_CAN_N) - 1,
    LLM_CAN_OPTION = 1 << 30            /* marks an operation in ops.def that
                                           may be NULL; no backend sets it */
} llm_can_t;


/* a backend's table: an operation for each row of ops.def */
struct llm_ops_s {
    const char   *name;                 /* "cpu", "reference", "cuda" ... */
    uint32_t      can;                  /* llm_can_t */
#define LLM_OP(group, needs, result, name, parameters)                       \
    result      (*name) parameters;
#include "kernels/ops.def"
};


/* the name and group, as in "scan (recurrent)", of an operation that is NULL
   although the table's capabilities need it; NULL: none is missing */
const char *llm_ops_lacks(const llm_ops_t *ops);


extern const llm_ops_t  llm_ops_reference;
extern const llm_ops_t  llm_ops_cpu;

/*
 * The function that a backend's shared object exports as LLM_BACKEND_SYMBOL.
 * It gets the caller's LLM_INTERFACE and sizeof(llm_ops_t), and returns the
 * backend's table, or NULL if the backend was built with other headers than the
 * caller.  LLM_INTERFACE is a checksum of these headers (engine/flags.mk): it
 * changes with the table and with every struct that operations get.
 */
#define LLM_BACKEND_SYMBOL  "llm_backend_table"
typedef const llm_ops_t *(*llm_backend_pt)(uint32_t interface, size_t size);

#endif /* LLM_KERNELS_H */
