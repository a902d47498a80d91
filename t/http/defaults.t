#!/usr/bin/perl

# llm_defaults: members that requests do not name; what nginx -t says of them.

use strict;
use warnings;

use LLM::Test;
use Test::More;

my $big = '{"max_tokens": 7, "ignore_eos": true,'
        . ' "stream_options": {"include_usage": true}}';

my $t = LLM::Test->new(http => q[llm_defaults '{"max_tokens": 3}';],
    locations => <<"END")->start;
        location /v1 { llm_api; }
        location /own/v1 { llm_api; llm_defaults '$big'; }
        location /none/v1 { llm_api; llm_defaults '{}'; }
        location /chat/v1 {
            llm_api;
            llm_defaults '{"logprobs": true, "top_logprobs": 2}';
        }
        location /dim/v1 { llm_api; llm_defaults '{"dimensions": 4}'; }
        location /json/v1 {
            llm_api;
            llm_defaults '{"json_instruction": "Say it in JSON."}';
        }
        location /cap/v1 { llm_api; llm_defaults '$big'; llm_max_tokens 5; }
        location = /health { llm_health; }
END

sub tokens {
    my ($path, %more) = @_;

    my $res = $t->post("$path/completions",
                       { prompt => 'a', ignore_eos => \1, %more });
    return $res->{json}{usage}{completion_tokens} // $res->{body};
}

is(tokens('/v1'), 3, 'of the level above');
is(tokens('/v1', max_tokens => 5), 5, 'what a request names counts');
is(tokens('/v1', max_tokens => undef), 3, 'null does not');
is(tokens('/v1', n_predict => 6), 6, 'nor by another name');
is(tokens('/own/v1'), 7, 'of the level itself');
is(tokens('/none/v1'), 16, 'none: what completions have');
is(tokens('/cap/v1'), 5, 'llm_max_tokens is above them');

my $res = $t->post('/own/v1/chat/completions', { messages => [
    { role => 'user', content => 'a' } ] });
is($res->{json}{usage}{completion_tokens}, 7, 'a chat');

my $client = $t->open('/own/v1/chat/completions', { stream => \1, messages => [
    { role => 'user', content => 'a' } ] });
my @events = $client->events;
is((grep { $_->{json} && $_->{json}{usage} } @events)[0]{json}{usage}
   {completion_tokens}, 7, 'a stream has its options');

$res = $t->post('/v1/messages', { messages => [
    { role => 'user', content => 'a' } ] });
is($res->{status}, 200, 'a message that lacks max_tokens');
cmp_ok($res->{json}{usage}{output_tokens}, '<=', 3, 'has it');

$res = $t->post('/v1/responses', { input => 'a' });
cmp_ok($res->{json}{usage}{output_tokens}, '<=', 3, 'a response, too');

$res = $t->post('/chat/v1/chat/completions', { max_tokens => 1, messages => [
    { role => 'user', content => 'a' } ] });
is(scalar @{ $res->{json}{choices}[0]{logprobs}{content}[0]{top_logprobs} }, 2,
   'a chat has what is a chat\'s');
is(tokens('/chat/v1', max_tokens => 2), 2, 'others do without');

$res = $t->post('/dim/v1/embeddings', { input => 'a' });
is(scalar @{ $res->{json}{data}[0]{embedding} }, 4, 'an embedding');

# the model is told that its answer has to be JSON, and only then

sub prompt {
    my (%more) = @_;

    return $t->post('/json/v1/apply-template', { messages => [
        { role => 'system', content => 'Be brief.' },
        { role => 'user', content => 'Hi' } ], %more })->{json}{prompt};
}

for (   [ response_format => { type => 'json_object' } ],
        [ response_format => { type => 'json_schema', json_schema => {
                               name => 'x', schema => {} } } ],
        [ json_schema => {} ], [ guided_json => {} ],
        [ structured_outputs => { json_object => \1 } ])
{
    like(prompt(@$_), qr/Be brief\..*Say it in JSON\..*Hi/s,
         "an instruction for $_->[0]");
}

for (   [], [ response_format => { type => 'text' } ],
        [ grammar => 'root ::= "a"' ],
        [ structured_outputs => { json_object => \0 } ])
{
    unlike(prompt(@$_), qr/JSON/, 'none for ' . ($_->[0] // 'a chat'));
}

my ($plain, $told) = map {
    $t->post('/json/v1/responses', { input => 'a', max_output_tokens => 1,
        text => { format => { type => $_ } } })->{json}{usage}{input_tokens}
} qw(text json_object);
cmp_ok($told, '>', $plain + 3, 'Responses, too');

# in a thread, where large bodies are parsed

is(tokens('/v1', user => 'x' x 40000), 3, 'a large body');

$t->stop;

# ---- what nginx -t says ----

for (
    [ q[llm_defaults '{"temprature": 1}';], qr/no member "temprature"/ ],
    [ q[llm_defaults '{"temperature": 3}';], qr/"temperature": .*'temperature'/ ],
    [ q[llm_defaults '[]';], qr/it is not an object/ ],
    [ q[llm_defaults '{"model": "demo"}';], qr/"model" cannot have a default/ ],
    [ q[llm_defaults '{"stop": 3}';], qr/"stop": / ],
    [ q[llm_defaults '{';],
      qr/_defaults": it is no JSON: an unexpected end at line 1, column 2 in/ ],
    [ q[llm_defaults '{}'; llm_defaults '{}';], qr/is duplicate/ ],
) {
    my ($line, $want) = @$_;
    my ($rc, $out) = LLM::Test->new(http => $line)->check;

    isnt($rc, 0, "refused: $line");
    like($out, $want, 'with the reason');
    like($out, qr/nginx\.conf:\d+/, 'and the place');
}

is((LLM::Test->new(http => q[llm_defaults '{"top_p": 0.9, "stop": ["x"]}';])
      ->check)[0], 0, 'others are taken');

done_testing();
