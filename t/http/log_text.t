#!/usr/bin/perl

# Texts of users in logs: with llm_capture what was asked and answered, within
# its bounds; without it none, wherever in a request they are.

use strict;
use warnings;

use Encode qw(decode FB_CROAK);
use LLM::JSON;
use LLM::Made qw(script);
use LLM::Test;
use Test::More;

my $mark = 'zanzibar';

my $t = LLM::Test->new(workers => 3, model => <<'END',
    llm_model demo %%ROOT%%/models/demo.gguf threads=1 parallel=4 default;
    llm_model script %%DIR%%/script.gguf ctx=1024 threads=1
              template=%%DIR%%/harmony.jinja;
END
    http => <<'END', locations => <<'END2');
    log_format text escape=json '{"uri":"$request_uri","in":"$llm_input",'
                                '"out":"$llm_output","status":"$status"}';
    log_format figures '$llm_model|$llm_request_id|$llm_tenant|'
        '$llm_prompt_tokens|$llm_cached_tokens|$llm_completion_tokens|'
        '$llm_reasoning_tokens|$llm_finish_reason|$llm_queue_time|$llm_ttft|'
        '$llm_tpot|$llm_endpoint|$llm_error|$llm_stream|$llm_key|'
        '$llm_input|$llm_output|$request|$http_user_agent';
    access_log logs/figures.log figures;
    error_log logs/info.log info;
    error_log logs/notice.log notice;
    client_body_buffer_size 16k;
    client_max_body_size 8m;
    map $llm_stream $streamed { 1 1; default ""; }
END
        location /v1 { llm_api; }
        location = /health { llm_health; }
        location = /figures { llm_metrics json; }
        location /kept {
            llm_capture 64k;
            access_log logs/text.log text;
            access_log logs/streams.log text if=$streamed;
            llm_api;
            location /kept/cut { llm_capture 40; llm_api; }
            location /kept/off {
                llm_capture off;
                access_log logs/off.log text;
                llm_api;
            }
        }
END2

