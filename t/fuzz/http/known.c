/*
 * What the parameters are for whose type does not say it: messages, prompts,
 * tools, lists.  Values that a server takes, and their edges; a parameter
 * without a line here gets values of its type.
 */

#include "t/fuzz/http/http.h"

#include <string.h>


static const char *const  fz_roles[] = {
    "system", "user", "assistant", "tool", "developer"
};


void
fz_content(fz_gen_t *g)
{
    unsigned     i, n;
    const char  *type;

    static const char *const  types[] = {
        "input_text", "output_text", "thinking", "reasoning", "image_url",
        "input_image", "file", "refusal", "what"
    };

    switch (fz_below(&g->rand, 8)) {

    case 0:
        fz_adds(&g->body, "\"\"");
        break;

    case 1:
        fz_adds(&g->body, "null");
        break;

    case 2:
        n = fz_below(&g->rand, 3);

        fz_adds(&g->body, "[");

        for (i = 0; i < n; i++) {
            type = fz_chance(&g->rand, 700)
                   ? "text" : types[fz_below(&g->rand, fz_nelems(types))];

            fz_addf(&g->body, "%s{\"type\":\"%s\",\"%s\":", i ? "," : "",
                    type, strcmp(type, "thinking") ? "text" : type);
            fz_string(g);
            fz_adds(&g->body, "}");
        }

        fz_adds(&g->body, "]");
        break;

    case 3:
    case 4:
        fz_string(g);
        break;

    case 5:
        if (fz_chance(&g->rand, 100)) {
            fz_any(g, 2);
            break;
        }

        /* fall through */

    default:
        fz_addf(&g->body, "\"What is %u + 2?\"", fz_below(&g->rand, 100));
    }
}


static void
fz_calls(fz_gen_t *g)
{
    unsigned  i, n;

    n = fz_below(&g->rand, 3);

    fz_adds(&g->body, ",\"tool_calls\":[");

    for (i = 0; i < n; i++) {
        fz_addf(&g->body, "%s{\"id\":\"c%u\",\"type\":\"function\","
                "\"function\":{\"name\":", i ? "," : "", i);
        fz_string(g);
        fz_adds(&g->body, ",\"arguments\":");

        if (fz_chance(&g->rand, 500)) {
            fz_adds(&g->body, "\"{\\\"a\\\": 1e308}\"");

        } else {
            fz_string(g);
        }

        fz_adds(&g->body, "}}");
    }

    fz_adds(&g->body, "]");
}


static void
fz_message(fz_gen_t *g)
{
    unsigned  role;

    role = fz_below(&g->rand, fz_nelems(fz_roles));

    if (fz_chance(&g->rand, 300)) {
        role = 1;
    }

    fz_adds(&g->body, "{\"role\":");

    if (fz_chance(&g->rand, 10)) {
        fz_any(g, 1);

    } else {
        fz_addf(&g->body, "\"%s\"", fz_roles[role]);
    }

    if (!fz_chance(&g->rand, 20)) {
        fz_adds(&g->body, ",\"content\":");
        fz_content(g);
    }

    if (role == 2 && fz_chance(&g->rand, 300)) {
        fz_calls(g);
    }

    if (role == 3 && !fz_chance(&g->rand, 100)) {
        fz_adds(&g->body, ",\"tool_call_id\":\"c0\"");
    }

    if (fz_chance(&g->rand, 50)) {
        fz_adds(&g->body, fz_chance(&g->rand, 500)
                          ? ",\"name\":" : ",\"reasoning_content\":");
        fz_string(g);
    }

    fz_adds(&g->body, "}");
}


void
fz_messages(fz_gen_t *g)
{
    unsigned  i, n;

    n = fz_chance(&g->rand, 400) ? 1 : fz_below(&g->rand, 5);

    if (fz_chance(&g->rand, 3)) {
        n = 200;
    }

    fz_adds(&g->body, "[");

    for (i = 0; i < n; i++) {
        fz_adds(&g->body, i ? "," : "");
        fz_message(g);
    }

    fz_adds(&g->body, "]");
}


