/*
 * Answers without text: floats as text, vectors and scores from events in any
 * order and parts of any size, bodies in pieces of any size, and the bound of
 * all that is kept.  In bodies ' stands for ".
 */

#include "t/unit/api_conf.h"
#include "t/unit/random.h"
#include "t/unit/tap.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdio.h>

#define WIDTH  7


/* ---- floats ---- */

static int
reads_back(float v)
{
    int        same;
    float      again;
    double     d;
    cJSON     *j;
    llm_buf_t  b;

    llm_buf_init(&b, 0);
    llm_api_add_float(&b, v);

    again = strtof(b.data, NULL);
    d = strtod(b.data, NULL);
    j = cJSON_ParseWithLength(b.data, b.len);
    same = again == v && (float) d == v && j && cJSON_IsNumber(j)
           && strlen(b.data) == b.len && b.len <= 17;

    if (!same) {
        printf("# %.9g is written as %s\n", v, b.data);
    }

    cJSON_Delete(j);
    llm_buf_free(&b);

    return same;
}


static void
test_floats(void)
{
    int        all;
    float      v;
    uint32_t   i, bits;
    llm_buf_t  b;

    static const struct {
        float        v;
        const char  *text;
    } cases[] = {
        { 0, "0" }, { -0.0f, "0" }, { 1, "1" }, { -1, "-1" }, { 0.5f, "0.5" },
        { 10, "10" }, { 100, "100" }, { 12.5f, "12.5" }, { 0.0625f, "0.0625" },
        { 0.1f, "0.100000001" }, { 1.5e-5f, "0.0000149999996" },
        { 123456784, "123456784" }, { 1e9f, "1e9" }, { 2e-9f, "1.99999994e-9" },
        { 1024, "1024" }, { 32760, "32760" }, { 99999.5f, "99999.5" },
        { 999999936, "999999936" }
    };

    for (i = 0; i < llm_nelems(cases); i++) {
        llm_buf_init(&b, 0);
        llm_api_add_float(&b, cases[i].v);
        is_str(b.data, cases[i].text, "%.9g is written as %s", cases[i].v,
               cases[i].text);
        llm_buf_free(&b);
    }

    for (all = 1, i = 0; i < 300000 && all; i++) {
        bits = rnd(0x7f800000) | rnd(2) << 31;
        memcpy(&v, &bits, sizeof(v));
        all = reads_back(v);
    }

    ok(all, "all kinds of floats are read back as they were");

    for (all = 1, i = 0; i < 300000 && all; i++) {
        all = reads_back((float) rnd(2000001) / 1e6f - 1);
    }

    ok(all, "and those that vectors have");

    for (all = 1, i = 0; i < 84 && all; i++) {
        v = (float) pow(10, (int) i - 45);
        all = reads_back(v) && reads_back(nextafterf(v, 0))
              && (v > 1e38f || reads_back(nextafterf(v, 1e38f)));
    }

    ok(all, "and those beside powers of ten");
}


/* ---- answers ---- */

static llm_api_t *
parse(const llm_api_endpoint_t *ep, const llm_api_conf_t *c, const char *body)
{
    char        text[1024];
    size_t      i;
    llm_api_t  *a;
    llm_buf_t   msg;
    llm_err_t   err;

    snprintf(text, sizeof(text), "%s", body);

    for (i = 0; text[i]; i++) {
        text[i] = text[i] == '\'' ? '"' : text[i];
    }

    llm_buf_init(&msg, 0);
    a = llm_api_parse(ep, c, text, strlen(text), &msg, &err);
    llm_buf_free(&msg);

    if (a == NULL) {
        printf("# %d %s\n", err.status, err.msg);
    }

    return a;
}


/* values [first, first + n) of the vector of input index */

static int
tell(llm_api_t *a, uint32_t index, uint32_t first, uint32_t n, uint32_t total,
    const float *values, llm_err_t *err)
{
    int        rc;
    llm_buf_t  out;

    struct {
        llm_event_t  ev;
        float        values[64];
    } e;

    memset(&e, 0, sizeof(e));
    e.ev.size = (uint32_t) (sizeof(llm_event_t)
                            + (n * sizeof(float) + 7) / 8 * 8);
    e.ev.type = LLM_EV_VECTOR;
    e.ev.index = index;
    e.ev.u.vector.first = first;
    e.ev.u.vector.total = total;
    e.ev.u.vector.values.off = sizeof(llm_event_t);
    e.ev.u.vector.values.len = n;
    memcpy((char *) &e + sizeof(llm_event_t), values + first,
           n * sizeof(float));

    llm_buf_init(&out, 0);
    rc = llm_api_event(a, &e.ev, &out, err);
    ok(out.len == 0, "nothing is sent before the end");
    llm_buf_free(&out);

    return rc;
}


