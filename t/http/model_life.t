#!/usr/bin/perl

# What llm_model says of a model's life: required, retry=, owner=, and
# deprecated=, sunset=, successor=.

use strict;
use warnings;

use File::Copy qw(copy);
use LLM::Test;
use POSIX qw(strftime);
use Test::More;
use Time::HiRes qw(sleep time);

my $DEMO = '%%ROOT%%/models/demo.gguf threads=1 parallel=2';

sub day { strftime '%Y-%m-%d', gmtime time + 86400 * $_[0] }


# ---- required ----

my $t = LLM::Test->new(model => 'llm_model demo %%DIR%%/a.gguf required;');
my ($rc, $out) = $t->check;

isnt($rc, 0, 'a required file that is not there: nginx -t fails');
like($out, qr/model "demo" is required and not usable: .*a\.gguf.* in .*nginx\.conf:\d+/,
     'with the reason, file and line');

copy("$LLM::Test::ROOT/models/demo.gguf", $t->dir . '/a.gguf') or die $!;
($rc, $out) = $t->check;
is($rc, 0, 'with the file it is well') or diag($out);

$t->write_conf($t->conf =~ s/a\.gguf required/a.gguf required speculate=draft=d.gguf/r);
($rc, $out) = $t->check;
isnt($rc, 0, 'a draft model that is not there: nginx -t fails');
like($out, qr/"demo" is required and not usable: .*d\.gguf/, 'and names it');
$t->write_conf($t->conf);

$t->start;

# the old configuration serves on

$t->write_file('b.gguf', 'GGUF' . "\0" x 64);
$t->write_conf($t->conf =~ s/a\.gguf required/b.gguf required/r);

my @before = $t->workers;

$t->kill('HUP');
ok($t->wait_log(qr/required and not usable: .*b\.gguf/), 'a reload is refused');
is($t->chat('hello')->{status}, 200, 'the old configuration serves on');
is_deeply([ $t->workers ], \@before, 'by the same workers');

$t->stop(allow => qr/required and not usable/);


# ---- retry ----

$t = LLM::Test->new(model => "llm_model never %%DIR%%/n.gguf retry=off;"
                    . "llm_model soon %%DIR%%/s.gguf retry=1s;"
                    . "llm_model late %%DIR%%/l.gguf retry=1h;"
                    . "llm_model good $DEMO default;");
$t->start(cold => 1);

sub state_of {
    my ($name) = @_;
    my ($m) = grep { $_->{id} eq $name }
              @{ $t->get('/health')->{json}{models} };
    return $m->{status};
}

for my $name (qw(never soon late)) {
    ok(LLM::Test::wait_for(30, sub { state_of($name) eq 'error' }),
       "$name: not there");
}

for my $file (qw(n s l)) {
    symlink "$LLM::Test::ROOT/models/demo.gguf", $t->dir . "/$file.gguf"
        or die $!;
}

ok(LLM::Test::wait_for(60, sub { state_of('soon') eq 'ok' }),
   'retry=1s: it is loaded when its file is there');
is(state_of('never'), 'error', 'retry=off: it is not');
is(state_of('late'), 'error', 'retry=1h: not yet');

my $res = $t->post('/v1/completions', { model => 'late', prompt => 'a' });

is($res->{status}, 503, 'a request for it');

$t->reload;
ok(LLM::Test::wait_for(60, sub {
    !grep { state_of($_) ne 'ok' } qw(never soon late good)
}), 'a reload loads all of them');

$t->stop;


# ---- owner, dates ----

my ($past, $soon, $far) = (day(-10), day(9), day(400));

$t = LLM::Test->new(model =>
      "llm_model old $DEMO alias=veteran owner=ann deprecated=$past"
    . " sunset=$far successor=new/one;"
    . "llm_model gone $DEMO deprecated=2024-01-01 sunset=$past"
    . " successor=new/one;"
    . "llm_model warned $DEMO deprecated=${far}T00:00:00Z;"
    . "llm_model new/one $DEMO default;",
    locations => <<'END');
        location /v1 { llm_api; }
        location /other/ai/ { llm_api old; }
        location = /exact { llm_api old; }
        location /only { llm_api gone warned; }
        location /back { llm_api warned gone fallback=gone; }
        location = /health { llm_health; }
END

$t->start;

sub ask_at {
    my ($path, $model) = @_;

    return $t->post($path, { $model ? (model => $model) : (), prompt => 'a',
                             max_tokens => 1 });
}

$res = ask_at('/v1/completions', 'veteran');

