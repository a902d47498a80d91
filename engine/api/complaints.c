/*
 * Errors about fields of a body, in OpenAI's words and with its codes, and
 * checks that report them.
 */

#include "engine/api/api_internal.h"

#include <math.h>
#include <stdio.h>


void
llm_api_at_text(const llm_api_at_t *at, char *buf, size_t size)
{
    size_t  len;

    buf[0] = '\0';

    if (at->parent) {
        llm_api_at_text(at->parent, buf, size);
    }

    len = strlen(buf);

    if (at->key) {
        snprintf(buf + len, size - len, "%s%s", len ? "." : "", at->key);

    } else {
        snprintf(buf + len, size - len, "[%u]", at->index);
    }
}


static const char *
llm_api_type_name(uint32_t type)
{
    static const char *const  names[] = {
        "null", "a boolean", "an integer", "a decimal number", "a string",
        "an array", "an object"
    };

    return names[type];
}


int
llm_api_bad_type(llm_err_t *err, const llm_api_at_t *at, const char *want,
    const llm_flat_t *got)
{
    char  param[64];

    llm_api_at_text(at, param, sizeof(param));

    return llm_fail_with(err, 400, "invalid_type", param,
                         "Invalid type for '%s': expected %s, but got %s "
                         "instead.", param, want,
                         llm_api_type_name(got->type));
}


int
llm_api_bad_value(llm_err_t *err, const llm_api_at_t *at, const char *fmt,
    ...)
{
    char     param[64], msg[384];
    va_list  args;

    llm_api_at_text(at, param, sizeof(param));

    va_start(args, fmt);
    vsnprintf(msg, sizeof(msg), fmt, args);
    va_end(args);

    return llm_fail_with(err, 400, "invalid_value", param, "%s", msg);
}


int
llm_api_bad_word(llm_err_t *err, const llm_api_at_t *at, llm_str_t got,
    const char *known)
{
    return llm_api_bad_value(err, at, "Invalid value: '%.*s'. %s",
                             (int) llm_min(got.len, 64), got.data, known);
}


int
llm_api_missing(llm_err_t *err, const llm_api_at_t *at)
{
    char  param[64];

    llm_api_at_text(at, param, sizeof(param));

    return llm_fail_with(err, 400, "missing_required_parameter", param,
                         "Missing required parameter: '%s'.", param);
}


int
llm_api_empty(llm_err_t *err, const llm_api_at_t *at)
{
    char  param[64];

    llm_api_at_text(at, param, sizeof(param));

    return llm_fail_with(err, 400, "empty_array", param,
                         "Invalid '%s': empty array. Expected an array with "
                         "minimum length 1, but got an empty array instead.",
                         param);
}


int
llm_api_too_long(llm_err_t *err, const llm_api_at_t *at, size_t max,
    const llm_flat_t *got)
{
    char         param[64];
    const char  *what, *article;

    llm_api_at_text(at, param, sizeof(param));

    what = (got->type == LLM_FLAT_STRING) ? "string" : "array";
    article = (got->type == LLM_FLAT_STRING) ? "a" : "an";

    return llm_fail_with(err, 400,
                         (got->type == LLM_FLAT_STRING)
                         ? "string_above_max_length"
                         : "array_above_max_length",
                         param,
                         "Invalid '%s': %s too long. Expected %s %s with "
                         "maximum length %zu, but got %s %s with length %u "
                         "instead.", param, what, article, what, max,
                         article, what, got->count);
}


int
llm_api_unsupported(llm_err_t *err, const llm_api_at_t *at, const char *why)
{
    char  param[64];

    llm_api_at_text(at, param, sizeof(param));

    return llm_fail_with(err, 400, "unsupported_parameter", param,
                         "Unsupported parameter: '%s'%s%s.", param,
                         *why ? ": " : " is not supported by this server",
                         why);
}


int
llm_api_check_type(llm_err_t *err, const llm_api_at_t *at,
    const llm_flat_t *v, llm_flat_type_t type)
{
    if (v->type == type) {
        return LLM_OK;
    }

    return llm_api_bad_type(err, at, llm_api_type_name(type), v);
}


