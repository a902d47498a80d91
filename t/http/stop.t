#!/usr/bin/perl

# Stop strings: never sent, wherever they lie across tokens and events.

use strict;
use warnings;

use LLM::Test;
use Test::More;

my $t = LLM::Test->new->start;
my %ask = (prompt => 'one two three', temperature => 1, seed => 5,
           max_tokens => 60, ignore_eos => \1);

my $text = $t->post('/v1/completions', { %ask })->{json}{choices}[0]{text};

cmp_ok(length $text, '>', 40, 'a text to cut') or diag($text);

# pieces of it as stop strings: what comes before their first occurrence

for my $i (0 .. 11) {
    my $at = 3 * $i + 2;
    my $len = 1 + $i % 5;

    next if $at + $len > length $text;

    my $stop = substr $text, $at, $len;

    next if $stop =~ /[^\x20-\x7e]/;

    my $want = substr $text, 0, index($text, $stop);
    my $res = $t->post('/v1/completions', { %ask, stop => [ $stop ] });

    is($res->{json}{choices}[0]{text}, $want, "stop \"$stop\"");
    is($res->{json}{choices}[0]{finish_reason}, 'stop', 'its finish_reason');

    my @events = $t->open('/v1/completions',
                          { %ask, stop => $stop, stream => \1 })->events;

    is(LLM::Client::text_of(@events), $want, "stop \"$stop\" in a stream");
}

my $one = substr $text, 10, 3;
my $two = substr $text, 5, 3;
my ($first) = sort { $a <=> $b } index($text, $one), index($text, $two);

is($t->post('/v1/completions', { %ask, stop => [ $one, $two, 'never!' ] })
       ->{json}{choices}[0]{text}, substr($text, 0, $first),
   'the first of several');

is($t->post('/v1/completions', { %ask, stop => 'never to be seen' })
       ->{json}{choices}[0]{text}, $text, 'one that never comes');

# the beginning of a stop string at the end of the text is text

my $tail = substr($text, -2) . 'and more';

is($t->post('/v1/completions', { %ask, stop => $tail })
       ->{json}{choices}[0]{text}, $text, 'half a stop string is text');

$t->stop;

done_testing();
