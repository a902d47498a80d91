/*
 * Bodies of multipart/form-data (RFC 7578), in pieces as they come: fields and
 * files are handed on without being gathered.
 *
 * Invariant: what is handed on does not depend on how the body is cut.  Memory
 * is that of llm_multipart_t and no more: a part's header and the number of
 * parts have bounds.  The callbacks' strings are valid during the call.
 */

#ifndef LLM_API_MULTIPART_H
#define LLM_API_MULTIPART_H

#include "engine/base/base.h"

#define LLM_MULTIPART_BOUNDARY  70      /* bytes at most, by RFC 2046 */
#define LLM_MULTIPART_HEADER    4096    /* of one part's header */
#define LLM_MULTIPART_PARTS     128

/* a part: a field, or a file */
typedef struct {
    llm_str_t    name;
    llm_str_t    filename;              /* data NULL: there is none */
    llm_str_t    type;                  /* Content-Type; data NULL: none */
} llm_multipart_part_t;

/* LLM_ERROR and *err end the reading */
typedef struct {
    void        *ctx;
    int        (*begin)(void *ctx, const llm_multipart_part_t *part,
                        llm_err_t *err);
    int        (*data)(void *ctx, const void *data, size_t len,
                       llm_err_t *err);
    int        (*end)(void *ctx, llm_err_t *err);
} llm_multipart_sink_t;

typedef enum {
    LLM_MULTIPART_PREAMBLE = 0,
    LLM_MULTIPART_DATA,
    LLM_MULTIPART_AFTER,                /* a boundary: does a part follow? */
    LLM_MULTIPART_PADDING,              /* white space up to the line's end */
    LLM_MULTIPART_NEWLINE,
    LLM_MULTIPART_LINES,                /* a part's header */
    LLM_MULTIPART_DASH,                 /* the second one after the last
                                           boundary */
    LLM_MULTIPART_EPILOGUE
} llm_multipart_state_t;

typedef struct {
    llm_multipart_state_t  state;
    char                   mark[LLM_MULTIPART_BOUNDARY + 5];    /* CR, LF, two
                                                                   dashes, the
                                                                   boundary */
    uint32_t               mark_len;
    uint32_t               matched;     /* bytes of mark that have come */
    uint32_t               n_parts;
    uint32_t               header_len;
    uint64_t               pos;         /* in the body */
    char                   header[LLM_MULTIPART_HEADER];
} llm_multipart_t;

/*
 * content_type: the request's header.  LLM_ERROR and *err, of status 400 (no
 * boundary, or no right one) or 415 (another type).
 */
int llm_multipart_init(llm_multipart_t *m, llm_str_t content_type,
    llm_err_t *err);

/* reads the next bytes of the body; LLM_ERROR and *err: of status 400, with the
   place, or what a callback returned; then nothing more may be read */
int llm_multipart_read(llm_multipart_t *m, const llm_multipart_sink_t *sink,
    const void *data, size_t len, llm_err_t *err);
/* after the last byte: LLM_ERROR and *err: the body is not complete */
int llm_multipart_end(const llm_multipart_t *m, llm_err_t *err);

#endif /* LLM_API_MULTIPART_H */
