#!/usr/bin/perl

# llm_guard: who is asked, what he is told, what becomes of a request by his
# answer; what he has to do with streams, quotas, keys of repeats, clients that
# leave, reloads.

use strict;
use warnings;

use IO::Socket::INET;
use LLM::JSON;
use LLM::H2;
use LLM::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my $JSON = LLM::JSON->new->utf8->canonical;
my ($t, $guard);
my $asked = 0;


# ---- a guard ----

# A server that does what the words of a request say: "say 403", "wait 2",
# "drop"; else 204.  What it was asked is a line of $dir/asked each, written
# before it answers; "gone" is one whose asker has left.

sub start_guard {
    my ($s, $dir) = @_;

    $guard = fork // die "fork: $!";

    return if $guard;

    $SIG{CHLD} = 'IGNORE';
    $SIG{TERM} = 'DEFAULT';

    while (my $c = $s->accept) {
        my $pid = fork // next;

        if ($pid == 0) {
            eval { answer($c, $dir) };
            POSIX::_exit(0);
        }

        close $c;
    }

    POSIX::_exit(0);
}

sub answer {
    my ($c, $dir) = @_;

    my ($text, $n) = ('', 1);

    while ($n && $text !~ /\r\n\r\n/) {
        $n = sysread $c, $text, 65536, length $text;
    }

    my ($head, $body) = $text =~ /^(.*?)\r\n\r\n(.*)$/s or return;
    my ($length) = $head =~ /^content-length: (\d+)/mi;

    while ($n && length $body < ($length // 0)) {
        $n = sysread $c, $body, 1 << 20, length $body;
    }

    note_down($dir, { head => $head, body => $body });

    if ($body =~ /wait ([\d.]+)/) {
        IO::Select->new($c)->can_read($1)
            and return note_down($dir, { gone => $body });
    }

    return if $body =~ /drop/;

    my $status = $body =~ /say (\d+)/ ? $1 : 204;
    my $page = $body =~ /at length/ ? 'x' x 3_000_000
               : $status == 204 ? '' : 'why';

    local $SIG{PIPE} = 'IGNORE';

    syswrite $c, "HTTP/1.1 $status Said\r\nContent-Length: " . length($page)
                 . "\r\nSet-Cookie: guard=1\r\nConnection: close\r\n\r\n";

    while (length $page) {
        my $sent = syswrite $c, $page or last;
        substr $page, 0, $sent, '';
    }
}

sub note_down {
    my ($dir, $what) = @_;

    open my $f, '>>', "$dir/asked" or die "asked: $!";
    syswrite $f, $JSON->encode($what) . "\n";
    close $f;
}

# what the guard was asked since the last time

sub asked {
    my @all = grep { $_->{head} } notes();
    my @new = @all[$asked .. $#all];

    $asked = @all;

    return @new;
}

sub notes {
    open my $f, '<', $t->dir . '/asked' or return;
    my @lines = <$f>;
    close $f;

    return map { $JSON->decode($_) } grep { /\n\z/ } @lines;
}

# until a request with these words was asked about ("body"), n of them, or its
# asker has left ("gone")

sub noted {
    my ($what, $words, $n) = @_;

    return LLM::Test::wait_for(20, sub {
        ($n // 1) == grep { ($_->{$what} // '') =~ /$words/ } notes();
    });
}

END { kill 'TERM', $guard if $guard }

sub server {
    my (%opt) = @_;

    my $s = IO::Socket::INET->new(Listen => 64, LocalAddr => '127.0.0.1',
                                  LocalPort => 0) or die "guard: $!";
    my $at = '127.0.0.1:' . $s->sockport;

    s/%%GUARD%%/$at/g for values %opt;

    $t = LLM::Test->new(%opt);

    kill 'TERM', $guard if $guard;
    start_guard($s, $t->dir);
    $asked = 0;

    return $t->start;
}

sub ask {
    my ($words, %fields) = @_;

    my $path = delete $fields{path} // '/v1';
    my $headers = delete $fields{headers} // {};

    return $t->post("$path/completions",
                    { prompt => $words, max_tokens => 4, temperature => 0,
                      %fields }, headers => $headers);
}

sub is_error {
    my ($res, $status, $code, $name) = @_;

    is($res->{status}, $status, "$name: $status") or diag($res->{body});
    is($res->{json}{error}{code}, $code, "$name: $code");
}


# ---- nginx -t ----

for (['guard', 'invalid URI "guard" of "llm_guard", it must begin with "/"'],
     ['/guard shut', 'unknown parameter "shut"'],
     ['/guard timeout=0', 'invalid time "timeout=0" of "llm_guard", it must be between 1ms and 365d'],
     ['/guard timeout=soon', 'invalid time "timeout=soon" of "llm_guard", it must be between 1ms and 365d'],
     ['off open', '"llm_guard" directive has parameters besides "off"'],
     ['/a; llm_guard /b', '"llm_guard" directive is duplicate'],
     ['off; llm_guard /b', '"llm_guard" directive is duplicate'],
     ['', 'invalid number of arguments in "llm_guard" directive'])
{
    my ($args, $why) = @$_;

    my ($rc, $said) = LLM::Test->new(location => "llm_guard $args;")->check;

    isnt($rc, 0, "llm_guard $args: not taken");
    like($said, qr/\Q$why\E in .*nginx\.conf:\d+/, 'why and where');
}

my ($rc, $said) = LLM::Test->new(http => 'llm_guard $host;',
                                 server => 'llm_guard off;',
                                 location => 'llm_guard /a timeout=3s open;')
                  ->check;

is($rc, 0, 'at all levels') or diag($said);


# ---- what becomes of a request ----

my $LOCATIONS = <<'END';
    location /v1 { llm_api; llm_guard /guard timeout=60s; }
    location /default { llm_api; llm_guard /guard; }
    location /open { llm_api; llm_guard /guard open; }
    location /short { llm_api; llm_guard /guard timeout=300ms; }
    location /shortopen { llm_api; llm_guard /guard timeout=300ms open; }
    location /slow { llm_api; llm_guard /slow timeout=60s; }
    location /slowshort { llm_api; llm_guard /slow timeout=300ms; }
    location /slowopen { llm_api; llm_guard /slow timeout=300ms open; }
    location /least { llm_api; llm_guard /guard timeout=60s;
                      llm_timeout 300ms; }
    location /free { llm_api; }
    location /named { llm_api; llm_guard $guard; }
    location /inner { llm_api; llm_guard /$arg_to; }
    location /inneropen { llm_api; llm_guard /$arg_to open; }
    location /kept { llm_api; llm_guard /guard; llm_intercept_errors on;
                     error_page 400 = @no; error_page 503 = @later; }
    location @no { return 451 "no $upstream_status"; }
    location @later { return 299 "later"; }
    location /stays { llm_api; llm_guard /guard;
                      llm_ignore_client_abort on; }

    location = /guard { internal; proxy_pass http://%%GUARD%%;
                        proxy_set_header X-Whose $llm_tenant;
                        proxy_set_header X-Id $request_id;
                        proxy_set_header X-Length $content_length;
                        client_max_body_size 1k; }
    location = /slow { limit_req zone=slow burst=9;
                       proxy_pass http://%%GUARD%%; }
    location = /yes { return 200; }
    location = /none { return 204; }
    location = /no { return 403; }
    location = /moved { return 302 /yes; }
    location = /late { return 408; }
    location = /left { return 499; }
    location = /shut { return 444; }
    location = /page { error_page 404 =403 /why; return 404; }
    location = /paged { error_page 502 504 = @yes;
                        proxy_pass http://127.0.0.1:1; }
    location = /why { return 403 "why"; }
    location @yes { return 200; }
    location = /api { llm_api; }
    location = /dead { proxy_pass http://127.0.0.1:1; }
    location = /file { root html; }
    location = /health { llm_health; }
    location = /figures { llm_metrics json; }
END

my $HTTP = <<'END';
    map $arg_guard $guard { "" ""; no 'guard'; default /guard?a=$arg_who; }
    log_format line '$status $request_method $uri $content_length '
                    '$content_type $llm_tenant $llm_model $upstream_status '
                    '$http_x_test $request_id';
    access_log logs/line.log line;
    limit_req_zone $binary_remote_addr zone=slow:1m rate=1r/s;
    llm_tenant $http_x_tenant;
    client_max_body_size 8m;
END

server(http => $HTTP, locations => $LOCATIONS);

my $res = ask('hello', headers => { 'X-Tenant' => 'acme', 'X-Test' => 'mine',
                                    'Authorization' => 'Bearer secret',
                                    'Content-Type' => 'text/x-mine',
                                    'X-Request-Id' => 'r-17',
                                    'If-Match' => '"a"', Range => 'bytes=9-' },
              model => 'mini', tenant => 'other');

is($res->{status}, 200, 'a guard that says 204') or diag($res->{body});
is($res->{headers}{'set-cookie'}, undef, 'nothing of its answer is sent on');

my ($q) = asked();

like($q->{head}, qr{^POST /guard HTTP/1\.\d\r$}m, 'it gets a POST');
like($q->{head}, qr{^Content-Type: application/json\r?$}m, 'of JSON');
like($q->{head}, qr{^Content-Length: @{[ length $q->{body} ]}\r?$}m,
     'with its length');
unlike($q->{head}, qr/secret|x-test|x-tenant|if-match|range|x-mine/i,
       'and none of the client\'s headers');
like($q->{head}, qr{^X-Length: @{[ length $q->{body} ]}\r?$}m,
     'which its location knows, too');
like($q->{head}, qr{^X-Whose: acme\r?$}m, 'but the request\'s variables');
is_deeply($JSON->decode($q->{body}),
          { request_id => 'r-17', endpoint => 'completions', model => 'demo',
            tenant => 'acme', prompt => 'hello', max_tokens => 4,
            temperature => 0 },
          'what the client said, and whose it is');

my $length = length $JSON->encode({ prompt => 'hello', max_tokens => 4,
                                    temperature => 0, model => 'mini',
                                    tenant => 'other' });

ok(LLM::Test::wait_for(10, sub { $t->log('line.log') =~ /completions/ }),
   'it is in the log');
my ($id) = $q->{head} =~ /^X-Id: ([0-9a-f]{32})\r?$/m;

like($t->log('line.log'),
     qr{^200 POST /v1/completions $length text/x-mine acme demo - mine $id$}m,
     'as the client\'s request, not as the guard\'s');

is_error(ask('say 403'), 400, 'content_policy_violation',
         'a guard that says 403');
is_error(ask('say 403', stream => \1), 400, 'content_policy_violation',
         'to a stream: the status is real');

$res = ask('say 403');
is($res->{json}{error}{type}, 'invalid_request_error', 'OpenAI\'s type');
is($res->{headers}{'x-request-id'} ne '', 1, 'with an id');

$res = $t->post('/v1/messages', { max_tokens => 4, messages => [
                { role => 'user', content => 'say 403' } ] });
is($res->{status}, 400, 'Anthropic\'s: 400') or diag($res->{body});
is($res->{json}{type}, 'error', 'in its own form');
is($res->{json}{error}{type}, 'invalid_request_error', 'and type');

asked();
is($t->chat('say 201', max_tokens => 2)->{status}, 200, 'a chat passes by 201');
($q) = asked();
is($JSON->decode($q->{body})->{messages}[0]{content}, 'say 201',
   'its messages were told');

for my $say ('say 500', 'say 401', 'say 429', 'say 302', 'say 304', 'drop') {
    $res = ask($say);
    is_error($res, 503, 'guard_unavailable', $say);
    is($res->{headers}{'retry-after'}, 1, 'it may be tried again');
    is(ask($say, path => '/open')->{status}, 200, 'where it is open it passes');
}

is_error(ask('say 403', path => '/open'), 400, 'content_policy_violation',
         '403 does not');
like($t->log,
     qr/llm_guard "\/guard" failed \(status 500\): the request is refused/,
     'the error log says who did not answer');
like($t->log, qr/failed \(status 429\): the request is allowed/,
     'and what passed');

# an answer of any size

is(ask('say 200 at length')->{status}, 200, 'a long yes');
is_error(ask('say 403 at length'), 400, 'content_policy_violation',
         'a long no');

# a body of any size that the client's own location takes

asked();
my $long = 'a ' x 900_000;

$res = $t->post('/v1/completions', { prompt => "$long say 403" });
is_error($res, 400, 'content_policy_violation', 'two megabytes');
($q) = asked();
is($JSON->decode($q->{body})->{prompt}, "$long say 403", 'were all told');

# streams that pass

my $stream = $t->open('/v1/completions', { prompt => 'hello', stream => \1,
                                           max_tokens => 4 });
my @events;
while (my $e = $stream->event) { push @events, $e }
is($stream->{status}, 200, 'a stream passes');
is($events[-1]{data}, '[DONE]', 'to its end');

# who is not asked

asked();
is(ask('say 403', path => '/free')->{status}, 200, 'without a guard');
is($t->post('/v1/tokenize', { prompt => 'say 403' })->{status}, 200,
   'the tokenizer answers');
is($t->get('/v1/models')->{status}, 200, 'models are listed');
is(ask('say 403', temperature => 'hot')->{status}, 400, 'a bad request');
is(ask('say 403', model => 'nobody')->{status}, 404, 'no such model');
is(scalar(my @none = asked()), 0, 'and no guard was asked');

# by variables

is($t->post('/named/completions', { prompt => 'say 403', max_tokens => 1 })
     ->{status}, 200, 'an empty URI asks nobody');
is($t->post('/named/completions?guard=yes&who=me',
            { prompt => 'say 403', max_tokens => 1 })->{status}, 400,
   'a URI of variables');
($q) = asked();
like($q->{head}, qr{^POST /guard\?a=me }, 'with arguments');
is_error($t->post('/named/completions?guard=no', { prompt => 'a' }), 503,
         'guard_unavailable', 'one that is none');
like($t->log, qr/invalid URI "guard" of "llm_guard"/, 'the log says so');

# guards in nginx itself

sub inner {
    my ($to, $path) = @_;

    return $t->post(($path // '/inner') . "/completions?to=$to",
                    { prompt => 'a b', max_tokens => 2 });
}

is(inner($_)->{status}, 200, "$_ lets pass") for qw(yes none paged);

for (qw(no page)) {
    is_error(inner($_), 400, 'content_policy_violation', $_);
}

for (qw(moved late left shut api dead file nothing ../x)) {
    is_error(inner($_), 503, 'guard_unavailable', $_);
    is(inner($_, '/inneropen')->{status}, 200, "$_: open");
}

like($t->log, qr{llm_guard "/api" failed \(status 404\)},
     'llm_api is nobody\'s guard');

# error pages

$res = ask('say 403', path => '/kept');
is($res->{status}, 451, 'an error page of 400') or diag($res->{body});
is(ask('say 500', path => '/kept')->{status}, 299, 'and of 503');
is(ask('a', path => '/kept')->{status}, 200, 'and none');


# ---- time ----

my $start = time;
is_error(ask('wait 60 in vain', path => '/short'), 503, 'guard_unavailable',
         'a guard that takes too long');
cmp_ok(time - $start, '<', 30, 'nobody waits for it');
ok(noted('gone', 'in vain'), 'it is told so');

$start = time;
is(ask('wait 60', path => '/default')->{status}, 503, 'without timeout=');
cmp_ok(time - $start, '>', 4, 'it is five seconds');

is(ask('wait 60', path => '/shortopen')->{status}, 200, 'open: it passes');
is_error(ask('wait 60', path => '/least'), 504, 'timeout',
         'llm_timeout holds while a guard is asked');
is(ask('wait 0.1', path => '/v1')->{status}, 200, 'one that takes its time');

# limit_req in the guard's location delays it, and a delay ends like the rest

is(ask('a', path => '/slow')->{status}, 200, 'a guard with a limit');
$start = time;
is(ask('a', path => '/slow')->{status}, 200, 'is delayed');
cmp_ok(time - $start, '>', 0.5, 'and then asked');
is_error(ask('a', path => '/slowshort'), 503, 'guard_unavailable',
         'one that is delayed for too long');
is(ask('a', path => '/slowopen')->{status}, 200, 'open');

# a connection goes on after each

my $c = LLM::Client->open(port => $t->port, method => 'POST',
                          path => '/short/completions', keepalive => 1,
                          body => { prompt => 'wait 60' });
is($c->response->{status}, 503, 'a timeout on a connection that is kept');

$c->{socket} = LLM::Client->open(socket => $c->{socket}, method => 'POST',
                                 path => '/slowshort/completions',
                                 keepalive => 1, body => { prompt => 'a' })
    ->response->{socket};

for (403, 200, 500) {
    my $next = LLM::Client->open(socket => $c->{socket}, method => 'POST',
                                 path => '/v1/completions', keepalive => 1,
                                 body => { prompt => "say $_",
                                           max_tokens => 2 });
    is($next->response->{status}, { 403 => 400, 200 => 200, 500 => 503 }->{$_},
       "the next request is told $_");
}

# clients that leave

my $gone = $t->open('/v1/completions', { prompt => 'wait 60 and leave' });
ok(noted('body', 'and leave'), 'a guard is asked');
close $gone->{socket};
ok(noted('gone', 'and leave'), 'its client leaves, and it is told so');
ok(LLM::Test::wait_for(20, sub { $t->log('line.log') =~ /^499 POST/m }),
   'the log has 499');

my $before = $t->figures->{generation_tokens};
$gone = $t->open('/stays/completions', { prompt => 'wait 1 and stay',
                                         max_tokens => 4,
                                         ignore_eos => \1 });
ok(noted('body', 'and stay'), 'another guard is asked');
close $gone->{socket};
ok(LLM::Test::wait_for(20, sub {
       $t->figures->{generation_tokens} == $before + 4
   }), 'llm_ignore_client_abort: the answer is computed all the same');
is(scalar(grep { ($_->{gone} // '') =~ /and stay/ } notes()), 0,
   'the guard was not cut');

$t->stop;


# ---- repeats and quotas ----

server(http => $HTTP . 'llm_token_zone $http_x_tenant zone=z:1m rate=1/h'
               . ' streams=1;',
       location => 'llm_guard /guard timeout=60s;'
                   . ' llm_token_limit zone=z burst=100;',
       server => 'location = /guard { proxy_pass http://%%GUARD%%; }');

my @again = (headers => { 'Idempotency-Key' => 'k', 'X-Tenant' => '' });

my $first = ask('hello', @again);
is($first->{status}, 200, 'a request with a key');
$res = ask('hello', @again);
is($res->{headers}{'idempotent-replayed'}, 'true', 'again');
is($res->{body}, $first->{body}, 'the same answer');
is(scalar(@{[ asked() ]}), 1, 'the guard was asked once');

@again = (headers => { 'Idempotency-Key' => 'n', 'X-Tenant' => '' });
is_error(ask('say 403', @again), 400, 'content_policy_violation',
         'a refusal') for 1 .. 2;
is(scalar(@{[ asked() ]}), 2, 'is not kept');

# two at once: one waits for the other, and is asked about when that is refused

my @both = map {
    $t->open('/v1/completions', { prompt => 'wait 0.5 say 403' },
             headers => { 'Idempotency-Key' => 'b' })
} 1, 2;
is($_->response->{status}, 400, 'one of two at once') for @both;
is(scalar(@{[ asked() ]}), 2, 'each was asked about');

my %who = (headers => { 'X-Tenant' => 'a' });

sub left {
    return $t->get('/v1/models', %who)
             ->{headers}{'x-ratelimit-remaining-tokens'};
}

is_error(ask('say 403', %who), 400, 'content_policy_violation', 'a quota');
is(left(), 100, 'a refused request pays nothing');
is_error(ask('say 500', %who), 503, 'guard_unavailable', 'one that failed');
is(left(), 100, 'nor does it');

my $waits = $t->open('/v1/completions', { prompt => 'wait 60' }, %who);
ok(noted('body', 'wait 60'), 'one that waits for its guard');
is(ask('a', %who)->{status}, 429, 'has its place among the streams')
    or diag($t->log);
close $waits->{socket};
ok(LLM::Test::wait_for(20, sub { ask('a', %who)->{status} == 200 }),
   'until it leaves');

$t->stop;


# ---- memory ----

server(http => "$HTTP llm_queue 64 memory=1m;",
       location => 'llm_guard /guard timeout=60s;',
       server => 'location = /guard { proxy_pass http://%%GUARD%%; }');

my $big = 'a ' x 80_000;
my @wait = map { $t->open('/v1/completions', { prompt => "wait 60 $big" }) }
           1 .. 2;
ok(noted('body', 'wait 60', 2), 'two that wait');
is_error($t->post('/v1/completions', { prompt => "wait 60 $big" .  $big x 2 }),
         429, 'queue_full', 'there is no room for a third');
close $_->{socket} for @wait;
ok(LLM::Test::wait_for(20, sub {
       $t->post('/v1/completions', { prompt => "say 403 $big" . $big x 2 })
         ->{status} == 400
   }), 'until they leave');

$t->stop;


# ---- HTTP/2, several workers, reloads ----

server(http => <<'END', workers => 3);
    server {
        listen 127.0.0.1:%%PORT2%% http2;
        location /v1 { llm_api; llm_guard /guard timeout=60s; }
        location = /guard { proxy_pass http://%%GUARD%%; }
    }
END

my $h2 = LLM::H2->new(port => $t->{port2});
my %id = map { $_ => $h2->post('/v1/completions', { prompt => $_,
                                                    max_tokens => 2 }) }
         'say 200', 'say 403', 'wait 60', 'wait 0.3 say 403';

for (['say 200', 200], ['say 403', 400], ['wait 0.3 say 403', 400]) {
    my ($words, $status) = @$_;

    is($h2->wait_done($id{$words})->{status}, $status, "HTTP/2: $words");
}

ok(noted('body', 'wait 60'), 'one waits');
$h2->rst($id{'wait 60'});
ok(noted('gone', 'wait 60'), 'a stream that is reset');

$t->stop;

server(http => $HTTP, workers => 3, location => 'llm_guard /guard timeout=60s;',
       server => 'location = /guard { proxy_pass http://%%GUARD%%; }');

my @many = map {
    $t->open('/v1/completions', { prompt => $_ % 2 ? 'wait 0.5 say 403'
                                                   : 'wait 0.5',
                                  max_tokens => 2 })
} 1 .. 24;

is(join(' ', map { $_->response->{status} } @many), '400 200 ' x 11 . '400 200',
   'many at once over three workers');

@many = map { $t->open('/v1/completions', { prompt => 'wait 2',
                                            max_tokens => 2 }) } 1 .. 4;
ok(noted('body', 'wait 2', 4), 'guards are asked');
$t->reload;
is(join(' ', map { $_->response->{status} } @many), '200 200 200 200',
   'a reload leaves them be');

$t->stop;

done_testing();
