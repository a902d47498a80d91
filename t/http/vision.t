#!/usr/bin/perl

# Images in requests, from their bytes to the answer: in all dialects, in turns
# and in results of tools, counted and found again in the cache; with files that
# are broken, too large, or cost the decoder its life.  The demo model has a
# tiny encoder here; real families are those of the shared fixtures
# (LLM_FIXTURES/vision), with prompts token by token and probabilities.

use strict;
use warnings;

use Compress::Zlib qw(crc32);
use JSON::PP;
use LLM::Test qw(slurp);
use LLM::Tower;
use MIME::Base64 qw(encode_base64);
use Test::More;
use Time::HiRes qw(sleep time);

my @FAMILIES = qw(qwen3vl qwen25vl qwen35 gemma3 gemma4 gemma4e mistral3
                  smolvlm internvl glm4v);
my $fixtures = $ENV{LLM_FIXTURES} ? "$ENV{LLM_FIXTURES}/vision" : '';

my $RED = LLM::Tower::png(40, 30, sub { (200, 30, $_[0]) });
my $BLUE = LLM::Tower::png(17, 60, sub { (10, $_[1], 250) });

# 2 x 2 pixels, 24 bits each
my $BMP = 'BM' . pack('VvvVVVVvvVVVVVV', 70, 0, 0, 54, 40, 2, 2, 1, 24, 0, 16,
                      2835, 2835, 0, 0) . "\x10\x20\x30" x 5 . "\0";

sub image { return { type => 'image_url',
                     image_url => { url => LLM::Tower::url(@_) } } }
sub text { return { type => 'text', text => $_[0] } }
sub user { return { role => 'user', content => [ @_ ] } }

sub ask {
    my ($t, $model, $messages, %more) = @_;

    return $t->post('/v1/chat/completions', {
        model => $model, max_tokens => 4, temperature => 0,
        messages => $messages, %more });
}

# an answer's prompt, its rows of images and its cached rows

