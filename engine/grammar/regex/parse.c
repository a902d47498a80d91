/*
 * Reads patterns; see regex.h for their syntax.  A part without anchors and
 * look-aheads becomes an expression at once.
 */

#include "engine/base/utf8.h"
#include "engine/grammar/regex/scan.h"

#define LLM_RXS_MAX_DEPTH    200
#define LLM_RXS_MAX_PATTERN  65536

static uint32_t llm_rxs_alt(llm_rxs_t *s);


/* ---- parts ---- */

static uint32_t
llm_rxs_node(llm_rxs_t *s, llm_rxp_kind_t kind, llm_rx_t rx)
{
    llm_rxp_node_t  *n;

    if (llm_vec_more(&s->tree.nodes, 1) != LLM_OK) {
        (void) llm_rxs_fail(s, "memory has ended");
        return 0;
    }

    n = &s->tree.nodes.data[s->tree.nodes.n];
    memset(n, 0, sizeof(*n));
    n->kind = kind;
    n->rx = rx;

    return s->tree.nodes.n++;
}


static int
llm_rxs_is_plain(const llm_rxs_t *s, uint32_t node)
{
    return s->tree.nodes.data[node].kind == LLM_RXP_PLAIN;
}


/* makes a part of a list: one expression if all parts are plain */

static uint32_t
llm_rxs_list(llm_rxs_t *s, llm_rxp_kind_t kind, const uint32_t *kids,
    uint32_t n)
{
    uint32_t  i, node, plain, base;
    llm_rx_t  rx;

    for (i = 0, plain = 0; i < n; i++) {
        plain += (uint32_t) llm_rxs_is_plain(s, kids[i]);
    }

    if (plain == n && kind == LLM_RXP_CAT) {
        for (i = n, rx = LLM_RX_EMPTY; i > 0; i--) {
            rx = llm_rx_cat(s->pool, s->tree.nodes.data[kids[i - 1]].rx, rx);
        }

        return llm_rxs_node(s, LLM_RXP_PLAIN, rx);
    }

    if (plain == n) {
        base = s->pool->tmp.n;

        for (i = 0; i < n; i++) {
            llm_rx_push(s->pool, s->tree.nodes.data[kids[i]].rx);
        }

        return llm_rxs_node(s, LLM_RXP_PLAIN, llm_rx_or_list(s->pool, base));
    }

    if (llm_vec_more(&s->tree.kids, n) != LLM_OK) {
        (void) llm_rxs_fail(s, "memory has ended");
        return 0;
    }

    node = llm_rxs_node(s, kind, LLM_RX_NONE);
    s->tree.nodes.data[node].first = s->tree.kids.n;
    s->tree.nodes.data[node].count = n;
    memcpy(s->tree.kids.data + s->tree.kids.n, kids, n * sizeof(uint32_t));
    s->tree.kids.n += n;

    return node;
}


/* ---- quantifiers ---- */

/* reads digits, at most NO_MAX - 1; LLM_ABSENT: there are none */

static int
llm_rxs_number(llm_rxs_t *s, uint32_t *n)
{
    int       c;
    size_t    start;
    uint64_t  v;

    start = s->at;

    for (v = 0; (c = llm_rxs_peek(s)) >= '0' && c <= '9'; s->at++) {
        v = llm_min(v * 10 + (uint64_t) (c - '0'), LLM_RX_NO_MAX - 1);
    }

    *n = (uint32_t) v;

    return s->at > start ? LLM_OK : LLM_ABSENT;
}


/* reads {n}, {n,}, {n,m} or {,m}; any other brace is a character */

static int
llm_rxs_braces(llm_rxs_t *s, uint32_t *min, uint32_t *max)
{
    int     has_min, has_max;
    size_t  start;

    start = s->at;

    if (!llm_rxs_skip(s, "{")) {
        return 0;
    }

    has_min = llm_rxs_number(s, min) == LLM_OK;
    *max = *min;
    has_max = has_min;

    if (llm_rxs_skip(s, ",")) {
        has_max = llm_rxs_number(s, max) == LLM_OK;

        if (!has_max) {
            *max = LLM_RX_NO_MAX;
        }
    }

    if ((!has_min && !has_max) || !llm_rxs_skip(s, "}")) {
        s->at = start;
        return 0;
    }

    return 1;
}


