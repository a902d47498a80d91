/*
 * What the answer of another server says that it has used, in the forms of
 * OpenAI's, Anthropic's, Ollama's and llama-server's APIs, whole or streamed.
 * The answer comes in pieces of any size, and is not kept: memory is bounded by
 * this record.
 *
 * An object named "usage" is read if it stands at most one level below the
 * answer, as in its "response" or "message": what a client has sent and the
 * server repeats, such as schemas of tools, stands deeper.  Of several objects
 * the largest figures count: streams repeat them as they grow, and some have the
 * prompt in the first event and the answer in the last one.
 *
 * Ollama and llama-server have the figures as members of the answer itself, of
 * the last line or event of a stream ("done" or "stop" is true there), or of
 * each item of an array.  Those of several prompts add up.
 *
 * https://platform.openai.com/docs/api-reference/chat/object
 * https://docs.anthropic.com/en/api/messages-streaming
 * https://docs.ollama.com/api
 * https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md
 */

#ifndef LLM_PROXIED_H
#define LLM_PROXIED_H

#include "engine/base/base.h"

#define LLM_PROXIED_OBJECT  4096        /* most bytes of a value that is read;
                                           a larger one is skipped */
#define LLM_PROXIED_NAME    24          /* more than any member's name has that
                                           is looked for */

/* the figures of an object that has them as members of its own */
typedef struct {
    uint64_t     prompt;
    uint64_t     cached;
    uint64_t     answer;
    int          more;                  /* "done" is false */
    int          done;                  /* it is true */
    int          stop;                  /* "stop" is true */
} llm_proxied_own_t;

typedef struct {
    uint64_t     prompt;                /* tokens; cached ones are a part */
    uint64_t     cached;
    uint64_t     answer;
    uint64_t     seconds;               /* of audio, rounded up */
    uint64_t     events;                /* events of a stream with JSON, or its
                                           lines but the last */
    uint64_t     bytes;
    int          found;                 /* a usage was read */

    llm_proxied_own_t  own;             /* of the object that is read */
    llm_proxied_own_t  sum;             /* of those that are complete */

    int          state;                 /* of the scanner, as all below */
    uint32_t     depth;                 /* of braces and brackets */
    int          string;                /* in a string */
    int          escaped;               /* in it, behind a backslash */
    uint32_t     base;                  /* depth of the answer's members: 1, or
                                           2 in an array */
    uint32_t     what;                  /* the member that is read */
    uint32_t     name_len;              /* bytes of the string so far;
                                           UINT32_MAX: it is no name that is
                                           looked for */
    char         name[LLM_PROXIED_NAME];
    uint32_t     line;                  /* bytes of "data:{" that the line has
                                           so far; UINT32_MAX: another one */
    uint32_t     inside;                /* depth of the object that is read */
    size_t       len;
    char         object[LLM_PROXIED_OBJECT];
} llm_proxied_t;

void llm_proxied_init(llm_proxied_t *p);
void llm_proxied_read(llm_proxied_t *p, const char *data, size_t len);

#endif /* LLM_PROXIED_H */
