/*
 * Expressions and patterns: random ones against PCRE2 where the two mean the
 * same, and what PCRE2 does not have by hand.
 */

#include "engine/grammar/regex/internal.h"
#include "t/unit/grammar_vocab.h"
#include "t/unit/tap.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>


/* ---- random patterns ---- */

static void
add_pattern(llm_buf_t *b, int depth, int plain)
{
    uint32_t  n;

    static const char  *atoms[] = {
        "a", "b", "ab", ".", "[ab]", "[^a]", "\\d", "\\w", "1", "\\x61",
        "\xc3\xa9", "[a-c1-3]", "\\.", "[^\\d]"
    };
    static const char  *times[] = {
        "*", "+", "?", "{2}", "{1,3}", "{2,}", "*?", "+?"
    };
    static const char  *anchors[] = { "^", "$", "\\b", "\\B" };

    switch (gv_random(depth > 0 ? 9 : 2)) {

    case 0:
    case 1:
        (void) llm_buf_adds(b, atoms[gv_random(llm_nelems(atoms))]);
        return;

    case 2:
    case 3:
        add_pattern(b, depth - 1, plain);
        add_pattern(b, depth - 1, plain);
        return;

    case 4:
        (void) llm_buf_adds(b, "(");
        add_pattern(b, depth - 1, plain);
        (void) llm_buf_adds(b, "|");
        add_pattern(b, depth - 1, plain);
        (void) llm_buf_adds(b, ")");
        return;

    case 5:
    case 6:
        (void) llm_buf_adds(b, "(?:");
        add_pattern(b, depth - 1, 1);
        (void) llm_buf_addf(b, ")%s", times[gv_random(llm_nelems(times))]);
        return;

    case 7:
        if (!plain) {
            (void) llm_buf_adds(b, anchors[gv_random(llm_nelems(anchors))]);
        }

        return;

    default:
        if (!plain) {
            n = gv_random(2);
            (void) llm_buf_adds(b, n ? "(?=" : "(?!");
            add_pattern(b, depth - 1, 0);
            (void) llm_buf_adds(b, ")");
        }
    }
}


static void
random_text(llm_buf_t *b)
{
    uint32_t  n;

    static const char  *pieces[] = {
        "a", "b", "1", "ab", "\xc3\xa9", ".", " ", "c3", "_", "\n"
    };

    b->len = 0;
    (void) llm_buf_adds(b, "");

    for (n = gv_random(8); n > 0; n--) {
        (void) llm_buf_adds(b, pieces[gv_random(llm_nelems(pieces))]);
    }
}


/* ours and PCRE2's answers to texts; 0: they differ */

static int
compare(pcre2_code *code, llm_rx_pool_t *p, llm_rx_t rx, const char *pattern,
    uint64_t *matches, uint64_t *texts)
{
    int                rc, ours, good;
    uint32_t           i;
    llm_buf_t          text;
    pcre2_match_data  *data;

    llm_buf_init(&text, 0);
    data = pcre2_match_data_create_from_pattern(code, NULL);
    good = 1;

    for (i = 0; i < 25 && good; i++) {
        random_text(&text);

        rc = pcre2_match(code, (PCRE2_SPTR) (text.data ? text.data : ""),
                         text.len, 0, 0, data, NULL);
        ours = llm_rx_matches(p, rx, text.data, text.len);
        (*texts)++;
        *matches += (uint64_t) ours;
        good = ours == (rc >= 0);

        if (!good) {
            printf("# /%s/ on \"%.*s\": %d, PCRE2 %d\n", pattern,
                   (int) text.len, text.data, ours, rc);
        }
    }

    pcre2_match_data_free(data);
    llm_buf_free(&text);

    return good;
}


