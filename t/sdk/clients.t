#!/usr/bin/perl

# Frameworks and tools written in Python against a real server, each doing
# what its users do with it: clients/NAME_client.py prints TAP.  "./build.sh
# test" installs what clients/*.txt pin into .deps/clients; a list that it
# could not install is skipped.

use strict;
use warnings;

use File::Temp qw(tempdir);

use LLM::Media;
use LLM::Tap;
use LLM::Test;
use Test::More;

my $deps = "$LLM::Test::ROOT/.deps/clients";
my $scripts = "$LLM::Test::ROOT/t/sdk/clients";

# a client may read and write what is in its home, and has none but this

$ENV{HOME} = tempdir(CLEANUP => 1);
delete @ENV{grep { /^XDG_|_API_KEY$|_BASE_URL$/ } keys %ENV};

# they import thousands of files, and some are started many times

delete $ENV{PYTHONDONTWRITEBYTECODE};

# lm-eval asks for /tokenize, all others are content with /v1; aider's first
# message is longer than the demo model's context

my $t = LLM::Test->new(
    locations => 'location / { llm_api; client_max_body_size 8m; }'
               . ' location = /health { llm_health; }',
    model => 'llm_model demo %%ROOT%%/models/demo.gguf ctx=16384 threads=2'
           . ' parallel=8 alias=mini,gpt-4o-mini default;'
           . LLM::Media::models(),
    http => LLM::Media::http());

LLM::Media::files($t);
$t->start;
LLM::Media::known($t);

# requests with a picture
my %pictures = (langchain => 4, litellm => 3, open_webui => 1);

my $url = 'http://127.0.0.1:' . $t->port . '/v1';

for (['openai3', qw(langchain pydantic_ai openai_agents outlines guidance llm
                    lm_eval)],
     ['openai2', qw(llama_index litellm instructor dspy
                    open_webui)],
     ['aider', qw(aider)])
{
    my ($list, @names) = @$_;
    my $python = "$deps/$list/bin/python";

    SKIP: {
        skip "clients/$list.txt is not installed, see build.sh", scalar @names
            if !-e "$deps/$list/requirements.txt";

        for my $name (@names) {
            tap_ok($name, $python, "$scripts/${name}_client.py", $url);
            LLM::Media::pictures_ok($t, $name, $pictures{$name})
                if $pictures{$name};
        }
    }
}

$t->stop;

done_testing();
