/*
 * Bodies of requests, each with what becomes of it: a part of the flat
 * request, or the error's param, code and words.
 *
 * In bodies ' stands for ".
 */

#ifndef LLM_API_CASE_H
#define LLM_API_CASE_H

#include "engine/api/chat.h"
#include "t/unit/api_conf.h"
#include "t/unit/api_dump.h"
#include "t/unit/tap.h"

/* fields put into an otherwise good body */
#define CHAT_WITH   1
#define COMPL_WITH  2
#define CHAT_BODY   3
#define COMPL_BODY  4
#define TOKENIZE    5
#define DETOKENIZE  6
#define TEMPLATE    7
#define INFILL      8
#define EMBED_WITH  9
#define RANK_WITH   10
#define SCORE_WITH  11


typedef struct {
    int          how;
    const char  *body;
    const char  *param;                 /* NULL: a good one */
    const char  *code;                  /* good ones: part of the dump */
    const char  *msg;                   /* a part of it */
} case_t;

#define GOOD(how, body, dump)             { how, body, NULL, dump, NULL }
#define BAD(how, body, param, code, msg)  { how, body, param, code, msg }

#define HI  "[{'role':'user','content':'hi'}]"
#define FN  "{'type':'function','function':{'name':'f','parameters':{}}}"


static inline char *
body_of(const case_t *c)
{
    size_t      size;
    char       *body, *all;

    static const char *const  wraps[] = {
        "", "{'messages':" HI "%s}", "{'prompt':'once'%s}", "%s", "%s", "%s",
        "%s", "%s", "%s", "{'input':'once'%s}",
        "{'query':'q','documents':['d']%s}", "{'text_1':'q','text_2':'d'%s}"
    };

    body = quoted(wraps[c->how]);
    size = strlen(body) + strlen(c->body) + 1;
    all = malloc(size);

    snprintf(all, size, body, c->body);
    free(body);

    body = quoted(all);
    free(all);

    return body;
}


static inline void
test_case(const case_t *c)
{
    char                      *body, *copy;
    size_t                     len;
    llm_api_t                 *a;
    llm_buf_t                  msg, dump;
    llm_err_t                  err;
    const llm_api_endpoint_t  *ep;

    static const llm_api_endpoint_t *const  endpoints[] = {
        NULL, CHAT, COMPL, CHAT, COMPL, &llm_api_tokenize,
        &llm_api_detokenize, &llm_api_template, &llm_api_infill,
        &llm_api_embeddings, &llm_api_rerank, &llm_api_score
    };

    ep = endpoints[c->how];

    body = body_of(c);
    len = strlen(body);
    copy = malloc(len ? len : 1);
    memcpy(copy, body, len);

    memset(&err, 0, sizeof(err));
    llm_buf_init(&msg, 0);
    llm_buf_init(&dump, 0);

    a = llm_api_parse(ep, &conf, copy, len, &msg, &err);

    if (a && c->param == NULL) {
        dump_request((llm_request_t *) msg.data, &dump);

        ok(strstr(dump.data, c->code) != NULL, "%s", body);

        if (strstr(dump.data, c->code) == NULL) {
            printf("# got  %s\n# want %s\n", dump.data, c->code);
        }

    } else if (a) {
        ok(0, "not refused: %s", body);

    } else if (c->param == NULL) {
        ok(0, "refused: %s", body);
        printf("# %s\n", err.msg);

    } else {
        ok(strcmp(err.param, c->param) == 0
           && strcmp(err.code, c->code) == 0
           && err.status == (strcmp(c->code, "model_not_found") ? 400 : 404)
           && strstr(err.msg, c->msg), "refused: %s", body);

        if (strcmp(err.param, c->param) || strcmp(err.code, c->code)) {
            printf("# %d '%s' '%s' %s\n", err.status, err.param, err.code,
                   err.msg);
        }
    }

    llm_api_free(a);
    llm_buf_free(&msg);
    llm_buf_free(&dump);
    free(copy);
    free(body);
}


#define test_cases(table)                                                    \
    do {                                                                     \
        size_t  i_;                                                          \
                                                                             \
        for (i_ = 0; i_ < llm_nelems(table); i_++) {                         \
            test_case(&table[i_]);                                           \
        }                                                                    \
    } while (0)

#endif /* LLM_API_CASE_H */
