/*
 * Which builtins the fixture templates reach: a builtin that none of them
 * does has a reason here why it stays, or it goes.
 */

#include "engine/text/jinja/ast.h"
#include "engine/text/jinja/builtin.h"
#include "t/unit/tap.h"

#include <dirent.h>

static const struct {
    const char          *kind;
    const llm_jfuncs_t  *table;
} kinds[] = {
    { "filter", &llm_jinja_filters },
    { "test", &llm_jinja_tests },
    { "method", &llm_jinja_methods },
    { "global", &llm_jinja_functions }
};

#define FILTERS  0
#define TESTS    1
#define METHODS  2
#define GLOBALS  3

#define PEER     "llama.cpp's tests of its interpreter use it"
#define ALIAS    "another name of one that is reached"
#define COMPARE  "a spelling of a comparison, for select() and its kin"
#define CUT      "reasoning and tool calls are cut out of content so"
#define CHANGE   "templates for other renderers than jinja2's sandbox use it"
#define TELL     "arguments are told apart so; one function for all of them"

static const struct {
    const char  *kind;
    const char  *name;
    const char  *why;
} reasons[] = {
    { "filter", "capitalize", PEER },
    { "filter", "title", PEER },
    { "filter", "indent", PEER },
    { "filter", "truncate", PEER },
    { "filter", "wordcount", PEER },
    { "filter", "float", PEER },
    { "filter", "abs", PEER },
    { "filter", "reverse", PEER },
    { "filter", "dictsort", PEER },
    { "filter", "sort", PEER },
    { "filter", "select", PEER },
    { "filter", "min", PEER },
    { "filter", "max", PEER },
    { "filter", "sum", PEER },
    { "filter", "d", ALIAS },
    { "filter", "count", ALIAS },
    { "filter", "escape",
      "what text marked safe does to other text, by name" },
    { "filter", "e", "what text marked safe does to other text, by name" },
    { "filter", "round", "the one way to write a number shorter" },
    { "filter", "attr", "the one way to a method that a key hides" },
    { "test", "boolean", PEER },
    { "test", "integer", PEER },
    { "test", "float", PEER },
    { "test", "number", PEER },
    { "test", "callable", PEER },
    { "test", "sameas", PEER },
    { "test", "escaped", PEER },
    { "test", "in", PEER },
    { "test", "odd", PEER },
    { "test", "even", PEER },
    { "test", "divisibleby", PEER },
    { "test", "lower", PEER },
    { "test", "upper", PEER },
    { "test", "filter", PEER },
    { "test", "test", PEER },
    { "test", "==", COMPARE },
    { "test", "eq", COMPARE },
    { "test", "!=", COMPARE },
    { "test", "ne", COMPARE },
    { "test", ">", COMPARE },
    { "test", "gt", COMPARE },
    { "test", "greaterthan", COMPARE },
    { "test", ">=", COMPARE },
    { "test", "ge", COMPARE },
    { "test", "<", COMPARE },
    { "test", "lt", COMPARE },
    { "test", "lessthan", COMPARE },
    { "test", "<=", COMPARE },
    { "test", "le", COMPARE },
    { "method", "upper", PEER },
    { "method", "lower", PEER },
    { "method", "capitalize", PEER },
    { "method", "title", PEER },
    { "method", "replace", PEER },
    { "method", "rsplit", PEER },
    { "method", "keys", PEER },
    { "method", "values", PEER },
    { "method", "join",
      "Python's way to write the filter, in many templates" },
    { "method", "removeprefix", CUT },
    { "method", "removesuffix", CUT },
    { "method", "splitlines", CUT },
    { "method", "partition", CUT },
    { "method", "rpartition", CUT },
    { "method", "find", CUT },
    { "method", "rfind", CUT },
    { "method", "index", CUT },
    { "method", "rindex", CUT },
    { "method", "count", CUT },
    { "method", "isalpha", TELL },
    { "method", "isalnum", TELL },
    { "method", "isdigit", TELL },
    { "method", "isspace", TELL },
    { "method", "islower", TELL },
    { "method", "isupper", TELL },
    { "method", "extend", CHANGE },
    { "method", "insert", CHANGE },
    { "method", "remove", CHANGE },
    { "method", "reverse", CHANGE },
    { "method", "clear", CHANGE },
    { "method", "update", CHANGE },
    { "method", "setdefault", CHANGE },
    { "method", "copy", "who changes a list in Python copies it first" },
    { "method", "cycle", "the loop's own; without it a call of nothing" },
    { "global", "dict", "the one way to add keys to a dictionary" },
    { "global", "joiner", "jinja2's own way to commas between items" }
};

/* by kind and place in its table */
static char  reached[llm_nelems(kinds)][100];


/* all rows of that name: a template does not tell the type */

