/*
 * An engine with clients in one process, for the tests: the zone in mapped
 * memory, requests built by hand, answers gathered per slot.
 */

#ifndef LLM_RIG_H
#define LLM_RIG_H

#include "engine/llm.h"
#include "engine/sample/sampler.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "t/unit/tap.h"

#define RIG_WORKERS   4
#define RIG_SLOTS     256
#define RIG_CHOICES   8
#define RIG_IDS       8192

/* what came back for one slot */
typedef struct {
    uint64_t      ticket;
    int           over;                 /* DONE or ERROR was seen */
    int           prepared;
    uint64_t      answer_tokens;        /* that PREPARED says */
    int           started;
    int           wrong;                /* events that came out of order */
    uint32_t      prompt_tokens;
    uint32_t      cached_tokens;
    uint32_t      completion_tokens;
    uint32_t      n_finished;
    uint32_t      status;               /* of the error */
    uint32_t      retry_after;
    char          msg[600];
    char          code[64];

    llm_buf_t     text[RIG_CHOICES];
    uint32_t      n_ids[RIG_CHOICES];
    uint32_t      n_probs[RIG_CHOICES];
    uint32_t      n_prompt_ids[RIG_CHOICES];
    uint32_t      n_tokens[RIG_CHOICES];
    uint32_t      n_events[RIG_CHOICES];
    uint32_t      reason[RIG_CHOICES];
    char          stop[RIG_CHOICES][64];
    int32_t       stop_id[RIG_CHOICES];
    uint32_t      usage[RIG_CHOICES];
    uint64_t      first_us;             /* of the first text */
    uint64_t      last_us;
    uint64_t      over_us;
    llm_period_t  when;                 /* it was prepared */

    /* n_ids and n_probs of them; not cleared: most slots never touch their
       half a megabyte */
    int32_t       ids[RIG_CHOICES][RIG_IDS];
    float         probs[RIG_CHOICES][RIG_IDS];
} rig_answer_t;

typedef struct {
    void          *mem;
    size_t         size;
    llm_zone_t    *zone;
    llm_engine_t  *engine;
    int            engine_fd;
    int            worker_fds[RIG_WORKERS];
    uint32_t       n_workers;
    llm_client_t  *clients[RIG_WORKERS];
    rig_answer_t  *answers[RIG_WORKERS];      /* [RIG_SLOTS] */
    llm_engine_model_t  models[4];
    uint32_t       n_models;
    const char    *backend_dir;         /* NULL: beside the program */
    size_t         max_bytes;           /* of all requests; 0: the default */
} rig_t;


/* lines of the log that have this in them, and those that are errors; set
   before there is an engine, whose threads count */
static const char   *rig_look;
static atomic_uint   rig_seen;
static atomic_uint   rig_errors;


static void
rig_log(void *data, int level, const char *msg)
{
    (void) data;

    rig_errors += level <= LLM_LOG_ERR;
    rig_seen += rig_look && strstr(msg, rig_look);

    if (level <= LLM_LOG_WARN || getenv("RIG_LOG")) {
        printf("# engine: %s\n", msg);
    }
}


static inline int
rig_engine(rig_t *r)
{
    llm_err_t           err;
    llm_engine_conf_t   conf;

    memset(&conf, 0, sizeof(conf));
    conf.zone = r->zone;
    conf.models = r->models;
    conf.n_models = r->n_models;
    conf.engine_fd = r->engine_fd;
    conf.worker_fds = r->worker_fds;
    conf.n_workers = r->n_workers;
    conf.log = rig_log;
    conf.backend_dir = r->backend_dir;
    conf.max_bytes = r->max_bytes;

    r->engine = llm_engine_start(&conf, &err);

    return r->engine != NULL;
}


static inline void
rig_attach(rig_t *r, uint32_t w)
{
    llm_client_conf_t  conf;

    conf.zone = r->zone;
    conf.worker = w;
    conf.engine_fd = r->engine_fd;
    r->clients[w] = llm_client_attach(&conf);
}


/* zone and clients; models were set before.  The engine is not started */

