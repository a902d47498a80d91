#!/usr/bin/perl

# Request bodies of all sizes and shapes: chunked, spooled to a file, too
# large for nginx, too large for the ring, sent slowly, with 100-continue.

use strict;
use warnings;

use LLM::Test;
use Test::More;
use Time::HiRes qw(sleep);

my $t = LLM::Test->new(
    http => 'llm_shared_memory 512k;',
    locations => <<'END');
        client_max_body_size 4m;
        location /v1 { llm_api; }
        location = /health { llm_health; }
        location /file { client_body_in_file_only clean; llm_api; }
        location /small { client_max_body_size 1k; llm_api; }
END

$t->start;

my %ask = (temperature => 0, max_tokens => 6, ignore_eos => \1);
my $want = $t->post('/v1/completions', { prompt => 'one two', %ask })
             ->{json}{choices}[0]{text};


sub same {
    my ($name, $res) = @_;

    is($res->{json}{choices}[0]{text}, $want, $name) or diag($res->{body});
}

same('in a file', $t->post('/file/completions',
                           { prompt => 'one two', %ask }));

# larger than client_body_buffer_size, so spooled; ignored fields pad it

same('padded to 100 kB', $t->post('/v1/completions',
     { prompt => 'one two', %ask, metadata => { x => 'y' x 100_000 } }));

my $json = LLM::JSON->new->utf8->encode({ prompt => 'one two', %ask });
my $chunked = join '', map { sprintf "%x\r\n%s\r\n", length, $_ }
              $json =~ /(.{1,7})/gs;

same('chunked', $t->request(method => 'POST', path => '/v1/completions',
     headers => { 'Transfer-Encoding' => 'chunked' },
     body => "${chunked}0\r\n\r\n"));

# byte by byte

my $client = LLM::Client->open(port => $t->port, raw =>
    "POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    . "Content-Length: " . length($json) . "\r\n\r\n");

for my $i (0 .. length($json) - 1) {
    $client->write(substr $json, $i, 1);
    sleep 0.001;
}

same('byte by byte', $client->response);


# 100-continue: sent when the request can come in

$client = LLM::Client->open(port => $t->port, raw =>
    "POST /v1/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
    . "Expect: 100-continue\r\nContent-Length: " . length($json)
    . "\r\n\r\n");
$client->fill until $client->{buffer} =~ /100 Continue/;
$client->write($json);

my $res = $client->response;

ok($res->{continued}, '100 Continue came');
same('and the answer', $res);

$client = LLM::Client->open(port => $t->port, raw =>
    "POST /v1/nothing HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n"
    . "Content-Length: 1000000\r\n\r\n");
$res = $client->response;

is($res->{status}, 404, 'refused without asking for the body');
ok(!$res->{continued}, 'no 100 Continue');


# too large

is($t->post('/small/completions', { prompt => 'a' x 2000 })->{status}, 413,
   'client_max_body_size');

$res = $t->post('/v1/completions', { prompt => 'a ' x 800_000, %ask });

is($res->{status}, 413, 'larger than the ring') or diag($res->{body});
ok($res->{json}{error}{message}, 'in JSON');

# as large as it gets and too long for the model

$res = $t->post('/v1/completions', { prompt => 'a ' x 50_000, %ask });

is($res->{status}, 400, 'longer than the context') or diag($res->{body});
is($res->{json}{error}{code}, 'context_length_exceeded', 'its code');

# a client that promises a body and goes away

for (1 .. 5) {
    LLM::Client->open(port => $t->port, raw =>
        "POST /v1/completions HTTP/1.1\r\nHost: x\r\n"
        . "Content-Length: 1000\r\n\r\n{\"prompt\"")->close;
}

same('afterwards', $t->post('/v1/completions', { prompt => 'one two', %ask }));

$t->stop;

done_testing();
