/*
 * Log probabilities as JSON.  Chat: objects {token, logprob, bytes,
 * top_logprobs}.  Completions: the arrays tokens, token_logprobs,
 * top_logprobs (an object for each token) and text_offset, in characters.
 *
 * Tokens that are not whole UTF-8 characters are told apart by their bytes:
 * "\xe2\x80" in chat, "bytes:\xe2\x80" in completions, as OpenAI does.
 */

#include "engine/api/api_internal.h"
#include "engine/base/utf8.h"

#include <math.h>

/* what OpenAI says for a probability of 0 */
#define LLM_API_NEVER  -9999.0

enum {
    TOKENS = 0,                         /* chat: its only array */
    TOKEN_LOGPROBS,
    TOP_LOGPROBS,
    TEXT_OFFSET
};


/* digits without printf(): exact to 1e-9, whatever the locale */

static void
llm_api_add_logprob(llm_buf_t *out, float logprob)
{
    int       i;
    char      digits[9];
    double    v;
    uint64_t  n, frac;

    v = logprob;

    if (isnan(v)) {
        (void) llm_buf_adds(out, "null");
        return;
    }

    v = llm_max(v, LLM_API_NEVER);
    v = llm_min(v, 0.0);
    n = (uint64_t) (-v * 1e9 + 0.5);

    if (n) {
        (void) llm_buf_addc(out, '-');
    }

    llm_api_add_uint(out, n / 1000000000);
    frac = n % 1000000000;

    for (i = 8; i >= 0; i--) {
        digits[i] = (char) ('0' + frac % 10);
        frac /= 10;
    }

    (void) llm_buf_addc(out, '.');
    (void) llm_buf_add(out, digits, 9);
}


static void
llm_api_add_token(llm_buf_t *out, const llm_api_t *a, const char *s,
    size_t len)
{
    size_t  i, n;

    if (llm_utf8_valid(s, len) == len) {
        (void) llm_json_add_string(out, s, len);
        return;
    }

    (void) llm_buf_adds(out, a->is_chat ? "\"" : "\"bytes:");

    for (i = 0; i < len; i += n) {
        n = llm_utf8_decode(s + i, len - i, NULL);

        if (n && a->is_chat) {
            (void) llm_json_add_text(out, s + i, n);

        } else {
            n = 1;
            (void) llm_buf_addf(out, "\\\\x%02x", (unsigned char) s[i]);
        }
    }

    (void) llm_buf_addc(out, '"');
}


/* "token":…,"logprob":…,"bytes":[…] */

static void
llm_api_add_entry(llm_buf_t *out, const llm_api_t *a, float logprob,
    const char *s, size_t len)
{
    size_t  i;

    (void) llm_buf_adds(out, "\"token\":");
    llm_api_add_token(out, a, s, len);
    (void) llm_buf_adds(out, ",\"logprob\":");
    llm_api_add_logprob(out, logprob);
    (void) llm_buf_adds(out, ",\"bytes\":[");

    for (i = 0; i < len; i++) {
        if (i) {
            (void) llm_buf_addc(out, ',');
        }

        llm_api_add_uint(out, (unsigned char) s[i]);
    }

    (void) llm_buf_addc(out, ']');
}


/*
 * The engine sends the n most likely and, behind them, the sampled token
 * where it is not one of them.  Chat lists n, the sampled one among them.
 */

static void
llm_api_add_chat_item(llm_buf_t *out, const llm_api_t *a,
    const llm_event_t *ev, const llm_token_logprob_t *t)
{
    int                        first;
    uint32_t                   i, n;
    const llm_top_logprob_t   *top;

    (void) llm_buf_addc(out, '{');
    llm_api_add_entry(out, a, t->logprob, llm_ref_data(ev, t->bytes),
                      t->bytes.len);
    (void) llm_buf_adds(out, ",\"top_logprobs\":[");

    top = llm_ref_data(ev, t->top);
    n = (uint32_t) a->n_logprobs;
    first = 1;

    for (i = 0; i < t->top.len; i++) {
        if (t->top.len > n && i + 1 == n) {
            continue;
        }

        (void) llm_buf_adds(out, first ? "{" : ",{");
        llm_api_add_entry(out, a, top[i].logprob,
                          llm_ref_data(ev, top[i].bytes), top[i].bytes.len);
        (void) llm_buf_addc(out, '}');
        first = 0;
    }

    (void) llm_buf_adds(out, "]}");
}


/* {"token": logprob}, with the sampled token always there */

