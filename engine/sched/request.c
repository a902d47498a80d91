/*
 * Requests and sequences; see request.h.
 */

#include "engine/sched/request.h"


static const llm_failure_t  llm_no_memory = {
    .err = { .status = 503, .msg = "no memory for what went wrong" }
};


const llm_failure_t *
llm_failure_create(const llm_err_t *err, uint32_t retry_after)
{
    llm_failure_t  *f;

    f = malloc(sizeof(*f));
    if (f == NULL) {
        return &llm_no_memory;
    }

    f->err = *err;
    f->retry_after = retry_after;

    return f;
}


void
llm_failure_free(const llm_failure_t *f)
{
    if (f != &llm_no_memory) {
        free((void *) f);
    }
}


llm_req_t *
llm_req_create(llm_request_t *msg)
{
    llm_req_t  *r;

    r = calloc(1, sizeof(*r));
    if (r == NULL) {
        free(msg);
        return NULL;
    }

    r->msg = msg;
    r->model = msg->model;
    r->out.to.max_unread = msg->max_unread;
    r->prep.salt.tenant = msg->tenant;
    r->prep.salt.salt = msg->salt;
    llm_buf_init(&r->prep.answer, 0);

    return r;
}


static void
llm_seq_free(llm_seq_t *s)
{
    free(s->gen);
    free(s->pages);
    llm_lookup_free(&s->lookup);
    free(s->pool.sum);
    free(s->pool.vector);
    llm_buf_free(&s->begun);
    llm_emit_free(&s->emit);
}


static void
llm_prompt_ids_free(llm_prompt_ids_t *p)
{
    uint32_t  i;

    for (i = 0; i < p->n_media; i++) {
        free(p->media[i].rgb);
        free(p->media[i].samples);
        free(p->media[i].rows);
    }

    free(p->media);
    free(p->ids);
    free(p->ends);
    llm_buf_free(&p->echo);
    llm_buf_free(&p->probs);
}


static void
llm_heard_free(llm_heard_t *h)
{
    if (h) {
        llm_speech_free(h->speech);
        llm_speech_sound_free(&h->sound);
        llm_buf_free(&h->out);
        free(h);
    }
}


void
llm_req_free(llm_req_t *r)
{
    uint32_t  i;

    llm_failure_free(r->failure);
    llm_failure_free(r->late);
    llm_heard_free(r->heard);

    for (i = 0; i < r->run.n_seqs; i++) {
        llm_seq_free(&r->run.seqs[i]);
    }

    for (i = 0; i < r->prep.n_prompts; i++) {
        llm_prompt_ids_free(&r->prep.prompts[i]);
    }

    if (r->prep.begun) {
        r->prep.begun_free(r->prep.begun);
    }

    llm_claim_free(&r->media);
    llm_stops_free(&r->prep.stops);
    llm_gram_release(r->prep.gram);
    llm_gram_release(r->prep.call_gram);
    llm_tools_free(&r->prep.tools);
    llm_buf_free(&r->prep.answer);

    for (i = 0; i < LLM_FORMAT_PAIRS; i++) {
        free(r->prep.endings[i].data);
    }

    free(r->prep.predicted.data);
    free(r->prep.banned);
    free((void *) r->prep.filter.allowed);
    free((void *) r->prep.filter.bad);
    free((void *) r->prep.filter.bias);
    free((void *) r->prep.filter.breakers);
    free(r->run.seqs);
    free(r->prep.prompts);
    free(r->msg);
    free(r);
}


/* a result whose size is known counts before it is there */

static size_t
llm_seq_bytes(const llm_seq_t *q)
{
    return q->cap_gen * sizeof(*q->gen) + q->cap_pages * sizeof(*q->pages)
           + q->lookup.size * sizeof(*q->lookup.after)
           + llm_emit_bytes(&q->emit) + q->begun.cap + q->pool.sum_bytes
           + (q->pool.sent < q->pool.n
              ? (size_t) q->pool.n * sizeof(*q->pool.vector) : 0);
}


/*
 * Bytes of a prompt's media: pixels or samples, and the rows that are there.
 * While some are still to be encoded, all that may be there at once count, so
 * that a request which was let in finds room for them.
 */

