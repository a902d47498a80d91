/*
 * The scheduler over a model that is a hash: its KV pages hold the tokens
 * themselves and the next token is a hash of all that a row can see through
 * its page table.  A wrong page, a lost token, a wrong position and the text
 * differs from what the same hash says without pages.
 */

#include "engine/sched/sched_internal.h"

#include <sys/mman.h>

#include "t/unit/tap.h"
#include "t/unit/tiny_vocab.h"

#define N_VOCAB    257
#define MAX_PAGES  512
#define MAX_REQS   64
#define MAX_GEN    200

/* the model */
static int32_t    kv[MAX_PAGES][LLM_KV_PAGE];
static float      rows[256][N_VOCAB];
static uint32_t   n_copies;
static uint64_t   n_rows;
static uint32_t   max_rows_beside;      /* prompt rows beside decode rows */
static int        fail_at = -1;         /* which step fails */
static uint32_t   n_steps;

static tiny_vocab_t   tiny;
static void          *mem;
static size_t         mem_size;
static llm_zone_t    *zone;
static llm_port_t     port;
static llm_ring_t     up;
static llm_sched_t   *sched;

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
} ask_t;

static ask_t      asks[MAX_REQS];
static uint32_t   n_over;
static uint32_t   n_started;
static uint64_t   state = 1234567;


static uint32_t
rnd(uint32_t n)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;

    return (uint32_t) ((state >> 20) % n);
}


static uint64_t
hash_token(uint64_t h, int32_t id, uint32_t pos)
{
    h = (h ^ (uint32_t) id) * 0x9fb21c651e98df25ull;

    return (h ^ h >> 32 ^ pos) * 0xff51afd7ed558ccdull;
}


static int32_t
next_of(uint64_t h)
{
    return (int32_t) ((h >> 13) % 256);
}


static void
fill_row(float *row, uint64_t h)
{
    uint32_t  k;

    memset(row, 0, N_VOCAB * sizeof(*row));

    for (k = 0; k < 256; k++) {
        row[k] = (float) (h >> k % 40 & 7) * 0.25f;
    }

    row[next_of(h)] = 20;
}


static int
forward(void *data, const llm_batch_t *b, llm_err_t *err)
{
    uint64_t         h;
    uint32_t         i, k, row, out, decode;
    const uint32_t  *pages;

    (void) data;

    if ((int) n_steps++ == fail_at) {
        return llm_fail(err, "the device is on fire");
    }

    out = 0;
    decode = 0;
    n_rows += b->n_tokens;

    /* all is written before anything is read, as on a real device */

    for (i = 0; i < b->n_seqs; i++) {
        pages = b->pages + (size_t) i * b->max_pages;

        for (row = b->seq_rows[i]; row < b->seq_rows[i + 1]; row++) {
            kv[pages[b->pos[row] / LLM_KV_PAGE]][b->pos[row] % LLM_KV_PAGE] =
                b->tokens[row];
        }

        decode += b->seq_rows[i + 1] - b->seq_rows[i] == 1;
    }

    if (decode) {
        max_rows_beside = llm_max(max_rows_beside, b->n_tokens - decode);
    }

    for (i = 0; i < b->n_seqs; i++) {
        pages = b->pages + (size_t) i * b->max_pages;

        for (k = 0, h = 0; k < b->kv_len[i]; k++) {
            h = hash_token(h, kv[pages[k / LLM_KV_PAGE]][k % LLM_KV_PAGE], k);
            row = b->seq_rows[i + 1] - b->kv_len[i] + k;

            if (k + b->seq_rows[i + 1] >= b->kv_len[i] + b->seq_rows[i]
                && out < b->n_out && b->out_rows[out] == row)
            {
                fill_row(rows[out++], h);
            }
        }
    }

    return out == b->n_out ? LLM_OK : llm_fail(err, "rows out of order");
}


static const float *
logits(void *data, uint32_t i)
{
    (void) data;

    return rows[i];
}


static void
copy_page(void *data, uint32_t src, uint32_t dst)
{
    (void) data;

    memcpy(kv[dst], kv[src], sizeof(kv[dst]));
    n_copies++;
}


static void
ended(void *data, llm_req_t *r)
{
    ask_t  *a = &asks[r->to.slot];

    (void) data;

    a->req = NULL;
    a->over = 1;
    a->order = ++n_over;
    llm_req_free(r);
}


