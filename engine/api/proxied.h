/*
 * What the answer of another server says that it has used, in the forms of
 * OpenAI's and Anthropic's APIs, whole or streamed.  The answer comes in pieces
 * of any size, and is not kept: memory is bounded by this record.
 *
 * An object named "usage" is read if it stands at most one level below the
 * answer, as in its "response" or "message": what a client has sent and the
 * server repeats, such as schemas of tools, stands deeper.  Of several objects
 * the largest figures count: streams repeat them as they grow, and some have the
 * prompt in the first event and the answer in the last one.
 *
 * https://platform.openai.com/docs/api-reference/chat/object
 * https://docs.anthropic.com/en/api/messages-streaming
 */

#ifndef LLM_PROXIED_H
#define LLM_PROXIED_H

#include "engine/base/base.h"

#define LLM_PROXIED_OBJECT  4096        /* most bytes of an object that is
                                           read; a larger one is skipped */

typedef struct {
    uint64_t     prompt;                /* tokens; cached ones are a part */
    uint64_t     cached;
    uint64_t     answer;
    uint64_t     seconds;               /* of audio, rounded up */
    uint64_t     events;                /* events of a stream with JSON */
    uint64_t     bytes;
    int          found;                 /* a usage was read */

    int          state;                 /* of the scanner, as all below */
    uint32_t     depth;                 /* of braces and brackets */
    int          string;                /* in a string */
    int          escaped;               /* in it, behind a backslash */
    uint32_t     matched;               /* bytes of "usage" that the string
                                           has so far; UINT32_MAX: it is
                                           another one */
    uint32_t     line;                  /* bytes of "data:{" that the line has
                                           so far; UINT32_MAX: another one */
    uint32_t     inside;                /* depth of the object that is read */
    size_t       len;
    char         object[LLM_PROXIED_OBJECT];
} llm_proxied_t;

void llm_proxied_init(llm_proxied_t *p);
void llm_proxied_read(llm_proxied_t *p, const char *data, size_t len);

#endif /* LLM_PROXIED_H */
