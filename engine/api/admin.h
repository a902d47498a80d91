/*
 * llm_admin in JSON: what is asked, what there is, what came of it.  And what
 * it leaves behind, which outlives a configuration and, as a file, nginx.
 *
 * A llm_admin_state_t is flat, so that it can be copied and lie in shared
 * memory; whoever has it sees to it that nobody changes it meanwhile.
 */

#ifndef LLM_ADMIN_H
#define LLM_ADMIN_H

#include "engine/llm.h"

#define LLM_ADMIN_NAME     LLM_MAX_NAME /* most bytes of a name */
#define LLM_ADMIN_ALIASES  256
#define LLM_ADMIN_MODELS   (2 * LLM_MAX_MODELS)
#define LLM_ADMIN_BODY     16384        /* most bytes of a request's body */
#define LLM_ADMIN_BYTES    (8u << 20)   /* and of a file of states */


/* ---- what is asked ---- */

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
    llm_str_t          whole;           /* of an action: what is behind
                                           "models/", which may be a model's
                                           name */
} llm_admin_route_t;

/* of a path behind the location's prefix, decoded: "models/demo/load";
   LLM_ERROR: there is nothing at it */
int llm_admin_route(llm_str_t path, llm_admin_route_t *to);
/* "GET, HEAD" */
const char *llm_admin_methods(llm_admin_what_t what);
/* "load"; and of a command */
const char *llm_admin_word(llm_admin_what_t what);
const char *llm_admin_kind(llm_command_kind_t kind);

/* the member that a body may have, and no other */
typedef struct {
    int                given;           /* it is there ... */
    int                null;            /* ... and null */
    llm_str_t          value;           /* points into flat */
    llm_buf_t          flat;            /* to be freed, whatever came of it */
} llm_admin_body_t;

/* name: the member, a string or null; NULL: there is none.  An empty body has
   none, either */
int llm_admin_read_body(llm_admin_body_t *b, const char *text, size_t len,
    const char *name, llm_err_t *err);


/* ---- what it leaves behind ---- */

typedef struct {
    uint32_t           len;
    char               data[LLM_ADMIN_NAME];
} llm_admin_name_t;

typedef struct {
    llm_admin_name_t   name;
    llm_admin_name_t   model;           /* where it leads */
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

/* may it be the name of an alias, or of a model that is added? */
int llm_admin_check_name(llm_str_t name, llm_err_t *err);
/* and of one that there was not before?  Older names may have marks that a
   reader does not see */
int llm_admin_check_new_name(llm_str_t name, llm_err_t *err);
/* NULL: none; names are the same in any case */
const llm_admin_alias_t *llm_admin_find_alias(const llm_admin_state_t *st,
    llm_str_t name);
/* an empty model takes it back; LLM_ERROR: there is no room */
int llm_admin_set_alias(llm_admin_state_t *st, llm_str_t name,
    llm_str_t model, llm_err_t *err);
/* NULL: nothing is known of it */
const llm_admin_model_t *llm_admin_find_model(const llm_admin_state_t *st,
    llm_str_t name);
/* would that be new? */
int llm_admin_is_news(const llm_admin_state_t *st, llm_str_t name,
    const llm_override_t *o);
void llm_admin_set_model(llm_admin_state_t *st, llm_str_t name,
    const llm_override_t *o);
void llm_admin_forget_model(llm_admin_state_t *st, llm_str_t name);

int llm_admin_same_override(const llm_override_t *a, const llm_override_t *b);
/* do they say the same? */
int llm_admin_same_state(const llm_admin_state_t *a,
    const llm_admin_state_t *b);
/* what another has made of base is done to ours, but where ours has been
   changed, too: what is set here counts then.  For aliases there may be no
   room */
void llm_admin_merge(llm_admin_state_t *ours, const llm_admin_state_t *base,
    const llm_admin_state_t *theirs);

/* as sealed.h says; LLM_ERROR: no memory */
int llm_admin_write(const llm_admin_state_t *st, llm_buf_t *out);
/* LLM_ERROR and *err: it is none, or torn; *st is empty then */
int llm_admin_read(llm_admin_state_t *st, const char *text, size_t len,
    llm_err_t *err);
int llm_admin_read_file(llm_admin_state_t *st, const char *path,
    llm_err_t *err);
/* the bytes of a file, to be freed; LLM_ERROR and *err: it cannot be read */
int llm_admin_text(const char *path, llm_buf_t *text, llm_err_t *err);


/* ---- what there is ---- */

/* what is known of a model beside the zone */
typedef struct {
    llm_str_t          name;            /* len 0: there is none now, and it is
                                           not shown */
    const char        *path;            /* the configuration's; empty: it was
                                           added */
} llm_admin_known_t;

typedef struct {
    llm_zone_t               *zone;
    const llm_admin_known_t  *models;
    uint32_t                  n_models;
    const char               *dir;      /* models=DIR without links, or NULL:
                                           files below it are named from
                                           there */
} llm_admin_conf_t;

/* an object of a model; the whole list */
int llm_admin_model_body(const llm_admin_conf_t *conf, uint32_t i,
    llm_buf_t *out);
int llm_admin_models_body(const llm_admin_conf_t *conf, llm_buf_t *out);
/* one that was removed */
int llm_admin_removed_body(llm_str_t name, llm_buf_t *out);

/* the part of the path behind dir, or the path; dir may be NULL */
const char *llm_admin_below(const char *dir, const char *path);

/* an alias of the configuration, of llm_admin, or of both */
typedef struct {
    llm_str_t          name;
    const llm_str_t   *rules;           /* values of llm_alias */
    uint32_t           n_rules;
    llm_str_t          model;           /* empty: the rules say where to */
    int                changed;         /* just now; then, too: */
    llm_str_t          previous;        /* likewise */
    int                saved;           /* 1: it outlives nginx; 0: it could not
                                           be written; -1: there is no file */
} llm_admin_view_t;

/* one more; in a list or alone */
void llm_admin_add_alias(llm_buf_t *out, const llm_admin_view_t *a);

/* one more zone: its accounts, as llm_usage_add() writes them with commas
   between them, come between these; next: where more of them are, or empty */
void llm_admin_begin_zone(llm_buf_t *out, llm_str_t zone);
void llm_admin_end_zone(llm_buf_t *out, llm_str_t next);

void llm_admin_begin_list(llm_buf_t *out);
void llm_admin_end_list(llm_buf_t *out);

#endif /* LLM_ADMIN_H */
