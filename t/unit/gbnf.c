/*
 * GBNF, choices, regular expressions and any object of JSON, by matchers: for
 * each feature texts that are allowed and others that are not, token by
 * token, and what is refused with its line.
 */

#include "engine/grammar/grammar.h"
#include "t/unit/grammar_vocab.h"
#include "t/unit/tap.h"

static llm_vocab_t    *vocab;
static llm_toktree_t  *tree;


/* 1: the masks allow the text, byte by byte, and its end */

static int
allows(llm_gram_t *g, const char *text)
{
    int             good;
    size_t          i;
    uint32_t        mask[(GV_SIZE + 31) / 32];
    uint8_t         byte;
    llm_err_t       err;
    llm_matcher_t  *m;

    m = llm_matcher_create(g, &err);
    good = m != NULL;

    for (i = 0; good && text[i]; i++) {
        byte = (uint8_t) text[i];
        good = llm_matcher_mask(m, mask, &err) == LLM_OK
               && (mask[byte / 32] >> byte % 32 & 1)
               && llm_matcher_accept(m, byte, &err) == LLM_OK;
    }

    good = good && llm_matcher_mask(m, mask, &err) == LLM_OK
           && llm_matcher_may_end(m)
           && (mask[GV_EOS / 32] >> GV_EOS % 32 & 1);

    llm_matcher_free(m);

    return good;
}


static void
check(llm_gram_t *g, const llm_err_t *err, const char *what, const char *yes,
    const char *no)
{
    if (!ok(g != NULL, "%s: it is read", what)) {
        printf("# %s\n", err->msg);
        return;
    }

    ok(allows(g, yes), "%s: what it allows", what);
    ok(!allows(g, no), "%s: and what not", what);
    llm_gram_free(g);
}


static void
gbnf(const char *what, const char *text, const char *yes, const char *no)
{
    llm_err_t    err;
    llm_gram_t  *g;

    g = llm_gram_gbnf(text, strlen(text), tree, &err);
    check(g, &err, what, yes, no);
}


static void
test_features(void)
{
    gbnf("a literal", "root ::= \"a\\n\\x41\\u00e9\\\"\"", "a\nA\xc3\xa9\"",
         "a");
    gbnf("alternatives", "root ::= \"a\" | \"b\" | ", "", "c");
    gbnf("a class", "root ::= [a-c\\]x-]+", "ab]-x", "d");
    gbnf("all but a class", "root ::= [^a-c\\n]", "\xc3\xa9", "b");
    gbnf("any character", "root ::= . .", "\xc3\xa9\n", "a");
    gbnf("groups", "root ::= (\"a\" (\"b\" | \"c\"))* \"d\"", "abacd", "abd ");
    gbnf("lines in a group", "root ::= (\n  \"a\" # one\n  | \"b\"\n)\n", "b",
         "ab");
    gbnf("a line that goes on", "root ::= \"a\"\n  | \"b\"\n", "b", "ab");
    gbnf("{n}", "root ::= \"a\"{2}", "aa", "a");
    gbnf("{n,}", "root ::= \"a\"{2,}", "aaaa", "a");
    gbnf("{n,m}", "root ::= \"a\"{1,2}", "aa", "aaa");
    gbnf("{0,m}", "root ::= \"a\"{0,2} \"b\"", "b", "aaab");
    gbnf("+ and ?", "root ::= \"a\"+ \"b\"?", "aab", "b");
    gbnf("a rule before its definition", "root ::= x-1 x-1\nx-1 ::= \"a\"",
         "aa", "a");
    gbnf("recursion", "root ::= \"(\" root \")\" | \"\"", "(())", "(()");
    gbnf("recursion to the right", "root ::= \"a\" root | \"b\"", "aaab",
         "aaa");
    gbnf("two that call each other", "root ::= \"[\" list? \"]\"\n"
         "list ::= item (\",\" item)*\nitem ::= [0-9]+ | root",
         "[1,[],[2,[3]]]", "[1,]");
    gbnf("what may be empty, repeated", "root ::= (a a)* \"b\"\n"
         "a ::= \"x\"? root2?\nroot2 ::= \"(\" root \")\"", "x(b)xb", "x");
    gbnf("a class that ends a rule", "root ::= [0-9]+ ws \"!\"\n"
         "ws ::= [ \\t]*", "12  !", "12 ");
}


/*
 * A grammar that knows in too many ways how it came to where it is: all sets
 * are within their bound, but a mask is made of too many.  How many steps it
 * may take does not depend on the machine.
 */

static void
test_ambiguous(void)
{
    uint32_t        mask[(GV_SIZE + 31) / 32];
    llm_err_t       err;
    llm_gram_t     *g;
    llm_matcher_t  *m;

    static const char  text[] = "root ::= s s s s s s s s s s s s s s s s\n"
                                "s ::= [a-z ] s [a-z] | [a-z ] | \"\"";

    g = llm_gram_gbnf(text, sizeof(text) - 1, tree, &err);
    m = g ? llm_matcher_create(g, &err) : NULL;
    err.msg[0] = '\0';

    ok(m && llm_matcher_mask(m, mask, &err) == LLM_ERROR
       && strstr(err.msg, "too ambiguous"),
       "a mask that takes too many steps fails");

    llm_matcher_free(m);
    llm_gram_free(g);
}


