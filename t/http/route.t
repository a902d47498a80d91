#!/usr/bin/perl

# $llm_route_key on a front that has no model: the same for all turns of a
# conversation, however its body came and wherever it lies; who asks is in it;
# never an error.

use strict;
use warnings;

use IO::Compress::Gzip qw(gzip);
use LLM::JSON;
use LLM::H2;
use LLM::Test;
use Test::More;

my $back = LLM::Test::free_port();
my $temp = join '', map { "${_}_temp_path temp/$_;\n" }
           qw(client_body proxy fastcgi uwsgi scgi);
my $user = $> == 0 ? 'user root;' : '';


# a front with this in its server, and a server behind it that says what it got

sub front {
    my ($server, $http) = @_;

    $http //= '';

    return LLM::Test->new(conf => <<"END");
load_module %%OBJS%%/ngx_http_llm_module.so;
$user
daemon off;
error_log logs/error.log info;
pid logs/nginx.pid;
events {}
http {
$temp
log_format key '\$llm_route_key';
client_max_body_size 64m;
client_body_buffer_size 16k;
proxy_http_version 1.1;
$http
server {
    listen 127.0.0.1:%%PORT%%;
    listen 127.0.0.1:%%PORT2%% http2;
    access_log logs/key.log key;
    add_header x-key \$llm_route_key always;
    location = /health { return 200; }
    $server
}
server {
    listen 127.0.0.1:$back;
    access_log off;
    location / { return 200 "\$content_length"; }
}
}
END
}


