#!/usr/bin/perl

# Errors: OpenAI's shape, the field's name, before any event of a stream.

use strict;
use warnings;

use LLM::JSON;
use LLM::Test;
use Test::More;

my $t = LLM::Test->new(
    model => 'llm_model demo %%ROOT%%/models/demo.gguf ctx=256 threads=2;',
    locations => <<'END');
        location /v1 { llm_api; }
        location /named { llm_api; llm_tenant $arg_t weight=$http_x_weight;
                          llm_priority $http_x_priority; }
        location = /health { llm_health; }
        location /pages {
            llm_api;
            llm_intercept_errors on;
            error_page 404 =200 @other;
            error_page 400 /bad.html;
        }
        location @other { return 200 "from the other one"; }
        location = /bad.html { return 200 "a page"; }
        location /sub { auth_request /v1/models; llm_health; }
        location /engine { auth_request /v1/embeddings; llm_health; }
        location /ssi { ssi on; ssi_types *; }
        location /mirrored { mirror /v1/chat/completions; llm_api; }
END

$t->start;

my $ask = [ { role => 'user', content => 'hello' } ];


sub refused {
    my ($name, $body, $status, %want) = @_;

    my $path = delete $want{path} // '/v1/chat/completions';
    my $res = $t->post($path, $body);
    my $error = $res->{json}{error};

    is($res->{status}, $status, "$name: $status") or diag($res->{body});
    ok($error && $error->{message}
       && !grep({ !exists $error->{$_} } qw(type param code)),
       "$name: message, type, param, code") or diag($res->{body});
    like($res->{headers}{'x-request-id'}, qr/^\w+$/, "$name: x-request-id");

    for (sort keys %want) {
        if (ref $want{$_}) {
            like($error->{$_}, $want{$_}, "$name: $_");
        } else {
            is($error->{$_}, $want{$_}, "$name: $_");
        }
    }

    # the same in a stream, before anything was sent
    if (ref $body eq 'HASH') {
        my $res = $t->post($path, { %$body, stream => \1 });
        is($res->{status}, $status, "$name: $status in a stream");
        is($res->{headers}{'content-type'}, 'application/json',
           "$name: in JSON");
    }
}

refused('no JSON', '{"messages": ', 400);
refused('an array', '[]', 400);
refused('no body', '', 400);
refused('invalid UTF-8', qq({"messages": [{"role": "user", "content": "\xff"}]}),
        400);
refused('no messages', {}, 400, param => 'messages');
refused('null messages', { messages => undef }, 400, param => 'messages');
refused('messages of a wrong type', { messages => 'hi' }, 400,
        param => 'messages');
refused('temperature', { messages => $ask, temperature => 'hot' }, 400,
        param => 'temperature');
refused('temperature range', { messages => $ask, temperature => 3 }, 400,
        param => 'temperature');
refused('top_p', { messages => $ask, top_p => -1 }, 400, param => 'top_p');
refused('n', { messages => $ask, n => 0 }, 400, param => 'n');
refused('max_tokens', { messages => $ask, max_tokens => -5 }, 400,
        param => 'max_tokens');
refused('stop', { messages => $ask, stop => 5 }, 400, param => 'stop');
refused('unknown model', { messages => $ask, model => 'nobody' }, 404,
        code => 'model_not_found');
refused('context', { messages => [ { role => 'user',
                     content => 'many words ' x 400 } ] }, 400,
        code => 'context_length_exceeded', message => qr/256.*\d|\d.*256/s);
refused('prompt missing', {}, 400, path => '/v1/completions',
        param => 'prompt');
refused('unknown path', $ask, 404, path => '/v1/chat');


for my $method (qw(GET HEAD PUT DELETE PATCH OPTIONS)) {
    my $res = $t->request(method => $method, path => '/v1/chat/completions');

    is($res->{status}, 405, "$method is 405");
    is($res->{headers}{allow}, 'POST', "$method: Allow");
    ok($method eq 'HEAD' || $res->{json}{error}{message}, "$method: JSON");
}

is($t->post('/v1/models', {})->{status}, 405, 'POST on models');
is($t->request(method => 'DELETE', path => '/v1/models')->{headers}{allow},
   'GET, HEAD', 'its Allow');


