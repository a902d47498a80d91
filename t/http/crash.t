#!/usr/bin/perl

# kill -9: of a worker that only has clients (its places come free within a
# second, nobody else notices), and of worker 0 with the engine (its own
# clients are cut, the others get an error within a second, then 503 with
# Retry-After until it serves again by itself).

use strict;
use warnings;

use LLM::Test;
use Test::More;
use Time::HiRes qw(sleep);

# Each worker has a listening socket of its own, so that all get clients; and
# nobody is parked for not reading.

my $t = LLM::Test->new(workers => 3, listen => 'reuseport',
    server => 'llm_stream_buffer 64m;',
    model => 'llm_model demo ' . LLM::Test::random_model(2, 40960)
           . ' threads=1 parallel=6;',
    location => 'add_header X-Worker $pid always;')->start;

my %long = (prompt => 'a', ignore_eos => \1, temperature => 0);
my $LONG = 38_000;      # tokens, more than what is done here takes time for

my $text = $t->post('/v1/completions', { %long, max_tokens => 3000 })
             ->{json}{choices}[0]{text};


# a stream that the worker of this pid has accepted, or none of those listed

sub stream_at {
    my ($is, @is_not) = @_;

    for (1 .. 300) {
        my $s = $t->open_long(temperature => 0, max_tokens => $LONG);

        $s->event or die 'no event';

        my $pid = $s->{headers}{'x-worker'};

        return $s if $is ? $pid == $is : !grep { $pid == $_ } @is_not;

        $s->close;
    }

    die 'no connection gets there';
}


# a connection whose worker is known without a request: by trial with HEAD
# requests that keep it alive

sub socket_not_at {
    my ($pid) = @_;

    for (1 .. 300) {
        my $res = $t->get('/v1/models', keepalive => 1);

        return $res->{socket} if $res->{headers}{'x-worker'} != $pid;

        close $res->{socket};
    }

    die 'no connection gets elsewhere';
}


sub ask {
    my ($pid, %fields) = @_;

    return LLM::Client->open(socket => socket_not_at($pid), method => 'POST',
        path => '/v1/completions', keepalive => 1,
        body => { prompt => 'a', ignore_eos => \1, temperature => 0,
                  max_tokens => $LONG, %fields });
}


# ---- a client worker

for my $round (1 .. 3) {
    my $name = "client worker $round";
    my $engine = $t->engine_worker;
    my ($victim) = grep { $_ != $engine } $t->workers;

    my @cut = map { stream_at($victim) } 1 .. 4;
    my @others = map { stream_at(undef, $victim) } 1 .. 2;

    ok(LLM::Test::wait_for(10, sub { $t->figures->{running} == 6 }),
       "$name: all places are taken");

    # this one waits for a place

    my $next = ask($victim, max_tokens => 1, stream => \1);

    ok(LLM::Test::wait_for(10, sub { $t->figures->{waiting} == 1 }),
       "$name: one waits");

    $t->kill('KILL', $victim);
    ok($next->event, "$name: its places are free");

    for my $s (@cut) {
        $s->events;
        ok($s->{truncated}, "$name: its streams are cut");
    }

    for my $s (@others) {
        1 while length $s->{text} < length $text && $s->event;

        ok(index($s->{text}, $text) == 0,
           "$name: another stream goes on, with its text");
        $s->close;
    }

    ok(LLM::Test::wait_for(10, sub { $t->workers == 3 }),
       "$name: it is there again");
    is($t->engine_worker, $engine, "$name: the engine did not notice");
}


# ---- worker 0

for my $round (1 .. 2) {
    my $name = "worker 0, $round";
    my $engine = $t->engine_worker;

    my @own = map { stream_at($engine) } 1 .. 2;
    my @others = map { stream_at(undef, $engine) } 1 .. 2;
    my @whole = (ask($engine), ask($engine));

    ok(LLM::Test::wait_for(10, sub { $t->figures->{running} == 6 }),
       "$name: six run");

    # the last places are taken: a stream among these has sent nothing yet

    my @more = (ask($engine), ask($engine, stream => \1));

    ok(LLM::Test::wait_for(10, sub {
        my $f = $t->figures;
        $f->{running} == 6 && $f->{waiting} == 2
    }), "$name: two wait");

    $t->kill('KILL', $engine);

    for my $s (@others) {
        my @events = $s->events;

        ok(!$s->{truncated} && $events[-1]{json}{error},
           "$name: another worker's stream ends with an error event")
            or diag(explain($events[-1]));
    }

    for my $c (@whole, @more) {
        my $res = $c->response;

        is($res->{status}, 503, "$name: 503, if nothing was sent yet");
        ok($res->{json} && $res->{json}{error}{message},
           "$name: in JSON") or diag($res->{body});
        like($res->{headers}{'retry-after'} // '', qr/^[1-9]\d*$/,
             "$name: with Retry-After");
    }

    for my $s (@own) {
        $s->events;
        ok($s->{truncated}, "$name: its own streams are cut");
    }

    # nobody helps; meanwhile there is one answer only

    my %seen;

    ok(LLM::Test::wait_for(60, sub {
        my $res = $t->post('/v1/completions', { %long, max_tokens => 1 });

        $seen{$res->{status} == 503 && !$res->{headers}{'retry-after'}
              ? '503 without Retry-After' : $res->{status}}++;
        $res->{status} == 200;
    }), "$name: it serves again");

    is(join(' ', grep { $_ ne '200' && $_ ne '503' } keys %seen), '',
       "$name: and says 503 with Retry-After until then");
    isnt($t->engine_worker, $engine, "$name: in a new process");
    ok($t->post('/v1/completions', { %long, max_tokens => 3000 })
         ->{json}{choices}[0]{text} eq $text, "$name: the same text");
    ok(LLM::Test::wait_for(10, sub { $t->workers == 3 }),
       "$name: three workers");
}

# ---- worker 0 of an old configuration, which nobody starts again

{
    my $name = 'worker 0, draining';
    my $engine = $t->engine_worker;
    my @others = map { stream_at(undef, $engine) } 1 .. 2;
    my $whole = ask($engine);

    ok(LLM::Test::wait_for(10, sub { $t->figures->{running} == 3 }),
       "$name: three run");

    my %old = map { $_ => 1 } $t->reload;

    ok($t->wait_ready, "$name: the new one serves");

    $t->kill('KILL', $engine);

    for my $s (@others) {
        my @events = $s->events;

        ok(!$s->{truncated} && $events[-1]{json}{error},
           "$name: a stream ends with an error event")
            or diag(explain($events[-1]));
    }

    is($whole->response->{status}, 503, "$name: 503, if nothing was sent yet");
    ok(LLM::Test::wait_for(10, sub { !grep { $old{$_} } $t->workers }),
       "$name: the old workers have ended");
    is($t->post('/v1/completions', { %long, max_tokens => 1 })->{status}, 200,
       "$name: the new ones did not notice");
}

$t->stop(allow => 'exited on signal 9');

done_testing();
