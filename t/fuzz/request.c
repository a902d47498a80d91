/*
 * Any bytes as the body of a request, at each endpoint.  What is refused
 * has a status and a reason that make an error body; what is taken is a
 * sound message whose parts lie inside of it, and an answer to it is JSON.  The
 * first model takes images and sound; nothing of them is left at the end.
 */

#include "engine/api/endpoint.h"

#include <cjson/cJSON.h>


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);


#define must(cond)                                                           \
    do {                                                                     \
        if (!(cond)) {                                                       \
            __builtin_trap();                                                \
        }                                                                    \
    } while (0)


static const llm_api_model_t  models[] = {
    { .name = { 4, "demo" }, .is_default = 1, .max_tokens = -1,
      .created = 1700000000, .media = LLM_MEDIUM_IMAGE|LLM_MEDIUM_AUDIO },
    { .name = { 5, "other" }, .max_tokens = 100,
      .created = 1700000001 }
};

#define HOLDER  9
#define MEDIA   (8 << 14)

static llm_api_conf_t  conf = {
    .models = models, .n_models = 2, .allowed = 3, .fallback = -1,
    .cap = 5000, .id = { 4, "fuzz" }, .now = 1750000000, .holder = HOLDER,
    .media = { .most = 4, .max_size = 65536, .fetch = 1 }
};


static void
fuzz_zone(void)
{
    llm_zone_model_t  m[2] = { { .parallel = 1 }, { .parallel = 1 } };

    conf.zone = llm_zone_init(aligned_alloc(64, llm_align(
                                  llm_zone_size(1, 2, 1 << 17), 64)),
                              1, m, 2, 1 << 17, 8);
    llm_zone_set_media(conf.zone,
                       aligned_alloc(64, llm_align(llm_media_size(MEDIA), 64)),
                       MEDIA);
}


static void
fuzz_no_media(void)
{
    llm_media_stats_t  st;

    llm_zone_media_stats(conf.zone, &st);
    must(st.used == 0);
}


static void
fuzz_json(const char *text, size_t len)
{
    cJSON  *v;

    v = cJSON_ParseWithLength(text, len);
    must(v != NULL);
    cJSON_Delete(v);
}


static void
fuzz_inside(const llm_request_t *r, llm_ref_t ref, size_t item, size_t align)
{
    must(ref.off % align == 0);
    must(ref.off + (uint64_t) ref.len * item <= r->head.size);
}


static void
fuzz_strings(const llm_request_t *r, llm_ref_t list, uint32_t most)
{
    uint32_t          i;
    const llm_ref_t  *s;

    must(list.len <= most);
    fuzz_inside(r, list, sizeof(llm_ref_t), 4);
    s = llm_ref_data(r, list);

    for (i = 0; i < list.len; i++) {
        fuzz_inside(r, s[i], 1, 1);
        must(s[i].len > 0);
    }
}


static void
fuzz_infill(const llm_request_t *r)
{
    uint32_t             i;
    const llm_extra_t   *extra;
    const llm_infill_t  *in;

    fuzz_inside(r, r->infill, sizeof(llm_infill_t), 4);

    if (r->infill.len == 0) {
        return;
    }

    in = llm_ref_data(r, r->infill);

    fuzz_inside(r, in->suffix, 1, 1);
    fuzz_inside(r, in->extra, sizeof(llm_extra_t), 4);
    extra = llm_ref_data(r, in->extra);

    for (i = 0; i < in->extra.len; i++) {
        fuzz_inside(r, extra[i].name, 1, 1);
        fuzz_inside(r, extra[i].text, 1, 1);
    }
}


/* a prompt, or a part of one: parts have no parts */

static void
fuzz_prompt(const llm_request_t *r, const llm_prompt_ref_t *p, int parts)
{
    uint32_t                 i;
    const llm_prompt_ref_t  *part;

    if (p->is_ids != LLM_PROMPT_PARTS) {
        fuzz_inside(r, p->ref, p->is_ids ? 4 : 1, p->is_ids ? 4 : 1);
        return;
    }

    must(parts && p->ref.len > 1);
    fuzz_inside(r, p->ref, sizeof(llm_prompt_ref_t), 4);
    part = llm_ref_data(r, p->ref);

    for (i = 0; i < p->ref.len; i++) {
        fuzz_prompt(r, &part[i], 0);
    }
}


