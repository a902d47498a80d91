#!/usr/bin/perl

# Bodies that are hostile JSON (t/fixtures/JSONTestSuite), alone and as a value
# within a request: 400 with a place for what is none, whatever follows is
# served, no worker dies.

use strict;
use warnings;

use LLM::Test;
use Test::More;

# JSON, but beyond the reader's limits: t/unit/json_suite.c

my %refused = (y_number_double_close_to_zero => 1);

my %cases = (
    n_structure_100000_opening_arrays => '[' x 100_000,
    n_structure_open_array_object => '[{"":' x 50_000,
);

open my $f, '<', "$LLM::Test::ROOT/t/fixtures/JSONTestSuite/cases.txt"
    or die "cases.txt: $!";

while (<$f>) {
    $cases{$1} = pack 'H*', $2 if /^([yni]_\S+) ([0-9a-f]*)$/;
}

cmp_ok(scalar keys %cases, '>=', 318, 'texts');

my $t = LLM::Test->new->start;
my @before = $t->workers;
my %of = (y => 200, n => 400, i => 0);

for my $name (sort keys %cases) {
    my $text = $cases{$name};
    my $want = $refused{$name} ? 400 : $of{substr $name, 0, 1};

    my $res = $t->post('/v1/completions', $text);
    my $inner = $t->post('/v1/chat/completions', '{"max_tokens":1,'
        . '"messages":[{"role":"user","content":"a"}],'
        . qq("chat_template_kwargs":{"x":$text}}));

    # none of them is a request

    is($res->{status}, 400, "$name: refused");
    like($res->{json}{error}{message} // '', qr/ at line \d+, column \d+/,
         "$name: where") if $want == 400;
    unlike($res->{json}{error}{message} // '', qr/ at line \d/,
           "$name: but not as JSON") if $want == 200;

    like($inner->{status}, $want ? qr/^$want$/ : qr/^(?:200|400)$/,
         "$name: within a request") or diag($inner->{body});
}

is(join(' ', $t->workers), join(' ', @before), 'the same workers');
is($t->chat('hello', max_tokens => 1)->{status}, 200, 'and they serve');
$t->stop;

done_testing();
