/*
 * Judges whole answers, with a status of 200, of the endpoints beside chat
 * and completions: what each must have, as many parts as were asked for, and
 * streams that begin, count and end as their clients expect.
 */

#include "t/fuzz/http/http.h"

#include <cjson/cJSON.h>
#include <string.h>

#define fz_item(j, name)  cJSON_GetObjectItemCaseSensitive(j, name)


static int
fz_is(const cJSON *j, const char *name, const char *value)
{
    const cJSON  *v;

    v = fz_item(j, name);

    return cJSON_IsString(v) && strcmp(v->valuestring, value) == 0;
}


/* a list of as many as were asked for, where that is known */

static int
fz_has(const cJSON *list, const fz_want_t *w)
{
    return cJSON_IsArray(list)
           && (w->prompts < 0 || cJSON_GetArraySize(list) == w->prompts);
}


static const char *
fz_check_numbers(const cJSON *list)
{
    const cJSON  *n;

    cJSON_ArrayForEach(n, list) {
        if (!cJSON_IsNumber(n)) {
            return "something else than a number";
        }
    }

    return NULL;
}


static const char *
fz_vectors(const cJSON *root, const fz_want_t *w)
{
    int           i;
    const char   *err;
    const cJSON  *v, *e;

    if (!fz_is(root, "object", "list") || !fz_has(fz_item(root, "data"), w)) {
        return "not as many vectors as inputs";
    }

    i = 0;

    cJSON_ArrayForEach(v, fz_item(root, "data")) {
        e = fz_item(v, "embedding");

        if (!cJSON_IsNumber(fz_item(v, "index"))
            || fz_item(v, "index")->valueint != i++)
        {
            return "a vector out of its place";
        }

        if (cJSON_IsString(e) ? *e->valuestring == '\0'
                              : cJSON_GetArraySize(e) == 0)
        {
            return "a vector without numbers";
        }

        err = cJSON_IsArray(e) ? fz_check_numbers(e) : NULL;

        if (err) {
            return err;
        }
    }

    return NULL;
}


/* of Messages */

static const char *
fz_message_answer(const cJSON *root)
{
    const cJSON  *b;

    if (!fz_is(root, "type", "message") || !fz_is(root, "role", "assistant")
        || !cJSON_IsString(fz_item(root, "stop_reason"))
        || !cJSON_IsArray(fz_item(root, "content")))
    {
        return "not a message as Anthropic's";
    }

    cJSON_ArrayForEach(b, fz_item(root, "content")) {
        if (!cJSON_IsString(fz_item(b, "type"))) {
            return "a block without a type";
        }
    }

    b = fz_item(root, "usage");

    return cJSON_IsNumber(fz_item(b, "input_tokens"))
           && cJSON_IsNumber(fz_item(b, "output_tokens"))
           ? NULL : "no usage";
}


static const char *
fz_response_answer(const cJSON *root)
{
    const cJSON  *i, *u;

    if (!fz_is(root, "object", "response")
        || !(fz_is(root, "status", "completed")
             || fz_is(root, "status", "incomplete"))
        || !cJSON_IsArray(fz_item(root, "output")))
    {
        return "not a response as OpenAI's";
    }

    cJSON_ArrayForEach(i, fz_item(root, "output")) {
        if (!cJSON_IsString(fz_item(i, "type"))
            || !cJSON_IsString(fz_item(i, "id")))
        {
            return "an item without a type or an id";
        }
    }

    u = fz_item(root, "usage");

    return cJSON_IsNumber(fz_item(u, "input_tokens"))
           && cJSON_IsNumber(fz_item(u, "output_tokens"))
           ? NULL : "no usage";
}


static const char *
fz_whole(const cJSON *root, const fz_want_t *w)
{
    int  good;

    switch (w->endpoint) {

    case FZ_MESSAGES:
        return fz_message_answer(root);

    case FZ_RESPONSES:
        return fz_response_answer(root);

    case FZ_EMBED:
        return fz_vectors(root, w);

    case FZ_COUNT:
        good = cJSON_IsNumber(fz_item(root, "input_tokens"));
        break;

    case FZ_RERANK:
        good = cJSON_IsArray(fz_item(root, "results"));
        break;

    case FZ_SCORE:
        good = cJSON_IsArray(fz_item(root, "data"));
        break;

    case FZ_TOKENIZE:
        good = cJSON_IsArray(fz_item(root, "tokens"));
        break;

    case FZ_DETOKENIZE:
        good = cJSON_IsString(fz_item(root, "content"));
        break;

    case FZ_TEMPLATE:
        good = cJSON_IsString(fz_item(root, "prompt"));
        break;

    default: /* FZ_INFILL */
        good = cJSON_IsString(fz_item(root, "content"))
               && cJSON_IsTrue(fz_item(root, "stop"));
    }

    return good ? NULL : "not what this endpoint answers";
}


