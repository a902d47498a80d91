#!/usr/bin/perl

# llm_admin: who may ask, what there is, aliases that are set while several
# workers serve, usage, the line of each action, and what is refused.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use LLM::JSON;
use LLM::Test;
use Test::More;

my $models = join ' ', map {
    "llm_model $_ %%ROOT%%/models/demo.gguf threads=1 parallel=4 kv_cache=64m;"
} 'one alias=gpt-4o-mini default', 'two alias=dos', 'org/three lazy';

$models =~ s{(llm_model \S+) ((?:alias=\S+|lazy)(?: default)?) (\S+)}
            {$1 $3 $2}g;

sub key {
    my ($id, %of) = @_;

    return LLM::JSON->new->canonical->encode({ id => $id, %of,
        sha256 => sha256_hex("secret-of-$id") }) . "\n";
}

sub bearer { (headers => { Authorization => "Bearer secret-of-$_[0]" }) }

my $t = LLM::Test->new(
    workers => 3,
    model => $models,
    http => <<'END',
        map $http_x_color $color { green two; default one; }
        map $http_x_gone $gone { yes ''; default one; }
        llm_token_zone $http_x_tenant zone=tenants:1m day=1000000;
        llm_token_zone $http_x_other zone=others:1m day=1000000;
        llm_alias chat $color;
        llm_alias fixed dos;
        llm_alias gone $gone;
END
    locations => <<'END');
        location /v1 { llm_token_limit zone=tenants; llm_api; }
        location /small { llm_api one; }
        location /off { llm_alias chat ""; llm_api; }
        location /own { llm_alias chat two; llm_api; }
        location /keys { llm_api_keys keys; llm_api; }
        location /admin { llm_admin; }
        location /ssi { ssi on; ssi_types *; }
        location /look/ { limit_except GET { allow 127.0.0.2; deny all; }
                          llm_admin; }
        location /boss { llm_api_keys keys; llm_admin; }
        location /user { auth_basic people; auth_basic_user_file people;
                         llm_admin; }
        location /page {
            llm_intercept_errors on;
            error_page 404 =404 /sorry;
            llm_admin;
        }
        location = /sorry { return 200 "sorry\n"; }
        location /tiny { client_body_buffer_size 1; client_max_body_size 20k;
                         llm_admin; }
        location = /health { llm_health one; }
END

$t->write_file('people', "joe:{PLAIN}a\n");
$t->write_file('keys', key('ann') . key('boss', scopes => [ 'admin' ])
               . key('chat', models => [ 'chat' ])
               . key('new', models => [ 'new' ]));
$t->start;

my $t0 = length $t->log('error.log');

sub admin {
    my ($method, $path, $body, %opt) = @_;

    return $t->request(method => $method, path => "/admin/$path",
                       body => $body, %opt);
}

