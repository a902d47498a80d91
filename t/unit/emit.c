/*
 * Stop strings: however a text falls into tokens, what is sent is the same,
 * and is what a search over the whole text says.  Also logprobs, ids and
 * events when the ring is small.
 */

#include "t/unit/emit_ring.h"

#define MAX_TEXT  4096

/* takes all TEXT events; appends their text; returns their number */

static uint32_t
take(char *text, uint32_t *n_tokens, uint32_t *n_probs)
{
    uint32_t            n;
    const llm_event_t  *ev;

    (void) llm_ring_publish(&port.ring);

    for (n = 0; (ev = (const llm_event_t *) llm_ring_next(&up)); n++) {
        strncat(text, llm_ref_data(ev, ev->u.text.text), ev->u.text.text.len);
        *n_tokens += ev->u.text.n_tokens;
        *n_probs += ev->u.text.logprobs.len;
    }

    llm_ring_release(&up);

    return n;
}


/* the first stop string that is complete, the longest that ends there */

static size_t
naive(const char *text, const llm_str_t *stops, uint32_t n, int *hit)
{
    size_t    end, best;
    uint32_t  i;

    *hit = -1;

    for (end = 1; end <= strlen(text); end++) {
        best = 0;

        for (i = 0; i < n; i++) {
            if (stops[i].len <= end && stops[i].len > best
                && memcmp(text + end - stops[i].len, stops[i].data,
                          stops[i].len) == 0)
            {
                best = stops[i].len;
                *hit = (int) i;
            }
        }

        if (best) {
            return end - best;
        }
    }

    return strlen(text);
}


/* every run of the text's bytes is a token */

static void
open_vocab(const char *text)
{
    size_t       i, k, lens[512];
    uint32_t     n;
    llm_err_t    err;
    const char  *runs[512];

    n = 0;

    for (i = 0; text[i]; i++) {
        for (k = 2; k <= strlen(text) - i; k++) {
            runs[n] = text + i;
            lens[n++] = k;
        }
    }

    if (tv_open(&tiny, runs, lens, n, &err) != LLM_OK) {
        printf("Bail out! %s\n", err.msg);
        exit(1);
    }

    vocab = tiny.vocab;
}


static int32_t
token_of(const char *text, size_t from, size_t len)
{
    size_t   i, k;
    int32_t  id;

    if (len == 1) {
        return (unsigned char) text[from];
    }

    id = 257;

    for (i = 0; i < from; i++) {
        for (k = 2; k <= strlen(text) - i; k++) {
            id++;
        }
    }

    return id + (int32_t) len - 2;
}


/* one way to split it; 0 when tokens were counted wrongly */

static int
run_split(const char *text, uint32_t split, const llm_stops_t *stops,
    char *got, int *hit, int *early)
{
    int            rc;
    size_t         i, from;
    int32_t        ids[32];
    uint32_t       n, k, n_tokens, n_probs;
    llm_emit_t     e;
    llm_sampled_t  t;

    n = 0;
    from = 0;

    for (i = 0; text[i]; i++) {
        if (text[i + 1] == '\0' || split >> i & 1) {
            ids[n++] = token_of(text, from, i + 1 - from);
            from = i + 1;
        }
    }

    llm_emit_init(&e, vocab, stops, LLM_EMIT_STREAM, 0, 0);
    memset(&t, 0, sizeof(t));
    got[0] = '\0';
    n_tokens = 0;
    rc = LLM_OK;

    for (k = 0; k < n && rc == LLM_OK; k++) {
        t.id = ids[k];
        rc = llm_emit_push(&e, &t, 1);
        (void) llm_emit_write(&e, &to, 0, 0);
        (void) take(got, &n_tokens, &n_probs);

        /* nothing of a stop string may have been shown */

        for (i = 0; i < stops->n; i++) {
            *early |= strstr(got, stops->stop[i].data) != NULL;
        }
    }

    (void) llm_emit_end(&e, 0);
    (void) llm_emit_write(&e, &to, 0, 1);
    (void) take(got, &n_tokens, &n_probs);

    *hit = e.hit;
    llm_emit_free(&e);

    return n_tokens == k;
}


