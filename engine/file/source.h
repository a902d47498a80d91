/*
 * Opens a model, whatever its format: a GGUF file, a model of whisper.cpp
 * (ggml .bin), a folder of Hugging Face's (config.json, safetensors).  All
 * become an llm_gguf_t, the keys and tensors that models and vocabularies load
 * from.
 *
 * Formats other than GGUF have readers here, which check every length, size and
 * offset, read headers with pread() and never from a mapping, and translate
 * names and sizes into GGUF's.  The caller closes what is opened.
 */

#ifndef LLM_SOURCE_H
#define LLM_SOURCE_H

#include "engine/gguf/gguf.h"

/* as llm_gguf_open() and llm_gguf_open_header() */
llm_gguf_t *llm_source_open(const char *path, llm_err_t *err);
llm_gguf_t *llm_source_open_header(const char *path, llm_err_t *err);

#endif /* LLM_SOURCE_H */
