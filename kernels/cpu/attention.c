/*
 * Rotation of q and k, writing to the KV cache, and attention: how the work is
 * divided.  The arithmetic is in simd_attn.h.
 *
 * A tile is some rows of a sequence by query heads of one KV head.  The keys
 * that a tile sees are divided into splits of LLM_ATTN_SPLIT; each split is
 * computed on its own, and the results are merged in order.  One thread does
 * this for all splits of a tile; if there are few tiles for the threads, the
 * splits of a tile are distributed over several threads.  Both ways give the
 * same bits.
 */

#include "kernels/cpu/cpu.h"

#include <math.h>

#define LLM_ROPE_ROWS      4
#define LLM_MAX_PARTS      1024

/* heads of a tile, at least: with fewer, repeated reads of the keys cost more
   than additional tiles gain */
#define LLM_ATTN_FEW_HEADS 4

/* large tiles, which reuse keys more, are used if there are this many for each
   thread, so that the last ones do not let threads wait */
#define LLM_ATTN_MANY      4

/* estimated rates of one thread, per nanosecond */
#define LLM_RATE_ATTN      30.0         /* multiply-adds */
#define LLM_RATE_ROPE      2.0          /* elements of q, k and v */
#define LLM_RATE_ROT       0.04         /* elements of a RoPE table */


typedef struct {
    llm_cpu_t           *cpu;
    const llm_heads_t   *h;
    const llm_rope_t    *rope;
    float               *rot;           /* table of rope */
    llm_act_t           *q;
    llm_act_t           *k;
    const llm_act_t     *v;
    llm_kv_t            *kv;
} llm_rope_job_t;

typedef struct {
    llm_cpu_t           *cpu;
    const llm_heads_t   *h;
    const llm_act_t     *q;
    const llm_kv_t      *kv;
    const llm_cpu_kv_layer_t  *layer;   /* the layer's part of kv */
    llm_act_t           *out;
    void               (*attn)(llm_cpu_attn_t *a);  /* the layer's kernel */
    uint32_t             tile;          /* queries of a tile, at most */
    uint32_t             heads;         /* query heads of a tile */
    uint32_t             chunks;        /* tiles that the query heads of a KV
                                           head are divided into */
    uint32_t             rows;          /* rows of a tile */
    uint32_t             n_splits;      /* splits of the longest sequence */
} llm_attn_job_t;

/* position and size of a tile */
typedef struct {
    uint32_t             seq;
    uint32_t             row;           /* first row */
    uint32_t             n_rows;
    uint32_t             kv_head;
    uint32_t             head;          /* first query head */
    uint32_t             n_heads;
    uint32_t             first;         /* first key that a row sees */
    uint32_t             last;          /* last key that a row sees, + 1 */
} llm_attn_tile_t;


/* floats of the result of one tile over one split: acc, max, sum */

static size_t
llm_attn_part_floats(size_t dv_pad)
{
    return LLM_ATTN_FEW * (dv_pad + 2);
}


/* queries of a tile of a cache of this format, at most */

static uint32_t
llm_attn_most(const llm_cpu_t *cpu, int format)
{
    return format == LLM_CPU_KV_BF16 ? cpu->kernels.bf16_tile : LLM_ATTN_TILE;
}


/* bytes of scratch that a tile takes: the results of two splits, and what
   kernels need: scores; if the cache is BF16 or int8, also queries, sums,
   factors, and weights and values of what is computed at once */

static size_t
llm_attn_scratch(const llm_cpu_t *cpu, const llm_kv_opts_t *o)
{
    size_t  n, dv, dk, some;

    dv = llm_pad16(o->head_dim_v);
    dk = llm_align(o->head_dim_k, 32);
    n = LLM_ATTN_TILE * (2 * dv + LLM_ATTN_BLOCK) * sizeof(float);

    if (cpu->kv_format == LLM_CPU_KV_F16
        || cpu->kv_format == LLM_CPU_KV_F32)
    {
        return n;
    }

    some = LLM_ATTN_SOME * LLM_ATTN_STRIDE
           * (sizeof(float) + sizeof(uint16_t));

    return llm_attn_most(cpu, cpu->kv_format)
           * ((2 * dv + 17) * sizeof(float) + dk * sizeof(uint16_t))
           + some + LLM_ATTN_KEYS * dv * sizeof(uint16_t);
}


