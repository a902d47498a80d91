#!/usr/bin/perl

# Parameters of sampling that need the vocabulary or the whole answer: best_of,
# bad words, allowed tokens, DRY and its sequence breakers; and that none of
# llama.cpp's is ignored.

use strict;
use warnings;

use List::Util qw(sum);
use LLM::Test;
use Test::More;

my $t = LLM::Test->new->start;
my %ask = (prompt => 'one two three', max_tokens => 6, ignore_eos => \1,
           temperature => 1.3);

sub complete {
    my (%more) = @_;

    return $t->post('/v1/completions', { %ask, %more });
}


sub texts { map { $_->{text} } @{ $_[0]{json}{choices} } }


# ---- best_of: the same choices as with n, ranked by their log probability ----

for my $seed (1 .. 3) {
    my $all = complete(n => 5, seed => $seed, logprobs => 0);

    is($all->{status}, 200, 'five choices') or diag($all->{body});

    my %mean = map {
        my $p = $_->{logprobs}{token_logprobs};
        $_->{text} => sum(@$p) / @$p
    } @{ $all->{json}{choices} };
    my @ranked = sort { $mean{$b} <=> $mean{$a} } keys %mean;

    my $best = complete(n => 2, best_of => 5, seed => $seed);

    is_deeply([ texts($best) ], [ @ranked[0, 1] ],
              "the best two of five, seed $seed") or diag($best->{body});
    is_deeply([ map { $_->{index} } @{ $best->{json}{choices} } ], [ 0, 1 ],
              'with their places');
    is($best->{json}{choices}[0]{logprobs}, undef,
       'log probabilities that were not asked for');
    is($best->{json}{usage}{completion_tokens}, 30, 'all five are counted');
}

{
    my $alone = complete(best_of => 4, seed => 1, logprobs => 1);
    my $two = complete(prompt => [ 'one two three', 'red' ], best_of => 4,
                       echo => \1, seed => 1, logprobs => 1);
    my @two = texts($two);

    is(scalar @two, 2, 'two prompts: the best of each');
    is($two[0], 'one two three' . (texts($alone))[0], 'with its echo');
    like($two[1], qr/^red/, 'the other, too');
    is(scalar @{ $alone->{json}{choices}[0]{logprobs}{tokens} }, 6,
       'log probabilities of the one that is left');
}

is(complete(best_of => 2, stream => \1)->{status}, 400, 'not in a stream');
is(complete(n => 3, best_of => 2)->{status}, 400, 'not less than n');


# ---- words that may not be written ----

sub llm {
    my ($command, $text, @more) = @_;

    $t->write_file('text', $text);

    return scalar qx{'$LLM::Test::OBJS/llm' $command \\
        '$LLM::Test::ROOT/models/demo.gguf' @more < '@{[ $t->dir ]}/text'};
}

my %greedy = (temperature => 0, max_tokens => 12);
my ($plain) = texts(complete(%greedy, prompt => 'What is 2 + 2?'));
my @words = grep { length > 1 } $plain =~ /(\w+)/g;

cmp_ok(scalar @words, '>', 0, "the answer has words: $plain");

for my $word (@words) {
    my ($text) = texts(complete(%greedy, prompt => 'What is 2 + 2?',
                                bad_words => [ $word ]));

    # a word within another has other tokens
    unlike($text, qr/(?:^| )\Q$word\E\b/, "without \"$word\"");
    isnt($text, $plain, 'another answer');
}

is((texts(complete(%greedy, prompt => 'What is 2 + 2?',
                   bad_words => [ 'nothing of the kind', '' ])))[0],
   $plain, 'a word that does not come changes nothing');

# several tokens

{
    my ($phrase) = $plain =~ /(\w+ \w+ \w+)/;
    my @ids = split ' ', llm('tokenize', " $phrase");
    my ($text) = texts(complete(%greedy, prompt => 'What is 2 + 2?',
                                bad_words => [ $phrase ]));

    cmp_ok(scalar @ids, '>', 2, "\"$phrase\" has several tokens");
    unlike($text, qr/\Q$phrase\E/, 'it is not written whole');
    like($text, qr/\Q@{[ $phrase =~ s{ \w+$}{}r ]}\E/, 'but its beginning');
}


# ---- allowed tokens ----