static void
test_splits(const char *text, const char *const *strings, uint32_t n)
{
    int          want_hit, hit, early, good;
    char         got[MAX_TEXT], want[MAX_TEXT];
    size_t       cut;
    uint32_t     i, split;
    llm_str_t    strs[LLM_MAX_STOPS];
    llm_stops_t  stops;

    for (i = 0; i < n; i++) {
        strs[i].data = strings[i];
        strs[i].len = strlen(strings[i]);
    }

    cut = naive(text, strs, n, &want_hit);
    snprintf(want, sizeof(want), "%.*s", (int) cut, text);

    (void) llm_stops_init(&stops, strs, n);

    /* NUL-terminated copies for strstr() above */

    for (i = 0; i < stops.n; i++) {
        stops.stop[i].data = strings[i];
    }

    good = 1;
    early = 0;
    open_vocab(text);

    for (split = 0; split < 1u << (strlen(text) - 1); split++) {
        good &= run_split(text, split, &stops, got, &hit, &early)
                && strcmp(got, want) == 0 && hit == want_hit;
    }

    ok(good && !early, "\"%s\" with %u stop strings: \"%s\" in all %u splits",
       strchr(text, '\n') ? "lines" : text, n, want, split);

    llm_stops_free(&stops);
    tv_close(&tiny);
}


static void
test_stops(void)
{
    const char  *a[] = { "ana" }, *b[] = { "xyz", "b" }, *c[] = { "</s>" };
    const char  *d[] = { "aab", "aaab" }, *e[] = { "lo w", "world", "llo" };
    const char  *f[] = { "\n\n" }, *g[] = { "é" }, *h[] = { "abcd", "bc" };

    test_splits("banana split", a, 1);
    test_splits("bananana", a, 1);
    test_splits("anxana", a, 1);
    test_splits("say xyb now", b, 2);
    test_splits("the end</s", c, 1);
    test_splits("end</s>more", c, 1);
    test_splits("<</s>", c, 1);
    test_splits("caaaab", d, 2);
    test_splits("hello world", e, 3);
    test_splits("one\n\ntwo", f, 1);
    test_splits("caf\xc3\xa9 e", g, 1);
    test_splits("xabcd", h, 2);
    test_splits("nothing", h, 2);
}


/* random texts over two letters and random stops, random splits */

static void
test_random(void)
{
    int          good, hit, want_hit, early;
    char         text[16], strings[3][8], got[MAX_TEXT];
    size_t       cut;
    uint32_t     round, i, k;
    llm_str_t    strs[3];
    llm_stops_t  stops;

    srand(7);
    open_vocab("ab");
    good = 1;
    early = 0;

    for (round = 0; round < 4000; round++) {
        for (i = 0; i < 12; i++) {
            text[i] = (char) ('a' + rand() % 2);
        }

        text[12] = '\0';

        for (k = 0; k < 3; k++) {
            strs[k].len = 2 + (size_t) (rand() % 5);
            strs[k].data = strings[k];

            for (i = 0; i < strs[k].len; i++) {
                strings[k][i] = (char) ('a' + rand() % 2);
            }

            strings[k][i] = '\0';
        }

        cut = naive(text, strs, 3, &want_hit);
        (void) llm_stops_init(&stops, strs, 3);

        for (k = 0; k < 3; k++) {
            stops.stop[k].data = strings[k];
        }

        /* all bytes alone: every split point is met in the other test */

        (void) run_split(text, 0xffff, &stops, got, &hit, &early);
        good &= strlen(got) == cut && memcmp(got, text, cut) == 0
                && (hit >= 0) == (want_hit >= 0);
        llm_stops_free(&stops);
    }

    tv_close(&tiny);

    ok(good && !early, "4000 random texts and stop strings");
}


/* before min_tokens text does not count as a stop string */

