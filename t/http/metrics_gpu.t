#!/usr/bin/perl

# Figures of GPUs: what a library says that stands in for NVML is shown, as
# long as a model runs on a GPU (here the emulator); without the library, and
# without such a model, nothing is; a library that hangs keeps nobody up.

use strict;
use warnings;

use LLM::Metrics;
use LLM::Test;
use Test::More;

plan skip_all => 'no emulator is built' if !-e "$LLM::Test::OBJS/llm_emu.so";

my $MODEL = 'llm_model demo %%ROOT%%/models/demo.gguf device=emu parallel=2'
          . ' ctx=256;';
my $LOCATIONS = <<'END';
        location /v1 { llm_api; }
        location = /health { llm_health; }
        location = /metrics { llm_metrics; }
        location = /json { llm_metrics json; }
END


# options: model, define (for the library), lib (0: there is none), numbers

sub server {
    my (%o) = @_;

    my $t = LLM::Test->new(model => $o{model} // $MODEL,
                           locations => $LOCATIONS);

    LLM::Metrics->gpus($t, busy => 50, %{ $o{numbers} // {} });
    local $ENV{LD_LIBRARY_PATH} = $t->dir;

    LLM::Metrics->nvml($t, $o{define} // '') if $o{lib} // 1;

    return $t->start;
}


my ($t, $m);

sub shown { $m = LLM::Metrics->scrape($t); $m->samples('llm_gpu_info') }

$t = server();
ok(LLM::Test::wait_for(20, \&shown), 'there are GPUs');

is_deeply([ map { $_->{labels} } shown() ],
          [ map { { gpu => $_ - 1, uuid => "GPU-$_",
                    name => "NVIDIA _H${_}__" } } 1, 2 ], 'their names');
is($m->sum('llm_gpu_utilization_ratio', gpu => 0), 0.5, 'utilization');
is($m->sum('llm_gpu_utilization_ratio', gpu => 1), 0.25, 'of each');
is($m->sum('llm_gpu_memory_utilization_ratio', gpu => 0), 0.25,
   "its memory's");
is($m->sum('llm_gpu_memory_used_bytes', gpu => 0), 60 * 2**30, 'memory');
is($m->sum('llm_gpu_memory_total_bytes', gpu => 1), 80 * 2**30, 'in all');
is($m->sum('llm_gpu_power_watts'), 345.6, 'power, where it is known');
is(scalar($m->samples('llm_gpu_power_watts')), 1, 'and nowhere else');
is($m->sum('llm_gpu_temperature_celsius', gpu => 1), 41, 'temperature');
cmp_ok($m->sum('llm_model_weights_bytes'), '>', 1e5, 'weights');
cmp_ok($m->sum('llm_kv_cache_bytes'), '>', 1e5, 'KV cache');

my $gpus = $t->get('/json')->{json}{gpus};

is_deeply($gpus->[0], { uuid => 'GPU-1', name => 'NVIDIA _H1__',
          utilization => 0.5, memory_utilization => 0.25, memory => 80 * 2**30,
          memory_used => 60 * 2**30, power => 345.6, temperature => 41 },
          'JSON');

LLM::Metrics->gpus($t, busy => 80);
ok(LLM::Test::wait_for(20, sub {
    shown();
    $m->sum('llm_gpu_utilization_ratio', gpu => 0) == 0.8;
}), 'it is asked again');

# a library that hangs: the server works on, and ends

LLM::Metrics->gpus($t, busy => 80, hang => 1);
sleep 3;
is($t->post('/v1/completions', { prompt => 'a', max_tokens => 1 })->{status},
   200, 'a hanging library delays nobody');
$t->stop(signal => 'QUIT', name => 'it hangs');

# libraries that are of no use

for my $case (
    [ 'one that does not begin', [ numbers => { init => 1 } ],
      qr/no metrics of GPUs: nvmlInit_v2\(\) failed/ ],
    [ 'one that lacks something', [ define => '#define NO_SHUTDOWN' ],
      qr/no metrics of GPUs: libnvidia-ml\.so\.1 has no nvmlShutdown/ ]
) {
    my ($name, $options, $log) = @$case;

    $t = server(@$options);
    ok($t->wait_log($log), "$name: the log says so");
    is(scalar(shown()), 0, 'there are no figures');
    $t->stop(name => $name);
}

$t = server(define => '#define NO_TEMPERATURE');
ok(LLM::Test::wait_for(20, \&shown), 'one that cannot tell the temperature');
is(scalar($m->samples('llm_gpu_temperature_celsius')), 0, 'does not');
is($m->sum('llm_gpu_utilization_ratio', gpu => 0), 0.5, 'but all else');
$t->stop(name => 'no temperature');

$t = server(define => '#define LOST 0');
ok(LLM::Test::wait_for(20, \&shown), 'one of which the first GPU is lost');
is_deeply([ map { $_->{labels}{uuid} } shown() ], [ 'GPU-2' ], 'shows others');
is($m->sum('llm_gpu_utilization_ratio', gpu => 1), 0.25, 'under their numbers');
is(scalar($m->samples('llm_gpu_utilization_ratio')), 1, 'and no more');
is($t->get('/json')->{json}{gpus}[1]{uuid}, 'GPU-2', 'in JSON, too');
$t->stop(name => 'a GPU that is lost');

SKIP: {
    skip 'this machine has NVML', 2
        if `ldconfig -p 2> /dev/null` =~ /libnvidia-ml\.so\.1/;

    $t = server(lib => 0);
    ok($t->wait_log(qr/no metrics of GPUs: there is no libnvidia-ml\.so\.1/),
       'no library: the log says so');
    is(scalar(shown()), 0, 'there are no figures');
    $t->stop(name => 'no library');
}

$t = server(model => LLM::Test::default_model());
sleep 1;
is(scalar(shown()), 0, 'nobody asks where all models are on the CPU');
unlike($t->log, qr/GPUs/, 'nor says anything');
$t->stop(name => 'CPU');

done_testing();
