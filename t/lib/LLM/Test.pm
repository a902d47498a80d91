package LLM::Test;

# Runs a real nginx on a free port, in a folder of its own, and has a small HTTP
# client for it (LLM::Client).  A test makes one, sends requests to it, and
# calls stop(), which checks that all processes have ended, that the error log
# has no alert or worse, and that there is no core dump.
#
#   my $t = LLM::Test->new(location => 'llm_max_tokens 8;')->start;
#   my $res = $t->post('/v1/chat/completions', { messages => [ ... ] });
#   $t->stop;
#   done_testing();
#
# Environment: LLM_OBJS (the build folder), LLM_SAN=asan (nginx runs with the
# sanitizer's library), LLM_KEEP=1 (the folder is kept).

use strict;
use warnings;

use Cwd qw(abs_path);
use Exporter qw(import);
use File::Basename qw(dirname);
use File::Path qw(remove_tree);
use File::Temp qw(tempdir);
use IO::Socket::INET;
use POSIX qw(:sys_wait_h);
use Test::More ();
use Time::HiRes qw(sleep time);

use LLM::Client;

our @EXPORT_OK = qw(slurp);

our $ROOT = abs_path(dirname(abs_path(__FILE__)) . '/../../..');
our $OBJS = $ENV{LLM_OBJS} || "$ROOT/objs";

# factor of all time limits of tests, as sanitizers are slow
our $SLOW = $ENV{LLM_SAN} ? 5 : 1;

# another factor of wait_for()'s limits, as other programs may use the machine;
# it costs no time when the condition becomes true
my $BUSY = 6;

$ENV{PATH} .= ':/usr/sbin';


# Options: main, http, server, location (text at that level), model (the
# llm_model lines), locations (instead of the standard ones), listen (more
# parameters), workers, connections, daemon (nginx runs as a daemon), conf (the
# whole file), pace.  %%PORT%% and the other names of expand() are replaced in
# all texts.
#
# pace => N slows down the engine, for tests that need a request to be running,
# or a model to be loading, until they are done with it: each call of
# clock_gettime() takes N ms in the scheduler's thread, which makes about five
# in a step, and in the loader's, which makes one for each tensor.

sub new {
    my ($class, %opt) = @_;

    my $self = bless {
        opt => \%opt,
        dir => tempdir('llm-test-XXXXXX', TMPDIR => 1),
        port => free_port(),
        owner => $$,
    }, $class;

    # so that a signal, too, ends the server (DESTROY)

    $SIG{$_} ||= sub { exit 1 } for qw(INT TERM);

    mkdir "$self->{dir}/$_" or die $! for qw(logs temp html);
    chmod 0755, $self->{dir};

    $self->write_conf($self->conf);

    return $self;
}


sub free_port {
    my $s = IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1',
                                  LocalPort => 0) or die "no port: $!";
    return $s->sockport;
}


sub port { $_[0]{port} }
sub dir  { $_[0]{dir} }


sub conf {
    my ($self) = @_;
    my $o = $self->{opt};

    return $o->{conf} if defined $o->{conf};

    my %v = (main => '', http => '', server => '', location => '',
             listen => '', model => default_model(), %$o);

    $v{workers} //= 1;
    $v{connections} //= 1024;
    my $daemon = $v{daemon} ? 'on' : 'off';
    my $user = $> == 0 ? 'user root;' : '';

    $v{locations} //= <<"END";
        location /v1 { llm_api; $v{location} }
        location = /health { llm_health; }
        location = /figures { llm_metrics json; }
END

    # nginx gives a new binary (USR2) only the variables that are named

    my $preload = $ENV{LLM_SAN} ? 'env LD_PRELOAD; env ASAN_OPTIONS;' : '';

    return <<"END";
load_module %%OBJS%%/ngx_http_llm_module.so;
$preload
daemon $daemon;
$user
worker_processes $v{workers};
error_log logs/error.log info;
pid logs/nginx.pid;
$v{main}
events { worker_connections $v{connections}; }
http {
    client_body_temp_path temp/body;
    proxy_temp_path temp/proxy;
    fastcgi_temp_path temp/fastcgi;
    uwsgi_temp_path temp/uwsgi;
    scgi_temp_path temp/scgi;
    access_log logs/access.log;
    # tests may stop reading for long, on a slow machine for longer
    send_timeout 30m;
    $v{model}
    $v{http}
    server {
        listen 127.0.0.1:%%PORT%% $v{listen};
        $v{server}
$v{locations}
    }
}
END
}


