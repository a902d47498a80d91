/*
 * Masks against brute force: for random grammars and texts, the tokens of the
 * mask are those that the machine takes byte by byte, and after each of them
 * a way to the end is found by search.  With a small vocabulary made for it,
 * and with a real one where the fixtures are.
 */

#include "engine/grammar/finish.h"
#include "engine/grammar/mask.h"
#include "t/unit/grammar_vocab.h"
#include "t/unit/tap.h"

/* what a run of the test has seen */
static uint64_t  seen_masks, seen_tokens, seen_ends, seen_texts,
                 seen_lost;


/* ---- random grammars ---- */

static llm_rx_t
random_rx(llm_rx_pool_t *p)
{
    llm_rx_t     rx;
    const char  *pattern;

    static const char  *patterns[] = {
        "[a-c]+", "a{2,5}", "(ab|c)*d", "[^a]{1,3}", "x?y?", "\\w+",
        "a|ab|abc", "\xc3\xa9+|[\xe6\x97\xa5-\xe6\x9c\xac]", ".*b.*",
        "(?!a).*", "(?=.*1)[a-f0-9]{3,6}", "[\\d\\-]{1,8}", "a.{2,30}",
        "[a-f\\n\xc3\xa9]*", "a*(b|\\\\)?"
    };

    switch (gv_random(6)) {

    case 0:
        return LLM_RX_TEXT;

    case 1:
        return llm_rx_repeat(p, LLM_RX_CHAR, gv_random(4),
                             gv_random(2) ? LLM_RX_NO_MAX
                                          : 3 + gv_random(40));

    case 2:
        return llm_rx_not(p, llm_rx_literal(p, "abc", gv_random(4)));

    case 3:
        pattern = patterns[gv_random(llm_nelems(patterns))];
        (void) llm_rx_parse(p, pattern, strlen(pattern), LLM_RX_WHOLE, &rx,
                            NULL);

        return llm_rx_and(p, rx, llm_rx_repeat(p, LLM_RX_CHAR, gv_random(4),
                                               24 + gv_random(20)));

    default:
        pattern = patterns[gv_random(llm_nelems(patterns))];
        (void) llm_rx_parse(p, pattern, strlen(pattern), LLM_RX_WHOLE, &rx,
                            NULL);
        return rx;
    }
}


/* without a dot: where anything may come, brackets do not bring an end, and
   the search for one would be lost */

static llm_gn_t
random_regex(llm_gram_build_t *b)
{
    llm_rx_t     rx;
    const char  *pattern;

    static const char  *patterns[] = {
        "[a-c]+", "a{2,5}", "(ab|c)*d", "x?y?", "\\w+", "a|ab|abc", "[ \n]*",
        "\xc3\xa9+|[\xe6\x97\xa5-\xe6\x9c\xac]", "[\\d\\-]{1,8}",
        "(?!ab)[a-c]{2,4}"
    };

    pattern = patterns[gv_random(llm_nelems(patterns))];
    (void) llm_rx_parse(llm_gram_pool(b), pattern, strlen(pattern),
                        LLM_RX_WHOLE, &rx, NULL);

    return llm_gn_regex(b, rx);
}


static llm_gn_t  random_node(llm_gram_build_t *b, int depth, llm_gn_t ref);


static llm_gn_t
random_number(llm_gram_build_t *b)
{
    llm_rx_t     rx;
    const char  *p;

    static const char  *patterns[] = {
        "-?(0|[1-9][0-9]*)(\\.[0-9]+)?([eE][+-]?[0-9]+)?", "[1-3]",
        "-?(0|[1-9][0-9]*)", "[1-9][0-9]?(\\.0)?"
    };

    p = patterns[gv_random(llm_nelems(patterns))];
    (void) llm_rx_parse(llm_gram_pool(b), p, strlen(p), LLM_RX_WHOLE, &rx,
                        NULL);

    return llm_gn_regex(b, rx);
}


