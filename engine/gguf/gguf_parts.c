/*
 * Split models: NAME-00001-of-00003.gguf has the metadata and the number of
 * files (split.count); each file has tensors of its own.  The model is named by
 * the first part, whose llm_gguf_t has the tensors of all once they are joined.
 *
 * The first part owns the others, into whose bytes its tensors point.  A part
 * that is missing, or whose metadata contradict the first one's, is an error
 * with its name.
 */

#include "engine/gguf/gguf_internal.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define LLM_GGUF_MAX_PARTS  512

/* "-00001-of-00003.gguf" */
#define LLM_GGUF_PART_LEN   20

typedef struct {
    uint32_t  no;                       /* number of this part, from 0 */
    uint32_t  count;                    /* of parts */
    uint32_t  tensors;                  /* of all parts */
} llm_gguf_split_t;


/* reads split.* of a file; LLM_ABSENT: the file is a whole model */

static int
llm_gguf_split(const llm_gguf_t *g, llm_gguf_split_t *s, llm_err_t *err)
{
    s->no = 0;
    s->count = 0;
    s->tensors = 0;

    if (llm_gguf_get_u32(g, "split.count", &s->count, err) == LLM_ERROR
        || llm_gguf_get_u32(g, "split.no", &s->no, err) == LLM_ERROR
        || llm_gguf_get_u32(g, "split.tensors.count", &s->tensors, err)
           == LLM_ERROR)
    {
        return LLM_ERROR;
    }

    /* tools that merge parts into one file leave a count of 0 */

    if (s->count < 2 && s->no == 0) {
        return LLM_ABSENT;
    }

    if (s->no >= s->count) {
        return llm_fail(err, "%s: split.no: part %u (from 0) of %u parts",
                        g->name, s->no, s->count);
    }

    if (s->count > LLM_GGUF_MAX_PARTS) {
        return llm_fail(err, "%s: split.count: %u parts, at most %u are "
                        "supported", g->name, s->count, LLM_GGUF_MAX_PARTS);
    }

    return LLM_OK;
}


/* replaces the number in a part's name; the name must end like one */

static void
llm_gguf_part_name(char *name, uint32_t no, uint32_t count)
{
    size_t  len;

    len = strlen(name) - LLM_GGUF_PART_LEN;
    snprintf(name + len, LLM_GGUF_PART_LEN + 1, "-%05u-of-%05u.gguf",
             (no + 1) % 100000, count % 100000);
}


/* an error unless the file is the first part and its name fits its split.*;
   name: a copy of its name, may be changed */

static int
llm_gguf_is_first(const llm_gguf_t *g, const llm_gguf_split_t *s, char *name,
    llm_err_t *err)
{
    const char  *end;
    char         suffix[LLM_GGUF_PART_LEN + 1] = "12345678901234567890";

    llm_gguf_part_name(suffix, s->no, s->count);
    end = strlen(name) > LLM_GGUF_PART_LEN
          ? name + strlen(name) - LLM_GGUF_PART_LEN : "";

    if (strcmp(end, suffix) != 0) {
        return llm_fail(err, "%s: split.no: it is part %u of %u, and its name "
                        "does not end in \"%s\", which is needed to find the "
                        "other parts", g->name, s->no + 1, s->count, suffix);
    }

    if (s->no) {
        llm_gguf_part_name(name, 0, s->count);

        return llm_fail(err, "%s: split.no: it is part %u of %u; the model "
                        "is named by its first part, %s", g->name, s->no + 1,
                        s->count, name);
    }

    return LLM_OK;
}


/* whether the key may differ between parts */

static int
llm_gguf_is_own(llm_str_t key)
{
    static const char  arch[] = "general.architecture";

    if (key.len == sizeof(arch) - 1
        && memcmp(key.data, arch, sizeof(arch) - 1) == 0)
    {
        return 0;
    }

    return (key.len > 6 && memcmp(key.data, "split.", 6) == 0)
           || (key.len > 8 && memcmp(key.data, "general.", 8) == 0);
}


static int
llm_gguf_same_value(const llm_gguf_kv_t *a, const llm_gguf_kv_t *b)
{
    uint64_t     i;
    llm_str_t    s, t;
    const char  *p, *q;

    if (a->type != b->type || a->item != b->item || a->count != b->count) {
        return 0;
    }

    if (a->item != LLM_GGUF_STR) {
        return memcmp(a->data, b->data,
                      (size_t) a->count * llm_gguf_type_size(a->item)) == 0;
    }

    p = a->data;
    q = b->data;

    for (i = 0; i < a->count; i++) {
        s = llm_gguf_next_str(&p);
        t = llm_gguf_next_str(&q);

        if (!llm_str_eq(s, t)) {
            return 0;
        }
    }

    return 1;
}


/* all other keys of a part must be in the first part, with the same values */