/* a token at the vocabulary's edges */

static void
fz_id(fz_gen_t *g)
{
    unsigned  v;

    v = g->table->vocab;

    switch (fz_below(&g->rand, 40)) {

    case 0:
        fz_adds(&g->body, "-1");
        break;

    case 1:
        fz_addf(&g->body, "%u", v);
        break;

    case 2:
        fz_adds(&g->body, "2147483647");
        break;

    case 3:
    case 4:
        fz_addf(&g->body, "%u", v - 1 - fz_below(&g->rand, 12));
        break;

    case 5:
        fz_adds(&g->body, "0");
        break;

    default:
        fz_addf(&g->body, "%u", fz_below(&g->rand, v));
    }
}


void
fz_ids(fz_gen_t *g, unsigned n)
{
    unsigned  i;

    fz_adds(&g->body, "[");

    for (i = 0; i < n; i++) {
        fz_adds(&g->body, i ? "," : "");
        fz_id(g);
    }

    fz_adds(&g->body, "]");
}


static void
fz_prompt(fz_gen_t *g)
{
    unsigned  i, n, kind;

    kind = fz_below(&g->rand, 8);

    if (kind > 1) {
        g->want.prompts = 1;

        if (kind == 2) {
            fz_ids(g, 1 + fz_below(&g->rand, fz_chance(&g->rand, 30) ? 700
                                                                     : 8));

        } else if (kind == 3) {
            fz_adds(&g->body, "\"\"");

        } else if (kind < 6) {
            fz_string(g);

        } else {
            fz_addf(&g->body, "\"%u times\"", fz_below(&g->rand, 1000));
        }

        return;
    }

    n = fz_below(&g->rand, fz_chance(&g->rand, 30) ? 131 : 4);
    g->want.prompts = (int) n;

    fz_adds(&g->body, "[");

    for (i = 0; i < n; i++) {
        fz_adds(&g->body, i ? "," : "");

        if (kind) {
            fz_ids(g, 1 + fz_below(&g->rand, 3));

        } else {
            fz_string(g);
        }
    }

    fz_adds(&g->body, "]");
}


static void
fz_choices(fz_gen_t *g)
{
    int  n;

    n = fz_chance(&g->rand, 6) ? 128
        : fz_chance(&g->rand, 200) ? 1 + (int) fz_below(&g->rand, 6) : 1;

    g->want.n = n;
    fz_addf(&g->body, "%d", n);
}


static void
fz_stream(fz_gen_t *g)
{
    g->want.stream = fz_chance(&g->rand, 700);
    fz_adds(&g->body, g->want.stream ? "true" : "false");
}


static void
fz_stream_options(fz_gen_t *g)
{
    if (fz_chance(&g->rand, 800)) {
        g->want.usage = fz_chance(&g->rand, 800);
        fz_addf(&g->body, "{\"include_usage\":%s}",
                g->want.usage ? "true" : "false");
        return;
    }

    g->want.usage = -1;
    fz_adds(&g->body, "{\"include_usage\":");
    fz_any(g, 1);
    fz_adds(&g->body, "}");
}


static void
fz_max_tokens(fz_gen_t *g)
{
    if (fz_chance(&g->rand, 20)) {
        fz_adds(&g->body, "2147483647");

    } else {
        fz_addf(&g->body, "%d", (int) fz_below(&g->rand, 7) - 1);
    }
}


/* where -1 and 0 are none */

static void
fz_some_tokens(fz_gen_t *g)
{
    fz_addf(&g->body, "%u", 1 + fz_below(&g->rand, 20));
}


static void
fz_min_tokens(fz_gen_t *g)
{
    fz_addf(&g->body, "%u", fz_below(&g->rand, 3));
}


