#!/usr/bin/perl

# Every parameter of llm_model that changes how a model runs does so: seen
# from outside, one model a parameter, beside a plain one.

use strict;
use warnings;

use LLM::Test;
use POSIX qw(mktime);
use Test::More;

my $demo = '%%ROOT%%/models/demo.gguf';

my $t = LLM::Test->new(
    model => "llm_model plain $demo threads=2 parallel=2 default;"
           . "llm_model short $demo threads=1 parallel=2 ctx=96;"
           . "llm_model tight $demo threads=1 parallel=2 kv_cache=1m;"
           . "llm_model slices $demo threads=1 parallel=1 batch=16;"
           . "llm_model brief $demo threads=1 parallel=2 max_tokens=5;"
           . "llm_model echoes $demo threads=1 parallel=2"
           . " template=echo.jinja;"
           . "llm_model later $demo threads=1 parallel=2 lazy;"
           . "llm_model away $demo threads=1 parallel=2 idle=1s;",
    locations => <<'END');
        location /v1 { llm_api; }
        location = /health { llm_health; }
        location = /metrics { llm_metrics json; }
END

$t->write_file('echo.jinja',
               '{% for m in messages %}{{ m.content }}{% endfor %}');


sub health {
    my ($name) = @_;

    my ($m) = grep { $_->{id} eq $name }
              @{ $t->get('/health')->{json}{models} };

    return $m;
}


sub metrics {
    my ($name) = @_;

    my ($m) = grep { $_->{name} eq $name }
              @{ $t->get('/metrics')->{json}{models} };

    return $m;
}


sub complete {
    my ($model, %fields) = @_;

    return $t->post('/v1/completions', { model => $model, prompt => 'a',
                    temperature => 0, ignore_eos => \1, %fields });
}


# ---- lazy: before anything asks for it ----

$t->start;

is(health('later')->{status}, 'ok', 'lazy: ready to be asked');
ok(!health('later')->{loaded}, 'lazy: not loaded');
ok(health('plain')->{loaded}, 'the others are');

is($t->get('/v1/models/later')->{status}, 200, 'lazy: it is listed');
ok(!health('later')->{loaded}, 'which loads nothing');

my $want = complete('plain', max_tokens => 6)->{json}{choices}[0]{text};
my $res = complete('later', max_tokens => 6);

is($res->{status}, 200, 'lazy: the first request loads it')
    or diag($res->{body});
is($res->{json}{choices}[0]{text}, $want, 'and is answered');
ok(health('later')->{loaded}, 'it stays');


# ---- idle: unloaded when nobody asks, loaded again ----

is(complete('away', max_tokens => 6)->{json}{choices}[0]{text}, $want,
   'idle: answers');

ok(LLM::Test::wait_for(20, sub { !health('away')->{loaded} }),
   'idle: unloaded after a while');
is(health('away')->{status}, 'ok', 'and still ready to be asked');

$res = complete('away', max_tokens => 6);

is($res->{json}{choices}[0]{text}, $want, 'idle: loaded again, same answer')
    or diag($res->{body});
ok(health('plain')->{loaded}, 'without it a model stays');


# ---- threads, ctx ----

like(health('plain')->{device}, `nproc` > 1 ? qr/\b2 threads\b/
                                          : qr/\b1 thread\b/, 'threads=2');
like(health('short')->{device}, qr/\b1 thread\b/, 'threads=1');

is(health('short')->{ctx}, 96, 'ctx=96');

for my $max (500, -1) {
    $res = complete('short', max_tokens => $max, ignore_eos => \1);

    is($res->{json}{usage}{total_tokens}, 96, "max_tokens $max: cut to ctx");
    is($res->{json}{choices}[0]{finish_reason}, 'length', 'and it says so');
}

$res = complete('short', prompt => 'word ' x 200);

is($res->{status}, 400, 'a prompt that it cannot hold is refused');
is($res->{json}{error}{code}, 'context_length_exceeded', 'by name');

# to the last token

for my $case ([ 95, 32000, 200 ], [ 96, 1, 400 ], [ 96, 0, 200 ],
              [ 97, 0, 400 ])
{
    my ($n, $max, $status) = @$case;

    $res = complete('short', prompt => [ map { 100 + $_ } 1 .. $n ],
                    max_tokens => $max);

    is($res->{status}, $status, "a prompt of $n, max_tokens $max")
        or diag($res->{body});
    is($res->{json}{usage}{completion_tokens}, $max ? 96 - $n : 0,
       'what is left') if $status == 200;
    is($res->{json}{error}{code}, 'context_length_exceeded', 'by name')
        if $status == 400;
}

$res = $t->chat('Hi', model => 'short', ignore_eos => \1);

is($res->{json}{usage}{total_tokens}, 96, 'what is left is the default');
is($res->{json}{choices}[0]{finish_reason}, 'length', 'with its reason');

my @ids = map { 100 + $_ } 1 .. 100;

$res = complete('short', prompt => \@ids);

is($res->{status}, 400, 'a longer prompt is refused');
like($res->{json}{error}{message}, qr/\b96\b.*\b1\d\d\b/s,
     'with both numbers');


# ---- kv_cache: whatever ctx says, no sequence has more than that ----

my $plain = metrics('plain');
my $tight = metrics('tight');

# the plain one has a page cache for two whole sequences

my $page = 2 * health('plain')->{ctx} / $plain->{kv_pages};
my $room = $tight->{kv_pages} * $page;

