/*
 * The scheduler over a model that is a hash, for the tests: its KV pages hold
 * the tokens themselves and the next token is a hash of all that a row can
 * see through its page table.  A wrong page, a lost token, a wrong position
 * and the text differs from what the same hash says without pages.
 *
 * With recurrent layers it also keeps, for each sequence, a hash of all tokens
 * in the order in which they came.  A wrong slot, a copy too few, a token that
 * is missed or seen twice, and the two hashes differ: then so does the text.
 * With a window a row sees so many tokens through its page table, and no entry
 * before them; with pages for windows of their own it sees all through one
 * table and these through the other.
 *
 * With predictions, a request comes with its own answer, in which some tokens
 * are wrong, and tokens are drafted from it.
 */

#ifndef LLM_T_SCHED_RIG_H
#define LLM_T_SCHED_RIG_H

#include "engine/sched/sched_internal.h"

#include <assert.h>
#include <math.h>
#include <semaphore.h>
#include <sys/mman.h>

#include "t/unit/random.h"
#include "t/unit/tap.h"
#include "t/unit/tiny_vocab.h"

#define N_VOCAB    257
#define N_STATE    6500         /* a vector takes two events */
#define MAX_PAGES  512
#define MAX_SLOTS  64
#define MAX_REQS   64
#define MAX_GEN    200

/* the model */
static int32_t    kv[MAX_PAGES][LLM_KV_PAGE];
static int        drawing;              /* the device finds the largest */
static int        overlapping;          /* and takes a step behind another */
static uint32_t   recurrent;            /* slots beside those of the seats; 0:
                                           no recurrent layers */

static uint32_t   window;               /* positions that a row sees; 0: all */
static uint32_t   predicting;           /* percent of a prediction's tokens that
                                           are right; 0: nothing is drafted */
static uint32_t   n_windows;            /* pages of windows, if a row sees all
                                           in others; or 0 */
static int32_t    kv_windows[MAX_PAGES][LLM_KV_PAGE];
static const llm_runner_t  *media;      /* what of it is about media; NULL: the
                                           model takes none */
static void     (*look_at)(const llm_batch_t *b);   /* at each step; or NULL */

/* what a slot keeps */
typedef struct {
    uint64_t      hash;
    uint32_t      n;                    /* tokens seen */
} slot_t;

static slot_t     slots[MAX_SLOTS];
static uint32_t   n_slot_copies;

/* the results of a step */
typedef struct {
    const llm_batch_t  *batch;
    int                 done;           /* it was computed */
    float               rows[256][N_VOCAB];
    float               states[256][N_STATE];
    llm_candidate_t     found[256];     /* what it drew, and not the row */
} results_t;

static results_t   steps[3];             /* one that ended, two under way */
static results_t  *results;             /* of the step that ended last */
static uint32_t    n_submitted;
static uint32_t    n_waited;
static uint32_t    n_behind;            /* submitted behind another */
static uint32_t   n_copies;
static uint64_t   n_rows;
static uint32_t   max_rows_beside;      /* prompt rows beside decode rows */
static int        fail_at = -1;         /* which step fails */
static uint32_t   n_steps;
static llm_err_t  broken;               /* why it did, for whoever waits */

static tiny_vocab_t   tiny;
static void          *mem;
static size_t         mem_size;
static llm_zone_t    *zone;
static llm_port_t     port;
static llm_ring_t     up;
static llm_sched_t   *sched;
static sem_t          masks;            /* posted for each mask that was made */

typedef struct {
    llm_req_t   *req;                   /* NULL once it has ended */
    int          over;
    int          cancelled;
    uint32_t     status;
    uint32_t     order;                 /* in which it ended */
    uint32_t     started;
    uint32_t     cached;
    uint32_t     n_prompt;
    int32_t      prompt[1024];
    uint32_t     n;
    int32_t      ids[8][MAX_GEN];
    uint32_t     n_ids[8];
    uint32_t     scored[8];             /* tokens that came with rivals */
    int          wrong;                 /* one of them was not as it is */
    uint64_t     seen[8];               /* hash of those so far */
    float        vector[8][N_STATE];    /* what a prompt became */
    uint32_t     n_vector[8];
} ask_t;