static int
llm_rxs_quantifier(llm_rxs_t *s, uint32_t *min, uint32_t *max)
{
    *min = 0;
    *max = LLM_RX_NO_MAX;

    if (llm_rxs_skip(s, "*")) {
        return 1;
    }

    if (llm_rxs_skip(s, "+")) {
        *min = 1;
        return 1;
    }

    if (llm_rxs_skip(s, "?")) {
        *max = 1;
        return 1;
    }

    return llm_rxs_braces(s, min, max);
}


static int
llm_rxs_is_quantifier(const llm_rxs_t *s)
{
    int  c;

    c = llm_rxs_peek(s);

    return c == '*' || c == '+' || c == '?';
}


static int
llm_rxs_repeat(llm_rxs_t *s, uint32_t *node)
{
    uint32_t         min, max, kid;
    llm_rxp_node_t  *n;

    if (!llm_rxs_quantifier(s, &min, &max)) {
        return 0;
    }

    if (min > max) {
        (void) llm_rxs_fail(s, "a repetition's minimum is above its maximum");
        return 1;
    }

    /* a lazy repetition matches the same texts; a possessive one would match
       fewer */

    if (!llm_rxs_skip(s, "?") && llm_rxs_peek(s) == '+') {
        (void) llm_rxs_fail(s, "possessive repetitions are not supported");
    }

    kid = *node;
    n = &s->tree.nodes.data[kid];

    if (n->kind >= LLM_RXP_START) {
        (void) llm_rxs_fail(s, "there is nothing to repeat");
        return 1;
    }

    if (n->kind == LLM_RXP_PLAIN) {
        *node = llm_rxs_node(s, LLM_RXP_PLAIN,
                             llm_rx_repeat(s->pool, n->rx, min, max));
        return 1;
    }

    *node = llm_rxs_node(s, LLM_RXP_REPEAT, LLM_RX_NONE);
    n = &s->tree.nodes.data[*node];
    n->first = kid;
    n->min = min;
    n->max = max;

    return 1;
}


/* ---- groups ---- */

/* reads flags: i, s, m, a, u, -; LLM_ERROR */

static int
llm_rxs_flags(llm_rxs_t *s)
{
    int  c, off;

    off = 0;

    for ( ;; s->at++) {
        c = llm_rxs_peek(s);

        switch (c) {

        case 'i':
            s->flags = off ? s->flags & ~(unsigned) LLM_RXS_NO_CASE
                           : s->flags | LLM_RXS_NO_CASE;
            break;

        case 's':
            s->flags = off ? s->flags & ~(unsigned) LLM_RXS_DOT_ALL
                           : s->flags | LLM_RXS_DOT_ALL;
            break;

        case 'a':
        case 'u':
            break;

        case '-':
            off = 1;
            break;

        case ')':
        case ':':
            return LLM_OK;

        default:
            return llm_rxs_fail(s, "this group is not supported");
        }
    }
}


static int
llm_rxs_name(llm_rxs_t *s)
{
    while (s->at < s->len && s->p[s->at] != '>') {
        s->at++;
    }

    return llm_rxs_skip(s, ">") ? LLM_OK
                                : llm_rxs_fail(s, "a > is missing");
}


/* reads what follows "(?" up to the group's inside; *kind is PLAIN for a usual
   group.  LLM_END: there is no inside */

static int
llm_rxs_group_head(llm_rxs_t *s, llm_rxp_kind_t *kind)
{
    *kind = LLM_RXP_PLAIN;

    if (llm_rxs_skip(s, ":")) {
        return LLM_OK;
    }

    if (llm_rxs_skip(s, "=")) {
        *kind = LLM_RXP_AHEAD;
        return LLM_OK;
    }

    if (llm_rxs_skip(s, "!")) {
        *kind = LLM_RXP_NOT_AHEAD;
        return LLM_OK;
    }

    if (llm_rxs_skip(s, "<=") || llm_rxs_skip(s, "<!")) {
        return llm_rxs_fail(s, "look-behinds are not supported");
    }

    if (llm_rxs_skip(s, "P<") || llm_rxs_skip(s, "<")) {
        return llm_rxs_name(s);
    }

    if (llm_rxs_skip(s, "#")) {
        while (s->at < s->len && s->p[s->at] != ')') {
            s->at++;
        }

        return LLM_END;
    }

    if (llm_rxs_flags(s) != LLM_OK) {
        return LLM_ERROR;
    }

    return llm_rxs_skip(s, ":") ? LLM_OK : LLM_END;
}


/* reads what follows "("; flags set in a group end with it, flags of "(?i)"
   with the group around it */

