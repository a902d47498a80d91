/*
 * Sends the answers of requests that need no model, as far as there is room in
 * the ring; engine/prepare/answers.c has made them.  These requests are
 * admitted, counted and bounded like all others.  prep.sent counts the bytes
 * of text, or the tokens, that have been sent.
 */

#include "engine/serve/requests.h"

/* most bytes of text, and most tokens, of one event */
#define LLM_ANSWER_TEXT    8192
#define LLM_ANSWER_TOKENS  1024


/* sends a piece of the text, in whole characters */

static int
llm_answer_send_text(llm_req_t *r)
{
    size_t        n;
    const char   *s;
    llm_event_t  *ev;

    s = r->prep.answer.data + r->prep.sent;
    n = r->prep.answer.len - r->prep.sent;

    if (n > LLM_ANSWER_TEXT) {
        n = LLM_ANSWER_TEXT;

        while (n > LLM_ANSWER_TEXT - 4 && (s[n] & 0xc0) == 0x80) {
            n--;
        }
    }

    ev = llm_event_open(&r->out.to, LLM_EV_TEXT, 0, n);
    if (ev == NULL) {
        return LLM_FULL;
    }

    ev->u.text.text.off = sizeof(*ev);
    ev->u.text.text.len = (uint32_t) n;
    memcpy(ev + 1, s, n);

    llm_event_close(&r->out.to, ev);
    r->prep.sent += n;

    return LLM_OK;
}


static int
llm_answer_send_ids(llm_req_t *r, const llm_prompt_ids_t *p)
{
    uint32_t      n;
    llm_event_t  *ev;

    n = llm_min(p->n - (uint32_t) r->prep.sent,
                (uint32_t) LLM_ANSWER_TOKENS);

    ev = llm_event_open(&r->out.to, LLM_EV_TEXT, 0, n * sizeof(int32_t));
    if (ev == NULL) {
        return LLM_FULL;
    }

    ev->u.text.ids.off = sizeof(*ev);
    ev->u.text.ids.len = n;
    memcpy(ev + 1, p->ids + r->prep.sent, n * sizeof(int32_t));

    llm_event_close(&r->out.to, ev);
    r->prep.sent += n;

    return LLM_OK;
}


/* sends tokens with their bytes, as many as fit into an event, at least one */

static int
llm_answer_send_pieces(const llm_instance_t *m, llm_req_t *r,
    const llm_prompt_ids_t *p)
{
    char                 *bytes;
    size_t                size, more;
    uint32_t              i, n;
    llm_str_t             s;
    llm_event_t          *ev;
    const int32_t        *ids;
    llm_token_logprob_t  *t;

    ids = p->ids + r->prep.sent;
    size = 0;

    for (n = 0; n < p->n - r->prep.sent; n++) {
        more = sizeof(*t) + llm_vocab_bytes(m->env.vocab, ids[n]).len;

        if (n && sizeof(*ev) + size + more > LLM_EVENT_MAX) {
            break;
        }

        size += more;
    }

    ev = llm_event_open(&r->out.to, LLM_EV_TEXT, 0, size);
    if (ev == NULL) {
        return LLM_FULL;
    }

    ev->u.text.logprobs.off = sizeof(*ev);
    ev->u.text.logprobs.len = n;

    t = (llm_token_logprob_t *) (ev + 1);
    bytes = (char *) (t + n);

    for (i = 0; i < n; i++) {
        s = llm_vocab_bytes(m->env.vocab, ids[i]);

        memset(&t[i], 0, sizeof(*t));
        t[i].id = ids[i];
        t[i].bytes.off = (uint32_t) (bytes - (char *) ev);
        t[i].bytes.len = (uint32_t) s.len;

        if (s.len) {
            memcpy(bytes, s.data, s.len);
            bytes += s.len;
        }
    }

    llm_event_close(&r->out.to, ev);
    r->prep.sent += n;

    return LLM_OK;
}


/* sends the answer from prep.sent on; LLM_FULL: the ring has no room for the
   rest */

static int
llm_answer_send(const llm_instance_t *m, llm_req_t *r)
{
    int                      rc;
    size_t                   end;
    const llm_prompt_ids_t  *p;

    p = r->prep.prompts;
    rc = llm_req_send_start(r, m->runner.ctx);
    end = r->msg->task == LLM_TASK_TOKENIZE ? p->n : r->prep.answer.len;

    while (rc == LLM_OK && r->prep.sent < end) {

        if (r->msg->task != LLM_TASK_TOKENIZE) {
            rc = llm_answer_send_text(r);

        } else if (r->msg->flags & LLM_REQ_PIECES) {
            rc = llm_answer_send_pieces(m, r, p);

        } else {
            rc = llm_answer_send_ids(r, p);
        }
    }

    return rc == LLM_OK ? llm_req_send_done(r, llm_now_us()) : rc;
}


int
llm_engine_send_answers(llm_engine_t *e)
{
    llm_req_t   *r;
    llm_jobs_t   jobs;

    llm_jobs_init(&jobs);
    llm_jobs_move(&jobs, &e->answered);

    while ((r = llm_jobs_take(&jobs)) != NULL) {
        if (llm_answer_send(r->instance, r) == LLM_OK) {
            llm_engine_ended(e, r);

        } else {
            llm_jobs_add(&e->answered, r);
        }
    }

    return e->answered.first != NULL;
}
