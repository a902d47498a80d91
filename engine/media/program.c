/*
 * Starts and ends llm-media and llm-media-ffmpeg; see program.h.
 */

#define _GNU_SOURCE                     /* dladdr() */

#include "engine/base/process.h"
#include "engine/media/program.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LLM_MEDIA_POLITE  100           /* times 10 ms, to end by itself */
#define LLM_MEDIA_HELLO   20000         /* milliseconds to load its libraries */


/* the folder of the program or module that this code is in */

static int
llm_media_own_dir(char *buf, size_t size)
{
    char        *p;
    ssize_t      n;
    Dl_info      info;

    if (dladdr((void *) (uintptr_t) &llm_media_program_start, &info) == 0
        || info.dli_fname == NULL || strchr(info.dli_fname, '/') == NULL)
    {
        /* a program that was found through PATH */
        n = readlink("/proc/self/exe", buf, size - 1);
        if (n <= 0) {
            return LLM_ERROR;
        }

        buf[n] = '\0';

    } else if (strlen(info.dli_fname) >= size) {
        return LLM_ERROR;

    } else {
        strcpy(buf, info.dli_fname);
    }

    p = strrchr(buf, '/');
    if (p == NULL) {
        return LLM_ERROR;
    }

    *p = '\0';

    return LLM_OK;
}


static int
llm_media_find(const char *name, const char *dir, char *path, size_t size,
    llm_err_t *err)
{
    char    own[PATH_MAX];
    size_t  i;

    /* in a build; of a program in PREFIX/bin; of a module in
       PREFIX/lib/nginx/modules */
    static const char *const  places[] = {
        "", "../libexec/nginx-llm/", "../../../libexec/nginx-llm/"
    };

    if (dir) {
        snprintf(path, size, "%s/%s", dir, name);

        if (access(path, X_OK) == 0) {
            return LLM_OK;
        }

    } else if (llm_media_own_dir(own, sizeof(own)) == LLM_OK) {
        dir = own;

        for (i = 0; i < llm_nelems(places); i++) {
            snprintf(path, size, "%s/%s%s", own, places[i], name);

            if (access(path, X_OK) == 0) {
                return LLM_OK;
            }
        }
    }

    (void) llm_fail(err, "the program %s, which decodes images and sound, is "
                    "not in %s: install it beside the module", name,
                    dir ? dir : "its folder");

    return LLM_ABSENT;
}


/* Decoders must not know what else stands in the environment, such as keys:
   the program gets only what it may need to run at all. */

static void
llm_media_environment(char *env[], size_t n)
{
    size_t  i, k, name;

    static const char *const  names[] = {
        "LD_LIBRARY_PATH=", "ASAN_OPTIONS=", "UBSAN_OPTIONS=", "TSAN_OPTIONS="
    };

    for (i = 0, k = 0; environ && environ[i]; i++) {
        for (name = 0; name < llm_nelems(names); name++) {
            if (k + 1 < n && strncmp(environ[i], names[name],
                                     strlen(names[name])) == 0)
            {
                env[k++] = environ[i];
            }
        }
    }

    env[k] = NULL;
}


static int
llm_media_spawn(llm_media_program_t *p, const char *path, int socket)
{
    int                          rc;
    char                        *argv[2], *env[8];
    sigset_t                     none, all;
    posix_spawnattr_t            attr;
    posix_spawn_file_actions_t   files;

    argv[0] = (char *) path;
    argv[1] = NULL;
    llm_media_environment(env, llm_nelems(env));

    if (posix_spawnattr_init(&attr) != 0) {
        return ENOMEM;
    }

    if (posix_spawn_file_actions_init(&files) != 0) {
        posix_spawnattr_destroy(&attr);
        return ENOMEM;
    }

    sigemptyset(&none);
    sigfillset(&all);

    rc = posix_spawn_file_actions_adddup2(&files, socket, 0);

    if (rc == 0) {
        (void) posix_spawnattr_setsigmask(&attr, &none);
        (void) posix_spawnattr_setsigdefault(&attr, &all);
        (void) posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK
                                               | POSIX_SPAWN_SETSIGDEF);
        rc = posix_spawn(&p->pid, path, &files, &attr, argv, env);
    }

    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attr);

    return rc;
}


/* has it ended?  nginx waits for any child when it gets SIGCHLD, and may have
   been first: then *status is -1 */

