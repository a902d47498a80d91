/*
 * Loads a vocabulary from GGUF metadata; see vocab.h.
 *
 * The texts of all tokens are copied into one block; bytes.c decodes what they
 * stand for.
 */

#include "engine/text/vocab/pretok.h"

#include <math.h>


static int
llm_vocab_set_kind(llm_vocab_t *v, const llm_gguf_t *g, llm_err_t *err)
{
    int        rc;
    llm_str_t  model;

    rc = llm_gguf_get_str(g, "tokenizer.ggml.model", &model, err);

    if (rc == LLM_ABSENT) {
        return llm_fail(err, "%s: tokenizer.ggml.model: the file has no "
                        "vocabulary", llm_gguf_name(g));
    }

    if (rc != LLM_OK) {
        return LLM_ERROR;
    }

    if (llm_str_is(model, "gpt2") || llm_str_is(model, "gemma4")) {
        v->kind = LLM_VOCAB_BPE;
        return LLM_OK;
    }

    if (llm_str_is(model, "llama")) {
        v->kind = LLM_VOCAB_SPM;
        v->space_prefix = 1;
        v->escape_space = 1;
        return LLM_OK;
    }

    if (llm_str_is(model, "t5")) {
        v->kind = LLM_VOCAB_UNIGRAM;
        v->space_prefix = 1;
        v->escape_space = 1;
        v->merge_spaces = 1;
        return LLM_OK;
    }

    if (llm_str_is(model, "bert")) {
        v->kind = LLM_VOCAB_WORDPIECE;
        v->lowercase = 1;
        return LLM_OK;
    }

    return llm_fail(err, "%s: tokenizer.ggml.model: \"%.*s\" is not "
                    "supported, gpt2, llama, t5 and bert are", llm_gguf_name(g),
                    (int) llm_min(model.len, (size_t) 32), model.data);
}


/* reads the flags that only some kinds of tokenizers use */

static int
llm_vocab_set_flags(llm_vocab_t *v, const llm_gguf_t *g, llm_err_t *err)
{
    if (v->kind == LLM_VOCAB_SPM || v->kind == LLM_VOCAB_UNIGRAM) {

        if (v->kind == LLM_VOCAB_UNIGRAM
            && llm_gguf_get_bool(g, "tokenizer.ggml.remove_extra_whitespaces",
                                 &v->merge_spaces, err)
               == LLM_ERROR)
        {
            return LLM_ERROR;
        }

        return llm_gguf_get_bool(g, "tokenizer.ggml.add_space_prefix",
                                 &v->space_prefix, err)
               == LLM_ERROR ? LLM_ERROR : LLM_OK;
    }

    if (v->kind == LLM_VOCAB_WORDPIECE) {

        if (llm_gguf_get_bool(g, "tokenizer.ggml.normalizer.lowercase",
                              &v->lowercase, err)
            == LLM_ERROR)
        {
            return LLM_ERROR;
        }

        v->strip_accents = v->lowercase;

        return llm_gguf_get_bool(g, "tokenizer.ggml.normalizer.strip_accents",
                                 &v->strip_accents, err)
               == LLM_ERROR ? LLM_ERROR : LLM_OK;
    }

    return LLM_OK;
}


static int
llm_vocab_set_pretok(llm_vocab_t *v, const llm_gguf_t *g, llm_err_t *err)
{
    int                      rc;
    llm_str_t                model, name;
    const llm_pretok_row_t  *row;

    name = llm_str("default");

    rc = llm_gguf_get_str(g, "tokenizer.ggml.pre", &name, err);
    if (rc == LLM_ERROR) {
        return LLM_ERROR;
    }

    if (llm_gguf_get_str(g, "tokenizer.ggml.model", &model, err) == LLM_OK
        && llm_str_is(model, "gemma4"))
    {
        name = model;

    } else if (rc == LLM_ABSENT) {
        llm_vocab_warn(v, "tokenizer.ggml.pre: the file names no "
                       "pre-tokenizer, \"default\" is used");
    }

    row = llm_pretok_find(name);

    if (row == NULL) {
        llm_vocab_warn(v, "tokenizer.ggml.pre: \"%.*s\" is not known, "
                       "\"default\" is used",
                       (int) llm_min(name.len, (size_t) 64), name.data);
        row = llm_pretok_find(llm_str("default"));
    }

    v->ignore_merges = (row->flags & LLM_PRETOK_MERGES) != 0;
    v->add_bos = (row->flags & LLM_PRETOK_BOS) != 0;
    v->byte_level = (row->flags & LLM_PRETOK_RAW) == 0;
    v->escape_space = !v->byte_level;

    v->pretok = llm_pretok_create(row, err);

    return v->pretok ? LLM_OK : LLM_ERROR;
}


static int
llm_vocab_begins(llm_str_t s, const char *text)
{
    return s.len > strlen(text) && memcmp(s.data, text, strlen(text)) == 0;
}


