/*
 * Tokenizers against references: real vocabularies with the ids that other
 * implementations give (the shared fixtures), and the pre-tokenizers against
 * the pieces of another engine of regular expressions (pretok_expected.h).
 */

#include "engine/text/vocab/pretok.h"
#include "t/unit/pretok_expected.h"
#include "t/unit/tap.h"

#include <glob.h>

#define SEPARATOR  "\n__ggml_vocab_test__\n"


/* a whole file, NUL-terminated, or NULL */

static char *
slurp(const char *path)
{
    long   n;
    char  *data;
    FILE  *f;

    f = fopen(path, "rb");
    if (f == NULL) {
        return NULL;
    }

    fseek(f, 0, SEEK_END);
    n = ftell(f);
    rewind(f);

    data = malloc((size_t) n + 1);
    if (data == NULL || fread(data, 1, (size_t) n, f) != (size_t) n) {
        abort();
    }

    data[n] = '\0';
    fclose(f);

    return data;
}


/* do the ids on this line equal these? moves *line behind it */

static int
same_line(const char **line, const llm_ids_t *ids)
{
    int          same;
    char        *end;
    long         id;
    size_t       i;
    const char  *p;

    p = *line;
    same = 1;

    for (i = 0; *p != '\n' && *p; p = end, i++) {

        id = strtol(p, &end, 10);

        if (end == p) {
            break;
        }

        same &= i < ids->len && ids->data[i] == id;
    }

    p = strchr(p, '\n');
    *line = p ? p + 1 : "";

    return same && i == ids->len;
}


static void
test_texts(const llm_vocab_t *v, const char *name, const char *in,
    const char *out)
{
    int          total, bad;
    char        *texts, *lines, *p, *end;
    const char  *line;
    llm_err_t    err;
    llm_ids_t    ids = { 0 };

    texts = slurp(in);
    lines = slurp(out);

    if (texts == NULL || lines == NULL) {
        free(texts);
        free(lines);
        return;
    }

    line = lines;
    total = bad = 0;

    for (p = texts; (end = strstr(p, SEPARATOR)); p = end) {
        ids.len = 0;
        total++;

        if (llm_vocab_tokenize(v, p, (size_t) (end - p), NULL, 0,
                               LLM_TOKENIZE_PLAIN, 0, &ids, &err)
            != LLM_OK || !same_line(&line, &ids))
        {
            bad++;
        }

        end += strlen(SEPARATOR);
    }

    ok(total > 10 && bad == 0 && *line == '\0',
       "%s: %d of %d texts", name, total - bad, total);

    free(ids.data);
    free(texts);
    free(lines);
}


static void
test_fixture(const char *path, const char *unicode)
{
    char          in[2048], out[2048];
    uint64_t      begin;
    llm_err_t     err;
    const char   *name;
    llm_gguf_t   *g;
    llm_vocab_t  *v;

    name = strrchr(path, '/') + 1;

    g = llm_gguf_open(path, &err);
    begin = llm_now_us();
    v = g ? llm_vocab_load(g, &err) : NULL;
    begin = llm_now_us() - begin;
    llm_gguf_close(g);

    if (!ok(v != NULL, "%s: %u tokens in %llu ms", name,
            v ? llm_vocab_size(v) : 0, (unsigned long long) begin / 1000))
    {
        printf("# %s\n", err.msg);
        return;
    }

    snprintf(in, sizeof(in), "%s.inp", path);
    snprintf(out, sizeof(out), "%s.out", path);
    test_texts(v, name, in, out);

    snprintf(out, sizeof(out), "%s.unicode.out", path);
    test_texts(v, name, unicode, out);

    llm_vocab_free(v);
}


static void
test_fixtures(void)
{
    char         path[2048], unicode[2048];
    glob_t       found;
    size_t       i;
    const char  *dir;

    dir = tap_fixtures();

    if (dir == NULL) {
        skip("the shared fixtures are not here");
        return;
    }

    snprintf(unicode, sizeof(unicode), "%s/tokenizers/unicode.inp", dir);
    snprintf(path, sizeof(path), "%s/tokenizers/*.gguf", dir);

    if (glob(path, 0, NULL, &found) != 0) {
        skip("the shared fixtures have no tokenizers");
        return;
    }

    for (i = 0; i < found.gl_pathc; i++) {
        test_fixture(found.gl_pathv[i], unicode);
    }

    globfree(&found);
}


