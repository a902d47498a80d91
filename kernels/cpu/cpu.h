/*
 * What the files of the CPU backend share: its objects, how weights are
 * laid out, and the table of kernels that an instruction set fills in.
 *
 * Weights
 *   A matrix [n_out, n_in] is packed once into panels of 16 rows, the last
 *   one filled up with zeros, so that a vector's lanes are output rows and
 *   no product needs a horizontal sum.  The layouts are pack.c's.
 *
 * Products of quantised weights
 *   Activations are rounded to int8 in blocks of 32 with a float32 scale,
 *   dot products within a block are exact in int32, and blocks are summed
 *   in float32 in order of k:
 *       acc = fma(dot, d_w * d_x, acc); acc = fma(m_w, d_x * sum(x), acc)
 *   Every kernel of every instruction set keeps to this order, hence the
 *   same bits for one row and for many.
 *
 * Products of float weights
 *   F32 and F16 times float32, acc = fma(w, x, acc) in order of k; BF16
 *   like them, or with both sides in bfloat16 where the CPU multiplies that;
 *   which one is fixed when the device is opened.
 */

#ifndef LLM_CPU_H
#define LLM_CPU_H

#include "kernels/cpu/pool.h"
#include "kernels/kernels.h"

#include <pthread.h>

#define LLM_PANEL        16             /* rows */
#define LLM_BLOCK        32             /* elements that share d_x */

/* keys of one step of the online softmax, and of one split of the cache */
#define LLM_ATTN_BLOCK   64
#define LLM_ATTN_SPLIT   1024
/* the most query heads x rows of one tile */
#define LLM_ATTN_TILE    16

/* tables of RoPE that are kept: layers with and without a window take turns */
#define LLM_CPU_ROPES    2

/* products of at most so many rows wait for memory */
#define LLM_GEMM_FEW     8

/* bytes of a thread's scratch that do not depend on the width of a weight */
#define LLM_GEMM_SCRATCH 65536

/* rows of a recurrent head that are taken at once */
#define LLM_STATE_STEP   32

/* floats of a row or a vector may be read and written in whole vectors */
#define llm_pad16(n)     (((size_t) (n) + 15) & ~(size_t) 15)


struct llm_act_s {
    uint32_t             cols;
    size_t               size;          /* bytes */
    float               *data;          /* [rows][cols] */
};

struct llm_vec_s {
    uint32_t             n;
    float               *data;          /* padded with zeros to 16 */
};

/*
 * One layer, head and page is K as [head_dim_k][LLM_KV_PAGE], then V as
 * [LLM_KV_PAGE][dv_pad]: binary16, the pages of a head beside each other.
 * Latent, it is [LLM_KV_PAGE][v_row]: K, whose beginning is V, then zeros.
 */
typedef struct {
    uint32_t             n_heads;
    uint32_t             head_dim_k;
    uint32_t             head_dim_v;
    int                  latent;
    size_t               dv_pad;
    size_t               v_row;         /* from a token's V to the next */
    size_t               k_size;        /* elements of K in a page, before V */
    size_t               page;          /* elements of K and V in a page */
    uint16_t            *data;          /* [head][page] */
} llm_cpu_kv_layer_t;

struct llm_kv_s {
    llm_kv_opts_t        opts;
    llm_cpu_kv_layer_t  *layers;        /* [opts.n_layers] */
    size_t               size;          /* bytes of all */
    uint16_t            *data;
};

/* the rows of packs.def; kernels/types.def has each type's */
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

/* how its codes are laid out, and what scales them; zeros: floats */
typedef struct {
    llm_pack_t           pack;
    llm_pack_scale_t     scale;
    uint8_t              bits;          /* of a code */
    uint8_t              zero;          /* what is multiplied for 0 */
    uint16_t             code_size;     /* bytes of 32 x 16 codes */
    uint16_t             scale_size;    /* bytes of scales that go together */
    uint16_t             scale_blocks;  /* blocks that they are for */
    uint8_t              book[16];      /* what is multiplied for a code,
                                           if codes go through a book */
    uint16_t             stage;         /* what the product wants of x */
} llm_cpu_format_t;

/* memory that weights share, in the order in which they are made */
typedef struct llm_cpu_slab_s  llm_cpu_slab_t;

struct llm_cpu_slab_s {
    uint8_t             *data;
    size_t               size;
    size_t               used;          /* bytes, from the start */
    uint32_t             n_weights;
};

