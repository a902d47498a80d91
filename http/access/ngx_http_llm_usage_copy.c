/*
 * Copies of accounts, made a chunk at a time under the zone's lock, and
 * compared with the usage file.
 *
 * Each nginx, and each memory of a zone, that uses the file remembers what the
 * file had when it was last written or read (`known`).  What the zone's figures
 * have beyond that is added to the file; what the file has beyond that is added
 * to the zone's figures.  So nothing is lost or counted twice, in whichever
 * order processes write.
 */

#include "http/access/ngx_http_llm_quota.h"


/* units of a number in the file, which is in 1/1000 tokens */
#define NGX_HTTP_LLM_MILLI  (LLM_QUOTA_UNIT / 1000)


static ngx_http_llm_line_t *ngx_http_llm_usage_line(ngx_http_llm_merge_t *m,
    ngx_http_llm_account_t *a);
static void ngx_http_llm_usage_read_day(ngx_http_llm_account_t *a,
    const llm_usage_t *u, ngx_uint_t shared);
static ngx_uint_t ngx_http_llm_usage_known(ngx_http_llm_account_t *a,
    int64_t used, int64_t held);


/* the first account after the last copied one, or, if last is NULL, the first
   of all; NULL: none */

static ngx_http_llm_account_t *
ngx_http_llm_usage_after(ngx_http_llm_quota_t *q, ngx_http_llm_copied_t *last)
{
    ngx_int_t           rc;
    ngx_rbtree_node_t  *node, *next;

    ngx_http_llm_account_t  *a;

    next = NULL;

    for (node = q->sh->tree.root; node != &q->sh->sentinel; /* void */ ) {
        a = (ngx_http_llm_account_t *) node;

        rc = last == NULL ? 1
             : node->key != last->hash ? (node->key > last->hash ? 1 : -1)
             : ngx_memn2cmp(a->key, last->key, a->len, last->len);

        if (rc > 0) {
            next = node;
            node = node->left;

        } else {
            node = node->right;
        }
    }

    return (ngx_http_llm_account_t *) next;
}


/* ---- from the file to the zone ---- */

/* the account's line in the file, or NULL; lines and accounts are in the same
   order */

static ngx_http_llm_line_t *
ngx_http_llm_usage_line(ngx_http_llm_merge_t *m, ngx_http_llm_account_t *a)
{
    ngx_int_t             rc;
    ngx_http_llm_line_t  *line;

    while (m->next < m->n) {
        line = &m->lines[m->next];

        rc = line->hash != a->node.key
             ? (line->hash > a->node.key ? 1 : -1)
             : ngx_memn2cmp((u_char *) m->keys.data + line->key, a->key,
                            line->len, a->len);

        if (rc > 0) {
            return NULL;
        }

        m->next++;

        if (rc == 0) {
            line->seen = 1;
            return line;
        }
    }

    return NULL;
}


static void
ngx_http_llm_usage_more(uint64_t *n, uint64_t *known, uint64_t there)
{
    if (there > *known) {
        *n += there - *known;
        *known = there;
    }
}


void
ngx_http_llm_usage_take(ngx_http_llm_quota_t *q, ngx_http_llm_account_t *a,
    llm_usage_t *u, ngx_uint_t shared)
{
    ngx_http_llm_known_t    *k;
    ngx_http_llm_figures_t  *n;

    n = &a->n;
    k = a->known;

    /* the path has changed: the new file has a copy of this zone's figures, or
       none */

    if (q->sh->moved) {
        k->day = u->day;
        k->day_units = (int64_t) u->day_tokens * NGX_HTTP_LLM_MILLI;
        k->n_requests = u->requests;
        k->n_prompt = u->prompt;
        k->n_cached = u->cached;
        k->n_answer = u->answer;

        n->n_requests = ngx_max(n->n_requests, u->requests);
        n->n_prompt = ngx_max(n->n_prompt, u->prompt);
        n->n_cached = ngx_max(n->n_cached, u->cached);
        n->n_answer = ngx_max(n->n_answer, u->answer);
    }

    ngx_http_llm_usage_more(&n->n_requests, &k->n_requests, u->requests);
    ngx_http_llm_usage_more(&n->n_prompt, &k->n_prompt, u->prompt);
    ngx_http_llm_usage_more(&n->n_cached, &k->n_cached, u->cached);
    ngx_http_llm_usage_more(&n->n_answer, &k->n_answer, u->answer);

    ngx_http_llm_usage_read_day(a, u, shared);
}


