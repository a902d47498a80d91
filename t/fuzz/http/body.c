/*
 * A body: parameters of the table, most of them with values that are
 * allowed, some with whatever there is; and bodies that are broken.
 */

#include "t/fuzz/http/http.h"

#include <string.h>


/* those that say how many choices there are, or whether it is a stream: what
   they are is known, unless they are at an edge */

static int
fz_is_counted(const char *name)
{
    size_t  i;

    static const char *const  names[] = {
        "n", "stream", "prompt", "input", "documents"
    };

    for (i = 0; i < fz_nelems(names); i++) {
        if (strcmp(names[i], name) == 0) {
            return 1;
        }
    }

    return 0;
}


/* a parameter; left out afterwards where the mask says so */

static void
fz_member(fz_gen_t *g, const fz_field_t *f, unsigned odd)
{
    size_t     len;
    unsigned   broken, bit;
    fz_want_t  want;

    len = g->body.len;
    want = g->want;
    broken = g->broken;
    bit = g->member < 62 ? g->member : 62;

    if (g->body.data[g->body.len - 1] != '{') {
        fz_adds(&g->body, ",");
    }

    fz_addf(&g->body, "\"%s\":", f->name);

    if (fz_chance(&g->rand, odd)) {
        fz_edge(g, f);

        if (strcmp(f->name, "n") == 0) {
            g->want.n = -1;

        } else if (strcmp(f->name, "stream") == 0) {
            g->want.stream = -1;

        } else if (strcmp(f->name, "stream_options") == 0) {
            g->want.usage = -1;

        } else if (fz_is_counted(f->name)) {
            g->want.prompts = -1;
        }

    } else if (fz_chance(&g->rand, 50) && f->type != FZ_REQUIRED) {
        fz_adds(&g->body, "null");

    } else if (fz_is_counted(f->name) || !fz_chance(&g->rand, 30)) {
        if (!fz_known(g, f->name)) {
            fz_value(g, f);
        }

    } else {
        if (strcmp(f->name, "stream_options") == 0) {
            g->want.usage = -1;
        }

        fz_value(g, f);
    }

    if (g->mask & (1ull << bit)) {
        g->body.len = len;
        g->body.data[len] = '\0';
        g->want = want;
        g->broken = broken;
    }

    g->member++;
}


static const fz_field_t *
fz_field(const fz_table_t *t, int endpoint, const char *name)
{
    unsigned  i;

    for (i = 0; i < t->n_fields; i++) {
        if (strcmp(t->fields[i].name, name) == 0
            && (t->fields[i].endpoints & (unsigned) endpoint))
        {
            return &t->fields[i];
        }
    }

    fz_die("the table has no '%s'", name);
    return NULL;
}


/* one that the endpoint has and this body has not yet */

static const fz_field_t *
fz_draw(fz_gen_t *g, int endpoint, unsigned char *used)
{
    unsigned           i, k;
    const fz_field_t  *f;

    for (k = 0; k < 50; k++) {
        i = fz_below(&g->rand, g->table->n_fields);
        f = &g->table->fields[i];

        if (used[i] || !(f->endpoints & (unsigned) endpoint)) {
            continue;
        }

        /* what is always refused says little */

        if (f->type == FZ_REFUSED && !fz_chance(&g->rand, 200)) {
            continue;
        }

        used[i] = 1;
        return f;
    }

    return NULL;
}


static void
fz_usual(fz_gen_t *g, const char *name, unsigned char *used,
    unsigned permille)
{
    const fz_field_t  *f;

    f = fz_field(g->table, g->want.endpoint, name);

    if (fz_chance(&g->rand, permille)) {
        used[f - g->table->fields] = 1;
        fz_member(g, f, 10);
    }
}


/* what a body of this endpoint has most of the time */

static void
fz_usual_fields(fz_gen_t *g, int endpoint, unsigned char *used)
{
    size_t  i;

    static const struct {
        unsigned     endpoints;
        const char  *name;
        unsigned     permille;
    } usual[] = {
        { FZ_CHAT | FZ_MESSAGES | FZ_COUNT | FZ_TEMPLATE, "messages", 985 },
        { FZ_COMPL, "prompt", 985 },
        { FZ_RESPONSES | FZ_EMBED, "input", 985 },
        { FZ_RERANK, "query", 985 },
        { FZ_RERANK, "documents", 985 },
        { FZ_SCORE, "text_1", 985 },
        { FZ_SCORE, "text_2", 985 },
        { FZ_TOKENIZE, "content", 500 },
        { FZ_TOKENIZE, "messages", 300 },
        { FZ_TOKENIZE, "prompt", 300 },
        { FZ_DETOKENIZE, "tokens", 985 },
        { FZ_INFILL, "input_prefix", 985 },
        { FZ_INFILL, "input_suffix", 985 },
        { FZ_CHAT | FZ_COMPL | FZ_INFILL, "max_tokens", 850 },
        { FZ_MESSAGES, "max_tokens", 985 },
        { FZ_RESPONSES, "max_output_tokens", 850 },
        { FZ_MESSAGES | FZ_COUNT | FZ_RESPONSES, "tools", 250 },
        { FZ_CHAT | FZ_COMPL | FZ_MESSAGES | FZ_RESPONSES | FZ_INFILL,
          "stream", 700 },
        { FZ_CHAT | FZ_COMPL, "n", 150 }
    };

    for (i = 0; i < fz_nelems(usual); i++) {
        if (usual[i].endpoints & (unsigned) endpoint) {
            fz_usual(g, usual[i].name, used, usual[i].permille);
        }
    }
}


