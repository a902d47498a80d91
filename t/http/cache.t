#!/usr/bin/perl

# The prefix cache over HTTP: the second turn of a chat computes only what is
# new, whichever worker took it; tenants and salts see nothing of each other;
# the same tokens with and without it, alone and among others.

use strict;
use warnings;

use LLM::Test;
use Test::More;

my $PAGE = 16;
my $long = join ' ', map { "Please remember that item $_ is blue." } 1 .. 12;


sub cached {
    my ($res) = @_;

    return $res->{json}{usage}{prompt_tokens_details}{cached_tokens};
}


sub text {
    my ($res) = @_;

    return $res->{json}{choices}[0]{message}{content};
}


my $t = LLM::Test->new(workers => 3, location => <<'END')->start;
    llm_tenant $http_x_tenant;
END

my @turns = ({ role => 'system', content => $long },
             { role => 'user', content => 'What is 2 + 2?' });
my %ask = (temperature => 0, max_tokens => 20);

my $first = $t->post('/v1/chat/completions', { messages => \@turns, %ask });
my $prompt = $first->{json}{usage}{prompt_tokens};

is(cached($first), 0, 'the first turn finds nothing');

# each request opens a connection of its own: any of the workers takes it

push @turns, { role => 'assistant', content => text($first) },
     { role => 'user', content => 'What is 3 + 4?' };

for my $round (1 .. 8) {
    my $res = $t->post('/v1/chat/completions',
                       { messages => \@turns, %ask });

    cmp_ok(cached($res), '>=', $prompt - 3 * $PAGE,
           "round $round: the first turn's prompt is not computed again");
}

# ---- nobody else's

my $other = $t->post('/v1/chat/completions', { messages => \@turns, %ask },
                     headers => { 'X-Tenant' => 'other' });

is(cached($other), 0, 'another tenant finds nothing');

my $salted = $t->post('/v1/chat/completions',
                      { messages => \@turns, cache_salt => 's', %ask });

is(cached($salted), 0, 'nor does another salt');

my $same = $t->post('/v1/chat/completions',
                    { messages => \@turns, cache_salt => 's', %ask });

cmp_ok(cached($same), '>', 0, 'the same salt does');
is(text($other), text($same), 'the texts are the same');

# ---- several choices share their prompt

my $several = $t->post('/v1/chat/completions', {
    messages => [ { role => 'user', content => "$long And now?" } ],
    n => 4, seed => 3, temperature => 1, max_tokens => 8 });

is(scalar @{ $several->{json}{choices} }, 4, 'n = 4 gives four choices');

# ---- warm, cold, alone, among others

my %sampled = (temperature => 1.2, seed => 11, max_tokens => 30);
my @question = ({ role => 'user', content => "$long Tell me about it." });
my @want = map {
    text($t->post('/v1/chat/completions',
                  { messages => \@question, cache_salt => "cold$_",
                    %sampled }))
} 1 .. 2;

is($want[0], $want[1], 'the same seed, both cold: the same text');

my @crowd = map { $t->open_long(max_tokens => 400) } 1 .. 7;

$_->event for @crowd;

is(text($t->post('/v1/chat/completions',
                 { messages => \@question, cache_salt => 'cold1',
                   %sampled })),
   $want[0], 'warm and among seven others: the same text');

is(text($t->post('/v1/chat/completions',
                 { messages => \@question, cache_salt => 'cold9',
                   %sampled })),
   $want[0], 'cold and among seven others: the same text');

$_->close for @crowd;

my $streamed = LLM::Client::text_of($t->open('/v1/chat/completions', {
    messages => \@question, stream => \1, %sampled })->events);

is($streamed, $want[0], 'streamed: the same text');

$t->stop;

# ---- after a restart, with other steps

$t = LLM::Test->new(model => 'llm_model demo %%ROOT%%/models/demo.gguf'
                           . ' threads=1 parallel=2 batch=24 default;')->start;

is(text($t->post('/v1/chat/completions',
                 { messages => \@question, %sampled })),
   $want[0], 'another server with other steps and threads: the same text');

$t->stop;

done_testing();
