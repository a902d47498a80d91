#!/usr/bin/perl

# No request holds a worker's event loop for more than 20 ms: between two
# waits for events the worker's thread takes less CPU time than that, whatever
# it is sent.  A library that nginx is started with keeps the longest of these
# times; CPU time, for a busy machine would lengthen any other.  It lengthens
# that, too, now and then (caches, a host that is shared): what takes too long
# is tried again, and is too long if it always is.

use strict;
use warnings;

use Compress::Zlib;
use LLM::Test;
use Test::More;

plan skip_all => 'the sanitizer is preloaded already' if $ENV{LLM_SAN};

my $LIMIT = 20_000;     # us

my $t = LLM::Test->new(
    http => 'client_max_body_size 9m; llm_shared_memory 64m;
             client_body_buffer_size 8m; llm_queue 64;',
    locations => <<'EOL');
        location /v1 { llm_api; }
        location /file { llm_api; client_body_buffer_size 16k; }
        location /front/ { client_body_buffer_size 16k;
                           proxy_pass http://127.0.0.1:%%PORT%%/v1/;
                           add_header x-key $llm_route_key always; }
        location = /health { llm_health; }
        location = /figures { llm_metrics json; }
        location = /metrics { llm_metrics; }
EOL

my $lib = $t->preload('turns', <<'EOC');
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static uint64_t  *longest;

static void __attribute__((constructor))
init(void)
{
    int  fd;

    fd = open(getenv("TURNS"), O_RDWR);
    longest = mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
}

static uint64_t
cpu_us(void)
{
    struct timespec  t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);

    return (uint64_t) t.tv_sec * 1000000 + (uint64_t) t.tv_nsec / 1000;
}

int
epoll_wait(int ep, struct epoll_event *events, int n, int timeout)
{
    int              rc;
    uint64_t         took;
    static int     (*real)(int, struct epoll_event *, int, int);
    static uint64_t  begin;

    if (real == NULL) {
        real = (int (*)(int, struct epoll_event *, int, int))
               dlsym(RTLD_NEXT, "epoll_wait");

    } else {
        took = cpu_us() - begin;

        if (took > *longest) {
            *longest = took;
        }
    }

    rc = real(ep, events, n, timeout);
    begin = cpu_us();

    return rc;
}
EOC

my $file = $t->dir . '/longest';

$t->write_file('longest', "\0" x 4096);

{
    local $ENV{LD_PRELOAD} = $lib;
    local $ENV{TURNS} = $file;

    $t->start;
}


# the longest turn since it was asked last, in us

sub longest {
    open my $f, '+<:raw', $file or die "$file: $!";
    read $f, my $bytes, 8;
    seek $f, 0, 0;
    syswrite $f, "\0" x 8;

    return unpack 'Q', $bytes;
}


# what this does takes no turn that is too long

sub short_turns {
    my ($name, $code) = @_;

    my $least;

    for (1 .. 15) {
        longest();
        $code->();

        my $us = longest();

        $least = $us if !defined $least || $us < $least;
        last if $least < $LIMIT;
    }

    cmp_ok($least, '<', $LIMIT, "$name: turns of $least us at most");
}


my $pad = '"' . 'pad ' x 1_000_000 . '"';
my %ask = (model => 'demo', max_tokens => 1);

