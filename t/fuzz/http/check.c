/*
 * Answers: read byte by byte as HTTP, then judged: a status that is allowed,
 * an error with message, type, param and code, a whole answer with every
 * choice, a stream that ends as streams end.
 */

#include "t/fuzz/http/http.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define FZ_MAX_CHOICES  4096

enum {
    FZ_HEADER = 0,
    FZ_BODY,
    FZ_SIZE,
    FZ_CHUNK,
    FZ_AFTER,
    FZ_TRAILER
};


static char  fz_what[512];


const char *
fz_wrong(const char *what, const char *more)
{
    snprintf(fz_what, sizeof(fz_what), "%s%s%.300s", what, *more ? ": " : "",
             more);

    return fz_what;
}


void
fz_answer_reset(fz_answer_t *a)
{
    fz_buf_t  body, line;

    body = a->body;
    line = a->line;
    memset(a, 0, sizeof(fz_answer_t));

    a->body = body;
    a->body.len = 0;
    a->line = line;
    a->line.len = 0;
    a->length = -1;
}


static const char *
fz_value_of(const char *line, const char *name)
{
    size_t  len;

    len = strlen(name);

    if (strncasecmp(line, name, len) != 0 || line[len] != ':') {
        return NULL;
    }

    for (line += len + 1; *line == ' '; line++) { /* void */ }

    return line;
}


static void
fz_header_line(fz_answer_t *a, const char *line)
{
    const char  *v;

    if ((v = fz_value_of(line, "Content-Length"))) {
        a->length = atoll(v);

    } else if ((v = fz_value_of(line, "Transfer-Encoding"))) {
        a->chunked = strncmp(v, "chunked", 7) == 0;

    } else if ((v = fz_value_of(line, "Connection"))) {
        a->close = strncmp(v, "close", 5) == 0;

    } else if ((v = fz_value_of(line, "Content-Type"))) {
        a->stream = strncmp(v, "text/event-stream", 17) == 0;
        a->json = strncmp(v, "application/json", 16) == 0;

    } else if (fz_value_of(line, "Allow")) {
        a->allow = 1;

    } else if (fz_value_of(line, "Retry-After")) {
        a->retry = 1;
    }
}


/* the lines are gathered where the body will be */

static const char *
fz_header(fz_answer_t *a, const fz_want_t *w)
{
    char  *p, *eol;

    p = a->body.data;

    if (strncmp(p, "HTTP/1.1 ", 9) != 0) {
        return fz_wrong("no status line", p);
    }

    a->status = atoi(p + 9);

    if (a->status / 100 == 1) {
        fz_answer_reset(a);
        return NULL;
    }

    for (p = strstr(p, "\r\n"); p; p = eol) {
        p += 2;
        eol = strstr(p, "\r\n");

        if (eol) {
            *eol = '\0';
            fz_header_line(a, p);
        }
    }

    a->body.len = 0;
    a->state = a->chunked ? FZ_SIZE : FZ_BODY;

    if (w->head || a->status == 204 || a->status == 304
        || (a->length == 0 && !a->chunked))
    {
        a->whole = 1;
    }

    return NULL;
}


/* a line of its own: a chunk's size, what follows a chunk, a trailer */

static void
fz_line(fz_answer_t *a)
{
    const char  *line;

    line = a->line.data;
    a->line.len = 0;

    switch (a->state) {

    case FZ_SIZE:
        a->length = strtoll(line, NULL, 16);
        a->state = a->length ? FZ_CHUNK : FZ_TRAILER;
        break;

    case FZ_AFTER:
        a->state = FZ_SIZE;
        break;

    default:
        a->whole = strcmp(line, "\r\n") == 0;
    }
}


static size_t
fz_body_bytes(fz_answer_t *a, const char *data, size_t n)
{
    if (a->length >= 0 && (int64_t) n > a->length) {
        n = (size_t) a->length;
    }

    fz_add(&a->body, data, n);

    if (a->length >= 0) {
        a->length -= (int64_t) n;

        if (a->length == 0) {
            a->whole = a->state == FZ_BODY;
            a->state = FZ_AFTER;
        }
    }

    return n;
}