is($res->{status}, 200, 'a model that is deprecated serves');
like($res->{headers}{deprecation}, qr/^\@\d{10}$/, 'Deprecation');
is(day(int(($res->{headers}{deprecation} =~ s/^@//r) / 86400)
       - int(time / 86400)), $past, 'its day');
like($res->{headers}{sunset}, qr/^\w{3}, \d\d \w{3} \d{4} 00:00:00 GMT$/,
     'Sunset');
is($res->{headers}{link}, '</v1/models/new%2Fone>; rel="successor-version"',
   'Link');

is($t->get('/v1/models/new%2Fone')->{json}{id}, 'new/one',
   'where its successor is');
is(ask_at('/other/ai/completions', 'old')->{headers}{link},
   '</other/ai/models/new%2Fone>; rel="successor-version"',
   'below another prefix');
is(ask_at('/exact', 'old')->{status}, 404, 'an exact location has no endpoint');

my $s = $t->open('/v1/completions', { model => 'old', prompt => 'a',
                                      stream => \1, max_tokens => 2 });
$s->read_header;
ok($s->{headers}{sunset}, 'a stream has the headers, too');
$s->close;

$res = ask_at('/v1/completions', 'new/one');
is($res->{headers}{deprecation} // $res->{headers}{sunset}
   // $res->{headers}{link}, undef, 'other models have none');

my %models = map { $_->{id} => $_ } @{ $t->get('/v1/models')->{json}{data} };

is($models{old}{owned_by}, 'ann', 'owned_by');
is($models{'new/one'}{owned_by}, 'nginx', 'by default the server');
is_deeply($models{old}{deprecation}, { deprecated => $past, sunset => $far,
                                       successor => 'new/one' },
          'the list says it');
is_deeply($models{warned}{deprecation}, { deprecated => "${far}T00:00:00Z" },
          'what there is of it');
is($models{'new/one'}{deprecation}, undef, 'and nothing of others');
is($models{gone}, undef, 'a model behind its sunset is not in the list');

$res = ask_at('/v1/completions', 'gone');
is($res->{status}, 404, 'it is a 404');
is($res->{json}{error}{code}, 'model_not_found', 'with its code');
like($res->{json}{error}{message},
     qr/'gone' is not served since $past\. Use 'new\/one'\./,
     'that names its successor');
is($res->{headers}{sunset}, undef, 'without headers of a model');
is($t->get('/v1/models/gone')->{status}, 404, 'so is its entry');

is(ask_at('/only/completions')->{status}, 200,
   'where one other is left that is the default');
$res = ask_at('/back/completions', 'unknown');
is($res->{status}, 404, 'a fallback that is over is none');
like($res->{json}{error}{message}, qr/Use 'new\/one'/, 'it says what is');

$t->stop;

# it ends while nginx runs

my $end = int(time) + 4;
my $at = strftime '%Y-%m-%dT%H:%M:%SZ', gmtime $end;

$t = LLM::Test->new(model => "llm_model brief $DEMO default sunset=$at;"
                    . "llm_model next $DEMO;")->start;

my @seen;

ok(LLM::Test::wait_for(60, sub {
    my $before = time;
    my $r = ask_at('/v1/completions', 'brief');
    push @seen, [ $before, time, $r->{status} ];
    return $r->{status} == 404;
}), 'a sunset comes while nginx runs');

is(scalar(grep { $_->[2] == 404 && $_->[1] < $end } @seen), 0, 'not earlier');
is(scalar(grep { $_->[2] == 200 && $_->[0] > $end + 2 } @seen), 0,
   'and not later');

$t->stop;


# ---- what nginx -t says ----

for (
    [ 'deprecated=soon', qr/invalid value "deprecated=soon" of model "demo"/ ],
    [ 'sunset=2026-02-30', qr/invalid value "sunset=2026-02-30"/ ],
    [ 'sunset=', qr/invalid value "sunset="/ ],
    [ 'owner=', qr/empty "owner=" of model "demo"/ ],
    [ 'successor=', qr/empty "successor="/ ],
    [ 'retry=0', qr/invalid value "retry=0"/ ],
    [ 'retry=2d', qr/invalid value "retry=2d"/ ],
    [ 'retry=on', qr/invalid value "retry=on"/ ],
    [ 'required=yes', qr/unknown parameter "required=yes"/ ],
    [ "deprecated=$far sunset=$soon",
      qr/the sunset of model "demo" comes before its deprecation in .*:\d+/ ],
    [ 'alias=other successor=other',
      qr/"successor=other" of model "demo" is the model itself in .*:\d+/ ],
    [ 'required required', qr/duplicate parameter "required"/ ],
) {
    my ($what, $want) = @$_;

    ($rc, $out) = LLM::Test->new(model => "llm_model demo $DEMO $what;")
                  ->check;
    isnt($rc, 0, "refused: $what");
    like($out, $want, 'with the reason');
}

for (
    [ "sunset=$soon", qr/\[warn\].*model "demo" has its sunset in \d+ days, $soon, in .*:\d+/ ],
    [ "sunset=$past", qr/\[warn\].*model "demo" is not served since its sunset, $past/ ],
    [ 'successor=none', qr/\[warn\].*no model "none", the successor of "demo"/ ],
    [ "sunset=$far successor=next; llm_model next $DEMO",
      qr/^(?!.*\[warn\])/s ],
) {
    my ($what, $want) = @$_;

    ($rc, $out) = LLM::Test->new(model => "llm_model demo $DEMO $what;")
                  ->check;
    is($rc, 0, "allowed: $what");
    like($out, $want, 'and what is said of it');
}


done_testing();
