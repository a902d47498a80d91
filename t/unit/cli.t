# objs/llm, command by command: results against independent ones where there
# are any, and bad input answered on standard error with exit status 1.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use File::Temp qw(tempdir);
use FindBin;
use lib "$FindBin::Bin/../lib";
use LLM::JSON qw(decode_json);
use LLM::GGUF;
use POSIX ();
use Test::More;

my $root = $ENV{LLM_ROOT} || "$FindBin::Bin/../..";
my $objs = $ENV{LLM_OBJS} || "$root/objs";
my $fixtures = $ENV{LLM_FIXTURES} || "$root/../shared/fixtures";

my $demo = "$root/models/demo.gguf";
my $dir = tempdir(CLEANUP => 1);

sub put {
    my ($name, $data) = @_;

    open(my $f, '>:raw', "$dir/$name") or die "$dir/$name: $!";
    print $f $data;
    close($f) or die "$dir/$name: $!";

    return "$dir/$name";
}

sub get {
    my ($name) = @_;

    open(my $f, '<:raw', $name) or die "$name: $!";
    local $/;

    return scalar <$f>;
}

# runs llm; the input is a string; (standard output, standard error, status)
sub llm {
    my ($input, @args) = @_;

    put('in', $input);
    my $pid = fork() // die "fork: $!";

    if ($pid == 0) {
        open(STDIN, '<', "$dir/in") or die $!;
        open(STDOUT, '>', "$dir/out") or die $!;
        open(STDERR, '>', "$dir/err") or die $!;
        exec("$objs/llm", @args) or exit 127;
    }

    waitpid($pid, 0);

    return (get("$dir/out"), get("$dir/err"),
            $? & 127 ? "signal " . ($? & 127) : $? >> 8);
}

sub fails {
    my ($what, $why, $input, @args) = @_;
    my ($out, $err, $status) = llm($input, @args);

    subtest $what => sub {
        is($status, 1, 'exit status');
        like($err, $why, 'says why');
        is($out, '', 'nothing on standard output');
    };
}

# info of a file that does not run: its page may be there all the same
sub fails_info {
    my ($file, $why) = @_;
    my (undef, $err, $status) = llm('', 'info', $file);

    is($status, 1, "info of $file: exit status");
    like($err, $why, 'says why');
}

ok(-x "$objs/llm", 'objs/llm is built') or BAIL_OUT("no $objs/llm");


# ---- the command line ----

my ($out, $err, $status) = llm('', '--help');
is($status, 0, 'help');
like($out, qr/llm tokenize FILE.*--special/, 'names commands and options');

for my $args ([ 'help' ], [ '-h' ], [ 'info', '--help' ],
              [ 'logits', '-h' ])
{
    is_deeply([ llm('', @$args) ], [ $out, '', 0 ], "llm @$args: the same");
}

my ($version) = get("$root/engine/base/version.h")
                =~ /^#define LLM_VERSION  "(\d+\.\d+\.\d+)"$/m;

is_deeply([ llm('', '--version') ], [ "nginx-llm $version\n", '', 0 ],
          'version');

# plan: nothing is loaded, so it knows the memory by the header alone

($out, $err, $status) = llm('', 'plan', $demo);
is($status, 0, 'plan');
like($out, qr/^nginx-llm demo: qwen3, 5\.\d+ M parameters, trained for 4096 /m,
     'plan: the model');
like($out, qr/free, of which the weights take 0\.\d\d GiB/, 'its weights');
like($out, qr/threads? reads? .* GB\/s here: about \d+\.\d tokens\/s/,
     'its speed');
like($out, qr/^    4096  +0\.\d\d   +0\.\d\d   +0\.\d\d $/m, 'a table');
like($out, qr/^    llm_model NAME \Q$demo\E ctx=4096 parallel=16;$/m,
     'a line for nginx.conf');
like($out, qr/^kv_cache=192m is .* \(16 requests of 4096 tokens\)/m,
     'and the cache that goes with it');
unlike($out, qr/longer than|fit/, 'nothing is wrong');

# a cache in 8 bits is smaller, and the line has it; unknown words are refused

($out) = llm('', 'plan', $demo, '--device', 'cpu');
my ($wide) = $out =~ /^    4096 .* (\d+\.\d\d) $/m;

($out, $err, $status) = llm('', 'plan', $demo, '--device', 'cpu', '--kv',
                            'q8_0');
is("$err$status", '0', 'plan --kv q8_0');
my ($narrow) = $out =~ /^    4096 .* (\d+\.\d\d) $/m;
cmp_ok($narrow, '<', $wide, 'a smaller cache');
like($out, qr/ parallel=16 device=cpu kv=q8_0;$/m, 'in the line, too');
like((llm('', 'plan', $demo, '--split', 'x'))[1], qr/--split: "x" is unknown/,
     'plan --split');

# a cache may have half of what is free; a mark says that it would not

($out) = llm('', 'plan', $demo, '--ctx', '16000000');
my ($free) = $out =~ /([\d.]+) GiB free/;
my @need = $out =~ /^16000000 +([\d.]+)([* ]) +([\d.]+)([* ]) +([\d.]+)([* ])$/m;
is(scalar @need, 6, 'plan --ctx: that context alone');

while (my ($gib, $mark) = splice @need, 0, 2) {
    is($mark, $gib > $free / 2 ? '*' : ' ', "$gib of $free GiB");
}

