/*
 * What the files of the CPU backend share: its objects, the layout of weights,
 * and the table of kernels that each instruction set fills in.  Who owns an
 * object's memory is said in kernels.h.
 *
 * Weights
 *   A matrix [n_out, n_in] is packed once into panels of 16 rows, the last
 *   one padded with zeros, so that a vector's lanes are output rows and no
 *   product needs a horizontal sum.  pack.c describes the layouts.
 *
 * Products of quantised weights
 *   Activations are rounded to int8 in blocks of 32 with a float32 scale,
 *   dot products within a block are exact in int32, and blocks are summed
 *   in float32 in order of k:
 *       acc = fma(dot, d_w * d_x, acc); acc = fma(m_w, d_x * sum(x), acc)
 *   Every kernel of every instruction set uses this order, so the bits are the
 *   same for one row and for many.
 *
 * Products of float weights
 *   F32 and F16 times float32, acc = fma(w, x, acc) in order of k.  BF16 in
 *   the same way, or, if the CPU multiplies bfloat16, with both factors in
 *   bfloat16; the choice is made when the device is opened.
 */

#ifndef LLM_CPU_H
#define LLM_CPU_H

#include "kernels/cpu/pool.h"
#include "kernels/kernels.h"

#include <pthread.h>

#define LLM_PANEL        16             /* rows of a panel */
#define LLM_BLOCK        32             /* elements that share d_x */

#define LLM_HUGE_PAGE    ((size_t) 2 << 20)

/* keys of one step of the online softmax, with AMX tiles more; and of one split
   of the cache */
#define LLM_ATTN_BLOCK   64
#define LLM_ATTN_KEYS    256
#define LLM_ATTN_SPLIT   1024
/* query rows x heads of one tile, at most; with AMX tiles, which are faster
   than the third-level cache; of one whose splits are computed by several
   threads */
#define LLM_ATTN_TILE    64
#define LLM_ATTN_MOST    256
#define LLM_ATTN_FEW     16
/* of a block of LLM_ATTN_KEYS keys, whose scores are kept at once; numbers from
   row to row of these, at most */
#define LLM_ATTN_SOME    32
#define LLM_ATTN_STRIDE  (LLM_ATTN_KEYS + 32)

_Static_assert(LLM_ATTN_MOST == 4 * LLM_ATTN_TILE
               && LLM_ATTN_TILE == 4 * LLM_ATTN_FEW, "sizes of tiles");

/* RoPE tables kept during a step: layers with and without a window may have
   different ones */
#define LLM_CPU_ROPES    2

/* rows of a product up to which its time is that of reading the weights */
#define LLM_GEMM_FEW     8

/* bytes of a thread's scratch that do not depend on the width of a weight; of
   kernels with tiles, and the rows whose sums they keep in it */
#define LLM_GEMM_SCRATCH 81920
#define LLM_TILE_SCRATCH 327680
#define LLM_TILE_SPAN    256

/* rows of a recurrent head that one call of the kernel processes, at most */
#define LLM_STATE_STEP   32

/* n rounded up to whole vectors of 16 floats, in which rows are read and
   written */
#define llm_pad16(n)     (((size_t) (n) + 15) & ~(size_t) 15)


struct llm_act_s {
    uint32_t             cols;
    size_t               size;          /* bytes */
    float               *data;          /* [rows][cols] */
};

struct llm_vec_s {
    uint32_t             n;
    float               *data;          /* [n], then zeros, at least to a
                                           multiple of 16 */
};

/*
 * The cache of one layer.  The pages of a head are adjacent.  A page of one
 * head is K, then V:
 *
 *   F16   K[head_dim_k][LLM_KV_PAGE], V[LLM_KV_PAGE][dv_pad]; of a latent
 *         layer [LLM_KV_PAGE][v_row], a row being K (its beginning is V), then
 *         zeros
 *   BF16  K[dk_pad / 2][LLM_KV_PAGE][2], V[LLM_KV_PAGE / 2][dv_pad][2]: pairs
 *         of elements of a key, and of keys, are adjacent
 *   Q8    int8 in the same order as BF16; after K the binary16 scales of each 32
 *         elements of a key, [dk_pad / 32][LLM_KV_PAGE], and after V those of
 *         each key's V, [LLM_KV_PAGE]
 *   F32   as F16, in float32, not for latent layers
 */
