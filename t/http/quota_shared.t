#!/usr/bin/perl

# A file of usage that more than one has: two instances, one that is started
# while the other drains, the memories of a zone before and after its size was
# changed, a binary upgrade.  Nothing is lost, nothing counts twice, and a day
# is one day for all of them.

use strict;
use warnings;

use Fcntl ':flock';
use LLM::JSON;
use LLM::Test;
use Test::More;

my $shared = LLM::Test->new;            # its folder alone
my $file = $shared->dir . '/usage.json';

sub instance {
    my (%opt) = @_;

    my $t = LLM::Test->new(pace => 1, %opt,
        http => 'llm_token_zone $http_x_tenant zone=z:' . ($opt{size} // '1m')
              . " count=out day=\$http_x_day state=$file;"
              . ' llm_stream_buffer 8k;',
        location => 'llm_token_limit zone=z; limit_rate $http_x_rate;');

    return $opt{stopped} ? $t : $t->start;
}

sub ask {
    my ($t, $key, $day, $tokens) = @_;

    return $t->post('/v1/completions',
        { prompt => 'a', max_tokens => $tokens, ignore_eos => \1 },
        headers => { 'X-Tenant' => $key, 'X-Day' => $day });
}

# how many requests of so many tokens are served, by each in turn

sub served {
    my ($key, $day, $tokens, @of) = @_;

    my ($n, $refused) = (0, 0);

    for (my $i = 0; $refused < @of && $n < 1000; $i++) {
        my $res = ask($of[$i % @of], $key, $day, $tokens);

        $res->{status} == 200 ? $n++ : $refused++;
        $refused = 0 if $res->{status} == 200;
        die $res->{body} if $res->{status} != 200
                            && $res->{json}{error}{code} ne 'insufficient_quota';
    }

    return $n;
}

sub state_of {
    my ($key) = @_;

    open my $f, '<', $file or return {};
    my @lines = map { eval { decode_json($_) } // {} } <$f>;
    my ($u) = grep { ($_->{key} // '') eq $key } @lines;

    return $u // {};
}

sub stream {
    my ($t, $key, %fields) = @_;

    return $t->open_long(%fields, headers => { 'X-Tenant' => $key,
        'X-Day' => $fields{day} // 100000, 'X-Rate' => $fields{rate} // 0 });
}

# where the file comes to say so

sub becomes {
    my ($key, $name, %want) = @_;

    ok(LLM::Test::wait_for(30, sub {
        my $u = state_of($key);
        !grep { ($u->{$_} // 0) != $want{$_} } keys %want;
    }), $name) or diag(encode_json(state_of($key)));
}


# what a stream has reserved is there for others

sub holds {
    my ($key, $name) = @_;

    ok(LLM::Test::wait_for(30, sub { state_of($key)->{held_tokens} }),
       $name);
}


# ---- two instances ----

my @two = map { instance() } 1 .. 2;

is(served('one', 300, 20, $two[0]), 15, 'one of them serves the day');
is(ask($two[1], 'one', 300, 20)->{status}, 429, 'the other one knows it');
is(served('turns', 300, 20, @two), 15, 'both in turn: a day for both');
is(served('half', 100, 20, $two[0]) + served('half', 300, 20, $two[1]), 15,
   'one after the other');
becomes($_, "$_: in the file", day_tokens => 300, requests => 15,
        completion_tokens => 300)
    for qw(one turns half);

# the folder's lock is not waited for again and again

sub said_locked {
    return scalar(() = $two[0]->log =~ /requests do not wait for this/g);
}

open my $lock, '<', $shared->dir or die $!;
flock $lock, LOCK_EX or die $!;

my $before = said_locked();             # somebody else may have been slow

is(ask($two[0], 'locked', 300, 20)->{status}, 200, 'while the file is locked')
    for 1 .. 5;
ok(said_locked(), 'which is said');
cmp_ok(said_locked() - $before, '<=', 1, 'once');
close $lock;

becomes('locked', 'then it is written', day_tokens => 100, requests => 5);

# what one has reserved the other does not give away

my $open = stream($two[0], 'held', max_tokens => 1400, rate => '2k',
                  logprobs => 5);
ok($open->event, 'a stream of one of them');
holds('held', 'what it has reserved is told');
my $res = ask($two[1], 'held', 1500, 200);
is($res->{status}, 429, 'what it has reserved is taken')
    or diag($res->{body});
is(ask($two[1], 'held', 1700, 200)->{status}, 200, 'what is left is not');
$open->close;

ok(LLM::Test::wait_for(30, sub {
    ask($two[1], 'held', 1500, 200)->{status} == 200
}), 'what it did not use comes back');

# one that is killed has reserved nothing

$open = stream($two[0], 'dead', max_tokens => 1400, rate => '2k',
               logprobs => 5);
ok($open->event, 'a stream');
holds('dead', 'what it has reserved is told, too');
is(ask($two[1], 'dead', 1500, 200)->{status}, 429, 'and what it holds');

my @workers = $two[0]->workers;
$two[0]->pause;
$two[0]->kill('KILL', $_) for @workers;
$two[0]->kill('KILL');

ok(LLM::Test::wait_for(20, sub {
    $two[0]->ended && !grep { !LLM::Test::gone($_) } @workers;
}), 'all of that nginx is killed');
ok(LLM::Test::wait_for(20, sub {
    ask($two[1], 'dead', 1500, 200)->{status} == 200
}), 'it holds nothing any more');

# started beside one that drains

$open = stream($two[1], 'late', max_tokens => 1400, rate => '20k');
ok($open->event, 'a stream of one that is told to end');
$two[1]->kill('QUIT');
ok(LLM::Test::wait_for(20, sub {
    ($two[1]->log =~ /gracefully shutting down/)
}), 'it drains');

my $next = instance();

holds('late', 'what it holds is told');

is(ask($next, 'late', 1500, 200)->{status}, 429, 'the next one knows');
is(($open->events)[-1]{data}, '[DONE]', 'the stream ends whole');
ok(LLM::Test::wait_for(30, sub { $two[1]->ended }), 'and the old one');
becomes('late', 'what it had is in the file', day_tokens => 1400,
        requests => 1);
is(ask($next, 'late', 1500, 200)->{status}, 429, 'all of it counts');
is(ask($next, 'late', 1600, 200)->{status}, 200, 'once');
becomes('late', 'then, too', day_tokens => 1600, requests => 2);
becomes('one', 'others are as they were', day_tokens => 300, requests => 15);
$two[1]->stop(running => 0) if !$two[1]->ended;


# ---- a zone whose size changes while a stream runs ----

$open = stream($next, 'size', max_tokens => 1400, rate => '20k');
ok($open->event, 'a stream');
is(ask($next, 'size', 100000, 100)->{status}, 200, 'and a request');

my $conf = $next->conf;

$conf =~ s/zone=z:1m/zone=z:2m/;
$next->write_conf($conf);
$next->reload;
ok($next->wait_ready, 'a zone of another size');
holds('size', 'the old one says what it holds');

is(ask($next, 'size', 1600, 200)->{status}, 429,
   'it knows what the old one has reserved');
is(($open->events)[-1]{data}, '[DONE]', 'the stream ends whole');
becomes('size', 'it is in the file', day_tokens => 1500, requests => 2,
        completion_tokens => 1500);
is(ask($next, 'size', 1600, 200)->{status}, 429, 'and in the zone');
is(ask($next, 'size', 1700, 200)->{status}, 200, 'once');
becomes('size', 'as the file says', day_tokens => 1700, requests => 3);
$next->stop;
becomes('size', 'after its end, too', day_tokens => 1700, requests => 3);


# ---- another file of a zone that stays ----

{
    my $t = instance();

    is(ask($t, 'moves', 300, 100)->{status}, 200, 'a request');
    becomes('moves', 'is in the file', day_tokens => 100);

    # as who moves it does: the zone has what the file has

    my $conf = $t->conf;

    $conf =~ s/usage\.json/moved.json/;
    $t->write_conf($conf);
    rename $file, $shared->dir . '/moved.json' or die $!;
    $t->reload;
    ok($t->wait_ready, 'another file');
    ok(LLM::Test::wait_for(20, sub { $t->workers == 1 }), 'alone');
    is(ask($t, 'moves', 300, 100)->{status}, 200, 'another request');
    $t->stop;

    rename $shared->dir . '/moved.json', $file or die $!;
    becomes('moves', 'nothing is counted twice', day_tokens => 200,
            requests => 2);
    becomes('size', 'of nobody', day_tokens => 1700, requests => 3);
}


# ---- a binary upgrade ----

{
    my $t = instance(stopped => 1);
    my $old = $t->start_daemon;

    ok($old, 'nginx starts as a daemon, and has a pid');
    ok($t->wait_ready, 'it serves');
    is(ask($t, 'usr2', 300, 60)->{status}, 200, 'a request before');

    my @streams = map {
        stream($t, 'usr2-stream', max_tokens => 1400, rate => '20k')
    } 1 .. 2;

    $_->event for @streams;
    becomes('usr2', 'is in the file', day_tokens => 60);
    kill 'USR2', $old;

    my $new;

    ok(LLM::Test::wait_for(20, sub {
        $new = $t->master;
        $new && $new != $old;
    }), 'there is a new master') or diag($t->log);
    ok(LLM::Test::wait_for(30, sub {
        (() = $t->log =~ /model "demo" is ready/g) >= 2;
    }), 'a second engine is ready');

    holds('usr2-stream', 'the old one says what it holds');

    # whoever takes a connection

    is(served('usr2', 300, 60, $t), 4, 'a day, whoever serves');

    kill 'QUIT', $old;

    is(ask($t, 'usr2-stream', 2900, 200)->{status}, 429,
       'streams of the old one count');
    is(($_->events)[-1]{data}, '[DONE]', 'one ends whole') for @streams;
    ok(LLM::Test::wait_for(20, sub { !kill 0, $old }),
       'the old master has ended');
    becomes('usr2-stream', 'all of it is in the file', day_tokens => 2800,
            requests => 2);
    is(ask($t, 'usr2-stream', 2900, 200)->{status}, 429, 'and known');
    is(ask($t, 'usr2', 300, 60)->{status}, 429, 'the day is over');
    becomes('usr2', 'as it was', day_tokens => 300, requests => 5);

    kill 'QUIT', $new;
    ok(LLM::Test::wait_for(20, sub { !kill 0, $new }), 'and ends, too');
    is($t->alerts, '', 'nothing grave in the error log');
    kill 'KILL', grep { $_ && kill 0, $_ } $old, $new;
}


# ---- a file that cannot be read is not replaced ----

SKIP: {
    skip 'root can read all', 3 if $> != 0;

    # a folder in its place: nobody can read that

    my $t = instance();
    my $before = do { local (@ARGV, $/) = $file; <> };

    rename $file, "$file.aside" or die $!;
    mkdir $file or die $!;
    is(ask($t, 'unread', 300, 10)->{status}, 200, 'a request');
    ok($t->wait_log(
           qr/the usage cannot be written to "[^"]*usage\.json", because/),
       'what cannot be read is said');
    rmdir $file or die $!;
    rename "$file.aside", $file or die $!;
    becomes('unread', 'and is written as soon as it can be',
            day_tokens => 10, requests => 1);
    becomes('usr2', 'with what there was', day_tokens => 300, requests => 5);
    $t->stop;
}

done_testing();
