/*
 * A model of the shared fixtures: its token ids, and what another
 * implementation computes of them, a row for each.
 */

#ifndef LLM_T_FIXTURE_H
#define LLM_T_FIXTURE_H

#include "engine/base/base.h"

#include <stdio.h>

#define MAX_IDS  4096

typedef struct {
    const char  *dir;                   /* of the fixtures; NULL: it is none
                                           of them */
    const char  *name;
    const char  *path;                  /* of the model */
    int32_t      ids[MAX_IDS];
    uint32_t     n_ids;
    float       *want;                  /* [n_ids][width] */
} fixture_t;


/* ids, and rows of `width` numbers from NAME.what; f->want is the caller's */

static inline int
load_fixture(fixture_t *f, const char *what, uint32_t width)
{
    char     path[2048];
    FILE    *in;
    size_t   n;

    f->n_ids = 0;
    snprintf(path, sizeof(path), "%s/models/%s.ids", f->dir, f->name);
    in = fopen(path, "r");

    while (in && f->n_ids < MAX_IDS
           && fscanf(in, "%d", &f->ids[f->n_ids]) == 1)
    {
        f->n_ids++;
    }

    if (in) {
        fclose(in);
    }

    n = (size_t) f->n_ids * width;
    f->want = malloc(n * sizeof(float) + 1);
    snprintf(path, sizeof(path), "%s/models/%s.%s", f->dir, f->name, what);
    in = fopen(path, "rb");
    n = in && n && fread(f->want, sizeof(float), n, in) == n;

    if (in) {
        fclose(in);
    }

    return n != 0;
}

#endif /* LLM_T_FIXTURE_H */
