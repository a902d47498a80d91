#!/usr/bin/perl

# Tools and reasoning over HTTP: the demo model calls a tool, streamed and
# not, gets its result and answers; what is no call stays text; reasoning
# under its names, left in the content, left out; usage and logprobs.

use strict;
use warnings;

use LLM::JSON ();
use LLM::Test;
use Test::More;

my $t = LLM::Test->new->start;

my $tools = [ { type => 'function', function => {
    name => 'get_weather', description => 'Get the weather of a place',
    parameters => { type => 'object',
        properties => { city => { type => 'string',
                                  description => 'the city' } },
        required => [ 'city' ] } } } ];

my @ask = ({ role => 'user', content => 'What is the weather in Paris?' });
my %base = (temperature => 0, max_tokens => 100, tools => $tools,
            messages => \@ask);
my $path = '/v1/chat/completions';


# the message that the deltas of each choice make

sub gather {
    my (@events) = @_;
    my @messages;

    for my $event (@events) {
        my $choice = $event->{json} && $event->{json}{choices}[0] or next;
        my $m = $messages[ $choice->{index} ] //= { content => '' };
        my $delta = $choice->{delta};

        $m->{content} .= $delta->{content} // '';
        $m->{$_} .= $delta->{$_}
            for grep { exists $delta->{$_} } qw(reasoning reasoning_content);
        $m->{finish} = $choice->{finish_reason} if $choice->{finish_reason};
        push @{ $m->{tokens} }, @{ $choice->{token_ids} // [] };
        push @{ $m->{logprobs} }, @{ ($choice->{logprobs} // {})->{content}
                                     // [] };

        for my $call (@{ $delta->{tool_calls} // [] }) {
            my $to = $m->{calls}[ $call->{index} ] //= { pieces => 0 };

            $m->{wrong} = 1 if !$call->{function}
                || ($to->{pieces}++ == 0) != exists $call->{id};
            $to->{id} //= $call->{id};
            $to->{type} //= $call->{type};
            $to->{name} //= $call->{function}{name};
            $to->{arguments} .= $call->{function}{arguments} // '';
        }
    }

    return @messages;
}


sub stream {
    my (%fields) = @_;
    my $s = $t->open($path, { %fields, stream => \1 });

    return gather($s->events);
}


# ---- a call, its result, the answer ----

my $res = $t->post($path, \%base);
my $choice = $res->{json}{choices}[0];
my $message = $choice->{message};
my $call = $message->{tool_calls}[0];

is($res->{status}, 200, 'answers') or diag($res->{body});
is($choice->{finish_reason}, 'tool_calls', 'finish_reason tool_calls');
is($message->{content}, undef, 'no content');
is(scalar @{ $message->{tool_calls} // [] }, 1, 'one call');
like($call->{id}, qr/^call_\w+$/, 'its id');
is($call->{type}, 'function', 'its type');
is($call->{function}{name}, 'get_weather', 'its name');
is_deeply(LLM::JSON::decode_json($call->{function}{arguments}),
          { city => 'Paris' }, 'its arguments');
unlike($res->{body}, qr/<\/?tool_call>/, 'no marks');

my ($streamed) = stream(%base);

is($streamed->{content}, '', 'streamed: no content');
ok(!$streamed->{wrong}, 'the id comes once, with the first piece');
is($streamed->{calls}[0]{name}, $call->{function}{name}, 'the same name');
is($streamed->{calls}[0]{arguments}, $call->{function}{arguments},
   'the same arguments');
is($streamed->{finish}, 'tool_calls', 'the same finish_reason');
cmp_ok($streamed->{calls}[0]{pieces}, '>', 3, 'piece by piece');

my $answer = $t->post($path, { %base, messages => [ @ask, $message,
    { role => 'tool', tool_call_id => $call->{id},
      content => '{"temperature": 21, "sky": "sunny"}' } ] })
    ->{json}{choices}[0];

is($answer->{finish_reason}, 'stop', 'its result is answered');
like($answer->{message}{content}, qr/21/, 'with what it says');
ok(!$answer->{message}{tool_calls}, 'and no other call');

# ---- the choice ----

my $none = $t->post($path, { %base, tool_choice => 'none' })
    ->{json}{choices}[0];

is($none->{finish_reason}, 'stop', 'tool_choice none: no call');
ok(!$none->{message}{tool_calls}, 'none at all');

for my $choice ('required',
                { type => 'function', function => { name => 'get_weather' } },
                { type => 'allowed_tools', allowed_tools => {
                      mode => 'required', tools => [ { type => 'function',
                          function => { name => 'get_weather' } } ] } })
{
    my $r = $t->post($path, { %base, tool_choice => $choice,
                              parallel_tool_calls => \0 });

    is($r->{json}{choices}[0]{message}{tool_calls}[0]{function}{name},
       'get_weather', 'tool_choice ' . (ref $choice ? $choice->{type}
                                                    : $choice));
}

$res = $t->post($path, { %base, tool_choice =>
    { type => 'function', function => { name => 'other' } } });
is($res->{status}, 400, 'a choice of no tool is refused');
is($res->{json}{error}{param}, 'tool_choice.function.name', 'by its place');

# with the lines of its own that the template gives a call: a model that must
# not write them is not the one that was trained

my @written = map { $t->post($path, { %base, tool_choice => $_,
                                      return_token_ids => \1 })
                        ->{json}{choices}[0]{token_ids} } qw(auto required);

is("@{ $written[1] }", "@{ $written[0] }",
   'a call that must come is written as one that may');
like($t->post('/v1/detokenize', { tokens => $written[1] })->{json}{prompt},
     qr/^<tool_call>\n\{.*\}\n<\/tool_call>(<\|im_end\|>)?$/,
     'as the template writes it');

# ---- what tools were before ----

my $old = $t->post($path, { temperature => 0, max_tokens => 100,
    functions => [ $tools->[0]{function} ], messages => \@ask })
    ->{json}{choices}[0];

is($old->{message}{tool_calls}[0]{function}{name}, 'get_weather',
   'functions are tools');

$old = $t->post($path, { temperature => 0, max_tokens => 100,
    functions => [ $tools->[0]{function} ], messages => [ @ask,
        { role => 'assistant', content => undef, function_call => {
              name => 'get_weather', arguments => '{"city": "Paris"}' } },
        { role => 'function', name => 'get_weather',
          content => '{"temperature": 21, "sky": "sunny"}' } ] })
    ->{json}{choices}[0];

like($old->{message}{content}, qr/21/, 'and results of functions are read');

# ---- no calls ----

$res = $t->post($path, { %base, max_tokens => 4 })->{json}{choices}[0];
is($res->{finish_reason}, 'length', 'a call that is cut before its name');
is($res->{message}{content}, '', 'shows no mark of it');
ok(!$res->{message}{tool_calls}, 'and no call');

my ($cut) = stream(%base, max_tokens => 4);
is($cut->{content}, $res->{message}{content}, 'streamed, too');

$res = $t->post($path, { %base, max_tokens => 15 })->{json}{choices}[0];
is($res->{finish_reason}, 'length', 'a call that is cut in its arguments');
is($res->{message}{content}, undef, 'is no content');

my $half = $res->{message}{tool_calls}[0]{function};
is($half->{name}, 'get_weather', 'but a call');
is($half->{arguments}, substr($call->{function}{arguments}, 0,
                              length $half->{arguments}), 'as far as it came');
cmp_ok(length $half->{arguments}, '<', length $call->{function}{arguments},
       'not whole');

($cut) = stream(%base, max_tokens => 15);
is($cut->{calls}[0]{arguments}, $half->{arguments}, 'streamed, too');
is($cut->{finish}, 'length', 'with the same finish_reason');

my $raw = $t->post('/v1/completions', { temperature => 0, max_tokens => 60,
    prompt => "<|im_start|>user\nWhat is 2 + 2?<|im_end|>\n"
              . "<|im_start|>assistant\n<think>\n" })
    ->{json}{choices}[0]{text};

like($raw, qr/<\/think>.*4/s, 'completions are not read');

# ---- several choices, logprobs, ids ----

my %all = (%base, n => 3, logprobs => \1, top_logprobs => 1,
           return_token_ids => \1);
my $many = $t->post($path, \%all);
my @streams = stream(%all);

is(scalar @streams, 3, 'three choices');

for my $i (0 .. 2) {
    my $c = $many->{json}{choices}[$i];

    is($c->{message}{tool_calls}[0]{function}{name}, 'get_weather',
       "choice $i calls");
    is($streams[$i]{calls}[0]{arguments},
       $c->{message}{tool_calls}[0]{function}{arguments}, 'streamed, too');
    isnt($streams[$i]{calls}[0]{id}, $streams[($i + 1) % 3]{calls}[0]{id},
         'with an id of its own');
    is_deeply($c->{logprobs}{content}, [], 'a call has no logprobs of content');
    is_deeply($streams[$i]{tokens}, $c->{token_ids}, 'the same tokens');
    is(scalar @{ $streams[$i]{logprobs} },
       scalar @{ $c->{logprobs}{content} }, 'as many logprobs');
}

# ---- reasoning ----

my %think = (temperature => 0, max_tokens => 100,
             messages => [ { role => 'user', content => 'What is 2 + 2?' } ],
             chat_template_kwargs => { enable_thinking => \1 });

$res = $t->post($path, \%think);
$message = $res->{json}{choices}[0]{message};

like($message->{reasoning_content}, qr/2/, 'reasoning_content');
is($message->{reasoning}, $message->{reasoning_content}, 'and reasoning');
like($message->{content}, qr/^[^<]*4[^<]*$/, 'content without it');
cmp_ok($res->{json}{usage}{completion_tokens_details}{reasoning_tokens}, '>',
       0, 'reasoning_tokens');
cmp_ok($res->{json}{usage}{completion_tokens_details}{reasoning_tokens}, '<',
       $res->{json}{usage}{completion_tokens}, 'but not all of them');

($streamed) = stream(%think);
is($streamed->{reasoning_content}, $message->{reasoning_content}, 'streamed');
is($streamed->{reasoning}, $message->{reasoning}, 'under both names');
is($streamed->{content}, $message->{content}, 'the same content');

my $kept = $t->post($path, { %think, reasoning_format => 'none' })
    ->{json}{choices}[0]{message};

ok(!exists $kept->{reasoning_content}, 'reasoning_format none');
like($kept->{content}, qr/<\/think>/, 'leaves it in the content');
like($kept->{content}, qr/\Q$message->{reasoning}\E/, 'all of it');

my $hidden = $t->post($path, { %think, include_reasoning => \0 });

ok(!exists $hidden->{json}{choices}[0]{message}{reasoning_content},
   'include_reasoning false');
is($hidden->{json}{choices}[0]{message}{content}, $message->{content},
   'leaves it out');
is($hidden->{json}{usage}{completion_tokens_details}{reasoning_tokens},
   $res->{json}{usage}{completion_tokens_details}{reasoning_tokens},
   'but counts it');

my ($stopped) = stream(%think, stop => [ substr($message->{reasoning}, 2, 3) ]);

is($stopped->{reasoning}, $message->{reasoning},
   'stop strings do not look at reasoning');

# ---- a budget of reasoning ----

for my $name (qw(thinking_budget_tokens reasoning_budget)) {
    my $r = $t->post($path, { %think, $name => 4, logprobs => \1 });
    my $m = $r->{json}{choices}[0]{message};

    is($m->{reasoning}, substr($message->{reasoning}, 0,
                               length $m->{reasoning}),
       "$name: reasoning begins as without");
    cmp_ok(length $m->{reasoning}, '<', length $message->{reasoning},
           'and ends early');
    ok(length $m->{content} && $m->{content} !~ /think/, 'content follows');
    cmp_ok($r->{json}{usage}{completion_tokens_details}{reasoning_tokens},
           '<', 9, 'few tokens of reasoning');
}

# what is forced is among the most likely ones, too

my $top = $t->post($path, { %think, thinking_budget => 4, logprobs => \1,
                            top_logprobs => 2 })
    ->{json}{choices}[0]{logprobs}{content};

for my $token (@$top) {
    ok(scalar(grep { $_->{token} eq $token->{token}
                     && $_->{logprob} == $token->{logprob} }
              @{ $token->{top_logprobs} }),
       'top_logprobs has the token');
}

# each token of content has a logprob, the one that ends it, too; those of
# reasoning have none

for my $case ([ 'reasoning and content', %think ],
              [ 'content', %think, chat_template_kwargs => {} ],
              [ 'cut', %think, max_tokens => 30 ],
              [ 'cut in reasoning', %think, max_tokens => 4 ],
              [ 'a stop string', %think, chat_template_kwargs => {},
                stop => ' = ' ],
              [ 'a stop token', %think, chat_template_kwargs => {},
                stop_token_ids => [ 13 ] ])
{
    my ($name, %ask) = @$case;

    %ask = (%ask, logprobs => \1, top_logprobs => 2, return_token_ids => \1);

    my $r = $t->post($path, \%ask)->{json};
    my $c = $r->{choices}[0];
    my @lp = @{ $c->{logprobs}{content} };
    my $text = $c->{message}{content};

    is(scalar @{ $c->{token_ids} }, $r->{usage}{completion_tokens},
       "$name: an id of each token");
    is(substr(join('', map { $_->{token} } @lp), 0, length $text), $text,
       'logprobs are of content');
    cmp_ok(scalar @lp, '<=', $r->{usage}{completion_tokens}
           - $r->{usage}{completion_tokens_details}{reasoning_tokens},
           'none is of reasoning');
    is(scalar @lp, $r->{usage}{completion_tokens}, 'one for each')
        if !$c->{message}{reasoning};
    is(scalar @{ $r->{prompt_token_ids} }, $r->{usage}{prompt_tokens},
       'ids of the prompt');

    my ($s) = stream(%ask);

    is_deeply($s->{tokens}, $c->{token_ids}, 'streamed, too');
    is_deeply($s->{logprobs}, \@lp, 'and the logprobs');
}

my $whole = $t->post($path, { %think, thinking_budget_tokens => -1 })
    ->{json}{choices}[0]{message};
is($whole->{reasoning}, $message->{reasoning}, '-1 is no bound');

my $zero = $t->post($path, { %think, thinking_budget_tokens => 0 })
    ->{json}{choices}[0]{message};
ok(!length($zero->{reasoning} // ''), 'a budget of 0: no reasoning');
ok(length $zero->{content}, 'but content');

my ($early) = stream(%think, thinking_budget_tokens => 4);
is($early->{content}, $t->post($path, { %think, thinking_budget_tokens => 4 })
       ->{json}{choices}[0]{message}{content}, 'streamed, too');

# ---- a schema of which one keyword is not supported ----

my $odd = { type => 'object', required => [ 'n', 's' ], properties => {
    n => { type => 'integer', minimum => 7, maximum => 7 },
    s => { type => 'string', pattern => '(?<=x)y', maxLength => 3 } } };

for my $strict (\0, \1) {
    $res = $t->post($path, { temperature => 2, seed => 5, max_tokens => 100,
        messages => [ { role => 'user', content => 'Call it.' } ],
        tools => [ { type => 'function', function => {
            name => 'f', parameters => $odd, strict => $strict } } ],
        tool_choice => 'required' });

    if ($$strict) {
        is($res->{status}, 400, 'strict: refused');
        like($res->{json}{error}{param}, qr/properties\.s\.pattern$/,
             'by name');
        next;
    }

    my $args = LLM::JSON::decode_json(
        $res->{json}{choices}[0]{message}{tool_calls}[0]{function}{arguments});

    is($args->{n}, 7, 'the others are kept to');
    cmp_ok(length $args->{s}, '<=', 3, 'beside it, too');
}

# ---- integers that no 64 bits hold ----

like($t->post('/v1/apply-template', '{"messages":[{"role":"user","content":'
    . '"a"},{"role":"assistant","tool_calls":[{"id":"c","type":"function",'
    . '"function":{"name":"f","arguments":"{\\"n\\": 18446744073709551617, '
    . '\\"m\\": [-9223372036854775809, 1.0]}"}}]},{"role":"tool",'
    . '"tool_call_id":"c","content":"b"}]}')->{json}{prompt},
    qr/"n": 18446744073709551617, "m": \[-9223372036854775809, 1\.0\]/,
    'a template writes their digits');

# ---- both ----

my $both = $t->post($path, { %base,
    chat_template_kwargs => { enable_thinking => \1 } })->{json}{choices}[0];

ok($both->{message}{reasoning_content}, 'reasoning before a call');
is($both->{message}{tool_calls}[0]{function}{name}, 'get_weather', 'the call');

$t->stop;
is($t->alerts, '', 'nothing wrong in the log');

done_testing;
