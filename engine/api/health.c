/*
 * The body of /health: the state of each model of the location, and whether
 * requests can be served, by the location's rule.  If some models serve and
 * others do not, and the rule allows that, the status is "degraded".  A model
 * that a command has told to drain, or has unloaded, does not serve.  A model
 * that was idle and is being loaded for a request does not count as loading:
 * its requests wait.
 */

#include "engine/api/api_internal.h"


/* a model's state in a word */

static const char *
llm_api_health_word(llm_zone_t *z, const llm_model_status_t *st,
    const char *ill)
{
    if (llm_zone_epoch(z) == 0) {
        return "loading";
    }

    if (!llm_zone_alive(z)) {
        return "error";
    }

    switch (st->state) {

    case LLM_MODEL_FAILED:
        return "error";

    case LLM_MODEL_STOPPED:
        return "stopped";

    default:
        break;
    }

    if (st->draining) {
        return "draining";
    }

    switch (st->state) {

    case LLM_MODEL_LOADING:
        return "loading";

    case LLM_MODEL_READY:
        return ill ? "error" : "ok";

    default:
        /* an idle model: the next request loads it */
        return "ok";
    }
}


static void
llm_api_add_health(llm_buf_t *out, llm_zone_t *z, const llm_api_model_t *m,
    const llm_model_status_t *st, const char *word, const char *ill)
{
    const char  *reason;

    (void) llm_buf_adds(out, "{\"id\":");
    (void) llm_json_add_string(out, m->name.data, m->name.len);
    (void) llm_buf_addf(out, ",\"status\":\"%s\",\"loaded\":%s", word,
                        (*word == 'o' || *word == 'd')
                        && st->state == LLM_MODEL_READY ? "true" : "false");

    reason = NULL;

    if (*word == 'e') {
        reason = !llm_zone_alive(z) ? "the engine does not answer"
                 : st->state == LLM_MODEL_READY ? ill : st->error;

    } else if (*word == 'l') {
        reason = llm_zone_epoch(z) == 0 ? "the engine is starting"
                 : st->warming ? "the model warms up"
                 : "the model is being loaded";
        (void) llm_buf_addf(out, ",\"progress\":%u.%03u",
                            st->permille / 1000, st->permille % 1000);

    } else if (*word == 'd') {
        reason = "the model takes no new requests";

    } else if (*word == 's') {
        reason = "the model has been unloaded";
    }

    if (reason) {
        (void) llm_buf_adds(out, ",\"reason\":");
        (void) llm_json_add_string(out, reason, strlen(reason));
    }

    (void) llm_buf_adds(out, ",\"device\":");
    (void) llm_json_add_string(out, st->device, strlen(st->device));
    (void) llm_buf_addf(out, ",\"ctx\":%u,\"running\":%u,\"waiting\":%u}",
                        st->ctx, st->running, st->waiting);
}


/* numbers of models by state */
typedef struct {
    uint32_t     n_ok;                  /* includes models that are being
                                           loaded for a request */
    uint32_t     n_error;
    uint32_t     n_loading;
    const char  *out;                   /* state of a model that a command has
                                           taken out: "draining" if there is
                                           one, else "stopped"; NULL: there is
                                           none */
} llm_api_health_sum_t;


static void
llm_api_health_count(llm_api_health_sum_t *sum, const char *word,
    const llm_model_status_t *st)
{
    switch (*word) {

    case 'o':
        sum->n_ok++;
        return;

    case 'e':
        sum->n_error++;
        return;

    case 'l':
        sum->n_ok += st->wanted != 0;
        sum->n_loading += !st->wanted;
        return;

    default:
        sum->out = sum->out && *sum->out == 'd' ? sum->out : word;
    }
}


/* why the location is not healthy: no model can serve, or not all where the
   rule wants all */

static const char *
llm_api_health_bad(const llm_api_health_sum_t *sum)
{
    return sum->n_error ? "error" : sum->n_loading ? "loading" : sum->out;
}


/* the state of the whole location in one word */

static const char *
llm_api_health_all(llm_zone_t *z, const llm_api_health_t *h,
    const llm_api_health_sum_t *sum)
{
    if (h->rule == LLM_HEALTH_LIVE) {
        return llm_zone_epoch(z) == 0 || llm_zone_alive(z) ? "ok" : "error";
    }

    if (h->draining) {
        return "draining";
    }

    if (sum->n_error + sum->n_loading == 0 && sum->out == NULL) {
        return "ok";
    }

    switch (h->rule) {

    case LLM_HEALTH_ALL:
        return llm_api_health_bad(sum);

    case LLM_HEALTH_ANY:
        return sum->n_ok ? "degraded"
               : sum->n_loading ? "loading" : llm_api_health_bad(sum);

    default:
        return sum->n_loading ? "loading"
               : sum->n_ok ? "degraded" : llm_api_health_bad(sum);
    }
}


int
llm_api_health_body(llm_zone_t *z, const llm_api_conf_t *conf,
    const llm_api_health_t *h, llm_buf_t *out, int *ready)
{
    uint32_t              i;
    llm_buf_t             models;
    const char           *word, *all, *ill;
    llm_model_status_t    st;
    llm_api_health_sum_t  sum;

    memset(&sum, 0, sizeof(sum));
    llm_buf_init(&models, 0);

    for (i = 0; i < conf->n_models; i++) {
        if (!llm_api_allowed(conf, i)) {
            continue;
        }

        llm_zone_status(z, i, &st);
        ill = h->ill ? h->ill[i] : NULL;
        word = llm_api_health_word(z, &st, ill);

        llm_api_health_count(&sum, word, &st);

        if (models.len) {
            (void) llm_buf_addc(&models, ',');
        }

        llm_api_add_health(&models, z, &conf->models[i], &st, word, ill);
    }

    all = llm_api_health_all(z, h, &sum);

    *ready = strcmp(all, "ok") == 0 || strcmp(all, "degraded") == 0;

    (void) llm_buf_addf(out, "{\"status\":\"%s\",\"version\":\"%s\","
                        "\"models\":[", all, LLM_VERSION);

    if (models.failed) {
        out->failed = 1;
    }

    (void) llm_buf_add(out, models.data, models.len);
    llm_buf_free(&models);

    return llm_buf_adds(out, "]}");
}
