/*
 * Convolutions of two dimensions of encoders of sound, each three bands by
 * three frames wide, taking every second band and frame.  What is left of a
 * frame becomes one row.
 *
 * As those of tower_whisper.c they are products, whose rows the host gathers,
 * frame by frame, band by band; slice by slice, so that the host keeps what all
 * but the last one give of one slice.
 *
 * Qwen3's are three; a slice is a second, beyond which they do not see, and a
 * row's position is that in the slice.  The last slice may be shorter.
 *
 * Gemma 4's (USM) are two, each with a norm and max(x, 0).  A slice is some
 * rows; what the first convolution gives of the frame before them is computed
 * in both slices.  There are no positions.
 */

#include "engine/media/rule.h"
#include "engine/model/tower_internal.h"

#include <stdio.h>

#define LLM_USM_CONVS  2
#define LLM_USM_ROWS   25               /* of a slice: a second */


/* of n bands or frames, those that are left after so many convolutions */

static uint32_t
llm_slice_left(uint32_t n, uint32_t times)
{
    return (n + (1u << times) - 1) >> times;
}


/* rows that a whole slice becomes */

static uint32_t
llm_slice_own(const llm_tower_t *t)
{
    return t->kind->usm ? LLM_USM_ROWS : llm_sound_sliced(LLM_SOUND_SLICE);
}


/* the frames of a slice before convolution `level`, by their numbers in the
   entry; after the last one if it is n_convs */

static void
llm_slice_span(const llm_tower_t *t, uint32_t frames, uint32_t slice,
    uint32_t level, uint32_t *first, uint32_t *end)
{
    uint32_t  k, n;

    if (!t->kind->usm) {
        n = llm_min(frames - slice * LLM_SOUND_SLICE,
                    (uint32_t) LLM_SOUND_SLICE);
        *first = slice * llm_slice_left(LLM_SOUND_SLICE, level);
        *end = *first + llm_slice_left(n, level);
        return;
    }

    *first = slice * LLM_USM_ROWS;
    *end = llm_min(*first + LLM_USM_ROWS,
                   llm_slice_left(frames, LLM_USM_CONVS));

    for (k = LLM_USM_CONVS; k > level; k--) {
        *first = *first ? 2 * *first - 1 : 0;
        *end = llm_min(2 * *end, llm_slice_left(frames, k - 1));
    }
}


static int
llm_slice_conv(llm_tower_load_t *l, uint32_t k, const char *name,
    uint32_t *channels)
{
    uint32_t      n;
    llm_tower_t  *t = l->t;

    n = LLM_TOWER_AROUND * (k ? t->channels[k - 1] : 1);

    if (llm_tower_linear(l, &t->conv[k], n, channels, name) != LLM_OK) {
        return LLM_ERROR;
    }

    if (*channels > LLM_MAX_WIDTH / LLM_TOWER_MELS) {
        return llm_fail(l->err, "%s: %s.weight: %u channels are too many",
                        llm_gguf_name(t->gguf), name, *channels);
    }

    t->channels[k] = *channels;
    t->conv_cols = llm_max(t->conv_cols, n);

    return LLM_OK;
}


