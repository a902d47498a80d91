/*
 * The form that an answer must have, in the ways in which clients ask for one:
 * OpenAI's response_format, llama.cpp's grammar and json_schema, vLLM's
 * structured_outputs and the older guided_* fields.  A request has at most one
 * rule.  The engine reads it (engine/grammar) and reports what it does not
 * support under the name of the field.
 */

#include "engine/api/endpoint.h"

#include <stdio.h>


/* a rule that is being written to the message; n: fields that asked for one */
typedef struct {
    llm_api_reader_t  *rd;
    uint32_t           n;
} llm_api_rule_t;


/* begins the rule at the message's end; the caller appends its bytes */

static int
llm_api_begin_rule(llm_api_rule_t *u, llm_rule_t kind, const char *name,
    llm_err_t *err)
{
    llm_request_t  *r;

    if (u->n++) {
        return llm_fail_with(err, 400, "invalid_value", name,
                             "Invalid '%s': only one constraint of the "
                             "answer can be given, and there is another "
                             "one.", name);
    }

    r = &u->rd->r;
    r->rule_kind = kind;

    r->rule_name.off = (uint32_t) u->rd->msg->len;
    r->rule_name.len = (uint32_t) strlen(name);
    (void) llm_buf_adds(u->rd->msg, name);
    (void) llm_buf_pad(u->rd->msg);

    r->rule.off = (uint32_t) u->rd->msg->len;

    return LLM_OK;
}


static int
llm_api_end_rule(llm_api_rule_t *u)
{
    u->rd->r.rule.len = (uint32_t) (u->rd->msg->len - u->rd->r.rule.off);
    (void) llm_buf_pad(u->rd->msg);

    return LLM_OK;
}


static int
llm_api_rule_text(llm_api_rule_t *u, llm_rule_t kind, const char *name,
    llm_str_t text, llm_err_t *err)
{
    if (text.data == NULL) {
        return LLM_OK;
    }

    if (text.len == 0) {
        return llm_api_bad_value(err, llm_api_top(name), "Invalid '%s': it is "
                                 "empty. Leave it out where nothing is to be "
                                 "kept to.", name);
    }

    if (llm_api_begin_rule(u, kind, name, err) != LLM_OK) {
        return LLM_ERROR;
    }

    (void) llm_buf_add(u->rd->msg, text.data, text.len);

    return llm_api_end_rule(u);
}


/* writes a schema given as JSON text, which vLLM accepts, too */

static int
llm_api_rule_schema_text(llm_api_rule_t *u, const char *name, llm_str_t text,
    llm_err_t *err)
{
    int                rc;
    llm_err_t          json;
    const char        *why;
    const llm_flat_t  *v;

    rc = llm_json_to_flat(text.data, text.len, &u->rd->limits, u->rd->msg,
                          &json);

    if (u->rd->msg->failed) {
        return llm_api_end_rule(u);     /* the message is too large, which is
                                           reported later */
    }

    if (rc != LLM_OK) {
        why = llm_json_why(&json);

        return why ? llm_fail_with(err, 400, "invalid_value", name,
                                   "Invalid '%s': it is no JSON: %s.", name,
                                   why)
                   : llm_fail_with(err, json.status, json.code, name,
                                   "Invalid '%s': %s", name, json.msg);
    }

    v = (const llm_flat_t *) (u->rd->msg->data + u->rd->r.rule.off);

    if (v->type != LLM_FLAT_OBJECT && v->type != LLM_FLAT_BOOL) {
        return llm_fail_with(err, 400, "invalid_type", name,
                             "Invalid '%s': expected a JSON schema, which is "
                             "an object.", name);
    }

    return llm_api_end_rule(u);
}


static int
llm_api_rule_schema(llm_api_rule_t *u, const char *name, const llm_flat_t *v,
    llm_err_t *err)
{
    if (v == NULL || v->type == LLM_FLAT_NULL) {
        return LLM_OK;
    }

    if (v->type != LLM_FLAT_OBJECT && v->type != LLM_FLAT_BOOL
        && v->type != LLM_FLAT_STRING)
    {
        return llm_api_bad_type(err, llm_api_top(name),
                                "a JSON schema, which is an object", v);
    }

    if (llm_api_begin_rule(u, LLM_RULE_SCHEMA, name, err) != LLM_OK) {
        return LLM_ERROR;
    }

    if (v->type == LLM_FLAT_STRING) {
        return llm_api_rule_schema_text(u, name, llm_flat_str(v), err);
    }

    llm_flat_add_node(u->rd->msg, v);

    return llm_api_end_rule(u);
}


