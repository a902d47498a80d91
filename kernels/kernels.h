/*
 * The operations that a model is made of: one table per backend.  The
 * forward pass (engine/model/forward.c) is written once against this table;
 * kernels/cpu/reference.c implements it in plain float32 C and is what every
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

/* tokens of one KV page; pages of all layers share one number */
#define LLM_KV_PAGE      16

/* err.code of begin() and end() when the device has to be closed and opened
   again, with all that is on it; and when it cannot be opened again before
   the process has ended: nothing that is on that GPU goes on */
#define LLM_DEVICE_ERROR "device_error"
#define LLM_DEVICE_LOST  "device_lost"

/* the most that a device's draw takes; beyond that a row is the host's */
#define LLM_DRAW_EDITS   4096           /* edits and bans of a row */
#define LLM_DRAW_TOP     20             /* likely tokens told beside one */

#define LLM_NO_DRAW      UINT32_MAX

typedef struct llm_ops_s     llm_ops_t;
typedef struct llm_act_s     llm_act_t;     /* rows of activations */
typedef struct llm_weight_s  llm_weight_t;  /* a matrix as the device likes */
typedef struct llm_vec_s     llm_vec_t;     /* a float32 vector: norm, bias */
typedef struct llm_kv_s      llm_kv_t;      /* the pages of all layers */

/* a backend's device begins with this */
typedef struct {
    const llm_ops_t  *ops;
} llm_dev_t;

typedef struct {
    uint32_t     threads;               /* CPU threads, 0: all that it may
                                           use, see cpu/machine.h */
    int          index;                 /* which GPU; -1: any */
    const char  *isa;                   /* CPU: "avx2", "avx512", "amx",
                                           "reference"; NULL: the best */
    llm_log_pt   log;                   /* may be NULL */
    void        *log_data;
    /* the most a step will ever hold; scratch is sized by them */
    uint32_t     max_tokens;            /* rows of a step */
    uint32_t     max_seqs;
    uint32_t     max_pages;             /* pages of one sequence */
    uint32_t     max_out;               /* rows that want logits */
    uint32_t     weight_type;           /* llm_type_t of most matrices: what
                                           16-bit type a GPU computes in */
    int          weights_fp8;           /* matrices of F32, F16 and BF16 but
                                           the head become e4m3, a scale a
                                           row; where a device has none of
                                           it, open() fails */
    int          kv_fp8;                /* K and V are kept as e4m3, a scale
                                           a token and head */
} llm_dev_opts_t;

/* ---- how the next token comes out of a row of logits ---- */

/* a logit that changes: + bias; then, if the token was seen, the penalties */
typedef struct {
    int32_t      id;
    float        bias;
    uint32_t     seen;                  /* times generated, and ... */
} llm_edit_t;

#define LLM_EDIT_SEEN    0x80000000u    /* ... this in the prompt or there */

typedef struct {
    int32_t      id;
    float        logprob;
} llm_candidate_t;

typedef enum {
    LLM_DRAW_HOST = 0,                  /* the row is wanted, by map() */
    LLM_DRAW_TOKEN                      /* drawn() is wanted, the row is not */
} llm_draw_kind_t;

/*
 * A draw, in the order of its steps, which engine/sample/sampler.h describes:
 * edits, mask and bans, min-p, top-k, top-p, and the token at u of the mass
 * that is left, tokens in the order of their ids.  It is the host's sampler
 * over again: weights have the same bits, their sums differ by rounding.
 * Arrays are the caller's until begin() returns.
 */
typedef struct {
    llm_draw_kind_t    kind;
    float              scale;           /* 1 / temperature; 0: the largest */
    float              min_gap;         /* what min-p leaves is at least the
                                           largest + this; -INFINITY: all */
    uint32_t           top_k;           /* 0: all */
    float              top_p;           /* 1: all */
    double             u;               /* 0 <= u < 1 */
    float              repetition;      /* penalties of what was seen */
    float              frequency;
    float              presence;
    int32_t            n_top;           /* -1: no probabilities; 0: of the
                                           token; more: of the best, too */
    uint32_t           n_edits;
    uint32_t           n_banned;
    const llm_edit_t  *edits;           /* an id once */
    const int32_t     *banned;          /* ids, or beyond the vocabulary */
    const uint32_t    *mask;            /* a bit for each allowed; or NULL */
} llm_draw_t;

