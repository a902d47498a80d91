#!/usr/bin/perl

# HTTP/3: answers, errors and large bodies are those of HTTP/1.1; streams in
# parallel, reset, held by flow control, gone with their connection; a reload.
#
# Debian's nginx has no HTTP/3.  CONTRIBUTING.md says how to run this with one
# that has.

use strict;
use warnings;

use LLM::H3;
use LLM::Made qw(certificate);
use LLM::Test;
use Test::More;

if (my $why = LLM::H3::missing()) {
    plan skip_all => $why;
}

my $WINDOW = 16384;

my $file = LLM::Test::random_model(4, 40960);

my $t = LLM::Test->new(workers => 3,
    model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=1 parallel=8'
           . ' default;'
           . " llm_model one $file threads=1 parallel=1;"
           . " llm_model eight $file threads=1 parallel=8;",
    server => <<'SERVER', locations => <<'LOCATIONS');
        listen 127.0.0.1:%%PORT2%% quic reuseport;
        listen 127.0.0.1:%%PORT2%% ssl;
        http3 on;
        http3_stream_buffer_size 16k;
        ssl_certificate cert.pem;
        ssl_certificate_key key.pem;
SERVER
        location /v1 { llm_api; }
        location /small { llm_stream_buffer 16k; llm_api; }
        location = /health { llm_health; }
        location = /figures { llm_metrics json; }
LOCATIONS

my $dir = $t->dir;

certificate($dir)
    or plan skip_all => 'no certificate from openssl';

$t->start;

my %ask = (prompt => 'one two', temperature => 0, seed => 7,
           max_tokens => 200, ignore_eos => \1);
my %long = (%ask, max_tokens => 30_000, stream => \1);


sub connection { LLM::H3->new(port => $t->{port2}, window => $WINDOW) }


# bytes but for what differs in each answer

sub bare {
    my ($body) = @_;

    $body =~ s/"id":"[^"]*"/"id":""/g;
    $body =~ s/"created":\d+/"created":0/g;
    $body =~ s/"cached_tokens":\d+/"cached_tokens":0/g;

    return $body;
}


sub figures {
    my ($model) = @_;

    my $json = $t->get('/figures')->{json};

    return { %{ (grep { $_->{name} eq $model } @{ $json->{models} })[0] },
             workers => $json->{workers} };
}


sub unsent {
    my $sum = 0;

    $sum += $_->{unsent} for @{ figures('demo')->{workers} };

    return $sum;
}


# every request that there was has ended

sub idle {
    my ($model) = @_;

    return LLM::Test::wait_for(20, sub {
        my $f = figures($model);

        !grep { $f->{$_} } qw(running waiting parked kv_pages_used);
    });
}


sub whole {
    my ($s, $text, $name) = @_;

    is((LLM::H2::events($s))[-1], '[DONE]', "$name: whole");
    is(LLM::H2::text($s), $text, "$name: the same text");
}


# ---- the answers of HTTP/1.1 ----

my $c = connection();

is($c->response('GET', '/health')->{status}, 200, '/health');

my $chat = { messages => [ { role => 'user', content => 'What is 2 + 2?' } ],
             temperature => 0, seed => 7, max_tokens => 50 };
my $large = 'word ' x 60_000;

for my $case ([ 'a chat', 200, '/v1/chat/completions', $chat ],
              [ 'a streamed chat', 200, '/v1/chat/completions',
                { %$chat, stream => \1 } ],
              [ 'a stream', 200, '/v1/completions', { %ask, stream => \1 } ],
              [ 'half a JSON text', 400, '/v1/completions', '{"prompt": "a' ],
              [ 'a wrong field', 400, '/v1/completions', { prompt => {} } ],
              [ 'no such model', 404, '/v1/completions',
                { %ask, model => 'none' } ],
              [ '300 kB of prompt', 400, '/v1/completions',
                { %ask, prompt => $large } ],
              [ '300 kB beside a prompt', 200, '/v1/completions',
                { %ask, metadata => { pad => $large } } ])
{
    my ($name, $status, $path, $body) = @$case;

    my $want = $t->post($path, $body);
    my $got = $c->response('POST', $path, $body);

    is($want->{status}, $status, "$name over HTTP/1.1");
    is($got->{status}, $status, "$name: the same status");
    is($got->{headers}{'content-type'}, $want->{headers}{'content-type'},
       "$name: the same type");
    is_deeply([ split /\n\n/, bare($got->{data}) ],
              [ split /\n\n/, bare($want->{body}) ],
              "$name: the same, event by event");
}


# ---- eight at once on one connection ----

{
    my @ids = map { $c->post('/v1/completions', { %long, model => 'eight' }) }
              1 .. 8;

    ok($c->wait_event($_, 3), 'one of eight runs') for @ids;
    ok(LLM::Test::wait_for(20, sub { figures('eight')->{running} == 8 }),
       'all at the same time');

    $c->rst($_) for @ids;
    ok(idle('eight'), 'all are reset: none runs');
    cmp_ok(figures('eight')->{generation_tokens}, '<',
           8 * $long{max_tokens}, 'before all was computed');

    my $want = $t->post('/v1/completions', \%ask)->{json}{choices}[0]{text};

    @ids = map { $c->post('/v1/completions', { %ask, stream => \1 }) } 1 .. 8;

    whole($c->wait_done($_), $want, 'one of eight') for @ids;
}