static inline void
rig_open(rig_t *r, uint32_t n_workers, size_t ring, uint32_t queue)
{
    uint32_t          i;
    llm_zone_model_t  zm[4];

    for (i = 0; i < r->n_models; i++) {
        zm[i] = (llm_zone_model_t) { .parallel = r->models[i].parallel };
    }

    r->n_workers = n_workers;
    r->size = llm_zone_size(n_workers, r->n_models, ring);
    r->mem = mmap(NULL, r->size, PROT_READ|PROT_WRITE,
                  MAP_SHARED|MAP_ANONYMOUS, -1, 0);
    r->zone = llm_zone_init(r->mem, n_workers, zm, r->n_models, ring, queue);
    r->engine_fd = eventfd(0, EFD_NONBLOCK|EFD_CLOEXEC);

    for (i = 0; i < n_workers; i++) {
        r->worker_fds[i] = eventfd(0, EFD_NONBLOCK|EFD_CLOEXEC);
        r->answers[i] = calloc(RIG_SLOTS, sizeof(rig_answer_t));
        rig_attach(r, i);
    }
}


static inline void
rig_model(rig_t *r, const char *path, uint32_t ctx, uint32_t parallel)
{
    llm_engine_model_t  *m;

    m = &r->models[r->n_models++];
    memset(m, 0, sizeof(*m));
    m->name = "demo";
    m->path = path;
    m->device = "cpu";
    m->ctx = ctx;
    m->parallel = parallel;
    m->threads = 2;
    m->retry_s = 1;
}


static inline void
rig_reset(rig_answer_t *a)
{
    uint32_t  i;

    for (i = 0; i < RIG_CHOICES; i++) {
        llm_buf_free(&a->text[i]);
    }

    memset(a, 0, offsetof(rig_answer_t, ids));
}


static inline void
rig_close(rig_t *r)
{
    uint32_t  i, k;

    for (i = 0; i < r->n_workers; i++) {
        if (r->clients[i]) {
            llm_client_detach(r->clients[i]);
        }
    }

    if (r->engine) {
        llm_engine_stop(r->engine);
    }

    for (i = 0; i < r->n_workers; i++) {
        for (k = 0; k < RIG_SLOTS; k++) {
            rig_reset(&r->answers[i][k]);
        }

        free(r->answers[i]);
        close(r->worker_fds[i]);
    }

    close(r->engine_fd);
    munmap(r->mem, r->size);
    memset(r, 0, sizeof(*r));
}


static void
rig_event(void *data, const llm_event_t *ev)
{
    uint32_t                    k, i;
    uint64_t                    now;
    rig_answer_t               *a = (rig_answer_t *) data + ev->slot;
    const llm_token_logprob_t  *probs;

    if (a->ticket != ev->ticket || a->over) {
        a->wrong++;
        return;
    }

    now = llm_now_us();
    k = ev->index < RIG_CHOICES ? ev->index : RIG_CHOICES - 1;

    switch (ev->type) {

    case LLM_EV_PREPARED:
        a->wrong += a->prepared || a->started;
        a->prepared = 1;
        a->prompt_tokens = ev->u.prepared.prompt_tokens;
        a->answer_tokens = ev->u.prepared.answer_tokens;
        break;

    case LLM_EV_START:
        a->wrong += a->started;
        a->started = 1;
        a->prompt_tokens = ev->u.start.prompt_tokens;
        a->cached_tokens = ev->u.start.cached_tokens;
        a->when = ev->u.start.prepared;
        break;

    case LLM_EV_TEXT:
        a->wrong += !a->started;
        if (a->text[k].limit == 0) {
            llm_buf_init(&a->text[k], 0);
        }

        llm_buf_add(&a->text[k], llm_ref_data(ev, ev->u.text.text),
                    ev->u.text.text.len);
        a->n_tokens[k] += ev->u.text.n_tokens;

        if (ev->u.text.echo && ev->u.text.ids.len) {
            a->wrong += a->n_events[k] != 0;
            a->n_prompt_ids[k] += ev->u.text.ids.len;
            break;
        }

        a->n_events[k]++;

        for (i = 0; i < ev->u.text.ids.len && a->n_ids[k] < RIG_IDS; i++) {
            a->ids[k][a->n_ids[k]++] =
                ((const int32_t *) llm_ref_data(ev, ev->u.text.ids))[i];
        }

        probs = llm_ref_data(ev, ev->u.text.logprobs);
        for (i = 0;
             i < ev->u.text.logprobs.len && a->n_probs[k] < RIG_IDS;
             i++)
        {
            a->probs[k][a->n_probs[k]++] = probs[i].logprob;
        }

        if (a->first_us == 0) {
            a->first_us = now;
        }

        a->last_us = now;
        break;

    case LLM_EV_FINISH:
        a->n_finished++;
        a->reason[k] = ev->u.finish.reason;
        a->usage[k] = ev->u.finish.completion_tokens;
        a->stop_id[k] = ev->u.finish.stop_id;
        snprintf(a->stop[k], sizeof(a->stop[k]), "%.*s",
                 (int) ev->u.finish.stop.len,
                 (const char *) llm_ref_data(ev, ev->u.finish.stop));
        break;

    case LLM_EV_DONE:
        a->prompt_tokens = ev->u.done.prompt_tokens;
        a->cached_tokens = ev->u.done.cached_tokens;
        a->completion_tokens = ev->u.done.completion_tokens;
        a->over = 1;
        a->over_us = now;
        break;

    case LLM_EV_ERROR:
        a->status = ev->u.error.status;
        a->retry_after = ev->u.error.retry_after;
        a->when = ev->u.error.prepared;
        snprintf(a->msg, sizeof(a->msg), "%.*s", (int) ev->u.error.msg.len,
                 (const char *) llm_ref_data(ev, ev->u.error.msg));
        snprintf(a->code, sizeof(a->code), "%.*s",
                 (int) ev->u.error.code.len,
                 (const char *) llm_ref_data(ev, ev->u.error.code));
        a->over = 1;
        a->over_us = now;
        break;

    default:
        a->wrong++;
    }
}