size_t
fz_answer_read(fz_answer_t *a, const fz_want_t *w, const char *data,
    size_t len, int end, const char **err)
{
    size_t  i;

    *err = NULL;

    for (i = 0; i < len && !a->whole && *err == NULL; /* void */ ) {
        if (a->state == FZ_BODY || a->state == FZ_CHUNK) {
            i += fz_body_bytes(a, data + i, len - i);
            continue;
        }

        if (a->state == FZ_HEADER) {
            fz_add(&a->body, &data[i++], 1);

            if (a->body.len >= 4
                && memcmp(a->body.data + a->body.len - 4, "\r\n\r\n", 4) == 0)
            {
                *err = fz_header(a, w);
            }

            continue;
        }

        fz_add(&a->line, &data[i++], 1);

        if (data[i - 1] == '\n') {
            fz_line(a);
        }
    }

    if (end && !a->whole && *err == NULL) {
        if (a->state == FZ_BODY && a->length < 0) {
            a->whole = 1;

        } else {
            *err = a->state == FZ_HEADER && a->body.len == 0
                   ? "closed without an answer" : "closed within an answer";
        }
    }

    return i;
}


static int
fz_is_utf8(const char *data, size_t len)
{
    size_t         i, n;
    uint32_t       v;
    unsigned char  c;

    for (i = 0; i < len; i += n) {
        c = (unsigned char) data[i];

        if (c < 0x80) {
            n = 1;
            continue;
        }

        n = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
        v = c & (0xffu >> (n + 1));

        if (c < 0xc2 || c > 0xf4 || i + n > len) {
            return 0;
        }

        for (size_t k = 1; k < n; k++) {
            c = (unsigned char) data[i + k];

            if ((c & 0xc0) != 0x80) {
                return 0;
            }

            v = v << 6 | (c & 0x3f);
        }

        if ((n == 3 && v < 0x800) || (n == 4 && (v < 0x10000 || v > 0x10ffff))
            || (v >= 0xd800 && v <= 0xdfff))
        {
            return 0;
        }
    }

    return 1;
}


/* strict where cJSON is not: UTF-8, no controls, nothing behind */

cJSON *
fz_json(const char *data, size_t len, const char **err)
{
    size_t       i;
    cJSON       *j;
    const char  *end;

    *err = NULL;

    if (!fz_is_utf8(data, len)) {
        *err = fz_wrong("no UTF-8", data);
        return NULL;
    }

    for (i = 0; i < len; i++) {
        if ((unsigned char) data[i] < 0x20 && data[i] != '\n') {
            *err = fz_wrong("a control character in JSON", data);
            return NULL;
        }
    }

    j = cJSON_ParseWithLengthOpts(data, len, &end, 0);

    if (j == NULL) {
        *err = fz_wrong("no JSON", data);
        return NULL;
    }

    while (end < data + len && (*end == ' ' || *end == '\n')) {
        end++;
    }

    if (end != data + len) {
        *err = fz_wrong("something behind the JSON", end);
        cJSON_Delete(j);
        return NULL;
    }

    return j;
}


static const char *
fz_error_object(const cJSON *root, const fz_want_t *w)
{
    const cJSON  *e, *m, *t, *p, *c;

    e = cJSON_GetObjectItemCaseSensitive(root, "error");
    m = cJSON_GetObjectItemCaseSensitive(e, "message");
    t = cJSON_GetObjectItemCaseSensitive(e, "type");

    if (w->endpoint & (FZ_MESSAGES | FZ_COUNT)) {
        p = cJSON_GetObjectItemCaseSensitive(root, "type");

        return cJSON_IsString(p) && strcmp(p->valuestring, "error") == 0
               && cJSON_IsString(m) && *m->valuestring && cJSON_IsString(t)
               ? NULL : "an error that is not as Anthropic's";
    }

    p = cJSON_GetObjectItemCaseSensitive(e, "param");
    c = cJSON_GetObjectItemCaseSensitive(e, "code");

    if (!cJSON_IsString(m) || *m->valuestring == '\0'
        || !cJSON_IsString(t) || *t->valuestring == '\0'
        || !(cJSON_IsString(p) || cJSON_IsNull(p))
        || !(cJSON_IsString(c) || cJSON_IsNull(c)))
    {
        return "an error that is not as OpenAI's";
    }

    return NULL;
}


