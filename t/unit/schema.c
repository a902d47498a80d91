/*
 * JSON Schema to grammars: the cases of schema_cases.txt, byte by byte, and
 * schemas that are large or hostile.  With a file as argument, its cases.
 */

#include "engine/api/json.h"
#include "engine/grammar/grammar.h"
#include "engine/grammar/lexer.h"
#include "engine/grammar/schema/internal.h"
#include "t/unit/tap.h"
#include "t/unit/tiny_vocab.h"

#include <limits.h>


/* values of an enum, each of which was once compared with each */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define MANY  2000
#else
#define MANY  40000
#endif


static llm_toktree_t  *tree;


/* without the keywords that are not supported */

static llm_gram_t *
compile_near(const llm_flat_t *schema, llm_err_t *err)
{
    llm_gn_t           root;
    llm_gram_build_t  *b;

    b = llm_gram_build();

    if (llm_gn_schema_near(b, schema, schema, llm_str(""), &root, err)
        == LLM_OK)
    {
        return llm_gram_finish(b, root, tree, err);
    }

    llm_gram_build_free(b);

    return NULL;
}


static llm_gram_t *
compile(const char *text, size_t len, int near, llm_err_t *err)
{
    llm_buf_t    flat;
    llm_gram_t  *g;

    memset(err, 0, sizeof(*err));
    llm_buf_init(&flat, 0);
    g = NULL;

    if (llm_json_to_flat(text, len, NULL, &flat, err) == LLM_OK) {
        g = near ? compile_near((llm_flat_t *) flat.data, err)
                 : llm_gram_schema((llm_flat_t *) flat.data, tree, err);
    }

    llm_buf_free(&flat);

    return g;
}


/* ids of tokens are bytes */

static int
accepts(llm_matcher_t *m, const char *text, size_t len)
{
    size_t     i;
    llm_err_t  err;

    llm_matcher_restart(m);

    for (i = 0; i < len; i++) {
        if (llm_matcher_accept(m, (unsigned char) text[i], &err) != LLM_OK) {
            return 0;
        }
    }

    return llm_matcher_may_end(m);
}


/* "path: words" */

static int
complains(const llm_err_t *err, const char *what)
{
    size_t       n;
    const char  *words;

    words = strchr(what, ':');
    n = (size_t) (words - what);
    words++;
    words += *words == ' ';

    return strlen(err->param) == n && memcmp(err->param, what, n) == 0
           && strstr(err->msg, words) != NULL;
}


static void
run_cases(const char *path)
{
    int             good;
    char           *line;
    FILE           *f;
    size_t          size, n;
    ssize_t         len;
    llm_err_t       err;
    llm_gram_t     *g;
    llm_matcher_t  *m;

    f = fopen(path, "r");
    if (!ok(f != NULL, "%s is there", path)) {
        return;
    }

    line = NULL;
    size = 0;
    n = 0;
    g = NULL;
    m = NULL;

    while ((len = getline(&line, &size, f)) > 0) {
        n++;

        if (line[len - 1] == '\n') {
            line[--len] = '\0';
        }

        if (len < 1 || strchr("SN+-=E", line[0]) == NULL) {
            continue;
        }

        len -= 2;

        if (line[0] == 'S' || line[0] == 'N') {
            llm_matcher_free(m);
            llm_gram_free(g);
            g = compile(line + 2, (size_t) len, line[0] == 'N', &err);
            m = g ? llm_matcher_create(g, &err) : NULL;
            continue;
        }

        if (line[0] == 'E') {
            good = g == NULL && complains(&err, line + 2);

        } else {
            good = m && accepts(m, line + 2, (size_t) len)
                        == (line[0] == '+');
        }

        if (!ok(good, "line %zu: %.60s", n, line) && m == NULL) {
            printf("# %s: %s\n", err.param, err.msg);
        }
    }

    llm_matcher_free(m);
    llm_gram_free(g);
    free(line);
    fclose(f);
}


/* a schema that is made of n times a piece, with its number in it */

