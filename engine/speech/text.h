/*
 * Tokens of a transcript as text.  Pure functions.
 */

#ifndef LLM_SPEECH_TEXT_H
#define LLM_SPEECH_TEXT_H

#include "engine/base/base.h"
#include "engine/text/vocab/vocab.h"

/* adds the text of those of n tokens that are text, id < eot: times, languages
   and other special tokens have none.  Bytes that are no UTF-8 become U+FFFD */
int llm_speech_text(llm_buf_t *out, const llm_vocab_t *v, int32_t eot,
    const int32_t *tokens, size_t n);
/* the same for the bytes of a text */
int llm_speech_utf8(llm_buf_t *out, const char *p, size_t n);

/* without white space at both ends */
llm_str_t llm_speech_strip(llm_str_t text);

/* bytes of a text per byte of it compressed by zlib: above 2.4 it repeats
   itself; 0: the text is empty, or no memory */
float llm_speech_ratio(llm_str_t text);

#endif /* LLM_SPEECH_TEXT_H */
