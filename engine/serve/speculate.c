/*
 * The kinds of drafts by name: in the configuration, on the command line and in
 * metrics.
 */

#include "engine/serve/engine.h"

/* what comes before the path of a model that drafts */
#define LLM_SPECULATE_DRAFT  "draft="


static const char *const  llm_draft_names[LLM_DRAFT_N] = {
    NULL, "ngram", "prediction", "grammar", "draft", "mtp"
};


const char *
llm_draft_name(llm_draft_kind_t kind)
{
    return llm_draft_names[kind];
}


/* predictions and grammars come with requests, and need no word */

static llm_draft_kind_t
llm_speculate_kind(llm_str_t word, llm_str_t *path)
{
    size_t  len;

    len = sizeof(LLM_SPECULATE_DRAFT) - 1;

    if (llm_str_is(word, llm_draft_names[LLM_DRAFT_NGRAM])) {
        return LLM_DRAFT_NGRAM;
    }

    if (llm_str_is(word, llm_draft_names[LLM_DRAFT_MTP])) {
        return LLM_DRAFT_MTP;
    }

    if (word.len > len && memcmp(word.data, LLM_SPECULATE_DRAFT, len) == 0) {
        path->data = word.data + len;
        path->len = word.len - len;
        return LLM_DRAFT_MODEL;
    }

    return LLM_DRAFT_NONE;
}


int
llm_speculate_read(llm_str_t text, uint32_t kinds[LLM_DRAFT_N],
    llm_str_t *path, llm_err_t *err)
{
    uint32_t          i, n;
    llm_str_t         word;
    const char       *comma;
    llm_draft_kind_t  kind;

    memset(kinds, 0, LLM_DRAFT_N * sizeof(*kinds));
    *path = llm_str("");

    if (llm_str_is(text, "off")) {
        return LLM_OK;
    }

    for (n = 0; n < LLM_DRAFT_N - 1; n++) {
        comma = text.len ? memchr(text.data, ',', text.len) : NULL;
        word.data = text.data;
        word.len = comma ? (size_t) (comma - text.data) : text.len;
        kind = llm_speculate_kind(word, path);

        for (i = 0; i < n; i++) {
            /* one network can draft */

            if (kinds[i] == kind
                || (kinds[i] != LLM_DRAFT_NGRAM && kind != LLM_DRAFT_NGRAM))
            {
                kind = LLM_DRAFT_NONE;
            }
        }

        if (kind == LLM_DRAFT_NONE) {
            break;
        }

        kinds[n] = kind;

        if (comma == NULL) {
            return LLM_OK;
        }

        text.len -= word.len + 1;
        text.data = comma + 1;
    }

    return llm_fail(err, "it must be \"ngram\", \"mtp\" or \"draft=FILE\", "
                    "\"ngram\" and one of the others with a comma between "
                    "them, or \"off\"");
}
