#!/usr/bin/perl

# POST /v1/rerank and /v1/score: the probability of yes against no behind the
# ranker's prompt, from the states that objs/llm writes; the order; the forms
# of Jina, Cohere and vLLM; what a file must have.

use strict;
use warnings;

use LLM::JSON;
use LLM::Cli qw(llm);
use LLM::GGUF;
use LLM::Test;
use Test::More;

my $demo = "$LLM::Test::ROOT/models/demo.gguf";
my $file = "<|im_start|>system\nIs it yes or no?<|im_end|>\n<|im_start|>user\n"
         . "<Query>: {query}\n<Document>: {document}<|im_end|>\n"
         . "<|im_start|>assistant\n";
my ($width) = llm('', 'info', $demo)
              =~ /^qwen3\.embedding_length = (\d+)/m or die;
my @yes = map { sin($_ * 1.7) / 4 } 1 .. $width;
my @no = map { sin($_ * 2.9) / 4 } 1 .. $width;

my %rank = ('qwen3.pooling_type' => [ u32 => 4 ],
            'qwen3.classifier.output_labels' => [ strs => qw(yes no) ],
            'tokenizer.chat_template.rerank' => [ str => $file ]);
my %head = ('cls.output.weight' => [ [ $width, 2 ], @yes, @no ]);

my @names = qw(ranker swapped headless silent bent twice);
my $t = LLM::Test->new(
    model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=1;'
           . join('', map { "llm_model $_ $_.gguf threads=1 ctx=1024"
                            . " parallel=4"
                            . ($_ eq 'ranker' ? ' default;' : ';') } @names),
    locations => 'location / { llm_api; }'
                 . 'location = /health { llm_health; }');

made('ranker', \%rank, \%head);
made('swapped',
     { %rank, 'qwen3.classifier.output_labels' => [ strs => qw(no yes) ] },
     { 'cls.output.weight' => [ [ $width, 2 ], @no, @yes ] });
made('headless', \%rank, {});
made('silent', { %rank, 'tokenizer.chat_template.rerank' => undef }, \%head);
made('bent', { %rank, 'tokenizer.chat_template.rerank' =>
               [ str => 'only {query}' ] }, \%head);
made('twice', { %rank, 'tokenizer.chat_template.rerank' =>
                [ str => '{query} {document} {query}' ] }, \%head);

$t->start;

my $query = 'What is red?';
my @docs = ('The sky is blue.', 'An apple is red, and so is {query}.', '',
            'A table has four legs. ' x 20, "Un \x{e9}t\x{e9} \"rouge\"\n");
my @want = map { score($query, $_) } @docs;
my @order = sort { $want[$b] <=> $want[$a] } 0 .. $#docs;
my $tokens = 0;
$tokens += ids($query, $_) for @docs;


# ---- all of them ----

my $res = rerank(query => $query, documents => \@docs);

is($res->{status}, 200, 'answers') or diag($res->{body});
is($res->{json}{model}, 'ranker', 'the model');
is($res->{json}{object}, 'list', 'a list');
is($res->{json}{usage}{prompt_tokens}, $tokens, 'tokens');
is($res->{json}{usage}{total_tokens}, $tokens, 'in all');
is_deeply([ map { $_->{index} } results($res) ], \@order, 'best first');
near([ map { $_->{relevance_score} } results($res) ], [ @want[@order] ],
     'each with its probability');
ok(!grep({ exists $_->{document} } results($res)), 'documents stay away');

my @all = results($res);

for my $n (1, 3, 5, 6, 1000) {
    $res = rerank(query => $query, documents => \@docs, top_n => $n);
    is_deeply([ results($res) ],
              [ @all[0 .. ($n < 5 ? $n : 5) - 1] ], "the best $n");
}

for my $path (qw(/v1/reranking /rerank /v2/rerank /reranking)) {
    is_deeply([ results($t->post($path, { query => $query,
                                          documents => \@docs })) ],
              \@all, $path);
}

$res = rerank(query => { text => $query },
              documents => [ map { { text => $_ } } @docs ]);
is_deeply([ results($res) ], \@all, 'documents as objects');

$res = rerank(query => $query, documents => \@docs, return_documents => \1);
is_deeply([ map { $_->{document}{text} } results($res) ],
          [ @docs[@order] ], 'with the documents');
is_deeply([ map { $_->{relevance_score} } results($res) ],
          [ map { $_->{relevance_score} } @all ], 'and the same scores');

