/*
 * A model of speech and its transcriptions.  The scheduler's thread alone runs
 * this, but for the loading: it takes turns between a step of each model, so
 * a transcription delays the others' texts by no more than one step.
 *
 * A transcription is in one list from its add() to its last event.  As many as
 * the model has sequences have a place in the crew and share its steps; the
 * others wait, by priority, then by arrival.
 */

#include "engine/file/source.h"
#include "engine/serve/engine.h"

/* most bytes of one event */
#define LLM_HEARING_TEXT  8192

struct llm_hearing_s {
    llm_engine_t        *engine;
    llm_instance_t      *instance;
    llm_whisper_t       *whisper;       /* owned, as are the next two */
    llm_speech_rules_t   rules;
    llm_speech_crew_t   *crew;
    uint32_t             places;
    uint32_t             n_running;     /* places that are taken */
    llm_req_t           *first;         /* linked through heard->next */
    llm_zone_counters_t  *counters;
    llm_zone_figures_t   *figures;
};


/* ---- loading ---- */

int
llm_instance_listens(const char *path, llm_err_t *err)
{
    int                  rc;
    llm_gguf_t          *g;
    llm_whisper_info_t   info;

    g = llm_source_open_header(path, err);

    if (g == NULL) {
        return LLM_ERROR;
    }

    rc = llm_whisper_check(g, &info, err);
    llm_gguf_close(g);

    return rc;
}


