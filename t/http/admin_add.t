#!/usr/bin/perl

# llm_admin: models under new names, and their end: who may have which name,
# where they are seen and used, what a reload, a restart and a worker that dies
# leave of them.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use LLM::JSON;
use LLM::Made qw(other_weights);
use LLM::Test qw(slurp);
use Test::More;

my $model = slurp("models/demo.gguf");
my $other = other_weights($model);

my $NEW = 'new=3 like=demo';

my $t = LLM::Test->new(
    workers => 3,
    pace => 0.5,
    model => 'llm_model demo %%DIR%%/models/a.gguf alias=mini threads=1'
           . ' parallel=16 kv_cache=64m ctx=512 retry=1s;',
    http => 'log_format model "$uri $llm_model $status";',
    locations => <<"END");
        location /v1 { llm_alias chat demo; llm_api;
                       access_log logs/model.log model; }
        location /one { llm_api demo; }
        location /slow { llm_api; limit_rate 2k;
                         access_log logs/model.log model; }
        location /keys { llm_api_keys keys; llm_api; }
        location /admin { llm_admin state=admin.state models=models $NEW; }
        location = /health { llm_health; }
        location = /ready { llm_health ready; }
        location = /probed { llm_health ready probe=200ms; }
        location = /demo { llm_health ready demo; }
        location = /metrics { llm_metrics; }
        location = /figures { llm_metrics json; }
END

my $dir = $t->dir;

mkdir "$dir/models" or die $!;
$t->write_file("models/$_.gguf", $model) for qw(a c);
$t->write_file('models/b.gguf', $other);
$t->write_file('models/half.gguf', substr $model, 0, 200_000);
$t->write_file('outside.gguf', $model);
$t->write_file('keys', join '', map { LLM::JSON->new->canonical->encode($_)
                                      . "\n" }
    { id => 'new', sha256 => sha256_hex('sk-new'), models => [ 'new' ] },
    { id => 'demo', sha256 => sha256_hex('sk-demo'), models => [ 'demo' ] });

sub admin {
    my ($method, $path, $body, %opt) = @_;

    return $t->request(method => $method, path => "/admin/$path",
                       body => $body, %opt);
}

