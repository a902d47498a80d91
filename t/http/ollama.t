#!/usr/bin/perl

# Ollama's API: in a location whose prefix ends in "/api" and below "/", bodies
# and streams of lines, what they have in common with the other dialects (keys,
# limits, logs, repeated answers), errors.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use LLM::JSON;
use LLM::Test;
use Test::More;

my $secret = 'sk-llm-' . 'g' x 43;
my $t = LLM::Test->new(
    model => LLM::Test::default_model()
           . 'llm_model broken %%DIR%%/none.gguf;'
           . 'llm_model lazy %%ROOT%%/models/demo.gguf alias=lazy:latest'
           . ' ctx=64 lazy idle=1h;',
    http => 'log_format told "$llm_model $llm_completion_tokens'
          . ' $llm_finish_reason $llm_error";'
          . 'access_log logs/told.log told;'
          . 'llm_idempotency 1m;',
    locations => <<'END');
        location / { llm_api; client_max_body_size 8m; }
        location /api { llm_api; client_max_body_size 64k; }
        location /slash/api/ { llm_api; }
        location /few/api { llm_api; llm_max_tokens 3; }
        location /default/api { llm_api; llm_defaults '{"temperature": 0,
                                         "options": {"num_predict": 2}}'; }
        location /keys/api { llm_api; llm_api_keys keys; }
        location /beats/api { llm_api; llm_heartbeat 10ms; }
        location = /health { llm_health; }
END

$t->write_file('none.gguf', 'no model');
$t->write_file('keys', sprintf qq({"id":"good","sha256":"%s"}\n),
               sha256_hex($secret));
$t->start(cold => 1);

LLM::Test::wait_for(60, sub {
    $t->post('/v1/completions', { prompt => 'a', model => 'demo',
                                  max_tokens => 1 })->{status} == 200
}) or die $t->log;

my %chat = (model => 'demo', options => { temperature => 0 },
            messages => [ { role => 'user', content => 'What is 2 + 2?' } ]);
my %text = (model => 'demo', options => { temperature => 0 },
            prompt => 'What is 2 + 2?');

sub lines {
    my ($path, %body) = @_;

    my $res = $t->post($path, \%body);

    is($res->{status}, 200, "$path streams") or diag($res->{body});
    is($res->{headers}{'content-type'}, 'application/x-ndjson',
       'lines of JSON');
    like($res->{body}, qr/\}\n\z/, 'each ends');

    return map { decode_json($_) } split /\n/, $res->{body};
}


# ---- chats ----

my $res = $t->post('/api/chat', { %chat, stream => \0 });
my $whole = $res->{json};

is($res->{status}, 200, 'a chat') or diag($res->{body});
is($res->{headers}{'content-type'}, 'application/json', 'JSON');
is_deeply($whole->{message}, { role => 'assistant', content => '2 + 2 = 4.' },
          'its message');
is($whole->{model}, 'demo', 'the model');
like($whole->{created_at}, qr/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/, 'the time');
ok($whole->{done}, 'it is done');
is($whole->{done_reason}, 'stop', 'why');
cmp_ok($whole->{$_}, '>', 0, $_)
    for qw(total_duration prompt_eval_count eval_count);
cmp_ok($whole->{total_duration}, '>=',
       $whole->{load_duration} + $whole->{prompt_eval_duration}
       + $whole->{eval_duration}, 'parts of the whole time');

my @lines = lines('/api/chat', %chat);

is(join('', map { $_->{message}{content} } @lines), '2 + 2 = 4.',
   'the text, streamed unless it is said otherwise');
