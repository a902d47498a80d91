/*
 * What reads and checks the configuration: directives that the module's
 * table calls, and what they share.
 * ngx_http_llm_module.h includes it, behind the types that are used here.
 */

#ifndef NGX_HTTP_LLM_CONF_H
#define NGX_HTTP_LLM_CONF_H


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
/* Deprecation, Sunset and Link, if the request's model has them */
extern ngx_http_llm_stage_t  ngx_http_llm_sunset_stage;

/* ngx_http_llm_param.c */

/* an error if a parameter, from the one of this number on, is there twice */
char *ngx_http_llm_once(ngx_conf_t *cf, ngx_uint_t first);
/* for messages: the parameter that s is the end of */
ngx_str_t *ngx_http_llm_whole(ngx_conf_t *cf, ngx_str_t *s);
/* what stands behind the parameter's name, which has so many bytes */
char *ngx_http_llm_param_time(ngx_conf_t *cf, ngx_str_t *value, size_t name,
    ngx_msec_t *ms);
char *ngx_http_llm_param_size(ngx_conf_t *cf, ngx_str_t *value, size_t name,
    size_t min, size_t max, size_t *size);
/* the most of shared memory, which nginx maps without saying for what */
size_t ngx_http_llm_machine_memory(void);
/* may it be a name? */
ngx_uint_t ngx_http_llm_is_text(ngx_str_t *s);
/* post handlers; of check_size() with a ngx_http_llm_size_min_t */
char *ngx_http_llm_check_size(ngx_conf_t *cf, void *post, void *data);
char *ngx_http_llm_check_time(ngx_conf_t *cf, void *post, void *data);

/* ngx_http_llm_conf.c */

char *ngx_http_llm_queue(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_llm_tenant(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_llm_priority(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
/* NGX_ERROR: it is none; empty it is 0 */
ngx_int_t ngx_http_llm_read_priority(ngx_str_t *value, ngx_int_t *priority);
/* of a tenant that has a name */
uint64_t ngx_http_llm_hash_tenant(ngx_str_t *tenant);
/* registers a location that needs models */
char *ngx_http_llm_use(ngx_conf_t *cf, ngx_http_llm_loc_conf_t *llcf,
    const ngx_http_llm_serves_t *serves);
/* names to indices, once the whole configuration is read */
char *ngx_http_llm_check_uses(ngx_conf_t *cf, ngx_http_llm_main_conf_t *mcf);

/* ngx_http_llm_uri_check.c */

/* what a URI leads to in a server */

typedef enum {
    NGX_HTTP_LLM_LEADS_MAYBE = 0,               /* it cannot be told */
    NGX_HTTP_LLM_LEADS_NOWHERE,
    NGX_HTTP_LLM_LEADS_MAIN,                    /* to a location of ours that
                                                   serves no subrequests */
    NGX_HTTP_LLM_LEADS_OURS                     /* to another one of ours */
} ngx_http_llm_leads_e;

ngx_http_llm_leads_e ngx_http_llm_leads(ngx_conf_t *cf,
    ngx_http_core_srv_conf_t *cscf, ngx_str_t *uri);
/* may the rewrite module change URIs there? */
ngx_uint_t ngx_http_llm_rewrites(ngx_conf_t *cf, void **loc_conf);
/* a warning, in the server that is being merged */
void ngx_http_llm_check_mirror(ngx_conf_t *cf, ngx_http_llm_loc_conf_t *prev,
    ngx_http_llm_loc_conf_t *conf);

/* ngx_http_llm_perms.c */

/* tells of files that the workers' user cannot read, or write; NGX_ERROR: a
   model is not usable because of that, see ngx_http_llm_unusable() */
ngx_int_t ngx_http_llm_check_access(ngx_cycle_t *cycle);

/* ngx_http_llm_amount.c */

/* plain: a number; else it may have "/s", "/m" or "/h" behind it */
char *ngx_http_llm_set_amount(ngx_conf_t *cf, ngx_http_llm_amount_t *a,
    ngx_uint_t plain, ngx_str_t *s);
/* what it is for a request; NGX_DECLINED: there is none, or its value is
   empty; NGX_ERROR: no memory, or it is no number, which is logged */
ngx_int_t ngx_http_llm_amount(ngx_http_request_t *r, ngx_http_llm_amount_t *a,
    ngx_uint_t plain, llm_rate_t *rate);
/* llm_max_tokens, and what it is for a request; NGX_ERROR: see err */
char *ngx_http_llm_max_tokens(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
ngx_int_t ngx_http_llm_find_most(ngx_http_llm_ctx_t *ctx, llm_err_t *err);

/* ngx_http_llm_alias.c */

char *ngx_http_llm_alias(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);
char *ngx_http_llm_merge_aliases(ngx_conf_t *cf,
    ngx_http_llm_loc_conf_t *prev, ngx_http_llm_loc_conf_t *conf);
/* as requests name models: without regard to case */
ngx_uint_t ngx_http_llm_same_name(ngx_str_t *a, ngx_str_t *b);
/* the model that has this name or alias=, in any case; -1: none */
ngx_int_t ngx_http_llm_pinned(ngx_http_llm_main_conf_t *mcf,
    ngx_str_t *name);
/* once all models are known */
char *ngx_http_llm_check_aliases(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf);
/* those of the location alone lead to its models */
char *ngx_http_llm_check_own_aliases(ngx_conf_t *cf,
    ngx_http_llm_main_conf_t *mcf, ngx_http_llm_loc_conf_t *llcf);
/* the one of this name; NULL: none */
ngx_http_llm_alias_t *ngx_http_llm_find_alias(ngx_array_t *aliases,
    ngx_str_t *name);

/* ngx_http_llm_defaults.c */

char *ngx_http_llm_defaults(ngx_conf_t *cf, ngx_command_t *cmd, void *conf);


#endif /* NGX_HTTP_LLM_CONF_H */
