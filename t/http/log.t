#!/usr/bin/perl

# What a log says of requests beside their figures: the endpoint, whether the
# answer was a stream, reasoning, and why it failed; of answers that were cut,
# too, and with several workers.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use LLM::JSON;
use LLM::Made qw(script);
use LLM::Test;
use POSIX ();
use Test::More;

my $t = LLM::Test->new(workers => 3, pace => 0.5, main => 'worker_shutdown_timeout 1s;',
    model => <<'END',
    llm_model demo %%ROOT%%/models/demo.gguf threads=1 parallel=2 default;
    llm_model script %%DIR%%/script.gguf ctx=8192 threads=1 parallel=2
              template=%%DIR%%/think.jinja;
    llm_queue 2;
END
    http => <<'END', locations => <<'END2');
    log_format llm '$request_uri|$status|$llm_endpoint|$llm_error|$llm_stream|'
                   '$llm_completion_tokens|$llm_reasoning_tokens|'
                   '$llm_finish_reason|$llm_prompt_tokens|$llm_ttft|'
                   '$llm_model';
    access_log logs/llm.log llm;
END
        location /v1 { llm_api; }
        location = /health { llm_health; access_log off; }
        location = /metrics { llm_metrics; access_log off; }
        location /short { llm_timeout 700ms; llm_api; }
        location /closed { llm_api_keys keys; llm_api; }
        location /fall { llm_api; llm_intercept_errors on;
                         error_page 404 = @other; }
        location @other { rewrite ^ /v1/models break; llm_api; }
END2

my @names = qw(uri status endpoint error stream out reasoning finish in ttft
               model);
my @words = map { "w$_" } 1 .. 4000;

$t->write_file('keys', encode_json({ id => 'ann', sha256 => sha256_hex('s'),
                                     scopes => [ 'models' ] }) . "\n");
$t->write_file('think.jinja', <<'END');
{%- for m in messages -%}<|im_start|>{{ m.role }}
{% if m.role == 'assistant' and m.reasoning_content %}<think>
{{ m.reasoning_content }}
</think>

{% endif %}{{ m.content }}<|im_end|>
{% endfor -%}
{%- for name in ('short', 'long') if name == line -%}
<|im_start|>assistant<|say:{{ name }}|>
{%- endfor -%}
END
$t->write_file('script.json', encode_json({
    short => "<think>\nOne two three.\n</think>\n\nFour.",
    long => "<think>\n@words\n</think>\n\nThe end." }));
script($t->dir);
$t->start;

LLM::Test::wait_for(60, sub {
    $t->post('/v1/completions', { model => 'script', prompt => 'a',
                                  max_tokens => 1 })->{status} == 200;
}) or die 'no script model';


# what a request asks for is in the error log when it arrives, but no text

sub arrival {
    my ($body, $want, $name) = @_;

    my $had = () = $t->log('error.log') =~ /llm: a request: .*\n/g;
    my @lines;

    $t->post('/v1/completions', { prompt => 'secret words', %$body });

    LLM::Test::wait_for(10, sub {
        @lines = $t->log('error.log') =~ /llm: (a request: .*?), client: /g;
        @lines > $had;
    });

    is($lines[-1], "a request: completions, $want", $name);
}

arrival({ model => 'demo', max_tokens => 1 },
        'model "demo", priority 0, max_tokens 1', 'a plain one');
arrival({ model => 'demo', max_tokens => 2, stream => \1, temperature => 0.5,
          top_p => 0.9, n => 2, priority => -3 },
        'model "demo", priority -3, stream, max_tokens 2, n 2,'
        . ' temperature 0.5, top_p 0.9', 'its parameters');
arrival({ model => 'demo', max_tokens => 1, temperature => 0, top_p => 0.5,
          repetition_penalty => 0.5 },
        'model "demo", priority 0, max_tokens 1, repetition_penalty 0.5,'
        . ' temperature 0, top_p 0.5; temperature 0 takes the most likely'
        . ' token whatever else is said of sampling; a repetition_penalty'
        . ' below 1, or another one below 0, asks for repetitions',
        'those that make no sense');
