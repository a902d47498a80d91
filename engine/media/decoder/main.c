/*
 * The programs llm-media and llm-media-ffmpeg, which differ in their decoders
 * (kinds.c): each starts a process for each job that the engine asks for on
 * standard input (wire.h), and says how it ended.  It never reads a byte of
 * media itself, so what is in a file can harm its job's process alone.
 *
 * It ends when the engine does: its standard input is then at its end, and the
 * processes of jobs are killed with it.
 */

#include "engine/media/decoder/decode.h"
#include "engine/media/decoder/job.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LLM_MEDIA_JOBS  64
#define LLM_MEDIA_FDS   1024            /* more than are ever open here */
#define LLM_NOBODY      65534

typedef struct {
    pid_t      pid;                     /* 0: free */
    int        life;                    /* a pipe whose only reader is the
                                           process, so it breaks when that
                                           ends; a writing end would let the
                                           process claim that it has */
    int        socket;                  /* the job's: the engine may close its
                                           end */
    int        status;                  /* for the llm_media_end_t */
    uint64_t   deadline;                /* microseconds */
    int        late;                    /* killed for the time that it took */
} llm_child_t;

static llm_child_t  llm_children[LLM_MEDIA_JOBS];


/* closes everything from `first` on */

static void
llm_close_from(int first)
{
    int  fd;

#ifdef SYS_close_range
    if (syscall(SYS_close_range, (unsigned) first, ~0u, 0u) == 0) {
        return;
    }
#endif

    for (fd = first; fd < LLM_MEDIA_FDS; fd++) {
        close(fd);
    }
}


/* Opens something harmless as 1 and 2, so that no library's message goes into a
   job's socket. */

static int
llm_silence(void)
{
    int  fd, p[2];

    fd = open("/dev/null", O_WRONLY);

    if (fd < 0) {
        if (pipe(p) != 0) {
            return LLM_ERROR;
        }

        close(p[0]);
        fd = p[1];
    }

    if (dup2(fd, 1) < 0 || dup2(fd, 2) < 0) {
        return LLM_ERROR;
    }

    if (fd > 2) {
        close(fd);
    }

    return LLM_OK;
}


/* A program that root has started becomes another user.  Where that is not
   possible it stays what it is: a job gives up more than a user can. */

static void
llm_become_nobody(void)
{
    if (geteuid() != 0 || setgroups(0, NULL) != 0
        || setgid(LLM_NOBODY) != 0 || setuid(LLM_NOBODY) != 0)
    {
        return;
    }
}


static void
llm_report(int status, llm_media_how_t how, uint32_t value)
{
    ssize_t          n;
    llm_media_end_t  end = { how, value };

    /* less than PIPE_BUF, into an empty pipe: all or nothing */

    do {
        n = write(status, &end, sizeof(end));
    } while (n < 0 && errno == EINTR);

    close(status);
}


static void
llm_child(int socket, int life, pid_t parent, const llm_media_start_t *start)
{
    uint32_t  seconds;

    if (dup2(socket, 0) < 0 || dup2(life, 3) < 0) {
        _exit(2);
    }

    llm_close_from(4);

    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent) {
        _exit(2);
    }

    /* a time of the CPU is no longer than a time of the clock, unless it is
       rounded up */
    seconds = start->timeout / 1000 + 2;

    _exit(llm_job_run(0, start->memory, seconds) == LLM_OK ? 0 : 1);
}


static void
llm_start(const llm_media_start_t *start, int socket, int status)
{
    int           life[2];
    pid_t         pid, self;
    size_t        i;
    llm_child_t  *c;

    for (i = 0; i < LLM_MEDIA_JOBS && llm_children[i].pid; i++) {
        /* void */
    }

    if (start->magic != LLM_MEDIA_MAGIC) {
        llm_report(status, LLM_MEDIA_OTHER, LLM_MEDIA_MAGIC);
        close(socket);
        return;
    }

    if (i == LLM_MEDIA_JOBS || pipe2(life, O_CLOEXEC) != 0) {
        llm_report(status, LLM_MEDIA_NO_FORK, EAGAIN);
        close(socket);
        return;
    }

    self = getpid();
    pid = fork();

    if (pid == 0) {
        llm_child(socket, life[0], self, start);
    }

    close(life[0]);

    if (pid < 0) {
        llm_report(status, LLM_MEDIA_NO_FORK, (uint32_t) errno);
        close(life[1]);
        close(socket);
        return;
    }

    c = &llm_children[i];
    c->pid = pid;
    c->life = life[1];
    c->socket = socket;
    c->status = status;
    c->late = 0;
    c->deadline = llm_decode_now() + (uint64_t) start->timeout * 1000;
}


static void
llm_ended(llm_child_t *c)
{
    int  rc, status;

    do {
        rc = waitpid(c->pid, &status, 0);
    } while (rc < 0 && errno == EINTR);

    if (c->late) {
        llm_report(c->status, LLM_MEDIA_TIMEOUT, 0);

    } else if (rc == c->pid && WIFSIGNALED(status)) {
        llm_report(c->status, LLM_MEDIA_SIGNAL, (uint32_t) WTERMSIG(status));

    } else {
        llm_report(c->status, LLM_MEDIA_EXITED,
                   rc == c->pid ? (uint32_t) WEXITSTATUS(status) : 0);
    }

    close(c->life);
    close(c->socket);
    c->pid = 0;
}


