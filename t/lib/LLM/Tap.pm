package LLM::Tap;

# Runs a program in another language that prints TAP, as a subtest.  It must
# print its plan, so that a program that ends early fails.

use strict;
use warnings;

use Exporter qw(import);
use Test::More ();

our @EXPORT = qw(tap_ok);


sub tap_ok {
    my ($name, @command) = @_;

    Test::More::subtest($name => sub {
        my $pid = open(my $out, '-|') // die "fork: $!";

        if ($pid == 0) {
            open STDERR, '>&', \*STDOUT;
            alarm 1800;
            exec @command or exit 127;
        }

        my ($planned, @rest);

        while (<$out>) {
            if (/^(not )?ok \d+ - (.*)/) {
                Test::More::ok(!$1, $2);
            } elsif (/^1\.\.(\d+)/) {
                $planned = $1;
            } else {
                push @rest, $_;
            }
        }

        close $out;

        my $count = Test::More->builder->current_test;

        Test::More::ok($planned && $planned == $count, 'ran to its end');
        Test::More::diag(@rest) if @rest && $?;
    });
}

1;