/* one look at a worker's events; waits up to ms for the eventfd */

static inline uint32_t
rig_poll(rig_t *r, uint32_t w, int ms)
{
    uint32_t       n;
    uint64_t       v;
    struct pollfd  fd;

    n = llm_client_drain(r->clients[w], rig_event, r->answers[w], 0);
    if (n) {
        return n;
    }

    fd.fd = r->worker_fds[w];
    fd.events = POLLIN;

    if (poll(&fd, 1, ms) > 0) {
        (void) !read(fd.fd, &v, sizeof(v));
    }

    return llm_client_drain(r->clients[w], rig_event, r->answers[w], 0);
}


/* until the slot's request is over, or LLM_ERROR after ms */

static inline int
rig_wait(rig_t *r, uint32_t w, uint32_t slot, int ms)
{
    uint64_t  end;

    end = llm_now_us() + (uint64_t) ms * 1000;

    while (!r->answers[w][slot].over) {
        if (llm_now_us() > end) {
            return LLM_ERROR;
        }

        rig_poll(r, w, 20);
    }

    return LLM_OK;
}


/* until the first text of a slot */

static inline int
rig_wait_text(rig_t *r, uint32_t w, uint32_t slot, int ms)
{
    uint64_t  end;

    end = llm_now_us() + (uint64_t) ms * 1000;

    while (r->answers[w][slot].first_us == 0 && !r->answers[w][slot].over) {
        if (llm_now_us() > end) {
            return LLM_ERROR;
        }

        rig_poll(r, w, 20);
    }

    return LLM_OK;
}


/* a request under construction */

static inline void
rig_req(llm_buf_t *b, uint32_t slot)
{
    llm_request_t  *q;

    llm_buf_init(b, 0);
    memset(llm_buf_reserve(b, sizeof(*q)), 0, sizeof(*q));
    b->len = sizeof(*q);

    q = (llm_request_t *) b->data;
    q->head.type = LLM_MSG_REQUEST;
    q->head.slot = slot;
    q->kind = LLM_KIND_COMPLETION;
    q->flags = LLM_REQ_STREAM|LLM_REQ_TOKEN_IDS;
    q->n = 1;
    q->max_tokens = -1;
    q->weight = 1000;
    q->arrival_us = llm_now_us();
    llm_sampling_default(&q->sampling);
    q->sampling.temperature = 0;
    q->sampling.n_logprobs = -1;
}

#define rig_msg(b)  ((llm_request_t *) (b)->data)


static inline llm_ref_t
rig_put(llm_buf_t *b, const void *data, size_t bytes, uint32_t count)
{
    llm_ref_t  ref;

    while (b->len % 8) {
        llm_buf_addc(b, 0);
    }

    ref.off = (uint32_t) b->len;
    ref.len = count;
    llm_buf_add(b, data, bytes);

    return ref;
}


