/*
 * Makes the grammars that constrain a request's choices: the request's own
 * rule, or tool calls where one is required, each with the reasoning that the
 * model's template has before an answer; and the grammar of a call that the
 * model may begin.  Compiled grammars are cached by the bytes that they are
 * made from (engine/grammar/cache.h).
 */

#include "engine/prepare/prepare.h"

#include <stdio.h>

/* white space between reasoning and answer */
#define LLM_GRAMMAR_GAP  "[ \t\r\n]{0,8}"


/* ---- the request's rule ---- */

static int
llm_grammar_choice(llm_gram_build_t *b, const llm_flat_t *list,
    llm_gn_t *node, llm_err_t *err)
{
    uint32_t           n;
    llm_str_t         *texts;
    const llm_flat_t  *v;

    texts = calloc(llm_max(list->count, 1u), sizeof(*texts));
    if (texts == NULL) {
        return llm_fail(err, "no memory for the choices");
    }

    n = 0;

    for (v = llm_flat_first(list); v; v = llm_flat_next(list, v)) {
        if (v->type == LLM_FLAT_STRING) {
            texts[n++] = llm_flat_str(v);
        }
    }

    *node = llm_gn_choice(b, texts, n);
    free(texts);

    return LLM_OK;
}


/* puts the name of the client's field before the path in its value;
   LLM_ERROR */

static int
llm_grammar_name_error(const llm_request_t *msg, llm_err_t *err)
{
    int          half;
    char         path[sizeof(err->param)];
    const char  *name;

    if (err->status >= 500) {
        return LLM_ERROR;
    }

    half = (int) sizeof(path) / 2;
    name = llm_ref_data(msg, msg->rule_name);
    memcpy(path, err->param, sizeof(path));

    snprintf(err->param, sizeof(err->param), "%.*s%s%.*s",
             (int) llm_min(msg->rule_name.len, (uint32_t) half), name,
             *path ? "." : "", half, path);

    return LLM_ERROR;
}


/* a strict schema: its objects are closed; if that fails, they stay open */

static int
llm_grammar_strict(llm_gram_build_t *b, const llm_flat_t *schema,
    llm_gn_t *node, llm_err_t *err)
{
    int        rc;
    llm_buf_t  closed;

    llm_buf_init(&closed, 0);

    if (llm_schema_close(schema, 1, &closed) == LLM_OK) {
        schema = (const llm_flat_t *) closed.data;
    }

    rc = llm_gn_schema(b, schema, node, err);
    llm_buf_free(&closed);

    return rc;
}


static int
llm_grammar_rule(const llm_request_t *msg, llm_gram_build_t *b,
    llm_gn_t *node, llm_err_t *err)
{
    const char        *text;
    const llm_flat_t  *flat;

    text = llm_ref_data(msg, msg->rule);
    flat = llm_ref_data(msg, msg->rule);

    switch (msg->rule_kind) {

    case LLM_RULE_OBJECT:
        return llm_gn_json_object(b, node, err);

    case LLM_RULE_GBNF:
        return llm_gn_gbnf(b, text, msg->rule.len, node, err);

    case LLM_RULE_REGEX:
        return llm_gn_pattern(b, text, msg->rule.len, node, err);

    case LLM_RULE_SCHEMA:
    case LLM_RULE_STRICT:
    case LLM_RULE_CHOICE:
        if (llm_flat_check(flat, msg->rule.len) != LLM_OK) {
            break;
        }

        return msg->rule_kind == LLM_RULE_SCHEMA
               ? llm_gn_schema(b, flat, node, err)
               : msg->rule_kind == LLM_RULE_STRICT
               ? llm_grammar_strict(b, flat, node, err)
               : llm_grammar_choice(b, flat, node, err);

    default:
        break;
    }

    return llm_fail(err, "malformed request to the engine");
}


/* ---- what may precede the answer ---- */

/* any text without the mark, then the mark */

