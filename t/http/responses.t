#!/usr/bin/perl

# POST /v1/responses: what agents send is taken, a stream's events come in
# their order and say what the body says, errors are OpenAI's.

use strict;
use warnings;

use LLM::Test;
use Test::More;

my $t = LLM::Test->new(locations => <<'END')->start;
        location /v1 { llm_api; }
        location /small { llm_stream_buffer 8k; llm_api; }
        location = /health { llm_health; }
END

my %ask = (input => 'What is 2 + 2?', temperature => 0);

sub ask {
    return $t->post('/v1/responses', { %ask, @_ });
}

sub events {
    return $t->open('/v1/responses', { %ask, @_, stream => \1 })->events;
}

# what differs from one request to the next

sub same {
    my ($response) = @_;
    my %r = %$response;

    delete @r{qw(id created_at completed_at usage)};
    $_ = { %$_, id => '', exists $_->{call_id} ? (call_id => '') : () }
        for @{ $r{output} = [ @{ $r{output} } ] };

    return \%r;
}


my $begin = time;
my $res = ask();
my $whole = $res->{json};

is($res->{status}, 200, 'answers') or diag($res->{body});
is($res->{headers}{'content-type'}, 'application/json', 'JSON');
like($whole->{id}, qr/^resp_\w+$/, 'id');
is($whole->{object}, 'response', 'object');
is($whole->{status}, 'completed', 'status');
ok($whole->{created_at} >= $begin && $whole->{created_at} <= time,
   'created_at');
is($whole->{output}[0]{type}, 'message', 'a message');
is($whole->{output}[0]{content}[0]{text}, '2 + 2 = 4.', 'its text');
is($whole->{usage}{total_tokens},
   $whole->{usage}{input_tokens} + $whole->{usage}{output_tokens},
   'usage adds up');
ok(exists $whole->{$_}, "it has $_")
    for qw(error incomplete_details instructions metadata model
           parallel_tool_calls temperature tool_choice tools top_p
           max_output_tokens previous_response_id reasoning text truncation
           presence_penalty frequency_penalty);
cmp_ok($whole->{completed_at}, '>=', $whole->{created_at}, 'completed_at');

my $chat = $t->chat('What is 2 + 2?', temperature => 0)->{json};

is($whole->{output}[0]{content}[0]{text},
   $chat->{choices}[0]{message}{content}, 'the text of a chat');
is($whole->{usage}{input_tokens}, $chat->{usage}{prompt_tokens},
   'from the same prompt');

# how long its prompt is

$res = $t->post('/v1/responses/input_tokens', { %ask, stream => \1 });
is_deeply($res->{json}, { object => 'response.input_tokens',
                          input_tokens => $whole->{usage}{input_tokens} },
          'counted before') or diag($res->{body});
$res = $t->post('/v1/responses/input_tokens', { input => [] });
is($res->{status}, 400, 'nothing to count');
is($res->{json}{error}{param}, 'input', 'is named');

# a stream

my @events = events();

is(join(' ', map { $_->{name} } @events),
   join(' ', map { $_->{json}{type} } @events), 'the name of each event');
