#!/usr/bin/perl

# llm_token_zone, llm_token_limit: what is charged when, what comes back, what
# a refusal says; several zones, several workers, workers that are killed.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use LLM::JSON;
use LLM::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my $t;

# the key is a header's, so that each test has accounts of its own; a refused
# request is answered by the path's error

sub server {
    my ($http, $limits, %opt) = @_;

    $t = LLM::Test->new(http => $http, location => $limits, %opt)->start;
}

sub ask {
    my ($key, %fields) = @_;

    my $headers = delete $fields{headers} // {};
    my %body = (prompt => 'a b c', max_tokens => 8, ignore_eos => \1,
                temperature => 0, %fields);

    return $t->post('/v1/completions', \%body,
                    headers => { 'X-Tenant' => $key, %$headers });
}

# how many tokens the account still has

sub left {
    my ($key) = @_;

    return $t->get('/v1/models', headers => { 'X-Tenant' => $key })
             ->{headers}{'x-ratelimit-remaining-tokens'};
}

sub is_refused {
    my ($res, $code, $name) = @_;

    is($res->{status}, 429, "$name: 429") or diag($res->{body});
    is($res->{json}{error}{code}, $code, "$name: $code");
}


# ---- what is charged, and what comes back ----

# a rate that gives nothing back while the test runs

my $ZONE = 'llm_token_zone $http_x_tenant zone=z:1m rate=1/h';

server("$ZONE;", 'llm_token_limit zone=z burst=100;');

my $res = $t->get('/v1/models');

is($res->{headers}{'x-ratelimit-limit-tokens'}, undef,
   'without a key there is no limit, and no header');

$res = ask('');
is($res->{status}, 200, 'and a request is served');

is(left('a'), 100, 'a new account is whole');

$res = ask('a');

is($res->{status}, 200, 'a request is served');

my $prompt = $res->{json}{usage}{prompt_tokens};

is($res->{json}{usage}{completion_tokens}, 8, 'with all its tokens');
is($res->{headers}{'x-ratelimit-limit-tokens'}, 100, 'the limit is told');
is($res->{headers}{'x-ratelimit-remaining-tokens'}, 100 - $prompt - 8,
   'and what is left');
like($res->{headers}{'x-ratelimit-reset-tokens'}, qr/^\d+h\d+m\d+(\.\d+)?s$/,
     'and when all is there again');
is(left('a'), 100 - $prompt - 8, 'prompt and answer are paid');
is(left('b'), 100, 'by nobody else');

# a stop string ends the answer early: the rest of the reserve comes back

$res = ask('stop', max_tokens => 60, stop => [ ' ' ], ignore_eos => \0);

is($res->{status}, 200, 'an answer that ends early');
cmp_ok($res->{json}{usage}{completion_tokens}, '<', 60, 'and is shorter');
is(left('stop'), 100 - $res->{json}{usage}{total_tokens},
   'pays what it is, not what it might have been');

# an answer that does not fit is refused after its prompt is counted, before
# anything is computed

my $steps = $t->figures->{steps};

$res = ask('large', max_tokens => 101 - $prompt);

is_refused($res, 'rate_limit_exceeded', 'too large');
like($res->{json}{error}{message}, qr/needs 101 tokens.*than the 100/,
     'the message says what would fit');
is($res->{headers}{'x-should-retry'}, 'false', 'it need not be tried again');
is($res->{headers}{'retry-after'}, undef, 'ever');
is($res->{headers}{'x-ratelimit-remaining-tokens'}, 100,
   'headers on the refusal');
is($t->figures->{steps}, $steps, 'no step was run for it');
is(left('large'), 100, 'and nothing is paid');

$res = ask('large', max_tokens => 100 - $prompt);
is($res->{status}, 200, 'the largest that fits');
is(left('large'), 0, 'takes all');

$res = ask('large', max_tokens => 1);
is_refused($res, 'rate_limit_exceeded', 'nothing left');
cmp_ok($res->{headers}{'retry-after'}, '>', 3000, 'Retry-After');
cmp_ok($res->{headers}{'retry-after-ms'}, '>', 3000 * 1000, 'in ms, too');

# n choices each have their answer

$res = ask('n', n => 3, max_tokens => 10);
is(left('n'), 100 - $prompt - 30, 'each choice pays');

