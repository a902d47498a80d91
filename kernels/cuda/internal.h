/*
 * The CUDA device, its buffers and the arrays of a step; shared by the
 * sources of kernels/cuda.
 *
 * Invariant: the addresses that kernels get are fixed when the device and the
 * model's buffers are created, and grids depend only on the step's bucket, so
 * a captured step can be replayed with other contents.  Kernels read the
 * step's real sizes from counts[].
 *
 * A model owns its stream, its pinned memory and its scratch; buffers are
 * freed by their own *_free().  Models on a GPU share nothing but what is known
 * of it.  One thread at a time drives a model.
 */

#ifndef LLM_CUDA_INTERNAL_H
#define LLM_CUDA_INTERNAL_H

#include "kernels/cuda/device.h"

#include <atomic>
#include <mutex>

extern "C" {
#include "engine/base/products.h"
#include "kernels/kernels.h"
}

#define LLM_CUDA_MAX_GPUS  64

/* positions of one split of the KV cache; results depend on this size, not on
   the number of splits */
#define LLM_CUDA_KV_SPLIT  256

#define LLM_CUDA_NO_SPLIT  0xffffffffu

/* most elements of a head of K or V */
#define LLM_CUDA_MAX_HEAD  576

/* most elements of V in latent attention, where V is the first part of K */
#define LLM_CUDA_MAX_LATENT  512

/* bytes of one half of the pinned memory for uploads */
#define LLM_CUDA_STAGE  (16 << 20)

/* indexes of counts[] */
#define LLM_N_TOKENS  0
#define LLM_N_SEQS    1
#define LLM_N_OUT     2
#define LLM_N_ITEMS   3                  /* attention items */
#define LLM_N_TOKENS_ITEM  4             /* tokens of an attention item */
#define LLM_N_MERGES  5                 /* rows whose splits are merged */
#define LLM_N_COUNTS  6
/* the same numbers for caches of LLM_KV_CROSS follow these */
#define LLM_N_ALL_COUNTS  (2 * LLM_N_COUNTS)

/* llm_draw_t on the device, with indexes instead of pointers */
typedef struct {
    double            u;
    uint32_t          kind;             /* llm_draw_kind_t */
    float             scale;
    float             min_gap;
    uint32_t          top_k;
    float             top_p;
    float             repetition;
    float             frequency;
    float             presence;
    int32_t           n_top;
    uint32_t          edit;             /* index of the first edit; the bans
                                           follow the edits */
    uint32_t          n_edits;
    uint32_t          n_banned;
    uint32_t          mask;             /* index of the mask, or
                                           LLM_CUDA_NO_MASK */
} llm_cuda_draw_t;

#define LLM_CUDA_NO_MASK  0xffffffffu

typedef struct {
    uint32_t          status;           /* llm_drawn_status_t */
    int32_t           id;
    float             logprob;
    uint32_t          n_top;
} llm_cuda_drawn_t;

/* the arrays of draws on the device that outlive a step */
typedef struct {
    llm_edit_t        *edits;           /* [max_seqs][LLM_DRAW_EDITS], those of
                                           all draws without gaps */
    float             *before;          /* the logit before each edit */
    uint32_t          *masks;           /* [max_seqs][mask_words] */
    uint32_t           mask_words;
    uint64_t          *parts;           /* [max_rows][n_parts] best rank of
                                           each part of a row */
    uint32_t           n_parts;
    llm_cuda_drawn_t  *drawn;           /* [max_rows] kept for rows of the next
                                           step that follow a draw */
    llm_candidate_t   *top;             /* [max_rows][LLM_DRAW_TOP] */
    uint32_t           n_edits;         /* of the current step */
    uint32_t           n_masks;
    uint32_t           n_top;           /* rows of the step whose top[] is
                                           copied to the host: up to the last
                                           that wants probabilities */
} llm_cuda_draws_t;

/*
 * The host's buffers of a step.  There are two: the next step's buffers are
 * filled while the device reads the current step's.  Pinned, except wants.
 */
typedef struct {
    uint8_t           *arrays;          /* laid out as in llm_cuda_step_t */
    llm_edit_t        *edits;
    uint32_t          *masks;
    llm_cuda_drawn_t  *drawn;
    llm_candidate_t   *top;
    uint8_t           *wants;           /* [max_rows] 1: map() will read the
                                           row's logits */
    uint32_t           n_out;
    cudaEvent_t        done;            /* recorded at the end of the step */
} llm_cuda_host_t;

