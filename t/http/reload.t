#!/usr/bin/perl

# Reload and graceful quit let every running stream end whole, with one
# worker and with several; TERM ends at once.  See also reload_load.t,
# shutdown.t, swap.t.

use strict;
use warnings;

use LLM::Test;
use Test::More;
use Time::HiRes qw(sleep time);


sub whole {
    my ($s, $name) = @_;

    my @events = $s->events;

    ok(!$s->{truncated} && @events && ($events[-1]{data} // '') eq '[DONE]',
       "$name: stream is whole")
        or diag(explain($events[-1]));

    return $s->{text};
}


for my $workers (1, 3) {
    my $name = "$workers worker(s)";
    my $t = LLM::Test->new(workers => $workers)->start;
    my $text = whole($t->open_long(max_tokens => 1000, temperature => 0),
                     $name);

    my @old = $t->workers;

    is(scalar @old, $workers, "$name: there are as many");

    for my $round (1 .. 3) {
        my @streams = map { $t->open_long(max_tokens => 1000,
                                          temperature => 0) } 1 .. 6;

        $_->event for @streams;
        $t->reload;

        # new requests are answered while old ones drain
        my $res = $t->post('/v1/completions',
                           { prompt => 'a', max_tokens => 1 });

        ok($res->{status} == 200
           || ($res->{status} == 503 && $res->{headers}{'retry-after'}),
           "$name: a new request meanwhile gets $res->{status}")
            or diag($res->{body});

        is(whole($_, $name), $text, "$name: the same text") for @streams;
        ok($t->wait_ready, "$name: ready again");
    }

    ok(LLM::Test::wait_for(20, sub {
        my %now = map { $_ => 1 } $t->workers;
        !grep { $now{$_} } @old;
    }), "$name: the old workers have ended");

    ok(LLM::Test::wait_for(20, sub { $t->workers == $workers }),
       "$name: as many as before");

    my @streams = map { $t->open_long(max_tokens => 1000, temperature => 0) }
                  1 .. 4;

    $_->event for @streams;
    $t->kill('QUIT');
    is(whole($_, "$name, quit"), $text, "$name, quit: the same text")
        for @streams;

    $t->stop(signal => 'QUIT', name => $name);
}


# another number of workers, and of models

{
    my $t = LLM::Test->new(workers => 1)->start;
    my $conf = $t->conf;
    my %ask = (max_tokens => 1200, temperature => 0);
    my $text = whole($t->open_long(%ask), 'another configuration');

    for my $workers (4, 2, 1, 3) {
        my $name = "reload to $workers worker(s)";
        my @streams = map { $t->open_long(%ask) } 1 .. 4;

        $_->event for @streams;

        # the model of before is another one's neighbour now, or was

        my $more = $workers % 2 ? '' : 'llm_model aa '
            . LLM::Test::random_model(2, 40960) . ' threads=1 parallel=2;';

        $t->write_conf($conf =~ s/^(worker_processes) .*/$1 $workers;/mr
                            =~ s/^( +)(llm_model )/$1$more$2/mr);
        $t->reload;

        is(whole($_, $name), $text, "$name: the same text") for @streams;
        ok(LLM::Test::wait_for(20, sub { $t->workers == $workers }),
           "$name: there are as many");
        ok($t->wait_ready, "$name: ready");
        is(scalar @{ $t->get('/figures')->{json}{models} }, $more ? 2 : 1,
           "$name: models");
        is(whole($t->open_long(%ask), $name), $text,
           "$name: the new ones have the same text");
    }

    $t->stop(name => 'another configuration');
}


# many reloads in a row

{
    my $t = LLM::Test->new(workers => 2)->start;
    my @streams = map { $t->open_long(max_tokens => 800) } 1 .. 4;

    $_->event for @streams;

    for (1 .. 5) {
        $t->kill('HUP');
        sleep 0.05;
    }

    whole($_, 'a burst of reloads') for @streams;

    ok($t->wait_ready, 'a burst of reloads: serves');

    ok(LLM::Test::wait_for(20, sub { $t->workers == 2 }),
       'a burst of reloads: two workers are left');

    $t->stop(name => 'a burst of reloads');
}


# TERM

{
    my $t = LLM::Test->new(workers => 2)->start;
    my @streams = map { $t->open_long(max_tokens => 1900) } 1 .. 4;

    $_->event for @streams;

    my $begin = time;

    $t->stop(name => 'TERM');
    cmp_ok(time - $begin, '<', 1.5 * $LLM::Test::SLOW, 'TERM ends at once');

    my @ends = map { my @e = $_->events; $e[-1] } @streams;

    is(scalar(grep { $_->{json} && $_->{json}{error}
                     || ($_->{data} // '') eq '[DONE]' } @ends), 4,
       'with a last word to each client') or diag(explain(\@ends));
}

done_testing();
