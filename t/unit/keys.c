/*
 * API keys: the digest, one line of a file at its edges, hostile files, the
 * look-up among 100,000 keys, and what a key allows.
 */

#include "engine/api/api.h"
#include "engine/api/key_line.h"
#include "engine/base/sha256.h"
#include "t/unit/cpu.h"
#include "t/unit/tap.h"

#include <unistd.h>

#define MANY  100000

static const char  good_digest[] =      /* of "secret" */
    "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";


static void
hex(const unsigned char *p, char *out)
{
    int  i;

    for (i = 0; i < LLM_SHA256_LEN; i++) {
        sprintf(out + 2 * i, "%02x", p[i]);
    }
}


/* digests by Python's hashlib, of lengths around a block's end */

static void
test_digest(void)
{
    char           text[65];
    size_t         i, k;
    unsigned char  data[1000], digest[LLM_SHA256_LEN];

    static const struct {
        size_t       len;
        const char  *want;
    } cases[] = {
        { 0, "e3b0c44298fc1c149afbf4c8996fb924"
             "27ae41e4649b934ca495991b7852b855" },
        { 1, "4bf5122f344554c53bde2ebb8cd2b7e3"
             "d1600ad631c385a5d7cce23c7785459a" },
        { 3, "6ab0dba1f4f1dfbb37b4f9eeb092c09f"
             "ca4900ad32bdcd147d8dde35d6c87c35" },
        { 55, "81afe5b788dc2ce138ff83d9b20164db"
              "75a94d75d2b2432eea4a0ef605088c72" },
        { 56, "2aba54f0ac632420a2b502431408866e"
              "40e1d5e430df4cd822642c78ab2eb9c1" },
        { 63, "733d3d4ee79ee67145bf73da13588f6f"
              "235d37414fc64b14a2f00f1762792f5e" },
        { 64, "79322907b3e9d013d7dc2c2f256674db"
              "f733045cde01df3539271c6f5605feb8" },
        { 65, "d85c007c6eb440f085afa2b84f6f2bce"
              "4658b240e9f62cb1364bf0485a57e720" },
        { 119, "6c87eedf096b345de205b702e5223b73"
               "b447a3207791ded3ea007ba15ed6736e" },
        { 120, "42500cf6a1e3936d6b9e0bcfe296d654"
               "b63255e525487d3634d0b15fde591c4d" },
        { 128, "489d55fea9a73af36b6dd0be7b4117d8"
               "e5683386d39544e8a44c99a87f368707" },
        { 1000, "6b0df76627243d095b0c4400cb658b7e"
                "804dd03461cc03aee8fc8fe0bcada168" },
    };

    for (i = 0; i < llm_nelems(cases); i++) {
        for (k = 0; k < cases[i].len; k++) {
            data[k] = (unsigned char) (k * 7 + cases[i].len);
        }

        is_int(llm_sha256(data, cases[i].len, digest), LLM_OK, "made");
        hex(digest, text);
        is_str(text, cases[i].want, "SHA-256 of %zu bytes", cases[i].len);
    }
}