/*
 * An item: the work of some blocks of attention in one sequence (items.cu).
 * With n = counts[LLM_N_TOKENS_ITEM]: n tokens (or what is left) from token
 * tile * n of the sequence on, and of what they see one split, if the sequence
 * is split, or all.
 */
typedef struct {
    uint32_t          seq;
    uint32_t          tile;
    uint32_t          split;            /* or LLM_CUDA_NO_SPLIT */
    uint32_t          length;           /* splits that a block goes through */
} llm_cuda_item_t;

/* most and fewest tokens of an item; with one query head for each KV head the
   most are a block's rows, those of attention_wgmma.cu if the GPU has wgmma */
#define LLM_CUDA_ITEM_MOST    64
#define LLM_CUDA_ITEM_WIDE    128
#define LLM_CUDA_ITEM_LEAST   4

/* most items of a step's split sequences */
#define LLM_CUDA_SPLITS       4096

/* most rows of a split sequence */
#define LLM_CUDA_SPLIT_ROWS   64

/* a step's arrays on the device; passed to kernels by value */
typedef struct {
    const uint32_t   *counts;           /* [LLM_N_ALL_COUNTS] */
    int32_t          *tokens;           /* [max_tokens] */
    const uint32_t   *follows;          /* [max_tokens] */
    const uint32_t   *pos;              /* [max_tokens] */
    const uint32_t   *turns;            /* [max_tokens][LLM_TURNS] positions
                                           that RoPE takes */
    const uint32_t   *sees;             /* [max_tokens][2] what rows see in
                                           layers with spans */
    const uint32_t   *given;            /* [max_tokens] row of llm_cuda_t.given,
                                           or LLM_NOT_GIVEN */
    const uint32_t   *row_seq;          /* [max_tokens] sequence of a row */
    const uint32_t   *seq_rows;         /* [max_seqs + 1] */
    const uint32_t   *kv_len;           /* [max_seqs] */
    const uint32_t   *slots;            /* [max_seqs] recurrent states */
    const uint32_t   *out_rows;         /* [max_out] */
    const llm_cuda_draw_t  *draws;      /* [max_out] */
    const uint32_t   *split_base;       /* [max_seqs] first partial result of
                                           a sequence, or LLM_CUDA_NO_SPLIT */
    const llm_cuda_item_t  *items;      /* [max_items] */
    const uint32_t   *merges;           /* [max_tokens] rows of split
                                           sequences */
    const uint32_t   *cross_len;        /* [max_seqs] kv_len, and items, of
                                           caches of LLM_KV_CROSS */
    const llm_cuda_item_t  *cross_items;    /* [max_items] */
    const uint32_t   *page_first;       /* [n_kinds + 1][max_seqs] index in
                                           pages of a sequence's first page in
                                           the cache of a kind, those of
                                           LLM_KV_CROSS last */
    const uint32_t   *pages;            /* page numbers that the step needs,
                                           sequence after sequence */
} llm_cuda_step_t;

#define LLM_CUDA_MAX_GRAPHS  256

/* a decode step is captured if it has at most this many rows, and rows of a
   sequence: one, or those of a draft to be verified */
#define LLM_CUDA_GRAPH_ROWS      512
#define LLM_CUDA_GRAPH_SEQ_ROWS  8

/*
 * A captured step: decode rows only, padded to a bucket.  The first step of a
 * bucket is launched normally and the second one captured, because the first
 * launch of a kernel loads the kernel, which is not allowed in a capture.
 */
typedef struct {
    uint32_t          rows;             /* bucket of rows */
    uint32_t          seq_rows;         /* bucket of the largest number of rows
                                           of a sequence */
    uint32_t          merges;           /* rows, or 0 if nothing is merged */
    uint32_t          items;            /* bucket of attention items */
    uint32_t          cross_items;
    cudaGraphExec_t   exec;             /* NULL: not captured yet */
} llm_cuda_graph_t;

