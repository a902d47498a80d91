#!/usr/bin/perl

# llama-server's own endpoints and those of Text Embeddings Inference, against
# what the other dialects answer; the path of two dialects.

use strict;
use warnings;

use LLM::Cli qw(states);
use LLM::GGUF;
use LLM::JSON;
use LLM::Test;
use Test::More;

my $demo = "$LLM::Test::ROOT/models/demo.gguf";
my $t = LLM::Test->new(
    model => LLM::Test::default_model() =~ s{parallel=8}{parallel=8 batch=128}r
           . 'llm_model qwen %%ROOT%%/models/demo.gguf alias=qwen3:8b lazy;'
           . 'llm_model short %%ROOT%%/models/demo.gguf ctx=64 threads=1;'
           . 'llm_model states %%DIR%%/states.gguf ctx=256 threads=1;'
           . 'llm_model bos %%DIR%%/bos.gguf ctx=256 threads=1;',
    locations => <<'END');
        location / { llm_api; }
        location /v1 { llm_api; }
        location = /completion { llm_api; }
        location /verbose { llm_api; llm_defaults '{"verbose": true}'; }
        location = /health { llm_health; }
END
LLM::GGUF::make($demo, $t->dir . '/states.gguf',
    kv => { 'qwen3.pooling_type' => [ u32 => 0 ] });
LLM::GGUF::make($demo, $t->dir . '/bos.gguf',
    kv => { 'tokenizer.ggml.add_bos_token' => [ bool => 1 ] });
$t->start;

my %ask = (prompt => 'once upon', n_predict => 8, temperature => 0);
my $open = $t->post('/v1/completions', { %ask, logprobs => 2 })->{json};
my ($text, $usage) = ($open->{choices}[0]{text}, $open->{usage});
my $res = $t->post('/completion', { %ask, n_probs => 2,
                                    return_tokens => \1 });
my $own = $res->{json};

is($open->{object}, 'text_completion',
   'below "/v1" n_predict is OpenAI\'s max_tokens');
is($res->{status}, 200, 'a completion') or diag($res->{body});
is($own->{content}, $text, 'has the same text');
is($own->{tokens_predicted}, $usage->{completion_tokens}, 'so many tokens');
is($own->{tokens_evaluated}, $usage->{prompt_tokens}, 'from as many');
is($own->{stop_type}, 'limit', 'why it ended');
is($own->{model}, 'demo', 'the model');
is($own->{prompt}, 'once upon', 'the prompt');
is($own->{generation_settings}{n_predict}, 8, 'settings');
is(scalar @{ $own->{tokens} }, 8, 'tokens');
is($t->post('/detokenize', { tokens => $own->{tokens} })->{json}{content},
   $text, 'which are those of the text');
is_deeply([ map { sprintf '%.5f', $_->{logprob} }
            @{ $own->{completion_probabilities} } ],
          [ map { sprintf '%.5f', $_ }
            @{ $open->{choices}[0]{logprobs}{token_logprobs} } ],
          'log probabilities');
is(scalar @{ $own->{completion_probabilities}[0]{top_logprobs} }, 2,
   'two of each');
my $times = $own->{timings};
cmp_ok(abs($times->{predicted_per_second} - 7000 / $times->{predicted_ms}),
       '<', 1e-6, 'the first token came with the prompt, seven with steps');
ok(!$own->{truncated}, 'the context has room');
is_deeply($own->{generation_settings}{logit_bias}, [], 'no biases');

$times = $t->post('/completion', { %ask, n_predict => 1 })->{json}{timings};
is_deeply([ @$times{qw(predicted_per_second predicted_per_token_ms)} ],
          [ 0, 0 ], 'one token has no rate');

# what the prompt was, and the context's end

my $chat = [ { role => 'user', content => 'Say <|im_end|> \x{e9}.' } ];
my $prompt = $t->post('/apply-template', { messages => $chat })
    ->{json}{prompt};
$res = $t->post('/v1/chat/completions', { messages => $chat, max_tokens => 4,
                                          n => 2, verbose => \1,
                                          temperature => 0 });
is($res->{json}{__verbose}{prompt}, $prompt, 'verbose: the prompt\'s text')
    or diag($res->{body});
is($res->{json}{__verbose}{generation_settings}{n_predict}, 4, 'the settings');
is($res->{json}{__verbose}{tokens_evaluated},
   $res->{json}{usage}{prompt_tokens}, 'its tokens');
