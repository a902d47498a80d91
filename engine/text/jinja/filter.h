/*
 * The files that filters live in.  Internal to engine/text/jinja/.
 */

#ifndef LLM_JINJA_FILTER_H
#define LLM_JINJA_FILTER_H

#include "engine/text/jinja/strmeth.h"

typedef struct {
    const llm_jfunc_t  *v;
    size_t              n;
} llm_jfilters_t;

extern const llm_jfilters_t  llm_jf_text;       /* filter.c */
extern const llm_jfilters_t  llm_jf_seq;        /* filter_seq.c */
extern const llm_jfilters_t  llm_jf_pick;       /* filter_pick.c */
extern const llm_jfilters_t  llm_jf_number;     /* number.c */
extern const llm_jfilters_t  llm_jf_html;       /* html.c */

/* the subject's str(), markup kept */
int llm_jf_soft_str(llm_jrt_t *rt, const llm_jv_t *v, llm_jv_t *res);
/* item.attribute, where attribute is an index or a "dotted.path" */
int llm_jf_attribute(llm_jrt_t *rt, const llm_jv_t *item,
    const llm_jv_t *attribute, llm_jv_t *res);
/* the same or, without an attribute, the item; lower case if fold */
int llm_jf_key(llm_jrt_t *rt, const llm_jv_t *item,
    const llm_jv_t *attribute, int fold, llm_jv_t *res);

#endif /* LLM_JINJA_FILTER_H */
