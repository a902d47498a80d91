/*
 * What was said in a piece of sound: segments of text with their times, and
 * words.  Plain data: speech/ makes it, api/ and cli/ write it.
 *
 * All texts are UTF-8.  Who made a transcript owns it and all that it points
 * to.
 */

#ifndef LLM_TRANSCRIPT_H
#define LLM_TRANSCRIPT_H

#include "engine/base/base.h"

typedef struct {
    llm_str_t                         text;     /* with its leading space */
    double                            start;    /* seconds */
    double                            end;
} llm_transcript_word_t;

typedef struct {
    llm_str_t                         text;     /* with its leading space */
    double                            start;    /* seconds */
    double                            end;
    uint32_t                          seek;     /* of its window, in frames of
                                                   10 ms */
    const int32_t                    *tokens;
    const float                      *logprobs; /* of the tokens */
    uint32_t                          n_tokens;
    uint32_t                          n_words;
    const llm_transcript_word_t      *words;
    float                             temperature;
    float                             avg_logprob;
    float                             compression_ratio;
    float                             no_speech_prob;
} llm_transcript_segment_t;

typedef struct {
    int                               translated;
    const char                       *language;     /* "german" */
    double                            duration;     /* seconds */
    int                               words;        /* words were looked for */
    uint32_t                          n_segments;
    const llm_transcript_segment_t   *segments;
    /* the bytes of a token, for log probabilities; NULL: not known */
    llm_str_t                       (*piece)(void *ctx, int32_t id);
    void                             *ctx;
} llm_transcript_t;

#endif /* LLM_TRANSCRIPT_H */
