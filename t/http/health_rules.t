#!/usr/bin/perl

# llm_health's rules: live, ready, the models that it names; an engine that
# does not go on; a server that ends, and one that is reloaded.

use strict;
use warnings;

use LLM::Test;
use Test::More;

my $models = 'llm_model demo %%ROOT%%/models/demo.gguf alias=mini threads=2;'
           . ' llm_model lazy %%ROOT%%/models/demo.gguf lazy;'
           . ' llm_model bad %%DIR%%/none.gguf;';

my @rules = ('', 'ready', 'live', 'ready demo', 'ready mini lazy', 'ready bad',
             'ready demo bad', 'demo', 'lazy bad', 'bad');

my $locations = join "\n", 'location /v1 { llm_api; }', map {
    "location = /" . tr/ /-/r . "h { llm_health $_; }"
} @rules;

my ($t, $res);

sub health {
    my ($rule, %opt) = @_;

    $res = $t->get('/' . $rule =~ tr/ /-/r . 'h', %opt);

    return "$res->{status} $res->{json}{status}";
}


# ---- one serves, one is idle, one has failed ----

$t = LLM::Test->new(workers => 3, model => $models, locations => $locations);
$t->start(cold => 1);

ok(LLM::Test::wait_for(30, sub { health('demo') eq '200 ok' }),
   'the good one is loaded');
ok(LLM::Test::wait_for(30, sub { health('bad') eq '503 error' }),
   'the bad one is not');

for (   [ '', '200 degraded', 'demo lazy bad' ],
        [ 'ready', '200 degraded', 'demo lazy bad' ],
        [ 'live', '200 ok', 'demo lazy bad' ],
        [ 'ready demo', '200 ok', 'demo' ],
        [ 'ready mini lazy', '200 ok', 'demo lazy' ],
        [ 'ready bad', '503 error', 'bad' ],
        [ 'ready demo bad', '503 error', 'demo bad' ],
        [ 'demo', '200 ok', 'demo' ],
        [ 'lazy bad', '200 degraded', 'lazy bad' ],
        [ 'bad', '503 error', 'bad' ])
{
    my ($rule, $want, $listed) = @$_;
    my %got = map { health($rule) => 1 } 1 .. 20;

    is(join(', ', keys %got), $want, "llm_health $rule; on all workers");
    is(join(' ', map { $_->{id} } @{ $res->{json}{models} }), $listed,
       'the models that it is about');
    is($res->{headers}{'retry-after'}, $want =~ /^503/ ? 1 : undef,
       'when to ask again');
}

is($t->post('/v1/completions', { model => 'demo', prompt => 'a',
                                 max_tokens => 1 })->{status}, 200,
   'the good one goes on');

symlink "$LLM::Test::ROOT/models/demo.gguf", $t->dir . '/none.gguf' or die $!;
ok(LLM::Test::wait_for(60, sub { health('ready demo bad') eq '200 ok' }),
   'the file comes, and both serve');

$t->stop;


# ---- an engine that does not go on ----

$t = LLM::Test->new(workers => 2, listen => 'reuseport',
                    server => 'add_header X-Worker $pid always;',
                    model => LLM::Test::default_model(),
                    locations => <<'END')->start;
        location /v1 { llm_api; }
        location = /liveh { llm_health live; }
        location = /readyh { llm_health ready; }
        location = /health { llm_health; }
END

my $engine = $t->engine_worker;

sub elsewhere {
    for (1 .. 300) {
        $res = $t->get('/v1/models', keepalive => 1);
        return $res->{socket} if $res->{headers}{'x-worker'} != $engine;
        close $res->{socket};
    }

    die 'no connection gets elsewhere';
}

my ($here, $there) = map { elsewhere() } 1 .. 2;

sub here { return health($_[0], socket => $here, keepalive => 1) }

is(here('live'), '200 ok', 'an engine that sleeps is live');

