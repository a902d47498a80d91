#!/usr/bin/perl

# Twenty reloads, then bursts of them, while clients ask all the time: every
# stream that has begun ends whole, new requests get 200, and nothing is left
# behind: descriptors, processes, shared memory, the master's memory.

use strict;
use warnings;

use LLM::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my $t = LLM::Test->new(workers => 2,
    model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=1 parallel=8'
           . ' ctx=1024;')->start;

my %ask = (prompt => 'one two', temperature => 0, ignore_eos => \1);
my %text = map {
    $_ => $t->post('/v1/completions', { %ask, max_tokens => $_ })
            ->{json}{choices}[0]{text}
} 10, 400;


# what became of one request, in a word

sub whole {
    my $begin = time;
    my $res = $t->post('/v1/completions', { %ask, max_tokens => 10 });

    return refused($res, $begin) if $res->{status} != 200;
    return $res->{json}{choices}[0]{text} eq $text{10} ? 'ok' : 'other text';
}


sub stream {
    my $begin = time;
    my $s = $t->open_long(%ask, max_tokens => 400);

    $s->read_header;

    return refused($s->response, $begin) if $s->{status} != 200;

    my @events = $s->events;

    return 'truncated' if $s->{truncated};
    return 'not ended: ' . ($events[-1]{data} // '')
        if ($events[-1]{data} // '') ne '[DONE]';

    return $s->{text} eq $text{400} ? 'ok' : 'other text';
}


# a connection may wait with its first request, but not for ever: who was held
# up for five seconds, by a busy machine, may get 503 with Retry-After

sub refused {
    my ($res, $begin) = @_;

    return $res->{status} == 503 && time - $begin >= 5
           && ($res->{headers}{'retry-after'} // '') =~ /^[1-9]/
           && $res->{json}{error} ? 'late' : "status $res->{status}";
}


# asks until there is a file named "stop", and writes down how it went

sub client {
    my ($name, $ask) = @_;

    my $pid = fork // die "fork: $!";

    return $pid if $pid;

    open my $f, '>', $t->dir . "/$name" or die $!;
    $f->autoflush;

    while (!-e $t->dir . '/stop') {
        my $word = eval { $ask->() } // "died: $@";
        $word =~ s/\n.*//s;
        print $f "$word\n";
        sleep 0.02;
    }

    POSIX::_exit(0);
}


my @clients = ((map { client("stream$_", \&stream) } 1 .. 3),
               (map { client("whole$_", \&whole) } 1 .. 2));


# the clients' words, with their number

sub words {
    my %n;

    for my $name (map { "stream$_" } (1 .. 3)) {
        open my $f, '<', $t->dir . "/$name" or next;
        chomp, $n{"stream: $_"}++ for <$f>;
    }

    for my $name (map { "whole$_" } (1 .. 2)) {
        open my $f, '<', $t->dir . "/$name" or next;
        chomp, $n{"whole: $_"}++ for <$f>;
    }

    return \%n;
}


# only the last configuration's workers are left, all old streams have ended

sub settled {
    return LLM::Test::wait_for(60, sub { $t->workers == 2 })
           && $t->wait_ready;
}


$t->reload for 1 .. 3;
ok(settled(), 'three reloads');

my $before = LLM::Test::holds($t->{pid});

for my $round (1 .. 20) {
    $t->reload;

    # each configuration serves before the next one comes

    $t->wait_ready or fail("not ready after reload $round");
}

ok(settled(), 'twenty reloads');

for my $burst (1 .. 3) {
    for (1 .. 6) {
        $t->kill('HUP');
        sleep 0.02 * $burst;
    }

    ok(settled(), "burst $burst");
}

# the clients see the last one work

my $so_far = words();

ok(LLM::Test::wait_for(30, sub {
    my $now = words();
    !grep { ($now->{$_} // 0) <= ($so_far->{$_} // 0) }
          'stream: ok', 'whole: ok'
}), 'clients are served to the end');

$t->write_file('stop', '');
waitpid $_, 0 for @clients;

my $n = words();

diag(join ', ', map { "$_ $n->{$_}" } sort keys %$n);

is(join(', ', grep { !/: (?:ok|late)$/ } sort keys %$n), '',
   'whole answers, and nothing else');

ok(settled(), 'settled');

my $after;

ok(LLM::Test::wait_for(10, sub {
    $after = LLM::Test::holds($t->{pid});
    $after->{fds} <= $before->{fds} && $after->{zones} <= $before->{zones}
}), 'the master holds as many descriptors and zones as before')
    or diag(explain([ $before, $after ]));

SKIP: {
    skip 'memory under a sanitizer, which keeps what is freed', 1
        if $ENV{LLM_SAN};

    cmp_ok($after->{kb}, '<', $before->{kb} + 1024,
           "and no more memory ($before->{kb} kB before)");
}

my @group = grep {
    open my $f, '<', "$_/stat" or ();
    my ($state, $group) = (<$f> // '') =~ /\) (\S) \d+ (\d+)/;
    defined $group && $group == $t->{pid} && $state ne 'Z'
} glob '/proc/[0-9]*';

is(scalar @group, 3, 'no process is left over');

$t->stop;

done_testing();
