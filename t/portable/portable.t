#!/usr/bin/perl

# The sources with other compilers than the one that builds them: each gcc-N and
# clang-N that is installed, with warnings as errors.  CI installs the oldest
# and the newest that the distribution has (LLM_COMPILERS, see build.sh); newer
# distributions' are run.sh's.  And against Angie, whose locations are not kept
# as nginx's are.

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


compiles($ENV{CC} || 'cc', 'angie');

my %own = map { s/\D.*//sr => 1 } `gcc -dumpversion 2> /dev/null`;
my %seen;
my @compilers = grep { !$seen{$_}++ && -x "/usr/bin/$_" }
                map { m{([^/]+)$} }
                glob '/usr/bin/gcc-[1-9]* /usr/bin/clang-[1-9]*';

@compilers = grep { /^(gcc|clang)-(\d+)$/ && !($1 eq 'gcc' && $own{$2}) }
             @compilers;

SKIP: {
    skip('other compilers take minutes: only with LLM_COMPILERS=1, as in CI', 1)
        unless $ENV{LLM_COMPILERS};
    skip('no gcc-N or clang-N beside those that build', 1) unless @compilers;

    compiles($_) for @compilers;
}

done_testing();