typedef enum {
    LLM_CPU_KV_F16 = 0,
    LLM_CPU_KV_BF16,
    LLM_CPU_KV_Q8,
    LLM_CPU_KV_F32,
    LLM_CPU_KV_N
} llm_cpu_kv_format_t;

typedef struct {
    llm_cpu_kv_format_t  format;
    uint32_t             n_heads;
    uint32_t             head_dim_k;
    uint32_t             head_dim_v;
    int                  latent;
    size_t               dk_pad;        /* head_dim_k, padded as the format
                                           needs it */
    size_t               dv_pad;        /* head_dim_v, padded */
    size_t               v_row;         /* elements from a token's V to the
                                           next token's */
    size_t               k_size;        /* of K in a page, before V, in units of
                                           2 bytes, as the next */
    size_t               page;          /* of K and V in a page of one head */
    size_t               head;          /* of all pages of a head, and what is
                                           left out behind them */
    uint16_t            *data;          /* [head][page number][page] */
} llm_cpu_kv_layer_t;

struct llm_kv_s {
    llm_kv_opts_t        opts;
    llm_cpu_kv_layer_t  *layers;        /* [opts.n_layers] */
    size_t               size;          /* bytes of all layers' pages */
    size_t               mapped;        /* bytes of data */
    uint16_t            *data;          /* all layers */
};

/* ways to pack codes, the rows of packs.def; kernels/types.def has the way of
   each type */
typedef enum {
    LLM_PACK_NONE = 0,                  /* floats */
#define LLM_PACK(NAME, bits, range, zero, scale, as)  LLM_PACK_##NAME,
#include "kernels/cpu/packs.def"
    LLM_PACK_N
} llm_pack_t;

typedef enum {
#define LLM_SCALE(NAME, blocks, bytes, halves, min)  LLM_SCALE_##NAME,
#include "kernels/cpu/packs.def"
    LLM_SCALE_N
} llm_pack_scale_t;

/* layout of a type's codes and scales in a panel; all 0 for floats */
typedef struct {
    llm_pack_t           pack;
    llm_pack_scale_t     scale;
    uint8_t              bits;          /* bits of a code */
    uint8_t              zero;          /* factor that stands for the value 0 */
    uint16_t             code_size;     /* bytes of 32 x 16 codes */
    uint16_t             scale_size;    /* bytes of a group of scales */
    uint16_t             scale_blocks;  /* blocks of 32 per group of scales */
    uint8_t              book[16];      /* factor that each code stands for,
                                           only if the type has a book */
    uint16_t             stage;         /* LLM_STAGE_ bits: forms of x that
                                           products need */
} llm_cpu_format_t;

/* memory shared by weights, in the order of their creation; owned by the
   weights, freed with the last one */
typedef struct llm_cpu_slab_s  llm_cpu_slab_t;

struct llm_cpu_slab_s {
    uint8_t             *data;
    size_t               size;          /* bytes */
    size_t               used;          /* bytes, from the start */
    uint32_t             n_weights;
};

struct llm_weight_s {
    uint32_t             type;
    uint32_t             n_out;
    uint32_t             n_in;
    int                  usage;
    uint32_t             n_experts;     /* number of matrices, 1 for a single
                                           one */
    const uint8_t       *src;           /* the caller's rows */
    size_t               row_size;      /* bytes of a row of src */
    size_t               stride;        /* bytes from one matrix of src to the
                                           next */
    uint8_t             *data;          /* panels; NULL if not LINEAR */
    llm_cpu_slab_t      *slab;          /* slab that holds data; NULL: data is
                                           in the model's file of packed
                                           weights */
    llm_weight_t        *next;          /* created after this one */
    size_t               size;          /* bytes of all panels */
    size_t               panel_size;    /* bytes of a panel */
    size_t               codes_size;    /* bytes of a panel's codes, before its
                                           scales */
    uint32_t             n_panels;      /* panels of one matrix */
    float               *scales;        /* [n_experts] factors on products;
                                           NULL: 1 */
    llm_cpu_format_t     format;
    uint32_t             panels;        /* LLM_TYPE_ that is multiplied: type, or
                                           BF16 by products=.  Floats are in
                                           the panels as such; codes become such
                                           for each product */
};