my @long = map { 'x' x $_ . "colour \x{e9} " x 180 } 1 .. 3;
$res = rerank(query => $query, documents => \@long, return_documents => \1);
is_deeply({ map { $_->{index} => $_->{document}{text} } results($res) },
          { map { $_ => $long[$_] } 0 .. 2 }, 'long ones come whole');

$res = rerank(model => 'swapped', query => $query, documents => \@docs);
is_deeply([ results($res) ], \@all, 'the labels say which row is yes');

# as Text Embeddings Inference has it

$res = rerank(query => $query, texts => \@docs, return_text => \1);
is_deeply($res->{json},
          [ map { { index => $_->{index}, score => $_->{relevance_score},
                    text => $docs[ $_->{index} ] } } @all ], 'texts');
near([ map { $_->{score} } @{ rerank(query => $query, texts => \@docs,
                                     raw_scores => \1)->{json} } ],
     [ map { -log(1 / $_ - 1) } @want[@order] ], 'raw scores are log odds');
is_deeply(rerank(query => $query, texts => \@docs, raw_scores => \0,
                 truncate => \1, truncation_direction => 'left')->{json},
          [ map { { index => $_->{index}, score => $_->{relevance_score} } }
            @all ], 'what fits is not cut');
is(scalar @{ rerank(query => $query, texts => \@docs, top_n => 2)->{json} },
   2, 'the best two');
is_deeply([ results(rerank(query => $query, documents => \@docs,
                           top_n => 0)) ], \@all, 'top_n 0: all');

# a document is text, whatever it says

my $none = tokens('x', '');

cmp_ok(tokens('x', '<|im_end|>'), '>', $none + 1,
       'no control token in a document');
cmp_ok(tokens('<|im_end|>', ''), '>', $none + 1, 'nor in a query');

my @many = map { "Document $_ is about " . 'this and that ' x ($_ % 9) }
           1 .. 50;
my %alone = map { $_ => (results(rerank(query => $query,
                                        documents => [ $many[$_] ])))[0]
                        {relevance_score} } 0, 7, 49;

$res = rerank(query => $query, documents => \@many);
my %got = map { $_->{index} => $_->{relevance_score} } results($res);

is_deeply({ map { $_ => $got{$_} } keys %alone }, \%alone,
          'the same beside 49 others, to the last bit');
cmp_ok($res->{json}{usage}{prompt_tokens_details}{cached_tokens}, '>', 0,
       'the beginning that all have is computed once');


# ---- score ----

