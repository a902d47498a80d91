#!/usr/bin/perl

# What reads the metrics: Prometheus, by its own tool, and the dashboard and
# the alert rules in conf/, each of whose expressions asks for metrics, and
# labels of them, that there are.

use strict;
use warnings;

use LLM::JSON;
use LLM::Metrics;
use LLM::Test qw(slurp);
use Test::More;

my $emu = -e "$LLM::Test::OBJS/llm_emu.so";
my ($promtool) = grep { -x } "$LLM::Test::ROOT/.deps/promtool/promtool",
                 map { "$_/promtool" } split /:/, $ENV{PATH};

# a server that has all of them

my $t = LLM::Test->new(pace => 0.5, model => <<'END' . ($emu ? <<'END2' : ''),
    llm_model demo %%ROOT%%/models/demo.gguf threads=1 parallel=4 default;
    llm_queue 1;
END
    llm_model emulated %%ROOT%%/models/demo.gguf device=emu ctx=256;
END2
    http => 'llm_tenant $http_x_tenant;', locations => <<'END');
        location /v1 { llm_api; llm_slo chat ttft=1s itl=100ms e2e=30s; }
        location /short { llm_timeout 100ms; llm_api; }
        location = /health { llm_health; }
        location = /metrics { llm_metrics tenants=4; }
END

{
    local $ENV{LD_LIBRARY_PATH} = $t->dir;

    LLM::Metrics->gpus($t, busy => 50);
    LLM::Metrics->nvml($t);
    $t->start;
}

my $m;

# all kinds of requests, so that each has samples

for my $tenant ('', 'ann', "b\"o\\b") {
    my @h = (headers => { 'X-Tenant' => $tenant });

    $t->post('/v1/completions', { model => 'demo', prompt => 'a b c',
                                  max_tokens => 4, ignore_eos => \1 }, @h);
    $t->post('/v1/completions', { model => 'none' }, @h);
    $t->post('/short/completions', { model => 'demo', prompt => 'a', n => 100,
                                     max_tokens => 1900, stream => \1,
                                     ignore_eos => \1 }, @h);
}

LLM::Test::wait_for(30, sub {
    $m = LLM::Metrics->scrape($t);
    $m->samples('llm_tenant_requests_failed_total') == 3
        && (!$emu || $m->samples('llm_gpu_info') == 2);
}) or diag($m->{text});


# ---- the exposition format ----

SKIP: {
    skip 'there is no promtool', 4 unless $promtool;

    $t->write_file('metrics.txt', $m->{text});

    my $dir = $t->dir;
    my $said = `$promtool check metrics < $dir/metrics.txt 2>&1`;
    my $rc = $? >> 8;

    # vLLM's names have a colon, which its linter keeps for rules

    my @lines = grep { !/^vllm:\S+ metric names should not contain ':'$/ }
                split /\n/, $said;

    is(join("\n", @lines), '', 'promtool check metrics');
    ok($rc == 0 || $rc == 3, 'it could read them all');

    my $file = "$LLM::Test::ROOT/contrib/prometheus/llm_alerts.yml";
    my $rules = `$promtool check rules $file`;
    is($?, 0, 'promtool check rules') or diag($rules);

    # series that must, and must not, raise an alert

    $t->write_file('alerts.yml', alerts_test());
    $rules = `$promtool test rules $dir/alerts.yml 2>&1`;
    is($?, 0, 'alerts come when they should, and only then') or diag($rules);
}

# from its 60th minute on all goes wrong; then come those alerts that are
# named, and before none

sub alerts_test {
    my $rules = "$LLM::Test::ROOT/contrib/prometheus/llm_alerts.yml";
    my $wrong = '0+1x60 60+20x60';
    my $right = '0+100x120';
    my %series = (
        'llm_build_info{instance="a"}' => '1x120',
        'llm_requests_total{instance="a",code="200"}' => $right,
        'llm_requests_total{instance="a",code="503"}' => $wrong,
        'llm_requests_rejected_total{instance="a",reason="queue_full"}'
            => '0x60 0+3x60',
        'llm_device_errors_total{instance="a",model_name="m"}' => '0x60 1x60',
        'vllm:num_requests_waiting{instance="a",model_name="m"}'
            => '0x60 5x60',
        'llm_steps_total{instance="a",model_name="m"}' => '0+10x60 600x60',
        'vllm:num_preemptions_total{instance="a",model_name="m"}'
            => '0x60 0+60x60',
        'llm_slo_requests_total{instance="a",slo="s"}' => $right,
        'llm_slo_good_requests_total{instance="a",slo="s"}'
            => '0+100x60 6000+50x60',
        'llm_gpu_temperature_celsius{instance="a",gpu="0"}' => '60x60 95x60',
        'llm_gpu_memory_used_bytes{instance="a",gpu="0"}' => '70x60 80x60',
        'llm_gpu_memory_total_bytes{instance="a",gpu="0"}' => '80x120',
        'llm_requests_lost_total{instance="a"}' => '0x60 1x60',
        'llm_tenant_requests_lost_total{instance="a"}' => '0x120',
    );
    my $series = join '', map {
        "      - series: '$_'\n        values: '$series{$_}'\n"
    } sort keys %series;
    my $none = join '', map {
        "      - eval_time: 50m\n        alertname: $_\n"
        . "        exp_alerts: []\n"
    } slurp('contrib/prometheus/llm_alerts.yml') =~ /- alert: (\w+)/g;

    my $firing = firing(68, qw(
        LlmDeviceErrors LlmFiguresLost LlmGpuHot LlmQueueFull
        LlmServerErrors LlmStuck)) . firing(110, qw(
        LlmCacheShort LlmFiguresLost LlmGpuHot LlmGpuMemoryShort
        LlmObjectiveBurns LlmObjectiveBurnsFast LlmQueueFull LlmServerErrors
        LlmStuck));

    return <<"END";
rule_files: [ $rules ]
evaluation_interval: 1m
tests:
  - interval: 1m
    input_series:
$series
    alert_rule_test:
$none
    promql_expr_test:
$firing
END
}