static void
fuzz_message(const llm_buf_t *msg)
{
    uint32_t                 i;
    const llm_request_t     *r;
    const llm_prompt_ref_t  *p;

    r = (const llm_request_t *) msg->data;

    must(msg->len == r->head.size && msg->len % 8 == 0);
    must(r->n >= 1 && r->n <= LLM_MAX_CHOICES);
    must(r->max_tokens >= -1 && r->max_tokens <= conf.cap);
    must((r->task != LLM_TASK_EMBED && r->task != LLM_TASK_SCORE)
         || r->prompts.len > 0);
    must(r->task != LLM_TASK_SCORE || r->prompts.len % 2 == 0);
    must(r->normalize >= LLM_NORMALIZE_NONE && r->truncate >= -1);

    if (r->kind == LLM_KIND_CHAT) {
        fuzz_inside(r, r->chat, 1, 8);
        must(llm_flat_check(llm_ref_data(r, r->chat), r->chat.len)
             == LLM_OK);
    }

    fuzz_inside(r, r->prompts, sizeof(llm_prompt_ref_t), 4);
    p = llm_ref_data(r, r->prompts);

    for (i = 0; i < r->prompts.len; i++) {
        fuzz_prompt(r, &p[i], 1);
    }

    fuzz_strings(r, r->stops, LLM_MAX_STOPS);
    fuzz_strings(r, r->bad_words, LLM_MAX_BAD_WORDS);
    fuzz_strings(r, r->breakers, LLM_MAX_BREAKERS);
    fuzz_infill(r);

    fuzz_inside(r, r->allowed_ids, sizeof(int32_t), 4);
    fuzz_inside(r, r->stop_ids, sizeof(int32_t), 4);
    fuzz_inside(r, r->logit_bias, sizeof(llm_logit_bias_t), 4);
}


static void
fuzz_media(llm_request_t *r)
{
    uint32_t            i;
    const llm_media_ref_t  *m;

    fuzz_inside(r, r->media, sizeof(llm_media_ref_t), 8);
    must(r->media.len <= conf.media.most);
    m = llm_ref_data(r, r->media);

    for (i = 0; i < r->media.len; i++) {
        fuzz_inside(r, m[i].place, 1, 1);
        fuzz_inside(r, m[i].url, 1, 1);
        must(m[i].place.len && (m[i].url.len == 0) == (m[i].block.n != 0));
        must(m[i].block.n == 0
             || llm_media_data(conf.zone, &m[i].block) != NULL);
    }

    llm_media_release(conf.zone, HOLDER, r);
}


/* a vector for the first prompt, and none for others */

static void
fuzz_vector(llm_api_t *a, size_t size)
{
    llm_buf_t  out;
    llm_err_t  err;

    struct {
        llm_event_t  ev;
        float        values[6];
    } e;

    llm_buf_init(&out, 0);
    memset(&e, 0, sizeof(e));

    e.ev.size = sizeof(e);
    e.ev.type = LLM_EV_VECTOR;
    e.ev.u.vector.total = 6;
    e.ev.u.vector.values.off = (uint32_t) ((char *) e.values - (char *) &e);
    e.ev.u.vector.values.len = 6;
    e.values[0] = (float) size;
    must(llm_api_event(a, &e.ev, &out, &err) == LLM_OK);

    memset(&e, 0, sizeof(e));
    e.ev.size = sizeof(e);
    e.ev.type = LLM_EV_DONE;
    must(llm_api_event(a, &e.ev, &out, &err) == LLM_OK);

    while (llm_api_body_next(a, out.len + 1, &out) == LLM_MORE) {
        /* void */
    }

    fuzz_json(out.data, out.len);
    llm_buf_free(&out);
}


/* the first bytes of the input are also what the model says */

