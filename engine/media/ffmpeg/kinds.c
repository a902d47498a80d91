/*
 * The kinds of media of the program llm-media-ffmpeg; see decode.h.
 */

#include "engine/media/ffmpeg/recording.h"


llm_decode_pt
llm_decode_find(uint32_t kind)
{
    return kind == LLM_MEDIA_RECORDING ? llm_decode_recording : NULL;
}


void
llm_decode_formats(void)
{
    llm_recording_formats();
}
