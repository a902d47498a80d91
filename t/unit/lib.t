#!/usr/bin/perl

# LLM::Test: a test that dies at once, before the server that it has started has
# run at all, ends it with all of its processes; and so does one that is told to
# end.

use strict;
use warnings;

use Fcntl qw(F_SETFD);
use FindBin;
use lib "$FindBin::Bin/../lib";

my $slow;                               # a parent goes on late

BEGIN {
    *CORE::GLOBAL::fork = sub () {
        my $pid = CORE::fork;

        select undef, undef, undef, 0.5 if $slow && $pid;

        return $pid;
    };
}

use LLM::Test;
use Test::More;


# has who had the other end of the pipe ended?

sub gone {
    my ($f) = @_;

    vec(my $bits = '', fileno $f, 1) = 1;

    return select($bits, undef, undef, 30) && !defined readline $f;
}


pipe my $told, my $tell or die "pipe: $!";
pipe my $waits, my $go or die "pipe: $!";

my $t = LLM::Test->new(conf => '');

# in the place of nginx a program that has a child, and both go on for ever; the
# child of launch() waits before it is more than a copy of this process

{
    no warnings 'redefine';

    local *LLM::Test::sanitized = sub { sysread $waits, my $byte, 1; return () };
    local *LLM::Test::command = sub {
        return ('perl', '-e', 'open my $f, ">&=", $ARGV[0] or die;'
                . 'my $pid = fork // die; syswrite $f, "$$\n"; sleep 9 while 1',
                fileno $tell);
    };
    fcntl $tell, F_SETFD, 0;            # it stays open there

    $t->launch;
}

my $pid = $t->{pid};

is(getpgrp $pid, $pid, 'it has a group before it has run');

syswrite $go, 'x';
close $tell;

my @pids = map { scalar(<$told>) =~ /(\d+)/ } 1, 2;

is(scalar(grep { kill 0, $_ } @pids), 2, 'it runs, as does its child');
is(join(' ', map { getpgrp $_ } @pids), "$pid $pid", 'in that group');

undef $t;

ok(gone($told), 'both have ended');

# the same by a signal, which comes as soon as the server runs, while the test has
# yet to note its pid

$slow = 1;
pipe $told, $tell or die "pipe: $!";

my $test = fork // die "fork: $!";

if ($test == 0) {
    no warnings 'redefine';

    close $told;
    $t = LLM::Test->new(conf => '');

    local *LLM::Test::sanitized = sub { return () };
    local *LLM::Test::command = sub {
        return ('perl', '-e', 'open my $f, ">&=", $ARGV[0] or die;'
                . 'syswrite $f, "$$\n"; sleep 9 while 1', fileno $tell);
    };
    fcntl $tell, F_SETFD, 0;
    $t->launch;
    sleep 9 while 1;
}

close $tell;
like(readline $told, qr/^\d+$/, 'a server of a test');
kill 'TERM', $test;
waitpid $test, 0;
is($? >> 8, 1, 'which a signal ends');
ok(gone($told), 'has ended with it');

done_testing();
