/*
 * The form of POST /audio/transcriptions and /audio/translations: the fields,
 * checked, and the file, handed on in pieces as it comes.
 *
 * Invariant: fields may come before the file or after it; nothing of them is
 * known for certain before llm_sound_form_end().  The form owns its texts,
 * whose bytes together have a bound.
 */

#ifndef LLM_API_SOUND_FORM_H
#define LLM_API_SOUND_FORM_H

#include "engine/api/multipart.h"
#include "engine/api/transcript.h"

/* bytes of all fields but the file */
#define LLM_SOUND_FORM_FIELDS  (256u << 10)

typedef struct {
    /* where the file goes; LLM_ERROR and *err end the reading */
    void                      *ctx;
    int                      (*file)(void *ctx, const void *data, size_t len,
                                     llm_err_t *err);

    /* what llm_sound_form_end() leaves */
    llm_str_t                  model;       /* len 0: not given */
    llm_str_t                  prompt;
    llm_transcript_format_t    format;
    unsigned                   has;         /* LLM_TRANSCRIPT_... */
    int                        translate;
    int                        language;    /* number; -1: not given */
    int                        stream;
    double                     temperature; /* -1: not given, or 0, which is the
                                               same: it may rise */
    uint64_t                   seed;

    /* its own */
    llm_multipart_t            parts;
    llm_buf_t                  text;        /* values of fields */
    struct {
        size_t                 at;          /* in text, from 1; 0: not given */
        size_t                 len;
    }                          value[8];
    int                        field;       /* being read; -1: none that counts,
                                               -2: the file */
    int                        files;
    int                        granular;    /* timestamp_granularities[] */
    int                        logprobs;    /* include[] */
} llm_sound_form_t;

/* LLM_ERROR and *err: as llm_multipart_init(); the form is to be freed either
   way */
int llm_sound_form_init(llm_sound_form_t *f, llm_str_t content_type,
    int translate, llm_err_t *err);
void llm_sound_form_free(llm_sound_form_t *f);

/* the next bytes of the body; LLM_ERROR and *err, of status 400 or 413, or what
   f->file() returned */
int llm_sound_form_read(llm_sound_form_t *f, const void *data, size_t len,
    llm_err_t *err);
/* after the last byte: checks what is missing and what does not go together */
int llm_sound_form_end(llm_sound_form_t *f, llm_err_t *err);

#endif /* LLM_API_SOUND_FORM_H */