my $t = front(<<"END", 'limit_req_zone $llm_route_key zone=z:1m rate=1000r/s;');
    location / { proxy_pass http://127.0.0.1:$back; }
    location /file { client_body_in_file_only clean;
                     proxy_pass http://127.0.0.1:$back; }
    location /early { limit_req zone=z burst=1000; set \$early \$llm_route_key;
                      add_header x-early \$early always;
                      add_header x-key \$llm_route_key always;
                      proxy_pass http://127.0.0.1:$back; }
    location /late { client_body_in_file_only clean; add_header x-late 1;
                     access_log logs/late.log key;
                     proxy_pass http://127.0.0.1:$back; }
    location /unbuffered { proxy_request_buffering off;
                           proxy_pass http://127.0.0.1:$back; }
    location /tenant { llm_tenant \$http_x_tenant;
                       proxy_pass http://127.0.0.1:$back; }
    location /keys { llm_api_keys llm-keys; proxy_pass http://127.0.0.1:$back; }
    location /none { llm_route message=0 prompt=0;
                     proxy_pass http://127.0.0.1:$back;
                     location /none/some { llm_route message=8 prompt=1k;
                         proxy_pass http://127.0.0.1:$back; }
                     location /none/too { proxy_pass http://127.0.0.1:$back; } }
    location /again { proxy_pass http://127.0.0.1:1; error_page 502 = \@again; }
    location \@again { add_header x-key \$llm_route_key always;
                      proxy_pass http://127.0.0.1:$back; }
END

my (%secret, $lines);

for my $key ([ 'ann-1', 'ann' ], [ 'ann-2', 'ann' ], [ 'bob', 'bob' ]) {
    my ($id, $tenant) = @$key;
    my $said = `$LLM::Test::OBJS/llm key --id $id --tenant $tenant 2>&1`;

    ($secret{$id}) = $said =~ /^(sk-llm-\S+)$/m;
    $lines .= $1 if $said =~ /^(\{.*\}\n)/m;
}

$t->write_file('llm-keys', $lines);
$t->start;


sub talk {
    my ($turns, %more) = @_;

    return { model => 'demo', %more, messages => [
        { role => 'system', content => 'Be kind.' },
        map { ({ role => 'user', content => "$turns->[$_]" },
               $_ < $#$turns ? { role => 'assistant', content => "yes $_" }
                             : ()) } 0 .. $#$turns ] };
}


sub key {
    my ($path, $body, %opt) = @_;
    my $res = $t->post($path, $body, %opt);

    is($res->{status}, 200, "$path answers") or diag($res->{body});

    return $res->{headers}{'x-key'};
}


my $one = key('/v1', talk([ 'one' ]));

like($one, qr/^[0-9a-f]{32}$/, 'a key');
is(key('/v1', talk([ 'one', 'two', 'three' ])), $one, 'of a later turn, too');
isnt(key('/v1', talk([ 'two' ])), $one, 'another conversation');
isnt(key('/v1', { %{ talk([ 'one' ]) }, model => 'other' }), $one,
     'another model');

# ---- wherever the body lies ----

my $pad = 'word ' x 200_000;
my $long = talk([ 'one', $pad, $pad ]);

is(key('/v1', $long), $one, 'a long body, in a file behind its beginning');
is(key('/file', talk([ 'one', 'two' ])), $one, 'in a file');
is(key('/file', $long), $one, 'a long one in a file');

for my $body (talk([ 'one' ]), $long) {
    my $text = LLM::JSON->new->utf8->canonical->encode($body);
    my $chunks = join('', map { sprintf "%x\r\n%s\r\n", length, $_ }
                          unpack '(a7000)*', $text) . "0\r\n\r\n";

    is(key('/v1', $chunks, headers => { 'Transfer-Encoding' => 'chunked' }),
       $one, 'in chunks, of ' . length $text);

    my $c = LLM::H2->new(port => $t->{port2});
    my $lines = () = $t->log('key.log') =~ /\n/g;

    $c->wait_done($c->post('/v1', $body));

    LLM::Test::wait_for(10, sub {
        (() = $t->log('key.log') =~ /\n/g) > $lines;
    });
    is((split /\n/, $t->log('key.log'))[-1], $one, 'over HTTP/2');
}

# ---- whenever it is asked ----

my $res = $t->post('/early', talk([ 'one' ]));

is($res->{headers}{'x-key'}, $one, 'asked before the body came, and after');
isnt($res->{headers}{'x-early'}, $one, 'the first answer was not kept');
is($res->{headers}{'x-early'}, $t->get('/v1')->{headers}{'x-key'},
   'it is that of no body');
is(key('/again', talk([ 'one' ])), $one, 'and behind an error_page');

is($t->post('/late', talk([ 'one' ]))->{status}, 200,
   'asked by the log alone, of a body in a file');
ok($t->wait_log(qr/\n/, 'late.log'), 'which is written');
is((split /\n/, $t->log('late.log'))[0], $t->get('/v1')->{headers}{'x-key'},
   'when nginx has closed the file: it is that of no body');

my $slow = LLM::Client->open(port => $t->port, raw => "POST /unbuffered "
    . "HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 20\r\n\r\n");

select undef, undef, undef, 0.3;
$slow->write('{"input":"aaaaaaa"}' . "\n");
is($slow->response->{headers}{'x-key'}, $t->get('/v1')->{headers}{'x-key'},
   'a body that is sent on while it comes does not count');

# ---- who asks ----

my %who = (
    nobody => [ '/v1' ],
    'one bearer' => [ '/v1', headers => { Authorization => 'Bearer a' } ],
    'another bearer' => [ '/v1', headers => { Authorization => 'Bearer b' } ],
    'another key' => [ '/v1', headers => { 'X-Api-Key' => 'c' } ],
    'a tenant' => [ '/tenant', headers => { 'X-Tenant' => 'a' } ],
    'another tenant' => [ '/tenant', headers => { 'X-Tenant' => 'b' } ],
    'ann' => [ '/keys', headers => { 'X-Api-Key' => $secret{'ann-1'} } ],
    'bob' => [ '/keys', headers => { 'X-Api-Key' => $secret{bob} } ] );
my %keys;

for my $name (sort keys %who) {
    my ($path, @opt) = @{ $who{$name} };
    my $key = key($path, talk([ 'one' ]), @opt);

    is(key($path, talk([ 'one', 'two' ]), @opt), $key, "$name: the next turn");
    ok(!$keys{$key}, "$name has a key of its own");
    $keys{$key} = $name;
}

is($keys{key('/v1', talk([ 'one' ]), headers => { 'X-Api-Key' => 'a' })},
   'one bearer', 'by whichever header');
is($keys{key('/tenant', talk([ 'one' ]))}, 'nobody', 'no tenant is nobody');
is($keys{key('/keys', talk([ 'one' ]),
             headers => { 'X-Api-Key' => $secret{'ann-2'} })}, 'ann',
   "a tenant's two keys are one");
is($t->post('/keys', talk([ 'one' ]))->{status}, 401, 'who has none is kept out');

# ---- never an error ----

gzip \LLM::JSON->new->encode(talk([ 'one' ])) => \my $zipped;

my $none = key('/v1', '');

for my $case ([ 'no JSON', 'model=demo' ], [ 'a list', '[1,2]' ],
              [ 'compressed', $zipped, 'Content-Encoding', 'gzip' ],
              [ 'zeros', "\0" x 100_000 ], [ 'brackets', '[' x 100_000 ])
{
    my ($name, $body, %headers) = @$case;

    is(key('/v1', $body, headers => \%headers), $none, "$name: as no body");
}

is($t->get('/v1')->{headers}{'x-key'}, $none, 'nor has a GET one');
isnt(key('/v1', '{"model":"demo","messages":[{"role":"user","content":"a"}'),
     $none, 'what could be read of a broken one counts');

# what is beyond four megabytes is not looked at

my $far = '{"x":"' . 'x' x (4 << 20) . '","model":"demo"}';
my $near = '{"x":"' . 'x' x (3 << 20) . '","model":"demo"}';

for my $path ('/v1', '/file') {
    is(key($path, $far), $none, "$path: the first 4 MB count");
    isnt(key($path, $near), $none, 'and all of them');
}

# ---- llm_route ----

is(key('/none', { prompt => 'a' }), key('/none', { prompt => 'b' }),
   'prompt=0: no prompt counts');
is(key('/none/too', talk([ 'one' ])), key('/none/too', talk([ 'two' ])),
   'message=0: no message does, and a level inherits that');
is(key('/none/some', talk([ 'one two three' ])),
   key('/none/some', talk([ 'one two four' ])), 'message=8: eight bytes');
isnt(key('/none/some', talk([ 'one two' ])),
     key('/none/some', talk([ 'one twx' ])), 'each of them');
isnt(key('/none/some', { prompt => 'a' x 1000 . 'b' }),
     key('/none/some', { prompt => 'a' x 1000 . 'c' }), 'prompt=1k');

$t->stop;

for my $case ([ 'llm_route message=65k;', 'invalid size "message=65k"' ],
              [ 'llm_route prompt=x;', 'invalid size "prompt=x"' ],
              [ 'llm_route prompt=;', 'invalid size "prompt="' ],
              [ 'llm_route bytes=1;', 'unknown parameter "bytes=1"' ],
              [ 'llm_route;', 'invalid number of arguments' ],
              [ 'llm_route prompt=1; llm_route prompt=1;', 'is duplicate' ])
{
    my ($text, $want) = @$case;
    my ($status, $said) = front("location / { $text }")->check;

    isnt($status, 0, "refused: $text");
    like($said, qr/\Q$want\E.* in \S+nginx\.conf:\d+/s, 'with file and line');
}

done_testing();