static uint32_t
llm_rxs_group(llm_rxs_t *s)
{
    int              rc;
    unsigned         flags;
    uint32_t         kid, node;
    llm_rxp_kind_t   kind;

    flags = s->flags;
    kind = LLM_RXP_PLAIN;
    rc = llm_rxs_skip(s, "?") ? llm_rxs_group_head(s, &kind) : LLM_OK;

    if (s->depth == LLM_RXS_MAX_DEPTH) {
        (void) llm_rxs_fail(s, "groups are nested too deeply");
        return 0;
    }

    if (rc == LLM_ERROR) {
        return 0;
    }

    s->depth++;
    node = rc == LLM_END ? llm_rxs_node(s, LLM_RXP_PLAIN, LLM_RX_EMPTY)
                         : llm_rxs_alt(s);
    s->depth--;

    if (!llm_rxs_skip(s, ")")) {
        (void) llm_rxs_fail(s, "a ) is missing");
        return 0;
    }

    if (rc != LLM_END) {
        s->flags = flags;
    }

    if (kind == LLM_RXP_PLAIN) {
        return node;
    }

    kid = node;
    node = llm_rxs_node(s, kind, LLM_RX_NONE);
    s->tree.nodes.data[node].first = kid;

    return node;
}


/* ---- atoms ---- */

/* one character, in both cases if the flags ask for that */

static llm_rx_t
llm_rxs_one(llm_rxs_t *s, uint32_t cp)
{
    char            bytes[4];
    llm_rx_t        rx;
    llm_rx_range_t  r;
    llm_rxs_set_t   set;

    if (!(s->flags & LLM_RXS_NO_CASE)) {
        return llm_rx_literal(s->pool, bytes, llm_utf8_encode(bytes, cp));
    }

    memset(&set, 0, sizeof(set));
    r.from = cp;
    r.to = cp;
    rx = LLM_RX_NONE;

    if (llm_vec_more(&set, 1) != LLM_OK) {
        (void) llm_rxs_fail(s, "memory has ended");
        return rx;
    }

    set.data[set.n++] = r;
    (void) llm_rxs_class(s, &set, 0, &rx);
    free(set.data);

    return rx;
}


static llm_rx_t
llm_rxs_dot(llm_rxs_t *s)
{
    static const llm_rx_range_t  r[] = {
        { 0, 9 }, { 11, 12 }, { 14, 0x2027 }, { 0x202a, 0x10ffff }
    };

    return s->flags & LLM_RXS_DOT_ALL
           ? LLM_RX_CHAR : llm_rx_class(s->pool, r, llm_nelems(r));
}


/* reads what follows a backslash */

static uint32_t
llm_rxs_escape_part(llm_rxs_t *s)
{
    int            rc;
    uint32_t       cp;
    llm_rx_t       rx;
    llm_rxs_set_t  set;

    if (llm_rxs_skip(s, "b")) {
        return llm_rxs_node(s, LLM_RXP_WORD, LLM_RX_NONE);
    }

    if (llm_rxs_skip(s, "B")) {
        return llm_rxs_node(s, LLM_RXP_NO_WORD, LLM_RX_NONE);
    }

    if (llm_rxs_skip(s, "A")) {
        return llm_rxs_node(s, LLM_RXP_START, LLM_RX_NONE);
    }

    if (llm_rxs_skip(s, "Z") || llm_rxs_skip(s, "z")) {
        return llm_rxs_node(s, LLM_RXP_END, LLM_RX_NONE);
    }

    memset(&set, 0, sizeof(set));
    rx = LLM_RX_NONE;
    rc = llm_rxs_escape(s, &set, &cp);

    if (rc == 1) {
        (void) llm_rxs_class(s, &set, 0, &rx);

    } else if (rc == 0 && (cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))) {
        (void) llm_rxs_fail(s, "this is no character");

    } else if (rc == 0) {
        rx = llm_rxs_one(s, cp);
    }

    free(set.data);

    return llm_rxs_node(s, LLM_RXP_PLAIN, rx);
}