/* a GPU, which models share; it does not change */
typedef struct {
    llm_device_t      device;           /* first */
    char              name[256];
    int               index;
    int               capability;       /* 10 major + minor */
    int               compiled;         /* the capability that the code it runs
                                           was compiled for: a lower one if
                                           that is PTX */
    size_t            shared;           /* most bytes of shared memory for a
                                           block */
    int               early;            /* kernels can begin before the
                                           previous one has ended */
    int               wgmma;            /* it has wgmma, and kernels with it
                                           were compiled */
} llm_cuda_gpu_t;

typedef struct llm_cuda_s {
    llm_exec_t        exec;             /* first */
    llm_exec_opts_t   opts;
    llm_cuda_gpu_t   *gpu;
    int               owns_gpu;
    cudaStream_t      stream;
    int               bf16;             /* LLM_ACT_VALUE is bf16, else f16 */
    int               products_fp8;     /* with weights_fp8 */

    /* the devices of which this one is the first (team.cu); itself alone if it
       is in no team, or in that of another one */
    struct llm_cuda_s *team[LLM_MAX_DEVICES];
    uint32_t          n_team;
    cudaEvent_t       mark;             /* recorded where others of its team
                                           wait for it; or NULL */

    llm_cuda_host_t   hosts[2];
    llm_cuda_host_t  *host;             /* of the step that began last */
    llm_cuda_host_t  *ended;            /* of the step whose results map() and
                                           drawn() return; NULL: there are
                                           none */
    uint32_t          n_begun;          /* steps begun, submitted and ended */
    uint32_t          n_submitted;
    uint32_t          n_ended;

    /* the step that began last */
    llm_cuda_step_t   step;
    uint32_t          n_tokens;
    uint32_t          n_seqs;
    uint32_t          n_out;
    uint32_t          rows;             /* bucket of n_tokens, for grids */
    uint32_t          seqs;             /* bucket of n_seqs */
    uint32_t          out_rows;         /* bucket of n_out */
    uint32_t          items;            /* bucket of attention items */
    uint32_t          cross_items;      /* of those of LLM_KV_CROSS */
    uint32_t          wide_items;       /* items that come first, with a launch
                                           of their own */
    uint32_t          narrow_rows;      /* most rows of a sequence that has
                                           none of them */
    uint32_t          merges;           /* rows of split sequences, or more */
    uint32_t          n_pages;          /* page numbers in the step's arrays */
    uint32_t          group;            /* most query heads for a KV head */
    uint32_t          item_tokens;      /* most tokens of an item */
    uint32_t          max_seq_rows;     /* most rows of a sequence; in a decode
                                           step the bucket of that number */
    int               decodes;          /* it is a decode step */
    int               follows;          /* some rows follow a draw */
    llm_gives_t       gives;
    llm_cuda_graph_t *capturing;        /* NULL: the step is launched */
    int               replayed;         /* the step is replayed */
    int               late;             /* the next kernel is the first after a
                                           wait for another GPU */
    int               failed;           /* a call failed: see end() */
    char              why[256];         /* the first failed call's error */
    int               no_memory;        /* that error was a lack of memory */

    float            *given;            /* rows that the step is given, on the
                                           device; they are not captured */
    size_t            given_cap;        /* bytes */
    uint32_t          given_cols;       /* 0: the step is given none */

    uint8_t          *step_dev;
    size_t            step_size;        /* without pages */

    llm_cuda_graph_t  graphs[LLM_CUDA_MAX_GRAPHS];
    uint32_t          n_graphs;
    int               no_graphs;        /* a graph failed: no more are made */

    uint16_t         *padded;           /* x of one linear(): padded to a
                                           multiple of 32 columns, or folded to
                                           one of 128
                                           (linear.h) */
    size_t            padded_cap;       /* bytes */
    uint8_t          *x8;               /* x of one linear() in e4m3 (linear.h),
                                           if products are in fp8 */
    size_t            x8_cap;           /* bytes */
    uint8_t          *stage;            /* pinned, two halves for uploads */
    cudaEvent_t       staged[2];        /* recorded after the upload of each
                                           half: it is free again */
    int               latent;           /* the model has latent layers */
    float            *partial;          /* partial results of split attention */
    size_t            partial_size;     /* bytes */
    uint32_t          partial_cap;      /* results of a row and a split that
                                           partial has room for */
    const llm_act_t  *logits;           /* the model's; submit() enqueues the
                                           copy to host_logits */
    float            *host_logits;      /* pinned */
    const llm_act_t  *hidden;           /* the same with host_hidden */
    float            *host_hidden;      /* pinned */
    llm_cuda_draws_t  draws;
    llm_cuda_drawn_t *followed;         /* draws that rows follow if another
                                           GPU has drawn; else NULL */
    cudaEvent_t       received;         /* recorded after each copy from another
                                           GPU; NULL: there is none */
    uint64_t          peers;            /* GPUs whose memory it reads, a bit
                                           each */
    float            *host_rows;        /* pinned; for map() of other buffers,
                                           and write() */
    size_t            host_rows_cap;    /* bytes */
    float            *dev_rows;         /* float32 copies of 16-bit rows, for
                                           map() and write() */
    size_t            dev_rows_cap;     /* bytes */
    struct llm_blas_s *blas;            /* blas.h */
} llm_cuda_t;

