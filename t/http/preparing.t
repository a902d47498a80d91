#!/usr/bin/perl

# Who waits for whom while images and sounds are decoded: nobody for large ones
# of others.  The decoder waits until the test lets it go on, so what is
# answered before that has not waited for it.  No time is over meanwhile, but
# that of the queue, where it is what is tested.

use strict;
use warnings;

use LLM::Decoder;
use LLM::Test;
use LLM::Tower;
use LLM::Whisper qw(model wav);
use Test::More;

my $EDGE = 'edge-of-a-part';


# the beginning of a PNG file, all that the decoder looks at

sub header {
    return "\x89PNG\r\n\x1a\n" . pack 'Na4NNC5N', 13, 'IHDR', @_, 8, 2, 0, 0, 0,
                                      0;
}

sub image {
    return { type => 'image_url',
             image_url => { url => LLM::Tower::url(header(@_)) } };
}

sub chat {
    my ($model, $text, @images) = @_;

    return { model => $model, max_tokens => 2, temperature => 0, messages => [
        { role => 'user', content => @images
          ? [ @images, { type => 'text', text => $text } ] : $text } ] };
}

sub hear {
    my ($sound) = @_;

    return join "\r\n", "--$EDGE",
        'Content-Disposition: form-data; name="model"', '', 'hears',
        "--$EDGE",
        'Content-Disposition: form-data; name="file"; filename="a.flac"', '',
        $sound, "--$EDGE--", '';
}

my @FORM = (headers => { 'Content-Type'
                         => "multipart/form-data; boundary=$EDGE" });

sub server {
    my (%o) = @_;
    my $t = LLM::Test->new(model => join("\n",
        'llm_model demo %%ROOT%%/models/demo.gguf threads=1 parallel=8 '
        . 'default;',
        'llm_model sees %%ROOT%%/models/demo.gguf threads=1 parallel=8 '
        . 'template=%%DIR%%/images.jinja mmproj=%%DIR%%/mmproj.gguf;',
        'llm_model hears %%DIR%%/tiny.bin threads=1 parallel=4;'), %o);

    LLM::Tower::make($t->dir . '/mmproj.gguf');
    $t->write_file('images.jinja', $LLM::Tower::TEMPLATE);
    $t->write_file('tiny.bin', model(51865));

    return $t;
}

sub unanswered {
    return grep { !IO::Select->new($_->{socket})->can_read(0) } @_;
}


my $t = server(http => 'client_max_body_size 8m; llm_timeout 1d;'
                       . 'llm_queue 64 timeout=1d;');
my $decoder = LLM::Decoder->new($t);

$t->start;
ok($t->wait_ready, 'three models are ready');


# large images: five clients with two each, more than there are decoders for

my $large = image(4097, 4097);
my @large = map { $t->open('/v1/chat/completions',
                           chat('sees', "large $_", $large, $large)) } 1 .. 5;

ok(LLM::Test::wait_for(60, sub { $decoder->waiting('large') == 3 }),
   'three large images are decoded at once');

sub format_of {
    my ($name) = @_;

    return (response_format => { type => 'json_schema', json_schema => {
        name => $name, schema => { type => 'object', properties => {
            $name => { type => 'string' } } } } });
}

for (['a small image', 200, chat('sees', 'small', image(40, 30))],
     ['two of them', 200, chat('sees', 'two', image(40, 30), image(9, 9))],
     ['a new grammar', 200, { %{ chat('demo', 'json') }, format_of('a') }],
     ['a small image and another one', 200,
      { %{ chat('sees', 'both', image(30, 20)) }, format_of('b') }],
     ['a large text', 400, chat('demo', 'hello ' x 17000)],
     ['a small one', 200, chat('demo', 'hello')])
{
    my ($what, $status, $body) = @$_;
    my $res = $t->post('/v1/chat/completions', $body);

    is($res->{status}, $status, "$what: answered meanwhile")
        or diag($res->{body});
}

is(scalar unanswered(@large), 5, 'the large ones are not');
is($decoder->waiting('large'), 3, 'and there are never more than three');


# long sounds

my @long = map { $t->open('/v1/audio/transcriptions', hear("fLaC$_"), @FORM) }
               1 .. 2;

ok(LLM::Test::wait_for(60, sub { $decoder->waiting('long') == 1 }),
   'one long sound is decoded at once');

my $res = $t->post('/v1/audio/transcriptions', hear(wav(1)), @FORM);

is($res->{status}, 200, 'a short one: answered meanwhile')
    or diag($res->{body});
is(scalar unanswered(@long), 2, 'the long ones are not');
is($decoder->waiting('long'), 1, 'the second one waits for the first one');

$decoder->go;

for (@large, @long) {
    $res = $_->response;
    is($res->{status}, 200, 'each is answered in the end')
        or diag($res->{body});
}

ok(LLM::Test::wait_for(30, sub {
    $t->get('/figures')->{json}{media_memory}{used} == 0
}), 'nothing is left in the memory for media');

$t->stop;

# a request whose image is decoded when its time in the queue is over

$t = server(http => 'llm_queue 8 timeout=1s;');
$decoder = LLM::Decoder->new($t);
$t->start;
ok($t->wait_ready, 'a queue with a timeout');

$res = $t->post('/v1/chat/completions', chat('sees', 'late', $large));
is($res->{status}, 503, 'an image that is decoded for too long');
is($res->{json}{error}{code}, 'queue_timeout', 'its code')
    or diag($res->{body});
ok($res->{headers}{'retry-after'}, 'the client is told when to come back');

$res = $t->post('/v1/audio/transcriptions', hear('fLaC'), @FORM);
is($res->{status}, 503, 'a sound that is decoded for too long');
is($res->{json}{error}{code}, 'queue_timeout', 'its code')
    or diag($res->{body});

ok(LLM::Test::wait_for(30, sub {
    $decoder->waiting('large') + $decoder->waiting('long') == 0
}), 'their decoders have ended');

$t->stop;

done_testing();
