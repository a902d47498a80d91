/*
 * The operations that a model is made of: one table per backend.  This file
 * has what operations take, in the order of their groups; the operations
 * themselves, and how to add one, are in ops.def.
 *
 * The forward pass (engine/model/forward.c) is written once against the table;
 * kernels/cpu/reference*.c implements it in plain float32 C and is what every
 * other implementation is checked against.
 *
 * Invariants
 *   - A result row depends on its own row, its own sequence and the weights
 *     alone, never on how many rows or sequences share the step: reductions
 *     run in an order fixed by the weight's shape and the position in the
 *     sequence.  Hence the same request gives the same bits in any batch.
 *   - Between begin() and end() an operation only enqueues or computes; it
 *     cannot fail.  A device error surfaces in end().
 *   - No operation allocates; what a step needs was allocated by the
 *     *_create() calls and by open().
 *
 * Ownership: a device owns the threads and the scratch memory of steps, and
 * outlives what is opened on it.  What a *_create() returned is the caller's to
 * free before close().  Weights keep a pointer into the mapped file when that
 * layout is used as it is, so the file outlives them.
 *
 * Threads: one thread at a time calls the operations of what open() gave.
 * Different threads may do so with different models on one device, for instance
 * to load one while another computes: the device lets them take turns.  Between
 * begin() and end() on CPUs a thread has the turn, and must not begin a step of
 * another model.
 */

#ifndef LLM_KERNELS_H
#define LLM_KERNELS_H

#include "engine/base/base.h"
#include "kernels/draw.h"
#include "kernels/types.h"

/* tokens of one KV page; pages of all layers of a cache share one number */
#define LLM_KV_PAGE      16

/* results of begin() and submit() alone */
#define LLM_REPLAYED     (LLM_OTHER - 1)    /* the device has replayed a
                                               captured step */
#define LLM_REDO         (LLM_OTHER - 2)    /* the operations of the step must
                                               be repeated */

/*
 * Err.code of begin() and end(): the device, with all that is on it, must be
 * closed and opened again, because of an error or because it had no memory
 * left; or the GPU is lost to this process, and only another process can use
 * it again.
 */
#define LLM_DEVICE_ERROR   "device_error"
#define LLM_DEVICE_MEMORY  "device_out_of_memory"
#define LLM_DEVICE_LOST    "device_lost"

/* the most experts of a layer */
#define LLM_MAX_EXPERTS  1024

/* the widest kernel of a short convolution */
#define LLM_MAX_CONV     32

typedef struct llm_ops_s     llm_ops_t;
typedef struct llm_device_s  llm_device_t;  /* CPUs or a GPU, which models
                                               share */
typedef struct llm_act_s     llm_act_t;     /* rows of activations */
typedef struct llm_weight_s  llm_weight_t;  /* a matrix in the device's
                                               layout */
typedef struct llm_vec_s     llm_vec_t;     /* a float32 vector: norm, bias */
typedef struct llm_kv_s      llm_kv_t;      /* pages of keys and values */
typedef struct llm_choice_s  llm_choice_t;  /* which experts rows go to */
typedef struct llm_state_s   llm_state_t;   /* recurrent states, all layers */

/*
 * The kinds of caches of keys and values, each with pages of its own.  What
 * has something of each kind (a step its tables, a model its caches, the
 * scheduler its pages) has an array of LLM_KV_KINDS; a model has those below
 * some number.
 *
 * Another kind, say of what cross-attention reads, is a number here, and: which
 * layers it is for (llm_load_kinds() of engine/model/caches.c), how many pages
 * a sequence needs (llm_load_seq_pages()) and gets of the memory
 * (llm_load_split()), and how the scheduler fills them (engine/sched/pages.h).
 * Backends and the forward pass need no change.
 */
typedef enum {
    LLM_KV_FULL = 0,                    /* of layers that see everything, or of
                                           all, if the model has one cache */
    LLM_KV_WINDOW,                      /* of layers with windows, beside
                                           others: their pages are needed for a
                                           shorter time */
    LLM_KV_KINDS
} llm_kv_kind_t;

/* the beginning of every backend's device */
struct llm_device_s {
    const llm_ops_t  *ops;
};

/* the beginning of what a model has on a device: all operations get it */
typedef struct {
    const llm_ops_t  *ops;
    llm_device_t     *device;           /* engine/model/devices.c's: where it
                                           is; NULL: a device of its own */
} llm_dev_t;

