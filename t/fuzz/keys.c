/*
 * Any bytes as a file of API keys: it is read or refused with a line, and of
 * what was read each key has an id and is found by no text of the fuzzer.
 */

#include "engine/api/api.h"

#include <stdio.h>


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    llm_err_t         err;
    llm_str_t         name;
    llm_keys_t       *t;
    const char       *p;
    const llm_key_t  *k;

    p = (const char *) data;

    memset(&err, 0, sizeof(err));
    t = llm_keys_parse(p, size, &err);

    if (t == NULL) {
        if (err.msg[0] == '\0'
            || (strncmp(err.msg, "line ", 5) != 0
                && strncmp(err.msg, "it ", 3) != 0))
        {
            abort();
        }

        return 0;
    }

    /* the seeds have the digest of "secret" */

    k = llm_keys_find(t, "secret", 6);

    if (k) {
        name.data = p;
        name.len = size > 64 ? 64 : size;

        if (llm_key_member(k, "id", 2) == NULL
            || llm_key_member(k, "tenant", 6) == NULL
            || llm_key_member(k, "sha256", 6) != NULL
            || k->scopes > (LLM_SCOPE_USUAL | LLM_SCOPE_ADMIN)
            || k->models > k->len || (k->len && k->text[k->len - 1]))
        {
            abort();
        }

        (void) llm_key_names_model(k, name);
        (void) llm_key_age(k, (int64_t) size);
    }

    /* a file cannot have its own digest */

    if (llm_keys_find(t, p, size)) {
        abort();
    }

    llm_keys_free(t);

    return 0;
}
