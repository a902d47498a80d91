#!/usr/bin/perl

# A prompt of 5,000 tokens beside running streams: it never holds them for
# longer than 250 ms or a twentieth of its own prefill, they do not starve
# it, and heartbeats keep its client informed.
#
# Others may use the machine too: what they do to a stream is measured just
# before, and of several tries the best one counts.

use strict;
use warnings;

use IO::Select;
use LLM::Test;
use List::Util qw(max min);
use Test::More;
use Time::HiRes qw(time);

my $TRIES = 4;


# reads a stream until the code says so; the longest time between two events

sub longest {
    my ($stream, $code) = @_;
    my ($last, $gap, $n) = (undef, 0, 0);

    until ($code->()) {
        my $e = $stream->event or return;
        my $now = time;

        $gap = max($gap, $now - $last) if defined $last;
        $last = $now;
        $n++;
    }

    return ($gap, $n);
}


# steps as they are; steps as long as they may be, and a prompt that takes
# seconds

for ([ 5000, 'threads=2' ], [ 8000, 'threads=1 batch=8000' ]) {
    my ($size, $with) = @$_;

    $size /= 5 if $ENV{LLM_SAN};

    my %ask = (prompt => [ map { 100 + $_ * 7919 % 900 } 1 .. $size ],
               max_tokens => 1, ignore_eos => \1, cache_prompt => \0);

    my $t = LLM::Test->new(
        model => 'llm_model demo %%ROOT%%/models/demo.gguf parallel=4'
               . " ctx=9000 $with;",
        locations => <<'END')->start;
        location /v1 { llm_api; }
        location /beat { llm_api; llm_heartbeat 10ms; }
        location = /health { llm_health; }
        location = /metrics { llm_metrics; }
END

    my (@gaps, @ratios);

    for my $try (1 .. $TRIES) {
        my $alone = $t->post('/v1/completions', \%ask);

        is($alone->{json}{usage}{prompt_tokens}, $size, "$size tokens");

        # one is read here, the others keep the machine busy

        my @streams = map { $t->open_long(max_tokens => 8900,
                                          temperature => 0) } 1 .. 3;

        $_->event for @streams;

        my $end = time + $alone->{time};
        my ($before) = longest($streams[0], sub { time > $end });

        my $long = $t->open('/v1/completions', \%ask);
        my $select = IO::Select->new($long->{socket});

        my ($gap, $n) = longest($streams[0], sub { $select->can_read(0) });
        my $res = $long->response;

        $_->close for @streams;

        is($res->{status}, 200, 'it is answered');
        ok(defined $gap, 'while the streams go on') or next;

        my $limit = max(0.25, $res->{time} / 20) * $LLM::Test::SLOW;

        push @gaps, max(0, $gap - $before) / $limit;
        push @ratios, $res->{time} / $alone->{time};

        note(sprintf 'alone %.0f ms, beside three streams %.0f ms; they got %d '
             . 'tokens meanwhile, %.0f ms apart at most (%.0f before; limit %.0f)',
             $alone->{time} * 1000, $res->{time} * 1000, $n, $gap * 1000,
             $before * 1000, $limit * 1000);

        last if $gaps[-1] < 1 && $ratios[-1] < 4;
    }

    cmp_ok(min(@gaps), '<', 1, 'a stream beside it is not held up');
    cmp_ok(min(@ratios), '<', 4, 'nor do they starve it');

    # heartbeats in the middle of a prefill

    my $s = $t->open('/beat/completions', { %ask, stream => \1 });
    my @events = $s->events;
    my ($first) = grep { defined $events[$_]{data} } 0 .. $#events;

    cmp_ok($first, '>=', 2, 'heartbeats before the first token');
    is($events[-1]{data}, '[DONE]', 'and the stream is whole');
    ok($events[$first]{json}{choices}[0], 'with its token');

    $t->stop(name => $with);
}

done_testing();
