/*
 * Words of products=: see products.h.
 */

#include "engine/base/base.h"
#include "engine/base/products.h"

#include <string.h>

static const char *const  llm_products_words[] = {
    LLM_PRODUCTS_FP8,
    LLM_PRODUCTS_BF16,
    LLM_PRODUCTS_BF16_ALL
};


const char *
llm_products_word(const char *text, size_t len)
{
    size_t  i;

    for (i = 0; i < llm_nelems(llm_products_words); i++) {
        if (strlen(llm_products_words[i]) == len
            && memcmp(llm_products_words[i], text, len) == 0)
        {
            return llm_products_words[i];
        }
    }

    return NULL;
}


int
llm_products_is(const char *word, const char *which)
{
    return word && strcmp(word, which) == 0;
}
