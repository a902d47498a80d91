package LLM::Agent;

# Runs coding agents as programs, as a user would run them in a script: in an
# empty folder, with a home folder that has only the settings for this server.
# They are pinned in t/agents/package.json; "./build.sh test" installs them into
# .deps/agents.
#
#   my $agent = LLM::Agent->new('codex', url => ..., model => ...);
#   my $run = $agent->ask('Read note.txt.');      # { status, out, err }
#   $run = $agent->go_on('And now?');             # the same conversation
#
# more => TEXT is appended to the settings.
#
# The folders are removed with the object.  An agent that runs longer than LIMIT
# seconds is killed with all its child processes; status is then undef.

use strict;
use warnings;

use File::Path qw(make_path);
use File::Temp qw(tempdir);
use LLM::JSON ();
use POSIX qw(:sys_wait_h);
use Time::HiRes qw(sleep time);

use LLM::Test;

use constant LIMIT => 300;

my $modules = "$LLM::Test::ROOT/.deps/agents/node_modules";

# Of each agent: the program, the path of its requests, the arguments before a
# question (ask), and those before the next question of the same conversation
# (go_on).  Its settings are those in docs/clients.md, in a file or in the
# environment; "quiet" and "quiet_env" stop requests to its vendor, and requests
# to the model other than the questions.

my %agents = (
    codex => {
        program => [ "$modules/\@openai/codex-linux-x64/vendor"
                     . '/x86_64-unknown-linux-musl/bin/codex' ],
        path => '/v1/responses',
        file => '.codex/config.toml',
        settings => sub { <<"END" },
model = "$_[1]"
model_provider = "nginx"
model_context_window = 65536

[model_providers.nginx]
name = "nginx"
base_url = "$_[0]/v1"
wire_api = "responses"
END
        quiet => sub { "check_for_update_on_startup = false\n"
                       . "analytics.enabled = false\n$_[0]" },
        ask => [ qw(exec --skip-git-repo-check
                    --dangerously-bypass-approvals-and-sandbox) ],
        go_on => [ qw(exec resume --last --skip-git-repo-check
                      --dangerously-bypass-approvals-and-sandbox) ],
    },

    claude => {
        program => [ "$modules/\@anthropic-ai/claude-code-linux-x64/claude" ],
        path => '/v1/messages',
        env => sub { return {
            ANTHROPIC_BASE_URL => $_[0], ANTHROPIC_AUTH_TOKEN => 'none',
            ANTHROPIC_MODEL => $_[1], ANTHROPIC_DEFAULT_HAIKU_MODEL => $_[1],
            CLAUDE_CODE_MAX_CONTEXT_TOKENS => 65536,
        } },
        quiet_env => { CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC => 1,
                       DISABLE_AUTOUPDATER => 1 },
        ask => [ qw(--allowedTools Bash -p) ],
        go_on => [ qw(--continue --allowedTools Bash -p) ],
    },

    opencode => {
        program => [ "$modules/opencode-linux-x64/bin/opencode" ],
        path => '/v1/chat/completions',
        file => '.config/opencode/opencode.json',
        settings => sub { encode({
            provider => { nginx => {
                npm => '@ai-sdk/openai-compatible', name => 'nginx',
                options => { baseURL => "$_[0]/v1", apiKey => 'none' },
                models => { $_[1] => {
                    name => $_[1], tool_call => LLM::JSON::true,
                    limit => { context => 65536, output => 4096 } } } } },
            model => "nginx/$_[1]", small_model => "nginx/$_[1]",
        }) },
        quiet => sub { encode({ %{ LLM::JSON::decode_json($_[0]) },
                                autoupdate => LLM::JSON::false,
                                share => 'disabled' }) },
        quiet_env => { OPENCODE_DISABLE_AUTOUPDATE => 1,
                       OPENCODE_DISABLE_MODELS_FETCH => 1,
                       OPENCODE_DISABLE_LSP_DOWNLOAD => 1 },
        ask => [ 'run' ],
        go_on => [ 'run', '--continue' ],
    },

    qwen => {
        # Debian 12's Node is too old for it
        program => [ "$modules/.bin/node", "$modules/.bin/qwen" ],
        path => '/v1/chat/completions',
        env => sub { return {
            OPENAI_BASE_URL => "$_[0]/v1", OPENAI_API_KEY => 'none',
            OPENAI_MODEL => $_[1],
        } },
        file => '.qwen/settings.json',
        quiet => sub { encode({
            privacy => { usageStatisticsEnabled => LLM::JSON::false },
            general => { enableAutoUpdate => LLM::JSON::false },

            # requests to the model after the conversation
            memory => { map { $_ => LLM::JSON::false }
                        qw(enableManagedAutoMemory enableManagedAutoDream
                           enableAutoSkill) },
        }) },
        ask => [ qw(--auth-type openai --yolo -p) ],
        go_on => [ qw(--auth-type openai --yolo --continue -p) ],
    },
);


