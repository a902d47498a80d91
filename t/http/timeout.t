#!/usr/bin/perl

# llm_timeout, heartbeats, readers that are slow or never read.

use strict;
use warnings;

use LLM::Test;
use Test::More;
use Time::HiRes qw(sleep);

my $t = LLM::Test->new(pace => 0.5,
    model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=1 parallel=2'
           . ' batch=16;',
    listen => 'sndbuf=16k',
    locations => <<'END');
        location /v1 { llm_api; }
        location /short { llm_timeout 300ms; llm_api; }
        location /beat { llm_timeout 500ms; llm_heartbeat 50ms; llm_api; }
        location = /metrics { llm_metrics; }
        location /buffer { llm_stream_buffer 8k; llm_api; }
        location /send { llm_stream_buffer 8k; send_timeout 500ms; llm_api; }
        location = /health { llm_health; }
END

$t->start;

my %long = (prompt => 'a', ignore_eos => \1, max_tokens => 1900, n => 2);

# llm_timeout

my $res = $t->post('/short/completions', \%long);

SKIP: {
    skip 'this machine is too fast', 1 if $res->{status} == 200;

    is($res->{status}, 504, 'llm_timeout: 504');
}

my $s = $t->open('/short/completions', { %long, stream => \1 });
my @events = $s->events;

SKIP: {
    skip 'this machine is too fast', 2
        if ($events[-1]{data} // '') eq '[DONE]';

    is($s->{status}, 200, 'llm_timeout in a stream');
    ok($events[-1]{json}{error}, 'ends with an error event')
        or diag(explain($events[-1]));
}


# while it is queued: its time counts from its arrival

my @busy = map { $t->open('/v1/completions',
    { %long, n => 16, max_tokens => 3900 }) } 1 .. 2;

ok(LLM::Test::wait_for(10, sub {
    $t->figure('vllm:num_requests_running') == 2;
}), 'two run');

my $queued = $t->open('/beat/completions', { prompt => 'b', max_tokens => 1 });

$s = $t->open('/beat/completions', { prompt => 'b', max_tokens => 1,
                                     stream => \1 });
$res = $queued->response;

is($res->{status}, 504, 'llm_timeout in the queue: 504');
is($res->{json}{error}{code}, 'timeout', 'with its code');

@events = $s->events;

is($s->{status}, 200, 'a stream that heartbeats have begun');
ok($events[-1]{json}{error}, 'ends with an error event')
    or diag(explain($events[-1]));
is($events[-1]{json}{error}{code}, 'timeout', 'with the same code');

$_->close for @busy;


# a reader that sleeps: its stream is whole when it reads on, and nobody
# else is held up

%long = (prompt => 'a', ignore_eos => \1, max_tokens => 1500,
         temperature => 0);

my $want = LLM::Client::text_of(
    $t->open('/v1/completions', { %long, stream => \1 })->events);

my $slow = LLM::Client->open(port => $t->port, method => 'POST',
    path => '/buffer/completions', rcvbuf => 4096,
    body => { %long, stream => \1 });

sleep 0.2 * $LLM::Test::SLOW;

is($t->post('/v1/completions', { prompt => 'b', max_tokens => 2 })->{status},
   200, 'others are served beside a reader that sleeps');

sleep 0.3 * $LLM::Test::SLOW;

@events = $slow->events;

is($events[-1]{data}, '[DONE]', 'a slow reader gets the end');
is(LLM::Client::text_of(@events), $want, 'and the whole text');

# one that never reads is cut by send_timeout, and its place comes free

my @stuck = map { LLM::Client->open(port => $t->port, method => 'POST',
    path => '/send/completions', rcvbuf => 4096,
    body => { %long, stream => \1 }) } 1 .. 2;

ok(LLM::Test::wait_for(10, sub {
    $t->post('/v1/completions', { prompt => 'b', max_tokens => 1 })
      ->{status} == 200
}), 'send_timeout frees the places of readers that never read');
ok($t->wait_log(qr/client timed out/), 'and says so');

$t->stop;

done_testing();
