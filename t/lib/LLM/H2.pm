package LLM::H2;

# One HTTP/2 connection in clear text (RFC 9113, with prior knowledge) and its
# streams, frame by frame, for tests that curl cannot do, such as a reset of one
# stream of a connection, or a window that stays closed.
#
#   my $c = LLM::H2->new(port => 8080);
#   my $id = $c->post('/v1/completions', { ... });
#   $c->wait(sub { $c->{streams}{$id}{data} =~ /data: / });
#   $c->rst($id);
#
# A stream is { status, data, done, rst }.  Header blocks are sent without
# Huffman codes and tables (RFC 7541, section 6.2.2); of received ones only
# :status is read, which nginx puts first.

use strict;
use warnings;

use IO::Select;
use IO::Socket::INET;
use LLM::JSON;
use List::Util qw(min);
use Time::HiRes qw(time);

use constant { DATA => 0, HEADERS => 1, RST_STREAM => 3, SETTINGS => 4,
               PING => 6, GOAWAY => 7, WINDOW_UPDATE => 8 };

use constant { END_STREAM => 1, ACK => 1, END_HEADERS => 4 };

my $JSON = LLM::JSON->new->utf8->canonical;

# entries 8 to 14 of the static table
my @STATUS = (200, 204, 206, 304, 400, 404, 500);


# Options: port, window (initial window of streams, in bytes; default: no limit)

sub new {
    my ($class, %o) = @_;

    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1',
        PeerPort => $o{port}, Proto => 'tcp') or die "connect: $!";

    my $self = bless { socket => $socket, next => 1, buffer => '',
                       initial => 65535, room => 65535, streams => {} },
                     $class;

    $self->send_raw("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    $self->frame(SETTINGS, 0, 0, pack 'nN', 4, $o{window} // 0x7fffffff);
    $self->frame(WINDOW_UPDATE, 0, 0, pack 'N', 0x7fff0000 - 65535);

    return $self;
}


sub send_raw {
    my ($self, $bytes) = @_;

    local $SIG{PIPE} = 'IGNORE';

    while (length $bytes) {
        my $n = syswrite $self->{socket}, $bytes or last;
        substr $bytes, 0, $n, '';
    }
}


sub frame {
    my ($self, $type, $flags, $id, $payload) = @_;

    my $head = substr pack('N', length $payload), 1;

    $self->send_raw($head . pack('CCN', $type, $flags, $id) . $payload);
}


sub post {
    my ($self, $path, $body) = @_;

    my $id = $self->{next};
    my $text = ref $body ? $JSON->encode($body) : $body;
    my $block = '';

    for ([ ':method', 'POST' ], [ ':scheme', 'http' ], [ ':path', $path ],
         [ ':authority', 'localhost' ],
         [ 'content-type', 'application/json' ],
         [ 'content-length', length $text ])
    {
        $block .= join '', "\0", map { chr(length) . $_ } @$_;
    }

    $self->{next} += 2;
    my $s = $self->{streams}{$id} = { data => '', room => $self->{initial} };

    $self->frame(HEADERS, END_HEADERS, $id, $block);

    while (1) {
        $self->wait(sub { $s->{room} > 0 && $self->{room} > 0 });

        my $piece = substr $text, 0, min(16384, $s->{room}, $self->{room}),
                           '';

        $_->{room} -= length $piece for $s, $self;
        $self->frame(DATA, length $text ? 0 : END_STREAM, $id, $piece);

        return $id if $text eq '';
    }
}


sub rst {
    my ($self, $id) = @_;

    $self->frame(RST_STREAM, 0, $id, pack 'N', 8);      # CANCEL
}


# lets the server send $n more bytes in the stream

sub open_window {
    my ($self, $id, $n) = @_;

    $self->frame(WINDOW_UPDATE, 0, $id, pack 'N', $n);
}


# reads until the code returns a true value, and returns that; false if the
# connection ends first

sub wait {
    my ($self, $code, $timeout) = @_;

    my $end = time + ($timeout // 360);

    while (1) {
        my $got = $code->();
        return $got if $got;

        my $left = $end - time;

        die "no answer in time\n" if $left <= 0
            || !IO::Select->new($self->{socket})->can_read($left);

        return $code->() unless $self->fill;
    }
}


# reads more frames; false at the end

sub fill {
    my ($self) = @_;

    my $n = sysread $self->{socket}, $self->{buffer}, 65536,
                    length $self->{buffer};

    1 while $self->parse;

    return $n;
}


sub wait_done {
    my ($self, $id) = @_;

    my $s = $self->{streams}{$id};

    $self->wait(sub { $s->{done} || defined $s->{rst} });

    return $s;
}


# waits for the stream's event number $n, counted from 1, or its end

sub wait_event {
    my ($self, $id, $n) = @_;

    my $s = $self->{streams}{$id};

    return $self->wait(sub {
        $s->{done} || ($s->{data} =~ s/^data: /data: /gm) >= ($n // 1)
    });
}


sub parse {
    my ($self) = @_;

    return if length $self->{buffer} < 9;

    my ($high, $low, $type, $flags, $id) = unpack 'CnCCN', $self->{buffer};
    my $len = $high << 16 | $low;

    return if length $self->{buffer} < 9 + $len;

    substr $self->{buffer}, 0, 9, '';

    my $payload = substr $self->{buffer}, 0, $len, '';
    my $s = $self->{streams}{$id} //= { data => '', room => 0 };

    if ($type == DATA) {
        $s->{data} .= $payload;

    } elsif ($type == HEADERS) {
        $s->{status} //= status($payload);

    } elsif ($type == RST_STREAM) {
        $s->{rst} = unpack 'N', $payload;

    } elsif ($type == WINDOW_UPDATE) {
        ($id ? $s : $self)->{room} += unpack 'N', $payload;

    } elsif ($type == SETTINGS && !($flags & ACK)) {
        $self->settings($payload);
        $self->frame(SETTINGS, ACK, 0, '');

    } elsif ($type == PING && !($flags & ACK)) {
        $self->frame(PING, ACK, 0, $payload);

    } elsif ($type == GOAWAY) {
        $self->{goaway} = 1;
    }

    if (($type == DATA || $type == HEADERS) && $flags & END_STREAM) {
        $s->{done} = 1;
    }

    return 1;
}


# a new initial window also changes the windows of open streams

sub settings {
    my ($self, $payload) = @_;

    while ($payload =~ /\G(..)(....)/gs) {
        next if unpack('n', $1) != 4;

        my $grown = unpack('N', $2) - $self->{initial};

        $self->{initial} += $grown;
        $_->{room} += $grown for values %{ $self->{streams} };
    }
}


sub status {
    my ($block) = @_;

    $block =~ s/^\x20//;                # a new size of the dynamic table: 0

    my $first = ord $block;

    return $STATUS[($first & 0x7f) - 8] if $first & 0x80;
    return $1 if $block =~ /^[\x08\x48]\x03(\d{3})/;

    die 'not a status: ' . unpack 'H*', $block;
}


# the data of a stream's events; the text of a stream's first choice

sub events {
    my ($s) = @_;

    return map { /^data: (.*)/s ? $1 : () } split /\n\n/, $s->{data};
}


sub text {
    my ($s) = @_;

    return join '', map {
        $_ eq '[DONE]' ? '' : $JSON->decode($_)->{choices}[0]{text} // ''
    } events($s);
}


1;
