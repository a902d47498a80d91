/*
 * Reads one line of a file of API keys to a key; see keys.h.
 */

#include "engine/api/json.h"
#include "engine/api/key_line.h"

#include <strings.h>

#define LLM_KEY_VALUES  4096            /* most values of one line */


static const char *const  llm_key_scopes[] = {
    "generate", "embed", "tokenize", "models", "monitor", "other", "admin"
};


uint32_t
llm_scope_bit(const char *name, size_t len)
{
    uint32_t  i;

    for (i = 0; i < llm_nelems(llm_key_scopes); i++) {
        if (strlen(llm_key_scopes[i]) == len
            && memcmp(llm_key_scopes[i], name, len) == 0)
        {
            return 1u << i;
        }
    }

    return 0;
}


const char *
llm_scope_name(uint32_t bit)
{
    uint32_t  i;

    for (i = 0; i < llm_nelems(llm_key_scopes); i++) {
        if (bit == 1u << i) {
            return llm_key_scopes[i];
        }
    }

    return "";
}


/* ---- times ---- */

/* the number in n digits at *p; moves *p past them */

static int
llm_key_digits(const char **p, const char *last, int n, int *to)
{
    *to = 0;

    if (last - *p < n) {
        return LLM_ERROR;
    }

    for ( /* void */ ; n; n--, (*p)++) {
        if (**p < '0' || **p > '9') {
            return LLM_ERROR;
        }

        *to = *to * 10 + (**p - '0');
    }

    return LLM_OK;
}


/* the mark, and a number of two digits that is at most max */