static void
refused(const char *text, const char *reason)
{
    llm_err_t    err;
    llm_gram_t  *g;

    memset(&err, 0, sizeof(err));
    g = llm_gram_gbnf(text, strlen(text), tree, &err);

    if (!ok(g == NULL && err.status == 400 && strstr(err.msg, reason),
            "refused: %s", reason))
    {
        printf("# %s\n", err.msg);
    }

    llm_gram_free(g);
}


static void
test_refused(void)
{
    refused("a ::= \"b\"", "no rule \"root\"");
    refused("", "no rule \"root\"");
    refused("root ::= a\n", "line 1: the rule \"a\" is named, but not");
    refused("root ::= a\n\na ::= \"x\"? root \"y\" | \"z\"",
            "the rule \"a\" is left-recursive");
    refused("root ::= a\na ::= \"x\"? root \"y\"", "no text matches");
    refused("root ::= \"a\"\nroot ::= \"b\"", "line 2: the rule \"root\" is "
            "there already, on line 1");
    refused("root ::= <think>", "tokens");
    refused("root ::= !<[12]>", "tokens");
    refused("root ::= \"a", "not closed");
    refused("root ::= [a", "not closed");
    refused("root ::= (\"a\"", "a ) is missing");
    refused("root ::= \"a\")", "does not end with the line");
    refused("root = \"a\"", "a ::= is missing");
    refused("root ::= \"\\y\"", "escape is not known");
    refused("root ::= [z-a]", "ends before it begins");
    refused("root ::= \"a\"{x}", "repetition in braces");
    refused("root ::= *", "neither a rule");
    refused("root ::= \"(\" root \")\"", "no text matches");
}


/* ---- the others ---- */

static void
test_choice(void)
{
    char         texts[1000][8];
    uint32_t     i;
    llm_err_t    err;
    llm_str_t    list[1000];
    llm_gram_t  *g;

    for (i = 0; i < 1000; i++) {
        snprintf(texts[i], sizeof(texts[i]), "n%u", i * 7);
        list[i].data = texts[i];
        list[i].len = strlen(texts[i]);
    }

    g = llm_gram_choice(list, 1000, tree, &err);
    check(g, &err, "a choice of 1,000", "n6993", "n6994");

    g = llm_gram_choice(list, 0, tree, &err);
    ok(g == NULL && err.status == 400, "a choice of nothing is refused");
}


static void
test_json_object(void)
{
    llm_err_t    err;
    llm_gram_t  *g;

    g = llm_gram_json_object(tree, &err);
    check(g, &err, "any object",
          "{\"a\": [1, -2.5e3, {\"b\":null}, \"\\u00e9\\ud83d\\ude00\"],\n"
          "  \"b\": {}, \"\": true }", "[1]");

    g = llm_gram_json_object(tree, &err);
    check(g, &err, "keys", "{\"a\":1,\"ab\":2}", "{\"a\":1,\"a\":2}");

    g = llm_gram_json_object(tree, &err);
    check(g, &err, "keys written otherwise", "{\"\303\251\":1,\"\\u00e8\":2}",
          "{\"\303\251\":1,\"\\u00e9\":2}");

    g = llm_gram_json_object(tree, &err);
    check(g, &err, "half a pair", "{\"a\":\"\\ud83d\\ude00\"}",
          "{\"a\":\"\\ud83d\"}");
}


static void
test_regex(void)
{
    llm_err_t    err;
    llm_gram_t  *g;

    g = llm_gram_regex("[a-c]{2}|x\\d+", 13, tree, &err);
    check(g, &err, "a regular expression", "x12", "abc");

    g = llm_gram_regex("a(", 2, tree, &err);
    ok(g == NULL && err.status == 400, "a broken one is refused");

    g = llm_gram_regex("(?!a)a", 6, tree, &err);
    ok(g == NULL && strstr(err.msg, "no text matches"),
       "one that nothing matches is refused");
}


static void
test_matcher(void)
{
    llm_err_t       err;
    llm_gram_t     *g;
    llm_matcher_t  *m, *other;

    g = llm_gram_regex("ab", 2, tree, &err);
    m = llm_matcher_create(g, &err);
    other = llm_matcher_create(g, &err);

    is_int(llm_matcher_accept(m, 'b', &err), LLM_ERROR, "a wrong token");
    is_int(llm_matcher_accept(m, 'a', &err), LLM_OK, "changes nothing");
    is_int(llm_matcher_may_end(m), 0, "it is not the end");
    is_int(llm_matcher_accept(m, GV_EOS, &err), LLM_ERROR, "nor may it end");
    is_int(llm_matcher_accept(m, 'b', &err), LLM_OK, "the last token");
    is_int(llm_matcher_must_end(m), 1, "only the end may follow");
    is_int(llm_matcher_accept(m, GV_EOS, &err), LLM_OK, "and does");
    is_int(llm_matcher_accept(other, 256, &err), LLM_OK,
           "another text of the same grammar, by one token");
    is_int(llm_matcher_may_end(other), 1, "is at its end, too");

    llm_matcher_restart(m);
    is_int(llm_matcher_accept(m, 'a', &err), LLM_OK, "again from the start");
    is_int(llm_matcher_accept(m, -1, &err), LLM_ERROR, "no token at all");

    llm_matcher_free(m);
    llm_matcher_free(other);
    llm_gram_free(g);
}


