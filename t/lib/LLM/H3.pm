package LLM::H3;

# One HTTP/3 connection and its requests, by a client in Python (../h3.py, on
# aioquic), with the interface of LLM::H2:
#
#   my $c = LLM::H3->new(port => 8443);
#   my $id = $c->post('/v1/completions', { ... });
#   $c->wait_event($id, 3);
#   $c->rst($id);
#
# A stream is { status, headers, data, done, rst }.

use strict;
use warnings;

use parent 'LLM::H2';

use IPC::Open2;
use LLM::JSON;

use LLM::Test;

my $JSON = LLM::JSON->new->ascii->canonical;
my $PYTHON = "$LLM::Test::ROOT/.deps/venv/bin/python";


# the reason why HTTP/3 cannot be tested here; undef: it can

sub missing {
    return 'nginx without HTTP/3 (--with-http_v3_module)'
        if `nginx -V 2>&1` !~ /--with-http_v3_module/;

    return 'no aioquic in .deps/venv (t/requirements.txt)'
        if system("$PYTHON -c 'import aioquic' 2>/dev/null") != 0;

    return;
}


# Options: port, window (of each stream, in bytes; a held stream's window is not
# enlarged)

sub new {
    my ($class, %o) = @_;

    my $pid = open2(my $out, my $in, $PYTHON,
                    "$LLM::Test::ROOT/t/lib/h3.py", $o{port},
                    $o{window} // 1 << 20);

    $in->autoflush(1);

    return bless { socket => $out, commands => $in, pid => $pid, next => 0,
                   buffer => '', streams => {} }, $class;
}


sub command {
    my ($self, $do, $id, %fields) = @_;

    local $SIG{PIPE} = 'IGNORE';

    print { $self->{commands} }
        $JSON->encode({ do => $do, id => $id, %fields }), "\n";
}


# Options: send (send only this number of bytes of the body), hold (do not
# enlarge the stream's window)

sub request {
    my ($self, $method, $path, $body, %o) = @_;

    my $id = $self->{next}++;
    my $text = ref $body ? LLM::JSON->new->utf8->encode($body) : $body // '';

    $self->{streams}{$id} = { data => '' };
    $self->command('request', $id, method => $method, path => $path,
                   body => $text, send => $o{send} // length $text,
                   hold => $o{hold} ? \1 : \0);

    return $id;
}


sub post {
    my ($self, $path, $body, %o) = @_;

    return $self->request('POST', $path, $body, %o);
}


sub rst     { $_[0]->command('reset', $_[1]) }
sub release { $_[0]->command('release', $_[1]) }


# reads more output of the client; false at its end; dies if it ends before a
# request does, except in close()

sub fill {
    my ($self) = @_;

    my $n = sysread $self->{socket}, $self->{buffer}, 65536,
                    length $self->{buffer};

    while ($self->{buffer} =~ s/^(.*)\n//) {
        my $said = $JSON->decode($1);

        if (exists $said->{closed}) {
            $self->{closed} = $said->{closed};
            next;
        }

        my $s = $self->{streams}{delete $said->{id}};

        $s->{data} .= delete $said->{data} // '';
        @$s{keys %$said} = values %$said;
    }

    if (!$n && !$self->{closing}
        && grep { !$_->{done} && !defined $_->{rst} }
           values %{ $self->{streams} })
    {
        die 'no connection: ', $self->{closed} // 'the client has ended', "\n";
    }

    return $n;
}


# sends a request; returns its stream when it has ended

sub response {
    my ($self, $method, $path, $body) = @_;

    return $self->wait_done($self->request($method, $path, $body));
}


sub close {
    my ($self) = @_;

    $self->{closing} = 1;
    CORE::close($self->{commands});
    1 while $self->fill;
    waitpid delete $self->{pid}, 0;

    return $?;
}


sub DESTROY {
    my ($self) = @_;

    local ($?, $!);

    if ($self->{pid}) {
        kill 'KILL', $self->{pid};
        waitpid $self->{pid}, 0;
    }
}


1;