/*
 * The stage: rows of x in the forms that products need.  For weights whose
 * value 0 is stored as z, zero[] of that z holds -z * sum(q) of each block, or,
 * for z of 32 and 64, whose weights have a scale for each half of a block, of
 * each half.
 *
 * x is kept with twice the bits (fine) in products of the rows that need
 * results, because these rows matter most and are few, and for NVFP4, whose
 * weights differ so much in size within a block that rounding x to 8 bits would
 * show in the logits; and for weights that ask for it.  It is then d * (128 q + q_low) with both in int8, or
 * b + b_low.  The second product takes no additional time where reading the
 * weights takes longer.
 */
typedef enum {
    LLM_ZERO_8 = 0,
    LLM_ZERO_16,
    LLM_ZERO_128,
    LLM_ZERO_32,                        /* of halves from here on */
    LLM_ZERO_64,
    LLM_ZERO_N
} llm_cpu_zero_t;

/* forms to prepare (or-ed); the bit of zero[c] is LLM_STAGE_ZERO << c */
#define LLM_STAGE_Q8     1
#define LLM_STAGE_BF16   2
#define LLM_STAGE_HALF   4
#define LLM_STAGE_ZERO   8
#define LLM_STAGE_FINE   (LLM_STAGE_ZERO << LLM_ZERO_N)
#define LLM_STAGE_FLOAT  (LLM_STAGE_FINE << 1)   /* x in float32, unchanged */

typedef struct {
    uint32_t             n_in;
    uint32_t             n_blocks;
    int                  fine;          /* 1: q_low and b_low are used, too */
    size_t               stride;        /* elements of a row of q and of b,
                                           which are padded with zeros */
    const float         *x;             /* [rows][n_in], the activations */
    int8_t              *q;
    int8_t              *q_low;
    /* for each block, 16 rows interleaved: see llm_stage_at() */
    float               *d;             /* scale */
    float               *sum;           /* d * sum(q) */
    float               *half;          /* d * sum(q) of each half */
    int32_t             *zero[LLM_ZERO_N];
    uint16_t            *b;             /* x in bfloat16, with AMX in the order
                                           of tiles; with AVX2, which
                                           has no use for that: d times 16-bit
                                           integers, if fine, in place of q */
    uint16_t            *b_low;         /* x - b in bfloat16 */
} llm_cpu_stage_t;


/* index of a row's first number in [rows / 16][n][16]; the next block's number
   is 16 later */
static inline size_t
llm_stage_at(uint32_t row, size_t n)
{
    return (row / 16 * n) * 16 + row % 16;
}


/*
 * The experts that were chosen for the rows in one layer, and the buffers of
 * their products.  A row and its k-th expert are a pair, row * n_used + k.
 * Products need the pairs of an expert in adjacent rows: pair p is row place[p]
 * of the buffers.
 */
struct llm_choice_s {
    llm_choice_opts_t    opts;
    uint32_t             n_experts;     /* experts of the layer */
    uint32_t             n_used;
    float               *weight;        /* [pairs] */
    uint32_t            *expert;        /* [pairs]; the same allocation holds
                                           the arrays below up to next */
    uint32_t            *place;         /* [pairs] */

    /* a group is a chosen expert with its pairs, in the order of experts */
    uint32_t             n_groups;
    uint32_t            *group;         /* [n_groups] its expert */
    uint32_t            *first;         /* [n_groups] its first place, a
                                           multiple of 16 */
    uint32_t            *first_item;    /* [n_groups + 1] its first item of
                                           the loop over products */
    uint32_t            *n_rows;        /* [n_experts] pairs of each expert */
    uint32_t            *next;          /* [n_experts] place of the expert's
                                           next pair */

    size_t               max_places;
    llm_cpu_stage_t      stage;
    void                *stage_memory;
    size_t               stage_size;    /* bytes */
    float               *gate;          /* [places][n_ff]; then the activation's
                                           result */
    float               *up;            /* [places][n_ff] */
    size_t               ff_size;       /* bytes of gate, and of up */
    float               *out;           /* [places][n_in] results; before them
                                           x, for weights that need float32 */
    size_t               out_size;      /* bytes */
};


/* a piece of a product: some rows of x, times some panels of w */
typedef struct {
    const llm_weight_t     *w;
    const llm_cpu_stage_t  *x;
    const float            *bias;       /* NULL: none */
    float                   scale;      /* factor on the product */
    float                  *y;          /* [rows][w->n_out] */
    int                     add;        /* 1: y += instead of y = */
    uint32_t                row;        /* first row */
    uint32_t                n_rows;
    uint32_t                panel;      /* first panel */
    uint32_t                n_panels;
    uint8_t                *scratch;    /* of the thread */
} llm_cpu_gemm_t;