static const char *
fz_usage(const cJSON *u)
{
    const cJSON  *p, *c, *t;

    p = cJSON_GetObjectItemCaseSensitive(u, "prompt_tokens");
    c = cJSON_GetObjectItemCaseSensitive(u, "completion_tokens");
    t = cJSON_GetObjectItemCaseSensitive(u, "total_tokens");

    if (!cJSON_IsNumber(p) || !cJSON_IsNumber(c) || !cJSON_IsNumber(t)) {
        return "no usage";
    }

    if (p->valuedouble < 1 || c->valuedouble < 0
        || p->valuedouble + c->valuedouble != t->valuedouble)
    {
        return "a usage that does not add up";
    }

    return NULL;
}


static int
fz_expected(const fz_want_t *w)
{
    return w->n < 0 || w->prompts < 0 ? -1 : w->n * w->prompts;
}


static const char *
fz_check_body(const fz_answer_t *a, const fz_want_t *w)
{
    int           n;
    char          seen[FZ_MAX_CHOICES] = { 0 };
    cJSON        *root;
    const char   *err;
    const cJSON  *choices, *c, *index, *reason;

    root = fz_json(a->body.data, a->body.len, &err);
    if (root == NULL) {
        return err;
    }

    choices = cJSON_GetObjectItemCaseSensitive(root, "choices");
    n = 0;

    cJSON_ArrayForEach(c, choices) {
        index = cJSON_GetObjectItemCaseSensitive(c, "index");
        reason = cJSON_GetObjectItemCaseSensitive(c, "finish_reason");

        if (!cJSON_IsNumber(index) || index->valueint < 0
            || index->valueint >= FZ_MAX_CHOICES || seen[index->valueint]++)
        {
            err = "a choice with no index of its own";
        }

        if (!cJSON_IsString(reason)) {
            err = "a choice without a finish_reason";
        }

        if (cJSON_GetObjectItemCaseSensitive(c, w->endpoint == FZ_CHAT
                                             ? "message" : "text")
            == NULL)
        {
            err = "a choice without a text";
        }

        n++;
    }

    if (err == NULL && (n == 0 || !seen[n - 1]
                        || (fz_expected(w) >= 0 && n != fz_expected(w))))
    {
        err = "not as many choices as asked for";
    }

    if (err == NULL) {
        err = fz_usage(cJSON_GetObjectItemCaseSensitive(root, "usage"));
    }

    cJSON_Delete(root);

    return err;
}


typedef struct {
    int    n;                           /* choices seen */
    int    ended;
    int    failed;
    int    usage;
    char   seen[FZ_MAX_CHOICES];        /* 1 begun, 2 ended */
} fz_stream_t;


static const char *
fz_frame(fz_stream_t *s, const fz_want_t *w, const char *data, size_t len)
{
    int           i;
    cJSON        *root;
    const char   *err;
    const cJSON  *choices, *c, *index, *reason;

    root = fz_json(data, len, &err);
    if (root == NULL) {
        return err;
    }

    if (s->failed || s->usage) {
        err = "a frame behind the last one";
    }

    if (cJSON_GetObjectItemCaseSensitive(root, "error")) {
        s->failed = 1;
        err = err ? err : fz_error_object(root, w);
        cJSON_Delete(root);
        return err;
    }

    choices = cJSON_GetObjectItemCaseSensitive(root, "choices");

    if (!cJSON_IsArray(choices)) {
        err = "a frame without choices";
    }

    if (cJSON_GetArraySize(choices) == 0) {
        s->usage = 1;
        err = err ? err
              : fz_usage(cJSON_GetObjectItemCaseSensitive(root, "usage"));
    }

    cJSON_ArrayForEach(c, choices) {
        index = cJSON_GetObjectItemCaseSensitive(c, "index");
        reason = cJSON_GetObjectItemCaseSensitive(c, "finish_reason");

        if (!cJSON_IsNumber(index) || index->valueint < 0
            || index->valueint >= FZ_MAX_CHOICES)
        {
            err = "a choice without an index";
            continue;
        }

        i = index->valueint;

        if (s->seen[i] == 2) {
            err = "a frame of a choice that has ended";
        }

        s->n += s->seen[i] == 0;
        s->seen[i] = 1;

        if (cJSON_IsString(reason)) {
            s->seen[i] = 2;
            s->ended++;
        }
    }

    cJSON_Delete(root);

    return err;
}


