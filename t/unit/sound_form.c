/*
 * The form of a transcription.
 */

#include "engine/api/sound_form.h"

#include "t/unit/tap.h"

static char              body[400000];
static size_t            len;
static char              got[64];
static size_t            n_got;
static llm_sound_form_t  form;
static llm_err_t         err;


static int
file(void *ctx, const void *data, size_t n, llm_err_t *e)
{
    (void) ctx;

    if (n_got + n >= sizeof(got)) {
        return llm_fail_with(e, 413, NULL, "file", "too large");
    }

    memcpy(got + n_got, data, n);
    n_got += n;

    return LLM_OK;
}


/* fields as "name=value", separated by |; @ before a name: a file; ^ in one: a
   byte that is zero */

static int
send(const char *fields, int translate)
{
    int          rc;
    size_t       n, i;
    const char  *p, *eq;

    len = 0;
    n_got = 0;
    memset(&err, 0, sizeof(err));

    for (p = fields; *p; p += n + (p[n] == '|')) {
        n = strcspn(p, "|");
        eq = memchr(p, '=', n);
        len += (size_t) sprintf(body + len, "--b\r\nContent-Disposition: "
                                "form-data; name=\"%.*s\"%s\r\n\r\n%.*s\r\n",
                                (int) (eq - p - (*p == '@')), p + (*p == '@'),
                                *p == '@' ? "; filename=\"a.wav\"" : "",
                                (int) (p + n - eq - 1), eq + 1);
    }

    len += (size_t) sprintf(body + len, "--b--\r\n");

    for (i = 0; i < len; i++) {
        body[i] = body[i] == '^' ? '\0' : body[i];
    }

    llm_sound_form_free(&form);
    rc = llm_sound_form_init(&form, llm_str("multipart/form-data; boundary=b"),
                             translate, &err);
    form.file = file;

    for (i = 0; i < len && rc == LLM_OK; i += 3) {
        rc = llm_sound_form_read(&form, body + i, llm_min(3, len - i), &err);
    }

    return rc == LLM_OK ? llm_sound_form_end(&form, &err) : rc;
}


static void
refused(const char *fields, int status, const char *param, const char *message)
{
    is_int(send(fields, 0), LLM_ERROR, "%s", fields);
    ok(err.status == status && strcmp(err.param, param) == 0
       && strstr(err.msg, message), "%d, '%s': %s", err.status, err.param,
       err.msg);
}


