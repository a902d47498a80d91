/*
 * What an answer must look like: schemas, expressions and grammars by chance,
 * most of them valid, some at the edges of what can be done.
 */

#include "t/fuzz/http/http.h"

#define FZ_DEPTH  3


static void
fz_one_of(fz_gen_t *g, const char *const *list, size_t n)
{
    fz_adds(&g->body, list[fz_below(&g->rand, (unsigned) n)]);
}


static void
fz_schema_list(fz_gen_t *g, const char *keyword, int depth)
{
    unsigned  i, n;

    n = fz_below(&g->rand, 4);
    fz_addf(&g->body, "{\"%s\":[", keyword);

    for (i = 0; i < n; i++) {
        fz_adds(&g->body, i ? "," : "");
        fz_schema(g, depth - 1);
    }

    fz_adds(&g->body, "]}");
}


static void
fz_schema_object(fz_gen_t *g, int depth)
{
    unsigned  i, n;

    n = fz_below(&g->rand, 4);
    fz_adds(&g->body, "{\"type\":\"object\",\"properties\":{");

    for (i = 0; i < n; i++) {
        fz_addf(&g->body, "%s\"p%u\":", i ? "," : "", i);
        fz_schema(g, depth - 1);
    }

    fz_addf(&g->body, "},\"required\":[%s]",
            n && fz_chance(&g->rand, 600) ? "\"p0\""
            : fz_chance(&g->rand, 100) ? "\"other\"" : "");

    if (fz_chance(&g->rand, 600)) {
        fz_adds(&g->body, ",\"additionalProperties\":");

        if (fz_chance(&g->rand, 700)) {
            fz_adds(&g->body, "false");

        } else {
            fz_schema(g, depth - 1);
        }
    }

    fz_adds(&g->body, "}");
}


/* without anything in it */

static const char *const  fz_leaves[] = {
    "true", "false", "{}", "{\"type\":\"string\"}", "{\"type\":\"null\"}",
    "{\"type\":\"boolean\"}", "{\"type\":\"integer\"}",
    "{\"type\":[\"number\",\"null\"]}", "{\"enum\":[\"a\",1,null,[],{}]}",
    "{\"enum\":[]}", "{\"const\":\"\\u00e9\\ud83d\\ude00\"}",
    "{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}",
    "{\"type\":\"string\",\"minLength\":3,\"maxLength\":2}",
    "{\"type\":\"string\",\"maxLength\":9007199254740993}",
    "{\"type\":\"string\",\"pattern\":\"^[a-z]{1,3}$\"}",
    "{\"type\":\"string\",\"pattern\":\"(a{100}){100}\"}",
    "{\"type\":\"string\",\"pattern\":\"[\"}",
    "{\"type\":\"string\",\"format\":\"date-time\"}",
    "{\"type\":\"string\",\"format\":\"none\"}",
    "{\"type\":\"integer\",\"minimum\":-5,\"maximum\":1e3}",
    "{\"type\":\"integer\",\"minimum\":1e308}",
    "{\"type\":\"number\",\"exclusiveMinimum\":0,\"multipleOf\":0.1}",
    "{\"type\":\"number\",\"multipleOf\":0}", "{\"type\":\"what\"}",
    "{\"$ref\":\"#\"}", "{\"$ref\":\"#/$defs/none\"}", "{\"not\":{}}",
    "{\"minItems\":1e9}", "{\"type\":7}",
    "{\"type\":\"array\",\"uniqueItems\":true,\"maxItems\":3}"
};


void
fz_schema(fz_gen_t *g, int depth)
{
    switch (fz_below(&g->rand, depth > 0 ? 10 : 4)) {

    case 4:
    case 5:
        fz_schema_object(g, depth);
        break;

    case 6:
        fz_adds(&g->body, "{\"type\":\"array\",\"items\":");
        fz_schema(g, depth - 1);
        fz_addf(&g->body, ",\"minItems\":%u}", fz_below(&g->rand, 3));
        break;

    case 7:
        fz_schema_list(g, "anyOf", depth);
        break;

    case 8:
        fz_schema_list(g, fz_chance(&g->rand, 500) ? "allOf" : "oneOf",
                       depth);
        break;

    case 9:
        fz_adds(&g->body, "{\"not\":");
        fz_schema(g, depth - 1);
        fz_adds(&g->body, "}");
        break;

    default:
        fz_one_of(g, fz_leaves, fz_nelems(fz_leaves));
    }
}


