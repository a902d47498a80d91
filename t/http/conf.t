#!/usr/bin/perl

# The samples in conf/, as they stand but for ports and places: each is
# included at http level and asked what it is for.  cluster.t has those that
# need several servers.

use strict;
use warnings;

use File::Basename qw(basename);
use File::Copy qw(copy);
use File::Path qw(make_path);
use File::Temp ();
use LLM::JSON;
use LLM::Test qw(slurp);
use Test::More;

my %ask = (prompt => 'a', temperature => 0, max_tokens => 3);


# a text with our port and our folder for those of a system

sub ours {
    my ($t, $text) = @_;
    my ($dir, $port) = ($t->dir, $t->port);

    $text =~ s/^(\s*listen\s+)(?:8080|443)\b/${1}127.0.0.1:$port/mg;
    $text =~ s{/etc/nginx/}{$dir/}g;
    $text =~ s{/srv/models/}{$dir/models/}g;
    $text =~ s{/var/log/nginx/}{$dir/logs/}g;
    $text =~ s{/var/lib/llm/}{$dir/}g;

    return $text;
}


# the keys that keys.conf and quotas.conf ask for, as its comment makes them

sub key { (headers => { Authorization => "Bearer $_[0]" }) }

my ($make) = slurp('conf/keys.conf')
           =~ m{^#   nginx-llm (key .*) >> /etc/nginx/llm-keys$}m;
my $keys = File::Temp->new;
my (%secret, @ann, @bob);

for my $name (qw(ann bob)) {
    my $of = $make =~ s/\bann\b/$name/gr;

    ($secret{$name}) = `$LLM::Test::OBJS/llm $of 2>&1 >> $keys`
                     =~ /^(sk-llm-\S+)$/;
}

my $lines = do { local $/; <$keys> };

@ann = key($secret{ann});
@bob = key($secret{bob});


# nginx with a sample; its models are all the demo

sub sample {
    my ($name, $text, %opt) = @_;

    my $temp = join '', map { "${_}_temp_path temp/$_;\n" }
               qw(client_body proxy fastcgi uwsgi scgi);
    my $user = $> == 0 ? 'user root;' : '';

    my $t = LLM::Test->new(%opt, conf => <<"END");
load_module %%OBJS%%/ngx_http_llm_module.so;
$user
daemon off;
error_log logs/error.log info;
pid logs/nginx.pid;
events {}
http {
$temp
access_log off;
include conf.d/*.conf;
}
END

    my $dir = $t->dir;

    $text = ours($t, $text // slurp("conf/$name"));
    make_path("$dir/conf.d", "$dir/models");

    for my $model ($text =~ m{^llm_model\s+\S+\s+(\S+)}mg) {
        symlink "$LLM::Test::ROOT/models/demo.gguf", $model
            or die "$model: $!";
    }

    $t->write_file($_, slurp("conf/$_")) for qw(llm_errors.conf llm_page.conf);
    $t->write_file('llm-keys', $lines);
    $t->write_file("conf.d/$name", $text);

    return $t;
}


# ---- TLS ----

SKIP: {
    my $t = sample('tls.conf');
    my ($command) = slurp('conf/tls.conf') =~ /^#   (openssl .*?[^\\])\n/ms;

    $command = ours($t, $command =~ s/\\\n#//gr);

    skip('no openssl', 3) if system("$command 2> /dev/null");
    skip('no curl', 3) if system('curl -V > /dev/null 2>&1');

    $t->launch;
    $t->wait_port;

    my $url = 'https://localhost:' . $t->port;
    my $curl = 'curl -s --max-time 60 --cacert ' . $t->dir . '/llm.crt'
             . ' --resolve localhost:' . $t->port . ':127.0.0.1';

    ok(LLM::Test::wait_for(60, sub {
        `$curl $url/health` =~ /"status":"ok"/
    }), 'tls.conf: the certificate that its comment makes');

    $t->write_file('body', encode_json(\%ask));

    my $answer = `$curl -w '\\n%{http_version}' -d \@$t->{dir}/body \\
        -H 'Content-Type: application/json' $url/v1/completions`;
    my ($json, $http) = $answer =~ /^(.*)\n(\S+)\z/s;

    like($json, qr/"completion_tokens":3\b/, 'an answer');

    SKIP: {
        skip('curl without HTTP/2', 1) if `curl -V` !~ /HTTP2/;
        is($http, 2, 'over HTTP/2');
    }

    $t->stop(name => 'tls.conf');
}


# ---- keys ----

my $t = sample('keys.conf')->start;
my $res = $t->post('/v1/completions', \%ask);

is($res->{status}, 401, 'keys.conf: no key');
is($res->{json}{error}{code}, 'invalid_api_key', 'an error in JSON');

for my $bad (substr($secret{ann}, 0, -1), "$secret{ann}1", '') {
    is($t->get('/v1/models', key($bad))->{status}, 401, "not '$bad'");
}

is($t->post('/v1/completions', \%ask, @ann)->{status}, 200, 'a key');
is($t->get('/health')->{status}, 200, '/health needs none');

# the prefix cache is each user's own

sub cached {
    my (@who) = @_;
    my %long = (prompt => join(' ', 1 .. 60), max_tokens => 1);

    return $t->post('/v1/completions', \%long, @who)
             ->{json}{usage}{prompt_tokens_details}{cached_tokens};
}

is(cached(@ann), 0, 'a prompt of one user');
is(cached(@bob), 0, 'is not there for another');
cmp_ok(cached(@ann), '>', 0, 'but for the first');

$t->stop(name => 'keys.conf');


# ---- CORS ----

$t = sample('cors.conf')->start;

my $origin = 'https://chat.example.com';
my @browser = (headers => { Origin => $origin });

sub allowed { $_[0]{headers}{'access-control-allow-origin'} }

$res = $t->request(method => 'OPTIONS', path => '/v1/chat/completions',
    headers => { Origin => $origin, 'Access-Control-Request-Method' => 'POST',
                 'Access-Control-Request-Headers'
                     => 'authorization,x-stainless-os' });

is($res->{status}, 204, 'cors.conf: a preflight');
is(allowed($res), $origin, 'may come from there');
like($res->{headers}{'access-control-allow-methods'}, qr/\bPOST\b/, 'by POST');
is($res->{headers}{'access-control-allow-headers'},
   'authorization,x-stainless-os', 'with these headers');

# every endpoint

for my $path (slurp('engine/api/endpoints.c') =~ /\{ "([^"]+)",/g) {
    $res = $t->request(method => 'OPTIONS', path => "/v1/$path",
        headers => { Origin => $origin,
                     'Access-Control-Request-Method' => 'POST' });

    is($res->{status} . ' ' . (allowed($res) // ''), "204 $origin",
       "a preflight of $path");
}

$res = $t->get('/v1/models', @browser);
like($res->{headers}{'access-control-expose-headers'}, qr/\bx-request-id\b/,
     'a script may read the id');

my $stream = $t->open('/v1/completions', { %ask, stream => \1 }, @browser)
               ->read_header;

is(allowed($stream), $origin, 'a stream');
like($stream->{headers}{'content-type'}, qr{^text/event-stream}, 'is one');
$stream->events;

for my $case ([ 'an answer', 200, \%ask ],
              [ "the API's error", 404, { %ask, model => 'none' } ],
              [ "nginx's error", 413, { prompt => 'a' x 9_000_000 } ])
{
    my ($name, $status, $body) = @$case;

    $res = $t->post('/v1/completions', $body, @browser);

    is($res->{status}, $status, $name);
    is(allowed($res), $origin, 'has the header');
    is($res->{headers}{vary}, 'Origin', 'and caches know why');
}

for my $from ('http://localhost:3000', 'https://evil.example.com',
              'http://localhost.example.com')
{
    $res = $t->get('/v1/models', headers => { Origin => $from });

    is(allowed($res), $from =~ /localhost:/ ? $from : undef, "from $from");
}

# a long prompt, though refused, is kept in memory: else nginx would warn

$res = $t->post('/v1/completions', { prompt => 'word ' x 150_000 }, @browser);
is($res->{json}{error}{code}, 'context_length_exceeded', 'a long prompt');
unlike($t->log, qr/temporary file/, 'has no file of its own');

$t->stop(name => 'cors.conf');


# ---- several models ----

$t = sample('models.conf')->start;

for my $case ([ '/v1', undef, 'small' ], [ '/v1', 'gpt-4o-mini', 'small' ],
              [ '/v1', 'large', 'large' ], [ '/v1', 'gpt-4.1', 'large' ],
              [ '/v1', 'unknown', 'small' ],
              [ '/small/v1', 'small', 'small' ])
{
    my ($prefix, $model, $want) = @$case;

    $res = $t->post("$prefix/completions",
                    { %ask, $model ? (model => $model) : () });

    is($res->{json}{model}, $want,
       "models.conf: $prefix, " . ($model // 'no name')) or diag($res->{body});
}

is($t->post('/small/v1/completions', { %ask, model => 'large' })->{status},
   404, '/small/v1 has no other');

like($t->get('/v1/models/chat')->{json}{alias_of} // '', qr/^(?:small|large)$/,
     'models.conf: a canary');

$t->stop(name => 'models.conf');


# ---- models that come and go: as the comment says ----

$t = sample('admin.conf')->start;

sub chat_is { ($res = $t->post('/v1/completions', { %ask, model => 'chat' }))
                ->{json}{model} }

is(chat_is(), 'small', 'admin.conf: as the configuration says');

my @curl = slurp('conf/admin.conf')
         =~ /^#   curl -X PUT -d '(.*)' \S+:8080(\S+)$/mg;

is(scalar @curl, 4, 'two commands');

while (my ($body, $path) = splice @curl, 0, 2) {
    $res = $t->request(method => 'PUT', path => $path, body => $body);
    is("$res->{status} " . ($res->{json}{saved} ? 1 : 0), '200 1', $body);
    is(chat_is(), decode_json($body)->{model}, 'where it leads')
        or diag($res->{body});
}

my ($load, $to) = slurp('conf/admin.conf')
                =~ /^#   curl -d '(.*)' \\\n.*:8080(\S+)'$/m;

copy("$LLM::Test::ROOT/models/demo.gguf", $t->dir . '/models/small-2.gguf')
    or die $!;

$res = $t->post($to, $load);
is("$res->{status} " . ($res->{json}{file} // ''), '200 small-2.gguf',
   'another file') or diag($res->{body});
is(chat_is(), 'small', 'serves');

my ($file, $new) = slurp('conf/admin.conf')
                 =~ /^#   curl -X PUT -d '(.*)' \\\n.*:8080(\S+)'$/m;
my ($gone) = slurp('conf/admin.conf') =~ /^#   curl -X DELETE '.*:8080(\S+)'$/m;

copy("$LLM::Test::ROOT/models/demo.gguf", $t->dir . '/models/new.gguf')
    or die $!;

$res = $t->request(method => 'PUT', path => $new, body => $file);
is("$res->{status} " . ($res->{json}{id} // ''), '200 new', 'another model')
    or diag($res->{body});
is($t->post('/v1/completions', { %ask, model => 'new' })->{json}{model}, 'new',
   'serves');
$res = $t->request(method => 'DELETE', path => $gone);
is($res->{status}, 200, 'until it is removed') or diag($res->{body});

$t->stop(name => 'admin.conf');


# ---- quotas, with hours for minutes: the test may be slow ----

$t = sample('quotas.conf', slurp('conf/quotas.conf')
            =~ s{requests=60/m}{requests=21/h}r, pace => 0.5)->start;

is($t->get('/v1/models')->{status}, 401, 'quotas.conf: no key');

my @running = map { $t->open_long(@ann) } 1 .. 4;

$_->event for @running;

$res = $t->post('/v1/completions', \%ask, @ann);

is($res->{status}, 429, 'a fifth that runs');
is($res->{json}{error}{code}, 'rate_limit_exceeded', 'an error in JSON');
is($t->post('/v1/completions', \%ask, @bob)->{status}, 200,
   'not for another key');

$_->close for @running;

is($t->post('/v1/completions', { prompt => 'a', max_tokens => 1500,
                                 ignore_eos => \1 }, @bob)
     ->{json}{usage}{completion_tokens}, 1000, 'no answer is longer');

# of Ann's 21 that may come at once five have

my @status = map { $t->post('/v1/completions', \%ask, @ann)->{status} }
             1 .. 30;

is($status[0], 200, 'there is room for more');
is($status[-1], 429, 'but not for all');
is($t->post('/v1/completions', \%ask, @bob)->{status}, 200,
   'another key has its own');

$t->stop(name => 'quotas.conf');


# ---- a busy machine ----

is((sample('brownout.conf')->check)[0], 0, 'brownout.conf passes nginx -t');

# however slow this machine is, its places are what is short

$t = slurp('conf/brownout.conf');

is($t =~ s/ ttft=5s;/ ttft=1h;/, 1, 'brownout.conf: a time of its own');
is($t =~ s/"~\^\[01\]\\\."/"~."     /, 1, 'and nobody is limited');

$t = sample('brownout.conf', $t, pace => 0.5)->start;

like($t->get('/busy')->{body}, qr/^0 0 $/, 'brownout.conf: nothing to do');

my %long = (prompt => 'a', max_tokens => 1500, ignore_eos => \1);

is($t->post('/v1/completions', \%long)->{json}{usage}{completion_tokens}, 1500,
   'answers are as long as clients want them');

@running = ();

ok(LLM::Test::wait_for(20, sub {
    push @running, $t->open_long if @running < 64;
    my ($load) = split / /, $t->get('/busy')->{body};
    $load >= 100;
}), 'until all places are taken');

my $late = $t->open('/v1/completions', \%long);
my $batch = $t->open('/v1/completions', { %long, max_tokens => 1 },
                     headers => { 'X-Batch' => 1 });

# the worker has read them when it answers this; then there is room, so that
# no time of the queue runs out on a slow machine

$t->get('/busy');
$_->close for @running;

like($batch->response->{status}, qr/^(?:200|429)$/, 'one that is not urgent');

is($late->response->{json}{usage}{completion_tokens}, 1000,
   'then they are shorter');

ok($t->wait_log(qr/^\S+ 200 - load=\d+ predicted=\d\S+ ttft=\d\S+$/m,
                'busy.log'), 'a line of the log');

$t->stop(name => 'brownout.conf');


# ---- logs ----

$t = sample('log_text.conf')->start;
$t->post('/v1/completions', { %ask, ignore_eos => \1 });
$t->get('/v1/models');

ok($t->wait_log(qr{"GET /v1/models .*\n}, 'llm.log'), 'log_text.conf: a log');

my ($line, $other) = split /\n/, $t->log('llm.log');
my $seconds = qr/\d+\.\d+/;

like($line, qr{^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\S+\ 127\.0\.0\.1
               \ "POST\ /v1/completions\ HTTP/1\.1"\ 200
               \ id=\S{8,}\ tenant=\S+\ user="-"\ metadata="-"
               \ model=demo\ in=\d+\ cached=\d+\ out=3
               \ finish=length\ time=$seconds\ queue=$seconds
               \ ttft=$seconds\ tpot=$seconds$}x, 'a line');
like($other, qr/ out=- .* ttft=- tpot=-$/, 'what is not there');
unlike($t->log('llm.log'), qr{/health}, 'probes are left out');

$t->stop(name => 'log_text.conf');


# ---- systemd ----

SKIP: {
    skip('no systemd-analyze', 3) if system('systemd-analyze --version'
                                            . ' > /dev/null 2>&1');

    my $dir = File::Temp->newdir;
    my $drop = "$dir/nginx.service.d";
    my $unit = "[Service]\nExecStart=/bin/true\n";
    my $sample = slurp('contrib/systemd/nginx-llm.service.conf');

    make_path($drop);

    # behind the five seconds of Debian's ExecStop=, no fast shutdown

    like($sample, qr/^KillSignal=SIGQUIT$/m, 'the drain goes on');

    # what it makes of a drop-in, and that it looks

    for my $case ([ $sample, qr/^$/, 'nginx-llm.service.conf: as it stands' ],
                  [ $sample =~ s/^(TimeoutStopSec=).*/$1soon/mr, qr/soon/,
                    'and not without a time' ])
    {
        my ($text, $want, $name) = @$case;

        for ([ "$dir/nginx.service", $unit ], [ "$drop/llm.conf", $text ]) {
            open my $f, '>', $_->[0] or die "$_->[0]: $!";
            print $f $_->[1];
            close $f;
        }

        # it may find fault with the system's own, too

        my @said = `systemd-analyze verify --man=no $dir/nginx.service 2>&1`;

        like(join('', grep { /\Q$drop\E/ } @said), $want, $name);
    }
}

