/*
 * Lines of usage; see usage.h.
 */

#include "engine/api/json.h"
#include "engine/api/key_line.h"
#include "engine/api/sealed.h"
#include "engine/api/usage.h"
#include "engine/base/file.h"
#include "engine/base/utf8.h"

#include <stdio.h>
#include <time.h>

/* most bytes of a line except its key */
#define LLM_USAGE_REST    512


/* ---- writing ---- */

int
llm_usage_begin(llm_buf_t *out, llm_str_t name)
{
    (void) llm_buf_adds(out, "{\"usage_of\":");
    (void) llm_json_add_string(out, name.data, name.len);

    return llm_buf_adds(out, "}\n");
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
        llm_sealed_add_hex(out, u->key.data, u->key.len);
        (void) llm_buf_adds(out, "\"");
    }

    t = (time_t) u->day * 86400;
    (void) gmtime_r(&t, &tm);

    (void) llm_buf_addf(out, ",\"day\":\"%04d-%02d-%02d\","
                        "\"day_tokens\":%llu.%03llu",
                        tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday,
                        (unsigned long long) u->day_tokens / 1000,
                        (unsigned long long) u->day_tokens % 1000);

    if (u->held) {
        (void) llm_buf_addf(out, ",\"held_tokens\":%llu.%03llu",
                            (unsigned long long) u->held / 1000,
                            (unsigned long long) u->held % 1000);
    }

    return llm_buf_addf(out, ",\"requests\":%llu,"
                        "\"prompt_tokens\":%llu,\"cached_tokens\":%llu,"
                        "\"completion_tokens\":%llu}\n",
                        (unsigned long long) u->requests,
                        (unsigned long long) u->prompt,
                        (unsigned long long) u->cached,
                        (unsigned long long) u->answer);
}


int
llm_usage_end(llm_buf_t *out, uint64_t n_accounts)
{
    return llm_sealed_end(out, "accounts", n_accounts);
}


/* ---- reading ---- */

static int
llm_usage_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : -1;
}


static int
llm_usage_read_key(const llm_flat_t *line, char *room, llm_str_t *key)
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

        room[i / 2] = (char) (high << 4 | low);
    }

    key->data = room;
    key->len = hex.len / 2;

    return LLM_OK;
}


/* reads tokens, in 1/1000 */

static int
llm_usage_tokens(const llm_flat_t *v, uint64_t *to)
{
    double  tokens;

    if (v == NULL || (v->type != LLM_FLAT_DOUBLE && v->type != LLM_FLAT_INT)) {
        return LLM_ERROR;
    }

    tokens = llm_flat_double(v);

    if (!(tokens >= 0 && tokens < 1e12)) {
        return LLM_ERROR;
    }

    *to = (uint64_t) (tokens * 1000 + 0.5);

    return LLM_OK;
}


static int
llm_usage_read_line(const llm_flat_t *line, char *room, llm_usage_t *u)
{
    int64_t            day;
    const llm_flat_t  *v;

    if (llm_usage_read_key(line, room, &u->key) != LLM_OK
        || llm_sealed_number(line, "requests", &u->requests) != LLM_OK
        || llm_sealed_number(line, "prompt_tokens", &u->prompt) != LLM_OK
        || llm_sealed_number(line, "cached_tokens", &u->cached) != LLM_OK
        || llm_sealed_number(line, "completion_tokens", &u->answer) != LLM_OK)
    {
        return LLM_ERROR;
    }

    v = llm_flat_get(line, "day");

    if (v == NULL || v->type != LLM_FLAT_STRING
        || llm_key_read_time(llm_flat_str(v), &day) != LLM_OK)
    {
        return LLM_ERROR;
    }

    u->day = (uint32_t) (day / 86400);
    u->held = 0;
    v = llm_flat_get(line, "held_tokens");

    return v && llm_usage_tokens(v, &u->held) != LLM_OK ? LLM_ERROR
           : llm_usage_tokens(llm_flat_get(line, "day_tokens"),
                              &u->day_tokens);
}


/* is the file named `name`? NULL: any name is right */

static int
llm_usage_check_name(llm_sealed_t *f, const char *name, llm_err_t *err)
{
    llm_str_t          of;
    const llm_flat_t  *line, *v;

    line = llm_sealed_line(f, err);

    if (line == NULL) {
        return LLM_ERROR;
    }

    v = llm_flat_get(line, "usage_of");

    if (v == NULL || v->type != LLM_FLAT_STRING) {
        return llm_fail(err, "its first line does not say whose usage it is");
    }

    of = llm_flat_str(v);

    return name == NULL || llm_str_is(of, name) ? LLM_OK
           : llm_fail(err, "it is the usage of \"%.*s\"",
                      (int) llm_min(of.len, (size_t) 100), of.data);
}


/* room: LLM_USAGE_KEY bytes for a decoded key_hex */

static int
llm_usage_read_lines(llm_sealed_t *f, const char *name, char *room,
    llm_usage_pt take, void *data, llm_err_t *err)
{
    uint64_t           i;
    llm_usage_t        u;
    const llm_flat_t  *line;

    if (llm_usage_check_name(f, name, err) != LLM_OK) {
        return LLM_ERROR;
    }

    for (i = 0; i < f->n; i++) {
        line = llm_sealed_line(f, err);

        if (line == NULL || llm_usage_read_line(line, room, &u) != LLM_OK) {
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
    int            rc;
    char          *room;
    llm_sealed_t   f;

    if (llm_sealed_open(&f, text, len, 2 * LLM_USAGE_KEY * 3 + LLM_USAGE_REST,
                        "accounts", err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    room = malloc(LLM_USAGE_KEY);

    rc = room ? llm_usage_read_lines(&f, name, room, take, data, err)
              : llm_fail(err, "no memory");

    free(room);
    llm_sealed_close(&f);

    return rc;
}


int
llm_usage_text(const char *path, llm_buf_t *text, llm_err_t *err)
{
    llm_buf_init(text, LLM_USAGE_BYTES);

    return llm_file_read(path, text, err);
}


int
llm_usage_read_file(const char *path, llm_usage_pt take, void *data,
    llm_err_t *err)
{
    int        rc;
    llm_buf_t  text;

    rc = llm_usage_text(path, &text, err);

    if (rc == LLM_OK) {
        rc = llm_usage_read(text.data, text.len, NULL, take, data, err);
    }

    llm_buf_free(&text);

    return rc;
}