static llm_gn_t
random_object(llm_gram_build_t *b, int depth, llm_gn_t ref)
{
    uint32_t            i;
    llm_gn_object_t     o;
    llm_gn_others_t     others;
    llm_gn_property_t   named[4];
    llm_rx_pool_t      *p;

    static const char  *keys[] = { "a", "ab", "b\"c", "\xc3\xa9" };

    p = llm_gram_pool(b);
    memset(&o, 0, sizeof(o));
    o.named = named;
    o.n_named = gv_random(5);
    o.max = gv_random(3) ? LLM_GN_NO_MAX : gv_random(6);
    o.min = gv_random(2) ? 0 : gv_random(4);

    for (i = 0; i < o.n_named; i++) {
        named[i].key.data = keys[i];
        named[i].key.len = strlen(keys[i]);
        named[i].required = gv_random(3) == 0;
        named[i].value = random_node(b, depth - 1, ref);
    }

    if (gv_random(2)) {
        others.value = random_node(b, depth - 1, ref);
        others.key = LLM_RX_TEXT;

        if (gv_random(3) == 0) {
            (void) llm_rx_parse(p, "x|y|xy", 6, LLM_RX_WHOLE, &others.key,
                                NULL);
        }

        for (i = 0; i < llm_nelems(keys); i++) {
            others.key = llm_rx_and(p, others.key, llm_rx_not(p,
                             llm_rx_literal(p, keys[i], strlen(keys[i]))));
        }

        o.others = &others;
        o.n_others = 1;
    }

    return llm_gn_object(b, &o);
}


static llm_gn_t
random_array(llm_gram_build_t *b, int depth, llm_gn_t ref)
{
    llm_gn_t        prefix[2], kinds[3];
    llm_gn_array_t  a;

    memset(&a, 0, sizeof(a));
    a.max = gv_random(2) ? LLM_GN_NO_MAX : gv_random(5);
    a.min = gv_random(2) ? 0 : gv_random(4);

    if (gv_random(3) == 0) {
        kinds[0] = random_number(b);
        kinds[1] = gv_random(2) ? llm_gn_text(b, "\"a\"", 3)
                                : llm_gn_text(b, "true", 4);
        kinds[2] = llm_gn_string(b, random_rx(llm_gram_pool(b)));
        a.items = llm_gn_alt(b, kinds, 1 + gv_random(3));
        a.unique = 1;

        return llm_gn_array(b, &a);
    }

    prefix[0] = random_node(b, depth - 1, ref);
    prefix[1] = random_node(b, depth - 1, ref);
    a.prefix = prefix;
    a.n_prefix = gv_random(3);
    a.items = gv_random(4) ? random_node(b, depth - 1, ref) : LLM_GN_NONE;

    if (gv_random(3) == 0) {
        a.contains = random_node(b, depth - 1, ref);
        a.min_contains = 1 + gv_random(2);
    }

    return llm_gn_array(b, &a);
}


static llm_gn_t
random_node(llm_gram_build_t *b, int depth, llm_gn_t ref)
{
    uint32_t  i, n;
    llm_gn_t  kids[4];

    static const char  *texts[] = { "a", "ab", "\"a\"", "null", "{}", "\n" };

    n = gv_random(depth > 0 ? 10 : 4);

    switch (n) {

    case 0:
        n = gv_random(llm_nelems(texts));
        return llm_gn_text(b, texts[n], strlen(texts[n]));

    case 1:
        return random_number(b);

    case 2:
        return llm_gn_string(b, random_rx(llm_gram_pool(b)));

    case 3:
        return random_regex(b);

    case 4:
    case 5:
        n = n == 4;

        for (i = 0; i < 3; i++) {
            kids[i] = random_node(b, depth - 1, ref);
        }

        return n ? llm_gn_seq(b, kids, 2) : llm_gn_alt(b, kids, 3);

    case 6:
        n = gv_random(3);
        return llm_gn_repeat(b, random_node(b, depth - 1, ref), n,
                             gv_random(2) ? LLM_GN_NO_MAX : n + gv_random(4));

    case 7:
        return random_array(b, depth, ref);

    case 8:
        /* behind a text, so that it is no left recursion */

        kids[0] = llm_gn_text(b, "(", 1);
        kids[1] = ref;
        kids[2] = llm_gn_text(b, ")", 1);
        return llm_gn_seq(b, kids, 3);

    default:
        return random_object(b, depth, ref);
    }
}


/* ---- the end ---- */

/* bytes with which all texts of these grammars can be brought to an end */
static const char  closers[] =
    "\"}]),:1a2b3xy0c d-.trueflsn{[(\n\\456789\xa9\xc3\xe6\x97\xa5\x80\x9f";

enum { DEEPEST = 4000, MOST = 5000 };

/* a set that a search has come to */
typedef struct {
    uint32_t  set;
    uint32_t  steps;
    uint32_t  next;                     /* of those that are as far */
} place_t;


/* how much is open, at least */

static uint32_t
open_things(const llm_run_t *r, uint32_t set)
{
    uint32_t          i, n, cell, least;
    const llm_set_t  *s;

    s = &r->sets.data[set];
    least = UINT32_MAX;

    for (i = 0; i < s->n; i++) {
        cell = r->members.data[s->first + i];

        for (n = 0; cell != LLM_ID_END; n++) {
            cell = r->cells.data[cell].parent;
        }

        least = llm_min(least, n);
    }

    return least;
}


