#!/usr/bin/perl

# Token quotas with several workers: 64 clients take no token more than there
# are; a worker that is killed, with or without the engine, and a reload leave
# no reservation behind.

use strict;
use warnings;

use IO::Select;
use LLM::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my ($CLIENTS, $WORKERS) = (64, 3);

my $t;

sub server {
    my ($zone, $limit, %opt) = @_;

    $t = LLM::Test->new(workers => $WORKERS, listen => 'reuseport',
        http => "llm_token_zone all zone=z:1m $zone; llm_queue 200;",
        location => "llm_token_limit zone=z $limit;"
                    . ' add_header X-Worker $pid always;', %opt)->start;
}

sub left { $t->get('/v1/models')->{headers}{'x-ratelimit-remaining-tokens'} }

# asks and asks, from as many clients at a time, until done($status) says so;
# returns the tokens of the answers, and how many were served and refused

sub storm {
    my ($done, %fields) = @_;

    my (%client, $tokens, @count);
    my $select = IO::Select->new;
    my $n = 0;

    my $open = sub {
        my $c = LLM::Client->open(port => $t->port, method => 'POST',
            path => '/v1/completions', body => {
                prompt => join(' ', ('a') x (1 + $n % 7)),
                max_tokens => 3 + $n++ % 11, ignore_eos => \1, %fields });

        $client{$c->{socket}} = $c;
        $select->add($c->{socket});
    };

    $tokens = 0;
    @count = (0, 0);
    $open->() for 1 .. $CLIENTS;

    while ($select->count) {
        for my $s ($select->can_read(60)) {
            my $res = delete($client{$s})->response;

            $select->remove($s);

            if ($res->{status} == 200) {
                $tokens += $res->{json}{usage}{total_tokens};
                $count[0]++;

            } else {
                BAIL_OUT("status $res->{status}: $res->{body}")
                    if $res->{status} != 429
                       || $res->{json}{error}{code} ne 'rate_limit_exceeded';
                $count[1]++;
            }

            $open->() unless $done->(\@count);
        }
    }

    return ($tokens, @count);
}


# ---- not one token more ----

# nothing comes back in time: what is taken and what is left are all there was

server('rate=1/h', 'burst=2000');

my ($tokens, $served, $refused) = storm(sub { $_[0][1] >= 200 });

ok($served > 100, "$served requests served by $WORKERS workers");
is($tokens + left(), 2000, 'what was taken and what is left: what there was');
cmp_ok(left(), '<', 7 + 13, 'less is left than a request needs');

$t->stop;

# a rate: what all have taken in a time

my $rate = 100;

server("rate=$rate/s", 'burst=500');

my $begin = time;

($tokens, $served, $refused) = storm(sub { time > $begin + 3 });

my $seconds = time - $begin;

cmp_ok($tokens, '<=', 500 + $rate * $seconds,
       sprintf('%d tokens in %.2f s, of at most %.0f', $tokens, $seconds,
               500 + $rate * $seconds));
ok($refused > 0, "$refused requests refused meanwhile");
cmp_ok($tokens, '>=', 500, 'the burst was taken');

$t->stop;


# ---- who dies leaves no reservation ----

# streams whose clients do not read: what they reserve is known

sub streams {
    my ($n) = @_;

    return map {
        my $c = LLM::Client->open(port => $t->port, method => 'POST',
            path => '/v1/completions', rcvbuf => 4096,
            body => { prompt => 'a', stream => \1, ignore_eos => \1,
                      logprobs => 5, max_tokens => 1400 });
        $c;
    } 1 .. $n;
}

sub serving {
    my $f = $t->figures;
    return $f->{running} + $f->{parked};
}

for my $whom ('another worker', 'the engine', 'every worker') {
    server('rate=1/h', 'burst=100000', http => join("\n",
        'llm_token_zone all zone=z:1m rate=1/h; llm_queue 200;',
        'llm_stream_buffer 8k;'), listen => 'reuseport sndbuf=16k');

    my $engine = $t->engine_worker;
    my @open = streams(12);

    ok(LLM::Test::wait_for(30, sub { left() < 100000 - 12 * 1400 }),
       "$whom: streams hold what they may use");
    ok(LLM::Test::wait_for(60, sub { $t->figures->{parked} == 12 }),
       "$whom: and have used what their buffers take");

    my @old = $t->workers;
    my @dead = $whom eq 'the engine' ? $engine
             : $whom eq 'every worker' ? @old
             : grep { $_ != $engine } @old;

    CORE::kill('KILL', @dead);

    ok(LLM::Test::wait_for(30, sub {
        my @now = $t->workers;
        @now == $WORKERS && !grep { my $d = $_; grep { $d == $_ } @now } @dead
    }), "$whom: killed, others take their place");

    $_->close for @open;

    # of 12 streams no more than their buffers hold was computed

    ok(LLM::Test::wait_for(30, sub { left() > 100000 - 12 * 700 }),
       "$whom: what was not used comes back") or diag(left());

    my $used = 100000 - left();

    cmp_ok($used, '>=', $whom eq 'another worker' ? 12 : 0,
           "$whom: $used tokens were used");

    ok($t->wait_ready, "$whom: and it serves on");

    my $before = left();
    my $res = $t->post('/v1/completions', { prompt => 'a', max_tokens => 9,
                                            ignore_eos => \1 });
    is($res->{status}, 200, "$whom: a request");
    is(left(), $before - 10, "$whom: pays as before");

    $t->stop(allow => qr/exited on signal 9/);
}


# ---- killed again and again, while all of them take ----

server('rate=1/h', 'burst=1000000');

my $engine = $t->engine_worker;
my (@live, $got);
my $deadline = time + 60;
my $kills = 0;

while ($kills < 25 && time < $deadline) {
    push @live, $t->open_long(max_tokens => 40) while @live < 24;

    for my $c (splice @live, 0, 12) {
        while (my $e = eval { $c->event }) {
            last if $e->{data} && $e->{data} eq '[DONE]';
        }
    }

    my ($victim) = grep { $_ != $engine } $t->workers;

    if ($victim) {
        CORE::kill('KILL', $victim);
        $kills++;
    }
}

is($kills, 25, '25 workers killed under load');

$_->close for @live;

ok(LLM::Test::wait_for(60, sub { serving() == 0 }), 'all streams have ended');

# the last one's reservations come back when its successor starts

my %serves;

ok(LLM::Test::wait_for(60, sub {
    $serves{$t->get('/v1/models')->{headers}{'x-worker'}} = 1;
    my @now = $t->workers;
    return @now == $WORKERS && !grep { !$serves{$_} } @now;
}), 'all workers serve');

my $rest = left();

is($t->post('/v1/completions', { prompt => 'a', max_tokens => 9,
                                 ignore_eos => \1 })->{status},
   200, 'a request is served');
is(left(), $rest - 10, 'and pays what it costs');

my $reload = $t->reload;
is(left(), $rest - 10, 'a reload keeps accounts');

$t->stop(allow => qr/exited on signal 9/);


done_testing();
