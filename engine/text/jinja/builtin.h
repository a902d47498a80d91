/*
 * The builtins of templates: filters, tests, methods and globals.  Their
 * tables are in builtin.c, their functions in builtin_*.c.  Internal to
 * engine/text/jinja/.
 */

#ifndef LLM_JINJA_BUILTIN_H
#define LLM_JINJA_BUILTIN_H

#include "engine/text/jinja/value.h"

/*
 * A function may have several names; args->f->how tells it what to do under
 * each:
 */

/* strip, partition, find, split: which end, or both */
#define LLM_JF_LEFT      1
#define LLM_JF_RIGHT     2

/* find, index: it is an error if nothing is found */
#define LLM_JF_MUST      4

/* select: the first argument is an attribute; the test is inverted */
#define LLM_JF_ATTR      1
#define LLM_JF_REJECT    2

/* case: what to make of letters */
#define LLM_JF_UPPER     1
#define LLM_JF_LOWER     2
#define LLM_JF_CAPITAL   3              /* first letter upper case, the others
                                           lower case */
#define LLM_JF_TITLE     4              /* the same for every word */

/* isclass */
enum { LLM_JF_ALPHA, LLM_JF_ALNUM, LLM_JF_DIGIT, LLM_JF_SPACE };

typedef struct {
    const llm_jfunc_t  *v;
    size_t              n;
} llm_jfuncs_t;

extern const llm_jfuncs_t  llm_jinja_filters;
extern const llm_jfuncs_t  llm_jinja_tests;
extern const llm_jfuncs_t  llm_jinja_methods;
extern const llm_jfuncs_t  llm_jinja_functions;

/* the value of an argument; def or NULL if it was not given */
#define llm_jarg_int(args, k, def)                                           \
    (llm_jv_given(&(args)->v[k]) ? (args)->v[k].u.i : (int64_t) (def))
#define llm_jarg_str(args, k)                                                \
    (llm_jv_given(&(args)->v[k]) ? (args)->v[k].u.s : NULL)

/* the end of the line of s that begins at pos; *next: beginning of the next
   line */
size_t llm_js_line(const llm_js_t *s, size_t pos, size_t *next);

int llm_js_lower(llm_jrt_t *rt, const llm_js_t *s, llm_jv_t *res);

/* builtin_case.c */
llm_jfn_t  llm_jfn_case, llm_jfn_title, llm_jfn_isclass, llm_jfn_iscase,
    llm_jfn_wordcount;

/* builtin_str.c */
llm_jfn_t  llm_jfn_strip, llm_jfn_replace, llm_jfn_join_str,
    llm_jfn_remove, llm_jfn_self, llm_jfn_safe, llm_jfn_escape,
    llm_jfn_indent, llm_jfn_truncate;

/* builtin_find.c */
llm_jfn_t  llm_jfn_find, llm_jfn_count_str, llm_jfn_affix, llm_jfn_split,
    llm_jfn_partition, llm_jfn_splitlines;

/* builtin_number.c */
llm_jfn_t  llm_jfn_int, llm_jfn_float, llm_jfn_abs, llm_jfn_round;

/* builtin_seq.c */
llm_jfn_t  llm_jfn_length, llm_jfn_first, llm_jfn_last, llm_jfn_join,
    llm_jfn_list, llm_jfn_reverse, llm_jfn_items, llm_jfn_dictsort,
    llm_jfn_sort, llm_jfn_unique;

/* builtin_pick.c */
llm_jfn_t  llm_jfn_map, llm_jfn_select, llm_jfn_extreme, llm_jfn_sum,
    llm_jfn_default, llm_jfn_attr;

/* builtin_json.c */
llm_jfn_t  llm_jfn_tojson;

/* builtin_test.c */
llm_jfn_t  llm_jfn_is_type, llm_jfn_is_bool, llm_jfn_iterable,
    llm_jfn_callable, llm_jfn_escaped, llm_jfn_remainder, llm_jfn_relation,
    llm_jfn_sameas, llm_jfn_is_filter, llm_jfn_is_test;

/* builtin_method.c: of dictionaries, lists, loops */
llm_jfn_t  llm_jfn_get, llm_jfn_view, llm_jfn_index, llm_jfn_cycle;

/* builtin_change.c: of lists and dictionaries, which they change */
llm_jfn_t  llm_jfn_append, llm_jfn_extend, llm_jfn_insert, llm_jfn_pop,
    llm_jfn_remove_item, llm_jfn_reverse_list, llm_jfn_clear, llm_jfn_copy,
    llm_jfn_update, llm_jfn_setdefault, llm_jfn_pop_key;

/* builtin_global.c */
llm_jfn_t  llm_jfn_range, llm_jfn_dict, llm_jfn_namespace,
    llm_jfn_joiner, llm_jfn_raise, llm_jfn_strftime;

/* item.attribute, where attribute is an index or a "dotted.path"; without
   attribute the item itself; in lower case if fold */
int llm_jf_key(llm_jrt_t *rt, const llm_jv_t *item,
    const llm_jv_t *attribute, int fold, llm_jv_t *res);

#endif /* LLM_JINJA_BUILTIN_H */
