#!/usr/bin/perl

# The bounded queue: 429 with Retry-After beyond it, exact when many arrive
# at once; a queue timeout answers 503; places come free in order.

use strict;
use warnings;

use LLM::Test;
use Test::More;
use Time::HiRes qw(sleep time);

for my $workers (1, 3) {
    my $name = "$workers worker(s)";
    my $t = LLM::Test->new(workers => $workers,
        model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=1'
               . ' parallel=1; llm_queue 4 timeout=30s;')->start;

    my $running = $t->open_long(max_tokens => 1900);

    $running->event;

    # twenty in the same instant: four wait, sixteen are refused
    my @clients = map { $t->open('/v1/completions',
        { prompt => 'b', max_tokens => 1 }) } 1 .. 20;

    sleep 0.3 * $LLM::Test::SLOW;
    $running->close;

    my @res = map { $_->response } @clients;
    my @refused = grep { $_->{status} == 429 } @res;

    is(scalar(grep { $_->{status} == 200 } @res), 4, "$name: four waited")
        or diag(join ' ', map { $_->{status} } @res);
    is(scalar @refused, 16, "$name: sixteen were refused");
    is(scalar(grep { $_->{headers}{'retry-after'} =~ /^[1-9]\d*$/ } @refused),
       16, "$name: with Retry-After");
    is($refused[0]{json}{error}{code}, 'rate_limit_exceeded', "$name: code")
        if @refused;

    is($t->post('/v1/completions', { prompt => 'b', max_tokens => 1 })
           ->{status}, 200, "$name: afterwards there is room again");

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
