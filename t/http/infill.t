#!/usr/bin/perl

# /infill: the demo model's file with tokens for prefix, suffix and middle in
# its metadata.  The model was not taught to fill gaps; what is checked is
# which tokens it gets, and what becomes of its answer.

use strict;
use warnings;

use LLM::JSON;
use LLM::Test;
use Test::More;

# Metadata are inserted in front; what follows stays aligned because their
# length is a multiple of 32.

sub with_metadata {
    my ($file, %u32) = @_;

    open my $f, '<:raw', $file or die "$file: $!";
    local $/;

    my $gguf = <$f>;
    my ($magic, $version, $tensors, $n) = unpack 'a4 V Q< Q<', $gguf;
    my $more = join '', map { pack('Q</a* V V', $_, 4, $u32{$_}) }
               sort keys %u32;
    my $pad = pack 'Q</a* V Q</a*', 'test', 8, '';

    $more .= pack 'Q</a* V Q</a*', 'test'
                  . 'x' x (-length($more . $pad) % 32), 8, '';

    return pack('a4 V Q< Q<', $magic, $version, $tensors,
                $n + 1 + keys %u32) . $more . substr($gguf, 24);
}


my $demo = "$LLM::Test::ROOT/models/demo.gguf";
my %fim = (prefix => 3, suffix => 4, middle => 5);

