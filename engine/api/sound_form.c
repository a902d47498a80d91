/*
 * The form of a transcription; see sound_form.h.
 */

#include "engine/api/sound_form.h"


/* fields whose values are kept: rows of llm_sound_form_fields */
enum {
    LLM_SOUND_MODEL = 0,
    LLM_SOUND_LANGUAGE,
    LLM_SOUND_PROMPT,
    LLM_SOUND_FORMAT,
    LLM_SOUND_TEMPERATURE,
    LLM_SOUND_STREAM,
    LLM_SOUND_SEED,
    LLM_SOUND_LIST                      /* the item of a list that is read */
};

/* the largest seed: JSON's clients have no larger whole numbers */
#define LLM_SOUND_SEEDS  (UINT64_C(1) << 53)

#define LLM_SOUND_NONE  (-1)
#define LLM_SOUND_FILE  (-2)

#define LLM_SOUND_GRANULAR  1
#define LLM_SOUND_INCLUDE   2
#define LLM_SOUND_CHUNKING  3
#define LLM_SOUND_REFUSED   4

static const struct {
    const char  *name;
    int          field;
    int          list;                  /* which list an item is of */
} llm_sound_form_fields[] = {
    { "model", LLM_SOUND_MODEL, 0 },
    { "language", LLM_SOUND_LANGUAGE, 0 },
    { "prompt", LLM_SOUND_PROMPT, 0 },
    { "response_format", LLM_SOUND_FORMAT, 0 },
    { "temperature", LLM_SOUND_TEMPERATURE, 0 },
    { "stream", LLM_SOUND_STREAM, 0 },
    { "seed", LLM_SOUND_SEED, 0 },
    { "timestamp_granularities", LLM_SOUND_LIST, LLM_SOUND_GRANULAR },
    { "include", LLM_SOUND_LIST, LLM_SOUND_INCLUDE },
    { "chunking_strategy", LLM_SOUND_LIST, LLM_SOUND_CHUNKING },
    { "known_speaker_names", LLM_SOUND_LIST, LLM_SOUND_REFUSED },
    { "known_speaker_references", LLM_SOUND_LIST, LLM_SOUND_REFUSED }
};


static int
llm_sound_bad(llm_err_t *err, const char *param, const char *what)
{
    return llm_fail_with(err, 400, NULL, param, "Invalid '%s': %s.", param,
                         what);
}


/* the row of a name, which may end in the brackets of a list, or in those of a
   member: clients send {"type": T} as NAME[type]; -1: none */

static int
llm_sound_row(llm_str_t name)
{
    size_t       i;
    const char  *p;

    p = name.len ? memchr(name.data, '[', name.len) : NULL;

    if (p && name.data[name.len - 1] == ']') {
        name.len = (size_t) (p - name.data);
    }

    for (i = 0; i < llm_nelems(llm_sound_form_fields); i++) {
        if (llm_str_is(name, llm_sound_form_fields[i].name)) {
            return (int) i;
        }
    }

    return -1;
}


static int
llm_sound_part(void *ctx, const llm_multipart_part_t *part, llm_err_t *err)
{
    int                row;
    llm_sound_form_t  *f = ctx;

    if (llm_str_is(part->name, "file")) {
        f->field = LLM_SOUND_FILE;

        return f->files++ == 0
               ? LLM_OK : llm_sound_bad(err, "file", "there is more than one; "
                                        "each needs a request of its own");
    }

    row = llm_sound_row(part->name);
    f->field = row;

    if (row < 0) {
        return LLM_OK;
    }

    row = llm_sound_form_fields[row].field;
    f->value[row].at = f->text.len + 1;
    f->value[row].len = 0;

    return LLM_OK;
}


static int
llm_sound_data(void *ctx, const void *data, size_t len, llm_err_t *err)
{
    llm_sound_form_t  *f = ctx;

    if (f->field == LLM_SOUND_FILE) {
        return f->file(f->ctx, data, len, err);
    }

    if (f->field < 0) {
        return LLM_OK;
    }

    if (llm_buf_add(&f->text, data, len) != LLM_OK) {
        return llm_fail_with(err, 413, NULL,
                             llm_sound_form_fields[f->field].name,
                             "the form's fields have more than %u bytes",
                             LLM_SOUND_FORM_FIELDS);
    }

    f->value[llm_sound_form_fields[f->field].field].len += len;

    return LLM_OK;
}


static llm_str_t
llm_sound_value(const llm_sound_form_t *f, int field)
{
    if (f->value[field].at == 0 || f->value[field].len == 0) {
        return (llm_str_t) { 0, NULL };
    }

    return (llm_str_t) { f->value[field].len,
                         f->text.data + f->value[field].at - 1 };
}


/* an item of a list is complete */

static int
llm_sound_item(llm_sound_form_t *f, int list, const char *name, llm_err_t *err)
{
    llm_str_t  s;

    s = llm_sound_value(f, LLM_SOUND_LIST);

    switch (list) {

    case LLM_SOUND_GRANULAR:
        if (llm_str_is(s, "word")) {
            f->granular |= LLM_TRANSCRIPT_WORDS;
            return LLM_OK;
        }

        if (llm_str_is(s, "segment")) {
            f->granular |= LLM_TRANSCRIPT_SEGMENTS;
            return LLM_OK;
        }

        return llm_sound_bad(err, name, "an item can be 'word' or 'segment'");

    case LLM_SOUND_INCLUDE:
        f->logprobs = 1;

        return llm_str_is(s, "logprobs")
               ? LLM_OK : llm_sound_bad(err, name, "an item can be 'logprobs'");

    case LLM_SOUND_CHUNKING:
        return s.len == 0 || llm_str_is(s, "auto")
               ? LLM_OK : llm_sound_bad(err, name, "it can be 'auto'; audio is "
                                        "cut where segments end");

    default:
        return llm_sound_bad(err, name, "speakers are not told apart here");
    }
}


