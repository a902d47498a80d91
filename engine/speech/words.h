/*
 * Words of a window: a text cut into words, their times from those of tokens,
 * punctuation with the word that it belongs to.
 *
 * Words stand in the order of the text and next to one another: a word is a
 * run of bytes of `text`; one that has been merged with its neighbour is empty.
 * llm_speech_words_t owns both.
 */

#ifndef LLM_SPEECH_WORDS_H
#define LLM_SPEECH_WORDS_H

#include "engine/base/base.h"
#include "engine/text/vocab/vocab.h"

typedef struct {
    size_t               from;          /* bytes of text */
    size_t               to;
    uint32_t             n_tokens;
    double               start;         /* seconds from the window's beginning;
                                           of llm_speech_words_fit() on, of the
                                           sound's */
    double               end;
} llm_speech_word_t;

typedef struct {
    llm_buf_t            text;
    llm_speech_word_t   *data;
    size_t               n;
    double               median;        /* seconds of a word, 0.7 at most */
} llm_speech_words_t;

/* a segment's times, and its words: data[first], ..., data[first + n - 1] */
typedef struct {
    size_t               first;
    size_t               n;
    double               start;
    double               end;
} llm_speech_fit_t;

/*
 * Cuts n text tokens into words: at spaces and around punctuation, or, if
 * spaces is not set, into characters, for languages that have no spaces.
 * LLM_ERROR and *err: no memory; w is to be freed either way.
 */
int llm_speech_words_split(llm_speech_words_t *w, const llm_vocab_t *v,
    const int32_t *tokens, size_t n, int spaces, llm_err_t *err);
void llm_speech_words_free(llm_speech_words_t *w);

/* sets the times of words; frames [n + 1], of 0.02 s, are the beginnings of
   the tokens, and the end of the last one; shortens words that are stretched
   over a pause; merges punctuation with its neighbours */
void llm_speech_words_time(llm_speech_words_t *w, const uint32_t *frames);

/*
 * Takes the words of n_tokens text tokens from *next on for a segment, whose
 * times f->start and f->end are set, and moves *next after them.  Times
 * become those of the sound, offset seconds later.  Of the segment's times and
 * those of its first and last word the better ones are kept for both.  *spoken:
 * when the segment before it ended; becomes the end of this one.
 */
void llm_speech_words_fit(llm_speech_words_t *w, size_t *next,
    size_t n_tokens, double offset, double *spoken, llm_speech_fit_t *f);

#endif /* LLM_SPEECH_WORDS_H */
