/*
 * Transcriptions that share a model; see crew.h.
 */

#include "engine/speech/crew.h"

/* one step of so many is for times of words while others decode, so that they
   come however many others there are */
#define LLM_CREW_ALIGN  3

typedef struct {
    llm_speech_t              *s;       /* NULL: the place is free */
    const llm_speech_sound_t  *sound;
    llm_err_t                  err;     /* status 0: it has not failed */
    uint32_t                   fed;     /* tokens of what it asks for that were
                                           in earlier steps */
    int                        waits;   /* for a window */
    uint64_t                   since;   /* step of the crew in which it began
                                           to wait; if it does not wait: in
                                           which its window was complete */
} llm_speech_place_t;

/* an alignment that is being made */
typedef struct {
    uint32_t                   place;   /* n: none */
    uint32_t                   at;      /* tokens that were computed */
    uint32_t                   head;    /* heads that were weighed */
    float                     *queries; /* of llm_whisper_look() */
    float                     *weights; /* of a head, in the same memory */
} llm_speech_look_t;

struct llm_speech_crew_s {
    llm_whisper_t             *w;
    llm_speech_place_t        *place;   /* [n] */
    llm_whisper_rows_t        *rows;    /* [n] of a step */
    uint32_t                  *whose;   /* [n] place of each of rows */
    uint32_t                   n;
    uint32_t                   next;    /* place that comes first in a step */
    uint32_t                   encoding;    /* place; n: none */
    int                        decoded; /* the last step was not an encoder's */
    uint64_t                   encodes; /* windows that were encoded */
    uint64_t                   steps;   /* so far */
    float                     *window;  /* [bands][n_frames] */
    llm_speech_look_t          look;
};


llm_speech_crew_t *
llm_speech_crew_create(llm_whisper_t *w, uint32_t places, llm_err_t *err)
{
    llm_speech_crew_t         *c;
    const llm_whisper_info_t  *info;

    info = llm_whisper_info(w);

    if (llm_model_batch(llm_whisper_model(w)) < LLM_SPEECH_OUT
        || llm_model_max_out(llm_whisper_model(w)) < LLM_SPEECH_OUT)
    {
        (void) llm_fail(err, "steps of a model of speech must have %u tokens "
                        "at least", LLM_SPEECH_OUT);
        return NULL;
    }

    c = calloc(1, sizeof(llm_speech_crew_t));

    if (c) {
        c->w = w;
        c->n = places;
        c->encoding = places;
        c->look.place = places;
        c->place = calloc(places, sizeof(llm_speech_place_t));
        c->rows = calloc(places, sizeof(llm_whisper_rows_t));
        c->whose = calloc(places, sizeof(uint32_t));
        c->window = malloc((size_t) info->n_mels * info->n_frames
                           * sizeof(float));

        if (c->place && c->rows && c->whose && c->window) {
            return c;
        }
    }

    llm_speech_crew_free(c);
    (void) llm_fail_with(err, 503, NULL, NULL, "no memory for transcriptions");

    return NULL;
}


void
llm_speech_crew_free(llm_speech_crew_t *c)
{
    if (c == NULL) {
        return;
    }

    free(c->place);
    free(c->rows);
    free(c->whose);
    free(c->window);
    free(c->look.queries);
    free(c);
}


int
llm_speech_crew_add(llm_speech_crew_t *c, llm_speech_t *s,
    const llm_speech_sound_t *sound, uint32_t *place)
{
    uint32_t  i;

    for (i = 0; i < c->n; i++) {
        if (c->place[i].s == NULL) {
            memset(&c->place[i], 0, sizeof(c->place[i]));
            c->place[i].s = s;
            c->place[i].sound = sound;
            *place = i;
            return LLM_OK;
        }
    }

    return LLM_FULL;
}


static void
llm_speech_crew_unlook(llm_speech_crew_t *c)
{
    free(c->look.queries);
    memset(&c->look, 0, sizeof(c->look));
    c->look.place = c->n;
}


void
llm_speech_crew_remove(llm_speech_crew_t *c, uint32_t place)
{
    c->place[place].s = NULL;

    if (c->encoding == place) {
        c->encoding = c->n;
    }

    if (c->look.place == place) {
        llm_speech_crew_unlook(c);
    }
}


/* what a place wants; DONE: nothing */

static llm_speech_want_t
llm_speech_crew_want(const llm_speech_crew_t *c, uint32_t place,
    llm_speech_ask_t *ask)
{
    ask->want = LLM_SPEECH_DONE;

    if (c->place[place].s && c->place[place].err.status == 0) {
        llm_speech_next(c->place[place].s, ask);
    }

    return ask->want;
}


int
llm_speech_crew_state(const llm_speech_crew_t *c, uint32_t place,
    llm_err_t *err)
{
    llm_speech_ask_t  ask;

    if (c->place[place].err.status) {
        *err = c->place[place].err;
        return LLM_ERROR;
    }

    return llm_speech_crew_want(c, place, &ask) == LLM_SPEECH_DONE
           ? LLM_OK : LLM_MORE;
}


