#!/usr/bin/perl

# llm_proxied_usage: what another server answers is paid from the same accounts
# as what the models here answer, and is in logs; the fallback by error_page;
# answers whole, streamed, without a usage, compressed, refused, left early, in
# a temporary file; keys of narrow scopes; a configuration without a model.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use IO::Compress::Gzip qw(gzip);
use LLM::JSON;
use LLM::Test qw(slurp);
use Test::More;

my $provider = LLM::Test->new(
    model => LLM::Test::default_model(),
    locations => <<'END');
        location /v1 {
            llm_api;
        }
        location = /v1/slow {
            default_type text/event-stream;
            limit_rate 200;
            alias %%DIR%%/slow.txt;
        }
        location = /v1/begun {
            default_type text/event-stream;
            limit_rate 200;
            alias %%DIR%%/begun.txt;
        }
        location = /v1/sound {
            default_type audio/mpeg;
            alias %%DIR%%/large.json;
        }
        location = /v1/large {
            default_type application/json;
            alias %%DIR%%/large.json;
        }
        location = /v1/zipped {
            default_type application/json;
            add_header Content-Encoding gzip;
            alias %%DIR%%/zipped.json;
        }
        location = /v1/audio/transcriptions { return 200 '{"a":1}'; }
        location = /v1/embeddings {
            client_max_body_size 1m;
            return 200 '{"a":1}';
        }
        location = /v1/bare {
            default_type "";
            return 200 '{"usage":{"prompt_tokens":4,"completion_tokens":2}}';
        }
        location = /v1/busy { return 429 '{"usage":{"prompt_tokens":9}}'; }
        location = /health { llm_health; }
END
$provider->write_file('slow.txt', join '', map {
    "data: {\"choices\":[{\"delta\":{\"content\":\"$_\"}}]}\n\n"
} 1 .. 400);
$provider->write_file('begun.txt', 'data: {"message":{"usage":{'
    . '"input_tokens":50,"output_tokens":1}},"tools":[{"a":{"usage":'
    . "{\"output_tokens\":9999}}}]}\n\n" . join '', map {
    "data: {\"delta\":{\"text\":\"$_\"}}\n\n"
} 1 .. 400);
my $long = 'x' x 1_500_000;
my $large = "{\"text\":\"$long\",\"usage\":{\"prompt_tokens\":70,"
          . "\"completion_tokens\":7},\"more\":\"$long\"}";
$provider->write_file('large.json', $large);
gzip(\($large =~ s/x+/join ' ', 1 .. 999/er) => \my $zipped) or die;
$provider->write_file('zipped.json', $zipped);
$provider->start;
ok($provider->wait_ready, 'another server');