# an error of the request costs nothing

is(ask('bad', temperature => 'hot')->{status}, 400, 'a bad request');
is(ask('bad', model => 'none')->{status}, 404, 'a model that is not there');
is(left('bad'), 100, 'pay nothing');

# an embedding has a prompt only

$res = $t->post('/v1/tokenize', { prompt => 'a b c' },
                headers => { 'X-Tenant' => 'tok' });
is($res->{status}, 200, 'the tokenizer answers');
is(left('tok'), 100, 'for nothing but a request');

$t->stop;


# ---- prompts that the prefix cache knows; what counts ----

server(join("\n",
    'llm_token_zone $http_x_tenant zone=tenth:1m rate=1/h cached=0.1;',
    'llm_token_zone $http_x_tenant zone=in:1m rate=1/h count=in;',
    'llm_token_zone $http_x_tenant zone=out:1m rate=1/h count=out;'),
    '', locations => join('', 'location = /health { llm_health; }', map {
        "location /$_/v1 { llm_api; llm_tenant x;"
        . " llm_token_limit zone=$_ burst=10000; }\n"
    } qw(tenth in out)));

sub ask_at {
    my ($at, $key, %fields) = @_;

    return $t->post("/$at/v1/completions",
                    { max_tokens => 8, ignore_eos => \1, %fields },
                    headers => { 'X-Tenant' => $key });
}

sub left_at {
    my ($at, $key) = @_;

    return $t->get("/$at/v1/models", headers => { 'X-Tenant' => $key })
             ->{headers}{'x-ratelimit-remaining-tokens'};
}

my $long = join ' ', map { "word$_" } 1 .. 200;

is(ask_at('out', 'w', prompt => $long)->{status}, 200, 'a long prompt');

for my $at (qw(tenth in out)) {
    $res = ask_at($at, 'c', prompt => $long);

    my $u = $res->{json}{usage};
    my $in = $u->{prompt_tokens};
    my $cached = $u->{prompt_tokens_details}{cached_tokens};

    cmp_ok($cached, '>', 64, "$at: the prefix cache has a part of it");

    my $paid = { in => $in, out => 8,
                 tenth => $in - $cached + 0.1 * $cached + 8 }->{$at};

    is(left_at($at, 'c'), int(10000 - $paid), "$at: what is paid");
}

$t->stop;


# ---- several limits: all are charged, or none ----

server(join("\n",
    'llm_token_zone $http_x_tenant zone=one:1m rate=1/h;',
    'llm_token_zone all zone=all:1m rate=1/h requests=5/h;',
    'llm_token_zone $http_x_day zone=day:1m day=$http_x_day;'),
    'llm_token_limit zone=day; llm_token_limit zone=all burst=2000;'
    . 'llm_token_limit zone=one burst=40;');

is(ask('a', max_tokens => 30)->{status}, 200, 'three zones: served');

$res = ask('a', max_tokens => 30);
is_refused($res, 'rate_limit_exceeded', 'the smallest is used up');
is($res->{headers}{'x-ratelimit-limit-tokens'}, 40, 'it is what is told');
is($res->{headers}{'x-ratelimit-remaining-tokens'}, 10 - $prompt, 'as is its rest');
is($res->{headers}{'x-ratelimit-remaining-requests'}, 4,
   'and does not count as a request');

is(ask('b', max_tokens => 30)->{status}, 200, 'another key is served');
is(ask('c', max_tokens => 30)->{status}, 200, 'and one more');
is(ask('d', max_tokens => 30)->{status}, 200, 'and one more');
is(ask('e', max_tokens => 30)->{status}, 200, 'and one more');

$res = ask('f', max_tokens => 1);
is_refused($res, 'rate_limit_exceeded', 'the shared zone has no request left');
like($res->{json}{error}{message}, qr/all of 5 requests/, 'it says so');
cmp_ok($res->{headers}{'retry-after'}, '>', 600, 'and when there is one');
is(left('f'), 40, 'the other zones are as they were');

$t->stop;


# ---- the day ----

server('llm_token_zone $http_x_tenant zone=z:1m rate=1000000/s day=50;',
       'llm_token_limit zone=z;');

is(ask('a', max_tokens => 40 - $prompt)->{status}, 200, 'within the day');