static size_t
llm_prompt_media_bytes(const llm_req_t *r, const llm_prompt_ids_t *p)
{
    size_t              n, rows;
    uint32_t            i;
    const llm_media_t  *m;

    for (i = 0, n = 0, rows = 0, m = NULL; i < p->n_media; i++) {
        m = &p->media[i];
        n += sizeof(*m) + (size_t) m->w * m->h
                          * (m->heard ? sizeof(*m->samples) : 3);
        rows += m->row_bytes;
    }

    if (m && (r->run.n_seqs != 1 || r->run.seqs[0].n_kv < m->first + m->n)) {
        rows = llm_max(rows, p->media_bytes);
    }

    return n + rows;
}


size_t
llm_req_bytes(const llm_req_t *r)
{
    size_t                   n;
    uint64_t                 prompts, choices, most;
    uint32_t                 i;
    const llm_prompt_ids_t  *p;

    /* the message's numbers have not been checked yet */

    most = r->msg->task == LLM_TASK_GENERATE ? LLM_MAX_CHOICES
                                             : LLM_MAX_INPUTS;
    prompts = r->msg->kind == LLM_KIND_COMPLETION ? r->msg->prompts.len : 1;
    prompts = llm_min(prompts, most);
    choices = llm_min(prompts * r->msg->n, most);

    n = sizeof(*r) + r->msg->head.size + prompts * sizeof(*r->prep.prompts)
        + choices * sizeof(*r->run.seqs);

    if (r->state == LLM_REQ_NEW || r->state == LLM_REQ_PREPARING) {
        return n;
    }

    if (r->heard) {
        n += sizeof(*r->heard) + r->heard->sound_bytes + r->heard->out.cap
             + (r->heard->speech ? llm_speech_bytes(r->heard->speech) : 0);
    }

    n += r->prep.n_banned * sizeof(*r->prep.banned) + r->prep.filter_bytes
         + r->prep.answer.cap
         + r->prep.predicted.cap * sizeof(*r->prep.predicted.data)
         + (r->prep.gram ? llm_gram_share(r->prep.gram) : 0)
         + (r->prep.call_gram ? llm_gram_share(r->prep.call_gram) : 0)
         + r->prep.tools.n * sizeof(*r->prep.tools.tool);

    for (i = 0; i < LLM_FORMAT_PAIRS; i++) {
        n += r->prep.endings[i].cap * sizeof(int32_t);
    }

    for (i = 0; i < r->prep.stops.n; i++) {
        n += r->prep.stops.stop[i].len * (sizeof(uint32_t) + 1);
    }

    for (i = 0; i < r->prep.n_prompts; i++) {
        p = &r->prep.prompts[i];
        n += p->n * sizeof(*p->ids) + p->echo.cap + p->probs.cap
             + (p->ends ? p->n * sizeof(*p->ends) : 0)
             + llm_prompt_media_bytes(r, p);
    }

    for (i = 0; i < r->run.n_seqs; i++) {
        n += llm_seq_bytes(&r->run.seqs[i]);
    }

    return n;
}


void
llm_req_fail(llm_req_t *r, const llm_err_t *err, uint32_t retry_after)
{
    if (r->failure == NULL) {
        r->failure = llm_failure_create(err, retry_after);
    }
}


llm_str_t
llm_req_echo(const llm_req_t *r, const llm_prompt_ids_t *p)
{
    if (p->is_text && !(r->msg->flags & LLM_REQ_SHOW)) {
        return (llm_str_t) { p->text.len, llm_ref_data(r->msg, p->text) };
    }

    return (llm_str_t) { p->echo.len, p->echo.data };
}


int
llm_seq_before(const llm_seq_t *a, const llm_seq_t *b)
{
    const llm_req_t  *ra = a->req, *rb = b->req;

    if (ra->msg->priority != rb->msg->priority) {
        return ra->msg->priority > rb->msg->priority;
    }

    if (ra->serial != rb->serial) {
        return ra->serial < rb->serial;
    }

    return a->index < b->index;
}


int
llm_seq_append(llm_seq_t *s, int32_t id)
{
    int32_t   *gen;
    uint32_t   cap;

    if (s->n_gen == s->cap_gen) {
        cap = llm_min(llm_max(s->cap_gen * 2, 32u), s->max_gen);

        gen = realloc(s->gen, cap * sizeof(*gen));
        if (gen == NULL) {
            return LLM_ERROR;
        }

        s->gen = gen;
        s->cap_gen = cap;
    }

    s->gen[s->n_gen++] = id;

    return LLM_OK;
}