struct llm_weight_s {
    uint32_t             type;
    uint32_t             n_out;
    uint32_t             n_in;
    int                  usage;
    uint32_t             n_experts;     /* matrices of these sizes, or 1 */
    const uint8_t       *src;           /* the caller's rows */
    size_t               row_size;
    size_t               stride;        /* from one matrix of src to the
                                           next */
    uint8_t             *data;          /* panels, NULL if not LINEAR */
    llm_cpu_slab_t      *slab;          /* that holds them */
    size_t               size;          /* bytes of all panels */
    size_t               panel_size;
    size_t               codes_size;    /* of a panel, scales follow */
    uint32_t             n_panels;      /* of one matrix */
    float               *scales;        /* [n_experts] factors on products, or
                                           NULL: 1 */
    llm_cpu_format_t     format;
};

/*
 * The rows of x as a product wants them.  zero[c] holds -z * sum(q) of each
 * block for the weights whose code z stands for 0; of each half of a block
 * for 32 and 64, whose weights have a scale for each.
 *
 * Where few rows matter most (those that want logits), and for weights of
 * such different sizes that a block's x is told apart (NVFP4), x is kept
 * finer: as d * (128 q + q_low), both of them int8, or as b + b_low.  That
 * costs a second product, and nothing where reading the weights is what takes
 * time.
 */
typedef enum {
    LLM_ZERO_8 = 0,
    LLM_ZERO_16,
    LLM_ZERO_128,
    LLM_ZERO_32,                        /* of halves from here on */
    LLM_ZERO_64,
    LLM_ZERO_N
} llm_cpu_zero_t;

/* what to prepare (or-ed); zero[c] is LLM_STAGE_ZERO << c */
#define LLM_STAGE_Q8     1
#define LLM_STAGE_BF16   2
#define LLM_STAGE_HALF   4
#define LLM_STAGE_ZERO   8
#define LLM_STAGE_FINE   (LLM_STAGE_ZERO << LLM_ZERO_N)
#define LLM_STAGE_FLOAT  (LLM_STAGE_FINE << 1)   /* x as it is */

typedef struct {
    uint32_t             n_in;
    uint32_t             n_blocks;
    int                  fine;          /* twice the bits, see below */
    size_t               stride;        /* elements of a row of q and of b,
                                           which end in zeros */
    const float         *x;             /* [rows][n_in], the activations */
    int8_t              *q;
    int8_t              *q_low;
    /* of blocks, 16 rows beside each other: see llm_stage_at() */
    float               *d;
    float               *sum;           /* d * sum(q) */
    float               *half;          /* the same of halves */
    int32_t             *zero[LLM_ZERO_N];
    uint16_t            *b;             /* bfloat16 */
    uint16_t            *b_low;         /* what is left of x, in bfloat16 */
} llm_cpu_stage_t;


/* where a row's numbers begin in [rows / 16][n][16]; blocks are 16 apart */
static inline size_t
llm_stage_at(uint32_t row, size_t n)
{
    return (row / 16 * n) * 16 + row % 16;
}


/*
 * The choices of the rows of one layer, and the rows that its products read
 * and write.  A row and one of its experts are a pair, row * n_used + k.
 * Products need the pairs of an expert beside each other: pair p is row
 * place[p] there.
 */
struct llm_choice_s {
    llm_choice_opts_t    opts;
    uint32_t             n_experts;     /* of the layer */
    uint32_t             n_used;
    float               *weight;        /* [pairs] */
    uint32_t            *expert;        /* [pairs]; the arrays below lie
                                           behind it */
    uint32_t            *place;         /* [pairs] */

    /* a group is an expert that was chosen, in the order of their numbers */
    uint32_t             n_groups;
    uint32_t            *group;         /* [n_groups] its expert */
    uint32_t            *first;         /* [n_groups] first place, a multiple
                                           of 16 */
    uint32_t            *first_item;    /* [n_groups + 1] of the products */
    uint32_t            *n_rows;        /* [n_experts] pairs of each */
    uint32_t            *next;          /* [n_experts] the place of the next
                                           pair */

    size_t               max_places;
    llm_cpu_stage_t      stage;
    void                *stage_memory;
    size_t               stage_size;    /* bytes */
    float               *gate;          /* [places][n_ff], then hidden */
    float               *up;
    size_t               ff_size;       /* bytes of gate, and of up */
    float               *out;           /* [places][n_in]; before that x, where
                                           it is wanted in float32 */
    size_t               out_size;
};