static void
finish(llm_api_t *a, uint32_t tokens)
{
    llm_buf_t    out;
    llm_err_t    err;
    llm_event_t  ev;

    memset(&ev, 0, sizeof(ev));
    ev.size = sizeof(ev);
    ev.type = LLM_EV_DONE;
    ev.u.done.prompt_tokens = tokens;
    llm_buf_init(&out, 0);
    (void) llm_api_event(a, &ev, &out, &err);
    llm_buf_free(&out);
}


/* the whole body, in pieces of at least max bytes; none is much larger */

static void
body_of(llm_api_t *a, size_t max, size_t slack, llm_buf_t *out)
{
    int        rc;
    size_t     largest;
    llm_buf_t  piece;

    llm_buf_init(out, 0);
    llm_buf_init(&piece, 0);
    largest = 0;

    do {
        piece.len = 0;
        rc = llm_api_body_next(a, max, &piece);
        largest = llm_max(largest, piece.len);
        llm_buf_add(out, piece.data, piece.len);

    } while (rc == LLM_MORE);

    ok(rc == LLM_OK && largest <= max + slack, "pieces of %zu: the largest "
       "has %zu bytes", max, largest);

    llm_buf_free(&piece);
}


static void
values_of(uint32_t index, float *v)
{
    uint32_t  i;

    for (i = 0; i < WIDTH; i++) {
        v[i] = (float) (index * 10 + i) / 8;
    }
}


/* three inputs, whose vectors come in parts and out of order */

static llm_api_t *
answered(const char *body)
{
    float       v[WIDTH];
    llm_api_t  *a;
    llm_err_t   err;

    a = parse(&llm_api_embeddings, &conf, body);
    if (a == NULL) {
        exit(1);
    }

    values_of(2, v);
    (void) tell(a, 2, 0, 2, WIDTH, v, &err);
    values_of(0, v);
    (void) tell(a, 0, 0, WIDTH, WIDTH, v, &err);
    values_of(2, v);
    (void) tell(a, 2, 2, 3, WIDTH, v, &err);
    (void) tell(a, 2, 5, 2, WIDTH, v, &err);
    values_of(1, v);
    (void) tell(a, 1, 0, 4, WIDTH, v, &err);
    (void) tell(a, 1, 4, 3, WIDTH, v, &err);
    finish(a, 9);

    return a;
}


static void
test_embeddings(void)
{
    size_t      i;
    llm_api_t  *a;
    llm_buf_t   whole, out;

    static const size_t  sizes[] = { 1, 2, 50, 64, 1000 };

    a = answered("{'input':['a','b',[1,2]]}");
    body_of(a, 1 << 20, 0, &whole);
    llm_api_free(a);

    is_str(whole.data, "{\"id\":\"embd-deadbeef\",\"object\":\"list\","
           "\"created\":1750000000,\"model\":\"demo\",\"data\":["
           "{\"object\":\"embedding\",\"index\":0,\"embedding\":"
           "[0,0.125,0.25,0.375,0.5,0.625,0.75]},"
           "{\"object\":\"embedding\",\"index\":1,\"embedding\":"
           "[1.25,1.375,1.5,1.625,1.75,1.875,2]},"
           "{\"object\":\"embedding\",\"index\":2,\"embedding\":"
           "[2.5,2.625,2.75,2.875,3,3.125,3.25]}],"
           "\"usage\":{\"prompt_tokens\":9,\"total_tokens\":9,"
           "\"prompt_tokens_details\":{\"cached_tokens\":0}}}",
           "vectors as numbers");

    for (i = 0; i < llm_nelems(sizes); i++) {
        a = answered("{'input':['a','b',[1,2]]}");
        body_of(a, sizes[i], 200, &out);
        ok(out.len == whole.len && memcmp(out.data, whole.data, out.len) == 0,
           "the same in pieces");
        llm_api_free(a);
        llm_buf_free(&out);
    }

    llm_buf_free(&whole);

    /* python3: base64.b64encode(struct.pack("<7f", ...)) */

    for (i = 0; i < llm_nelems(sizes); i++) {
        a = answered("{'input':['a','b',[1,2]],'encoding_format':'base64'}");
        body_of(a, sizes[i], 200, &out);
        ok(strstr(out.data, "\"index\":0,\"embedding\":\""
                  "AAAAAAAAAD4AAIA+AADAPgAAAD8AACA/AABAPw==\"}")
           && strstr(out.data, "\"index\":1,\"embedding\":\""
                     "AACgPwAAsD8AAMA/AADQPwAA4D8AAPA/AAAAQA==\"}")
           && strstr(out.data, "\"index\":2,\"embedding\":\""
                     "AAAgQAAAKEAAADBAAAA4QAAAQEAAAEhAAABQQA==\"}"),
           "vectors as base64, whatever their parts");
        llm_api_free(a);
        llm_buf_free(&out);
    }
}


