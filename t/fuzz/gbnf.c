/*
 * Any bytes as a grammar in GBNF, and a text through its masks: it is read or
 * refused; each token of a mask is accepted, and no other.
 */

#include "engine/grammar/grammar.h"
#include "t/unit/grammar_vocab.h"

static llm_toktree_t  *tree;


static void
fuzz_text(llm_gram_t *g, const uint8_t *text, size_t n)
{
    int             allowed, rc;
    size_t          i;
    uint32_t        mask[(GV_SIZE + 31) / 32], id;
    llm_err_t       err;
    llm_matcher_t  *m;

    m = llm_matcher_create(g, &err);

    for (i = 0; m && i < n; i++) {
        if (llm_matcher_mask(m, mask, &err) != LLM_OK) {
            break;
        }

        id = (uint32_t) text[i] % GV_EOS;
        allowed = mask[id / 32] >> id % 32 & 1;
        rc = llm_matcher_accept(m, (int32_t) id, &err);

        if (rc == LLM_OK && !allowed) {
            abort();
        }

        if (rc != LLM_OK) {
            if (allowed && strstr(err.msg, "does not allow")) {
                abort();
            }

            break;
        }
    }

    llm_matcher_free(m);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t       n;
    llm_err_t    err;
    llm_gram_t  *g;

    if (size < 1) {
        return 0;
    }

    if (tree == NULL) {
        tree = llm_toktree_create(gv_load(), &err);
    }

    n = size - 1;
    n -= data[0] % (n + 1);
    g = llm_gram_gbnf((const char *) data + 1, n, tree, &err);

    if (g) {
        fuzz_text(g, data + 1 + n, size - 1 - n);
        llm_gram_free(g);

    } else if (err.msg[0] == '\0') {
        abort();
    }

    return 0;
}
