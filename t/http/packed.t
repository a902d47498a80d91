#!/usr/bin/perl

# packed=DIR of llm_model: the file that a start writes, starts and reloads that
# map it, the same answers.

use strict;
use warnings;

use LLM::Test;
use Test::More;

my $DEMO = 'llm_model demo %%ROOT%%/models/demo.gguf threads=2 parallel=2';

my $t = LLM::Test->new(model => "$DEMO packed=%%DIR%%/packed/;")->start;
my $dir = $t->dir . '/packed';

sub kept { return grep { !/\.new$/ } glob "$dir/*" }

sub answer { return $t->chat('hello', max_tokens => 8, temperature => 0)->{body}
                    =~ /"content":"(.*?)"[,}]/ ? $1 : '' }

# does a process of this nginx map the file?

sub mapped {
    my ($file) = @_;
    my $n = 0;

    for my $pid ($t->workers) {
        open my $maps, '<', "/proc/$pid/maps" or next;
        $n += grep { index($_, " $file\n") >= 0 } <$maps>;
    }

    return $n;
}


# ---- the first start packs ----

ok($t->wait_log(qr/packed weights are kept in \Q$dir\E/), 'a file is written');

my @files = kept();
is(scalar @files, 1, 'one file');
like($files[0], qr{/demo\.gguf-[0-9a-f]{16}\.packed$}, 'with the model\'s name');
is((stat $files[0])[2] & 07777, 0600, 'for its user alone');
is(mapped($files[0]), 0, 'this engine has packed by itself');

my $want = answer();
isnt($want, '', 'it answers');


# ---- a reload maps it ----

$t->reload;
ok($t->wait_ready, 'a reload');
ok($t->wait_for(sub { mapped($files[0]) == 1 }), 'maps the file');
is(answer(), $want, 'and gives the same answer');


# ---- so does a start; a truncated file is replaced ----

sub restart {
    my ($what) = @_;

    $t->stop;
    unlink $t->dir . '/logs/error.log';
    $t->start;
    is(answer(), $want, "$what: the same answer");
}

restart('a start');
is(mapped($files[0]), 1, 'the file is mapped');
unlike($t->log('error.log'), qr/packed weights are kept/, 'and not written');

truncate $files[0], (-s $files[0]) - 1 or die;
restart('a truncated file');
is(mapped($files[0]), 0, 'is not used');
ok($t->wait_log(qr/packed weights are kept in \Q$dir\E/), 'but written again');
is(scalar(kept()), 1, 'under its name');

# while it is in use: the requests of that step fail, the model loads again

restart('before the next one');
truncate $files[0], 8192 or die;
my $res = $t->chat('hello', max_tokens => 8);
is($res->{status}, 503, 'a file that is truncated in use fails a request');
like($res->{body}, qr/\.packed: a page could not be read/, 'with the reason');
unlike($res->{body}, qr/\Q$dir\E/, 'without the folder');
ok($t->wait_for(sub { $t->chat('hello')->{status} == 200 }), 'then it serves');
is(answer(), $want, 'the same answer');
$t->stop;


# ---- a folder that cannot be written; off; values ----

SKIP: {
    skip 'root may write everywhere', 1 if $> == 0;

    $t = LLM::Test->new(model => "$DEMO packed=%%DIR%%/closed;");
    mkdir $t->dir . '/closed', 0500;
    $t->start;
    ok($t->wait_log(qr/\[warn\].*packed weights are not kept/), 'a warning');
    $t->stop;
}

$t = LLM::Test->new(model => "$DEMO packed=off;")->start;
is(answer(), $want, 'off: the same answer');
unlike($t->log('error.log'), qr/packed/, 'nothing is written');
$t->stop;

for ([ 'packed=', qr/empty "packed=" of model "demo"/ ],
     [ 'packed=nginx.conf',
       qr/"packed=nginx.conf" of model "demo" is not a folder/ ],
     [ 'packed=off packed=off', qr/duplicate parameter "packed=off"/ ])
{
    my (undef, $said) = LLM::Test->new(model => "$DEMO $_->[0];")->check;
    like($said, $_->[1], $_->[0]);
}

done_testing();
