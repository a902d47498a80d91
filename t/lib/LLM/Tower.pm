package LLM::Tower;

# A tiny encoder of images for the demo model (an mmproj file of Gemma 3's
# family: squares of 32 x 32 pixels, 4 tokens each), a chat template that has
# places for images and sound, and image files.  With @HEARS, it encodes sound,
# too, as Gemma 4 12B does: 640 samples of 16000 a second are a token; with
# @LISTENS, as the small ones do: every fourth frame of a spectrogram is one.
# Another file encodes spectrograms alone, as Voxtral does: 80 ms are a token,
# and silence fills a sound up to 10 tokens, or a multiple of these; or as
# Qwen3-ASR does: 13 tokens a second, 7 at least.
#
#   LLM::Tower::make("$dir/mmproj.gguf");
#   LLM::Tower::make("$dir/hears.gguf", @LLM::Tower::HEARS);
#   LLM::Tower::make("$dir/both.gguf", @LLM::Tower::LISTENS);
#   LLM::Tower::make_ear("$dir/ear.gguf");
#   LLM::Tower::make_asr("$dir/asr.gguf");
#   $t->write_file('images.jinja', $LLM::Tower::TEMPLATE);
#   my $png = LLM::Tower::png(40, 30, sub { my ($x, $y) = @_; ($x, $y, 9) });

use strict;
use warnings;

use Compress::Zlib qw(compress crc32);
use LLM::GGUF;
use MIME::Base64 qw(encode_base64);

our $TOKENS = 4;
our @HEARS = ('clip.has_audio_encoder' => [ bool => 1 ],
              'clip.audio.projector_type' => [ str => 'gemma4ua' ]);