my $port = $provider->port;
my $t = LLM::Test->new(
    listen => 'sndbuf=64k',
    model => 'llm_model demo %%DIR%%/broken.gguf;',
    http => <<'END',
        llm_token_zone $http_x_tenant zone=z:1m rate=1/h;
        llm_token_zone $llm_key zone=keys:1m rate=1/h;
        llm_token_zone $http_x_tenant zone=one:1m requests=2/h streams=1;
        log_format said '$uri $status $llm_prompt_tokens $llm_cached_tokens '
                        '$llm_completion_tokens';
END
    locations => <<"END");
        access_log logs/said.log said;
        location /v1/ {
            llm_api;
            llm_token_limit zone=z burst=1000;
            llm_intercept_errors on;
            error_page 503 = \@elsewhere;
        }
        location \@elsewhere {
            llm_token_limit zone=z burst=1000;
            llm_proxied_usage on;
            proxy_pass http://127.0.0.1:$port;
        }
        location /keys/v1/ {
            llm_api_keys keys;
            llm_api;
            llm_intercept_errors on;
            error_page 503 = \@paid;
        }
        location \@paid {
            llm_api_keys keys;
            llm_token_limit zone=keys burst=30;
            llm_proxied_usage on;
            rewrite ^/keys(.*) \$1 break;
            proxy_pass http://127.0.0.1:$port;
        }
        location /direct/ {
            llm_token_limit zone=z burst=100000;
            llm_proxied_usage on;
            sendfile on;
            sendfile_max_chunk 64k;
            proxy_buffers 4 4k;
            if (\$http_x_if) { set \$if 1; }
            proxy_pass http://127.0.0.1:$port/v1/;
        }
        location /paths/ {
            llm_api_keys keys;
            llm_proxied_usage on;
            proxy_pass http://127.0.0.1:$port;
        }
        location /direct-keys/ {
            llm_api_keys keys;
            llm_proxied_usage on;
            if (\$http_x_if) { set \$if 1; }
            proxy_pass http://127.0.0.1:$port/v1/;
        }
        location /off/ {
            llm_token_limit zone=z burst=100000;
            proxy_pass http://127.0.0.1:$port/v1/;
        }
        location /gone/ {
            llm_token_limit zone=z burst=100000;
            llm_proxied_usage on;
            proxy_pass http://127.0.0.1:1/;
        }
        location /admin { llm_admin; }
        location /first/ {
            llm_token_limit zone=one;
            llm_proxied_usage on;
            proxy_pass http://127.0.0.1:1;
            error_page 502 = \@second;
        }
        location \@second {
            llm_token_limit zone=one;
            llm_proxied_usage on;
            rewrite ^/first(.*) \$1 break;
            proxy_pass http://127.0.0.1:$port;
        }
        location /more/v1/ {
            llm_token_limit zone=z burst=100000;
            llm_proxied_usage on;
            client_max_body_size 1m;
            proxy_pass http://127.0.0.1:$port;
            rewrite ^/more(.*) \$1 break;
        }
        location /away/ {
            llm_token_limit zone=one;
            llm_proxied_usage on;
            proxy_pass http://127.0.0.1:1/;
            error_page 502 =200 \@sorry;
        }
        location \@sorry { return 200 "sorry"; }
        location /back/v1/ {
            llm_token_limit zone=one;
            llm_proxied_usage on;
            proxy_pass http://127.0.0.1:1/;
            error_page 502 = \@here;
        }
        location \@here {
            llm_token_limit zone=one;
            llm_api;
        }
        location /lost/ {
            llm_token_limit zone=one;
            llm_proxied_usage on;
            proxy_pass http://127.0.0.1:1/;
        }
        location /static/ {
            llm_token_limit zone=one;
            llm_proxied_usage on;
            return 200 "a text";
        }
        location = /health { llm_health; }
END
$t->write_file('broken.gguf', 'GGUF');
$t->write_file('keys', encode_json({ id => 'shop', scopes => [ 'generate' ],
                                     sha256 => sha256_hex('sk-llm-shop') })
                       . "\n"
                       . encode_json({ id => 'some', models => [ 'demo' ],
                                       sha256 => sha256_hex('sk-llm-some') })
                       . "\n");
$t->start(cold => 1);


# what an account has used: requests, prompt, cached and answered tokens