# too long a context: the model is not to blame, and what would fit is said

is((llm('', 'plan', $demo, '--ctx', '100000000'))[2], 0, 'plan, far too long');
($out) = llm('', 'plan', $demo, '--ctx', '100000000', '--device', 'cpu');
like($out, qr/^ctx=100000000 is longer than all .* for \(65536 tokens\)/m,
     'longer than the model was trained for');
like($out, qr/^ctx=100000000 is too long for this memory; a ctx that fits/m,
     'too long for the memory');
like($out, qr/^    llm_model NAME \Q$demo\E ctx=4096 parallel=16 device=cpu;$/m,
     'a ctx that fits');
unlike($out, qr/model does not fit|\bsmaller quantisation/, 'the model does');
like((llm('', 'plan', $demo, '--ctx', '70000', '--device', 'cpu'))[0],
     qr/^ctx=70000 is longer .*^    llm_model NAME \S+ ctx=70000 /ms,
     'longer, but it fits');
unlike((llm('', 'plan', $demo, '--ctx', '65536'))[0], qr/longer than/,
       'not longer');

SKIP: {
    skip 'there is no llm_emu.so in this build', 4 unless -e "$objs/llm_emu.so";

    local $ENV{LLM_EMU_MEMORY} = 16_000_000;

    for my $ctx ([], [ '--ctx', '1000000' ]) {
        ($out, $err, $status) = llm('', 'plan', $demo, '--device', 'emu',
                                    @$ctx);
        is("$err$status", '0', "plan @$ctx, of a small GPU");
        like($out, qr/^the model does not fit: .* more memory is needed$/m,
             'nothing fits');
    }
}

fails('no command', qr/^usage: llm/, '');
fails('unknown command', qr/^usage: llm.*no command "frobnicate"/s, '',
      'frobnicate');
fails('no file', qr/usage: llm info FILE/, '', 'info');
fails('two files', qr/one file, not "b"/, '', 'info', 'a', 'b');
fails('two files and a sound', qr/logits takes one file, not "b"/, '', 'logits',
      'a', '--audio', 's', 'b');
fails('unknown option', qr/info has no option --x/, '', 'info', 'a', '--x');
fails('option of another command', qr/info has no option --temp/, '',
      'info', $demo, '--temp', '1');
fails('no value', qr/--threads needs a value/, '',
      'logits', $demo, '--threads');
fails('value for a flag', qr/--all takes no value/, '',
      'logits', $demo, '--all=1');

for my $n ('0', '-1', 'x', '1x', '99999999999', '') {
    fails("--threads '$n'", qr/--threads: "\Q$n\E" is not a number/, '1',
          'logits', $demo, "--threads=$n");
}

# whatever the command, a file that is none is named, and why it is none

mkdir "$dir/folder" or die $!;
put('empty', '');
put('start', substr(get($demo), 0, 100));

for my $cmd (qw(info plan tokenize detokenize render match parse logits embed
                complete bench perplexity))
{
    fails("$cmd without a file", qr/usage: llm $cmd FILE/, '', $cmd);
    fails("$cmd of two files", qr/$cmd takes one file, not "b"/, '',
          $cmd, $demo, 'b');
    fails("$cmd of a file without a name", qr/name of the file is empty/, '',
          $cmd, '');
    fails("$cmd of no file", qr{\Q$dir\E/none: .*No such file}, '',
          $cmd, "$dir/none");
    fails("$cmd of a folder",
          qr{\Q$dir\E/folder: .*(?:not a regular file|Is a directory)}, '',
          $cmd, "$dir/folder");
    fails("$cmd of the start of a file", qr{\Q$dir\E/start: metadata count}, '',
          $cmd, "$dir/start");
    fails("$cmd with an option it has not", qr/$cmd has no option --colour/,
          '', $cmd, $demo, '--colour=red');

    next if $cmd =~ /^(?:render|parse)$/;   # an empty template is one

    fails("$cmd of an empty file", qr{\Q$dir\E/empty: .*an empty file}, '',
          $cmd, "$dir/empty");
}

# ... and what it is instead, whatever the command

for my $cmd (qw(info plan tokenize detokenize render match parse logits embed
                complete bench perplexity))
{
    fails("$cmd of a Git LFS pointer", qr/a Git LFS pointer.*git lfs pull/, '',
          $cmd, put('lfs.gguf', "version https://git-lfs.github.com/spec/v1\n"
                    . "oid sha256:1\nsize 12\n"));
    fails("$cmd of safetensors", qr/a safetensors file.*convert_hf/, '',
          $cmd, put('m.safetensors', pack('Q<', 2) . '{}    '));
}

mkdir "$dir/hf" or die $!;
put('hf/config.json', '{}');
put('folder/b-00001-of-00002.gguf', '');

fails('a folder of Hugging Face', qr/Hugging Face model.*such folders are not/,
      '', 'info', "$dir/hf");
fails('a folder with a file', qr/such as b-00001-of-00002\.gguf/, '', 'info',
      "$dir/folder");
