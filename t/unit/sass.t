#!/usr/bin/perl

# t/gpu/sass.py, which judges loops by their machine code: on text as cuobjdump
# prints it, with loops whose counts are known, and, where there is an nvcc, on
# kernels that it compiles.  t/gpu/model.py on the committed table.

use strict;
use warnings;

use Cwd 'abs_path';
use File::Temp 'tempdir';
use FindBin;
use Test::More;

my $root = abs_path($ENV{LLM_ROOT} || "$FindBin::Bin/../..");
my $dir = tempdir(CLEANUP => 1);
my $table = "$dir/table.txt";


sub run {
    my ($command) = @_;

    my $said = qx(cd "$root" && $command 2>&1);

    return ($? >> 8, $said);
}


sub sass { return run("t/gpu/sass.py --table $table @_"); }


sub put {
    my ($name, $text) = @_;

    open my $f, '>', "$dir/$name" or die "$name: $!";
    print $f $text;
    close $f;

    return "$dir/$name";
}


sub get {
    open my $f, '<', $_[0] or die "$_[0]: $!";
    local $/;
    return scalar <$f>;
}


# the columns of a loop of a table, or undef

sub row {
    my ($text, $name) = @_;

    return $text =~ /^ +(\S.*\S)  \Q$name\E(?:;|$)/m
           ? join ' ', split ' ', $1 : undef;
}


# a function as cuobjdump prints it; instructions are [text, stall, barriers
# waited for], each 16 bytes

