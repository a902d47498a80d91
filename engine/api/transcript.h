/*
 * Transcripts as OpenAI's API writes them: JSON, plain text and the two
 * formats of subtitles.  Pure functions.
 */

#ifndef LLM_API_TRANSCRIPT_H
#define LLM_API_TRANSCRIPT_H

#include "engine/base/transcript.h"

typedef enum {
    LLM_TRANSCRIPT_JSON = 0,
    LLM_TRANSCRIPT_TEXT,
    LLM_TRANSCRIPT_SRT,
    LLM_TRANSCRIPT_VERBOSE,             /* verbose_json */
    LLM_TRANSCRIPT_VTT
} llm_transcript_format_t;

/* what verbose_json has */
#define LLM_TRANSCRIPT_SEGMENTS  1
#define LLM_TRANSCRIPT_WORDS     2      /* all words, after the segments */
#define LLM_TRANSCRIPT_INNER     4      /* and in each segment its own, with
                                           their spaces */
/* of json: a log probability for each token */
#define LLM_TRANSCRIPT_LOGPROBS  8

/* a format by its name in requests; LLM_ERROR: there is none of this name */
int llm_transcript_format(llm_str_t name, llm_transcript_format_t *format);
const char *llm_transcript_type(llm_transcript_format_t format);

/* what is known of a language's name or code: its number in base/language.h,
   or LLM_ERROR and *err, of status 400 */
int llm_transcript_language(llm_str_t text, int *language, llm_err_t *err);

/* adds a body; LLM_ERROR: out has failed */
int llm_transcript_write(llm_buf_t *out, const llm_transcript_t *t,
    llm_transcript_format_t format, unsigned has);

/*
 * The frames of a stream.  deltas(): one for each segment of t, which are those
 * that are new; *begun, 0 at first, becomes 1 when a text was written.  done():
 * the last frame, with all segments.  has: as above.
 */
int llm_transcript_deltas(llm_buf_t *out, const llm_transcript_t *t,
    int *begun, unsigned has);
int llm_transcript_done(llm_buf_t *out, const llm_transcript_t *t,
    unsigned has);

#endif /* LLM_API_TRANSCRIPT_H */
