/*
 * A text with a gap as tokens: prefix and suffix between the tokens that a
 * model was trained on for this, in the order prefix, suffix, middle (Bavarian
 * et al., "Efficient Training of Language Models to Fill in the Middle", 2022).
 * Other texts come before them, as files of a repository.
 *
 * Prefix and suffix are never cut.  If the context has no room for all other
 * texts, the first ones, which matter least, are left out.
 */

#include "engine/prepare/prepare.h"

/* 1/SHARE of the context is kept for the answer if the request does not limit
   its length */
#define LLM_INFILL_SHARE  8


static int
llm_infill_text(const llm_prep_env_t *env, const llm_req_t *r, llm_ref_t ref,
    llm_ids_t *out, llm_err_t *err)
{
    return llm_vocab_tokenize(env->vocab, llm_ref_data(r->msg, ref), ref.len,
                              NULL, 0, LLM_TOKENIZE_PLAIN, 0, out, err);
}


static int
llm_infill_add(llm_ids_t *out, const int32_t *ids, size_t n, llm_err_t *err)
{
    size_t    cap;
    int32_t  *data;

    if (out->len + n > out->cap) {
        cap = llm_max(out->cap * 2, out->len + n);

        data = realloc(out->data, cap * sizeof(*data));
        if (data == NULL) {
            return llm_fail(err, "no memory for the prompt");
        }

        out->data = data;
        out->cap = cap;
    }

    if (n) {
        memcpy(out->data + out->len, ids, n * sizeof(*ids));
        out->len += n;
    }

    return LLM_OK;
}


/* appends a token, if the model has it */

static int
llm_infill_add_token(llm_ids_t *out, int32_t id, llm_err_t *err)
{
    return id >= 0 ? llm_infill_add(out, &id, 1, err) : LLM_OK;
}


/* appends what precedes a text: the token for files, the file's name and the
   end of the line.  For a model without that token it is a line that occurs in
   no source */

static int
llm_infill_head(const llm_prep_env_t *env, llm_str_t name, llm_ids_t *out,
    llm_err_t *err)
{
    int               rc;
    llm_buf_t         line;
    const llm_fim_t  *fim;

    fim = llm_vocab_fim(env->vocab);
    llm_buf_init(&line, 0);

    if (fim->file >= 0) {
        (void) llm_buf_add(&line, name.data, name.len);
        (void) llm_buf_addc(&line, '\n');

    } else {
        (void) llm_buf_adds(&line, "\n\n--- snippet ---\n\n");
    }

    rc = line.failed ? llm_fail(err, "no memory for the prompt")
                     : llm_infill_add_token(out, fim->file, err);

    if (rc == LLM_OK) {
        rc = llm_vocab_tokenize(env->vocab, line.data, line.len, NULL, 0,
                                LLM_TOKENIZE_PLAIN, 0, out, err);
    }

    llm_buf_free(&line);

    return rc;
}


/* collects the other texts from the last one backwards, as long as they fit
   into `room` tokens; `out` has them in their original order */

static int
llm_infill_extra(const llm_prep_env_t *env, const llm_req_t *r,
    const llm_infill_t *in, size_t room, llm_ids_t *out, llm_err_t *err)
{
    int                 rc;
    uint32_t            i;
    llm_ids_t           one;
    llm_str_t           name;
    const llm_extra_t  *extra;

    extra = llm_ref_data(r->msg, in->extra);

    for (i = in->extra.len; i > 0; i--) {
        memset(&one, 0, sizeof(one));
        name.data = llm_ref_data(r->msg, extra[i - 1].name);
        name.len = extra[i - 1].name.len;

        rc = llm_infill_head(env, name, &one, err);

        if (rc == LLM_OK) {
            rc = llm_infill_text(env, r, extra[i - 1].text, &one, err);
        }

        if (rc == LLM_OK && out->len + one.len > room) {
            free(one.data);
            return LLM_OK;
        }

        if (rc == LLM_OK) {
            rc = llm_infill_add(&one, out->data, out->len, err);
        }

        if (rc != LLM_OK) {
            free(one.data);
            return LLM_ERROR;
        }

        free(out->data);
        *out = one;
    }

    return LLM_OK;
}


/* tokens of the context that neither n tokens nor the answer need */

static size_t
llm_infill_room(const llm_prep_env_t *env, const llm_req_t *r, size_t n)
{
    size_t  ctx, answer;

    ctx = env->runner->ctx;
    answer = ctx / LLM_INFILL_SHARE;

    if (r->msg->max_tokens >= 0) {
        answer = llm_min((size_t) r->msg->max_tokens, ctx / 2);
    }

    return n + answer < ctx ? ctx - n - answer : 0;
}