{
    my @ids = map { (split ' ', llm('tokenize', " $_"))[0] + 0 }
                  qw(red blue two);
    my $res = complete(allowed_token_ids => \@ids, return_token_ids => \1,
                       max_tokens => 20);
    my %allowed = map { $_ => 1 } @ids;

    is($res->{status}, 200, 'some tokens only') or diag($res->{body});
    is(scalar(grep { !$allowed{$_} } @{ $res->{json}{choices}[0]{token_ids} }),
       0, 'no other is drawn');
    is(scalar @{ $res->{json}{choices}[0]{token_ids} }, 20, 'to the end');

    $res = complete(allowed_token_ids => [ 1e6 ]);
    is($res->{status}, 400, 'an id beyond the vocabulary');
    is($res->{json}{error}{param}, 'allowed_token_ids', 'is named');

    $res = complete(allowed_token_ids => [ $ids[0] ],
                    bad_words => [ 'red' ]);
    is($res->{status}, 400, 'rules that leave no token')
        or diag($res->{body});
    like($res->{json}{error}{message}, qr/no token is allowed/, 'say so');
}


# ---- DRY ----

{
    my @ids = map { (split ' ', llm('tokenize', " $_"))[0] + 0 }
                  qw(red blue two three);
    my @repeated = (%greedy, prompt => [ @ids, @ids, @ids[0, 1] ],
                    max_tokens => 1, allowed_token_ids => \@ids,
                    logit_bias => { $ids[2] => 50 });

    is((texts(complete(@repeated)))[0], ' two', 'a repetition');
    is((texts(complete(@repeated, dry_multiplier => 1)))[0], ' two',
       'that costs little');
    isnt((texts(complete(@repeated, dry_multiplier => 60)))[0], ' two',
         'that costs much');
    is((texts(complete(@repeated, dry_multiplier => 60,
                       samplers => [ 'temperature' ])))[0], ' two',
       'that is not among the samplers');
    is((texts(complete(@repeated, dry_multiplier => 60,
                       dry_allowed_length => 7)))[0], ' two',
       'as long as is allowed');
    is((texts(complete(@repeated, dry_multiplier => 60,
                       dry_sequence_breakers => [ 'blue' ])))[0], ' two',
       'behind a sequence breaker');
    is((texts(complete(@repeated, dry_multiplier => 60,
                       dry_sequence_breakers => [ 'lue' ])))[0], ' two',
       'that is a part of a token');
}


# ---- all others take part ----

for my $one ([ xtc_probability => 1, xtc_threshold => 0.01 ],
             [ top_n_sigma => 0.5 ],
             [ dynatemp_range => 1.3, dynatemp_exponent => 3 ],
             [ repeat_last_n => 2, presence_penalty => 2 ])
{
    my @texts = map { (texts(complete(seed => $_, @$one)))[0] } 1 .. 4;
    my @others = map { (texts(complete(seed => $_)))[0] } 1 .. 4;

    isnt("@texts", "@others", "$one->[0] changes what is drawn");
    is("@texts", join(' ', map { (texts(complete(seed => $_, @$one)))[0] }
                               1 .. 4), 'and a seed gives it again');
}

for my $refused ([ mirostat => 2 ], [ samplers => [ 'top_a' ] ],
                 [ min_keep => 2 ])
{
    my $res = complete(@$refused);

    is($res->{status}, 400, "$refused->[0] is refused");
    is($res->{json}{error}{param}, $refused->[0], 'by name');
}


# ---- a turn's end that does not end the answer: a token without text ----

{
    my %go_on = (temperature => 0, max_tokens => 30, ignore_eos => \1,
                 logprobs => \1, return_token_ids => \1, messages =>
                 [ { role => 'user', content => 'What is 2 + 2?' } ]);

    for my $more ({}, { min_tokens => 25, ignore_eos => \0 }) {
        my ($choice) = @{ $t->post('/v1/chat/completions',
                                   { %go_on, %$more })->{json}{choices} };
        my @tokens = map { $_->{token} } @{ $choice->{logprobs}{content} };

        is(join('', @tokens), $choice->{message}{content},
           "a chat's tokens are its content");
        is(scalar @tokens, scalar @{ $choice->{token_ids} },
           'each of them has its probability');
        cmp_ok(scalar(grep { $_ eq '' } @tokens), '>', 0, 'some without text');
    }

    my @frames = grep { $_ && $_->{choices} && @{ $_->{choices} } }
                 map { $_->{json} }
                 $t->open('/v1/chat/completions',
                          { %go_on, stream => \1 })->events;

    is(join('', map { map { $_->{token} }
                      @{ ($_->{choices}[0]{logprobs} || {})->{content} || [] } }
                @frames),
       join('', map { $_->{choices}[0]{delta}{content} // '' } @frames),
       "a stream's tokens are its content");

    my ($one) = @{ complete(prompt => 'What is 2 + 2?', temperature => 0,
                            max_tokens => 30, logprobs => 1)->{json}{choices} };

    is(join('', @{ $one->{logprobs}{tokens} }), $one->{text},
       "a completion's tokens are its text");
    is(scalar @{ $one->{logprobs}{tokens} }, 30, 'all of them');
}

$t->stop;

done_testing();
