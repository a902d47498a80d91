/*
 * The prompt of a pair of a query and a document, made from the file's
 * tokenizer.chat_template.rerank: plain text with the places {query} and
 * {document}, not a template with statements.  For an encoder whose file has
 * none, query and document are put between the vocabulary's BOS and EOS.
 *
 * What a client sends is inserted unchanged: a "{document}" in a query, or the
 * name of a control token in either, is text like any other.
 */

#include "engine/prepare/prepare.h"

#define LLM_RANK_KEY    "tokenizer.chat_template.rerank"
#define LLM_RANK_MAX    ((size_t) 64 << 10)     /* most bytes of the text */


/* returns the offset of the next place from `at` on, and its name; t->len and
   an empty name if there is none */

static size_t
llm_rank_place(const llm_rank_text_t *t, size_t at, llm_str_t *name)
{
    size_t  i, k;

    static const llm_str_t  names[] = {
        { sizeof("{query}") - 1, "{query}" },
        { sizeof("{document}") - 1, "{document}" }
    };

    for (i = at; i < t->len; i++) {
        for (k = 0; k < llm_nelems(names); k++) {
            if (names[k].len <= t->len - i
                && memcmp(t->text + i, names[k].data, names[k].len) == 0)
            {
                *name = names[k];
                return i;
            }
        }
    }

    *name = (llm_str_t) { 0, NULL };

    return t->len;
}


/* counts the places of the query, and of both texts */

static uint32_t
llm_rank_places(const llm_rank_text_t *t, uint32_t *queries)
{
    size_t     at;
    uint32_t   n;
    llm_str_t  name;

    n = 0;
    *queries = 0;

    for (at = llm_rank_place(t, 0, &name); at < t->len;
         at = llm_rank_place(t, at + name.len, &name))
    {
        n++;
        *queries += name.data[1] == 'q';
    }

    return n;
}


/* has the text both places, and so few that LLM_RANK_SPANS suffices for the
   text between them? */

static int
llm_rank_is_whole(const llm_rank_text_t *t)
{
    uint32_t  n, queries;

    n = llm_rank_places(t, &queries);

    return queries > 0 && queries < n && n < LLM_RANK_SPANS;
}


int
llm_rank_once(const llm_rank_text_t *t)
{
    uint32_t  queries;

    return llm_rank_places(t, &queries) == 2;
}


/* writes [CLS]{query}[SEP]{document}[SEP]; models of the RoBERTa family, which
   are recognised by their "</s>", have [SEP] twice between the two */

static void
llm_rank_frame(const llm_vocab_t *v, llm_buf_t *text)
{
    llm_str_t  bos, eos;

    bos = llm_vocab_bytes(v, llm_vocab_bos(v));
    eos = llm_vocab_bytes(v, llm_vocab_eos(v));

    (void) llm_buf_add(text, bos.data, bos.len);
    (void) llm_buf_add(text, "{query}", 7);
    (void) llm_buf_add(text, eos.data, eos.len);

    if (llm_str_is(eos, "</s>")) {
        (void) llm_buf_add(text, eos.data, eos.len);
    }

    (void) llm_buf_add(text, "{document}", 10);
    (void) llm_buf_add(text, eos.data, eos.len);
}


static int
llm_rank_load_frame(llm_prep_env_t *env, const llm_gguf_t *g, llm_err_t *err)
{
    llm_buf_t  text;

    if (env->model == NULL || !llm_model_hparams(env->model)->encoder) {
        return LLM_OK;
    }

    llm_buf_init(&text, LLM_RANK_MAX);
    llm_rank_frame(env->vocab, &text);

    if (text.failed) {
        llm_buf_free(&text);
        return llm_fail(err, "%s: no memory for the prompt of a pair",
                        llm_gguf_name(g));
    }

    env->rank.text = text.data;
    env->rank.len = text.len;

    return LLM_OK;
}


int
llm_rank_load(llm_prep_env_t *env, const llm_gguf_t *g, llm_err_t *err)
{
    llm_str_t         s;
    llm_rank_text_t  *t;

    t = &env->rank;
    t->text = NULL;
    t->len = 0;

    if (llm_gguf_get_str(g, LLM_RANK_KEY, &s, NULL) != LLM_OK
        || s.len > LLM_RANK_MAX)
    {
        return llm_rank_load_frame(env, g, err);
    }

    t->text = malloc(s.len + 1);
    if (t->text == NULL) {
        return llm_fail(err, "%s: no memory for " LLM_RANK_KEY,
                        llm_gguf_name(g));
    }

    memcpy(t->text, s.data, s.len);
    t->len = s.len;

    if (!llm_rank_is_whole(t)) {
        llm_rank_free(t);
    }

    return LLM_OK;
}


void
llm_rank_free(llm_rank_text_t *t)
{
    free(t->text);
    t->text = NULL;
    t->len = 0;
}


int
llm_rank_check(const llm_prep_env_t *env, llm_err_t *err)
{
    if (env->runner->rank == NULL) {
        return llm_fail_with(err, 400, "unsupported_model", "model",
                             "This model does not rank.");
    }

    if (llm_model_can_rank(env->model, err) != LLM_OK) {
        return LLM_ERROR;
    }

    if (env->rank.text == NULL) {
        return llm_fail_with(err, 400, "unsupported_model", "model",
                             "This model cannot rank: its file has no "
                             LLM_RANK_KEY " with {query} and {document}.");
    }

    return LLM_OK;
}


uint32_t
llm_rank_write(const llm_rank_text_t *t, llm_str_t query, llm_str_t document,
    llm_buf_t *out, llm_span_t *spans, size_t *places)
{
    size_t     at, end;
    uint32_t   n;
    llm_str_t  name;

    n = 0;

    for (at = 0; at < t->len; at = end + name.len) {
        end = llm_rank_place(t, at, &name);

        if (end > at) {
            spans[n].start = out->len;
            spans[n++].end = out->len + end - at;
            (void) llm_buf_add(out, t->text + at, end - at);
        }

        if (name.len == 0) {
            break;
        }

        if (name.data[1] == 'q') {
            places[0] = out->len;
            (void) llm_buf_add(out, query.data, query.len);

        } else {
            places[1] = out->len;
            (void) llm_buf_add(out, document.data, document.len);
        }
    }

    return n;
}