static void
open_all(uint32_t n_pages, uint32_t ctx, uint32_t max_seqs, uint32_t chunk,
    size_t ring)
{
    llm_err_t         err;
    llm_zone_model_t  m = { max_seqs };
    llm_sched_conf_t  conf;

    memset(asks, 0, sizeof(asks));
    memset(&conf, 0, sizeof(conf));
    n_over = 0;
    n_started = 0;
    n_copies = 0;
    n_rows = 0;
    n_steps = 0;
    max_rows_beside = 0;
    fail_at = -1;

    mem_size = llm_zone_size(1, 1, ring);
    mem = mmap(NULL, mem_size, PROT_READ|PROT_WRITE,
               MAP_SHARED|MAP_ANONYMOUS, -1, 0);
    zone = llm_zone_init(mem, 1, &m, 1, ring, 1000);
    llm_port_open(&port, zone, 0, -1);
    llm_ring_consumer(&up, llm_zone_at(zone, port.worker->up));

    conf.runner.n_vocab = N_VOCAB;
    conf.runner.ctx = ctx;
    conf.runner.batch = max_seqs + llm_max(chunk, 16u);
    conf.runner.chunk = chunk;
    conf.runner.max_seqs = max_seqs;
    conf.runner.max_out = max_seqs + 7;
    conf.runner.n_pages = n_pages;
    conf.runner.forward = forward;
    conf.runner.logits = logits;
    conf.runner.copy_page = copy_page;
    conf.vocab = tiny.vocab;
    conf.zone = zone;
    conf.ended = ended;

    sched = llm_sched_create(&conf, &err);

    if (sched == NULL) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }
}


static void
close_all(void)
{
    llm_sched_free(sched);
    munmap(mem, mem_size);
}


/* the prompt is to be echoed, a character a token, with probabilities */

static void
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

static void
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


/* what a preparation thread does, for a prompt of ids */

static ask_t *
ask(uint32_t slot, const int32_t *ids, uint32_t n_ids, uint32_t n,
    uint32_t max_gen, uint32_t flags)
{
    ask_t          *a;
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
    r->to.port = &port;
    r->to.slot = slot;
    r->to.ticket = slot + 1;
    r->n_prompts = 1;
    r->prompts = calloc(1, sizeof(*r->prompts));
    r->prompts[0].ids = malloc(n_ids * sizeof(*ids));
    memcpy(r->prompts[0].ids, ids, n_ids * sizeof(*ids));
    r->prompts[0].n = n_ids;
    r->prompt_tokens = n_ids;
    r->seqs = calloc(n, sizeof(*r->seqs));
    r->n_seqs = n;

    for (i = 0; i < n; i++) {
        q = &r->seqs[i];
        q->req = r;
        q->index = i;
        q->prompt = &r->prompts[0];
        q->max_gen = max_gen;
        q->stop_id = -1;
        q->sampler = llm_sampler_create(&msg->sampling, i, NULL, 0, N_VOCAB);
        q->echo_due = (flags & LLM_REQ_ECHO) != 0;
        llm_emit_init(&q->emit, tiny.vocab, &r->stops,
                      LLM_EMIT_STREAM|LLM_EMIT_IDS
                      |(q->echo_due ? LLM_EMIT_PROBS : 0), 0, 0);
    }

    if (flags & LLM_REQ_ECHO) {
        want_scores(&r->prompts[0]);
    }

    a->req = r;

    return a;
}


static void
add(ask_t *a)
{
    static uint64_t  serial;

    a->req->serial = ++serial;
    llm_sched_add(sched, a->req);
}


static void
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

        case LLM_EV_TEXT:
            ids = llm_ref_data(ev, ev->u.text.ids);

            for (i = 0; i < ev->u.text.ids.len; i++) {
                a->ids[ev->index][a->n_ids[ev->index]++] = ids[i];
            }

            check_scores(a, ev);
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


static int
step(void)
{
    int        rc;
    llm_err_t  err;

    rc = llm_sched_step(sched, &err);
    (void) llm_sched_tell(sched);

    return rc;
}


/* steps until nothing lives; LLM_ERROR when that does not come to an end */

static int
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