static void
llm_api_add_top(llm_buf_t *out, const llm_api_t *a, const llm_event_t *ev,
    const llm_token_logprob_t *t)
{
    int                        seen;
    uint32_t                   i;
    const llm_top_logprob_t   *top;

    /* the first token of an echoed prompt has no probability */

    if (isnan(t->logprob)) {
        (void) llm_buf_adds(out, "null");
        return;
    }

    top = llm_ref_data(ev, t->top);
    seen = 0;

    (void) llm_buf_addc(out, '{');

    for (i = 0; i < t->top.len; i++) {
        if (i) {
            (void) llm_buf_addc(out, ',');
        }

        llm_api_add_token(out, a, llm_ref_data(ev, top[i].bytes),
                          top[i].bytes.len);
        (void) llm_buf_addc(out, ':');
        llm_api_add_logprob(out, top[i].logprob);

        seen |= top[i].id == t->id;
    }

    if (!seen) {
        if (i) {
            (void) llm_buf_addc(out, ',');
        }

        llm_api_add_token(out, a, llm_ref_data(ev, t->bytes), t->bytes.len);
        (void) llm_buf_addc(out, ':');
        llm_api_add_logprob(out, t->logprob);
    }

    (void) llm_buf_addc(out, '}');
}


/* characters that begin in s */

static size_t
llm_api_count_chars(const char *s, size_t len)
{
    size_t  i, n;

    n = 0;

    for (i = 0; i < len; i++) {
        n += ((unsigned char) s[i] & 0xc0) != 0x80;
    }

    return n;
}


/* bytes to characters: the event's text begins at the place */

static uint64_t
llm_api_char_offset(const llm_api_place_t *place, const llm_event_t *ev,
    uint32_t offset)
{
    size_t  in;

    if (offset < place->bytes) {
        return place->chars;
    }

    in = llm_min(offset - place->bytes, (size_t) ev->u.text.text.len);

    return place->chars
           + llm_api_count_chars(llm_ref_data(ev, ev->u.text.text), in);
}


void
llm_api_count_text(llm_api_place_t *place, const llm_event_t *ev)
{
    place->bytes += ev->u.text.text.len;
    place->chars += llm_api_count_chars(llm_ref_data(ev, ev->u.text.text),
                                        ev->u.text.text.len);
}


int
llm_api_counts_chars(const llm_api_t *a, uint32_t array)
{
    return !a->is_chat && array == TEXT_OFFSET;
}


void
llm_api_add_logprob_item(llm_buf_t *out, const llm_api_t *a,
    const llm_api_place_t *place, const llm_event_t *ev, uint32_t array,
    uint32_t i)
{
    const llm_token_logprob_t  *t;

    t = llm_ref_data(ev, ev->u.text.logprobs);
    t += i;

    if (a->is_chat) {
        llm_api_add_chat_item(out, a, ev, t);
        return;
    }

    switch (array) {

    case TOKENS:
        llm_api_add_token(out, a, llm_ref_data(ev, t->bytes), t->bytes.len);
        break;

    case TOKEN_LOGPROBS:
        llm_api_add_logprob(out, t->logprob);
        break;

    case TOP_LOGPROBS:
        llm_api_add_top(out, a, ev, t);
        break;

    case TEXT_OFFSET:
        llm_api_add_uint(out, llm_api_char_offset(place, ev,
                                                  t->text_offset));
        break;
    }
}


uint32_t
llm_api_logprob_arrays(const llm_api_t *a)
{
    return a->is_chat ? 1 : LLM_API_LOGPROB_ARRAYS;
}


void
llm_api_open_logprobs(llm_buf_t *out, const llm_api_t *a, uint32_t array)
{
    static const char *const  before[] = {
        "{\"tokens\":[", "],\"token_logprobs\":[", "],\"top_logprobs\":[",
        "],\"text_offset\":["
    };

    (void) llm_buf_adds(out, a->is_chat ? "{\"content\":[" : before[array]);
}


void
llm_api_close_logprobs(llm_buf_t *out, const llm_api_t *a)
{
    (void) llm_buf_adds(out, a->is_chat ? "],\"refusal\":null}" : "]}");
}


void
llm_api_add_logprobs(llm_buf_t *out, const llm_api_t *a,
    const llm_api_place_t *place, const llm_event_t *ev)
{
    uint32_t  i, k;

    if (a->n_logprobs < 0 || ev->u.text.logprobs.len == 0) {
        (void) llm_buf_adds(out, "null");
        return;
    }

    for (k = 0; k < llm_api_logprob_arrays(a); k++) {
        llm_api_open_logprobs(out, a, k);

        for (i = 0; i < ev->u.text.logprobs.len; i++) {
            if (i) {
                (void) llm_buf_addc(out, ',');
            }

            llm_api_add_logprob_item(out, a, place, ev, k, i);
        }
    }

    llm_api_close_logprobs(out, a);
}
