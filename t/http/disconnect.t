#!/usr/bin/perl

# A client that goes away gives its place back at the next step, however it
# goes; llm_ignore_client_abort lets a half-closed one have its answer.

use strict;
use warnings;

use LLM::Test;
use Socket qw(SHUT_WR);
use Test::More;
use Time::HiRes qw(sleep);

my $t = LLM::Test->new(pace => 0.5,
    model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=2 parallel=1;',
    locations => <<'END');
        location /v1 { llm_api; }
        location /patient { llm_ignore_client_abort on; llm_api; }
        location = /health { llm_health; }
        location = /figures { llm_metrics json; }
END

$t->start;

my $next = { prompt => 'b', max_tokens => 1, stream => \1 };

# the model's only place answers the next request

sub next_one {
    my $s = $t->open('/v1/completions', $next);

    return ($s->events)[-1]{data};
}

next_one();


# Whoever has gone is not served to its end: what was computed until the next
# request has its answer is less than that.

sub gone {
    my ($name, $code) = @_;

    my $before = $t->figures->{generation_tokens};

    $code->();

    is(next_one(), '[DONE]', "$name: the place is free");
    cmp_ok($t->figures->{generation_tokens} - $before, '<', 1900,
           "$name: before all was computed");
}

my %whole = (max_tokens => 1900);

gone('closed in mid-stream', sub {
    my $s = $t->open_long(%whole);
    $s->event for 1 .. 3;
    $s->close;
});

gone('reset in mid-stream', sub {
    my $s = $t->open_long(%whole);
    $s->event for 1 .. 3;
    $s->close(reset => 1);
});

gone('half-closed in mid-stream', sub {
    my $s = $t->open_long(%whole);
    $s->event for 1 .. 3;
    shutdown $s->{socket}, SHUT_WR;
});

gone('closed without streaming', sub {
    my $s = $t->open('/v1/completions', { prompt => 'a', ignore_eos => \1,
                                          max_tokens => 1900 });
    sleep 0.05;
    $s->close;
});

gone('closed before anything came', sub {
    $t->open_long(%whole)->close;
});

gone('closed while queued', sub {
    my $running = $t->open_long(%whole);
    $running->event;
    my $queued = $t->open_long(%whole);
    sleep 0.1;
    $queued->close;
    sleep 0.05;
    $running->close;
});

gone('request and FIN in one go', sub {
    my $s = $t->open_long(%whole);
    shutdown $s->{socket}, SHUT_WR;
});

gone('fifty at once', sub {
    $_->close for map { $t->open_long(%whole) } 1 .. 50;
});


# a client that only says it has nothing more to send

my $s = LLM::Client->open(port => $t->port, method => 'POST',
    path => '/patient/completions',
    body => { prompt => 'a', ignore_eos => \1, max_tokens => 200,
              stream => \1 });
shutdown $s->{socket}, SHUT_WR;

my @events = $s->events;

is($events[-1]{data}, '[DONE]', 'llm_ignore_client_abort: whole stream');

# one that goes away altogether still ends when it is written to

gone('llm_ignore_client_abort, reset', sub {
    LLM::Client->open(port => $t->port, method => 'POST',
        path => '/patient/completions',
        body => { prompt => 'a', ignore_eos => \1, max_tokens => 1900,
                  stream => \1 })->close(reset => 1);
});

$t->stop;


# in the midst of a prompt that takes many seconds: its rest is not computed

$t = LLM::Test->new(
    model => 'llm_model demo ' . LLM::Test::random_model(4, 40960)
           . ' threads=1 parallel=1;')->start;

my $prompt = [ map { 300 + $_ % 1000 } 1 .. 35_000 ];

for my $case ([ 'closed', 1, sub { $_[0]->close } ],
              [ 'reset', 1, sub { $_[0]->close(reset => 1) } ],
              [ 'half-closed', 1, sub { shutdown $_[0]{socket}, SHUT_WR } ],
              [ 'closed without streaming', 0, sub { $_[0]->close } ])
{
    my ($name, $stream, $go) = @$case;

    for (1 .. 3) {
        my $before = $t->figures;
        my $s = $t->open('/v1/completions', { prompt => $prompt,
            max_tokens => 2, stream => $stream ? \1 : \0 });

        ok(LLM::Test::wait_for(20, sub {
            my $f = $t->figures;
            $f->{running} == 1 && $f->{steps} >= $before->{steps} + 3
        }), "$name in mid-prefill: it has begun");
        is($t->figures->{time_to_first_token}{count},
           $before->{time_to_first_token}{count},
           "$name in mid-prefill: and is in its midst");

        $go->($s);
        is(next_one(), '[DONE]', "$name in mid-prefill: the place is free");
        cmp_ok($t->figures->{prompt_tokens_computed}
               - $before->{prompt_tokens_computed}, '<', scalar @$prompt,
               "$name in mid-prefill: before all was computed");
    }
}

$t->stop(name => 'prefill');

done_testing();
