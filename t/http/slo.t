#!/usr/bin/perl

# llm_slo: which requests count for an objective, which of them met it; kept
# over a reload; and what nginx -t says of directives that make no sense.

use strict;
use warnings;

use LLM::Metrics;
use LLM::Test;
use Test::More;

my $t = LLM::Test->new(workers => 2, pace => 0.5, model => <<'END',
    llm_model demo %%ROOT%%/models/demo.gguf threads=1 parallel=2;
    llm_queue 1;
    llm_token_zone $http_x_key zone=keys:1m requests=1/h;
    llm_token_zone $http_x_key zone=days:1m day=1;
END
    http => 'llm_slo outer;', locations => <<'END')->start;
        location /v1 { llm_api; llm_slo easy ttft=1h itl=1h e2e=1h;
                       llm_slo hard e2e=1ms;
                       llm_slo small prompt=8; llm_slo brief completion=120; }
        location /short { llm_timeout 150ms; llm_api;
                          llm_slo small prompt=8;
                          llm_slo easy ttft=1h itl=1h e2e=1h; }
        location /quota { llm_token_limit zone=keys; llm_api;
                          llm_slo quota; }
        location /slow { llm_stream_buffer 4k; limit_rate 20k; llm_api;
                         llm_slo steady itl=1ms;
                         llm_slo easy ttft=1h itl=1h e2e=1h; }
        location /first { llm_api; llm_slo first ttft=1ms;
                          llm_slo easy ttft=1h itl=1h e2e=1h; }
        location /day { llm_token_limit zone=days; llm_api; llm_slo quota; }
        location /outer { llm_api; }
        location /large { llm_stream_buffer 4k; llm_api; llm_slo quota; }
        location /vector { llm_api; llm_slo first ttft=1ms; }
        location = /health { llm_health; }
        location = /metrics { llm_metrics; }
        location = /json { llm_metrics json; }
END

my %a = (prompt => 'a', max_tokens => 100, ignore_eos => \1);
my %was;


# how much the counts of objectives have grown: { name => "good/total" }

