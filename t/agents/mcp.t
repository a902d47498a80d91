#!/usr/bin/perl

# Codex with an MCP server: it offers the server's tools as a namespace.  The
# model calls one of them by a script, Codex runs it, and its result comes back
# with the call, by the same name.

use strict;
use warnings;

use LLM::Alone;

use LLM::JSON;
use LLM::Agent;
use LLM::Made qw(script);
use LLM::Test;
use Test::More;

my $here = "$LLM::Test::ROOT/t/agents";
my $t = LLM::Test->new(
    model => 'llm_model script %%DIR%%/script.gguf ctx=65536 threads=2'
           . " template=$here/mcp.jinja;",
    http => 'client_max_body_size 8m;');
my $agent = LLM::Agent->new('codex', model => 'script',
                            url => 'http://127.0.0.1:' . $t->port,
                            more => <<"END");

[mcp_servers.paint]
command = "python3"
args = ["$here/mcp_server.py"]
END
my $why = $agent->missing;

plan skip_all => $why if $why;

$t->write_file('script.json', encode_json({
    call => "<tool_call>\n" . '{"name": "mcp__paint__colour", "arguments": '
            . '{"of": "the sky"}}' . "\n</tool_call>",
    told => 'So the sky is painted.',
    lost => 'It has said nothing.',
    none => 'There is no such tool.' }));

script($t->dir);

$t->start;

my $run = $agent->ask('What colour is the sky?');

is($run->{status}, 0, 'ends well');
like($run->{out}, qr/So the sky is painted\./,
     'its tool was offered and run, and call and result came back')
    or diag($run->{out}, $run->{err});

$t->stop;

done_testing();
