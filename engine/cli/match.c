/*
 * The command match: checks texts against grammars token by token, for tests
 * and measurements.  A line of standard input is a case: a schema, a grammar,
 * a regular expression or json_object, and texts.  Each text is tokenised, and
 * its tokens are looked up in the masks.  A line of standard output has the
 * results, and the time of each step.
 */

#include "engine/api/json.h"
#include "engine/cli/cli.h"
#include "engine/cli/json_span.h"
#include "engine/grammar/grammar.h"

#include <stdio.h>
#include <time.h>

/* shared by all cases; mask: a bit for each token */
typedef struct {
    llm_vocab_t    *vocab;
    llm_toktree_t  *tree;
    uint32_t       *mask;
} llm_match_t;

typedef struct {
    llm_gram_t     *gram;
    llm_matcher_t  *matcher;
    llm_buf_t       accepted;           /* JSON: true or false of each text */
    llm_buf_t       times;              /* JSON: microseconds of each token */
} llm_match_case_t;


/* ---- reading the grammar ---- */

/* decodes a JSON string; *s points into flat */

static int
llm_match_string(llm_str_t json, llm_buf_t *flat, llm_str_t *s,
    llm_err_t *err)
{
    const llm_flat_t  *v;

    if (llm_json_to_flat(json.data, json.len, NULL, flat, err) != LLM_OK) {
        return LLM_ERROR;
    }

    v = (const llm_flat_t *) flat->data;

    if (v->type != LLM_FLAT_STRING) {
        return llm_fail(err, "a grammar, regex or text is not a string");
    }

    *s = llm_flat_str(v);

    return LLM_OK;
}


static llm_gram_t *
llm_match_gram(llm_match_t *m, llm_str_t line, llm_err_t *err)
{
    llm_str_t    v, s;
    llm_buf_t    flat;
    llm_gram_t  *g;

    llm_buf_init(&flat, 0);
    s = llm_str("");
    g = NULL;

    if (llm_span_member(line, "schema", &v)) {
        if (llm_json_to_flat(v.data, v.len, NULL, &flat, err) == LLM_OK) {
            g = llm_gram_schema((const llm_flat_t *) flat.data, m->tree, err);
        }

    } else if (llm_span_member(line, "grammar", &v)) {
        if (llm_match_string(v, &flat, &s, err) == LLM_OK) {
            g = llm_gram_gbnf(s.data, s.len, m->tree, err);
        }

    } else if (llm_span_member(line, "regex", &v)) {
        if (llm_match_string(v, &flat, &s, err) == LLM_OK) {
            g = llm_gram_regex(s.data, s.len, m->tree, err);
        }

    } else if (llm_span_member(line, "json_object", &v)) {
        g = llm_gram_json_object(m->tree, err);

    } else {
        (void) llm_fail(err, "the case has no schema, grammar, regex or "
                        "json_object");
    }

    llm_buf_free(&flat);

    return g;
}


/* ---- texts ---- */

static uint64_t
llm_match_now(void)
{
    struct timespec  t;

    clock_gettime(CLOCK_MONOTONIC, &t);

    return (uint64_t) t.tv_sec * 1000000000 + (uint64_t) t.tv_nsec;
}


static int
llm_match_allowed(const llm_match_t *m, uint32_t id)
{
    return m->mask[id / 32] >> id % 32 & 1;
}


/* 1: the grammar accepts the ids as a whole; 0: it does not; LLM_ERROR and
   *err */

static int
llm_match_ids(llm_match_t *m, llm_match_case_t *c, const llm_ids_t *ids,
    llm_err_t *err)
{
    int        end;
    size_t     i;
    uint32_t   id, n;
    uint64_t   start;

    llm_matcher_restart(c->matcher);

    if (llm_matcher_mask(c->matcher, m->mask, err) != LLM_OK) {
        return LLM_ERROR;
    }

    for (i = 0; i < ids->len; i++) {
        if (!llm_match_allowed(m, (uint32_t) ids->data[i])) {
            return 0;
        }

        start = llm_match_now();

        if (llm_matcher_accept(c->matcher, ids->data[i], err) != LLM_OK
            || llm_matcher_mask(c->matcher, m->mask, err) != LLM_OK)
        {
            return LLM_ERROR;
        }

        (void) llm_buf_addf(&c->times, "%s%.3f", c->times.len ? ", " : "",
                            (double) (llm_match_now() - start) / 1000);
    }

    /* at the end, all end-of-generation tokens must be allowed, too */

    end = llm_matcher_may_end(c->matcher);
    n = llm_vocab_size(m->vocab);

    for (id = 0; end && id < n; id++) {
        if (llm_vocab_is_eog(m->vocab, (int32_t) id)
            && !llm_match_allowed(m, id))
        {
            return 0;
        }
    }

    return end;
}


static int
llm_match_text(llm_match_t *m, llm_match_case_t *c, llm_str_t text,
    llm_err_t *err)
{
    int        rc;
    llm_ids_t  ids = { NULL, 0, 0 };

    rc = llm_vocab_tokenize(m->vocab, text.data, text.len, NULL, 0,
                            LLM_TOKENIZE_PLAIN, 0, &ids, err);

    if (rc == LLM_OK) {
        rc = llm_match_ids(m, c, &ids, err);
    }

    free(ids.data);

    return rc;
}


