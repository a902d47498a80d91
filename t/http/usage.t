#!/usr/bin/perl

# usage: counts that agree with each other, cached tokens, caps on tokens.

use strict;
use warnings;

use LLM::Test;
use Test::More;

my $t = LLM::Test->new(
    model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=2 max_tokens=7'
           . ' default; llm_model plain %%ROOT%%/models/demo.gguf threads=1;',
    locations => <<'END');
        location /v1 { llm_api; }
        location /capped { llm_max_tokens 5; llm_api; }
        location = /health { llm_health; }
END

$t->start;

sub ask {
    my ($path, %fields) = @_;

    my $res = $t->post("$path/completions", { prompt => 'a b c',
                       ignore_eos => \1, temperature => 0, %fields });

    die $res->{body} if $res->{status} != 200;

    return $res->{json};
}

is(ask('/v1', max_tokens => 12)->{usage}{completion_tokens}, 12,
   'max_tokens of the request');
is(ask('/capped', max_tokens => 12)->{usage}{completion_tokens}, 5,
   'llm_max_tokens is a cap');
is(ask('/capped', max_tokens => 3)->{usage}{completion_tokens}, 3,
   'below it the request decides');
is($t->chat('hello', ignore_eos => \1)->{json}{usage}{completion_tokens}, 7,
   'max_tokens= is the default of llm_model');

my $n = ask('/v1', max_tokens => 4, n => 3)->{usage};

is($n->{completion_tokens}, 12, 'n choices are added up');
is($n->{prompt_tokens}, ask('/v1', max_tokens => 4)->{usage}{prompt_tokens},
   'their prompt counts once');

# the same long prompt again comes from the cache

my $long = join ' ', map { "word$_" } 1 .. 60;
my $first = ask('/v1', prompt => $long, max_tokens => 2)->{usage};
my $again = ask('/v1', prompt => $long, max_tokens => 2)->{usage};

is($first->{prompt_tokens_details}{cached_tokens}, 0, 'nothing cached yet');
cmp_ok($again->{prompt_tokens_details}{cached_tokens}, '>', 0,
       'the second time it is');
cmp_ok($again->{prompt_tokens_details}{cached_tokens}, '<',
       $again->{prompt_tokens}, 'but never all of it');
is($again->{prompt_tokens}, $first->{prompt_tokens}, 'the same prompt');

$t->stop;

done_testing();
