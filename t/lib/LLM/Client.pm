package LLM::Client;

# One HTTP/1.1 request over a socket of its own (or a given one), checked byte
# by byte: status, headers, body, and for event streams each event as it comes.
# Uses core modules only.
#
#   LLM::Client->open(port => 8080, method => 'POST', path => '/',
#                     body => { ... })->response
#
# response() is { status, headers (lower case), body, json, socket }.

use strict;
use warnings;

use IO::Select;
use IO::Socket::INET;
use LLM::JSON;
use Socket qw(SO_RCVBUF SOL_SOCKET);
use Time::HiRes qw(time);

my $JSON = LLM::JSON->new->utf8->canonical->allow_nonref;

# a chunk of a completion: with the option "light", only the text is taken from
# it, so that the client keeps up with thousands of streams
my $LIGHT = qr/"text":"([^"\\]*)".*"finish_reason":null/;


# Options: port, method, path, headers {}, body (a string or a structure),
# http ("1.0"), keepalive, socket (kept alive by an earlier request), timeout
# (seconds without bytes), rcvbuf, light, raw (bytes sent instead of a request),
# from (source address).

sub open {
    my ($class, %o) = @_;

    my $self = bless { buffer => '', timeout => $o{timeout} // 360,
                       light => $o{light}, keepalive => $o{keepalive},
                       text => '', started => time },
                     $class;

    my $body = $o{body};
    $body = $JSON->encode($body) if ref $body;

    $self->{socket} = $o{socket} || connect_to($o{port}, $o{rcvbuf}, $o{from});
    $self->{head} = ($o{method} // '') eq 'HEAD';

    my $text = $o{raw};

    if (!defined $text) {
        my %h = ('Host' => 'localhost', %{ $o{headers} || {} });

        $h{'Connection'} //= 'close' unless $o{keepalive};

        if (defined $body) {
            $h{'Content-Type'} //= 'application/json';
            $h{'Content-Length'} //= length $body
                unless $h{'Transfer-Encoding'};
        }

        $text = "$o{method} $o{path} HTTP/" . ($o{http} // '1.1') . "\r\n"
              . join('', map { "$_: $h{$_}\r\n" } sort keys %h) . "\r\n"
              . ($body // '');
    }

    $self->write($text);

    return $self;
}


sub connect_to {
    my ($port, $rcvbuf, $from) = @_;

    my $s = IO::Socket::INET->new(Proto => 'tcp', LocalAddr => $from)
        or die "socket: $!";

    setsockopt($s, SOL_SOCKET, SO_RCVBUF, pack('i', $rcvbuf)) if $rcvbuf;

    connect($s, Socket::pack_sockaddr_in($port,
                                         Socket::inet_aton('127.0.0.1')))
        or die "connect to $port: $!";

    binmode $s;

    return $s;
}


sub write {
    my ($self, $text) = @_;

    local $SIG{PIPE} = 'IGNORE';

    my $off = 0;

    while ($off < length $text) {
        my $n = syswrite($self->{socket}, $text, 65536, $off);
        last unless $n;      # the server's answer has the reason
        $off += $n;
    }
}


# reads more bytes into the buffer; false at the end

sub fill {
    my ($self) = @_;

    return 0 if $self->{eof};

    if (!IO::Select->new($self->{socket})->can_read($self->{timeout})) {
        die "no answer within $self->{timeout} seconds\n";
    }

    my $n = sysread($self->{socket}, $self->{buffer}, 65536,
                    length $self->{buffer});

    $self->{eof} = 1 unless $n;

    return $n;
}


# those of the clients (also LLM::H2) that have bytes to read within the seconds

sub ready {
    my ($seconds, @open) = @_;

    my %open = map { fileno $_->{socket} => $_ } @open;

    return map { $open{ fileno $_ } }
           IO::Select->new(map { $_->{socket} } @open)->can_read($seconds);
}


# Reads all of these concurrently until the server has closed each.  If they
# were read one by one, the sockets of the others would fill up, and the server
# could not send their last bytes.

sub read_all {
    my @open = @_;

    while (@open) {
        my @ready = ready(360, @open) or die "no end within 360 seconds\n";
        my %ended = map { $_ => 1 } grep { !$_->fill } @ready;

        @open = grep { !$ended{$_} } @open;
    }
}


# Reads what has come so far.  A stream that is not read is parked when its
# sockets are full, and another request takes its place.

sub read_ready {
    $_->fill for ready(0, @_);
}


sub read_header {
    my ($self) = @_;

    return $self if $self->{status};

    while ($self->{buffer} !~ /\r\n\r\n/) {
        $self->fill or last;
    }

    if ($self->{buffer} !~ s/^(.*?)\r\n\r\n//s) {
        $self->{status} = 0;
        $self->{headers} = {};
        return $self;
    }

    my ($line, @lines) = split /\r\n/, $1;

    ($self->{status}) = $line =~ m{^HTTP/1\.\d (\d+)};
    $self->{first_byte} = time - $self->{started};

    if (($self->{status} // 0) == 100) {
        $self->{continued} = 1;
        delete $self->{status};
        return $self->read_header;
    }

    $self->{headers} = {};

    for (@lines) {
        my ($name, $value) = /^([^:]+):\s*(.*)$/ or next;
        $name = lc $name;
        $self->{headers}{$name} = exists $self->{headers}{$name}
            ? "$self->{headers}{$name}, $value" : $value;
    }

    $self->{chunked} = ($self->{headers}{'transfer-encoding'} // '')
                       =~ /chunked/;
    $self->{left} = $self->{headers}{'content-length'};

    return $self;
}


# the next piece of the body, undef at its end

sub piece {
    my ($self) = @_;

    $self->read_header;

    return if $self->{done};

    if ($self->{head} || $self->{status} == 204 || $self->{status} == 304) {
        $self->{done} = 1;
        return;
    }

    return $self->chunk if $self->{chunked};

    if (defined $self->{left} && $self->{left} == 0) {
        $self->{done} = 1;
        return;
    }

    if ($self->{buffer} eq '' && !$self->fill) {
        $self->{done} = 1;
        $self->{truncated} = defined $self->{left};
        return;
    }

    my $n = length $self->{buffer};
    $n = $self->{left} if defined $self->{left} && $n > $self->{left};
    $self->{left} -= $n if defined $self->{left};

    return substr $self->{buffer}, 0, $n, '';
}


sub chunk {
    my ($self) = @_;

    while ($self->{buffer} !~ /^[0-9a-fA-F]+\r\n/) {
        if (!$self->fill) {
            $self->{done} = $self->{truncated} = 1;
            return;
        }
    }

    my ($hex) = $self->{buffer} =~ /^([0-9a-fA-F]+)\r\n/;
    my $size = hex $hex;
    my $need = length($hex) + 2 + $size + 2;

    while (length $self->{buffer} < $need) {
        if (!$self->fill) {
            $self->{done} = $self->{truncated} = 1;
            return;
        }
    }

    my $data = substr $self->{buffer}, length($hex) + 2, $size;
    substr $self->{buffer}, 0, $need, '';

    if ($size == 0) {
        $self->{done} = 1;
        return;
    }

    return $data;
}


sub response {
    my ($self) = @_;

    my $body = '';

    while (defined(my $piece = $self->piece)) {
        $body .= $piece;
    }

    my $res = {
        status => $self->{status}, headers => $self->{headers},
        body => $body, socket => $self->{socket},
        truncated => $self->{truncated}, continued => $self->{continued},
        time => time - $self->{started},
    };

    if (($self->{headers}{'content-type'} // '') =~ m{^application/json}) {
        $res->{json} = eval { $JSON->decode($body) };
    }

    # nginx may linger, and log the request only after the client has closed
    CORE::close(delete $res->{socket}) unless $self->{keepalive};

    return $res;
}


# The next event of a stream: { name, data, json, comment, time }; undef at
# its end.  Dies on bytes that are not an event.  Appends the text of the first
# choice to {text} of the client.

sub event {
    my ($self) = @_;

    $self->{events} //= '';

    while ($self->{events} !~ /\n\n/) {
        my $piece = $self->piece;

        if (!defined $piece) {
            die "half an event: $self->{events}\n"
                if $self->{events} ne '' && !$self->{truncated};
            return;
        }

        $self->{events} .= $piece;
    }

    $self->{events} =~ s/^(.*?)\n\n//s;

    my $text = $1;
    my $event = { time => time - $self->{started} };

    $event->{name} = $1 if $text =~ s/^event: (.*)\n(?=data: )//;

    if ($text =~ /^data: (.*)$/s) {
        $event->{data} = $1;

        if ($self->{light} && $1 =~ $LIGHT) {
            $event->{text} = $1;
            $self->{text} .= $1;
            return $event;
        }

        $event->{json} = $JSON->decode($1) if $1 ne '[DONE]';

    } elsif ($text =~ /^:\s*(.*)$/s) {
        $event->{comment} = $1;

    } else {
        die "not an event: $text\n";
    }

    $self->{text} .= text_of($event);

    return $event;
}


# the remaining events

sub events {
    my ($self) = @_;

    my @events;

    while (my $e = $self->event) {
        push @events, $e;
    }

    CORE::close($self->{socket});

    return @events;
}


# the text of the first choice in events, chat or completions

sub text_of {
    my (@events) = @_;

    return join '', map {
        my $c = $_->{json} && $_->{json}{choices}[0];
        $_->{text} // ($c ? $c->{text} // $c->{delta}{content} // '' : '')
    } @events;
}


# closes the socket; with reset, or if there are unread bytes, by a TCP reset

sub close {
    my ($self, %opt) = @_;

    if ($opt{reset}) {
        setsockopt($self->{socket}, SOL_SOCKET, Socket::SO_LINGER(),
                   pack('ii', 1, 0));
    }

    CORE::close($self->{socket});
}


1;
