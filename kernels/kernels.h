/*
 * The operations that a model is made of: one table per backend.  The
 * forward pass (engine/model/forward.c) is written once against this table;
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
 * Ownership: a device owns its threads, streams and scratch memory; what a
 * *_create() returned is the caller's to free before close().  Weights keep a
 * pointer into the mapped file when that layout is used as it is, so the
 * file outlives them.  One thread at a time drives a device.
 */

#ifndef LLM_KERNELS_H
#define LLM_KERNELS_H

#include "engine/base/base.h"
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

/* the limits of a device's draw; beyond them the host draws */
#define LLM_DRAW_EDITS   4096           /* edits and bans of a row */
#define LLM_DRAW_TOP     20             /* likely tokens beside the one
                                           drawn */

#define LLM_NO_DRAW      UINT32_MAX

/* the most experts of a layer */
#define LLM_MAX_EXPERTS  1024

/* the widest kernel of a short convolution */
#define LLM_MAX_CONV     32

typedef struct llm_ops_s     llm_ops_t;
typedef struct llm_act_s     llm_act_t;     /* rows of activations */
typedef struct llm_weight_s  llm_weight_t;  /* a matrix in the device's
                                               layout */
typedef struct llm_vec_s     llm_vec_t;     /* a float32 vector: norm, bias */
typedef struct llm_kv_s      llm_kv_t;      /* the pages of all layers, or of
                                               those of one kind */
typedef struct llm_choice_s  llm_choice_t;  /* which experts rows go to */
typedef struct llm_state_s   llm_state_t;   /* recurrent states, all layers */

/* the beginning of every backend's device */
typedef struct {
    const llm_ops_t  *ops;
} llm_dev_t;

typedef struct {
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
    int          windows;               /* steps have batch.window_pages */
} llm_dev_opts_t;

/* ---- drawing the next token from a row of logits ---- */

/* a change of a logit: the bias is added; then, if the token was seen, the
   penalties */
typedef struct {
    int32_t      id;
    float        bias;
    uint32_t     seen;                  /* how often it was generated, and
                                           ... */
} llm_edit_t;

#define LLM_EDIT_SEEN    0x80000000u    /* ... this flag if it was, or is in
                                           the prompt */

typedef struct {
    int32_t      id;
    float        logprob;
} llm_candidate_t;

typedef enum {
    LLM_DRAW_HOST = 0,                  /* map() will read the row */
    LLM_DRAW_TOKEN,                     /* drawn() will get a token */
    LLM_DRAW_NONE                       /* nobody wants the row's logits, only
                                           its state */
} llm_draw_kind_t;

/*
 * A draw, in the order of its steps, which engine/sample/sampler.h describes:
 * edits, mask and bans, min-p, top-k, top-p, and the token at the share u of
 * the remaining mass, tokens in the order of their ids.  It does what the
 * host's sampler does: weights have the same bits, their sums differ by
 * rounding.  Arrays are the caller's and must stay until begin() returns.
 */
typedef struct {
    llm_draw_kind_t    kind;
    float              scale;           /* 1 / temperature; 0: the largest */
    float              min_gap;         /* min-p keeps logits of at least the
                                           largest + this; -INFINITY: all */
    uint32_t           top_k;           /* 0: all */
    float              top_p;           /* 1: all */
    double             u;               /* 0 <= u < 1 */
    float              repetition;      /* penalties of tokens that were
                                           seen */
    float              frequency;
    float              presence;
    int32_t            n_top;           /* probabilities: -1: none; 0: the
                                           token's; more: also those of the
                                           most likely */
    uint32_t           n_edits;
    uint32_t           n_banned;
    const llm_edit_t  *edits;           /* each id once */
    const int32_t     *banned;          /* ids; those beyond the vocabulary are
                                           ignored */
    const uint32_t    *mask;            /* a bit for each id that is allowed;
                                           or NULL */
} llm_draw_t;

