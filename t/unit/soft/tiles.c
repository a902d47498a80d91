/*
 * The tiles of tiles.h, and the choice of the instruction sets "amx" on a CPU
 * that has the AVX-512 which its kernels use beside tiles, and "avxvnni" (vnni.h).
 */

#include "kernels/cpu/cpu.h"
#include "t/unit/soft/tiles.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <string.h>

#define TILES       8
#define TILE_ROWS   16
#define TILE_BYTES  64                  /* of a row */

typedef struct {
    uint8_t   palette;
    uint8_t   start_row;
    uint8_t   reserved[14];
    uint16_t  bytes[16];
    uint8_t   rows[16];
} tile_config_t;

static _Thread_local tile_config_t  config;
static _Thread_local uint8_t        tiles[TILES][TILE_ROWS][TILE_BYTES];

int __real_llm_cpu_select(const char *name, llm_cpu_kernels_t *k,
    llm_err_t *err);
int __wrap_llm_cpu_select(const char *name, llm_cpu_kernels_t *k,
    llm_err_t *err);


int
__wrap_llm_cpu_select(const char *name, llm_cpu_kernels_t *k, llm_err_t *err)
{
    if (name && strcmp(name, "avxvnni") == 0) {
        if (__real_llm_cpu_select("avx2", k, err) != LLM_OK) {
            return LLM_ERROR;
        }

        llm_cpu_kernels_avxvnni(k);
        return LLM_OK;
    }

    if (name == NULL || strcmp(name, "amx") != 0) {
        return __real_llm_cpu_select(name, k, err);
    }

    if (__real_llm_cpu_select("avx512", k, err) != LLM_OK) {
        return LLM_ERROR;
    }

    if (!k->bf16) {
        return llm_fail(err, "cpu: amx is not available on this machine: its "
                        "kernels use AVX512_BF16, too");
    }

    memset(k, 0, sizeof(llm_cpu_kernels_t));
    llm_cpu_kernels_amx(k);

    return LLM_OK;
}


static void
check(int t)
{
    assert(config.palette == 1 && t >= 0 && t < TILES);
    assert(config.rows[t] && config.rows[t] <= TILE_ROWS);
    assert(config.bytes[t] && config.bytes[t] <= TILE_BYTES);
}


void
soft_tile_config(const void *from)
{
    memcpy(&config, from, sizeof(config));
    memset(tiles, 0, sizeof(tiles));
}


void
soft_tile_release(void)
{
    memset(&config, 0, sizeof(config));
    memset(tiles, 0, sizeof(tiles));
}


void
soft_tile_zero(int t)
{
    check(t);
    memset(tiles[t], 0, sizeof(tiles[t]));
}


void
soft_tile_load(int t, const void *from, size_t stride)
{
    int  r;

    check(t);
    memset(tiles[t], 0, sizeof(tiles[t]));

    for (r = 0; r < config.rows[t]; r++) {
        memcpy(tiles[t][r], (const char *) from + (size_t) r * stride,
               config.bytes[t]);
    }
}


void
soft_tile_store(int t, void *to, size_t stride)
{
    int  r;

    check(t);

    for (r = 0; r < config.rows[t]; r++) {
        memcpy((char *) to + (size_t) r * stride, tiles[t][r],
               config.bytes[t]);
    }
}


/* the sizes of a product: c has a's rows and b's columns, and each four bytes
   of a row of a are for a row of b */

static void
check_product(int c, int a, int b)
{
    check(a);
    check(b);
    check(c);
    assert(config.rows[c] == config.rows[a]);
    assert(config.bytes[c] == config.bytes[b]);
    assert(config.bytes[a] == 4 * config.rows[b]);
}


void
soft_tile_dpbssd(int c, int a, int b)
{
    int            i, m, n, k;
    int32_t        sum;
    const int8_t  *x, *y;

    check_product(c, a, b);

    for (m = 0; m < config.rows[c]; m++) {
        for (n = 0; n < config.bytes[c] / 4; n++) {
            memcpy(&sum, &tiles[c][m][4 * n], 4);

            for (k = 0; k < config.rows[b]; k++) {
                x = (const int8_t *) &tiles[a][m][4 * k];
                y = (const int8_t *) &tiles[b][k][4 * n];

                for (i = 0; i < 4; i++) {
                    sum = (int32_t) ((uint32_t) sum + (uint32_t) (x[i] * y[i]));
                }
            }

            memcpy(&tiles[c][m][4 * n], &sum, 4);
        }
    }
}


/* denormal numbers are zeros */

static float
flushed(float v)
{
    return fabsf(v) < FLT_MIN ? copysignf(0, v) : v;
}


/* elements of a tile as numbers, [rows][2 * 16] */

static void
elements(int t, float (*to)[TILE_BYTES / 2])
{
    int       r, i;
    uint16_t  h;

    for (r = 0; r < config.rows[t]; r++) {
        for (i = 0; i < TILE_BYTES / 2; i++) {
            memcpy(&h, &tiles[t][r][2 * i], 2);
            to[r][i] = flushed(llm_bf16_to_f32(h));
        }
    }
}


/* even and odd elements are summed apart from each other, with one rounding for
   a product and its addition; then both sums, and that to the tile */

void
soft_tile_dpbf16ps(int c, int a, int b)
{
    int    m, n, k;
    float  sum, part[TILE_BYTES / 2];
    float  x[TILE_ROWS][TILE_BYTES / 2], y[TILE_ROWS][TILE_BYTES / 2];

    check_product(c, a, b);
    elements(a, x);
    elements(b, y);

    for (m = 0; m < config.rows[c]; m++) {
        memset(part, 0, sizeof(part));

        for (k = 0; k < config.rows[b]; k++) {
            for (n = 0; n < TILE_BYTES / 2; n++) {
                part[n] = flushed(fmaf(x[m][2 * k + n % 2], y[k][n], part[n]));
            }
        }

        for (n = 0; n < config.bytes[c] / 4; n++) {
            memcpy(&sum, &tiles[c][m][4 * n], 4);
            sum = flushed(sum + flushed(part[2 * n] + part[2 * n + 1]));
            memcpy(&tiles[c][m][4 * n], &sum, 4);
        }
    }
}
