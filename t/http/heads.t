#!/usr/bin/perl

# speculate=mtp, and draft=FILE with a head (EAGLE3, Gemma 4's assistant): every
# answer is what it is without, text, tokens, probabilities and end, alone, in
# batches, after a cached beginning, and with recurrent layers whose state is
# taken back; drafts are counted by kind; what cannot draft is refused by
# nginx -t.

use strict;
use warnings;

use LLM::GGUF;
use LLM::JSON;
use LLM::Test;
use Test::More;

my $JSON = LLM::JSON->new->canonical;
my $fixtures = $ENV{LLM_FIXTURES} || "$LLM::Test::ROOT/../shared/fixtures";
my $draft = "$fixtures/draft";

plan skip_all => 'no fixtures' if !-d $draft;

# by name: the model's file, what drafts, and the kind that counts it
my %heads = (
    (map { $_ => [ "$_.gguf", 'mtp', 'mtp' ] } qw(qwen35 qwen3next glm4moe)),
    (map { $_ => [ "$_-target.gguf", "draft=$draft/$_.gguf", 'draft' ] }
         qw(eagle3 eagle3-norms gemma4)),
);

my $locations = <<'END';
        location /v1 { llm_api; }
        location = /health { llm_health; }
        location = /metrics { llm_metrics; }
        location = /figures { llm_metrics json; }
END

my @ids = map { 5 + $_ * 37 % 240 } 1 .. 40;

# prompts longer than a head's step, and than what waits of an answer
my @long = map { 5 + $_ * $_ * 13 % 240 } 1 .. 300;

my %asked = (
    'greedy' => { prompt => \@ids, temperature => 0, max_tokens => 70,
                  logprobs => 2 },
    'drawn' => { prompt => [ @ids[5 .. 30] ], temperature => 0.8, seed => 7,
                 max_tokens => 60, logprobs => 1 },
    'cold' => { prompt => [ @ids[7 .. 20] ], temperature => 0.1, seed => 3,
                max_tokens => 60 },
    'long' => { prompt => \@long, temperature => 0.3, seed => 5,
                max_tokens => 40 },
    'three choices' => { prompt => \@ids, temperature => 0.6, seed => 9,
                         n => 3, max_tokens => 30 },
    'penalties' => { prompt => \@ids, temperature => 0.4, seed => 2,
                     frequency_penalty => 0.5, max_tokens => 40 },
    'short' => { prompt => [ 9 ], temperature => 0, max_tokens => 20 },
    'one token' => { prompt => \@ids, temperature => 0, max_tokens => 1 },
    'echo' => { prompt => [ @ids[0 .. 20] ], temperature => 0, echo => \1,
                logprobs => 1, max_tokens => 25 },
);


my (%good, %used);


sub models {
    my ($more) = @_;

    return join "\n", map {
        my ($file, $how) = @{ $heads{$_} };

        $file = "$draft/$file" if $file !~ /%%/;

        my $opts = "$file ctx=512 parallel=3 threads=1 lazy $more";

        "llm_model $_ $opts; llm_model fast-$_ $opts speculate=$how;"
    } sort keys %heads;
}


