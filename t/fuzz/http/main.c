/*
 * A fuzz target of whole requests over HTTP, against a server that runs:
 *
 *   fuzz-http -T engine/api [-u 127.0.0.1:8080] [-s SEED]
 *             [-t SECONDS] [-n REQUESTS] [-c CONNECTIONS] [-i FIRST]
 *             [-w SECONDS] [-e ERRORS] [-v VOCABULARY]
 *   fuzz-http ... -1 NUMBER [-m MASK]    that script alone
 *   fuzz-http ... -p NUMBER [-m MASK]    what it sends
 *
 * From -i on, scripts are numbered; the next free connection takes the next
 * one.  Exits with 1 when an answer is wrong, or none comes for -w seconds,
 * and names the scripts that were under way.  /health is asked all the time
 * from a thread of its own.  The last line is a JSON object of the counts.
 */

#include "t/fuzz/http/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define FZ_EVENTS    256
#define FZ_READ      65536
#define FZ_RECENT    8                  /* scripts of a connection named */
#define FZ_LOOSE_MS  200                /* of silence: nothing will come */

typedef struct {
    int                 fd;             /* -1: none */
    int                 busy;
    unsigned            events;
    fz_script_t         script;
    fz_answer_t         answer;
    unsigned            answers;        /* of the script, until now */
    size_t              sent;
    size_t              got;
    int                 shut;           /* the side that writes is closed */
    uint64_t            send_at;        /* ms: not earlier, 0: now */
    uint64_t            read_at;
    uint64_t            moved;          /* when a byte came or went */
    unsigned            n_recent;
    uint64_t            recent[FZ_RECENT];
} fz_conn_t;

typedef struct {
    struct sockaddr_in  addr;
    fz_table_t          table;
    uint64_t            seed;
    uint64_t            mask;
    uint64_t            next;           /* number of the next script */
    uint64_t            end;            /* ms, 0: none */
    uint64_t            most;           /* answers */
    unsigned            n_conns;
    unsigned            patience;       /* ms */
    unsigned            most_errors;
    int                 ep;
    fz_conn_t          *conns;

    uint64_t            scripts;
    uint64_t            left;           /* connections left early */
    uint64_t            loose;
    uint64_t            statuses[600];
    uint64_t            answers;
    uint64_t            streams;
    unsigned            errors;
} fz_t;


static uint64_t
fz_now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (uint64_t) ts.tv_sec * 1000 + (uint64_t) ts.tv_nsec / 1000000;
}


/* ---- what went wrong ---- */

static void
fz_fail(fz_t *f, fz_conn_t *c, const char *why)
{
    unsigned   i;
    fz_conn_t *other;

    f->errors++;

    printf("FAIL script %llu, request %u of %u: %s\n",
           (unsigned long long) c->script.number, c->answers + 1,
           c->script.n_requests, why);

    printf("seed %llu, scripts of this connection:",
           (unsigned long long) f->seed);

    for (i = c->n_recent > FZ_RECENT ? c->n_recent - FZ_RECENT : 0;
         i < c->n_recent; i++)
    {
        printf(" %llu", (unsigned long long) c->recent[i % FZ_RECENT]);
    }

    printf("\nsuspects: %llu", (unsigned long long) c->script.number);

    for (i = 0; i < f->n_conns; i++) {
        other = &f->conns[i];

        if (other != c && other->busy) {
            printf(" %llu", (unsigned long long) other->script.number);
        }
    }

    printf("\nsent %zu of %zu: ", c->sent, c->script.out.len);
    fz_print(c->script.out.data, c->script.out.len, 3000);
    printf("status %d: ", c->answer.status);
    fz_print(c->answer.body.data, c->answer.body.len, 1500);
    printf("\n");
    fflush(stdout);
}


/* ---- a connection ---- */

static void
fz_watch(fz_t *f, fz_conn_t *c, unsigned events)
{
    struct epoll_event  ee;

    if (c->events == events) {
        return;
    }

    c->events = events;
    ee.events = events;
    ee.data.ptr = c;

    if (epoll_ctl(f->ep, EPOLL_CTL_MOD, c->fd, &ee) < 0) {
        fz_die("epoll_ctl: %s", strerror(errno));
    }
}


