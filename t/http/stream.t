#!/usr/bin/perl

# Streams: headers, the order of events, the same text as without, several
# at once, heartbeats, and a header that does not wait.

use strict;
use warnings;

use LLM::Test;
use Test::More;

my $t = LLM::Test->new->start;

my %ask = (temperature => 0, max_tokens => 24);
my $s = $t->open_chat('Count to five.', %ask);

$s->read_header;

is($s->{status}, 200, 'answers');
is($s->{headers}{'content-type'}, 'text/event-stream', 'content type');
is($s->{headers}{'cache-control'}, 'no-cache', 'Cache-Control');
is($s->{headers}{'x-accel-buffering'}, 'no', 'X-Accel-Buffering');
like($s->{headers}{'x-request-id'}, qr/^\w+$/, 'x-request-id');
is($s->{headers}{'transfer-encoding'}, 'chunked', 'chunked');

my @events = $s->events;
my $last = pop @events;

is($last->{data}, '[DONE]', '[DONE] ends it');

my @deltas = map { $_->{json}{choices}[0]{delta} } @events;

is($deltas[0]{role}, 'assistant', 'the first delta has the role');
is($deltas[0]{content} // '', '', 'and no text');
is(scalar(grep { exists $_->{role} } @deltas), 1, 'the role comes once');

my $final = $events[-1]{json}{choices}[0];

ok($final->{finish_reason}, 'the last chunk has a finish_reason');
is_deeply($final->{delta}, {}, 'and an empty delta');
is(scalar(grep { $_->{json}{choices}[0]{finish_reason} } @events), 1,
   'only it');

my %ids = map { $_->{json}{id} => 1 } @events;

is(scalar keys %ids, 1, 'one id');
is($events[0]{json}{object}, 'chat.completion.chunk', 'object');
ok(!grep({ exists $_->{json}{usage} } @events), 'no usage unasked');

my $whole = $t->chat('Count to five.', %ask)->{json};

is(LLM::Client::text_of(@events), $whole->{choices}[0]{message}{content},
   'the same text as without streaming');
is($final->{finish_reason}, $whole->{choices}[0]{finish_reason},
   'the same finish_reason');

@events = $t->open_chat('Count to five.', %ask,
                        stream_options => { include_usage => \1 })->events;
pop @events;

my $usage = pop @events;

is_deeply($usage->{json}{choices}, [], 'the usage chunk has no choices');
is_deeply({ map { $_ => $usage->{json}{usage}{$_} }
            qw(prompt_tokens completion_tokens total_tokens) },
          { map { $_ => $whole->{usage}{$_} }
            qw(prompt_tokens completion_tokens total_tokens) },
          'and the same usage');
is(scalar(grep { exists $_->{json}{usage} } @events), 0,
   'the others have none, not even null');


# HTTP/1.0: no chunks, the connection's end is the end

$s = $t->open_chat('Count to five.', %ask);
my $old = LLM::Client->open(port => $t->port, method => 'POST',
    path => '/v1/chat/completions', http => '1.0',
    body => { messages => [ { role => 'user', content => 'Count to five.' } ],
              stream => \1, %ask });

@events = $old->events;

is($events[-1]{data}, '[DONE]', 'HTTP/1.0');
is(LLM::Client::text_of(@events), LLM::Client::text_of($s->events),
   'the same text');


# many streams at once: each whole, none mixed up with another

my @seeds = 1 .. 12;
my %many = (temperature => 1.3, max_tokens => 40);
my %alone = map { $_ => LLM::Client::text_of(
    $t->open_chat('Tell me a story.', %many, seed => $_)->events) } @seeds;

my @open = map { $t->open_chat('Tell me a story.', %many, seed => $_) } @seeds;
my @got = map { LLM::Client::text_of($_->events) } @open;

is($got[$_], $alone{$seeds[$_]}, "stream $seeds[$_] among others")
    for 0 .. $#seeds;

@open = map { $t->open_long(max_tokens => 40) } 1 .. 3;
my @order;

for my $round (1 .. 5) {
    for my $i (0 .. 2) {
        push @order, $i if $open[$i]->event;
    }
}

is(scalar @order, 15, 'three streams advance together');
$_->events for @open;

$t->stop;

done_testing();
