/*
 * What the files of the wire format share: where in a body something stands,
 * and what is said of it when it is not as it should be.
 */

#ifndef LLM_API_INTERNAL_H
#define LLM_API_INTERNAL_H

#include "engine/api/api.h"

#define LLM_API_MAX_BIAS      4096
#define LLM_API_MAX_STOP_IDS  256
#define LLM_API_MAX_STOP_LEN  1024      /* bytes of a stop string */


/*
 * Where in a body a value stands, as a chain from it to the root; it is put
 * into words ("messages[2].content") only when there is something to say.
 */

typedef struct llm_api_at_s  llm_api_at_t;

struct llm_api_at_s {
    const llm_api_at_t  *parent;
    const char          *key;           /* NULL: an index */
    uint32_t             index;
};

#define llm_api_key(parent, key)  (&(llm_api_at_t) { parent, key, 0 })
#define llm_api_idx(parent, i)    (&(llm_api_at_t) { parent, NULL, i })
#define llm_api_top(key)          llm_api_key(NULL, key)

/* complaints.c: errors in OpenAI's words; all return LLM_ERROR */
int llm_api_bad_type(llm_err_t *err, const llm_api_at_t *at,
    const char *want, const llm_flat_t *got);
int llm_api_bad_value(llm_err_t *err, const llm_api_at_t *at,
    const char *fmt, ...) llm_printf_like(3, 4);
int llm_api_missing(llm_err_t *err, const llm_api_at_t *at);
int llm_api_empty(llm_err_t *err, const llm_api_at_t *at);
int llm_api_too_long(llm_err_t *err, const llm_api_at_t *at, size_t max,
    const llm_flat_t *got);
int llm_api_unsupported(llm_err_t *err, const llm_api_at_t *at,
    const char *why);

/* complaints.c: LLM_OK when v is of the type and within the bounds */
int llm_api_check_type(llm_err_t *err, const llm_api_at_t *at,
    const llm_flat_t *v, llm_flat_type_t type);
int llm_api_check_int(llm_err_t *err, const llm_api_at_t *at,
    const llm_flat_t *v, int64_t min, int64_t max);
int llm_api_check_number(llm_err_t *err, const llm_api_at_t *at,
    const llm_flat_t *v, double min, double max, int above_min);

/* is it a string of these characters?  v may be NULL */
int llm_api_str_is(const llm_flat_t *v, const char *text);
/* the value of a key, NULL also for null; object may be NULL */
const llm_flat_t *llm_api_member(const llm_flat_t *object, const char *key);
/* a required member of that type at object's place, or NULL and *err */
const llm_flat_t *llm_api_need(llm_err_t *err, const llm_api_at_t *at,
    const llm_flat_t *object, const char *key, llm_flat_type_t type);

/* names.c: may the location use the i-th model? */
int llm_api_allowed(const llm_api_conf_t *conf, uint32_t i);

#endif /* LLM_API_INTERNAL_H */
