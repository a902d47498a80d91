#!/usr/bin/perl

# Wrong configurations fail nginx -t with file, line and reason; right ones
# pass; a model file that is missing or broken is no wrong configuration.

use strict;
use warnings;

use LLM::GGUF;
use LLM::Test;
use POSIX qw(mkfifo);
use Test::More;

my $model = 'llm_model demo %%ROOT%%/models/demo.gguf default;';
my $gpu = grep { -e } glob '/dev/nvidia* /dev/dxg /dev/nv{host-,}gpu';


# text of the http block and of its server; what nginx -t must say, or undef

sub check {
    my ($name, $http, $server, $want, %opt) = @_;

    my $t = LLM::Test->new(model => '', http => $http, locations => $server,
                           %opt);
    my ($status, $out) = $t->check;

    if (!defined $want) {
        is($status, 0, "$name: passes") or diag($out);
        return $out;
    }

    ok($status != 0 && $out =~ $want, "$name: fails and says why")
        or diag("status $status, want $want\n$out");

    # the line of the file that the text stands on
    my ($line) = $out =~ m{ in \S*nginx\.conf:(\d+)};
    my @lines = split /\n/, $t->expand($t->conf);

    ok($line && $lines[$line - 1] =~ /llm_/, "$name: names the line")
        or diag($out);

    return $out;
}

my $api = 'location /v1 { llm_api; }';

check('standard', $model, $api, undef);
check('no llm at all', '', 'location / { return 204; }', undef);
check('every parameter', 'llm_model demo %%ROOT%%/models/demo.gguf alias=a,b'
      . ' ctx=512 parallel=2 threads=1 device=cpu kv_cache=16m batch=64'
      . ' weights=fp8 kv=fp8 products=fp8'
      . ' max_tokens=9 idle=5m lazy default; llm_queue 3 timeout=5s memory=32m;'
      . ' llm_shared_memory 2m;', $api, undef);
check('every other directive', "$model llm_max_tokens 5; llm_timeout 5s;"
      . ' llm_heartbeat 1s; llm_stream_buffer 64k;'
      . ' llm_ignore_client_abort on; llm_intercept_errors on;'
      . ' llm_tenant $remote_user weight=$arg_w; llm_priority $arg_p;'
      . ' llm_alias a demo;',
      'location / { llm_api demo fallback=demo; }', undef);
check('a device number', 'llm_model m /x device=cuda:1;', '', undef);
check('device numbers', 'llm_model m /x device=cuda:0,1; llm_model e /x'
      . ' device=emu:1,0 split=rows; llm_model l /x split=layers;', '', undef);
check('worker_processes last', $model, $api, undef);

check('no path', 'llm_model demo;', '', qr/invalid number of arguments/);
check('unknown parameter', 'llm_model demo /x colour=red;', '',
      qr/unknown parameter "colour=red" of model "demo"/);
check('parameter twice', 'llm_model demo /x ctx=1 ctx=2;', '',
      qr/duplicate parameter "ctx=2"/);
check('no number', 'llm_model demo /x ctx=many;', '',
      qr/invalid value "ctx=many"/);
check('number too small', 'llm_model demo /x parallel=0;', '',
      qr/invalid value "parallel=0".* between 1 and/);
check('number that overflows', 'llm_model demo /x ctx=99999999999999999999;',
      '', qr/invalid value/);
check('a suffix that is none', 'llm_model demo /x ctx=8g;', '',
      qr/invalid value "ctx=8g" of model "demo", it must be a number such as "512" or "8k", between 1 and 16777216/);
check('a suffix without a number', 'llm_model demo /x ctx=k;', '',
      qr/invalid value "ctx=k"/);
check('a count that is too large', 'llm_model demo /x threads=1m;', '',
      qr/invalid value "threads=1m"/);
check('counts with suffixes', 'llm_model m %%ROOT%%/models/demo.gguf ctx=1k'
      . ' batch=1K parallel=4 max_tokens=1m; llm_queue 1k tokens=8k;'
      . ' llm_max_tokens 8k prompt=128k;', $api, undef);
