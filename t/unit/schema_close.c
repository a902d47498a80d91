/*
 * Schemas that strict mode closes: which objects get additionalProperties
 * false, and which cannot.
 */

#include "engine/api/json.h"
#include "engine/grammar/grammar.h"
#include "t/unit/tap.h"

#define CLOSED  ",\"additionalProperties\":false"

/* properties, and what stands beside them */
#define WITH(more)  "{\"properties\":{\"a\":{\"type\":\"null\"}}" more "}"

#define SAME    NULL


static void
test_close(void)
{
    int        rc;
    size_t     i;
    llm_buf_t  flat, closed, text;
    llm_err_t  err;

    static const struct {
        int          deep;
        const char  *schema;
        const char  *want;
    } cases[] = {
        { 0, WITH(""), WITH(CLOSED) },
        { 0, WITH(",\"required\":[\"a\"],\"not\":{}"),
          WITH(",\"required\":[\"a\"],\"not\":{}" CLOSED) },
        { 0, "{\"properties\":{\"b\":" WITH("") "}}",
          "{\"properties\":{\"b\":" WITH("") "}" CLOSED "}" },
        { 0, WITH(",\"additionalProperties\":true"), SAME },
        { 0, WITH(",\"patternProperties\":{}"), SAME },
        { 0, WITH(",\"allOf\":[]"), SAME },
        { 0, WITH(",\"anyOf\":[]"), SAME },
        { 0, WITH(",\"$ref\":\"#\""), SAME },
        { 0, "{\"type\":\"object\"}", SAME },
        { 0, "{\"properties\":{}}", SAME },
        { 0, "true", SAME },

        /* it must have others */
        { 0, WITH(",\"required\":[\"a\",\"b\"]"), SAME },
        { 0, WITH(",\"required\":[\"aa\"]"), SAME },
        { 0, WITH(",\"required\":[1],\"dependentRequired\":5"),
          WITH(",\"required\":[1],\"dependentRequired\":5" CLOSED) },
        { 0, WITH(",\"minProperties\":2"), SAME },
        { 0, WITH(",\"minProperties\":1"),
          WITH(",\"minProperties\":1" CLOSED) },
        { 0, WITH(",\"dependentRequired\":{\"a\":[\"b\"]}"), SAME },
        { 0, WITH(",\"dependentRequired\":{\"b\":[\"a\"],\"c\":1}"),
          WITH(",\"dependentRequired\":{\"b\":[\"a\"],\"c\":1}" CLOSED) },
        { 0, WITH(",\"dependentSchemas\":{\"a\":{}}"), SAME },
        { 0, WITH(",\"dependencies\":{\"a\":[\"b\"]}"), SAME },
        { 0, WITH(",\"enum\":[{\"b\":1}]"), SAME },
        { 0, WITH(",\"const\":{\"b\":1}"), SAME },

        { 1, "{\"properties\":{\"b\":" WITH("") ",\"properties\":"
          "{\"items\":" WITH("") "},\"c\":true}}",
          "{\"properties\":{\"b\":" WITH(CLOSED) ",\"properties\":"
          "{\"items\":" WITH(CLOSED) "},\"c\":true}" CLOSED "}" },
        { 1, "{\"anyOf\":[" WITH("") ",{\"$ref\":\"#/$defs/x\"}],"
          "\"$defs\":{\"x\":" WITH("") "}}",
          "{\"anyOf\":[" WITH(CLOSED) ",{\"$ref\":\"#/$defs/x\"}],"
          "\"$defs\":{\"x\":" WITH(CLOSED) "}}" },
        { 1, "{\"additionalProperties\":" WITH("") "}",
          "{\"additionalProperties\":" WITH(CLOSED) "}" },
        { 1, "{\"prefixItems\":[" WITH("") "],\"enum\":[" WITH("") "]}",
          "{\"prefixItems\":[" WITH(CLOSED) "],\"enum\":[" WITH("") "]}" },

        /* several schemas of one object */
        { 1, "{\"properties\":{\"b\":" WITH("") ",\"c\":{\"allOf\":["
          WITH("") "]}}}",
          "{\"properties\":{\"b\":" WITH("") ",\"c\":{\"allOf\":["
          WITH("") "]}}" CLOSED "}" },
        { 1, "{\"properties\":{\"b\":" WITH(",\"anyOf\":[]") "}}",
          "{\"properties\":{\"b\":" WITH(",\"anyOf\":[]") "}" CLOSED "}" },
        { 1, "{\"items\":" WITH(",\"not\":{}") "}", SAME },
        { 1, "{\"anyOf\":[" WITH("") "],\"oneOf\":[" WITH("") "]}", SAME },
        { 1, "{\"$ref\":\"#/$defs/x\",\"anyOf\":[" WITH("") "],\"$defs\":{"
          "\"x\":" WITH("") "}}", SAME },
        { 1, "{\"items\":" WITH("") ",\"contains\":" WITH("") "}", SAME },
        { 1, "{\"items\":{\"properties\":{\"b\":" WITH("") "},"
          "\"patternProperties\":{\"b\":" WITH("") "}}}", SAME },
        { 1, "{\"patternProperties\":{\"b\":" WITH("") ",\"c\":" WITH("")
          "}}", SAME },
        { 1, "{\"patternProperties\":{\"b\":" WITH("") "}}",
          "{\"patternProperties\":{\"b\":" WITH(CLOSED) "}}" }
    };

    for (i = 0; i < llm_nelems(cases); i++) {
        llm_buf_init(&flat, 0);
        llm_buf_init(&closed, 0);
        llm_buf_init(&text, 0);

        if (llm_json_to_flat(cases[i].schema, strlen(cases[i].schema), NULL,
                             &flat, &err)
            != LLM_OK)
        {
            ok(0, "%s: %s", cases[i].schema, err.msg);
            continue;
        }

        rc = llm_schema_close((const llm_flat_t *) flat.data, cases[i].deep,
                              &closed);

        if (cases[i].want == SAME) {
            is_int(rc, LLM_ABSENT, "%s stays", cases[i].schema);

        } else if (ok(rc == LLM_OK, "%s is closed", cases[i].schema)) {
            is_int(llm_flat_check(closed.data, closed.len), LLM_OK,
                   "to a flat value");
            (void) llm_json_add_flat(&text,
                                     (const llm_flat_t *) closed.data);
            is_str(text.data, cases[i].want, "as it should be");
        }

        llm_buf_free(&flat);
        llm_buf_free(&closed);
        llm_buf_free(&text);
    }
}


int
main(void)
{
    test_close();

    return done_testing();
}
