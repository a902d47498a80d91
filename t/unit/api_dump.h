/*
 * Flat values and flat requests as text, for the tests of the wire formats.
 */

#ifndef LLM_API_DUMP_H
#define LLM_API_DUMP_H

#include "engine/llm.h"

#include <stdio.h>


static inline void
dump_flat(const llm_flat_t *v, llm_buf_t *out)
{
    uint32_t           i;
    llm_str_t          s;
    const llm_flat_t  *child;

    switch (v->type) {

    case LLM_FLAT_NULL:
        llm_buf_adds(out, "null");
        return;

    case LLM_FLAT_BOOL:
        llm_buf_adds(out, llm_flat_int(v) ? "true" : "false");
        return;

    case LLM_FLAT_INT:
        llm_buf_addf(out, "%lld", (long long) llm_flat_int(v));
        return;

    case LLM_FLAT_DOUBLE:
        s = llm_flat_digits(v);

        if (s.len) {
            llm_buf_addf(out, "n%.*s", (int) s.len, s.data);

        } else {
            llm_buf_addf(out, "d%.17g", llm_flat_double(v));
        }

        return;

    case LLM_FLAT_STRING:
        s = llm_flat_str(v);
        llm_buf_addf(out, "'%.*s'", (int) s.len, s.data);
        return;
    }

    llm_buf_addc(out, v->type == LLM_FLAT_ARRAY ? '[' : '{');

    child = llm_flat_first(v);

    for (i = 0; child; i++) {
        if (i) {
            llm_buf_addc(out, v->type == LLM_FLAT_OBJECT && i % 2 ? ':'
                                                                  : ',');
        }

        dump_flat(child, out);
        child = llm_flat_next(v, child);
    }

    llm_buf_addc(out, v->type == LLM_FLAT_ARRAY ? ']' : '}');
}


static inline void
dump_ids(const llm_request_t *r, llm_ref_t ref, llm_buf_t *out)
{
    uint32_t        i;
    const int32_t  *ids;

    ids = llm_ref_data(r, ref);
    llm_buf_addc(out, '[');

    for (i = 0; i < ref.len; i++) {
        llm_buf_addf(out, i ? ",%d" : "%d", ids[i]);
    }

    llm_buf_addc(out, ']');
}


/* a prompt of texts and ids */

static inline void
dump_parts(const llm_request_t *r, llm_ref_t ref, llm_buf_t *out)
{
    uint32_t                 i;
    const llm_prompt_ref_t  *p;

    p = llm_ref_data(r, ref);
    llm_buf_addc(out, '(');

    for (i = 0; i < ref.len; i++) {
        if (p[i].is_ids) {
            dump_ids(r, p[i].ref, out);

        } else {
            llm_buf_addf(out, "'%.*s'", (int) p[i].ref.len,
                         (const char *) llm_ref_data(r, p[i].ref));
        }
    }

    llm_buf_addc(out, ')');
}


static inline void
dump_rule(const llm_request_t *r, llm_buf_t *out)
{
    static const char *const  kinds[] = {
        "none", "object", "schema", "strict", "gbnf", "regex", "choice"
    };

    llm_buf_addf(out, " rule=%s", kinds[r->rule_kind]);

    if (r->rule_kind == LLM_RULE_NONE) {
        return;
    }

    llm_buf_addf(out, " of=%.*s is=", (int) r->rule_name.len,
                 (const char *) llm_ref_data(r, r->rule_name));

    if (r->rule_kind == LLM_RULE_SCHEMA || r->rule_kind == LLM_RULE_STRICT
        || r->rule_kind == LLM_RULE_CHOICE)
    {
        dump_flat(llm_ref_data(r, r->rule), out);

    } else {
        llm_buf_add(out, llm_ref_data(r, r->rule), r->rule.len);
    }
}


static inline void
dump_strings(const llm_request_t *r, llm_ref_t ref, llm_buf_t *out)
{
    uint32_t          i;
    const llm_ref_t  *s;

    s = llm_ref_data(r, ref);
    llm_buf_addc(out, '[');

    for (i = 0; i < ref.len; i++) {
        llm_buf_addf(out, "'%.*s'", (int) s[i].len,
                     (const char *) llm_ref_data(r, s[i]));
    }

    llm_buf_addc(out, ']');
}