static llm_gn_t
llm_grammar_until(const llm_rule_env_t *ctx, llm_gram_build_t *b,
    llm_str_t mark)
{
    llm_rx_t        rx;
    llm_gn_t        parts[2];
    llm_rx_pool_t  *p;

    p = llm_gram_pool(b);
    rx = llm_rx_literal(p, mark.data, mark.len);
    rx = llm_rx_cat(p, LLM_RX_TEXT, llm_rx_cat(p, rx, LLM_RX_TEXT));

    parts[0] = llm_gn_regex(b, llm_rx_not(p, rx));
    parts[1] = llm_calls_mark(b, ctx->tree, mark, llm_str(""));

    return llm_gn_seq(b, parts, 2);
}


static int
llm_grammar_gap(llm_gram_build_t *b, llm_gn_t *gap, llm_err_t *err)
{
    return llm_gn_pattern(b, LLM_GRAMMAR_GAP, sizeof(LLM_GRAMMAR_GAP) - 1,
                          gap, err);
}


/* has the client turned reasoning off? */

static int
llm_grammar_no_thinking(const llm_request_t *msg)
{
    const llm_flat_t  *v;

    v = llm_flat_get(llm_ref_data(msg, msg->chat), "chat_template_kwargs");
    v = v && v->type == LLM_FLAT_OBJECT
        ? llm_flat_get(v, "enable_thinking") : NULL;

    return v && v->type == LLM_FLAT_BOOL && llm_flat_int(v) == 0;
}


/* one of the marks, or nothing */

static llm_gn_t
llm_grammar_marks(const llm_rule_env_t *ctx, llm_gram_build_t *b,
    const llm_str_t *marks, uint32_t n)
{
    uint32_t  i;
    llm_gn_t  of[LLM_FORMAT_TEXTS + 1];

    for (i = 0; i < n; i++) {
        of[i] = llm_calls_mark(b, ctx->tree, marks[i], llm_str(""));
    }

    of[i++] = LLM_GN_EMPTY;

    return llm_gn_alt(b, of, i);
}


/*
 * The reasoning before an answer, if the template has any, with what the model
 * may write after it.  If the prompt has begun the reasoning, it must be ended;
 * if the prompt has ended it, or the client has turned it off, there is none;
 * otherwise the model may reason or not.
 */

static int
llm_grammar_before(const llm_rule_env_t *ctx, llm_gram_build_t *b,
    llm_gn_t *node, llm_err_t *err)
{
    llm_gn_t             parts[4];
    const llm_pair_t    *pair;
    const llm_format_t  *f;

    f = ctx->format;
    *node = LLM_GN_EMPTY;

    if (f == NULL || f->n_reasoning == 0) {
        return LLM_OK;
    }

    if (llm_grammar_gap(b, &parts[2], err) != LLM_OK) {
        return LLM_ERROR;
    }

    pair = &f->reasoning[ctx->open >= 0 ? ctx->open : 0];

    if (pair->close.len == 0 || (ctx->open < 0 && pair->open.len == 0)) {
        return LLM_OK;
    }

    parts[0] = ctx->open >= 0 ? LLM_GN_EMPTY
               : llm_calls_mark(b, ctx->tree, pair->open, llm_str(""));
    parts[1] = llm_grammar_until(ctx, b, pair->close);
    parts[3] = llm_grammar_marks(ctx, b, f->skipped, f->n_skipped);
    *node = llm_gn_seq(b, parts, 4);

    if (ctx->open < 0) {
        *node = ctx->open == LLM_ANSWER_CLOSED
                || llm_grammar_no_thinking(ctx->msg)
                ? LLM_GN_EMPTY : llm_gn_repeat(b, *node, 0, 1);
    }

    return LLM_OK;
}


/* ---- the whole grammar ---- */

static int
llm_grammar_calls(const llm_rule_env_t *ctx)
{
    return ctx->format && ctx->tools->n
           && ctx->msg->tool_choice != LLM_TOOLS_NONE
           && llm_calls_form(ctx->format);
}


