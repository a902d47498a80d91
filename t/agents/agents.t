#!/usr/bin/perl

# Agents as programs, against nginx: each is asked for what a file says, calls
# its shell tool, twice in one answer, gets what the calls have printed, and
# answers; then it is asked something else in the same talk; and what it says
# of a model whose context is too short.
#
# Their settings are those that docs/clients.md shows, which is checked, too.
#
# What the model says is a script (mkscript.py and template.jinja): two calls
# with reasoning and a text before them, then an answer that says whether the
# calls, the output and the reasoning came back.  All else is real: the
# agents with all their tools and prompts, nginx, the engine, the sampler, the
# parser of calls.  So this holds whatever the demo model has learnt.
#
# Then the demo model itself, by its own template: what it is asked for and what
# it makes of the answer is its own.  It is run greedily, as a file can advise.

use strict;
use warnings;

use LLM::Alone;

use LLM::JSON qw(decode_json);
use LLM::Agent;
use LLM::GGUF;
use LLM::Made qw(script);
use LLM::Test;
use Test::More;

my $here = "$LLM::Test::ROOT/t/agents";

# each agent's requests are counted by its own name of the model

my $names = join ',', LLM::Agent::names();
my $demos = join ',', map { "demo-$_" } LLM::Agent::names();

my $t = LLM::Test->new(
    model => "llm_model script %%DIR%%/script.gguf ctx=65536 threads=2"
        . " template=$here/template.jinja alias=$names;"
        . "llm_model short %%DIR%%/script.gguf ctx=4096 threads=2"
        . " template=$here/template.jinja;"
        . "llm_model demo %%DIR%%/demo.gguf ctx=65536 parallel=2 threads=2"
        . " alias=$demos;",
    http => 'client_max_body_size 8m;'
        . 'log_format agents "$request_method $uri $status'
        . ' $llm_finish_reason $llm_prompt_tokens $llm_cached_tokens";'
        . 'access_log logs/agents.log agents;');

script($t->dir, "$here/script.json");

LLM::GGUF::make("$LLM::Test::ROOT/models/demo.gguf", $t->dir . '/demo.gguf',
                kv => { 'general.sampling.temp' => [ f32 => 0 ] });

$t->start;

my $url = 'http://127.0.0.1:' . $t->port;


# The requests since the last call, of those that ask a model.  A request's line
# is written when all of its answer is sent: the agent that has read the answer
# may be gone by then, so $last, what the last line says, is waited for.

my $known = 0;

sub requests {
    my ($path, $last) = @_;

    LLM::Test::wait_for(10, sub {
        return substr($t->log('agents.log'), $known) =~ $last;
    });

    my $log = $t->log('agents.log');
    my $new = substr($log, $known);

    $known = length $log;

    return map { my %r;
                 @r{qw(method path status finish prompt cached)} = split / /;
                 $r{path} eq $path ? \%r : () }
           split /\n/, $new;
}


# a title of the talk has a shorter prompt

my $answered = qr/ stop \d{4,} /;


