/*
 * Measures what a bare write to a TCP socket costs, for t/bench/streams.pl:
 *
 *   write BYTES SOCKETS SECONDS
 *
 * Opens SOCKETS connections over the loopback interface, to a child process
 * that reads and drops what comes, and writes BYTES to one after the other, as
 * nginx writes a chunk: its size, its data and its end by one writev().  Prints
 * microseconds of user and of system time for each write.
 *
 * The child ends when the connections close.
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WRITE_EVENTS  512
#define WRITE_MAX     16384


static void
write_die(const char *what)
{
    fprintf(stderr, "write: %s: %s\n", what, strerror(errno));
    exit(1);
}


static double
write_seconds(struct timeval t)
{
    return (double) t.tv_sec + (double) t.tv_usec / 1e6;
}


static double
write_now(void)
{
    struct timespec  ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);

    return (double) ts.tv_sec + (double) ts.tv_nsec / 1e9;
}


/* a listening socket and its address */

static int
write_listen(struct sockaddr_in *addr)
{
    int        fd;
    socklen_t  len;

    memset(addr, 0, sizeof(*addr));
    addr->sin_family = AF_INET;
    addr->sin_addr.s_addr = htonl(INADDR_LOOPBACK);

    fd = socket(AF_INET, SOCK_STREAM, 0);
    len = sizeof(*addr);

    if (fd < 0 || bind(fd, (struct sockaddr *) addr, sizeof(*addr)) < 0
        || listen(fd, 128) < 0
        || getsockname(fd, (struct sockaddr *) addr, &len) < 0)
    {
        write_die("listen");
    }

    return fd;
}


/* the child: connects n times, reads until all connections are closed */

static void
write_read(const struct sockaddr_in *addr, uint32_t n)
{
    int                 ep, fd, i, got;
    char                buf[WRITE_MAX];
    uint32_t            open;
    struct epoll_event  ee, ev[WRITE_EVENTS];

    ep = epoll_create1(0);

    for (open = 0; open < n; open++) {
        fd = socket(AF_INET, SOCK_STREAM, 0);

        ee.events = EPOLLIN;
        ee.data.fd = fd;

        if (fd < 0
            || connect(fd, (const struct sockaddr *) addr, sizeof(*addr)) < 0
            || epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ee) < 0)
        {
            write_die("connect");
        }
    }

    while (open) {
        got = epoll_wait(ep, ev, WRITE_EVENTS, -1);

        for (i = 0; i < got; i++) {
            if (read(ev[i].data.fd, buf, sizeof(buf)) <= 0) {
                (void) close(ev[i].data.fd);
                open--;
            }
        }
    }

    exit(0);
}


static void
write_run(const int *fds, uint32_t n, size_t bytes, double seconds)
{
    char           data[WRITE_MAX];
    double         end, us;
    uint64_t       count;
    uint32_t       i;
    struct iovec   iov[3];
    struct rusage  from, to;

    memset(data, 'x', sizeof(data));

    iov[0].iov_base = data;
    iov[0].iov_len = 4;
    iov[1].iov_base = data;
    iov[1].iov_len = bytes - 6;
    iov[2].iov_base = data;
    iov[2].iov_len = 2;

    count = 0;
    end = write_now() + seconds;
    (void) getrusage(RUSAGE_SELF, &from);

    do {
        for (i = 0; i < n; i++) {
            if (writev(fds[i], iov, 3) != (ssize_t) bytes) {
                write_die("writev");
            }
        }

        count += n;
    } while (write_now() < end);

    (void) getrusage(RUSAGE_SELF, &to);

    us = 1e6 / (double) count;
    printf("%.2f %.2f\n",
           us * (write_seconds(to.ru_utime) - write_seconds(from.ru_utime)),
           us * (write_seconds(to.ru_stime) - write_seconds(from.ru_stime)));
}


int
main(int argc, char **argv)
{
    int                  one, *fds, listener;
    pid_t                pid;
    size_t               bytes;
    uint32_t             i, n;
    struct sockaddr_in   addr;

    bytes = argc == 4 ? strtoul(argv[1], NULL, 10) : 0;
    n = argc == 4 ? (uint32_t) strtoul(argv[2], NULL, 10) : 0;

    if (bytes < 7 || bytes > WRITE_MAX || n == 0) {
        fprintf(stderr, "usage: write BYTES SOCKETS SECONDS\n");
        return 1;
    }

    fds = malloc(n * sizeof(int));
    listener = write_listen(&addr);
    pid = fds ? fork() : -1;

    if (pid < 0) {
        write_die("fork");
    }

    if (pid == 0) {
        (void) close(listener);
        write_read(&addr, n);
    }

    one = 1;

    for (i = 0; i < n; i++) {
        fds[i] = accept(listener, NULL, NULL);

        if (fds[i] < 0
            || setsockopt(fds[i], IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one))
               < 0)
        {
            write_die("accept");
        }
    }

    write_run(fds, n, bytes, strtod(argv[3], NULL));

    for (i = 0; i < n; i++) {
        (void) close(fds[i]);
    }

    free(fds);
    (void) waitpid(pid, NULL, 0);

    return 0;
}
