/*
 * llm_admin in JSON: requests, listings, results.  And its state, which
 * outlives a configuration and, as a file, nginx.
 *
 * A llm_admin_state_t is flat, so it can be copied and can lie in shared
 * memory.  It has no lock: the caller keeps others from changing it during a
 * call.
 */

#ifndef LLM_ADMIN_H
#define LLM_ADMIN_H

#include "engine/llm.h"

#define LLM_ADMIN_NAME     LLM_MAX_NAME /* most bytes of a name */
#define LLM_ADMIN_ALIASES  256
#define LLM_ADMIN_MODELS   (2 * LLM_MAX_MODELS)
#define LLM_ADMIN_BODY     16384        /* most bytes of a request's body */
#define LLM_ADMIN_BYTES    (8u << 20)   /* most bytes of a file of states */


/* ---- requests ---- */

typedef enum {
    LLM_ADMIN_LIST_MODELS = 0,
    LLM_ADMIN_MODEL,
    LLM_ADMIN_LOAD,
    LLM_ADMIN_UNLOAD,
    LLM_ADMIN_DRAIN,
    LLM_ADMIN_RESUME,
    LLM_ADMIN_LIST_ALIASES,
    LLM_ADMIN_ALIAS,
    LLM_ADMIN_USAGE
} llm_admin_what_t;

typedef struct {
    llm_admin_what_t   what;
    llm_str_t          name;            /* of the model, or of the alias */
    llm_str_t          whole;           /* of an action: all that follows
                                           "models/", which may be a model's
                                           name */
} llm_admin_route_t;

/* reads a path after the location's prefix, decoded: "models/demo/load";
   LLM_ERROR: no such path */
int llm_admin_route(llm_str_t path, llm_admin_route_t *to);
/* llama-server's form, for a POST: "models/load" and "models/unload", with the
   model in the body.  1: it is; the route is that action's, without a name */
int llm_admin_route_router(llm_admin_route_t *to);
/* the methods of this path: "GET, HEAD" */
const char *llm_admin_methods(llm_admin_what_t what);
/* the name of an action or a command: "load" */
const char *llm_admin_word(llm_admin_what_t what);
const char *llm_admin_kind(llm_command_kind_t kind);

/* the value of the one member that a body may have */
typedef struct {
    int                given;           /* the member is there */
    int                null;            /* the member is null */
    llm_str_t          value;           /* points into flat */
    llm_buf_t          flat;            /* owns value; the caller frees it,
                                           also after an error */
} llm_admin_body_t;

/* name: the only member allowed, a string or null; NULL: no member is allowed.
   An empty body has no member. */
int llm_admin_read_body(llm_admin_body_t *b, const char *text, size_t len,
    const char *name, llm_err_t *err);


/* ---- the state ---- */

typedef struct {
    uint32_t           len;
    char               data[LLM_ADMIN_NAME];
} llm_admin_name_t;

typedef struct {
    llm_admin_name_t   name;
    llm_admin_name_t   model;           /* model that the alias stands for */
} llm_admin_alias_t;

typedef struct {
    llm_admin_name_t   name;
    llm_override_t     o;               /* its file is below models=DIR */
} llm_admin_model_t;

typedef struct {
    uint32_t           n_aliases;
    uint32_t           n_models;
    llm_admin_alias_t  aliases[LLM_ADMIN_ALIASES];
    llm_admin_model_t  models[LLM_ADMIN_MODELS];
} llm_admin_state_t;

llm_str_t llm_admin_str(const llm_admin_name_t *name);
/* of up to LLM_ADMIN_NAME bytes */
void llm_admin_copy_name(llm_admin_name_t *to, llm_str_t from);

/* checks a name for an alias or for a model that is added */
int llm_admin_check_name(llm_str_t name, llm_err_t *err);
/* the same for a name that is new: it must have no marks that a reader does
   not see, which older names may have */
int llm_admin_check_new_name(llm_str_t name, llm_err_t *err);
/* ignores case; NULL: no such alias */
const llm_admin_alias_t *llm_admin_find_alias(const llm_admin_state_t *st,
    llm_str_t name);