static void
test_times(void)
{
    size_t     i;
    int64_t    t;
    llm_str_t  s;

    static const struct {
        const char  *text;
        int64_t      want;              /* -1: refused */
    } cases[] = {
        { "1970-01-01", 0 },
        { "2000-02-29", 951782400 },
        { "2024-02-29T23:59:59Z", 1709251199 },
        { "2026-12-31", 1798675200 },
        { "2026-12-31T12:00:00Z", 1798718400 },
        { "2026-12-31T12:00:00+01:00", 1798714800 },
        { "2026-12-31T12:00:00-05:30", 1798738200 },
        { "2100-03-01", 4107542400 },
        { "9999-12-31", 253402214400 },
        { "2023-02-29", -1 },
        { "2100-02-29", -1 },
        { "2026-13-01", -1 },
        { "2026-00-10", -1 },
        { "2026-04-31", -1 },
        { "2026-04-00", -1 },
        { "1969-12-31", -1 },
        { "2026-12-31T12:00:00", -1 },
        { "2026-12-31T24:00:00Z", -1 },
        { "2026-12-31T12:60:00Z", -1 },
        { "2026-12-31T12:00:00Zx", -1 },
        { "2026-12-31T12:00:00+1:00", -1 },
        { "2026-12-31T12:00:00+", -1 },
        { "2026-12-31T", -1 },
        { "2026-12-31 12:00:00Z", -1 },
        { "2026-12", -1 },
        { "26-12-31", -1 },
        { "", -1 },
    };

    for (i = 0; i < llm_nelems(cases); i++) {
        s.data = cases[i].text;
        s.len = strlen(s.data);
        t = -1;

        if (llm_key_read_time(s, &t) != LLM_OK) {
            t = -1;
        }

        is_int(t, cases[i].want, "the time '%s'", cases[i].text);
    }
}


/* a table of one line, "$" being a digest */

static llm_keys_t *
table(const char *text, llm_err_t *err)
{
    llm_buf_t    b;
    llm_keys_t  *t;
    const char  *p;

    llm_buf_init(&b, 0);

    for (p = text; *p; p++) {
        if (*p == '$') {
            (void) llm_buf_adds(&b, good_digest);

        } else {
            (void) llm_buf_addc(&b, *p);
        }
    }

    memset(err, 0, sizeof(llm_err_t));

    t = llm_keys_parse(b.data, b.len, err);

    llm_buf_free(&b);

    return t;
}


