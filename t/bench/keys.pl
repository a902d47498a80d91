#!/usr/bin/perl

# Files of 100,000 API keys: a worker's memory for one, the time of a look-up,
# and how long the event loop is blocked when the file is replaced.  A client
# sends one request after another, first while the file stays the same, then
# while it changes.  The client's times depend on the load of the machine; the
# CPU time of the worker's first thread, which runs the event loop, does not.
# The CPU time of a change, over all turns of the loop, is an upper bound of the
# longest turn.
# LLM_BENCH_SECONDS: duration of each measurement (10); LLM_BENCH_KEYS: keys.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use File::Copy qw(copy);
use LLM::Test;
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);

my $seconds = $ENV{LLM_BENCH_SECONDS} // 10;
my $n = $ENV{LLM_BENCH_KEYS} // 100_000;

my $t = LLM::Test->new(model => '', locations => <<'END');
        llm_api_keys keys check=100ms;
        keepalive_requests 10000000;
        location = /gif { empty_gif; }
END
my $dir = $t->dir;

my @lines = map {
    sprintf qq({"id": "key-%d", "sha256": "%s", "tenant": "t%d", )
            . qq("plan": "gold", "expires": "2099-12-31"}\n),
            $_, sha256_hex("secret-$_"), $_ / 3
} 1 .. $n;

$t->write_file('keys', $lines[-1]);
$t->write_file('good', join '', @lines);
$t->write_file('first', join '', @lines);

$t->start(cold => 1);

my ($worker) = $t->workers;

sub accepted {
    return $t->get('/gif', headers => { 'X-Api-Key' => 'secret-7' })->{status}
           == 200;
}

my $one = LLM::Test::holds($worker)->{own};

rename "$dir/first", "$dir/keys" or die "rename: $!";
LLM::Test::wait_for(60, \&accepted) or die 'the keys are not read';

printf "%d keys: %.1f MB in the worker\n", $n,
       (LLM::Test::holds($worker)->{own} - $one) * 1024 / 1e6;

system("$LLM::Test::OBJS/lookup", "$dir/good", $n) == 0
    or die 'no look-ups';


# CPU time of the event loop's thread, in nanoseconds

sub cpu {
    open my $f, '<', "/proc/$worker/task/$worker/schedstat" or die "proc: $!";

    return (split ' ', scalar <$f>)[0];
}


# sends one request after another; returns the milliseconds of each, sorted

sub ask {
    my ($tick) = @_;

    my $sock = LLM::Client::connect_to($t->port);
    my $end = time + $seconds;
    my @ms;

    while (time < $end) {
        my $begin = time;
        my $got = '';

        syswrite $sock, "GET /gif HTTP/1.1\r\nHost: a\r\n"
                        . "X-Api-Key: secret-7\r\n\r\n";

        while ($got !~ /GIF89a.*\x3b\z/s && sysread($sock, my $piece, 4096)) {
            $got .= $piece;
        }

        die "not an answer: $got" unless $got =~ m{^HTTP/1.1 200};

        push @ms, (time - $begin) * 1000;
        $tick->();
    }

    return sort { $a <=> $b } @ms;
}


# Replaces the file once per second.  The copies are made before, so that the
# measurement includes only a rename.

my $changes = 0;
my @ready = map { copy("$dir/good", "$dir/new-$_") && "$dir/new-$_" }
            1 .. $seconds + 1;
my $last;

sub change {
    return if time < $last + 1;

    $last = time;
    rename shift(@ready), "$dir/keys" or die "rename: $!";
    $changes++;
}


sub report {
    my ($name, @ms) = @_;

    printf "%-14s %7d requests, median %.3f ms, 99.9 %% %.3f ms, "
           . "longest %.3f ms\n", $name, scalar @ms, $ms[@ms / 2],
           $ms[@ms * 0.999], $ms[-1];
}

report('file stays:', ask(sub { }));

$last = 0;
report('file changes:', ask(\&change));
printf "%d changes of %d keys\n", $changes, $n;

# milliseconds of the event loop's CPU time without requests

sub idle {
    my ($each) = @_;

    my $begin = cpu();

    $last = time;
    $changes = 0;
    @ready = map { copy("$dir/good", "$dir/new-$_") && "$dir/new-$_" }
             1 .. $seconds + 1;

    my $end = time + $seconds;

    while (time < $end) {
        sleep 0.01;
        $each->();
    }

    return (cpu() - $begin) / 1e6;
}

my $without = idle(sub { });
my $with = idle(\&change);

printf "event loop's CPU time in %d s: %.1f ms without changes, %.1f ms with "
       . "%d: %.2f ms per change\n", $seconds, $without, $with,
       $changes, ($with - $without) / ($changes || 1);

cmp_ok($changes, '>', 0, 'the file has changed');

my $read = () = $t->log =~ /\[notice\].* keys from /g;

ok($read > 0, "and was read $read times");
$t->stop;

done_testing();
