#!/usr/bin/perl

# llm draft: the logits of heads that draft for a model (multi-token prediction
# of Qwen 3.5, Qwen3-Next and GLM 4.5, EAGLE3, Gemma 4's assistant) are those of
# the public implementations, from the model's own states and from theirs, in
# any steps, as are drafts that are taken one after another; what cannot draft
# is refused.

use strict;
use warnings;

use File::Temp qw(tempdir);
use FindBin;
use lib "$FindBin::Bin/../lib";
use LLM::GGUF;
use LLM::Test qw(slurp);
use Test::More;

my $root = $ENV{LLM_ROOT} || "$FindBin::Bin/../..";
my $objs = $ENV{LLM_OBJS} || "$root/objs";
my $fixtures = $ENV{LLM_FIXTURES} || "$root/../shared/fixtures";
my $draft = "$fixtures/draft";
my $demo = "$root/models/demo.gguf";
my $dir = tempdir(CLEANUP => 1);

plan skip_all => 'no fixtures' if !-d $draft;

# the largest error of a logit, by instructions: plain C with doubles, kernels
# with floats, and the best ones, which may round activations to bfloat16 as the
# weights are
my %most = (reference => 2e-5, best => 0.15);

$most{avx2} = 0.01 if slurp('/proc/cpuinfo') =~ /\bavx2\b/;

# by name: what .logits has; an assistant's file is by another mask, and only
# its chain is compared
my %heads = (
    (map { $_ => { files => [ "$_.gguf" ] } } qw(qwen35 qwen3next glm4moe)),
    (map { $_ => { files => [ "$_-target.gguf", "$_.gguf" ] } }
         qw(eagle3 eagle3-norms)),
    gemma4 => { files => [ 'gemma4-target.gguf', 'gemma4.gguf' ],
                chain => 'chain-causal' },
);


# standard output, and standard error

sub draft {
    my ($ids, @args) = @_;

    my $out = `'$objs/llm' @args < '$ids' 2> '$dir/err'`;

    return ($out, slurp("$dir/err"));
}


