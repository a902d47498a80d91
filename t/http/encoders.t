#!/usr/bin/perl

# Encoders over HTTP: vectors and scores of a tiny BERT against what its head
# makes of the states that objs/llm writes; prompts framed as the vocabulary
# has it; any file with attention.causal false; what is refused.

use strict;
use warnings;

use LLM::JSON;
use LLM::Cli;
use LLM::GGUF;
use LLM::Test;
use Test::More;

my ($WIDTH, $FF, $CTX) = (32, 48, 96);
my $MARK = "\xe2\x96\x81";
my @WORDS = qw(the sky is blue red an apple green of what colour grass and
               skyss);

my $demo = "$LLM::Test::ROOT/models/demo.gguf";
my @names = qw(mean cls last none silent ranker pairs causal);
my $t = LLM::Test->new(
    model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=1 ctx=256'
           . ' parallel=4;'
           . join('', map { "llm_model $_ $_.gguf threads=1 parallel=3"
                            . ($_ eq 'causal' ? ' ctx=64' : '')
                            . ($_ eq 'mean' ? ' default;' : ';') } @names),
    locations => 'location / { llm_api; }'
                 . 'location = /health { llm_health; }');
my $dir = $t->dir;

my %bert = (
    'general.architecture' => [ str => 'bert' ],
    'bert.block_count' => [ u32 => 2 ],
    'bert.context_length' => [ u32 => $CTX ],
    'bert.embedding_length' => [ u32 => $WIDTH ],
    'bert.feed_forward_length' => [ u32 => $FF ],
    'bert.attention.head_count' => [ u32 => 4 ],
    'bert.attention.layer_norm_epsilon' => [ f32 => 1e-12 ],
    'bert.attention.causal' => [ bool => 0 ]);

my %wordpiece = (
    'tokenizer.ggml.model' => [ str => 'bert' ],
    'tokenizer.ggml.tokens' => [ strs => qw([PAD] [UNK] [CLS] [SEP]),
                                 map({ "$MARK$_" } @WORDS), 's' ],
    'tokenizer.ggml.token_type' => [ u32s => 3, 2, 3, 3,
                                     (1) x (@WORDS + 1) ]);

my %unigram = (
    'tokenizer.ggml.model' => [ str => 't5' ],
    'tokenizer.ggml.tokens' => [ strs => qw(<s> <pad> </s> <unk>),
                                 map({ "$MARK$_" } @WORDS), 's' ],
    'tokenizer.ggml.scores' => [ f32s => 0, 0, 0, 0,
                                 map { -1 - $_ / 8 } 0 .. @WORDS ],
    'tokenizer.ggml.token_type' => [ u32s => 3, 3, 3, 2,
                                     (1) x (@WORDS + 1) ]);

my %body = body(4 + @WORDS + 1);
my @cls = map { sin($_ * 0.7) / 3 } 1 .. $WIDTH * $WIDTH;
my @cls_bias = map { cos($_) / 5 } 1 .. $WIDTH;
my @out = map { sin($_ * 1.3) } 1 .. $WIDTH;
my %head = ('cls.weight' => [ [ $WIDTH, $WIDTH ], @cls ],
            'cls.bias' => [ [ $WIDTH ], @cls_bias ],
            'cls.output.weight' => [ [ $WIDTH, 1 ], @out ],
            'cls.output.bias' => [ [ 1 ], 0.25 ]);

made('mean', { %bert, %wordpiece, 'bert.pooling_type' => [ u32 => 1 ] });
made('cls', { %bert, %wordpiece, 'bert.pooling_type' => [ u32 => 2 ] });
made('last', { %bert, %wordpiece, 'bert.pooling_type' => [ u32 => 3 ] });
made('none', { %bert, %wordpiece, 'bert.pooling_type' => [ u32 => 0 ] });
made('silent', { %bert, %wordpiece });
made('ranker', { %bert, %wordpiece, 'bert.pooling_type' => [ u32 => 4 ] },
     %head);
made('pairs', { %bert, %unigram, 'bert.pooling_type' => [ u32 => 4 ] },
     %head);
LLM::GGUF::make($demo, "$dir/causal.gguf",
                kv => { 'qwen3.attention.causal' => [ bool => 0 ],
                        'qwen3.pooling_type' => [ u32 => 3 ] });

$t->start;


# ---- vectors ----

my $text = 'What colour is the sky?';
my @ids = (2, map({ word($_) } qw(what colour is the sky)), 1, 3);
my @rows = states("$dir/mean.gguf", @ids);
my @mean = map { my $k = $_; my $s = 0; $s += $_->[$k] for @rows;
                 $s / @rows } 0 .. $WIDTH - 1;

my $res = embed(input => $text);

