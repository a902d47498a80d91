package LLM::Alone;

# A test that runs in a network of its own: "use LLM::Alone" starts the script
# again in a new network namespace that has 127.0.0.1 and nothing else, so
# that no program it runs can reach another machine, whatever it wants to
# tell its makers.  A skip, with the reason, where no namespace can be made.
#
# Comes before any other module that opens a socket or plans a test.

use strict;
use warnings;

use Socket qw(AF_INET SOCK_DGRAM);

# of linux/sockios.h and linux/if.h
use constant { SIOCSIFFLAGS => 0x8914, IFF_UP => 1, IFF_RUNNING => 0x40 };


sub import {
    if ((delete $ENV{LLM_ALONE} // '') eq $$) {
        loopback();
        return;
    }

    # root may; others may as the root of a namespace of users

    my @unshare = ('unshare', $> == 0 ? '--net' : ('--net', '--map-root-user'));
    my $why = `@unshare true 2>&1`;

    if ($? != 0) {
        chomp $why;
        print "1..0 # SKIP no network namespace: ",
              $why || 'there is no unshare', "\n";
        exit 0;
    }

    # the pid stays the same over both calls

    $ENV{LLM_ALONE} = $$;
    exec @unshare, $^X, (map { "-I$_" } @INC), $0, @ARGV
        or die "unshare: $!";
}


sub loopback {
    socket(my $s, AF_INET, SOCK_DGRAM, 0) or die "socket: $!";

    my $up = pack('a16 s x22', 'lo', IFF_UP | IFF_RUNNING);

    ioctl($s, SIOCSIFFLAGS, $up) or die "lo is not up: $!";
}

1;