# so many minutes after the beginning it is these that are

sub firing {
    my ($minute, @alerts) = @_;

    return <<"END" . join '', map {
      - expr: count by (alertname) (ALERTS{alertstate="firing"})
        eval_time: ${minute}m
        exp_samples:
END
        "          - { labels: '{alertname=\"$_\"}', value: 1 }\n"
    } @alerts;
}


# what its linter asks for, for those who have none

for my $name (sort keys %{ $m->{type} }) {
    my $type = $m->{type}{$name};

    is($name =~ /_total$/ ? 'counter' : 'other',
       $type eq 'counter' ? 'counter' : 'other',
       "$name: it is a $type");
    unlike($name, qr/(?:^|_)(?:ms|milliseconds|us|kb|mb|percent|$type)(?:_|$)/,
           'its unit is a base unit, its type is not in its name');
    like($m->{help}{$name}, qr/^[A-Z].*\.$/, 'its help is a sentence');
}

ok((grep { $_->{labels}{tenant} eq 'b"o\\b' }
    $m->samples('llm_tenant_requests_total')), 'labels are escaped');


# ---- who asks for them ----

# the metrics, and the labels, that an expression names

sub names {
    my ($expr) = @_;
    my (%metrics, %labels);

    $expr =~ s/"(?:[^"\\]|\\.)*"/""/g;
    $expr =~ s/\[[^]]*\]//g;

    while ($expr =~ s/\{([^}]*)\}//) {
        $labels{$_} = 1 for $1 =~ /(\w+)\s*[=!]/g;
    }

    while ($expr =~ s/\b(?:by|on|without|ignoring)\s*\(([^)]*)\)//) {
        $labels{$_} = 1 for $1 =~ /(\w+)/g;
    }

    $expr =~ s/\b\w+(?=\s*\()//g;
    $metrics{$_} = 1 for grep { !/^(?:and|or|unless|bool|offset)$/ }
                         $expr =~ /(?<![\w.])([a-zA-Z_:][\w:]*)/g;
    delete @labels{qw(instance le)};

    return ([ sort keys %metrics ], [ sort keys %labels ]);
}


sub asks {
    my ($where, $expr) = @_;

    my ($metrics, $labels) = names($expr);
    my %has;

    ok(scalar @$metrics, "$where: names a metric") or diag($expr);

    for my $name (@$metrics) {
        my $base = $name =~ s/_(?:bucket|sum|count)$//r;

        SKIP: {
            skip "$name: no emulator is built", 1
                if $name =~ /^llm_gpu_/ && !$emu;

            ok($m->{type}{$name} || ($m->{type}{$base} // '') eq 'histogram',
               "$where: $name is one of ours");
        }

        for my $s ($m->samples($name)) {
            $has{$_} = 1 for keys %{ $s->{labels} };
        }
    }

    ok($has{$_}, "$where: it has the label $_") for @$labels;
}


# rules are told apart without a library for YAML: a block behind "expr: |", or
# the rest of its line

my $alerts = slurp('contrib/prometheus/llm_alerts.yml');
my $n = 0;

my $rule = qr/^ +- alert: (\w+)\n +expr: (?:\|\n((?: {10}.*\n)+)|(.*)\n)/m;

while ($alerts =~ /$rule/g) {
    asks("alert $1", $2 // $3);
    $n++;
}

is($n, scalar(() = $alerts =~ /^ +- alert:/mg), 'all alerts were read');
is($n, scalar(() = $alerts =~ /^ +severity: (?:page|warn)$/mg),
   'each has a severity');

my $board = decode_json(slurp('contrib/grafana/llm_dashboard.json'));
my %id;
my @panels = grep { $_->{type} ne 'row' } @{ $board->{panels} };

for my $p (@panels) {
    ok(!$id{$p->{id}}++, "panel \"$p->{title}\"");
    cmp_ok($p->{gridPos}{x} + $p->{gridPos}{w}, '<=', 24, 'fits');
    asks("panel \"$p->{title}\"", $_->{expr} =~ s/\$__rate_interval/5m/gr)
        for @{ $p->{targets} };
}

asks('variable', $_->{query}{query} =~ s/label_values\((.*),\s*\w+\)/$1/r)
    for grep { $_->{type} eq 'query' } @{ $board->{templating}{list} };

# promtool reads the dashboard's expressions, as rules

SKIP: {
    skip 'there is no promtool', 1 unless $promtool;

    my @rules = map { map {
        my $e = $_->{expr} =~ s/\$__rate_interval/5m/gr =~ s/\$model/.*/gr;
        "      - record: a:b\n        expr: '$e'\n        labels: { n: '"
            . $n++ . "' }\n"
    } @{ $_->{targets} } } @panels;

    $t->write_file('board.yml', "groups:\n  - name: board\n    rules:\n"
                                . join('', @rules));

    my $dir = $t->dir;
    my $said = `$promtool check rules $dir/board.yml 2>&1`;
    is($?, 0, 'the dashboard\'s expressions can be parsed') or diag($said);
}

$t->stop;

done_testing();
