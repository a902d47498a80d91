/*
 * Errors, arenas, buffers and flat values.
 */

#include "engine/base/base.h"
#include "engine/base/base64.h"
#include "engine/base/count.h"
#include "engine/base/file.h"
#include "engine/base/flat.h"
#include "t/unit/tap.h"

#include <sys/stat.h>
#include <unistd.h>


static void
test_errors(void)
{
    char       big[2048];
    llm_err_t  err;

    is_int(llm_fail_with(&err, 400, "too_long", "stop", "%d of %s", 3, "x"),
           LLM_ERROR, "a failure is LLM_ERROR");
    is_int(err.status, 400, "status");
    is_str(err.code, "too_long", "code");
    is_str(err.param, "stop", "param");
    is_str(err.msg, "3 of x", "message");

    is_int(llm_fail(NULL, "nobody listens"), LLM_ERROR, "err may be NULL");

    memset(big, 'y', sizeof(big));
    big[sizeof(big) - 1] = '\0';
    (void) llm_fail(&err, "%s", big);
    is_int(strlen(err.msg), sizeof(err.msg) - 1, "a long message is cut");
    is_int(err.status, 500, "our own fault is 500");

    (void) llm_fail(&err, "no '%s'", "a\n2026 [alert] \033[1m\x7f");
    is_str(err.msg, "no 'a\\x0a2026 [alert] \\x1b[1m\\x7f'",
           "a message is one line");
}


static void
test_arena(void)
{
    int           i, aligned, zero;
    char         *p;
    llm_arena_t   a;

    llm_arena_init(&a, 100000);
    aligned = 1;

    for (i = 1; i < 200; i++) {
        p = llm_arena_alloc(&a, (size_t) i);
        aligned &= p != NULL && (uintptr_t) p % 16 == 0;
        memset(p, 0xff, (size_t) i);
    }

    ok(aligned, "199 pieces, all 16-byte aligned");
    ok(a.used <= a.limit, "within the limit");

    p = llm_arena_calloc(&a, 1000);
    zero = p != NULL;

    for (i = 0; zero && i < 1000; i++) {
        zero = p[i] == 0;
    }

    ok(zero, "calloc gives zeros");
    is_str(llm_arena_dup(&a, "word!", 4), "word", "dup ends with NUL");

    ok(llm_arena_alloc(&a, 100001) == NULL, "more than the limit at once");
    ok(llm_arena_alloc(&a, SIZE_MAX - 8) == NULL, "a size that would wrap");

    for (i = 0; i < 1000 && llm_arena_alloc(&a, 1000); i++) { /* void */ }

    ok(i > 40 && i < 100, "it ends at the limit");
    llm_arena_free(&a);
    ok(a.last == NULL && a.used == 0, "free leaves nothing");
}


static void
test_buf(void)
{
    llm_buf_t  b;

    llm_buf_init(&b, 100);
    is_int(llm_buf_adds(&b, "abc"), LLM_OK, "adds");
    is_int(llm_buf_addf(&b, "-%05d", 42), LLM_OK, "addf");
    is_int(llm_buf_addc(&b, '!'), LLM_OK, "addc");
    is_str(b.data, "abc-00042!", "all of it");

    ok(llm_buf_reserve(&b, 91) == NULL, "no room beyond the limit");
    ok(b.failed, "the failure is sticky");
    is_int(llm_buf_adds(&b, "x"), LLM_ERROR, "nothing is added any more");
    is_int(b.len, 10, "what was there stays");
    llm_buf_free(&b);

    llm_buf_init(&b, 100);
    ok(llm_buf_reserve(&b, 100) != NULL, "the limit itself fits");
    llm_buf_free(&b);
}


static void
flat_sample(llm_buf_t *b)
{
    size_t  o, a;

    o = llm_flat_open(b, LLM_FLAT_OBJECT);
    llm_flat_add_str(b, "n", 1);
    llm_flat_add_int(b, -7);
    llm_flat_add_str(b, "list", 4);
    a = llm_flat_open(b, LLM_FLAT_ARRAY);
    llm_flat_add_null(b);
    llm_flat_add_bool(b, 5);
    llm_flat_add_double(b, 0.5);
    llm_flat_add_str(b, "a\0b", 3);
    llm_flat_close(b, a, 4);
    llm_flat_add_str(b, "n", 1);
    llm_flat_add_int(b, 8);
    llm_flat_close(b, o, 3);
}


