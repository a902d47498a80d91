#!/usr/bin/perl

# Clients that come and go at random moments, over HTTP/1.1 and HTTP/2, while
# workers are killed: afterwards no place, no page and no entry of the queue
# is lost, and the texts are what they were.

use strict;
use warnings;

use LLM::H2;
use LLM::Test;
use POSIX ();
use Socket qw(SHUT_WR);
use Test::More;
use Time::HiRes qw(sleep);

my $seed = $ENV{LLM_SEED} // time;

diag("LLM_SEED=$seed");

my $t = LLM::Test->new(workers => 3, listen => 'reuseport', pace => 0.5,
    server => 'listen 127.0.0.1:%%PORT2%% http2 reuseport;',
    model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=1 parallel=4'
           . ' ctx=4096; llm_queue 16;')->start;

my %ask = (prompt => 'one two', temperature => 0, ignore_eos => \1,
           max_tokens => 30);
my $text = $t->post('/v1/completions', \%ask)->{json}{choices}[0]{text};
my %long = (%ask, max_tokens => 900, stream => \1);


sub come_and_go {
    my $s = $t->open_long(max_tokens => 900);

    eval { $s->event or last for 1 .. rand 5 };

    if (rand 3 < 1) {
        shutdown $s->{socket}, SHUT_WR;
    }

    $s->close(reset => rand 2 < 1);
}


sub go_early {
    my $s = $t->open('/v1/completions', { %long, n => 1 + int rand 3,
                                          stream => rand 2 < 1 ? \1 : \0 });

    sleep rand 0.01;
    $s->close;
}


sub streams_of_one {
    my $c = LLM::H2->new(port => $t->{port2});
    my @ids = map { $c->post('/v1/completions', \%long) } 1 .. 1 + rand 5;

    sleep rand 0.02;
    $c->rst($_) for grep { rand 2 < 1 } @ids;

    # the connection goes with what is left
}


# one that stays: what is said of it

sub stay {
    my $res = $t->post('/v1/completions', \%ask);

    return if $res->{status} == 429 || $res->{status} == 503
              || $res->{status} == 0;        # its worker was killed

    die "status $res->{status}: $res->{body}\n" if $res->{status} != 200;
    die "another text\n" if !$res->{truncated}
                            && $res->{json}{choices}[0]{text} ne $text;
}


sub client {
    my ($n, $rounds) = @_;

    my $pid = fork // die "fork: $!";

    return $pid if $pid;

    srand $seed + $n;

    my @kinds = (\&come_and_go, \&go_early, \&streams_of_one, \&stay);

    for (1 .. $rounds) {
        next if eval { $kinds[rand @kinds]->(); 1 };
        next if $@ =~ /^(?:connect|no answer)/;
        print STDERR "# $@";
        POSIX::_exit(1);
    }

    POSIX::_exit(0);
}


# ---- everything is given back

sub calm {
    my ($name) = @_;

    my $f;

    ok(LLM::Test::wait_for(20, sub {
        $f = $t->figures;
        !grep { $f->{$_} } qw(running waiting parked kv_pages_used)
    }), "$name: nothing runs, waits, or holds a page") or diag(explain($f));

    # four run, sixteen wait, one is too many; the four are not at their ends
    # soon, and not parked, for they are read

    my @held = map { $t->open_long(max_tokens => 4000) } 1 .. 4;

    $_->event for @held;
    push @held, map { $t->open_long(max_tokens => 4000) } 1 .. 16;

    ok(LLM::Test::wait_for(20, sub {
        LLM::Client::read_ready(@held);
        $f = $t->figures;
        $f->{running} == 4 && $f->{waiting} == 16
            && $t->post('/v1/completions', \%ask)->{status} == 429
    }), "$name: all places and all of the queue are there")
        or diag(explain($f));

    $_->close for @held;

    ok(LLM::Test::wait_for(20, sub {
        my $res = $t->post('/v1/completions', \%ask);

        $res->{status} == 200 && $res->{json}{choices}[0]{text} eq $text
    }), "$name: the same text");
}


sub ended {
    my ($name, @pids) = @_;

    for (@pids) {
        waitpid $_, 0;
        is($?, 0, "$name: a client");
    }
}


for my $round (1 .. 3) {
    my @pids = map { client(10 * $round + $_, 60) } 1 .. 3;

    ended("round $round", @pids);
    calm("round $round");
}

for my $round (4 .. 6) {
    my $engine = $t->engine_worker;
    my @pids = map { client(10 * $round + $_, 60) } 1 .. 3;

    for (1 .. 3) {
        sleep 0.1;
        my @clients = grep { $_ != $engine } $t->workers;
        $t->kill('KILL', $clients[rand @clients]) if @clients;
    }

    ended("round $round", @pids);

    ok(LLM::Test::wait_for(20, sub { $t->workers == 3 }),
       "round $round: three workers");
    is($t->engine_worker, $engine, "round $round: the engine is the same");
    calm("round $round, workers killed");
}

# the engine itself: what it had counted counts no more

for my $round (7 .. 9) {
    my @pids = map { client(10 * $round + $_, 60) } 1 .. 3;

    for (1 .. 2) {
        sleep 0.2;
        $t->kill('KILL', $t->engine_worker);
    }

    ended("round $round", @pids);

    ok($t->wait_ready, "round $round: the engine is there again");
    ok(LLM::Test::wait_for(20, sub { $t->workers == 3 }),
       "round $round: three workers");
    calm("round $round, the engine killed");
}

$t->stop(allow => 'exited on signal 9');

done_testing();
