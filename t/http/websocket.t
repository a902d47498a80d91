#!/usr/bin/perl

# llm_websocket: Responses by a WebSocket; streams beside each other; what is not
# one; frames at their edges; limits and keys of its messages; clients that
# leave, wait and do not read; a reload meanwhile.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use LLM::JSON;
use LLM::Socket;
use LLM::Test;
use Test::More;

my $t = LLM::Test->new(
    model => LLM::Test::default_model(),
    http => 'limit_req_zone $uri zone=rare:1m rate=1r/m;'
          . ' log_format who "$remote_addr $request_method $status $llm_model";'
          . ' access_log logs/who.log who;',
    locations => <<'END');
        location /off { llm_api; }
        location /keys { llm_websocket on; llm_api_keys keys; llm_api; }
        location /rare {
            llm_websocket on; limit_req zone=rare burst=1 nodelay; llm_api;
        }
        location /small { llm_websocket on; client_max_body_size 2k; llm_api; }
        location /timed { llm_websocket on; send_timeout 5s; llm_api; }
        location /v1 { llm_websocket on; llm_api; }
        location = /health { llm_health; }
        location = /metrics { llm_metrics; }
END
$t->write_file('keys', key('one'));
$t->start;

my %ask = (model => 'demo', temperature => 0, max_output_tokens => 24);


sub key {
    my ($id) = @_;

    return encode_json({ id => $id, sha256 => sha256_hex("sk-llm-$id") })
         . "\n";
}


sub socket_of {
    my ($path, %opt) = @_;

    return LLM::Socket->new(port => $t->port, path => $path, %opt);
}


sub running {
    return $t->figure('vllm:num_requests_running', 'model_name="demo"') // 0;
}


# ---- the handshake ----

my $ws = socket_of('/v1/responses');

is($ws->{status}, 101, 'it is upgraded');
ok($ws->{accepted}, 'with the right word') or diag($ws->{head});

for my $case ([ {}, '/off/responses', 426, 'off' ],
              [ {}, '/v1/chat/completions', 426, 'another endpoint' ],
              [ { Upgrade => 'h2c' }, '/v1/responses', 405,
                'another protocol' ],
              [ { 'Sec-WebSocket-Version' => 8 }, '/v1/responses', 426,
                'another version' ],
              [ { 'Sec-WebSocket-Key' => 'abc' }, '/v1/responses', 400,
                'a short key' ],
              [ { 'Sec-WebSocket-Key' => undef }, '/v1/responses', 400,
                'no key' ],
              [ { 'Content-Length' => 1 }, '/v1/responses', 400, 'a body' ],
              [ { Origin => 'https://elsewhere.example' }, '/v1/responses',
                403, 'a page from elsewhere' ],
              [ { Origin => 'null' }, '/v1/responses', 403, 'no origin' ],
              [ { Origin => 'http://127.0.0.1:' . $t->port }, '/v1/responses',
                101, 'a page of this server' ],
              [ {}, '/keys/responses', 401, 'no API key' ])
{
    my ($headers, $path, $status, $name) = @$case;

    is(socket_of($path, headers => $headers)->{status}, $status, $name);
}


# ---- conversations ----

my $open = $t->post('/v1/responses', { %ask, input => 'What is 2 + 2?' })
    ->{json};
my $text = $open->{output}[0]{content}[0]{text};

$ws->ask(%ask, input => 'What is 2 + 2?');
my @events = $ws->events;
my $response = $events[-1]{response};

is($events[0]{type}, 'response.created', 'events');
is($events[-1]{type}, 'response.completed', 'up to the last');
is(LLM::Socket::text(@events), $text, 'the text is that of HTTP');
is($response->{output}[0]{content}[0]{text}, $text, 'also as a whole');

# events of more than 64 KB, which the client reads at once: nothing waits for
# its next ping, or for a time that is over

