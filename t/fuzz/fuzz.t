#!/usr/bin/perl

# Runs every fuzz target of t/fuzz/*.c for a few seconds (LLM_FUZZ_SECONDS),
# from the seeds in t/fuzz/corpus/NAME and a fixed random seed.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(basename dirname);
use File::Temp qw(tempdir);
use Test::More;

my $root = abs_path(dirname(abs_path(__FILE__)) . '/../..');
my $objs = $ENV{LLM_ROOT} ? "$ENV{LLM_ROOT}/objs" : "$root/objs";
my $seconds = $ENV{LLM_FUZZ_SECONDS} // 5;
my @names = map { s/\.c$//r } map { basename($_) } glob "$root/t/fuzz/*.c";

plan skip_all => 'no fuzz targets' unless @names;
plan tests => scalar @names;


# what a target says, and how many runs it had; bound: when it ends

sub fuzz {
    my ($name, $bound) = @_;

    my $dir = tempdir(CLEANUP => 1);
    my @seeds = grep { -d } "$root/t/fuzz/corpus/$name";

    my $pid = open(my $out, '-|') // die "fork: $!";

    if ($pid == 0) {
        open STDERR, '>&', \*STDOUT;
        chdir $root;
        exec "$objs/fuzzing/fuzz/$name", '-seed=1', $bound, '-timeout=60',
             '-rss_limit_mb=2048', "-artifact_prefix=$dir/", $dir, @seeds
            or exit 127;
    }

    my @lines = <$out>;
    close $out;

    my ($runs) = map { /^Done (\d+) runs/ ? $1 : () } @lines;

    return ($? == 0 ? $runs // 0 : 0, @lines);
}


# on a busy machine the time may be over before there is anything to judge by

for my $name (@names) {
    my ($runs, @lines) = fuzz($name, "-max_total_time=$seconds");

    ($runs, @lines) = fuzz($name, '-runs=200') if $runs && $runs <= 100;

    ok($runs > 100, "$name: $runs runs")
        or diag(@lines > 80 ? @lines[-80 .. -1] : @lines);
}