/* a piece of a product: some rows of x by some panels */
typedef struct {
    const llm_weight_t     *w;
    const llm_cpu_stage_t  *x;
    const float            *bias;       /* or NULL */
    float                   scale;      /* of the product */
    float                  *y;          /* [rows][w->n_out] */
    int                     add;
    uint32_t                row;
    uint32_t                n_rows;
    uint32_t                panel;
    uint32_t                n_panels;
    uint8_t                *scratch;    /* the thread's */
} llm_cpu_gemm_t;

/* query rows x heads of one KV head over a range of its keys */
typedef struct {
    const llm_cpu_kv_layer_t  *kv;
    const uint16_t      *base;          /* page 0 of the layer and head */
    const uint32_t      *pages;
    uint32_t             n;             /* vectors, <= LLM_ATTN_TILE */
    uint32_t             first;         /* key, a multiple of the split */
    uint32_t             last;          /* key after the last */
    float                scale;
    float                softcap;       /* 0: none */
    int                  slopes;        /* scores fall with the distance */
    const float         *q[LLM_ATTN_TILE];
    uint32_t             at[LLM_ATTN_TILE];     /* position of each, and ... */
    float                slope[LLM_ATTN_TILE];  /* ... by how much they fall */
    uint32_t             from[LLM_ATTN_TILE];   /* keys that each sees: from */
    uint32_t             limit[LLM_ATTN_TILE];  /* the first to before this */
    /* the result: sum of exp(s - max) v, not yet divided by sum */
    float               *acc;           /* [n][dv_pad] */
    float                max[LLM_ATTN_TILE];
    float                sum[LLM_ATTN_TILE];
    float               *scores;        /* [n][LLM_ATTN_BLOCK] scratch */
} llm_cpu_attn_t;

/* rotary table of a row: y[i] = x[i] cos[i] + x[partner of i] sin[i] */
typedef struct {
    llm_rope_kind_t      kind;
    uint32_t             n_dims;
    const float         *cos;           /* [n_dims] */
    const float         *sin;           /* [n_dims], signed */
} llm_cpu_rot_t;


/*
 * One head of a recurrent layer over n rows of a sequence: its matrix s and,
 * for row t, with q, k and v of the row:
 *
 *   d = weight[t] v, or if it is the delta rule
 *   d = weight[t] (v - g[t] s^T k')      k', q': divided by their lengths
 *   s = g[t] s + k d^T,  y = s^T q + skip v
 */
typedef struct {
    float               *s;             /* [n_rows][n_cols], laid out as the
                                           kernel likes it */
    uint32_t             n_rows;
    uint32_t             n_cols;
    int                  is_delta;
    uint32_t             n;             /* at most LLM_STATE_STEP */
    const float         *q;             /* of the first row; [n_rows] */
    const float         *k;
    const float         *v;             /* [n_cols] */
    float               *y;
    size_t               x_stride;      /* floats from row to row */
    size_t               y_stride;
    float                skip;
    float                g[LLM_STATE_STEP];
    float                weight[LLM_STATE_STEP];
    float                q_scale[LLM_STATE_STEP];   /* the kernel's */
    float                k_scale[LLM_STATE_STEP];
} llm_cpu_state_t;

/* a row of a short convolution, n channels: see llm_conv_t */
typedef struct {
    const float         *x[LLM_MAX_CONV];   /* inputs, the oldest first */
    const float         *w;             /* [width][stride] */
    size_t               stride;
    const float         *bias;          /* or NULL */
    uint32_t             width;
    uint32_t             n;
    int                  silu;
} llm_cpu_conv_t;


/* what an instruction set provides */
typedef struct {
    const char  *name;
    int          bf16;                  /* BF16 weights want x in bfloat16 */

    /* x[n_in] as a row of s: what is LLM_STAGE_ZERO's bits */
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
    /* y[i] = w[0] x[at[0]][i] + w[1] x[at[1]][i] ..., added to y[i] if `add`;
       x [][n]; without w: all 1 */
    void       (*weighted_sum)(float *y, const float *x, const uint32_t *at,
                    const float *w, uint32_t n_at, uint32_t n, int add);
    /* one head: RMS norm with w if not NULL, then the rotation */
    void       (*rope)(float *x, const float *w, float eps, uint32_t n,
                    const llm_cpu_rot_t *rot);
    /* float32 to binary16, dst stride elements apart */
    void       (*store_f16)(uint16_t *dst, size_t stride, const float *src,
                    uint32_t n);

    void       (*state)(llm_cpu_state_t *p);
    void       (*conv)(const llm_cpu_conv_t *c, float *y);

    void       (*attn)(llm_cpu_attn_t *a);
    /* joins a later range b of the same vectors to a */
    void       (*attn_merge)(llm_cpu_attn_t *a, const llm_cpu_attn_t *b);
    /* divides vector i by its sum, with that of *sink unless it is NULL, into
       out[head_dim_v] */
    void       (*attn_finish)(const llm_cpu_attn_t *a, uint32_t i,
                    const float *sink, float *out);
} llm_cpu_kernels_t;


