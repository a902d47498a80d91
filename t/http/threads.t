#!/usr/bin/perl

# Threads that cannot be started: the engine is tried again until it can, a
# large body is refused and the next one is not.  A library that nginx is
# started with refuses threads as long as a file is there.

use strict;
use warnings;

use LLM::Test;
use Test::More;

plan skip_all => 'the sanitizer is preloaded already' if $ENV{LLM_SAN};

my $t = LLM::Test->new(workers => 2);

my $lib = $t->preload('refuse', <<'END');
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
    int     (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *),
                    void *);

    if (file && access(file, F_OK) == 0) {
        return EAGAIN;
    }

    real = (int (*)(pthread_t *, const pthread_attr_t *,
                    void *(*)(void *), void *))
           dlsym(RTLD_NEXT, "pthread_create");

    return real(t, attr, start, arg);
}
END

my $dir = $t->dir;

$t->write_file('none', '');

{
    local $ENV{LD_PRELOAD} = $lib;
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

# each has a name, but for the workers' own; the one that loaded ends

my $names;

LLM::Test::wait_for(20, sub {
    my %names = map { $_ => 1 } thread_names();
    $names = join ' ', sort keys %names;
    $names !~ /llm-load/;
});

is($names, 'llm-compute llm-prepare llm-schedule nginx', 'names of threads');

is($t->chat('hello', guided_choice => [ 'yes' ])->{json}{choices}[0]{message}
     {content}, 'yes', 'an answer that must look like something');
is(scalar(grep { $_ eq 'llm-mask' } thread_names()), 2,
   'its masks have threads, which have names');

my $large = 'is this long? ' x 3000;

$t->write_file('none', '');

my $r = $t->chat($large);

is($r->{status}, 503, 'a large body, and no thread: 503');
like($r->{body}, qr/too busy to read/, 'and it says why');
like($t->log, qr/\[error\] .*cannot start a thread to parse large requests \(11: /,
     'the log says it, too');
is($t->chat('hello')->{status}, 200, 'a small one needs none');
ok(!(grep { $_ eq 'llm-parse' } thread_names()),
   'no thread of the parser is there');

unlink "$dir/none" or die "none: $!";

$r = $t->chat($large);

is($r->{status}, 400, 'a large body is read now');
like($r->{body}, qr/context/, 'and found too long for the model');
is(scalar(grep { $_ eq 'llm-parse' } thread_names()), 1,
   'by a thread that was started for it');
ok($t->workers == 2 && $t->log !~ /exited/, 'no worker has ended');

$t->stop;


# of all workers

sub thread_names {
    my @names;

    for my $file (map { glob "/proc/$_/task/*/comm" } $t->workers) {
        open my $f, '<', $file or next;
        chomp(my $name = <$f>);
        push @names, $name;
    }

    return @names;
}


done_testing();