sub put { admin('PUT', "models/$_[0]", { file => $_[1] }) }
sub add { put("$_[0]?wait=60", $_[1] // 'b.gguf') }
sub gone { admin('DELETE', "models/$_[0]?wait=60") }
sub code { $_[0]{json}{error}{code} // '' }

sub is_code {
    my ($res, $status, $code, $name) = @_;

    is("$res->{status} " . code($res), "$status $code", $name)
        or diag($res->{body});
}

my %ask = (prompt => 'The sky is', max_tokens => 20, temperature => 0,
           ignore_eos => \1);

sub ask {
    my ($name, %opt) = @_;

    return $t->post(($opt{at} // '/v1') . '/completions',
                    { %ask, defined $name ? (model => $name) : () },
                    $opt{key} ? (headers => { authorization =>
                                              "Bearer $opt{key}" }) : ());
}

sub answer {
    my $res = ask(@_);

    return $res->{json}{choices}[0]{text} // "$res->{status} " . code($res);
}

# what all workers say

sub answers {
    my ($name) = @_;
    my %of;

    $of{ answer($name) }++ for 1 .. 9;

    return join '|', sort keys %of;
}

sub listed {
    my ($path, $name) = @_;

    return join ' ', sort grep { $_ ne 'mini' }
                          map { $_->{id} // $_->{name} }
                          @{ $t->get($path)->{json}{$name // 'data'} };
}

sub names {
    return join '|', listed('/v1/models'), listed('/admin/models'),
                     listed('/health', 'models'), listed('/figures', 'models');
}

sub state { admin('GET', "models/$_[0]")->{json}{state} // 404 }

sub stream {
    return $t->open('/v1/completions', { %ask, max_tokens => 300,
                                         stream => \1, model => $_[0] },
                    light => 1);
}

sub whole {
    my ($s) = @_;
    my $error = '';

    while (my $e = $s->event) {
        $error = $e->{json}{error}{code} // $e->{json}{error}{message}
            if ref $e->{json} && $e->{json}{error};
    }

    # nginx may linger: it counts a request when the client has closed
    $s->close;

    return ($s->{text}, $error);
}

sub line {
    my ($name) = @_;

    return grep { /"model":"\Q$name\E"/ && /"added":true/ }
           split /\n/, $t->log('../admin.state') // '';
}

# requests of a model that have ended

sub counted {
    my ($name) = @_;
    my $n = 0;

    $n += $_ for $t->get('/metrics')->{body}
                 =~ /^llm_requests_total\{model_name="\Q$name\E",.* (\d+)$/mg;

    return $n;
}

sub all_new { ok(LLM::Test::wait_for(60, sub { $t->workers == 3 }),
                 'old workers end') }

$t->start;

my $old = answer();


# ---- nothing yet ----

is(names(), 'chat demo|demo|demo|demo', 'no place is seen');
is(answer(undef), $old, 'the only model needs no name');
is($t->get('/ready')->{json}{status}, 'ok', 'health does not wait for any');
unlike($t->get('/metrics')->{body}, qr/model_name="(?!demo"|")/,
       'metrics have no others');
is(answer(''), $old, 'an empty name is the default');
is(answer('mew'), '404 model_not_found', 'no such model');


# ---- one more ----

my $res = put('new', 'b.gguf');

is($res->{status}, 202, 'a model is added') or diag($res->{body});
is($res->{headers}{location}, '/admin/models/new', 'where to ask');
is_deeply([ @{ $res->{json} }{qw(id file)}, $res->{json}{action}{command} ],
          [ 'new', 'b.gguf', 'load' ], 'which it says');
ok($res->{json}{added}, 'as one that was added');
ok(LLM::Test::wait_for(60, sub { state('new') eq 'ready' }), 'it is ready');

my $new = answer('new');

isnt($new, $old, 'another text');
like($new, qr/\S/, 'which is one');
is(answers('new'), $new, 'of all workers');
is(answers('demo'), $old, 'the other one goes on');
is(ask('new')->{json}{model}, 'new', 'answers name it');
is(names(), 'chat demo new|demo new|demo new|demo new', 'it is seen');
is($t->get('/v1/models/new')->{json}{id}, 'new', 'and found');
is($t->get('/v1/models/new')->{json}{created},
   $t->get('/v1/models/new')->{json}{created}, 'with one date');
is($t->get("/$_")->{json}{status}, 'ok', "/$_") for qw(ready probed demo);
is(answer(undef), '404 model_not_found', 'now a name is needed');
is(answer('new', at => '/one'), '404 model_not_found',
   'a location that names models does not have it');
is(listed('/one/models'), 'demo', 'nor list it');
is(answer(undef, at => '/one'), $old, 'and has one model');
is(answer('new', at => '/keys', key => 'sk-new'), $new,
   'a key of this name');
is(answer('demo', at => '/keys', key => 'sk-new'),
   '403 model_not_allowed', 'which is for no other');
is(answer('new', at => '/keys', key => 'sk-demo'),
   '403 model_not_allowed', 'and no other for it');
ok(LLM::Test::wait_for(10, sub { $t->log('error.log')
    =~ /llm_admin: client "-" at \S+: PUT model "new", from "-" to "b.gguf": accepted, action 1 /
    }), 'a line in the log');
ok(LLM::Test::wait_for(10, sub { $t->log('error.log')
    =~ /llm_admin: action 1, load of "new": done/ }), 'another one');
ok(LLM::Test::wait_for(10, sub { line('new') }), 'it is in the file');

is(add('new', 'c.gguf')->{json}{file}, 'c.gguf', 'another file');
is(answers('new'), $old, 'serves');
is(add('new', 'b.gguf')->{status}, 200, 'and back');
is(answers('new'), $new, 'again');


# ---- names that are none ----

for my $case ([ 'a model', 'demo', 409, 'model_exists' ],
              [ 'in any case', 'NEW', 409, 'model_exists' ],
              [ 'of the configuration', 'Demo', 409, 'model_exists' ],
              [ 'an alias=', 'MINI', 409, 'model_exists' ],
              [ 'an alias', 'Chat', 409, 'model_exists' ],
              [ 'control characters', 'a%01b', 400, 'invalid_name' ],
              [ 'of two bytes', 'a%c2%85', 400, 'invalid_name' ],
              [ 'turned round', 'a%e2%80%aeb', 400, 'invalid_name' ],
              [ 'no UTF-8', 'a%ff', 400, 'invalid_name' ],
              [ 'a long one', 'x' x 257, 400, 'invalid_name' ])
{
    my ($name, $id, @want) = @$case;

    is_code(put($id, 'b.gguf'), @want, $name);
}

is_code(admin('PUT', 'aliases/a%e2%81%a6', { model => 'new' }), 400,
        'invalid_name', 'nor is that an alias');

admin('PUT', 'aliases/Set', { model => 'new' });
is_code(put('set', 'b.gguf'), 409, 'model_exists', 'an alias that was set');
is(answers('set'), $new, 'which leads to the new model');
is_code(admin('PUT', 'aliases/New', { model => 'demo' }), 409,
        'alias_is_model', 'a name of an added model is no alias');

for my $case ([ 'no file', undef, 400, 'missing_required_parameter' ],
              [ 'an empty one', '', 400, 'invalid_value' ],
              [ 'a number', 7, 400, 'invalid_type' ],
              [ 'none there', 'x.gguf', 404, 'file_not_found' ],
              [ 'outside', '../outside.gguf', 400, 'invalid_file' ],
              [ 'half a model', 'half.gguf', 400, 'unusable_model' ])
{
    my ($name, $file, @want) = @$case;

    is_code(put('more', $file), @want, $name);
}

is_code(admin('PUT', 'models/more'), 400, 'missing_required_parameter',
        'no body');
is_code(admin('DELETE', 'models/more'), 404, 'model_not_found',
        'what there is not cannot be removed');
is_code(admin('DELETE', 'models/demo'), 409, 'model_is_configured',
        'nor what is configured');
is_code(admin('DELETE', 'models/mini'), 409, 'model_is_configured',
        'by its alias, too');
is_code(admin('POST', 'models/new'), 405, 'method_not_allowed', 'POST');
is(names(), 'Set chat demo new|demo new|demo new|demo new',
   'nothing has changed');


# ---- no place ----

my $long = "\xc3\xa4" x 120 . '/ "x"/load';
my $path = $long =~ s/([^A-Za-z])/sprintf '%%%02x', ord $1/ger;

is(add($path, 'c.gguf')->{status}, 200, 'a long name');
is(admin('GET', "models/$path")->{status}, 200, 'which is found');
is(answers(LLM::JSON->new->utf8->decode(qq("@{[ $long =~ s/"/\\"/gr ]}"))),
   $old, 'and serves');
is(add('third', 'b.gguf')->{status}, 200, 'a third one');
is_code(put('fourth', 'b.gguf'), 409, 'no_place', 'there is no place more');
is(gone('third')->{status}, 200, 'one goes');
is(state('third'), 404, 'it is gone');
is(add('fourth', 'c.gguf')->{status}, 200, 'another one comes in its place');
is(answers('fourth'), $old, 'with its own file');
is(answers('third'), '404 model_not_found', 'the old name is none');
is(gone($_)->{status}, 200, 'removed') for 'fourth', $path;


# ---- the end ----

my $before = counted('new');

cmp_ok($before, '>', 0, 'its requests were counted');

my $slow = stream('new');

$slow->event;
$res = gone('new');
is($res->{status}, 200, 'removed when nothing runs any more');
is_deeply($res->{json}, { id => 'new', object => 'model',
                          deleted => LLM::JSON::true }, 'which it says')
    or diag($res->{body});

my ($text, $error) = whole($slow);

is($error, '', 'what ran ended as it should');
like($text, qr/^\Q$new\E/, 'with all of its text');
is(answers('new'), '404 model_not_found', 'there is no such model');
is(answers('set'), '404 model_not_found', 'nor does an alias lead to it');
is(answer(undef), $old, 'the other one is the only one again');
is(names(), 'chat demo|demo|demo|demo', 'nothing of it is seen');
unlike($t->get('/metrics')->{body}, qr/model_name="new"/,
       'nor in the metrics');
is($t->get('/ready')->{json}{status}, 'ok', 'health');
is(scalar line('new'), 0, 'nor in the file');
like($t->log('model.log'), qr{^/v1/completions new 200$}m,
     'the log has its name');
ok(LLM::Test::wait_for(10, sub { $t->log('error.log')
    =~ /llm_admin: action \d+, remove of "new": done/ }),
   'and what was done');

# at once, under a stream

is(add('new')->{status}, 200, 'the same name again');
is(answers('set'), $new, 'the alias leads to it again');
ok(LLM::Test::wait_for(20, sub { counted('new') >= 9 }),
   'its requests are counted, when nginx logs them');
is(counted('new'), 9, 'its figures begin anew');
$slow = stream('new');
$slow->event;
is(admin('DELETE', 'models/new?timeout=0&wait=60')->{status}, 200,
   'removed at once');
is((whole($slow))[1], 'model_stopped', 'what ran got an error');

# nginx sends the end of an answer, and logs its request, after the model is
# gone and there is another one with its name

is(add('new')->{status}, 200, 'the same name once more');

my $late = $t->open('/slow/completions', { %ask, stream => \1,
                                           model => 'new' });

$late->event;
is(gone('new')->{status}, 200, 'removed when nothing runs any more');
is(add('new')->{status}, 200, 'and added again');
is((whole($late))[1], '', 'then the answer has come');
ok(LLM::Test::wait_for(20, sub {
    $t->log('model.log') =~ m{^/slow/completions new 200$}m
}), 'and is logged');
is(counted('new'), 0, 'but is not counted as the new one\'s');
is(gone('new')->{status}, 200, 'which is removed, too');

# names come and go while others ask: no answer is of another model

is(add('x', 'b.gguf')->{status}, 200, 'one of three');

for my $i (1 .. 6) {
    my @ask = map {
        LLM::Client->open(port => $t->port, path => '/v1/completions',
                          method => 'POST', timeout => 120,
                          body => { %ask, model => "n$_" })
    } 1 .. 6;
    my $name = "n" . (1 + $i % 6);

    is(add($name, $i % 2 ? 'b.gguf' : 'c.gguf')->{status}, 200,
       "$name comes");

    my @wrong = grep { $_->{json}{model} && $_->{json}{model} !~ /^n\d$/ }
                map { $_->response } @ask;

    is(scalar @wrong, 0, 'none has another name');
    is(answer($name), $i % 2 ? $new : $old, 'its text');
    is(gone($name)->{status}, 200, "$name goes");
}

is(gone('x')->{status}, 200, 'and the last one');


# ---- many at once ----

sub open_put {
    my ($path, $body) = @_;

    return LLM::Client->open(port => $t->port, method => 'PUT', timeout => 120,
                             path => "/admin/$path", body => $body);
}

my @put = map { open_put('models/same?wait=60', { file => 'b.gguf' }) } 1 .. 8;
my %status;

$status{ $_->response->{status} }++ for @put;

cmp_ok($status{200} // 0, '>=', 1, 'eight add one model');
is(join(' ', grep { !/^(?:200|409)$/ } keys %status), '',
   'which the others are told');
is(listed('/admin/models'), 'demo same', 'there is one');
is(answers('same'), $new, 'and it serves');
is(gone('same')->{status}, 200, 'until it is removed');

for my $i (1 .. 6) {
    my @both = (open_put("models/r$i?wait=60", { file => 'b.gguf' }),
                open_put("aliases/r$i", { model => 'demo' }));
    my @got = map { $_->response->{status} } $i % 2 ? @both : reverse @both;

    is(join(' ', sort @got), '200 409', 'a model or an alias of one name');
    is((state("r$i") eq 'ready')
       + (admin('GET', "aliases/r$i")->{status} == 200), 1, 'not both');
    gone("r$i");
    admin('DELETE', "aliases/r$i");
}


# ---- one that cannot be loaded ----

$t->write_file('models/break.gguf', $model);
is(add('bad', 'break.gguf')->{status}, 200, 'a model');
is(admin('POST', 'models/bad/unload?wait=60')->{status}, 200, 'unloaded');
$t->write_file('models/break.gguf', substr $model, 0, 100_000);
is(admin('POST', 'models/bad/load?wait=60')->{status}, 503,
   'its file is broken by now');
is(state('bad'), 'failed', 'it has failed');
is($t->get('/ready')->{json}{status}, 'degraded', 'as health says');
is_code(ask('bad'), 503, 'model_failed', 'its requests are refused');
is(gone('bad')->{status}, 200, 'it can be removed');
is($t->get('/ready')->{json}{status}, 'ok', 'health is as before');


# ---- a reload, a worker that dies ----

is(add('one', 'b.gguf')->{status}, 200, 'one');
is(add('two', 'c.gguf')->{status}, 200, 'two');
is(admin('POST', 'models/two/unload?wait=60')->{status}, 200, 'is unloaded');
is(add('three', 'c.gguf')->{status}, 200, 'three');
is(gone('three')->{status}, 200, 'goes');
my $n = counted('one');
is(answers('one'), $new, 'it serves');

$t->reload;
ok($t->wait_ready, 'ready again');
all_new();
ok(LLM::Test::wait_for(60, sub { state('one') eq 'ready' }),
   'a reload: it is loaded again');
is(answers('one'), $new, 'with its file');
is(state('two'), 'stopped', 'one that was unloaded is so');
is(names(), 'chat demo one two|demo one two|demo one two|demo one two',
   'both are seen');
ok(LLM::Test::wait_for(20, sub { counted('one') == $n + 18 }),
   'figures go on') or diag(counted('one') - $n);

# until the new engine has begun the states are the old one's

$t->kill('KILL', $t->engine_worker);
ok(LLM::Test::wait_for(60, sub {
    $t->workers == 3 && state('one') eq 'ready' && answers('one') eq $new
}), 'the engine\'s worker is killed: it is loaded again, with its file');
is(state('two'), 'stopped', 'the other one is as it was');
is(admin('POST', 'models/two/load?wait=60')->{status}, 200, 'until it is told');
is(answers('two'), $old, 'to serve');
is(gone('two')->{status}, 200, 'a new engine removes it, too');


# ---- a restart ----

is(add('two', 'c.gguf')->{status}, 200, 'another one');

my $killed = qr/exited on signal 9|model "one"|model "two"|model "bad"/;

$t->stop(allow => $killed);
$t->start;
ok(LLM::Test::wait_for(60, sub { state('one') . state('two')
                                 eq 'readyready' }), 'a restart: both');
is(answers('one') . answers('two'), $new . $old, 'with their files');

# a file that is gone

$t->stop(allow => $killed);
rename "$dir/models/c.gguf", "$dir/models/d.gguf" or die $!;

{
    my ($status, $out) = $t->check;

    is($status, 0, 'a file that is gone is no error');
    like($out, qr/model "two" of "llm_admin" with "c\.gguf" cannot be loaded/,
         'nginx -t says so');
}

$t->start;
ok(LLM::Test::wait_for(60, sub { state('two') eq 'failed' }),
   'the model has failed');
is(answers('one'), $new, 'the other one serves');
rename "$dir/models/d.gguf", "$dir/models/c.gguf" or die $!;
ok(LLM::Test::wait_for(60, sub { state('two') eq 'ready' }),
   'when the file is there again it is loaded');
is(answers('two'), $old, 'and serves');


# ---- another configuration ----

my $conf = slurp("$dir/nginx.conf");

# the names come in the order in which they were changed

sub reload_with {
    my ($text) = @_;

    $t->write_file('nginx.conf', $text);
    $t->reload;
    ok($t->wait_ready, 'ready again');
    all_new();
}

reload_with($conf =~ s/(llm_model demo)/llm_model one models\/a.gguf
             threads=1 parallel=4 kv_cache=64m; $1/r);
like($t->log('error.log'),
     qr/model "one" of "llm_admin" is dropped: the configuration has this/,
     'a name that the configuration has');
is(answers('one'), $old, 'is the configuration\'s');
ok(!admin('GET', 'models/one')->{json}{added}, 'which it says');
is_code(admin('DELETE', 'models/one'), 409, 'model_is_configured',
        'it cannot be removed');
ok(LLM::Test::wait_for(60, sub { answers('two') eq $old }),
   'the other one is there');
reload_with($conf);
is(answers('one'), '404 model_not_found', 'it does not come again');
is(add('four', 'b.gguf')->{status}, 200, 'another one');
is(add('five', 'b.gguf')->{status}, 200, 'and another one');

reload_with($conf =~ s/new=3/new=1/r);
like($t->log('error.log'), qr/is dropped: there are only 1 places/,
     'fewer places');
is(split(' ', listed('/admin/models')) + 0, 2, 'one is left');
reload_with($conf);
is(split(' ', listed('/admin/models')) + 0, 2, 'the others do not come again');

reload_with($conf =~ s/ new=3 like=demo//r);
is(listed('/admin/models'), 'demo', 'none');
is_code(put('new', 'b.gguf'), 404, 'not_found', 'PUT says that there is no');
like(put('new', 'b.gguf')->{json}{error}{message}, qr/new=/, 'new=');
is_code(admin('DELETE', 'models/new'), 404, 'model_not_found', 'nor DELETE');
is(scalar(() = slurp("$dir/admin.state") =~ /added/g), 0,
   'the file has none either')
    if LLM::Test::wait_for(10, sub { slurp("$dir/admin.state") !~ /added/ });

$t->stop(allow => $killed);


# ---- a file as it may be ----

# with names that are the same, and those that could be given once

$t->write_file('nginx.conf', $conf);

sub sealed {
    my $text = join '', map { "$_\n" } '{"state_of":"llm_admin"}', @_;

    $t->write_file('admin.state', $text . '{"lines":' . @_ . ',"sha256":"'
                                  . sha256_hex($text) . "\"}\n");
}

sub added {
    return qq({"model":"$_[0]","file":"b.gguf","stopped":false,)
           . '"draining":false,"number":0,"added":true}';
}

sealed('{"alias":"al\\u202e","model":"demo"}',
       map { added($_) } 'Same', 'same', 'b\\u0085');
$t->start;
like($t->log('error.log'),
     qr/"same" of "llm_admin" is dropped: its model "Same" has the same/,
     'a name that is there in another case');
ok(LLM::Test::wait_for(60, sub { answers('SAME') eq $new }),
   'the first one serves');
ok(LLM::Test::wait_for(60, sub { state('b%c2%85') eq 'ready' }),
   'so does one whose name could be given once');
is(admin('PUT', 'aliases/al%e2%80%ae', { model => 'Same' })->{status}, 200,
   'an alias that there is can lead elsewhere');
is(admin('DELETE', 'aliases/al%e2%80%ae')->{status}, 200, 'and go');
is_code(admin('PUT', 'aliases/al%e2%80%ae', { model => 'demo' }), 400,
        'invalid_name', 'for good');
is(gone('b%c2%85')->{status}, 200, 'so can the model');
$t->stop(allow => $killed);


# ---- two that have one file ----

# one has no place for what the other has added

{
    my $folder = LLM::Test->new;
    my $state = $folder->dir . '/admin.state';
    my @two = map {
        LLM::Test->new(workers => 1,
            model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=1'
                   . ' parallel=4 kv_cache=64m;',
            locations => 'location /v1 { llm_api; } location /admin {'
                       . " llm_admin state=$state models=$dir/models new=$_; }"
                       . ' location = /health { llm_health; }')->start
    } 2, 1;

    my $has = sub {
        my ($i, $name) = @_;

        return $two[$i]->get("/admin/models/$name")->{status};
    };

    for my $name (qw(p q)) {
        is($two[0]->request(method => 'PUT',
               path => "/admin/models/$name?wait=60",
               body => { file => 'c.gguf' })->{status}, 200, "$name is added");
    }

    ok(LLM::Test::wait_for(20, sub { slurp($state) =~ /"q"/ }), 'written');

    # worker 0 looks at the file every 200 ms, which reloads must not outrun

    ok(LLM::Test::wait_for(20, sub {
        select undef, undef, undef, 0.5;
        $two[1]->reload;
        $two[1]->wait_ready;
        $two[1]->log('error.log') =~ /"q" of "llm_admin" is dropped: there are/
    }), 'the other one has one place, and says so');
    ok(LLM::Test::wait_for(20, sub { slurp($state) !~ /"q"/ }),
       'the file has one model');
    ok(LLM::Test::wait_for(20, sub {
        $two[0]->log('error.log') =~ /\[warn\].*next reload removes model "q"/
    }), 'the first one says that it ends');
    unlike($two[0]->log('error.log'), qr/next reload removes model "p"/,
           'the other model does not');
    is($has->(0, 'q'), 200, 'it is there until then');
    $two[0]->reload;
    ok(LLM::Test::wait_for(20, sub { $has->(0, 'q') == 404 }), 'then it ends');
    is($has->(0, 'p'), 200, 'the other one is there');
    $_->stop for @two;
}


# ---- what is refused ----

for my $case ([ 'new=2', 'needs a folder', qr/"new=" without "models="/ ],
              [ 'models=models new=31 like=demo', 'as many as fit', undef ],
              [ 'models=models new=32', 'too many',
                qr/"new=32", it must be between 0 and 31/ ],
              [ 'models=models new=1 like=x', 'like nothing',
                qr/"like=" of "llm_admin" names "x", but there is no such/ ],
              [ 'models=models like=demo', 'like without new',
                qr/"like=" without "new="/ ])
{
    my ($args, $name, $want) = @$case;

    $t->write_file('nginx.conf', $conf =~ s/state=admin\S+ .*?;/$args;/r);

    my ($status, $out) = $t->check;

    is($status, $want ? 1 : 0, $name) or diag($out);
    like($out, $want, 'which it says') if $want;
}

done_testing();
