/*
 * What the endpoints of Text Embeddings Inference's API have in common: errors,
 * and the end of a text that is cut.
 *
 * https://huggingface.github.io/text-embeddings-inference/
 */

#include "engine/api/tei.h"


int
llm_api_tei_direction(llm_str_t s, int *left, llm_err_t *err)
{
    *left = llm_str_is(s, "Left") || llm_str_is(s, "left");

    if (s.data && !*left && !llm_str_is(s, "Right")
        && !llm_str_is(s, "right"))
    {
        return llm_api_bad_word(err, llm_api_top("truncation_direction"), s,
                                "Supported values are: 'Right' and 'Left'.");
    }

    return LLM_OK;
}


/* error_type is a word for the kind of error */

void
llm_api_tei_error(const llm_err_t *err, llm_str_t id, llm_buf_t *out)
{
    (void) id;

    (void) llm_buf_adds(out, "{\"error\":\"");
    llm_api_error_text(err, out);
    (void) llm_buf_addf(out, "\",\"error_type\":\"%s\"}",
                        err->status == 429 || err->status == 503 ? "Overloaded"
                        : err->status < 500 ? "Validation" : "Backend");
}
