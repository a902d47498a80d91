/*
 * Any bytes as a file of sound, to the decoder of llm-media (sound.h).
 */

#include "t/fuzz/sound.h"


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_sound(data, size, llm_decode_sound);
}
