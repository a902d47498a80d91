/*
 * Draws on the device for the tests: parameters of each kind, rows of each
 * kind, steps of them, and a reference in double with full sorts.
 *
 * The device adds weights as integers, the host in float: where the random
 * number, or a top-p cut, lies within DELTA of the mass from a border between
 * two tokens, either of them is right.  The reference says where that is;
 * everywhere else there is one right token.
 */

#ifndef LLM_EMU_SAMPLE_H
#define LLM_EMU_SAMPLE_H

#include "t/unit/emu_dev.h"
#include "engine/sample/sampler.h"
#include "t/unit/ops.h"

#define DELTA     2e-6
#define MAX_OUT   32

typedef struct {
    const char   *name;
    float         temperature, top_p, min_p, typical_p;
    float         repetition, presence, frequency;
    int32_t       top_k, n_logprobs;
    int           biased, banned, masked;
} setup_t;

static const setup_t  setups[] = {
    { "greedy", 0, 1, 0, 1, 1, 0, 0, 0, -1, 0, 0, 0 },
    { "greedy, logprobs", 0, 1, 0, 1, 1, 0, 0, 0, 20, 0, 0, 0 },
    { "greedy, all edits", 0, 1, 0, 1, 1.5f, 0.5f, 0.25f, 0, 0, 1, 1, 1 },
    { "temperature 1", 1, 1, 0, 1, 1, 0, 0, 0, -1, 0, 0, 0 },
    { "temperature 0.3", 0.3f, 1, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0 },
    { "temperature 2, logprobs", 2, 1, 0, 1, 1, 0, 0, 0, 5, 0, 0, 0 },
    { "top_k 1", 1, 1, 0, 1, 1, 0, 0, 1, -1, 0, 0, 0 },
    { "top_k 5", 1.5f, 1, 0, 1, 1, 0, 0, 5, -1, 0, 0, 0 },
    { "top_k 1500", 3, 1, 0, 1, 1, 0, 0, 1500, -1, 0, 0, 0 },
    { "top_k beyond all", 1, 1, 0, 1, 1, 0, 0, 1000000, -1, 0, 0, 0 },
    { "top_p 0.9", 1, 0.9f, 0, 1, 1, 0, 0, 0, -1, 0, 0, 0 },
    { "top_p 0.999, hot", 3, 0.999f, 0, 1, 1, 0, 0, 0, 1, 0, 0, 0 },
    { "top_p 0.01", 1, 0.01f, 0, 1, 1, 0, 0, 0, -1, 0, 0, 0 },
    { "top_k 40, top_p 0.95", 0.8f, 0.95f, 0, 1, 1, 0, 0, 40, -1, 0, 0, 0 },
    { "min_p 0.1", 1, 1, 0.1f, 1, 1, 0, 0, 0, -1, 0, 0, 0 },
    { "min_p 1", 2, 1, 1, 1, 1, 0, 0, 0, -1, 0, 0, 0 },
    { "all cuts", 1.2f, 0.8f, 0.01f, 1, 1, 0, 0, 30, 3, 0, 0, 0 },
    { "repetition", 1, 1, 0, 1, 1.8f, 0, 0, 0, 2, 0, 0, 0 },
    { "presence", 1, 1, 0, 1, 1, 1.5f, 0, 0, -1, 0, 0, 0 },
    { "frequency", 1, 1, 0, 1, 1, 0, 0.7f, 0, 2, 0, 0, 0 },
    { "a bias", 1, 1, 0, 1, 1, 0, 0, 0, 4, 1, 0, 0 },
    { "bans", 1, 1, 0, 1, 1, 0, 0, 0, 2, 0, 1, 0 },
    { "a mask", 1, 1, 0, 1, 1, 0, 0, 0, 2, 0, 0, 1 },
    { "everything", 0.9f, 0.9f, 0.02f, 1, 1.3f, -0.5f, 0.3f, 50, 20, 1, 1,
      1 },
    { "what is the host's", 1, 1, 0, 0.5f, 1, 0, 0, 0, 2, 1, 0, 0 }
};

#define N_SETUPS  llm_nelems(setups)

typedef enum {
    ROW_NORMAL = 0, ROW_TIES, ROW_EQUAL, ROW_HOLES, ROW_PEAK, ROW_WIDE,
    ROW_ONE, N_KINDS
} row_kind_t;

typedef struct {
    uint32_t                n;
    llm_exec_t             *dev;
    llm_act_t              *act;
    llm_sampler_scratch_t  *scratch;
    uint32_t               *mask;
    int32_t                 banned[3];
    float                  *row;
    float                  *changed;
    int32_t                *order;      /* ids, the best first */
    double                 *weight;     /* of each id */
    uint8_t                *kept;
} rig_t;

