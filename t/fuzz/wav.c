/*
 * Any bytes as a WAV file: what is opened lies inside of it, and its samples
 * are numbers at any rate.
 */

#include "engine/media/sound.h"
#include "engine/media/wav.h"

#include <math.h>


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t               i;
    llm_err_t            err;
    llm_wav_t            w;
    llm_sound_t          sound;
    llm_media_limits_t   limits;
    llm_media_source_t  source = { .fd = -1 };

    memset(&err, 0, sizeof(err));

    if (llm_wav_open(&w, data, size, &err) == LLM_OK) {
        if (w.data < data || w.frames > size
            || w.frames * w.channels * w.width
               > (uint64_t) (data + size - w.data))
        {
            abort();
        }

    } else if (err.status != 400 || err.msg[0] == '\0') {
        abort();
    }

    llm_media_limits_default(&limits);
    limits.seconds = 2;

    source.data = data;
    source.len = size;

    if (llm_media_sound(NULL, &source, &limits, 16000, &sound, &err) != LLM_OK)
    {
        return 0;
    }

    if (sound.n > 2 * 16000 + 1) {
        abort();
    }

    for (i = 0; i < sound.n; i++) {
        if (!isfinite(sound.samples[i])) {
            abort();
        }
    }

    llm_sound_free(&sound);

    return 0;
}