static void
test_refused(void)
{
    size_t       i;
    llm_err_t    err;
    llm_keys_t  *t;

    static const struct {
        const char  *text;
        const char  *want;              /* in the message */
    } cases[] = {
        { "", "it is empty" },
        { "x", "line 1: " },
        { "# a\n\n{\"id\": \"a\"", "line 3: " },
        { "[]", "line 1: it is not a JSON object" },
        { "{}", "line 1: \"id\" is missing" },
        { "{\"id\":\"a\"}", "line 1: \"sha256\" is missing" },
        { "{\"id\":null,\"sha256\":\"$\"}", "\"id\" is missing" },
        { "{\"id\":\"a\",\"sha256\":null}", "\"sha256\" is missing" },
        { "{\"id\":\"\",\"sha256\":\"$\"}", "\"id\" is not a string with" },
        { "{\"id\":1,\"sha256\":\"$\"}", "\"id\" is not a string with" },
        { "{\"id\":\"a\",\"sha256\":\"$0\"}", "\"sha256\" is not a string" },
        { "{\"id\":\"a\",\"sha256\":7}", "\"sha256\" is not a string" },
        { "{\"id\":\"a\",\"sha256\":\"g123456789abcdef0123456789abcdef"
          "0123456789abcdef0123456789abcdef\"}",
          "\"sha256\" is not a string" },
        { "{\"id\":\"a\",\"sha256\":\"$\",\"tenant\":\"\"}",
          "\"tenant\" is not a string with" },
        { "{\"id\":\"a\",\"sha256\":\"$\",\"tenant\":[]}",
          "\"tenant\" is not a string with" },
        { "{\"id\":\"a\\n\",\"sha256\":\"$\"}",
          "\"id\" has a control character" },
        { "{\"id\":\"a\",\"sha256\":\"$\",\"plan\":\"\\u007f\"}",
          "\"plan\" has a control character" },
        { "{\"id\":\"a\",\"sha256\":\"$\",\"pl\\tan\":1}",
          "has a control character" },
        { "{\"id\":\"a\",\"sha256\":\"$\",\"scopes\":\"embed\"}",
          "\"scopes\" is not an array" },
        { "{\"id\":\"a\",\"sha256\":\"$\",\"scopes\":[1]}",
          "\"scopes\" has something else" },
        { "{\"id\":\"a\",\"sha256\":\"$\",\"scopes\":[\"Embed\"]}",
          "the scope \"Embed\" is unknown" },
        { "{\"id\":\"a\",\"sha256\":\"$\",\"models\":\"a\"}",
          "\"models\" is not an array" },
        { "{\"id\":\"a\",\"sha256\":\"$\",\"models\":[\"\"]}",
          "\"models\" has something else" },
        { "{\"id\":\"a\",\"sha256\":\"$\",\"models\":[\"a*b\"]}",
          "has a \"*\" that is not at its end" },
        { "{\"id\":\"a\",\"sha256\":\"$\",\"models\":[\"**\"]}",
          "has a \"*\" that is not at its end" },
        { "{\"id\":\"a\",\"sha256\":\"$\",\"expires\":\"soon\"}",
          "\"expires\" is neither a time" },
        { "{\"id\":\"a\",\"sha256\":\"$\",\"not_before\":1.5}",
          "\"not_before\" is neither a time" },
        { "{\"id\":\"a\",\"sha256\":\"$\"}\n#\n{\"id\":\"b\",\"sha256\":"
          "\"$\"}", "line 3: line 1 has the same sha256" },
        { "{\"id\":\"a\",\"sha256\":\"$\"}\n{\"id\":\"a\",\"sha256\":\"0123"
          "456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"}",
          "line 2: line 1 has the id \"a\", too" },
        { "{\"id\":\"a\",\"sha256\":\"$\"} {}", "line 1: " },
        { "{\"id\":\"a\",\"sha256\":\"$\",\"a\":[[[[[[[[[[1]]]]]]]]]]}",
          "line 1: " },
        { "{\"id\":\"a\",\"sha256\":\"$\",\"Sha256\":\"x\"}",
          "line 1: \"Sha256\" has to be written as \"sha256\"" },
        { "{\"id\":\"a\",\"sha256\":\"$\",\"SCOPES\":[]}",
          "line 1: \"SCOPES\" has to be written as \"scopes\"" },
        { "{\"id\":\"a\",\"sha256\":\"$\",\"plan\":1,\"x\":2,\"Plan\":3}",
          "line 1: \"Plan\" is there twice" },
        { "{\"id\":\"a\",\"sha256\":\"$\",\"x\":\"plan\",\"y\":1,\"PLAN\":2,"
          "\"X\":1}", "line 1: \"X\" is there twice" },
        { "{\"id\":\"\xff\",\"sha256\":\"$\"}", "line 1: " },
        { "\xef\xbb\xbf", "it is empty" },
        { "\n", "it is empty" },
        { " \t\r\n\r\n", "it is empty" },
        { "\xef\xbb\xbf\n", "it is empty" },
        { "#\n{\"id\":\"a\",\"sha256\":\"$\",\"scopes\":[\"embed\"],"
          "\"scopes\":[\"generate\"]}",
          "line 2: \"scopes\" is there twice" },
        { "{\"id\":\"a\",\"sha256\":\"$\",\"sha256\":\"$\"}",
          "line 1: \"sha256\" is there twice" },
        { "{\"id\":\"a\",\"sha256\":\"$\",\"expires\":1,"
          "\"expires\":null}", "line 1: \"expires\" is there twice" },
        { "{\"id\":\"a\",\"sha256\":\"$\",\"x\":1,\"\\u0078\":2}",
          "line 1: \"x\" is there twice" },
        { "{\"id\":\"a\",\"sha256\":\"$\",\"x\":{\"y\":1,\"y\":2}}",
          "line 1: \"y\" is there twice" },
        { "\xef\xbb\xbf\xef\xbb\xbf#", "line 1: " },
    };

    for (i = 0; i < llm_nelems(cases); i++) {
        t = table(cases[i].text, &err);

        if (!ok(t == NULL && strstr(err.msg, cases[i].want),
                "refused: %s", cases[i].want))
        {
            printf("# %s\n", err.msg);
        }

        llm_keys_free(t);
    }

    t = table("\r\n # none\n", &err);
    ok(t && llm_keys_count(t) == 0
       && llm_keys_find(t, "secret", 6) == NULL, "a file without keys");
    llm_keys_free(t);

    t = table("\xef\xbb\xbf{\"id\":\"a\",\"sha256\":\"$\"}", &err);
    ok(t && llm_keys_find(t, "secret", 6), "a mark before the first line");
    llm_keys_free(t);

    t = table("{\"id\":\"a\",\"x\":}", &err);
    is_str(err.msg, "line 1: an unexpected token at column 15.",
           "one line's number, and no request");
}


