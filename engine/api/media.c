/*
 * Reads what parts of images and sound say; see media.h.
 */

#include "engine/api/media.h"

/* longer types are not shown */
#define LLM_API_MEDIA_SHOWN  64

typedef int (*llm_api_media_pt)(const llm_api_media_row_t *row,
    const llm_flat_t *part, const llm_api_media_rules_t *rules,
    const llm_api_at_t *at, llm_api_media_t *m, llm_err_t *err);

struct llm_api_media_row_s {
    const char            *type;
    uint32_t               kind;
    const char            *member;
    llm_api_media_pt       read;
};


/* ---- what bytes are ---- */

static const struct {
    const char            *name;
    uint32_t               kind;
    llm_media_type_t       type;
} llm_api_media_types[] = {
    { "image/png", LLM_MEDIUM_IMAGE, LLM_MEDIA_PNG },
    { "image/jpeg", LLM_MEDIUM_IMAGE, LLM_MEDIA_JPEG },
    { "image/jpg", LLM_MEDIUM_IMAGE, LLM_MEDIA_JPEG },
    { "image/webp", LLM_MEDIUM_IMAGE, LLM_MEDIA_WEBP },
    { "image/gif", LLM_MEDIUM_IMAGE, LLM_MEDIA_GIF },
    { "image/bmp", LLM_MEDIUM_IMAGE, LLM_MEDIA_BMP },
    { "image/x-ms-bmp", LLM_MEDIUM_IMAGE, LLM_MEDIA_BMP },
    { "audio/wav", LLM_MEDIUM_AUDIO, LLM_MEDIA_WAV },
    { "audio/x-wav", LLM_MEDIUM_AUDIO, LLM_MEDIA_WAV },
    { "audio/wave", LLM_MEDIUM_AUDIO, LLM_MEDIA_WAV },
    { "audio/mpeg", LLM_MEDIUM_AUDIO, LLM_MEDIA_MP3 },
    { "audio/mp3", LLM_MEDIUM_AUDIO, LLM_MEDIA_MP3 },
    { "audio/flac", LLM_MEDIUM_AUDIO, LLM_MEDIA_FLAC },
    { "audio/ogg", LLM_MEDIUM_AUDIO, LLM_MEDIA_OGG },
    { "audio/opus", LLM_MEDIUM_AUDIO, LLM_MEDIA_OGG }
};


static const char *
llm_api_media_known(uint32_t kind)
{
    return kind == LLM_MEDIUM_IMAGE
           ? "Supported are image/png, image/jpeg, image/webp, image/gif and "
             "image/bmp."
           : "Supported are audio/wav, audio/mpeg, audio/flac and audio/ogg.";
}


static int
llm_api_media_same(llm_str_t s, const char *name)
{
    size_t  i;

    for (i = 0; i < s.len && name[i]; i++) {
        if ((s.data[i] | 0x20) != (name[i] | 0x20)) {
            return 0;
        }
    }

    return i == s.len && name[i] == '\0';
}


/* sets m->type by a media type; an empty one says nothing */

static int
llm_api_media_type(llm_str_t s, const llm_api_at_t *at, llm_api_media_t *m,
    llm_err_t *err)
{
    size_t  i;

    m->type = LLM_MEDIA_ANY;

    if (s.len == 0) {
        return LLM_OK;
    }

    for (i = 0; i < llm_nelems(llm_api_media_types); i++) {
        if (llm_api_media_types[i].kind == m->kind
            && llm_api_media_same(s, llm_api_media_types[i].name))
        {
            m->type = llm_api_media_types[i].type;
            return LLM_OK;
        }
    }

    s.len = llm_min(s.len, (size_t) LLM_API_MEDIA_SHOWN);

    return llm_api_bad_value(err, at, "Unsupported media type: '%.*s'. %s",
                             (int) s.len, s.data,
                             llm_api_media_known(m->kind));
}


/* ---- sources ---- */