sub default_model {
    return 'llm_model demo %%ROOT%%/models/demo.gguf alias=gpt-4o-mini,mini'
         . ' threads=2 parallel=8 default;';
}


# A model with random weights in the shape "tiny" (t/bench/mkmodel.py), for
# tests that need a long context or slow steps; kept in the build folder.

sub random_model {
    my ($layers, $ctx) = @_;

    my $file = "$OBJS/random-$layers-$ctx.gguf";
    my $make = "$ROOT/t/bench/mkmodel.py";

    if (!-e $file || -M $file > -M $make) {
        system('python3', $make, 'tiny', 'q8_0', "$file.$$", '--layers',
               $layers, '--ctx', $ctx) == 0 or die "no $file";
        rename "$file.$$", $file or die "$file: $!";
    }

    return $file;
}


sub expand {
    my ($self, $text) = @_;

    my %v = (PORT => $self->{port}, DIR => $self->{dir}, ROOT => $ROOT,
             OBJS => $OBJS, PORT2 => $self->{port2} ||= free_port());

    $text =~ s/%%(\w+)%%/$v{$1} \/\/ die "no $1"/ge;

    return $text;
}


sub write_conf {
    my ($self, $text) = @_;

    $self->write_file('nginx.conf', $self->expand($text));
}


sub write_file {
    my ($self, $name, $text) = @_;

    open my $f, '>', "$self->{dir}/$name" or die "$name: $!";
    binmode $f;
    print $f $text;
    close $f or die "$name: $!";
}


sub command {
    my ($self, @args) = @_;

    return ('nginx', '-p', "$self->{dir}/", '-c', "$self->{dir}/nginx.conf",
            '-e', "$self->{dir}/logs/error.log", @args);
}


