#!/usr/bin/perl

# POST /v1/audio/transcriptions and translations: forms in pieces and by nginx's
# temporary file, all formats, streams, several at once, clients that leave,
# files that are broken or too large, fields that are wrong, models of the
# other kind, and a reload meanwhile.  The transcripts are those of the command
# llm, of a tiny model with weights at random and of the shared fixtures
# (LLM_FIXTURES/audio).

use strict;
use warnings;

use LLM::JSON;
use LLM::Test qw(slurp);
use LLM::Tower;
use LLM::Whisper qw(au model wav);
use Test::More;
use Time::HiRes qw(sleep time);

my $objs = $ENV{LLM_OBJS} || "$ENV{LLM_ROOT}/objs";
my $fixtures = $ENV{LLM_FIXTURES} ? "$ENV{LLM_FIXTURES}/audio" : '';
my $CRLF = "\r\n";
my $EDGE = 'edge-of-a-part';

# a form: pairs of names and values; [ name, value ] of the file

sub form {
    my ($file, @fields) = @_;
    my $body = '';

    while (my ($name, $value) = splice @fields, 0, 2) {
        $body .= "--$EDGE${CRLF}Content-Disposition: form-data; "
               . "name=\"$name\"$CRLF$CRLF$value$CRLF";
    }

    $body .= "--$EDGE${CRLF}Content-Disposition: form-data; name=\"file\"; "
           . "filename=\"$file->[0]\"${CRLF}Content-Type: audio/wav"
           . "$CRLF$CRLF$file->[1]$CRLF"
        if $file;

    return "$body--$EDGE--$CRLF";
}

my %TYPE = ('Content-Type' => "multipart/form-data; boundary=$EDGE");

my $wav = wav();

