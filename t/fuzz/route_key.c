/*
 * Any bytes as a body: the key for balancers is the same however they are cut.
 * The first byte says how many bytes of the texts count.
 */

#include "engine/api/api.h"

#include <stdio.h>


static void
key_of(const char *p, size_t len, size_t piece, uint32_t bytes,
    char hex[LLM_ROUTE_KEY_LEN])
{
    size_t            n;
    llm_str_t         none;
    llm_route_key_t  *k;

    none.len = 0;
    none.data = NULL;

    k = llm_route_key_create(bytes, bytes / 2);

    for ( /* void */ ; len; p += n, len -= n) {
        n = llm_min(piece, len);

        if (llm_route_key_add(k, p, n) == LLM_OK) {
            break;
        }
    }

    if (llm_route_key_end(k, none, none, hex) != LLM_OK) {
        abort();
    }

    llm_route_key_free(k);
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char         whole[LLM_ROUTE_KEY_LEN + 1], cut[LLM_ROUTE_KEY_LEN];
    const char  *p;

    if (size == 0) {
        return 0;
    }

    p = (const char *) data + 1;
    size--;

    key_of(p, size, size + 1, data[0], whole);
    whole[LLM_ROUTE_KEY_LEN] = '\0';

    if (strspn(whole, "0123456789abcdef") != LLM_ROUTE_KEY_LEN) {
        abort();
    }

    key_of(p, size, 1, data[0], cut);

    if (memcmp(whole, cut, LLM_ROUTE_KEY_LEN) != 0) {
        abort();
    }

    key_of(p, size, 1 + size / 3, data[0], cut);

    if (memcmp(whole, cut, LLM_ROUTE_KEY_LEN) != 0) {
        abort();
    }

    return 0;
}
