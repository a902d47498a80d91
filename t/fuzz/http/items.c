/*
 * What the endpoints beside chat and completions take: the blocks of
 * Messages, the items of Responses, inputs, documents, token ids.
 */

#include "t/fuzz/http/http.h"

#define fz_begin(g, i)  fz_adds(&(g)->body, (i) ? "," : "")


/* "key":"...", a string by chance */

static void
fz_pair(fz_gen_t *g, const char *key)
{
    fz_addf(&g->body, "\"%s\":", key);
    fz_string(g);
}


/* ---- Messages ---- */

/* what a document is made from */

static void
fz_source(fz_gen_t *g)
{
    fz_addf(&g->body, "{\"type\":\"%s\",\"data\":",
            fz_chance(&g->rand, 500) ? "text" : "content");
    fz_any(g, 0);
    fz_adds(&g->body, ",\"content\":");
    fz_content(g);
    fz_adds(&g->body, "}");
}



static void
fz_block(fz_gen_t *g)
{
    static const char *const  types[] = {
        "image", "document", "search_result", "tool_reference", "compaction",
        "server_tool_use", "web_search_tool_result", "mcp_tool_result",
        "code_execution_tool_result", "redacted_thinking", "what"
    };

    switch (fz_below(&g->rand, 10)) {

    case 4:
        fz_addf(&g->body, "{\"type\":\"%s\",\"id\":\"c0\",\"tool_use_id\":"
                          "\"c0\",\"tool_name\":\"f0\",\"title\":",
                types[fz_below(&g->rand, fz_nelems(types))]);
        fz_any(g, 1);
        fz_adds(&g->body, ",\"source\":");
        fz_source(g);
        fz_adds(&g->body, ",\"content\":");
        fz_any(g, 3);
        fz_adds(&g->body, "}");
        break;

    case 0:
        fz_adds(&g->body, "{\"type\":\"tool_use\",\"id\":\"c0\",\"name\":"
                          "\"f0\",\"input\":");
        fz_any(g, fz_chance(&g->rand, 100) ? 2 : 0);
        fz_adds(&g->body, "}");
        break;

    case 1:
        fz_adds(&g->body, "{\"type\":\"tool_result\",\"tool_use_id\":\"c0\","
                          "\"content\":");
        fz_content(g);
        fz_adds(&g->body, "}");
        break;

    case 2:
        fz_adds(&g->body, "{\"type\":\"thinking\",");
        fz_pair(g, "thinking");
        fz_adds(&g->body, ",\"signature\":\"x\"}");
        break;

    case 3:
        fz_adds(&g->body, fz_chance(&g->rand, 500)
                          ? "{\"type\":\"redacted_thinking\",\"data\":\"x\"}"
                          : "{\"type\":\"image\",\"source\":{\"type\":\"url\","
                            "\"url\":\"http://a/\"}}");
        break;

    default:
        fz_adds(&g->body, "{\"type\":\"text\",");
        fz_pair(g, "text");
        fz_adds(&g->body, fz_chance(&g->rand, 200)
                          ? ",\"cache_control\":{\"type\":\"ephemeral\"}}"
                          : "}");
    }
}


static void
fz_blocks(fz_gen_t *g)
{
    unsigned  i, n;

    n = fz_below(&g->rand, 4);
    fz_adds(&g->body, "[");

    for (i = 0; i < n; i++) {
        fz_begin(g, i);
        fz_block(g);
    }

    fz_adds(&g->body, "]");
}


void
fz_blocks_messages(fz_gen_t *g)
{
    unsigned  i, n;

    static const char *const  roles[] = {
        "user", "assistant", "user", "assistant", "system", "tool"
    };

    n = 1 + fz_below(&g->rand, 4);
    fz_adds(&g->body, "[");

    for (i = 0; i < n; i++) {
        fz_begin(g, i);
        fz_addf(&g->body, "{\"role\":\"%s\",\"content\":",
                roles[fz_chance(&g->rand, 900) ? i % 2
                      : fz_below(&g->rand, fz_nelems(roles))]);

        if (fz_chance(&g->rand, 400)) {
            fz_blocks(g);

        } else {
            fz_content(g);
        }

        fz_adds(&g->body, "}");
    }

    fz_adds(&g->body, "]");
}


void
fz_system(fz_gen_t *g)
{
    if (fz_chance(&g->rand, 500)) {
        fz_string(g);

    } else {
        fz_blocks(g);
    }
}


