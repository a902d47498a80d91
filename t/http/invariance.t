#!/usr/bin/perl

# Batch invariance over HTTP: a request with a seed has the same tokens and
# the same probabilities, to the last digit, alone and among sixteen others,
# with a cold, warm and half-warm cache, in steps of any size, streamed or
# not, on any number of threads, and after a restart.

use strict;
use warnings;

use LLM::JSON;
use LLM::Test;
use Test::More;

my $JSON = LLM::JSON->new->canonical;
my $text = join ' ', map { "Please remember that item $_ is blue." } 1 .. 25;
my @ids = map { 100 + $_ * 7919 % 900 } 1 .. 300;

# each with the beginning of its prompt, for a cache that is half warm
my %asked = (
    'tokens' => [ '/v1/completions',
        { prompt => \@ids, seed => 7, temperature => 1, logprobs => 5,
          max_tokens => 48, ignore_eos => \1 },
        { prompt => [ @ids[0 .. 150], 7, 8, 9 ] } ],
    'chat' => [ '/v1/chat/completions',
        { messages => [ { role => 'user', content => $text } ], seed => 5,
          temperature => 0.8, top_p => 0.95, top_k => 40, max_tokens => 40,
          ignore_eos => \1, logprobs => \1, top_logprobs => 7 },
        { messages => [ { role => 'user',
                          content => substr $text, 0, 400 } ] } ],
    'two choices' => [ '/v1/completions',
        { prompt => "$text Count:", seed => 3, temperature => 1.3, n => 2,
          frequency_penalty => 0.5, logprobs => 2, max_tokens => 30,
          ignore_eos => \1 },
        { prompt => substr $text, 0, 300 } ],
    'greedy' => [ '/v1/completions',
        { prompt => "Say: $text", temperature => 0, logprobs => 5,
          max_tokens => 30, ignore_eos => \1 },
        { prompt => 'Say: ' . substr $text, 0, 500 } ],
);


# all that a body or the events of a stream say of the choices

sub said {
    my (@parts) = @_;
    my @said;

    for my $part (@parts) {
        for my $c (@{ $part->{choices} }) {
            my $s = $said[$c->{index}] ||= {};
            my $message = $c->{message} || $c->{delta} || {};

            $s->{text} .= $c->{text} // $message->{content} // '';
            $s->{finish} = $c->{finish_reason} if $c->{finish_reason};
            push @{ $s->{ids} }, @{ $c->{token_ids} || [] };

            for (sort keys %{ $c->{logprobs} || {} }) {
                push @{ $s->{$_} }, @{ $c->{logprobs}{$_} }
                    if ref $c->{logprobs}{$_};
            }
        }
    }

    return $JSON->encode(\@said);
}


# what is said, and how much of the prompt was cached

sub ask {
    my ($t, $name, %fields) = @_;
    my ($path, $body) = @{ $asked{$name} };

    $body = { %$body, return_token_ids => \1, %fields };

    if ($fields{stream}) {
        my @events = $t->open($path, $body)->events;

        return said(map { $_->{json} } grep { $_->{json} } @events);
    }

    my $res = $t->post($path, $body);

    die "$res->{status}: $res->{body}" if $res->{status} != 200;

    return (said($res->{json}),
            $res->{json}{usage}{prompt_tokens_details}{cached_tokens},
            $res->{json}{usage}{prompt_tokens});
}


sub server {
    my ($with) = @_;

    return LLM::Test->new(
        model => "llm_model demo %%ROOT%%/models/demo.gguf ctx=4096 $with;",
        locations => <<'END')->start;
        location /v1 { llm_api; }
        location = /health { llm_health; }
        location = /metrics { llm_metrics; }
END
}


my %want;


# cold, half-warm and warm; streamed and not

sub check {
    my ($t, $where) = @_;

    for my $name (sort keys %asked) {
        my ($got, $cached, $prompt) = ask($t, $name, cache_salt => 'a');

        $want{$name} //= $got;
        is($got, $want{$name}, "$name, $where: cold");
        is($cached, 0, "nothing of $prompt is cached");

        $t->post($asked{$name}[0], { %{ $asked{$name}[2] }, max_tokens => 1,
                                     cache_salt => 'b' });

        ($got, $cached) = ask($t, $name, cache_salt => 'b');
        is($got, $want{$name}, "$name, $where: half-warm");
        ok($cached > 0 && $cached < $prompt - 32, "$cached are cached");

        ($got, $cached) = ask($t, $name, cache_salt => 'a');
        is($got, $want{$name}, "$name, $where: warm");
        cmp_ok($cached, '>=', $prompt - 16, "$cached are cached");

        ($got) = ask($t, $name, cache_salt => 'a', stream => \1);
        is($got, $want{$name}, "$name, $where: streamed");

        ($got) = ask($t, $name, cache_prompt => \0);
        is($got, $want{$name}, "$name, $where: without a cache");
    }
}


my $t = server('threads=2 parallel=18');

check($t, 'alone');

isnt((ask($t, 'tokens', seed => 8))[0], $want{tokens},
     'another seed says something else');

$t->stop(name => 'first server');

# the same one again: among others from the start

$t = server('threads=2 parallel=18');

my @others = map { $t->open('/v1/completions', {
    prompt => $_ % 3 ? "$_" : [ @ids[0 .. 18 * $_] ], max_tokens => 3700,
    ignore_eos => \1, temperature => 1 }) } 1 .. 16;

my $running;

ok(LLM::Test::wait_for(30, sub {
    $running = $t->figure('vllm:num_requests_running');
    $running == 16;
}), 'sixteen others run') or diag($running);

check($t, 'after a restart, among sixteen');

is($t->figure('vllm:num_requests_running'), 16, 'which run still');
$_->close for @others;
$t->stop(name => 'among others');

# other steps: chunks of 16, and all that fits

for my $with ('threads=1 parallel=2 batch=16', 'threads=2 parallel=3 batch=50',
              'threads=1 parallel=4 batch=1024')
{
    $t = server($with);
    check($t, $with);
    $t->stop(name => $with);
}

done_testing();
