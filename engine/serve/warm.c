/*
 * Warm-up: before a model is ready it runs requests of the engine, one after
 * another:
 *   - a prompt that fills a step
 *   - on a device with graphs, a few tokens for each number of choices, as wide
 *     as a step, and each length of context, so that all graphs are made
 *   - the configuration's prompts, which stay in the prefix cache
 *
 * Their events and metrics go to a zone in the engine's memory, with one
 * pseudo-worker: a warm-up is in no metric.
 */

#include "engine/serve/requests.h"

#include <stdio.h>

#define LLM_WARM_RING    (256u << 10)
#define LLM_WARM_TOKENS  4              /* tokens of an answer: a graph is made
                                           when its step comes again */
#define LLM_WARM_SHORT   64u            /* tokens of the shortest context */
#define LLM_WARM_WIDE    256u           /* up to here each width is twice the
                                           one before, then LLM_WARM_MORE wider,
                                           as are graphs */
#define LLM_WARM_MORE    128u
#define LLM_WARM_WIDEST  512u           /* of a graph */
#define LLM_WARM_FIT     8              /* tokens of the context that the
                                           longest prompt leaves free */


/* ---- the pseudo-worker ---- */

int
llm_internal_open(llm_internal_client_t *n, uint32_t n_models)
{
    size_t            size;
    uint32_t          i;
    llm_zone_model_t  models[LLM_MAX_MODELS];

    for (i = 0; i < n_models; i++) {
        models[i] = (llm_zone_model_t) { .parallel = 1 };
    }

    size = llm_align(llm_zone_size(1, n_models, LLM_WARM_RING), 64);
    n->mem = aligned_alloc(64, size);

    if (n->mem == NULL) {
        return LLM_ERROR;
    }

    memset(n->mem, 0, size);

    n->zone = llm_zone_init(n->mem, 1, models, n_models, LLM_WARM_RING, 1);

    if (n->zone == NULL) {
        return LLM_ERROR;
    }

    llm_port_open(&n->peer.port, n->zone, NULL, 0, -1);
    llm_ring_consumer(&n->up, llm_zone_at(n->zone, n->peer.port.worker->up));

    return LLM_OK;
}


void
llm_internal_close(llm_internal_client_t *n)
{
    free(n->mem);
}


void
llm_internal_drain(llm_internal_client_t *n)
{
    if (n->peer.n_live == 0) {
        return;
    }

    (void) llm_ring_publish(&n->peer.port.ring);

    while (llm_ring_next(&n->up) != NULL) { /* void */ }

    llm_ring_release(&n->up);
}


/* ---- the requests ---- */

static uint32_t
llm_warm_longest(const llm_instance_t *m)
{
    return m->runner.ctx > LLM_WARM_FIT ? m->runner.ctx - LLM_WARM_FIT : 1;
}


/* a request for `width` choices with a prompt of n arbitrary tokens; longer
   prompts begin as shorter ones do.  NULL: no memory */

static llm_request_t *
llm_warm_make(const llm_instance_t *m, uint32_t n, uint32_t width,
    uint32_t flags)
{
    size_t             size;
    int32_t           *ids;
    uint32_t           i;
    llm_request_t     *msg;
    llm_prompt_ref_t  *p;

    size = llm_align(sizeof(*msg) + sizeof(*p) + n * sizeof(*ids), 8);

    msg = calloc(1, size);
    if (msg == NULL) {
        return NULL;
    }

    msg->head.size = (uint32_t) size;
    msg->head.type = LLM_MSG_REQUEST;
    msg->model = m->index;
    msg->kind = LLM_KIND_COMPLETION;
    msg->task = LLM_TASK_GENERATE;
    msg->flags = LLM_REQ_IGNORE_EOS|flags;
    msg->n = width;
    msg->max_tokens = LLM_WARM_TOKENS;
    msg->weight = 1000;
    msg->arrival_us = llm_now_us();
    msg->salt = 1;                      /* shares pages with no client */
    llm_sampling_default(&msg->sampling);
    msg->sampling.n_logprobs = -1;

    p = (llm_prompt_ref_t *) (msg + 1);
    msg->prompts.off = sizeof(*msg);
    msg->prompts.len = 1;
    p->is_ids = 1;
    p->ref.off = (uint32_t) (sizeof(*msg) + sizeof(*p));
    p->ref.len = n;

    ids = (int32_t *) (p + 1);

    for (i = 0; i < n; i++) {
        ids[i] = (int32_t) ((i * 7919u + 31) % m->runner.n_vocab);
    }

    return msg;
}


/* the task that the model can do: GENERATE, EMBED, or else TOKENIZE */

static uint32_t
llm_warm_task(const llm_instance_t *m, llm_request_t *msg)
{
    llm_err_t  err;

    for (msg->task = LLM_TASK_GENERATE; msg->task <= LLM_TASK_EMBED;
         msg->task++)
    {
        if (llm_prep_task(&m->env, msg, &err) == LLM_OK) {
            return msg->task;
        }
    }

    return LLM_TASK_TOKENIZE;
}


/* a prompt that fills a step */

