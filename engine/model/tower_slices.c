/*
 * The convolutions of Qwen3's encoder of sound: a spectrogram is cut into
 * slices of a second, in which three convolutions, each three bands by three
 * frames wide, take every second band and frame.  What is left of a frame
 * becomes one row; its position is that in the slice.
 *
 * As those of tower_whisper.c they are products, whose rows the host gathers:
 * of a slice frame by frame, band by band.  The last slice may be shorter.
 */

#include "engine/media/rule.h"
#include "engine/model/tower_internal.h"

#include <stdio.h>


/* of n bands or frames, those that are left after so many convolutions */

static uint32_t
llm_slice_left(uint32_t n, uint32_t times)
{
    return (n + (1u << times) - 1) >> times;
}


static uint32_t
llm_slice_frames(const llm_tower_entry_t *e, uint32_t slice)
{
    return llm_min(e->h - slice * LLM_SOUND_SLICE, (uint32_t) LLM_SOUND_SLICE);
}


int
llm_tower_slice_read(llm_tower_load_t *l)
{
    char          name[16];
    uint32_t      k, n;
    llm_tower_t  *t = l->t;

    t->n_convs = LLM_TOWER_CONVS;

    for (k = 0; k < LLM_TOWER_CONVS; k++) {
        snprintf(name, sizeof(name), "a.conv2d.%u", k + 1);
        n = LLM_TOWER_AROUND * (k ? t->channels : 1);

        if (llm_tower_linear(l, &t->conv[k], n, &t->channels, name) != LLM_OK) {
            return LLM_ERROR;
        }

        if (t->channels > LLM_MAX_WIDTH / LLM_TOWER_MELS) {
            return llm_fail(l->err, "%s: %s.weight: %u channels are too many",
                            llm_gguf_name(t->gguf), name, t->channels);
        }

        t->conv_cols = llm_max(t->conv_cols, n);
    }

    t->n_values = t->channels * llm_slice_left(t->info.n_mels,
                                               LLM_TOWER_CONVS);

    return llm_tower_linear(l, &t->embed, t->n_values, &t->width,
                            "a.conv_out");
}


uint32_t
llm_tower_slices(const llm_tower_entry_t *e)
{
    return (e->h + LLM_SOUND_SLICE - 1) / LLM_SOUND_SLICE;
}


uint32_t
llm_tower_slice_rows(const llm_tower_t *t, uint32_t frames, uint32_t k)
{
    return llm_slice_left(t->info.n_mels, k + 1)
           * llm_slice_left(frames, k + 1);
}


uint32_t
llm_tower_slice_most(const llm_tower_t *t, const llm_tower_entry_t *e,
    uint32_t slice, uint32_t k)
{
    return llm_tower_slice_rows(t, llm_slice_frames(e, slice), k);
}


size_t
llm_tower_slice_at(const llm_tower_t *t, uint32_t slice, uint32_t k)
{
    return k + 1 < LLM_TOWER_CONVS
           ? 0 : (size_t) slice * t->channels
                 * llm_tower_slice_rows(t, LLM_SOUND_SLICE, k);
}


/* the values of a band of a frame before convolution k: the spectrogram's one,
   or all channels; NULL: there is none */

static const float *
llm_slice_value(const llm_tower_t *t, const llm_tower_entry_t *e,
    uint32_t slice, uint32_t k, const float *from, uint32_t frame,
    uint32_t band)
{
    uint32_t  bands = llm_slice_left(t->info.n_mels, k);

    /* numbers + 1, so that 0 is before the first one */

    if (frame == 0 || frame > llm_slice_left(llm_slice_frames(e, slice), k)
        || band == 0 || band > bands)
    {
        return NULL;
    }

    frame--;
    band--;

    return k ? from + ((size_t) frame * bands + band) * t->channels
             : e->samples + (size_t) band * e->h + slice * LLM_SOUND_SLICE
               + frame;
}


void
llm_tower_slice_gather(const llm_tower_t *t, const llm_tower_entry_t *e,
    uint32_t slice, uint32_t k, const float *from, uint32_t i, float *row)
{
    uint32_t      c, n, at, frame, band;
    const float  *v;

    n = k ? t->channels : 1;
    frame = i / llm_slice_left(t->info.n_mels, k + 1);
    band = i % llm_slice_left(t->info.n_mels, k + 1);

    for (at = 0; at < LLM_TOWER_AROUND; at++) {
        v = llm_slice_value(t, e, slice, k, from, 2 * frame + at % 3,
                            2 * band + at / 3);

        for (c = 0; c < n; c++) {
            row[c * LLM_TOWER_AROUND + at] = v ? v[c] : 0;
        }
    }
}


void
llm_tower_slice_row(const llm_tower_t *t, const float *convolved, uint32_t i,
    float *row)
{
    uint32_t      c, band, bands, frame;
    const float  *from;

    bands = llm_slice_left(t->info.n_mels, LLM_TOWER_CONVS);
    frame = i % llm_sound_sliced(LLM_SOUND_SLICE);
    from = convolved + (size_t) i * bands * t->channels;

    for (c = 0; c < t->channels; c++) {
        for (band = 0; band < bands; band++) {
            *row++ = from[band * t->channels + c];
        }
    }

    memcpy(row, t->table + (size_t) frame * t->width,
           t->width * sizeof(float));
}