static void
test_unchecked(void)
{
    char           got[MAX_TEXT] = "";
    uint32_t       i, n_tokens = 0, n_probs = 0;
    llm_str_t      s = { 2, "ab" };
    llm_emit_t     e;
    llm_stops_t    stops;
    llm_sampled_t  t;

    memset(&t, 0, sizeof(t));
    (void) llm_stops_init(&stops, &s, 1);
    llm_emit_init(&e, vocab, &stops, LLM_EMIT_STREAM, 0, 0);

    for (i = 0; i < 8; i++) {
        t.id = i % 2 ? 'b' : 'a';

        if (llm_emit_push(&e, &t, i >= 4) != LLM_OK) {
            break;
        }
    }

    is_int(i, 5, "the stop string counts behind the unchecked tokens only");
    (void) llm_emit_end(&e, 0);
    (void) llm_emit_write(&e, &to, 0, 1);
    (void) take(got, &n_tokens, &n_probs);
    is_str(got, "abab", "what came before it is whole");

    llm_emit_free(&e);
    llm_stops_free(&stops);
}


/* logprobs go with their text; those of a stop string's tokens, and of the one
   that ends a choice, without any */

static void
test_probs(void)
{
    char             got[MAX_TEXT] = "";
    uint32_t         i, n_tokens, n_probs;
    llm_str_t        s = { 3, "cde" };
    llm_emit_t       e;
    llm_stops_t      stops;
    llm_sampled_t    t;
    llm_candidate_t  top[2] = { { 0, -0.5f }, { 1, -1.5f } };

    (void) llm_stops_init(&stops, &s, 1);
    llm_emit_init(&e, vocab, &stops, LLM_EMIT_STREAM|LLM_EMIT_PROBS, 0, 0);

    t.n_top = 2;
    t.top = top;
    t.logprob = -0.25f;
    n_probs = 0;
    n_tokens = 0;

    for (i = 0; i < 4; i++) {
        t.id = 'a' + (int32_t) i;
        top[0].id = t.id;
        (void) llm_emit_push(&e, &t, 1);
        (void) llm_emit_write(&e, &to, 0, 0);
    }

    (void) take(got, &n_tokens, &n_probs);
    is_str(got, "ab", "text that may be a stop string is held back");
    is_int(n_probs, 2, "and so are its logprobs");

    t.id = 'e';
    is_int(llm_emit_push(&e, &t, 1), LLM_STOPPED, "the stop string is whole");
    (void) llm_emit_end(&e, 0);
    (void) llm_emit_write(&e, &to, 0, 1);
    (void) take(got, &n_tokens, &n_probs);

    is_str(got, "ab", "it is not sent");
    is_int(n_probs, 5, "its logprobs are");
    is_int(n_tokens, 5, "its tokens count");

    llm_emit_free(&e);
    llm_stops_free(&stops);
}


/* a full ring: nothing is lost, the rest goes when there is room */

static void
test_full(void)
{
    int              again;
    char            *got;
    uint32_t         i, n_tokens, n_probs, n_events;
    llm_emit_t       e;
    llm_stops_t      stops;
    llm_sampled_t    t;
    llm_candidate_t  top[20];

    memset(&stops, 0, sizeof(stops));
    llm_emit_init(&e, vocab, &stops, LLM_EMIT_PROBS|LLM_EMIT_IDS, 0, 0);

    for (i = 0; i < 20; i++) {
        top[i].id = (int32_t) i;
        top[i].logprob = -(float) i;
    }

    t.n_top = 20;
    t.top = top;
    t.logprob = -1;

    for (i = 0; i < 3000; i++) {
        t.id = 'a' + (int32_t) (i % 26);
        (void) llm_emit_push(&e, &t, 1);
    }

    (void) llm_emit_end(&e, 0);
    got = calloc(1, 8192);
    n_tokens = 0;
    n_probs = 0;
    n_events = 0;
    again = 0;

    while (llm_emit_write(&e, &to, 0, 1) == LLM_FULL) {
        n_events += take(got, &n_tokens, &n_probs);
        again++;
    }

    n_events += take(got, &n_tokens, &n_probs);

    ok(again > 2, "the ring was full %d times", again);
    is_int(strlen(got), 3000, "all text came, in %u events", n_events);
    is_int(n_probs, 3000, "all logprobs");
    is_int(n_tokens, 3000, "all tokens counted");

    for (i = 0; i < 3000 && got[i] == 'a' + (int) (i % 26); i++) { /* void */ }

    is_int(i, 3000, "in order");

    free(got);
    llm_emit_free(&e);
}


