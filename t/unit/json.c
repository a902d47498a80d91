/*
 * JSON to flat values and text to string literals: what is taken, what is
 * refused, and that it comes back as it went in (cJSON reads it back).
 */

#include "engine/api/json.h"
#include "engine/base/utf8.h"
#include "t/unit/api_dump.h"
#include "t/unit/tap.h"

#include <cjson/cJSON.h>


typedef struct {
    const char  *text;
    const char  *want;                  /* the dump, or part of the message */
} case_t;

static const case_t  good[] = {
    { "null", "null" },
    { " true ", "true" },
    { "\t\r\n false\n", "false" },
    { "0", "0" },
    { "-0", "0" },
    { "1.5", "d1.5" },
    { "1e2", "d100" },
    { "1E+2", "d100" },
    { "-12.5e-1", "d-1.25" },
    { "0.1", "d0.10000000000000001" },
    { "9007199254740993", "9007199254740993" },
    { "9223372036854775807", "9223372036854775807" },
    { "-9223372036854775808", "-9223372036854775808" },
    { "9223372036854775808", "n9223372036854775808" },
    { "-170141183460469231731687303715884105728",
      "n-170141183460469231731687303715884105728" },
    { "1e-400", "d0" },
    { "\"\"", "''" },
    { "\"a\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "'a\"\\/\b\f\n\r\t'" },
    { "\"\\u0041\\u00e9\\u20aC\\uD83d\\ude00\"",
      "'A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80'" },
    { "\"\xc3\xa9\xf4\x8f\xbf\xbf\x7f\"", "'\xc3\xa9\xf4\x8f\xbf\xbf\x7f'" },
    { "[]", "[]" },
    { "{}", "{}" },
    { "[1,[2,{\"a\":3}],\"x\"]", "[1,[2,{'a':3}],'x']" },
    { "{\"a\":1,\"b\":{\"c\":[true,null]}}", "{'a':1,'b':{'c':[true,null]}}" },
    { "{\"A\":1,\"a\":2}", "{'A':1,'a':2}" },

    /* of equal keys the last one stays, and numbers stay in step */

    { "{\"a\":1,\"b\":2,\"a\":3}", "{'b':2,'a':3}" },
    { "{\"a\":[1,2,{\"x\":7}],\"a\":4,\"c\":5}", "{'a':4,'c':5}" },
    { "{\"a\":1,\"a\":2,\"a\":[9]}", "{'a':[9]}" },
    { "{\"\":1,\"\":2}", "{'':2}" },
};

static const case_t  bad[] = {
    { "", "unexpected end" },
    { "  ", "unexpected" },
    { "nul", "unexpected" },
    { "nulll", "unexpected" },
    { "True", "unexpected" },
    { "NaN", "unexpected" },
    { "Infinity", "unexpected" },
    { "'a'", "unexpected" },
    { "{a:1}", "unexpected" },
    { "// c\n1", "unexpected" },
    { "\xef\xbb\xbf{}", "unexpected" },
    { "01", "invalid number" },
    { "-", "invalid number" },
    { "+1", "unexpected" },
    { ".5", "unexpected" },
    { "1.", "invalid number" },
    { "1.e1", "invalid number" },
    { "1e", "invalid number" },
    { "1e+", "invalid number" },
    { "0x10", "invalid number" },
    { "1a", "invalid number" },
    { "1-2", "invalid number" },
    { "[1e999]", "number out of range at line 1, column 2" },
    { "{\"a\":-1e999}", "number out of range at line 1, column 6" },
    { "1234567890123456789012345678901234567890123456789012345678901234",
      "too many digits" },
    { "\"", "a string without its end" },
    { "\"abc", "a string without its end" },
    { "\"\\", "unknown escape" },
    { "\"\\x41\"", "unknown escape" },
    { "\"\\u12\"", "four hexadecimal" },
    { "\"\\u12g4\"", "four hexadecimal" },
    { "\"\\u0000\"", "\\u0000" },
    { "{\"a\\u0000b\":1}", "\\u0000" },
    { "\"\\ud800\"", "surrogate" },
    { "\"\\ud800x\"", "surrogate" },
    { "\"\\ud800\\n\"", "surrogate" },
    { "\"\\ud800\\ud800\"", "surrogate" },
    { "\"\\udc00\"", "surrogate" },
    { "\"\\ud800\\u", "surrogate" },
    { "\"a\nb\"", "control character" },
    { "\"a\x01\"", "control character" },
    { "\"\x80\"", "UTF-8" },
    { "\"\xc0\x80\"", "UTF-8" },
    { "\"\xc1\xbf\"", "UTF-8" },
    { "\"\xe0\x9f\xbf\"", "UTF-8" },
    { "\"\xed\xa0\x80\"", "UTF-8" },
    { "\"\xf0\x8f\xbf\xbf\"", "UTF-8" },
    { "\"\xf4\x90\x80\x80\"", "UTF-8" },
    { "\"\xf5\x80\x80\x80\"", "UTF-8" },
    { "\"\xe2\x82\"", "UTF-8" },
    { "\"\xe2", "UTF-8" },
    { "[1 2]", "unexpected" },
    { "[1,]", "unexpected" },
    { "[,1]", "unexpected" },
    { "[1,,2]", "unexpected" },
    { "[", "unexpected end" },
    { "[1", "unexpected end" },
    { "]", "unexpected bracket" },
    { "[1}", "unexpected bracket at line 1, column 3" },
    { "{\"a\"}", "unexpected" },
    { "{\"a\":}", "unexpected" },
    { "{\"a\":1,}", "unexpected" },
    { "{\"a\" 1}", "unexpected" },
    { "{1:2}", "invalid number" },
    { "{\"1\":1,", "unexpected end" },
    { "{} {}", "more than one value" },
    { "1 2", "more than one value" },
    { "{}x", "unexpected" },
    { "{\n\"a\": 1,\n  oops}", "at line 3, column 3" },
};


static void
test_good(void)
{
    char       *copy;
    size_t      i, len;
    llm_buf_t   flat, text;
    llm_err_t   err;

    for (i = 0; i < llm_nelems(good); i++) {
        llm_buf_init(&flat, 0);
        llm_buf_init(&text, 0);

        /* a copy of the very size: reading past it is seen by a sanitizer */

        len = strlen(good[i].text);
        copy = malloc(len);
        memcpy(copy, good[i].text, len);

        err.msg[0] = '\0';

        ok(llm_json_to_flat(copy, len, NULL, &flat, &err) == LLM_OK
           && llm_flat_check(flat.data, flat.len) == LLM_OK,
           "taken: %s (%s)", good[i].want, err.msg);

        if (flat.len) {
            dump_flat((llm_flat_t *) flat.data, &text);
        }

        is_str(text.data, good[i].want, "value of case %zu", i);

        free(copy);
        llm_buf_free(&flat);
        llm_buf_free(&text);
    }
}


static void
test_bad(void)
{
    char       *copy;
    size_t      i, len;
    llm_buf_t   flat;
    llm_err_t   err;

    for (i = 0; i < llm_nelems(bad); i++) {
        llm_buf_init(&flat, 0);

        len = strlen(bad[i].text);
        copy = malloc(len ? len : 1);
        memcpy(copy, bad[i].text, len);

        err.msg[0] = '\0';
        err.status = 0;

        ok(llm_json_to_flat(copy, len, NULL, &flat, &err) == LLM_ERROR
           && err.status == 400 && strstr(err.msg, bad[i].want),
           "refused, case %zu: %s", i, bad[i].want);

        if (strstr(err.msg, bad[i].want) == NULL) {
            printf("# got %d '%s'\n", err.status, err.msg);
        }

        free(copy);
        llm_buf_free(&flat);
    }
}


static void
test_bounds(void)
{
    char       *text;
    char        nest[2 * LLM_FLAT_MAX_DEPTH + 2];
    size_t      i, n, taken;
    llm_buf_t   flat;
    llm_err_t   err;

    static const char  doc[] =
        "{\"a\":[1,-2.5,\"\\ud83d\\ude00\",{\"b\":null}],\"c\":true}";

    llm_buf_init(&flat, 0);

    taken = 0;

    for (i = 0; i < sizeof(doc) - 1; i++) {
        flat.len = 0;
        taken += llm_json_to_flat(doc, i, NULL, &flat, &err) == LLM_OK;
    }

    is_int(taken, 0, "no beginning of a document is one");

    flat.len = 0;
    is_int(llm_json_to_flat(doc, i, NULL, &flat, &err), LLM_OK,
           "the whole one is");

    flat.len = 0;
    is_int(llm_json_to_flat("[1]\0", 4, NULL, &flat, &err), LLM_ERROR,
           "a NUL behind the value is refused");

    for (n = LLM_FLAT_MAX_DEPTH; n <= LLM_FLAT_MAX_DEPTH + 1; n++) {
        for (i = 0; i < n; i++) {
            nest[i] = '[';
            nest[n + i] = ']';
        }

        flat.len = 0;
        i = llm_json_to_flat(nest, 2 * n, NULL, &flat, &err) == LLM_OK;

        if (n == LLM_FLAT_MAX_DEPTH) {
            ok(i && llm_flat_check(flat.data, flat.len) == LLM_OK,
               "%zu levels", n);

        } else {
            ok(!i && strstr(err.msg, "too deep"), "%zu levels are too many",
               n);
        }
    }

    n = 1100000;
    text = malloc(2 * n + 1);
    text[0] = '[';

    for (i = 0; i < n; i++) {
        text[1 + 2 * i] = '1';
        text[2 + 2 * i] = i + 1 < n ? ',' : ']';
    }

    flat.len = 0;
    ok(llm_json_to_flat(text, 2 * n + 1, NULL, &flat, &err) == LLM_ERROR
       && strstr(err.msg, "too many values"), "1,100,000 values");

    free(text);
    llm_buf_free(&flat);

    llm_buf_init(&flat, 64);
    is_int(llm_json_to_flat("[1,2,3,4,5,6]", 13, NULL, &flat, &err), LLM_ERROR,
           "a value larger than its buffer may be");
    llm_buf_free(&flat);
}


/* decodes by arithmetic and judges the code point: another way */

static size_t
reference_char(const unsigned char *s, size_t len)
{
    size_t    n, i;
    uint32_t  c;

    static const uint32_t  least[] = { 0, 0, 0x80, 0x800, 0x10000 };

    if (s[0] < 0x80) {
        return 1;
    }

    n = (s[0] & 0xe0) == 0xc0 ? 2 : (s[0] & 0xf0) == 0xe0 ? 3
        : (s[0] & 0xf8) == 0xf0 ? 4 : 0;

    if (n == 0 || n > len) {
        return 0;
    }

    c = s[0] & (0x7f >> n);

    for (i = 1; i < n; i++) {
        if ((s[i] & 0xc0) != 0x80) {
            return 0;
        }

        c = c << 6 | (s[i] & 0x3f);
    }

    return (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
           ? 0 : n;
}


static void
test_utf8(void)
{
    size_t         len;
    uint32_t       i, differ;
    unsigned char  s[4];

    differ = 0;

    /* all first three bytes, with two different fourth ones */

    for (i = 0; i < 1u << 24; i++) {
        s[0] = (unsigned char) (i >> 16);
        s[1] = (unsigned char) (i >> 8);
        s[2] = (unsigned char) i;
        s[3] = (i & 1) ? 0xbf : 0x7f;

        len = 1 + (i >> 3) % 4;

        differ += llm_utf8_decode((char *) s, len, NULL)
                  != reference_char(s, len);
        differ += llm_utf8_decode((char *) s, 4, NULL) != reference_char(s, 4);
    }

    is_int(differ, 0, "what is UTF-8 and what is not");
}


static int
reads_back(const char *s, size_t len)
{
    int        same;
    cJSON     *v;
    llm_buf_t  b;

    llm_buf_init(&b, 0);
    (void) llm_json_add_string(&b, s, len);

    v = cJSON_ParseWithLength(b.data, b.len);
    same = cJSON_IsString(v) && strlen(v->valuestring) == len
           && memcmp(v->valuestring, s, len) == 0;

    cJSON_Delete(v);
    llm_buf_free(&b);

    return same;
}


/* one struct for several texts: its values are counted down over them */

static void
test_limits(void)
{
    llm_buf_t          flat;
    llm_err_t          err;
    llm_json_limits_t  limits = { 3, 10, 0 };

    llm_buf_init(&flat, 0);

    is_int(llm_json_to_flat("[[[1]]]", 7, &limits, &flat, &err), LLM_OK,
           "as deep as may be");
    is_int(limits.values, 7, "each list counts");
    ok(llm_json_to_flat("[[[[]]]]", 8, &limits, &flat, &err) == LLM_ERROR
       && strstr(err.msg, "too deep"), "one deeper");
    is_int(limits.values, 3, "what is refused counts, too");

    flat.len = 0;
    is_int(llm_json_to_flat("[1,2,3]", 7, &limits, &flat, &err), LLM_OK,
           "the last values");
    is_int(limits.values, 0, "none are left");

    flat.len = 0;
    is_int(llm_json_to_flat("7", 1, &limits, &flat, &err), LLM_OK,
           "a number alone is no matter");
    ok(llm_json_to_flat("[]", 2, &limits, &flat, &err) == LLM_ERROR
       && strstr(err.msg, "too many values"), "a list is");

    llm_buf_free(&flat);
}


static void
test_text(void)
{
    char       text[32];
    size_t     at, len, wrong, i;
    uint32_t   c;
    llm_buf_t  b;

    wrong = 0;

    /* each ASCII character at each place of runs of each length */

    for (c = 1; c < 0x80; c++) {
        for (len = 1; len < 24; len++) {
            for (at = 0; at < len; at++) {
                memset(text, 'x', len);
                text[at] = (char) c;
                wrong += !reads_back(text, len);
            }
        }
    }

    is_int(wrong, 0, "ASCII reads back, whatever stands where");

    wrong = 0;

    for (i = 0; i < 9; i++) {
        memset(text, 'y', sizeof(text));
        memcpy(text + i, "\xc3\xa9\"\xf0\x9f\x98\x80", 7);
        wrong += !reads_back(text, i + 7);
        wrong += !reads_back(text, i + 9);
    }

    is_int(wrong, 0, "other characters too");

    llm_buf_init(&b, 0);
    (void) llm_json_add_string(&b, "a\0\x1f\x7f\"\\\n\t\r\b\f/", 12);
    is_str(b.data, "\"a\xef\xbf\xbd\\u001f\x7f\\\"\\\\\\n\\t\\r\\b\\f/\"",
           "escapes, and U+FFFD for a NUL");

    b.len = 0;
    (void) llm_json_add_string(&b, "\xff" "a\xe2\x82" "b\xed\xa0\x80", 8);
    is_str(b.data, "\"\xef\xbf\xbd" "a\xef\xbf\xbd"
           "b\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"",
           "what is not UTF-8 is U+FFFD");

    b.len = 0;
    (void) llm_json_add_text(&b, "x\"", 2);
    is_str(b.data, "x\\\"", "text without its quotes");

    b.len = 0;
    (void) llm_json_add_string(&b, NULL, 0);
    is_str(b.data, "\"\"", "no text");

    llm_buf_free(&b);
}


#define FFFD  LLM_UTF8_REPLACEMENT


/* what clients send */

static void
test_lenient(void)
{
    char               *copy;
    size_t              i, len;
    llm_buf_t           flat, text;
    llm_err_t           err;
    llm_json_limits_t   limits;

    static const struct {
        const char  *text;
        const char  *want;
    } cases[] = {
        { "\"\\u0000\"", "\"" FFFD "\"" },
        { "\"ELF \\u0000\\u0000 x\"", "\"ELF " FFFD "" FFFD " x\"" },
        { "{\"a\\u0000b\":1}", "{\"a" FFFD "b\":1}" },
        { "{\"a\\u0000\":1,\"a\\ud800\":2}", "{\"a" FFFD "\":2}" },
        { "\"\\ud800\"", "\"" FFFD "\"" },
        { "\"\\uDFFF\"", "\"" FFFD "\"" },
        { "\"\\ud800x\"", "\"" FFFD "x\"" },
        { "\"\\ud800\\n\"", "\"" FFFD "\\n\"" },
        { "\"\\ud800\\ud800\"", "\"" FFFD "" FFFD "\"" },
        { "\"\\ud800\\ud83d\\ude00\\udc00\"",
          "\"" FFFD "\xf0\x9f\x98\x80" FFFD "\"" },
        { "\"\\ude00\\ud83d\"", "\"" FFFD "" FFFD "\"" },
        { "\"\\\\u0000\"", "\"\\\\u0000\"" },
        { "[1,\"\\u0000\",9223372036854775807]",
          "[1,\"" FFFD "\",9223372036854775807]" },
        { "\xef\xbb\xbf{\"a\":\"\\u0000\"}", "{\"a\":\"" FFFD "\"}" }
    }, wrong[] = {
        { "\"\\ud800\\u\"", "four hexadecimal" },
        { "\"\\ud800", "a string without its end" },
        { "[\"\\u0000\" 1]", "an unexpected token at line 1, column 11" },
        { "\xef\xbb\xbf", "an unexpected end at line 1, column 1" },
        { "\xef\xbb\xbf{}}", "an unexpected bracket at line 1, column 3" },
        { "\xef\xbb\xbf\xef\xbb\xbf{}", "an unexpected character" },
        { "{\"a\":\"\\u0000\"} {}", "more than one value at line 1" },
        { "\"a\x01\"", "control character" },
        { "\"\xed\xa0\x80\"", "invalid UTF-8" }
    };

    for (i = 0; i < llm_nelems(cases) + llm_nelems(wrong); i++) {
        llm_buf_init(&flat, 0);
        llm_buf_init(&text, 0);
        memset(&err, 0, sizeof(err));
        limits = (llm_json_limits_t) { 8, 10, 1 };

        copy = strdup(i < llm_nelems(cases)
                      ? cases[i].text : wrong[i - llm_nelems(cases)].text);
        len = strlen(copy);

        if (i < llm_nelems(cases)) {
            ok(llm_json_to_flat(copy, len, &limits, &flat, &err) == LLM_OK
               && llm_flat_check(flat.data, flat.len) == LLM_OK,
               "lenient: %s (%s)", cases[i].text, err.msg);

            if (flat.len) {
                llm_json_add_flat(&text, (llm_flat_t *) flat.data);
            }

            is_str(text.data, cases[i].want, "its value");

        } else {
            ok(llm_json_to_flat(copy, len, &limits, &flat, &err) == LLM_ERROR
               && err.status == 400
               && strstr(err.msg, wrong[i - llm_nelems(cases)].want),
               "lenient, and refused: %s", err.msg);
        }

        llm_buf_free(&flat);
        llm_buf_free(&text);
        free(copy);
    }
}


/* JSON that was read and is written again */

static void
test_flat_json(void)
{
    size_t     i;
    llm_buf_t  flat, b;
    llm_err_t  err;

    static const char *const  same[] = {
        "{\"a\":[1,-2,true,false,null],\"b\":{},\"\\\"\":[]}",
        "[0.1,1e+100,1.0,-2.5,9223372036854775807,0.30000000000000004]",
        "\"\xc3\xa4\\n\"", "[[[]],{\"a\":{\"b\":[{}]}}]"
    };

    for (i = 0; i < llm_nelems(same); i++) {
        llm_buf_init(&flat, 0);
        llm_buf_init(&b, 0);

        is_int(llm_json_to_flat(same[i], strlen(same[i]), NULL, &flat, &err),
               LLM_OK, "read");
        is_int(llm_json_add_flat(&b, (const llm_flat_t *) flat.data), LLM_OK,
               "written");
        is_str(b.data, same[i], "the same");

        llm_buf_free(&flat);
        llm_buf_free(&b);
    }
}


int
main(void)
{
    test_good();
    test_bad();
    test_bounds();
    test_limits();
    test_lenient();
    test_utf8();
    test_text();
    test_flat_json();

    return done_testing();
}