$res = ask('a', max_tokens => 20);
is_refused($res, 'insufficient_quota', 'beyond it');
like($res->{json}{error}{message}, qr/10 are left, \d+ are needed/,
     'with what is left');
is($res->{headers}{'x-should-retry'}, 'false', 'it need not be tried again');

my $midnight = 86400 - time % 86400;
ok(abs($res->{headers}{'retry-after'} - $midnight) < 60, 'before midnight');

is(ask('a', max_tokens => 10 - $prompt)->{status}, 200, 'the rest of the day');
$res = ask('a', max_tokens => 1);
is_refused($res, 'insufficient_quota', 'nothing left of it');

$t->stop;


# ---- values that differ from key to key ----

server('map $http_x_tenant $tpm { gold 1000/h; off 0; odd lots; default ""; }'
     . ' map $http_x_tenant $burst { gold 300; default ""; }'
     . ' llm_token_zone $http_x_tenant zone=z:1m rate=$tpm streams=$http_x_n;',
       'llm_token_limit zone=z burst=$burst;', pace => 5);

is(left('gold'), 300, 'a burst of its own');
is(left('free'), undef, 'an empty rate is no limit');
is(ask('free')->{status}, 200, 'it is served');

$res = ask('off');
is_refused($res, 'rate_limit_exceeded', 'a rate of 0');
is($res->{headers}{'x-should-retry'}, 'false', 'never');

$res = ask('odd');
is($res->{status}, 503, 'a value that is none') or diag($res->{body});
is($res->{json}{error}{code}, 'quota_unavailable', 'lets nobody in');
like($t->log('error.log'), qr/invalid value "lots" of "\$tpm"/,
     'and the log says which');

my @open = map {
    LLM::Client->open(port => $t->port, method => 'POST',
        path => '/v1/completions', headers => { 'X-Tenant' => 'gold',
                                                'X-N' => 2 },
        body => { prompt => 'a', stream => \1, ignore_eos => \1,
                  max_tokens => 100 }, rcvbuf => 4096)
} 1 .. 2;

ok($_->event, 'a stream') for @open;

$res = ask('gold', headers => { 'X-N' => 2 });
is_refused($res, 'rate_limit_exceeded', 'one more than streams=');
like($res->{json}{error}{message}, qr/at a time: 2 may/, 'it says so');
is($res->{headers}{'retry-after'}, 2, 'soon');

$_->close for @open;

ok(LLM::Test::wait_for(20, sub {
    ask('gold', headers => { 'X-N' => 2 }, max_tokens => 1)->{status} == 200
}), 'when they are gone there is room');

$t->stop;


# ---- a dry run ----

server("$ZONE;", 'llm_token_limit zone=z burst=10 dry_run;');

is(ask('a', max_tokens => 50)->{status}, 200, 'a dry run refuses nothing');
is(left('a'), 0, 'and counts');
is(ask('a', max_tokens => 50)->{status}, 200, 'nor does it with debts');
like($t->log('error.log'),
     qr/llm_token_limit, dry run: no more tokens in zone "z"/, 'it is logged');

$t->stop;


# ---- a zone without room ----

# each account has something to remember for an hour

server('llm_token_zone $http_x_tenant zone=z:1m requests=1/h;',
       'llm_token_limit zone=z;');

sub token { $t->post('/v1/tokenize', { prompt => 'a' },
                     headers => { 'X-Tenant' => sprintf 'key-%06d', $_[0] }) }

my $accounts = 0;

$accounts++ while $accounts < 10000
                  && ($res = token($accounts))->{status} == 200;

is($res->{status}, 503, "no room behind $accounts accounts: 503");
is($res->{json}{error}{code}, 'quota_unavailable', 'with its code');
like($t->log('error.log'),
     qr/\[error\].*llm_token_limit: no more memory in zone "z"/, 'it is logged');

# what the reference says

my $pages = do { local (@ARGV, $/) = "$LLM::Test::ROOT/docs/directives.md"; <> };
my ($said) = $pages =~ /about\s+([\d,]+)\s+accounts\s+in\s+1m/;

$said =~ tr/,//d;
cmp_ok(abs($accounts - $said), '<', $said / 10, "docs/directives.md says $said");

