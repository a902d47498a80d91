#!/usr/bin/perl

# Hundreds of streams that wait on one worker: 16 kB each or less, /health
# answers all the while, and each gets its answer in the end.  Ten thousand
# that run: ./build.sh bench streams.

use strict;
use warnings;

use LLM::Test;
use Test::More;

my $STREAMS = 800;

# sanitizers have their own idea of memory
my $KB = 16 * ($LLM::Test::SLOW > 1 ? 8 : 1);

my $t = LLM::Test->new(connections => $STREAMS + 100,
    listen => "backlog=$STREAMS",
    http => 'llm_heartbeat 300ms;',
    model => 'llm_model demo ' . LLM::Test::random_model(2, 40960)
           . " threads=1 parallel=1 ctx=8192; llm_queue @{[ $STREAMS + 5 ]};"
           . ' llm_shared_memory 1m;')->start;

my ($pid) = $t->workers;

# all pages of the cache have been used, or they would be counted below

$t->post('/v1/completions', { prompt => [ map { 300 + $_ % 1000 } 1 .. 8100 ],
                              max_tokens => 1 });

# these keep the only place for a while

my @long = map { $t->open_long(max_tokens => 8000) } 1 .. 6;

$long[0]->event;

my $before = LLM::Test::holds($pid);
my @waiting = map {
    $t->open_chat("Which number comes after $_?", max_tokens => 1,
                  ignore_eos => \1)
} 1 .. $STREAMS;

ok(LLM::Test::wait_for(60, sub { $t->figures->{waiting} >= $STREAMS }),
   "$STREAMS streams wait") or diag($t->figures->{waiting});

# the first heartbeats open the streams

$_->event for @waiting;

# how fast that is, t/bench/streams.pl tells

is(scalar(grep { $t->get('/health')->{status} == 200 } 1 .. 100), 100,
   '/health answers meanwhile');

my $held = LLM::Test::holds($pid);
my $each = ($held->{own} - $before->{own}) / $STREAMS;

cmp_ok($each, '<', $KB, sprintf 'a stream that waits takes %.1f kB', $each);

$_->close for @long;

my $whole = grep {
    my @events = $_->events;
    ($events[-1]{data} // '') eq '[DONE]'
} @waiting;

is($whole, $STREAMS, 'each one gets its answer');

ok(LLM::Test::wait_for(10, sub {
    LLM::Test::holds($pid)->{fds} <= $before->{fds}
}), 'and is closed');

$t->stop;

done_testing();