is(join(' ', map { $_->{json}{sequence_number} } @events),
   join(' ', 0 .. $#events), 'and its number');

my @order = map { $_->{name} =~ s/^response\.//r } @events;
my @middle = grep { $_ ne 'output_text.delta' } @order;

is("@middle", 'created in_progress output_item.added content_part.added'
   . ' output_text.done content_part.done output_item.done completed',
   'their order');
cmp_ok(scalar @order - scalar @middle, '>', 3, 'with deltas');

my %ids = map { $_ => 1 } map {
    $_->{json}{item_id} // ($_->{json}{item} ? $_->{json}{item}{id} : ())
} @events;

is(scalar keys %ids, 1, 'one id of the message');
is(scalar keys %{ { map { $_->{json}{response}{id} => 1 }
                    grep { $_->{json}{response} } @events } }, 1,
   'one of the response');
is(join('', map { $_->{json}{delta} // '' } @events),
   $whole->{output}[0]{content}[0]{text}, 'deltas are the text');
is_deeply(same($events[-1]{json}{response}), same($whole),
          'its end is what the body is');
is($events[0]{json}{response}{status}, 'in_progress', 'its beginning');
is($events[0]{json}{response}{completed_at}, undef, 'which is not its end');

# cut

$res = ask(max_output_tokens => 2);

is($res->{json}{status}, 'incomplete', 'cut: incomplete');
is($res->{json}{completed_at}, undef, 'never completed');
is($res->{json}{incomplete_details}{reason}, 'max_output_tokens', 'why');
is($res->{json}{usage}{output_tokens}, 2, 'two tokens');

@events = events(max_output_tokens => 2);

is($events[-1]{name}, 'response.incomplete', 'so it is in a stream');

# more than the context: what is left

is(ask(max_output_tokens => 1000000)->{status}, 200,
   'as many tokens as there are');

# logprobs

$res = ask(include => [ 'message.output_text.logprobs' ], top_logprobs => 2);

my $part = $res->{json}{output}[0]{content}[0];

is(join('', map { $_->{token} } @{ $part->{logprobs} }), $part->{text},
   'logprobs of the text');
is(scalar @{ $part->{logprobs}[0]{top_logprobs} }, 2, 'with the most likely');

@events = events(include => [ 'message.output_text.logprobs' ]);
is(join('', map { $_->{token} } map { @{ $_->{json}{logprobs} } }
            grep { $_->{name} =~ /delta/ } @events), $part->{text},
   'in deltas, too');

# what Codex sends

my %codex = (
    model => 'gpt-4o-mini',
    instructions => 'You are a coding agent. ' . 'Be precise. ' x 40,
    input => [
        { type => 'message', role => 'developer', content => [
            { type => 'input_text', text => '<permissions>none</permissions>' }
        ] },
        { type => 'message', role => 'user', content => [
            { type => 'input_text', text => '<environment_context>' },
            { type => 'input_text', text => 'What is 2 + 2?' } ] },
        { type => 'reasoning', id => 'rs_1', summary => [], content => undef,
          encrypted_content => 'gAAAAABoX' },
        { type => 'function_call', id => 'fc_1', name => 'shell',
          arguments => '{"command":["ls"]}', call_id => 'call_1' },
        { type => 'function_call_output', call_id => 'call_1',
          output => '{"output":"a\nb"}' },
        { type => 'message', role => 'user', content => [
            { type => 'input_text', text => 'Hello!' } ] },
    ],
    tools => [
        { type => 'function', name => 'shell', description => 'Runs it.',
          strict => \0, parameters => { type => 'object', properties => {
              command => { type => 'array', items => { type => 'string' } } },
              required => [ 'command' ], additionalProperties => \0 } },
        { type => 'namespace', name => 'mcp', tools => [] },
        { type => 'web_search', external_web_access => \0 },
    ],
    tool_choice => 'auto', parallel_tool_calls => \0,
    reasoning => { effort => 'medium', summary => 'auto' },
    store => \0, stream => \1, include => [ 'reasoning.encrypted_content' ],
    prompt_cache_key => '0199', text => { verbosity => 'low' },
    client_metadata => { session => 'x' }, max_output_tokens => 20,
);

@events = $t->open('/v1/responses', \%codex)->events;

is($events[0]{name}, 'response.created', 'Codex: begins');
like($events[-1]{name}, qr/^response\.(?:completed|incomplete)$/,
     'Codex: ends') or diag($events[-1]{data});
is($events[-1]{json}{response}{instructions}, $codex{instructions},
   'Codex: its instructions are repeated');
is_deeply([ map { $_->{type} } @{ $events[-1]{json}{response}{tools} } ],
          [ 'function', 'namespace', 'web_search' ], 'Codex: and its tools');

# a function of a namespace, as which Codex offers MCP servers

for my $stream (\0, \1) {
    my %ask = (input => 'What time is it?', max_output_tokens => 60,
               temperature => 0, stream => $stream,
               tools => [ { type => 'namespace', name => 'mcp__clock',
                            description => 'A clock.', tools => [
                   { type => 'function', name => 'now',
                     parameters => { type => 'object', properties => {} } }
               ] } ],
               tool_choice => { type => 'function', name => 'now',
                                namespace => 'mcp__clock' });
    my $answer = $$stream
        ? ($t->open('/v1/responses', \%ask)->events)[-1]{json}{response}
        : ask(%ask)->{json};
    my ($call) = grep { $_->{type} eq 'function_call' }
                 @{ $answer->{output} };

    is($call->{name}, 'now', 'a call of a function by its own name');
    is($call->{namespace}, 'mcp__clock', 'and its namespace');
}

# a prompt that is too long is refused before any event

for my $stream (\0, \1) {
    $res = ask(instructions => 'many words ' x 30000, stream => $stream);

    is($res->{status}, 400, 'too long a prompt');
    is($res->{headers}{'content-type'}, 'application/json', 'no stream');
    is($res->{json}{error}{code}, 'context_length_exceeded', 'its code');
    is($res->{json}{error}{param}, 'input', 'its place');
}

# errors are OpenAI's

sub refused {
    my ($param, $status, %body) = @_;

    $res = ask(%body);

    is($res->{status}, $status, ($param // 'no param') . ": $status")
        or diag($res->{body});
    is($res->{json}{error}{param}, $param, 'param');
    ok(exists $res->{json}{error}{$_}, $_) for qw(message type code);
}

refused('input', 400, input => []);
refused('model', 404, model => 'nobody');
refused('previous_response_id', 400, previous_response_id => 'resp_1');
refused('input[0].content[0].type', 400, input => [ { role => 'user',
    content => [ { type => 'input_image', image_url => 'x' } ] } ]);

$res = $t->get('/v1/responses');
is($res->{status}, 405, 'GET is 405');
is($res->{json}{error}{code}, 'method_not_allowed', 'in OpenAI\'s form');

# a stream keeps its answer, within the bound of one that is not streamed

@events = $t->open('/small/responses', { %ask, stream => \1, ignore_eos => \1,
    include => [ 'message.output_text.logprobs' ], top_logprobs => 20,
    max_output_tokens => 1500 })->events;

is($events[-1]{name}, 'response.failed', 'too large an answer');
is($events[-1]{json}{response}{status}, 'failed', 'has failed');
like($events[-1]{json}{response}{error}{message}, qr/larger than 524288/,
     'and says why');
is($events[-1]{json}{sequence_number}, $#events, 'with the next number');

$t->stop;

done_testing();
