#!/usr/bin/perl

# POST /v1/messages: what agents send is taken, a stream's events come in
# their order and say what the body says, errors are Anthropic's.

use strict;
use warnings;

use LLM::Test;
use Test::More;

my $t = LLM::Test->new(
    model => LLM::Test::default_model()
        . 'llm_model broken %%DIR%%/none.gguf;',
    locations => <<'END');
        location /v1 { llm_api; }
        location /pages { llm_api; llm_intercept_errors on;
                          error_page 404 /other; }
        location = /other { return 200 "from another one"; }
        location = /health { llm_health; }
END

$t->write_file('none.gguf', 'no model');
$t->start(cold => 1);

LLM::Test::wait_for(60, sub {
    $t->chat('a', model => 'demo', max_tokens => 1)->{status} == 200
}) or die $t->log;

my %ask = (model => 'demo', max_tokens => 100, temperature => 0,
           messages => [ { role => 'user', content => 'What is 2 + 2?' } ]);

sub ask {
    return $t->post('/v1/messages?beta=true', { %ask, @_ });
}

sub events {
    return $t->open('/v1/messages?beta=true', { %ask, @_, stream => \1 })
        ->events;
}


my $res = ask();
my $whole = $res->{json};

is($res->{status}, 200, 'answers') or diag($res->{body});
is($res->{headers}{'content-type'}, 'application/json', 'JSON');
like($whole->{id}, qr/^msg_\w+$/, 'id');
is($whole->{type}, 'message', 'type');
ok($res->{headers}{'request-id'}, 'request-id');
is($whole->{role}, 'assistant', 'role');
is_deeply($whole->{content}, [ { type => 'text', text => '2 + 2 = 4.' } ],
          'a text block');
is($whole->{stop_reason}, 'end_turn', 'stop_reason');
ok(exists $whole->{stop_sequence} && !defined $whole->{stop_sequence},
   'stop_sequence');

my $chat = $t->chat('What is 2 + 2?', model => 'demo', temperature => 0)
    ->{json};
my $again = ask()->{json}{usage};

is($again->{input_tokens} + $again->{cache_read_input_tokens},
   $chat->{usage}{prompt_tokens}, 'from the prompt of a chat');
cmp_ok($again->{cache_read_input_tokens}, '>', 0, 'which is cached by now');
cmp_ok($again->{input_tokens}, '>', 0, 'but not all of it');
is($again->{cache_creation_input_tokens}, 0, 'nothing else is counted');

# a stream

my @events = events();

is(join(' ', map { $_->{name} } @events),
   join(' ', map { $_->{json}{type} } @events), 'the name of each event');

my @order = map { $_->{name} } @events;
my @middle = grep { $_ ne 'content_block_delta' } @order;

is("@middle", 'message_start ping content_block_start content_block_stop'
   . ' message_delta message_stop', 'their order');
