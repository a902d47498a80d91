/*
 * What the process of a decoder cannot do once it is in its sandbox, and what
 * it still can: each in a process of its own, that says by its status how it
 * went.
 */

#include "engine/media/decoder/decode.h"
#include "t/unit/tap.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define MEMORY  ((uint64_t) 64 << 20)

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#define SAN  1
#else
#define SAN  0
#endif

typedef int (*deed_t)(void);            /* 0: it was refused */


static int
open_file(void)
{
    return open("/etc/passwd", O_RDONLY) >= 0 || errno != EPERM;
}


static int
make_socket(void)
{
    return socket(AF_INET, SOCK_STREAM, 0) >= 0 || errno != EPERM;
}


static int
make_process(void)
{
    pid_t  pid;

    pid = fork();

    if (pid == 0) {
        _exit(1);
    }

    return pid > 0 || errno != EPERM;
}


static int
run_program(void)
{
    char *const  argv[] = { (char *) "true", NULL };

    (void) execv("/bin/true", argv);

    return errno != EPERM;
}


static int
kill_parent(void)
{
    return kill(getppid(), 0) == 0 || errno != EPERM;
}


static int
make_code(void)
{
    void  *p;

    p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return p != MAP_FAILED || errno != EPERM;
}


static int
turn_into_code(void)
{
    void  *p;

    p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return p == MAP_FAILED || mprotect(p, 4096, PROT_READ | PROT_EXEC) == 0
           || errno != EPERM;
}


static int
trace(void)
{
    return syscall(SYS_ptrace, 0, 0, 0, 0) == 0 || errno != EPERM;
}


static int
much_memory(void)
{
    return malloc(MEMORY * 2) != NULL;
}


static int
raise_limit(void)
{
    return syscall(SYS_prlimit64, 0, 9, NULL, NULL) == 0 || errno != EPERM;
}


/* these say 0, too, but are allowed */

static int
some_memory(void)
{
    int      i, bad;
    char    *p[16], *q;
    size_t   n = 1 << 20;

    for (i = 0, bad = 0; i < 16; i++) {
        p[i] = malloc(n);
        bad |= p[i] == NULL;

        if (p[i]) {
            memset(p[i], 1, n);
        }
    }

    q = realloc(p[0], 8 * n);
    bad |= q == NULL;
    free(q);

    for (i = 1; i < 16; i++) {
        free(p[i]);
    }

    return bad;
}


static int
write_and_read(void)
{
    char  c = 'x';

    /* descriptor 0 is a socket that gives back what the parent writes */
    return write(0, &c, 1) != 1 || read(0, &c, 1) != 1 || c != 'y';
}


/* the wait status; -1: no sandbox */

static int
in_sandbox(deed_t deed)
{
    int          status, pair[2];
    char         c = 'y';
    pid_t        pid;
    const char  *why;

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) {
        return -1;
    }

    (void) !write(pair[1], &c, 1);
    pid = fork();

    if (pid == 0) {
        (void) dup2(pair[0], 0);
        _exit(llm_sandbox_enter(MEMORY, 1, &why) == LLM_OK ? deed() : 99);
    }

    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        status = -1;
    }

    close(pair[0]);
    close(pair[1]);

    return status;
}


/* a loop without an end is ended by the kernel */

static int
loop(void)
{
    volatile unsigned  n = 0;

    for ( ;; ) {
        n++;
    }

    return 0;
}


int
main(void)
{
    int     status;
    size_t  i;

    static const struct {
        const char  *what;
        deed_t       deed;
    } deeds[] = {
        { "opens no file", open_file },
        { "makes no socket", make_socket },
        { "makes no process", make_process },
        { "runs no program", run_program },
        { "sends no signal", kill_parent },
        { "makes no code", make_code },
        { "turns nothing into code", turn_into_code },
        { "traces nothing", trace },
        { "raises no limit", raise_limit },
        { "takes no more memory than it may", much_memory },
        { "takes memory, and gives it back", some_memory },
        { "reads and writes its socket", write_and_read }
    };

    if (SAN) {
        skip("sanitizers need what the sandbox takes away");
        return done_testing();
    }

    for (i = 0; i < llm_nelems(deeds); i++) {
        is_int(in_sandbox(deeds[i].deed), 0, "a decoder %s", deeds[i].what);
    }

    status = in_sandbox(loop);
    ok(WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU,
       "and ends when its time is over, not as if another had killed it");

    return done_testing();
}