static int
is_right(const ask_t *a, uint32_t choice, uint32_t max_gen)
{
    int32_t   id;
    uint64_t  h;
    uint32_t  i;

    h = 0;

    for (i = 0; i < a->n_prompt; i++) {
        h = hash_token(h, a->prompt[i], i);
    }

    if (a->n_ids[choice] != max_gen) {
        return 0;
    }

    for (i = 0; i < max_gen; i++) {
        id = next_of(h);

        if (a->ids[choice][i] != id) {
            return 0;
        }

        h = hash_token(h, id, a->n_prompt + i);
    }

    return 1;
}


/* prompts that share beginnings of random length */

static uint32_t
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


static uint32_t
free_pages(void)
{
    return llm_pages_available(sched->pages);
}


/* everything at once: few pages, few seats, cancels, pauses */

static void
test_storm(uint32_t n_pages, uint32_t seats, uint32_t chunk, uint32_t flags)
{
    int        good, stuck;
    ask_t     *a;
    int32_t    ids[200];
    uint32_t   i, k, n, gen[MAX_REQS], echo[MAX_REQS], checked, added, steps;
    uint64_t   preempted;

    open_all(n_pages, 300, seats, chunk, 1 << 17);
    added = 0;
    stuck = 0;

    for (steps = 0; n_over < MAX_REQS || added < MAX_REQS; steps++) {
        if (steps > 200000) {
            stuck = 1;
            break;
        }

        if (added < MAX_REQS && rnd(3) == 0) {
            n = random_prompt(ids, 180);
            gen[added] = 1 + rnd(100);
            echo[added] = flags & LLM_REQ_ECHO ? rnd(2) : 0;
            gen[added] = echo[added] && rnd(4) == 0 ? 0 : gen[added];
            a = ask(added, ids, n, 1 + rnd(3), gen[added],
                    echo[added] ? flags : flags & ~LLM_REQ_ECHO);
            a->req->msg->priority = (int32_t) rnd(3);
            a->req->msg->tenant = rnd(3);
            add(a);
            added++;
        }

        a = &asks[rnd(MAX_REQS)];

        if (a->req) {
            switch (rnd(12)) {

            case 0:
                if (rnd(4) == 0) {
                    llm_sched_remove(sched, a->req);
                    llm_req_free(a->req);
                    a->req = NULL;
                    a->cancelled = 1;
                    a->order = ++n_over;
                }

                break;

            case 1:
                a->req->paused = 1;
                break;

            default:
                a->req->paused = 0;
            }
        }

        (void) step();

        if (rnd(4)) {
            read_events();
        }
    }

    for (i = 0; i < MAX_REQS; i++) {
        if (asks[i].req) {
            asks[i].req->paused = 0;
        }
    }

    (void) run();
    good = 1;
    checked = 0;

    for (i = 0; i < MAX_REQS; i++) {
        for (k = 0; k < asks[i].n && !asks[i].cancelled; k++) {
            good &= is_right(&asks[i], k, gen[i]) && !asks[i].wrong
                    && asks[i].scored[k]
                       == (echo[i] ? asks[i].n_prompt + gen[i] : 0);
            checked++;
        }
    }

    preempted = llm_zone_get(zone->models[0].figures.preemptions);

    ok(good && !stuck && checked > 60, "%u pages, %u seats, chunks of %u: %u "
       "choices as alone, %llu preemptions", n_pages, seats, chunk, checked,
       (unsigned long long) preempted);
    is_int(free_pages(), n_pages, "all pages came back");

    close_all();
}


/* ten sequences that need three times the pages there are */

static void
test_preempt(void)
{
    int       good;
    int32_t   ids[200];
    uint32_t  i, k;

    /* each needs (100 + 60) / 16 = 10 pages */

    open_all(34, 200, 10, 64, 1 << 17);

    for (i = 0; i < 10; i++) {
        for (k = 0; k < 100; k++) {
            ids[k] = (int32_t) rnd(256);
        }

        add(ask(i, ids, 100, 1, 60, 0));
    }

    is_int(run(), LLM_OK, "comes to an end");

    for (i = 0, good = 1; i < 10; i++) {
        good &= asks[i].over && is_right(&asks[i], 0, 60);
    }

    ok(good, "ten sequences on a third of the pages are whole");
    ok(llm_zone_get(zone->models[0].figures.preemptions) > 0,
       "some were preempted");
    is_int(asks[0].order, 1, "the oldest ended first");

    close_all();
}