struct llm_act_s {
    uint32_t          cols;
    llm_act_kind_t    kind;
    int               is16;             /* LLM_ACT_VALUE: f16 or bf16, else
                                           float */
    void             *data;
};

struct llm_vec_s {
    uint32_t          n;
    float            *data;
};

/*
 * raw: rows in GGUF's layout, for embeddings; w16: padded 16-bit rows;
 * packed: the layout of linear.h.  Layouts that are not needed are NULL.
 */
struct llm_weight_s {
    uint32_t          type;             /* as the file has it */
    uint32_t          n_out;
    uint32_t          n_in;
    size_t            row_size;         /* bytes of a raw row */
    uint8_t          *raw;
    uint16_t         *w16;
    uint8_t          *packed;
    int               cls;              /* class of packed: see linear.h */
    uint32_t          n_experts;        /* matrices of experts or heads, packed
                                           one by one; 0: a single matrix */
    size_t            stride;           /* bytes from one matrix to the next */
    float            *factors;          /* a factor on the products of each
                                           matrix; or NULL */
};

/*
 * K of a layer is [page][kv head], each a block of [slot][head_dim_k]; V is the
 * same with head_dim_v.  Elements are f16, or e4m3; a block of e4m3 is followed
 * by a byte for each slot, whose scale is 2^(byte - 15).  Scaling by a power of
 * two loses no precision, and an e4m3 times its scale is exact in f16.
 */
typedef struct {
    size_t            k;                /* offset of the layer's pages of K in
                                           data, bytes */
    size_t            v;
    size_t            k_page;           /* bytes of a page; 0: the layer keeps
                                           none */
    size_t            v_page;
} llm_kv_room_t;

struct llm_kv_s {
    llm_kv_opts_t     opts;
    llm_kv_room_t    *rooms;            /* [n_layers] */
    llm_kv_room_t    *dev_rooms;        /* the same on the device */
    uint8_t          *data;             /* on the device */
};

/* the step's arrays, those of a kind of cache for this cache */

static inline llm_cuda_step_t
llm_cuda_step_of(const llm_cuda_t *d, const llm_kv_t *kv)
{
    llm_cuda_step_t  st;

    st = d->step;

    if (kv->opts.kind == LLM_KV_CROSS) {
        st.counts += LLM_N_COUNTS;
        st.kv_len = st.cross_len;
        st.items = st.cross_items;
        st.page_first += llm_max(d->opts.n_kinds, 1u) * d->opts.max_seqs;

    } else {
        st.page_first += kv->opts.kind * d->opts.max_seqs;
    }

    return st;
}


#define LLM_KV_SCALE_MIN  (-14)
#define LLM_KV_SCALE_MAX  7             /* 448 * 2^7 is below f16's largest */

static __device__ __host__ __forceinline__ size_t
llm_kv_block(uint32_t dim, int fp8)
{
    return (size_t) LLM_KV_PAGE * (fp8 ? dim + 1 : 2 * dim);
}

/* remembers the first error; returns nonzero if e is an error */
int llm_cuda_check(llm_cuda_t *d, cudaError_t e, const char *what);

/* returns LLM_ERROR and clears the error if one was remembered */
int llm_cuda_report(llm_cuda_t *d, llm_err_t *err);

/* 0 if the context on the device's GPU is lost, and its memory with it; see
   error.cu */
