#!/usr/bin/perl

# llm_queue tokens= and ttft=: who may wait; $llm_load, $llm_waiting and
# $llm_predicted_ttft in any location; answers that become shorter when the
# machine is busy.

use strict;
use warnings;

use LLM::JSON;
use LLM::Test;
use Test::More;
use Time::HiRes qw(sleep time);

my $t;

sub server {
    my ($queue, %opt) = @_;

    $t = LLM::Test->new(
        model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=1'
               . " parallel=1; llm_queue $queue;",
        locations => <<'END', %opt)->start;
        location /v1 { llm_api; llm_priority $http_x_priority; }
        location /metered/v1 {
            llm_api;
            llm_token_limit zone=z burst=100000;
        }
        location /short/v1 { llm_api; llm_max_tokens $longest; }
        location = /busy {
            return 200 "$llm_load|$llm_waiting|$llm_predicted_ttft";
        }
        location = /denied {
            if ($llm_waiting ~ "^[1-9]") { return 503 "busy"; }
            return 200 "not busy";
        }
        location = /health { llm_health; }
        location = /metrics { llm_metrics; }
END
}

my $HTTP = <<'END';
    llm_token_zone $http_x_tenant zone=z:1m rate=1/h;
    map $llm_load $longest { "~^\d?\d$" ""; default 5; }
END

sub ids { [ map { 100 + ($_ * $_[1]) % 60 } 1 .. $_[0] ] }

# one that takes the only place for long

sub hold {
    my $held = $t->open('/v1/completions',
        { prompt => 'a', max_tokens => 3900, n => 16, ignore_eos => \1 });

    ok(LLM::Test::wait_for(20, sub {
        $t->figure('vllm:num_requests_running') == 1
    }), 'the only place is taken');

    return $held;
}

sub waiting {
    my ($n) = @_;

    LLM::Test::wait_for(20, sub {
        $t->figure('vllm:num_requests_waiting') == $n
    });
}

sub is_refused {
    my ($res, $code, $name) = @_;

    is($res->{status}, 429, "$name: 429") or diag($res->{body});
    is($res->{json}{error}{code}, $code, "$name: $code");
    like($res->{headers}{'retry-after'} // '', qr/^[1-9]\d*$/,
         "$name: Retry-After");
}


# ---- prompt tokens ----

server('8 tokens=2000', http => $HTTP);

is($t->post('/v1/completions', { prompt => ids(2500, 7), max_tokens => 1 })
     ->{status}, 200, 'alone a prompt may be as long as it likes');

my $held = hold();
my @wait = map { $t->open('/v1/completions', { prompt => ids(900, $_),
                                               max_tokens => 1 }) } 11, 13;
ok(waiting(2), 'two prompts wait');

my $res = $t->post('/v1/completions', { prompt => ids(900, 17),
                                        max_tokens => 1 });
is_refused($res, 'queue_full', 'a third');
like($res->{json}{error}{message}, qr/1800 prompt tokens .* 900 .* 2000/,
     'with all numbers');

$res = $t->post('/v1/completions', { prompt => ids(900, 17), max_tokens => 1,
                                     stream => \1 });
is_refused($res, 'queue_full', 'a stream, before it begins');

$res = $t->post('/v1/messages', { max_tokens => 1,
    messages => [ { role => 'user', content => 'word ' x 900 } ] });
is($res->{status}, 429, 'in the words of messages');
is($res->{json}{error}{type}, 'rate_limit_error', 'its type');

$res = $t->post('/v1/embeddings', { input => ids(900, 17) });
is($res->{status}, 429, 'embeddings, too');

is($t->post('/v1/tokenize', { prompt => 'word ' x 900 })->{status}, 200,
   'what needs no model is nothing to it');

my $small = $t->open('/v1/completions', { prompt => ids(150, 19),
                                          max_tokens => 1 });
ok(waiting(3), 'a short one finds room');

