#!/usr/bin/perl

# One row more is one metric more, in both formats, and one parameter of
# llm_model more, down to the engine: the module is built once again from its
# own sources with a row in each of the tables and nothing else.

use strict;
use warnings;

use File::Temp qw(tempdir);
use LLM::Test qw(slurp);
use Test::More;

my ($root, $objs) = ($LLM::Test::ROOT, $LLM::Test::OBJS);

plan skip_all => "no build of the module in $objs"
    unless -e "$objs/nginx/Makefile" && -d "$objs/nginx-src";

# which row goes into which table of which file

my @rows = (
    [ 'observe/ngx_http_llm_metrics.c', 'ngx_http_llm_model_rows',
      '{ "llm_row_total", "row", &ngx_http_llm_counter, at(steps), 0,'
      . ' "Steps, once more." },' ],
    [ 'observe/ngx_http_llm_metrics.c', 'ngx_http_llm_worker_rows',
      '{ "llm_worker_row_total", "row", &ngx_http_llm_counter,'
      . ' at(engine.events), 0, "Events, once more." },' ],
    [ 'conf/ngx_http_llm_model.c', 'ngx_http_llm_params',
      '{ ngx_string("row="), ngx_http_llm_model_num, at(engine.parallel),'
      . ' 1, 8 },' ],
);

my $dir = tempdir('llm-test-XXXXXX', TMPDIR => 1, CLEANUP => 1);


sub spew {
    my ($name, $text) = @_;

    open my $f, '>', $name or die "$name: $!";
    print $f $text;
    close $f or die "$name: $!";
}


# a copy of the build folder, whose Makefile takes these files from ours

system('cp', '-rp', "$objs/nginx", "$dir/nginx") == 0 or die 'cp';

my $makefile = slurp("$dir/nginx/Makefile");
my %sources;

for my $row (@rows) {
    my ($name, $table, $text) = @$row;

    $sources{$name} //= slurp("$root/http/$name");
    $sources{$name} =~ s/^(static .*\b$table\[\] = \{\n)/$1    $text\n/m
        or die "no table $table in $name";
}

for my $name (keys %sources) {
    my ($file) = $name =~ m{([^/]+)$};

    spew("$dir/$file", $sources{$name});
    $makefile =~ s{\Q$root/http/$name\E}{$dir/$file}g;
}

$makefile =~ s{\Q$objs\E/nginx(?=[/\s])}{$dir/nginx}g;
$makefile =~ s{^\S+/libllm\.a:\s+llm_library\n(?:\t.*\n)+}{}m;
spew("$dir/nginx/Makefile", $makefile);

# nothing that we did not change is compiled

my $before = (stat "$dir/nginx/addon/conf/ngx_http_llm_conf.o")[9];
my $module = "$dir/nginx/ngx_http_llm_module.so";
my $said = `make -s -C $objs/nginx-src -f $dir/nginx/Makefile $module 2>&1`;

is($?, 0, 'it builds') or diag($said);
is((stat "$dir/nginx/addon/conf/ngx_http_llm_conf.o")[9], $before,
   'from two files');


# what nginx says of a configuration

sub says {
    my ($params) = @_;

    my $t = LLM::Test->new(
        model => "llm_model demo %%ROOT%%/models/demo.gguf $params;");
    my (undef, $out) = $t->check;

    return $out;
}


like(says('row=3'), qr/unknown parameter "row=3"/,
     'without its row the parameter is not known');

{
    local $LLM::Test::OBJS = "$dir/nginx";

    like(says('row=9'), qr/invalid value "row=9" .* between 1 and 8/,
         'with it, it has bounds');
    like(says('row=3 row=4'), qr/duplicate parameter "row=4"/,
         'and may come once');

    my $t = LLM::Test->new(
        model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=1 row=3;',
        locations => <<'END')->start;
        location /v1 { llm_api; }
        location = /health { llm_health; }
        location = /metrics { llm_metrics; }
        location = /figures { llm_metrics json; }
END

    ok($t->wait_log(qr/model "demo" is ready: .*, 3 sequences/),
       'and the engine has it');

    $t->post('/v1/completions', { prompt => 'a', max_tokens => 5,
                                  ignore_eos => \1 });

    my $f;

    LLM::Test::wait_for(10, sub {
        $f = $t->get('/figures')->{json};
        return $f->{models}[0]{running} == 0 && $f->{models}[0]{steps} >= 5;
    });

    cmp_ok($f->{models}[0]{row}, '>=', 5, 'a metric of a model in JSON');
    is($f->{models}[0]{row}, $f->{models}[0]{steps}, 'is the figure');
    cmp_ok($f->{workers}[0]{row}, '>', 0, 'one of a worker');
    is($f->{workers}[0]{row}, $f->{workers}[0]{events}, 'is the figure');

    my $text = $t->get('/metrics')->{body};

    my ($model, $worker) = map { $f->{$_}[0]{row} } qw(models workers);

    like($text, qr/^\#\ HELP\ llm_row_total\ Steps,\ once\ more\.\n
                    \#\ TYPE\ llm_row_total\ counter\n
                    llm_row_total\{model_name="demo"\}\ $model$/mx,
         'a metric of a model for Prometheus');
    like($text, qr/^\#\ TYPE\ llm_worker_row_total\ counter\n
                    llm_worker_row_total\{worker="0"\}\ $worker$/mx,
         'one of a worker');

    $t->stop;
}

done_testing();
