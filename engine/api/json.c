/*
 * JSON text to a flat value.  Three steps: a scan of the tokens that is strict
 * where cJSON is not, cJSON for the grammar and the tree, and a walk over the
 * tree that writes flat nodes.
 *
 * Invariant: the scan records the numbers in the order of the text, and the
 * walk visits them in the same order.  So integers keep all their digits, also
 * beyond 64 bits, although cJSON keeps numbers as doubles.
 *
 * Escapes that no text may contain are replaced in a copy of the text.  The
 * copy has the same length, so that all places stay valid.
 *
 * The tree, the copy and the recorded numbers exist during one call only.
 * Several threads may parse: cJSON is thread-safe as long as its last error is
 * not asked for and its hooks are not changed, which is true here.
 */

#include "engine/api/json.h"
#include "engine/api/plain.h"
#include "engine/base/utf8.h"

#include <cjson/cJSON.h>
#include <math.h>

/* cJSON copies a number to a buffer of 64 bytes */
#define LLM_JSON_MAX_NUMBER   62

/* byte order mark that some editors and tools write first */
#define LLM_JSON_BOM          "\xef\xbb\xbf"

/* used together with cJSON's own flags: the same key follows later */
#define LLM_JSON_AGAIN        (1 << 16)


typedef enum {
    LLM_JSON_DECIMAL = 0,
    LLM_JSON_INT,
    LLM_JSON_BIG                        /* an integer beyond 64 bits */
} llm_json_kind_t;

typedef struct {
    int64_t            value;           /* value of an INT; length of a BIG */
    uint32_t           offset;
    uint32_t           kind;            /* llm_json_kind_t */
} llm_json_number_t;

typedef struct {
    const char         *text;
    const char         *p;
    const char         *end;
    char               *mended;         /* the copy; NULL: no escape was
                                           replaced */
    llm_err_t          *err;
    llm_json_limits_t  *limits;
    int                 once;           /* repeated keys are refused */

    uint32_t            depth;
    char                open[LLM_FLAT_MAX_DEPTH];   /* '{' or '[' */

    uint32_t            n_numbers;
    uint32_t            cap_numbers;
    uint32_t            next_number;    /* index of the walk's next number */
    llm_json_number_t  *numbers;
} llm_json_t;

/* a pair of an object, sorted to find repeated keys */
typedef struct {
    cJSON              *item;
    uint32_t            pos;
} llm_json_pair_t;


static int
llm_json_fail(llm_json_t *j, const char *at, const char *what)
{
    size_t       line, column;
    const char  *p;

    line = 1;
    column = 1;

    for (p = j->text; p < at && p < j->end; p++) {
        if (*p == '\n') {
            line++;
            column = 1;

        } else {
            column++;
        }
    }

    return llm_fail_with(j->err, 400, NULL, NULL,
                         LLM_JSON_COMPLAINT "%s at line %zu, column %zu.",
                         what, line, column);
}


const char *
llm_json_why(llm_err_t *err)
{
    char    *why;
    size_t   skip;

    skip = strlen(LLM_JSON_COMPLAINT);

    if (strncmp(err->msg, LLM_JSON_COMPLAINT, skip) != 0) {
        return NULL;
    }

    why = err->msg + skip;
    why[strcspn(why, ".")] = '\0';

    return why;
}


int
llm_json_refuse(llm_err_t *err)
{
    llm_err_t    json;
    const char  *why;

    json = *err;
    why = llm_json_why(&json);

    return why ? llm_fail(err, "it is no JSON: %s", why) : LLM_ERROR;
}


static int
llm_json_hex4(const char *p, const char *end)
{
    int  i, v, digit;

    if (end - p < 4) {
        return -1;
    }

    v = 0;

    for (i = 0; i < 4; i++) {
        digit = llm_hex_digit(p[i]);

        if (digit < 0) {
            return -1;
        }

        v = v * 16 + digit;
    }

    return v;
}


/* replaces the escape of six bytes at `at` by that of U+FFFD */

static int
llm_json_mend(llm_json_t *j, const char *at, const char *what)
{
    size_t  len;

    if (!j->limits->lenient) {
        return llm_json_fail(j, at, what);
    }

    if (j->mended == NULL) {
        len = (size_t) (j->end - j->text);

        j->mended = malloc(len);
        if (j->mended == NULL) {
            return llm_fail(j->err, "no memory for the request's text");
        }

        memcpy(j->mended, j->text, len);
    }

    memcpy(j->mended + (at - j->text), "\\ufffd", 6);
    j->p = at + 6;

    return LLM_OK;
}


/* j->p is at the backslash */