sub code { $_[0]{json}{error}{code} // '' }

sub is_code {
    my ($res, $status, $code, $name) = @_;

    is("$res->{status} " . code($res), "$status $code", $name)
        or diag($res->{body});
}

sub model {
    my ($model, %opt) = @_;

    my $path = $opt{path} // '/v1';
    my $res = $t->post("$path/completions",
                       { prompt => 'a', max_tokens => 1, model => $model },
                       headers => $opt{headers});

    return $res->{json}{model} // $res->{status};
}

# of all workers: a connection each time, so any of them may answer

sub models {
    my %n;

    $n{ model(@_) }++ for 1 .. 12;

    return join ' ', sort keys %n;
}


# ---- what there is ----

my $res = admin('GET', 'models');

is($res->{status}, 200, 'models') or diag($res->{body});
is(join(' ', map { $_->{id} } @{ $res->{json}{data} }), 'one two org/three',
   'all of them');

my ($one, undef, $three) = @{ $res->{json}{data} };

is($one->{state}, 'ready', 'one is ready');
is($three->{state}, 'idle', 'a lazy one is idle');
is($one->{file}, "$LLM::Test::ROOT/models/demo.gguf", 'its file');
cmp_ok($one->{memory}{weights}, '>', 1000, 'its memory');
ok(exists $one->{action} && !defined $one->{action}, 'no action yet');
like($one->{device}, qr/1 thread/, 'its device');
is($one->{requests}, 0, 'no request');

is_deeply([ sort keys %{ admin('GET', 'models/one')->{json} } ],
          [ sort keys %$one ], 'one of them');
is(admin('GET', 'models/dos')->{json}{id}, 'two', 'by its alias=');
is(admin('GET', 'models/org/three')->{json}{id}, 'org/three',
   'a name with a slash');
is(admin('GET', 'models/org%2Fthree')->{json}{id}, 'org/three',
   'as it is escaped');
is(admin('HEAD', 'models')->{body}, '', 'HEAD');
is($t->get('/admin/models')->{headers}{'content-type'}, 'application/json',
   'JSON');
ok($t->get('/admin/models')->{headers}{'x-request-id'}, 'with an id');

is_code(admin('GET', 'models/none'), 404, 'model_not_found', 'no such model');
is_code(admin('GET', 'models/ONE'), 404, 'model_not_found', 'nor in a case');
is_code(admin('GET', ''), 404, 'not_found', 'nothing at the top');
is_code($t->get('/admin'), 404, 'not_found', 'without a slash');
is($t->get('/adminmodels')->{status}, 404, 'another path');
is_code(admin('GET', 'what'), 404, 'not_found', 'nothing elsewhere');
is($t->get('/look/models')->{status}, 200, 'where all may look');

for my $from (1, 2) {
    $res = LLM::Client->open(port => $t->port, from => "127.0.0.$from",
                             method => 'PUT', path => '/look/aliases/chat',
                             body => {})->response;
    is($res->{status}, $from == 1 ? 403 : 400, "and some act, $from");
}

for my $case ([ POST => 'models', 'GET, HEAD' ],
              [ PATCH => 'models/one', 'GET, HEAD, PUT, DELETE' ],
              [ POST => 'models/one', 'GET, HEAD, PUT, DELETE' ],
              [ GET => 'models/one/load', 'POST' ],
              [ POST => 'aliases/chat', 'GET, HEAD, PUT, DELETE' ],
              [ PUT => 'aliases', 'GET, HEAD' ],
              [ PATCH => 'aliases/chat', 'GET, HEAD, PUT, DELETE' ],
              [ POST => 'usage', 'GET, HEAD' ])
{
    my ($method, $path, $allow) = @$case;

    $res = admin($method, $path, '{}');
    is_code($res, 405, 'method_not_allowed', "$method $path");
    is($res->{headers}{allow}, $allow, 'what is allowed');
}

is_code(admin('POST', 'models/none/load'), 404, 'model_not_found',
        'an action of no model');
is_code(admin('POST', 'models/one/explode'), 404, 'model_not_found',
        'no action');


# ---- who may ask ----

is_code($t->get('/boss/models'), 401, 'invalid_api_key', 'no key');
is_code($t->get('/boss/models', bearer('ann')), 403, 'insufficient_scope',
        'a key of the usual scopes');
is($t->get('/boss/models', bearer('boss'))->{status}, 200,
   'a key of the scope admin');
is($t->get('/page/models/none')->{body}, "sorry\n", 'error_page');


# a page of another site in the browser of who may ask

my @own = ('X-LLM-Admin' => 1);
my $local = "127.0.0.1:${\$t->port}";

for my $case ([ 'http://evil.example', 403 ], [ 'null', 403 ], [ '', 403 ],
              [ 'http://localhost:1', 403 ], [ "http://$local.evil", 403 ],
              [ 'http://localhost', 400 ])
{
    my ($origin, $status) = @$case;

    is(admin('PUT', 'aliases/chat', {}, headers => { Host => 'localhost',
             Origin => $origin, @own })
       ->{status}, $status, "a page of '$origin' acts");
    is(admin('GET', 'aliases', undef, headers => { Host => 'localhost',
             Origin => $origin })
       ->{status}, 200, 'and looks');
}

# its own page says that it is one

for my $from ([ Origin => "http://$local" ], [ 'Sec-Fetch-Site' => 'none' ],
              [ 'Sec-Fetch-Site' => 'same-origin', Origin => "http://$local" ])
{
    my %from = (Host => $local, @$from);

    for my $act ([ PUT => 'aliases/chat' ], [ DELETE => 'aliases/chat' ],
                 [ POST => 'models/one/load' ])
    {
        is_code(admin(@$act[0, 1], undef, headers => { %from }), 403,
                'header_required', "$act->[0] of a browser, @$from");
    }

    is_code(admin('PUT', 'aliases/chat', {}, headers => { %from, @own }), 400,
            'missing_required_parameter', 'with the header');
}

# and one of another site that does not say whose it is

is_code(admin('POST', 'models/one/load', undef,
              headers => { Host => $local, 'Sec-Fetch-Site' => 'cross-site',
                           @own }), 403, 'cross_origin', 'without an Origin');

# DNS rebinding: the other site's name leads to this machine, so its page is of
# the same origin, and may look at what it gets and send any header

for my $host ('evil.example', "evil.example:${\$t->port}", 'localhost.evil',
              'evillocalhost', '127.0.0.1.evil', '_', 'evil')
{
    my %page = (Host => $host, Origin => "http://$host", @own);

    for my $act ([ PUT => 'aliases/chat', { model => 'two' } ],
                 [ POST => 'models/one/unload' ], [ GET => 'usage' ],
                 [ GET => 'models' ])
    {
        is_code(admin(@$act[0 .. 2], headers => { %page }), 403, 'unknown_host',
                "$act->[0] $act->[1] for $host");
    }

    is_code(admin('GET', 'usage', undef, headers => { Host => $host }), 403,
            'unknown_host', 'nor without saying that it is one');
}

is(admin('GET', 'models', undef, headers => { Host => $_ })->{status}, 200,
   "for $_")
    for 'localhost', 'LOCALHOST:1', 'a.localhost', '127.0.0.1', '10.1.2.3:80',
        '[::1]', '[::1]:8080';

for my $host ('evil.example', $local) {
    is($t->request(method => 'GET', path => '/boss/models',
                   headers => { Host => $host, Origin => 'http://x.example',
                                Authorization => 'Bearer secret-of-boss' })
       ->{status}, 200, "a key for $host");
}

is_code($t->request(method => 'POST', path => '/boss/models/none/load',
                    headers => { Host => 'evil.example',
                                 Origin => 'http://evil.example',
                                 Authorization => 'Bearer secret-of-boss' }),
        404, 'model_not_found', 'and acts');


# ---- aliases ----

sub put { admin('PUT', "aliases/$_[0]", $_[1], @_[2 .. $#_]) }

is_deeply(admin('GET', 'aliases')->{json}{data},
          [ { id => 'chat', object => 'alias', model => undef,
              rules => [ '$color', '', 'two' ] },
            { id => 'fixed', object => 'alias', model => undef,
              rules => [ 'dos' ] },
            { id => 'gone', object => 'alias', model => undef,
              rules => [ '$gone' ] } ], 'those of the configuration')
    or diag(admin('GET', 'aliases')->{body});

is(models('chat'), 'one', 'as the rule says');
is(models('chat', headers => { 'X-Color' => 'green' }), 'two', 'by a header');

$res = put('chat', { model => 'two' });
is($res->{status}, 200, 'an alias is set') or diag($res->{body});
is($res->{json}{model}, 'two', 'where it leads');
is($res->{json}{previous}, undef, 'to nothing that was set before');
is($res->{json}{saved}, undef, 'there is no file');

is(models('chat'), 'two', 'in all workers at once');
is(models('CHAT'), 'two', 'in any case');
is(models('chat', path => '/own'), 'two', 'another rule of the same name');
is(models('chat', path => '/off'), '404',
   'a location that has no such alias has none');
is(models('chat', path => '/small'), 'one',
   'a location that has not the model keeps its rule');

$res = put('Chat', { model => 'one' });
is($res->{json}{previous}, 'two', 'set back by one PUT');
is(models('chat', headers => { 'X-Color' => 'green' }), 'one',
   'whatever the rule says');
is(models('gone', headers => { 'X-Gone' => 'yes' }), '404',
   'a rule that is empty');
put('gone', { model => 'two' });
is(models('gone', headers => { 'X-Gone' => 'yes' }), 'two',
   'is overridden, too');

$res = admin('DELETE', 'aliases/chat');
is("$res->{status} " . ($res->{json}{model} // 'none'), '200 none',
   'taken back');
is(models('chat', headers => { 'X-Color' => 'green' }), 'two',
   'the rule says again');
is(put('gone', { model => undef })->{status}, 200, 'null takes back, too');
is_code(admin('DELETE', 'aliases/chat'), 404, 'alias_not_set',
        'what is not set');
is_code(admin('DELETE', 'aliases/none'), 404, 'alias_not_set', 'or not known');

# one that no llm_alias names

is(models('new'), '404', 'an unknown name');
is(put('new', { model => 'dos' })->{status}, 200, 'a new alias');
is(models('new'), 'two', 'leads to a model by its alias=');
is(models('new', path => '/small'), '404',
   'but not where there is no such model');
is($t->get('/v1/models/new')->{json}{alias_of}, 'two', 'GET models has it');
is($t->post('/keys/completions', { prompt => 'a', max_tokens => 1,
                                   model => 'new' }, bearer('new'))
   ->{json}{model}, 'two', 'a key that names the alias may use it');
is_code($t->post('/keys/completions', { prompt => 'a', model => 'new' },
                 bearer('chat')), 403, 'model_not_allowed',
        'another one may not');
is_deeply(admin('GET', 'aliases/NEW')->{json},
          { id => 'NEW', object => 'alias', model => 'dos', rules => [] },
          'it is shown');

for my $name ('a/b', 'a%20b', '%C3%A4', '%22%5C', 'x' x 256) {
    is(put($name, { model => 'two' })->{status}, 200, "a name: $name");
    (my $plain = $name) =~ s/%(..)/chr hex $1/ge;
    utf8::decode($plain);
    is(models($plain), 'two', 'is one');
    is(admin('DELETE', "aliases/$name")->{status}, 200, 'and taken back');
}

is_code(put('x' x 257, { model => 'two' }), 400, 'invalid_name', 'too long');
is_code(put('%FF', { model => 'two' }), 400, 'invalid_name', 'not UTF-8');
is_code(put('a%0Ab', { model => 'two' }), 400, 'invalid_name', 'two lines');
is_code(put('one', { model => 'two' }), 409, 'alias_is_model',
        'a model\'s name is a pin');
is_code(put('GPT-4o-MINI', { model => 'two' }), 409, 'alias_is_model',
        'so is its alias=');
is_code(put('chat', { model => 'none' }), 404, 'model_not_found', 'no model');
is_code(put('chat', { model => 'fixed' }), 404, 'model_not_found',
        'an alias of a rule is none');
is_code(put('chat', { model => 'TWO' }), 404, 'model_not_found', 'exactly');


# ---- bodies ----

is_code(put('chat', ''), 400, 'missing_required_parameter', 'no body');
is_code(put('chat', {}), 400, 'missing_required_parameter', 'an empty one');
is_code(put('chat', { model => 1 }), 400, 'invalid_type', 'a number');
is_code(put('chat', { model => '' }), 400, 'invalid_value', 'nothing');
is_code(put('chat', { modle => 'two' }), 400, 'unknown_parameter',
        'a member that is misspelt');
is_code(put('chat', [ 'two' ]), 400, 'invalid_type', 'a list');
is(put('chat', '{"model":"two"')->{status}, 400, 'half of one');
is(put('chat', '{"model":"two"}{}')->{status}, 400, 'two');
is(put('chat', "{\"model\":\"two\0\"}")->{status}, 400, 'a zero byte');
is(put('chat', "\xff\xfe{}")->{status}, 400, 'no UTF-8');
is_code(put('chat', "\xef\xbb\xbf{\"model\":\"none\"}"), 404,
        'model_not_found', 'a byte order mark is skipped');
like(put('chat', '{"model":"tw\u0000o"}')->{json}{error}{message},
     qr/\\u0000, which no text may contain/, 'a zero byte by its escape');
is_code(put('chat', '{}', headers => { 'Content-Encoding' => 'gzip' }), 415,
        'unsupported_content_encoding', 'compressed');
is(put('chat', '[' x 10_000)->{status}, 400, 'ten thousand brackets');
is_code(put('chat', '{"model":"' . 'x' x 16_400 . '"}'), 413,
        'request_too_large', 'a large one');
is_code(put('chat', sprintf("%x\r\n%s\r\n0\r\n\r\n", 16_500, ' ' x 16_500),
            headers => { 'Transfer-Encoding' => 'chunked' }), 413,
        'request_too_large', 'in chunks');
is_code(admin('DELETE', 'aliases/chat', { model => 'two' }), 400,
        'unknown_parameter', 'DELETE has none');
is(models('chat'), 'one', 'nothing has changed');

is($t->request(method => 'PUT', path => '/tiny/aliases/chat',
               body => { model => 'two' })->{status}, 200,
   'a body that nginx writes to a file');
is(models('chat'), 'two', 'is read');
is(put('chat', "8\r\n{\"model\"\r\n7\r\n:\"one\"}\r\n0\r\n\r\n",
       headers => { 'Transfer-Encoding' => 'chunked' })->{status}, 200,
   'one in chunks');
is(models('chat'), 'one', 'too');
is(admin('DELETE', 'aliases/chat')->{status}, 200, 'as it was');


# ---- by a subrequest, for which no access is checked ----

mkdir $t->dir . '/html/ssi';
$t->write_file('html/ssi/admin.html', '<!--# include virtual="/admin/models" -->');
$res = $t->get('/ssi/admin.html');
is($res->{status}, 200, 'a page that includes llm_admin');
is(eval { LLM::JSON::decode_json($res->{body})->{error}{code} },
   'subrequest_not_supported', 'has an error in its place')
    or diag($res->{body});


# ---- the log ----

$t->request(method => 'PUT', path => '/boss/aliases/chat',
            body => { model => 'two' }, bearer('boss'));

my $address = qr/at 127\.0\.0\.1/;

my $done = qr/PUT alias "chat", from "-" to "two": done/;

like($t->log('error.log'),
     qr/\[notice\].*llm_admin: key "boss" $address: $done/,
     'an action: who, what, from, to, result');
admin('PUT', 'aliases/chat', { model => 'one' },
      headers => { Authorization => 'Basic am9lOmE=' });
is($t->request(method => 'PUT', path => '/user/aliases/chat',
               body => { model => 'two' },
               headers => { Authorization => 'Basic am9lOmE=' })->{status},
   200, 'one whom auth_basic knows');
like($t->log('error.log'),
     qr/llm_admin: user "joe" $address: PUT alias "chat", from "one" to "two"/,
     'is named');
admin('PUT', 'aliases/chat', { model => 'one' });
admin('DELETE', 'aliases/a%0A"b');

$res = substr $t->log('error.log'), $t0;
like($res, qr/llm_admin: client "-" $address: DELETE alias "chat", from "one"/,
     'taken back');
like($res, qr/PUT alias "chat", from "two" to "one": done/, 'of an alias');
like($res, qr/PUT alias "one", from "-" to "-": refused, 409 alias_is_model/,
     'what is refused');
like($res, qr/DELETE alias "a\\\\x0a\\"b", .*: refused, 400 invalid_name/,
     'a name can break neither the line nor the quotes');
like($res, qr/refused, 403 cross_origin/, 'from elsewhere');
unlike($res, qr/secret-of/, 'no secret');
unlike($res, qr/llm_admin: [^\n]*: (?:GET|HEAD)/, 'who only looks has no line');

is(admin('DELETE', 'aliases/chat')->{status}, 200, 'as it was');


# ---- usage ----

$t->post('/v1/completions', { prompt => 'a b c', max_tokens => 2,
                              ignore_eos => \1, model => 'one' },
         headers => { 'X-Tenant' => $_ }) for 'ann', 'ann', "b\xff;&";

my %zone;

sub usage {
    my ($args) = @_;

    my $res = admin('GET', "usage$args");
    %zone = map { $_->{zone} => $_ } @{ $res->{json}{data} // [] };
    return $res;
}

ok(LLM::Test::wait_for(10, sub {
    usage('');
    my ($ann) = grep { ($_->{key} // '') eq 'ann' }
                @{ $zone{tenants}{accounts} };
    $ann && $ann->{requests} == 2;
}), 'usage of an account') or diag(usage('')->{body});

my ($ann) = grep { ($_->{key} // '') eq 'ann' }
            @{ $zone{tenants}{accounts} };

is($ann->{completion_tokens}, 4, 'tokens of its answers');
cmp_ok($ann->{prompt_tokens}, '>', 2, 'and prompts');
is(join(' ', sort keys %zone), 'others tenants', 'of all zones');
is(scalar @{ $zone{others}{accounts} }, 0, 'one has no account');
is($zone{tenants}{next}, undef, 'there is no more');
ok((grep { ($_->{key_hex} // '') eq '62ff3b26' }
    @{ $zone{tenants}{accounts} }), 'a key of any bytes');

usage('?zone=tenants&limit=1');
is(scalar @{ $zone{tenants}{accounts} }, 1, 'a page');
is(join(' ', keys %zone), 'tenants', 'of one zone');

my @seen = @{ $zone{tenants}{accounts} };
my $pages = 1;

while ($zone{tenants}{next}) {
    $res = $t->get($zone{tenants}{next});
    %zone = (tenants => $res->{json}{data}[0]);
    push @seen, @{ $zone{tenants}{accounts} };
    last if ++$pages > 5;
}

is(scalar @seen, 2, 'all pages together');
is($pages, 3, 'the last one is empty');
is_code(usage('?zone=none'), 404, 'zone_not_found', 'no such zone');
is_code(usage("?limit=$_"), 400, 'invalid_value', "limit=$_")
    for '0', '10001', 'x', '';
is_code(usage('?after=ann'), 400, 'invalid_value', 'after without a zone');

$t->stop;


# ---- what nginx -t says ----

sub check {
    my ($conf, $want, $name) = @_;

    my $bad = LLM::Test->new(locations => $conf);
    my ($status, $out) = $bad->check;

    $want ? like($out, $want, $name) : is($status, 0, $name);
    diag($out) if !$want && $status;
}

check('location /admin { llm_admin; }', undef, 'no parameter');
check('location /admin { llm_admin state=s models=logs; }
       location /two { llm_admin state=s; }
       location /three { llm_admin; }', undef, 'the same in several places');
check('location /a { llm_admin state=s; }
       location /b { llm_admin state=t; }',
      qr/"state=t" here, but "state=s" in another "llm_admin".*nginx\.conf:\d+/,
      'two files of state');
check('location /a { llm_admin models=logs; }
       location /b { llm_admin models=temp; }',
      qr/"models=temp" here, but "models=logs"/, 'two folders');
check('location /a { llm_admin models=none; }',
      qr/there is no folder "models=none".*nginx\.conf:\d+/, 'no folder');
check('location /a { llm_admin models=nginx.conf; }',
      qr/there is no folder "models=nginx\.conf"/, 'a file is none');
check('location /a { llm_admin state=none/s; }',
      qr/there is no folder for "state=none\/s".*nginx\.conf:\d+/,
      'no folder for the state');
check('location /a { llm_admin state=logs; }',
      qr/"state=logs" is not a regular file/, 'a folder as state');
check('location /a { llm_admin state=; }', qr/empty "state="/, 'no name');
check('location /a { llm_admin what=1; }', qr/unknown parameter "what=1"/,
      'an unknown parameter');
check('location = /a { llm_admin; }', qr/needs a location with a prefix/,
      'an exact location');
check('location ~ ^/a { llm_admin; }', qr/needs a location with a prefix/,
      'a regex');
check('location /a { llm_admin; llm_api; }', qr/conflicts with another/,
      'beside llm_api');
check('location /a { llm_admin; llm_admin; }', qr/is duplicate/, 'twice');

done_testing();