/* attention of some queries (rows x heads of one KV head) over a range of
   keys */
typedef struct {
    const llm_cpu_kv_layer_t  *kv;
    const uint16_t      *base;          /* page 0 of the layer and head */
    const uint32_t      *pages;         /* page numbers of the sequence */
    uint32_t             n;             /* queries, <= LLM_ATTN_MOST */
    uint32_t             first;         /* first key, a multiple of
                                           LLM_ATTN_SPLIT */
    uint32_t             last;          /* last key + 1 */
    uint32_t             ahead;         /* the same of what this thread reads,
                                           in this call and in the next ones */
    float                scale;
    float                softcap;       /* 0: none */
    int                  slopes;        /* 1: at and slope are used (ALiBi) */
    const float         *q[LLM_ATTN_MOST];
    uint32_t             at[LLM_ATTN_MOST];     /* position of each query */
    float                slope[LLM_ATTN_MOST];  /* slope of each query */
    uint32_t             from[LLM_ATTN_MOST];   /* first key of each query */
    uint32_t             limit[LLM_ATTN_MOST];  /* its last key + 1 */
    /* result: acc = sum of exp(score - max) v, sum = sum of exp(score - max),
       where max is about the largest score */
    float               *acc;           /* [n][dv_pad] */
    float                max[LLM_ATTN_MOST];
    float                sum[LLM_ATTN_MOST];
    float               *scores;        /* scratch: [n][LLM_ATTN_BLOCK], and
                                           what formats other than F16 need */
} llm_cpu_attn_t;

/* RoPE's table of a row: y[i] = x[i] cos[i] + x[partner of i] sin[i] */
typedef struct {
    llm_rope_kind_t      kind;
    uint32_t             n_dims;
    const float         *cos;           /* [n_dims] */
    const float         *sin;           /* [n_dims], with the sign of the
                                           rotation */
} llm_cpu_rot_t;


/*
 * One head of a recurrent layer, over n rows of a sequence.  Its matrix s and
 * the result y, for row t with q, k and v of that row:
 *
 *   d = weight[t] v                      scan
 *   d = weight[t] (v - g[t] s^T k)       delta rule, with q and k normalised
 *   s = g[t] s + k d^T,  y = s^T q + skip v
 */
typedef struct {
    float               *s;             /* [n_rows][n_cols], in a layout that
                                           the kernel chooses */
    uint32_t             n_rows;
    uint32_t             n_cols;
    int                  is_delta;
    uint32_t             n;             /* rows, at most LLM_STATE_STEP */
    const float         *q;             /* [n_rows], of the first row */
    const float         *k;             /* [n_rows], of the first row */
    const float         *v;             /* [n_cols], of the first row */
    float               *y;             /* [n_cols], of the first row */
    size_t               x_stride;      /* floats from row to row of q, k, v */
    size_t               y_stride;      /* floats from row to row of y */
    float                skip;
    float                g[LLM_STATE_STEP];
    float                weight[LLM_STATE_STEP];
    float                q_scale[LLM_STATE_STEP];   /* set by the kernel */
    float                k_scale[LLM_STATE_STEP];   /* set by the kernel */
} llm_cpu_state_t;

/* one row of a short convolution, some channels: see llm_conv_t */
typedef struct {
    const float         *x[LLM_MAX_CONV];   /* inputs, the oldest first */
    const float         *w;             /* [width][stride] */
    size_t               stride;
    const float         *bias;          /* NULL: none */
    uint32_t             width;
    uint32_t             n;             /* channels */
    int                  silu;
} llm_cpu_conv_t;


