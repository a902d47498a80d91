/*
 * What one connection sends, and how: requests as they should be or not, in
 * one write or in crumbs, with answers that are read at once, late or never.
 */

#include "t/fuzz/http/http.h"

#include <stdlib.h>
#include <string.h>

static const char *const  fz_places[] = {
    "/v1", "/v1", "/v1", "/tight/v1", "/keep/v1", "/fallback/v1"
};

#define FZ_FALLBACK  5

static const char *const  fz_types[] = {
    "Content-Type: application/json\r\n",
    "Content-Type: application/json\r\n",
    "Content-Type: text/plain\r\n",
    "Content-Type: application/json; charset=utf-16\r\n",
    "Content-Type:\r\n",
    ""
};

/* headers that change nothing, most of them; nginx refuses two of a kind */
static const char *const  fz_headers[] = {
    "Accept: text/event-stream\r\n",
    "Accept-Encoding: gzip, br, *;q=0\r\n",
    "Authorization: Bearer \xc2\x9b\xff\x80\r\n",
    "Range: bytes=0-1\r\n",
    "If-Modified-Since: Sat, 01 Jan 2000 00:00:00 GMT\r\n",
    "If-None-Match: *\r\n",
    "If-Match: \"a\"\r\n",
    "If-Unmodified-Since: Sat, 01 Jan 2000 00:00:00 GMT\r\n",
    "Cookie: a=b; c\r\n",
    "X-Tenant: \r\n",
    "X-Tenant: a\r\nX-Tenant: b\r\n",
    "X-Tenant: \xe2\x80\xae\xc2\x9b\x33\x31m\r\nX-Weight: 1e308\r\n",
    "X-Tenant: t1\r\nX-Weight: 0\r\n",
    "X-Tenant: t2\r\nX-Weight: -1\r\n",
    "X-Tenant: t3\r\nX-Weight: 99999999999999999999\r\n",
    "X-Priority: 100\r\n",
    "X-Priority: -101\r\n",
    "X-Priority: 1e3\r\n",
    "X-Priority: \xff\r\n",
    "X-Request-Id: {{7*7}}\"\\\r\n",
    "Upgrade: websocket\r\n",
    "TE: trailers\r\n",
    "Accept-Language: \t \r\n",
    "x-lower: case\r\n"
};

/* whole requests that no server has to like; one has a zero within */

#define FZ_TEXT(text)  { text, sizeof(text) - 1 }