is_refused(token(1), 'rate_limit_exceeded', 'who has an account keeps it');
is(ask('')->{status}, 200, 'who needs none is served');

$t->stop(allow => qr/no more memory/);


# what is no valid request makes no account, so that a zone cannot be filled
# with it; over a restart, too

my $folder = LLM::Test->new;

for my $limits ('day=1000', 'day=1000 requests=1000/h', 'rate=1000/h',
                'streams=5')
{
    my $state = $folder->dir . '/invalid.json';
    my $invalid = sub {
        $t->post('/v1/completions', $_[1],
                 headers => { 'X-Tenant' => $_[0] })->{status};
    };

    for my $round (1, 2) {
        $t = LLM::Test->new(http => 'llm_token_zone $http_x_tenant'
            . " zone=z:64k $limits state=$state;",
            location => 'llm_token_limit zone=z;')->start;

        my %said;

        $said{ $invalid->("$round-invalid-$_", '{') }++ for 1 .. 400;
        $said{ $invalid->("$round-none-$_", '{"prompt":"a","model":"x"}') }++
            for 1 .. 40;
        is(join(' ', map { "$_: $said{$_}" } sort keys %said),
           '400: 400 404: 40', "$limits: refused for what they are");
        is(ask('known', max_tokens => 3)->{status}, 200,
           "$limits: who is served is served");
        ok(LLM::Test::wait_for(20, sub {
            my $text = do { local (@ARGV, $/) = $state; -f $state && <> };
            ($text // '') =~ /"known".*"requests":$round\b/
        }), "$limits: and has an account");

        my $lines = do { local (@ARGV, $/) = $state; scalar(() = <> =~ /\n/g) };
        is($lines, 3, "$limits: which is the only one");
        $t->stop;
    }

    unlink $state;
}

# a file that has accounts without anything, as older versions wrote it, of
# which the zone would be full; and more that have something than it has room
# for, of which all stay in the file

{
    my $day = sprintf '%04d-%02d-%02d',
        (gmtime(time - 86400))[5] + 1900, (gmtime(time - 86400))[4] + 1,
        (gmtime(time - 86400))[3];
    my @empty = map { qq({"key":"e$_","day":"$day","day_tokens":0.000,)
        . qq("requests":0,"prompt_tokens":0,"cached_tokens":0,)
        . qq("completion_tokens":0}) } 1 .. 400;
    my @old = map { qq({"key":"o$_","day":"$day","day_tokens":7.000,)
        . qq("requests":1,"prompt_tokens":5,"cached_tokens":0,)
        . qq("completion_tokens":2}) } 1 .. 400;

    $t = LLM::Test->new(http => 'llm_token_zone $http_x_tenant'
        . ' zone=z:64k day=1000 state=%%DIR%%/usage.json;',
        location => 'llm_token_limit zone=z;');
    $t->write_file('usage.json', sealed(@empty, @old));
    $t->start;

    my %said;

    $said{ ask("new-$_", max_tokens => 1)->{status} }++ for 1 .. 60;
    is(join(' ', keys %said), '200', 'a zone that is full of the past');

    my $of = sub { do { local (@ARGV, $/) = $t->dir . '/usage.json'; <> } };

    ok(LLM::Test::wait_for(20, sub {
        (() = $of->() =~ /"new-\d+"/g) == 60
    }), 'new ones are written');
    is((() = $of->() =~ /"o\d+","day":[^}]*"requests":1,/g), 400,
       'what others have used stays');
    is((() = $of->() =~ /"e\d+"/g), 0, 'who has used nothing goes');

    # each comes back to what it had

    is(ask("o$_", max_tokens => 1)->{status}, 200, 'one of the past')
        for 1, 200, 400;
    ok(LLM::Test::wait_for(20, sub {
        (() = $of->() =~ /"o(?:1|200|400)","day":[^}]*"requests":2,/g) == 3
    }), 'goes on with what it had');
    $t->stop;
}


# an account of a page each, and none left for what its request holds: the last
# account, which has nothing to remember yet, does not make room for that

server('llm_token_zone $http_x_tenant zone=z:32k requests=1/h;',
       'llm_token_limit zone=z;');

my @before = $t->workers;
my %said;

