/*
 * The usage in answers of other servers; see proxied.h.
 */

#include "engine/api/proxied.h"

#include "engine/api/json.h"
#include "engine/base/flat.h"

#include <math.h>
#include <string.h>

/* how deep "usage" may stand */
#define LLM_PROXIED_DEPTH  2

/* more tokens than any answer has: what says so is not believed */
#define LLM_PROXIED_MOST   1000000000000000ull

typedef enum {
    LLM_PROXIED_SEEK = 0,
    LLM_PROXIED_NAMED,                  /* behind a name that is known */
    LLM_PROXIED_VALUE,                  /* behind it and a colon */
    LLM_PROXIED_PLAIN,                  /* in a number or a word */
    LLM_PROXIED_INSIDE                  /* in an object */
} llm_proxied_state_t;

typedef enum {
    LLM_PROXIED_USAGE = 0,
    LLM_PROXIED_TIMINGS,
    LLM_PROXIED_PROMPT,
    LLM_PROXIED_ANSWER,
    LLM_PROXIED_DONE,
    LLM_PROXIED_STOP
} llm_proxied_what_t;

/* how a line begins that is an event */
static const char  llm_proxied_data[] = "data:{";

/* Ollama's members, and llama-server's: its "timings" are without the part of
   the prompt that was cached, which tokens_evaluated has */

static const struct {
    const char  *name;
    uint32_t     what;
} llm_proxied_names[] = {
    { "usage", LLM_PROXIED_USAGE },
    { "prompt_eval_count", LLM_PROXIED_PROMPT },
    { "eval_count", LLM_PROXIED_ANSWER },
    { "done", LLM_PROXIED_DONE },
    { "tokens_evaluated", LLM_PROXIED_PROMPT },
    { "tokens_predicted", LLM_PROXIED_ANSWER },
    { "stop", LLM_PROXIED_STOP },
    { "timings", LLM_PROXIED_TIMINGS }
};


void
llm_proxied_init(llm_proxied_t *p)
{
    memset(p, 0, offsetof(llm_proxied_t, object));
}


/* the member's value, or 0 if it is no number of tokens */

static uint64_t
llm_proxied_number(const llm_flat_t *o, const char *name)
{
    double             n;
    const llm_flat_t  *v;

    v = o ? llm_flat_get(o, name) : NULL;

    if (v == NULL || (v->type != LLM_FLAT_INT && v->type != LLM_FLAT_DOUBLE)) {
        return 0;
    }

    n = ceil(llm_flat_double(v));

    return n > 0 && n < LLM_PROXIED_MOST ? (uint64_t) n : 0;
}


static uint64_t
llm_proxied_detail(const llm_flat_t *o, const char *name)
{
    const llm_flat_t  *v;

    v = llm_flat_get(o, name);

    return v && v->type == LLM_FLAT_OBJECT
           ? llm_proxied_number(v, "cached_tokens") : 0;
}


/* Anthropic's input_tokens are without those that were read from its cache or
   written to it, which have members of their own */

static void
llm_proxied_take(llm_proxied_t *p, const llm_flat_t *o)
{
    uint64_t  prompt, cached, more, answer, seconds;

    more = llm_proxied_number(o, "cache_read_input_tokens");

    prompt = llm_max(llm_proxied_number(o, "prompt_tokens"),
                     llm_proxied_number(o, "input_tokens") + more
                     + llm_proxied_number(o, "cache_creation_input_tokens"));
    cached = llm_max(llm_proxied_detail(o, "prompt_tokens_details"),
                     llm_proxied_detail(o, "input_tokens_details"));
    cached = llm_max(cached, more);
    answer = llm_max(llm_proxied_number(o, "completion_tokens"),
                     llm_proxied_number(o, "output_tokens"));
    seconds = llm_proxied_number(o, "seconds");

    p->prompt = llm_max(p->prompt, prompt);
    p->cached = llm_min(llm_max(p->cached, cached), p->prompt);
    p->answer = llm_max(p->answer, answer);
    p->seconds = llm_max(p->seconds, seconds);
    p->found |= prompt || answer || seconds;
}


