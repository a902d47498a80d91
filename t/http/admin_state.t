#!/usr/bin/perl

# What llm_admin leaves behind: over a reload, a worker that is killed, a
# restart; a file that is torn, is another one's, or cannot be written; many
# that set at once.

use strict;
use warnings;

use Fcntl qw(LOCK_EX);
use LLM::JSON;
use LLM::Test;
use Test::More;

my %opt = (
    workers => 3,
    model => join(' ', map { "llm_model $_ %%ROOT%%/models/demo.gguf threads=1"
                             . ' parallel=4 kv_cache=64m;' } qw(one two)),
    locations => <<'END');
        location /v1 { llm_alias chat one; llm_api; }
        location /admin { llm_admin state=admin.state; }
        location = /health { llm_health; }
END

my $t = LLM::Test->new(%opt);
my $file = $t->dir . '/admin.state';

sub put {
    my ($name, $model) = @_;

    return $t->request(method => 'PUT', path => "/admin/aliases/$name",
                       body => { model => $model });
}

sub leads {
    my ($name) = @_;

    my $res = $t->get("/admin/aliases/$name");

    return $res->{json}{model} // $res->{status};
}

sub model {
    my $res = $t->post('/v1/completions', { prompt => 'a', max_tokens => 1,
                                            model => $_[0] });
    return $res->{json}{model} // $res->{status};
}

# of all workers

sub models {
    my %n;

    $n{ model(@_) }++ for 1 .. 12;

    return join ' ', sort keys %n;
}

sub slurp {
    open my $f, '<', $_[0] // $file or return '';
    local $/;
    return scalar <$f>;
}

$t->start;
is(models('chat'), 'one', 'as the rule says');

my $res = put('chat', 'two');

is($res->{json}{saved}, LLM::JSON::true(), 'it is saved when that is said');
like(slurp(), qr/^\{"alias":"chat","model":"two"\}$/m, 'in the file');
is((stat $file)[2] & 0777, 0600, 'which is for its owner alone');
is(join(' ', glob $t->dir . '/admin.state*'), $file, 'nothing beside it');


# ---- a reload, and a worker that dies ----

$t->reload;
ok($t->wait_ready, 'ready again');
is(models('chat'), 'two', 'after a reload');

# as other workers see it until there is another one.  The kernel wakes one of
# those that listen, and one that is about to end accepts nothing: so old ones
# are awaited, and the death of the killed one

ok(LLM::Test::wait_for(60, sub { $t->workers == 3 }), 'old workers end');

for (1 .. 3) {
    my $dead = ($t->workers)[$_ % 3];

    $t->kill('KILL', $dead);
    LLM::Test::wait_for(20, sub { LLM::Test::gone($dead) })
        or die 'it lives';
    is(put("k$_", 'two')->{status}, 200, "set while a worker dies, $_");
    ok(LLM::Test::wait_for(20, sub { $t->workers == 3 }), 'it is replaced');
    ok($t->wait_ready, 'and ready');
    is(leads("k$_") . ' ' . models('chat'), 'two two', 'all is there');
}


# ---- a restart ----

sub restart {
    my (%how) = @_;

    $t->stop(allow => qr/exited on signal 9/);
    $how{between}->() if $how{between};
    $t->start;
}

restart();
is(models('chat') . ' ' . leads('k3'), 'two two', 'after a restart');

# at once: what was answered is on the disk

put('last', 'two');
$t->pause;

my @workers = $t->workers;

$t->kill('KILL', $_) for @workers;
$t->kill('KILL');

# the sockets are those of workers, too

ok(LLM::Test::wait_for(20, sub {
    $t->ended && !grep { !LLM::Test::gone($_) } @workers;
}), 'all of nginx is killed');

$t->start;
is(leads('last'), 'two', 'nothing is lost');


# ---- many at once ----

my @open = map {
    LLM::Client->open(port => $t->port, method => 'PUT',
                      path => "/admin/aliases/m$_",
                      body => { model => $_ % 2 ? 'one' : 'two' })
} 1 .. 60;

is((grep { $_->response->{status} == 200 } @open), 60, 'sixty at once');

my %in = slurp() =~ /^\{"alias":"(m\d+)","model":"(\w+)"\}$/mg;