static llm_request_t *
llm_warm_fill(const llm_instance_t *m)
{
    llm_request_t  *msg;

    msg = llm_warm_make(m, llm_min(m->runner.chunk, llm_warm_longest(m)), 1,
                        LLM_REQ_NO_CACHE);
    if (msg) {
        msg->task = llm_warm_task(m, msg);
    }

    return msg;
}


/* how many lengths there are: each is twice the one before, but the last one is
   `longest` */

static uint32_t
llm_warm_lengths(uint32_t longest)
{
    uint32_t  n, length;

    for (n = 1, length = LLM_WARM_SHORT; length < longest; length *= 2) {
        n++;
    }

    return n;
}


/* the width with this number; the last one is `widest` */

static uint32_t
llm_warm_width(uint32_t number, uint32_t widest)
{
    uint32_t  width;

    for (width = 1; number && width < widest; number--) {
        width = width < LLM_WARM_WIDE ? width * 2 : width + LLM_WARM_MORE;
    }

    return llm_min(width, widest);
}


static uint32_t
llm_warm_widths(uint32_t widest)
{
    uint32_t  n;

    for (n = 1; llm_warm_width(n - 1, widest) < widest; n++) { /* void */ }

    return n;
}


/* the request with this number; NULL: there are no more, or no memory */

static llm_request_t *
llm_warm_request(const llm_instance_t *m, uint32_t number)
{
    uint32_t              lengths, widths, longest, widest;
    llm_request_t        *msg, some;
    const llm_request_t  *given;

    if (number == 0) {
        return llm_warm_fill(m);
    }

    number--;

    longest = llm_warm_longest(m);
    widest = llm_min(m->runner.max_seqs, LLM_WARM_WIDEST);
    lengths = llm_warm_lengths(longest);
    widths = llm_warm_widths(widest);

    /* only devices that overlap steps have graphs */

    memset(&some, 0, sizeof(some));

    if (!m->runner.overlaps || llm_warm_task(m, &some) != LLM_TASK_GENERATE) {
        lengths = 0;
    }

    if (number < lengths * widths) {
        return llm_warm_make(m, llm_min(LLM_WARM_SHORT << number / widths,
                                        longest),
                             llm_warm_width(number % widths, widest), 0);
    }

    number -= lengths * widths;

    if (number >= m->conf.n_prompts) {
        return NULL;
    }

    given = m->conf.prompts[number];
    msg = malloc(given->head.size);

    if (msg) {
        memcpy(msg, given, given->head.size);
        msg->arrival_us = llm_now_us();
    }

    return msg;
}


/* ---- the warm-up ---- */

static void
llm_warm_show(llm_instance_t *m, uint32_t warming)
{
    llm_zone_model_state_t  *z;

    z = &m->engine->zone->models[m->index];

    if (m->role != LLM_INSTANCE_MODEL) {
        llm_zone_set(z->command.warming, warming);
    }

    if (m->permille[0] == &z->permille || m->permille[1]) {
        llm_zone_set(z->warming, warming);
    }
}


void
llm_warm_begin(llm_instance_t *m)
{
    llm_instance_permille(m, 1000);
    llm_warm_show(m, 1);
    llm_sched_count_in(m->sched, m->engine->internal.zone, NULL);

    m->warm.running = 1;
    m->warm.next = 0;
    m->warm.start_us = llm_now_us();
}


int
llm_warm_step(llm_instance_t *m, int *over)
{
    llm_req_t      *r;
    llm_engine_t   *e;
    llm_request_t  *msg;

    e = m->engine;
    *over = 0;

    if (!m->warm.running || m->warm.n_live) {
        return 0;
    }

    msg = llm_warm_request(m, m->warm.next++);
    r = msg ? llm_req_create(msg) : NULL;

    if (r == NULL) {
        llm_engine_log(e, LLM_LOG_NOTICE, "model \"%s\" has warmed up in "
                       "%.1f s", m->conf.name,
                       (double) (llm_now_us() - m->warm.start_us) * 1e-6);
        llm_warm_stop(m);
        *over = 1;

        return 1;
    }

    r->own = 1;
    r->model = m->index;
    r->instance = m;
    r->out.to.port = &e->internal.peer.port;
    r->out.to.slot = UINT32_MAX;
    m->warm.n_live++;

    llm_engine_enter(e, &e->internal.peer, r);
    llm_engine_count(e, r, llm_req_bytes(r));
    llm_engine_prepare(e, r);

    return 1;
}


/* fails live warm-up requests, before the model's metrics go to clients'
   zone again */

static void
llm_warm_break(llm_instance_t *m)
{
    llm_err_t   err;
    llm_req_t  *r, *next;

    (void) llm_fail_with(&err, 503, NULL, NULL, "the warm-up was stopped");

    for (r = m->engine->live; r; r = next) {
        next = r->next;

        if (r->own && r->instance == m) {
            llm_engine_fail(m->engine, r, &err, 0);
        }
    }
}


void
llm_warm_stop(llm_instance_t *m)
{
    if (m->warm.running) {
        m->warm.running = 0;
        llm_warm_show(m, 0);
        llm_warm_break(m);

        if (m->sched) {
            llm_sched_count_in(m->sched, m->engine->zone, m->engine->kept);
        }
    }
}