sub hear {
    my ($t, $fields, %o) = @_;

    return $t->post($o{path} // '/v1/audio/transcriptions',
                    form($o{file} // [ 'a.wav', $wav ], @$fields),
                    headers => { %TYPE, %{ $o{headers} // {} } });
}

sub is_ok {
    my ($res, $what) = @_;

    is($res->{status}, 200, $what) or diag($res->{body});
}

sub refused {
    my ($res, $status, $param, $words, $what) = @_;

    is($res->{status}, $status, $what) or diag($res->{body});
    is($res->{json}{error}{param}, $param, "$what: what is named");
    like($res->{json}{error}{message}, $words, "$what: the reason");
}

sub is_empty {
    my ($t, $what) = @_;

    ok(LLM::Test::wait_for(60, sub {
        my $f = $t->get('/figures')->{json};

        $f->{media_memory}{used} == 0
            && !grep { $_->{running} || $_->{waiting} } @{ $f->{models} }
    }), "$what: nothing is left") or diag($t->get('/figures')->{body});
}


my $t = LLM::Test->new(model => join("\n",
    'llm_model hears %%DIR%%/tiny.bin threads=1 parallel=2 alias=whisper-1;',
    'llm_model demo %%ROOT%%/models/demo.gguf threads=1 parallel=2 default;'),
    http => 'client_max_body_size 8m; client_body_buffer_size 16k; '
            . 'llm_media_memory 32m; '
            . 'log_format said escape=none "$llm_output";',
    locations => <<'END');
        location /v1 { llm_api; }
        location /kept/ {
            llm_capture 64k;
            llm_api;
            access_log %%DIR%%/said.log said;
        }
        location /small/ { llm_api; llm_max_audio_size 20k; }
        location /short/ { llm_api; llm_max_audio_seconds 1; }
        location = /health { llm_health; }
        location = /figures { llm_metrics json; }
END

$t->write_file('tiny.bin', model(51865));
$t->start;
ok($t->wait_ready, 'a model of speech is ready');

my $props = $t->get('/v1/props?model=hears')->{json};

ok($props->{modalities}{audio} && !$props->{modalities}{vision}, 'audio');
is(join(' ', @{ $props->{capabilities} }), 'audio', 'is all that it can do');
is(join(' ', @{ $t->get('/v1/models/hears')->{json}{architecture}
                   {input_modalities} }), 'audio', 'and takes');
is($t->get('/v1/tokenizer_info?model=hears')->{status}, 400,
   'it is described no further');


# ---- the formats ----

# a text at random is decoded again at higher temperatures, unless there is one

my @MODEL = (model => 'hears', temperature => '0.4');
my @HEAT = qw(--temperature 0.4);
my @ALL = (@MODEL, response_format => 'verbose_json');

sub command {
    my (@args) = @_;
    my $dir = $t->dir;

    $t->write_file('a.wav', $wav);

    @args = map { "'$_'" } "$objs/llm", 'transcribe', "$dir/tiny.bin",
                           "$dir/a.wav", @args;

    return scalar qx(@args);
}

my $res = hear($t, [ @ALL ]);
my $all = $res->{json};

is_ok($res, 'verbose_json');

my ($figures) = grep { $_->{name} eq 'hears' }
                @{ $t->get('/figures')->{json}{models} };

is($figures->{audio_seconds}, 2, 'seconds are counted');
cmp_ok($figures->{encodes}, '>', 0, 'and runs of the encoder');
is_deeply($all, decode_json(command(@HEAT, '--format', 'verbose_json')),
          'as the command has it')
    or diag($res->{body});
is($all->{duration}, 2, 'the duration');
is_deeply($all->{usage}, { type => 'duration', seconds => 2 }, 'the usage');

for my $format (qw(json text srt vtt)) {
    $res = hear($t, [ @MODEL, response_format => $format ]);
    is_ok($res, $format);
    is($res->{body} =~ s/\n*\z/\n/r,
       command(@HEAT, '--format', $format) =~ s/\n*\z/\n/r, "$format: as the command");
}

like($res->{headers}{'content-type'}, qr{^text/vtt}, 'vtt: its type');

$res = hear($t, [ @MODEL ]);
is($res->{headers}{'content-type'}, 'application/json', 'json by default');
is($res->{json}{text}, $all->{text}, 'its text');

hear($t, [ @MODEL, 'include[]' => 'logprobs' ],
     path => '/kept/audio/transcriptions');
ok(LLM::Test::wait_for(30, sub { -s $t->dir . '/said.log' }),
   'what is said is in the log');
is(slurp($t->dir . '/said.log') =~ s/\n+\z//r,
   do { my $s = $all->{text}; utf8::encode($s); $s }, 'as text alone');

$res = hear($t, [ @ALL, 'timestamp_granularities[]' => 'word',
                  'timestamp_granularities[]' => 'segment' ]);
is_ok($res, 'words and segments');
ok($res->{json}{words}, 'words');
my $want = decode_json(command(@HEAT, '--words', '--format',
                               'verbose_json'));

is_deeply($res->{json}{words}, $want->{words}, 'as the command has them');
is_deeply([ map { $_->{text} } @{ $res->{json}{segments} } ],
          [ map { $_->{text} } @{ $want->{segments} } ], 'segments');

$res = hear($t, [ @ALL, timestamp_granularities => 'word' ]);
ok($res->{json}{words} && !$res->{json}{segments}, 'words alone');

$res = hear($t, [ @MODEL, 'include[]' => 'logprobs' ]);
is_ok($res, 'log probabilities');
is(join('', map { pack 'C*', @{ $_->{bytes} } } @{ $res->{json}{logprobs} })
       =~ s/^\s+//r,
   do { my $s = $res->{json}{text}; utf8::encode($s); $s },
   'whose bytes are the text');

$res = hear($t, [ @ALL, language => 'de', prompt => 'Word 300.',
                  seed => 5 ]);
is_ok($res, 'a language, a prompt, a seed');
is($res->{json}{language}, 'german', 'the language');
is_deeply(hear($t, [ @ALL, language => 'de', prompt => 'Word 300.',
                     seed => 5 ])->{json},
          $res->{json}, 'chance can be had again');

$res = hear($t, [ model => 'whisper-1', response_format => 'verbose_json' ]);
is_ok($res, 'by its alias, at any temperature');
is_deeply($res->{json}, decode_json(command('--format', 'verbose_json')),
          'as the command has it');

$res = hear($t, [ @ALL ], path => '/v1/audio/translations');
is($res->{json}{task}, 'translate', 'a translation');

SKIP: {
    skip 'libsndfile is not installed', 1
        unless `'$objs/llm-media' --formats` =~ /^AU yes/m;

    $res = hear($t, [ @ALL ], file => [ 'a.au', au() ]);
    is($res->{json}{text}, $all->{text}, 'a file for the decoder process');

    refused(hear($t, [ @MODEL ], file => [ 'a.au',
            substr au(), 0, length(au()) / 2 ]), 400, 'file',
            qr/cut off: its sound begins/, 'half of it');
}

# a second of a tone without loss, and the same as WAV

SKIP: {
    skip 'FFmpeg is not installed', 3
        unless `'$objs/llm-media-ffmpeg' --formats` =~ / yes/;

    my $data = pack 's<*', map { int(sprintf '%.0f', 12288
                                     * sin(2 * 3.14159265358979 * 440 * $_
                                           / 8000)) } 0 .. 7999;
    my $tone = pack('a4 V a4 a4 V v v V V v v a4 V', 'RIFF',
                    36 + length $data, 'WAVE', 'fmt ', 16, 1, 1, 8000, 16000,
                    2, 16, 'data', length $data) . $data;
    my $of = 't/fuzz/corpus/recording';

    $want = hear($t, [ @MODEL ], file => [ 'a.wav', $tone ])->{json};
    $res = hear($t, [ @MODEL ], file => [ 'a.mov', slurp("$of/alac.mov") ]);
    is_ok($res, 'a recording');
    is($res->{json}{text}, $want->{text}, 'what the same sound is as WAV');
    refused(hear($t, [ @MODEL ], file => [ 'a.m4a',
                 substr slurp("$of/tone.m4a"), 0, 3000 ]), 400, 'file',
            qr/M4A file is damaged/, 'half a recording');
}

is_deeply(hear($t, [ @ALL ], file => [ 'a.wav', wav(40) ])->{json}{duration},
          40, 'a large one, by nginx\'s temporary file');


# ---- streams ----

sub events {
    my ($body) = @_;

    return map { decode_json($_) } grep { $_ ne '[DONE]' }
           $body =~ /^data: (.*)$/mg;
}

for my $long (0, 1) {
    my $file = [ 'a.wav', $long ? wav(70) : $wav ];
    my $whole = hear($t, [ @MODEL, language => 'en' ], file => $file);

    $res = hear($t, [ @MODEL, language => 'en', stream => 'true' ],
                file => $file);
    is_ok($res, 'a stream');
    like($res->{headers}{'content-type'}, qr{^text/event-stream}, 'its type');

    my @e = events($res->{body});
    my $done = pop @e;

    is($done->{type}, 'transcript.text.done', 'its last event');
    is($done->{text}, $whole->{json}{text}, 'has the whole text');
    is(join('', map { $_->{delta} } @e) =~ s/\s+$//r, $done->{text},
       'as the others together');
    is(scalar(grep { $_->{type} ne 'transcript.text.delta' } @e), 0,
       'which are deltas');
}


# ---- several at once ----

my @open = map { $t->open('/v1/audio/transcriptions',
                          form([ 'a.wav', $wav ], @ALL), headers => \%TYPE) }
           1 .. 5;
my $chat = $t->post('/v1/completions', { model => 'demo', prompt => 'a',
                                         max_tokens => 4 });

is_ok($chat, 'a completion meanwhile');
is_deeply($_->response->{json}, $all, 'one of five at once') for @open;
is_empty($t, 'five at once');


# ---- what is refused ----

refused(hear($t, [ model => 'nobody' ]), 404, 'model', qr/nobody/,
        'an unknown model');
refused(hear($t, [ model => 'demo' ]), 400, 'model',
        qr/does not transcribe speech/, 'a model of text');
refused($t->post('/v1/chat/completions', { model => 'hears',
        messages => [ { role => 'user', content => 'a' } ] }), 400, 'model',
        qr{transcribes speech: use /v1/audio/transcriptions}, 'a chat');
refused($t->post('/v1/embeddings', { model => 'hears', input => 'a' }), 400,
        'model', qr{transcribes speech}, 'an embedding');
refused($t->post('/v1/audio/transcriptions', form(undef, @MODEL),
                 headers => \%TYPE), 400, 'file',
        qr/Missing required parameter: 'file'/, 'no file');
refused(hear($t, [ @MODEL, language => 'klingon' ]), 400, 'language',
        qr/klingon/, 'a language');
refused(hear($t, [ model => 'hears', temperature => '7' ]), 400, 'temperature',
        qr/0 to 1/, 'a temperature');
refused(hear($t, [ @MODEL, 'chunking_strategy[type]' => 'server_vad' ]), 400,
        'chunking_strategy', qr/'auto'/, 'a member of an object');
refused(hear($t, [ @MODEL, response_format => 'doc' ]), 400,
        'response_format', qr/verbose_json/, 'a format');
refused(hear($t, [ @MODEL, 'timestamp_granularities[]' => 'word' ]), 400,
        'timestamp_granularities', qr/verbose_json/, 'words in json');
refused(hear($t, [ @MODEL ], file => [ 'a.wav', '' ]), 400, 'file', qr/empty/,
        'an empty file');
refused(hear($t, [ @MODEL ], file => [ 'a.wav', substr $wav, 0, 1000 ]), 400,
        'file', qr/cut off/, 'a file that is cut off');
refused(hear($t, [ @MODEL ], file => [ 'a.wav', '<html>' x 5000 ]), 400,
        'file', qr/cannot be decoded/, 'a file without sound');
refused(hear($t, [ @MODEL ], path => '/small/audio/transcriptions'), 413,
        'file', qr/at most 20480 bytes.*llm_max_audio_size/,
        'a file that is too large');
refused(hear($t, [ @MODEL ], path => '/short/audio/transcriptions'), 400,
        'file', qr/second/, 'a sound that is too long');

$res = $t->post('/v1/audio/transcriptions', { model => 'hears' });
is($res->{status}, 415, 'JSON');
is($t->post('/v1/audio/transcriptions', substr(form([ 'a', $wav ], @MODEL),
            0, 5000), headers => \%TYPE)->{status}, 400, 'a form without end');
is($t->get('/v1/audio/transcriptions')->{status}, 405, 'GET');
is_empty($t, 'refusals');


# ---- clients that leave ----

my $long = wav(110);

for my $stream ('false', 'true') {
    my $c = $t->open('/v1/audio/transcriptions',
                     form([ 'a.wav', $long ], @MODEL, stream => $stream),
                     headers => \%TYPE);

    ok(LLM::Test::wait_for(60, sub {
        grep { $_->{running} } @{ $t->get('/figures')->{json}{models} }
    }), 'a long one runs');
    $c->close;
    is_empty($t, 'a client that leaves');
}

my $cut = $t->open('/', undef, raw =>
    "POST /v1/audio/transcriptions HTTP/1.1${CRLF}Host: localhost$CRLF"
    . "Content-Type: $TYPE{'Content-Type'}${CRLF}Content-Length: 900000"
    . "$CRLF$CRLF" . substr form([ 'a.wav', $long ], @MODEL), 0, 200000);

$cut->close;
is_empty($t, 'one that leaves while it sends');
is_ok(hear($t, [ @MODEL ]), 'the next one is served');


# ---- a reload meanwhile ----

my $c = $t->open('/v1/audio/transcriptions', form([ 'a.wav', $wav ], @ALL),
                 headers => \%TYPE);

$t->reload;
is_deeply($c->response->{json}, $all, 'one that was there before a reload');
ok(LLM::Test::wait_for(60, sub { hear($t, [ @MODEL ])->{status} == 200 }),
   'after the reload');
$t->stop;


# ---- commands, another file, idle models, quotas, keys of idempotency ----

$t = LLM::Test->new(model => join("\n",
    'llm_model hears %%DIR%%/tiny.bin threads=1 parallel=1 warmup;',
    'llm_model lazy %%DIR%%/tiny.bin threads=1 lazy;',
    'llm_model four %%DIR%%/tiny.bin threads=1 parallel=4 lazy;',
    'llm_model text %%ROOT%%/models/demo.gguf threads=1 lazy;',
    'llm_model demo %%ROOT%%/models/demo.gguf threads=1 parallel=2 default;'),
    http => 'client_max_body_size 8m; llm_idempotency 8m; '
            . 'llm_token_zone $http_x_tenant zone=z:1m rate=1/h; '
            . 'llm_token_zone $http_x_tenant zone=s:1m rate=1/h '
            . 'count=audio;',
    locations => <<'END');
        location /v1 { llm_api; }
        location /paid/ { llm_api; llm_token_limit zone=z burst=1 reserve=0; }
        location /dear/ { llm_api; llm_token_limit zone=z burst=200; }
        location /timed/ { llm_api; llm_token_limit zone=s burst=4; }
        location /left/ { llm_api; llm_token_limit zone=s burst=120; }
        location /admin { llm_admin models=. new=1; }
        location = /health { llm_health; }
        location = /figures { llm_metrics json; }
        location = /metrics { llm_metrics; }
END
$t->write_file('tiny.bin', model(51865));
$t->write_file('other.bin', model(51864));
$t->start;
ok($t->wait_ready, 'more models of speech');

is_ok(hear($t, [ @MODEL, model => 'lazy' ]), 'a model that is loaded when it '
                                             . 'is asked');

is_ok(hear($t, [ @MODEL, model => 'four' ]), 'and another');

sub cache {
    my ($text) = $t->get('/metrics')->{body}
        =~ /^llm_kv_cache_bytes\{[^}]*model_name="$_[0]"[^}]*\} (\S+)/m;

    return $text;
}

ok(cache('four') && cache('four') == cache('lazy'),
   'four places by default');

$t->post('/admin/models/text/load', { file => 'tiny.bin' });
$t->request(method => 'PUT', path => '/admin/models/added',
            body => { file => 'tiny.bin' });

for my $name ('text', 'added') {
    ok(LLM::Test::wait_for(60, sub {
        hear($t, [ @MODEL, model => $name ])->{status} == 200
    }), "$name: a file of speech that a command loads");
    is(cache($name), cache('four'), 'has four places, too');
}

$t->request(method => 'DELETE', path => '/admin/models/added');

$res = $t->post('/admin/models/hears/unload', {});
ok($res->{status} < 300, 'unload') or diag($res->{body});
ok(LLM::Test::wait_for(30, sub {
    hear($t, [ @MODEL ])->{status} == 503
}), 'it is unloaded');
ok(LLM::Test::wait_for(30, sub {        # it may be in use yet
    $t->post('/admin/models/hears/load', {})->{status} < 300
}), 'load');
ok(LLM::Test::wait_for(30, sub {
    hear($t, [ @MODEL ])->{status} == 200
}), 'it is loaded again');

my $old = $t->open('/v1/audio/transcriptions', form([ 'a.wav', wav(20) ],
                   @MODEL), headers => \%TYPE);

$res = $t->post('/admin/models/hears/load', { file => 'other.bin' });
ok($res->{status} < 300, 'another file') or diag($res->{body});
ok(LLM::Test::wait_for(60, sub {
    my $r = hear($t, [ @MODEL, language => 'de' ]);

    $r->{status} == 400 && $r->{body} =~ /English only/
}), 'takes its place');
is($old->response->{status}, 200, 'one that ran with the first file');

is(hear($t, [ @MODEL ], path => '/dear/audio/transcriptions',
        headers => { 'X-Tenant' => 'joe' })->{status}, 429,
   'what the text may have is charged in advance');
is_ok(hear($t, [ @MODEL ], path => '/paid/audio/transcriptions',
           headers => { 'X-Tenant' => 'ann' }), 'within a quota');
is(hear($t, [ @MODEL ], path => '/paid/audio/transcriptions',
        headers => { 'X-Tenant' => 'ann' })->{status}, 429,
   'its tokens were counted');

my @timed = (path => '/timed/audio/transcriptions',
             headers => { 'X-Tenant' => 'eve' });

refused(hear($t, [ @MODEL ], file => [ 'a.wav', wav(5) ], @timed), 429, undef,
        qr/has 5 seconds of audio, more than the 4/, 'a quota of seconds');
is_ok(hear($t, [ @MODEL ], @timed), 'two of four seconds');
is_ok(hear($t, [ @MODEL ], @timed), 'the other two');
refused(hear($t, [ @MODEL ], @timed), 429, undef,
        qr/0 of 4 seconds of audio are left, 1 are needed/, 'one more');
is_ok($t->post('/timed/completions', { model => 'demo', prompt => 'a',
      max_tokens => 2 }, headers => { 'X-Tenant' => 'eve' }),
      'a completion takes none');

# a client that leaves pays for what is computed: the first 30 seconds, if no
# segment was there so far.  A machine may have done all before it has left: then
# it is asked again

my $rest;

for my $try (1 .. 10) {
    my $who = "bob-$try";
    my $early = $t->open('/left/audio/transcriptions',
                         form([ 'a.wav', $long ], @MODEL, stream => 'true'),
                         headers => { %TYPE, 'X-Tenant' => $who });

    $early->read_header;
    $early->close;
    LLM::Test::wait_for(60, sub {
        !grep { $_->{running} || $_->{waiting} }
              @{ $t->get('/figures')->{json}{models} }
    });
    ($rest) = hear($t, [ @MODEL ], file => [ 'a.wav', $long ],
                   path => '/left/audio/transcriptions',
                   headers => { 'X-Tenant' => $who })->{body}
        =~ /(\d+) of 120 seconds of audio are left, 110 are needed/;
    last if defined $rest && $rest > 10;
}

cmp_ok($rest // 0, '>', 10, 'a transcription whose client leaves');
cmp_ok($rest, '<=', 90, 'costs 30 seconds or more');

my %key = (headers => { 'Idempotency-Key' => 'k1' });
my $first = hear($t, [ @MODEL ], file => [ 'a.wav', wav(3) ], %key);

is_ok($first, 'with a key');
is(hear($t, [ @MODEL ], file => [ 'a.wav', wav(3) ], %key)->{body},
   $first->{body}, 'the same file');
$res = hear($t, [ @MODEL ], file => [ 'a.wav', wav(4) ], %key);
is($res->{status}, 409, 'another file with the same key');
is($res->{json}{error}{code}, 'idempotency_key_reused', 'is not that one');
is_empty($t, 'all that');

$t->post('/admin/models/lazy/load', { file => 'other.bin' });
ok(LLM::Test::wait_for(60, sub {
    hear($t, [ @MODEL, model => 'lazy', language => 'de' ])->{body}
        =~ /English only/
}), 'another file for the other model, too');
$t->reload;
ok(LLM::Test::wait_for(60, sub { hear($t, [ @MODEL ])->{status} == 200 }),
   'after a reload there is memory for the models that are there')
    or diag(hear($t, [ @MODEL ])->{body});
$t->stop(name => 'commands');


# ---- parameters of llm_model that are not for speech ----

for my $param ('mmproj=%%DIR%%/ear.gguf', 'speculate=ngram',
               'template=%%DIR%%/t.jinja')
{
    my ($word) = $param =~ /^(\w+=)/;

    $t = LLM::Test->new(model => "llm_model hears %%DIR%%/tiny.bin $param "
                                 . 'required;');
    $t->write_file('tiny.bin', model(51865));
    $t->write_file('t.jinja', '{{ 1 }}');
    LLM::Tower::make_ear($t->dir . '/ear.gguf');

    my ($status, $out) = $t->check;

    ok($status != 0 && $out =~ /model of speech takes no \Q$word\E/,
       "$word is refused by nginx -t") or diag($out);
}


# ---- an engine that dies before there is text ----

$t = LLM::Test->new(workers => 2, model => 'llm_model hears %%DIR%%/tiny.bin '
                                           . 'threads=1 parallel=1;',
    http => 'client_max_body_size 8m; '
            . 'llm_token_zone $http_x_tenant zone=s:1m rate=1/h '
            . 'count=audio;',
    locations => <<'END');
        location /v1/ { llm_api; llm_token_limit zone=s burst=120; }
        location = /health { llm_health; }
        location /admin { llm_admin; }
END
$t->write_file('tiny.bin', model(51865));
$t->start;
ok($t->wait_ready, 'two workers');

my ($body, $who) = ('');

for (1 .. 40) {
    $who = "try-$_";

    my $dying = $t->open('/v1/audio/transcriptions',
                         form([ 'a.wav', $long ], @MODEL, stream => 'true'),
                         headers => { %TYPE, 'X-Tenant' => $who });

    $dying->read_header;
    $t->kill('KILL', $t->engine_worker);
    $body = eval { $dying->response->{body} } // '';
    $t->wait_ready;
    last if $body =~ /engine_restarting/ && $body !~ /delta/;
}

like($body, qr/engine_restarting/, 'the engine dies');
unlike($body, qr/delta/, 'before there is text');
is_ok(hear($t, [ @MODEL ], file => [ 'a.wav', wav(119) ],
           headers => { 'X-Tenant' => $who }), 'and it costs nothing');
$t->stop(allow => qr/exited on signal 9/, name => 'the one that died');


# ---- probes ----

# the demo model is asked several times: the model of speech would have been, too

$t = LLM::Test->new(model => join("\n",
    'llm_model hears %%DIR%%/tiny.bin threads=1;',
    'llm_model demo %%ROOT%%/models/demo.gguf threads=1 default;'),
    locations => <<'END');
        location = /health { llm_health; }
        location = /probed { llm_health ready hears probe=20ms; }
        location = /all { llm_health ready probe=20ms; }
        location = /figures { llm_metrics json; }
END
$t->write_file('tiny.bin', model(51865));
$t->start;
ok($t->wait_ready, 'two models with probes');
ok(LLM::Test::wait_for(60, sub {
    my ($demo) = grep { $_->{name} eq 'demo' } @{ $t->get('/figures')->{json}{models} };
    $demo->{steps} >= 5;
}), 'are probed') or diag($t->get('/figures')->{body});
$res = $t->get('/probed');
is($res->{status}, 200, 'and one of speech is not asked for text')
    or diag($res->{body});
$t->stop;


# ---- OpenAI's program's transcripts ----

SKIP: {
    skip 'LLM_FIXTURES is not set', 1 unless $fixtures;
    skip "$fixtures is missing", 1 unless -e "$fixtures/speech.wav";

    $t = LLM::Test->new(
        model => "llm_model f16 $fixtures/w-multi-f16.bin threads=1;\n"
                 . "llm_model v3 $fixtures/w-hf-v3 threads=1;",
        http => 'client_max_body_size 8m;');
    $t->start;
    ok($t->wait_ready, 'the fixtures are ready');

    for ([ 'f16', 'w-multi-f16' ], [ 'v3', 'w-hf-v3' ]) {
        my ($model, $name) = @$_;
        my $decode = decode_json(slurp("$fixtures/$name.json"))->{decode};
        my $case = $decode->{'language en'} ? 'language en' : 'plain';
        my $want = decode_json(scalar qx('$objs/llm' transcribe \\
            '$fixtures/@{[ -e "$fixtures/$name.bin" ? "$name.bin" : $name ]}' \\
            '$fixtures/speech.wav' --language en --format json));

        $res = hear($t, [ model => $model, language => 'en' ],
                    file => [ 'a.wav', slurp("$fixtures/speech.wav") ]);
        is_ok($res, "$name, $case");
        is($res->{json}{text}, $want->{text}, "$name: its text");
    }

    $t->stop;
}

done_testing();
