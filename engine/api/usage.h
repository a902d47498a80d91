/*
 * What clients have used, as a file that outlives nginx; see sealed.h.
 *
 *   {"usage_of": "NAME"}
 *   {"key": "ann", "day": "2026-11-23", "day_tokens": 1234.5, "requests": 7,
 *    "prompt_tokens": 900, "cached_tokens": 64, "completion_tokens": 341}
 *   {"accounts": 1, "sha256": "of all bytes before this line"}
 *
 * A key that is not UTF-8 is written in hexadecimal as "key_hex".  day_tokens
 * are the tokens of that day (UTC), the other figures are totals.
 * "held_tokens" are written while requests are being served, for other
 * processes that use the file.
 */

#ifndef LLM_USAGE_H
#define LLM_USAGE_H

#include "engine/base/base.h"

#define LLM_USAGE_KEY    65536          /* most bytes of a key */
#define LLM_USAGE_BYTES  (1u << 30)     /* most bytes of a file */

typedef struct {
    llm_str_t    key;
    uint32_t     day;                   /* days since 1970 */
    uint64_t     day_tokens;            /* 1/1000 tokens */
    uint64_t     requests;
    uint64_t     prompt;                /* tokens; cached ones are a part */
    uint64_t     cached;
    uint64_t     answer;
    uint64_t     held;                  /* 1/1000 tokens, reserved by requests
                                           that are being served */
} llm_usage_t;

/* LLM_ERROR: out has failed */
int llm_usage_begin(llm_buf_t *out, llm_str_t name);
int llm_usage_add(llm_buf_t *out, const llm_usage_t *u);
int llm_usage_end(llm_buf_t *out, uint64_t n_accounts);

/*
 * Calls take() for each account, after the last line was found right.  name:
 * expected name of the file, or NULL for any.  LLM_ERROR and *err if the name
 * differs, or if take() has returned LLM_ERROR.
 */
typedef int (*llm_usage_pt)(void *data, const llm_usage_t *u, llm_err_t *err);
int llm_usage_read(const char *text, size_t len, const char *name,
    llm_usage_pt take, void *data, llm_err_t *err);
/* reads a file's bytes, which the caller frees; LLM_ERROR and *err: it cannot
   be read */
int llm_usage_text(const char *path, llm_buf_t *text, llm_err_t *err);
/* reads a file's accounts, whatever the file's name */
int llm_usage_read_file(const char *path, llm_usage_pt take, void *data,
    llm_err_t *err);

#endif /* LLM_USAGE_H */
