#!/usr/bin/perl

# GET {prefix}/models, names and who may use them, locations of all kinds.

use strict;
use warnings;

use LLM::GGUF;
use LLM::Test;
use Test::More;

my $demo = '%%ROOT%%/models/demo.gguf threads=1 parallel=2';

my $t = LLM::Test->new(
    model => "llm_model Demo-One $demo alias=gpt-4o-mini default;"
           . "llm_model two $demo alias=vendor/two;"
           . "llm_model secret $demo;",
    locations => <<'END');
        location /v1 { llm_api; }
        location /ai/ { llm_api; }
        location /some { llm_api Demo-One two fallback=two; }
        location /one/ { llm_api secret; }
        location /v1/chat { llm_api two; }
        location = /exact/v1/completions { llm_api two; }
        location ~ ^/re/(.*)$ { llm_api; }
        location /moved/ { rewrite ^/moved/(.*)$ /v1/$1 break; llm_api; }
        location /named { try_files /nothing @llm; }
        location @llm { llm_api two; }
        location /cond { llm_api; if ($arg_x) { set $y 1; } }
        location = /health { llm_health; if ($arg_x) { set $y 1; } }
        location = /metrics { llm_metrics json; if ($arg_x) { set $y 1; } }
        location /static { return 200 "plain"; }
END

$t->start;

my $res = $t->get('/v1/models');

is($res->{status}, 200, 'list');
is($res->{json}{object}, 'list', 'is a list');

my %ids = map { $_->{id} => $_ } @{ $res->{json}{data} };

ok($ids{'Demo-One'} && $ids{two} && $ids{secret}, 'all models');
is($ids{two}{object}, 'model', 'object');
like($ids{two}{created}, qr/^\d{9,}$/, 'created');
ok($ids{two}{owned_by}, 'owned_by');
is($ids{two}{$_}, 4096, $_)
    for qw(max_model_len context_window context_length);
cmp_ok($ids{two}{meta}{$_}, '>', 0, "meta.$_")
    for qw(n_ctx n_ctx_train n_vocab n_embd n_params size);
like($res->{headers}{'x-request-id'}, qr/^\w+$/, 'x-request-id');

is($t->get('/v1/models/two')->{json}{id}, 'two', 'one model');
is($t->get('/v1/models/vendor/two')->{json}{id}, 'vendor/two',
   'by a path-like alias');
is($ids{'vendor/two'}{alias_of}, 'two', 'an alias is in the list');
is_deeply($t->get('/v1/models/vendor/two')->{json}, $ids{'vendor/two'},
          'and the same alone');
is($t->get('/v1/models/vendor%2Ftwo')->{status}, 200, 'escaped');

$res = $t->get('/v1/models/none');

is($res->{status}, 404, 'unknown model');
is($res->{json}{error}{code}, 'model_not_found', 'its code');

$res = $t->request(method => 'HEAD', path => '/v1/models');

is($res->{status}, 200, 'HEAD');
is($res->{body}, '', 'without body');


# what tools ask of other servers

$res = $t->get('/v1/version');
like($res->{json}{version}, qr/^\d+\.\d+\.\d+$/, 'version');

for my $method (qw(GET POST)) {
    $res = $t->request(method => $method, path => '/v1/ping');
    is($res->{status}, 200, "$method ping");
}

is_deeply($t->get('/v1/load')->{json}, { server_load => 0 }, 'load');

my $s = $t->open_long;

$s->event;
is($t->get('/v1/load')->{json}{server_load}, 1, 'a stream is load');
$s->close;
ok(LLM::Test::wait_for(60, sub {
    $t->get('/v1/load')->{json}{server_load} == 0;
}), 'until it ends');

my $chat = { messages => [ { role => 'user', content => 'What is 2 + 2?' } ] };

is_deeply($t->post('/v1/chat/completions/input_tokens',
                   { %$chat, stream => \1 })->{json},
          { object => 'response.input_tokens', input_tokens =>
            $t->post('/v1/chat/completions', { %$chat, max_tokens => 1 })
                ->{json}{usage}{prompt_tokens} }, 'tokens of a chat');
is($t->post('/v1/chat/completions/input_tokens', {})->{json}{error}{param},
   'messages', 'of none');

$res = $t->post('/v1/responses/compact', { input => 'a', model => 'two' });
is($res->{status}, 400, 'nothing is compacted');
is($res->{json}{error}{code}, 'unsupported_endpoint', 'its code');
like($res->{json}{error}{message}, qr/compact/, 'and why');

# Responses' WebSocket mode

for my $path (qw(responses chat/completions)) {
    $res = $t->request(method => 'GET', path => "/v1/$path", headers => {
        Connection => 'Upgrade', Upgrade => 'WebSocket',
        'Sec-WebSocket-Version' => 13,
        'Sec-WebSocket-Key' => 'dGhlIHNhbXBsZSBub25jZQ==' });
    is($res->{status}, 426, "a WebSocket at $path");
    is($res->{headers}{upgrade}, 'HTTP/1.1', 'what to speak');
    is($res->{json}{error}{code}, 'websocket_not_supported', 'its code');
}

