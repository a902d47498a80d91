/*
 * The readers without a file of their own: any JSON object, a regular
 * expression, a choice of texts; and grammars that consist of one rule.  See
 * grammar.h.
 */

#include "engine/grammar/grammar.h"

#define LLM_READER_NUMBER                                                    \
    "-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?"


/* an object with any keys and values */

static llm_gn_t
llm_reader_object(llm_gram_build_t *b, llm_gn_t value)
{
    llm_gn_object_t  o;
    llm_gn_others_t  any;

    any.key = LLM_RX_TEXT;
    any.value = value;

    memset(&o, 0, sizeof(o));
    o.others = &any;
    o.n_others = 1;
    o.max = LLM_GN_NO_MAX;

    return llm_gn_object(b, &o);
}


static llm_gn_t
llm_reader_array(llm_gram_build_t *b, llm_gn_t items)
{
    llm_gn_array_t  a;

    memset(&a, 0, sizeof(a));
    a.items = items;
    a.max = LLM_GN_NO_MAX;

    return llm_gn_array(b, &a);
}


int
llm_gn_json_object(llm_gram_build_t *b, llm_gn_t *node, llm_err_t *err)
{
    llm_gn_t  kinds[7], value;
    llm_rx_t  number;

    if (llm_rx_parse(llm_gram_pool(b), LLM_READER_NUMBER,
                     sizeof(LLM_READER_NUMBER) - 1, LLM_RX_WHOLE, &number,
                     err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    value = llm_gn_ref(b);
    *node = llm_reader_object(b, value);

    kinds[0] = *node;
    kinds[1] = llm_reader_array(b, value);
    kinds[2] = llm_gn_string(b, LLM_RX_TEXT);
    kinds[3] = llm_gn_regex(b, number);
    kinds[4] = llm_gn_text(b, "true", 4);
    kinds[5] = llm_gn_text(b, "false", 5);
    kinds[6] = llm_gn_text(b, "null", 4);
    llm_gn_define(b, value, llm_gn_alt(b, kinds, 7));

    return LLM_OK;
}


int
llm_gn_pattern(llm_gram_build_t *b, const char *pattern, size_t len,
    llm_gn_t *node, llm_err_t *err)
{
    llm_rx_t  rx;

    if (llm_rx_parse(llm_gram_pool(b), pattern, len, LLM_RX_WHOLE, &rx, err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    *node = llm_gn_regex(b, rx);

    return LLM_OK;
}


llm_gn_t
llm_gn_choice(llm_gram_build_t *b, const llm_str_t *texts, uint32_t n)
{
    return llm_gn_regex(b, llm_rx_literals(llm_gram_pool(b), texts, n));
}


/* ---- grammars of one rule ---- */

/* finishes a grammar whose root has been read, or frees the builder if reading
   has failed */

static llm_gram_t *
llm_reader_finish(llm_gram_build_t *b, int rc, llm_gn_t root,
    const llm_toktree_t *tree, llm_err_t *err)
{
    if (rc != LLM_OK) {
        llm_gram_build_free(b);
        return NULL;
    }

    return llm_gram_finish(b, root, tree, err);
}


static llm_gram_build_t *
llm_reader_build(llm_err_t *err)
{
    llm_gram_build_t  *b;

    b = llm_gram_build();
    if (b == NULL) {
        (void) llm_fail(err, "no memory for a grammar");
    }

    return b;
}


llm_gram_t *
llm_gram_json_object(const llm_toktree_t *tree, llm_err_t *err)
{
    int                rc;
    llm_gn_t           root;
    llm_gram_build_t  *b;

    b = llm_reader_build(err);
    if (b == NULL) {
        return NULL;
    }

    rc = llm_gn_json_object(b, &root, err);

    return llm_reader_finish(b, rc, root, tree, err);
}


llm_gram_t *
llm_gram_gbnf(const char *text, size_t len, const llm_toktree_t *tree,
    llm_err_t *err)
{
    int                rc;
    llm_gn_t           root;
    llm_gram_build_t  *b;

    b = llm_reader_build(err);
    if (b == NULL) {
        return NULL;
    }

    rc = llm_gn_gbnf(b, text, len, &root, err);

    return llm_reader_finish(b, rc, root, tree, err);
}


llm_gram_t *
llm_gram_regex(const char *pattern, size_t len, const llm_toktree_t *tree,
    llm_err_t *err)
{
    int                rc;
    llm_gn_t           root;
    llm_gram_build_t  *b;

    b = llm_reader_build(err);
    if (b == NULL) {
        return NULL;
    }

    rc = llm_gn_pattern(b, pattern, len, &root, err);

    return llm_reader_finish(b, rc, root, tree, err);
}


llm_gram_t *
llm_gram_choice(const llm_str_t *texts, uint32_t n,
    const llm_toktree_t *tree, llm_err_t *err)
{
    llm_gram_build_t  *b;

    b = llm_reader_build(err);
    if (b == NULL) {
        return NULL;
    }

    return llm_gram_finish(b, llm_gn_choice(b, texts, n), tree, err);
}