cmp_ok($tight->{kv_pages}, '<', $plain->{kv_pages}, 'kv_cache: fewer pages');
cmp_ok($room, '>=', 64, 'some room');

@ids = map { 100 + $_ % 500 } 1 .. $room + 64;
$res = complete('tight', prompt => \@ids);

is($res->{status}, 400, 'a prompt that never fits is refused');
like($res->{json}{error}{message}, qr/\b\Q$room\E\b/, 'names what fits')
    or diag("room for $room: $res->{body}");
is(complete('plain', prompt => \@ids, max_tokens => 1)->{status}, 200,
   'and fits elsewhere');


# ---- batch: a prompt takes as many steps as that makes ----

@ids = map { 100 + $_ % 500 } 1 .. 320;

# without batch= the time of a step says how many, but they are fewer

for my $case ([ 'slices', 20, 26 ], [ 'plain', 1, 19 ]) {
    my ($name, $least, $most) = @$case;
    my $before = metrics($name)->{steps};

    # another prompt than above: nothing of it is cached
    complete($name, prompt => [ $name eq 'plain' ? 7 : 8, @ids ],
             max_tokens => 1);

    my $steps = metrics($name)->{steps} - $before;

    ok($steps >= $least && $steps <= $most, "batch: $steps steps of $name");
}


# ---- max_tokens, template ----

is(complete('brief')->{json}{usage}{completion_tokens}, 5, 'max_tokens=5');
is(complete('plain')->{json}{usage}{completion_tokens}, 16,
   'a completion without it gets 16');
is(complete('brief', max_tokens => 7)->{json}{usage}{completion_tokens}, 7,
   'the request goes before it');

sub prompt_tokens {
    my ($model) = @_;

    return $t->chat('one two', model => $model, max_tokens => 1)
             ->{json}{usage}{prompt_tokens};
}

is(prompt_tokens('echoes'),
   complete('plain', prompt => 'one two', max_tokens => 1)
       ->{json}{usage}{prompt_tokens},
   'template= is what renders');
cmp_ok(prompt_tokens('plain'), '>', prompt_tokens('echoes'),
       'instead of the file\'s own');

$t->stop;


# ---- parallel ----

$t = LLM::Test->new(pace => 0.5,
    model => "llm_model demo $demo threads=1 parallel=2;",
    locations => <<'END')->start;
        location /v1 { llm_api; }
        location = /health { llm_health; }
        location = /metrics { llm_metrics json; }
END

my @open = map { $t->open_long(max_tokens => 1500) } 1 .. 2;

$_->event for @open;

push @open, $t->open_long(max_tokens => 5);

ok(LLM::Test::wait_for(10, sub { health('demo')->{waiting} == 1 }),
   'parallel=2: the third waits');
is(health('demo')->{running}, 2, 'two run');

$open[0]->close;

my @events = $open[2]->events;

is($events[-1]{data}, '[DONE]', 'and runs when one is gone');
$open[1]->close;

# more choices than places are served one after another

$res = complete('demo', n => 5, max_tokens => 3);

is(scalar @{ $res->{json}{choices} }, 5, 'n above parallel') or
    diag($res->{body});

$t->stop(name => 'parallel');

# a template that is broken: its model says so, chats get the reason

$t = LLM::Test->new(
    model => "llm_model demo $demo threads=1 parallel=2 template=bad.jinja;");
$t->write_file('bad.jinja', "{% for m in messages %}\n{{ m.content }");
$t->start;

$res = $t->chat('Hi');

is($res->{status}, 500, 'a broken template: an error')
    or diag($res->{body});
like($res->{json}{error}{message}, qr/chat template, line 2/, 'with the line');
is(complete('demo', max_tokens => 1)->{status}, 200,
   'completions need no template');

$t->stop(name => 'a broken template');

# one that is gone when its model is loaded: whose it is, not where

$t = LLM::Test->new(model => "llm_model demo $demo threads=1 parallel=2 lazy"
                           . ' template=gone.jinja;');
$t->write_file('gone.jinja', '{{ messages }}');
$t->start;
unlink $t->dir . '/gone.jinja' or die "gone.jinja: $!";

$res = $t->chat('Hi');

is($res->{status}, 500, 'a template that is gone: an error')
    or diag($res->{body});
like($res->{json}{error}{message}, qr/^gone\.jinja: No such file/,
     'which file it is');
unlike($res->{body}, qr{/}, 'and not where it was');
like($t->log, qr{no chat: \Q@{[$t->dir]}\E/gone\.jinja: No such file},
     'the log says where');

$t->stop(name => 'a template that is gone');

# the engine's lines in the log have the time at which they were written, also
# when nothing else happens in the worker

$t = LLM::Test->new(model => "llm_model demo $demo threads=1 idle=3s;")->start;

my $asked = time;

is(complete('demo', max_tokens => 1)->{status}, 200, 'a request');
ok($t->wait_log(qr/was idle for 3 s/), 'and then no more');

my ($y, $m, $d, @hms)
    = $t->log =~ m{^(\d+)/(\d+)/(\d+) (\d+):(\d+):(\d+) .* was idle for}m;

cmp_ok(mktime($hms[2], $hms[1], $hms[0], $d, $m - 1, $y - 1900, 0, 0, -1),
       '>=', $asked + 2, 'the line says when that was');

$t->stop(name => 'the time of a line');

done_testing();
