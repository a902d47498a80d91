/*
 * The command info: a GGUF file's format and model, whether the engine can run
 * it, its metadata, and with --all its tensors.
 */

#include "engine/file/source.h"
#include "engine/base/language.h"
#include "engine/cli/cli.h"
#include "engine/model/whisper.h"
#include "engine/serve/check.h"

#include <stdio.h>

#define LLM_CLI_MAX_VALUE  100          /* most bytes shown of a string */
#define LLM_CLI_MAX_ITEMS  6            /* most items shown of an array */


/* adds the beginning of a string in quotes, control characters as \n or ? */

static void
llm_cli_add_text(llm_buf_t *b, llm_str_t s)
{
    size_t  i;

    (void) llm_buf_addc(b, '"');

    for (i = 0; i < s.len && i < LLM_CLI_MAX_VALUE; i++) {
        if (s.data[i] == '\n') {
            (void) llm_buf_adds(b, "\\n");

        } else if ((unsigned char) s.data[i] < 0x20 || s.data[i] == 0x7f) {
            (void) llm_buf_addc(b, '?');

        } else {
            (void) llm_buf_addc(b, s.data[i]);
        }
    }

    (void) llm_buf_addc(b, '"');

    if (i < s.len) {
        (void) llm_buf_addf(b, " ... (%zu bytes)", s.len);
    }
}


static void
llm_cli_add_number(llm_buf_t *b, const llm_gguf_kv_t *kv,
    llm_gguf_type_t type, uint64_t i)
{
    switch (type) {

    case LLM_GGUF_F32:
    case LLM_GGUF_F64:
        (void) llm_buf_addf(b, "%.9g", llm_gguf_item_double(kv, i));
        break;

    case LLM_GGUF_BOOL:
        (void) llm_buf_adds(b, llm_gguf_item_int(kv, i) ? "true" : "false");
        break;

    case LLM_GGUF_U64:
        (void) llm_buf_addf(b, "%llu",
                            (unsigned long long) llm_gguf_item_int(kv, i));
        break;

    default:
        (void) llm_buf_addf(b, "%lld",
                            (long long) llm_gguf_item_int(kv, i));
        break;
    }
}


static void
llm_cli_add_value(llm_buf_t *b, const llm_gguf_kv_t *kv)
{
    uint64_t     i;
    const char  *p;

    p = kv->data;

    if (kv->type == LLM_GGUF_STR) {
        llm_cli_add_text(b, llm_gguf_next_str(&p));
        return;
    }

    if (kv->type != LLM_GGUF_ARRAY) {
        llm_cli_add_number(b, kv, kv->type, 0);
        return;
    }

    (void) llm_buf_addf(b, "%llu items:", (unsigned long long) kv->count);

    for (i = 0; i < kv->count && i < LLM_CLI_MAX_ITEMS; i++) {
        (void) llm_buf_adds(b, i ? ", " : " ");

        if (kv->item == LLM_GGUF_STR) {
            llm_cli_add_text(b, llm_gguf_next_str(&p));

        } else {
            llm_cli_add_number(b, kv, kv->item, i);
        }
    }

    if (i < kv->count) {
        (void) llm_buf_adds(b, ", ...");
    }
}


static void
llm_cli_add_types(llm_buf_t *b, const llm_gguf_t *g)
{
    size_t    i, n;
    uint32_t  type;

    (void) llm_buf_adds(b, "types       ");

    for (type = 0; type < LLM_TYPE_END; type++) {
        for (i = 0, n = 0; i < llm_gguf_n_tensors(g); i++) {
            n += llm_gguf_tensor(g, i)->type == type;
        }

        if (n) {
            (void) llm_buf_addf(b, " %s: %zu", llm_type_name(type), n);
        }
    }

    (void) llm_buf_addc(b, '\n');
}


static void
llm_cli_add_model(llm_buf_t *b, const llm_hparams_t *hp)
{
    (void) llm_buf_addf(b, "architecture %s\n", hp->arch);
    (void) llm_buf_adds(b, "name         ");
    llm_cli_add_text(b, (llm_str_t) { strlen(hp->name), hp->name });
    (void) llm_buf_addf(b, "\nparameters   %.2f M in %.2f MiB\n",
                        (double) hp->n_params / 1e6,
                        (double) hp->n_bytes / (1 << 20));
    (void) llm_buf_addf(b, "layers       %u of width %u", hp->n_layers,
                        hp->n_embd);

    if (hp->n_ff) {
        (void) llm_buf_addf(b, ", feed-forward %u", hp->n_ff);
    }

    if (hp->n_experts) {
        (void) llm_buf_addf(b, ", %u experts of %u, %u of them used",
                            hp->n_experts, hp->n_ff_expert,
                            hp->n_experts_used);
    }

    if (hp->n_recurrent) {
        (void) llm_buf_addf(b, ", %u recurrent, %.2f MiB a sequence",
                            hp->n_recurrent,
                            (double) hp->n_bytes_state / (1 << 20));
    }

    (void) llm_buf_addc(b, '\n');
    (void) llm_buf_addf(b, "heads        %u of %u, %u for keys and values "
                        "(%u)\n", hp->n_heads, hp->head_dim_k,
                        hp->n_kv_heads, hp->head_dim_v);
    (void) llm_buf_addf(b, "vocabulary   %u\ncontext      %u\n",
                        hp->n_vocab, hp->n_ctx_train);
}


