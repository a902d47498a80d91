/*
 * llm_model: the models of the configuration, and those that come and go.
 *
 *   ngx_http_llm_model.c    llm_model
 *   ngx_http_llm_model_file.c   its files and devices
 *   ngx_http_llm_models.c   the models by name
 *   ngx_http_llm_model_check.c  their files checked
 *   ngx_http_llm_added.c    those that come and go
 *   ngx_http_llm_sunset.c   models that are to go
 *   ngx_http_llm_warmup.c   what a model runs before it is ready
 */

#ifndef NGX_HTTP_LLM_MODEL_H
#define NGX_HTTP_LLM_MODEL_H


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "engine/api/api.h"
#include "engine/llm.h"


typedef struct ngx_http_llm_main_conf_s  ngx_http_llm_main_conf_t;


/* a date of the configuration, as it is written; len 0: none */

typedef struct {
    ngx_str_t                    text;
    int64_t                      time;          /* seconds since 1970 */
} ngx_http_llm_date_t;


/* a llm_model directive; memory is the cycle's pool */

typedef struct {
    ngx_str_t                    name;
    ngx_str_t                    path;          /* full, NUL-terminated */
    ngx_str_t                    template_path; /* likewise, may be empty */
    ngx_array_t                  aliases;       /* ngx_str_t */

    int32_t                      max_tokens;    /* -1: what is left */
    int32_t                      queue;         /* requests that may wait for
                                                   it; -1: llm_queue */
    int                          is_default;
    int                          required;      /* nginx does not start with a
                                                   file that is unusable */
    ngx_uint_t                   replaced;      /* llm_admin has put another
                                                   file into its place */

    ngx_msec_t                   probe;         /* how often; 0: never */
    ngx_uint_t                   probe_prompt;  /* tokens of its prompt, about;
                                                   0: one */

    ngx_str_t                    warmup;        /* full, NUL-terminated; len 0:
                                                   no file */
    ngx_str_t                    owner;
    ngx_http_llm_date_t          deprecated;
    ngx_http_llm_date_t          sunset;        /* from then on it is a 404 */
    ngx_str_t                    successor;     /* name of a model */

    ngx_str_t                    file;          /* of the directive */
    ngx_uint_t                   line;

    llm_engine_model_t           engine;        /* what the engine gets */
} ngx_http_llm_model_t;


/* ngx_http_llm_model.c */

char *ngx_http_llm_model(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
/* of one that has no parameters */
void ngx_http_llm_model_defaults(ngx_http_llm_model_t *model);


/* ngx_http_llm_added.c */

/* places for models that llm_admin adds, behind those of the configuration */
char *ngx_http_llm_add_places(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf);
void ngx_http_llm_added_warmup(ngx_http_llm_main_conf_t *mcf);
/* looks whether names have come or gone; in the event loop */
void ngx_http_llm_refresh_models(ngx_http_llm_main_conf_t *mcf);
/* the models as they are now, for one request; NULL: no memory */
const llm_api_model_t *ngx_http_llm_models_now(ngx_http_llm_main_conf_t *mcf,
    ngx_pool_t *pool);


/* ngx_http_llm_models.c */

/* index of the model with this name or alias, or -1 */
ngx_int_t ngx_http_llm_find_model(ngx_http_llm_main_conf_t *mcf,
    ngx_str_t *name);
/* of the configuration that a reload replaces; NULL: there is none */
ngx_http_llm_main_conf_t *ngx_http_llm_old_conf(ngx_cycle_t *cycle);
/* ngx_str_t and llm_str_t differ only in the sign of char */
llm_str_t ngx_http_llm_text(ngx_str_t *s);
/* logs why a model is not usable; NGX_ERROR: the configuration must not be
   taken, because the model is required or the running one serves it */
ngx_int_t ngx_http_llm_unusable(ngx_cycle_t *cycle,
    ngx_http_llm_model_t *model, const char *why);
/* llm_model with its name and its path swapped is an error; path is as it was
   written */
char *ngx_http_llm_check_swapped(ngx_conf_t *cf, ngx_http_llm_model_t *model,
    ngx_str_t *path);
/* ngx_http_llm_model_check.c */

/* fills mcf->api_models; broken files are named in the log */
char *ngx_http_llm_check_models(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf);

/* ngx_http_llm_warmup.c */

/* the file of the i'th model's warm-up, if it has one */
char *ngx_http_llm_read_warmup(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf,
    ngx_uint_t i);


/* ngx_http_llm_sunset.c */

/* a value of deprecated= or sunset=; NGX_ERROR: it is no date */
ngx_int_t ngx_http_llm_read_date(ngx_str_t *value, ngx_http_llm_date_t *date);
/* warns of what is over, or soon will be, and of successors that there are
   not; NGX_CONF_ERROR if dates contradict each other */
char *ngx_http_llm_check_sunset(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf);


#endif /* NGX_HTTP_LLM_MODEL_H */
