/*
 * Messages of OpenAI's WebSocket mode, and the lanes of their streams; see
 * socket.h.
 *
 * A conversation is kept as JSON, the items of `input` with commas between
 * them: it is written to the next body as it stands.
 */

#include "engine/api/socket_internal.h"


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
    uint32_t           i;
    llm_api_socket_t  *s;

    s = calloc(1, sizeof(llm_api_socket_t));
    if (s == NULL) {
        return NULL;
    }

    s->most = most;

    for (i = 0; i < LLM_API_SOCKET_LANES; i++) {
        llm_buf_init(&s->lanes[i].items, most);
        llm_buf_init(&s->lanes[i].asked, most);
    }

    return s;
}


void
llm_api_socket_free(llm_api_socket_t *s)
{
    uint32_t            i;
    llm_api_waiting_t  *w;

    if (s == NULL) {
        return;
    }

    for (i = 0; i < LLM_API_SOCKET_LANES; i++) {
        llm_buf_free(&s->lanes[i].items);
        llm_buf_free(&s->lanes[i].asked);
    }

    while (s->waiting) {
        w = s->waiting;
        s->waiting = w->next;
        free(w);
    }

    free(s);
}


/* ---- lanes ---- */

void
llm_api_socket_forget(llm_api_socket_t *s, llm_api_lane_t *lane)
{
    lane->last[0] = '\0';
    llm_buf_free(&lane->items);
    llm_buf_free(&lane->asked);
    llm_buf_init(&lane->items, s->most);
    llm_buf_init(&lane->asked, s->most);
}


static int
llm_api_socket_same(const llm_api_socket_name_t *a,
    const llm_api_socket_name_t *b)
{
    return a->len == b->len && memcmp(a->data, b->data, a->len) == 0;
}


/* the stream's lane, or the one that becomes it: of those that are not busy the
   one that was used least recently.  NULL: all are busy */

static llm_api_lane_t *
llm_api_socket_lane(llm_api_socket_t *s, const llm_api_socket_name_t *name)
{
    uint32_t         i;
    llm_api_lane_t  *lane, *best;

    best = NULL;

    for (i = 0; i < LLM_API_SOCKET_LANES; i++) {
        lane = &s->lanes[i];

        if (lane->used && llm_api_socket_same(&lane->name, name)) {
            return lane;
        }

        if (!lane->busy && (best == NULL || lane->used < best->used)) {
            best = lane;
        }
    }

    return best;
}


/* the lane of which this is the last response; NULL: none */

static llm_api_lane_t *
llm_api_socket_find(llm_api_socket_t *s, llm_str_t id)
{
    uint32_t  i;

    for (i = 0; id.len && i < LLM_API_SOCKET_LANES; i++) {
        if (llm_str_is(id, s->lanes[i].last)) {
            return &s->lanes[i];
        }
    }

    return NULL;
}


/* bytes of the requests that run */

static size_t
llm_api_socket_running(const llm_api_socket_t *s)
{
    size_t    n;
    uint32_t  i;

    n = 0;

    for (i = 0; i < LLM_API_SOCKET_LANES; i++) {
        n += s->lanes[i].busy ? s->lanes[i].asked.len : 0;
    }

    return n;
}


/* ---- a client's message ---- */

int
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


/* the items of the request, to asked: those of the response before, if it
   refers to that, and its own */