/* floats of the table of one rope */

static size_t
llm_rot_floats(const llm_cpu_t *cpu)
{
    return cpu->rot_cap * 2 * cpu->opts.max_tokens;
}


int
llm_cpu_attn_reserve(llm_cpu_t *cpu, const llm_kv_opts_t *o, llm_err_t *err)
{
    int     rc;
    size_t  dv, n, splits;

    /* no layer has attention */
    if (o->n_kv_heads == 0) {
        return LLM_OK;
    }

    dv = llm_pad16(o->head_dim_v);

    n = llm_max(llm_attn_scratch(cpu, o), o->head_dim_k * sizeof(float));

    if (llm_cpu_scratch_reserve(cpu, n, err) != LLM_OK) {
        return LLM_ERROR;
    }

    splits = (cpu->opts.max_pages * (size_t) LLM_KV_PAGE + LLM_ATTN_SPLIT - 1)
             / LLM_ATTN_SPLIT;
    n = cpu->threads * 2 * splits;
    n = splits > 1 ? llm_min(n, LLM_MAX_PARTS) : 0;

    /* there are few caches, so the turn is taken even if nothing must grow */

    cpu->rot_cap = llm_max(cpu->rot_cap, o->head_dim_k);
    cpu->part_floats = llm_max(cpu->part_floats, llm_attn_part_floats(dv));
    cpu->max_parts = llm_max(cpu->max_parts, (uint32_t) n);

    llm_cpu_take(cpu->device);

    rc = llm_cpu_reserve(&cpu->device->rot,
                         llm_rot_floats(cpu) * LLM_CPU_ROPES * sizeof(float));

    if (rc == LLM_OK) {
        rc = llm_cpu_reserve(&cpu->device->parts, cpu->max_parts
                             * cpu->part_floats * sizeof(float));
    }

    llm_cpu_give(cpu->device);

    if (rc != LLM_OK) {
        return llm_fail(err, "cpu: no memory for attention's scratch");
    }

    return LLM_OK;
}


void
llm_cpu_attn_begin(llm_cpu_t *cpu)
{
    cpu->rot = cpu->device->rot.data;
    cpu->parts = cpu->device->parts.data;
    memset(cpu->rot_of, 0, sizeof(cpu->rot_of));
}


/* the largest i below n with first[i] <= at; first[0] is 0 */

static uint32_t
llm_attn_find(const uint32_t *first, uint32_t n, uint32_t at)
{
    uint32_t  lo, hi, mid;

    lo = 0;
    hi = n;

    while (hi - lo > 1) {
        mid = (lo + hi) / 2;

        if (first[mid] <= at) {
            lo = mid;

        } else {
            hi = mid;
        }
    }

    return lo;
}


/* the RoPE table of row `item`; angles are computed in double, because
   positions may be large */

static void
llm_rot_item(void *arg, uint32_t item, uint32_t thread)
{
    float           *c, *s;
    double           angle;
    uint32_t         i, n, a, b;
    llm_rope_job_t  *job = arg;

    (void) thread;

    n = job->rope->n_dims;
    c = job->rot + (size_t) item * 2 * job->cpu->rot_cap;
    s = c + job->cpu->rot_cap;

    for (i = 0; i < n / 2; i++) {
        angle = (double) llm_batch_turn(job->cpu->batch, job->rope, item, i)
                * job->rope->inv_freq->data[i];

        if (job->rope->kind == LLM_ROPE_NEOX) {
            a = i;
            b = i + n / 2;

        } else {
            a = 2 * i;
            b = 2 * i + 1;
        }

        c[a] = c[b] = (float) cos(angle) * job->rope->mscale;
        s[b] = (float) sin(angle) * job->rope->mscale;
        s[a] = -s[b];
    }
}


/* elements of a head of k, and of the part of a head of q that is rotated */

static uint32_t
llm_rope_dim(const llm_heads_t *h)
{
    return h->latent ? h->head_dim_k - h->head_dim_v : h->head_dim_k;
}


