/*
 * What ends an answer of each family of models, and what does not though it
 * stands beside: by the tokens that their files have, and what the metadata
 * name.  None of them is shown.
 */

#include "t/unit/gguf_build.h"
#include "t/unit/tap.h"
#include "engine/text/vocab/vocab.h"

#define BYTES  256


static int32_t
number_of(const char *name, const char *const *names, size_t n)
{
    size_t  i;

    for (i = 0; i < n && names[i]; i++) {
        if (strcmp(names[i], name) == 0) {
            return (int32_t) (BYTES + i);
        }
    }

    return -1;
}


/* a vocabulary of bytes with control tokens behind them; a name of the
   metadata that no list has is one more */

static llm_buf_t
family_file(const char *const *lists[2], const size_t *sizes,
    const char *const *ids)
{
    size_t       i, k, n;
    char         text[8];
    llm_buf_t    b;
    const char  *names[16] = { NULL };

    static const char  *const keys[] = {
        "tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
        "tokenizer.ggml.eom_token_id"
    };

    n = 0;

    for (i = 0; i < 2; i++) {
        for (k = 0; k < sizes[i] && lists[i][k]; k++) {
            names[n++] = lists[i][k];
        }
    }

    for (i = 0; i < 3; i++) {
        if (ids[i] && number_of(ids[i], names, n) == -1) {
            names[n++] = ids[i];
        }
    }

    gguf_begin(&b, 3, 0, 4 + (ids[0] != NULL) + (ids[1] != NULL)
                         + (ids[2] != NULL));
    gguf_kv_str(&b, "tokenizer.ggml.model", "llama");
    gguf_kv_array(&b, "tokenizer.ggml.tokens", LLM_GGUF_STR, BYTES + n);

    for (i = 0; i < BYTES; i++) {
        snprintf(text, sizeof(text), "<0x%02X>", (unsigned) i);
        gguf_str(&b, text, strlen(text));
    }

    for (i = 0; i < n; i++) {
        gguf_str(&b, names[i], strlen(names[i]));
    }

    gguf_kv_array(&b, "tokenizer.ggml.token_type", LLM_GGUF_I32, BYTES + n);

    for (i = 0; i < BYTES + n; i++) {
        gguf_u32(&b, i < BYTES ? LLM_TOKEN_BYTE : LLM_TOKEN_CONTROL);
    }

    gguf_kv_array(&b, "tokenizer.ggml.scores", LLM_GGUF_F32, BYTES + n);

    for (i = 0; i < BYTES + n; i++) {
        gguf_u32(&b, 0);
    }

    for (i = 0; i < 3; i++) {
        if (ids[i]) {
            gguf_kv_u32(&b, keys[i], (uint32_t) number_of(ids[i], names, n));
        }
    }

    return b;
}


/* is nothing written for it? */

static int
hidden(const llm_vocab_t *v, int32_t id)
{
    int          is;
    llm_detok_t  d;

    llm_detok_init(&d, v, 0, 0);
    is = llm_detok_push(&d, id).len == 0 && llm_detok_flush(&d, 0).len == 0;
    llm_detok_free(&d);

    return is;
}


