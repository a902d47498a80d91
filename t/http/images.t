#!/usr/bin/perl

# Images of requests on their way to the engine: what a location and a model
# allow, errors that name the part, the memory for media when it is full, and
# that nothing is left there, whoever leaves, is refused, or is killed.

use strict;
use warnings;

use JSON::PP;
use LLM::GGUF;
use LLM::Test;
use LLM::Tower;
use MIME::Base64 qw(encode_base64);
use Test::More;
use Time::HiRes qw(sleep);

my $MODEL = '%%ROOT%%/models/demo.gguf threads=1 parallel=2';
my $DECODED = qr/no image that is known|PNG file is damaged/;
my $SEES = 'mmproj=%%DIR%%/mmproj.gguf template=%%DIR%%/images.jinja';
my $PNG = "\x89PNG\r\n\x1a\n" . 'x' x 20000;

# an encoder, and a template that has places for images

sub mmproj {
    my ($t, $name, %kv) = @_;

    LLM::Tower::make($t->dir . "/$name", %kv);
    $t->write_file('images.jinja', $LLM::Tower::TEMPLATE);
}

sub url {
    my ($bytes, $type) = @_;

    return 'data:' . ($type // 'image/png') . ';base64,'
           . encode_base64($bytes, '');
}

sub image {
    return { type => 'image_url', image_url => { url => $_[0] } };
}

sub chat {
    my ($t, $parts, %more) = @_;

    return $t->post($more{path} // '/v1/chat/completions', {
        model => 'sees', max_tokens => 2, temperature => 0,
        messages => [ { role => 'user', content => $parts } ], %more
    });
}

sub figures { return $_[0]->get('/figures')->{json}{media_memory} }

# nothing is left in the memory for media

sub is_empty {
    my ($t, $what) = @_;

    ok(LLM::Test::wait_for(30, sub { figures($t)->{used} == 0 }),
       "$what: nothing is left");
}


# ---- the configuration ----

my $t = LLM::Test->new(model =>
    "llm_model blind $MODEL default;\n"
    . "llm_model sees $MODEL $SEES;",
    http => 'client_max_body_size 40m; llm_media_memory 1m;',
    locations => <<'END');
        location /v1 { llm_api; llm_max_images 3; llm_max_image_size 700k; }
        location /skip/ { llm_api; llm_images skip; }
        location /small/ { llm_api; llm_max_image_size 20k; }
        location = /health { llm_health; }
        location = /figures { llm_metrics json; }
        location = /metrics { llm_metrics; }
END

$t->write_file('images.jinja', $LLM::Tower::TEMPLATE);
my ($status, $said) = $t->check;

like($said, qr/model\ "sees"\ is\ not\ usable:\ \S*mmproj\.gguf:\ 
               No\ such\ file/x, 'nginx -t names an encoder that is missing');

LLM::GGUF::make("$LLM::Test::ROOT/models/demo.gguf",
                $t->dir . '/mmproj.gguf');
($status, $said) = $t->check;
like($said, qr/mmproj\.gguf: general\.architecture: not "clip"/,
     'or a file that is none');

mmproj($t, 'mmproj.gguf', 'clip.projector_type' => [ str => 'of_tomorrow' ]);
($status, $said) = $t->check;
like($said, qr/clip\.projector_type: the projector "of_tomorrow" is not/,
     'or a projector that is not known');

mmproj($t, 'mmproj.gguf', 'clip.projector_type' => undef);
($status, $said) = $t->check;
like($said, qr/clip\.projector_type: it is missing/, 'or has no type');

mmproj($t, 'mmproj.gguf', 'clip.projector_type' => undef,
       'clip.vision.projector_type' => [ str => 'gemma3' ],
       'clip.audio.projector_type' => [ str => 'gemma4a' ]);
($status, $said) = $t->check;
unlike($said, qr/usable/, 'a file of two projectors is read');

mmproj($t, 'mmproj.gguf');
($status, $said) = $t->check;
is($status, 0, 'a good one passes');

$t->start;
ok($t->wait_ready, 'the models are ready');
is(figures($t)->{bytes}, 1 << 20, 'there is memory for media');
like($t->get('/metrics')->{body}, qr/^llm_media_memory_used_bytes\{\} 0$/m,
     'Prometheus gets it, too');


# ---- what is allowed ----

# the bytes are no image: so what gets to the engine is a 400 of its decoder,
# which names the part

sub reaches {
    my ($res, $place, $what) = @_;

    is($res->{status}, 400, $what);
    like($res->{json}{error}{message}, $DECODED, 'it came to the engine');
    is($res->{json}{error}{param}, $place, 'which names the part');
}

sub refused {
    my ($res, $status, $words, $what) = @_;

    is($res->{status}, $status, $what);
    like($res->{json}{error}{message}, $words, 'with its reason');
}

reaches(chat($t, [ { type => 'text', text => 'What?' }, image(url($PNG)) ]),
        'messages[0].content[1]', 'an image');
reaches(chat($t, [ image(url('x' x 600_000)) ]), 'messages[0].content[0]',
        'a large one, which a thread decodes');
is_empty($t, 'both');

reaches($t->post('/v1/responses', { model => 'sees', input => [
            { role => 'user', content => [ { type => 'input_image',
                                             image_url => url($PNG) } ] } ] }),
        'input[0].content[0]', 'of Responses');
