#!/usr/bin/perl

# post_action: nginx sends a request whose client has left on to another
# location, which may take a while.  What the request has of the engine, of a
# guard, or waits for at llm_admin, ends with its client; nothing of it comes
# back to a request that is elsewhere by then.

use strict;
use warnings;

use IO::Socket::INET;
use LLM::Test;
use Test::More;

# servers that accept and do not answer: the one of post_action, and a guard

sub silent {
    return IO::Socket::INET->new(Listen => 16, LocalAddr => '127.0.0.1',
                                 LocalPort => 0) // die "no socket: $!";
}

my $after = silent();
my $guard = silent();
my ($a, $g) = map { '127.0.0.1:' . $_->sockport } $after, $guard;

my $t = LLM::Test->new(
    model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=1 parallel=4'
           . ' default;',
    http => 'llm_token_zone all zone=all:1m streams=100;',
    locations => <<"END")->start;
        location /v1 { llm_api; llm_token_limit zone=all; post_action /after; }
        location /guarded {
            llm_api;
            llm_guard /ask timeout=1s open;
            post_action \@after;
        }
        location /plain { llm_api; }
        location /admin { llm_admin; post_action /after; }
        location /ask { proxy_pass http://$g; }
        location /after { proxy_pass http://$a/; }
        location \@after { proxy_pass http://$a; }
        location = /health { llm_health; }
        location = /figures { llm_metrics json; }
END

my @before = $t->workers;

sub accepted {
    my ($s, $name) = @_;

    my $c = IO::Select->new($s)->can_read(60) ? $s->accept : undef;

    ok($c, $name);

    return $c;
}

sub idle {
    my ($name) = @_;

    ok(LLM::Test::wait_for(20, sub {
        my $f = $t->figures;
        $f->{running} + $f->{waiting} == 0
    }), "$name: the engine has nothing to do for it");
}

my %request = (prompt => 'a', max_tokens => 1900, ignore_eos => \1);


# ---- in its midst ----

for my $stream (\1, \0) {
    my $name = $$stream ? 'a stream' : 'a whole answer';
    my $c = $t->open('/v1/completions', { %request, stream => $stream });

    $$stream ? $c->event
             : LLM::Test::wait_for(20, sub { $t->figures->{running} });
    $c->close;

    my $held = accepted($after, "$name: its client left, it goes on");

    idle($name);
    close $held;
}


# ---- while a guard is asked ----

my $steps = $t->figures->{steps};
my $c = $t->open('/guarded/completions', { %request, max_tokens => 2 });
my $asked = accepted($guard, 'a guard is asked');

$c->close;

my $held = accepted($after, 'the client leaves, the request goes on');

# longer than the guard's timeout, after which an open one would let it pass

select undef, undef, undef, 1.5;

is($t->figures->{steps}, $steps, 'the engine never had it');
close $asked;
close $held;


# ---- while llm_admin waits, for a request that takes long ----

my $long = $t->open('/plain/completions', { %request, n => 16 });

ok(LLM::Test::wait_for(20, sub { $t->figures->{running} }), 'one runs');

$c = LLM::Client->open(port => $t->port, method => 'POST', body => '',
                       path => '/admin/models/demo/unload?wait=20s&timeout=9s');

ok($t->wait_log(qr/unload "demo".*accepted/), 'llm_admin waits for an action');
$c->close;

$held = accepted($after, 'its client left, it goes on');

# several times as long as it is between two looks

select undef, undef, undef, 0.3;
close $held;
$long->close;


# ---- all of them ----

is(join(' ', $t->workers), join(' ', @before), 'by the same worker');

$t->stop;

done_testing();