# ---- clients that go away ----

# The code takes the only place of the model and gives it up: the next request
# has it before what was asked for is computed.

sub gone {
    my ($name, $code) = @_;

    my $before = figures('one')->{generation_tokens};

    $code->();

    my $s = $c->response('POST', '/v1/completions',
                         { %long, model => 'one', max_tokens => 1 });

    is((LLM::H2::events($s))[-1], '[DONE]', "$name: the place is free");
    cmp_ok(figures('one')->{generation_tokens} - $before, '<',
           $long{max_tokens}, "$name: before all was computed");
    ok(idle('one'), "$name: nothing runs");
}


for my $round (1 .. 3) {
    gone('reset in mid-stream', sub {
        my $id = $c->post('/v1/completions', { %long, model => 'one' });

        ok($c->wait_event($id, 3), 'it streams');
        $c->rst($id);
    });
}

gone('reset without streaming', sub {
    my $id = $c->post('/v1/completions',
                      { %long, model => 'one', stream => \0 });

    ok(LLM::Test::wait_for(20, sub { figures('one')->{running} == 1 }),
       'it runs');
    $c->rst($id);
});

gone('reset while queued', sub {
    my @ids = map { $c->post('/v1/completions', { %long, model => 'one' }) }
              1 .. 3;

    ok(LLM::Test::wait_for(20, sub { figures('one')->{waiting} == 2 }),
       'two are queued');
    $c->rst($_) for reverse @ids;
});

gone('reset in the midst of its body', sub {
    my $id = $c->post('/v1/completions', { %long, model => 'one' },
                      send => 20);

    $c->response('GET', '/health');
    $c->rst($id);
});

gone('closed with its connection', sub {
    my $other = connection();
    my $id = $other->post('/v1/completions', { %long, model => 'one' });

    ok($other->wait_event($id, 3), 'it streams');
    is($other->close, 0, 'the client has closed');
});


# ---- clients that do not read ----

# parked for good: who only waits for the worker to catch up is not

sub parked {
    my ($same, $last) = (0, -1);

    return LLM::Test::wait_for(60, sub {
        my $f = figures('demo');
        my $still = $f->{parked} == 1 && $f->{running} == 0
                    && $f->{generation_tokens} == $last;

        $last = $f->{generation_tokens};
        $same = $still ? $same + 1 : 0;
        $same >= 10;
    });
}

{
    my $much = { %ask, max_tokens => 1000, logprobs => 5, stream => \1 };
    my $want = bare($t->post('/small/completions', $much)->{body});
    my $hold = connection();

    cmp_ok(length $want, '>', 6 * $WINDOW, 'many times what is read of it');

    my $id = $hold->post('/small/completions', $much, hold => 1);

    ok(parked(), 'held by its client: parked')
        or diag(explain(figures('demo')));

    my $had = figures('demo')->{generation_tokens};

    for my $other ($hold, $c) {
        my $s = $other->response('POST', '/v1/completions',
                                 { %ask, stream => \1 });

        is((LLM::H2::events($s))[-1], '[DONE]', 'another is served');
    }

    is(figures('demo')->{generation_tokens} - $had, 2 * $ask{max_tokens},
       'nothing else was computed');

    my $s = $hold->{streams}{$id};

    ok(!$s->{done}, 'it is still held');
    cmp_ok(length $s->{data}, '<=', $WINDOW, 'within its window');

    $hold->release($id);
    $hold->wait_done($id);
    ok($s->{done} && bare($s->{data}) eq $want, 'read at last: it is whole');

    $id = $hold->post('/small/completions', $much, hold => 1);
    ok(parked(), 'held again');
    $hold->rst($id);
    ok(idle('demo'), 'and reset: nothing stays');
    ok(LLM::Test::wait_for(20, sub { unsent() == 0 }), 'nor is unsent');

    is($hold->close, 0, 'its client closes the connection');
}


# ---- reload ----

# nginx's old and new workers read from one UDP socket, and drop each other's
# packets: with a port of their own the old ones lose none.

{
    my $ask = { %ask, max_tokens => 1500 };
    my $want = $t->post('/v1/completions', $ask)->{json}{choices}[0]{text};
    my @ids = map { $c->post('/v1/completions', { %$ask, stream => \1 }) }
              1 .. 3;

    $c->wait_event($_) for @ids;

    $t->{port2} = LLM::Test::free_port();
    $t->write_conf($t->conf);

    my @old = $t->reload;

    whole($c->wait_done($_), $want, 'a stream over a reload') for @ids;

    is($c->close, 0, 'reload: the client closes');
    ok(LLM::Test::wait_for(20, sub {
        my %now = map { $_ => 1 } $t->workers;
        !grep { $now{$_} } @old;
    }), 'reload: the old workers have ended');
    ok($t->wait_ready, 'reload: ready again');

    $c = connection();
    is($c->response('POST', '/v1/completions', \%ask)->{status}, 200,
       'reload: a new connection');
    is($c->close, 0, 'and its end');
}

$t->stop;

done_testing();
