/*
 * POST /audio/transcriptions and /audio/translations: a form with a sound in
 * (form.c), its transcript out.
 *
 * The engine sends segments as records (base/transcript.h), in pieces.  A
 * record is kept when its first piece comes; the last record has no segment.
 */

#include "engine/api/endpoint.h"

#include <stdlib.h>

/* a record, in the arena */
struct llm_api_record_s {
    llm_api_record_t         *next;
    size_t                    size;
    size_t                    len;      /* bytes that have come */
    uint64_t                  data[];
};

/* a transcript made of records; its arrays are malloc'ed */
typedef struct {
    llm_transcript_t          t;
    llm_transcript_segment_t *segments;
    llm_transcript_word_t    *words;
    llm_transcript_piece_t   *pieces;   /* in the order of their ids */
    size_t                    n_pieces;
} llm_api_said_t;


static int
llm_api_hears_text(llm_api_t *a, const llm_event_t *ev, llm_err_t *err)
{
    size_t             n, size;
    llm_api_heard_t   *own = a->own;
    llm_api_record_t  *rec;

    n = ev->u.text.text.len;
    rec = own->last;

    if (rec == NULL || rec->len == rec->size) {
        size = n + ev->u.text.call;
        rec = llm_api_keep(a, sizeof(*rec) + size, err);

        if (rec == NULL) {
            return LLM_ERROR;
        }

        rec->next = NULL;
        rec->size = size;
        rec->len = 0;
        *(own->last ? &own->last->next : &own->first) = rec;
        own->last = rec;
    }

    if (n > rec->size - rec->len) {
        return llm_fail(err, "malformed answer of the engine");
    }

    memcpy((char *) rec->data + rec->len, llm_ref_data(ev, ev->u.text.text),
           n);
    rec->len += n;

    return LLM_OK;
}


static int
llm_api_is_whole(const llm_api_record_t *rec)
{
    return rec && rec->len == rec->size;
}


static int
llm_api_hears_keep(llm_api_t *a, const llm_event_t *ev, llm_err_t *err)
{
    const llm_api_heard_t *own = a->own;

    if (ev->type == LLM_EV_TEXT) {
        return llm_api_hears_text(a, ev, err);
    }

    return ev->type == LLM_EV_DONE && own->last && !llm_api_is_whole(own->last)
           ? llm_fail(err, "malformed answer of the engine") : LLM_OK;
}


static int
llm_api_said_compare(const void *a, const void *b)
{
    const llm_transcript_piece_t  *x = a, *y = b;

    return x->id < y->id ? -1 : x->id > y->id;
}


static llm_str_t
llm_api_said_piece(void *ctx, int32_t id)
{
    llm_str_t                none = { 0, NULL };
    const llm_api_said_t    *said = ctx;
    llm_transcript_piece_t   key, *p;

    key.id = id;
    p = said->n_pieces ? bsearch(&key, said->pieces, said->n_pieces,
                                 sizeof(key), llm_api_said_compare) : NULL;

    return p ? p->bytes : none;
}


static void
llm_api_said_free(llm_api_said_t *said)
{
    free(said->segments);
    free(said->words);
    free(said->pieces);
}


/* the transcript of the records from `first` to the last that is whole;
   LLM_ERROR: no memory, or one is malformed */