sub sanitized {
    return () if ($ENV{LLM_SAN} // '') ne 'asan';

    my @libs = map { my $l = `gcc -print-file-name=$_`; chomp $l; $l }
               qw(libasan.so libubsan.so);

    return (LD_PRELOAD => join(' ', @libs),
            ASAN_OPTIONS => 'detect_leaks=0:abort_on_error=1',
            UBSAN_OPTIONS => 'print_stacktrace=1');
}


# compiles C code to a library for LD_PRELOAD, in the server's folder;
# $t->{preloaded}: a list of those that the server is started with

sub preload {
    my ($self, $name, $code) = @_;

    my $lib = "$self->{dir}/$name.so";

    $self->write_file("$name.c", $code);
    system('cc', '-shared', '-fPIC', '-o', $lib, "$self->{dir}/$name.c",
           '-ldl') == 0 or die "no $name.so";

    return $lib;
}


sub paced {
    my ($self) = @_;

    my $pace = $self->{opt}{pace} or return ();
    my $ns = int $pace * 1e6;

    return $self->preload('pace', <<"END");
#define _GNU_SOURCE
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int
clock_gettime(clockid_t clock, struct timespec *t)
{
    char             name[16];
    struct timespec  nap = { 0, $ns };

    prctl(PR_GET_NAME, name);

    if (strcmp(name, "llm-schedule") == 0 || strcmp(name, "llm-load") == 0) {
        nanosleep(&nap, NULL);
    }

    return (int) syscall(SYS_clock_gettime, clock, t);
}
END
}


# the bytes of a file; a relative path is below the root of the project

sub slurp {
    my ($name) = @_;

    open my $f, '<', $name =~ m{^/} ? $name : "$ROOT/$name"
        or die "$name: $!";
    binmode $f;
    local $/;

    return scalar <$f>;
}


# runs nginx -t; returns its exit status and output.  $file: a configuration
# instead of nginx.conf, relative to the server's folder

sub check {
    my ($self, $file) = @_;

    my $pid = open(my $out, '-|') // die "fork: $!";

    if ($pid == 0) {
        open STDERR, '>&', \*STDOUT;
        my %env = sanitized();
        @ENV{keys %env} = values %env;
        exec 'nginx', '-p', "$self->{dir}/",
             '-c', $file // "$self->{dir}/nginx.conf", '-e', 'stderr', '-t'
            or POSIX::_exit(127);
    }

    my $text = join '', <$out>;
    close $out;

    return ($? >> 8, $text);
}


sub start {
    my ($self, %opt) = @_;

    $self->launch;

    $self->wait_port or die "nginx does not listen:\n" . $self->log;

    unless ($opt{cold}) {
        $self->wait_ready or die "no model is ready:\n" . $self->log;
    }

    return $self;
}


# Starts nginx as a daemon, as it handles USR2 only if it is not the child of
# the process that started it.  Returns the master's pid, or false.  conf() has
# "daemon on" from now on.

sub start_daemon {
    my ($self) = @_;

    $self->{opt}{conf} = $self->conf =~ s/daemon off/daemon on/r;
    $self->write_conf($self->conf);

    my %env = sanitized();
    local @ENV{keys %env} = values %env;
    my (undef, @args) = $self->command;

    # with an absolute path, by which it executes the new binary
    my ($nginx) = grep { -x } map { "$_/nginx" } split /:/, $ENV{PATH};

    return system($nginx, @args) == 0
           && wait_for(20, sub { $self->master });
}


# the master's pid, from its pid file

sub master {
    my ($self) = @_;

    open my $f, '<', $self->dir . '/logs/nginx.pid' or return;

    return (<$f> // '') =~ /^(\d+)/ ? $1 : undef;
}


# a fork whose child is $self->{pid}, unless it ends by itself; no signal ends the
# test before it knows

sub forked {
    my ($self) = @_;

    my $mask = POSIX::SigSet->new;
    POSIX::sigprocmask(POSIX::SIG_BLOCK,
                       POSIX::SigSet->new(POSIX::SIGINT, POSIX::SIGTERM),
                       $mask);

    my $pid = fork;
    $self->{pid} = $pid if $pid && !$self->{opt}{daemon};

    POSIX::sigprocmask(POSIX::SIG_SETMASK, $mask);

    return $pid // die "fork: $!";
}


sub launch {
    my ($self) = @_;

    my $pid = $self->forked;

    if ($pid == 0) {
        my %env = sanitized();
        @ENV{keys %env} = values %env;
        $ENV{LD_PRELOAD} = join ' ', $ENV{LD_PRELOAD} // (), $self->paced,
                                     @{ $self->{preloaded} // [] };
        setpgrp unless $self->{opt}{daemon};
        chdir $self->{dir};
        open STDIN, '<', '/dev/null';
        open STDOUT, '>>', "$self->{dir}/logs/stdout";
        open STDERR, '>>', "$self->{dir}/logs/stdout";
        exec $self->command or POSIX::_exit(127);
    }

    if (!$self->{opt}{daemon}) {
        # the child does so, too: who is first does it, as whoever dies next must
        # find the group
        return setpgrp $pid, $pid;
    }

    waitpid $pid, 0;
    die "nginx does not start:\n" . $self->log if $?;

    wait_for(20, sub { ($pid) = $self->log('nginx.pid') =~ /^(\d+)/ })
        or die "no pid in a file:\n" . $self->log;

    $self->{pid} = $pid;
}


sub wait_port {
    my ($self) = @_;

    return wait_for(20, sub {
        die "nginx has ended:\n" . $self->log if $self->ended;
        IO::Socket::INET->new(PeerAddr => '127.0.0.1',
                              PeerPort => $self->{port});
    });
}


sub wait_ready {
    my ($self) = @_;

    return wait_for(60, sub { $self->get('/health')->{status} == 200 });
}


# polls until the code returns a true value, and returns that; false after the
# time limit

sub wait_for {
    my ($seconds, $code) = @_;

    my $end = time + $seconds * $SLOW * $BUSY;

    while (time < $end) {
        my $got = $code->();
        return $got if $got;
        sleep 0.02;
    }

    return;
}


sub ended {
    my ($self) = @_;

    return 1 unless $self->{pid};

    if ($self->{opt}{daemon}) {
        return CORE::kill(0, $self->{pid}) ? undef : delete $self->{pid};
    }

    if (waitpid($self->{pid}, WNOHANG) == $self->{pid}) {
        $self->{exit} = $?;
        delete $self->{pid};
        return 1;
    }

    return;
}


sub log {
    my ($self, $name) = @_;

    my $text = '';

    for my $file ($name // ('error.log', 'stdout')) {
        open my $f, '<', "$self->{dir}/logs/$file" or next;
        local $/;
        $text .= <$f> // '';
    }

    return $text;
}


sub wait_log {
    my ($self, $re, $name) = @_;

    return wait_for(10, sub { $self->log($name) =~ $re });
}


sub kill {
    my ($self, $signal, $pid) = @_;

    CORE::kill($signal, $pid // $self->{pid});
}


# Suspends the master, or another process, by SIGSTOP, and returns when all its
# threads have stopped: on a busy machine, threads run on until the one that
# handles the signal is scheduled.

sub pause {
    my ($self, $pid) = @_;

    $pid //= $self->{pid};
    CORE::kill('STOP', $pid);

    wait_for(30, sub {
        !grep { thread_state($_) !~ /^[TtZ]?$/ } glob "/proc/$pid/task/*"
    }) or die "process $pid does not stop";
}


# the state of a thread or process by its folder in /proc: R, S ...; "": it has
# ended

sub thread_state {
    my ($dir) = @_;

    open my $f, '<', "$dir/stat" or return '';
    my $line = <$f> // '';

    return $line =~ /.*\) (\S)/s ? $1 : '';
}


# have all threads of a process ended?  The main thread of a killed process may
# end before other threads, which still hold the sockets

sub gone {
    my ($pid) = @_;

    return !grep { thread_state($_) =~ /[^Z]/ } glob "/proc/$pid/task/*";
}


# the workers' pids: the master's children in /proc

sub workers {
    my ($self) = @_;

    my $pid = $self->{pid} // return;
    my @pids;

    for my $dir (glob '/proc/[0-9]*') {
        open my $f, '<', "$dir/stat" or next;
        my $line = <$f> // next;
        close $f;

        my ($id, $state, $parent) = $line =~ /^(\d+) \(.*\) (\S) (\d+)/s
            or next;

        next if $parent != $pid || $state eq 'Z';

        if (open my $c, '<', "$dir/cmdline") {
            push @pids, $id if (<$c> // '') =~ /worker process/;
        }
    }

    @pids = sort { $a <=> $b } @pids;

    return @pids;
}


# the pid of the worker that runs the engine's threads: the one with most
# threads

sub engine_worker {
    my ($self) = @_;

    my %threads = map {
        my @tasks = glob "/proc/$_/task/*";
        $_ => scalar @tasks
    } $self->workers;

    my ($pid) = sort { $threads{$b} <=> $threads{$a} } keys %threads;

    return $pid;
}


# what a process holds: file descriptors, kB of memory (own: without shared
# memory and files), mapped zones

sub holds {
    my ($pid) = @_;

    my @fds = glob "/proc/$pid/fd/*";
    my %held = (fds => scalar @fds);

    if (open my $f, '<', "/proc/$pid/status") {
        my $status = join '', <$f>;

        ($held{kb}) = $status =~ /^VmRSS:\s+(\d+)/m;
        ($held{own}) = $status =~ /^RssAnon:\s+(\d+)/m;
    }

    if (open my $f, '<', "/proc/$pid/maps") {
        $held{zones} = grep { m{^\S+ rw-s .*/dev/zero} } <$f>;
    }

    return \%held;
}


# reloads and waits until the new workers are there; returns the old ones

sub reload {
    my ($self) = @_;

    my %old = map { $_ => 1 } $self->workers;

    $self->kill('HUP');

    wait_for(20, sub { grep { !$old{$_} } $self->workers })
        or die "no new worker after a reload:\n" . $self->log;

    return keys %old;
}


# Terminates the workers while the master is suspended, then the master: it
# would kill workers that take longer than 1.5 s to end, as on a busy machine.

sub terminate {
    my ($self) = @_;

    $self->pause;
    $self->kill('TERM', $_) for $self->workers;

    wait_for(15, sub { !$self->workers });

    $self->kill('TERM');
    $self->kill('CONT');
}


# ends nginx, by TERM or another signal, and checks its log and core dumps

sub stop {
    my ($self, %opt) = @_;

    my $name = $opt{name} // 'server';

    if (!$self->ended) {
        $opt{signal} ? $self->kill($opt{signal}) : $self->terminate;
    }

    my $down = wait_for($opt{seconds} // 15, sub { $self->ended });

    Test::More::ok($down, "$name: nginx ended");

    if (!$down) {
        CORE::kill('KILL', -$self->{pid});
        waitpid($self->{pid}, 0);
        delete $self->{pid};
    }

    my $bad = $self->alerts($opt{allow});

    Test::More::is($bad, '', "$name: nothing grave in the error log");

    my @cores = glob "$self->{dir}/core*";

    Test::More::is(scalar @cores, 0, "$name: no core dumped") if @cores;
}


sub alerts {
    my ($self, $allow) = @_;

    return join '', grep {
        (/\[(?:alert|crit|emerg)\]/ || /AddressSanitizer|runtime error:/)
            && !($allow && /$allow/)
    } map { "$_\n" } split /\n/, $self->log;
}


# ---- requests ----

sub get {
    my ($self, $path, %opt) = @_;

    return $self->request(method => 'GET', path => $path, %opt);
}


sub post {
    my ($self, $path, $body, %opt) = @_;

    return $self->request(method => 'POST', path => $path, body => $body,
                          %opt);
}


# values of llm_metrics json: of the only model, and {workers}

sub figures {
    my ($self) = @_;

    my $json = $self->get('/figures')->{json} or die 'no figures';

    return { %{ $json->{models}[0] }, workers => $json->{workers} };
}


sub request {
    my ($self, %opt) = @_;

    return LLM::Client->open(port => $self->{port}, %opt)->response;
}


# sends a request whose answer is read event by event, see LLM::Client

sub open {
    my ($self, $path, $body, %opt) = @_;

    return LLM::Client->open(port => $self->{port}, method => 'POST',
                             path => $path, body => $body, %opt);
}


# a value of /metrics, by name with or without labels; the sum, if several
# samples have the name

sub figure {
    my ($self, $name) = @_;

    my $res = $self->get('/metrics');
    my ($sum, $found) = (0, 0);

    for (split /\n/, $res->{body}) {
        if (/^\Q$name\E(?:\{[^ ]*\})? (\S+)$/) {
            $sum += $1;
            $found = 1;
        }
    }

    die "no figure $name" unless $found;

    return $sum;
}


# waits until $n requests are in the queue

sub wait_queued {
    my ($self, $n) = @_;

    return wait_for(60, sub {
        $self->figure('vllm:num_requests_waiting') == $n;
    });
}


sub chat {
    my ($self, $text, %fields) = @_;

    return $self->post('/v1/chat/completions', {
        messages => [ { role => 'user', content => $text } ], %fields });
}


sub open_chat {
    my ($self, $text, %fields) = @_;

    return $self->open('/v1/chat/completions', {
        messages => [ { role => 'user', content => $text } ],
        stream => \1, %fields });
}


# a stream of max_tokens tokens, for tests that end it before

sub open_long {
    my ($self, %fields) = @_;

    my %request = map { $_ => delete $fields{$_} }
                  grep { exists $fields{$_} } qw(port headers http timeout rcvbuf);

    return $self->open('/v1/completions', {
        prompt => 'a', stream => \1, ignore_eos => \1, max_tokens => 1500,
        %fields }, light => 1, %request);
}


sub DESTROY {
    my ($self) = @_;

    local ($?, $@, $!);

    return if $$ != $self->{owner};

    if ($self->{pid}) {
        CORE::kill('KILL', -$self->{pid});
        waitpid($self->{pid}, 0);
    }

    if ($ENV{LLM_KEEP}) {
        print STDERR "# kept: $self->{dir}\n";

    } else {
        remove_tree($self->{dir});
    }
}


1;