sub function {
    my ($name, @code) = @_;
    my $text = "\t\tFunction : $name\n";
    my $at = 0;

    for (@code) {
        my ($what, $stall, $waits) = @$_;

        $text .= sprintf "        /*%04x*/  %s ;  /* 0x%016x */\n",
                         $at, $what, 0x1234;
        $text .= sprintf "                     /* 0x%016x */\n",
                         ($stall | ($waits // 0) << 11) << 41 | 0xff;
        $at += 16;
    }

    return $text;
}


sub usage {
    my ($name, $regs, $shared) = @_;

    return " Function $name:\n  REG:$regs STACK:0 SHARED:$shared LOCAL:0 "
           . "CONSTANT[0]:844 TEXTURE:0 SURFACE:0 SAMPLER:0\n";
}


# a choice in the loop (0x30 to 0x50), the cheaper side of which is that with
# fewer cycles; a loop within, whose HMMA is its own; a cold block after the
# end that jumps back into the loop, which makes no loop of its own

sub loops {
    my ($stall, $mma) = @_;

    return function('loops',
        ['MOV R0, RZ', 1],
        ['LDG.E.128 R4, desc[UR4][R2.64]', 2],                  # the loop
        ['@P0 BRA 0x50', 5],
        ['HMMA.16816.F32.BF16 R8, R4, R6, R8', $stall, 1],
        ['BRA 0x60', 5],
        [$mma . 'HMMA.16816.F32 R8, R4, R6, R8', 15],
        ['LDGSTS.E.BYPASS.64 [R1], desc[UR4][R2.64]', 1],
        ['@P1 BRA 0xc0', 5],
        ['HMMA.16816.F32 R8, R4, R6, R8', 4],                   # within
        ['@P2 BRA 0x80', 5],
        ['@!P3 BRA 0x10', 5, 6],
        ['EXIT', 5],
        ['LDL R3, [R1]', 3],
        ['BRA 0x80', 5]);
}

my $plain = function('plain',
    ['LDG.E.64 R4, desc[UR4][R2.64]', 1],
    ['LDG.E.U16 R5, desc[UR4][R2.64]', 1],
    ['LDG.E R6, desc[UR4][R2.64]', 1],
    ['LDG.E.U8 R7, desc[UR4][R2.64]', 1],
    ['LDG.E.S8 R7, desc[UR4][R2.64]', 4, 1],
    ['@P0 BRA 0x0', 5],
    ['LDG.E.64 R4, desc[UR4][R2.64]', 1],
    ['@P0 BRA 0x60', 5],
    ['EXIT', 5]);

my $file = put('a.sass', usage('loops', 100, 1024) . usage('plain', 32, 1024)
                         . loops(7, '') . $plain);

my ($rc, $said) = sass('--write', $file);
is($rc, 0, 'a table is written') or diag $said;
my $text = get($table);

#        regs blocks instr cycles waits mma bytes predicated local
is(row($text, 'loops #1'), '100 - 7 30 2 1 24 0 1',
   'the path with fewer cycles; local memory of the cold block');
is(row($text, 'loops #2'), '100 - 2 9 0 1 0 0 0', 'a loop within');
is(row($text, 'plain #1'), '32 - 6 13 1 0 16 0 0',
   'without HMMA, the loop that loads most');
is(row($text, 'plain #2'), undef, 'and no other');

# a count in the table does not allow it: that takes a reason

($rc, $said) = sass($file);
is($rc, 1, 'local memory, as much as in the table');
is(join('', $said =~ /^sass.py: .*\n/mg),
   "sass.py: loops #1: 1 local, not accepted\n", 'is a reason, the only one');

(my $why = $text) =~ s/loops #1$/loops #1; accepted: a cold block/m;
put('table.txt', $why);
($rc, $said) = sass($file);
is($rc, 0, 'if the table says why, it is none') or diag $said;
like($said, qr/loops #1; accepted: a cold block$/m, 'and it is shown');

($rc, $said) = sass('--strict', $file);
is($rc, 1, 'but with --strict it is');
like($said, qr/^sass.py: loops #1: 1 local, not accepted$/m, 'as before');

sass('--write', $file);
is(get($table), $why, 'a table that is written anew keeps why');

put('b.sass', $plain . loops(7, '') =~ s/LDL R3, \[R1\]/LDS R3, [R1]/r);
sass('--write', "$dir/b.sass");
is(row(get($table), 'loops #1'), '0 - 7 30 2 1 24 0 0',
   'without local memory');
unlike(get($table), qr/accepted/, 'there is nothing to accept');

($rc, $said) = sass($file);
is($rc, 1, 'more than in the table');
like($said, qr/^sass.py: loops #1: 1 local, 0 in the table$/m, 'is a reason');

put('table.txt', $why);

put('a.sass', loops(8, '') . $plain);
($rc, $said) = sass($file);
is($rc, 1, 'a cycle more');
like($said, qr/loops #1: 31 cycles, 30 in the table/, 'is a reason');

put('a.sass', loops(6, '') . $plain);
($rc, $said) = sass($file);
is($rc, 0, 'one less is none') or diag $said;

put('a.sass', loops(7, '@P4 ') . $plain);
($rc, $said) = sass($file);
is($rc, 1, 'a predicated HMMA, even if not on the path');
like($said, qr/loops #1: 1 predicated, 0 in the table/, 'is a reason');

put('a.sass', loops(7, ''));
($rc, $said) = sass($file);
is($rc, 1, 'a loop that is gone');
like($said, qr/plain #1: gone/, 'is a reason');

put('a.sass', loops(7, '') . $plain . $plain =~ s/plain/more/r);
($rc, $said) = sass($file);
is($rc, 1, 'a loop that is new');
like($said, qr/more #1: not in the table/, 'is a reason');

(my $older = $why) =~ s/^# by .*/# by nvcc 1.0.0/m;
put('table.txt', $older);
put('a.sass', loops(8, '') . $plain);
($rc, $said) = sass($file);
is($rc, 0, 'cycles of another compiler are not compared') or diag $said;
like($said, qr/table is by nvcc 1\.0\.0/, 'with a word');

put('a.sass', '');
($rc, $said) = sass($file);
isnt($rc, 0, 'no machine code at all');
like($said, qr/no machine code of sm_90a/, 'with a word');

# blocks an SM, by shared memory, by registers, by threads

for (['linear_few<4, 1, 1, 8, 128, 4, 1>',
      'ILi4ELi1ELi1ELi8ELi128ELi4ELi1EE', 72, 3],
     ['linear_few<1, 1, 1, 1, 256, 8, 1>',
      'ILi1ELi1ELi1ELi1ELi256ELi8ELi1EE', 96, 3],
     ['linear_q<4, 1, 0>', 'ILi4ELi1ELi0EE', 40, 6],
     ['linear_q<4, 1, 0>', 'ILi4ELi1ELi0EE', 32, 8],
     ['attention<128, 128, 0, 0, 0>', 'ILi128ELi128ELi0ELi0ELi0EE', 255, 2],
     ['attention<128, 128, 0, 0, 1>', 'ILi128ELi128ELi0ELi0ELi1EE', 168, 3])
{
    my ($kernel, $args, $regs, $blocks) = @$_;
    my $name = "llm_k_" . $kernel =~ s/<.*//r;

    $name = '_Z' . length($name) . $name . $args . 'vv';
    put('a.sass', usage($name, $regs, 1024) . loops(7, '') =~ s/loops/$name/r);
    sass('--write', $file);

    SKIP: {
        skip 'no c++filt here', 1 unless qx(c++filt --version 2> /dev/null);
        like(get($table), qr/^ +$regs +$blocks .*llm_k_\Q$kernel\E #1$/m,
             "$kernel with $regs registers: $blocks blocks an SM");
    }
}


# ---- kernels that nvcc compiles ----

my $tool = (grep { $_ && -x } $ENV{CUOBJDUMP},
            "$root/.deps/sass/nvidia/cu13/bin/cuobjdump",
            map { "$_/cuobjdump" } split /:/, $ENV{PATH})[0];
my ($nvcc) = grep { -x } $ENV{CUDA_HOME} ? "$ENV{CUDA_HOME}/bin/nvcc"
    : map { "$_/nvcc" } split(/:/, $ENV{PATH}), '/usr/local/cuda/bin';

SKIP: {
    skip 'under a sanitizer', 1 if $ENV{LLM_SAN};
    skip 'no nvcc here', 1 unless $nvcc;
    skip 'no cuobjdump here', 1 unless $tool;
    skip 'an nvcc without sm_90', 1
        unless qx($nvcc --list-gpu-code) =~ /\bsm_90\b/;

    my $cu = put('kernels.cu', <<'END');
#include <stdint.h>

template<int BF16> static __device__ void
mma(float d[4], const uint32_t *a)
{
    if (BF16) {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
                     "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]),
                       "r"(a[5]));
    } else {
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                     "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                     : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]),
                       "r"(a[5]));
    }
}


template<int KIND> __global__ void
k_loop(const uint32_t *w, uint32_t n, int bf16, float *y)
{
    int       j;
    float     d[4] = { 0, 0, 0, 0 };
    uint32_t  i, a[8], kept[64] = { 0 };

    w += threadIdx.x * 8;

#pragma unroll 1
    for (i = 0; i < n; i++) {
        *(uint4 *) a = *(const uint4 *) (w + i * 256);
        *(uint4 *) (a + 4) = *(const uint4 *) (w + i * 256 + 4);

        if (KIND != 1 || bf16) {
            mma<1>(d, a);

        } else {
            mma<0>(d, a);
        }

        if (KIND == 2) {
            kept[a[6] & 63] += a[7];
        }
    }

    for (j = 0; j < 4; j++) {
        y[threadIdx.x * 4 + j] = d[j] + (KIND == 2 ? kept[n & 63] : 0);
    }
}

template __global__ void k_loop<0>(const uint32_t *, uint32_t, int, float *);
template __global__ void k_loop<1>(const uint32_t *, uint32_t, int, float *);
template __global__ void k_loop<2>(const uint32_t *, uint32_t, int, float *);
END

    ($rc, $said) = run("$nvcc -std=c++17 -O3 -c -gencode "
                       . "arch=compute_90a,code=sm_90a -o $dir/kernels.o $cu");
    is($rc, 0, 'kernels are compiled') or do { diag $said; last };

    ($rc, $said) = sass('--write', "$dir/kernels.o");
    is($rc, 0, 'their machine code is read') or diag $said;

    # registers, cycles and so on are the compiler's

    my @rows = map { [split ' ', row(get($table), $_) // ''] }
        map { "k_loop<$_> #1" } 0 .. 2;

    is_deeply([map { [@$_[5 .. 8]] } @rows[0, 1]], [[1, 24, 0, 0],
                                                   [2, 24, 2, 0]],
              'a HMMA, and a choice of two, 24 bytes each');
    is_deeply([@{$rows[2]}[5 .. 7]], [1, 32, 0], 'one with an array');
    cmp_ok($rows[2][8], '>', 0, 'in local memory');
    cmp_ok($_->[3], '>=', $_->[2], 'a cycle for each instruction') for @rows;

    ($rc, $said) = sass("$dir/kernels.o");
    is($rc, 1, 'the table does not allow them');
    like($said, qr/^sass.py: k_loop<1> #1: 2 predicated, not accepted$/m,
         'the choice');
    like($said, qr/^sass.py: k_loop<2> #1: \d+ local, not accepted$/m,
         'and the array');
    unlike($said, qr/^sass.py: k_loop<0>/m, 'but the plain loop');
}


# ---- the model ----

($rc, $said) = run('t/gpu/model.py');
like($rc, qr/^[01]$/, 'the model runs') or diag $said;
my @goals = $said =~ /^(.*: [\d,.]+ (?:tok\/s|ms) predicted, must .*)$/mg;
is(@goals, 7, 'a line for each goal');
is($rc, scalar(grep { /: missed$/ } @goals) ? 1 : 0,
   'exit status: is one missed?');

my ($was) = $said =~ /^64 rows: ([\d.]+) ms predicted/m;
my @lines = split /\n/, get("$root/t/gpu/sass.txt");

for (@lines) {
    s/^( +\d+ +\d+ +\d+ )( *\d+)/sprintf '%s%d', $1, 50 * $2/e
        if /llm_k_attention<128, 128, 0, 0, 1>/;
}

put('slow.txt', join "\n", @lines, '');
($rc, $said) = run("t/gpu/model.py --table $dir/slow.txt");
my ($now) = $said =~ /^64 rows: ([\d.]+) ms predicted/m;
cmp_ok($now, '>', $was, 'a loop of more cycles takes longer');

put('less.txt', join "\n", (grep { !/linear_one<4, 0>/ } @lines), '');
($rc, $said) = run("t/gpu/model.py --table $dir/less.txt");
is($rc, 1, 'a table without a kernel');
like($said, qr/no loop of llm_k_linear_one<4, 0> in the table/, 'says so');

($rc, $said) = run('t/gpu/model.py --check');
is($rc, 0, 'what was measured') or diag $said;
like($said, qr/^\| prompt of 8192 \| [\d.]+ \| 315\.2 \|/m, 'is beside it');

put('kernels.txt', <<'END');
{"bench": "decode", "streams": 1, "step_ms": 0.8330, "tokens_per_s": 1200.5}
1 streams: 38.0 ms in 403 launches, 0.10 us between two
   12.8 %    12 x   400.00 us   56 regs   17.98 an SM  [9496, 1, 1] llm_k_linear_few<1, 1, 1, 1, 256, 8, 1>
    1.5 %    22 x     5.00 us  168 regs    0.06 an SM  [1, 8, 1] llm_k_attention<128, 128, 0, 0, 1>
prompt of 2048: 38.0 ms in 403 launches, 0.10 us between two
   12.8 %    12 x   500.00 us  180 regs    1.00 an SM  [8, 96, 1] llm_k_linear_wgmma<0, 2, 32, 4, 1>
END
($rc, $said) = run("t/gpu/model.py --beside $dir/kernels.txt --peak "
                   . 't/gpu/results/h100-2026-11-27/5/peak.jsonl');
is($rc, 0, 'kernels of a run') or diag $said;
my %beside = $said =~ /^\| (.+?) \| ([\d.]+) \| [\d.]+ \| [+-]\d+ % \|$/mg;
is_deeply([sort keys %beside],
          ['1 streams: attention', '1 streams: head',
           'prompt of 2048: gate, up'], 'those that were seen');
cmp_ok(abs($beside{'1 streams: head'} / 413 - 1), '<', 0.05,
       'at the rates of that GPU');

done_testing();