typedef enum {
    LLM_DRAWN_TOKEN = 0,
    LLM_DRAWN_NOT_FINITE,               /* a logit is NaN or plus infinity,
                                           as it came or once it is edited */
    LLM_DRAWN_NOTHING                   /* no token is allowed */
} llm_drawn_status_t;

typedef struct {
    uint32_t                status;     /* llm_drawn_status_t */
    int32_t                 id;
    float                   logprob;    /* of the row before edits; 0 where
                                           n_top is -1 */
    uint32_t                n_top;
    const llm_candidate_t  *top;        /* [n_top] best first, of the row
                                           before edits; until begin() or
                                           end() */
} llm_drawn_t;


/*
 * One step: rows of several sequences, the rows of a sequence together and
 * in order of position.  Arrays belong to the caller and stay until end().
 */
typedef struct {
    uint32_t         n_tokens;          /* rows */
    uint32_t         n_seqs;
    uint32_t         n_out;             /* rows that want logits */
    uint32_t         max_pages;         /* stride of pages */
    const int32_t   *tokens;            /* [n_tokens] */
    const uint32_t  *pos;               /* [n_tokens] position in sequence */
    const uint32_t  *seq_rows;          /* [n_seqs + 1] first row of each */
    const uint32_t  *kv_len;            /* [n_seqs] positions cached once this
                                           step is written: pos of its last
                                           row + 1 */
    const uint32_t  *pages;             /* [n_seqs][max_pages] page numbers;
                                           position p lies in page
                                           pages[p / LLM_KV_PAGE] at slot
                                           p % LLM_KV_PAGE */
    const uint32_t  *out_rows;          /* [n_out] ascending row numbers; a
                                           row may come several times */
    const llm_draw_t  *draws;           /* [n_out] for drawn(), max_seqs of
                                           them at most; NULL: all rows are
                                           for map() */
    const uint32_t  *follows;           /* [n_tokens] the row's token is what
                                           this draw of the step before gives,
                                           and not tokens[row]; LLM_NO_DRAW:
                                           it is.  NULL: of all rows.  The
                                           row's own draw counts that token as
                                           generated once more than its edits
                                           say */
} llm_batch_t;

/* which rows of the step an operation works on */
typedef enum {
    LLM_ROWS_ALL = 0,                   /* n_tokens */
    LLM_ROWS_OUT                        /* n_out, after gather() */
} llm_rows_t;

/* what an activation buffer is for; a backend picks the element type */
typedef enum {
    LLM_ACT_RESIDUAL = 0,               /* summed over layers: float32 */
    LLM_ACT_VALUE,                      /* goes into linear() */
    LLM_ACT_PRODUCT,                    /* comes out of linear() */
    LLM_ACT_LOGITS                      /* float32 */
} llm_act_kind_t;

/* how a weight will be used (or-ed) */
#define LLM_WEIGHT_LINEAR  1
#define LLM_WEIGHT_EMBED   2
#define LLM_WEIGHT_HEAD    4            /* LINEAR makes logits of it: kept as
                                           exact as it came */

typedef enum {
    LLM_GLU_SILU = 0,
    LLM_GLU_GELU                        /* tanh approximation */
} llm_glu_t;

typedef enum {
    LLM_ROPE_NORM = 0,                  /* pairs (2i, 2i + 1): llama */
    LLM_ROPE_NEOX                       /* pairs (i, i + n / 2): qwen */
} llm_rope_kind_t;

/* rotary embedding of one model, arXiv:2104.09864 */
typedef struct {
    llm_rope_kind_t   kind;
    uint32_t          n_dims;           /* rotated dimensions of a head */
    const llm_vec_t  *inv_freq;         /* [n_dims / 2], scaling included */
    float             mscale;           /* YaRN's factor on cos and sin */
} llm_rope_t;

typedef struct {
    uint32_t     n_layers;
    uint32_t     n_pages;
    uint32_t     n_kv_heads;
    uint32_t     head_dim_k;
    uint32_t     head_dim_v;
    uint32_t     n_heads;               /* query heads: sizes scratch */
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
} llm_heads_t;


struct llm_ops_s {
    const char   *name;                 /* "cpu", "reference", "cuda" ... */