arrival({ model => 'demo', max_tokens => 1, temperature => 0 },
        'model "demo", priority 0, max_tokens 1, temperature 0',
        'greedy alone does');
arrival({ model => 'demo', max_tokens => 1, xtc_probability => 0.5,
          xtc_threshold => 0.75, dry_multiplier => 1,
          dry_penalty_last_n => 0, min_tokens => 1 },
        'model "demo", priority 0, max_tokens 1, dry_multiplier 1,'
        . ' dry_penalty_last_n 0, xtc_probability 0.5, xtc_threshold 0.75;'
        . ' xtc_threshold above 0.5 turns XTC off; dry_penalty_last_n 0 turns'
        . ' DRY off', 'what is off');
unlike($t->log('error.log'), qr/secret/, 'no text');


# the line of the request made last: those of its URI, which is its own

my $serial = 0;

sub uri { "$_[0]?n=" . ++$serial }

sub logged {
    my $line;

    LLM::Test::wait_for(10, sub {
        ($line) = $t->log('llm.log') =~ /^(\S*\?n=$serial\|.*)\n/m;
    }) or die 'no line in the access log';

    my %v;
    @v{@names} = split /\|/, $line;

    return \%v;
}


sub asks {
    my ($name, $uri, $body, $want, %opt) = @_;

    $t->post(uri($uri), $body, %opt);

    my $v = logged();

    is_deeply({ map { $_ => $v->{$_} } keys %$want }, $want, $name);
}


my %a = (prompt => 'a', max_tokens => 3, ignore_eos => \1);
my %ok = (status => 200, error => '-', out => 3, reasoning => 0,
          finish => 'length');

# ---- which endpoint, how ----

for (1 .. 6) {
    asks('whole', '/v1/completions', \%a,
         { %ok, endpoint => 'completions', stream => 0, model => 'demo' });
}

asks('a stream', '/v1/completions', { %a, stream => \1 },
     { %ok, endpoint => 'completions', stream => 1 });
asks('another endpoint', '/v1/messages', { max_tokens => 3,
         messages => [ { role => 'user', content => 'a' } ] },
     { status => 200, endpoint => 'messages', stream => 0, error => '-' });
asks('a longer path', '/v1/v1/chat/completions', {
         messages => [ { role => 'user', content => 'a' } ] },
     { status => 200, endpoint => 'chat/completions', stream => 0 });

$t->get(uri('/v1/models/demo'));
is_deeply([ @{ logged() }{qw(endpoint stream error out)} ],
          [ 'models', '-', '-', '-' ], 'a model');

# ---- why it failed ----

asks('no such model', '/v1/completions', { %a, model => 'none' },
     { status => 404, error => 'model_not_found', endpoint => 'completions',
       stream => '-', out => '-' });
asks('no JSON', '/v1/completions', '{',
     { status => 400, error => 'invalid_request_error', stream => '-' });
asks('a value', '/v1/completions', { %a, temperature => 'warm' },
     { status => 400, endpoint => 'completions', stream => '-' });
isnt(logged()->{error}, '-', 'has a reason');
asks('no such path', '/v1/none', \%a,
     { status => 404, error => 'not_found', endpoint => '-' });
asks('another method', '/v1/models', \%a,
     { status => 405, error => 'method_not_allowed', endpoint => 'models' });
asks('no key', '/closed/completions', \%a,
     { status => 401, error => 'invalid_api_key' });
asks('a key of another scope', '/closed/completions', \%a,
     { status => 403, error => 'insufficient_scope' },
     headers => { 'X-Api-Key' => 's' });
asks('too long', '/v1/completions', { %a, prompt => 'a b ' x 9000 },
     { status => 400, error => 'context_length_exceeded', out => '-' });
asks('another location answers', '/fall/completions',
     { %a, model => 'none' }, { error => 'method_not_allowed' });

# ---- reasoning ----

my %think = (model => 'script', temperature => 0,
             messages => [ { role => 'user', content => 'a' } ]);