static ask_t      asks[MAX_REQS];
static uint32_t   n_over;
static uint32_t   n_started;


static inline uint64_t
hash_token(uint64_t h, int32_t id, uint32_t pos)
{
    h = (h ^ (uint32_t) id) * 0x9fb21c651e98df25ull;

    return (h ^ h >> 32 ^ pos) * 0xff51afd7ed558ccdull;
}


static inline int32_t
next_of(uint64_t h)
{
    return (int32_t) ((h >> 13) % 256);
}


static inline void
fill_row(float *row, uint64_t h)
{
    uint32_t  k;

    memset(row, 0, N_VOCAB * sizeof(*row));

    for (k = 0; k < 256; k++) {
        row[k] = (float) (h >> k % 40 & 7) * 0.25f;
    }

    row[next_of(h)] = 20;
}


/* small whole numbers: sums of them are exact in any order */

static inline void
fill_state(float *state_of, uint64_t h)
{
    uint32_t  k;

    for (k = 0; k < N_STATE; k++) {
        state_of[k] = (float) (h >> k % 50 & 1023);
    }
}


/* a row that is drawn from is nobody's any more */

static inline void
draw_row(results_t *res, uint32_t i)
{
    float            *row;
    uint32_t          k;
    llm_candidate_t  *c;

    if (res->batch->draws == NULL
        || res->batch->draws[i].kind != LLM_DRAW_TOKEN)
    {
        return;
    }

    row = res->rows[i];
    c = &res->found[i];

    for (k = 0; k < res->batch->draws[i].n_banned; k++) {
        row[res->batch->draws[i].banned[k]] = -INFINITY;
    }

    c->id = 0;
    c->logprob = -0.5f;

    for (k = 1; k < N_VOCAB; k++) {
        c->id = row[k] > row[c->id] ? (int32_t) k : c->id;
    }

    for (k = 0; k < N_VOCAB; k++) {
        row[k] = NAN;
    }
}


static inline void
drawn(void *data, uint32_t i, llm_drawn_t *out)
{
    (void) data;

    out->status = LLM_DRAWN_TOKEN;
    out->id = results->found[i].id;
    out->logprob = results->found[i].logprob;
    out->n_top = 1;
    out->top = &results->found[i];
}


/* the row's own token, or what the step before has drawn */

static inline int32_t
token_of(const llm_batch_t *b, const results_t *before, uint32_t row)
{
    if (b->given && b->given[row] != LLM_NOT_GIVEN) {
        return (int32_t) b->rows[(size_t) b->given[row] * b->given_cols];
    }

    if (b->follows == NULL || b->follows[row] == LLM_NO_DRAW) {
        return b->tokens[row];
    }

    return before->found[b->follows[row]].id;
}


/* the hash of what a row sees in the pages, with a window */

static inline uint64_t
look(int32_t (*cells)[LLM_KV_PAGE], const uint32_t *pages, uint32_t pos)
{
    uint32_t  k;
    uint64_t  h;

    h = 0;

    for (k = pos < window ? 0 : pos + 1 - window; k <= pos; k++) {
        h = hash_token(h, cells[pages[k / LLM_KV_PAGE]][k % LLM_KV_PAGE], k);
    }

    return h;
}


/* what the rows of a sequence leave in its slot, up to and with this row */

static inline uint64_t
recur(const llm_batch_t *b, uint32_t seq, const results_t *before,
    uint32_t row)
{
    slot_t  *slot;

    slot = &slots[b->slots[seq]];

    if (row == b->seq_rows[seq] && b->pos[row] == 0) {
        slot->hash = 0;
        slot->n = 0;
    }

    slot->hash = hash_token(slot->hash, token_of(b, before, row), slot->n++);

    return slot->hash;
}