static const struct {
    const char  *text;
    size_t       len;
} fz_no_requests[] = {
    FZ_TEXT("POST /v1/completions HTTP/1.1\r\nHost: a\r\n"
        "Content-Length: abc\r\n\r\n"),
    FZ_TEXT("POST /v1/completions HTTP/1.1\r\nHost: a\r\n"
        "Content-Length: -1\r\n\r\n"),
    FZ_TEXT("POST /v1/completions HTTP/1.1\r\nHost: a\r\n"
        "Content-Length: 18446744073709551615\r\n\r\n{}"),
    FZ_TEXT("POST /v1/completions HTTP/1.1\r\nHost: a\r\n"
        "Content-Length: 99999999999999999999\r\n\r\n{}"),
    FZ_TEXT("POST /v1/completions HTTP/1.1\r\nHost: a\r\n"
        "Content-Length: 9223372036854775807\r\n\r\n{}"),
    FZ_TEXT("POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
        "Content-Length: 3\r\n\r\n{} "),
    FZ_TEXT("POST /v1/completions HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n"
        "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"),
    FZ_TEXT("POST /v1/completions HTTP/1.1\r\nHost: a\r\n"
        "Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"),
    FZ_TEXT("POST /v1/completions HTTP/1.1\r\nHost: a\r\n"
        "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n"),
    FZ_TEXT("POST /v1/completions HTTP/1.1\r\nHost: a\r\n"
        "Transfer-Encoding: chunked\r\n\r\n-1\r\n{}\r\n0\r\n\r\n"),
    FZ_TEXT("POST /v1/completions HTTP/1.1\r\nHost: a\r\n"
        "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n{}\r\n"),
    FZ_TEXT("POST /v1/completions HTTP/1.1\r\nHost: a\r\n"
        "Transfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\n{}\r\n"),
    FZ_TEXT("POST /v1/completions HTTP/1.1\r\nHost: a\r\n"
        "Transfer-Encoding: chunked\r\n\r\n2\r\n{}"),
    FZ_TEXT("POST /v1/completions HTTP/1.1\r\nHost: a\r\n\r\n"),
    FZ_TEXT("POST /v1/completions HTTP/1.0\r\n\r\n{}"),
    FZ_TEXT("POST /v1/completions HTTP/1.1\r\n\r\n"),
    FZ_TEXT("POST /v1/completions HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"),
    FZ_TEXT("POST /v1/completions HTTP/3.0\r\nHost: a\r\n\r\n"),
    FZ_TEXT("POST /v1/completions HTTP/1.1\r\nHost: a\r\nX-\0Y: z\r\n\r\n"),
    FZ_TEXT("POST /v1/completions HTTP/1.1\nHost: a\nContent-Length: 2\n\n{}"),
    FZ_TEXT("POST http://other/v1/completions HTTP/1.1\r\nHost: a\r\n"
        "Content-Length: 2\r\n\r\n{}"),
    FZ_TEXT("POST /v1/../v1/completions HTTP/1.1\r\nHost: a\r\n"
        "Content-Length: 2\r\n\r\n{}"),
    FZ_TEXT("POST /v1/../../etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n"),
    FZ_TEXT("POST /v1/chat%2fcompletions HTTP/1.1\r\nHost: a\r\n"
        "Content-Length: 2\r\n\r\n{}"),
    FZ_TEXT("POST //v1//chat///completions HTTP/1.1\r\nHost: a\r\n"
        "Content-Length: 2\r\n\r\n{}"),
    FZ_TEXT("GET /v1/models/%00 HTTP/1.1\r\nHost: a\r\n\r\n"),
    FZ_TEXT("GET /v1/models/%ff%fe%c2%9b HTTP/1.1\r\nHost: a\r\n\r\n"),
    FZ_TEXT("GET /v1/models/%e2%80%ae HTTP/1.1\r\nHost: a\r\n\r\n"),
    FZ_TEXT("GET /v1/models\r\n"),
    FZ_TEXT("GET /v1/models HTTP/0.9\r\n\r\n"),
    FZ_TEXT("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        "\x00\x00\x00\x04\x00\x00\x00\x00\x00"),
    FZ_TEXT("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
    FZ_TEXT("BREW /v1/completions HTTP/1.1\r\nHost: a\r\n\r\n"),
    FZ_TEXT("post /v1/completions HTTP/1.1\r\nHost: a\r\n\r\n"),
    FZ_TEXT("CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: a\r\n\r\n"),
    FZ_TEXT("TRACE / HTTP/1.1\r\nHost: a\r\n\r\n"),
    FZ_TEXT("\r\n\r\n\r\n"),
    FZ_TEXT("")
};

/* requests beside the two that matter */
static const struct {
    const char  *line;
    int          head;
} fz_others[] = {
    { "GET /v1/models", 0 },
    { "GET /v1/models/demo", 0 },
    { "GET /v1/models/none", 0 },
    { "GET /v1/models/", 0 },
    { "GET /v1/models?limit=%00", 0 },
    { "HEAD /v1/models", 1 },
    { "POST /v1/models", 0 },
    { "DELETE /v1/models/demo", 0 },
    { "GET /v1/chat/completions", 0 },
    { "GET /v1/completions", 0 },
    { "HEAD /v1/completions", 1 },
    { "PUT /v1/completions", 0 },
    { "OPTIONS /v1/chat/completions", 0 },
    { "GET /v1/", 0 },
    { "GET /v1", 0 },
    { "GET /v1/embeddings", 0 },
    { "GET /v1/tokenizer_info", 0 },
    { "GET /v1/tokenizer_info?model=none", 0 },
    { "HEAD /v1/tokenizer_info", 1 },
    { "GET /props", 0 },
    { "GET /v1/props?model=none", 0 },
    { "POST /v1/props", 0 },
    { "POST /v1/reranking", 0 },
    { "POST /v1/v2/rerank", 0 },
    { "HEAD /v1/messages", 1 },
    { "OPTIONS /v1/messages", 0 },
    { "GET /v1/responses", 0 },
    { "GET /v1/responses/resp_1", 0 },
    { "POST /v1/responses/resp_1/cancel", 0 },
    { "POST /v1/chat/completions/", 0 },
    { "GET /health", 0 },
    { "HEAD /health", 1 },
    { "POST /health", 0 },
    { "GET /figures", 0 },
    { "GET /metrics", 0 },
    { "HEAD /metrics", 1 }
};


/* the body in chunks of odd sizes */

static void
fz_chunks(fz_gen_t *g, fz_buf_t *out)
{
    size_t    n, done;
    unsigned  most;

    most = fz_chance(&g->rand, 300) ? 3 : 2000;

    for (done = 0; done < g->body.len; done += n) {
        n = 1 + fz_below(&g->rand, most);

        /* not a million of them */

        if (n > g->body.len - done || done > 3000) {
            n = g->body.len - done;
        }

        fz_addf(out, fz_chance(&g->rand, 500) ? "%zx" : "%04zX", n);
        fz_adds(out, fz_chance(&g->rand, 50) ? ";a=\"b\"\r\n" : "\r\n");
        fz_add(out, g->body.data + done, n);
        fz_adds(out, "\r\n");
    }

    fz_adds(out, fz_chance(&g->rand, 50) ? "0\r\nX-Last: a\r\n\r\n"
                                         : "0\r\n\r\n");
}


static void
fz_some_headers(fz_rand_t *r, fz_buf_t *out)
{
    unsigned  i, n;

    fz_adds(out, fz_types[fz_below(r, fz_nelems(fz_types))]);

    if (fz_chance(r, 600)) {
        return;
    }

    for (i = 0; fz_chance(r, 700); /* void */ ) {
        i += fz_below(r, fz_nelems(fz_headers) / 2);

        if (i >= fz_nelems(fz_headers)) {
            break;
        }

        fz_adds(out, fz_headers[i++]);
    }

    if (fz_chance(r, 30)) {
        for (n = fz_below(r, 80); n; n--) {
            fz_addf(out, "X-Many-%u: %u\r\n", n, n);
        }
    }

    if (fz_chance(r, 20)) {
        fz_adds(out, "X-Long: ");
        fz_repeat(out, "a", 3000);
        fz_adds(out, "\r\n");
    }
}


/* a key of its own, one that others may have, one that is too long */

static void
fz_key(const fz_script_t *s, fz_gen_t *g, fz_buf_t *out)
{
    switch (fz_below(&g->rand, 20)) {

    case 0:
        fz_addf(out, "Idempotency-Key: k%u\r\n", fz_below(&g->rand, 50));
        break;

    case 1:
    case 2:
    case 3:
        fz_addf(out, "Idempotency-Key: own %llu %u\r\n",
                (unsigned long long) s->number, s->n_requests);
        break;

    case 4:
        fz_adds(out, "Idempotency-Key: ");
        fz_repeat(out, "k", 254 + fz_below(&g->rand, 3));
        fz_adds(out, "\r\n");
    }
}


static void
fz_repeat_from(fz_buf_t *out, size_t start, size_t len)
{
    fz_buf_t  copy = { NULL, 0, 0 };

    fz_add(&copy, out->data + start, len);
    fz_add(out, copy.data, len);
    free(copy.data);
}


static void
fz_post(fz_script_t *s, fz_gen_t *g, int last)
{
    int          old, chunked, endpoint;
    size_t       len, start;
    unsigned     place;
    fz_buf_t    *out;
    const char  *path;

    out = &s->out;
    start = out->len;
    endpoint = fz_endpoint(fz_below(&g->rand, fz_chance(&g->rand, 400)
                                              ? 2 : FZ_ENDPOINTS), &path);
    place = fz_below(&g->rand, fz_nelems(fz_places));
    old = last && fz_chance(&g->rand, 50);

    fz_body(g, endpoint);

    if (fz_chance(&g->rand, 120)) {
        fz_break(g);
    }

    if (place == FZ_FALLBACK) {
        g->want.loose = 1;
    }

    fz_addf(out, "POST %s/%s HTTP/1.%d\r\nHost: localhost\r\n",
            fz_places[place], path, !old);

    fz_some_headers(&g->rand, out);
    fz_key(s, g, out);

    if (old || (last && fz_chance(&g->rand, 100))) {
        fz_adds(out, "Connection: close\r\n");
        s->close = 1;
    }

    if (!old && fz_chance(&g->rand, 50)) {
        fz_adds(out, "Expect: 100-continue\r\n");
    }

    len = out->len;
    chunked = !old && fz_chance(&g->rand, 150);

    if (chunked) {
        fz_adds(out, "Transfer-Encoding: chunked\r\n\r\n");
        fz_chunks(g, out);
    }

    if (!chunked || (g->mask & FZ_PLAIN)) {
        out->len = len;
        fz_addf(out, "Content-Length: %zu\r\n\r\n", g->body.len);
        fz_add(out, g->body.data, g->body.len);
    }

    s->want[s->n_requests++] = g->want;

    /* sent again: computed once, or twice if it is an error */

    if (!last && fz_chance(&g->rand, 400)) {
        len = out->len - start;
        fz_repeat_from(out, start, len);
        s->want[s->n_requests++] = g->want;
    }
}


static void
fz_other(fz_script_t *s, fz_gen_t *g)
{
    unsigned    i;
    fz_want_t  *w;

    i = fz_below(&g->rand, fz_nelems(fz_others));
    w = &s->want[s->n_requests++];

    memset(w, 0, sizeof(fz_want_t));
    w->n = w->prompts = w->stream = w->usage = -1;
    w->head = fz_others[i].head;

    fz_addf(&s->out, "%s HTTP/1.1\r\nHost: localhost\r\n",
            fz_others[i].line);
    fz_some_headers(&g->rand, &s->out);

    if (strncmp(fz_others[i].line, "P", 1) == 0) {
        fz_adds(&s->out, "Content-Length: 2\r\n\r\n{}");

    } else {
        fz_adds(&s->out, "\r\n");
    }
}


/* no request, or one with other bytes in it */

static void
fz_not_http(fz_script_t *s, fz_gen_t *g)
{
    size_t    len;
    unsigned  i, n;

    s->loose = 1;
    s->close = 1;

    if (fz_chance(&g->rand, 500)) {
        i = fz_below(&g->rand, fz_nelems(fz_no_requests));
        fz_add(&s->out, fz_no_requests[i].text, fz_no_requests[i].len);

        if (fz_chance(&g->rand, 300)) {
            fz_adds(&s->out, "GET /v1/models HTTP/1.1\r\nHost: a\r\n\r\n");
        }

        return;
    }

    fz_post(s, g, 1);
    s->n_requests = 0;
    n = 1 + fz_below(&g->rand, 3);

    for (i = 0; i < n; i++) {
        len = s->out.len < 300 || fz_chance(&g->rand, 200) ? s->out.len : 300;

        s->out.data[fz_below(&g->rand, (unsigned) len)]
            = (char) fz_below(&g->rand, 256);
    }
}


static void
fz_leaves(fz_script_t *s, fz_rand_t *r)
{
    s->close = 1;
    s->reset = fz_chance(r, 500);

    if (fz_chance(r, 400)) {
        s->leave_sent = 1 + fz_below(r, (unsigned) s->out.len);
        s->half = fz_chance(r, 200);

    } else {
        s->leave_got = 1 + fz_below(r, fz_chance(r, 500) ? 400 : 6000);
    }
}


void
fz_script(fz_script_t *s, const fz_table_t *t, uint64_t seed,
    uint64_t number, uint64_t mask)
{
    unsigned         i, n;
    fz_buf_t         out;
    static fz_gen_t  g;                 /* for its buffer */

    out = s->out;
    memset(s, 0, sizeof(fz_script_t));
    s->out = out;
    s->out.len = 0;
    s->number = number;

    g.table = t;
    g.mask = mask;
    fz_seed(&g.rand, seed, number);

    if (fz_chance(&g.rand, 60)) {
        fz_not_http(s, &g);

    } else {
        n = fz_chance(&g.rand, 80) ? 2 + fz_below(&g.rand, 3) : 1;

        for (i = 0; i < n; i++) {
            if (fz_chance(&g.rand, 50)) {
                fz_other(s, &g);

            } else {
                fz_post(s, &g, i == n - 1);
            }
        }
    }

    if (fz_chance(&g.rand, 60)) {
        s->piece = 1 + fz_below(&g.rand, fz_chance(&g.rand, 300) ? 10 : 500);
        s->pause = fz_below(&g.rand, 10);

        /* not for ever */

        if (s->out.len / s->piece > 200) {
            s->piece = s->out.len / 200 + 1;
        }
    }

    if (s->out.len && fz_chance(&g.rand, 100)) {
        fz_leaves(s, &g.rand);
    }

    if (fz_chance(&g.rand, 30)) {
        s->stall_at = fz_below(&g.rand, 2000);
        s->stall_ms = 1 + fz_below(&g.rand, fz_chance(&g.rand, 100) ? 3000
                                                                    : 300);
    }

    if (mask & FZ_PLAIN) {
        s->piece = 0;
        s->leave_sent = 0;
        s->leave_got = 0;
        s->stall_ms = 0;
    }
}
