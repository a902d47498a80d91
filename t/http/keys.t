#!/usr/bin/perl

# llm_api_keys: who has a key, what it is for, a file that changes while
# several workers serve, what is refused at the start, and that no log has a
# secret.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use LLM::JSON;
use LLM::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my $json = LLM::JSON->new->canonical;
my %secret;

# the line of a key, whose secret is made when it is first named

sub line {
    my ($id, %of) = @_;

    $secret{$id} //= 'sk-llm-' . substr(sha256_hex("$$ $id " . time), 0, 43);

    return $json->encode({ id => $id, sha256 => sha256_hex($secret{$id}),
                           %of }) . "\n";
}

sub bearer { (headers => { Authorization => "Bearer $secret{$_[0]}" }) }
sub header { (headers => { 'X-Api-Key' => $secret{$_[0]} }) }

sub rfc {
    my @t = gmtime(time + $_[0]);

    return sprintf('%04d-%02d-%02dT%02d:%02d:%02dZ', $t[5] + 1900, $t[4] + 1,
                   @t[3, 2, 1, 0]);
}

my %lines = (
    ann => line('ann', tenant => 'a', plan => 'gold', tpm => 60000),
    ann2 => line('ann2', tenant => 'a'),
    bob => line('bob', plan => 'free'),
    small => line('small', models => [ 'gpt-*' ]),
    big => line('big', models => [ 'two' ]),
    none => line('none', models => []),
    embed => line('embed', scopes => [ 'embed' ]),
    watch => line('watch', scopes => [ 'monitor', 'models' ]),
    boss => line('boss', scopes => [ 'admin' ]),
    late => line('late', expires => rfc(-60)),
    early => line('early', not_before => int(time) + 3600),
    brief => line('brief', not_before => '2020-01-01', expires => rfc(3600)),
);

# what a location of its own has
my $other = line('other');

sub all { join '', "# keys\n\n", map { $lines{$_} } sort keys %lines }


my $models = join ' ', map {
    "llm_model $_ %%ROOT%%/models/demo.gguf threads=1 parallel=4 kv_cache=64m;"
} 'one alias=gpt-4o-mini', 'two';

$models =~ s/one alias=(\S+) (\S+)/one $2 alias=$1 default/;

my $t = LLM::Test->new(
    workers => 3,
    pace => 0.5,
    model => $models,
    http => <<'END',
        log_format keys '[$llm_key|$llm_key_plan|$llm_key_TPM|$llm_key_none'
                        '|$llm_key_sha256|$llm_tenant|$status]';
        map $llm_key_plan $rate_key { gold ''; default $llm_key; }
        limit_req_zone $rate_key zone=slow:1m rate=1r/m;
        llm_api_keys keys check=100ms;
END
    server => <<'END',
        listen 127.0.0.1:%%PORT2%% http2;
        access_log logs/keys.log keys;
        error_log logs/debug.log debug;
END
    locations => <<'END');
        location /v1 { llm_api; }
        location /fallback { llm_api one two fallback=two; }
        location /tenant { llm_tenant $http_x_tenant; llm_api; }
        location /slow { limit_req zone=slow; limit_req_status 429; llm_api; }
        location /any { satisfy any; allow 127.0.0.1; deny all; llm_api; }
        location /either { satisfy any; deny all; llm_api; }
        location /both { deny all; llm_api; }
        location /other { llm_api_keys others check=10s; llm_api; }
        location /page {
            llm_intercept_errors on;
            error_page 401 =401 /login;
            llm_api;
        }
        location = /login { llm_api_keys off; return 200 "log in\n"; }
        location /small { client_max_body_size 1k; llm_api; }
        location = /gif { empty_gif; }
        location = /metrics { llm_metrics; }
        location = /watched { llm_health; }
        location = /health { llm_api_keys off; llm_health; }
END

$t->write_file('keys', all());
$t->write_file('others', $other);
$t->start;

my %ask = (prompt => 'a', max_tokens => 1);

