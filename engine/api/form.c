/*
 * The body of a request with a sound: a form, whose file goes into the memory
 * for media piece by piece and whose fields become the message.
 *
 * The block for the file is taken for the rest of the body when the file
 * begins, and shrinks when it has ended.  It belongs to the form until the
 * message is complete.
 */

#include "engine/api/media.h"
#include "engine/api/sound_form.h"
#include "engine/base/language.h"

struct llm_api_form_s {
    const llm_api_endpoint_t  *endpoint;
    const llm_api_conf_t      *conf;
    size_t                     left;    /* bytes of the body to come */
    llm_chunk_t                block;
    size_t                     len;     /* bytes of the file so far */
    int                        begun;   /* the block was asked for */
    llm_sound_form_t           form;
};


int
llm_api_takes_form(const llm_api_endpoint_t *ep)
{
    return ep && ep->form;
}


static int
llm_api_form_too_large(const llm_api_form_t *f, llm_err_t *err)
{
    return llm_fail_with(err, 413, "media_too_large", "file",
                         "The file is too large: this server takes at most "
                         "%zu bytes of audio (llm_max_audio_size).",
                         f->conf->media.max_sound);
}


static int
llm_api_form_full(const llm_api_form_t *f, size_t size, llm_err_t *err)
{
    llm_media_stats_t  st;

    llm_zone_media_stats(f->conf->zone, &st);

    if (st.bytes == 0) {
        return llm_fail_with(err, 400, "unsupported_model", "model", "No model "
                             "of this server's configuration transcribes "
                             "speech.");
    }

    if (size > st.bytes) {
        return llm_fail_with(err, 413, "media_too_large", "file",
                             "The file is too large: this server has %llu "
                             "bytes for the media of all requests "
                             "(llm_media_memory).",
                             (unsigned long long) st.bytes);
    }

    llm_media_refused(f->conf->zone);

    return llm_fail_with(err, 429, "media_memory_full", "file",
                         "The server has no room for another file now: those "
                         "of other requests take %llu of %llu bytes "
                         "(llm_media_memory).", (unsigned long long) st.used,
                         (unsigned long long) st.bytes);
}


/* takes a block for what may come of the file */

static int
llm_api_form_begin(llm_api_form_t *f, llm_err_t *err)
{
    size_t  size;

    size = llm_min(f->left, f->conf->media.max_sound);
    f->begun = 1;

    return llm_media_alloc(f->conf->zone, f->conf->holder, size, &f->block)
           == LLM_OK ? LLM_OK : llm_api_form_full(f, size, err);
}


static int
llm_api_form_file(void *ctx, const void *data, size_t len, llm_err_t *err)
{
    char            *to;
    llm_api_form_t  *f = ctx;

    if (len > f->conf->media.max_sound - f->len) {
        return llm_api_form_too_large(f, err);
    }

    if (len == 0) {
        return LLM_OK;
    }

    if (!f->begun && llm_api_form_begin(f, err) != LLM_OK) {
        return LLM_ERROR;
    }

    to = llm_media_data(f->conf->zone, &f->block);

    if (to == NULL || len > f->block.len - f->len) {
        return llm_fail(err, "the request's body is longer than it was");
    }

    memcpy(to + f->len, data, len);
    f->len += len;

    return LLM_OK;
}


llm_api_form_t *
llm_api_form_create(const llm_api_endpoint_t *ep, const llm_api_conf_t *conf,
    llm_str_t content_type, size_t size, llm_err_t *err)
{
    llm_api_form_t  *f;

    f = calloc(1, sizeof(llm_api_form_t));

    if (f == NULL) {
        (void) llm_fail(err, "no memory for the request");
        return NULL;
    }

    f->endpoint = ep;
    f->conf = conf;
    f->left = size;

    if (llm_sound_form_init(&f->form, content_type,
                            ep == &llm_api_translations, err)
        != LLM_OK)
    {
        llm_api_form_free(f);
        return NULL;
    }

    f->form.file = llm_api_form_file;
    f->form.ctx = f;

    return f;
}


void
llm_api_form_free(llm_api_form_t *f)
{
    if (f == NULL) {
        return;
    }

    if (f->block.n) {
        llm_media_free(f->conf->zone, f->conf->holder, &f->block);
    }

    llm_sound_form_free(&f->form);
    free(f);
}


int
llm_api_form_read(llm_api_form_t *f, const void *data, size_t len,
    llm_err_t *err)
{
    int  rc;

    rc = llm_sound_form_read(&f->form, data, len, err);
    f->left -= llm_min(len, f->left);

    return rc;
}


/* the model, by its name, or the default one */

static int
llm_api_form_model(llm_api_form_t *f, llm_request_t *r, llm_err_t *err)
{
    int32_t  i;

    i = llm_api_resolve(f->conf, f->form.model, err);

    if (i < 0 && f->form.model.len == 0) {
        return llm_fail_with(err, 400, "missing_required_parameter", "model",
                             "Missing required parameter: 'model'.");
    }

    if (i < 0) {
        return LLM_ERROR;
    }

    r->model = (uint32_t) i;
    r->naming = f->conf->models[i].naming;

    return LLM_OK;
}


