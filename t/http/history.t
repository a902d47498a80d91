#!/usr/bin/perl

# Conversations that go on: each turn sends all of them again, so whatever a
# tool, another server or the model has put into one is taken at every
# endpoint.  What a text may not contain is U+FFFD both ways.

use strict;
use warnings;

use LLM::JSON;
use LLM::Made qw(script);
use LLM::Test;
use Test::More;

binmode Test::More->builder->$_, ':utf8'
    for qw(output failure_output todo_output);

my $json = LLM::JSON->new->utf8->canonical;

# the model says what a script has; what is in the history, a template shows

my %script = (
    nul => "a\0b\0",
    call => qq(<tool_call>\n{"name": "run", "arguments": {"cmd": )
        . '"x\u0000y\ud83d\ude00\u0000", "b": "\u00e9"}}' . "\n</tool_call>",
);

my $t = LLM::Test->new(
    model => LLM::Test::default_model()
        . 'llm_model script %%DIR%%/script.gguf ctx=1024 threads=1'
        . ' template=%%DIR%%/script.jinja;',
    locations => <<'END');
        location /v1 { llm_api; }
        location = /health { llm_health; }
END

$t->write_file('script.jinja', <<'END');
{%- for m in messages -%}
[{{ m.role }}|{{ m.content }}
{%- for c in m.tool_calls -%}
{{ '<tool_call>\n{"name": ' + c.function.name | tojson + ', "arguments": ' }}
{{- c.function.arguments | tojson + '}\n</tool_call>' }}
{%- endfor -%}
]
{%- endfor -%}
{%- for name in ('nul', 'call') if name == line -%}
<|say:{{ name }}|>
{%- endfor -%}
END

$t->write_file('script.json', encode_json(\%script));
script($t->dir);
$t->start;

my $bad = "\x{fffd}";


# ---- out: what the model writes ----

my @tools = { name => 'run', parameters => { type => 'object' } };
my %tools = (
    chat => { tools => [ map { { type => 'function', function => $_ } }
                         @tools ] },
    responses => { tools => [ map { { type => 'function', %$_ } } @tools ] },
    messages => { tools => [ { name => 'run',
                               input_schema => { type => 'object' } } ] });

my %say = (model => 'script', temperature => 0);

sub say_line {
    return (%say, chat_template_kwargs => { line => $_[0] });
}

my @hi = { role => 'user', content => 'Hi' };
my %chat = (messages => \@hi, max_tokens => 200);
my %responses = (input => 'Hi', max_output_tokens => 200);

my $res = $t->post('/v1/chat/completions', { say_line('nul'), %chat });
is($res->{json}{choices}[0]{message}{content}, "a${bad}b$bad", 'content');
unlike($res->{body}, qr/\\u0000/, 'no NUL');

my @events = $t->open('/v1/chat/completions', { say_line('nul'), %chat,
                                                stream => \1 })->events;
is(join('', map { $_->{json}{choices}[0]{delta}{content} // '' }
            grep { ref $_->{json} } @events), "a${bad}b$bad", 'in a stream');

$res = $t->post('/v1/chat/completions', { say_line('nul'), %chat,
                                          logprobs => \1 });
my ($nul) = grep { grep { $_ == 0 } @{ $_->{bytes} } }
            @{ $res->{json}{choices}[0]{logprobs}{content} };
like($nul->{token}, qr/$bad/, 'a token of a NUL, its bytes beside it');

is($t->post('/v1/responses', { say_line('nul'), %responses })
     ->{json}{output}[0]{content}[0]{text}, "a${bad}b$bad", 'Responses');
is($t->post('/v1/messages', { say_line('nul'), %chat })
     ->{json}{content}[0]{text}, "a${bad}b$bad", 'Messages');

my $args = { cmd => "x${bad}y\x{1f600}$bad", b => "\x{e9}" };

sub args_are {
    my ($name, $text) = @_;

    unlike($text // '', qr/\\u0000/, "$name: no escape");
    is_deeply(scalar(eval { LLM::JSON->new->decode($text) }), $args, 'its value')
        or diag($text);
}

$res = $t->post('/v1/chat/completions', { say_line('call'), %chat,
                                          %{ $tools{chat} } });
args_are('a call', $res->{json}{choices}[0]{message}{tool_calls}[0]{function}
                       {arguments});

@events = $t->open('/v1/chat/completions', { say_line('call'), %chat,
                   %{ $tools{chat} }, stream => \1 })->events;
args_are('in a stream', join '', map {
    $_->{json}{choices}[0]{delta}{tool_calls}[0]{function}{arguments} // '' }
    grep { ref $_->{json} } @events);

$res = $t->post('/v1/responses', { say_line('call'), %responses,
                                   %{ $tools{responses} } });
args_are('Responses', $res->{json}{output}[0]{arguments});

$res = $t->post('/v1/messages', { say_line('call'), %chat,
                                  %{ $tools{messages} } });
is_deeply($res->{json}{content}[0]{input}, $args, 'Messages');


# ---- in: texts of every endpoint ----

# the body is sent as it is: what stands for the text is not our own JSON's

sub sent {
    my ($path, $escape, %body) = @_;
    my $text = $json->encode(\%body);

    $text =~ s/\@/$escape/g;

    return $t->request(method => 'POST', path => "/v1/$path", body => $text,
        headers => { 'Content-Type' => 'application/json' });
}


my %call = (type => 'function', id => 'c@', function => {
    name => 'run', arguments => '{"cmd": "@"}' });
my @talk = ({ role => 'system', content => '@' },
    { role => 'user', content => [ { type => 'text', text => '@' } ],
      name => '@' },
    { role => 'assistant', content => undef, reasoning_content => '@',
      tool_calls => [ \%call ] },
    { role => 'tool', tool_call_id => 'c@', content => 'ELF @ x' });
my %few = (model => 'demo', max_tokens => 2);

for my $escape ('\u0000', '\ud800', '\udfff\ud83d') {
    my %shown = (messages => \@talk, user => '@', metadata => { '@' => '@' });
    my $mended = $bad x (length($escape) / 6);

    $res = sent('apply-template', $escape, model => 'script', %shown);
    like($res->{json}{prompt}, qr/\[system\|$mended\]/, "$escape: system");
    like($res->{json}{prompt}, qr/\[tool\|ELF $mended x\]/, 'a result');
    like($res->{json}{prompt}, qr/"cmd": "(?:$mended|\\ufffd)+"/i,
         'arguments') or diag($res->{body});

    for (['chat/completions', %few, %shown, stop => '@', tools => [ {
              type => 'function', function => { name => 'run',
                  description => '@', parameters => { type => 'object',
                  properties => { '@' => { enum => [ '@' ] } } } } } ] ],
         ['completions', %few, prompt => [ '@', 'a' ], stop => [ '@' ]],
         ['responses', model => 'demo', max_output_tokens => 2,
          instructions => '@', input => [
              { role => 'user', content => '@' },
              { type => 'function_call', call_id => 'c', name => 'run',
                arguments => '{"cmd": "@"}' },
              { type => 'function_call_output', call_id => 'c',
                output => '@' } ]],
         ['messages', %few, system => '@', messages => [
              { role => 'user', content => '@' },
              { role => 'assistant', content => [
                  { type => 'tool_use', id => 't', name => 'run',
                    input => { '@' => '@' } } ] },
              { role => 'user', content => [ { type => 'tool_result',
                    tool_use_id => 't', content => '@' } ] } ]],
         ['messages/count_tokens', model => 'demo', messages => [
              { role => 'user', content => '@' } ]],
         ['tokenize', content => '@', with_pieces => \1],
         ['embeddings', model => 'demo', input => [ '@' ]])
    {
        my ($path, %body) = @$_;

        $res = sent($path, $escape, %body);
        is($res->{status}, 200, "$escape: $path") or diag($res->{body});
    }

    $res = sent('chat/completions', $escape, %few, model => 'demo@',
                messages => \@hi);
    is($res->{json}{error}{code}, 'model_not_found', 'a name stays one');
}

$res = sent('tokenize', '\u0000', content => 'a@b');
is_deeply($res->{json}{tokens},
          $t->post('/v1/tokenize', { content => "a${bad}b" })->{json}{tokens},
          'the tokens are those of U+FFFD');

# what no JSON has is an error that says where

for (["\0", 'a control character'], ["\xff", 'invalid UTF-8'],
     ["\xed\xa0\x80", 'invalid UTF-8'])
{
    $res = sent('chat/completions', $_->[0], %few, messages => [
        { role => 'user', content => '@' } ]);
    is($res->{status}, 400, $_->[1]);
    like($res->{json}{error}{message}, qr/$_->[1] .*line 1, column/, 'where');
}

$res = $t->request(method => 'POST', path => '/v1/chat/completions',
    headers => { 'Content-Type' => 'application/json' },
    body => "\xef\xbb\xbf" . $json->encode({ %few, messages => \@hi }));
is($res->{status}, 200, 'a byte order mark') or diag($res->{body});


# ---- in: what others have recorded ----

sub goes_on {
    my ($name, $path, %body) = @_;

    $res = $t->post("/v1/$path", { model => 'demo', %body });
    is($res->{status}, 200, $name) or diag($res->{body});
}

my @user = { type => 'message', role => 'user', content => [
    { type => 'input_text', text => 'What is 2 + 2?' } ] };

for ({ type => 'compaction', encrypted_content => 'g' },
     { type => 'compaction_summary', encrypted_content => 'g' },
     { type => 'compaction_trigger' },
     { type => 'context_compaction', encrypted_content => 'g' },
     { type => 'web_search_call', id => 'w', status => 'completed',
       action => { type => 'search', query => 'x' } },
     { type => 'image_generation_call', id => 'i', status => 'completed',
       result => 'iVBORw0' },
     { type => 'local_shell_call', call_id => 'c', status => 'completed',
       action => { type => 'exec', command => [ 'ls' ], env => {} } },
     { type => 'shell_call', call_id => 'c',
       action => { commands => [ 'ls' ] } },
     { type => 'apply_patch_call', call_id => 'c', status => 'completed',
       operation => { type => 'delete_file', path => 'p' } },
     { type => 'tool_search_call', execution => 'client', call_id => 'c',
       arguments => { query => 'x' } },
     { type => 'tool_search_output', execution => 'client', call_id => 'c',
       status => 'completed', tools => [] },
     { type => 'additional_tools', role => 'developer', tools => [
         { type => 'function', name => 'f', parameters => {} } ] },
     { type => 'mcp_list_tools', id => 'm', server_label => 's',
       tools => [] },
     { type => 'mcp_call', id => 'm', name => 'n', server_label => 's',
       arguments => '{}', output => 'o' },
     { type => 'item_of_next_year', id => 'n' })
{
    goes_on($_->{type}, 'responses', max_output_tokens => 2, store => \0,
            input => [ $_, @user ]);
    goes_on("$_->{type}, alone but for its type", 'responses',
            max_output_tokens => 2, input => [ { type => $_->{type} },
                                               @user ]);
}

# a tool that an item has brought can be called

$res = $t->post('/v1/responses', { model => 'demo', max_output_tokens => 60,
    input => [ { type => 'additional_tools', role => 'developer', tools => [
        { type => 'namespace', name => 'far', tools => [
            { type => 'function', name => 'look', parameters => {
                type => 'object', properties => {},
                additionalProperties => \0 } } ] } ] }, @user ],
    tool_choice => 'required' });
is($res->{json}{output}[-1]{name}, 'look', 'a tool of an item is called')
    or diag($res->{body});
is($res->{json}{output}[-1]{namespace}, 'far', 'in its namespace');

my @pictures = ({ type => 'image_url', image_url => { url => 'data:x' } },
                { type => 'file', file => { filename => 'a.pdf' } },
                { type => 'input_audio', input_audio => {} });

goes_on('images in an old turn', 'chat/completions', max_tokens => 2,
        messages => [ { role => 'user', content => \@pictures },
                      { role => 'assistant', content => 'A cat.' }, @hi ]);

$res = $t->post('/v1/chat/completions', { model => 'demo', max_tokens => 2,
    messages => [ @hi, { role => 'assistant', content => 'A cat.' },
                  { role => 'user', content => \@pictures } ] });
is($res->{status}, 400, 'in the last one');
is($res->{json}{error}{param}, 'messages[2].content[0].type', 'where');

$res = $t->post('/v1/apply-template', { model => 'script', messages => [
    { role => 'user', content => [ { type => 'input_text', text => 'a' },
                                   @pictures ] },
    { role => 'assistant', content => [
        { type => 'thinking', thinking => 'Hm.' },
        { type => 'output_text', text => 'b' } ] }, @hi ] });
is($res->{json}{prompt}, "[user|a\n[image]\n[file: a.pdf]\n[audio]]"
   . '[assistant|b][user|Hi]', 'what is left of them') or diag($res->{body});

$t->stop;

done_testing();
