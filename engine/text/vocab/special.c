/*
 * Tokens with a meaning of their own: BOS, EOS, the unknown token, tokens that
 * end an answer, those around a text with a gap, and those that remove the
 * white space next to them.
 *
 * Files name some of them in their metadata; others are recognised by their
 * text.  The lists here are those of published models.
 */

#include "engine/text/vocab/internal.h"

#include <ctype.h>


typedef struct {
    const char  *text;
    int          strange;               /* 1: the text cannot be an ordinary
                                           word */
} llm_eog_name_t;


/*
 * Names of tokens that end an answer.  A strange one is a control token
 * whatever type the file gives it, since files do get types wrong.  "</s>" is
 * struck-out text in HTML, so it ends an answer only if the file has it as an
 * added token.
 */

static const llm_eog_name_t  llm_eog_names[] = {
    { "<|eot_id|>", 1 },
    { "<|eom_id|>", 1 },
    { "<|eot|>", 1 },
    { "<|eom|>", 1 },
    { "<|im_end|>", 1 },
    { "<|end|>", 1 },
    { "<|return|>", 1 },
    { "<|call|>", 1 },
    { "<|calls|>", 1 },
    { "<|flush|>", 1 },
    { "<|endoftext|>", 1 },
    { "<|end_of_text|>", 1 },
    { "<|end_of_sentence|>", 1 },
    { "<|END_OF_TURN_TOKEN|>", 1 },
    { "[|endofturn|]", 1 },
    { "<|endofassistant|>", 1 },
    { "<seed:eos>", 1 },
    { "<end_of_turn>", 1 },
    { "<turn|>", 1 },
    { "<|tool_response>", 1 },
    { "<end_of_utterance>", 1 },
    { "<\xef\xbd\x9c" "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>",
      1 },
    { "<|fim_pad|>", 1 },
    { "<|repo_name|>", 1 },
    { "<|file_sep|>", 1 },
    { "[e~[", 1 },
    { "</s>", 0 },
    { "<eos>", 0 },
    { "<|eos|>", 0 },
    { "<|observation|>", 0 },
    { "<EOT>", 0 },
    { "_<EOT>", 0 },
    { "[EOT]", 0 },
    { "[EOS]", 0 }
};


/* metadata keys of tokens that end an answer */

static const char  *llm_eog_keys[] = {
    "tokenizer.ggml.eos_token_id",
    "tokenizer.ggml.eot_token_id",
    "tokenizer.ggml.eom_token_id",
    "tokenizer.ggml.fim_pad_token_id",
    "tokenizer.ggml.fim_rep_token_id",
    "tokenizer.ggml.fim_sep_token_id"
};


static int32_t
llm_special_find(const llm_vocab_t *v, const char *text)
{
    return llm_vocab_find(v, text, strlen(text));
}


/* reads the id of a key to *id, which stays unchanged if the key is absent;
   2^32 - 1 means none */

static int
llm_special_id(const llm_vocab_t *v, const llm_gguf_t *g, const char *key,
    int32_t *id, llm_err_t *err)
{
    int       rc;
    uint32_t  u;

    rc = llm_gguf_get_u32(g, key, &u, err);
    if (rc != LLM_OK) {
        return rc == LLM_ABSENT ? LLM_OK : LLM_ERROR;
    }

    if (u == UINT32_MAX) {
        *id = -1;
        return LLM_OK;
    }

    if (u >= v->n) {
        return llm_fail(err, "%s: %s: %u is no token, the vocabulary has %u",
                        llm_gguf_name(g), key, u, v->n);
    }

    *id = (int32_t) u;

    return LLM_OK;
}


/*
 * Padding is never sent, so its id may be wrong: some files have the id of a
 * token that was added after the end of their vocabulary.
 */

static int
llm_special_pad(llm_vocab_t *v, const llm_gguf_t *g, llm_err_t *err)
{
    int       rc;
    uint32_t  u;

    static const char  key[] = "tokenizer.ggml.padding_token_id";

    rc = llm_gguf_get_u32(g, key, &u, err);

    if (rc == LLM_OK && u >= v->n && u != UINT32_MAX) {
        llm_vocab_warn(v, "%s: %u is no token, the vocabulary has %u", key, u,
                       v->n);
        return LLM_OK;
    }

    return llm_special_id(v, g, key, &v->pad, err);
}


static int
llm_special_flag(const llm_gguf_t *g, const char *key, int *flag,
    llm_err_t *err)
{
    return llm_gguf_get_bool(g, key, flag, err) == LLM_ERROR ? LLM_ERROR
                                                             : LLM_OK;
}


/* sets what a kind of tokenizer has if the file says nothing */

