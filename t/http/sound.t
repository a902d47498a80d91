#!/usr/bin/perl

# Sound in chats: a model whose mmproj= file encodes it takes input_audio: frames
# of samples, each of 40 ms being a token, or spectrograms; others, and sounds
# that cannot be read, are refused by the part's name.

use strict;
use warnings;

use JSON::PP;
use LLM::Test;
use LLM::Tower;
use MIME::Base64 qw(encode_base64);
use Test::More;

my $MODEL = '%%ROOT%%/models/demo.gguf threads=1 parallel=2 ctx=512';

my $t = LLM::Test->new(model =>
    "llm_model hears $MODEL mmproj=%%DIR%%/hears.gguf"
    . " template=%%DIR%%/media.jinja default;\n"
    . "llm_model sees $MODEL mmproj=%%DIR%%/sees.gguf"
    . " template=%%DIR%%/media.jinja;\n"
    . "llm_model listens $MODEL mmproj=%%DIR%%/ear.gguf"
    . " template=%%DIR%%/listens.jinja;\n"
    . "llm_model both $MODEL mmproj=%%DIR%%/both.gguf"
    . " template=%%DIR%%/media.jinja;\n"
    . "llm_model asr $MODEL mmproj=%%DIR%%/asr.gguf"
    . " template=%%DIR%%/asr.jinja;\n"
    . "llm_model odd $MODEL mmproj=%%DIR%%/hears.gguf"
    . " template=%%DIR%%/odd.jinja;",
    http => 'client_max_body_size 4m; '
            . 'llm_token_zone all zone=s:64k rate=1/h count=audio;',
    locations => <<'END');
        location /v1 { llm_api; llm_max_audio_seconds 30; }
        location /short/ { llm_api; llm_max_audio_seconds 1; }
        location /long { llm_api; }
        location /paid/ { llm_api; llm_token_limit zone=s burst=3; }
        location /api/ { llm_api; }
        location = /health { llm_health; }
        location = /figures { llm_metrics json; }
END

LLM::Tower::make($t->dir . '/hears.gguf', @LLM::Tower::HEARS);
LLM::Tower::make($t->dir . '/both.gguf', @LLM::Tower::LISTENS);
LLM::Tower::make($t->dir . '/sees.gguf');
LLM::Tower::make_ear($t->dir . '/ear.gguf');
$t->write_file('media.jinja', $LLM::Tower::TEMPLATE);
(my $odd = $LLM::Tower::TEMPLATE) =~ s/<\|audio\|>/<start_of_image>/;
$t->write_file('odd.jinja', $odd);
LLM::Tower::make_asr($t->dir . '/asr.gguf');

for ([ listens => 'Voxtral' ], [ asr => 'Qwen3-ASR' ]) {
    my ($name, $family) = @$_;
    my ($template) = LLM::Test::slurp("$ENV{LLM_ROOT}/docs/models.md")
        =~ /this one is ${family}'s:\s+```jinja\n(.*?)```/s;

    $t->write_file("$name.jinja", $template);
}

$t->start;


# a WAV file of $n samples of a tone, $rate a second

sub wav {
    my ($n, $rate, $tone) = @_;
    my $data = pack 's<*', map { 9000 * sin($_ * $tone) } 1 .. $n;

    return 'RIFF' . pack('V', 36 + length $data) . 'WAVEfmt '
           . pack('VvvVVvv', 16, 1, 1, $rate, 2 * $rate, 2, 16)
           . 'data' . pack('V', length $data) . $data;
}


sub sound {
    my ($bytes) = @_;

    return { type => 'input_audio', input_audio => {
                 data => encode_base64($bytes, ''), format => 'wav' } };
}


sub chat {
    my ($parts, %more) = @_;

    return $t->post($more{path} // '/v1/chat/completions', {
        model => $more{model} // 'hears', max_tokens => 2, temperature => 0,
        logprobs => JSON::PP::true(),
        messages => [ { role => 'user', content => $parts } ]
    });
}


sub tokens { return $_[0]->{json}{usage}{prompt_tokens} }