int llm_cuda_alive(const llm_cuda_gpu_t *gpu);
/* makes the error of the lost context of a GPU; returns LLM_ERROR */
int llm_cuda_fail_lost(llm_err_t *err, int gpu, const char *why);
/* forgets all steps of the device's team: none is in flight any more, and none
   has results */
void llm_cuda_void(llm_cuda_t *d);

/* allocates size bytes (at least 1) on the device at *p; on failure *p is NULL
   and err says what the memory was for */
int llm_cuda_alloc(void **p, size_t size, const char *what, llm_err_t *err);
/* does nothing if the context is lost; p may be NULL */
void llm_cuda_free(const llm_cuda_t *d, void *p);

/* lets kernel K have `shared` bytes of shared memory on the device, once; a
   larger number later, of another model, is allowed, too */
template<auto K> static inline void
llm_cuda_use_shared(llm_cuda_t *d, size_t shared)
{
    /* on each GPU; threads that load and threads that run models share it */
    static std::atomic<size_t>  allowed[LLM_CUDA_MAX_GPUS];
    static std::mutex           lock;

    std::atomic<size_t>  &most = allowed[d->gpu->index];

    if (shared <= most.load(std::memory_order_relaxed)) {
        return;
    }

    std::lock_guard<std::mutex>  guard(lock);

    if (shared > most.load(std::memory_order_relaxed)
        && llm_cuda_check(d, cudaFuncSetAttribute(K,
                              cudaFuncAttributeMaxDynamicSharedMemorySize,
                              (int) shared), "shared memory of a kernel")
           == 0)
    {
        most.store(shared, std::memory_order_relaxed);
    }
}


/* copy from any host memory, and write zeros; they wait until that is done */
void llm_cuda_put(llm_cuda_t *d, void *dst, const void *src, size_t size,
    const char *what);
int llm_cuda_clear(llm_cuda_t *d, void *p, size_t size, const char *what,
    llm_err_t *err);

/* may the next kernel be launched early (device.h)? */
static inline int
llm_cuda_early(llm_cuda_t *d)
{
    int  early;

    early = d->gpu->early && !d->late;
    d->late = 0;

    return early;
}


/* number of rows for the grid of an operation: the step's bucket of them */
static inline uint32_t
llm_cuda_rows(const llm_cuda_t *d, llm_rows_t rows)
{
    return rows == LLM_ROWS_OUT ? d->out_rows : d->rows;
}


/* address on the device of the step's real number of rows */
static inline const uint32_t *
llm_cuda_count(const llm_cuda_t *d, llm_rows_t rows)
{
    return d->step.counts + (rows == LLM_ROWS_OUT ? LLM_N_OUT : LLM_N_TOKENS);
}


/* exported under LLM_BACKEND_SYMBOL: see kernels.h */
extern "C" const llm_ops_t *llm_backend_table(uint32_t interface,
    size_t size);

/* the operations: backend.cu (open, close, describe), acts.cu, memory.cu,
   step.cu, kv.cu, basic.cu, rope.cu, values.cu, attention.cu, linear.cu,
   weights.cu, heads.cu, route.cu, experts.cu, state.cu, pick.cu (drawn),
   link.cu (enter, receive), team.cu (join, collect) */
#define LLM_OP(group, needs, result, name, parameters)                       \
    result llm_cuda_##name parameters;
#include "kernels/ops.def"

/* step.cu: sets the pointers of st to the arrays of a step, which follow one
   another from base on, 256-byte aligned, pages last, because only the used
   part of them is copied; returns the bytes of all */
size_t llm_cuda_step_layout(llm_cuda_t *d, uint8_t *base, llm_cuda_step_t *st);

/* the bucket of n, at least as many */
static inline uint32_t
llm_cuda_bucket(uint32_t n)
{
    uint32_t  b;

    for (b = 1; b < n; b = b < 256 ? b * 2 : b + 128) { /* void */ }

    return b;
}


/* link.cu: lets the device read the memory of the other's GPU directly; 0: that
   is not possible */
int llm_cuda_peer(const llm_cuda_t *d, const llm_cuda_t *from);
/* link.cu: makes room for what the device is to receive; returns LLM_ERROR */
int llm_cuda_receives(llm_cuda_t *d, const llm_cuda_t *from, int draws,
    llm_err_t *err);

/* team.cu: the first device of a team waits for what the others were given so
   far; the others wait for it.  They enqueue nothing if it is alone */
