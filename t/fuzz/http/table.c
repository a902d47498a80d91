/*
 * The parameters that there are, from the source of the API's own table: a
 * new one is fuzzed without a line here.  A table that cannot be read any
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


static const char  *fz_types[] = {
    "F_BOOL", "F_INT", "F_NUMBER", "F_ABOVE", "F_STRING", "F_ARRAY",
    "F_OBJECT", "F_ANY", "F_REQUIRED", "F_REFUSED"
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


/* a number, or the name of one that the source defines */

static double
fz_bound(const char *source, const char *word)
{
    char        *end, what[96];
    double       v;
    const char  *p;

    v = strtod(word, &end);

    if (end != word) {
        return v;
    }

    snprintf(what, sizeof(what), "#define %s ", word);

    p = strstr(source, what);
    if (p == NULL) {
        return FZ_UNKNOWN;
    }

    p += strlen(what);
    v = strtod(p, &end);

    return end == p ? FZ_UNKNOWN : v;
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
fz_row(fz_table_t *t, const char *source, const char *p, const char *end)
{
    char         words[8][64];
    size_t       i;
    unsigned     n;
    fz_field_t  *f;

    n = fz_words(p, end, words);

    if (n < 6 || t->n_fields == FZ_MAX_FIELDS) {
        fz_die("a row of the table is not understood: %.*s",
               (int) (end - p), p);
    }

    f = &t->fields[t->n_fields++];
    strcpy(f->name, words[0]);

    f->endpoints = strcmp(words[1], "CHAT") == 0 ? FZ_CHAT
                   : strcmp(words[1], "COMPL") == 0 ? FZ_COMPL
                   : FZ_CHAT | FZ_COMPL;

    for (i = 0; i < fz_nelems(fz_types); i++) {
        if (strcmp(words[2], fz_types[i]) == 0) {
            f->type = (fz_type_t) i;
            break;
        }
    }

    if (i == fz_nelems(fz_types)) {
        fz_die("a type of the table is not known: %s", words[2]);
    }

    f->min = fz_bound(source, words[4]);
    f->max = fz_bound(source, words[5]);

    if (f->min == FZ_UNKNOWN) {
        f->min = -FZ_UNKNOWN;
    }
}


void
fz_table_read(fz_table_t *t, const char *file)
{
    char        *source;
    const char  *p, *q, *end;

    source = fz_file(file);
    t->n_fields = 0;

    p = source ? strstr(source, "llm_api_fields[] = {") : NULL;
    end = p ? strstr(p, "\n};") : NULL;

    if (end == NULL) {
        fz_die("no table in %s", file);
    }

    p = strchr(p, '{') + 1;

    while ((p = memchr(p, '{', (size_t) (end - p))) != NULL) {
        q = memchr(p, '}', (size_t) (end - p));

        if (q == NULL) {
            fz_die("a row of the table has no end");
        }

        fz_row(t, source, p + 1, q);
        p = q;
    }

    if (t->n_fields < 30) {
        fz_die("%u parameters in %s, which is too few", t->n_fields, file);
    }

    free(source);
}
