/*
 * Any bytes as a recording, to the decoder of llm-media-ffmpeg (sound.h).
 * FFmpeg itself is the distribution's, without checks of each access: what is
 * tested is our use of it.
 */

#include "engine/media/ffmpeg/recording.h"
#include "t/fuzz/sound.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_sound(data, size, llm_decode_recording);
}