/* an answer that a transcription could not take: it fails alone */

static void
llm_speech_crew_answered(llm_speech_crew_t *c, uint32_t place, int rc,
    const llm_err_t *err)
{
    if (rc != LLM_OK) {
        c->place[place].err = *err;
    }
}


/* notes who waits for a window; returns whether one waits for longer than
   any other has had its own */

static int
llm_speech_crew_window_first(llm_speech_crew_t *c)
{
    uint32_t             i;
    uint64_t             window, text;
    llm_speech_ask_t     ask;
    llm_speech_place_t  *p;

    window = UINT64_MAX;
    text = UINT64_MAX;

    for (i = 0; i < c->n; i++) {
        p = &c->place[i];

        switch (llm_speech_crew_want(c, i, &ask)) {

        case LLM_SPEECH_WINDOW:
            p->since = p->waits ? p->since : c->steps;
            p->waits = 1;
            window = llm_min(window, p->since);
            break;

        case LLM_SPEECH_STEP:
        case LLM_SPEECH_LANGUAGE:
            p->since = p->waits ? c->steps : p->since;
            p->waits = 0;
            text = llm_min(text, p->since);
            break;

        default:
            break;
        }
    }

    return window < text;
}


/* the place that has waited the longest for a window; n: none waits */

static uint32_t
llm_speech_crew_oldest(const llm_speech_crew_t *c)
{
    uint32_t          i, oldest;
    llm_speech_ask_t  ask;

    oldest = c->n;

    for (i = 0; i < c->n; i++) {
        if (llm_speech_crew_want(c, i, &ask) == LLM_SPEECH_WINDOW
            && (oldest == c->n || c->place[i].since < c->place[oldest].since))
        {
            oldest = i;
        }
    }

    return oldest;
}


/* a piece of a window; LLM_OK: none is wanted */

static int
llm_speech_crew_encode(llm_speech_crew_t *c, llm_err_t *err)
{
    int                  rc;
    uint32_t             i;
    llm_speech_ask_t     ask;
    llm_speech_place_t  *p;

    i = c->encoding == c->n ? llm_speech_crew_oldest(c) : c->n;

    if (i < c->n) {
        p = &c->place[i];
        llm_speech_next(p->s, &ask);
        llm_speech_sound_window(p->sound, ask.frame,
                                llm_whisper_info(c->w)->n_frames, c->window);
        llm_whisper_begin(c->w, i, c->window, llm_speech_has_words(p->s));
        c->encoding = i;
    }

    if (c->encoding == c->n) {
        return LLM_OK;
    }

    rc = llm_whisper_encode(c->w, err);

    if (rc == LLM_OK) {
        i = c->encoding;
        c->encoding = c->n;
        c->encodes++;
        llm_speech_crew_answered(c, i, llm_speech_encoded(c->place[i].s, err),
                                 err);
    }

    return rc == LLM_ERROR ? rc : LLM_MORE;
}


/*
 * The rows of a place in a step that has room for so many tokens: all that are
 * left, or a part of a long prompt.  Those whose logits are wanted come
 * together.  0: there is no room for them.
 */

static uint32_t
llm_speech_crew_rows(const llm_speech_place_t *p, uint32_t place,
    const llm_speech_ask_t *ask, uint32_t room, llm_whisper_rows_t *r)
{
    uint32_t  left;

    left = ask->n - p->fed;

    r->seq = place;
    r->state = place;
    r->pos = ask->pos + p->fed;
    r->tokens = ask->tokens + p->fed;
    r->n = left;
    r->n_out = ask->n_out;

    if (left > room) {
        r->n = llm_min(room, left - ask->n_out);
        r->n_out = 0;
    }

    return r->n;
}


/* tokens of all that want some; LLM_OK: none does */

static int
llm_speech_crew_decode(llm_speech_crew_t *c, llm_err_t *err)
{
    uint32_t            i, k, n, tokens, outs, most, n_out, at;
    llm_speech_ask_t    ask;
    const llm_model_t  *m;

    m = llm_whisper_model(c->w);
    most = llm_model_batch(m);
    tokens = 0;
    outs = 0;
    n = 0;

    for (k = 0; k < c->n; k++) {
        i = (c->next + k) % c->n;

        if (llm_speech_crew_want(c, i, &ask) != LLM_SPEECH_STEP
            && ask.want != LLM_SPEECH_LANGUAGE)
        {
            continue;
        }

        if (llm_speech_crew_rows(&c->place[i], i, &ask, most - tokens,
                                 &c->rows[n]) == 0
            || outs + c->rows[n].n_out > llm_model_max_out(m))
        {
            break;
        }

        c->whose[n] = i;
        tokens += c->rows[n].n;
        outs += c->rows[n++].n_out;
    }

    if (n == 0) {
        return LLM_OK;
    }

    if (llm_whisper_step(c->w, c->rows, n, err) != LLM_OK) {
        return LLM_ERROR;
    }

    for (k = 0, at = 0; k < n; k++) {
        i = c->whose[k];
        n_out = c->rows[k].n_out;
        c->place[i].fed += c->rows[k].n;

        if (n_out == 0) {
            continue;
        }

        c->place[i].fed = 0;
        llm_speech_crew_answered(c, i,
            llm_speech_logits(c->place[i].s, llm_whisper_logits(c->w, at),
                              llm_whisper_logits(c->w, at + n_out - 1), err),
            err);
        at += n_out;
    }

    /* the first one that found no room comes first */
    c->next = (c->whose[n - 1] + 1) % c->n;

    return LLM_MORE;
}