static int
llm_json_escape(llm_json_t *j)
{
    int          high, low;
    const char  *p;

    p = j->p + 1;

    if (p < j->end && *p != '\0' && strchr("\"\\/bfnrt", *p)) {
        j->p = p + 1;
        return LLM_OK;
    }

    if (p == j->end || *p != 'u') {
        return llm_json_fail(j, j->p, "unknown escape in a string");
    }

    high = llm_json_hex4(p + 1, j->end);
    if (high < 0) {
        return llm_json_fail(j, j->p, "\\u without four hexadecimal digits");
    }

    p += 5;

    if (high == 0) {
        return llm_json_mend(j, j->p, "\\u0000, which no text may contain,");
    }

    if (high >= 0xd800 && high <= 0xdfff) {
        low = (j->end - p >= 6 && p[0] == '\\' && p[1] == 'u')
              ? llm_json_hex4(p + 2, j->end) : -1;

        if (high >= 0xdc00 || low < 0xdc00 || low > 0xdfff) {
            return llm_json_mend(j, j->p, "half of a surrogate pair");
        }

        p += 6;
    }

    j->p = p;

    return LLM_OK;
}


/* the text has been checked to be UTF-8 */

static int
llm_json_string(llm_json_t *j)
{
    const char  *start;

    start = j->p++;

    for ( ;; ) {
        j->p += llm_api_plain_run(j->p, (size_t) (j->end - j->p), 1);

        if (j->p == j->end) {
            return llm_json_fail(j, start, "a string without its end");
        }

        if (*j->p == '"') {
            j->p++;
            return LLM_OK;
        }

        if (*j->p != '\\') {
            return llm_json_fail(j, j->p,
                                 "a control character inside a string");
        }

        if (llm_json_escape(j) != LLM_OK) {
            return LLM_ERROR;
        }
    }
}


static int
llm_json_digits(llm_json_t *j)
{
    const char  *start;

    start = j->p;

    while (j->p < j->end && *j->p >= '0' && *j->p <= '9') {
        j->p++;
    }

    return j->p > start;
}


static void
llm_json_integer(llm_json_number_t *num, const char *start, const char *end)
{
    int          sign;
    int64_t      v;
    const char  *p;

    sign = *start == '-' ? -1 : 1;
    v = 0;

    for (p = start + (sign < 0); p < end; p++) {
        if (__builtin_mul_overflow(v, 10, &v)
            || __builtin_add_overflow(v, sign * (*p - '0'), &v))
        {
            num->value = end - start;
            num->kind = LLM_JSON_BIG;
            return;
        }
    }

    num->value = v;
    num->kind = LLM_JSON_INT;
}


/* records the number from start to j->p for the walk */

static int
llm_json_note_number(llm_json_t *j, const char *start, int is_int)
{
    uint32_t            cap;
    llm_json_number_t  *num;

    if (j->n_numbers == j->cap_numbers) {
        cap = j->cap_numbers ? j->cap_numbers * 2 : 64;

        num = realloc(j->numbers, cap * sizeof(llm_json_number_t));
        if (num == NULL) {
            return llm_fail(j->err, "no memory for the request's numbers");
        }

        j->numbers = num;
        j->cap_numbers = cap;
    }

    num = &j->numbers[j->n_numbers++];
    num->value = 0;
    num->offset = (uint32_t) (start - j->text);
    num->kind = LLM_JSON_DECIMAL;

    if (is_int) {
        llm_json_integer(num, start, j->p);
    }

    return LLM_OK;
}


static int
llm_json_number(llm_json_t *j)
{
    int          is_int;
    const char  *start;

    start = j->p;
    is_int = 1;

    if (*j->p == '-') {
        j->p++;
    }

    if (j->p < j->end && *j->p == '0') {
        j->p++;

    } else if (!llm_json_digits(j)) {
        goto invalid;
    }

    if (j->p < j->end && *j->p == '.') {
        is_int = 0;
        j->p++;

        if (!llm_json_digits(j)) {
            goto invalid;
        }
    }

    if (j->p < j->end && (*j->p | 0x20) == 'e') {
        is_int = 0;
        j->p++;

        if (j->p < j->end && (*j->p == '+' || *j->p == '-')) {
            j->p++;
        }

        if (!llm_json_digits(j)) {
            goto invalid;
        }
    }

    if (j->p < j->end && (*j->p == '\0' || !strchr(" \t\r\n,]}", *j->p))) {
        goto invalid;
    }

    if (j->p - start > LLM_JSON_MAX_NUMBER) {
        return llm_json_fail(j, start, "a number of too many digits");
    }

    return llm_json_note_number(j, start, is_int);

invalid:

    return llm_json_fail(j, start, "an invalid number");
}


