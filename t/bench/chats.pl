#!/usr/bin/perl

# Chats that share a system prompt, 1, 4, 16 and 64 at once: with the prefix
# cache, without it, and beside llama-server behind the same nginx.
#
#   [LLAMA_SERVER=path] ./build.sh bench chats [FILE.gguf]
#
# Without a file that of t/bench/run.sh is taken, or made: Qwen3-0.6B's shape
# with random weights.  All serve the same file to the same load generator,
# one after the other within each round, so that a change of the machine's
# mood meets all of them; the figures are medians of the rounds.
#
#   LLM_BENCH_REPS      rounds (3)
#   LLM_BENCH_TOKENS    tokens of an answer (32)
#   LLM_BENCH_RULES     sentences of the system prompt (30)
#   LLM_BENCH_CHATS     how many at once ("1 4 16 64")
#   LLM_BENCH_THREADS   threads of each server (all cores)
#   LLAMA_ARGS          more arguments for llama-server
#
# Each chat's question is new, also to the next round: what can be cached is
# the system prompt alone.  A request of each kind comes before the first
# round and is not counted.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Temp;
use JSON::PP;
use LLM::Test;
use Time::HiRes qw(time);

my $reps = $ENV{LLM_BENCH_REPS} || 3;
my $tokens = $ENV{LLM_BENCH_TOKENS} || 32;
my $rules = $ENV{LLM_BENCH_RULES} || 30;
my @chats = split ' ', $ENV{LLM_BENCH_CHATS} || '1 4 16 64';
my $threads = $ENV{LLM_BENCH_THREADS} || (`nproc` + 0);
my $llama = $ENV{LLAMA_SERVER};

my $objs = $LLM::Test::OBJS;
my $file = shift || "$objs/bench/qwen3-0.6b-q8_0.gguf";

if (!-e $file) {
    mkdir "$objs/bench";
    system("$LLM::Test::ROOT/t/bench/mkmodel.py", 'qwen3-0.6b', 'q8_0',
           $file) == 0 or die "no $file\n";
}

$file = abs_path($file) // die "no $file\n";

my ($most) = sort { $b <=> $a } @chats;
my $system = join ' ', map {
    "Rule $_: an answer about topic $_ is short, friendly and complete, and"
    . " names its sources."
} 1 .. $rules;

# room for each chat and no more: there are many, and the memory is taken

my $ctx = 256 * (int((count($system) + $tokens) / 256) + 2);

my $peer = LLM::Test::free_port();

my $t = LLM::Test->new(
    http => 'access_log off;',
    model => "llm_model bench $file ctx=$ctx parallel=$most"
           . " threads=$threads default; llm_queue $most timeout=3600s;",
    locations => <<"END");
        location /v1 { llm_api; }
        location = /health { llm_health; }
        location = /figures { llm_metrics json; }
        location /llama/ {
            proxy_pass http://127.0.0.1:$peer/;
            proxy_http_version 1.1;
            proxy_buffering off;
            proxy_read_timeout 3600s;
        }
END

# the tokens of a text

sub count {
    my ($text) = @_;

    my $tmp = File::Temp->new;

    print $tmp $text;
    close $tmp;

    my @ids = split ' ', `'$objs/llm' tokenize '$file' < '$tmp'`;

    return scalar @ids || die "no tokens\n";
}


# ---- one run of the load generator; its figures

my $runs = 0;

sub load {
    my ($path, $n, %fields) = @_;

    $runs++;

    my $body = JSON::PP->new->utf8->canonical->encode({
        stream => \1, stream_options => { include_usage => \1 },
        max_tokens => 777, ignore_eos => \1, temperature => 0, %fields,
        messages => [
            { role => 'system', content => $system },
            { role => 'user', content =>
                  "Run $runs, chat 888: what should I know about it?" },
        ] });

    $body =~ s/777/%o/;
    $body =~ s/888/%d/;
    $t->write_file('body', $body);

    my $pid = open(my $out, '-|', "$objs/load", '-j', '-u',
                   '127.0.0.1:' . $t->port, '-p', "$path/chat/completions",
                   '-c', $n, '-n', $n, '-o', $tokens,
                   '-b', $t->dir . '/body') or die "$objs/load: $!";
    my $json = decode_json(join('', <$out>) || '{}');

    close $out;

    return $json;
}


sub median {
    my @v = sort { $a <=> $b } @_;

    return $v[$#v / 2];
}


sub start_llama {
    my $pid = fork // die "fork: $!";

    if ($pid == 0) {
        open STDOUT, '>', $t->dir . '/llama.log';
        open STDERR, '>&', \*STDOUT;
        my @args = ('-m', $file, '--host', '127.0.0.1', '--port', $peer,
                    '-t', $threads, '-np', $most, '-c', $ctx * $most,
                    '--jinja', split ' ', $ENV{LLAMA_ARGS} // '');
        exec $llama, @args or POSIX::_exit(127);
    }

    LLM::Test::wait_for(600, sub {
        die "$llama has ended:\n" . `tail -n 5 '@{[ $t->dir ]}/llama.log'`
            if waitpid($pid, POSIX::WNOHANG()) == $pid;
        eval { $t->get('/llama/health')->{status} == 200 };
    }) or die "$llama does not answer\n";

    return $pid;
}


# whatever happens, nothing is left running

$SIG{INT} = $SIG{TERM} = sub { die "stopped\n" };

$t->start;

my $llama_pid = $llama ? start_llama() : undef;

my @kinds = ([ 'with cache', '/v1' ],
             [ 'without', '/v1', cache_prompt => \0 ]);

push @kinds, [ 'llama-server', '/llama/v1' ] if $llama;

my %got;

eval {
    load($_->[1], 1, @$_[2 .. $#$_]) for @kinds;

    for my $n (@chats) {
        for my $rep (1 .. $reps) {
            for my $kind (@kinds) {
                my ($name, $path, @fields) = @$kind;

                push @{ $got{$n}{$name} }, load($path, $n, @fields);
            }
        }
    }
};

my $failed = $@;

if ($llama_pid) {
    kill 'TERM', $llama_pid;
    waitpid $llama_pid, 0;
}

$t->kill('TERM');
LLM::Test::wait_for(15, sub { $t->ended });

die $failed if $failed;


# ---- what it was

(my $base = $file) =~ s{.*/}{};

printf "== %s, a system prompt of %d tokens, %d tokens an answer,"
     . " %d threads, median of %d rounds\n",
       $base, count($system), $tokens, $threads, $reps;
printf "%5s  %-12s  %9s  %12s  %12s  %s\n", 'chats', '', 'tokens/s',
       'TTFT p50 ms', 'TTFT p99 ms', 'errors';

my $errors = 0;

for my $n (@chats) {
    for my $kind (@kinds) {
        my @runs = @{ $got{$n}{$kind->[0]} };
        my $bad = 0;

        $bad += $_->{errors} // 1 for @runs;
        $errors += $bad;

        printf "%5d  %-12s  %9.1f  %12.1f  %12.1f  %6d\n", $n, $kind->[0],
               median(map { $_->{tokens_per_s} // 0 } @runs),
               median(map { $_->{ttft_ms}{p50} // 0 } @runs),
               median(map { $_->{ttft_ms}{p99} // 0 } @runs), $bad;
    }
}

exit($errors ? 1 : 0);