static void
many(llm_buf_t *b, const char *head, const char *piece, unsigned n,
    const char *tail)
{
    unsigned  i;

    llm_buf_init(b, 0);
    llm_buf_adds(b, head);

    for (i = 0; i < n; i++) {
        if (i) {
            llm_buf_addc(b, ',');
        }

        llm_buf_addf(b, piece, i, i);
    }

    llm_buf_adds(b, tail);
}


static void
test_large(void)
{
    int             slow;
    size_t          i;
    llm_buf_t       b;
    llm_err_t       err;
    llm_gram_t     *g;
    llm_matcher_t  *m;

    /* good: what it accepts, or NULL if it is refused as too large */

    static const struct {
        const char  *head;
        const char  *piece;
        unsigned     n;
        const char  *tail;
        const char  *good;
        const char  *bad;
    } cases[] = {
        { "{\"properties\": {", "\"key%u\": {\"const\": %u}", 5000,
          "}, \"additionalProperties\": false}",
          "{\"key7\": 7, \"key4999\": 4999}", "{\"key8\": 7}" },
        { "{\"type\": \"object\", \"required\": [\"key6\"], "
          "\"properties\": {", "\"key%u\": {\"minimum\": %u}", 5000, "}}",
          "{\"key6\": 6, \"other\": 1}", "{\"key5\": 6}" },
        { "{\"enum\": [", "\"value %u\", %u", 1000, "]}",
          "\"value 999\"", "\"value 1000\"" },
        { "{\"$defs\": {", "\"d%u\": {\"items\": {\"$ref\": \"#/$defs/d%u"
          "\"}, \"type\": \"array\"}", 2000, "}, \"$ref\": \"#/$defs/d7\"}",
          "[[[]]]", "[1]" },
        { "{\"oneOf\": [", "{\"properties\": {\"k\": {\"const\": %u}, "
          "\"v%u\": {}}, \"required\": [\"k\"], \"type\": \"object\"}", 60,
          "]}", "{\"k\": 30, \"v30\": 1}", "{\"k\": 60}" },
        { "{\"allOf\": [", "{\"if\": {\"properties\": {\"k\": {\"const\": %u}"
          "}, \"required\": [\"k\"]}, \"then\": {\"required\": [\"v%u\"]}}",
          20, "], \"type\": \"object\"}", "{\"k\": 30, \"v30\": 1}",
          "{\"k\": 3}" },
        { "{\"allOf\": [", "{\"anyOf\": [{\"properties\": {\"a%u\": {"
          "\"type\": \"null\"}}}, {\"properties\": {\"b%u\": {\"type\": "
          "\"null\"}}}]}", 40, "]}", NULL, NULL },
        { "{\"patternProperties\": {", "\"%u.*%u\": {}", 40,
          "}}", NULL, NULL },
    };

    slow = getenv("LLM_SAN") && strcmp(getenv("LLM_SAN"), "tsan") == 0;

    for (i = 0; i < llm_nelems(cases); i++) {
        many(&b, cases[i].head, cases[i].piece, cases[i].n, cases[i].tail);
        g = compile(b.data, b.len, 0, &err);

        if (cases[i].good == NULL) {
            ok(g == NULL && err.status == 400, "refused: %s", err.msg);

        } else if (g == NULL && slow && strstr(err.msg, "too many comb")) {
            skip("ThreadSanitizer is slower than what a schema may take");

        } else if (ok(g != NULL, "%.40s of %u: %s", cases[i].piece,
                      cases[i].n, g ? "read" : err.msg))
        {
            m = llm_matcher_create(g, &err);
            ok(m && accepts(m, cases[i].good, strlen(cases[i].good))
               && !accepts(m, cases[i].bad, strlen(cases[i].bad)),
               "%s and not %s", cases[i].good, cases[i].bad);
            llm_matcher_free(m);
        }

        llm_gram_free(g);
        llm_buf_free(&b);
    }
}