/* days in the future count as today: see ngx_http_llm_account_run() */

static void
ngx_http_llm_usage_read_day(ngx_http_llm_account_t *a, const llm_usage_t *u,
    ngx_uint_t shared)
{
    int64_t                  units, held;
    uint32_t                 day, today;
    ngx_http_llm_known_t    *k;
    ngx_http_llm_figures_t  *n;

    n = &a->n;
    k = a->known;

    today = ngx_http_llm_today();
    day = ngx_min(u->day, today);
    k->day = ngx_min(k->day, today);

    ngx_http_llm_account_run(a, n->tokens.step, n->requests.step);

    units = (day == today) ? (int64_t) u->day_tokens * NGX_HTTP_LLM_MILLI : 0;
    held = (day == today) ? (int64_t) u->held * NGX_HTTP_LLM_MILLI : 0;

    if (k->day < today) {
        k->day = today;
        k->day_units = 0;
        k->held = 0;
    }

    if (units > k->day_units) {
        n->day_units += units - k->day_units;
        k->day_units = units;
    }

    k->others = shared ? ngx_max(held - k->held, 0) : 0;
}


/* ---- from the zone to the file ---- */

/* from now on the file has these figures; 1: it did not have them before */

static ngx_uint_t
ngx_http_llm_usage_known(ngx_http_llm_account_t *a, int64_t used,
    int64_t held)
{
    ngx_http_llm_known_t  now, *k;

    k = a->known;

    ngx_memzero(&now, sizeof(ngx_http_llm_known_t));

    now.day = a->n.day;
    now.day_units = used;
    now.held = held;
    now.others = k->others;
    now.n_requests = a->n.n_requests;
    now.n_prompt = a->n.n_prompt;
    now.n_cached = a->n.n_cached;
    now.n_answer = a->n.n_answer;

    if (used == 0 && k->day_units == 0) {
        k->day = now.day;               /* nothing was used on that day */
    }

    if (now.day == k->day && now.day_units == k->day_units
        && now.held == k->held && now.n_requests == k->n_requests
        && now.n_prompt == k->n_prompt && now.n_cached == k->n_cached
        && now.n_answer == k->n_answer)
    {
        return 0;
    }

    *k = now;

    return 1;
}


/* the file could not be written: `known` is again what it has */

static void
ngx_http_llm_usage_unknown(ngx_http_llm_account_t *a,
    ngx_http_llm_line_t *line)
{
    ngx_http_llm_known_t  *k;

    k = a->known;

    k->day = line ? ngx_min(line->u.day, ngx_http_llm_today()) : 0;
    k->day_units = line ? (int64_t) line->u.day_tokens * NGX_HTTP_LLM_MILLI
                        : 0;
    k->held = line ? ngx_min((int64_t) line->u.held * NGX_HTTP_LLM_MILLI,
                             k->held)
                   : 0;
    k->n_requests = line ? line->u.requests : 0;
    k->n_prompt = line ? line->u.prompt : 0;
    k->n_cached = line ? line->u.cached : 0;
    k->n_answer = line ? line->u.answer : 0;
}


static void
ngx_http_llm_usage_compare(ngx_http_llm_quota_t *q,
    ngx_http_llm_account_t *a, ngx_http_llm_merge_t *m, int64_t *held)
{
    int64_t               used;
    ngx_http_llm_line_t  *line;

    /* the account is older than the file */

    if (a->known == NULL) {
        a->known = ngx_http_llm_quota_alloc(q, sizeof(ngx_http_llm_known_t),
                                            a);
        if (a->known == NULL) {
            return;
        }

        ngx_memzero(a->known, sizeof(ngx_http_llm_known_t));
    }

    line = ngx_http_llm_usage_line(m, a);

    ngx_http_llm_account_change(q, a, NULL);

    if (m->undo) {
        ngx_http_llm_usage_unknown(a, line);

    } else {
        if (line) {
            ngx_http_llm_usage_take(q, a, &line->u, m->shared);

        } else if (m->read || !m->shared) {
            a->known->others = 0;
        }

        *held = ngx_http_llm_account_held(q, a);
        *held -= *held % NGX_HTTP_LLM_MILLI;
        used = ngx_max(a->n.day_units - *held, 0);
        used -= used % NGX_HTTP_LLM_MILLI;
        *held = m->shared ? *held : 0;

        m->news |= ngx_http_llm_usage_known(a, used, *held);
        *held += a->known->others;
    }

    ngx_http_llm_account_known(q);
}


