#!/usr/bin/perl

# Many clients at once on few pages: several workers, tenants, priorities,
# salts and choices, with streams and without; some go away, some stop
# reading for a while.  Whoever stays has what the request gives alone, and
# nothing is left behind.

use strict;
use warnings;

use IO::Select;
use LLM::JSON;
use LLM::Test;
use Test::More;
use Time::HiRes qw(time);

my $TOTAL = $ENV{LLM_SAN} ? 60 : 200;
my $ATONCE = 24;

srand(my $seed = $ENV{LLM_SEED} // 1);
note("LLM_SEED=$seed");

my $t = LLM::Test->new(workers => 3, listen => 'reuseport sndbuf=16k',
    model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=2 parallel=10'
           . ' ctx=640 kv_cache=4m batch=64; llm_queue 64 timeout=10m;',
    locations => <<'END')->start;
        location /v1 { llm_api; llm_priority $http_x_priority;
                       llm_tenant $http_x_tenant weight=$http_x_weight;
                       llm_stream_buffer 8k; llm_heartbeat 100ms; }
        location = /health { llm_health; }
        location = /metrics { llm_metrics; }
END

my $long = join ' ', map { "item $_ is blue." } 1 .. 30;
my @kinds = map { {
    prompt => "$_ times " . substr($long, 0, 13 * $_ % 400) . " and $_",
    seed => $_, temperature => $_ % 4 ? 1 : 0, n => $_ % 5 ? 1 : 3,
    max_tokens => 40 + 37 * $_ % 300, ignore_eos => \1,
    $_ % 3 ? () : (cache_prompt => \0),
} } 1 .. 16;


# what was said: { choice => text }, or undef when the answer is not whole

sub said {
    my ($raw) = @_;
    my ($head, $body) = split /\r\n\r\n/, $raw, 2;
    my %said;

    return if !defined $body || $head !~ m{^HTTP/1.1 200 };

    if ($head =~ /chunked/i) {
        my $text = '';

        while ($body =~ s/^([0-9a-f]+)\r\n//i) {
            my $n = hex $1;

            return if length $body < $n + 2;
            $text .= substr $body, 0, $n;
            substr $body, 0, $n + 2, '';
        }

        $body = $text;
    }

    for (split /\n\n/, $head =~ /event-stream/ ? $body : "data: $body") {
        next if /^:/ || $_ eq 'data: [DONE]';
        s/^data: // or return;

        for my $c (@{ decode_json($_)->{choices} || return }) {
            $said{$c->{index}} .= $c->{text};
        }
    }

    return if $head =~ /event-stream/ && $body !~ /data: \[DONE\]\n\n$/;
    return \%said;
}


sub ask {
    my ($kind, $stream) = @_;

    return $t->open('/v1/completions',
        { %$kind, stream => $stream ? \1 : \0,
          cache_salt => 'salt' . int rand 2 },
        rcvbuf => 4096, headers => {
            'X-Tenant' => 'tenant' . int rand 3,
            'X-Weight' => 1 + int rand 3,
            'X-Priority' => int(rand 5) - 2 });
}


# reads what there is; true at the end

sub reads {
    my ($client) = @_;

    my $n = sysread $client->{socket}, $client->{buffer}, 65536,
                    length $client->{buffer};
    return !$n;
}


my @alone;

for my $kind (@kinds) {
    my $client = ask($kind, 0);

    1 until reads($client);
    push @alone, said($client->{buffer});
    $client->close;
}

is(scalar(grep { defined } @alone), 16, 'each request alone');

my (%live, %bad, $started, $gone, $good);

$started = $gone = $good = 0;

my $end = time + 300 * $LLM::Test::SLOW;

while (time < $end && ($started < $TOTAL || %live)) {
    while ($started < $TOTAL && keys %live < $ATONCE) {
        my $i = int rand @kinds;
        my $client = ask($kinds[$i], rand() < 0.6);

        $client->{kind} = $i;
        $client->{leaves} = rand() < 0.3 ? int rand 6000 : undef;
        $live{fileno $client->{socket}} = $client;
        $started++;
    }

    # now and then somebody does not read for a while
    my @ready = IO::Select->new(map { $_->{socket} }
                                grep { !$_->{sleeps} || !$_->{sleeps}-- }
                                values %live)->can_read(0.02);

    for my $socket (@ready) {
        my $fd = fileno $socket;
        my $client = $live{$fd};
        my $ended = reads($client);

        $client->{sleeps} = int rand 40 if rand() < 0.05;

        if ($ended) {
            my $said = said($client->{buffer});
            my $want = $alone[$client->{kind}];

            if ($said && join("\0", %$want{sort keys %$want})
                         eq join("\0", %$said{sort keys %$said}))
            {
                $good++;

            } else {
                $bad{$client->{kind}} = $client->{buffer};
            }

        } elsif (defined $client->{leaves}
                 && length $client->{buffer} > $client->{leaves})
        {
            $gone++;

        } else {
            next;
        }

        $client->close(reset => rand() < 0.5);
        delete $live{$fd};
    }
}

is(scalar keys %live, 0, 'all have ended');
is_deeply([ sort keys %bad ], [], "$good stayed and have their text")
    or diag((values %bad)[0]);
is($good + $gone, $TOTAL, "$gone went away");
cmp_ok($gone, '>', 0, 'some did');
cmp_ok($t->figure('vllm:num_preemptions_total'), '>', 0,
       $t->figure('vllm:num_preemptions_total') . ' times preempted');

ok(LLM::Test::wait_for(10, sub {
    $t->figure('vllm:num_requests_running') == 0
        && $t->figure('vllm:num_requests_waiting') == 0
        && $t->figure('llm_requests_parked') == 0
        && $t->figure('llm_kv_pages_used') == 0;
}), 'no sequence and no page is left');

my $last = ask($kinds[0], 1);

1 until reads($last);
is_deeply(said($last->{buffer}), $alone[0], 'and the next one is served');
$last->close;

$t->stop;

done_testing();
