/*
 * One formatted value, as "%..." and "{:...}" have it in common.  Internal to
 * engine/text/jinja/.
 */

#ifndef LLM_JINJA_FORMAT_H
#define LLM_JINJA_FORMAT_H

#include "engine/text/jinja/strmeth.h"

/* how one value is to look */
typedef struct {
    int              alt;               /* # */
    int              zero;
    char             sign;              /* '-', '+' or ' ' */
    char             align;             /* '<', '>', '^', '=' or 0 */
    char             group;             /* ',' or '_' or 0 */
    char             type;              /* 0: none given */
    int64_t          width;
    int64_t          precision;         /* -1: none given */
    const llm_js_t  *fill;              /* NULL: a space */
} llm_jspec_t;

#define LLM_JFMT_MAX  100000            /* widest field, most digits */

/* "format: what" */
int llm_jfmt_fail(llm_jrt_t *rt, const char *what);

/* align is where text goes if spec does not say: '<', '>' or '=' */
int llm_jfmt_string(llm_jb_t *b, const llm_jspec_t *spec, const llm_jv_t *v,
    char align);
int llm_jfmt_int(llm_jb_t *b, const llm_jspec_t *spec, const llm_jv_t *v,
    char align);
int llm_jfmt_float(llm_jb_t *b, const llm_jspec_t *spec, const llm_jv_t *v,
    char align);

#endif /* LLM_JINJA_FORMAT_H */