static int
llm_api_media_size(const llm_api_media_t *m,
    const llm_api_media_rules_t *rules, const llm_api_at_t *at, llm_err_t *err)
{
    char         path[192];
    size_t       n, max;
    const char  *what;

    n = llm_base64_size(m->text.data, m->text.len);
    max = rules->conf->media.max_size;
    what = m->kind == LLM_MEDIUM_IMAGE ? "image" : "audio";

    if (n == 0) {
        return llm_api_bad_value(err, at, "The %s is empty.", what);
    }

    if (n == SIZE_MAX) {
        return llm_api_bad_value(err, at, "Invalid base64: it is cut off, or "
                                 "has characters that are no digits.");
    }

    if (n > max) {
        llm_api_at_text(at, path, sizeof(path));

        return llm_fail_with(err, 400, "media_too_large", path,
                             "The %s has %zu bytes, more than the %zu that "
                             "this server takes (llm_max_image_size).", what,
                             n, max);
    }

    return LLM_OK;
}


static int
llm_api_media_base64(llm_str_t text, const llm_api_media_rules_t *rules,
    const llm_api_at_t *at, llm_api_media_t *m, llm_err_t *err)
{
    m->source = LLM_API_SOURCE_BASE64;
    m->text = text;

    return llm_api_media_size(m, rules, at, err);
}


/* "data:image/png;base64,iVBO..." */

static int
llm_api_media_data(llm_str_t s, const llm_api_media_rules_t *rules,
    const llm_api_at_t *at, llm_api_media_t *m, llm_err_t *err)
{
    llm_str_t    type, head;
    const char  *comma, *p;

    static const char  base64[] = ";base64";

    s.data += 5;
    s.len -= 5;
    comma = memchr(s.data, ',', llm_min(s.len, (size_t) 256));
    head = (llm_str_t) { comma ? (size_t) (comma - s.data) : 0, s.data };

    if (head.len < sizeof(base64) - 1
        || !llm_api_media_same((llm_str_t) { sizeof(base64) - 1,
                                             comma - (sizeof(base64) - 1) },
                               base64))
    {
        return llm_api_bad_value(err, at, "Invalid data: URL: expected "
                                 "'data:TYPE;base64,DATA'.");
    }

    p = memchr(head.data, ';', head.len);
    type = (llm_str_t) { (size_t) (p - head.data), head.data };

    if (llm_api_media_type(type, at, m, err) != LLM_OK) {
        return LLM_ERROR;
    }

    s.len -= (size_t) (comma + 1 - s.data);
    s.data = comma + 1;

    return llm_api_media_base64(s, rules, at, m, err);
}


/* a URL goes into a request of nginx's, so it has no character that would end
   it there */

static int
llm_api_media_http(llm_str_t s, const llm_api_media_rules_t *rules,
    const llm_api_at_t *at, llm_api_media_t *m, llm_err_t *err)
{
    size_t       i, host;
    const char  *hash;

    if (!rules->conf->media.fetch) {
        return llm_api_bad_value(err, at, "This server does not fetch URLs: "
                                 "its operator has not set llm_fetch. Send "
                                 "the file itself, as a data: URL or as "
                                 "base64.");
    }

    hash = memchr(s.data, '#', s.len);
    s.len = hash ? (size_t) (hash - s.data) : s.len;
    host = (s.data[4] | 0x20) == 's' ? 8 : 7;

    if (s.len > LLM_API_MAX_URL) {
        return llm_api_bad_value(err, at, "The URL is too long: it has %zu "
                                 "bytes, and at most %d are allowed.", s.len,
                                 LLM_API_MAX_URL);
    }

    for (i = 0; i < s.len; i++) {
        if (s.data[i] <= 0x20 || s.data[i] >= 0x7f || s.data[i] == '\\') {
            return llm_api_bad_value(err, at, "Invalid URL: characters other "
                                     "than printable ASCII must be "
                                     "percent-encoded.");
        }
    }

    if (s.len == host || strchr("/?:@", s.data[host])) {
        return llm_api_bad_value(err, at, "Invalid URL: it names no host.");
    }

    m->source = LLM_API_SOURCE_URL;
    m->text = s;

    return LLM_OK;
}


static int
llm_api_media_begins(llm_str_t s, const char *with)
{
    size_t  n;

    n = strlen(with);

    return s.len >= n && llm_api_media_same((llm_str_t) { n, s.data }, with);
}