static void
llm_proxied_object(llm_proxied_t *p)
{
    llm_buf_t          flat;
    llm_err_t          err;
    const llm_flat_t  *o;

    llm_buf_init(&flat, 0);

    if (llm_json_to_flat(p->object, p->len, NULL, &flat, &err) == LLM_OK) {
        o = (const llm_flat_t *) flat.data;

        if (p->what == LLM_PROXIED_TIMINGS) {
            p->own.cached = llm_proxied_number(o, "cache_n");

        } else if (o->type == LLM_FLAT_OBJECT) {
            llm_proxied_take(p, o);
        }
    }

    llm_buf_free(&flat);
}


/* the number that was kept, or 0 if it is no number of tokens */

static uint64_t
llm_proxied_digits(const llm_proxied_t *p)
{
    size_t    i;
    uint64_t  n;

    for (i = 0, n = 0; i < p->len; i++) {
        if (p->object[i] < '0' || p->object[i] > '9'
            || n >= LLM_PROXIED_MOST / 10)
        {
            return 0;
        }

        n = n * 10 + (uint64_t) (p->object[i] - '0');
    }

    return n;
}


static int
llm_proxied_is(const llm_proxied_t *p, const char *word)
{
    return p->len == strlen(word) && memcmp(p->object, word, p->len) == 0;
}


/* a number or a word is complete */

static void
llm_proxied_plain(llm_proxied_t *p)
{
    if (p->state != LLM_PROXIED_PLAIN) {
        return;
    }

    p->state = LLM_PROXIED_SEEK;

    switch (p->what) {

    case LLM_PROXIED_PROMPT:
        p->own.prompt = llm_proxied_digits(p);
        break;

    case LLM_PROXIED_ANSWER:
        p->own.answer = llm_proxied_digits(p);
        break;

    case LLM_PROXIED_DONE:
        p->own.more = llm_proxied_is(p, "false");
        p->own.done = llm_proxied_is(p, "true");
        break;

    default:                            /* LLM_PROXIED_STOP */
        p->own.stop = llm_proxied_is(p, "true");
    }
}


/* the object that has the figures is complete.  An Ollama that is done and has
   no figures has used nothing */

static void
llm_proxied_close(llm_proxied_t *p)
{
    llm_proxied_own_t  *o = &p->own, *sum = &p->sum;

    o->cached = llm_min(o->cached, o->prompt);

    if (o->done || o->stop || p->base == 2) {
        sum->prompt = llm_min(sum->prompt + o->prompt, LLM_PROXIED_MOST);
        sum->cached = llm_min(sum->cached + o->cached, LLM_PROXIED_MOST);
        sum->answer = llm_min(sum->answer + o->answer, LLM_PROXIED_MOST);
    }

    p->prompt = llm_max(p->prompt, llm_max(o->prompt, sum->prompt));
    p->cached = llm_max(p->cached, llm_max(o->cached, sum->cached));
    p->answer = llm_max(p->answer, llm_max(o->answer, sum->answer));
    p->found |= o->prompt || o->answer || o->done;
    p->events += o->more && p->line != sizeof(llm_proxied_data) - 1;

    memset(o, 0, sizeof(*o));
}


/* is the string a name that is looked for, where it stands? */

static int
llm_proxied_known(llm_proxied_t *p)
{
    size_t       i;
    const char  *name;

    for (i = 0; i < llm_nelems(llm_proxied_names); i++) {
        name = llm_proxied_names[i].name;

        if (p->name_len == strlen(name)
            && memcmp(p->name, name, p->name_len) == 0)
        {
            p->what = llm_proxied_names[i].what;

            return p->what == LLM_PROXIED_USAGE
                   ? p->depth <= LLM_PROXIED_DEPTH : p->depth == p->base;
        }
    }

    return 0;
}


/* a byte of a string */

static void
llm_proxied_string(llm_proxied_t *p, char ch)
{
    if (p->escaped || ch == '\\') {
        p->escaped = !p->escaped;
        p->name_len = UINT32_MAX;

    } else if (ch == '"') {
        p->string = 0;

        if (p->state != LLM_PROXIED_INSIDE) {
            p->state = llm_proxied_known(p) ? LLM_PROXIED_NAMED
                                            : LLM_PROXIED_SEEK;
        }

    } else if (p->name_len < sizeof(p->name)) {
        p->name[p->name_len++] = ch;

    } else {
        p->name_len = UINT32_MAX;
    }
}


