/*
 * The tables of builtins, and looking names up in them.  A row has a name, a
 * function, its parameters, the types that it applies to and "how", an option
 * of the function; llm_jfunc_t in value.h has the details.
 */

#include "engine/text/jinja/ast.h"
#include "engine/text/jinja/builtin.h"

#define STR     (1u << LLM_J_STR)
#define DICT    (1u << LLM_J_DICT)
#define LIST    (1u << LLM_J_LIST)
#define TUPLE   (1u << LLM_J_TUPLE)
#define LOOP    (1u << LLM_J_LOOP)
#define NUMBER  (1u << LLM_J_INT | 1u << LLM_J_FLOAT | 1u << LLM_J_BOOL)

#define BOTH    (LLM_JF_LEFT | LLM_JF_RIGHT)


static const llm_jfunc_t  llm_jtable_filters[] = {
    { "upper", llm_jfn_case, "", LLM_J_TEXT, LLM_JF_UPPER },
    { "lower", llm_jfn_case, "", LLM_J_TEXT, LLM_JF_LOWER },
    { "capitalize", llm_jfn_case, "", LLM_J_TEXT, LLM_JF_CAPITAL },
    { "title", llm_jfn_title, "", LLM_J_TEXT, 0 },
    { "trim", llm_jfn_strip, "chars:S?", LLM_J_TEXT, BOTH },
    { "replace", llm_jfn_replace, "old:t new:t count:I?", LLM_J_PLAIN, 0 },
    { "string", llm_jfn_self, "", LLM_J_TEXT, 0 },
    { "safe", llm_jfn_safe, "", LLM_J_PLAIN, 0 },
    { "escape", llm_jfn_escape, "", 0, 0 },
    { "e", llm_jfn_escape, "", 0, 0 },
    { "indent", llm_jfn_indent, "width? first? blank?", 0, 0 },
    { "truncate", llm_jfn_truncate,
      "length:i? killwords? end:s? leeway:I?", 0, 0 },
    { "wordcount", llm_jfn_wordcount, "", LLM_J_TEXT, 0 },
    { "tojson", llm_jfn_tojson,
      "ensure_ascii? indent? separators? sort_keys?", 0, 0 },

    { "int", llm_jfn_int, "default? base:i?", 0, 0 },
    { "float", llm_jfn_float, "default?", 0, 0 },
    { "abs", llm_jfn_abs, "/", 0, 0 },
    { "round", llm_jfn_round, "precision:i? method:s?", 0, 0 },

    { "default", llm_jfn_default, "default_value? boolean?", 0, 0 },
    { "d", llm_jfn_default, "default_value? boolean?", 0, 0 },
    { "attr", llm_jfn_attr, "name:s", 0, 0 },

    { "length", llm_jfn_length, "", 0, 0 },
    { "count", llm_jfn_length, "", 0, 0 },
    { "first", llm_jfn_first, "", 0, 0 },
    { "last", llm_jfn_last, "", 0, 0 },
    { "join", llm_jfn_join, "d:t? attribute?", 0, 0 },
    { "list", llm_jfn_list, "", 0, 0 },
    { "reverse", llm_jfn_reverse, "", 0, 0 },
    { "items", llm_jfn_items, "", 0, 0 },
    { "dictsort", llm_jfn_dictsort, "case_sensitive? by:s? reverse?", 0, 0 },
    { "sort", llm_jfn_sort, "reverse? case_sensitive? attribute?", 0, 0 },
    { "unique", llm_jfn_unique, "case_sensitive? attribute?", 0, 0 },

    { "map", llm_jfn_map, NULL, 0, 0 },
    { "select", llm_jfn_select, NULL, 0, 0 },
    { "reject", llm_jfn_select, NULL, 0, LLM_JF_REJECT },
    { "selectattr", llm_jfn_select, NULL, 0, LLM_JF_ATTR },
    { "rejectattr", llm_jfn_select, NULL, 0, LLM_JF_ATTR | LLM_JF_REJECT },
    { "min", llm_jfn_extreme, "case_sensitive? attribute?", 0, -1 },
    { "max", llm_jfn_extreme, "case_sensitive? attribute?", 0, 1 },
    { "sum", llm_jfn_sum, "attribute? start?", 0, 0 }
};