static void
fz_open(fz_t *f, fz_conn_t *c)
{
    int                 one, small;
    struct epoll_event  ee;

    c->fd = socket(AF_INET, SOCK_STREAM, 0);
    if (c->fd < 0) {
        fz_die("socket: %s", strerror(errno));
    }

    one = 1;
    small = 4096;

    (void) setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));

    if (c->script.stall_ms) {
        (void) setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &small,
                          sizeof(small));
    }

    if (connect(c->fd, (struct sockaddr *) &f->addr, sizeof(f->addr)) < 0) {
        fz_die("connect: %s", strerror(errno));
    }

    c->n_recent = 0;
    c->events = 0;
    ee.events = 0;
    ee.data.ptr = c;

    if (epoll_ctl(f->ep, EPOLL_CTL_ADD, c->fd, &ee) < 0) {
        fz_die("epoll_ctl: %s", strerror(errno));
    }
}


static void
fz_close(fz_conn_t *c, int reset)
{
    struct linger  l = { 1, 0 };

    if (reset) {
        (void) setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l));
    }

    close(c->fd);
    c->fd = -1;
}


static void
fz_begin(fz_t *f, fz_conn_t *c)
{
    fz_script(&c->script, &f->table, f->seed, f->next++, f->mask);

    if (c->fd >= 0 && c->script.stall_ms) {
        fz_close(c, 0);
    }

    if (c->fd < 0) {
        fz_open(f, c);
    }

    c->recent[c->n_recent++ % FZ_RECENT] = c->script.number;
    c->busy = 1;
    c->answers = 0;
    c->sent = 0;
    c->got = 0;
    c->shut = 0;
    c->send_at = 0;
    c->read_at = 0;
    c->moved = fz_now();

    fz_answer_reset(&c->answer);
    f->scripts++;
}


static void
fz_end(fz_t *f, fz_conn_t *c, int close, int reset)
{
    f->left += close && c->answers < c->script.n_requests;
    f->loose += c->script.loose;
    c->busy = 0;

    if (close || c->script.close) {
        fz_close(c, reset);
    }
}


/* the connection is at its end, by the server's will */

static void
fz_closed(fz_t *f, fz_conn_t *c, const char *why)
{
    if (why && !c->script.loose && !c->shut) {
        fz_fail(f, c, why);
    }

    fz_end(f, c, 1, 0);
}


static void
fz_whole(fz_t *f, fz_conn_t *c)
{
    const char  *err;

    err = fz_check(&c->answer, &c->script.want[c->answers]);

    if (err) {
        fz_fail(f, c, err);
    }

    f->answers++;
    f->streams += c->answer.stream;

    if (c->answer.status > 0 && c->answer.status < 600) {
        f->statuses[c->answer.status]++;
    }

    c->answers++;
}


/* true when the script has ended */

static int
fz_take(fz_t *f, fz_conn_t *c, const char *data, size_t len, int eof)
{
    int          close;
    size_t       n;
    const char  *err;

    for ( ;; ) {
        n = fz_answer_read(&c->answer, &c->script.want[c->answers], data, len,
                           eof, &err);
        data += n;
        len -= n;

        if (err) {
            fz_closed(f, c, err);
            return 1;
        }

        if (!c->answer.whole) {
            return 0;
        }

        fz_whole(f, c);
        close = c->answer.close;
        fz_answer_reset(&c->answer);

        if (c->answers == c->script.n_requests || close) {
            if (len && !close) {
                fz_fail(f, c, "more bytes than answers");
            }

            /* a body that was not wanted is read no further */
            fz_end(f, c, close || len || c->sent < c->script.out.len, 0);
            return 1;
        }

        eof = 0;

        if (len == 0) {
            return 0;
        }
    }
}