/* the kernels of an instruction set */
typedef struct {
    const char  *name;
    int          bf16;                  /* 1: gemm_bf16() needs x in bfloat16 */
    int          tiles;                 /* 1: products of many rows use tiles,
                                           which are faster than memory */

    /* writes x[n_in] as a row of s; what: LLM_STAGE_ bits */
    void       (*stage_q8)(const llm_cpu_stage_t *s, const float *x,
                    uint32_t row, int what);
    void       (*stage_bf16)(const llm_cpu_stage_t *s, const float *x,
                    uint32_t row);
    void       (*gemm_quant)(const llm_cpu_gemm_t *g);
    void       (*gemm_float)(const llm_cpu_gemm_t *g);  /* F32, F16 */
    void       (*gemm_bf16)(const llm_cpu_gemm_t *g);

    /* one row */
    void       (*norm)(const llm_norm_t *norm, const float *x, float *y,
                    uint32_t n);
    /* y = act(gate) * up, or act(gate) if up is NULL */
    void       (*glu)(const llm_act_fn_t *fn, const float *gate,
                    const float *up, float *y, size_t n);
    void       (*softcap)(float cap, float *x, size_t n);
    /* y[i] = w[0] x[at[0]][i] + w[1] x[at[1]][i] ..., or y[i] += if add;
       x [][n]; w NULL: all 1 */
    void       (*weighted_sum)(float *y, const float *x, const uint32_t *at,
                    const float *w, uint32_t n_at, uint32_t n, int add);
    /* one head x[n]: RMS norm with w if w is not NULL, then the rotation */
    void       (*rope)(float *x, const float *w, float eps, uint32_t n,
                    const llm_cpu_rot_t *rot);
    /* converts n floats to binary16; stride: elements of dst from one to the
       next */
    void       (*store_f16)(uint16_t *dst, size_t stride, const float *src,
                    uint32_t n);

    void       (*state)(llm_cpu_state_t *p);
    void       (*conv)(const llm_cpu_conv_t *c, float *y);

    /* on a cache of each format; NULL: the instruction set has no such
       products */
    void       (*attn[LLM_CPU_KV_N])(llm_cpu_attn_t *a);
    /* writes k and v of one token and head to a slot of a page of a format
       other than F16 */
    void       (*keep[LLM_CPU_KV_N])(const llm_cpu_kv_layer_t *kv,
                    uint16_t *page, uint32_t slot, const float *k,
                    const float *v);
    uint32_t     bf16_dims;             /* dk_pad of BF16 is a multiple of
                                           it */
    uint32_t     bf16_tile;             /* queries of a tile of BF16, at most */
    /* adds the result b of a later range of keys to the result a */
    void       (*attn_merge)(llm_cpu_attn_t *a, const llm_cpu_attn_t *b);
    /* out[head_dim_v] = acc of query i, divided by its sum; sink: score of a
       key without a value, NULL: none */
    void       (*attn_finish)(const llm_cpu_attn_t *a, uint32_t i,
                    const float *sink, float *out);
} llm_cpu_kernels_t;


/* memory that can be enlarged, from llm_cpu_alloc() */
typedef struct {
    void                *data;
    size_t               size;          /* bytes */
} llm_cpu_room_t;


/* what all models on the CPUs share, see device.c; lives as long as one of
   them */
typedef struct {
    llm_device_t         device;        /* first */
    llm_cpu_kernels_t    kernels;

    /* turns, which are given in the order of requests */
    pthread_mutex_t      lock;          /* guards the next three */
    pthread_cond_t       passed;        /* signalled when n_given changes */
    uint64_t             n_asked;       /* turns requested */
    uint64_t             n_given;       /* number of the request that has the
                                           turn */

    /* used only by the thread that has the turn */
    llm_pool_t          *pool;
    uint8_t             *scratch;       /* a part for each thread, sized by the
                                           widest weight and the heads */
    size_t               scratch_size;  /* bytes of one thread */
    uint32_t             n_scratch;     /* threads that have a part */
    llm_cpu_room_t       stage;
    llm_cpu_room_t       rot;
    llm_cpu_room_t       parts;
} llm_cpu_device_t;

/* a file of packed weights, mapped by the caller, and its rows for the weights
   that are still to be created */
typedef struct llm_packed_row_s  llm_packed_row_t;

typedef struct {
    const uint8_t           *data;
    const llm_packed_row_t  *next;      /* next == end: no more rows */
    const llm_packed_row_t  *end;
} llm_cpu_packed_t;

/* a model on the CPUs; the device owns the memory of stage, rot and parts,
   which begin() sets for each step */
