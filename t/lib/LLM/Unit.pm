# Runs the unit tests: programs built from t/unit/*.c that print TAP, each as a
# subtest.  Three files run them, in parallel: models.t those that compute whole
# models on all backends, emulator.t others on the emulated one, unit.t the
# rest.  Arguments, or LLM_UNIT="a b", choose some.

package LLM::Unit;

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Basename qw(basename dirname);
use Test::More;

my $ROOT = abs_path(dirname(abs_path(__FILE__)) . '/../../..');
my $OBJS = $ENV{LLM_OBJS} || "$ROOT/objs";

# seconds until a program is killed as hanging; a busy machine is slow, and
# sanitizers are slower
my $PATIENCE = $ENV{LLM_SAN} ? 7200 : 1800;


our $MODELS = qr/^(?:archs|logits|rows_split|several|windows|invariant)$/;
our $EMULATED = qr/^(?:cuda_.*|emu(?:_.*)?|engines|engine_swap_gpu|recurrent
                    |team)$/x;


# runs all tests for whose name, in $_, the code returns true

sub run_all {
    my ($code) = @_;

    chdir $ROOT or die "$ROOT: $!";

    # too large allocations must fail, not abort
    $ENV{ASAN_OPTIONS} //= 'detect_leaks=1:allocator_may_return_null=1';
    $ENV{UBSAN_OPTIONS} //= 'print_stacktrace=1';
    $ENV{TSAN_OPTIONS} //= 'halt_on_error=1 second_deadlock_stack=1'
                         . ' allocator_may_return_null=1';

    my @names = @ARGV ? @ARGV : split ' ', $ENV{LLM_UNIT} // '';

    # soft_: those of tiles in plain C (SOFT in engine/Makefile)

    @names = ((map { s/\.c$//r } map { basename($_) } glob 't/unit/*.c'),
              map { basename($_) } glob "$OBJS/t/soft_*")
        unless @names;
    @names = grep { $code->() } @names;

    plan skip_all => 'none of those that are asked for' unless @names;
    plan tests => scalar @names;

    for my $name (@names) {
        subtest $name => sub { run("$OBJS/t/$name") };
    }
}


sub run {
    my ($program) = @_;

    my $pid = open(my $out, '-|') // die "fork: $!";

    if ($pid == 0) {
        open STDERR, '>&', \*STDOUT;
        alarm $PATIENCE;
        exec $program or exit 127;
    }

    my ($planned, $failed, @tail);

    while (my $line = <$out>) {
        chomp $line;

        if ($line =~ /^ok \d+ # skip (.*)/i) {
            SKIP: { skip $1, 1; }

        } elsif ($line =~ /^(not )?ok \d+(?: - (.*))?$/) {
            $failed = $1;
            ok(!$1, '- ' . ($2 // 'unnamed'));

        } elsif ($line =~ /^1\.\.(\d+)(?:\s*# skip (.*))?/i) {
            $planned = $1;
            plan skip_all => $2 if $1 == 0 && defined $2;

        } else {
            push @tail, $line;
            shift @tail if @tail > 60;
            $failed ? diag($line) : note($line);
        }
    }

    close $out;

    my $status = $?;
    my $count = Test::More->builder->current_test;

    ok(defined $planned && $planned == $count, 'ran to its end')
        or diag("wait status $status, ", $planned // 'no', " tests planned, ",
                "$count run\n", join "\n", @tail);
    ok($status == 0 || !Test::More->builder->is_passing, 'exit status')
        or diag("wait status $status\n", join "\n", @tail);
}


1;