static int
llm_api_media_url(const llm_flat_t *v, const llm_api_media_rules_t *rules,
    const llm_api_at_t *at, llm_api_media_t *m, llm_err_t *err)
{
    llm_str_t  s;

    if (llm_api_check_type(err, at, v, LLM_FLAT_STRING) != LLM_OK) {
        return LLM_ERROR;
    }

    s = llm_flat_str(v);

    if (llm_api_media_begins(s, "data:")) {
        return llm_api_media_data(s, rules, at, m, err);
    }

    if (llm_api_media_begins(s, "http://")
        || llm_api_media_begins(s, "https://"))
    {
        return llm_api_media_http(s, rules, at, m, err);
    }

    return llm_api_bad_value(err, at, "Invalid URL: expected one that begins "
                             "with 'data:', 'https://' or 'http://'.");
}


static int
llm_api_media_detail(const llm_flat_t *of, const llm_api_at_t *at,
    llm_api_media_t *m, llm_err_t *err)
{
    size_t             i;
    const llm_flat_t  *v;

    static const struct {
        const char    *name;
        llm_detail_t   detail;
    } details[] = {
        { "auto", LLM_DETAIL_AUTO }, { "low", LLM_DETAIL_LOW },
        { "high", LLM_DETAIL_HIGH }, { "original", LLM_DETAIL_HIGH }
    };

    m->detail = LLM_DETAIL_AUTO;
    v = llm_api_member(of, "detail");

    if (v == NULL) {
        return LLM_OK;
    }

    if (llm_api_check_type(err, llm_api_key(at, "detail"), v, LLM_FLAT_STRING)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    for (i = 0; i < llm_nelems(details); i++) {
        if (llm_api_str_is(v, details[i].name)) {
            m->detail = details[i].detail;
            return LLM_OK;
        }
    }

    return llm_api_bad_word(err, llm_api_key(at, "detail"), llm_flat_str(v),
                            "Supported values are: 'auto', 'low', 'high', and "
                            "'original'.");
}


/* ---- the types of parts ---- */

static int
llm_api_media_no_file(const llm_api_at_t *at, llm_err_t *err)
{
    return llm_api_bad_value(err, llm_api_key(at, "file_id"),
                             "A file cannot be referred to by its id: this "
                             "server stores none. Send the file itself, as a "
                             "data: URL or as base64.");
}


/* {"image_url": {"url", "detail"}}, or a URL alone; Responses has detail in the
   part, and a file's id */

static int
llm_api_media_of_url(const llm_api_media_row_t *row, const llm_flat_t *part,
    const llm_api_media_rules_t *rules, const llm_api_at_t *at,
    llm_api_media_t *m, llm_err_t *err)
{
    const llm_flat_t    *v, *url;
    const llm_api_at_t  *here;

    here = llm_api_key(at, row->member);
    v = llm_api_member(part, row->member);

    if (v == NULL) {
        return llm_api_member(part, "file_id")
               ? llm_api_media_no_file(at, err) : llm_api_missing(err, here);
    }

    if (v->type != LLM_FLAT_OBJECT) {
        return llm_api_media_detail(part, at, m, err) == LLM_OK
               ? llm_api_media_url(v, rules, here, m, err) : LLM_ERROR;
    }

    url = llm_api_need(err, here, v, "url", LLM_FLAT_STRING);

    return url && llm_api_media_detail(v, here, m, err) == LLM_OK
           ? llm_api_media_url(url, rules, llm_api_key(here, "url"), m, err)
           : LLM_ERROR;
}


/* {"source": {"type": "base64", "media_type", "data"}}, or of the type "url";
   or what a draft has */

static int
llm_api_media_of_source(const llm_api_media_row_t *row,
    const llm_flat_t *part, const llm_api_media_rules_t *rules,
    const llm_api_at_t *at, llm_api_media_t *m, llm_err_t *err)
{
    const llm_flat_t    *v, *type, *data;
    const llm_api_at_t  *here;

    if (rules->drafted) {
        v = llm_api_member(part, LLM_CHAT_MEDIA);
        m->source = LLM_API_SOURCE_TAKEN;
        m->index = v ? (uint32_t) llm_flat_int(v) : 0;
        return LLM_OK;
    }

    here = llm_api_key(at, row->member);
    v = llm_api_need(err, at, part, row->member, LLM_FLAT_OBJECT);
    type = v ? llm_api_need(err, here, v, "type", LLM_FLAT_STRING) : NULL;

    if (type == NULL) {
        return LLM_ERROR;
    }

    if (llm_api_str_is(type, "url")) {
        data = llm_api_need(err, here, v, "url", LLM_FLAT_STRING);

        return data ? llm_api_media_url(data, rules, llm_api_key(here, "url"),
                                        m, err)
                    : LLM_ERROR;
    }

    if (llm_api_str_is(type, "file")) {
        return llm_api_media_no_file(here, err);
    }

    if (!llm_api_str_is(type, "base64")) {
        return llm_api_bad_word(err, llm_api_key(here, "type"),
                                llm_flat_str(type), "Supported values are: "
                                "'base64' and 'url'.");
    }

    type = llm_api_need(err, here, v, "media_type", LLM_FLAT_STRING);
    data = type ? llm_api_need(err, here, v, "data", LLM_FLAT_STRING) : NULL;

    if (data == NULL
        || llm_api_media_type(llm_flat_str(type),
                              llm_api_key(here, "media_type"), m, err)
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_api_media_base64(llm_flat_str(data), rules,
                                llm_api_key(here, "data"), m, err);
}


/* {"input_audio": {"data", "format"}} */

static int
llm_api_media_of_audio(const llm_api_media_row_t *row, const llm_flat_t *part,
    const llm_api_media_rules_t *rules, const llm_api_at_t *at,
    llm_api_media_t *m, llm_err_t *err)
{
    char                 type[LLM_API_MEDIA_SHOWN];
    size_t               n;
    llm_str_t            s;
    const llm_flat_t    *v, *data, *format;
    const llm_api_at_t  *here;

    here = llm_api_key(at, row->member);
    v = llm_api_need(err, at, part, row->member, LLM_FLAT_OBJECT);
    data = v ? llm_api_need(err, here, v, "data", LLM_FLAT_STRING) : NULL;
    format = data ? llm_api_need(err, here, v, "format", LLM_FLAT_STRING)
                  : NULL;

    if (format == NULL) {
        return LLM_ERROR;
    }

    s = llm_flat_str(format);
    n = llm_min(s.len, sizeof(type) - 6);
    memcpy(type, "audio/", 6);
    memcpy(type + 6, s.data, n);

    if (llm_api_media_type((llm_str_t) { n + 6, type },
                           llm_api_key(here, "format"), m, err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_api_media_base64(llm_flat_str(data), rules,
                                llm_api_key(here, "data"), m, err);
}


static const llm_api_media_row_t  llm_api_media_rows[] = {
    { "image_url", LLM_MEDIUM_IMAGE, "image_url", llm_api_media_of_url },
    { "input_image", LLM_MEDIUM_IMAGE, "image_url", llm_api_media_of_url },
    { "computer_screenshot", LLM_MEDIUM_IMAGE, "image_url",
      llm_api_media_of_url },
    { "image", LLM_MEDIUM_IMAGE, "source", llm_api_media_of_source },
    { "input_audio", LLM_MEDIUM_AUDIO, "input_audio", llm_api_media_of_audio },
    { "audio_url", LLM_MEDIUM_AUDIO, "audio_url", llm_api_media_of_url },
    { "audio", LLM_MEDIUM_AUDIO, "source", llm_api_media_of_source }
};


const llm_api_media_row_t *
llm_api_media_find(const llm_flat_t *type)
{
    size_t  i;

    for (i = 0; i < llm_nelems(llm_api_media_rows); i++) {
        if (llm_api_str_is(type, llm_api_media_rows[i].type)) {
            return &llm_api_media_rows[i];
        }
    }

    return NULL;
}


uint32_t
llm_api_media_kind(const llm_api_media_row_t *row)
{
    return row->kind;
}


int
llm_api_media_read(const llm_api_media_row_t *row, const llm_flat_t *part,
    const llm_api_media_rules_t *rules, const llm_api_at_t *at,
    llm_api_media_t *m, llm_err_t *err)
{
    memset(m, 0, sizeof(llm_api_media_t));
    m->kind = row->kind;

    return row->read(row, part, rules, at, m, err);
}


int
llm_api_media_image(const llm_flat_t *v, const llm_api_media_rules_t *rules,
    const llm_api_at_t *at, llm_api_media_t *m, llm_err_t *err)
{
    memset(m, 0, sizeof(llm_api_media_t));
    m->kind = LLM_MEDIUM_IMAGE;

    return llm_api_check_type(err, at, v, LLM_FLAT_STRING) == LLM_OK
           ? llm_api_media_base64(llm_flat_str(v), rules, at, m, err)
           : LLM_ERROR;
}
