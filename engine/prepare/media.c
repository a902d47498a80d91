/*
 * Images and sound of a request, before its prompt is made: the message is
 * checked, and so is that the model takes them.  A worker has seen that the
 * configuration gives the model what it needs (mmproj=), but it may have been
 * loaded without: from another file, by a command.
 */

#include "engine/prepare/prepare.h"


/* is a text inside the message? */

static int
llm_prep_media_text(const llm_request_t *msg, const llm_ref_t *ref)
{
    return ref->len == 0
           || (ref->off >= sizeof(*msg) && ref->off <= msg->head.size
               && ref->len <= msg->head.size - ref->off);
}


int
llm_prep_media(const llm_prep_env_t *env, const llm_req_t *r, llm_err_t *err)
{
    char                    place[sizeof(err->param)];
    size_t                  n;
    uint32_t                i;
    const llm_media_ref_t  *m;
    const llm_request_t    *msg;

    msg = r->msg;

    /* those that were taken are inside the message */

    if (r->media.n != msg->media.len) {
        return llm_fail(err, "malformed request to the engine");
    }

    m = llm_ref_data(msg, msg->media);

    for (i = 0; i < msg->media.len; i++) {
        if (msg->kind != LLM_KIND_CHAT
            || !llm_prep_media_text(msg, &m[i].place)
            || !llm_prep_media_text(msg, &m[i].url))
        {
            return llm_fail(err, "malformed request to the engine");
        }

        if (env->takes & m[i].kind) {
            continue;
        }

        n = llm_min(m[i].place.len, sizeof(place) - 1);
        memcpy(place, llm_ref_data(msg, m[i].place), n);
        place[n] = '\0';

        return llm_fail_with(err, 400, "invalid_value", place,
                             "This model takes text only: the file that is "
                             "loaded has no projector for %s.",
                             m[i].kind == LLM_MEDIUM_IMAGE ? "images"
                                                          : "audio");
    }

    return LLM_OK;
}


int
llm_prep_media_order(const llm_req_t *r, const llm_prompt_t *prompt,
    llm_err_t *err)
{
    size_t  i;

    for (i = 0; i < prompt->n_media; i++) {
        if (prompt->media[i] >= r->msg->media.len) {
            return llm_fail(err, "malformed request to the engine");
        }
    }

    return LLM_OK;
}