/* a number as the client may have written it, with enough digits to tell it
   from a bound */

static void
llm_api_number_text(const llm_flat_t *v, char *buf, size_t size)
{
    llm_buf_t  text;

    llm_buf_init(&text, 0);
    (void) llm_json_add_flat(&text, v);
    snprintf(buf, size, "%.*s", (int) llm_min(text.len, size),
             text.data ? text.data : "");
    llm_buf_free(&text);
}


/* 10.0 and 1e1 are integers, too, as many clients write them */

int
llm_api_is_int(const llm_flat_t *v)
{
    double  d;

    if (v->type != LLM_FLAT_DOUBLE) {
        return v->type == LLM_FLAT_INT;
    }

    d = llm_flat_double(v);

    return llm_flat_digits(v).len || (fabs(d) < 0x1p63 && d == trunc(d));
}


int
llm_api_check_int(llm_err_t *err, const llm_api_at_t *at,
    const llm_flat_t *v, int64_t min, int64_t max)
{
    int        below;
    char       param[64], got[72];
    int64_t    i;
    llm_str_t  big;

    if (!llm_api_is_int(v)) {
        return llm_api_bad_type(err, at, llm_api_type_name(LLM_FLAT_INT), v);
    }

    /* a number that does not fit int64_t is out of any bounds */

    i = llm_flat_int(v);
    big = llm_flat_digits(v);

    if (i >= min && i <= max && big.len == 0) {
        return LLM_OK;
    }

    below = big.len ? i < 0 : i < min;
    llm_api_at_text(at, param, sizeof(param));
    snprintf(got, sizeof(got), "%lld", (long long) i);

    if (big.len) {
        snprintf(got, sizeof(got), "%.*s", (int) big.len, big.data);
    }

    return llm_fail_with(err, 400,
                         below ? "integer_below_min_value"
                               : "integer_above_max_value",
                         param,
                         "Invalid '%s': integer %s value. Expected a value "
                         "%s %lld, but got %s instead.", param,
                         below ? "below minimum" : "above maximum",
                         below ? ">=" : "<=",
                         (long long) (below ? min : max), got);
}


int
llm_api_check_number(llm_err_t *err, const llm_api_at_t *at,
    const llm_flat_t *v, double min, double max, int above_min)
{
    int     below;
    char    param[64], got[72];
    double  d;

    if (v->type != LLM_FLAT_INT && v->type != LLM_FLAT_DOUBLE) {
        return llm_api_bad_type(err, at, "a number", v);
    }

    d = llm_flat_double(v);
    below = d < min || (above_min && d == min);

    if (!below && d <= max) {
        return LLM_OK;
    }

    llm_api_at_text(at, param, sizeof(param));
    llm_api_number_text(v, got, sizeof(got));

    return llm_fail_with(err, 400,
                         below ? "decimal_below_min_value"
                               : "decimal_above_max_value",
                         param,
                         "Invalid '%s': decimal %s value. Expected a value "
                         "%s %g, but got %s instead.", param,
                         below ? "below minimum" : "above maximum",
                         below ? (above_min ? ">" : ">=") : "<=",
                         below ? min : max, got);
}


int
llm_api_str_is(const llm_flat_t *v, const char *text)
{
    return v && v->type == LLM_FLAT_STRING
           && llm_str_is(llm_flat_str(v), text);
}


const llm_flat_t *
llm_api_member(const llm_flat_t *object, const char *key)
{
    const llm_flat_t  *v;

    v = llm_flat_get(object, key);

    return (v && v->type != LLM_FLAT_NULL) ? v : NULL;
}


const llm_flat_t *
llm_api_need(llm_err_t *err, const llm_api_at_t *at,
    const llm_flat_t *object, const char *key, llm_flat_type_t type)
{
    const llm_flat_t  *v;

    v = llm_api_member(object, key);

    if (v == NULL) {
        (void) llm_api_missing(err, llm_api_key(at, key));
        return NULL;
    }

    if (llm_api_check_type(err, llm_api_key(at, key), v, type) != LLM_OK) {
        return NULL;
    }

    return v;
}