$said{ $t->post('/v1/tokenize', { prompt => 'a' },
                headers => { 'X-Tenant' => $_ . 'k' x 3000 })->{status} // 0 }++
    for 1 .. 12;

is(join(' ', sort keys %said), '200 503', 'accounts of a page: until it is full');
is(join(' ', $t->workers), join(' ', @before), 'by one worker');

$t->stop(allow => qr/no more memory/);


# ---- a reserve that is smaller than the answer; who leaves ----

server("$ZONE; log_format figures '\$http_x_tenant \$llm_completion_tokens"
       . " \$llm_finish_reason'; access_log logs/figures.log figures;",
       'llm_token_limit zone=z burst=2000 reserve=10;', pace => 0.2);

$res = ask('a', max_tokens => 1400);
is($res->{status}, 200, 'an answer longer than the reserve');
is($res->{json}{usage}{completion_tokens}, 1400, 'has all its tokens');
is(left('a'), 2000 - 1400 - $prompt, 'and pays them');
is(ask('a', max_tokens => 1400)->{status}, 200, 'with what is left it begins');
is(left('a'), 0, 'and leaves a debt');
$res = ask('a', max_tokens => 1);
is_refused($res, 'rate_limit_exceeded', 'a debt');
cmp_ok($res->{headers}{'retry-after'}, '>', 800 * 3600,
       'which is to be paid first');

for my $stream (1, 0) {
    my $key = $stream ? 'leaves' : 'whole';
    my $c = $t->open_long(stream => $stream ? \1 : \0, max_tokens => 1400,
                          headers => { 'X-Tenant' => $key });

    $c->event, $c->event if $stream;
    ok(LLM::Test::wait_for(20, sub { left($key) < 1980 }), "$key: is paying");
    $c->close;

    my ($n, $why);
    ok(LLM::Test::wait_for(20, sub {
        ($n, $why) = $t->log('figures.log') =~ /^$key (\d+) (\w+)$/m
    }), "$key: a client that leaves in the middle");
    is($why, 'abort', "$key: the log says so");
    cmp_ok($n, '<', 1400, "$key: and what was decoded");

    # its prompt is one token
    is(left($key), 2000 - 1 - $n, "$key: that much is paid");
}

$t->stop;


# ---- days and usage over restarts ----

my $dir;

sub with_state {
    my (%opt) = @_;

    $t = LLM::Test->new(http => 'llm_token_zone $http_x_tenant zone=z:1m'
        . ' rate=1000000/s day=1000 state=%%DIR%%/usage.json;'
        . ' llm_stream_buffer 8k;',
        location => 'llm_token_limit zone=z; limit_rate $http_x_rate;');

    if ($opt{state}) {
        $t->write_file('usage.json', $opt{state});
    }

    $t->start;
    $dir = $t->dir;
}

sub state_of {
    my ($key) = @_;

    open my $f, '<', "$dir/usage.json" or return;
    my @lines = map { eval { decode_json($_) } // {} } <$f>;
    my ($u) = grep { ($_->{key} // '') eq $key } @lines;

    return $u;
}

with_state();

$res = ask('ann', max_tokens => 90);
is($res->{status}, 200, 'a request of the day');

my $total = $res->{json}{usage}{total_tokens};

# while the request runs the file may have a part of it

ok(LLM::Test::wait_for(20, sub {
    (state_of('ann') // {})->{requests}
}), 'is written to the file');
is(state_of('ann')->{day_tokens}, $total, 'with its tokens');
is(state_of('ann')->{completion_tokens}, 90, 'and those of its answer');
is(state_of('ann')->{requests}, 1, 'as one request');

# it takes minutes

my $slow = LLM::Client->open(port => $t->port, method => 'POST',
    path => '/v1/completions', headers => { 'X-Tenant' => 'ann',
                                            'X-Rate' => '2k' },
    body => { prompt => 'a', stream => \1, ignore_eos => \1, logprobs => 5,
              max_tokens => 850 });
ok($slow->event, 'a stream is being served');
is(ask('bob')->{status}, 200, 'another key');

# as a nginx that is killed now would leave it

ok(LLM::Test::wait_for(20, sub { state_of('bob') }), 'is written, too');
cmp_ok(state_of('ann')->{day_tokens} - $total, '<', 850,
       'what a stream has reserved is not in the file');

my $pid = $t->{pid};
$t->stop;

# the stream has ended with nginx: what it had is paid

my $state = do { local (@ARGV, $/) = "$dir/usage.json"; <> };
my $used = state_of('ann')->{day_tokens} - $total;

cmp_ok($used, '>', 0, 'the end writes what streams have used');
cmp_ok($used, '<', 850, 'not what they have reserved');

with_state(state => $state);

$res = ask('ann', max_tokens => 990);
is_refused($res, 'insufficient_quota', 'the day goes on after a restart');
like($res->{json}{error}{message}, qr/${\(1000 - $total - $used)} are left/,
     'with what was left of it');

is(ask('ann', max_tokens => 5)->{status}, 200, 'a small one is served');
ok(LLM::Test::wait_for(20, sub {
    state_of('ann') && state_of('ann')->{requests} == 3
}), 'and the figures grow');
ok(state_of('bob'), 'others stay');

$t->stop;

# torn

with_state(state => substr $state, 0, -20);

like($t->log('error.log'), qr/the usage of zone "z" in "[^"]*usage\.json" is not used: /,
     'a torn file is named');
is(ask('ann', max_tokens => 90)->{status}, 200, 'and not used');
ok(LLM::Test::wait_for(20, sub { -s "$dir/usage.json.bad" }),
   'the torn one is kept');
ok(LLM::Test::wait_for(20, sub {
    state_of('ann') && state_of('ann')->{requests} == 1
}), 'and a new one is written');

$t->stop;

# a file whose day is in the future, as a wrong clock left it: it is today's, and
# over when today is

sub sealed {
    my (@lines) = @_;

    my $text = join '', map { "$_\n" } '{"usage_of":"z"}', @lines;

    return $text . '{"accounts":' . @lines . ',"sha256":"'
           . sha256_hex($text) . "\"}\n";
}

# midnight: a day is over, and what comes back of it later is not the next one's

SKIP: {
    skip 'the sanitizer is preloaded already', 16 if $ENV{LLM_SAN};

    $t = LLM::Test->new(http => 'llm_token_zone $http_x_tenant zone=z:1m'
        . ' day=1000 state=%%DIR%%/usage.json; llm_stream_buffer 8k;',
        location => 'llm_token_limit zone=z; limit_rate $http_x_rate;');
    $dir = $t->dir;
    $t->write_file('usage.json', sealed('{"key":"bob","day":"2099-12-31",'
        . '"day_tokens":995.000,"requests":1,"prompt_tokens":900,'
        . '"cached_tokens":0,"completion_tokens":95}'));

    local $ENV{LD_PRELOAD} = $t->preload('clock', <<'END');
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <unistd.h>

/* what nginx reads the date from */

int
gettimeofday(struct timeval *tv, void *tz)
{
    int         rc;
    static int  (*real)(struct timeval *, void *);

    if (real == NULL) {
        real = dlsym(RTLD_NEXT, "gettimeofday");
    }

    rc = real(tv, tz);

    if (access("tomorrow", F_OK) == 0) {
        tv->tv_sec += 86400;
    }

    return rc;
}
END

    $t->start;

    $res = ask('bob', max_tokens => 8);
    is_refused($res, 'insufficient_quota', 'a day of the future is today');
    like($res->{json}{error}{message}, qr/ 5 are left/, 'with what it has');

    $slow = LLM::Client->open(port => $t->port, method => 'POST',
        path => '/v1/completions', headers => { 'X-Tenant' => 'ann',
                                                'X-Rate' => '2k' },
        body => { prompt => 'a', stream => \1, ignore_eos => \1, logprobs => 5,
                  max_tokens => 850 });
    ok($slow->event, 'a stream at the end of a day');
    is_refused(ask('ann', max_tokens => 200), 'insufficient_quota',
               'which has no more');

    $t->write_file('tomorrow', '');
    $res = ask('ann', max_tokens => 200);
    is($res->{status}, 200, 'the next day begins with all of it')
        or diag($res->{body});
    $slow->close;

    ok(LLM::Test::wait_for(20, sub {
        state_of('ann') && state_of('ann')->{requests} == 2
    }), 'the stream ends');
    is(state_of('ann')->{day_tokens}, $res->{json}{usage}{total_tokens},
       'and gives nothing back that this day has used');

    is(ask('bob', max_tokens => 8)->{status}, 200,
       'a day of the future is over with today');

    # the clock is set back

    my $had = $res->{json}{usage}{total_tokens};

    $slow = LLM::Client->open(port => $t->port, method => 'POST',
        path => '/v1/completions', headers => { 'X-Tenant' => 'ann',
                                                'X-Rate' => '2k' },
        body => { prompt => 'a', stream => \1, ignore_eos => \1, logprobs => 5,
                  max_tokens => 750 });
    ok($slow->event, 'a stream of a day of the future');

    unlink "$dir/tomorrow" or die $!;
    $res = ask('ann', max_tokens => 900 - $had);
    is_refused($res, 'insufficient_quota', 'what it has reserved counts');
    $slow->close;

    ok(LLM::Test::wait_for(20, sub {
        ask('ann', max_tokens => 1000 - $had - 400)->{status} == 200
    }), 'what it did not use comes back');

    $t->stop(name => 'midnight');
}

# it cannot be written

$t = LLM::Test->new(http => 'llm_token_zone $http_x_tenant zone=z:1m day=1000'
    . ' state=%%DIR%%/none/usage.json;',
    location => 'llm_token_limit zone=z;');
mkdir $t->dir . '/none' or die "none: $!";
$t->start;
rmdir $t->dir . '/none' or die "none: $!";

is(ask('ann')->{status}, 200, 'a file that cannot be written');
ok($t->wait_log(qr/usage cannot be written to "[^"]*none.*No such file/),
   'is named in the log');

is($t->get('/v1/models')->{status}, 200, 'and nothing else suffers');
$t->stop;


# the file is beside nginx.conf, as others are

{
    my $t = LLM::Test->new(http => 'llm_token_zone $arg_k zone=z:1m day=1000'
                           . ' state=usage/z.json;');
    my $dir = $t->dir;

    mkdir "$dir/$_" or die "$_: $!" for qw(conf conf/usage);
    rename "$dir/nginx.conf", "$dir/conf/nginx.conf" or die "rename: $!";

    my ($rc, $out) = $t->check('conf/nginx.conf');

    is($rc, 0, 'a relative file') or diag($out);
}


# ---- what nginx -t says ----

for (
    [ 'llm_token_zone $arg_k rate=1/m;', qr/no zone= in "llm_token_zone"/ ],
    [ 'llm_token_zone $arg_k zone=z:1m;', qr/no rate=/ ],
    [ 'llm_token_zone $arg_k zone=z rate=1/m;', qr/not zone=NAME:SIZE: "zone=z"/ ],
    [ 'llm_token_zone $arg_k zone=:1m rate=1/m;', qr/not zone=NAME:SIZE/ ],
    [ 'llm_token_zone $arg_k zone=z:1x rate=1/m;', qr/invalid size in "zone=z:1x"/ ],
    [ 'llm_token_zone $arg_k zone=z:4k rate=1/m;', qr/too small/ ],
    [ 'llm_token_zone $arg_k zone=llm:1m rate=1/m;',
      qr/the module has a zone of its own with the name "llm"/ ],
    map([ "llm_token_zone \$arg_k zone=$_:1m rate=1/m;",
          qr/the module has a zone of its own with the name "$_" in .*:\d+/ ],
        qw(llm_admin llm_engines llm_figures llm_idempotency llm_tenants_0)),
    [ 'llm_token_zone $arg_k zone=z:1m rate=1/w;', qr{invalid rate "rate=1/w" of "llm_token_zone"} ],
    [ 'llm_token_zone $arg_k zone=z:1m rate=;', qr/invalid rate "rate="/ ],
    [ 'llm_token_zone $arg_k zone=z:1m rate=-1/m;', qr{invalid rate "rate=-1/m"} ],
    [ 'llm_token_zone $arg_k zone=z:1m rate=1000000001/m;', qr/invalid rate/ ],
    [ 'llm_token_zone $arg_k zone=z:1m rate=1 day=1/m;', qr{invalid amount "day=1/m"} ],
    [ 'llm_token_zone $arg_k zone=z:1m rate=1 streams=x;', qr/invalid amount "streams=x"/ ],
    [ 'llm_token_zone $arg_k zone=z:1m rate=1 requests=x;', qr/invalid rate "requests=x"/ ],
    [ 'llm_token_zone $arg_k zone=z:1m rate=1 count=both;', qr/not "both"/ ],
    [ 'llm_token_zone $arg_k zone=z:1m rate=1 cached=2;', qr/price from 0 to 1: "cached=2"/ ],
    [ 'llm_token_zone $arg_k zone=z:1m rate=1 cached=x;', qr/price from 0 to 1/ ],
    [ 'llm_token_zone $arg_k zone=z:1m rate=1 state=;', qr/no file in "state="/ ],
    [ 'llm_token_zone $arg_k zone=z:1m rate=1 other=1;', qr/unknown parameter "other=1"/ ],
    [ 'llm_token_zone $nope zone=z:1m rate=1;', qr/unknown "nope" variable/ ],
    [ 'llm_token_zone $arg_k zone=z:1m rate=1;' x 2, qr/already a zone "z"/ ],
    [ 'llm_token_zone "" zone=z:1m rate=1;', qr/has an empty key/ ],
    [ 'llm_token_zone $arg_k zone=z:1m zone=y:1m rate=1;',
      qr/duplicate parameter "zone=y:1m" of "llm_token_zone"/ ],
    [ 'llm_token_zone $arg_k zone=z:1048577m rate=1;',
      qr/invalid size in "zone=z:1048577m"/ ],
    [ 'llm_token_zone $arg_k zone=z:1048576m rate=1;',
      qr/invalid size in "zone=z:1048576m"/ ],
    [ 'llm_token_zone $arg_k zone=z:1m rate=1 state=none/usage.json;',
      qr{there is no folder for "state=none/usage\.json"} ],
    [ 'llm_token_zone $arg_k zone=z:1m rate=1 state=logs;',
      qr/not a regular file: "state=logs"/ ],
    [ 'llm_token_zone $arg_k zone=z:1m rate=1 state=z.json;'
      . ' llm_token_zone $arg_k zone=y:1m rate=1 state=z.json;',
      qr/another zone has the same file: "state=z\.json"/ ],
    [ 'server { location /a { llm_admin state=z.json; } }'
      . ' llm_token_zone $arg_k zone=z:1m rate=1 state=z.json;',
      qr/"llm_admin" has the same file: "state=z\.json" in .*:\d+/ ],
    [ 'llm_token_zone $arg_k zone=z:1m rate=1 state=z.json;'
      . ' server { location /a { llm_admin state=z.json; } }',
      qr/"llm_token_zone" has the same file: "state=z\.json" in .*:\d+/ ],
    [ 'llm_token_zone $arg_k zone=z:1m requests=1;'
      . ' llm_token_limit zone=z burst=5;',
      qr/"burst=" of zone "z", whose "llm_token_zone" has no "rate=", in .*:\d+/ ],
    [ 'llm_token_limit zone=z dry_run dry_run;',
      qr/duplicate parameter "dry_run" of "llm_token_limit"/ ],
    [ 'llm_token_limit burst=1;', qr/no zone= in "llm_token_limit"/ ],
    [ 'llm_token_limit zone=none;', qr/no "llm_token_zone" of the name "none" in .*:\d+/ ],
    [ 'llm_token_limit zone=z; llm_token_limit zone=z;', qr/is duplicate/ ],
    [ 'llm_token_limit zone=z burst=1/m;', qr{invalid amount "burst=1/m"} ],
    [ 'llm_token_limit zone=z reserve=all;', qr/not a number of tokens: "reserve=all"/ ],
    [ 'llm_token_limit zone=z dry;', qr/unknown parameter "dry"/ ],
    [ 'server { location / { llm_token_zone $arg_k zone=z:1m rate=1; } }',
      qr/"llm_token_zone" directive is not allowed here/ ],
) {
    my ($line, $want) = @$_;
    my ($rc, $out) = LLM::Test->new(http => $line)->check;

    isnt($rc, 0, "refused: $line");
    like($out, $want, 'with the reason');
}

my ($rc, $out) = LLM::Test->new(http =>
    'llm_token_limit zone=late; llm_token_zone $arg_k zone=late:1m rate=1;'
    )->check;

is($rc, 0, 'a zone may come behind its limit') or diag($out);


done_testing();