typedef struct {
    llm_sampler_t          *sampler;
    llm_draw_t              draw;
    const setup_t          *setup;
    llm_drawn_t             drawn;
    llm_candidate_t         top[LLM_DRAW_TOP];
} one_t;

static uint64_t   state = 5;
static uint32_t   n_near, n_draws;


static inline double
uniform(void)
{
    return (double) (ops_random(&state) >> 11) * 0x1p-53;
}


/* ---- the reference ---- */

static const float  *sort_row;

static inline int
by_logit(const void *one, const void *two)
{
    int32_t  a = *(const int32_t *) one, b = *(const int32_t *) two;

    if (sort_row[a] != sort_row[b]) {
        return sort_row[a] < sort_row[b] ? 1 : -1;
    }

    return a - b;
}


static inline void
reference_edit(rig_t *r, const llm_draw_t *d)
{
    uint32_t  i, count;
    float    *x;

    memcpy(r->changed, r->row, r->n * sizeof(float));

    for (i = 0; i < d->n_edits; i++) {
        x = &r->changed[d->edits[i].id];
        count = d->edits[i].seen & ~LLM_EDIT_SEEN;
        *x += d->edits[i].bias;

        if (d->edits[i].seen) {
            *x = *x > 0 ? *x / d->repetition : *x * d->repetition;
        }

        if (count) {
            *x -= (float) count * d->frequency;
            *x -= d->presence;
        }
    }

    for (i = 0; i < r->n; i++) {
        if (d->mask && !(d->mask[i / 32] >> i % 32 & 1)) {
            r->changed[i] = -INFINITY;
        }

        r->order[i] = (int32_t) i;
    }

    for (i = 0; i < d->n_banned; i++) {
        if ((uint32_t) d->banned[i] < r->n) {
            r->changed[d->banned[i]] = -INFINITY;
        }
    }

    sort_row = r->changed;
    qsort(r->order, r->n, sizeof(int32_t), by_logit);
}


/* the token, with the share and the random number moved by so much */

static int32_t
reference_token(rig_t *r, const llm_draw_t *d, double move_p, double move_u)
{
    float     x, max;
    double    total, need, sum;
    int32_t   id, last;
    uint32_t  i, n;

    max = r->changed[r->order[0]];

    if (d->scale == 0) {
        return r->order[0];
    }

    memset(r->kept, 0, r->n);

    for (n = 0, total = 0; n < r->n; n++) {
        id = r->order[n];
        x = r->changed[id];

        if (x == -INFINITY || (n && x < max + d->min_gap)
            || (d->top_k && n >= d->top_k))
        {
            break;
        }

        r->weight[id] = exp((double) ((x - max) * d->scale));
        total += r->weight[id];
    }

    if (d->top_p < 1) {
        need = (d->top_p + move_p) * total;

        for (i = 0, sum = 0; i < n && (i == 0 || sum < need); i++) {
            sum += r->weight[r->order[i]];
        }

        total = sum;
        n = i;
    }

    for (i = 0; i < n; i++) {
        r->kept[r->order[i]] = 1;
    }

    last = -1;

    for (i = 0, sum = 0; i < r->n; i++) {
        if (r->kept[i]) {
            sum += r->weight[i];
            last = (int32_t) i;

            if (sum > (d->u + move_u) * total) {
                break;
            }
        }
    }

    return last;
}


/* is it one that the reference allows? */

static inline int
reference_allows(rig_t *r, const llm_draw_t *d, int32_t id)
{
    int      i, good;
    int32_t  want, other;

    want = reference_token(r, d, 0, 0);
    good = id == want;

    for (i = 0; i < 4 && !good; i++) {
        other = reference_token(r, d, i & 1 ? DELTA : -DELTA,
                                i & 2 ? DELTA : -DELTA);
        good = id == other;
    }

    n_draws++;
    n_near += good && id != want;

    if (!good) {
        printf("# got %d, want %d\n", id, want);
    }

    return good;
}


/* ---- steps ---- */

static inline llm_exec_t *
open_device(uint32_t max_out)
{
    llm_exec_opts_t  o;

    memset(&o, 0, sizeof(o));
    o.max_tokens = max_out;
    o.max_seqs = max_out;
    o.max_pages = 4;
    o.max_out = max_out;
    o.weight_type = LLM_TYPE_F16;

    return open_tested(&o);
}


