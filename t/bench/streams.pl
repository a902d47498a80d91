#!/usr/bin/perl

# Thousands of concurrent streams on one worker, with a generator of tokens
# instead of a model (device=synthetic, built with LLM_TEST=1):
#
#   ./build.sh bench streams [STREAMS [SECONDS [PER_CONNECTION]]]
#
# When all streams run, measures for SECONDS: the worker's memory per stream,
# its CPU time per token event (user and system time of the event loop, and the
# time of the whole process with the engine's threads), its wake-ups and writes
# compared with the engine's steps, and the response time of /health.  Then
# t/bench/write.c measures a bare write of as many bytes.
#
# A stream takes a file descriptor of the worker: 20,000 streams need a hard
# limit of 21,000 open files (ulimit -Hn), or the right to raise it.  The
# clients are processes of at most 15,000 streams, each with an address of its
# own (127.0.0.2, ...), as an address has 28,000 ports.
#
# With PER_CONNECTION, streams are HTTP/2's, so many on each connection, of one
# client, h2load (Debian's package nghttp2-client).  These need few files.

use strict;
use warnings;

use LLM::JSON;
use List::Util qw(min);
use LLM::Test;
use POSIX qw(ceil);
use Time::HiRes qw(sleep time);

my ($streams, $seconds, $each) = (@ARGV, undef, undef, undef);

$streams ||= 10_000;
$seconds ||= 20;
$each ||= 0;

my $RATE = 2;                           # tokens per second of a stream
my $OPEN = 1000;                        # streams opened per second
my $PART = 15_000;                      # most streams of a load generator
my $TICKS = POSIX::sysconf(&POSIX::_SC_CLK_TCK);

# enough for each stream to run until all are opened and the measurement ends
my $tokens = $RATE * (ceil($streams / $OPEN) * 3 + $seconds + 10);


# seconds of CPU time of the process, and of its first thread in user mode and
# in the kernel

sub cpu {
    my ($pid) = @_;

    my ($all, $loop) = map {
        open my $f, '<', $_ or die "$_: $!";
        my @v = split ' ', (<$f> =~ s/^.*\) //sr);
        [map { $_ / $TICKS } @v[11, 12]]
    } "/proc/$pid/stat", "/proc/$pid/task/$pid/stat";

    return ($all->[0] + $all->[1], @$loop);
}


# a command after ulimit -n, if the limit can be raised to n

sub with_files {
    my ($n, @command) = @_;

    return ('sh', '-c', 'ulimit -n "$0" && exec "$@"', $n, @command);
}


