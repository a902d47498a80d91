#!/usr/bin/perl

# Whole requests over HTTP by chance (t/fuzz/http): every parameter at its
# edges, broken bodies and broken HTTP, clients that leave or do not read.
# No worker dies, every answer is as it should be, nothing is left behind.
#
# LLM_FUZZ_HTTP_SECONDS (60), LLM_FUZZ_HTTP_REQUESTS (no limit),
# LLM_FUZZ_SEED (1), LLM_FUZZ_FIRST (0: number of the first script),
# LLM_FUZZ_HTTP_MODEL (the demo model; the second one has recurrent layers).
# What fails is tried alone and made smaller; the requests of earlier
# failures, in t/fuzz/corpus/http, come first.

use strict;
use warnings;

use File::Basename qw(basename);
use LLM::JSON;
use LLM::GGUF;
use LLM::Test;
use Test::More;
use Time::HiRes qw(sleep);

my $ROOT = $LLM::Test::ROOT;
my $FUZZ = "$LLM::Test::OBJS/fuzz-http";
my $SLOW = $LLM::Test::SLOW;

my $seconds = $ENV{LLM_FUZZ_HTTP_SECONDS} // 60;
my $seed = $ENV{LLM_FUZZ_SEED} // 1;
my $first = $ENV{LLM_FUZZ_FIRST} // 0;
my @most = $ENV{LLM_FUZZ_HTTP_REQUESTS}
           ? ('-n', $ENV{LLM_FUZZ_HTTP_REQUESTS}) : ();

my $demo = "$ROOT/models/demo.gguf";
my $model = $ENV{LLM_FUZZ_HTTP_MODEL} // $demo;

plan skip_all => "no $FUZZ" unless -x $FUZZ;

my $info = `$LLM::Test::OBJS/llm info $model`;
my ($vocab) = $info =~ /^vocabulary\s+(\d+)/m;
my ($ctx) = $info =~ /\.context_length = (\d+)/;

$ctx = 640 if !$ctx || $ctx > 640;


sub server {
    my $t = LLM::Test->new(workers => 2, listen => 'reuseport',
        model => "llm_model demo $model alias=gpt-4o-mini threads=1 ctx=$ctx"
               . ' default; llm_model late late.gguf threads=1 parallel=2'
               . ' ctx=256 lazy idle=2s; llm_queue 256;',
        http => 'client_max_body_size 8m;'
              . ' llm_token_zone all zone=all:1m rate=1000000000/s'
              . ' streams=$http_x_streams;',
        server => 'include %%ROOT%%/conf/llm_errors.conf; llm_max_tokens 12;',
        locations => <<'END');
        location /v1 { llm_api; }
        location /tight {
            llm_api demo; llm_max_tokens 40; llm_stream_buffer 4k;
            llm_heartbeat 5ms; llm_timeout 20s; client_body_buffer_size 1k;
            llm_tenant $http_x_tenant weight=$http_x_weight;
            llm_priority $http_x_priority;
            llm_token_limit zone=all reserve=3;
        }
        location /keep {
            llm_api demo fallback=demo; llm_ignore_client_abort on;
        }
        location /fallback/ {
            llm_api; llm_intercept_errors on;
            error_page 400 404 429 503 = @standby;
        }
        location @standby {
            rewrite ^/fallback/(.*) /$1 break;
            proxy_pass http://127.0.0.1:%%PORT%%;
        }
        location = /health { llm_health; }
        location = /figures { llm_metrics json; }
        location = /metrics { llm_metrics; }
END

    LLM::GGUF::recurrent($demo, $t->dir . '/late.gguf');

    return $t->start;
}


# the fuzz target with these parameters: true when all was well, and its words

sub fuzz {
    my ($t, @args) = @_;

    open my $out, '-|', $FUZZ, '-T', "$ROOT/engine/api",
        '-u', '127.0.0.1:' . $t->port, '-s', $seed, '-v', $vocab, @args
        or die "$FUZZ: $!";

    my $text = join '', <$out>;

    return (close $out, $text);
}


sub deaths {
    my ($t) = @_;

    sleep 0.1;
    return scalar(() = $t->log =~ /exited (?:on signal|with fatal)/g);
}


# what goes wrong with this script alone, if anything

sub alone {
    my ($t, $number, $mask) = @_;

    my $before = deaths($t);
    my ($good) = fuzz($t, '-1', $number, '-m', $mask, '-w', 5 * $SLOW);
    my $died = deaths($t) > $before;

    if ($died) {
        LLM::Test::wait_for(10, sub { $t->workers == 2 });
        $t->wait_ready;
    }

    return $died ? 'a worker dies' : $good ? '' : 'the answer is wrong';
}