sub says { (%think, chat_template_kwargs => { line => $_[0] }, @_[1 .. $#_]) }

for my $stream (\0, \1) {
    my $res = $t->post(uri('/v1/chat/completions'),
                       { says('short', stream => $stream, max_tokens => 500),
                         $$stream ? (stream_options
                                     => { include_usage => \1 }) : () });
    my ($told) = $res->{body} =~ /"reasoning_tokens":(\d+)(?!.*"reasoning_t)/s;
    my $v = logged();

    cmp_ok($v->{reasoning}, '>', 0, 'reasoning');
    is($v->{reasoning}, $told, 'as the client is told');
    cmp_ok($v->{reasoning}, '<', $v->{out}, 'not all of the answer');
}

# all that was said until a stream was cut was reasoning

my $s = $t->open(uri('/v1/chat/completions'),
                 { says('long', stream => \1, max_tokens => 7000) });

$s->event for 1 .. 20;
$s->close;

my $v = logged();

is($v->{finish}, 'abort', 'a stream that was cut');
cmp_ok($v->{out}, '>=', 19, 'has tokens');
cmp_ok($v->{reasoning}, '>=', $v->{out} - 3,
       'of reasoning, but what begins it');

# ---- what was cut says why, unless the client left ----

$s = $t->open(uri('/v1/completions'), { %a, max_tokens => 1500,
                                        stream => \1 }, light => 1);

$s->event for 1 .. 5;
$s->close;

$v = logged();

is_deeply([ @$v{qw(error finish stream)} ], [ '-', 'abort', 1 ],
          'a client that left');
cmp_ok($v->{out}, '>=', 4, 'its tokens');

for my $stream (\0, \1) {
    my $name = 'out of time, ' . ($$stream ? 'streamed' : 'whole');

    $t->post(uri('/short/completions'), { %a, n => 8, max_tokens => 1900,
                                          stream => $stream });
    $v = logged();

    SKIP: {
        skip 'this machine is too fast', 3 if $v->{finish} eq 'length';

        is_deeply([ @$v{qw(error finish status stream)} ],
                  [ 'timeout', 'abort', $$stream ? 200 : 504, $$stream ],
                  $name);
        cmp_ok($v->{out}, '>', 0, "$name: tokens");
        like($v->{ttft}, qr/^\d+\.\d{6}$/, "$name: ttft");
    }
}

# a full queue: two run, two wait

my @busy = map { $t->open_long(max_tokens => 1900) } 1 .. 4;

$t->wait_queued(2) or die 'nobody waits';
asks('a full queue', '/v1/completions', \%a,
     { status => 429, error => 'queue_full', out => '-' });
$_->close for @busy;

LLM::Test::wait_for(60, sub {
    $t->figure('vllm:num_requests_running') == 0;
}) or die 'somebody still runs';

# at a shutdown, by the error that the stream ends with

$s = $t->open(uri('/v1/completions'), { %a, max_tokens => 1900, n => 16,
                                        stream => \1 });
$s->event for 1 .. 5;
$t->kill('QUIT');

my ($last) = map { $_->{json}{error}{code} // () }
             grep { $_->{json} } $s->events;

$v = logged();

is($v->{finish}, 'abort', 'a stream that a shutdown cut');
is($v->{error}, $last // '-', 'for the reason that its client got');
cmp_ok($v->{out}, '>', 0, 'with its tokens');

$t->stop;

# ---- a line of the engine's has the time at which it was written, whatever
# nginx's event loop last took for the time ----

$t = LLM::Test->new(model => LLM::Test::default_model()
                    . ' llm_model late %%DIR%%/late.gguf threads=1 retry=1s;')
     ->start;

# nobody asks for anything from now on

sleep 4;

my $begin = time;

symlink "$LLM::Test::ROOT/models/demo.gguf", $t->dir . '/late.gguf' or die $!;
ok($t->wait_log(qr/model "late" is ready/), 'a model is loaded by itself');

my ($year, $month, @rest) = $t->log('error.log')
    =~ m{^(\d+)/(\d+)/(\d+) (\d+):(\d+):(\d+) .*model "late" is ready}m;
my ($day, $hour, $min, $sec) = @rest;

cmp_ok(POSIX::mktime($sec, $min, $hour, $day, $month - 1, $year - 1900, 0, 0,
                     -1), '>=', $begin, 'and its line says when');

$t->stop;

done_testing();