# llm_intercept_errors: error_page where there is one, JSON where not

my $res = $t->post('/pages/chat/completions',
                   { model => 'nobody', messages => $ask });

is($res->{status}, 200, 'intercepted: a fallback answers');
is($res->{body}, 'from the other one', 'from somewhere else');
ok(!$res->{headers}{'x-request-id'}, 'without our headers');

is($t->post('/pages/chat/completions', {})->{body}, 'a page',
   'intercepted: a page');

$res = $t->get('/pages/chat/completions');

is($res->{status}, 405, 'no error_page for it');
ok($res->{json}{error}, 'so it stays JSON');


# subrequests: what needs no engine is answered, the rest is refused in JSON

is($t->get('/sub')->{status}, 200, 'a subrequest for the models');
is($t->get('/engine')->{status}, 500, 'one that needs the engine is refused');

for (['models' => 'models'], ['engine' => 'embeddings']) {
    my ($name, $path) = @$_;

    mkdir $t->dir . '/html/ssi';
    $t->write_file("html/ssi/$name.html",
                   "<!--# include virtual=\"/v1/$path\" -->");
}

$res = $t->get('/ssi/models.html');
is($res->{status}, 200, 'by SSI');
is(decode_json($res->{body})->{data}[0]{id}, 'demo', 'the models');
is(decode_json($t->get('/ssi/engine.html')->{body})->{error}{code},
   'method_not_allowed', 'by SSI: an error in JSON');

my $begin = () = $t->log =~ /does not serve subrequests/g;
$res = $t->post('/mirrored/chat/completions',
                { messages => $ask, max_tokens => 1 });
is($res->{status}, 200, 'mirrored: the request itself is answered');
ok(LLM::Test::wait_for(20, sub {
    (() = $t->log =~ /does not serve subrequests/g) > $begin;
}), 'its copy is refused');

# what clients send stands in no message and no log as it came: control
# characters, also of 0x80 to 0x9f, and those that turn lines or break them

my $evil = "a\x1b[1m\x7f\x{9b}2J\x{85}\x{200e}\x{2028}\x{202e}\x{2066}b";
my $raw = qr/[\x00-\x08\x0b-\x1f\x7f]|\xc2[\x80-\x9f]
             |\xe2\x80[\x8e\x8f\xa8-\xae]|\xe2\x81[\xa6-\xa9]/x;

for my $body ({ messages => $ask, model => $evil },
              { messages => [ { role => $evil, content => '' } ] },
              { messages => [ { role => 'user', content => [
                  { type => $evil } ] } ] },
              { messages => $ask, tools => [ { type => $evil } ] },
              { messages => $ask, tool_choice => $evil })
{
    my $res = $t->post('/v1/chat/completions', $body);
    my $text = $res->{json}{error}{message};

    utf8::encode($text);
    unlike($text, $raw, 'a message without control characters')
        or diag($res->{body});
    unlike($res->{body}, $raw, 'nor its JSON');
}

like($t->get('/v1/%1b%c2%9b%e2%80%aex')->{json}{error}{message},
     qr/\\x1b\\xc2\\x9b\\xe2\\x80\\xaex/, 'they are escaped');

$t->post('/named/completions?t=a', { prompt => 'a', max_tokens => 1 },
         headers => { 'X-Weight' => "\xc2\x9b\x9b\xe2\x80\xae",
                      'X-Priority' => "\x9b\xe2\x80\xa8" });

ok($t->wait_log(qr/invalid weight "\\xc2\\x9b\\x9b\\xe2\\x80\\xae" of/),
   'a header value in the log');
ok($t->wait_log(qr/invalid priority "\\x9b\\xe2\\x80\\xa8"/), 'another one');

unlike(join("\n", map { s/, client: .*//r }
            grep { /llm|invalid/ } split /\n/, $t->log('error.log')),
       $raw, 'no line of ours has any');

# the connection goes on after an error

my $client = $t->open('/v1/chat/completions', '{', keepalive => 1);
my $first = $client->response;

is($first->{status}, 400, 'an error');
is(LLM::Client->open(socket => $first->{socket}, method => 'GET',
                     path => '/v1/models')->response->{status}, 200,
   'and the next request on its connection');

$t->stop;

done_testing();
