#!/usr/bin/perl

# llm_metrics: well-formed, and the figures are what was asked of the server.

use strict;
use warnings;

use LLM::Test qw(slurp);
use Test::More;

my $t = LLM::Test->new(workers => 2, pace => 0.5,
    model => 'llm_model "de\"mo" %%ROOT%%/models/demo.gguf threads=1'
           . ' parallel=4;',
    locations => <<'END')->start;
        location /v1 { llm_api; }
        location = /health { llm_health; }
        location = /metrics { llm_metrics; }
        location = /metrics.json { llm_metrics json; }
END


my %type;


# { 'name{labels}' => value }; dies of lines that are none

sub scrape {
    my $res = $t->get('/metrics');

    die $res->{status} if $res->{status} != 200;

    my (%v, %help);

    %type = ();

    for (split /\n/, $res->{body}) {
        if (/^# HELP (\S+) \S/) {
            die "two helps: $1" if $help{$1}++;
        } elsif (/^# TYPE (\S+) (gauge|counter|histogram)$/) {
            $type{$1} = $2;
        } elsif (/^([a-zA-Z_:][\w:]*)(\{(?:\w+="(?:[^"\\]|\\.)*",?)*\})? (\S+)$/) {
            my ($name, $labels, $value) = ($1, $2 // '', $3);
            my $base = $name =~ s/_(?:bucket|sum|count)$//r;

            die "no type: $name" unless $type{$name} || $type{$base};
            die "no number: $_" unless $value =~ /^-?[\d.]+(?:e[-+]?\d+)?$/;
            die "twice: $_" if exists $v{"$name$labels"};

            $v{"$name$labels"} = $value;
        } else {
            die "not a line: $_";
        }
    }

    return \%v;
}

like($t->get('/metrics')->{body}, qr/^llm_request_memory_bytes\{/m,
     'the memory of requests');
is($t->get('/metrics')->{headers}{'content-type'},
   'text/plain; version=0.0.4', 'content type');

my $m = '{model_name="de\"mo"}';
my $before = scrape();

# what dashboards and inference routers ask for

ok(exists $before->{"vllm:$_$m"}, "vllm:$_")
    for qw(num_requests_running num_requests_waiting kv_cache_usage_perc
           prefix_cache_queries_total prefix_cache_hits_total
           prompt_tokens_total generation_tokens_total
           num_preemptions_total);

for my $name (qw(time_to_first_token inter_token_latency e2e_request_latency
                 request_queue_time request_prefill_time
                 request_decode_time))
{
    my $h = "vllm:${name}_seconds";

    is($type{$h}, 'histogram', $h);
    ok(exists $before->{"${h}_$_$m"}, "its $_") for qw(sum count);
    ok((grep { /^\Q${h}_bucket{model_name="de\"mo",le="\E/ } keys %$before),
       'its buckets') or diag(join "\n", grep { /\Q$h/ } keys %$before);
}

ok(exists $before->{'vllm:request_success_total{model_name="de\"mo",'
                    . "finished_reason=\"$_\"}"}, "finished_reason $_")
    for qw(stop length abort);

my ($version) = slurp('engine/base/version.h') =~ /LLM_VERSION  "(.*)"/;
my ($nginx) = `nginx -v 2>&1` =~ m{nginx/([\d.]+)};

is($before->{qq(llm_build_info{version="$version",nginx="$nginx"})}, 1,
   'what was built');

ok(exists $before->{"llm_worker_${_}_total{worker=\"1\"}"}, "llm_worker_$_")
    for qw(token_events wakeups writes);

my $prompt = join ' ', 1 .. 60;
my $usage = $t->post('/v1/completions', { prompt => $prompt,
    max_tokens => 20, ignore_eos => \1 })->{json}{usage};
# no token without text: none that ends, and the likeliest are numbers
my $again = $t->open('/v1/completions', { prompt => $prompt,
    max_tokens => 30, min_tokens => 30, temperature => 0, stream => \1 });

$again->events;

my $after;

LLM::Test::wait_for(5, sub {
    $after = scrape();
    $after->{"vllm:e2e_request_latency_seconds_count$m"} == 2;
});

sub grown { $after->{$_[0]} - $before->{$_[0]} }

is(grown("vllm:prompt_tokens_total$m"), 2 * $usage->{prompt_tokens},
   'prompt tokens');
is(grown("vllm:generation_tokens_total$m"), 50, 'generated tokens');
is(grown("vllm:e2e_request_latency_seconds_count$m"), 2, 'requests');
is(grown("vllm:time_to_first_token_seconds_count$m"), 2, 'first tokens');
is(grown("vllm:inter_token_latency_seconds_count$m"), 48, 'other tokens');
is(grown("llm_step_rows_sum$m"),
   grown("llm_prompt_tokens_computed_total$m") + 19 + 29,
   'rows of steps: all tokens but the last of each answer');
is(grown("llm_step_rows_count$m"), grown("llm_steps_total$m"),
   'for each step');
is(grown('vllm:request_success_total{model_name="de\"mo",'
         . 'finished_reason="length"}'), 2, 'finished by length');
cmp_ok(grown("vllm:prefix_cache_hits_total$m"), '>', 0, 'prefix hits');
cmp_ok(grown("vllm:prefix_cache_queries_total$m"), '>=',
       grown("vllm:prefix_cache_hits_total$m"), 'prefix queries');
is($after->{"vllm:num_requests_running$m"}, 0, 'none is running');

my $le = 'vllm:e2e_request_latency_seconds_bucket{model_name="de\"mo",le=';

cmp_ok($after->{qq($le"0.3"})}, '<=', $after->{qq($le"0.5"})},
       'buckets are cumulative');
is($after->{qq($le"+Inf"})},
   $after->{"vllm:e2e_request_latency_seconds_count$m"}, '+Inf is all');

my ($events, $wakeups, $writes) = map {
    my $name = $_;
    my $sum = 0;
    $sum += $after->{"llm_worker_${name}_total{worker=\"$_\"}"} for 0, 1;
    $sum;
} qw(token_events wakeups writes);

cmp_ok($events, '>=', 30, 'token events');
cmp_ok($wakeups, '>', 0, 'wake-ups');
cmp_ok($wakeups, '<=', $events + 40, 'no more than one a step');
cmp_ok($writes, '>', 0, 'writes');
cmp_ok($writes, '<=', $events + 10, 'no more than one a step');

# while one runs

my $s = $t->open_long(max_tokens => 1900);

$s->event;
$after = scrape();
is($after->{"vllm:num_requests_running$m"}, 1, 'one is running');
cmp_ok($after->{"vllm:kv_cache_usage_perc$m"}, '>', 0, 'it holds pages');
like(join(' ', keys %$after),
     qr/vllm:cache_config_info\{model_name=".*",block_size="16",num_gpu_blocks="[1-9]\d*"\}/,
     'how large its cache is, as inference routers read it');
cmp_ok($after->{"vllm:kv_cache_usage_perc$m"}, '<', 0.25,
       'a part of those for four');

sub streams {
    my $v = scrape();

    return $v->{'llm_worker_streams{worker="0"}'}
           + $v->{'llm_worker_streams{worker="1"}'};
}

is(streams(), 1, 'one is streamed');
$s->close;
ok(LLM::Test::wait_for(20, sub { streams() == 0 }), 'until its client leaves');

# JSON

my $json = $t->get('/metrics.json')->{json};

is("$json->{version} $json->{nginx}", "$version $nginx", 'JSON: versions');
is($json->{models}[0]{name}, 'de"mo', 'JSON: model');
is($json->{models}[0]{prompt_tokens} >= 2 * $usage->{prompt_tokens}, 1,
   'JSON: prompt tokens');
is(scalar @{ $json->{workers} }, 2, 'JSON: workers');

is($t->post('/metrics', {})->{status}, 405, 'GET only');

$t->stop;


# how much the figures have grown when the code is through; the last
# counts may come after the last byte

sub figures_of {
    my ($code) = @_;
    my %sum;

    for my $sign (-1, 1) {
        my $f;

        LLM::Test::wait_for(5, sub {
            $f = $t->figures;
            $f->{running} == 0 && $f->{waiting} == 0
        });

        $sum{$_} += $sign * $f->{$_} for qw(generation_tokens steps);

        for my $w (@{ $f->{workers} }) {
            $sum{$_} += $sign * $w->{$_} for qw(token_events wakeups writes);
        }

        $code->() if $sign < 0;
    }

    return %sum;
}


# one write for each stream and step, one wake-up for each worker and step,
# however many choices a stream has, or streams a worker; a few more, where a
# worker that is awake anyhow finds the first half of a step's events

for my $workers (1, 2) {
    $t = LLM::Test->new(workers => $workers, listen => 'reuseport',
        model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=1'
               . ' parallel=16;')->start;

    for my $case ([ 'one stream of 12 choices', 1, 12 ],
                  [ '12 streams', 12, 1 ], [ '3 streams of 4', 3, 4 ])
    {
        my ($name, $streams, $n) = @$case;

        $name .= ", $workers worker(s)";

        my %sum = figures_of(sub {
            $_->events for map {
                $t->open('/v1/completions', { prompt => 'a', n => $n,
                    max_tokens => 100, ignore_eos => \1, stream => \1 })
            } 1 .. $streams;
        });

        is($sum{generation_tokens}, 1200, "$name: tokens");
        cmp_ok($sum{token_events}, '>', 900, "$name: and their events");

        # beside the steps: that a request has begun, the last words

        cmp_ok($sum{wakeups}, '<=', $workers * $sum{steps} + 2 * $streams,
               "$name: wake-ups for $sum{steps} steps");
        cmp_ok($sum{writes}, '<=', $streams * (100 + 20),
               "$name: writes");
    }

    $t->stop(name => "$workers worker(s)");
}

# counters go on over reloads, whatever other models come and go, and while
# the old engine still serves; gauges are the new engine's

$t = LLM::Test->new(workers => 2, model =>
    'llm_model a %%ROOT%%/models/demo.gguf threads=1 parallel=2 default;',
    http => 'llm_tenant $http_x_tenant;', locations => <<'END')->start;
        location /v1 { llm_api; llm_slo all; }
        location = /health { llm_health; }
        location = /metrics { llm_metrics tenants=3; }
END

sub ask {
    $t->post('/v1/completions', { prompt => 'a b c', max_tokens => 5,
             ignore_eos => \1, @_ }, headers => { 'X-Tenant' => 't' });
}

sub counters {
    my $v = scrape();

    return { map { $_ => $v->{$_} }
             grep { /^([^{]*?)(?:_(?:bucket|sum|count))?\{/
                    && (($type{$1} // '') ne 'gauge')
                    && !/model_name="[bc]"/ }
             keys %$v };
}

ask() for 1 .. 3;
$t->open('/v1/completions', { prompt => 'a', stream => \1,
         max_tokens => 3 })->events;
LLM::Test::wait_for(5, sub {
    scrape()->{'llm_slo_requests_total{slo="all"}'} == 4
});

# it is parked before it ends, however long the reloads take

my $late = $t->open_long(max_tokens => 3500, logprobs => 5, rcvbuf => 4096);

$late->event;

my %models = map { $_ => "llm_model $_ %%ROOT%%/models/demo.gguf threads=1"
                         . ' parallel=2;' } 'a' .. 'c';
my $then = counters();
my $conf = $t->conf;

for my $now ([ 'b', 'a' ], [ 'a' ], [ 'c', 'b', 'a' ]) {
    $t->write_conf($conf =~ s/llm_model a [^\n]*/join '', @models{@$now}/er);
    $t->reload;
    $t->wait_ready or die 'not ready';

    my $new = counters();
    my @less = grep { ($new->{$_} // -1) < $then->{$_} } keys %$then;

    is("@less", '', "@$now: no counter has less");
    $then = $new;
}

is($t->figure('vllm:num_requests_running'), 0,
   'what an old engine runs is not in the gauges');

my $had = scrape();

$late->close;
ok(LLM::Test::wait_for(20, sub {
    my $now = scrape();

    $now->{'vllm:request_success_total{model_name="a",'
           . 'finished_reason="abort"}'}
        > $had->{'vllm:request_success_total{model_name="a",'
                 . 'finished_reason="abort"}'}
}), 'but it still counts');
ok(LLM::Test::wait_for(20, sub {
    (scrape()->{'vllm:prompt_tokens_total{model_name="c"}'} // 1) == 0
}), 'a new model has nothing');
is(scrape()->{'llm_requests_total{model_name="a",endpoint="completions",'
              . 'code="200"}'}, 5, 'its requests');

# a dead engine's are there, too

kill 'KILL', $t->engine_worker;
LLM::Test::wait_for(20, sub { $t->workers == 2 });
$t->wait_ready or die 'not ready';

my $left = counters();

is(join(' ', grep { ($left->{$_} // -1) < $had->{$_} } keys %$left), '',
   'an engine that died takes none with it');
$t->stop(name => 'reloads', allow => qr{exited on signal 9});


# what requests take is shown while they are there

$t = LLM::Test->new->start;

my $many = $t->open('/v1/completions', { prompt => 'a', n => 100,
    max_tokens => 500, ignore_eos => \1, stream => \1 });

ok(LLM::Test::wait_for(20, sub { $t->figures->{request_memory} > 20_000 }),
   'memory of a request');
$many->close;
ok(LLM::Test::wait_for(20, sub { $t->figures->{request_memory} == 0 }),
   'none is left of it');
$t->stop(name => 'memory');

# and the memory of a model, while it is loaded

$t = LLM::Test->new(model =>
    'llm_model demo %%ROOT%%/models/demo.gguf threads=1 parallel=2 ctx=512'
    . ' lazy idle=1s;')->start;

my $size = -s "$LLM::Test::ROOT/models/demo.gguf";

sub memory { my $f = $t->figures; "$f->{weights} $f->{kv_cache}" }

is(memory(), '0 0', 'a model that is not loaded takes no memory');
$t->post('/v1/completions', { prompt => 'a', max_tokens => 1 });

my ($weights, $kv) = split / /, memory();

cmp_ok($weights, '>', $size / 2, 'the weights of one that is');
cmp_ok($weights, '<=', $size, 'are as large as in its file');
cmp_ok($kv, '>', 0, 'there are pages');
ok(LLM::Test::wait_for(20, sub { memory() eq '0 0' }), 'it is unloaded');
$t->stop(name => 'a model that comes and goes');

done_testing();