static void
test_random(void)
{
    int             i, n, good, error;
    uint64_t        matches, texts;
    size_t          offset;
    llm_rx_t        rx;
    llm_buf_t       b;
    pcre2_code     *code;
    llm_rx_pool_t  *p;

    matches = 0;
    texts = 0;
    good = 1;

    for (i = 0, n = 0; i < 6000 && good; i++) {
        llm_buf_init(&b, 0);
        (void) llm_buf_adds(&b, "");
        add_pattern(&b, 4, 0);

        p = llm_rx_create(200000);
        code = pcre2_compile((PCRE2_SPTR) b.data, b.len,
                             PCRE2_UTF | PCRE2_DOLLAR_ENDONLY, &error,
                             &offset, NULL);

        if (code && llm_rx_parse(p, b.data, b.len, LLM_RX_SEARCH, &rx, NULL)
                    == LLM_OK)
        {
            n++;
            good = compare(code, p, rx, b.data, &matches, &texts);
        }

        pcre2_code_free(code);
        llm_rx_free(p);
        llm_buf_free(&b);
    }

    ok(good && n > 5000 && matches > texts / 10 && matches < texts,
       "%d patterns: %llu of %llu texts match, as PCRE2 says", n,
       (unsigned long long) matches, (unsigned long long) texts);
}


/* ---- by hand ---- */

static int
matches(const char *pattern, int mode, const char *text)
{
    int             rc;
    llm_rx_t        rx;
    llm_err_t       err;
    llm_rx_pool_t  *p;

    p = llm_rx_create(100000);
    rc = llm_rx_parse(p, pattern, strlen(pattern), mode, &rx, &err);

    if (rc == LLM_OK) {
        rc = llm_rx_matches(p, rx, text, strlen(text));

    } else {
        printf("# %s\n", err.msg);
    }

    llm_rx_free(p);

    return rc;
}


static void
test_patterns(void)
{
    is_int(matches("abc", LLM_RX_WHOLE, "abc"), 1, "the whole text");
    is_int(matches("b", LLM_RX_WHOLE, "abc"), 0, "not a part of it");
    is_int(matches("b", LLM_RX_SEARCH, "abc"), 1, "but where it searches");
    is_int(matches("(?i)stra\xc3\x9f", LLM_RX_WHOLE, "STRA\xe1\xba\x9e"), 1,
           "(?i) beyond ASCII");
    is_int(matches("(?i:a)b", LLM_RX_WHOLE, "Ab"), 1, "(?i:) inside");
    is_int(matches("(?i:a)b", LLM_RX_WHOLE, "AB"), 0, "(?i:) only there");
    is_int(matches("(?s)a.b", LLM_RX_WHOLE, "a\nb"), 1, "(?s)");
    is_int(matches("a.b", LLM_RX_WHOLE, "a\nb"), 0, "a dot is no line feed");
    is_int(matches("(?P<n>a)(?<m>b)", LLM_RX_WHOLE, "ab"), 1, "named groups");
    is_int(matches("\\p{Lu}\\P{L}", LLM_RX_WHOLE, "\xc3\x84" "1"), 1,
           "properties");
    is_int(matches("[\\p{Letter}]+", LLM_RX_WHOLE, "\xe6\x97\xa5x"), 1,
           "by their long names");
    is_int(matches("\\u00e9\\u{1F600}\\ud83d\\ude00", LLM_RX_WHOLE,
                   "\xc3\xa9\xf0\x9f\x98\x80\xf0\x9f\x98\x80"), 1,
           "\\u in its three forms");
    is_int(matches("a{,2}", LLM_RX_WHOLE, "aa"), 1, "{,2}");
    is_int(matches("a{x}", LLM_RX_WHOLE, "a{x}"), 1,
           "a brace that begins no repetition");
    is_int(matches("^(?!.*secret).*$", LLM_RX_SEARCH, "no secrets"), 0,
           "a negative look-ahead");
    is_int(matches("(?=.*[0-9])(?=.*[a-z]).{4,6}", LLM_RX_WHOLE, "ab12"), 1,
           "several look-aheads");
    is_int(matches("(?=.*[0-9])(?=.*[a-z]).{4,6}", LLM_RX_WHOLE, "abcd"), 0,
           "each of them counts");
    is_int(matches("[]a", LLM_RX_WHOLE, "a"), 0, "an empty class");
    is_int(matches("\\s", LLM_RX_WHOLE, "\xc2\xa0"), 1,
           "\\s has Unicode's spaces");
}