my @cases = (
    [ 'a long prompt', 'completions',
      '{"max_tokens":1,"prompt":"' . 'word ' x 1_500_000 . '"}' ],
    [ 'many numbers', 'completions', '{"max_tokens":1,"prompt":["a"],'
      . '"metadata":{"x":[' . '1.5,' x 250_000 . "$pad]}}" ],
    [ 'too many of them', 'completions', '{"max_tokens":1,"prompt":["a"],'
      . '"metadata":{"x":[' . '1,' x 2_000_000 . "$pad]}}" ],
    [ 'many messages', 'chat/completions', '{"max_tokens":1,"messages":['
      . join(',', ('{"role":"user","content":"' . 'a' x 60 . '"}') x 40_000)
      . ']}' ],
    [ 'many keys', 'completions', '{"max_tokens":1,"prompt":"a",'
      . '"metadata":{'
      . join(',', map { qq("key$_":"$_") } 1 .. 120_000) . '}}' ],
    [ 'many tokens', 'completions', '{"max_tokens":1,"prompt":['
      . join(',', (5) x 200_000) . ']}' ],
    [ 'escapes', 'completions', '{"max_tokens":1,"prompt":"'
      . '\u00e9' x 1_000_000 . '"}' ],
    [ 'no JSON', 'completions', '[' x 7_000_000 ],
    [ 'broken at its end', 'completions', '{"prompt":"'
      . 'a' x 7_000_000 . "\xff\"}" ],
    [ 'compressed', 'completions', Compress::Zlib::memGzip(
          '{"max_tokens":1,"prompt":"' . 'word ' x 1_500_000 . '"}'),
      'Content-Encoding' => 'gzip' ],
    [ 'compressed, and larger than it may be', 'completions',
      Compress::Zlib::memGzip(' ' x 60_000_000),
      'Content-Encoding' => 'gzip' ],
    [ 'tools that items bring, many of one name', 'responses',
      '{"max_output_tokens":1,"input":[' . join(',', map {
          '{"type":"additional_tools","tools":[{"type":"function","name":"f'
          . "$_\"}]},{\"type\":\"mcp_call\",\"id\":\"c\"}" } 1 .. 20_000)
      . ',{"role":"user","content":"Hi"}]}' ],
    [ 'just not large', 'completions', '{"max_tokens":1,"prompt":["a"],'
      . '"metadata":{"x":[' . join(',', (1) x 7_900) . ']}}' ],
);

for my $case (@cases) {
    my ($name, $path, $body, %headers) = @$case;

    short_turns($name, sub {
        for my $where ('v1', 'file') {
            my $res = $t->post("/$where/$path", $body, headers => \%headers);

            cmp_ok($res->{status}, '<', 500, "$name, $where: is answered")
                or diag($res->{body});
        }
    });
}


# a front that looks for its key in a file, as far as it ever does

for my $case ([ 'names', '","a":"' ], [ 'escapes', '\n' ],
              [ 'text', 'Word after word. ' ], [ 'digits', '",123,"' ])
{
    my ($name, $unit) = @$case;

    short_turns("a key of $name", sub {
        my $res = $t->post('/front/completions',
            '{"x":"' . $unit x (5_000_000 / length $unit) . '"}');

        like($res->{headers}{'x-key'}, qr/^[0-9a-f]{32}$/, "$name: a key");
    });
}


# what is sent: whole answers and streams as large as they come

my %large = (prompt => 'a', ignore_eos => \1, logprobs => 5, echo => \1);

for my $case ([ 'a whole answer of 128 choices', n => 128, max_tokens => 40 ],
              [ 'a stream of 128 choices', n => 128, max_tokens => 40,
                stream => \1 ],
              [ 'twelve thousand prompts refused', prompt => [ ('a') x 12_000 ],
                max_tokens => 1 ],
              [ 'sixteen times an echo of three thousand tokens',
                prompt => 'word ' x 3000, max_tokens => 1, n => 16 ])
{
    my ($name, %more) = @$case;

    short_turns($name, sub {
        my $res = $t->open('/v1/completions', { %large, %more })->response;

        cmp_ok($res->{status}, '<', 500, "$name: is answered");
    });
}


# who does not read, and all of them leaving at once

short_turns('readers that stand still', sub {
    my @stuck = map {
        $t->open('/v1/completions', { %large, n => 16, max_tokens => 200,
                                      stream => \1, seed => $_ },
                 rcvbuf => 4096)
    } 1 .. 40;

    ok(LLM::Test::wait_for(60, sub { $t->figures->{running} > 0 }),
       'they run');
    $t->get('/metrics') for 1 .. 10;
    $_->close for @stuck;

    ok(LLM::Test::wait_for(60, sub {
        my $f = $t->figures;
        $f->{running} + $f->{waiting} == 0;
    }), 'and have left');
});

$t->stop;

done_testing();