static int
llm_hearing_load(llm_hearing_t *h, llm_instance_t *m, const char *path,
    const llm_model_opts_t *opts, llm_err_t *err)
{
    const llm_gguf_t          *g;
    llm_whisper_opts_t         o;
    const llm_whisper_info_t  *info;

    memset(&o, 0, sizeof(o));
    o.model = *opts;
    o.model.max_seqs = h->places;
    o.model.max_out = h->places * LLM_SPEECH_OUT;
    o.n_states = h->places;

    h->whisper = llm_whisper_load(path, &o, err);

    if (h->whisper == NULL) {
        return LLM_ERROR;
    }

    info = llm_whisper_info(h->whisper);
    g = llm_model_gguf(llm_whisper_model(h->whisper));
    m->env.vocab = llm_vocab_load(g, err);

    if (m->env.vocab == NULL
        || llm_speech_rules_load(&h->rules, info, m->env.vocab, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    h->crew = llm_speech_crew_create(h->whisper, h->places, err);

    if (h->crew == NULL) {
        return LLM_ERROR;
    }

    m->env.speech = &h->rules;
    m->runner.ctx = info->n_text_ctx;
    m->runner.n_vocab = info->n_vocab;
    m->runner.max_seqs = h->places;

    return LLM_OK;
}


int
llm_instance_hear(llm_instance_t *m, const char *path,
    const llm_model_opts_t *opts, llm_err_t *err)
{
    llm_hearing_t  *h;

    if (llm_speech_conf_check(&m->conf, path, err) != LLM_OK) {
        return LLM_ERROR;
    }

    h = m->hearing = calloc(1, sizeof(llm_hearing_t));

    if (h == NULL) {
        return llm_fail(err, "no memory for the model");
    }

    h->engine = m->engine;
    h->instance = m;
    h->places = m->parallel;
    h->figures = &m->engine->zone->models[m->index].figures;
    h->counters = llm_zone_counters(m->engine->zone, m->engine->kept,
                                    m->index);

    (void) llm_fail_with(&m->env.chat_err, 400, "unsupported_model", "model",
                         "this model transcribes speech");

    return llm_hearing_load(h, m, path, opts, err);
}


void
llm_instance_close_hearing(llm_instance_t *m)
{
    llm_hearing_t  *h;

    h = m->hearing;

    if (h == NULL) {
        return;
    }

    llm_speech_crew_free(h->crew);
    llm_speech_rules_free(&h->rules);

    if (h->whisper) {
        llm_whisper_free(h->whisper);
    }

    free(h);
    m->hearing = NULL;
    m->env.speech = NULL;
}


const llm_model_t *
llm_hearing_model(const llm_hearing_t *h)
{
    return h->whisper ? llm_whisper_model(h->whisper) : NULL;
}


/* ---- the list ---- */

void
llm_hearing_add(llm_hearing_t *h, llm_req_t *r)
{
    llm_req_t  **p;

    for (p = &h->first;
         *p && ((*p)->heard->runs
                || (*p)->msg->priority >= r->msg->priority);
         p = &(*p)->heard->next)
    { /* void */ }

    r->heard->next = *p;
    *p = r;
}


/* its place, if it has one, becomes free */

static void
llm_hearing_leave(llm_hearing_t *h, llm_req_t *r)
{
    if (r->heard->runs) {
        llm_speech_crew_remove(h->crew, r->heard->place);
        r->heard->runs = 0;
        h->n_running--;
        llm_zone_add(h->figures->running, (uint32_t) -1);
    }
}


void
llm_hearing_remove(llm_hearing_t *h, llm_req_t *r)
{
    llm_req_t  **p;

    llm_hearing_leave(h, r);

    for (p = &h->first; *p && *p != r; p = &(*p)->heard->next) { /* void */ }

    if (*p) {
        *p = r->heard->next;
    }
}


static void
llm_hearing_place(llm_hearing_t *h)
{
    uint64_t    now;
    llm_req_t  *r;

    for (r = h->first; r && h->n_running < h->places; r = r->heard->next) {
        if (r->heard->runs || r->heard->ended || r->failure) {
            continue;
        }

        if (llm_speech_crew_add(h->crew, r->heard->speech, &r->heard->sound,
                                &r->heard->place)
            != LLM_OK)
        {
            return;
        }

        now = llm_now_us();
        r->heard->runs = 1;
        r->heard->frame = SIZE_MAX;
        r->run.start_us = now;
        h->n_running++;
        llm_zone_add(h->figures->running, 1);
        llm_zone_observe(h->counters, LLM_HIST_QUEUE,
                         now - llm_min(now, r->msg->arrival_us));
    }
}


/* ---- a step ---- */

/* the records of the segments that are new */

static void
llm_hearing_pack(llm_hearing_t *h, llm_req_t *r, int last)
{
    int               rc;
    llm_err_t         err;
    llm_heard_t      *d;
    llm_transcript_t  t;

    d = r->heard;
    rc = llm_speech_transcript(d->speech, &t, &err);
    t.duration = d->seconds;

    while (rc == LLM_OK && d->n_packed < t.n_segments) {
        d->due += t.segments[d->n_packed].n_tokens;
        rc = llm_transcript_pack(&d->out, &t, d->n_packed++, d->pieces);

        if (r->out.first_us == 0) {
            r->out.first_us = llm_now_us();
            llm_zone_observe(h->counters, LLM_HIST_TTFT, r->out.first_us
                             - llm_min(r->out.first_us, r->msg->arrival_us));
        }
    }

    if (rc == LLM_OK && last) {
        rc = llm_transcript_pack(&d->out, &t, t.n_segments, 0);
    }

    if (rc != LLM_OK) {
        (void) llm_fail_with(&err, 503, NULL, NULL,
                             "no memory for the transcript");
        llm_req_fail(r, &err, 1);
    }
}


/* seconds up to the end of the window at d->frame */

static void
llm_hearing_heard(const llm_hearing_t *h, llm_heard_t *d)
{
    double  end;

    end = (double) (d->frame + llm_whisper_info(h->whisper)->n_frames)
          * LLM_MEL_HOP / LLM_MEL_RATE;
    d->heard_s = llm_seconds_up(llm_min(end, d->seconds));
}


/* what the step has changed for a transcription that runs */

static void
llm_hearing_advance(llm_hearing_t *h, llm_req_t *r)
{
    int               rc;
    llm_err_t         err;
    llm_heard_t      *d;
    llm_speech_ask_t  ask;

    d = r->heard;
    rc = llm_speech_crew_state(h->crew, d->place, &err);

    if (rc == LLM_ERROR) {
        llm_req_fail(r, &err, 0);

    } else if (rc == LLM_OK) {
        d->heard_s = llm_seconds_up(d->seconds);
        llm_hearing_pack(h, r, 1);
        d->ended = 1;
        llm_zone_add(h->counters->generation_tokens,
                     llm_speech_tokens(d->speech));
        llm_zone_add(h->counters->audio_ms, (uint64_t) (d->seconds * 1000));

    } else {
        llm_speech_next(d->speech, &ask);

        if (ask.want == LLM_SPEECH_WINDOW && ask.frame != d->frame) {
            d->frame = ask.frame;
            llm_hearing_pack(h, r, 0);
            llm_hearing_heard(h, d);
        }
    }

    if (d->ended || r->failure) {
        llm_hearing_leave(h, r);
    }
}


int
llm_hearing_step(llm_hearing_t *h, llm_err_t *err)
{
    int         rc;
    uint64_t    encodes;
    llm_req_t  *r;

    llm_hearing_place(h);

    if (h->n_running == 0) {
        return 0;
    }

    encodes = llm_speech_crew_encodes(h->crew);
    rc = llm_speech_crew_step(h->crew, err);
    llm_zone_add(h->counters->steps, 1);
    llm_zone_add(h->counters->encodes,
                 llm_speech_crew_encodes(h->crew) - encodes);

    for (r = h->first; r; r = r->heard->next) {
        if (!r->heard->runs) {
            continue;
        }

        if (rc == LLM_ERROR) {
            llm_req_fail(r, err, 5);
            llm_hearing_leave(h, r);

        } else {
            llm_hearing_advance(h, r);
        }
    }

    return rc == LLM_ERROR ? rc : 1;
}


/* ---- events ---- */

/* a piece of a record; `call` says how many bytes of it follow */

static int
llm_hearing_text(llm_req_t *r)
{
    size_t        n;
    uint32_t      size;
    llm_heard_t  *d;
    llm_event_t  *ev;

    d = r->heard;

    if (d->sent == d->record) {
        memcpy(&size, d->out.data + d->sent, sizeof(size));
        d->record = d->sent + size;
    }

    n = llm_min(d->record - d->sent, (size_t) LLM_HEARING_TEXT);

    if (llm_event_waits(&r->out.to, sizeof(*ev) + n)) {
        return LLM_FULL;
    }

    ev = llm_event_open(&r->out.to, LLM_EV_TEXT, 0, n);

    if (ev == NULL) {
        return LLM_FULL;
    }

    ev->u.text.text.off = sizeof(*ev);
    ev->u.text.text.len = (uint32_t) n;
    ev->u.text.n_tokens = d->due;
    ev->u.text.heard_s = d->heard_s;
    ev->u.text.call = (uint32_t) (d->record - d->sent - n);
    memcpy(ev + 1, d->out.data + d->sent, n);

    r->out.to.unread += ev->size;
    llm_event_close(&r->out.to, ev);
    r->out.to.mark = r->out.to.port->ring.pos;
    d->sent += n;
    r->out.completion_tokens += d->due;
    d->due = 0;

    if (d->sent == d->out.len) {
        d->out.len = 0;
        d->sent = 0;
        d->record = 0;
    }

    return LLM_OK;
}


static int
llm_hearing_done(llm_hearing_t *h, llm_req_t *r)
{
    uint64_t      now;
    llm_event_t  *ev;

    if (r->run.n_ended == 0) {
        ev = llm_event_open(&r->out.to, LLM_EV_FINISH, 0, 0);

        if (ev == NULL) {
            return LLM_FULL;
        }

        ev->u.finish.reason = LLM_FINISH_STOP;
        ev->u.finish.completion_tokens = r->out.completion_tokens;
        ev->u.finish.stop_id = -1;
        llm_event_close(&r->out.to, ev);
        r->run.n_ended = 1;
        llm_zone_add(h->counters->finished[LLM_FINISH_STOP], 1);
    }

    now = llm_now_us();

    if (llm_req_send_done(r, now) != LLM_OK) {
        return LLM_FULL;
    }

    llm_zone_add(h->figures->answered, 1);
    llm_zone_observe(h->counters, LLM_HIST_E2E,
                     now - llm_min(r->msg->arrival_us, r->run.start_us));

    return LLM_OK;
}


/* LLM_OK: all that there is was sent; *over: with the last event */

static int
llm_hearing_send_of(llm_hearing_t *h, llm_req_t *r, int *over)
{
    int           rc;
    llm_heard_t  *d;

    d = r->heard;
    rc = LLM_OK;
    *over = 0;

    if (r->run.start_us == 0 || r->out.paused) {
        return LLM_OK;
    }

    /* what is computed from now on, a client that leaves has used */

    if (d->frame != SIZE_MAX || d->ended) {
        rc = llm_req_send_start(r, h->instance->runner.ctx);
    }

    while (rc == LLM_OK && d->out.len) {
        rc = llm_hearing_text(r);
    }

    if (rc == LLM_OK && d->ended) {
        rc = llm_hearing_done(h, r);
        *over = rc == LLM_OK;
    }

    return rc;
}


int
llm_hearing_send(llm_hearing_t *h, llm_hearing_ended_pt ended,
    llm_hearing_failed_pt failed)
{
    int         left, over;
    llm_req_t  *r, *next;

    left = 0;

    for (r = h->first; r; r = next) {
        next = r->heard->next;

        if (r->failure) {
            failed(h->engine, r, &r->failure->err, r->failure->retry_after);
            continue;
        }

        if (llm_hearing_send_of(h, r, &over) != LLM_OK) {
            left = 1;

        } else if (over) {
            llm_hearing_remove(h, r);
            ended(h->engine, r);
        }
    }

    return left;
}
