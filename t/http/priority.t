#!/usr/bin/perl

# Who goes first: llm_priority, the request's own priority and that of its
# metadata; equals in order of arrival.  One sequence runs at a time, so the
# access log tells the order.

use strict;
use warnings;

use LLM::Test;
use Test::More;

my $t = LLM::Test->new(pace => 0.5,
    model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=1 parallel=1;',
    # a request is logged when it ends, not when its client closes
    http => 'log_format order $http_x_name; lingering_close off;',
    locations => <<'END')->start;
        location /v1 { llm_api; llm_priority $http_x_priority;
                       access_log logs/order.log order; }
        location /free { llm_api; access_log logs/order.log order; }
        location /hold { llm_api; llm_priority 100; llm_stream_buffer 64m;
                         access_log logs/order.log order; }
        location = /health { llm_health; access_log off; }
        location = /metrics { llm_metrics; access_log off; }
END

# what llm_priority says (undef: there is none), what the request says, and
# what becomes of it, in order of arrival
my @asked = (
    [ '',    {},                                   0   ],
    [ 5,     {},                                   5   ],
    [ 5,     { priority => 3 },                    3   ],
    [ 5,     { priority => 50 },                   5   ],
    [ 20,    { priority => 0 },                    0   ],
    [ -5,    {},                                   -5  ],
    [ -5,    { metadata => { priority => 'high' } }, -5 ],
    [ 50,    { metadata => { priority => 'low' } },  -10 ],
    [ undef, { priority => 7 },                    0   ],
    [ 50,    { metadata => { priority => 'normal' } }, 0 ],
    [ 50,    { metadata => { priority => 'high' } }, 10 ],
    [ undef, { metadata => { priority => 'high' } }, 0 ],
    [ undef, {},                                   0   ],
    [ 50,    {},                                   50  ],
    [ 'abc', {},                                   0   ],
    [ -100,  {},                                   -100 ],
    [ undef, { metadata => { priority => 'low' } }, -10 ],
    [ 5,     {},                                   5   ],
    [ undef, { priority => 100 },                  0   ],
    [ undef, { metadata => { priority => 'soon' } }, 0 ],
    [ undef, { priority => -100 },                 -100 ],
);

# holds the place until all are there, choice after choice: before all others,
# and never parked though nobody reads it
my $running = $t->open('/hold/completions', { prompt => 'a', n => 20,
    max_tokens => 3900, ignore_eos => \1, stream => \1 }, light => 1);

$running->event;

my @clients;

for my $i (0 .. $#asked) {
    my ($given, $fields) = @{ $asked[$i] };

    push @clients, $t->open(
        (defined $given ? '/v1' : '/free') . '/completions',
        { prompt => 'b', max_tokens => 2, %$fields },
        headers => { 'X-Name' => "r$i",
                     defined $given ? ('X-Priority' => $given) : () });

    $t->wait_queued($i + 1) or BAIL_OUT('a request is not in the queue');
}

$running->close;

is(scalar(grep { $_->response->{status} == 200 } @clients), scalar @asked,
   'all are served');

my @want = map { "r$_" }
           sort { $asked[$b][2] <=> $asked[$a][2] || $a <=> $b } 0 .. $#asked;
my @got;

LLM::Test::wait_for(5, sub {
    @got = grep { /^r/ } split /\n/, $t->log('order.log');
    @got == @want;
});

for my $i (0 .. $#want) {
    my ($given, $fields, $priority) = @{ $asked[$want[$i] =~ s/r//r] };

    is($got[$i], $want[$i], "$i: llm_priority "
       . (defined $given ? "\"$given\"" : 'unset') . ', request '
       . join(" ", explain($fields)) =~ s{\s+}{ }gr . ": $priority");
}

ok($t->wait_log(qr/invalid priority "abc", using 0/),
   'a priority that is none is logged');

# the one place is taken from a running request of a lower priority, which goes
# on afterwards as if nothing had been

my %long = (prompt => 'Once', max_tokens => 1500, ignore_eos => \1,
            temperature => 0, cache_prompt => \0);
my $want = $t->post('/v1/completions', \%long)->{json}{choices}[0]{text};
my $low = $t->open('/v1/completions', { %long, stream => \1 },
                   headers => { 'X-Priority' => -10 });

$low->event for 1 .. 20;

my $urgent = $t->post('/v1/completions',
    { prompt => 'b', max_tokens => 5, ignore_eos => \1 },
    headers => { 'X-Priority' => 0, 'X-Name' => 'urgent' });

is($urgent->{status}, 200, 'an urgent request beside one that runs');
is($t->figure('vllm:num_preemptions_total'), 1, 'takes its place');

# while it has no place it waits, for the figures, too

my $held = $t->open_long(prompt => 'c', max_tokens => 1900,
                         headers => { 'X-Priority' => 0 });
my $is_waiting = sub { $t->figure('vllm:num_requests_waiting') == 1 };

ok(LLM::Test::wait_for(20, $is_waiting), 'who lost its place waits');
$held->close;

my @rest = $low->events;

is($low->{text}, $want, 'which goes on with the same text');
is($rest[-1]{data}, '[DONE]', 'to its end');

$t->stop;

# where nobody may wait an urgent one needs not: who runs gives way, and is not
# refused for it

$t = LLM::Test->new(pace => 0.5,
    model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=1 parallel=1'
           . ' queue=0; llm_queue 0;',
    locations => <<'END')->start;
        location /v1 { llm_api; llm_priority $http_x_priority; }
        location /normal { llm_api; }
        location /five { llm_api; llm_priority 5; }
        location = /health { llm_health; access_log off; }
        location = /metrics { llm_metrics; access_log off; }
END

$low = $t->open('/normal/completions', { %long, stream => \1 });
$low->event for 1 .. 5;

my %short = (prompt => 'b', max_tokens => 5, ignore_eos => \1);

for (['/normal', 0, 429], ['/v1', 0, 429], ['/v1', -3, 429], ['/v1', 1, 200],
     ['/five', 0, 200])
{
    my ($where, $priority, $status) = @$_;
    my $res = $t->post("$where/completions", \%short,
                       headers => { 'X-Priority' => $priority });

    is($res->{status}, $status, "$where, priority $priority: $status")
        or diag($res->{body});
}

# two that give way, one after another, come back in turn

my $five = $t->open('/five/completions',
                    { %long, max_tokens => 300, stream => \1 });
$five->event for 1 .. 5;

is($t->post('/five/completions', \%short)->{status}, 429,
   'an equal would wait');
is($t->post('/v1/completions', \%short, headers => { 'X-Priority' => 50 })
     ->{status}, 200, 'a third does not');

is(($five->events)[-1]{data}, '[DONE]', 'the second goes on to its end');
is(($low->events)[-1]{data}, '[DONE]', 'then the first');
is($low->{text}, $want, 'with the same text');
is($t->post('/normal/completions', \%short)->{status}, 200,
   'then the place is free');

$t->stop;

done_testing();