# ---- a log in JSON ----

$t = sample('log_json.conf')->start;
$t->post('/v1/completions', { %ask, ignore_eos => \1 });

my $odd = "\"\\\xff\xc3\xed\xa0\x80'\xe2\x80\xa8";
my $nasty = "$odd\t\x01\x7f";

for my $head ("GET /v1/models?a=$odd HTTP/1.1", "POST /v1/comp$odd HTTP/1.1",
              'BREW /v1/models HTTP/1.1', 'GET /v1/models HTTP/1.1')
{
    $t->request(raw => "$head\r\nHost: a\r\nConnection: close\r\n"
                     . "User-Agent: $nasty\r\nX-Request-Id: $nasty\r\n\r\n");
}

for my $what (qw(user safety_identifier model)) {
    $t->post('/v1/completions', { %ask, $what => "\"\\\t\n\x{1}\x{2028}\x{1f600}",
                                  metadata => { "\"\\" => "\"\\\n" } });
}

$t->post('/v1/completions', "{\"prompt\":\"a\",\"user\":\"$nasty\"}");
$t->get('/v1/models');

my @objects;

LLM::Test::wait_for(5, sub { ($t->log('llm.json') =~ tr/\n//) >= 10 });

for (split /\n/, $t->log('llm.json')) {
    push @objects, eval { LLM::JSON->new->utf8->decode($_) }
                   // fail("not JSON: $_");
}

cmp_ok(scalar @objects, '>=', 10, 'log_json.conf: lines, each an object');

my %first = %{ $objects[0] };

is_deeply([ @first{qw(endpoint status alias model stream out reasoning finish
                      error method)} ],
          [ 'completions', 200, '', 'demo', LLM::JSON::false, 3, 0, 'length',
            '', 'POST' ], 'of a completion');
is(scalar(grep { !defined $first{$_} } keys %first), 0, 'with all figures');
cmp_ok($first{ttft_s}, '<=', $first{time_s} + 0.01, 'in seconds');
is_deeply([ @{ $objects[-1] }{qw(endpoint uri out ttft_s stream)} ],
          [ 'models', '/v1/models', undef, undef, undef ],
          'what is not there is null');
is(scalar(grep { $_->{error} eq 'model_not_found' } @objects), 1,
   'why one failed');
unlike($t->log('llm.json'), qr{/health}, 'probes are left out');

$t->stop(name => 'log_json.conf');


# ---- traces ----

my ($trace, $span) = ('4bf92f3577b34da6a3ce929d0e0e4736', '00f067aa0ba902b7');
my @traced = (headers => { Traceparent => "00-$trace-$span-01" });
my @untraced = (headers => { Traceparent => "00-$trace-$span-00" });


# the spans of the first line, which must be the only one

sub only_spans {
    my ($server) = @_;

    LLM::Test::wait_for(5, sub { $server->log('llm-spans.json') =~ /\n/ });

    my @lines = split /\n/, $server->log('llm-spans.json');

    is(scalar @lines, 1, 'a line for what is recorded');

    return @{ decode_json($lines[0])
              ->{resourceSpans}[0]{scopeSpans}[0]{spans} };
}


my $next = LLM::Test::free_port();

$t = sample('traces.conf', slurp('conf/traces.conf')
            =~ s/127\.0\.0\.1:8081/127.0.0.1:$next/r
            . 'server { listen 127.0.0.1:' . $next
            . '; return 200 "$http_traceparent $http_tracestate"; }')->start;
$t->post('/v1/completions', \%ask, @untraced);
$res = $t->post('/v1/completions', \%ask, @traced);

my ($own) = ($res->{headers}{traceresponse} // '')
          =~ /^00-$trace-([0-9a-f]{16})-01$/;

isnt($own, undef, 'traces.conf: the client learns its trace');

my @spans = only_spans($t);

is(join(' ', map { $_->{name} } @spans),
   'text_completion demo queue tokenize prefill decode', 'all spans');
is($spans[0]{spanId}, $own, 'the first is the one that was named');
is($spans[0]{parentSpanId}, $span, 'beneath the client\'s');

$res = $t->get('/other', headers => { %{ $traced[1] }, Tracestate => 'a=1' });
like($res->{body}, qr/^00-$trace-(?!$span)[0-9a-f]{16}-01 a=1$/,
     'another server gets the trace');

$t->stop(name => 'traces.conf');

# nginx-otel's part is left out: its directives are known by their names.  It
# sets the header that a client sets here.

my $otel = slurp('conf/otel.conf');
my %known = map { $_ => 1 } qw(otel_exporter otel_service_name otel_trace
                               otel_trace_context otel_span_name
                               otel_span_attr);
my @unknown = grep { !$known{$_} } $otel =~ /^\s*(otel_\w+)/mg;

is("@unknown", '', 'otel.conf: names that nginx-otel has');
like($otel, qr/^\s*otel_trace_context\s+propagate;/m, 'the header is set');

for my $variable ($otel =~ /^\s*otel_span_attr\s+\S+\s+\$(\w+);/mg) {
    like(join('', map { slurp($_) } glob "$LLM::Test::ROOT/http/*/*.c"),
         qr/\{ ngx_string\("$variable"\), NULL,/,
         "\$$variable is one");
}

$otel =~ s/^otel_exporter \{.*?^\}//ms;
$otel =~ s/^\s*otel_[^;]*;//mg;

$t = sample('otel.conf', $otel)->start;
$t->post('/v1/completions', \%ask, @untraced);
$t->post('/v1/completions', \%ask, @traced);

@spans = only_spans($t);

is(scalar @spans, 5, 'without it: all spans');
is($spans[0]{parentSpanId}, $span, 'beneath the one of the header');

$t->stop(name => 'otel.conf');


# ---- all of them ----

my $deploy = slurp('docs/deploy.md');

for my $name (map { basename($_) } glob "$LLM::Test::ROOT/conf/*.conf") {
    my $text = slurp("conf/$name");

    ok(index($deploy, "| `conf/$name` |") >= 0,
       "conf/$name is in docs/deploy.md");
    like($text, qr/^\s*client_body_buffer_size\s+1m;/m,
         "conf/$name keeps prompts in memory") if $text =~ /\bllm_api\b/;
}

done_testing();
