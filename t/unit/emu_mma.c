/*
 * The emulator's tensor cores with a Hopper's arithmetic (t/gpu/emu/mma.cpp)
 * against what an H100 computed of the same operands (t/gpu/bits.cu), bit by
 * bit; and what differs on a GPU before it.
 */

#include "t/unit/tap.h"
#include "t/gpu/bits.h"

#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define RESULTS  "t/gpu/results/h100-2026-11-27/1/mma.bin"
#define TILES    2                      /* of each kind that are in the file */

typedef void (*mma_t)(const uint16_t rows[16][24], int bf16, float d[16][8]);

static const uint32_t  spreads[] = { 0, 4, 12 };


/* 16 rows of a tile, from row r0 on */

static void
operands(int type, uint32_t s, uint32_t tile, uint32_t r0,
    uint16_t rows[16][24], float d[16][8])
{
    uint32_t  i, k, seed = bits_seed(type, s);

    for (i = 0; i < 16; i++) {
        for (k = 0; k < 16; k++) {
            rows[i][k] = bits_value(type, (tile * 64 + r0 + i) * 16 + k, seed,
                                    spreads[s]);
        }

        for (k = 0; k < 8; k++) {
            rows[i][16 + k] = bits_value(type, (tile * 8 + k) * 16 + i,
                                         seed + 1, spreads[s]);
            d[i][k] = bits_sum(tile * BITS_TILE + (r0 + i) * 8 + k, seed + 2,
                               spreads[s]);
        }
    }
}


/* results of a kind that are not those of the file */

static uint32_t
differ(mma_t mma, int type, uint32_t s, const float *want)
{
    float     d[16][8];
    uint16_t  rows[16][24];
    uint32_t  tile, r0, n;

    for (n = 0, tile = 0; tile < TILES; tile++) {
        for (r0 = 0; r0 < 64; r0 += 16) {
            operands(type, s, tile, r0, rows, d);
            mma(rows, type == BITS_BF16, d);

            for (uint32_t i = 0; i < 128; i++) {
                n += memcmp(&d[i / 8][i % 8],
                            &want[tile * BITS_TILE + r0 * 8 + i],
                            sizeof(float)) != 0;
            }
        }
    }

    return n;
}


static void
test_results(mma_t mma, const float *want)
{
    int       type;
    uint32_t  s, n;

    static const char *const  names[] = { "bf16", "f16" };

    for (type = BITS_BF16; type <= BITS_F16; type++) {
        for (s = 0; s < 3; s++, want += TILES * BITS_TILE) {
            (void) setenv("LLM_EMU_CAPABILITY", "90", 1);
            n = differ(mma, type, s, want);
            ok(n == 0, "%s, exponents up to %u apart: %u of %u results are "
               "not an H100's", names[type], spreads[s], n,
               TILES * BITS_TILE);

            /* what an Ada cuts off is a bit more */

            (void) setenv("LLM_EMU_CAPABILITY", "89", 1);
            n = differ(mma, type, s, want);
            ok(s == 0 || n > 0, "before Hopper %u are others", n);
        }
    }
}


/* sums that only an exact alignment gets right, and what is no number */

static void
test_edges(mma_t mma)
{
    float     d[16][8];
    uint16_t  rows[16][24];

    (void) setenv("LLM_EMU_CAPABILITY", "90", 1);

    /* 1 * 1 and a sum of 2^-24: 25 bits behind the point keep it, 24 bits of a
       float do not */

    memset(rows, 0, sizeof(rows));
    memset(d, 0, sizeof(d));
    rows[0][0] = rows[0][16] = 0x3c00;
    d[0][0] = 0x1p-24f;
    mma(rows, 0, d);
    ok(d[0][0] == 1.0f, "what a float has no bits for is cut");

    d[0][0] = -0x1p-24f;
    mma(rows, 0, d);
    ok(d[0][0] == 1.0f - 0x1p-24f, "below 1 it has them");

    d[0][0] = -0x1p-26f;
    mma(rows, 0, d);
    ok(d[0][0] == 1.0f, "what is behind the 25th bit is not there");

    d[3][5] = 7.0f;
    mma(rows, 0, d);
    ok(d[3][5] == 7.0f, "products of zeros change nothing");

    rows[0][0] = 0x7c00;
    mma(rows, 0, d);
    ok(isnan(d[0][0]) || isinf(d[0][0]), "an infinite factor is no number");
    ok(d[1][0] == 0, "of its row alone");
}


int
main(void)
{
    FILE        *f;
    char         path[2048];
    void        *so;
    mma_t        mma;
    float        want[6 * TILES * BITS_TILE];
    const char  *objs;

    objs = getenv("LLM_OBJS") ? getenv("LLM_OBJS") : "objs";
    snprintf(path, sizeof(path), "%s/llm_emu.so", objs);
    so = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (so == NULL) {
        skip("no emulator in this build");
        return done_testing();
    }

    *(void **) &mma = dlsym(so, "emu_mma_16");
    f = fopen(RESULTS, "rb");

    if (ok(mma != NULL && f != NULL
           && fread(want, 1, sizeof(want), f) == sizeof(want),
           "the emulator and an H100's results"))
    {
        test_results(mma, want);
        test_edges(mma);
    }

    if (f) {
        (void) fclose(f);
    }

    (void) dlclose(so);

    return done_testing();
}