sub ask { $t->post($_[0] // '/v1/completions', { %ask, %{ $_[1] // {} } },
                   @_[2 .. $#_]) }
sub code { $_[0]{json}{error}{code} // '' }
sub is_code {
    my ($res, $status, $code, $name) = @_;

    is("$res->{status} " . code($res), "$status $code", $name)
        or diag($res->{body});
}


# ---- who has a key ----

my $res = ask();

is_code($res, 401, 'invalid_api_key', 'no key');
is($res->{json}{error}{type}, 'authentication_error', 'its type');
is($res->{headers}{'www-authenticate'}, 'Bearer realm="llm"', 'a challenge');
is($res->{headers}{'content-type'}, 'application/json', 'in JSON');
ok($res->{headers}{'x-request-id'}, 'with an id');

is(ask(undef, {}, bearer('ann'))->{status}, 200, 'a key as a bearer token');
is(ask(undef, {}, header('ann'))->{status}, 200, 'as x-api-key');
is(ask(undef, {}, headers => { Authorization => "bearer  $secret{ann} " })
   ->{status}, 200, 'in other cases and spaces');
is(ask(undef, {}, headers => { Authorization => 'Basic YTpi',
                               'X-Api-Key' => $secret{ann} })->{status}, 200,
   'x-api-key beside another scheme');
is_code(ask(undef, {}, headers => { Authorization => 'Bearer wrong',
                                    'X-Api-Key' => $secret{ann} }), 401,
        'invalid_api_key', 'a bearer token goes before x-api-key');

for my $bad (substr($secret{ann}, 0, -1), "$secret{ann}x", "X$secret{ann}",
             sha256_hex($secret{ann}), 'x' x 4000)
{
    $res = ask(undef, {}, headers => { Authorization => "Bearer $bad" });
    is_code($res, 401, 'invalid_api_key', 'not ' . substr($bad, 0, 70));
    is($res->{headers}{'www-authenticate'},
       'Bearer realm="llm", error="invalid_token"', 'a challenge');
    unlike($res->{body}, qr/\Q$bad\E/, 'the key is masked')
        if length $bad < 400;
}

$res = ask(undef, {}, headers => { Authorization => "Bearer $secret{ann}x" });
like($res->{json}{error}{message}, qr/'sk-ll\*{14}[0-9a-f]{3}x' is not known/,
     'so that a person knows it');

is_code($res = ask(undef, {}, bearer('late')), 401, 'invalid_api_key',
        'an expired key');
like($res->{json}{error}{message}, qr/has expired/, 'says so');
is_code($res = ask(undef, {}, bearer('early')), 401, 'invalid_api_key',
        'a key of tomorrow');
like($res->{json}{error}{message}, qr/not valid yet/, 'says so');
is(ask(undef, {}, bearer('brief'))->{status}, 200, 'a key of today');

# Anthropic's paths and form

$res = $t->post('/v1/messages', { max_tokens => 1, messages => [
    { role => 'user', content => 'a' } ] });
is($res->{status}, 401, 'messages: no key');
is($res->{json}{type}, 'error', 'in Anthropic\'s form');
is($res->{json}{error}{type}, 'authentication_error', 'its type');

is($t->post('/v1/messages', { max_tokens => 1, model => 'one', messages => [
       { role => 'user', content => 'a' } ] }, header('ann'))->{status}, 200,
   'messages: a key');

$res = $t->post('/v1/messages', { max_tokens => 1, model => 'one',
    messages => [ { role => 'user', content => 'a' } ] }, header('embed'));
is("$res->{status} $res->{json}{error}{type}", '403 permission_error',
   'messages: a scope');

# before the body is read: one that is too large, and one that does not come

$res = ask('/small/completions', { prompt => 'a' x 4000 });
is_code($res, 413, 'request_too_large',
        'a body that is too large for its location');

my $c = LLM::Client->open(port => $t->port, method => 'POST',
    path => '/v1/completions', headers => { 'Content-Length' => 100 });
is($c->response->{status}, 401, 'without the body');
$c->close;


# ---- scopes ----

is_code($res = ask(undef, {}, bearer('embed')), 403, 'insufficient_scope',
        'generate');
is($res->{headers}{'www-authenticate'}, 'Bearer realm="llm", '
   . 'error="insufficient_scope", scope="generate"', 'a challenge');
like($res->{json}{error}{message}, qr/scope 'generate'/, 'which scope');

for (   [ 'embed', 'POST', '/v1/embeddings', 'ok' ],
        [ 'embed', 'POST', '/v1/rerank', 'ok' ],
        [ 'embed', 'POST', '/v1/tokenize', 'no' ],
        [ 'embed', 'GET', '/v1/models', 'no' ],
        [ 'embed', 'GET', '/v1/nothing', 'ok' ],
        [ 'embed', 'GET', '/metrics', 'no' ],
        [ 'embed', 'GET', '/gif', 'no' ],
        [ 'watch', 'GET', '/v1/models', 'ok' ],
        [ 'watch', 'GET', '/v1/models/one', 'ok' ],
        [ 'watch', 'GET', '/metrics', 'ok' ],
        [ 'watch', 'GET', '/watched', 'ok' ],
        [ 'watch', 'GET', '/gif', 'no' ],
        [ 'watch', 'POST', '/v1/chat/completions', 'no' ],
        [ 'boss', 'GET', '/metrics', 'no' ],
        [ 'ann', 'POST', '/v1/tokenize', 'ok' ],
        [ 'ann', 'GET', '/metrics', 'ok' ],
        [ 'ann', 'GET', '/gif', 'ok' ])
{
    my ($id, $method, $path, $want) = @$_;

    $res = $t->request(method => $method, path => $path, bearer($id),
                       $method eq 'POST' ? (body => { prompt => 'a' }) : ());

    is($res->{status} == 403 ? 'no' : $res->{status} == 401 ? '?' : 'ok',
       $want, "$id: $method $path");
}

is($t->get('/metrics')->{status}, 401, 'metrics need a key');
is($t->get('/gif')->{status}, 401, 'so does what other modules serve');
is($t->get('/watched')->{status}, 401, 'and llm_health');
is($t->get('/health')->{status}, 200, 'llm_api_keys off');


# ---- models ----

is(ask(undef, { model => 'gpt-4o-mini' }, bearer('small'))->{status}, 200,
   'by an alias');
is(ask(undef, { model => 'one' }, bearer('small'))->{status}, 200,
   'it is the same model');
is_code($res = ask(undef, { model => 'two' }, bearer('small')), 403,
        'model_not_allowed', 'not another');
is($res->{json}{error}{param}, 'model', 'the parameter');
is_code(ask('/fallback/completions', { model => 'nothing' }, bearer('small')),
        403, 'model_not_allowed', 'nor by the fallback');
is(ask('/fallback/completions', { model => 'nothing' }, bearer('big'))
   ->{status}, 200, 'which others may use');
is_code(ask(undef, {}, bearer('big')), 403, 'model_not_allowed',
        'nor by default');
is_code(ask(undef, { model => 'one' }, bearer('none')), 403,
        'model_not_allowed', 'no models');
is_code($t->post('/v1/tokenize', { model => 'two', prompt => 'a' },
                 bearer('small')), 403, 'model_not_allowed', 'tokenize');
is_code($t->get('/v1/tokenizer_info?model=two', bearer('small')), 403,
        'model_not_allowed', 'without a body');
is_code(ask(undef, { model => 'two', prompt => 'a ' x 20_000 },
            bearer('small')), 403, 'model_not_allowed', 'a large body');

sub listed {
    join ' ', map { $_->{id} } @{ $t->get('/v1/models', bearer($_[0]))
                                    ->{json}{data} };
}

is(listed('ann'), 'one gpt-4o-mini two', 'GET models: all');
is(listed('small'), 'one gpt-4o-mini', 'GET models: what the key is for');
is(listed('none'), '', 'GET models: nothing');
is_code($t->get('/v1/models/two', bearer('small')), 403, 'model_not_allowed',
        'GET models/two');
is($t->get('/v1/models/gpt-4o-mini', bearer('small'))->{status}, 200,
   'GET models/gpt-4o-mini');


# ---- nginx's own guards, variables, tenants ----

is(ask('/slow/completions', {}, bearer('bob'))->{status}, 200, 'limit_req');
is(ask('/slow/completions', {}, bearer('bob'))->{status}, 429,
   'limit_req by $llm_key');
is(ask('/slow/completions', {}, bearer('brief'))->{status}, 200,
   'another key');
is(ask('/slow/completions', {}, bearer('ann'))->{status}, 200,
   'by a member of the key');
is(ask('/slow/completions', {}, bearer('ann'))->{status}, 200,
   'through a map');

is(ask('/any/completions')->{status}, 200, 'satisfy any: by address');
is_code(ask('/any/completions', { model => 'two' }, bearer('small')), 403,
        'model_not_allowed', 'satisfy any: a key still says what it is for');
is(ask('/either/completions', {}, bearer('ann'))->{status}, 200,
   'satisfy any: by key');
is_code(ask('/either/completions'), 401, 'invalid_api_key',
        'satisfy any: neither');
is(ask('/both/completions', {}, bearer('ann'))->{status}, 403,
   'satisfy all: both are needed');
is(ask('/both/completions')->{body} =~ /invalid_api_key/ ? 'key' : 'address',
   'address', 'who is denied cannot try keys');

$res = ask('/page/completions');
is("$res->{status} $res->{body}", "401 log in\n", 'an error_page');

is(ask('/other/completions', {}, bearer('other'))->{status}, 200,
   'a location with its own file');
is_code(ask('/other/completions', {}, bearer('ann')), 401, 'invalid_api_key',
        'knows its own keys alone');
is_code(ask(undef, {}, bearer('other')), 401, 'invalid_api_key',
        'and others do not');

sub cached {
    my ($path, $n, @who) = @_;

    return ask($path, { prompt => join(' ', $n .. $n + 60) }, @who)
           ->{json}{usage}{prompt_tokens_details}{cached_tokens};
}

is(cached(undef, 1, bearer('ann')), 0, 'a prompt of one tenant');
is(cached(undef, 1, bearer('bob')), 0, 'is not there for another');
cmp_ok(cached(undef, 1, bearer('ann2')), '>', 0,
       'but for another key of the tenant');

my @a = (headers => { Authorization => "Bearer $secret{ann}",
                      'X-Tenant' => 't' });
my @b = (headers => { Authorization => "Bearer $secret{bob}",
                      'X-Tenant' => 't' });
is(cached('/tenant/completions', 100, @a), 0, 'llm_tenant');
cmp_ok(cached('/tenant/completions', 100, @b), '>', 0, 'goes before the key\'s');

sub again {
    my ($id) = @_;

    return ask(undef, { prompt => 'again' }, headers => {
        Authorization => "Bearer $secret{$id}", 'Idempotency-Key' => 'k' })
        ->{headers}{'idempotent-replayed'} // 'new';
}

is(join(' ', map { again($_) } qw(ann ann bob ann2 bob)),
   'new true new new true', 'an Idempotency-Key is of one key');

is($t->log('keys.log') =~ /^\[ann\|gold\|60000\|-\|-\|a\|200\]$/m, 1,
   'variables in the log');
like($t->log('keys.log'), qr/^\[bob\|free\|-\|-\|-\|bob\|200\]$/m,
     'without a tenant it is the id');
like($t->log('keys.log'), qr/^\[-\|-\|-\|-\|-\|-\|401\]$/m,
     'empty without a key');
unlike($t->log('keys.log'), qr/^\[late/m, 'and with an expired one');

# HTTP/2

SKIP: {
    skip('curl without HTTP/2', 2) if `curl -V` !~ /HTTP2/;

    my $curl = "curl -s --max-time 60 --http2-prior-knowledge -w '%{http_code}'"
             . ' -H "Content-Type: application/json"'
             . " http://127.0.0.1:$t->{port2}/v1";

    # a GET, because curl takes nginx's RST_STREAM behind an answer that came
    # before the body was sent for an error

    like(`$curl/models`, qr/invalid_api_key.*401\z/s, 'HTTP/2: no key');
    like(`$curl/completions -d '{"prompt":"a","max_tokens":1}' \\
          -H "x-api-key: $secret{ann}"`, qr/choices.*200\z/s,
         'HTTP/2: a key');
}


# ---- the file changes ----

# each worker is asked: a new connection goes to any of them

sub everywhere {
    my ($want, $id) = @_;

    return LLM::Test::wait_for(10, sub {
        for (1 .. 30) {
            return 0 if $t->get('/v1/models', bearer($id))->{status} != $want;
        }
        return 1;
    });
}

sub replace {
    my ($text) = @_;

    $t->write_file('keys.new', $text);
    rename $t->dir . '/keys.new', $t->dir . '/keys' or die "rename: $!";
}

my $stream = $t->open_long(max_tokens => 400, bearer('ann'));
$stream->event;

$lines{new} = line('new', tenant => 'a');
replace(all());
ok(everywhere(200, 'new'), 'rotation: a new key of the tenant');
ok(everywhere(200, 'ann'), 'beside the old one');

delete $lines{ann};
replace(all());
ok(everywhere(401, 'ann'), 'revocation, in all workers');
ok(everywhere(200, 'new'), 'the new one goes on');

my @events = $stream->events;
is($events[-1]{data}, '[DONE]', 'a stream of a revoked key ends as it is');

# a file that cannot be used

my $good = all();

for (   [ $good . "{\"id\": \"x\"}\n", 'line \d+: "sha256" is missing' ],
        [ '', 'it is empty' ],
        [ "\n", 'it is empty' ],
        [ $good =~ s/("id":\s*"bob")/$1, "tenant": "x", "tenant": "y"/r,
          'line \d+: "tenant" is there twice' ],
        [ $good . $lines{bob}, 'line \d+: line \d+ has the same sha256' ])
{
    my ($text, $why) = @$_;

    replace($text);
    ok($t->wait_log(qr/\[error\].* the keys stay as they were: \S+keys: $why/),
       "a broken file: $why");
    ok(everywhere(200, 'new'), 'the keys stay');
    is($t->get('/v1/models', headers => { Authorization => 'Bearer x' })
       ->{status}, 401, 'and are asked for');
}

my $said = () = $t->log =~ /it is empty/g;
cmp_ok($said, '<=', 6, 'each worker says it once of each');

unlink $t->dir . '/keys';
ok($t->wait_log(qr/the keys stay as they were: .*No such file/), 'no file');
ok(everywhere(200, 'new'), 'the keys stay');

delete $lines{bob};
replace(all());
ok(everywhere(401, 'bob'), 'a good file counts again');
ok($t->wait_log(qr/\[notice\] .* \d+ keys from "\S+keys"; went: bob$/m),
   'the log says whose key has gone');

# a worker that comes later has not what the master once read

my ($victim) = grep { $_ != $t->engine_worker } $t->workers;
$t->kill('KILL', $victim);
LLM::Test::wait_for(10, sub { $t->workers == 3 });
ok(everywhere(401, 'bob'), 'a key stays revoked in a new worker');
ok(everywhere(200, 'new'), 'and a new one valid');

replace("broken\n");
ok($t->wait_log(qr/stay as they were: \S+keys: line 1: /), 'broken again');
($victim) = grep { $_ != $t->engine_worker } $t->workers;
$t->kill('KILL', $victim);
ok($t->wait_log(qr/no keys can be used, and all are refused: \S+keys: line 1/),
   'a new worker with a broken file says so');

my %seen;
LLM::Test::wait_for(10, sub {
    $res = $t->get('/v1/models', bearer('bob'));
    $seen{"$res->{status} " . code($res)}++;
    $seen{'503 keys_unavailable'};
});
is($seen{'200 '}, undef, 'no worker takes the revoked key');
ok($seen{'503 keys_unavailable'}, 'the new one refuses all');

replace(all());
ok(everywhere(200, 'new'), 'until the file is good');

# the configuration is read again, with other keys

delete $lines{new};
replace(all());
$t->reload;
ok(everywhere(401, 'new'), 'a reload reads the file');
replace("broken\n");
my ($rc, $text) = $t->check;
isnt($rc, 0, 'nginx -t');
like($text, qr{\[emerg\].*\ the\ keys\ cannot\ be\ used:\ \S+/keys:\ line\ 1:
               \ an\ .*\ in\ \S+/nginx\.conf:\d+}x, 'says file and line of both');
$t->kill('HUP');
ok($t->wait_log(qr/\[emerg\].* the keys cannot be used/), 'a reload fails');
ok(everywhere(200, 'brief'), 'and the old configuration goes on');


# ---- no secret in any log ----

# nginx itself writes all header lines, and HTTP/2's table of them, at the
# level debug

my $logs = join "\n", grep { !/ (?:http|http2) header: | http2 table add: / }
           map { split /\n/, $t->log($_) }
           qw(error.log stdout debug.log keys.log access.log);

ok(length $logs > 1000, 'there are logs');
cmp_ok(index($t->log('debug.log'), '[debug]'), '>', 0, 'at the level debug')
    if `nginx -V 2>&1` =~ /with-debug/;

my @told = grep { index($logs, $secret{$_}) >= 0 } keys %secret;
is("@told", '', 'and no secret is in them')
    or diag(grep { index($_, $secret{$told[0]}) >= 0 }
            map { "$_\n" } split /\n/, $logs);

$t->stop(allow => qr/the keys cannot be used|exited on signal 9/);


# ---- what is refused at the start ----

my %bad = (
    'llm_api_keys;' => qr/invalid number of arguments/,
    'llm_api_keys a b c;' => qr/invalid number of arguments/,
    'llm_api_keys keys chek=1s;' => qr/unknown parameter "chek=1s"/,
    'llm_api_keys keys check=0;' => qr/invalid time "check=0"/,
    'llm_api_keys keys check=x;' => qr/invalid time "check=x"/,
    'llm_api_keys off check=1s;' => qr/has parameters besides "off"/,
    'llm_api_keys "";' => qr/names no file/,
    'llm_api_keys keys; llm_api_keys off;' => qr/is duplicate/,
    'llm_api_keys missing;' => qr{cannot be used: \S+/missing: No such file},
    'llm_api_keys logs;' => qr/a folder, not a regular file/,
    'llm_api_keys torn;' => qr{\S+/torn: line 2: .*},
);

for my $conf (sort keys %bad) {
    my $t = LLM::Test->new(location => $conf);

    $t->write_file('keys', $lines{brief});
    $t->write_file('torn', "$lines{brief}$lines{small}"
                           =~ s/^(.*\n.{20}).*/$1/sr);

    my ($rc, $text) = $t->check;

    ok($rc != 0 && $text =~ $bad{$conf}, "refused: $conf") or diag($text);
    like($text, qr/ in \S+nginx\.conf:\d+/, 'with file and line');
}

# without any model, in front of something else

$t = LLM::Test->new(model => '', http => 'llm_api_keys keys check=50ms;',
                    locations => 'location = /gif { empty_gif; }');
$t->write_file('keys', $lines{brief});
$t->start(cold => 1);

is($t->get('/gif', bearer('brief'))->{status}, 200, 'without llm_model');
is($t->get('/gif', bearer('small'))->{status}, 401, 'an unknown key');
replace($lines{small});
ok(LLM::Test::wait_for(10, sub {
    $t->get('/gif', bearer('small'))->{status} == 200
}), 'the file changes');

$t->stop(name => 'without models');

done_testing();
