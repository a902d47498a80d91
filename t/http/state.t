#!/usr/bin/perl

# A model with recurrent layers over HTTP: the prefix cache goes on from
# snapshots of its state, choices get copies of it, and sequences that lost
# theirs begin at the last snapshot.  The tokens are the same as without.

use strict;
use warnings;

use LLM::GGUF;
use LLM::Test;
use Test::More;

my $PAGE = 16;

my $locations = <<'END';
        location /v1 { llm_api; llm_tenant $http_x_tenant; }
        location = /health { llm_health; }
        location = /metrics { llm_metrics; }
END

{
    my $t = start('ctx=1200 parallel=4');
    my @long = ids_of(1, 200);
    my %ask = (prompt => \@long, max_tokens => 150, seed => 3,
               temperature => 1, ignore_eos => \1);

    my $alone = ask($t, %ask, cache_prompt => \0);
    is(@{ $alone->{ids} }, 150, 'a text without the cache');
    is($t->figure('llm_state_snapshots'), 0, 'leaves no snapshots');

    my $first = ask($t, %ask);
    is($first->{cached}, 0, 'nothing is cached at first');
    is_deeply($first->{ids}, $alone->{ids}, 'the same tokens');
    is($t->figure('llm_state_snapshots'), 2,
       'snapshots: of the prompt and of the answer');

    my $again = ask($t, %ask);
    is($again->{cached}, 192, 'the same prompt again: whole pages of it');
    is_deeply($again->{ids}, $alone->{ids}, 'the same tokens');

    # the prompt, its answer, and something new

    my @turn = (@long, @{ $alone->{ids} }, ids_of(2, 20));
    my %next = (%ask, prompt => \@turn, max_tokens => 40);
    my $fresh = ask($t, %next, cache_prompt => \0);
    my $second = ask($t, %next);

    is($second->{cached}, 320, 'a second turn: the answer, too');
    is_deeply($second->{ids}, $fresh->{ids}, 'the same tokens');

    # another tenant

    my $other = ask($t, %ask, tenant => 'other');
    is($other->{cached}, 0, 'nothing of that is for another tenant');
    is_deeply($other->{ids}, $alone->{ids}, 'who gets the same tokens');

    # a beginning that several have; the third one finds it

    my @cached;

    for my $i (1 .. 4) {
        my %some = (prompt => [ ids_of(3, 100), ids_of(10 + $i, 60) ],
                    max_tokens => 20, seed => $i, temperature => 1);
        my $one = ask($t, %some, cache_prompt => \0);
        my $with = ask($t, %some);

        is_deeply($with->{ids}, $one->{ids}, "beginning, $i: the same");
        push @cached, $with->{cached};
    }

    is("@cached", '0 0 96 96', 'a beginning that several have');

    # a long prompt leaves snapshots on its way

    my @way = ids_of(4, 1000);

    ask($t, %ask, prompt => \@way, max_tokens => 1);
    $way[700] = 5;
    my %way = (%ask, prompt => \@way, max_tokens => 20);
    my $direct = ask($t, %way, cache_prompt => \0);
    my $on = ask($t, %way);

    is($on->{cached}, 512, 'a long prompt that ends otherwise');
    is_deeply($on->{ids}, $direct->{ids}, 'the same tokens');

    # choices

    my @choices = map { choices($t, %ask, n => 3, max_tokens => 60, prompt =>
                                [ ids_of(5, 90) ], cache_prompt => $_) }
                  \0, \1, \1;

    is(scalar(@{ $choices[0] }), 3, 'three choices');
    isnt("@{ $choices[0][0] }", "@{ $choices[0][1] }", 'which differ');
    is_deeply($choices[1], $choices[0], 'the same with the cache');
    is_deeply($choices[2], $choices[0], 'and from a snapshot');

    $t->stop(name => 'cache');
}


# ten sequences that need three times the pages there are

{
    my $t = start('ctx=640 parallel=10 kv_cache=1m');
    my $pages = $t->figure('llm_kv_pages');
    my $tokens = int($pages * $PAGE * 3 / 10);

    $tokens = 640 if $tokens > 640;
    cmp_ok($tokens * 10, '>', 2 * $pages * $PAGE,
           "$pages pages, $tokens tokens each");

    my @asks = map { {
        prompt => [ ids_of($_ % 4, 30 + 10 * $_) ], seed => $_,
        temperature => $_ % 2, ignore_eos => \1, return_token_ids => \1,
        max_tokens => $tokens - 30 - 10 * $_, stream => \1,
        cache_prompt => $_ % 3 ? \1 : \0,
    } } 1 .. 10;

    my @alone = map { events($t->open('/v1/completions', $_)) } @asks;

    is($t->figure('vllm:num_preemptions_total'), 0, 'none preempted');

    my @clients = map { $t->open('/v1/completions', $_) } @asks;
    my @together = map { events($_) } @clients;

    cmp_ok($t->figure('vllm:num_preemptions_total'), '>', 0,
           'some are preempted');

    for (0 .. 9) {
        is(@{ $alone[$_] }, $asks[$_]{max_tokens}, "sequence $_ is whole");
        is_deeply($together[$_], $alone[$_],
                  "sequence $_: the same tokens among the others");
    }

    ok(LLM::Test::wait_for(5, sub {
        $t->figure('llm_kv_pages_used') == 0;
    }), 'no page is held when all have ended');

    $t->stop(name => 'pages');
}

done_testing();


sub start {
    my ($params) = @_;
    my $t = LLM::Test->new(locations => $locations,
        model => "llm_model demo demo.gguf threads=1 device=cpu $params;");

    LLM::GGUF::recurrent("$LLM::Test::ROOT/models/demo.gguf",
                         $t->dir . '/demo.gguf');

    return $t->start;
}


# n ids of ordinary tokens, the same for the same number

sub ids_of {
    my ($i, $n) = @_;

    return map { 300 + ($_ * 7919 + $i * 1310 + $_ * $_ * 31) % 1500 } 1 .. $n;
}


sub post {
    my ($t, %body) = @_;
    my $tenant = delete $body{tenant};
    my $res = $t->post('/v1/completions', { %body, return_token_ids => \1 },
                       $tenant ? (headers => { 'X-Tenant' => $tenant }) : ());

    is($res->{status}, 200, 'an answer') or diag($res->{body});

    return $res->{json};
}


sub ask {
    my $json = post(@_);

    return { ids => $json->{choices}[0]{token_ids},
             cached => $json->{usage}{prompt_tokens_details}
                            {cached_tokens} };
}


sub choices {
    my $json = post(@_);

    return [ map { $_->{token_ids} }
             sort { $a->{index} <=> $b->{index} } @{ $json->{choices} } ];
}


sub events {
    my ($client) = @_;

    return [ map { @{ $_->{json}{choices}[0]{token_ids} || [] } }
             grep { $_->{json} && $_->{json}{choices}[0] }
             $client->events ];
}
