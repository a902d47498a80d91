#!/usr/bin/perl

# How a model's makers advise to sample from it, as its file says: that counts
# for what a request does not say.

use strict;
use warnings;

use LLM::JSON;
use LLM::GGUF;
use LLM::Test;
use Test::More;

my $demo = "$LLM::Test::ROOT/models/demo.gguf";

my $t = LLM::Test->new(
    model => 'llm_model plain %%ROOT%%/models/demo.gguf threads=1;'
           . 'llm_model greedy %%DIR%%/greedy.gguf threads=1;'
           . 'llm_model narrow %%DIR%%/narrow.gguf threads=1;'
           . 'llm_model odd %%DIR%%/odd.gguf threads=1;',
    locations => 'location /v1 { llm_api; } location = /health { llm_health; }');

my %files = (
    greedy => { temp => [ f32 => 0 ], top_p => [ f32 => 0.5 ] },
    narrow => { temp => [ f32 => 1.5 ], top_k => [ u32 => 1 ] },
    odd => { temp => [ f32 => 9 ], top_k => [ f32 => 1.5 ],
             min_p => [ str => 'few' ], penalty_repeat => [ f32 => 1 ] },
);

for my $name (keys %files) {
    my $of = $files{$name};

    LLM::GGUF::make($demo, $t->dir . "/$name.gguf",
        kv => { map { ("general.sampling.$_" => $of->{$_}) } keys %$of });
}

$t->start;


sub said {
    my ($model, %fields) = @_;

    return $t->post('/v1/chat/completions', {
        model => $model, max_tokens => 40, %fields,
        messages => [ { role => 'user', content => 'Tell me a story.' } ] })
        ->{json}{choices}[0]{message}{content};
}


my $greedy = said('plain', temperature => 0);
my %hot = (temperature => 1.9, top_p => 1, seed => 5);
my $hot = said('plain', %hot);

isnt($hot, $greedy, 'there is something to see');

is(said('greedy', seed => $_), $greedy, "as advised, seed $_") for 1 .. 3;
is(said('greedy', seed => 4, temperature => undef), $greedy,
   'null says nothing');
is(said('greedy', %hot), $hot, 'as the request says');
is(said('narrow', seed => $_), $greedy, "another advice, seed $_") for 1, 2;
is(said('narrow', %hot), $greedy, 'which stands beside what the request says');
is(said('narrow', %hot, top_k => 0), $hot, 'which can say all');
is(said('odd', seed => 5, temperature => 1.9), said('plain', seed => 5,
   temperature => 1.9), 'what is out of range is not used');

my @told = $t->log =~ /(general\.sampling\.\w+)[^\n]*not used/g;

is_deeply([ sort @told ],
          [ map { "general.sampling.$_" } qw(min_p temp top_k) ],
          'and logged');

for ([ greedy => 0, 0.5 ], [ plain => 1, 1 ]) {
    my ($model, @want) = @$_;
    my $res = $t->post('/v1/responses', { model => $model, input => 'Hello',
                                          max_output_tokens => 4 });

    is_deeply([ @{ $res->{json} }{qw(temperature top_p)} ], \@want,
              "$model: Responses tells it");
}

my $res = $t->post('/v1/responses', { model => 'greedy', input => 'Hello',
    max_output_tokens => 4, temperature => 0.25 });

is_deeply([ @{ $res->{json} }{qw(temperature top_p)} ], [ 0.25, 0.5 ],
          'and what the request said');

$t->stop;

done_testing;