static void
llm_rope_write(const llm_rope_job_t *job, uint32_t row, uint32_t thread)
{
    float                    *k, *whole;
    uint32_t                  i, page, slot, seq;
    uint16_t                 *dst;
    const float              *v;
    const llm_batch_t        *b;
    const llm_heads_t        *h;
    const llm_cpu_kernels_t  *f;
    const llm_cpu_kv_layer_t *kv;

    h = job->h;
    kv = &job->kv->layers[h->layer];
    b = job->cpu->batch;
    f = &job->cpu->kernels;

    seq = llm_attn_find(b->seq_rows, b->n_seqs, row);
    page = llm_batch_table(b, &job->kv->opts, seq)[b->pos[row] / LLM_KV_PAGE];
    slot = b->pos[row] % LLM_KV_PAGE;

    whole = (float *) (void *) llm_cpu_scratch(job->cpu, thread);
    k = job->k->data + (size_t) row * job->k->cols;
    v = job->v->data + (size_t) row * job->v->cols;

    for (i = 0; i < h->n_kv_heads; i++) {
        dst = kv->data + i * kv->head + page * kv->page;

        if (kv->format != LLM_CPU_KV_F16) {
            f->keep[kv->format](kv, dst, slot, k + i * h->head_dim_k,
                                v + i * h->head_dim_v);
            continue;
        }

        if (h->latent) {
            memcpy(whole, v + i * h->head_dim_v,
                   h->head_dim_v * sizeof(float));
            memcpy(whole + h->head_dim_v, k + i * llm_rope_dim(h),
                   llm_rope_dim(h) * sizeof(float));
            f->store_f16(dst + (size_t) slot * kv->v_row, 1, whole,
                         h->head_dim_k);
            continue;
        }

        f->store_f16(dst + slot, LLM_KV_PAGE, k + i * h->head_dim_k,
                     h->head_dim_k);
        f->store_f16(dst + kv->k_size + (size_t) slot * kv->dv_pad, 1,
                     v + i * h->head_dim_v, h->head_dim_v);
    }
}


/* norm and rotation of n heads of one row, `stride` floats apart, in the order
   that the layer has */

static void
llm_rope_heads(const llm_rope_job_t *job, float *x, uint32_t n,
    uint32_t stride, const llm_vec_t *norm, const llm_cpu_rot_t *rot)
{
    uint32_t            i, dim;
    llm_cpu_rot_t       none = { .kind = rot->kind };
    const llm_heads_t  *h;

    h = job->h;
    dim = llm_rope_dim(h);

    for (i = 0; i < n; i++) {
        job->cpu->kernels.rope(x + i * stride,
                               norm && !h->norm_last ? norm->data : NULL,
                               h->norm_eps, dim, rot);

        if (norm && h->norm_last) {
            job->cpu->kernels.rope(x + i * stride, norm->data, h->norm_eps,
                                   dim, &none);
        }
    }
}


static void
llm_rope_temper(const llm_heads_t *h, float *q, uint32_t pos)
{
    float     f;
    uint32_t  i;

    f = (float) (1 + h->temp_scale
                     * log(1 + floor((double) (pos + h->temp_offset)
                                     / h->temp_floor)));

    for (i = 0; i < h->n_heads * h->head_dim_k; i++) {
        q[i] *= f;
    }
}


static void
llm_rope_item(void *arg, uint32_t item, uint32_t thread)
{
    float              *q, *k;
    uint32_t            row, end;
    llm_cpu_rot_t       rot;
    llm_rope_job_t     *job = arg;
    const llm_heads_t  *h;

    h = job->h;
    end = llm_min((item + 1) * LLM_ROPE_ROWS, job->cpu->batch->n_tokens);

    rot.kind = job->rope->kind;
    rot.n_dims = job->rope->n_dims;

    for (row = item * LLM_ROPE_ROWS; row < end; row++) {

        rot.cos = job->rot + (size_t) row * 2 * job->cpu->rot_cap;
        rot.sin = rot.cos + job->cpu->rot_cap;

        if (job->q) {
            q = job->q->data + (size_t) row * job->q->cols;
            llm_rope_heads(job, q + h->head_dim_k - llm_rope_dim(h),
                           h->n_heads, h->head_dim_k, h->q_norm, &rot);

            if (h->temp_scale != 0) {
                llm_rope_temper(h, q, job->cpu->batch->pos[row]);
            }
        }

        if (job->k) {
            k = job->k->data + (size_t) row * job->k->cols;
            llm_rope_heads(job, k, h->n_kv_heads, llm_rope_dim(h), h->k_norm,
                           &rot);
            llm_rope_write(job, row, thread);
        }
    }
}


