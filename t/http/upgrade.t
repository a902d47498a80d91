#!/usr/bin/perl

# A binary upgrade (USR2, then QUIT to the old master): two engines side by
# side for a while, every stream ends whole, new requests are served by the
# new one.  A model for which the old engine leaves no memory waits until that
# has ended, as after a reload.

use strict;
use warnings;

use LLM::Test;
use Test::More;


my $emu = -e "$LLM::Test::OBJS/llm_emu.so";
my $model = LLM::Test::default_model();

my $t = LLM::Test->new(workers => 2,
    model => $model . ($emu ? ' llm_model crowded %%ROOT%%/models/demo.gguf'
                              . ' ctx=256 parallel=1 device=emu;' : ''));
my $old = $t->start_daemon;

ok($old, 'nginx starts as a daemon, and has a pid');
ok($t->wait_ready, 'it serves');

my %long = (max_tokens => 1500, temperature => 0);
my $text = LLM::Client::text_of($t->open_long(%long)->events);
my @streams = map { $t->open_long(%long) } 1 .. 4;

$_->event for @streams;

# the new binary finds a GPU with too little memory for the model

if ($emu) {
    (my $small = $t->conf) =~ s/^/env LLM_EMU_MEMORY=6000000;\n/;
    $t->write_conf($small);
}

kill 'USR2', $old;

my $new;

ok(LLM::Test::wait_for(20, sub {
    $new = $t->master;
    $new && $new != $old;
}), 'there is a new master') or diag($t->log);

ok(LLM::Test::wait_for(20, sub {
    (() = $t->log =~ /model "demo" is ready/g) >= 2;
}), 'a second engine is ready');

my $waits = qr/model "crowded" waits for the engine of an older/;
my $fails = qr/\[err.*model "crowded": .*memory/;

SKIP: {
    skip 'no emulator in this build', 2 if !$emu;

    ok(LLM::Test::wait_for(20, sub { $t->log =~ $waits }),
       'a model waits for the old engine') or diag($t->log);
    unlike($t->log, $fails, 'and has not failed');
}

kill 'QUIT', $old;

for my $stream (@streams) {
    my @events = $stream->events;

    is($events[-1]{data}, '[DONE]', 'a stream ends whole');
    is($stream->{text}, $text, 'with its text');
}

ok(LLM::Test::wait_for(20, sub { !kill 0, $old }),
   'the old master has ended');

SKIP: {
    skip 'no emulator in this build', 1 if !$emu;

    ok(LLM::Test::wait_for(20, sub { $t->log =~ $fails }),
       'then it is loaded, and there is still too little memory')
        or diag($t->log);
}

my $res = $t->post('/v1/completions', { prompt => 'a', max_tokens => 1 });

is($res->{status}, 200, 'the new one serves');

kill 'QUIT', $new;

ok(LLM::Test::wait_for(20, sub { !kill 0, $new }), 'and ends, too');
is($t->alerts, '', 'nothing grave in the error log');

# whatever happened, nothing is left running

kill 'KILL', grep { $_ && kill 0, $_ } $old, $new;

done_testing();
