#!/usr/bin/perl

# $llm_spans: what requests did with their time, of those that end well, that
# fail, and that are cut, in several workers.

use strict;
use warnings;

use LLM::JSON;
use LLM::Test;
use Test::More;
use Time::HiRes qw(time);

my $t = LLM::Test->new(workers => 3, pace => 0.5, main => 'worker_shutdown_timeout 1s;',
    model => <<'END', http => <<'END2', locations => <<'END3');
    llm_model demo %%ROOT%%/models/demo.gguf threads=1 parallel=1
              alias=gpt-4o-mini default;
    llm_queue 4;
END
    log_format spans escape=none '$request_id $llm_queue_time $llm_ttft '
                                 '$llm_tpot $request_time $llm_spans';
    log_format lines escape=none '$llm_spans';
    access_log off;
END2
        access_log logs/spans.log spans;
        access_log logs/lines.log lines if=$llm_spans;
        location /v1 { llm_api; add_header x-id $request_id always; }
        location /short { llm_timeout 700ms; llm_api; }
        location /late { llm_timeout 30s; llm_api; }
        location /closed { llm_api_keys keys; llm_api; }
        location = /health { llm_health; access_log off; }
        location = /metrics { llm_metrics; access_log off; }
        location /none { return 204; }
END3

$t->write_file('keys', "# none\n");
$t->start;

my ($trace, $parent) = ('0af7651916cd43dd8448eb211c80319c',
                        'b7ad6b7169203331');
my $serial = 0;
my $lines = 0;


# headers that make a request known by its parent's id

sub mark {
    $parent = sprintf '%016x', 0xabc0000 + ++$serial;

    return (headers => { traceparent => "00-$trace-$parent-01", @_ });
}

sub attrs {
    my ($list) = @_;

    return { map {
        my ($type, $v) = %{ $_->{value} };
        $_->{key} => $type eq 'arrayValue'
                     ? join ',', map { $_->{stringValue} } @{ $v->{values} }
                     : $v
    } @$list };
}


# the spans by name, the request's as {request}; what always holds is checked

