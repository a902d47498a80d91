/*
 * GPT-2's alphabet: a printable character for each byte, in which files write
 * the tokens of byte-level vocabularies.  Pure functions.
 */

#ifndef LLM_ALPHABET_H
#define LLM_ALPHABET_H

#include "engine/base/base.h"

/* writes the character of a byte, 1 or 2 bytes of UTF-8; returns their
   number */
size_t llm_byte_char(char *out, unsigned char byte);
/* the byte that a character stands for; -1: none */
int llm_char_byte(uint32_t cp);

#endif /* LLM_ALPHABET_H */
