#!/usr/bin/perl

# An engine whose threads cannot be started is tried again until they can: a
# library that nginx is started with refuses them as long as a file is there.
# nginx's own pool gets its threads: without those no worker starts.

use strict;
use warnings;

use LLM::Test;
use Test::More;

plan skip_all => 'the sanitizer is preloaded already' if $ENV{LLM_SAN};

my $t = LLM::Test->new(workers => 2);

$t->write_file('refuse.c', <<'END');
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *file;

static void __attribute__((constructor))
init(void)
{
    file = getenv("REFUSE_THREADS");

    if (file) {
        file = strdup(file);        /* nginx writes its title there */
    }
}

int
pthread_create(pthread_t *t, const pthread_attr_t *attr,
    void *(*start)(void *), void *arg)
{
    Dl_info   who;
    int     (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
                    void *);

    if (file && access(file, F_OK) == 0 && dladdr((void *) start, &who)
        && strstr(who.dli_fname, "ngx_http_llm_module"))
    {
        return EAGAIN;
    }

    real = (int (*)(pthread_t *, const pthread_attr_t *,
                    void *(*)(void *), void *))
           dlsym(RTLD_NEXT, "pthread_create");

    return real(t, attr, start, arg);
}
END

my $dir = $t->dir;

system('cc', '-shared', '-fPIC', '-o', "$dir/refuse.so", "$dir/refuse.c",
       '-ldl') == 0 or plan skip_all => 'no C compiler';

$t->write_file('none', '');

{
    local $ENV{LD_PRELOAD} = "$dir/refuse.so";
    local $ENV{REFUSE_THREADS} = "$dir/none";

    $t->start(cold => 1);
}

ok($t->wait_log(qr/the engine does not start: .*threads .* trying again/),
   'there are no threads for the engine');
is($t->get('/health')->{status}, 503, 'health: 503');
is($t->chat('hello')->{status}, 503, 'a request: 503');

unlink "$dir/none" or die "none: $!";

ok($t->wait_ready, 'the engine starts as soon as it can');
is($t->chat('hello')->{status}, 200, 'and serves');
ok($t->workers == 2 && $t->log !~ /exited/, 'no worker has ended');

$t->stop;

done_testing();