sub encode { return LLM::JSON->new->canonical->pretty->encode($_[0]) }


sub names { return sort keys %agents }


sub new {
    my ($class, $name, %opt) = @_;

    my $a = $agents{$name} or die "no agent $name";
    my $home = tempdir('llm-agent-XXXXXX', TMPDIR => 1, CLEANUP => 1);

    my $self = bless { %$a, name => $name, home => $home,
                       folder => "$home/work" }, $class;

    make_path($self->{folder}, "$home/tmp");

    my ($text, $env) = settings($name, @opt{qw(url model)});

    $self->{environment} = {
        PATH => $ENV{PATH}, HOME => $home, TMPDIR => "$home/tmp",
        LANG => 'C.UTF-8', TERM => 'dumb', NO_COLOR => 1,
        %$env, %{ $a->{quiet_env} // {} },
    };

    if ($a->{file}) {
        my ($dir) = "$home/$a->{file}" =~ m{(.*)/};

        make_path($dir);
        write_file("$home/$a->{file}",
                   $a->{quiet}->($text) . ($opt{more} // ''));
    }

    return $self;
}


# a user's settings: the text of a file or undef, and a hash of the environment

sub settings {
    my ($name, $url, $model) = @_;

    my $a = $agents{$name};

    return ($a->{settings} && $a->{settings}->($url, $model),
            $a->{env} ? $a->{env}->($url, $model) : {});
}


sub write_file {
    my ($path, $text) = @_;

    open my $f, '>', $path or die "$path: $!";
    print $f $text;
    close $f or die "$path: $!";
}


sub read_file {
    my ($path) = @_;

    open my $f, '<', $path or return;
    local $/;
    return scalar <$f>;
}


sub path { $_[0]{path} }


# the text of a file in the folder that the agent works in; writes $text first,
# if it is given

sub file {
    my ($self, $name, $text) = @_;

    write_file("$self->{folder}/$name", $text) if defined $text;

    return read_file("$self->{folder}/$name");
}


# the reason why the agent cannot run here; "": it can

my %missing;

sub missing {
    my ($self) = @_;

    return $missing{ $self->{name} } //= $self->look;
}


sub look {
    my ($self) = @_;

    my ($program) = grep { m{/} } @{ $self->{program} };

    return "no $program" if !-e $program;

    my $run = $self->run('--version');

    return '' if defined $run->{status} && $run->{status} == 0;
    return "it does not run here: $run->{err}$run->{out}";
}


sub ask { my ($self, $text) = @_; return $self->run(@{ $self->{ask} }, $text) }
sub go_on { my ($self, $text) = @_;
            return $self->run(@{ $self->{go_on} }, $text) }


sub run { my ($self, @args) = @_; return $self->run_with(undef, @args) }


# the same with a file of its folder as standard input

sub run_with {
    my ($self, $in, @args) = @_;

    my %file = map { $_ => "$self->{home}/$_" } qw(out err);
    my $pid = fork() // die "fork: $!";

    if ($pid == 0) {
        POSIX::setsid();
        chdir $self->{folder} or POSIX::_exit(126);
        open STDIN, '<', $in // '/dev/null' or POSIX::_exit(126);
        open STDOUT, '>', $file{out};
        open STDERR, '>', $file{err};
        %ENV = %{ $self->{environment} };
        exec { $self->{program}[0] } @{ $self->{program} }, @args
            or POSIX::_exit(127);
    }

    my $until = time() + LIMIT * $LLM::Test::SLOW;
    my $status;

    while (time() < $until) {
        if (waitpid($pid, WNOHANG) == $pid) {
            $status = $? & 127 ? undef : $? >> 8;
            undef $pid;
            last;
        }

        sleep 0.05;
    }

    if ($pid) {
        kill 'KILL', -$pid;
        waitpid $pid, 0;
    }

    return { status => $status,
             map { $_ => read_file($file{$_}) // '' } keys %file };
}

1;
