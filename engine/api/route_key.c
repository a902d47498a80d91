/*
 * The key of a request for balancers.  One pass over the bytes, in whatever
 * pieces they come, which tracks strings, brackets and the members that lead
 * to the texts of the key; the rest is skipped, most of it eight bytes at a
 * time.
 *
 *   {"model": ..., "messages": [{"role": ..., "content": [{"text": ...}]}]}
 *   1              2           3                         4 5        levels
 */

#include "engine/api/plain.h"
#include "engine/api/route_key.h"
#include "engine/base/sha256.h"

/* levels of which it is recorded whether they are objects or lists */
#define LLM_ROUTE_LEVELS   6

/* longer than any member's name or role that is looked for */
#define LLM_ROUTE_NAME     24

/* most marks (quotes, brackets, escapes, digits) that are read.  A mark takes
   about ten times as long as a byte of text, so this is a matter of
   milliseconds */
#define LLM_ROUTE_MARKS    (1 << 20)

/* most bytes that count of a name given by a client */
#define LLM_ROUTE_WORD     256


typedef enum {
    LLM_ROUTE_MODEL = 0,
    LLM_ROUTE_CACHE_KEY,

    /* used if there is no LLM_ROUTE_CACHE_KEY */

    LLM_ROUTE_USER,
    LLM_ROUTE_SAFETY,
    LLM_ROUTE_PROMPT,
    LLM_ROUTE_PREFIX,
    LLM_ROUTE_QUERY,
    LLM_ROUTE_FIRST,                    /* first message of a user */
    LLM_ROUTE_OTHER,                    /* first message that has a text */
    LLM_ROUTE_SCRATCH,                  /* message that is being read */
    LLM_ROUTE_ROLE,                     /* role of that message */
    LLM_ROUTE_MEMBER,                   /* name of a member that is being
                                           read */
    LLM_ROUTE_TEXTS
} llm_route_text_e;

/* how a member at the first level is read */
typedef enum {
    LLM_ROUTE_STRING = 0,
    LLM_ROUTE_RAW,                      /* a value of any kind, as it stands */
    LLM_ROUTE_STRINGS,                  /* a string, or the first string of a
                                           list */
    LLM_ROUTE_TURNS                     /* a string, the first string of a
                                           list, or messages */
} llm_route_way_e;

typedef struct {
    const char   *name;
    uint32_t      way;
    uint32_t      text;
} llm_route_member_t;

typedef struct {
    char         *data;
    uint32_t      len;
    uint32_t      cap;
    uint32_t      set;                  /* 1: later text is ignored */
} llm_route_text_t;

struct llm_route_key_s {
    uint32_t                   depth;
    char                       open[LLM_ROUTE_LEVELS];  /* '{' or '[' */
    uint32_t                   done;
    uint32_t                   marks;       /* marks read so far; counted the
                                               same however the body is cut, so
                                               that reading always stops at the
                                               same one */
    uint32_t                   bom;         /* bytes of a byte order mark
                                               read */
    uint32_t                   in_string;
    uint32_t                   escaped;     /* the byte before was a
                                               backslash */
    uint32_t                   naming;      /* a member's name is next, or is
                                               being read */
    const llm_route_member_t  *member;      /* open member at level 1; NULL:
                                               not one of interest */
    uint32_t                   field;       /* open member of a message:
                                               llm_route_text_e, or
                                               LLM_ROUTE_TEXTS if of no
                                               interest */
    uint32_t                   part;        /* the text of a part is next */
    llm_route_text_t          *string;      /* text that the open string is
                                               added to, or NULL */
    llm_route_text_t          *raw;         /* text that the open value is
                                               added to, or NULL */
    llm_route_text_t           texts[LLM_ROUTE_TEXTS];
    char                       room[];
};


