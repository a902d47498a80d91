#!/usr/bin/perl

# Two models of one process on the CPUs: what each gives when both answer, and
# what a load of one costs a stream of the other.
#
#   [BEFORE=DIR] ./build.sh bench two [FILE.gguf]
#
#   BEFORE              the objs/ of another build, which takes turns with this
#   LLM_BENCH_REPS      rounds (5)
#   LLM_BENCH_TOKENS    of an answer (48)
#
# Without a file Qwen3-0.6B's shape in Q8_0 with random weights is made.

use strict;
use warnings;

use LLM::Bench;
use LLM::Test;
use Time::HiRes qw(time);

my $reps = $ENV{LLM_BENCH_REPS} || 5;
my $tokens = $ENV{LLM_BENCH_TOKENS} || 48;
my %objs = (this => $LLM::Test::OBJS);

$objs{before} = $ENV{BEFORE} if $ENV{BEFORE};

my $file = LLM::Bench::file(shift);


# a stream of a model, and the times of its events

sub stream {
    my ($t, $model, $n) = @_;

    return LLM::Client->open(port => $t->port, method => 'POST',
        path => '/v1/completions', timeout => 120, light => 1, body => {
            model => $model, prompt => "Once upon a time $model", stream => \1,
            max_tokens => $n, ignore_eos => \1, temperature => 0,
        });
}


# reads them all at once; for each the times of its events

sub times_of {
    my @streams = @_;
    my @times = map { [] } @streams;
    my %open = map { $_ => $_ } 0 .. $#streams;

    while (%open) {
        my @ready = LLM::Client::ready(60, map { $streams[$_] } keys %open);

        die 'no event within a minute' unless @ready;

        for my $i (keys %open) {
            next unless grep { $_ == $streams[$i] } @ready;

            if (defined $streams[$i]->event) {
                push @{ $times[$i] }, time;

            } else {
                delete $open{$i};
            }
        }
    }

    return @times;
}


sub rate {
    my ($times) = @_;

    return $#$times / ($times->[-1] - $times->[0]);
}


sub serve {
    my ($objs, $lazy) = @_;

    $LLM::Test::OBJS = $objs;

    my $t = LLM::Test->new(http => 'access_log off;', model => join(' ', map {
        "llm_model $_ $file ctx=1024 parallel=2 kv_cache=256m device=cpu"
        . ($_ eq 'b' && $lazy ? ' lazy;' : ';')
    } qw(a b)));

    $t->start;

    return $t;
}


# tokens a second of each alone, and of both

sub both {
    my ($objs) = @_;
    my $t = serve($objs, 0);
    my %got;

    times_of(stream($t, 'a', 4));
    times_of(stream($t, 'b', 4));

    my ($alone) = times_of(stream($t, 'a', $tokens));
    my @both = times_of(map { stream($t, $_, $tokens) } qw(a b));

    $t->stop;

    return (alone => rate($alone), both => rate($both[0]) + rate($both[1]));
}


# b is loaded while a has a stream: how long it takes, and a's longest pause

sub load {
    my ($objs, $beside) = @_;
    my $t = serve($objs, 1);

    times_of(stream($t, 'a', 4));

    my $a = $beside ? stream($t, 'a', 1000) : undef;

    if ($a) {
        defined $a->event or die 'no answer' for 1 .. 10;
    }

    my $begin = time;
    my $b = stream($t, 'b', 1);
    my ($last, $most, $n) = (time, 0, 0);

    while (1) {
        my @ready = LLM::Client::ready(60, $b, $a // ());

        if ($a && grep { $_ == $a } @ready) {
            defined $a->event or die "a's stream ended before the load";
            my $now = time;
            $most = $now - $last if $now - $last > $most;
            $last = $now;
            $n++;
        }

        last if grep { $_ == $b } @ready;
    }

    my $took = time - $begin;

    $_ && $_->close for $a, $b;
    $t->stop;

    return $beside ? (beside => $took, pause => 1000 * $most,
                      during => $n / $took) : (loads => $took);
}


my %got;

for my $round (1 .. $reps) {
    for my $build (sort keys %objs) {
        my %g = (both($objs{$build}), load($objs{$build}, 0),
                 load($objs{$build}, 1));

        push @{ $got{$build}{$_} }, $g{$_} for keys %g;
    }
}

(my $base = $file) =~ s{.*/}{};

printf "== two models of %s, medians of %d rounds\n", $base, $reps;
printf "%-34s %s\n", '', join ' ', map { sprintf '%9s', $_ } sort keys %objs;

for my $row ([ alone => 'one answers, tok/s' ],
             [ both => 'both answer, tok/s of both' ],
             [ loads => 'one loads alone, s' ],
             [ beside => 'one loads, the other answers, s' ],
             [ during => 'the answer meanwhile, tok/s' ],
             [ pause => 'its longest pause, ms' ])
{
    printf "%-34s %s\n", $row->[1], join ' ', map {
        sprintf '%9.2f', LLM::Bench::median(@{ $got{$_}{$row->[0]} })
    } sort keys %objs;
}