static int
llm_api_said_make(const llm_api_record_t *first, llm_api_said_t *said)
{
    size_t                     n, words;
    uint32_t                   w, p, k;
    const llm_api_record_t    *rec;

    memset(said, 0, sizeof(*said));

    for (rec = first, n = 0, words = 0; llm_api_is_whole(rec); rec = rec->next)
    {
        if (llm_transcript_peek(rec->data, rec->size, &said->t, &w, &p)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        n++;
        words += w;
        said->n_pieces += p;
    }

    said->segments = calloc(n + 1, sizeof(*said->segments));
    said->words = calloc(words + 1, sizeof(*said->words));
    said->pieces = calloc(said->n_pieces + 1, sizeof(*said->pieces));

    if (said->segments == NULL || said->words == NULL
        || said->pieces == NULL)
    {
        return LLM_ERROR;
    }

    k = 0;

    for (rec = first, n = 0, words = 0; llm_api_is_whole(rec); rec = rec->next)
    {
        (void) llm_transcript_peek(rec->data, rec->size, &said->t, &w, &p);
        k += llm_transcript_unpack(rec->data, &said->segments[k],
                                   &said->words[words], &said->pieces[n]);
        words += w;
        n += p;
    }

    said->t.segments = said->segments;
    said->t.n_segments = k;

    return LLM_OK;
}


static int
llm_api_said(const llm_api_record_t *first, llm_api_said_t *said)
{
    size_t  i, n;

    if (llm_api_said_make(first, said) != LLM_OK) {
        return LLM_ERROR;
    }

    if (said->n_pieces) {
        qsort(said->pieces, said->n_pieces, sizeof(*said->pieces),
              llm_api_said_compare);

        for (i = 1, n = 1; i < said->n_pieces; i++) {
            if (said->pieces[i].id != said->pieces[n - 1].id) {
                said->pieces[n++] = said->pieces[i];
            }
        }

        said->n_pieces = n;
        said->t.piece = llm_api_said_piece;
        said->t.ctx = said;
    }

    return LLM_OK;
}


/* ---- streams ---- */

static void
llm_api_hears_event(llm_api_t *a, const llm_event_t *ev, llm_buf_t *out)
{
    llm_api_said_t           said;
    llm_api_heard_t         *own = a->own;
    const llm_api_record_t  *from;

    if (ev->type != LLM_EV_DONE
        && (ev->type != LLM_EV_TEXT || ev->u.text.call))
    {
        return;
    }

    from = own->told && ev->type == LLM_EV_TEXT ? own->told->next : own->first;

    if (llm_api_said(from, &said) != LLM_OK) {
        out->failed = 1;

    } else if (ev->type == LLM_EV_DONE) {
        (void) llm_transcript_done(out, &said.t, own->has);

    } else {
        (void) llm_transcript_deltas(out, &said.t, &own->begun, own->has);
        own->told = own->last;
    }

    llm_api_said_free(&said);
}


/* ---- bodies ---- */

/* writes the whole body to own->body, in the arena */

static int
llm_api_hears_write(llm_api_t *a)
{
    int               rc;
    char             *to;
    llm_buf_t         body;
    llm_api_said_t    said;
    llm_api_heard_t  *own = a->own;

    llm_buf_init(&body, 0);
    rc = llm_api_said(own->first, &said);

    if (rc == LLM_OK) {
        rc = llm_transcript_write(&body, &said.t, own->format, own->has);
    }

    llm_api_said_free(&said);
    to = rc == LLM_OK ? llm_arena_alloc(&a->kept, body.len + 1) : NULL;

    if (to) {
        own->body = (llm_str_t) { body.len, to };

        if (body.len) {                 /* subtitles of silence are empty */
            memcpy(to, body.data, body.len);
        }
    }

    llm_buf_free(&body);

    return to ? LLM_OK : LLM_ERROR;
}


static int
llm_api_hears_body(llm_api_t *a, size_t max, llm_buf_t *out)
{
    size_t            n;
    llm_api_heard_t  *own = a->own;

    if (own->body.data == NULL && llm_api_hears_write(a) != LLM_OK) {
        return LLM_ERROR;
    }

    n = llm_min(own->body.len - own->at,
                max > out->len ? max - out->len : (size_t) 1);
    (void) llm_buf_add(out, own->body.data + own->at, n);
    own->at += n;

    return out->failed ? LLM_ERROR
           : own->at < own->body.len ? LLM_MORE : LLM_OK;
}


static void
llm_api_hears_said(const llm_api_t *a, llm_buf_t *out)
{
    llm_api_said_t          said;
    const llm_api_heard_t  *own = a->own;

    if (llm_api_said_make(own->first, &said) == LLM_OK) {
        (void) llm_transcript_write(out, &said.t, LLM_TRANSCRIPT_TEXT, 0);
    }

    llm_api_said_free(&said);
}


static const char *
llm_api_hears_type(const llm_api_t *a)
{
    const llm_api_heard_t *own = a->own;

    return llm_transcript_type(own->format);
}


/* those of a form are in sound_form.c */

static const llm_api_fields_t  llm_api_hears_fields = { NULL, 0 };

const llm_api_endpoint_t  llm_api_transcriptions = {
    .task = LLM_TASK_LISTEN,
    .form = 1,
    .fields = &llm_api_hears_fields,
    .event = llm_api_hears_event,
    .body = llm_api_hears_body,
    .keep = llm_api_hears_keep,
    .text = llm_api_hears_said,
    .body_type = llm_api_hears_type
};

const llm_api_endpoint_t  llm_api_translations = {
    .task = LLM_TASK_LISTEN,
    .form = 1,
    .fields = &llm_api_hears_fields,
    .event = llm_api_hears_event,
    .body = llm_api_hears_body,
    .keep = llm_api_hears_keep,
    .text = llm_api_hears_said,
    .body_type = llm_api_hears_type
};