sub quantile {
    my ($q, @sorted) = @_;

    return $sorted[int($q * $#sorted + 0.5)] // 0;
}


sub sample {
    my ($t, $pid) = @_;

    my $f = $t->figures;
    my ($all, $user, $system) = cpu($pid);

    return { %{ $f->{workers}[0] }, steps => $f->{steps}, all => $all,
             user => $user, system => $system, time => time };
}


my $connections = $each ? ceil($streams / $each) : $streams;
my $need = $connections + 1000;

die "streams: h2load is not there (Debian's package nghttp2-client)\n"
    if $each && system('command -v h2load > /dev/null');

system(with_files($need, 'true')) == 0
    or die "streams: $connections connections need $need open files: raise"
         . " the hard limit (ulimit -Hn), or say how many streams\n";

my $t = LLM::Test->new(
    # nginx closes idle connections when a sixteenth is left, and those of which
    # it has not read the request yet
    connections => int(1.1 * $connections) + 1000,
    main => "worker_rlimit_nofile $need;",
    http => 'access_log off;',
    listen => 'backlog=16384',
    server => $each ? 'listen 127.0.0.1:%%PORT2%% http2;'
                      . " http2_max_concurrent_streams $each;"
                      . " keepalive_requests $each;" : '',
    model => "llm_model demo %%ROOT%%/models/demo.gguf ctx=512"
           . " parallel=$streams device=synthetic:$RATE default;"
           . " llm_queue $streams;");

$t->start;

my ($pid) = $t->workers;
my $before = LLM::Test::holds($pid)->{own};

# ---- open all streams

sub h2load {
    open my $f, '>', "$t->{dir}/ask.json" or die "ask.json: $!";
    print $f qq({"prompt":"a","stream":true,"max_tokens":$tokens});
    close $f or die "ask.json: $!";

    return ('h2load', '-n', $streams, '-c', $connections, '-m', $each,
            '-r', ceil($OPEN / $each), '-T', 300, '-N', 300,
            '-d', "$t->{dir}/ask.json", '-H', 'Content-Type: application/json',
            "http://127.0.0.1:$t->{port2}/v1/completions");
}


# the i-th client, of n streams

sub load {
    my ($i, $n) = @_;

    return with_files($n + 100, "$LLM::Test::OBJS/load",
                      '-u', '127.0.0.1:' . $t->port, '-j', '-c', $n,
                      '-s', '127.0.0.' . (2 + $i), '-o', $tokens,
                      '-r', $OPEN * $n / $streams);
}


my @clients = $each ? [ h2load() ]
              : map { [ load($_, min($PART, $streams - $_ * $PART)) ] }
                0 .. ceil($streams / $PART) - 1;
my (@loads, @out);

for my $client (@clients) {
    push @loads, open(my $out, '-|', @$client) || die "$client->[0]: $!";
    push @out, $out;
}

printf "== %d streams on one worker, %d tokens per second each%s\n", $streams,
       $RATE, $each ? ", $each on each of $connections connections" : '';

my $running = 0;

LLM::Test::wait_for(120 + $streams / 100, sub {
    sleep 0.5;
    my $f = $t->figures;
    $running = $f->{running};
    $f->{time_to_first_token}{count} >= $streams
        || grep { !kill 0, $_ } @loads;
});

# ---- measure

my ($from, @health) = (sample($t, $pid));
my $end = time + $seconds;
my @parts = ($from);                    # a sample every two seconds

while (time < $end) {
    my $begin = time;

    push @parts, sample($t, $pid) if $begin - $parts[-1]{time} >= 2;

    $t->get('/health')->{status} == 200 or die 'not healthy';
    push @health, 1000 * (time - $begin);
    sleep 0.02;
}

my $to = sample($t, $pid);

# microseconds of each period for an event, in ascending order: other programs
# on the machine only make it longer

sub periods {
    my ($what) = @_;

    return sort { $a <=> $b } map {
        my ($p, $q) = @parts[$_ - 1, $_];
        my $events = $q->{token_events} - $p->{token_events};
        $events ? 1e6 * ($q->{$what} - $p->{$what}) / $events : ();
    } 1 .. $#parts;
}

my $kb = LLM::Test::holds($pid)->{own} - $before;
my %d = map { $_ => $to->{$_} - $from->{$_} } keys %$to;

# ---- wait for the end

my %sum;

for my $out (@out) {
    my $said = join '', <$out>;

    close $out;

    if ($each) {
        my ($all, $good) = $said =~ /^requests: (\d+) total,.* (\d+) succeeded/m
            or die "h2load: $said";

        %sum = (errors => $all - $good, requests => $all);
        next;
    }

    my $json = decode_json($said || '{}');
    $sum{$_} += $json->{$_} // 1 for qw(errors requests tokens bytes);
}

@health = sort { $a <=> $b } @health;

printf "streams running  %d of %d\n", $running, $streams;
printf "errors           %d of %d requests\n", @sum{qw(errors requests)};
printf "memory           %.2f kB per stream (%.1f MB, without the rings)\n",
       $kb / $streams, $kb / 1024;
printf "token events     %.0f per second\n", $d{token_events} / $d{time};

if ($d{token_events}) {
    printf "CPU time         %.2f us per token event with the engine's"
         . " threads\n", 1e6 * $d{all} / $d{token_events};

    for (['in user mode', 'user'], ['in the kernel', 'system']) {
        my ($where, $what) = @$_;
        my @us = periods($what);

        printf "event loop       %.2f us per token event %s, %.2f to %.2f in"
             . " periods of 2 s\n", 1e6 * $d{$what} / $d{token_events},
               $where, $us[0] // 0, $us[-1] // 0;
    }
}

printf "wake-ups         %d for %d steps\n", @d{qw(wakeups steps)};
printf "writes           %d for %d token events\n",
       @d{qw(writes token_events)};
printf "/health          p50 %.1f ms, p99 %.1f ms, max %.1f ms of %d\n",
       quantile(0.5, @health), quantile(0.99, @health),
       $health[-1] // 0, scalar @health;
my $alerts = $t->alerts;

print "the error log:\n$alerts" if $alerts ne '';

$t->kill('TERM');
LLM::Test::wait_for(15, sub { $t->ended });

exit($sum{errors} || $alerts ne '' ? 1 : 0) if $each;

# ---- a bare write, with the machine as it is now

my $bytes = POSIX::floor($sum{bytes} / ($sum{tokens} || 1));
my $sockets = $streams < $PART ? $streams : $PART;
my $write = qx($LLM::Test::OBJS/write $bytes $sockets 3);

printf "a bare write     %.2f us of user and %.2f us of system time for %d"
     . " bytes\n", split(' ', $write), $bytes if $write ne '';

exit($sum{errors} || $alerts ne '' ? 1 : 0);
