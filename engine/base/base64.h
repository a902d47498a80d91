/*
 * Base64 (RFC 4648, section 4).  Bytes may come in pieces, which are encoded
 * as if they were one.
 */

#ifndef LLM_BASE64_H
#define LLM_BASE64_H

#include "engine/base/base.h"

/* zeros at first */
typedef struct {
    uint32_t       n;                   /* bytes that wait for a third */
    unsigned char  left[2];
} llm_base64_t;

void llm_base64_add(llm_base64_t *b, llm_buf_t *out, const void *data,
    size_t len);
/* what waits, with its padding; b is as at first again */
void llm_base64_end(llm_base64_t *b, llm_buf_t *out);

/* LLM_ERROR: it is not base64, and out has got a part of the bytes, or
   out has failed */
int llm_base64_decode(llm_buf_t *out, const char *s, size_t len);

#endif /* LLM_BASE64_H */