static void
test_bound(void)
{
    int             rc;
    float           v[64] = { 0 };
    llm_api_t      *a;
    llm_err_t       err;
    llm_api_conf_t  small;

    small = conf;
    small.max_answer = 200;

    a = parse(&llm_api_embeddings, &small, "{'input':['a','b']}");
    rc = tell(a, 1, 0, 3, 76, v, &err);
    ok(rc == LLM_ERROR && err.status == 400
       && strcmp(err.code, "answer_too_large") == 0,
       "the first part tells that the answer will be too large");
    llm_api_free(a);

    a = parse(&llm_api_embeddings, &small, "{'input':['a','b']}");
    is_int(tell(a, 1, 0, 64, 64, v, &err), LLM_OK, "one fits");
    rc = tell(a, 0, 0, 64, 64, v, &err);
    ok(rc == LLM_ERROR && strcmp(err.code, "answer_too_large") == 0
       && strstr(err.msg, "600 bytes"), "what it costs to keep counts, too");
    llm_api_free(a);
}


/* four documents with these scores, the last of which comes first */

static llm_api_t *
ranked(const char *body)
{
    float       v[1];
    uint32_t    i;
    llm_api_t  *a;
    llm_err_t   err;

    static const float  scores[] = { 0.25f, 0.5f, 0.25f, 0.75f };

    a = parse(&llm_api_rerank, &conf, body);
    if (a == NULL) {
        exit(1);
    }

    for (i = llm_nelems(scores); i-- > 0; /* void */ ) {
        v[0] = scores[i];
        (void) tell(a, i, 0, 1, 1, v, &err);
    }

    finish(a, 4);

    return a;
}


static void
test_rerank(void)
{
    size_t      size;
    llm_api_t  *a;
    llm_buf_t   out;

    for (size = 1; size < 300; size += 40) {
        a = ranked("{'query':'q','documents':['\\u00e9\\n','b','','d'],"
                   "'top_n':9,'return_documents':true}");
        body_of(a, size, 200, &out);
        is_str(out.data, "{\"id\":\"rerank-deadbeef\",\"object\":\"list\","
               "\"created\":1750000000,\"model\":\"demo\",\"results\":["
               "{\"index\":3,\"relevance_score\":0.75,"
               "\"document\":{\"text\":\"d\"}},"
               "{\"index\":1,\"relevance_score\":0.5,"
               "\"document\":{\"text\":\"b\"}},"
               "{\"index\":0,\"relevance_score\":0.25,"
               "\"document\":{\"text\":\"\xc3\xa9\\n\"}},"
               "{\"index\":2,\"relevance_score\":0.25,"
               "\"document\":{\"text\":\"\"}}],"
               "\"usage\":{\"prompt_tokens\":4,\"total_tokens\":4,"
               "\"prompt_tokens_details\":{\"cached_tokens\":0}}}",
               "best first, equal ones in their order, with their texts");
        llm_api_free(a);
        llm_buf_free(&out);

        a = ranked("{'query':'q','texts':['a','\\u00e9','','d'],'top_n':3,"
                   "'return_text':true}");
        body_of(a, size, 200, &out);
        is_str(out.data, "[{\"index\":3,\"score\":0.75,\"text\":\"d\"},"
               "{\"index\":1,\"score\":0.5,\"text\":\"\xc3\xa9\"},"
               "{\"index\":0,\"score\":0.25,\"text\":\"a\"}]",
               "a plain array for texts");
        llm_api_free(a);
        llm_buf_free(&out);

        a = ranked("{'query':'q','documents':['a','b','c','d'],'top_n':2}");
        body_of(a, size, 200, &out);
        ok(strstr(out.data, "\"results\":["
                  "{\"index\":3,\"relevance_score\":0.75},"
                  "{\"index\":1,\"relevance_score\":0.5}],") != NULL,
           "the best two, without");
        llm_api_free(a);
        llm_buf_free(&out);
    }
}


int
main(void)
{
    test_floats();
    test_embeddings();
    test_bound();
    test_rerank();

    return done_testing();
}
