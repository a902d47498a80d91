package LLM::GGUF;

# Makes a GGUF file from another one, with metadata and tensors added or
# replaced, so that a test can turn the demo model into an embedding model or a
# reranker.
#
#   LLM::GGUF::make("$root/models/demo.gguf", "$dir/mean.gguf",
#       kv => { 'qwen3.pooling_type' => [ u32 => 1 ] },
#       tensors => { 'cls.output.weight' => [ [ 256, 2 ], @floats ] });
#
#   LLM::GGUF::split("$root/models/demo.gguf", "$dir/demo", 3);
#
# writes the same model in three files, $dir/demo-00001-of-00003.gguf and so
# on, and returns their names.
#
# If the first file is undef, the new one has only the given keys and tensors.
#
# Values: [ u32 => N ], [ f32 => X ], [ bool => 0 or 1 ], [ str => TEXT ],
# [ strs => TEXT, ... ], [ u32s => N, ... ], [ f32s => X, ... ]; undef: the key
# is left out.  Tensors are float32; keep => qr/.../ keeps only those tensors of
# the first file whose names match.

use strict;
use warnings;

my %TYPES = (u32 => 4, f32 => 6, bool => 7, str => 8, strs => 9, u32s => 9,
             f32s => 9);
my @SIZES = (1, 1, 2, 2, 4, 4, 4, 1, undef, undef, 8, 8, 8);


sub string {
    my ($s) = @_;

    return pack('Q<', length $s) . $s;
}


# the end of a value of this type that begins at $at

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
          : $kind eq 'u32s' ? pack('L<Q<L<*', 4, scalar @values, @values)
          : $kind eq 'f32s' ? pack('L<Q<f<*', 6, scalar @values, @values)
          : pack('L<Q<', 8, scalar @values) . join('', map { string($_) }
                                                       @values);

    return pack('L<', $TYPES{$kind}) . $v;
}


# The parts of a file: kv: keys in order, each with its bytes; tensors, in
# order: name, info (the bytes of its description without the offset), at (the
# offset); start: where the first tensor begins.  All empty if $from is undef.

sub parts {
    my ($from) = @_;
    my %p = (version => 3, data => '', start => 0, kv => [], tensors => []);

    return \%p unless defined $from;

    open my $in, '<:raw', $from or die "$from: $!";
    my $data = do { local $/; <$in> };
    close $in;

    my ($version, $n_tensors, $n_kv) = unpack 'x4L<Q<Q<', $data;
    my $at = 24;

    for (1 .. $n_kv) {
        my $len = unpack 'Q<', substr $data, $at, 8;
        my $type = unpack 'L<', substr $data, $at + 8 + $len, 4;
        my $end = value_end(\$data, $type, $at + 12 + $len);

        push @{ $p{kv} }, { key => substr($data, $at + 8, $len),
                            bytes => substr($data, $at, $end - $at) };
        $at = $end;
    }

    for (1 .. $n_tensors) {
        my $len = unpack 'Q<', substr $data, $at, 8;
        my $dims = unpack 'L<', substr $data, $at + 8 + $len, 4;
        my $size = 8 + $len + 4 + 8 * $dims + 4;

        push @{ $p{tensors} },
            { name => substr($data, $at + 8, $len),
              info => substr($data, $at, $size),
              at => unpack('Q<', substr $data, $at + $size, 8) };
        $at += $size + 8;
    }

    @p{qw(version data start)} = ($version, $data, int(($at + 31) / 32) * 32);

    return \%p;
}


# writes a file of keys, descriptions of tensors, and bytes of tensors

sub put {
    my ($to, $version, $kv, $info, $bytes) = @_;

    my $head = 'GGUF'
             . pack('L<Q<Q<', $version, scalar @$info, scalar @$kv)
             . join('', @$kv, @$info);

    open my $out, '>:raw', $to or die "$to: $!";
    print $out $head, "\0" x (-length($head) % 32), $bytes,
               "\0" x (-length($bytes) % 32);
    close $out or die "$to: $!";
}


