/*
 * The command key: makes an API key from 32 random bytes.  The line for a file
 * of llm_api_keys has only the SHA-256 of the secret, so that a reader of the
 * file learns no keys.
 */

#include "engine/api/json.h"
#include "engine/api/keys.h"
#include "engine/base/sha256.h"
#include "engine/cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <sys/random.h>

#define LLM_CLI_SECRET  32              /* random bytes of the secret */
#define LLM_CLI_ID      6               /* random bytes of an id, without
                                           --id */


/* base64url without padding (RFC 4648, section 5) */

static void
llm_cli_add_base64url(llm_buf_t *b, const unsigned char *p, size_t len)
{
    size_t    i, n;
    uint32_t  v;

    static const char  digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

    for (i = 0; i < len; i += 3) {
        n = llm_min(len - i, (size_t) 3);

        v = (uint32_t) p[i] << 16
            | (n > 1 ? (uint32_t) p[i + 1] << 8 : 0)
            | (n > 2 ? p[i + 2] : 0);

        (void) llm_buf_addc(b, digits[v >> 18]);
        (void) llm_buf_addc(b, digits[(v >> 12) & 63]);

        if (n > 1) {
            (void) llm_buf_addc(b, digits[(v >> 6) & 63]);
        }

        if (n > 2) {
            (void) llm_buf_addc(b, digits[v & 63]);
        }
    }
}


static void
llm_cli_add_member(llm_buf_t *b, const char *name, const char *value)
{
    if (value) {
        (void) llm_buf_addf(b, ", \"%s\": ", name);
        (void) llm_json_add_string(b, value, strlen(value));
    }
}


/* adds "a,b" as an array of strings */

static void
llm_cli_add_list(llm_buf_t *b, const char *name, const char *value)
{
    size_t  len;

    if (value == NULL) {
        return;
    }

    (void) llm_buf_addf(b, ", \"%s\": [", name);

    for (;;) {
        len = strcspn(value, ",");
        (void) llm_json_add_string(b, value, len);

        if (value[len] == '\0') {
            break;
        }

        (void) llm_buf_adds(b, ", ");
        value += len + 1;
    }

    (void) llm_buf_addc(b, ']');
}


static void
llm_cli_add_hex(llm_buf_t *b, const unsigned char *p, size_t len)
{
    size_t  i;

    for (i = 0; i < len; i++) {
        (void) llm_buf_addf(b, "%02x", p[i]);
    }
}


/* makes the secret and the line; random: LLM_CLI_SECRET bytes for the secret,
   then LLM_CLI_ID bytes for an id */

static int
llm_cli_make_key(const llm_cli_t *c, const unsigned char *random,
    llm_buf_t *secret, llm_buf_t *line)
{
    llm_buf_t      id;
    unsigned char  digest[LLM_SHA256_LEN];

    (void) llm_buf_adds(secret, "sk-llm-");
    llm_cli_add_base64url(secret, random, LLM_CLI_SECRET);

    if (secret->failed
        || llm_sha256(secret->data, secret->len, digest) != LLM_OK)
    {
        return LLM_ERROR;
    }

    llm_buf_init(&id, 0);

    if (c->id) {
        (void) llm_buf_adds(&id, c->id);

    } else {
        (void) llm_buf_adds(&id, "key-");
        llm_cli_add_hex(&id, random + LLM_CLI_SECRET, LLM_CLI_ID);
    }

    (void) llm_buf_adds(line, "{\"id\": ");
    (void) llm_json_add_string(line, id.len ? id.data : "", id.len);
    (void) llm_buf_adds(line, ", \"sha256\": \"");
    llm_cli_add_hex(line, digest, sizeof(digest));
    (void) llm_buf_addc(line, '"');

    llm_cli_add_member(line, "tenant", c->tenant);
    llm_cli_add_list(line, "models", c->models);
    llm_cli_add_list(line, "scopes", c->scopes);
    llm_cli_add_member(line, "not_before", c->not_before);
    llm_cli_add_member(line, "expires", c->expires);
    (void) llm_buf_adds(line, "}\n");

    llm_buf_free(&id);

    return secret->failed || line->failed ? LLM_ERROR : LLM_OK;
}


int
llm_cli_key(const llm_cli_t *c, llm_err_t *err)
{
    int             rc;
    llm_buf_t       secret, line;
    llm_keys_t     *t;
    unsigned char   random[LLM_CLI_SECRET + LLM_CLI_ID];

    if (getrandom(random, sizeof(random), 0) != (ssize_t) sizeof(random)) {
        return llm_fail(err, "no random numbers: %s", strerror(errno));
    }

    llm_buf_init(&secret, 0);
    llm_buf_init(&line, 0);

    if (llm_cli_make_key(c, random, &secret, &line) != LLM_OK) {
        rc = llm_fail(err, "no memory for the key, or no SHA-256");

    } else {

        /* parsed as nginx will parse it, to find wrong scopes and times */

        t = llm_keys_parse(line.data, line.len, err);
        rc = t ? LLM_OK : LLM_ERROR;
        llm_keys_free(t);

        if (rc != LLM_OK && strncmp(err->msg, "line 1: ", 8) == 0) {
            memmove(err->msg, err->msg + 8, strlen(err->msg + 8) + 1);
        }
    }

    /* the secret is shown only after its line was written */

    if (rc == LLM_OK) {
        rc = llm_cli_write(line.data, line.len, err);
    }

    if (rc == LLM_OK) {
        rc = llm_cli_flush(err);
    }

    if (rc == LLM_OK) {
        fprintf(stderr, "%s\n", secret.data);
    }

    llm_buf_free(&secret);
    llm_buf_free(&line);

    return rc;
}