static void
fz_read(fz_t *f, fz_conn_t *c)
{
    ssize_t       n;
    const size_t  room = c->script.stall_ms ? 1024 : FZ_READ;
    static char   buf[FZ_READ];

    n = recv(c->fd, buf, room, MSG_DONTWAIT);

    if (n < 0 && errno == EAGAIN) {
        return;
    }

    c->moved = fz_now();

    if (c->script.loose) {
        if (n <= 0) {
            fz_end(f, c, 1, 0);
        }

        return;
    }

    if (n < 0) {
        fz_closed(f, c, "a reset");
        return;
    }

    c->got += (size_t) n;

    if (c->script.leave_got && c->got >= c->script.leave_got) {
        fz_end(f, c, 1, c->script.reset);
        return;
    }

    if (fz_take(f, c, buf, (size_t) n, n == 0)) {
        return;
    }

    if (n == 0) {
        fz_closed(f, c, "closed before the last answer");
        return;
    }

    if (c->script.stall_ms && c->got >= c->script.stall_at && !c->read_at) {
        c->read_at = fz_now() + c->script.stall_ms;
    }
}


static void
fz_send(fz_t *f, fz_conn_t *c)
{
    size_t    size, most;
    ssize_t   n;

    most = c->script.out.len;

    if (c->script.leave_sent) {
        most = c->script.leave_sent;
    }

    size = most - c->sent;

    if (c->script.piece && size > c->script.piece) {
        size = c->script.piece;
    }

    if (size) {
        n = send(c->fd, c->script.out.data + c->sent, size,
                 MSG_DONTWAIT | MSG_NOSIGNAL);

        if (n < 0 && errno == EAGAIN) {
            return;
        }

        if (n < 0) {
            /* what was answered before is read still */
            c->script.out.len = c->sent;
            return;
        }

        c->sent += (size_t) n;
        c->moved = fz_now();

        if (c->script.piece) {
            c->send_at = c->moved + c->script.pause;
        }
    }

    if (c->script.leave_sent && c->sent == most) {
        if (!c->script.half) {
            fz_end(f, c, 1, c->script.reset);
            return;
        }

        (void) shutdown(c->fd, SHUT_WR);
        c->shut = 1;
        c->script.loose = 1;
        c->script.out.len = c->sent;
    }
}


/* what a connection waits for, and what time brings */

static void
fz_tend(fz_t *f, fz_conn_t *c, uint64_t now)
{
    unsigned  events;

    if (!c->busy) {
        return;
    }

    if (c->script.loose && c->sent >= c->script.out.len
        && now > c->moved + FZ_LOOSE_MS)
    {
        fz_end(f, c, 1, 0);
        return;
    }

    if (now > c->moved + f->patience) {
        fz_fail(f, c, "no byte for a long time");
        fz_end(f, c, 1, 1);
        return;
    }

    events = 0;

    if (c->read_at <= now) {
        events |= EPOLLIN;
    }

    if (c->sent < c->script.out.len && c->send_at <= now) {
        events |= EPOLLOUT;
    }

    fz_watch(f, c, events);
}


static int
fz_more(fz_t *f, uint64_t now)
{
    return (f->end == 0 || now < f->end) && f->answers < f->most
           && f->errors < f->most_errors;
}