/* Reads one message with its two descriptors; LLM_END: the engine has gone. */

static int
llm_receive(void)
{
    int                 fd[2];
    ssize_t             n;
    struct iovec        iov;
    struct msghdr       msg;
    struct cmsghdr     *c;
    llm_media_start_t   start;

    union {
        struct cmsghdr  align;
        char            buf[CMSG_SPACE(sizeof(fd))];
    } control;

    memset(&msg, 0, sizeof(msg));
    iov.iov_base = &start;
    iov.iov_len = sizeof(start);
    msg.msg_iov = &iov;
    msg.msg_iovlen = 1;
    msg.msg_control = control.buf;
    msg.msg_controllen = sizeof(control.buf);

    n = recvmsg(0, &msg, MSG_CMSG_CLOEXEC);

    if (n < 0 && (errno == EINTR || errno == EAGAIN)) {
        return LLM_OK;
    }

    if (n <= 0) {
        return LLM_END;
    }

    c = CMSG_FIRSTHDR(&msg);

    if (c == NULL || c->cmsg_type != SCM_RIGHTS
        || c->cmsg_len != CMSG_LEN(sizeof(fd)))
    {
        return LLM_END;
    }

    memcpy(fd, CMSG_DATA(c), sizeof(fd));

    if (n != sizeof(start)) {
        start.magic = 0;
    }

    llm_start(&start, fd[0], fd[1]);

    return LLM_OK;
}


/* milliseconds until the first deadline; -1: there is none */

static int
llm_kill_late(void)
{
    int           wait, ms;
    size_t        i;
    uint64_t      now;
    llm_child_t  *c;

    wait = -1;
    now = llm_decode_now();

    for (i = 0; i < LLM_MEDIA_JOBS; i++) {
        c = &llm_children[i];

        if (c->pid == 0 || c->late) {
            continue;
        }

        if (now >= c->deadline) {
            c->late = 1;
            kill(c->pid, SIGKILL);
            continue;
        }

        ms = (int) llm_min((c->deadline - now) / 1000 + 1, 1u << 30);
        wait = wait < 0 ? ms : llm_min(wait, ms);
    }

    return wait;
}


static int
llm_turn(void)
{
    int            n, wait;
    size_t         i;
    llm_child_t   *of[LLM_MEDIA_JOBS];
    struct pollfd  p[1 + 2 * LLM_MEDIA_JOBS];

    wait = llm_kill_late();
    p[0] = (struct pollfd) { 0, POLLIN, 0 };
    n = 0;

    for (i = 0; i < LLM_MEDIA_JOBS; i++) {
        if (llm_children[i].pid) {
            of[n] = &llm_children[i];
            /* POLLERR: it has ended */
            p[1 + 2 * n] = (struct pollfd) { of[n]->life, 0, 0 };
            /* POLLHUP: the engine has closed its end and wants no result */
            p[2 + 2 * n] = (struct pollfd) { of[n]->socket, 0, 0 };
            n++;
        }
    }

    if (poll(p, (nfds_t) (1 + 2 * n), wait) < 0) {
        return errno == EINTR ? LLM_OK : LLM_ERROR;
    }

    while (n-- > 0) {
        if (p[1 + 2 * n].revents) {
            llm_ended(of[n]);

        } else if (p[2 + 2 * n].revents & (POLLHUP | POLLERR)) {
            kill(of[n]->pid, SIGKILL);
            llm_ended(of[n]);
        }
    }

    return p[0].revents ? llm_receive() : LLM_OK;
}


/* says that all libraries were found */

static int
llm_hello(void)
{
    ssize_t   n;
    uint32_t  magic;

    magic = LLM_MEDIA_MAGIC;

    do {
        n = write(0, &magic, sizeof(magic));
    } while (n < 0 && errno == EINTR);

    return n == (ssize_t) sizeof(magic) ? LLM_OK : LLM_ERROR;
}


int
main(int argc, char **argv)
{
    int        rc;
    socklen_t  len;

    if (argc == 2 && strcmp(argv[1], "--formats") == 0) {
        llm_decode_formats();
        return 0;
    }

    len = sizeof(rc);

    if (argc != 1 || getsockopt(0, SOL_SOCKET, SO_TYPE, &rc, &len) != 0) {
        fprintf(stderr, "%s: nginx-llm starts this program to decode images "
                "and sound; \"%s --formats\" prints what it reads\n",
                argv[0], argv[0]);
        return 1;
    }

    /* the engine decides how long this lives, not a terminal's Ctrl-C */
    signal(SIGINT, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);

    if (llm_silence() != LLM_OK) {
        return 1;
    }

    llm_close_from(3);
    llm_become_nobody();
    (void) prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);

    if (llm_hello() != LLM_OK) {
        return 1;
    }

    do {
        rc = llm_turn();
    } while (rc == LLM_OK);

    return 0;
}
