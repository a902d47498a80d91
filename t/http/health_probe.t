#!/usr/bin/perl

# llm_health's probe=: a request of one token is run through a model that
# nobody asks, and health says whether it was answered, in every worker; a
# busy model is not ill, and an idle one stays idle.

use strict;
use warnings;

use LLM::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my $locations = <<'END';
        location /v1 { llm_api; }
        location = /health { llm_health; }
        location = /figures { llm_metrics json; }
        location = /probed { llm_health ready probe=300ms; }
        location = /livehealth { llm_health live; }
END

my ($t, $res, $engine, $here);

sub server {
    my (%opt) = @_;

    $t = LLM::Test->new(workers => 2, listen => 'reuseport',
                        http => 'keepalive_requests 1000000;',
                        server => 'add_header X-Worker $pid always;',
                        locations => $locations, %opt);

    local $ENV{LD_PRELOAD} = $t->preload('code', $opt{code}) if $opt{code};

    $t->start;
    $engine = $t->engine_worker;

    for (1 .. 300) {
        $res = $t->get('/v1/models', keepalive => 1);
        $here = $res->{socket};
        last if $res->{headers}{'x-worker'} != $engine;
    }
}


# asked of the worker that has not the engine

sub health {
    $res = $t->get($_[0] // '/probed', socket => $here, keepalive => 1);
    return join ' ', map { $_ // 'none' } $res->{status}, $res->{json}{status};
}

sub reason { return $res->{json}{models}[0]{reason} // 'none' }
sub becomes {
    my ($want, $why) = @_;

    $why //= qr/^none$/;

    return LLM::Test::wait_for(30, sub {
        health() eq $want && reason() =~ $why;
    });
}


# ---- nobody asks ----

server();

ok(LLM::Test::wait_for(20, sub {
    $t->figures->{e2e_request_latency}{count} >= 4
}), 'requests are run');
is($t->figures->{errors}, 0, 'without errors');
cmp_ok($t->figures->{generation_tokens}, '<=',
       $t->figures->{e2e_request_latency}{count} + 1, 'of a token each');
is(health(), '200 ok', 'healthy');
unlike($t->log('access.log'), qr/completions/, 'and no log has them');
is(scalar(grep { $_->{endpoint} ne 'models' && $_->{endpoint} ne '' }
          @{ $t->get('/figures')->{json}{requests} }), 0,
   'nor any figure of requests');

my $ran = $t->figures->{e2e_request_latency}{count};
my $begin = time;
sleep 2;
$ran = $t->figures->{e2e_request_latency}{count} - $ran;
cmp_ok($ran, '>=', 1, 'one after another');
cmp_ok($ran, '<=', (time - $begin) / 0.3 + 1, 'as often as it says');

# worker 0 stands still, and nobody sends it anything

$t->pause($engine);
ok(becomes('503 error', qr/^(?:no probe is sent|the engine does not answer)$/),
   'a worker 0 that stands still')
    or diag($res->{body});
$t->kill('CONT', $engine);
ok(becomes('200 ok'), 'it goes on');

# a reload and an end do not wait for probes

$t->reload;

# a connection that an old worker has accepted is closed when that ends

ok(LLM::Test::wait_for(30, sub {
    $here = $t->get('/v1/models', keepalive => 1)->{socket};
    return $here && health() eq '200 ok' && reason() eq 'none';
}), 'after a reload');
is(scalar(() = $t->log =~ /\[error\].*a probe of/g), 0, 'no probe has failed');
$begin = time;
$t->stop(signal => 'QUIT', name => 'nobody asks');
cmp_ok(time - $begin, '<', 5 * $LLM::Test::SLOW, 'the end is quick');


# ---- a busy model ----

server(model => 'llm_model demo ' . LLM::Test::random_model(2, 40960)
              . ' threads=1 parallel=1 default; llm_stream_buffer 64m;');

my $stream = $t->open_long(max_tokens => 38_000);
$stream->event;

my %seen;
$begin = time;
$seen{health() . ' ' . reason()}++, sleep 0.02 while time < $begin + 2;
is($t->figures->{running}, 1, 'one runs, which leaves no room for a probe');
is(join(', ', keys %seen), '200 ok none', 'a busy model is not ill');
$stream->close;
$t->stop(name => 'busy');


# ---- an idle one ----

server(model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=1 idle=1s'
              . ' default; llm_model lazy %%ROOT%%/models/demo.gguf lazy;');

ok($t->wait_log(qr/model "demo" was idle for 1 s and is unloaded/),
   'a model becomes idle all the same');
sleep 1.5;
health('/probed');
is("$res->{status} $_->{id} " . ($_->{loaded} ? 'loaded' : 'not'),
   "200 $_->{id} not", "$_->{id} stays so, and is healthy")
    for @{ $res->{json}{models} };
is($t->post('/v1/completions', { prompt => 'a', max_tokens => 1 })->{status},
   200, 'a request loads it');
$t->stop(name => 'idle');


# ---- an engine whose event loop goes on, and whose scheduler does not ----

SKIP: {
    skip 'the sanitizer is preloaded already', 7 if $ENV{LLM_SAN};

    server(code => <<'END');
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int
clock_gettime(clockid_t id, struct timespec *ts)
{
    char        name[16] = "";
    static int  (*real)(clockid_t, struct timespec *);

    if (real == NULL) {
        real = dlsym(RTLD_NEXT, "clock_gettime");
    }

    (void) pthread_getname_np(pthread_self(), name, sizeof(name));

    while (strcmp(name, "llm-schedule") == 0 && access("hang", F_OK) == 0) {
        usleep(10000);
    }

    return real(id, ts);
}
END

    is(health(), '200 ok', 'healthy');
    $t->write_file('hang', '');
    ok(becomes('503 error', qr/^a probe gets no answer$/),
       'a scheduler that hangs') or diag($res->{body});
    is(health('/livehealth'), '200 ok', 'which takes longer to be dead');
    unlink $t->dir . '/hang';
    ok(becomes('200 ok'), 'it goes on');

    like($t->log, qr/\[error\].*a probe of the model "demo" has failed: there/,
         'the log has it');
    is(scalar(() = $t->log =~ /a probe of the model/g), 1, 'once');
    like($t->log, qr/\[notice\].*"demo" counts as healthy again/,
         'and its end');
    $t->stop(name => 'hangs');
}


# ---- a device that fails ----

SKIP: {
    skip 'no emulator in this build', 2
        if !-e "$LLM::Test::OBJS/llm_emu.so";

    local $ENV{LLM_EMU_FAIL_LAUNCH} = 1000;
    server(main => 'env LLM_EMU_FAIL_LAUNCH;',
           model => 'llm_model demo %%ROOT%%/models/demo.gguf device=emu'
                  . ' ctx=256 parallel=2 default;',
           locations => $locations =~ s/300ms/20ms/r);

    ok($t->wait_log(qr/a probe of the model "demo" has failed: .*launch/),
       'a probe finds it');
    ok(LLM::Test::wait_for(60, sub { health() eq '200 ok' }),
       'the model is loaded again, and healthy');
    $t->stop(name => 'fails', allow => qr/launch failure/);
}


# ---- a prompt of several steps ----

server(model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=1 batch=16'
              . ' ctx=512 default;',
       locations => $locations =~ s/300ms/20ms prompt=100/r);

my ($rows, $steps) = (0, 0);

ok(LLM::Test::wait_for(60, sub {
    my $f = $t->figures;

    ($rows, $steps) = map { $f->{$_} } qw(prompt_tokens_computed steps);
    $rows >= 300;
}), 'probes of a long prompt') or diag("$rows tokens");
cmp_ok($rows, '<', $steps * 16, 'in steps of a batch');
cmp_ok($steps, '>', $rows / 16, 'each several');
is($t->figures->{prefix_cache_hits}, 0, 'computed each time');
ok(becomes('200 ok'), 'and healthy');
$t->stop(name => 'a prompt');


# ---- what is refused ----

for (   [ 'llm_health probe=;', 'invalid time "probe="' ],
        [ 'llm_health probe=0;', 'invalid time "probe=0"' ],
        [ 'llm_health ready probe=x;', 'invalid time "probe=x"' ],
        [ 'llm_health probe=1s demo probe=2s;', 'duplicate parameter "probe=2s"' ],
        [ 'llm_health prompt=5;', 'has "prompt" without "probe"' ],
        [ 'llm_health probe=1s prompt=0;', 'invalid number of tokens' ],
        [ 'llm_health live probe=1s;', 'with "live" has no other' ])
{
    my ($conf, $why) = @$_;
    my $t = LLM::Test->new(locations => "location = /h {\n$conf\n}");
    my ($rc, $text) = $t->check;

    ok($rc != 0 && $text =~ /\[emerg\].*\Q$why\E.* in \S+nginx\.conf:(\d+)/,
       "refused: $conf") or diag($text);
}

done_testing();
