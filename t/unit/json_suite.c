/*
 * The reader of JSON against a public collection of hostile texts
 * (t/fixtures/JSONTestSuite): what is JSON is taken, but for three texts that
 * are beyond the reader's limits, what is not is refused with 400 and a place.
 */

#include "engine/api/json.h"
#include "t/unit/tap.h"

#include <ctype.h>

#define LINE  4096


/* JSON, and refused where the reader is not lenient: texts with \u0000, which
   no text of the engine may contain, and a number of 80 digits */

static const char *const  refused[] = {
    "y_object_escaped_null_in_key", "y_string_null_escape",
    "y_number_double_close_to_zero"
};


static int
is_refused(const char *name)
{
    size_t  i;

    for (i = 0; i < llm_nelems(refused); i++) {
        if (strcmp(refused[i], name) == 0) {
            return 1;
        }
    }

    return 0;
}


static void
judge(const char *name, const char *text, size_t len)
{
    int         rc;
    char       *copy;
    llm_buf_t   flat;
    llm_err_t   err;

    /* a copy of the very size: reading past it is seen by a sanitizer */

    copy = malloc(len ? len : 1);
    memcpy(copy, text, len);

    llm_buf_init(&flat, 0);
    memset(&err, 0, sizeof(err));

    rc = llm_json_to_flat(copy, len, NULL, &flat, &err);

    if (rc == LLM_OK) {
        ok(*name != 'n' && !is_refused(name)
           && llm_flat_check(flat.data, flat.len) == LLM_OK,
           "%s: taken", name);

    } else {
        ok((*name != 'y' || is_refused(name)) && err.status == 400
           && strstr(err.msg, " at line ") != NULL,
           "%s: refused: %s", name, err.msg);
    }

    llm_buf_free(&flat);
    free(copy);
}


static size_t
unhex(const char *hex, char *text)
{
    size_t    n;
    unsigned  c;

    for (n = 0; isxdigit((unsigned char) hex[2 * n]); n++) {
        if (sscanf(hex + 2 * n, "%2x", &c) != 1) {
            break;
        }

        text[n] = (char) c;
    }

    return n;
}


static void
repeat(const char *name, const char *piece, size_t n)
{
    size_t      i;
    llm_buf_t   b;

    llm_buf_init(&b, 0);

    for (i = 0; i < n; i++) {
        (void) llm_buf_adds(&b, piece);
    }

    judge(name, b.data, b.len);
    llm_buf_free(&b);
}


int
main(void)
{
    char         path[1024], line[LINE], name[LINE], text[LINE / 2];
    FILE        *f;
    unsigned     n;
    const char  *root;

    root = getenv("LLM_ROOT");
    snprintf(path, sizeof(path), "%s/t/fixtures/JSONTestSuite/cases.txt",
             root ? root : ".");

    f = fopen(path, "r");
    n = 0;

    if (f == NULL) {
        ok(0, "no %s", path);
        return done_testing();
    }

    while (fgets(line, sizeof(line), f)) {
        if (line[0] == '#' || sscanf(line, "%4095s", name) != 1) {
            continue;
        }

        n++;
        judge(name, text, unhex(line + strlen(name) + 1, text));
    }

    fclose(f);
    ok(n >= 316, "%u texts", n);

    repeat("n_structure_100000_opening_arrays", "[", 100000);
    repeat("n_structure_open_array_object", "[{\"\":", 50000);

    return done_testing();
}