void
fz_blocks_tools(fz_gen_t *g)
{
    unsigned  i, n;

    n = fz_below(&g->rand, fz_chance(&g->rand, 20) ? 140 : 3);
    fz_adds(&g->body, "[");

    for (i = 0; i < n; i++) {
        fz_begin(g, i);

        if (fz_chance(&g->rand, 100)) {
            fz_adds(&g->body, "{\"type\":\"web_search_20250305\","
                              "\"name\":\"web_search\"}");
            continue;
        }

        fz_addf(&g->body, "{\"name\":\"f%u\",\"input_schema\":", i);
        fz_schema(g, 2);
        fz_adds(&g->body, "}");
    }

    fz_adds(&g->body, "]");
}


void
fz_blocks_choice(fz_gen_t *g)
{
    static const char *const  list[] = {
        "{\"type\":\"auto\"}", "{\"type\":\"any\"}", "{\"type\":\"none\"}",
        "{\"type\":\"tool\",\"name\":\"f0\"}",
        "{\"type\":\"tool\",\"name\":\"none\"}",
        "{\"type\":\"auto\",\"disable_parallel_tool_use\":true}"
    };

    fz_adds(&g->body, list[fz_below(&g->rand, fz_nelems(list))]);
}


void
fz_thinking(fz_gen_t *g)
{
    static const char *const  list[] = {
        "{\"type\":\"enabled\",\"budget_tokens\":1024}",
        "{\"type\":\"enabled\",\"budget_tokens\":0}",
        "{\"type\":\"disabled\"}", "{\"type\":\"adaptive\"}",
        "{\"type\":\"what\"}", "{}"
    };

    fz_adds(&g->body, list[fz_below(&g->rand, fz_nelems(list))]);
}


/* ---- Responses ---- */

/* what another server has recorded */

static void
fz_recorded(fz_gen_t *g)
{
    unsigned  i, n;

    static const char *const  types[] = {
        "additional_tools", "apply_patch_call", "apply_patch_call_output",
        "code_interpreter_call", "compaction", "compaction_summary",
        "compaction_trigger", "computer_call", "computer_call_output",
        "configuration_update", "context_compaction", "file_search_call",
        "image_generation_call", "local_shell_call",
        "local_shell_call_output", "mcp_approval_request",
        "mcp_approval_response", "mcp_call", "mcp_list_tools", "program",
        "program_output", "shell_call", "shell_call_output",
        "tool_search_call", "tool_search_output", "web_search_call", "what"
    };

    static const char *const  members[] = {
        "id", "call_id", "name", "action", "actions", "operation", "code",
        "outputs", "output", "queries", "results", "result", "arguments",
        "approve", "reason", "approval_request_id", "error", "status",
        "summary", "content", "text", "role", "reasoning", "server_label"
    };

    fz_addf(&g->body, "{\"type\":\"%s\"",
            types[fz_below(&g->rand, fz_nelems(types))]);

    n = fz_below(&g->rand, 6);

    for (i = 0; i < n; i++) {
        fz_addf(&g->body, ",\"%s\":",
                members[fz_below(&g->rand, fz_nelems(members))]);
        fz_any(g, 3);
    }

    if (fz_chance(&g->rand, 300)) {
        fz_adds(&g->body, ",\"tools\":");
        fz_items_tools(g);
    }

    fz_adds(&g->body, "}");
}



static void
fz_item(fz_gen_t *g)
{
    static const char *const  parts[] = {
        "input_text", "output_text", "text", "input_image", "refusal"
    };

    switch (fz_below(&g->rand, 12)) {

    case 10:
    case 11:
        fz_recorded(g);
        break;

    case 0:
        fz_addf(&g->body, "{\"type\":\"function_call\",\"call_id\":\"c0\","
                          "\"name\":\"f0\",%s",
                fz_chance(&g->rand, 300) ? "\"namespace\":\"n\"," : "");
        fz_pair(g, "arguments");
        fz_adds(&g->body, "}");
        break;

    case 1:
        fz_adds(&g->body, "{\"type\":\"function_call_output\","
                          "\"call_id\":\"c0\",");
        fz_pair(g, "output");
        fz_adds(&g->body, "}");
        break;

    case 2:
        fz_adds(&g->body, "{\"type\":\"reasoning\",\"summary\":[],"
                          "\"encrypted_content\":");
        fz_string(g);
        fz_adds(&g->body, "}");
        break;

    case 3:
        fz_adds(&g->body, fz_chance(&g->rand, 500)
                          ? "{\"type\":\"item_reference\",\"id\":\"msg_1\"}"
                          : "{\"type\":\"web_search_call\",\"id\":\"w\"}");
        break;

    case 4:
    case 5:
        fz_addf(&g->body, "{\"role\":\"%s\",\"content\":[{\"type\":\"%s\",",
                fz_chance(&g->rand, 700) ? "user" : "assistant",
                parts[fz_below(&g->rand, fz_nelems(parts))]);
        fz_pair(g, "text");
        fz_adds(&g->body, "}]}");
        break;

    default:
        fz_adds(&g->body, "{\"role\":\"user\",\"content\":");
        fz_content(g);
        fz_adds(&g->body, "}");
    }
}