static const llm_jfunc_t  llm_jtable_tests[] = {
    { "defined", llm_jfn_is_type, "", 0, ~(1 << LLM_J_UNDEF) },
    { "undefined", llm_jfn_is_type, "", 0, 1 << LLM_J_UNDEF },
    { "none", llm_jfn_is_type, "", 0, 1 << LLM_J_NONE },
    { "string", llm_jfn_is_type, "", 0, STR },
    { "boolean", llm_jfn_is_type, "", 0, 1 << LLM_J_BOOL },
    { "integer", llm_jfn_is_type, "", 0, 1 << LLM_J_INT },
    { "float", llm_jfn_is_type, "", 0, 1 << LLM_J_FLOAT },
    { "number", llm_jfn_is_type, "", 0, NUMBER },
    { "mapping", llm_jfn_is_type, "", 0, DICT },
    { "sequence", llm_jfn_is_type, "", 0, STR | LIST | TUPLE | DICT
                                          | 1 << LLM_J_RANGE
                                          | 1 << LLM_J_UNDEF },
    { "true", llm_jfn_is_bool, "", 0, 1 },
    { "false", llm_jfn_is_bool, "", 0, 0 },
    { "iterable", llm_jfn_iterable, "", 0, 0 },
    { "callable", llm_jfn_callable, "", 0, 0 },
    { "sameas", llm_jfn_sameas, "other", 0, 0 },
    { "escaped", llm_jfn_escaped, "", 0, 0 },
    { "in", llm_jfn_relation, "seq", 0, LLM_JOP_IN },
    { "odd", llm_jfn_remainder, "", 0, 1 },
    { "even", llm_jfn_remainder, "", 0, 0 },
    { "divisibleby", llm_jfn_remainder, "num", 0, 0 },
    { "lower", llm_jfn_iscase, "", LLM_J_PLAIN, LLM_JF_LOWER },
    { "upper", llm_jfn_iscase, "", LLM_J_PLAIN, LLM_JF_UPPER },
    { "filter", llm_jfn_is_filter, "", 0, 0 },
    { "test", llm_jfn_is_test, "", 0, 0 },
    { "==", llm_jfn_relation, "/b", 0, LLM_JOP_EQ },
    { "eq", llm_jfn_relation, "/b", 0, LLM_JOP_EQ },
    { "equalto", llm_jfn_relation, "/b", 0, LLM_JOP_EQ },
    { "!=", llm_jfn_relation, "/b", 0, LLM_JOP_NE },
    { "ne", llm_jfn_relation, "/b", 0, LLM_JOP_NE },
    { ">", llm_jfn_relation, "/b", 0, '>' },
    { "gt", llm_jfn_relation, "/b", 0, '>' },
    { "greaterthan", llm_jfn_relation, "/b", 0, '>' },
    { ">=", llm_jfn_relation, "/b", 0, LLM_JOP_GE },
    { "ge", llm_jfn_relation, "/b", 0, LLM_JOP_GE },
    { "<", llm_jfn_relation, "/b", 0, '<' },
    { "lt", llm_jfn_relation, "/b", 0, '<' },
    { "lessthan", llm_jfn_relation, "/b", 0, '<' },
    { "<=", llm_jfn_relation, "/b", 0, LLM_JOP_LE },
    { "le", llm_jfn_relation, "/b", 0, LLM_JOP_LE }
};


/* methods without a function are refused: no known template uses them */

