#!/usr/bin/perl

# Clients that stop reading: their sequences are parked, what is kept for
# them is bounded by llm_stream_buffer, others go on as if alone; when they
# read on, every byte is there.  The kernel keeps little (sndbuf=16k), or it
# would hide the backlog.

use strict;
use warnings;

use LLM::Test;
use Test::More;

my $READERS = 3;

my $t = LLM::Test->new(listen => 'sndbuf=16k',
    model => 'llm_model demo ' . LLM::Test::random_model(2, 40960)
           . ' threads=1 parallel=8;',
    locations => <<'END')->start;
        location /v1 { llm_api; }
        location /small { llm_stream_buffer 16k; llm_api; }
        location /tiny { llm_stream_buffer 4k; llm_api; }
        location = /health { llm_health; }
        location = /figures { llm_metrics json; }
END

my ($pid) = $t->workers;

# rivals of each token make long events

my %ask = (prompt => 'a', ignore_eos => \1, temperature => 0, logprobs => 5,
           stream => \1);


# bytes but for what differs in each answer

sub bare {
    my ($body) = @_;

    $body =~ s/"id":"[^"]*"/"id":""/g;
    $body =~ s/"created":\d+/"created":0/g;

    return $body;
}


# parked for good: who only waits for the worker to catch up is not

sub parked {
    my ($n) = @_;
    my ($same, $last) = (0, -1);

    return LLM::Test::wait_for(60, sub {
        my $f = $t->figures;
        my $still = $f->{parked} == $n && $f->{running} == 0
                    && $f->{generation_tokens} == $last;

        $last = $f->{generation_tokens};
        $same = $still ? $same + 1 : 0;
        $same >= 10;
    });
}


# a sanitizer keeps what was freed, and puts zones around the rest

sub bounded {
    my ($kb, $most, $name) = @_;

    SKIP: {
        skip "$name: a sanitizer's memory says nothing", 1 if $ENV{LLM_SAN};
        cmp_ok($kb, '<', $most, $name);
    }
}


for my $case ([ '/v1', 256, 5000 ], [ '/small', 16, 1000 ],
              [ '/tiny', 4, 1000 ])
{
    (my $path, my $kb, $ask{max_tokens}) = @$case;
    my $name = "llm_stream_buffer ${kb}k";
    my $want = bare($t->post("$path/completions", { %ask })->{body});

    cmp_ok(length $want, '>', 6 * 1024 * $kb,
           "$name: many times as much (" . length($want) . ' bytes)');

    my $before = LLM::Test::holds($pid)->{kb};

    my @slow = map { $t->open("$path/completions", { %ask }, rcvbuf => 16384) }
               1 .. $READERS;

    ok(parked($READERS), "$name: all are parked")
        or diag(explain($t->figures));

    my $unsent = $t->figures->{workers}[0]{unsent};

    cmp_ok($unsent, '<=', $READERS * 1.25 * 1024 * $kb,
           "$name: no more is held, and a quarter");
    cmp_ok($unsent, '>', $READERS * 1024 * $kb / 16, "$name: and not nothing");
    bounded(LLM::Test::holds($pid)->{kb} - $before,
            $READERS * 1.25 * $kb + 1024, "$name: bounded memory");

    # another request has the steps of the engine for itself; the kernel may take
    # a little more of a slow one at any time, but not for ever

    my ($res, $had, $has);

    for (1 .. 5) {
        $had = $t->figures;
        $res = $t->post('/v1/completions', { prompt => 'b', max_tokens => 500,
                                             ignore_eos => \1 });
        $has = $t->figures;

        last if $has->{generation_tokens} - $had->{generation_tokens} <= 560
                || !parked($READERS);
    }

    is($res->{json}{usage}{completion_tokens}, 500,
       "$name: others are served");
    cmp_ok($has->{generation_tokens} - $had->{generation_tokens}, '<=', 560,
           "$name: nothing else is computed meanwhile");
    cmp_ok($has->{steps} - $had->{steps}, '<=', 562,
           "$name: they are not slowed");

    # one reads a little now and then

    my $now_and_then = shift @slow;
    my $body = '';

    for (1 .. 3) {
        my $end = length($body) + 1024 * $kb;

        while (length $body < $end
               && defined(my $piece = $now_and_then->piece))
        {
            $body .= $piece;
        }

        ok(parked(@slow + 1), "$name: parked again");
    }

    is(bare($body . $now_and_then->response->{body}), $want,
       "$name: whole, read piece by piece");

    for my $s (@slow) {
        $res = $s->response;
        ok(!$res->{truncated} && bare($res->{body}) eq $want,
           "$name: whole, read at last");
    }

    # parked ones that go away; what others have made use of is there already
    # (pages, samplers, the ring), so what they take is their own

    $before = LLM::Test::holds($pid)->{own};

    my @gone = map { $t->open("$path/completions", { %ask }, rcvbuf => 16384) }
               1 .. $READERS;

    ok(parked($READERS), "$name: parked once more");
    bounded(LLM::Test::holds($pid)->{own} - $before,
            $READERS * (1.25 * $kb + 64),
            "$name: each has what is held for it, and little more");
    $_->close for @gone;

    ok(LLM::Test::wait_for(10, sub {
        my $f = $t->figures;
        $f->{parked} == 0 && $f->{kv_pages_used} == 0
            && $f->{workers}[0]{unsent} == 0
    }), "$name: parked clients that go away leave nothing behind");
}

$t->stop;

done_testing();
