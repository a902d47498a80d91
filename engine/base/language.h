/*
 * The languages of speech models, in Whisper's order: its tokens of languages
 * have this order.  Constants.
 */

#ifndef LLM_LANGUAGE_H
#define LLM_LANGUAGE_H

#include <stddef.h>

#define LLM_LANGUAGES  100

typedef struct {
    const char  *code;                  /* "de" */
    const char  *name;                  /* "german" */
} llm_language_t;

/* i < LLM_LANGUAGES */
const llm_language_t *llm_language(size_t i);
/* the number of a language by its code or its name (or another usual name), in
   any case of letters; -1: not known */
int llm_language_find(const char *text, size_t len);

#endif /* LLM_LANGUAGE_H */