static void
llm_special_defaults(llm_vocab_t *v)
{
    v->bos = -1;
    v->eos = -1;
    v->unk = -1;
    v->pad = -1;

    switch (v->kind) {

    case LLM_VOCAB_BPE:
        break;

    case LLM_VOCAB_SPM:
        v->bos = llm_special_find(v, "<s>");
        v->eos = llm_special_find(v, "</s>");
        v->unk = llm_special_find(v, "<unk>");
        v->add_bos = 1;
        break;

    case LLM_VOCAB_UNIGRAM:
        v->bos = llm_special_find(v, "<s>");
        v->eos = llm_special_find(v, "</s>");
        v->unk = llm_special_find(v, "<unk>");
        v->add_bos = 1;
        v->add_eos = 1;
        break;

    default:
        v->bos = llm_special_find(v, "[CLS]");
        v->eos = llm_special_find(v, "[SEP]");
        v->unk = llm_special_find(v, "[UNK]");
        v->add_bos = 1;
        v->add_eos = 1;
    }
}


static int
llm_special_ids(llm_vocab_t *v, const llm_gguf_t *g, llm_err_t *err)
{
    llm_special_defaults(v);

    if (llm_special_id(v, g, "tokenizer.ggml.bos_token_id", &v->bos, err)
        != LLM_OK
        || llm_special_id(v, g, "tokenizer.ggml.eos_token_id", &v->eos, err)
           != LLM_OK
        || llm_special_id(v, g, "tokenizer.ggml.unknown_token_id", &v->unk,
                          err)
           != LLM_OK
        || llm_special_pad(v, g, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (v->kind == LLM_VOCAB_WORDPIECE) {

        /* "seperator" is how the key is spelt */

        if (llm_special_id(v, g, "tokenizer.ggml.cls_token_id", &v->bos, err)
            != LLM_OK
            || llm_special_id(v, g, "tokenizer.ggml.seperator_token_id",
                              &v->eos, err)
               != LLM_OK)
        {
            return LLM_ERROR;
        }
    }

    if (llm_special_flag(g, "tokenizer.ggml.add_bos_token", &v->add_bos, err)
        != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_special_flag(g, "tokenizer.ggml.add_eos_token", &v->add_eos,
                            err);
}


/*
 * gpt-oss and its derivatives end a message with <|end|> and continue; they
 * end an answer with <|return|> or <|call|>.
 */

static void
llm_eog_except(llm_vocab_t *v)
{
    int32_t  end;

    end = llm_special_find(v, "<|end|>");

    if (end == -1 || end == v->eos) {
        return;
    }

    if ((llm_special_find(v, "<|return|>") != -1
         && llm_special_find(v, "<|call|>") != -1)
        || (llm_special_find(v, "<|calls|>") != -1
            && llm_special_find(v, "<|flush|>") != -1))
    {
        v->flags[end] &= (uint8_t) ~LLM_TOKEN_EOG;
    }
}


static int
llm_eog_load(llm_vocab_t *v, const llm_gguf_t *g, llm_err_t *err)
{
    size_t   i;
    int32_t  id;

    for (i = 0; i < llm_nelems(llm_eog_names); i++) {
        id = llm_special_find(v, llm_eog_names[i].text);

        if (id == -1) {
            continue;
        }

        if (v->type[id] == LLM_TOKEN_NORMAL && !llm_eog_names[i].strange) {
            continue;
        }

        v->type[id] = LLM_TOKEN_CONTROL;
        v->flags[id] |= LLM_TOKEN_EOG;
    }

    llm_eog_except(v);

    for (i = 0; i < llm_nelems(llm_eog_keys); i++) {
        id = -1;

        if (llm_special_id(v, g, llm_eog_keys[i], &id, err) != LLM_OK) {
            return LLM_ERROR;
        }

        if (id != -1) {
            v->flags[id] |= LLM_TOKEN_EOG;
        }
    }

    return LLM_OK;
}


/*
 * Tokens around a gap: from metadata, which have an older and a newer name, or
 * else by the texts of published models.
 */

static int
llm_fim_load(llm_vocab_t *v, const llm_gguf_t *g, llm_err_t *err)
{
    size_t    i, k;
    int32_t  *id;

    static const struct {
        size_t       to;
        const char  *keys[2];
        const char  *names[6];
    } tokens[] = {
        { offsetof(llm_fim_t, prefix),
          { "tokenizer.ggml.prefix_token_id",
            "tokenizer.ggml.fim_pre_token_id" },
          { "<|fim_prefix|>", "<fim_prefix>", "<fim-prefix>",
            "<\xef\xbd\x9c" "fim\xe2\x96\x81" "begin\xef\xbd\x9c>",
            "<|code_prefix|>", "\xe2\x96\x81<PRE>" } },
        { offsetof(llm_fim_t, suffix),
          { "tokenizer.ggml.suffix_token_id",
            "tokenizer.ggml.fim_suf_token_id" },
          { "<|fim_suffix|>", "<fim_suffix>", "<fim-suffix>",
            "<\xef\xbd\x9c" "fim\xe2\x96\x81hole\xef\xbd\x9c>",
            "<|code_suffix|>", "\xe2\x96\x81<SUF>" } },
        { offsetof(llm_fim_t, middle),
          { "tokenizer.ggml.middle_token_id",
            "tokenizer.ggml.fim_mid_token_id" },
          { "<|fim_middle|>", "<fim_middle>", "<fim-middle>",
            "<\xef\xbd\x9c" "fim\xe2\x96\x81" "end\xef\xbd\x9c>",
            "<|code_middle|>", "\xe2\x96\x81<MID>" } },
        { offsetof(llm_fim_t, repo),
          { NULL, "tokenizer.ggml.fim_rep_token_id" },
          { "<|repo_name|>", "<|fim_repo|>", "<fim-repo>", "<reponame>",
            "<repo_name>", NULL } },
        { offsetof(llm_fim_t, file),
          { NULL, "tokenizer.ggml.fim_sep_token_id" },
          { "<|file_sep|>", "<file_sep>", "<file-sep>", "<filename>", NULL,
            NULL } }
    };

    for (i = 0; i < llm_nelems(tokens); i++) {
        id = (int32_t *) (void *) ((char *) &v->fim + tokens[i].to);
        *id = -1;

        for (k = 0; k < llm_nelems(tokens[i].keys); k++) {
            if (tokens[i].keys[k]
                && llm_special_id(v, g, tokens[i].keys[k], id, err)
                   != LLM_OK)
            {
                return LLM_ERROR;
            }
        }

        for (k = 0; k < llm_nelems(tokens[i].names) && *id == -1; k++) {
            if (tokens[i].names[k]) {
                *id = llm_special_find(v, tokens[i].names[k]);
            }
        }
    }

    return LLM_OK;
}


static int
llm_special_contains(llm_str_t s, const char *word)
{
    size_t  i, k, len;

    len = strlen(word);

    for (i = 0; i + len <= s.len; i++) {

        for (k = 0; k < len; k++) {
            if (tolower((unsigned char) s.data[i + k]) != word[k]) {
                break;
            }
        }

        if (k == len) {
            return 1;
        }
    }

    return 0;
}


/*
 * White space next to a token: GGUF has no field for it, so the models that
 * need it are recognised by name.  Phi-3's tokens remove white space after
 * them; a mask token removes white space before it.
 */

static int
llm_special_strip(llm_vocab_t *v, const llm_gguf_t *g, llm_err_t *err)
{
    int32_t    id;
    uint32_t   i;
    llm_str_t  name, pre;

    static const char  *keep[] = { "<s>", "<unk>", "<|endoftext|>" };

    name = llm_str("");
    pre = llm_str("");

    if (llm_gguf_get_str(g, "general.name", &name, err) == LLM_ERROR
        || llm_gguf_get_str(g, "tokenizer.ggml.pre", &pre, err) == LLM_ERROR)
    {
        return LLM_ERROR;
    }

    if (llm_special_contains(name, "phi-3")
        || llm_special_contains(name, "phi3"))
    {
        for (i = 0; i < v->n; i++) {
            if (v->type[i] == LLM_TOKEN_CONTROL
                || v->type[i] == LLM_TOKEN_UNKNOWN
                || v->type[i] == LLM_TOKEN_USER_DEFINED)
            {
                v->flags[i] |= LLM_TOKEN_RSTRIP;
            }
        }

        for (i = 0; i < llm_nelems(keep); i++) {
            id = llm_special_find(v, keep[i]);
            if (id != -1) {
                v->flags[id] &= (uint8_t) ~LLM_TOKEN_RSTRIP;
            }
        }
    }

    if (llm_special_contains(pre, "jina-v2-")) {
        id = llm_special_find(v, "<mask>");
        if (id != -1) {
            v->flags[id] |= LLM_TOKEN_LSTRIP;
        }
    }

    return LLM_OK;
}


int
llm_special_load(llm_vocab_t *v, const llm_gguf_t *g, llm_err_t *err)
{
    if (llm_special_ids(v, g, err) != LLM_OK
        || llm_eog_load(v, g, err) != LLM_OK
        || llm_fim_load(v, g, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return llm_special_strip(v, g, err);
}
