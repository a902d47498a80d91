#!/usr/bin/perl

# speculate=ngram: every answer is what it is without, text, tokens,
# probabilities and end, with any parameters, alone and beside others, on the
# CPU and with the kernels for GPUs; drafts are counted, and a prediction is
# one.

use strict;
use warnings;

use LLM::JSON;
use LLM::GGUF;
use LLM::Test;
use Test::More;

my $JSON = LLM::JSON->new->canonical;
my $demo = "$LLM::Test::ROOT/models/demo.gguf";
my $fixtures = $ENV{LLM_FIXTURES} || "$LLM::Test::ROOT/../shared/fixtures";
my $emu = -e "$LLM::Test::OBJS/llm_emu.so";

# what is in the prompt and comes again: a list that the model continues
my $list = join "\n", map { "item $_: the colour is blue." } 1 .. 12;
my @ids = ((map { 300 + $_ * 31 % 90 } 1 .. 40) x 3);

my %tool = (type => 'function', function => {
    name => 'get_weather', parameters => {
        type => 'object', properties => { city => { type => 'string' } },
        required => [ 'city' ], additionalProperties => \0 } });

my %schema = (type => 'object', additionalProperties => \0,
    properties => {
        description_of_the_colour => { enum => [ 'a very dark blue',
                                                 'a very light green' ] },
        number_of_items_in_the_list => { type => 'integer', maximum => 99,
                                         minimum => 10 } },
    required => [ qw(description_of_the_colour
                     number_of_items_in_the_list) ]);

my %asked = (
    'greedy' => [ '/v1/completions',
        { prompt => "$list\nitem 13:", temperature => 0, logprobs => 5,
          max_tokens => 120, ignore_eos => \1 } ],
    'greedy, without probabilities' => [ '/v1/completions',
        { prompt => "$list\nitem 13:", temperature => 0,
          max_tokens => 120 } ],
    'drawn' => [ '/v1/completions',
        { prompt => "$list\nitem", temperature => 0.7, seed => 11,
          logprobs => 3, max_tokens => 90, ignore_eos => \1 } ],
    'hot' => [ '/v1/completions',
        { prompt => \@ids, temperature => 1.5, seed => 12, top_p => 0.9,
          max_tokens => 60, ignore_eos => \1 } ],
    'penalties' => [ '/v1/completions',
        { prompt => "$list\nitem", temperature => 0.3, seed => 3,
          frequency_penalty => 0.4, presence_penalty => 0.2,
          repetition_penalty => 1.1, logprobs => 2, max_tokens => 60,
          ignore_eos => \1 } ],
    'dry, top_k, min_p' => [ '/v1/completions',
        { prompt => "$list\nitem", temperature => 0.9, seed => 4,
          top_k => 30, min_p => 0.02, dry_multiplier => 0.8,
          max_tokens => 60, ignore_eos => \1 } ],
    'three choices' => [ '/v1/completions',
        { prompt => "$list\nitem 13:", temperature => 0.4, seed => 5,
          n => 3, max_tokens => 60, ignore_eos => \1 } ],
    'echo' => [ '/v1/completions',
        { prompt => "$list\nitem", temperature => 0, echo => \1,
          logprobs => 2, max_tokens => 40 } ],
    'stop string' => [ '/v1/completions',
        { prompt => "$list\nitem 13:", temperature => 0,
          stop => [ 'blue.' ], max_tokens => 60 } ],
    'another stop string' => [ '/v1/completions',
        { prompt => "$list\nitem 13:", temperature => 0,
          stop => [ "e.\nit", 'colour is red' ], max_tokens => 60 } ],
    'min_tokens' => [ '/v1/completions',
        { prompt => "$list\nitem 13:", temperature => 0, min_tokens => 50,
          max_tokens => 60 } ],
    'bad words' => [ '/v1/completions',
        { prompt => "$list\nitem 13:", temperature => 0,
          bad_words => [ ' blue.', 'the colour' ], max_tokens => 60 } ],
    'chat' => [ '/v1/chat/completions',
        { messages => [ { role => 'user', content => $list },
                        { role => 'assistant', content => $list },
                        { role => 'user', content => 'Once more.' } ],
          temperature => 0, max_tokens => 80, logprobs => \1,
          top_logprobs => 2 } ],
    'schema' => [ '/v1/chat/completions',
        { messages => [ { role => 'user', content => 'Which colour?' } ],
          temperature => 0.8, seed => 9, max_tokens => 120,
          response_format => { type => 'json_schema', json_schema => {
              name => 'colour', strict => \1, schema => \%schema } } } ],
    'tools' => [ '/v1/chat/completions',
        { messages => [ { role => 'user', content => "What is the weather "
                          . "like in Berlin?" } ],
          tools => [ \%tool ], tool_choice => 'required', temperature => 0,
          max_tokens => 80 } ],
    'tools, if the model wants' => [ '/v1/chat/completions',
        { messages => [ { role => 'user', content => "What is the weather "
                          . "like in Paris? Use the tool." } ],
          tools => [ \%tool ], temperature => 0, max_tokens => 80 } ],
    'regular expression' => [ '/v1/completions',
        { prompt => "$list\n", temperature => 0.9, seed => 2,
          max_tokens => 90,
          guided_regex => '(item [0-9]+: the colour is [a-z]+\.\n){4}' } ],
);


