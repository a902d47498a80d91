/*
 * The table of commands and the command line of objs/llm; see cli.h.
 */

#include "engine/base/count.h"
#include "engine/base/products.h"
#include "engine/base/version.h"
#include "engine/cli/cli.h"
#include "engine/model/arch.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>


static const llm_cli_cmd_t  llm_cli_cmds[] = {

    { "info", "FILE [--all]",
      "what a GGUF file contains, and whether the engine can run it",
      LLM_CLI_ALL, llm_cli_info },

    { "plan", "FILE [--ctx N]",
      "what the model takes of this machine's memory by context and "
      "parallel\n      requests, how fast it may be, and a line for nginx.conf",
      LLM_CLI_RUN, llm_cli_plan },

    { "tokenize", "FILE [--special] < TEXT",
      "the token ids of a text, on one line",
      LLM_CLI_SPECIAL, llm_cli_tokenize },

    { "detokenize", "FILE < IDS",
      "the text of token ids",
      0, llm_cli_detokenize },

    { "render", "FILE-or-TEMPLATE.jinja < REQUEST.json",
      "the prompt of a chat request",
      0, llm_cli_render },

    { "parse", "FILE-or-TEMPLATE.jinja [--stream] < LINES.jsonl",
      "a model's answers, split into content, reasoning and tool calls",
      LLM_CLI_STREAM, llm_cli_parse },

    { "match", "FILE < CASES.jsonl",
      "which texts schemas and grammars allow, token by token, with times",
      0, llm_cli_match },

    { "logits", "FILE [--all] [--batch N] [--mmproj FILE --image IMAGE...] "
      "[--audio SOUND] < IDS",
      "the logits after the last id (--all: after each), float32, "
      "little-endian;\n      among the ids, the word image is the next --image",
      LLM_CLI_RUN | LLM_CLI_ALL | LLM_CLI_BATCH | LLM_CLI_MMPROJ
      | LLM_CLI_IMAGES | LLM_CLI_AUDIO,
      llm_cli_logits },

    { "draft", "FILE [HEAD] [--hidden STATES] [--chain N] < IDS",
      "what a head drafts after the ids: its logits at each of them, float32,\n"
      "      little-endian (--chain: of N drafts, one after another); without "
      "HEAD\n      the model's own layer for multi-token prediction drafts",
      LLM_CLI_RUN | LLM_CLI_BATCH | LLM_CLI_HEAD, llm_cli_draft },

    { "embed", "FILE [--pooling none|mean|cls|last] [--batch N] < IDS",
      "the embedding of the ids (--pooling none: of each id), float32,\n"
      "      little-endian, not normalised; with --audio SOUND the rows of a\n"
      "      speech model's encoder",
      LLM_CLI_RUN | LLM_CLI_BATCH | LLM_CLI_POOLING | LLM_CLI_AUDIO,
      llm_cli_embed },

    { "complete", "FILE [--max-tokens N] [--temp T] [--seed N] "
      "[--speculate KIND] < PROMPT",
      "the text that the model generates after a prompt",
      LLM_CLI_RUN | LLM_CLI_BATCH | LLM_CLI_SPECIAL | LLM_CLI_SAMPLE
      | LLM_CLI_DRAFT,
      llm_cli_complete },

    { "transcribe", "WHISPER AUDIO [--language L] [--translate] [--words]\n"
      "      [--format text|json|verbose_json|srt|vtt]",
      "what is said in a file of sound",
      LLM_CLI_RUN | LLM_CLI_SPEECH, llm_cli_transcribe },

    { "bench", "FILE [--pp N] [--tg N] [--depth N] [--reps N] [--rows N] "
      "[--speculate KIND] [--audio SOUND | --image IMAGE]",
      "tokens per second, also of several sequences and with a head's "
      "drafts,\n      and the machine's read bandwidth; the time of "
      "transcriptions, alone and\n      --clips at once; of an encoder of "
      "images",
      LLM_CLI_RUN | LLM_CLI_BENCH | LLM_CLI_DRAFT | LLM_CLI_AUDIO
      | LLM_CLI_IMAGES, llm_cli_bench },

    { "perplexity", "FILE < TEXT",
      "the model's perplexity on a text",
      LLM_CLI_RUN | LLM_CLI_BATCH, llm_cli_perplexity },

    { "image", "IMAGE --mmproj FILE [--image-tokens N] [--pixels] [--rows "
      "[--model FILE]]",
      "sizes, tiles and tokens of an image for the encoder in FILE, as JSON\n"
      "      (--pixels: the bytes that it gets, [entry][height][width][3];\n"
      "      --rows: what it gives, float32, little-endian)",
      LLM_CLI_IMAGE | LLM_CLI_MMPROJ | LLM_CLI_ROWS | LLM_CLI_RUN,
      llm_cli_image },

    { "sound", "AUDIO --mmproj FILE [--rows]",
      "seconds and tokens of a file of sound for the encoder in FILE, as JSON\n"
      "      (--rows: what it gives, float32, little-endian)",
      LLM_CLI_MMPROJ | LLM_CLI_ROWS | LLM_CLI_RUN, llm_cli_sound },

    { "key", "[--id ID] [--tenant T] [--models A,B] [--scopes A,B] "
      "[--expires TIME] >> KEYS",
      "makes an API key: prints the line for a file of llm_api_keys to "
      "standard\n      output, and the secret, which is stored nowhere, to "
      "standard error",
      LLM_CLI_KEY | LLM_CLI_NO_FILE, llm_cli_key }
};


