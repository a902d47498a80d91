/*
 * Why token quotas refuse a request, and for how long.
 */

#include "http/access/ngx_http_llm_quota.h"
#include "http/reply/ngx_http_llm_reply.h"


/* what an account is charged in */

static const char *
ngx_http_llm_quota_of(ngx_http_llm_refusal_t *no)
{
    return no->share->limit->quota->audio ? "seconds of audio" : "tokens";
}


/* after "no more" */

static const char *
ngx_http_llm_quota_what(ngx_http_llm_refusal_t *no)
{
    switch (no->what) {

    case NGX_HTTP_LLM_SHORT_TOKENS:
        return ngx_http_llm_quota_of(no);

    case NGX_HTTP_LLM_SHORT_DAY:
        return no->share->limit->quota->audio ? "seconds of the day's audio"
                                              : "tokens of the day";

    case NGX_HTTP_LLM_SHORT_REQUESTS:
        return "requests";

    case NGX_HTTP_LLM_SHORT_STREAMS:
        return "requests at a time";

    default:
        return "memory";
    }
}


ngx_uint_t
ngx_http_llm_quota_enforced(ngx_http_request_t *r, ngx_http_llm_refusal_t *no)
{
    ngx_uint_t             dry, level;
    ngx_http_llm_limit_t  *l;

    l = no->share->limit;
    dry = l->dry_run;

    level = no->what == NGX_HTTP_LLM_SHORT_MEMORY ? NGX_LOG_ERR
                                                  : NGX_LOG_WARN;

    ngx_log_error(level, r->connection->log, 0,
                  "llm_token_limit%s: no more %s in zone \"%V\"",
                  dry ? ", dry run" : "", ngx_http_llm_quota_what(no),
                  &l->quota->shm_zone->shm.name);

    return !dry;
}


static void
ngx_http_llm_quota_short_error(ngx_http_llm_refusal_t *no, llm_err_t *err)
{
    long long              left, wanted, most;
    ngx_http_llm_share_t  *s;

    s = no->share;
    left = no->left / LLM_QUOTA_UNIT;
    wanted = no->wanted / LLM_QUOTA_UNIT;

    switch (no->what) {

    case NGX_HTTP_LLM_SHORT_DAY:
        llm_fail_with(err, 429, "insufficient_quota", NULL,
                      "The day's quota of %lld %s does not suffice: "
                      "%lld are left, %lld are needed.",
                      (long long) (s->day / LLM_QUOTA_UNIT),
                      ngx_http_llm_quota_of(no), left, wanted);
        return;

    case NGX_HTTP_LLM_SHORT_TOKENS:
        most = s->burst / LLM_QUOTA_UNIT;

        if (wanted > most && s->limit->quota->audio) {
            llm_fail_with(err, 429, "rate_limit_exceeded", NULL,
                          "The file has %lld seconds of audio, more than the "
                          "%lld that may be taken at once: cut it into shorter "
                          "ones.", wanted, most);
            return;
        }

        if (wanted > most) {
            llm_fail_with(err, 429, "rate_limit_exceeded", NULL,
                          "The request needs %lld tokens for its prompt and "
                          "its answer, more than the %lld that may be taken "
                          "at once: shorten the prompt, or lower max_tokens.",
                          wanted, most);
            return;
        }

        llm_fail_with(err, 429, "rate_limit_exceeded", NULL,
                      "Rate limit reached: %lld of %lld %s are left, "
                      "%lld are needed.", left, most,
                      ngx_http_llm_quota_of(no), wanted);
        return;

    case NGX_HTTP_LLM_SHORT_REQUESTS:
        llm_fail_with(err, 429, "rate_limit_exceeded", NULL,
                      "Rate limit reached: all of %lld requests are used.",
                      (long long) (s->most_requests / LLM_QUOTA_UNIT));
        return;

    case NGX_HTTP_LLM_SHORT_STREAMS:
        llm_fail_with(err, 429, "rate_limit_exceeded", NULL,
                      "Too many requests at a time: %lld may be served.",
                      (long long) s->streams);
        return;

    default:
        llm_fail_with(err, 503, "quota_unavailable", NULL,
                      "The quota of this request cannot be checked now.");
    }
}


/* appends the zone's name: a location may have several */

static void
ngx_http_llm_quota_name(ngx_http_llm_refusal_t *no, llm_err_t *err)
{
    size_t      len;
    ngx_str_t  *zone;

    zone = &no->share->limit->zone;
    len = ngx_strlen(err->msg);

    if (err->status == 429) {
        (void) ngx_snprintf((u_char *) err->msg + len, sizeof(err->msg) - len,
                            " (zone \"%V\")%Z", zone);
        err->msg[sizeof(err->msg) - 1] = '\0';
    }
}


void
ngx_http_llm_quota_refuse(ngx_http_llm_reply_t *reply,
    ngx_http_llm_refusal_t *no, llm_err_t *err)
{
    ngx_http_llm_quota_short_error(no, err);
    ngx_http_llm_quota_name(no, err);

    if (err->status != 429) {
        return;
    }

    reply->hopeless = no->wait_us == UINT64_MAX
                      || no->what == NGX_HTTP_LLM_SHORT_DAY;

    if (no->wait_us != UINT64_MAX) {
        reply->retry_ms = no->wait_us / 1000 + 1;
    }
}
