#!/usr/bin/perl

# After 10,000 requests of all kinds the worker holds no more descriptors,
# and no more memory, than after a hundred; the master holds no
# more after many reloads.

use strict;
use warnings;

use LLM::Test;
use Test::More;

# What is there from the start, but touched by and by only, is small and soon
# used: the pages of the cache, the rings.

my $t = LLM::Test->new(model => 'llm_model demo %%ROOT%%/models/demo.gguf'
    . ' threads=1 parallel=2 ctx=640; llm_shared_memory 512k;')->start;

$t->post('/v1/completions', { prompt => "$_ ", max_tokens => 600,
                              ignore_eos => \1 }) for 1 .. 4;

my ($worker) = $t->workers;

my @kinds = (
    sub { $t->post('/v1/completions', { prompt => 'a', max_tokens => 1 }) },
    sub { $t->open('/v1/completions',
                   { prompt => 'b', max_tokens => 2, stream => \1 })
             ->events },
    sub { $t->open('/v1/completions',
                   { prompt => 'c', stream => \1, ignore_eos => \1,
                     max_tokens => 500 })->close },
    sub { $t->open('/v1/completions',
                   { prompt => 'd', ignore_eos => \1, max_tokens => 500 })
             ->close },
    sub { $t->open_chat('e', max_tokens => 2, logprobs => \1)->events },
    sub { $t->post('/v1/completions', '{"prompt": [') },
    sub { $t->post('/v1/chat/completions', { messages => 5 }) },
    sub { $t->get('/v1/models') },
    sub { $t->get('/health') },
);

sub rounds {
    my ($n) = @_;

    $kinds[$_ % @kinds]->() for 1 .. $n;

    # the last cancelled ones give their places back
    LLM::Test::wait_for(10, sub {
        my $f = $t->figures;
        $f->{running} + $f->{waiting} == 0
    });
}

rounds(100);

my $before = LLM::Test::holds($worker);

# what is freed stays in ASan's quarantine for a while: there it is fewer of
# them, and the limits are wide

my $san = $LLM::Test::SLOW > 1;

rounds($san ? 900 : 9900);

my $after;

ok(LLM::Test::wait_for(5, sub {
    $after = LLM::Test::holds($worker);
    $after->{fds} <= $before->{fds}
}), 'as many descriptors after 10,000 requests as after 100')
    or diag(explain([ $before, $after ]));

my $noise = 1024 * ($san ? 32 : 1);

cmp_ok($after->{kb}, '<', $before->{kb} + $noise,
       'no more memory, but for 1 MB of noise');
diag("the worker: $before->{kb} kB, then $after->{kb} kB");

# ---- the master

$t->reload for 1 .. 3;
LLM::Test::wait_for(20, sub { $t->workers == 1 });
sleep 1;                                # the master has to notice, too

$before = LLM::Test::holds($t->{pid});

for my $round (1 .. 10) {
    $t->reload;
    LLM::Test::wait_for(20, sub { $t->workers == 1 });
}

ok(LLM::Test::wait_for(5, sub {
    $after = LLM::Test::holds($t->{pid});
    $after->{fds} <= $before->{fds}
}), 'the master: as many descriptors after reloads')
    or diag(explain([ $before, $after ]));
cmp_ok($after->{kb}, '<', $before->{kb} + 2 * $noise,
       'the master: no more memory, but for 2 MB of noise');

is($after->{zones}, $before->{zones}, 'the master: as many zones are mapped');

$t->stop;

done_testing();