/* the pieces of a text against the ends that are wanted */

static const char      *piece_text;
static const uint16_t  *piece_want;
static int              piece_bad;


static int
piece_found(llm_tok_t *t, const char *p, size_t n)
{
    uint32_t  end;

    (void) t;

    end = (uint32_t) (p + n - piece_text);

    if (*piece_want == 0 || end != *piece_want) {
        printf("# a piece ends at %u, want %u\n", end, *piece_want);
        piece_bad++;
        return LLM_ERROR;
    }

    piece_want++;

    return LLM_OK;
}


static void
test_pretok_row(const char *name, const uint16_t *want)
{
    size_t        i;
    llm_err_t     err;
    llm_str_t     s;
    llm_tok_t     t;
    llm_vocab_t   v;

    memset(&v, 0, sizeof(v));
    memset(&t, 0, sizeof(t));
    t.vocab = &v;
    t.err = &err;

    s.data = name;
    s.len = strlen(name);
    err.msg[0] = '\0';

    v.pretok = llm_pretok_create(llm_pretok_find(s), &err);
    if (!ok(v.pretok != NULL, "%s is compiled", name)) {
        printf("# %s\n", err.msg);
        return;
    }

    piece_want = want;
    piece_bad = 0;

    for (i = 0; i < llm_nelems(pretok_texts); i++, piece_want++) {

        piece_text = pretok_texts[i];

        if (llm_pretok_split(&t, piece_text, strlen(piece_text), piece_found)
            != LLM_OK || *piece_want)
        {
            printf("# text %zu\n", i);
            piece_bad++;
        }

        while (*piece_want) {
            piece_want++;
        }
    }

    is_int(piece_bad, 0, "%s: pieces of %zu texts", name, i);

    llm_pretok_done(&t);
    llm_pretok_free(v.pretok);
}


/* every name of the table compiles */

static void
test_pretok_names(void)
{
    size_t         i;
    llm_err_t      err;
    llm_str_t      s;
    llm_pretok_t  *pt;

    static const char  *names[] = {
        "default", "gpt-2", "phi-2", "jina-v2-code", "mpt", "olmo",
        "llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral", "dbrx",
        "smaug-bpe", "chatglm-bpe", "glm4", "minicpm5", "qwen2",
        "deepseek-r1-qwen", "stablelm2", "hunyuan", "megrez", "laguna",
        "ufakzeka", "qwen35", "jais-2", "bailingmoe", "seed-coder",
        "exaone-moe", "starcoder", "refact", "command-r", "smollm",
        "codeshell", "exaone", "minerva-7b", "falcon", "deepseek-llm",
        "deepseek-coder", "deepseek-v3", "hunyuan-dense", "spark2_5",
        "afmoe", "youtu", "tekken", "gpt-4o", "llama4", "minimax-m2",
        "granite-embed-multi-97m", "tiny_aya", "kimi-k2", "superbpe",
        "bloom", "poro-chat", "viking", "chameleon", "gemma4", "sarvam-moe"
    };

    for (i = 0; i < llm_nelems(names); i++) {
        s.data = names[i];
        s.len = strlen(names[i]);
        err.msg[0] = '\0';

        pt = llm_pretok_find(s) ? llm_pretok_create(llm_pretok_find(s), &err)
                                : NULL;
        if (!ok(pt != NULL, "%s", names[i])) {
            printf("# %s\n", err.msg);
        }

        llm_pretok_free(pt);
    }

    ok(llm_pretok_find(llm_str("gpt")) == NULL
       && llm_pretok_find(llm_str("")) == NULL
       && llm_pretok_find(llm_str("gpt-2 phi-2")) == NULL,
       "names that are not there");
}


int
main(void)
{
    size_t  i;

    test_fixtures();
    test_pretok_names();

    for (i = 0; i < llm_nelems(pretok_rows); i++) {
        test_pretok_row(pretok_rows[i].name, pretok_rows[i].ends);
    }

    return done_testing();
}
