/*
 * JSON text of tool calls' arguments to objects; see arguments.h.
 */

#include "engine/api/arguments.h"
#include "engine/api/api_internal.h"

/* levels left for arguments: the message and its calls are around them */
#define LLM_ARGS_DEPTH  (LLM_FLAT_MAX_DEPTH - 16)

typedef struct {
    llm_json_limits_t  *limits;
    llm_buf_t          *out;
    llm_err_t          *err;
} llm_args_t;

typedef int (*llm_args_write_t)(llm_args_t *a, const llm_flat_t *v);


/* adds the pair of key and object, if the text is an object */

static int
llm_args_read(llm_args_t *a, llm_str_t s, uint32_t *count)
{
    size_t     before;
    llm_err_t  why;

    if (s.len == 0) {
        s = llm_str("{}");
    }

    before = a->out->len;
    memset(&why, 0, sizeof(llm_err_t));

    llm_flat_add_str(a->out, LLM_CHAT_ARGS, sizeof(LLM_CHAT_ARGS) - 1);
    a->limits->depth = LLM_ARGS_DEPTH;

    if (llm_json_to_flat(s.data, s.len, a->limits, a->out, &why) == LLM_OK) {
        (*count)++;
        return LLM_OK;
    }

    if (a->out->failed) {
        return LLM_OK;                  /* the buffer's owner finds the
                                           failure */
    }

    if (a->limits->values == 0) {
        return llm_api_bad_value(a->err, llm_api_top("messages"),
                                 "The request and the arguments of its tool "
                                 "calls have too many values: at most %d "
                                 "can be read.", LLM_JSON_MAX_VALUES);
    }

    if (why.status != 400) {
        *a->err = why;
        return LLM_ERROR;
    }

    a->out->len = before;

    return LLM_OK;
}


/* may the text be an object?  If not, it need not be parsed */

static int
llm_args_is_object(llm_str_t s)
{
    size_t  i;

    for (i = 0; i < s.len && memchr(" \t\r\n", s.data[i], 4); i++) {
        /* void */
    }

    return s.len == 0 || (i < s.len && s.data[i] == '{');
}


/* copies a call, or the function in it: both may hold arguments */

static int
llm_args_members(llm_args_t *a, const llm_flat_t *call, int outer)
{
    int                rc;
    size_t             handle;
    uint32_t           count;
    const llm_flat_t  *k, *v;

    if (call->type != LLM_FLAT_OBJECT) {
        llm_flat_add_node(a->out, call);
        return LLM_OK;
    }

    rc = LLM_OK;
    count = 0;
    handle = llm_flat_open(a->out, LLM_FLAT_OBJECT);

    for (k = llm_flat_first(call); k && rc == LLM_OK;
         k = llm_flat_next(call, v))
    {
        v = llm_flat_next(call, k);

        if (llm_api_str_is(k, LLM_CHAT_ARGS)) {
            continue;
        }

        llm_flat_add_node(a->out, k);
        count++;

        if (outer && llm_api_str_is(k, "function")) {
            rc = llm_args_members(a, v, 0);
            continue;
        }

        llm_flat_add_node(a->out, v);

        if (llm_api_str_is(k, "arguments") && v->type == LLM_FLAT_STRING
            && llm_args_is_object(llm_flat_str(v)))
        {
            rc = llm_args_read(a, llm_flat_str(v), &count);
        }
    }

    llm_flat_close(a->out, handle, count);

    return rc;
}


static int
llm_args_call(llm_args_t *a, const llm_flat_t *call)
{
    return llm_args_members(a, call, 1);
}


static int
llm_args_array(llm_args_t *a, const llm_flat_t *array, llm_args_write_t write)
{
    int                rc;
    size_t             handle;
    const llm_flat_t  *v;

    if (array->type != LLM_FLAT_ARRAY) {
        llm_flat_add_node(a->out, array);
        return LLM_OK;
    }

    rc = LLM_OK;
    handle = llm_flat_open(a->out, LLM_FLAT_ARRAY);

    for (v = llm_flat_first(array); v && rc == LLM_OK;
         v = llm_flat_next(array, v))
    {
        rc = write(a, v);
    }

    llm_flat_close(a->out, handle, array->count);

    return rc;
}


/* a copy of the object in which the array of this key is rewritten */

static int
llm_args_object(llm_args_t *a, const llm_flat_t *object, const char *key,
    llm_args_write_t write)
{
    int                rc;
    size_t             handle;
    const llm_flat_t  *k, *v;

    if (object->type != LLM_FLAT_OBJECT) {
        llm_flat_add_node(a->out, object);
        return LLM_OK;
    }

    rc = LLM_OK;
    handle = llm_flat_open(a->out, LLM_FLAT_OBJECT);

    for (k = llm_flat_first(object); k && rc == LLM_OK;
         k = llm_flat_next(object, v))
    {
        v = llm_flat_next(object, k);
        llm_flat_add_node(a->out, k);

        if (llm_api_str_is(k, key)) {
            rc = llm_args_array(a, v, write);

        } else {
            llm_flat_add_node(a->out, v);
        }
    }

    llm_flat_close(a->out, handle, object->count);

    return rc;
}


static int
llm_args_message(llm_args_t *a, const llm_flat_t *msg)
{
    return llm_args_object(a, msg, "tool_calls", llm_args_call);
}


int
llm_args_add_calls(const llm_flat_t *calls, llm_json_limits_t *limits,
    llm_buf_t *out, llm_err_t *err)
{
    llm_args_t  a = { limits, out, err };

    return llm_args_array(&a, calls, llm_args_call);
}


int
llm_args_add_request(const llm_flat_t *request, llm_json_limits_t *limits,
    llm_buf_t *out, llm_err_t *err)
{
    llm_args_t  a = { limits, out, err };

    if (llm_args_object(&a, request, "messages", llm_args_message) != LLM_OK) {
        return LLM_ERROR;
    }

    return out->failed ? llm_fail(err, "no memory for the request") : LLM_OK;
}