typedef struct {
    llm_device_t  *device;              /* of open(): where; NULL: a device of
                                           its own */
    uint32_t     threads;               /* CPU threads, 0: all that it may
                                           use, see base/machine.h */
    int          index;                 /* which GPU; -1: any */
    const char  *isa;                   /* CPU: "avx2", "avx512", "amx",
                                           "reference"; NULL: the best */
    llm_log_pt   log;                   /* may be NULL */
    void        *log_data;
    /* the most of any step; scratch memory is sized by these */
    uint32_t     max_tokens;            /* rows of a step */
    uint32_t     max_seqs;
    uint32_t     max_pages;             /* pages of one sequence */
    uint32_t     max_out;               /* rows that need results */
    uint32_t     weight_type;           /* llm_type_t of most matrices, by
                                           which a GPU chooses its 16-bit
                                           type */
    int          weights_fp8;           /* matrices of F32, F16 and BF16,
                                           except the head, become e4m3 with a
                                           scale for each row; open() fails if
                                           the device has no fp8 */
    int          kv_fp8;                /* K and V are kept as e4m3, with a
                                           scale for each token and head */
    uint32_t     n_kinds;               /* kinds of caches that the model has;
                                           0: one */
} llm_dev_opts_t;

/* what a row in out_rows gives: logits, the final hidden state that they come
   from, or both */
typedef enum {
    LLM_GIVES_LOGITS = 0,
    LLM_GIVES_STATES,
    LLM_GIVES_BOTH
} llm_gives_t;

/*
 * One step: rows of several sequences, those of a sequence together and in
 * the order of their positions.  Arrays are the caller's and must stay until
 * end().
 */
typedef struct {
    uint32_t         n_tokens;          /* rows */
    uint32_t         n_seqs;
    uint32_t         n_out;             /* rows that need results */
    llm_gives_t      gives;             /* which results */
    uint32_t         max_pages;         /* stride of pages */
    const int32_t   *tokens;            /* [n_tokens] */
    const uint32_t  *pos;               /* [n_tokens] position in sequence */
    const uint32_t  *seq_rows;          /* [n_seqs + 1] first row of each */
    const uint32_t  *kv_len;            /* [n_seqs] positions in the cache
                                           after this step: pos of the last row
                                           + 1 */
    const uint32_t  *pages[LLM_KV_KINDS];   /* [n_seqs][max_pages] page numbers
                                           in the cache of each kind that the
                                           model has; position p lies in page
                                           pages[kind][p / LLM_KV_PAGE] at slot
                                           p % LLM_KV_PAGE */
    const uint32_t  *out_rows;          /* [n_out] row numbers, ascending; a
                                           row may be there several times */
    const llm_draw_t  *draws;           /* [n_out] at most max_seqs of them are
                                           for drawn(); NULL: the logits of all
                                           rows are for map() */
    const uint32_t  *follows;           /* [n_tokens] the row's token is not
                                           tokens[row] but what this draw of
                                           the step before gives; LLM_NO_DRAW:
                                           it is tokens[row]; NULL: so for all
                                           rows.  The row's own draw counts
                                           that token as generated once more
                                           than its edits say */
    const uint32_t  *slots;             /* [n_seqs] where each sequence's
                                           recurrent state lies, a slot for
                                           each; NULL: the model keeps none */
} llm_batch_t;

/* which rows of the step an operation works on */
typedef enum {
    LLM_ROWS_ALL = 0,                   /* n_tokens */
    LLM_ROWS_OUT                        /* n_out, after gather() */
} llm_rows_t;

/* what an activation buffer is for; a backend picks the element type */
typedef enum {
    LLM_ACT_RESIDUAL = 0,               /* summed over layers: float32 */
    LLM_ACT_VALUE,                      /* input of linear() */
    LLM_ACT_PRODUCT,                    /* output of linear() */
    LLM_ACT_LOGITS,                     /* float32 */
    LLM_ACT_STATE                       /* output of norm() for map():
                                           float32 */
} llm_act_kind_t;

/* how a weight will be used (or-ed) */
#define LLM_WEIGHT_LINEAR  1
#define LLM_WEIGHT_EMBED   2
#define LLM_WEIGHT_HEAD    4            /* a LINEAR that gives logits: it keeps
                                           its precision */

