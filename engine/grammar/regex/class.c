/*
 * Classes of characters in patterns: [a-z\d], \s, \p{Lu}; what an escape
 * stands for; see regex/scan.h.
 */

#include "engine/base/unicode.h"
#include "engine/base/utf8.h"
#include "engine/grammar/regex/scan.h"

static const llm_rx_range_t  llm_rxs_digits[] = { { '0', '9' } };

static const llm_rx_range_t  llm_rxs_word[] = {
    { '0', '9' }, { 'A', 'Z' }, { '_', '_' }, { 'a', 'z' }
};

static const llm_rx_range_t  llm_rxs_space[] = {
    { 9, 13 }, { ' ', ' ' }, { 0xa0, 0xa0 }, { 0x1680, 0x1680 },
    { 0x2000, 0x200a }, { 0x2028, 0x2029 }, { 0x202f, 0x202f },
    { 0x205f, 0x205f }, { 0x3000, 0x3000 }, { 0xfeff, 0xfeff }
};


int
llm_rxs_fail(llm_rxs_t *s, const char *reason)
{
    if (s->reason == NULL) {
        s->reason = reason;
        s->reason_at = s->at;
    }

    return LLM_ERROR;
}


int
llm_rxs_peek(const llm_rxs_t *s)
{
    return s->at < s->len ? (uint8_t) s->p[s->at] : -1;
}


int
llm_rxs_skip(llm_rxs_t *s, const char *text)
{
    size_t  n;

    n = strlen(text);

    if (s->len - s->at < n || memcmp(s->p + s->at, text, n) != 0) {
        return 0;
    }

    s->at += n;

    return 1;
}


/* reads the next character; there must be one */

static int
llm_rxs_char(llm_rxs_t *s, uint32_t *cp)
{
    size_t  n;

    n = llm_utf8_decode(s->p + s->at, s->len - s->at, cp);
    if (n == 0) {
        return llm_rxs_fail(s, "it is not UTF-8");
    }

    s->at += n;

    return LLM_OK;
}


/* ---- sets ---- */

static int
llm_rxs_add(llm_rxs_set_t *set, uint32_t from, uint32_t to)
{
    if (llm_vec_more(set, 1) != LLM_OK) {
        return LLM_ERROR;
    }

    set->data[set->n].from = from;
    set->data[set->n++].to = to;

    return LLM_OK;
}


static int
llm_rxs_compare(const void *a, const void *b)
{
    const llm_rx_range_t  *x, *y;

    x = a;
    y = b;

    return x->from < y->from ? -1 : x->from > y->from;
}


/* puts the ranges in order and joins overlapping ones */

static void
llm_rxs_sort(llm_rxs_set_t *set)
{
    uint32_t         i, n;
    llm_rx_range_t  *r;

    if (set->n < 2) {
        return;
    }

    r = set->data;
    qsort(r, set->n, sizeof(llm_rx_range_t), llm_rxs_compare);

    for (i = 1, n = 0; i < set->n; i++) {
        if (r[i].from <= r[n].to + 1) {
            r[n].to = llm_max(r[n].to, r[i].to);

        } else {
            r[++n] = r[i];
        }
    }

    set->n = n + 1;
}


/* adds the characters of n ranges, which are in order, or all but those */

static int
llm_rxs_add_all(llm_rxs_set_t *set, const llm_rx_range_t *r, size_t n,
    int all_but)
{
    int       rc;
    size_t    i;
    uint32_t  from;

    rc = LLM_OK;
    from = 0;

    for (i = 0; i < n && rc == LLM_OK; i++) {
        if (!all_but) {
            rc = llm_rxs_add(set, r[i].from, r[i].to);
            continue;
        }

        if (r[i].from > from) {
            rc = llm_rxs_add(set, from, r[i].from - 1);
        }

        from = r[i].to + 1;
    }

    if (all_but && from <= 0x10ffff && rc == LLM_OK) {
        rc = llm_rxs_add(set, from, 0x10ffff);
    }

    return rc;
}


/* no character beyond this one has another case */
#define LLM_RXS_LAST_CASED  0x1e943

static int
llm_rxs_has(const llm_rxs_set_t *set, uint32_t n, uint32_t cp)
{
    uint32_t  i;

    for (i = 0; i < n; i++) {
        if (set->data[i].from <= cp && cp <= set->data[i].to) {
            return 1;
        }
    }

    return 0;
}


/* adds the other case of each letter */

static int
llm_rxs_add_cases(llm_rxs_set_t *set)
{
    int       rc;
    uint32_t  n, cp, low, last;

    n = set->n;
    rc = LLM_OK;
    last = n > 0 && set->data[n - 1].to < 0x80 ? 0x7f : LLM_RXS_LAST_CASED;

    for (cp = 0; cp <= last && rc == LLM_OK; cp++) {
        low = llm_unicode_lower(cp);

        if (low == cp) {
            continue;
        }

        if (llm_rxs_has(set, n, cp)) {
            rc = llm_rxs_add(set, low, low);

        } else if (llm_rxs_has(set, n, low)) {
            rc = llm_rxs_add(set, cp, cp);
        }
    }

    return rc;
}


