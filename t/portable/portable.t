#!/usr/bin/perl

# Compiles the sources with other compilers than the one that builds them: the
# oldest and the newest gcc-N and clang-N that are installed, with warnings as
# errors.  CI installs those of the distribution (LLM_COMPILERS, see build.sh);
# run.sh tests the compilers of newer distributions.  Also compiles for Angie,
# whose list of locations differs from nginx's, and with musl's headers.

use strict;
use warnings;

use LLM::Test;
use Test::More;

my $compile = "$LLM::Test::ROOT/t/portable/compile.sh";

plan skip_all => 'the build of "./build.sh build" is what this is about'
    if $ENV{LLM_SAN} || $LLM::Test::OBJS ne "$LLM::Test::ROOT/objs";


sub compiles {
    my (@args) = @_;

    my $out = `$compile @args 2>&1`;

    ok($? == 0 && $out eq '', "compiles: @args") or diag(substr $out, 0, 4000);
}


sub oldest_and_newest {
    my ($name) = @_;

    my %is = map { m{/$name-(\d+)$} && -x $_ ? ($1 => 1) : () }
             glob "/usr/bin/$name-[1-9]*";
    my @n = sort { $a <=> $b } keys %is;

    return map { "$name-$_" } @n > 1 ? @n[0, -1] : @n;
}


compiles($ENV{CC} || 'cc', 'angie');

my ($own) = `gcc -dumpversion 2> /dev/null` =~ /^(\d+)/;
my @compilers = grep { $_ ne 'gcc-' . ($own // '') }
                map { oldest_and_newest($_) } 'gcc', 'clang';

SKIP: {
    skip('other compilers take minutes: only with LLM_COMPILERS=1, as in CI', 1)
        unless $ENV{LLM_COMPILERS};
    skip('no gcc-N or clang-N beside those that build', 1) unless @compilers;

    compiles($_) for @compilers;
}

SKIP: {
    skip('other C libraries: only with LLM_COMPILERS=1, as in CI', 1)
        unless $ENV{LLM_COMPILERS};
    skip('no musl-gcc', 1) if system('command -v musl-gcc > /dev/null');

    compiles('musl-gcc');
}

done_testing();
