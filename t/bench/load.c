/*
 * A load generator for the HTTP API: N concurrent streams from one thread with
 * epoll, each a POST to /v1/chat/completions (or /completions) with
 * "stream": true; reports TTFT, inter-token latency, end-to-end latency and
 * tokens per second.  Works with any OpenAI-compatible server, so that other
 * servers are measured by the same program.
 *
 *   load [-u 127.0.0.1:8080] [-p PATH] [-c STREAMS] [-n REQUESTS]
 *        [-o TOKENS] [-b BODY-FILE] [-t SECONDS] [-r RATE] [-H HEADER]
 *        [-s ADDRESS] [-j]
 *
 * With -s, the connections come from that address.  With -r, the first STREAMS
 * are opened at RATE per second, not all at once.
 * In the body file, %d is replaced by the request's number, and %o by TOKENS.
 * A `data:` frame with text is counted as a token; if the server sends usage,
 * its completion_tokens are used instead, except for latencies.
 *
 * Memory is freed only by the exit.  A stream's buffer has a fixed size; a
 * frame that is longer is an error.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define LOAD_BUF     16384
#define LOAD_EVENTS  512


typedef enum {
    LOAD_IDLE = 0,
    LOAD_SENDING,
    LOAD_HEADER,
    LOAD_BODY
} load_state_t;

typedef struct {
    int            fd;
    load_state_t   state;
    int            status;
    uint32_t       number;              /* of the request */
    uint32_t       tokens;              /* frames with text */
    uint32_t       usage;               /* completion_tokens, 0: not sent */
    int            done;                /* [DONE] was received */
    int            failed;              /* an error frame was received */
    uint64_t       start;               /* times in ns: of connect() */
    uint64_t       first;               /* first token; 0: none yet */
    uint64_t       last;                /* latest token */
    size_t         sent;
    size_t         len;
    size_t         request_len;
    char          *request;
    char           buf[LOAD_BUF];
} load_conn_t;

typedef struct {
    double        *v;
    size_t         n;
    size_t         cap;
} load_series_t;

typedef struct {
    struct sockaddr_in   addr;
    struct sockaddr_in   source;        /* sin_family 0: any */
    const char          *host;
    const char          *path;
    const char          *header;
    char                *body;
    uint32_t             n_conns;
    uint32_t             n_requests;
    uint32_t             n_tokens;
    double               seconds;
    double               rate;          /* streams opened per second; 0: all
                                           at once */
    int                  json;

    int                  ep;
    uint32_t             next;
    uint32_t             ended;
    uint32_t             errors;
    uint64_t             tokens;
    uint64_t             usage;
    uint64_t             bytes;         /* received, headers included */
    load_series_t        ttft;
    load_series_t        itl;
    load_series_t        e2e;
} load_t;


static uint64_t
load_now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000000000 + (uint64_t) ts.tv_nsec;
}


static void
load_die(const char *what)
{
    fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
    exit(1);
}


static void
load_add(load_series_t *s, double ms)
{
    if (s->n == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 4096;
        s->v = realloc(s->v, s->cap * sizeof(double));

        if (s->v == NULL) {
            load_die("realloc");
        }
    }

    s->v[s->n++] = ms;
}


static int
load_cmp(const void *a, const void *b)
{
    double  x = *(const double *) a, y = *(const double *) b;

    return (x > y) - (x < y);
}


static double
load_quantile(load_series_t *s, double q)
{
    if (s->n == 0) {
        return 0;
    }

    return s->v[(size_t) (q * (double) (s->n - 1) + 0.5)];
}


static double
load_mean(load_series_t *s)
{
    size_t  i;
    double  sum;

    sum = 0;

    for (i = 0; i < s->n; i++) {
        sum += s->v[i];
    }

    return s->n ? sum / (double) s->n : 0;
}


/* the body with %d and %o filled in; the caller frees it */

static char *
load_body(load_t *l, uint32_t number)
{
    char        *out, *p;
    const char  *s;

    out = malloc(strlen(l->body) * 8 + 64);
    if (out == NULL) {
        load_die("malloc");
    }

    for (s = l->body, p = out; *s; s++) {
        if (s[0] == '%' && (s[1] == 'd' || s[1] == 'o')) {
            p += sprintf(p, "%u", s[1] == 'd' ? number : l->n_tokens);
            s++;
            continue;
        }

        *p++ = *s;
    }

    *p = '\0';

    return out;
}


