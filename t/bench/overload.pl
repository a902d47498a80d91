#!/usr/bin/perl

# Three times as many requests as can be served, under llm_queue ttft=:
#
#   ./build.sh bench overload [TTFT [SECONDS [TIMES]]]
#
# First, as many clients as parallel= allows, each with one request after
# another, measure how many requests per second the machine can serve.  Then
# requests arrive at random times, at TIMES (3) that rate, with prompts and
# answers of random length.  Reports how many were admitted, and how many of
# these had their first token in time, by the access log.

use strict;
use warnings;

use LLM::Test;
use Time::HiRes qw(sleep time);

my ($ttft, $seconds, $times) = (@ARGV, undef, undef, undef);

$ttft ||= 2;
$seconds ||= 60;
$times ||= 3;

my $parallel = 4;

srand 7;

my $t = LLM::Test->new(
    connections => 4096,
    http => 'log_format f "$arg_n $status $llm_error. $llm_ttft";'
          . 'access_log logs/f.log f;',
    model => 'llm_model demo %%ROOT%%/models/demo.gguf ctx=2048'
           . " parallel=$parallel default;"
           . " llm_queue 1000 ttft=${ttft}s;")->start;


# a random request

sub body {
    my $words = 10 + int rand 600;
    my $tokens = 10 + int rand 200;

    return { prompt => join(' ', map { int rand 100 } 1 .. $words),
             max_tokens => $tokens, ignore_eos => \1, stream => \1 };
}


# ---- capacity ----

my $begin = time;
my $n = 0;
my @busy = map { $t->open('/v1/completions', body()) } 1 .. $parallel;

while (time - $begin < $seconds / 3) {
    for my $client (@busy) {
        next unless IO::Select->new($client->{socket})->can_read(0.01);
        $client->response;
        $client = $t->open('/v1/completions', body());
        $n++;
    }
}

my $capacity = $n / (time - $begin);

$_->close for @busy;
LLM::Test::wait_for(60, sub { $t->figures->{running} == 0 });

# ---- overload ----

my @open;

$begin = time;
my $next = $begin;

while ($next < $begin + $seconds) {
    sleep($next - time) if $next > time;
    push @open, $t->open("/v1/completions?n=$#open", body());
    $next -= log(1 - rand) / ($times * $capacity);
}

my $took = time - $begin;
my $came = @open;

$_->response for @open;

my @log;

LLM::Test::wait_for(20, sub {
    @log = $t->log('f.log') =~ /^-?\d+ (.*)$/mg;
    @log >= $came;
});

my @in = grep { /^200/ } @log;
my @late = grep { (split)[2] > $ttft } @in;
my $refused = grep { /^429 overloaded/ } @log;

printf "== capacity %.1f requests per second; load %.1f per second, for %d s\n",
       $capacity, $came / $took, $took;
printf "%d requests: %d admitted (%.1f per second), %d refused, %d other\n",
       $came, scalar @in, @in / $took, $refused, @log - @in - $refused;
printf "first token within %s s: %.2f %% of admitted ones; the latest %.2f s\n",
       $ttft, 100 * (1 - @late / (@in || 1)),
       (sort { $b <=> $a } map { (split)[2] } @in)[0] // 0;

$t->stop;
