/*
 * A compiled template: tokens, nodes, scopes.  Internal to
 * engine/text/jinja/.
 *
 * Invariant: after llm_jinja_compile() nothing here changes any more; the
 * template's arena owns all of it.
 */

#ifndef LLM_JINJA_AST_H
#define LLM_JINJA_AST_H

#include "engine/text/jinja/value.h"

typedef enum {
    LLM_JT_EOF = 0,
    LLM_JT_DATA,
    LLM_JT_VAR_BEGIN,
    LLM_JT_VAR_END,
    LLM_JT_BLOCK_BEGIN,
    LLM_JT_BLOCK_END,
    LLM_JT_NAME,
    LLM_JT_STR,
    LLM_JT_INT,
    LLM_JT_FLOAT,
    LLM_JT_OP
} llm_jtok_type_t;

/* an operator's characters, in tokens and nodes */
#define LLM_JOP(a, b)    ((a) | (b) << 8)
#define LLM_JOP_POW      LLM_JOP('*', '*')
#define LLM_JOP_FDIV     LLM_JOP('/', '/')
#define LLM_JOP_EQ       LLM_JOP('=', '=')
#define LLM_JOP_NE       LLM_JOP('!', '=')
#define LLM_JOP_GE       LLM_JOP('>', '=')
#define LLM_JOP_LE       LLM_JOP('<', '=')
#define LLM_JOP_IN       LLM_JOP('i', 'n')
#define LLM_JOP_NOTIN    LLM_JOP('n', 'i')

typedef struct {
    llm_jtok_type_t  type;
    int              op;
    uint32_t         line;
    llm_str_t        text;              /* DATA and NAME; STRING without
                                           escapes */
    int64_t          i;
    double           f;
} llm_jtok_t;

typedef struct {
    llm_jtok_t  *v;
    size_t       n;
    size_t       cap;
} llm_jtoks_t;


/*
 * Nodes.  What the fields hold, by kind ("list": linked by next):
 *
 *   CONST      value
 *   NAME       value the name; hops, slot where it lives
 *   NSREF      the same, and attr: a target "ns.attr"
 *   TUPLE LIST a the items (list)
 *   DICT       a keys and values by turns (list)
 *   COND       a test, b if true, c if false or NULL
 *   AND OR     a, b
 *   NOT        a
 *   UNARY      op '-' or '+', a
 *   BINARY     op, a, b
 *   CONCAT     a (list)
 *   COMPARE    a the first, b OPERANDs (list: op, a)
 *   GETATTR    a, value the name
 *   GETITEM    a, b
 *   SLICE      a, b start, c stop, d step, each may be NULL
 *   CALL       a, b arguments (list): an expression, or KEYWORD (value,
 *              a), STAR (a), STARSTAR (a)
 *   FILTER     a or NULL, value the name, func or NULL if unknown, b as CALL
 *   TEST       the same
 *
 *   DATA       value
 *   OUTPUT     a
 *   FOR        a target, b iterable, c test or NULL, d body, e else; scope
 *              the body's, test_scope, else_scope; slot of "loop" or
 *              LLM_J_NO_SLOT; op 1 if recursive
 *   IF         a, b, c (lists b and c; an elif is an IF alone in c)
 *   SET        a target, b; op 1 at the top level
 *   SETBLOCK   a target, b FILTER or NULL, d body, scope; op as SET
 *   MACRO      value the name, a PARAMs (list: value, slot, a the default or
 *              NULL), d body, scope, slots of specials; hops, slot of its
 *              name; op as SET
 *   CALLBLOCK  a as MACRO, b CALL, d body, scope, specials
 *   FILTERBLOCK b FILTER, d body, scope
 *   WITH       a targets (list), b values (list), d body, scope
 *   SCOPE      d body, scope
 *   BREAK CONTINUE
 */

