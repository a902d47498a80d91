/*
 * Lines under a digest; see sealed.h.
 */

#include "engine/api/json.h"
#include "engine/api/sealed.h"
#include "engine/base/sha256.h"

/* values of a line */
#define LLM_SEALED_VALUES  32


void
llm_sealed_add_hex(llm_buf_t *out, const void *data, size_t len)
{
    size_t                i;
    const unsigned char  *p = data;

    for (i = 0; i < len; i++) {
        (void) llm_buf_addf(out, "%02x", p[i]);
    }
}


int
llm_sealed_end(llm_buf_t *out, const char *what, uint64_t n)
{
    unsigned char  digest[LLM_SHA256_LEN];

    if (out->failed || llm_sha256(out->data, out->len, digest) != LLM_OK) {
        return LLM_ERROR;
    }

    (void) llm_buf_addf(out, "{\"%s\":%llu,\"sha256\":\"", what,
                        (unsigned long long) n);
    llm_sealed_add_hex(out, digest, sizeof(digest));

    return llm_buf_adds(out, "\"}\n");
}


/* the line at *pos, which ends before `end`; moves *pos past it */

static const llm_flat_t *
llm_sealed_read(llm_sealed_t *f, size_t *pos, size_t end, llm_err_t *err)
{
    size_t              len;
    const char         *line, *newline;
    const llm_flat_t   *v;
    llm_json_limits_t   limits = { 2, LLM_SEALED_VALUES, 0 };

    line = f->text + *pos;
    newline = memchr(line, '\n', end - *pos);

    if (newline == NULL) {
        (void) llm_fail(err, "it ends in the middle of a line");
        return NULL;
    }

    len = (size_t) (newline - line);
    *pos += len + 1;
    f->flat.len = 0;

    if (len > f->most
        || llm_json_to_flat(line, len, &limits, &f->flat, err) != LLM_OK)
    {
        (void) llm_fail(err, "a line is not JSON");
        return NULL;
    }

    v = (const llm_flat_t *) f->flat.data;

    if (v->type != LLM_FLAT_OBJECT) {
        (void) llm_fail(err, "a line is not an object");
        return NULL;
    }

    return v;
}


const llm_flat_t *
llm_sealed_line(llm_sealed_t *f, llm_err_t *err)
{
    if (f->pos >= f->end) {
        (void) llm_fail(err, "a line is missing");
        return NULL;
    }

    return llm_sealed_read(f, &f->pos, f->end, err);
}


int
llm_sealed_number(const llm_flat_t *line, const char *name, uint64_t *to)
{
    const llm_flat_t  *v;

    v = llm_flat_get(line, name);

    if (v == NULL || v->type != LLM_FLAT_INT || llm_flat_int(v) < 0) {
        return LLM_ERROR;
    }

    *to = (uint64_t) llm_flat_int(v);

    return LLM_OK;
}


/* is s the digest of all bytes before the last line? */

static int
llm_sealed_digest(llm_sealed_t *f, llm_str_t s, llm_err_t *err)
{
    int            good;
    llm_buf_t      hex;
    unsigned char  digest[LLM_SHA256_LEN];

    if (llm_sha256(f->text, f->end, digest) != LLM_OK) {
        return llm_fail(err, "no SHA-256 in libcrypto");
    }

    llm_buf_init(&hex, 0);
    llm_sealed_add_hex(&hex, digest, sizeof(digest));

    good = !hex.failed && s.len == hex.len
           && memcmp(s.data, hex.data, s.len) == 0;

    llm_buf_free(&hex);

    return good ? LLM_OK : llm_fail(err, "its digest differs");
}


static int
llm_sealed_check(llm_sealed_t *f, size_t len, const char *what,
    llm_err_t *err)
{
    size_t             pos;
    uint64_t           n_lines;
    const llm_flat_t  *line, *v;

    if (len == 0) {
        return llm_fail(err, "it is empty");
    }

    if (f->text[len - 1] != '\n') {
        return llm_fail(err, "it ends in the middle of a line");
    }

    for (pos = len - 1; pos > 0 && f->text[pos - 1] != '\n'; pos--) {
        /* void */
    }

    f->end = pos;
    line = llm_sealed_read(f, &pos, len, err);

    if (line == NULL) {
        return LLM_ERROR;
    }

    v = llm_flat_get(line, "sha256");

    if (v == NULL || v->type != LLM_FLAT_STRING
        || llm_sealed_number(line, what, &f->n) != LLM_OK)
    {
        return llm_fail(err, "its last line is missing");
    }

    if (llm_sealed_digest(f, llm_flat_str(v), err) != LLM_OK) {
        return LLM_ERROR;
    }

    for (pos = 0, n_lines = 0; pos < f->end; pos++) {
        n_lines += f->text[pos] == '\n';
    }

    return n_lines == f->n + 1 ? LLM_OK
           : llm_fail(err, "it has another number of %s than it says", what);
}


int
llm_sealed_open(llm_sealed_t *f, const char *text, size_t len, size_t most,
    const char *what, llm_err_t *err)
{
    f->text = text;
    f->pos = 0;
    f->end = 0;
    f->n = 0;
    f->most = most;

    llm_buf_init(&f->flat, 0);

    if (llm_sealed_check(f, len, what, err) != LLM_OK) {
        llm_buf_free(&f->flat);
        return LLM_ERROR;
    }

    return LLM_OK;
}


void
llm_sealed_close(llm_sealed_t *f)
{
    llm_buf_free(&f->flat);
}
