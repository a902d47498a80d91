package LLM::GGUF;

# A GGUF file made from another one: metadata and tensors that a test wants
# more, or otherwise, so that the demo model can stand for an embedder or a
# ranker.
#
#   LLM::GGUF::make("$root/models/demo.gguf", "$dir/mean.gguf",
#       kv => { 'qwen3.pooling_type' => [ u32 => 1 ] },
#       tensors => { 'cls.output.weight' => [ [ 256, 2 ], @floats ] });
#
# Values: [ u32 => N ], [ f32 => X ], [ bool => 0 or 1 ], [ str => TEXT ],
# [ strs => TEXT, ... ]; undef: the key is left out.  Tensors are float32.

use strict;
use warnings;

my %TYPES = (u32 => 4, f32 => 6, bool => 7, str => 8, strs => 9);
my @SIZES = (1, 1, 2, 2, 4, 4, 4, 1, undef, undef, 8, 8, 8);


sub string {
    my ($s) = @_;

    return pack('Q<', length $s) . $s;
}


# where the value of this type ends that begins at $at

sub value_end {
    my ($data, $type, $at) = @_;

    return $at + $SIZES[$type] if defined $SIZES[$type];
    return $at + 8 + unpack('Q<', substr $$data, $at, 8) if $type == 8;

    my ($item, $n) = unpack 'L<Q<', substr $$data, $at, 12;

    $at += 12;
    return $at + $n * $SIZES[$item] if defined $SIZES[$item];
    $at = value_end($data, $item, $at) for 1 .. $n;

    return $at;
}


sub value {
    my ($kind, @values) = @_;

    my $v = $kind eq 'u32' ? pack('L<', $values[0])
          : $kind eq 'f32' ? pack('f<', $values[0])
          : $kind eq 'bool' ? pack('C', $values[0])
          : $kind eq 'str' ? string($values[0])
          : pack('L<Q<', 8, scalar @values) . join('', map { string($_) }
                                                       @values);

    return pack('L<', $TYPES{$kind}) . $v;
}


sub make {
    my ($from, $to, %opt) = @_;

    open my $in, '<:raw', $from or die "$from: $!";
    my $data = do { local $/; <$in> };
    close $in;

    my ($version, $n_tensors, $n_kv) = unpack 'x4L<Q<Q<', $data;
    my $at = 24;
    my (@kv, %seen);

    for (1 .. $n_kv) {
        my $len = unpack 'Q<', substr $data, $at, 8;
        my $key = substr $data, $at + 8, $len;
        my $type = unpack 'L<', substr $data, $at + 8 + $len, 4;
        my $end = value_end(\$data, $type, $at + 12 + $len);

        push @kv, substr $data, $at, $end - $at if !exists $opt{kv}{$key};
        $at = $end;
    }

    push @kv, string($_) . value(@{ $opt{kv}{$_} })
        for grep { $opt{kv}{$_} } sort keys %{ $opt{kv} };

    my $infos = $at;

    for (1 .. $n_tensors) {
        $at += 8 + unpack 'Q<', substr $data, $at, 8;
        $at += 4 + 8 * unpack('L<', substr $data, $at, 4) + 12;
    }

    my $info = substr $data, $infos, $at - $infos;
    my $bytes = substr $data, int(($at + 31) / 32) * 32;

    for my $name (sort keys %{ $opt{tensors} // {} }) {
        my ($shape, @floats) = @{ $opt{tensors}{$name} };

        $bytes .= "\0" x (-length($bytes) % 32);
        $info .= string($name) . pack('L<Q<*', scalar @$shape, @$shape)
               . pack('L<Q<', 0, length $bytes);
        $bytes .= pack 'f<*', @floats;
        $n_tensors++;
    }

    my $head = 'GGUF' . pack('L<Q<Q<', $version, $n_tensors, scalar @kv)
             . join('', @kv) . $info;

    $bytes .= "\0" x (-length($bytes) % 32);

    open my $out, '>:raw', $to or die "$to: $!";
    print $out $head, "\0" x (-length($head) % 32), $bytes;
    close $out or die "$to: $!";
}

1;