static int
llm_slice_usm_read(llm_tower_load_t *l)
{
    char          name[16];
    uint32_t      k, channels;
    llm_tower_t  *t = l->t;

    for (k = 0; k < LLM_USM_CONVS; k++) {
        channels = 0;
        snprintf(name, sizeof(name), "a.conv1d.%u", k);

        if (llm_slice_conv(l, k, name, &channels) != LLM_OK
            || llm_tower_norm(l, &t->conv_norm[k], channels, 1, "%s.norm",
                              name) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


static int
llm_slice_qwen_read(llm_tower_load_t *l)
{
    char      name[16];
    uint32_t  k, channels;

    for (k = 0, channels = 0; k < LLM_TOWER_CONVS; k++) {
        snprintf(name, sizeof(name), "a.conv2d.%u", k + 1);

        if (llm_slice_conv(l, k, name, &channels) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


int
llm_tower_slice_read(llm_tower_load_t *l)
{
    int           usm;
    llm_tower_t  *t = l->t;

    usm = t->kind->usm;
    t->n_convs = usm ? LLM_USM_CONVS : LLM_TOWER_CONVS;

    if ((usm ? llm_slice_usm_read(l) : llm_slice_qwen_read(l)) != LLM_OK) {
        return LLM_ERROR;
    }

    t->n_values = t->channels[t->n_convs - 1]
                  * llm_slice_left(t->info.n_mels, t->n_convs);

    return llm_tower_linear(l, &t->embed, t->n_values, &t->width,
                            usm ? "a.input_projection" : "a.conv_out");
}


uint32_t
llm_tower_slices(const llm_tower_t *t, const llm_tower_entry_t *e)
{
    return t->kind->usm
           ? (llm_sound_quartered(e->h) + LLM_USM_ROWS - 1) / LLM_USM_ROWS
           : (e->h + LLM_SOUND_SLICE - 1) / LLM_SOUND_SLICE;
}


uint32_t
llm_tower_slice_wide(const llm_tower_t *t)
{
    return llm_slice_left(t->info.n_mels, 1)
           * (t->kind->usm ? 2 * LLM_USM_ROWS + 1
                           : llm_slice_left(LLM_SOUND_SLICE, 1));
}


uint32_t
llm_tower_slice_most(const llm_tower_t *t, const llm_tower_entry_t *e,
    uint32_t slice, uint32_t k)
{
    uint32_t  first, end;

    llm_slice_span(t, e->h, slice, k + 1, &first, &end);

    return (end - first) * llm_slice_left(t->info.n_mels, k + 1);
}


size_t
llm_tower_slice_at(const llm_tower_t *t, uint32_t slice, uint32_t k)
{
    return k + 1 < t->n_convs
           ? 0 : (size_t) slice * t->channels[k] * llm_slice_own(t)
                 * llm_slice_left(t->info.n_mels, t->n_convs);
}


size_t
llm_tower_slice_room(const llm_tower_t *t, const llm_tower_entry_t *e,
    uint32_t k)
{
    uint32_t  n, last;

    last = llm_tower_slices(t, e) - 1;
    n = llm_tower_slice_most(t, e, 0, k);

    /* slices but the first have a frame more before them */

    n = llm_max(n, llm_tower_slice_most(t, e, llm_min(last, 1u), k));

    return (size_t) n * t->channels[k] + llm_tower_slice_at(t, last, k);
}


/* what a convolution of a slice sees */
typedef struct {
    const float  *from;                 /* frame by frame, band by band, all
                                           channels; NULL: the spectrogram */
    uint32_t      channels;
    uint32_t      bands;
    uint32_t      first;                /* frames, by numbers in the entry */
    uint32_t      end;
} llm_slice_view_t;


/* the values of a band of a frame; NULL: there is none.  Numbers are + 1, so
   that 0 is before the first one */

static const float *
llm_slice_value(const llm_slice_view_t *v, const llm_tower_entry_t *e,
    uint32_t frame, uint32_t band)
{
    if (frame <= v->first || frame > v->end || band == 0 || band > v->bands) {
        return NULL;
    }

    frame--;
    band--;

    return v->from ? v->from + ((size_t) (frame - v->first) * v->bands + band)
                               * v->channels
                   : e->samples + (size_t) band * e->h + frame;
}


void
llm_tower_slice_gather(const llm_tower_t *t, const llm_tower_entry_t *e,
    uint32_t slice, uint32_t k, const float *from, uint32_t i, float *row)
{
    int                usm;
    uint32_t           c, at, frame, band, bands, first, end;
    const float       *x;
    llm_slice_view_t   v;

    usm = t->kind->usm;
    v.from = from;
    v.channels = k ? t->channels[k - 1] : 1;
    v.bands = llm_slice_left(t->info.n_mels, k);
    llm_slice_span(t, e->h, slice, k, &v.first, &v.end);

    bands = llm_slice_left(t->info.n_mels, k + 1);
    llm_slice_span(t, e->h, slice, k + 1, &first, &end);
    frame = usm ? 2 * (first + i / bands) : v.first + 2 * (i / bands);
    band = 2 * (i % bands);

    for (at = 0; at < LLM_TOWER_AROUND; at++) {
        x = llm_slice_value(&v, e, frame + (usm ? at / 3 : at % 3),
                            band + (usm ? at % 3 : at / 3));

        for (c = 0; c < v.channels; c++) {
            row[c * LLM_TOWER_AROUND + at] = x ? x[c] : 0;
        }
    }
}


void
llm_tower_slice_row(const llm_tower_t *t, const float *convolved, uint32_t i,
    float *row)
{
    uint32_t      c, n, band, bands, frame;
    const float  *from;

    n = t->channels[t->n_convs - 1];
    bands = llm_slice_left(t->info.n_mels, t->n_convs);
    frame = i % llm_slice_own(t);
    from = convolved + (size_t) i * bands * n;

    if (t->kind->usm) {
        memcpy(row, from, (size_t) bands * n * sizeof(float));
        return;
    }

    for (c = 0; c < n; c++) {
        for (band = 0; band < bands; band++) {
            *row++ = from[band * n + c];
        }
    }

    memcpy(row, t->table + (size_t) frame * t->width,
           t->width * sizeof(float));
}