/*
 * Is there a way to the end?  0: there is none, all sets have been seen.  The
 * search goes on where the fewest things are open and the fewest bytes were
 * needed; of those that a place allows, each costs more than the one before.
 * Where it gives up it counts that (seen_lost).
 */

static int
finds_end(llm_run_t *r, uint32_t set)
{
    int           found, lost;
    uint32_t      i, k, n, rank, far, next, hash, *first;
    place_t      *places, p;
    llm_table_t   met;

    places = malloc(MOST * sizeof(place_t));
    first = malloc(DEEPEST * sizeof(uint32_t));
    memset(first, 0xff, DEEPEST * sizeof(uint32_t));
    memset(&met, 0, sizeof(met));

    places[0].set = set;
    places[0].steps = 0;
    places[0].next = UINT32_MAX;
    first[0] = 0;
    n = 1;
    found = 0;
    lost = 0;

    for (i = 0; i < DEEPEST && !found; ) {
        if (first[i] == UINT32_MAX) {
            i++;
            continue;
        }

        p = places[first[i]];
        first[i] = p.next;
        found = llm_run_may_end(r, p.set);

        for (k = 0, rank = 0; k < sizeof(closers) - 1 && !found; k++) {
            next = llm_run_move(r, p.set, (uint8_t) closers[k]);
            hash = next;

            if (next == LLM_SET_NONE
                || llm_table_next(&met, next, &hash) != UINT32_MAX)
            {
                continue;
            }

            rank++;
            far = p.steps + 8 * rank + 8 * open_things(r, next);

            if (far >= DEEPEST || n == MOST) {
                lost = 1;
                continue;
            }

            (void) llm_table_add(&met, next, next);
            places[n].set = next;
            places[n].steps = p.steps + 8 * rank;
            places[n].next = first[far];
            first[far] = n++;
            i = llm_min(i, far);
        }
    }

    llm_table_clear(&met);
    free(first);
    free(places);
    lost |= r->failed;                  /* too ambiguous */
    seen_lost += !found && lost;

    return found || lost;
}


/* ---- the comparison ---- */

static uint32_t
walk(llm_run_t *r, uint32_t set, llm_str_t s)
{
    size_t  i;

    for (i = 0; i < s.len && set != LLM_SET_NONE; i++) {
        set = llm_run_move(r, set, (uint8_t) s.data[i]);
    }

    return set;
}


/* 1: the mask of this set is right */

static int
check_mask(llm_run_t *r, const llm_toktree_t *t, uint32_t set, uint32_t *mask)
{
    int        has;
    uint32_t   id, next;

    memset(mask, 0x55, t->words * sizeof(uint32_t));
    llm_mask_fill(r, t, set, mask);
    seen_masks++;

    for (id = 0; id < t->n_tokens; id++) {
        has = mask[id / 32] >> id % 32 & 1;

        switch (llm_vocab_type(t->vocab, (int32_t) id)) {

        case LLM_TOKEN_NORMAL:
        case LLM_TOKEN_USER_DEFINED:
        case LLM_TOKEN_BYTE:
            break;

        default:
            if (has) {
                printf("# token %u is no text\n", id);
                return 0;
            }

            continue;
        }

        next = walk(r, set, llm_vocab_bytes(t->vocab, (int32_t) id));
        seen_tokens += (uint64_t) has;

        if (r->failed) {
            seen_lost++;
            return 1;
        }

        if (has != (next != LLM_SET_NONE)) {
            printf("# token %u \"%.*s\": mask %d\n", id,
                   (int) llm_vocab_bytes(t->vocab, (int32_t) id).len,
                   llm_vocab_bytes(t->vocab, (int32_t) id).data, has);
            return 0;
        }
    }

    return !r->failed;
}


/* a random allowed token, or UINT32_MAX */

static uint32_t
random_token(const llm_toktree_t *t, const uint32_t *mask)
{
    uint32_t  i, id, tries;

    for (tries = 0; tries < 2000; tries++) {
        id = gv_random(t->n_tokens);

        if (mask[id / 32] >> id % 32 & 1) {
            return id;
        }
    }

    for (i = 0; i < t->n_tokens; i++) {
        if (mask[i / 32] >> i % 32 & 1) {
            return i;
        }
    }

    return UINT32_MAX;
}


/* walks a text of random tokens; ends: looks for the end behind each token
   of the mask, not only the chosen one */