is((grep { ($in{"m$_"} // '') eq ($_ % 2 ? 'one' : 'two') } 1 .. 60), 60,
   'the file has all of them');


# ---- a file that is none ----

my $whole = slurp();

for my $case ([ 'torn', substr $whole, 0, length($whole) / 2 ],
              [ 'with another byte', $whole =~ s/two/twa/r ],
              [ 'of something else', "{}\n" ],
              [ 'empty', '' ])
{
    my ($name, $text) = @$case;
    my $at = length $t->log('error.log');

    restart(between => sub {
        $t->write_file('admin.state', $text);

        my (undef, $out) = $t->check;
        like($out, qr/the state of "llm_admin" in "[^"]*admin\.state" is not/,
             "$name: nginx -t names it");
    });

    like(substr($t->log('error.log'), $at),
         qr/\[error\].*the state of "llm_admin" in "[^"]*admin\.state" is not/,
         "$name: so does the log");
    like(substr($t->log('error.log'), $at), qr/not used: it is empty/,
         "$name: and how it is") if $text eq '';
    is(models('chat') . ' ' . leads('m1'), 'one 404', "$name: it is not used");
    is(slurp(), $text, "$name: nor touched");
    is(put('chat', 'two')->{json}{saved}, LLM::JSON::true(),
       "$name: another one");
    like(slurp(), qr/"chat"/, "$name: takes its place");
    is(slurp("$file.bad"), $text,
       "$name: it is kept");
    unlink "$file.bad";
}


# ---- a file that cannot be written ----

unlink $file;
mkdir $file or die $!;

$res = put('chat', 'one');
is("$res->{status} " . ($res->{json}{saved} ? 1 : 0), '200 0',
   'one that cannot be written: said in the answer');
is(models('chat'), 'one', 'the alias is set all the same');
like($t->log('error.log'), qr/the state of "llm_admin" cannot be written to/,
     'and in the log');
rmdir $file;
ok(LLM::Test::wait_for(15, sub { slurp() =~ /"chat","model":"one"/ }),
   'it is written as soon as it can be');


# ---- a folder that another process has locked ----

# the threads that would wait for it are those that read large bodies

open my $lock, '<', $t->dir or die $!;
flock $lock, LOCK_EX or die $!;

my @puts = map {
    LLM::Client->open(port => $t->port, method => 'PUT', timeout => 60,
                      path => "/admin/aliases/locked-$_",
                      body => { model => 'one' })
} 1 .. 8;

my %large;

$large{ $t->post('/v1/completions', { prompt => 'a', model => 'one',
                                      max_tokens => 1, user => 'x' x 40000 },
                 timeout => 60)->{status} }++ for 1 .. 8;

is(join(' ', keys %large), '200', 'large bodies are read all the same');
is(join(' ', map { $_->response->{json}{saved} ? 1 : 0 } @puts),
   join(' ', (0) x 8), 'a folder that is locked: said in the answers');
like($t->log('error.log'), qr/admin\.state": the folder is locked/,
     'and in the log');
close $lock;
ok(LLM::Test::wait_for(15, sub { slurp() =~ /"locked-8"/ }),
   'it is written when it is not any more');
is($t->request(method => 'DELETE', path => "/admin/aliases/locked-$_")
     ->{status}, 200, "locked-$_ is taken back") for 1 .. 8;


# ---- another file, none ----

my $conf = do { open my $f, '<', $t->dir . '/nginx.conf'; local $/; <$f> };

$t->write_file('nginx.conf', $conf =~ s/state=admin\.state/state=new.state/r);
$t->reload;
ok($t->wait_ready, 'ready with another name');
is(leads('chat'), 'one', 'what was set goes on');
ok(LLM::Test::wait_for(10, sub {
    slurp($t->dir . '/new.state') =~ /"chat"/ }),
   'and is in the new file');

$t->write_file('nginx.conf', $conf =~ s/ state=admin\.state//r);
$t->reload;
ok($t->wait_ready, 'ready without a file');
is(leads('chat'), 'one', 'it goes on');
restart();
is(leads('chat'), '200', 'until a restart');

$t->stop(allow => qr/exited on signal 9/);


# ---- two that have one file ----

# two instances, or an old and a new nginx during an upgrade: what one has set
# and said to be saved the other does not take away, and gets to know

{
    my $folder = LLM::Test->new;
    my $state = $folder->dir . '/admin.state';
    my @two = map {
        LLM::Test->new(%opt, workers => 2,
            locations => $opt{locations} =~ s/admin\.state/$state/r)->start
    } 1 .. 2;

    my $set = sub {
        my ($i, $method, $name, $model) = @_;

        my $res = $two[$i]->request(method => $method,
            path => "/admin/aliases/$name", $model ? (body => {
                model => $model }) : ());

        return "$res->{status} " . ($res->{json}{saved} ? 1 : 0);
    };
    my $is = sub {
        my ($name, $want, $what) = @_;

        for my $i (0, 1) {
            my $got;

            ok(LLM::Test::wait_for(20, sub {
                my $res = $two[$i]->get("/admin/aliases/$name");

                $got = $res->{json}{model} // $res->{status};
                $got eq $want
            }), "$what, of number $i") or diag($got);
        }
    };

    is($set->(0, PUT => 'a', 'one'), '200 1', 'one sets an alias');
    is($set->(1, PUT => 'b', 'two'), '200 1', 'the other one another');
    like(slurp($state), qr/"alias":"$_"/, "$_ is in the file") for 'a', 'b';
    $is->(a => 'one', 'the first one');
    $is->(b => 'two', 'the second one');

    is($set->(1, PUT => 'a', 'two'), '200 1', 'a change');
    $is->(a => 'two', 'the last one counts');
    is($set->(0, DELETE => 'b'), '200 1', 'what the other one has set goes');
    $is->(b => 404, 'it is gone');
    is($set->(0, PUT => 'c', 'one'), '200 1', 'one more');
    unlike(slurp($state), qr/"alias":"b"/, 'and does not come back');

    # commands, too

    my $stop = $two[0]->request(method => 'POST',
        path => '/admin/models/two/unload?wait=60');
    is($stop->{status}, 200, 'one stops a model') or diag($stop->{body});
    is($set->(1, PUT => 'd', 'one'), '200 1', 'the other one sets an alias');
    like(slurp($state), qr/"model":"two","file":"","stopped":true/,
         'the model is stopped');
    is($two[1]->get('/admin/models/two')->{json}{state}, 'ready',
       'not that of the other one');

    # many at once, then a restart of both

    my @open = map {
        LLM::Client->open(port => $two[$_ % 2]->port, method => 'PUT',
                          path => "/admin/aliases/m$_",
                          body => { model => $_ % 3 ? 'one' : 'two' })
    } 1 .. 40;

    # one that had to wait too long for the file's lock is written with the next

    is((grep { $_->response->{status} == 200 } @open), 40, 'many at once');

    my $all = sub {
        my %in = slurp($state) =~ /^\{"alias":"(m\d+)","model":"(\w+)"\}$/mg;
        return grep { ($in{"m$_"} // '') eq ($_ % 3 ? 'one' : 'two') } 1 .. 40;
    };

    ok(LLM::Test::wait_for(60, sub { $all->() == 40 }),
       'the file has all of them');

    $_->stop for @two;
    is(scalar(() = slurp($state) =~ /"alias":"m\d+"/g), 40,
       'it has when both have ended');
    $two[1]->start;
    is($two[1]->get('/admin/aliases/m7')->{json}{model}, 'one',
       'and whoever reads it');
    is($two[1]->get('/admin/models/two')->{json}{state}, 'stopped',
       'begins with it');

    # one that cannot be read is not replaced

    rename $state, "$state.aside" or die $!;
    mkdir $state or die $!;
    my $res = $two[1]->request(method => 'PUT', path => '/admin/aliases/x',
                               body => { model => 'one' });
    is("$res->{status} " . ($res->{json}{saved} ? 1 : 0), '200 0',
       'one that cannot be read: said');
    rmdir $state or die $!;
    rename "$state.aside", $state or die $!;
    ok(LLM::Test::wait_for(20, sub { slurp($state) =~ /"alias":"x"/ }),
       'it is written when it can be read');
    like(slurp($state), qr/"alias":"m40"/, 'with what it had');
    $two[1]->stop;
}

done_testing();