sub said {
    return join ' ', map { $_->{token} . $_->{logprob} }
                     @{ $_[0]->{json}{choices}[0]{logprobs}{content} };
}


sub refused {
    my ($r, $param, $message, $what) = @_;

    is($r->{status}, 400, "$what: refused");
    is($r->{json}{error}{param}, $param, "$what: the part");
    like($r->{json}{error}{message}, $message, "$what: why");
}


my $text = { type => 'text', text => 'What is it?' };
my $plain = chat([ $text ]);
my $short = chat([ sound(wav(1600, 16000, 0.1)), $text ]);
my $long = chat([ sound(wav(17600, 16000, 0.1)), $text ]);

is($plain->{status}, 200, 'text alone');
is($short->{status}, 200, 'a sound') or diag($short->{content});
is(tokens($long) - tokens($short), 25, 'a second is 25 tokens');
cmp_ok(tokens($short) - tokens($plain), '>', 3, '100 ms are 3, and marks');
is(tokens(chat([ sound(wav(1600, 8000, 0.1)), $text ])),
   tokens($short) + 2, '1600 samples of 8000 a second are 5');

is_deeply([ map { my $p = $t->get("/v1/props?model=$_")->{json}{modalities};
                  ($p->{vision} ? 'vision' : '') . ($p->{audio} ? ' audio' : '')
            } qw(hears sees listens asr both) ],
          [ 'vision audio', 'vision', ' audio', ' audio', 'vision audio' ],
          '/props says what a model takes');
is_deeply({ map { $_->{id} => $_->{architecture}{input_modalities} }
            @{ $t->get('/v1/models')->{json}{data} } },
          { hears => [ qw(text image audio) ], sees => [ qw(text image) ],
            listens => [ qw(text audio) ], asr => [ qw(text audio) ],
            odd => [ qw(text image audio) ],
            both => [ qw(text image audio) ] },
          'the list of models says it');
ok((grep { $_ eq 'audio' } @{ $t->post('/api/show', { model => 'listens' })
                              ->{json}{capabilities} }), '/api/show says it');

is_deeply([ map { $_->{json}{usage}{prompt_tokens_details}{audio_tokens} }
            $plain, $short, $long ], [ 0, 3, 28 ],
          'usage has the tokens of sound apart');

my $bytes = encode_base64(wav(1600, 16000, 0.1), '');

for ([ { type => 'audio_url', audio_url => {
             url => "data:audio/wav;base64,$bytes" } }, 'audio_url' ],
     [ { type => 'audio', source => { type => 'base64',
             media_type => 'audio/wav', data => $bytes } }, 'audio' ])
{
    my ($part, $name) = @$_;
    my $r = chat([ $part, $text ]);

    is(said($r), said($short), "$name: the same as input_audio")
        or diag($r->{body});
}

my $messages = $t->post('/v1/messages', {
    model => 'hears', max_tokens => 2, temperature => 0,
    messages => [ { role => 'user', content => [
        { type => 'audio', source => { type => 'base64',
              media_type => 'audio/wav', data => $bytes } }, $text ] } ] });
my $u = $messages->{json}{usage} // {};