static void
test_flat(void)
{
    llm_buf_t          b, copy;
    llm_str_t          s;
    const llm_flat_t  *v, *list, *item;

    llm_buf_init(&b, 0);
    flat_sample(&b);
    is_int(llm_flat_check(b.data, b.len), LLM_OK, "a value is well formed");

    v = (const llm_flat_t *) b.data;
    is_int(llm_flat_int(llm_flat_get(v, "n")), 8, "the last key wins");
    ok(llm_flat_get(v, "m") == NULL, "no such key");

    list = llm_flat_get(v, "list");
    item = llm_flat_first(list);
    is_int(item->type, LLM_FLAT_NULL, "null");
    item = llm_flat_next(list, item);
    is_int(llm_flat_int(item), 1, "true");
    item = llm_flat_next(list, item);
    ok(llm_flat_double(item) == 0.5, "double");
    item = llm_flat_next(list, item);
    s = llm_flat_str(item);
    ok(s.len == 3 && memcmp(s.data, "a\0b", 3) == 0, "NUL in a string");
    ok(llm_flat_next(list, item) == NULL, "the end");

    llm_buf_init(&copy, 0);
    llm_flat_add_node(&copy, list);
    is_int(llm_flat_check(copy.data, copy.len), LLM_OK, "a copied node");
    llm_buf_free(&copy);
    llm_buf_free(&b);
}


/* no change of a byte makes check() read outside, or accept what then would */

static void
walk(const llm_flat_t *v)
{
    const llm_flat_t  *c;

    if (v->type == LLM_FLAT_STRING) {
        (void) llm_flat_str(v);
    }

    if (v->type == LLM_FLAT_ARRAY || v->type == LLM_FLAT_OBJECT) {
        for (c = llm_flat_first(v); c; c = llm_flat_next(v, c)) {
            walk(c);
        }
    }
}


static void
test_hostile_flat(void)
{
    char       *exact;
    size_t      i, len, accepted, refused;
    unsigned    x;
    llm_buf_t   b;

    llm_buf_init(&b, 0);
    flat_sample(&b);
    accepted = 0;
    refused = 0;

    for (i = 0; i < b.len; i++) {
        for (x = 1; x < 256; x <<= 1) {
            exact = malloc(b.len);
            memcpy(exact, b.data, b.len);
            exact[i] ^= (char) x;

            if (llm_flat_check(exact, b.len) == LLM_OK) {
                accepted++;
                walk((llm_flat_t *) exact);

            } else {
                refused++;
            }

            free(exact);
        }
    }

    ok(accepted > 0 && refused > 0, "%zu changes harmless, %zu refused",
       accepted, refused);

    for (len = 0, refused = 0; len < b.len; len++) {
        exact = malloc(len + 1);
        memcpy(exact, b.data, len);
        refused += llm_flat_check(exact, len) != LLM_OK;
        free(exact);
    }

    is_int(refused, b.len, "every shorter piece is refused");
    llm_buf_free(&b);
}


static void
test_deep_flat(void)
{
    int        i;
    size_t     h[LLM_FLAT_MAX_DEPTH + 8];
    llm_buf_t  b;

    llm_buf_init(&b, 0);

    for (i = 0; i < LLM_FLAT_MAX_DEPTH + 8; i++) {
        h[i] = llm_flat_open(&b, LLM_FLAT_ARRAY);
    }

    while (i > 0) {
        i--;
        llm_flat_close(&b, h[i], i == LLM_FLAT_MAX_DEPTH + 7 ? 0 : 1);
    }

    is_int(llm_flat_check(b.data, b.len), LLM_ERROR,
           "nesting beyond the bound is refused");
    llm_buf_free(&b);
}


