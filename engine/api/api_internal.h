/*
 * What the files of the wire format share: the place of a value in the body,
 * and the errors that name it.
 */

#ifndef LLM_API_INTERNAL_H
#define LLM_API_INTERNAL_H

#include "engine/api/api.h"

#define LLM_API_MAX_BIAS      4096
#define LLM_API_MAX_STOP_IDS  256
#define LLM_API_MAX_STOP_LEN  1024      /* bytes of a stop string */
#define LLM_API_MAX_NAME      256       /* bytes of a function's name; one event
                                           carries it */


/*
 * The place of a value in a body, as a chain from it to the root; its name
 * ("messages[2].content") is written only for an error.
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

/* complaints.c: "messages[2].content[0].type" */
void llm_api_at_text(const llm_api_at_t *at, char *buf, size_t size);
/* errors in OpenAI's words; all return LLM_ERROR */
int llm_api_bad_type(llm_err_t *err, const llm_api_at_t *at,
    const char *want, const llm_flat_t *got);
int llm_api_bad_value(llm_err_t *err, const llm_api_at_t *at,
    const char *fmt, ...) llm_printf_like(3, 4);
/* known is a sentence that lists the words allowed */
int llm_api_bad_word(llm_err_t *err, const llm_api_at_t *at, llm_str_t got,
    const char *known);
int llm_api_missing(llm_err_t *err, const llm_api_at_t *at);
int llm_api_empty(llm_err_t *err, const llm_api_at_t *at);
int llm_api_too_long(llm_err_t *err, const llm_api_at_t *at, size_t max,
    const llm_flat_t *got);
int llm_api_unsupported(llm_err_t *err, const llm_api_at_t *at,
    const char *why);

/* complaints.c: LLM_OK if v has the type and is within the bounds */
int llm_api_check_type(llm_err_t *err, const llm_api_at_t *at,
    const llm_flat_t *v, llm_flat_type_t type);
int llm_api_is_int(const llm_flat_t *v);
int llm_api_check_int(llm_err_t *err, const llm_api_at_t *at,
    const llm_flat_t *v, int64_t min, int64_t max);
int llm_api_check_number(llm_err_t *err, const llm_api_at_t *at,
    const llm_flat_t *v, double min, double max, int above_min);

/* is v this string?  v may be NULL */
int llm_api_str_is(const llm_flat_t *v, const char *text);
/* the value of a key, NULL if it is absent or null; object may be NULL */
const llm_flat_t *llm_api_member(const llm_flat_t *object, const char *key);
/* a required member of this type; at is the object's place; NULL and *err if
   it is missing */
const llm_flat_t *llm_api_need(llm_err_t *err, const llm_api_at_t *at,
    const llm_flat_t *object, const char *key, llm_flat_type_t type);

/* names.c: may the location use the i-th model? */
int llm_api_allowed(const llm_api_conf_t *conf, uint32_t i);
/* is the model's sunset over? */
int llm_api_is_gone(const llm_api_conf_t *conf, uint32_t i);

#endif /* LLM_API_INTERNAL_H */
