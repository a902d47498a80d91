/*
 * Tokens around a text with a gap, as published models name them; metadata
 * that name them are t/http/infill.t's.
 */

#include "t/unit/tap.h"
#include "t/unit/tiny_vocab.h"

#define NONE  NULL


/* of each model: prefix, suffix, middle, repository, file */

static const char *const  names[][5] = {
    { "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|repo_name|>",
      "<|file_sep|>" },
    { "<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<reponame>",
      "<filename>" },
    { "<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<repo_name>",
      "<file_sep>" },
    { "<fim-prefix>", "<fim-suffix>", "<fim-middle>", "<fim-repo>", NONE },
    { "<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>", NONE, NONE },
    { "fim", "<|fim|>", "prefix", "<|fim_prefix>", "fim_middle" }
};


int
main(void)
{
    int32_t           want[5];
    size_t            lens[5];
    uint32_t          i, k, n;
    llm_err_t         err;
    const char       *strings[5];
    tiny_vocab_t      v;
    const llm_fim_t  *fim;

    for (i = 0; i < llm_nelems(names); i++) {

        for (k = 0, n = 0; k < 5; k++) {
            want[k] = -1;

            if (names[i][k]) {
                want[k] = i + 1 < llm_nelems(names) ? (int32_t) (257 + n)
                                                    : -1;
                strings[n] = names[i][k];
                lens[n++] = strlen(names[i][k]);
            }
        }

        memset(&v, 0, sizeof(v));
        (void) tv_open(&v, strings, lens, n, &err);
        fim = llm_vocab_fim(v.vocab);

        ok(fim->prefix == want[0] && fim->suffix == want[1]
           && fim->middle == want[2] && fim->repo == want[3]
           && fim->file == want[4], "%s: %d %d %d %d %d", names[i][0],
           fim->prefix, fim->suffix, fim->middle, fim->repo, fim->file);

        tv_close(&v);
    }

    return done_testing();
}
