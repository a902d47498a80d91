/*
 * The mean of a frame's channels; see mono.h.
 */

#if LLM_FFMPEG

#include "engine/media/ffmpeg/mono.h"
#include "engine/media/wav.h"

#include <libavutil/samplefmt.h>
#include <math.h>


/* adds a channel, whose samples are `step` apart */

#define LLM_MONO_ADD(name, type, zero, scale)                                \
                                                                             \
    static void                                                              \
    llm_mono_add_##name(const uint8_t *data, size_t first, size_t step,      \
        size_t n, float *x)                                                  \
    {                                                                        \
        size_t       i;                                                      \
        const type  *from = (const type *) (const void *) data + first;      \
                                                                             \
        for (i = 0; i < n; i++) {                                            \
            x[i] += (float) ((from[i * step] - (zero)) * (scale));           \
        }                                                                    \
    }

LLM_MONO_ADD(u8, uint8_t, 128, 1 / 128.0)
LLM_MONO_ADD(s16, int16_t, 0, 1 / 32768.0)
LLM_MONO_ADD(s32, int32_t, 0, 1 / 2147483648.0)
LLM_MONO_ADD(flt, float, 0, 1)
LLM_MONO_ADD(dbl, double, 0, 1)


int
llm_mono(const AVFrame *frame, uint32_t channels, float *x)
{
    int        planar;
    size_t     i, n;
    uint32_t   c;
    void     (*add)(const uint8_t *data, size_t first, size_t step, size_t n,
                    float *x);

    planar = av_sample_fmt_is_planar(frame->format);
    n = (size_t) frame->nb_samples;

    switch (av_get_packed_sample_fmt(frame->format)) {
    case AV_SAMPLE_FMT_U8:   add = llm_mono_add_u8;   break;
    case AV_SAMPLE_FMT_S16:  add = llm_mono_add_s16;  break;
    case AV_SAMPLE_FMT_S32:  add = llm_mono_add_s32;  break;
    case AV_SAMPLE_FMT_FLT:  add = llm_mono_add_flt;  break;
    case AV_SAMPLE_FMT_DBL:  add = llm_mono_add_dbl;  break;
    default:                 return LLM_ABSENT;
    }

    memset(x, 0, n * sizeof(float));

    for (c = 0; c < channels; c++) {
        if (planar) {
            add(frame->extended_data[c], 0, 1, n, x);
        } else {
            add(frame->extended_data[0], c, channels, n, x);
        }
    }

    for (i = 0; i < n; i++) {
        x[i] = isfinite(x[i]) ? x[i] / (float) channels : 0;
        x[i] = (float) llm_max(llm_min(x[i], LLM_AUDIO_LOUD),
                               -LLM_AUDIO_LOUD);
    }

    return LLM_OK;
}

#endif
