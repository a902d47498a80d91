/*
 * Takes the media of a request into the memory that workers and engine share,
 * and writes them to its message; see media.h.
 *
 * Until the message is complete the blocks belong to rd->media.
 */

#include "engine/api/media.h"


void
llm_api_media_begin(llm_api_reader_t *rd)
{
    int32_t            model;
    uint32_t           i, any;
    llm_err_t          err;
    llm_str_t          name;
    const llm_flat_t  *v;

    for (i = 0, any = 0; rd->conf->holder && i < rd->conf->n_models; i++) {
        any |= rd->conf->models[i].media;
    }

    rd->takes = 0;

    if (any == 0 || rd->endpoint->bodiless) {
        return;
    }

    v = llm_api_member(rd->root, "model");
    name = v && v->type == LLM_FLAT_STRING ? llm_flat_str(v) : llm_str("");
    model = llm_api_resolve(rd->conf, name, &err);

    /* a wrong name is an error, which is more important than what such a model
       takes */

    rd->takes = model < 0 ? any : rd->conf->models[model].media;
}


void
llm_api_media_rules(const llm_api_reader_t *rd, llm_api_media_rules_t *rules)
{
    rules->conf = rd->conf;
    rules->drafted = rd->drafted;
    rules->takes = rd->takes;
}


static size_t
llm_api_media_n(const llm_api_reader_t *rd)
{
    return rd->media.len / sizeof(llm_media_ref_t);
}


/* what the media of a request are, with m */

static const char *
llm_api_media_nouns(const llm_api_reader_t *rd, const llm_api_media_t *m)
{
    size_t                  i;
    uint32_t                kinds;
    const llm_media_ref_t  *list;

    list = (const llm_media_ref_t *) rd->media.data;
    kinds = m->kind;

    for (i = 0; i < llm_api_media_n(rd); i++) {
        kinds |= list[i].kind;
    }

    return kinds == LLM_MEDIUM_IMAGE ? "images"
           : kinds == LLM_MEDIUM_AUDIO ? "sounds" : "images and sounds";
}


static int
llm_api_media_full(llm_api_reader_t *rd, const llm_api_media_t *m,
    size_t size, const char *path, llm_err_t *err)
{
    llm_media_stats_t   st;

    llm_zone_media_stats(rd->conf->zone, &st);

    if (size > llm_media_left(rd->conf->zone,
                              (const llm_media_ref_t *) rd->media.data,
                              llm_api_media_n(rd)))
    {
        return llm_fail_with(err, 400, "media_too_large", path,
                             "The %s of this request up to this one take more "
                             "than the %llu bytes that this server has for "
                             "those of all requests (llm_media_memory), of "
                             "which each takes a multiple of %d.",
                             llm_api_media_nouns(rd, m),
                             (unsigned long long) st.bytes, LLM_MEDIA_CHUNK);
    }

    llm_media_refused(rd->conf->zone);

    return llm_fail_with(err, 429, "media_memory_full", path,
                         "The server has no room for another %s now: the "
                         "images and sounds of other requests take %llu of "
                         "%llu bytes (llm_media_memory).",
                         m->kind == LLM_MEDIUM_IMAGE ? "image" : "sound",
                         (unsigned long long) st.used,
                         (unsigned long long) st.bytes);
}


/* decodes base64 to a block */

static int
llm_api_media_decode(llm_api_reader_t *rd, const llm_api_media_t *m,
    const char *path, llm_chunk_t *b, llm_err_t *err)
{
    int     rc;
    size_t  size;

    size = llm_base64_size(m->text.data, m->text.len);
    rc = llm_media_alloc(rd->conf->zone, rd->conf->holder, size, b);

    if (rc != LLM_OK) {
        return llm_api_media_full(rd, m, size, path, err);
    }

    if (llm_base64_read(llm_media_data(rd->conf->zone, b), m->text.data,
                        m->text.len)
        != LLM_OK)
    {
        llm_media_free(rd->conf->zone, rd->conf->holder, b);
        return llm_fail_with(err, 400, "invalid_value", path,
                             "Invalid base64: it has characters that are "
                             "neither digits of base64 (A-Z, a-z, 0-9, + and "
                             "/) nor white space.");
    }

    return LLM_OK;
}