static void
test_order(void)
{
    int32_t   ids[4] = { 1, 2, 3, 4 };
    uint32_t  i;
    int32_t   priority[6] = { 0, 0, 5, -5, 5, 0 };
    uint32_t  want[6] = { 3, 4, 1, 6, 2, 5 };

    open_all(32, 64, 1, 16, 1 << 17);

    for (i = 0; i < 6; i++) {
        ids[0] = (int32_t) i;
        (void) ask(i, ids, 4, 1, 5, 0);
        asks[i].req->msg->priority = priority[i];
        add(&asks[i]);
    }

    (void) run();

    for (i = 0; i < 6; i++) {
        is_int(asks[i].order, want[i], "priority %d, request %u", priority[i],
               i);
    }

    close_all();
}


/* a tenant with many requests does not keep one with few waiting */

static void
test_fair(void)
{
    int32_t   ids[8];
    uint32_t  i, last;

    open_all(64, 64, 2, 16, 1 << 17);

    for (i = 0; i < 40; i++) {
        ids[0] = (int32_t) i;
        memset(ids + 1, 0, sizeof(ids) - 4);
        (void) ask(i, ids, 8, 1, 20, 0);
        asks[i].req->msg->tenant = i < 30 ? 1 : 2;
        add(&asks[i]);
    }

    (void) run();

    for (last = 0, i = 30; i < 40; i++) {
        last = llm_max(last, asks[i].order);
    }

    ok(last >= 18 && last <= 24, "10 of one tenant behind 30 of another end "
       "among the first %u", last);

    close_all();

    /* three times the weight, three times the tokens */

    open_all(64, 64, 2, 16, 1 << 17);

    for (i = 0; i < 60; i++) {
        ids[0] = (int32_t) i;
        (void) ask(i, ids, 8, 1, 20, 0);
        asks[i].req->msg->tenant = i < 30 ? 1 : 2;
        asks[i].req->msg->weight = i < 30 ? 1000 : 3000;
        add(&asks[i]);
    }

    (void) run();

    for (last = 0, i = 30; i < 60; i++) {
        last = llm_max(last, asks[i].order);
    }

    ok(last >= 37 && last <= 44, "30 of weight 3 against 30 of weight 1 end "
       "among the first %u", last);

    close_all();
}


/* a tenant pays for the rows that were computed, no more and no less */

static void
test_paid(void)
{
    int32_t        ids[600];
    uint32_t       i;
    uint64_t       paid;
    llm_tenant_t  *t;

    for (i = 0; i < 600; i++) {
        ids[i] = (int32_t) rnd(256);
    }

    open_all(300, 700, 8, 48, 1 << 17);

    for (i = 0; i < 8; i++) {
        ids[210] = (int32_t) i;
        add(ask(i, ids, 230, 1, 20, 0));
    }

    t = asks[0].req->tenant;
    (void) run();

    /* the last token of each is never computed */
    is_int(t->time / 1000, n_rows + 8, "eight that begin alike pay for %u rows",
           (unsigned) n_rows);

    paid = t->time / 1000 - n_rows;

    ids[0]++;
    add(ask(0, ids, 600, 1, 20, LLM_REQ_NO_CACHE));
    (void) step();
    ok(t->time / 1000 - n_rows - paid > 400, "a prompt is paid in advance");
    (void) step();
    llm_sched_remove(sched, asks[0].req);
    llm_req_free(asks[0].req);

    is_int(t->time / 1000 - n_rows, paid, "who goes away pays for what was "
           "computed");

    close_all();

    /* on few pages: preempted, and what is computed again is free */

    open_all(24, 300, 3, 48, 1 << 17);

    for (i = 0; i < 3; i++) {
        ids[0] = (int32_t) i;
        add(ask(i, ids, 100, 1, 100, 0));
    }

    t = asks[0].req->tenant;
    (void) run();

    ok(llm_zone_get(zone->models[0].figures.preemptions) > 0
       && n_rows > 3 * 199, "some are preempted");
    is_int(t->time / 1000, 3 * 200, "and pay once");

    close_all();
}


