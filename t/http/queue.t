#!/usr/bin/perl

# The bounded queue: 429 with Retry-After beyond it, exact when many arrive
# at once; a queue timeout answers 503; places come free in order.

use strict;
use warnings;

use IO::Select;
use LLM::Test;
use Test::More;
use Time::HiRes qw(time);


# those of the clients whose answer has begun, once there are so many

sub answered {
    my ($n, @clients) = @_;
    my @got;

    LLM::Test::wait_for(30, sub {
        @got = grep { IO::Select->new($_->{socket})->can_read(0) } @clients;
        @got >= $n;
    });

    return @got;
}


for my $workers (1, 3) {
    my $name = "$workers worker(s)";
    my $t = LLM::Test->new(workers => $workers, listen => 'reuseport',
        model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=1'
               . ' parallel=2; llm_queue 4;',
        locations => <<'END')->start;
        location /v1 { llm_api; }
        location = /health { llm_health; }
        location = /metrics { llm_metrics; }
        location = /load { return 200 $llm_load; }
END

    # at the same instant: two run, four wait.  They take long and are not
    # streamed, so whoever has an answer was refused

    for my $round (1 .. 3) {
        my @sockets = map { LLM::Client::connect_to($t->port) } 1 .. 20;
        my @clients = map { $t->open('/v1/completions',
            { prompt => 'b', max_tokens => 3900, n => 16,
              ignore_eos => \1 }, socket => $_) } @sockets;

        my @refused = answered(14, @clients);

        is(scalar @refused, 14, "$name, round $round: fourteen of twenty are "
           . 'refused at once');

        my %refused = map { $_ => 1 } @refused;
        my @res = map { $_->response } @refused;

        is(scalar(grep { $_->{status} == 429 } @res), 14, "$name: with 429")
            or diag(join ' ', map { $_->{status} } @res);
        is(scalar(grep { ($_->{headers}{'retry-after'} // '')
                         =~ /^[1-9]\d*$/ } @res),
           14, "$name: with Retry-After");
        is($res[0]{json}{error}{code}, 'queue_full', "$name: code");

        ok(LLM::Test::wait_for(10, sub {
            $t->figure('vllm:num_requests_running') == 2;
        }), "$name: two sequences run");

        my @rest = grep { !$refused{$_} } @clients;

        is(scalar(answered(0, @rest)), 0, "$name: none of the others is");
        $_->close for @rest;

        # which is what is counted, while gauges can be 0 between two requests

        ok(LLM::Test::wait_for(10, sub { $t->get('/load')->{body} eq '0' }),
           "$name: their places come free");
    }

    # six that were accepted are served

    my @clients = map { $t->open('/v1/completions',
        { prompt => 'b', max_tokens => 200, ignore_eos => \1 }) } 1 .. 6;

    is(scalar(grep { $_->response->{status} == 200 } @clients), 6,
       "$name: two run, four wait: all are served");

    $t->stop(name => $name);
}


# queue timeout: before the header an answer with a status, after it an event

{
    my $t = LLM::Test->new(workers => 2, listen => 'reuseport',
        model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=1'
               . ' parallel=1; llm_queue 8 timeout=300ms;',
        locations => <<'END')->start;
        location /v1 { llm_api; }
        location /beat { llm_api; llm_heartbeat 50ms; }
        location = /health { llm_health; }
        location = /metrics { llm_metrics; }
END

    my $running = $t->open('/v1/completions',
        { prompt => 'a', max_tokens => 3900, n => 16, ignore_eos => \1 });

    ok(LLM::Test::wait_for(10, sub {
        $t->figure('vllm:num_requests_running') == 1;
    }), 'queue timeout: one runs');

    my %ask = (prompt => 'b', max_tokens => 1);
    my $waiting = $t->open('/v1/completions', \%ask);
    my $plain = $t->open('/v1/completions', { %ask, stream => \1 });
    my $stream = $t->open('/beat/completions', { %ask, stream => \1 });

    for my $case ([ 'queue timeout', $waiting ],
                  [ 'queue timeout of a stream without a header', $plain ])
    {
        my ($name, $client) = @$case;
        my $res = $client->response;

        is($res->{status}, 503, "$name: 503");
        like($res->{headers}{'retry-after'}, qr/^[1-9]\d*$/,
             "$name: Retry-After");
        is($res->{json}{error}{code}, 'queue_timeout', "$name: code");
        cmp_ok($res->{time}, '>=', 0.29, "$name: not too early");
    }

    $stream->read_header;
    is($stream->{status}, 200, 'a stream: heartbeats have begun it');

    my @events = $stream->events;

    cmp_ok(scalar(grep { defined $_->{comment} } @events), '>=', 1,
           'a stream: heartbeats while it is queued');
    is($events[-1]{json}{error}{code}, 'queue_timeout',
       'a stream: an error event ends it') or diag(explain(\@events));

    # the time in which its body comes is not spent in the queue

    my $json = '{"prompt":"b","max_tokens":1}';
    my $late = LLM::Client->open(port => $t->port, raw =>
        "POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        . 'Content-Length: ' . length($json) . "\r\n\r\n{");

    sleep 1;
    $late->write(substr $json, 1);

    my $sent = time;
    my $res = $late->response;

    is($res->{json}{error}{code}, 'queue_timeout', 'a body that comes late');
    cmp_ok(time - $sent, '>=', 0.29, 'has waited since it came');

    $running->close;

    ok(LLM::Test::wait_for(10, sub {
        $t->post('/v1/completions', \%ask)->{status} == 200;
    }), 'queue timeout: afterwards there is room again');

    $t->stop(name => 'queue timeout');
}

# ---- a full queue is no other model's error, and no error of the engine ----

{
    my $t = LLM::Test->new(
        model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=1'
               . ' parallel=1 default;'
               . ' llm_model gone gone.gguf lazy; llm_queue 0;',
        locations => <<'END')->start;
        location /v1 { llm_api; }
        location = /health { llm_health; }
        location = /metrics { llm_metrics; }
END

    is($t->post('/v1/completions', { model => 'gone', prompt => 'a',
           max_tokens => 1 })->{status}, 503, 'a model that cannot be loaded');

    my $running = $t->open('/v1/completions', { prompt => 'a', n => 8,
        max_tokens => 3900, ignore_eos => \1, stream => \1 });

    $running->event;

    my $errors = $t->figure('llm_request_errors_total');
    my $res = $t->post('/v1/completions', { prompt => 'b', max_tokens => 1 });

    is($res->{status}, 429, 'another one whose queue is full');
    is($res->{json}{error}{code}, 'queue_full', 'says so');

    $res = $t->post('/v1/completions', { model => 'gone', prompt => 'b',
                                         max_tokens => 1 });
    is($res->{json}{error}{code}, 'model_failed', 'and the first one what it '
       . 'lacks');

    $running->close;

    ok(LLM::Test::wait_for(10, sub {
        $t->figure('vllm:num_requests_running') == 0;
    }), 'a place comes free');

    is($t->post('/v1/completions', { prompt => 'a', max_tokens => 1,
           response_format => { type => 'json_schema', json_schema => {
               name => 'x', schema => { not => {} } } } })->{status}, 400,
       'what is wrong');
    is($t->figure('llm_request_errors_total'), $errors,
       'is no error of the engine');

    $t->stop(name => 'two models');
}

done_testing();
