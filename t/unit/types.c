/*
 * Element types: the table, every block format against the reference
 * package's values, and the conversions of half floats, all of them.
 */

#include "kernels/types.h"
#include "t/unit/tap.h"
#include "t/unit/types_expected.h"

#include <math.h>

#define nelems(x)  (sizeof(x) / sizeof((x)[0]))


static void
test_table(void)
{
    ok(llm_type_name(3 + 1) == NULL && llm_type_name(31) == NULL
       && llm_type_name(41) == NULL
       && llm_type_name(UINT32_MAX) == NULL, "unknown types have no name");
    is_int(llm_type_block(4), 0, "nor a block");
    is_int(llm_type_block_size(9), 0, "nor a size");
    is_int(llm_type_row_size(5, 64), 0, "nor rows");

    is_str(llm_type_name(12), "Q4_K", "type 12");
    is_str(llm_type_name(30), "BF16", "type 30");
    is_int(llm_type_block(LLM_TYPE_Q6_K), 256, "elements of a block");
    is_int(llm_type_block_size(LLM_TYPE_Q6_K), 210, "bytes of a block");
    is_int(llm_type_row_size(LLM_TYPE_Q5_0, 96), 66, "bytes of a row");
    is_int(llm_type_row_size(LLM_TYPE_F32, 7), 28, "bytes of 7 floats");
}


static void
check(uint32_t type, const uint8_t *bytes, size_t size, const float *want,
    size_t n)
{
    float   got[512];
    size_t  i, bad;

    is_int(llm_type_row_size(type, n), size, "%s: %zu elements",
           llm_type_name(type), n);

    llm_dequantize(type, bytes, got, n);

    for (i = 0, bad = 0; i < n; i++) {
        if (memcmp(&got[i], &want[i], sizeof(float)) != 0
            && got[i] != want[i])
        {
            bad++;
            printf("# %zu: got %a, want %a\n", i, (double) got[i],
                   (double) want[i]);
        }
    }

    is_int(bad, 0, "%s: every element as the reference has it",
           llm_type_name(type));
}


