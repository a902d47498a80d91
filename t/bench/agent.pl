#!/usr/bin/perl

# An agent's conversation: six tools, a long system prompt, and in each turn a
# call of a tool and its result, which are all that is not in the cache; also by
# a llama-server (llama.cpp's or ik_llama.cpp's) through the same nginx.
#
#   [LLAMA_SERVER=path] ./build.sh bench agent [FILE.gguf]
#
#   LLM_BENCH_TURNS     turns of a conversation (5)
#   LLM_BENCH_TOKENS    tokens of an answer (24)
#   LLM_BENCH_WORDS     words of the system prompt (2000)
#   LLM_BENCH_RESULT    words of the result of a call (300)
#
# and the variables of t/lib/LLM/Bench.pm; ik_llama.cpp wants LLAMA_ARGS="-fa on
# -rtr".  The conversations of a round are the same for all servers, those of
# another round are others.  Prints, for each round, the seconds to the first
# token of all turns, of the turns after the first, and the tokens of the last
# prompt; then the median of the rounds' ratios.

use strict;
use warnings;

use LLM::Bench;
use List::Util qw(sum0);

my $turns = $ENV{LLM_BENCH_TURNS} || 5;
my $tokens = $ENV{LLM_BENCH_TOKENS} || 24;
my $words = $ENV{LLM_BENCH_WORDS} || 2000;
my $result = $ENV{LLM_BENCH_RESULT} || 300;

my @words = qw(the of to and in is that for it as was with be by on not his but
               at are this have from or had an they which one you were all she
               there would their we him been has when who will more no if out);

# tokens of two for a word, of tools and of marks around messages

my $b = LLM::Bench->new(file => shift, parallel => 1,
    ctx => 256 * int(2 * ($words + ($turns + 1) * ($result + 40) + 1500) / 256));

$b->start;


sub text {
    my ($n) = @_;

    return join ' ', map { $words[rand @words] } 1 .. $n;
}


sub tool {
    my ($i) = @_;
    my %args = map { ("arg$_" => { type => 'string',
                                   description => text(12) }) } 0 .. 3;

    return { type => 'function', function => {
        name => "tool_$i", description => text(40),
        parameters => { type => 'object', properties => \%args,
                        required => [ 'arg0' ] } } };
}


# a turn: the seconds to the first token, and the tokens of the prompt

sub turn {
    my ($path, $messages, $tools) = @_;
    my $client = $b->{t}->open("$path/chat/completions", {
        model => 'bench', messages => $messages, tools => $tools,
        stream => \1, stream_options => { include_usage => \1 },
        temperature => 0, max_tokens => $tokens }, timeout => 3600);
    my ($first, $prompt);

    while (my $e = $client->event) {
        my $delta = $e->{json} && ($e->{json}{choices}[0] // {})->{delta};

        $first //= $e->{time} if $delta && grep { length($delta->{$_} // '') }
                                           qw(content reasoning_content);
        $first //= $e->{time} if $delta && $delta->{tool_calls};
        $prompt = $e->{json}{usage}{prompt_tokens}
            if $e->{json} && $e->{json}{usage};
    }

    close $client->{socket};
    die "$path: $client->{status}, no token\n" unless defined $first;

    return ($first, $prompt);
}


# a conversation: seconds to the first token of all turns, of those after the
# first; tokens of the last prompt

sub conversation {
    my ($path, $seed) = @_;
    my ($prompt, @first);

    srand $seed;

    my $tools = [ map { tool($_) } 0 .. 5 ];
    my @messages = ({ role => 'system', content => text($words) },
                    { role => 'user', content => text(60) });

    for my $k (1 .. $turns) {
        (my $seconds, $prompt) = turn($path, \@messages, $tools);
        push @first, $seconds;
        push @messages,
            { role => 'assistant', content => 'ok ' . text(5), tool_calls => [
                { id => "call_$k", type => 'function', function => {
                    name => 'tool_' . $k % 6,
                    arguments => qq({"arg0":"@{[ text(6) ]}"}) } } ] },
            { role => 'tool', tool_call_id => "call_$k",
              content => text($result) };
    }

    return [ sum0(@first), sum0(@first[1 .. $#first]), $prompt ];
}

my @kinds = ([ 'nginx-llm', '/v1' ]);
my $seed = time;

push @kinds, [ 'llama-server', '/llama/v1' ] if $b->{llama};

my $got = $b->rounds(kinds => \@kinds, rows => [ 'agent' ],
    warm => sub { turn($_[0][1], [ { role => 'user', content => 'a' } ], []) },
    once => sub {
        my ($kind) = @_;

        # the kinds of a round have the same conversation

        return conversation($kind->[1], $seed + $kind->[2]++);
    });

print "| | all turns, s | after the first, s | last prompt |\n",
      "|---|---:|---:|---:|\n";

for my $kind (@kinds) {
    printf "| %s | %.2f | %.2f | %d |\n", $kind->[0], @$_
        for @{ $got->{agent}{$kind->[0]} };
}

if (@kinds > 1) {
    my ($ours, $theirs) = map { $got->{agent}{$_->[0]} } @kinds;

    for my $column ([ 'all turns', 0 ], [ 'after the first', 1 ]) {
        my @ratios = map { $theirs->[$_][$column->[1]]
                           / $ours->[$_][$column->[1]] } 0 .. $#$ours;

        printf "%s: %.2f times (%s)\n", $column->[0],
               LLM::Bench::median(@ratios),
               join ', ', map { sprintf '%.2f', $_ } @ratios;
    }
}