int
main(void)
{
    size_t  n;

    is_int(send("model=whisper-1|@file=RIFF\r\n--|prompt= Hi, \xc3\xa4 |"
                "language=German|temperature=0.4|response_format=verbose_json|"
                "timestamp_granularities[]=word|timestamp_granularities[]="
                "segment|stream=true|seed=7|unknown=x", 0), LLM_OK,
           "all fields: %s", err.msg);
    ok(n_got == 8 && memcmp(got, "RIFF\r\n--", 8) == 0, "the file");
    ok(llm_str_is(form.model, "whisper-1"), "the model");
    ok(llm_str_is(form.prompt, " Hi, \xc3\xa4 "), "the prompt");
    ok(form.language == 2 && form.temperature == 0.4 && form.stream
       && form.seed == 7 && form.format == LLM_TRANSCRIPT_VERBOSE
       && form.has == (LLM_TRANSCRIPT_WORDS | LLM_TRANSCRIPT_SEGMENTS),
       "the others");

    is_int(send("@file=|model=", 0), LLM_OK, "few fields");
    ok(form.model.len == 0 && form.language == -1 && form.temperature == -1
       && !form.stream && form.format == LLM_TRANSCRIPT_JSON
       && form.has == LLM_TRANSCRIPT_SEGMENTS && n_got == 0, "defaults");

    is_int(send("@file=x|include=logprobs|temperature=0|language=", 0), LLM_OK,
           "log probabilities");
    ok((form.has & LLM_TRANSCRIPT_LOGPROBS) && form.temperature == -1,
       "and a temperature that may rise");
    is_int(send("@file=x|language=klingon", 1), LLM_OK,
           "a translation has no language");
    is_int(send("@file=x|model=a|model=b", 0), LLM_OK, "a field twice");
    ok(llm_str_is(form.model, "b"), "the last one counts");
    is_int(send("@file=x|seed=9007199254740992", 0), LLM_OK,
           "the largest seed");
    ok(form.seed == UINT64_C(1) << 53, "counts");
    is_int(send("@file=x|timestamp_granularities[]=word|response_format="
                "verbose_json", 0), LLM_OK, "words alone");
    ok(form.has == LLM_TRANSCRIPT_WORDS, "have no segments beside them");

    refused("model=m", 400, "file", "'file'");
    refused("@file=x|@file=y", 400, "file", "more than one");
    refused("@file=x|response_format=diarized_json", 400, "response_format",
            "'vtt'");
    refused("@file=x|temperature=1.5", 400, "temperature", "0 to 1");
    refused("@file=x|temperature=hot", 400, "temperature", "0 to 1");
    refused("@file=x|temperature=nan", 400, "temperature", "0 to 1");
    refused("@file=x|temperature=0x1", 400, "temperature", "0 to 1");
    refused("@file=x|temperature= 0.5", 400, "temperature", "0 to 1");
    refused("@file=x|seed=-1", 400, "seed", "0 to 9007199254740992");
    refused("@file=x|seed=1.5", 400, "seed", "a whole number");
    refused("@file=x|seed=9007199254740993", 400, "seed", "a whole number");
    refused("@file=x|seed=99999999999999999999999999", 400, "seed", "a whole");
    refused("@file=x|stream=maybe", 400, "stream", "'true'");
    refused("@file=x|language=klingon", 400, "language", "klingon");
    refused("@file=x|language=e^n", 400, "language", "a byte that is zero");
    refused("@file=x|temperature=0^", 400, "temperature", "0 to 1");
    refused("@file=x|seed=1^", 400, "seed", "a whole number");
    refused("@file=x|timestamp_granularities[]=char", 400,
            "timestamp_granularities", "'word'");
    refused("@file=x|timestamp_granularities[]=word", 400,
            "timestamp_granularities", "'verbose_json'");
    refused("@file=x|include[]=item", 400, "include", "'logprobs'");
    refused("@file=x|include[]=logprobs|response_format=text", 400, "include",
            "'json'");
    refused("@file=x|chunking_strategy={\"type\":\"server_vad\"}", 400,
            "chunking_strategy", "'auto'");
    refused("@file=x|chunking_strategy[type]=server_vad", 400,
            "chunking_strategy", "'auto'");
    refused("@file=x|chunking_strategy[threshold]=0.5", 400,
            "chunking_strategy", "'auto'");
    refused("@file=x|known_speaker_names[]=Ann", 400, "known_speaker_names",
            "speakers");
    refused("@file=012345678901234567890123456789012345678901234567890123456789"
            "0123456789", 413, "file", "too large");

    len = (size_t) sprintf(body, "--b\r\nContent-Disposition: form-data; "
                           "name=prompt\r\n\r\n");
    n = len + 300000;
    memset(body + len, 'x', 300000);
    llm_sound_form_free(&form);
    (void) llm_sound_form_init(&form, llm_str("multipart/form-data; "
                                              "boundary=b"), 0, &err);
    is_int(llm_sound_form_read(&form, body, n, &err), LLM_ERROR,
           "a long prompt");
    ok(err.status == 413 && strcmp(err.param, "prompt") == 0, "%s", err.msg);
    llm_sound_form_free(&form);

    is_int(llm_sound_form_init(&form, llm_str("application/json"), 0, &err),
           LLM_ERROR, "no form");
    is_int(err.status, 415, "is another type");
    llm_sound_form_free(&form);

    return done_testing();
}