static void
test_prefix(void)
{
    int32_t   ids[200];
    uint32_t  i;
    uint64_t  before;

    for (i = 0; i < 200; i++) {
        ids[i] = (int32_t) (i % 250);
    }

    open_all(64, 300, 4, 64, 1 << 17);

    add(ask(0, ids, 100, 1, 10, 0));
    (void) run();
    is_int(asks[0].cached, 0, "nothing is cached at first");
    is_int(n_rows, 109, "a row for each token but the last");

    before = n_rows;
    add(ask(1, ids, 100, 1, 10, 0));
    (void) run();
    is_int(asks[1].cached, 96, "the whole pages of the prompt are");
    is_int(n_rows - before, 13, "only the rest is computed");
    ok(is_right(&asks[1], 0, 10), "the text is the same");

    before = n_rows;
    add(ask(2, ids, 96, 1, 1, 0));
    (void) run();
    is_int(asks[2].cached, 80, "never the last token");
    is_int(n_rows - before, 16, "so that there are logits");
    ok(is_right(&asks[2], 0, 1), "the text is right");

    add(ask(3, ids, 100, 1, 10, LLM_REQ_NO_CACHE));
    (void) run();
    is_int(asks[3].cached, 0, "not when the request does not want it");
    ok(is_right(&asks[3], 0, 10), "the text is the same");

    (void) ask(4, ids, 100, 1, 10, 0);
    asks[4].req->salt.tenant = 9;
    add(&asks[4]);
    (void) run();
    is_int(asks[4].cached, 0, "not for another tenant");

    /* a second turn: the answer is part of the prompt */

    memcpy(ids + 100, asks[1].ids[0], 10 * sizeof(*ids));
    add(ask(5, ids, 150, 1, 5, 0));
    (void) run();
    ok(asks[5].cached >= 96, "the second turn finds %u tokens",
       asks[5].cached);
    ok(is_right(&asks[5], 0, 5), "and is right");

    close_all();
}


/* eight that come together and begin alike compute the beginning once */

static void
test_together(void)
{
    int       good;
    int32_t   ids[300];
    uint32_t  i;
    uint64_t  n;

    for (i = 0; i < 300; i++) {
        ids[i] = (int32_t) rnd(256);
    }

    open_all(300, 400, 8, 48, 1 << 17);

    for (i = 0; i < 8; i++) {
        ids[210] = (int32_t) i;
        add(ask(i, ids, 230, 1, 20, 0));
    }

    (void) run();

    for (i = 0, good = 1; i < 8; i++) {
        good &= is_right(&asks[i], 0, 20);
    }

    n = llm_zone_get(zone->models[0].figures.prompt_computed);

    ok(good, "eight that begin alike are right");
    is_int(n, 230 + 7 * (230 - 208), "the beginning was computed once");

    close_all();
}


static void
test_choices(uint32_t seats, uint32_t flags)
{
    int       good;
    int32_t   ids[100];
    uint32_t  i;
    uint64_t  prompt;

    for (i = 0; i < 100; i++) {
        ids[i] = (int32_t) rnd(256);
    }

    open_all(64, 300, seats, 64, 1 << 17);
    add(ask(0, ids, 70, 3, 40, flags));
    (void) run();

    for (i = 0, good = 1; i < 3; i++) {
        good &= is_right(&asks[0], i, 40);
    }

    prompt = llm_zone_get(zone->models[0].figures.prompt_computed);

    ok(good, "three choices on %u seats are right", seats);

    if (seats >= 3) {
        is_int(prompt, 70, "the prompt was computed once");
        is_int(n_copies, 2, "its last page was copied for the others");
    }

    is_int(free_pages(), 64, "all pages came back");
    close_all();
}


/* a stream beside a long prompt gets a token in every step */