typedef struct {
    llm_exec_t           exec;          /* first */
    llm_exec_opts_t      opts;
    llm_cpu_device_t    *device;
    int                  owns_device;   /* 1: close() closes the device */
    uint32_t             threads;       /* threads of its steps and its load */
    llm_cpu_kv_format_t  kv_format;     /* of layers that are not latent */
    size_t               scratch_size;  /* bytes per thread that this model has
                                           reserved */
    llm_cpu_kernels_t    kernels;
    int                  bf16;          /* products=bf16 or bf16-all */
    int                  bf16_all;      /* products=bf16-all */
    const llm_batch_t   *batch;         /* the current step; NULL: none */
    llm_cpu_slab_t      *slab;          /* slab for the next weights, or NULL */
    llm_weight_t        *weights;       /* list, in the order of creation */
    llm_weight_t        *last;          /* its end */
    llm_cpu_packed_t     packed;

    /* x of the running product; sized by the widest weight */
    llm_cpu_stage_t      stage;
    uint32_t             stage_cap;     /* elements of a row */

    /* cos and sin of every row of the step: tables of the last
       LLM_CPU_ROPES ropes, computed once a step */
    float               *rot;           /* [LLM_CPU_ROPES][max_tokens][2]
                                           [rot_cap] */
    size_t               rot_cap;       /* floats */
    const llm_vec_t     *rot_of[LLM_CPU_ROPES]; /* inv_freq of each table;
                                                   NULL: no table in this
                                                   step */
    uint32_t             rot_next;      /* table to be replaced next */

    /* results of attention over splits of the keys */
    float               *parts;
    size_t               part_floats;   /* floats of one result */
    uint32_t             max_parts;
    uint32_t            *first_item;    /* [max_seqs + 1] first item of each
                                           sequence, in attention */
} llm_cpu_t;

/* a loop while a model is loaded, run on the pool or by the loading thread
   alone; its items use no scratch */
typedef struct {
    llm_pool_pt          pack;          /* packs an item */
    /* reads the file's bytes of n items before they are packed, outside of
       turns, so that pack() does not wait for the disk */
    void               (*read)(void *arg, uint32_t first, uint32_t n);
    void                *arg;
    uint32_t             n;             /* items */
    size_t               bytes;         /* bytes of the file per item */
} llm_cpu_load_t;


/* packed.c: sets w->data from the model's file of packed weights; 0: it has no
   such weight, which is to be packed */
int llm_cpu_packed_take(llm_cpu_t *cpu, llm_weight_t *w);

/* the operations: cpu.c (life, memory), packed.c, linear.c, rows.c (single rows), kv.c,
   attention.c, heads.c, experts.c, state.c (memory: states.c) */
#define LLM_OP(group, needs, result, name, parameters)                       \
    result llm_cpu_##name parameters;
#include "kernels/ops.def"

/* memory.c */
/* zeroed memory, 64-byte aligned; huge: in huge pages if the system has them;
   NULL: no memory */
void *llm_cpu_alloc(size_t size, int huge);
/* for a part of such memory of at least a huge page, before it is used: huge
   pages where whole ones fit, or, if huge is 0, only small pages */
void llm_cpu_huge(void *p, size_t size, int huge);
/* bytes of such memory that have no physical memory yet */
size_t llm_cpu_unused(const void *p, size_t size);
void llm_cpu_free(void *p, size_t size);
/* size bytes at *data, which one weight uses; NULL: no memory */
llm_cpu_slab_t *llm_cpu_slab_take(llm_cpu_t *cpu, size_t size,
    uint8_t **data);
void llm_cpu_slab_free(llm_cpu_t *cpu, llm_cpu_slab_t *slab);

/* reads size bytes from the file that they are mapped from, if any, and asks
   the kernel to read as many bytes after them in advance */
void llm_cpu_read_file(const void *p, size_t size);
/* the same without the latter, which would read small pages */
void llm_cpu_populate(const void *p, size_t size);

/* device.c */
/* waits for the turn on the device; ends it */
void llm_cpu_take(llm_cpu_device_t *d);
void llm_cpu_give(llm_cpu_device_t *d);
/* enlarges room to at least size bytes, by the thread that has the turn;
   LLM_ERROR: no memory, room is unchanged */
int llm_cpu_reserve(llm_cpu_room_t *room, size_t size);
/* reserves at least size bytes of scratch for each thread */
int llm_cpu_scratch_reserve(llm_cpu_t *cpu, size_t size, llm_err_t *err);
/* reserves as many threads as the model uses, with their scratch */
int llm_cpu_threads_reserve(llm_cpu_t *cpu, llm_err_t *err);
/* runs the loop, see device.c; returns when all items are done */
void llm_cpu_load(llm_cpu_t *cpu, const llm_cpu_load_t *load);

/* the thread's scratch, during a step */
static inline uint8_t *
llm_cpu_scratch(const llm_cpu_t *cpu, uint32_t thread)
{
    return cpu->device->scratch + thread * cpu->device->scratch_size;
}


