/*
 * Answers questions about a vocabulary's tokens, and describes the vocabulary
 * for the log; see vocab.h.
 */

#include "engine/text/vocab/internal.h"

#include <stdarg.h>
#include <stdio.h>


/*
 * Ordinary text never becomes a control token, nor a user-defined one that
 * could be mistaken for one; byte tokens are reached by their bytes.
 */

int
llm_vocab_is_plain(const llm_vocab_t *v, uint32_t id)
{
    if (id >= v->n || v->map.str[id].len == 0) {
        return 0;
    }

    switch (v->type[id]) {

    case LLM_TOKEN_CONTROL:
    case LLM_TOKEN_UNKNOWN:
        return 0;

    case LLM_TOKEN_BYTE:
        return v->byte_level;

    case LLM_TOKEN_USER_DEFINED:
        return (v->flags[id] & LLM_TOKEN_HARMLESS) != 0;

    default:
        return 1;
    }
}


uint32_t
llm_vocab_size(const llm_vocab_t *v)
{
    return v->n;
}


int32_t
llm_vocab_bos(const llm_vocab_t *v)
{
    return v->bos;
}


int32_t
llm_vocab_eos(const llm_vocab_t *v)
{
    return v->eos;
}


int32_t
llm_vocab_unk(const llm_vocab_t *v)
{
    return v->unk;
}


int32_t
llm_vocab_pad(const llm_vocab_t *v)
{
    return v->pad;
}


const char *
llm_vocab_kind(const llm_vocab_t *v)
{
    static const char *const  names[] = {
        "bpe", "spm", "wordpiece", "unigram"
    };

    return names[v->kind];
}


const llm_fim_t *
llm_vocab_fim(const llm_vocab_t *v)
{
    return &v->fim;
}


int
llm_vocab_add_bos(const llm_vocab_t *v)
{
    return v->add_bos && v->bos != -1;
}


int
llm_vocab_add_eos(const llm_vocab_t *v)
{
    return v->add_eos && v->eos != -1;
}


int
llm_vocab_is_eog(const llm_vocab_t *v, int32_t id)
{
    return id >= 0 && (uint32_t) id < v->n && (v->flags[id] & LLM_TOKEN_EOG);
}


llm_token_type_t
llm_vocab_type(const llm_vocab_t *v, int32_t id)
{
    return id >= 0 && (uint32_t) id < v->n ? (llm_token_type_t) v->type[id]
                                           : LLM_TOKEN_UNUSED;
}


int32_t
llm_vocab_find(const llm_vocab_t *v, const char *s, size_t len)
{
    uint32_t  id;

    id = llm_strmap_find(&v->map, s, len);

    return id < v->n ? (int32_t) id : -1;
}


llm_str_t
llm_vocab_bytes(const llm_vocab_t *v, int32_t id)
{
    return id >= 0 && (uint32_t) id < v->n ? v->bytes[id] : llm_str("");
}


const char *
llm_vocab_warning(const llm_vocab_t *v)
{
    return v->warning[0] ? v->warning : NULL;
}


void
llm_vocab_warn(llm_vocab_t *v, const char *fmt, ...)
{
    size_t   n;
    va_list  args;

    n = strlen(v->warning);

    if (n) {
        (void) snprintf(v->warning + n, sizeof(v->warning) - n, "; ");
        n = strlen(v->warning);
    }

    va_start(args, fmt);
    (void) vsnprintf(v->warning + n, sizeof(v->warning) - n, fmt, args);
    va_end(args);
}


int
llm_vocab_no_memory(const llm_gguf_t *g, llm_err_t *err)
{
    return llm_fail(err, "%s: no memory for its vocabulary",
                    llm_gguf_name(g));
}
