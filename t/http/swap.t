#!/usr/bin/perl

# A model file replaced on disk is served after a reload, while streams that
# run end with the old weights; a reload with a broken file says why, in the
# log with the file's name, and in the answers; a good one mends it.

use strict;
use warnings;

use File::Copy qw(copy);
use LLM::Test;
use Test::More;


# replaced as one should: a new file renamed over the old one

sub put {
    my ($t, $text) = @_;

    $t->write_file('new.gguf', $text);
    rename $t->dir . '/new.gguf', $t->dir . '/model.gguf' or die $!;
}


sub slurp {
    my ($name) = @_;

    open my $f, '<', $name or die "$name: $!";
    binmode $f;
    local $/;
    return scalar <$f>;
}


my $model = slurp("$LLM::Test::ROOT/models/demo.gguf");

# other weights: all but the embedding and a layer or two are zero

my $other = $model;
my $half = int(length($model) / 2);

substr($other, -$half) = "\0" x $half;

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
is(LLM::Client::text_of($stream->events), $whole,
   'a running stream ended with the old weights');

# ---- broken

put($t, substr $model, 0, 200_000);
$t->reload;

ok(LLM::Test::wait_for(10, sub {
    my $res = $t->post('/v1/completions', \%ask);

    $res->{status} == 200 || ($res->{status} == 503
        && $res->{json}{error}{message} =~ /model\.gguf/);
}), 'a broken file: an answer, or 503 with the reason');

ok($t->wait_log(qr{/model\.gguf: }), 'the log names the file');

put($t, $model);
$t->reload;
ok($t->wait_ready, 'a good file mends it');
ok(LLM::Test::wait_for(10, sub { (answer() // '') eq $old }),
   'with the text of the first');

$t->stop;

done_testing();
