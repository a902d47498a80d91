#!/usr/bin/perl

# Any number of workers, in the foreground or as a daemon, or no master at
# all: one engine, the same texts, the same number of steps for them.  For
# workers that die see crash.t.

use strict;
use warnings;

use LLM::Test;
use Test::More;

my %ask = (prompt => 'one two', temperature => 0, max_tokens => 300,
           ignore_eos => \1);
my $text;

for my $case ([ 'one worker', workers => 1 ], [ 'four workers', workers => 4 ],
              [ 'auto', workers => 'auto' ],
              [ 'no master', main => 'master_process off;' ],
              [ 'a daemon', daemon => 1, workers => 1 ],
              [ 'a daemon, auto', daemon => 1, workers => 'auto' ],
              [ 'a daemon without master', daemon => 1,
                main => 'master_process off;' ],
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

    # whoever accepts them, streams are computed together: 12 of them have 8
    # places, so that takes two rounds of 300 steps, more when some come late

    cmp_ok($t->figures->{steps}, '<', 12 * 300 / 2,
           "$name: one batch for all workers");

    if ($name =~ /\b(?:no|without) master/) {
        my $s = $t->open_long(max_tokens => 1900);

        $s->event;
        $t->kill('HUP');
        ok($t->wait_log(qr/cannot be reloaded without a master/),
           "$name: a reload is refused");
        is(($s->events)[-1]{data}, '[DONE]',
           "$name: the running stream does not notice");
        is($t->post('/v1/completions', \%ask)->{json}{choices}[0]{text},
           $text, "$name: it serves on");

        # without a master nginx does not drain

        $s = $t->open_long(max_tokens => 3500);
        $s->event;
        $t->stop(name => $name, signal => 'QUIT');
        ok((($s->events)[-1]{data} // '') =~ /^(?:\{"error"|\[DONE\])/,
           "$name: a last word when it ends");
        next;
    }

    $t->stop(name => $name);
}

done_testing();