/* an echo is said from the prompt's own bytes, once or by each choice */

static void
test_echo(void)
{
    char             text[3000], *got;
    uint32_t         i, k, n_tokens, n_probs;
    llm_buf_t        probs;
    llm_emit_t       e[2];
    llm_stops_t      stops;
    llm_sampled_t    t;

    memset(&stops, 0, sizeof(stops));
    memset(&t, 0, sizeof(t));
    llm_buf_init(&probs, 0);

    for (i = 0; i < sizeof(text); i++) {
        text[i] = (char) ('a' + i % 26);
        t.id = text[i];
        llm_emit_add_prob(&probs, &t, i, i + 1);
    }

    for (k = 0; k < 2; k++) {
        llm_emit_init(&e[k], vocab, &stops, LLM_EMIT_PROBS, 0, 0);
        llm_emit_echo(&e[k], (llm_str_t) { sizeof(text), text }, &probs,
                      k == 0);
        is_int(llm_emit_pending(&e[k], 0), k == 0, "who tells has to tell");
        is_int(e[k].text.len + e[k].probs.len, 0, "nothing is copied");

        t.id = 'z';
        (void) llm_emit_push(&e[k], &t, 1);
        (void) llm_emit_end(&e[k], 0);

        got = calloc(1, 8192);
        n_tokens = 0;
        n_probs = 0;

        while (llm_emit_write(&e[k], &to, k, 1) == LLM_FULL) {
            (void) take(got, &n_tokens, &n_probs);
        }

        (void) take(got, &n_tokens, &n_probs);

        is_int(strlen(got), k == 0 ? sizeof(text) + 1 : 1, "its text");
        ok(k || memcmp(got, text, sizeof(text)) == 0, "the prompt first");
        is_int(n_probs, k == 0 ? sizeof(text) + 1 : 1, "its probabilities");
        is_int(n_tokens, 1, "one token, the prompt's are not generated");
        is_int(e[k].sent, sizeof(text) + 1, "it begins behind the prompt");

        free(got);
        llm_emit_free(&e[k]);
    }

    llm_buf_free(&probs);
}


/* no more than a window waits to be read, whatever room the ring has */

static void
test_window(void)
{
    char           *got;
    size_t          most;
    uint32_t        i, n, rounds, n_tokens, n_probs;
    llm_emit_t      e;
    llm_stops_t     stops;
    llm_sampled_t   t;

    static const uint32_t  windows[] = { 1, 256, 1000, 16384 };

    memset(&stops, 0, sizeof(stops));
    memset(&t, 0, sizeof(t));
    t.logprob = -1;

    for (n = 0; n < llm_nelems(windows); n++) {
        llm_emit_init(&e, vocab, &stops, LLM_EMIT_STREAM|LLM_EMIT_PROBS, 0, 0);
        to.max_unread = windows[n];
        to.unread = 0;
        got = calloc(1, 8192);
        n_tokens = 0;
        n_probs = 0;
        rounds = 0;
        most = 0;

        for (i = 0; i < 3000; i++) {
            t.id = 'a' + (int32_t) (i % 26);
            (void) llm_emit_push(&e, &t, 1);
        }

        (void) llm_emit_end(&e, 0);

        while (llm_emit_write(&e, &to, 0, 1) == LLM_FULL) {
            most = llm_max(most, to.unread);
            (void) take(got, &n_tokens, &n_probs);
            rounds++;
        }

        (void) take(got, &n_tokens, &n_probs);

        ok(most <= llm_max(windows[n], sizeof(llm_event_t) + 128),
           "a window of %u: %zu bytes at most", windows[n], most);
        ok(rounds > 3, "in %u rounds", rounds);
        ok(strlen(got) == 3000 && n_probs == 3000 && n_tokens == 3000,
           "and all comes");

        free(got);
        llm_emit_free(&e);
    }

    to.max_unread = 0;
}


int
main(void)
{
    zone_open(1 << 17);

    test_stops();
    test_random();

    open_vocab("ab");
    test_unchecked();
    test_probs();
    test_full();
    test_echo();
    test_window();
    tv_close(&tiny);

    munmap(mem, llm_zone_size(1, 1, 1 << 17));

    return done_testing();
}
