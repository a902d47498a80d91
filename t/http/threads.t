#!/usr/bin/perl

# Threads that cannot be started: the engine is tried again until it can, a
# large body is refused and the next one is not.  A library that nginx is
# started with refuses threads as long as a file is there, and writes the names
# that threads give themselves into another.

use strict;
use warnings;

use LLM::Test;
use Test::More;

plan skip_all => 'the sanitizer is preloaded already' if $ENV{LLM_SAN};

my $t = LLM::Test->new(workers => 2, locations => <<'END');
        location /v1 { llm_api; }
        location /keyed { llm_api_keys keys; llm_api; }
        location = /health { llm_health; }
END

my $lib = $t->preload('refuse', <<'END');
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
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

int
pthread_setname_np(pthread_t t, const char *name)
{
    int       fd;
    char      path[4096], line[32];
    int     (*real)(pthread_t, const char *);

    if (file) {
        (void) snprintf(path, sizeof(path), "%s.names", file);
        (void) snprintf(line, sizeof(line), "%.16s\n", name);
        fd = open(path, O_WRONLY|O_APPEND);

        if (fd != -1) {
            (void) !write(fd, line, strlen(line));
            (void) close(fd);
        }
    }

    real = (int (*)(pthread_t, const char *))
           dlsym(RTLD_NEXT, "pthread_setname_np");

    return real(t, name);
}
END

my $dir = $t->dir;

$t->write_file('none', '');
$t->write_file('none.names', '');
$t->write_file('keys', "# none\n");
chmod 0666, "$dir/none.names" or die "none.names: $!";

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

# each has a name once it runs, but for the workers' own; the one that loaded
# ends

my $expected = 'llm-compute llm-prepare llm-schedule nginx';
my $names;

LLM::Test::wait_for(20, sub {
    my %names = map { $_ => 1 } thread_names();
    $names = join ' ', sort keys %names;
    $names eq $expected;
});

is($names, $expected, 'names of threads');

is($t->chat('hello', guided_choice => [ 'yes' ])->{json}{choices}[0]{message}
     {content}, 'yes', 'an answer that must look like something');

ok(LLM::Test::wait_for(20, sub {
    2 == grep { $_ eq 'llm-mask' } thread_names();
}), 'its masks have threads, which have names');

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


# all names that there ever were, also of those that end soon

$t->write_file('keys', "# none yet\n");

my $ever;

LLM::Test::wait_for(20, sub {
    $t->get('/keyed/models');
    $ever = join ' ', ever();
    $ever =~ /llm-keys/;
});

is($ever, 'llm-compute llm-keys llm-load llm-mask llm-parse llm-prepare'
          . ' llm-schedule', 'each has given itself a name');

$t->stop;


sub ever {
    open my $f, '<', "$dir/none.names" or die "none.names: $!";
    chomp(my @names = <$f>);

    return sort keys %{ { map { $_ => 1 } @names } };
}


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