sub explain_run {
    my ($run) = @_;

    diag('status ' . ($run->{status} // 'none: it did not end'));
    diag(substr($run->{$_}, -3000)) for qw(out err);
}


for my $name (LLM::Agent::names()) {
    subtest $name => sub {
        my $agent = LLM::Agent->new($name, url => $url, model => $name);
        my $why = $agent->missing;

        plan skip_all => $why if $why;

        $agent->file('note.txt', "lilac\n");

        my $run = $agent->ask('Read note.txt and tell me what it says.');
        my @asked = requests($agent->path, $answered);

        # its title of the talk is one too, with no tools

        my @turns = grep { $_->{prompt} > 2000 } @asked;

        is($run->{status}, 0, 'ends well') or explain_run($run);
        is($agent->file('copy.txt'), "lilac\n", 'has run its tool');
        like($run->{out}, qr/The file says lilac, as I thought\./,
             'answers by what the tool has said, and what was thought')
            or explain_run($run);
        is(join(' ', map { $_->{finish} } @turns), 'tool_calls stop',
           'calls, then the answer');
        is(scalar(grep { $_->{status} != 200 } @asked), 0,
           'no request is refused');
        cmp_ok($turns[-1]{cached}, '>', 0.9 * $turns[0]{prompt},
               'the second prompt goes on from the first one');

        $run = $agent->go_on('Once more, please.');
        @turns = grep { $_->{prompt} > 2000 }
                     requests($agent->path, $answered);

        is($run->{status}, 0, 'goes on') or explain_run($run);
        like($run->{out}, qr/The file says lilac/, 'with the same talk')
            or explain_run($run);
        is(join(' ', map { "$_->{status} $_->{finish}" } @turns), '200 stop',
           'in one turn');
    };
}


# The demo model: it calls a tool, gets its result, and ends its turn with an
# answer.  Whether it has called what it should is not asked here.

my $write = 'Create a file named hello.txt that contains the word hello.';
my %wish = (codex => 'Run the command ls');

for my $name (LLM::Agent::names()) {
    subtest "$name, the demo model" => sub {
        my $agent = LLM::Agent->new($name, url => $url,
                                    model => "demo-$name");
        my $why = $agent->missing;

        plan skip_all => $why if $why;

        my $run = $agent->ask($wish{$name} // $write);
        my @asked = requests($agent->path, $answered);
        my @turns = grep { $_->{prompt} > 2000 } @asked;

        is($run->{status}, 0, 'ends well') or explain_run($run);
        is(scalar(grep { $_->{status} != 200 } @asked), 0,
           'no request is refused');
        like(join(' ', map { $_->{finish} } @turns),
             qr/^(?:tool_calls )+stop$/, 'a call, then the answer');
        like($run->{out}, qr/\w/, 'which it shows') or explain_run($run);
    };
}


# Who knows this error, and says it in words of its own.  opencode would make
# its talk shorter again and again.

my %says = (codex => qr/ran out of room in the model's context window/,
            claude => qr/Prompt is too long/);

for my $name (sort keys %says) {
    subtest "$name, too short a context" => sub {
        my $agent = LLM::Agent->new($name, url => $url, model => 'short');
        my $why = $agent->missing;

        plan skip_all => $why if $why;

        my $run = $agent->ask('Read note.txt and tell me what it says.');

        ok($run->{status}, 'fails') or explain_run($run);
        like("$run->{out}$run->{err}", $says{$name}, 'and says why');
        is(join(' ', map { $_->{status} }
                         requests($agent->path, qr/^\S+ \S+ 400 /m)), '400',
           'after one request');
    };
}

$t->stop;


# ---- docs/clients.md ----

my ($section) = LLM::Agent::read_file("$LLM::Test::ROOT/docs/clients.md")
    =~ /^## Agents\n(.*?)(?=^## |\z)/ms;

my %shown;

while ($section =~ /^```(\w+)\n(.*?)^```\n/msg) {
    my ($kind, $text) = ($1, $2);
    my $name = { toml => 'codex', json => 'opencode' }->{$kind}
        // ($text =~ /\b(claude|qwen)\b[^=]*$/ ? $1 : next);

    $shown{$name} = $text;
}

for my $name (LLM::Agent::names()) {
    my ($text, $env) =
        LLM::Agent::settings($name, 'http://127.0.0.1:8080', 'demo');
    my $said = $shown{$name} // '';

    if (%$env) {
        is_deeply({ $said =~ /(\w+)=(\S+)/g }, $env, "clients.md: $name");
    } elsif ($text =~ /^\{/) {
        is_deeply(eval { decode_json($said) }, decode_json($text),
                  "clients.md: $name");
    } else {
        is($said, $text, "clients.md: $name");
    }
}

done_testing();