/* an empty model removes the alias; LLM_ERROR: there is no room */
int llm_admin_set_alias(llm_admin_state_t *st, llm_str_t name,
    llm_str_t model, llm_err_t *err);
/* NULL: the state has nothing about this model */
const llm_admin_model_t *llm_admin_find_model(const llm_admin_state_t *st,
    llm_str_t name);
/* would setting o change the state? */
int llm_admin_is_news(const llm_admin_state_t *st, llm_str_t name,
    const llm_override_t *o);
void llm_admin_set_model(llm_admin_state_t *st, llm_str_t name,
    const llm_override_t *o);
void llm_admin_forget_model(llm_admin_state_t *st, llm_str_t name);

int llm_admin_same_override(const llm_override_t *a, const llm_override_t *b);
/* are the two states equal? */
int llm_admin_same_state(const llm_admin_state_t *a,
    const llm_admin_state_t *b);
/* repeats on ours the changes from base to theirs, except where ours has been
   changed, too: then ours counts.  Aliases may not fit. */
void llm_admin_merge(llm_admin_state_t *ours, const llm_admin_state_t *base,
    const llm_admin_state_t *theirs);

/* writes the state as a file (sealed.h); LLM_ERROR: no memory */
int llm_admin_write(const llm_admin_state_t *st, llm_buf_t *out);
/* LLM_ERROR and *err: it is no file of states, or torn; *st is empty then */
int llm_admin_read(llm_admin_state_t *st, const char *text, size_t len,
    llm_err_t *err);
int llm_admin_read_file(llm_admin_state_t *st, const char *path,
    llm_err_t *err);
/* reads a file's bytes, which the caller frees; LLM_ERROR and *err: it cannot
   be read */
int llm_admin_text(const char *path, llm_buf_t *text, llm_err_t *err);


/* ---- listings ---- */

/* what is known of a model besides what the zone has */
typedef struct {
    llm_str_t          name;            /* len 0: removed; the model is not
                                           shown */
    const char        *path;            /* file in the configuration; empty for
                                           a model that llm_admin added */
} llm_admin_known_t;

typedef struct {
    llm_zone_t               *zone;
    const llm_admin_known_t  *models;
    uint32_t                  n_models;
    const char               *dir;      /* models=DIR without links, or NULL;
                                           files below it are shown relative to
                                           it */
} llm_admin_conf_t;

/* the JSON object of one model; the list of all models */
int llm_admin_model_body(const llm_admin_conf_t *conf, uint32_t i,
    llm_buf_t *out);
int llm_admin_models_body(const llm_admin_conf_t *conf, llm_buf_t *out);
/* the JSON object of a removed model */
int llm_admin_removed_body(llm_str_t name, llm_buf_t *out);

/* the path relative to dir, or the whole path if it is not below dir; dir may
   be NULL */
const char *llm_admin_below(const char *dir, const char *path);

/* an alias of the configuration, of llm_admin, or of both */
typedef struct {
    llm_str_t          name;
    const llm_str_t   *rules;           /* values of llm_alias */
    uint32_t           n_rules;
    llm_str_t          model;           /* empty: rules decide for each
                                           request */
    int                changed;         /* 1 if just changed; the fields below
                                           are set only then */
    llm_str_t          previous;        /* model before; empty: the rules chose
                                           it */
    int                saved;           /* 1: the state is written to its file;
                                           0: writing failed; -1: there is no
                                           file */
} llm_admin_view_t;

/* adds one alias, as an item of a list or alone */
void llm_admin_add_alias(llm_buf_t *out, const llm_admin_view_t *a);

/* opens and closes a zone's object.  Between the two calls the caller adds its
   accounts, as llm_usage_add() writes them, with commas between them.  next:
   where to ask for more accounts, or empty. */
void llm_admin_begin_zone(llm_buf_t *out, llm_str_t zone);
void llm_admin_end_zone(llm_buf_t *out, llm_str_t next);

void llm_admin_begin_list(llm_buf_t *out);
void llm_admin_end_list(llm_buf_t *out);

#endif /* LLM_ADMIN_H */
