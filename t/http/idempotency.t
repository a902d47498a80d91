#!/usr/bin/perl

# Idempotency-Key: a request that is sent again is answered once; x-request-id
# in and out; the user and the metadata of a request in the log.

use strict;
use warnings;

use Compress::Zlib;
use LLM::Test;
use Test::More;

my %ask = (prompt => 'one two', max_tokens => 8, temperature => 1);
my $n = 0;

sub server {
    my ($more, %opt) = @_;

    return LLM::Test->new(http => $more, %opt)->start;
}


sub key {
    my ($key, %more) = @_;

    return (headers => { 'Idempotency-Key' => $key, %more });
}


sub generated { $_[0]->figures->{generation_tokens} }

my $t = server('');


# ---- again ----

for my $stream (\0, \1) {
    my $what = $$stream ? 'a stream' : 'an answer';
    my @post = ('/v1/completions', { %ask, stream => $stream },
                key('k' . ++$n));
    my $first = $t->post(@post);
    my $before = generated($t);
    my $again = $t->post(@post);

    is($first->{status}, 200, $what) or diag($first->{body});
    is($first->{headers}{'idempotent-replayed'}, undef, 'the first one');
    is($again->{status}, 200, 'again');
    is($again->{body}, $first->{body}, 'is the same to the byte');
    is($again->{headers}{'idempotent-replayed'}, 'true', 'and says so');
    is($again->{headers}{'content-type'}, $first->{headers}{'content-type'},
       'of the same type');
    isnt($again->{headers}{'x-request-id'}, $first->{headers}{'x-request-id'},
         'with an id of its own');
    is(generated($t), $before, 'nothing was computed');
}

my $res = $t->post('/v1/completions', { %ask, seed => 9 }, key('k1'));

is($res->{status}, 409, 'the key with another body');
is($res->{json}{error}{code}, 'idempotency_key_reused', 'why');
is($res->{headers}{'x-should-retry'}, 'false', 'libraries need not try again');
is($t->post('/v1/tokenize', { prompt => 'a' }, key('k1'))->{status}, 409,
   'at another endpoint');

$res = $t->post('/v1/completions', { %ask, seed => 9 },
                key('k1', Authorization => 'Bearer other'));
is($res->{status}, 200, 'the key of another client');
is($res->{headers}{'idempotent-replayed'}, undef, 'is its own');

$res = $t->post('/v1/completions', { %ask, seed => 9 },
                key('k1', 'x-api-key' => 'other'));
is($res->{status}, 200, 'the key of another client of Messages');

# a body that is compressed, each time with another date in it, is the same one

my $body = LLM::JSON->new->canonical->encode(\%ask);
my $zip = Compress::Zlib::memGzip($body);
my @packed = ($zip, substr($zip, 0, 4) . 'date' . substr $zip, 8);

my ($one, $two) = map {
    $t->post('/v1/completions', $_, key('zip', 'Content-Encoding' => 'gzip'))
} @packed;

is($one->{status}, 200, 'a compressed body') or diag($one->{body});
is($two->{headers}{'idempotent-replayed'}, 'true', 'again');
is($t->post('/v1/completions', $body, key('zip'))
     ->{headers}{'idempotent-replayed'}, 'true', 'again, as it is');

is($t->post('/v1/completions', \%ask, key('x' x 256))->{status}, 400,
   'a key that is too long');
is($t->post('/v1/completions', \%ask, key('x' x 255))->{status}, 200,
   'one that is not');

isnt($t->post('/v1/completions', \%ask)->{body},
     $t->post('/v1/completions', \%ask)->{body}, 'without a key');

# other endpoints, and bodies that a thread parses

for my $case ([ tokenize => { content => 'word ' x 5000 } ],
              [ 'chat/completions' => { max_tokens => 4, messages => [
                    { role => 'user', content => 'Hi ' x 200 } ],
                    user => 'x' x 20000 } ])
{
    my ($path, $body) = @$case;
    my $one = $t->post("/v1/$path", $body, key("path $path"));
    my $two = $t->post("/v1/$path", $body, key("path $path"));

    is($one->{status}, 200, $path) or diag($one->{body});
    is($two->{headers}{'idempotent-replayed'}, 'true', 'again');
    is($two->{body}, $one->{body}, 'the same');
}

