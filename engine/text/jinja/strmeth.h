/*
 * The methods of strings that filters share with "text".method().  Internal
 * to engine/text/jinja/.
 */

#ifndef LLM_JINJA_STRMETH_H
#define LLM_JINJA_STRMETH_H

#include "engine/text/jinja/case.h"

#define LLM_JM_LEFT   1
#define LLM_JM_RIGHT  2

/* chars NULL: white space; sides: which ends */
int llm_jm_strip(llm_jrt_t *rt, llm_js_t *s, const llm_js_t *chars,
    int sides, llm_jv_t *res);
/* count < 0: all */
int llm_jm_replace(llm_jrt_t *rt, llm_js_t *s, const llm_js_t *old,
    const llm_js_t *new, int64_t count, llm_jv_t *res);
int llm_jm_case(llm_jrt_t *rt, llm_js_t *s, llm_jc_mapping_t mapping,
    llm_jv_t *res);
/* the line that begins at pos: its end, and *next where the next begins */
size_t llm_jm_line(const llm_js_t *s, size_t pos, size_t *next);
/* padded to width characters; mode '<', '>' or '^' */
int llm_jm_pad(llm_jrt_t *rt, llm_js_t *s, int64_t width,
    const llm_js_t *fill, int mode, llm_jv_t *res);

/* "{}".format(): args without the string (format.c) */
int llm_jinja_format(llm_jrt_t *rt, llm_js_t *s, const llm_jargs_t *args,
    llm_jv_t *res);

extern const llm_jfunc_t  llm_jm_string_methods[];
extern const size_t       llm_jm_n_string_methods;
extern const llm_jfunc_t  llm_jm_search_methods[];
extern const size_t       llm_jm_n_search_methods;

#endif /* LLM_JINJA_STRMETH_H */