static void
load_open(load_t *l, load_conn_t *c)
{
    int                  one;
    char                *body;
    struct epoll_event   ee;

    body = load_body(l, l->next);
    free(c->request);

    if (asprintf(&c->request,
                 "POST %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n"
                 "Content-Type: application/json\r\n%s%s"
                 "Content-Length: %zu\r\n\r\n%s",
                 l->path, l->host, l->header, *l->header ? "\r\n" : "",
                 strlen(body), body) < 0)
    {
        load_die("asprintf");
    }

    free(body);

    c->request_len = strlen(c->request);
    c->number = l->next++;
    c->state = LOAD_SENDING;
    c->tokens = 0;
    c->usage = 0;
    c->status = 0;
    c->done = 0;
    c->failed = 0;
    c->sent = 0;
    c->len = 0;
    c->first = 0;

    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (c->fd < 0) {
        load_die("socket");
    }

    one = 1;
    (void) setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));

    /* the port is chosen by connect(), so that it needs to be free for this
       server only */

    if (l->source.sin_family
        && (setsockopt(c->fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one,
                       sizeof(one)) < 0
            || bind(c->fd, (struct sockaddr *) &l->source,
                    sizeof(l->source)) < 0))
    {
        load_die("bind");
    }

    c->start = load_now();

    if (connect(c->fd, (struct sockaddr *) &l->addr, sizeof(l->addr)) < 0
        && errno != EINPROGRESS)
    {
        load_die("connect");
    }

    ee.events = EPOLLIN | EPOLLOUT | EPOLLET | EPOLLRDHUP;
    ee.data.ptr = c;

    if (epoll_ctl(l->ep, EPOLL_CTL_ADD, c->fd, &ee) < 0) {
        load_die("epoll_ctl");
    }
}


static void
load_end(load_t *l, load_conn_t *c)
{
    int  good;

    close(c->fd);
    c->state = LOAD_IDLE;
    l->ended++;

    good = c->status == 200 && c->done && !c->failed;

    if (!good) {
        l->errors++;

        if (l->errors <= 3) {
            fprintf(stderr, "load: request %u: status %d, %s\n", c->number,
                    c->status, c->failed ? "error event" : "truncated");
        }

    } else {
        load_add(&l->e2e, (double) (load_now() - c->start) / 1e6);
        l->usage += c->usage ? c->usage : c->tokens;
    }
}


/* the beginning of a frame's text: content, reasoning or completion; NULL: the
   frame has no text */

static char *
load_text(char *line)
{
    char    *p;
    size_t   i;

    static const char  *keys[] = {
        "\"content\":\"", "\"reasoning_content\":\"", "\"text\":\""
    };

    for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        p = strstr(line, keys[i]);

        if (p) {
            return p + strlen(keys[i]);
        }
    }

    return NULL;
}


/* counts a frame's token, and reads its usage, error or [DONE] */

static void
load_frame(load_t *l, load_conn_t *c, char *line, uint64_t now)
{
    char  *p;

    if (strncmp(line, "data: ", 6) != 0) {
        return;
    }

    line += 6;

    if (strncmp(line, "[DONE]", 6) == 0) {
        c->done = 1;
        return;
    }

    if (strncmp(line, "{\"error\"", 8) == 0) {
        c->failed = 1;
        return;
    }

    p = strstr(line, "\"completion_tokens\":");
    if (p) {
        c->usage = (uint32_t) strtoul(p + 20, NULL, 10);
    }

    p = load_text(line);

    if (p == NULL || *p == '"') {
        return;
    }

    c->tokens++;
    l->tokens++;

    if (c->first == 0) {
        c->first = now;
        load_add(&l->ttft, (double) (now - c->start) / 1e6);

    } else {
        load_add(&l->itl, (double) (now - c->last) / 1e6);
    }

    c->last = now;
}


