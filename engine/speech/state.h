/*
 * The state of a transcription, shared by the files of this folder: speech.c
 * (what is asked for next), window.c (a window's text becomes segments) and
 * keep.c (what is kept of them).
 */

#ifndef LLM_SPEECH_STATE_H
#define LLM_SPEECH_STATE_H

#include "engine/speech/align.h"
#include "engine/speech/speech.h"
#include "engine/speech/words.h"

/* a segment of the window that is being decoded: its tokens from, ...,
   to - 1 */
typedef struct {
    size_t               from;
    size_t               to;
    llm_speech_fit_t     fit;           /* times, words */
} llm_speech_piece_t;

/* a segment that is kept: offsets into the arrays of llm_speech_kept_t */
typedef struct {
    size_t               text;
    size_t               text_len;
    size_t               token;
    size_t               n_tokens;
    size_t               word;
    size_t               n_words;
    double               start;
    double               end;
    uint32_t             seek;
    float                temperature;
    float                avg_logprob;
    float                ratio;
    float                silence;
} llm_speech_segment_t;

typedef struct {
    size_t               text;
    size_t               text_len;
    double               start;
    double               end;
} llm_speech_kept_word_t;

typedef struct {
    llm_buf_t                  text;
    llm_buf_t                  tokens;      /* int32_t: the prompt's, then those
                                               of the segments */
    llm_buf_t                  logprobs;    /* float, of each of them */
    llm_buf_t                  segments;    /* llm_speech_segment_t */
    llm_buf_t                  words;       /* llm_speech_kept_word_t */
    size_t                     prompt;      /* tokens before this one are not
                                               seen by the next window */
    llm_transcript_segment_t  *out;         /* llm_speech_transcript()'s, of all
                                               segments and words */
    llm_transcript_word_t     *out_words;
} llm_speech_kept_t;

struct llm_speech_s {
    llm_speech_opts_t    o;
    llm_speech_want_t    want;
    size_t               frames;
    int                  language;

    size_t               seek;          /* first frame of the window */
    size_t               size;          /* its frames that have sound */
    size_t               encoded;       /* seek of what was encoded last;
                                           SIZE_MAX: nothing was */
    uint32_t             attempt;       /* number of the temperature */

    int32_t             *seq;           /* [n_text_ctx + 1] prompt and text */
    float               *logprobs;      /* of seq */
    float               *logits;        /* [n_vocab] after the rules */
    uint32_t             sot;           /* place of <|startoftranscript|> */
    uint32_t             begin;         /* of the first token of the text */
    uint32_t             len;           /* of seq */
    double               sum;           /* of logarithmic probabilities */
    double               silence;
    float                ratio;
    uint64_t             decoded;

    llm_speech_piece_t  *pieces;        /* [n_text_ctx + 1] */
    size_t               n_pieces;
    int                  open;          /* the text ended in a single time */
    int32_t             *forced;        /* [n_text_ctx + 1] tokens of ALIGN */
    uint32_t             n_forced;
    uint32_t             n_text;        /* text tokens among them */
    llm_speech_align_t   align;         /* of the heads that were answered */
    double               spoken;        /* when the last word ended */

    llm_speech_kept_t    kept;
};

/* of the attempt that is being made */
static inline double
llm_speech_temperature(const llm_speech_t *s)
{
    return s->o.temperature >= 0 ? s->o.temperature : 0.2 * s->attempt;
}


/* window.c: cuts the text of a window, n tokens, into s->pieces; returns the
   first frame of the next window */
size_t llm_speech_cut(llm_speech_t *s, const int32_t *tokens, size_t n);
/* gives the words of s->forced to the pieces, and returns the first frame of
   the next window, which was `next` before; frames: the beginnings of the
   tokens */
int llm_speech_pieces_words(llm_speech_t *s, llm_speech_words_t *w,
    const uint32_t *frames, size_t *next, llm_err_t *err);

/* keep.c */
void llm_speech_kept_init(llm_speech_kept_t *k);
void llm_speech_kept_free(llm_speech_kept_t *k);
size_t llm_speech_kept_bytes(const llm_speech_kept_t *k);
/* adds the pieces; w: their words, or NULL */
int llm_speech_keep(llm_speech_t *s, const llm_speech_words_t *w,
    llm_err_t *err);

#endif /* LLM_SPEECH_STATE_H */
