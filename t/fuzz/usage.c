/*
 * Any bytes as a file of usage: as they are, and as the lines of a file whose
 * last line is right; what is taken is written again and read as the same.
 */

#include "engine/api/usage.h"
#include "engine/base/sha256.h"

typedef struct {
    llm_buf_t    out;
    uint64_t     n;
} again_t;


static int
take(void *data, const llm_usage_t *u, llm_err_t *err)
{
    again_t *a = data;

    if (u->key.len == 0 || u->key.len > LLM_USAGE_KEY) {
        abort();
    }

    a->n++;

    return llm_usage_add(&a->out, u) == LLM_OK
           ? LLM_OK : llm_fail(err, "no memory");
}


static int
read_again(const llm_buf_t *text, again_t *a)
{
    llm_err_t  err;

    memset(&err, 0, sizeof(err));
    llm_buf_init(&a->out, 0);
    (void) llm_usage_begin(&a->out, llm_str("again"));
    a->n = 0;

    if (llm_usage_read(text->data, text->len, NULL, take, a, &err) != LLM_OK) {
        if (err.msg[0] == '\0') {
            abort();
        }

        return LLM_ERROR;
    }

    return llm_usage_end(&a->out, a->n);
}


static void
close_file(llm_buf_t *text)
{
    size_t         i;
    uint64_t       lines;
    unsigned char  digest[LLM_SHA256_LEN];

    lines = 0;

    for (i = 0; i < text->len; i++) {
        lines += text->data[i] == '\n';
    }

    (void) llm_sha256(text->data, text->len, digest);
    (void) llm_buf_addf(text, "{\"accounts\":%llu,\"sha256\":\"",
                        (unsigned long long) (lines ? lines - 1 : 0));

    for (i = 0; i < sizeof(digest); i++) {
        (void) llm_buf_addf(text, "%02x", digest[i]);
    }

    (void) llm_buf_adds(text, "\"}\n");
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    again_t    once, twice;
    llm_buf_t  text;

    llm_buf_init(&text, 0);
    (void) llm_buf_add(&text, data, size);

    (void) read_again(&text, &once);
    llm_buf_free(&once.out);

    close_file(&text);

    if (read_again(&text, &once) == LLM_OK) {
        if (read_again(&once.out, &twice) != LLM_OK
            || once.out.len != twice.out.len
            || memcmp(once.out.data, twice.out.data, once.out.len) != 0)
        {
            abort();
        }

        llm_buf_free(&twice.out);
    }

    llm_buf_free(&once.out);
    llm_buf_free(&text);

    return 0;
}