    /* LLM_ERROR and *err when there is no such device */
    int         (*open)(llm_dev_t **dev, const llm_dev_opts_t *opts,
                        llm_err_t *err);
    void        (*close)(llm_dev_t *dev);
    /* one line for people: "AVX-512 VNNI, 2 threads", "NVIDIA H200 ..." */
    void        (*describe)(llm_dev_t *dev, char *buf, size_t size);
    /* bytes that KV pages may take of what is free on the device */
    size_t      (*memory_free)(llm_dev_t *dev);

    /*
     * src holds rows of `type` in GGUF's layout, n_out rows of n_in; it may
     * be unaligned.  The device may keep it or make a layout of its own.
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
    /* bytes that one page of all layers takes with these options */
    size_t      (*kv_page_size)(llm_dev_t *dev, const llm_kv_opts_t *opts);

    /* all layers of page src to page dst; between the steps submitted before
       and those that begin later */
    void        (*kv_copy)(llm_dev_t *dev, llm_kv_t *kv, uint32_t src,
                        uint32_t dst);

    /*
     * begin() takes a step; LLM_REPLAYED says that the device replayed a
     * captured step and the caller goes straight on to what comes behind
     * the operations.  end() waits for the results and reports device errors.
     *
     * submit(), before end(), says that the step is whole; LLM_REDO: the
     * device could not keep the operations, the caller does them once more
     * and submits again.  If the step has no row for map(), the next one may then begin, and be submitted, before this
     * one's end(): each end() is of the step that was submitted first, and
     * its results stay until the next begin() or end().  Where begin() or
     * end() fails, all steps under way are void.  NULL in the table: the
     * device has one step at a time.
     */
    int         (*begin)(llm_dev_t *dev, const llm_batch_t *batch,
                        llm_err_t *err);
    int         (*submit)(llm_dev_t *dev);
    int         (*end)(llm_dev_t *dev, llm_err_t *err);

    /* x[row] = w[tokens[row]] */
    void        (*embed)(llm_dev_t *dev, const llm_weight_t *w,
                        llm_act_t *x);
    /* y = x / rms(x) * w, where rms(x) = sqrt(mean(x^2) + eps) */
    void        (*norm)(llm_dev_t *dev, llm_rows_t rows, const llm_act_t *x,
                        const llm_vec_t *w, float eps, llm_act_t *y);
    /* n products of the same x; the outputs are different buffers */
    void        (*linear)(llm_dev_t *dev, llm_rows_t rows,
                        const llm_act_t *x, const llm_linear_t *out,
                        uint32_t n);
    /*
     * q [rows, n_heads * head_dim_k] and k get their RMS norm per head (if
     * any) and are rotated in place by pos; then k and v are written to
     * the cache.
     */
    void        (*rope_kv)(llm_dev_t *dev, const llm_heads_t *h,
                        const llm_rope_t *rope, llm_act_t *q, llm_act_t *k,
                        const llm_act_t *v, llm_kv_t *kv);
    /*
     * Causal attention of every row over its sequence's cache, grouped
     * heads (arXiv:2305.13245): out [rows, n_heads * head_dim_v].
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
     * host pointer that stays valid until the next begin() or end(), without
     * a copy where the device can; write() is for tests.  Other buffers than
     * the logits only with no step under way.
     */
    const float  *(*map)(llm_dev_t *dev, const llm_act_t *a, uint32_t row,
                        uint32_t n);
    void        (*write)(llm_dev_t *dev, llm_act_t *a, uint32_t row,
                        uint32_t n, const float *src);

    /*
     * After end(): what the draw of row i of the logits gave.  A row that is
     * drawn from is spoiled for map().  NULL in the table: the device does
     * not draw, batch.draws is NULL.
     */
    void        (*drawn)(llm_dev_t *dev, uint32_t i, llm_drawn_t *out);
};


extern const llm_ops_t  llm_ops_reference;
extern const llm_ops_t  llm_ops_cpu;

/* what a backend's shared object exports under LLM_BACKEND_SYMBOL */
#define LLM_BACKEND_SYMBOL  "llm_backend"
typedef const llm_ops_t *(*llm_backend_pt)(void);

#endif /* LLM_KERNELS_H */
