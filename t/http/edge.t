#!/usr/bin/perl

# What clients rely on at the edges of the API: null, prefill, templates that
# know no tools and no thinking, several spellings, n beyond the places.

use strict;
use warnings;

use LLM::Test;
use Test::More;

my $demo = '%%ROOT%%/models/demo.gguf';

my $t = LLM::Test->new(
    model => "llm_model demo $demo threads=2 parallel=2 alias=gpt-4o-mini"
           . " default; llm_model strings $demo threads=1 parallel=2"
           . " template=strings.jinja;",
    locations => <<'END');
        location / { llm_api; }
        location = /health { llm_health; }
END

# takes content as a string only, knows no tools, no tool messages, no
# reasoning, no switches

$t->write_file('strings.jinja', <<'END');
{%- for m in messages -%}
{%- if m.role not in ['system', 'user', 'assistant'] -%}
{{ raise_exception('Only system, user and assistant roles!') }}
{%- endif -%}
{{ '<' + m.role + '>' + m.content + '\n' }}
{%- endfor -%}
{%- if add_generation_prompt %}<assistant>{% endif -%}
END

$t->start;

my %ask = (temperature => 0, max_tokens => 12);
my $hi = [ { role => 'user', content => 'What is 2 + 2?' } ];


sub chat {
    my (%fields) = @_;

    return $t->post('/v1/chat/completions',
                    { messages => $hi, %ask, %fields });
}


# the engine's command: standard input to output

sub llm {
    my ($command, $input, @args) = @_;

    $t->write_file('in', $input);

    return scalar `$LLM::Test::OBJS/llm $command $LLM::Test::ROOT/models/demo.gguf @args < $t->{dir}/in`;
}


sub text {
    my ($res) = @_;

    return $res->{json}{choices}[0]{message}{content} // $res->{body};
}


my $answer = text(chat());


# ---- null is absent, for every field of both endpoints ----

