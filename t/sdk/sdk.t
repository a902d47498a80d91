#!/usr/bin/perl

# The official clients for Python and JavaScript against a real server; each
# prints TAP, shown as a subtest.  "./build.sh test" installs the packages
# pinned in ../requirements.txt and package.json into .deps.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use LLM::Tap;
use LLM::Made qw(script);
use LLM::Test;
use LLM::Whisper qw(model wav);
use Test::More;

my $deps = "$LLM::Test::ROOT/.deps";
my $sdk = "$LLM::Test::ROOT/t/sdk";

$ENV{OPENAI_NODE_MODULES} = "$deps/node/node_modules";

# beside the demo model one that says what a script has (t/agents)

my $agents = "$LLM::Test::ROOT/t/agents";
my $t = LLM::Test->new(
    server => 'llm_websocket on; location /api { llm_api; }',
    model => LLM::Test::default_model()
        . 'llm_model script %%DIR%%/script.gguf ctx=4096'
        . " template=$agents/template.jinja threads=1;");

script($t->dir, "$agents/script.json");

$t->start;

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
                  "$sdk/anthropic_client.mjs" ],
                [ 'JavaScript, the AI SDK', 'node', "$sdk/ai_sdk.mjs" ],
                [ 'Python, Ollama', "$deps/venv/bin/python",
                  "$sdk/ollama_client.py" ],
                [ 'JavaScript, Ollama', 'node', "$sdk/ollama_client.mjs" ])
{
    tap_ok(@$client, $url);
}

$t->stop;

# speech

$t = LLM::Test->new(
    model => 'llm_model tiny %%DIR%%/tiny.bin threads=1 alias=whisper-1;');
$t->write_file('tiny.bin', model(51865));
$t->write_file('a.wav', wav());
$t->start;

tap_ok('Python, transcriptions', "$deps/venv/bin/python",
       "$sdk/openai_audio.py", 'http://127.0.0.1:' . $t->port . '/v1',
       $t->dir . '/a.wav');

$t->stop(name => 'speech');

# with keys

my %secret = (good => 'sk-llm-' . 'g' x 43, narrow => 'sk-llm-' . 'n' x 43);

$t = LLM::Test->new(location => 'llm_api_keys keys;');
$t->write_file('keys', join '', map {
    sprintf qq({"id":"%s","sha256":"%s"%s}\n), $_, sha256_hex($secret{$_}),
        $_ eq 'narrow' ? ',"models":[],"scopes":["generate"]' : ''
} sort keys %secret);
$t->start;

$url = 'http://127.0.0.1:' . $t->port . '/v1';

tap_ok('Python, API keys', "$deps/venv/bin/python", "$sdk/keys.py", $url,
       @secret{qw(good narrow)});
tap_ok('JavaScript, API keys', 'node', "$sdk/keys.mjs", $url,
       @secret{qw(good narrow)});

$t->stop(name => 'with keys');

done_testing();
