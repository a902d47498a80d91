/*
 * The version of nginx-llm, defined only here.  CHANGELOG.md must begin with
 * it, as t/http/readme.t checks.
 */

#ifndef LLM_VERSION_H
#define LLM_VERSION_H

#define LLM_VERSION  "0.9.0"

#endif /* LLM_VERSION_H */
