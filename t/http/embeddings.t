#!/usr/bin/perl

# POST /v1/embeddings: vectors against the states that objs/llm writes, by
# every pooling, in every encoding; what is refused; how much fits.

use strict;
use warnings;

use LLM::JSON;
use LLM::Cli;
use LLM::GGUF;
use LLM::Test;
use MIME::Base64;
use Test::More;

my $demo = "$LLM::Test::ROOT/models/demo.gguf";
my $t = LLM::Test->new(
    model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=1 ctx=512'
           . ' parallel=4 default;'
           . join('', map { "llm_model $_ $_.gguf threads=1 ctx=512"
                            . " parallel=4;" } qw(mean cls none eos)));

my $dir = $t->dir;

made(mean => 'qwen3.pooling_type' => [ u32 => 1 ]);
made(cls => 'qwen3.pooling_type' => [ u32 => 2 ]);
made(none => 'qwen3.pooling_type' => [ u32 => 0 ]);
made(eos => 'qwen3.pooling_type' => [ u32 => 3 ],
     'tokenizer.ggml.add_eos_token' => [ bool => 1 ]);

$t->start;

my $text = 'What is the colour of the sky?';
my @ids = ids($demo, $text);
my @rows = states($demo, @ids);
my $width = @{ $rows[0] };


# ---- one input ----

my $res = embed(input => $text, user => 'me');

is($res->{status}, 200, 'answers') or diag($res->{body});
is($res->{json}{object}, 'list', 'a list');
is($res->{json}{model}, 'demo', 'the model');
is($res->{json}{data}[0]{object}, 'embedding', 'of an embedding');
is($res->{json}{data}[0]{index}, 0, 'its index');
is($res->{json}{usage}{prompt_tokens}, scalar @ids, 'tokens');
is($res->{json}{usage}{total_tokens}, scalar @ids, 'in all');

my $vector = vector($res);

is(scalar @$vector, $width, 'as wide as the model');
near($vector, unit(@{ $rows[-1] }), 'the state of the last token, of length 1');

$res = embed(input => $text, encoding_format => 'float');
is_deeply(vector($res), $vector, 'float is the default');

$res = embed(input => $text, encoding_format => 'base64');
is_deeply([ unpack 'f<*', decode_base64($res->{json}{data}[0]{embedding}) ],
          [ map { unpack 'f<', pack 'f<', $_ } @$vector ],
          'base64 has the same bits');

is_deeply(vector(embed(input => \@ids)), $vector, 'token ids');
is($t->post('/v1/v1/embeddings', { input => 'x' })->{status}, 200,
   'behind v1/');
is($t->get('/v1/embeddings')->{status}, 405, 'GET is no method of it');

near(vector(embed(input => $text, normalize => \0)), $rows[-1],
     'not normalised');
near(vector(embed(input => $text, embd_normalize => -1)), $rows[-1],
     'as llama-server says it');

my $sum = 0;
$sum += abs for @{ $rows[-1] };
near(vector(embed(input => $text, embd_normalize => 1)),
     [ map { $_ / $sum } @{ $rows[-1] } ], 'by the sum');

my ($max) = sort { $b <=> $a } map { abs } @{ $rows[-1] };
near(vector(embed(input => $text, embd_normalize => 0)),
     [ map { $_ * 32760 / $max } @{ $rows[-1] } ], 'by the largest');

for my $n (1, 7, $width - 1, $width) {
    near(vector(embed(input => $text, dimensions => $n)),
         unit(@{ $rows[-1] }[0 .. $n - 1]), "cut to $n, and of length 1");
}


# ---- many inputs, and what else runs ----

my @texts = map { "Line $_ says " . 'word ' x ($_ * 7 % 60) } 1 .. 40;
my @alone = map { vector(embed(input => $_)) } @texts;

$res = embed(input => \@texts);
is(scalar @{ $res->{json}{data} }, 40, '40 at once');
is_deeply([ map { $_->{index} } @{ $res->{json}{data} } ], [ 0 .. 39 ],
          'in their order');
is_deeply([ map { $_->{embedding} } @{ $res->{json}{data} } ], \@alone,
          'each as alone, to the last bit');

my @chats = map { $t->open('/v1/completions',
                           { prompt => "Count to $_: one,", stream => \1,
                             max_tokens => 60, ignore_eos => \1 }) } 1 .. 3;