/* appends all tokens in their order to `all`; p holds the prefix */

static int
llm_infill_join(const llm_prep_env_t *env, const llm_prompt_ids_t *p,
    const llm_ids_t *extra, const llm_ids_t *suffix, llm_ids_t *all,
    llm_err_t *err)
{
    int32_t           bos;
    const llm_fim_t  *fim;

    fim = llm_vocab_fim(env->vocab);
    bos = llm_vocab_add_bos(env->vocab) ? llm_vocab_bos(env->vocab) : -1;

    if (llm_infill_add_token(all, bos, err) != LLM_OK
        || llm_infill_add(all, extra->data, extra->len, err) != LLM_OK
        || llm_infill_add_token(all, fim->prefix, err) != LLM_OK
        || llm_infill_add(all, p->ids, p->n, err) != LLM_OK
        || llm_infill_add_token(all, fim->suffix, err) != LLM_OK
        || llm_infill_add(all, suffix->data, suffix->len, err) != LLM_OK
        || llm_infill_add_token(all, fim->middle, err) != LLM_OK)
    {
        return LLM_ERROR;
    }

    return LLM_OK;
}


/* the other texts, with the repository's head before them and the head of the
   text with the gap after them; nothing if no text fits */

static int
llm_infill_context(const llm_prep_env_t *env, const llm_req_t *r,
    const llm_infill_t *in, size_t n, llm_ids_t *out, llm_err_t *err)
{
    int               rc;
    size_t            room;
    llm_ids_t         texts, last;
    const llm_fim_t  *fim;

    static const char  repo[] = "project\n";

    if (in->extra.len == 0) {
        return LLM_OK;
    }

    memset(&texts, 0, sizeof(texts));
    memset(&last, 0, sizeof(last));
    fim = llm_vocab_fim(env->vocab);

    rc = llm_infill_head(env, llm_str("file"), &last, err);

    if (rc == LLM_OK && fim->repo >= 0) {
        rc = llm_infill_add_token(out, fim->repo, err);

        if (rc == LLM_OK) {
            rc = llm_vocab_tokenize(env->vocab, repo, sizeof(repo) - 1, NULL, 0,
                                    LLM_TOKENIZE_PLAIN, 0, out, err);
        }
    }

    if (rc == LLM_OK) {
        room = llm_infill_room(env, r, n + out->len + last.len);
        rc = llm_infill_extra(env, r, in, room, &texts, err);
    }

    if (rc == LLM_OK && texts.len == 0) {
        out->len = 0;

    } else if (rc == LLM_OK) {
        rc = llm_infill_add(out, texts.data, texts.len, err);

        if (rc == LLM_OK) {
            rc = llm_infill_add(out, last.data, last.len, err);
        }
    }

    free(texts.data);
    free(last.data);

    return rc;
}


int
llm_prep_infill(const llm_prep_env_t *env, const llm_req_t *r,
    llm_prompt_ids_t *p, llm_err_t *err)
{
    int                  rc;
    llm_ids_t            suffix, extra, all;
    const llm_fim_t     *fim;
    const llm_infill_t  *in;

    fim = llm_vocab_fim(env->vocab);
    in = llm_ref_data(r->msg, r->msg->infill);

    if (fim->prefix < 0 || fim->suffix < 0 || fim->middle < 0) {
        return llm_fail_with(err, 400, "unsupported_model", "model",
                             "This model cannot fill a gap in a text: its "
                             "vocabulary has no tokens for prefix, suffix "
                             "and middle.");
    }

    memset(&suffix, 0, sizeof(suffix));
    memset(&extra, 0, sizeof(extra));
    memset(&all, 0, sizeof(all));

    rc = llm_infill_text(env, r, in->suffix, &suffix, err);

    if (rc == LLM_OK) {
        rc = llm_infill_context(env, r, in, p->n + suffix.len + 4, &extra, err);
    }

    if (rc == LLM_OK) {
        rc = llm_infill_join(env, p, &extra, &suffix, &all, err);
    }

    free(suffix.data);
    free(extra.data);

    if (rc != LLM_OK) {
        free(all.data);
        return LLM_ERROR;
    }

    free(p->ids);
    p->ids = all.data;
    p->n = (uint32_t) all.len;

    return LLM_OK;
}