static void
test_families(void)
{
    size_t        i, k, n;
    int32_t       id;
    llm_buf_t     b;
    llm_err_t     err;
    llm_gguf_t   *g;
    llm_vocab_t  *v;

    static const struct {
        const char  *family;
        const char  *ids[3];            /* EOS, EOT and EOM of the metadata */
        const char  *ends[4];
        const char  *goes_on[5];
    } families[] = {
        { "gpt-oss",
          { "<|return|>" },
          { "<|return|>", "<|call|>", "<|endoftext|>" },
          { "<|end|>", "<|channel|>", "<|message|>", "<|start|>" } },
        { "Gemma 3",
          { "<eos>", "<end_of_turn>" },
          { "<eos>", "<end_of_turn>" }, { "<start_of_turn>", "<bos>" } },
        { "Gemma 3, EOS alone",
          { "<eos>" },
          { "<eos>", "<end_of_turn>" }, { "<start_of_turn>", "<bos>" } },
        { "Gemma 4",
          { "<eos>" },
          { "<eos>", "<turn|>", "<|tool_response>" },
          { "<|turn>", "<|channel>", "<channel|>" } },
        { "GLM 4",
          { "<|endoftext|>", "<|user|>" },
          { "<|endoftext|>", "<|user|>", "<|observation|>" },
          { "<|assistant|>", "<|system|>", "[gMASK]", "<sop>" } },
        { "DeepSeek",
          { "<\xef\xbd\x9c" "end\xe2\x96\x81of\xe2\x96\x81"
            "sentence\xef\xbd\x9c>" },
          { "<\xef\xbd\x9c" "end\xe2\x96\x81of\xe2\x96\x81"
            "sentence\xef\xbd\x9c>" },
          { "<\xef\xbd\x9c" "User\xef\xbd\x9c>",
            "<\xef\xbd\x9c" "Assistant\xef\xbd\x9c>" } },
        { "Granite",
          { "<|end_of_text|>" },
          { "<|end_of_text|>" }, { "<|start_of_role|>", "<|end_of_role|>" } },
        { "Phi 3",
          { "<|endoftext|>" },
          { "<|endoftext|>", "<|end|>" },
          { "<|user|>", "<|assistant|>", "<|system|>" } },
        { "Phi 4",
          { "<|im_end|>" },
          { "<|im_end|>", "<|endoftext|>" }, { "<|im_start|>", "<|im_sep|>" } },
        { "SmolLM3",
          { "<|im_end|>" },
          { "<|im_end|>", "<|end_of_text|>" }, { "<|im_start|>" } },
        { "Mistral",
          { "</s>" },
          { "</s>" }, { "[INST]", "[/INST]", "[TOOL_CALLS]", "<s>" } },
        { "Llama 4",
          { "<|eot|>" },
          { "<|eot|>", "<|eom|>", "<|end_of_text|>" },
          { "<|header_start|>", "<|header_end|>", "<|begin_of_text|>" } },
        { "Llama 4, a base model's metadata",
          { "<|end_of_text|>" },
          { "<|eot|>", "<|eom|>", "<|end_of_text|>" },
          { "<|header_start|>", "<|header_end|>" } },
        { "Command R",
          { "<|END_OF_TURN_TOKEN|>" },
          { "<|END_OF_TURN_TOKEN|>" },
          { "<|START_OF_TURN_TOKEN|>", "<|CHATBOT_TOKEN|>",
            "<|END_THINKING|>", "<|END_ACTION|>" } },
        { "EXAONE 4",
          { "[|endofturn|]" },
          { "[|endofturn|]" }, { "[|user|]", "[|assistant|]", "[|system|]" } },
        { "EXAONE, EOS by its text",
          { NULL },
          { "[|endofturn|]", "<|endoftext|>" }, { "[|user|]" } },
        { "Hunyuan",
          { "<\xef\xbd\x9c" "hy_place\xe2\x96\x81" "holder"
            "\xe2\x96\x81no\xe2\x96\x81" "2\xef\xbd\x9c>" },
          { "<\xef\xbd\x9c" "hy_place\xe2\x96\x81" "holder"
            "\xe2\x96\x81no\xe2\x96\x81" "2\xef\xbd\x9c>" },
          { "<\xef\xbd\x9c" "hy_User\xef\xbd\x9c>",
            "<\xef\xbd\x9c" "hy_Assistant\xef\xbd\x9c>" } },
        { "Hunyuan A13B",
          { "<|eos|>" },
          { "<|eos|>" }, { "<|startoftext|>", "<|extra_0|>" } },
        { "MiniMax M2",
          { "[e~[" },
          { "[e~[" }, { "]~b]", "]~!b[", "<think>" } },
        { "Ernie 4.5",
          { "</s>" },
          { "</s>", "<|end_of_sentence|>" }, { "<|begin_of_sentence|>" } },
        { "Seed-OSS",
          { "<seed:eos>" },
          { "<seed:eos>" }, { "<seed:bos>", "<seed:think>" } },
        { "Nemotron",
          { "<SPECIAL_12>" },
          { "<SPECIAL_12>" }, { "<SPECIAL_10>", "<SPECIAL_11>" } },
        { "LFM2",
          { "<|im_end|>" },
          { "<|im_end|>", "<|endoftext|>" },
          { "<|im_start|>", "<|tool_call_start|>", "<|startoftext|>" } },
        { "Kimi",
          { "[EOS]", "<|im_end|>" },
          { "[EOS]", "[EOT]", "<|im_end|>" },
          { "<|im_user|>", "<|im_middle|>" } },
        { "tools' own end",
          { "<a>", "<b>", "<c>" },
          { "<a>", "<b>", "<c>" }, { "<d>" } }
    };

    for (i = 0; i < llm_nelems(families); i++) {
        b = family_file((const char *const *[]) { families[i].ends,
                                                  families[i].goes_on },
                        (size_t[]) { llm_nelems(families[i].ends),
                                     llm_nelems(families[i].goes_on) },
                        families[i].ids);
        g = llm_gguf_open_memory(b.data, b.len, "v", &err);
        v = g ? llm_vocab_load(g, &err) : NULL;

        if (!ok(v != NULL, "%s: loads", families[i].family)) {
            printf("# %s\n", err.msg);
            continue;
        }

        for (k = 0, n = 0; k < llm_nelems(families[i].ends); k++) {
            if (families[i].ends[k]) {
                id = llm_vocab_find(v, families[i].ends[k],
                                    strlen(families[i].ends[k]));
                n += !llm_vocab_is_eog(v, id) || !hidden(v, id);
            }
        }

        is_int(n, 0, "%s: its ends of turns end, and are not shown",
               families[i].family);

        for (k = 0, n = 0; k < llm_nelems(families[i].goes_on); k++) {
            if (families[i].goes_on[k]) {
                id = llm_vocab_find(v, families[i].goes_on[k],
                                    strlen(families[i].goes_on[k]));
                n += id == -1 || llm_vocab_is_eog(v, id) || !hidden(v, id);
            }
        }

        is_int(n, 0, "%s: what else there is does not, nor is it shown",
               families[i].family);

        llm_vocab_free(v);
        llm_gguf_close(g);
        llm_buf_free(&b);
    }
}


int
main(void)
{
    test_families();

    return done_testing();
}