/* memory that grows, from llm_cpu_alloc() */
typedef struct {
    void                *data;
    size_t               size;          /* bytes */
} llm_cpu_room_t;


/* what all models on the CPUs share; see device.c */
typedef struct {
    llm_device_t         device;        /* first */
    llm_cpu_kernels_t    kernels;

    /* turns: which are given in the order of n_asked */
    pthread_mutex_t      lock;          /* guards the next three */
    pthread_cond_t       passed;        /* n_given has changed */
    uint64_t             n_asked;
    uint64_t             n_given;       /* this one has the turn */

    /* with the turn */
    llm_pool_t          *pool;
    uint8_t             *scratch;       /* one piece a thread, sized by the
                                           widest weight and the heads */
    size_t               scratch_size;  /* bytes of one thread */
    uint32_t             n_scratch;     /* threads */
    llm_cpu_room_t       stage;
    llm_cpu_room_t       rot;
    llm_cpu_room_t       parts;
} llm_cpu_device_t;

/* a model on the CPUs; from the stage on, memory is the device's, as the step's
   begin() finds it */
typedef struct {
    llm_dev_t            dev;           /* first */
    llm_dev_opts_t       opts;
    llm_cpu_device_t    *device;
    int                  owns_device;
    uint32_t             threads;       /* of its steps and its load */
    size_t               scratch_size;  /* bytes of a thread that it asked
                                           for */
    llm_cpu_kernels_t    kernels;
    const llm_batch_t   *batch;         /* of the step */
    llm_cpu_slab_t      *slab;          /* with room for weights, or NULL */

    /* x of the product that runs; sized by the widest weight */
    llm_cpu_stage_t      stage;
    uint32_t             stage_cap;     /* elements of a row */

    /* cos and sin of every row of the step, once a step for each of the
       last ropes */
    float               *rot;           /* [LLM_CPU_ROPES][max_tokens][2]
                                           [rot_cap] */
    size_t               rot_cap;
    const llm_vec_t     *rot_of[LLM_CPU_ROPES]; /* NULL: none yet in this
                                                   step */
    uint32_t             rot_next;      /* that will be replaced */

    /* results of attention over parts of the keys */
    float               *parts;
    size_t               part_floats;   /* of one */
    uint32_t             max_parts;
    uint32_t            *first_item;    /* [max_seqs + 1], attention's */
} llm_cpu_t;

/* a loop of a load, which runs on the pool or in the loading thread alone; its
   items use no scratch */
typedef struct {
    llm_pool_pt          pack;
    /* reads what these n items will read from their file, so that pack does
       not wait for it */
    void               (*read)(void *arg, uint32_t first, uint32_t n);
    void                *arg;
    uint32_t             n;             /* items */
    size_t               bytes;         /* that an item reads */
} llm_cpu_load_t;


/* the operations: cpu.c (life, memory), linear.c, rows.c (single rows), kv.c,
   attention.c, heads.c, experts.c, state.c, whose memory is states.h's */
#define LLM_OP(group, needs, result, name, parameters)                       \
    result llm_cpu_##name parameters;
#include "kernels/ops.def"

/* memory.c */
/* zeroed, 64-byte aligned; huge: in huge pages where the system has them */
void *llm_cpu_alloc(size_t size, int huge);
/* bytes of that for which the kernel has given no memory yet */
size_t llm_cpu_unused(const void *p, size_t size);
void llm_cpu_free(void *p, size_t size);
/* size bytes at *data, given back with the slab's other weights */
llm_cpu_slab_t *llm_cpu_slab_take(llm_cpu_t *cpu, size_t size,
    uint8_t **data);
void llm_cpu_slab_free(llm_cpu_t *cpu, llm_cpu_slab_t *slab);

/* reads size bytes from their file, if they are mapped from one, and lets the
   kernel begin with as many after them */