my $res = $t->post('/v1/messages', { model => 'sees', max_tokens => 2,
    messages => [ { role => 'user', content => [ { type => 'image',
        source => { type => 'base64', media_type => 'image/png',
                    data => encode_base64($PNG, '') } } ] } ] });
is($res->{status}, 400, 'of Messages');
like($res->{json}{error}{message}, qr/messages\[0\]\.content\[0\].*$DECODED/,
     'in the form of these');
$res = $t->post('/v1/messages/count_tokens', { model => 'sees',
    messages => [ { role => 'user', content => [ { type => 'image',
        source => { type => 'base64', media_type => 'image/png',
                    data => encode_base64($PNG, '') } } ] } ] });
is($res->{status}, 400, 'and when tokens are counted');

refused(chat($t, [ image(url($PNG)) ], model => 'blind'), 400,
        qr/'image_url'\. This model takes text only/, 'a model without one');
is(chat($t, [ image(url($PNG)), { type => 'text', text => 'Once' } ],
        model => 'blind', path => '/skip/v1/chat/completions')->{status}, 200,
   'llm_images skip: a placeholder');
is($t->post('/v1/chat/completions', { model => 'blind', max_tokens => 2,
       messages => [ { role => 'user', content => [ image(url($PNG)) ] },
                     { role => 'assistant', content => 'A dog.' },
                     { role => 'user', content => 'What?' } ] })->{status},
   200, 'one that was answered is a placeholder anyway');

refused(chat($t, [ map { image(url($PNG)) } 1 .. 4 ]), 400,
        qr/at most 3 in a request, images and sounds together \(llm_max_im/,
        'too many');
refused(chat($t, [ map { image(url('x')) } 1 .. 10_000 ]), 400,
        qr/at most 3/, 'ten thousand');
refused(chat($t, [ image(url($PNG)) ], path => '/small/chat/completions'),
        400, $DECODED, 'just small enough');
refused(chat($t, [ image(url('x' x 20481)) ],
             path => '/small/chat/completions'), 400,
        qr/has 20481 bytes, more than the 20480/, 'too large by a byte');
refused(chat($t, [ image('https://a.example/b.png') ]), 400,
        qr/has not set llm_fetch/, 'a URL');
refused(chat($t, [ image(url($PNG, 'application/pdf')) ]), 400,
        qr/'application\/pdf'/, 'another type');
refused(chat($t, [ image('data:image/png;base64,' . '!' x 30_000) ]), 400,
        qr/Invalid base64/, 'what is no base64');
is_empty($t, 'all of these');


# ---- full ----

refused(chat($t, [ map { image(url('x' x 500_000)) } 1 .. 3 ]), 400,
        qr/more than the 1048576 bytes.*llm_media_memory/,
        'images that do not fit even alone');
is_empty($t, 'it');
$t->stop(name => 'images', allow => qr/is not usable/);

# while the engine's worker is suspended, requests wait in the rings

$t = LLM::Test->new(model =>
    "llm_model sees $MODEL $SEES default;",
    workers => 3,
    http => 'client_max_body_size 40m; llm_media_memory 1m;',
    location => 'llm_timeout 10m;');
mmproj($t, 'mmproj.gguf');
$t->start;

# n requests, which take 450,000 bytes each

sub hold {
    my ($n) = @_;

    my @held = map { $t->open('/v1/chat/completions', {
        model => 'sees', max_tokens => 2, messages => [ { role => 'user',
        content => [ image(url('x' x 450_000)) ] } ] }) } 1 .. $n;

    ok(LLM::Test::wait_for(60, sub { figures($t)->{used} >= $n * 450_000 }),
       "$n wait, with their images");

    return @held;
}

my $engine = $t->engine_worker;

$t->pause($engine);

my @held = hold(2);

$res = chat($t, [ image(url('x' x 300_000)) ]);
is($res->{status}, 429, 'a third one finds no room');
is($res->{json}{error}{code}, 'media_memory_full', 'which it is told');
ok($res->{headers}{'retry-after'}, 'and when to come again');
is(figures($t)->{full}, 1, 'it is counted');

$_->close for @held;
$t->kill('CONT', $engine);
is_empty($t, 'clients that leave');

reaches(chat($t, [ image(url('x' x 300_000)) ]), 'messages[0].content[0]',
        'then there is room');


# ---- whoever is killed ----

$t->pause($engine);
@held = hold(2);
$t->kill('KILL', $engine);
is_empty($t, 'an engine that was killed');
is($_->response->{status}, 503, 'its clients get an error') for @held;

$engine = $t->engine_worker;
ok($t->wait_ready, 'there is another engine');
$t->pause($engine);
@held = hold(2);

my @others = grep { $_ != $engine } $t->workers;

$t->kill('KILL', $_) for @others;
ok(LLM::Test::wait_for(60, sub {
    my %now = map { $_ => 1 } $t->workers;
    3 == keys %now && !grep { $now{$_} } @others;
}), 'workers are killed and replaced');
$t->kill('CONT', $engine);
is_empty($t, 'workers that were killed');
$_->close for @held;


# ---- a reload ----

$t->pause($engine);
@held = hold(1);
$t->reload;
ok(LLM::Test::wait_for(60, sub {
    my $f = eval { figures($t) };
    $f && $f->{used} == 0;
}), 'after a reload the memory is another one');
$t->kill('CONT', $engine);
is($held[0]->response->{status}, 400, 'the old engine answers, still');

$t->stop(name => 'killed', allow => qr/signal 9/);

done_testing();