static const char *
member(const llm_key_t *k, const char *name)
{
    const char  *value;

    value = k ? llm_key_member(k, name, strlen(name)) : NULL;

    return value ? value : "(none)";
}


static int
names(const llm_key_t *k, const char *name)
{
    llm_str_t  s;

    s.data = name;
    s.len = strlen(name);

    return k && llm_key_names_model(k, s);
}


static void
test_key(void)
{
    llm_err_t         err;
    llm_keys_t       *t;
    const llm_key_t  *k;

    t = table("  {\"id\":\"ann \xc3\xa4\",\"sha256\":\"$\",\"plan\":\"gold\","
              "\"tpm\":60000,\"rate\":0.5,\"open\":true,\"none\":null,"
              "\"models\":[\"demo\",\"gpt-*\"],\"scopes\":[\"embed\",\"admin\""
              "],\"not_before\":100,\"expires\":\"1970-01-01T00:03:20Z\","
              "\"of\":{\"a\":[1,2]}}\r\n", &err);
    k = t ? llm_keys_find(t, "secret", 6) : NULL;

    if (!ok(k != NULL, "a key is found")) {
        printf("# %s\n", err.msg);
        return;
    }

    is_str(member(k, "id"), "ann \xc3\xa4", "its id");
    is_str(member(k, "ID"), "ann \xc3\xa4", "in any case");
    is_str(member(k, "tenant"), "ann \xc3\xa4", "which is the tenant, too");
    is_str(member(k, "plan"), "gold", "a string");
    is_str(member(k, "tpm"), "60000", "a number");
    is_str(member(k, "rate"), "0.5", "a fraction");
    is_str(member(k, "open"), "true", "a word");
    is_str(member(k, "of"), "{\"a\":[1,2]}", "an object");
    is_str(member(k, "scopes"), "[\"embed\",\"admin\"]", "scopes");
    is_str(member(k, "expires"), "1970-01-01T00:03:20Z", "expires");
    is_str(member(k, "none"), "(none)", "null is nothing");
    is_str(member(k, "sha256"), "(none)", "no digest");
    is_str(member(k, "demo"), "(none)", "a model is no member");
    is_str(member(k, ""), "(none)", "no name");

    is_int(k->scopes, LLM_SCOPE_EMBED | LLM_SCOPE_ADMIN, "the scopes");
    is_int(llm_key_age(k, 99), -1, "not yet");
    is_int(llm_key_age(k, 100), 0, "now");
    is_int(llm_key_age(k, 199), 0, "still");
    is_int(llm_key_age(k, 200), 1, "no more");

    ok(names(k, "demo") && names(k, "gpt-") && names(k, "gpt-4o"),
       "its models");
    ok(!names(k, "demo2") && !names(k, "dem") && !names(k, "gpt")
       && !names(k, "") && !names(k, "gpt_x"), "no others");

    ok(llm_keys_find(t, "secret", 5) == NULL
       && llm_keys_find(t, "Secret", 6) == NULL
       && llm_keys_find(t, "", 0) == NULL
       && llm_keys_find(t, good_digest, 64) == NULL, "no other secret");

    llm_keys_free(t);

    t = table("{\"id\":\"a\",\"sha256\":\"$\",\"tenant\":\"t\"}", &err);
    k = t ? llm_keys_find(t, "secret", 6) : NULL;

    ok(k && k->any_model && k->scopes == LLM_SCOPE_USUAL
       && !(k->scopes & LLM_SCOPE_ADMIN), "a key with no limits, but admin");
    is_str(member(k, "tenant"), "t", "its tenant");
    is_int(k ? llm_key_age(k, 1) : 1, 0, "is valid at any time");

    llm_keys_free(t);

    t = table("{\"id\":\"a\",\"sha256\":\"$\",\"models\":[],\"scopes\":[]}",
              &err);
    k = t ? llm_keys_find(t, "secret", 6) : NULL;
    ok(k && !k->any_model && k->scopes == 0 && !names(k, "demo"),
       "a key with nothing");

    llm_keys_free(t);
}