static void
test_enums(void)
{
    size_t          i, k;
    uint64_t        begun;
    llm_buf_t       b;
    llm_err_t       err;
    llm_gram_t     *g;
    llm_matcher_t  *m;

    static const struct {
        const char  *format, *good, *bad;
    } enums[] = {
        { "%s\"word %zu\"", "\"word 1234\"", "\"word 1234x\"" },
        { "%s%zu", "1234", "1234x" },
        { "%s%zu.5", "1234.5", "1234.6" }
    };

    for (i = 0; i < llm_nelems(enums); i++) {
        llm_buf_init(&b, 0);
        (void) llm_buf_adds(&b, "{\"enum\":[");

        for (k = 0; k < MANY; k++) {
            (void) llm_buf_addf(&b, enums[i].format, k ? "," : "", k);
        }

        (void) llm_buf_adds(&b, "]}");
        begun = llm_lex_now_us();
        g = compile(b.data, b.len, 0, &err);
        begun = llm_lex_now_us() - begun;
        m = g ? llm_matcher_create(g, &err) : NULL;

        ok(m && accepts(m, enums[i].good, strlen(enums[i].good))
           && !accepts(m, enums[i].bad, strlen(enums[i].bad)),
           "an enum of %d: %s%s", MANY, enums[i].good,
           m ? "" : err.msg);
        ok(begun < 2000000, "in %u ms", (unsigned) (begun / 1000));

        llm_matcher_free(m);
        llm_gram_free(g);
        llm_buf_free(&b);
    }
}


/* the schemas of a grammar share what one may take, times four */

static void
test_many(void)
{
    int                i, rc;
    llm_gn_t           node;
    llm_buf_t          flat[2];
    llm_err_t          err;
    llm_gram_build_t  *b;

    static const char  *const texts[] = {
        "{\"properties\":{\"a\":{\"$ref\":\"#/properties/a\"}}}",
        "{\"properties\":{\"a\":{\"type\":\"null\"}}}"
    };

    for (i = 0; i < 2; i++) {
        llm_buf_init(&flat[i], 0);
        (void) llm_json_to_flat(texts[i], strlen(texts[i]), NULL, &flat[i],
                                &err);
    }

    b = llm_gram_build();

    for (i = 0; i < 100; i++) {
        if (llm_gn_schema(b, (llm_flat_t *) flat[0].data, &node, &err)
            == LLM_OK)
        {
            break;
        }

        rc = llm_gn_schema(b, (llm_flat_t *) flat[1].data, &node, &err);

        if (rc != LLM_OK) {
            break;
        }
    }

    is_int(i, 3, "a fourth schema that is too large is the last one");
    ok(strstr(err.msg, "too large") != NULL, "it says so");
    llm_gram_build_free(b);

    b = llm_gram_build();
    ok(llm_gn_schema(b, (llm_flat_t *) flat[1].data, &node, &err) == LLM_OK,
       "another grammar has its own");
    ok(*llm_gram_spent_us(b) < LLM_SCHEMA_MAX_US / 2, "and takes little of it");

    (void) llm_gn_schema(b, (llm_flat_t *) flat[0].data, &node, &err);
    ok(*llm_gram_spent_us(b) >= LLM_SCHEMA_MAX_US,
       "one that is too large takes its share, by work or by time");

    *llm_gram_spent_us(b) = LLM_SCHEMA_ALL * LLM_SCHEMA_MAX_US - 1;
    ok(llm_gn_schema(b, (llm_flat_t *) flat[1].data, &node, &err) != LLM_OK,
       "no work is left once the time is gone");
    llm_gram_build_free(b);

    llm_buf_free(&flat[0]);
    llm_buf_free(&flat[1]);
}


/* what could not be decided is not called impossible; what was looked at with a
   small bound is looked at again with the whole */

