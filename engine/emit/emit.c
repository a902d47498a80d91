/*
 * The text of a choice and its stop strings; see emit.h.  emit_prob.c has the
 * probabilities of its tokens, emit_event.c writes the events.
 */

#include "engine/emit/emit_internal.h"


int
llm_stops_init(llm_stops_t *s, const llm_str_t *strings, uint32_t n)
{
    char        *data;
    size_t       bytes;
    uint32_t     i, j, k, *fail;
    llm_stop_t  *stop;

    memset(s, 0, sizeof(*s));

    bytes = 0;

    for (i = 0; i < n; i++) {
        bytes += strings[i].len * (sizeof(uint32_t) + 1);
    }

    if (bytes == 0) {
        return LLM_OK;
    }

    s->mem = malloc(bytes);
    if (s->mem == NULL) {
        return LLM_ERROR;
    }

    fail = s->mem;
    data = (char *) s->mem + bytes / (sizeof(uint32_t) + 1) * sizeof(uint32_t);

    for (i = 0; i < n && s->n < LLM_MAX_STOPS; i++) {
        if (strings[i].len == 0) {
            continue;
        }

        stop = &s->stop[s->n++];
        stop->len = (uint32_t) strings[i].len;
        stop->data = memcpy(data, strings[i].data, stop->len);
        stop->fail = fail;

        fail[0] = 0;

        for (j = 1, k = 0; j < stop->len; j++) {
            while (k && data[j] != data[k]) {
                k = fail[k - 1];
            }

            k += data[j] == data[k];
            fail[j] = k;
        }

        data += stop->len;
        fail += stop->len;
    }

    return LLM_OK;
}


void
llm_stops_free(llm_stops_t *s)
{
    free(s->mem);
    s->mem = NULL;
    s->n = 0;
}


void
llm_emit_init(llm_emit_t *e, const llm_vocab_t *vocab,
    const llm_stops_t *stops, uint32_t flags, int special, int strip)
{
    memset(e, 0, sizeof(*e));

    e->vocab = vocab;
    e->stops = stops;
    e->flags = flags;
    e->hit = -1;
    e->max_text = LLM_EMIT_TEXT;
    e->said = 1;

    llm_detok_init(&e->detok, vocab, special, strip);
    e->special = special;
    llm_buf_init(&e->text, 0);
    llm_buf_init(&e->runs, 0);
    llm_buf_init(&e->probs, 0);
    llm_buf_init(&e->ids, 0);
}


void
llm_emit_free(llm_emit_t *e)
{
    llm_answer_free(e->answer);
    llm_detok_free(&e->detok);
    llm_buf_free(&e->text);
    llm_buf_free(&e->runs);
    llm_buf_free(&e->probs);
    llm_buf_free(&e->ids);
}


size_t
llm_emit_bytes(const llm_emit_t *e)
{
    return e->text.cap + e->runs.cap + e->probs.cap + e->ids.cap
           + e->detok.cap + (e->answer ? llm_answer_bytes(e->answer) : 0);
}


uint32_t
llm_emit_calls(const llm_emit_t *e)
{
    return e->answer ? llm_answer_calls(e->answer) : 0;
}


/* moves all automata on by one byte; returns the longest stop string that ends
   with it, or -1 */

static int32_t
llm_emit_step(llm_emit_t *e, char c)
{
    int32_t            hit;
    uint32_t           i, k;
    const llm_stop_t  *stop;

    hit = -1;

    for (i = 0; i < e->stops->n; i++) {
        stop = &e->stops->stop[i];
        k = e->state[i];

        while (k && stop->data[k] != c) {
            k = stop->fail[k - 1];
        }

        k += stop->data[k] == c;
        e->state[i] = k;

        if (k == stop->len
            && (hit < 0 || stop->len > e->stops->stop[hit].len))
        {
            hit = (int32_t) i;
        }
    }

    return hit;
}


/* appends content; at: its offset in all text that was given to the answer */

static int
llm_emit_append(llm_emit_t *e, size_t at, llm_str_t s)
{
    size_t    i, held;
    uint32_t  k;

    if (!e->check || e->stops->n == 0) {
        if (llm_buf_add(&e->text, s.data, s.len) != LLM_OK) {
            return LLM_ERROR;
        }

        e->ready = e->text.len;
        return LLM_OK;
    }

    for (i = 0; i < s.len; i++) {
        if (llm_buf_addc(&e->text, s.data[i]) != LLM_OK) {
            return LLM_ERROR;
        }

        e->hit = llm_emit_step(e, s.data[i]);

        if (e->hit >= 0) {
            e->text.len -= e->stops->stop[e->hit].len;
            e->ready = e->text.len;
            llm_emit_cut(e, at + i + 1 - e->stops->stop[e->hit].len);
            return LLM_STOPPED;
        }
    }

    held = 0;

    for (k = 0; k < e->stops->n; k++) {
        held = llm_max(held, (size_t) e->state[k]);
    }

    e->ready = e->text.len - held;

    return LLM_OK;
}


/* the run that text of this part is added to; NULL: no memory */

static llm_emit_run_t *
llm_emit_run(llm_emit_t *e, llm_part_t part, uint32_t call)
{
    llm_emit_run_t  *run, add;

    if (e->runs.len) {
        run = (llm_emit_run_t *) (e->runs.data + e->runs.len) - 1;

        if (run->part == part && run->call == call) {
            return run;
        }
    }

    add.part = part;
    add.call = call;
    add.len = 0;

    if (llm_buf_add(&e->runs, &add, sizeof(add)) != LLM_OK) {
        return NULL;
    }

    memset(e->state, 0, sizeof(e->state));

    return (llm_emit_run_t *) (e->runs.data + e->runs.len) - 1;
}


