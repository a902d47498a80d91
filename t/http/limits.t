#!/usr/bin/perl

# nginx's own guards in front: limit_req, limit_conn, auth_basic,
# auth_request, limit_rate, access rules; and other modules behind.

use strict;
use warnings;

use LLM::Test;
use MIME::Base64;
use Test::More;
use Time::HiRes qw(time);

my $t = LLM::Test->new(
    http => 'limit_req_zone $binary_remote_addr zone=slow:1m rate=1r/m;'
          . 'limit_conn_zone $binary_remote_addr zone=few:1m;',
    locations => <<'END');
        location /v1 { llm_api; }
        location = /health { llm_health; }

        location /req/ {
            limit_req zone=slow;
            limit_req_status 429;
            error_page 429 = @busy;
            llm_api;
        }
        location @busy {
            default_type application/json;
            return 429 '{"error":{"message":"busy"}}';
        }

        location /conn/ { limit_conn few 1; llm_api; }
        location /denied/ { deny all; llm_api; }
        location /basic/ {
            auth_basic x;
            auth_basic_user_file users;
            llm_api;
        }
        location /auth/ { auth_request /check; llm_api; }
        location = /check {
            internal;
            if ($http_authorization = "Bearer right") { return 204; }
            return 401;
        }
        location /rate/ { limit_rate 4k; llm_api; }
        location /added/ { add_after_body /tail; addition_types *; llm_api; }
        location = /tail { return 200 "the tail"; }
END

$t->write_file('users', "user:{PLAIN}secret\n");
$t->start;

my %ask = (prompt => 'a', max_tokens => 1);

is($t->post('/req/completions', \%ask)->{status}, 200, 'limit_req: first');

my $res = $t->post('/req/completions', \%ask);

is($res->{status}, 429, 'limit_req: second');
is($res->{json}{error}{message}, 'busy', 'limit_req: JSON by error_page');

my $s = $t->open('/conn/completions',
                 { %ask, max_tokens => 1500, ignore_eos => \1,
                   stream => \1 });

$s->event;
is($t->post('/conn/completions', \%ask)->{status}, 503, 'limit_conn');
$s->close;
ok(LLM::Test::wait_for(3, sub {
    $t->post('/conn/completions', \%ask)->{status} == 200
}), 'limit_conn: free again');

is($t->post('/denied/completions', \%ask)->{status}, 403, 'deny');
is($t->post('/basic/completions', \%ask)->{status}, 401, 'auth_basic');
is($t->post('/basic/completions', \%ask, headers => {
       Authorization => 'Basic ' . encode_base64('user:secret', '') })
       ->{status}, 200, 'auth_basic with the password');
is($t->post('/auth/completions', \%ask)->{status}, 401, 'auth_request');
is($t->post('/auth/completions', \%ask,
            headers => { Authorization => 'Bearer right' })->{status}, 200,
   'auth_request with the key');


# limit_rate slows a stream down, and nothing is lost

my %long = (prompt => 'a', temperature => 0, ignore_eos => \1,
            max_tokens => 60, stream => \1);
my $want = LLM::Client::text_of($t->open('/v1/completions', \%long)->events);
my $begin = time;
my @events = $t->open('/rate/completions', \%long)->events;

is(LLM::Client::text_of(@events), $want, 'limit_rate: the same text');
is($events[-1]{data}, '[DONE]', 'limit_rate: to its end');
cmp_ok(time - $begin, '>', 0.8, 'limit_rate: slower');

# another module adds to the answer

$res = $t->post('/added/completions', { %long });

like($res->{body}, qr/data: \[DONE\]\n\nthe tail\z/, 'add_after_body');

$t->stop;

done_testing();
