#!/usr/bin/perl

# Thousands of concurrent streams on one worker, with a generator of tokens
# instead of a model (device=synthetic, built with LLM_TEST=1):
#
#   ./build.sh bench streams [STREAMS [SECONDS]]
#
# When all streams run, measures for SECONDS: the worker's memory per stream,
# its CPU time per token event (of the event loop, and of the whole process with
# the engine's threads), its wake-ups and writes compared with the engine's
# steps, and the response time of /health.

use strict;
use warnings;

use LLM::JSON;
use LLM::Test;
use POSIX qw(ceil);
use Time::HiRes qw(sleep time);

my ($streams, $seconds) = (@ARGV, undef, undef);

$streams ||= 10_000;
$seconds ||= 20;

my $RATE = 2;                           # tokens per second of a stream
my $OPEN = 1000;                        # streams opened per second
my $TICKS = POSIX::sysconf(&POSIX::_SC_CLK_TCK);

# enough for each stream to run until all are opened and the measurement ends
my $tokens = $RATE * (ceil($streams / $OPEN) * 3 + $seconds + 10);


# seconds of CPU time of the process, and of its first thread

sub cpu {
    my ($pid) = @_;

    return map {
        open my $f, '<', $_ or die "$_: $!";
        my @v = split ' ', (<$f> =~ s/^.*\) //sr);
        ($v[11] + $v[12]) / $TICKS
    } "/proc/$pid/stat", "/proc/$pid/task/$pid/stat";
}


sub quantile {
    my ($q, @sorted) = @_;

    return $sorted[int($q * $#sorted + 0.5)] // 0;
}


sub sample {
    my ($t, $pid) = @_;

    my $f = $t->figures;
    my ($all, $loop) = cpu($pid);

    return { %{ $f->{workers}[0] }, steps => $f->{steps}, all => $all,
             loop => $loop, time => time };
}


my $need = $streams + 1000;

my $t = LLM::Test->new(
    connections => $need,
    main => "worker_rlimit_nofile $need;",
    http => 'access_log off;',
    listen => 'backlog=16384',
    model => "llm_model demo %%ROOT%%/models/demo.gguf ctx=512"
           . " parallel=$streams device=synthetic:$RATE default;"
           . " llm_queue $streams;");

$t->start;

my ($pid) = $t->workers;
my $before = LLM::Test::holds($pid)->{own};

# ---- open all streams

my @load = ("$LLM::Test::OBJS/load", '-u', '127.0.0.1:' . $t->port, '-j',
            '-c', $streams, '-o', $tokens, '-r', $OPEN);
my $load = open(my $out, '-|', @load) or die "$load[0]: $!";

printf "== %d streams on one worker, %d tokens per second each\n", $streams,
       $RATE;

my $running = 0;

LLM::Test::wait_for(120 + $streams / 100, sub {
    sleep 0.5;
    my $f = $t->figures;
    $running = $f->{running};
    $f->{time_to_first_token}{count} >= $streams || !kill 0, $load;
});

# ---- measure

my ($from, @health) = (sample($t, $pid));
my $end = time + $seconds;

while (time < $end) {
    my $begin = time;

    $t->get('/health')->{status} == 200 or die 'not healthy';
    push @health, 1000 * (time - $begin);
    sleep 0.02;
}

my $to = sample($t, $pid);
my $kb = LLM::Test::holds($pid)->{own} - $before;
my %d = map { $_ => $to->{$_} - $from->{$_} } keys %$to;

# ---- wait for the end

my $json = decode_json(join('', <$out>) || '{}');

close $out;

@health = sort { $a <=> $b } @health;

printf "streams running  %d of %d\n", $running, $streams;
printf "errors           %d of %d requests\n", $json->{errors} // -1,
       $json->{requests} // 0;
printf "memory           %.2f kB per stream (%.1f MB, without the rings)\n",
       $kb / $streams, $kb / 1024;
printf "token events     %.0f per second\n", $d{token_events} / $d{time};

if ($d{token_events}) {
    printf "CPU time         %.2f us per token event in the event loop,"
         . " %.2f us with the engine's threads\n",
           map { 1e6 * $d{$_} / $d{token_events} } qw(loop all);
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

exit(($json->{errors} // 1) || $alerts ne '' ? 1 : 0);
