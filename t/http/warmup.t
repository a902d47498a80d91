#!/usr/bin/perl

# warmup and warmup=FILE of llm_model: what runs before a model is ready, and
# that it is in no figure.

use strict;
use warnings;

use LLM::JSON;
use LLM::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my $DEMO = 'llm_model demo %%ROOT%%/models/demo.gguf threads=2 parallel=4';

my $system = join ' ', map { "Rule $_ of the house is rule $_." } 1 .. 40;

sub chat_body {
    return { messages => [ { role => 'system', content => $system },
                           { role => 'user', content => $_[0] } ],
             max_tokens => 2 };
}

my $t;

# what is computed is counted in the metrics, a warm-up's is not

sub is_fresh {
    my ($name) = @_;
    my $f = $t->figures;

    is($f->{$_}, 0, "$name: no $_")
        for qw(prompt_tokens generation_tokens running waiting errors);
    is($f->{ttft}{count} // 0, 0, "$name: no time to the first token");
}


# ---- without a file ----

$t = LLM::Test->new(model => "$DEMO warmup;")->start;

like($t->log('error.log'), qr/model "demo" has warmed up in \d+\.\d s/,
     'a model warms up');
is_fresh('warmed up');
is($t->chat('hello', max_tokens => 3)->{json}{usage}{completion_tokens}, 3,
   'and serves');
is($t->figures->{generation_tokens}, 3, 'which counts');

$t->reload;
ok($t->wait_ready, 'after a reload, too');
is($t->chat('hello')->{status}, 200, 'it serves');
$t->stop;


# ---- with a file ----

sub with_file {
    my ($text, %opt) = @_;

    $t = LLM::Test->new(model => "$DEMO warmup=%%DIR%%/warm.jsonl "
                        . ($opt{model} // '') . ';',
        location => 'llm_tenant $http_x_tenant;', %{ $opt{server} // {} });
    $t->write_file('warm.jsonl', $text);
}

my $line = encode_json({ %{ chat_body('Hello?') }, tenant => 'ann',
                         stream => \1, n => 3 });
my $ids = encode_json({ prompt => [ (100 .. 400) ], tenant => 'bob' });

with_file("# prompts\n\n$line\n$ids\n");
$t->start;

is_fresh('prompts of a file');

sub cached {
    my ($tenant, $path, $body) = @_;

    my $res = $t->post($path, $body, headers => { 'X-Tenant' => $tenant });

    is($res->{status}, 200, "$tenant: served") or diag($res->{body});
    return $res->{json}{usage}{prompt_tokens_details}{cached_tokens};
}

cmp_ok(cached('ann', '/v1/chat/completions', chat_body('Another question')),
       '>', 200, 'the first request of the tenant finds the system prompt');
is(cached('cid', '/v1/chat/completions', chat_body('Another question')), 0,
   'one of another tenant does not');
cmp_ok(cached('bob', '/v1/completions', { prompt => [ (100 .. 400) ],
                                          max_tokens => 1 }), '>', 200,
       'ids are prompts, too');
$t->stop;

# without a newline at the end; one that is too long for the model

with_file(encode_json({ prompt => [ (7) x 3000 ], tenant => 'x' }) . "\n$line",
          model => 'ctx=1024');
$t->start;

like($t->log('error.log'),
     qr/\[warn\].*a request of the warm-up failed: .*1024/,
     'one that cannot be run is named in the log');
cmp_ok(cached('ann', '/v1/chat/completions', chat_body('Another question')),
       '>', 200, 'the others are run');
$t->stop;


# ---- who comes meanwhile waits ----

# a prompt that takes a while, on a model that is slow

$t = LLM::Test->new(model => 'llm_model demo '
    . LLM::Test::random_model(2, 40960) . ' threads=1'
    . ' warmup=%%DIR%%/warm.jsonl default; llm_queue 64 timeout='
    . 60 * $LLM::Test::SLOW . 's;');
$t->write_file('warm.jsonl', join '', map {
    encode_json({ prompt => [ map { $_ % 900 + 50 } $_ .. $_ + 6000 ],
                  tenant => 'x' }) . "\n" } 1 .. 6);
$t->start(cold => 1);

my $seen = LLM::Test::wait_for(60, sub {
    my $res = $t->get('/health');
    return ($res->{json}{models}[0]{reason} // '') eq 'the model warms up'
           || $res->{status} == 200;
});

my $early = $t->post('/v1/completions', { prompt => 'a', max_tokens => 1,
                                          ignore_eos => \1 });
is($early->{status}, 200, 'a request before the model is ready is served');
ok($t->wait_ready, 'it is ready');
like($t->log('error.log'), qr/has warmed up.*is ready/s,
     'when it has warmed up');
is($t->figures->{generation_tokens}, 1, 'one request counts');

# and an end in the middle of a warm-up

$t->stop;
$t = LLM::Test->new(conf => $t->{opt}{conf}, %{ $t->{opt} });
$t->write_file('warm.jsonl', join '', map {
    encode_json({ prompt => [ map { $_ % 900 + 50 } $_ .. $_ + 20000 ],
                  tenant => 'x' }) . "\n" } 1 .. 50);
$t->start(cold => 1);
ok(LLM::Test::wait_for(60, sub {
    ($t->get('/health')->{json}{models}[0]{reason} // '')
        eq 'the model warms up'
}), 'a long warm-up is told of');
$t->stop(signal => 'TERM');


# ---- graphs of a device are made meanwhile ----

SKIP: {
    skip 'there is no llm_emu.so in this build', 6
        unless -e "$LLM::Test::OBJS/llm_emu.so";

    # the first graph finds no memory, which the log says once

    for my $warmup ('warmup', '') {
        $t = LLM::Test->new(main => 'env LLM_EMU_FAIL_GRAPH;',
            model => 'llm_model demo ' . LLM::Test::random_model(1, 160)
                   . " device=emu parallel=2 ctx=160 $warmup default;");

        local $ENV{LLM_EMU_FAIL_GRAPH} = 1;
        $t->start;

        my $made = $t->log('error.log') =~ /graph of a step: out of memory/;

        is(!!$made, $warmup ne '', "a graph is made before a model with"
           . " \"$warmup\" is ready");
        is($t->post('/v1/completions', { prompt => 'a', max_tokens => 2 })
             ->{status}, 200, 'it serves');
        $t->stop;
    }
}


# ---- what nginx -t says ----

for (
    [ "{\n", qr/"[^"]*warm\.jsonl": line 1: it is no JSON: .* in .*:\d+/ ],
    [ "\n# x\n[]\n", qr/line 3: it is not an object/ ],
    [ '{"prompt":"a"}', qr/line 1: it names no "tenant"/ ],
    [ '{"prompt":"a","tenant":""}', qr/line 1: it names no "tenant"/ ],
    [ '{"tenant":"a"}', qr/line 1: / ],
    [ '{"messages":"a","tenant":"a"}', qr/line 1: / ],
    [ '{"prompt":"a","tenant":"a","temperature":"hot"}', qr/line 1: .*temperature/ ],
) {
    my ($text, $want) = @$_;

    with_file($text);
    my ($rc, $out) = $t->check;
    isnt($rc, 0, "refused: $text");
    like($out, $want, 'with the line');
}

my ($rc, $out) = LLM::Test->new(model => "$DEMO warmup=none.jsonl;")->check;
isnt($rc, 0, 'a file that is not there');
like($out, qr/the warm-up of model "demo" cannot be used: .*none\.jsonl/,
     'is named');

($rc, $out) = LLM::Test->new(model => "$DEMO warmup=;")->check;
like($out, qr/empty "warmup=" of model "demo"/, 'no name at all');


done_testing();
