package LLM::Decoder;

# A decoder of images and sound that waits until it is told to go on, in the
# place of llm-media, beside a link to the module:
#
#   my $d = LLM::Decoder->new($t);      # before $t->start
#   ... $d->waiting('large') ...
#   $d->go;
#
# An image has the size in the header of its PNG file, all pixels black; large
# ones wait.  A sound is said to have 20 million samples, waits, and has a
# second of silence.  Only what the engine wants to the end counts as waiting.
#
# For threads that wait for a decoder the time stands still, so that it is never
# over, however long a test takes on a busy machine.

use strict;
use warnings;

use LLM::Test;

my $CODE = <<'END';
#define _GNU_SOURCE
#include "engine/media/wire.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static llm_media_head_t  head;
static unsigned char     file[1 << 16];


static void
all(int fd, void *buf, size_t len, int writes)
{
    char     *p;
    ssize_t   n;

    for (p = buf; len; p += n, len -= (size_t) n) {
        n = writes ? write(fd, p, len) : read(fd, p, len);

        if (n <= 0) {
            _exit(0);
        }
    }
}


static void
frame(int fd, uint32_t type, void *data, size_t len)
{
    llm_media_frame_t  f = { type, (uint32_t) len };

    all(fd, &f, sizeof(f), 1);
    all(fd, data, len, 1);
}


static void
take(int fd)
{
    size_t             at;
    llm_media_frame_t  f;

    for (at = 0; ; at += f.type == LLM_MEDIA_DATA ? f.len : 0) {
        all(fd, &f, sizeof(f), 0);

        if (f.type == LLM_MEDIA_END) {
            return;
        }

        if (f.type == LLM_MEDIA_DATA && f.len > sizeof(file) - at) {
            _exit(1);
        }

        all(fd, f.type == LLM_MEDIA_HEAD ? (void *) &head : file + at, f.len,
            0);
    }
}


/* until there is the file GO, or the engine has gone */

static void
wait_for_go(int fd, const char *what)
{
    char           name[4096];
    struct stat    st;
    struct pollfd  p = { fd, POLLRDHUP, 0 };

    if (head.limits.light == 0) {
        snprintf(name, sizeof(name), "%s/%s.%d", DIR, what, (int) getpid());
        close(open(name, O_CREAT | O_WRONLY, 0600));
    }

    while (stat(DIR "/go", &st) != 0 && poll(&p, 1, 20) == 0) { }

    if (head.limits.light == 0) {
        unlink(name);
    }
}


static void
job(int fd)
{
    uint64_t          n, left;
    llm_media_info_t  info;

    static char  data[LLM_MEDIA_FRAME];

    take(fd);
    memset(&info, 0, sizeof(info));

    if (head.kind == LLM_MEDIA_IMAGE) {
        info.width = (uint32_t) file[18] << 8 | file[19];
        info.height = (uint32_t) file[22] << 8 | file[23];
        left = (uint64_t) info.width * info.height * 3;

    } else {
        info.rate = 16000;
        info.channels = 1;
        info.frames = 20000000;
        left = 16000 * sizeof(float);
    }

    frame(fd, LLM_MEDIA_INFO, &info, sizeof(info));

    if (left > 3 * 16777216 || info.rate) {
        wait_for_go(fd, info.rate ? "long" : "large");
    }

    for ( /* void */ ; left; left -= n) {
        n = llm_min(left, sizeof(data));
        frame(fd, LLM_MEDIA_DATA, data, n);
    }

    frame(fd, LLM_MEDIA_END, NULL, 0);
}


int
main(void)
{
    int                 fd[2];
    char                control[CMSG_SPACE(sizeof(fd))];
    uint32_t            magic = LLM_MEDIA_MAGIC;
    struct iovec        iov;
    struct msghdr       msg;
    llm_media_start_t   start;

    signal(SIGCHLD, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    all(0, &magic, sizeof(magic), 1);

    for ( ;; ) {
        memset(&msg, 0, sizeof(msg));
        iov = (struct iovec) { &start, sizeof(start) };
        msg.msg_iov = &iov;
        msg.msg_iovlen = 1;
        msg.msg_control = control;
        msg.msg_controllen = sizeof(control);

        if (recvmsg(0, &msg, 0) <= 0) {
            return 0;
        }

        memcpy(fd, CMSG_DATA(CMSG_FIRSTHDR(&msg)), sizeof(fd));

        if (fork() == 0) {
            job(fd[0]);
            _exit(0);
        }

        close(fd[0]);
        close(fd[1]);
    }
}
END

my $STILL = <<'END';
#define _GNU_SOURCE
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int
clock_gettime(clockid_t clock, struct timespec *t)
{
    char                             name[16];
    static __thread struct timespec  began;

    prctl(PR_GET_NAME, name);

    if (clock != CLOCK_MONOTONIC || strcmp(name, "llm-prepare") != 0) {
        return (int) syscall(SYS_clock_gettime, clock, t);
    }

    if (began.tv_sec == 0) {
        syscall(SYS_clock_gettime, clock, &began);
    }

    *t = began;

    return 0;
}
END


sub new {
    my ($class, $t) = @_;
    my $dir = $t->dir;
    my $conf = $t->conf;

    $t->write_file('decoder.c', $CODE);
    system('cc', '-O1', "-I$LLM::Test::ROOT", "-DDIR=\"$dir\"", '-o',
           "$dir/llm-media", "$dir/decoder.c") == 0 or die 'no decoder';
    symlink("$LLM::Test::OBJS/ngx_http_llm_module.so",
            "$dir/ngx_http_llm_module.so") or die $!;

    $conf =~ s{%%OBJS%%(/ngx_http_llm_module)}{%%DIR%%$1};
    $t->write_conf($conf);

    push @{ $t->{preloaded} }, $t->preload('still', $STILL);

    return bless { dir => $dir }, $class;
}


# how many wait, of "large" images or "long" sounds

sub waiting {
    my ($self, $what) = @_;

    return scalar(() = glob "$self->{dir}/$what.*");
}


sub go {
    my ($self) = @_;

    open my $f, '>', "$self->{dir}/go" or die $!;
}

1;
