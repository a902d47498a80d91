#!/usr/bin/perl

# llm_max_tokens N|$v [prompt=N|$v]: bounds of answers and prompts that may
# differ from request to request.

use strict;
use warnings;

use LLM::Test;
use Test::More;

my $t = LLM::Test->new(http => 'llm_max_tokens 20;', locations => <<'END');
        location /v1 { llm_api; }
        location /by/v1 { llm_api; llm_max_tokens $http_x_most prompt=$arg_prompt; }
        location /prompt/v1 { llm_api; llm_max_tokens prompt=10; }
        location /both/v1 { llm_api; llm_max_tokens 5 prompt=10; }
        location = /health { llm_health; }
END

$t->start;

sub ask {
    my ($path, $words, %opt) = @_;

    return $t->post("$path", {
        prompt => [ map { $_ + 100 } 1 .. $words ], max_tokens => 30,
        ignore_eos => \1, %{ $opt{body} // {} } },
        headers => { defined $opt{most} ? ('X-Most' => $opt{most}) : () });
}

sub tokens { $_[0]{json}{usage}{completion_tokens} }

is(tokens(ask('/v1/completions', 3)), 20, 'a number');
is(tokens(ask('/by/v1/completions', 3, most => 7)), 7, 'a variable');
is(tokens(ask('/by/v1/completions', 3)), 30, 'an empty one is no bound');
is(tokens(ask('/by/v1/completions', 3, most => 4000000000)) // 'none', 'none',
   'one that is too large is no number');
is(tokens(ask('/prompt/v1/completions', 3)), 30,
   'a level that has the directive inherits nothing');

for my $bad (0, 'many', -1, '7 ') {
    my $res = ask('/by/v1/completions', 3, most => "$bad.");
    is($res->{status}, 503, "\"$bad.\": nobody is let in");
    is($res->{json}{error}{code}, 'limit_unavailable', 'with a code');
}

my $res = ask('/by/v1/completions', 3, most => 0);
is($res->{status}, 503, 'nor with 0');
like($t->log('error.log'), qr/invalid value "many\." of "\$http_x_most"/,
     'the log names value and variable');

# prompts

is(ask('/prompt/v1/completions', 10)->{status}, 200, 'a prompt of 10');

$res = ask('/prompt/v1/completions', 11);
is($res->{status}, 400, 'one of 11');
is($res->{json}{error}{code}, 'context_length_exceeded', 'a code that agents know');
like($res->{json}{error}{message},
     qr/Prompts of up to 10 tokens are allowed here\. .* resulted in 11 tokens/,
     'with both numbers');

$res = $t->post('/prompt/v1/completions', { prompt => 'word ' x 5000 });
like($res->{json}{error}{message}, qr/up to 10 tokens .* more than 20 tokens/,
     'a text is not tokenised far beyond it');

$res = $t->post('/prompt/v1/chat/completions', { messages => [
    { role => 'user', content => 'word ' x 50 } ] });
is($res->{status}, 400, 'a chat likewise');

is(ask('/by/v1/completions?prompt=4', 4)->{status}, 200, 'by a variable: 4');
is(ask('/by/v1/completions?prompt=4', 5)->{status}, 400, 'not 5');

$res = ask('/both/v1/completions', 10);
is(tokens($res), 5, 'both: the answer');
is(ask('/both/v1/completions', 11)->{status}, 400, 'and the prompt');

$res = $t->post('/prompt/v1/tokenize', { prompt => 'word ' x 50 });
is($res->{status}, 200, 'what is only counted may be longer');

$t->stop;

# ---- what nginx -t says ----

for (
    [ 'llm_max_tokens 0;', qr/invalid amount "0" of "llm_max_tokens", it must be between 1 and/ ],
    [ 'llm_max_tokens 16777217;', qr/it must be between 1 and/ ],
    [ 'llm_max_tokens x;', qr/invalid amount "x"/ ],
    [ 'llm_max_tokens 5 prompt=0;', qr/it must be between 1 and/ ],
    [ 'llm_max_tokens 5 prompt=;', qr/invalid amount "prompt="/ ],
    [ 'llm_max_tokens 5 6;', qr/unknown parameter "6"/ ],
    [ 'llm_max_tokens prompt=5 prompt=6;', qr/duplicate parameter "prompt=6"/ ],
    [ 'llm_max_tokens 5; llm_max_tokens 6;', qr/is duplicate/ ],
    [ 'llm_max_tokens $nope;', qr/unknown "nope" variable/ ],
) {
    my ($line, $want) = @$_;
    my ($rc, $out) = LLM::Test->new(http => $line)->check;

    isnt($rc, 0, "refused: $line");
    like($out, $want, 'with the reason');
}


done_testing();
