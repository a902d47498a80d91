/*
 * The parameters that there are, from the sources of the API's own tables and
 * from that of sampling: a new one is fuzzed without a line here.  A table that cannot be read any
 * more is an error, not an empty list.
 */

#include "t/fuzz/http/http.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* "bounds" that say nothing: beyond what any number reaches */
#define FZ_UNKNOWN  HUGE_VAL


static const char *const  fz_types[] = {
    [FZ_BOOL] = "LLM_FIELD_BOOL",
    [FZ_INT] = "LLM_FIELD_INT",
    [FZ_STRING] = "LLM_FIELD_STRING",
    [FZ_ARRAY] = "LLM_FIELD_ARRAY",
    [FZ_OBJECT] = "LLM_FIELD_OBJECT",
    [FZ_ANY] = "LLM_FIELD_ANY",
    [FZ_NUMBER] = "LLM_FIELD_PARAM_NUMBER",
    [FZ_REQUIRED] = "LLM_FIELD_REQUIRED",
    [FZ_REFUSED] = "LLM_FIELD_REFUSED"
};

static const fz_field_t  fz_params[] = {
#define LLM_PARAM(name, type, otherwise, least, most)                        \
    { #name, FZ_CHAT | FZ_COMPL, FZ_##type, least, most },
#define LLM_ALIAS(name, of, type, least, most)                               \
    { #name, FZ_CHAT | FZ_COMPL, FZ_##type, least, most },
#include "engine/base/sampling.def"
};


static char *
fz_file(const char *name)
{
    FILE    *f;
    char     buf[4096];
    size_t   n;
    fz_buf_t b = { NULL, 0, 0 };

    f = fopen(name, "r");
    if (f == NULL) {
        fz_die("cannot read %s", name);
    }

    while ((n = fread(buf, 1, sizeof(buf), f)) > 0) {
        fz_add(&b, buf, n);
    }

    fclose(f);

    return b.data;
}


/* a number, or the one name that stands for one in the tables */

static double
fz_bound(const char *word)
{
    char    *end;
    double   v;

    if (strcmp(word, "INT32_MAX") == 0) {
        return INT32_MAX;
    }

    v = strtod(word, &end);

    return end == word ? FZ_UNKNOWN : v;
}


/* the words of a row between its braces, without spaces and quotes */

static unsigned
fz_words(const char *p, const char *end, char words[8][64])
{
    int       depth;
    size_t    len;
    unsigned  n;

    for (n = 0, len = 0, depth = 0; p < end && n < 8; p++) {
        depth += (*p == '(') - (*p == ')');

        if (*p == ',' && depth == 0) {
            words[n++][len] = '\0';
            len = 0;

        } else if (!isspace((unsigned char) *p) && *p != '"' && len < 63) {
            words[n][len++] = *p;
        }
    }

    if (n < 8) {
        words[n++][len] = '\0';
    }

    return n;
}


static void
fz_row(fz_table_t *t, unsigned endpoints, const char *p, const char *end)
{
    char         words[8][64];
    size_t       i;
    unsigned     n;
    fz_field_t  *f;

    n = fz_words(p, end, words);

    if (n < 5 || t->n_fields == FZ_MAX_FIELDS) {
        fz_die("a row of the table is not understood: %.*s",
               (int) (end - p), p);
    }

    f = &t->fields[t->n_fields++];
    strcpy(f->name, words[0]);

    f->endpoints = endpoints;

    for (i = 0; i < fz_nelems(fz_types); i++) {
        if (fz_types[i] && strcmp(words[1], fz_types[i]) == 0) {
            f->type = (fz_type_t) i;
            break;
        }
    }

    if (i == fz_nelems(fz_types)) {
        fz_die("a type of the table is not known: %s", words[1]);
    }

    f->min = fz_bound(words[3]);
    f->max = fz_bound(words[4]);

    if (f->min == FZ_UNKNOWN) {
        f->min = -FZ_UNKNOWN;
    }
}


static void
fz_table_add(fz_table_t *t, const char *file, unsigned endpoints)
{
    char        *source;
    const char  *p, *q, *end;

    source = fz_file(file);

    p = source ? strstr(source, "static const llm_api_field_t  ") : NULL;
    p = p ? strchr(p, '{') : NULL;
    end = p ? strstr(p, "\n};") : NULL;

    if (end == NULL) {
        fz_die("no table in %s", file);
    }

    p++;

    while ((p = memchr(p, '{', (size_t) (end - p))) != NULL) {
        q = memchr(p, '}', (size_t) (end - p));

        if (q == NULL) {
            fz_die("a row of the table has no end");
        }

        fz_row(t, endpoints, p + 1, q);
        p = q;
    }

    free(source);
}


/* the tables of this folder */

void
fz_table_read(fz_table_t *t, const char *folder)
{
    char    file[256];
    size_t  i;

    static const struct {
        const char  *name;
        unsigned     endpoints;
    } files[] = {
        { "fields.c", FZ_CHAT | FZ_COMPL },
        { "endpoint_chat.c", FZ_CHAT },
        { "endpoint_completions.c", FZ_COMPL }
    };

    t->n_fields = 0;

    for (i = 0; i < fz_nelems(files); i++) {
        snprintf(file, sizeof(file), "%s/%s", folder, files[i].name);
        fz_table_add(t, file, files[i].endpoints);
    }

    if (t->n_fields < 55) {
        fz_die("%u parameters in %s, which is too few", t->n_fields, folder);
    }

    if (t->n_fields + fz_nelems(fz_params) > FZ_MAX_FIELDS) {
        fz_die("more than %u parameters", FZ_MAX_FIELDS);
    }

    memcpy(t->fields + t->n_fields, fz_params, sizeof(fz_params));
    t->n_fields += (unsigned) fz_nelems(fz_params);
}