is($res->{status}, 200, 'answers') or diag($res->{body});
is($res->{json}{usage}{prompt_tokens}, scalar @ids,
   'a token for each word, [CLS] and [SEP]');
near(vector($res), unit(@mean), 'the mean of all states, of length 1');
near(vector(embed(input => \@ids)), unit(@mean), 'token ids');
near(vector(embed(model => 'cls', input => $text)), unit(@{ $rows[0] }),
     'the first state');
near(vector(embed(model => 'last', input => $text)), unit(@{ $rows[-1] }),
     'the last state');
near(vector(embed(model => 'silent', input => $text)), unit(@mean),
     'the mean, if the file says nothing');

for my $pooling (qw(mean cls last)) {
    near([ unpack 'f<*', llm("@ids", 'embed', "$dir/mean.gguf", '--pooling',
                             $pooling) ],
         $pooling eq 'mean' ? \@mean : $rows[$pooling eq 'cls' ? 0 : -1],
         "llm embed --pooling $pooling");
}

is(llm("@ids", 'embed', "$dir/mean.gguf", '--pooling none', '--batch', $_),
   llm("@ids", 'embed', "$dir/mean.gguf", '--pooling none'),
   "the same bytes with --batch $_") for 1, 3, 64;


# ---- many at once ----

my @texts = map { join ' ', map { $WORDS[($_ * $_) % @WORDS] } 1 .. $_ % 90 + 1 }
            1 .. 60;
my @alone = map { vector(embed(input => $_)) } @texts;

$res = embed(input => \@texts);
is($res->{status}, 200, '60 at once') or diag($res->{body});
is_deeply([ map { $_->{embedding} } @{ $res->{json}{data} } ], \@alone,
          'each as alone, to the last bit');
is($res->{json}{usage}{prompt_tokens_details}{cached_tokens} // 0, 0,
   'none is in a cache');

$res = embed(input => [ ($texts[50]) x 20 ]);
is_deeply([ map { $_->{embedding} } @{ $res->{json}{data} } ],
          [ ($alone[50]) x 20 ], 'twenty times the same');

my $full = join ' ', ('grass') x ($CTX - 2);
is(embed(input => $full)->{json}{usage}{prompt_tokens}, $CTX,
   'the whole context');
$res = embed(input => "$full sky");
is($res->{status}, 400, 'and one more');
is($res->{json}{error}{code}, 'context_length_exceeded', 'its code');
is(embed(input => "$full sky sky", truncate_prompt_tokens => -1)->{status},
   200, 'truncated to what fits');
is_deeply(vector(embed(input => $text, truncate_prompt_tokens => 4)),
          vector(embed(input => [ @ids[0 .. 2], 3 ])),
          'truncated to the first tokens, and [SEP]');


# ---- scores ----

my @docs = ('The sky is blue', 'grass', '', 'an apple and [SEP] the sky');
my %scores;

