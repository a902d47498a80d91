/*
 * Events and errors of OpenAI's WebSocket mode, for the client: an answer's
 * with the name of its stream, and what is remembered of it; see socket.h.
 */

#include "engine/api/socket_internal.h"

/* the type of an event stands near its beginning */
#define LLM_API_TYPE_WITHIN  64


/* ends an event with the name of its stream */

static void
llm_api_socket_close(const llm_api_socket_name_t *name, llm_buf_t *out)
{
    if (name->len) {
        (void) llm_buf_adds(out, ",\"stream_id\":");
        (void) llm_json_add_string(out, name->data, name->len);
    }

    (void) llm_buf_addc(out, '}');
}


/* a response that generated nothing: `of` without its output */

static void
llm_api_socket_bare(llm_api_lane_t *lane, const char *type,
    const char *status, const llm_flat_t *of, llm_buf_t *out)
{
    llm_str_t          key;
    const char        *some;
    const llm_flat_t  *k, *v;

    (void) llm_buf_addf(out, "{\"type\":\"response.%s\",\"sequence_number\":%u,"
                        "\"response\":", type, lane->sequence++);
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

    (void) llm_buf_addc(out, '}');
    llm_api_socket_close(&lane->name, out);
}


/* while too much is remembered, forgets what was used least recently, but for
   what this lane has */

static void
llm_api_socket_shrink(llm_api_socket_t *s, const llm_api_lane_t *own)
{
    size_t           n;
    uint32_t         i;
    llm_api_lane_t  *lane, *oldest;

    for ( ;; ) {
        n = 0;
        oldest = NULL;

        for (i = 0; i < LLM_API_SOCKET_LANES; i++) {
            lane = &s->lanes[i];
            n += lane->items.len;

            if (lane != own && lane->items.len
                && (oldest == NULL || lane->used < oldest->used))
            {
                oldest = lane;
            }
        }

        if (n <= 2 * s->most || oldest == NULL) {
            return;
        }

        oldest->last[0] = '\0';
        llm_buf_free(&oldest->items);
        llm_buf_init(&oldest->items, s->most);
    }
}


/* remembers the response, whose last event has come */

static void
llm_api_socket_keep(llm_api_socket_t *s, llm_api_lane_t *lane,
    const llm_flat_t *response)
{
    llm_str_t          id;
    llm_err_t          err;
    const llm_flat_t  *v;

    v = llm_flat_get(response, "id");

    if (v == NULL || v->type != LLM_FLAT_STRING
        || llm_flat_str(v).len >= sizeof(lane->last))
    {
        llm_api_socket_forget(s, lane);
        return;
    }

    id = llm_flat_str(v);
    memcpy(lane->last, id.data, id.len);
    lane->last[id.len] = '\0';

    llm_buf_free(&lane->items);
    lane->items = lane->asked;
    llm_buf_init(&lane->asked, s->most);

    if ((!lane->warms
         && llm_api_socket_items(&lane->items,
                                 llm_flat_get(response, "output"), &err)
            != LLM_OK)
        || lane->items.failed)
    {
        llm_api_socket_forget(s, lane);
    }

    llm_api_socket_shrink(s, lane);
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
llm_api_socket_event(llm_api_socket_t *s, uint32_t to, llm_str_t data,
    llm_buf_t *out)
{
    int                last;
    llm_err_t          err;
    llm_buf_t          flat;
    llm_api_lane_t    *lane;
    const llm_flat_t  *response;

    lane = &s->lanes[to];
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
            llm_api_socket_forget(s, lane);

        } else {
            llm_api_socket_keep(s, lane, response);
        }

        if (lane->warms && response) {
            llm_api_socket_bare(lane, "created", "in_progress", response, out);
            (void) llm_buf_addc(out, '\0');
            llm_api_socket_bare(lane, "completed", "completed", response, out);
        }

        llm_buf_free(&flat);

    } else if (llm_api_socket_is(data, "\"response.failed\"")
               || llm_api_socket_is(data, "\"error\""))
    {
        llm_api_socket_forget(s, lane);
        lane->warms = 0;
        last = 1;
    }

    if (!lane->warms) {
        (void) llm_buf_add(out, data.data, data.len - 1);
        llm_api_socket_close(&lane->name, out);
    }

    return last;
}


/* ---- errors ---- */

void
llm_api_socket_error(llm_api_socket_t *s, uint32_t lane, const llm_err_t *err,
    llm_buf_t *out)
{
    llm_buf_t  body;

    llm_buf_init(&body, 0);

    if (llm_api_error_body(&llm_api_responses, llm_str(""), err, &body)
        == LLM_OK)
    {
        llm_api_socket_failed(s, lane, (uint32_t) err->status,
                              (llm_str_t) { body.len, body.data }, out);
    }

    out->failed |= body.failed;
    llm_buf_free(&body);
}


/* an answer whose body is none of ours is one of nginx's pages */

void
llm_api_socket_failed(llm_api_socket_t *s, uint32_t to, uint32_t status,
    llm_str_t body, llm_buf_t *out)
{
    llm_err_t          err;
    llm_buf_t          flat;
    llm_api_lane_t    *lane;
    const llm_flat_t  *v;

    lane = to == LLM_API_SOCKET_NOWHERE ? NULL : &s->lanes[to];

    if (lane) {
        llm_api_socket_forget(s, lane);
    }

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

    llm_api_socket_close(lane ? &lane->name : &s->stray, out);
    s->stray.len = lane ? s->stray.len : 0;
    llm_buf_free(&flat);
}


void
llm_api_socket_end(llm_api_socket_t *s, uint32_t lane)
{
    s->lanes[lane].busy = 0;
    llm_buf_free(&s->lanes[lane].asked);
    llm_buf_init(&s->lanes[lane].asked, s->most);
}
