#!/usr/bin/perl

# What speculate=ngram gains over HTTP, for one stream: an edit of a file that
# stands in the prompt, and text that does not repeat.  Random weights write no
# edit, so guided_choice makes the answer the edited file: its text is forced,
# and drafts come from the prompt and from the grammar.
#
#   ./build.sh bench speculate [FILE.gguf]
#
#   LLM_BENCH_TOKENS    tokens of an answer (192)
#
# and the variables of t/lib/LLM/Bench.pm.  The same file is served twice, and
# both take turns within a round.  Says the ratio of each pair, so that the
# machine's changes of speed do not count.

use strict;
use warnings;

use LLM::Bench;
use LLM::Test;
use Time::HiRes qw(time);

my $tokens = 0 + ($ENV{LLM_BENCH_TOKENS} || 192);
my $reps = $ENV{LLM_BENCH_REPS} || 5;
my $threads = $ENV{LLM_BENCH_THREADS} || (`nproc` + 0);
my $file = LLM::Bench::file(shift);

my $how = "$file ctx=2048 parallel=4 threads=$threads";

my $t = LLM::Test->new(
    http => 'access_log off;',
    model => "llm_model plain $how; llm_model fast $how speculate=ngram;",
    locations => 'location /v1 { llm_api; } location = /health { llm_health; }'
               . ' location = /figures { llm_metrics json; }')->start;

# a file of a program, and the same one with another name in it

my @lines = map { "    total_$_ = add_up(values[$_], weight_$_, 1$_);" }
                1 .. 60;
my $source = join "\n", @lines;
(my $edited = $source) =~ s/weight_(\d*[05])\b/factor_$1/g;
my $run = 0;


# streams an answer; returns its tokens

sub answer {
    my ($body) = @_;
    my $n;

    my $s = $t->open('/v1/completions', {
        %$body, stream => \1, ignore_eos => \1,
        stream_options => { include_usage => \1 } });

    for my $e ($s->events) {
        my $json = $e->{json} or next;

        $n = $json->{usage}{completion_tokens} if $json->{usage};
    }

    return $n || die "no answer\n";
}


# tokens a second; the prompt is in the cache, so the time is the answer's

sub timed {
    my ($model, $body) = @_;

    answer({ %$body, model => $model, max_tokens => 1 });

    my $start = time;
    my $n = answer({ %$body, model => $model, max_tokens => $tokens });

    return $n / (time - $start);
}


sub body {
    my ($kind) = @_;

    $run++;

    if ($kind eq 'edit') {
        return { prompt => "Edit $run:\n$source\nThe new file:\n",
                 temperature => 0,
                 guided_choice => [ $edited ] };
    }

    return { prompt => "Run $run: tell a story.", temperature => 1,
             seed => $run };
}

for my $kind ('edit', 'plain') {
    my (@ratios, %speeds);

    timed($_, body($kind)) for 'plain', 'fast';

    for my $round (1 .. $reps) {
        my $body = body($kind);
        my %now;

        for my $model ($round % 2 ? ('plain', 'fast') : ('fast', 'plain')) {
            $now{$model} = timed($model, $body);
            push @{ $speeds{$model} }, $now{$model};
        }

        push @ratios, $now{fast} / $now{plain};
    }

    @ratios = sort { $a <=> $b } @ratios;
    my %median = map {
        my @v = sort { $a <=> $b } @{ $speeds{$_} };
        $_ => $v[@v / 2];
    } keys %speeds;

    printf "%-6s without %7.1f tok/s, with %7.1f, ratio %.2f (%.2f to %.2f)\n",
           $kind, $median{plain}, $median{fast}, $ratios[@ratios / 2],
           $ratios[0], $ratios[-1];
}

$t->stop;