static const llm_jfunc_t  llm_jtable_methods[] = {
    { "strip", llm_jfn_strip, "/chars:S?", STR, BOTH },
    { "lstrip", llm_jfn_strip, "/chars:S?", STR, LLM_JF_LEFT },
    { "rstrip", llm_jfn_strip, "/chars:S?", STR, LLM_JF_RIGHT },
    { "upper", llm_jfn_case, "", STR, LLM_JF_UPPER },
    { "lower", llm_jfn_case, "", STR, LLM_JF_LOWER },
    { "capitalize", llm_jfn_case, "", STR, LLM_JF_CAPITAL },
    { "title", llm_jfn_case, "", STR, LLM_JF_TITLE },
    { "replace", llm_jfn_replace, "/old:s new count:i?", STR, 0 },
    { "join", llm_jfn_join_str, "/iterable", STR, 0 },
    { "removeprefix", llm_jfn_remove, "/prefix:s", STR, LLM_JF_LEFT },
    { "removesuffix", llm_jfn_remove, "/suffix:s", STR, LLM_JF_RIGHT },

    { "split", llm_jfn_split, "sep:S? maxsplit:i?", STR, LLM_JF_LEFT },
    { "rsplit", llm_jfn_split, "sep:S? maxsplit:i?", STR, LLM_JF_RIGHT },
    { "splitlines", llm_jfn_splitlines, "keepends?", STR, 0 },
    { "partition", llm_jfn_partition, "/sep:s", STR, LLM_JF_LEFT },
    { "rpartition", llm_jfn_partition, "/sep:s", STR, LLM_JF_RIGHT },
    { "startswith", llm_jfn_affix, "/prefix start:I? end:I?", STR,
      LLM_JF_LEFT },
    { "endswith", llm_jfn_affix, "/suffix start:I? end:I?", STR,
      LLM_JF_RIGHT },
    { "find", llm_jfn_find, "/sub:s start:I? end:I?", STR, LLM_JF_LEFT },
    { "rfind", llm_jfn_find, "/sub:s start:I? end:I?", STR, LLM_JF_RIGHT },
    { "index", llm_jfn_find, "/sub:s start:I? end:I?", STR,
      LLM_JF_LEFT | LLM_JF_MUST },
    { "rindex", llm_jfn_find, "/sub:s start:I? end:I?", STR,
      LLM_JF_RIGHT | LLM_JF_MUST },
    { "count", llm_jfn_count_str, "/sub:s", STR, 0 },
    { "isalpha", llm_jfn_isclass, "", STR, LLM_JF_ALPHA },
    { "isalnum", llm_jfn_isclass, "", STR, LLM_JF_ALNUM },
    { "isdigit", llm_jfn_isclass, "", STR, LLM_JF_DIGIT },
    { "isspace", llm_jfn_isclass, "", STR, LLM_JF_SPACE },
    { "islower", llm_jfn_iscase, "", STR, LLM_JF_LOWER },
    { "isupper", llm_jfn_iscase, "", STR, LLM_JF_UPPER },

    { "get", llm_jfn_get, "/key default?", DICT, 0 },
    { "keys", llm_jfn_view, "", DICT, LLM_J_KEYS },
    { "values", llm_jfn_view, "", DICT, LLM_J_VALUES },
    { "items", llm_jfn_view, "", DICT, LLM_J_ITEMS },
    { "copy", llm_jfn_copy, "", DICT | LIST, 0 },
    { "index", llm_jfn_index, "/value", LIST | TUPLE, LLM_JF_MUST },
    { "count", llm_jfn_index, "/value", LIST | TUPLE, 0 },
    { "cycle", llm_jfn_cycle, NULL, LOOP, 0 },

    { "clear", llm_jfn_clear, "", DICT | LIST, 0 },
    { "append", llm_jfn_append, "/value", LIST, 0 },
    { "extend", llm_jfn_extend, "/iterable", LIST, 0 },
    { "insert", llm_jfn_insert, "/index:i value", LIST, 0 },
    { "pop", llm_jfn_pop, "/index:i?", LIST, 0 },
    { "remove", llm_jfn_remove_item, "/value", LIST, 0 },
    { "reverse", llm_jfn_reverse_list, "", LIST, 0 },
    { "update", llm_jfn_update, NULL, DICT, 0 },
    { "setdefault", llm_jfn_setdefault, "/key default?", DICT, 0 },
    { "pop", llm_jfn_pop_key, "/key default?", DICT, 0 },
    { "popitem", NULL, NULL, DICT, 0 },
    { "sort", NULL, NULL, LIST, 0 }
};


static const llm_jfunc_t  llm_jtable_functions[] = {
    { "range", llm_jfn_range, "/start:i stop:i? step:i?", 0, 0 },
    { "dict", llm_jfn_dict, NULL, 0, 0 },
    { "namespace", llm_jfn_namespace, NULL, 0, 0 },
    { "joiner", llm_jfn_joiner, "sep?", 0, 0 },
    { "raise_exception", llm_jfn_raise, "message:t", 0, 0 },
    { "strftime_now", llm_jfn_strftime, "format:s", 0, 0 }
};


#define llm_jfuncs(table)  { table, llm_nelems(table) }

const llm_jfuncs_t  llm_jinja_filters = llm_jfuncs(llm_jtable_filters);
const llm_jfuncs_t  llm_jinja_tests = llm_jfuncs(llm_jtable_tests);
const llm_jfuncs_t  llm_jinja_methods = llm_jfuncs(llm_jtable_methods);
const llm_jfuncs_t  llm_jinja_functions = llm_jfuncs(llm_jtable_functions);


/* on: one of these types, or 0 if the table's rows apply to any type */

static const llm_jfunc_t *
llm_jfuncs_find(const llm_jfuncs_t *t, unsigned on, const llm_js_t *name)
{
    size_t  i;

    for (i = 0; i < t->n; i++) {
        if ((on == 0 || (t->v[i].on & on)) && llm_js_is(name, t->v[i].name)) {
            return &t->v[i];
        }
    }

    return NULL;
}


const llm_jfunc_t *
llm_jinja_filter(const llm_js_t *name)
{
    return llm_jfuncs_find(&llm_jinja_filters, 0, name);
}


const llm_jfunc_t *
llm_jinja_test(const llm_js_t *name)
{
    return llm_jfuncs_find(&llm_jinja_tests, 0, name);
}


const llm_jfunc_t *
llm_jinja_method(const llm_jv_t *obj, const llm_js_t *name)
{
    return llm_jfuncs_find(&llm_jinja_methods, 1u << obj->type, name);
}


int
llm_jinja_globals(llm_jrt_t *rt, llm_jdict_t *context)
{
    size_t    i;
    llm_jv_t  name, v;

    for (i = 0; i < llm_jinja_functions.n; i++) {
        v = llm_jv_of(LLM_J_FUNC);
        v.u.func = &llm_jinja_functions.v[i];

        llm_jtry(llm_js_lit(rt, v.u.func->name, &name));
        llm_jtry(llm_jdict_set(rt, context, &name, &v));
    }

    return LLM_OK;
}
