/*
 * SSE frames of endpoints that stream choices.
 *
 * A frame is the head, prepared once for the request, the choice's index,
 * what the endpoint adds, and a constant tail: all are copies.
 */

#include "engine/api/llama.h"
#include "engine/base/version.h"

#include <stdio.h>

#define INDEX_KEY           "{\"index\":"

#define add_lit(out, lit)   (void) llm_buf_add(out, lit, sizeof(lit) - 1)


/* FNV-1a, 64 bits */

static uint64_t
llm_api_hash(uint64_t h, const char *data, size_t len)
{
    size_t  i;

    for (i = 0; i < len; i++) {
        h = (h ^ (unsigned char) data[i]) * 0x100000001b3ull;
    }

    return h;
}


/*
 * system_fingerprint: the same for answers that would be the same, as far as
 * the server knows: it is made from the model's file, the formats of its
 * weights, its cache and its products, and the version of the engine.
 */

static uint64_t
llm_api_fingerprint(const llm_api_model_t *m)
{
    char      text[80];
    uint64_t  h;

    snprintf(text, sizeof(text), LLM_VERSION " %lld %u %u %s",
             (long long) m->created, m->weights_fp8, m->kv,
             m->products ? m->products : "");

    h = llm_api_hash(0xcbf29ce484222325ull, m->name.data, m->name.len);
    h = llm_api_hash(h, text, strlen(text) + 1);

    return h & 0xffffffffffull;
}


void
llm_api_write_head(llm_api_reader_t *rd, const char *prefix,
    const char *object, const char *chunk)
{
    int                     stream;
    llm_buf_t              *out;
    const llm_api_conf_t   *conf;
    const llm_api_model_t  *m;

    out = &rd->head;
    conf = rd->conf;
    m = &conf->models[rd->r.model];
    stream = (rd->r.flags & LLM_REQ_STREAM) != 0;

    if (stream) {
        add_lit(out, "data: ");
    }

    (void) llm_buf_addf(out, "{\"id\":\"%s", prefix);
    (void) llm_json_add_text(out, conf->id.data, conf->id.len);
    (void) llm_buf_addf(out, "\",\"object\":\"%s\",\"created\":%lld,"
                        "\"model\":", stream ? chunk : object,
                        (long long) conf->now);
    (void) llm_json_add_string(out, m->name.data, m->name.len);
    (void) llm_buf_addf(out, ",\"system_fingerprint\":\"b%010llx\","
                        "\"choices\":[" INDEX_KEY,
                        (unsigned long long) llm_api_fingerprint(m));
}


void
llm_api_open_frame(const llm_api_t *a, uint32_t index, llm_buf_t *out)
{
    (void) llm_buf_add(out, a->head.data, a->head.len);
    llm_api_add_uint(out, index);
}


/* usage is in the last chunk alone, or in each: OpenAI sends null in the other
   chunks, but that breaks clients that only check whether the member exists */

void
llm_api_end_frame(const llm_api_t *a, llm_buf_t *out)
{
    if (a->show_usage & LLM_API_USAGE_EACH) {
        add_lit(out, ",\"usage\":");
        llm_api_add_usage(out, a);
    }

    add_lit(out, "}\n\n");
}


void
llm_api_close_frame(const llm_api_t *a, llm_buf_t *out)
{
    add_lit(out, "}]");
    llm_api_end_frame(a, out);
}


/* the frame of a text or of an end, which has the times so far if they were
   asked for */

static void
llm_api_close_timed(const llm_api_t *a, llm_buf_t *out)
{
    add_lit(out, "}]");

    if (a->options & LLM_API_TIMINGS) {
        add_lit(out, ",");
        llm_api_llama_now(out, a);
    }

    llm_api_end_frame(a, out);
}


void
llm_api_progress_frame(const llm_api_t *a, const llm_event_t *ev,
    const char *text, llm_buf_t *out)
{
    llm_api_open_frame(a, 0, out);
    (void) llm_buf_addf(out, ",%s,\"finish_reason\":null}],", text);
    llm_api_llama_progress(out, a, ev, a->options & LLM_API_TIMINGS);
    llm_api_end_frame(a, out);
}


int
llm_api_has_frame(const llm_api_t *a, const llm_event_t *ev)
{
    return ev->u.text.text.len
           || (a->token_ids && ev->u.text.ids.len)
           || (a->n_logprobs >= 0 && ev->u.text.logprobs.len);
}


void
llm_api_close_text(llm_api_t *a, const llm_event_t *ev,
    const llm_api_logprobs_t *format, llm_buf_t *out)
{
    llm_api_choice_t  *c;

    if (a->n_logprobs < 0) {
        add_lit(out, ",\"logprobs\":null,\"finish_reason\":null");

    } else {
        c = &a->choices[ev->index];

        add_lit(out, ",\"logprobs\":");
        llm_api_add_logprobs(out, a, format, &c->place, ev);
        add_lit(out, ",\"finish_reason\":null");
        llm_api_count_text(&c->place, ev);
    }

    if (a->token_ids && ev->u.text.ids.len) {
        add_lit(out, ",\"token_ids\":[");
        llm_api_add_ids(out, ev);
        add_lit(out, "]");
    }

    llm_api_close_timed(a, out);
}


void
llm_api_finish_frame(const llm_api_t *a, const llm_event_t *ev,
    const char *logprobs, llm_buf_t *out)
{
    add_lit(out, ",\"logprobs\":");
    (void) llm_buf_adds(out, logprobs);
    add_lit(out, ",\"finish_reason\":\"");
    (void) llm_buf_adds(out, llm_api_finish_name(ev->u.finish.reason));
    add_lit(out, "\"");

    if (a->token_ids) {
        add_lit(out, ",\"token_ids\":[]");
    }

    llm_api_close_timed(a, out);
}


void
llm_api_last_frames(const llm_api_t *a, llm_buf_t *out)
{
    if (a->show_usage) {
        (void) llm_buf_add(out, a->head.data,
                           a->head.len - (sizeof(INDEX_KEY) - 1));
        add_lit(out, "],\"usage\":");
        llm_api_add_usage(out, a);
        llm_api_add_timings(out, a);
        add_lit(out, "}\n\n");
    }

    add_lit(out, "data: [DONE]\n\n");
}
