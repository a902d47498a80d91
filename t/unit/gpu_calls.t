#!/usr/bin/perl

# t/gpu/run.sh, the calls that are made where a GPU is, on the emulator: each
# leaves its own results, and one that fails stops no other.  What was built
# for the tests is taken for what the call itself would build.

use strict;
use warnings;

use Cwd 'abs_path';
use File::Temp 'tempdir';
use FindBin;
use Test::More;

my $root = abs_path($ENV{LLM_ROOT} || "$FindBin::Bin/../..");
my $objs = abs_path($ENV{LLM_OBJS} || "$root/objs");

plan skip_all => 'no emulator in this build'
    unless -e "$objs/llm_emu.so" && -e "$objs/llm" && !$ENV{LLM_SAN};

my $out = tempdir(CLEANUP => 1);
my $work = tempdir(CLEANUP => 1);

sub call {
    my ($what, %env) = @_;

    local @ENV{keys %env} = values %env;
    local @ENV{qw(LLM_GPU_DEVICE LLM_GPU_WORK OUT)} = ('emu', $work, $out);

    my $said = qx(cd "$root" && t/gpu/run.sh $what 2>&1);

    return ($? >> 8, $said);
}


# so that nothing is compiled

my $sum = qx(cd "$root" && bash -c '. t/gpu/build.sh; all_sources');
chomp $sum;

open my $f, '>', "$work/built" or die;
print $f $sum;
close $f;

symlink "$objs/$_", "$work/$_" for qw(llm llm_emu.so);
mkdir "$work/t";

sub table {
    my ($name, $rest) = @_;

    open my $t, '>', "$work/t/$name" or die;
    print $t "#!/bin/sh\necho ok 1 - $name\n$rest\n";
    close $t;
    chmod 0755, "$work/t/$name";
}

table($_, $_ eq 'emu_fp8' ? 'sleep 100' : 'echo 1..1')
    for qw(emu emu_fp8 emu_products emu_glu emu_sample emu_broken emu_ahead
           emu_dense emu_encode emu_experts emu_latent emu_splits recurrent
           logits archs);

my ($rc, $said) = call('bandwidth');
is($rc, 0, 'bandwidth') or diag $said;
like(qx(tar -tzf "$out/results-bandwidth.tar.gz"), qr/-peak\.jsonl\n/,
     'and its results');

($rc, $said) = call('parity 5');
is($rc, 0, 'parity') or diag $said;
like($said, qr/emu_sample: 1 right, 0 wrong, all of it/, 'a table that ended');
like($said, qr/emu_fp8: 1 right, 0 wrong, cut after 5 s/, 'one that did not');

table('emu_fp8', 'echo 1..1');
table('emu_dense', 'kill -SEGV $$');
($rc, $said) = call('parity 5');
isnt($rc, 0, 'a table that crashes is no parity');
like($said, qr/emu_dense: 1 right, 0 wrong, ended early, exit status 139/,
     'and is named');
like($said, qr/logits: 1 right, 0 wrong, all of it/, 'the others are there');

table('emu_dense', "echo not ok 2 - wrong\necho 1..2\nexit 1");
($rc, $said) = call('parity 5');
isnt($rc, 0, 'nor is one that is wrong');
like($said, qr/emu_dense: 1 right, 1 wrong, all of it\nnot ok 2 - wrong/,
     'with what is wrong');

($rc, $said) = call('twice');
is($rc, 0, 'the same prompt twice') or diag $said;

($rc, $said) = call('speed no-such-shape q4_k');
isnt($rc, 0, 'a call that cannot be done says so');
like($said, qr/exit status [1-9]/, 'in words, too');

($rc, $said) = call('speed no-such-shape q4_k -- twice');
isnt($rc, 0, 'one of two that cannot be done');
like($said, qr/twice: exit status 0/, 'stops no other');

for my $name (qw(bits sanitize kernels)) {
    ($rc, $said) = call($name);
    is($rc, 0, "$name is left out");
    like($said, qr/left out: no .*GPU/, 'with a word');
}

my @archives = map { s/.*\///r } sort glob "$out/*";
is_deeply(\@archives,
          [map { "results-$_.tar.gz" } qw(bandwidth parity speed twice)],
          'each run left an archive');
like(qx(tar -tzf "$out/results-parity.tar.gz"), qr/-logits\.tap\n/,
     'of its results');

($rc, $said) = call('gibberish');
isnt($rc, 0, 'no such call');

# an archive as pack makes it, of programs that say what those would without a
# GPU

my $pack = tempdir(CLEANUP => 1) . '/gpu';

sub put {
    my ($path, $text) = @_;

    system('mkdir', '-p', "$pack/" . ($path =~ s/[^\/]*$//r));
    open my $t, '>', "$pack/$path" or die "$path: $!";
    print $t $text;
    close $t;
    chmod 0755, "$pack/$path";
}

sub check {
    system('tar', '-C', "$pack/..", '-cJf', "$pack.tar.xz", 'gpu') == 0
        or die 'tar';

    return call('check', LLM_GPU_PACK => $pack);
}

my $module = qx(cd "$root" && bash -c '. t/gpu/build.sh; sources');
my $says = 'case $4 in cpu) echo 1 ;;'
           . ' *) echo "CUDA: there is no NVIDIA driver" >&2; exit 1 ;; esac';

put('nginx/sources', $module);
put('work/built', $sum);
put("work/$_", "#!/bin/sh\n")
    for qw(load bench bench.so peak bits break.so llm_cuda.so);
put('work/llm', "#!/bin/sh\n$says\n");
put("work/t/$_", "#!/bin/sh\n") for map { s/.*\///r } glob "$work/t/*";

($rc, $said) = check();
is($rc, 0, 'an archive that is whole') or diag $said;
like($said, qr/whole$/, 'says so');

put('work/llm', "#!/bin/sh\ncase \$4 in cpu) echo 1 ;; *) echo CUDA: the"
    . " backend is of another build >&2; exit 1 ;; esac\n");
($rc, $said) = check();
isnt($rc, 0, 'one whose backend does not load is not');
like($said, qr/do not work on cuda: CUDA: the backend is of another/, 'why');

unlink "$pack/work/t/emu_glu";
($rc, $said) = check();
isnt($rc, 0, 'nor is one without a table');
like($said, qr/lacks t\/emu_glu/, 'which is named');

put('work/built', "1 2\n");
($rc, $said) = check();
like($said, qr/programs are from other sources/, 'or one of other sources');


# ---- the libraries that it links, and carries ----

my ($libraries, $needed) = split /\n/,
    qx(cd "$root" && bash -c '. t/gpu/build.sh; echo \$LIBRARIES; echo \$NEEDED');

is(join(' ', grep { !/^(?:pthread|dl|m)$/ && $needed !~ /\blib$_\.so/ }
             $libraries =~ /-l(\S+)/g), '',
   'each library that a machine may lack is in the archive');

my $cc = 'cc -std=gnu11 -D_GNU_SOURCE= -I.';
my $bench = qq("$work/bench" t/gpu/bench.c "$objs/libllm.a");

is(qx(cd "$root" && $cc -o $bench $libraries 2>&1), '', 'the bench links');

done_testing();