void
fz_schema_field(fz_gen_t *g)
{
    fz_schema(g, FZ_DEPTH);
}


/* chat's response_format */

void
fz_format(fz_gen_t *g)
{
    switch (fz_below(&g->rand, 4)) {

    case 0:
        fz_adds(&g->body, "{\"type\":\"json_object\"}");
        break;

    case 1:
    case 2:
        fz_addf(&g->body, "{\"type\":\"json_schema\",\"json_schema\":{"
                "\"name\":\"n\",\"strict\":%s,\"schema\":",
                fz_chance(&g->rand, 500) ? "true" : "false");
        fz_schema(g, FZ_DEPTH);
        fz_adds(&g->body, "}}");
        break;

    default:
        fz_adds(&g->body, "{\"type\":\"text\"}");
    }
}


/* Responses' text */

void
fz_format_text(fz_gen_t *g)
{
    if (fz_chance(&g->rand, 300)) {
        fz_adds(&g->body, "{\"verbosity\":\"low\"}");
        return;
    }

    fz_adds(&g->body, "{\"format\":{\"type\":\"json_schema\",\"name\":\"n\","
                      "\"schema\":");
    fz_schema(g, FZ_DEPTH);
    fz_adds(&g->body, "}}");
}


void
fz_regex(fz_gen_t *g)
{
    static const char *const  list[] = {
        "\"[a-z]+\"", "\"\"", "\"a|b|\"", "\"(a{1000}){1000}\"",
        "\"((a{0,100}){0,100}){0,100}\"", "\"(a|b)*a(a|b){30}\"",
        "\"\\\\d{3}-\\\\d{4}\"", "\"^a$b\"", "\"$^\"", "\"\\\\bword\\\\b\"",
        "\"(?=a)b\"", "\"(?P<x>a)\\\\1\"", "\"[z-a]\"", "\"[\"", "\"(\"",
        "\"a{3,1}\"", "\"\\\\p{L}{2}\"", "\"\\\\xff\\\\u00e9\"", "\".\"",
        "\"[^\\\\n]*\"", "\"a**\"", "\"\\\\\"", "\"\\ud800\"", "\"(?i)abc\""
    };

    fz_one_of(g, list, fz_nelems(list));
}


void
fz_grammar(fz_gen_t *g)
{
    static const char *const  list[] = {
        "\"root ::= [a-z]+\"", "\"root ::= root \\\"a\\\" | \\\"b\\\"\"",
        "\"root ::= \\\"a\\\" root\"", "\"root ::= none\"", "\"\"",
        "\"root ::= \"", "\"a ::= \\\"b\\\"\"", "\"root ::= (\"",
        "\"root ::= (\\\"a\\\"{100}){100}\"",
        "\"root ::= x+\\nx ::= \\\"\\\" | y\\ny ::= x\"",
        "\"root ::= \\\"\\\\u00e9\\\" [^a]* # why\"",
        "\"root ::= [\"", "\"root ::= \\\"a\"", "\"root ::= a-b\\n\"",
        "\"start: \\\"a\\\"\"", "\"root ::= .{2,1}\"", "\"root ::= .\\u0000\""
    };

    fz_one_of(g, list, fz_nelems(list));
}


void
fz_structured(fz_gen_t *g)
{
    unsigned  i, n;

    fz_adds(&g->body, "{");

    switch (fz_below(&g->rand, 5)) {

    case 0:
        fz_adds(&g->body, "\"json\":");
        fz_schema(g, FZ_DEPTH);
        break;

    case 1:
        fz_adds(&g->body, "\"regex\":");
        fz_regex(g);
        break;

    case 2:
        fz_adds(&g->body, "\"grammar\":");
        fz_grammar(g);
        break;

    case 3:
        n = fz_below(&g->rand, 4);
        fz_adds(&g->body, "\"choice\":[");

        for (i = 0; i < n; i++) {
            fz_adds(&g->body, i ? "," : "");
            fz_string(g);
        }

        fz_adds(&g->body, "]");
        break;

    default:
        fz_adds(&g->body, "\"json_object\":true");
    }

    if (fz_chance(&g->rand, 50)) {
        fz_adds(&g->body, ",\"regex\":\"a\"");
    }

    fz_adds(&g->body, "}");
}