static void
test_undecided(void)
{
    size_t       i;
    llm_err_t    err;
    llm_gram_t  *g;

    static const struct {
        const char  *schema;
        int          decided;
    } of[] = {
        { "{\"type\":\"string\",\"pattern\":\"^(?=.{200,}$)(?=(?:.*a){20})"
          "(?=(?:.*b){20})(?=(?:.*c){20}).*$\"}", 0 },
        { "{\"type\":\"integer\",\"minimum\":1,\"allOf\":["
          "{\"multipleOf\":9973},{\"multipleOf\":7919}]}", 0 },
        { "{\"type\":\"string\",\"allOf\":[{\"pattern\":\"a.{30}b\"},"
          "{\"pattern\":\"c.{31}d\"},{\"pattern\":\"e.{29}f\"},"
          "{\"pattern\":\"g.{28}h\"}]}", 0 },
        { "{\"required\":[\"x\"],\"type\":\"object\",\"properties\":{"
          "\"x\":{\"type\":\"string\",\"minLength\":1,\"allOf\":["
          "{\"pattern\":\"^(.{7})*$\"},{\"pattern\":\"^(.{11})*$\"},"
          "{\"pattern\":\"^(.{13})*$\"},{\"pattern\":\"^(.{17})*$\"}]}}}", 0 },
        { "{\"type\":\"array\",\"uniqueItems\":true,\"minItems\":2,\"items\":"
          "{\"type\":\"integer\",\"minimum\":1,\"allOf\":["
          "{\"multipleOf\":9973},{\"multipleOf\":7919}]}}", 0 },
        { "{\"not\":{}}", 1 },
        { "{\"type\":\"string\",\"enum\":[1]}", 1 },
        { "{\"type\":\"string\",\"pattern\":\"^a$\",\"minLength\":2}", 1 },
        { "{\"required\":[\"x\"],\"type\":\"object\",\"properties\":"
          "{\"x\":false}}", 1 },
    };

    for (i = 0; i < llm_nelems(of); i++) {
        g = compile(of[i].schema, strlen(of[i].schema), 0, &err);
        ok(g == NULL && err.status == 400
           && strstr(err.msg, of[i].decided ? "no text matches"
                                            : "could not be decided"),
           "%.60s: %s", of[i].schema, err.msg);
        llm_gram_free(g);
    }
}


static int
stop_at(void *data)
{
    return --*(int *) data <= 0;
}


/* making a grammar can be interrupted, and given up */

static void
test_pause(void)
{
    int                rc, n, i;
    llm_gn_t           node = LLM_GN_NONE;
    llm_err_t          err;
    llm_gram_build_t  *b;

    static const char  pattern[] = "(a.{0,40}b|c.{0,40}d|e.{0,40}f){0,9}";

    for (i = 0, n = INT_MAX; i < 2; i++) {
        b = llm_gram_build();
        llm_gram_pause(b, stop_at, &n);
        rc = llm_gn_pattern(b, pattern, sizeof(pattern) - 1, &node, &err);

        if (i == 0) {
            ok(rc == LLM_OK && n < INT_MAX, "a grammar can be put aside: %d "
               "times", INT_MAX - n);
            llm_gram_build_free(b);
            n = (INT_MAX - n) / 2;
            continue;
        }

        ok(llm_gram_finish(b, node, tree, &err) == NULL,
           "or given up in the middle");
    }
}


int
main(int argc, char **argv)
{
    char          path[PATH_MAX];
    llm_err_t     err;
    const char   *root;
    tiny_vocab_t  t;

    memset(&t, 0, sizeof(t));
    root = getenv("LLM_ROOT");
    snprintf(path, sizeof(path), "%s/t/unit/schema_cases.txt",
             root ? root : ".");

    if (!ok(tv_open(&t, NULL, NULL, 0, &err) == LLM_OK, "a vocabulary")) {
        return done_testing();
    }

    tree = llm_toktree_create(t.vocab, &err);
    ok(tree != NULL, "its tree");

    run_cases(argc > 1 ? argv[1] : path);

    if (argc == 1) {
        test_large();
        test_enums();
        test_many();
        test_undecided();
        test_pause();
    }

    llm_toktree_free(tree);
    tv_close(&t);

    return done_testing();
}
