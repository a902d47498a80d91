/*
 * Text in shared memory; see words.h.  A sequence lock without fences: words
 * are stored with release and loaded with acquire, so a reader that sees a new
 * word also sees the odd number that was stored before it.
 */

#include "engine/ipc/words.h"

#define LLM_WORDS_TRIES  1000


void
llm_words_write(_Atomic uint32_t *seq, _Atomic uint64_t *word, size_t n,
    const char *text)
{
    size_t    i;
    uint32_t  s;
    uint64_t  w;

    s = atomic_load_explicit(seq, memory_order_relaxed) & ~1u;
    atomic_store_explicit(seq, s + 1, memory_order_relaxed);

    for (i = 0; i < n; i++) {
        memcpy(&w, text + i * 8, 8);
        atomic_store_explicit(&word[i], w, memory_order_release);
    }

    atomic_store_explicit(seq, s + 2, memory_order_release);
}


void
llm_words_read(_Atomic uint32_t *seq, _Atomic uint64_t *word, size_t n,
    char *text)
{
    int       tries;
    size_t    i;
    uint32_t  s;
    uint64_t  w;

    for (tries = 0; tries < LLM_WORDS_TRIES; tries++) {
        s = atomic_load_explicit(seq, memory_order_acquire);

        if (s & 1) {
            continue;
        }

        for (i = 0; i < n; i++) {
            w = atomic_load_explicit(&word[i], memory_order_acquire);
            memcpy(text + i * 8, &w, 8);
        }

        if (atomic_load_explicit(seq, memory_order_relaxed) == s) {
            return;
        }
    }

    memset(text, 0, n * 8);
}
