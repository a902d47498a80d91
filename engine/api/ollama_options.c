/*
 * What Ollama's requests have in common beside their text: options, format,
 * think, keep_alive; and the pieces that their answers begin with.
 */

#include "engine/api/ollama.h"

#include <stdio.h>
#include <time.h>


/* ---- options ---- */

/* those that mean the same in a chat, by the same name.  Others are about how
   a model is loaded, which is up to the server, and have no effect */

static int
llm_api_ol_passes(const llm_flat_t *key)
{
    size_t  i;

    static const char *const  names[] = {
        "seed", "stop", "logit_bias", "mirostat", "mirostat_eta",
        "mirostat_tau", "min_keep", "dry_sequence_breakers",
#define LLM_PARAM(name, type, otherwise, least, most)  #name,
#define LLM_ALIAS(name, of, type, least, most)         #name,
#include "engine/base/sampling.def"
    };

    for (i = 0; i < llm_nelems(names); i++) {
        if (llm_api_str_is(key, names[i])) {
            return 1;
        }
    }

    return 0;
}


/* -1 and -2, "fill the context", and 0 are no bound.  The first name is that of
   a completion, the second that of a chat */

static int
llm_api_ol_predict(const llm_flat_t *v, llm_api_draft_t *d, llm_err_t *err)
{
    int64_t              n;
    const llm_api_at_t  *at;

    at = llm_api_key(llm_api_top("options"), "num_predict");

    if (llm_api_check_int(err, at, v, -2, INT32_MAX) != LLM_OK) {
        return LLM_ERROR;
    }

    n = llm_flat_int(v);
    n = n > 0 ? n : -1;
    llm_api_draft_key(d, "max_tokens");
    llm_flat_add_int(&d->out, n);
    llm_api_draft_key(d, "max_completion_tokens");
    llm_flat_add_int(&d->out, n);

    return LLM_OK;
}


static int
llm_api_ol_options(const llm_flat_t *options, llm_api_draft_t *d,
    llm_err_t *err)
{
    const llm_flat_t  *k, *v;

    for (k = options ? llm_flat_first(options) : NULL; k;
         k = llm_flat_next(options, v))
    {
        v = llm_flat_next(options, k);

        if (v->type == LLM_FLAT_NULL) {
            continue;
        }

        if (llm_api_str_is(k, "num_predict")) {
            if (llm_api_ol_predict(v, d, err) != LLM_OK) {
                return LLM_ERROR;
            }

        } else if (llm_api_ol_passes(k)) {
            llm_flat_add_node(&d->out, k);
            llm_flat_add_node(&d->out, v);
            d->n++;
        }
    }

    return LLM_OK;
}


/* ---- format, think, keep_alive, images ---- */

static int
llm_api_ol_format(const llm_flat_t *format, llm_api_draft_t *d,
    llm_err_t *err)
{
    size_t               handle;
    const llm_api_at_t  *at;

    static const struct {
        llm_flat_t  head;
        int64_t     value;
    } strict = { { LLM_FLAT_BOOL, sizeof(strict), 0, 0 }, 1 };

    at = llm_api_top("format");

    if (format == NULL || llm_api_str_is(format, "")) {
        return LLM_OK;
    }

    /* as with Ollama, an object has only the properties that are named */

    if (format->type == LLM_FLAT_OBJECT) {
        llm_api_draft_schema(d, NULL, format, &strict.head);
        return LLM_OK;
    }

    if (format->type != LLM_FLAT_STRING) {
        return llm_api_bad_type(err, at, "'json' or a JSON schema, which is "
                                "an object", format);
    }

    if (!llm_api_str_is(format, "json")) {
        return llm_api_bad_word(err, at, llm_flat_str(format),
                                "It can be 'json' or a JSON schema, which is "
                                "an object.");
    }

    llm_api_draft_key(d, "response_format");
    handle = llm_flat_open(&d->out, LLM_FLAT_OBJECT);
    llm_flat_add_str(&d->out, "type", 4);
    llm_flat_add_str(&d->out, "json_object", 11);
    llm_flat_close(&d->out, handle, 1);

    return LLM_OK;
}


static int
llm_api_ol_think(const llm_flat_t *think, llm_api_draft_t *d, llm_err_t *err)
{
    if (think == NULL) {
        return LLM_OK;
    }

    if (think->type == LLM_FLAT_BOOL) {
        llm_api_draft_node(d, "enable_thinking", think);
        return LLM_OK;
    }

    if (think->type != LLM_FLAT_STRING) {
        return llm_api_bad_type(err, llm_api_top("think"),
                                "a boolean or a string", think);
    }

    llm_api_draft_node(d, "reasoning_effort", think);

    /* a level is more than a mere yes */

    if (!llm_api_str_is(think, "none")) {
        llm_api_draft_key(d, "enable_thinking");
        llm_flat_add_bool(&d->out, 1);
    }

    return LLM_OK;
}


