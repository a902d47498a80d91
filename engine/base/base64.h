/*
 * Base64 (RFC 4648, section 4).  The encoder takes the bytes in pieces; the
 * result is the same as for all bytes at once.
 */

#ifndef LLM_BASE64_H
#define LLM_BASE64_H

#include "engine/base/base.h"

/* initialised with zeros */
typedef struct {
    uint32_t       n;                   /* bytes in left, 0 to 2: not encoded
                                           yet, a group needs 3 */
    unsigned char  left[2];
} llm_base64_t;

void llm_base64_add(llm_base64_t *b, llm_buf_t *out, const void *data,
    size_t len);
/* writes the last group with its padding, and resets b */
void llm_base64_end(llm_base64_t *b, llm_buf_t *out);

/* LLM_ERROR: s is not base64, and out has a part of the bytes; or out has
   failed */
int llm_base64_decode(llm_buf_t *out, const char *s, size_t len);

/*
 * The same for what clients send, to memory that has room for
 * llm_base64_size() bytes: so many are written if the text is base64.  White
 * space may be anywhere, such as the line breaks of MIME, and the padding may
 * be missing.  size(): SIZE_MAX: no base64 has so many digits.
 */
size_t llm_base64_size(const char *s, size_t len);
int llm_base64_read(unsigned char *out, const char *s, size_t len);

#endif /* LLM_BASE64_H */
