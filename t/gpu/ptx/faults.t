#!/usr/bin/perl

# Planted faults (faults.cu): what the checks of t/gpu/ptx find in kernels, and
# the emulator in calls, each beside a twin in which there is nothing to find;
# and instructions that the translator does not know.

use strict;
use warnings;

use File::Temp qw(tempdir);
use FindBin;
use Test::More;

my $root = $ENV{LLM_ROOT} || "$FindBin::Bin/../../..";
my $objs = $ENV{LLM_OBJS} || "$root/objs";
my $dir = "$objs/ptx";
my $translate = "$root/t/gpu/ptx/translate.py";

my ($nvcc) = grep { -x } $ENV{CUDA_HOME} ? "$ENV{CUDA_HOME}/bin/nvcc"
    : map { "$_/nvcc" } split(/:/, $ENV{PATH}), '/usr/local/cuda/bin';


# ---- the translator ----

my $tmp = tempdir(CLEANUP => 1);


sub translated {
    my ($instruction) = @_;

    open my $f, '>', "$tmp/k.ptx" or die $!;
    print $f ".version 9.0\n.target sm_89\n.address_size 64\n",
             ".visible .entry k(\n)\n{\n\t.reg .b32 \t%r<3>;\n",
             "\t.reg .f32 \t%f<3>;\n\t$instruction;\n\tret;\n}\n";
    close $f;

    return qx(python3 $translate $tmp/k.ptx $tmp/k.c 2>&1);
}


is(translated('add.s32 %r1, %r2, 1'), '', 'an instruction that is known');

for (['mbarrier.init.shared.b64 [%r1], 1', 'mbarrier.init.shared.b64'],
     ['add.sat.s32 %r1, %r2, 1', 'add.sat.s32'],
     ['tanh.approx.f32 %f1, %f2', 'tanh.approx.f32'],
     ['ld.weak.global.u32 %r1, [%r2]', 'ld.weak.global.u32'],
     ['bar.sync 1, 64', 'bar.sync 1, 64'])
{
    my ($instruction, $name) = @$_;

    like(translated($instruction),
         qr/k\.ptx: not translated: line 9: instruction \Q$name\E\n\z/,
         "$name is an error that names it");
}


# ---- the emulator ----

# A kernel is called by the address that the emulator has for it, and its PTX is
# found by the name of that address, which has to be one for other libraries.

SKIP: {
    skip 'this build has none', 2 if $ENV{LLM_SAN};

    my @kernels = grep { /^\w+ [a-zA-Z] (?:void )?llm_k_/ }
                  qx(nm -C "$objs/llm_emu.so");

    cmp_ok(scalar @kernels, '>', 100, 'the emulator has kernels');
    is(join('', grep { / [a-z] / } @kernels), '', 'and hides none of them');
}


# ---- the checks ----

my @FAULTS = (
    ['ldmatrix', 'misaligned',
     qr/kernel ldmatrix, .* misaligned .* 16 bytes at shared address/],
    ['shared', 'beyond',
     qr/kernel bounds, .*thread \(63,0,0\): access to 4 bytes at shared/],
    ['barrier', 'missing', qr/kernel barrier, .* race: .* of shared address/],
    ['warp barrier', 'missing',
     qr/kernel warp_barrier, .* race: .* of shared address/],
    ['read', 'overwritten', qr/race: write of shared .* thread \d+ read/],
    ['blocks', 'racing', qr/race between blocks: .* another block wrote/],
    ['neighbours', 'racing', qr/race between blocks: .* another block read/],
    ['count', 'racing', qr/kernel count, .* race: .* of shared address/],
    ['copy', 'early', qr/read of shared .* an asynchronous copy is on its/],
    ['copy', 'misaligned', qr/misaligned .* 16 bytes at global address/],
    ['copy', 'beyond', qr/access to 16 bytes at global .* no allocation/],
    ['vector', 'misaligned', qr/misaligned .* 16 bytes at global address/],
    ['vector', 'beyond', qr/access to 16 bytes at global .* no allocation/],
    ['threads', 'too many', qr/kernel few_threads: .* not allow.*\n.*invalid/],
    ['big', 'not allowed', qr/50176 bytes of shared .* allowed 0\n.*invalid/],
    ['early', 'reading', qr/kernel early, .* race between kernels: read of/],
    ['early', 'never waiting', qr/race between kernels: read of/],
    ['first', 'reading', qr/kernel early, .* race between kernels: read of/],
    ['capture', 'allocating', qr/cudaMalloc\(\) while .* captures\n.*invalid/],
    ['capture', 'legacy', qr/work on the legacy stream\n.*invalid/],
);

SKIP: {
    skip 'no nvcc here, so no PTX of kernels', 1 unless $nvcc;
    skip 'this build has none', 1 if $ENV{LLM_SAN};

    ok(-x "$dir/faults" && -e "$dir/faults.so",
       'there is an nvcc, and the planted faults were built') or last;

    local $ENV{LLM_EMU_PTX} = "$dir/faults.so";
    local $ENV{LLM_EMU_CAPABILITY} = 90;    # that of faults.cu
    my %seen;

    for (@FAULTS) {
        my ($case, $fault, $message) = @$_;

        is(qx("$dir/faults" "$case" 2>&1), "$case: no error\n", $case)
            unless $seen{$case}++;
        like(qx("$dir/faults" "$case $fault" 2>&1), qr/\A.*$message/,
             "$case $fault");
    }

    like(qx("$dir/faults" "barrier missing" 2>&1),
         qr{\(faults\.ptx:\d+, t/gpu/ptx/faults\.cu:\d+\)},
         'with the lines of the PTX and of the source');
}

done_testing();
