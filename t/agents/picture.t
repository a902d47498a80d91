#!/usr/bin/perl

# Claude Code with a picture: one that its tool Read gets from a file, which
# comes back in the tool's result, and one that is pasted into the question.
# The model calls the tool by a script, and says what has come: its template
# sees the places of pictures, and the engine puts the rows of an encoder there,
# which the log counts.

use strict;
use warnings;

use LLM::Alone;

use LLM::Agent;
use LLM::JSON;
use LLM::Made qw(script);
use LLM::Test;
use LLM::Tower;
use MIME::Base64 qw(encode_base64);
use Test::More;

my $t = LLM::Test->new(
    model => 'llm_model script %%DIR%%/script.gguf ctx=65536 threads=2'
           . " template=$LLM::Test::ROOT/t/agents/picture.jinja"
           . ' mmproj=%%DIR%%/mmproj.gguf;',
    http => 'client_max_body_size 8m; log_format agents "$uri $status'
          . ' $llm_prompt_tokens"; access_log logs/agents.log agents;');
my $agent = LLM::Agent->new('claude', model => 'script',
                            url => 'http://127.0.0.1:' . $t->port);
my $why = $agent->missing;

plan skip_all => $why if $why;

my $picture = LLM::Tower::png(40, 30, sub { (200, 30, $_[0]) });
my $path = $agent->{folder} . '/picture.png';

$agent->file('picture.png', $picture);
$t->write_file('script.json', encode_json({
    call => "<tool_call>\n" . encode_json({
        name => 'Read', arguments => { file_path => $path } })
        . "\n</tool_call>",
    read => 'The picture was read.',
    pasted => 'The picture was pasted.',
    lost => 'There was no picture.',
    none => 'There is no such tool.' }));

script($t->dir);
LLM::Tower::make($t->dir . '/mmproj.gguf');

$t->start;

my $run = $agent->ask('What is in picture.png?');

is($run->{status}, 0, 'ends well');
like($run->{out}, qr/The picture was read\./,
     'Read is offered and called, and its picture comes back')
    or diag($run->{out}, $run->{err});

# as an editor sends it; a question that names the path would be read first

$agent->file('question.jsonl', encode_json({
    type => 'user', message => { role => 'user', content => [
        { type => 'image', source => {
            type => 'base64', media_type => 'image/png',
            data => encode_base64($picture, '') } },
        { type => 'text', text => 'What is in this picture?' } ] } }) . "\n");

$run = $agent->run_with('question.jsonl', '-p', '--verbose',
                        qw(--input-format stream-json
                           --output-format stream-json));

is($run->{status}, 0, 'a pasted picture: ends well');
like($run->{out}, qr/The picture was pasted\./, 'and is seen')
    or diag(substr($run->{out}, -3000), $run->{err});

my @asked = grep { m{^/v1/messages } } split /\n/, $t->log('agents.log');

is(scalar(grep { !/ 200 / } @asked), 0, 'no request is refused')
    or diag(join "\n", @asked);

$t->stop;

done_testing();