sub make {
    my ($from, $to, %opt) = @_;

    my $p = parts($from);
    my @kv = map { $_->{bytes} }
             grep { !exists $opt{kv}{$_->{key}} } @{ $p->{kv} };

    push @kv, string($_) . value(@{ $opt{kv}{$_} })
        for grep { $opt{kv}{$_} } sort keys %{ $opt{kv} };

    my @info = map { $_->{info} . pack 'Q<', $_->{at} }
               grep { !$opt{keep} || $_->{name} =~ $opt{keep} }
               @{ $p->{tensors} };
    my $bytes = substr $p->{data}, $p->{start};

    for my $name (sort keys %{ $opt{tensors} // {} }) {
        my ($shape, @floats) = @{ $opt{tensors}{$name} };

        $bytes .= "\0" x (-length($bytes) % 32);
        push @info, string($name) . pack('L<Q<*', scalar @$shape, @$shape)
                  . pack('L<Q<', 0, length $bytes);
        $bytes .= pack 'f<*', @floats;
    }

    put($to, $p->{version}, \@kv, \@info, $bytes);
}


# Makes a small model with recurrent layers (qwen35: a gated delta net, then
# attention) and the vocabulary of $from, whose embeddings must have 256
# columns.  Its weights are random, but the same each time.  Its state decays
# slowly, so that the output depends on the whole prompt.

sub recurrent {
    my ($from, $to) = @_;
    my $seed = 1;
    my ($embd, $inner, $ff, $head) = (256, 128, 256, 32);

    my $number = sub {
        $seed = ($seed * 1103515245 + 12345) % 2 ** 31;
        return $seed / 2 ** 30 - 1;
    };

    my $matrix = sub {
        my ($in, $out) = @_;
        my $scale = 1.7 / sqrt $in;

        return [ [ $in, $out ], map { $scale * $number->() }
                                    1 .. $in * $out ];
    };

    my $vector = sub {
        my ($n, $x) = @_;

        return [ [ $n ], ($x) x $n ];
    };

    my %layer = (
        'post_attention_norm.weight' => $vector->($embd, 1),
        'attn_norm.weight' => $vector->($embd, 1),
    );

    my %tensors = (
        'blk.0.attn_qkv.weight' => $matrix->($embd, 2 * $inner),
        'blk.0.attn_gate.weight' => $matrix->($embd, $inner),
        'blk.0.ssm_conv1d.weight' => $matrix->(4, 2 * $inner),
        'blk.0.ssm_alpha.weight' => $matrix->($embd, 4),
        'blk.0.ssm_beta.weight' => $matrix->($embd, 4),
        'blk.0.ssm_a' => $vector->(4, -0.002),
        'blk.0.ssm_dt.bias' => $vector->(4, 0),
        'blk.0.ssm_norm.weight' => $vector->($head, 1),
        'blk.0.ssm_out.weight' => $matrix->($inner, $embd),
        'blk.1.attn_q.weight' => $matrix->($embd, 2 * $inner),
        'blk.1.attn_k.weight' => $matrix->($embd, 2 * $head),
        'blk.1.attn_v.weight' => $matrix->($embd, 2 * $head),
        'blk.1.attn_q_norm.weight' => $vector->($head, 1),
        'blk.1.attn_k_norm.weight' => $vector->($head, 1),
        'blk.1.attn_output.weight' => $matrix->($inner, $embd),
    );

    for my $i (0, 1) {
        $tensors{"blk.$i.$_"} = $layer{$_} for keys %layer;
        $tensors{"blk.$i.ffn_$_.weight"} = $matrix->($embd, $ff)
            for qw(gate up);
        $tensors{"blk.$i.ffn_down.weight"} = $matrix->($ff, $embd);
    }

    my %kv = (
        block_count => [ u32 => 2 ],
        context_length => [ u32 => 4096 ],
        embedding_length => [ u32 => $embd ],
        feed_forward_length => [ u32 => $ff ],
        'attention.head_count' => [ u32 => 4 ],
        'attention.head_count_kv' => [ u32 => 2 ],
        'attention.key_length' => [ u32 => $head ],
        'attention.value_length' => [ u32 => $head ],
        'attention.layer_norm_rms_epsilon' => [ f32 => 1e-6 ],
        'rope.freq_base' => [ f32 => 1e6 ],
        'rope.dimension_count' => [ u32 => 16 ],
        full_attention_interval => [ u32 => 2 ],
        'ssm.conv_kernel' => [ u32 => 4 ],
        'ssm.state_size' => [ u32 => $head ],
        'ssm.group_count' => [ u32 => 2 ],
        'ssm.time_step_rank' => [ u32 => 4 ],
        'ssm.inner_size' => [ u32 => $inner ],
    );

    make($from, $to, keep => qr/^(token_embd|output_norm)\./,
         tensors => \%tensors,
         kv => { 'general.architecture' => [ str => 'qwen35' ],
                 map { ("qwen35.$_" => $kv{$_}) } keys %kv });
}


# Splits a model into parts with equal numbers of tensors, in reverse order: so
# the embedding, which is used in the mapped file, is not in the first part.

sub split {
    my ($from, $to, $n) = @_;

    my $p = parts($from);
    my @order = sort { $a->{at} <=> $b->{at} } @{ $p->{tensors} };

    for my $i (0 .. $#order) {
        my $end = $i < $#order ? $order[$i + 1]{at}
                               : length($p->{data}) - $p->{start};

        $order[$i]{bytes} = substr $p->{data}, $p->{start} + $order[$i]{at},
                                   $end - $order[$i]{at};
        $order[$i]{bytes} .= "\0" x (-length($order[$i]{bytes}) % 32);
    }

    my @tensors = reverse @{ $p->{tensors} };
    my @names;

    for my $no (0 .. $n - 1) {
        my @own = @tensors[int($no * @tensors / $n)
                           .. int(($no + 1) * @tensors / $n) - 1];
        my @kv = $no ? () : map { $_->{bytes} } @{ $p->{kv} };
        my $bytes = '';
        my @info;

        for my $t (@own) {
            push @info, $t->{info} . pack 'Q<', length $bytes;
            $bytes .= $t->{bytes};
        }

        push @kv, string('split.no') . value(u32 => $no),
                  string('split.count') . value(u32 => $n),
                  string('split.tensors.count')
                  . value(u32 => scalar @tensors);

        push @names, sprintf '%s-%05d-of-%05d.gguf', $to, $no + 1, $n;
        put($names[-1], $p->{version}, \@kv, \@info, $bytes);
    }

    return @names;
}

1;