my @fields = map {
    open my $f, '<', "$LLM::Test::ROOT/engine/api/$_.c" or die "$_: $!";
    local $/;
    <$f> =~ /\{ "(\w+)", LLM_FIELD_/g;
} qw(fields endpoint_chat endpoint_completions);

cmp_ok(scalar @fields, '>', 50, 'fields of a request');

my %null = map { $_ => undef } grep { $_ !~ /^(?:messages|prompt)$/ } @fields;

is(text(chat(%null, %ask)), $answer, 'all of them null in a chat');

my $res = $t->post('/v1/completions', { %null, prompt => 'one two', %ask });

is($res->{status}, 200, 'and in a completion') or diag($res->{body});

$res = $t->post('/v1/completions', { %null, prompt => 'one two',
                                     ignore_eos => \1 });
is($res->{json}{usage}{completion_tokens}, 16,
   'max_tokens null: the default of completions');

for my $pair ([ 'messages', '/v1/chat/completions' ],
              [ 'prompt', '/v1/completions' ])
{
    my ($name, $path) = @$pair;

    $res = $t->post($path, { $name => undef });
    is($res->{status}, 400, "$name: null is none");
    is($res->{json}{error}{param}, $name, 'and named');
}

$res = chat(messages => [ { role => 'assistant', content => undef,
                            name => undef, tool_calls => undef,
                            reasoning_content => undef }, @$hi ]);
is($res->{status}, 200, 'null in a message') or diag($res->{body});


# ---- numbers that are next to nothing ----

for my $tiny ('1e-40', '1e-310', '1e-7') {
    for my $name (qw(temperature top_p min_p typical_p)) {
        $res = $t->request(method => 'POST', path => '/v1/completions',
            body => qq({"prompt":"a","max_tokens":3,"$name":$tiny,)
                    . '"repetition_penalty":0.01,"presence_penalty":-2}');

        is($res->{status}, 200, "$name $tiny") or diag($res->{body});
    }

    $res = $t->request(method => 'POST', path => '/v1/completions',
        body => qq({"prompt":"a","repetition_penalty":$tiny}));

    is($res->{status}, 400, "repetition_penalty $tiny");
    like($res->{json}{error}{message}, qr/Expected a value >= 0\.01/,
         'and its range');
}


# ---- a prompt without a token ----

for my $cache (\1, \0) {
    $res = chat(messages => [ { role => 'system', content => '' } ],
                add_generation_prompt => \0, cache_prompt => $cache);

    is($res->{status}, 400, 'a chat of which nothing is left')
        or diag($res->{body});
    is($res->{json}{error}{message}, 'the prompt is empty', 'says so');
    is($res->{json}{error}{param}, 'messages', 'and where');
}

is($t->post('/v1/completions', { prompt => '', %ask })->{status}, 200,
   'a completion begins from nothing');


# ---- without /v1 ----

is($t->get('/models')->{json}{data}[0]{id}, 'demo', '/models');
is(text($t->post('/chat/completions', { messages => $hi, %ask })), $answer,
   '/chat/completions');
is($t->post('/completions', { prompt => 'a', %ask })->{status}, 200,
   '/completions');
is($t->get('/health')->{status}, 200, '/health beside them');


# ---- prefill: a trailing assistant message is continued ----

my $prefill = [ @$hi, { role => 'assistant', content => 'Two and 2' } ];

# what the model makes of the same tokens
my $prompt = llm('render', LLM::JSON->new->utf8->encode({
    messages => $prefill, continue_final_message => \1,
    add_generation_prompt => \0 }));
my @prompt = map { $_ + 0 } split ' ', llm('tokenize', $prompt, '--special');

like($prompt, qr/Two and 2\z/, 'the prompt ends within the turn');

my $rest = $t->post('/completions', { prompt => \@prompt, %ask })
             ->{json}{choices}[0]{text};

$res = chat(messages => $prefill);

is(text($res), $rest, 'goes on where it stands');
is($res->{json}{usage}{prompt_tokens}, scalar @prompt, 'with these tokens');
is(text(chat(messages => $prefill, continue_final_message => \1)), $rest,
   'the same when asked to');
is(text(chat(messages => $prefill, add_generation_prompt => \0)), $rest,
   'or asked not to begin a turn');
isnt(chat(messages => $prefill, add_generation_prompt => \1)
         ->{json}{usage}{prompt_tokens}, scalar @prompt,
     'another turn when asked for');

$res = chat(messages => $prefill, continue_final_message => \1,
            add_generation_prompt => \1);
is($res->{status}, 400, 'both are 400');
is($res->{json}{error}{param}, 'continue_final_message', 'and named');

$res = chat(continue_final_message => \1);
is($res->{status}, 400, 'nothing to continue is 400');


# ---- a template that knows strings and three roles only ----

my $tool = { type => 'function', function => { name => 'get_weather',
    description => 'the weather', parameters => { type => 'object',
    properties => { city => { type => 'string' } } } } };

my @called = (
    { role => 'user', content => 'Weather in Rome?' },
    { role => 'assistant', content => undef, tool_calls => [
        { id => 'c1', type => 'function', function => {
            name => 'get_weather', arguments => '{"city": "Rome"}' } } ] },
    { role => 'tool', tool_call_id => 'c1', content => 'sunny' } );

for my $model (qw(strings demo)) {
    for my $case (
        [ 'tools', tools => [ $tool ] ],
        [ 'tools and tool_choice', tools => [ $tool ],
          tool_choice => 'auto', parallel_tool_calls => \1 ],
        [ 'no tools and tool_choice none', tools => [],
          tool_choice => 'none' ],
        [ 'a call and its result', messages => \@called ],
        [ 'both', messages => \@called, tools => [ $tool ] ],
        [ 'a thinking switch',
          chat_template_kwargs => { enable_thinking => \1 } ],
        [ 'enable_thinking', enable_thinking => \0 ],
        [ 'reasoning_effort', reasoning_effort => 'low' ],
        [ 'reasoning in the history', messages => [ @$hi,
          { role => 'assistant', content => '4', reasoning_content => 'hm' },
          @$hi ] ],
        [ 'a developer', messages => [
          { role => 'developer', content => 'Be brief.' }, @$hi ] ])
    {
        my ($name, %fields) = @$case;
        my $res = chat(model => $model, %fields, max_tokens => 1);

        is($res->{status}, 200, "$model: $name") or diag($res->{body});
    }
}

sub prompt_tokens {
    my (@messages) = @_;

    return chat(model => 'strings', max_tokens => 1,
                messages => \@messages)->{json}{usage}{prompt_tokens};
}

sub parts { return [ map { { type => 'text', text => $_ } } @_ ] }

is(prompt_tokens({ role => 'user', content => parts('one two', 'red') }),
   prompt_tokens({ role => 'user', content => "one two\nred" }),
   'parts are joined with a newline');
cmp_ok(prompt_tokens(@called), '>',
       prompt_tokens(@called[0, 1]), 'a result reaches the prompt');

my $longer = { %{ $called[1] }, tool_calls => [
    { id => 'c1', type => 'function', function => { name => 'get_weather',
      arguments => '{"city": "Rome, the one in Georgia"}' } } ] };

cmp_ok(prompt_tokens($called[0], $longer, $called[2]), '>',
       prompt_tokens(@called), 'so does a call');

sub thought {
    my ($reasoning) = @_;

    # the demo model's own template takes it, after the last question

    return chat(model => 'demo', max_tokens => 1, messages => [
        @$hi, { %{ $called[1] }, $reasoning ? (@$reasoning) : () },
        $called[2] ])->{json}{usage}{prompt_tokens};
}

my $thought = thought([ reasoning_content => 'Two and two are four.' ]);

cmp_ok($thought, '>', thought(), 'reasoning in the history reaches it');
is(thought([ reasoning => 'Two and two are four.' ]), $thought,
   'under its other name too');


# ---- streams ----

my @events = $t->open_chat('Count to five.', %ask, n => 2, logprobs => \1,
                           top_logprobs => 2,
                           stream_options => { include_usage => \1 })->events;
my @chunks = map { $_->{json} } grep { $_->{json} } @events;

for my $i (0, 1) {
    my @choices = grep { $_ && $_->{index} == $i }
                  map { $_->{choices}[0] } @chunks;

    is_deeply([ map { $_->{delta}{role} // () } @choices ], [ 'assistant' ],
              "choice $i: its role once");
    is($choices[0]{delta}{content}, '', 'in the first, without text');
    ok(!grep({ ($_->{delta}{content} // '') ne ''
               && !@{ $_->{logprobs}{content} || [] } } @choices),
       'logprobs with every text');
    is(join('', map { map { $_->{token} } @{ ($_->{logprobs} || {})
                ->{content} || [] } } @choices),
       join('', map { $_->{delta}{content} // '' } @choices),
       'whose tokens are the text');
    ok(!grep({ exists $_->{delta}{content} && $_->{finish_reason} }
             @choices), 'no content in the last');
    is(scalar(grep { $_->{finish_reason} } @choices), 1, 'which is one');

    # the sampled token is always among the first, whatever n is
    my @lp = map { @{ ($_->{logprobs} || {})->{content} || [] } } @choices;

    is(scalar(grep { my $x = $_; !grep { $_->{token} eq $x->{token} }
              @{ $x->{top_logprobs} } } @lp), 0,
       'the token is among the top');
    is(scalar(grep { @{ $_->{top_logprobs} } != 2 } @lp), 0, 'of two');
}

is(scalar(grep { !exists $_->{choices} } @chunks), 0,
   'choices in every chunk');


# ---- logit_bias: strings, numbers, pairs ----

my ($id) = llm('tokenize', ' red') =~ /^(\d+)/;
my %biased = (prompt => 'The sky is', temperature => 0, max_tokens => 3,
              ignore_eos => \1);

for my $bias ({ $id => 100 }, [ [ $id + 0, 100 ] ], [ [ "$id", 100 ] ]) {
    $res = $t->post('/v1/completions', { %biased, logit_bias => $bias });
    is($res->{json}{choices}[0]{text}, ' red red red',
       'logit_bias: ' . (ref $bias eq 'HASH' ? 'an object' : 'pairs'))
        or diag($res->{body});
}

# ---- a forced call is a call ----

my $bounded = { type => 'function', function => { name => 'get_weather',
    description => 'the weather', parameters => { type => 'object',
    properties => { city => { enum => [ 'Rome', 'Paris' ] } },
    required => [ 'city' ], additionalProperties => \0 } } };

for my $choice ('required', { type => 'function',
                              function => { name => 'get_weather' } })
{
    $res = $t->post('/v1/chat/completions', { messages => $hi, seed => 1,
        tools => [ $bounded ], tool_choice => $choice, max_tokens => 900,
        parallel_tool_calls => \0, enable_thinking => \0 });

    my $c = $res->{json}{choices}[0];

    is($c->{finish_reason}, 'tool_calls', 'forced: the reason')
        or diag($res->{body});
    is($c->{message}{tool_calls}[0]{function}{name}, 'get_weather',
       'forced: the name');
    is(ref(eval { LLM::JSON::decode_json($c->{message}{tool_calls}[0]{function}
                                          {arguments}) }), 'HASH',
       'forced: the arguments');
}


# ---- where a well-known peer is weak ----

for my $case (
    [ 'malformed JSON', '{"messages": [}' ],
    [ 'no messages', { model => 'demo' } ],
    [ 'chat without a token', { messages => $hi, max_tokens => 0 } ])
{
    my ($name, $body) = @$case;

    $res = $t->post('/v1/chat/completions', $body);
    is($res->{status}, 400, "$name: 400") or diag($res->{body});
    ok($res->{json}{error}{message}, "$name: says why");
}

$res = $t->post('/v1/completions', { prompt => 'a', max_tokens => 0 });

is($res->{json}{usage}{completion_tokens}, 0, 'max_tokens 0 makes none');
is($res->{json}{choices}[0]{text}, '', 'and no text');
is($res->{json}{choices}[0]{finish_reason}, 'length', 'for this reason');

$res = $t->post('/v1/completions', { prompt => [ 'a', 'b', 'c' ], n => 3,
                                     max_tokens => 2, ignore_eos => \1 });

is(scalar @{ $res->{json}{choices} }, 9, 'three prompts, n = 3, two places');
is($res->{json}{usage}{completion_tokens}, 18, 'all counted');
is(join('', map { $_->{index} } @{ $res->{json}{choices} }), '012345678',
   'in order');

# completions: what is refused

for my $case ([ best_of => 0, 400 ],
              [ best_of => 1, 200 ], [ logprobs => 6, 400 ],
              [ logprobs => 5, 200 ], [ logprobs => 0, 200 ],
              [ n => 129, 400 ], [ prompt => [], 400 ],
              [ prompt => [ 'a', 5 ], 400 ], [ prompt => [ -1 ], 400 ],
              [ prompt => [ 99999999 ], 400 ], [ prompt => {}, 400 ])
{
    my ($name, $value, $status) = @$case;

    $res = $t->post('/v1/completions',
                    { prompt => 'a', max_tokens => 1, $name => $value });

    is($res->{status}, $status, "$name: $status") or diag($res->{body});
    like($res->{json}{error}{param} // '', qr/^$name/, 'and named')
        if $status == 400;
}

# conditional requests are for files

for my $header ([ 'If-None-Match' => '*' ], [ 'If-Match' => '"a"' ],
                [ 'If-Modified-Since' => 'Sat, 01 Jan 2000 00:00:00 GMT' ],
                [ 'If-Unmodified-Since' => 'Sat, 01 Jan 2000 00:00:00 GMT' ])
{
    for my $stream (\0, \1) {
        $res = $t->post('/v1/completions',
                        { prompt => 'a', max_tokens => 1,
                          stream => $stream }, headers => { @$header });

        is($res->{status}, 200,
           "$header->[0]: 200" . ($$stream ? ', a stream' : ''));
    }

    is($t->get('/health', headers => { @$header })->{status}, 200,
       "$header->[0]: /health");
}

$t->stop;

done_testing();