/* takes a part from the answer */

static int
llm_emit_part(void *data, llm_part_t part, uint32_t call, llm_str_t text)
{
    int              rc;
    size_t           before;
    llm_emit_t      *e;
    llm_emit_run_t  *run;

    e = data;
    run = llm_emit_run(e, part, call);

    if (run == NULL) {
        return LLM_ERROR;
    }

    before = e->text.len - run->len;

    if (part == LLM_PART_CONTENT) {
        llm_emit_mark(e, llm_answer_at(e->answer), text.len);
        rc = llm_emit_append(e, llm_answer_at(e->answer), text);

    } else {
        rc = llm_buf_add(&e->text, text.data, text.len);
        e->ready = e->text.len;
    }

    run->len = e->text.len - before;

    return rc;
}


void
llm_emit_read(llm_emit_t *e, const llm_answer_opts_t *reads)
{
    e->reads = *reads;
}


/* the token's text: control tokens have none, but they may be marks.  flags:
   how the text differs from the token's own bytes */

static llm_str_t
llm_emit_text(llm_emit_t *e, int32_t id, uint32_t *flags)
{
    int               began;
    llm_str_t         s, own;
    llm_token_type_t  type;

    own = llm_vocab_bytes(e->vocab, id);
    type = llm_vocab_type(e->vocab, id);
    began = e->detok.started;

    if (e->answer && !e->special) {
        e->detok.special = type == LLM_TOKEN_CONTROL
                           && llm_answer_knows(e->reads.format,
                                               e->reads.flags, own);
    }

    s = llm_detok_push(&e->detok, id);
    *flags = 0;

    if ((type == LLM_TOKEN_CONTROL || type == LLM_TOKEN_UNKNOWN)
        && !e->detok.special)
    {
        *flags = LLM_PROB_SILENT;

    } else if (began != e->detok.started) {
        *flags = LLM_PROB_FIRST;
    }

    return s;
}


int
llm_emit_push(llm_emit_t *e, const llm_sampled_t *token, int check)
{
    int               rc;
    size_t            off;
    uint32_t          flags;
    llm_str_t         s;
    llm_emit_prob_t  *prob;

    if (e->reads.format && e->answer == NULL) {
        e->answer = llm_answer_create(&e->reads, llm_emit_part, e);

        if (e->answer == NULL) {
            return LLM_ERROR;
        }
    }

    s = llm_emit_text(e, token->id, &flags);
    e->n_tokens++;
    e->check = check;

    off = e->probs.len;
    llm_emit_note(e, token, s.len, flags);
    e->fed += s.len;

    if (e->answer) {
        e->n_reasoning += llm_answer_is_reasoning(e->answer);
        rc = llm_answer_push(e->answer, s);

    } else {
        rc = llm_emit_append(e, e->fed - s.len, s);
    }

    if (off < e->probs.len && !e->probs.failed) {
        prob = (llm_emit_prob_t *) (e->probs.data + off);
        prob->end = e->sent + (uint32_t) e->text.len;
        llm_emit_settle(e, e->answer ? llm_answer_decided(e->answer) : e->fed);
    }

    if (e->flags & LLM_EMIT_IDS) {
        (void) llm_buf_add(&e->ids, &token->id, sizeof(token->id));
    }

    return e->probs.failed || e->ids.failed ? LLM_ERROR : rc;
}


int
llm_emit_push_end(llm_emit_t *e, const llm_sampled_t *token)
{
    llm_emit_note(e, token, 0, LLM_PROB_MUTE);

    if (e->flags & LLM_EMIT_IDS) {
        (void) llm_buf_add(&e->ids, &token->id, sizeof(token->id));
    }

    return e->probs.failed || e->ids.failed ? LLM_ERROR : LLM_OK;
}


llm_begun_t
llm_emit_begun(llm_emit_t *e, llm_str_t *rest)
{
    return e->answer ? llm_answer_begun(e->answer, rest) : LLM_BEGUN_NOT;
}


void
llm_emit_sure(llm_emit_t *e)
{
    llm_answer_sure(e->answer);
}


void
llm_emit_echo(llm_emit_t *e, llm_str_t text, const llm_buf_t *probs, int send)
{
    e->sent = (uint32_t) text.len;

    if (send) {
        e->echo = text;
        e->echo_probs = probs;
    }
}


void
llm_emit_prompt(llm_emit_t *e, const int32_t *ids, uint32_t n)
{
    e->prompt = ids;
    e->n_prompt = n;
}


int
llm_emit_end(llm_emit_t *e, int cut)
{
    int        rc;
    llm_str_t  s;

    if (e->hit >= 0) {
        llm_emit_settle(e, SIZE_MAX);
        return LLM_OK;
    }

    s = llm_detok_flush(&e->detok, 1);

    if (e->answer) {
        rc = llm_answer_push(e->answer, s);

        if (rc == LLM_OK) {
            rc = llm_answer_end(e->answer, cut ? LLM_TEXT_CUT
                                                 : LLM_TEXT_DONE);
        }

    } else {
        e->check = 0;
        rc = llm_emit_append(e, e->fed, s);
    }

    e->ready = e->text.len;
    llm_emit_settle(e, SIZE_MAX);

    return rc == LLM_STOPPED ? LLM_OK : rc;
}