static void
fuzz_answer(llm_api_t *a, const uint8_t *data, size_t size)
{
    char       *frame, *next;
    llm_buf_t   out;
    llm_err_t   err;

    struct {
        llm_event_t  ev;
        char         text[64];
    } e;

    llm_buf_init(&out, 0);
    memset(&e, 0, sizeof(e));

    e.ev.size = sizeof(e);
    e.ev.type = LLM_EV_START;
    must(llm_api_event(a, &e.ev, &out, &err) == LLM_OK);

    e.ev.type = LLM_EV_TEXT;
    e.ev.u.text.part = size % 4;
    e.ev.u.text.text.off = (uint32_t) (e.text - (char *) &e);
    e.ev.u.text.text.len = (uint32_t) llm_min(size, sizeof(e.text));
    memcpy(e.text, data, e.ev.u.text.text.len);
    must(llm_api_event(a, &e.ev, &out, &err) == LLM_OK);

    memset(&e, 0, sizeof(e));
    e.ev.type = LLM_EV_FINISH;
    must(llm_api_event(a, &e.ev, &out, &err) == LLM_OK);

    e.ev.type = LLM_EV_DONE;
    must(llm_api_event(a, &e.ev, &out, &err) == LLM_OK);

    if (!llm_api_is_stream(a)) {
        while (llm_api_body_next(a, out.len + 1, &out) == LLM_MORE) {
            /* void */
        }

        fuzz_json(out.data, out.len);
        llm_buf_free(&out);
        return;
    }

    if (strcmp(llm_api_stream_type(a), "text/event-stream") != 0) {
        for (frame = out.data; *frame; frame = next + 1) {
            next = strchr(frame, '\n');
            must(next != NULL);
            fuzz_json(frame, (size_t) (next - frame));
        }

        llm_buf_free(&out);
        return;
    }

    for (frame = out.data; *frame; frame = next + 2) {
        frame += strncmp(frame, "event: ", 7) ? 0 : strcspn(frame, "\n") + 1;
        must(strncmp(frame, "data: ", 6) == 0);

        next = strstr(frame, "\n\n");
        must(next != NULL);

        if (strcmp(frame, "data: [DONE]\n\n") == 0) {
            break;
        }

        fuzz_json(frame + 6, (size_t) (next - frame - 6));
    }

    llm_buf_free(&out);
}


static void
fuzz_endpoint(const llm_api_endpoint_t *ep, const uint8_t *data,
    size_t size)
{
    llm_api_t  *a;
    llm_buf_t   msg, out;
    llm_err_t   err;

    memset(&err, 0, sizeof(err));
    llm_buf_init(&msg, 0);

    a = llm_api_parse(ep, &conf, (const char *) data, size, &msg, &err);

    if (a) {
        fuzz_message(&msg);
        fuzz_media((llm_request_t *) msg.data);

        if (ep->task == LLM_TASK_GENERATE) {
            fuzz_answer(a, data, size);

        } else {
            fuzz_vector(a, size);
        }

        llm_api_free(a);

    } else {
        must((err.status == 400 || err.status == 404
              || strcmp(err.code, "media_memory_full") == 0) && err.msg[0]);

        llm_buf_init(&out, 0);
        must(llm_api_error_body(ep, llm_str("fuzz"), &err, &out)
             == LLM_OK);
        fuzz_json(out.data, out.len);
        llm_buf_free(&out);
    }

    llm_buf_free(&msg);
    fuzz_no_media();
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (conf.zone == NULL) {
        fuzz_zone();
    }

    fuzz_endpoint(&llm_api_chat, data, size);
    fuzz_endpoint(&llm_api_completions, data, size);
    fuzz_endpoint(&llm_api_responses, data, size);
    fuzz_endpoint(&llm_api_messages, data, size);
    fuzz_endpoint(&llm_api_count_tokens, data, size);
    fuzz_endpoint(&llm_api_input_tokens, data, size);
    fuzz_endpoint(&llm_api_tokenize, data, size);
    fuzz_endpoint(&llm_api_detokenize, data, size);
    fuzz_endpoint(&llm_api_template, data, size);
    fuzz_endpoint(&llm_api_infill, data, size);
    fuzz_endpoint(&llm_api_embeddings, data, size);
    fuzz_endpoint(&llm_api_rerank, data, size);
    fuzz_endpoint(&llm_api_score, data, size);
    fuzz_endpoint(&llm_api_completion, data, size);
    fuzz_endpoint(&llm_api_embedding, data, size);
    fuzz_endpoint(&llm_api_tei_embed, data, size);
    fuzz_endpoint(&llm_api_tei_rerank, data, size);
    fuzz_endpoint(&llm_api_ollama_chat, data, size);
    fuzz_endpoint(&llm_api_ollama_generate, data, size);
    fuzz_endpoint(&llm_api_ollama_embed, data, size);
    fuzz_endpoint(&llm_api_ollama_embeddings, data, size);

    return 0;
}