our $TEMPLATE = <<'END';
{%- for m in messages %}<|im_start|>{{ m.role }}
{% if m.content is string %}{{ m.content }}{% else %}{% for c in m.content %}
{%- if c.type == 'image' %}{{ '<start_of_image>' }}
{%- elif c.type == 'audio' %}{{ '<|audio|>' }}
{%- elif c.type == 'text' %}{{ c.text }}{% endif %}{% endfor %}{% endif %}
{{- '<|im_end|>\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}
END

my ($WIDTH, $EMBD, $FFN) = (16, 256, 20);

our @LISTENS = ('clip.has_audio_encoder' => [ bool => 1 ],
                'clip.audio.projector_type' => [ str => 'gemma4a' ],
                'clip.audio.num_mel_bins' => [ u32 => 128 ], ear_fields());


# the fields of an encoder of spectrograms

sub ear_fields {
    return ('clip.audio.embedding_length' => [ u32 => $WIDTH ],
            'clip.audio.feed_forward_length' => [ u32 => $FFN ],
            'clip.audio.block_count' => [ u32 => 1 ],
            'clip.audio.attention.head_count' => [ u32 => 2 ],
            'clip.audio.projection_dim' => [ u32 => $EMBD ],
            'clip.audio.attention.layer_norm_epsilon' => [ f32 => 1e-5 ]);
}


# numbers that differ, around $plus

sub numbers {
    my ($n, $scale, $plus, $seed) = @_;

    return map { $plus + $scale * sin(1 + $_ * 1.7 + $seed * 0.9) } 1 .. $n;
}


# functions that add a tensor, a norm's and a matrix's to a list

sub adders {
    my ($tensors) = @_;
    my $seed;

    my $add = sub {
        my ($name, $shape, $plus) = @_;
        my $n = 1;

        $n *= $_ for @$shape;
        $tensors->{$name} = [ $shape, numbers($n, 0.3, $plus // 0, ++$seed) ];
    };
    my $norm = sub {
        $add->("$_[0].weight", [ $WIDTH ], 1);
        $add->("$_[0].bias", [ $WIDTH ]) unless $_[1];
    };
    my $linear = sub {
        my ($name, $in, $out, $bare) = @_;

        $add->("$name.weight", [ $in, $out ]);
        $add->("$name.bias", [ $out ]) unless $bare;
    };

    return ($add, $norm, $linear);
}


# the layer of an encoder, whose tensors begin with $part, and the norm after it

sub layer {
    my ($part, $norm, $linear) = @_;

    $norm->("$part.blk.0.$_") for qw(ln1 ln2);
    $linear->("$part.blk.0.attn_$_", $WIDTH, $WIDTH, $part eq 'a' && $_ eq 'k')
        for qw(q k v out);
    $linear->("$part.blk.0.ffn_up", $WIDTH, $FFN);
    $linear->("$part.blk.0.ffn_down", $FFN, $WIDTH);
    $norm->("$part.post_ln");
}


sub make_ear {
    my ($file, %kv) = @_;
    my %tensors;
    my ($add, $norm, $linear) = adders(\%tensors);

    $add->('a.conv1d.1.weight', [ 3, 80, $WIDTH ]);
    $add->('a.conv1d.1.bias', [ 1, $WIDTH ]);
    $add->('a.conv1d.2.weight', [ 3, $WIDTH, $WIDTH ]);
    $add->('a.conv1d.2.bias', [ 1, $WIDTH ]);
    $add->('a.position_embd.weight', [ $WIDTH, 40 ]);
    layer('a', $norm, $linear);
    $linear->('mm.a.mlp.1', 4 * $WIDTH, $FFN, 1);
    $linear->('mm.a.mlp.2', $FFN, $EMBD, 1);

    write_ear($file, \%tensors,
        'clip.projector_type' => [ str => 'voxtral' ],
        'clip.audio.num_mel_bins' => [ u32 => 80 ],
        'clip.audio.projector.stack_factor' => [ u32 => 4 ], %kv);
}


sub make_asr {
    my ($file, %kv) = @_;
    my %tensors;
    my ($add, $norm, $linear) = adders(\%tensors);

    for (1 .. 3) {
        $add->("a.conv2d.$_.weight", [ 3, 3, $_ == 1 ? 1 : 4, 4 ]);
        $add->("a.conv2d.$_.bias", [ 1, 1, 4 ]);
    }

    $linear->('a.conv_out', 4 * 16, $WIDTH, 1);
    $add->('a.position_embd.weight', [ $WIDTH, 13 ]);
    layer('a', $norm, $linear);
    $linear->('mm.a.mlp.1', $WIDTH, $WIDTH);
    $linear->('mm.a.mlp.2', $WIDTH, $EMBD);

    write_ear($file, \%tensors,
        'clip.audio.projector_type' => [ str => 'qwen3a' ],
        'clip.audio.num_mel_bins' => [ u32 => 128 ], %kv);
}


# the file of an encoder of spectrograms

sub write_ear {
    my ($file, $tensors, %kv) = @_;

    LLM::GGUF::make(undef, $file, kv => {
        'general.architecture' => [ str => 'clip' ],
        'general.type' => [ str => 'mmproj' ],
        'clip.has_audio_encoder' => [ bool => 1 ],
        ear_fields(), %kv
    }, tensors => $tensors);
}


# two convolutions, a conformer and a projector, after all other tensors

sub conformer {
    my ($add, $norm, $linear) = @_;

    for ([ 0, 1, 6 ], [ 1, 6, 4 ]) {
        my ($k, $in, $out) = @$_;

        $add->("a.conv1d.$k.weight", [ 3, 3, $in, $out ]);
        $add->("a.conv1d.$k.norm.weight", [ $out ], 1);
    }

    $linear->('a.input_projection', 32 * 4, $WIDTH, 1);
    $norm->("a.blk.0.$_", 1)
        for qw(ffn_norm ffn_post_norm ffn_norm_1 ffn_post_norm_1 attn_pre_norm
               attn_post_norm conv_norm norm_conv ln2);

    for ('', '_1') {
        $linear->("a.blk.0.ffn_up$_", $WIDTH, $FFN, 1);
        $linear->("a.blk.0.ffn_down$_", $FFN, $WIDTH, 1);
    }

    $linear->("a.blk.0.$_", $WIDTH, $WIDTH, 1)
        for qw(attn_q attn_k attn_v attn_out attn_k_rel conv_pw2);
    $linear->('a.blk.0.conv_pw1', $WIDTH, 2 * $WIDTH, 1);
    $add->('a.blk.0.conv_dw.weight', [ 5, $WIDTH ]);
    $add->('a.blk.0.per_dim_scale.weight', [ $WIDTH / 2 ], 1);
    $linear->('a.pre_encode.out', $WIDTH, $FFN);
    $linear->('mm.a.input_projection', $FFN, $EMBD, 1);
}


sub make {
    my ($file, %kv) = @_;
    my %tensors;
    my ($add, $norm, $linear) = adders(\%tensors);

    $add->('v.patch_embd.weight', [ 4, 4, 3, $WIDTH ]);
    $add->('v.patch_embd.bias', [ $WIDTH ]);
    $add->('v.position_embd.weight', [ $WIDTH, 64 ]);
    layer('v', $norm, $linear);
    $norm->('mm.soft_emb_norm', 1);
    $add->('mm.input_projection.weight', [ $EMBD, $WIDTH ]);

    if ($kv{'clip.audio.num_mel_bins'}) {
        conformer($add, $norm, $linear);

    } elsif ($kv{'clip.has_audio_encoder'}) {
        $add->('mm.a.input_projection.weight', [ 640, $EMBD ]);
    }

    LLM::GGUF::make(undef, $file, kv => {
        'general.architecture' => [ str => 'clip' ],
        'general.type' => [ str => 'mmproj' ],
        'clip.projector_type' => [ str => 'gemma3' ],
        'clip.has_vision_encoder' => [ bool => 1 ],
        'clip.use_gelu' => [ bool => 1 ],
        'clip.vision.image_size' => [ u32 => 32 ],
        'clip.vision.patch_size' => [ u32 => 4 ],
        'clip.vision.embedding_length' => [ u32 => $WIDTH ],
        'clip.vision.feed_forward_length' => [ u32 => $FFN ],
        'clip.vision.block_count' => [ u32 => 1 ],
        'clip.vision.attention.head_count' => [ u32 => 2 ],
        'clip.vision.projection_dim' => [ u32 => $EMBD ],
        'clip.vision.image_mean' => [ f32s => 0.5, 0.5, 0.5 ],
        'clip.vision.image_std' => [ f32s => 0.5, 0.5, 0.5 ],
        'clip.vision.attention.layer_norm_epsilon' => [ f32 => 1e-6 ],
        %kv
    }, tensors => \%tensors);
}


sub chunk {
    my ($type, $data) = @_;

    return pack('N', length $data) . $type . $data
           . pack('N', crc32($type . $data));
}


# an image of red, green and blue, by the colour of each pixel; or, with rows,
# only so many of the $h rows are in the file

sub png {
    my ($w, $h, $colour, $rows) = @_;
    my $data = '';

    for my $y (0 .. ($rows // $h) - 1) {
        $data .= "\0" . pack 'C*', map { $colour->($_, $y) } 0 .. $w - 1;
    }

    return "\x89PNG\r\n\x1a\n" . chunk('IHDR', pack 'NNCCCCC', $w, $h, 8, 2, 0,
                                       0, 0)
           . chunk('IDAT', compress($data)) . chunk('IEND', '');
}


# as a data: URL

sub url {
    my ($bytes, $type) = @_;

    return 'data:' . ($type // 'image/png') . ';base64,'
           . encode_base64($bytes, '');
}

1;
