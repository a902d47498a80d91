#!/usr/bin/perl

# gzip and other body filters: answers and streams survive them, and a
# compressed stream still comes as it is made.  Bodies of requests may be
# compressed, too.

use strict;
use warnings;

use LLM::Test;
use Test::More;

use Compress::Zlib;

my $t = LLM::Test->new(http => <<'HTTP', server => <<'END');
    log_format told escape=none '$llm_input';
HTTP
        gzip on;
        gzip_types application/json text/event-stream;
        gzip_min_length 1;
        gzip_proxied any;
        client_max_body_size 200k;

        location /file/ { llm_api; client_body_in_file_only clean; }
        location /told/ { llm_api; llm_capture 1k; access_log logs/told told; }
END

$t->start;

my %gzip = (headers => { 'Accept-Encoding' => 'gzip' });
my %ask = (prompt => 'one two', temperature => 0, max_tokens => 60,
           ignore_eos => \1);

my $plain = $t->post('/v1/completions', \%ask);
my $res = $t->post('/v1/completions', \%ask, %gzip);

is($res->{headers}{'content-encoding'}, 'gzip', 'JSON is compressed');

my $json = LLM::JSON->new->utf8->decode(Compress::Zlib::memGunzip($res->{body}));

is($json->{choices}[0]{text}, $plain->{json}{choices}[0]{text},
   'the same text');


# a stream: inflated piece by piece, as a browser does

my $s = $t->open('/v1/completions', { %ask, stream => \1, max_tokens => 400 },
                 %gzip);

$s->read_header;
is($s->{headers}{'content-encoding'}, 'gzip', 'a stream is compressed');

my $inflate = inflateInit(-WindowBits => 16 + MAX_WBITS);
my $text = '';
my $pieces = 0;

while (defined(my $piece = $s->piece)) {
    my ($out, $status) = $inflate->inflate($piece);

    ok($status == Z_OK || $status == Z_STREAM_END, 'inflates') || last
        if $status != Z_OK && $status != Z_STREAM_END;
    $pieces++ if length $out;
    $text .= $out;
}

cmp_ok($pieces, '>', 20, "in $pieces pieces, not in one");
like($text, qr/data: \[DONE\]\n\n\z/, 'to its end');

my @events = $t->open('/v1/completions',
                      { %ask, stream => \1, max_tokens => 400 })->events;
my $want = LLM::Client::text_of(@events);
my $got = join '', map { /^data: (\{.*)/
    ? LLM::JSON->new->utf8->decode($1)->{choices}[0]{text} // '' : () }
    split /\n\n/, $text;

is($got, $want, 'the same text');

is($t->get('/v1/models', %gzip)->{headers}{'content-encoding'}, 'gzip',
   'models');
is($t->post('/v1/completions', '{', %gzip)->{status}, 400, 'errors');



# ---- bodies of requests ----

my $body = LLM::JSON->new->utf8->canonical->encode({ %ask,
    metadata => { long => 'x' x 20_000 } });


sub packed {
    my ($packed, $coding, $path) = @_;

    return $t->request(method => 'POST', path => $path // '/v1/completions',
        body => $packed, headers => { 'Content-Type' => 'application/json',
                                      'Content-Encoding' => $coding });
}


sub same {
    my ($name, $res) = @_;

    is($res->{json} && $res->{json}{choices}[0]{text},
       $plain->{json}{choices}[0]{text}, $name) or diag($res->{body});
}


sub refused {
    my ($name, $status, $want, $res) = @_;

    is($res->{status}, $status, "$name: $status") or diag($res->{body});
    like($res->{json}{error}{message}, $want, 'says why');
}


my $zip = Compress::Zlib::memGzip($body);
my $chunked = join '', map { sprintf "%x\r\n%s\r\n", length, $_ }
              $zip =~ /(.{1,7})/gs;

same('a body by gzip', packed($zip, 'gzip'));
same('in other letters, beside none at all', packed($zip, 'identity, GZip'));
same('by its older name', packed($zip, 'x-gzip'));
same('by none', packed($body, 'identity'));
same('none is named', packed($body, ''));
same('in a file', packed($zip, 'gzip', '/file/completions'));
same('a small one', packed(Compress::Zlib::memGzip(LLM::JSON->new->utf8->encode(
    \%ask)), 'gzip'));
same('in two members', packed(Compress::Zlib::memGzip(substr $body, 0, 9)
    . Compress::Zlib::memGzip(substr $body, 9), 'gzip'));
same('in chunks', $t->request(method => 'POST', path => '/v1/completions',
    headers => { 'Transfer-Encoding' => 'chunked',
                 'Content-Encoding' => 'gzip' },
    body => "${chunked}0\r\n\r\n"));

$res = packed($zip, 'br');
refused('another coding', 415, qr/'br'.*gzip/, $res);
is($res->{headers}{'accept-encoding'}, 'gzip', 'names the one that is');
is($res->{json}{error}{code}, 'unsupported_content_encoding', 'its code');

refused('zlib', 415, qr/'deflate'/, packed(Compress::Zlib::compress($body),
                                           'deflate'));
refused('twice', 415, qr/'gzip' among others/, packed(
    Compress::Zlib::memGzip($zip), 'gzip, gzip'));
refused('what it is not', 400, qr/not valid gzip/,
        packed($body, 'gzip'));
refused('cut', 400, qr/ends too early/,
        packed(substr($zip, 0, length($zip) - 9), 'gzip'));
refused('something behind it', 400, qr/incorrect header/,
        packed($zip . 'and this', 'gzip'));
refused('a wrong sum', 400, qr/incorrect data check/,
        packed(substr($zip, 0, length($zip) - 8) . 'x' x 8, 'gzip'));
refused('JSON that is none', 400, qr/parse the JSON/,
        packed(Compress::Zlib::memGzip('{'), 'gzip'));
refused('nothing', 400, qr/parse the JSON/, packed('', 'gzip'));

# 64 MB in 64 kB

my ($deflate) = deflateInit(-WindowBits => 16 + MAX_WBITS);
my $bomb = '';

for (1 .. 64) {
    my ($out) = $deflate->deflate(' ' x (1024 * 1024));
    $bomb .= $out;
}

$bomb .= ($deflate->flush)[0];

refused('too large once it is unpacked', 413, qr/204800 bytes/,
        packed($bomb, 'gzip'));

$res = packed($zip, 'zstd', '/v1/messages');
is($res->{status}, 415, 'Messages');
is($res->{json}{type}, 'error', 'in their own form');

# what is logged of it, and by what it is known again, is what was packed

same('a body that is logged', packed($zip, 'gzip', '/told/completions'));
ok($t->wait_log(qr/^\Q@{[substr $body, 0, 900]}/, 'told'),
   'is logged as it was before');

is($t->get('/v1/models', headers => { 'Content-Encoding' => 'br' })->{status},
   200, 'a GET has no body');

$t->stop;

done_testing();