int
llm_rxs_class(llm_rxs_t *s, llm_rxs_set_t *set, int all_but, llm_rx_t *rx)
{
    int            rc;
    llm_rxs_set_t  rest;

    memset(&rest, 0, sizeof(rest));
    llm_rxs_sort(set);
    rc = LLM_OK;

    if (s->flags & LLM_RXS_NO_CASE) {
        rc = llm_rxs_add_cases(set);
        llm_rxs_sort(set);
    }

    if (rc == LLM_OK && all_but) {
        rc = llm_rxs_add_all(&rest, set->data, set->n, 1);
        *rx = llm_rx_class(s->pool, rest.data, rest.n);

    } else {
        *rx = llm_rx_class(s->pool, set->data, set->n);
    }

    free(rest.data);

    return rc == LLM_OK ? LLM_OK : llm_rxs_fail(s, "memory has ended");
}


/* ---- escapes ---- */

static int
llm_rxs_hex(llm_rxs_t *s, uint32_t n, uint32_t *cp)
{
    int       digit;
    uint32_t  i;

    *cp = 0;

    for (i = 0; i < n; i++) {
        digit = llm_hex_digit(llm_rxs_peek(s));

        if (digit < 0) {
            return llm_rxs_fail(s, "a hexadecimal digit is missing");
        }

        *cp = *cp << 4 | (uint32_t) digit;
        s->at++;
    }

    return LLM_OK;
}


/* reads what follows \u: XXXX, a pair of them, or {X...} */

static int
llm_rxs_unicode(llm_rxs_t *s, uint32_t *cp)
{
    size_t    at;
    uint32_t  n, low;

    if (!llm_rxs_skip(s, "{")) {
        if (llm_rxs_hex(s, 4, cp) != LLM_OK) {
            return LLM_ERROR;
        }

        at = s->at;

        if (*cp >= 0xd800 && *cp <= 0xdbff && llm_rxs_skip(s, "\\u")
            && llm_rxs_hex(s, 4, &low) == LLM_OK && low >= 0xdc00
            && low <= 0xdfff)
        {
            *cp = 0x10000 + ((*cp - 0xd800) << 10) + (low - 0xdc00);
            return LLM_OK;
        }

        s->at = at;

        return s->reason ? LLM_ERROR : LLM_OK;
    }

    for (n = 0; n < 6 && s->at + n < s->len && s->p[s->at + n] != '}'; n++) {
        /* void */
    }

    if (n == 0 || llm_rxs_hex(s, n, cp) != LLM_OK || !llm_rxs_skip(s, "}")
        || *cp > 0x10ffff)
    {
        return llm_rxs_fail(s, "\\u{} holds no character");
    }

    return LLM_OK;
}


/* reads what follows \p or \P */

static int
llm_rxs_property(llm_rxs_t *s, int all_but, llm_rxs_set_t *set)
{
    int            rc;
    size_t         i, n, start;
    uint32_t       from, to, categories;
    const char    *name;
    llm_rxs_set_t  named = { 0 };

    static const char  *prefixes[] = { "General_Category=", "gc=" };

    if (!llm_rxs_skip(s, "{")) {
        return llm_rxs_fail(s, "\\p has no name in braces");
    }

    start = s->at;

    while (s->at < s->len && s->p[s->at] != '}') {
        s->at++;
    }

    name = s->p + start;
    n = s->at - start;

    for (i = 0; i < llm_nelems(prefixes); i++) {
        if (n > strlen(prefixes[i])
            && memcmp(name, prefixes[i], strlen(prefixes[i])) == 0)
        {
            name += strlen(prefixes[i]);
            n -= strlen(prefixes[i]);
            break;
        }
    }

    categories = llm_unicode_named(name, n);

    if (categories == 0 || !llm_rxs_skip(s, "}")) {
        s->at = start;
        return llm_rxs_fail(s, "this property of characters is not known");
    }

    rc = LLM_OK;

    for (from = 0;
         rc == LLM_OK && llm_unicode_range(categories, &from, &to);
         from = to + 1)
    {
        rc = llm_rxs_add(&named, from, to);
    }

    if (rc == LLM_OK) {
        rc = llm_rxs_add_all(set, named.data, named.n, all_but);
    }

    free(named.data);

    return rc == LLM_OK ? LLM_OK : llm_rxs_fail(s, "memory has ended");
}


/* reads \d and similar; 1: there was one; 0; LLM_ERROR */

