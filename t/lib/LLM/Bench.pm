package LLM::Bench;

# Shared by benches over HTTP: one file, served by this module and, with
# LLAMA_SERVER, by llama-server through a proxy_pass of the same nginx, so that
# the same load generator measures both.  Kinds of load take turns within each
# round, so that changes of the machine's speed affect all of them; results are
# medians of the rounds.
#
#   LLM_BENCH_REPS      rounds (3)
#   LLM_BENCH_THREADS   threads of each server (all cores)
#   LLAMA_SERVER        the path of llama-server
#   LLAMA_ARGS          more arguments for it
#
# The default file is that of t/bench/run.sh, which is made if it is missing:
# the shape of Qwen3-0.6B with random weights.

use strict;
use warnings;

use Cwd qw(abs_path);
use File::Temp;
use LLM::JSON;
use LLM::Test;
use POSIX ();

my $objs = $LLM::Test::OBJS;


# the path of this file, or of the one that is made

sub file {
    my ($file) = @_;

    $file ||= "$objs/bench/qwen3-0.6b-q8_0.gguf";

    if (!-e $file) {
        mkdir "$objs/bench";
        system("$LLM::Test::ROOT/t/bench/mkmodel.py", 'qwen3-0.6b', 'q8_0',
               $file) == 0 or die "no $file\n";
    }

    return abs_path($file) // die("no $file\n");
}


# opt: file; ctx (tokens of a request) and parallel, of both servers

sub new {
    my ($class, %opt) = @_;

    return bless {
        %opt,
        file => file($opt{file}),
        reps => $ENV{LLM_BENCH_REPS} || 3,
        threads => $ENV{LLM_BENCH_THREADS} || (`nproc` + 0),
        llama => $ENV{LLAMA_SERVER},
        peer => LLM::Test::free_port(),
    }, $class;
}


# the number of tokens of a text

sub count {
    my ($self, $text) = @_;

    my $tmp = File::Temp->new;

    print $tmp $text;
    close $tmp;

    my @ids = split ' ', `'$objs/llm' tokenize '$self->{file}' < '$tmp'`;

    return scalar @ids || die "no tokens\n";
}


sub start {
    my ($self) = @_;

    my $t = $self->{t} = LLM::Test->new(
        http => 'access_log off;',
        model => "llm_model bench $self->{file} ctx=$self->{ctx}"
               . " parallel=$self->{parallel} threads=$self->{threads}"
               . " default; llm_queue $self->{parallel} timeout=3600s;",
        locations => <<"END");
        location /v1 { llm_api; }
        location = /health { llm_health; }
        location = /figures { llm_metrics json; }
        location /llama/ {
            proxy_pass http://127.0.0.1:$self->{peer}/;
            proxy_http_version 1.1;
            proxy_buffering off;
            proxy_read_timeout 3600s;
        }
END

    # so that a signal, too, stops the servers

    $SIG{INT} = $SIG{TERM} = sub { die "stopped\n" };

    $t->start;
    $self->start_llama if $self->{llama};

    return $self;
}


sub start_llama {
    my ($self) = @_;

    my $t = $self->{t};
    my $pid = fork // die "fork: $!";

    if ($pid == 0) {
        open STDOUT, '>', $t->dir . '/llama.log';
        open STDERR, '>&', \*STDOUT;
        my @args = ('-m', $self->{file}, '--host', '127.0.0.1',
                    '--port', $self->{peer}, '-t', $self->{threads},
                    '-np', $self->{parallel},
                    '-c', $self->{ctx} * $self->{parallel},
                    '--jinja', split ' ', $ENV{LLAMA_ARGS} // '');
        exec $self->{llama}, @args or POSIX::_exit(127);
    }

    $self->{llama_pid} = $pid;

    LLM::Test::wait_for(600, sub {
        die "$self->{llama} has ended:\n"
            . `tail -n 5 '@{[ $t->dir ]}/llama.log'`
            if waitpid($pid, POSIX::WNOHANG()) == $pid;
        eval { $t->get('/llama/health')->{status} == 200 };
    }) or die "$self->{llama} does not answer\n";
}


sub stop {
    my ($self) = @_;

    if (my $pid = delete $self->{llama_pid}) {
        kill 'TERM', $pid;
        waitpid $pid, 0;
    }

    $self->{t}->kill('TERM');
    LLM::Test::wait_for(15, sub { $self->{t}->ended });
}


# Runs the load generator with n concurrent streams, each a POST of the body to
# path; returns its results.  In the body, 777 stands for the number of tokens
# of an answer, 888 for the number of the request.  port: another server's
# than nginx's.

sub load {
    my ($self, $path, $body, %opt) = @_;

    my $t = $self->{t};
    my $text = LLM::JSON->new->utf8->canonical->encode({
        stream => \1, stream_options => { include_usage => \1 },
        max_tokens => 777, ignore_eos => \1, temperature => 0, %$body });

    $text =~ s/777/%o/;
    $text =~ s/888/%d/;
    $t->write_file('body', $text);

    my $pid = open(my $out, '-|', "$objs/load", '-j', '-u',
                   '127.0.0.1:' . ($opt{port} // $t->port), '-p', $path, '-c', $opt{n},
                   '-n', $opt{n}, '-o', $opt{tokens},
                   '-b', $t->dir . '/body') or die "$objs/load: $!";
    my $json = decode_json(join('', <$out>) || '{}');

    close $out;

    return $json;
}


# Calls warm(KIND) for each kind, then once(KIND, ROW) for each kind in each
# round of each row.  Returns the results of once() by row and name of the kind.
# Stops the servers, also after an error.

sub rounds {
    my ($self, %opt) = @_;

    my %got;

    eval {
        $opt{warm}->($_) for @{ $opt{kinds} };

        for my $row (@{ $opt{rows} }) {
            for my $rep (1 .. $self->{reps}) {
                push @{ $got{$row}{$_->[0]} }, $opt{once}->($_, $row)
                    for @{ $opt{kinds} };
            }
        }
    };

    my $failed = $@;

    $self->stop;
    die $failed if $failed;

    return \%got;
}


sub median {
    my @v = sort { $a <=> $b } @_;

    return $v[$#v / 2];
}


# prints the results of rounds() as a table; returns the number of errors

sub print_rows {
    my ($self, $got, %opt) = @_;

    my $errors = 0;

    printf "%-*s  %-12s  %9s  %12s  %12s  %11s  %s\n", $opt{width},
           $opt{title}, '', 'tokens/s', 'TTFT p50 ms', 'TTFT p99 ms',
           'ITL p99 ms', 'errors';

    for my $row (@{ $opt{rows} }) {
        for my $kind (@{ $opt{kinds} }) {
            my @runs = @{ $got->{$row}{$kind->[0]} };
            my $bad = 0;

            $bad += $_->{errors} // 1 for @runs;
            $errors += $bad;

            printf "%-*s  %-12s  %9.1f  %12.1f  %12.1f  %11.1f  %6d\n",
                   $opt{width}, $row, $kind->[0],
                   median(map { $_->{tokens_per_s} // 0 } @runs),
                   median(map { $_->{ttft_ms}{p50} // 0 } @runs),
                   median(map { $_->{ttft_ms}{p99} // 0 } @runs),
                   median(map { $_->{itl_ms}{p99} // 0 } @runs), $bad;
        }
    }

    return $errors;
}


1;
