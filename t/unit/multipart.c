/*
 * Forms: parts, any cut of a body, and bodies that are none.
 */

#include "engine/api/multipart.h"

#include "t/unit/tap.h"

static llm_multipart_t  m;
static int              stop_at;        /* callback that fails; 0: none */


static int
begin(void *ctx, const llm_multipart_part_t *part, llm_err_t *err)
{
    llm_buf_t *out = ctx;

    (void) llm_buf_addf(out, "[%.*s", (int) part->name.len, part->name.data);

    if (part->filename.data) {
        (void) llm_buf_addf(out, "|%.*s", (int) part->filename.len,
                            part->filename.data);
    }

    if (part->type.data) {
        (void) llm_buf_addf(out, "|%.*s", (int) part->type.len,
                            part->type.data);
    }

    (void) llm_buf_addc(out, ':');

    return stop_at == 1 ? llm_fail(err, "stop") : LLM_OK;
}


static int
data(void *ctx, const void *p, size_t len, llm_err_t *err)
{
    if (len == 0) {
        return llm_fail(err, "an empty piece");
    }

    (void) llm_buf_add(ctx, p, len);

    return stop_at == 2 ? llm_fail(err, "stop") : LLM_OK;
}


static int
end(void *ctx, llm_err_t *err)
{
    (void) llm_buf_addc(ctx, ']');

    return stop_at == 3 ? llm_fail(err, "stop") : LLM_OK;
}


/* what is read of a body that is cut into pieces, or the error */

static const char *
form(const char *type, const char *body, size_t len, size_t piece)
{
    char                  *copy;
    size_t                 i, n;
    llm_err_t              err;
    static llm_buf_t       out;
    llm_multipart_sink_t   sink = { &out, begin, data, end };

    llm_buf_free(&out);
    llm_buf_init(&out, 0);
    (void) llm_buf_add(&out, "", 0);
    memset(&err, 0, sizeof(err));

    if (llm_multipart_init(&m, (llm_str_t) { strlen(type), type }, &err)
        != LLM_OK)
    {
        (void) llm_buf_addf(&out, "%d: %s", err.status, err.msg);
        return out.data;
    }

    for (i = 0; i < len; i += n) {
        n = llm_min(piece, len - i);
        copy = malloc(n);
        memcpy(copy, body + i, n);

        if (llm_multipart_read(&m, &sink, copy, n, &err) != LLM_OK) {
            free(copy);
            (void) llm_buf_addf(&out, "%d: %s", err.status, err.msg);
            return out.data;
        }

        free(copy);
    }

    if (llm_multipart_end(&m, &err) != LLM_OK) {
        (void) llm_buf_addf(&out, "%d: %s", err.status, err.msg);
    }

    return out.len ? out.data : "";
}


#define TYPE  "multipart/form-data; boundary=xYz"
#define HEAD  "Content-Disposition: form-data; name=\"a\"\r\n\r\n"


static void
is_form(const char *body, const char *want, const char *what)
{
    size_t  piece, len;

    len = strlen(body);
    is_str(form(TYPE, body, len, len), want, "%s", what);

    for (piece = 1; piece < len; piece++) {
        if (strcmp(form(TYPE, body, len, piece), want) != 0) {
            ok(0, "%s: in pieces of %zu: %s", what, piece,
               form(TYPE, body, len, piece));
            return;
        }
    }

    ok(1, "%s: the same in pieces of any size", what);
}


static void
test_forms(void)
{
    is_form("--xYz\r\nContent-Disposition: form-data; name=\"file\"; "
            "filename=\"a.wav\"\r\nContent-Type: audio/wav\r\n\r\n"
            "RIFF\r\n--xY\r\n--xY\r\r\n-\r\n"
            "\r\n--xYz  \r\ncontent-disposition:form-data;name=model\r\n\r\n"
            "m\r\n--xYz--\r\nmore",
            "[file|a.wav|audio/wav:RIFF\r\n--xY\r\n--xY\r\r\n-\r\n][model:m]",
            "a file and a field");
    is_form("preamble\r\n--xYz\r\n" HEAD "\r\n--xYz--", "[a:]",
            "an empty field, and text before");
    is_form("--xYz\r\n" HEAD "\r\n\r\n--xYz--", "[a:\r\n]", "a line's end");
    is_form("--xYz--\r\n", "", "no part");
    is_form("--xYz\r\n" HEAD "1\r\n--xYz\r\n" HEAD "2\r\n--xYz--", "[a:1][a:2]",
            "two parts of the same name");
    is_form("--xYz\r\nContent-Disposition: form-data; "
            "filename=\"x\\\"; y.wav\"; name=\"b c\"\r\nX: y\r\n\r\n-\r\n--xYz--",
            "[b c|x\\\"; y.wav:-]", "quotes and semicolons in a name");
}


