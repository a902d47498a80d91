/*
 * Lines of usage; see usage.h.
 */

#include "engine/api/json.h"
#include "engine/api/key_line.h"
#include "engine/api/usage.h"
#include "engine/base/file.h"
#include "engine/base/sha256.h"
#include "engine/base/utf8.h"

#include <stdio.h>
#include <time.h>

/* values of a line, and bytes that are no key's */
#define LLM_USAGE_VALUES  32
#define LLM_USAGE_REST    512


/* ---- writing ---- */

int
llm_usage_begin(llm_buf_t *out, llm_str_t name)
{
    (void) llm_buf_adds(out, "{\"usage_of\":");
    (void) llm_json_add_string(out, name.data, name.len);

    return llm_buf_adds(out, "}\n");
}


static void
llm_usage_add_hex(llm_buf_t *out, const void *data, size_t len)
{
    size_t                i;
    const unsigned char  *p = data;

    for (i = 0; i < len; i++) {
        (void) llm_buf_addf(out, "%02x", p[i]);
    }
}


static int
llm_usage_is_text(llm_str_t s)
{
    return llm_utf8_valid(s.data, s.len) == s.len
           && memchr(s.data, '\0', s.len) == NULL;
}


int
llm_usage_add(llm_buf_t *out, const llm_usage_t *u)
{
    time_t     t;
    struct tm  tm;

    if (llm_usage_is_text(u->key)) {
        (void) llm_buf_adds(out, "{\"key\":");
        (void) llm_json_add_string(out, u->key.data, u->key.len);

    } else {
        (void) llm_buf_adds(out, "{\"key_hex\":\"");
        llm_usage_add_hex(out, u->key.data, u->key.len);
        (void) llm_buf_adds(out, "\"");
    }

    t = (time_t) u->day * 86400;
    (void) gmtime_r(&t, &tm);

    return llm_buf_addf(out, ",\"day\":\"%04d-%02d-%02d\","
                        "\"day_tokens\":%llu.%03llu,\"requests\":%llu,"
                        "\"prompt_tokens\":%llu,\"cached_tokens\":%llu,"
                        "\"completion_tokens\":%llu}\n",
                        tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
                        (unsigned long long) u->day_tokens / 1000,
                        (unsigned long long) u->day_tokens % 1000,
                        (unsigned long long) u->requests,
                        (unsigned long long) u->prompt,
                        (unsigned long long) u->cached,
                        (unsigned long long) u->answer);
}


int
llm_usage_end(llm_buf_t *out, uint64_t n_accounts)
{
    unsigned char  digest[LLM_SHA256_LEN];

    if (out->failed || llm_sha256(out->data, out->len, digest) != LLM_OK) {
        return LLM_ERROR;
    }

    (void) llm_buf_addf(out, "{\"accounts\":%llu,\"sha256\":\"",
                        (unsigned long long) n_accounts);
    llm_usage_add_hex(out, digest, sizeof(digest));

    return llm_buf_adds(out, "\"}\n");
}


/* ---- reading ---- */

typedef struct {
    const char   *text;
    size_t        len;
    llm_buf_t     flat;                 /* of one line */
    char         *key;                  /* of one line, if it was hexadecimal;
                                           LLM_USAGE_KEY bytes */
} llm_usage_reader_t;


/* the line at *pos, as an object; *pos is moved behind it */

static const llm_flat_t *
llm_usage_line(llm_usage_reader_t *rd, size_t *pos, llm_err_t *err)
{
    size_t              len;
    const char         *line, *end;
    const llm_flat_t   *v;
    llm_json_limits_t   limits = { 2, LLM_USAGE_VALUES };

    line = rd->text + *pos;
    end = memchr(line, '\n', rd->len - *pos);

    if (end == NULL) {
        (void) llm_fail(err, "it ends in the middle of a line");
        return NULL;
    }

    len = (size_t) (end - line);
    *pos += len + 1;
    rd->flat.len = 0;

    if (len > 2 * LLM_USAGE_KEY * 3 + LLM_USAGE_REST
        || llm_json_to_flat(line, len, &limits, &rd->flat, err) != LLM_OK)
    {
        (void) llm_fail(err, "a line is not JSON");
        return NULL;
    }

    v = (const llm_flat_t *) rd->flat.data;

    if (v->type != LLM_FLAT_OBJECT) {
        (void) llm_fail(err, "a line is not an object");
        return NULL;
    }

    return v;
}


