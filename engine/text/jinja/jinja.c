/*
 * Templates and renderings: their memory, limits and errors; see jinja.h.
 */

#include "engine/text/jinja/ast.h"

#include <stdio.h>
#include <time.h>

#define LLM_J_TEMPLATE_MEMORY  ((size_t) 256 << 20)
#define LLM_J_STEPS            30000000
#define LLM_J_MEMORY           ((size_t) 128 << 20)
#define LLM_J_OUTPUT           ((size_t) 64 << 20)

#define LLM_J_BYTES_A_STEP     64


/* keeps the first error of a compilation or rendering; line 0: unknown */

static void
llm_jinja_fail(llm_err_t *err, int *failed, uint32_t line, const char *code,
    const char *fmt, va_list args)
{
    char  msg[400], where[32];

    if (!*failed) {
        vsnprintf(msg, sizeof(msg), fmt, args);
        where[0] = '\0';

        if (line) {
            snprintf(where, sizeof(where), ", line %u", line);
        }

        (void) llm_fail_with(err, 500, code, NULL, "chat template%s: %s",
                             where, msg);
    }

    *failed = LLM_ERROR;
}


int
llm_jrt_fail(llm_jrt_t *rt, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    llm_jinja_fail(rt->err, &rt->failed, rt->line, LLM_JINJA_FAILED,
                   fmt, args);
    va_end(args);

    return LLM_ERROR;
}


int
llm_jrt_limit(llm_jrt_t *rt, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    llm_jinja_fail(rt->err, &rt->failed, rt->line, LLM_JINJA_LIMIT,
                   fmt, args);
    va_end(args);

    return LLM_ERROR;
}


void *
llm_jrt_alloc(llm_jrt_t *rt, size_t size)
{
    void  *p;

    p = llm_arena_alloc(&rt->arena, size);
    if (p == NULL) {
        (void) llm_jrt_limit(rt, "rendering needs more than %zu bytes of "
                             "memory", rt->arena.limit);
    }

    return p;
}


int
llm_jrt_charge(llm_jrt_t *rt, size_t work)
{
    work = work > 1 ? work / LLM_J_BYTES_A_STEP + 1 : work;

    if (work > rt->steps) {
        rt->steps = 0;
        return llm_jrt_limit(rt, "rendering takes too many steps");
    }

    rt->steps -= work;

    return LLM_OK;
}


/* memmem() compares up to 256 bytes at each position; for longer ones it is
   linear */

int
llm_jrt_charge_search(llm_jrt_t *rt, size_t len, const llm_js_t *sub)
{
    return llm_jrt_charge(rt, len * (LLM_J_DECODED
                                     + llm_min(sub->len, 256) / 8));
}


int
llm_jrt_enter(llm_jrt_t *rt)
{
    if (rt->depth >= LLM_J_MAX_DEPTH) {
        return llm_jrt_limit(rt, "maximum recursion depth exceeded");
    }

    rt->depth++;

    return LLM_OK;
}


int
llm_jcomp_fail(llm_jcomp_t *c, uint32_t line, const char *fmt, ...)
{
    va_list  args;

    va_start(args, fmt);
    llm_jinja_fail(c->err, &c->failed, line, NULL, fmt, args);
    va_end(args);

    c->pos = c->t->tokens.n ? c->t->tokens.n - 1 : 0;

    return LLM_ERROR;
}


void *
llm_jcomp_alloc(llm_jcomp_t *c, size_t size)
{
    void  *p;

    p = llm_arena_alloc(&c->t->arena, size);
    if (p == NULL) {
        (void) llm_jcomp_fail(c, 0, "out of memory");
    }

    return p;
}


llm_jnode_t *
llm_jcomp_node(llm_jcomp_t *c, llm_jkind_t kind, uint32_t line)
{
    llm_jnode_t  *n;

    n = llm_jcomp_alloc(c, sizeof(llm_jnode_t));
    n = n ? n : &c->spare_node;

    memset(n, 0, sizeof(*n));
    n->kind = kind;
    n->line = line;

    return n;
}


/* computes what a string usually computes about itself later, because the
   string is shared */

llm_jv_t
llm_jcomp_str(llm_jcomp_t *c, llm_str_t s)
{
    llm_js_t             *js;
    static llm_jbytes_t   no_bytes = { .data = "" };
    static llm_js_t       empty = { .bytes = &no_bytes, .hash = 1 };

    js = llm_js_wrap(&c->t->arena, s.data, s.len, 1);

    if (js == NULL) {
        (void) llm_jcomp_fail(c, 0, "out of memory");
        return llm_jv_str(&empty);
    }

    (void) llm_js_chars(js);
    (void) llm_js_hash(js);

    return llm_jv_str(js);
}


