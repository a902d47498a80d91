#!/usr/bin/perl

# Answers that must look like something: every field in which a client says
# so, on both endpoints, at any temperature; what cannot be kept to is refused
# by its path.

use strict;
use warnings;

use LLM::JSON;
use LLM::Test;
use Test::More;

my $demo = '%%ROOT%%/models/demo.gguf';
my $emu = -e "$LLM::Test::OBJS/llm_emu.so";

my $t = LLM::Test->new(
    model => "llm_model demo $demo threads=2 parallel=8 default;"
           . "llm_model tight $demo threads=1 parallel=4 ctx=1024"
           . " kv_cache=3m;"
           . ($emu ? "llm_model device $demo device=emu parallel=4;" : ''),
    locations => <<'END')->start;
        location /v1 { llm_api; }
        location = /health { llm_health; }
        location = /figures { llm_metrics json; }
END

my $characters = LLM::JSON->new;
my $hi = [ { role => 'user', content => 'Who is the tallest of them?' } ];

my $person = {
    type => 'object',
    properties => {
        name => { type => 'string', maxLength => 12 },
        age => { type => 'integer', minimum => 0, maximum => 150 },
        mood => { enum => [ 'good', 'bad', undef ] },
        tags => { type => 'array', maxItems => 2,
                  items => { enum => [ 'a "quoted" one', 'b' ] } },
    },
    required => [ 'name', 'age', 'mood', 'tags' ],
    additionalProperties => LLM::JSON::false,
};

# nor does the model reason before it answers

my @calm = (enable_thinking => LLM::JSON::false);


sub chat {
    my (%fields) = @_;

    return $t->post('/v1/chat/completions',
                    { messages => $hi, max_tokens => 1500, @calm, %fields });
}


sub text_of {
    my ($res) = @_;

    return $res->{json}{choices}[0]{message}{content}
           // $res->{json}{choices}[0]{text};
}


sub is_person {
    my ($text) = @_;
    my $p = eval { $characters->decode($text) } or return 0;

    return 0 if join(',', sort keys %$p) ne 'age,mood,name,tags';
    return 0 if length $p->{name} > 12 || $p->{age} !~ /^(?:\d+)$/
                || $p->{age} > 150 || @{ $p->{tags} } > 2;
    return 0 if defined $p->{mood} && $p->{mood} !~ /^(?:good|bad)$/;

    return !grep { $_ ne 'b' && $_ ne 'a "quoted" one' } @{ $p->{tags} };
}


sub format_of {
    my ($schema) = @_;

    return { type => 'json_schema',
             json_schema => { name => 'x', schema => $schema } };
}


# ---- a schema, by any draw: what it allows is never longer than max_tokens ----

for my $seed (1 .. 12) {
    my %ask = (response_format => format_of($person), seed => $seed,
               temperature => $seed / 6);
    my $res = chat(%ask);

    is($res->{json}{choices}[0]{finish_reason}, 'stop', "seed $seed: ends")
        or diag($res->{body});
    ok(is_person(text_of($res)), "seed $seed: fits")
        or diag(text_of($res));

    next if $seed > 3;

    my $stream = $t->open('/v1/chat/completions',
                          { messages => $hi, max_tokens => 1500, @calm, %ask,
                            stream => \1 });

    is(LLM::Client::text_of($stream->events), text_of($res),
       "seed $seed: the same as a stream");
}

my $many = chat(n => 4, response_format => format_of($person), seed => 5);
is(scalar(grep { is_person($_->{message}{content}) }
          @{ $many->{json}{choices} }), 4, 'each of several choices');

my @open;

for my $model ('demo', $emu ? 'device' : ()) {
    @open = map { $t->open('/v1/chat/completions',
        { model => $model, messages => $hi, seed => $_, max_tokens => 1500,
          @calm,
          response_format => format_of($person) }) } 1 .. 4;

    is(scalar(grep { is_person($_->{json}{choices}[0]{message}{content}) }
              map { $_->response } @open), 4, "several at once: $model");
}

# sequences that lose their pages and come back

@open = map { $t->open('/v1/chat/completions',
    { model => 'tight', messages => $hi, seed => $_, @calm,
      guided_regex => '(alpha|beta|gamma){100}' }) } 1 .. 4;

is(scalar(grep { text_of($_->response) =~ /^(?:alpha|beta|gamma){100}$/ }
          @open), 4, 'preempted: whole');

my ($tight) = grep { $_->{name} eq 'tight' }
              @{ $t->get('/figures')->{json}{models} };
