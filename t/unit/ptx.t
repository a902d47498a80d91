#!/usr/bin/perl

# Tables of operations on the emulator with kernels of nvcc's PTX, whose
# accesses to memory are all checked (t/gpu/ptx).  "./build.sh test ptx" runs
# all tables with all kernels; without it, some of both, in seconds, where
# there is an nvcc.

use strict;
use warnings;

use FindBin;
use Test::More;

use LLM::Unit;

my $objs = $ENV{LLM_OBJS} || "$FindBin::Bin/../../objs";

my ($nvcc) = grep { -x } $ENV{CUDA_HOME} ? "$ENV{CUDA_HOME}/bin/nvcc"
    : map { "$_/nvcc" } split(/:/, $ENV{PATH}), '/usr/local/cuda/bin';

my @SOME = qw(emu_dense emu_broken emu_glu recurrent);
my @ALL = qw(emu emu_ahead emu_broken emu_dense emu_encode emu_experts emu_fp8
             emu_glu emu_latent emu_products emu_sample emu_splits emu_wgmma
             recurrent logits archs);

my @tests = $ENV{LLM_EMU_PTX} ? @ALL : @SOME;

# PTX of an earlier capability has nothing of later ones

$ENV{LLM_EMU_COMPILED} //= $ENV{PTX_ARCH} if $ENV{PTX_ARCH};

plan skip_all => 'no nvcc here, so no PTX of kernels' unless $nvcc;
plan skip_all => 'this build has none' if $ENV{LLM_SAN};

if (!$ENV{LLM_EMU_PTX}) {
    $ENV{LLM_EMU_PTX} = "$objs/ptx/some.so";
    -e $ENV{LLM_EMU_PTX} or BAIL_OUT("there is an nvcc, but no"
                                     . " $ENV{LLM_EMU_PTX} was built");
}

@ARGV = @tests unless @ARGV;
LLM::Unit::run_all(sub { 1 });
