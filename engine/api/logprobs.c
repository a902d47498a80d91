/*
 * Log probabilities as JSON: what endpoints share.  The form of an item and
 * of the arrays is the endpoint's.
 */

#include "engine/api/endpoint.h"

#include <math.h>

/* written for a probability of 0, as OpenAI does */
#define LLM_API_NEVER  -9999.0


/* digits without printf(): exact to 1e-9, whatever the locale */

void
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


/* writes "token_id:5", vLLM's form */

void
llm_api_add_token_id(llm_buf_t *out, int32_t id)
{
    (void) llm_buf_adds(out, "\"token_id:");
    llm_api_add_uint(out, (uint64_t) id);
    (void) llm_buf_addc(out, '"');
}


size_t
llm_api_count_chars(const char *s, size_t len)
{
    size_t  i, n;

    n = 0;

    for (i = 0; i < len; i++) {
        n += ((unsigned char) s[i] & 0xc0) != 0x80;
    }

    return n;
}


void
llm_api_count_text(llm_api_place_t *place, const llm_event_t *ev)
{
    place->bytes += ev->u.text.text.len;
    place->chars += llm_api_count_chars(llm_ref_data(ev, ev->u.text.text),
                                        ev->u.text.text.len);
}


void
llm_api_add_logprobs(llm_buf_t *out, const llm_api_t *a,
    const llm_api_logprobs_t *format, const llm_api_place_t *place,
    const llm_event_t *ev)
{
    uint32_t                    i, k;
    const llm_token_logprob_t  *t;

    if (a->n_logprobs < 0 || ev->u.text.logprobs.len == 0) {
        (void) llm_buf_adds(out, "null");
        return;
    }

    t = llm_ref_data(ev, ev->u.text.logprobs);

    for (k = 0; k < format->n_arrays; k++) {
        (void) llm_buf_adds(out, format->before[k]);

        for (i = 0; i < ev->u.text.logprobs.len; i++) {
            if (i) {
                (void) llm_buf_addc(out, ',');
            }

            format->item(out, a, place, ev, k, &t[i]);
        }
    }

    (void) llm_buf_adds(out, format->after);
}