static int
llm_usage_number(const llm_flat_t *line, const char *name, uint64_t *to)
{
    const llm_flat_t  *v;

    v = llm_flat_get(line, name);

    if (v == NULL || v->type != LLM_FLAT_INT || llm_flat_int(v) < 0) {
        return LLM_ERROR;
    }

    *to = (uint64_t) llm_flat_int(v);

    return LLM_OK;
}


static int
llm_usage_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : -1;
}


static int
llm_usage_read_key(llm_usage_reader_t *rd, const llm_flat_t *line,
    llm_str_t *key)
{
    int                high, low;
    size_t             i;
    llm_str_t          hex;
    const llm_flat_t  *v;

    v = llm_flat_get(line, "key");

    if (v && v->type == LLM_FLAT_STRING) {
        *key = llm_flat_str(v);
        return key->len && key->len <= LLM_USAGE_KEY ? LLM_OK : LLM_ERROR;
    }

    v = llm_flat_get(line, "key_hex");

    if (v == NULL || v->type != LLM_FLAT_STRING) {
        return LLM_ERROR;
    }

    hex = llm_flat_str(v);

    if (hex.len == 0 || hex.len % 2 || hex.len / 2 > LLM_USAGE_KEY) {
        return LLM_ERROR;
    }

    for (i = 0; i < hex.len; i += 2) {
        high = llm_usage_digit(hex.data[i]);
        low = llm_usage_digit(hex.data[i + 1]);

        if (high < 0 || low < 0) {
            return LLM_ERROR;
        }

        rd->key[i / 2] = (char) (high << 4 | low);
    }

    key->data = rd->key;
    key->len = hex.len / 2;

    return LLM_OK;
}


static int
llm_usage_read_line(llm_usage_reader_t *rd, const llm_flat_t *line,
    llm_usage_t *u)
{
    double             tokens;
    int64_t            day;
    const llm_flat_t  *v;

    if (llm_usage_read_key(rd, line, &u->key) != LLM_OK
        || llm_usage_number(line, "requests", &u->requests) != LLM_OK
        || llm_usage_number(line, "prompt_tokens", &u->prompt) != LLM_OK
        || llm_usage_number(line, "cached_tokens", &u->cached) != LLM_OK
        || llm_usage_number(line, "completion_tokens", &u->answer) != LLM_OK)
    {
        return LLM_ERROR;
    }

    v = llm_flat_get(line, "day");

    if (v == NULL || v->type != LLM_FLAT_STRING
        || llm_key_read_time(llm_flat_str(v), &day) != LLM_OK)
    {
        return LLM_ERROR;
    }

    v = llm_flat_get(line, "day_tokens");

    if (v == NULL || (v->type != LLM_FLAT_DOUBLE && v->type != LLM_FLAT_INT)) {
        return LLM_ERROR;
    }

    tokens = llm_flat_double(v);

    if (!(tokens >= 0 && tokens < 1e12)) {
        return LLM_ERROR;
    }

    u->day = (uint32_t) (day / 86400);
    u->day_tokens = (uint64_t) (tokens * 1000 + 0.5);

    return LLM_OK;
}


/* *n accounts, whose lines end at *end, if the last line is there and right;
   nothing was taken before */