typedef enum {
    LLM_GLU_SILU = 0,
    LLM_GLU_GELU,                       /* tanh approximation */
    LLM_GLU_GELU_ERF,                   /* x / 2 (1 + erf(x / sqrt(2))) */
    LLM_GLU_RELU2,                      /* max(x, 0)^2 */
    LLM_GLU_XIELU,                      /* arXiv:2411.13010; act() alone */
    LLM_GLU_CLAMPED,                    /* gpt-oss, with a gate alone: with
                                           g = min(gate, 7) and
                                           u = max(-7, min(up, 7)),
                                           g sigmoid(1.702 g) (u + 1) */
    LLM_GLU_SIGMOID,                    /* 1 / (1 + e^-x); it and the next are
                                           LLM_CAN_STATE's */
    LLM_GLU_LINEAR,                     /* x: glu() is a product of two */
    LLM_GLU_BOUND                       /* max(-bound, min(x, bound)); act()
                                           alone */
} llm_glu_t;

/* an activation without a gate */
typedef struct {
    llm_glu_t         kind;
    /*
     * XIELU: x > 0: p x^2 + b x; else n (expm1(min(x, eps)) - x) + b x, with
     * p, n, b and eps in this order
     */
    float             xielu[4];
    float             bound;
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
    const llm_vec_t  *bias;             /* [columns] or NULL */
    uint32_t          group;            /* columns that are normalised
                                           together; 0: the whole row */
    int               add;              /* y += instead of y = */
} llm_norm_t;

typedef enum {
    LLM_ROPE_NORM = 0,                  /* pairs (2i, 2i + 1): llama */
    LLM_ROPE_NEOX                       /* pairs (i, i + n / 2): qwen */
} llm_rope_kind_t;

/* rotary embedding of some layers, arXiv:2104.09864 */
typedef struct {
    llm_rope_kind_t   kind;
    uint32_t          n_dims;           /* rotated dimensions of a head; 0:
                                           there is no rotation */
    const llm_vec_t  *inv_freq;         /* [n_dims / 2], scaling included */
    float             mscale;           /* YaRN's factor on cos and sin */
} llm_rope_t;

/* what one layer keeps of a token */
typedef struct {
    uint32_t     n_kv_heads;            /* 0: nothing */
    uint32_t     head_dim_k;
    uint32_t     head_dim_v;
    int          latent;                /* V is the first head_dim_v elements
                                           of K, and kept once */
} llm_kv_layer_t;

/* one cache: of all layers, or of those of a kind */
typedef struct {
    uint32_t     n_layers;
    uint32_t     n_pages;
    uint32_t     kind;                  /* llm_kv_kind_t: batch.pages[kind] are
                                           its pages */
    uint32_t     n_kv_heads;            /* the most of any layer, as the */
    uint32_t     head_dim_k;            /* next two */
    uint32_t     head_dim_v;
    uint32_t     n_heads;               /* query heads: sizes scratch */
    const llm_kv_layer_t  *layers;      /* [n_layers] the caller's until
                                           kv_free(); NULL: all are as large
                                           as the largest, none is latent */
} llm_kv_opts_t;

/* y = x W^T (+ bias) (+ y) */
typedef struct {
    const llm_weight_t  *w;             /* [n_out, n_in] */
    const llm_vec_t     *bias;          /* [n_out] or NULL */
    llm_act_t           *y;             /* rows of n_out */
    int                  add;           /* y += instead of y = */
} llm_linear_t;

/* the heads of one attention layer */
typedef struct {
    uint32_t          layer;
    uint32_t          n_heads;
    uint32_t          n_kv_heads;
    uint32_t          head_dim_k;
    uint32_t          head_dim_v;
    float             scale;            /* of the scores */
    const llm_vec_t  *q_norm;           /* [head_dim_k] RMS norm, or NULL */
    const llm_vec_t  *k_norm;
    float             norm_eps;
    int               norm_last;        /* the norms come after the rotation */
    /*
     * A head of K is one of V and, behind it, one of what rope_kv() gets as
     * k: head_dim_k - head_dim_v elements.  They are what is rotated, as are
     * the last elements of Q's heads.  No norms.
     */
    int               latent;

    int               both;             /* rows see the positions behind
                                           theirs, too: all of the sequence,
                                           whose rows are all in this step */
    uint32_t          window;           /* positions that a row sees: its own
                                           and those before it; 0: all.  With
                                           `both` it sees window / 2 of them on
                                           either side of its own */
    int               chunks;           /* windows do not slide: position p
                                           sees from p / window * window on */
    float             softcap;          /* score = cap tanh(score / cap); 0:
                                           as it is */
    const llm_vec_t  *sinks;            /* [n_heads] scores of a key without
                                           a value, or NULL */
    const llm_vec_t  *slopes;           /* [n_heads] score -= slope * distance
                                           of the positions (ALiBi,
                                           arXiv:2108.12409); or NULL */
    /*
     * The queries of position p are multiplied by
     * 1 + temp_scale log(1 + floor((p + temp_offset) / temp_floor))
     */
    float             temp_scale;       /* 0: they are not */
    uint32_t          temp_floor;
    uint32_t          temp_offset;
} llm_heads_t;

