#!/usr/bin/perl

# conf/llm_errors.conf: nginx's own refusals have OpenAI's error shape.

use strict;
use warnings;

use LLM::Test;
use Test::More;

my $t = LLM::Test->new(
    http => 'limit_req_zone $binary_remote_addr zone=z:1m rate=1r/m;',
    server => 'include %%ROOT%%/conf/llm_errors.conf;',
    locations => <<'END')->start;
        location /v1 { llm_api; client_max_body_size 1k; }
        location /limited/v1 {
            limit_req zone=z;
            limit_req_status 429;
            llm_api;
        }
        location /closed/v1 { deny all; llm_api; }
        location = /health { llm_health; }
END

my $res = $t->post('/v1/completions', { prompt => 'a' x 2000 });

is($res->{status}, 413, 'a large body');
is($res->{json}{error}{code}, 'request_too_large', 'in JSON');

$t->get('/limited/v1/models');
$res = $t->get('/limited/v1/models');

is($res->{status}, 429, 'limit_req');
is($res->{json}{error}{code}, 'rate_limit_exceeded', 'in JSON');
is($res->{headers}{'retry-after'}, 1, 'with Retry-After');

$res = $t->get('/closed/v1/models');

is($res->{status}, 403, 'deny');
is($res->{json}{error}{type}, 'permission_error', 'in JSON');

$res = $t->post('/v1/completions', '{');

is($res->{status}, 400, "the API's own errors");
is($res->{json}{error}{type}, 'invalid_request_error', 'are left alone');

$t->stop;

done_testing();
