#!/usr/bin/perl

# llm complete --speculate ngram: the text of the models of all architectures is
# the one without, greedy and drawn; their random weights repeat themselves, so
# much of it is drafted.

use strict;
use warnings;

use File::Temp qw(tempdir);
use FindBin;
use Test::More;

my $root = $ENV{LLM_ROOT} || "$FindBin::Bin/../..";
my $objs = $ENV{LLM_OBJS} || "$root/objs";
my $fixtures = $ENV{LLM_FIXTURES} || "$root/../shared/fixtures";
my $dir = tempdir(CLEANUP => 1);

open my $f, '>', "$dir/prompt" or die "$dir/prompt: $!";
print $f join ' ', map { "one two three $_" } 1 .. 9;
close $f;


# the text, or why there is none

sub complete {
    my ($file, @args) = @_;

    return scalar `'$objs/llm' complete '$file' --ctx 512 --max-tokens 90 \\
                   --threads 1 @args < '$dir/prompt' 2>&1`;
}


my @files = ("$root/models/demo.gguf", glob "$fixtures/models/*.gguf");

for my $file (@files) {
    my ($name) = $file =~ m{([^/]+)\.gguf$};

    for my $how ('--temp 0', '--temp 0.6 --seed 4') {
        my $want = complete($file, $how);

        next if $want =~ /encoder|has no tokenizer/;

        is(complete($file, $how, '--speculate ngram'), $want,
           "$name, $how: the same text");
    }
}

is(complete($files[0], '--speculate words') =~ /--speculate: "words": (.*)/
   ? $1 : '', 'it must be "ngram", "mtp" or "draft=FILE", "ngram" and one of '
            . 'the others with a comma between them, or "off"',
   'what it may be');
like(complete($files[0], "--speculate draft=$files[0]"),
     qr/a small model drafts in the server alone/,
     'a small model cannot draft here');

# heads

my $draft = "$fixtures/draft";

for ((map { [ $_, "$_.gguf", 'mtp' ] } qw(qwen35 qwen3next glm4moe)),
     (map { [ $_, "$_-target.gguf", "draft=$draft/$_.gguf" ] }
          qw(eagle3 eagle3-norms gemma4)))
{
    my ($name, $file, $kind) = @$_;

    next if !-e "$draft/$file";

    for my $how ('--temp 0', '--temp 0.6 --seed 4', '--temp 0.2 --seed 6 --batch 32') {
        my $want = complete("$draft/$file", $how);

        is(complete("$draft/$file", $how, "--speculate $_"), $want,
           "$name, $how, $_: the same text") for $kind, "ngram,$kind";
    }
}

like(complete($files[0], '--speculate mtp'),
     qr/no layers for multi-token prediction/, 'a model without such layers');

done_testing();
