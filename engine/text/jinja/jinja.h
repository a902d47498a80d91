/*
 * An interpreter of Jinja templates as chat templates use them, equal to
 * Python's jinja2 set up as Hugging Face transformers does
 * (ImmutableSandboxedEnvironment, trim_blocks, lstrip_blocks, loop controls,
 * tojson without HTML escaping, raise_exception, strftime_now, generation
 * blocks), with one difference: methods may change lists and dictionaries, and
 * {% set %} may change members of a dictionary.
 *
 * Invariant: every string remembers, byte range by byte range, whether it came
 * from the template (trusted) or from the variables; all operations on strings
 * keep that.  A compiled template is read-only and may be rendered by any
 * number of threads at once.  Steps, memory, depth and output of a rendering
 * are bounded whatever the template does.
 */

#ifndef LLM_JINJA_H
#define LLM_JINJA_H

#include "engine/base/flat.h"
#include "engine/text/vocab/vocab.h"

typedef struct llm_jinja_s  llm_jinja_t;

typedef struct {
    uint64_t     max_steps;             /* 0: 30 million */
    uint64_t    *left;                  /* steps left for several renderings
                                           together, or NULL; each rendering
                                           subtracts its steps */
    size_t       max_memory;            /* bytes per rendering; 0: 128 MiB */
    size_t       max_output;            /* bytes; 0: 64 MiB */
    int64_t      now;                   /* seconds since 1970 for
                                           strftime_now; 0: the clock */

    /* called between the renderings of a prompt, if it needs several; nonzero:
       nobody needs the prompt any more.  NULL: not called */
    int        (*pause)(void *data);
    void        *data;

    /* NULL-terminated list, or NULL.  A string of the variables under the key
       "role" that equals one of these is trusted like the template's text, for
       templates that write '<|' + message.role + '|>' */
    const char *const  *trusted_roles;
} llm_jinja_opts_t;

/* codes of errors: a limit of llm_jinja_opts_t was reached; the template has
   failed on these variables */
#define LLM_JINJA_LIMIT   "chat_template_limit"
#define LLM_JINJA_FAILED  "chat_template_failed"

/* the text, and the runs of it that come from the template */
typedef struct {
    char        *text;                  /* NUL-terminated */
    size_t       len;
    llm_span_t  *trusted;
    size_t       n_trusted;
    uint32_t    *media;                 /* [n_media] owned; of a chat: the media
                                           of its messages, LLM_CHAT_MEDIA, in
                                           the order in which the template has
                                           got them; set by text/chat */
    size_t       n_media;
} llm_prompt_t;

/* errors have the line in the template and the reason */
llm_jinja_t *llm_jinja_compile(const char *src, size_t len, llm_err_t *err);
void llm_jinja_free(llm_jinja_t *t);

/* does the source contain this variable's name (tools, enable_thinking)? */
int llm_jinja_uses(const llm_jinja_t *t, const char *name);

/*
 * vars is a checked flat object.  Its strings are untrusted, except those of
 * the keys in the NULL-terminated list trusted_vars (bos_token, eos_token).
 * raise_exception() in the template is an error with status 400 and the
 * template's own message; all other errors have status 500.
 */
int llm_jinja_render(const llm_jinja_t *t, const llm_flat_t *vars,
    const char *const *trusted_vars, const llm_jinja_opts_t *opts,
    llm_prompt_t *out, llm_err_t *err);

void llm_prompt_free(llm_prompt_t *p);

#endif /* LLM_JINJA_H */