static inline void
rig_text(llm_buf_t *b, const char *text)
{
    llm_ref_t         ref;
    llm_prompt_ref_t  p;

    memset(&p, 0, sizeof(p));
    p.ref = rig_put(b, text, strlen(text), (uint32_t) strlen(text));
    ref = rig_put(b, &p, sizeof(p), 1);
    rig_msg(b)->prompts = ref;
}


static inline void
rig_ids(llm_buf_t *b, const int32_t *ids, uint32_t n)
{
    llm_ref_t         ref;
    llm_prompt_ref_t  p;

    memset(&p, 0, sizeof(p));
    p.is_ids = 1;
    p.ref = rig_put(b, ids, n * sizeof(*ids), n);
    ref = rig_put(b, &p, sizeof(p), 1);
    rig_msg(b)->prompts = ref;
}


/* a chat of one message; answer: its answer is asked for */

static inline void
rig_message(llm_buf_t *b, const char *role, const char *text, int answer)
{
    size_t      o, m, a;
    llm_buf_t   f;
    llm_ref_t   ref;

    llm_buf_init(&f, 0);
    o = llm_flat_open(&f, LLM_FLAT_OBJECT);
    llm_flat_add_str(&f, "messages", 8);
    a = llm_flat_open(&f, LLM_FLAT_ARRAY);
    m = llm_flat_open(&f, LLM_FLAT_OBJECT);
    llm_flat_add_str(&f, "role", 4);
    llm_flat_add_str(&f, role, strlen(role));
    llm_flat_add_str(&f, "content", 7);
    llm_flat_add_str(&f, text, strlen(text));
    llm_flat_close(&f, m, 2);
    llm_flat_close(&f, a, 1);
    llm_flat_add_str(&f, "add_generation_prompt", 21);
    llm_flat_add_bool(&f, answer);
    llm_flat_close(&f, o, 2);

    ref = rig_put(b, f.data, f.len, (uint32_t) f.len);
    rig_msg(b)->chat = ref;
    rig_msg(b)->kind = LLM_KIND_CHAT;
    llm_buf_free(&f);
}


static inline void
rig_chat(llm_buf_t *b, const char *text)
{
    rig_message(b, "user", text, 1);
}


static inline void
rig_stops(llm_buf_t *b, const char *const *stops, uint32_t n)
{
    uint32_t   i;
    llm_ref_t  ref, refs[LLM_MAX_STOPS];

    for (i = 0; i < n; i++) {
        refs[i] = rig_put(b, stops[i], strlen(stops[i]),
                          (uint32_t) strlen(stops[i]));
    }

    ref = rig_put(b, refs, n * sizeof(llm_ref_t), n);
    rig_msg(b)->stops = ref;
}


/* sends it; the answer is reset.  Frees the request */

static inline int
rig_send(rig_t *r, uint32_t w, llm_buf_t *b, llm_err_t *err)
{
    int             rc;
    uint32_t        retry;
    rig_answer_t   *a;
    llm_request_t  *q;

    while (b->len % 8) {
        llm_buf_addc(b, 0);
    }

    q = rig_msg(b);
    q->head.size = (uint32_t) b->len;

    a = &r->answers[w][q->head.slot];
    rig_reset(a);

    rc = llm_client_submit(r->clients[w], q, &retry, err);

    if (rc == LLM_OK) {
        a->ticket = q->head.ticket;

    } else {
        a->over = 1;
        a->status = (uint32_t) err->status;
        a->retry_after = retry;
    }

    llm_buf_free(b);

    return rc;
}


static inline int
rig_ready(rig_t *r, uint32_t model, int ms)
{
    uint64_t            end;
    llm_model_status_t  st;

    end = llm_now_us() + (uint64_t) ms * 1000;

    do {
        llm_zone_status(r->zone, model, &st);

        if (st.state == LLM_MODEL_READY) {
            return LLM_OK;
        }

        if (st.state == LLM_MODEL_FAILED) {
            printf("# model failed: %s\n", st.error);
            return LLM_ERROR;
        }

        usleep(2000);

    } while (llm_now_us() < end);

    return LLM_ERROR;
}

#endif /* LLM_RIG_H */