is(join('', map { $_->{json}{delta}{text} // '' } @events), '2 + 2 = 4.',
   'deltas are the text');

my $start = $events[0]{json}{message};

like($start->{id}, qr/^msg_\w+$/, 'its id');
cmp_ok($start->{usage}{input_tokens}, '>', 0, 'input_tokens at the start');
is_deeply($start->{content}, [], 'and no content');
is($events[-2]{json}{delta}{stop_reason}, 'end_turn', 'stop_reason');
is($events[-2]{json}{usage}{output_tokens}, $again->{output_tokens},
   'output_tokens');

# ends

is(ask(max_tokens => 2)->{json}{stop_reason}, 'max_tokens', 'cut');
is(ask(max_tokens => 1000000)->{status}, 200, 'as many as there are');

$res = ask(stop_sequences => [ 'x', ' =' ])->{json};

is($res->{stop_reason}, 'stop_sequence', 'a stop sequence');
is($res->{stop_sequence}, ' =', 'is named');
is($res->{content}[0]{text}, '2 + 2', 'and not sent');

@events = events(stop_sequences => [ ' =' ]);
is_deeply($events[-2]{json}{delta},
          { stop_reason => 'stop_sequence', stop_sequence => ' =' },
          'so it is in a stream');

# a prefill is continued

like(ask(messages => [ @{ $ask{messages} },
                       { role => 'assistant', content => '2 + 2 =' } ])
         ->{json}{content}[0]{text}, qr/^ 4/, 'a prefill is continued');

# what Claude Code sends

my %code = (
    model => 'demo', max_tokens => 32000, stream => \1,
    thinking => { type => 'adaptive' },
    context_management => { edits => [ { type => 'clear_thinking_20251015',
                                         keep => 'all' } ] },
    output_config => { effort => 'high' },
    metadata => { user_id => 'user_1' },
    system => [ { type => 'text', text => 'You are an agent.',
                  cache_control => { type => 'ephemeral', ttl => '1h' } },
                { type => 'text', text => 'Be precise.' } ],
    tools => [ map { { name => "Tool$_", description => 'It helps.',
                       input_schema => { type => 'object', properties => {},
                           '$schema' =>
                               'http://json-schema.org/draft-07/schema#' },
                       eager_input_streaming => \1 } } 1 .. 5 ],
    messages => [
        { role => 'user', content => [
            { type => 'text', text => '<system-reminder>x</system-reminder>' },
            { type => 'text', text => 'Hi', cache_control =>
                { type => 'ephemeral' } } ] },
        { role => 'assistant', content => [
            { type => 'thinking', thinking => 'Hm.', signature => 'sig_1' },
            { type => 'tool_use', id => 'toolu_1', name => 'Tool1',
              input => { path => '/tmp' } } ] },
        { role => 'user', content => [
            { type => 'tool_result', tool_use_id => 'toolu_1',
              is_error => \0, content => [
                  { type => 'text', text => 'nothing there' } ] },
            { type => 'text', text => 'What is 2 + 2?' } ] },
        { role => 'system', content => 'Be kind.' },
        { role => 'user', content => 'Hello!' },
    ],
);

@events = $t->open('/v1/messages?beta=true', { %code, max_tokens => 20 },
                   headers => { 'anthropic-version' => '2023-06-01',
                                'anthropic-beta' => 'claude-code-20250219',
                                'x-api-key' => 'none' })->events;

is($events[0]{name}, 'message_start', 'Claude Code: begins')
    or diag($events[0]{data});
is($events[-1]{name}, 'message_stop', 'Claude Code: ends');

# count_tokens

sub count {
    return $t->post('/v1/messages/count_tokens', { @_ });
}

$res = count(%ask);

is($res->{status}, 200, 'tokens are counted') or diag($res->{body});
is_deeply($res->{json}, { input_tokens => $chat->{usage}{prompt_tokens} },
          'those of the prompt');
is(count(%ask, stream => \1)->{body}, $res->{body}, 'never in a stream');
is(count(%code)->{json}{input_tokens},
   $events[0]{json}{message}{usage}{input_tokens}
   + $events[0]{json}{message}{usage}{cache_read_input_tokens},
   'with tools and all blocks');
cmp_ok(count(model => 'demo', messages => [ { role => 'user',
           content => 'many words ' x 30000 } ])->{json}{input_tokens}, '>',
       30000, 'also more than fit');

# errors are Anthropic's, also where the body was not read

sub refused {
    my ($name, $status, $type, $got) = @_;
    my $json = $got->{json} // {};

    is($got->{status}, $status, "$name: $status") or diag($got->{body});
    is($json->{type}, 'error', "$name: an error");
    is($json->{error}{type}, $type, "$name: $type");
    ok(length $json->{error}{message}, "$name: says why");
    is($json->{request_id}, $got->{headers}{'request-id'},
       "$name: whose it is");
    is($got->{headers}{'x-request-id'}, $got->{headers}{'request-id'},
       "$name: under both names");

    return $json->{error}{message};
}

refused('no JSON', 400, 'invalid_request_error',
        $t->post('/v1/messages', '{'));
refused('no messages', 400, 'invalid_request_error',
        $t->post('/v1/messages', { max_tokens => 1 }));
refused('a picture', 400, 'invalid_request_error',
        ask(messages => [ { role => 'user', content => [
            { type => 'image', source => {} } ] } ]));
refused('an unknown model', 404, 'not_found_error', ask(model => 'nobody'));
refused('a broken model', 503, 'overloaded_error', ask(model => 'broken'));
refused('another method', 405, 'invalid_request_error',
        $t->get('/v1/messages'));
refused('another method to count', 405, 'invalid_request_error',
        $t->get('/v1/messages/count_tokens'));
refused('nothing to count', 400, 'invalid_request_error', count());

for my $stream (\0, \1) {
    like(refused('too long a prompt', 400, 'invalid_request_error',
                 ask(system => 'many words ' x 30000, stream => $stream)),
         qr/^prompt is too long: .*\d/, 'in words that agents know');
}

# a key of idempotency

my @key = (headers => { 'Idempotency-Key' => 'messages-1' });
my @twice = map { $t->post('/v1/messages', \%ask, @key)->{body} } 1, 2;

is($twice[1], $twice[0], 'a repeated key has the same answer');
refused('its other use', 409, 'invalid_request_error',
        $t->post('/v1/messages', { %ask, max_tokens => 7 }, @key));

is($t->post('/v1/messages', '{', headers => { 'x-request-id' => 'mine-1' })
       ->{json}{request_id}, 'mine-1', 'a client\'s own id');

is($t->post('/pages/messages', { %ask, model => 'nobody' })->{body},
   'from another one', 'an error_page comes first');
is($t->post('/v1/message', \%ask)->{json}{error}{code}, 'not_found',
   'other paths have OpenAI\'s errors');

$t->stop;


# what does not fit, and a full queue

$t = LLM::Test->new(
    model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=1 parallel=1;'
           . ' llm_queue 1; llm_shared_memory 256k;')->start;

refused('more than the memory between workers', 413, 'request_too_large',
        ask(system => 'a' x 200000));

my @busy = map { $t->open('/v1/completions',
    { prompt => 'a', max_tokens => 3900, n => 16, ignore_eos => \1 }) } 1 .. 2;

ok(LLM::Test::wait_for(30, sub {
    my $f = $t->figures;
    $f->{running} && $f->{waiting}
}), 'the queue is full') or diag(explain($t->figures));

$res = ask();
refused('a full queue', 429, 'rate_limit_error', $res);
ok($res->{headers}{'retry-after'}, 'and when to come again');

$_->close for @busy;

$t->stop;

done_testing();
