#!/usr/bin/perl

# The shared objects as built: llm_cuda.so is there wherever there is an
# nvcc, with machine code for each generation of GPUs that this nvcc knows
# (those in CUDA_ARCH, if it is set) and PTX of the lowest and the newest; the
# module and llm need no CUDA library, so that nginx starts anywhere.

use strict;
use warnings;

use FindBin;
use Test::More;

my $root = $ENV{LLM_ROOT} || "$FindBin::Bin/../..";
my $objs = $ENV{LLM_OBJS} || "$root/objs";

my ($nvcc) = grep { -x } $ENV{CUDA_HOME} ? "$ENV{CUDA_HOME}/bin/nvcc"
    : map { "$_/nvcc" } split(/:/, $ENV{PATH}), '/usr/local/cuda/bin';


# what a file names as needed, and where it is looked for

sub dynamic {
    my ($file) = @_;

    return map { /\((NEEDED|RUNPATH|RPATH)\).*\[(.*)\]/ ? [$1, $2] : () }
        qx(readelf -d "$file");
}


# "elf 80", "ptx 120": what the fat binaries of a shared object hold

sub machine_code {
    my ($file) = @_;
    my %found;

    open my $f, '<:raw', $file or die "$file: $!";
    local $/;
    my $all = <$f>;

    while ($all =~ /\x50\xed\x55\xba\x01\0(..)(.{8})/sg) {
        my $at = $-[0] + unpack('v', $1);
        my $end = $at + unpack('Q<', $2);

        while ($at + 64 <= $end && $end <= length $all) {
            my ($kind, $head, $size, $arch)
                = unpack 'v x2 V Q< x12 V', substr $all, $at, 64;

            last if $head < 32;
            $found{($kind == 1 ? 'ptx' : 'elf') . " $arch"}++;
            $at += $head + $size;
        }
    }

    return \%found;
}


for my $file ("$objs/ngx_http_llm_module.so", "$objs/llm") {
    next unless -e $file;

    my @needed = map { $_->[1] } dynamic($file);

    ok(@needed, "$file needs some library");
    is_deeply([grep { /cuda|cublas|nv/i } @needed], [],
              "$file needs none of CUDA's");
}

# the legacy stream does not wait for a non-blocking one; the emulator, which
# does not know blas.cu, has no such functions

for my $file (glob "$root/kernels/cuda/*.cu") {
    open my $f, '<', $file or die "$file: $!";
    my @legacy = grep { /\bcuda(?:Memcpy|Memset)(?:2D)?\s*\((?!\))/ } <$f>;

    is_deeply(\@legacy, [], "$file: all on a stream of its own");
}


SKIP: {
    skip 'no nvcc here, so no llm_cuda.so', 1 unless $nvcc;
    skip 'this build has none', 1 if ($ENV{LLM_SAN} // '') eq 'tsan';

    my $so = "$root/objs/llm_cuda.so";

    ok(-e $so, 'there is an nvcc, and llm_cuda.so was built') or last;

    my %known = map { /sm_(\d+)/ ? ($1 => 1) : () } qx($nvcc --list-gpu-code);
    my @all = grep { $known{$_} } 80, 86, 89, 90, 100, 120;
    my @want = $ENV{CUDA_ARCH} ? split ' ', $ENV{CUDA_ARCH} : @all;
    my $code = machine_code($so);

    # 90a is 90 in a fat binary

    ok($code->{'elf ' . s/a$//r}, "machine code for sm_$_") for @want;

    SKIP: {
        skip 'built with CUDA_PTX=no', 1 if ($ENV{CUDA_PTX} // '') eq 'no';
        ok($code->{"ptx $all[-1]"}, "PTX of compute_$all[-1]");
    }

    my ($lowest) = sort { $a <=> $b } grep { !/a$/ } @want;

    SKIP: {
        skip 'only machine code was asked for', 1 unless $lowest;
        ok($code->{"ptx $lowest"}, "PTX of compute_$lowest, for all GPUs from"
           . ' there on');
    }

    my @dynamic = dynamic($so);
    my ($blas) = map { $_->[1] } grep { $_->[1] =~ /cublasLt/ } @dynamic;
    my ($path) = map { $_->[1] } grep { $_->[0] =~ /PATH/ } @dynamic;

    SKIP: {
        skip 'built without cuBLAS', 1 unless $blas;
        ok($path && -e "$path/$blas", 'cublasLt lies where it is looked for');
    }

    is_deeply([grep { /libcuda/ } map { $_->[1] } @dynamic], [],
              'and no library of the driver');
}

done_testing();
