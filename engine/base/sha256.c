/*
 * SHA-256 by libcrypto; see sha256.h.  The algorithm is looked up only once,
 * because the lookup takes longer than a short digest.
 */

#include "engine/base/sha256.h"

#include <openssl/evp.h>
#include <pthread.h>

/* set once, by llm_sha256_once; never freed */
static EVP_MD          *llm_sha256_md;
static pthread_once_t   llm_sha256_once = PTHREAD_ONCE_INIT;


static void
llm_sha256_fetch(void)
{
    llm_sha256_md = EVP_MD_fetch(NULL, "SHA2-256", NULL);
}


int
llm_sha256(const void *data, size_t len, unsigned char digest[LLM_SHA256_LEN])
{
    (void) pthread_once(&llm_sha256_once, llm_sha256_fetch);

    if (llm_sha256_md == NULL
        || EVP_Digest(data, len, digest, NULL, llm_sha256_md, NULL) != 1)
    {
        return LLM_ERROR;
    }

    return LLM_OK;
}
