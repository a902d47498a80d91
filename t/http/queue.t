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
    my $t = LLM::Test->new(workers => $workers,
        model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=1'
               . ' parallel=2; llm_queue 4;',
        locations => <<'END')->start;
        location /v1 { llm_api; }
        location = /health { llm_health; }
        location = /metrics { llm_metrics; }
END

    # at the same instant: two run, four wait.  They take long and are not
    # streamed, so whoever has an answer was refused

    for my $round (1 .. 3) {
        my @clients = map { $t->open('/v1/completions',
            { prompt => 'b', max_tokens => 3900, n => 16,
              ignore_eos => \1 }) } 1 .. 20;

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
        is($res[0]{json}{error}{code}, 'rate_limit_exceeded', "$name: code");

        ok(LLM::Test::wait_for(10, sub {
            $t->figure('vllm:num_requests_running') == 2;
        }), "$name: two sequences run");

        my @rest = grep { !$refused{$_} } @clients;

        is(scalar(answered(0, @rest)), 0, "$name: none of the others is");
        $_->close for @rest;

        ok(LLM::Test::wait_for(10, sub {
            $t->figure('vllm:num_requests_running') == 0
                && $t->figure('vllm:num_requests_waiting') == 0;
        }), "$name: their places come free");
    }

    # six that were accepted are served

    my @clients = map { $t->open('/v1/completions',
        { prompt => 'b', max_tokens => 200, ignore_eos => \1 }) } 1 .. 6;

    is(scalar(grep { $_->response->{status} == 200 } @clients), 6,
       "$name: two run, four wait: all are served");

    $t->stop(name => $name);
}


# queue timeout

{
    my $t = LLM::Test->new(
        model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=1'
               . ' parallel=1; llm_queue 4 timeout=300ms;',
        location => 'llm_heartbeat 100ms;',
        )->start;

    my $running = $t->open_long(max_tokens => 1900);

    $running->event;

    my $begin = time;
    my $waiting = $t->open('/v1/completions',
                           { prompt => 'b', max_tokens => 1 });
    my $stream = $t->open('/v1/completions',
                          { prompt => 'b', max_tokens => 1, stream => \1 });
    my $res = $waiting->response;

    is($res->{status}, 503, 'queue timeout: 503');
    ok($res->{headers}{'retry-after'}, 'queue timeout: Retry-After');
    cmp_ok(time - $begin, '<', 1.5 * $LLM::Test::SLOW, 'queue timeout: on time');

    $stream->read_header;
    is($stream->{status}, 200, 'a stream: heartbeats have begun it');

    my @events = $stream->events;

    cmp_ok(scalar(grep { defined $_->{comment} } @events), '>=', 1,
           'a stream: heartbeats while it is queued');
    ok($events[-1]{json}{error}, 'a stream: an error event ends it')
        or diag(explain(\@events));

    $running->close;
    $t->stop(name => 'queue timeout');
}

done_testing();
