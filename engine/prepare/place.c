/*
 * The places of images and sounds in a prompt.  A template writes a placeholder
 * for each, and some templates also what the family's processor puts around it;
 * the processor's own texts and the rows replace both.
 *
 * Only text of the template is looked at: a client's text that is spelt like a
 * placeholder is none.
 */

#define _GNU_SOURCE                     /* memmem() */

#include "engine/prepare/place.h"

#include <string.h>

/* a template's run of text, and where to go on in it */
typedef struct {
    const llm_prompt_t       *p;
    const llm_image_rule_t   *rule;
    size_t                    span;     /* of p->trusted, where a run begins */
    size_t                    from;     /* in the text */
    const llm_image_words_t  *words;    /* of the place that was found */
} llm_place_walk_t;


/* the end of the run of spans that begins at span *i, the last of which *i
   becomes */

static size_t
llm_place_run(const llm_prompt_t *p, size_t *i)
{
    while (*i + 1 < p->n_trusted
           && p->trusted[*i + 1].start == p->trusted[*i].end)
    {
        (*i)++;
    }

    return p->trusted[*i].end;
}


/* the first placeholder between two offsets; LLM_ABSENT: there is none */

static int
llm_place_find(llm_place_walk_t *w, size_t from, size_t to, llm_span_t *at)
{
    int          rc;
    size_t       i, k, len;
    const char  *s;

    const llm_image_words_t  *const words[] = {
        &w->rule->words, &w->rule->sound.words
    };

    rc = LLM_ABSENT;

    for (k = 0; k < llm_nelems(words); k++) {
        for (i = 0; i < LLM_IMAGE_PLACES && words[k]->places[i]; i++) {
            len = strlen(words[k]->places[i]);
            s = memmem(w->p->text + from, to - from, words[k]->places[i], len);

            if (s) {
                at->start = (size_t) (s - w->p->text);
                at->end = at->start + len;
                to = at->start;         /* an earlier one is wanted now */
                w->words = words[k];
                rc = LLM_OK;
            }
        }
    }

    return rc;
}


/* takes what stands around a placeholder, if the template has written it */

static void
llm_place_widen(const llm_place_walk_t *w, size_t from, size_t to,
    llm_span_t *at)
{
    size_t       len;
    const char  *text = w->p->text;

    len = w->words->begin ? strlen(w->words->begin) : 0;

    if (len && at->start - from >= len
        && memcmp(text + at->start - len, w->words->begin, len) == 0)
    {
        at->start -= len;
    }

    len = w->words->end ? strlen(w->words->end) : 0;

    if (len && to - at->end >= len
        && memcmp(text + at->end, w->words->end, len) == 0)
    {
        at->end += len;
    }
}


static int
llm_place_next(llm_place_walk_t *w, llm_span_t *at)
{
    size_t               last, from, to;
    const llm_prompt_t  *p = w->p;

    while (w->span < p->n_trusted) {
        last = w->span;
        from = llm_max(p->trusted[w->span].start, w->from);
        to = llm_place_run(p, &last);

        if (from < to && llm_place_find(w, from, to, at) == LLM_OK) {
            llm_place_widen(w, from, to, at);
            w->from = at->end;
            return LLM_OK;
        }

        w->span = last + 1;
    }

    return LLM_ABSENT;
}


uint32_t
llm_place_count(const llm_prompt_t *p, const llm_image_rule_t *rule,
    uint32_t *kinds, uint32_t most)
{
    uint32_t          n;
    llm_span_t        at;
    llm_place_walk_t  w = { p, rule, 0, 0, NULL };

    for (n = 0; llm_place_next(&w, &at) == LLM_OK; n++) {
        if (kinds && n < most) {
            kinds[n] = w.words == &rule->words ? LLM_MEDIUM_IMAGE
                                               : LLM_MEDIUM_AUDIO;
        }
    }

    return n;
}


/* ---- the texts between ---- */

typedef struct {
    const llm_prompt_t  *p;
    const char          *outside;
    llm_buf_t            text;
    llm_span_t          *spans;         /* [n_trusted + 2] */
    size_t               n;
    size_t               span;          /* of p->trusted, the next one */
} llm_place_text_t;

