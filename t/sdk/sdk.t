#!/usr/bin/perl

# The official clients for Python and JavaScript against a real server; each
# prints TAP, shown as a subtest.  "./build.sh test" installs the packages
# pinned in ../requirements.txt and package.json into .deps.

use strict;
use warnings;

use LLM::Test;
use Test::More;

my $deps = "$LLM::Test::ROOT/.deps";
my $sdk = "$LLM::Test::ROOT/t/sdk";

$ENV{OPENAI_NODE_MODULES} = "$deps/node/node_modules";

my $t = LLM::Test->new->start;
my $url = 'http://127.0.0.1:' . $t->port . '/v1';

for my $client ([ 'Python', "$deps/venv/bin/python",
                  "$sdk/openai_client.py" ],
                [ 'JavaScript', 'node', "$sdk/openai_client.mjs" ],
                [ 'Python, Responses', "$deps/venv/bin/python",
                  "$sdk/openai_responses.py" ],
                [ 'JavaScript, Responses', 'node',
                  "$sdk/openai_responses.mjs" ],
                [ 'Python, Messages', "$deps/venv/bin/python",
                  "$sdk/anthropic_client.py" ],
                [ 'JavaScript, Messages', 'node',
                  "$sdk/anthropic_client.mjs" ])
{
    my ($name, @command) = @$client;

    subtest $name => sub {
        my $pid = open(my $out, '-|') // die "fork: $!";

        if ($pid == 0) {
            open STDERR, '>&', \*STDOUT;
            alarm 300;
            exec @command, $url or exit 127;
        }

        my ($planned, @rest);

        while (<$out>) {
            if (/^(not )?ok \d+ - (.*)/) {
                ok(!$1, $2);
            } elsif (/^1\.\.(\d+)/) {
                $planned = $1;
            } else {
                push @rest, $_;
            }
        }

        close $out;

        my $count = Test::More->builder->current_test;

        ok($planned && $planned == $count, 'ran to its end');
        diag(@rest) if @rest && $?;
    };
}

$t->stop;

done_testing();