static int
llm_api_rule_choice(llm_api_rule_t *u, const char *name, const llm_flat_t *v,
    llm_err_t *err)
{
    uint32_t           i;
    const llm_flat_t  *item;

    if (v == NULL) {
        return LLM_OK;
    }

    if (llm_api_check_type(err, llm_api_top(name), v, LLM_FLAT_ARRAY)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (v->count == 0) {
        return llm_api_empty(err, llm_api_top(name));
    }

    item = llm_flat_first(v);

    for (i = 0; item; i++) {
        if (llm_api_check_type(err, llm_api_idx(llm_api_top(name), i), item,
                               LLM_FLAT_STRING)
            != LLM_OK)
        {
            return LLM_ERROR;
        }

        item = llm_flat_next(v, item);
    }

    if (llm_api_begin_rule(u, LLM_RULE_CHOICE, name, err) != LLM_OK) {
        return LLM_ERROR;
    }

    llm_flat_add_node(u->rd->msg, v);

    return llm_api_end_rule(u);
}


static int
llm_api_rule_object(llm_api_rule_t *u, const char *name, llm_err_t *err)
{
    if (llm_api_begin_rule(u, LLM_RULE_OBJECT, name, err) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_api_end_rule(u);
}


/* ---- OpenAI ---- */

/* {"type":"json_schema","json_schema":{"name":…,"schema":…,"strict":…}}; the
   schema is always kept to, strict or not */

static int
llm_api_format_schema(llm_api_rule_t *u, const llm_flat_t *format,
    llm_err_t *err)
{
    const llm_flat_t    *v, *strict;
    const llm_api_at_t  *at;

    at = llm_api_top("response_format");

    /* llama.cpp's form has the schema as a member of its own */

    v = llm_api_member(format, "schema");
    if (v) {
        return llm_api_rule_schema(u, "response_format.schema", v, err);
    }

    v = llm_api_need(err, at, format, "json_schema", LLM_FLAT_OBJECT);
    if (v == NULL) {
        return LLM_ERROR;
    }

    at = llm_api_key(at, "json_schema");
    strict = llm_api_member(v, "strict");
    v = llm_api_member(v, "schema");

    if (v == NULL) {
        return llm_api_missing(err, llm_api_key(at, "schema"));
    }

    if ((strict && llm_api_check_type(err, llm_api_key(at, "strict"), strict,
                                      LLM_FLAT_BOOL) != LLM_OK)
        || llm_api_rule_schema(u, "response_format.json_schema.schema", v, err)
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (u->rd->r.rule_kind == LLM_RULE_SCHEMA && strict
        && llm_flat_int(strict))
    {
        u->rd->r.rule_kind = LLM_RULE_STRICT;
    }

    return LLM_OK;
}


static int
llm_api_format(llm_api_rule_t *u, const llm_flat_t *format, llm_err_t *err)
{
    const llm_flat_t    *type;
    const llm_api_at_t  *at;

    if (format == NULL) {
        return LLM_OK;
    }

    at = llm_api_top("response_format");

    type = llm_api_need(err, at, format, "type", LLM_FLAT_STRING);
    if (type == NULL) {
        return LLM_ERROR;
    }

    if (llm_api_str_is(type, "text")) {
        return LLM_OK;
    }

    if (llm_api_str_is(type, "json_schema")
        || (llm_api_str_is(type, "json_object")
            && llm_api_member(format, "schema")))
    {
        return llm_api_format_schema(u, format, err);
    }

    if (llm_api_str_is(type, "json_object")) {
        return llm_api_rule_object(u, "response_format", err);
    }

    return llm_api_unsupported(err, at, "the types are 'text', 'json_object' "
                               "and 'json_schema'");
}


/* ---- vLLM ---- */

/*
 * An unknown member may be a constraint, or change one, so it must not be
 * ignored; false and null ask for nothing.
 */

static int
llm_api_structured_members(const llm_flat_t *s, llm_err_t *err)
{
    char               name[64];
    size_t             i;
    llm_str_t          key;
    const llm_flat_t  *k, *v;

    static const char *const  known[] = {
        "json", "json_object", "regex", "choice", "grammar",
        "disable_fallback"              /* option of backends that do not exist
                                           here */
    };

    for (k = llm_flat_first(s); k; k = llm_flat_next(s, v)) {
        v = llm_flat_next(s, k);

        for (i = 0; i < llm_nelems(known); i++) {
            if (llm_api_str_is(k, known[i])) {
                break;
            }
        }

        if (i < llm_nelems(known) || v->type == LLM_FLAT_NULL
            || (v->type == LLM_FLAT_BOOL && llm_flat_int(v) == 0))
        {
            continue;
        }

        key = llm_flat_str(k);
        (void) snprintf(name, sizeof(name), "%.*s",
                        (int) llm_min(key.len, sizeof(name) - 1), key.data);

        return llm_api_unsupported(err,
                                   llm_api_key(llm_api_top(
                                                   "structured_outputs"),
                                               name), "");
    }

    return LLM_OK;
}


static int
llm_api_structured(llm_api_rule_t *u, const llm_flat_t *s, llm_err_t *err)
{
    uint32_t             i;
    llm_str_t            text[2];
    const llm_flat_t    *v;
    const llm_api_at_t  *at;

    static const char *const  names[] = { "regex", "grammar" };

    if (s == NULL) {
        return LLM_OK;
    }

    if (llm_api_structured_members(s, err) != LLM_OK) {
        return LLM_ERROR;
    }

    at = llm_api_top("structured_outputs");

    for (i = 0; i < llm_nelems(names); i++) {
        v = llm_api_member(s, names[i]);
        text[i] = (llm_str_t) { 0, NULL };

        if (v && llm_api_check_type(err, llm_api_key(at, names[i]), v,
                                    LLM_FLAT_STRING)
                 != LLM_OK)
        {
            return LLM_ERROR;
        }

        if (v) {
            text[i] = llm_flat_str(v);
        }
    }

    v = llm_api_member(s, "json_object");

    if (v && llm_api_check_type(err, llm_api_key(at, "json_object"), v,
                                LLM_FLAT_BOOL)
             != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (v && llm_flat_int(v)
        && llm_api_rule_object(u, "structured_outputs.json_object", err)
           != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (llm_api_rule_schema(u, "structured_outputs.json",
                            llm_api_member(s, "json"), err) != LLM_OK
        || llm_api_rule_choice(u, "structured_outputs.choice",
                               llm_api_member(s, "choice"), err) != LLM_OK
        || llm_api_rule_text(u, LLM_RULE_REGEX, "structured_outputs.regex",
                             text[0], err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_api_rule_text(u, LLM_RULE_GBNF, "structured_outputs.grammar",
                             text[1], err);
}


int
llm_api_write_rule(llm_api_reader_t *rd, const llm_api_body_t *b,
    llm_err_t *err)
{
    llm_api_rule_t  u = { .rd = rd };

    if (llm_api_format(&u, b->response_format, err) != LLM_OK
        || llm_api_structured(&u, b->structured_outputs, err) != LLM_OK
        || llm_api_rule_schema(&u, "json_schema", b->json_schema, err)
           != LLM_OK
        || llm_api_rule_schema(&u, "guided_json", b->guided_json, err)
           != LLM_OK
        || llm_api_rule_choice(&u, "guided_choice", b->guided_choice, err)
           != LLM_OK
        || llm_api_rule_text(&u, LLM_RULE_REGEX, "guided_regex",
                             b->guided_regex, err) != LLM_OK
        || llm_api_rule_text(&u, LLM_RULE_GBNF, "guided_grammar",
                             b->guided_grammar, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_api_rule_text(&u, LLM_RULE_GBNF, "grammar", b->grammar, err);
}


int
llm_api_wants_json(const llm_api_body_t *b)
{
    const llm_flat_t  *type, *s, *any;

    type = b->response_format && b->response_format->type == LLM_FLAT_OBJECT
           ? llm_api_member(b->response_format, "type") : NULL;
    s = b->structured_outputs
        && b->structured_outputs->type == LLM_FLAT_OBJECT
        ? b->structured_outputs : NULL;
    any = s ? llm_api_member(s, "json_object") : NULL;

    return llm_api_str_is(type, "json_object")
           || llm_api_str_is(type, "json_schema")
           || (s && llm_api_member(s, "json"))
           || (any && any->type == LLM_FLAT_BOOL && llm_flat_int(any))
           || b->json_schema || b->guided_json;
}