static int
llm_json_word(llm_json_t *j, const char *word)
{
    size_t  n;

    n = strlen(word);

    if ((size_t) (j->end - j->p) < n || memcmp(j->p, word, n) != 0) {
        return llm_json_fail(j, j->p, "an unexpected character");
    }

    j->p += n;

    return LLM_OK;
}


static int
llm_json_bracket(llm_json_t *j)
{
    char  c;

    c = *j->p;

    if (c == '{' || c == '[') {
        if (j->depth == llm_min(j->limits->depth, LLM_FLAT_MAX_DEPTH)) {
            return llm_json_fail(j, j->p, "too deep nesting");
        }

        j->open[j->depth++] = c;

    } else {
        if (j->depth == 0 || j->open[j->depth - 1] != (c == '}' ? '{' : '['))
        {
            return llm_json_fail(j, j->p, "an unexpected bracket");
        }

        j->depth--;
    }

    j->p++;

    return LLM_OK;
}


static int
llm_json_count(llm_json_t *j)
{
    if (j->limits->values == 0) {
        return llm_json_fail(j, j->p, "too many values");
    }

    j->limits->values--;

    return LLM_OK;
}


/* checks tokens only; cJSON checks their order */

static int
llm_json_scan(llm_json_t *j)
{
    int     rc;
    size_t  valid;

    valid = llm_utf8_valid(j->p, (size_t) (j->end - j->p));

    if (j->p + valid < j->end) {
        return llm_json_fail(j, j->p + valid, "invalid UTF-8");
    }

    while (j->p < j->end) {

        switch (*j->p) {

        case ' ':
        case '\t':
        case '\r':
        case '\n':
        case ':':
            j->p++;
            continue;

        case ',':
            rc = llm_json_count(j);
            j->p++;
            break;

        case '{':
        case '[':
            rc = llm_json_count(j);

            if (rc == LLM_OK) {
                rc = llm_json_bracket(j);
            }

            break;

        case '}':
        case ']':
            rc = llm_json_bracket(j);
            break;

        case '"':
            rc = llm_json_string(j);
            break;

        case 't':
            rc = llm_json_word(j, "true");
            break;

        case 'f':
            rc = llm_json_word(j, "false");
            break;

        case 'n':
            rc = llm_json_word(j, "null");
            break;

        default:
            if (*j->p != '-' && (*j->p < '0' || *j->p > '9')) {
                return llm_json_fail(j, j->p, "an unexpected character");
            }

            rc = llm_json_number(j);
        }

        if (rc != LLM_OK) {
            return LLM_ERROR;
        }
    }

    if (j->depth) {
        return llm_json_fail(j, j->end, "an unexpected end");
    }

    return LLM_OK;
}


static int
llm_json_pair_cmp(const void *one, const void *two)
{
    int                     rc;
    const llm_json_pair_t  *a = one, *b = two;

    rc = strcmp(a->item->string, b->item->string);

    return rc ? rc : (a->pos > b->pos) - (a->pos < b->pos);
}


/* marks all pairs of a key but the last */

static int
llm_json_unique(cJSON *object)
{
    cJSON            *item;
    uint32_t          n, i;
    llm_json_pair_t  *pairs;

    n = 0;

    for (item = object->child; item; item = item->next) {
        n++;
    }

    if (n < 2) {
        return LLM_OK;
    }

    pairs = malloc(n * sizeof(llm_json_pair_t));
    if (pairs == NULL) {
        return LLM_ERROR;
    }

    i = 0;

    for (item = object->child; item; item = item->next) {
        pairs[i].item = item;
        pairs[i].pos = i;
        i++;
    }

    qsort(pairs, n, sizeof(llm_json_pair_t), llm_json_pair_cmp);

    for (i = 0; i + 1 < n; i++) {
        if (strcmp(pairs[i].item->string, pairs[i + 1].item->string) == 0) {
            pairs[i].item->type |= LLM_JSON_AGAIN;
        }
    }

    free(pairs);

    return LLM_OK;
}


static int  llm_json_walk(llm_json_t *j, cJSON *item, llm_buf_t *out);


static int
llm_json_walk_number(llm_json_t *j, cJSON *item, llm_buf_t *out)
{
    llm_json_number_t  *num;

    num = &j->numbers[j->next_number++];

    if (num->kind == LLM_JSON_INT) {
        llm_flat_add_int(out, num->value);
        return LLM_OK;
    }

    if (!isfinite(item->valuedouble)) {
        return llm_json_fail(j, j->text + num->offset,
                             "a number out of range");
    }

    llm_flat_add_big(out, item->valuedouble, j->text + num->offset,
                     num->kind == LLM_JSON_BIG ? (size_t) num->value : 0);

    return LLM_OK;
}