typedef enum {
    LLM_CLI_FLAG = 0,
    LLM_CLI_STR,
    LLM_CLI_MANY,                       /* of llm_cli_list_t */
    LLM_CLI_FP8,                        /* "fp8" */
    LLM_CLI_KV,                         /* "fp8" or "q8_0" */
    LLM_CLI_PRODUCTS,                   /* a word of products.h */
    LLM_CLI_UINT,                       /* 1 ... 2^31 - 1; "8k" */
    LLM_CLI_FLOAT,                      /* 0 ... 1e6 */
    LLM_CLI_SHARE,                      /* 0 ... 1 */
    LLM_CLI_SEED
} llm_cli_type_t;

typedef struct {
    const char      *name;
    llm_cli_type_t   type;
    unsigned         options;           /* group of options, a bit */
    size_t           offset;            /* in llm_cli_t */
    const char      *what;
} llm_cli_opt_t;

static const llm_cli_opt_t  llm_cli_opts[] = {

    { "device", LLM_CLI_STR, LLM_CLI_RUN, offsetof(llm_cli_t, device),
      "auto, cpu, cuda, cuda:N, cuda:N,N, emu or reference" },

    { "split", LLM_CLI_STR, LLM_CLI_RUN, offsetof(llm_cli_t, split),
      "layers: of several devices, each has some layers; rows: each has rows\n"
      "                 of every matrix (layers)" },

    { "threads", LLM_CLI_UINT, LLM_CLI_RUN, offsetof(llm_cli_t, threads),
      "CPU threads (one per CPU that may be used)" },

    { "isa", LLM_CLI_STR, LLM_CLI_RUN, offsetof(llm_cli_t, isa),
      "CPU instructions: reference, avx2, avxvnni, avx512, amx (best"
      " available)" },

    { "ctx", LLM_CLI_UINT, LLM_CLI_RUN, offsetof(llm_cli_t, ctx),
      "context length (complete: the model's; perplexity: 512)" },

    { "weights", LLM_CLI_FP8, LLM_CLI_RUN, offsetof(llm_cli_t, weights),
      "fp8: convert wider matrices to e4m3 (as in the file)" },

    { "kv", LLM_CLI_KV, LLM_CLI_RUN, offsetof(llm_cli_t, kv),
      "keep the KV cache in 8 bits: fp8 on GPUs, q8_0 on CPUs (16 bits)" },

    { "products", LLM_CLI_PRODUCTS, LLM_CLI_RUN, offsetof(llm_cli_t, products),
      "fp8 (GPU), bf16, bf16-all (CPU): round what products multiply" },

    { "packed", LLM_CLI_STR, LLM_CLI_RUN, offsetof(llm_cli_t, packed),
      "folder for a file of packed weights (none)" },

    { "batch", LLM_CLI_UINT, LLM_CLI_BATCH, offsetof(llm_cli_t, batch),
      "most tokens per step (512)" },

    { "pooling", LLM_CLI_STR, LLM_CLI_POOLING, offsetof(llm_cli_t, pooling),
      "none, mean, cls or last (the file's, or else last)" },

    { "all", LLM_CLI_FLAG, LLM_CLI_ALL, offsetof(llm_cli_t, all),
      "logits of all positions; info on all tensors" },

    { "special", LLM_CLI_FLAG, LLM_CLI_SPECIAL, offsetof(llm_cli_t, special),
      "parse special tokens in the text" },

    { "stream", LLM_CLI_FLAG, LLM_CLI_STREAM, offsetof(llm_cli_t, stream),
      "parse the answers byte by byte" },

    { "max-tokens", LLM_CLI_UINT, LLM_CLI_SAMPLE,
      offsetof(llm_cli_t, max_tokens),
      "most tokens to generate (as many as fit into ctx)" },

    { "temp", LLM_CLI_FLOAT, LLM_CLI_SAMPLE,
      offsetof(llm_cli_t, sampling.temperature), "temperature (0: greedy)" },

    { "top-k", LLM_CLI_UINT, LLM_CLI_SAMPLE,
      offsetof(llm_cli_t, sampling.top_k),
      "sample from the k most likely tokens" },

    { "top-p", LLM_CLI_SHARE, LLM_CLI_SAMPLE,
      offsetof(llm_cli_t, sampling.top_p),
      "sample from the most likely tokens with a total probability p" },

    { "min-p", LLM_CLI_SHARE, LLM_CLI_SAMPLE,
      offsetof(llm_cli_t, sampling.min_p),
      "sample from tokens at least p times as likely as the likeliest" },

    { "seed", LLM_CLI_SEED, LLM_CLI_SAMPLE,
      offsetof(llm_cli_t, sampling.seed),
      "seed of the random numbers (from the time)" },

    { "speculate", LLM_CLI_STR, LLM_CLI_DRAFT,
      offsetof(llm_cli_t, speculate),
      "what tokens are drafted from: ngram, mtp, draft=HEAD, ngram and one "
      "of\n                 the others with a comma, or off (off)" },

    { "hidden", LLM_CLI_STR, LLM_CLI_HEAD, offsetof(llm_cli_t, hidden),
      "a file with the model's states, float32 (the model's own)" },

    { "chain", LLM_CLI_UINT, LLM_CLI_HEAD, offsetof(llm_cli_t, chain),
      "drafts, each the most likely token after the one before" },

    { "pp", LLM_CLI_UINT, LLM_CLI_BENCH, offsetof(llm_cli_t, pp),
      "tokens of the prompt (512)" },

    { "tg", LLM_CLI_UINT, LLM_CLI_BENCH, offsetof(llm_cli_t, tg),
      "tokens generated (128)" },

    { "depth", LLM_CLI_UINT, LLM_CLI_BENCH, offsetof(llm_cli_t, depth),
      "tokens before each test (none)" },

    { "reps", LLM_CLI_UINT, LLM_CLI_BENCH, offsetof(llm_cli_t, reps),
      "repetitions (5)" },

    { "rows", LLM_CLI_UINT, LLM_CLI_BENCH, offsetof(llm_cli_t, n_seqs),
      "sequences that generate at once, a row of each step (none)" },

    { "clips", LLM_CLI_UINT, LLM_CLI_BENCH, offsetof(llm_cli_t, clips),
      "transcriptions at once (4)" },

    { "mmproj", LLM_CLI_STR, LLM_CLI_MMPROJ, offsetof(llm_cli_t, mmproj),
      "the GGUF file of the encoder that came with the model" },

    { "image-tokens", LLM_CLI_UINT, LLM_CLI_MMPROJ,
      offsetof(llm_cli_t, image_tokens),
      "most tokens of an image (the family's)" },

    { "image", LLM_CLI_MANY, LLM_CLI_IMAGES, offsetof(llm_cli_t, images),
      "an image of the prompt, in order; may be given several times" },

    { "model", LLM_CLI_STR, LLM_CLI_IMAGE, offsetof(llm_cli_t, model),
      "the model that the encoder is for (any)" },

    { "rows", LLM_CLI_FLAG, LLM_CLI_ROWS, offsetof(llm_cli_t, rows),
      "write the rows that the encoder gives" },

    { "pixels", LLM_CLI_FLAG, LLM_CLI_IMAGE, offsetof(llm_cli_t, pixels),
      "write the pixels that the encoder gets" },

    { "audio", LLM_CLI_STR, LLM_CLI_AUDIO, offsetof(llm_cli_t, audio),
      "sound that a speech model hears, its first 30 seconds; bench: all" },

    { "id", LLM_CLI_STR, LLM_CLI_KEY, offsetof(llm_cli_t, id),
      "name of the key in logs and limits (random)" },

    { "tenant", LLM_CLI_STR, LLM_CLI_KEY, offsetof(llm_cli_t, tenant),
      "tenant that the key belongs to (the id)" },

    { "models", LLM_CLI_STR, LLM_CLI_KEY, offsetof(llm_cli_t, models),
      "models that the key may use, such as demo,gpt-* (all)" },

    { "scopes", LLM_CLI_STR, LLM_CLI_KEY, offsetof(llm_cli_t, scopes),
      "generate, embed, tokenize, models, monitor, other, admin (all but "
      "admin)" },

    { "not-before", LLM_CLI_STR, LLM_CLI_KEY,
      offsetof(llm_cli_t, not_before),
      "start of validity, as 2026-12-31 or 2026-12-31T12:00:00Z (none)" },

    { "expires", LLM_CLI_STR, LLM_CLI_KEY, offsetof(llm_cli_t, expires),
      "end of validity, in the same form (none)" },

    { "language", LLM_CLI_STR, LLM_CLI_SPEECH, offsetof(llm_cli_t, language),
      "language that is spoken, as en or english (detected)" },

    { "translate", LLM_CLI_FLAG, LLM_CLI_SPEECH,
      offsetof(llm_cli_t, translate), "translate to English" },

    { "prompt", LLM_CLI_STR, LLM_CLI_SPEECH, offsetof(llm_cli_t, prompt),
      "text that could stand before: its names and spelling are kept" },

    { "format", LLM_CLI_STR, LLM_CLI_SPEECH, offsetof(llm_cli_t, format),
      "text, json, verbose_json, srt or vtt (text)" },

    { "words", LLM_CLI_FLAG, LLM_CLI_SPEECH, offsetof(llm_cli_t, words),
      "times of words, too" },

    { "no-timestamps", LLM_CLI_FLAG, LLM_CLI_SPEECH,
      offsetof(llm_cli_t, no_timestamps), "text without times" },

    { "no-condition", LLM_CLI_FLAG, LLM_CLI_SPEECH,
      offsetof(llm_cli_t, no_condition),
      "30 seconds are not shown the text before them" },

    { "temperature", LLM_CLI_SHARE, LLM_CLI_SPEECH,
      offsetof(llm_cli_t, temperature),
      "this one alone (0, then more by 0.2 while a text fails)" },

    { "thresholds", LLM_CLI_STR, LLM_CLI_SPEECH,
      offsetof(llm_cli_t, thresholds),
      "off: no text fails, and silence is not skipped (on)" },

    { "verbose", LLM_CLI_FLAG, LLM_CLI_RUN, offsetof(llm_cli_t, verbose),
      "show which device was chosen, and why" }
};


