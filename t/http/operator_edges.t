#!/usr/bin/perl

# Every value that an operator may take from a client, at its edges, and many
# clients that never send, never read or leave, beside a reload and a worker
# that is killed: no worker dies, and no place is lost.

use strict;
use warnings;

use LLM::Test;
use Test::More;
use Time::HiRes qw(sleep);

my $t = LLM::Test->new(workers => 3, listen => 'reuseport', http => <<'END',
    log_format l escape=none '$llm_spans $llm_input $llm_output $llm_error '
                             '$llm_alias $llm_traceparent';
    access_log logs/l.log l;
    llm_token_zone $http_x_tenant zone=z:256k rate=$http_x_rate cached=0.5
                   requests=$http_x_requests day=$http_x_day
                   streams=$http_x_streams state=%%DIR%%/usage.json;
    llm_token_zone all zone=all:1m rate=1000000000/s;
    llm_queue 300;
END
    location => 'llm_token_limit zone=z burst=$http_x_burst reserve=3;'
              . ' llm_token_limit zone=all; llm_capture 1k;'
              . ' llm_max_tokens $http_x_most prompt=$http_x_prompt;'
              . ' llm_alias rule $http_x_alias;')->start;

my @edges = ('', '0', '-0', '-1', '1', '1/s', '1/m', '0/h', '1e-40', '1e308',
             '9007199254740992', '9' x 40, '1000000000', '1000000000/s',
             '1000000001', 'NaN', 'null', 'x' x 8000, "\xff\xfe", '+1',
             '0x10', '1/', '/m', 'demo', 'rule', 'none');
my @headers = ('traceparent', 'tracestate', map { "X-$_" }
               qw(Tenant Rate Requests Day Streams Burst Most Prompt Alias));
my @before = $t->workers;
my %status;

for my $header (@headers) {
    for my $i (0 .. $#edges) {
        my $res = $t->post('/v1/completions',
            { prompt => 'a', max_tokens => 2, $i % 3 ? () : (model => 'rule') },
            headers => { 'X-Tenant' => "$header $i", $header => $edges[$i] });

        $status{ $res->{status} }++;
    }
}

is(join(' ', sort keys %status), '200 404 429 503', 'all are answered');
is(join(' ', $t->workers), join(' ', @before), 'by the same workers');


# ---- a hundred at once ----

sub client {
    my ($i) = @_;

    return LLM::Client->open(port => $t->port, raw => "POST /v1/completions"
        . " HTTP/1.1\r\nHost: a\r\nX-Tenant: s1\r\nX-Streams: 90\r\n"
        . "Content-Length: 100\r\n\r\n{") if $i % 3 == 0;

    return LLM::Client->open(port => $t->port, method => 'POST',
        path => '/v1/completions', rcvbuf => 4096,
        headers => { 'X-Tenant' => 's' . $i % 20, 'X-Rate' => 100000,
                     'X-Streams' => $i % 5 ? '' : 3 },
        body => { prompt => 'a', stream => \1, ignore_eos => \1,
                  max_tokens => 600, logprobs => 5 });
}

for my $what ('nothing else', 'a reload', 'a worker killed') {
    my @clients = map { client($_) } 1 .. 100;

    sleep 0.2;

    if ($what eq 'a reload') {
        $t->kill('HUP');

    } elsif ($what eq 'a worker killed') {
        CORE::kill('KILL', ($t->workers)[0]);
    }

    $clients[2 * $_]->close for 0 .. 49;
    like($t->get('/health')->{status}, qr/^(?:200|503)$/,
         "$what: /health answers");
    $clients[2 * $_ + 1]->close for 0 .. 49;
}

ok($t->wait_ready, 'it serves on');
ok(LLM::Test::wait_for(60, sub {
    my $f = $t->figures;
    $f->{running} + $f->{parked} + $f->{waiting} == 0;
}), 'no request is left');

# a worker may hear of a client that left after the engine did

my @held = 0 .. 19;

LLM::Test::wait_for(60, sub {
    @held = grep {
        $t->post('/v1/completions', { prompt => 'a', max_tokens => 1 },
                 headers => { 'X-Tenant' => "s$_", 'X-Streams' => 1 })
          ->{status} != 200
    } @held;

    return !@held;
});

is("@held", '', 'no account has a stream that is not there');

my @deaths = $t->log('error.log') =~ /exited on signal (?!9\b)\d+/g;

is("@deaths", '', 'no worker died but the one that was killed');

$t->stop(allow => qr/exited on signal 9|locked by/);


done_testing();
