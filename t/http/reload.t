#!/usr/bin/perl

# Reload and graceful quit let every running stream end whole, with one
# worker and with several; TERM ends at once.  See also reload_load.t,
# shutdown.t, swap.t.

use strict;
use warnings;

use LLM::Test;
use Test::More;
use Time::HiRes qw(sleep);


sub whole {
    my ($s, $name) = @_;

    my @events = $s->events;

    ok(!$s->{truncated} && @events && ($events[-1]{data} // '') eq '[DONE]',
       "$name: stream is whole")
        or diag(explain($events[-1]));

    return $s->{text};
}


for my $workers (1, 3) {
    my $name = "$workers worker(s)";
    my $t = LLM::Test->new(workers => $workers)->start;
    my $text = whole($t->open_long(max_tokens => 1000, temperature => 0),
                     $name);

    my @old = $t->workers;

    is(scalar @old, $workers, "$name: there are as many");

    for my $round (1 .. 3) {
        my @streams = map { $t->open_long(max_tokens => 1000,
                                          temperature => 0) } 1 .. 6;

        $_->event for @streams;
        $t->reload;

        # new requests are answered while old ones drain
        my $res = $t->post('/v1/completions',
                           { prompt => 'a', max_tokens => 1 });

        is($res->{status}, 200, "$name: a new request meanwhile")
            or diag($res->{body});

        is(whole($_, $name), $text, "$name: the same text") for @streams;
        ok($t->wait_ready, "$name: ready again");
    }

    ok(LLM::Test::wait_for(20, sub {
        my %now = map { $_ => 1 } $t->workers;
        !grep { $now{$_} } @old;
    }), "$name: the old workers have ended");

    ok(LLM::Test::wait_for(20, sub { $t->workers == $workers }),
       "$name: as many as before");

    my @streams = map { $t->open_long(max_tokens => 1000, temperature => 0) }
                  1 .. 4;

    $_->event for @streams;
    $t->kill('QUIT');
    is(whole($_, "$name, quit"), $text, "$name, quit: the same text")
        for @streams;

    $t->stop(signal => 'QUIT', name => $name);
}


# requests that another worker has accepted and the engine not seen: they
# upload their bodies, or wait for limit_req; worker 0 has nothing to do

sub socket_elsewhere {
    my ($t) = @_;

    my $engine = $t->engine_worker;

    for (1 .. 300) {
        my $res = $t->get('/v1/models', keepalive => 1);

        return $res->{socket} if $res->{headers}{'x-worker'} != $engine;

        close $res->{socket};
    }

    die 'no connection gets elsewhere';
}

# a request of which so many bytes are sent, the rest is kept

sub begin {
    my ($t, $path, $bytes) = @_;

    my $body = '{"prompt": "a", "max_tokens": 2, "temperature": 0}';
    my $text = "POST $path HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
             . 'Content-Length: ' . length($body) . "\r\n\r\n$body";

    $bytes += length($text) if $bytes <= 0;

    my $s = LLM::Client->open(socket => socket_elsewhere($t),
                              raw => substr($text, 0, $bytes));

    $s->{rest} = substr($text, $bytes);

    return $s;
}

# none of the connections is idle any more, else nginx would close it

sub taken {
    my ($t, $status) = @_;

    return sleep 0.2 if !$status;

    return LLM::Test::wait_for(20, sub {
        $t->get('/status')->{body} =~ /Waiting: 0\b/
    });
}

# the only kind in a round, else one would hold worker 0 for the other

my $status = `nginx -V 2>&1` =~ /--with-http_stub_status_module/
             ? 'location = /status { stub_status; }' : '';

# and how long each round goes on after the reload: a request that has begun is
# not forgotten when a connection without one is, after five seconds

for my $kind ([ 'uploads', '/v1/completions', -10, 0.5, 7 ],
              [ 'half a header', '/v1/completions', 9, 0.5, 0.5 ],
              [ 'delayed by limit_req', '/slow/v1/completions', 0, 0.5, 0.5 ])
{
    my ($name, $path, $bytes, @rounds) = @$kind;
    my $t = LLM::Test->new(workers => 3, listen => 'reuseport',
        http => 'limit_req_zone $request_method zone=slow:1m rate=40r/m;',
        server => 'add_header X-Worker $pid always; '
                . 'location /slow { llm_api; limit_req zone=slow burst=20; }'
                . $status)->start;

    for my $round (1 .. @rounds) {
        my @streams = map { begin($t, $path, $bytes) } 1 .. 6;

        ok(taken($t, $status), "$name: all are there, round $round");

        my @old = $t->reload;

        ok(LLM::Test::wait_for(20, sub {
            my @quit = $t->log =~ /gracefully shutting down/g;
            @quit >= 3 * $round;
        }), "$name: the old workers drain");

        sleep $rounds[$round - 1];

        $_->write($_->{rest}) for @streams;

        is_deeply([ map { $_->response->{status} } @streams ], [ (200) x 6 ],
                  "$name: all are answered, round $round");

        ok(LLM::Test::wait_for(20, sub {
            my %now = map { $_ => 1 } $t->workers;
            !grep { $now{$_} } @old;
        }), "$name: the old workers have ended");
    }

    $t->stop(name => $name);
}


# another number of workers, and of models

{
    my $t = LLM::Test->new(workers => 1)->start;
    my $conf = $t->conf;
    my %ask = (max_tokens => 1200, temperature => 0);
    my $text = whole($t->open_long(%ask), 'another configuration');

    for my $workers (4, 2, 1, 3) {
        my $name = "reload to $workers worker(s)";
        my @streams = map { $t->open_long(%ask) } 1 .. 4;

        $_->event for @streams;

        # the model of before is another one's neighbour now, or was

        my $more = $workers % 2 ? '' : 'llm_model aa '
            . LLM::Test::random_model(2, 40960) . ' threads=1 parallel=2;';

        $t->write_conf($conf =~ s/^(worker_processes) .*/$1 $workers;/mr
                            =~ s/^( +)(llm_model )/$1$more$2/mr);
        $t->reload;

        is(whole($_, $name), $text, "$name: the same text") for @streams;
        ok(LLM::Test::wait_for(20, sub { $t->workers == $workers }),
           "$name: there are as many");
        ok($t->wait_ready, "$name: ready");
        is(scalar @{ $t->get('/figures')->{json}{models} }, $more ? 2 : 1,
           "$name: models");
        is(whole($t->open_long(%ask), $name), $text,
           "$name: the new ones have the same text");
    }

    $t->stop(name => 'another configuration');
}


# many reloads in a row

{
    my $t = LLM::Test->new(workers => 2)->start;
    my @streams = map { $t->open_long(max_tokens => 800) } 1 .. 4;

    $_->event for @streams;

    for (1 .. 5) {
        $t->kill('HUP');
        sleep 0.05;
    }

    whole($_, 'a burst of reloads') for @streams;

    ok($t->wait_ready, 'a burst of reloads: serves');

    ok(LLM::Test::wait_for(20, sub { $t->workers == 2 }),
       'a burst of reloads: two workers are left');

    $t->stop(name => 'a burst of reloads');
}


# TERM

{
    my $t = LLM::Test->new(workers => 2)->start;
    my @streams = map { $t->open_long(max_tokens => 3900) } 1 .. 4;

    $_->event for @streams;
    $t->stop(name => 'TERM');

    my @ends = map { my @e = $_->events; $e[-1] } @streams;

    is(scalar(grep { $_->{json} && $_->{json}{error} } @ends), 4,
       'TERM does not wait for streams, each client has a last word')
        or diag(explain(\@ends));
}

done_testing();