is($res->{json}{choices}[0]{message}{content},
   $t->post('/v1/chat/completions', { messages => $chat, max_tokens => 4,
                                      temperature => 0 })
       ->{json}{choices}[0]{message}{content}, 'which is not in the answer');
unlike($t->post('/v1/chat/completions', { messages => $chat, max_tokens => 4,
                                          verbose => \0 })->{body},
       qr/__verbose/, 'only if it is asked for');


for my $path ('/verbose/v1/chat/completions', '/verbose/chat/completions') {
    ok($t->post($path, { messages => $chat, max_tokens => 1 })
           ->{json}{__verbose}, "or if the operator wants it: $path");
}

my $bos = $t->request(method => 'GET', path => '/props?model=bos')
    ->{json}{bos_token};
ok(length $bos, 'a token that begins a text');
is($t->post('/completion', { %ask, model => 'bos' })->{json}{prompt},
   "${bos}once upon", 'is in the prompt\'s text');

my $full = $t->post('/completion', { %ask, model => 'short', n_predict => -1,
                                     ignore_eos => \1 })->{json};
is($full->{tokens_evaluated} + $full->{tokens_predicted}, 64,
   'as many tokens as the context holds');
ok($full->{truncated}, 'truncated');
is($full->{stop_type}, 'limit', 'by a limit');

my %long = (model => 'short', prompt => 'word ' x 90,
            messages => [ { role => 'user', content => 'word ' x 90 } ]);

for my $path ('/completion', '/completions', '/chat/completions') {
    $res = $t->post($path, { %long, $path =~ /chat/ ? (prompt => undef) : () });
    is($res->{status}, 400, "$path: a prompt that is too long");
    is($res->{json}{error}{type}, 'exceed_context_size_error',
       'has llama-server\'s type');
    is($res->{json}{error}{code}, 'context_length_exceeded', 'and our code');
    is($res->{json}{error}{n_ctx}, 64, 'the context');
    cmp_ok($res->{json}{error}{n_prompt_tokens}, '>', 64, 'the prompt');
    like($res->{json}{error}{message},
         qr/exceeds the available context size/, 'in llama-server\'s words');
}

$res = $t->post('/v1/chat/completions', { %long });
is($res->{json}{error}{type}, 'invalid_request_error',
   'with "v1/" the type is OpenAI\'s');
is($res->{json}{error}{n_ctx}, 64, 'the numbers are there, too');

for my $path ('/chat/completions', '/v1/chat/completions') {
    $res = $t->post($path, { messages => $chat, max_tokens => 2,
                             stream => \1 });
    my ($first) = $res->{body} =~ /^data: (\{.*\})$/m;
    is(decode_json($first)->{choices}[0]{delta}{content},
       $path =~ /v1/ ? '' : undef, "$path: the content of the first chunk");
}

# the probabilities of the draw, after top_k

$res = $t->post('/completion', { %ask, temperature => 1, top_k => 3, seed => 7,
                                 n_probs => 5, post_sampling_probs => \1 });
my @drawn = @{ $res->{json}{completion_probabilities} };
is(scalar @drawn, 8, 'post_sampling_probs: of each token')
    or diag($res->{body});

for my $token (@drawn) {
    my @top = @{ $token->{top_probs} };
    my $sum = 0;
    $sum += $_->{prob} for @top;
    is(scalar @top, 3, 'those that top_k leaves');
    cmp_ok(abs($sum - 1), '<', 1e-5, 'are all that there is');
    is_deeply([ grep { $_->{id} == $token->{id}
                       && $_->{prob} == $token->{prob} } @top ],
              [ grep { $_->{id} == $token->{id} } @top ], 'the drawn one too');
}

$res = $t->post('/completion', { %ask, n_probs => 5,
                                 post_sampling_probs => \1 });
is_deeply([ map { map { $_->{prob} } @{ $_->{top_probs} } }
            @{ $res->{json}{completion_probabilities} } ], [ (1) x 8 ],
          'greedy: one, with certainty');

# biases of texts: none of their tokens is written

my @words = map { $_ ne '' ? $_ : () } split / /, $text;

for my $bias ({ map { (" $_" => -100) } @words },
              [ map { [ " $_", \0 ] } @words ])
{
    $res = $t->post('/completion', { %ask, logit_bias => $bias });
    is($res->{status}, 200, 'logit_bias with texts') or diag($res->{body});

    my %not = map { $_ => 1 }
              map { @{ $t->post('/tokenize', { content => " $_" })
                       ->{json}{tokens} } } @words;
    my @got = @{ $t->post('/completion', { %ask, logit_bias => $bias,
                                           return_tokens => \1 })
                 ->{json}{tokens} };
    is(join(' ', grep { $not{$_} } @got), '', 'none of their tokens comes');
}

