/*
 * Media in the contents of requests, in all dialects: which parts are images
 * or sound, where their bytes are, and what a request may have of them.  The
 * bytes go into the memory that workers and engine share, and the message gets
 * an llm_media_ref_t for each (engine/llm.h).
 *
 * Reading (llm_api_media_read) checks all that can be said without decoding;
 * a request's media are then taken once (llm_api_media_take).
 */

#ifndef LLM_API_MEDIA_H
#define LLM_API_MEDIA_H

#include "engine/api/endpoint.h"

/* bytes of a URL that is fetched, and URLs of a request: each takes nginx some
   memory for the rest of the request */
#define LLM_API_MAX_URL   8192
#define LLM_API_MAX_URLS  64

/* what the location and the model allow */
typedef struct {
    const llm_api_conf_t  *conf;
    uint32_t               takes;       /* LLM_MEDIUM_..., kinds that the model
                                           takes */
    int                    drafted;     /* 1: the parts are those of a draft,
                                           whose media are taken already */
} llm_api_media_rules_t;

/* where the bytes of a part are */
typedef enum {
    LLM_API_SOURCE_BASE64 = 0,
    LLM_API_SOURCE_URL,                 /* they are fetched */
    LLM_API_SOURCE_TAKEN                /* in the message's media, at index */
} llm_api_source_t;

typedef struct {
    uint32_t               kind;        /* LLM_MEDIUM_... */
    llm_media_type_t       type;
    llm_detail_t           detail;
    llm_api_source_t       source;
    llm_str_t              text;        /* base64, or the URL, in the body */
    uint32_t               index;
} llm_api_media_t;

/* a type of parts */
typedef struct llm_api_media_row_s  llm_api_media_row_t;

/* request.c: finds out what the model takes, before the body is read */
void llm_api_media_begin(llm_api_reader_t *rd);
/* the rules for a request's media */
void llm_api_media_rules(const llm_api_reader_t *rd,
    llm_api_media_rules_t *rules);
/* NULL: not a type of images or sound */
const llm_api_media_row_t *llm_api_media_find(const llm_flat_t *type);
/* LLM_MEDIUM_... */
uint32_t llm_api_media_kind(const llm_api_media_row_t *row);
/* reads a part of this type */
int llm_api_media_read(const llm_api_media_row_t *row, const llm_flat_t *part,
    const llm_api_media_rules_t *rules, const llm_api_at_t *at,
    llm_api_media_t *m, llm_err_t *err);
/* reads the base64 text of an image that is not a part */
int llm_api_media_image(const llm_flat_t *v,
    const llm_api_media_rules_t *rules, const llm_api_at_t *at,
    llm_api_media_t *m, llm_err_t *err);

/* adds m to the message's media and sets m->index; at: the place of its part.
   LLM_ERROR and err: 400 too many, too large, not base64; 429 no room now */
int llm_api_media_take(llm_api_reader_t *rd, llm_api_media_t *m,
    const llm_api_at_t *at, llm_err_t *err);
/* appends a content part that stands for m, as templates know it */
void llm_api_media_write(const llm_api_media_t *m, llm_buf_t *out);

/* request.c: appends what was taken to the message; or frees it */
void llm_api_media_end(llm_api_reader_t *rd);
void llm_api_media_drop(llm_api_reader_t *rd);

#endif /* LLM_API_MEDIA_H */