static void
fz_events(fz_t *f)
{
    int                 i, n;
    fz_conn_t          *c;
    struct epoll_event  ev[FZ_EVENTS];

    n = epoll_wait(f->ep, ev, FZ_EVENTS, 2);

    for (i = 0; i < n && f->errors < f->most_errors; i++) {
        c = ev[i].data.ptr;

        if (c->busy && (ev[i].events & EPOLLOUT)) {
            fz_send(f, c);
        }

        if (c->busy && (c->events & EPOLLIN)
            && (ev[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
        {
            fz_read(f, c);
        }

        if (!c->busy && c->fd >= 0 && ev[i].events & (EPOLLHUP | EPOLLERR)) {
            fz_close(c, 0);
        }
    }
}


static void
fz_run(fz_t *f, uint64_t only)
{
    int        busy;
    unsigned   i;
    uint64_t   now;
    fz_conn_t *c;

    do {
        now = fz_now();
        busy = 0;

        for (i = 0; i < f->n_conns; i++) {
            c = &f->conns[i];

            if (!c->busy && f->next < only && fz_more(f, now)) {
                fz_begin(f, c);
            }

            fz_tend(f, c, now);
            busy |= c->busy;
        }

        fz_events(f);

    } while (f->errors < f->most_errors && busy);
}


/* ---- the whole ---- */

static void
fz_report(fz_t *f, double seconds)
{
    unsigned     i;
    const char  *comma;

    printf("{\"seed\":%llu,\"seconds\":%.1f,\"scripts\":%llu,"
           "\"requests\":%llu,\"streams\":%llu,\"left\":%llu,"
           "\"not_http\":%llu,\"errors\":%u,\"status\":{",
           (unsigned long long) f->seed, seconds,
           (unsigned long long) f->scripts, (unsigned long long) f->answers,
           (unsigned long long) f->streams, (unsigned long long) f->left,
           (unsigned long long) f->loose, f->errors);

    for (i = 0, comma = ""; i < fz_nelems(f->statuses); i++) {
        if (f->statuses[i]) {
            printf("%s\"%u\":%llu", comma, i,
                   (unsigned long long) f->statuses[i]);
            comma = ",";
        }
    }

    printf("},");
    fz_health_stop();
    printf("}\n");
}


static void
fz_server(fz_t *f, const char *text)
{
    char  host[64];
    int   port;

    if (sscanf(text, "%63[0-9.]:%d", host, &port) != 2) {
        fz_die("-u wants ADDRESS:PORT");
    }

    f->addr.sin_family = AF_INET;
    f->addr.sin_port = htons((uint16_t) port);

    if (inet_pton(AF_INET, host, &f->addr.sin_addr) != 1) {
        fz_die("-u wants a numeric address");
    }
}


int
main(int argc, char **argv)
{
    int          opt, print;
    unsigned     i;
    uint64_t     start, only;
    const char  *table;
    static fz_t  f;

    f.seed = 1;
    f.n_conns = 32;
    f.patience = 60000;
    f.most = UINT64_MAX;
    f.most_errors = 1;
    f.table.vocab = 2048;
    table = "engine/api";
    only = UINT64_MAX;
    print = 0;
    start = fz_now();

    fz_server(&f, "127.0.0.1:8080");

    while ((opt = getopt(argc, argv, "T:u:s:t:n:c:i:w:e:v:1:p:m:")) != -1) {
        switch (opt) {
        case 'T': table = optarg; break;
        case 'u': fz_server(&f, optarg); break;
        case 's': f.seed = strtoull(optarg, NULL, 10); break;
        case 't': f.end = start + (uint64_t) (atof(optarg) * 1000); break;
        case 'n': f.most = strtoull(optarg, NULL, 10); break;
        case 'c': f.n_conns = (unsigned) atoi(optarg); break;
        case 'i': f.next = strtoull(optarg, NULL, 10); break;
        case 'w': f.patience = (unsigned) atoi(optarg) * 1000; break;
        case 'e': f.most_errors = (unsigned) atoi(optarg); break;
        case 'v': f.table.vocab = (unsigned) atoi(optarg); break;
        case 'm': f.mask = strtoull(optarg, NULL, 0); break;
        case 'p':
            print = 1;
            /* fall through */
        case '1':
            f.next = strtoull(optarg, NULL, 10);
            only = f.next + 1;
            f.n_conns = 1;
            break;
        default:
            fz_die("see the head of t/fuzz/http/main.c");
        }
    }

    fz_table_read(&f.table, table);

    f.conns = calloc(f.n_conns, sizeof(fz_conn_t));
    f.ep = epoll_create1(0);

    if (f.conns == NULL || f.ep < 0) {
        fz_die("set-up: %s", strerror(errno));
    }

    for (i = 0; i < f.n_conns; i++) {
        f.conns[i].fd = -1;
    }

    if (print) {
        fz_script(&f.conns[0].script, &f.table, f.seed, f.next, f.mask);
        fwrite(f.conns[0].script.out.data, 1, f.conns[0].script.out.len,
               stdout);
        return 0;
    }

    fz_health_start(&f.addr);
    fz_run(&f, only);
    fz_report(&f, (double) (fz_now() - start) / 1000);

    return f.errors ? 1 : 0;
}