static const llm_route_member_t  llm_route_members[] = {
    { "model",             LLM_ROUTE_STRING,  LLM_ROUTE_MODEL },
    { "prompt_cache_key",  LLM_ROUTE_STRING,  LLM_ROUTE_CACHE_KEY },
    { "user",              LLM_ROUTE_STRING,  LLM_ROUTE_USER },
    { "safety_identifier", LLM_ROUTE_STRING,  LLM_ROUTE_SAFETY },
    { "messages",          LLM_ROUTE_TURNS,   LLM_ROUTE_FIRST },
    { "input",             LLM_ROUTE_TURNS,   LLM_ROUTE_FIRST },
    { "prompt",            LLM_ROUTE_RAW,     LLM_ROUTE_PROMPT },
    { "input_prefix",      LLM_ROUTE_RAW,     LLM_ROUTE_PREFIX },
    { "content",           LLM_ROUTE_STRINGS, LLM_ROUTE_QUERY },
    { "query",             LLM_ROUTE_STRINGS, LLM_ROUTE_QUERY },
    { "queries",           LLM_ROUTE_STRINGS, LLM_ROUTE_QUERY },
    { "text_1",            LLM_ROUTE_STRINGS, LLM_ROUTE_QUERY },
    { NULL, 0, 0 }
};


llm_route_key_t *
llm_route_key_create(uint32_t message, uint32_t prompt)
{
    size_t            size;
    char             *p;
    uint32_t          i;
    llm_route_key_t  *k;

    const uint32_t  caps[LLM_ROUTE_TEXTS] = {
        LLM_ROUTE_WORD, LLM_ROUTE_WORD, LLM_ROUTE_WORD, LLM_ROUTE_WORD,
        prompt, prompt, message, message, message, message, LLM_ROUTE_NAME,
        LLM_ROUTE_NAME
    };

    size = sizeof(llm_route_key_t);

    for (i = 0; i < LLM_ROUTE_TEXTS; i++) {
        size += llm_min(caps[i], LLM_ROUTE_MOST);
    }

    k = malloc(size);
    if (k == NULL) {
        return NULL;
    }

    memset(k, 0, sizeof(llm_route_key_t));

    p = k->room;

    for (i = 0; i < LLM_ROUTE_TEXTS; i++) {
        k->texts[i].data = p;
        k->texts[i].cap = llm_min(caps[i], LLM_ROUTE_MOST);
        p += k->texts[i].cap;
    }

    k->field = LLM_ROUTE_TEXTS;

    return k;
}


void
llm_route_key_free(llm_route_key_t *k)
{
    free(k);
}


static void
llm_route_take(llm_route_text_t *t, const char *p, size_t len)
{
    len = llm_min(len, t->cap - t->len);

    memcpy(t->data + t->len, p, len);
    t->len += len;
}


static int
llm_route_is(const llm_route_text_t *t, const char *word)
{
    return strlen(word) == t->len && memcmp(t->data, word, t->len) == 0;
}


static int
llm_route_opens(const llm_route_key_t *k, uint32_t depth, char c)
{
    return k->depth >= depth && k->open[depth - 1] == c;
}


/* is the reader in a message, or in the text of one? */

static int
llm_route_in_turn(const llm_route_key_t *k)
{
    return k->member && k->member->way == LLM_ROUTE_TURNS
           && llm_route_opens(k, 2, '[') && llm_route_opens(k, 3, '{');
}


static void
llm_route_named_first(llm_route_key_t *k, const llm_route_text_t *name)
{
    llm_route_text_t          *t;
    const llm_route_member_t  *m;

    for (m = llm_route_members; m->name; m++) {
        t = &k->texts[m->text];

        if (!t->set && llm_route_is(name, m->name)) {
            k->member = m;

            if (m->way == LLM_ROUTE_RAW) {
                k->raw = t;
                t->set = 1;
            }

            return;
        }
    }
}


/* a name has ended: its value is next */

static void
llm_route_named(llm_route_key_t *k)
{
    const llm_route_text_t  *name;

    name = &k->texts[LLM_ROUTE_MEMBER];

    if (k->depth == 1) {
        llm_route_named_first(k, name);

    } else if (k->depth == 3 && llm_route_in_turn(k)) {
        k->field = llm_route_is(name, "role") ? LLM_ROUTE_ROLE
                   : llm_route_is(name, "content") ? LLM_ROUTE_SCRATCH
                                                   : LLM_ROUTE_TEXTS;

    } else if (k->depth == 5) {
        k->part = llm_route_is(name, "text");
    }
}


/* the text that a string beginning here, in a message, is added to, or NULL */