static void
test_scopes(void)
{
    uint32_t     bit;
    const char  *name;

    for (bit = 1; bit <= LLM_SCOPE_ADMIN; bit *= 2) {
        name = llm_scope_name(bit);
        is_int(llm_scope_bit(name, strlen(name)), bit, "scope '%s'", name);
    }

    ok(llm_scope_bit("", 0) == 0 && llm_scope_bit("adm", 3) == 0
       && *llm_scope_name(0) == '\0'
       && *llm_scope_name(2 * LLM_SCOPE_ADMIN) == '\0', "and no others");
    is_int(llm_scope_bit("admin", 5), LLM_SCOPE_ADMIN, "admin");
}


static void
test_mask(void)
{
    char  out[LLM_KEY_MASK];

    llm_key_mask(out, sizeof(out), "sk-llm-0123456789abcdefghijklmnopqrstu",
                 38);
    is_str(out, "sk-ll**************rstu", "a masked key");

    llm_key_mask(out, sizeof(out), "a password of a person", 22);
    is_str(out, "**********************", "a short one");

    llm_key_mask(out, sizeof(out), "", 0);
    is_str(out, "", "an empty one");
}


static void
test_models(void)
{
    llm_err_t         err;
    llm_str_t         alias;
    llm_keys_t       *t;
    llm_api_conf_t    conf;
    llm_api_model_t   models[3];
    const llm_key_t  *k;

    memset(&conf, 0, sizeof(conf));
    memset(models, 0, sizeof(models));

    alias = llm_str("gpt-4o");
    models[0].name = llm_str("demo");
    models[0].aliases = &alias;
    models[0].n_aliases = 1;
    models[1].name = llm_str("big");
    models[1].is_default = 1;
    models[2].name = llm_str("gpt-5");

    conf.models = models;
    conf.n_models = 3;
    conf.allowed = 7;
    conf.fallback = 1;

    t = table("{\"id\":\"a\",\"sha256\":\"$\",\"models\":[\"gpt-4*\"]}", &err);
    k = t ? llm_keys_find(t, "secret", 6) : NULL;

    if (!ok(k != NULL, "a key of one alias")) {
        return;
    }

    conf.denied = llm_api_denied(k, models, 3);
    is_int(conf.denied, 6, "the others are denied");
    is_int(llm_api_resolve(&conf, llm_str("demo"), &err), 0, "by its name");
    is_int(llm_api_resolve(&conf, llm_str("gpt-4o"), &err), 0, "by its alias");
    is_int(llm_api_resolve(&conf, llm_str("gpt-5"), &err), -1, "not another");
    ok(err.status == 403 && strcmp(err.code, "model_not_allowed") == 0
       && strcmp(err.param, "model") == 0, "403: %s", err.msg);

    err.status = 0;
    ok(llm_api_resolve(&conf, llm_str("nothing"), &err) == -1
       && err.status == 403, "nor by the fallback");
    err.status = 0;
    ok(llm_api_resolve(&conf, llm_str(""), &err) == -1 && err.status == 403,
       "nor by default");

    conf.fallback = -1;
    err.status = 0;
    ok(llm_api_resolve(&conf, llm_str("nothing"), &err) == -1
       && err.status == 404, "what there is not is a 404");

    llm_keys_free(t);

    t = table("{\"id\":\"a\",\"sha256\":\"$\"}", &err);
    k = t ? llm_keys_find(t, "secret", 6) : NULL;
    is_int(k ? llm_api_denied(k, models, 3) : 1, 0, "a key of all models");
    llm_keys_free(t);
}


