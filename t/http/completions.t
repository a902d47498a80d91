#!/usr/bin/perl

# POST /v1/completions: text, several prompts, token ids, echo, streams.

use strict;
use warnings;

use LLM::Test;
use Test::More;

my $t = LLM::Test->new->start;
my %ask = (temperature => 0, max_tokens => 8);

my $res = $t->post('/v1/completions', { prompt => 'one two', %ask });

is($res->{status}, 200, 'answers') or diag($res->{body});
like($res->{json}{id}, qr/^cmpl-\w+$/, 'id');
is($res->{json}{object}, 'text_completion', 'object');

my $choice = $res->{json}{choices}[0];

ok(defined $choice->{text}, 'text');
ok(exists $choice->{logprobs}, 'logprobs');
is($choice->{index}, 0, 'index');

my $text = $choice->{text};

is($t->post('/completions', { prompt => 'one two' })->{status}, 404,
   'only below the prefix');

$res = $t->post('/v1/completions', { prompt => 'one two', echo => \1, %ask });

is($res->{json}{choices}[0]{text}, "one two$text", 'echo');

$res = $t->post('/v1/completions',
                { prompt => [ 'one two', 'red blue', 'one two' ], %ask });

my @texts = map { $_->{text} } @{ $res->{json}{choices} };

is(scalar @texts, 3, 'three prompts');
is($texts[0], $text, 'the first as alone');
is($texts[2], $text, 'the third as alone');
is($texts[1],
   $t->post('/v1/completions', { prompt => 'red blue', %ask })
       ->{json}{choices}[0]{text}, 'the second as alone');

$res = $t->post('/v1/completions', { prompt => [ 'a', 'b' ], n => 2, %ask });

is(scalar @{ $res->{json}{choices} }, 4, 'two prompts, n = 2');

$res = $t->post('/v1/completions', { prompt => 'one two' });

cmp_ok($res->{json}{usage}{completion_tokens}, '<=', 16,
       '16 tokens unless told otherwise');

my $ids = $t->post('/v1/completions', { prompt => [ 5, 6, 7 ], %ask });

is($ids->{status}, 200, 'token ids') or diag($ids->{body});
is($ids->{json}{usage}{prompt_tokens}, 3, 'three of them');

is($t->post('/v1/completions', { prompt => [ [ 5, 6, 7 ], [ 5 ] ], %ask })
       ->{json}{choices}[0]{text}, $ids->{json}{choices}[0]{text},
   'lists of token ids');

my @events = $t->open('/v1/completions',
                      { prompt => 'one two', stream => \1, %ask })->events;

is($events[-1]{data}, '[DONE]', 'a stream');
is(LLM::Client::text_of(@events), $text, 'the same text');
pop @events;
is(scalar(grep { !@{ $_->{json}{choices} } } @events), 0,
   'each chunk has a choice');

$t->stop;

done_testing();
