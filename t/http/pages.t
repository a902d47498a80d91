#!/usr/bin/perl

# Ten sequences that need three times the pages there are: preempted,
# computed again, and all end whole, with the tokens that they have alone.

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

    $t->stop(name => $name);
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