/* sets job->rot to the rope's table, which is computed unless this step has it
   already */

static void
llm_rope_table(llm_rope_job_t *job)
{
    uint32_t          i, n;
    llm_cpu_t        *cpu;
    const llm_vec_t  *of;

    cpu = job->cpu;
    of = job->rope->inv_freq;
    n = cpu->batch->n_tokens;
    job->rot = cpu->rot;

    if (job->rope->n_dims == 0) {
        return;
    }

    for (i = 0; i < LLM_CPU_ROPES && cpu->rot_of[i] != of; i++) {
        /* void */
    }

    if (i < LLM_CPU_ROPES) {
        job->rot += i * llm_rot_floats(cpu);
        return;
    }

    i = cpu->rot_next;
    cpu->rot_next = (i + 1) % LLM_CPU_ROPES;
    cpu->rot_of[i] = of;
    job->rot += i * llm_rot_floats(cpu);

    llm_cpu_run(cpu, llm_rot_item, job, n,
                (double) n * job->rope->n_dims / LLM_RATE_ROT);
}


void
llm_cpu_rope_kv(llm_exec_t *exec, const llm_heads_t *h, const llm_rope_t *rope,
    llm_act_t *q, llm_act_t *k, const llm_act_t *v, llm_kv_t *kv)
{
    uint32_t        n;
    llm_cpu_t      *cpu = (llm_cpu_t *) exec;
    llm_rope_job_t  job = { cpu, h, rope, NULL, q, k, v, kv };

    n = cpu->batch->n_tokens;
    llm_rope_table(&job);

    llm_cpu_run(cpu, llm_rope_item, &job,
                (n + LLM_ROPE_ROWS - 1) / LLM_ROPE_ROWS,
                (double) n * ((q ? q->cols : 0) + (k ? 2 * k->cols : 0))
                / LLM_RATE_ROPE);
}


/*
 * Computes the position of tile `item`.  Tiles of a sequence are numbered by KV
 * head, then by its query heads, then by rows, so that consecutive tiles read
 * the same keys.
 */

static void
llm_attn_tile(const llm_attn_job_t *job, uint32_t item, llm_attn_tile_t *t)
{
    uint32_t            i, n, len, rows, part, chunk, group;
    const llm_batch_t  *b;

    b = job->cpu->batch;
    group = job->h->n_heads / job->h->n_kv_heads;

    t->seq = llm_attn_find(job->cpu->first_item, b->n_seqs, item);
    item -= job->cpu->first_item[t->seq];

    n = b->seq_rows[t->seq + 1] - b->seq_rows[t->seq];
    rows = (n + job->rows - 1) / job->rows;

    part = item % rows * job->rows;
    item /= rows;
    chunk = item % job->chunks;

    t->kv_head = item / job->chunks;
    t->head = t->kv_head * group + chunk * job->heads;
    t->n_heads = llm_min(job->heads, group - chunk * job->heads);
    t->row = b->seq_rows[t->seq] + part;
    t->n_rows = llm_min(job->rows, n - part);
    len = llm_batch_len(b, &job->kv->opts, t->seq);
    t->first = llm_batch_first(b, job->h, t->row);
    t->last = llm_batch_end(b, job->h, t->row + t->n_rows - 1, len);

    /* without spans, no row between them sees more */

    for (i = 0; job->h->spans && b->sees && i < t->n_rows; i++) {
        t->first = llm_min(t->first, llm_batch_first(b, job->h, t->row + i));
        t->last = llm_max(t->last, llm_batch_end(b, job->h, t->row + i, len));
    }
}


/* prepares a tile over one split; the caller sets acc and scores */

