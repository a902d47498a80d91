#!/usr/bin/perl

# Time to the first token of a tenant while another tenant sends schemas that
# take long to compile and are then refused.
#
#   ./build.sh bench flood [CONNECTIONS [REQUESTS]]
#
# CONNECTIONS (16) clients of one tenant post expensive schemas, each a new one.
# The other tenant sends REQUESTS (20) of each kind: plain ones, ones with a new
# schema, and ones with a new tool.

use strict;
use warnings;

use LLM::Test;
use POSIX ();
use Time::HiRes qw(sleep time);

my ($connections, $requests) = (@ARGV, undef, undef);

$| = 1;
$connections ||= 16;
$requests ||= 20;

my $t = LLM::Test->new(
    connections => 256,
    model => 'llm_model demo %%ROOT%%/models/demo.gguf ctx=2048 parallel=8'
           . ' threads=1 default; llm_queue 1000;',
    locations => <<'END')->start;
        location /v1 { llm_api; llm_tenant $http_x_tenant; }
        location = /health { llm_health; }
END


# a schema that is refused when it has taken the time limit of compiling

sub heavy {
    my $n = shift;
    my %patterns;

    for my $i (0 .. 11) {
        my $pattern = sprintf '%c.{0,%d}%c', 97 + $i, 9 + $n % 80, 109 + $i;
        $patterns{$pattern} = { type => 'string', minLength => $i + $n };
    }

    return { type => 'object', patternProperties => \%patterns };
}


sub flood {
    my $n = shift;

    while (1) {
        my $c = $t->open('/v1/completions', { prompt => 'a', max_tokens => 1,
            response_format => { type => 'json_schema', json_schema =>
                { name => 'x', schema => heavy(++$n) } } },
            headers => { 'X-Tenant' => 'flood' });
        $c->response;
        $c->close;
    }
}


sub fresh {
    my $n = shift;

    return { type => 'object', properties => { "a$n" => { type => 'integer' } },
             required => ["a$n"] };
}


# [ name, function that returns fields of the request ]
my $serial = 0;
my @kinds = (
    [ plain => sub { return () } ],
    [ schema => sub {
        return response_format => { type => 'json_schema', json_schema =>
            { name => 'x', schema => fresh(++$serial) } } } ],
    [ tool => sub {
        return tools => [ { type => 'function', function =>
            { name => 'f', parameters => fresh(++$serial) } } ] } ],
);


sub measure {
    my ($name) = @_;

    for (@kinds) {
        my ($kind, $fields) = @$_;
        my @took;

        for (1 .. $requests) {
            my $begin = time;
            my $c = $t->open('/v1/chat/completions', {
                messages => [ { role => 'user', content => "Hello $_" } ],
                max_tokens => 4, stream => \1, $fields->() },
                headers => { 'X-Tenant' => 'other' });
            $c->event;
            push @took, time - $begin;
            $c->response;
            $c->close;
        }

        @took = sort { $a <=> $b } @took;
        printf "%s %-7s first event after %6.1f ms (median), %6.1f ms "
             . "(longest)\n", $name, $kind, 1000 * $took[@took / 2],
               1000 * $took[-1];
    }
}


measure('alone:   ');

my @flood;

for my $i (1 .. $connections) {
    my $pid = fork;

    die "fork: $!" unless defined $pid;

    if ($pid == 0) {
        eval { flood($i * 1000) };
        POSIX::_exit(0);
    }

    push @flood, $pid;
}

sleep 3;
measure('attacked:');

kill 'KILL', @flood;
waitpid $_, 0 for @flood;

$t->stop;
