#!/usr/bin/perl

# worker_shutdown_timeout cuts on time what still runs, with a last word:
# an error event in streams, 503 in JSON otherwise; over HTTP/1.1 and HTTP/2,
# after a quit and after a reload.  Without it nginx waits for the last
# stream and ends by itself.

use strict;
use warnings;

use LLM::H2;
use LLM::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my $TIMEOUT = 1;

my $model = 'llm_model demo ' . LLM::Test::random_model(2, 40960)
          . ' threads=1 parallel=8;';
my %long = (prompt => 'a', ignore_eos => \1, max_tokens => 35_000);


sub server {
    my ($workers, %opt) = @_;

    # a large buffer: who does not read keeps its place

    return LLM::Test->new(workers => $workers, model => $model,
        listen => 'reuseport sndbuf=16k',
        main => "worker_shutdown_timeout ${TIMEOUT}s;",
        server => 'listen 127.0.0.1:%%PORT2%% http2 reuseport;'
                . ' llm_stream_buffer 64m;', %opt)
        ->start;
}


for my $case ([ 'QUIT', 1 ], [ 'QUIT', 3 ], [ 'HUP', 1 ], [ 'HUP', 3 ]) {
    my ($signal, $workers) = @$case;
    my $name = "$signal, $workers worker(s)";
    my $t = server($workers);
    my %old = map { $_ => 1 } $t->workers;

    my @streams = map { $t->open_long(%long) } 1 .. 5;
    my $whole = $t->open('/v1/completions', { %long });
    my $h2 = LLM::H2->new(port => $t->{port2});
    my $id = $h2->post('/v1/completions', { %long, stream => \1 });

    # this one does not read: there is no way to tell it anything

    my $stuck = $t->open('/v1/completions',
                         { %long, stream => \1, logprobs => 5 },
                         rcvbuf => 4096);

    $_->event for @streams;
    $h2->wait_event($id);
    ok(LLM::Test::wait_for(10, sub { $t->figures->{running} == 8 }),
       "$name: eight run");

    my @queued = map { $t->open('/v1/completions', { %long }) } 1 .. 2;

    ok(LLM::Test::wait_for(10, sub { $t->figures->{waiting} == 2 }),
       "$name: two wait");

    my $begin = time;

    $t->kill($signal);

    LLM::Client::read_all(@streams, $h2, $whole, @queued);

    my $time = time - $begin;

    for my $s (@streams) {
        my @events = $s->events;

        ok(!$s->{truncated} && $events[-1]{json}{error},
           "$name: a stream ends with an error event")
            or diag(explain($events[-1]));
    }

    my $s = $h2->wait_done($id);
    my ($last) = (LLM::H2::events($s))[-1];

    ok($s->{done} && $last =~ /^\{"error":/, "$name: and over HTTP/2")
        or diag(explain([ $last, $s->{rst} ]));

    for my $c ($whole, @queued) {
        my $res = $c->response;

        is($res->{status}, 503, "$name: 503 where nothing was sent yet");
        is($res->{json}{error}{code}, 'server_shutdown', "$name: in JSON");
        ok($res->{headers}{'retry-after'}, "$name: with Retry-After");
    }

    $stuck->close;
    cmp_ok($time, '>', 0.7 * $TIMEOUT, "$name: not before its time");

    if ($signal eq 'HUP') {
        ok(LLM::Test::wait_for(20, sub {
            !grep { $old{$_} } $t->workers
        }), "$name: the old workers have ended");
        ok($t->wait_ready, "$name: the new ones serve");
    }

    $t->stop(signal => 'QUIT', name => $name);
}


# ---- no timeout: the end of the last stream is the end of nginx

for my $workers (1, 3) {
    my $name = "drained, $workers worker(s)";
    my $t = server($workers, main => '');
    my %ask = (max_tokens => 2000, temperature => 0);
    my $text = LLM::Client::text_of($t->open_long(%ask)->events);

    cmp_ok(length $text, '>', 2000, "$name: a text");

    my @streams = map { $t->open_long(%ask) } 1 .. 4;
    my $whole = $t->open('/v1/completions',
                         { prompt => 'a', ignore_eos => \1, %ask });
    my $slow = $t->open_long(%ask, max_tokens => 4000, rcvbuf => 4096);
    my $waits = $t->open('/v1/completions',
                         { prompt => 'a', ignore_eos => \1, n => 8, %ask,
                           max_tokens => 100 });

    $_->event for @streams;
    ok(LLM::Test::wait_for(10, sub {
        my $f = $t->figures;
        $f->{running} + $f->{waiting} > 5
    }), "$name: all are there");

    $t->kill('QUIT');

    ok(LLM::Test::wait_for(20, sub {
        !IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                               PeerPort => $t->port)
    }), "$name: nobody listens");

    for my $s (@streams) {
        my @events = $s->events;

        is($events[-1]{data}, '[DONE]', "$name: a stream ends whole");
        ok($s->{text} eq $text, "$name: with its text");
    }

    my $res = $whole->response;

    is($res->{status}, 200, "$name: an answer, too");
    ok($res->{json}{choices}[0]{text} eq $text, "$name: with its text");

    $res = $waits->response;
    is(scalar @{ $res->{json}{choices} || [] }, 8,
       "$name: and one that had to wait");

    # one that has not read anything yet

    $slow->events;
    ok(index($slow->{text}, $text) == 0 && !$slow->{truncated},
       "$name: a slow reader's stream, too");

    # no signal any more

    ok(LLM::Test::wait_for(15, sub { $t->ended }), "$name: nginx ends");
    $t->stop(name => $name);
}

done_testing();