typedef struct {
    int    n;                           /* frames */
    int    open;                        /* blocks, of Messages */
    int    ended;
    int    failed;
} fz_frames_t;


/* event: TYPE, data: {"type": TYPE, ...}; no other frame behind the last */

static const char *
fz_frame_messages(fz_frames_t *s, const cJSON *root)
{
    if (s->n == 0 && !fz_is(root, "type", "message_start")
        && !fz_is(root, "type", "error"))
    {
        return "a stream of Messages that does not begin";
    }

    s->open += fz_is(root, "type", "content_block_start");
    s->open -= fz_is(root, "type", "content_block_stop");

    if (s->open < 0 || s->open > 1) {
        return "blocks that are not one after the other";
    }

    s->ended = fz_is(root, "type", "message_stop");
    s->failed = fz_is(root, "type", "error");

    return s->ended && s->open ? "a block without its end" : NULL;
}


static const char *
fz_frame_responses(fz_frames_t *s, const cJSON *root)
{
    const cJSON  *number;

    number = fz_item(root, "sequence_number");

    if (!cJSON_IsNumber(number) || number->valueint != s->n) {
        return "a sequence number that is not the next";
    }

    s->ended = fz_is(root, "type", "response.completed")
               || fz_is(root, "type", "response.incomplete");
    s->failed = fz_is(root, "type", "error")
                || fz_is(root, "type", "response.failed");

    return NULL;
}


static const char *
fz_frame_infill(fz_frames_t *s, const cJSON *root)
{
    s->failed = fz_item(root, "error") != NULL;
    s->ended = cJSON_IsTrue(fz_item(root, "stop"));

    return s->failed || cJSON_IsString(fz_item(root, "content"))
           ? NULL : "a frame without content";
}


static const char *
fz_typed(fz_frames_t *s, const fz_want_t *w, const char *name, size_t len,
    const char *data, size_t size)
{
    cJSON        *root;
    const char   *err;
    const cJSON  *type;

    if (s->ended || s->failed) {
        return fz_wrong("a frame behind the last one", data);
    }

    root = fz_json(data, size, &err);
    if (root == NULL) {
        return err;
    }

    type = fz_item(root, "type");

    if (w->endpoint != FZ_INFILL
        && (!cJSON_IsString(type) || strlen(type->valuestring) != len
            || memcmp(type->valuestring, name, len) != 0))
    {
        err = fz_wrong("an event that is not of its type", data);
    }

    if (err == NULL) {
        err = w->endpoint == FZ_MESSAGES ? fz_frame_messages(s, root)
              : w->endpoint == FZ_RESPONSES ? fz_frame_responses(s, root)
              : fz_frame_infill(s, root);
    }

    s->n++;
    cJSON_Delete(root);

    return err;
}


static const char *
fz_stream_more(const fz_answer_t *a, const fz_want_t *w)
{
    size_t        len;
    const char   *p, *end, *err, *name;
    fz_frames_t   s;

    memset(&s, 0, sizeof(s));

    for (p = a->body.data; *p; p = end + 2) {
        end = strstr(p, "\n\n");

        if (end == NULL) {
            return fz_wrong("a stream that ends within a frame", p);
        }

        if (*p == ':') {
            continue;
        }

        name = "";
        len = 0;

        if (strncmp(p, "event: ", 7) == 0) {
            name = p + 7;
            len = strcspn(name, "\n");
            p = name + len + (name[len] == '\n');
        }

        if (strncmp(p, "data: ", 6) != 0) {
            return fz_wrong("a frame without data", p);
        }

        err = fz_typed(&s, w, name, len, p + 6, (size_t) (end - p - 6));

        if (err) {
            return err;
        }
    }

    return s.ended || s.failed ? NULL : "a stream without its end";
}


const char *
fz_check_more(const fz_answer_t *a, const fz_want_t *w)
{
    cJSON       *root;
    const char  *err;

    if (a->stream) {
        return w->endpoint & FZ_WRITES ? fz_stream_more(a, w)
                                       : "a stream from where there is none";
    }

    root = fz_json(a->body.data, a->body.len, &err);

    if (root) {
        err = fz_whole(root, w);
        cJSON_Delete(root);
    }

    return err;
}
