/*
 * Rows of media that were encoded and computed, kept for prompts that need some
 * of them again: the prefix tree has whole pages only, so the end of an image
 * is computed again behind another text, and all of it where its rows see each
 * other; see sched.h.
 *
 * The scheduler owns the rows, at most runner.encoded_bytes of them; those used
 * least recently give way.  Only prompts with the same salt share them.  It
 * also owns media that the encoder works on and whose request has left.
 */

#include "engine/sched/sched_internal.h"


size_t
llm_media_row_size(const llm_sched_t *s, const llm_media_t *m)
{
    return (size_t) m->n * s->conf.runner.n_given * sizeof(float);
}


static void
llm_encoded_remove(llm_sched_t *s, uint32_t i)
{
    free(s->encoded[i].rows);
    s->encoded_bytes -= s->encoded[i].bytes;
    s->encoded[i] = s->encoded[--s->n_encoded];
}


/* the index of the media's rows; n_encoded: they are not there */

static uint32_t
llm_encoded_find(const llm_sched_t *s, const llm_salt_t *salt,
    const llm_media_t *m)
{
    uint32_t  i;

    for (i = 0; i < s->n_encoded; i++) {
        if (s->encoded[i].digest == m->digest
            && s->encoded[i].bytes == llm_media_row_size(s, m)
            && llm_salt_same(&s->encoded[i].salt, salt))
        {
            break;
        }
    }

    return i;
}


/* takes the rows of m, which are computed */

void
llm_encoded_put(llm_sched_t *s, const llm_salt_t *salt, llm_media_t *m)
{
    uint32_t        i, old;
    llm_encoded_t  *e;

    i = llm_encoded_find(s, salt, m);

    if (i < s->n_encoded) {
        llm_encoded_remove(s, i);
    }

    while (s->n_encoded
           && (s->n_encoded == LLM_ENCODED
               || s->encoded_bytes + m->row_bytes
                  > s->conf.runner.encoded_bytes))
    {
        for (i = 1, old = 0; i < s->n_encoded; i++) {
            old = s->encoded[i].used < s->encoded[old].used ? i : old;
        }

        llm_encoded_remove(s, old);
    }

    if (m->row_bytes <= s->conf.runner.encoded_bytes) {
        e = &s->encoded[s->n_encoded++];
        e->salt = *salt;
        e->digest = m->digest;
        e->rows = m->rows;
        e->bytes = m->row_bytes;
        e->used = ++s->encoded_clock;
        s->encoded_bytes += e->bytes;

    } else {
        free(m->rows);
    }

    m->rows = NULL;
    m->row_bytes = 0;
}


/* sets m's rows to a copy of `rows`; no memory: it gets none */

int
llm_encoded_copy(const llm_sched_t *s, const float *rows, llm_media_t *m)
{
    size_t  size;

    size = llm_media_row_size(s, m);
    m->rows = malloc(size);

    if (m->rows == NULL) {
        return LLM_ERROR;
    }

    memcpy(m->rows, rows, size);
    m->row_bytes = size;

    return LLM_OK;
}


/* sets m's rows, if they are kept; LLM_ABSENT: they are not */

int
llm_encoded_get(llm_sched_t *s, const llm_salt_t *salt, llm_media_t *m)
{
    uint32_t  i;

    i = llm_encoded_find(s, salt, m);

    if (i == s->n_encoded) {
        return LLM_ABSENT;
    }

    s->encoded[i].used = ++s->encoded_clock;

    return llm_encoded_copy(s, s->encoded[i].rows, m);
}


int
llm_encoded_has(const llm_sched_t *s, const llm_salt_t *salt,
    const llm_media_t *m)
{
    return llm_encoded_find(s, salt, m) < s->n_encoded;
}


void
llm_encoded_free(llm_sched_t *s)
{
    while (s->n_encoded) {
        llm_encoded_remove(s, s->n_encoded - 1);
    }
}


/* ---- in the encoder ---- */

/* is m among the media that the encoder works on? */

int
llm_media_encodes(const llm_sched_t *s, const llm_media_t *m)
{
    uint32_t  i;

    for (i = 0; i < s->encodes.n && s->encodes.media[i] != m; i++) {
        /* void */
    }

    return i < s->encodes.n;
}


/* keeps what was encoded for requests that have left */

void
llm_media_encodes_free(llm_sched_t *s)
{
    uint32_t        i;
    llm_media_t    *m;
    llm_encodes_t  *e = &s->encodes;

    for (i = 0; i < e->n; i++) {
        m = &e->left[i];

        if (e->of[i]) {
            continue;
        }

        if (m->rows) {
            llm_encoded_put(s, &e->salt[i], m);
        }

        free(m->rgb);
    }

    e->n = 0;
    e->pixels = 0;
    e->us = 0;
}


/* the request is about to leave: its pixels stay while the encoder works for
   others, too */

void
llm_media_leave(llm_sched_t *s, llm_req_t *r)
{
    uint32_t        i, others;
    llm_encodes_t  *e = &s->encodes;

    for (i = 0, others = 0; i < e->n; i++) {
        if (e->of[i] != r) {
            others += e->of[i] != NULL;
            continue;
        }

        e->left[i] = *e->media[i];
        e->media[i]->rgb = NULL;
        e->media[i] = &e->left[i];
        e->of[i] = NULL;
    }

    if (e->n && others == 0) {
        s->conf.runner.encode_stop(s->conf.runner.encoder);
        llm_media_encodes_free(s);
    }
}
