#!/usr/bin/perl

# A conversation in each family's way of writing turns: an answer ends with
# the family's own end of a turn, is not followed by what the model would say
# next, and shows none of the marks; streamed or not.  By a model that says
# what a script has, behind templates of each kind, and behind the real ones
# where the fixtures are.

use strict;
use warnings;

use LLM::JSON;
use LLM::Made qw(script);
use LLM::Test;
use Test::More;

# what stands before and behind a user's turn and an answer

my @kinds = (
    [ gemma3 => '<end_of_turn>',
      "<start_of_turn>user\n", "<end_of_turn>\n",
      "<start_of_turn>model\n", "<end_of_turn>\n" ],
    [ gemma4 => '<turn|>',
      "<|turn>user\n", "<turn|>\n", "<|turn>model\n", "<turn|>\n" ],
    [ glm4 => '<|observation|>', "<|user|>\n", '', "<|assistant|>\n", '' ],
    [ deepseek => "<\x{ff5c}end\x{2581}of\x{2581}sentence\x{ff5c}>",
      "<\x{ff5c}User\x{ff5c}>", '', "<\x{ff5c}Assistant\x{ff5c}>",
      "<\x{ff5c}end\x{2581}of\x{2581}sentence\x{ff5c}>" ],
    [ granite => '<|end_of_text|>',
      '<|start_of_role|>user<|end_of_role|>', "<|end_of_text|>\n",
      '<|start_of_role|>assistant<|end_of_role|>', "<|end_of_text|>\n" ],
    [ phi3 => '<|end|>',
      "<|user|>\n", "<|end|>\n", "<|assistant|>\n", "<|end|>\n" ],
    [ smollm3 => '<|im_end|>',
      "<|im_start|>user\n", "<|im_end|>\n",
      "<|im_start|>assistant\n", "<|im_end|>\n" ],
    [ mistral => '</s>', '[INST]', '[/INST]', '', '</s>' ],
    [ llama4 => '<|eot|>',
      "<|header_start|>user<|header_end|>\n\n", '<|eot|>',
      "<|header_start|>assistant<|header_end|>\n\n", '<|eot|>' ],
    [ commandr => '<|END_OF_TURN_TOKEN|>',
      '<|START_OF_TURN_TOKEN|><|USER_TOKEN|>', '<|END_OF_TURN_TOKEN|>',
      '<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>', '<|END_OF_TURN_TOKEN|>' ],
    [ exaone4 => '[|endofturn|]',
      "[|user|]\n", "[|endofturn|]\n", "[|assistant|]\n",
      "[|endofturn|]\n" ],
    [ hunyuan => '<|eos|>',
      '<|startoftext|>', '<|extra_0|>', '', '<|eos|>' ],
    [ minimax => '[e~[',
      "]~b]user\n", "[e~[\n", "]~b]ai\n", "[e~[\n" ],
    [ ernie => '<|end_of_sentence|>',
      'User: ', "\n", 'Assistant: ', '<|end_of_sentence|>' ],
    [ seed => '<seed:eos>',
      "<seed:bos>user\n", '<seed:eos>', "<seed:bos>assistant\n",
      '<seed:eos>' ],
);

# of the fixtures' templates: those of families that load, and their ends

my %real = (
    'google-gemma-2-2b-it' => '<end_of_turn>',
    'ibm-granite-granite-3.3-2B-Instruct' => '<|end_of_text|>',
    'microsoft-Phi-3.5-mini-instruct' => '<|end|>',
    'mistralai-Mistral-Nemo-Instruct-2407' => '</s>',
    'meta-llama-Llama-3.1-8B-Instruct' => '<|eot_id|>',
    'CohereForAI-c4ai-command-r7b-12-2024-tool_use'
        => '<|END_OF_TURN_TOKEN|>',
    'Cohere2MoE' => '<|END_OF_TURN_TOKEN|>',
    'Qwen-Qwen2.5-7B-Instruct' => '<|im_end|>',
    'Qwen-Qwen3-0.6B' => '<|im_end|>',
    'Qwen3-Coder' => '<|im_end|>',
    'deepseek-ai-DeepSeek-V4'
        => "<\x{ff5c}end\x{2581}of\x{2581}sentence\x{ff5c}>",
    'GLM-4.7-Flash' => '<|observation|>',
);

my $fixtures = $ENV{LLM_FIXTURES} || "$LLM::Test::ROOT/../shared/fixtures";
my (%template, %script, %end);

for my $kind (@kinds) {
    my ($name, $end, @marks) = @$kind;

    my ($user, $user_end, $answer, $answer_end)
        = map { encode_json([ $_ ]) =~ s/^\[|\]$//gr } @marks;

    $end{$name} = $end;
    $template{$name} = <<"END";
{%- for m in messages -%}
{%- if m.role == 'assistant' -%}
{{- $answer ~ m.content ~ $answer_end -}}
{%- else -%}
{{- $user ~ m.content ~ $user_end -}}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- $answer -}}{%- endif -%}
END
}

for my $name (sort keys %real) {
    open my $f, '<:raw', "$fixtures/chat-templates/$name.jinja" or next;
    local $/;
    $template{$name} = <$f>;
    $end{$name} = $real{$name};
}

# in the script's vocabulary <|return|> is no token: that is gpt-oss's, in
# harmony.t

my $n = 0;
my %line = map { $_ => 'line' . $n++ } sort keys %template;

$script{$line{$_}} = { says => "Good day, $line{$_}.", end => $end{$_} }
    for keys %template;

my $t = LLM::Test->new(
    model => join("\n", map {
        "llm_model $line{$_} %%DIR%%/script.gguf ctx=2048 parallel=2 threads=1"
        . " template=%%DIR%%/$line{$_}.jinja lazy;" } sort keys %template),
    locations => 'location /v1 { llm_api; } location = /health { llm_health; }');

for my $name (keys %template) {

    # the template's own text: a client's makes no control token

    $t->write_file("$line{$name}.jinja", $template{$name}
                   . "{%- if line == '$line{$name}' -%}"
                   . "<|say:$line{$name}|>{%- endif -%}");
}

$t->write_file('script.json', encode_json(\%script));
script($t->dir);
$t->start(cold => 1);

for my $name (sort keys %template) {
    my $line = $line{$name};
    my %ask = (model => $line, temperature => 0, max_tokens => 40,
               chat_template_kwargs => { line => $line }, messages => [
                   { role => 'user', content => 'Hello' },
                   { role => 'assistant', content => 'Hi.' },
                   { role => 'user', content => 'And?' } ]);

    my $res = $t->post('/v1/chat/completions', \%ask);
    my $c = ($res->{json}{choices} // [ {} ])->[0];

    # behind a prompt that begins to reason, all is reasoning

    my $said = ($c->{message}{reasoning_content} // '')
             . ($c->{message}{content} // '');

    is($said, "Good day, $line.", "$name: what is said, and no more")
        or diag($res->{body});
    is($c->{finish_reason}, 'stop', "$name: it ends of itself");

    my $s = $t->open('/v1/chat/completions', { %ask, stream => \1 });
    my @deltas = map { ($_->{json}{choices} // [ {} ])->[0]{delta} // {} }
                 grep { $_->{json} } $s->events;

    is(join('', map { ($_->{reasoning_content} // '') . ($_->{content} // '') }
                @deltas), "Good day, $line.", "$name: streamed, too");
}

SKIP: {
    skip 'no fixtures: the real templates are not there', 1
        if !-d "$fixtures/chat-templates";
    ok(defined $template{'GLM-4.7-Flash'}, 'with real templates');
}

$t->stop(name => 'families');

done_testing();