static inline void
dump_infill(const llm_request_t *r, llm_buf_t *out)
{
    uint32_t             i;
    const llm_extra_t   *extra;
    const llm_infill_t  *in;

    if (r->infill.len == 0) {
        return;
    }

    in = llm_ref_data(r, r->infill);
    extra = llm_ref_data(r, in->extra);

    llm_buf_addf(out, " infill='%.*s'[", (int) in->suffix.len,
                 (const char *) llm_ref_data(r, in->suffix));

    for (i = 0; i < in->extra.len; i++) {
        llm_buf_addf(out, "%s'%.*s':'%.*s'", i ? "," : "",
                     (int) extra[i].name.len,
                     (const char *) llm_ref_data(r, extra[i].name),
                     (int) extra[i].text.len,
                     (const char *) llm_ref_data(r, extra[i].text));
    }

    llm_buf_addc(out, ']');
}


/* every field as " name=value", so that a test can look for one of them */

static inline void
dump_request(const llm_request_t *r, llm_buf_t *out)
{
    uint32_t                 i;
    const llm_sampling_t    *s;
    const llm_text_bias_t   *text;
    const llm_logit_bias_t  *bias;
    const llm_prompt_ref_t  *p;

    s = &r->sampling;

    llm_buf_addf(out, " task=%u", r->task);
    llm_buf_addf(out, " model=%u kind=%u flags=%u n=%u max=%d min=%d "
                 "priority=%d salt=%d", r->model, r->kind, r->flags, r->n,
                 r->max_tokens, r->min_tokens, r->priority, r->salt != 0);
    llm_buf_addf(out, " temperature=%g top_p=%g min_p=%g typical_p=%g "
                 "presence=%g frequency=%g repetition=%g top_k=%d "
                 "logprobs=%d seed=%s%lld", s->temperature, s->top_p,
                 s->min_p, s->typical_p, s->presence_penalty,
                 s->frequency_penalty, s->repetition_penalty, s->top_k,
                 s->n_logprobs, s->has_seed ? "" : "no",
                 (long long) s->seed);

    llm_buf_addf(out, " last_n=%d dry=%g,%g,%d,%d xtc=%g,%g sigma=%g "
                 "dynatemp=%g,%g", s->repeat_last_n, s->dry_multiplier,
                 s->dry_base, s->dry_allowed_length, s->dry_penalty_last_n,
                 s->xtc_probability, s->xtc_threshold, s->top_n_sigma,
                 s->dynatemp_range, s->dynatemp_exponent);

    llm_buf_adds(out, s->of_draw ? " of_draw=1" : "");
    llm_buf_adds(out, " allowed=");
    dump_ids(r, r->allowed_ids, out);
    llm_buf_adds(out, " bad=");
    dump_strings(r, r->bad_words, out);
    llm_buf_adds(out, " breakers=");
    dump_strings(r, r->breakers, out);
    llm_buf_adds(out, " stops=");
    dump_strings(r, r->stops, out);
    llm_buf_adds(out, " stop_ids=");
    dump_ids(r, r->stop_ids, out);

    llm_buf_adds(out, " bias=[");
    bias = llm_ref_data(r, r->logit_bias);

    for (i = 0; i < r->logit_bias.len; i++) {
        llm_buf_addf(out, "(%d:%g)", bias[i].id, bias[i].bias);
    }

    text = llm_ref_data(r, r->text_bias);

    for (i = 0; i < r->text_bias.len; i++) {
        llm_buf_addf(out, "('%.*s':%g)", (int) text[i].text.len,
                     (char *) llm_ref_data(r, text[i].text), text[i].bias);
    }

    llm_buf_adds(out, "] prompts=");
    p = llm_ref_data(r, r->prompts);

    for (i = 0; i < r->prompts.len; i++) {
        if (p[i].is_ids == LLM_PROMPT_PARTS) {
            dump_parts(r, p[i].ref, out);

        } else if (p[i].is_ids) {
            dump_ids(r, p[i].ref, out);

        } else {
            llm_buf_addf(out, "'%.*s'", (int) p[i].ref.len,
                         (const char *) llm_ref_data(r, p[i].ref));
        }
    }

    if (r->tool_choice || r->tool_single || r->tool_names.len) {
        llm_buf_addf(out, " tools=%u single=%u names=", r->tool_choice,
                     r->tool_single);
        dump_strings(r, r->tool_names, out);
    }

    dump_infill(r, out);
    llm_buf_adds(out, " chat=");

    if (r->chat.len) {
        dump_flat(llm_ref_data(r, r->chat), out);
    }

    dump_rule(r, out);
    llm_buf_addc(out, ' ');
}


/* a copy with the quotes of JSON for single ones; the caller frees it */

static inline char *
quoted(const char *s)
{
    char  *copy, *p;

    copy = strdup(s);

    for (p = copy; *p; p++) {
        *p = (*p == '\'') ? '"' : *p;
    }

    return copy;
}

#endif /* LLM_API_DUMP_H */