is($messages->{status}, 200, 'a sound in Messages') or diag($messages->{body});
is(($u->{input_tokens} // 0) + ($u->{cache_read_input_tokens} // 0),
   tokens($short), 'has as many tokens');

my $again = chat([ sound(wav(1600, 16000, 0.1)), $text ]);
my $other = chat([ sound(wav(1600, 16000, 0.2)), $text ]);

is(said($again), said($short), 'the same sound, the same answer');
is(tokens($other), tokens($short), 'another sound is as long');
isnt(said($other), said($short), 'and has another answer');

# quotas of seconds

my @paid = (path => '/paid/chat/completions');

is(chat([ sound(wav(17600, 16000, 0.1)), $text ], @paid)->{status}, 200,
   'two of three seconds');
is(chat([ (sound(wav(1600, 16000, 0.1))) x 2, $text ], @paid)->{status}, 429,
   'two sounds are two seconds');
is(chat([ $text ], @paid)->{status}, 200, 'a text needs none');
is(chat([ sound(wav(1600, 16000, 0.1)), $text ], @paid)->{status}, 200,
   'the third second');
is(chat([ sound(wav(1600, 16000, 0.1)), $text ], @paid)->{status}, 429,
   'no more');

# an encoder of spectrograms, of 800 ms at once

my $bare = tokens(chat([ $text ], model => 'listens'));
my $heard = chat([ sound(wav(1600, 16000, 0.1)), $text ], model => 'listens');
my $longer = chat([ sound(wav(12801, 16000, 0.1)), $text ],
                  model => 'listens');

is($heard->{status}, 200, 'a spectrogram') or diag($heard->{content});
cmp_ok(tokens($heard) - $bare, '>', 10, '100 ms are 10 tokens, and a mark');
is(tokens($longer) - tokens($heard), 10, 'more than 800 ms are 20');
is($longer->{json}{usage}{prompt_tokens_details}{audio_tokens}, 20,
   'usage has them');
is(said(chat([ sound(wav(1600, 16000, 0.1)), $text ], model => 'listens')),
   said($heard), 'the same sound, the same answer');
isnt(said(chat([ sound(wav(1600, 16000, 0.2)), $text ], model => 'listens')),
     said($heard), 'another sound has another answer');
is(tokens(chat([ $text, (sound(wav(1600, 16000, 0.1))) x 2, $text ],
               model => 'listens')) - tokens(chat([ $text, $text ],
                                                  model => 'listens')),
   2 * (tokens($heard) - $bare), 'two sounds of a message');

# an encoder of slices of a second: the prompt is that of Qwen3-ASR's processor,
# which leaves out what a user writes

sub pieces {
    my $n = 0;

    for (@_) {
        $n += @{ $t->post('/v1/tokenize', { model => 'asr', content => $_ })
                 ->{json}{tokens} };
    }

    return $n;
}


my @asr = (model => 'asr');
my $around = pieces("<|im_start|>system\n<|im_end|>\n<|im_start|>user\n",
                    '<|audio_start|>', '<|audio_end|>',
                    "<|im_end|>\n<|im_start|>assistant\n");

for ([ 800, 7 ], [ 8159, 7 ], [ 16159, 13 ], [ 16160, 14 ], [ 128000, 104 ],
     [ 136000, 111 ])
{
    my ($n, $rows) = @$_;
    my $r = chat([ sound(wav($n, 16000, 0.1)), $text ], @asr);

    is($r->{json}{usage}{prompt_tokens_details}{audio_tokens}, $rows,
       "$n samples are $rows tokens") or diag($r->{content});
    is(tokens($r), $around + $rows, 'and the words around them');
}

my $slice = chat([ sound(wav(16160, 16000, 0.1)) ], @asr);

is(said(chat([ sound(wav(16160, 16000, 0.1)), $text ], @asr)), said($slice),
   'the same sound, the same answer');
isnt(said(chat([ sound(wav(16160, 16000, 0.2)) ], @asr)), said($slice),
     'another sound has another answer');
is(tokens(chat([ (sound(wav(800, 16000, 0.1))) x 2 ], @asr)),
   $around + pieces('<|audio_start|>', '<|audio_end|>') + 2 * 7,
   'two sounds of a message');

my $image = { type => 'image_url', image_url => { url => LLM::Tower::url(
    LLM::Tower::png(40, 30, sub { ($_[0], $_[1], 9) })) } };
my $both = chat([ $image, sound(wav(1600, 16000, 0.1)), $text ]);
my $swapped = chat([ sound(wav(1600, 16000, 0.1)), $image, $text ]);

is($both->{status}, 200, 'an image and a sound') or diag($both->{content});
is(tokens($swapped), tokens($both), 'and the other way round');
isnt(said($swapped), said($both), 'in their order');

# two encoders in a file: images go to one, spectrograms to the other

my @two = (model => 'both');
my $seen = chat([ $image, $text ], @two);

$bare = tokens(chat([ $text ], @two));
is(said($seen), said(chat([ $image, $text ], model => 'sees')),
   'an image, as if there were no encoder of sound') or diag($seen->{content});

my $marks = tokens(chat([ sound(wav(100, 16000, 0.1)), $text ], @two)) - $bare
            - 1;

for ([ 160, 1 ], [ 800, 1 ], [ 801, 2 ], [ 1600, 3 ], [ 16000, 25 ],
     [ 16200, 26 ], [ 160000, 250 ])
{
    my ($n, $rows) = @$_;
    my $r = chat([ sound(wav($n, 16000, 0.1)), $text ], @two);

    is($r->{json}{usage}{prompt_tokens_details}{audio_tokens}, $rows,
       "$n samples are $rows tokens") or diag($r->{content});
    is(tokens($r), $bare + $marks + $rows, 'and the words around them');
}

is($marks, tokens($short) - tokens($plain) - 3, 'the words of another Gemma 4');
$heard = chat([ sound(wav(16000, 16000, 0.1)), $text ], @two);
is(said(chat([ sound(wav(16000, 16000, 0.1)), $text ], @two)), said($heard),
   'the same sound, the same answer');
isnt(said(chat([ sound(wav(16000, 16000, 0.2)), $text ], @two)), said($heard),
     'another sound has another answer');

my $mixed = chat([ $image, sound(wav(16000, 16000, 0.1)), $text ], @two);

is(tokens($mixed), tokens($seen) + $marks + 25, 'an image and a sound')
    or diag($mixed->{content});
is($mixed->{json}{usage}{prompt_tokens_details}{audio_tokens}, 25,
   'usage has the tokens of sound apart');
isnt(said($mixed), said($heard), 'the image counts');
isnt(said(chat([ $image, sound(wav(16000, 16000, 0.2)), $text ], @two)),
     said($mixed), 'the sound counts');
is(tokens(chat([ sound(wav(16000, 16000, 0.1)), $image,
                 sound(wav(801, 16000, 0.1)), $text ], @two)),
   tokens($seen) + 2 * $marks + 27, 'a sound before and one after it');

refused(chat([ sound(wav(1600, 16000, 0.1)), $text ], model => 'sees'),
        'messages[0].content[0].type', qr/takes text and images/,
        'a model that only sees');
refused(chat([ $text, sound('RIFF, not') ]),
        'messages[0].content[1]', qr/./, 'no WAV file');
{
    my $odd = wav(1600, 16000, 0.1);

    substr($odd, 20, 2) = pack 'v', 3;          # floats of 16 bits
    refused(chat([ $text, sound($odd) ]), 'messages[0].content[1]',
            qr/not what its header says/, 'a header that lies');
}

refused(chat([ $text, sound(wav(0, 16000, 1)) ]),
        'messages[0].content[1]', qr/empty/, 'no samples');
refused(chat([ sound(wav(17600, 16000, 0.1)), $text ],
             path => '/short/chat/completions'),
        'messages[0].content[0]', qr/second/,
        'more seconds than are allowed');
refused(chat([ sound(wav(400000, 16000, 0.1)), $text ]), 'messages',
        qr/token/, 'more than the context');
refused(chat([ $image, $text ], model => 'listens'),
        'messages[0].content[0].type', qr/takes text and audio/,
        'a model that only listens');

# 512 tokens are 20 seconds of frames, 40 of the other encoder: a sound that is
# not decoded to its end is told that limit, not one of seconds beyond it

for (qw(hears listens)) {
    refused(chat([ sound(wav(960000, 8000, 0.1)), $text ], model => $_,
                 path => '/long/chat/completions'), 'messages',
            qr/1024 tokens.*512 tokens/,
            "$_: two minutes");
}
refused(chat([ sound(wav(1600, 16000, 0.1)), $text ], model => 'odd'),
        'messages', qr/places for 0 of the 1/, 'a place for an image');

ok(LLM::Test::wait_for(30, sub {
    $t->get('/figures')->{json}{media_memory}{used} == 0 }),
   'nothing is left in the memory for media');

done_testing();