fails('a URL', qr{this is a URL.*curl -LO https://hf\.co/a\.gguf}, '', 'info',
      'https://hf.co/a.gguf');
fails('a name of a hub', qr/names of Hugging Face or Ollama/, '', 'info',
      'unsloth/Qwen3-0.6B-GGUF:Q4_K_M');

my $whole = get($demo);
my $cut = length($whole) - 4096;

fails('a download that was cut', qr/cut: it has $cut bytes, .* need \d+/, '',
      'info', put('short.gguf', substr($whole, 0, $cut)));

SKIP: {
    skip('root reads everything', 1) if $> == 0;

    chmod 0, put('closed.gguf', $whole);
    fails('a closed file', qr/Permission denied.*allow that user/, '', 'info',
          "$dir/closed.gguf");
}

# info refuses what loading refuses

for my $case ([ 'eos_token_id', [ u32 => 1 << 30 ], qr/is no token/ ],
              [ 'merges', undef, qr/the file has none/ ],
              [ 'token_type', [ u32s => 1, 1 ], qr/2 items for \d+ tokens/ ],
              [ 'tokens', [ u32s => 1 ], qr/not an array of/ ],
              [ 'model', [ str => 'rwkv' ], qr/"rwkv" is not supported/ ])
{
    my ($key, $value, $why) = @$case;

    LLM::GGUF::make($demo, "$dir/odd.gguf",
                    kv => { "tokenizer.ggml.$key" => $value });

    my ($out, $err, $status) = llm('', 'info', "$dir/odd.gguf");

    is($status, 1, "info refuses odd $key");
    like($err, qr/tokenizer\.ggml\.$key: .*$why/, 'with the reason');
    like($out, qr/^runs +no: .*$why/m, 'on its page, too');
}

LLM::GGUF::make($demo, "$dir/adapter.gguf",
                kv => { 'general.type' => [ str => 'adapter' ] });
fails_info("$dir/adapter.gguf", qr/an adapter \(LoRA\), not a model/);
LLM::GGUF::make($demo, "$dir/mmproj.gguf",
                kv => { 'general.architecture' => [ str => 'clip' ] });
fails_info("$dir/mmproj.gguf", qr/of a multimodal model \(mmproj\)/);
LLM::GGUF::make($demo, "$dir/new.gguf",
                kv => { 'general.architecture' => [ str => 'deepseek4' ] });
fails_info("$dir/new.gguf", qr/"deepseek4" is not supported \(deepseek2, /);

SKIP: {
    my %real = ("$fixtures/lora/llama/a.gguf" => qr/an adapter \(LoRA\)/,
                "$fixtures/lora/refuse/type-none.gguf" => qr/adapter \(LoRA\)/,
                "$fixtures/vision/gemma3/mmproj.gguf" => qr/\(mmproj\)/,
                "$fixtures/hf/bert" => qr/folder with a Hugging Face model/);

    for (sort keys %real) {
        skip("no $_", 1) unless -e;
        fails_info($_, $real{$_});
    }
}

like((llm('', 'help'))[0], qr/^architectures of.*\bqwen3moe\b/ms,
     'help lists the architectures');

for my $n ('1k', '1K', '1024') {
    ($out, $err, $status) = llm('1', 'logits', $demo, "--ctx=$n");
    is($status, 0, "--ctx=$n") or diag($err);
}

for my $option ('--top-p', '--min-p') {
    for my $n ('2', '-0.1', 'nan', 'inf', '0.5x', '') {
        fails("$option '$n'", qr/$option: "\Q$n\E" is not a .* 0 to 1$/m, '1',
              'complete', $demo, "$option=$n");
    }
}

for my $n ('x', '-1', '1.5', '18446744073709551616', '') {
    fails("--seed '$n'", qr/--seed: "\Q$n\E" is not a number/, '1',
          'complete', $demo, "--seed=$n");
}

fails('a sequence that no memory holds',
      qr/for one sequence of ctx=268435456 takes \d+ MiB/, '1',
      'logits', $demo, '--ctx=268435456');
fails('a sequence too long to count', qr/ctx: 2147483647 is too large/, '1',
      'logits', $demo, '--ctx=2147483647');
fails('instructions that do not exist', qr/instruction set "mmx"/, '1',
      'logits', $demo, '--isa=mmx');

# a full disk is no success

SKIP: {
    skip('no /dev/full', 2) unless -c '/dev/full';

    my $status = system("echo 1 | $objs/llm logits $demo"
                        . " > /dev/full 2> $dir/err") >> 8;

    is($status, 1, 'a full disk: exit status');
    like(get("$dir/err"), qr/standard output: No space left/, 'says why');
}

fails('--temp -1', qr/--temp: "-1" is not a number/, '1',
      'complete', $demo, '--temp=-1');
fails('weights that do not exist', qr/--weights: "int4" is unknown/, '1',
      'logits', $demo, '--weights', 'int4');
fails('fp8 weights on the CPU', qr/weights=fp8: the CPU has no fp8/, '1',
      'logits', $demo, '--device', 'cpu', '--weights', 'fp8');
fails('fp8 products on the CPU', qr/products=fp8: the CPU has no fp8/, '1',
      'logits', $demo, '--device', 'cpu', '--products', 'fp8');
fails('unknown products', qr/--products: "int8" is unknown; it must be "fp8"/,
      '1', 'logits', $demo, '--products', 'int8');
fails('fp8 KV on the CPU', qr/kv=fp8: the CPU has no fp8/, '1',
      'bench', $demo, '--device', 'cpu', '--kv=fp8');
fails('unknown device', qr/device "gpu" is unknown/, '1',
      'logits', $demo, '--device', 'gpu');


# ---- info ----

($out, $err, $status) = llm('', 'info', $demo);
is($status, 0, 'info');
like($out, qr/^architecture qwen3$/m, 'architecture');
like($out, qr/^tokenizer\.ggml\.model = "gpt2"$/m, 'metadata');
unlike($out, qr/blk\.0/, 'no tensors');

($out) = llm('', 'info', $demo, '--all');
like($out, qr/^"blk\.0\.attn_q\.weight" \w+ \[/m, 'all: tensors');

my @parts = LLM::GGUF::split($demo, "$dir/split", 3);

($out, $err, $status) = llm('', 'info', $parts[0]);
is($status, 0, 'a model in three files') or diag($err);
like($out, qr/bytes in 3 files, 32 keys, 68 tensors$/m, 'which are one');
fails('another part of it', qr/named by its first part, \S*-00001-of-00003/,
      '', 'info', $parts[1]);
is((llm("5 6 7 8\n", 'logits', $parts[0], '--all'))[0],
   (llm("5 6 7 8\n", 'logits', $demo, '--all'))[0], 'the same logits');

fails('no such file', qr/nowhere\.gguf: .*No such file/, '',
      'info', 'nowhere.gguf');
fails('not a GGUF file', qr/junk/, '', 'info', put('junk', 'x' x 100));
fails('a truncated file', qr/cut/, '',
      'info', put('cut', substr(get($demo), 0, 5000)));


# ---- tokenize, detokenize ----

my $text = "Hello, w\xc3\xb6rld! \xf0\x9f\x98\x80\n\n  <|im_end|> 123\t\xff.";

($out, $err, $status) = llm($text, 'tokenize', $demo);
is($status, 0, 'tokenize');
like($out, qr/^\d+( \d+)*\n$/, 'ids on one line');
my $plain = $out;

($out) = llm($plain, 'detokenize', $demo);
is($out, $text, 'and back, byte for byte');

($out) = llm($text, 'tokenize', $demo, '--special');
cmp_ok(split(' ', $out), '<', split(' ', $plain),
       'special: <|im_end|> is one token');

($out) = llm($out, 'detokenize', $demo);
is($out, $text, 'and back');

($out) = llm('', 'tokenize', $demo);
is($out, "\n", 'no text, no ids');

($out) = llm(" \n", 'detokenize', $demo);
is($out, '', 'no ids, no text');

fails('a word for an id', qr/id 3, "x12", is not a number/, '1 2 x12',
      'detokenize', $demo);
fails('a negative id', qr/id 1, "-4", is not a number/, '-4',
      'detokenize', $demo);
fails('a fraction', qr/id 2, "2\.0", is not a number/, '1 2.0',
      'logits', $demo);
fails('an id too large', qr/id 2, 999999, is not a token/, '1 999999',
      'logits', $demo);
fails('an id far too large', qr/id 1, 99999999999999999999, is not/,
      '99999999999999999999', 'detokenize', $demo);


# ---- logits ----

my ($n_vocab) = (llm('', 'info', $demo))[0] =~ /^vocabulary +(\d+)$/m;
my $ids = join(' ', map { $_ * 37 % $n_vocab } 1 .. 40);

my ($all) = llm($ids, 'logits', $demo, '--all');
is(length $all, 40 * $n_vocab * 4, 'logits of every position');

my ($last) = llm($ids, 'logits', $demo);
is($last, substr($all, 39 * $n_vocab * 4), 'logits of the last');

for my $batch (1, 7, 40, 1000) {
    ($out) = llm($ids, 'logits', $demo, '--all', '--batch', $batch);
    ok($out eq $all, "the same bytes in steps of $batch");
}

($out) = llm($ids, 'logits', $demo, '--batch=1');
ok($out eq $last, 'and of the last position alone');

fails('no ids', qr/no ids/, " \n", 'logits', $demo);
fails('a longer sequence than ctx', qr/longer than ctx/, $ids,
      'logits', $demo, '--ctx', 16);

SKIP: {
    my $name = "$fixtures/logits/qwen3-norm-f16";

    skip("the shared fixtures are not here", 2) unless -e "$name.logits";

    my @want = unpack('f<*', get("$name.logits"));

    my @devices = ('reference', 'cpu', -e "$objs/llm_emu.so" ? 'emu' : ());

    for my $device (@devices) {
        ($out) = llm(get("$name.ids"), 'logits', "$name.gguf", '--all',
                     '--device', $device);
        my @got = unpack('f<*', $out);
        my ($sum, $sum2, $diff) = (0, 0, 0);

        if (@got == @want) {
            for my $i (0 .. $#want) {
                $sum += $want[$i];
                $sum2 += $want[$i] ** 2;
                $diff += ($want[$i] - $got[$i]) ** 2;
            }
        }

        cmp_ok(sqrt($diff / ($sum2 - $sum ** 2 / @want)), '<',
               @got == @want ? 0.0015 : 0, "as transformers', on $device");
    }
}


# ---- embed ----

{
    my ($states) = llm($ids, 'embed', $demo, '--pooling', 'none');
    my @rows = unpack('(a' . length($states) / 40 . ')40', $states);
    my @values = map { [ unpack 'f<*', $_ ] } @rows;
    my $width = @{ $values[0] };

    ok($width > 8 && length $states == 40 * $width * 4,
       'embed: a state of every id');

    for my $n (1, 7) {
        is((llm($ids, 'embed', $demo, '--pooling=none', '--batch', $n))[0],
           $states, "the same bytes in steps of $n");
    }

    is((llm($ids, 'embed', $demo))[0], $rows[-1], 'the last one, unless told');
    is((llm($ids, 'embed', $demo, '--pooling', 'last'))[0], $rows[-1],
       'last');
    is((llm($ids, 'embed', $demo, '--pooling', 'cls', '--batch', 3))[0],
       $rows[0], 'cls: the first one');

    my @mean = map { my $k = $_; my $sum = 0; $sum += $_->[$k] for @values;
                     $sum / 40 } 0 .. $width - 1;

    is((llm($ids, 'embed', $demo, '--pooling', 'mean', '--batch', 9))[0],
       pack('f<*', @mean), 'mean');

    fails('a pooling that does not exist', qr/--pooling: "max" is unknown/,
          '1', 'embed', $demo, '--pooling', 'max');
    fails('nothing to embed', qr/no ids/, '', 'embed', $demo);
}


# ---- perplexity: against the logits ----

my $story = "Two and two are four. The capital of France is Paris. " x 3;
my ($story_ids) = llm($story, 'tokenize', $demo);
my @story = split(' ', $story_ids);
my ($rows) = llm($story_ids, 'logits', $demo, '--all');
my $nll = 0;

for my $i (0 .. $#story - 1) {
    my @row = unpack('f<*', substr($rows, $i * $n_vocab * 4, $n_vocab * 4));
    my $z = 0;

    $z += exp($_) for @row;
    $nll += log($z) - $row[$story[$i + 1]];
}

($out, $err, $status) = llm($story, 'perplexity', $demo);
is($status, 0, 'perplexity');
my ($ppl, $count) = $out =~ /^perplexity ([\d.]+) over (\d+) tokens/;
is($count, $#story, 'every token but the first');
cmp_ok(abs($ppl / exp($nll / $#story) - 1), '<', 1e-4, 'as the logits say');

($out) = llm($story, 'perplexity', $demo, '--ctx', 16);
($count) = $out =~ /over (\d+) tokens, in windows of 16$/;
is($count, $#story, 'in windows: still every token once');

fails('no text', qr/no text/, '', 'perplexity', $demo);


# ---- complete ----

($out, $err, $status) = llm('1, 2, 3, 4,', 'complete', $demo,
                            '--max-tokens', 12);
is($status, 0, 'complete');
is((llm('1, 2, 3, 4,', 'complete', $demo, '--max-tokens', 12))[0], $out,
   'greedy: the same again');

my @drawn = map {
    (llm('1, 2, 3, 4,', 'complete', $demo, '--max-tokens', 12,
         '--temp', 5, '--seed', $_))[0]
} (1, 1, 2);

is($drawn[0], $drawn[1], 'the same seed, the same text');
isnt($drawn[0], $drawn[2], 'another seed, another text');

fails('no prompt', qr/no text/, '', 'complete', $demo);
fails('a prompt longer than ctx', qr/tokens, and ctx is 16/, $story,
      'complete', $demo, '--ctx', 16);


# ---- render ----

my $template = put('t.jinja', "{{ bos_token }}{% for m in messages %}"
    . "[{{ m.role }}]{{ m.content }}{% endfor %}"
    . "{% if add_generation_prompt %}[assistant]{% endif %}");
my $chat = '{"messages": [{"role": "user", "content": "Hi \u00e9"}], '
    . '"bos_token": "<s>"}';

($out, $err, $status) = llm($chat, 'render', $template);
is($out, "<s>[user]Hi \xc3\xa9[assistant]", 'render');

($out) = llm('{"messages": [{"role": "user", "content": "Hi"}]}',
             'render', $demo);
like($out, qr/<\|im_start\|>user\nHi<\|im_end\|>\n<\|im_start\|>assistant/,
     "the model's own template");

fails('no request', qr/standard input: .*unexpected end/, '',
      'render', $template);
fails('malformed JSON', qr/standard input: .*line 1, column/, '{"messages": [', 'render', $template);
fails('not an object', qr/not an object/, '[]', 'render', $template);
fails('no messages', qr/messages/, '{}', 'render', $template);
fails('a broken template', qr{\Q$dir\E/bad.jinja: .*line 1}, $chat,
      'render', put('bad.jinja', '{% for %}'));
POSIX::mkfifo("$dir/pipe", 0600) or die "FIFO: $!";
fails('a FIFO as template', qr{\Q$dir\E/pipe: a FIFO, not a regular file},
      $chat, 'render', "$dir/pipe");
fails('a FIFO as model', qr{\Q$dir\E/pipe: .*not a regular file}, '',
      'info', "$dir/pipe");
fails('a folder as template', qr{\Q$dir\E: a folder, not a regular file},
      $chat, 'render', $dir);
fails('no template file', qr/none\.jinja: .*No such file/, $chat,
      'render', 'none.jinja');


# ---- match ----

sub match {
    my (@cases) = @_;
    my ($out, $err, $status) = llm(join('', map { "$_\n" } @cases), 'match',
                                   $demo);

    is($status, 0, 'match') or diag($err);

    return map { decode_json($_) } split /\n/, $out;
}

sub n_ids { scalar split ' ', (llm($_[0], 'tokenize', $demo))[0] }

my @said = match(
    '{"name": "sch\u00e9ma", "schema": {"type": "object", "properties":'
    . ' {"a": {"type": "integer"}}, "required": ["a"],'
    . ' "additionalProperties": false}, "tests": ['
    . '{"valid": true, "data": {"a": 12}}, {"valid": false, "data": {}},'
    . ' {"data": {"a": 1, "b": 2}}, {"text": "{\"a\":12}"},'
    . ' {"text": "{\"a\": 12"}, {"text": "{\"a\": 12} "}]}',
    '{"name": 7, "grammar": "root ::= \"a\"+ \".\"", "tests": ['
    . '{"text": "aaa."}, {"text": "aaa"}, {"text": ""}, {"text": "."}]}',
    '{"regex": "<\\\\|im_end\\\\|>", "tests": [{"text": "<|im_end|>"}]}',
    '{"json_object": true, "tests": [{"data": {"a": []}}, {"data": []}]}',
    '{"schema": {"properties": {"a": {"pattern": "("}}}, "tests": [{}]}',
    '{"name": "none", "tests": []}', '',
    '{"schema": {"type": "null"}}');

is(scalar @said, 7, 'a line for each case');
is_deeply([ map { $_->{name} } @said ],
          [ "sch\x{e9}ma", 7, undef, undef, undef, 'none', undef ],
          'with its name');
is_deeply([ map { $_->{status} } @said ],
          [ ('ok') x 4, ('refused') x 2, 'ok' ], 'what came of it');
is_deeply([ map { join '', map { $_ ? 'y' : 'n' } @{ $_->{accepted} // [] } }
            @said ], [ 'ynnynn', 'ynnn', 'y', 'yn', '', '', '' ],
          'which tests were accepted');
is($said[6]{accepted} && scalar @{ $said[6]{accepted} }, 0, 'or none');
like($said[4]{reason}, qr/^properties\.a\.pattern: /, 'why not, and where');
like($said[5]{reason}, qr/^the case has no schema, grammar/,
     'a case without a grammar');
is(scalar(grep { ($_->{compile_us} // 1) <= 0 } @said), 0,
   'how long a grammar and its first mask took');
is(scalar @{ $said[2]{mask_us} }, n_ids('<|im_end|>'), 'each token, too');
is(scalar(grep { $_ < 0 } map { @{ $_->{mask_us} // [] } } @said), 0,
   'is a time');

# what is not allowed is not accepted: one token of it has no mask behind it

is(scalar @{ (match('{"regex": "ab", "tests": [{"text": "\n"}]}'))[0]
              {mask_us} }, 0, 'none behind a token that is not allowed');

# data are written as Python writes them

my @data = ('{"b":[1,2.50,{"c":null}], "a" :true,"":{}}', '[ ]', '-0', '-0.0',
            '1.0', '1e5', '1E-7', '0.0001', '1e16', '123456.789e3', '5e-324',
            '12345678901234567890123', '"\u00e9\/\u0041\u007f"',
            '"a\tb\u0001\"\\\\\b\f"', '"\ud83d\ude00 \u2028"');
my $json = put('data', join '', map { "$_\n" } @data);
my @dumped = split /\n/, qx(python3 -c '
import json, sys
for line in open("$json", encoding="utf-8"):
    text = json.dumps(json.loads(line), ensure_ascii=False)
    sys.stdout.buffer.write(text.encode() + b"\\n")');

SKIP: {
    skip('no python3', 2) unless @dumped;

    is(scalar @dumped, scalar @data, 'what json.dumps() makes of each');
    is_deeply([ map { $_->{accepted}[0] ? 'yes' : $_->{reason} // 'no' }
                match(map {
                    my $text = $dumped[$_] =~ s/([\\"])/\\$1/gr;

                    '{"grammar": "root ::= ' . (("\"$text\"")
                        =~ s/([\\"])/\\$1/gr)
                    . qq(", "tests": [{"data": $data[$_]}]})
                } 0 .. $#data) ], [ ('yes') x @data ], 'is what is matched');
}

fails('a case that is no JSON', qr/standard input: line 2 is not a JSON object/,
      "\n[1]\n", 'match', $demo);


# ---- parse ----

my $tool = '"tools": [{"type": "function", "function": {"name": "now",'
         . ' "parameters": {"type": "object", "properties": {}}}}]';
my $ask = '"messages": [{"role": "user", "content": "Hi"}]';
my $said = '"<think>\nHm.\n</think>\n\nSo: <tool_call>\n{\"name\": \"now\",'
         . ' \"arguments\": {\"a\": [1, \"\\\\\"x\\\\\"\"]}}\n</tool_call>\n'
         . '<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>"';
my @lines = map { qq({"request": {$ask$_}, "raw": $said}\n) }
            ", $tool", ", $tool, \"tool_choice\": \"none\"", '';

for my $option ([], [ '--stream' ]) {
    ($out, $err, $status) = llm(join("\n", @lines), 'parse', $demo, @$option);
    @said = map { decode_json($_) } split /\n/, $out;

    is($status, 0, "parse @$option") or diag($err);
    is_deeply($said[0], { content => 'So:', reasoning_content => 'Hm.',
        tool_calls => [
            { name => 'now', arguments => '{"a": [1, "\"x\""]}' },
            { name => 'now', arguments => '{}' } ] },
        'content, reasoning and calls') or diag($out);
    is_deeply($said[1], $said[2], 'no calls with tool_choice none');
    is(scalar @{ $said[2]{tool_calls} }, 0, 'nor without tools');
    like($said[2]{content}, qr/^So: <tool_call>.*<\/tool_call>$/s,
         'they are content');
}

# answers as templates themselves write them, but for those that leave out a
# text before a call or a second call

SKIP: {
    my $file = "$fixtures/toolcalls/roundtrip.jsonl";

    skip('the shared fixtures are not here', 2) unless -e $file;

    my $same = LLM::JSON->new->canonical->allow_nonref;
    my (%cases, %cut, @missed);

    push @{ $cases{$_->{template}} }, $_
        for map { decode_json($_) } split /\n/, get($file);

    for my $name (sort keys %cases) {
        my @cases = @{ $cases{$name} };
        my $lines = join '', map { LLM::JSON::encode_json({
            request => $_->{request}, raw => $_->{raw} }) . "\n" } @cases;
        my @out = map { (llm($lines, 'parse',
                             "$fixtures/chat-templates/$name", @$_))[0] }
                  [], [ '--stream' ];

        $cut{$name} = 1 if $out[0] ne $out[1];

        for my $got (map { decode_json($_) } split /\n/, $out[0]) {
            my $case = shift @cases;
            my @made = map {
                my $m = $_;

                $same->encode([ (map { ($m->{$_} // '') =~ s/^\s+|\s+$//gr }
                                 qw(content reasoning_content)),
                    map { [ $_->{name}, ref $_->{arguments} ? $_->{arguments}
                            : $same->decode($_->{arguments}) ] }
                        @{ $m->{tool_calls} // [] } ])
            } $got, $case->{expect};

            push @missed, "$name $case->{case}" if $made[0] ne $made[1];
        }
    }

    is(join(' ', sort keys %cut), '', 'byte by byte as at once');
    is_deeply(\@missed, [
        'CohereForAI-c4ai-command-r7b-12-2024-tool_use.jinja content',
        'GigaChat3-10B-A1.8B.jinja two',
        'NousResearch-Hermes-3-Llama-3.1-8B-tool_use.jinja content',
        'meta-llama-Llama-3.1-8B-Instruct.jinja content',
        'mistralai-Mistral-Nemo-Instruct-2407.jinja content' ],
        'all but those that their templates cut');
}

fails('an answer without a request', qr/line 1: a line needs an object/,
      '{"raw": ""}', 'parse', $demo);
fails('a line that is no JSON', qr/standard input, line 1: /, '{', 'parse',
      $demo);


# ---- key ----

sub key {
    ($out, $err, $status) = llm('', 'key', @_);

    my ($secret) = $err =~ /^(sk-llm-[A-Za-z0-9_-]{43})\n\z/;
    my $line = eval { decode_json($out) };

    is($status, 0, "key @_");
    ok($secret, 'the secret is on standard error alone') or diag($err);
    ok($line && $out =~ /^.*\n\z/, 'a line of JSON on standard output');
    is($line->{sha256}, sha256_hex($secret // ''), 'with its digest');
    unlike($out, qr/sk-llm/, 'not the secret');

    return ($line, $secret);
}

my ($line, $secret) = key();
my ($line2, $secret2) = key('--id', 'ann-1', '--tenant', 'ann "a"',
                            '--models', 'demo,gpt-*', '--scopes=embed,admin',
                            '--not-before', '2026-01-01', '--expires',
                            '2026-12-31T12:00:00Z');

like($line->{id}, qr/^key-[0-9a-f]{12}\z/, 'an id of its own');
is(join(' ', sort keys %$line), 'id sha256', 'and nothing else');
isnt($secret, $secret2, 'each key is another');
delete $line2->{sha256};
is_deeply($line2, { id => 'ann-1', tenant => 'ann "a"',
                    models => [ 'demo', 'gpt-*' ],
                    scopes => [ 'embed', 'admin' ],
                    not_before => '2026-01-01',
                    expires => '2026-12-31T12:00:00Z' }, 'what was asked for');

fails('an unknown scope', qr/^llm: the scope "all" is unknown/, '', 'key',
      '--scopes', 'all');
fails('no time', qr/"expires" is neither a time/, '', 'key', '--expires',
      'tomorrow');
fails('no id', qr/"id" is not a string/, '', 'key', '--id', '');
fails('a file', qr/takes no file/, '', 'key', 'keys.jsonl');
fails('a model', qr/"models" has something else/, '', 'key', '--models',
      'a,,b');
fails('an option of others', qr/key has no option --temp/, '', 'key',
      '--temp', 1);

SKIP: {
    skip('no /dev/full', 2) unless -c '/dev/full';
    is(system("$objs/llm key > /dev/full 2> $dir/err") >> 8, 1, 'a full disk');
    unlike(get("$dir/err"), qr/sk-llm/, 'shows no secret of a key that is lost');
}


# ---- image ----

# a BMP of one colour; every build reads it

sub bmp {
    my ($width, $height, @bgr) = @_;
    my $row = pack('C*', (@bgr) x $width) . "\0" x ($width % 4);

    return 'BM' . pack('L<L<L<', 54 + length($row) * $height, 0, 54)
         . pack('L<l<l<S<S<L<L<L<L<L<L<', 40, $width, $height, 1, 24, (0) x 6)
         . $row x $height;
}

sub mmproj {
    my ($name, %kv) = @_;

    LLM::GGUF::make(undef, "$dir/$name.gguf", kv => {
        'general.architecture' => [ str => 'clip' ],
        'clip.has_vision_encoder' => [ bool => 1 ],
        'clip.projector_type' => [ str => 'internvl' ],
        'clip.vision.image_size' => [ u32 => 8 ],
        'clip.vision.patch_size' => [ u32 => 2 ],
        'clip.vision.image_mean' => [ f32s => .5, .5, .5 ],
        'clip.vision.image_std' => [ f32s => .5, .5, .5 ], %kv });

    return "$dir/$name.gguf";
}

my $image = put('image.bmp', bmp(16, 8, 10, 20, 30));
my $encoder = mmproj('mmproj');

($out, $err, $status) = llm('', 'image', $image, '--mmproj', $encoder);
is($status, 0, 'image') or diag($err);
is_deeply(decode_json($out),
          { file => $image, projector => 'internvl', size => [ 16, 8 ],
            entries => [ ([ 8, 8 ]) x 3 ], tiles => [ 1, 2 ],
            rows => [ 4, 4, 4 ], tokens => 12,
            layout => [ [ t => '<img>' ], (map { [ e => $_ ] } 0 .. 2),
                        [ t => '</img>' ] ],
            mean => [ .5, .5, .5 ], std => [ .5, .5, .5 ] },
          'sizes, tiles and tokens');

fails('fp8 products of an encoder', qr/fp8 is for language models: encoders/,
      '', 'image', $image, '--mmproj', $encoder, '--rows', '--products=fp8');
($out) = llm('', 'image', $image, '--mmproj', $encoder, '--image-tokens', 4);
is(decode_json($out)->{tokens}, 4, 'not more tokens than are allowed');

($out) = llm('', 'image', $image, '--mmproj', $encoder, '--pixels');
is(unpack('H*', $out), '1e140a' x (3 * 64), 'pixels of two tiles and the whole');

($out) = llm('', 'image', put('tall.bmp', bmp(30, 60, 1, 2, 3)), '--mmproj',
             mmproj('qwen', 'clip.projector_type' => [ str => 'qwen2.5vl_merger' ],
                    'clip.vision.patch_size' => [ u32 => 14 ]));
is_deeply([ @{ decode_json($out) }{qw(grid entries tokens)} ],
          [ [ 1, 8, 4 ], [ [ 56, 112 ] ], 8 ], 'patches of a grid');

fails('no encoder', qr/--mmproj FILE is missing/, '', 'image', $image);
fails('no vision encoder', qr/it has no encoder of images/, '', 'image', $image,
      '--mmproj', mmproj('deaf', 'clip.has_vision_encoder' => [ bool => 0 ]));
fails('not an encoder', qr/it has no clip\.projector_type/, '', 'image', $image,
      '--mmproj', $demo);
fails('an encoder that is not known',
      qr/the projector "resampler\\x0a" is not known/, '', 'image', $image,
      '--mmproj',
      mmproj('old', 'clip.projector_type' => [ str => "resampler\n" ]));
fails('no image file', qr/nowhere\.png: .*No such file/, '', 'image',
      'nowhere.png', '--mmproj', $encoder);
fails('no image', qr/the file is no image that is known here/, '', 'image',
      put('text', 'text'), '--mmproj', $encoder);
fails('an image that ends early', qr/the BMP file ends early/, '', 'image',
      put('cut.bmp', substr(bmp(16, 8, 1, 2, 3), 0, 200)), '--mmproj', $encoder);


# ---- bench ----

($out, $err, $status) = llm('', 'bench', $demo, '--pp', 8, '--tg', 4,
                            '--reps', 1);
is($status, 0, 'bench');
like($out, qr/\| pp8 \| \d+\.\d+ .*\n.*\| tg4 \| \d+\.\d+ /, 'pp and tg');
like($out, qr/read bandwidth of this machine, \d+ threads: \d+\.\d+ GB/,
     'and the bandwidth');

($out, $err, $status) = llm('', 'bench', $demo, '--pp', 8, '--tg', 4,
    '--rows', 5, '--depth', 20, '--reps', 1, '--device', 'cpu');
is($status, 0, 'bench --rows');
like($out, qr/\| tg4 @ d20 \| \d.*\n.*\| tg4 x 5 @ d20 \| [1-9]\d*\.\d\d \+- /,
     'of several sequences');
fails('sequences of an encoder', qr/--rows: .* neither --audio nor --image/, '',
      'bench', $demo, '--rows', 2, '--image', 'x.png');
fails('too many sequences', qr/no memory/, '', 'bench', $demo, '--rows',
      2_000_000_000, '--device', 'cpu');

($out, $err, $status) = llm('', 'bench', $demo, '--pp', 1, '--tg', 1,
                            '--reps', 1);
is($status, 0, 'bench of one token') or diag($err);
like($out, qr/read bandwidth/, 'and the bandwidth beside it');

($out, $err, $status) = llm('', 'bench', $demo, '--pp', 8, '--tg', 4,
                            '--reps', 1, '--depth', 30);
is($status, 0, 'bench behind other tokens') or diag($err);
like($out, qr/\| pp8 \@ d30 \| \d+\.\d+ .*\n.*\| tg4 \@ d30 \| \d+\.\d+ /,
     'is named as by llama-bench');

($out, $err, $status) = llm('', 'bench', $demo, '--device', 'cpu', '--pp', 8,
                            '--tg', 4, '--reps', 1, '--kv', 'q8_0');
is($status, 0, 'bench with a cache of int8') or diag($err);
fails('no such cache', qr/--kv: "q4" is unknown; the values are fp8 and q8_0/,
      '', 'bench', $demo, '--kv', 'q4');

done_testing();
