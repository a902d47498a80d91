/*
 * TEXT events of a choice; see emit.h.  An event carries text and, if they
 * were asked for, the logprobs of the tokens that make up this text.
 */

#include "engine/emit/emit_internal.h"

/*
 * Answers that are not streamed are sent in lots of about this many bytes or
 * tokens, so that the usage of an answer that is cut short is known.  The
 * first token is sent alone, for the time to the first token.
 */
#define LLM_EMIT_LOT     2048
#define LLM_EMIT_TOKENS  16

/* bytes of text that an event may carry even if the window is smaller */
#define LLM_EMIT_LEAST   256

/* most ids of a prompt, or of tokens, in one event */
#define LLM_EMIT_IDS_MAX  1024

/* source of events: the choice's own text, or the prompt's */
typedef struct {
    const char          *text;
    size_t               len;           /* bytes of text */
    size_t               ready;         /* bytes of text that may be sent */
    const char          *probs;
    size_t               probs_len;
    uint32_t             sent;          /* bytes of the answer before text */
    int                  last;          /* 1: no text will follow */
    int                  closed;        /* 1: text of another part follows */
    uint32_t             part;          /* part of the text */
    uint32_t             call;
} llm_emit_src_t;

/* contents of one event */
typedef struct {
    size_t               text;          /* bytes of text */
    size_t               probs;         /* bytes of probabilities */
    uint32_t             n_probs;
    size_t               ids;           /* bytes of e->ids */
    size_t               extra;         /* bytes of the event beyond its
                                           struct */
} llm_emit_lot_t;


/* is there text to send?  With probabilities a token's text is sent only when
   the token is complete */

static int
llm_emit_has_text(const llm_emit_t *e)
{
    size_t                  off;
    const llm_emit_prob_t  *prob;

    if (e->ready == 0 || e->ready > e->max_text) {
        return e->ready != 0;
    }

    for (off = 0; off < e->probs.len; off += llm_emit_prob_size(prob)) {
        prob = (const llm_emit_prob_t *) (e->probs.data + off);

        if (prob->end > e->sent) {
            return prob->end <= e->sent + e->ready;
        }
    }

    return 1;
}


static int
llm_emit_echoes(const llm_emit_t *e)
{
    return e->echo_text < e->echo.len
           || (e->echo_probs && e->echo_prob < e->echo_probs->len);
}


int
llm_emit_pending(const llm_emit_t *e, int last)
{
    if (e->n_prompt || llm_emit_echoes(e)) {
        return 1;
    }

    if (last) {
        return e->text.len || e->probs.len || e->ids.len || e->n_tokens;
    }

    if (!(e->flags & LLM_EMIT_STREAM)
        && e->n_tokens < (e->has_sent ? LLM_EMIT_TOKENS : 1)
        && e->ready < LLM_EMIT_LOT
        && e->probs.len + e->ids.len < 2 * LLM_EMIT_LOT)
    {
        return 0;
    }

    return llm_emit_has_text(e);
}


static size_t
llm_emit_prob_extra(const llm_emit_t *e, const llm_emit_prob_t *prob)
{
    size_t                  n;
    uint32_t                i;
    const llm_candidate_t  *top;

    top = (const llm_candidate_t *) (prob + 1);

    n = sizeof(llm_token_logprob_t)
        + prob->n_top * sizeof(llm_top_logprob_t)
        + llm_emit_prob_text(e, prob, prob->id).len;

    for (i = 0; i < prob->n_top; i++) {
        n += llm_emit_prob_text(e, prob, top[i].id).len;
    }

    return n;
}