static int
llm_usage_check_end(llm_usage_reader_t *rd, uint64_t *n, size_t *end,
    llm_err_t *err)
{
    size_t             pos;
    uint64_t           n_lines;
    llm_buf_t          hex;
    llm_str_t          s;
    unsigned char      digest[LLM_SHA256_LEN];
    const llm_flat_t  *line, *v;

    if (rd->len == 0 || rd->text[rd->len - 1] != '\n') {
        return llm_fail(err, "it ends in the middle of a line");
    }

    for (pos = rd->len - 1; pos > 0 && rd->text[pos - 1] != '\n'; pos--) {
        /* void */
    }

    *end = pos;
    line = llm_usage_line(rd, &pos, err);

    if (line == NULL) {
        return LLM_ERROR;
    }

    v = llm_flat_get(line, "sha256");

    if (v == NULL || v->type != LLM_FLAT_STRING
        || llm_usage_number(line, "accounts", n) != LLM_OK)
    {
        return llm_fail(err, "its last line is missing");
    }

    s = llm_flat_str(v);

    if (llm_sha256(rd->text, *end, digest) != LLM_OK) {
        return llm_fail(err, "no SHA-256 in libcrypto");
    }

    llm_buf_init(&hex, 0);
    llm_usage_add_hex(&hex, digest, sizeof(digest));

    if (hex.failed || s.len != hex.len || memcmp(s.data, hex.data, s.len) != 0)
    {
        llm_buf_free(&hex);
        return llm_fail(err, "its digest differs");
    }

    llm_buf_free(&hex);

    for (pos = 0, n_lines = 0; pos < *end; pos++) {
        n_lines += rd->text[pos] == '\n';
    }

    return n_lines == *n + 1 ? LLM_OK
           : llm_fail(err, "it has another number of accounts than it says");
}


static int
llm_usage_read_lines(llm_usage_reader_t *rd, const char *name,
    llm_usage_pt take, void *data, llm_err_t *err)
{
    size_t             pos, end;
    uint64_t           i, n;
    llm_str_t          of;
    llm_usage_t        u;
    const llm_flat_t  *line, *v;

    n = 0;
    end = 0;

    if (llm_usage_check_end(rd, &n, &end, err) != LLM_OK) {
        return LLM_ERROR;
    }

    pos = 0;
    line = llm_usage_line(rd, &pos, err);

    if (line == NULL) {
        return LLM_ERROR;
    }

    v = llm_flat_get(line, "usage_of");

    if (v == NULL || v->type != LLM_FLAT_STRING) {
        return llm_fail(err, "its first line does not say whose usage it is");
    }

    of = llm_flat_str(v);

    if (name && (of.len != strlen(name) || memcmp(of.data, name, of.len) != 0))
    {
        return llm_fail(err, "it is the usage of \"%.*s\"",
                        (int) llm_min(of.len, (size_t) 100), of.data);
    }

    for (i = 0; i < n; i++) {
        line = pos < end ? llm_usage_line(rd, &pos, err) : NULL;

        if (line == NULL || llm_usage_read_line(rd, line, &u) != LLM_OK) {
            return llm_fail(err, "line %llu is not an account's",
                            (unsigned long long) i + 2);
        }

        if (take(data, &u, err) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


int
llm_usage_read(const char *text, size_t len, const char *name,
    llm_usage_pt take, void *data, llm_err_t *err)
{
    int                 rc;
    llm_usage_reader_t  rd;

    rd.text = text;
    rd.len = len;
    rd.key = malloc(LLM_USAGE_KEY);

    if (rd.key == NULL) {
        return llm_fail(err, "no memory");
    }

    llm_buf_init(&rd.flat, 0);

    rc = llm_usage_read_lines(&rd, name, take, data, err);

    llm_buf_free(&rd.flat);
    free(rd.key);

    return rc;
}


int
llm_usage_read_file(const char *path, llm_usage_pt take, void *data,
    llm_err_t *err)
{
    int        rc;
    llm_buf_t  text;

    llm_buf_init(&text, LLM_USAGE_BYTES);

    rc = llm_file_read(path, &text, err);

    if (rc == LLM_OK) {
        rc = llm_usage_read(text.data, text.len, NULL, take, data, err);
    }

    llm_buf_free(&text);

    return rc;
}