# errors are not kept

for (1, 2) {
    $res = $t->post('/v1/completions', { %ask, prompt => 'word ' x 9000 },
                    key('error'));
    is($res->{status}, 400, 'an error of the engine');
    is($res->{headers}{'idempotent-replayed'}, undef, 'is made again');
}


# ---- at once ----

{
    my $before = generated($t);
    my @s = map { $t->open('/v1/completions',
                           { %ask, max_tokens => 200, ignore_eos => \1 },
                           key('at once')) } 1 .. 4;
    my @res = map { $_->response } @s;

    is(join(' ', map { $_->{status} } @res), '200 200 200 200',
       'four at once');
    is(scalar(grep { $_->{body} eq $res[0]{body} } @res), 4,
       'all have the same answer');
    is(generated($t) - $before, 200, 'which was computed once');
}

# Answers that wait for their clients: buffers on the way are small.

my @small = (listen => 'sndbuf=16k', location => 'llm_stream_buffer 16k;');
my $slow = server('', @small);

# another body while the first one runs

{
    my $s = $slow->open_long(key('runs'), max_tokens => 400, rcvbuf => 4096);

    $s->event;
    is($slow->post('/v1/completions', \%ask, key('runs'))->{status}, 409,
       'another body meanwhile');

    # and the same, whose first client leaves

    my $second = $slow->open('/v1/completions', {
        prompt => 'a', stream => \1, ignore_eos => \1, max_tokens => 400 },
        key('runs'), light => 1);

    $s->close;
    $res = $second->response;
    is($res->{status}, 200, 'the first client leaves');
    is($res->{headers}{'idempotent-replayed'}, undef,
       'the second request is computed');
    like($res->{body}, qr/\[DONE\]/, 'to its end');
}

# one that leaves before it has read its answer, which is there to its end