int
llm_api_ollama_keep_alive(const llm_flat_t *v, llm_err_t *err)
{
    size_t     i, digits;
    llm_str_t  s;

    if (v == NULL || v->type == LLM_FLAT_INT || v->type == LLM_FLAT_DOUBLE) {
        return LLM_OK;
    }

    if (v->type != LLM_FLAT_STRING) {
        return llm_api_bad_type(err, llm_api_top("keep_alive"),
                                "seconds, or a time such as '5m'", v);
    }

    s = llm_flat_str(v);

    for (i = 0, digits = 0; i < s.len; i++) {
        digits += s.data[i] >= '0' && s.data[i] <= '9';

        if (memchr("0123456789.-+hmsun", s.data[i], 18) == NULL) {
            break;
        }
    }

    if (s.len && (i < s.len || digits == 0)) {
        return llm_api_bad_value(err, llm_api_top("keep_alive"),
                                 "Invalid 'keep_alive': expected seconds, or "
                                 "a time such as '5m'.");
    }

    return LLM_OK;
}


/* 0, "0", "0s", "0h0m" */

int
llm_api_ollama_is_zero(const llm_flat_t *v)
{
    size_t     i;
    llm_str_t  s;

    if (v == NULL) {
        return 0;
    }

    if (v->type != LLM_FLAT_STRING) {
        return llm_flat_double(v) == 0;
    }

    s = llm_flat_str(v);

    for (i = 0; i < s.len; i++) {
        if (s.data[i] >= '1' && s.data[i] <= '9') {
            return 0;
        }
    }

    return s.len != 0;
}


int
llm_api_ollama_options(const llm_api_ollama_t *b, llm_api_draft_t *d,
    llm_err_t *err)
{
    if (b->model.len) {
        llm_api_draft_string(d, "model", b->model);
    }

    llm_api_draft_key(d, "stream");
    llm_flat_add_bool(&d->out, b->stream);

    if (b->logprobs) {
        llm_api_draft_key(d, "logprobs");
        llm_flat_add_bool(&d->out, 1);
        llm_api_draft_key(d, "top_logprobs");
        llm_flat_add_int(&d->out, b->top_logprobs);
    }

    return llm_api_ollama_keep_alive(b->keep_alive, err) != LLM_OK
           || llm_api_ol_options(b->options, d, err) != LLM_OK
           || llm_api_ol_format(b->format, d, err) != LLM_OK
           || llm_api_ol_think(b->think, d, err) != LLM_OK
           ? LLM_ERROR : LLM_OK;
}


/* ---- pieces of answers ---- */

void
llm_api_ollama_time(llm_buf_t *out, int64_t seconds)
{
    char       text[32];
    time_t     t;
    struct tm  tm;

    t = (time_t) seconds;

    if (gmtime_r(&t, &tm) == NULL
        || strftime(text, sizeof(text), "\"%Y-%m-%dT%H:%M:%SZ\"", &tm) == 0)
    {
        snprintf(text, sizeof(text), "\"1970-01-01T00:00:00Z\"");
    }

    (void) llm_buf_adds(out, text);
}


void
llm_api_ollama_head(llm_api_reader_t *rd)
{
    llm_buf_t  *out;
    llm_str_t   name;

    out = &rd->head;
    name = rd->conf->models[rd->r.model].name;

    (void) llm_buf_adds(out, "{\"model\":");
    (void) llm_json_add_string(out, name.data, name.len);
    (void) llm_buf_adds(out, ",\"created_at\":");
    llm_api_ollama_time(out, rd->conf->now);
}


/* adds a count as people write it: 134.5M */

static void
llm_api_ol_count(llm_buf_t *out, uint64_t n)
{
    size_t  i;

    static const struct {
        double       of;
        const char  *letter;
    } units[] = { { 1e12, "T" }, { 1e9, "B" }, { 1e6, "M" }, { 1e3, "K" } };

    for (i = 0; i < llm_nelems(units); i++) {
        if ((double) n >= units[i].of) {
            (void) llm_buf_addf(out, "%.1f%s", (double) n / units[i].of,
                                units[i].letter);
            return;
        }
    }

    if (n) {
        llm_api_add_uint(out, n);
    }
}


void
llm_api_ollama_details(llm_buf_t *out, llm_str_t family, uint64_t n_params)
{
    (void) llm_buf_adds(out, "{\"parent_model\":\"\",\"format\":\"gguf\","
                        "\"family\":");
    (void) llm_json_add_string(out, family.data, family.len);
    (void) llm_buf_adds(out, ",\"families\":[");

    if (family.len) {
        (void) llm_json_add_string(out, family.data, family.len);
    }

    (void) llm_buf_adds(out, "],\"parameter_size\":\"");
    llm_api_ol_count(out, n_params);
    (void) llm_buf_adds(out, "\",\"quantization_level\":\"\"}");
}