llm_jinja_t *
llm_jinja_compile(const char *src, size_t len, llm_err_t *err)
{
    llm_jcomp_t  c;

    memset(&c, 0, sizeof(c));
    c.err = err;

    c.t = calloc(1, sizeof(llm_jinja_t));
    if (c.t == NULL) {
        (void) llm_fail(err, "chat template: out of memory");
        return NULL;
    }

    llm_arena_init(&c.t->arena, LLM_J_TEMPLATE_MEMORY);

    if (llm_jinja_lex(&c, src, len) != LLM_OK
        || llm_jinja_parse(&c) != LLM_OK
        || llm_jinja_scopes(&c) != LLM_OK)
    {
        llm_jinja_free(c.t);
        return NULL;
    }

    return c.t;
}


void
llm_jinja_free(llm_jinja_t *t)
{
    if (t) {
        llm_arena_free(&t->arena);
        free(t);
    }
}


int
llm_jinja_uses(const llm_jinja_t *t, const char *name)
{
    size_t  i, len;

    len = strlen(name);

    for (i = 0; i < t->tokens.n; i++) {
        if ((t->tokens.v[i].type == LLM_JT_NAME
             || t->tokens.v[i].type == LLM_JT_STR)
            && t->tokens.v[i].text.len == len
            && memcmp(t->tokens.v[i].text.data, name, len) == 0)
        {
            return 1;
        }
    }

    return 0;
}


/* stores the runs of trusted bytes, which begin and end where trust changes */

static int
llm_jinja_spans(const llm_jbytes_t *b, llm_prompt_t *out)
{
    int     trusted;
    size_t  i, start, end;

    out->trusted = malloc((b->n_flips / 2 + 1) * sizeof(llm_span_t));
    if (out->trusted == NULL) {
        return LLM_ERROR;
    }

    trusted = b->trusted;

    for (i = 0, start = 0; i <= b->n_flips; i++, start = end) {
        end = i < b->n_flips ? b->flips[i] : b->used;

        if (trusted && end > start) {
            out->trusted[out->n_trusted].start = start;
            out->trusted[out->n_trusted].end = end;
            out->n_trusted++;
        }

        trusted = !trusted;
    }

    return LLM_OK;
}


static int
llm_jinja_output(llm_jrt_t *rt, const llm_jbytes_t *b, llm_prompt_t *out)
{
    size_t  len;

    len = b ? b->used : 0;

    out->text = malloc(len + 1);

    if (out->text == NULL || (b && llm_jinja_spans(b, out) != LLM_OK)) {
        llm_prompt_free(out);
        return llm_fail(rt->err, "chat template: out of memory");
    }

    if (len) {
        memcpy(out->text, b->data, len);
    }

    out->text[len] = '\0';
    out->len = len;

    return LLM_OK;
}


static int
llm_jinja_run(llm_jrt_t *rt, const llm_jinja_t *t, const llm_flat_t *vars,
    const char *const *trusted_vars, llm_prompt_t *out)
{
    llm_jb_t                   b;
    llm_jv_t                   context;
    llm_jframe_t              *f;
    static const char *const   none[] = { NULL };

    llm_jtry(llm_jv_dict(rt, LLM_J_DICT, &context));
    rt->context = context.u.dict;

    if (vars->type != LLM_FLAT_OBJECT) {
        return llm_jrt_fail(rt, "the variables are no object");
    }

    /* variables take precedence over globals of the same name */

    llm_jtry(llm_jinja_globals(rt, rt->context));
    llm_jtry(llm_jv_from_pairs(rt, vars, 0,
                               trusted_vars ? trusted_vars : none,
                               rt->context));

    llm_jb_init(&b, rt, rt->max_output);
    rt->out = &b;

    llm_jtry(llm_jframe_new(rt, t->scope, NULL, &f));
    llm_jtry(llm_jframe_enter(rt, t->scope, f));
    llm_jtry(llm_jinja_exec(rt, f, t->body));

    return llm_jinja_output(rt, b.bytes, out);
}


int
llm_jinja_render(const llm_jinja_t *t, const llm_flat_t *vars,
    const char *const *trusted_vars, const llm_jinja_opts_t *opts,
    llm_prompt_t *out, llm_err_t *err)
{
    int                      rc;
    uint64_t                 steps;
    llm_jrt_t                rt;
    static llm_jinja_opts_t  none;

    memset(out, 0, sizeof(*out));
    memset(&rt, 0, sizeof(rt));
    opts = opts ? opts : &none;

    rt.err = err;
    rt.line = 1;
    steps = opts->max_steps ? opts->max_steps : LLM_J_STEPS;
    steps = opts->left ? llm_min(steps, *opts->left) : steps;
    rt.steps = steps;
    rt.max_output = opts->max_output ? opts->max_output : LLM_J_OUTPUT;
    rt.trusted_roles = opts->trusted_roles;
    rt.now = opts->now ? opts->now : (int64_t) time(NULL);

    llm_arena_init(&rt.arena,
                   opts->max_memory ? opts->max_memory : LLM_J_MEMORY);

    rc = llm_jinja_run(&rt, t, vars, trusted_vars, out);

    if (opts->left) {
        *opts->left -= steps - rt.steps;
    }

    llm_arena_free(&rt.arena);

    return rc;
}


void
llm_prompt_free(llm_prompt_t *p)
{
    free(p->text);
    free(p->trusted);
    free(p->media);
    memset(p, 0, sizeof(*p));
}