# all that is said, without the ids of calls, which are random

sub said {
    my ($body) = @_;

    for my $c (@{ $body->{choices} }) {
        delete $_->{id} for @{ ($c->{message} // {})->{tool_calls} // [] };
    }

    return $JSON->encode($body->{choices});
}


sub ask {
    my ($t, $model, $name, %more) = @_;
    my ($path, $body) = @{ $asked{$name} };
    my $res = $t->post($path, { %$body, model => $model, %more,
                                return_token_ids => \1 });

    die "$name: $res->{status}: $res->{body}" if $res->{status} != 200;

    return (said($res->{json}), $res->{json}{usage});
}


sub drafts {
    my ($t, $model) = @_;
    my ($f) = grep { $_->{name} eq $model }
                   @{ $t->get('/figures')->{json}{models} };
    my ($drafted, $accepted) = (0, 0);

    $drafted += $_ for values %{ $f->{drafted_tokens} };
    $accepted += $_ for values %{ $f->{accepted_tokens} };

    return ($drafted, $accepted, $f);
}


sub server {
    my (%opt) = @_;

    return LLM::Test->new(
        model => $opt{models},
        locations => <<'END')->start(%{ $opt{start} // {} });
        location /v1 { llm_api; }
        location = /health { llm_health; }
        location = /metrics { llm_metrics; }
        location = /figures { llm_metrics json; }
END
}


sub check {
    my ($t, $where, $without, $with) = @_;

    for my $name (sort keys %asked) {
        my ($want) = ask($t, $without, $name);
        my ($got, $usage) = ask($t, $with, $name);

        is($got, $want, "$where, $name: the same answer");

        ($got) = ask($t, $with, $name);
        is($got, $want, "$where, $name: and again");
    }
}


my $file = "$demo ctx=2048 parallel=8 threads=2";
my $t = server(models => "llm_model plain $file; "
                       . "llm_model fast $file speculate=ngram;");

check($t, 'alone', 'plain', 'fast');

my ($drafted, $accepted, $f) = drafts($t, 'fast');

cmp_ok($accepted, '>', 100, "$accepted tokens were drafted and drawn");
cmp_ok($drafted, '>=', $accepted, "of $drafted");
cmp_ok($f->{accepted_tokens}{grammar}, '>', 0, 'some because of a grammar');
is((drafts($t, 'plain'))[0], 0, 'none where none are to be');

my $metrics = $t->get('/metrics')->{body};

like($metrics, qr/^vllm:spec_decode_num_draft_tokens_total\{
                  model_name="fast",kind="ngram"\}\ [1-9]/mx, 'the metric');

# usage has them, and a prediction is a draft

my ($answer) = ask($t, 'plain', 'chat');
my $content = decode_json($answer)->[0]{message}{content};
my ($got, $usage) = ask($t, 'fast', 'chat', cache_prompt => \0,
                        prediction => { type => 'content',
                                        content => $content });
my $counts = $usage->{completion_tokens_details};

is($got, $answer, 'with a prediction: the same answer');
cmp_ok($counts->{accepted_prediction_tokens}, '>', 0,
       'tokens of it were drafted and drawn');
cmp_ok((drafts($t, 'fast'))[2]{accepted_tokens}{prediction}, '>', 0,
       'from the prediction');

($got, $usage) = ask($t, 'fast', 'chat', cache_prompt => \0, prediction => {
    type => 'content', content => [ { type => 'text', text => 'No, ' },
                                    { type => 'text', text => 'never.' } ] });
is($got, $answer, 'with a wrong one, too');

# beside others, some of which are cancelled

my @others = map { $t->open('/v1/completions', {
    model => 'fast', prompt => "$_ $list\nitem", max_tokens => 1500,
    ignore_eos => \1, temperature => $_ % 2, seed => $_,
    stream => \1 }) } 1 .. 4;

check($t, 'beside others', 'plain', 'fast');
$_->close for @others;
check($t, 'after a cancel', 'plain', 'fast');
$t->stop(name => 'first server');

# few pages: sequences lose them and continue

$t = server(models => "llm_model plain $demo ctx=1024 parallel=4 threads=2; "
          . "llm_model fast $demo ctx=1024 parallel=4 threads=2 kv_cache=4m"
          . " speculate=ngram;");

my @want = map { (ask($t, 'plain', $_))[0] } sort keys %asked;
my @streams = map { $t->open('/v1/completions', {
    model => 'fast', prompt => "$list\nitem 1$_:", max_tokens => 400,
    temperature => 0, ignore_eos => \1, stream => \1 }) } 1 .. 3;
my @got = map { (ask($t, 'fast', $_))[0] } sort keys %asked;

is_deeply(\@got, \@want, 'few pages: the same answers');
$_->close for @streams;
$t->stop(name => 'few pages');

# recurrent layers and windows, models of random weights

my %families = (late => "%%DIR%%/late.gguf");

for my $name (qw(qwen35 qwen3next lfm2 mamba2 granitehybrid falconh1 gemma3
                 gptoss gemma4 deepseek2))
{
    my $path = "$fixtures/models/$name-f16.gguf";

    $families{$name} = $path if -e $path;
}

$t = LLM::Test->new(
    model => join("\n", map {
        my $how = "$families{$_} ctx=256 parallel=3 threads=1 lazy";
        "llm_model $_ $how; llm_model fast-$_ $how speculate=ngram;"
    } sort keys %families),
    locations => 'location /v1 { llm_api; } location = /health { llm_health; }'
               . ' location = /figures { llm_metrics json; }');

LLM::GGUF::recurrent($demo, $t->dir . '/late.gguf');
$t->start(cold => 1);

for my $name (sort keys %families) {
    my @all = map { my $t0 = $_; map {
        { prompt => [ (map { 40 + $_ * $t0 % 70 } 1 .. 30) x 2 ],
          temperature => $_, seed => 5, max_tokens => 120, ignore_eos => \1,
          logprobs => 1, return_token_ids => \1 } } 0, 0.5 } 3, 11;

    for my $i (0 .. $#all) {
        my ($want, $got) = map {
            my $res = $t->post('/v1/completions',
                               { %{ $all[$i] }, model => $_ });
            $res->{status} == 200 ? said($res->{json}) : $res->{body};
        } $name, "fast-$name";

        is($got, $want, "$name, request $i: the same answer");
    }

    my ($drafted, $accepted) = drafts($t, "fast-$name");
    note("$name: $accepted of $drafted");
}

$t->stop(name => 'families');

# the kernels for GPUs, which draw themselves

SKIP: {
    skip 'no emulator', 1 if !$emu;

    my $how = "$demo device=emu ctx=512 parallel=3 kv_cache=64m";

    $t = server(models => "llm_model plain $how; "
                        . "llm_model fast $how speculate=ngram;");

    for my $name ('greedy', 'drawn', 'penalties', 'schema', 'three choices',
                  'stop string')
    {
        my %less = (max_tokens => 24);
        my ($want) = ask($t, 'plain', $name, %less);
        my ($got) = ask($t, 'fast', $name, %less);

        is($got, $want, "emulator, $name: the same answer");
    }

    cmp_ok((drafts($t, 'fast'))[1], '>', 0, 'some of it was drafted');
    $t->stop(name => 'emulator');
}

done_testing();
