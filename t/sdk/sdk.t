#!/usr/bin/perl

# The official clients for Python and JavaScript against a real server; each
# prints TAP, shown as a subtest.  "./build.sh test" installs the packages
# pinned in ../requirements.txt and package.json into .deps.

use strict;
use warnings;

use Digest::SHA qw(sha256_hex);
use LLM::Media;
use LLM::Tap;
use LLM::Made qw(script);
use LLM::Test;
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
        . " template=$agents/template.jinja threads=1;"
        . LLM::Media::models(),
    http => LLM::Media::http());

script($t->dir, "$agents/script.json");
LLM::Media::files($t);

$t->start;
LLM::Media::known($t);

my $url = 'http://127.0.0.1:' . $t->port . '/v1';

# of each: its requests with a picture

for my $client ([ 2, 'Python', "$deps/venv/bin/python",
                  "$sdk/openai_client.py" ],
                [ 2, 'JavaScript', 'node', "$sdk/openai_client.mjs" ],
                [ 2, 'Python, Responses', "$deps/venv/bin/python",
                  "$sdk/openai_responses.py" ],
                [ 2, 'JavaScript, Responses', 'node',
                  "$sdk/openai_responses.mjs" ],
                [ 2, 'Python, Messages', "$deps/venv/bin/python",
                  "$sdk/anthropic_client.py" ],
                [ 2, 'JavaScript, Messages', 'node',
                  "$sdk/anthropic_client.mjs" ],
                [ 4, 'JavaScript, the AI SDK', 'node', "$sdk/ai_sdk.mjs" ],
                [ 3, 'Python, Ollama', "$deps/venv/bin/python",
                  "$sdk/ollama_client.py" ],
                [ 1, 'JavaScript, Ollama', 'node', "$sdk/ollama_client.mjs" ],
                [ 0, 'Python, transcriptions', "$deps/venv/bin/python",
                  "$sdk/openai_audio.py" ])
{
    my ($pictures, @command) = @$client;

    tap_ok(@command, $url);
    LLM::Media::pictures_ok($t, $command[0], $pictures) if $pictures;
}

$t->stop;

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
