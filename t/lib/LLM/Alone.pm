package LLM::Alone;

# Runs a test without access to other machines: "use LLM::Alone" starts the
# script again in a new network namespace that has only 127.0.0.1, so that the
# programs that it runs cannot reach their vendors.  The test is skipped, with
# the reason, where a namespace cannot be made.
#
# Must come before modules that open a socket or plan a test.

use strict;
use warnings;

use Socket qw(AF_INET SOCK_DGRAM);

# from linux/sockios.h and linux/if.h
use constant { SIOCSIFFLAGS => 0x8914, IFF_UP => 1, IFF_RUNNING => 0x40 };


sub import {
    if ((delete $ENV{LLM_ALONE} // '') eq $$) {
        loopback();
        return;
    }

    # other users than root need a user namespace, in which they are root

    my @unshare = ('unshare', $> == 0 ? '--net' : ('--net', '--map-root-user'));
    my $why = `@unshare true 2>&1`;

    if ($? != 0) {
        chomp $why;
        print "1..0 # SKIP no network namespace: ",
              $why || 'there is no unshare', "\n";
        exit 0;
    }

    # both execs keep the pid

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
