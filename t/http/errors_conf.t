#!/usr/bin/perl

# conf/llm_errors.conf: nginx's own refusals have OpenAI's error shape, and
# Anthropic's.

use strict;
use warnings;

use LLM::Made qw(certificate);
use LLM::Test;
use Test::More;

my $t = LLM::Test->new(
    http => 'limit_req_zone $binary_remote_addr zone=z:1m rate=1r/m;',
    server => 'include %%ROOT%%/conf/llm_errors.conf;'
              . ' listen 127.0.0.1:%%PORT2%% ssl;'
              . ' ssl_certificate cert.pem; ssl_certificate_key key.pem;',
    locations => <<'END');
        location /v1 { llm_api; client_max_body_size 1k; }
        location /limited/v1 {
            limit_req zone=z;
            limit_req_status 429;
            llm_api;
        }
        location /closed/v1 { deny all; llm_api; }
        location /broken/v1 { auth_request /sub; llm_api; }
        location = /sub { internal; return 404; }
        location /added/v1 { add_header X-Request-Id own; llm_api; }
        location = /health { llm_health; }
END

my $dir = $t->dir;

certificate($dir)
    or plan skip_all => 'no certificate from openssl';

$t->start;

my $res = $t->post('/v1/completions', { prompt => 'a' x 2000 });

is($res->{status}, 413, 'a large body');
is($res->{json}{error}{code}, 'request_too_large', 'in JSON');
is($res->{json}{type}, 'error', 'for Anthropic\'s clients, too');

$t->get('/limited/v1/models');
$res = $t->get('/limited/v1/models');

is($res->{status}, 429, 'limit_req');
is($res->{json}{error}{code}, 'rate_limit_exceeded', 'in JSON');
is($res->{headers}{'retry-after'}, 1, 'with Retry-After');
like($res->{headers}{'x-request-id'}, qr/^[0-9a-f]{32}$/, 'with an id');

$res = $t->get('/closed/v1/models');

is($res->{status}, 403, 'deny');
is($res->{json}{error}{type}, 'permission_error', 'in JSON');

$res = $t->post('/v1/completions', '{');

is($res->{status}, 400, "the API's own errors");
is($res->{json}{error}{type}, 'invalid_request_error', 'are left alone');

for my $bad (['a header without a colon', "GET /v1/models HTTP/1.1\r\n"
              . "Host: x\r\nno colon\r\n\r\n"],
             ['no host', "GET /v1/models HTTP/1.1\r\n\r\n"],
             ['two lengths', "POST /v1/completions HTTP/1.1\r\nHost: x\r\n"
              . "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab"],
             ['no request line', "\x16\x03\x01 hello\r\n\r\n"],
             ['no path', "GET \r\n\r\n"]) {
    my ($name, $text) = @$bad;

    $res = LLM::Client->open(port => $t->port, raw => $text)->response;

    is($res->{status}, 400, "not HTTP: $name");
    is($res->{json}{error}{code}, 'bad_http', 'in JSON');
}

for my $bad (['a long request line', "GET /v1/" . 'a' x 9000, 414,
              'uri_too_long'],
             ['a long header', "GET /v1/models HTTP/1.1\r\nHost: x\r\nA: "
              . 'a' x 9000, 431, 'headers_too_large']) {
    my ($name, $text, $status, $code) = @$bad;

    $res = LLM::Client->open(port => $t->port, raw => $text)->response;

    is($res->{status}, $status, $name);
    is($res->{json}{error}{code}, $code, 'in JSON');
}

$res = LLM::Client->open(port => $t->port, raw => "TRACE / HTTP/1.1\r\n"
                         . "Host: x\r\n\r\n")->response;

is($res->{status}, 405, 'TRACE');
is($res->{json}{error}{code}, 'method_not_allowed', 'in JSON');

$res = $t->get('/broken/v1/models');

is($res->{status}, 500, "nginx's own 500");
is($res->{json}{error}{code}, 'internal_error', 'in JSON');

# a port with TLS that is spoken to without

$res = LLM::Client->open(port => $t->{port2}, raw => "GET /v1/models HTTP/1.1\r\n"
                                            . "Host: x\r\n\r\n")->response;

is($res->{status}, 400, 'no TLS where it is spoken');
is($res->{json}{error}{code}, 'https_required', 'in JSON');

# "add_header" of the operator takes the place of ours

$res = $t->get('/added/v1/models');
is($res->{headers}{'x-request-id'}, 'own', 'one x-request-id');

is($t->get('/llm_400')->{status}, 404, 'the page itself is nobody\'s');

$t->stop;

done_testing();
