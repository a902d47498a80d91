#!/usr/bin/perl

# Any number of workers, or no master at all: one engine, the same texts;
# workers that die.

use strict;
use warnings;

use LLM::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my %ask = (prompt => 'one two', temperature => 0, max_tokens => 30,
           ignore_eos => \1);
my $text;

for my $case ([ 'one worker', workers => 1 ], [ 'four workers', workers => 4 ],
              [ 'auto', workers => 'auto' ],
              [ 'no master', main => 'master_process off;' ],
              [ 'worker_processes after http', workers => 1,
                tail => 'worker_processes 3;' ])
{
    my ($name, %opt) = @$case;
    my $tail = delete $opt{tail};
    my $t = LLM::Test->new(%opt);

    if ($tail) {
        my $conf = $t->conf;
        $conf =~ s/^worker_processes.*\n//m;
        $t->write_conf("$conf\n$tail\n");
    }

    $t->start;

    my @open = map { $t->open('/v1/completions', { %ask, stream => \1 }) }
               1 .. 12;
    my %texts = map { LLM::Client::text_of($_->events) => 1 } @open;

    is(scalar keys %texts, 1, "$name: one text from all");
    $text //= (keys %texts)[0];
    is((keys %texts)[0], $text, "$name: the text");

    if ($name eq 'no master') {
        my $s = $t->open_long(max_tokens => 1900);

        $s->event;
        $t->kill('HUP');
        ok($t->wait_log(qr/cannot be reloaded without a master/),
           "$name: a reload is refused");
        is(($s->events)[-1]{data}, '[DONE]',
           "$name: the running stream does not notice");
        is($t->post('/v1/completions', \%ask)->{json}{choices}[0]{text},
           $text, "$name: it serves on");
    }

    $t->stop(name => $name);
}


# a client worker is killed: its requests are reaped, nobody else notices

{
    my $t = LLM::Test->new(workers => 3, model =>
        'llm_model demo %%ROOT%%/models/demo.gguf threads=1 parallel=4;');

    $t->start;

    my @workers = $t->workers;
    my $log = 'exited on signal 9';

    # worker 0 runs the engine: it is the one with most threads
    my %threads = map {
        my @tasks = glob "/proc/$_/task/*";
        $_ => scalar @tasks
    } @workers;
    my ($engine) = sort { $threads{$b} <=> $threads{$a} } @workers;
    my ($client) = grep { $_ != $engine } @workers;

    my @streams = map { $t->open_long(max_tokens => 1900) } 1 .. 4;

    $_->event for @streams;
    $t->kill('KILL', $client);

    my $res = $t->post('/v1/completions', { prompt => 'b', max_tokens => 1 });

    is($res->{status}, 200, 'a killed client worker: the others serve');

    my @ends = map { my @e = $_->events; $e[-1] } @streams;

    is(scalar(grep { !defined $_ || ($_->{data} // '') eq '[DONE]'
                     || !$_->{json}{error} } @ends), 4,
       'its own are cut, the others are whole');

    my $begin = time;

    ok(LLM::Test::wait_for(5, sub {
        my $s = $t->open('/v1/completions',
                         { prompt => 'b', max_tokens => 1, stream => \1 });
        $s->event && $s->event;
    }), 'its places are free');

    cmp_ok(time - $begin, '<', 1.5 * $LLM::Test::SLOW, 'within a second');


    # the engine's worker is killed

    ok(LLM::Test::wait_for(5, sub { $t->workers == 3 }),
       'the worker is there again');

    @streams = map { $t->open_long(max_tokens => 1900) } 1 .. 8;
    $_->event for @streams;
    $begin = time;
    $t->kill('KILL', $engine);

    @ends = map { my @e = $_->events; [ $_, $e[-1] ] } @streams;
    cmp_ok(time - $begin, '<', 2 * $LLM::Test::SLOW,
           'a killed engine: no stream hangs');
    is(scalar(grep { $_->[0]{truncated}
                     || ($_->[1]{data} // '') eq '[DONE]'
                     || $_->[1]{json}{error} } @ends), 8,
       'each is cut, or ends with an error event')
        or diag(explain([ map { $_->[1] } @ends ]));

    ok($t->wait_ready, 'it serves again');
    is($t->post('/v1/completions', \%ask)->{json}{choices}[0]{text}, $text,
       'the same text');

    $t->stop(allow => $log, name => 'killed workers');
}

done_testing();
