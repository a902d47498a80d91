/*
 * Writes the client's part of what a guard is told (guard.c) while the body is
 * parsed, in the same thread.
 */

#include "engine/api/endpoint.h"


/* is this one of the server's members, which a client must not set? */

static int
llm_api_guard_owns(llm_str_t key)
{
    size_t  i;

    static const char *const  names[] = {
        "request_id", "endpoint", "model", "tenant"
    };

    for (i = 0; i < llm_nelems(names); i++) {
        if (llm_str_is(key, names[i])) {
            return 1;
        }
    }

    return 0;
}


void
llm_api_guard_rest(const llm_flat_t *root, llm_buf_t *out)
{
    const llm_flat_t  *key, *value;

    for (key = llm_flat_first(root); key; key = llm_flat_next(root, value)) {
        value = llm_flat_next(root, key);

        if (llm_api_guard_owns(llm_flat_str(key))) {
            continue;
        }

        (void) llm_buf_addc(out, ',');
        (void) llm_json_add_flat(out, key);
        (void) llm_buf_addc(out, ':');
        (void) llm_json_add_flat(out, value);
    }

    (void) llm_buf_addc(out, '}');
}