static void
llm_emit_source(const llm_emit_t *e, int last, llm_emit_src_t *src)
{
    const llm_emit_run_t  *run;

    src->part = LLM_PART_CONTENT;
    src->call = 0;
    src->closed = 0;

    if (!llm_emit_echoes(e)) {
        src->text = e->text.data;
        src->len = e->text.len;
        src->ready = e->ready;
        src->probs = e->probs.data;
        src->probs_len = e->settled;
        src->sent = e->sent;
        src->last = last;

        if (e->runs.len) {
            run = (const llm_emit_run_t *) e->runs.data;
            src->part = run->part;
            src->call = run->call;
            src->closed = e->runs.len > sizeof(*run);
            src->len = run->len;
            src->ready = llm_min(src->ready, run->len);
            src->last = last && !src->closed;
        }

        return;
    }

    src->text = e->echo.data + e->echo_text;
    src->len = e->echo.len - e->echo_text;
    src->ready = src->len;
    src->probs = NULL;
    src->probs_len = 0;
    src->sent = (uint32_t) e->echo_text;
    src->last = 1;

    if (e->echo_probs && e->echo_probs->len) {
        src->probs = e->echo_probs->data + e->echo_prob;
        src->probs_len = e->echo_probs->len - e->echo_prob;
    }
}


/*
 * Does the token belong to the text of a later event?  A token that has text
 * of two parts goes with the first part.
 */

static int
llm_emit_prob_waits(const llm_emit_src_t *src, const llm_emit_lot_t *lot,
    const llm_emit_prob_t *prob)
{
    if (prob->end <= src->sent + lot->text) {
        return 0;
    }

    if (lot->text < src->len) {
        return 1;
    }

    return src->closed ? prob->start >= src->sent + src->len : !src->last;
}


/* chooses the contents of one event of at most max bytes: whole characters and
   tokens */

static void
llm_emit_choose(const llm_emit_t *e, const llm_emit_src_t *src, size_t max,
    llm_emit_lot_t *lot)
{
    size_t                  off, size, text, end, extra;
    const llm_emit_prob_t  *prob;

    memset(lot, 0, sizeof(*lot));

    lot->text = src->ready;

    if (lot->text > e->max_text) {
        lot->text = e->max_text;

        while (lot->text && (src->text[lot->text] & 0xc0) == 0x80) {
            lot->text--;
        }
    }

    if (!llm_emit_echoes(e)) {
        lot->ids = llm_min(e->ids.len,
                           LLM_EMIT_IDS_MAX * sizeof(int32_t));
    }

    lot->extra = lot->ids;
    text = 0;

    for (off = 0; off < src->probs_len; off += size) {
        prob = (const llm_emit_prob_t *) (src->probs + off);
        size = llm_emit_prob_size(prob);

        if (llm_emit_prob_waits(src, lot, prob)) {
            text = prob->start >= src->sent + lot->text ? lot->text : text;
            break;
        }

        /* all of the text goes with the last token */

        end = (off + size == src->probs_len)
              ? lot->text
              : llm_min(llm_max(prob->end, src->sent) - src->sent, lot->text);
        extra = lot->extra + llm_emit_prob_extra(e, prob);

        if (lot->n_probs && extra + end + sizeof(llm_event_t) > max) {
            break;
        }

        lot->extra = extra;
        lot->probs = off + size;
        lot->n_probs++;
        text = end;
    }

    /* the rest of the text waits until its token is complete, unless a token
       is longer than an event, which happens only with strange vocabularies */

    if (off < src->probs_len
        && (lot->n_probs || src->ready <= e->max_text))
    {
        lot->text = llm_min(lot->text, text);
    }

    lot->extra += lot->text;
}


static char *
llm_emit_put(const llm_event_t *ev, char *p, llm_ref_t *ref, llm_str_t s)
{
    ref->off = (uint32_t) (p - (char *) ev);
    ref->len = (uint32_t) s.len;

    if (s.len) {
        memcpy(p, s.data, s.len);
    }

    return p + s.len;
}


/* writes the tokens, then the most likely tokens of each, then bytes; tokens
   are aligned */

