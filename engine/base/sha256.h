/*
 * SHA-256 (FIPS 180-4) of bytes that are in memory as a whole.  It is for
 * digests of random secrets: nothing here makes passwords hard to guess.
 */

#ifndef LLM_SHA256_H
#define LLM_SHA256_H

#include "engine/base/base.h"

#define LLM_SHA256_LEN  32

/* LLM_ERROR: libcrypto lacks it, or has no memory */
int llm_sha256(const void *data, size_t len,
    unsigned char digest[LLM_SHA256_LEN]);

#endif /* LLM_SHA256_H */
