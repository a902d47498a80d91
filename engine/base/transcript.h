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


/*
 * A transcript on its way to another process: records, each of which has what
 * is known of the whole and one segment, or none.  A record begins with its
 * size (uint32_t), a multiple of 8.
 */

/* most bytes of a record */
#define LLM_TRANSCRIPT_RECORD  (1u << 20)

/* appends the record of segment i, or, if t has no such segment, one without.
   pieces: with the bytes of its tokens.  LLM_ERROR: no memory, or it is too
   large */
int llm_transcript_pack(llm_buf_t *out, const llm_transcript_t *t, uint32_t i,
    int pieces);

/* a token and its bytes */
typedef struct {
    int32_t                           id;
    llm_str_t                         bytes;
} llm_transcript_piece_t;

/* what a record, 8-aligned, says: how many words and pieces it has.  LLM_ERROR:
   it is malformed.  The rest of *t is set, without segments */
int llm_transcript_peek(const void *rec, size_t size, llm_transcript_t *t,
    uint32_t *n_words, uint32_t *n_pieces);
/* the segment of a record that was peeked at: 0: it has none.  It points into
   the record and to words [n_words]; pieces [n_pieces] are set, too */
uint32_t llm_transcript_unpack(const void *rec, llm_transcript_segment_t *s,
    llm_transcript_word_t *words, llm_transcript_piece_t *pieces);

#endif /* LLM_TRANSCRIPT_H */