static void
test_chunks(void)
{
    int32_t   ids[1000];
    uint32_t  i, steps, got;

    for (i = 0; i < 1000; i++) {
        ids[i] = (int32_t) rnd(256);
    }

    open_all(200, 1200, 4, 512, 1 << 17);
    add(ask(0, ids, 20, 1, 150, 0));

    while (asks[0].n_ids[0] < 10) {
        (void) step();
        read_events();
    }

    add(ask(1, ids, 1000, 1, 5, 0));
    got = asks[0].n_ids[0];

    for (steps = 0; asks[1].n_ids[0] == 0 && steps < 1000; steps++) {
        (void) step();
        read_events();
    }

    is_int(asks[0].n_ids[0] - got, steps, "a token in each of the %u steps of "
           "a long prompt", steps);
    ok(steps >= 20, "the prompt took many steps");
    ok(max_rows_beside <= 1000 / 20, "no more than %u of its rows in one",
       max_rows_beside);
    (void) run();
    ok(is_right(&asks[0], 0, 150) && is_right(&asks[1], 0, 5),
       "both are right");

    close_all();
}


/* a reader that does not read stops its own sequences and nobody else's */

static void
test_parked(void)
{
    int32_t   ids[4] = { 9, 8, 7, 6 };
    uint32_t  i, got;

    open_all(64, 300, 1, 16, 1 << 17);

    add(ask(0, ids, 4, 1, 100, 0));

    for (i = 0; i < 10; i++) {
        (void) step();
        read_events();
    }

    asks[0].req->paused = 1;
    got = asks[0].n_ids[0];
    ids[0] = 5;
    add(ask(1, ids, 4, 1, 50, 0));

    for (i = 0; i < 100; i++) {
        (void) step();
        read_events();
    }

    is_int(asks[0].n_ids[0], got, "no token for a paused one");
    ok(asks[1].over && is_right(&asks[1], 0, 50), "its seat went to another");
    is_int(llm_zone_get(zone->models[0].figures.parked), 1, "it is parked");

    asks[0].req->paused = 0;
    (void) run();
    ok(is_right(&asks[0], 0, 100), "it goes on where it was");

    /* a ring that nobody empties */

    for (i = 0; i < 8; i++) {
        ids[0] = (int32_t) (20 + i);
        add(ask(2 + i, ids, 4, 2, 150, 0));
    }

    for (i = 0; i < 100000 && step(); i++) { /* void */ }

    ok(i < 100000, "a full ring brings the steps to an end");

    (void) run();

    for (i = 0, got = 0; i < 8; i++) {
        got += is_right(&asks[2 + i], 0, 150) && is_right(&asks[2 + i], 1, 150);
    }

    is_int(got, 8, "and nothing is lost");

    close_all();
}


static void
test_failure(void)
{
    int        rc;
    int32_t    ids[4] = { 1, 2, 3, 4 };
    llm_err_t  err;

    open_all(64, 300, 4, 16, 1 << 17);
    fail_at = 3;

    add(ask(0, ids, 4, 2, 100, 0));
    add(ask(1, ids, 4, 1, 100, 0));

    while ((rc = llm_sched_step(sched, &err)) > 0) {
        (void) llm_sched_tell(sched);
    }

    is_int(rc, LLM_ERROR, "the step fails");
    is_str(err.msg, "the device is on fire", "with the reason");

    (void) run();
    is_int(asks[0].status, 500, "its requests fail");
    is_int(asks[1].status, 500, "all of them");
    is_int(free_pages(), 64, "and give their pages back");

    ids[0] = 77;
    add(ask(2, ids, 4, 1, 20, 0));
    (void) run();
    ok(is_right(&asks[2], 0, 20), "the next one works");

    close_all();
}


int
main(void)
{
    llm_err_t  err;

    if (tv_open(&tiny, NULL, NULL, 0, &err) != LLM_OK) {
        printf("Bail out! %s\n", err.msg);
        return 1;
    }

    test_prefix();
    test_together();
    test_choices(4, 0);
    test_choices(4, LLM_REQ_NO_CACHE);
    test_choices(1, 0);
    test_choices(2, 0);
    test_order();
    test_fair();
    test_paid();
    test_chunks();
    test_parked();
    test_preempt();
    test_failure();
    test_storm(200, 8, 64, 0);
    test_storm(40, 8, 64, 0);
    test_storm(25, 6, 7, 0);
    test_storm(19, 3, 1, 0);
    test_storm(30, 6, 33, LLM_REQ_NO_CACHE);
    test_storm(200, 8, 64, LLM_REQ_ECHO);
    test_storm(25, 6, 7, LLM_REQ_ECHO);
    test_storm(30, 6, 33, LLM_REQ_ECHO|LLM_REQ_NO_CACHE);

    tv_close(&tiny);

    return done_testing();
}
