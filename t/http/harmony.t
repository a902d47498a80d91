#!/usr/bin/perl

# gpt-oss's way of writing, with a model that says what a script has: behind
# its reasoning it begins another message, under a constraint too, and calls
# have a channel of their own.

use strict;
use warnings;

use LLM::JSON;
use LLM::Made qw(script);
use LLM::Test;
use Test::More;

my %script = (
    object => '<|channel|>analysis<|message|>An "object".<|end|>'
        . '<|start|>assistant<|channel|>final<|message|>{"a": 12}',
    bare => '<|channel|>final<|message|>{"a": 3}',
    call => '<|channel|>analysis<|message|>I call {it}.<|end|>'
        . '<|start|>assistant<|channel|>commentary to=functions.look '
        . '<|constrain|>json<|message|>{"at": "sea"}<|call|>',
);

my $t = LLM::Test->new(
    model => 'llm_model script %%DIR%%/script.gguf ctx=1024 threads=1'
           . ' template=%%DIR%%/harmony.jinja;',
    locations => 'location /v1 { llm_api; } location = /health { llm_health; }');

$t->write_file('harmony.jinja', <<'END');
{#- as of a model that begins with <|channel|>analysis -#}
{%- for m in messages -%}
<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>
{%- endfor -%}
{#- what a client sends makes no control token -#}
{%- for name in ('object', 'bare', 'call') if name == line -%}
<|start|>assistant<|say:{{ name }}|>
{%- endfor -%}
END

$t->write_file('script.json', encode_json(\%script));
script($t->dir);
$t->start;

my %look = (type => 'function', function => { name => 'look',
    parameters => { type => 'object', required => [ 'at' ],
                    properties => { at => { type => 'string' } } } });


# (reasoning, content, [name, arguments] of each call)

sub said {
    my ($line, %fields) = @_;

    my $res = $t->post('/v1/chat/completions', {
        messages => [ { role => 'user', content => 'Hello' } ],
        chat_template_kwargs => { line => $line }, temperature => 0,
        max_tokens => 300, %fields });
    my $m = $res->{json}{choices}[0]{message} // {};

    return [ $m->{reasoning_content}, $m->{content},
             map { [ @{ $_->{function} }{qw(name arguments)} ] }
             @{ $m->{tool_calls} // [] } ];
}


my %schema = (response_format => { type => 'json_schema', json_schema => {
    name => 'a', schema => { type => 'object', required => [ 'a' ],
        properties => { a => { type => 'integer' } },
        additionalProperties => LLM::JSON::false } } });
my @calls = ('I call {it}.', undef, [ 'look', '{"at": "sea"}' ]);

is_deeply(said('object'), [ 'An "object".', '{"a": 12}' ], 'free');
is_deeply(said('object', %schema), [ 'An "object".', '{"a": 12}' ],
          'by a schema, behind reasoning');
is_deeply(said('bare', %schema), [ undef, '{"a": 3}' ], 'and without any');

for my $choice ('auto', 'required',
                { type => 'function', function => { name => 'look' } })
{
    is_deeply(said('call', tools => [ \%look ], tool_choice => $choice),
              \@calls, 'a call, ' . (ref $choice ? 'named' : $choice));
}

$t->stop;
is($t->alerts, '', 'nothing wrong in the log');


# what a server without a reader of channels has answered comes back with its
# marks, which the model's template refuses

$t = LLM::Test->new(
    model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=2'
           . ' template=%%DIR%%/strict.jinja;',
    locations => 'location /v1 { llm_api; } location = /health { llm_health; }');

$t->write_file('strict.jinja', <<'END');
{%- for m in messages -%}
{%- if m.role == 'assistant' -%}
{%- for text in [m.content, m.thinking | default('')] -%}
{%- if '<|channel|>analysis<|message|>' in text
       or '<|channel|>final<|message|>' in text -%}
{{- raise_exception('marks of channels') -}}
{%- endif -%}
{%- endfor -%}
{%- if m.thinking -%}
<|start|>assistant<|channel|>analysis<|message|>{{ m.thinking }}<|end|>
{%- endif -%}
<|start|>assistant<|channel|>final<|message|>{{ m.content }}<|end|>
{%- else -%}
<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>
{%- endif -%}
{%- endfor -%}
END

$t->start;

sub shown {
    my ($answer) = @_;

    my $res = $t->post('/v1/apply-template', { messages => [
        { role => 'user', content => 'Hi' }, { role => 'assistant', %$answer },
        { role => 'user', content => 'And?' } ] });

    return [ ($res->{json}{prompt} // $res->{body}) =~
             /^<\|start\|>user<\|message\|>Hi<\|end\|>(.*)<\|start\|>user.*/s ];
}

sub channels {
    my ($analysis, $final) = @_;

    return [ join '', map { "<|start|>assistant<|channel|>$_<|end|>" }
             (defined $analysis ? "analysis<|message|>$analysis" : ()),
             "final<|message|>$final" ];
}

my $marked = '<|channel|>analysis<|message|>Hm.<|end|>'
    . '<|start|>assistant<|channel|>final<|message|>Yes.';

is_deeply(shown({ content => 'Yes.' }), channels(undef, 'Yes.'), 'no marks');
is_deeply(shown({ content => $marked }), channels('Hm.', 'Yes.'), 'marks');
is_deeply(shown({ content => "$marked<|return|>" }), channels('Hm.', 'Yes.'),
          'to the end');
is_deeply(shown({ content => [ { type => 'text', text => $marked } ] }),
          channels('Hm.', 'Yes.'), 'in a part');
is_deeply(shown({ content => "<|start|>assistant$marked" }),
          channels('Hm.', 'Yes.'), 'from the beginning');
is_deeply(shown({ content => '<|channel|>final <|constrain|>json<|message|>{}'
    }), channels(undef, '{}'), 'with a constraint');
is_deeply(shown({ content => '<|channel|>final<|message|>Yes.',
                  reasoning_content => 'Own.' }),
          channels('Own.', 'Yes.'), 'beside reasoning');
is_deeply(shown({ content => $marked, reasoning_content => 'Own.' }),
          channels('Own.', 'Yes.'), 'which counts');
is_deeply(shown({ content => 'Yes.', reasoning_content =>
    '<|channel|>analysis<|message|>Hm.' }), channels('Hm.', 'Yes.'),
          'marks in reasoning');
is_deeply(shown({ content => '<|channel|>analysis<|message|>Hm.' }),
          channels('Hm.', ''), 'nothing else was said');
is_deeply(shown({ content => 'It is the <|channel|> of <|these|>.' }),
          channels(undef, 'It is the <|channel|> of <|these|>.'),
          'what is no mark stays');
is_deeply(shown({ content => 'See: <|channel|>final<|message|>this.' }),
          channels(undef, "See: \nthis."), 'text before it stays, too');

$t->stop;
is($t->alerts, '', 'nothing wrong in the log');

done_testing;