static void
load_parse(load_t *l, load_conn_t *c, uint64_t now)
{
    char    *p, *eol, *end;
    size_t   left;

    end = c->buf + c->len;
    p = c->buf;

    if (c->state == LOAD_HEADER) {
        eol = memmem(c->buf, c->len, "\r\n\r\n", 4);
        if (eol == NULL) {
            return;
        }

        c->status = atoi(c->buf + 9);
        c->state = LOAD_BODY;
        p = eol + 4;
    }

    /* chunk sizes are on lines of their own, which load_frame() ignores */

    while ((eol = memchr(p, '\n', (size_t) (end - p))) != NULL) {
        *eol = '\0';
        load_frame(l, c, p, now);
        p = eol + 1;
    }

    left = (size_t) (end - p);
    memmove(c->buf, p, left);
    c->len = left;
}


static void
load_event(load_t *l, load_conn_t *c)
{
    ssize_t   n;
    uint64_t  now;

    while (c->sent < c->request_len) {
        n = write(c->fd, c->request + c->sent, c->request_len - c->sent);

        if (n < 0) {
            if (errno == EAGAIN) {
                return;
            }

            load_end(l, c);
            return;
        }

        c->sent += (size_t) n;
        c->state = LOAD_HEADER;
    }

    for ( ;; ) {
        if (c->len == LOAD_BUF - 1) {
            fprintf(stderr, "load: a frame longer than %d\n", LOAD_BUF);
            c->failed = 1;
            load_end(l, c);
            return;
        }

        n = read(c->fd, c->buf + c->len, LOAD_BUF - 1 - c->len);

        if (n < 0 && errno == EAGAIN) {
            return;
        }

        if (n <= 0) {
            load_end(l, c);
            return;
        }

        now = load_now();
        c->len += (size_t) n;
        l->bytes += (uint64_t) n;
        c->buf[c->len] = '\0';
        load_parse(l, c, now);
    }
}


/* opens those of the first streams that are due; returns how many have been
   opened */

static uint32_t
load_ramp(load_t *l, load_conn_t *conns, uint32_t opened, uint64_t start)
{
    double    due;
    uint32_t  max;

    max = l->n_conns < l->n_requests ? l->n_conns : l->n_requests;
    due = max;

    if (l->rate > 0) {
        due = l->rate * (double) (load_now() - start) / 1e9 + 1;
    }

    while (opened < max && opened < due && l->next < l->n_requests) {
        load_open(l, &conns[opened++]);
    }

    return opened;
}


static void
load_run(load_t *l)
{
    int                 i, n;
    uint32_t            opened, max;
    uint64_t            start, stop;
    load_conn_t        *conns;
    struct epoll_event  ev[LOAD_EVENTS];

    conns = calloc(l->n_conns, sizeof(load_conn_t));
    l->ep = epoll_create1(0);

    if (conns == NULL || l->ep < 0) {
        load_die("set-up");
    }

    start = load_now();
    stop = l->seconds > 0 ? start + (uint64_t) (l->seconds * 1e9) : 0;
    max = l->n_conns < l->n_requests ? l->n_conns : l->n_requests;
    opened = load_ramp(l, conns, 0, start);

    while (l->ended < l->next
           || (opened < max && l->next < l->n_requests))
    {
        n = epoll_wait(l->ep, ev, LOAD_EVENTS, opened < max ? 1 : 1000);

        for (i = 0; i < n; i++) {
            load_conn_t  *c = ev[i].data.ptr;

            if (c->state == LOAD_IDLE) {
                continue;
            }

            load_event(l, c);

            if (c->state == LOAD_IDLE && l->next < l->n_requests
                && (stop == 0 || load_now() < stop))
            {
                load_open(l, c);
            }
        }

        if (stop && load_now() > stop) {
            break;
        }

        opened = load_ramp(l, conns, opened, start);
    }
}


static void
load_series_print(load_t *l, const char *name, load_series_t *s)
{
    qsort(s->v, s->n, sizeof(double), load_cmp);

    if (l->json) {
        printf(", \"%s_ms\": {\"mean\": %.3f, \"p50\": %.3f, "
               "\"p99\": %.3f}", name, load_mean(s), load_quantile(s, 0.5),
               load_quantile(s, 0.99));
        return;
    }

    printf("  %s ms: mean %.2f p50 %.2f p99 %.2f", name, load_mean(s),
           load_quantile(s, 0.5), load_quantile(s, 0.99));
}


