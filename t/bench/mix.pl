#!/usr/bin/perl

# Loads of different kinds: long prompts with short answers, short prompts with
# long answers, and both equal; also by llama-server through the same nginx.
#
#   [LLAMA_SERVER=path] ./build.sh bench mix [FILE.gguf]
#
#   LLM_BENCH_MIX       "PROMPT/ANSWER ..." in tokens ("1024/8 128/128 16/256")
#   LLM_BENCH_CHATS     number of concurrent requests (8)
#
# and the variables of t/lib/LLM/Bench.pm.  Each prompt begins differently, so
# that a prefix cache does not help.

use strict;
use warnings;

use LLM::Bench;

my @mix = split ' ', $ENV{LLM_BENCH_MIX} || '1024/8 128/128 16/256';
my $n = $ENV{LLM_BENCH_CHATS} || 8;
my $longest = 0;

for (@mix) {
    my ($prompt, $answer) = m{^([1-9]\d*)/([1-9]\d*)$}
        or die "not PROMPT/ANSWER: $_\n";
    $longest = $prompt + $answer if $longest < $prompt + $answer;
}

my $b = LLM::Bench->new(file => shift, parallel => $n,
                        ctx => 256 * (int($longest / 256) + 2))->start;
my $runs = 0;


# the prompt: the number of the request, then words of one token each

sub load {
    my ($kind, $mix) = @_;
    my ($prompt, $answer) = split m{/}, $mix;

    $runs++;

    return $b->load("$kind->[1]/completions", {
        prompt => "888 $runs" . ' the' x ($prompt > 6 ? $prompt - 6 : 1),
    }, n => $n, tokens => $answer);
}

my @kinds = ([ 'nginx-llm', '/v1' ]);

push @kinds, [ 'llama-server', '/llama/v1' ] if $b->{llama};

my $got = $b->rounds(kinds => \@kinds, rows => \@mix,
                     warm => sub { load($_[0], '16/1') }, once => \&load);

(my $base = $b->{file}) =~ s{.*/}{};

printf "== %s, %d concurrent requests, lengths in tokens,"
     . " %d threads, median of %d rounds\n", $base, $n, $b->{threads},
       $b->{reps};

exit($b->print_rows($got, title => 'prompt/answer', width => 13,
                    kinds => \@kinds, rows => \@mix) ? 1 : 0);