void llm_cpu_read_file(const void *p, size_t size);

/* device.c */
/* waits for the turn; ends it */
void llm_cpu_take(llm_cpu_device_t *d);
void llm_cpu_give(llm_cpu_device_t *d);
/* with the turn: at least size bytes; after LLM_ERROR it is as it was */
int llm_cpu_reserve(llm_cpu_room_t *room, size_t size);
/* at least size bytes of scratch for each thread */
int llm_cpu_scratch_reserve(llm_cpu_t *cpu, size_t size, llm_err_t *err);
/* as many threads as the model wants, with scratch */
int llm_cpu_threads_reserve(llm_cpu_t *cpu, llm_err_t *err);
void llm_cpu_load(llm_cpu_t *cpu, const llm_cpu_load_t *load);

/* the thread's scratch, during a step */
static inline uint8_t *
llm_cpu_scratch(const llm_cpu_t *cpu, uint32_t thread)
{
    return cpu->device->scratch + thread * cpu->device->scratch_size;
}


/* work.c */
/* pool_run, or a loop where `work` (about nanoseconds) does not pay */
void llm_cpu_run(llm_cpu_t *cpu, llm_pool_pt fn, void *arg, uint32_t n,
    double work);
uint32_t llm_cpu_rows(const llm_cpu_t *cpu, llm_rows_t rows);

/* pack.c, which has weight_size(), too */
int llm_cpu_pack(llm_cpu_t *cpu, llm_weight_t *w, llm_err_t *err);
/* bytes of scratch that a kernel may use for this weight */
size_t llm_cpu_pack_scratch(const llm_weight_t *w);

/* linear.c */
/* the factor on products with matrix i */
static inline float
llm_weight_scale(const llm_weight_t *w, uint32_t i)
{
    return w->scales ? w->scales[i] : 1;
}


int llm_cpu_stage_reserve(llm_cpu_t *cpu, uint32_t n_in, llm_err_t *err);
/* a step begins: the stage is laid over the device's memory */
void llm_cpu_stage_begin(llm_cpu_t *cpu);
/* cuts p into arrays for so many rows; returns their size, p may be NULL */
size_t llm_cpu_stage_layout(llm_cpu_stage_t *s, char *p, size_t rows,
    uint32_t n_in);
/* the next product's x has rows of n_in */
void llm_cpu_stage_set(llm_cpu_stage_t *s, const float *x, uint32_t n_in,
    int fine);
/* what x must be rounded to for this weight: LLM_STAGE_ bits */
int llm_cpu_stage_wants(const llm_cpu_t *cpu, const llm_weight_t *w);
/* rounds x[n_in] so, as a row of s */
void llm_cpu_stage_row(const llm_cpu_t *cpu, const llm_cpu_stage_t *s,
    const float *x, uint32_t row, int what);
/* what a piece of work should read at the least, of so many bytes in all */
double llm_cpu_gemm_bytes(const llm_cpu_t *cpu, double bytes);
/* about how long products take one thread, in nanoseconds */
double llm_cpu_gemm_time(double bytes, double macs);
/* panels of a piece of work that should read so many bytes at the least */
uint32_t llm_cpu_gemm_step(const llm_weight_t *w, uint32_t n_rows,
    double bytes);
/* runs a piece by the kernels of its weight's type */
void llm_cpu_gemm(const llm_cpu_t *cpu, const llm_cpu_gemm_t *g);

/* attention.c */
int llm_cpu_attn_reserve(llm_cpu_t *cpu, const llm_kv_opts_t *opts,
    llm_err_t *err);
/* a step begins: no row has been rotated in it */
void llm_cpu_attn_begin(llm_cpu_t *cpu);

/* isa.c: the best kernels, or those of a name; "reference" is not one */
int llm_cpu_select(const char *isa, llm_cpu_kernels_t *k, llm_err_t *err);

#if defined(__x86_64__)
void llm_cpu_kernels_avx2(llm_cpu_kernels_t *k);
void llm_cpu_kernels_avx512(llm_cpu_kernels_t *k);
void llm_cpu_kernels_avx512_bf16(llm_cpu_kernels_t *k);
void llm_cpu_kernels_amx(llm_cpu_kernels_t *k);
/* AVX-512's products, which AMX leaves the few rows to */
void llm_avx512_gemm_quant(const llm_cpu_gemm_t *g);
#endif

#endif /* LLM_CPU_H */