/* an array that may have those items only that contains asks for: behind the
   last of them no other may be begun */

static void
test_contains(void)
{
    size_t             i;
    llm_err_t          err;
    llm_gram_t        *g;
    llm_matcher_t     *m;
    llm_gn_array_t     a;
    llm_gram_build_t  *b;

    static const char  text[] = "[x, x";

    b = llm_gram_build();
    memset(&a, 0, sizeof(a));
    a.items = LLM_GN_NONE;
    a.max = LLM_GN_NO_MAX;
    a.contains = llm_gn_text(b, "x", 1);
    a.min_contains = 2;

    g = llm_gram_finish(b, llm_gn_array(b, &a), tree, &err);
    m = llm_matcher_create(g, &err);

    for (i = 0; text[i]; i++) {
        if (llm_matcher_accept(m, text[i], &err) != LLM_OK) {
            break;
        }
    }

    is_int((int64_t) i, sizeof(text) - 1, "the items that must be there");
    is_int(llm_matcher_accept(m, ',', &err), LLM_ERROR, "and no comma");
    is_int(llm_matcher_accept(m, ']', &err), LLM_OK, "but the end");

    llm_matcher_free(m);
    llm_gram_free(g);
}


/* a string of which the length counts has states of its own for each
   character */

static void
test_long(void)
{
    uint32_t           i, mask[(GV_SIZE + 31) / 32];
    llm_err_t          err;
    llm_gn_t           root;
    llm_gram_t        *g;
    llm_matcher_t     *m;
    llm_gram_build_t  *b;

    b = llm_gram_build();
    root = llm_gn_string(b, llm_rx_repeat(llm_gram_pool(b), LLM_RX_CHAR, 0,
                                          20000));
    g = llm_gram_finish(b, root, tree, &err);
    m = llm_matcher_create(g, &err);
    (void) llm_matcher_accept(m, '"', &err);

    for (i = 0; i < 20000; i++) {
        if (llm_matcher_mask(m, mask, &err) != LLM_OK
            || llm_matcher_accept(m, 'a', &err) != LLM_OK)
        {
            printf("# at %u: %s\n", i, err.msg);
            break;
        }
    }

    is_int((int64_t) i, 20000, "a string as long as it may be");
    is_int(llm_matcher_accept(m, 'a', &err), LLM_ERROR, "and no longer");
    is_int(llm_matcher_accept(m, '"', &err), LLM_OK, "but ended");

    llm_matcher_free(m);
    llm_gram_free(g);
}


/* another text's mask has dropped what was computed of this one: it is walked
   again, but not by who must not wait */

static void
test_now(void)
{
    int             ends;
    llm_err_t       err;
    uint32_t        i, mask[(GV_SIZE + 31) / 32];
    llm_gram_t     *g;
    llm_matcher_t  *m, *other;

    g = llm_gram_regex("a*b", 3, tree, &err);
    m = llm_matcher_create(g, &err);
    other = llm_matcher_create(g, &err);

    for (i = 0; i < 1000; i++) {
        if (llm_matcher_accept(m, 'a', &err) != LLM_OK) {
            break;
        }
    }

    is_int((int64_t) i, 1000, "a text");
    is_int(llm_matcher_accept_now(m, 'a', &ends, &err), LLM_OK,
           "a token at once");
    is_int(ends, 0, "more may follow");

    llm_gram_limit(g, 1);
    is_int(llm_matcher_accept_now(m, 'a', &ends, &err), LLM_LATER,
           "it has too much: it is not dropped by who must not wait");
    (void) llm_matcher_mask(other, mask, &err);
    llm_gram_limit(g, SIZE_MAX);
    is_int(llm_matcher_accept_now(m, 'a', &ends, &err), LLM_LATER,
           "another one has dropped it: nor is it walked again");
    is_int(llm_matcher_accept(m, 'a', &err), LLM_OK, "who may wait does that");
    is_int(llm_matcher_accept_now(m, 'b', &ends, &err), LLM_OK,
           "then there is a token at once again");
    is_int(ends, 1, "the last one");

    llm_matcher_free(other);
    llm_matcher_free(m);
    llm_gram_free(g);
}


int
main(void)
{
    llm_err_t  err;

    vocab = gv_load();
    tree = llm_toktree_create(vocab, &err);

    test_features();
    test_ambiguous();
    test_refused();
    test_choice();
    test_json_object();
    test_regex();
    test_matcher();
    test_long();
    test_now();
    test_contains();

    llm_toktree_free(tree);
    llm_vocab_free(vocab);

    return done_testing();
}