sub error {
    my ($got, $want) = @_;
    my @got = unpack 'f<*', $got;
    my @want = unpack 'f<*', $want;
    my $most = @got == @want ? 0 : 1e9;

    for my $i (0 .. $#want) {
        my $e = abs(($got[$i] // 1e9) - $want[$i]);
        $most = $e if $e > $most;
    }

    return $most;
}


sub best {
    my ($row) = @_;
    my @v = unpack 'f<*', $row;
    my $best = 0;

    $v[$_] > $v[$best] and $best = $_ for 0 .. $#v;

    return $best;
}


for my $name (sort keys %heads) {
    my @files = map { "$draft/$_" } @{ $heads{$name}{files} };
    my $ids = "$draft/$name.ids";
    my %want = (logits => slurp("$draft/$name.logits"),
                chain => slurp("$draft/$name."
                               . ($heads{$name}{chain} // 'chain')));

    delete $want{logits} if $heads{$name}{chain};

    for my $isa (sort keys %most) {
        for my $what (sort keys %want) {
            for my $states ('the model\'s', 'given') {
                my @args = ('draft', @files,
                            $isa ne 'best' ? "--isa $isa" : (),
                            $what eq 'chain' ? '--chain 4' : (),
                            $states eq 'given' ? "--hidden $draft/$name.h"
                                               : ());
                my ($got, $err) = draft($ids, @args);
                my $e = error($got, $want{$what});

                cmp_ok($e, '<', $most{$isa}, "$name, $isa, $what, $states "
                       . "states: at most $e off") or diag $err;
            }
        }
    }

    my ($one) = draft($ids, 'draft', @files, '--chain 4');

    for my $n (1, 5) {
        my ($got) = draft($ids, 'draft', @files, '--chain 4', "--batch $n");

        is(unpack('H*', $got), unpack('H*', $one),
           "$name, $n at a time: the same bytes");
    }

    my $width = length($want{chain}) / 4;
    my ($first) = draft($ids, 'draft', @files, '--chain 1');

    is(best($first), best(substr $want{chain}, 0, $width),
       "$name: the first draft");
}

# the kernels for GPUs, whose activations are bfloat16

SKIP: {
    skip 'no emulator', 2 * keys %heads if !-e "$objs/llm_emu.so";

    for my $name (sort keys %heads) {
        my @files = map { "$draft/$_" } @{ $heads{$name}{files} };
        my ($got, $err) = draft("$draft/$name.ids", 'draft', @files,
                                '--device emu --chain 4');
        my $e = error($got, slurp("$draft/$name."
                                  . ($heads{$name}{chain} // 'chain')));

        cmp_ok($e, '<', 0.15, "$name, emulator: at most $e off") or diag $err;

        # the head is on the last layer's device, as is what it reads there

        my ($two, $why) = draft("$draft/$name.ids", 'draft', @files,
                                '--device emu:0,1 --chain 4');

        is(unpack('H*', $two), unpack('H*', $got),
           "$name, two devices: the same bytes") or diag $why;
    }
}

# the model is what it is without its layer for multi-token prediction

for my $name (qw(qwen35 qwen3next glm4moe)) {
    my ($got, $err) = draft("$draft/$name.ids", 'logits',
                            "$draft/$name.gguf --all");

    cmp_ok(error($got, slurp("$draft/$name.trunk")), '<', $most{best},
           "$name: the model's own logits");
}

# what cannot draft

my $eagle = "$draft/eagle3.gguf";

open my $f, '>', "$dir/ids" or die "$dir/ids: $!";
print $f "1 2 3\n";
close $f;

open $f, '>', "$dir/one" or die "$dir/one: $!";
print $f "1\n";
close $f;

for ([ $demo, qr/has no layers for multi-token prediction/,
       'a model without such layers' ],
     [ "$draft/qwen35.gguf $demo", qr/is no head that drafts/,
       'a model that is no head' ],
     [ "$demo $eagle", qr/width 64, and .* has \d+|reads layer \d/,
       'a head of another model' ],
     [ "$draft/qwen35.gguf $eagle", qr/reads layer 2, and it has 2 layers/,
       'a head that reads other layers' ],
     [ "$draft/eagle3-target.gguf $draft/gemma4.gguf",
       qr/no layer of .* has the keys and values that layer 0 reads/,
       'an assistant of another model' ],
     [ $eagle, qr/a head that drafts tokens for another model/,
       'a head in the place of the model' ],
     [ "$draft/qwen35.gguf --hidden $dir/ids",
       qr/6 bytes; the states of 2 ids have 512/, 'too few states' ])
{
    my ($args, $why, $what) = @$_;
    my ($out, $err) = draft("$dir/ids", 'draft', $args);

    like($err, $why, $what);
    is($out, '', "$what: nothing is printed");
}

like((draft("$dir/one", 'draft', "$draft/qwen35.gguf"))[1],
     qr/a head needs two ids at least/, 'a single id');

# layers for multi-token prediction that no head can have

for ([ 'glm4moe', 'glm4moe.attention.head_count_kv', [ u32s => 2, 2, 0 ] ],
     [ 'qwen35', 'qwen35.attention.head_count_kv', [ u32s => 2, 2, 0 ] ],
     [ 'qwen35', 'qwen35.nextn_predict_layers', [ u32 => 3 ] ],
     [ 'eagle3', 'eagle3.target_layers', [ u32s => 1, 2 ] ],
     [ 'eagle3', 'eagle3.target_layers', [ str => 'all' ] ],
     [ 'eagle3', 'eagle3.target_hidden_size', [ u32 => 1 << 31 ] ],
     [ 'eagle3', 'eagle3.block_count', [ u32 => 2 ] ],
     [ 'gemma4', 'gemma4-assistant.embedding_length_out', [ u32 => 32 ] ],
     [ 'gemma4', 'gemma4-assistant.attention.head_count_kv',
       [ u32 => 4 ] ])
{
    my ($name, $key, $value) = @$_;
    my @files = @{ $heads{$name}{files} };

    LLM::GGUF::make("$draft/$files[-1]", "$dir/bad.gguf",
                    kv => { $key => $value });

    my ($out, $err) = draft("$dir/ids", 'draft',
                            @files > 1 ? "$draft/$files[0]" : (),
                            "$dir/bad.gguf");

    like($err, qr/^llm: .*bad\.gguf: /, "$name, $key @$value[1 .. $#$value]");
    is($out, '', "$name, $key: nothing is printed");
}

# nor is such a file served, and info says what it is

like((draft("$dir/ids", 'info', $eagle))[0] . slurp("$dir/err"),
     qr/a head that drafts tokens for another model/, 'info');

done_testing();
