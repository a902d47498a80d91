#!/usr/bin/perl

# POST /v1/completions: text, several prompts, token ids, echo, streams.

use strict;
use warnings;

use LLM::Test;
use Test::More;

my $t = LLM::Test->new->start;
my %ask = (temperature => 0, max_tokens => 8);

my $res = $t->post('/v1/completions', { prompt => 'one two', %ask });

is($res->{status}, 200, 'answers') or diag($res->{body});
like($res->{json}{id}, qr/^cmpl-\w+$/, 'id');
is($res->{json}{object}, 'text_completion', 'object');

my $choice = $res->{json}{choices}[0];

ok(defined $choice->{text}, 'text');
ok(exists $choice->{logprobs}, 'logprobs');
is($choice->{index}, 0, 'index');

my $text = $choice->{text};

is($t->post('/completions', { prompt => 'one two' })->{status}, 404,
   'only below the prefix');

$res = $t->post('/v1/completions', { prompt => 'one two', echo => \1, %ask });

is($res->{json}{choices}[0]{text}, "one two$text", 'echo');

$res = $t->post('/v1/completions',
                { prompt => [ 'one two', 'red blue', 'one two' ], %ask });

my @texts = map { $_->{text} } @{ $res->{json}{choices} };

is(scalar @texts, 3, 'three prompts');
is($texts[0], $text, 'the first as alone');
is($texts[2], $text, 'the third as alone');
is($texts[1],
   $t->post('/v1/completions', { prompt => 'red blue', %ask })
       ->{json}{choices}[0]{text}, 'the second as alone');

$res = $t->post('/v1/completions', { prompt => [ 'a', 'b' ], n => 2, %ask });

is(scalar @{ $res->{json}{choices} }, 4, 'two prompts, n = 2');

$res = $t->post('/v1/completions', { prompt => 'one two' });

cmp_ok($res->{json}{usage}{completion_tokens}, '<=', 16,
       '16 tokens unless told otherwise');

my $ids = $t->post('/v1/completions', { prompt => [ 5, 6, 7 ], %ask });

is($ids->{status}, 200, 'token ids') or diag($ids->{body});
is($ids->{json}{usage}{prompt_tokens}, 3, 'three of them');

is($t->post('/v1/completions', { prompt => [ [ 5, 6, 7 ], [ 5 ] ], %ask })
       ->{json}{choices}[0]{text}, $ids->{json}{choices}[0]{text},
   'lists of token ids');

my @events = $t->open('/v1/completions',
                      { prompt => 'one two', stream => \1, %ask })->events;

is($events[-1]{data}, '[DONE]', 'a stream');
is(LLM::Client::text_of(@events), $text, 'the same text');
pop @events;
is(scalar(grep { !@{ $_->{json}{choices} } } @events), 0,
   'each chunk has a choice');

# the probabilities of an echoed prompt, against the logits of its rows

my @prompt = prompt_of(300);
my ($vocab, @expected) = logprobs_of(@prompt);

my %echo = (prompt => \@prompt, echo => \1, logprobs => 2);

$res = $t->post('/v1/completions', { %echo, max_tokens => 0 });

is($res->{status}, 200, 'echo with logprobs') or diag($res->{body});

my $lp = $res->{json}{choices}[0]{logprobs};

is_scored($lp, 'nothing but the prompt');
is(scalar @{ $lp->{tokens} }, 300, 'a token each');
is($res->{json}{choices}[0]{text}, join('', @{ $lp->{tokens} }),
   'the text is theirs');
is($res->{json}{usage}{completion_tokens}, 0, 'none generated');
is($res->{json}{choices}[0]{finish_reason}, 'length', 'finish_reason');

# a cached prompt has no logits in store

$res = $t->post('/v1/completions', { %echo, %ask, n => 2 });
$lp = $res->{json}{choices}[1]{logprobs};

is_scored($lp, 'prompt and answer');
cmp_ok(@{ $lp->{tokens} }, '>', 302, 'some more');
is(@{ $lp->{text_offset} }, @{ $lp->{tokens} }, 'offsets');
is($lp->{text_offset}[300], length(join '', @{ $lp->{tokens} }[0 .. 299]),
   'the answer begins behind the prompt');

@events = $t->open('/v1/completions', { %echo, %ask, stream => \1 })->events;
pop @events;

my %all = map { my $k = $_; $k => [ map { @{ $_->{json}{choices}[0]{logprobs}
    ? $_->{json}{choices}[0]{logprobs}{$k} : [] } } @events ] }
    qw(tokens token_logprobs top_logprobs text_offset);

is_deeply(\%all, $res->{json}{choices}[0]{logprobs}, 'the same in a stream');
is(scalar(grep { $_->{json}{choices}[0]{text} ne ''
                 && join('', @{ $_->{json}{choices}[0]{logprobs}{tokens} })
                    ne $_->{json}{choices}[0]{text} } @events), 0,
   'each chunk has the tokens of its text');

$res = $t->post('/v1/completions', { prompt => '', echo => \1, %ask });
unlike($res->{json}{choices}[0]{text}, qr/^<\|/, 'echo of nothing');

$t->stop;

done_testing();


# ids of tokens that are whole characters

sub prompt_of {
    my ($n) = @_;

    my $file = $t->dir . '/text';

    open my $f, '>', $file or die "$file: $!";
    print $f map { "What is $_ + $_? The colour of the $_ is red.\n" } 1 .. $n;
    close $f;

    my $model = "$LLM::Test::ROOT/models/demo.gguf";
    my @ids = split ' ', `$LLM::Test::OBJS/llm tokenize $model < $file`;

    return map { $_ + 0 } @ids[0 .. $n - 1];
}


# the logarithms of the softmax of all rows, as a reader of the file has them

sub logprobs_of {
    my (@ids) = @_;

    my $file = $t->dir . '/ids';
    my ($m, @rows) = ("$LLM::Test::ROOT/models/demo.gguf");

    open my $f, '>', $file or die "$file: $!";
    print $f "@ids\n";
    close $f;

    my @all = unpack 'f<*', `$LLM::Test::OBJS/llm logits $m --all < $file`;
    my $n = @all / @ids;

    for my $i (0 .. $#ids) {
        my @row = @all[$i * $n .. $i * $n + $n - 1];
        my ($max, $sum) = (-1e30, 0);

        for (@row) { $max = $_ if $_ > $max }
        for (@row) { $sum += exp($_ - $max) }

        push @rows, [ map { $_ - $max - log $sum } @row ];
    }

    return ($n, @rows);
}


sub is_scored {
    my ($got, $what) = @_;

    my ($wrong, $best) = (0, 0);

    for my $i (1 .. $#prompt) {
        my $row = $expected[$i - 1];
        my $max = -1e30;

        for (@$row) { $max = $_ if $_ > $max }

        my ($top) = sort { $b <=> $a } values %{ $got->{top_logprobs}[$i] };

        $wrong++ if abs($got->{token_logprobs}[$i] - $row->[$prompt[$i]])
                    > 1e-4;
        $best++ if abs($top - $max) > 1e-4;
    }

    is($got->{token_logprobs}[0], undef, "$what: none for the first");
    is($wrong, 0, "$what: $vocab logits say the same");
    is($best, 0, "$what: of the best too");
}
