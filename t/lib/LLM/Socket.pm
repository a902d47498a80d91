# A client of WebSockets (RFC 6455) for tests: frames as they are asked for, also
# wrong ones.

package LLM::Socket;

use strict;
use warnings;

use Digest::SHA qw(sha1_base64);
use IO::Socket::INET;
use LLM::JSON;
use MIME::Base64 qw(encode_base64);

our $WAIT = 60;                         # seconds for a frame


# opens a connection; after that {status} and {head} are those of the answer.
# headers => { name => value }, undef: without it

sub new {
    my ($class, %opt) = @_;

    my $key = encode_base64(join('', map { chr rand 256 } 1 .. 16), '');
    my $port = $opt{port};
    my $socket = $opt{socket} // IO::Socket::INET->new(
        PeerAddr => "127.0.0.1:$port", Timeout => $WAIT) or die "connect: $!";
    my %headers = (Host => "127.0.0.1:$port", Upgrade => 'websocket',
                   Connection => 'Upgrade', 'Sec-WebSocket-Version' => 13,
                   'Sec-WebSocket-Key' => $key, %{ $opt{headers} // {} });
    my $path = $opt{path} // '/v1/responses';
    my $self = bless { socket => $socket, in => '' }, $class;

    $self->raw(join '', "GET $path HTTP/1.1\r\n",
               (map { defined $headers{$_} ? "$_: $headers{$_}\r\n" : () }
                sort keys %headers), "\r\n", $opt{behind} // '');

    until ($self->{in} =~ /\r\n\r\n/) {
        $self->more or last;
    }

    ($self->{head}, $self->{in}) = split /\r\n\r\n/, $self->{in}, 2;
    $self->{head} //= '';
    $self->{in} //= '';
    ($self->{status}) = $self->{head} =~ m{^HTTP/1\.1 (\d+)};

    my $accept = sha1_base64($key . '258EAFA5-E914-47DA-95CA-C5AB0DC85B11')
               . '=';
    $self->{accepted} = $self->{head} =~ /^sec-websocket-accept: \Q$accept\E\r?$/mi;

    return $self;
}


sub raw {
    my ($self, $bytes) = @_;

    local $SIG{PIPE} = 'IGNORE';

    return $self->{socket}->print($bytes) && $self->{socket}->flush;
}


# a frame of a client; fin => 0, mask => 0 make it another one

sub frame_of {
    my ($opcode, $data, %opt) = @_;

    my $mask = $opt{mask} // 1 ? 0x80 : 0;
    my $n = length $data;
    my $key = pack 'N', int rand 2**32;

    return pack('C', (($opt{fin} // 1) << 7) | $opcode)
         . ($n < 126 ? pack 'C', $mask | $n
            : $n < 65536 ? pack 'Cn', $mask | 126, $n
            : pack 'CQ>', $mask | 127, $n)
         . ($mask ? $key . ($data ^ substr $key x ($n / 4 + 1), 0, $n) : $data);
}


sub frame {
    my $self = shift;

    return $self->raw(frame_of(@_));
}


# the bytes of a message: response.create with these members

sub ask_of {
    my (%body) = @_;

    return frame_of(1, encode_json({ type => 'response.create', %body }));
}


sub ask {
    my ($self, %body) = @_;

    return $self->raw(ask_of(%body));
}


sub more {
    my ($self) = @_;

    my $ready = '';
    vec($ready, fileno $self->{socket}, 1) = 1;

    return 0 unless select $ready, undef, undef, $WAIT;
    return sysread $self->{socket}, $self->{in}, 65536, length $self->{in};
}


sub bytes {
    my ($self, $n) = @_;

    while (length $self->{in} < $n) {
        $self->more or return;
    }

    return substr $self->{in}, 0, $n, '';
}


# the next frame: opcode and data; nothing: the connection has ended

sub next_frame {
    my ($self) = @_;

    my $head = $self->bytes(2) // return;
    my ($first, $n) = unpack 'CC', $head;

    $n = unpack 'n', $self->bytes(2) // return if $n == 126;
    $n = unpack 'Q>', $self->bytes(8) // return if $n == 127;

    my $data = $n ? $self->bytes($n) // return : '';

    return ($first & 0xf, $data);
}


# events of an answer, up to its last one; a close frame is an event, too

sub events {
    my ($self) = @_;

    my @events;

    while (my ($opcode, $data) = $self->next_frame) {
        if ($opcode == 9) {
            $self->frame(10, $data);

        } elsif ($opcode == 8) {
            return @events, { type => 'close', code => unpack('n', $data) // 0 };

        } elsif ($opcode == 1) {
            push @events, decode_json($data);
            return @events if $events[-1]{type}
                              =~ /^(?:response\.(?:completed|incomplete|failed)|error)$/;
        }
    }

    return @events, { type => 'end' };
}


sub text {
    my (@events) = @_;

    return join '', map { $_->{type} eq 'response.output_text.delta'
                          ? $_->{delta} : () } @events;
}


sub close { close $_[0]{socket} }


1;
