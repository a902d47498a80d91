/*
 * llm_model: the models of the configuration, and those that llm_admin adds.
 *
 *   ngx_http_llm_model.c        llm_model
 *   ngx_http_llm_model_file.c   parameters that name files and devices
 *   ngx_http_llm_models.c       models by name
 *   ngx_http_llm_model_check.c  checks of files, dates and warm-ups
 *   ngx_http_llm_added.c        models that llm_admin adds
 *   ngx_http_llm_sunset.c       deprecated=, sunset=, successor=
 *   ngx_http_llm_warmup.c       warmup=FILE
 */

#ifndef NGX_HTTP_LLM_MODEL_H
#define NGX_HTTP_LLM_MODEL_H


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "engine/api/api.h"
#include "engine/llm.h"


typedef struct ngx_http_llm_main_conf_s  ngx_http_llm_main_conf_t;


/* a date of the configuration */

typedef struct {
    ngx_str_t                    text;          /* as written; len 0: none */
    int64_t                      time;          /* seconds since 1970 */
} ngx_http_llm_date_t;


/* a llm_model directive, in the cycle's pool */

typedef struct {
    ngx_str_t                    name;
    ngx_str_t                    path;          /* full, NUL-terminated */
    ngx_str_t                    template_path; /* full, NUL-terminated; len 0:
                                                   no file */
    ngx_str_t                    draft_path;    /* the same */
    ngx_str_t                    mmproj;        /* the same */
    ngx_array_t                  aliases;       /* ngx_str_t */

    int32_t                      max_tokens;    /* default of requests; -1:
                                                   what the context leaves */
    int32_t                      queue;         /* most requests that wait for
                                                   the model; -1: llm_queue */
    int                          is_default;
    int                          required;      /* 1: nginx does not start if
                                                   the file is unusable */
    ngx_uint_t                   replaced;      /* 1: llm_admin has set another
                                                   file */

    ngx_msec_t                   probe;         /* milliseconds between two
                                                   probes; 0: no probes */
    ngx_uint_t                   probe_prompt;  /* approximate tokens of the
                                                   probe's prompt; 0: one */

    ngx_str_t                    warmup;        /* full, NUL-terminated; len 0:
                                                   no file */
    ngx_str_t                    owner;
    ngx_http_llm_date_t          deprecated;
    ngx_http_llm_date_t          sunset;        /* from then on requests get
                                                   404 */
    ngx_str_t                    successor;     /* name of a model */

    ngx_str_t                    file;          /* where the directive is */
    ngx_uint_t                   line;

    llm_engine_model_t           engine;        /* what the engine gets */
} ngx_http_llm_model_t;


/* ngx_http_llm_model.c */

char *ngx_http_llm_model(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
/* sets the values of a model without parameters */
void ngx_http_llm_model_defaults(ngx_http_llm_model_t *model);


/* ngx_http_llm_added.c */

/* appends places for models that llm_admin adds to the models of the
   configuration */
char *ngx_http_llm_add_places(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf);
/* gives added models the warm-up of their `like=` model */
void ngx_http_llm_added_warmup(ngx_http_llm_main_conf_t *mcf);
/* reads the names of added models if they have changed; in the event loop */
void ngx_http_llm_refresh_models(ngx_http_llm_main_conf_t *mcf);
/* the models as they are now, for one request; NULL: no memory */
const llm_api_model_t *ngx_http_llm_models_now(ngx_http_llm_main_conf_t *mcf,
    ngx_pool_t *pool);


/* ngx_http_llm_models.c */

/* index of the model with this name or alias, or -1 */
ngx_int_t ngx_http_llm_find_model(ngx_http_llm_main_conf_t *mcf,
    ngx_str_t *name);
/* the main configuration that a reload replaces; NULL: none */
ngx_http_llm_main_conf_t *ngx_http_llm_old_conf(ngx_cycle_t *cycle);
/* ngx_str_t and llm_str_t differ only in the sign of char */
llm_str_t ngx_http_llm_text(ngx_str_t *s);
/* logs why a model is not usable; NGX_ERROR: the configuration is refused,
   because the model is required or the running configuration serves it */
ngx_int_t ngx_http_llm_unusable(ngx_cycle_t *cycle,
    ngx_http_llm_model_t *model, const char *why);
/* error if the name and the path of llm_model are swapped; path: as written */
char *ngx_http_llm_check_swapped(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_str_t *path);
/* ngx_http_llm_model_check.c */

/* fills mcf->api_models, and logs models that are not usable */
char *ngx_http_llm_check_models(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf);

/* ngx_http_llm_warmup.c */

/* reads the file of warmup= of models[i], if it has one */
char *ngx_http_llm_read_warmup(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf,
    ngx_uint_t i);


/* ngx_http_llm_sunset.c */

/* reads the value of deprecated= or sunset=; NGX_ERROR: not a date */
ngx_int_t ngx_http_llm_read_date(ngx_str_t *value, ngx_http_llm_date_t *date);
/* warns about models whose sunset is near or over, and about successors that
   do not exist; NGX_CONF_ERROR if a model succeeds itself, or its sunset is
   before its deprecation */
char *ngx_http_llm_check_sunset(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf);


#endif /* NGX_HTTP_LLM_MODEL_H */
