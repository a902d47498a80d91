/*
 * The cursor over the bytes of a GGUF file.  It cannot leave them: a field that
 * would is an error.  If only the header is read, memory has fewer bytes than
 * the file; a field beyond them sets `more`.
 */

#include "engine/gguf/gguf_internal.h"


int
llm_gguf_here(llm_gguf_reader_t *r, size_t n)
{
    if (r->pos + n <= r->g->head) {
        return LLM_OK;
    }

    r->more = 1;

    return llm_fail(r->err, "%s: its header was not read whole", r->g->name);
}


int
llm_gguf_truncated(llm_gguf_reader_t *r, const char *field)
{
    return llm_fail(r->err, "%s: %s: the file ends at byte %zu, inside it: "
                    LLM_GGUF_DAMAGED, r->g->name, field, r->g->len);
}


int
llm_gguf_read(llm_gguf_reader_t *r, void *out, size_t n, const char *field)
{
    if (n > r->g->len - r->pos) {
        return llm_gguf_truncated(r, field);
    }

    if (llm_gguf_here(r, n) != LLM_OK) {
        return LLM_ERROR;
    }

    memcpy(out, r->g->data + r->pos, n);
    r->pos += n;

    return LLM_OK;
}


int
llm_gguf_read_str(llm_gguf_reader_t *r, llm_str_t *s, const char *field)
{
    uint64_t  n;

    n = 0;

    if (llm_gguf_read(r, &n, sizeof(n), field) != LLM_OK) {
        return LLM_ERROR;
    }

    if (n > r->g->len - r->pos) {
        return llm_fail(r->err, "%s: %s: a string of %llu bytes, and only "
                        "%zu bytes are left: " LLM_GGUF_DAMAGED, r->g->name,
                        field, (unsigned long long) n, r->g->len - r->pos);
    }

    s->len = (size_t) n;
    s->data = r->g->data + r->pos;

    if (llm_gguf_here(r, s->len) != LLM_OK) {
        return LLM_ERROR;
    }

    r->pos += s->len;

    return LLM_OK;
}
