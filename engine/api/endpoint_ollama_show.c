/*
 * POST /api/show: what Ollama tells of a model, from the description that the
 * engine also gives to GET /props.
 */

#include "engine/api/ollama.h"

typedef struct {
    llm_str_t          model;
    llm_str_t          name;            /* older name of model */
    int                verbose;
} llm_api_show_t;

#define AT(f)  offsetof(llm_api_show_t, f)


static const llm_api_field_t  llm_api_show_rows[] = {
    { "model", LLM_FIELD_STRING, AT(model), 0, 0 },
    { "name", LLM_FIELD_STRING, AT(name), 0, 0 },
    { "verbose", LLM_FIELD_BOOL, AT(verbose), 0, 0 },
};

static const llm_api_fields_t  llm_api_show_fields = {
    llm_api_show_rows, llm_nelems(llm_api_show_rows)
};


static int
llm_api_show_read(llm_api_reader_t *rd, llm_err_t *err)
{
    llm_api_show_t          b;
    const llm_flat_t       *name;
    const llm_api_model_t  *m;

    memset(&b, 0, sizeof(b));

    /* the model is resolved by its name, which either member may have */

    name = llm_api_member(rd->root, "model");
    name = name && name->type == LLM_FLAT_STRING && name->count
           ? NULL : llm_api_member(rd->root, "name");

    if (llm_api_read_plain(rd, &b, name ? &b.name : &b.model, err) != LLM_OK) {
        return LLM_ERROR;
    }

    rd->r.kind = LLM_KIND_NONE;
    rd->n_choices = 1;
    m = &rd->conf->models[rd->r.model];

    (void) llm_buf_adds(&rd->head, "{\"modified_at\":");
    llm_api_ollama_time(&rd->head, m->created);

    return LLM_OK;
}


static void
llm_api_show_add(llm_buf_t *out, const char *key, const llm_flat_t *v,
    const char *otherwise)
{
    (void) llm_buf_addf(out, ",\"%s\":", key);

    if (v && v->type != LLM_FLAT_NULL) {
        (void) llm_json_add_flat(out, v);

    } else {
        (void) llm_buf_adds(out, otherwise);
    }
}


/* a line for each sampling parameter, as in a Modelfile, in a JSON string */

static void
llm_api_show_parameters(llm_buf_t *out, const llm_flat_t *params)
{
    size_t             i, k;
    llm_str_t          s;
    const char        *some;
    const llm_flat_t  *v;

    static const char *const  names[] = {
        "temperature", "top_k", "top_p", "min_p", "repeat_penalty",
        "repeat_last_n", "presence_penalty", "frequency_penalty"
    };

    some = "";
    (void) llm_buf_adds(out, ",\"parameters\":\"");

    for (i = 0; i < llm_nelems(names); i++) {
        v = llm_flat_get(params, names[i]);

        if (v) {
            s = (llm_str_t) { strlen(names[i]), names[i] };
            (void) llm_buf_addf(out, "%s%s", some, s.data);

            for (k = s.len; k < 31; k++) {
                (void) llm_buf_addc(out, ' ');
            }

            (void) llm_json_add_flat(out, v);
            some = "\\n";
        }
    }

    (void) llm_buf_addc(out, '"');
}


static void
llm_api_show_write(const llm_api_t *a, const llm_flat_t *props,
    llm_buf_t *out)
{
    llm_str_t          family;
    const llm_flat_t  *info, *v;

    info = llm_flat_get(props, "model_info");
    v = llm_flat_get(info, "general.architecture");
    family = v ? llm_flat_str(v) : llm_str("");
    v = llm_flat_get(info, "general.parameter_count");

    (void) llm_buf_add(out, a->head.data, a->head.len);
    (void) llm_buf_adds(out, ",\"modelfile\":\"\",\"details\":");
    llm_api_ollama_details(out, family, v ? (uint64_t) llm_flat_int(v) : 0);
    llm_api_show_parameters(out, llm_flat_get(llm_flat_get(
                                props, "default_generation_settings"),
                                "params"));
    llm_api_show_add(out, "template", llm_flat_get(props, "chat_template"),
                     "\"\"");
    llm_api_show_add(out, "capabilities", llm_flat_get(props, "capabilities"),
                     "[]");
    llm_api_show_add(out, "model_info", info, "{}");
    (void) llm_buf_addc(out, '}');
}


/* the kept texts are the pieces of one flat object */

static int
llm_api_show_body(llm_api_t *a, size_t max, llm_buf_t *out)
{
    llm_buf_t  flat;

    (void) max;

    if (llm_api_kept_flat(a, &flat) != LLM_OK) {
        return LLM_ERROR;
    }

    llm_api_show_write(a, (const llm_flat_t *) flat.data, out);
    llm_buf_free(&flat);

    return out->failed ? LLM_ERROR : LLM_OK;
}


const llm_api_endpoint_t  llm_api_ollama_show = {
    .task = LLM_TASK_PROPS,
    .fields = &llm_api_show_fields,
    .read = llm_api_show_read,
    .body = llm_api_show_body,
    .error = llm_api_ollama_error
};