/* prints the supported architectures, in lines of at most 79 characters */

static void
llm_cli_archs(FILE *f)
{
    size_t       i, column;
    const char  *name;

    fprintf(f, "\narchitectures of models that run "
               "(general.architecture):\n");

    for (i = 0, column = 0; (name = llm_desc_arch_name(i)) != NULL; i++) {
        if (column + strlen(name) > 78) {
            fprintf(f, "\n");
            column = 0;
        }

        column += (size_t) fprintf(f, "%s%s", column ? " " : "  ", name);
    }

    fprintf(f, "\n");
}


static void
llm_cli_usage(FILE *f)
{
    size_t  i;

    fprintf(f, "usage: %s COMMAND [FILE] [OPTION...]\n"
               "       %s --version\n\n",
            program_invocation_short_name, program_invocation_short_name);

    for (i = 0; i < llm_nelems(llm_cli_cmds); i++) {
        fprintf(f, "  %s %s %s\n      %s\n", program_invocation_short_name,
                llm_cli_cmds[i].name, llm_cli_cmds[i].usage,
                llm_cli_cmds[i].what);
    }

    fprintf(f, "\noptions, not all for each command (defaults in "
               "parentheses):\n");

    for (i = 0; i < llm_nelems(llm_cli_opts); i++) {
        fprintf(f, "  --%-12s %s\n", llm_cli_opts[i].name,
                llm_cli_opts[i].what);
    }

    llm_cli_archs(f);
}


