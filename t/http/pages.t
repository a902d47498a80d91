#!/usr/bin/perl

# KV pages run out.  Ten sequences that need three times the pages there are:
# preempted, computed again, and all end whole, with the tokens that they have
# alone.  Prefixes are forgotten, the one used least lately first.

use strict;
use warnings;

use LLM::Test;
use Test::More;

my $PAGE = 16;

for my $workers (1, 2) {
    my $name = "$workers worker(s)";
    my $t = LLM::Test->new(workers => $workers,
        model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=1'
               . ' parallel=10 ctx=640 kv_cache=4m;',
        locations => <<'END')->start;
        location /v1 { llm_api; }
        location = /health { llm_health; }
        location = /metrics { llm_metrics; }
END

    my $pages = $t->figure('llm_kv_pages');

    # three tenths of the pages each
    my $tokens = int($pages * $PAGE * 3 / 10);

    cmp_ok($tokens, '<', 640, "$name: $pages pages, $tokens tokens each");

    my @asks = map { {
        prompt => "$_ " . join(' ', map { $_ % 7 } 1 .. 10 * $_),
        seed => $_, temperature => $_ % 2 ? 1 : 0, ignore_eos => \1,
        return_token_ids => \1, stream => \1, cache_prompt => $_ % 3 ? \1 : \0,
    } } 1 .. 10;

    for my $ask (@asks) {
        my $prompt = $t->post('/v1/completions', { %$ask, stream => \0,
            max_tokens => 1, return_token_ids => \0 })
            ->{json}{usage}{prompt_tokens};

        $ask->{max_tokens} = $tokens - $prompt;
    }

    is($t->figure('vllm:num_preemptions_total'), 0, "$name: none preempted");

    my @alone = map { ids($t->open('/v1/completions', $_)) } @asks;

    is(scalar(grep { @{ $alone[$_]{ids} } == $asks[$_]{max_tokens} } 0 .. 9),
       10, "$name: alone they are whole");

    my @clients = map { $t->open('/v1/completions', $_) } @asks;
    my @together = map { ids($_) } @clients;

    is($t->figure('vllm:num_preemptions_total') > 0, 1,
       "$name: some are preempted");

    for (0 .. 9) {
        is_deeply($together[$_], $alone[$_], "$name, sequence $_: the same "
                  . @{ $alone[$_]{ids} } . ' tokens among the others');
    }

    ok(LLM::Test::wait_for(5, sub {
        $t->figure('llm_kv_pages_used') == 0;
    }), "$name: no page is held when all have ended");

    $t->stop(name => $name);
}


# prompts of 14 pages each, the last token's never shared

{
    my $t = LLM::Test->new(
        model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=1'
               . ' parallel=10 ctx=640 kv_cache=4m;',
        locations => <<'END')->start;
        location /v1 { llm_api; }
        location = /health { llm_health; }
        location = /metrics { llm_metrics; }
END
    my $fit = int($t->figure('llm_kv_pages') / 14);
    my $cached = sub {
        my ($i) = @_;

        return $t->post('/v1/completions', {
            prompt => [ map { 100 + ($_ * 7919 + $i * 131) % 900 } 1 .. 220 ],
            max_tokens => 1 })->{json}{usage}{prompt_tokens_details}
                              {cached_tokens};
    };

    cmp_ok($fit, '>=', 3, "room for $fit prefixes");

    is($cached->($_), 0, "prefix $_ is new") for 1 .. $fit;
    is($cached->(1), 208, 'the first one is there when all are');
    is($cached->($_), 0, "prefix $_ is new") for $fit + 1 .. 2 * $fit - 2;
    is($cached->(1), 208, 'one used lately is still there');
    is($cached->(2), 0, 'one that nobody used is not');
    is($cached->(2 * $fit - 2), 208, 'the last one is');
    is($t->figure('vllm:num_preemptions_total'), 0, 'nobody was preempted');

    $t->stop(name => 'prefixes');
}


sub ids {
    my ($client) = @_;
    my (@ids, $reason, $text);

    for my $e ($client->events) {
        my $c = $e->{json} && $e->{json}{choices}[0] or next;

        push @ids, @{ $c->{token_ids} || [] };
        $reason = $c->{finish_reason} // $reason;
        $text .= $c->{text};
    }

    return { ids => \@ids, reason => $reason, text => $text };
}

done_testing();