cmp_ok($tight->{preemptions}, '>', 0, 'preempted');


# ---- strict: no other properties than those that are named ----

my $open = { type => 'object', required => [ 'a' ], properties => {
    a => { type => 'object', required => [ 'b' ],
           properties => { b => { type => 'boolean' } } } } };

for my $seed (1 .. 5) {
    my $res = chat(seed => $seed, temperature => 2, response_format => {
        type => 'json_schema',
        json_schema => { name => 'x', strict => \1, schema => $open } });

    like(text_of($res), qr/^\s*\{\s*"a"\s*:\s*\{\s*"b"\s*:\s*
                            (?:true|false)\s*\}\s*\}\s*$/x,
         "strict, seed $seed") or diag($res->{body});
}


# ---- every way to say it ----

my $json = encode_json($person);

for my $case (
    [ 'json_schema', $person ],
    [ 'guided_json', $person ],
    [ 'guided_json', $json ],
    [ 'structured_outputs', { json => $person } ],
    [ 'structured_outputs', { json => $json } ],
    [ 'response_format', { type => 'json_object', schema => $person } ])
{
    my ($field, $value) = @$case;
    my $how = $field . (ref $value ? '' : ', as text');

    for my $path ('chat/completions', 'completions') {
        my $res = $t->post("/v1/$path", { $field => $value, seed => 3,
            max_tokens => 1500,
            $path eq 'completions' ? (prompt => 'a')
                                   : (messages => $hi, @calm) });

        ok(is_person(text_of($res)), "$how: $path") or diag($res->{body});
    }
}

