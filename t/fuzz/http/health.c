/*
 * /health beside everything else: a thread that asks again and again, each
 * time over a new connection, and how long that took.
 */

#include "t/fuzz/http/http.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define FZ_PROBES  1000000

/* the thread's until it is joined, but for stop */
static struct {
    const struct sockaddr_in  *addr;
    pthread_t                  thread;
    int                        stop;        /* atomic; main writes */
    unsigned                   n;
    unsigned                   bad;         /* neither 200 nor 503 */
    unsigned                   not_ready;   /* 503 */
    float                     *ms;
} fz_health;


/* its status, 0 when there is none */

static int
fz_health_once(void)
{
    int      fd, status;
    char     buf[4096];
    ssize_t  n;

    static const char     ask[] = "GET /health HTTP/1.0\r\n\r\n";
    const struct timeval  tv = { 60, 0 };

    fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd < 0) {
        return 0;
    }

    (void) setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));

    status = 0;

    if (connect(fd, (const struct sockaddr *) fz_health.addr,
                sizeof(struct sockaddr_in)) == 0
        && write(fd, ask, sizeof(ask) - 1) > 0)
    {
        n = read(fd, buf, sizeof(buf) - 1);
        buf[n < 0 ? 0 : n] = '\0';
        status = n > 12 ? atoi(buf + 9) : 0;
    }

    close(fd);

    return status;
}


static void *
fz_health_thread(void *data)
{
    int              status;
    struct timespec  a, b;

    while (!__atomic_load_n(&fz_health.stop, __ATOMIC_ACQUIRE)
           && fz_health.n < FZ_PROBES)
    {
        clock_gettime(CLOCK_MONOTONIC, &a);
        status = fz_health_once();
        clock_gettime(CLOCK_MONOTONIC, &b);

        fz_health.bad += status != 200 && status != 503;
        fz_health.not_ready += status == 503;
        fz_health.ms[fz_health.n++] = (float) (b.tv_sec - a.tv_sec) * 1e3f
                                      + (float) (b.tv_nsec - a.tv_nsec) / 1e6f;
        usleep(20000);
    }

    return data;
}


void
fz_health_start(const struct sockaddr_in *addr)
{
    fz_health.addr = addr;
    fz_health.ms = calloc(FZ_PROBES, sizeof(float));

    if (fz_health.ms == NULL
        || pthread_create(&fz_health.thread, NULL, fz_health_thread, NULL)
           != 0)
    {
        fz_die("no thread");
    }
}


static int
fz_health_cmp(const void *a, const void *b)
{
    float  x = *(const float *) a, y = *(const float *) b;

    return (x > y) - (x < y);
}


/* stops it and prints what there was, as a member of a JSON object */

void
fz_health_stop(void)
{
    float     *ms;
    unsigned   n;

    __atomic_store_n(&fz_health.stop, 1, __ATOMIC_RELEASE);
    pthread_join(fz_health.thread, NULL);

    n = fz_health.n;
    ms = fz_health.ms;
    qsort(ms, n, sizeof(float), fz_health_cmp);

    printf("\"health\":{\"n\":%u,\"bad\":%u,\"not_ready\":%u,"
           "\"p50\":%.2f,\"p99\":%.2f,\"max\":%.2f}",
           n, fz_health.bad, fz_health.not_ready,
           n ? (double) ms[n / 2] : 0.0,
           n ? (double) ms[(unsigned) ((n - 1) * 0.99)] : 0.0,
           n ? (double) ms[n - 1] : 0.0);
}
