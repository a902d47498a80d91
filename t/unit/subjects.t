#!/usr/bin/perl

# Subjects of commits are "area: change", of 67 characters at most
# (CONTRIBUTING.md).  Those before this file had come are as they are.

use strict;
use warnings;

use File::Basename qw(dirname);
use Test::More;

my $root = $ENV{LLM_ROOT} || dirname(__FILE__) . '/../..';


# what is wrong with a subject, or nothing

sub wrong {
    my ($subject) = @_;

    return 'has no area' if $subject !~ m{^[\w./+-]+(?:, [\w./+-]+)*: \S};
    return length($subject) . ' characters' if length $subject > 67;
    return;
}


for my $good ('sched: a page is given back', 'http, t/unit: both',
              'README: ' . 'x' x 59)
{
    is(wrong($good), undef, "good: $good");
}

for my $bad ('A page is given back', 'sched:no space',
             'README: ' . 'x' x 60)
{
    ok(wrong($bad), "bad: $bad: " . (wrong($bad) // ''));
}

SKIP: {
    my $git = "git -C '$root' log --format";
    my $first = qx($git=%H --diff-filter=A -- t/unit/subjects.t 2> /dev/null);

    skip('no history of this file', 1) unless $first =~ /^([0-9a-f]+)$/m;

    is(join('', map { chomp; my $why = wrong($_); $why ? "$_: $why\n" : () }
                qx($git=%s --no-merges $1..HEAD)), '', 'all others');
}

done_testing();
