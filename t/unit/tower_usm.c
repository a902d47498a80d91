/*
 * What is wrong in the file of an encoder with conformers: fields, tensors that
 * are missing, and sizes; what such encoders compute, tower_ears.c compares.
 */

#include "t/unit/tower_rig.h"


static void
test_file(void)
{
    size_t  i;

    static const tower_change_t  usm[] = {
        { .key = "clip.audio.projector_type", .str = "gemma4b",
          .error = "the projector \"gemma4b\" is not supported" },
        { .key = "clip.audio.num_mel_bins", .drop = 1,
          .error = "clip.audio.num_mel_bins: it is missing" },
        { .key = "clip.audio.num_mel_bins", .u32 = 13,
          .error = "a.input_projection.weight: it has [12, 16, 1, 1] elements, "
                   "where 16 by 16 fit" },
        { .key = "clip.audio.embedding_length", .u32 = 32,
          .error = "a.pre_encode.out.weight: it has" },
        { .key = "clip.audio.embedding_length", .u32 = 15,
          .error = "clip.audio.attention.head_count: 2 does not fit 15" },
        { .key = "clip.audio.attention.head_count", .u32 = 4,
          .error = "a.blk.0.per_dim_scale.weight: it has [8, 1, 1, 1]" },
        { .key = "clip.audio.projection_dim", .u32 = 13,
          .error = "mm.a.input_projection.weight: it has" },
        { .key = "clip.audio.block_count", .u32 = 3,
          .error = "a.blk.2.attn_q: the tensor is missing" },
        { .key = "clip.audio.block_count", .u32 = 1,
          .error = "a tensor that towers with the projector gemma4a do not "
                   "have" },
        { .tensor = "a.conv1d.1.weight", .name = "a.conv1d.2.weight",
          .error = "a.conv1d.1: the tensor is missing" },
        { .tensor = "a.conv1d.0.norm.weight", .name = "a.conv1d.0.no.weight",
          .error = "a.conv1d.0.norm: the tensor is missing" },
        { .tensor = "a.input_projection.weight", .name = "a.conv_out.weight",
          .error = "a.input_projection: the tensor is missing" },
        { .tensor = "a.pre_encode.out.weight", .name = "a.out.weight",
          .error = "a.pre_encode.out: the tensor is missing" },
        { .tensor = "mm.a.input_projection.weight", .name = "mm.a.fc.weight",
          .error = "mm.a.input_projection: the tensor is missing" },
        { .tensor = "a.pre_encode.out.bias", .name = "a.blk.0.attn_o.bias",
          .error = "a.blk.0.attn_o.bias: a tensor that towers with the "
                   "projector gemma4a do not have" }
    };

    for (i = 0; i < llm_nelems(usm); i++) {
        unheard_file(find_ear("gemma4e"), &usm[i]);
    }
}


/* each tensor of a conformer is required, but for clamps, and has one size */

static void
test_conformer(void)
{
    size_t           i, k, n;
    char             name[64], error[96];
    tower_tiny_t     tiny = *find_ear("gemma4e");
    tower_tensor_t   tensors[128];
    tower_change_t   c = { .error = error };

    static const char  *const parts[] = {
        "ffn_norm", "ffn_up", "ffn_down", "ffn_post_norm", "attn_pre_norm",
        "attn_q", "attn_k", "attn_v", "attn_k_rel", "per_dim_scale",
        "attn_out", "attn_post_norm", "conv_norm", "conv_pw1", "conv_dw",
        "norm_conv", "conv_pw2", "ffn_norm_1", "ffn_up_1", "ffn_down_1",
        "ffn_post_norm_1", "ln2"
    };

    for (n = 0; tiny.tensors[n].name; n++) {
        tensors[n] = tiny.tensors[n];
    }

    tensors[n].name = NULL;

    for (i = 0; i < llm_nelems(parts); i++) {
        snprintf(name, sizeof(name), "a.blk.1.%s.weight", parts[i]);
        snprintf(error, sizeof(error), "a.blk.1.%s: the tensor is missing",
                 parts[i]);
        c.tensor = name;
        c.name = "a.blk.1.other.weight";
        unheard_file(find_ear("gemma4e"), &c);

        /* a row, or a number, more; of what leads into a network two columns
           more, as any number of rows fits */

        for (k = 0; strcmp(tensors[k].name, name) != 0; k++) {
            /* void */
        }

        tensors[k].ne[strstr(name, "ffn_up") ? 0
                      : tensors[k].ne[1] ? 1 : 0] += 2;
        snprintf(error, sizeof(error), "a.blk.1.%s.weight: ", parts[i]);
        tiny.tensors = tensors;
        unheard_file(&tiny, &(tower_change_t) { .error = error });
        tensors[k] = find_ear("gemma4e")->tensors[k];
    }
}


/* an encoder with one head of this width */

static void
one_head(uint32_t width, const char *error)
{
    size_t         n;
    tower_tiny_t   tiny = *find_ear("gemma4e");
    tower_field_t  fields[32];

    for (n = 0; tiny.fields[n].key; n++) {
        fields[n] = tiny.fields[n];

        if (strcmp(fields[n].key, "clip.audio.embedding_length") == 0) {
            fields[n].u32 = width;

        } else if (strcmp(fields[n].key, "clip.audio.attention.head_count")
                   == 0)
        {
            fields[n].u32 = 1;
        }
    }

    fields[n].key = NULL;
    tiny.fields = fields;
    unheard_file(&tiny, &(tower_change_t) { .error = error });
}


int
main(void)
{
    if (make_path()) {
        test_file();
        test_conformer();
        one_head(15, "clip.audio.embedding_length: 15 is odd");
        one_head(1010, "clip.audio.attention.head_count: heads of 1010 "
                       "elements are too large");
        unlink(path);
    }

    return done_testing();
}