#define CHECK(type, name)                                                    \
    check(type, name##_bytes, sizeof(name##_bytes), name##_floats,           \
          nelems(name##_floats))


static void
test_blocks(void)
{
    float  f[3] = { 1.5f, -0.0f, 3e38f }, out[3];

#define LLM_QUANT(NAME, name, number, block, bytes, pack, class)             \
    CHECK(LLM_TYPE_##NAME, name);
#include "kernels/types.def"

    CHECK(LLM_TYPE_BF16, bf16);

    llm_dequantize(LLM_TYPE_F32, f, out, 3);
    ok(memcmp(f, out, sizeof(f)) == 0, "F32 is as it is");
}


/* any bytes are a block, and no scale that is a number makes a value none */

static void
test_any_bytes(void)
{
    float     v[256];
    size_t    i, k, bad;
    uint8_t  *b;
    uint32_t  type, x, n;

    x = 1;

    for (type = 0; type < LLM_TYPE_END; type++) {
        if (llm_type_block(type) <= 1) {
            continue;
        }

        for (bad = 0, n = 0; n < 2000; n++) {
            /* as long as the block, for tools that look at reads behind it */
            b = malloc(llm_type_block_size(type));

            for (i = 0; i < llm_type_block_size(type); i++) {
                x = x * 1664525 + 1013904223;
                b[i] = n < 2 ? 0xff : (uint8_t) (x >> 24);

                /* the highest exponent of binary16, wherever it may lie */
                if (n % 2 && b[i] % 128 >= 0x70) {
                    b[i] &= 0xbf;
                }
            }

            llm_dequantize(type, b, v, llm_type_block(type));
            free(b);

            for (k = 0; n % 2 && k < llm_type_block(type); k++) {
                bad += isnan(v[k]) != 0;
            }
        }

        is_int(bad, 0, "%s: any bytes are numbers", llm_type_name(type));
    }
}


/* what IEEE 754 says of a half float */

static double
half(uint32_t h)
{
    int     exp;
    double  m, v;

    exp = (h >> 10) & 31;
    m = h & 0x3ff;

    v = exp == 31 ? (m != 0 ? NAN : INFINITY)
                  : exp ? ldexp(1 + m / 1024, exp - 15) : ldexp(m, -24);

    return h & 0x8000 ? -v : v;
}


static void
test_half(void)
{
    float     f;
    uint32_t  h, bad, bad_back, bad_mid;
    double    v, next, mid;

    bad = bad_back = bad_mid = 0;

    for (h = 0; h < 0x10000; h++) {
        v = half(h);
        f = llm_f16_to_f32((uint16_t) h);

        if (isnan(v)) {
            bad += !isnan(f);
            bad_back += (llm_f32_to_f16(f) & 0x7fff) <= 0x7c00;
            continue;
        }

        bad += (double) f != v || !!signbit(f) != !!(h & 0x8000);
        bad_back += llm_f32_to_f16(f) != h;

        if ((h & 0x7fff) >= 0x7c00) {
            continue;
        }

        /* halfway to the next one: to the even one; a bit off: the nearer */

        next = (h & 0x7fff) == 0x7bff ? copysign(65536, v) : half(h + 1);
        mid = (v + next) / 2;
        f = (float) mid;

        bad_mid += llm_f32_to_f16(f) != (h & 1 ? h + 1 : h);
        bad_mid += llm_f32_to_f16(nextafterf(f, (float) next)) != h + 1;
        bad_mid += llm_f32_to_f16(nextafterf(f, (float) v)) != h;
    }

    is_int(bad, 0, "65536 half floats to float");
    is_int(bad_back, 0, "and back");
    is_int(bad_mid, 0, "what lies between is rounded to nearest even");

    is_int(llm_f32_to_f16(1e30f), 0x7c00, "too large is infinite");
    is_int(llm_f32_to_f16(-1e30f), 0xfc00, "negative too");
    is_int(llm_f32_to_f16(1e-30f), 0, "too small is 0");
    is_int(llm_f32_to_f16(-1e-30f), 0x8000, "or -0");
}


static void
test_bf16(void)
{
    float     f, mid, low, up;
    uint32_t  h, bad;

    for (h = 0, bad = 0; h < 0x10000; h++) {
        f = llm_bf16_to_f32((uint16_t) h);

        if (isnan(f)) {
            bad += !isnan(llm_bf16_to_f32(llm_f32_to_bf16(f)));
            continue;
        }

        bad += llm_f32_to_bf16(f) != h;

        if (isinf(f) || (h & 0x7fff) == 0x7f7f) {
            continue;
        }

        up = llm_bf16_to_f32((uint16_t) (h + 1));
        mid = (float) (((double) f + (double) up) / 2);
        low = nextafterf(mid, f);

        bad += llm_f32_to_bf16(mid) != (h & 1 ? h + 1 : h);
        bad += llm_f32_to_bf16(low) != h;
        bad += llm_f32_to_bf16(nextafterf(mid, up)) != h + 1;
    }

    is_int(bad, 0, "65536 bfloats to float and back, and what is between");
    ok(isnan(llm_bf16_to_f32(llm_f32_to_bf16(NAN))), "no number stays none");
    is_int(llm_f32_to_bf16(3.4e38f), 0x7f80, "the largest float is infinite");
}


/* sign, four bits of exponent with bias 7, three of mantissa */

static float
e4m3_value(uint32_t e)
{
    float  v;

    v = (e >> 3 & 15) ? ldexpf(8.0f + (float) (e & 7), (int) (e >> 3 & 15)
                                                       - 10)
                      : ldexpf((float) (e & 7), -9);

    return e & 128 ? -v : v;
}


static void
test_e4m3(void)
{
    int       bad;
    float     f, up, mid;
    uint32_t  e;

    bad = 0;

    for (e = 0; e < 256; e++) {
        f = llm_e4m3_to_f32((uint8_t) e);

        if ((e & 127) == 127) {
            bad += !isnan(f) || llm_f32_to_e4m3(f) != e;
            continue;
        }

        bad += f != e4m3_value(e) || llm_f32_to_e4m3(f) != e;

        if ((e & 127) == 126) {
            continue;
        }

        /* between this one and the next: to the nearest, ties to even */

        up = e4m3_value(e + 1);
        mid = (f + up) / 2;
        bad += llm_f32_to_e4m3(mid) != (e & 1 ? e + 1 : e);
        bad += llm_f32_to_e4m3(nextafterf(mid, f)) != e;
        bad += llm_f32_to_e4m3(nextafterf(mid, up)) != e + 1;
    }

    is_int(bad, 0, "e4m3: all codes, and what lies between them");
    is_int(llm_f32_to_e4m3(448.0f), 0x7e, "e4m3: its largest");
    is_int(llm_f32_to_e4m3(-465.0f), 0xfe, "e4m3: more is the largest");
    is_int(llm_f32_to_e4m3(INFINITY), 0x7e, "e4m3: there is no infinity");
    is_int(llm_f32_to_e4m3(-0.0f), 0x80, "e4m3: minus zero");
}


int
main(void)
{
    test_table();
    test_blocks();
    test_any_bytes();
    test_half();
    test_bf16();
    test_e4m3();

    return done_testing();
}
