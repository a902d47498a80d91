/*
 * Text in shared memory that one thread writes and any process reads, never in
 * part: a sequence lock over words.
 */

#ifndef LLM_WORDS_H
#define LLM_WORDS_H

#include <stdatomic.h>

#include "engine/base/base.h"

/* bytes of text, a multiple of 8 */
#define llm_words(bytes)                                                     \
    struct {                                                                 \
        _Atomic uint32_t  seq;          /* odd while it is written */        \
        _Atomic uint64_t  word[(bytes) / 8];                                 \
    }

#define llm_words_set(w, text)                                               \
    llm_words_write(&(w)->seq, (w)->word, llm_nelems((w)->word), text)
/* zeros if the writer died while it wrote */
#define llm_words_get(w, text)                                               \
    llm_words_read(&(w)->seq, (w)->word, llm_nelems((w)->word), text)

/* text has n * 8 bytes */
void llm_words_write(_Atomic uint32_t *seq, _Atomic uint64_t *word, size_t n,
    const char *text);
void llm_words_read(_Atomic uint32_t *seq, _Atomic uint64_t *word, size_t n,
    char *text);

#endif /* LLM_WORDS_H */