sub counts {
    my ($res) = @_;
    my $u = $res->{json}{usage} // {};

    return ($u->{prompt_tokens} // $u->{input_tokens},
            $u->{prompt_tokens_details}{cached_tokens} // 0);
}

sub says { return $_[0]->{json}{choices}[0]{message}{content} }

sub is_ok {
    my ($res, $what) = @_;

    is($res->{status}, 200, $what) or diag($res->{body});
}

sub refused {
    my ($res, $status, $place, $words, $what) = @_;

    is($res->{status}, $status, $what) or diag($res->{body});
    is($res->{json}{error}{param}, $place, 'which is named');
    like($res->{json}{error}{message}, $words, 'with the reason');
}

sub is_empty {
    my ($t) = @_;

    ok(LLM::Test::wait_for(30, sub {
        $t->get('/figures')->{json}{media_memory}{used} == 0
    }), 'nothing is left in the memory for media');
}


# ---- a tiny encoder ----

my $t = LLM::Test->new(model => join("\n",
    'llm_model blind %%ROOT%%/models/demo.gguf threads=1 parallel=2;',
    'llm_model sees %%ROOT%%/models/demo.gguf threads=1 parallel=4 '
    . 'template=%%DIR%%/images.jinja mmproj=%%DIR%%/mmproj.gguf default;',
    'llm_model lost %%ROOT%%/models/demo.gguf threads=1 parallel=2 '
    . 'template=%%DIR%%/lost.jinja mmproj=%%DIR%%/mmproj.gguf;',
    'llm_model narrow %%ROOT%%/models/demo.gguf threads=1 parallel=2 ctx=64 '
    . 'template=%%DIR%%/images.jinja mmproj=%%DIR%%/mmproj.gguf;'),
    http => 'client_max_body_size 40m; llm_media_memory 32m;',
    locations => <<'END');
        location /v1 { llm_api; }
        location /skip/ { llm_api; llm_images skip; }
        location /tiny/ { llm_api; llm_max_image_pixels 1024; }
        location = /health { llm_health; }
        location = /figures { llm_metrics json; }
END

LLM::Tower::make($t->dir . '/mmproj.gguf');
$t->write_file('images.jinja', $LLM::Tower::TEMPLATE);
(my $lost = $LLM::Tower::TEMPLATE) =~ s/<start_of_image>/<picture>/;
$t->write_file('lost.jinja', $lost);
$t->start;
ok($t->wait_ready, 'models with an encoder are ready');

for (['sees', 1, 'text image'], ['blind', 0, 'text']) {
    my ($name, $vision, $takes) = @$_;
    my $props = $t->get("/v1/props?model=$name")->{json};

    is(!!$props->{modalities}{vision}, !!$vision, "$name: vision");
    ok(!$props->{modalities}{audio}, 'and no audio');
    is(scalar(grep { $_ eq 'vision' } @{ $props->{capabilities} }), $vision,
       'is what it can do');
    is(join(' ', @{ $t->get("/v1/models/$name")->{json}{architecture}
                       {input_modalities} }), $takes, 'and takes');
}

my $res = ask($t, 'sees', [ user(text('What is it?')) ]);
my ($plain) = counts($res);

is_ok($res, 'without an image');

my @red = (image($RED), text('What is it?'));

$res = ask($t, 'sees', [ user(@red) ], return_token_ids => \1);
is_ok($res, 'with an image');
my ($n) = counts($res);
my $red = says($res);
my @zeros = grep { $_ == 0 } @{ $res->{json}{prompt_token_ids} };

is(scalar @{ $res->{json}{prompt_token_ids} }, $n, 'its prompt has all rows');
cmp_ok($n, '>=', $plain + $LLM::Tower::TOKENS, 'those of the image, too');
is(scalar @zeros, $LLM::Tower::TOKENS, 'which have no token');

$res = ask($t, 'sees', [ user(@red), { role => 'assistant', content => $red },
                         user(text('Why?')) ]);
my ($m, $cached) = counts($res);

is_ok($res, 'a second question, with the image in an older turn');
cmp_ok($cached, '>=', $n - 16, 'its rows are found in the cache');

my ($f) = grep { $_->{name} eq 'sees' } @{ $t->get('/figures')->{json}{models} };

cmp_ok($f->{encodes}, '>', 0, 'the image was encoded');
is($f->{media_queries}, $f->{media_hits} + $f->{encodes},
   'as often as its rows were not kept');

my @logprobs = map {
    $res = ask($t, 'sees', [ user(@$_) ], logprobs => \1, top_logprobs => 5);
    is_ok($res, 'an image');
    JSON::PP->new->canonical->encode($res->{json}{choices}[0]{logprobs});
} [ @red ], [ image($BLUE), text('What is it?') ], [ @red ];

isnt($logprobs[0], $logprobs[1], 'another image, another answer');
is($logprobs[0], $logprobs[2], 'the same image, the same answer');

$res = ask($t, 'sees', [ user(image($RED), image($BLUE), text('And now?')) ],
           n => 2, return_token_ids => \1);
is_ok($res, 'two images and two answers');
is(says($res), $res->{json}{choices}[1]{message}{content}, 'which are equal');
@zeros = grep { $_ == 0 } @{ $res->{json}{prompt_token_ids} };
is(scalar @zeros, 2 * $LLM::Tower::TOKENS, 'rows of both');

$res = ask($t, 'sees', [ user(text('Look.')),
    { role => 'assistant', content => undef, tool_calls => [
        { id => 'c1', type => 'function',
          function => { name => 'see', arguments => '{}' } } ] },
    { role => 'tool', tool_call_id => 'c1', content => [ image($BLUE) ] } ],
    tools => [ { type => 'function', function => { name => 'see' } } ],
    return_token_ids => \1);
is_ok($res, 'in the result of a tool');
@zeros = grep { $_ == 0 } @{ $res->{json}{prompt_token_ids} };
is(scalar @zeros, $LLM::Tower::TOKENS, 'it has its rows');

$res = $t->post('/v1/responses', { model => 'sees', max_output_tokens => 4,
    temperature => 0, input => [ { role => 'user', content => [
        { type => 'input_image', image_url => LLM::Tower::url($RED) },
        { type => 'input_text', text => 'What is it?' } ] } ] });
is_ok($res, 'of Responses');
is(($res->{json}{usage} // {})->{input_tokens}, $n, 'as many tokens');

my @claude = ( { type => 'image', source => { type => 'base64',
    media_type => 'image/png', data => encode_base64($RED, '') } },
    text('What is it?') );

$res = $t->post('/v1/messages', { model => 'sees', max_tokens => 4,
    temperature => 0, messages => [ user(@claude) ] });
is_ok($res, 'of Messages');
my $u = $res->{json}{usage} // {};
is(($u->{input_tokens} // 0) + ($u->{cache_read_input_tokens} // 0), $n,
   'as many tokens');
$res = $t->post('/v1/messages/count_tokens', { model => 'sees',
    messages => [ user(@claude) ] });
is_ok($res, 'counted before');
is($res->{json}{input_tokens}, $n, 'as many tokens again');

my $stream = $t->open('/v1/chat/completions', {
    model => 'sees', max_tokens => 4, temperature => 0, stream => \1,
    messages => [ user(@red) ] })->response;
is($stream->{status}, 200, 'a stream');
my $said = join '', $stream->{body} =~ /"content":"((?:[^"\\]|\\.)*)"/g;
is(JSON::PP->new->allow_nonref->decode("\"$said\""), $red,
   'says what the whole answer does');

is_ok(ask($t, 'sees', [ user({ type => 'image_url', image_url => { url =>
        'data:image/bmp;base64,' . encode_base64($BMP, '') } },
        text('What is it?')) ]), 'a BMP file');

# a user's text is no place

$res = ask($t, 'sees', [ user(text('<start_of_image>'), @red) ],
           return_token_ids => \1);
is_ok($res, 'a text like a place');
@zeros = grep { $_ == 0 } @{ $res->{json}{prompt_token_ids} };
is(scalar @zeros, $LLM::Tower::TOKENS, 'is text');
is_empty($t);


# ---- errors ----

refused(ask($t, 'blind', [ user(@red) ]), 400, 'messages[0].content[0].type',
        qr/takes text only/, 'a model without an encoder');
is_ok($t->post('/skip/v1/chat/completions', { model => 'blind',
    max_tokens => 2, messages => [ user(@red) ] }), 'llm_images skip');
refused(ask($t, 'lost', [ user(@red) ]), 400, 'messages',
        qr/places for 0 of the 1 images/, 'a template without places');
refused(ask($t, 'narrow', [ user((@red) x 5) ]), 400, 'messages',
        qr/maximum context length is 64 tokens/, 'more rows than fit');
refused(ask($t, 'sees', [ user(text('a'), image('x' x 5000)) ]), 400,
        'messages[0].content[1]', qr/no image that is known/, 'no image');
refused(ask($t, 'sees', [ user(image(substr $RED, 0, 60)) ]), 400,
        'messages[0].content[0]', qr/PNG file is damaged|ends early/,
        'half an image');
refused(ask($t, 'sees', [ user(@red, image(LLM::Tower::png(30000, 30000,
        sub { (0, 0, 0) }, 0))) ]), 400, 'messages[0].content[2]',
        qr/30000 x 30000 pixels/, 'an image that is too large');
refused($t->post('/tiny/v1/chat/completions', { model => 'sees',
        max_tokens => 2, messages => [ user(@red) ] }), 400,
        'messages[0].content[0]', qr/40 x 30 pixels/,
        'larger than the location allows');
is_empty($t);


# ---- the decoder's death ----

# the processes llm-media that this nginx has started

sub decoders {
    my %mine = map { $_ => 1 } $t->workers;
    my @found;

    for my $stat (glob '/proc/[0-9]*/stat') {
        open my $f, '<', $stat or next;
        my ($pid, $name, $parent) = (<$f> // '') =~ /^(\d+) \((.*)\) \S (\d+)/
            or next;

        push @found, $pid if $name eq 'llm-media' && $mine{$parent};
    }

    return @found;
}

my @pids = decoders();
is(scalar @pids, 1, 'a decoder runs');

kill 'STOP', $_ for @pids;
my $waits = $t->open('/v1/chat/completions', {
    model => 'sees', max_tokens => 2, messages => [ user(@red) ] });
my $other = ask($t, 'sees', [ user(text('What?')) ]);
is_ok($other, 'text does not wait for a decoder');
refused(ask($t, 'sees', [ user(text('What? ' x 20_000)) ]), 400, 'messages',
        qr/maximum context length/, 'nor does one that takes long to prepare');
ok(!LLM::Client::ready(0, $waits), 'the image still waits');
sleep 0.3;
kill 'KILL', $_ for @pids;
$res = $waits->response;
is($res->{status}, 503, 'a request whose decoder is killed fails');
like($res->{json}{error}{message}, qr/cannot be decoded by this server now/,
     'and the client does not see why');
ok($t->wait_log(qr/model "sees": an image is not decoded: /), 'the log says it');
is_ok(ask($t, 'sees', [ user(@red) ]), 'the next one has a new decoder');
ok(!grep({ my $p = $_; grep { $_ == $p } @pids } decoders()),
   'which is another process');
is_empty($t);
$t->stop(name => 'tiny', allow => qr/signal 9|an image is not decoded/);


# ---- without the decoder ----

# the module is in a folder where llm-media is not

$t = LLM::Test->new(model => 'llm_model sees %%ROOT%%/models/demo.gguf '
    . 'threads=1 template=%%DIR%%/images.jinja mmproj=%%DIR%%/mmproj.gguf;');
(my $conf = $t->conf) =~ s{%%OBJS%%/(ngx_http_llm_module)}{%%DIR%%/alone/$1};
$t->write_conf($conf);
LLM::Tower::make($t->dir . '/mmproj.gguf');
$t->write_file('images.jinja', $LLM::Tower::TEMPLATE);
mkdir $t->dir . '/alone' or die $!;
system('cp', "$LLM::Test::OBJS/ngx_http_llm_module.so", $t->dir . '/alone')
    == 0 or die 'no module';
$t->start;
ok($t->wait_ready, 'a server without a decoder');
$res = ask($t, 'sees', [ user(@red) ]);
is($res->{status}, 503, 'takes no images');
unlike($res->{body}, qr{/alone}, 'and does not say where it looked');
ok($t->wait_log(qr/program llm-media.*is not in \S+alone: install it/),
   'but to the log');
is_ok(ask($t, 'sees', [ user(text('What?')) ]), 'it takes text');
$t->stop(name => 'alone');


# ---- families ----

if (!-d $fixtures) {
    SKIP: {
        skip 'LLM_FIXTURES is not set: no fixtures of images', 1;
    }

    done_testing();
    exit;
}

my %spec = map {
    $_ => decode_json(slurp("$fixtures/$_/spec.json"))
} @FAMILIES;

$t = LLM::Test->new(model => join("\n", map {
    "llm_model $_ $fixtures/$_/text.gguf mmproj=$fixtures/$_/mmproj.gguf "
    . 'threads=1 parallel=2;'
} @FAMILIES), locations => <<'END');
        location /v1 { llm_api; }
        location = /health { llm_health; }
        location = /figures { llm_metrics json; }
END
$t->start;
ok($t->wait_ready, 'all families are ready');

# where the fixture's template writes just the text of the prompt: others trim
# texts, or write a newline after an image

my @same = qw(qwen3vl qwen25vl qwen35 mistral3 glm4v);
my %exact = (one => [ @same, qw(gemma3 gemma4 gemma4e smolvlm) ],
             two => \@same, turn2 => \@same);

sub prompt {
    my ($family, $name) = @_;

    return (grep { $_->{name} eq $name } @{ $spec{$family}{prompts} })[0];
}

sub messages {
    my ($family, $name) = @_;
    my $images = $spec{$family}{images};
    my @i = map {
        my $file = $images->[$_]{file};
        image(slurp("$fixtures/$family/$file"),
              $file =~ /jpg$/ ? 'image/jpeg' : 'image/png');
    } @{ prompt($family, $name)->{images} };

    return $name eq 'one' ? [ user($i[0], text('what is in this?')) ]
         : $name eq 'two' ? [ user(text('first '), $i[0], text(' and '), $i[1],
                                   text('the other')) ]
         : [ user(text('hello to you')),
             { role => 'assistant', content => 'the answer is that' },
             user(text('and this: '), $i[0]) ];
}

# the rows that the fixture says: tokens, and 0 for those of images

sub rows {
    my ($prompt) = @_;

    return map { $_->[0] eq 'text' ? @{ $_->[1] } : (0) x $_->[3] }
           @{ $prompt->{segments} };
}

# the logarithms of the probabilities after a prompt

sub after {
    my ($family, $name) = @_;
    my @l = unpack 'f<*', slurp("$fixtures/$family/$name.logits");
    my ($max, $sum) = (-1e30, 0);

    @l = @l[-512 .. -1];

    for (@l) { $max = $_ if $_ > $max }
    $sum += exp($_ - $max) for @l;

    return map { $_ - $max - log $sum } @l;
}

# more tokens than the context has: by the size in the header, as the file is cut
# off after it

my $cut = "\x89PNG\r\n\x1a\n" . pack('NA4NNC5', 13, 'IHDR', 8192, 8192, 8, 2,
                                       0, 0, 0);
$cut .= pack 'NNA4N', crc32(substr $cut, 12), 1, 'IDAT', 0;

$res = ask($t, 'qwen3vl', [ user(image($cut), text('what is in this?')) ]);
is($res->{status}, 400, 'an image of more tokens than the context has')
    or diag($res->{body});
is($res->{json}{error}{code}, 'context_length_exceeded', 'is not decoded')
    or diag($res->{body});

# of Qwen's images no side is 200 times the other

substr $cut, 16, 8, pack 'NN', 8192, 8;
substr $cut, 29, 4, pack 'N', crc32(substr $cut, 12, 17);
$res = ask($t, 'qwen3vl', [ user(image($cut), text('what is in this?')) ]);
is($res->{status}, 400, 'nor is one that is too narrow');
unlike($res->{json}{error}{message}, qr/decoded/, 'which is what is wrong')
    or diag($res->{body});

for my $name (qw(one two turn2)) {
    for my $family (@{ $exact{$name} }) {
        my $prompt = prompt($family, $name);
        my $res = ask($t, $family, messages($family, $name), max_tokens => 1,
                      logprobs => \1, top_logprobs => 5,
                      return_token_ids => \1, ignore_eos => \1);

        is_ok($res, "$family, $name");
        is(join(' ', @{ $res->{json}{prompt_token_ids} // [] }),
           join(' ', rows($prompt)),
           'its prompt is the processor\'s');

        my @want = sort { $b <=> $a } after($family, $name);
        my $got = $res->{json}{choices}[0]{logprobs}{content}[0]{top_logprobs};
        my $off = 0;

        for (0 .. 4) {
            my $d = abs(($got->[$_]{logprob} // 99) - $want[$_]);
            $off = $d if $d > $off;
        }

        cmp_ok($off, '<', 0.02, "and so are its probabilities ($off)");
    }
}

# this one writes more than the fixture's text

my @rows = rows(prompt('internvl', 'one'));

$res = ask($t, 'internvl', messages('internvl', 'one'),
           return_token_ids => \1);
is_ok($res, 'internvl, one');
is(scalar @{ $res->{json}{prompt_token_ids} // [] }, @rows + 1,
   'its template adds a newline');

# the second question about an image: all rows but the new ones are cached

my @turn = @{ messages('gemma4', 'one') };

ask($t, 'gemma4', \@turn);
$res = ask($t, 'gemma4', [ @turn, { role => 'assistant', content => 'a' },
                           user(text('And?')) ]);
($n, $cached) = counts($res);
cmp_ok($cached, '>=', 126,
       "$cached of $n rows are those of the first question");

# detail

my $large = LLM::Tower::png(900, 700, sub { ($_[0] & 255, $_[1] & 255, 7) });
my %tokens = map {
    my $detail = $_;
    my $part = image($large);

    $part->{image_url}{detail} = $detail;
    $res = ask($t, 'qwen3vl', [ user($part, text('a')) ], max_tokens => 1);
    is_ok($res, "detail $detail");
    $detail => (counts($res))[0];
} qw(low high);

cmp_ok($tokens{low}, '<', 300, 'a low detail has at most 256 tokens');
cmp_ok($tokens{high}, '>', 600, 'a high one has those of the image');

# another client's stream while a large image is encoded

$large = LLM::Tower::png(1300, 1000, sub { ($_[1] & 255, $_[0] & 255, 99) });
$stream = $t->open('/v1/chat/completions', {
    model => 'qwen3vl', stream => \1, max_tokens => 1500, ignore_eos => \1,
    messages => [ user(text('talk')) ] });
$stream->event for 1 .. 3;
$waits = $t->open('/v1/chat/completions', { model => 'qwen3vl',
    max_tokens => 1, messages => [ user(image($large), text('a')) ] });

my ($events, $gap, $last) = (0, 0, time);

while (!LLM::Client::ready(0, $waits)) {
    last unless defined $stream->event;
    my $now = time;
    $gap = $now - $last if $now - $last > $gap;
    $last = $now;
    $events++;
}

$res = $waits->response;
is_ok($res, 'a large image');
cmp_ok((counts($res))[0], '>', 1200, 'of many tokens');
cmp_ok($events, '>=', 5, "another stream goes on ($events tokens, at most "
       . int(1000 * $gap) . ' ms apart)');
undef $stream;

$t->stop(name => 'families');

done_testing();