static void
refused(const char *pattern, const char *reason)
{
    llm_rx_t        rx;
    llm_err_t       err;
    llm_rx_pool_t  *p;

    p = llm_rx_create(100000);

    if (!ok(llm_rx_parse(p, pattern, strlen(pattern), LLM_RX_SEARCH, &rx,
                         &err) == LLM_ERROR
            && err.status == 400 && strstr(err.msg, reason),
            "/%s/: %s", pattern, reason))
    {
        printf("# %s\n", err.msg);
    }

    llm_rx_free(p);
}


static void
test_refused(void)
{
    refused("(a)\\1", "back reference");
    refused("(?<=a)b", "look-behind");
    refused("(?:a\\b)*", "inside of a repetition");
    refused("a(", "a ) is missing");
    refused("a)", "a ( is missing");
    refused("[a", "a ] is missing");
    refused("[b-a]", "ends before it begins");
    refused("*a", "nothing to repeat");
    refused("a{3,2}", "minimum is above");
    refused("a++", "possessive");
    refused("\\", "backslash");
    refused("\\y", "escape is not known");
    refused("\\p{Klingon}", "property");
    refused("\\x6", "hexadecimal");
    refused("(?>a)", "group is not supported");
}


/* ---- operations ---- */

static void
test_operations(void)
{
    char            text[16];
    uint32_t        i, wrong;
    llm_rx_t        a, b, r;
    llm_rx_pool_t  *p;
    llm_rx_mark_t   mark;

    p = llm_rx_create(100000);
    a = llm_rx_literal(p, "abc", 3);
    b = llm_rx_literal(p, "abd", 3);

    is_int(llm_rx_or(p, a, b), llm_rx_or(p, b, a), "a|b is b|a");
    is_int(llm_rx_not(p, llm_rx_not(p, a)), a, "not not a is a");
    is_int(llm_rx_is_none(p, llm_rx_and(p, a, llm_rx_not(p, a)), 100), 1,
           "a and not a is nothing");
    is_int(llm_rx_is_none(p, llm_rx_and(p, llm_rx_not(p, b),
                                        llm_rx_or(p, a, b)), 100), 0,
           "but something is left of a or b without b");
    r = llm_rx_and(p, llm_rx_residue(p, 31, 5), llm_rx_residue(p, 29, 7));
    is_int(llm_rx_is_none(p, r, 50), LLM_ERROR, "what a small bound leaves "
           "open");
    is_int(llm_rx_is_none(p, r, 60), LLM_ERROR, "is not asked for again");
    is_int(llm_rx_is_none(p, r, 20000), 0, "but with the whole one");
    is_int(llm_rx_and(p, llm_rx_repeat(p, LLM_RX_CHAR, 2, 9),
                      llm_rx_repeat(p, LLM_RX_CHAR, 5, 20)),
           llm_rx_repeat(p, LLM_RX_CHAR, 5, 9), "lengths intersect");
    is_int(llm_rx_matches(p, llm_rx_repeat(p, a, 2, 1000), "abcabc", 6), 1,
           "a counted repetition");

    llm_rx_mark(p, &mark);
    (void) llm_rx_literal(p, "something else", 14);
    is_int(llm_rx_reset(p, &mark), LLM_OK, "back to a mark");
    is_int(llm_rx_literal(p, "abc", 3), a, "what was before it is there");

    r = llm_rx_residue(p, 7, 3);

    for (i = 0, wrong = 0; i < 1000; i++) {
        snprintf(text, sizeof(text), "%u", i);
        wrong += llm_rx_matches(p, r, text, strlen(text)) != (i % 7 == 3);
    }

    is_int(wrong, 0, "numbers by their residue");
    llm_rx_free(p);

    p = llm_rx_create(64);
    (void) llm_rx_literal(p, "0123456789012345678901234567890123456789012345"
                          "67890123456789", 60);
    ok(llm_rx_failed(p), "a pool has a bound");
    is_int(llm_rx_literal(p, "a", 1), LLM_RX_NONE, "and gives no more");
    llm_rx_free(p);
}


int
main(void)
{
    test_patterns();
    test_refused();
    test_operations();
    test_random();

    return done_testing();
}