static const char *
fz_stream_end(const fz_stream_t *s, const fz_want_t *w)
{
    int  want;

    if (s->failed) {
        return NULL;
    }

    want = fz_expected(w);

    if (s->n == 0 || s->ended != s->n || !s->seen[s->n - 1]
        || (want >= 0 && s->n != want))
    {
        return "a stream without the end of every choice";
    }

    if (w->usage >= 0 && s->usage != w->usage) {
        return "a stream with or without usage, not as asked for";
    }

    return NULL;
}


static const char *
fz_check_stream(const fz_answer_t *a, const fz_want_t *w)
{
    const char    *p, *end, *err;
    fz_stream_t    s;

    memset(&s, 0, sizeof(s));

    for (p = a->body.data; *p; p = end + 2) {
        end = strstr(p, "\n\n");

        if (end == NULL) {
            return fz_wrong("a stream that ends within a frame", p);
        }

        if (*p == ':') {
            continue;
        }

        if (strncmp(p, "data: ", 6) != 0) {
            return fz_wrong("a frame without data", p);
        }

        if (strncmp(p, "data: [DONE]\n\n", 14) == 0) {
            return p[14] ? fz_wrong("more behind [DONE]", p + 14)
                         : fz_stream_end(&s, w);
        }

        err = fz_frame(&s, w, p + 6, (size_t) (end - p - 6));

        if (err) {
            return err;
        }
    }

    return s.failed ? NULL : "a stream without [DONE]";
}


const char *
fz_check_error(const fz_answer_t *a, const fz_want_t *w)
{
    cJSON       *root;
    const char  *err;

    if (!a->json) {
        return "an error that is not JSON";
    }

    root = fz_json(a->body.data, a->body.len, &err);

    if (root) {
        err = fz_error_object(root, w);
        cJSON_Delete(root);
    }

    if (err == NULL && a->status == 405 && !a->allow) {
        err = "405 without Allow";
    }

    if (err == NULL && (a->status == 429 || a->status == 503) && !a->retry) {
        err = "429 or 503 without Retry-After";
    }

    return err;
}


/* behind a heartbeat it is too late for a status: the stream has the error */

static int
fz_failed_late(const fz_answer_t *a)
{
    static const char  beat[] = ": heartbeat", error[] = "\"error\":{";

    return a->stream && a->body.len > sizeof(beat)
           && memcmp(a->body.data, beat, sizeof(beat) - 1) == 0
           && memmem(a->body.data, a->body.len, error, sizeof(error) - 1);
}


const char *
fz_check(const fz_answer_t *a, const fz_want_t *w)
{
    static const int  allowed[] = { 200, 400, 404, 405, 409, 413, 426, 429,
                                    503, 504 };

    size_t       i;
    const char  *err;

    for (i = 0; i < fz_nelems(allowed); i++) {
        if (a->status == allowed[i]) {
            break;
        }
    }

    if (i == fz_nelems(allowed)) {
        return "a status that is not allowed";
    }

    if (memchr(a->body.data, '\0', a->body.len)) {
        return "a zero in the body";
    }

    if (w->head || w->loose) {
        return NULL;
    }

    if (w->endpoint == 0) {
        if (a->status == 200 && a->json) {
            cJSON_Delete(fz_json(a->body.data, a->body.len, &err));
            return err;
        }

        return NULL;
    }

    if (a->status != 200) {
        return fz_check_error(a, w);
    }

    if (w->bad && !fz_failed_late(a)) {
        return fz_wrong("200 for a value that is not allowed", w->why);
    }

    if (w->stream >= 0 && a->stream != w->stream) {
        return "a stream or none, not as asked for";
    }

    if (w->endpoint & ~(FZ_CHAT | FZ_COMPL)) {
        return fz_check_more(a, w);
    }

    return a->stream ? fz_check_stream(a, w) : fz_check_body(a, w);
}