static int
llm_api_socket_input(llm_api_socket_t *s, const llm_flat_t *root,
    llm_buf_t *asked, llm_err_t *err)
{
    llm_str_t          id;
    llm_api_lane_t    *from;
    const llm_flat_t  *v;

    v = llm_flat_get(root, "previous_response_id");

    if (v && v->type != LLM_FLAT_NULL) {
        if (llm_api_check_type(err, llm_api_top("previous_response_id"), v,
                               LLM_FLAT_STRING)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        id = llm_flat_str(v);
        from = llm_api_socket_find(s, id);

        if (from == NULL) {
            return llm_fail_with(err, 400, "previous_response_not_found",
                                 "previous_response_id", "Previous response "
                                 "with id '%.*s' not found: a connection "
                                 "remembers the last response of a stream "
                                 "alone.",
                                 (int) llm_min(id.len, (size_t) 64), id.data);
        }

        if (from->items.len) {
            (void) llm_buf_add(asked, from->items.data, from->items.len);
        }
    }

    if (llm_api_socket_items(asked, llm_flat_get(root, "input"), err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (asked->failed) {
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
llm_api_socket_body(const llm_api_lane_t *lane, const llm_flat_t *root,
    llm_buf_t *body)
{
    llm_str_t          key;
    const llm_flat_t  *k, *v;

    (void) llm_buf_adds(body, "{\"stream\":true,\"input\":[");

    if (lane->asked.len) {
        (void) llm_buf_add(body, lane->asked.data, lane->asked.len);
    }

    (void) llm_buf_adds(body, "]");

    for (k = llm_flat_first(root); k; k = llm_flat_next(root, v)) {
        v = llm_flat_next(root, k);
        key = llm_flat_str(k);

        if (llm_api_socket_own(key)
            || (lane->warms && llm_str_is(key, "max_output_tokens")))
        {
            continue;
        }

        (void) llm_buf_addc(body, ',');
        (void) llm_json_add_string(body, key.data, key.len);
        (void) llm_buf_addc(body, ':');
        (void) llm_json_add_flat(body, v);
    }

    /* the prompt is computed for a token that nobody sees */

    (void) llm_buf_adds(body, lane->warms ? ",\"max_output_tokens\":1}"
                                          : "}");
}


/* the lane is the stream's from now on */

static void
llm_api_socket_claim(llm_api_socket_t *s, llm_api_lane_t *lane,
    const llm_api_socket_name_t *name)
{
    if (!llm_api_socket_same(&lane->name, name)) {
        llm_api_socket_forget(s, lane);
        lane->name = *name;
    }

    lane->used = ++s->uses;
}


/* a stream whose message is wrong: if it has no lane it gets none, as another
   one's would be forgotten for it */

static void
llm_api_socket_stray(llm_api_socket_t *s, const llm_api_socket_name_t *name,
    uint32_t *to)
{
    llm_api_lane_t  *lane;

    lane = llm_api_socket_lane(s, name);

    if (lane->used && llm_api_socket_same(&lane->name, name)) {
        llm_api_socket_claim(s, lane, name);
        *to = (uint32_t) (lane - s->lanes);

    } else {
        s->stray = *name;
    }
}


/* LLM_FULL: it has to wait.  name: the stream, whose lane is not busy */

static int
llm_api_socket_begin(llm_api_socket_t *s, const llm_flat_t *root,
    const llm_api_socket_name_t *name, uint32_t *to, llm_buf_t *body,
    llm_err_t *err)
{
    size_t             running;
    llm_buf_t          asked;
    llm_api_lane_t    *lane;
    const llm_flat_t  *v;

    v = llm_flat_get(root, "generate");
    llm_buf_init(&asked, s->most);

    if ((v && v->type != LLM_FLAT_NULL
         && llm_api_check_type(err, llm_api_top("generate"), v, LLM_FLAT_BOOL)
            != LLM_OK)
        || llm_api_socket_input(s, root, &asked, err) != LLM_OK)
    {
        llm_api_socket_stray(s, name, to);
        llm_buf_free(&asked);
        return LLM_ERROR;
    }

    running = llm_api_socket_running(s);

    if (running && running + asked.len > 2 * s->most) {
        llm_buf_free(&asked);
        return LLM_FULL;
    }

    lane = llm_api_socket_lane(s, name);
    llm_api_socket_claim(s, lane, name);
    llm_buf_free(&lane->asked);
    lane->asked = asked;
    lane->warms = v && v->type == LLM_FLAT_BOOL && !llm_flat_int(v);
    lane->sequence = 0;
    *to = (uint32_t) (lane - s->lanes);

    llm_api_socket_body(lane, root, body);
    lane->busy = !body->failed;

    return lane->busy ? LLM_OK : llm_fail(err, "no memory for a message");
}


/* the name of the message's stream */

static int
llm_api_socket_stream(const llm_flat_t *root, llm_api_socket_name_t *name,
    llm_err_t *err)
{
    llm_str_t            s;
    const llm_flat_t    *v;
    const llm_api_at_t  *at;

    name->len = 0;
    at = llm_api_top("stream_id");
    v = llm_flat_get(root, "stream_id");

    if (v == NULL || v->type == LLM_FLAT_NULL) {
        return LLM_OK;
    }

    if (llm_api_check_type(err, at, v, LLM_FLAT_STRING) != LLM_OK) {
        return LLM_ERROR;
    }

    s = llm_flat_str(v);

    if (s.len == 0) {
        return llm_api_bad_value(err, at, "A 'stream_id' is not empty.");
    }

    if (s.len > sizeof(name->data)) {
        return llm_api_too_long(err, at, sizeof(name->data), v);
    }

    name->len = (uint32_t) s.len;
    memcpy(name->data, s.data, s.len);

    return LLM_OK;
}


static int
llm_api_socket_check(const llm_flat_t *root, llm_api_socket_name_t *name,
    llm_err_t *err)
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

    return llm_api_socket_stream(root, name, err);
}


static int
llm_api_socket_flat(llm_str_t text, llm_buf_t *flat, llm_err_t *err)
{
    llm_json_limits_t  limits = { .depth = LLM_FLAT_MAX_DEPTH,
                                  .values = LLM_JSON_MAX_VALUES,
                                  .lenient = 1 };

    llm_buf_init(flat, 0);

    return llm_json_to_flat(text.data, text.len, &limits, flat, err);
}


/* has the stream to wait, for its own messages before `end`, or for a lane? */

static int
llm_api_socket_blocked(llm_api_socket_t *s, const llm_api_socket_name_t *name,
    const llm_api_waiting_t *end)
{
    llm_api_lane_t           *lane;
    const llm_api_waiting_t  *w;

    for (w = s->waiting; w != end; w = w->next) {
        if (llm_api_socket_same(&w->name, name)) {
            return 1;
        }
    }

    lane = llm_api_socket_lane(s, name);

    return lane == NULL || lane->busy;
}


/* ---- messages that wait ---- */

/* returns LLM_FULL, as it waits now */

static int
llm_api_socket_wait(llm_api_socket_t *s, const llm_api_socket_name_t *name,
    llm_str_t text, llm_err_t *err)
{
    llm_api_waiting_t  *w, **last;

    w = malloc(sizeof(llm_api_waiting_t) + text.len);
    if (w == NULL) {
        return llm_fail(err, "no memory for a message");
    }

    w->next = NULL;
    w->name = *name;
    w->len = text.len;
    memcpy(w->text, text.data, text.len);

    for (last = &s->waiting; *last; last = &(*last)->next) { /* void */ }

    *last = w;
    s->waits += text.len;
    s->n_waiting++;

    return LLM_FULL;
}


int
llm_api_socket_ask(llm_api_socket_t *s, llm_str_t text, uint32_t *lane,
    llm_buf_t *body, llm_err_t *err)
{
    int                    rc;
    llm_buf_t              flat;
    const llm_flat_t      *root;
    llm_api_socket_name_t  name;

    *lane = LLM_API_SOCKET_NOWHERE;
    rc = llm_api_socket_flat(text, &flat, err);

    if (rc == LLM_OK) {
        root = (const llm_flat_t *) flat.data;
        rc = llm_api_socket_check(root, &name, err);

        if (rc == LLM_OK) {
            rc = llm_api_socket_blocked(s, &name, NULL)
                 ? LLM_FULL
                 : llm_api_socket_begin(s, root, &name, lane, body, err);

            if (rc == LLM_FULL) {
                rc = llm_api_socket_wait(s, &name, text, err);
            }
        }
    }

    llm_buf_free(&flat);

    return rc;
}


int
llm_api_socket_again(llm_api_socket_t *s, uint32_t *lane, llm_buf_t *body,
    llm_err_t *err)
{
    int                  rc;
    llm_buf_t            flat;
    llm_api_waiting_t   *w, **at;

    *lane = LLM_API_SOCKET_NOWHERE;

    for (at = &s->waiting; *at; at = &(*at)->next) {
        w = *at;

        if (llm_api_socket_blocked(s, &w->name, w)) {
            continue;
        }

        rc = llm_api_socket_flat((llm_str_t) { w->len, w->text }, &flat, err);

        if (rc == LLM_OK) {
            rc = llm_api_socket_begin(s, (const llm_flat_t *) flat.data,
                                      &w->name, lane, body, err);
        }

        llm_buf_free(&flat);

        if (rc != LLM_FULL) {
            *at = w->next;
            s->waits -= w->len;
            s->n_waiting--;
            free(w);
            return rc;
        }
    }

    return LLM_FULL;
}


size_t
llm_api_socket_waiting(const llm_api_socket_t *s)
{
    return s->waits;
}


int
llm_api_socket_room(const llm_api_socket_t *s, size_t len)
{
    return s->n_waiting == 0
           || (s->n_waiting < LLM_API_SOCKET_WAITING
               && s->waits + len <= s->most);
}
