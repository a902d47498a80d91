#!/usr/bin/perl

# A model file replaced on disk is served after a reload, while streams that
# run end with the old weights; a reload with a broken file fails and says why,
# and what is loaded goes on; a good one mends it.

use strict;
use warnings;

use File::Copy qw(copy);
use LLM::Made qw(other_weights);
use LLM::Test qw(slurp);
use Test::More;


# replaced as one should: a new file renamed over the old one

sub put {
    my ($t, $text) = @_;

    $t->write_file('new.gguf', $text);
    rename $t->dir . '/new.gguf', $t->dir . '/model.gguf' or die $!;
}


my $model = slurp("models/demo.gguf");

# other weights: all but the embedding and a layer or two are zero

my $other = other_weights($model);

my $t = LLM::Test->new(
    model => 'llm_model demo %%DIR%%/model.gguf threads=2 parallel=8'
           . ' ctx=2048 default;');

my %ask = (prompt => 'The sky is', max_tokens => 30, temperature => 0,
           ignore_eos => \1);


# the text, or nothing while there is none

sub answer {
    my $res = $t->post('/v1/completions', \%ask);

    return $res->{status} == 200 ? $res->{json}{choices}[0]{text} : undef;
}


put($t, $model);
$t->start;

my $old = answer();
my $whole = LLM::Client::text_of(
    $t->open_long(max_tokens => 1200, temperature => 0)->events);

my $stream = $t->open_long(max_tokens => 1200, temperature => 0);

$stream->event;
put($t, $other);
$t->reload;
ok($t->wait_ready, 'ready with the new file');

# the old worker may take connections for a moment yet

ok(LLM::Test::wait_for(10, sub { (answer() // $old) ne $old }),
   'a new file is served after a reload');
$stream->events;
is($stream->{text}, $whole,
   'a running stream ended with the old weights');

# ---- broken: found out when the configuration is read

my $allow = qr/not usable any more/;

for my $case ([ 'no GGUF file', 'not a model at all' x 1000 ],
              [ 'half a header', substr $model, 0, 40 ],
              [ 'half a file', substr $model, 0, 200_000 ],
              [ 'no file', undef ])
{
    my ($name, $text) = @$case;

    put($t, $model);
    $t->reload;
    ok($t->wait_ready, "$name: a good file is there first");
    ok(LLM::Test::wait_for(20, sub { $t->workers == 1 }),
       "$name: no old worker takes connections any more");
    is(answer(), $old, "$name: and it is served");

    my $running = $t->open_long(max_tokens => 1200, temperature => 0);
    my $seen = length $t->log('error.log');

    $running->event;

    if (defined $text) {
        put($t, $text);
    } else {
        unlink $t->dir . '/model.gguf' or die $!;
    }

    my @workers = $t->workers;

    $t->kill('HUP');

    ok(LLM::Test::wait_for(20, sub {
        substr($t->log('error.log'), $seen)
            =~ m{\[emerg\].*not usable any more.*/model\.gguf: \S};
    }), "$name: the reload fails, the log names the file");

    is(answer(), $old, "$name: what was loaded is served on");
    is_deeply([ $t->workers ], \@workers, "$name: by the same worker");

    $running->events;
    is($running->{text}, $whole,
       "$name: a running stream ends with the old weights");
}

put($t, $model);
$t->reload;
ok($t->wait_ready, 'a good file mends it');
ok(LLM::Test::wait_for(10, sub { (answer() // '') eq $old }),
   'with the text of the first');

$t->stop(allow => $allow);

done_testing();
