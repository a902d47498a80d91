#!/usr/bin/perl

# CPUs: what the master was given (taskset, systemd's CPUAffinity=) holds for
# the engine's threads; worker_cpu_affinity binds the worker, not its engine.

use strict;
use warnings;

use LLM::Test;
use Test::More;


# the CPUs of a thread as a list

sub cpus {
    my ($file) = @_;

    open my $f, '<', $file or return;
    my ($list) = join('', <$f>) =~ /^Cpus_allowed_list:\s*(\S+)/m or return;

    return map { /(\d+)-(\d+)/ ? $1 .. $2 : $_ } split /,/, $list;
}


# of the engine's threads, each set once; nginx's own pool is the worker's

sub engine_cpus {
    my ($pid) = @_;
    my %sets;

    for my $task (glob "/proc/$pid/task/*") {
        open my $f, '<', "$task/comm" or next;
        next unless <$f> =~ /^llm-/;

        $sets{join ',', cpus("$task/status")} = 1;
    }

    return join ' ', sort keys %sets;
}


my @all = cpus('/proc/self/status');
my $model = 'llm_model demo %%ROOT%%/models/demo.gguf device=cpu default;';

plan skip_all => 'no list of CPUs in /proc' unless @all;
plan skip_all => 'no taskset' if system('taskset -V > /dev/null 2>&1');
plan skip_all => 'one CPU only' if @all < 2;


sub bind {
    my (@cpus) = @_;

    my $list = join ',', @cpus;

    system("taskset -pc $list $$ > /dev/null") == 0 or die 'taskset';
}


# ---- taskset: one CPU, one thread ----

&bind($all[1]);

my $t = LLM::Test->new(model => $model)->start;

is(engine_cpus($t->engine_worker), $all[1], 'taskset: all threads keep it');
like($t->get('/health')->{json}{models}[0]{device}, qr/\b1 thread\b/,
     'and the model has one compute thread');

# a worker born later, too: it is the master's

my ($worker) = $t->workers;

$t->kill('KILL', $worker);
LLM::Test::wait_for(20, sub { my ($new) = $t->workers;
                              $new && $new != $worker });
ok($t->wait_ready, 'the engine of a new worker');
is(engine_cpus($t->engine_worker), $all[1], 'is bound like the first');

$t->stop(name => 'taskset', allow => qr/exited on signal 9/);


# ---- more threads than CPUs ----

my $many = $model =~ s/device=cpu/$& threads=1024/r;

$t = LLM::Test->new(model => $many)->start;
like($t->get('/health')->{json}{models}[0]{device}, qr/\b1 thread\b/,
     'threads=1024 on one CPU: one thread');
like($t->log, qr/\[warn\] .*"demo": threads=1024 is more than .*; it uses 1$/m,
     'and the log says so');
$t->stop(name => 'too many threads');


# ---- worker_cpu_affinity ----

&bind(@all);

my $mask = '1' . '0' x $all[0];

$t = LLM::Test->new(model => $model,
                    main => "worker_cpu_affinity $mask;")->start;

($worker) = $t->workers;

is(join(',', cpus("/proc/$worker/status")), $all[0], 'the worker is bound');
is(engine_cpus($worker), join(',', @all), 'its engine is not');

$t->stop(name => 'worker_cpu_affinity');

done_testing();