static void
fz_logit_bias(fz_gen_t *g)
{
    unsigned  i, n, pairs;

    static const char *const  by[] = {
        "0", "-100", "100", "1", "-1", "0.5", "-0.0", "1e-45", "100.1"
    };

    n = fz_below(&g->rand, fz_chance(&g->rand, 30) ? 310 : 5);
    pairs = fz_chance(&g->rand, 300);

    fz_adds(&g->body, pairs ? "[" : "{");

    for (i = 0; i < n; i++) {
        fz_adds(&g->body, i ? "," : "");
        fz_adds(&g->body, pairs ? "[" : "\"");
        fz_id(g);
        fz_adds(&g->body, pairs ? "," : "\":");
        fz_adds(&g->body, by[fz_below(&g->rand, fz_nelems(by)
                                                - !fz_chance(&g->rand, 99))]);
        fz_adds(&g->body, pairs ? "]" : "");
    }

    fz_adds(&g->body, pairs ? "]" : "}");
}


static void
fz_logprobs(fz_gen_t *g)
{
    if (g->want.endpoint == FZ_COMPL) {
        fz_addf(&g->body, "%u", fz_below(&g->rand, 6));

    } else {
        fz_adds(&g->body, fz_chance(&g->rand, 800) ? "true" : "false");
    }
}


static void
fz_top_logprobs(fz_gen_t *g)
{
    fz_addf(&g->body, "%u", fz_below(&g->rand, 21));
}


static void
fz_stop(fz_gen_t *g)
{
    unsigned  i, n;

    if (fz_chance(&g->rand, 400)) {
        fz_string(g);
        return;
    }

    n = fz_below(&g->rand, fz_chance(&g->rand, 50) ? 19 : 4);

    fz_adds(&g->body, "[");

    for (i = 0; i < n; i++) {
        fz_adds(&g->body, i ? "," : "");
        fz_string(g);
    }

    fz_adds(&g->body, "]");
}


static void
fz_stop_ids(fz_gen_t *g)
{
    fz_ids(g, fz_below(&g->rand, fz_chance(&g->rand, 30) ? 200 : 5));
}


static void
fz_tools(fz_gen_t *g)
{
    unsigned  i, n;

    n = fz_below(&g->rand, fz_chance(&g->rand, 20) ? 140 : 4);

    fz_adds(&g->body, "[");

    for (i = 0; i < n; i++) {
        fz_adds(&g->body, i ? ",{\"type\":\"function\",\"function\":{"
                              "\"name\":"
                            : "{\"type\":\"function\",\"function\":{"
                              "\"name\":");

        if (fz_chance(&g->rand, 700)) {
            fz_addf(&g->body, "\"f%u\"", i);

        } else {
            fz_string(g);
        }

        if (fz_chance(&g->rand, 400)) {
            fz_adds(&g->body, ",\"description\":");
            fz_string(g);
        }

        if (fz_chance(&g->rand, 400)) {
            fz_adds(&g->body, ",\"parameters\":");
            fz_any(g, 3);
        }

        fz_adds(&g->body, "}}");
    }

    fz_adds(&g->body, "]");
}


static void
fz_tool_choice(fz_gen_t *g)
{
    static const char *const  words[] = { "none", "auto", "required" };

    fz_addf(&g->body, "\"%s\"", words[fz_below(&g->rand, 3)]);
}


static void
fz_modalities(fz_gen_t *g)
{
    fz_adds(&g->body, fz_chance(&g->rand, 800)
                      ? "[\"text\"]" : "[\"text\",\"audio\"]");
}


static void
fz_priority(fz_gen_t *g)
{
    fz_addf(&g->body, "%d", (int) fz_below(&g->rand, 201) - 100);
}


static void
fz_int_seed(fz_gen_t *g)
{
    static const char *const  seeds[] = {
        "0", "-1", "42", "9223372036854775807", "-9223372036854775808",
        "4294967296"
    };

    fz_adds(&g->body, seeds[fz_below(&g->rand, fz_nelems(seeds))]);
}


static void
fz_model(fz_gen_t *g)
{
    static const char *const  names[] = {
        "\"demo\"", "\"DEMO\"", "\"gpt-4o-mini\"", "\"dem\"", "\"late\"",
        "\"\"", "\"none\"", "null"
    };

    fz_adds(&g->body, names[fz_below(&g->rand, fz_nelems(names))]);
}


