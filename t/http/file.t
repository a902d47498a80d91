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
    model => 'llm_model demo %%DIR%%/model.gguf threads=2;');
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
like($res->{json}{error}{message}, $why, 'the answer says why');
unlike($res->{body}, qr{\Q@{[$t->dir]}\E}, 'and not where the file is');
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


# a disk that fails under the master, which reads the file at a reload

SKIP: {
    skip 'the sanitizer is preloaded already', 8 if $ENV{LLM_SAN};

    $t = LLM::Test->new(workers => 2,
        model => 'llm_model demo %%DIR%%/model.gguf threads=1;');
    $copy = $t->dir . '/model.gguf';
    copy($file, $copy) or die "$copy: $!";

    my $lib = $t->preload('broken_disk', <<'END');
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *flag;

static void __attribute__((constructor))
init(void)
{
    flag = getenv("BROKEN_DISK");

    if (flag) {
        flag = strdup(flag);        /* nginx writes its title there */
    }
}

static ssize_t
broken_pread(const char *name, int fd, void *buf, size_t n, off_t at)
{
    char       link[64], path[4096];
    ssize_t    len;
    ssize_t  (*real)(int, void *, size_t, off_t);

    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    len = readlink(link, path, sizeof(path));

    if (flag && access(flag, F_OK) == 0 && len > 5
        && memcmp(path + len - 5, ".gguf", 5) == 0)
    {
        errno = EIO;
        return -1;
    }

    real = (ssize_t (*)(int, void *, size_t, off_t)) dlsym(RTLD_NEXT, name);

    return real(fd, buf, n, at);
}

ssize_t
pread(int fd, void *buf, size_t n, off_t at)
{
    return broken_pread("pread", fd, buf, n, at);
}

ssize_t
pread64(int fd, void *buf, size_t n, off_t at)
{
    return broken_pread("pread64", fd, buf, n, at);
}
END

    my $flag = $t->dir . '/broken';

    {
        local $ENV{LD_PRELOAD} = $lib;
        local $ENV{BROKEN_DISK} = $flag;

        $t->start;
    }

    @workers = $t->workers;

    $t->write_file('broken', '');
    $t->kill('HUP');

    ok($t->wait_log(qr/\[emerg\].*"demo"\ is\ not\ usable\ any\ more.*
                       model\.gguf:\ read:\ Input\/output\ error/x),
       'a disk that fails: the reload fails, with the reason');
    ok(!$t->ended, 'the master lives');
    is_deeply([ $t->workers ], \@workers, 'the workers of before go on');
    is($t->post('/v1/completions', \%ask)->{json}{choices}[0]{text}, $text,
       'the model of before answers');

    unlink $flag or die "$flag: $!";
    $t->reload;

    ok($t->wait_ready, 'a disk that works again: so does the reload');
    is($t->post('/v1/completions', \%ask)->{json}{choices}[0]{text}, $text,
       'and the model answers');
    $t->stop(name => 'a disk that fails', allow => qr/not usable any more/);
}

done_testing();
