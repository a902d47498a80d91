/*
 * The parameters that there are, from the sources of the API's own tables and
 * from that of sampling: a new one is fuzzed without a line here.  A table
 * that cannot be read any more is an error, not an empty list.
 *
 * A row of an endpoint's own table stands before one of the shared ones that
 * has the same name.
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
    { #name, FZ_WRITES, FZ_##type, least, most },
#define LLM_ALIAS(name, of, type, least, most)                               \
    { #name, FZ_WRITES, FZ_##type, least, most },
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


/* endpoints that have a row of this name take no other one */

static unsigned
fz_left(const fz_table_t *t, const char *name, unsigned endpoints)
{
    unsigned  i;

    for (i = 0; i < t->n_fields; i++) {
        if (strcmp(t->fields[i].name, name) == 0) {
            endpoints &= ~t->fields[i].endpoints;
        }
    }

    return endpoints;
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

    endpoints = fz_left(t, words[0], endpoints);

    if (endpoints == 0) {
        return;
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
fz_table_add(fz_table_t *t, const char *file, const char *table,
    unsigned endpoints)
{
    char         head[128], *source;
    const char  *p, *q, *end;

    source = fz_file(file);
    snprintf(head, sizeof(head), "static const llm_api_field_t  %s[]", table);

    p = source ? strstr(source, head) : NULL;
    p = p ? strchr(p, '{') : NULL;
    end = p ? strstr(p, "\n};") : NULL;

    if (end == NULL) {
        fz_die("no table %s in %s", table, file);
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


static const struct {
    int          endpoint;
    const char  *path;
} fz_endpoints[FZ_ENDPOINTS] = {
    { FZ_CHAT,        "chat/completions" },
    { FZ_COMPL,       "completions" },
    { FZ_MESSAGES,    "messages" },
    { FZ_COUNT,       "messages/count_tokens" },
    { FZ_RESPONSES,   "responses" },
    { FZ_EMBED,       "embeddings" },
    { FZ_RERANK,      "rerank" },
    { FZ_SCORE,       "score" },
    { FZ_TOKENIZE,    "tokenize" },
    { FZ_DETOKENIZE,  "detokenize" },
    { FZ_TEMPLATE,    "apply-template" },
    { FZ_INFILL,      "infill" }
};


int
fz_endpoint(unsigned i, const char **path)
{
    *path = fz_endpoints[i].path;

    return fz_endpoints[i].endpoint;
}


/* the tables of this folder */

void
fz_table_read(fz_table_t *t, const char *folder)
{
    char               file[256];
    size_t             i;
    fz_field_t         f;

    static const struct {
        const char  *file;
        const char  *table;
        unsigned     endpoints;
    } tables[] = {
        { "endpoint_messages.c", "llm_api_messages_rows",
          FZ_MESSAGES | FZ_COUNT },
        { "endpoint_responses.c", "llm_api_responses_rows", FZ_RESPONSES },
        { "draft.c", "llm_api_draft_rows",
          FZ_MESSAGES | FZ_COUNT | FZ_RESPONSES },
        { "endpoint_embeddings.c", "llm_api_embedding_rows", FZ_EMBED },
        { "endpoint_rerank.c", "llm_api_rerank_rows", FZ_RERANK },
        { "endpoint_rerank.c", "llm_api_score_rows", FZ_SCORE },
        { "endpoint_tokenize.c", "llm_api_tokenize_rows", FZ_TOKENIZE },
        { "endpoint_tokenize.c", "llm_api_detokenize_rows", FZ_DETOKENIZE },
        { "endpoint_infill.c", "llm_api_infill_rows", FZ_INFILL },
        { "endpoint_chat.c", "llm_api_chat_rows", FZ_CHAT | FZ_TEMPLATE },
        { "endpoint_completions.c", "llm_api_completion_rows", FZ_COMPL },
        { "fields.c", "llm_api_shared_rows", FZ_WRITES }
    };

    t->n_fields = 0;

    for (i = 0; i < fz_nelems(tables); i++) {
        snprintf(file, sizeof(file), "%s/%s", folder, tables[i].file);
        fz_table_add(t, file, tables[i].table, tables[i].endpoints);
    }

    if (t->n_fields < 120) {
        fz_die("%u parameters in %s, which is too few", t->n_fields, folder);
    }

    for (i = 0; i < fz_nelems(fz_params); i++) {
        f = fz_params[i];
        f.endpoints = fz_left(t, f.name, f.endpoints);

        if (t->n_fields == FZ_MAX_FIELDS) {
            fz_die("more than %u parameters", FZ_MAX_FIELDS);
        }

        if (f.endpoints) {
            t->fields[t->n_fields++] = f;
        }
    }
}