is($t->get('/v1/responses')->{status}, 405, 'a GET is another thing');
is($t->request(method => 'POST', path => '/v1/completions',
               headers => { Upgrade => 'websocket' },
               body => { prompt => 'a', max_tokens => 1 })->{status}, 200,
   'so is a POST that could do with one');


# where the API lies

my %found = (
    '/ai/models' => 200, '/ai/v1/models' => 200, '/v1/v1/models' => 200,
    '/one/v1/models' => 200, '/re/models' => 404, '/re/v1/models' => 200,
    '/moved/models' => 200, '/named/v1/models' => 200,
    '/cond/models' => 200, '/cond/models?x=1' => 200,
    '/v1' => 200, '/v1/' => 200, '/v1models' => 404, '/v1/nothing' => 404,
    '/ai/' => 200, '/ai/v1' => 200, '/re' => 404, '/one/v1' => 200,
);

is($t->get($_)->{status}, $found{$_}, "GET $_ is $found{$_}")
    for sort keys %found;

is($t->get('/static')->{body}, 'plain', 'other locations are left alone');
is($t->get('/health?x=1')->{json}{status}, 'ok', 'llm_health around an if');
ok($t->get('/metrics?x=1')->{json}{models}, 'llm_metrics around an if');

# what there is

$res = $t->get('/v1/nothing');
is($res->{json}{error}{message},
   'There is nothing at /v1/nothing; GET /v1 lists what there is.',
   'an unknown path: the error says where to look');
$res = $t->post('/v1', {});
is("$res->{status} $res->{headers}{allow}", '405 GET, HEAD',
   'the list of endpoints by another method');
is($t->get('/re/v1/nothing')->{json}{error}{message},
   'There is nothing at /re/v1/nothing.', 'if there is such a place');

$res = $t->get('/v1/');

my %listed = map { $_->{path} => join ' ', @{ $_->{methods} } }
             @{ $res->{json}{data} };

is($listed{'/v1/chat/completions'}, 'POST', 'the list: a path, its methods');
is($listed{'/v1/models/{model}'}, 'GET HEAD', 'those of each');
is($res->{json}{object}, 'list', 'as OpenAI\'s lists are');
is_deeply([ grep { !m{^/ai/v1(?:/|$)} }
            map { $_->{path} } @{ $t->get('/ai/v1')->{json}{data} } ], [],
          'the paths are those of the location');
is(scalar(grep { $t->get($_)->{status} == 404 }
          grep { !/\{/ } keys %listed), 0, 'all of them are there');

$res = $t->request(method => 'HEAD', path => '/v1');
is("$res->{status} $res->{body}", '200 ', 'HEAD');
is($t->post('/v1', {})->{status}, 405, 'but it takes nothing');

my $ask = { prompt => 'a', max_tokens => 1 };

is($t->post('/exact/v1/completions', $ask)->{json}{model}, 'two',
   'an exact location');
is($t->post('/v1/chat/completions', { max_tokens => 1,
            messages => [ { role => 'user', content => 'a' } ] })
       ->{json}{object}, 'chat.completion', 'a location within /v1/');


# names

sub model_of {
    my ($name, $path) = @_;

    my $res = $t->post(($path // '/v1') . '/completions',
                       { %$ask, defined $name ? (model => $name) : () });

    return $res->{json}{model} || $res->{status};
}

is(model_of('Demo-One'), 'Demo-One', 'exact');
is(model_of('gpt-4o-mini'), 'Demo-One', 'alias');
is(model_of('demo-one'), 'Demo-One', 'case does not matter');
is(model_of('secr'), 'secret', 'unique substring');
is(model_of('e'), 404, 'substring of several');
is(model_of('nothing'), 404, 'unknown');
is(model_of(undef), 'Demo-One', 'the default');
is(model_of('anything', '/some'), 'two', 'fallback');
is(model_of('secret', '/some'), 'two', 'not allowed: fallback');
is(model_of('two', '/one'), 404, 'not allowed: 404');
is(model_of(undef, '/one'), 'secret', 'the only one of a location');
is($t->post('/v1/completions', { %$ask, model => undef })->{json}{model},
   'Demo-One', 'null is the default');

is(join(' ', map { $_->{id} } @{ $t->get('/some/models')->{json}{data} }),
   'Demo-One gpt-4o-mini two vendor/two', 'a location lists what it may use');
is($t->get('/some/models/secret')->{status}, 404, 'and hides the others');

$t->stop;

# a header that is read in parts, as those with large vocabularies are

$t = LLM::Test->new(model => 'llm_model demo %%DIR%%/large.gguf threads=1;');
LLM::GGUF::make("$LLM::Test::ROOT/models/demo.gguf", $t->dir . '/large.gguf',
                kv => { 'general.description' => [ str => 'x' x 3_000_000 ] });
$t->start;
is(model_of('demo'), 'demo', 'a file with a large header');
$t->stop(name => 'a large header');

done_testing();