typedef enum {
    LLM_JN_CONST = 0, LLM_JN_NAME, LLM_JN_NSREF, LLM_JN_TUPLE, LLM_JN_LIST,
    LLM_JN_DICT, LLM_JN_COND, LLM_JN_AND, LLM_JN_OR, LLM_JN_NOT, LLM_JN_UNARY,
    LLM_JN_BINARY, LLM_JN_CONCAT, LLM_JN_COMPARE, LLM_JN_OPERAND,
    LLM_JN_GETATTR, LLM_JN_GETITEM, LLM_JN_SLICE, LLM_JN_CALL, LLM_JN_KEYWORD,
    LLM_JN_STAR, LLM_JN_STARSTAR, LLM_JN_FILTER, LLM_JN_TEST,

    LLM_JN_DATA, LLM_JN_OUTPUT, LLM_JN_FOR, LLM_JN_IF, LLM_JN_SET,
    LLM_JN_SETBLOCK, LLM_JN_MACRO, LLM_JN_PARAM, LLM_JN_CALLBLOCK,
    LLM_JN_FILTERBLOCK, LLM_JN_WITH, LLM_JN_SCOPE, LLM_JN_BREAK,
    LLM_JN_CONTINUE, LLM_J_N_KINDS
} llm_jkind_t;

#define LLM_J_NO_SLOT  UINT32_MAX

/* value of a slot when its scope is entered */
typedef enum {
    LLM_JS_PARAM = 0,                   /* set by the caller */
    LLM_JS_UNSET,
    LLM_JS_ALIAS,                       /* value of the outer variable */
    LLM_JS_RESOLVE                      /* value in the context */
} llm_jvar_init_t;

typedef struct {
    llm_jv_t           name;
    llm_jvar_init_t    init;
    uint32_t           hops;            /* ALIAS: distance to the outer
                                           variable's scope */
    uint32_t           slot;
} llm_jvar_t;

typedef struct llm_jscope_s  llm_jscope_t;

struct llm_jscope_s {
    llm_jscope_t  *up;
    llm_jvar_t    *v;
    uint32_t      *index;           /* [cap * 2] slots by hash of their names */
    uint32_t       n;
    uint32_t       cap;             /* a power of 2, or 0 */
};

/* variables that a macro has without parameters of these names */
typedef struct {
    uint32_t     caller;
    uint32_t     varargs;
    uint32_t     kwargs;
} llm_jspecials_t;

struct llm_jnode_s {
    llm_jkind_t         kind;
    int                 op;
    uint32_t            line;
    uint32_t            height;         /* height of an expression's tree */
    uint32_t            hops;
    uint32_t            slot;
    llm_jnode_t        *next;
    llm_jnode_t        *a;
    llm_jnode_t        *b;
    llm_jnode_t        *c;
    llm_jnode_t        *d;
    llm_jnode_t        *e;
    llm_jv_t            value;
    llm_jv_t            attr;
    const llm_jfunc_t  *func;
    llm_jscope_t       *scope;
    llm_jscope_t       *test_scope;
    llm_jscope_t       *else_scope;
    llm_jspecials_t     specials;
};

struct llm_jinja_s {
    llm_arena_t   arena;
    llm_jnode_t  *body;
    llm_jscope_t *scope;
    llm_jtoks_t   tokens;
};


/*
 * One compilation.  The first error is kept; from then on the tokens are at
 * their end and nothing more is looked for, so the parser need not check for
 * errors after each step.  If memory for a node or a scope runs out, a spare
 * one is used.
 */
typedef struct {
    llm_jinja_t  *t;
    llm_err_t    *err;
    int           failed;               /* LLM_ERROR once err is set */
    uint32_t      depth;                /* depth of nested expressions and
                                           tags */
    uint32_t      loops;                /* loops around the current position,
                                           in this function */
    size_t        pos;                  /* the parser's position in the
                                           tokens */
    llm_jnode_t   spare_node;
    llm_jscope_t  spare_scope;
} llm_jcomp_t;

#define LLM_J_MAX_NESTING  200
#define LLM_J_MAX_HEIGHT   400

/* most parameters of a macro and arguments of a call */
#define LLM_J_MAX_ARGS     1000

/* line 0: unknown; always returns LLM_ERROR */
int llm_jcomp_fail(llm_jcomp_t *c, uint32_t line, const char *fmt, ...)
    llm_printf_like(3, 4);
/* NULL: out of memory, which is kept as the error */
void *llm_jcomp_alloc(llm_jcomp_t *c, size_t size);
llm_jnode_t *llm_jcomp_node(llm_jcomp_t *c, llm_jkind_t kind, uint32_t line);
/* a constant string; data must live as long as the template */
llm_jv_t llm_jcomp_str(llm_jcomp_t *c, llm_str_t s);

/* lex.c */
int llm_jinja_lex(llm_jcomp_t *c, const char *src, size_t len);

