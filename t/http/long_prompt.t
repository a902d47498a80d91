#!/usr/bin/perl

# A prompt of 5,000 tokens beside running streams: it is computed in steps
# that take about as long as others may be held up, each of which has a token
# for each stream; it gets its share of each of them; and heartbeats keep its
# client informed.
#
# How long a step is in time is the machine's: steps and tokens are counted.

use strict;
use warnings;

use IO::Select;
use LLM::Test;
use Test::More;


# steps as they are; steps as long as they may be, and a prompt that takes
# seconds

for ([ 5000, 'threads=2' ], [ 8000, 'threads=1 batch=8000' ]) {
    my ($size, $with) = @$_;

    $size /= 5 if $ENV{LLM_SAN};

    my %ask = (prompt => [ map { 100 + $_ * 7919 % 900 } 1 .. $size ],
               max_tokens => 1, ignore_eos => \1, cache_prompt => \0);

    my $t = LLM::Test->new(
        pace => 0.5,
        model => 'llm_model demo %%ROOT%%/models/demo.gguf parallel=4'
               . " ctx=9000 $with;",
        locations => <<'END')->start;
        location /v1 { llm_api; }
        location /beat { llm_api; llm_heartbeat 10ms; }
        location = /health { llm_health; }
        location = /figures { llm_metrics json; }
END

    my @streams = map { $t->open_long(max_tokens => 8900,
                                      temperature => 0) } 1 .. 3;

    $_->event for @streams;

    my $had = $t->figures;
    my $long = $t->open('/v1/completions', \%ask);
    my $select = IO::Select->new($long->{socket});

    1 until $select->can_read(0) || grep { !$_->event } @streams;

    my $has = $t->figures;
    my $res = $long->response;

    is($res->{status}, 200, 'it is answered');
    is($res->{json}{usage}{prompt_tokens}, $size, "$size tokens");
    ok(!(grep { !$_->event } @streams), 'the streams go on');

    $_->close for @streams;

    my $steps = $has->{steps} - $had->{steps};
    my $tokens = ($has->{generation_tokens} - $had->{generation_tokens}) / 3;

    note(sprintf '%d steps for the prompt, %.0f tokens for each stream',
         $steps, $tokens);

    cmp_ok($steps, '>=', 8, 'it is computed in pieces');
    cmp_ok($tokens, '>=', 0.9 * $steps, 'in steps with a token for each');
    cmp_ok($size / $steps, '>=', 8, 'nor do they starve it');

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