static int
llm_cli_set(llm_cli_t *c, const llm_cli_opt_t *o, const char *v,
    llm_err_t *err)
{
    char            *end, *field;
    double           d, max;
    uint64_t         n;
    llm_cli_list_t  *list;

    field = (char *) c + o->offset;
    errno = 0;

    switch (o->type) {

    case LLM_CLI_FLAG:
        *(int *) field = 1;
        return LLM_OK;

    case LLM_CLI_STR:
        *(const char **) field = v;
        return LLM_OK;

    case LLM_CLI_MANY:
        list = (llm_cli_list_t *) (void *) field;

        if (list->n == LLM_CLI_LIST) {
            return llm_fail(err, "--%s: more than %d", o->name, LLM_CLI_LIST);
        }

        list->v[list->n++] = v;
        return LLM_OK;

    case LLM_CLI_FP8:
        if (strcmp(v, "fp8") != 0) {
            return llm_fail(err, "--%s: \"%s\" is unknown; the only value is "
                            "fp8", o->name, v);
        }

        *(const char **) field = v;
        return LLM_OK;

    case LLM_CLI_PRODUCTS:
        *(const char **) field = llm_products_word(v, strlen(v));

        if (*(const char **) field == NULL) {
            return llm_fail(err, "--%s: \"%s\" is unknown; it must be %s",
                            o->name, v, LLM_PRODUCTS_WORDS);
        }

        return LLM_OK;

    case LLM_CLI_KV:
        if (strcmp(v, "fp8") != 0 && strcmp(v, "q8_0") != 0) {
            return llm_fail(err, "--%s: \"%s\" is unknown; the values are "
                            "fp8 and q8_0", o->name, v);
        }

        *(const char **) field = v;
        return LLM_OK;

    case LLM_CLI_UINT:
        if (llm_count(v, strlen(v), INT32_MAX, &n) != LLM_OK || n == 0) {
            return llm_fail(err, "--%s: \"%s\" is not a number from 1 to %d",
                            o->name, v, INT32_MAX);
        }

        *(uint32_t *) field = (uint32_t) n;
        return LLM_OK;

    case LLM_CLI_FLOAT:
    case LLM_CLI_SHARE:
        d = strtod(v, &end);
        max = (o->type == LLM_CLI_SHARE) ? 1 : 1e6;

        if (end == v || *end || !(d >= 0 && d <= max)) {
            return llm_fail(err, "--%s: \"%s\" is not a number from 0 to %.f",
                            o->name, v, max);
        }

        *(float *) field = (float) d;
        return LLM_OK;

    case LLM_CLI_SEED:
        n = strtoull(v, &end, 10);

        if (end == v || *end || errno || *v == '-') {
            return llm_fail(err, "--%s: \"%s\" is not a number from 0 to %llu",
                            o->name, v, ULLONG_MAX);
        }

        *(uint64_t *) field = n;
        c->sampling.has_seed = 1;
        return LLM_OK;
    }

    return LLM_ERROR;
}