/* what a row gives: h is the hash of all that lies in the pages */

static inline uint64_t
result_of(const llm_batch_t *b, uint32_t seq, const results_t *before,
    uint32_t row, uint64_t h)
{
    size_t    at;
    uint64_t  state_hash;

    at = (size_t) seq * b->max_pages;
    state_hash = recurrent ? recur(b, seq, before, row) : 0;

    if (window && n_windows == 0) {
        return state_hash ^ look(kv, b->pages[LLM_KV_FULL] + at, b->pos[row]);
    }

    h = recurrent && state_hash != h ? ~h : h;

    return n_windows ? h ^ look(kv_windows, b->pages[LLM_KV_WINDOW] + at,
                                b->pos[row]) : h;
}


static inline int
compute(results_t *res, const results_t *before, llm_err_t *err)
{
    uint64_t            h, seen;
    uint32_t            i, k, row, out, page, decode;
    const uint32_t     *pages;
    const llm_batch_t  *b;

    b = res->batch;
    res->done = 1;

    if ((int) n_steps++ == fail_at) {
        return llm_fail(err, "the device is on fire");
    }

    out = 0;
    decode = 0;
    n_rows += b->n_tokens;

    /* all is written before anything is read, as on a real device */

    for (i = 0; i < b->n_seqs; i++) {
        pages = b->pages[LLM_KV_FULL] + (size_t) i * b->max_pages;

        for (row = b->seq_rows[i]; row < b->seq_rows[i + 1]; row++) {
            k = b->pos[row];
            kv[pages[k / LLM_KV_PAGE]][k % LLM_KV_PAGE] =
                token_of(b, before, row);

            if (n_windows) {
                page = b->pages[LLM_KV_WINDOW]
                               [(size_t) i * b->max_pages + k / LLM_KV_PAGE];
                kv_windows[page][k % LLM_KV_PAGE] = token_of(b, before, row);
            }
        }

        decode += b->seq_rows[i + 1] - b->seq_rows[i] == 1;
    }

    if (decode) {
        max_rows_beside = llm_max(max_rows_beside, b->n_tokens - decode);
    }

    for (i = 0; i < b->n_seqs; i++) {
        pages = b->pages[LLM_KV_FULL] + (size_t) i * b->max_pages;

        for (k = 0, h = 0; k < b->kv_len[i]; k++) {
            h = hash_token(h, kv[pages[k / LLM_KV_PAGE]][k % LLM_KV_PAGE], k);
            row = b->seq_rows[i + 1] - b->kv_len[i] + k;

            if (k + b->seq_rows[i + 1] < b->kv_len[i] + b->seq_rows[i]) {
                continue;
            }

            seen = result_of(b, i, before, row, h);

            while (out < b->n_out && b->out_rows[out] == row)
            {
                if (b->gives != LLM_GIVES_HIDDEN) {
                    fill_row(res->rows[out], seen);
                }

                if (b->gives != LLM_GIVES_LOGITS) {
                    fill_state(res->states[out], seen);
                }

                draw_row(res, out++);
            }
        }
    }

    return out == b->n_out ? LLM_OK : llm_fail(err, "rows out of order");
}


/* steps are computed in their order, no later than somebody waits */

