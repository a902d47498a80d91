#!/usr/bin/perl

# Models whose layers have a window, all or some of them: a sequence needs pages
# for that, not for all its tokens, and the prefix cache goes on from the last
# window.  The tokens are the same, whatever was given back and found again.

use strict;
use warnings;

use LLM::GGUF;
use LLM::Test;
use Test::More;

my $PAGE = 16;
my $WINDOW = 100;

my $locations = <<'END';
        location /v1 { llm_api; llm_tenant $http_x_tenant; }
        location = /health { llm_health; }
        location = /metrics { llm_metrics; }
END

my $t = start('ctx=2000 parallel=2 batch=64', $WINDOW);
my $pages = $t->figure('llm_kv_pages');

cmp_ok($pages, '<', 2000 / $PAGE / 2, "$pages pages for two times 2000 tokens");

traffic();

my %short = (prompt => [ ids_of(5, 99) ], max_tokens => 61, seed => 6,
             temperature => 1, ignore_eos => \1);
my $short = ask(%short);
$t->stop(name => 'a window');

# memory for less than a window and two steps

$t = start('parallel=2 batch=64 kv_cache=480k', $WINDOW);
is($t->get('/health')->{json}{models}[0]{ctx}, 10 * $PAGE,
   'kv_cache=480k: a shorter context');
is_deeply(ask(%short)->{ids}, $short->{ids}, 'the same tokens to its end');
my @pair = map { $t->open('/v1/completions', { %short, stream => \1,
                          return_token_ids => \1 }) } 1 .. 2;
is_deeply(events($_), $short->{ids}, 'and beside another one') for @pair;
$t->stop(name => 'very little memory');

# two of six layers without a window, which keep pages of their own

$t = start('ctx=2000 parallel=2 batch=64', $WINDOW, 3);
is($t->figure('llm_kv_pages'), 2 * 2000 / $PAGE,
   'mixed: pages for two times 2000 tokens');
cmp_ok($t->figure('llm_kv_window_pages'), '<', 2000 / $PAGE * 2 / 3,
       'a third of these of windows');
traffic();
is($t->figure('llm_kv_window_pages_used'), 0, 'none of windows, either');
cmp_ok($t->figure('llm_kv_window_pages_cached'), '>', 0, 'some are kept');
$t->stop(name => 'windows in some layers');

# a sequence of 4000 tokens takes 12 MB where six layers keep 512 bytes of each

$t = start('ctx=4000 parallel=2 batch=64 kv_cache=6m', $WINDOW, 3);
cmp_ok($t->figure('llm_kv_pages'), '>', 4000 / $PAGE,
       'kv_cache=6m: pages for more than 4000 tokens');

my %long = (prompt => [ ids_of(4, 3500) ], max_tokens => 40, seed => 5,
            temperature => 1, ignore_eos => \1);
my $long = ask(%long);
my $hit = ask(%long);
is($hit->{cached}, 3488, 'all whole pages of a long prompt');
is_deeply($hit->{ids}, $long->{ids}, 'and the same tokens');
is_deeply(ask(%long, cache_prompt => \0)->{ids}, $long->{ids},
          'the same tokens without the cache');
$t->stop(name => 'little memory');

# beyond the longest sequence a window changes nothing

$t = start('ctx=1200 parallel=2', 4000);
is($t->figure('llm_kv_pages'), 2 * 1200 / $PAGE,
   'a window of more than ctx: pages for two times 1200 tokens');
$t->stop(name => 'a wide window');

done_testing();


# prompts, alone and together, found and computed again

sub traffic {
    my %ask = (prompt => [ ids_of(1, 900) ], max_tokens => 200, seed => 3,
               temperature => 1, ignore_eos => \1);

    my $alone = ask(%ask, cache_prompt => \0);
    is(@{ $alone->{ids} }, 200, 'a long text');

    my $first = ask(%ask);
    is($first->{cached}, 0, 'nothing is cached at first');
    is_deeply($first->{ids}, $alone->{ids}, 'the same tokens');

    my $again = ask(%ask, max_tokens => 20);
    cmp_ok($again->{cached}, '>', 0, "$again->{cached} of it are cached");
    is_deeply($again->{ids}, [ @{ $alone->{ids} }[0 .. 19] ],
              'the same tokens');

    my $found = ask(%ask, max_tokens => 20);
    is($found->{cached}, 896, 'the same prompt again: all its whole pages');
    is_deeply($found->{ids}, $again->{ids}, 'the same tokens');

    # the next turn

    my %next = (%ask, max_tokens => 30, prompt =>
                [ @{ $ask{prompt} }, @{ $found->{ids} }, ids_of(2, 20) ]);
    my $fresh = ask(%next, cache_prompt => \0);

    ask(%ask, max_tokens => 20);
    my $turn = ask(%next);
    is($turn->{cached}, 912, 'a second turn: the answer, too');
    is_deeply($turn->{ids}, $fresh->{ids}, 'the same tokens');

    my $other = ask(%ask, tenant => 'other', max_tokens => 20);
    is($other->{cached}, 0, 'nothing of that is for another tenant');
    is_deeply($other->{ids}, $again->{ids}, 'who gets the same tokens');

    # many together, more than there are seats

    my @asks = map { { %ask, prompt => [ ids_of($_ % 3, 100 + 150 * $_) ],
                       seed => $_, max_tokens => 100 } } 1 .. 6;
    my @one = map { ask(%$_)->{ids} } @asks;
    my @clients = map { $t->open('/v1/completions', { %$_, stream => \1,
                                 return_token_ids => \1 }) } @asks;
    my @many = map { events($_) } @clients;

    is_deeply($many[$_], $one[$_], "sequence $_: the same tokens among others")
        for 0 .. 5;

    ok(LLM::Test::wait_for(5, sub { $t->figure('llm_kv_pages_used') == 0; }),
       'no page is held when all have ended');
}


# every $period-th layer has no window

sub start {
    my ($params, $window, $period) = @_;
    my $new = LLM::Test->new(locations => $locations,
        model => "llm_model demo demo.gguf threads=1 device=cpu $params;");

    LLM::GGUF::make("$LLM::Test::ROOT/models/demo.gguf",
                    $new->dir . '/demo.gguf',
                    kv => { 'qwen3.attention.sliding_window' =>
                            [ u32 => $window ],
                            $period
                            ? ('qwen3.attention.sliding_window_pattern' =>
                               [ u32 => $period ])
                            : () });

    return $new->start;
}


sub ids_of {
    my ($i, $n) = @_;

    return map { 300 + ($_ * 7919 + $i * 1310 + $_ * $_ * 31) % 1500 } 1 .. $n;
}


sub ask {
    my (%body) = @_;
    my $tenant = delete $body{tenant};
    my $res = $t->post('/v1/completions', { %body, return_token_ids => \1 },
        $tenant ? (headers => { 'X-Tenant' => $tenant }) : ());

    is($res->{status}, 200, 'an answer') or diag($res->{body});

    return { ids => $res->{json}{choices}[0]{token_ids},
             cached => $res->{json}{usage}{prompt_tokens_details}
                           {cached_tokens} };
}


sub events {
    my ($client) = @_;

    return [ map { @{ $_->{json}{choices}[0]{token_ids} || [] } }
             grep { $_->{json} && $_->{json}{choices}[0] }
             $client->events ];
}
