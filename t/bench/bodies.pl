#!/usr/bin/perl

# Response time of /health while four clients post bodies of 3 to 7 MB to one
# worker, each client a different kind of body, again and again: shows how long
# bodies block the event loop.  LLM_BENCH_SECONDS: duration (15).

use strict;
use warnings;

use LLM::Test;
use POSIX ();
use Test::More;
use Time::HiRes qw(sleep time);

my $seconds = $ENV{LLM_BENCH_SECONDS} // 15;
my $pad = '"' . 'pad ' x 1_000_000 . '"';

my @bodies = (
    [ 'numbers', '/v1/completions', '{"max_tokens":1,"prompt":["a"],'
      . '"metadata":{"x":[' . '1.5,' x 250_000 . "$pad]}}" ],
    [ 'objects', '/v1/completions', '{"max_tokens":1,"prompt":"a",'
      . '"metadata":{"x":[' . '{"a":"b"},' x 80_000 . "$pad]}}" ],
    [ 'messages', '/v1/chat/completions', '{"max_tokens":1,"messages":['
      . join(',', ('{"role":"user","content":"' . 'a' x 60 . '"}') x 40_000)
      . ']}' ],
    [ 'text', '/v1/completions', '{"max_tokens":1,"prompt":"'
      . 'word ' x 1_400_000 . '"}' ],
);

my $t = LLM::Test->new(http => 'client_max_body_size 9m;
                                llm_shared_memory 64m;')->start;
my $end = time + $seconds;
my @clients;

for my $body (@bodies) {
    my ($name, $path, $json) = @$body;
    my $pid = fork // die "fork: $!";

    if ($pid == 0) {
        my $n = 0;

        while (time < $end) {
            $t->post($path, $json);
            $n++;
        }

        printf "%-8s  %.1f MB, %d posted\n", $name, length($json) / 1e6, $n;
        STDOUT->flush;
        POSIX::_exit(0);
    }

    push @clients, $pid;
}

my @ms;

while (time < $end) {
    my $begin = time;

    $t->get('/health');
    push @ms, 1000 * (time - $begin);
    sleep 0.002;
}

waitpid $_, 0 for @clients;

@ms = sort { $a <=> $b } @ms;

printf "/health: %d answers, p50 %.1f ms, p99 %.1f ms, max %.1f ms\n",
       scalar @ms, $ms[@ms / 2], $ms[@ms * 0.99], $ms[-1];

$t->stop;
done_testing();