static int
llm_grammar_build(const llm_rule_env_t *ctx, llm_gram_build_t *b,
    llm_gn_t *root, llm_err_t *err)
{
    int                   required;
    llm_gn_t              of[2], marked[2], parts[2];
    uint32_t              n;
    const llm_request_t  *msg;

    if (ctx->begun) {
        return llm_calls_begun(ctx, b, root, err);
    }

    msg = ctx->msg;
    required = msg->tool_choice == LLM_TOOLS_REQUIRED;
    n = 0;

    if (msg->rule_kind != LLM_RULE_NONE && !required) {
        if (llm_grammar_rule(msg, b, &marked[1], err) != LLM_OK) {
            return llm_grammar_name_error(msg, err);
        }

        marked[0] = ctx->format == NULL ? LLM_GN_EMPTY
                    : llm_grammar_marks(ctx, b, ctx->format->content,
                                        ctx->format->n_content);
        of[n++] = llm_gn_seq(b, marked, 2);
    }

    if (llm_grammar_calls(ctx)
        && llm_calls_node(ctx, b, &of[n++], err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    parts[1] = llm_gn_alt(b, of, n);

    if (llm_grammar_before(ctx, b, &parts[0], err) != LLM_OK) {
        return LLM_ERROR;
    }

    *root = llm_gn_seq(b, parts, 2);

    return LLM_OK;
}


static int
llm_grammar_pause(void *data)
{
    llm_rule_env_t  *ctx = data;

    ctx->stopped |= ctx->how->pause(ctx->how->data);

    return ctx->stopped;
}


static llm_gram_t *
llm_grammar_make(llm_rule_env_t *ctx, const llm_toktree_t *tree,
    llm_err_t *err)
{
    llm_gn_t           root;
    llm_gram_t        *g;
    llm_gram_build_t  *b;

    ctx->tree = tree;

    b = llm_gram_build();
    if (b == NULL) {
        (void) llm_fail(err, "no memory for a grammar");
        return NULL;
    }

    if (ctx->how && ctx->how->pause) {
        llm_gram_pause(b, llm_grammar_pause, ctx);
    }

    if (llm_grammar_build(ctx, b, &root, err) != LLM_OK) {
        llm_gram_build_free(b);
        return NULL;
    }

    g = llm_gram_finish(b, root, tree, err);

    if (g == NULL && ctx->msg->rule_kind != LLM_RULE_NONE) {
        (void) llm_grammar_name_error(ctx->msg, err);
    }

    return g;
}


/* the same, for the cache.  If making the grammar was stopped because the
   request is over, its nodes have failed: other requests must get neither the
   grammar nor its error, which is then not reported as a client's */

static llm_gram_t *
llm_grammar_compile(void *data, const llm_toktree_t *tree, llm_err_t *err)
{
    llm_gram_t      *g;
    llm_rule_env_t  *ctx;

    ctx = data;
    g = llm_grammar_make(ctx, tree, err);

    if (ctx->stopped) {
        llm_gram_free(g);
        (void) llm_fail(err, "the request is over");
        return NULL;
    }

    return g;
}


/* writes the cache's key: all that the grammar is made from, or that its errors
   name */

static int
llm_grammar_key(const llm_rule_env_t *ctx, llm_buf_t *key)
{
    uint32_t              i, head[7];
    const llm_ref_t      *names;
    const llm_flat_t     *tools;
    const llm_request_t  *msg;

    msg = ctx->msg;

    head[0] = msg->rule_kind;
    head[1] = (uint32_t) (ctx->open + 1);
    head[2] = ctx->format != NULL;
    head[3] = llm_grammar_calls(ctx) ? msg->tool_choice + 1 : 0;
    head[4] = msg->tool_single;
    head[5] = ctx->format && llm_grammar_no_thinking(msg);
    head[6] = ctx->begun ? 1u + (uint32_t) ctx->loose : 0;

    (void) llm_buf_add(key, head, sizeof(head));
    (void) llm_buf_add(key, &msg->rule.len, sizeof(msg->rule.len));
    (void) llm_buf_add(key, llm_ref_data(msg, msg->rule), msg->rule.len);
    (void) llm_buf_add(key, llm_ref_data(msg, msg->rule_name),
                       msg->rule_name.len);

    if (head[3]) {
        names = llm_ref_data(msg, msg->tool_names);

        for (i = 0; i < msg->tool_names.len; i++) {
            (void) llm_buf_add(key, &names[i].len, sizeof(names[i].len));
            (void) llm_buf_add(key, llm_ref_data(msg, names[i]),
                               names[i].len);
        }

        tools = llm_flat_get(llm_ref_data(msg, msg->chat), "tools");

        if (tools) {
            (void) llm_buf_add(key, tools, tools->size);
        }
    }

    return key->failed ? LLM_ERROR : LLM_OK;
}


/* returns a reference to the grammar; NULL: *err or ctx->later is set */

static llm_gram_ref_t *
llm_grammar_get(const llm_prep_env_t *env, llm_rule_env_t *ctx, llm_err_t *err)
{
    llm_str_t        str;
    llm_buf_t        key;
    llm_gram_ref_t  *gram;

    llm_buf_init(&key, 0);

    if (llm_grammar_key(ctx, &key) != LLM_OK) {
        llm_buf_free(&key);
        (void) llm_fail(err, "no memory for a grammar");
        return NULL;
    }

    str.data = key.data;
    str.len = key.len;

    if (ctx->how && ctx->how->never) {
        ctx->later = llm_gram_cache_look(env->grams, str, &gram, err)
                     == LLM_ABSENT;

    } else {
        gram = llm_gram_cache_get(env->grams, str, llm_grammar_compile, ctx,
                                  err);
    }

    llm_buf_free(&key);

    return gram;
}


/*
 * Makes the grammar of a call that the model may begin.  Unless they are
 * strict, tools are not refused for what a grammar cannot express: arguments
 * may then be any object, and if that grammar fails, too, calls are not
 * constrained.
 */

static int
llm_grammar_begun(const llm_prep_env_t *env, llm_req_t *r, llm_rule_env_t *ctx,
    llm_err_t *err)
{
    llm_err_t  why;

    memset(&why, 0, sizeof(why));
    ctx->begun = 1;
    r->prep.call_gram = llm_grammar_get(env, ctx, &why);

    if (r->prep.call_gram == NULL && !ctx->later && why.status == 400) {
        if (*why.param) {
            *err = why;
            return LLM_ERROR;
        }

        ctx->loose = 1;
        r->prep.call_gram = llm_grammar_get(env, ctx, &why);
    }

    return ctx->later ? LLM_LATER : LLM_OK;
}


int
llm_prep_grammar(const llm_prep_env_t *env, llm_req_t *r,
    const llm_prep_how_t *how, llm_err_t *err)
{
    llm_rule_env_t         ctx;
    const llm_request_t   *msg;

    msg = r->msg;

    memset(&ctx, 0, sizeof(ctx));
    ctx.msg = msg;
    ctx.how = how;
    ctx.tools = &r->prep.tools;
    ctx.format = msg->kind == LLM_KIND_CHAT ? llm_chat_format(env->chat) : NULL;
    ctx.open = msg->kind == LLM_KIND_CHAT ? r->prep.open : -1;

    if (msg->tool_choice == LLM_TOOLS_REQUIRED && !llm_grammar_calls(&ctx)) {
        return llm_fail_with(err, 400, "unsupported_parameter", "tool_choice",
                             "Unsupported value of 'tool_choice': with the "
                             "chat template of this model a call cannot be "
                             "forced.");
    }

    if (msg->rule_kind != LLM_RULE_NONE
        || msg->tool_choice == LLM_TOOLS_REQUIRED)
    {
        r->prep.gram = llm_grammar_get(env, &ctx, err);

        return r->prep.gram ? LLM_OK : ctx.later ? LLM_LATER : LLM_ERROR;
    }

    return llm_grammar_calls(&ctx) ? llm_grammar_begun(env, r, &ctx, err)
                                   : LLM_OK;
}