/* ---- files ---- */

static void
test_files(void)
{
    char           dir[] = "/tmp/llm-keys-XXXXXX", path[64], other[64];
    FILE          *f;
    llm_err_t      err;
    llm_keys_t    *t;
    llm_keys_id_t  seen, read, now;

    if (mkdtemp(dir) == NULL) {
        ok(0, "no folder");
        return;
    }

    snprintf(path, sizeof(path), "%s/keys", dir);

    ok(llm_keys_read(path, NULL, &err) == NULL && strstr(err.msg, path)
       && strstr(err.msg, "No such file"), "no file: %s", err.msg);
    ok(llm_keys_read(dir, NULL, &err) == NULL && strstr(err.msg, "a folder"),
       "a folder");

    f = fopen(path, "w");
    fprintf(f, "# keys\n{\"id\":\"a\",\"sha256\":\"%s\"}", good_digest);
    fclose(f);

    t = llm_keys_read(path, NULL, &err);
    ok(t && llm_keys_find(t, "secret", 6), "a file, its last line open");
    llm_keys_free(t);

    /* one that takes its place after it was looked at, before it is read */

    llm_keys_which(path, &seen);
    snprintf(other, sizeof(other), "%s/other", dir);
    f = fopen(other, "w");
    fclose(f);
    (void) rename(other, path);

    read = seen;
    ok(llm_keys_read(path, &read, &err) == NULL, "another, empty one");
    llm_keys_which(path, &now);
    ok(memcmp(&read, &now, sizeof(now)) == 0
       && memcmp(&read, &seen, sizeof(now)) != 0, "it is known which was read");

    f = fopen(path, "w");
    fprintf(f, "# keys\n{\"id\":\"a\",\"sha256\":\"%s\"}", good_digest);
    fclose(f);

    ok(truncate(path, 40) == 0 && llm_keys_read(path, NULL, &err) == NULL
       && strstr(err.msg, path) && strstr(err.msg, ": line 2: "),
       "a torn one: %s", err.msg);
    ok(truncate(path, 0) == 0 && llm_keys_read(path, NULL, &err) == NULL
       && strstr(err.msg, "it is empty"), "an empty one");

    (void) unlink(path);
    (void) rmdir(dir);
}


/* ---- many keys ---- */

static double
ms_since(uint64_t begin)
{
    return (double) (cpu_us() - begin) / 1000;
}


static double
digest_us(const char *text, size_t len)
{
    uint32_t       i;
    uint64_t       begin;
    unsigned char  digest[LLM_SHA256_LEN];

    begin = cpu_us();

    for (i = 0; i < MANY; i++) {
        (void) llm_sha256(text, len, digest);
    }

    return ms_since(begin) * 1000 / MANY;
}


static void
secret_of(uint32_t i, char secret[64])
{
    snprintf(secret, 64, "sk-llm-abcdefghijklmnopqrstuvwxyz01234567-%08u", i);
}


/* all keys are found by their secrets, in another order than the file's */

static void
look_up(const llm_keys_t *t)
{
    char              id[32], (*secrets)[64];
    double            best;
    uint32_t          i, found, round;
    uint64_t          begin;
    const llm_key_t  *k;

    secrets = malloc((size_t) MANY * sizeof(*secrets));

    for (i = 0; i < MANY; i++) {
        secret_of((i * 7919) % MANY, secrets[i]);
    }

    for (round = 0, best = 1e9; round < 5; round++) {
        begin = cpu_us();

        for (i = 0, found = 0; i < MANY; i++) {
            found += llm_keys_find(t, secrets[i], 50) != NULL;
        }

        best = llm_min(best, ms_since(begin) * 1000 / MANY);
    }

    printf("# a look-up takes %.3f us, a digest of it %.3f us\n", best,
           digest_us(secrets[0], 50));
    is_int(found, MANY, "all are found");

    k = llm_keys_find(t, secrets[MANY - 1], 50);
    snprintf(id, sizeof(id), "key-%u", ((MANY - 1) * 7919) % MANY);
    is_str(member(k, "id"), id, "and each is its own");

    free(secrets);
}


