#!/usr/bin/perl

# /tokenize, /detokenize, /apply-template, /tokenizer_info: what clients of
# llama.cpp and vLLM send and read, the same tokens as objs/llm's, and the same
# bounds, places and figures as other requests have.

use strict;
use warnings;

use LLM::JSON;
use LLM::Test;
use Test::More;

my $t = LLM::Test->new->start;
my $demo = "$LLM::Test::ROOT/models/demo.gguf";

sub llm {
    my ($command, $text, @more) = @_;

    $t->write_file('text', $text);

    return scalar qx{'$LLM::Test::OBJS/llm' $command '$demo' @more \\
        < '@{[ $t->dir ]}/text'};
}


sub ids { [ map { $_ + 0 } split ' ', llm('tokenize', @_) ] }


my $text = "What is 2 + 2? na\x{c3}\x{af}ve \x{e2}\x{82}\x{ac}5 <|im_end|>";

# JSON of bytes

sub bytes { return decode_json('"' . ($_[0] =~ s/(["\\])/\\$1/gr) . '"') }


# ---- tokenize ----

my $special = ids($text, '--special');
my $plain = ids($text);

isnt("@$special", "@$plain", 'a control token is in the text');

for my $path ('/v1/tokenize', '/v1/v1/tokenize') {
    my $res = $t->post($path, { content => bytes($text) });

    is($res->{status}, 200, $path) or diag($res->{body});
    is_deeply($res->{json}{tokens}, $special, "llama.cpp's form");
}

my $res = $t->post('/v1/tokenize', { content => bytes($text),
                                     parse_special => \0 });
is_deeply($res->{json}{tokens}, $plain, 'control tokens as text');

$res = $t->post('/v1/tokenize', { prompt => bytes($text), model => 'demo',
                                  return_token_strs => \1 });
is_deeply($res->{json}{tokens}, $special, "vLLM's form");
is($res->{json}{count}, scalar @$special, 'count');
is($res->{json}{max_model_len}, 4096, 'max_model_len');
is(scalar @{ $res->{json}{token_strs} }, scalar @$special, 'texts of tokens');
is($res->{json}{token_strs}[-1], '<|im_end|>', 'control tokens, too');
is($res->{json}{token_strs}[0], 'What', 'and words');

$res = $t->post('/v1/tokenize', { content => bytes($text),
                                  with_pieces => \1 });

my @pieces = @{ $res->{json}{tokens} };

is_deeply([ map { $_->{id} } @pieces ], $special, 'with pieces');

my $joined = join '', map {
    ref $_->{piece} ? pack('C*', @{ $_->{piece} })
                    : do { my $s = $_->{piece}; utf8::encode($s); $s }
} @pieces;

is($joined, $text, 'which are the text');
cmp_ok(scalar(grep { ref $_->{piece} } @pieces), '>', 0,
       'some of them are lists of bytes') ;

is_deeply($t->post('/v1/tokenize', { content => '' })->{json}{tokens}, [],
          'no text, no token');
is_deeply($t->post('/v1/tokenize', { content => '', return_token_strs => \1 })
              ->{json}{token_strs}, [], 'and no texts of tokens');

# a chat, as chat/completions counts it

my $chat = { messages => [ { role => 'user', content => 'Hi' } ] };

$res = $t->post('/v1/tokenize', $chat);
is($res->{json}{count},
   $t->post('/v1/chat/completions', { %$chat, max_tokens => 1 })
       ->{json}{usage}{prompt_tokens}, 'a chat has the tokens of a chat')
    or diag($res->{body});

$res = $t->post('/v1/tokenize', { content => 'word ' x 100000 });
is($res->{json}{count}, scalar @{ ids('word ' x 100000) },
   'more tokens than the context has');
is($res->{json}{count}, scalar @{ $res->{json}{tokens} }, 'all of them');

for my $case ([ {}, 'prompt' ], [ { content => 5 }, 'content' ],
              [ { prompt => [ 'a' ] }, 'prompt' ],
              [ { content => 'a', with_pieces => 1 }, 'with_pieces' ],
              [ { messages => [] }, 'messages' ],
              [ { content => 'a', model => 7 }, 'model' ])
{
    my ($body, $param) = @$case;

    $res = $t->post('/v1/tokenize', $body);
    is($res->{status}, 400, "tokenize: $param is wrong");
    is($res->{json}{error}{param}, $param, 'and named');
}

is($t->post('/v1/tokenize', { content => 'a', model => 'none' })->{status},
   404, 'tokenize: an unknown model');
is($t->request(method => 'GET', path => '/v1/tokenize')->{status}, 405,
   'tokenize: not with GET');


# ---- detokenize ----

$res = $t->post('/v1/detokenize', { tokens => $special });

is($res->{status}, 200, 'detokenize') or diag($res->{body});
is($res->{json}{content}, bytes($text), "llama.cpp's name of the text");
is($res->{json}{prompt}, bytes($text), "vLLM's");
is($t->post('/v1/detokenize', { tokens => [] })->{json}{content}, '',
   'no token, no text');

my $long = ids('word ' x 20000);
is($t->post('/v1/detokenize', { tokens => $long })->{json}{content},
   'word ' x 20000, 'a long text');

for my $case ([ {}, 'tokens' ], [ { tokens => 'a' }, 'tokens' ],
              [ { tokens => [ -1 ] }, 'tokens[0]' ],
              [ { tokens => [ 1, 'a' ] }, 'tokens[1]' ],
              [ { tokens => [ 99999999 ] }, 'tokens' ])
{
    my ($body, $param) = @$case;

    $res = $t->post('/v1/detokenize', $body);
    is($res->{status}, 400, "detokenize: $param is wrong");
    is($res->{json}{error}{param}, $param, 'and named');
}


# ---- apply-template ----

$chat = { messages => [ { role => 'system', content => 'Be brief.' },
                        { role => 'user', content => 'Hi' } ],
          tools => [ { type => 'function', function => {
              name => 'f', parameters => { type => 'object' } } } ] };
my $body = encode_json($chat);

$res = $t->post('/v1/apply-template', $body =~ s/\}\z/,"temperature":0.5}/r);

is($res->{status}, 200, 'apply-template') or diag($res->{body});
is($res->{json}{prompt}, llm('render', $body), 'as objs/llm renders it');

$res = $t->post('/v1/apply-template',
                { messages => [ { role => 'user', content => 'Hi' },
                                { role => 'assistant', content => 'Hel' } ] });
like($res->{json}{prompt}, qr/Hel\z/, 'a trailing answer is left open');
is($t->post('/v1/apply-template', { continue_final_message => \1,
       add_generation_prompt => \1, %$chat })->{status}, 400,
   'both at once is an error');
is($t->post('/v1/apply-template', { messages => undef })->{status}, 400,
   'no messages');
is($t->post('/v1/apply-template', { %$chat, temperature => 'hot' })
       ->{json}{error}{param}, 'temperature', 'the body of a chat is checked');


# ---- tokenizer_info, as lm-eval reads it ----

$res = $t->get('/v1/tokenizer_info');

is($res->{status}, 200, 'tokenizer_info') or diag($res->{body});

my $info = $res->{json};

like($info->{chat_template}, qr/\{%.*messages/s, 'the template');
is($info->{eos_token}, '<|im_end|>', 'the end token');
is_deeply($t->post('/v1/tokenize', { prompt => $info->{eos_token},
                                     add_special_tokens => \0 })
              ->{json}{tokens}, [ $info->{eos_token_id} ], 'and its id');
is($info->{model_max_length}, 4096, 'the context');
ok(exists $info->{$_}, $_)
    for qw(tokenizer_class bos_token pad_token unk_token add_bos_token
           vocab_size additional_special_tokens);

is($t->get('/v1/tokenizer_info?model=de%6do')->{status}, 200, 'of a model');
is($t->get('/v1/tokenizer_info?model=none')->{status}, 404,
   'of an unknown one');


# ---- props, as llama-server's clients read it ----

my $props = $t->get('/v1/props')->{json};

is($props->{default_generation_settings}{n_ctx}, 4096, 'the context');
is($props->{model_alias}, 'demo', 'the model');
is($props->{chat_template}, $info->{chat_template}, 'its template');
is($props->{eos_token}, $info->{eos_token}, 'its end token');
is_deeply($props->{modalities}, { vision => LLM::JSON::false,
                                  audio => LLM::JSON::false }, 'text only');
cmp_ok($props->{total_slots}, '>', 0, "$props->{total_slots} slots");
like($props->{build_info}, qr/^nginx-llm-\d/, 'who it is');

my $params = $props->{default_generation_settings}{params};

is($params->{temperature}, 1, 'a default');
is($params->{dry_base}, 1.75, 'one with a fraction');
is($params->{repeat_penalty}, $params->{repetition_penalty}, 'both names');

is($t->get('/v1/props?model=demo')->{status}, 200, 'of a model');
is($t->get('/v1/props?model=none')->{status}, 404, 'of an unknown one');
is($t->post('/v1/props', {})->{status}, 405, 'they cannot be changed');

my $head = $t->request(method => 'HEAD', path => '/v1/tokenizer_info');

is($head->{status}, 200, 'HEAD');
is($head->{body}, '', 'without a body');
is($head->{headers}{'content-length'}, length $res->{body}, 'of its length');

# HEAD wherever GET is

open my $table, '<', "$LLM::Test::ROOT/engine/api/endpoints.c" or die $!;

for my $path (map { /\{ "([^"]+)", "[^"]*\bGET\b/ ? $1 : () } <$table>) {
    $path .= 'demo' if $path =~ /\/$/;

    my ($get, $head) = map { $t->request(method => $_, path => "/v1/$path") }
                       qw(GET HEAD);

    is($head->{status}, $get->{status}, "HEAD: $path");
    is($head->{headers}{'content-length'}, length $get->{body},
       'of the length that GET has');
}

is($t->post('/v1/tokenizer_info', {})->{status}, 405, 'not with POST');


# ---- infill, which this model was not made for ----

$res = $t->post('/v1/infill', { input_prefix => 'a', input_suffix => 'b' });
is($res->{status}, 400, 'infill') or diag($res->{body});
like($res->{json}{error}{message}, qr/cannot fill a gap/, 'says why not');


# ---- places, and answers larger than the ring ----

like($t->post('/v1/tokenize', { content => 'a' })->{headers}{'x-request-id'},
     qr/^\w+$/, 'an id');

$res = $t->post('/v1/tokenize', { content => 'word ' x 120000,
                                  with_pieces => \1 });
is(scalar @{ $res->{json}{tokens} // [] }, scalar @{ ids('word ' x 120000) },
   'megabytes of pieces') or diag(substr $res->{body}, 0, 300);

# clients that do not wait

for (1 .. 20) {
    my $s = $t->open('/v1/tokenize', { content => 'word ' x 100000,
                                         with_pieces => \1 });
    $s->close;
}

ok(LLM::Test::wait_for(60, sub {
    my $m = $t->get('/health')->{json}{models}[0];
    return $m->{waiting} == 0 && $m->{running} == 0;
}), 'no place stays taken');

is($t->post('/v1/tokenize', { content => 'a' })->{status}, 200,
   'and the next is answered');

$t->stop;


# ---- at the root, where lm-eval and llama.cpp's clients look ----

$t = LLM::Test->new(locations => 'location / { llm_api; }
                                  location = /health { llm_health; }')
              ->start;

for my $case ([ POST => '/tokenize', { content => 'a' } ],
              [ POST => '/detokenize', { tokens => [ 5 ] } ],
              [ POST => '/apply-template',
                { messages => [ { role => 'user', content => 'a' } ] } ],
              [ GET => '/tokenizer_info' ], [ GET => '/models' ],
              [ GET => '/props' ],
              [ HEAD => '/models/demo' ], [ HEAD => '/v1/models' ])
{
    my ($method, $path, $body) = @$case;

    is($t->request(method => $method, path => $path,
                   $body ? (body => $body) : ())->{status}, 200,
       "$method $path");
}

$t->stop;

done_testing();
