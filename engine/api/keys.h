/*
 * API keys: a file with a JSON object on each line becomes an immutable table,
 * in which a client's secret is looked up by its SHA-256.
 *
 *   {"id": "ann-1", "sha256": "64 hexadecimal digits", "tenant": "ann",
 *    "models": ["demo", "gpt-*"], "scopes": ["generate", "models"],
 *    "not_before": "2026-01-01", "expires": "2026-12-31T12:00:00Z",
 *    "plan": "gold", "tpm": 60000}
 *
 * id and sha256 are required, and must be unique in the file.  Without
 * "tenant" the key is a tenant of its own; without "models" it is valid for
 * all models, without "scopes" for all scopes but "admin".  Times are seconds
 * since 1970, or dates, in UTC unless they have an offset.  Other members are
 * the operator's own.  Two names that differ only in case are refused, because
 * variables ignore case.  No member may be given twice.  Empty lines and lines
 * that begin with "#" are skipped; a file that has only empty lines is
 * refused, because it may be in the middle of being written.
 *
 * A table never changes, so it needs no locks; its creator frees it.  A key is
 * one struct and one block of text: a request keeps a copy, so a table can be
 * freed while requests still run.
 */

#ifndef LLM_KEYS_H
#define LLM_KEYS_H

#include "engine/base/base.h"

#define LLM_KEY_SECRET   512            /* most bytes of a secret */
#define LLM_KEY_LINE     16384          /* most bytes of a line */
#define LLM_KEYS_BYTES   (256u << 20)   /* most bytes of a file */
#define LLM_KEYS_MAX     (1u << 20)

/* what a key may be used for; key_line.c has the names */
#define LLM_SCOPE_GENERATE   1u
#define LLM_SCOPE_EMBED      2u
#define LLM_SCOPE_TOKENIZE   4u
#define LLM_SCOPE_MODELS     8u
#define LLM_SCOPE_MONITOR   16u         /* metrics, health */
#define LLM_SCOPE_OTHER     32u         /* locations of other modules */
#define LLM_SCOPE_ADMIN     64u
#define LLM_SCOPE_USUAL     (LLM_SCOPE_ADMIN - 1)

typedef struct {
    unsigned char  digest[32];
    int64_t        not_before;          /* INT64_MIN: always */
    int64_t        expires;             /* the first second in which it is not
                                           valid; INT64_MAX: never */
    uint32_t       scopes;
    uint32_t       any_model;
    uint32_t       models;              /* offset of the models in text */
    uint32_t       len;                 /* bytes of text */
    const char    *text;                /* the members' names and values, then
                                           the models; each NUL-terminated */
} llm_key_t;

typedef struct llm_keys_s  llm_keys_t;

typedef struct {
    uint64_t       device;
    uint64_t       inode;
    uint64_t       size;
    int64_t        modified[2];         /* seconds, nanoseconds */
    int64_t        changed[2];
} llm_keys_id_t;

/* NULL and *err, which names the line, if the data is wrong */
llm_keys_t *llm_keys_parse(const char *data, size_t len, llm_err_t *err);
/* the same for a file; *err names the file.  *id, unless NULL, gets the file's
   identity, or keeps its value if the file cannot be opened */
llm_keys_t *llm_keys_read(const char *path, llm_keys_id_t *id,
    llm_err_t *err);
void llm_keys_free(llm_keys_t *t);
/* seconds since 1970 of "2026-12-31", "2026-12-31T12:00:00Z" or
   "2026-12-31T12:00:00+01:00"; LLM_ERROR: it is none of these */
int llm_key_read_time(llm_str_t s, int64_t *to);
/* the identity of the file at a path, to notice when it is replaced; zeros if
   there is none */
void llm_keys_which(const char *path, llm_keys_id_t *id);
uint32_t llm_keys_count(const llm_keys_t *t);
/* for a log: "; came: bob, eve; went: ann and 3 more", the ids of keys that
   are in only one of the two tables, or "".  A key whose secret has changed is
   listed as come and gone.  If old is NULL nothing is listed */
void llm_keys_changes(const llm_keys_t *old, const llm_keys_t *now, char *out,
    size_t size);

/* the key of a secret, or NULL; the time taken does not depend on how much of
   a digest is right */
const llm_key_t *llm_keys_find(const llm_keys_t *t, const char *secret,
    size_t len);

/* -1: it is not valid yet; 0: it is valid; 1: it has expired */
int llm_key_age(const llm_key_t *k, int64_t now);
/* the value of a member, ignoring the case of its name, or NULL; strings
   without quotes, other values as JSON */
const char *llm_key_member(const llm_key_t *k, const char *name, size_t len);
/* does one of the key's models match this name?  "*" matches any rest */
int llm_key_names_model(const llm_key_t *k, llm_str_t name);

/* masks a secret so that a person can recognise it; size is at least
   LLM_KEY_MASK */
#define LLM_KEY_MASK  24
void llm_key_mask(char *out, size_t size, const char *secret, size_t len);

/* the bit of a scope's name, 0 if there is none; and the name of a bit */
uint32_t llm_scope_bit(const char *name, size_t len);
const char *llm_scope_name(uint32_t bit);

#endif /* LLM_KEYS_H */