/* reads the option argv[*i]; its value is after "=" or in the next argument,
   which *i is moved to */

static int
llm_cli_option(llm_cli_t *c, const llm_cli_cmd_t *cmd, char **argv, int *i,
    llm_err_t *err)
{
    char                 *arg, *eq;
    size_t                k, len;
    const llm_cli_opt_t  *o;

    arg = argv[*i] + 2;
    eq = strchr(arg, '=');
    len = eq ? (size_t) (eq - arg) : strlen(arg);

    for (k = 0; k < llm_nelems(llm_cli_opts); k++) {
        o = &llm_cli_opts[k];

        if (strlen(o->name) != len || memcmp(o->name, arg, len) != 0) {
            continue;
        }

        /* --rows has two meanings */

        if (!(o->options & cmd->options)) {
            continue;
        }

        if (o->type == LLM_CLI_FLAG) {
            return eq ? llm_fail(err, "--%s takes no value", o->name)
                      : llm_cli_set(c, o, NULL, err);
        }

        if (eq == NULL && argv[*i + 1] == NULL) {
            return llm_fail(err, "--%s needs a value", o->name);
        }

        return llm_cli_set(c, o, eq ? eq + 1 : argv[++*i], err);
    }

    return llm_fail(err, "%s has no option %s", cmd->name, argv[*i]);
}


