/*
 * Several transcriptions with one model, which share its steps: a step decodes
 * a token of each that wants one.  A window that was wanted before others had
 * theirs is encoded before they go on, so that clips which come together are
 * decoded together; one that is wanted later is encoded in between, a piece in
 * turns with a step, so that no text waits for those that come after it.
 *
 * Invariant: a transcription is the same whatever others run with it, as a
 * row's logits are.
 *
 * A crew owns the memory of a window and of its rows; the model, the
 * transcriptions and their sounds are the caller's and outlive their places.
 * One thread at a time uses a crew and its model.
 */

#ifndef LLM_SPEECH_CREW_H
#define LLM_SPEECH_CREW_H

#include "engine/speech/spectrogram.h"
#include "engine/speech/speech.h"

typedef struct llm_speech_crew_s  llm_speech_crew_t;

/* places: transcriptions at a time, at most the sequences and the states that w
   was loaded for; NULL and *err: no memory */
llm_speech_crew_t *llm_speech_crew_create(llm_whisper_t *w, uint32_t places,
    llm_err_t *err);
void llm_speech_crew_free(llm_speech_crew_t *c);

/* *place: where s runs; LLM_FULL: all places are taken */
int llm_speech_crew_add(llm_speech_crew_t *c, llm_speech_t *s,
    const llm_speech_sound_t *sound, uint32_t *place);
/* gives the place back, at any time between steps */
void llm_speech_crew_remove(llm_speech_crew_t *c, uint32_t place);
/* LLM_MORE: it runs; LLM_OK: it has ended; LLM_ERROR and *err: it failed, the
   others go on */
int llm_speech_crew_state(const llm_speech_crew_t *c, uint32_t place,
    llm_err_t *err);

/* one step of the model.  LLM_MORE: there is more to do; LLM_OK: all have
   ended; LLM_ERROR and *err: the model failed */
int llm_speech_crew_step(llm_speech_crew_t *c, llm_err_t *err);
/* windows that its steps have encoded so far */
uint64_t llm_speech_crew_encodes(const llm_speech_crew_t *c);

/* runs one transcription to its end */
int llm_speech_run(llm_speech_t *s, llm_whisper_t *w,
    const llm_speech_sound_t *sound, llm_err_t *err);

#endif /* LLM_SPEECH_CREW_H */