static void
llm_attn_setup(const llm_attn_job_t *job, const llm_attn_tile_t *t,
    uint32_t split, llm_cpu_attn_t *a)
{
    uint32_t                   i, j, m, pos, len;
    const float               *slopes;
    const llm_batch_t         *b;
    const llm_cpu_kv_layer_t  *kv;

    kv = job->layer;
    b = job->cpu->batch;

    a->kv = kv;
    a->base = kv->data + t->kv_head * kv->head;
    a->pages = llm_batch_table(b, &job->kv->opts, t->seq);
    len = llm_batch_len(b, &job->kv->opts, t->seq);
    a->n = t->n_rows * t->n_heads;
    a->first = split * LLM_ATTN_SPLIT;
    a->last = llm_min(t->last, a->first + LLM_ATTN_SPLIT);
    a->ahead = t->last;
    a->scale = job->h->scale;
    a->softcap = job->h->softcap;
    slopes = job->h->slopes ? job->h->slopes->data + t->head : NULL;
    a->slopes = slopes != NULL;

    for (i = 0; i < t->n_rows; i++) {
        pos = b->pos[t->row + i];

        for (j = 0; j < t->n_heads; j++) {
            m = i * t->n_heads + j;

            a->q[m] = job->q->data + (size_t) (t->row + i) * job->q->cols
                      + (t->head + j) * job->h->head_dim_k;
            a->from[m] = llm_batch_first(b, job->h, t->row + i);
            a->limit[m] = llm_batch_end(b, job->h, t->row + i, len);
            a->at[m] = pos;
            a->slope[m] = slopes ? slopes[j] : 0;
        }
    }
}


static void
llm_attn_output(const llm_attn_job_t *job, const llm_attn_tile_t *t,
    const llm_cpu_attn_t *a)
{
    float        *out;
    uint32_t      i, j;
    const float  *sinks;

    sinks = job->h->sinks ? job->h->sinks->data + t->head : NULL;

    for (i = 0; i < t->n_rows; i++) {
        out = job->out->data + (size_t) (t->row + i) * job->out->cols;

        for (j = 0; j < t->n_heads; j++) {
            job->cpu->kernels.attn_finish(a, i * t->n_heads + j,
                                  sinks ? &sinks[j] : NULL,
                                  out + (t->head + j) * job->h->head_dim_v);
        }
    }
}


static uint32_t
llm_attn_splits(uint32_t last)
{
    return (last + LLM_ATTN_SPLIT - 1) / LLM_ATTN_SPLIT;
}


/* one tile: all of its splits in order */

static void
llm_attn_whole(void *arg, uint32_t item, uint32_t thread)
{
    float            *acc;
    uint32_t          i;
    llm_cpu_attn_t    a, b;
    llm_attn_job_t   *job = arg;
    llm_attn_tile_t   t;

    llm_attn_tile(job, item, &t);

    acc = (float *) (void *) llm_cpu_scratch(job->cpu, thread);
    a.acc = acc;
    b.acc = acc + job->tile * job->layer->dv_pad;
    a.scores = b.scores = b.acc + job->tile * job->layer->dv_pad;

    i = t.first / LLM_ATTN_SPLIT;
    llm_attn_setup(job, &t, i, &a);
    job->attn(&a);

    for (i++; i < llm_attn_splits(t.last); i++) {
        llm_attn_setup(job, &t, i, &b);
        job->attn(&b);
        job->cpu->kernels.attn_merge(&a, &b);
    }

    llm_attn_output(job, &t, &a);
}


/* the buffer for the result of a tile's split, from llm_attn_split() to
   llm_attn_join() */

static float *
llm_attn_part(const llm_attn_job_t *job, uint32_t tile, uint32_t split)
{
    return job->cpu->parts
           + ((size_t) tile * job->n_splits + split) * job->cpu->part_floats;
}


static void
llm_attn_split(void *arg, uint32_t item, uint32_t thread)
{
    float            *stats;
    uint32_t          split;
    llm_cpu_attn_t    a;
    llm_attn_job_t   *job = arg;
    llm_attn_tile_t   t;

    split = item % job->n_splits;
    llm_attn_tile(job, item / job->n_splits, &t);

    if (split >= llm_attn_splits(t.last)
        || split < t.first / LLM_ATTN_SPLIT)
    {
        return;
    }

    a.acc = llm_attn_part(job, item / job->n_splits, split);
    a.scores = (float *) (void *) llm_cpu_scratch(job->cpu, thread);

    llm_attn_setup(job, &t, split, &a);
    a.ahead = a.last;
    job->attn(&a);

    stats = a.acc + LLM_ATTN_FEW * job->layer->dv_pad;
    memcpy(stats, a.max, a.n * sizeof(float));
    memcpy(stats + LLM_ATTN_FEW, a.sum, a.n * sizeof(float));
}