static int
llm_cli_read_line(llm_cli_t *c, const llm_cli_cmd_t *cmd, char **argv,
    llm_err_t *err)
{
    int  i;

    for (i = 2; argv[i]; i++) {
        if (strncmp(argv[i], "--", 2) == 0) {
            if (llm_cli_option(c, cmd, argv, &i, err) != LLM_OK) {
                return LLM_ERROR;
            }

        } else if (cmd->options & LLM_CLI_NO_FILE) {
            return llm_fail(err, "%s takes no file: \"%s\"",
                            cmd->name, argv[i]);

        } else if (c->file && c->audio == NULL
                   && (cmd->options & LLM_CLI_SPEECH))
        {
            c->audio = argv[i];

        } else if (c->file && c->head == NULL
                   && (cmd->options & LLM_CLI_HEAD))
        {
            c->head = argv[i];

        } else if (c->file) {
            return llm_fail(err, "%s takes %s, not \"%s\" too", cmd->name,
                            c->head || (cmd->options & LLM_CLI_SPEECH)
                            ? "two files" : "one file", argv[i]);

        } else {
            c->file = argv[i];
        }
    }

    if (cmd->options & LLM_CLI_NO_FILE) {
        return LLM_OK;
    }

    if (c->file == NULL
        || (c->audio == NULL && (cmd->options & LLM_CLI_SPEECH)))
    {
        return llm_fail(err, "usage: %s %s %s",
                        program_invocation_short_name, cmd->name, cmd->usage);
    }

    if (*c->file == '\0') {
        return llm_fail(err, "%s: the name of the file is empty", cmd->name);
    }

    return LLM_OK;
}


/* "llm --help", "llm help", "llm COMMAND --help" */

static int
llm_cli_wants_help(int argc, char **argv)
{
    const char  *last;

    last = argv[argc - 1];

    if (argc == 2 && strcmp(last, "help") == 0) {
        return 1;
    }

    return (argc == 2 || argc == 3)
           && (strcmp(last, "--help") == 0 || strcmp(last, "-h") == 0);
}


int
main(int argc, char **argv)
{
    size_t                i;
    llm_cli_t             c;
    llm_err_t             err;
    const llm_cli_cmd_t  *cmd;

    if (argc > 1 && llm_cli_wants_help(argc, argv)) {
        llm_cli_usage(stdout);
        return 0;
    }

    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("nginx-llm %s\n", LLM_VERSION);
        return 0;
    }

    cmd = NULL;

    for (i = 0; argc > 1 && i < llm_nelems(llm_cli_cmds); i++) {
        if (strcmp(argv[1], llm_cli_cmds[i].name) == 0) {
            cmd = &llm_cli_cmds[i];
        }
    }

    if (cmd == NULL) {
        llm_cli_usage(stderr);

        if (argc > 1) {
            fprintf(stderr, "\n%s: there is no command \"%s\"\n",
                    program_invocation_short_name, argv[1]);
        }

        return 1;
    }

    memset(&c, 0, sizeof(c));
    memset(&err, 0, sizeof(err));

    llm_sampling_default(&c.sampling);
    c.sampling.temperature = 0;
    c.temperature = -1;

    if (llm_cli_read_line(&c, cmd, argv, &err) != LLM_OK
        || cmd->run(&c, &err) != LLM_OK
        || llm_cli_flush(&err) != LLM_OK)
    {
        fprintf(stderr, "%s: %s\n", program_invocation_short_name, err.msg);
        return 1;
    }

    return 0;
}
