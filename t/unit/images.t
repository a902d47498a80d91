#!/usr/bin/perl

# llm image and llm logits with images: sizes, tokens, pixels, the encoder's rows
# and the logits of all prompts of the shared fixtures, which transformers has
# computed, from the files of the images.

use strict;
use warnings;

use File::Temp qw(tempdir);
use FindBin;
use LLM::Cli qw(ids);
use LLM::JSON;
use Test::More;

my $root = $ENV{LLM_ROOT} || "$FindBin::Bin/../..";
my $llm = ($ENV{LLM_OBJS} || "$root/objs") . '/llm';
my $fixtures = ($ENV{LLM_FIXTURES} || "$root/../shared/fixtures") . '/vision';
my $dir = tempdir(CLEANUP => 1);

plan skip_all => "no fixtures of images in $fixtures" unless -d $fixtures;


sub get {
    my ($name) = @_;

    open my $f, '<:raw', $name or die "$name: $!";
    local $/;

    return scalar <$f>;
}


sub run {
    my ($input, @args) = @_;

    open my $f, '>', "$dir/in" or die "$dir/in: $!";
    print $f $input;
    close $f or die "$dir/in: $!";

    my $out = `'$llm' @args < '$dir/in' 2> '$dir/err'`;

    $? == 0 or diag("llm @args: " . get("$dir/err"));

    return $out;
}


# rms of the difference over the deviation of what is right; -1: not as many

sub error_of {
    my ($got, $file) = @_;

    my @got = unpack 'f<*', $got;
    my @want = unpack 'f<*', get($file);
    my ($sum, $squares, $off) = (0, 0, 0);

    return -1 if !@want || @got != @want;

    for my $i (0 .. $#want) {
        $sum += $want[$i];
        $squares += $want[$i] ** 2;
        $off += ($got[$i] - $want[$i]) ** 2;
    }

    return sqrt($off / ($squares - $sum ** 2 / @want));
}


sub near {
    my ($got, $file, $bound, $name) = @_;

    my $error = error_of($got, $file);

    ok($error >= 0 && $error <= $bound, "$name: $error (at most $bound)");
}


# the ids of a prompt, with a word for each image: its layout's texts are the
# command's to add

sub words {
    my ($spec, $prompt, $model) = @_;

    my (@words, $image, $skip);

    for my $s (@{ $prompt->{segments} }) {
        if ($s->[0] eq 'image') {
            my @layout = @{ $spec->{images}[$s->[1]]{layout} };

            if ($s->[2] == 0) {
                splice @words, @words - texts($model, @layout);
                push @words, 'image';
            }

            $image = $s->[2] < @{ $spec->{images}[$s->[1]]{entries} } - 1;
            $skip = texts($model, reverse @layout);
            next;
        }

        next if $image;

        my @ids = @{ $s->[1] };

        push @words, @ids[($skip // 0) .. $#ids];
        $skip = 0;
    }

    return "@words";
}


# ids of the texts that stand before the first entry

sub texts {
    my ($model, @layout) = @_;
    my @ids;

    while (@layout && $layout[0][0] eq 't') {
        push @ids, ids($model, (shift @layout)->[1], '--special');
    }

    return scalar @ids;
}


for my $family (map { m{([^/]+)/text\.gguf$} } glob "$fixtures/*/text.gguf") {
    my $at = "$fixtures/$family";
    my $spec = decode_json(get("$at/spec.json"));
    my $bound = $family eq 'qwen35' ? 0.004 : 0.0025;
    my @files = map { "--image $at/$_->{file}" } @{ $spec->{images} };

    for my $i (0 .. $#{ $spec->{images} }) {
        my $image = $spec->{images}[$i];
        my @args = ('image', "$at/$image->{file}", '--mmproj',
                    "$at/mmproj.gguf");
        my $said = decode_json(run('', @args));

        is_deeply([ @$said{qw(entries rows)} ], [ @$image{qw(entries rows)} ],
                  "$family $image->{file}: sizes and rows");
        is_deeply($said->{layout}, $image->{layout},
                  "$family $image->{file}: what stands in the prompt");
        ok(run('', @args, '--pixels') eq get("$at/img$i.u8"),
           "$family $image->{file}: the processor's pixels");
        near(run('', @args, '--rows'), "$at/img$i.embd", 0.002,
             "$family $image->{file}: the encoder's rows");

        next if $i;

        my $n = 0;

        $n += $_ for @{ $image->{rows} };
        like(run('', 'bench', "$at/mmproj.gguf", '--image',
                 "$at/$image->{file}", '--reps', 1),
             qr/\| $n \| \d+\.\d{3} \| \d+\.\d{3} \|\n\z/,
             "$family: llm bench");
    }

    for my $prompt (@{ $spec->{prompts} }) {
        my $words = words($spec, $prompt, "$at/text.gguf");
        my @with = @{ $prompt->{images} }
                 ? ('--mmproj', "$at/mmproj.gguf",
                    @files[@{ $prompt->{images} }]) : ();
        my $got = run($words, 'logits', "$at/text.gguf", @with, '--all');

        near($got, "$at/$prompt->{name}.logits", $bound,
             "$family: logits of \"$prompt->{name}\"");
        ok(!@with || $got eq run($words, 'logits', "$at/text.gguf", @with,
                                 '--all', '--batch', 1),
           "$family: the same bits, token by token");
    }
}

done_testing();