for my $case (
    [ grammar => 'root ::= ("ab" | "cd"){2} [0-9]+ "."', '(?:ab|cd){2}\d+\.' ],
    [ guided_grammar => 'root ::= "x" | "y"', '[xy]' ],
    [ structured_outputs => { grammar => 'root ::= "x" | "y"' }, '[xy]' ],
    [ guided_regex => '[a-f]{3}-\d{2,4}', '[a-f]{3}-\d{2,4}' ],
    [ structured_outputs => { regex => '(foo|bar)+!' }, '(?:foo|bar)+!' ],
    [ guided_choice => [ 'the first', 'the second', 'a "third"' ],
      'the first|the second|a "third"' ],
    [ structured_outputs => { choice => [ 'yes', 'no' ] }, 'yes|no' ])
{
    my ($field, $value, $want) = @$case;

    for my $seed (1 .. 3) {
        my $res = chat($field => $value, seed => $seed);
        my ($c) = @{ $res->{json}{choices} // [] };

        # a text that has no end of its own may be cut

        ok($c && ($c->{finish_reason} eq 'length'
                  || $c->{message}{content} =~ /^(?:$want)$/),
           "$field: $want") or diag($res->{body});
    }
}

for my $seed (1 .. 3) {
    my $res = chat(response_format => { type => 'json_object' },
                   seed => $seed, max_tokens => 900);
    my $text = text_of($res);

    like($text, qr/^\{/, 'json_object: an object from the first byte');
    ok($res->{json}{choices}[0]{finish_reason} eq 'length'
       || ref(eval { $characters->decode($text) }) eq 'HASH',
       'json_object: an object') or diag($text);
}

# reasoning comes before, and is no part of the answer

for my $seed (1 .. 4) {
    my $res = chat(guided_choice => [ 'yes', 'no' ], seed => $seed,
                   enable_thinking => LLM::JSON::true, max_tokens => 900);
    my $c = $res->{json}{choices}[0];

    ok($c->{finish_reason} eq 'length' && $c->{message}{content} eq ''
       || $c->{message}{content} =~ /^(?:yes|no)$/, "reasoning, seed $seed")
        or diag($res->{body});
}

# nor does the model reason again behind reasoning that the template has ended,
# however much it wants to

my $think = $t->post('/v1/tokenize', { content => '<think>',
                                       parse_special => LLM::JSON::true })
              ->{json}{tokens};

for my $want (LLM::JSON::true, LLM::JSON::false) {
    my $res = $t->post('/v1/chat/completions', {
        messages => $hi, max_tokens => $want ? 1 : 20, temperature => 0,
        guided_choice => [ 'yes', 'no' ],
        logit_bias => { $think->[0] => 100 },
        $want ? (enable_thinking => $want) : () });
    my $m = $res->{json}{choices}[0]{message};

    is(ref $m && $m->{content} =~ /^(?:yes|no)$/ ? 1 : 0, $want ? 0 : 1,
       $want ? 'reasoning that it may begin' : 'and may not')
        or diag($res->{body});
}

is(text_of(chat(response_format => { type => 'text' }, seed => 1)),
   text_of(chat(seed => 1)), 'response_format text changes nothing');


# ---- calls that must come ----

my $weather = {
    type => 'object',
    properties => {
        city => { type => 'string', maxLength => 10 },
        unit => { enum => [ 'c', 'f' ] },
        days => { type => 'integer', minimum => 1, maximum => 9 },
    },
    required => [ 'city', 'unit' ],
    additionalProperties => LLM::JSON::false,
};

my @tools = map { { type => 'function', function => $_ } }
    { name => 'get_weather', parameters => $weather },
    { name => 'now', parameters => {
        type => 'object', additionalProperties => LLM::JSON::false } },
    { name => 'odd', parameters => { type => 'object', properties => {
        a => { '$ref' => 'http://127.0.0.1/other.json' } } } };


sub calls_of {
    my ($res) = @_;

    return map { [ $_->{function}{name},
                   eval { $characters->decode($_->{function}{arguments}) } ] }
           @{ $res->{json}{choices}[0]{message}{tool_calls} // [] };
}


sub is_weather {
    my ($call) = @_;
    my ($name, $args) = @$call;

    return $name eq 'get_weather' && ref $args eq 'HASH'
           && length $args->{city} <= 10 && $args->{unit} =~ /^[cf]$/
           && ($args->{days} // 1) =~ /^[1-9](?:\.0)?$/;
}


for my $seed (1 .. 4) {
    my %ask = (tools => \@tools, seed => $seed, temperature => 1.2,
               tool_choice => { type => 'function',
                                function => { name => 'get_weather' } });
    my $res = chat(%ask);
    my @calls = calls_of($res);

    is($res->{json}{choices}[0]{finish_reason}, 'tool_calls',
       "a named call, seed $seed: the reason") or diag($res->{body});
    ok(@calls == 1 && is_weather($calls[0]),
       "a named call, seed $seed: one, and it fits") or diag($res->{body});

    my $args = join '', map { $_->{function}{arguments} // '' }
               map { @{ $_->{json} && $_->{json}{choices}[0]{delta}{tool_calls}
                        || [] } }
               $t->open('/v1/chat/completions', { messages => $hi, @calm,
                        %ask, max_tokens => 1500, stream => \1 })->events;

    is($args, $res->{json}{choices}[0]{message}{tool_calls}[0]{function}
                  {arguments}, "a named call, seed $seed: as a stream");
}

for my $seed (1 .. 4) {
    my @calls = calls_of(chat(tools => [ @tools[0, 1] ], seed => $seed,
        tool_choice => 'required', parallel_tool_calls => LLM::JSON::false));

    is(scalar(@calls), 1, "a call, seed $seed");
    ok($calls[0] && ref $calls[0][1] eq 'HASH'
       && ($calls[0][0] eq 'now' || is_weather($calls[0])),
       "a call, seed $seed: fits");
}

# a schema that cannot be kept to is no reason to refuse a tool

my $odd = chat(tools => \@tools, seed => 1, max_tokens => 900,
    tool_choice => { type => 'function', function => { name => 'odd' } });
my ($call) = calls_of($odd);

ok($odd->{json}{choices}[0]{finish_reason} eq 'length'
   || ($call->[0] eq 'odd' && ref $call->[1] eq 'HASH'),
   'a call of a tool with an odd schema') or diag($odd->{body});

# a rule and tools: the answer is one or the other

for my $seed (1 .. 4) {
    my $res = chat(tools => [ $tools[0] ], seed => $seed,
                   response_format => format_of($person));
    my @calls = calls_of($res);

    ok(@calls ? is_weather($calls[0]) : is_person(text_of($res)),
       "a rule or a call, seed $seed") or diag($res->{body});
}


# ---- limits ----

my $res = chat(response_format => format_of($person), max_tokens => 3);
is($res->{json}{choices}[0]{finish_reason}, 'length', 'cut: length');

$res = chat(guided_choice => [ 'yes' ], min_tokens => 50, ignore_eos => \1);
is(text_of($res), 'yes', 'complete: it ends, whatever min_tokens says')
    or diag($res->{body});
is($res->{json}{choices}[0]{finish_reason}, 'stop', 'complete: stop');

$res = chat(guided_choice => [ 'yes', 'no' ], logprobs => \1,
            top_logprobs => 2);
is(join('', map { $_->{token} }
        @{ $res->{json}{choices}[0]{logprobs}{content} }), text_of($res),
   'with logprobs');


# ---- what is refused ----

for my $case (
    [ { grammar => 'root ::= "x"', guided_regex => 'x' }, 'grammar',
      'only one constraint' ],
    [ { grammar => 'root ::= a' }, 'grammar', '' ],
    [ { grammar => 'root ::= root "a" | "b"' }, 'grammar', '' ],
    [ { guided_regex => '(a' }, 'guided_regex', '' ],
    [ { guided_choice => [] }, 'guided_choice', 'empty' ],
    [ { guided_choice => [ 1 ] }, 'guided_choice[0]', 'string' ],
    [ { guided_json => '{"type":' }, 'guided_json', "Invalid 'guided_json': it"
      . ' is no JSON: an unexpected end at line 1, column 9.' ],
    [ { guided_json => 5 }, 'guided_json', 'schema' ],
    [ { structured_outputs => { structural_tag => 'x' } },
      'structured_outputs.structural_tag', '' ],
    [ { structured_outputs => { regex => 5 } }, 'structured_outputs.regex',
      'string' ],
    [ { response_format => { type => 'xml' } }, 'response_format', 'types' ],
    [ { response_format => { type => 'json_schema' } },
      'response_format.json_schema', '' ],
    [ { response_format => { type => 'json_schema', json_schema => {} } },
      'response_format.json_schema.schema', '' ],
    [ { response_format => format_of({ type => 'string', minLength => 5,
                                       maxLength => 2 }) },
      'response_format.json_schema.schema.minLength',
      'minLength 5 is above maxLength 2' ],
    [ { response_format => format_of({ properties => { a => {
        '$ref' => 'http://127.0.0.1/other.json' } } }) },
      'response_format.json_schema.schema.properties.a.$ref', '' ])
{
    my ($fields, $param, $why) = @$case;
    $res = chat(%$fields);

    is($res->{status}, 400, "refused: $param") or diag($res->{body});
    is($res->{json}{error}{param}, $param, "refused: $param: named");
    like($res->{json}{error}{message}, qr/\Q$why/, "refused: $param: why");
}

# integers that no 64 bits hold

$res = $t->post('/v1/chat/completions', '{"messages":[{"role":"user",'
    . '"content":"A number, please."}],"max_tokens":100.0,"response_format":'
    . '{"type":"json_schema","json_schema":{"name":"n","schema":{"type":'
    . '"object","properties":{"n":{"const":18446744073709551617},"m":{"enum":'
    . '[-170141183460469231731687303715884105728]}},"required":["n","m"],'
    . '"additionalProperties":false}}}}');
like($res->{json}{choices}[0]{message}{content} =~ s/\s//gr,
     qr/^\{"n":18446744073709551617,
        "m":-170141183460469231731687303715884105728/x,
     'large integers keep their digits') or diag($res->{body});

is($t->get('/figures')->{json}{models}[0]{running}, 0, 'nothing is left');

# ---- too ambiguous, which is the client's fault and not impossible ----

my $apart = join ' ', ('s') x 16;

for (
    [ { grammar => "root ::= $apart\ns ::= [a-z ] s [a-z] | [a-z ] | \"\"" },
      'grammar', qr/too ambiguous/ ],
    [ { response_format => { type => 'json_schema', json_schema => {
            name => 'x', schema => { type => 'string', allOf => [
                map { { pattern => "^(.{$_})*\$" } } 7, 11, 13, 17 ],
                minLength => 1 } } } },
      'response_format', qr/too ambiguous.*could not be decided/ ],
    [ { response_format => { type => 'json_schema', json_schema => {
            name => 'x', schema => { not => {} } } } },
      'response_format', qr/no text matches/ ],
    [ { response_format => { type => 'json_schema', json_schema => {
            name => 'x', schema => { type => 'object', required => [ 'a' ],
                properties => { a => { type => 'integer', minimum => 5,
                                       maximum => 4 } } } } } },
      'response_format.json_schema.schema.properties.a.minimum',
      qr/no text matches: minimum 5 is above maximum 4/ ]
) {
    my ($fields, $param, $message) = @$_;
    my $res = chat(%$fields);
    my $what = substr(LLM::JSON->new->canonical->encode($fields), 0, 70);

    is($res->{status}, 400, "$what: refused") or diag($res->{body});
    like($res->{json}{error}{param} // '', qr/^$param/, 'by its field');
    like($res->{json}{error}{message}, $message, 'and why');
}

$t->stop;
done_testing();
