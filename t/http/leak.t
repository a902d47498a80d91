#!/usr/bin/perl

# After thousands of requests of all kinds the worker holds no more
# descriptors, and no more memory, than after a hundred; the master holds no
# more after many reloads.

use strict;
use warnings;

use LLM::Test;
use Test::More;

my $MORE = 3000;


sub fds {
    my ($pid) = @_;
    my @fds = glob "/proc/$pid/fd/*";

    return scalar @fds;
}


sub rss {
    my ($pid) = @_;

    open my $f, '<', "/proc/$pid/status" or return 0;
    my ($kb) = join('', <$f>) =~ /^VmRSS:\s+(\d+)/m;

    return $kb;
}


sub zones {
    my ($pid) = @_;

    open my $f, '<', "/proc/$pid/maps" or return 0;

    return scalar grep { m{^\S+ rw-s .*/dev/zero} } <$f>;
}


my $t = LLM::Test->new->start;
my ($worker) = $t->workers;

my @kinds = (
    sub { $t->post('/v1/completions', { prompt => 'a', max_tokens => 1 }) },
    sub { $t->open('/v1/completions',
                   { prompt => 'b', max_tokens => 2, stream => \1 })
             ->events },
    sub { $t->open('/v1/completions',
                   { prompt => 'c', stream => \1, ignore_eos => \1,
                     max_tokens => 500 })->close },
    sub { $t->post('/v1/completions', '{"prompt": [') },
    sub { $t->post('/v1/chat/completions', { messages => 5 }) },
    sub { $t->get('/v1/models') },
    sub { $t->get('/health') },
);

sub rounds {
    my ($n) = @_;

    $kinds[$_ % @kinds]->() for 1 .. $n;

    # the last cancelled stream gives its place back
    $kinds[0]->();
}

rounds(700);

my ($fds, $rss) = (fds($worker), rss($worker));

rounds($MORE);

ok(LLM::Test::wait_for(5, sub { fds($worker) <= $fds }),
   "as many descriptors after $MORE requests more")
    or diag("$fds, then " . fds($worker));

# what is freed stays in ASan's quarantine for a while

cmp_ok(rss($worker), '<', $rss + 4096 * ($LLM::Test::SLOW > 1 ? 32 : 1),
       'no more memory, but for 4 MB of noise');

# ---- the master

$t->reload for 1 .. 3;
LLM::Test::wait_for(20, sub { $t->workers == 1 });
sleep 1;                                # the master has to notice, too

my ($mfds, $mrss, $zones) = (fds($t->{pid}), rss($t->{pid}),
                             zones($t->{pid}));

for my $round (1 .. 10) {
    $t->reload;
    LLM::Test::wait_for(20, sub { $t->workers == 1 });
}

ok(LLM::Test::wait_for(5, sub { fds($t->{pid}) <= $mfds }),
   'the master: as many descriptors after reloads')
    or diag("$mfds, then " . fds($t->{pid}));
cmp_ok(rss($t->{pid}), '<',
       $mrss + 2048 * ($LLM::Test::SLOW > 1 ? 32 : 1),
       'the master: no more memory, but for 2 MB of noise');

is(zones($t->{pid}), $zones, 'the master: as many zones are mapped');

$t->stop;

done_testing();