$t->write_file('harmony.jinja', <<'END');
{#- as of a model that begins with <|channel|>analysis -#}
{%- for m in messages -%}
{%- if m.role == 'tool' -%}
{{ raise_exception('no tools: ' ~ m.content) }}
{%- endif -%}
<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>
{%- endfor -%}
{%- for name in ('call',) if name == line -%}
<|start|>assistant<|say:{{ name }}|>
{%- endfor -%}
END
$t->write_file('script.json', encode_json({
    call => '<|channel|>analysis<|message|>I call {it}.<|end|>'
        . '<|start|>assistant<|channel|>commentary to=functions.look '
        . '<|constrain|>json<|message|>{"at": "sea"}<|call|>' }));
script($t->dir);
$t->start;

LLM::Test::wait_for(60, sub {
    $t->post('/v1/completions', { model => 'script', prompt => 'a',
                                  max_tokens => 1 })->{status} == 200;
}) or die 'no script model';


# ---- without llm_capture ----

my $n = 0;

sub word { $mark . ++$n }

my %look = (type => 'function', function => { name => 'look',
    description => word(), parameters => { type => 'object',
        properties => { word() => { type => 'string' } } } });
my @hi = (messages => [ { role => 'user', content => word() } ]);
my %p = (prompt => word(), max_tokens => 2);

# what is answered, and what is refused for one reason or another

my @asked = (
    [ chat => { @hi, max_tokens => 2, tools => [ \%look ] } ],
    [ chat => { @hi, max_tokens => 2, stream => \1 } ],
    [ chat => { messages => [ { role => word(), content => 'a' } ] } ],
    [ chat => { messages => [ { role => 'user',
                                content => { word() => 1 } } ] } ],
    [ chat => { messages => word() } ],
    [ chat => { model => 'script', messages => [
        { role => 'user', content => 'a' },
        { role => 'assistant', content => undef, tool_calls => [ {
            id => 'a', type => 'function',
            function => { name => 'look', arguments => '{}' } } ] },
        { role => 'tool', tool_call_id => 'a', content => word() } ] } ],
    [ chat => { @hi, tools => [ { type => word() } ] } ],
    [ chat => { @hi, tools => [ \%look ], tool_choice => word() } ],
    [ chat => { @hi, tools => [ \%look ], tool_choice => { type => 'function',
        function => { name => word() } } } ],
    [ chat => { @hi, response_format => { type => word() } } ],
    [ chat => { @hi, response_format => { type => 'json_schema',
        json_schema => { name => 'a', schema => { type => 'object',
            properties => { word() => { type => word() } },
            required => [ word() ] } } } } ],
    [ chat => { @hi, response_format => { type => 'json_schema',
        json_schema => { name => 'a', schema => {
            '$ref' => '#/$defs/' . word() } } } } ],
    [ chat => { @hi, chat_template_kwargs => word() } ],
    [ chat => { @hi, reasoning_effort => word() } ],
    [ completions => \%p ],
    [ completions => { %p, stream => \1 } ],
    [ completions => { %p, model => word() } ],
    [ completions => { %p, grammar => 'root ::= ' . word() } ],
    [ completions => { %p, grammar => word() } ],
    [ completions => { %p, guided_regex => '(' . word() } ],
    [ completions => { %p, guided_choice => word() } ],
    [ completions => { %p, stop => { word() => 1 } } ],
    [ completions => { %p, suffix => word() } ],
    [ completions => { %p, logit_bias => { word() => 1 } } ],
    [ completions => { %p, temperature => word() } ],
    [ completions => { %p, word() => word() } ],
    [ completions => { %p, user => word(), metadata => { a => word() } } ],
    [ completions => { %p, prompt => word() . ' a b' x 9000 } ],
    [ completions => '{"prompt": "' . word() . '", }' ],
    [ completions => '{"prompt": "' . word() . "\xff\"}" ],
    [ completions => word() ],
    [ completions => '["' . word() . '"]' ],
    [ completions => { %p, prompt => word() . ' a' x 40_000 } ],
    [ messages => { @hi, max_tokens => 2, system => word() } ],
    [ messages => { @hi, max_tokens => 2, system => { word() => 1 } } ],
    [ messages => { messages => [ { role => 'user', content => [
        { type => word(), text => word() } ] } ], max_tokens => 2 } ],
    [ responses => { input => word(), instructions => word(),
                     max_output_tokens => 16 } ],
    [ responses => { input => [ { type => word() } ] } ],
    [ tokenize => { prompt => word() } ],
    [ 'apply-template' => { @hi } ],
    [ embeddings => { input => word() } ],
    [ rerank => { query => word(), documents => [ word() ] } ],
    [ infill => { input_prefix => word(), input_suffix => word() } ],
    [ infill => { input_prefix => 'a', input_extra => [ { word() => 1 } ] } ],
    [ 'chat/completions/' => { @hi } ],
);

my %status;

for (@asked) {
    my ($path, $body) = @$_;

    $path = 'chat/completions' if $path eq 'chat';
    $status{$t->post("/v1/$path", $body)->{status}}++;
}

for my $path (qw(/v1/completions /kept/off/completions)) {
    my $s = $t->open($path, { %p, stream => \1, ignore_eos => \1,
                              max_tokens => 1500 }, light => 1);

    $s->event for 1 .. 3;
    $s->close;
}

is(join(' ', sort keys %status), '200 400 404',
   scalar(@asked) . ' requests, answered and refused');
cmp_ok($status{400}, '>', 20, 'most of them refused');

$t->wait_log(qr/(?:.*\n){40}/, 'figures.log') or die 'no log';


# names of the logs that have it; temporary files are none

sub having {
    my ($word) = @_;

    return join ' ', grep { $t->log($_) =~ /$word/ }
           map { m{([^/]+)$} } glob $t->dir . '/logs/*';
}

# what a template refuses is mended, and the log says so: once, and without the
# template's own words, which have the user's in them

for (1 .. 2) {
    is($t->post('/v1/apply-template', { model => 'script', messages => [
           { role => 'user', content => 'a' },
           { role => 'assistant', content => undef, tool_calls => [ {
               id => 'a', type => 'function',
               function => { name => 'look', arguments => '{}' } } ] },
           { role => 'tool', tool_call_id => 'a', content => word() } ] })
         ->{status}, 200, 'a result that the template refuses');
}

my $told = qr/\[warn\].*model "script": its chat template refuses a /
           . qr/conversation: calls and their results are told as text/;

$t->wait_log($told);
is(scalar(() = $t->log('error.log') =~ /$told/g), 1, 'the log says so once');

is(having($mark), '', 'no log has any text of theirs');
like($t->log('info.log'), qr/\[info\].* llm: 400: /, 'the errors are there');
like($t->log('info.log'), qr/llm: 404: model_not_found in "model"/,
     'by code and parameter');


# ---- with it ----

my $seen = 0;

sub logged {
    my @lines;

    LLM::Test::wait_for(10, sub {
        @lines = split /\n/, $t->log('text.log');
        @lines > $seen;
    }) or die 'no line in the log';

    is(scalar @lines, ++$seen, 'one line');

    return LLM::JSON->new->decode(decode('UTF-8', $lines[-1], FB_CROAK));
}


my %ask = (prompt => "say \"\x{e9}\x{4e2d}\x{1f600}\"", max_tokens => 8,
           temperature => 0, ignore_eos => \1);
my $json = LLM::JSON->new->utf8->canonical->encode(\%ask);
my $res = $t->post('/kept/completions', $json);
my $v = logged();

is($v->{in}, decode('UTF-8', $json), 'the body, as it came');
is($v->{out}, $res->{json}{choices}[0]{text}, 'the text of the answer');

$t->post('/kept/completions', { %ask, stream => \1 });
is(logged()->{out}, $v->{out}, 'streamed, too');
like($t->log('streams.log'), qr/"stream\\":true/, 'a log with if=');
is(scalar(() = $t->log('streams.log') =~ /\n/g), 1, 'of streams alone');

$res = $t->post('/kept/completions', { %ask, n => 3, seed => 1,
                                       temperature => 1 });
is(logged()->{out}, join("\n", map { "[$_->{index}] $_->{text}" }
                               @{ $res->{json}{choices} }), 'three choices');

$res = $t->post('/kept/chat/completions', {
    model => 'script', stream => \1, temperature => 0, messages => $hi[1],
    chat_template_kwargs => { line => 'call' },
    max_tokens => 200, tools => [ { type => 'function', function => {
        name => 'look', parameters => { type => 'object',
            properties => { at => { type => 'string' } } } } } ] });
like(logged()->{out},
     qr/^\[reasoning\] I call \{it\}\.\n\[call\] look \{"at": ?"sea"\}$/,
     'reasoning and a call');

# within a bound, at whole characters, and the rest is counted

$json = encode_json({ %ask, max_tokens => 60 });
$json = '{"a":"' . ("\xc3\xa9" x 40) . '",' . substr $json, 1;
$res = $t->post('/kept/cut/completions', $json);
$v = logged();

my ($in, $more) = $v->{in} =~ /^(.*)\.\.\.\[(\d+) bytes more\]$/s;

is($in, decode('UTF-8', substr $json, 0, 40), 'the input is cut');
is($more, length($json) - 40, 'and says how much');

$json = '{"ab":"' . substr $json, 6;
$t->post('/kept/cut/completions', $json);
($in, $more) = logged()->{in} =~ /^(.*)\.\.\.\[(\d+) bytes more\]$/s;
is(length $in, 7 + 16, 'never within a character');
is($more, length($json) - 39, 'nor within the count');

my $text = $res->{json}{choices}[0]{text};

utf8::encode($text);
($in, $more) = $v->{out} =~ /^(.*)\.\.\.\[(\d+) bytes more\]$/s;
utf8::encode($in);
is($in, substr($text, 0, length $in), 'so is the output');
cmp_ok(length $in, '<=', 40, 'to as much');
cmp_ok(length $in, '>', 36, 'and little less');
is(length($in) + $more, length $text, 'nothing is lost from the count');

$t->post('/kept/cut/completions', { %ask, n => 4, max_tokens => 200 });
$v = logged();
cmp_ok(length(LLM::JSON->new->utf8->allow_nonref->encode($v->{out})), '<=',
       40 * 6 + 4 * 40, 'one bound for all choices');

# what is not UTF-8 is refused, and logged as something that is

$res = $t->post('/kept/completions',
                "{\"prompt\":\"a\xff\xc3\xed\xa0\x80\x01\"}");
$v = logged();
is($res->{status}, 400, 'no UTF-8');
is($v->{in}, "{\"prompt\":\"a?????\x01\"}",
   'in the log it is');
is($v->{out}, '', 'no answer');

# parsed by a thread, from a file

$json = encode_json({ %ask, user => 'y' x 100_000 });
$t->post('/kept/completions', $json);
is(logged()->{in}, decode('UTF-8', substr($json, 0, 65536)) . '...['
                   . (length($json) - 65536) . ' bytes more]',
   'a body in a file');

# an answer that was cut has what the client got

my $s = $t->open('/kept/completions', { %ask, stream => \1,
                                        max_tokens => 1500 });

$s->event for 1 .. 10;
$s->close;
$v = logged();
like($v->{out}, qr/^\Q$s->{text}\E/, 'a stream that was cut');

is($t->get('/kept/models')->{status}, 200, 'no body');
is_deeply([ @{ logged() }{qw(in out)} ], [ '', '' ], 'nothing to log');

$t->stop;


# ---- configurations that are refused ----

for my $case ([ 'llm_capture 0;', qr/invalid size "0"/ ],
              [ 'llm_capture many;', qr/invalid size "many"/ ],
              [ 'llm_capture 1k; llm_capture 2k;', qr/"llm_capture" .*dupl/ ])
{
    my ($text, $want) = @$case;
    my ($rc, $said) = LLM::Test->new(http => $text)->check;

    ok($rc != 0 && $said =~ $want && $said =~ /nginx\.conf:\d+/, $text)
        or diag($said);
}

done_testing();
