/*
 * SHA-256 as FIPS 180-4 describes it; see sha256.h.  What it does depends on
 * the length of the data alone, not on the bytes.
 */

#include "engine/base/sha256.h"

#define LLM_SHA256_BLOCK  64


static const uint32_t  llm_sha256_k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5,
    0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
    0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
    0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5,
    0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2
};


#define llm_turn(x, n)  (((x) >> (n)) | ((x) << (32 - (n))))

/* a round, which leaves a new value in d and in h; the caller turns the names
   by one from round to round, so that no value moves */

#define llm_round(a, b, c, d, e, f, g, h, i)                                 \
    do {                                                                     \
        t = (h) + (((e) & (f)) ^ (~(e) & (g))) + llm_sha256_k[i] + w[i]      \
            + (llm_turn(e, 6) ^ llm_turn(e, 11) ^ llm_turn(e, 25));          \
        (d) += t;                                                            \
        (h) = t + (((a) & (b)) ^ ((a) & (c)) ^ ((b) & (c)))                  \
              + (llm_turn(a, 2) ^ llm_turn(a, 13) ^ llm_turn(a, 22));        \
    } while (0)


static uint32_t
llm_sha256_word(const unsigned char *p)
{
    return (uint32_t) p[0] << 24 | (uint32_t) p[1] << 16
           | (uint32_t) p[2] << 8 | p[3];
}


static void
llm_sha256_block(uint32_t state[8], const unsigned char *p)
{
    int       i;
    uint32_t  w[64], t, a, b, c, d, e, f, g, h;

    for (i = 0; i < 16; i++) {
        w[i] = llm_sha256_word(p + 4 * i);
    }

    for (i = 16; i < 64; i++) {
        a = w[i - 15];
        e = w[i - 2];

        w[i] = w[i - 16] + w[i - 7]
               + (llm_turn(a, 7) ^ llm_turn(a, 18) ^ (a >> 3))
               + (llm_turn(e, 17) ^ llm_turn(e, 19) ^ (e >> 10));
    }

    a = state[0];
    b = state[1];
    c = state[2];
    d = state[3];
    e = state[4];
    f = state[5];
    g = state[6];
    h = state[7];

    for (i = 0; i < 64; i += 8) {
        llm_round(a, b, c, d, e, f, g, h, i);
        llm_round(h, a, b, c, d, e, f, g, i + 1);
        llm_round(g, h, a, b, c, d, e, f, i + 2);
        llm_round(f, g, h, a, b, c, d, e, i + 3);
        llm_round(e, f, g, h, a, b, c, d, i + 4);
        llm_round(d, e, f, g, h, a, b, c, i + 5);
        llm_round(c, d, e, f, g, h, a, b, i + 6);
        llm_round(b, c, d, e, f, g, h, a, i + 7);
    }

    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
}


void
llm_sha256(const void *data, size_t len, unsigned char digest[LLM_SHA256_LEN])
{
    int                   i;
    size_t                left;
    uint64_t              bits;
    unsigned char         last[2 * LLM_SHA256_BLOCK];
    const unsigned char  *p;

    uint32_t  state[8] = {
        0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19
    };

    p = data;

    for (left = len; left >= LLM_SHA256_BLOCK; left -= LLM_SHA256_BLOCK) {
        llm_sha256_block(state, p);
        p += LLM_SHA256_BLOCK;
    }

    /* a one bit, zeros, and the number of bits end the last block */

    memset(last, 0, sizeof(last));

    if (left) {
        memcpy(last, p, left);
    }

    last[left] = 0x80;
    bits = (uint64_t) len * 8;
    left = (left < LLM_SHA256_BLOCK - 8) ? LLM_SHA256_BLOCK : sizeof(last);

    for (i = 1; i <= 8; i++) {
        last[left - (size_t) i] = (unsigned char) bits;
        bits >>= 8;
    }

    llm_sha256_block(state, last);

    if (left == sizeof(last)) {
        llm_sha256_block(state, last + LLM_SHA256_BLOCK);
    }

    for (i = 0; i < LLM_SHA256_LEN; i++) {
        digest[i] = (unsigned char) (state[i / 4] >> (24 - 8 * (i % 4)));
    }
}
