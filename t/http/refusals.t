#!/usr/bin/perl

# What nginx itself refuses in an llm_api location is an error in the shape of
# the endpoint, without any further configuration; an error_page goes first,
# and other locations keep nginx's pages.

use strict;
use warnings;

use LLM::Test;
use Test::More;

my $t = LLM::Test->new(
    http => 'limit_req_zone $binary_remote_addr zone=z:1m rate=1r/m;
             limit_req_zone $binary_remote_addr zone=x:1m rate=1r/m;
             limit_req_zone $binary_remote_addr zone=y:1m rate=1r/m;',
    locations => <<'END');
        location /v1 {
            llm_api;
            client_max_body_size 1k;
        }
        location /auth/v1 {
            auth_basic "models";
            auth_basic_user_file %%DIR%%/users;
            llm_api;
        }
        location /closed/v1 {
            deny all;
            gzip on;
            gzip_min_length 1;
            gzip_types application/json;
            llm_api;
        }
        location /slow/v1 { client_body_timeout 1s; llm_api; }
        location /limited/v1 { limit_req zone=z; llm_api; }
        location /often/v1 {
            limit_req zone=y;
            limit_req_status 429;
            llm_api;
        }
        location /later/v1 {
            limit_req zone=x;
            limit_req_status 429;
            add_header Retry-After 30 always;
            llm_api;
        }
        location /teapot/v1 { if ($arg_pot) { return 418; } llm_api; }
        location /text/v1 { if ($arg_x) { return 403 "a text"; } llm_api; }
        location /page/v1 {
            llm_api;
            client_max_body_size 1k;
            error_page 413 /page.html;
        }
        location = /page.html {
            default_type text/html;
            return 200 "<html>a page of one's own, as long as an error</html>";
        }
        location /file { client_max_body_size 1k; root %%DIR%%; }
        location = /health { llm_health; }
        location = /figures { llm_metrics; deny all; }
END

$t->write_file('users', "\n");
$t->start;

my $long = 'a' x 2000;

sub error_of { $_[0]{json} ? $_[0]{json}{error} : {} }


# ---- a body that is too large ----

my $res = $t->post('/v1/completions', { prompt => $long });
my $error = error_of($res);

is($res->{status}, 413, 'a large body');
is($res->{headers}{'content-type'}, 'application/json', 'JSON');
is($error->{message}, 'The request body is too large: this server takes 1024 '
   . 'bytes (client_max_body_size).', 'says how large it may be, and by what');
is("$error->{type} $error->{code}", 'invalid_request_error request_too_large',
   'type and code');
ok(exists $error->{param} && !defined $error->{param}, 'all four members');
is($res->{headers}{'content-length'}, length $res->{body}, 'its length');
like($res->{headers}{'x-request-id'}, qr/^\S+$/, 'an id');

$res = $t->post('/v1/messages', { prompt => $long });

is("$res->{json}{type} $res->{json}{error}{type}",
   'error request_too_large', "as Anthropic's clients have it")
    or diag($res->{body});

$res = $t->post('/v1/nothing', { prompt => $long });
is(error_of($res)->{code}, 'request_too_large', 'where there is no endpoint');

$res = LLM::Client->open(port => $t->port, raw =>
    "POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    . "Transfer-Encoding: chunked\r\n\r\n7d0\r\n$long\r\n0\r\n\r\n")->response;
is("$res->{status} " . (error_of($res)->{code} // $res->{body}),
   '413 request_too_large', 'a chunked one');

$res = $t->post('/v1/completions', { prompt => 'a', max_tokens => 1 });
is($res->{status}, 200, 'and then one that is not');


# ---- who may not come in ----

$res = $t->get('/auth/v1/models');
is($res->{status}, 401, 'auth_basic');
is(error_of($res)->{type}, 'authentication_error', 'in JSON');
like($res->{headers}{'www-authenticate'}, qr/^Basic/, 'its header stays');

$res = $t->get('/closed/v1/models');
is("$res->{status} " . error_of($res)->{type}, '403 permission_error', 'deny');

$res = $t->request(method => 'HEAD', path => '/closed/v1/models');
is("$res->{status} $res->{body}", '403 ', 'HEAD has no body');
is($res->{headers}{'content-type'}, 'application/json', 'but its type');

$res = $t->request(method => 'GET', path => '/closed/v1/models',
                   headers => { 'Accept-Encoding' => 'gzip' });
is($res->{headers}{'content-encoding'}, 'gzip', 'gzip takes it as any answer');

$t->get('/limited/v1/models');
$res = $t->get('/limited/v1/models');
is("$res->{status} " . error_of($res)->{type}, '503 server_error', 'limit_req');
is($res->{headers}{'retry-after'}, 1, 'when to try again');

$t->get('/often/v1/models');
$res = $t->get('/often/v1/models');
is("$res->{status} " . error_of($res)->{code}, '429 rate_limit_exceeded',
   'with limit_req_status 429');
is($res->{headers}{'retry-after'}, 1, 'and Retry-After');

$t->get('/later/v1/models');
is($t->get('/later/v1/models')->{headers}{'retry-after'}, 30,
   'which an add_header has said');


# ---- others ----

$res = LLM::Client->open(port => $t->port, raw =>
    "POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    . "Transfer-Encoding: chunked\r\n\r\nno length\r\n")->response;
is("$res->{status} " . (error_of($res)->{code} // $res->{body}), '400 bad_http',
   'chunks that are none');
like(error_of($res)->{message} // '', qr/its body is not framed/, 'it says so');

$res = LLM::Client->open(port => $t->port, raw =>
    "POST /slow/v1/completions HTTP/1.1\r\nHost: x\r\n"
    . "Content-Length: 10\r\n\r\na")->response;
ok(!$res->{status} || error_of($res)->{code} eq 'request_timeout',
   'a body that does not come: no page');

$res = $t->get('/teapot/v1/models?pot=1');
is($res->{status}, 418, 'a status that has no page');
is($res->{body}, '', 'has no body');

$res = $t->get('/text/v1/models?x=1');
is($res->{body}, 'a text', 'a text of the configuration stays');


# ---- what stays nginx's, or the configuration's ----

$res = $t->post('/page/v1/completions', { prompt => $long });
is($res->{status}, 413, 'with an error_page');
like($res->{body}, qr/^<html>a page of/, 'it goes first');

$res = $t->post('/file', { prompt => $long });
like($res->{body}, qr/^<html>/, 'another location');

$res = $t->get('/figures');
like($res->{body}, qr/^<html>/, 'nor is llm_metrics an API');

$t->stop;

done_testing();