static void
test_wrong(void)
{
    char    *body;
    size_t   i, n;

    is_form("", "400: the form is broken at byte 0 of the body: it ends, and "
            "its boundary has not come", "nothing");
    is_form("hello", "400: the form is broken at byte 5 of the body: it ends, "
            "and its boundary has not come", "no form");
    is_form("--xYz\r\n" HEAD "abc\r\n--xYz", "[a:abc]400: the form is broken "
            "at byte 61 of the body: it ends before its last boundary",
            "one that is cut off");
    is_form("--xYz\r\n" HEAD "abc\r\n--xYzz", "[a:abc]400: the form is broken "
            "at byte 61 of the body: a boundary is followed by other text",
            "a longer boundary");
    is_form("--xYz\r\nX: y\r\n\r\n",
            "400: the form is broken at byte 14 of the "
            "body: a part has no name, which its Content-Disposition should "
            "say", "a part without a name");
    is_form("--xYz\r\n\r\n", "400: the form is broken at byte 8 of the body: a "
            "part has no name, which its Content-Disposition should say",
            "a part without a header");
    is_form("--xYz\r\nnonsense\r\n\r\n", "400: the form is broken at byte 18 "
            "of the body: a line of a part's header has no colon",
            "a line without a colon");
    is_form("--xYz-x", "400: the form is broken at byte 6 of the body: a "
            "boundary is followed by a single dash", "a dash");
    is_form("--xYz\rx", "400: the form is broken at byte 6 of the body: a "
            "boundary is followed by a CR without an LF", "half of a line's "
            "end");

    body = malloc(20000);
    n = (size_t) sprintf(body, "--xYz\r\nX: ");
    memset(body + n, 'x', 19000);
    ok(strstr(form(TYPE, body, n + 19000, 100), "header is too long") != NULL,
       "a header without an end");

    n = 0;

    for (i = 0; i < 130; i++) {
        n += (size_t) sprintf(body + n, "--xYz\r\n" HEAD "\r\n");
    }

    ok(strstr(form(TYPE, body, n, 100), "more than 128 parts") != NULL,
       "many parts");
    free(body);

    for (stop_at = 1; stop_at <= 3; stop_at++) {
        ok(strstr(form(TYPE, "--xYz\r\n" HEAD "a\r\n--xYz--", 61, 7),
                  "500: stop") != NULL, "an error of the callback %d", stop_at);
    }

    stop_at = 0;
}


static void
test_types(void)
{
    is_str(form("Multipart/Form-Data ; charset=utf-8; Boundary=\"a b\"",
                "--a b--", 7, 1), "", "a quoted boundary");
    ok(strncmp(form("application/json", "", 0, 1), "415: ", 5) == 0,
       "another type");
    ok(strstr(form("multipart/form-data", "", 0, 1), "400: ") != NULL,
       "no boundary");
    ok(strstr(form("multipart/form-data; boundary=", "", 0, 1), "400: ")
       != NULL, "an empty one");
    ok(strstr(form("multipart/form-data; boundary=\"12345678901234567890"
                   "123456789012345678901234567890123456789012345678901\"", "",
                   0, 1), "1 to 70") != NULL, "a long one");
    ok(strstr(form("multipart/form-data; boundary=\"a\rb\"", "", 0, 1),
              "control") != NULL, "one with a line's end");
    ok(strstr(form("multipart/form-data; boundary=\"unfinished", "", 0, 1),
              "has not come") != NULL, "an open quote");
}


int
main(void)
{
    test_forms();
    test_wrong();
    test_types();

    return done_testing();
}
