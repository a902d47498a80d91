#!/usr/bin/perl

# What a proxy before another server costs: llama-server alone, the same behind
# nginx, and this module in that nginx.
#
#   LLAMA_SERVER=path ./build.sh bench hop [FILE.gguf]
#
#   LLM_BENCH_TOKENS    tokens of an answer (64)
#   LLM_BENCH_CHATS     numbers of concurrent requests ("1 8")
#
# and the variables of t/lib/LLM/Bench.pm.  Each prompt, of about 40 tokens,
# begins differently, so that a prefix cache does not help.

use strict;
use warnings;

use LLM::Bench;

die "set LLAMA_SERVER to the path of llama-server\n" unless $ENV{LLAMA_SERVER};

my $tokens = $ENV{LLM_BENCH_TOKENS} || 64;
my @chats = split ' ', $ENV{LLM_BENCH_CHATS} || '1 8';
my ($most) = sort { $b <=> $a } @chats;
my $b = LLM::Bench->new(file => shift, parallel => $most, ctx => 512)->start;
my $runs = 0;


sub load {
    my ($kind, $n) = @_;
    my (undef, $path, %opt) = @$kind;

    $runs++;

    return $b->load("$path/completions",
                    { prompt => "888 $runs" . ' the' x 34 },
                    n => $n, tokens => $tokens, %opt);
}

my @kinds = ([ 'alone', '/v1', port => $b->{peer} ],
             [ 'behind nginx', '/llama/v1' ], [ 'nginx-llm', '/v1' ]);

my $got = $b->rounds(kinds => \@kinds, rows => \@chats,
                     warm => sub { load($_[0], 1) }, once => \&load);

(my $base = $b->{file}) =~ s{.*/}{};

printf "== %s, answers of %d tokens, %d threads, median of %d rounds\n", $base,
       $tokens, $b->{threads}, $b->{reps};

exit($b->print_rows($got, title => 'at once', width => 8, kinds => \@kinds,
                    rows => \@chats) ? 1 : 0);