static char *
load_file(const char *path)
{
    FILE    *f;
    char    *p;
    size_t   n;

    f = fopen(path, "r");
    p = malloc(1 << 20);

    if (f == NULL || p == NULL) {
        load_die(path);
    }

    n = fread(p, 1, (1 << 20) - 1, f);
    p[n] = '\0';
    fclose(f);

    return p;
}


int
main(int argc, char **argv)
{
    int             opt;
    char           *port, *host, *source;
    double          wall;
    load_t          l;
    uint64_t        start;
    struct rlimit   rl;

    memset(&l, 0, sizeof(l));
    host = strdup("127.0.0.1:8080");
    source = NULL;
    l.path = "/v1/chat/completions";
    l.header = "";
    l.n_conns = 1;
    l.n_tokens = 64;
    l.body = "{\"stream\":true,\"stream_options\":{\"include_usage\":true},"
             "\"max_tokens\":%o,\"ignore_eos\":true,\"temperature\":0,"
             "\"messages\":[{\"role\":\"user\",\"content\":"
             "\"Count up, please. Request %d.\"}]}";

    while ((opt = getopt(argc, argv, "u:p:c:n:o:b:t:r:H:s:j")) != -1) {
        switch (opt) {
        case 'u': host = strdup(optarg); break;
        case 'p': l.path = optarg; break;
        case 'c': l.n_conns = (uint32_t) atoi(optarg); break;
        case 'n': l.n_requests = (uint32_t) atoi(optarg); break;
        case 'o': l.n_tokens = (uint32_t) atoi(optarg); break;
        case 'b': l.body = load_file(optarg); break;
        case 't': l.seconds = atof(optarg); break;
        case 'r': l.rate = atof(optarg); break;
        case 'H': l.header = optarg; break;
        case 's': source = optarg; break;
        case 'j': l.json = 1; break;
        default:
            fprintf(stderr, "usage: load [-u HOST:PORT] [-p PATH] "
                    "[-c STREAMS] [-n REQUESTS] [-o TOKENS] [-b BODY-FILE] "
                    "[-t SECONDS] [-r RATE] [-H HEADER] [-s ADDRESS] [-j]\n");
            return 1;
        }
    }

    l.host = strdup(host);
    port = strchr(host, ':');

    if (port == NULL) {
        fprintf(stderr, "load: -u needs HOST:PORT\n");
        return 1;
    }

    *port++ = '\0';
    l.addr.sin_family = AF_INET;
    l.addr.sin_port = htons((uint16_t) atoi(port));

    if (inet_pton(AF_INET, host, &l.addr.sin_addr) != 1) {
        fprintf(stderr, "load: -u needs a numeric address\n");
        return 1;
    }

    if (source) {
        l.source.sin_family = AF_INET;

        if (inet_pton(AF_INET, source, &l.source.sin_addr) != 1) {
            fprintf(stderr, "load: -s needs a numeric address\n");
            return 1;
        }
    }

    if (l.n_requests == 0) {
        l.n_requests = l.seconds > 0 ? UINT32_MAX : l.n_conns;
    }

    if (getrlimit(RLIMIT_NOFILE, &rl) == 0) {
        rl.rlim_cur = rl.rlim_max;
        (void) setrlimit(RLIMIT_NOFILE, &rl);
    }

    start = load_now();
    load_run(&l);
    wall = (double) (load_now() - start) / 1e9;

    if (l.json) {
        printf("{\"streams\": %u, \"requests\": %u, \"errors\": %u, "
               "\"seconds\": %.3f, \"tokens\": %llu, \"bytes\": %llu, "
               "\"tokens_per_s\": %.1f",
               l.n_conns, l.ended, l.errors, wall,
               (unsigned long long) l.usage, (unsigned long long) l.bytes,
               (double) l.usage / wall);

    } else {
        printf("streams %u: %u requests, %u errors, %.1f tok/s",
               l.n_conns, l.ended, l.errors, (double) l.usage / wall);
    }

    load_series_print(&l, "ttft", &l.ttft);
    load_series_print(&l, "itl", &l.itl);
    load_series_print(&l, "e2e", &l.e2e);
    printf(l.json ? "}\n" : "\n");

    return l.errors ? 1 : 0;
}
