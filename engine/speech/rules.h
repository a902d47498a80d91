/*
 * Which token comes next, from the logits of a Whisper decoder: what is never
 * said, timestamps in pairs that don't go back, and the probabilities that
 * judge a text.
 *
 * The functions are pure: the rules are read-only once they were made.
 * llm_speech_rules_t owns its table.
 */

#ifndef LLM_SPEECH_RULES_H
#define LLM_SPEECH_RULES_H

#include "engine/base/base.h"
#include "engine/model/whisper.h"
#include "engine/text/vocab/vocab.h"

/* a time's token is 0.02 s */
#define LLM_SPEECH_TICKS  50            /* per second */

typedef struct {
    llm_whisper_info_t   info;
    int32_t              space;         /* the token of " ", -1: none */
    unsigned char       *never;         /* [n_vocab] 1: is never taken */
} llm_speech_rules_t;

/*
 * suppressed: tokens that aren't speech, such as notes and brackets, in
 * addition to the special ones.  LLM_ERROR and *err: no memory, or the model's
 * ids do not fit together.
 */
int llm_speech_rules_init(llm_speech_rules_t *r,
    const llm_whisper_info_t *info, int32_t space, const int32_t *suppressed,
    size_t n_suppressed, llm_err_t *err);
/* the same, with the tokens of OpenAI's rules looked up in the vocabulary */
int llm_speech_rules_load(llm_speech_rules_t *r,
    const llm_whisper_info_t *info, const llm_vocab_t *v, llm_err_t *err);
void llm_speech_rules_free(llm_speech_rules_t *r);

/*
 * Sets the logits [n_vocab] of all tokens that must not follow to -INFINITY;
 * those that are no numbers, too.  tokens: the n that were taken in this window
 * so far, without the prompt; timestamps: whether there are any.
 */
void llm_speech_rules_apply(const llm_speech_rules_t *r, float *logits,
    const int32_t *tokens, size_t n, int timestamps);

/*
 * Takes a token: the most likely one if temperature is 0, else by `chance`, a
 * number in [0, 1).  *logprob is its logarithmic probability at temperature 1.
 * If every token is forbidden it is the end of the text.
 */
int32_t llm_speech_pick(const llm_speech_rules_t *r, const float *logits,
    double temperature, double chance, double *logprob);

/* the probability that nobody speaks, from the logits after
   <|startoftranscript|>, before any rule */
double llm_speech_silence(const llm_speech_rules_t *r, const float *logits);
/* the number of the most likely language, from the same logits, and its
   probability among languages */
uint32_t llm_speech_language(const llm_speech_rules_t *r, const float *logits,
    double *prob);

#endif /* LLM_SPEECH_RULES_H */