void
fz_items(fz_gen_t *g)
{
    unsigned  i, n;

    if (fz_chance(&g->rand, 400)) {
        fz_string(g);
        return;
    }

    n = 1 + fz_below(&g->rand, 4);
    fz_adds(&g->body, "[");

    for (i = 0; i < n; i++) {
        fz_begin(g, i);
        fz_item(g);
    }

    fz_adds(&g->body, "]");
}


void
fz_items_tools(fz_gen_t *g)
{
    unsigned  i, n;

    static const char *const  others[] = {
        "{\"type\":\"web_search\"}",
        "{\"type\":\"custom\",\"name\":\"c\",\"format\":{\"type\":\"text\"}}",
        "{\"type\":\"namespace\",\"name\":\"n\",\"tools\":["
        "{\"type\":\"function\",\"name\":\"f0\"},{\"type\":\"custom\"}]}",
        "{\"type\":\"namespace\",\"name\":\"\",\"tools\":["
        "{\"type\":\"function\",\"name\":\"f1\"}]}",
        "{\"type\":\"what\"}"
    };

    n = fz_below(&g->rand, 4);
    fz_adds(&g->body, "[");

    for (i = 0; i < n; i++) {
        fz_begin(g, i);

        if (fz_chance(&g->rand, 200)) {
            fz_adds(&g->body, others[fz_below(&g->rand, fz_nelems(others))]);
            continue;
        }

        fz_addf(&g->body, "{\"type\":\"function\",\"name\":\"f%u\","
                          "\"strict\":%s,\"parameters\":", i,
                fz_chance(&g->rand, 300) ? "true" : "false");
        fz_schema(g, 2);
        fz_adds(&g->body, "}");
    }

    fz_adds(&g->body, "]");
}


void
fz_include(fz_gen_t *g)
{
    fz_adds(&g->body, fz_chance(&g->rand, 800)
                      ? "[\"reasoning.encrypted_content\"]"
                      : "[\"message.output_text.logprobs\",\"what\"]");
}


/* ---- vectors, ranks, tokens, gaps ---- */

/* a list of n texts; n is what the answer has so many of */

static void
fz_texts(fz_gen_t *g, unsigned n, int objects)
{
    unsigned  i;

    fz_adds(&g->body, "[");

    for (i = 0; i < n; i++) {
        fz_begin(g, i);

        if (objects && fz_chance(&g->rand, 200)) {
            fz_adds(&g->body, "{");
            fz_pair(g, "text");
            fz_adds(&g->body, "}");

        } else {
            fz_string(g);
        }
    }

    fz_adds(&g->body, "]");
}


void
fz_inputs(fz_gen_t *g)
{
    unsigned  i, n;

    g->want.prompts = 1;

    switch (fz_below(&g->rand, 5)) {

    case 0:
        fz_ids(g, 1 + fz_below(&g->rand, 8));
        break;

    case 1:
        n = 1 + fz_below(&g->rand, 4);
        g->want.prompts = (int) n;
        fz_adds(&g->body, "[");

        for (i = 0; i < n; i++) {
            fz_begin(g, i);
            fz_ids(g, 1 + fz_below(&g->rand, 4));
        }

        fz_adds(&g->body, "]");
        break;

    case 2:
        n = 1 + fz_below(&g->rand, fz_chance(&g->rand, 10) ? 300 : 5);
        g->want.prompts = (int) n;
        fz_texts(g, n, 0);
        break;

    default:
        fz_string(g);
    }
}


void
fz_documents(fz_gen_t *g)
{
    unsigned  n;

    n = fz_below(&g->rand, 6);
    g->want.prompts = (int) n;
    fz_texts(g, n, 1);
}


void
fz_detokenize(fz_gen_t *g)
{
    fz_ids(g, fz_below(&g->rand, fz_chance(&g->rand, 30) ? 3000 : 10));
}


void
fz_extra(fz_gen_t *g)
{
    unsigned  i, n;

    n = fz_below(&g->rand, 4);
    fz_adds(&g->body, "[");

    for (i = 0; i < n; i++) {
        fz_begin(g, i);
        fz_adds(&g->body, "{");
        fz_pair(g, "filename");
        fz_adds(&g->body, ",");
        fz_pair(g, "text");
        fz_adds(&g->body, "}");
    }

    fz_adds(&g->body, "]");
}