$res = $t->post('/v1/completions', { prompt => 'a', max_tokens => 1 },
                headers => { 'X-Priority' => -1 });
is_refused($res, 'queue_full', 'but not with a low priority, at half');

is($t->get('/busy')->{body} =~ /^(\d+)\|(\d+)\|/ && "$1 $2", '400 3',
   'load and waiting');
is($t->get('/denied')->{status}, 503, 'in if');

$held->close;
is($_->response->{status}, 200, 'those that waited are served')
    for @wait, $small;

ok(LLM::Test::wait_for(20, sub {
    $t->post('/v1/completions', { prompt => ids(900, 23), max_tokens => 1 })
      ->{status} == 200
}), 'then there is room again');

is($t->get('/denied')->{status}, 200, 'nobody waits');

# half the places, too

$held = hold();
@wait = map { $t->open('/v1/completions', { prompt => 'a', max_tokens => 1 }) }
        1 .. 4;
ok(waiting(4), 'four wait, half of 8');
$res = $t->post('/v1/completions', { prompt => 'a', max_tokens => 1 },
                headers => { 'X-Priority' => -5 });
is_refused($res, 'queue_full', 'a fifth of a low priority');
like($res->{json}{error}{message}, qr/4 wait already/, 'is told of half');
push @wait, $t->open('/v1/completions', { prompt => 'a', max_tokens => 1 });
ok(waiting(5), 'one of a normal one waits');
$held->close;
$_->response for @wait;

$t->stop(name => 'tokens');


# ---- the first token ----

server('8 ttft=2ms', http => $HTTP, workers => 2, listen => 'reuseport');

like($t->get('/busy')->{body}, qr/^0\|0\|$/, 'an idle machine, nothing known');

is($t->post('/v1/completions', { prompt => ids(900, 7), max_tokens => 100,
                                 ignore_eos => \1 })->{status}, 200,
   'alone it is served, whatever is predicted');

ok(LLM::Test::wait_for(20, sub {
    $t->get('/busy')->{body} =~ /^0\|0\|0\.\d{6}$/
}), 'a speed is known, in any worker') or diag($t->get('/busy')->{body});

$held = hold();

for my $round (1 .. 3) {
    $res = $t->post('/v1/chat/completions', { max_tokens => 1,
        messages => [ { role => 'user', content => 'hi' } ] });
    is_refused($res, 'overloaded', "whoever must wait, $round");
}

like($res->{json}{error}{message}, qr/after \d+\.\d seconds.* 0\.0 /,
     'how long it would have been');

ok(LLM::Test::wait_for(20, sub {
    my ($load, $waits, $ttft) = split /\|/, $t->get('/busy')->{body};
    $load >= 100 && $ttft > 0.002
}), 'so it says to all');

# a quota: what was charged comes back

$res = $t->post('/metered/v1/completions', { prompt => ids(50, 3),
    max_tokens => 10 }, headers => { 'X-Tenant' => 'a' });
is_refused($res, 'overloaded', 'metered');

ok(LLM::Test::wait_for(20, sub {
    $t->get('/metered/v1/models', headers => { 'X-Tenant' => 'a' })
      ->{headers}{'x-ratelimit-remaining-tokens'} == 100000
}), 'and nothing is paid');

$held->close;

ok(LLM::Test::wait_for(20, sub {
    $t->post('/v1/completions', { prompt => 'a', max_tokens => 1 })->{status}
        == 200
}), 'afterwards all is well');

$t->stop(name => 'ttft');


# ---- shorter answers when the machine is busy ----

server('8', http => $HTTP . 'log_format p "$uri $status $llm_predicted_ttft";'
                          . 'access_log logs/p.log p;');

my %ask = (prompt => 'a', max_tokens => 40, ignore_eos => \1);

is($t->post('/short/v1/completions', \%ask)->{json}{usage}{completion_tokens},
   40, 'a place is free');

$held = hold();
my $late = $t->open('/short/v1/completions', \%ask);
ok(waiting(1), 'one waits');