static void
test_files(void)
{
    char       dir[] = "/tmp/llm-base-XXXXXX", path[128];
    FILE      *f;
    llm_buf_t  b;
    llm_err_t  err;

    if (mkdtemp(dir) == NULL) {
        ok(0, "a folder for files");
        return;
    }

    snprintf(path, sizeof(path), "%s/file", dir);

    f = fopen(path, "w");
    fprintf(f, "%*s", 10000, "end");
    fclose(f);

    llm_buf_init(&b, 100000);
    is_int(llm_file_read(path, &b, &err), LLM_OK, "a file is read");
    ok(b.len == 10000 && strcmp(b.data + 9997, "end") == 0, "all of it");
    llm_buf_free(&b);

    llm_buf_init(&b, 9000);
    is_int(llm_file_read(path, &b, &err), LLM_ERROR, "a bound holds");
    llm_buf_free(&b);
    (void) remove(path);

    llm_buf_init(&b, 0);
    is_int(llm_file_read(path, &b, &err), LLM_ERROR, "a missing file");
    ok(strstr(err.msg, "No such file") != NULL, "%s", err.msg);

    (void) mkfifo(path, 0600);
    is_int(llm_file_read(path, &b, &err), LLM_ERROR,
           "a FIFO is not waited for");
    ok(strstr(err.msg, "a FIFO, not a regular file") != NULL, "%s", err.msg);
    (void) remove(path);

    is_int(llm_file_read(dir, &b, &err), LLM_ERROR, "a folder");
    is_int(llm_file_read("/dev/zero", &b, &err), LLM_ERROR, "a device");

    llm_buf_free(&b);
    (void) remove(dir);
}


static void
test_clean(void)
{
    size_t     i, n;
    char       out[64];
    llm_err_t  err;

    static const struct {
        const char  *in;
        const char  *want;
    } rows[] = {
        { "plain 'text' \"and\" \\", "plain 'text' \"and\" \\" },
        { "na\xc3\xafve \xf0\x9f\x98\x80", "na\xc3\xafve \xf0\x9f\x98\x80" },
        { "a\nb\tc\x1b[1m", "a\\x0ab\\x09c\\x1b[1m" },
        { "\x7f", "\\x7f" },
        { "\x9b" "2J", "\\x9b2J" },
        { "\xc2\x9b", "\\xc2\\x9b" },
        { "\xc2\xa0", "\xc2\xa0" },
        { "\xe2\x80\xa8\xe2\x80\xae", "\\xe2\\x80\\xa8\\xe2\\x80\\xae" },
        { "\xe2\x80\x8e", "\\xe2\\x80\\x8e" },
        { "\xe2\x81\xa6", "\\xe2\\x81\\xa6" },
        { "\xe2\x80\x93", "\xe2\x80\x93" },
        { "\xe2\x80", "\\xe2\\x80" },
        { "\xff", "\\xff" },
    };

    for (i = 0; i < llm_nelems(rows); i++) {
        n = llm_clean(out, sizeof(out), rows[i].in, strlen(rows[i].in));

        ok(n == strlen(rows[i].want) && strcmp(out, rows[i].want) == 0,
           "clean: %s", rows[i].want);

        (void) llm_fail(&err, "<%s>", rows[i].in);
        ok(memcmp(err.msg + 1, rows[i].want, n) == 0 && err.msg[n + 1] == '>',
           "in a message: %s", rows[i].want);
    }

    ok(llm_clean(out, 4, "ab\x01", 3) == 2 && strcmp(out, "ab") == 0,
       "an escape is whole or not there");
    ok(llm_clean(out, 4, "ab\xc3\xa4", 4) == 2 && strcmp(out, "ab") == 0,
       "so is a character");
}


static void
test_hide_folder(void)
{
    char  msg[] = "/srv/my models/a.gguf: no /srv/my models/b at /srv";

    llm_hide_folder(msg, NULL);
    llm_hide_folder(msg, "a.gguf");
    llm_hide_folder(msg, "/srv/my models/a.gguf");

    ok(strcmp(msg, "a.gguf: no b at /srv") == 0, "folders are hidden: %s",
       msg);
}