static int
llm_match_test(llm_match_t *m, llm_match_case_t *c, llm_str_t test,
    llm_err_t *err)
{
    int        rc;
    llm_str_t  v, s;
    llm_buf_t  b;

    llm_buf_init(&b, 0);
    s = llm_str("");

    if (llm_span_member(test, "text", &v)) {
        rc = llm_match_string(v, &b, &s, err);

    } else if (llm_span_member(test, "data", &v)) {
        rc = llm_span_dump(v, &b) == LLM_OK
             ? LLM_OK : llm_fail(err, "no memory for a test");
        s.data = b.data;
        s.len = b.len;

    } else {
        rc = llm_fail(err, "a test has neither data nor text");
    }

    if (rc == LLM_OK) {
        rc = llm_match_text(m, c, s, err);
    }

    llm_buf_free(&b);

    if (rc == LLM_ERROR) {
        return LLM_ERROR;
    }

    (void) llm_buf_addf(&c->accepted, "%s%s", c->accepted.len ? ", " : "",
                        rc ? "true" : "false");

    return LLM_OK;
}


/* ---- cases ---- */

/* compiles the grammar, with its first mask, and runs the tests; *compile:
   microseconds of both */

static int
llm_match_run(llm_match_t *m, llm_match_case_t *c, llm_str_t line,
    double *compile, llm_err_t *err)
{
    size_t     at;
    uint64_t   start;
    llm_str_t  tests, test;

    start = llm_match_now();

    c->gram = llm_match_gram(m, line, err);
    if (c->gram == NULL) {
        return LLM_ERROR;
    }

    c->matcher = llm_matcher_create(c->gram, err);

    if (c->matcher == NULL
        || llm_matcher_mask(c->matcher, m->mask, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    *compile = (double) (llm_match_now() - start) / 1000;

    if (!llm_span_member(line, "tests", &tests)) {
        return LLM_OK;
    }

    for (at = 0; llm_span_item(tests, &at, &test); ) {
        if (llm_match_test(m, c, test, err) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


static int
llm_match_print(const llm_match_case_t *c, llm_str_t line, int ok,
    double compile, const llm_err_t *what, llm_err_t *err)
{
    int        rc;
    llm_str_t  name;
    llm_buf_t  b;

    llm_buf_init(&b, 0);
    (void) llm_buf_adds(&b, "{\"name\": ");

    if (llm_span_member(line, "name", &name)) {
        (void) llm_buf_add(&b, name.data, name.len);

    } else {
        (void) llm_buf_adds(&b, "null");
    }

    if (ok) {
        (void) llm_buf_addf(&b, ", \"status\": \"ok\", \"compile_us\": %.1f, "
                            "\"accepted\": [%s], \"mask_us\": [", compile,
                            c->accepted.len ? c->accepted.data : "");
        (void) llm_buf_add(&b, c->times.data, c->times.len);
        (void) llm_buf_adds(&b, "]}\n");

    } else {
        (void) llm_buf_adds(&b, ", \"status\": \"refused\", \"reason\": ");

        if (what->param[0]) {
            char  reason[sizeof(what->param) + sizeof(what->msg) + 2];

            (void) snprintf(reason, sizeof(reason), "%s: %s", what->param,
                            what->msg);
            (void) llm_json_add_string(&b, reason, strlen(reason));

        } else {
            (void) llm_json_add_string(&b, what->msg, strlen(what->msg));
        }

        (void) llm_buf_adds(&b, "}\n");
    }

    rc = b.failed ? llm_fail(err, "no memory for the output")
                  : llm_cli_write(b.data, b.len, err);
    llm_buf_free(&b);

    return rc;
}


static int
llm_match_line(llm_match_t *m, llm_str_t line, llm_err_t *err)
{
    int               rc, ok;
    double            compile;
    llm_err_t         what;
    llm_match_case_t  c;

    memset(&c, 0, sizeof(c));
    memset(&what, 0, sizeof(what));
    llm_buf_init(&c.accepted, 0);
    llm_buf_init(&c.times, 0);
    compile = 0;

    ok = llm_match_run(m, &c, line, &compile, &what) == LLM_OK;
    rc = llm_match_print(&c, line, ok, compile, &what, err);

    llm_matcher_free(c.matcher);
    llm_gram_free(c.gram);
    llm_buf_free(&c.accepted);
    llm_buf_free(&c.times);

    return rc;
}


static int
llm_match_lines(llm_match_t *m, const llm_buf_t *in, llm_err_t *err)
{
    size_t     i, end;
    uint32_t   n;
    llm_str_t  line;

    for (i = 0, n = 1; i < in->len; i = end + 1, n++) {
        line.data = in->data + i;
        line.len = in->len - i;
        end = memchr(line.data, '\n', line.len)
              ? (size_t) ((char *) memchr(line.data, '\n', line.len)
                          - in->data)
              : in->len;
        line.len = end - i;

        if (line.len == 0) {
            continue;
        }

        if (!llm_span_check(line)) {
            return llm_fail(err, "standard input: line %u is not a JSON "
                            "object", n);
        }

        if (llm_match_line(m, line, err) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


int
llm_cli_match(const llm_cli_t *c, llm_err_t *err)
{
    int          rc;
    llm_buf_t    in;
    llm_match_t  m;

    memset(&m, 0, sizeof(m));

    m.vocab = llm_cli_vocab(c->file, err);
    if (m.vocab == NULL) {
        return LLM_ERROR;
    }

    llm_buf_init(&in, 0);

    m.tree = llm_toktree_create(m.vocab, err);
    m.mask = calloc((llm_vocab_size(m.vocab) + 31) / 32, sizeof(uint32_t));
    rc = m.tree == NULL ? LLM_ERROR
         : m.mask == NULL ? llm_fail(err, "no memory for a mask")
         : llm_cli_read(&in, err);

    if (rc == LLM_OK) {
        rc = llm_match_lines(&m, &in, err);
    }

    llm_buf_free(&in);
    free(m.mask);
    llm_toktree_free(m.tree);
    llm_vocab_free(m.vocab);

    return rc;
}