{
    my %big = (prompt => 'a', max_tokens => 40, ignore_eos => \1, n => 16,
               logprobs => 5);
    my $before = generated($slow);
    my $s = $slow->open('/v1/completions', \%big, key('unread'),
                        rcvbuf => 4096);

    $s->read_header;
    $s->close;

    $res = $slow->post('/v1/completions', \%big, key('unread'));
    cmp_ok(length $res->{body}, '>', 60_000, 'a long answer');
    is($res->{headers}{'idempotent-replayed'}, 'true',
       'the client leaves without having read it');
    is(scalar @{ $res->{json}{choices} // [] }, 16, 'it is there all the same');
    is(generated($slow) - $before, 16 * 40, 'and was computed once');
    $slow->stop;
}

# one that waits and leaves

{
    my $first = $t->open_long(key('waits'), max_tokens => 300);
    my $second = $t->open_long(key('waits'), max_tokens => 300);

    $first->event;
    $second->close;
    like($first->response->{body} // '', qr/\[DONE\]/,
         'the second client leaves, the first one reads on');
}


# those that wait have a bound on their memory

{
    my $small = server('llm_queue 8 memory=1m;', @small);
    my @large = (key('large'), max_tokens => 400, rcvbuf => 4096,
                 grammar => 'root ::= "a"+ #' . 'x' x 100_000);
    my $first = $small->open_long(@large);

    $first->event;

    my @waiting = map { $small->open_long(@large) } 1 .. 12;
    my ($refused) = IO::Select->new(map { $_->{socket} } @waiting)
                    ->can_read(60);

    ($refused) = grep { $_->{socket} == ($refused // 0) } @waiting;
    $res = $refused ? $refused->response : {};
    is($res->{status}, 429, 'one of too many that wait') or diag($res->{body});
    is($res->{headers}{'retry-after'}, 1, 'may try again');
    $_->close for $first, @waiting;

    # and answers that are sent again to clients that do not read

    my @again = ('/v1/tokenize', { content => 'word ' x 18_000,
                                   with_pieces => \1 }, key('again'));

    $res = $small->post(@again);
    cmp_ok(length $res->{body}, '>', 400_000, 'a large answer');

    my @unread = map { $small->open(@again, rcvbuf => 4096) } 1 .. 2;

    $_->read_header for @unread;
    is($_->{headers}{'idempotent-replayed'}, 'true', 'sent again')
        for @unread;
    is($small->post(@again)->{status}, 429, 'not to any number of clients');
    $_->close(reset => 1) for @unread;
    ok(LLM::Test::wait_for(30, sub {
        $small->post(@again)->{status} == 200
    }), 'once they have gone it is');
    $small->stop;
}


# ---- ids, the log ----

for my $case ([ 'abc-1_2.3:4/5+6=7@8', 1 ], [ 'x' x 128, 1 ],
              [ 'x' x 129, 0 ], [ "a\tb", 0 ], [ 'a"b', 0 ], [ '', 0 ],
              [ "\xff", 0 ])
{
    my ($id, $taken) = @$case;
    my $name = $id =~ s/[^ -~]/?/gr;
    my @header = (headers => { 'X-Request-Id' => $id });
    my %got = (
        answer => $t->post('/v1/completions', \%ask, @header),
        error => $t->post('/v1/completions', { prompt => 5 }, @header),
        'no route' => $t->get('/v1/nothing', @header),
        models => $t->get('/v1/models', @header),
        health => $t->get('/health', @header),
        figures => $t->get('/figures', @header),
        stream => $t->post('/v1/completions', { %ask, stream => \1 },
                           @header));

    for my $what (sort keys %got) {
        my $out = $got{$what}{headers}{'x-request-id'} // 'none';

        $taken ? is($out, $id, "$what: x-request-id $name")
               : like($out, qr/^[0-9a-f]{32}$/,
                      "$what: not the x-request-id $name");
    }

    unlike($got{answer}{json}{id} // '', qr/\Q$id\E/,
           "the answer's id is ours") if $taken;
}

$t->stop;

# nginx's own refusals, and error pages

$t = server('limit_req_zone $binary_remote_addr zone=z:1m rate=1r/m;',
            locations => <<'END');
        error_page 403 = @page;
        location @page { return 403 "page\n"; }
        location /v1 { llm_api; client_max_body_size 1k; }
        location /auth { auth_basic a; auth_basic_user_file none; llm_api; }
        location /limit { limit_req zone=z; llm_api; }
        location /deny { deny all; llm_api; }
        location /other { deny all; error_page 403 = @page; }
        location /proxy { llm_api; llm_intercept_errors on;
                          error_page 404 = @proxy; }
        location @proxy { rewrite ^ /v1/nothing break;
                          proxy_pass http://127.0.0.1:%%PORT%%; }
        location = /health { llm_health; }
END

$t->get('/limit/models');

for my $case ([ 401, '/auth/completions' ], [ 413, '/v1/completions' ],
              [ 503, '/limit/completions' ], [ 403, '/deny/completions' ],
              [ 405, '/health' ], [ 404, '/proxy/nothing' ])
{
    my ($status, $path) = @$case;

    $res = $t->post($path, { prompt => 'x' x ($status == 413 ? 2000 : 1) },
                    headers => { 'X-Request-Id' => 'mine' });
    is($res->{status}, $status, "$status of $path");
    is($res->{headers}{'x-request-id'}, 'mine', 'with its x-request-id');
}

$res = $t->get('/other');
is($res->{status}, 403, 'a page for somebody else');
is($res->{headers}{'x-request-id'}, undef, 'without one');
$t->stop(allow => qr/none" failed|access forbidden|too large|limiting/);

$t = server("log_format l '\$llm_request_id|\$llm_user|\$llm_metadata|';\n"
            . 'access_log logs/l.log l;');

$t->post('/v1/completions', { %ask, user => "ann\nb\"", store => \1,
                              metadata => { a => "x\n", b => '1' } },
         headers => { 'X-Request-Id' => 'mine' });
$t->post('/v1/completions', { %ask, safety_identifier => 'hash' });
$t->post('/v1/completions', { %ask, user => 'u' x 5000,
                              metadata => { a => 'y' x 20000 } });
$t->post('/v1/completions', \%ask);

ok($t->wait_log(qr/^[0-9a-f]{32}\|-\|-\|$/m, 'l.log'), 'nothing to log');

my $log = $t->log('l.log');

like($log, qr/^mine\|ann\S*b\S*\|\{\S*a\S*:\S*x\S*n\S*\}\|$/m,
     'user and metadata on one line') or diag($log);
like($log, qr/^[0-9a-f]{32}\|hash\|-\|$/m, 'safety_identifier');
like($log, qr/^[0-9a-f]{32}\|u{500,512}\|\{\}\|$/m,
     'what is too long') or diag(substr $log, 0, 2000);

$t->stop;


# ---- a store that is full, that is old, that is off ----

$t = server('llm_idempotency 128k;');

my @big = ('/v1/tokenize', { content => 'word ' x 8000, with_pieces => \1 },
           key('big'));

$t->post(@big);
is($t->post(@big)->{headers}{'idempotent-replayed'}, undef,
   'an answer that is too large for the store');

my @old = ('/v1/completions', \%ask, key('old'));

$t->post(@old);
is($t->post(@old)->{headers}{'idempotent-replayed'}, 'true', 'one that fits');

for my $i (1 .. 60) {
    $res = $t->post('/v1/completions', \%ask, key("many $i"));
    is($res->{status}, 200, 'as many as there is no room for') if $i == 60;
}

is($t->post('/v1/completions', \%ask, key('many 60'))
       ->{headers}{'idempotent-replayed'}, 'true', 'the last one is kept');
is($t->post(@old)->{headers}{'idempotent-replayed'}, undef,
   'the oldest one is not');

# over a reload

my $kept = $t->post('/v1/completions', \%ask, key('kept'));

$t->reload;
$res = $t->post('/v1/completions', \%ask, key('kept'));
is($res->{body}, $kept->{body}, 'after a reload');
$t->stop;

$t = server('llm_idempotency 1m valid=1s;');
$t->post(@old);
ok(LLM::Test::wait_for(30, sub {
    return !$t->post(@old)->{headers}{'idempotent-replayed'};
}), 'an answer gets old');
$t->stop;

$t = server('llm_idempotency off;');
$t->post(@old);
is($t->post(@old)->{headers}{'idempotent-replayed'}, undef, 'off');
$t->stop;


# ---- workers: one store for all, and what becomes of one that dies ----

$t = server('', workers => 3);

my %replayed;

for my $i (1 .. 12) {
    $res = $t->post('/v1/completions', \%ask, key('workers'));
    $replayed{$res->{headers}{'idempotent-replayed'} // 'no'}++;
}

is_deeply(\%replayed, { no => 1, true => 11 }, 'one store for three workers');

{
    my $before = generated($t);
    my @s = map { $t->open('/v1/completions',
                           { %ask, max_tokens => 100, ignore_eos => \1 },
                           key('three at once')) } 1 .. 9;
    my @res = map { $_->response } @s;

    is(scalar(grep { $_->{status} == 200 && $_->{body} eq $res[0]{body} }
              @res), 9, 'nine at once for three workers');
    is(generated($t) - $before, 100, 'computed once');
}

$t->stop;

$t = server('', @small);
my $s = $t->open_long(key('killed'), max_tokens => 400, rcvbuf => 4096);

$s->event;

my ($worker) = $t->workers;

kill KILL => ref $worker ? $worker->{pid} : $worker;
ok(LLM::Test::wait_for(60, sub {
    my $h = eval { $t->get('/health') };
    return $h && $h->{status} == 200;
}), 'another worker starts');

$res = $t->post('/v1/completions', {
    prompt => 'a', stream => \1, ignore_eos => \1, max_tokens => 400 },
    key('killed'));
is($res->{status}, 200, 'the request of a dead worker');
is($res->{headers}{'idempotent-replayed'}, undef, 'is computed');
like($res->{body}, qr/\[DONE\]/, 'to its end');
$t->stop(allow => qr/exited on signal 9/);


# ---- its configuration ----

for my $bad ('llm_idempotency 1k;', 'llm_idempotency x;',
             'llm_idempotency 1m valid=x;', 'llm_idempotency 1m valid=0;',
             'llm_idempotency 1m what;', 'llm_idempotency off valid=1m;',
             'llm_idempotency 1m; llm_idempotency 1m;')
{
    my ($status, $out) = LLM::Test->new(http => $bad)->check;

    isnt($status, 0, "refused: $bad");
    like($out, qr/invalid|duplicate|unknown|beside/, 'and says why');
}

done_testing();