typedef enum {
    LLM_DRAWN_TOKEN = 0,
    LLM_DRAWN_NOT_FINITE,               /* a logit is NaN or plus infinity,
                                           before or after the edits */
    LLM_DRAWN_NOTHING                   /* no token is allowed */
} llm_drawn_status_t;

typedef struct {
    uint32_t                status;     /* llm_drawn_status_t */
    int32_t                 id;
    float                   logprob;    /* in the row before edits; 0 if n_top
                                           is -1 */
    uint32_t                n_top;
    const llm_candidate_t  *top;        /* [n_top] best first, in the row
                                           before edits; valid until begin() or
                                           end() */
} llm_drawn_t;


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
    const uint32_t  *pages;             /* [n_seqs][max_pages] page numbers;
                                           position p lies in page
                                           pages[p / LLM_KV_PAGE] at slot
                                           p % LLM_KV_PAGE */
    const uint32_t  *window_pages;      /* likewise, in caches of windows (see
                                           llm_kv_opts_t); NULL: there are
                                           none */
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

/*
 * A model may have two caches, each of some of its layers: one for layers that
 * see everything, one for those with windows, which has pages of its own, as
 * they are needed for a shorter time.
 */
typedef struct {
    uint32_t     n_layers;
    uint32_t     n_pages;
    int          windows;               /* its pages are numbered by
                                           batch.window_pages, not by
                                           batch.pages */
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
    return (kv->windows ? b->window_pages : b->pages)
           + (size_t) seq * b->max_pages;
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

/*
 * What a table's operations can do beside the plain case (or-ed).  A model
 * that needs what its device cannot do is not loaded there.
 */
typedef enum {
    LLM_CAN_NORMS    = 1 << 0,          /* llm_norm_t but RMS with weights of
                                           the whole row */
    LLM_CAN_ACTS     = 1 << 1,          /* act(), GELU_ERF */
    LLM_CAN_WINDOWS  = 1 << 2,          /* window and chunks */
    LLM_CAN_SCORES   = 1 << 3,          /* softcap, sinks, temp_scale */
    LLM_CAN_ROPE     = 1 << 4,          /* layers without rotation, norm_last,
                                           rope_kv() of q alone */
    LLM_CAN_KV       = 1 << 5,          /* layers of different sizes */
    LLM_CAN_SCALE    = 1 << 6,          /* scale(), softcap() */
    LLM_CAN_EMBED    = 1 << 7,          /* embed_pos(), columns() */
    LLM_CAN_EXPERTS  = 1 << 8,          /* experts_create() ... gate_rows() */
    LLM_CAN_STATE    = 1 << 9,          /* state_create() ... scan(),
                                           GLU_SIGMOID, GLU_LINEAR */
    LLM_CAN_LATENT   = 1 << 10,         /* heads_create(), linear_heads(),
                                           latent K and V */
    LLM_CAN_FACTORS  = 1 << 11,         /* weight_scale() */
    LLM_CAN_ENCODE   = 1 << 12          /* `both` and slopes of llm_heads_t,
                                           add_vec() */
} llm_can_t;

/* the same in words, for messages, in the order of the bits */
#define LLM_CAN_NAMES                                                        \
    "its kinds of norms", "its activation", "attention's windows",           \
    "its changes of attention's scores", "layers without RoPE",              \
    "layers of different sizes", "scaled or capped values",                  \
    "its kinds of embeddings", "mixtures of experts", "recurrent layers",    \
    "latent attention", "weights with a scale of their own",                 \
    "attention without a causal mask"


struct llm_ops_s {
    const char   *name;                 /* "cpu", "reference", "cuda" ... */

    /* LLM_ERROR and *err when there is no such device */
    int         (*open)(llm_dev_t **dev, const llm_dev_opts_t *opts,
                        llm_err_t *err);
    void        (*close)(llm_dev_t *dev);
    /* a description in one line: "AVX-512 VNNI, 2 threads", "NVIDIA H200
       ..." */
    void        (*describe)(llm_dev_t *dev, char *buf, size_t size);
    /* bytes of the device's free memory that KV pages may take */
    size_t      (*memory_free)(llm_dev_t *dev);

    /*
     * src has n_out rows of n_in elements of `type`, in GGUF's layout; it may
     * be unaligned.  The device may use it as it is or make a layout of its
     * own.
     */
    llm_weight_t  *(*weight_create)(llm_dev_t *dev, uint32_t type,
                        uint32_t n_out, uint32_t n_in, const void *src,
                        int usage, llm_err_t *err);
    void        (*weight_free)(llm_dev_t *dev, llm_weight_t *w);
    llm_vec_t  *(*vec_create)(llm_dev_t *dev, const float *src, uint32_t n,
                        llm_err_t *err);
    void        (*vec_free)(llm_dev_t *dev, llm_vec_t *v);
    llm_act_t  *(*act_create)(llm_dev_t *dev, uint32_t max_rows,
                        uint32_t cols, llm_act_kind_t kind, llm_err_t *err);
    void        (*act_free)(llm_dev_t *dev, llm_act_t *a);
    llm_kv_t   *(*kv_create)(llm_dev_t *dev, const llm_kv_opts_t *opts,
                        llm_err_t *err);
    void        (*kv_free)(llm_dev_t *dev, llm_kv_t *kv);
    /* bytes of its pages that no memory was taken for yet; NULL: none are */
    size_t      (*kv_unused)(llm_dev_t *dev, const llm_kv_t *kv);
    /* bytes of one page, all layers, with these options */
    size_t      (*kv_page_size)(llm_dev_t *dev, const llm_kv_opts_t *opts);

    /* copies all layers of page src to page dst; after the steps submitted
       before and before those that begin later */
    void        (*kv_copy)(llm_dev_t *dev, llm_kv_t *kv, uint32_t src,
                        uint32_t dst);

    /*
     * begin() starts a step.  LLM_REPLAYED: the device has replayed a
     * captured step, and the caller must not call the operations.  end()
     * waits for the results and reports device errors.
     *
     * submit(), before end(), tells the device that all operations were
     * called; LLM_REDO: it could not keep them, the caller calls them once
     * more and submits again.  If the step has no row for map(), the next one
     * may then begin, and be submitted, before this one's end(): each end()
     * is for the step that was submitted first, and its results stay until
     * the next begin() or end().  If begin() or end() fails, all steps in
     * flight are void.  NULL in the table: the device has one step at a time.
     */
    int         (*begin)(llm_dev_t *dev, const llm_batch_t *batch,
                        llm_err_t *err);
    int         (*submit)(llm_dev_t *dev);
    int         (*end)(llm_dev_t *dev, llm_err_t *err);

    /* x[row] = w[tokens[row]] */
    void        (*embed)(llm_dev_t *dev, const llm_weight_t *w,
                        llm_act_t *x);
    /* y may be x, unless it is added to */
    void        (*norm)(llm_dev_t *dev, llm_rows_t rows, const llm_act_t *x,
                        const llm_norm_t *n, llm_act_t *y);
    /* n products of the same x; the outputs are different buffers */
    void        (*linear)(llm_dev_t *dev, llm_rows_t rows,
                        const llm_act_t *x, const llm_linear_t *out,
                        uint32_t n);
    /*
     * Applies the RMS norm per head, if any, to q [rows, n_heads *
     * head_dim_k] and k, rotates both in place by pos, and writes k and v to
     * the cache (latent ones: see llm_heads_t).  k NULL: q alone, for a layer
     * that reads the keys and values of another.
     */
    void        (*rope_kv)(llm_dev_t *dev, const llm_heads_t *h,
                        const llm_rope_t *rope, llm_act_t *q, llm_act_t *k,
                        const llm_act_t *v, llm_kv_t *kv);
    /*
     * Attention of every row over its sequence's cache, causal unless
     * heads.both, grouped heads (arXiv:2305.13245): out [rows, n_heads *
     * head_dim_v].  Of a window, only its pages are read.
     */
    void        (*attention)(llm_dev_t *dev, const llm_heads_t *h,
                        const llm_act_t *q, const llm_kv_t *kv,
                        llm_act_t *out);
    /* y = act(gate) * up */
    void        (*glu)(llm_dev_t *dev, llm_rows_t rows, llm_glu_t act,
                        const llm_act_t *gate, const llm_act_t *up,
                        llm_act_t *y);
    /* y[i] = x[out_rows[i]] */
    void        (*gather)(llm_dev_t *dev, const llm_act_t *x, llm_act_t *y);

    /*
     * After end(): n rows of a buffer as float32, [n][cols].  map() gives a
     * host pointer that is valid until the next begin() or end(), without a
     * copy if the device can; write() is for tests.  Buffers other than the
     * logits and states only with no step in flight.
     */
    const float  *(*map)(llm_dev_t *dev, const llm_act_t *a, uint32_t row,
                        uint32_t n);
    void        (*write)(llm_dev_t *dev, llm_act_t *a, uint32_t row,
                        uint32_t n, const float *src);

    /*
     * After end(): the result of the draw from row i of the logits.  map()
     * must not read a row that was drawn from.  NULL in the table: the device
     * does not draw, batch.draws is NULL.
     */
    void        (*drawn)(llm_dev_t *dev, uint32_t i, llm_drawn_t *out);

    /* operations that a device may lack, and what else it can do: llm_can_t's
       bits, without which they are NULL */
    uint32_t      can;

    /* the rows of a buffer are `cols` wide from now on, at most as wide as it
       was created */
    void        (*act_cols)(llm_act_t *a, uint32_t cols);
    /* y = act(x); y may be x */
    void        (*act)(llm_dev_t *dev, llm_rows_t rows,
                        const llm_act_fn_t *fn, const llm_act_t *x,
                        llm_act_t *y);
    /* y = f * x, or y += f * x; y may be x */
    void        (*scale)(llm_dev_t *dev, llm_rows_t rows, float f,
                        const llm_act_t *x, int add, llm_act_t *y);
    /* x = cap * tanh(x / cap) */
    void        (*softcap)(llm_dev_t *dev, llm_rows_t rows, float cap,
                        llm_act_t *x);
    /* x[row] += v */
    void        (*add_vec)(llm_dev_t *dev, llm_rows_t rows,
                        const llm_vec_t *v, llm_act_t *x);
    /* x[row] += w[pos[row]] */
    void        (*embed_pos)(llm_dev_t *dev, const llm_weight_t *w,
                        llm_act_t *x);
    /* y[row] = as many columns of x[row] as y has, from `first` */
    void        (*columns)(llm_dev_t *dev, llm_rows_t rows,
                        const llm_act_t *x, uint32_t first, llm_act_t *y);
    /*
     * Mixtures of experts: LLM_CAN_EXPERTS.
     *
     * experts_create(): as weight_create(), of n_experts matrices, each
     * `stride` bytes behind the one before: GGUF's [n_in, n_out, n_experts],
     * or one half of each of a tensor that holds gate and up.  They are for
     * experts() alone; weight_free() frees them.
     */
    llm_weight_t  *(*experts_create)(llm_dev_t *dev, uint32_t type,
                        uint32_t n_experts, uint32_t n_out, uint32_t n_in,
                        const void *src, size_t stride, llm_err_t *err);
    /* one serves all layers, one after another */
    llm_choice_t  *(*choice_create)(llm_dev_t *dev,
                        const llm_choice_opts_t *opts, llm_err_t *err);
    void        (*choice_free)(llm_dev_t *dev, llm_choice_t *c);
    /*
     * Chooses experts for each row by the router's logits [rows, n_experts],
     * a linear() whose weight is a LLM_WEIGHT_HEAD.
     */
    void        (*route)(llm_dev_t *dev, llm_rows_t rows,
                        const llm_route_t *r, const llm_act_t *logits,
                        llm_choice_t *c);
    /*
     * The experts that route() chose for the same rows, of x; y is another
     * buffer.  Weights of experts that no row chose are not read.
     */
    void        (*experts)(llm_dev_t *dev, llm_rows_t rows,
                        const llm_experts_t *e, const llm_act_t *x,
                        llm_choice_t *c, llm_act_t *y);
    /* x[row] *= sigmoid(gate[row]), gate [rows, 1] */
    void        (*gate_rows)(llm_dev_t *dev, llm_rows_t rows,
                        const llm_act_t *gate, llm_act_t *x);
    /*
     * Recurrent layers: LLM_CAN_STATE.
     *
     * state_create() as kv_create(); state_size(): bytes of one slot, all
     * layers, SIZE_MAX if they are too many to count.
     */
    llm_state_t  *(*state_create)(llm_dev_t *dev,
                        const llm_state_opts_t *opts, llm_err_t *err);
    void        (*state_free)(llm_dev_t *dev, llm_state_t *st);
    size_t      (*state_size)(llm_dev_t *dev, const llm_state_opts_t *opts);
    /* copies slot src to slot dst, in the order of steps as kv_copy() */
    void        (*state_copy)(llm_dev_t *dev, llm_state_t *st, uint32_t src,
                        uint32_t dst);
    /* all rows, as the next two; y is another buffer */
    void        (*conv)(llm_dev_t *dev, const llm_conv_t *c,
                        const llm_act_t *x, llm_state_t *st, llm_act_t *y);
    /* y [rows, n_v_heads * dim_v] */
    void        (*delta)(llm_dev_t *dev, const llm_delta_t *d,
                        const llm_act_t *x, const llm_act_t *alpha,
                        const llm_act_t *beta, llm_state_t *st,
                        llm_act_t *y);
    /* y [rows, n_heads * dim] */
    void        (*scan)(llm_dev_t *dev, const llm_scan_t *s,
                        const llm_act_t *x, const llm_act_t *dt,
                        llm_state_t *st, llm_act_t *y);
    /*
     * y[row] = pieces of x[row], each `width` columns, the first from column
     * `first` on, each `stride` columns behind the one before; as many as y
     * has columns for
     */
    void        (*pieces)(llm_dev_t *dev, llm_rows_t rows,
                        const llm_act_t *x, uint32_t first, uint32_t width,
                        uint32_t stride, llm_act_t *y);
    /*
     * Latent attention: LLM_CAN_LATENT.
     *
     * heads_create(): as weight_create(), of a matrix for each head, each
     * `stride` bytes behind the one before; for linear_heads() alone.
     *
     * linear_heads(): y is another buffer.  A row of x, and of y, is n_heads
     * heads; of each the first elements, as many as the head's matrix has
     * columns, become as many as it has rows, and those behind are copied.
     */
    llm_weight_t  *(*heads_create)(llm_dev_t *dev, uint32_t type,
                        uint32_t n_heads, uint32_t n_out, uint32_t n_in,
                        const void *src, size_t stride, llm_err_t *err);
    void        (*linear_heads)(llm_dev_t *dev, llm_rows_t rows,
                        const llm_weight_t *w, const llm_act_t *x,
                        llm_act_t *y);
    /*
     * Products with the weight are multiplied by a number, before the bias:
     * one for each of its matrices.  LLM_CAN_FACTORS.
     */
    int         (*weight_scale)(llm_dev_t *dev, llm_weight_t *w,
                        const float *scales, llm_err_t *err);

    /*
     * Bytes of the machine's memory that a matrix takes which linear() or
     * experts() reads, beside the caller's rows; NULL: none.
     */
    size_t      (*weight_size)(uint32_t type, uint32_t n_out, uint32_t n_in);
};


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