static char *
llm_emit_put_probs(const llm_emit_t *e, const llm_emit_src_t *src,
    const llm_emit_lot_t *lot, llm_event_t *ev, char *p, char *bytes)
{
    size_t                  off;
    uint32_t                i;
    llm_top_logprob_t      *top;
    llm_token_logprob_t    *tok;
    const llm_candidate_t  *cand;
    const llm_emit_prob_t  *prob;

    tok = (llm_token_logprob_t *) p;
    top = (llm_top_logprob_t *) (tok + lot->n_probs);

    ev->u.text.logprobs.off = (uint32_t) (p - (char *) ev);
    ev->u.text.logprobs.len = lot->n_probs;

    for (off = 0; off < lot->probs; tok++) {
        prob = (const llm_emit_prob_t *) (src->probs + off);
        cand = (const llm_candidate_t *) (prob + 1);
        off += sizeof(*prob) + prob->n_top * sizeof(*cand);

        tok->id = prob->id;
        tok->logprob = prob->logprob;
        tok->text_offset = prob->start;
        bytes = llm_emit_put(ev, bytes, &tok->bytes,
                             llm_emit_prob_text(e, prob, prob->id));

        tok->top.off = (uint32_t) ((char *) top - (char *) ev);
        tok->top.len = prob->n_top;

        for (i = 0; i < prob->n_top; i++, top++) {
            top->id = cand[i].id;
            top->logprob = cand[i].logprob;
            bytes = llm_emit_put(ev, bytes, &top->bytes,
                                 llm_emit_prob_text(e, prob, cand[i].id));
        }
    }

    return bytes;
}


static size_t
llm_emit_n_top(const llm_emit_src_t *src, const llm_emit_lot_t *lot)
{
    size_t                  off, n;
    const llm_emit_prob_t  *prob;

    n = 0;

    for (off = 0; off < lot->probs; /* void */ ) {
        prob = (const llm_emit_prob_t *) (src->probs + off);
        off += sizeof(*prob) + prob->n_top * sizeof(llm_candidate_t);
        n += prob->n_top;
    }

    return n;
}


static void
llm_emit_eat(llm_buf_t *b, size_t n)
{
    if (n) {
        b->len -= n;
        memmove(b->data, b->data + n, b->len);
    }
}


/* takes n bytes from the first run.  An empty run is removed; the bytes of a
   stop string that has begun stay in it */

static void
llm_emit_eat_run(llm_emit_t *e, size_t n)
{
    llm_emit_run_t  *run;

    if (e->runs.len) {
        run = (llm_emit_run_t *) e->runs.data;
        run->len -= n;

        if (run->len == 0) {
            llm_emit_eat(&e->runs, sizeof(*run));
        }
    }
}


static void
llm_emit_fill(const llm_emit_t *e, const llm_emit_src_t *src,
    const llm_emit_lot_t *lot, llm_event_t *ev)
{
    char  *p, *bytes;

    p = (char *) (ev + 1);
    bytes = p + lot->ids;

    if (lot->ids) {
        ev->u.text.ids.off = sizeof(*ev);
        ev->u.text.ids.len = (uint32_t) (lot->ids / sizeof(int32_t));
        memcpy(p, e->ids.data, lot->ids);
    }

    if (lot->n_probs) {
        p = bytes;
        bytes += lot->n_probs * sizeof(llm_token_logprob_t)
                 + llm_emit_n_top(src, lot) * sizeof(llm_top_logprob_t);
        bytes = llm_emit_put_probs(e, src, lot, ev, p, bytes);
    }

    (void) llm_emit_put(ev, bytes, &ev->u.text.text,
                        (llm_str_t) { lot->text, src->text });
}


/* sets the counts of tokens since the last event */

static void
llm_emit_tell(llm_emit_t *e, llm_event_t *ev)
{
    ev->u.text.n_tokens = e->n_tokens;
    ev->u.text.n_reasoning = e->n_reasoning - e->told;

    e->n_tokens = 0;
    e->told = e->n_reasoning;
}


