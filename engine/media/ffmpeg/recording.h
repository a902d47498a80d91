/*
 * The sound of a recording by FFmpeg's libavformat and libavcodec, for the
 * program llm-media-ffmpeg: the process of a job, its sandbox and its frames
 * are those of llm-media (decoder/decode.h).
 *
 * Of FFmpeg only the demuxers and decoders that are named in the tables are
 * used, on the bytes in memory and in this thread; pictures are not decoded.
 * A build without FFmpeg's headers refuses all files.
 */

#ifndef LLM_FFMPEG_RECORDING_H
#define LLM_FFMPEG_RECORDING_H

#include "engine/media/decoder/decode.h"

/* the first audio stream as samples of one channel, the mean of all */
int llm_decode_recording(llm_decode_t *d);
void llm_recording_formats(void);

#endif /* LLM_FFMPEG_RECORDING_H */