struct llm_place_s {
    llm_place_walk_t     walk;
    llm_place_text_t     text;
    size_t               from;          /* where the next text begins */
    uint32_t             k;             /* places that are laid out */
    int                  due;           /* 1: the text before the next place is
                                           laid out, its image is not */
};


/* adds what is joined to texts beside an image */

static void
llm_place_outside(llm_place_text_t *t)
{
    size_t  len;

    len = t->outside ? strlen(t->outside) : 0;

    if (len) {
        t->spans[t->n].start = t->text.len;
        t->spans[t->n++].end = t->text.len + len;
        (void) llm_buf_add(&t->text, t->outside, len);
    }
}


/* adds a part of the prompt's text, with the spans in it */

static void
llm_place_part(llm_place_text_t *t, size_t from, size_t to)
{
    size_t             base, start, end;
    const llm_span_t  *s;

    base = t->text.len;
    (void) llm_buf_add(&t->text, t->p->text + from, to - from);

    for ( /* void */ ; t->span < t->p->n_trusted; t->span++) {
        s = &t->p->trusted[t->span];
        start = llm_max(s->start, from);
        end = llm_min(s->end, to);

        if (start < end) {
            t->spans[t->n].start = base + start - from;
            t->spans[t->n++].end = base + end - from;
        }

        if (s->end > to) {
            break;                      /* the next text may begin in it */
        }
    }
}


static int
llm_place_add(llm_place_text_t *t, llm_layout_t *l, llm_err_t *err)
{
    int  rc;

    if (t->text.failed) {
        return llm_fail(err, "no memory for the prompt");
    }

    rc = llm_layout_text(l, (llm_str_t) { t->text.len, t->text.data },
                         t->spans, t->n, LLM_TOKENIZE_TRUSTED, err);
    t->text.len = 0;
    t->n = 0;

    return rc;
}


llm_place_t *
llm_place_create(const llm_prompt_t *p, const llm_image_rule_t *rule)
{
    llm_place_t  *t;

    t = calloc(1, sizeof(*t));

    if (t == NULL) {
        return NULL;
    }

    t->walk.p = p;
    t->walk.rule = rule;
    t->text.p = p;
    t->text.spans = malloc((p->n_trusted + 2) * sizeof(llm_span_t));
    llm_buf_init(&t->text.text, 0);

    if (t->text.spans == NULL) {
        llm_place_free(t);
        return NULL;
    }

    return t;
}


void
llm_place_free(llm_place_t *t)
{
    if (t) {
        llm_buf_free(&t->text.text);
        free(t->text.spans);
        free(t);
    }
}


/* the text before the next place; LLM_ABSENT: there is none, all text is laid
   out */

static int
llm_place_before(llm_place_t *t, llm_layout_t *l, llm_err_t *err)
{
    int         rc;
    llm_span_t  at;

    if (llm_place_next(&t->walk, &at) != LLM_OK) {
        llm_place_part(&t->text, t->from, t->text.p->len);
        rc = llm_place_add(&t->text, l, err);

        return rc == LLM_OK ? LLM_ABSENT : rc;
    }

    llm_place_part(&t->text, t->from, at.start);
    t->text.outside = t->walk.words->outside;
    llm_place_outside(&t->text);
    t->from = at.end;

    return llm_place_add(&t->text, l, err);
}


int
llm_place_images(llm_place_t *t, const llm_place_images_t *images,
    llm_layout_t *l, llm_err_t *err)
{
    int  rc;

    for ( ;; ) {
        rc = t->due ? LLM_OK : llm_place_before(t, l, err);

        if (rc != LLM_OK) {
            return rc == LLM_ABSENT ? LLM_OK : rc;
        }

        t->due = 1;
        rc = images->add(images->data, t->k, l, err);

        if (rc != LLM_OK) {
            return rc;
        }

        t->due = 0;
        t->k++;
        llm_place_outside(&t->text);
    }
}