$held->close;
is($late->response->{json}{usage}{completion_tokens}, 5,
   'none was free when it came');

ok($t->wait_log(qr{^/short/v1/completions\ 200\ \d+\.\d{6}\n.*
                   ^/short/v1/completions\ 200\ \d+\.\d{6}\n}msx, 'p.log'),
   'the log has what was predicted');

$t->stop(name => 'brown-out');


# ---- without bounds: nobody is judged by it ----

server('8', http => $HTTP =~ s/map.*//r, locations => <<'END');
        location /v1 { llm_api; llm_priority $http_x_priority; }
        location = /busy { return 200 "$llm_load|$llm_waiting"; }
        location = /health { llm_health; }
        location = /metrics { llm_metrics; }
END

$held = hold();
@wait = map { $t->open('/v1/completions', { prompt => ids(900, $_),
                                            max_tokens => 1 },
                       headers => { 'X-Priority' => -1 }) } 1 .. 8;
ok(waiting(8), 'all places of the queue, of a low priority');
is($t->get('/busy')->{body}, '900|8', 'load and waiting');
is_refused($t->post('/v1/completions', { %ask }), 'queue_full', 'no more');
$held->close;
is(scalar(grep { $_->response->{status} == 200 } @wait), 8, 'all are served');

$t->stop(name => 'no bounds');


# ---- queue= of a model ----

$t = LLM::Test->new(
    model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=1 parallel=1'
           . ' queue=1 default;'
           . ' llm_model never %%ROOT%%/models/demo.gguf threads=1 parallel=1'
           . ' queue=0; llm_model other %%ROOT%%/models/demo.gguf threads=1;',
    locations => <<'END')->start;
        location /v1 { llm_api; }
        location = /health { llm_health; }
        location = /metrics { llm_metrics; }
END

my %one = (prompt => 'a', max_tokens => 1);

$held = hold();
my $waits = $t->open('/v1/completions', { %one });
ok(waiting(1), 'one waits');

$res = $t->post('/v1/completions', { %one });
is_refused($res, 'queue_full', 'one more for its model');
like($res->{json}{error}{message}, qr/for this model: 1 wait already/,
     'which is said');
is($t->post('/v1/completions', { %one, model => 'other' })->{status}, 200,
   'not for another one');

$held->close;
is($waits->response->{status}, 200, 'who waited is served');
is($t->post('/v1/completions', { %one })->{status}, 200, 'and who comes then');

$held = $t->open('/v1/completions', { %one, model => 'never', n => 16,
                                      max_tokens => 3900, ignore_eos => \1 });
ok(LLM::Test::wait_for(20, sub {
    $t->figure('vllm:num_requests_running') == 1
}), 'one runs');
$res = $t->post('/v1/completions', { %one, model => 'never' });
is_refused($res, 'queue_full', 'queue=0: nobody waits');
$held->close;

$t->stop(name => 'queue=');


# ---- what nginx -t says ----

for (
    [ q[llm_queue 5 tokens=0;], qr/invalid number of tokens "tokens=0"/ ],
    [ q[llm_queue 5 tokens=many;], qr/invalid number of tokens/ ],
    [ q[llm_queue 5 tokens=;], qr/invalid number of tokens/ ],
    [ q[llm_queue 5 ttft=0;], qr/invalid time "ttft=0"/ ],
    [ q[llm_queue 5 ttft=2x;], qr/invalid time "ttft=2x"/ ],
) {
    my ($line, $want) = @$_;
    my ($rc, $out) = LLM::Test->new(http => $line)->check;

    isnt($rc, 0, "refused: $line");
    like($out, $want, 'with the reason');
    like($out, qr/nginx\.conf:\d+/, 'and the place');
}

is((LLM::Test->new(http => 'llm_queue 5 tokens=1000 ttft=2s timeout=3s'
                         . ' memory=2m;')->check)[0], 0, 'all of them');

done_testing();