$res = $t->post('/v1/score', { text_1 => $query, text_2 => \@docs });
is($res->{status}, 200, 'score') or diag($res->{body});
is_deeply([ map { $_->{index} } @{ $res->{json}{data} } ], [ 0 .. $#docs ],
          'in the order of the pairs');
near([ map { $_->{score} } @{ $res->{json}{data} } ], \@want, 'the scores');
is($res->{json}{data}[0]{object}, 'score', 'objects');

$res = $t->post('/score', { text_1 => [ $query, $docs[0] ],
                            text_2 => [ $docs[1], $docs[2] ] });
near([ map { $_->{score} } @{ $res->{json}{data} } ],
     [ $want[1], score($docs[0], $docs[2]) ], 'pairs');

$res = $t->post('/score', { text_1 => $query, text_2 => $docs[3] });
near([ map { $_->{score} } @{ $res->{json}{data} } ], [ $want[3] ], 'one pair');

for my $names ([ qw(queries documents) ], [ qw(queries items) ],
               [ qw(data_1 data_2) ])
{
    my ($one, $two) = @$names;

    $res = $t->post('/score', { $one => $query, $two => \@docs });
    near([ map { $_->{score} } @{ $res->{json}{data} } ], \@want,
         "$one and $two");
    is($t->post('/score', { $one => $query })->{json}{error}{param},
       'text_2', "$two is missing");
    is($t->post('/score', { $one => $query, $two => [ 5 ] })
           ->{json}{error}{param}, "$two\[0]", "$two is wrong");
}

like($res->{json}{id}, qr/^score-/, 'an id');

is($t->post('/score', { text_1 => [ 'a', 'b' ], text_2 => [ 'c' ] })
       ->{json}{error}{param}, 'text_1', 'no pairs: refused');


# ---- models that cannot ----

for my $case ([ demo => qr/pooling_type 4 \(rank\)/ ],
              [ headless => qr/cls\.output\.weight/ ],
              [ silent => qr/chat_template\.rerank/ ],
              [ bent => qr/\{query\} and \{document\}/ ])
{
    my ($model, $why) = @$case;

    $res = rerank(model => $model, query => 'x', documents => [ 'y' ]);
    is($res->{status}, 400, "$model is refused");
    is($res->{json}{error}{code}, 'unsupported_model', 'its code');
    like($res->{json}{error}{message}, $why, 'and what is missing');
}

for my $ask ([ '/v1/chat/completions',
               { messages => [ { role => 'user', content => 'Hi' } ] } ],
             [ '/v1/completions', { prompt => 'Hi' } ],
             [ '/v1/embeddings', { input => 'Hi' } ])
{
    $res = $t->post(@$ask);
    is($res->{status}, 400, "a ranker does not serve $ask->[0]");
    like($res->{json}{error}{message}, qr/made for rerank/, 'and says so');
}


# ---- what is wrong ----

for my $case (
    [ query => { documents => [ 'x' ] } ],
    [ query => { query => '', documents => [ 'x' ] } ],
    [ query => { query => 5, documents => [ 'x' ] } ],
    [ query => { query => [ 'x' ], documents => [ 'x' ] } ],
    [ 'query.text' => { query => { txt => 'x' }, documents => [ 'x' ] } ],
    [ documents => { query => 'x' } ],
    [ documents => { query => 'x', documents => [] } ],
    [ documents => { query => 'x', documents => 'x' } ],
    [ documents => { query => 'x', documents => 5 } ],
    [ 'documents[0]' => { query => 'x', documents => [ 1, 2, 3 ] } ],
    [ 'documents[1].text' => { query => 'x', documents => [ 'a', {} ] } ],
    [ documents => { query => 'x', documents => [ ('x') x 2049 ] } ],
    [ documents => { query => 'x', documents => [ 'word ' x 2000 ] } ],
    [ top_n => { query => 'x', documents => [ 'x' ], top_n => -1 } ],
    [ raw_scores => { query => 'x', documents => [ 'x' ],
                      raw_scores => \1 } ],
    [ truncate => { query => 'x', documents => [ 'x' ], truncate => \1 } ],
    [ top_n => { query => 'x', documents => [ 'x' ], top_n => 'all' } ],
    [ return_documents => { query => 'x', documents => [ 'x' ],
                            return_documents => 'yes' } ])
{
    my ($param, $body) = @$case;

    $res = $t->post('/v1/rerank', $body);
    is($res->{status}, 400,
       'refused: ' . substr(encode_json($body), 0, 60));
    is($res->{json}{error}{param}, $param, "it names $param");
}

# with texts, in the form of Text Embeddings Inference

my $word = 'word ' x 2000;

for my $case (
    [ 400, qr/'texts'/, { query => 'x', texts => 'x' } ],
    [ 400, qr/'texts'/, { query => 'x', texts => [] } ],
    [ 400, qr/'texts\[1]'/, { query => 'x', texts => [ 'a', 5 ] } ],
    [ 400, qr/'query'/, { texts => [ 'x' ] } ],
    [ 400, qr/'query'/, { query => '', texts => [ 'x' ] } ],
    [ 400, qr/'raw_scores'/, { query => 'x', texts => [ 'x' ],
                                raw_scores => 'yes' } ],
    [ 400, qr/'truncation_direction'|'up'/, { query => 'x', texts => [ 'x' ],
                                          truncation_direction => 'up' } ],
    [ 400, qr/'truncate_prompt_tokens'/, { query => 'x', texts => [ 'x' ],
                                            truncate_prompt_tokens => 5 } ],
    [ 400, qr/maximum context length/, { query => 'x',
                                                   texts => [ $word ] } ],
    [ 404, qr/'none'/, { query => 'x', texts => [ 'x' ], model => 'none' } ],
    [ 400, qr/does not rank/, { query => 'x', texts => [ 'x' ],
                                model => 'demo' } ])
{
    my ($status, $why, $body) = @$case;

    $res = $t->post('/rerank', $body);
    is($res->{status}, $status, 'refused: ' . substr(encode_json($body), 0, 60));
    like($res->{json}{error}, $why, 'and says why');
    is($res->{json}{error_type}, 'Validation', 'its type');
    is_deeply([ sort keys %{ $res->{json} } ], [ qw(error error_type) ],
              'and nothing else');
}


# ---- pairs that are too long ----

for my $direction (undef, 'Right', 'left') {
    my @cut = defined $direction ? (truncation_direction => $direction) : ();
    my $name = $direction // 'by default';

    $res = rerank(query => $query, texts => [ $word, "red $word", 'sky' ],
                  truncate => \1, return_text => \1, @cut);
    is($res->{status}, 200, "a text is cut, $name") or diag($res->{body});

    my %got = map { $_->{index} => $_ } @{ $res->{json} // [] };

    is($got{1}{text}, "red $word", 'it comes back whole');
    near([ $got{2}{score} ], [ score($query, 'sky') ], 'what fits is whole');
    ok(($got{0}{score} == $got{1}{score}) == ($name eq 'left'),
       'its other end is lost');
}

my $fits = longest($query);

for my $case ([ "$fits word", $fits ],
              [ "$fits " . 'sky ' x 100_000, $fits ])
{
    my ($long, $want) = @$case;

    $res = rerank(query => $query, texts => [ $long ], truncate => \1);
    near([ $res->{json}[0]{score} ], [ score($query, $want) ],
         'as many tokens are left as fit, of ' . length $long);
}

is(rerank(query => $word, texts => [ $word ], truncate => \1)->{status}, 200,
   'both are too long');
is(rerank(query => $word, texts => [ '' ], truncate => \1,
          truncation_direction => 'left')->{status}, 200,
   'only the query is');

$res = rerank(model => 'twice', query => $query, texts => [ $word ],
              truncate => \1);
is($res->{status}, 400, 'a prompt that has the query twice');
like($res->{json}{error}, qr/'truncate'.*twice/, 'cannot be cut');
is(rerank(model => 'twice', query => $query, texts => [ 'sky' ],
          truncate => \1)->{status}, 200, 'unless it fits');

$t->stop;


# ---- a query is sent once and read for each document: that has a bound ----

$t = LLM::Test->new(model => 'llm_model ranker ranker.gguf threads=1'
                           . ' ctx=1024 parallel=4;',
                    http => 'llm_queue 8 memory=2m;');
made('ranker', \%rank, \%head);
$t->start;

$res = rerank(query => 'word ' x 800, documents => [ ('x') x 900 ]);
is($res->{status}, 400, 'a long query and many documents');
is($res->{json}{error}{code}, 'request_too_large', 'its code');
is($res->{json}{error}{param}, 'documents', 'its parameter');
is(rerank(query => 'word ' x 800, documents => [ ('x') x 20 ])->{status}, 200,
   'fewer are served');

$t->stop(name => 'the bound');

done_testing();


sub made {
    my ($name, $kv, $tensors) = @_;

    LLM::GGUF::make($demo, $t->dir . "/$name.gguf", kv => $kv,
                    tensors => $tensors);
}


sub rerank {
    my (%body) = @_;

    return $t->post('/v1/rerank', \%body);
}


sub tokens {
    my ($query, $document) = @_;

    return rerank(query => $query, documents => [ $document ])
           ->{json}{usage}{prompt_tokens};
}


sub results {
    my ($res) = @_;

    return @{ $res->{json}{results} // [] };
}


# the ids of a pair's prompt; nothing in these texts is a control token

sub ids {
    my ($query, $document) = @_;

    my %text = (query => $query, document => $document);
    my $prompt = $file =~ s/\{(query|document)\}/$text{$1}/gr;

    return split ' ', llm($prompt, 'tokenize', $demo, '--special');
}


# the longest text of one word that fits beside the query, ctx=1024

sub longest {
    my ($query) = @_;

    my $n = 1024 - ids($query, 'word word');
    my $text = join ' ', ('word') x ($n + 2);

    is(scalar ids($query, $text), 1024, 'a text that just fits');

    return $text;
}


# the probability of the first row against the second

sub score {
    my ($query, $document) = @_;

    my @ids = ids($query, $document);
    my @state = unpack 'f<*', llm("@ids", 'embed', $demo);
    my $d = 0;

    $d += $state[$_] * ($no[$_] - $yes[$_]) for 0 .. $#state;

    return 1 / (1 + exp $d);
}


sub near {
    my ($got, $want, $what) = @_;

    my @off = grep { abs(($got->[$_] // 9) - $want->[$_]) > 1e-5 }
              0 .. $#$want;

    ok(@$got == @$want && !@off, $what)
        or diag("got @$got, expected @$want");
}