static void
llm_attn_join(void *arg, uint32_t tile, uint32_t thread)
{
    float            *stats;
    uint32_t          i, first;
    llm_cpu_attn_t    a, b, *p;
    llm_attn_job_t   *job = arg;
    llm_attn_tile_t   t;

    (void) thread;

    llm_attn_tile(job, tile, &t);

    first = t.first / LLM_ATTN_SPLIT;

    for (i = first; i < llm_attn_splits(t.last); i++) {
        p = i > first ? &b : &a;

        llm_attn_setup(job, &t, i, p);
        p->acc = llm_attn_part(job, tile, i);

        stats = p->acc + LLM_ATTN_FEW * job->layer->dv_pad;
        memcpy(p->max, stats, p->n * sizeof(float));
        memcpy(p->sum, stats + LLM_ATTN_FEW, p->n * sizeof(float));

        if (i > first) {
            job->cpu->kernels.attn_merge(&a, &b);
        }
    }

    llm_attn_output(job, &t, &a);
}


/* divides the rows and heads of a step into tiles of `heads` query heads;
   returns the number of tiles */

static uint32_t
llm_attn_cut(llm_attn_job_t *job, uint32_t heads)
{
    uint32_t            i, n, rows, group;
    const llm_batch_t  *b;

    b = job->cpu->batch;
    group = job->h->n_heads / job->h->n_kv_heads;

    job->heads = heads;
    job->chunks = (group + heads - 1) / heads;
    job->rows = job->tile / heads;

    for (i = 0, n = 0; i < b->n_seqs; i++) {
        rows = b->seq_rows[i + 1] - b->seq_rows[i];
        job->cpu->first_item[i] = n;
        n += (rows + job->rows - 1) / job->rows * job->chunks
             * job->h->n_kv_heads;
    }

    return n;
}


void
llm_cpu_attention(llm_exec_t *exec, const llm_heads_t *h, const llm_act_t *q,
    const llm_kv_t *kv, llm_act_t *out)
{
    double              work;
    uint32_t            i, n, rows, len, longest, seen, threads;
    llm_cpu_t          *cpu = (llm_cpu_t *) exec;
    llm_attn_job_t      job = { .cpu = cpu, .h = h, .q = q, .kv = kv,
                                .layer = &kv->layers[h->layer],
                                .out = out };
    const llm_batch_t  *b;

    b = cpu->batch;
    threads = cpu->threads;
    longest = 0;
    work = 0;

    for (i = 0; i < b->n_seqs; i++) {
        rows = b->seq_rows[i + 1] - b->seq_rows[i];
        len = llm_batch_len(b, &kv->opts, i);
        longest = llm_max(longest, len);
        seen = h->window ? llm_min(h->window, len) : len;
        work += (double) rows * seen;
    }

    job.n_splits = llm_attn_splits(longest);
    job.attn = cpu->kernels.attn[job.layer->format];
    job.tile = llm_attn_most(cpu, job.layer->format);
    n = llm_attn_cut(&job, llm_min(h->n_heads / h->n_kv_heads, job.tile));

    /* too few tiles for the threads: smaller ones; then divide the query heads
       of each KV head */

    while (n < LLM_ATTN_MANY * threads && job.tile > LLM_ATTN_FEW) {
        job.tile /= 4;
        n = llm_attn_cut(&job, llm_min(h->n_heads / h->n_kv_heads, job.tile));
    }

    while (n * job.n_splits < threads && job.heads > LLM_ATTN_FEW_HEADS) {
        n = llm_attn_cut(&job, (job.heads + 1) / 2);
    }

    work *= (double) h->n_heads * (h->head_dim_k + h->head_dim_v)
            / LLM_RATE_ATTN;

    if (job.n_splits > 1 && job.tile == LLM_ATTN_FEW && n < 2 * threads
        && (uint64_t) n * job.n_splits <= cpu->max_parts)
    {
        llm_cpu_run(cpu, llm_attn_split, &job, n * job.n_splits, work);
        llm_cpu_run(cpu, llm_attn_join, &job, n, 0);
        return;
    }

    llm_cpu_run(cpu, llm_attn_whole, &job, n, work);
}