static void
reach(int kind, const llm_js_t *name)
{
    size_t  i;

    for (i = 0; i < kinds[kind].table->n; i++) {
        if (llm_js_is(name, kinds[kind].table->v[i].name)) {
            reached[kind][i] = 1;
        }
    }
}


/* map("upper"), selectattr("x", "defined"): what a filter is told to use */

static void
walk_filter(const llm_jnode_t *n)
{
    int                 kind;
    const char         *name;
    const llm_jnode_t  *arg;

    if (n->func == NULL) {
        return;
    }

    reach(FILTERS, n->value.u.s);

    name = n->func->name;
    arg = n->b;
    kind = TESTS;

    if (strcmp(name, "map") == 0) {
        kind = FILTERS;

    } else if (strcmp(name, "selectattr") == 0
               || strcmp(name, "rejectattr") == 0)
    {
        arg = arg ? arg->next : NULL;

    } else if (strcmp(name, "select") != 0 && strcmp(name, "reject") != 0) {
        return;
    }

    if (arg && arg->kind == LLM_JN_CONST && arg->value.type == LLM_J_STR) {
        reach(kind, arg->value.u.s);
    }
}


static void
walk(const llm_jnode_t *n)
{
    for ( /* void */ ; n; n = n->next) {
        if (n->kind == LLM_JN_FILTER) {
            walk_filter(n);

        } else if (n->kind == LLM_JN_TEST) {
            reach(TESTS, n->value.u.s);

        } else if (n->kind == LLM_JN_NAME) {
            reach(GLOBALS, n->value.u.s);

        } else if (n->kind == LLM_JN_CALL && n->a->kind == LLM_JN_GETATTR) {
            reach(METHODS, n->a->value.u.s);
        }

        walk(n->a);
        walk(n->b);
        walk(n->c);
        walk(n->d);
        walk(n->e);
    }
}


static void
read_template(const char *dir, const char *name)
{
    char          path[1200], *src;
    FILE         *f;
    size_t        len;
    llm_err_t     err;
    llm_jinja_t  *t;

    snprintf(path, sizeof(path), "%s/chat-templates/%s", dir, name);

    f = fopen(path, "r");
    src = malloc(1 << 20);
    len = f && src ? fread(src, 1, 1 << 20, f) : 0;
    t = llm_jinja_compile(src, len, &err);

    ok(len && t, "%s compiles", name);

    if (t) {
        walk(t->body);
    }

    llm_jinja_free(t);
    free(src);

    if (f) {
        fclose(f);
    }
}


static const char *
reason(size_t kind, const char *name)
{
    size_t  i;

    for (i = 0; i < llm_nelems(reasons); i++) {
        if (strcmp(reasons[i].kind, kinds[kind].kind) == 0
            && strcmp(reasons[i].name, name) == 0)
        {
            return reasons[i].why;
        }
    }

    return NULL;
}


static void
test_reached(const char *dir)
{
    DIR                *d;
    size_t              k, i;
    const char         *dot;
    struct dirent      *e;
    const llm_jfunc_t  *f;
    char                path[1200];

    snprintf(path, sizeof(path), "%s/chat-templates", dir);
    d = opendir(path);

    while (d && (e = readdir(d)) != NULL) {
        dot = strrchr(e->d_name, '.');

        if (dot && strcmp(dot, ".jinja") == 0) {
            read_template(dir, e->d_name);
        }
    }

    if (d) {
        closedir(d);
    }

    for (k = 0; k < llm_nelems(kinds); k++) {
        for (i = 0; i < kinds[k].table->n; i++) {
            f = &kinds[k].table->v[i];

            if (f->fn) {
                ok(reached[k][i] || reason(k, f->name),
                   "the %s %s is reached, or stays for a reason",
                   kinds[k].kind, f->name);
            }
        }
    }
}


/* what stays for a reason is there, to be called */

static void
test_reasons(void)
{
    size_t  r, k, i, found;

    for (r = 0; r < llm_nelems(reasons); r++) {
        found = 0;

        for (k = 0; k < llm_nelems(kinds); k++) {
            if (strcmp(kinds[k].kind, reasons[r].kind) != 0) {
                continue;
            }

            for (i = 0; i < kinds[k].table->n; i++) {
                found += kinds[k].table->v[i].fn
                         && strcmp(kinds[k].table->v[i].name,
                                   reasons[r].name) == 0;
            }
        }

        ok(found, "there is a %s %s: %s", reasons[r].kind, reasons[r].name,
           reasons[r].why);
    }
}


int
main(void)
{
    const char  *dir;

    test_reasons();

    dir = tap_fixtures();

    if (dir == NULL) {
        skip("the shared fixtures are not here");

    } else {
        test_reached(dir);
    }

    return done_testing();
}
