/*
 * The usage in answers of other servers; see proxied.h.
 */

#include "engine/api/proxied.h"

#include "engine/api/json.h"
#include "engine/base/flat.h"

#include <math.h>
#include <string.h>

typedef enum {
    LLM_PROXIED_NAME = 0,               /* looks for "usage" */
    LLM_PROXIED_COLON,
    LLM_PROXIED_VALUE,
    LLM_PROXIED_INSIDE
} llm_proxied_state_t;


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

    return n > 0 && n < 1e15 ? (uint64_t) n : 0;
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

        if (o->type == LLM_FLAT_OBJECT) {
            llm_proxied_take(p, o);
        }
    }

    llm_buf_free(&flat);
}


/* a byte of the object; the last one ends it */

static void
llm_proxied_inside(llm_proxied_t *p, char ch)
{
    if (p->len == sizeof(p->object)) {
        p->state = LLM_PROXIED_NAME;
        p->matched = 0;
        return;
    }

    p->object[p->len++] = ch;

    if (p->string) {
        p->string = p->escaped || ch != '"';
        p->escaped = !p->escaped && ch == '\\';

    } else if (ch == '"') {
        p->string = 1;

    } else if (ch == '{') {
        p->depth++;

    } else if (ch == '}' && --p->depth == 0) {
        llm_proxied_object(p);
        p->state = LLM_PROXIED_NAME;
        p->matched = 0;
    }
}


/* a byte outside of an object */

static void
llm_proxied_outside(llm_proxied_t *p, char ch)
{
    static const char  name[] = "\"usage\"";

    if (p->state == LLM_PROXIED_NAME) {
        p->matched = !p->escaped && ch == name[p->matched] ? p->matched + 1
                     : !p->escaped && ch == '"';

        if (p->matched == sizeof(name) - 1) {
            p->state = LLM_PROXIED_COLON;
        }

    } else if (ch == (p->state == LLM_PROXIED_COLON ? ':' : '{')) {
        p->state++;

        if (p->state == LLM_PROXIED_INSIDE) {
            p->depth = 1;
            p->string = 0;
            p->object[0] = ch;
            p->len = 1;
        }

    } else if (ch != ' ' && ch != '\t' && ch != '\r' && ch != '\n') {
        p->state = LLM_PROXIED_NAME;
        p->matched = ch == '"';
    }

    p->escaped = !p->escaped && ch == '\\';
}


/* counts lines that begin with "data: {", with or without the space */

static void
llm_proxied_line(llm_proxied_t *p, char ch)
{
    static const char  data[] = "data:{";

    if (ch == '\n') {
        p->line = 0;

    } else if (p->line < sizeof(data) - 1) {

        if (ch == data[p->line]) {
            p->line++;
            p->events += p->line == sizeof(data) - 1;

        } else if (ch != ' ' || p->line != sizeof(data) - 2) {
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

        if (p->state == LLM_PROXIED_INSIDE) {
            llm_proxied_inside(p, data[i]);

        } else {
            llm_proxied_outside(p, data[i]);
        }
    }

    p->bytes += len;
}
