#!/usr/bin/perl

# The prefix cache over HTTP: the second turn of a chat computes only what is
# new, whichever worker took it; tenants and salts see nothing of each other;
# the same tokens with and without it, alone and among others.

use strict;
use warnings;

use LLM::Test;
use MIME::Base64;
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


my $t = LLM::Test->new(workers => 3, listen => 'reuseport', pace => 0.5,
    http => 'log_format worker "$pid"; log_format none "<$llm_tenant>";
             lingering_close off;',
    locations => <<'END');
        location /v1 { llm_api; llm_tenant $http_x_tenant;
                       access_log logs/worker.log worker; }
        location /none { llm_api; access_log logs/none.log none; }
        location /user { llm_api; auth_basic x; auth_basic_user_file users; }
        location /said { llm_api; set $said $remote_user; }
        location = /health { llm_health; }
        location = /metrics { llm_metrics; }
END

$t->write_file('users', "one:{PLAIN}1\ntwo:{PLAIN}2\n");
$t->start;


sub figures {
    return map { $t->figure($_) } qw(llm_prompt_tokens_computed_total
        vllm:prefix_cache_queries_total vllm:prefix_cache_hits_total);
}


# asks, and checks that usage says what was computed of the prompt

sub ask {
    my ($what, $body, %opt) = @_;
    my @before = figures();
    my $res = $t->post('/v1/chat/completions', $body, %opt);
    my $prompt = $res->{json}{usage}{prompt_tokens};
    my @after = figures();
    my ($computed, $queries, $hits) = map { $after[$_] - $before[$_] } 0 .. 2;

    is($computed, $prompt - cached($res),
       "$what: " . cached($res) . " cached, $computed computed");
    is($queries, exists $body->{cache_prompt} ? 0 : $prompt,
       "$what: tokens looked up");
    is($hits, cached($res), "$what: hits");

    return $res;
}


my @turns = ({ role => 'system', content => $long },
             { role => 'user', content => 'What is 2 + 2?' });
my %ask = (temperature => 0, max_tokens => 20);

my $first = ask('first turn', { messages => \@turns, %ask });
my $prompt = $first->{json}{usage}{prompt_tokens};

is(cached($first), 0, 'the first turn finds nothing');

# whichever worker takes it: the kernel spreads connections over them

push @turns, { role => 'assistant', content => text($first) },
     { role => 'user', content => 'What is 3 + 4?' };

my %workers;

for my $round (1 .. 30) {
    my $res = ask("round $round", { messages => \@turns, %ask });

    cmp_ok(cached($res), '>=', $prompt - 3 * $PAGE,
           "round $round: the first turn's prompt is not computed again");

    %workers = map { $_ => 1 } split /\n/, $t->log('worker.log');

    last if $round >= 8 && keys %workers > 1;
}

cmp_ok(scalar keys %workers, '>', 1, 'several workers took part');

# ---- nobody else's

my $other = ask('another tenant', { messages => \@turns, %ask },
                headers => { 'X-Tenant' => 'other' });

is(cached($other), 0, 'another tenant finds nothing');

my $salted = ask('another salt',
                 { messages => \@turns, cache_salt => 's', %ask });

is(cached($salted), 0, 'nor does another salt');

my $same = ask('the same salt',
               { messages => \@turns, cache_salt => 's', %ask });

cmp_ok(cached($same), '>', 0, 'the same salt does');
is(text($other), text($same), 'the texts are the same');

my $both = ask('the salt of another tenant',
               { messages => \@turns, cache_salt => 's', %ask },
               headers => { 'X-Tenant' => 'other' });

is(cached($both), 0, 'a salt is its tenant\'s own');

my $without = ask('without the cache',
                  { messages => \@turns, cache_prompt => \0, %ask });

is(cached($without), 0, 'nothing is taken from it by one that wants none');
is(text($without), text($same), 'the text is the same');

# ---- without llm_tenant a client is a tenant, by address and checked name

sub cached_for {
    my ($path, $from, $user, @more) = @_;

    return cached($t->post("$path/chat/completions", {
        messages => [ { role => 'system', content => "Secret. $long" },
                      { role => 'user', content => 'Hello' } ],
        max_tokens => 1, @more }, from => $from,
        $user ? (headers => { Authorization => 'Basic '
                              . encode_base64($user, '') }) : ()));
}

is(cached_for('/none', '127.0.0.1'), 0, 'a client without a tenant');
cmp_ok(cached_for('/none', '127.0.0.1'), '>', 0, 'finds its own prompt');
is(cached_for('/none', '127.0.0.2'), 0, 'another address does not');
cmp_ok(cached_for('/none', '127.0.0.2'), '>', 0, 'but its own');
is(cached_for('/v1', '127.0.0.3'), 0, 'nor where llm_tenant is empty');
cmp_ok(cached_for('/none', '127.0.0.3'), '>', 0,
       'which is the same as no llm_tenant');
is(cached_for('/user', '127.0.0.1', 'one:1'), 0, 'a user finds nothing');
cmp_ok(cached_for('/user', '127.0.0.1', 'one:1'), '>', 0, 'but its own');
is(cached_for('/user', '127.0.0.1', 'two:2'), 0, 'another user does not');
is(cached_for('/none', '127.0.0.4', 'one:1'), 0,
   'nor who only says that name');
is(cached_for('/said', '127.0.0.5', 'one:1'), 0,
   'nor where nginx reads that name and nobody checks it');
unlike($t->log('none.log'), qr/<[^-]/, '$llm_tenant stays empty');

# ---- several choices share their prompt

my %several = (
    messages => [ { role => 'user', content => "$long And now?" } ],
    seed => 3, temperature => 1, max_tokens => 40);

my $four = ask('n = 4', { %several, n => 4 });

is(scalar @{ $four->{json}{choices} }, 4, 'n = 4 gives four choices');
is(cached($four), 0, 'their prompt was cold and computed once');

# with more choices than places the later ones find all whole pages

my $before = $t->figure('llm_prompt_tokens_computed_total');
my $twelve = $t->post('/v1/chat/completions',
                      { %several, n => 12, cache_salt => 'n' });
my $computed = $t->figure('llm_prompt_tokens_computed_total') - $before;

$prompt = $twelve->{json}{usage}{prompt_tokens};

cmp_ok($computed, '<=', $prompt + 4 * $PAGE,
       "n = 12 on eight places: $computed computed for $prompt");
is_deeply([ map { $_->{message}{content} }
            @{ $twelve->{json}{choices} }[0 .. 3] ],
          [ map { $_->{message}{content} } @{ $four->{json}{choices} } ],
          'the first four choices are those of n = 4');

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
