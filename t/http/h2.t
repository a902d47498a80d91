#!/usr/bin/perl

# HTTP/2 streams that end while their connection goes on: RST_STREAM in
# mid-stream, while queued, before the answer, in a long prefill, with and
# without llm_ignore_client_abort; windows that stay closed.

use strict;
use warnings;

use LLM::H2;
use LLM::Test;
use Test::More;

my $file = LLM::Test::random_model(4, 40960);

my $t = LLM::Test->new(
    model => "llm_model one $file threads=1 parallel=1 default;"
           . " llm_model two $file threads=1 parallel=2;",
    server => 'listen 127.0.0.1:%%PORT2%% http2;',
    locations => <<'END')->start;
        location /v1 { llm_api; }
        location /patient { llm_ignore_client_abort on; llm_api; }
        location /small { llm_stream_buffer 4k; llm_api; }
        location = /health { llm_health; }
        location = /figures { llm_metrics json; }
END

my $long = { model => 'one', prompt => 'a', ignore_eos => \1,
             max_tokens => 30_000, stream => \1, temperature => 0 };
my $next = { model => 'one', prompt => 'b', ignore_eos => \1,
             max_tokens => 1, stream => \1 };
my $slow = { %$long, max_tokens => 10,
             prompt => [ map { 300 + $_ % 1000 } 1 .. 35_000 ] };


# The stream is reset once it is where the name says; the connection goes
# on, and its next request has the only place before the stream's prompt or
# its answer was computed whole.

sub reset_stream {
    my ($name, $path, $code) = @_;

    my $c = LLM::H2->new(port => $t->{port2});

    for (1 .. 3) {
        my $before = $t->figures;
        my @ids = $code->($c, $path);

        $c->rst($_) for @ids;

        my $id = $c->post('/v1/completions', $next);

        my $s = $c->wait_done($id);
        my $after = $t->figures;

        is((LLM::H2::events($s))[-1], '[DONE]', "$name: the next is whole");
        cmp_ok($after->{generation_tokens} - $before->{generation_tokens},
               '<', $long->{max_tokens}, "$name: before the answer was");
        cmp_ok($after->{prompt_tokens_computed}
               - $before->{prompt_tokens_computed}, '<', 35_000,
               "$name: and before the prompt was");
    }

    ok(!$c->{goaway}, "$name: the connection goes on");
}


for my $path ('/v1/completions', '/patient/completions') {
    my $on = $path =~ /patient/ ? ', llm_ignore_client_abort' : '';

    reset_stream("in mid-stream$on", $path, sub {
        my ($c) = @_;
        my $id = $c->post($path, $long);
        $c->wait_event($id, 3);
        return $id;
    });

    reset_stream("while queued$on", $path, sub {
        my ($c) = @_;
        my $id = $c->post($path, $long);
        $c->wait_event($id);
        my @queued = map { $c->post($path, $long) } 1 .. 3;
        ok(LLM::Test::wait_for(10, sub { $t->figures->{waiting} == 3 }),
           'three are queued');
        return (@queued, $id);
    });
}

reset_stream('without streaming', '/v1/completions', sub {
    my ($c, $path) = @_;
    my $id = $c->post($path, { %$long, stream => \0 });
    ok(LLM::Test::wait_for(10, sub { $t->figures->{running} == 1 }),
       'it runs');
    return $id;
});

reset_stream('in a long prefill', '/v1/completions', sub {
    my ($c, $path) = @_;
    my $steps = $t->figures->{steps};
    my $id = $c->post($path, $slow);

    ok(LLM::Test::wait_for(20, sub {
        my $f = $t->figures;
        $f->{running} == 1 && $f->{steps} >= $steps + 3
    }), 'it has begun');
    is($c->{streams}{$id}{data}, '', 'and is in its midst');

    return $id;
});


# without a streaming answer llm_ignore_client_abort lets a request run to
# its end, though nobody is there any more

{
    my $c = LLM::H2->new(port => $t->{port2});
    my $had = $t->figures->{generation_tokens};
    my $id = $c->post('/patient/completions',
                      { %$long, stream => \0, max_tokens => 8000 });

    ok(LLM::Test::wait_for(10, sub { $t->figures->{running} == 1 }),
       'llm_ignore_client_abort, without streaming: it runs');
    $c->rst($id);

    ok(LLM::Test::wait_for(20, sub { $t->figures->{running} == 0 }),
       'it ends');
    is($t->figures->{generation_tokens} - $had, 8000, 'with all its tokens');
}


# one of two streams is reset: the other one does not notice

{
    my $want = $t->post('/v1/completions', { %$long, model => 'two',
        stream => \0, max_tokens => 2000 })->{json}{choices}[0]{text};
    my $c = LLM::H2->new(port => $t->{port2});
    my $stays = $c->post('/v1/completions',
                         { %$long, model => 'two', max_tokens => 2000 });

    $c->wait_event($stays);

    for (1 .. 10) {
        my $goes = $c->post('/v1/completions', { %$long, model => 'two' });

        $c->wait_event($goes, 2);
        $c->rst($goes);
    }

    my $s = $c->wait_done($stays);

    is((LLM::H2::events($s))[-1], '[DONE]', 'beside ten resets: whole');
    ok(LLM::H2::text($s) eq $want, 'with its text');
}


# a window that stays closed parks the sequence; opened, the text is whole

{
    my %ask = (%$long, model => 'two', max_tokens => 1000);
    my $want = $t->post('/v1/completions', { %ask, stream => \0 })
                 ->{json}{choices}[0]{text};
    my $c = LLM::H2->new(port => $t->{port2}, window => 1000);
    my $id = $c->post('/small/completions', \%ask);

    $c->wait(sub { length $c->{streams}{$id}{data} == 1000 });

    ok(LLM::Test::wait_for(20, sub {
        $t->get('/figures')->{json}{models}[1]{parked} == 1
    }), 'a closed window parks the sequence');

    $c->open_window($id, 1 << 30);

    my $s = $c->wait_done($id);

    is((LLM::H2::events($s))[-1], '[DONE]', 'opened: to its end');
    ok(LLM::H2::text($s) eq $want, 'the whole text');

    # the same, but it goes away instead

    $id = $c->post('/small/completions', \%ask);
    $c->wait(sub { length $c->{streams}{$id}{data} == 1000 });
    ok(LLM::Test::wait_for(20, sub {
        $t->get('/figures')->{json}{models}[1]{parked} == 1
    }), 'parked once more');
    $c->rst($id);
    ok(LLM::Test::wait_for(5, sub {
        my $f = $t->get('/figures')->{json}{models}[1];
        $f->{parked} == 0 && $f->{running} == 0 && $f->{kv_pages_used} == 0
    }), 'a parked one that is reset leaves nothing behind');
}

$t->stop;

done_testing();