static uint32_t
llm_rxs_atom(llm_rxs_t *s)
{
    size_t    n;
    uint32_t  cp;
    llm_rx_t  rx;

    if (llm_rxs_skip(s, "(")) {
        return llm_rxs_group(s);
    }

    if (llm_rxs_skip(s, "^")) {
        return llm_rxs_node(s, LLM_RXP_START, LLM_RX_NONE);
    }

    if (llm_rxs_skip(s, "$")) {
        return llm_rxs_node(s, LLM_RXP_END, LLM_RX_NONE);
    }

    if (llm_rxs_skip(s, "\\")) {
        return llm_rxs_escape_part(s);
    }

    if (llm_rxs_skip(s, ".")) {
        return llm_rxs_node(s, LLM_RXP_PLAIN, llm_rxs_dot(s));
    }

    if (llm_rxs_skip(s, "[")) {
        rx = LLM_RX_NONE;
        (void) llm_rxs_bracket(s, &rx);
        return llm_rxs_node(s, LLM_RXP_PLAIN, rx);
    }

    if (llm_rxs_is_quantifier(s)) {
        (void) llm_rxs_fail(s, "there is nothing to repeat");
        return 0;
    }

    n = llm_utf8_decode(s->p + s->at, s->len - s->at, &cp);

    if (n == 0) {
        (void) llm_rxs_fail(s, "it is not UTF-8");
        return 0;
    }

    s->at += n;

    return llm_rxs_node(s, LLM_RXP_PLAIN, llm_rxs_one(s, cp));
}


static uint32_t
llm_rxs_seq(llm_rxs_t *s)
{
    int                c;
    uint32_t           node;
    llm_vec(uint32_t)  kids;

    memset(&kids, 0, sizeof(kids));

    while ((c = llm_rxs_peek(s)) != -1 && c != '|' && c != ')'
           && s->reason == NULL)
    {
        node = llm_rxs_atom(s);

        if (s->reason == NULL && llm_rxs_repeat(s, &node)
            && llm_rxs_is_quantifier(s))
        {
            (void) llm_rxs_fail(s, "there is nothing to repeat");
        }

        if (llm_vec_more(&kids, 1) != LLM_OK) {
            (void) llm_rxs_fail(s, "memory has ended");
            break;
        }

        kids.data[kids.n++] = node;
    }

    node = s->reason ? 0 : llm_rxs_list(s, LLM_RXP_CAT, kids.data, kids.n);
    free(kids.data);

    return node;
}


static uint32_t
llm_rxs_alt(llm_rxs_t *s)
{
    uint32_t           node;
    llm_vec(uint32_t)  kids;

    node = llm_rxs_seq(s);

    if (llm_rxs_peek(s) != '|' || s->reason) {
        return node;
    }

    memset(&kids, 0, sizeof(kids));

    for ( ;; ) {
        if (llm_vec_more(&kids, 1) != LLM_OK) {
            (void) llm_rxs_fail(s, "memory has ended");
            break;
        }

        kids.data[kids.n++] = node;

        if (s->reason || !llm_rxs_skip(s, "|")) {
            break;
        }

        node = llm_rxs_seq(s);
    }

    node = s->reason ? 0 : llm_rxs_list(s, LLM_RXP_ALT, kids.data, kids.n);
    free(kids.data);

    return node;
}


static void
llm_rxs_whole(llm_rxs_t *s, int mode, llm_rx_t *rx)
{
    uint32_t     root;
    const char  *reason;

    if (s->len > LLM_RXS_MAX_PATTERN) {
        (void) llm_rxs_fail(s, "it is too long");
        return;
    }

    root = llm_rxs_alt(s);

    if (s->at < s->len) {
        (void) llm_rxs_fail(s, "a ( is missing");
    }

    if (s->reason) {
        return;
    }

    reason = llm_rxp_compile(&s->tree, root, mode, rx);

    if (reason == NULL && s->pool->failed) {
        reason = "it is too large";
    }

    if (reason) {
        (void) llm_rxs_fail(s, reason);
    }
}


int
llm_rx_parse(llm_rx_pool_t *p, const char *pattern, size_t len, int mode,
    llm_rx_t *rx, llm_err_t *err)
{
    llm_rxs_t  s;

    memset(&s, 0, sizeof(s));
    s.p = pattern;
    s.len = len;
    s.pool = p;
    s.tree.pool = p;
    *rx = LLM_RX_NONE;

    llm_rxs_whole(&s, mode, rx);

    free(s.tree.nodes.data);
    free(s.tree.kids.data);

    if (s.reason == NULL) {
        return LLM_OK;
    }

    *rx = LLM_RX_NONE;

    return llm_fail_with(err, 400, NULL, NULL, "the pattern \"%.*s\" cannot "
                         "be used: %s (at character %zu)",
                         (int) llm_min(len, 200), pattern, s.reason,
                         s.reason_at);
}
