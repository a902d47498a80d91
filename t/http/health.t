#!/usr/bin/perl

# llm_health: 200 when the models serve, 503 with the reason when not; other
# requests of a broken model get the same reason.

use strict;
use warnings;

use LLM::Test;
use Test::More;

my $t = LLM::Test->new->start;

my $res = $t->get('/health');

is($res->{status}, 200, 'ready');
is($res->{headers}{'content-type'}, 'application/json', 'JSON');
is($res->{json}{status}, 'ok', 'status ok') or diag($res->{body});
is($res->{headers}{'content-length'}, length $res->{body}, 'its length');

$res = $t->request(method => 'HEAD', path => '/health');

is($res->{status}, 200, 'HEAD');
is($res->{body}, '', 'HEAD has no body');

$res = $t->post('/health', {});

is($res->{status}, 405, 'POST is not allowed');
is($res->{headers}{allow}, 'GET, HEAD', 'Allow');
ok($res->{json}{error}{message}, 'an error in JSON');

$t->stop;


# one good model, one broken: nginx serves on

$t = LLM::Test->new(model => 'llm_model bad %%DIR%%/bad.gguf; '
                    . 'llm_model demo %%ROOT%%/models/demo.gguf threads=2;');
$t->write_file('bad.gguf', "GGUF\3\0\0\0" . "\xff" x 64);
$t->start(cold => 1);

ok(LLM::Test::wait_for(30, sub {
    $t->post('/v1/completions', { model => 'demo', prompt => 'a',
                                  max_tokens => 1 })->{status} == 200
}), 'the good model answers beside a broken one');

$res = $t->get('/health');

is($res->{status}, 200, 'a broken model beside it: healthy');
is($res->{json}{status}, 'degraded', 'but degraded');
is($res->{json}{models}[0]{status}, 'error', 'by the broken one');
like($res->{json}{models}[0]{reason}, qr/bad\.gguf/, 'health says why');
is($res->{json}{models}[1]{status}, 'ok', 'and names the good one');

$res = $t->post('/v1/completions', { model => 'bad', prompt => 'a' });

is($res->{status}, 503, 'the broken model answers 503');
like($res->{json}{error}{message}, qr/bad\.gguf/, 'with the reason');
like($t->log('error.log'), qr{\Q@{[$t->dir]}\E/bad\.gguf},
     'the log names the file');
unlike($t->get('/health')->{body} . $res->{body}, qr{/},
       'clients are not told where it lies');

$t->stop;


# Worker 0 is stopped: what another worker sends it waits.

my ($engine, $here, $there);

sub two_workers {
    my ($model, $code) = @_;

    $t = LLM::Test->new(workers => 2, listen => 'reuseport', model => $model,
                        http => 'keepalive_requests 1000000;',
                        server => 'add_header X-Worker $pid always;');

    local $ENV{LD_PRELOAD} = $t->preload('code', $code) if $code;

    $t->start;
    $engine = $t->engine_worker;
    ($here, $there) = map { socket_elsewhere($engine) } 1 .. 2;
}


sub socket_elsewhere {
    for (1 .. 300) {
        $res = $t->get('/v1/models', keepalive => 1);
        return $res->{socket} if $res->{headers}{'x-worker'} != $_[0];
        close $res->{socket};
    }

    die 'no connection gets elsewhere';
}


sub health {
    $res = $t->get('/health', socket => $here, keepalive => 1);
    return $res->{status};
}

# state of the engine's thread: R, S ...

sub engine_state {
    for my $dir (glob "/proc/$engine/task/*") {
        next if slurp("$dir/comm") !~ /^llm-schedule/;
        return LLM::Test::thread_state($dir);
    }
}


sub slurp {
    open my $f, '<', $_[0] or return '';
    return join '', <$f>;
}


sub stopped {
    my ($what) = @_;

    my $ask = LLM::Client->open(socket => $there, method => 'POST',
        path => '/v1/completions', body => { prompt => 'a',
                                             max_tokens => 1 });

    ok(LLM::Test::wait_for(30, sub { health() == 503 }), "$what: unhealthy");
    is($res->{json}{models}[0]{reason}, 'the engine does not answer',
       'says it');

    $t->kill('CONT', $engine);
    is($ask->response->{status}, 200, 'it goes on: the request is served');
    ok(LLM::Test::wait_for(30, sub { health() == 200 }), 'and it is healthy');
    $t->stop;
}


