#!/usr/bin/perl

# Calls that the model begins by itself: free until its mark, then constrained
# by the tools, at any temperature; sent piece by piece, the same as at once.
# A bias makes the model write the mark, so that this holds with any weights.

use strict;
use warnings;

use LLM::JSON;
use Math::BigInt;
use LLM::Test;
use Test::More;

my $demo = '%%ROOT%%/models/demo.gguf';
my $emu = -e "$LLM::Test::OBJS/llm_emu.so";

my $t = LLM::Test->new(pace => 0.2,
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
my $path = '/v1/chat/completions';
my ($true, $false) = (LLM::JSON::true, LLM::JSON::false);

my $mark = $t->post('/v1/tokenize', { content => '<tool_call>',
                                      parse_special => $true })
           ->{json}{tokens};

is(scalar @$mark, 1, 'the mark is one token');

my $odd = {
    type => 'object',
    properties => {
        'odd key' => { type => 'string', maxLength => 6 },
        mood => { enum => [ 'good "quoted"', 7, undef ] },
        list => { type => 'array', items => { type => 'integer' },
                  maxItems => 3 },
    },
    required => [ 'odd key', 'mood', 'list' ],
    additionalProperties => $false,
};

my @tools = map { { type => 'function', function => $_ } }
    { name => 'zz_top-9', parameters => $odd },
    { name => 'zz', parameters => { type => 'object',
                                    additionalProperties => $false } };

# reasoning would come first

my %ask = (messages => [ { role => 'user', content => 'Hello' } ],
           tools => \@tools, logit_bias => { $mark->[0] => 100 },
           parallel_tool_calls => $false, temperature => 1.3,
           max_tokens => 400, enable_thinking => $false);


sub is_odd {
    my ($call) = @_ or return 0;
    my $args = eval { $characters->decode($call->{function}{arguments}) };

    return 0 if ref $args ne 'HASH';
    return !%$args if $call->{function}{name} eq 'zz';
    return 0 if $call->{function}{name} ne 'zz_top-9';

    return join(',', sort keys %$args) eq 'list,mood,odd key'
           && length $args->{'odd key'} <= 6
           && (!defined $args->{mood} || $args->{mood} eq '7'
               || $args->{mood} eq 'good "quoted"')
           && @{ $args->{list} } <= 3
           && !grep { !/^-?\d+(?:\.0+)?$/ } @{ $args->{list} };
}


# calls of each choice that the deltas of a stream make, and their pieces

sub gather {
    my (@events) = @_;
    my @choices;

    for my $c (map { $_->{json} ? @{ $_->{json}{choices} } : () } @events) {
        my $to = $choices[ $c->{index} ] //= { calls => [], pieces => 0 };

        $to->{content} .= $c->{delta}{content} // '';
        $to->{finish} = $c->{finish_reason} if $c->{finish_reason};

        for my $call (@{ $c->{delta}{tool_calls} // [] }) {
            my $f = $to->{calls}[ $call->{index} ]{function} //= {};

            $to->{wrong} = 1 if %$f == exists $call->{id}
                                || $call->{index} != $#{ $to->{calls} };
            $f->{name} //= $call->{function}{name};
            $f->{arguments} .= $call->{function}{arguments};
            $to->{pieces}++;
        }
    }

    return @choices;
}


# ---- what follows the mark fits the tools ----

sub check {
    my ($model, %fields) = @_;

    for my $seed (1 .. ($model eq 'demo' ? 4 : 1)) {
        my %seeded = (%fields, model => $model, seed => $seed);
        my $res = $t->post($path, \%seeded, timeout => 600);
        my @streamed = gather($t->open($path, { %seeded, stream => $true },
                                       timeout => 600)->events);

        for my $i (0 .. ($fields{n} // 1) - 1) {
            my $c = $res->{json}{choices}[$i];
            my $s = $streamed[$i];
            my ($f) = map { $_->{function} } @{ $c->{message}{tool_calls} };
            my $name = "$model, seed $seed, choice $i";

            ok(@{ $c->{message}{tool_calls} // [] } == 1
               && is_odd({ function => $f })
               && $c->{finish_reason} eq 'tool_calls', "$name: a call")
                or diag($res->{body});
            is($c->{message}{content}, undef, "$name: no content");

            ok(!$s->{wrong}, "$name: the id comes once");
            is_deeply([ map { $_->{function} } @{ $s->{calls} } ], [ $f ],
                      "$name: the same as a stream");
            is($s->{finish}, 'tool_calls', "$name: its end");
            is($s->{content}, '', "$name: no content");

            if ($f && $f->{name} eq 'zz_top-9') {
                cmp_ok($s->{pieces}, '>', 5, "$name: piece by piece");
            }
        }
    }
}


check('demo', %ask, n => 2);

# in the emulator a token takes long

if ($emu) {
    check('device', %ask, tools => [ $tools[1] ], max_tokens => 40);
}

# the bias wants ever more calls

my $res = $t->post($path, { %ask, parallel_tool_calls => $true, seed => 3,
                            max_tokens => 200 });
my $c = $res->{json}{choices}[0];
my @calls = @{ $c->{message}{tool_calls} // [] };

is($c->{finish_reason}, 'length', 'many calls: cut');
cmp_ok(scalar(@calls), '>', 1, 'several');
pop @calls;
is(scalar(grep { !is_odd($_) } @calls), 0, 'all but the last are whole');

my ($s) = gather($t->open($path, { %ask, parallel_tool_calls => $true,
    seed => 3, max_tokens => 200, stream => $true })->events);
is_deeply([ map { $_->{function} } @{ $s->{calls} } ],
          [ map { $_->{function} } @{ $c->{message}{tool_calls} } ],
          'the same as a stream');

# a text that a stop string would cut is no content

$res = $t->post($path, { %ask, seed => 5, stop => [ '"', '}' ] });
ok(is_odd($res->{json}{choices}[0]{message}{tool_calls}[0]),
   'stop strings do not look at calls') or diag($res->{body});

# the end is not forced in vain: min_tokens does not keep a call from ending

$res = $t->post($path, { %ask, seed => 6, min_tokens => 300,
                         ignore_eos => $true });
is($res->{json}{choices}[0]{finish_reason}, 'tool_calls', 'it ends');


# ---- what is no call ----

$res = $t->post($path, { %ask, seed => 1, max_tokens => 30,
                         tool_choice => 'none' });
ok(!$res->{json}{choices}[0]{message}{tool_calls}, 'none with choice none');

if ($emu) {
    my $behind = sub {
        my ($f) = grep { $_->{name} eq 'device' }
                  @{ $t->get('/figures')->{json}{models} };
        return $f->{steps_behind};
    };
    my $before = $behind->();

    $t->post($path, { %ask, model => 'device', max_tokens => 12,
                      tools => [ $tools[1] ], min_tokens => 12,
                      logit_bias => { $mark->[0] => -100 } },
             timeout => 600);
    cmp_ok($behind->(), '>', $before + 5,
           'until a call begins the device draws ahead');
}


# ---- names that JSON writes with escapes ----

for my $name ('a"b', 'a\\b', "a\nb") {
    for my $stream (0, 1) {
        my %fields = (%ask, stream => $stream ? $true : $false, seed => 1,
            tools => [ { type => 'function', function => { name => $name,
                parameters => { type => 'object', properties => {
                    a => { type => 'null' } }, required => [ 'a' ] } } } ]);

        my $f = $stream ? (gather($t->open($path, \%fields)->events))[0]
                          {calls}[0]{function}
                        : $t->post($path, \%fields)->{json}{choices}[0]
                          {message}{tool_calls}[0]{function};

        is($f->{name}, $name, 'an odd name' . ($stream ? ', streamed' : ''));
        is_deeply(eval { $characters->decode($f->{arguments}) },
                  { a => undef }, 'and its arguments');
    }
}


# ---- a function has the parameters that its schema names ----

my %open_ended = (type => 'object', properties => {
    a => { type => 'boolean' }, b => { type => 'null' } });
my $others = 0;

for my $seed (1 .. 6) {
    $res = $t->post($path, { %ask, temperature => 2, seed => $seed,
        tool_choice => 'required', tools => [ { type => 'function',
            function => { name => 'f', parameters => \%open_ended } } ] });

    my $args = eval { $characters->decode($res->{json}{choices}[0]{message}
                                          {tool_calls}[0]{function}{arguments})
                    } // { none => 1 };
    $others += grep { $_ ne 'a' && $_ ne 'b' } keys %$args;
}

is($others, 0, 'and no others, if it says nothing of them');


# ---- a name that may have something behind it ----

my $harmony = LLM::Test->new(
    model => "llm_model demo $demo threads=2 template=%%DIR%%/harmony.jinja;",
    locations => 'location /v1 { llm_api; } location = /health { llm_health; }');

$harmony->write_file('harmony.jinja', <<'END');
{#- as of a model that begins with analysis -#}
{%- for m in messages -%}
<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>
{%- endfor -%}
<|start|>assistant<|channel|>final<|message|>
END

$harmony->start;

my @names;

for my $seed (1 .. 8) {
    $res = $harmony->post($path, { %ask, seed => $seed, temperature => 2,
        return_token_ids => $true, tool_choice => 'required',
        tools => [ { type => 'function', function => { name => 'f',
            parameters => { type => 'object',
                            properties => { a => { type => 'boolean' } } } } }
        ] });

    my $written = $harmony->post('/v1/detokenize', {
        tokens => $res->{json}{choices}[0]{token_ids} })->{json}{content};

    push @names, $written =~ /to=functions\.(.*?)(?: [^<]*)?<\|message\|>/
                 ? $1 : $written;
}

is_deeply(\@names, [ ('f') x 8 ], 'gpt-oss: nothing goes on with the name');
$harmony->stop;


# ---- tools that cannot be kept to ----

my $hard = { type => 'object', properties => {
    a => { '$ref' => 'http://127.0.0.1/other.json' } } };

$res = $t->post($path, { %ask, seed => 1, tools => [ { type => 'function',
    function => { name => 'hard', parameters => $hard } } ] });
$c = $res->{json}{choices}[0];
is($c->{message}{tool_calls}[0]{function}{name}, 'hard',
   'a schema that cannot be kept to') or diag($res->{body});
ok($c->{finish_reason} eq 'length' || ref(eval { $characters->decode(
       $c->{message}{tool_calls}[0]{function}{arguments}) }) eq 'HASH',
   'its arguments are an object');

for my $choice ('auto', 'required') {
    $res = $t->post($path, { %ask, tool_choice => $choice, tools => [ @tools,
        { type => 'function', function => { name => 'hard', strict => $true,
                                            parameters => $hard } } ] });
    is($res->{status}, 400, "$choice, strict: refused");
    like($res->{json}{error}{param},
         qr/^tools\[2\]\.function\.parameters\..*a/, 'by its path');
}


# ---- arguments that cannot be ----

sub none_of {
    my ($choice, $name, @rest) = @_;

    return $t->post($path, { %ask, seed => 1, tool_choice => $choice,
        tools => [ @rest, { type => 'function', function => {
            name => $name, parameters => { type => 'object', not => {} },
            $name =~ /strict/ ? (strict => $true) : () } } ] });
}

$res = none_of('required', 'never');
is($res->{status}, 400, 'a call must come, and none can');
is($res->{json}{error}{param}, 'tools[0].function.parameters.not',
   'by the keyword');
like($res->{json}{error}{message}, qr/no text matches/, 'and why');

$res = none_of({ type => 'function', function => { name => 'never' } },
               'never', @tools);
is($res->{status}, 400, 'a call of one that cannot be');
is($res->{json}{error}{param}, 'tools[2].function.parameters.not',
   'by the keyword');

for my $choice ('auto', 'required') {
    $res = none_of($choice, 'strict_never', @tools);
    is($res->{status}, 400, "$choice, strict: refused");
    is($res->{json}{error}{param}, 'tools[2].function.parameters.not',
       'by the keyword');
}

is(none_of('auto', 'never', @tools)->{status}, 200,
   'one that need not be called is as one whose schema cannot be kept to');
is(none_of('required', 'never', @tools)->{status}, 200,
   'where another one can be called that one is');


# one keyword that nothing matches is not the whole schema

my $partly = { type => 'object', required => [ 'a', 'b', 'n' ], properties => {
    a => { enum => [ 'x', 'y' ] },
    b => { type => 'string', minLength => 5, maxLength => 3 },
    n => { const => Math::BigInt->new('1' . '0' x 49 . '7') } } };

my $writer = LLM::JSON->new->canonical->allow_bignum;

sub partly {
    my ($choice, %more) = @_;

    return $t->post($path, $writer->encode({ %ask, seed => 1,
        max_tokens => 200, tool_choice => $choice, tools => [ {
            type => 'function', function => {
                name => 'partly', parameters => $partly, %more } } ] }));
}

$res = partly('auto');
my $said = eval { $res->{json}{choices}[0]{message}{tool_calls}[0]{function}
                      {arguments} } // '';
like($said, qr/"a"\s*:\s*"[xy]"\s*,\s*"b"\s*:\s*"/,
     'the others of its keywords hold') or diag($res->{body});
unlike($said, qr/"b"\s*:\s*"[^"\\]{4}/, 'the one that is left of two, too');
like($said, qr/"n"\s*:\s*10{49}7\s*\}/, 'and an integer of 51 digits');

for my $case ([ 'required' ], [ 'auto', strict => $true ]) {
    $res = partly(@$case);
    is($res->{status}, 400, "@$case[0 .. 0]: refused");
    is($res->{json}{error}{param},
       'tools[0].function.parameters.properties.b.minLength', 'by its path');
    like($res->{json}{error}{message}, qr/minLength 5 is above maxLength 3/,
         'and why');
}


# ---- strict: no other properties than those that are named, at any depth ----

my $nested = { type => 'object', required => [ 'a' ], properties => {
    a => { type => 'object', required => [ 'b' ],
           properties => { b => { type => 'boolean' } } } } };

for my $seed (1 .. 3) {
    $res = $t->post($path, { %ask, temperature => 2, seed => $seed,
        tools => [ { type => 'function', function => {
            name => 'deep', strict => $true, parameters => $nested } } ] });

    like($res->{json}{choices}[0]{message}{tool_calls}[0]{function}{arguments},
         qr/^\{\s*"a"\s*:\s*\{\s*"b"\s*:\s*(?:true|false)\s*\}\s*\}$/,
         "strict, seed $seed") or diag($res->{body});
}


# ---- what a schema requires without naming it may be there ----

my $sloppy = { type => 'object', required => [ 'a', 'b' ],
               properties => { a => { type => 'boolean' } } };

$res = $t->post($path, { %ask, tools => [ { type => 'function', function => {
    name => 'sloppy', parameters => $sloppy } } ] });
is($res->{status}, 200, 'a property that is required, but not named')
    or diag($res->{body});
like($res->{json}{choices}[0]{message}{tool_calls}[0]{function}{arguments},
     qr/^\{\s*"a"\s*:\s*(?:true|false)\s*,\s*"b"\s*:/, 'is there');


# ---- cut short ----

for my $max (2, 6, 12, 20) {
    my %fields = (%ask, seed => 2, max_tokens => $max, tools => [ $tools[0] ]);

    $c = $t->post($path, \%fields)->{json}{choices}[0];
    ($s) = gather($t->open($path, { %fields, stream => $true })->events);

    is($c->{finish_reason}, 'length', "cut behind $max tokens");
    is_deeply([ map { $_->{function} } @{ $s->{calls} } ],
              [ map { $_->{function} } @{ $c->{message}{tool_calls} // [] } ],
              'the same calls as a stream');
    is($s->{content}, $c->{message}{content} // '', 'and content');
}


# other endpoints have schemas elsewhere, and tools that the model is not told of

my $never = { type => 'object', not => {} };

$res = $t->post('/v1/responses', { model => 'demo', input => 'Hello',
    tools => [ { type => 'web_search' },
        { type => 'function', name => 'f', strict => $false,
          parameters => { type => 'object' } },
        { type => 'namespace', name => 'n', description => 'd', tools => [
            { type => 'function', name => 'g', strict => $true,
              parameters => $never } ] } ] });
is($res->{status}, 400, 'Responses: refused');
is($res->{json}{error}{param}, 'tools[2].tools[0].parameters.not',
   'by the path in its body');

$res = $t->post('/v1/messages', { model => 'demo', max_tokens => 9,
    messages => [ { role => 'user', content => 'Hello' } ],
    tools => [ { type => 'web_search_20250305', name => 'web_search' },
        { name => 'f', strict => $true, input_schema => $never } ] });
is($res->{status}, 400, 'Messages: refused');
like($res->{body}, qr/tools\[1\]\.input_schema\.not\b/,
     'by the path in its body');


# items that cannot be compared are refused, or need not be unique

my $unique = { type => 'object', required => [ 'a', 'n' ], properties => {
    a => { type => 'array', uniqueItems => $true, minItems => 1,
           maxItems => 1, items => { type => 'array', maxItems => 0 } },
    n => { const => 7 } } };

for my $strict ($false, $true) {
    $res = $t->post($path, { %ask, seed => 1, max_tokens => 200, tools => [ {
        type => 'function', function => { name => 'unique',
            strict => $strict, parameters => $unique } } ] });

    if ($strict) {
        is($res->{status}, 400, 'unique arrays, strict: refused');
        is($res->{json}{error}{param}, 'tools[0].function.parameters'
           . '.properties.a.uniqueItems', 'by the path');

    } else {
        $said = eval { $res->{json}{choices}[0]{message}{tool_calls}[0]
                           {function}{arguments} } // '';
        like($said, qr/^\{\s*"a"\s*:\s*\[\s*\[\s*\]\s*\]\s*,\s*"n"\s*:\s*7\s*\}/,
             'the rest of the schema holds') or diag($res->{body});
    }
}


# ---- sequences that lose their pages and come back ----

my @open = map { $t->open($path, { %ask, model => 'tight', seed => $_,
    max_tokens => undef, tools => [ { type => 'function', function => {
        name => 'long', parameters => { type => 'object',
            properties => { a => { type => 'string',
                                   pattern => '^(alpha|beta|gamma){90}$' } },
            required => [ 'a' ], additionalProperties => $false } } } ] }) }
    1 .. 4;

is(scalar(grep { ($_->response->{json}{choices}[0]{message}{tool_calls}[0]
                  {function}{arguments} // '')
                 =~ /^\{\s*"a": ?"(?:alpha|beta|gamma){90}"\s*\}$/ } @open),
   4, 'preempted: whole');

my ($tight) = grep { $_->{name} eq 'tight' }
              @{ $t->get('/figures')->{json}{models} };
cmp_ok($tight->{preemptions}, '>', 0, 'preempted');

$t->stop;
is($t->alerts, '', 'nothing wrong in the log');

done_testing;
