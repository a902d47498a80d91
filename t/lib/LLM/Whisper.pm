package LLM::Whisper;

# Sounds, and files of Whisper models with weights at random, for tests.

use strict;
use warnings;

use Exporter qw(import);

our @EXPORT_OK = qw(au model wav);


# a rising tone of some seconds (2); 16 bits, one channel

sub samples {
    my ($seconds) = @_;

    return map { int(12000 * sin($_ * (0.02 + $_ / 400000))) }
           0 .. 16000 * ($seconds // 2) - 1;
}

sub wav {
    my $data = pack 's<*', samples(@_);

    return pack('a4 V a4 a4 V v v V V v v a4 V', 'RIFF', 36 + length $data,
                'WAVE', 'fmt ', 16, 1, 1, 16000, 32000, 2, 16, 'data',
                length $data) . $data;
}

sub au {
    my $data = pack 's>*', samples(@_);

    return pack('a4 N5', '.snd', 24, length $data, 3, 16000, 1) . $data;
}


# whisper.cpp's file of a model of one layer, eight wide, with weights at
# random; $n_vocab says of which kind it is

sub model {
    my ($n_vocab) = @_;
    my ($n, $seed) = (8, 1);

    my $random = sub {
        my ($count, $scale) = @_;

        return pack 'f<*', map {
            $seed = ($seed * 1103515245 + 12345) & 0x7fffffff;
            $scale * ($seed / 0x40000000 - 1);
        } 1 .. $count;
    };
    my $tensor = sub {
        my ($name, $data, @ne) = @_;

        return pack('V*', scalar @ne, length $name, 0, @ne) . $name . $data;
    };
    my $ones = sub { pack 'f<*', (1) x $_[0] };
    my $words = $n_vocab >= 51865 ? 50257 : 50256;

    my $out = pack('V12', 0x67676d6c, $n_vocab, 1500, $n, 2, 1, 448, $n, 2, 1,
                   80, 0)
            . pack('V2', 80, 201)
            . pack('f<*', map {
                  my $band = $_;
                  map { int($_ * 80 / 201) == $band ? 0.02 : 0 } 0 .. 200;
              } 0 .. 79)
            . pack('V', $words);

    # the bytes, then words that no text has
    $out .= pack 'V/a*', $_ < 256 ? chr : " word$_" for 0 .. $words - 1;

    my $norm = sub {
        my ($name) = @_;

        return $tensor->("$name.weight", $ones->($n), $n)
               . $tensor->("$name.bias", $random->($n, 0.1), $n);
    };
    my $linear = sub {
        my ($name, $from, $to, $bias) = @_;

        return $tensor->("$name.weight", $random->($from * $to, 0.8), $from,
                         $to)
               . ($bias ? $tensor->("$name.bias", $random->($to, 0.1), $to)
                        : '');
    };
    my $attention = sub {
        my ($name) = @_;

        return join '', map { $linear->("$name.$_", $n, $n, $_ ne 'key') }
                        qw(query key value out);
    };
    my $mlp = sub {
        my ($name) = @_;

        return $linear->("$name.mlp.0", $n, 4 * $n, 1)
               . $linear->("$name.mlp.2", 4 * $n, $n, 1)
               . $norm->("$name.mlp_ln");
    };

    return $out
        . $tensor->('encoder.positional_embedding', $random->(1500 * $n, 0.3),
                    $n, 1500)
        . $tensor->('encoder.conv1.weight', $random->(3 * 80 * $n, 0.2), 3, 80,
                    $n)
        . $tensor->('encoder.conv1.bias', $random->($n, 0.1), 1, $n)
        . $tensor->('encoder.conv2.weight', $random->(3 * $n * $n, 0.4), 3, $n,
                    $n)
        . $tensor->('encoder.conv2.bias', $random->($n, 0.1), 1, $n)
        . $attention->('encoder.blocks.0.attn')
        . $norm->('encoder.blocks.0.attn_ln') . $mlp->('encoder.blocks.0')
        . $norm->('encoder.ln_post')
        . $tensor->('decoder.positional_embedding', $random->(448 * $n, 0.3),
                    $n, 448)
        . $tensor->('decoder.token_embedding.weight',
                    $random->($n_vocab * $n, 1.5), $n, $n_vocab)
        . $attention->('decoder.blocks.0.attn')
        . $norm->('decoder.blocks.0.attn_ln')
        . $attention->('decoder.blocks.0.cross_attn')
        . $norm->('decoder.blocks.0.cross_attn_ln') . $mlp->('decoder.blocks.0')
        . $norm->('decoder.ln');
}

1;
