#!/usr/bin/perl

# llm_admin's commands: models are unloaded, loaded, drained, also in
# llama-server's form; another file takes the place of the one that serves, under
# streams; which files may be named; what a reload, a restart and a worker that
# dies leave of it.

use strict;
use warnings;

use LLM::JSON;
use LLM::Made qw(other_weights);
use LLM::Test qw(slurp);
use Test::More;
use Time::HiRes qw(sleep time);

my $model = slurp("models/demo.gguf");

# other weights: all but the embedding and a layer or two are zero

my $other = other_weights($model);

my $t = LLM::Test->new(
    workers => 3,
    pace => 0.5,
    model => 'llm_model demo %%DIR%%/models/a.gguf threads=2 parallel=64'
           . ' kv_cache=256m ctx=1024 default;'
           . 'llm_model org/two %%DIR%%/outside.gguf threads=1 parallel=4'
           . ' kv_cache=64m;',
    locations => <<'END');
        location /v1 { llm_api; }
        location /admin { llm_admin state=admin.state models=models; }
        location = /models/load { rewrite ^ /admin/models/load last; }
        location = /health { llm_health; }
        location = /demo { llm_health ready demo; }
        location = /two { llm_health ready org/two; }
        location = /any { llm_health ready; }
END

my $dir = $t->dir;

mkdir "$dir/models" or die $!;
mkdir "$dir/models/sub" or die $!;
mkdir "$dir/models-too" or die $!;

$t->write_file($_, $model) for 'models/a.gguf', 'outside.gguf',
                               'models-too/x.gguf';
$t->write_file($_, $other) for 'models/b.gguf', 'models/sub/c.gguf',
                               "models/\xc3\xa4 \"b\".gguf";
$t->write_file('models/half.gguf', substr $model, 0, 200_000);
$t->write_file('models/none.gguf', 'not a model at all' x 1000);
symlink 'sub/c.gguf', "$dir/models/link.gguf" or die $!;
symlink "$dir/outside.gguf", "$dir/models/out.gguf" or die $!;
symlink '..', "$dir/models/up" or die $!;
symlink 'loop', "$dir/models/loop" or die $!;
system('mkfifo', "$dir/models/fifo") == 0 or die 'mkfifo';

$t->start;

sub admin {
    my ($method, $path, $body, %opt) = @_;

    return $t->request(method => $method, path => "/admin/$path",
                       body => $body, %opt);
}