two_workers(LLM::Test::default_model());
is(health(), 200, 'a sleeping engine is healthy');
ok(LLM::Test::wait_for(30, sub { engine_state() eq 'S' }), 'it sleeps');
$t->pause($engine);
stopped('one that does not come awake');


# nobody asks for anything but its health

two_workers(LLM::Test::default_model());
is(health(), 200, 'an idle engine is healthy');
$t->pause($engine);
ok(LLM::Test::wait_for(30, sub { health() == 503 }),
   'an idle one that stands still: unhealthy');
is($res->{json}{models}[0]{reason}, 'the engine does not answer', 'says it');
$t->kill('CONT', $engine);
ok(LLM::Test::wait_for(30, sub { health() == 200 }), 'it goes on: healthy');
$t->stop;


# while a request waits for its reader, and nobody sends the engine anything

two_workers('llm_model demo ' . LLM::Test::random_model(2, 40960)
            . ' threads=1 default; llm_stream_buffer 4k;');

my $slow = LLM::Client->open(socket => $there, method => 'POST', rcvbuf => 4096,
    path => '/v1/completions', body => { prompt => 'a', ignore_eos => \1,
        temperature => 0, logprobs => 5, stream => \1, max_tokens => 30000 });

ok(LLM::Test::wait_for(60, sub { $t->figures->{parked} == 1 }),
   'a request whose reader stands still');
$t->pause($engine);
ok(LLM::Test::wait_for(30, sub { health() == 503 }), 'stopped: unhealthy');
$t->kill('CONT', $engine);
ok(LLM::Test::wait_for(30, sub { health() == 200 }), 'it goes on: healthy');
close $slow->{socket};
$t->stop;


# in the instant in which it has come awake by itself (as it does each second
# with idle=), and nobody has woken it

SKIP: {
    skip 'the sanitizer is preloaded already', 6 if $ENV{LLM_SAN};

    two_workers('llm_model demo %%ROOT%%/models/demo.gguf threads=2 default'
                . ' idle=1h;', <<'END');
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static __thread int  awake;


int
poll(struct pollfd *fds, nfds_t n, int timeout)
{
    int         rc;
    char        name[16] = "";
    static int  (*real)(struct pollfd *, nfds_t, int);

    if (real == NULL) {
        real = dlsym(RTLD_NEXT, "poll");
    }

    rc = real(fds, n, timeout);

    (void) pthread_getname_np(pthread_self(), name, sizeof(name));
    awake = rc == 0 && strcmp(name, "llm-schedule") == 0;

    return rc;
}


/* what the engine calls next */

int
clock_gettime(clockid_t id, struct timespec *ts)
{
    static int  (*real)(clockid_t, struct timespec *);

    if (real == NULL) {
        real = dlsym(RTLD_NEXT, "clock_gettime");
    }

    if (awake && access("stop", F_OK) == 0) {
        awake = 0;
        (void) unlink("stop");
        (void) raise(SIGSTOP);
    }

    return real(id, ts);
}
END

    $t->write_file('stop', '');
    ok(LLM::Test::wait_for(30, sub { engine_state() eq 'T' }),
       'stopped when it comes awake') or $t->pause($engine);
    stopped('one that stopped when it came awake');
}


# a file that is not there at all

$t = LLM::Test->new(model => 'llm_model demo %%DIR%%/none.gguf;');
$t->start(cold => 1);

ok(LLM::Test::wait_for(10, sub {
    $t->get('/health')->{body} =~ /none\.gguf/
}), 'health says which file is missing');

$res = $t->chat('hello');

is($res->{status}, 503, 'requests answer 503');
like($res->{json}{error}{message}, qr/none\.gguf/, 'and say why');
unlike($t->get('/health')->{body} . $res->{body}, qr{/}, 'but not where');


# it is tried again: logged once, and served as soon as it is there

sleep 4;

my @lines = $t->log('error.log') =~ /llm: model "demo": .*none\.gguf/g;

is(scalar @lines, 1, 'one line in the log for one reason');

symlink "$LLM::Test::ROOT/models/demo.gguf", $t->dir . '/none.gguf'
    or die "none.gguf: $!";

ok($t->wait_ready, 'a file that comes later is served');
is($t->chat('hello')->{status}, 200, 'requests are answered');

$t->stop;

done_testing();