/* ---- mixtures of experts ---- */

/* what a router's logit becomes */
typedef enum {
    LLM_ROUTE_SOFTMAX = 0,              /* over all experts */
    LLM_ROUTE_CHOSEN,                   /* over the chosen ones; before the
                                           choice it stays as it is */
    LLM_ROUTE_SIGMOID
} llm_route_score_t;

/*
 * How a row chooses n_used of n_experts, and with which weights.
 *
 *   s_e = score(logit_e), p_e = s_e + bias_e
 *
 * With groups, only experts of the n_groups_used groups are left whose largest
 * p, or the sum of whose two largest, is largest.  The n_used largest p are
 * chosen, in falling order; a tie goes to the lower number, of groups as of
 * experts.  Without a bias and such sums, p_e is the logit, which has the
 * order of s_e and never rounds two of them to one.
 *
 *   w_e = s_e, or s_e / (max(floor, sum of the chosen s) + eps) if normalize
 *   weight_e = w_e * scale * factor_e
 *
 * The caller sees to it that n_groups divides n_experts, and that the groups
 * used have n_used experts.
 */
typedef struct {
    llm_route_score_t  score;
    uint32_t           n_experts;
    uint32_t           n_used;          /* 1 ... n_experts */
    uint32_t           n_groups;        /* of experts beside each other; 0: no
                                           groups */
    uint32_t           n_groups_used;
    int                group_pairs;     /* groups by the sum of two, not by the
                                           largest */
    int                normalize;
    float              floor;
    float              eps;
    float              scale;
    const llm_vec_t   *bias;            /* [n_experts] or NULL: no bias */
    const llm_vec_t   *factor;          /* [n_experts] or NULL: 1 */
} llm_route_t;

/* the most of any layer; scratch memory is sized by these */
typedef struct {
    uint32_t           max_rows;        /* of a step, and of results */
    uint32_t           n_experts;       /* at most LLM_MAX_EXPERTS */
    uint32_t           n_used;
    uint32_t           n_in;            /* width of x and of y */
    uint32_t           n_ff;            /* width inside of an expert */
} llm_choice_opts_t;

/*
 * The experts of a layer.  Of a row x that chose e_1, e_2 ... with weights
 * w_1, w_2 ...:
 *
 *   f_e(x) = down_e (act(gate_e x + gate_bias_e, up_e x + up_bias_e))
 *            + down_bias_e
 *   y = (y +) w_1 f_e1(x) + w_2 f_e2(x) + ...     in this order
 *   y = (y +) f_e1(w_1 x) + f_e2(w_2 x) + ...     if weigh_input
 *
 * act(g, u) is the activation of g times u, see llm_glu_t; without a gate it
 * is that of u alone.
 */
typedef struct {
    const llm_weight_t  *gate;          /* [n_experts][n_ff, n_in] or NULL */
    const llm_weight_t  *up;            /* [n_experts][n_ff, n_in] */
    const llm_weight_t  *down;          /* [n_experts][n_in, n_ff] */
    const llm_vec_t     *gate_bias;     /* [n_experts * n_ff] or NULL */
    const llm_vec_t     *up_bias;
    const llm_vec_t     *down_bias;     /* [n_experts * n_in] or NULL */
    llm_glu_t            act;
    int                  weigh_input;
    int                  add;           /* y += instead of y = */
} llm_experts_t;

/* ---- recurrent layers ---- */

/*
 * What one layer keeps of a sequence, float32: the last inputs of a short
 * convolution, [conv_width - 1][conv_channels], the oldest first, and a
 * matrix [n_rows][n_cols] for each head, whose order is the device's own.
 * Zeros where it has none of these.
 */
