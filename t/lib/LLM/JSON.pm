package LLM::JSON;

# JSON by Cpanel::JSON::XS, which is in C, or where it is missing (a machine
# with a GPU and without a network) by perl's own JSON::PP.  Both have the same
# interface, which is this module's: new, encode_json, decode_json, true, false,
# is_bool.
# A text may be any value, not only an object or an array.

use strict;
use warnings;

use Exporter 'import';

our @EXPORT = qw(decode_json encode_json);

my $by;

BEGIN {
    $by = eval { require Cpanel::JSON::XS; 'Cpanel::JSON::XS' };

    if (!$by) {
        require JSON::PP;
        $by = 'JSON::PP';
    }
}


my $utf8 = new()->utf8;

sub new { return $by->new->allow_nonref }

sub decode_json { return $utf8->decode($_[0]) }

sub encode_json { return $utf8->encode($_[0]) }

sub true { return $by->can('true')->() }

sub false { return $by->can('false')->() }

sub is_bool { return $by->can('is_bool')->($_[0]) }


1;
