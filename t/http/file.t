#!/usr/bin/perl

# A model file that changes under nginx: what can no longer be read of a
# mapped file is an error with a message and a model that is not served, for
# neither a worker nor the master a signal without a word; a file that is
# whole again is served again.

use strict;
use warnings;

use File::Copy qw(copy);
use LLM::Test;
use Test::More;

# weights in a type that is read where the file is mapped, tokens by tokens

my $file = "$LLM::Test::ROOT/models/demo.gguf";
my $t = LLM::Test->new(workers => 2,
    model => 'llm_model demo %%DIR%%/model.gguf threads=1;');
my $copy = $t->dir . '/model.gguf';
my %ask = (prompt => 'The sky is', temperature => 0, max_tokens => 8);

copy($file, $copy) or die "$copy: $!";

$t->start;

my $text = $t->post('/v1/completions', \%ask)->{json}{choices}[0]{text};
my @workers = $t->workers;


# under the engine

truncate $copy, 65536 or die "$copy: $!";

my $res = $t->post('/v1/completions', \%ask);
my $why = qr/model\.gguf: a page could not be read \(the file was truncated/;

is($res->{status}, 503, 'a truncated file: the step fails') or diag($t->log);
ok($t->wait_log(qr/a step failed: \S*$why/), 'the log says why');
ok(LLM::Test::wait_for(20, sub {
    my $h = $t->get('/health');
    $h->{status} == 503 && $h->{body} =~ /model\.gguf/;
}), 'health says it');

$res = $t->post('/v1/completions', \%ask);

is($res->{status}, 503, 'a request later: 503');
is_deeply([ $t->workers ], \@workers, 'no worker has died');


# a reload with a file that has never been served: it is one that failed

$t->kill('HUP');
ok($t->wait_log(qr/not usable.*model\.gguf/), 'a reload reads the file');
ok(!$t->ended && $t->get('/health')->{status} == 503, 'the master lives');

$t->stop(name => 'a file that was truncated', allow => qr/model\.gguf/);


# put in the place of a file that is served: its weights are loaded

$t = LLM::Test->new(workers => 2,
    model => 'llm_model demo %%DIR%%/model.gguf threads=1;');
$copy = $t->dir . '/model.gguf';
copy($file, $copy) or die "$copy: $!";
$t->start;
@workers = $t->workers;

$t->write_file('broken', "GGUF\3\0\0\0" . "\xff" x 64);
rename $t->dir . '/broken', $copy or die "$copy: $!";

my ($status, $said) = $t->check;

like($said, qr/model "demo" is not usable: \S*model\.gguf/, 'nginx -t names it');

$t->kill('HUP');

ok($t->wait_log(qr/\[emerg\].*model "demo" is not usable any more.*gguf/),
   'a reload with a broken file fails');
sleep 1;
is_deeply([ $t->workers ], \@workers, 'the workers of before go on');
is($t->get('/health')->{json}{status}, 'ok', 'health: ok');
is($t->post('/v1/completions', \%ask)->{json}{choices}[0]{text}, $text,
   'the model of before answers');

unlink $copy;
symlink $file, $copy or die "$copy: $!";
$t->reload;
ok($t->wait_ready, 'a good file: the reload succeeds');
is($t->post('/v1/completions', \%ask)->{json}{choices}[0]{text}, $text,
   'and is served');
$t->stop(name => 'a broken file', allow => qr/not usable any more/);

done_testing();