/* RFC 4648, section 10, and what is none; pieces are joined */

static void
test_base64(void)
{
    size_t        i, k;
    llm_buf_t     text, back;
    llm_base64_t  b;

    static const char *const  pairs[][2] = {
        { "", "" }, { "f", "Zg==" }, { "fo", "Zm8=" }, { "foo", "Zm9v" },
        { "foob", "Zm9vYg==" }, { "fooba", "Zm9vYmE=" },
        { "foobar", "Zm9vYmFy" }, { "\xff\xfe\xfb", "//77" }
    };

    static const char *const  bad[] = {
        "Z", "Zg=", "Zg", "Zg=a", "Z===", "====", "Zm9v\nZm9v", "Zm9-",
        "Zg==Zg=="
    };

    for (i = 0; i < llm_nelems(pairs); i++) {
        llm_buf_init(&text, 0);
        llm_buf_init(&back, 0);
        memset(&b, 0, sizeof(b));

        for (k = 0; pairs[i][0][k]; k++) {
            llm_base64_add(&b, &text, &pairs[i][0][k], 1);
        }

        llm_base64_end(&b, &text);

        is_str(text.len ? text.data : "", pairs[i][1], "base64, in pieces");
        is_int(llm_base64_decode(&back, text.data, text.len), LLM_OK, "back");
        is_str(back.len ? back.data : "", pairs[i][0], "to what it was");

        llm_buf_free(&text);
        llm_buf_free(&back);
    }

    llm_buf_init(&back, 0);

    for (i = 0; i < llm_nelems(bad); i++) {
        is_int(llm_base64_decode(&back, bad[i], strlen(bad[i])), LLM_ERROR,
               "no base64: %s", i == 6 ? "a line break" : bad[i]);
    }

    llm_buf_free(&back);
}


static void
test_count(void)
{
    size_t    i;
    uint64_t  n;

    static const struct {
        const char  *text;
        uint64_t     most;
        uint64_t     n;
    } good[] = {
        { "0", 0, 0 }, { "8192", 8192, 8192 }, { "8k", 8192, 8192 },
        { "128K", 1 << 20, 131072 }, { "1m", 1 << 20, 1 << 20 },
        { "2M", UINT32_MAX, 2 << 20 }, { "007", 9, 7 },
        { "18446744073709551615", UINT64_MAX, UINT64_MAX },
        { "17592186044415m", UINT64_MAX, 17592186044415u * (1ull << 20) }
    };

    static const struct {
        const char  *text;
        uint64_t     most;
    } bad[] = {
        { "", 9 }, { "k", 9 }, { "m", UINT64_MAX }, { "8kk", UINT64_MAX },
        { "8g", UINT64_MAX }, { "-1", UINT64_MAX }, { "+1", UINT64_MAX },
        { "1.5k", UINT64_MAX }, { " 1", UINT64_MAX }, { "1 ", UINT64_MAX },
        { "0x10", UINT64_MAX }, { "8193", 8192 }, { "9k", 8192 },
        { "8k", 8191 }, { "18446744073709551616", UINT64_MAX },
        { "17592186044416m", UINT64_MAX },
        { "99999999999999999999999", UINT64_MAX }
    };

    for (i = 0; i < llm_nelems(good); i++) {
        n = 1;
        ok(llm_count(good[i].text, strlen(good[i].text), good[i].most, &n)
           == LLM_OK && n == good[i].n, "a count: %s", good[i].text);
    }

    for (i = 0; i < llm_nelems(bad); i++) {
        ok(llm_count(bad[i].text, strlen(bad[i].text), bad[i].most, &n)
           == LLM_ERROR, "no count, or too large: \"%s\"", bad[i].text);
    }
}


int
main(void)
{
    test_count();
    test_files();
    test_errors();
    test_clean();
    test_hide_folder();
    test_arena();
    test_buf();
    test_flat();
    test_hostile_flat();
    test_deep_flat();
    test_base64();

    return done_testing();
}