$res = embed(input => \@texts, encoding_format => 'float');
is_deeply([ map { $_->{embedding} } @{ $res->{json}{data} } ], \@alone,
          'and beside streams');
is((($_->events)[-1])->{data}, '[DONE]', 'which end') for @chats;

$res = embed(input => [ \@ids, [ @ids[0 .. 2] ] ]);
is_deeply($res->{json}{data}[0]{embedding}, $vector, 'lists of ids');
is($res->{json}{usage}{prompt_tokens}, @ids + 3, 'tokens of both');

$res = embed(input => [ map { [ 5 + $_ % 90 ] } 1 .. 2048 ], dimensions => 3,
             encoding_format => 'base64');
is(scalar @{ $res->{json}{data} }, 2048, '2,048 at once');

my $long = join ' ', map { "word $_" } 1 .. 120;
my @more = ids($demo, $long);

is_deeply(vector(embed(input => $long, cache_prompt => \0)),
          vector(embed(input => $long)), 'with and without the prefix cache');
cmp_ok(embed(input => $long)->{json}{usage}{prompt_tokens_details}
       {cached_tokens}, '>', 0, 'which has the beginning');


# ---- poolings ----

my @all = states($demo, @more);
my @mean = map { my $k = $_; my $s = 0; $s += $_->[$k] for @all; $s / @all }
           0 .. $width - 1;

for (1, 2) {
    $res = embed(model => 'mean', input => $long);
    near(vector($res), unit(@mean), 'the mean of all states');
    is($res->{json}{usage}{prompt_tokens_details}{cached_tokens}, 0,
       'none of them is in a cache');
}

near(vector(embed(model => 'cls', input => $long)), unit(@{ $all[0] }),
     'the first state');

$res = embed(model => 'eos', input => $text);
is($res->{json}{usage}{prompt_tokens}, @ids + 1,
   'an EOS token, if the tokenizer adds one');
near(vector($res), unit(@{ (states($demo, @ids, eos()))[-1] }), 'and its state');

$res = embed(model => 'none', input => $text);
is($res->{status}, 400, 'no pooling, no vector');
like($res->{json}{error}{message}, qr/pooling type, none/, 'says why');

for my $model (qw(mean cls eos)) {
    $res = $t->post('/v1/chat/completions',
                    { model => $model, messages => [ { role => 'user',
                                                       content => 'Hi' } ] });
    is($res->{status}, 400, "$model does not chat");
    is($res->{json}{error}{code}, 'unsupported_model', 'its code');
    like($res->{json}{error}{message}, qr/made for embeddings/, 'and why');
}

$res = $t->post('/v1/rerank', { query => 'x', documents => [ 'y' ] });
is($res->{status}, 400, 'a chat model does not rank');
like($res->{json}{error}{message}, qr/pooling_type 4 \(rank\)/,
     'says what is missing');


# ---- what does not fit ----

my $words = 'word ' x 600;

$res = embed(input => $words);
is($res->{status}, 400, 'longer than the context');
is($res->{json}{error}{code}, 'context_length_exceeded', 'its code');
is($res->{json}{error}{param}, 'input', 'its parameter');

my @words = ids($demo, $words);

is(embed(input => [ @words[0 .. 511] ])->{status}, 200, 'the whole context');
is(embed(input => [ @words[0 .. 512] ])->{status}, 400, 'and one more');
is(embed(input => [ @words[0 .. 511] ])->{json}{usage}{prompt_tokens}, 512,
   'tokens');

$res = embed(input => [ @words[0 .. 299], @ids ],
             truncate_prompt_tokens => scalar @ids);
is_deeply(vector($res), $vector, 'truncated to the last tokens');
is($res->{json}{usage}{prompt_tokens}, scalar @ids, 'which are counted');
is(embed(input => $words, truncate_prompt_tokens => -1)
       ->{json}{usage}{prompt_tokens}, 512, 'truncated to what fits');


# ---- what is wrong ----