for my $model (qw(ranker pairs)) {
    my @between = $model eq 'pairs' ? (2, 2) : (3);
    my ($bos, $eos) = $model eq 'pairs' ? (0, 2) : (2, 3);
    my $file = "$dir/$model.gguf";
    my @want = map { score($model, $bos, ids($file, $text), @between,
                           ids($file, $_), $eos) } @docs;

    $scores{$model} = \@want;

    $res = $t->post('/v1/rerank', { model => $model, query => $text,
                                    documents => \@docs });
    is($res->{status}, 200, "$model: scores") or diag($res->{body});

    my %got = map { $_->{index} => $_->{relevance_score} }
              @{ $res->{json}{results} // [] };
    near([ map { $got{$_} // -1 } 0 .. $#docs ], \@want,
         "$model: those of the head");
    $res = $t->post('/rerank', { model => $model, query => $text,
                                 texts => \@docs, raw_scores => \1 });
    %got = map { $_->{index} => $_->{score} } @{ $res->{json} // [] };
    near([ map { $got{$_} // -1 } 0 .. $#docs ],
         [ map { -log(1 / $_ - 1) } @want ], "$model: log odds", 1e-3);

    cut_pairs($model, $bos, \@between, $eos);
    cmp_ok((sort { $a <=> $b } @want)[-1] - (sort { $a <=> $b } @want)[0],
           '>', 0.001, "$model: which differ");
}


# ---- any architecture ----

my @qwen = ids($demo, $text);
@rows = states("$dir/causal.gguf", @qwen);
$res = embed(model => 'causal', input => $text);
is($res->{status}, 200, 'a qwen3 without a causal mask') or diag($res->{body});
near(vector($res), unit(@{ $rows[-1] }), 'the last state');

my @other = states("$dir/causal.gguf", @qwen[0 .. $#qwen - 1]);
cmp_ok(abs($other[0][0] - $rows[0][0]), '>', 1e-4,
       'the first state depends on the last token');


# ---- what is refused ----

for my $model (qw(mean ranker causal)) {
    my $for = $model eq 'ranker' ? 'rerank' : 'embeddings';

    for my $case ([ 'chat/completions', { messages => [ { role => 'user',
                                                  content => 'Hi' } ] } ],
                  [ 'completions', { prompt => 'Hi' } ])
    {
        $res = $t->post("/v1/$case->[0]", { model => $model,
                                            %{ $case->[1] } });
        is($res->{status}, 400, "$model: $case->[0] is refused");
        is($res->{json}{error}{code}, 'unsupported_model', 'its code');
        like($res->{json}{error}{message}, qr/encoder.*made for $for/,
             'what it is for');
    }
}

is(embed(model => 'ranker', input => 'sky')->{status}, 400,
   'a ranker does not embed');
is(embed(model => 'none', input => 'sky')->{status}, 400,
   'no pooling, no vector');
like(llm('4 5 6', 'logits', "$dir/mean.gguf", '2>&1'),
     qr/an encoder, which has no logits/, 'llm logits says why not');

$t->stop;


# ---- what llm_health asks them ----

my $p = LLM::Test->new(
    model => join('', map { "llm_model $_ $dir/$_.gguf threads=1;" }
                          qw(mean ranker none)),
    locations => <<'END')->start(cold => 1);
        location = /health { llm_health; }
        location = /good { llm_health ready mean ranker probe=50ms; }
        location = /none { llm_health ready none probe=50ms; }
        location = /figures { llm_metrics json; }
END

ok(LLM::Test::wait_for(20, sub {
    my @f = map { $_->{e2e_request_latency}{count} }
            @{ $p->get('/figures')->{json}{models} };
    return $f[0] >= 3 && $f[1] >= 3;
}), 'probes of an embedder and of a ranker');
is($p->get('/good')->{status}, 200, 'which answer them');
ok(LLM::Test::wait_for(20, sub { $p->get('/none')->{status} == 503 }),
   'a model that can do nothing for a client is ill');
unlike($p->log, qr/a probe of the model "(?:mean|ranker)"/, 'as no other is');
$p->stop(name => 'probes');


# ---- the CUDA backend's kernels, in the emulator ----

SKIP: {
    skip("there is no llm_emu.so in this build", 1)
        unless -e "$LLM::Test::OBJS/llm_emu.so";

    $t = LLM::Test->new(model => join '', map {
        "llm_model $_ $dir/$_.gguf device=emu parallel=3"
        . ($_ eq 'mean' ? ' default;' : ';') } qw(mean ranker))->start;

    my @few = (3, 40, 59, 10);
    my @own = map { vector(embed(input => $texts[$_])) } @few;

    near($own[$_], $alone[$few[$_]], "device=emu: the CPU's vector", 0.003)
        for 0 .. $#few;
    is_deeply([ map { $_->{embedding} }
                @{ embed(input => [ @texts[@few, @few] ])->{json}{data} } ],
              [ @own, @own ], 'and the same bits beside others');

    $res = $t->post('/v1/rerank', { model => 'ranker', query => $text,
                                    documents => \@docs });
    is($res->{status}, 200, 'device=emu: scores') or diag($res->{body});
    near([ map { $_->{relevance_score} }
           sort { $a->{index} <=> $b->{index} }
           @{ $res->{json}{results} // [] } ], $scores{ranker},
         "device=emu: the head's", 0.003);

    $t->stop(name => 'emu');
}

done_testing();


# a tiny BERT's tensors

sub body {
    my ($vocab) = @_;

    my $seed = 1;
    my $some = sub {
        my ($scale, $plus, @shape) = @_;
        my $n = 1;

        $n *= $_ for @shape;

        return [ [ @shape ],
                 map { $seed = ($seed * 16807) % 2147483647;
                       $plus + $scale * ($seed / 1073741824 - 1) } 1 .. $n ];
    };

    my %tensors = (
        'token_embd.weight' => $some->(1, 0, $WIDTH, $vocab),
        'position_embd.weight' => $some->(0.5, 0, $WIDTH, $CTX),
        'token_types.weight' => $some->(0.5, 0, $WIDTH, 2),
        'token_embd_norm.weight' => $some->(0.2, 1, $WIDTH),
        'token_embd_norm.bias' => $some->(0.2, 0, $WIDTH));

    for my $l (0, 1) {
        for ([ attn_q => $WIDTH, $WIDTH ], [ attn_k => $WIDTH, $WIDTH ],
             [ attn_v => $WIDTH, $WIDTH ], [ attn_output => $WIDTH, $WIDTH ],
             [ ffn_up => $WIDTH, $FF ], [ ffn_down => $FF, $WIDTH ])
        {
            my ($name, $in, $rows) = @$_;

            $tensors{"blk.$l.$name.weight"} = $some->(0.4, 0, $in, $rows);
            $tensors{"blk.$l.$name.bias"} = $some->(0.2, 0, $rows);
        }

        for (qw(attn_output_norm layer_output_norm)) {
            $tensors{"blk.$l.$_.weight"} = $some->(0.2, 1, $WIDTH);
            $tensors{"blk.$l.$_.bias"} = $some->(0.2, 0, $WIDTH);
        }
    }

    return %tensors;
}


sub made {
    my ($name, $kv, %more) = @_;

    LLM::GGUF::make(undef, "$dir/$name.gguf", kv => $kv,
                    tensors => { %body, %more });
}


sub word {
    my ($word) = @_;

    for (0 .. $#WORDS) {
        return 4 + $_ if $WORDS[$_] eq $word;
    }

    die $word;
}


sub embed {
    my (%body) = @_;

    return $t->post('/v1/embeddings', \%body);
}


sub vector {
    my ($res) = @_;

    return $res->{json}{data}[0]{embedding} // [];
}


sub score {
    my ($model, @ids) = @_;

    my $state = (states("$dir/$model.gguf", @ids))[0];
    my $odds = 0.25;

    for my $i (0 .. $WIDTH - 1) {
        my $x = $cls_bias[$i];

        $x += $cls[$i * $WIDTH + $_] * $state->[$_] for 0 .. $WIDTH - 1;
        $x = (exp(2 * $x) - 1) / (exp(2 * $x) + 1);
        $odds += $out[$i] * $x;
    }

    return 1 / (1 + exp(-$odds));
}


# pairs that are longer than the context lose what Hugging Face's tokenizers
# take from them: query's words, document's words, what is left of each

sub cut_pairs {
    my ($model, $bos, $between, $eos) = @_;

    my $room = $CTX - 2 - @$between;
    my $half = int($room / 2);

    my @score = map { $t->post('/rerank', {
        model => $model, query => 'red', texts => [ $_ ], truncate => \1 })
        ->{json}[0]{score} } 'sky', (' ' x 50_000) . 'sky';

    near([ $score[1] ], [ $score[0] ], "$model: bytes that are no tokens")
        if $model eq 'ranker';

    # a part of a text that ends within a word may have more tokens than all

    my ($whole, $late) = map { $t->post('/rerank', {
        model => $model, query => $_, texts => [ 'sky' ], truncate => \1 })
        ->{json}[0]{score} } 'skyss', (' ' x ($CTX * 16 - 4)) . 'skyss';

    near([ $late ], [ $whole ], "$model: a word at the end of a part")
        if $model eq 'ranker';

    for my $case ([ 5, 200, 5, $room - 5 ], [ 200, 5, $room - 5, 5 ],
                  [ 200, 201, $half, $room - $half ],
                  [ 201, 200, $room - $half, $half ],
                  [ $half, 60_000, $half, $room - $half ],
                  [ 300, 0, $room, 0 ], [ 4, $room - 4, 4, $room - 4 ],
                  [ 4, $room - 3, 4, $room - 4 ])
    {
        my ($query, $document, @keep) = @$case;
        my @side = map { my $k = $_;
                         join ' ', map { $WORDS[($_ * $_ + $k) % @WORDS] }
                                       1 .. ($query, $document)[$k] } 0, 1;
        my @ids = map { [ ids("$dir/$model.gguf", $_) ] } @side;

        for my $direction (qw(Right Left)) {
            my @left = map {
                my @all = @{ $ids[$_] };
                my $n = $keep[$_];

                [ $n == 0 ? () : $direction eq 'Left' ? @all[-$n .. -1]
                                                      : @all[0 .. $n - 1] ];
            } 0, 1;

            my $res = $t->post('/rerank', {
                model => $model, query => $side[0], texts => [ $side[1] ],
                truncate => \1, truncation_direction => $direction });

            near([ $res->{json}[0]{score} // -1 ],
                 [ score($model, $bos, @{ $left[0] }, @$between,
                         @{ $left[1] }, $eos) ],
                 "$model: $direction of $query and $document");
        }
    }
}


sub near {
    my ($got, $want, $name, $most) = @_;

    my $far = @$got == @$want ? 0 : 1e9;

    for (0 .. $#$want) {
        my $d = abs(($got->[$_] // 1e9) - $want->[$_]);
        $far = $d if $d > $far;
    }

    cmp_ok($far, '<', $most // 1e-5, $name);
}
