/*
 * The arguments of a call as an object, for the dialects that do not send them
 * as text.
 */

#include "engine/api/endpoint.h"


static int
llm_api_oo_is_object(const llm_buf_t *json)
{
    int        is;
    llm_buf_t  flat;
    llm_err_t  err;

    llm_buf_init(&flat, 0);
    is = !json->failed
         && llm_json_to_flat(json->data, json->len, NULL, &flat, &err)
            == LLM_OK
         && ((const llm_flat_t *) flat.data)->type == LLM_FLAT_OBJECT;
    llm_buf_free(&flat);

    return is;
}


/* the index after the string that begins at i; 0: the string does not end */

static size_t
llm_api_oo_string(llm_str_t s, size_t i)
{
    for (i++; i < s.len && s.data[i] != '"'; i++) {
        i += s.data[i] == '\\';
    }

    return i < s.len ? i + 1 : 0;
}


/* bytes of an object up to the end of its last complete member; 0: it is no
   object.  A number at the text's end may be incomplete */

static size_t
llm_api_oo_members(llm_str_t s)
{
    int     value;
    char    c;
    size_t  i, n, end, depth;

    end = 0;
    depth = 0;
    value = 0;

    for (i = 0; i < s.len; /* void */ ) {
        c = s.data[i];

        if (i == 0 && c != '{') {
            break;
        }

        if (c == '"') {
            n = llm_api_oo_string(s, i);

            if (n == 0) {
                break;
            }

            i = n;
            end = value && depth == 1 ? i : end;
            continue;
        }

        if (c == '}' || c == ']') {
            if (--depth == 0) {
                return i;
            }

            end = depth == 1 ? i + 1 : end;

        } else if (c == '{' || c == '[') {
            depth++;
            end = depth == 1 ? i + 1 : end;

        } else if (depth == 1 && (c == ':' || c == ',')) {
            end = c == ',' ? i : end;
            value = c == ':';
        }

        i++;
    }

    return end;
}


int
llm_api_output_object(llm_api_t *a, llm_api_item_t *it, llm_err_t *err)
{
    int        rc;
    llm_buf_t  json;

    llm_buf_init(&json, 0);
    llm_api_write_text_of(&it->text, LLM_API_AS_IS, &json);
    rc = LLM_OK;

    if (!llm_api_oo_is_object(&json)) {
        json.len = llm_api_oo_members((llm_str_t) { json.len, json.data });
        (void) llm_buf_addc(&json, '}');

        if (json.failed) {
            rc = llm_fail(err, "no memory for the answer");

        } else {
            it->text.first = NULL;
            it->text.last = NULL;

            if (llm_api_oo_is_object(&json)) {
                rc = llm_api_text_add(a, &it->text, json.data, json.len, err);
            }
        }
    }

    llm_buf_free(&json);

    return rc;
}