$t->pause($engine);

my $ask = LLM::Client->open(socket => $there, method => 'POST',
    path => '/v1/completions', body => { prompt => 'a', max_tokens => 1 });

ok(LLM::Test::wait_for(30, sub { here('live') eq '503 error' }),
   'one that does not come awake is not');
is(here('ready'), '503 error', 'nor ready');

$t->kill('CONT', $engine);
is($ask->response->{status}, 200, 'it goes on');
ok(LLM::Test::wait_for(30, sub { here('live') eq '200 ok'
                                 && here('ready') eq '200 ok' }),
   'and is live and ready');

$t->stop;


# ---- the end of a server ----

# on connections that were accepted before: nginx closes its sockets at once

sub begun {
    my ($line) = @_;

    return LLM::Client->open(port => $t->port, raw => "$line HTTP/1.1\r\n");
}

sub finish {
    my ($c, $body) = @_;

    $c->write("Host: localhost\r\nConnection: close\r\n"
              . ($body ? "Content-Type: application/json\r\nContent-Length: "
                         . length($body) . "\r\n\r\n$body" : "\r\n"));
    return $c->response;
}

my %signals = (QUIT => 'draining', HUP => 'ok');

for my $signal (sort keys %signals) {
    for my $workers (1, 3) {
        my $name = "$signal, $workers worker(s)";

        $t = LLM::Test->new(workers => $workers,
                            server => 'add_header X-Worker $pid always;',
                            locations => <<'END')
            location /v1 { llm_api; }
            location = /liveh { llm_health live; }
            location = /readyh { llm_health ready; }
            location = /health { llm_health; }
END
            ->start;

        my $stream = $t->open_long(max_tokens => 1000);
        $stream->event;

        my @asks = map { begun('POST /v1/completions') } 1 .. 2;
        my %health = map { $_ => begun("GET /$_") } qw(health readyh liveh);
        my %old = map { $_ => 1 } $t->workers;

        # the last of them is accepted, too
        my $probe = $t->get('/v1/models');

        $t->kill($signal);

        ok(LLM::Test::wait_for(30, sub {
            $signal eq 'QUIT'
                ? !IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                                         PeerPort => $t->port)
                : grep({ !$old{$_} } $t->workers)
                  && !grep { $old{$t->get('/health')->{headers}{'x-worker'}} }
                           1 .. 10
        }), "$name: it has begun");

        for (sort keys %health) {
            my $want = $signals{$signal};
            my $res = finish($health{$_});

            $want = 'ok' if $_ eq 'liveh';
            is("$res->{status} $res->{json}{status}",
               ($want eq 'ok' ? 200 : 503) . " $want", "$name: $_");
        }

        is(finish($_, '{"prompt":"a","max_tokens":1}')->{status}, 200,
           "$name: what had come is served all the same") for @asks;

        my @events = $stream->events;
        is($events[-1]{data}, '[DONE]', "$name: so is a stream");

        $t->stop(name => $name, signal => 'QUIT');
    }
}


# ---- what is refused ----

for (   [ 'llm_health other;', '"llm_health" names "other", but there is no '
          . 'such "llm_model"' ],
        [ 'llm_health ready demo other;', '"llm_health" names "other"' ],
        [ 'llm_health reddy;', '"llm_health" names "reddy"' ],
        [ 'llm_health live demo;', 'with "live" has no other parameters' ],
        [ 'llm_health ready; llm_health live;', 'is duplicate' ],
        [ 'llm_health ready; llm_api;', 'conflicts with another content' ])
{
    my ($conf, $why) = @$_;
    my $t = LLM::Test->new(locations => "location = /h {\n$conf\n}");
    my ($rc, $text) = $t->check;

    ok($rc != 0 && $text =~ /\[emerg\].*\Q$why\E.* in \S+nginx\.conf:(\d+)/,
       "refused: $conf") or diag($text);
}

done_testing();