static int
llm_key_part(const char **p, const char *last, char mark, int max, int *to)
{
    if (*p == last || *(*p)++ != mark
        || llm_key_digits(p, last, 2, to) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return *to <= max ? LLM_OK : LLM_ERROR;
}


/* days since 1970-01-01 of a date; LLM_ERROR if there is no such date.  Years
   begin in March here, so that February's 29th is the last day of a year */

static int
llm_key_days(int year, int month, int day, int64_t *days)
{
    int  y, m, leap;

    static const int  lengths[12] = {
        31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31
    };

    leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

    if (year < 1970 || month < 1 || month > 12 || day < 1
        || day > lengths[month - 1] + (month == 2 && leap))
    {
        return LLM_ERROR;
    }

    y = month > 2 ? year : year - 1;
    m = month > 2 ? month - 3 : month + 9;

    *days = 365 * (int64_t) y + y / 4 - y / 100 + y / 400
            + (153 * m + 2) / 5 + day - 1 - 719468;

    return LLM_OK;
}


static int
llm_key_zone(const char *p, const char *last, int64_t *to)
{
    int   hours, minutes;
    char  sign;

    if (last - p == 1 && (*p == 'Z' || *p == 'z')) {
        return LLM_OK;
    }

    sign = (p < last) ? *p : '\0';

    if ((sign != '+' && sign != '-')
        || llm_key_part(&p, last, sign, 23, &hours) != LLM_OK
        || llm_key_part(&p, last, ':', 59, &minutes) != LLM_OK
        || p != last)
    {
        return LLM_ERROR;
    }

    *to += (sign == '+' ? -60 : 60) * (int64_t) (hours * 60 + minutes);

    return LLM_OK;
}


int
llm_key_read_time(llm_str_t s, int64_t *to)
{
    int          year, month, day, hour, minute, second;
    const char  *p, *last;

    p = s.data;
    last = p + s.len;

    if (llm_key_digits(&p, last, 4, &year) != LLM_OK
        || llm_key_part(&p, last, '-', 12, &month) != LLM_OK
        || llm_key_part(&p, last, '-', 31, &day) != LLM_OK
        || llm_key_days(year, month, day, to) != LLM_OK)
    {
        return LLM_ERROR;
    }

    *to *= 24 * 60 * 60;

    if (p == last) {
        return LLM_OK;
    }

    if (llm_key_part(&p, last, 'T', 23, &hour) != LLM_OK
        || llm_key_part(&p, last, ':', 59, &minute) != LLM_OK
        || llm_key_part(&p, last, ':', 60, &second) != LLM_OK)
    {
        return LLM_ERROR;
    }

    *to += hour * 3600 + minute * 60 + second;

    return llm_key_zone(p, last, to);
}


static int
llm_key_set_time(int64_t *to, const char *name, const llm_flat_t *v,
    llm_err_t *err)
{
    if (v->type == LLM_FLAT_INT) {
        *to = llm_flat_int(v);
        return LLM_OK;
    }

    if (v->type == LLM_FLAT_STRING
        && llm_key_read_time(llm_flat_str(v), to) == LLM_OK)
    {
        return LLM_OK;
    }

    return llm_fail(err, "\"%s\" is neither a time as "
                    "\"2026-12-31T12:00:00Z\" or \"2026-12-31\" nor a number "
                    "of seconds since 1970", name);
}


/* ---- lists ---- */

static int
llm_key_set_scopes(llm_key_t *k, const llm_flat_t *v, llm_err_t *err)
{
    uint32_t           bit;
    llm_str_t          s;
    const llm_flat_t  *item;

    if (v->type != LLM_FLAT_ARRAY) {
        return llm_fail(err, "\"scopes\" is not an array");
    }

    k->scopes = 0;

    for (item = llm_flat_first(v); item; item = llm_flat_next(v, item)) {
        if (item->type != LLM_FLAT_STRING) {
            return llm_fail(err, "\"scopes\" has something else than "
                            "strings");
        }

        s = llm_flat_str(item);
        bit = llm_scope_bit(s.data, s.len);

        if (bit == 0) {
            return llm_fail(err, "the scope \"%.*s\" is unknown, generate, "
                            "embed, tokenize, models, monitor, other and "
                            "admin are known",
                            (int) llm_min(s.len, 64), s.data);
        }

        k->scopes |= bit;
    }

    return LLM_OK;
}


static int
llm_key_set_models(llm_key_reader_t *rd, llm_key_t *k, const llm_flat_t *v,
    llm_err_t *err)
{
    llm_str_t          s;
    const char        *star;
    const llm_flat_t  *item;

    if (v->type != LLM_FLAT_ARRAY) {
        return llm_fail(err, "\"models\" is not an array");
    }

    k->any_model = 0;

    for (item = llm_flat_first(v); item; item = llm_flat_next(v, item)) {
        if (item->type != LLM_FLAT_STRING || item->count == 0) {
            return llm_fail(err, "\"models\" has something else than names");
        }

        s = llm_flat_str(item);
        star = memchr(s.data, '*', s.len);

        if (star && star != s.data + s.len - 1) {
            return llm_fail(err, "\"models\": \"%.*s\" has a \"*\" that is "
                            "not at its end", (int) llm_min(s.len, 128),
                            s.data);
        }

        (void) llm_buf_add(&rd->models, s.data, s.len);
        (void) llm_buf_addc(&rd->models, '\0');
    }

    return LLM_OK;
}


/* ---- other members ---- */

static int
llm_key_set_digest(llm_key_t *k, const llm_flat_t *v, llm_err_t *err)
{
    int        high, low;
    size_t     i;
    llm_str_t  s;

    if (v->type != LLM_FLAT_STRING || v->count != 2 * sizeof(k->digest)) {
        return llm_fail(err, "\"sha256\" is not a string of 64 hexadecimal "
                        "digits");
    }

    s = llm_flat_str(v);

    for (i = 0; i < sizeof(k->digest); i++) {
        high = llm_hex_digit(s.data[2 * i]);
        low = llm_hex_digit(s.data[2 * i + 1]);

        if (high < 0 || low < 0) {
            return llm_fail(err, "\"sha256\" is not a string of 64 "
                            "hexadecimal digits");
        }

        k->digest[i] = (unsigned char) (high << 4 | low);
    }

    return LLM_OK;
}


/* values go to logs and headers, so they have no control characters */

static int
llm_key_is_plain(llm_str_t s)
{
    size_t  i;

    for (i = 0; i < s.len; i++) {
        if ((unsigned char) s.data[i] < 0x20 || s.data[i] == 0x7f) {
            return 0;
        }
    }

    return 1;
}


/* has a member of this name, in any case, been read? */

static int
llm_key_has(const llm_key_reader_t *rd, llm_str_t name)
{
    size_t       at;
    const char  *p;

    for (at = 0; at < rd->text.len; at += strlen(p) + 1) {
        p = rd->text.data + at;

        if (strlen(p) == name.len && strncasecmp(p, name.data, name.len) == 0) {
            return 1;
        }

        at += strlen(p) + 1;            /* its value */
        p = rd->text.data + at;
    }

    return 0;
}


static int
llm_key_add_member(llm_key_reader_t *rd, llm_str_t name, const llm_flat_t *v,
    llm_err_t *err)
{
    llm_str_t  s;

    if (llm_key_has(rd, name)) {
        return llm_fail(err, "\"%.*s\" is there twice; names are the same in "
                        "any case", (int) llm_min(name.len, 64), name.data);
    }

    if (!llm_key_is_plain(name)
        || (v->type == LLM_FLAT_STRING && !llm_key_is_plain(llm_flat_str(v))))
    {
        return llm_fail(err, "\"%.*s\" has a control character",
                        (int) llm_min(name.len, 64), name.data);
    }

    (void) llm_buf_add(&rd->text, name.data, name.len);
    (void) llm_buf_addc(&rd->text, '\0');

    if (v->type == LLM_FLAT_STRING) {
        s = llm_flat_str(v);
        (void) llm_buf_add(&rd->text, s.data, s.len);

    } else {
        (void) llm_json_add_flat(&rd->text, v);
    }

    (void) llm_buf_addc(&rd->text, '\0');

    return LLM_OK;
}


/* a member whose name is known in another case would be ignored, and its
   restriction lost: it is refused */

static int
llm_key_check_case(llm_str_t name, llm_err_t *err)
{
    size_t  i, len;

    static const char *const  names[] = {
        "id", "sha256", "tenant", "models", "scopes", "not_before", "expires"
    };

    for (i = 0; i < llm_nelems(names); i++) {
        len = strlen(names[i]);

        if (len == name.len && strncasecmp(names[i], name.data, len) == 0
            && memcmp(names[i], name.data, len) != 0)
        {
            return llm_fail(err, "\"%.*s\" has to be written as \"%s\"",
                            (int) len, name.data, names[i]);
        }
    }

    return LLM_OK;
}


/* sets a member; all but the digest are also kept in the text */

static int
llm_key_set(llm_key_reader_t *rd, llm_key_t *k, llm_str_t name,
    const llm_flat_t *v, llm_err_t *err)
{
    int  rc;

    rc = llm_key_check_case(name, err);

    if (rc != LLM_OK) {
        return rc;
    }

    if (llm_str_is(name, "sha256")) {
        return llm_key_set_digest(k, v, err);
    }

    if (llm_str_is(name, "scopes")) {
        rc = llm_key_set_scopes(k, v, err);

    } else if (llm_str_is(name, "models")) {
        rc = llm_key_set_models(rd, k, v, err);

    } else if (llm_str_is(name, "not_before")) {
        rc = llm_key_set_time(&k->not_before, "not_before", v, err);

    } else if (llm_str_is(name, "expires")) {
        rc = llm_key_set_time(&k->expires, "expires", v, err);

    } else if ((llm_str_is(name, "id") || llm_str_is(name, "tenant"))
               && (v->type != LLM_FLAT_STRING || v->count == 0))
    {
        return llm_fail(err, "\"%.*s\" is not a string with something in it",
                        (int) name.len, name.data);
    }

    return rc == LLM_OK ? llm_key_add_member(rd, name, v, err) : rc;
}


static int
llm_key_set_all(llm_key_reader_t *rd, llm_key_t *k, const llm_flat_t *object,
    llm_err_t *err)
{
    llm_str_t          s;
    const llm_flat_t  *name, *v, *id;

    id = llm_flat_get(object, "id");

    for (name = llm_flat_first(object); name; name = llm_flat_next(object, v)) {
        v = llm_flat_next(object, name);

        if (v->type != LLM_FLAT_NULL
            && llm_key_set(rd, k, llm_flat_str(name), v, err) != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    if (id == NULL || id->type == LLM_FLAT_NULL) {
        return llm_fail(err, "\"id\" is missing");
    }

    v = llm_flat_get(object, "sha256");

    if (v == NULL || v->type == LLM_FLAT_NULL) {
        return llm_fail(err, "\"sha256\" is missing");
    }

    v = llm_flat_get(object, "tenant");

    if (v == NULL || v->type == LLM_FLAT_NULL) {
        s = llm_str("tenant");
        return llm_key_add_member(rd, s, id, err);
    }

    return LLM_OK;
}


/* copies what the reader has written to the key's own memory */

static int
llm_key_keep(llm_key_reader_t *rd, llm_key_t *k, llm_err_t *err)
{
    char  *p;

    k->models = (uint32_t) rd->text.len;
    (void) llm_buf_add(&rd->text, rd->models.len ? rd->models.data : "",
                       rd->models.len);
    k->len = (uint32_t) rd->text.len;

    p = NULL;

    if (!rd->text.failed && !rd->models.failed) {
        p = llm_arena_alloc(rd->arena, k->len);
    }

    if (p == NULL) {
        return llm_fail(err, "no memory is left for the keys");
    }

    memcpy(p, rd->text.data, k->len);
    k->text = p;

    return LLM_OK;
}


/* an error names the line's beginning only; the caller adds the line's
   number */

static void
llm_key_place(llm_err_t *err)
{
    char    *p;
    size_t   i;

    static const char *const  not_here[] = { LLM_JSON_COMPLAINT, "line 1, " };

    for (i = 0; i < llm_nelems(not_here); i++) {
        p = strstr(err->msg, not_here[i]);

        if (p) {
            memmove(p, p + strlen(not_here[i]),
                    strlen(p + strlen(not_here[i])) + 1);
        }
    }
}


int
llm_key_read_line(llm_key_reader_t *rd, const char *line, size_t len,
    llm_key_t *k, llm_err_t *err)
{
    llm_json_limits_t   limits;
    const llm_flat_t   *v;

    limits.depth = 8;
    limits.values = LLM_KEY_VALUES;
    limits.lenient = 0;

    rd->flat.len = 0;
    rd->text.len = 0;
    rd->models.len = 0;

    memset(k, 0, sizeof(llm_key_t));

    k->not_before = INT64_MIN;
    k->expires = INT64_MAX;
    k->scopes = LLM_SCOPE_USUAL;
    k->any_model = 1;

    if (len > LLM_KEY_LINE) {
        return llm_fail(err, "it has %zu bytes, more than %d", len,
                        LLM_KEY_LINE);
    }

    /* with two "expires" it would be unclear which one counts */

    if (llm_json_to_flat_once(line, len, &limits, &rd->flat, err) != LLM_OK) {
        llm_key_place(err);
        return LLM_ERROR;
    }

    v = (const llm_flat_t *) rd->flat.data;

    if (v->type != LLM_FLAT_OBJECT) {
        return llm_fail(err, "it is not a JSON object");
    }

    if (llm_key_set_all(rd, k, v, err) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_key_keep(rd, k, err);
}


void
llm_key_reader_init(llm_key_reader_t *rd, llm_arena_t *arena)
{
    llm_buf_init(&rd->flat, 0);
    llm_buf_init(&rd->text, 0);
    llm_buf_init(&rd->models, 0);
    rd->arena = arena;
}


void
llm_key_reader_free(llm_key_reader_t *rd)
{
    llm_buf_free(&rd->flat);
    llm_buf_free(&rd->text);
    llm_buf_free(&rd->models);
}