check('name and path swapped', 'llm_model /m/demo.gguf demo;', '',
      qr{a model's name comes before its path, and there is no file "\S+/demo": did you mean "llm_model demo /m/demo\.gguf"\?});
check('swapped, a relative path', 'llm_model m/demo.gguf demo ctx=8k;', '',
      qr/a model's name comes before its path/);
check('bad size', 'llm_model demo /x kv_cache=12q;', '',
      qr/invalid value "kv_cache=12q" of model "demo", it must be a size such as "512m" or "8g", between 65536 and \d+ bytes/);
check('bad time', 'llm_model demo /x idle=5x;', '',
      qr/invalid value "idle=5x" of model "demo", it must be a time such as "90s", "5m" or "1h", between 1 and \d+ seconds/);
check('more memory than there is',
      'llm_model demo /x kv_cache=60000g device=cpu;', '',
      qr/model "demo": kv_cache is 61440000 MiB, and this machine has \d+ MiB of memory/);
check('the same where there is no other device',
      'llm_model demo /x kv_cache=60000g;', '', qr/kv_cache is 61440000 MiB/)
    unless $gpu && -e "$LLM::Test::OBJS/llm_cuda.so";
check('a GPU may have as much', 'llm_model m /x kv_cache=900g device=cuda;',
      '', undef);
check('bad device', 'llm_model demo /x device=tpu;', '', qr/"device=tpu"/);
check('bad split', 'llm_model demo /x device=cuda:0,1 split=both;', '',
      qr/"split=both" of model "demo", it must be "layers" or "rows"/);
check('rows of one device', 'llm_model demo /x device=cuda:0 split=rows;', '',
      qr/model "demo": "split=rows" needs several devices, as in "device=cuda:/);
check('bad weights', 'llm_model demo /x weights=int4;', '',
      qr/invalid value "weights=int4" of model "demo", it must be "fp8"/);
check('bad KV', 'llm_model demo /x kv=fp16;', '',
      qr/invalid value "kv=fp16" of model "demo", it must be "fp8" or "q8_0"/);
check('bad products', 'llm_model demo /x products=int8;', '',
      qr/invalid value "products=int8" of model "demo", it must be "fp8", "bf16" or "bf16-all"/);
check('KV without a value', 'llm_model demo /x kv=;', '',
      qr/invalid value "kv="/);
check('weights twice', 'llm_model demo /x weights=fp8 weights=fp8;', '',
      qr/duplicate parameter "weights=fp8"/);
check('bad device number', 'llm_model demo /x device=cuda:x;', '',
      qr/"device=cuda:x"/);
check('a device twice', 'llm_model demo /x device=cuda:0,0;', '',
      qr/"device=cuda:0,0" of model "demo", .*: device .* 0 is listed twice/);
check('no list of devices', 'llm_model demo /x device=cuda:0,;', '',
      qr/"device=cuda:0,".* is followed by numbers of devices/);
check('not a device with numbers', 'llm_model demo /x device=cpu:0,1;', '',
      qr/"device=cpu:0,1"/);
check('empty alias', 'llm_model demo /x alias=a,,b;', '', qr/empty alias/);
check('missing template', 'llm_model demo /x template=/no/such/file;', '',
      qr{template of model "demo": /no/such/file: No such file});
check('a folder as template', 'llm_model demo /x template=/tmp;', '',
      qr{template of model "demo": /tmp: a folder, not a regular file});
check('a device as template', 'llm_model demo /x template=/dev/null;', '',
      qr{/dev/null: a device, not a regular file});
check('empty name', 'llm_model "" /x;', '', qr/empty name or path/);
check('name twice', 'llm_model a /x; llm_model a /y;', '',
      qr/duplicate model name or alias "a"/);
check('alias that is a name', 'llm_model a /x; llm_model b /y alias=c,a;', '',
      qr/duplicate model name or alias "a"/);
check('alias twice', 'llm_model a /x alias=z,z;', '',
      qr/duplicate model name or alias "z"/);
check('own name as alias', 'llm_model a /x alias=a;', '', qr/"a"/);
check('two defaults', 'llm_model a /x default; llm_model b /y default;', '',
      qr/models "a" and "b" are both default/);
check('too many models', join('', map { "llm_model m$_ /x;\n" } 1 .. 33), '',
      qr/more than 32 models/);

check('llm_api without model', '', $api,
      qr/"llm_api" without any "llm_model"/);
check('llm_health without model', '', 'location /h { llm_health; }',
      qr/"llm_health" without any "llm_model"/);
check('llm_api of an unknown model', $model, 'location / { llm_api demo b; }',
      qr/"llm_api" names "b"/);
check('fallback to an unknown model', $model,
      'location / { llm_api fallback=b; }', qr/"llm_api" names "b"/);
check('two fallbacks', $model,
      'location / { llm_api fallback=demo fallback=demo; }',
      qr/duplicate parameter "fallback=demo"/);
check('llm_api twice', $model, 'location / { llm_api; llm_api; }',
      qr/"llm_api" directive is duplicate/);
check('another handler', $model,
      'location / { proxy_pass http://127.0.0.1:1; llm_api; }',
      qr/another content handler/);
check('another handler that comes later', $model,
      "location / { llm_api;\nproxy_pass http://127.0.0.1:1; }",
      qr/"llm_api" conflicts with another content handler/);
check('default twice', 'llm_model a /x default default;', '',
      qr/duplicate parameter "default" of model "a"/);
check('lazy twice', 'llm_model a /x lazy lazy;', '',
      qr/duplicate parameter "lazy" of model "a"/);
check('a value for a flag', 'llm_model a /x lazy=1;', '',
      qr/unknown parameter "lazy=1" of model "a"/);
check('an option without its value', 'llm_model a /x ctx;', '',
      qr/unknown parameter "ctx" of model "a"/);
check('an empty value', 'llm_model a /x ctx=;', '',
      qr/invalid value "ctx="/);
check('llm_api in a server', $model, 'llm_api;',
      qr/"llm_api" directive is not allowed here/);

check('queue of words', "$model llm_queue many;", '',
      qr/invalid number of requests "many"/);
check('queue parameter', "$model llm_queue 4 wait=1s;", '',
      qr/unknown parameter "wait=1s"/);
check('queue memory', "$model llm_queue 4 memory=9k;", '',
      qr/invalid size "memory=9k" of "llm_queue", it must be between 1m and/);
check('queue timeout', "$model llm_queue 4 timeout=0;", '',
      qr/invalid time "timeout=0" of "llm_queue"/);
check('small shared memory', "$model llm_shared_memory 4k;", '',
      qr/invalid size "4k" of "llm_shared_memory", it must be between 256k and/);
check('max_tokens 0', "$model llm_max_tokens 0;", '',
      qr/it must be between 1 and/);
check('tenant parameter', "$model llm_tenant \$uri share=2;", '',
      qr/unknown parameter "share=2"/);
check('queue parameter twice', "$model llm_queue 4 timeout=1s timeout=2s;", '',
      qr/duplicate parameter "timeout=2s" of "llm_queue"/);
check('a model twice', $model, 'location / { llm_api demo demo; }',
      qr/duplicate parameter "demo" of "llm_api"/);
check('a time of ages', "$model llm_timeout 9223372036854775807ms;", '',
      qr/invalid time "9223372036854775807ms" of "llm_timeout", it must be at most 365d/);
check('the same as a parameter', "$model llm_queue 4 timeout=366d;", '',
      qr/invalid time "timeout=366d" of "llm_queue", it must be between 1ms and 365d/);
check('a size beyond machines', "$model llm_stream_buffer 1048577m;", '',
      qr/invalid size "1048577m" of "llm_stream_buffer", it must be between 4k and 1048576m/);
check('more shared memory than there is', "$model llm_shared_memory 1048576m;",
      '', qr/invalid size "1048576m" of "llm_shared_memory", it must be between 256k and \d+m/);
check('a name with a control character', "llm_model \"a\tb\" /x;", '',
      qr/"llm_model" directive has a name with control characters or invalid UTF-8/);
check('one that is not UTF-8', "llm_model a\xff /x;", '',
      qr/"llm_model" directive has a name with control characters or invalid UTF-8/);
check('an alias that is not', "llm_model a /x alias=b,\xc3;", '',
      qr/an alias of model "a" has control characters or invalid UTF-8/);
check('an owner that is not', "llm_model a /x owner=\xed\xa0;", '',
      qr/"owner=" of model "a" has control characters or invalid UTF-8/);
check('names beyond ASCII', "llm_model m\xc3\xbcller \%\%ROOT\%\%/models/demo.gguf"
      . " owner=\xe2\x82\xac;", '', undef);
check('a priority that is none', "$model llm_priority high;", '',
      qr/invalid value "high" of "llm_priority", it must be between -100 and 100/);
check('a priority beyond the last', "$model llm_priority 101;", '',
      qr/invalid value "101" of "llm_priority"/);
check('priorities', "$model llm_priority -100;",
      'llm_priority 100; location / { llm_priority $arg_p; }', undef);
check('a weight that is none', "$model llm_tenant \$uri weight=0;", '',
      qr/invalid value "weight=0" of "llm_tenant", it must be between 0\.001 and 1000/);
check('weights', "$model llm_tenant a weight=0.5;",
      'location / { llm_tenant a weight=$arg_w; }', undef);
check('metrics of a kind', $model, 'location / { llm_metrics xml; }',
      qr/unknown format "xml"/);
check('metrics without model', '', 'location / { llm_metrics; }',
      qr/"llm_metrics" without any "llm_model"/);
check('a directive of another kind', "$model llm_colour red;", '',
      qr/unknown directive "llm_colour"/);


# files that are no models: nginx -t passes and names file and reason

{
    my $t = LLM::Test->new(model => 'llm_model gone %%DIR%%/gone.gguf;'
                           . ' llm_model junk %%DIR%%/junk.gguf;'
                           . ' llm_model ok %%ROOT%%/models/demo.gguf;');

    $t->write_file('junk.gguf', 'this is no model' x 100);

    my ($status, $out) = $t->check;

    is($status, 0, 'broken model files pass nginx -t');
    like($out, qr/model "gone" is not usable: .*gone\.gguf/, 'missing file');
    like($out, qr/model "junk" is not usable: .*junk\.gguf/, 'broken file');
    unlike($out, qr/model "ok"/, 'nothing about the good one');
}

# wrong files: each is named for what it is, with what to do

{
    my %wrong = (
        'lfs.gguf' => [ "version https://git-lfs.github.com/spec/v1\n"
            . "oid sha256:4d7a\nsize 4683073184\n",
            qr/a Git LFS pointer, .* 4683073184 bytes.*git lfs pull/ ],
        'page.gguf' => [ '<!doctype html><html>', qr/an HTML page.*download/ ],
        'empty.gguf' => [ '', qr/an empty file.*download it again/ ],
        'm.safetensors' => [ pack('Q<', 2) . '{}' . 'x' x 100,
            qr/a safetensors file.*convert_hf_to_gguf/ ],
        'zip.gguf' => [ "PK\3\4" . 'x' x 100, qr/a ZIP archive.*unpack it/ ],
        'old.bin' => [ "tjgg\3\0\0\0" . 'x' x 100, qr/a GGJT file/ ],
        'said.gguf' => [ 'Entry not found', qr/'Entry not found'.*again/ ],
    );

    my $t = LLM::Test->new(model => join(' ', map { "llm_model $_ %%DIR%%/$_;" }
                               sort keys %wrong)
                           . ' llm_model url https://hf.co/a/b.gguf;'
                           . ' llm_model hub hf.co/a/b:Q4_K_M;'
                           . ' llm_model folder %%DIR%%/hf;'
                           . ' llm_model files %%DIR%%/files;'
                           . ' llm_model cut %%DIR%%/cut.gguf;');

    $t->write_file($_, $wrong{$_}[0]) for keys %wrong;

    my $dir = $t->dir;

    mkdir "$dir/hf" or die $!;
    mkdir "$dir/files" or die $!;
    $t->write_file('hf/config.json', '{}');
    $t->write_file('files/b.gguf', '');
    $t->write_file('files/a.GGUF', '');
    system('cp', "$LLM::Test::ROOT/models/demo.gguf", "$dir/cut.gguf") == 0
        or die 'cp';

    my $all = -s "$dir/cut.gguf";
    my $cut = $all - 1000;

    truncate "$dir/cut.gguf", $cut or die $!;

    my ($status, $out) = $t->check;
    my $of = sub { qr/\[error\].*model "$_[0]" is not usable: \S*/ };

    is($status, 0, 'wrong files pass nginx -t') or diag($out);
    like($out, qr/@{[$of->(quotemeta)]}.*$wrong{$_}[1]/, "$_ is named")
        for sort keys %wrong;
    like($out, qr{@{[$of->('url')]}.*this is a URL.*curl -LO https://hf\.co/a/b\.gguf},
         'a URL');
    like($out, qr{@{[$of->('hub')]}.*this is a URL}, 'an address of a hub');
    like($out, qr{@{[$of->('folder')]}.*folder with a Hugging Face model.*not read; convert},
         'a folder of Hugging Face');
    like($out, qr{@{[$of->('files')]}.*a folder.*such as a\.GGUF},
         'a folder with files');
    like($out, qr{@{[$of->('cut')]}.*was cut: it has $cut bytes, .* need (\d+)},
         'a file that was cut');
    unlike($out, qr/README/, 'no message sends to the README');
}

# what loading would refuse of a vocabulary; what this machine does not have

{
    my $demo = "$LLM::Test::ROOT/models/demo.gguf";
    my $t = LLM::Test->new(model => 'llm_model eos %%DIR%%/eos.gguf;'
                           . " llm_model large $demo ctx=16m device=cpu;"
                           . " llm_model auto $demo ctx=16m;"
                           . " llm_model fits $demo ctx=1k;"
                           . " llm_model small $demo ctx=1k kv_cache=64k"
                           . ' device=cpu;'
                           . " llm_model enough $demo ctx=1k kv_cache=8m"
                           . ' device=cpu;'
                           . " llm_model gpu $demo device=cuda;");

    LLM::GGUF::make($demo, $t->dir . '/eos.gguf', kv => {
        'tokenizer.ggml.eos_token_id' => [ u32 => 1 << 30 ] });

    my ($status, $out) = $t->check;
    my $large = qr/KV cache for one sequence of ctx=16777216 takes \d+ MiB .*this machine has \d+ MiB/;

    is($status, 0, 'what the machine lacks passes nginx -t');
    like($out, qr/\[error\].*model "eos" is not usable: .*eos_token_id: 1073741824 is no token/,
         'an end that is no token is told');
    like($out, qr/\[warn\].*model "large": .*$large/, 'a ctx that is too long');
    unlike($out, qr/model "(?:fits|enough)"/, 'one that fits is not');
    like($out, qr/\[warn\].*model "small": .*ctx=1024 takes \d+ \w+, but kv_cache is 64 KiB/,
         'a kv_cache too small for its ctx');

    SKIP: {
        skip 'this machine has a GPU', 1 if $gpu;

        like($out, qr/\[warn\].*model "auto": .*$large/,
             'without a GPU device=auto is the CPU');
        skip 'there is no llm_cuda.so', 1
            if !-e "$LLM::Test::OBJS/llm_cuda.so";
        like($out, qr/\[warn\].*model "gpu": device=cuda: no GPU of NVIDIA/,
             'a GPU that is not there');
    }
}

# a GPU's backend that is not there; and a cache that this machine has memory
# for, but not beside all else

{
    my $here = "$LLM::Test::OBJS/ngx_http_llm_module.so";

    my $t = LLM::Test->new(model => 'llm_model gpu %%ROOT%%/models/demo.gguf'
                           . ' device=cuda;'
                           . ' llm_model cpu %%ROOT%%/models/demo.gguf'
                           . ' device=cpu;');
    my $dir = $t->dir;
    my $conf = $t->expand($t->conf) =~ s/\Q$here\E/$dir\/module.so/r;

    $t->write_file('nginx.conf', $conf);
    system('cp', $here, "$dir/module.so") == 0 or die 'cp';

    my ($status, $out) = $t->check;

    is($status, 0, 'a GPU without its backend passes nginx -t');
    like($out, qr{model "gpu" is not usable: there is no \Q$dir\E/llm_cuda\.so; "\./build\.sh build" makes it},
         'which says how to get it');
    unlike($out, qr/model "cpu" is not/, 'and nothing of the other model');

    $t->write_file('nginx.conf',
                   $conf =~ s/ device=cpu;/ device=cpu kv_cache=60000g;/r);
    ($status, $out) = $t->check;

    my ($all) = $out =~ /this machine has (\d+) MiB of memory/;

    $t->write_conf($conf =~ s/ device=cpu;/ device=cpu kv_cache=${all}m;/r);
    $t->start(cold => 1);

    my $why = qr/take \d+ MiB of memory, kv_cache is $all MiB, and \d+ MiB of/;

    ok(LLM::Test::wait_for(20, sub { $t->log =~ $why }),
       'a model that takes more memory than the machine has fails')
        or diag($t->log);
    $t->stop(name => 'more memory than there is');
}

# the same in an answer: what is missing, not where

{
    my $here = "$LLM::Test::OBJS/ngx_http_llm_module.so";
    my $t = LLM::Test->new(model => 'llm_model gpu %%ROOT%%/models/demo.gguf'
                           . ' device=cuda;');
    my $dir = $t->dir;
    my $res;

    system('cp', $here, "$dir/module.so") == 0 or die 'cp';
    $t->write_conf($t->expand($t->conf) =~ s/\Q$here\E/$dir\/module.so/r);
    $t->start(cold => 1);

    ok(LLM::Test::wait_for(20, sub {
        $res = $t->post('/v1/completions', { prompt => 'a' });
        $res->{status} == 503 && $res->{body} =~ /there is no llm_cuda\.so/;
    }), 'a request gets the reason') or diag($res->{body});
    unlike($res->{body} . $t->get('/health')->{body}, qr{\Q$dir\E},
           'without the folder');
    like($t->log, qr{there is no \Q$dir\E/llm_cuda\.so}, 'the log has it');
    $t->stop(name => 'a missing backend', allow => qr/not usable/);
}

# files that root can read and the workers' user cannot

SKIP: {
    my ($user, $group) = ('nobody', getgrgid((getpwnam 'nobody')[3] // -1));

    skip 'not root', 1 if $> != 0;
    skip 'no user "nobody"', 1 if !defined $group;

    my $t = LLM::Test->new(model => 'llm_model open %%DIR%%/open.gguf'
                           . ' template=t.jinja;'
                           . ' llm_model closed %%DIR%%/closed.gguf;'
                           . ' llm_model hidden %%DIR%%/in/x.gguf;'
                           . ' llm_model drafted %%DIR%%/open.gguf'
                           . ' speculate=draft=closed.gguf;',
                           location => 'llm_api_keys keys;',
                           http => 'llm_token_zone $arg_a zone=a:1m day=1'
                           . ' state=in/usage;',
                           server => 'location /admin {'
                           . ' llm_admin state=in/state models=in; }');
    my $dir = $t->dir;

    $t->write_file('nginx.conf',
                   $t->expand($t->conf) =~ s/user root;/user $user $group;/r);

    mkdir "$dir/in";
    $t->write_file('t.jinja', '');
    $t->write_file('keys', "# none\n");

    for my $name (qw(open.gguf closed.gguf in/x.gguf)) {
        system('cp', "$LLM::Test::ROOT/models/demo.gguf", "$dir/$name") == 0
            or die 'cp';
    }

    chmod 0644, "$dir/open.gguf";
    chmod 0640, "$dir/closed.gguf", "$dir/t.jinja", "$dir/keys";
    chmod 0700, "$dir/in";

    my ($status, $out) = $t->check;
    my $who = qr/nginx's workers run as user "$user", which cannot read/;

    is($status, 0, 'files hidden from the workers: nginx -t passes')
        or diag($out);
    like($out, qr{\[error\].*model "closed" is not usable: $who "$dir/closed\.gguf"$}m,
         'and names a file');
    like($out, qr{\[error\].*model "hidden" is not usable: $who "$dir/in/x\.gguf": it may not enter "$dir/in"$}m,
         'a folder on the way');
    like($out, qr{\[error\].*model "open" is not usable: $who "$dir/t\.jinja"$}m,
         'a template');
    like($out, qr{\[error\].*model "drafted" is not usable: $who "$dir/closed\.gguf"$}m,
         'a draft model');
    like($out, qr{\[warn\].*llm_api_keys "$dir/keys": $who "$dir/keys"$}m,
         'it warns of a file of keys');
    like($out, qr{\[warn\].*llm_admin "in": $who "$dir/in"}m,
         'of a folder of models');

    my $create = $who =~ s/read/create files in/r;

    like($out, qr{\[warn\].*llm_admin "$dir/in/state": $create "$dir/in"$}m,
         'of a folder that is to be written to');
    like($out, qr{\[warn\].*llm_token_zone "$dir/in/usage": $create "$dir/in"$}m,
         'by either directive');
    unlike($out, qr{cannot read "$dir/open\.gguf"},
           'and not of what can be read') or diag($out);

    # a model that must be there

    my $good = $t->expand($t->conf) =~ s/user root;/user $user $group;/r;

    for (['closed.gguf', 'closed\.gguf'], ['in/x.gguf', 'in/x\.gguf'],
         ['open.gguf template=t.jinja', 't\.jinja'])
    {
        my ($args, $what) = @$_;

        $t->write_file('nginx.conf', $good =~ s/\Q$args\E;/$args required;/r);
        ($status, $out) = $t->check;

        isnt($status, 0, "$args, which is required: nginx -t fails");
        like($out, qr{\[emerg\].*is required and not usable: $who "$dir/$what"},
             'and says why');
    }

    $t->write_file('nginx.conf', $good);

    # the master stays what it was

    my $groups = sub {
        open my $f, '<', "/proc/$_[0]/status" or die "/proc: $!";
        return join '', grep { /^(?:Uid|Gid|Groups|CapEff):/ } <$f>;
    };

    chmod 0644, "$dir/closed.gguf", "$dir/t.jinja", "$dir/keys";
    chmod 0777, "$dir/in";

    $t->start;
    unlike($t->log, qr/cannot (?:read|create)/,
           'nothing when all can be read, and written');
    $t->reload;
    is($groups->($t->{pid}), $groups->('self'),
       'the master has the identity that it had');

    # a served model that a reload would take away: the same path, and another

    my @workers;

    ok(LLM::Test::wait_for(20, sub { (@workers = $t->workers) == 1 }),
       'there is the new worker alone');

    my $why = qr/is not usable any more, .*continues with the loaded one: $who/;

    chmod 0600, "$dir/closed.gguf";
    $t->kill('HUP');
    ok($t->wait_log(qr{\[emerg\].*model "closed" $why "$dir/closed\.gguf"}),
       'a file that became closed: the reload fails');
    ok(LLM::Test::wait_for(20, sub {
        $groups->($t->{pid}) eq $groups->('self')
    }), 'with the same identity');

    chmod 0644, "$dir/closed.gguf";
    system('cp', "$dir/closed.gguf", "$dir/new.gguf") == 0 or die 'cp';
    chmod 0600, "$dir/new.gguf";
    $t->write_file('nginx.conf', $good =~ s{/closed\.gguf}{/new.gguf}r);
    $t->kill('HUP');
    ok($t->wait_log(qr{\[emerg\].*model "closed" $why "$dir/new\.gguf"}),
       'another file, which is closed: so does this one');

    chmod 0600, "$dir/t.jinja";
    $t->write_file('nginx.conf', $good);
    $t->kill('HUP');
    ok($t->wait_log(qr{\[emerg\].*model "open" $why "$dir/t\.jinja"}),
       'a template that became closed: so does this one');

    is_deeply([ $t->workers ], \@workers, 'the workers of before go on');
    ok(LLM::Test::wait_for(20, sub {
        $t->get('/health')->{json}{status} eq 'ok';
    }), 'and serve');

    chmod 0644, "$dir/t.jinja";
    $t->reload;
    ok($t->wait_ready, 'a reload with open files succeeds');
    $t->stop(name => 'another user', allow => qr/not usable any more/);
}

# FIFOs, which nobody writes to, and other things that are no files

{
    my $t = LLM::Test->new(model => 'llm_model pipe %%DIR%%/pipe;'
                           . ' llm_model folder %%DIR%%;');

    mkfifo($t->dir . '/pipe', 0600) or die "FIFO: $!";

    my ($status, $out) = $t->check;

    is($status, 0, 'no files as models pass nginx -t');
    like($out, qr{model "pipe" is not usable: .*/pipe: .*not a regular file},
         'a FIFO as model');
    like($out, qr{model "folder" is not usable: .*not a regular file},
         'a folder as model');

    $t = LLM::Test->new(model => 'llm_model m /x template=%%DIR%%/pipe;');
    mkfifo($t->dir . '/pipe', 0600) or die "FIFO: $!";

    ($status, $out) = $t->check;

    ok($status != 0 && $out =~ m{/pipe: a FIFO, not a regular file},
       'a FIFO as template') or diag($out);
}

# a relative path starts at the configuration's folder

{
    my $t = LLM::Test->new(model => 'llm_model m models/m.gguf;');

    like(($t->check)[1], qr{\Q$t->{dir}\E/models/m\.gguf}, 'relative path');
}

done_testing();