static int
llm_sound_part_end(void *ctx, llm_err_t *err)
{
    int                row;
    llm_sound_form_t  *f = ctx;

    row = f->field;
    f->field = LLM_SOUND_NONE;

    if (row < 0 || llm_sound_form_fields[row].field != LLM_SOUND_LIST) {
        return LLM_OK;
    }

    return llm_sound_item(f, llm_sound_form_fields[row].list,
                          llm_sound_form_fields[row].name, err);
}


int
llm_sound_form_init(llm_sound_form_t *f, llm_str_t content_type,
    int translate, llm_err_t *err)
{
    memset(f, 0, sizeof(*f));
    llm_buf_init(&f->text, LLM_SOUND_FORM_FIELDS);
    f->translate = translate;
    f->field = LLM_SOUND_NONE;

    return llm_multipart_init(&f->parts, content_type, err);
}


void
llm_sound_form_free(llm_sound_form_t *f)
{
    llm_buf_free(&f->text);
}


int
llm_sound_form_read(llm_sound_form_t *f, const void *data, size_t len,
    llm_err_t *err)
{
    llm_multipart_sink_t  sink = { f, llm_sound_part, llm_sound_data,
                                   llm_sound_part_end };

    return llm_multipart_read(&f->parts, &sink, data, len, err);
}


/* a decimal number; strtod() would take hexadecimal ones and white space */

static int
llm_sound_number(llm_str_t s, double *d)
{
    char   text[32];
    char  *end;

    if (s.len == 0 || s.len >= sizeof(text)) {
        return LLM_ERROR;
    }

    memcpy(text, s.data, s.len);
    text[s.len] = '\0';

    if (strspn(text, "+-.0123456789eE") != s.len) {
        return LLM_ERROR;
    }

    *d = strtod(text, &end);

    return (end == text + s.len && *d == *d) ? LLM_OK : LLM_ERROR;
}


/* digits, whose number is at most LLM_SOUND_SEEDS */

static int
llm_sound_seed(llm_str_t s, uint64_t *n)
{
    size_t  i;

    for (i = 0, *n = 0; i < s.len && *n <= LLM_SOUND_SEEDS; i++) {
        if (s.data[i] < '0' || s.data[i] > '9') {
            return LLM_ERROR;
        }

        *n = *n * 10 + (uint64_t) (s.data[i] - '0');
    }

    return *n <= LLM_SOUND_SEEDS ? LLM_OK : LLM_ERROR;
}


static int
llm_sound_values(llm_sound_form_t *f, llm_err_t *err)
{
    double     d;
    llm_str_t  s;

    s = llm_sound_value(f, LLM_SOUND_FORMAT);
    f->format = LLM_TRANSCRIPT_JSON;

    if (s.len && llm_transcript_format(s, &f->format) != LLM_OK) {
        return llm_sound_bad(err, "response_format", "it can be 'json', "
                             "'text', 'srt', 'verbose_json' or 'vtt'");
    }

    s = llm_sound_value(f, LLM_SOUND_TEMPERATURE);
    f->temperature = -1;

    if (s.len) {
        if (llm_sound_number(s, &d) != LLM_OK || d < 0 || d > 1) {
            return llm_sound_bad(err, "temperature", "it can be 0 to 1");
        }

        f->temperature = d > 0 ? d : -1;
    }

    s = llm_sound_value(f, LLM_SOUND_SEED);

    if (s.len && llm_sound_seed(s, &f->seed) != LLM_OK) {
        return llm_sound_bad(err, "seed", "it can be a whole number from 0 to "
                             "9007199254740992");
    }

    s = llm_sound_value(f, LLM_SOUND_STREAM);

    if (s.len && !llm_str_is(s, "true") && !llm_str_is(s, "false")
        && !llm_str_is(s, "True") && !llm_str_is(s, "False"))
    {
        return llm_sound_bad(err, "stream", "it can be 'true' or 'false'");
    }

    f->stream = s.len && (s.data[0] | 0x20) == 't';
    s = llm_sound_value(f, LLM_SOUND_LANGUAGE);
    f->language = -1;

    if (s.len && memchr(s.data, '\0', s.len)) {
        return llm_sound_bad(err, "language", "it has a byte that is zero");
    }

    return s.len && !f->translate
           ? llm_transcript_language(s, &f->language, err) : LLM_OK;
}


int
llm_sound_form_end(llm_sound_form_t *f, llm_err_t *err)
{
    if (llm_multipart_end(&f->parts, err) != LLM_OK
        || llm_sound_values(f, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    if (!f->files) {
        return llm_fail_with(err, 400, "missing_required_parameter", "file",
                             "Missing required parameter: 'file'.");
    }

    f->model = llm_sound_value(f, LLM_SOUND_MODEL);
    f->prompt = llm_sound_value(f, LLM_SOUND_PROMPT);

    if (f->granular && f->format != LLM_TRANSCRIPT_VERBOSE) {
        return llm_sound_bad(err, "timestamp_granularities", "they need "
                             "'response_format' to be 'verbose_json'");
    }

    if (f->logprobs && f->format != LLM_TRANSCRIPT_JSON) {
        return llm_sound_bad(err, "include", "'logprobs' needs "
                             "'response_format' to be 'json'");
    }

    f->has = f->logprobs ? LLM_TRANSCRIPT_LOGPROBS : 0;
    f->has |= f->granular ? (unsigned) f->granular : LLM_TRANSCRIPT_SEGMENTS;

    return LLM_OK;
}