/* parse_tok.c: the tokens at hand */
int llm_jtok_is_name(const llm_jtok_t *tok, const char *name);
llm_jtok_t *llm_jparse_tok(llm_jcomp_t *c);
llm_jtok_t *llm_jparse_look(llm_jcomp_t *c);
void llm_jparse_next(llm_jcomp_t *c);
int llm_jparse_is_op(llm_jcomp_t *c, int op);
int llm_jparse_is_name(llm_jcomp_t *c, const char *name);
int llm_jparse_skip_op(llm_jcomp_t *c, int op);
int llm_jparse_skip_name(llm_jcomp_t *c, const char *name);
void llm_jparse_want_op(llm_jcomp_t *c, int op);
llm_jv_t llm_jparse_want_name(llm_jcomp_t *c);
void llm_jparse_want(llm_jcomp_t *c, llm_jtok_type_t type, const char *what);
void llm_jparse_unexpected(llm_jcomp_t *c, const char *wanted);
/* adds a level of nesting, which c->depth-- ends */
void llm_jparse_deeper(llm_jcomp_t *c);

/* a node of the current line, with a and b */
llm_jnode_t *llm_jparse_node(llm_jcomp_t *c, llm_jkind_t kind,
    llm_jnode_t *a, llm_jnode_t *b);
/* finishes a node whose children are complete: bounds how deep evaluation
   goes */
llm_jnode_t *llm_jparse_seal(llm_jcomp_t *c, llm_jnode_t *n);

/* parse_primary.c, parse_expr.c */
#define LLM_JP_NO_COND  1               /* no "x if y" at this level */
#define LLM_JP_PARENS   2               /* () is an empty tuple */
llm_jnode_t *llm_jparse_expr(llm_jcomp_t *c, int flags);
llm_jnode_t *llm_jparse_tuple(llm_jcomp_t *c, int flags, const char *end);
llm_jnode_t *llm_jparse_target(llm_jcomp_t *c, int with_ns, const char *end);
llm_jnode_t *llm_jparse_primary(llm_jcomp_t *c, int with_ns);
llm_jnode_t *llm_jparse_postfix(llm_jcomp_t *c, llm_jnode_t *n);
llm_jnode_t *llm_jparse_call(llm_jcomp_t *c, llm_jnode_t *callee);
/* the parser is after "|" */
llm_jnode_t *llm_jparse_filter(llm_jcomp_t *c, llm_jnode_t *subject);
/* the parser is at "is" */
llm_jnode_t *llm_jparse_test(llm_jcomp_t *c, llm_jnode_t *subject);

/* parse.c */
int llm_jinja_parse(llm_jcomp_t *c);

/* scope.c */
int llm_jinja_scopes(llm_jcomp_t *c);

/* eval.c */
int llm_jinja_eval(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *n,
    llm_jv_t *res);
int llm_jinja_eval_args(llm_jrt_t *rt, llm_jframe_t *f,
    const llm_jnode_t *list, const llm_jmacro_t *caller, llm_jargs_t *args);
/* applies filters that have no subject of their own to *v */
int llm_jinja_eval_filter_chain(llm_jrt_t *rt, llm_jframe_t *f,
    const llm_jnode_t *n, llm_jv_t *v);
llm_jv_t *llm_jinja_var(llm_jframe_t *f, uint32_t hops, uint32_t slot);

/* eval_stmt.c: LLM_OK, LLM_ERROR, or how the body was left */
#define LLM_JX_BREAK     1
#define LLM_JX_CONTINUE  2
int llm_jinja_exec(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *body);
/* assigns to a target: a name, ns.attr, or a tuple of targets; export:
   top-level names go into the context, too */
int llm_jinja_assign(llm_jrt_t *rt, llm_jframe_t *f,
    const llm_jnode_t *target, const llm_jv_t *v, int export);
/* eval_loop.c */
int llm_jinja_exec_for(llm_jrt_t *rt, llm_jframe_t *f, const llm_jnode_t *n);
int llm_jframe_new(llm_jrt_t *rt, const llm_jscope_t *s, llm_jframe_t *up,
    llm_jframe_t **f);
/* sets all slots except parameters to their value on entry */
int llm_jframe_enter(llm_jrt_t *rt, const llm_jscope_t *s, llm_jframe_t *f);

#endif /* LLM_JINJA_AST_H */
