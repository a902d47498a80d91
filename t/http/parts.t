#!/usr/bin/perl

# A model in several files is served as if it were one: the same text, the
# same size; a part that is missing or broken is named, at start, at a reload
# and while it is served.

use strict;
use warnings;

use LLM::GGUF;
use LLM::Test;
use Test::More;

my $file = "$LLM::Test::ROOT/models/demo.gguf";
my $t = LLM::Test->new(model =>
    "llm_model whole $file threads=1 default;\n"
    . 'llm_model parts %%DIR%%/demo-00001-of-00003.gguf threads=1;');
my @parts = LLM::GGUF::split($file, $t->dir . '/demo', 3);
my %ask = (prompt => 'The sky is', temperature => 0, max_tokens => 8);

$t->start;


sub text {
    my ($model) = @_;

    return $t->post('/v1/completions', { %ask, model => $model })
               ->{json}{choices}[0]{text};
}


my $text = text('whole');

is(text('parts'), $text, 'three files give the text of one');

my %size = map { $_->{id} => $_->{meta}{size} }
           @{ $t->get('/v1/models')->{json}{data} };

ok($size{parts} && $size{parts} == $size{whole}, 'their size is that of all');


# a part that is missing: a reload fails, and what is loaded goes on

my @workers = $t->workers;

rename $parts[1], "$parts[1].away" or die $!;

my ($status, $said) = $t->check;

like($said, qr/model\ "parts"\ is\ not\ usable:\ \S*-00002-of-00003\.gguf:\ 
               No\ such\ file/x, 'nginx -t names a missing part');

$t->kill('HUP');
ok($t->wait_log(qr/\[emerg\].*"parts" is not usable any more.*-00002-of-/),
   'a reload without it fails');
is_deeply([ $t->workers ], \@workers, 'the workers of before go on');
is(text('parts'), $text, 'with the model of before');


# a part of another model

my @other = LLM::GGUF::split($file, $t->dir . '/other', 4);

rename $other[1], $parts[1] or die $!;
($status, $said) = $t->check;
like($said, qr/-00002-of-00003\.gguf: split\.no: it is part 2 of 4/,
     'nginx -t names a part of another model');

rename "$parts[1].away", $parts[1] or die $!;
$t->reload;
ok($t->wait_ready, 'all parts are there again: a reload succeeds');

# the worker of before may have answered so far

ok(LLM::Test::wait_for(60, sub {
    !(grep { kill 0, $_ } @workers)
    && 2 == (() = $t->log =~ /model "parts" is ready/g);
}), 'they are loaded again');
is(text('parts'), $text, 'and the model answers');


# a part that is cut off while it is served

truncate $parts[2], 65536 or die $!;

my $res = $t->post('/v1/completions', { %ask, model => 'parts' });

is($res->{status}, 503, 'a part is truncated: the step fails');
ok($t->wait_log(qr/a step failed: \S*-00003-of-00003\.gguf: a page could not/),
   'the log names the part');
ok(LLM::Test::wait_for(20, sub {
    $t->get('/health')->{body} =~ /demo-00003-of-00003\.gguf/;
}), 'so does health');
is(text('whole'), $text, 'the other model answers');

$t->stop(name => 'parts', allow => qr/-0000\d-of-00003/);


# one that names another part than the first

$t = LLM::Test->new(model =>
    "llm_model whole $file threads=1 default;\n"
    . 'llm_model parts %%DIR%%/demo-00002-of-00003.gguf threads=1;');
LLM::GGUF::split($file, $t->dir . '/demo', 3);
$t->start;

ok($t->wait_log(qr/"parts" is not usable.*named by its first part, \S*-00001/),
   'the second part is no model');
is(text('whole'), $text, 'what can be served is');
$t->stop(name => 'the second part', allow => qr/first part/);

done_testing();