/* a brace or a bracket that opens; returns 1 if the member's object begins */

static int
llm_proxied_open(llm_proxied_t *p, char ch)
{
    if (p->depth == 0) {
        p->base = ch == '{' ? 1 : 2;
        memset(&p->own, 0, sizeof(p->own));
    }

    p->depth++;

    if (p->state != LLM_PROXIED_VALUE || ch != '{'
        || p->what > LLM_PROXIED_TIMINGS)
    {
        return 0;
    }

    p->state = LLM_PROXIED_INSIDE;
    p->inside = p->depth;
    p->len = 0;

    return 1;
}


/* one that closes */

static void
llm_proxied_shut(llm_proxied_t *p, char ch)
{
    llm_proxied_plain(p);

    if (ch == '}' && p->depth == p->base) {
        llm_proxied_close(p);
    }

    p->depth -= p->depth != 0;
}


/* a byte of a value that is no string, object or array; returns 1 if it is
   kept */

static int
llm_proxied_letter(llm_proxied_t *p, char ch)
{
    if (p->state == LLM_PROXIED_VALUE && p->what > LLM_PROXIED_TIMINGS) {
        p->state = LLM_PROXIED_PLAIN;
        p->len = 0;
    }

    if (p->state != LLM_PROXIED_PLAIN || p->len == sizeof(p->object)) {
        return 0;
    }

    p->object[p->len++] = ch;

    return 1;
}


/* a byte outside of strings */

static void
llm_proxied_mark(llm_proxied_t *p, char ch)
{
    switch (ch) {

    case ' ': case '\t': case '\r': case '\n':
        return;

    case '"':
        p->string = 1;
        p->name_len = 0;
        return;

    case '{': case '[':
        if (llm_proxied_open(p, ch)) {
            return;
        }

        break;

    case '}': case ']':
        llm_proxied_shut(p, ch);
        break;

    case ',':
        llm_proxied_plain(p);
        break;

    case ':':
        if (p->state == LLM_PROXIED_NAMED) {
            p->state = LLM_PROXIED_VALUE;
            return;
        }

        break;

    default:
        if (llm_proxied_letter(p, ch)) {
            return;
        }
    }

    if (p->state != LLM_PROXIED_INSIDE) {
        p->state = LLM_PROXIED_SEEK;
    }
}


/* keeps a byte of the object; the last one ends it */

static void
llm_proxied_keep(llm_proxied_t *p, char ch)
{
    if (p->len == sizeof(p->object)) {
        p->state = LLM_PROXIED_SEEK;
        return;
    }

    p->object[p->len++] = ch;

    if (p->depth < p->inside) {
        llm_proxied_object(p);
        p->state = LLM_PROXIED_SEEK;
    }
}


/* a line that begins with "data: {", with or without the space, is an event,
   and its JSON begins there */

static void
llm_proxied_line(llm_proxied_t *p, char ch)
{
    if (ch == '\n') {
        p->line = 0;

    } else if (p->line < sizeof(llm_proxied_data) - 1) {

        if (ch == llm_proxied_data[p->line]) {
            p->line++;

            if (p->line == sizeof(llm_proxied_data) - 1) {
                p->events++;
                p->state = LLM_PROXIED_SEEK;
                p->string = 0;
                p->escaped = 0;
                p->depth = 0;
            }

        } else if (ch != ' ' || p->line != sizeof(llm_proxied_data) - 2) {
            p->line = UINT32_MAX;
        }
    }
}


void
llm_proxied_read(llm_proxied_t *p, const char *data, size_t len)
{
    size_t  i;

    for (i = 0; i < len; i++) {
        llm_proxied_line(p, data[i]);

        if (p->string) {
            llm_proxied_string(p, data[i]);

        } else {
            llm_proxied_mark(p, data[i]);
        }

        if (p->state == LLM_PROXIED_INSIDE) {
            llm_proxied_keep(p, data[i]);
        }
    }

    p->bytes += len;
}