sub spans {
    my ($name, $begin) = @_;

    LLM::Test::wait_for(20, sub { $t->log('spans.log') =~ /"$parent"/ })
        or die "$name: no spans";

    $lines++;

    my ($line) = $t->log('spans.log') =~ /^(.*"$parent".*)$/m;
    my ($id, $queue, $ttft, $tpot, $time, $json) = split / /, $line, 6;
    my $all = LLM::JSON->new->utf8->decode($json);

    is(scalar @{ $all->{resourceSpans} }, 1, "$name: a line");

    my $of = $all->{resourceSpans}[0];

    is(attrs($of->{resource}{attributes})->{'service.name'}, 'nginx-llm',
       "$name: of a service");

    my @spans = @{ $of->{scopeSpans}[0]{spans} };
    my %s = (figures => { queue => $queue, ttft => $ttft, tpot => $tpot,
                          time => $time });
    my (%ids, @wrong);

    for (@spans) {
        my $key = $_->{kind} == 2 ? 'request' : $_->{name};

        $s{$key} = $_;
        $_->{at} = attrs($_->{attributes} // []);
        $_->{s} = ($_->{endTimeUnixNano} - $_->{startTimeUnixNano}) / 1e9;

        push @wrong, 'id' if $_->{spanId} !~ /^[0-9a-f]{16}$/
                             || $ids{ $_->{spanId} }++;
        push @wrong, 'trace' if $_->{traceId} ne $trace;
        push @wrong, 'time' if $_->{s} < 0;
        push @wrong, 'early'
            if $begin && $_->{startTimeUnixNano} / 1e9 < $begin - 0.5;
        push @wrong, 'late' if $_->{endTimeUnixNano} / 1e9 > time + 0.5;
    }

    for my $child (grep { $_->{kind} != 2 } @spans) {
        my $over = $child->{name} eq 'tokenize' ? $s{queue} : $s{request};

        push @wrong, "parent of $child->{name}"
            if $child->{parentSpanId} ne $over->{spanId};
        push @wrong, "$child->{name} outside"
            if $child->{startTimeUnixNano} < $over->{startTimeUnixNano}
               || $child->{endTimeUnixNano} > $over->{endTimeUnixNano};
    }

    for (grep { $s{ $_->[0] } && $s{ $_->[1] } }
         [ qw(queue prefill) ], [ qw(prefill decode) ])
    {
        push @wrong, "@$_"
            if $s{ $_->[0] }{endTimeUnixNano}
               ne $s{ $_->[1] }{startTimeUnixNano};
    }

    is("@wrong", '', "$name: ids, places, times");
    is($s{request}{parentSpanId}, $parent, "$name: of the client's span");

    return \%s;
}

sub parts {
    my ($s) = @_;

    return join ' ', grep { $s->{$_} } qw(queue tokenize prefill decode);
}

sub near { abs($_[0] - $_[1]) < ($_[2] // 0.002) }


# ---- answers ----

my %a = (prompt => 'one two three', max_tokens => 20, ignore_eos => \1);

for my $stream (\0, \1, \0, \1) {
    my $name = $$stream ? 'a stream' : 'an answer';
    my $begin = time;
    my $res = $t->post('/v1/completions', { %a, stream => $stream,
        $$stream ? (stream_options => { include_usage => \1 }) : () }, mark);
    my $s = spans($name, $begin);
    my $at = $s->{request}{at};
    my ($in) = $res->{body} =~ /"prompt_tokens":(\d+)/;

    is(parts($s), 'queue tokenize prefill decode', "$name: all parts");
    is($s->{request}{name}, 'text_completion demo', "$name: its name");
    is_deeply([ @$at{qw(gen_ai.operation.name gen_ai.provider.name
                        gen_ai.request.model gen_ai.response.model
                        gen_ai.usage.input_tokens gen_ai.usage.output_tokens
                        gen_ai.usage.reasoning.output_tokens
                        gen_ai.response.finish_reasons http.request.method
                        url.path url.scheme http.response.status_code
                        error.type)},
                $at->{'nginx_llm.stream'} ? 1 : 0 ],
              [ 'text_completion', 'nginx-llm', 'demo', 'demo', $in, 20, 0,
                'length', 'POST', '/v1/completions', 'http', 200, undef,
                $$stream ], "$name: attributes");
    ok(exists $at->{'gen_ai.usage.cache_read.input_tokens'},
       "$name: cached tokens");
    is($s->{request}{status}, undef, "$name: no error");
    ok(near($s->{queue}{s}, $s->{figures}{queue}), "$name: \$llm_queue_time");
    ok(near($s->{queue}{s} + $s->{prefill}{s}, $s->{figures}{ttft}),
       "$name: \$llm_ttft");
    ok(near($s->{decode}{s}, 19 * $s->{figures}{tpot}), "$name: \$llm_tpot");
    ok(near($s->{request}{s}, $s->{figures}{time}, 0.5),
       "$name: \$request_time");
}

$t->post('/v1/completions', { %a, model => 'gpt-4o-mini', max_tokens => 2 },
         mark);

my $asked = spans('an alias', time)->{request}{at};

is_deeply([ @$asked{qw(gen_ai.request.model gen_ai.response.model)} ],
          [ 'gpt-4o-mini', 'demo' ], 'what was asked for, and what answered');

$t->post('/v1/chat/completions', {
    messages => [ { role => 'user', content => 'Hi' } ], max_tokens => 3 },
    mark);
is(spans('a chat')->{request}{name}, 'chat demo', 'a chat');

# no model runs for it

$t->post('/v1/tokenize', { prompt => 'one two' }, mark);
is(parts(spans('tokenize')), 'queue tokenize', 'tokens alone');

$t->get('/v1/models', mark);
is(parts(spans('models')), '', 'a list of models');

# a longer tokenize is in the right place

$t->post('/v1/tokenize', { prompt => join ' ', 1 .. 60_000 }, mark);
my $s = spans('a long text');
cmp_ok($s->{tokenize}{s}, '>', 0.002, 'takes longer');
cmp_ok($s->{queue}{s}, '>=', $s->{tokenize}{s}, 'in the queue');


# ---- failures ----

for my $case ([ 'no such model', 404, 'model_not_found', { %a, model => 'x' } ],
              [ 'no JSON', 400, 'invalid_request_error', '{' ])
{
    my ($name, $status, $error, $body) = @$case;

    $t->post('/v1/completions', $body, mark);
    $s = spans($name);
    is(parts($s), '', "$name: no parts");
    is($s->{request}{at}{'http.response.status_code'}, $status,
       "$name: status");
    is($s->{request}{at}{'error.type'}, $error, "$name: why");
    is($s->{request}{status}, undef, "$name: the client's error");
}

$t->post('/v1/completions', { %a, prompt => join ' ', 1 .. 30_000 }, mark);
$s = spans('too long');
is(parts($s), 'queue tokenize', 'too long: was tokenized');
cmp_ok($s->{tokenize}{s}, '>', 0, 'which took a while');
is($s->{request}{at}{'error.type'}, 'context_length_exceeded', 'and failed');

$t->post('/closed/completions', \%a, mark);
$s = spans('no key');
is(parts($s), '', 'no key: no parts');
is_deeply([ @{ $s->{request}{at} }{qw(http.response.status_code error.type)} ],
          [ 401, 'invalid_api_key' ], 'no key: why');

$t->post('/v1/completions', 'a' x 2_000_000, mark);
is(spans('too large')->{request}{at}{'http.response.status_code'}, 413,
   'a refusal of nginx');


# ---- cut ----

my $c = $t->open_long(mark);

$c->event for 1 .. 10;
$c->close;
$s = spans('a client that left');
is(parts($s), 'queue tokenize prefill decode', 'a client that left: parts');
is($s->{request}{at}{'gen_ai.response.finish_reasons'}, 'abort', 'as aborted');
cmp_ok($s->{request}{at}{'gen_ai.usage.output_tokens'}, '>=', 9,
       'with tokens');
is($s->{request}{status}, undef, 'nobody is to blame');
ok(near($s->{queue}{s} + $s->{prefill}{s}, $s->{figures}{ttft}, 0.02),
   'its first token');

for my $stream (\0, \1) {
    my $name = 'out of time, ' . ($$stream ? 'streamed' : 'whole');

    $t->post('/short/completions', { %a, n => 8, max_tokens => 1900,
                                     stream => $stream }, mark);
    $s = spans($name);

    SKIP: {
        skip 'this machine is too fast', 4
            if $s->{request}{at}{'gen_ai.response.finish_reasons'} eq 'length';

        is(parts($s), 'queue tokenize prefill decode', "$name: parts");
        is($s->{request}{at}{'error.type'}, 'timeout', "$name: why");
        is_deeply($s->{request}{status}, { code => 2 }, "$name: an error");
        cmp_ok($s->{decode}{endTimeUnixNano}
               - $s->{queue}{startTimeUnixNano}, '>', 0.65e9,
               "$name: until then");
    }
}

# one that waits and leaves: its queue ends with it

my $busy = $t->open_long(max_tokens => 1900, n => 8);

$busy->event;

my $waits = $t->open_long(mark);

$t->wait_queued(1) or die 'nobody waits';
select undef, undef, undef, 0.2;
$waits->close;
$s = spans('one that waits');
like(parts($s), qr/^queue/, 'one that waits: a queue');
ok(!$s->{prefill}, 'and nothing behind it');
cmp_ok($s->{queue}{s}, '>=', 0.2, 'as long as it waited');
$busy->close;

# a shutdown

$c = $t->open_long(mark, max_tokens => 1900, n => 16);
$c->event for 1 .. 5;
$t->kill('QUIT');
$c->events;
$s = spans('a shutdown');
is(parts($s), 'queue tokenize prefill decode', 'a shutdown: parts');
is_deeply($s->{request}{status}, { code => 2 }, 'an error');
isnt($s->{request}{at}{'error.type'}, undef, 'with a reason');

$t->stop;


# ---- which requests have any, and where the trace comes from ----

$t = LLM::Test->new(http => <<'END', locations => <<'END2')->start;
    log_format lines escape=none '$uri $llm_spans';
    access_log logs/lines.log lines if=$llm_spans;
END
        location /v1 { llm_api; }
        location = /health { llm_health; }
        location /none { return 204; }
END2

$t->get('/none');
$t->get('/v1/models', headers => { traceparent => "00-$trace-$parent-00" });
$t->get('/v1/models/demo', headers => { traceparent => 'none',
                                        tracestate => 'a=1' });
$t->get('/v1/models', headers => { traceparent => "00-$trace-$parent-01",
                                   tracestate => 'a="1\\' });

LLM::Test::wait_for(10, sub { ($t->log('lines.log') =~ tr/\n//) >= 2 });

my @logged = split /\n/, $t->log('lines.log');

is(scalar @logged, 2, 'not those elsewhere, nor those of a trace that is not '
   . 'recorded');

my ($new, $old) = map {
    LLM::JSON->new->utf8->decode(s/^\S+ //r)
        ->{resourceSpans}[0]{scopeSpans}[0]{spans}[0]
} @logged;

isnt($new->{traceId}, $trace, 'a new trace');
ok(!exists $new->{parentSpanId} && !exists $new->{traceState},
   'is its beginning');
is($old->{traceState}, 'a="1\\', 'a trace has a state');

$t->stop(name => 'which requests');

done_testing();
