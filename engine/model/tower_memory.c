/*
 * How much memory a tower will take, for the load of its model, which comes
 * first and would take all: an estimate from the header of its file, from
 * above.  What is wrong in the file, its load will say.
 */

#include "engine/media/rule.h"
#include "engine/model/model_internal.h"
#include "engine/model/tower_internal.h"

#include <stdio.h>

/* floats of a row in the buffers of a step, times the width of the encoder, a
   cell and the model (llm_tower_buffers()) */
#define LLM_TOWER_WIDTHS  24
#define LLM_TOWER_CELLS   6
#define LLM_TOWER_MODELS  8

#define LLM_TOWER_MOST    (1u << 20)    /* a number that can be believed */


/* a number of the file; 1: there is none, or it cannot be used */

static size_t
llm_tower_number(const llm_gguf_t *g, const char *key, uint32_t most)
{
    uint32_t  v;

    v = 1;

    return llm_gguf_get_u32(g, key, &v, NULL) == LLM_OK && v && v <= most
           ? v : 1;
}


/* has the matrix factors of its rows (llm_tower_scaled())? */

static int
llm_tower_has_factors(const llm_gguf_tensor_t *t)
{
    return memmem(t->name.data, t->name.len, "attn_out.weight", 15)
           || memmem(t->name.data, t->name.len, "ffn_down.weight", 15);
}


/* matrices as the device has them, of those with factors a copy in float32,
   too; of all else there is little */

static size_t
llm_tower_weights(const llm_gguf_t *g, int gpu)
{
    int                       factors;
    size_t                    i, n, size;
    const llm_gguf_tensor_t  *t;

    factors = llm_gguf_find_tensor(g, "v.blk.0.ls1.weight") != NULL;

    for (i = 0, n = 0; i < llm_gguf_n_tensors(g); i++) {
        t = llm_gguf_tensor(g, i);
        size = t->size;

        if (factors && t->n_dims == 2 && llm_tower_has_factors(t)) {
            n += (gpu ? 1 : 2) * t->ne[0] * t->ne[1] * sizeof(float);
            continue;
        }

        if (!gpu && t->n_dims == 2 && t->ne[0] <= UINT32_MAX
            && t->ne[1] <= UINT32_MAX && llm_type_name(t->type))
        {
            size = llm_ops_cpu.weight_size(t->type, (uint32_t) t->ne[1],
                                           (uint32_t) t->ne[0]);
        }

        n += size;
    }

    return n;
}


/* what convolutions of slices see, and what they give, of a row; 0: there are
   none */

static size_t
llm_tower_sliced(const llm_gguf_t *g, int usm)
{
    const llm_gguf_tensor_t  *conv, *out;

    conv = llm_gguf_find_tensor(g, usm ? "a.conv1d.0.weight"
                                       : "a.conv2d.1.weight");
    out = llm_gguf_find_tensor(g, usm ? "a.input_projection.weight"
                                      : "a.conv_out.weight");

    return conv && out && conv->ne[3] <= LLM_TOWER_MOST
           && out->ne[0] <= LLM_TOWER_MOST
           ? (size_t) (LLM_TOWER_AROUND * conv->ne[3] + out->ne[0]) : 0;
}


/* what conformers have besides: heads are wider by what depends on distances,
   and each layer, and one more, has a matrix for each that makes them so */

static size_t
llm_tower_distances(const llm_gguf_t *g, size_t width, size_t rows, int gpu)
{
    size_t  heads, layers, wide;

    heads = llm_tower_number(g, "clip.audio.attention.head_count", 65536);
    layers = llm_tower_number(g, "clip.audio.block_count", LLM_TOWER_LAYERS);
    wide = width + LLM_TOWER_EXTRA * heads;

    return rows * 2 * wide * sizeof(float)
           + (gpu ? 1 : 2) * (layers + 1) * wide * (width / heads + 1)
             * sizeof(float);
}


/* buffers, keys and values of an encoder of spectrograms, which is a tower of
   its own */

static size_t
llm_tower_ear(const llm_gguf_t *g, int gpu)
{
    int                       usm;
    size_t                    width, seen, model, rows, step, batch;
    llm_str_t                 name;
    const llm_gguf_tensor_t  *t;

    usm = llm_sound_projector(g, &name) && llm_str_is(name, "gemma4a");
    t = llm_gguf_find_tensor(g, "a.position_embd.weight");

    if (!llm_tower_listens(g)
        || (!usm && (t == NULL || t->ne[1] > LLM_TOWER_PATCHES)))
    {
        return 0;
    }

    rows = usm ? llm_sound_quartered(LLM_SOUND_USM) : (size_t) t->ne[1];
    width = llm_tower_number(g, "clip.audio.embedding_length", 65536);
    model = llm_tower_number(g, "clip.audio.projection_dim", LLM_MAX_WIDTH);

    batch = gpu ? LLM_TOWER_WIDE : LLM_TOWER_BATCH;
    seen = llm_tower_sliced(g, usm);

    if (seen) {
        rows = llm_max(rows, batch);

    } else {
        batch = llm_min(rows, batch);
        seen = 3 * llm_tower_number(g, "clip.audio.num_mel_bins",
                                    LLM_TOWER_MELS);
    }

    step = batch * (LLM_TOWER_WIDTHS * width + LLM_TOWER_CELLS * 4 * width
                    + (gpu ? 1 : 2) * seen + LLM_TOWER_MODELS * model)
           * sizeof(float);

    if (usm) {
        step += llm_tower_distances(g, width, batch + rows, gpu);
    }

    /* frames are twice as many as rows; they, and a job's rows, are the
       machine's */

    return step + rows * 4 * width * sizeof(uint16_t)
           + (gpu ? 0 : rows * 4 * width * sizeof(float));
}


/* parts of a row that the encoder gives: layers with a merger of their own
   (deepstack) give one each */

static size_t
llm_tower_parts(const llm_gguf_t *g)
{
    char    name[64];
    size_t  i, n;

    for (i = 0, n = 1; i < LLM_MAX_LAYERS && n < LLM_TOWER_PARTS; i++) {
        snprintf(name, sizeof(name), "v.deepstack.%zu.fc1.weight", i);
        n += llm_gguf_find_tensor(g, name) != NULL;
    }

    return n;
}


size_t
llm_tower_memory(const llm_gguf_t *g, int gpu)
{
    size_t  width, merge, model, batch, step, keys, job, parts;

    if (!llm_tower_sees(g)) {
        return llm_tower_weights(g, gpu) + llm_tower_ear(g, gpu);
    }

    width = llm_tower_number(g, "clip.vision.embedding_length", 65536);
    model = llm_tower_number(g, "clip.vision.projection_dim", LLM_MAX_WIDTH);
    merge = llm_max(llm_tower_number(g, "clip.vision.spatial_merge_size", 16),
                    2u);
    batch = gpu ? LLM_TOWER_WIDE : LLM_TOWER_BATCH;

    step = batch * (LLM_TOWER_WIDTHS * width
                    + LLM_TOWER_CELLS * merge * merge * width
                    + LLM_TOWER_MODELS * model) * sizeof(float);

    /* keys and values of two layers; a job's rows, and the cells of a piece,
       are the machine's */
    parts = llm_tower_parts(g);
    keys = (size_t) LLM_TOWER_PATCHES * 4 * width * sizeof(uint16_t);
    job = gpu ? 0 : (LLM_TOWER_PATCHES + batch * merge * merge)
                    * parts * width * sizeof(float);

    return llm_tower_weights(g, gpu) + llm_tower_ear(g, gpu) + step + keys
           + job;
}
