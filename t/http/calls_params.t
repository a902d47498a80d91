#!/usr/bin/perl

# Calls whose arguments stand between marks, a key and a value each: a string
# without quotes, as models of Qwen3-Coder's kind write it.  What is written
# so keeps to the schema all the same, in its $defs too, and is read back as
# what the schema says it is, at any temperature.

use strict;
use warnings;

use LLM::JSON;
use LLM::Test;
use Test::More;

my $t = LLM::Test->new(
    model => 'llm_model demo %%ROOT%%/models/demo.gguf threads=2 parallel=8'
           . ' template=%%DIR%%/coder.jinja;',
    locations => 'location /v1 { llm_api; } location = /health { llm_health; }');

$t->write_file('coder.jinja', <<'END');
{%- for m in messages -%}
<|im_start|>{{ m.role }}
{{ m.content }}
{%- for c in m.tool_calls or [] %}
<tool_call>
<function={{ c.function.name }}>
{%- for k, v in c.function.arguments | items %}
<parameter={{ k }}>
{{ v if v is string else v | tojson }}
</parameter>
{%- endfor %}
</function>
</tool_call>
{%- endfor -%}
<|im_end|>
{% endfor -%}
<|im_start|>assistant
END

$t->start;

my ($true, $false) = (LLM::JSON::true, LLM::JSON::false);

my $schema = {
    type => 'object',
    properties => {
        unit => { '$ref' => '#/$defs/unit' },
        mood => { enum => [ 'calm', "not 'calm'" ] },
        only => { const => 'one' },
        code => { type => 'string', pattern => '^[ab]{2,3}$' },
        maybe => { anyOf => [ { '$ref' => '#/$defs/unit' },
                              { type => 'null' } ] },
        size => { '$ref' => '#/$defs/size' },
        list => { type => 'array', items => { '$ref' => '#/$defs/unit' },
                  maxItems => 2 },
    },
    required => [ qw(unit mood only code maybe size list) ],
    additionalProperties => $false,
    '$defs' => { unit => { type => 'string', enum => [ 'km', 'mile' ] },
                 size => { type => 'integer', minimum => 1,
                           maximum => 20 } },
};

my %ask = (
    messages => [ { role => 'user', content => 'Hello' } ],
    tools => [ { type => 'function', function => {
        name => 'measure', strict => $true, parameters => $schema } } ],
    parallel_tool_calls => $false, temperature => 1.8, max_tokens => 600,
);


sub unit { !ref $_[0] && $_[0] =~ /^(?:km|mile)$/ }


# what is wrong with the arguments

sub wrong {
    my ($json) = @_;

    my $a = eval { decode_json($json) } or return 'no JSON';

    return join ' ', grep { $_ }
        (join(' ', sort keys %$a) ne 'code list maybe mood only size unit'
             && 'keys'),
        !unit($a->{unit}) && 'unit',
        $a->{mood} !~ /^(?:calm|not 'calm')$/ && 'mood',
        $a->{only} ne 'one' && 'only',
        $a->{code} !~ /^[ab]{2,3}$/ && 'code',
        (defined $a->{maybe} && !unit($a->{maybe})) && 'maybe',
        ($a->{size} !~ /^(?:[1-9]|1[0-9]|20)$/) && 'size',
        (ref $a->{list} ne 'ARRAY' || @{ $a->{list} } > 2
             || grep { !unit($_) } @{ $a->{list} }) && 'list';
}


my $mark = $t->post('/v1/tokenize', { content => '<tool_call>',
                                      parse_special => $true })
           ->{json}{tokens};

for my $way ([ required => tool_choice => 'required' ],
             [ auto => logit_bias => { $mark->[0] => 100 } ])
{
    my ($name, @fields) = @$way;
    my @wrong;

    for my $seed (1 .. 6) {
        my $res = $t->post('/v1/chat/completions',
                           { %ask, @fields, seed => $seed });
        my $call = $res->{json}{choices}[0]{message}{tool_calls}[0]{function};
        my $why = $call ? wrong($call->{arguments}) : $res->{body};

        push @wrong, "$why: " . ($call->{arguments} // '') if $why;
    }

    is_deeply(\@wrong, [], "$name: all arguments fit the schema");
}

# what cannot be kept to is refused by the place in the client's own schema

my %odd = %$schema;

$odd{'$defs'} = { %{ $schema->{'$defs'} },
                  unit => { type => 'string', pattern => '(?=a)(b' } };

my $res = $t->post('/v1/chat/completions', { %ask, tool_choice => 'required',
    tools => [ { type => 'function', function => {
        name => 'measure', strict => $true, parameters => \%odd } } ] });

is($res->{status}, 400, 'a strict tool that cannot be kept to');
is($res->{json}{error}{param},
   'tools[0].function.parameters.$defs.unit.pattern', 'named by its path');

$t->stop;
is($t->alerts, '', 'nothing wrong in the log');

done_testing;