static int
check_text(llm_run_t *r, const llm_toktree_t *t, uint32_t start, int steps,
    int ends, llm_buf_t *text)
{
    int         good;
    uint32_t   *mask, set, id;
    llm_str_t   s;

    mask = malloc(t->words * sizeof(uint32_t));
    set = start;
    good = 1;
    text->len = 0;
    seen_texts++;

    while (good && steps-- > 0 && !r->full && !r->failed) {
        good = check_mask(r, t, set, mask);

        for (id = 0; ends && good && id < t->n_tokens; id++) {
            if (mask[id / 32] >> id % 32 & 1) {
                s = llm_vocab_bytes(t->vocab, (int32_t) id);
                good = finds_end(r, walk(r, set, s));
                seen_ends++;

                if (!good) {
                    printf("# no end behind token %u \"%.*s\"\n", id,
                           (int) s.len, s.data);
                }
            }
        }

        id = random_token(t, mask);

        if (id == UINT32_MAX) {
            good &= r->failed || llm_run_may_end(r, set);
            break;
        }

        s = llm_vocab_bytes(t->vocab, (int32_t) id);
        (void) llm_buf_add(text, s.data, s.len);
        set = walk(r, set, s);
    }

    if (good && set != LLM_SET_NONE && !r->full && !r->failed) {
        good = finds_end(r, set);

        if (!good) {
            printf("# no end\n");
        }
    }

    free(mask);

    return good;
}


static int
check_grammar(const llm_toktree_t *t, int texts, int steps, int ends)
{
    int                good;
    uint32_t           start;
    llm_gn_t           root, ref;
    llm_buf_t          text;
    llm_run_t          r;
    llm_err_t          err;
    llm_gram_build_t  *b;

    b = llm_gram_build();
    ref = llm_gn_ref(b);
    root = random_node(b, 3, ref);
    llm_gn_define(b, ref, root);

    if (llm_finish(b, root, &err) != LLM_OK) {
        llm_gram_build_free(b);
        return 2;
    }

    llm_buf_init(&text, 0);
    good = llm_run_init(&r, b) == LLM_OK;
    start = llm_run_start(&r, root);
    good &= start != LLM_SET_NONE;

    while (good && texts-- > 0 && !r.full && !r.failed) {
        good = check_text(&r, t, start, steps, ends, &text);
    }

    if (!good) {
        printf("# after: \"%.*s\"\n", (int) text.len, text.data);
    }

    llm_run_free(&r);
    llm_buf_free(&text);
    llm_gram_build_free(b);

    return good;
}


static void
test_random(const llm_vocab_t *v, int grammars, int texts, int steps,
    int ends, const char *what)
{
    int             i, n, good, rc;
    uint32_t        state;
    llm_err_t       err;
    llm_toktree_t  *t;

    t = llm_toktree_create(v, &err);
    seen_masks = seen_tokens = seen_ends = seen_texts = seen_lost = 0;
    good = t != NULL;

    for (i = 0, n = 0; i < grammars && good; i++) {
        state = gv_state;
        rc = check_grammar(t, texts, steps, ends);
        n += rc == 1;
        good = rc != 0;

        if (!good) {
            printf("# grammar %d, state %u\n", i, state);
        }
    }

    ok(good && n > grammars / 3
       && seen_lost <= (seen_ends + seen_texts) / 10,
       "%s: %d grammars, %llu texts, %llu masks, %llu tokens allowed, %llu "
       "ends looked for", what, n, (unsigned long long) seen_texts,
       (unsigned long long) seen_masks, (unsigned long long) seen_tokens,
       (unsigned long long) seen_ends);
    printf("# %llu searches without a result\n",
           (unsigned long long) seen_lost);

    llm_toktree_free(t);
}


int
main(void)
{
    char           path[1200];
    llm_err_t      err;
    llm_gguf_t    *g;
    llm_vocab_t   *v;
    const char    *dir;

    v = gv_load();
    test_random(v, 300, 2, 12, 0, "masks of a small vocabulary");
    test_random(v, 30, 1, 4, 1, "every allowed token has a way to the end");
    llm_vocab_free(v);

    dir = tap_fixtures();

    if (dir == NULL) {
        skip("the shared fixtures are not here: no real vocabulary");
        return done_testing();
    }

    snprintf(path, sizeof(path), "%s/tokenizers/ggml-vocab-qwen2.gguf", dir);
    g = llm_gguf_open(path, &err);

    if (g == NULL) {
        skip("the fixtures have no vocabulary of qwen2");
        return done_testing();
    }

    v = llm_vocab_load(g, &err);
    llm_gguf_close(g);
    test_random(v, 20, 1, 4, 0, "masks of 151,936 tokens");
    llm_vocab_free(v);

    return done_testing();
}