static int
llm_json_walk_list(llm_json_t *j, cJSON *item, llm_buf_t *out)
{
    cJSON    *child;
    size_t    handle, pos;
    uint32_t  count;

    if (cJSON_IsObject(item) && llm_json_unique(item) != LLM_OK) {
        return llm_fail(j->err, "no memory for the request's objects");
    }

    for (child = j->once ? item->child : NULL; child; child = child->next) {
        if (child->type & LLM_JSON_AGAIN) {
            return llm_fail(j->err, "\"%.64s\" is there twice",
                            child->string);
        }
    }

    handle = llm_flat_open(out, cJSON_IsObject(item) ? LLM_FLAT_OBJECT
                                                     : LLM_FLAT_ARRAY);
    count = 0;

    for (child = item->child; child; child = child->next) {
        pos = out->len;

        if (child->string) {
            llm_flat_add_str(out, child->string, strlen(child->string));
        }

        if (llm_json_walk(j, child, out) != LLM_OK) {
            return LLM_ERROR;
        }

        if (child->type & LLM_JSON_AGAIN) {
            /* a repeated pair is left out, but was walked to skip its
               numbers */
            out->len = out->failed ? out->len : pos;
            continue;
        }

        count++;
    }

    llm_flat_close(out, handle, count);

    return LLM_OK;
}


static int
llm_json_walk(llm_json_t *j, cJSON *item, llm_buf_t *out)
{
    switch (item->type & 0xff) {

    case cJSON_NULL:
        llm_flat_add_null(out);
        return LLM_OK;

    case cJSON_False:
    case cJSON_True:
        llm_flat_add_bool(out, (item->type & cJSON_True) != 0);
        return LLM_OK;

    case cJSON_Number:
        return llm_json_walk_number(j, item, out);

    case cJSON_String:
        llm_flat_add_str(out, item->valuestring, strlen(item->valuestring));
        return LLM_OK;

    default:
        return llm_json_walk_list(j, item, out);
    }
}


size_t
llm_json_mark(const char *text, size_t len)
{
    return len >= 3 && memcmp(text, LLM_JSON_BOM, 3) == 0 ? 3 : 0;
}


static int
llm_json_read(const char *text, size_t len, llm_json_limits_t *limits,
    int once, llm_buf_t *out, llm_err_t *err)
{
    int                 rc;
    cJSON              *root;
    llm_json_t          j;
    const char         *stop, *start;
    llm_json_limits_t   usual;

    usual.depth = LLM_FLAT_MAX_DEPTH;
    usual.values = LLM_JSON_MAX_VALUES;
    usual.lenient = 0;

    memset(&j, 0, sizeof(llm_json_t));
    j.text = text;
    j.p = text;
    j.end = text + len;
    j.err = err;
    j.limits = limits ? limits : &usual;
    j.once = once;

    if (len > INT32_MAX) {
        return llm_fail_with(err, 413, NULL, NULL,
                             "The body of %zu bytes is too large.", len);
    }

    if (j.limits->lenient) {
        j.text += llm_json_mark(text, len);
        j.p = j.text;
    }

    root = NULL;

    if (llm_json_scan(&j) != LLM_OK) {
        rc = LLM_ERROR;
        goto done;
    }

    stop = NULL;
    start = j.mended ? j.mended : j.text;
    root = cJSON_ParseWithLengthOpts(start, (size_t) (j.end - j.text), &stop,
                                     0);
    stop = stop ? j.text + (stop - start) : j.end;

    if (root == NULL) {
        rc = llm_json_fail(&j, stop, stop < j.end ? "an unexpected token"
                                                  : "an unexpected end");
        goto done;
    }

    while (stop < j.end && strchr(" \t\r\n", *stop)) {
        stop++;
    }

    if (stop < j.end) {
        rc = llm_json_fail(&j, stop, "more than one value");
        goto done;
    }

    rc = llm_json_walk(&j, root, out);

    if (rc == LLM_OK && out->failed) {
        rc = llm_fail(err, "no memory for the request");
    }

done:

    cJSON_Delete(root);
    free(j.numbers);
    free(j.mended);

    return rc;
}


int
llm_json_to_flat(const char *text, size_t len, llm_json_limits_t *limits,
    llm_buf_t *out, llm_err_t *err)
{
    return llm_json_read(text, len, limits, 0, out, err);
}


int
llm_json_to_flat_once(const char *text, size_t len, llm_json_limits_t *limits,
    llm_buf_t *out, llm_err_t *err)
{
    return llm_json_read(text, len, limits, 1, out, err);
}