static llm_route_text_t *
llm_route_turn_text(llm_route_key_t *k)
{
    if (k->depth == 3) {
        return k->field == LLM_ROUTE_TEXTS ? NULL : &k->texts[k->field];
    }

    if (k->field == LLM_ROUTE_SCRATCH && k->open[3] == '['
        && (k->depth == 4
            || (k->depth == 5 && k->open[4] == '{' && k->part)))
    {
        return &k->texts[LLM_ROUTE_SCRATCH];
    }

    return NULL;
}


/* the text that a string beginning here is added to, or NULL */

static llm_route_text_t *
llm_route_target(llm_route_key_t *k)
{
    llm_route_text_t  *t;

    if (k->naming) {
        t = &k->texts[LLM_ROUTE_MEMBER];
        t->len = 0;
        return t;
    }

    if (k->member == NULL || k->raw) {
        return NULL;
    }

    t = &k->texts[k->member->text];

    if (t->set) {
        return NULL;
    }

    if (k->depth == 1
        || (k->depth == 2 && k->open[1] == '['
            && k->member->way >= LLM_ROUTE_STRINGS))
    {
        t->set = 1;
        return t;
    }

    return llm_route_in_turn(k) ? llm_route_turn_text(k) : NULL;
}


/* the text that token ids beginning here are added to: the first ones of a
   list or of several lists */

static llm_route_text_t *
llm_route_ids(llm_route_key_t *k)
{
    if (k->member == NULL || k->member->way < LLM_ROUTE_STRINGS
        || k->texts[k->member->text].set || !llm_route_opens(k, 2, '['))
    {
        return NULL;
    }

    return k->depth == 2 || (k->depth == 3 && k->open[2] == '[')
           ? &k->texts[k->member->text] : NULL;
}


static void
llm_route_swap(llm_route_key_t *k, uint32_t text)
{
    llm_route_text_t  t;

    t = k->texts[text];
    k->texts[text] = k->texts[LLM_ROUTE_SCRATCH];
    k->texts[LLM_ROUTE_SCRATCH] = t;

    k->texts[text].set = 1;
}


/* a message has ended: its role may have come after its text */

static void
llm_route_turn(llm_route_key_t *k)
{
    llm_route_text_t  *role;

    role = &k->texts[LLM_ROUTE_ROLE];

    if (k->texts[LLM_ROUTE_FIRST].set) {
        return;
    }

    if (llm_route_is(role, "user")) {
        llm_route_swap(k, LLM_ROUTE_FIRST);

    } else if (!k->texts[LLM_ROUTE_OTHER].set
               && k->texts[LLM_ROUTE_SCRATCH].len)
    {
        llm_route_swap(k, LLM_ROUTE_OTHER);
    }

    role->len = 0;
    k->texts[LLM_ROUTE_SCRATCH].len = 0;
    k->field = LLM_ROUTE_TEXTS;
}


static void
llm_route_open(llm_route_key_t *k, char c)
{
    if (k->depth < LLM_ROUTE_LEVELS) {
        k->open[k->depth] = c;
    }

    k->depth++;
    k->naming = (c == '{');
    k->part = 0;
}


static void
llm_route_close(llm_route_key_t *k)
{
    if (k->depth == 3 && llm_route_in_turn(k)) {
        llm_route_turn(k);
    }

    k->depth--;
    k->naming = 0;

    if (k->depth == 0) {
        k->done = 1;
        k->raw = NULL;
    }
}


/* after a comma: a value or a name is next */

static void
llm_route_next(llm_route_key_t *k)
{
    k->naming = k->depth <= LLM_ROUTE_LEVELS && k->open[k->depth - 1] == '{';

    if (k->depth == 1) {
        k->member = NULL;
        k->raw = NULL;
    }
}


/* reads a byte outside of strings */