for my $case (
    [ 'input', {} ],
    [ 'input', { input => undef } ],
    [ 'input', { input => '' } ],
    [ 'input', { input => [] } ],
    [ 'input', { input => { text => 'x' } } ],
    [ 'input', { input => 5 } ],
    [ 'input[0]', { input => [ [] ] } ],
    [ 'input[1]', { input => [ 'a', '' ] } ],
    [ 'input[1]', { input => [ 'a', 5 ] } ],
    [ 'input[0]', { input => [ { text => 'x' } ] } ],
    [ 'input[1]', { input => [ 5, 'a' ] } ],
    [ 'input[0][1]', { input => [ [ 1, -1 ] ] } ],
    [ 'input', { input => [ ('x') x 2049 ] } ],
    [ 'input', { input => [ 999999 ] } ],
    [ 'dimensions', { input => 'x', dimensions => 0 } ],
    [ 'dimensions', { input => 'x', dimensions => $width + 1 } ],
    [ 'dimensions', { input => 'x', dimensions => '5' } ],
    [ 'encoding_format', { input => 'x', encoding_format => 'int8' } ],
    [ 'normalize', { input => 'x', normalize => 1 } ],
    [ 'embd_normalize', { input => 'x', embd_normalize => -2 } ],
    [ 'truncate_prompt_tokens', { input => 'x',
                                  truncate_prompt_tokens => 513 } ],
    [ 'model', { input => 'x', model => 'nobody' } ])
{
    my ($param, $body) = @$case;

    $res = $t->post('/v1/embeddings', $body);
    is($res->{status}, $param eq 'model' ? 404 : 400,
       'refused: ' . substr(encode_json($body), 0, 60));
    is($res->{json}{error}{param}, $param, "it names $param");
}

is(embed(input => 'x', dimensions => undef, user => undef)->{status}, 200,
   'null is absent');

$t->stop;


# ---- the CUDA backend's kernels, in the emulator ----

SKIP: {
    skip("there is no llm_emu.so in this build", 6)
        unless -e "$LLM::Test::OBJS/llm_emu.so";

    $t = LLM::Test->new(model => 'llm_model demo %%ROOT%%/models/demo.gguf'
                               . ' device=emu ctx=64 parallel=2;')->start;

    my @few = ($text, 'Red.', 'An apple');
    my @one = map { vector(embed(input => $_)) } @few;

    near($one[0], $vector, 'the same vector as the CPU\'s', 0.05);
    is_deeply([ map { $_->{embedding} }
                @{ embed(input => \@few)->{json}{data} } ], \@one,
              'and the same bits beside others');

    my $chat = $t->open('/v1/completions',
                        { prompt => 'One, two,', stream => \1,
                          max_tokens => 12, ignore_eos => \1 });

    is_deeply(vector(embed(input => $text)), $one[0], 'and beside a stream');
    is(($chat->events)[-1]{data}, '[DONE]', 'which ends');

    $t->stop(name => 'emu');
}


# ---- an answer that is too large is refused, not cut ----

$t = LLM::Test->new(model => 'llm_model demo %%ROOT%%/models/demo.gguf'
                           . ' threads=1 parallel=2;',
                    location => 'llm_stream_buffer 4k;')->start;

is(embed(input => [ ('x') x 600 ])->{status}, 200, 'as much as fits');
$res = embed(input => [ ('x') x 1000 ]);
is($res->{status}, 400, 'more than fits');
is($res->{json}{error}{code}, 'answer_too_large', 'its code');
like($res->{json}{error}{message}, qr/fewer inputs/, 'and what to do');
is(embed(input => [ ('x') x 1000 ], dimensions => 20)->{status}, 200,
   'fewer dimensions fit');

$t->stop;

done_testing();


sub made {
    my ($name, %kv) = @_;

    LLM::GGUF::make($demo, "$dir/$name.gguf", kv => \%kv);
}


sub embed {
    my (%body) = @_;

    return $t->post('/v1/embeddings', \%body);
}


sub vector {
    my ($res) = @_;

    return $res->{json}{data}[0]{embedding} // [];
}


sub eos {
    return llm('', 'info', $demo)
           =~ /^tokenizer\.ggml\.eos_token_id = (\d+)/m ? $1 + 0 : die;
}


sub near {
    my ($got, $want, $what, $share) = @_;

    my $worst = @$got == @$want ? 0 : 9e9;
    my $most = ($share // 1e-6) * (sort { $b <=> $a } map { abs } @$want)[0];

    for my $i (0 .. $#$want) {
        my $d = abs(($got->[$i] // 9e9) - $want->[$i]);
        $worst = $d if $d > $worst;
    }

    cmp_ok($worst, '<=', $most, $what);
}
