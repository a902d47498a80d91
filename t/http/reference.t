#!/usr/bin/perl

# docs/directives.md against the sources and nginx: a page for each directive
# of the module's tables and none besides, with the parameters, contexts and
# defaults that the code has, and an example that nginx takes; each variable.

use strict;
use warnings;

use LLM::Reference;
use LLM::Test;
use Test::More;

my %page = LLM::Reference::pages();
my %command = LLM::Reference::commands();


sub slurp { return LLM::Reference::slurp(@_) }

# the reference has these, the code those

sub same {
    my ($name, $has, $wants) = @_;
    my ($in, $of) = map { my $list = $_; +{ map { $_ => 1 } @$list } }
                    $has, $wants;

    is(join(' ', grep { !$in->{$_} } sort @$wants), '', "$name: all");
    is(join(' ', grep { !$of->{$_} } sort @$has), '', "$name: no others");
}


# ---- pages ----

cmp_ok(scalar keys %command, '>', 20, 'directives of the tables');
same('pages', [ keys %page ], [ keys %command ]);

is(join(' ', LLM::Reference::chapter('Directives') =~ /^### (\S+)/mg),
   join(' ', sort keys %page), 'in the order of the alphabet');

{
    my ($list) = LLM::Reference::text() =~ /^(- \[Directives\].*?)\n- /ms;

    is(join(' ', $list =~ /\[(llm_\w+)\]\(#\1\)/g), join(' ', sort keys %page),
       'as they are listed');
}

for my $name (sort grep { $command{$_} } keys %page) {
    my ($p, $c) = ($page{$name}, $command{$name});

    is(join(', ', @{ $p->{contexts} }), join(', ', @{ $c->{contexts} }),
       "$name: contexts");
    same("$name: the words that its code knows", $p->{words},
         [ LLM::Reference::words($c->{handler}) ]);

    # one value alone is the page's subject

    my @named = grep { $_ ne 'off' } @{ $p->{items} };
    my @lost = grep { !$p->{says}{$_} } @named;

    @lost = () if @named == 1 || $c->{handler} eq 'ngx_conf_set_flag_slot'
                  || $name eq 'llm_metrics';
    is("@lost", '', "$name: what each parameter is");
    is(join(' ', grep { my $b = $_; $b && !grep { $_ eq $b } @{ $p->{items} } }
                 sort keys %{ $p->{says} }), '', "$name: and no other");
}


# ---- examples ----

sub check { return LLM::Reference::server($_[0])->check }

for my $name (sort keys %page) {
    my @examples = @{ $page{$name}{examples} };

    cmp_ok(scalar @examples, '>', 0, "$name: an example");

    for my $example (@examples) {
        ok(LLM::Reference::find($name, LLM::Reference::statements($example)),
           "$name: it has the directive");

        my $model = $example =~ /^\s*llm_model/m
            ? '' : "llm_model demo models/demo.gguf;\n";
        my ($status, $out)
            = check(LLM::Reference::configuration("$model$example"));

        is($status, 0, "$name: it passes") or diag($out);
    }
}


# ---- contexts ----

my %frame = (
    main            => sub { ($_[1], main => $_[0]) },
    http            => sub { ("$_[1]\n$_[0]") },
    server          => sub { ($_[1], server => $_[0]) },
    location        => sub { ($_[1], location => $_[0]) },
    'if in server'  => sub { ($_[1], server => "if (\$arg_a) {\n$_[0]\n}") },
    'if in location'
        => sub { ($_[1], location => "if (\$arg_a) {\n$_[0]\n}") },
    limit_except
        => sub { ($_[1], location => "limit_except GET {\n$_[0]\n}") },
    upstream
        => sub { ("$_[1]\nupstream u {\nserver 127.0.0.1:1;\n$_[0]\n}") },
);

for my $name (sort keys %page) {
    my ($own, $rest) = LLM::Reference::sample($name, $page{$name});
    my %inside = map { $_ => 1 } @{ $page{$name}{contexts} };

    for my $where (sort keys %frame) {
        my ($status, $out) = check(LLM::Reference::configuration(
            $frame{$where}->("@$own;", $rest)));

        if ($inside{$where}) {
            is($status, 0, "$name in $where") or diag($out);
        } else {
            ok($status == 1 && $out =~ /\[emerg\].*"$name" directive is not allowed here in \S+nginx\.conf:\d+/,
               "$name not in $where") or diag($out);
        }
    }
}


# ---- defaults ----

# what the code sets where nobody has said anything

my %is;

# the fields of the first module have their names, those of other files the
# file's in front

for my $file ('ngx_http_llm_module.c',
              map { s{^\Q$LLM::Test::ROOT/\E}{}r }
              sort glob "$LLM::Test::ROOT/http/*/*.c")
{
    my $text = slurp($file);
    my $of = $file =~ /ngx_http_llm_(\w+)\.c$/ && $1 ne 'module' ? "$1:" : '';

    $is{"$of$1"} = $2 while $text =~ /ngx_conf_merge_\w*value\(conf->(\w+),\s*
                                      prev->\w+,\s*([\w *]+)\)/gx;
    $is{"$of$1"} = $2 while $text =~ /ngx_conf_init_\w*value\(\w+->(\w+),
                                      \s*([\w *]+)\)/gx;
    $is{$1} //= $2 while $text =~ /ngx_conf_merge_\w*value\(conf->(\w+),\s*
                                   prev->\w+,\s*([\w *]+)\)/gx;
    $is{"$of$1"} //= $2 while $text =~ /\b\w?mcf->(\w+) = (\d+);/g;
}

# of llm_route, whose code has names for them

my $route = slurp('http/balance/ngx_http_llm_route.c');

$is{lc "route:$1"} = $2
    while $route =~ /#define NGX_HTTP_LLM_ROUTE_(MESSAGE|PROMPT) +(\d+)/g;

# where a default is if it is not the field of the table's row

my %field = (
    llm_api_keys => { off => 'keyfile:file' },
    llm_capture => { off => 'capture:size' },
    llm_fetch => { off => 'media:fetch' },
    llm_guard => { off => 'guard_conf:guard' },
    llm_images => { refuse => 'media:skip' },
    llm_max_image_pixels => { N => 'media:max_pixels' },
    llm_max_images => { N => 'media:max_images' },
    llm_idempotency => { SIZE => 'idem_conf:size',
                         'valid=' => 'idem_conf:valid' },
    llm_queue => { N => 'queue', 'timeout=' => 'queue_timeout',
                   'memory=' => 'queue_memory' },
    llm_route => { 'message=' => 'route:message', 'prompt=' => 'route:prompt' },
);

# as the code has it; a time in the unit of its field

sub number {
    my ($s, $field) = @_;
    my %unit = (s => 1, m => 60, h => 3600);
    my $seconds = $field eq 'idem_conf:valid' ? 1 : 1000;

    return 0 if $s =~ /^(?:off|refuse|NULL)$/;
    return $1 * ($2 eq 'k' ? 1024 : 1024 * 1024)
        if $field =~ /size|memory|buffer|capture|route|pixels/ && $s =~ /^(\d+)([km])$/;
    return $1 * $unit{$2} * $seconds if $s =~ /^(\d+)([smh])$/;
    return $s =~ /^[\d *]+$/ ? eval $s : $s;
}

for my $name (sort grep { defined $page{$_}{default} } keys %page) {
    my ($own, @args) = $page{$name}{default} =~ /([^\s;]+)/g;

    is($own, $name, "$name: its default is one of it");

    next if $name eq 'llm_priority';            # below

    for my $arg (@args) {
        my ($param, $value) = $arg =~ /^(\w+=)?(.*)$/;
        my $to = $field{$name};
        my $field = !$to ? $command{$name}{field}
                  : $param ? $to->{$param}
                  : $to->{$value} // $to->{SIZE} // $to->{N};

        ok(defined $is{$field // ''}, "$name: where the default of $arg is set")
            or next;
        is(number($value, $field), number($is{$field}, $field),
           "$name: the default $arg");
    }
}

# those that are told in words

for my $case (
    [ llm_model => 'parallel=N', 'engine/llm.h', qr/LLM_PARALLEL +(\d+)/, 1 ],
    [ llm_model => 'batch=N', 'engine/serve/load.c',
      qr/LLM_DEFAULT_CHUNK (\d+)/, 1 ],
    [ llm_model => 'retry=TIME|off', 'http/conf/ngx_http_llm_model.c',
      qr/model->engine\.retry_s = (\d+);/, 1 ],
    [ llm_model => 'owner=TEXT', 'http/conf/ngx_http_llm_model.c',
      qr/ngx_str_set\(&model->owner, "(\w+)"\)/, 1 ],
    [ llm_api_keys => 'check=TIME', 'http/access/ngx_http_llm_keyfile.c',
      qr/\bcheck = (\d+);/, 1000 ],
    [ llm_guard => 'timeout=TIME', 'http/access/ngx_http_llm_guard_conf.c',
      qr/GUARD_TIMEOUT  (\d+)/, 1000 ],
    [ llm_token_zone => 'cached=PRICE', 'http/access/ngx_http_llm_quota_zone.c',
      qr/q->cached = (\d+);/, 1000 ],
    [ llm_tenant => 'weight=WEIGHT', 'http/request/ngx_http_llm_identity.c',
      qr/msg->weight = (\d+);/, 1000 ],
) {
    my ($name, $item, $file, $where, $unit) = @$case;
    my ($said) = ($page{$name}{says}{$item} // '') =~ /\b[Bb]y default (\w+)/;
    my ($set) = slurp($file) =~ $where;

    is($said =~ s/s$//r, $set =~ /^\d+$/ ? $set / $unit : $set,
       "$name: the default of $item");
}

{
    my ($speech) = slurp('engine/llm.h') =~ /LLM_PARALLEL_SPEECH +(\d+)/;

    like($page{llm_model}{says}{'parallel=N'}, qr/; $speech of\s+a \[model of speech/,
         'llm_model: the default of parallel=N for speech');
}

# and what can be seen: a location without the directives, and one with them
# as the pages have their defaults

{
    my @set = map { $page{$_}{default} }
              grep { defined $page{$_}{default}
                     && grep { $_ eq 'location' } @{ $page{$_}{contexts} } }
              sort keys %page;
    my @http = map { $page{$_}{default} }
               grep { defined $page{$_}{default}
                      && "@{ $page{$_}{contexts} }" eq 'http' }
               sort keys %page;

    my ($format) = slurp('docs/observability.md')
                 =~ /^```nginx\n(log_format llm .*?;)\n/ms;
    my @seen;

    for my $defaults ('', "@http") {
        my $t = LLM::Reference::server(LLM::Reference::configuration(<<"END"));
llm_model demo models/demo.gguf threads=1;
$defaults
$format
log_format seen '\$status|\$llm_model|\$llm_tenant|\$llm_completion_tokens|'
                '\$llm_finish_reason|\$llm_error|\$llm_input|\$llm_output|';
error_page 404 /other;
server {
listen 8080;
access_log logs/seen.log seen;
access_log logs/llm.log llm;
location /bare/v1 { llm_api; }
location /set/v1 { @set llm_api; }
location = /other { return 418; }
location = /health { access_log off; llm_health; }
location = /bare/metrics { access_log off; llm_metrics; }
location = /set/metrics { access_log off; llm_metrics prometheus; }
}
END
        $t->start;

        for my $where (qw(bare set)) {
            my %ask = (prompt => 'a', max_tokens => 3, temperature => 0,
                       ignore_eos => \1);
            my @status = map { $_->{status} }
                $t->post("/$where/v1/completions", \%ask),
                $t->post("/$where/v1/completions", \%ask,
                         headers => { 'Idempotency-Key' => $where }),
                $t->post("/$where/v1/completions", { %ask, model => 'no' }),
                $t->post("/$where/v1/completions", { %ask, stream => \1 });
            my $again = $t->post("/$where/v1/completions", \%ask,
                                 headers => { 'Idempotency-Key' => $where });

            push @seen, join ' ', @status, $again->{status},
                $again->{headers}{'idempotent-replayed'} // 'computed',
                $t->get("/$where/metrics")->{headers}{'content-type'};
        }

        LLM::Test::wait_for(5, sub { ($t->log('seen.log') =~ tr/\n//) >= 10 });

        my @lines = split /\n/, $t->log('seen.log');

        is(scalar @lines, 10, 'lines of the log');
        is(join("\n", @lines[5 .. 9]), join("\n", @lines[0 .. 4]),
           'the log is the same');
        push @seen, join "\n", @lines;

        like($t->log('llm.log'),
             qr/ 200 demo in=\d+ cached=\d+ out=3 ttft=\d+\.\d{6} tpot=\d+\.\d{6}$/m,
             'the log format of the page');
        $t->stop(name => 'defaults');
    }

    is($seen[1], $seen[0], 'what is set as its default changes nothing');
    is(join("\n", @seen[3 .. 5]), join("\n", @seen[0 .. 2]), 'nor in http');
    like($seen[0], qr/^200 200 404 200 200 true text\/plain/, 'which is this');
    like($seen[2], qr/^200\|demo\|-\|3\|length\|-\|-\|-\|$/m, 'and logged so');
}


# ---- variables ----

my %variable = LLM::Reference::variables();
my @known = map { LLM::Test::slurp($_) =~ /\{ ngx_string\("(llm_\w+)"\), NULL,/g }
            glob "$LLM::Test::ROOT/http/*/*.c";

same('variables', [ map { s/^\$//r =~ s/_NAME\z/_/r } keys %variable ],
     \@known);

{
    my $all = join ' ', map { s/_NAME\z/_plan/r } sort keys %variable;
    my ($status, $out) = check(LLM::Reference::configuration(
        "log_format all '$all';\naccess_log logs/all.log all;"));

    is($status, 0, 'nginx knows them all') or diag($out);

    ($status, $out) = check(LLM::Reference::configuration(
        "log_format all '\$llm_nothing';\naccess_log logs/all.log all;"));

    like($out, qr/unknown "llm_nothing" variable/, 'and no others');
}

done_testing();