static void
llm_route_byte(llm_route_key_t *k, char c)
{
    llm_route_text_t  *ids;

    k->marks++;

    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
        return;
    }

    /* a byte order mark may come first, as llm_json_to_flat() skips it */

    if (k->marks == k->bom + 1 && k->bom < 3
        && c == "\xef\xbb\xbf"[k->bom])
    {
        k->bom++;
        return;
    }

    if (k->depth == 0 && (c != '{' || k->bom == 1 || k->bom == 2)) {
        k->done = 1;
        return;
    }

    switch (c) {

    case '"':
        k->string = llm_route_target(k);
        k->in_string = 1;
        break;

    case ':':
        if (k->naming) {
            k->naming = 0;
            llm_route_named(k);
            return;
        }

        break;

    case ',':
        llm_route_next(k);
        break;

    case '{':
    case '[':
        llm_route_open(k, c);
        break;

    case '}':
    case ']':
        llm_route_close(k);
        break;

    default:
        ids = llm_route_ids(k);

        if (ids) {
            llm_route_take(ids, &c, 1);
        }
    }

    if (k->raw) {
        llm_route_take(k->raw, &c, 1);
    }
}


/* reads bytes of a string, up to its end or a byte that may be its end */

static size_t
llm_route_in_string(llm_route_key_t *k, const char *p, size_t len)
{
    size_t  n;

    n = k->escaped ? 1 : llm_api_plain_run(p, len, 1);

    if (n == 0) {
        n = 1;
        k->marks++;
        k->escaped = (*p == '\\');
        k->in_string = (*p != '"');

    } else {
        k->escaped = 0;
    }

    if (k->string && k->in_string) {
        llm_route_take(k->string, p, n);
    }

    if (k->raw) {
        llm_route_take(k->raw, p, n);
    }

    return n;
}


int
llm_route_key_add(llm_route_key_t *k, const char *p, size_t len)
{
    const char  *end;

    end = p + len;

    while (p < end && !k->done && k->marks < LLM_ROUTE_MARKS) {

        if (!k->in_string) {
            llm_route_byte(k, *p++);
            continue;
        }

        p += llm_route_in_string(k, p, (size_t) (end - p));

        if (!k->in_string && k->texts[LLM_ROUTE_CACHE_KEY].len
            && k->texts[LLM_ROUTE_MODEL].set)
        {
            k->done = 1;
        }
    }

    return k->done || k->marks >= LLM_ROUTE_MARKS ? LLM_OK : LLM_MORE;
}


/* writes the length first, so that no two lists of texts look the same */

static void
llm_route_part(llm_buf_t *b, const char *p, size_t len)
{
    uint32_t  i;

    for (i = 0; i < 4; i++) {
        llm_buf_addc(b, (char) (len >> (8 * i)));
    }

    llm_buf_add(b, p, len);
}


int
llm_route_key_end(llm_route_key_t *k, llm_str_t tenant, llm_str_t secret,
    char hex[LLM_ROUTE_KEY_LEN])
{
    int            rc;
    uint32_t       i, first, last;
    llm_buf_t      b;
    unsigned char  digest[LLM_SHA256_LEN];

    static const char  digits[] = "0123456789abcdef";

    /* the body may have been cut within a long message */

    if (llm_route_in_turn(k)) {
        llm_route_turn(k);
    }

    llm_buf_init(&b, 0);

    llm_route_part(&b, tenant.data, tenant.len);
    llm_route_part(&b, secret.data, secret.len);
    llm_route_part(&b, k->texts[LLM_ROUTE_MODEL].data,
                   k->texts[LLM_ROUTE_MODEL].len);

    first = LLM_ROUTE_USER;
    last = k->texts[LLM_ROUTE_FIRST].set ? LLM_ROUTE_FIRST : LLM_ROUTE_OTHER;

    if (k->texts[LLM_ROUTE_CACHE_KEY].len) {
        first = LLM_ROUTE_CACHE_KEY;
        last = LLM_ROUTE_CACHE_KEY;
    }

    for (i = first; i <= last; i++) {
        if (k->texts[i].len) {
            llm_buf_addc(&b, (char) i);
            llm_route_part(&b, k->texts[i].data, k->texts[i].len);
        }
    }

    rc = b.failed ? LLM_ERROR : llm_sha256(b.data, b.len, digest);

    llm_buf_free(&b);

    if (rc != LLM_OK) {
        return LLM_ERROR;
    }

    for (i = 0; i < LLM_ROUTE_KEY_LEN / 2; i++) {
        hex[2 * i] = digits[digest[i] >> 4];
        hex[2 * i + 1] = digits[digest[i] & 15];
    }

    return LLM_OK;
}