static int
llm_media_gone(const llm_media_program_t *p, int how, int *status)
{
    int  rc;

    do {
        rc = waitpid(p->pid, status, how);
    } while (rc < 0 && errno == EINTR);

    if (rc <= 0) {
        *status = -1;
    }

    return rc != 0;
}


/* its status, of waitpid(); -1: not known */

static int
llm_media_program_end(llm_media_program_t *p)
{
    int  i, status;

    static const struct timespec  pause = { 0, 10000000 };

    /* by this it ends */
    close(p->socket);

    for (i = 0;
         i < LLM_MEDIA_POLITE && !llm_media_gone(p, WNOHANG, &status);
         i++)
    {
        nanosleep(&pause, NULL);
    }

    if (i == LLM_MEDIA_POLITE && llm_process_lives(p->pid, p->born)) {
        (void) kill(p->pid, SIGKILL);
        (void) llm_media_gone(p, 0, &status);
        status = -1;
    }

    p->pid = 0;

    return status;
}


void
llm_media_program_stop(llm_media_program_t *p)
{
    if (p->pid) {
        (void) llm_media_program_end(p);
    }
}


/* Waits for its first word: it has none if the dynamic linker does not find a
   library, and then says which on standard error.  LLM_ABSENT: it has ended, or
   is another program; LLM_ERROR: it says nothing. */

static int
llm_media_hello(llm_media_program_t *p, const char *path, llm_err_t *err)
{
    int            n, status;
    uint32_t       magic;
    struct pollfd  poll_fd = { p->socket, POLLIN, 0 };

    do {
        n = poll(&poll_fd, 1, LLM_MEDIA_HELLO);
    } while (n < 0 && errno == EINTR);

    if (n == 1
        && recv(p->socket, &magic, sizeof(magic), MSG_DONTWAIT)
           == (ssize_t) sizeof(magic)
        && magic == LLM_MEDIA_MAGIC)
    {
        return LLM_OK;
    }

    status = llm_media_program_end(p);

    if (n == 0) {
        return llm_fail_with(err, 503, NULL, NULL, "%s, which decodes images "
                             "and sound, does not answer", path);
    }

    if (status >= 0 && WIFSIGNALED(status)) {
        p->killed = 1;
        (void) llm_fail_with(err, 503, NULL, NULL, "%s, which decodes images "
                             "and sound, was ended by signal %d as it started",
                             path, WTERMSIG(status));

        return LLM_ABSENT;
    }

    (void) llm_fail_with(err, 503, NULL, NULL, "%s, which decodes images and "
                         "sound, ends as soon as it is started", path);

    return LLM_ABSENT;
}


int
llm_media_program_start(llm_media_program_t *p, const char *name,
    const char *dir, llm_err_t *err)
{
    int   rc, pair[2];
    char  path[PATH_MAX + 64];

    if (llm_media_find(name, dir, path, sizeof(path), err) != LLM_OK) {
        return LLM_ABSENT;
    }

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
        return llm_fail_with(err, 503, NULL, NULL, "no socket for a decoder: "
                             "%s", strerror(errno));
    }

    rc = llm_media_spawn(p, path, pair[1]);
    close(pair[1]);

    if (rc != 0) {
        close(pair[0]);
        p->pid = 0;

        return llm_fail(err, "%s cannot be started: %s", path, strerror(rc));
    }

    p->socket = pair[0];
    p->born = llm_process_born(p->pid);
    p->killed = 0;

    return llm_media_hello(p, path, err);
}


int
llm_media_program_ask(llm_media_program_t *p, const llm_media_start_t *start,
    int socket, int status)
{
    int              fd[2] = { socket, status };
    ssize_t          n;
    struct iovec     iov;
    struct msghdr    msg;
    struct cmsghdr  *c;

    union {
        struct cmsghdr  align;
        char            buf[CMSG_SPACE(sizeof(fd))];
    } control;

    memset(&msg, 0, sizeof(msg));
    memset(&control, 0, sizeof(control));
    iov.iov_base = (void *) start;
    iov.iov_len = sizeof(*start);
    msg.msg_iov = &iov;
    msg.msg_iovlen = 1;
    msg.msg_control = control.buf;
    msg.msg_controllen = sizeof(control.buf);

    c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(fd));
    memcpy(CMSG_DATA(c), fd, sizeof(fd));

    /* blocks only while the program has not read many earlier ones */

    do {
        n = sendmsg(p->socket, &msg, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);

    return n == (ssize_t) sizeof(*start) ? LLM_OK : LLM_ERROR;
}