static int
llm_rxs_shorthand(llm_rxs_t *s, llm_rxs_set_t *set)
{
    int                    c, rc;
    size_t                 n;
    const llm_rx_range_t  *r;

    c = llm_rxs_peek(s);

    switch (c) {

    case 'd':
    case 'D':
        r = llm_rxs_digits;
        n = llm_nelems(llm_rxs_digits);
        break;

    case 'w':
    case 'W':
        r = llm_rxs_word;
        n = llm_nelems(llm_rxs_word);
        break;

    case 's':
    case 'S':
        r = llm_rxs_space;
        n = llm_nelems(llm_rxs_space);
        break;

    case 'p':
    case 'P':
        s->at++;
        rc = llm_rxs_property(s, c == 'P', set);
        return rc == LLM_OK ? 1 : rc;

    default:
        return 0;
    }

    s->at++;

    if (llm_rxs_add_all(set, r, n, c < 'a') != LLM_OK) {
        return llm_rxs_fail(s, "memory has ended");
    }

    return 1;
}


/* reads what follows the backslash of an escape that stands for one
   character */

static int
llm_rxs_escaped(llm_rxs_t *s, uint32_t *cp)
{
    int          c;
    const char  *found;

    static const char  names[] = "tnvfr0";
    static const char  chars[] = "\t\n\v\f\r\0";

    c = llm_rxs_peek(s);

    if (c >= 0x80) {
        return llm_rxs_char(s, cp);
    }

    if (c == -1) {
        return llm_rxs_fail(s, "it ends with a backslash");
    }

    found = c ? strchr(names, c) : NULL;

    if (found) {
        s->at++;
        *cp = (uint8_t) chars[found - names];

        if (c == '0' && llm_rxs_peek(s) >= '0' && llm_rxs_peek(s) <= '9') {
            return llm_rxs_fail(s, "octal escapes are not supported");
        }

        return LLM_OK;
    }

    if (c == 'x' || c == 'u' || c == 'U') {
        s->at++;

        return c == 'u' ? llm_rxs_unicode(s, cp)
                        : llm_rxs_hex(s, c == 'x' ? 2 : 8, cp);
    }

    if (c == 'c' && s->at + 1 < s->len
        && ((s->p[s->at + 1] | 0x20) >= 'a')
        && ((s->p[s->at + 1] | 0x20) <= 'z'))
    {
        *cp = s->p[s->at + 1] & 0x1f;
        s->at += 2;
        return LLM_OK;
    }

    if ((c >= '0' && c <= '9') || c == 'k') {
        return llm_rxs_fail(s, "a back reference is no regular expression");
    }

    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
        return llm_rxs_fail(s, "this escape is not known");
    }

    s->at++;
    *cp = (uint32_t) c;

    return LLM_OK;
}


int
llm_rxs_escape(llm_rxs_t *s, llm_rxs_set_t *set, uint32_t *cp)
{
    int  rc;

    rc = llm_rxs_shorthand(s, set);

    if (rc != 0) {
        return rc;
    }

    return llm_rxs_escaped(s, cp) == LLM_OK ? 0 : LLM_ERROR;
}


/* ---- brackets ---- */

/* reads one end of a range, or a set: 1: a set; 0: *cp; LLM_ERROR */

static int
llm_rxs_bracket_item(llm_rxs_t *s, llm_rxs_set_t *set, uint32_t *cp)
{
    if (!llm_rxs_skip(s, "\\")) {
        return llm_rxs_char(s, cp) == LLM_OK ? 0 : LLM_ERROR;
    }

    if (llm_rxs_skip(s, "b")) {
        *cp = '\b';
        return 0;
    }

    return llm_rxs_escape(s, set, cp);
}


static int
llm_rxs_bracket_range(llm_rxs_t *s, llm_rxs_set_t *set)
{
    int       rc;
    uint32_t  from, to;

    rc = llm_rxs_bracket_item(s, set, &from);

    if (rc != 0) {
        return rc == 1 ? LLM_OK : rc;
    }

    to = from;

    if (s->len - s->at >= 2 && s->p[s->at] == '-' && s->p[s->at + 1] != ']') {
        s->at++;
        rc = llm_rxs_bracket_item(s, set, &to);

        if (rc == LLM_ERROR) {
            return rc;
        }

        if (rc == 1) {
            /* in [a-\d] the dash stands for itself */

            to = from;
            rc = llm_rxs_add(set, '-', '-');

            if (rc != LLM_OK) {
                return llm_rxs_fail(s, "memory has ended");
            }
        }

        if (to < from) {
            return llm_rxs_fail(s, "a range ends before it begins");
        }
    }

    return llm_rxs_add(set, from, to) == LLM_OK
           ? LLM_OK : llm_rxs_fail(s, "memory has ended");
}


int
llm_rxs_bracket(llm_rxs_t *s, llm_rx_t *rx)
{
    int            rc, all_but;
    llm_rxs_set_t  set;

    memset(&set, 0, sizeof(set));
    all_but = llm_rxs_skip(s, "^");
    rc = LLM_OK;

    while (rc == LLM_OK && !llm_rxs_skip(s, "]")) {
        rc = s->at < s->len ? llm_rxs_bracket_range(s, &set)
                            : llm_rxs_fail(s, "a ] is missing");
    }

    if (rc == LLM_OK) {
        rc = llm_rxs_class(s, &set, all_but, rx);
    }

    free(set.data);

    return rc;
}