typedef struct {
    uint32_t     conv_channels;
    uint32_t     conv_width;            /* of the kernel, at most
                                           LLM_MAX_CONV */
    uint32_t     n_heads;
    uint32_t     n_rows;
    uint32_t     n_cols;
} llm_state_layer_t;

/*
 * A slot is the state of one sequence in all layers.  Before a step a
 * sequence's slot (batch.slots) holds the state after all positions before
 * its first row in the step; after the step, that after its last row.  A
 * sequence whose first row is at position 0 begins with zeros, whatever the
 * slot holds, so a slot needs no clearing.
 *
 * The operations go through the rows of a sequence one by one, in order, and
 * what they keep between rows is float32: the same bits however rows are cut
 * into steps.
 */
typedef struct {
    uint32_t     n_layers;
    uint32_t     n_slots;
    const llm_state_layer_t  *layers;   /* [n_layers] the caller's until
                                           state_free() */
} llm_state_opts_t;

/*
 * A causal convolution of each channel by itself, whose kernel is as wide as
 * the layer's state says:
 *
 *   y[t][c] = act(bias[c] + w[0][c] x[t - width + 1][c] + ...
 *                 + w[width - 1][c] x[t][c])
 */
typedef struct {
    uint32_t          layer;
    const llm_vec_t  *w;                /* [width * channels] */
    const llm_vec_t  *bias;             /* [channels] or NULL */
    int               silu;             /* act is SiLU; else there is none */
} llm_conv_t;

/*
 * The gated delta rule, arXiv:2412.06464.  x is q [n_k_heads, dim_k], k
 * likewise and v [n_v_heads, dim_v] behind each other; alpha and beta are
 * [rows, n_v_heads].  Of a head h of v, with the q and k of head
 * h / (n_v_heads / n_k_heads), or of h % n_k_heads if they are tiled, and its
 * state S [dim_k, dim_v]:
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
    int               tiled;
    const llm_vec_t  *a;                /* [n_v_heads], mostly below 0 */
    const llm_vec_t  *dt;               /* [n_v_heads] */
} llm_delta_t;

/*
 * The selective scan of Mamba-2, arXiv:2405.21060.  x is x [n_heads, dim],
 * B [n_groups, n_state] and C likewise behind each other; dt is
 * [rows, n_heads].  Of a head h, with the B and C of group
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


/* the pages of a sequence in this cache */
static inline const uint32_t *
llm_batch_table(const llm_batch_t *b, const llm_kv_opts_t *kv, uint32_t seq)
{
    return b->pages[kv->kind] + (size_t) seq * b->max_pages;
}


/* the first position that the one at pos sees */
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


/* the position behind the last that the one at pos sees, of a sequence of
   len */
static inline uint32_t
llm_heads_end(const llm_heads_t *h, uint32_t pos, uint32_t len)
{
    if (!h->both) {
        return pos + 1;
    }

    return h->window && len - pos > h->window / 2 ? pos + h->window / 2 + 1
                                                  : len;
}

/* what a backend can do beside the plain case (or-ed): ops.def */

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
    LLM_CAN_OPTION = 1 << 30            /* an operation's alone: no backend has
                                           it */
} llm_can_t;


/* a backend's table: the operations are the rows of ops.def */
struct llm_ops_s {
    const char   *name;                 /* "cpu", "reference", "cuda" ... */
    uint32_t      can;                  /* llm_can_t */
#define LLM_OP(group, needs, result, name, parameters)                       \
    result      (*name) parameters;
#include "kernels/ops.def"
};


/* the name of an operation that the table lacks, though what it can do needs
   it, and its group: "scan (recurrent)"; NULL: it is whole */
const char *llm_ops_lacks(const llm_ops_t *ops);


extern const llm_ops_t  llm_ops_reference;
extern const llm_ops_t  llm_ops_cpu;

/*
 * What a backend's shared object exports under LLM_BACKEND_SYMBOL: its table,
 * or NULL if it was built with other headers than the caller, whose
 * LLM_INTERFACE and sizeof(llm_ops_t) are given.  LLM_INTERFACE is a checksum
 * of these headers (engine/flags.mk): it changes with every table and every
 * struct that operations get.
 */
#define LLM_BACKEND_SYMBOL  "llm_backend_table"
typedef const llm_ops_t *(*llm_backend_pt)(uint32_t interface, size_t size);

#endif /* LLM_KERNELS_H */