/* does WordPiece mark continuations by "##", as in BERT's own files?
   Otherwise beginnings are marked by U+2581 */

static int
llm_vocab_has_hashes(const llm_vocab_t *v, const llm_gguf_kv_t *kv)
{
    int          hashes;
    uint32_t     i;
    llm_str_t    s;
    const char  *p;

    hashes = 0;

    for (i = 0, p = kv->data; v->kind == LLM_VOCAB_WORDPIECE && i < v->n;
         i++)
    {
        s = llm_gguf_next_str(&p);
        hashes |= llm_vocab_begins(s, "##");

        if (llm_vocab_begins(s, LLM_SPACE_MARK)) {
            return 0;
        }
    }

    return hashes;
}


/* copies a token's text to out, converting "##" to the form with U+2581;
   "[CLS]" and similar tokens are no words */

static size_t
llm_vocab_copy(llm_str_t s, int hashes, char *out)
{
    size_t  mark;

    if (!hashes || (s.len > 2 && s.data[0] == '['
                    && s.data[s.len - 1] == ']'))
    {
        memcpy(out, s.data, s.len);
        return s.len;
    }

    if (llm_vocab_begins(s, "##")) {
        memcpy(out, s.data + 2, s.len - 2);
        return s.len - 2;
    }

    mark = s.len ? LLM_SPACE_MARK_LEN : 0;
    memcpy(out, LLM_SPACE_MARK, mark);
    memcpy(out + mark, s.data, s.len);

    return s.len + mark;
}


static int
llm_vocab_set_texts(llm_vocab_t *v, const llm_gguf_t *g, llm_err_t *err)
{
    int                   hashes;
    char                 *copy;
    size_t                size;
    uint32_t              i;
    llm_str_t             s;
    const char           *p;
    const llm_gguf_kv_t  *kv;

    kv = llm_gguf_find(g, "tokenizer.ggml.tokens");

    if (kv == NULL) {
        return llm_fail(err, "%s: tokenizer.ggml.tokens: the file has none",
                        llm_gguf_name(g));
    }

    if (kv->type != LLM_GGUF_ARRAY || kv->item != LLM_GGUF_STR
        || kv->count == 0 || kv->count > INT32_MAX / 2)
    {
        return llm_fail(err, "%s: tokenizer.ggml.tokens: not an array of 1 "
                        "to %d strings", llm_gguf_name(g), INT32_MAX / 2);
    }

    v->n = (uint32_t) kv->count;

    for (i = 0, size = 0, p = kv->data; i < v->n; i++) {
        s = llm_gguf_next_str(&p);
        size += s.len;

        if (s.len > LLM_TOKEN_MAX) {
            return llm_fail(err, "%s: tokenizer.ggml.tokens: token %u has "
                            "%zu bytes, more than %d", llm_gguf_name(g), i,
                            s.len, LLM_TOKEN_MAX);
        }
    }

    hashes = llm_vocab_has_hashes(v, kv);
    size += hashes ? (size_t) v->n * LLM_SPACE_MARK_LEN : 0;
    copy = llm_arena_alloc(&v->arena, size);

    if (copy == NULL || llm_strmap_init(&v->map, v->n, v->seed) != LLM_OK) {
        return llm_vocab_no_memory(g, err);
    }

    for (i = 0, p = kv->data; i < v->n; i++) {
        s = llm_gguf_next_str(&p);
        s.len = llm_vocab_copy(s, hashes, copy);
        s.data = copy;
        copy += s.len;

        if (llm_strmap_add(&v->map, s) == LLM_STRMAP_NONE) {
            return llm_vocab_no_memory(g, err);
        }
    }

    return LLM_OK;
}


/* *kv: the key's array with a number for each token, or NULL */

static int
llm_vocab_array(llm_vocab_t *v, const llm_gguf_t *g, const char *key,
    const llm_gguf_kv_t **kv, llm_err_t *err)
{
    *kv = llm_gguf_find(g, key);

    if (*kv == NULL) {
        return LLM_OK;
    }

    if ((*kv)->type != LLM_GGUF_ARRAY || (*kv)->item == LLM_GGUF_STR) {
        return llm_fail(err, "%s: %s: not an array of numbers",
                        llm_gguf_name(g), key);
    }

    if ((*kv)->count < v->n) {
        return llm_fail(err, "%s: %s: %llu items for %u tokens",
                        llm_gguf_name(g), key,
                        (unsigned long long) (*kv)->count, v->n);
    }

    return LLM_OK;
}


