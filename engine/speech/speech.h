/*
 * The transcription of a piece of sound with a Whisper model, as OpenAI's own
 * program does it: windows of 30 seconds, each of which is decoded on what was
 * said before, again with more chance where a text repeats itself or is
 * improbable, and skipped where nobody speaks; the next one begins where the
 * last whole segment ended.
 *
 * This is a state machine that computes nothing of the model: it asks for one
 * thing after the other, and whoever drives it, a command or a scheduler of
 * many, answers.  The answer depends on the options and the model's numbers
 * alone.
 *
 * llm_speech_t owns its texts and tokens; one thread at a time uses it.  The
 * rules, their vocabulary and the strings of the options are the caller's and
 * outlive it.
 */

#ifndef LLM_SPEECH_H
#define LLM_SPEECH_H

#include "engine/base/transcript.h"
#include "engine/speech/rules.h"

typedef struct llm_speech_s  llm_speech_t;

typedef struct {
    const llm_speech_rules_t  *rules;
    const llm_vocab_t         *vocab;
    int                        language;    /* number in base/language.h; -1:
                                               detected in the first window */
    int                        translate;   /* to English */
    int                        timestamps;  /* segments have times */
    int                        words;       /* words have times */
    int                        condition;   /* windows see the text before */
    int                        thresholds;  /* texts are judged, silence is
                                               skipped */
    double                     temperature; /* the only one; -1: 0, then up to
                                               1 by 0.2 while a text fails */
    uint64_t                   seed;
    llm_str_t                  prompt;      /* text before the first window */
} llm_speech_opts_t;

typedef enum {
    LLM_SPEECH_WINDOW = 0,              /* encode frames `frame` ...; then
                                           llm_speech_encoded() */
    LLM_SPEECH_LANGUAGE,                /* decode; llm_speech_logits() */
    LLM_SPEECH_STEP,                    /* decode; llm_speech_logits() */
    LLM_SPEECH_ALIGN,                   /* llm_speech_aligned() */
    LLM_SPEECH_DONE
} llm_speech_want_t;

/* most rows of one step whose logits are wanted */
#define LLM_SPEECH_OUT  4

typedef struct {
    llm_speech_want_t   want;
    size_t              frame;          /* of WINDOW: the first of 3,000 frames
                                           of mel */
    const int32_t      *tokens;         /* of the rest: [n] */
    uint32_t            n;
    uint32_t            pos;            /* of the first token: 0 begins the
                                           sequence anew */
    uint32_t            n_out;          /* rows whose logits are wanted: the
                                           last ones */
} llm_speech_ask_t;

/*
 * frames: of mel that the sound has.  NULL and *err: status 400 if an option
 * does not fit the model, 500 if there is no memory.
 */
llm_speech_t *llm_speech_create(const llm_speech_opts_t *opts, size_t frames,
    llm_err_t *err);
void llm_speech_free(llm_speech_t *s);

/* what is needed next; valid until it is answered.  Asked twice it is the
   same */
void llm_speech_next(const llm_speech_t *s, llm_speech_ask_t *ask);

/* the answers; LLM_ERROR and *err: no memory */
int llm_speech_encoded(llm_speech_t *s, llm_err_t *err);
/* the first and the last row of those that were wanted, [n_vocab] */
int llm_speech_logits(llm_speech_t *s, const float *first, const float *last,
    llm_err_t *err);
/* weights: of the next alignment head, as llm_whisper_weigh() gives them,
   [n][n_audio_ctx]; overwritten.  NULL: the model has none.  LLM_MORE: those of
   another one are wanted */
int llm_speech_aligned(llm_speech_t *s, float *weights, llm_err_t *err);

/*
 * What is known so far: all segments of the windows that are complete; *t is
 * valid until the next answer.  LLM_ERROR and *err: no memory.
 */
int llm_speech_transcript(llm_speech_t *s, llm_transcript_t *t,
    llm_err_t *err);
/* the number of its language, -1: not known yet */
int llm_speech_spoken(const llm_speech_t *s);
/* times of words are wanted: states are encoded for llm_whisper_look(), too */
int llm_speech_has_words(const llm_speech_t *s);
/* memory that it takes now */
size_t llm_speech_bytes(const llm_speech_t *s);
/* tokens that were decoded, those of rejected texts, too */
uint64_t llm_speech_tokens(const llm_speech_t *s);

#endif /* LLM_SPEECH_H */