int
llm_api_media_take(llm_api_reader_t *rd, llm_api_media_t *m,
    const llm_api_at_t *at, llm_err_t *err)
{
    char             path[192];
    size_t           n;
    llm_media_ref_t  media;

    n = llm_api_media_n(rd);

    if (m->source == LLM_API_SOURCE_TAKEN) {
        return m->index < n ? LLM_OK : llm_fail(err, "malformed draft");
    }

    llm_api_at_text(at, path, sizeof(path));

    if (n >= rd->conf->media.most) {
        return llm_fail_with(err, 400, "too_many_images", path,
                             "Too many %s: this server takes at most %u in a "
                             "request, images and sounds together "
                             "(llm_max_images).", llm_api_media_nouns(rd, m),
                             rd->conf->media.most);
    }

    if (m->source == LLM_API_SOURCE_URL
        && ++rd->n_urls > LLM_API_MAX_URLS)
    {
        return llm_fail_with(err, 400, "too_many_images", path,
                             "Too many URLs: at most %d of a request are "
                             "fetched. Send the %s themselves.",
                             LLM_API_MAX_URLS, llm_api_media_nouns(rd, m));
    }

    memset(&media, 0, sizeof(media));
    media.kind = m->kind;
    media.type = m->type;
    media.detail = m->detail;

    /* offsets in rd->media_texts, for now */

    media.place.off = (uint32_t) rd->media_texts.len;
    media.place.len = (uint32_t) strlen(path);
    (void) llm_buf_add(&rd->media_texts, path, media.place.len);

    if (m->source == LLM_API_SOURCE_URL) {
        media.url.off = (uint32_t) rd->media_texts.len;
        media.url.len = (uint32_t) m->text.len;
        (void) llm_buf_add(&rd->media_texts, m->text.data, m->text.len);

    } else if (llm_api_media_decode(rd, m, path, &media.block, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    (void) llm_buf_add(&rd->media, &media, sizeof(media));

    if (rd->media.failed || rd->media_texts.failed) {
        llm_media_free(rd->conf->zone, rd->conf->holder, &media.block);
        return llm_fail(err, "no memory for the request");
    }

    m->index = (uint32_t) n;

    return LLM_OK;
}


void
llm_api_media_write(const llm_api_media_t *m, llm_buf_t *out)
{
    size_t  handle;

    handle = llm_flat_open(out, LLM_FLAT_OBJECT);
    llm_flat_add_str(out, "type", 4);
    llm_flat_add_str(out, m->kind == LLM_MEDIUM_IMAGE ? "image" : "audio", 5);
    llm_flat_add_str(out, LLM_CHAT_MEDIA, sizeof(LLM_CHAT_MEDIA) - 1);
    llm_flat_add_int(out, m->index);
    llm_flat_close(out, handle, 2);
}


void
llm_api_media_end(llm_api_reader_t *rd)
{
    size_t            i, n, texts;
    llm_buf_t        *msg;
    llm_media_ref_t  *list;

    msg = rd->msg;
    n = llm_api_media_n(rd);

    if (n == 0) {
        return;
    }

    (void) llm_buf_pad(msg);
    texts = msg->len;
    (void) llm_buf_add(msg, rd->media_texts.data, rd->media_texts.len);
    (void) llm_buf_pad(msg);

    list = (llm_media_ref_t *) rd->media.data;

    for (i = 0; i < n; i++) {
        list[i].place.off += (uint32_t) texts;
        list[i].url.off += list[i].url.len ? (uint32_t) texts : 0;
    }

    rd->r.media.off = (uint32_t) msg->len;
    rd->r.media.len = (uint32_t) n;
    rd->r.max_pixels = rd->conf->media.max_pixels;
    rd->r.max_seconds = rd->conf->media.max_seconds;
    (void) llm_buf_add(msg, rd->media.data, rd->media.len);
    (void) llm_buf_pad(msg);
}


void
llm_api_media_drop(llm_api_reader_t *rd)
{
    size_t            i;
    llm_media_ref_t  *list;

    list = (llm_media_ref_t *) rd->media.data;

    for (i = 0; i < llm_api_media_n(rd); i++) {
        llm_media_free(rd->conf->zone, rd->conf->holder, &list[i].block);
    }
}