static void
fz_salt(fz_gen_t *g)
{
    fz_addf(&g->body, "\"salt%u\"", fz_below(&g->rand, 3));
}


/* the first row of a name and an endpoint counts; endpoints 0: all */

#define FZ_BLOCKS  (FZ_MESSAGES | FZ_COUNT)

static const struct {
    const char   *name;
    void        (*make)(fz_gen_t *g);
    int           endpoints;
} fz_made[] = {
    { "allowed_token_ids",      fz_stop_ids, 0 },
    { "bad_words",              fz_stop, 0 },
    { "cache_salt",             fz_salt, 0 },
    { "documents",              fz_documents, FZ_RERANK },
    { "dry_sequence_breakers",  fz_stop, 0 },
    { "grammar",                fz_grammar, 0 },
    { "guided_choice",          fz_stop, 0 },
    { "guided_grammar",         fz_grammar, 0 },
    { "guided_json",            fz_schema_field, 0 },
    { "guided_regex",           fz_regex, 0 },
    { "include",                fz_include, 0 },
    { "input",                  fz_items, FZ_RESPONSES },
    { "input",                  fz_inputs, 0 },
    { "input_extra",            fz_extra, 0 },
    { "input_prefix",           fz_string, 0 },
    { "input_suffix",           fz_string, 0 },
    { "json_schema",            fz_schema_field, 0 },
    { "logit_bias",             fz_logit_bias, 0 },
    { "logprobs",               fz_logprobs, FZ_CHAT | FZ_COMPL },
    { "max_completion_tokens",  fz_max_tokens, 0 },
    { "max_output_tokens",      fz_some_tokens, 0 },
    { "max_tokens",             fz_some_tokens, FZ_BLOCKS },
    { "max_tokens",             fz_max_tokens, 0 },
    { "messages",               fz_blocks_messages, FZ_BLOCKS },
    { "messages",               fz_messages, 0 },
    { "min_tokens",             fz_min_tokens, 0 },
    { "modalities",             fz_modalities, 0 },
    { "model",                  fz_model, 0 },
    { "n",                      fz_choices, FZ_CHAT | FZ_COMPL },
    { "priority",               fz_priority, 0 },
    { "prompt",                 fz_prompt, FZ_COMPL },
    { "query",                  fz_string, 0 },
    { "response_format",        fz_format, 0 },
    { "seed",                   fz_int_seed, 0 },
    { "stop",                   fz_stop, FZ_CHAT | FZ_COMPL | FZ_INFILL },
    { "stop_sequences",         fz_stop, 0 },
    { "stop_token_ids",         fz_stop_ids, 0 },
    { "stream",                 fz_stream, 0 },
    { "stream_options",         fz_stream_options, FZ_CHAT | FZ_COMPL },
    { "structured_outputs",     fz_structured, 0 },
    { "system",                 fz_system, FZ_BLOCKS },
    { "text",                   fz_format_text, FZ_RESPONSES },
    { "text_1",                 fz_string, 0 },
    { "text_2",                 fz_inputs, 0 },
    { "thinking",               fz_thinking, FZ_BLOCKS },
    { "tokens",                 fz_detokenize, 0 },
    { "tool_choice",            fz_blocks_choice, FZ_BLOCKS },
    { "tool_choice",            fz_tool_choice, 0 },
    { "tools",                  fz_blocks_tools, FZ_BLOCKS },
    { "tools",                  fz_items_tools, FZ_RESPONSES },
    { "tools",                  fz_tools, 0 },
    { "top_logprobs",           fz_top_logprobs, FZ_CHAT | FZ_RESPONSES },
};


int
fz_known(fz_gen_t *g, const char *name)
{
    size_t  i;

    for (i = 0; i < fz_nelems(fz_made); i++) {
        if (strcmp(fz_made[i].name, name) == 0
            && (fz_made[i].endpoints == 0
                || (fz_made[i].endpoints & g->want.endpoint)))
        {
            fz_made[i].make(g);
            return 1;
        }
    }

    return 0;
}
