/*
 * SHA-256 (FIPS 180-4) of bytes in memory.  For digests of random secrets only,
 * not of passwords: a fast hash does not make guessing hard.
 */

#ifndef LLM_SHA256_H
#define LLM_SHA256_H

#include "engine/base/base.h"

#define LLM_SHA256_LEN  32

/* LLM_ERROR: libcrypto has no SHA-256, or no memory */
int llm_sha256(const void *data, size_t len,
    unsigned char digest[LLM_SHA256_LEN]);

#endif /* LLM_SHA256_H */
