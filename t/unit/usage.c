/*
 * Files of usage: what is written comes back, and a file that is not whole is
 * not used.
 */

#include "engine/api/usage.h"
#include "engine/base/sha256.h"

#include "t/unit/tap.h"

#include <stdio.h>

#define ACCOUNTS  5

typedef struct {
    llm_usage_t  u[ACCOUNTS];
    char         keys[ACCOUNTS][300];
    uint32_t     n;
} taken_t;

static const char  zeros[] = "a\0b";

static const llm_usage_t  accounts[ACCOUNTS] = {
    { { 3, "ann" }, 20780, 1234500, 7, 900, 64, 341, 0 },
    { { 3, zeros }, 20779, 0, 0, 0, 0, 0, 0 },
    { { 4, "\x7f\x00\x00\x01" }, 20780, 999999999999, 1, 1, 1, 1, 250 },
    { { 9, "\"q\" \\ \xc3\xa4\n" }, 0, 1, 2, 3, 2, 4,
      999999999999 },
    { { 2, "\xff\xfe" }, 49709, 1000, INT64_MAX, INT64_MAX, INT64_MAX,
      INT64_MAX, 1 }
};


static int
take(void *data, const llm_usage_t *u, llm_err_t *err)
{
    taken_t *t = data;

    if (t->n == ACCOUNTS || u->key.len > sizeof(t->keys[0])) {
        return llm_fail(err, "more than there were");
    }

    t->u[t->n] = *u;
    memcpy(t->keys[t->n], u->key.data, u->key.len);
    t->u[t->n].key.data = t->keys[t->n];
    t->n++;

    return LLM_OK;
}


static void
write_all(llm_buf_t *out, uint32_t n)
{
    uint32_t  i;

    llm_buf_init(out, 0);
    (void) llm_usage_begin(out, llm_str("zone"));

    for (i = 0; i < n; i++) {
        (void) llm_usage_add(out, &accounts[i]);
    }

    (void) llm_usage_end(out, n);
}


static void
test_round_trip(void)
{
    uint32_t            i;
    taken_t             t;
    llm_buf_t           text;
    llm_err_t           err;
    const llm_usage_t  *a, *b;

    write_all(&text, ACCOUNTS);
    memset(&t, 0, sizeof(t));

    is_int(llm_usage_read(text.data, text.len, "zone", take, &t, &err),
           LLM_OK, "a file that was written is read");
    is_int(t.n, ACCOUNTS, "all of it");

    for (i = 0; i < t.n; i++) {
        a = &accounts[i];
        b = &t.u[i];

        ok(a->key.len == b->key.len
           && memcmp(a->key.data, b->key.data, a->key.len) == 0,
           "account %u: any bytes are a key", i);
        ok(a->day == b->day && a->day_tokens == b->day_tokens
           && a->requests == b->requests && a->prompt == b->prompt
           && a->cached == b->cached && a->answer == b->answer
           && a->held == b->held,
           "account %u: its figures", i);
    }

    is_int(llm_usage_read(text.data, text.len, "other", take, &t, &err),
           LLM_ERROR, "it is no other zone's");
    ok(strstr(err.msg, "\"zone\"") != NULL, "the error says whose");

    llm_buf_free(&text);

    write_all(&text, 0);
    memset(&t, 0, sizeof(t));
    is_int(llm_usage_read(text.data, text.len, NULL, take, &t, &err), LLM_OK,
           "a file of no account");
    llm_buf_free(&text);
}


/* cut anywhere, or with any byte changed */

static void
test_torn(void)
{
    size_t     i;
    taken_t    t;
    uint32_t   used, changed;
    llm_buf_t  text;
    llm_err_t  err;

    write_all(&text, ACCOUNTS);
    used = 0;
    changed = 0;

    for (i = 0; i < text.len; i++) {
        memset(&t, 0, sizeof(t));
        used += llm_usage_read(text.data, i, NULL, take, &t, &err) == LLM_OK
                || t.n;
    }

    is_int(used, 0, "nothing is used of a file that ends early, wherever");

    for (i = 0; i < text.len; i++) {
        memset(&t, 0, sizeof(t));
        text.data[i] ^= 1;
        changed += llm_usage_read(text.data, text.len, NULL, take, &t, &err)
                   == LLM_OK || t.n;
        text.data[i] ^= 1;
    }

    is_int(changed, 0, "nor of one with another byte, wherever");

    llm_buf_free(&text);
}


/* lines that are whole and wrong, under a right digest */

static void
test_wrong(void)
{
    size_t         i, k;
    taken_t        t;
    llm_buf_t      text;
    llm_err_t      err;
    unsigned char  digest[LLM_SHA256_LEN];

    static const char  *lines[] = {
        "{}", "[]", "1", "", "{\"key\":\"a\"}",
        "{\"key\":\"\",\"day\":\"2026-01-01\",\"day_tokens\":0,\"requests\":0,"
        "\"prompt_tokens\":0,\"cached_tokens\":0,\"completion_tokens\":0}",
        "{\"key\":\"a\",\"day\":\"2026-02-30\",\"day_tokens\":0,"
        "\"requests\":0,\"prompt_tokens\":0,\"cached_tokens\":0,"
        "\"completion_tokens\":0}",
        "{\"key\":\"a\",\"day\":\"2026-01-01\",\"day_tokens\":-1,"
        "\"requests\":0,\"prompt_tokens\":0,\"cached_tokens\":0,"
        "\"completion_tokens\":0}",
        "{\"key\":\"a\",\"day\":\"2026-01-01\",\"day_tokens\":1e300,"
        "\"requests\":0,\"prompt_tokens\":0,\"cached_tokens\":0,"
        "\"completion_tokens\":0}",
        "{\"key\":\"a\",\"day\":\"2026-01-01\",\"day_tokens\":0,"
        "\"requests\":-1,\"prompt_tokens\":0,\"cached_tokens\":0,"
        "\"completion_tokens\":0}",
        "{\"key_hex\":\"0\",\"day\":\"2026-01-01\",\"day_tokens\":0,"
        "\"requests\":0,\"prompt_tokens\":0,\"cached_tokens\":0,"
        "\"completion_tokens\":0}",
        "{\"key_hex\":\"0g\",\"day\":\"2026-01-01\",\"day_tokens\":0,"
        "\"requests\":0,\"prompt_tokens\":0,\"cached_tokens\":0,"
        "\"completion_tokens\":0}"
    };

    for (i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        llm_buf_init(&text, 0);
        (void) llm_usage_begin(&text, llm_str("zone"));
        (void) llm_buf_addf(&text, "%s\n", lines[i]);
        (void) llm_sha256(text.data, text.len, digest);
        (void) llm_buf_adds(&text, "{\"accounts\":1,\"sha256\":\"");

        for (k = 0; k < sizeof(digest); k++) {
            (void) llm_buf_addf(&text, "%02x", digest[k]);
        }

        (void) llm_buf_adds(&text, "\"}\n");
        memset(&t, 0, sizeof(t));

        is_int(llm_usage_read(text.data, text.len, NULL, take, &t, &err),
               LLM_ERROR, "not an account: %.60s", lines[i]);
        ok(strstr(err.msg, "line 2") != NULL, "it is named: %s", err.msg);

        llm_buf_free(&text);
    }
}


int
main(void)
{
    test_round_trip();
    test_torn();
    test_wrong();

    return done_testing();
}