static inline int
compute_until(uint32_t n, llm_err_t *err)
{
    uint32_t    i;
    results_t  *res;

    for (i = n_waited; i < n; i++) {
        res = &steps[i % 3];

        if (!res->done && compute(res, &steps[(i + 2) % 3], err) != LLM_OK) {
            n_waited = n_submitted;
            broken = *err;
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


static inline int
submit(void *data, const llm_batch_t *b, llm_err_t *err)
{
    results_t  *res;

    (void) data;

    if (look_at) {
        look_at(b);
    }

    n_behind += n_submitted > n_waited;
    res = &steps[n_submitted++ % 3];

    memset(res->rows, 0xff, sizeof(res->rows));
    memset(res->states, 0xff, b->n_out * sizeof(res->states[0]));
    memset(res->found, 0xff, sizeof(res->found));
    res->batch = b;
    res->done = 0;

    return overlapping && rnd(2) ? compute_until(n_submitted, err) : LLM_OK;
}


static inline int
wait_step(void *data, llm_err_t *err)
{
    (void) data;

    if (n_waited == n_submitted && broken.status) {
        *err = broken;
        broken.status = 0;
        return LLM_ERROR;
    }

    if (n_waited == n_submitted || n_submitted - n_waited > 2) {
        return llm_fail(err, "no step to wait for");
    }

    if (compute_until(n_waited + 1, err) != LLM_OK) {
        return LLM_ERROR;
    }

    results = &steps[n_waited++ % 3];

    return LLM_OK;
}


static inline const float *
logits(void *data, uint32_t i)
{
    (void) data;

    return results->rows[i];
}


static inline const float *
state_at(void *data, uint32_t i)
{
    (void) data;

    return results->states[i];
}


static inline double
rank_of(void *data, const float *v, int raw)
{
    (void) data;

    return raw ? v[0] - v[1] : v[0] + v[1];
}


static inline void
copy_page(void *data, uint32_t kind, uint32_t src, uint32_t dst)
{
    int32_t   (*cells)[LLM_KV_PAGE] = kind == LLM_KV_WINDOW ? kv_windows : kv;
    llm_err_t   err;

    (void) data;
    (void) compute_until(n_submitted, &err);

    memcpy(cells[dst], cells[src], sizeof(cells[dst]));
    n_copies += kind == LLM_KV_FULL;
}


static inline void
copy_slot(void *data, uint32_t src, uint32_t dst)
{
    llm_err_t  err;

    (void) data;
    (void) compute_until(n_submitted, &err);

    slots[dst] = slots[src];
    n_slot_copies++;
}


static inline void
ended(void *data, llm_req_t *r)
{
    ask_t  *a = &asks[r->out.to.slot];

    (void) data;

    a->req = NULL;
    a->over = 1;
    a->order = ++n_over;
    llm_req_free(r);
}


/* another thread has made a mask */

static inline void
masked(void *data)
{
    (void) data;
    (void) sem_post(&masks);
}


static inline void
open_all(uint32_t n_pages, uint32_t ctx, uint32_t max_seqs, uint32_t chunk,
    size_t ring)
{
    llm_err_t         err;
    llm_zone_model_t  m = { .parallel = max_seqs };
    llm_sched_conf_t  conf;

    memset(asks, 0, sizeof(asks));
    memset(&conf, 0, sizeof(conf));
    n_over = 0;
    n_started = 0;
    n_copies = 0;
    n_slot_copies = 0;
    n_rows = 0;
    n_steps = 0;
    n_behind = 0;
    max_rows_beside = 0;
    fail_at = -1;
    broken.status = 0;

    mem_size = llm_zone_size(1, 1, ring);
    mem = mmap(NULL, mem_size, PROT_READ|PROT_WRITE,
               MAP_SHARED|MAP_ANONYMOUS, -1, 0);
    zone = llm_zone_init(mem, 1, &m, 1, ring, 1000);
    llm_port_open(&port, zone, NULL, 0, -1);
    llm_ring_consumer(&up, llm_zone_at(zone, port.worker->up));

    conf.runner.n_vocab = N_VOCAB;
    conf.runner.ctx = ctx;
    conf.runner.batch = max_seqs + llm_max(chunk, 16u);
    conf.runner.chunk = chunk;
    conf.runner.max_seqs = max_seqs;
    conf.runner.max_out = max_seqs + 7;
    conf.runner.n_pages[LLM_KV_FULL] = n_pages;
    conf.runner.n_pages[LLM_KV_WINDOW] = n_windows;
    conf.runner.submit = submit;
    conf.runner.wait = wait_step;
    conf.runner.overlaps = overlapping;
    conf.runner.logits = logits;
    conf.runner.drawn = drawing ? drawn : NULL;
    conf.runner.n_embd = N_STATE;
    conf.runner.hidden = state_at;
    conf.runner.rank = rank_of;
    conf.runner.copy_page = copy_page;
    conf.runner.window = window;
    conf.runner.n_slots = recurrent ? max_seqs + recurrent : 0;
    conf.runner.copy_slot = copy_slot;

    if (media) {
        conf.runner.n_given = media->n_given;
        conf.runner.turns = media->turns;
        conf.runner.spans = media->spans;
        conf.runner.encode = media->encode;
        conf.runner.encode_stop = media->encode_stop;
        conf.runner.encode_pixels = media->encode_pixels;
        conf.runner.encoded_bytes = media->encoded_bytes;
    }

    conf.speculate[0] = predicting ? LLM_DRAFT_NGRAM : LLM_DRAFT_NONE;
    conf.vocab = tiny.vocab;
    conf.zone = zone;
    conf.ended = ended;
    conf.masked = masked;

    sched = llm_sched_create(&conf, &err);

    if (sched == NULL) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
}


static inline void
close_all(void)
{
    llm_sched_free(sched);
    munmap(mem, mem_size);
}


/* the prompt is to be echoed, a character a token, with probabilities */

static inline void
want_scores(llm_prompt_ids_t *p)
{
    uint32_t       i;
    llm_sampled_t  first = { p->ids[0], 0, 0, NULL };

    p->ends = malloc(p->n * sizeof(*p->ends));
    p->n_scored = 1;
    llm_buf_init(&p->echo, 0);
    llm_buf_init(&p->probs, 0);

    for (i = 0; i < p->n; i++) {
        p->ends[i] = i + 1;
        llm_buf_addc(&p->echo, 'x');
    }

    llm_emit_add_prob(&p->probs, &first, 0, 1);
}


/* tokens of the prompt and of the answer, each with the model's own choice */

static inline void
check_scores(ask_t *a, const llm_event_t *ev)
{
    uint32_t                    i, n, k;
    const llm_top_logprob_t    *top;
    const llm_token_logprob_t  *t;

    k = ev->index;
    t = llm_ref_data(ev, ev->u.text.logprobs);

    for (i = 0; i < ev->u.text.logprobs.len; i++, t++) {
        n = a->scored[k]++;
        top = llm_ref_data(ev, t->top);

        if ((n < a->n_prompt
             && (t->id != a->prompt[n] || t->text_offset != n))
            || (n && top[0].id != next_of(a->seen[k]))
            || (n >= a->n_prompt && t->id != top[0].id))
        {
            a->wrong = 1;
        }

        a->seen[k] = hash_token(n ? a->seen[k] : 0, t->id, n);
    }
}


/* what the row of the n-th token gives, without pages; h: the hash of all */

static inline uint64_t
result_without(const int32_t *ids, uint32_t n, uint64_t h)
{
    uint32_t  i;
    uint64_t  w;

    if (window == 0) {
        return h;
    }

    for (w = 0, i = n < window ? 0 : n - window; i < n; i++) {
        w = hash_token(w, ids[i], i);
    }

    return recurrent || n_windows ? w ^ h : w;
}


/* the answer of n tokens to a prompt */

static inline void
answer_to(const int32_t *prompt, uint32_t n_prompt, int32_t *answer,
    uint32_t n)
{
    int32_t   ids[1024 + MAX_GEN];
    uint32_t  i;
    uint64_t  h;

    memcpy(ids, prompt, n_prompt * sizeof(*ids));

    for (i = 0, h = 0; i < n_prompt + n; i++) {
        if (i >= n_prompt) {
            ids[i] = next_of(result_without(ids, i, h));
        }

        h = hash_token(h, ids[i], i);
    }

    memcpy(answer, ids + n_prompt, n * sizeof(*answer));
}


/* predicts an answer that is right in so many percent of its tokens */

static inline void
predict(llm_req_t *r, const int32_t *answer, uint32_t n)
{
    uint32_t    i;
    llm_ids_t  *p;

    p = &r->prep.predicted;
    free(p->data);
    p->data = malloc(llm_max(n, 1u) * sizeof(*p->data));
    p->len = n;
    p->cap = n;

    for (i = 0; i < n; i++) {
        p->data[i] = rnd(100) < predicting ? answer[i] : (int32_t) rnd(256);
    }
}


/* what a preparation thread does, for a prompt of ids */

static inline ask_t *
ask(uint32_t slot, const int32_t *ids, uint32_t n_ids, uint32_t n,
    uint32_t max_gen, uint32_t flags)
{
    ask_t          *a;
    int32_t         answer[MAX_GEN];
    uint32_t        i;
    llm_req_t      *r;
    llm_seq_t      *q;
    llm_request_t  *msg;

    a = &asks[slot];
    memset(a, 0, sizeof(*a));
    a->n_prompt = n_ids;
    a->n = n;
    memcpy(a->prompt, ids, n_ids * sizeof(*ids));

    msg = calloc(1, sizeof(*msg));
    msg->head.size = sizeof(*msg);
    msg->n = n;
    msg->flags = flags | LLM_REQ_STREAM;
    msg->arrival_us = llm_now_us();
    llm_sampling_default(&msg->sampling);
    msg->sampling.temperature = 0;
    msg->sampling.n_logprobs = flags & LLM_REQ_ECHO ? 1 : -1;

    r = llm_req_create(msg);
    r->out.to.port = &port;
    r->out.to.slot = slot;
    r->out.to.ticket = slot + 1;
    r->prep.n_prompts = 1;
    r->prep.prompts = calloc(1, sizeof(*r->prep.prompts));
    r->prep.prompts[0].ids = malloc(n_ids * sizeof(*ids));
    memcpy(r->prep.prompts[0].ids, ids, n_ids * sizeof(*ids));
    r->prep.prompts[0].n = n_ids;
    r->prep.prompt_tokens = n_ids;
    r->run.seqs = calloc(n, sizeof(*r->run.seqs));
    r->run.n_seqs = n;

    for (i = 0; i < n; i++) {
        q = &r->run.seqs[i];
        q->req = r;
        q->index = i;
        q->prompt = &r->prep.prompts[0];
        q->max_gen = max_gen;
        q->stop_id = -1;
        q->echo_due = (flags & LLM_REQ_ECHO) != 0;
        llm_emit_init(&q->emit, tiny.vocab, &r->prep.stops,
                      LLM_EMIT_STREAM|LLM_EMIT_IDS
                      |(q->echo_due ? LLM_EMIT_PROBS : 0), 0, 0);
    }

    if (flags & LLM_REQ_ECHO) {
        want_scores(&r->prep.prompts[0]);
    }

    if (predicting) {
        answer_to(ids, n_ids, answer, max_gen);
        predict(r, answer, max_gen);
    }

    a->req = r;

    return a;
}


static inline void
add(ask_t *a)
{
    static uint64_t  serial;

    a->req->serial = ++serial;
    llm_sched_add(sched, a->req);
    llm_sched_assert(sched);
}


static inline void
read_events(void)
{
    ask_t              *a;
    uint32_t            i;
    const int32_t      *ids;
    const llm_event_t  *ev;

    (void) llm_ring_publish(&port.ring);

    while ((ev = (const llm_event_t *) llm_ring_next(&up)) != NULL) {
        a = &asks[ev->slot];

        switch (ev->type) {

        case LLM_EV_START:
            a->started = ++n_started;
            a->cached = ev->u.start.cached_tokens;
            break;

        case LLM_EV_DONE:
            a->cached = ev->u.done.cached_tokens;
            break;

        case LLM_EV_TEXT:
            ids = llm_ref_data(ev, ev->u.text.ids);

            for (i = 0; i < ev->u.text.ids.len; i++) {
                a->ids[ev->index][a->n_ids[ev->index]++] = ids[i];
            }

            check_scores(a, ev);
            break;

        case LLM_EV_VECTOR:
            a->wrong |= ev->u.vector.first != a->n_vector[ev->index]
                        || ev->u.vector.total > N_STATE;
            memcpy(a->vector[ev->index] + a->n_vector[ev->index],
                   llm_ref_data(ev, ev->u.vector.values),
                   ev->u.vector.values.len * sizeof(float));
            a->n_vector[ev->index] += ev->u.vector.values.len;
            break;

        case LLM_EV_ERROR:
            a->status = ev->u.error.status;
            break;

        default:
            break;
        }
    }

    llm_ring_release(&up);
}


static inline int
step(void)
{
    int        rc;
    llm_err_t  err;

    /* drafted rows cost little here, whatever this machine does */

    if (predicting) {
        sched->speed.line = (llm_line_t) { 2, 22, 220, 402, 2420 };
    }

    rc = llm_sched_step(sched, &err);
    llm_sched_assert(sched);
    assert(llm_zone_get(zone->models[0].figures.running)
           == sched->n_running);

    (void) llm_sched_send_events(sched);
    llm_sched_assert(sched);

    return rc;
}


/* a step, and a wait for a mask if that is all that is to be done before n
   are over: not if what is left are events for slow readers */

static inline void
step_or_wait(uint32_t n)
{
    int  busy;

    busy = step();
    read_events();

    if (!busy && n_over < n && sched->n_held
        && sched->n_held == sched->n_running
        && sched->n_parked == 0 && !llm_sched_can_draw(sched))
    {
        (void) sem_wait(&masks);
    }
}


/* steps until nothing lives; LLM_ERROR when that does not come to an end */

static inline int
run(void)
{
    uint32_t  i, idle;

    idle = 0;

    for (i = 0; i < 200000 && idle < 5; i++) {
        idle = step() ? 0 : idle + 1;
        read_events();
    }

    return idle >= 5 ? LLM_OK : LLM_ERROR;
}


/* the same hash without pages */

static inline int
is_right(const ask_t *a, uint32_t choice, uint32_t max_gen)
{
    int32_t   ids[1024 + MAX_GEN];
    uint64_t  h;
    uint32_t  i, n;

    if (a->n_ids[choice] != max_gen) {
        return 0;
    }

    n = a->n_prompt + max_gen;
    memcpy(ids, a->prompt, a->n_prompt * sizeof(*ids));
    memcpy(ids + a->n_prompt, a->ids[choice], max_gen * sizeof(*ids));

    for (i = 0, h = 0; i < n; i++) {
        if (i >= a->n_prompt && ids[i] != next_of(result_without(ids, i, h))) {
            return 0;
        }

        h = hash_token(h, ids[i], i);
    }

    return 1;
}


/* prompts that share beginnings of random length */

static inline uint32_t
random_prompt(int32_t *ids, uint32_t max)
{
    uint32_t  i, n, same;

    n = 1 + rnd(max);
    same = rnd(max);

    for (i = 0; i < n; i++) {
        ids[i] = i < same ? (int32_t) (i * 7 % 250) : (int32_t) rnd(256);
    }

    return n;
}


static inline uint32_t
free_pages(void)
{
    return llm_pages_available(sched->pages, LLM_KV_FULL);
}


static inline uint32_t
free_windows(void)
{
    return llm_pages_available(sched->pages, LLM_KV_WINDOW);
}

#endif /* LLM_T_SCHED_RIG_H */