void
fz_body(fz_gen_t *g, int endpoint)
{
    unsigned           i, n, odd;
    unsigned char      used[FZ_MAX_FIELDS];
    const fz_field_t  *f;

    memset(used, 0, sizeof(used));

    g->body.len = 0;
    g->broken = 0;
    g->member = 0;

    memset(&g->want, 0, sizeof(fz_want_t));
    g->want.endpoint = endpoint;
    g->want.n = 1;
    g->want.prompts = endpoint == FZ_CHAT ? 1 : -1;

    fz_adds(&g->body, "{");
    fz_usual_fields(g, endpoint, used);

    n = fz_below(&g->rand, fz_chance(&g->rand, 100) ? 30 : 6);
    odd = fz_chance(&g->rand, 500) ? 0 : fz_chance(&g->rand, 700) ? 150 : 600;

    for (i = 0; i < n; i++) {
        f = fz_draw(g, endpoint, used);

        if (f) {
            fz_member(g, f, odd);
        }
    }

    fz_adds(&g->body, "}");

    if (g->broken) {
        /* one of the values may make the whole no JSON */
        g->want.n = -1;
        g->want.stream = -1;
        g->want.usage = -1;
        g->want.prompts = -1;
    }
}


static void
fz_cut(fz_buf_t *b, size_t from, size_t n)
{
    if (n > b->len - from) {
        n = b->len - from;
    }

    memmove(b->data + from, b->data + from + n, b->len - from - n);
    b->len -= n;
    b->data[b->len] = '\0';
}


static void
fz_insert(fz_buf_t *b, size_t at, const char *s, size_t len)
{
    size_t  tail;

    tail = b->len - at;

    fz_add(b, s, len);
    memmove(b->data + at + len, b->data + at, tail);
    memcpy(b->data + at, s, len);
}


static void
fz_mutate(fz_gen_t *g)
{
    size_t       at;
    fz_buf_t    *b;
    const char  *s;

    static const char *const  bits[] = {
        "\"", "\\", "{", "}", "[", "]", ",", ":", "\\u", "\\ud800", "\xff",
        "\xef\xbb\xbf", "//", "/* */", "'", "\t", "\x01", "\x7f", "null",
        "1e", "-", "\\x41", "}{", "]]", "\",\"", "\"n\":128,", "\"a\":",
        "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["
    };

    b = &g->body;
    at = fz_below(&g->rand, (unsigned) b->len + 1);

    switch (fz_below(&g->rand, 8)) {

    case 0:
        fz_cut(b, at, b->len);
        break;

    case 1:
        fz_cut(b, at, 1 + fz_below(&g->rand, 20));
        break;

    case 2:
        if (at < b->len) {
            b->data[at] = (char) fz_below(&g->rand, 256);
        }

        break;

    case 3:
        if (at < b->len) {
            b->data[at] = (char) (b->data[at] ^ (1 << fz_below(&g->rand, 8)));
        }

        break;

    case 4:
        fz_insert(b, at, "\0", 1);
        break;

    default:
        s = bits[fz_below(&g->rand, fz_nelems(bits))];
        fz_insert(b, at, s, strlen(s));
    }
}


/* what was a body is anything now; it may be a body still */

void
fz_break(fz_gen_t *g)
{
    unsigned     i, n;
    const char  *s;

    static const char *const  whole[] = {
        "", " ", "null", "[]", "1", "\"x\"", "true", "{", "}", "{}", "[{}]",
        "\xef\xbb\xbf{}", "{\"\":{}}", "not json", "{\"messages\"}",
        "{\"prompt\":\"a\",\"prompt\":[],\"max_tokens\":1}"
    };

    g->want.n = -1;
    g->want.stream = -1;
    g->want.usage = -1;
    g->want.prompts = -1;
    g->want.bad = 0;

    switch (fz_below(&g->rand, 8)) {

    case 0:
        s = whole[fz_below(&g->rand, fz_nelems(whole))];
        g->body.len = 0;
        fz_adds(&g->body, s);
        return;

    case 1:
        n = 1 + fz_below(&g->rand, 20000);
        g->body.len = 0;
        fz_repeat(&g->body, fz_chance(&g->rand, 500) ? "[" : "{\"a\":", n);
        return;

    default:
        n = 1 + fz_below(&g->rand, 4);

        for (i = 0; i < n; i++) {
            fz_mutate(g);
        }
    }
}