static int
llm_emit_one(llm_emit_t *e, llm_to_t *to, uint32_t index, int last)
{
    size_t           max;
    llm_event_t     *ev;
    llm_emit_src_t   src;
    llm_emit_lot_t   lot;

    max = to->max_unread ? llm_min(to->max_unread, LLM_EVENT_MAX) : LLM_EVENT_MAX;

    llm_emit_source(e, last, &src);
    llm_emit_choose(e, &src, max, &lot);

    if (llm_event_waits(to, sizeof(*ev) + lot.extra)) {
        return LLM_FULL;
    }

    ev = llm_event_open(to, LLM_EV_TEXT, index, lot.extra);
    if (ev == NULL) {
        return LLM_FULL;
    }

    if (lot.text) {
        ev->u.text.part = (uint16_t) src.part;
        ev->u.text.call = src.call;
    }

    llm_emit_fill(e, &src, &lot, ev);

    if (llm_emit_echoes(e)) {
        ev->u.text.echo = 1;
        e->echo_text += lot.text;
        e->echo_prob += lot.probs;

    } else {
        llm_emit_tell(e, ev);

        llm_emit_eat(&e->text, lot.text);
        llm_emit_eat_run(e, lot.text);
        llm_emit_eat(&e->probs, lot.probs);
        e->settled -= lot.probs;
        llm_emit_eat(&e->ids, lot.ids);
        e->ready -= lot.text;
        e->sent += (uint32_t) lot.text;
        e->has_sent = 1;
    }

    to->unread += ev->size;
    llm_event_close(to, ev);
    to->mark = to->port->ring.pos;

    return LLM_OK;
}


/* sends the ids of the prompt, or as many as fit in an event */

static int
llm_emit_prompt_ids(llm_emit_t *e, llm_to_t *to, uint32_t index)
{
    size_t        n, size;
    llm_event_t  *ev;

    n = LLM_EMIT_IDS_MAX;

    if (to->max_unread) {
        n = llm_min(n, llm_max(to->max_unread, LLM_EMIT_LEAST) / sizeof(int32_t));
    }

    n = llm_min(n, e->n_prompt);
    size = n * sizeof(int32_t);

    if (llm_event_waits(to, sizeof(*ev) + size)) {
        return LLM_FULL;
    }

    ev = llm_event_open(to, LLM_EV_TEXT, index, size);
    if (ev == NULL) {
        return LLM_FULL;
    }

    ev->u.text.echo = 1;
    ev->u.text.ids.off = sizeof(*ev);
    ev->u.text.ids.len = (uint32_t) n;
    memcpy(ev + 1, e->prompt, size);

    e->prompt += n;
    e->n_prompt -= (uint32_t) n;
    ev->u.text.call = e->n_prompt;

    to->unread += ev->size;
    llm_event_close(to, ev);
    to->mark = to->port->ring.pos;

    return LLM_OK;
}


/* sends an event without text, to report the number of tokens */

static int
llm_emit_count(llm_emit_t *e, llm_to_t *to, uint32_t index)
{
    llm_event_t  *ev;

    ev = llm_event_open(to, LLM_EV_TEXT, index, 0);
    if (ev == NULL) {
        return LLM_FULL;
    }

    llm_emit_tell(e, ev);

    to->unread += ev->size;
    llm_event_close(to, ev);
    to->mark = to->port->ring.pos;

    return LLM_OK;
}


int
llm_emit_write(llm_emit_t *e, llm_to_t *to, uint32_t index, int last)
{
    if (to->max_unread) {
        e->max_text = llm_max(llm_min(to->max_unread, LLM_EMIT_TEXT),
                              LLM_EMIT_LEAST);
    }

    llm_emit_mute_cut(e);

    while (e->n_prompt) {
        if (llm_emit_prompt_ids(e, to, index) != LLM_OK) {
            return LLM_FULL;
        }
    }

    while (llm_emit_pending(e, last)) {
        if (llm_emit_one(e, to, index, last) != LLM_OK) {
            return LLM_FULL;
        }
    }

    return (e->flags & LLM_EMIT_COUNT) && e->n_tokens
           ? llm_emit_count(e, to, index) : LLM_OK;
}
