#!/usr/bin/perl

# Small requests with large answers: an echoed prompt with probabilities for
# 128 choices is tens of megabytes of JSON.  What is held for those who do
# not read it is small, and it is whole for who does.

use strict;
use warnings;

use LLM::JSON;

use LLM::Test;
use Test::More;
use Time::HiRes qw(sleep);

my $READERS = 20;

my $t = LLM::Test->new(listen => 'sndbuf=16k',
    server => 'listen 127.0.0.1:%%PORT2%% http2;',
    model => 'llm_model demo ' . LLM::Test::random_model(2, 40960)
           . ' threads=1 parallel=8;',
    locations => <<'END')->start;
        location /v1 { llm_api; }
        location /small { llm_stream_buffer 4k; llm_api; }
        location = /health { llm_health; }
        location = /figures { llm_metrics json; }
END

my ($pid) = $t->workers;
my %ask = (prompt => 'Tell me, what do you know? ' x 40, echo => \1,
           logprobs => 5, max_tokens => 1, temperature => 0);

sub own { LLM::Test::holds($pid)->{own} }

sub parsed { $_[0]{status} == 200 ? decode_json($_[0]{body}) : undef }

# n choices are n times the same

my $one = $t->post('/v1/completions', { %ask, n => 1 });
my $want = $one->{json}{choices}[0];
my $n_tokens = @{ $want->{logprobs}{tokens} };

cmp_ok($n_tokens, '>', 300, "a prompt of $n_tokens tokens");
is($one->{headers}{'content-length'}, length $one->{body},
   'an answer that fits has a length');
is(join('', @{ $want->{logprobs}{tokens} }), $want->{text},
   'its tokens are its text');

my $had = own();
my @slow = map {
    $t->open('/v1/completions', { %ask, n => 128, seed => $_ },
             rcvbuf => 4096)
} 1 .. $READERS;

ok(LLM::Test::wait_for(120, sub {
    my $f = $t->figures;
    $f->{running} == 0 && $f->{waiting} == 0
        && $f->{finished}{length} >= 1 + 128 * $READERS
}), "$READERS answers of 128 choices are made");

my $unsent = $t->figures->{workers}[0]{unsent};

SKIP: {
    skip 'memory under a sanitizer, which keeps what is freed', 1
        if $ENV{LLM_SAN};

    cmp_ok(own() - $had, '<', 64 * 1024,
           'what is held for all of them, in kB');
}


cmp_ok($unsent, '<=', $READERS * 1.25 * 256 * 1024,
       'and of that in pieces that nobody takes');
cmp_ok($unsent, '>', $READERS * 1024, 'which there are');

my $res = $slow[0]->response;
my $got = parsed($res);

ok($got && !$res->{truncated}, 'who reads on gets it all');
cmp_ok(length $res->{body}, '>', 100 * length $one->{body}, 'a large one');
ok(!exists $res->{headers}{'content-length'}, 'in chunks');
is(scalar @{ $got->{choices} }, 128, 'all choices');
is(scalar(grep { $_->{text} eq $want->{text}
                 && "@{ $_->{logprobs}{text_offset} }"
                    eq "@{ $want->{logprobs}{text_offset} }"
                 && "@{ $_->{logprobs}{tokens} }"
                    eq "@{ $want->{logprobs}{tokens} }" }
          @{ $got->{choices} }), 128, 'each as the only one would be');

$_->close for @slow;

ok(LLM::Test::wait_for(10, sub {
    $t->figures->{workers}[0]{unsent} == 0
}), 'those who leave leave nothing');

# the same as a stream: it pauses

@slow = map {
    $t->open('/v1/completions', { %ask, n => 8, stream => \1, seed => $_ },
             rcvbuf => 4096)
} 1 .. $READERS;

my $most = 0;

sub unsent {
    my $now = $t->figures->{workers}[0]{unsent};

    $most = $now if $now > $most;

    return $now;
}

ok(LLM::Test::wait_for(60, sub { unsent() > $READERS * 64 * 1024 }),
   'streams hold something');

for (1 .. 250) {
    unsent();
    sleep 0.02;
}

cmp_ok($most, '<=', $READERS * 1.25 * 256 * 1024,
       'and no more than llm_stream_buffer and a quarter');

SKIP: {
    skip 'memory under a sanitizer, which keeps what is freed', 1
        if $ENV{LLM_SAN};

    cmp_ok(own() - $had, '<', 64 * 1024, 'in kB of memory');
}


my %text;

for my $e ($slow[0]->events) {
    my $c = $e->{json}{choices}[0] // next;
    $text{$c->{index}} .= $c->{text};
}

is(scalar(grep { $_ eq $want->{text} } values %text), 8,
   'who reads on gets each choice');
$_->close for @slow;

# more than is kept

$res = $t->post('/small/completions', { %ask, n => 8, logprobs => 5,
    max_tokens => 300, ignore_eos => \1 });

is($res->{status}, 400, 'an answer that is too large');
is($res->{json}{error}{code}, 'answer_too_large', 'has a code');
like($res->{json}{error}{message}, qr/fewer/, 'says what helps');

ok(LLM::Test::wait_for(10, sub {
    my $f = $t->figures;
    $f->{running} == 0 && $f->{waiting} == 0
        && $f->{workers}[0]{unsent} == 0
}), 'and nobody computes it any more');

$res = $t->post('/small/completions', { %ask, n => 4 });
is(scalar @{ parsed($res)->{choices} }, 4, 'pieces of 4k');

my $old = LLM::Client->open(port => $t->port, method => 'POST',
    path => '/small/completions', http => '1.0',
    body => { %ask, n => 4 })->response;

is(scalar(grep { $_->{text} eq $want->{text} }
          @{ parsed($old)->{choices} }), 4, 'HTTP/1.0 has neither chunks nor '
   . 'a length');

# frames of HTTP/2 point to the blocks

$t->write_file('ask.json', encode_json({ %ask, n => 32 }));

my $url = "http://127.0.0.1:$t->{port2}/v1/completions";
my $out = `curl -s --http2-prior-knowledge -w '\\n%{http_version}' --data \@$t->{dir}/ask.json $url`;

$out =~ s/\n([^\n]*)\z//;
is($1, '2', 'HTTP/2');
is(scalar(grep { $_->{text} eq $want->{text} }
          @{ decode_json($out)->{choices} }), 32, 'each as before');

$t->stop;

done_testing();