static void
llm_api_form_request(llm_api_form_t *f, llm_api_reader_t *rd)
{
    llm_request_t           *r;
    const llm_sound_form_t  *s;

    r = &rd->r;
    s = &f->form;

    r->head.type = LLM_MSG_REQUEST;
    r->task = LLM_TASK_LISTEN;
    r->kind = LLM_KIND_NONE;
    r->n = 1;
    r->weight = 1000;
    r->arrival_us = llm_now_us();
    r->max_tokens = -1;
    r->sampling.n_logprobs = -1;
    r->flags = s->stream ? LLM_REQ_STREAM : 0;
    r->flags |= s->has & LLM_TRANSCRIPT_LOGPROBS ? LLM_REQ_PIECES : 0;
    r->max_seconds = f->conf->media.max_seconds;
    r->language = s->language;
    r->translate = s->translate != 0;
    r->words = (s->has & LLM_TRANSCRIPT_WORDS) != 0;
    r->heat = s->temperature;
    r->chance = s->seed;

    (void) llm_buf_add(rd->msg, r, sizeof(llm_request_t));
    (void) llm_buf_pad(rd->msg);
    r->spoken = llm_api_write_string(rd->msg, s->prompt);
}


/* what a guard is told of the form: its texts */

static void
llm_api_form_guard(const llm_api_form_t *f, llm_buf_t *guard)
{
    size_t                   handle;
    llm_buf_t                flat;
    uint32_t                 n;
    const llm_sound_form_t  *s;

    s = &f->form;
    n = 0;
    llm_buf_init(&flat, 0);
    handle = llm_flat_open(&flat, LLM_FLAT_OBJECT);

    if (s->prompt.len) {
        llm_flat_add_str(&flat, "prompt", 6);
        llm_flat_add_str(&flat, s->prompt.data, s->prompt.len);
        n++;
    }

    if (s->language >= 0) {
        const char  *code = llm_language((size_t) s->language)->code;

        llm_flat_add_str(&flat, "language", 8);
        llm_flat_add_str(&flat, code, strlen(code));
        n++;
    }

    llm_flat_close(&flat, handle, n);

    if (flat.failed) {
        guard->failed = 1;

    } else {
        llm_api_guard_rest((const llm_flat_t *) flat.data, guard);
    }

    llm_buf_free(&flat);
}


/* the message; from here on the block is rd's */

static int
llm_api_form_write(llm_api_form_t *f, llm_api_reader_t *rd, llm_err_t *err)
{
    llm_media_ref_t  m;
    llm_api_heard_t  own;

    llm_api_form_request(f, rd);

    memset(&m, 0, sizeof(m));
    m.kind = LLM_MEDIUM_AUDIO;
    m.block = f->block;
    m.place.len = 4;
    (void) llm_buf_adds(&rd->media_texts, "file");
    (void) llm_buf_add(&rd->media, &m, sizeof(m));

    memset(&own, 0, sizeof(own));
    own.format = f->form.format;
    own.has = f->form.has;
    (void) llm_buf_add(&rd->own, &own, sizeof(own));

    if (rd->media.failed || rd->media_texts.failed) {
        rd->media.len = 0;
        return llm_fail(err, "no memory for the request");
    }

    memset(&f->block, 0, sizeof(f->block));
    llm_api_media_end(rd);

    if (rd->msg->failed || rd->msg->len > UINT32_MAX) {
        return llm_fail_with(err, 413, NULL, NULL,
                             "The request is too large for this server.");
    }

    rd->r.head.size = (uint32_t) rd->msg->len;
    memcpy(rd->msg->data, &rd->r, sizeof(llm_request_t));

    return LLM_OK;
}


static llm_api_t *
llm_api_form_parsed(llm_api_form_t *f, llm_api_reader_t *rd, llm_err_t *err)
{
    llm_api_t  *a;

    if (llm_api_form_write(f, rd, err) != LLM_OK) {
        return NULL;
    }

    if (f->conf->guard) {
        llm_api_form_guard(f, f->conf->guard);

        if (f->conf->guard->failed) {
            (void) llm_fail(err, "no memory for the request");
            return NULL;
        }
    }

    a = llm_api_create(rd);

    if (a == NULL) {
        (void) llm_fail(err, "no memory for the request");
    }

    return a;
}


llm_api_t *
llm_api_form_end(llm_api_form_t *f, llm_buf_t *msg, llm_err_t *err)
{
    llm_api_t         *a;
    llm_api_reader_t   rd;

    llm_api_reader_init(&rd, f->endpoint, f->conf, msg);

    if (llm_sound_form_end(&f->form, err) != LLM_OK
        || llm_api_form_model(f, &rd.r, err) != LLM_OK)
    {
        return NULL;
    }

    if (f->len == 0) {
        (void) llm_fail_with(err, 400, "invalid_value", "file",
                             "Invalid 'file': it is empty.");
        return NULL;
    }

    llm_media_shrink(f->conf->zone, f->conf->holder, &f->block, f->len);

    rd.n_choices = 1;

    a = llm_api_form_parsed(f, &rd, err);
    llm_api_reader_free(&rd, a == NULL);

    return a;
}
