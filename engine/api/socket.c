/*
 * Messages of OpenAI's WebSocket mode; see socket.h.
 *
 * A conversation is kept as JSON, the items of `input` with commas between
 * them: it is written to the next body as it stands.
 */

#include "engine/api/socket.h"

#include "engine/api/api.h"
#include "engine/api/endpoint.h"
#include "engine/api/json.h"

/* the type of an event stands near its beginning */
#define LLM_API_TYPE_WITHIN  64


struct llm_api_socket_s {
    size_t       most;                  /* bytes of a body */
    char         last[96];              /* id of the last response; empty: none
                                           is remembered */
    llm_buf_t    items;                 /* owned; what was sent and answered up
                                           to it */
    llm_buf_t    asked;                 /* owned; the items of the request that
                                           is being answered */
    int          warms;                 /* it is to generate nothing */
    uint32_t     sequence;              /* of this side's own events */
};


int
llm_api_socket_path(llm_str_t path)
{
    llm_api_route_t  to;

    return llm_api_route(path, llm_str("POST"), &to) == LLM_OK
           && to.endpoint == &llm_api_responses;
}


llm_api_socket_t *
llm_api_socket_create(size_t most)
{
    llm_api_socket_t  *s;

    s = calloc(1, sizeof(llm_api_socket_t));
    if (s == NULL) {
        return NULL;
    }

    s->most = most;
    llm_buf_init(&s->items, most);
    llm_buf_init(&s->asked, most);

    return s;
}


void
llm_api_socket_free(llm_api_socket_t *s)
{
    if (s) {
        llm_buf_free(&s->items);
        llm_buf_free(&s->asked);
        free(s);
    }
}


static void
llm_api_socket_forget(llm_api_socket_t *s)
{
    s->last[0] = '\0';
    llm_buf_free(&s->items);
    llm_buf_free(&s->asked);
    llm_buf_init(&s->items, s->most);
    llm_buf_init(&s->asked, s->most);
}


/* ---- a client's message ---- */

/* adds the items of a list, or a text as the user's message */

static int
llm_api_socket_items(llm_buf_t *out, const llm_flat_t *list, llm_err_t *err)
{
    llm_str_t          s;
    const llm_flat_t  *v;

    if (list == NULL || list->type == LLM_FLAT_NULL) {
        return LLM_OK;
    }

    if (list->type == LLM_FLAT_STRING) {
        s = llm_flat_str(list);
        (void) llm_buf_adds(out, out->len ? "," : "");
        (void) llm_buf_adds(out, "{\"type\":\"message\",\"role\":\"user\","
                            "\"content\":");
        (void) llm_json_add_string(out, s.data, s.len);
        (void) llm_buf_addc(out, '}');
        return LLM_OK;
    }

    if (list->type != LLM_FLAT_ARRAY) {
        return llm_api_bad_type(err, llm_api_top("input"),
                                "a string or an array", list);
    }

    for (v = llm_flat_first(list); v; v = llm_flat_next(list, v)) {
        (void) llm_buf_adds(out, out->len ? "," : "");
        (void) llm_json_add_flat(out, v);
    }

    return LLM_OK;
}


/* the items of the request: those of the response before, if it refers to that,
   and its own */