sub grown {
    my $m = LLM::Metrics->scrape($t);
    my %now;

    for my $slo (map { $_->{labels}{slo} }
                 $m->samples('llm_slo_requests_total'))
    {
        my @n = map { $m->sum("llm_slo_${_}requests_total", slo => $slo) }
                'good_', '';

        $now{$slo} = \@n;
    }

    my %more = map {
        my @n = @{ $now{$_} };
        my @w = @{ $was{$_} // [ 0, 0 ] };
        my $text = ($n[0] - $w[0]) . '/' . ($n[1] - $w[1]);
        $text eq '0/0' ? () : ($_ => $text);
    } keys %now;

    return (\%more, \%now);
}


# requests are counted when they are logged, a bit later

sub counts {
    my ($name, $want, $code) = @_;
    my $got;

    $code->();

    LLM::Test::wait_for(%$want ? 20 : 0.05, sub {
        ($got) = grown();
        %$want && join('|', map { "$_=$got->{$_}" } sort keys %$got)
                  eq join('|', map { "$_=$want->{$_}" } sort keys %$want);
    });

    ($got, my $now) = grown();
    is_deeply($got, $want, $name);
    %was = %$now;
}

counts('nothing yet', {}, sub { });
counts('a request', { easy => '1/1', hard => '0/1', small => '1/1',
                      brief => '1/1' },
       sub { $t->post('/v1/completions', \%a) });
counts('a stream', { easy => '1/1', hard => '0/1', small => '1/1',
                     brief => '1/1' },
       sub { $t->open('/v1/completions', { %a, stream => \1 })->events });
counts('a long prompt', { easy => '1/1', hard => '0/1', brief => '1/1' },
       sub { $t->post('/v1/completions', { %a, prompt => 'a b ' x 20 }) });
counts('a long answer', { easy => '1/1', hard => '0/1', small => '1/1' },
       sub { $t->post('/v1/completions', { %a, max_tokens => 130 }) });
counts('a long time to the first token', { easy => '1/1', first => '0/1' },
       sub { $t->post('/first/completions', { %a, prompt => 'a b ' x 600 }) });
counts('a long time from token to token', { easy => '1/1', steady => '0/1' },
       sub { $t->open('/slow/completions', { %a, logprobs => 5,
                                             stream => \1 })->events });
counts('what needs no model', {}, sub {
    $t->post('/v1/tokenize', { prompt => 'a' });
    $t->get('/v1/models');
});
counts('errors of the client', {}, sub {
    $t->post('/v1/completions', '{');
    $t->post('/v1/completions', { %a, model => 'none' });
    $t->post('/v1/completions', { %a, temperature => 'warm' });
    $t->post('/v1/nothing', \%a);
});
counts('inherited', { outer => '1/1' },
       sub { $t->post('/outer/completions', \%a) });

SKIP: {
    my $res = $t->post('/short/completions', { %a, n => 8,
                                               max_tokens => 1900 });

    my ($more, $now);

    LLM::Test::wait_for(2, sub { ($more, $now) = grown(); %$more });
    %was = %$now;
    skip 'this machine is too fast', 1 if $res->{status} == 200;

    counts('time runs out', { easy => '0/1', small => '0/1' },
           sub { $t->post('/short/completions', { %a, n => 8,
                                                  prompt => 'a b ' x 20,
                                                  max_tokens => 1900 }) });
}

counts('an answer that is too large for who does not stream', {}, sub {
    is($t->post('/large/completions', { %a, max_tokens => 1900, logprobs => 5,
                                        n => 4 })->{json}{error}{code},
       'answer_too_large', 'is an error of the client');
});

counts('a quota', { quota => '1/1' }, sub {
    my @status = map { $t->post('/quota/completions', \%a,
                                headers => { 'X-Key' => 'k' })->{status} }
                 1 .. 2;
    is("@status", '200 429', 'allows one');
});

counts('of a day', {}, sub {
    is($t->post('/day/completions', \%a, headers => { 'X-Key' => 'k' })
         ->{json}{error}{code}, 'insufficient_quota', 'that is used up');
});

# a client that leaves: what it had met its bounds, or did not

counts('a client that left', { hard => '0/1' }, sub {
    my $s = $t->open('/v1/completions', { %a, max_tokens => 1900,
                                          stream => \1 });

    $s->event for 1 .. 50;              # which takes more than a millisecond
    $s->close;
    LLM::Test::wait_for(20, sub {
        $t->figure('vllm:num_requests_running') == 0
    });
});

# both places are taken for long, and two may wait

my $held = $t->open('/outer/completions', { %a, max_tokens => 3900, n => 16 });

LLM::Test::wait_for(20, sub { $t->figure('vllm:num_requests_running') == 2 })
    or die 'nothing runs';

counts('a client that left before its turn', { first => '0/1' }, sub {
    my $s = $t->open('/first/completions', \%a);

    $t->wait_queued(1) or die 'nobody waits';
    select undef, undef, undef, 0.01;   # longer than its bound
    $s->close;
});
$t->wait_queued(0) or die 'it still waits';

counts('what has no first token does not wait for one', {}, sub {
    my $s = $t->open('/vector/embeddings', { input => 'a' });

    $t->wait_queued(1) or die 'nobody waits';
    select undef, undef, undef, 0.01;   # longer than the bound
    $s->close;
});
$t->wait_queued(0) or die 'it still waits';

my @next = map { $t->open('/outer/completions', \%a) } 1, 2;

$t->wait_queued(2) or die 'nobody waits';
counts('a full queue', { easy => '0/1', hard => '0/1', small => '0/1',
                         brief => '0/1' }, sub {
    is($t->post('/v1/completions', \%a)->{status}, 429, 'it is full');
});
$_->close for $held, @next;

LLM::Test::wait_for(20, sub {
    $t->figure('vllm:num_requests_running') == 0
        && $t->figure('vllm:num_requests_waiting') == 0
});

my (undef, $now) = grown();
my $m = LLM::Metrics->scrape($t);

is($m->sum('llm_slo_bound_seconds', slo => 'hard', bound => 'e2e'), 0.001,
   'a bound');
is(scalar($m->samples('llm_slo_bound_seconds')), 6, 'those that there are');

my $json = $t->get('/json')->{json};

is_deeply({ map { $_->{name} => [ @$_{qw(good total)} ] }
            @{ $json->{slos} } }, $now, 'JSON');
is_deeply({ map { $_->{name} => $_->{bounds} }
            grep { %{ $_->{bounds} } } @{ $json->{slos} } },
          { easy => { ttft => 3600, itl => 3600, e2e => 3600 },
            hard => { e2e => 0.001 }, first => { ttft => 0.001 },
            steady => { itl => 0.001 } }, 'and the bounds');
is($json->{lost}, 0, 'and what was lost');

$t->reload;
$t->wait_ready;
is_deeply((grown())[1], $now, 'kept over a reload');

# an objective less, another one

$t->write_conf($t->conf =~ s/llm_slo brief/llm_slo new/r);
$t->reload;
$t->wait_ready;

my $then;

LLM::Test::wait_for(20, sub { (undef, $then) = grown(); $then->{new} });
is_deeply($then, { (map { $_ => $now->{$_} }
                    grep { $_ ne 'brief' } keys %$now), new => [ 0, 0 ] },
          'a new one begins with nothing');

# and back: a configuration that is tried for a moment loses nothing

$t->write_conf($t->conf =~ s/llm_slo new/llm_slo brief/r);
$t->reload;
$t->wait_ready;

LLM::Test::wait_for(20, sub { (undef, $then) = grown(); $then->{brief} });
is_deeply($then, $now, 'one that comes back goes on');

$t->stop;


# ---- who comes too late (llm_queue ttft=) ----

$t = LLM::Test->new(model => <<'END', locations => <<'END2')->start;
    llm_model demo %%ROOT%%/models/demo.gguf threads=1 parallel=1;
    llm_queue 8 ttft=1ms;
END
        location /v1 { llm_api; llm_slo all; }
        location /free { llm_api; }
        location = /health { llm_health; }
        location = /metrics { llm_metrics; }
END2

%was = ();
is($t->post('/free/completions', { %a, prompt => 'a b ' x 200 })->{status},
   200, 'a speed is known');

$held = $t->open('/free/completions', { %a, max_tokens => 3900, n => 16 });

LLM::Test::wait_for(20, sub { $t->figure('vllm:num_requests_running') == 1 })
    or die 'nothing runs';
counts('a machine that is too busy', { all => '0/1' }, sub {
    is($t->post('/v1/completions', \%a)->{json}{error}{code}, 'overloaded',
       'it would be too late');
});
$held->close;
$t->stop;


# ---- nginx -t ----

for my $case (
    [ 'llm_slo a ttft=fast;', qr/invalid time "ttft=fast" of "llm_slo".* in .*:\d+/ ],
    [ 'llm_slo a e2e=0;', qr/invalid time "e2e=0" of "llm_slo".* in / ],
    [ 'llm_slo a prompt=-1;', qr/invalid number of tokens "prompt=-1" of "llm_slo".* in / ],
    [ 'llm_slo a speed=1;', qr/unknown parameter "speed=1" in .*:\d+/ ],
    [ 'llm_slo "" e2e=1s;', qr/the name "" must have 1 to 48 char.* in / ],
    [ 'llm_slo ttft=1s;',
      qr/"ttft=1s" of "llm_slo" must come after its name in .*:\d+/ ],
    [ 'llm_slo ' . 'n' x 49 . ';', qr/must have 1 to 48 characters in / ],
    [ 'llm_slo a e2e=1s; llm_slo a e2e=1s;',
      qr/"llm_slo" directive is duplicate in / ],
    [ 'llm_slo a e2e=1s; location /b { llm_slo a e2e=2s; }',
      qr/llm_slo "a" has other bounds in \S+:\d+ in \S+:\d+/ ],
    [ 'llm_slo a e2e=1s; location /b { llm_slo a e2e=1s; }', undef ],
    [ join(' ', map { "llm_slo s$_;" } 1 .. 65),
      qr/there are more than 64 names of llm_slo in / ],
    [ 'location /m { llm_metrics tenants=0; }',
      qr/invalid number of tenants "tenants=0", it must be from 1 to 1000 in/ ],
    [ 'location /m { llm_metrics json tenants=1001; }',
      qr/invalid number of tenants "tenants=1001"/ ],
    [ 'location /m { llm_metrics tenants=5 tenants=6; }',
      qr/duplicate parameter "tenants=6" of "llm_metrics"/ ],
    [ 'location /m { llm_metrics json prometheus; }',
      qr/unknown format "prometheus"/ ],
    [ 'location /m { llm_metrics xml; }',
      qr/unknown format "xml", it must be "prometheus" or "json" in .*:\d+/ ],
    [ 'location /m { llm_metrics tenants=5; }
       location /n { llm_metrics json tenants=9; }', undef ],
) {
    my ($conf, $want) = @$case;
    my ($rc, $text) = LLM::Test->new(server => $conf)->check;

    is($rc, defined $want ? 1 : 0, "nginx -t: $conf");
    like($text, $want // qr/test is successful/, 'and why');
}

done_testing();