for my $lanes (1, 8) {
    my $ws = socket_of('/timed/responses');

    $ws->ask(%ask, input => 'What is 2 + 2?', stream_id => "s$_",
             text => { format => { type => 'json_schema', name => 'a',
                                   schema => { type => 'string', maxLength => 9,
                                               description => 'y' x 200_000 }
                                 } }) for 1 .. $lanes;

    is(scalar(grep { /completed|incomplete/ }
              map { ($ws->events)[-1]{type} } 1 .. $lanes),
       $lanes, "$lanes large answers at once");
}

my @items = ({ type => 'message', role => 'user', content => 'What is 2 + 2?' },
             $response->{output}[0],
             { type => 'message', role => 'user', content => 'And 3 + 3?' });
my $whole = $t->post('/v1/responses', { %ask, input => \@items })->{json};

$ws->ask(%ask, input => 'And 3 + 3?', previous_response_id => $response->{id});
@events = $ws->events;
my $second = $events[-1]{response};

is($second->{usage}{input_tokens}, $whole->{usage}{input_tokens},
   'previous_response_id: its items come first');
is($second->{output}[0]{content}[0]{text}, $whole->{output}[0]{content}[0]{text},
   'the same answer as with all of them');

$ws->ask(%ask, input => 'x', previous_response_id => $response->{id});
@events = $ws->events;
is($events[0]{error}{code}, 'previous_response_not_found',
   'the last response alone is remembered');
is("$events[0]{type} $events[0]{status} $events[0]{error}{param}",
   'error 400 previous_response_id', 'its form');

$ws->ask(%ask, input => 'x', previous_response_id => $second->{id});
is(($ws->events)[0]{error}{code}, 'previous_response_not_found',
   'and none after an error');

$ws->ask(%ask, input => 'What is 2 + 2?', generate => LLM::JSON::false);
@events = $ws->events;
is(join(' ', map { $_->{type} } @events), 'response.created response.completed',
   'generate false: two events');
is(scalar @{ $events[1]{response}{output} }, 0, 'without output');

$ws->ask(%ask, input => [], previous_response_id => $events[1]{response}{id});
@events = $ws->events;
is(LLM::Socket::text(@events), $text, 'an answer to what was prepared');
cmp_ok($events[-1]{response}{usage}{input_tokens_details}{cached_tokens}, '>',
       0, 'whose prompt was computed');


# ---- streams ----

my $long_one = { %ask, max_output_tokens => 400,
                 ignore_eos => LLM::JSON::true, input => 'Tell me a story' };

$ws->ask(%ask, input => 'What is 2 + 2?', stream_id => 'main');
my $main = ($ws->events)[-1];
is($main->{stream_id}, 'main', 'events name their stream');

$ws->ask(%$long_one, stream_id => 'long');
$ws->ask(%ask, input => 'What is 2 + 2?', stream_id => 'short');
$ws->ask(%ask, input => 'And 3 + 3?', stream_id => 'short',
         previous_response_id => $main->{response}{id});
$ws->ask(%ask, input => 'x', stream_id => 'wrong',
         previous_response_id => 'resp_none');

my (%events, @ends);

