/*
 * Answers that are a list of items and have no text: vectors, scores.  The
 * endpoint writes an item, a little at a time; the list around the items is
 * the same for all endpoints.
 */

#include "engine/api/endpoint.h"

#include <math.h>


void
llm_api_write_list_head(llm_api_reader_t *rd, const char *prefix,
    const char *member)
{
    llm_buf_t              *out;
    const llm_api_conf_t   *conf;
    const llm_api_model_t  *m;

    out = &rd->head;
    conf = rd->conf;
    m = &conf->models[rd->r.model];

    (void) llm_buf_addf(out, "{\"id\":\"%s", prefix);
    (void) llm_json_add_text(out, conf->id.data, conf->id.len);
    (void) llm_buf_addf(out, "\",\"object\":\"list\",\"created\":%lld,"
                        "\"model\":", (long long) conf->now);
    (void) llm_json_add_string(out, m->name.data, m->name.len);
    (void) llm_buf_addf(out, ",\"%s\":[", member);
}


int
llm_api_write_array(llm_api_t *a, uint32_t n, llm_api_item_pt item, size_t max,
    llm_buf_t *out)
{
    llm_api_cursor_t  *cur;

    cur = &a->cursor;

    if (cur->member == 0) {
        (void) llm_buf_add(out, a->head.data, a->head.len);
        cur->member = 1;
    }

    while (cur->choice < n) {
        if (out->len >= max) {
            return out->failed ? LLM_ERROR : LLM_MORE;
        }

        if (item(a, cur, out) == LLM_OK) {
            cur->choice++;
        }

        if (out->failed) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


static void
llm_api_add_prompt_usage(llm_buf_t *out, const llm_api_t *a)
{
    (void) llm_buf_addf(out,
                        "{\"prompt_tokens\":%u,\"total_tokens\":%u,"
                        "\"prompt_tokens_details\":{\"cached_tokens\":%u}}",
                        a->usage.prompt_tokens, a->usage.prompt_tokens,
                        a->usage.cached_tokens);
}


int
llm_api_write_list(llm_api_t *a, uint32_t n, llm_api_item_pt item, size_t max,
    llm_buf_t *out)
{
    int  rc;

    rc = llm_api_write_array(a, n, item, max, out);
    if (rc != LLM_OK) {
        return rc;
    }

    (void) llm_buf_adds(out, "],\"usage\":");
    llm_api_add_prompt_usage(out, a);
    (void) llm_buf_addc(out, '}');

    return out->failed ? LLM_ERROR : LLM_OK;
}


/* d = m * 10^(e - 8) with 1e8 <= m < 1e9, rounded; returns m */

static uint32_t
llm_api_nine_digits(double d, int *e)
{
    double  m;

    static const double  powers[] = {
        1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13
    };

    if (d >= 1e-5 && d < 1) {
        for (*e = -1; d * powers[-*e] < 1; (*e)--) { /* void */ }

        m = d * powers[8 - *e];

    } else {
        *e = (int) floor(log10(d));
        m = d * pow(10, 8 - *e);
    }

    /* the exponent is an estimate and may be off by one */

    if (m < 99999999.5) {
        m *= 10;
        (*e)--;

    } else if (m >= 999999999.5) {
        m /= 10;
        (*e)++;
    }

    return (uint32_t) (m + 0.5);
}


/*
 * Writes nine digits, without zeros at the end: reading them gives the same
 * float.  An answer may have millions of numbers, for which printf() would
 * take seconds.
 */

void
llm_api_add_float(llm_buf_t *out, float v)
{
    int       e, n, i;
    char      digits[9];
    uint32_t  m;

    if (v == 0) {
        (void) llm_buf_addc(out, '0');
        return;
    }

    if (v < 0) {
        (void) llm_buf_addc(out, '-');
    }

    m = llm_api_nine_digits(fabs((double) v), &e);

    for (n = 9; n > 0; n--) {
        digits[n - 1] = (char) ('0' + m % 10);
        m /= 10;
    }

    for (n = 9; n > 1 && digits[n - 1] == '0'; n--) { /* void */ }

    /* 0.00123 for numbers below 1 that are not too small, otherwise 1.23e-9 */

    if (e < 0 && e >= -5) {
        (void) llm_buf_add(out, "0.00000", (size_t) (1 - e));
        (void) llm_buf_add(out, digits, (size_t) n);
        return;
    }

    if (e >= 0 && e < 9) {
        for (i = 0; i < llm_max(n, e + 1); i++) {
            if (i == e + 1) {
                (void) llm_buf_addc(out, '.');
            }

            (void) llm_buf_addc(out, i < n ? digits[i] : '0');
        }

        return;
    }

    (void) llm_buf_addc(out, digits[0]);

    if (n > 1) {
        (void) llm_buf_addc(out, '.');
        (void) llm_buf_add(out, digits + 1, (size_t) (n - 1));
    }

    (void) llm_buf_addf(out, "e%d", e);
}