is($t->post('/v1/completions', { prompt => 'a', logit_bias => { cat => 1 } })
   ->{status}, 400, 'OpenAI\'s form takes ids alone');

# a stream

$res = $t->post('/completion', { %ask, stream => \1, return_progress => \1 });
like($res->{headers}{'content-type'}, qr{^text/event-stream}, 'events');

my @events = map { decode_json($_) } $res->{body} =~ /^data: (\{.*\})$/gm;
is(join('', map { $_->{content} } @events), $text, 'of the text');
is_deeply([ map { $_->{stop} ? 1 : 0 } @events ], [ (0) x $#events, 1 ],
          'the last one ends it');
my @progress = map { $_->{prompt_progress} // () } @events;
is($progress[-1]{processed}, $progress[-1]{total}, 'the prompt is processed');

unlike($res->{body}, qr/DONE/, 'nothing follows');
is($events[-1]{prompt}, 'once upon', 'the last one has the prompt');

$res = $t->post('/completion', { %ask, stream => \1, return_progress => \1,
                                 timings_per_token => \1,
                                 cache_prompt => \0,
                                 prompt => join(' ', 1 .. 150) });
@events = map { decode_json($_) } $res->{body} =~ /^data: (\{.*\})$/gm;
my @timed = map { $_->{timings} } grep { $_->{prompt_progress} } @events;
is_deeply([ @{ $timed[0] }{qw(prompt_n prompt_ms predicted_n)} ], [ 0, 0, 0 ],
          'timings of the progress: nothing is computed at first')
    or diag($res->{body});
is($timed[-1]{prompt_n}, $events[-1]{tokens_evaluated}, 'at last all');

# a prompt of several steps: after each one, first what the cache had

my $tale = join ' ', map { "word $_" } 1 .. 150;

for my $path ('/completion', '/v1/chat/completions') {
    for my $n ('not cached', 'cached') {
        $res = $t->post($path, { %ask, stream => \1, return_progress => \1,
                                 max_tokens => 4, ignore_eos => \1, $path =~ /chat/
                                 ? (messages => [ { role => 'user',
                                                    content => $tale } ])
                                 : (prompt => $tale) });
        @events = map { decode_json($_) } $res->{body} =~ /^data: (\{.*\})$/gm;
        @progress = map { $_->{prompt_progress} // () } @events;

        my @done = map { $_->{processed} } @progress;

        is($done[0], $progress[0]{cache}, "$path, $n: first what was cached")
            or diag($res->{body});
        is($done[-1], $progress[-1]{total}, 'at last all');
        is_deeply(\@done, [ sort { $a <=> $b } keys %{ { map { $_ => 1 }
                                                         @done } } ],
                  "it grows: @done");
        $n eq 'cached'
            ? cmp_ok($done[0], '>', 0, 'of a cached prompt')
            : cmp_ok(scalar @done, '>', 3, 'with each step');

        my ($last) = grep { $events[$_]{prompt_progress} } reverse 0 .. $#events;
        my ($text) = grep { length($events[$_]{content} // $events[$_]{choices}[0]
                                   {delta}{content} // '') } 0 .. $#events;
        cmp_ok($last, '<', $text, 'before the first text');
    }
}

unlike($t->post('/completion', { %ask, return_progress => \1 })->{body},
       qr/prompt_progress/, 'not without a stream');

# prompts

my @ids = @{ $t->post('/tokenize', { content => 'once upon' })
             ->{json}{tokens} };
my @end = @{ $t->post('/tokenize', { content => ' a time' })
             ->{json}{tokens} };
my $whole = $t->post('/completion', { %ask, prompt => [ @ids, @end ] })
    ->{json};

for my $mixed ([ @ids, ' a time' ], [ 'once upon', @end ]) {
    $res = $t->post('/completion', { %ask, prompt => $mixed });
    is($res->{json}{content}, $whole->{content}, 'texts and ids mixed')
        or diag($res->{body});
    is($res->{json}{tokens_evaluated}, @ids + @end, 'are one prompt');
    is($res->{json}{prompt}, 'once upon a time', 'whose text is told');
}

$res = $t->post('/completion', { %ask, prompt => [ 'once upon',
                                                   [ @ids, ' a time' ] ] });
is_deeply([ map { $_->{content} } @{ $res->{json} } ],
          [ $text, $whole->{content} ], 'several prompts')
    or diag($res->{body});
is_deeply([ map { $_->{tokens_evaluated} } @{ $res->{json} } ],
          [ scalar @ids, @ids + @end ], 'each of its own length');
is_deeply([ map { $_->{prompt} } @{ $res->{json} } ],
          [ 'once upon', 'once upon a time' ], 'and text');

$res = $t->post('/completion', { %ask, prompt => [ 1 << 30, 'a' ] });
is($res->{status}, 400, 'an id that the vocabulary has not');

# the path of two dialects

is($t->post('/completions', { %ask })->{json}{content}, $text,
   'n_predict decides');
is($t->post('/completions', { prompt => 'once upon', max_tokens => 8,
                              temperature => 0 })->{json}{choices}[0]{text},
   $text, 'without it: OpenAI\'s');
is($t->post('/v1/completions', { %ask })->{json}{object}, 'text_completion',
   'with v1/, too');

# vectors

my @vectors = map { $_->{embedding} }
              @{ $t->post('/v1/embeddings', { input => [ 'a', 'b' ] })
                 ->{json}{data} };

is_deeply([ map { $_->{embedding}[0] }
            @{ $t->post('/embedding', { content => [ 'a', 'b' ] })->{json} } ],
          \@vectors, 'vectors');
is($t->post('/embeddings', { model => 'short', content => 'word ' x 90 })
       ->{json}{error}{type}, 'exceed_context_size_error',
   "/embeddings with content: llama-server's error");
is_deeply($t->post('/embeddings', { content => 'a' })->{json},
          [ { index => 0, embedding => [ $vectors[0] ] } ],
          'content decides');
for my $input ({ prompt_string => 'a' },
               { content => [ { type => 'text', text => 'a' } ] })
{
    is_deeply($t->post('/v1/embeddings', { input => [ $input ] })
                  ->{json}{data}[0]{embedding}, $vectors[0],
              'a text in an object');
}

# the pooling type "none": the state of each token, as objs/llm writes them, but
# for the digits that JSON has

sub near {
    my ($got, $want) = map { [ map { @$_ } @{ $_ // [] } ] } @_;

    return @$got == @$want && @$got > 0
           && !grep { abs($got->[$_] - $want->[$_]) > 1e-4 } 0 .. $#$got;
}

my @pair = @{ $t->post('/tokenize', { content => 'once upon' })
              ->{json}{tokens} };
my @want = states($demo, @pair);
$res = $t->post('/embedding', { model => 'states',
                                content => [ 'once upon', 'a' ] });
my @got = map { $_->{embedding} } @{ $res->{json} };
is(scalar @{ $got[0] }, scalar @pair, 'a vector for each token')
    or diag($res->{body});
is(scalar @{ $got[0][1] }, scalar @{ $vectors[0] }, 'of the model\'s width');
ok(near($got[0], \@want), 'which are its states');
is($t->post('/v1/embeddings', { model => 'states', input => 'a' })->{status},
   400, 'not where an input has one vector');

# a step gives at most 128 states beside tokens

my @long = map { 20 + $_ % 40 } 1 .. 200;
$res = $t->post('/embedding', { model => 'states',
                                content => [ \@long, [ 20 ] ] });
ok(near($res->{json}[0]{embedding}, [ states($demo, @long) ]),
   'and those of an input of several steps');

is_deeply($t->post('/embed', { inputs => [ 'a', 'b' ] })->{json}, \@vectors,
          'TEI\'s');
$res = $t->post('/embed', { inputs => 'a', model => 'none' });
is($res->{status}, 404, 'an error');
is_deeply([ sort keys %{ $res->{json} } ], [ qw(error error_type) ],
          'of TEI\'s form');

# the server

$res = $t->request(method => 'GET', path => '/slots');
is(scalar @{ $res->{json} }, 8, 'slots') or diag($res->{body});
is(scalar(grep { $_->{is_processing} } @{ $res->{json} }), 0, 'none is busy');
$res = $t->request(method => 'GET', path => '/props');
is($res->{json}{total_slots}, 8, 'total_slots');
is($res->{json}{model_path}, 'demo', 'no path of a file');
unlike($res->{body}, qr/\.gguf/, 'anywhere');
is($t->post('/api/chat', { model => 'qwen3:8b' })->{json}{model}, 'qwen',
   'a name with a tag is an alias');

$t->stop;

done_testing();
