#!/usr/bin/perl

# Large bodies are parsed beside the event loop: the worker answers others
# meanwhile, in what order and state the bodies' clients ever go.

use strict;
use warnings;

use IO::Select;
use LLM::Test;
use Test::More;
use Time::HiRes qw(sleep);

my $t = LLM::Test->new(
    http => 'llm_shared_memory 512k; client_max_body_size 8m;
             lingering_close off;',
    locations => <<'END')->start;
        location /v1 { llm_api; }
        location /memory { llm_api; client_body_buffer_size 8m; }
        location = /health { llm_health; access_log off; }
        location = /figures { llm_metrics json; }
END

my $size = 7_000_000;
my $pad = '"' . 'pad ' x 1_250_000 . '"';

my %bodies = (
    'a long prompt' => '{"max_tokens":1,"prompt":"' . 'word ' x ($size / 5)
                       . '"}',
    'many values'   => '{"max_tokens":1,"prompt":["a"],"metadata":{"x":['
                       . '1.5,' x 250_000 . "$pad]}}",
    'deep arrays'   => '{"max_tokens":1,"prompt":"a","metadata":{"x":['
                       . ('[' x 40 . ']' x 40 . ',') x 6_000 . "$pad]}}",
    'many keys'     => '{"max_tokens":1,"prompt":"a","metadata":{'
                       . join(',', map { qq("key$_":"$_") } 1 .. 120_000)
                       . ",\"pad\":$pad}}",
    'too many'      => '{"max_tokens":1,"prompt":["a"],"metadata":{"x":['
                       . '1,' x 300_000 . "$pad]}}",
);

my %status = ('a long prompt' => 413, 'many values' => 200,
              'deep arrays' => 200, 'many keys' => 200, 'too many' => 400);


# all of a body but the last byte

sub begin {
    my ($body, $path) = @_;

    return LLM::Client->open(port => $t->port, raw =>
        "POST $path/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        . "Content-Length: " . length($body) . "\r\n\r\n"
        . substr($body, 0, -1));
}


# kB of the worker's own memory, now and at most

sub memory {
    my ($pid) = $t->workers;

    open my $f, '<', "/proc/$pid/status" or die;

    my $status = join '', <$f>;
    my ($own) = $status =~ /^RssAnon:\s+(\d+)/m;
    my ($most) = $status =~ /^VmHWM:\s+(\d+)/m;

    return ($own, $most);
}


sub healthy { $t->get('/health')->{status} == 200 }

$t->post('/v1/completions', { prompt => 'a', max_tokens => 1 });

my ($own, $most) = memory();

for my $path ('/v1', '/memory') {
    my @names = sort keys %bodies;
    my @clients = map { begin($bodies{$_}, $path) } @names, @names;

    # whatever was sent is read before the next answer but one

    healthy() for 1 .. 20;

    $_->write('}') for @clients;

    # where bodies are parsed in the event loop, a round of it does nothing
    # else once it has one: no more answers than bodies come meanwhile

    my $sel = IO::Select->new(map { $_->{socket} } @clients);
    my $between = 0;

    while ((my @ready = $sel->can_read(0)) < @clients) {
        healthy() or last;
        $between++;
    }

    cmp_ok($between, '>', 3 * @clients,
           "$path: $between others were answered meanwhile");

    for my $i (0 .. $#clients) {
        my $name = $names[$i % @names];
        my $res = $clients[$i]->response;

        is($res->{status}, $status{$name}, "$path: $name: $status{$name}")
            or diag(substr $res->{body}, 0, 300);
    }
}

# the sanitizer keeps what is freed

SKIP: {
    skip 'memory under a sanitizer', 2 if $ENV{LLM_SAN};

    my ($now, $peak) = memory();

    # ten bodies are in memory, and what becomes of two of them

    cmp_ok($peak - $most, '<', 10 * 7_000 + 120_000,
           'memory of ten bodies at once: ' . ($peak - $most) . ' kB');
    cmp_ok($now - $own, '<', 20_000,
           'which comes back but for ' . ($now - $own) . ' kB');
}

# one after the other, each in another thread

SKIP: {
    skip 'memory under a sanitizer', 1 if $ENV{LLM_SAN};

    my $body = '{"prompt":"a","max_tokens":1,"metadata":{"x":['
               . '{"a":"b"},' x 100_000 . '1]}}';
    my ($before) = memory();

    $t->post('/v1/completions', $body) for 1 .. 12;

    my ($now) = memory();

    cmp_ok($now - $before, '<', 60_000,
           'memory after twelve bodies: ' . ($now - $before) . ' kB');
}

# nor do streams keep their bodies

SKIP: {
    skip 'memory under a sanitizer', 1 if $ENV{LLM_SAN};

    my ($before) = memory();
    my @streams = map {
        $t->open('/memory/completions',
                 '{"prompt":"a","max_tokens":1500,"ignore_eos":true,'
                 . '"stream":true,"metadata":{"x":"' . 'x' x 7_000_000
                 . '"}}')
    } 1 .. 4;

    $_->event for @streams;

    my ($now) = memory();

    cmp_ok($now - $before, '<', 14_000,
           'four streams of large bodies: ' . ($now - $before) . ' kB');
    $_->close for @streams;
}

# clients that do not wait for it

my @gone = map { begin($bodies{'many keys'}, '/v1') } 1 .. 6;

$_->write('}') for @gone;
$_->close(reset => 1) for @gone;

is($t->post('/v1/completions', $bodies{'many values'})->{status}, 200,
   'after clients that left');

# a worker that is to end finishes what it has

my @last = map { begin($bodies{'many values'}, '/v1') } 1 .. 4;

healthy() for 1 .. 20;
$_->write('}') for @last;
sleep 0.02;

my @old = $t->reload;

is($_->response->{status}, 200, 'a body that a reload found') for @last;

ok(LLM::Test::wait_for(20, sub { !grep { kill 0, $_ } @old }),
   'the old worker ends');

$t->stop;

done_testing();