sub act { admin('POST', "models/$_[0]", @_[1 .. $#_]) }
sub code { $_[0]{json}{error}{code} // '' }

sub is_code {
    my ($res, $status, $code, $name) = @_;

    is("$res->{status} " . code($res), "$status $code", $name)
        or diag($res->{body});
}

sub is_state {
    my ($state, $name, $model) = @_;

    $model //= 'demo';
    is(admin('GET', "models/$model")->{json}{state}, $state, $name);
}

my %ask = (prompt => 'The sky is', max_tokens => 30, temperature => 0,
           ignore_eos => \1);

sub ask {
    my (%of) = @_;

    return $t->post('/v1/completions', { %ask, %of });
}

sub answer { my $res = ask(@_); $res->{json}{choices}[0]{text} // code($res) }
sub health { $t->get($_[0] // '/demo') }

# what runs until it is read

sub stream {
    return $t->open('/v1/completions', { %ask, max_tokens => 300,
                                         stream => \1, @_ }, light => 1);
}

# its text to the end, and its error

sub whole {
    my ($s) = @_;

    my $error = '';

    while (my $e = $s->event) {
        $error = $e->{json}{error}{code} // $e->{json}{error}{message}
            if ref $e->{json} && $e->{json}{error};
    }

    return ($s->{text}, $error);
}

# the end of the action that an answer speaks of

sub ended {
    my ($res) = @_;

    my $place = $res->{headers}{location} // '/admin/models/demo';
    my $id = $res->{json}{action}{id} // -1;
    my $last;

    LLM::Test::wait_for(60, sub {
        $last = $t->get($place)->{json};
        $last->{action}{id} != $id || $last->{action}{state} =~ /done|failed/;
    });

    return $last;
}

my $old = answer();
my ($long) = whole(stream());


# ---- which files may be named ----

for my $case ([ 'no such file', 'x.gguf', 404, 'file_not_found' ],
              [ 'below a file', 'a.gguf/x', 404, 'file_not_found' ],
              [ 'up', '../outside.gguf', 400, 'invalid_file' ],
              [ 'up and down', 'sub/../b.gguf', 400, 'invalid_file' ],
              [ 'up by a link', 'up/outside.gguf', 400, 'invalid_file' ],
              [ 'to a folder beside', 'up/models-too/x.gguf', 400,
                'invalid_file' ],
              [ 'out by a link', 'out.gguf', 400, 'invalid_file' ],
              [ 'a circle of links', 'loop', 400, 'invalid_file' ],
              [ 'a whole path', "$dir/models/b.gguf", 400, 'invalid_file' ],
              [ 'a path of the system', '/etc/passwd', 400, 'invalid_file' ],
              [ 'a dot', './b.gguf', 400, 'invalid_file' ],
              [ 'a URL', 'https://hf.co/a/b.gguf', 400, 'invalid_file' ],
              [ 'two slashes', 'sub//c.gguf', 400, 'invalid_file' ],
              [ 'the folder', '.', 400, 'invalid_file' ],
              [ 'a folder', 'sub', 400, 'unusable_model' ],
              [ 'a FIFO', 'fifo', 400, 'unusable_model' ],
              [ 'no model', 'none.gguf', 400, 'unusable_model' ],
              [ 'half a model', 'half.gguf', 400, 'unusable_model' ],
              [ 'a long name', 'x' x 1100, 400, 'invalid_file' ],
              [ 'a long path', 'x/' x 500 . 'x', 404, 'file_not_found' ],
              [ 'no name', '', 400, 'invalid_value' ],
              [ 'a number', 7, 400, 'invalid_type' ])
{
    my ($name, $file, $status, $code) = @$case;
    my $res = act('demo/load', { file => $file });

    is_code($res, $status, $code, $name);
    unlike($res->{body}, qr/\Q$dir/, "$name: no folder is told");
}

is_code(act('demo/load', { path => 'b.gguf' }), 400, 'unknown_parameter',
        'another member');
is_code(act('demo/unload', { file => 'b.gguf' }), 400, 'unknown_parameter',
        'unload names no file');
is_code(act("demo/unload?timeout=$_"), 400, 'invalid_value', "timeout=$_")
    for 'x', '2d', '-1';
is_code(act('demo/load?wait=x'), 400, 'invalid_value', 'wait=x');
is(answer(), $old, 'nothing has changed');
is(admin('GET', 'models/demo')->{json}{action}, undef, 'nothing was done');


# ---- llama-server's form ----

sub listed {
    my ($list) = grep { $_->{id} eq 'org/two' }
                 @{ $t->get('/v1/models')->{json}{data} };

    return $list->{status}{value};
}

sub becomes {
    my ($want) = @_;

    LLM::Test::wait_for(60, sub { listed() eq $want });
    is(listed(), $want, "it is $want");
}

for my $case ([ 'no model', undef, 400, 'missing_required_parameter' ],
              [ 'another member', { file => 'b.gguf' }, 400,
                'unknown_parameter' ],
              [ 'a number', { model => 7 }, 400, 'invalid_type' ],
              [ 'an unknown one', { model => 'nobody' }, 404,
                'model_not_found' ])
{
    my ($name, $body, $status, $code) = @$case;

    is_code(act('unload', $body), $status, $code, "the body names $name");
}

becomes('loaded');

for my $path (qw(/admin/models/unload /models/load)) {
    my $res = $t->post($path, { model => 'org/two' });

    is("$res->{status} $res->{body}", '200 {"success":true}', $path);
    becomes($path =~ /unload/ ? 'unloaded' : 'loaded');
}

is(admin('GET', 'models/load')->{status}, 404, 'it is no model');


# ---- another file ----

my $res = act('demo/load', { file => 'b.gguf' });

is($res->{status}, 202, 'another file is to be loaded') or diag($res->{body});
is($res->{headers}{location}, '/admin/models/demo', 'where to ask');
is($res->{json}{action}{command}, 'load', 'what was taken');

my $end = ended($res);

is($end->{action}{state}, 'done', 'it takes over') or diag(explain($end));
is($end->{file}, 'b.gguf', 'it serves');
is($end->{action}{file}, 'b.gguf', 'as the action says');
ok(!$end->{configured_file}, 'it is not the configured one');
is($end->{state}, 'ready', 'it is ready');

my $new = answer();

isnt($new, $old, 'another text');
my ($long_new) = whole(stream());

$res = act('demo/load?wait=60', { file => undef });
is($res->{status}, 200, 'back to the configured file, waiting for it')
    or diag($res->{body});
is($res->{json}{file}, 'a.gguf', 'it serves');
is(answer(), $old, 'the old text');

for my $file ('sub/c.gguf', 'link.gguf', "\x{e4} \"b\".gguf") {
    is(act('demo/load?wait=60', { file => $file })->{status}, 200,
       'a file') or diag($file);
    is(answer(), $new, 'serves');
    is(act('demo/load?wait=60', { file => 'a.gguf' })->{status}, 200,
       'the first one by its name');
    is(answer(), $old, 'serves again');
}

$res = act('org%2Ftwo/load?wait=60', { file => 'b.gguf' });
is($res->{status}, 200, 'a model whose name has a slash');
is(answer(model => 'org/two'), $new, 'its text');
is(answer(), $old, 'not that of the other');
is(act('org/two/load', { file => undef })->{headers}{location},
   '/admin/models/org%2Ftwo', 'where to ask');
ok(LLM::Test::wait_for(60, sub { answer(model => 'org/two') eq $old }),
   'back');


# ---- under fifty streams ----

my @streams = map { stream() } 1 .. 25;

$_->event for @streams;
$res = act('demo/load', { file => 'b.gguf' });
push @streams, map { stream() } 1 .. 25;

my @texts = map { [ whole($_) ] } @streams;

is((grep { $_->[1] ne '' } @texts), 0, 'fifty streams: none has an error')
    or diag(explain([ grep { $_->[1] ne '' } @texts ]));
is((grep { $_->[0] eq $long || $_->[0] eq $long_new } @texts), 50,
   'each text is of one model from end to end');
is((grep { $_->[0] eq $long } @texts[0 .. 24]), 25,
   'those that ran before end with the old one');
is(ended($res)->{action}{state}, 'done', 'the new one has taken over');
is(answer(), $new, 'and serves');
is(act('demo/load?wait=60', { file => undef })->{status}, 200, 'back again');


# ---- no memory ----

# 400 GB of weights, in a file that takes 23 MB of the disk

system('python3', "$LLM::Test::ROOT/t/bench/mkmodel.py", 'llama-3.1-8b', 'f32',
       "$dir/models/large.gguf", '--layers', 500, '--hole') == 0
    or die 'no large.gguf';

my $beside = stream();

$beside->event;
$res = act('demo/load?wait=60', { file => 'large.gguf' });
is_code($res, 503, 'model_failed', 'a file that no memory would hold');
like($res->{json}{error}{message},
     qr/large\.gguf.*weights take \d{6} MiB.* of \d+ MiB are free/,
     'how much it takes and how much there is');
is_deeply([ whole($beside) ], [ $long, '' ], 'a stream beside it goes on');
is(answer(), $old, 'and the old one serves');

my $one = admin('GET', 'models/demo')->{json};

is("$one->{state} $one->{file} $one->{action}{state}",
   'ready a.gguf failed', 'which the model says');
unlink "$dir/models/large.gguf";


# ---- unload, load ----

$res = act('demo/unload?wait=30');
is($res->{status}, 200, 'unloaded') or diag($res->{body});
is($res->{json}{state}, 'stopped', 'it is stopped');
is_deeply([ @{ $res->{json}{memory} }{qw(weights kv_pages)} ], [ 0, 0 ],
          'its memory is free');
is_code(ask(), 503, 'model_stopped', 'its requests are refused');
is(health()->{status}, 503, 'its health');
is(health()->{json}{models}[0]{status}, 'stopped', 'says so');
is(health('/two')->{status}, 200, 'the other one is not concerned');
is(health('/any')->{json}{status}, 'degraded', 'one can serve');
is(health('/health')->{status}, 200, 'in all');
is_code(act('demo/resume'), 409, 'model_stopped', 'resume does not load it');
is_code(ask(), 503, 'model_stopped', 'no request loads it');
$res = act('demo/load?wait=60');
is("$res->{status} " . ($res->{json}{state} // ''), '200 ready',
   'loaded again') or diag($res->{body});
is(answer(), $old, 'it serves');

my $slow = stream(max_tokens => 900);

$slow->event;
$res = act('demo/unload?timeout=0');
is($res->{status}, 202, 'unloaded at once');
is((whole($slow))[1], 'model_stopped', 'what ran got an error');
is(ended($res)->{action}{state}, 'done', 'done');
is(act('demo/load?wait=60')->{status}, 200, 'loaded again');

my $brief = stream();

$brief->event;
$res = act('demo/unload?timeout=5m&wait=60');
is($res->{status}, 200, 'unloaded when nothing runs any more');
is_deeply([ whole($brief) ], [ $long, '' ], 'what ran ended as it should');
is(act('demo/load?wait=60')->{status}, 200, 'loaded again');


# ---- drain, resume ----

my $running = stream(max_tokens => 900);

$running->event;
$res = act('demo/drain?notice=' . 4 * $LLM::Test::SLOW);
is($res->{status}, 202, 'drains') or diag($res->{body});
ok(LLM::Test::wait_for(3, sub { health()->{status} == 503 }),
   'health says so first');
is(health()->{json}{status}, 'draining', 'as "draining"');
is(ask()->{status}, 200, 'requests are taken for a while');
ok(LLM::Test::wait_for(20, sub { code(ask(max_tokens => 1))
                                 eq 'model_draining' }),
   'then they are refused');
is_state('draining', 'its state');
is(health('/health')->{status}, 200, 'another model can serve');
is((whole($running))[1], '', 'what ran ended as it should');
is(ended($res)->{action}{state}, 'done', 'nothing is left');
$res = act('demo/resume?wait=10');
is("$res->{status} " . ($res->{json}{state} // ''), '200 ready', 'resumed');
is(health()->{status}, 200, 'healthy');
is(answer(), $old, 'it serves');


# ---- one right behind the other: each has its end in the log ----

my @ids;

for (1 .. 3) {
    for my $what ('unload?timeout=0&wait=30', 'load?wait=60',
                  'drain?notice=0&wait=30', 'resume?wait=30')
    {
        $res = act("demo/$what");
        push @ids, $res->{json}{action}{id};
        is($res->{status}, 200, $what) or diag($res->{body});
    }
}

# what is under way when another one follows has no other end; nobody reads the
# stream that it waits for, so that it does not end

my $last = LLM::Client->open(port => $t->port, method => 'POST',
    path => '/v1/completions', rcvbuf => 4096,
    body => { %ask, max_tokens => 900, n => 8, logprobs => 5, stream => \1 });

$last->event;
$res = act('demo/drain?notice=0');
is($res->{status}, 202, 'one that takes time');
push @ids, $res->{json}{action}{id};

LLM::Test::wait_for(20, sub {
    admin('GET', 'models/demo')->{json}{action}{state} eq 'running'
}) or die 'it is not taken';
$res = act('demo/resume?wait=30');
is($res->{status}, 200, 'another one follows') or diag($res->{body});

my $after = $res->{json}{action}{id};

$last->close;
ok($t->wait_log(qr/llm_admin: action $after, resume of "demo": done$/m),
   'the last one is done');

my %end = $t->log('error.log')
          =~ /llm_admin: action (\d+), \w+ of "demo": (.*)$/mg;

is(join(', ', map { $end{$_} // 'nothing' } @ids),
   join(', ', ('done') x (@ids - 1), "replaced by action $after"),
   'each action has its end');
is(scalar(() = $t->log('error.log')
               =~ /llm_admin: action $ids[0], \w+ of "demo"/g), 1,
   'and one');


# ---- who leaves, who waits too short ----

$res = act('demo/load?wait=0.001s', { file => 'b.gguf' });
is($res->{status}, 400, 'no part of a millisecond');

my $gone = LLM::Client->open(port => $t->port, method => 'POST',
                             path => '/admin/models/demo/load?wait=60',
                             body => { file => 'b.gguf' });

ok(LLM::Test::wait_for(20, sub {
    (admin('GET', 'models/demo')->{json}{action}{file} // '') eq 'b.gguf' }),
   'taken');
close $gone->{socket};
ok(LLM::Test::wait_for(60, sub { answer() eq $new }),
   'a client that leaves has asked for it all the same');


# ---- one after the other, and without an engine ----

my $engine = $t->engine_worker;

$t->pause($engine);
$res = act('demo/load', { file => 'a.gguf' });
is("$res->{status} $res->{json}{action}{state}", '202 sent',
   'an engine that stands still');
is_code(act('demo/load', { file => 'b.gguf' }), 409, 'command_pending',
        'a second one has to wait');
is(act("org/two/drain?notice=0")->{status}, 202, 'for another model not');
is(act("demo/load?wait=100ms", { file => 'b.gguf' })->{status}, 409,
   'whoever waits');
$t->kill('CONT', $engine);
is(ended($res)->{action}{state}, 'done', 'then it goes on');
is(answer(), $old, 'the first one was done');
is(act('org/two/resume?wait=10')->{status}, 200, 'so was the other');

$t->pause($engine);
$res = act('demo/load?wait=200ms', { file => 'b.gguf' });
is($res->{status}, 202, 'who waits too short gets what there is');
is($res->{headers}{location}, '/admin/models/demo', 'and where to ask');
$t->kill('CONT', $engine);
is(ended($res)->{action}{state}, 'done', 'done');

$t->pause($engine);

my $wait = LLM::Client->open(port => $t->port, method => 'POST',
                             path => '/admin/models/demo/load?wait=60');

ok(LLM::Test::wait_for(20, sub {
    admin('GET', 'models/demo')->{json}{action}{state} eq 'sent' }), 'sent');

my @old = $t->reload;

is($wait->response->{status}, 202,
   'who waits in a worker that is to end gets what there is');
$t->kill('CONT', $engine);
ok(LLM::Test::wait_for(30, sub {
    my %now = map { $_ => 1 } $t->workers;
    !grep { $now{$_} } @old }), 'the old workers end');
ok(LLM::Test::wait_for(60, sub { answer() eq $new }), 'ready again');

$engine = $t->engine_worker;
$t->pause;
$t->kill('KILL', $engine);

# until it is dead, a connection may wake it alone, and nobody takes it then
ok(LLM::Test::wait_for(20, sub {
       my ($state) = LLM::Test::slurp("/proc/$engine/stat") =~ /\) (\w)/;

       return $state eq 'Z';
   }), 'the engine is dead');

my $lost = LLM::Client->open(port => $t->port, method => 'POST',
                             path => '/admin/models/demo/unload?wait=60');

is(admin('GET', 'models/demo')->{status}, 200,
   'without an engine one may look');
$t->kill('CONT');
$res = $lost->response;
is_code($res, 503, 'engine_restarting', 'a command that nobody has taken');
ok($res->{headers}{'retry-after'}, 'try again');
ok(LLM::Test::wait_for(60, sub { $t->workers == 3 && answer() eq $new }),
   'there is one again, with the same file');


# ---- a reload, a worker that dies, a restart ----

is(act('org/two/unload?wait=30')->{status}, 200, 'the other one is stopped');

$t->reload;
ok(LLM::Test::wait_for(60, sub { $t->workers == 3 && answer() eq $new }),
   'after a reload the file is the same');
is_state('stopped', 'and what was stopped is', 'org/two');
is(admin('GET', 'models/demo')->{json}{file}, 'b.gguf', 'it is told');

$t->kill('KILL', $t->engine_worker);
ok(LLM::Test::wait_for(60, sub { $t->workers == 3 && answer() eq $new }),
   'the engine is started again, with this file');
is_state('stopped', 'and what was stopped', 'org/two');

my $killed = qr/exited on signal 9/;

$t->stop(allow => $killed);
$t->start;
is(answer(), $new, 'after a restart, too');
is_state('stopped', 'and what was stopped', 'org/two');

# the configured file is gone, which nothing needs

rename "$dir/models/a.gguf", "$dir/a.gguf" or die $!;
is(($t->check)[0], 0, 'without the configured file: nginx -t');
unlike(($t->check)[1], qr/not usable/, 'says nothing');
$t->reload;
ok(LLM::Test::wait_for(60, sub { $t->workers == 3 && answer() eq $new }),
   'a reload');
$t->stop(allow => $killed);
$t->start;
is(answer(), $new, 'a restart');
rename "$dir/a.gguf", "$dir/models/a.gguf" or die $!;

# the file is gone

$t->stop(allow => $killed);
rename "$dir/models/b.gguf", "$dir/b.gguf" or die $!;
$t->start;
is(answer(), $old, 'one that is gone: the configured one');
ok($t->wait_log(qr/model "demo" begins with the configuration's file, not /),
   'the log says so');
rename "$dir/b.gguf", "$dir/models/b.gguf" or die $!;

is(act('org/two/load?wait=60')->{json}{state}, 'ready', 'loaded again');


# ---- the log ----

my $log = $t->log('error.log');

my $taken = qr/from "a\.gguf" to "b\.gguf": accepted, action \d+/;

like($log, qr/llm_admin: client "-" at 127\.0\.0\.1: POST load "demo", $taken/,
     'what was asked');
like($log, qr/llm_admin: action \d+, load of "demo": done/, 'how it ended');
like($log, qr/POST unload "demo", from "ready" to "-": accepted/, 'unload');
like($log, qr/POST load "demo", from "-" to "-": refused, 400 invalid_file/,
     'what was refused');

$t->stop(allow => $killed);


# ---- without a folder ----

$t = LLM::Test->new(locations => <<'END')->start;
        location /v1 { llm_api; }
        location /admin { llm_admin; }
        location = /health { llm_health; }
END

is_code(act('demo/load', { file => 'b.gguf' }), 403, 'files_not_allowed',
        'no models=');
is(act('demo/load?wait=60', { file => undef })->{status}, 200,
   'its own file may be named');
is(act('demo/unload?wait=30')->{status}, 200, 'what needs no file');
is(act('demo/load?wait=60')->{status}, 200, 'works');

$t->stop;


# ---- memory for one ----

SKIP: {
    skip 'this build has no emulator of a GPU', 11
        if !-e "$LLM::Test::OBJS/llm_emu.so";

    local $ENV{LLM_EMU_MEMORY} = 37_000_000;

    $t = LLM::Test->new(main => 'env LLM_EMU_MEMORY;',
        model => 'llm_model demo %%DIR%%/models/a.gguf device=emu threads=2'
               . ' ctx=4096 parallel=1;',
        locations => <<'END');
        location /v1 { llm_api; }
        location /admin { llm_admin models=models; }
        location = /health { llm_health; }
END
    $dir = $t->dir;
    mkdir "$dir/models" or die $!;
    $t->write_file('models/a.gguf', $model);
    $t->write_file('models/b.gguf', $other);
    $t->start;

    my $first = answer(max_tokens => 4);
    my $beside = stream(max_tokens => 40);

    $beside->event;
    $res = act('demo/load?wait=60', { file => 'b.gguf' });
    is_code($res, 503, 'no_memory', 'a GPU with memory for one model');
    like($res->{json}{error}{message}, qr/\d+ bytes for .*: out of memory/,
         'it says what for');

    my ($text, $error) = whole($beside);

    is($error, '', 'a stream beside it goes on');
    like($text, qr/^\Q$first/, 'with the old one');
    is(answer(max_tokens => 4), $first, 'which serves');

    my $demo = admin('GET', 'models/demo')->{json};

    is("$demo->{state} $demo->{file} $demo->{action}{state}",
       'ready a.gguf failed', 'as the model says');

    # what is unloaded makes room

    is(act('demo/unload?wait=60')->{status}, 200, 'unloaded');
    is(act('demo/load?wait=60', { file => 'b.gguf' })->{status}, 200,
       'the other one is loaded');
    isnt(answer(max_tokens => 4), $first, 'and serves');

    $t->stop(name => 'a GPU with memory for one');
}

done_testing();