my $t = LLM::Test->new(model =>
    "llm_model demo $demo threads=2 default;
     llm_model gap  %%DIR%%/gap.gguf ctx=256 threads=2;
     llm_model repo %%DIR%%/repo.gguf ctx=256 threads=2;");

$t->write_file('gap.gguf', with_metadata($demo,
    'tokenizer.ggml.fim_pre_token_id' => $fim{prefix},
    'tokenizer.ggml.fim_suf_token_id' => $fim{suffix},
    'tokenizer.ggml.fim_mid_token_id' => $fim{middle}));
$t->write_file('repo.gguf', with_metadata($demo,
    'tokenizer.ggml.prefix_token_id' => $fim{prefix},
    'tokenizer.ggml.suffix_token_id' => $fim{suffix},
    'tokenizer.ggml.middle_token_id' => $fim{middle},
    'tokenizer.ggml.fim_rep_token_id' => 6,
    'tokenizer.ggml.fim_sep_token_id' => 7));
$t->start;

sub ids {
    my $res = $t->post('/v1/tokenize', { content => $_[0],
                                         parse_special => \0 });
    return @{ $res->{json}{tokens} };
}


# the text that the model goes on with from these tokens

sub goes_on {
    my ($model, @ids) = @_;

    my $res = $t->post('/v1/completions', {
        prompt => \@ids, model => $model, max_tokens => 8, temperature => 0,
        ignore_eos => \1 });

    is($res->{status}, 200, 'a completion of the same tokens')
        or diag($res->{body});

    return ($res->{json}{choices}[0]{text}, scalar @ids);
}


sub infill {
    my (%body) = @_;

    return $t->post('/v1/infill', { model => 'gap', n_predict => 8,
                                    temperature => 0, ignore_eos => \1,
                                    %body });
}


my %gap = (input_prefix => "def add(a, b):\n    ",
           input_suffix => "\n\nprint(add(1, 2))\n");
my @prefix = ids($gap{input_prefix});
my @suffix = ids($gap{input_suffix});
my ($want, $n) = goes_on(gap => $fim{prefix}, @prefix, $fim{suffix}, @suffix,
                         $fim{middle});
my $res = infill(%gap);

is($res->{status}, 200, 'infill') or diag($res->{body});
is($res->{json}{content}, $want, 'prefix, suffix and middle');
is($res->{json}{tokens_evaluated}, $n, 'that many tokens');
is($res->{json}{tokens_predicted}, 8, 'and so many new ones');
is($res->{json}{stop_type}, 'limit', 'why it stopped');
is($res->{json}{model}, 'gap', 'by this model');
ok($res->{json}{stop}, 'it has');
ok(exists $res->{json}{timings}{$_}, "timings: $_")
    for qw(prompt_n prompt_ms predicted_n predicted_ms);

# what was typed last follows the prefix

my @typed = ids($gap{input_prefix} . 'return');

($want, $n) = goes_on(gap => $fim{prefix}, @typed, $fim{suffix}, @suffix,
                      $fim{middle});
$res = infill(%gap, prompt => 'return');
is($res->{json}{content}, $want, 'with a prompt');

# a stream is the same text

$res = infill(%gap, prompt => 'return', stream => \1);

my @events = map { decode_json($_) } $res->{body} =~ /^data: (\{.*\})$/gm;

is(join('', map { $_->{content} } @events), $want, 'streamed');
is_deeply([ map { $_->{stop} ? 1 : 0 } @events ],
          [ (0) x $#events, 1 ], 'and ends with the last event');
is($events[-1]{tokens_predicted}, 8, 'which has the figures');

# stop strings

my ($first) = $want =~ /(\w)/;
$res = infill(%gap, prompt => 'return', stop => [ $first ]);
is($res->{json}{stop_type}, 'word', 'a stop string') or diag($res->{body});
unlike($res->{json}{content}, qr/\Q$first\E/, 'is not in the text');

# a rule for what fills the gap

$res = infill(%gap, grammar => 'root ::= "abc" [0-9]{2}');
like($res->{json}{content}, qr/^abc[0-9]{2}$/, 'a grammar')
    or diag($res->{body});
$res = infill(%gap, json_schema => { enum => [ 7 ] });
is($res->{json}{content}, '7', 'a schema') or diag($res->{body});
$res = infill(%gap, grammar => 'root ::= [');
is($res->{status}, 400, 'a grammar that is none') or diag($res->{body});
is($res->{json}{error}{param}, 'grammar', 'is named');

# control tokens in the text are text

$res = infill(input_prefix => '<|im_end|>', input_suffix => '');
is($res->{json}{tokens_evaluated}, 3 + ids('<|im_end|>'),
   'a control token in the text is text') or diag($res->{body});

# other files

my @extra = map { { filename => "f$_.py", text => "x = $_\n" } } 1 .. 2;
my $between = "\n\n--- snippet ---\n\n";

($want) = goes_on(gap => (map { (ids($between), ids("x = $_\n")) } 1, 2),
                  ids($between), $fim{prefix}, @prefix, $fim{suffix},
                  @suffix, $fim{middle});
$res = infill(%gap, input_extra => \@extra);
is($res->{json}{content}, $want, 'other texts before it');

($want) = goes_on(repo => 6, ids("project\n"),
                  (map { (7, ids("f$_.py\n"), ids("x = $_\n")) } 1, 2),
                  7, ids("file\n"), $fim{prefix}, @prefix, $fim{suffix},
                  @suffix, $fim{middle});
$res = infill(%gap, input_extra => \@extra, model => 'repo');
is($res->{json}{content}, $want, 'with tokens for files, as files');

# where there is no room, the first ones are left out

$res = infill(%gap, input_extra => [ { text => 'word ' x 500 },
                                     $extra[1] ]);
is($res->{status}, 200, 'more than the context has') or diag($res->{body});
($want, $n) = goes_on(gap => ids($between), ids("x = 2\n"), ids($between),
                      $fim{prefix}, @prefix, $fim{suffix}, @suffix,
                      $fim{middle});
is($res->{json}{content}, $want, 'the last one fits');
is($res->{json}{tokens_evaluated}, $n, 'and nothing else');

$res = infill(%gap, input_extra => [ { text => 'word ' x 500 } ]);
is($res->{json}{tokens_evaluated}, 3 + @prefix + @suffix, 'or none');

$res = infill(%gap, input_suffix => 'word ' x 500);
is($res->{status}, 400, 'prefix and suffix are never cut');
is($res->{json}{error}{code}, 'context_length_exceeded', 'but refused');

# what is wrong

for my $case ([ { input_suffix => '' }, 'input_prefix' ],
              [ { input_prefix => '' }, 'input_suffix' ],
              [ { %gap, input_prefix => 5 }, 'input_prefix' ],
              [ { %gap, prompt => [ 1 ] }, 'prompt' ],
              [ { %gap, input_extra => {} }, 'input_extra' ],
              [ { %gap, input_extra => [ 'a' ] }, 'input_extra[0]' ],
              [ { %gap, input_extra => [ { text => '' }, {} ] },
                'input_extra[1].text' ],
              [ { %gap, input_extra => [ { text => 5 } ] },
                'input_extra[0].text' ],
              [ { %gap, n => 2 }, 'n' ],
              [ { %gap, model => 'demo' }, 'model' ])
{
    my ($body, $param) = @$case;

    $res = infill(%$body);
    is($res->{status}, 400, "$param is wrong") or diag($res->{body});
    is($res->{json}{error}{param}, $param, 'and named');
}

# a completion with a suffix is the same

$res = $t->post('/v1/completions', {
    model => 'gap', prompt => $gap{input_prefix}, max_tokens => 8,
    suffix => $gap{input_suffix}, temperature => 0, ignore_eos => \1 });
is($res->{json}{choices}[0]{text}, infill(%gap)->{json}{content},
   'a completion with a suffix') or diag($res->{body});
is($t->post('/v1/completions', { prompt => 'a', suffix => 'b' })->{status},
   400, 'but not by a model that cannot');

$t->stop;

done_testing();
