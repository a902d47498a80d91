/*
 * Any bytes as a form: the first byte says how the rest is cut; what is handed
 * on is the same as that of the whole body.
 */

#include "engine/api/multipart.h"

typedef struct {
    llm_buf_t   out;
    int         open;
} seen_t;


static int
begin(void *ctx, const llm_multipart_part_t *part, llm_err_t *err)
{
    seen_t *s = ctx;

    (void) err;

    if (s->open || part->name.data == NULL) {
        abort();
    }

    s->open = 1;
    (void) llm_buf_add(&s->out, part->name.data, part->name.len);
    (void) llm_buf_addc(&s->out, '|');
    (void) llm_buf_add(&s->out, part->filename.data, part->filename.len);
    (void) llm_buf_add(&s->out, part->type.data, part->type.len);
    (void) llm_buf_addc(&s->out, ':');

    return LLM_OK;
}


static int
data(void *ctx, const void *p, size_t len, llm_err_t *err)
{
    seen_t *s = ctx;

    (void) err;

    if (!s->open || len == 0) {
        abort();
    }

    (void) llm_buf_add(&s->out, p, len);

    return LLM_OK;
}


static int
end(void *ctx, llm_err_t *err)
{
    seen_t *s = ctx;

    (void) err;

    if (!s->open) {
        abort();
    }

    s->open = 0;
    (void) llm_buf_addc(&s->out, '\n');

    return LLM_OK;
}


static void
form(seen_t *s, const uint8_t *p, size_t size, size_t piece)
{
    size_t                 i, n;
    llm_err_t              err;
    llm_multipart_t        m;
    llm_multipart_sink_t   sink = { s, begin, data, end };

    memset(s, 0, sizeof(*s));
    memset(&err, 0, sizeof(err));
    llm_buf_init(&s->out, 0);

    if (llm_multipart_init(&m, llm_str("multipart/form-data; boundary=x"),
                           &err) != LLM_OK)
    {
        abort();
    }

    for (i = 0; i < size; i += n) {
        n = llm_min(piece, size - i);

        if (llm_multipart_read(&m, &sink, p + i, n, &err) != LLM_OK) {
            break;
        }
    }

    if (i >= size) {
        (void) llm_multipart_end(&m, &err);
    }

    if (err.msg[0] && err.status != 400) {
        abort();
    }

    (void) llm_buf_adds(&s->out, err.msg);
}


int
LLVMFuzzerTestOneInput(const uint8_t *p, size_t size)
{
    seen_t           whole, cut;
    llm_err_t        err;
    llm_multipart_t  m;

    if (size == 0) {
        return 0;
    }

    (void) llm_multipart_init(&m, (llm_str_t) { size, (const char *) p }, &err);

    form(&whole, p + 1, size - 1, size);
    form(&cut, p + 1, size - 1, (size_t) p[0] % 16 + 1);

    if (whole.out.len != cut.out.len
        || (whole.out.len
            && memcmp(whole.out.data, cut.out.data, whole.out.len) != 0))
    {
        abort();
    }

    llm_buf_free(&whole.out);
    llm_buf_free(&cut.out);

    return 0;
}