/* work.c */
/* as llm_pool_run(); on this thread alone if the whole loop is short; work: its
   estimated time on one thread, in nanoseconds */
void llm_cpu_run(llm_cpu_t *cpu, llm_pool_pt fn, void *arg, uint32_t n,
    double work);
/* number of rows of the step */
uint32_t llm_cpu_rows(const llm_cpu_t *cpu, llm_rows_t rows);

/* pack.c, which also has weight_size() */
/* packs the rows at w->src; type, sizes and src are set */
int llm_cpu_pack(llm_cpu_t *cpu, llm_weight_t *w, llm_err_t *err);
/* bytes of scratch that a kernel may use for this weight */
size_t llm_cpu_pack_scratch(const llm_cpu_t *cpu, const llm_weight_t *w);

/* linear.c */
/* the factor on products with matrix i */
static inline float
llm_weight_scale(const llm_weight_t *w, uint32_t i)
{
    return w->scales ? w->scales[i] : 1;
}


/* enlarges the memory of the stage to rows of n_in */
int llm_cpu_stage_reserve(llm_cpu_t *cpu, uint32_t n_in, llm_err_t *err);
/* places the stage's arrays in the device's memory, when a step begins */
void llm_cpu_stage_begin(llm_cpu_t *cpu);
/* places the arrays of s for `rows` rows at p, unless p is NULL; returns their
   size in bytes */
size_t llm_cpu_stage_layout(llm_cpu_stage_t *s, char *p, size_t rows,
    uint32_t n_in);
/* sets the next product's x, which has rows of n_in */
void llm_cpu_stage_set(llm_cpu_stage_t *s, const float *x, uint32_t n_in,
    int fine);
/* LLM_STAGE_ bits: the forms of x that products with this weight need */
int llm_cpu_stage_wants(const llm_cpu_t *cpu, const llm_weight_t *w);
/* writes x[n_in] in the forms `what` as a row of s */
void llm_cpu_stage_row(const llm_cpu_t *cpu, const llm_cpu_stage_t *s,
    const float *x, uint32_t row, int what);
/* bytes that a piece of work should read at least, if all read `bytes` */
double llm_cpu_gemm_bytes(const llm_cpu_t *cpu, double bytes);
/* estimated time of products on one thread, in nanoseconds */
double llm_cpu_gemm_time(double bytes, double macs);
/* panels of a piece of work that should read at least `bytes` */
uint32_t llm_cpu_gemm_step(const llm_cpu_t *cpu, const llm_weight_t *w,
    uint32_t n_rows, double bytes);
/* runs a piece with the kernel of its weight's type */
void llm_cpu_gemm(const llm_cpu_t *cpu, const llm_cpu_gemm_t *g);

/* attention.c */
int llm_cpu_attn_reserve(llm_cpu_t *cpu, const llm_kv_opts_t *opts,
    llm_err_t *err);
/* sets rot and parts, and marks all RoPE tables as missing, when a step
   begins */
void llm_cpu_attn_begin(llm_cpu_t *cpu);

/* isa.c: the kernels named isa, or the best if it is NULL; "reference" is not
   among them */
int llm_cpu_select(const char *isa, llm_cpu_kernels_t *k, llm_err_t *err);

#if defined(__x86_64__)
void llm_cpu_kernels_avx2(llm_cpu_kernels_t *k);
void llm_cpu_kernels_avxvnni(llm_cpu_kernels_t *k);
void llm_cpu_kernels_avx512(llm_cpu_kernels_t *k);
void llm_cpu_kernels_avx512_bf16(llm_cpu_kernels_t *k);
void llm_cpu_kernels_amx(llm_cpu_kernels_t *k);
/* AVX-512's product, which the AMX kernels use for few rows */
void llm_avx512_gemm_quant(const llm_cpu_gemm_t *g);
/* amx_bf16.c */
void llm_amx_stage_bf16(const llm_cpu_stage_t *s, const float *x,
    uint32_t row);
void llm_amx_gemm_bf16(const llm_cpu_gemm_t *g);
/* the kernels of attention, which the ones above set */
void llm_cpu_attn_avx2(llm_cpu_kernels_t *k);
void llm_cpu_attn_avx512(llm_cpu_kernels_t *k);
void llm_cpu_attn_amx(llm_cpu_kernels_t *k);
#endif

#endif /* LLM_CPU_H */