static int
llm_gguf_same_keys(const llm_gguf_t *g, const llm_gguf_t *part,
    llm_err_t *err)
{
    size_t                i;
    llm_gguf_label_t      label;
    const llm_gguf_kv_t  *kv, **first;

    for (i = 0; i < part->n_kv; i++) {
        kv = &part->kv[i];

        if (llm_gguf_is_own(kv->key)) {
            continue;
        }

        first = bsearch(&kv, g->kv_sorted, g->n_kv, sizeof(kv),
                        llm_gguf_kv_cmp);

        if (first == NULL || !llm_gguf_same_value(*first, kv)) {
            return llm_fail(err, "%s: %s: %s, the first part, %s", part->name,
                            llm_gguf_label(&label, kv->key), g->name,
                            first ? "has another value"
                                  : "does not have the key");
        }
    }

    return LLM_OK;
}


static int
llm_gguf_check_part(const llm_gguf_t *g, const llm_gguf_split_t *want,
    const llm_gguf_t *part, llm_err_t *err)
{
    int                rc;
    llm_gguf_split_t   s;

    rc = llm_gguf_split(part, &s, err);

    if (rc == LLM_ERROR) {
        return LLM_ERROR;
    }

    if (rc == LLM_ABSENT) {
        return llm_fail(err, "%s: split.count: it is not a part of a model, "
                        "but %s has %u parts", part->name, g->name,
                        want->count);
    }

    if (s.no != want->no || s.count != want->count) {
        return llm_fail(err, "%s: split.no: it is part %u of %u, not %u of %u",
                        part->name, s.no + 1, s.count, want->no + 1,
                        want->count);
    }

    if (s.tensors != want->tensors) {
        return llm_fail(err, "%s: split.tensors.count: its model has %u "
                        "tensors, but that of %s has %u", part->name,
                        s.tensors, g->name, want->tensors);
    }

    return llm_gguf_same_keys(g, part, err);
}


/* opens the other parts; changes name */

static int
llm_gguf_open_parts(llm_gguf_t *g, llm_gguf_split_t *s, char *name,
    llm_gguf_open_pt open, llm_err_t *err)
{
    llm_gguf_t  *part;

    g->parts = calloc(s->count, sizeof(*g->parts));
    if (g->parts == NULL) {
        return llm_fail(err, "%s: no memory for its parts", g->name);
    }

    for (s->no = 1; s->no < s->count; s->no++) {
        llm_gguf_part_name(name, s->no, s->count);

        part = open(name, err);

        if (part == NULL) {
            return access(name, F_OK) == 0 || errno != ENOENT ? LLM_ERROR
                   : llm_fail(err, "%s: No such file or directory: the model "
                              "is in %u files, all of which must be in its "
                              "folder", name, s->count);
        }

        g->parts[g->n_parts++] = part;

        if (llm_gguf_check_part(g, s, part, err) != LLM_OK) {
            return LLM_ERROR;
        }
    }

    return LLM_OK;
}


/* gives g the tensors of all parts; the other parts keep only their bytes */

static int
llm_gguf_merge(llm_gguf_t *g, const llm_gguf_split_t *s, llm_err_t *err)
{
    size_t              i, n, at;
    llm_gguf_t         *part;
    llm_gguf_tensor_t  *all;

    n = g->n_tensors;

    for (i = 0; i < g->n_parts; i++) {
        n += g->parts[i]->n_tensors;
    }

    if (s->tensors && n != s->tensors) {
        return llm_fail(err, "%s: split.tensors.count: %u tensors, and its "
                        "%u parts have %zu", g->name, s->tensors, s->count,
                        n);
    }

    all = realloc(g->tensors, (n + 1) * sizeof(*all));
    if (all == NULL) {
        return llm_fail(err, "%s: no memory for its tensors", g->name);
    }

    g->tensors = all;
    g->n_own = g->n_tensors;
    at = g->n_own;

    for (i = 0; i < g->n_parts; i++) {
        part = g->parts[i];
        memcpy(all + at, part->tensors, part->n_tensors * sizeof(*all));
        at += part->n_tensors;
        part->n_own = part->n_tensors;

        if (g->unknown == NULL) {
            g->unknown = part->unknown;
            part->unknown = NULL;
        }

        llm_gguf_forget(part);
    }

    g->n_tensors = at;

    return llm_gguf_sort_tensors(g, err);
}


int
llm_gguf_join(llm_gguf_t *g, llm_gguf_open_pt open, llm_err_t *err)
{
    int                rc;
    char              *name;
    llm_gguf_split_t   s;

    rc = llm_gguf_split(g, &s, err);

    if (rc != LLM_OK) {
        return rc == LLM_ABSENT ? LLM_OK : LLM_ERROR;
    }

    name = strdup(g->name);
    if (name == NULL) {
        return llm_fail(err, "%s: no memory for its parts", g->name);
    }

    if (llm_gguf_is_first(g, &s, name, err) != LLM_OK
        || llm_gguf_open_parts(g, &s, name, open, err) != LLM_OK
        || llm_gguf_merge(g, &s, err) != LLM_OK)
    {
        rc = LLM_ERROR;
    }

    free(name);

    return rc;
}
