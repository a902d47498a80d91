#!/usr/bin/perl

# The reader of JSON Schema against the Python package jsonschema: the cases
# that are written down, and random ones (LLM_SCHEMA_SEED, LLM_SCHEMA_COUNT).

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(dirname);
use Test::More;

my $root = abs_path($ENV{LLM_ROOT} || dirname(abs_path(__FILE__)) . '/../..');
my $objs = abs_path($ENV{LLM_OBJS} || "$root/objs");
my $seed = $ENV{LLM_SCHEMA_SEED} || 1;
my $count = $ENV{LLM_SCHEMA_COUNT} || 200;

chdir $root or die "$root: $!";

my ($python) = grep { system("$_ -c 'import jsonschema' 2> /dev/null") == 0 }
    '.deps/venv/bin/python3', 'python3';

plan skip_all => 'no jsonschema in .deps/venv (t/requirements.txt)'
    unless $python;
plan skip_all => 'no objs/t/schema' unless -x "$objs/t/schema";

for my $script ('schema_check.py',
                "schema_random.py $objs/t/schema $seed $count")
{
    my $out = qx($python t/unit/$script 2>&1);

    is($?, 0, "$script: " . (split /\n/, $out)[-1])
        or diag(substr($out, 0, 4000));
}

done_testing();