static int
llm_api_socket_input(llm_api_socket_t *s, const llm_flat_t *root,
    llm_err_t *err)
{
    llm_str_t          id;
    const llm_flat_t  *v;

    llm_buf_free(&s->asked);
    llm_buf_init(&s->asked, s->most);
    v = llm_flat_get(root, "previous_response_id");

    if (v && v->type != LLM_FLAT_NULL) {
        if (llm_api_check_type(err, llm_api_top("previous_response_id"), v,
                               LLM_FLAT_STRING)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        id = llm_flat_str(v);

        if (id.len == 0 || id.len != strlen(s->last)
            || memcmp(id.data, s->last, id.len) != 0)
        {
            return llm_fail_with(err, 400, "previous_response_not_found",
                                 "previous_response_id", "Previous response "
                                 "with id '%.*s' not found: a connection "
                                 "remembers its last response alone.",
                                 (int) llm_min(id.len, (size_t) 64), id.data);
        }

        if (s->items.len) {
            (void) llm_buf_add(&s->asked, s->items.data, s->items.len);
        }
    }

    if (llm_api_socket_items(&s->asked, llm_flat_get(root, "input"), err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (s->asked.failed) {
        return llm_fail_with(err, 413, "request_too_large", NULL, "The "
                             "conversation is larger than the %zu bytes of a "
                             "body.", s->most);
    }

    return LLM_OK;
}


/* members that belong to the WebSocket, or are written here */

static int
llm_api_socket_own(llm_str_t key)
{
    size_t  i;

    static const char  *const names[] = {
        "type", "stream", "stream_id", "generate", "previous_response_id",
        "input"
    };

    for (i = 0; i < llm_nelems(names); i++) {
        if (key.len == strlen(names[i])
            && memcmp(key.data, names[i], key.len) == 0)
        {
            return 1;
        }
    }

    return 0;
}


static void
llm_api_socket_body(llm_api_socket_t *s, const llm_flat_t *root,
    llm_buf_t *body)
{
    llm_str_t          key;
    const llm_flat_t  *k, *v;

    (void) llm_buf_adds(body, "{\"stream\":true,\"input\":[");

    if (s->asked.len) {
        (void) llm_buf_add(body, s->asked.data, s->asked.len);
    }

    (void) llm_buf_adds(body, "]");

    for (k = llm_flat_first(root); k; k = llm_flat_next(root, v)) {
        v = llm_flat_next(root, k);
        key = llm_flat_str(k);

        if (llm_api_socket_own(key)
            || (s->warms && key.len == 17
                && memcmp(key.data, "max_output_tokens", 17) == 0))
        {
            continue;
        }

        (void) llm_buf_addc(body, ',');
        (void) llm_json_add_string(body, key.data, key.len);
        (void) llm_buf_addc(body, ':');
        (void) llm_json_add_flat(body, v);
    }

    /* the prompt is computed for a token that nobody sees */

    (void) llm_buf_adds(body, s->warms ? ",\"max_output_tokens\":1}" : "}");
}


static int
llm_api_socket_read(llm_api_socket_t *s, const llm_flat_t *root,
    llm_buf_t *body, llm_err_t *err)
{
    const llm_flat_t  *v;

    if (root->type != LLM_FLAT_OBJECT) {
        return llm_fail_with(err, 400, "invalid_type", NULL, "A message is a "
                             "JSON object with the type 'response.create'.");
    }

    v = llm_flat_get(root, "type");

    if (v == NULL || !llm_api_str_is(v, "response.create")) {
        return llm_fail_with(err, 400, "invalid_value", "type", "Messages of "
                             "the type 'response.create' are understood, no "
                             "others.");
    }

    v = llm_flat_get(root, "generate");

    if (v && v->type != LLM_FLAT_NULL
        && llm_api_check_type(err, llm_api_top("generate"), v, LLM_FLAT_BOOL)
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    s->warms = v && v->type == LLM_FLAT_BOOL && !llm_flat_int(v);
    s->sequence = 0;

    if (llm_api_socket_input(s, root, err) != LLM_OK) {
        return LLM_ERROR;
    }

    llm_api_socket_body(s, root, body);

    return body->failed ? llm_fail(err, "no memory for a message") : LLM_OK;
}


int
llm_api_socket_ask(llm_api_socket_t *s, llm_str_t text, llm_buf_t *body,
    llm_err_t *err)
{
    int                rc;
    llm_buf_t          flat;
    llm_json_limits_t  limits = { .depth = LLM_FLAT_MAX_DEPTH,
                                  .values = LLM_JSON_MAX_VALUES,
                                  .lenient = 1 };

    llm_buf_init(&flat, 0);
    rc = llm_json_to_flat(text.data, text.len, &limits, &flat, err);

    if (rc == LLM_OK) {
        rc = llm_api_socket_read(s, (const llm_flat_t *) flat.data, body, err);
    }

    llm_buf_free(&flat);

    return rc;
}


/* ---- events of the answer ---- */

/* a response that generated nothing: `of` without its output */

static void
llm_api_socket_bare(llm_api_socket_t *s, const char *type,
    const char *status, const llm_flat_t *of, llm_buf_t *out)
{
    llm_str_t          key;
    const char        *some;
    const llm_flat_t  *k, *v;

    (void) llm_buf_addf(out, "{\"type\":\"response.%s\",\"sequence_number\":%u,"
                        "\"response\":", type, s->sequence++);
    some = "{";

    for (k = llm_flat_first(of); k; k = llm_flat_next(of, v)) {
        v = llm_flat_next(of, k);
        key = llm_flat_str(k);

        (void) llm_buf_adds(out, some);
        (void) llm_json_add_string(out, key.data, key.len);
        (void) llm_buf_addc(out, ':');
        some = ",";

        if (llm_api_str_is(k, "status")) {
            (void) llm_buf_addf(out, "\"%s\"", status);

        } else if (llm_api_str_is(k, "output")) {
            (void) llm_buf_adds(out, "[]");

        } else if (llm_api_str_is(k, "incomplete_details")) {
            (void) llm_buf_adds(out, "null");

        } else {
            (void) llm_json_add_flat(out, v);
        }
    }

    (void) llm_buf_adds(out, "}}");
}


/* remembers the response, whose last event has come */

static void
llm_api_socket_keep(llm_api_socket_t *s, const llm_flat_t *response)
{
    llm_str_t          id;
    llm_err_t          err;
    const llm_flat_t  *v;

    v = llm_flat_get(response, "id");

    if (v == NULL || v->type != LLM_FLAT_STRING
        || llm_flat_str(v).len >= sizeof(s->last))
    {
        llm_api_socket_forget(s);
        return;
    }

    id = llm_flat_str(v);
    memcpy(s->last, id.data, id.len);
    s->last[id.len] = '\0';

    llm_buf_free(&s->items);
    s->items = s->asked;
    llm_buf_init(&s->asked, s->most);

    if ((!s->warms
         && llm_api_socket_items(&s->items, llm_flat_get(response, "output"),
                                 &err)
            != LLM_OK)
        || s->items.failed)
    {
        llm_api_socket_forget(s);
    }
}


static int
llm_api_socket_is(llm_str_t data, const char *type)
{
    size_t  n;

    n = llm_min(data.len, (size_t) LLM_API_TYPE_WITHIN);

    return memmem(data.data, n, type, strlen(type)) != NULL;
}


/* is it the event with the whole response? */

static int
llm_api_socket_ends(llm_str_t data)
{
    return llm_api_socket_is(data, "\"response.completed\"")
           || llm_api_socket_is(data, "\"response.incomplete\"");
}


int
llm_api_socket_event(llm_api_socket_t *s, llm_str_t data, llm_buf_t *out)
{
    int                last;
    llm_err_t          err;
    llm_buf_t          flat;
    const llm_flat_t  *response;

    last = llm_api_socket_ends(data);

    if (last) {
        llm_buf_init(&flat, 0);
        response = NULL;

        if (llm_json_to_flat(data.data, data.len, NULL, &flat, &err)
            == LLM_OK)
        {
            response = llm_flat_get((const llm_flat_t *) flat.data,
                                    "response");
        }

        if (response == NULL) {
            llm_api_socket_forget(s);

        } else {
            llm_api_socket_keep(s, response);
        }

        if (s->warms && response) {
            llm_api_socket_bare(s, "created", "in_progress", response, out);
            (void) llm_buf_addc(out, '\0');
            llm_api_socket_bare(s, "completed", "completed", response, out);
        }

        llm_buf_free(&flat);

    } else if (llm_api_socket_is(data, "\"response.failed\"")
               || llm_api_socket_is(data, "\"error\""))
    {
        llm_api_socket_forget(s);
        s->warms = 0;
        last = 1;
    }

    if (!s->warms) {
        (void) llm_buf_add(out, data.data, data.len);
    }

    return last;
}


/* ---- errors ---- */

void
llm_api_socket_error(llm_api_socket_t *s, const llm_err_t *err,
    llm_buf_t *out)
{
    llm_buf_t  body;

    llm_buf_init(&body, 0);

    if (llm_api_error_body(&llm_api_responses, llm_str(""), err, &body)
        == LLM_OK)
    {
        llm_api_socket_failed(s, (uint32_t) err->status,
                              (llm_str_t) { body.len, body.data }, out);
    }

    out->failed |= body.failed;
    llm_buf_free(&body);
}


/* an answer whose body is none of ours is one of nginx's pages */

void
llm_api_socket_failed(llm_api_socket_t *s, uint32_t status, llm_str_t body,
    llm_buf_t *out)
{
    llm_err_t          err;
    llm_buf_t          flat;
    const llm_flat_t  *v;

    llm_api_socket_forget(s);
    llm_buf_init(&flat, 0);
    v = NULL;

    if (llm_json_to_flat(body.data, body.len, NULL, &flat, &err) == LLM_OK) {
        v = llm_flat_get((const llm_flat_t *) flat.data, "error");
    }

    (void) llm_buf_addf(out, "{\"type\":\"error\",\"status\":%u,\"error\":",
                        status);

    if (v && v->type == LLM_FLAT_OBJECT) {
        (void) llm_json_add_flat(out, v);

    } else {
        (void) llm_buf_addf(out, "{\"message\":\"%s\",\"type\":\"%s\","
                            "\"param\":null,\"code\":null}",
                            status == 200 ? "The answer has broken off."
                            : status == 429 || status == 503
                            ? "Too many requests at once, try again later."
                            : "The request was refused.",
                            status == 200 || status >= 500 ? "server_error"
                            : status == 429 ? "rate_limit_error"
                            : "invalid_request_error");
    }

    (void) llm_buf_addc(out, '}');
    llm_buf_free(&flat);
}