/* begins the alignment of one that wants it; LLM_OK: none does */

static int
llm_speech_crew_begin_look(llm_speech_crew_t *c)
{
    size_t                     n;
    uint32_t                   i;
    llm_speech_ask_t           ask;
    const llm_whisper_info_t  *info;

    for (i = 0; i < c->n; i++) {
        if (llm_speech_crew_want(c, i, &ask) == LLM_SPEECH_ALIGN) {
            break;
        }
    }

    if (i == c->n) {
        return LLM_OK;
    }

    info = llm_whisper_info(c->w);
    n = llm_whisper_queries(c->w, ask.n);
    c->look.place = i;
    c->look.queries = malloc((n + (size_t) ask.n * info->n_audio_ctx)
                             * sizeof(float));

    if (c->look.queries == NULL) {
        llm_speech_crew_unlook(c);
        (void) llm_fail_with(&c->place[i].err, 503, NULL, NULL,
                             "no memory for the times of words");
        return LLM_MORE;
    }

    c->look.weights = c->look.queries + n;

    return LLM_MORE;
}


/*
 * A piece of an alignment, so that no text of another model waits for all of
 * it: some of its tokens, or one of the heads, whose weights take some
 * milliseconds.
 */

static int
llm_speech_crew_align(llm_speech_crew_t *c, llm_err_t *err)
{
    int                    rc;
    llm_speech_ask_t       ask;
    llm_whisper_rows_t     r;
    llm_speech_look_t     *look = &c->look;

    if (look->place == c->n) {
        rc = llm_speech_crew_begin_look(c);

        if (rc != LLM_MORE || look->place == c->n) {
            return rc;
        }
    }

    (void) llm_speech_crew_want(c, look->place, &ask);
    memset(&r, 0, sizeof(r));
    r.seq = look->place;
    r.state = look->place;
    r.tokens = ask.tokens;
    r.n = ask.n;

    if (look->at < ask.n) {
        rc = llm_whisper_look(c->w, &r, &look->at, look->queries, err);
        return rc == LLM_ERROR ? rc : LLM_MORE;
    }

    if (look->head < llm_whisper_info(c->w)->n_align) {
        llm_whisper_weigh(c->w, &r, look->head++, look->queries,
                          look->weights);

    } else {
        look->weights = NULL;
    }

    rc = llm_speech_aligned(c->place[look->place].s, look->weights, err);

    if (rc != LLM_MORE) {
        llm_speech_crew_answered(c, look->place, rc, err);
        llm_speech_crew_unlook(c);
    }

    return LLM_MORE;
}


uint64_t
llm_speech_crew_encodes(const llm_speech_crew_t *c)
{
    return c->encodes;
}


int
llm_speech_crew_step(llm_speech_crew_t *c, llm_err_t *err)
{
    int  rc, k, first;

    first = llm_speech_crew_window_first(c);
    c->steps++;

    if (c->steps % LLM_CREW_ALIGN == 0) {
        rc = llm_speech_crew_align(c, err);

        if (rc != LLM_OK) {
            return rc;
        }
    }

    for (k = 0; k < 2; k++) {
        c->decoded = !c->decoded && !(first && k == 0);
        rc = c->decoded ? llm_speech_crew_decode(c, err)
                        : llm_speech_crew_encode(c, err);

        if (rc != LLM_OK) {
            return rc;
        }
    }

    return llm_speech_crew_align(c, err);
}


int
llm_speech_run(llm_speech_t *s, llm_whisper_t *w,
    const llm_speech_sound_t *sound, llm_err_t *err)
{
    int                 rc;
    uint32_t            place = 0;
    llm_speech_crew_t  *c;

    c = llm_speech_crew_create(w, 1, err);

    if (c == NULL) {
        return LLM_ERROR;
    }

    (void) llm_speech_crew_add(c, s, sound, &place);

    do {
        rc = llm_speech_crew_step(c, err);
    } while (rc == LLM_MORE);

    rc = (rc == LLM_OK) ? llm_speech_crew_state(c, place, err) : rc;
    llm_speech_crew_free(c);

    return rc;
}