static inline int
rig_open(rig_t *r, uint32_t n)
{
    uint32_t   i;
    llm_err_t  err;

    memset(r, 0, sizeof(rig_t));
    r->n = n;
    r->dev = open_device(MAX_OUT);

    if (r->dev == NULL) {
        return 0;
    }

    r->act = r->dev->ops->act_create(r->dev, MAX_OUT, n, LLM_ACT_LOGITS,
                                     &err);

    if (r->act == NULL) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }

    r->scratch = llm_sampler_scratch_create(n);
    r->mask = ops_alloc((n + 31) / 32 * sizeof(uint32_t));
    r->row = ops_alloc(n * sizeof(float));
    r->changed = ops_alloc(n * sizeof(float));
    r->order = ops_alloc(n * sizeof(int32_t));
    r->weight = ops_alloc(n * sizeof(double));
    r->kept = ops_alloc(n);

    memset(r->mask, 0, (n + 31) / 32 * sizeof(uint32_t));

    for (i = 0; i < n; i++) {
        r->mask[i / 32] |= (uint32_t) (i % 3 != 1) << i % 32;
    }

    /* one that has a bias, which another thread of the block adds */

    r->banned[0] = (int32_t) (n > 3 ? n - 1 : n);
    r->banned[1] = (int32_t) n + 5;
    r->banned[2] = (int32_t) (n > 3 ? n / 2 : n);

    return 1;
}


static inline void
rig_close(rig_t *r)
{
    r->dev->ops->act_free(r->dev, r->act);
    r->dev->ops->close(r->dev);
    llm_sampler_scratch_free(r->scratch);
    free(r->mask);
    free(r->row);
    free(r->changed);
    free(r->order);
    free(r->weight);
    free(r->kept);
}


/*
 * A step of n draws from the same row; as one row that is drawn from n times
 * of a prompt, or of n sequences.  Returns begin()'s word.
 */

static inline int
step(rig_t *r, one_t *o, uint32_t n, int prompt)
{
    int          rc;
    int32_t      tokens[MAX_OUT + 1] = { 0 };
    uint32_t     pos[MAX_OUT + 1], seq_rows[MAX_OUT + 1], kv_len[MAX_OUT];
    uint32_t     pages[MAX_OUT] = { 0 }, out[MAX_OUT], i;
    llm_err_t    err;
    llm_draw_t   draws[MAX_OUT];
    llm_batch_t  b;

    for (i = 0; i < n; i++) {
        seq_rows[i] = prompt ? 2 * i : i;
        pos[i] = prompt ? i : 0;
        kv_len[i] = prompt ? 2 : 1;
        out[i] = prompt ? 1 : i;
        draws[i] = o[i].draw;
        r->dev->ops->write(r->dev, r->act, i, 1, r->row);
    }

    seq_rows[prompt ? 1 : n] = prompt ? 2 : n;
    pos[1] = prompt ? 1 : 0;

    memset(&b, 0, sizeof(b));
    b.n_tokens = prompt ? 2 : n;
    b.n_seqs = prompt ? 1 : n;
    b.n_out = n;
    b.max_pages = 1;
    b.tokens = tokens;
    b.pos = pos;
    b.seq_rows = seq_rows;
    b.kv_len = kv_len;
    b.pages[LLM_KV_FULL] = pages;
    b.out_rows = out;
    b.draws = draws;

    rc = r->dev->ops->begin(r->dev, &b, &err);

    /* what it said belongs to the caller again */

    memset(draws, 0xff, sizeof(draws));

    if (rc == LLM_ERROR || r->dev->ops->end(r->dev, &err) != LLM_OK) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }

    for (i = 0; i < n; i++) {
        if (o[i].draw.kind == LLM_DRAW_TOKEN) {
            r->dev->ops->drawn(r->dev, i, &o[i].drawn);
            memcpy(o[i].top, o[i].drawn.top,
                   o[i].drawn.n_top * sizeof(llm_candidate_t));
            o[i].drawn.top = o[i].top;
        }
    }

    return rc;
}