is_deeply([ map { $_->{done} ? 1 : 0 } @lines ], [ (0) x $#lines, 1 ],
          'the last line ends it');
is($lines[-1]{eval_count}, $whole->{eval_count}, 'with the figures');
is($lines[-1]{prompt_eval_count}, $whole->{prompt_eval_count},
   'of the prompt, too');
is_deeply([ sort keys %{ $lines[0] } ],
          [ qw(created_at done message model) ], 'others have none');

for my $path ('/slash/api/chat', '/few/api/chat', '/v1/api/chat') {
    $res = $t->post($path, { %chat, stream => \0 });
    is($res->{status}, 200, "$path is served") or diag($res->{body});
}

# what follows must not depend on sampling

$res = $t->post('/api/chat', { %chat, stream => \0, options => {
    temperature => 0, num_predict => 3 } });
is($res->{json}{done_reason}, 'length', 'num_predict ends the answer');
is($res->{json}{eval_count}, 3, 'after so many tokens');
is($t->post('/few/api/chat', { %chat, stream => \0 })->{json}{eval_count}, 3,
   'so does the location');
is($t->post('/default/api/chat', { %chat, options => undef, stream => \0 })
   ->{json}{eval_count}, 2, 'and llm_defaults');

$res = $t->post('/api/chat', { %chat, stream => \0, options => {
    temperature => 0, stop => [ '=' ] } });
is($res->{json}{message}{content}, '2 + 2 ', 'a stop string');

my %schema = (type => 'object', required => [ 'a' ], properties => {
    a => { type => 'integer', minimum => 3, maximum => 3 } });

$res = $t->post('/api/chat', { %chat, stream => \0, format => \%schema });
is_deeply(eval { decode_json($res->{json}{message}{content}) }, { a => 3 },
          'a schema is kept to') or diag($res->{body});
$res = $t->post('/api/chat', { %chat, stream => \0, format => 'json',
                               options => { num_predict => 60 } });
like($res->{json}{message}{content}, qr/^\{/, 'JSON') or diag($res->{body});

$res = $t->post('/api/chat', { %chat, stream => \0, logprobs => \1,
                               top_logprobs => 2 });
is(join('', map { $_->{token} } @{ $res->{json}{logprobs} }), '2 + 2 = 4.',
   'log probabilities') or diag($res->{body});
is(scalar @{ $res->{json}{logprobs}[0]{top_logprobs} }, 2, 'two of each');

# tools

my @tools = ({ type => 'function', function => { name => 'add',
    description => 'Adds.', parameters => { type => 'object',
        properties => { a => { type => 'integer', enum => [ 7 ] } },
        required => [ 'a' ], additionalProperties => \0 } } });

$res = $t->post('/api/chat', { %chat, stream => \0, tools => \@tools,
                               tool_choice => 'required' });
my $calls = $res->{json}{message}{tool_calls};
is($calls->[0]{function}{name}, 'add', 'a call') or diag($res->{body});
is_deeply($calls->[0]{function}{arguments}, { a => 7 },
          'its arguments are an object');
is($res->{json}{done_reason}, 'stop', 'which ends the answer');

@lines = lines('/api/chat', %chat, tools => \@tools,
               tool_choice => 'required');
my @called = grep { $_->{message}{tool_calls} } @lines;
is(scalar @called, scalar @$calls, 'a line for each call');
is_deeply($called[0]{message}{tool_calls}[0]{function}{arguments}, { a => 7 },
          'has it whole');

$res = $t->post('/api/chat', { %chat, stream => \0, tools => \@tools,
    messages => [ @{ $chat{messages} },
                  { role => 'assistant', content => '',
                    tool_calls => $calls },
                  { role => 'tool', tool_name => 'add',
                    content => '4' } ] });
is($res->{status}, 200, 'and its result') or diag($res->{body});

# ---- texts ----

$res = $t->post('/api/generate', { %text, stream => \0 });
is($res->{json}{response}, '2 + 2 = 4.', 'a text') or diag($res->{body});
is($res->{json}{prompt_eval_count}, $whole->{prompt_eval_count},
   'from the prompt of a chat');

my $context = $res->{json}{context};
my $next = 'What is 3 + 3?';

@lines = lines('/api/generate', %text);
is(join('', map { $_->{response} } @lines), '2 + 2 = 4.', 'streamed');
is_deeply($lines[-1]{context}, $context, 'with the same context');

my $goes_on = $t->post('/api/generate', { %text, prompt => $next,
                                          context => $context,
                                          stream => \0 })->{json};
my $again = $t->post('/api/chat', { %chat, stream => \0, messages => [
    @{ $chat{messages} }, { role => 'assistant', content => '2 + 2 = 4.' },
    { role => 'user', content => $next } ] })->{json};

is($goes_on->{response}, $again->{message}{content},
   'by which the next one goes on');
is($goes_on->{prompt_eval_count}, $again->{prompt_eval_count},
   'as a chat does');

my %raw = (model => 'demo', prompt => 'once upon', raw => \1, stream => \0,
           options => { temperature => 0, num_predict => 8 });

$res = $t->post('/api/generate', \%raw);
is($res->{json}{response},
   $t->post('/v1/completions', { prompt => 'once upon', max_tokens => 8,
                                 model => 'demo', temperature => 0 })
   ->{json}{choices}[0]{text}, 'without a template: a completion')
    or diag($res->{body});
ok(!exists $res->{json}{context}, 'has no context');

$res = $t->post('/api/generate', { %raw, suffix => 'end' });
is($res->{status}, 400, 'the demo model fills no gap');
like($res->{json}{error}, qr/\w/, 'an error of one text');

# ---- what needs no text ----

for my $path ('/api/chat', '/api/generate') {
    $res = $t->post($path, { model => 'demo:latest', keep_alive => '5m' });
    is($res->{json}{done_reason}, 'load', "$path loads a model")
        or diag($res->{body});
}

sub loaded {
    my $res = $t->request(method => 'GET', path => '/api/ps');

    return join ' ', map { $_->{name} } @{ $res->{json}{models} };
}

for my $zero (0, '0', '0s') {
    $res = $t->post('/api/generate', { model => 'lazy', keep_alive => $zero });
    is($res->{json}{done_reason}, 'unload', 'keep_alive of 0')
        or diag($res->{body});
}

$res = $t->post('/api/chat', { model => 'lazy', keep_alive => 0 });
is($res->{json}{message}{content}, '', 'also of a chat') or diag($res->{body});
is($t->request(method => 'GET', path => '/slots?model=lazy')->{body}, '[]',
   'a model that is not loaded has no slots');
is(loaded(), 'demo:latest', 'nothing is loaded for that');

$res = $t->post('/api/generate', { model => 'lazy', keep_alive => '10s' });
is($res->{json}{done_reason}, 'load', 'other times load it');
is(loaded(), 'demo:latest lazy:latest', 'it is loaded');
$res = $t->post('/api/generate', { model => 'lazy', keep_alive => 0 });
is($res->{json}{done_reason}, 'unload', 'keep_alive of 0');
is(loaded(), 'demo:latest lazy:latest', 'which `idle=` decides');

$res = $t->request(method => 'GET', path => '/api/ps');
my ($stays, $until) = map { substr($_->{expires_at}, 0, 4) }
                      @{ $res->{json}{models} };
cmp_ok($until, '<=', 1901 + (gmtime)[5], 'idle= is seen in expires_at');
cmp_ok($stays, '>', 1950 + (gmtime)[5], 'without it a model stays');

$res = $t->request(method => 'GET', path => '/api/tags');
my @names = map { $_->{name} } @{ $res->{json}{models} };
is("@names", 'demo:latest gpt-4o-mini:latest mini:latest broken:latest'
   . ' lazy:latest',
   'models') or diag($res->{body});
cmp_ok($res->{json}{models}[0]{size}, '>', 0, 'their size');

$res = $t->request(method => 'GET', path => '/api/ps');
is(join(' ', map { $_->{name} } @{ $res->{json}{models} }),
   'demo:latest lazy:latest', 'those that are loaded') or diag($res->{body});

$res = $t->post('/api/show', { model => 'demo:latest' });
is($res->{status}, 200, 'what there is to know') or diag($res->{body});
is($res->{json}{model_info}{'general.architecture'}, 'qwen3',
   'the architecture');
cmp_ok($res->{json}{model_info}{'qwen3.context_length'}, '>', 0,
       'the context length');
is(join(' ', @{ $res->{json}{capabilities} }), 'completion tools thinking',
   'what it can do');
like($res->{json}{template}, qr/\{\{/, 'its template');

like($t->request(method => 'GET', path => '/api/version')->{json}{version},
     qr/^\d+\.\d+/, 'a version');
is($t->request(method => 'HEAD', path => '/api/tags')->{status}, 200, 'HEAD');

$res = $t->request(method => 'GET', path => '/api');
ok((grep { $_->{path} eq '/api/chat' } @{ $res->{json}{data} }),
   'the prefix lists its endpoints') or diag($res->{body});
is($t->request(method => 'GET', path => '/api/v1/models')->{json}{object},
   'list', 'the other dialects are below v1/');

# ---- vectors ----

$res = $t->post('/api/embed', { model => 'demo', input => [ 'a', 'b' ] });
my $vectors = $res->{json}{embeddings};
my @other = map { $_->{embedding} }
            @{ $t->post('/v1/embeddings', { model => 'demo',
                                            input => [ 'a', 'b' ] })
               ->{json}{data} };
is_deeply($vectors, \@other, 'vectors') or diag($res->{body});
cmp_ok($res->{json}{prompt_eval_count}, '>', 1, 'tokens of the inputs');

$res = $t->post('/api/embeddings', { model => 'demo', prompt => 'a' });
is(scalar @{ $res->{json}{embedding} }, scalar @{ $vectors->[0] },
   'one vector') or diag($res->{body});

# ---- errors ----

for my $case ([ '/api/chat', { %chat, format => 'a' }, 'format' ],
              [ '/api/chat', { %chat, think => 'a' }, 'think' ],
              [ '/v1/messages', { messages => $chat{messages}, max_tokens => 1,
                                  output_config => { format => {
                                      type => 'a' } } }, 'output_config' ],
              [ '/embed', { inputs => 'a', truncation_direction => 'a' },
                'truncation_direction' ])
{
    my ($path, $body, $name) = @$case;

    $res = $t->post($path, $body);
    is($res->{status}, 400, "$path: a wrong $name");
    my $e = $res->{json}{error};
    like(ref $e ? $e->{message} : $e, qr/\b$name\b/, 'which is named')
        or diag($res->{body});
}

for my $case ([ '/api/chat', { %chat, model => 'none' }, 404,
                'model_not_found' ],
              [ '/api/chat', { %chat, options => { top_p => 5 } }, 400,
                'decimal_above_max_value' ],
              [ '/api/chat', '{', 400, 'invalid_request_error' ],
              [ '/api/chat', { %chat, x => 'a' x 70000 }, 413,
                undef ],
              [ '/api/generate', { %text, model => 'broken' }, 503, undef ],
              [ '/api/pull', { model => 'demo' }, 400,
                'unsupported_endpoint' ],
              [ '/api/nothing', {}, 404, 'not_found' ],
              [ '/keys/api/chat', \%chat, 401, undef ])
{
    my ($path, $body, $status, $code) = @$case;

    $res = $t->post($path, $body);
    is($res->{status}, $status, "$path: $status") or diag($res->{body});
    is(ref $res->{json}, 'HASH', 'JSON') or next;
    is_deeply([ keys %{ $res->{json} } ], [ 'error' ], 'of one member');
    ok(!ref $res->{json}{error}, 'which is text');
    is($res->{headers}{'x-llm-error'}, $code, 'the code is in a header')
        if defined $code;
}

is($t->request(method => 'GET', path => '/api/chat')->{status}, 405,
   'methods');

# ---- what holds for all dialects ----

$res = $t->request(method => 'POST', path => '/keys/api/chat',
                   headers => { Authorization => "Bearer $secret" },
                   body => { %chat, stream => \0 });
is($res->{json}{message}{content}, '2 + 2 = 4.', 'keys')
    or diag($res->{body});

my @answers = map {
    $t->request(method => 'POST', path => '/api/chat',
                headers => { 'Idempotency-Key' => 'k' }, body => \%chat)
} 1, 2;
is($answers[1]{headers}{'idempotent-replayed'}, 'true', 'a repeated request');
is($answers[1]{headers}{'content-type'}, 'application/x-ndjson',
   'has the type of the first');
is($answers[1]{body}, $answers[0]{body}, 'and its lines');

@lines = lines('/beats/api/chat', %chat);
is(join('', map { $_->{message}{content} } @lines), '2 + 2 = 4.',
   'heartbeats are lines without text');

$t->post('/api/chat', { %chat, stream => \0, options => {
    temperature => 0, num_predict => 4 } });
ok(LLM::Test::wait_for(10, sub {
       LLM::Test::slurp($t->dir . '/logs/told.log') =~ /^demo 4 length -$/m
   }), 'the log has its figures');

$t->stop;

done_testing();