sub used {
    my ($who, $zone) = @_;
    my $usage = $t->get('/admin/usage?zone=' . ($zone // 'z'))->{json};
    my ($account) = grep { $_->{key} eq $who }
                    map { @{ $_->{accounts} } } @{ $usage->{data} };

    return join ' ', map { $account->{$_} // 0 }
                     qw(requests prompt_tokens cached_tokens completion_tokens);
}

sub ask {
    my ($path, $who, $body, %headers) = @_;

    return $t->post($path, { model => 'demo', max_tokens => 8, temperature => 0,
                             %$body },
                    headers => { 'X-Tenant' => $who, %headers });
}

# the log is written after the client has its answer

sub logged {
    my ($line) = @_;

    return ok(LLM::Test::wait_for(20, sub {
        slurp($t->dir . '/logs/said.log') =~ /^\Q$line\E$/m
    }), "the log has $line") || diag(slurp($t->dir . '/logs/said.log'));
}

sub settled {
    my ($who, $want, $what, $zone) = @_;

    LLM::Test::wait_for(20, sub { used($who, $zone) eq $want });
    return is(used($who, $zone), $want, $what);
}

my %chat = (messages => [ { role => 'user', content => 'What is 2 + 2?' } ]);


# ---- what the models here cannot answer ----

my $res = ask('/v1/chat/completions', 'ann', { %chat });
my $usage = $res->{json}{usage};

is($res->{status}, 200, 'a model that is broken: another server answers');
settled('ann', "1 $usage->{prompt_tokens} "
               . "$usage->{prompt_tokens_details}{cached_tokens} "
               . "$usage->{completion_tokens}", 'and the same account pays');
logged("/v1/chat/completions 200 $usage->{prompt_tokens} "
       . "$usage->{prompt_tokens_details}{cached_tokens} "
       . $usage->{completion_tokens});

for my $case ([ 'responses', { input => 'What is 2 + 2?',
                               max_output_tokens => 16 } ],
              [ 'messages', { %chat } ],
              [ 'completions', { prompt => 'What is' } ])
{
    my ($path, $body) = @$case;

    for my $stream (0, 1) {
        my $who = "$path-$stream";
        my $whole = $provider->post("/v1/$path", { model => 'demo',
            max_tokens => 8, temperature => 0, %$body })->{json}{usage};

        $res = ask("/v1/$path", $who, { %$body,
            $stream ? (stream => LLM::JSON::true) : (),
            $stream && $path eq 'completions'
                ? (stream_options => { include_usage => LLM::JSON::true })
                : () });
        is($res->{status}, 200, "$path, stream $stream");

        my $answer = $whole->{completion_tokens} // $whole->{output_tokens};
        my $prompt = ($whole->{prompt_tokens} // $whole->{input_tokens})
                   + ($whole->{cache_read_input_tokens} // 0)
                   + ($whole->{cache_creation_input_tokens} // 0);

        LLM::Test::wait_for(20, sub { used($who) =~ / $answer$/ });
        like(used($who), qr/^1 $prompt \d+ $answer$/, "$path: its usage")
            or diag(explain($whole), $res->{body});
    }
}

my $text = encode_json({ model => 'demo', max_tokens => 8, temperature => 0,
                         stream => LLM::JSON::true, %chat });

$res = $t->post('/v1/chat/completions', $text,
                headers => { 'X-Tenant' => 'eve' });
my $events = () = $res->{body} =~ /^data: \{/mg;

settled('eve', '1 ' . int(length($text) / 4) . " 0 $events",
        'a stream without a usage: a token for each event');
like($t->log, qr/llm_proxied_usage: the answer has no usage, \d+ tokens are estimated/,
     'and the log says so');


# ---- accounts that have nothing left ----

my $refused;

for (1 .. 80) {
    $refused = ask('/v1/chat/completions', 'bob', { %chat });
    last if $refused->{status} == 429;
}

is($refused->{status}, 429, 'an account that is empty');
is($refused->{json}{error}{code}, 'rate_limit_exceeded', 'is refused')
    or diag($refused->{body});
ok($refused->{headers}{'retry-after'}, 'and may come again');
is(ask('/v1/messages', 'bob', { %chat })->{json}{type}, 'error',
   'in the form of its API');


# ---- answers of other kinds ----

$res = ask('/direct/chat/completions', 'kim', { %chat },
           'Accept-Encoding' => 'gzip');
settled('kim', '1 ' . join(' ', @{ $res->{json}{usage} }{qw(prompt_tokens)},
                           $res->{json}{usage}{prompt_tokens_details}
                               {cached_tokens},
                           $res->{json}{usage}{completion_tokens}),
        'a location of its own');

$t->get('/direct/zipped', headers => { 'X-Tenant' => 'zoe' });
settled('zoe', '1 0 0 ' . int(length($zipped) / 4),
        'an answer that is compressed: a token for four bytes');
like($t->log, qr/is compressed, so its usage cannot be read, \d+ tokens/,
     'and the log says why');

is($t->get('/direct/busy', headers => { 'X-Tenant' => 'lee' })->{status}, 429,
   'what the other server refuses');
logged('/direct/busy 429 - - -');
settled('lee', '0 0 0 0', 'costs nothing');
is($t->get('/gone/x', headers => { 'X-Tenant' => 'max' })->{status}, 502,
   'a server that is gone');
logged('/gone/x 502 - - -');
settled('max', '0 0 0 0', 'costs nothing');
is($t->get('/off/large', headers => { 'X-Tenant' => 'off' })->{status}, 200,
   'without the directive');
logged('/off/large 200 - - -');
settled('off', '0 0 0 0', 'nothing is counted');

my $slow = $t->open('/direct/large', undef, method => 'GET', rcvbuf => 16384,
                    headers => { 'X-Tenant' => 'tom' });
ok($t->wait_log(qr/is buffered to a temporary file/), 'a temporary file');
ok($slow->response->{body} eq $large, 'a large answer, read late');
settled('tom', '1 70 0 7', 'its usage is read, also from a temporary file');

my $gone = $t->open('/direct/slow', undef, method => 'GET',
                    headers => { 'X-Tenant' => 'ned' });
$gone->read_header;
$gone->close;
LLM::Test::wait_for(20, sub { used('ned') ne '0 0 0 0' });
like(used('ned'), qr/^1 0 0 [1-9]\d*$/,
     'a client that leaves pays for the events until then');

$gone = $t->open('/direct/begun', undef, method => 'GET',
                 headers => { 'X-Tenant' => 'meg' });
$gone->read_header;
while ($gone->{buffer} !~ /"5"/ && $gone->fill) { }
$gone->close;
LLM::Test::wait_for(20, sub { used('meg') ne '0 0 0 0' });
like(used('meg'), qr/^1 50 0 (?:[5-9]|\d{2,3})$/,
     'also if the first event has a usage, whatever a tool is called')
    or diag(used('meg'));

$t->get('/direct/sound', headers => { 'X-Tenant' => 'mia' });
settled('mia', '1 0 0 0', 'a sound has no tokens');
$t->get('/static/', headers => { 'X-Tenant' => 'sue' }) for 1 .. 4;
is($t->get('/static/', headers => { 'X-Tenant' => 'sue' })->{status}, 200,
   'what no other server has answered does not count');

for my $n (1 .. 2) {
    is($t->get('/first/v1/large', headers => { 'X-Tenant' => 'joe' })
         ->{status}, 200, "a fallback of such a location is one request: $n");
}

is($t->get('/first/v1/large', headers => { 'X-Tenant' => 'joe' })->{status},
   429, 'the third is too many');

is($t->get('/lost/x', headers => { 'X-Tenant' => 'pam' })->{status}, 502,
   'what the other server fails is no request') for 1 .. 3;
is($t->get('/more/v1/models', headers => { 'X-Tenant' => 'ira' })->{status}, 200,
   'models that are read');
logged('/v1/models 200 0 0 0');
settled('ira', '0 0 0 0', 'cost nothing, and are no request');
$t->post('/more/v1/tokenize', { model => 'demo', prompt => 'a b c' },
         headers => { 'X-Tenant' => 'ida' });
settled('ida', '1 0 0 0', 'to tokenize is a request without tokens');
$t->post('/more/v1/audio/transcriptions', 'x' x 4000,
         headers => { 'X-Tenant' => 'ann2' });
settled('ann2', '1 0 0 1', 'a form has no tokens');
$t->post('/more/v1/embeddings', 'x' x 600_000,
         headers => { 'X-Tenant' => 'abe' });
settled('abe', '1 65536 0 1', 'more than 256 KB of a request have none');
is($t->request(method => 'HEAD', path => '/direct/large',
               headers => { 'X-Tenant' => 'hal' })->{status}, 200, 'HEAD');
logged('/direct/large 200 - - -');
settled('hal', '0 0 0 0', 'costs nothing');
is($t->get('/direct/bare', headers => { 'X-Tenant' => 'ivy', 'X-If' => 1 })
      ->{status}, 200, 'an "if" of the location that holds');
settled('ivy', '1 4 0 2', 'its account pays, too');
is($t->get('/direct/bare', headers => { 'X-Tenant' => 'bea' })->{status}, 200,
   'an answer that does not say what it is');
settled('bea', '1 4 0 2', 'may have a usage');

for my $n (1 .. 2) {
    is($t->get('/away/x', headers => { 'X-Tenant' => 'jon' })->{body}, 'sorry',
       "a page in place of an answer: $n");
    is(ask('/back/v1/completions', 'jon', { prompt => 'a' })->{status}, 503,
       'from the other server to this one: not two requests at a time');
}


# ---- keys ----

my @key = (Authorization => 'Bearer sk-llm-shop');

is(ask('/keys/v1/chat/completions', '', { %chat }, @key)->{status}, 200,
   'a key of the scope generate may be answered elsewhere, too');
LLM::Test::wait_for(20, sub { used('shop', 'keys') ne '0 0 0 0' });
is(ask('/keys/v1/chat/completions', '', { %chat }, @key)->{status}, 429,
   'and its account has paid');
is(ask('/keys/v1/chat/completions', '', { %chat })->{status}, 401, 'no key');

my @some = (Authorization => 'Bearer sk-llm-some');

$res = ask('/direct-keys/chat/completions', '', { %chat }, @some);
is("$res->{status} $res->{json}{error}{code}", '403 model_not_allowed',
   'a key for some models: what the other server answers for is not known');
$res = ask('/direct-keys/chat/completions', '', { %chat }, @some, 'X-If' => 1);
is("$res->{status} $res->{json}{error}{code}", '403 model_not_allowed',
   'in an "if" of such a location, too');
is($t->get('/paths/chat.html', headers => { @key })->{status}, 403,
   'a path that is none of the API needs the scope other');


# a reload that fails, and a worker that dies after it: nginx's filters are those
# of the configuration that was read last

$t->write_file('nginx.conf', "load_module $LLM::Test::OBJS/ngx_http_llm_module.so; "
               . 'events {} http { server { } } broken;');
$t->kill('HUP');
$t->wait_log(qr/unknown directive "broken"/);
$t->kill('KILL', $t->workers);
LLM::Test::wait_for(20, sub {
    eval { $t->get('/direct/large', headers => { 'X-Tenant' => 'una' })
             ->{status} == 200 }
});
LLM::Test::wait_for(20, sub { used('una') ne '0 0 0 0' });
like(used('una'), qr/^\d+ 70 0 7$|^2 140 0 14$/, 'it counts all the same');
$t->stop(name => 'the first server', allow => qr/exited on signal 9|broken/);


# ---- without a model ----

$t = LLM::Test->new(model => '', http =>
    'llm_token_zone $http_x_tenant zone=z:1m rate=1/h;',
    locations => <<"END");
        llm_proxied_usage on;
        location / {
            llm_token_limit zone=z burst=10;
            proxy_pass http://127.0.0.1:$port;
        }
END
$t->start(cold => 1);
is(ask('/v1/chat/completions', 'ann', { %chat })->{status}, 200,
   'without a model');
ok(LLM::Test::wait_for(20, sub {
    ask('/v1/chat/completions', 'ann', { %chat })->{status} == 429
}), 'quotas count all the same');
$t->stop(name => 'without a model');
$provider->stop(name => 'the other server');

done_testing();
