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

    %env = (LLM_GPU_DEVICE => 'emu', LLM_GPU_WORK => $work, OUT => $out, %env);
    local @ENV{keys %env} = values %env;

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
           emu_dense emu_encode emu_experts emu_latent emu_splits emu_wgmma
           recurrent logits archs);

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

our $pack = tempdir(CLEANUP => 1) . '/gpu';

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

sub program {
    my ($path, @lines) = @_;

    put($path, join "\n", '#!/bin/sh', @lines, '');
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

put('work/built', $sum);
program('work/t/emu_glu');
program('work/llm', $says);
program('work/llm_cuda.so', '# libcublasLt.so.13');
($rc, $said) = check();
like($said, qr/lacks plain\/peak/, 'what works without cuBLAS is needed, too');

program("work/plain/$_") for qw(peak bits);
program('work/plain/llm_cuda.so', '# libcublasLt.so.13');
($rc, $said) = check();
like($said, qr/work\/plain needs cuBLAS/, 'and must not need it');

program('work/plain/llm_cuda.so');
($rc, $said) = check();
is($rc, 0, 'with it the archive is whole') or diag $said;


# ---- ncu, where there is one ----

my $ncu = tempdir(CLEANUP => 1);

open my $kernels, '>', "$ncu/gpu-kernels.txt" or die;
print $kernels <<'END';
1 streams: 38.0 ms in 403 launches, 0.10 us between two
   12.8 %    12 x   405.14 us   56 regs   17.98 an SM  [4, 1, 1] llm_k_linear_few<4, 1>
   10.5 %     4 x   997.24 us  168 regs    1.00 an SM  [2, 66, 1] nvjet_sm90_tss
    3.3 %    45 x    38.40 us   80 regs    1.94 an SM  [256, 1, 1] llm_k_linear_few<1, 1>
   21.5 %    22 x    25.36 us  168 regs    0.06 an SM  [1, 8, 1] llm_k_attention<128>
END
close $kernels;

sub counters {
    my ($script) = @_;

    open my $f, '>', "$ncu/ncu" or die;
    print $f "#!/bin/sh\n$script\n";
    close $f;
    chmod 0755, "$ncu/ncu";

    return qx(cd "$root" && PATH="$ncu:\$PATH" bash -c '
        say() { echo "\$*"; }
        . t/gpu/calls.sh
        RESULTS=$ncu NAME=gpu DEVICE=cuda WORK=work FILE=file BENCH="1 8"
        SECONDS=0 BEGAN=0 LIMIT=60
        counters' 2>&1; cat "$ncu/gpu-counters.csv" 2> /dev/null);
}

like(counters('echo "$@"'), qr/--kernel-name\ regex:\^\(llm_k_attention
     \|llm_k_linear_few\)\$\ .*dram__bytes_read.*\ work\/bench\ file\ cuda\ work
     \ 1\ 8$/x, 'ncu counts of what took the most');
is(counters('echo "==ERROR== ERR_NVGPUCTRPERM"; exit 1'),
   "left out: no right to read the GPU's counters\n",
   'but not without the right to');


# ---- on a machine with a GPU and without nvcc ----

# the carried programs load where what they are linked with is found, and all
# that they compute fails

my $there = tempdir(CLEANUP => 1);
my $bin = tempdir(CLEANUP => 1);

sub there {
    my ($what, %env) = @_;

    return call($what, LLM_GPU_PACK => $pack, LLM_GPU_DEVICE => 'cuda',
                LLM_GPU_WORK => "$there/work", CUDA_HOME => "$there/none",
                CUBLAS_HOME => "$there/none", PATH => "$bin:$ENV{PATH}", %env);
}

sub command {
    my ($name, @lines) = @_;

    local $pack = $bin;
    program($name, @lines);
}

sub loads_with {
    program('work/llm', 'case "$*" in *" cuda:255 "*) ;; *)',
            'echo wrong >&2; exit 1 ;; esac', @_,
            'echo "CUDA: there is no device 255" >&2; exit 1');
}

my $finds = join "\n", 'if grep -q libcublasLt "${0%/*}/llm_cuda.so" &&',
    '! [ -e "${LD_LIBRARY_PATH%%:*}/libcublasLt.so.13" ]; then',
    'echo libcublasLt.so.13: cannot open it >&2; exit 1; fi';

unlink "$pack.tar.xz";
put('unpacked', '');
put('work/built', $sum);
put('work/arch', "90a\n");
loads_with($finds);
program('work/peak', 'echo "{\"peak\": \"cuBLAS\"}"');
program('work/plain/peak', 'echo "{\"peak\": \"plain\"}"');
system('rm', '-rf', "$pack/work/blas");
command('make', "touch $there/made");
command('nvidia-smi', 'case "$*" in *compute_cap*) echo 9.0 ;;',
        '*) echo Some GPU ;; esac');

($rc, $said) = there('twice -- bandwidth');
like($said, qr/no libcublasLt\.so\.13 was found/, 'no cuBLAS: it is said');
like($said, qr/without cuBLAS: our own kernels/, 'what was linked without is');
like($said, qr/"peak": "plain"/, 'taken');
like($said, qr/twice: exit status 1/, 'a computation that fails');
like($said, qr/bandwidth: exit status 0/, 'stops no other call');

mkdir "$there/lib";
open $f, '>', "$there/lib/libcublasLt.so.13" or die;
close $f;

($rc, $said) = there('bandwidth', CUBLAS_HOME => $there);
is($rc, 0, 'with cuBLAS') or diag $said;
like($said, qr/"peak": "cuBLAS"/, 'what was linked with it is taken');

($rc, $said) = there('bandwidth');
like($said, qr/"peak": "plain"/, 'and the other again');

loads_with('echo version GLIBC_2.99 not found >&2; exit 1');
($rc, $said) = there('bandwidth');
isnt($rc, 0, 'nothing loads, and no nvcc');
like($said, qr/do not load: version GLIBC_2\.99 not found\n.*there is no nvcc/s,
     'why, and what is missing');
ok(!-e "$there/made", 'nothing was compiled before that');

loads_with();
command('nvidia-smi', 'case "$*" in *compute_cap*) echo 8.9 ;;',
        '*) echo Some GPU ;; esac');
($rc, $said) = there('bandwidth');
like($said, qr/are for 90a, this one is 89\n.*there is no nvcc/s,
     'programs for another GPU');

# where it is looked for

command('ldconfig', 'echo "\tlibcublasLt.so.13 (libc6) => '
                    . $there . '/lib/libcublasLt.so.13"');
command('timeout', 'echo "$@"');

sub found {
    local $ENV{PATH} = "$bin:$ENV{PATH}";
    delete local $ENV{CUBLAS_HOME};

    return qx(cd "$root" && bash -c '. t/gpu/build.sh; ROOT=$there/none
              blas_library');
}

is(found(), "$there/lib/libcublasLt.so.13\n", 'where the linker looks');
command('ldconfig');
command('python3');

SKIP: {
    skip 'cuBLAS is here', 1
        if glob '/usr/local/cuda*/{lib64,targets/*/lib}/libcublasLt.so.13';
    like(found(), qr/\A15 find \/ /, 'everywhere, for seconds only');
}


# ---- rest ----

# what takes too long is cut, and what follows gets its time

open $f, '>', "$work/bench" or die;
print $f "#!/bin/sh\n[ -n \"\$LLM_BENCH_FP8\" ] || sleep 100\n",
         "echo '{\"bench\": \"decode\"}'\n";
close $f;
chmod 0755, "$work/bench";

($rc, $said) = call('rest', LLM_GPU_SECONDS => 40);
isnt($rc, 0, 'rest, with a call that is cut');
is(join(' ', $said =~ /^== +\d+ s  (\w+(?: [\w,]+)*)$/mg),
   'rest sanitize racecheck sanitize memcheck sticky speed tiny q4_k'
   . ' speed tiny bf16 weights,kv over_http against_torch', 'in this order');
like($said, qr/speed: exit status 124\n/, 'one is cut');
like(qx(tar -tzf "$out/results-rest.tar.gz"),
     qr/-speed-tiny-bf16-fp8-weights-kv\.jsonl\n/, 'the next one is not');
unlink "$work/bench";


# ---- shares ----

# without cuBLAS the matrix rate is not known

sub shares {
    my ($peak) = @_;
    my ($rates, $bench) = ("$out/peak.jsonl", "$out/bench.jsonl");

    open my $p, '>', $rates or die;
    print $p "$peak\n";
    close $p;
    open $p, '>', $bench or die;
    print $p qq({"bench": "decode", "streams": 1, "step_ms": 5}\n),
             qq({"bench": "prompt", "tokens": 16, "ms": 5}\n);
    close $p;

    return qx(cd "$root" &&
              python3 t/gpu/shares.py "$rates" tiny bf16 < "$bench" 2>&1);
}

like(shares('{"copy_gb_s": 100, "matrix_tflops": 0}'),
     qr/"of_copy": .*\n.*"ms": 5}\n\z/, 'a rate that is 0 has no shares');
like(shares('{"copy_gb_s": 100, "matrix_tflops": 10}'),
     qr/"of_copy": .*\n.*"of_matrix": /, 'others have');


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