static void
test_many(void)
{
    char           secret[64], text[65];
    uint32_t       i;
    uint64_t       begin;
    llm_buf_t      b;
    llm_err_t      err;
    llm_keys_t    *t;
    unsigned char  digest[LLM_SHA256_LEN];

    llm_buf_init(&b, 0);

    for (i = 0; i < MANY; i++) {
        secret_of(i, secret);
        (void) llm_sha256(secret, strlen(secret), digest);
        hex(digest, text);
        (void) llm_buf_addf(&b, "{\"id\":\"key-%u\",\"sha256\":\"%s\","
                            "\"tenant\":\"t%u\",\"plan\":\"gold\"}\n", i,
                            text, i / 3);
    }

    begin = cpu_us();
    t = llm_keys_parse(b.data, b.len, &err);
    printf("# %d keys are read in %.0f ms\n", MANY, ms_since(begin));
    llm_buf_free(&b);

    if (!ok(t && llm_keys_count(t) == MANY, "%d keys", MANY)) {
        printf("# %s\n", err.msg);
        return;
    }

    look_up(t);

    begin = cpu_us();
    llm_keys_free(t);
    printf("# they are freed in %.1f ms\n", ms_since(begin));
}


/* digests that begin alike, which a simple hash would put into one place */

static void
test_alike(void)
{
    uint32_t     i;
    uint64_t     begin;
    llm_buf_t    b;
    llm_err_t    err;
    llm_keys_t  *t;

    llm_buf_init(&b, 0);

    for (i = 0; i < MANY; i++) {
        (void) llm_buf_addf(&b, "{\"id\":\"%u\",\"sha256\":\"%056u%08x\"}\n",
                            i, 0, i);
    }

    begin = cpu_us();
    t = llm_keys_parse(b.data, b.len, &err);
    printf("# equal beginnings are read in %.0f ms\n", ms_since(begin));
    ok(t && llm_keys_count(t) == MANY, "equal beginnings");
    llm_keys_free(t);
    llm_buf_free(&b);
}


static void
test_too_large(void)
{
    char         line[67];
    size_t       i;
    llm_buf_t    b;
    llm_err_t    err;
    llm_keys_t  *t;

    llm_buf_init(&b, 0);
    (void) llm_buf_adds(&b, "{\"id\":\"a\",\"x\":\"");

    while (b.len < LLM_KEY_LINE) {
        (void) llm_buf_adds(&b, "0123456789abcdef");
    }

    (void) llm_buf_adds(&b, "\"}");
    ok(llm_keys_parse(b.data, b.len, &err) == NULL
       && strstr(err.msg, "more than 16384"), "a long line");

    b.len = 0;
    memset(line, 'x', sizeof(line) - 2);
    memcpy(line + sizeof(line) - 2, "\n", 2);

    while (b.len <= LLM_KEYS_MAX * strlen(line)) {
        (void) llm_buf_adds(&b, line);
    }

    ok(llm_keys_parse(b.data, b.len, &err) == NULL
       && strstr(err.msg, "more than 1048576 keys"), "too many lines");

    for (i = 0; i < b.len; i += 66) {
        b.data[i] = '#';
    }

    t = llm_keys_parse(b.data, b.len, &err);
    ok(t && llm_keys_count(t) == 0, "unless they are comments");
    llm_keys_free(t);

    llm_buf_free(&b);
}


int
main(void)
{
    test_digest();
    test_times();
    test_refused();
    test_key();
    test_scopes();
    test_mask();
    test_models();
    test_files();
    test_many();
    test_alike();
    test_too_large();

    return done_testing();
}