# the smallest request of those under way that fails alone

sub investigate {
    my ($text) = @_;

    my ($numbers) = $text =~ /^suspects: (.*)$/m or return;
    my $t = server();

    for my $number (split ' ', $numbers) {
        my $what = alone($t, $number, 0) or next;
        my $mask = 0;

        for my $bit (63, 0 .. 40) {
            my $more = $mask | 1 << $bit;

            $mask = $more if alone($t, $number, $more) eq $what;
        }

        my (undef, $request) = fuzz($t, '-p', $number, '-m', $mask);

        diag("script $number with mask $mask, alone: $what:\n$request");
        return;
    }

    diag('none of them goes wrong alone');
}


my $t = server();

# ---- what went wrong before

for my $file (sort glob "$ROOT/t/fuzz/corpus/http/*") {
    open my $f, '<:raw', $file or die "$file: $!";
    my ($path, $body) = split /\n/, join('', <$f>), 2;

    my $before = deaths($t);
    my $res = eval { $t->post($path, $body, timeout => 20 * $SLOW) };

    like($res->{status} // $@, qr/^(?:200|400)$/, basename($file));

    if (deaths($t) > $before) {
        fail(basename($file) . ': a worker dies');
        $t->wait_ready;
    }
}

# ---- by chance

# what is allocated once is there after a while

my ($good, $text) = fuzz($t, '-n', 2000, '-i', 1e9, '-w', 60 * $SLOW);

ok($good, 'warm') or diag($text);
investigate($text) unless $good;

my @before = $t->workers;
my $deaths = deaths($t);
my %held = map { $_ => LLM::Test::holds($_) } @before;

($good, $text) = fuzz($t, '-t', $seconds, '-i', $first, '-w', 60 * $SLOW,
                      @most);

my $count = eval { decode_json(($text =~ /^(\{"seed".*)/m)[0]) } // {};

ok($good, "seed $seed: " . ($count->{requests} // 'no') . ' requests')
    or diag($text);
note($text);
diag(sprintf '%d requests in %.0f s, %d streams, %d left early; %s; '
     . '/health p99 %.1f ms', @$count{qw(requests seconds streams left)},
     join(', ', map { "$count->{status}{$_} x $_" }
          sort keys %{ $count->{status} }), $count->{health}{p99})
    if $count->{requests};

is(deaths($t) - $deaths, 0, 'no worker has died');
is(join(' ', $t->workers), join(' ', @before), 'the same workers');

if (!$good) {
    investigate($text);
    $t->stop(allow => qr/exited on signal/);
    done_testing();
    exit;
}

is($count->{health}{bad}, 0, '/health was always answered');

# ---- nothing is left

my $left;

ok(LLM::Test::wait_for(30, sub {
    $left = { map { $_ => $t->figure($_) }
              qw(vllm:num_requests_running vllm:num_requests_waiting
                 llm_requests_parked llm_kv_pages_used) };
    !grep { $_ } values %$left;
}), 'no request and no page is left') or diag(explain($left));

my $res;

for ([ 'chat/completions', messages => [ { role => 'user', content => 'a' } ],
       max_tokens => 8 ],
     [ embeddings => input => 'a' ],
     [ rerank => query => 'a', documents => [ 'b' ] ])
{
    my ($path, %body) = @$_;

    $res = $t->post("/v1/$path", \%body);
    last if ($res->{json}{error}{code} // '') ne 'unsupported_model';
}

is($res->{status}, 200, 'and the next request is served');

# a claim on the quota's account that was left would count as the one that may
# be served at a time

$res = $t->post('/tight/completions', { prompt => 'a', max_tokens => 1 },
                headers => { 'X-Streams' => 1 });
isnt($res->{status}, 429, 'no claim on the quota is left');

# memory comes back: what is freed may stay with malloc for a while

my $grown;

for my $pid (@before) {
    my $most = $held{$pid}{own} + 1024 * ($SLOW > 1 ? 512 : 48);

    LLM::Test::wait_for(10, sub {
        $grown = LLM::Test::holds($pid);
        $grown->{own} <= $most && $grown->{fds} <= $held{$pid}{fds} + 2;
    });

    diag("worker $pid: $held{$pid}{own} kB, then $grown->{own} kB; "
         . "$held{$pid}{fds} descriptors, then $grown->{fds}");
    cmp_ok($grown->{own}, '<=', $most, 'memory comes back');
    cmp_ok($grown->{fds}, '<=', $held{$pid}{fds} + 2, 'descriptors, too');
}

$t->stop;

done_testing();