static int
llm_vocab_set_types(llm_vocab_t *v, const llm_gguf_t *g, llm_err_t *err)
{
    int64_t               type;
    uint32_t              i;
    const llm_gguf_kv_t  *kv;

    v->type = calloc(v->n, 1);
    v->flags = calloc(v->n, 1);

    if (v->type == NULL || v->flags == NULL) {
        return llm_vocab_no_memory(g, err);
    }

    if (llm_vocab_array(v, g, "tokenizer.ggml.token_type", &kv, err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    for (i = 0; i < v->n; i++) {
        type = kv ? llm_gguf_item_int(kv, i) : LLM_TOKEN_NORMAL;

        v->type[i] = type >= LLM_TOKEN_NORMAL && type <= LLM_TOKEN_BYTE
                     ? (uint8_t) type : LLM_TOKEN_NORMAL;
    }

    return LLM_OK;
}


static int
llm_vocab_set_scores(llm_vocab_t *v, const llm_gguf_t *g, llm_err_t *err)
{
    double                d;
    uint32_t              i;
    const llm_gguf_kv_t  *kv;

    if (llm_vocab_array(v, g, "tokenizer.ggml.scores", &kv, err) != LLM_OK) {
        return LLM_ERROR;
    }

    if (kv == NULL) {
        return llm_fail(err, "%s: tokenizer.ggml.scores: the file has none",
                        llm_gguf_name(g));
    }

    v->score = malloc(v->n * sizeof(float));
    if (v->score == NULL) {
        return llm_vocab_no_memory(g, err);
    }

    for (i = 0; i < v->n; i++) {
        d = llm_gguf_item_double(kv, i);

        if (isnan(d)) {
            return llm_fail(err, "%s: tokenizer.ggml.scores: the score of "
                            "token %u is no number", llm_gguf_name(g), i);
        }

        v->score[i] = (float) d;
    }

    return LLM_OK;
}


/* does any token have U+2581 after other text? */

static int
llm_vocab_mark_begins(const llm_vocab_t *v)
{
    size_t     i, len;
    uint32_t   id;
    llm_str_t  s;

    for (id = 0; id < v->n; id++) {

        if (!llm_vocab_is_plain(v, id)) {
            continue;
        }

        s = v->map.str[id];

        for (i = 0; i < s.len; i += LLM_SPACE_MARK_LEN) {
            if (s.len - i < LLM_SPACE_MARK_LEN
                || memcmp(s.data + i, LLM_SPACE_MARK, LLM_SPACE_MARK_LEN))
            {
                break;
            }
        }

        for (len = LLM_SPACE_MARK_LEN; i + len <= s.len; i++) {
            if (memcmp(s.data + i, LLM_SPACE_MARK, len) == 0) {
                return 0;
            }
        }
    }

    return 1;
}


static int
llm_vocab_read(llm_vocab_t *v, const llm_gguf_t *g, llm_err_t *err)
{
    int  i;

    if (llm_vocab_set_kind(v, g, err) != LLM_OK
        || llm_vocab_set_flags(v, g, err) != LLM_OK
        || llm_vocab_set_texts(v, g, err) != LLM_OK
        || llm_vocab_set_types(v, g, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (v->kind == LLM_VOCAB_BPE && llm_vocab_set_pretok(v, g, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (llm_special_load(v, g, err) != LLM_OK
        || llm_vocab_bytes_load(v, g, err) != LLM_OK
        || llm_added_load(v, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (v->kind == LLM_VOCAB_BPE) {
        if (llm_bpe_load(v, g, err) != LLM_OK) {
            return LLM_ERROR;
        }

        for (i = 0; i < 256; i++) {
            v->leaves_out |= v->byte_id[i] == -1;
        }

        return LLM_OK;
    }

    v->mark_begins = llm_vocab_mark_begins(v);

    if (v->kind == LLM_VOCAB_WORDPIECE) {
        return LLM_OK;
    }

    if (llm_vocab_set_scores(v, g, err) != LLM_OK) {
        return LLM_ERROR;
    }

    return v->kind == LLM_VOCAB_UNIGRAM ? llm_unigram_load(v, g, err)
                                        : LLM_OK;
}


llm_vocab_t *
llm_vocab_load(const llm_gguf_t *g, llm_err_t *err)
{
    llm_vocab_t  *v;

    v = calloc(1, sizeof(llm_vocab_t));
    if (v == NULL) {
        (void) llm_vocab_no_memory(g, err);
        return NULL;
    }

    /* a file written to make hashes collide cannot know this seed */

    v->seed = llm_now_us() ^ (uint64_t) (uintptr_t) v;

    llm_arena_init(&v->arena, SIZE_MAX / 4);
    memset(v->byte_id, 0xff, sizeof(v->byte_id));

    if (llm_vocab_read(v, g, err) != LLM_OK) {
        llm_vocab_free(v);
        return NULL;
    }

    return v;
}


void
llm_vocab_free(llm_vocab_t *v)
{
    if (v == NULL) {
        return;
    }

    llm_pretok_free(v->pretok);
    llm_strmap_free(&v->map);
    llm_trie_free(&v->trie);
    llm_arena_free(&v->arena);
    free(v->bytes);
    free(v->score);
    free(v->type);
    free(v->flags);
    free(v->added);
    free(v->merges);
    free(v);
}