void llm_cuda_team_in(llm_cuda_t *d);
void llm_cuda_team_out(llm_cuda_t *d);

/* image.cu: sets gpu->compiled, or makes the error of a GPU that cannot run the
   kernels; the thread's device is that GPU */
int llm_cuda_image(llm_cuda_gpu_t *gpu, const llm_exec_opts_t *opts,
    llm_err_t *err);

/* attention_wgmma.cu: was its kernel compiled for GPUs with wgmma? */
int llm_cuda_wgmma_compiled(void);

/* items.cu: most attention items of a step; its list of them */
size_t llm_cuda_max_items(const llm_cuda_t *d);
void llm_cuda_items_fill(llm_cuda_t *d, const llm_batch_t *b,
    const llm_cuda_step_t *h);

/*
 * pick.cu: allocates memory for draws from max_rows rows of n logits; copies a
 * step's draws to pinned memory and from there to the device; copies results
 * back for map() and drawn().
 */
int llm_cuda_pick_room(llm_cuda_t *d, uint32_t max_rows, uint32_t n,
    llm_err_t *err);
void llm_cuda_pick_free(llm_cuda_t *d);
void llm_cuda_pick_fill(llm_cuda_t *d, const llm_batch_t *b,
    llm_cuda_draw_t *draws);
void llm_cuda_pick_upload(llm_cuda_t *d);
void llm_cuda_pick_read(llm_cuda_t *d);

/* sets the tokens of rows that follow a draw of the previous step */
void llm_cuda_follow(llm_cuda_t *d);

/* sample.cu: the number of parts of a row of n logits, and the draws, which are
   part of a captured step */
#define LLM_DRAW_PARTS  64              /* most parts of a row */
uint32_t llm_cuda_draw_parts(uint32_t n);
void llm_cuda_draw(llm_cuda_t *d);

/* a kernel that has several blocks for a row, in y, so that its loads do not
   wait for one another: their number, and the first value of a thread */
static inline unsigned
llm_row_blocks(uint32_t cols, unsigned threads)
{
    return (cols + 4 * threads - 1) / (4 * threads);
}


static __device__ __forceinline__ uint32_t
llm_row_value(void)
{
    return blockIdx.y * blockDim.x + threadIdx.x;
}


/* 16-bit elements of activations to and from float */
static __device__ __forceinline__ float
llm_load16(const uint16_t *p, int bf16)
{
    return bf16 ? llm_b2f(*p) : llm_h2f(*p);
}


/* values beyond f16's range become its largest, not infinity */

static __device__ __forceinline__ uint16_t
llm_store16(float f, int bf16)
{
    return bf16 ? llm_f2b(f) : llm_f2h(fminf(fmaxf(f, -65504.0f), 65504.0f));
}


/* element i of a buffer of 16-bit elements (is16) or floats */

static __device__ __forceinline__ float
llm_load(const void *p, size_t i, int is16, int bf16)
{
    return is16 ? llm_load16((const uint16_t *) p + i, bf16)
                : ((const float *) p)[i];
}


static __device__ __forceinline__ void
llm_store(void *p, size_t i, float v, int is16, int bf16)
{
    if (is16) {
        ((uint16_t *) p)[i] = llm_store16(v, bf16);

    } else {
        ((float *) p)[i] = v;
    }
}


/* stores four elements from i on; i is a multiple of four */

static __device__ __forceinline__ void
llm_store_4(void *p, size_t i, float4 v, int is16, int bf16)
{
    if (is16) {
        *(uint2 *) ((uint16_t *) p + i) = make_uint2(
            (uint32_t) llm_store16(v.x, bf16)
                | (uint32_t) llm_store16(v.y, bf16) << 16,
            (uint32_t) llm_store16(v.z, bf16)
                | (uint32_t) llm_store16(v.w, bf16) << 16);

    } else {
        *(float4 *) ((float *) p + i) = v;
    }
}


/* Returns v, but hides from the compiler where it comes from.  If nvcc can
   relate the rows of a tile to each other, it follows every path through the
   bounds tests of all stores, which takes minutes and gains nothing. */

static __device__ __forceinline__ uint32_t
llm_unrelated(uint32_t v)
{
    asm volatile ("" : "+r"(v));

    return v;
}

#endif /* LLM_CUDA_INTERNAL_H */