while (@ends < 4) {
    for my $event ($ws->events) {
        push @{ $events{ $event->{stream_id} // '' } }, $event;
        push @ends, $event->{stream_id}
            if $event->{type} =~ /^(?:response\.(?:completed|incomplete)|error)$/;
    }
}

is($ends[-1], 'long', 'streams run beside each other');
is(join(' ', grep { $_ ne 'wrong' } @ends), 'short short long',
   'the messages of one after each other');
is_deeply([ sort keys %events ], [ qw(long short wrong) ],
          'each event has the name of its stream');
is($events{wrong}[0]{error}{code}, 'previous_response_not_found',
   'an error, too');

my @short = split /(?<=\n)/, join '', map {
    $_->{type} eq 'response.output_text.delta' ? $_->{delta}
    : $_->{type} eq 'response.completed' ? "\n" : '' } @{ $events{short} };
is($short[0], "$text\n", 'the first answer is whole');
is($short[1], LLM::Socket::text(
       map { { type => 'response.output_text.delta',
               delta => $_->{output}[0]{content}[0]{text} } } $whole) . "\n",
   'the second continues the response of another stream');

$ws->ask(%ask, input => 'What is 2 + 2?', stream_id => '');
is(($ws->events)[0]{error}{param}, 'stream_id', 'a name that is empty');

# more streams than run at once, and then one that leaves

my $many = socket_of('/v1/responses');
$many->ask(%ask, input => 'What is 2 + 2?', stream_id => "s$_") for 1 .. 12;
my %seen;

while (keys %seen < 12) {
    my $last = ($many->events)[-1];

    last if $last->{type} ne 'response.completed';
    $seen{ $last->{stream_id} } = $last->{response}{output}[0]{content}[0]{text};
}

is_deeply(\%seen, { map { ("s$_" => $text) } 1 .. 12 },
          'more streams than run at once');

$many->ask(%$long_one, max_output_tokens => 3000, stream_id => "l$_")
    for 1 .. 3;
ok(LLM::Test::wait_for(20, sub { running() == 3 }), 'three run');
$many->close;
LLM::Test::wait_for(20, sub { !running() });
is(running(), 0, 'and all are cancelled when the client leaves');


# ---- wrong messages ----

$ws = socket_of('/v1/responses');

for my $case ([ 'x', undef, 'could not parse' ], [ '[]', undef, 'JSON object' ],
              [ '{"type":"session.update"}', 'type', 'response\.create' ],
              [ encode_json({ type => 'response.create', %ask, input => 'a',
                              generate => 5 }), 'generate', 'boolean' ],
              [ encode_json({ type => 'response.create', %ask, input => 5 }),
                'input', 'an array' ],
              [ encode_json({ type => 'response.create', %ask, input => 'a',
                              previous_response_id => 5 }),
                'previous_response_id', 'a string' ],
              [ encode_json({ type => 'response.create', %ask, input => 'a',
                              background => LLM::JSON::true }), 'background',
                'not supported' ],
              [ encode_json({ type => 'response.create', model => 'none',
                              input => 'a' }), 'model', 'does not exist' ])
{
    my ($message, $param, $words) = @$case;

    $ws->frame(1, $message);
    my ($error) = $ws->events;
    is($error->{type}, 'error', substr $message, 0, 60);
    is($error->{error}{param}, $param, 'names it');
    like($error->{error}{message}, qr/$words/, 'and the reason');
}


# ---- frames ----

my $message = encode_json({ type => 'response.create', %ask,
                            input => 'What is 2 + 2?' });

$ws->frame(1, substr($message, 0, 9), fin => 0);
$ws->frame(9, 'there?');
$ws->frame(0, substr($message, 9, 9), fin => 0);
$ws->frame(0, substr($message, 18));
is_deeply([ $ws->next_frame ], [ 10, 'there?' ], 'a ping between fragments');
is(LLM::Socket::text($ws->events), $text, 'which are one message');

$ws->raw($_) for split //, LLM::Socket::frame_of(1, $message);
is(LLM::Socket::text($ws->events), $text, 'byte by byte');

$ws->raw(LLM::Socket::frame_of(1, $message) x 3);
is(LLM::Socket::text($ws->events), $text, "three at once: $_") for 1 .. 3;

my $early = socket_of('/v1/responses',
                      behind => LLM::Socket::frame_of(1, $message));
is(LLM::Socket::text($early->events), $text, 'right behind the handshake');

my $long = 'a ' x 40000;
$ws->ask(%ask, input => [ { role => 'user', content => 'What is 2 + 2?' } ],
         metadata => { a => 'b' }, instructions => $long);
@events = $ws->events;
is($events[-1]{error}{code}, 'context_length_exceeded', 'a long message');

# a thread reads what is large: a message, and an event with what was asked

my $spaces = ' ' x 40000;

$ws->raw(LLM::Socket::frame_of(1, "$spaces$message")
         . LLM::Socket::frame_of(1, $message));
is(LLM::Socket::text($ws->events), $text, $_)
    for 'a large message', 'and the one behind it';

$ws->frame(1, "$spaces\{\"type\":\"response.create\",");
is(($ws->events)[0]{type}, 'error', 'a large one that is wrong');

$ws->ask(%ask, input => 'What is 2 + 2?', text => { format => {
             type => 'json_schema', name => 'a', schema => {
                 type => 'string', description => 'x' x 40000 } } });
@events = $ws->events;
like($events[-1]{type}, qr/^response\.(?:completed|incomplete)$/,
     'large events');
is(length $events[-1]{response}{text}{format}{schema}{description}, 40000,
   'as a whole');
$ws->ask(%ask, input => 'What is 2 + 2?',
         previous_response_id => $events[-1]{response}{id});
is(($ws->events)[-1]{type}, 'response.completed', 'which are remembered');

for (1 .. 8) {
    my $gone = socket_of('/v1/responses');

    $gone->frame(1, $spaces x 15 . $message);
    $gone->close;
}

is(socket_of('/v1/responses')->{status}, 101, 'clients that leave meanwhile');

for my $case ([ 1002, LLM::Socket::frame_of(1, 'x', mask => 0), 'no mask' ],
              [ 1002, LLM::Socket::frame_of(0, 'x'), 'a second part first' ],
              [ 1002, LLM::Socket::frame_of(1, 'a', fin => 0)
                      . LLM::Socket::frame_of(1, 'b'), 'two beginnings' ],
              [ 1002, LLM::Socket::frame_of(3, 'x'), 'an unknown opcode' ],
              [ 1002, LLM::Socket::frame_of(0x41, 'x'), 'a reserved bit' ],
              [ 1002, LLM::Socket::frame_of(9, 'x' x 126), 'a long ping' ],
              [ 1002, LLM::Socket::frame_of(9, 'x', fin => 0),
                'half a ping' ],
              [ 1002, LLM::Socket::frame_of(8, 'x'), 'half a code' ],
              [ 1002, LLM::Socket::frame_of(8, pack 'n', 1005),
                'a code that is never sent' ],
              [ 1003, LLM::Socket::frame_of(2, 'x'), 'a binary message' ],
              [ 1009, pack('CCQ>', 0x81, 0xff, 2**40) . 'mask', 'a terabyte' ],
              [ 1000, LLM::Socket::frame_of(8, pack('n', 1000) . 'bye'),
                'a close frame' ],
              [ 1000, LLM::Socket::frame_of(8, ''), 'without a code' ],
              [ 4321, LLM::Socket::frame_of(8, pack 'n', 4321), 'of its own' ])
{
    my ($code, $bytes, $name) = @$case;
    my $other = socket_of('/v1/responses');

    $other->raw($bytes);
    my ($opcode, $data) = $other->next_frame;
    is_deeply([ $opcode, unpack 'n', $data // '' ], [ 8, $code ], $name);
    is($other->next_frame, undef, 'and the end');
}

my $small = socket_of('/small/responses');
$small->ask(%ask, input => 'x' x 1900);
like(($small->events)[-1]{type}, qr/^response\.(?:completed|incomplete)$/,
     'just small enough');
$small->ask(%ask, input => 'x' x 2100);
is_deeply([ $small->events ], [ { type => 'close', code => 1009 } ],
          'larger than client_max_body_size');

$small = socket_of('/small/responses');
$small->ask(%ask, input => 'x' x 1500);
@events = $small->events;
$small->ask(%ask, input => 'x' x 900,
            previous_response_id => $events[-1]{response}{id});
is(($small->events)[0]{error}{code}, 'request_too_large',
   'with what is remembered');


# ---- keys, limits, the log ----

my $key = socket_of('/keys/responses',
                    headers => { Authorization => 'Bearer sk-llm-one' });
$key->ask(%ask, input => 'What is 2 + 2?');
is(LLM::Socket::text($key->events), $text, 'with an API key');

$t->write_file('keys', key('two'));
$t->reload;
LLM::Test::wait_for(20, sub { $t->workers == 1 });
is(socket_of('/keys/responses',
             headers => { Authorization => 'Bearer sk-llm-one' })->{status},
   401, 'a key that was withdrawn');

my $rare = socket_of('/rare/responses');
is($rare->{status}, 101, 'the handshake counts as a request');
$rare->ask(%ask, input => 'What is 2 + 2?');
is(($rare->events)[-1]{type}, 'response.completed', 'so does a message');
$rare->ask(%ask, input => 'What is 2 + 2?');
my ($error) = $rare->events;
is("$error->{type} $error->{status}", 'error 503', 'the next is one too many');
ok($error->{error}{message}, 'which nginx says without JSON');

like(LLM::Test::slurp($t->dir . '/logs/who.log'),
     qr/^127\.0\.0\.1 POST 200 demo$/m, 'the log has messages as requests');


# ---- clients that leave, and one that does not read ----

for my $how ('leaves', 'closes') {
    my $gone = socket_of('/v1/responses');

    $gone->ask(%ask, max_output_tokens => 3000, ignore_eos => LLM::JSON::true,
               input => 'Tell me a story');
    $gone->next_frame for 1 .. 8;
    ok(LLM::Test::wait_for(20, sub { running() }), 'a client');

    $how eq 'leaves' ? $gone->close : $gone->frame(8, pack 'n', 1000);
    LLM::Test::wait_for(20, sub { !running() });
    is(running(), 0, "$how, and its request is cancelled");
}

my $lazy = socket_of('/v1/responses');
$lazy->ask(%ask, max_output_tokens => 3000, ignore_eos => LLM::JSON::true,
           input => 'Tell me a story');
sleep 2;
my $deltas = grep { $_->{type} eq 'response.output_text.delta' } $lazy->events;
cmp_ok($deltas, '>', 100, 'a client that reads late gets all');


# ---- more messages than connections ----

my $few = LLM::Test->new(model => LLM::Test::default_model(),
                         connections => 24, locations => <<'END');
        location /v1 { llm_websocket on; llm_api; }
        location = /health { llm_health; }
END
$few->start;

my @crowd = map { LLM::Socket->new(port => $few->port) } 1 .. 3;

# a socket's messages come in one piece, so its requests begin in one turn of the
# event loop: their 16 connections are more than there are

for my $socket (@crowd) {
    $socket->raw(join '', map {
        LLM::Socket::ask_of(%ask, input => 'What is 2 + 2?', stream_id => "s$_")
    } 1 .. 9);
}

my %ends;

for my $socket (@crowd) {
    for (1 .. 9) {
        my $last = ($socket->events)[-1];

        $ends{ $last->{error}{code} // $last->{type} }++;
    }
}

is(join(' ', sort keys %ends), 'overloaded response.completed',
   'are answered, or refused as too many') or diag(explain(\%ends));
is(() = $few->log =~ /\[alert\]/g, 0, 'without a line in the log for each');
$few->stop(name => 'few connections');


# ---- a reload, and the end ----

my $idle = socket_of('/v1/responses');
my $busy = socket_of('/v1/responses');
$busy->ask(%ask, max_output_tokens => 400, ignore_eos => LLM::JSON::true,
           input => 'Tell me a story');
$busy->next_frame;
$t->reload;
is_deeply([ $idle->events ], [ { type => 'close', code => 1001 } ],
          'a reload closes an idle one');
is(($busy->events)[-1]{type}, 'response.incomplete',
   'another one gets its answer');
is_deeply([ $busy->events ], [ { type => 'close', code => 1001 } ],
          'and is closed then');

LLM::Test::wait_for(20, sub { $t->workers == 1 });
$ws = socket_of('/v1/responses');
$ws->ask(%ask, input => 'What is 2 + 2?');
is(LLM::Socket::text($ws->events), $text, 'the new worker serves');

done_testing();
