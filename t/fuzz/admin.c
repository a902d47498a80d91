/*
 * Any bytes as a file of llm_admin's state, as its lines under a right digest,
 * and as a request's path and body: what was read is written as what is read
 * again.
 */

#include "engine/api/admin.h"
#include "engine/api/sealed.h"

static llm_admin_state_t  once, twice;


static void
check_state(const llm_buf_t *text)
{
    llm_err_t  err;
    llm_buf_t  out;

    memset(&err, 0, sizeof(err));

    if (llm_admin_read(&once, text->data ? text->data : "", text->len, &err)
        != LLM_OK)
    {
        if (err.msg[0] == '\0' || once.n_aliases || once.n_models) {
            abort();
        }

        return;
    }

    llm_buf_init(&out, 0);

    if (llm_admin_write(&once, &out) != LLM_OK
        || llm_admin_read(&twice, out.data, out.len, &err) != LLM_OK
        || memcmp(&once, &twice, sizeof(once)) != 0)
    {
        abort();
    }

    llm_buf_free(&out);
}


static void
check_request(const uint8_t *data, size_t size)
{
    llm_err_t          err;
    llm_str_t          s;
    llm_admin_body_t   b;
    llm_admin_route_t  to;

    s.data = (const char *) data;
    s.len = size;

    if (llm_admin_route(s, &to) == LLM_OK
        && (to.name.len > size || to.whole.len > size
            || *llm_admin_methods(to.what) == '\0'))
    {
        abort();
    }

    memset(&err, 0, sizeof(err));

    if (llm_admin_read_body(&b, s.data, s.len, "file", &err) != LLM_OK
        && (err.status != 400 || err.msg[0] == '\0'))
    {
        abort();
    }

    llm_buf_free(&b.flat);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t     i;
    uint64_t   lines;
    llm_buf_t  text;

    check_request(data, size);

    llm_buf_init(&text, 0);
    (void) llm_buf_add(&text, data, size);
    check_state(&text);

    for (i = 0, lines = 0; i < size; i++) {
        lines += data[i] == '\n';
    }

    (void) llm_sealed_end(&text, "lines", lines ? lines - 1 : 0);
    check_state(&text);

    llm_buf_free(&text);

    return 0;
}
