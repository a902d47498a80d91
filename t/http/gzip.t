#!/usr/bin/perl

# gzip and other body filters: answers and streams survive them, and a
# compressed stream still comes as it is made.

use strict;
use warnings;

use LLM::Test;
use Test::More;

use Compress::Zlib;

my $t = LLM::Test->new(server => <<'END')->start;
        gzip on;
        gzip_types application/json text/event-stream;
        gzip_min_length 1;
        gzip_proxied any;
END

my %gzip = (headers => { 'Accept-Encoding' => 'gzip' });
my %ask = (prompt => 'one two', temperature => 0, max_tokens => 60,
           ignore_eos => \1);

my $plain = $t->post('/v1/completions', \%ask);
my $res = $t->post('/v1/completions', \%ask, %gzip);

is($res->{headers}{'content-encoding'}, 'gzip', 'JSON is compressed');

my $json = JSON::PP->new->utf8->decode(Compress::Zlib::memGunzip($res->{body}));

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
    ? JSON::PP->new->utf8->decode($1)->{choices}[0]{text} // '' : () }
    split /\n\n/, $text;

is($got, $want, 'the same text');

is($t->get('/v1/models', %gzip)->{headers}{'content-encoding'}, 'gzip',
   'models');
is($t->post('/v1/completions', '{', %gzip)->{status}, 400, 'errors');

$t->stop;

done_testing();
