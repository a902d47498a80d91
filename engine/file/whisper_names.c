/*
 * The names of Whisper's tensors: OpenAI's, which whisper.cpp's files have,
 * Hugging Face's, and those here.  The decoder has the names of any text model;
 * the encoder those of an encoder of sound in mmproj files, "a.".
 */

#include "engine/file/internal.h"

#include <stdio.h>

typedef struct {
    const char  *ours;
    const char  *openai;
    const char  *hub;
} llm_name_row_t;

/* what precedes a layer's number */
static const llm_name_row_t  llm_whisper_layers[] = {
    { "a.blk.", "encoder.blocks.", "encoder.layers." },
    { "blk.", "decoder.blocks.", "decoder.layers." }
};

/* tensors of a layer: of the encoder, of the decoder */
static const llm_name_row_t  llm_whisper_parts[2][13] = { {
    { "ln1.", "attn_ln.", "self_attn_layer_norm." },
    { "attn_q.", "attn.query.", "self_attn.q_proj." },
    { "attn_k.", "attn.key.", "self_attn.k_proj." },
    { "attn_v.", "attn.value.", "self_attn.v_proj." },
    { "attn_out.", "attn.out.", "self_attn.out_proj." },
    { "ln2.", "mlp_ln.", "final_layer_norm." },
    { "ffn_up.", "mlp.0.", "fc1." },
    { "ffn_down.", "mlp.2.", "fc2." }
}, {
    { "attn_norm.", "attn_ln.", "self_attn_layer_norm." },
    { "attn_q.", "attn.query.", "self_attn.q_proj." },
    { "attn_k.", "attn.key.", "self_attn.k_proj." },
    { "attn_v.", "attn.value.", "self_attn.v_proj." },
    { "attn_output.", "attn.out.", "self_attn.out_proj." },
    { "cross_attn_norm.", "cross_attn_ln.", "encoder_attn_layer_norm." },
    { "cross_attn_q.", "cross_attn.query.", "encoder_attn.q_proj." },
    { "cross_attn_k.", "cross_attn.key.", "encoder_attn.k_proj." },
    { "cross_attn_v.", "cross_attn.value.", "encoder_attn.v_proj." },
    { "cross_attn_output.", "cross_attn.out.", "encoder_attn.out_proj." },
    { "ffn_norm.", "mlp_ln.", "final_layer_norm." },
    { "ffn_up.", "mlp.0.", "fc1." },
    { "ffn_down.", "mlp.2.", "fc2." }
} };

static const llm_name_row_t  llm_whisper_globals[] = {
    { "a.conv1d.1.weight", "encoder.conv1.weight", "encoder.conv1.weight" },
    { "a.conv1d.1.bias", "encoder.conv1.bias", "encoder.conv1.bias" },
    { "a.conv1d.2.weight", "encoder.conv2.weight", "encoder.conv2.weight" },
    { "a.conv1d.2.bias", "encoder.conv2.bias", "encoder.conv2.bias" },
    { "a.position_embd.weight", "encoder.positional_embedding",
      "encoder.embed_positions.weight" },
    { "a.post_ln.weight", "encoder.ln_post.weight",
      "encoder.layer_norm.weight" },
    { "a.post_ln.bias", "encoder.ln_post.bias", "encoder.layer_norm.bias" },
    { "token_embd.weight", "decoder.token_embedding.weight",
      "decoder.embed_tokens.weight" },
    { "position_embd.weight", "decoder.positional_embedding",
      "decoder.embed_positions.weight" },
    { "output_norm.weight", "decoder.ln.weight",
      "decoder.layer_norm.weight" },
    { "output_norm.bias", "decoder.ln.bias", "decoder.layer_norm.bias" },
    { "output.weight", NULL, "proj_out.weight" }
};


/* removes the prefix; 0: s has another one */

static int
llm_name_skip(llm_str_t *s, const char *prefix)
{
    size_t  n;

    n = strlen(prefix);

    if (s->len < n || memcmp(s->data, prefix, n) != 0) {
        return 0;
    }

    s->data += n;
    s->len -= n;

    return 1;
}


/* reads "12." */

static int
llm_name_number(llm_str_t *s, uint32_t *n)
{
    size_t  i;

    for (i = 0, *n = 0; i < s->len && i < 4; i++) {
        if (s->data[i] < '0' || s->data[i] > '9') {
            break;
        }

        *n = *n * 10 + (uint32_t) (s->data[i] - '0');
    }

    if (i == 0 || (i > 1 && s->data[0] == '0')) {
        return 0;
    }

    s->data += i;
    s->len -= i;

    return llm_name_skip(s, ".");
}


static int
llm_name_layer(llm_str_t s, size_t side, int hub, char *out)
{
    size_t                 i;
    uint32_t               n;
    llm_str_t              rest;
    const char            *name;
    const llm_name_row_t  *row;

    row = &llm_whisper_layers[side];

    if (!llm_name_skip(&s, hub ? row->hub : row->openai)
        || !llm_name_number(&s, &n))
    {
        return LLM_ABSENT;
    }

    for (i = 0; i < llm_nelems(llm_whisper_parts[side]); i++) {
        rest = s;
        name = hub ? llm_whisper_parts[side][i].hub
                   : llm_whisper_parts[side][i].openai;

        if (name && llm_name_skip(&rest, name)
            && (llm_str_is(rest, "weight") || llm_str_is(rest, "bias")))
        {
            snprintf(out, LLM_WHISPER_NAME, "%s%u.%s%.*s", row->ours, n,
                     llm_whisper_parts[side][i].ours, (int) rest.len,
                     rest.data);
            return LLM_OK;
        }
    }

    return LLM_ABSENT;
}


int
llm_whisper_name(llm_str_t name, int hub, char *out)
{
    size_t                 i;
    const char            *theirs;
    const llm_name_row_t  *row;

    if (hub) {
        (void) llm_name_skip(&name, "model.");
    }

    for (i = 0; i < llm_nelems(llm_whisper_globals); i++) {
        row = &llm_whisper_globals[i];
        theirs = hub ? row->hub : row->openai;

        if (theirs && llm_str_is(name, theirs)) {
            snprintf(out, LLM_WHISPER_NAME, "%s", row->ours);
            return LLM_OK;
        }
    }

    if (llm_name_layer(name, 0, hub, out) == LLM_OK) {
        return LLM_OK;
    }

    return llm_name_layer(name, 1, hub, out);
}


void
llm_whisper_tensor(llm_gguf_make_t *mk, const char *name, uint32_t n_dims,
    const uint64_t *ne, uint32_t type, const void *data)
{
    uint64_t   dims[3] = { 1, 1, 1 };
    llm_str_t  s = { strlen(name), name };

    memcpy(dims, ne, n_dims * sizeof(*ne));

    /* a kernel's rows are [in][width] without gaps, one row for the device */

    if (n_dims == 3 && dims[0] <= UINT32_MAX && dims[1] <= UINT32_MAX) {
        dims[0] *= dims[1];
        dims[1] = dims[2];
        n_dims = 2;
    }

    if (n_dims == 2 && dims[0] == 1 && s.len > 5
        && memcmp(s.data + s.len - 5, ".bias", 5) == 0)
    {
        dims[0] = dims[1];
        n_dims = 1;
    }

    llm_gguf_make_tensor(mk, s, n_dims, dims, type, data);
}
