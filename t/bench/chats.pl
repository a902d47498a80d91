#!/usr/bin/perl

# Chats that share a system prompt, 1, 4, 16 and 64 at once: with the prefix
# cache, without it, and by llama-server through the same nginx.
#
#   [LLAMA_SERVER=path] ./build.sh bench chats [FILE.gguf]
#
#   LLM_BENCH_TOKENS    tokens of an answer (32)
#   LLM_BENCH_RULES     sentences of the system prompt (30)
#   LLM_BENCH_CHATS     numbers of concurrent chats ("1 4 16 64")
#
# and the variables of t/lib/LLM/Bench.pm.
#
# Each question is new, in each round, so that only the system prompt can be
# cached.  One request of each kind before the first round is not counted.

use strict;
use warnings;

use LLM::Bench;

my $tokens = $ENV{LLM_BENCH_TOKENS} || 32;
my $rules = $ENV{LLM_BENCH_RULES} || 30;
my @chats = split ' ', $ENV{LLM_BENCH_CHATS} || '1 4 16 64';
my ($most) = sort { $b <=> $a } @chats;

my $system = join ' ', map {
    "Rule $_: an answer about topic $_ is short, friendly and complete, and"
    . " names its sources."
} 1 .. $rules;

my $b = LLM::Bench->new(file => shift, parallel => $most);
my $length = $b->count($system);

# no more than a chat needs: there are many, and their memory is allocated

$b->{ctx} = 256 * (int(($length + $tokens) / 256) + 2);
$b->start;

my $runs = 0;

sub load {
    my ($kind, $n) = @_;
    my (undef, $path, %fields) = @$kind;

    $runs++;

    return $b->load("$path/chat/completions", { %fields, messages => [
        { role => 'system', content => $system },
        { role => 'user', content =>
              "Run $runs, chat 888: what should I know about it?" },
    ] }, n => $n, tokens => $tokens);
}

my @kinds = ([ 'with cache', '/v1' ],
             [ 'without', '/v1', cache_prompt => \0 ]);

push @kinds, [ 'llama-server', '/llama/v1' ] if $b->{llama};

my $got = $b->rounds(kinds => \@kinds, rows => \@chats,
                     warm => sub { load($_[0], 1) }, once => \&load);

(my $base = $b->{file}) =~ s{.*/}{};

printf "== %s, a system prompt of %d tokens, %d tokens an answer,"
     . " %d threads, median of %d rounds\n",
       $base, $length, $tokens, $b->{threads}, $b->{reps};

exit($b->print_rows($got, title => 'chats', width => 5, kinds => \@kinds,
                    rows => \@chats) ? 1 : 0);
