/*
 * The version of nginx-llm: here and nowhere else.  CHANGELOG.md begins with
 * it, which t/http/readme.t checks.
 */

#ifndef LLM_VERSION_H
#define LLM_VERSION_H

#define LLM_VERSION  "0.9.0"

#endif /* LLM_VERSION_H */
