/*
 * The beginning of an answer of Responses: the request's settings, with
 * defaults for those that it left out.  Clients validate an answer by its
 * schema, in which the members of tools, text and reasoning are all required.
 */

#include "engine/api/responses.h"

#define add_lit(out, lit)   (void) llm_buf_add(out, lit, sizeof(lit) - 1)

typedef struct {
    const char  *key;
    const char  *otherwise;             /* default value, JSON; NULL: the
                                           member is left out */
} llm_api_echo_t;


/* writes members of v, or their defaults; first: no member precedes them */

static void
llm_api_rh_members(llm_buf_t *out, const llm_flat_t *v,
    const llm_api_echo_t *rows, size_t n, int first)
{
    size_t             i;
    const llm_flat_t  *member;

    for (i = 0; i < n; i++) {
        member = llm_api_member(v, rows[i].key);

        if (member == NULL && rows[i].otherwise == NULL) {
            continue;
        }

        (void) llm_buf_addf(out, "%s\"%s\":", first ? "" : ",", rows[i].key);
        first = 0;

        if (member) {
            (void) llm_json_add_flat(out, member);

        } else {
            (void) llm_buf_adds(out, rows[i].otherwise);
        }
    }
}


/* writes all members of v that are not among these */

static void
llm_api_rh_others(llm_buf_t *out, const llm_flat_t *v,
    const llm_api_echo_t *rows, size_t n)
{
    size_t             i;
    const llm_flat_t  *k, *member;

    for (k = llm_flat_first(v); k; k = llm_flat_next(v, member)) {
        member = llm_flat_next(v, k);

        for (i = 0; i < n && !llm_api_str_is(k, rows[i].key); i++) {
            /* void */
        }

        if (i == n) {
            (void) llm_buf_addc(out, ',');
            (void) llm_json_add_flat(out, k);
            (void) llm_buf_addc(out, ':');
            (void) llm_json_add_flat(out, member);
        }
    }
}


/* writes v, with defaults for missing members */

static void
llm_api_rh_object(llm_buf_t *out, const llm_flat_t *v,
    const llm_api_echo_t *rows, size_t n)
{
    (void) llm_buf_addc(out, '{');
    llm_api_rh_members(out, v, rows, n, 1);

    if (v) {
        llm_api_rh_others(out, v, rows, n);
    }

    (void) llm_buf_addc(out, '}');
}


static void
llm_api_rh_tools(llm_buf_t *out, const llm_flat_t *tools)
{
    const llm_flat_t  *v;

    static const llm_api_echo_t  function[] = {
        { "type", NULL }, { "name", NULL }, { "description", "null" },
        { "parameters", "null" }, { "strict", "false" }
    };

    add_lit(out, ",\"tools\":[");

    for (v = tools ? llm_flat_first(tools) : NULL; v;
         v = llm_flat_next(tools, v))
    {
        if (v != llm_flat_first(tools)) {
            (void) llm_buf_addc(out, ',');
        }

        if (llm_api_str_is(llm_api_member(v, "type"), "function")) {
            llm_api_rh_object(out, v, function, llm_nelems(function));

        } else {
            (void) llm_json_add_flat(out, v);
        }
    }

    (void) llm_buf_addc(out, ']');
}


static void
llm_api_rh_text(llm_buf_t *out, const llm_flat_t *text)
{
    const llm_flat_t  *format;

    static const llm_api_echo_t  one[] = { { "format", NULL } };
    static const llm_api_echo_t  schema[] = {
        { "type", NULL }, { "name", "\"response\"" },
        { "description", "null" }, { "schema", NULL }, { "strict", "false" }
    };

    add_lit(out, ",\"text\":{\"format\":");
    format = llm_api_member(text, "format");

    if (format == NULL) {
        add_lit(out, "{\"type\":\"text\"}");

    } else if (llm_api_str_is(llm_api_member(format, "type"), "json_schema")) {
        llm_api_rh_object(out, format, schema, llm_nelems(schema));

    } else {
        (void) llm_json_add_flat(out, format);
    }

    if (text) {
        llm_api_rh_others(out, text, one, llm_nelems(one));
    }

    (void) llm_buf_addc(out, '}');
}


/* writes the sampling parameters in effect, from the request and the model's
   file */

static void
llm_api_rh_sampling(llm_buf_t *out, const llm_api_reader_t *rd)
{
    llm_sampling_t      s;
    llm_model_status_t  st;

    s = rd->r.sampling;

    if (rd->conf->zone) {
        llm_zone_status(rd->conf->zone, rd->r.model, &st);
        llm_sampling_adopt(&s, &st.advised);
    }

    (void) llm_buf_addf(out, ",\"temperature\":%.6g,\"top_p\":%.6g,"
                        "\"presence_penalty\":%.6g,"
                        "\"frequency_penalty\":%.6g", s.temperature, s.top_p,
                        s.presence_penalty, s.frequency_penalty);
}


void
llm_api_responses_head(llm_api_reader_t *rd)
{
    llm_buf_t              *out;
    const llm_api_conf_t   *conf;
    const llm_api_model_t  *m;

    static const llm_api_echo_t  same[] = {
        { "instructions", "null" }, { "max_output_tokens", "null" },
        { "max_tool_calls", "null" }, { "metadata", "{}" },
        { "parallel_tool_calls", "true" }, { "prompt_cache_key", "null" },
        { "safety_identifier", "null" }, { "tool_choice", "\"auto\"" },
        { "top_logprobs", "0" }, { "truncation", "\"disabled\"" },
        { "user", "null" }
    };
    static const llm_api_echo_t  reasoning[] = {
        { "effort", "null" }, { "summary", "null" }
    };

    out = &rd->head;
    conf = rd->conf;
    m = &conf->models[rd->r.model];

    add_lit(out, "{\"id\":\"resp_");
    (void) llm_json_add_text(out, conf->id.data, conf->id.len);
    (void) llm_buf_addf(out, "\",\"object\":\"response\",\"created_at\":%lld,"
                        "\"model\":", (long long) conf->now);
    (void) llm_json_add_string(out, m->name.data, m->name.len);
    add_lit(out, ",\"background\":false,\"previous_response_id\":null,"
            "\"service_tier\":\"default\",\"store\":false");
    llm_api_rh_sampling(out, rd);

    llm_api_rh_members(out, rd->root, same, llm_nelems(same), 0);
    add_lit(out, ",\"reasoning\":");
    llm_api_rh_object(out, llm_api_member(rd->root, "reasoning"), reasoning,
                      llm_nelems(reasoning));
    llm_api_rh_text(out, llm_api_member(rd->root, "text"));
    llm_api_rh_tools(out, llm_api_member(rd->root, "tools"));
}