size_t
ngx_http_llm_usage_copy(ngx_http_llm_quota_t *q, ngx_http_llm_copied_t *last,
    u_char *chunk, ngx_http_llm_merge_t *m)
{
    size_t                   len, size;
    int64_t                  held;
    ngx_rbtree_node_t       *node;
    ngx_http_llm_copied_t   *c;
    ngx_http_llm_account_t  *a;

    len = 0;

    ngx_http_llm_quota_lock(q);

    a = ngx_http_llm_usage_after(q, last);

    while (a) {
        size = ngx_align(sizeof(*c) + a->len, 8);

        if (len + size > NGX_HTTP_LLM_USAGE_CHUNK) {
            break;
        }

        held = 0;

        if (m) {
            ngx_http_llm_usage_compare(q, a, m, &held);
        }

        c = (ngx_http_llm_copied_t *) (chunk + len);

        c->n = a->n;
        c->n.day_units -= ngx_min(ngx_http_llm_account_held(q, a),
                                  c->n.day_units);
        c->held = held;
        c->hash = (uint32_t) a->node.key;
        c->len = a->len;
        ngx_memcpy(c->key, a->key, a->len);

        len += size;

        node = ngx_rbtree_next(&q->sh->tree, &a->node);
        a = (ngx_http_llm_account_t *) node;
    }

    ngx_http_llm_quota_unlock(q);

    return len;
}


/* ---- as lines ---- */

ngx_uint_t
ngx_http_llm_usage_is_empty(const llm_usage_t *u)
{
    return u->day_tokens == 0 && u->held == 0 && u->requests == 0
           && u->prompt == 0 && u->answer == 0;
}


ngx_uint_t
ngx_http_llm_usage_add(u_char *chunk, size_t len, ngx_uint_t most,
    const char *between, ngx_uint_t held, ngx_http_llm_copied_t *last,
    llm_buf_t *out)
{
    size_t                  pos;
    ngx_uint_t              n;
    llm_usage_t             u;
    ngx_http_llm_copied_t  *c;

    for (pos = 0, n = 0; pos < len && n < most; /* void */ ) {
        c = (ngx_http_llm_copied_t *) (chunk + pos);

        u.key.data = (char *) c->key;
        u.key.len = c->len;
        u.day = c->n.day;
        u.day_tokens = (uint64_t) c->n.day_units / NGX_HTTP_LLM_MILLI;
        u.requests = c->n.n_requests;
        u.prompt = c->n.n_prompt;
        u.cached = c->n.n_cached;
        u.answer = c->n.n_answer;
        u.held = held ? (uint64_t) c->held / NGX_HTTP_LLM_MILLI : 0;

        if (!held || !ngx_http_llm_usage_is_empty(&u)) {
            if (between && out->data[out->len - 1] == '\n') {
                (void) llm_buf_adds(out, between);
            }

            (void) llm_usage_add(out, &u);
            n++;
        }

        ngx_memcpy(last, c, sizeof(*c) + c->len);
        pos += ngx_align(sizeof(*c) + c->len, 8);
    }

    return n;
}


ngx_int_t
ngx_http_llm_usage_page(ngx_http_llm_quota_t *q, ngx_str_t *after,
    ngx_uint_t most, llm_buf_t *out, ngx_str_t *key)
{
    size_t                  len;
    u_char                 *chunk;
    ngx_uint_t              n;
    ngx_http_llm_copied_t  *last, *from;

    if (after->len > NGX_HTTP_LLM_MAX_KEY) {
        return 0;
    }

    chunk = malloc(2 * NGX_HTTP_LLM_USAGE_CHUNK);
    if (chunk == NULL) {
        return NGX_ERROR;
    }

    last = (ngx_http_llm_copied_t *) (chunk + NGX_HTTP_LLM_USAGE_CHUNK);
    from = NULL;
    n = 0;

    if (after->data) {
        from = last;
        from->hash = ngx_crc32_short(after->data, after->len);
        from->len = after->len;
        ngx_memcpy(from->key, after->data, after->len);
    }

    while (n < most
           && (len = ngx_http_llm_usage_copy(q, from, chunk, NULL)) != 0)
    {
        n += ngx_http_llm_usage_add(chunk, len, most - n, ",", 0, last, out);
        from = last;
    }

    if (n) {
        key->len = last->len;
        ngx_memcpy(key->data, last->key, last->len);
    }

    free(chunk);

    return out->failed ? NGX_ERROR : (ngx_int_t) n;
}