sub answer {
    my ($t, $model, $body) = @_;
    my $res = $t->post('/v1/completions', {
        %$body, model => $model, ignore_eos => \1, return_token_ids => \1 });

    my $counts = ($res->{json} // {})->{usage}{completion_tokens_details};

    $used{$model} += $counts->{accepted_prediction_tokens} // 0;

    return $res->{status} == 200
           ? ($JSON->encode($res->{json}{choices}), $res->{json})
           : ("$res->{status}: $res->{body}", {});
}


sub figures {
    my ($t, $model) = @_;
    my ($f) = grep { $_->{name} eq $model }
                   @{ $t->get('/figures')->{json}{models} };

    return $f;
}


# Makes a model whose head is mostly right: its layers add a little to the
# token's embedding, and the head's layer nothing.

sub predictable {
    my ($from, $to) = @_;
    my $p = LLM::GGUF::parts($from);
    my (%t, %new);

    for my $t (@{ $p->{tensors} }) {
        my ($n, @more) = unpack "x8 x" . length($t->{name}) . ' L<Q<*',
                                $t->{info} . "\0" x 8;
        my @dims = @more[0 .. $n - 1];
        my $type = unpack 'L<', substr $t->{info}, -4;
        my $count = 1;

        $count *= $_ for @dims;

        my $data = substr $p->{data}, $p->{start} + $t->{at},
                          $count * ($type == 30 ? 2 : 4);

        $t{$t->{name}} = [ \@dims, $type == 30
            ? unpack('f<*', pack 'L<*', map { $_ << 16 } unpack 'S<*', $data)
            : unpack('f<*', $data) ];
    }

    my $width = $t{'output_norm.weight'}[0][0];

    for my $name (keys %t) {
        my ($layer) = $name =~ /^blk\.(\d)\..*
                      (?:attn_output|ssm_out|ffn_down\w*)\.weight$/x or next;
        my ($dims, @v) = @{ $t{$name} };

        $new{$name} = [ $dims, map { $_ * ($layer == 2 ? 0 : 0.2) } @v ];
    }

    my @eye = map { my $i = $_; map { $_ == $i ? 1 : 0 } 0 .. 2 * $width - 1 }
                  0 .. $width - 1;

    $new{'blk.2.nextn.eh_proj.weight'} = [ [ 2 * $width, $width ], @eye ];
    $new{'blk.2.nextn.enorm.weight'} = [ [ $width ], (1) x $width ];
    $new{'blk.2.nextn.shared_head_norm.weight'} = $t{'output_norm.weight'};

    if ($t{'blk.2.nextn.embed_tokens.weight'}) {
        $new{'blk.2.nextn.embed_tokens.weight'} = $t{'token_embd.weight'};
        $new{'blk.2.nextn.shared_head_head.weight'} = $t{'output.weight'};
    }

    my $replaced = join '|', map { quotemeta } keys %new;

    LLM::GGUF::make($from, $to, tensors => \%new,
                    keep => qr/^(?!(?:$replaced)$)/);
}


%good = map { $_ => 1 } qw(good-qwen35 good-glm4moe);

$heads{$_} = [ "%%DIR%%/$_.gguf", 'mtp', 'mtp' ] for keys %good;

my $t = LLM::Test->new(model => models(''), locations => $locations);

predictable("$draft/" . s/good-//r . '.gguf', $t->dir . "/$_.gguf")
    for keys %good;

$t->start(cold => 1);

for my $name (sort keys %heads) {
    my $kind = $heads{$name}[2];
    my %want;

    for my $what (sort keys %asked) {
        ($want{$what}) = answer($t, $name, $asked{$what});
        is((answer($t, "fast-$name", $asked{$what}))[0], $want{$what},
           "$name, $what: the same answer");
        is((answer($t, "fast-$name", $asked{$what}))[0], $want{$what},
           "$name, $what: and again");
    }

    # the next turn of a conversation, whose beginning is cached

    my ($first, $json) = answer($t, $name, $asked{greedy});
    my @turn = (@ids, @{ $json->{choices}[0]{token_ids} // [] }, 7 .. 30);
    my %next = (prompt => \@turn, temperature => 0, max_tokens => 40,
                logprobs => 1);

    is((answer($t, "fast-$name", \%next))[0], (answer($t, $name, \%next))[0],
       "$name: the next turn");

    # in a batch, and beside requests that end in the middle

    my @streams = map { $t->open('/v1/completions', {
        model => "fast-$name", prompt => [ $_ + 3, @ids ], max_tokens => 400,
        ignore_eos => \1, temperature => $_ % 2, seed => $_,
        stream => \1 }) } 1 .. 2;

    is((answer($t, "fast-$name", $asked{$_}))[0], $want{$_},
       "$name, $_: beside others") for sort keys %asked;
    $_->close for @streams;
    is((answer($t, "fast-$name", $asked{drawn}))[0], $want{drawn},
       "$name: after a cancel");

    my $f = figures($t, "fast-$name");

    # with random weights, hardly any is right

    cmp_ok($f->{drafted_tokens}{$kind}, '>', 0,
           "$name: $f->{drafted_tokens}{$kind} tokens were drafted");

    # how much is drafted follows what steps cost, which other programs change

    for (1 .. ($good{$name} ? 30 : 0)) {
        last if $f->{accepted_tokens}{$kind} > 5;
        answer($t, "fast-$name", $asked{greedy});
        $f = figures($t, "fast-$name");
    }

    if ($good{$name}) {
        my ($drafted, $accepted) = map { $f->{$_}{$kind} }
                                       qw(drafted_tokens accepted_tokens);

        cmp_ok($accepted, '>', 5, "$name: $accepted were drawn");
        cmp_ok($accepted, '>', 0.3 * $drafted, "$name: of $drafted");
    }

    is($f->{drafted_tokens}{ngram}, 0, "$name: by its head alone");
}

like($t->get('/metrics')->{body},
     qr/^vllm:spec_decode_num_draft_tokens_total\{
        model_name="fast-qwen35",kind="mtp"\}\ [1-9]/mx, 'the metric');

cmp_ok($used{"fast-$_"}, '>', 0, "$_: usage counts them") for keys %good;
$t->stop(name => 'heads');

# few pages, so that sequences lose theirs; with ngram, too

%heads = map { $_ => [ $heads{$_}[0], "ngram,$heads{$_}[1]",
                       $heads{$_}[2] ] } qw(qwen35 eagle3 gemma4);
$t = LLM::Test->new(model => models('kv_cache=192k'), locations => $locations);
$t->start(cold => 1);

for my $name (sort keys %heads) {
    my %want = map { $_ => (answer($t, $name, $asked{$_}))[0] } keys %asked;
    my @streams = map { $t->open('/v1/completions', {
        model => "fast-$name", prompt => [ $_ + 3, @ids ], max_tokens => 300,
        ignore_eos => \1, temperature => 0, stream => \1 }) } 1 .. 3;

    is((answer($t, "fast-$name", $asked{$_}))[0], $want{$_},
       "$name, $_, few pages: the same answer") for sort keys %asked;
    $_->close for @streams;
}

$t->stop(name => 'few pages');

# the kernels for GPUs, which draw themselves: answers with penalties, which the
# fixtures' files ask for by default, have no drafts there

SKIP: {
    skip 'no emulator', 1 if !-e "$LLM::Test::OBJS/llm_emu.so";

    %heads = ('good-qwen35' => [ '%%DIR%%/good-qwen35.gguf', 'mtp', 'mtp' ]);
    $t = LLM::Test->new(model => models('device=emu kv_cache=8m'),
                        locations => $locations);
    predictable("$draft/qwen35.gguf", $t->dir . '/good-qwen35.gguf');
    $t->start(cold => 1);

    for my $what ('drawn', 'greedy') {
        my %less = (%{ $asked{$what} }, max_tokens => 14,
                    repetition_penalty => 1);
        my ($want) = answer($t, 'good-qwen35', \%less);

        is((answer($t, 'fast-good-qwen35', \%less))[0], $want,
           "emulator, $what: the same answer");
    }

    my $f = figures($t, 'fast-good-qwen35');

    note("emulator: $f->{accepted_tokens}{mtp} of $f->{drafted_tokens}{mtp}");
    $t->stop(name => 'emulator');
}

# what cannot draft

for ([ "$draft/eagle3-target.gguf speculate=mtp",
       qr/no layers for multi-token prediction/, 'no such layers' ],
     [ "$draft/qwen35.gguf speculate=draft=$draft/manifest.json",
       qr/manifest\.json/, 'no model' ],
     [ "$LLM::Test::ROOT/models/demo.gguf speculate=draft=$draft/eagle3.gguf",
       qr/a model of width \d+, and \S*demo\.gguf has 256/, 'another width' ],
     [ "$draft/eagle3.gguf",
       qr/a head that drafts tokens for another model/, 'a head alone' ],
     [ "$draft/qwen35.gguf speculate=mtp,draft=$draft/eagle3.gguf",
       qr/it must be "ngram", "mtp" or "draft=FILE"/, 'two heads' ])
{
    my ($model, $why, $what) = @$_;
    my $bad = LLM::Test->new(model => "llm_model m $model required;",
                             locations => 'location /v1 { llm_api; }');

    my ($status, $out) = $bad->check;

    isnt($status, 0, "$what: nginx -t fails");
    like($out, $why, "$what: and says why");
}

done_testing();