static void
llm_cli_add_tensors(llm_buf_t *b, const llm_gguf_t *g)
{
    size_t                    i;
    const llm_gguf_tensor_t  *t;

    (void) llm_buf_adds(b, "\n");

    for (i = 0; i < llm_gguf_n_tensors(g); i++) {
        t = llm_gguf_tensor(g, i);

        llm_cli_add_text(b, t->name);

        if (llm_type_name(t->type)) {
            (void) llm_buf_addf(b, " %s", llm_type_name(t->type));

        } else {
            (void) llm_buf_addf(b, " type %u", (unsigned) t->type);
        }

        (void) llm_buf_addf(b, " [%llu, %llu, %llu, %llu]\n",
                            (unsigned long long) t->ne[0],
                            (unsigned long long) t->ne[1],
                            (unsigned long long) t->ne[2],
                            (unsigned long long) t->ne[3]);
    }
}


static void
llm_cli_add_file(llm_buf_t *b, const llm_gguf_t *g, int all)
{
    size_t                i;
    const llm_gguf_kv_t  *kv;

    (void) llm_buf_adds(b, "\n");

    for (i = 0; i < llm_gguf_n_kv(g); i++) {
        kv = llm_gguf_kv(g, i);

        (void) llm_buf_add(b, kv->key.data, kv->key.len);
        (void) llm_buf_adds(b, " = ");
        llm_cli_add_value(b, kv);
        (void) llm_buf_addc(b, '\n');
    }

    if (all) {
        llm_cli_add_tensors(b, g);
    }
}


static void
llm_cli_add_format(llm_buf_t *b, const llm_gguf_t *g)
{
    (void) llm_buf_adds(b, "format       ");

    if (llm_gguf_format(g)) {
        (void) llm_buf_adds(b, llm_gguf_format(g));

    } else {
        (void) llm_buf_addf(b, "GGUF v%u", llm_gguf_version(g));
    }

    (void) llm_buf_addf(b, ", %zu bytes", llm_gguf_size(g));
}


/* what a speech model hears and says */

static void
llm_cli_add_ear(llm_buf_t *b, const llm_gguf_t *g)
{
    llm_whisper_info_t  i;

    if (llm_whisper_check(g, &i, NULL) != LLM_OK) {
        return;
    }

    (void) llm_buf_addf(b, "encoder      %u layers of width %u, %u mel bands, "
                        "windows of %u frames (%u s)\n", i.n_audio_layers,
                        i.n_audio_state, i.n_mels, i.n_frames,
                        i.n_frames / 100);

    if (i.multilingual) {
        (void) llm_buf_addf(b, "languages    %u, from %s to %s\n",
                            i.n_languages, llm_language(0)->code,
                            llm_language(i.n_languages - 1)->code);

    } else {
        (void) llm_buf_adds(b, "languages    English\n");
    }
}


/* a file without tensors has only a vocabulary, which is not an error */

int
llm_cli_info(const llm_cli_t *c, llm_err_t *err)
{
    int            rc, runs;
    llm_buf_t      b;
    llm_err_t      why, io;
    llm_gguf_t    *g;
    llm_hparams_t  hp;

    g = llm_source_open(c->file, err);
    if (g == NULL) {
        return LLM_ERROR;
    }

    rc = LLM_OK;
    runs = 0;

    llm_buf_init(&b, 0);
    (void) llm_buf_addf(&b, "file         %s\n", c->file);
    llm_cli_add_format(&b, g);

    if (llm_gguf_n_files(g) > 1) {
        (void) llm_buf_addf(&b, " in %zu files", llm_gguf_n_files(g));
    }

    (void) llm_buf_addf(&b, ", %zu keys, %zu tensors\n", llm_gguf_n_kv(g),
                        llm_gguf_n_tensors(g));

    if (llm_gguf_n_tensors(g) == 0) {
        (void) llm_buf_adds(&b, "runs         no: it has no weights\n");

    } else if (llm_file_usable(g, &hp, &why) == LLM_OK) {
        runs = 1;
        llm_cli_add_model(&b, &hp);
        llm_cli_add_ear(&b, g);
        llm_cli_add_types(&b, g);

    } else {
        rc = llm_fail(err, "%s", why.msg);
        (void) llm_buf_addf(&b, "runs         no: %s\n", why.msg);
    }

    llm_cli_add_file(&b, g, c->all);

    if (b.failed) {
        rc = llm_fail(err, "no memory for the output");

    } else if (llm_cli_write(b.data, b.len, &io) != LLM_OK && runs) {
        rc = llm_fail(err, "%s", io.msg);
    }

    llm_buf_free(&b);
    llm_gguf_close(g);

    return rc;
}