static inline void
one_open(rig_t *r, one_t *o, const setup_t *s, uint64_t seed)
{
    uint32_t          i;
    llm_sampling_t    p;
    llm_logit_bias_t  bias[4];

    memset(o, 0, sizeof(one_t));
    o->setup = s;

    llm_sampling_default(&p);
    p.temperature = s->temperature;
    p.top_p = s->top_p;
    p.min_p = s->min_p;
    p.typical_p = s->typical_p;
    p.repetition_penalty = s->repetition;
    p.presence_penalty = s->presence;
    p.frequency_penalty = s->frequency;
    p.top_k = s->top_k;
    p.n_logprobs = s->n_logprobs;
    p.has_seed = 1;
    p.seed = seed;

    bias[0].id = (int32_t) (r->n / 3);
    bias[0].bias = 3;
    bias[1].id = 0;
    bias[1].bias = -100;
    bias[2].id = (int32_t) r->n - 1;
    bias[2].bias = 0.5f;
    bias[3].id = (int32_t) (r->n / 3);
    bias[3].bias = 1.25f;

    o->sampler = llm_sampler_create(&p, 0, bias, s->biased ? 4 : 0, r->n);

    for (i = 0; i < 20; i++) {
        llm_sampler_see_prompt(o->sampler, (int32_t) (i * i * 31 % r->n));
    }

    for (i = 0; i < 30; i++) {
        llm_sampler_accept(o->sampler, (int32_t) (i * i * 17 % 101 % r->n));
    }

    (void) llm_sampler_plan(o->sampler, 0, r->banned, s->banned ? 3 : 0,
                            s->masked ? r->mask : NULL, &o->draw);
}


static inline int
one_sample(rig_t *r, one_t *o, llm_sampled_t *out, llm_err_t *err)
{
    return llm_sampler_sample(o->sampler, r->scratch, r->row, r->banned,
                              o->setup->banned ? 3 : 0,
                              o->setup->masked ? r->mask : NULL, out, err);
}


/* the device's word against the host's; returns how many facts are wrong */

static inline int
one_check(rig_t *r, one_t *o)
{
    int              rc, wrong;
    uint32_t         i;
    llm_err_t        err[2];
    llm_sampled_t    host, dev;
    llm_candidate_t  top[LLM_DRAW_TOP + 1];

    rc = one_sample(r, o, &host, &err[0]);
    memcpy(top, host.top, host.n_top * sizeof(*top));

    if (llm_sampler_drawn(o->sampler, &o->drawn, &dev, &err[1]) != rc) {
        return 1;
    }

    if (rc != LLM_OK) {
        return strcmp(err[0].msg, err[1].msg) != 0;
    }

    reference_edit(r, &o->draw);
    wrong = !reference_allows(r, &o->draw, dev.id)
            + !reference_allows(r, &o->draw, host.id);

    if (dev.id != host.id) {
        return wrong;                   /* near a border, both are right */
    }

    wrong += dev.n_top != host.n_top
             || fabsf(dev.logprob - host.logprob) > 1e-4f;

    for (i = 0; i < dev.n_top && !wrong; i++) {
        wrong += dev.top[i].id != top[i].id
                 || fabsf(dev.top[i].logprob - top[i].logprob) > 1e-4f;
    }

    return wrong;
}


static inline int
one_differs(const one_t *a, const one_t *b)
{
    return a->drawn.status != b->drawn.status || a->drawn.id != b->drawn.id
           || memcmp(&a->drawn.logprob, &b->drawn.logprob, sizeof(float)) != 0
           || a->drawn.n_top != b->drawn.n_top
           || memcmp(a->top, b->top, a->drawn.n_top * sizeof(*a->top)) != 0;
}


/* ---- rows ---- */

static inline void
fill_row(rig_t *r, row_kind_t kind)
{
    uint32_t  i;

    for (i = 0; i < r->n; i++) {
        switch (kind) {

        case ROW_TIES:
            r->row[i] = floorf(ops_normal(&state) * 3);
            break;

        case ROW_EQUAL:
            r->row[i] = -0.25f;
            break;

        case ROW_HOLES:
            r->row[i] = uniform() < 0.6 ? -INFINITY : ops_normal(&state) * 2;
            break;

        case ROW_PEAK:
            r->row[i] = ops_normal(&state) - 30;
            break;

        case ROW_WIDE:
            r->row[i] = ops_normal(&state)
                        * (float) pow(10, 8 * uniform() - 4);
            break;

        case ROW_ONE:
            r->row[i] = -INFINITY;
            break;

        default:
            r->row[i] = ops_normal(&state) * 3;
        }
    }

    i = (uint32_t) (uniform() * r->n);

    if (kind == ROW_PEAK || kind == ROW_HOLES || kind == ROW_ONE) {
        r->row[i] = 2;
    }

    if (kind == ROW_TIES) {
        r->row[i] = r->row[i] == 0 ? -0.0f : r->row[i];
    }
}


static inline void
close_all(one_t *o, uint32_t n)
{
    while (n--) {
        llm_sampler_free(o[n].sampler);
    }
}


static inline int
device_is_there(void)
{
    llm_exec_t  *d;

    (void) setenv("LLM_EMU_SEED", "7", 0);

    d = open_device(1);

    if (d == NULL) {
        return 0;
    }

    d->ops->close(d);

    return 1;
}

#endif /* LLM_EMU_SAMPLE_H */
